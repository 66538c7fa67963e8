//! Smallest pairs for what the prover once left undecided, with their verdicts. The witnesses are put to the real API
//! server: as objects that are written at both sides, and, for what only a stored object shows, as an object that is
//! stored before the CRD changes.

use serde_json::{Value, json};

use super::{compared_releases, eventually, isolated, keeps};
use crate::servers::ComparedRelease;
use crate::support::{Api, CrdBuilder};
use gantry_proof::{self as proof, Difference, Limits, ProofWitness, VersionSchema};

/// One pair in each line: a name, both schemas, whether each side has a status subresource, and the verdict.
const PAIRS: &str = include_str!("kinds.jsonl");

#[test]
fn pairs_of_every_kind_are_decided_and_their_witnesses_hold_on_the_server() {
    compared_releases().into_iter().for_each(pairs_of_every_kind_are_decided);
}

fn pairs_of_every_kind_are_decided(compared: ComparedRelease) {
    let group = isolated().group;
    let lines: Vec<(usize, &str)> = PAIRS.lines().enumerate().collect();
    // The server takes a while to serve each CRD.
    let parts = lines.chunks(lines.len().div_ceil(THREADS));
    let (wrong, confirmed) = std::thread::scope(|scope| {
        let group = group.as_str();
        let started: Vec<_> = parts.map(|part| scope.spawn(move || refuted(compared, group, part))).collect();
        let ended = started.into_iter().map(|part| part.join().expect("a result"));
        ended.fold((Vec::new(), 0), |(mut all, count), (wrong, confirmed)| {
            all.extend(wrong);
            (all, count + confirmed)
        })
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(confirmed > 30, "{confirmed}");
}

/// The number of pairs that are tried at the same time.
const THREADS: usize = 6;

/// The pairs with another verdict or a witness that does not hold, and the number of witnesses that hold.
fn refuted(compared: ComparedRelease, group: &str, pairs: &[(usize, &str)]) -> (Vec<String>, usize) {
    let mut wrong = Vec::new();
    let mut confirmed = 0;
    for (at, line) in pairs {
        let pair: Value = serde_json::from_str(line).expect("a pair");
        let api_version = format!("{group}/v1");
        let [live, desired] = [&pair["live"], &pair["desired"]].map(|schema| compared.enforced(schema));
        let has_status = |side: usize| pair["status"][side] == json!(true);
        // Both sides are the same kind to the prover; on the server they are two.
        let version = |schema, side| VersionSchema {
            schema,
            status_subresource: has_status(side),
            api_version: &api_version,
            kind: "There",
            release: compared.release,
        };
        let proof = proof::prove(&version(&live, 0), &version(&desired, 1), Limits::default());
        if json!(format!("{:?}", proof.verdict)) != pair["verdict"] {
            wrong.push(format!("{}: {:?} ({})", pair["name"], proof.verdict, proof.reason));
        }
        let mut witnesses: Vec<&ProofWitness> = proof.nodes.iter().filter_map(|node| node.witnesses.first()).collect();
        witnesses.sort_by_key(|witness| !witness.is_read_only);
        let Some(witness) = witnesses.first() else { continue };
        let served = |kind: &str, schema: &Value, side| {
            ServedWitnessKind::create(compared.api(), group, &format!("{kind}{at}"), schema, has_status(side))
        };
        let (there, here) = match (served("There", &live, 0), served("Here", &desired, 1)) {
            (Ok(there), Ok(here)) => (there, here),
            // Some rules use functions that an older release lacks.
            (Err(_), _) | (_, Err(_)) if !compared.has_known_words() => continue,
            (Err(why), _) | (_, Err(why)) => {
                wrong.push(format!("{}: the server refuses a CRD: {why}", pair["name"]));
                continue;
            }
        };
        match refutation(&there, &here, witness, &desired) {
            Some(why) => wrong.push(format!("{}: {why}\n  {witness:?}", pair["name"])),
            None => confirmed += 1,
        }
        there.delete();
        here.delete();
    }
    (wrong, confirmed)
}

/// Why the witness does not show what it claims.
fn refutation(
    there: &ServedWitnessKind,
    here: &ServedWitnessKind,
    witness: &ProofWitness,
    desired: &Value,
) -> Option<String> {
    let (status, stored) = there.write(witness);
    if status > 201 || !keeps(&stored, &content(&witness.object)) {
        return Some(format!("live: {status} {stored}"));
    }
    if witness.is_read_only {
        let before = there.read(&stored);
        there.change(desired);
        let differs = eventually("the changed CRD is served", || {
            let after = there.read(&stored);
            (content(&after) != content(&before)).then_some(true)
        });
        return (!differs).then(|| "desired reads the same".to_owned());
    }
    let (status, kept) = here.write(witness);
    let is_shown = match witness.desired {
        Difference::Refused => status == 422,
        Difference::Pruned => status <= 201 && !keeps(&kept, &content(&witness.object)),
        Difference::Defaulted => status <= 201 && content(&kept) != content(&stored),
    };
    (!is_shown).then(|| format!("desired: {status} {kept}"))
}

/// The object without what the server adds to any object.
fn content(object: &Value) -> Value {
    let fields = object.as_object().expect("an object").iter();
    fields.filter(|(key, _)| matches!(key.as_str(), "spec" | "status")).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// A CRD that is served.
struct ServedWitnessKind<'a> {
    api: &'a Api,
    kind: String,
    group: String,
    has_status: bool,
}

impl<'a> ServedWitnessKind<'a> {
    const CRDS: &'static str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    fn create(api: &'a Api, group: &str, kind: &str, schema: &Value, has_status: bool) -> Result<Self, Value> {
        let crd = CrdBuilder::new(group, kind).cluster_scoped().version("v1", schema.clone());
        let crd = if has_status { crd.status_subresource().build() } else { crd.build() };
        let (status, answer) = api.post(Self::CRDS, &crd);
        if status != 201 {
            return Err(answer);
        }
        let served = ServedWitnessKind { api, kind: kind.to_owned(), group: group.to_owned(), has_status };
        eventually("the CRD is served", || (api.get(&served.resource()).0 == 200).then_some(()));
        Ok(served)
    }

    fn resource(&self) -> String {
        format!("/apis/{}/v1/{}s", self.group, self.kind.to_lowercase())
    }

    fn crd(&self) -> String {
        format!("{}/{}s.{}", Self::CRDS, self.kind.to_lowercase(), self.group)
    }

    /// Writes the witness as a user would: the old object first, and a status through its subresource.
    fn write(&self, witness: &ProofWitness) -> (u16, Value) {
        let of_kind = |object: &Value| {
            let mut object = object.clone();
            object["kind"] = json!(self.kind);
            object
        };
        let first = of_kind(witness.old_object.as_ref().unwrap_or(&witness.object));
        let (status, stored) = self.api.post(&self.resource(), &first);
        let is_status = self.has_status && witness.via_status;
        if status > 201 || witness.old_object.is_none() && !is_status {
            return (status, stored);
        }
        let mut second = of_kind(&witness.object);
        second["metadata"] = stored["metadata"].clone();
        let subresource = if is_status { "/status" } else { "" };
        self.api.put(&format!("{}{subresource}", self.object(&stored)), &second)
    }

    fn object(&self, stored: &Value) -> String {
        format!("{}/{}", self.resource(), stored["metadata"]["name"].as_str().unwrap_or_default())
    }

    fn read(&self, stored: &Value) -> Value {
        let (status, object) = self.api.get(&self.object(stored));
        assert_eq!(status, 200, "{object}");
        object
    }

    /// Replaces the schema.
    fn change(&self, schema: &Value) {
        let (status, mut crd) = self.api.get(&self.crd());
        assert_eq!(status, 200, "{crd}");
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
        let (status, answer) = self.api.put(&self.crd(), &crd);
        assert_eq!(status, 200, "{answer}");
    }

    fn delete(&self) {
        self.api.delete(&self.crd());
    }
}

//! Tests proofs with the real API server: generated schemas and edits that are typical of upgrades must not refute a
//! verdict.
//!
//! Many pairs share two CRDs, live and desired, each as a separate field, so one request tests as many objects as there
//! are fields. One side must accept each witness, and the other must refuse, prune or default it. For pairs that are
//! called equal or widening, objects that live accepts are tried; desired must accept and keep them unchanged.
//!
//! `GANTRY_PROOF=<pairs>[,<seed>]` sets the length of the run.

mod kinds;
mod logic;

use std::collections::BTreeMap;

use crate::generator::{self, Random};
use crate::servers::{ComparedRelease, compared_releases};
use crate::support::{Api, CrdBuilder, eventually, fields, isolated};
use gantry_proof::{self as proof, Difference, Limits, Proof, SchemaRelation, VersionSchema};
use serde_json::{Map, Value, json};

/// The number of fields, and thus pairs, of one pair of CRDs.
const FIELDS: usize = 80;
/// The number of objects tried for each pair that is called safe.
const TRIES: usize = 12;

#[derive(Default)]
struct Tally {
    pairs: usize,
    rejected: usize,
    verdicts: BTreeMap<String, usize>,
    undecided: BTreeMap<String, (usize, String)>,
    witnesses: usize,
    tried: usize,
    refuted: Vec<String>,
}

#[test]
fn no_verdict_is_refuted_by_the_server() {
    compared_releases().into_iter().for_each(no_verdict_is_refuted);
}

fn no_verdict_is_refuted(compared: ComparedRelease) {
    let (pairs, seed) = crate::run_length("GANTRY_PROOF", 160);
    let group = isolated().group;
    let mut tally = Tally::default();
    for at in 0..pairs.div_ceil(FIELDS) {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(at as u64);
        // In one batch in five, all schema features are equally frequent.
        let mut random = if at % 5 == 4 { Random::new(seed) } else { Random::everyday(seed) };
        batch(compared, &group, at, &mut random, &mut tally);
    }
    println!(
        "{}: {} pairs ({} more that the server did not take): {:?}; {} witnesses and {} objects tried; {} refuted",
        compared.release,
        tally.pairs,
        tally.rejected,
        tally.verdicts,
        tally.witnesses,
        tally.tried,
        tally.refuted.len()
    );
    let mut reasons: Vec<_> = tally.undecided.iter().collect();
    reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (reason, (count, example)) in reasons.iter().take(25) {
        println!("undecided {count}: {reason}\n    {example}");
    }
    assert!(tally.witnesses > 0 && tally.tried > 0, "the run reached nothing");
    let shown: Vec<&str> = tally.refuted.iter().take(8).map(String::as_str).collect();
    assert!(shown.is_empty(), "{} verdicts refuted, such as\n{}", tally.refuted.len(), shown.join("\n"));
    let undecided = tally.verdicts.get("Undecided").copied().unwrap_or(0);
    // A short run has too few pairs to distinguish 2 % from 4 %.
    let bound = if tally.pairs < 1000 { tally.pairs / 20 } else { tally.pairs / 50 };
    assert!(undecided <= bound, "{undecided} of {} undecided", tally.pairs);
}

/// Witnesses that are an update or a status: the object is stored first, and then written again.
#[test]
fn witnesses_that_are_updates_or_statuses_hold_on_the_server() {
    compared_releases().into_iter().for_each(witnesses_that_are_updates_or_statuses_hold);
}

fn witnesses_that_are_updates_or_statuses_hold(compared: ComparedRelease) {
    let api = compared.api();
    let group = isolated().group;
    let field = |schema: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": schema}}}});
    let status = |schema: Value| json!({"type": "object", "properties": {"status": {"type": "object", "properties": {"s": schema}}}});
    let text = || json!({"type": "string", "maxLength": 9});
    let fixed = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    for (at, (live, desired)) in [
        (field(text()), field(fixed)),
        (status(text()), status(json!({"type": "string", "maxLength": 9, "minLength": 1}))),
        (status(text()), json!({"type": "object", "properties": {"status": {"type": "object"}}})),
    ]
    .iter()
    .enumerate()
    {
        let api_version = format!("{group}/v1");
        let version = |schema, kind| VersionSchema {
            schema,
            status_subresource: true,
            api_version: &api_version,
            kind,
            release: compared.release,
        };
        let (a, b) = (format!("There{at}"), format!("Here{at}"));
        let proof = proof::prove(&version(live, &a), &version(desired, &b), Limits::default());
        let witness = proof.nodes.iter().find_map(|node| node.witnesses.first()).expect("a witness");
        assert_eq!((witness.via_status, witness.old_object.is_some()), (at > 0, at == 0), "{proof:#?}");
        let (taken, kept) = written(api, &group, &a, live, witness);
        assert!(taken == 200 && keeps(&kept, &only_content(&witness.object)), "live: {taken} {kept}");
        let (taken, kept) = written(api, &group, &b, desired, witness);
        match witness.desired {
            Difference::Refused => assert_eq!(taken, 422, "{kept}"),
            _ => assert!(taken == 200 && !keeps(&kept, &only_content(&witness.object)), "desired: {taken} {kept}"),
        }
    }
}

fn only_content(object: &Value) -> Value {
    let content = object.as_object().expect("an object").iter();
    Value::Object(
        content
            .filter(|(key, _)| matches!(key.as_str(), "spec" | "status"))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect(),
    )
}

/// Creates a CRD and the witness's old object, then writes the witness; returns the last answer.
fn written(api: &Api, group: &str, kind: &str, schema: &Value, witness: &proof::ProofWitness) -> (u16, Value) {
    let singular = kind.to_lowercase();
    let crd = CrdBuilder::new(group, kind).cluster_scoped().version("v1", schema.clone()).status_subresource().build();
    assert_eq!(api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).0, 201);
    let resource = format!("/apis/{group}/v1/{singular}s");
    eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
    let of_kind = |object: &Value| {
        let mut object = object.clone();
        object["kind"] = json!(kind);
        object
    };
    let before = of_kind(witness.old_object.as_ref().unwrap_or(&witness.object));
    let (status, stored) = api.post(&resource, &before);
    assert_eq!(status, 201, "{stored}");
    let mut after = of_kind(&witness.object);
    after["metadata"] = stored["metadata"].clone();
    let name = after["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let suffix = if witness.via_status { "/status" } else { "" };
    api.put(&format!("{resource}/{name}{suffix}"), &after)
}

/// One side of the batch: a CRD with all fields.
struct Crd<'a> {
    api: &'a Api,
    kind: String,
    group: &'a str,
    plural: String,
}

struct Pair {
    live: Value,
    desired: Value,
}

fn batch(compared: ComparedRelease, group: &str, at: usize, random: &mut Random, tally: &mut Tally) {
    let api = compared.api();
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    for field in 0..FIELDS {
        let mut live = generator::schema(random);
        if random.chance(8)
            && let Some(rule) = generator::rule(random, &live)
        {
            live["x-kubernetes-validations"] = json!([{"rule": rule}]);
        }
        let desired = generator::edited(random, &live);
        pairs.insert(format!("f{field}"), Pair { live, desired });
    }
    let live = Crd::new(api, group, format!("live{at}"));
    let desired = Crd::new(api, group, format!("desired{at}"));
    let count = pairs.len();
    live.create(&mut pairs, |pair| &pair.live);
    desired.create(&mut pairs, |pair| &pair.desired);
    tally.rejected += count - pairs.len();
    tally.pairs += pairs.len();
    live.wait();
    desired.wait();

    let mut proofs: BTreeMap<&String, Proof> = BTreeMap::new();
    for (field, pair) in &pairs {
        let [there, here] = [&pair.live, &pair.desired].map(|schema| compared.enforced(&alone(field, schema)));
        let version = |schema| VersionSchema {
            schema,
            status_subresource: false,
            api_version: "a/v1",
            kind: "A",
            release: compared.release,
        };
        let proof = proof::prove(&version(&there), &version(&here), Limits::default());
        *tally.verdicts.entry(format!("{:?}", proof.verdict)).or_default() += 1;
        if proof.verdict == SchemaRelation::Undecided {
            let reason = proof.reason.rsplit(": ").next().unwrap_or_default().to_owned();
            let example = format!("{}\n    {}\n    {}", proof.reason, pair.live, pair.desired);
            tally.undecided.entry(reason).or_insert((0, example)).0 += 1;
        }
        proofs.insert(field, proof);
    }
    witnesses(&live, &desired, &pairs, &proofs, tally);
    for round in 0..TRIES {
        let safe = |verdict: SchemaRelation| verdict == SchemaRelation::Equal || verdict == SchemaRelation::Widening;
        let chosen: Vec<&String> = pairs.keys().filter(|field| safe(proofs[field].verdict)).collect();
        tries(compared, (&live, &desired), &pairs, &chosen, |pair| &pair.live, random, tally);
        if round % 2 == 0 {
            let chosen: Vec<&String> =
                pairs.keys().filter(|field| proofs[field].verdict == SchemaRelation::Equal).collect();
            tries(compared, (&desired, &live), &pairs, &chosen, |pair| &pair.desired, random, tally);
        }
    }
    live.delete();
    desired.delete();
}

/// A separate field around the schema, so that nothing is defaulted or required if the field is missing.
fn around(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"v": schema}})
}

fn alone(field: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": {field: around(schema)}})
}

impl<'a> Crd<'a> {
    fn new(api: &'a Api, group: &'a str, name: String) -> Self {
        let (first, rest) = name.split_at(1);
        Self { api, kind: format!("{}{rest}", first.to_uppercase()), group, plural: format!("{name}s") }
    }

    fn resource(&self) -> String {
        format!("/apis/{}/v1/{}", self.group, self.plural)
    }

    /// Creates the CRD, without the pairs that the server refuses.
    fn create(&self, pairs: &mut BTreeMap<String, Pair>, side: impl Fn(&Pair) -> &Value) {
        loop {
            let properties: Map<String, Value> =
                pairs.iter().map(|(field, pair)| (field.clone(), around(side(pair)))).collect();
            let crd = CrdBuilder::new(self.group, &self.kind).cluster_scoped();
            let crd = crd.plural(&self.plural).version("v1", fields(properties.into())).build();
            let (status, answer) = self.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
            if status == 201 {
                return;
            }
            let text = answer.to_string();
            let before = pairs.len();
            pairs.retain(|field, _| !text.contains(&format!("[{field}]")));
            assert!(pairs.len() < before, "the server refuses the CRD for no field: {answer}");
        }
    }

    fn wait(&self) {
        eventually("the CRD is served", || (self.api.get(&self.resource()).0 == 200).then_some(()));
    }

    fn delete(&self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.api.delete(&format!("{path}/{}.{}", self.plural, self.group));
    }

    fn object(&self, fields: &BTreeMap<&String, Value>) -> Value {
        let mut object =
            json!({"apiVersion": format!("{}/v1", self.group), "kind": self.kind, "metadata": {"name": "x"}});
        if let Some(object) = object.as_object_mut() {
            object.extend(fields.iter().map(|(field, value)| ((*field).clone(), value.clone())));
        }
        object
    }

    /// The server's result for an object with these fields: the object, or the message of its refusal.
    fn ask(&self, fields: &BTreeMap<&String, Value>) -> Result<Value, String> {
        let (status, answer) = self.api.post(&format!("{}?dryRun=All", self.resource()), &self.object(fields));
        match status {
            201 => Ok(answer),
            400 | 422 => Err(answer.to_string()),
            _ => panic!("{status} {answer}"),
        }
    }
}

fn only<'f>(field: &'f String, value: &Value) -> BTreeMap<&'f String, Value> {
    BTreeMap::from([(field, value.clone())])
}

/// Every witness behaves as claimed.
fn witnesses(
    live: &Crd,
    desired: &Crd,
    pairs: &BTreeMap<String, Pair>,
    proofs: &BTreeMap<&String, Proof>,
    tally: &mut Tally,
) {
    for (field, proof) in proofs {
        for node in &proof.nodes {
            let there = node.witnesses.iter().map(|witness| (witness, live, desired));
            let here = node.reverse.iter().map(|witness| (witness, desired, live));
            for (witness, from, to) in there.chain(here).filter(|(witness, ..)| witness.old_object.is_none()) {
                // `kinds.rs` stores objects and then changes the CRD.
                if witness.is_read_only {
                    continue;
                }
                tally.witnesses += 1;
                // A witness can be the object without the field.
                let mut fields = BTreeMap::new();
                fields.extend(witness.object.get(field.as_str()).map(|value| (*field, value.clone())));
                let value = |object: &Value| object.get(field.as_str()).cloned();
                let wrong = match (from.ask(&fields), to.ask(&fields)) {
                    (Err(text), _) => Some(format!("is refused by the side that should take it: {text}")),
                    (Ok(_), Err(text)) => {
                        (witness.desired != Difference::Refused).then(|| format!("is refused: {text}"))
                    }
                    (Ok(_), Ok(_)) if witness.desired == Difference::Refused => Some("is not refused".to_owned()),
                    (Ok(a), Ok(b)) => {
                        (value(&a) == value(&b)).then(|| "comes back from both sides as the same".to_owned())
                    }
                };
                if let Some(wrong) = wrong {
                    let pair = &pairs[*field];
                    tally.refuted.push(format!(
                        "{:?} at {} ({}): the witness {} {wrong}\n  live {}\n  desired {}",
                        node.verdict,
                        node.path,
                        node.reason,
                        json!(fields),
                        pair.live,
                        pair.desired
                    ));
                }
            }
        }
    }
}

/// Objects that one side accepts are accepted by the other, with the same result.
fn tries(
    compared: ComparedRelease,
    (from, to): (&Crd, &Crd),
    pairs: &BTreeMap<String, Pair>,
    chosen: &[&String],
    side: impl Fn(&Pair) -> &Value,
    random: &mut Random,
    tally: &mut Tally,
) {
    let mut fields: BTreeMap<&String, Value> = BTreeMap::new();
    for field in chosen {
        let schema = side(&pairs[*field]);
        for attempt in 0..6 {
            let mut value = generator::value(random, schema);
            if attempt > 0 && random.chance(40) {
                value = generator::broken(random, &value);
            }
            if is_kept(compared, field, schema, &value) {
                fields.insert(field, json!({"v": value}));
                break;
            }
        }
    }
    let Ok(first) = from.ask(&fields) else {
        // If the validator misjudged one field, its error hides the others; then each field is tested alone.
        for (field, value) in &fields {
            if let Ok(first) = from.ask(&only(field, value)) {
                compare(field, value, &first, &to.ask(&only(field, value)), pairs, tally);
            }
        }
        return;
    };
    match to.ask(&fields) {
        Ok(second) => {
            for (field, value) in &fields {
                compare(field, value, &first, &Ok(second.clone()), pairs, tally);
            }
        }
        Err(_) => {
            for (field, value) in &fields {
                compare(field, value, &first, &to.ask(&only(field, value)), pairs, tally);
            }
        }
    }
}

fn compare(
    field: &String,
    value: &Value,
    first: &Value,
    second: &Result<Value, String>,
    pairs: &BTreeMap<String, Pair>,
    tally: &mut Tally,
) {
    tally.tried += 1;
    let wrong = match second {
        Ok(second) if first.get(field) == second.get(field) => return,
        Ok(second) => format!("{:?} becomes {:?}", first.get(field), second.get(field)),
        Err(text) => format!("refused: {text}"),
    };
    let pair = &pairs[field];
    tally
        .refuted
        .push(format!("called safe: {field}: {value}: {wrong}\n  live {}\n  desired {}", pair.live, pair.desired));
}

/// Whether the schema accepts the value and keeps all of it, without what proofs leave out: lists in place of strings.
fn is_kept(compared: ComparedRelease, field: &str, schema: &Value, value: &Value) -> bool {
    let whole = alone(field, schema);
    let Ok(compiled) = compared.compile(&whole) else { return false };
    let written = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, field: {"v": value}});
    let mut stored = written.clone();
    let processed = compiled.process(&mut stored, None);
    processed.outcome.is_accepted()
        && processed.pruned.is_empty()
        && keeps(&stored, &written)
        && is_meant(schema, value)
}

fn keeps(stored: &Value, written: &Value) -> bool {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            written.iter().all(|(key, value)| stored.get(key).is_some_and(|kept| keeps(kept, value)))
        }
        (Value::Array(stored), Value::Array(written)) => {
            stored.len() == written.len() && stored.iter().zip(written).all(|(a, b)| keeps(a, b))
        }
        (stored, written) => stored.as_f64().zip(written.as_f64()).map_or(stored == written, |(a, b)| a == b),
    }
}

fn is_meant(schema: &Value, value: &Value) -> bool {
    let of_text =
        schema.get("type").is_some_and(|kind| kind == "string") || schema.get("x-kubernetes-int-or-string").is_some();
    match value {
        Value::Array(items) => {
            !of_text && schema.get("items").is_none_or(|item| items.iter().all(|value| is_meant(item, value)))
        }
        Value::Object(map) => map.iter().all(|(key, value)| {
            let kid = schema.get("properties").and_then(|p| p.get(key)).or_else(|| schema.get("additionalProperties"));
            kid.is_none_or(|kid| is_meant(kid, value))
        }),
        // A stored `2.0` is the integer 2; rules see the difference only when it is written.
        Value::Number(number) => !number.is_f64() || number.as_f64().is_some_and(|f| f.fract() != 0.0),
        _ => true,
    }
}

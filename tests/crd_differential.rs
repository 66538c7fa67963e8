//! The validation of CRDs against the real API server: generated CRDs, good and broken, and the same answer.
//!
//! Each is sent as a dry run, new or in place of a live one. What the server refuses must be what we refuse, in the same
//! words and at the same paths; what it takes we must take. Live CRDs that are wrong by today's rules are put into etcd, as
//! an older server would have left them.
//!
//! `GANTRY_DIFFERENTIAL=<CRDs>[,<seed>]` sets the length of the run. `GANTRY_CRDS=<folder>` takes the CRDs of a folder, too.

mod generator;
mod support;

use std::collections::BTreeMap;
use std::path::Path;

use gantry::validation::crd::judge;
use generator::{Random, crds};
use serde::Deserialize;
use serde_json::Value;
use support::{control_plane, eventually, isolated};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REGISTRY: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions";

/// Updates of one live CRD.
const UPDATES: usize = 20;

/// How many CRDs, and the seed.
fn setting() -> (usize, u64) {
    let setting = std::env::var("GANTRY_DIFFERENTIAL").unwrap_or_else(|_| "200".to_owned());
    let (count, seed) = setting.split_once(',').unwrap_or((&setting, "1"));
    let wrong = "GANTRY_DIFFERENTIAL is <CRDs>[,<seed>]";
    (count.parse().expect(wrong), seed.parse().expect(wrong))
}

#[derive(Default)]
struct Tally {
    taken: usize,
    refused: usize,
    messages: usize,
    /// The server could not answer: it stumbles over some CRDs itself.
    unanswered: usize,
    /// Refused for the estimated cost of rules, which is not judged here.
    costly: usize,
    undecided: usize,
    /// Refused by both, and the server's words are not compared.
    other_words: usize,
    disagreements: Vec<String>,
}

/// Of a default the server says in Go's words why its metadata cannot be decoded, and of a rule that does not compile it says
/// so at each default that meets it.
const OTHER_WORDS: [&str; 3] = ["json: cannot unmarshal ", "parsing time ", "rule compile error: "];

impl Tally {
    fn compare(&mut self, what: &str, new: &Value, old: Option<&Value>, answer: Result<(u16, Value), String>) {
        let Some((_, answer)) = answer.ok().filter(|(status, _)| matches!(status, 200 | 201 | 422)) else {
            self.unanswered += 1;
            return;
        };
        let judgement = judge(new, old).unwrap_or_else(|problem| panic!("{problem}: {new}"));
        self.undecided += usize::from(!judgement.undecided.is_empty());
        let mut balances: BTreeMap<(String, String, String), i32> = BTreeMap::new();
        for refusal in &judgement.refusals {
            let error = &refusal.error;
            let key = (error.path.clone(), error.kind.reason().to_owned(), comparable(&error.body()));
            *balances.entry(key).or_default() += 1;
        }
        let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
        let has_other_words = |cause: &Value| {
            let message = cause["message"].as_str().unwrap_or_default();
            OTHER_WORDS.iter().any(|words| message.contains(words))
        };
        if causes.iter().any(has_other_words) && !judgement.refusals.is_empty() {
            self.other_words += 1;
            self.refused += 1;
            return;
        }
        let of_cost = |message: &str| message.contains("exceeds budget") || message.contains("exceeding cost limit");
        let mut is_costly = false;
        for cause in &causes {
            let text = |key: &str| cause[key].as_str().unwrap_or_default();
            if of_cost(text("message")) {
                is_costly = true;
                continue;
            }
            let key = (text("field").to_owned(), text("reason").to_owned(), comparable(text("message")));
            *balances.entry(key).or_default() -= 1;
        }
        self.costly += usize::from(is_costly);
        self.messages += causes.len();
        *(if causes.is_empty() { &mut self.taken } else { &mut self.refused }) += 1;
        for ((field, reason, message), balance) in balances.into_iter().filter(|(_, balance)| *balance != 0) {
            let who = if balance > 0 { "only we say" } else { "only the server says" };
            let old = old.map(|old| old["spec"].to_string()).unwrap_or_default();
            self.disagreements
                .push(format!("{what}: {who} {field}: {reason} {message}\n  new {}\n  old {old}", new["spec"]));
        }
    }

    fn judge(&self, what: &str) {
        println!(
            "{what}: {} taken, {} refused in {} messages; {} not answered, {} too costly, {} undecided, {} of other words; \
             {} disagreements",
            self.taken,
            self.refused,
            self.messages,
            self.unanswered,
            self.costly,
            self.undecided,
            self.other_words,
            self.disagreements.len()
        );
        let shown = &self.disagreements[..self.disagreements.len().min(10)];
        assert!(shown.is_empty(), "{}", shown.join("\n"));
    }
}

/// A message without what is not compared: the words for what is wrong with an expression of CEL, and Go's own words about
/// certificates and metadata that cannot be decoded.
fn comparable(message: &str) -> String {
    let cut = ["compilation failed: ", "failed to parse certificate: "];
    let end = cut.iter().filter_map(|text| message.find(text).map(|at| at + text.len())).min();
    let message = end.map_or(message, |end| &message[..end]);
    // Of versions that are quoted whole the defaults are quoted as they were decoded.
    match message.strip_prefix("Invalid value: [{\"Name\":") {
        Some(quoted) => format!("versions: {}", quoted.rsplit("}]: ").next().unwrap_or_default()),
        None => message.to_owned(),
    }
}

#[test]
fn new_crds_are_judged_as_the_server_does() {
    let (api, group) = (control_plane().api(), isolated().group);
    let (count, seed) = setting();
    let mut tally = Tally::default();
    for at in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let mut crd = crds::crd(&mut random, &group, &format!("New{}", at % 10));
        for _ in 0..random.below(4) {
            crds::break_crd(&mut random, &mut crd);
        }
        let answer = api.try_post(&format!("{CRDS}?dryRun=All"), &crd);
        tally.compare("new", &crd, None, answer);
    }
    tally.judge("new CRDs");
    assert!(tally.taken > 0 && tally.refused > 0, "both were tried");
}

#[test]
fn changed_crds_are_judged_as_the_server_does() {
    let (cp, group) = (control_plane(), isolated().group);
    let (count, seed) = setting();
    let mut tally = Tally::default();
    for at in 0..count.div_ceil(UPDATES) {
        let mut random = Random::new(seed.wrapping_mul(2_000_003).wrapping_add(at as u64));
        let base = crds::crd(&mut random, &group, &format!("Old{at}"));
        if cp.post(CRDS, &base).0 != 201 {
            continue;
        }
        let path = format!("{CRDS}/{}", base["metadata"]["name"].as_str().expect("a name"));
        let is_established = |crd: &Value| {
            let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        };
        let mut live = eventually("the CRD is established", || Some(cp.get(&path).1).filter(is_established));
        if random.chance(50) {
            // As an older server left it.
            let mut stored = live.clone();
            for _ in 0..1 + random.below(2) {
                crds::break_crd(&mut random, &mut stored);
            }
            stored["metadata"] = live["metadata"].clone();
            cp.store(&path.replacen(CRDS, REGISTRY, 1), &stored);
            live = cp.get(&path).1;
        }
        for _ in 0..UPDATES {
            let mut new = live.clone();
            for _ in 0..random.below(3) {
                crds::break_crd(&mut random, &mut new);
            }
            new["metadata"]["name"] = live["metadata"]["name"].clone();
            let answer = cp.try_put(&format!("{path}?dryRun=All"), &new);
            tally.compare("changed", &new, Some(&live), answer);
        }
        assert_eq!(cp.delete(&path).0, 200);
    }
    tally.judge("changed CRDs");
    assert!(tally.taken > 0 && tally.refused > 0, "both were tried");
}

/// The CRDs of a folder, in a development run.
#[test]
fn given_crds_are_judged_as_the_server_does() {
    let Some(folder) = std::env::var_os("GANTRY_CRDS") else { return };
    let mut tally = Tally::default();
    let mut crds = Vec::new();
    read(folder.as_ref(), &mut crds);
    for crd in &mut crds {
        if let Some(metadata) = crd["metadata"].as_object_mut() {
            metadata.retain(|key, _| matches!(key.as_str(), "name" | "annotations" | "labels"));
        }
        if let Some(crd) = crd.as_object_mut() {
            crd.shift_remove("status");
        }
        let answer = control_plane().try_post(&format!("{CRDS}?dryRun=All"), crd);
        tally.compare("given", crd, None, answer);
    }
    tally.judge(&format!("{} CRDs of {}", crds.len(), Path::new(&folder).display()));
}

fn read(folder: &Path, crds: &mut Vec<Value>) {
    for entry in std::fs::read_dir(folder).expect("the folder of GANTRY_CRDS").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, crds);
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for document in serde_yaml::Deserializer::from_str(&text) {
            let Ok(value) = Value::deserialize(document) else { continue };
            let items = value["items"].as_array().cloned().unwrap_or_else(|| vec![value]);
            crds.extend(items.into_iter().filter(|item| item["kind"] == "CustomResourceDefinition"));
        }
    }
}

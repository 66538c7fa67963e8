//! Compares the validation of CRDs with the real API server, on generated CRDs, valid and invalid.
//!
//! Each CRD is sent as a dry run, as a create or as an update of a live CRD. gantry must refuse what the server
//! refuses, with the same messages at the same paths, and accept what it accepts. Live CRDs that violate current rules
//! are put into etcd directly, as an older server would have stored them.
//!
//! `GANTRY_DIFFERENTIAL=<CRDs>[,<seed>]` sets the length of the run. `GANTRY_CRDS=<folder>` also tests the CRDs of a
//! folder. `GANTRY_CRD_ORACLE=<program>` uses the server's own packages instead of a server
//! (docs/internals/testing.md), for long runs.

use std::path::Path;

use crate::generator::{Random, break_crd, crds};
use crate::judges::{Answer, Oracle, Tally, as_live};
use crate::support::{control_plane, eventually, isolated};
use gantry_testbed::ApiUnreachable;
use serde::Deserialize;
use serde_json::Value;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REGISTRY: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions";

/// Updates of one live CRD.
const UPDATES: usize = 20;

/// Sends a create.
fn created(oracle: &mut Option<Oracle>, crd: &Value) -> Answer {
    match oracle {
        Some(oracle) => oracle.ask(crd, None),
        None => survived(control_plane().try_post(&format!("{CRDS}?dryRun=All"), crd), crd),
    }
}

/// The answer of a server that must still be running afterwards.
fn survived(answer: Result<(u16, Value), ApiUnreachable>, crd: &Value) -> Answer {
    if answer.is_err() {
        eventually(&format!("the server answers after {crd}"), || control_plane().is_ready().then_some(()));
    }
    answer.map_err(|unreachable| unreachable.to_string())
}

#[test]
fn new_crds_are_validated_as_on_the_server() {
    let (mut oracle, group) = (Oracle::named(), isolated().group);
    let (count, seed) = crate::run_length("GANTRY_DIFFERENTIAL", 200);
    let mut tally = Tally::default();
    for at in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let mut crd = crds::crd(&mut random, &group, &format!("New{}", at % 10));
        for _ in 0..random.below(4) {
            break_crd(&mut random, &mut crd);
        }
        let answer = created(&mut oracle, &crd);
        tally.compare("new", &crd, None, answer);
    }
    tally.judge("new CRDs");
    assert!(tally.taken > 0 && tally.refused > 0, "both were tried");
}

#[test]
fn changed_crds_are_validated_as_on_the_server() {
    let (mut oracle, group) = (Oracle::named(), isolated().group);
    let (count, seed) = crate::run_length("GANTRY_DIFFERENTIAL", 200);
    let mut tally = Tally::default();
    for at in 0..count.div_ceil(UPDATES) {
        let mut random = Random::new(seed.wrapping_mul(2_000_003).wrapping_add(at as u64));
        // Some are refused because of the cost of their rules.
        let live = (0..5).find_map(|_| {
            let base = crds::crd(&mut random, &group, &format!("Old{at}"));
            Live::create(&mut random, base, &mut oracle)
        });
        let Some(mut live) = live else { continue };
        for _ in 0..UPDATES {
            let mut new = live.crd.clone();
            for _ in 0..random.below(3) {
                break_crd(&mut random, &mut new);
            }
            new["metadata"]["name"] = live.crd["metadata"]["name"].clone();
            let answer = live.updated(&mut oracle, &mut new);
            tally.compare("changed", &new, Some(&live.crd), answer);
        }
        live.end(&oracle);
    }
    tally.judge("changed CRDs");
    assert!(tally.taken > 0 && tally.refused > 0, "both were tried");
}

/// A CRD on which updates are tried. Half of them are as an older server left them: invalid by current rules.
struct Live {
    crd: Value,
    path: String,
}

impl Live {
    fn create(random: &mut Random, base: Value, oracle: &mut Option<Oracle>) -> Option<Self> {
        let path = format!("{CRDS}/{}", base["metadata"]["name"].as_str().expect("a name"));
        let mut live = match oracle {
            Some(oracle) => {
                oracle.ask(&base, None).ok().filter(|(status, _)| *status == 200)?;
                as_live(&base)
            }
            None => {
                let answer = survived(control_plane().try_post(CRDS, &base), &base);
                answer.ok().filter(|(status, _)| *status == 201)?;
                eventually("the CRD is established", || Some(control_plane().get(&path).1).filter(is_established))
            }
        };
        if random.chance(50) {
            let mut stored = live.clone();
            for _ in 0..1 + random.below(2) {
                break_crd(random, &mut stored);
            }
            stored["metadata"] = live["metadata"].clone();
            live = stored;
            if oracle.is_none() {
                control_plane().store(&path.replacen(CRDS, REGISTRY, 1), &live);
                live = control_plane().get(&path).1;
            }
        }
        Some(Self { crd: live, path })
    }

    /// Sends an update.
    fn updated(&mut self, oracle: &mut Option<Oracle>, new: &mut Value) -> Answer {
        if let Some(oracle) = oracle {
            return oracle.ask(new, Some(&self.crd));
        }
        let path = format!("{}?dryRun=All", self.path);
        eventually("the server's controllers leave the CRD alone", || {
            let answer = survived(control_plane().try_put(&path, new), new);
            if !matches!(answer, Ok((409, _))) {
                return Some(answer);
            }
            self.crd = control_plane().get(&self.path).1;
            new["metadata"]["resourceVersion"] = self.crd["metadata"]["resourceVersion"].clone();
            None
        })
    }

    fn end(&self, oracle: &Option<Oracle>) {
        if oracle.is_none() {
            assert_eq!(control_plane().delete(&self.path).0, 200);
        }
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Tests the CRDs of a folder, in a development run.
#[test]
fn given_crds_are_validated_as_on_the_server() {
    let Some(folder) = std::env::var_os("GANTRY_CRDS") else { return };
    let (mut tally, mut oracle) = (Tally::default(), Oracle::named());
    let mut crds = Vec::new();
    read(folder.as_ref(), &mut crds);
    for crd in &mut crds {
        if let Some(metadata) = crd["metadata"].as_object_mut() {
            metadata.retain(|key, _| matches!(key.as_str(), "name" | "annotations" | "labels"));
        }
        if let Some(crd) = crd.as_object_mut() {
            crd.shift_remove("status");
        }
        let answer = created(&mut oracle, crd);
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

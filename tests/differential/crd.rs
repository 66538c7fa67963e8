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
use crate::servers::{ComparedRelease, compared_releases};
use crate::support::{eventually, isolated};
use gantry_testbed::ApiUnreachable;
use serde::Deserialize;
use serde_json::Value;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REGISTRY: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions";

/// Updates of one live CRD.
const UPDATES: usize = 20;

/// What knows the answers to CRDs: the program, if one is named, or else the server.
struct Judge {
    compared: ComparedRelease,
    oracle: Option<Oracle>,
}

impl Judge {
    fn of(compared: ComparedRelease) -> Self {
        Self { compared, oracle: Oracle::named() }
    }

    /// Sends a create.
    fn create(&mut self, crd: &Value) -> Answer {
        match &mut self.oracle {
            Some(oracle) => oracle.ask(crd, None),
            None => self.survived(self.compared.server().try_post(&format!("{CRDS}?dryRun=All"), crd), crd),
        }
    }

    /// The answer of a server that must still be running afterwards.
    fn survived(&self, answer: Result<(u16, Value), ApiUnreachable>, crd: &Value) -> Answer {
        if answer.is_err() {
            let server = self.compared.server();
            eventually(&format!("the server answers after {crd}"), || server.is_ready().then_some(()));
        }
        answer.map_err(|unreachable| unreachable.to_string())
    }
}

#[test]
fn new_crds_are_validated_as_on_the_server() {
    compared_releases().into_iter().for_each(new_crds_are_validated);
}

fn new_crds_are_validated(compared: ComparedRelease) {
    let (mut judge, group) = (Judge::of(compared), isolated().group);
    let (count, seed) = crate::run_length("GANTRY_DIFFERENTIAL", 200);
    let mut tally = Tally::default();
    for at in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let mut crd = crds::crd(&mut random, &group, &format!("New{}", at % 10));
        for _ in 0..random.below(4) {
            break_crd(&mut random, &mut crd);
        }
        let answer = judge.create(&crd);
        tally.compare("new", compared.release, (&crd, None), answer);
    }
    tally.judge(&format!("{} new CRDs", compared.release));
    assert!(tally.taken > 0 && tally.refused > 0, "both were tried");
}

#[test]
fn changed_crds_are_validated_as_on_the_server() {
    compared_releases().into_iter().for_each(changed_crds_are_validated);
}

fn changed_crds_are_validated(compared: ComparedRelease) {
    let (mut judge, group) = (Judge::of(compared), isolated().group);
    let (count, seed) = crate::run_length("GANTRY_DIFFERENTIAL", 200);
    let mut tally = Tally::default();
    for at in 0..count.div_ceil(UPDATES) {
        let mut random = Random::new(seed.wrapping_mul(2_000_003).wrapping_add(at as u64));
        // Some are refused because of the cost of their rules.
        let live = (0..5).find_map(|_| {
            let base = crds::crd(&mut random, &group, &format!("Old{at}"));
            Live::create(&mut random, base, &mut judge)
        });
        let Some(mut live) = live else { continue };
        for _ in 0..UPDATES {
            let mut new = live.crd.clone();
            for _ in 0..random.below(3) {
                break_crd(&mut random, &mut new);
            }
            new["metadata"]["name"] = live.crd["metadata"]["name"].clone();
            let answer = live.updated(&mut judge, &mut new);
            tally.compare("changed", compared.release, (&new, Some(&live.crd)), answer);
        }
        live.end(&judge);
    }
    tally.judge(&format!("{} changed CRDs", compared.release));
    assert!(tally.taken > 0 && tally.refused > 0, "both were tried");
}

/// A CRD on which updates are tried. Half of them are as an older server left them: invalid by current rules.
struct Live {
    crd: Value,
    path: String,
}

impl Live {
    fn create(random: &mut Random, base: Value, judge: &mut Judge) -> Option<Self> {
        let path = format!("{CRDS}/{}", base["metadata"]["name"].as_str().expect("a name"));
        let mut live = match &mut judge.oracle {
            Some(oracle) => {
                oracle.ask(&base, None).ok().filter(|(status, _)| *status == 200)?;
                as_live(&base)
            }
            None => {
                let answer = judge.survived(judge.compared.server().try_post(CRDS, &base), &base);
                answer.ok().filter(|(status, _)| *status == 201)?;
                eventually("the CRD is established", || {
                    Some(judge.compared.server().get(&path).1).filter(is_established)
                })
            }
        };
        if random.chance(50) {
            let mut stored = live.clone();
            for _ in 0..1 + random.below(2) {
                break_crd(random, &mut stored);
            }
            stored["metadata"] = live["metadata"].clone();
            live = stored;
            if judge.oracle.is_none() {
                judge.compared.server().store(&path.replacen(CRDS, REGISTRY, 1), &live);
                live = judge.compared.server().get(&path).1;
            }
        }
        Some(Self { crd: live, path })
    }

    /// Sends an update.
    fn updated(&mut self, judge: &mut Judge, new: &mut Value) -> Answer {
        if let Some(oracle) = &mut judge.oracle {
            return oracle.ask(new, Some(&self.crd));
        }
        let (path, server) = (format!("{}?dryRun=All", self.path), judge.compared.server());
        eventually("the server's controllers leave the CRD alone", || {
            let answer = judge.survived(server.try_put(&path, new), new);
            if !matches!(answer, Ok((409, _))) {
                return Some(answer);
            }
            self.crd = server.get(&self.path).1;
            new["metadata"]["resourceVersion"] = self.crd["metadata"]["resourceVersion"].clone();
            None
        })
    }

    fn end(&self, judge: &Judge) {
        if judge.oracle.is_none() {
            assert_eq!(judge.compared.server().delete(&self.path).0, 200);
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
    compared_releases().into_iter().for_each(|compared| given_crds_are_validated(folder.as_ref(), compared));
}

fn given_crds_are_validated(folder: &Path, compared: ComparedRelease) {
    let (mut tally, mut judge) = (Tally::default(), Judge::of(compared));
    let mut crds = Vec::new();
    read(folder, &mut crds);
    for crd in &mut crds {
        if let Some(metadata) = crd["metadata"].as_object_mut() {
            metadata.retain(|key, _| matches!(key.as_str(), "name" | "annotations" | "labels"));
        }
        if let Some(crd) = crd.as_object_mut() {
            crd.shift_remove("status");
        }
        let answer = judge.create(crd);
        tally.compare("given", compared.release, (crd, None), answer);
    }
    tally.judge(&format!("{}: {} CRDs of {}", compared.release, crds.len(), folder.display()));
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

//! Rules made of functions that the prover does not model: what follows by logic alone must hold for the server too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Crd, FIELDS, Pair, alone};
use crate::generator::Random;
use crate::support::{control_plane, isolated};
use gantry_proof::{self as proof, Limits, SchemaRelation, VersionSchema};

/// Parts of the rules. Some are errors for some of the values.
const ATOMS: [&str; 9] = [
    "isIP(self)",
    "ip(self).family() == 4",
    "ip(self).family() != 4",
    "isQuantity(self)",
    "quantity(self).isGreaterThan(quantity('3'))",
    "self.trim() == 'a'",
    "'a' != self.trim()",
    "dyn(quantity('1')) != dyn(self)",
    "dyn(quantity('1')) == dyn(self)",
];
const VALUES: [&str; 8] = ["", "a", " a", "1.2.3.4", "::1", "2", "5Gi", "x"];

fn formula(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.chance(25) {
        return (*random.pick(&ATOMS)).to_owned();
    }
    let mut part = || formula(random, depth - 1);
    let (a, b, c) = (part(), part(), part());
    match random.below(7) {
        0 | 1 => format!("({a} && {b})"),
        2 | 3 => format!("({a} || {b})"),
        4 => format!("({a} ? {b} : {c})"),
        5 => format!("!({a} && {b})"),
        _ => format!("!({a})"),
    }
}

/// A rule that may or may not follow from `rule`.
fn changed(random: &mut Random, rule: &str) -> String {
    let other = formula(random, 1);
    match random.below(6) {
        0 => format!("{rule} || {other}"),
        1 => format!("{other} || ({rule})"),
        2 => format!("!(!({rule}) && {other})"),
        3 => format!("{other} ? ({rule}) : ({rule})"),
        4 => format!("({rule}) && ({other} || !({other}))"),
        _ => formula(random, 2),
    }
}

fn ruled(rule: &str) -> Value {
    json!({"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": rule}]})
}

/// The fields that the server refuses if each has this value.
fn refused(crd: &Crd, pairs: &BTreeMap<String, Pair>, value: &str) -> BTreeSet<String> {
    let fields = pairs.keys().map(|field| (field, json!({"v": value}))).collect();
    let (status, answer) = crd.api.post(&format!("{}?dryRun=All", crd.resource()), &crd.object(&fields));
    assert!(matches!(status, 201 | 422), "{status} {answer}");
    let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    let named = |cause: &Value| cause["field"].as_str().and_then(|path| path.split('.').next()).map(str::to_owned);
    let refused: BTreeSet<String> = causes.iter().filter_map(named).collect();
    assert_eq!(status == 201, refused.is_empty(), "{answer}");
    refused
}

#[test]
fn conclusions_by_logic_hold_on_the_server() {
    let (count, seed) = crate::run_length("GANTRY_PROOF", 160);
    let group = isolated().group;
    let api = control_plane().api();
    let mut random = Random::new(seed);
    let mut proven = 0;
    for at in 0..count.div_ceil(FIELDS) {
        let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
        for field in 0..FIELDS {
            let rule = formula(&mut random, 2);
            let desired = ruled(&changed(&mut random, &rule));
            pairs.insert(format!("f{field}"), Pair { live: ruled(&rule), desired });
        }
        let live = Crd::new(api, &group, format!("ruled{at}"));
        let desired = Crd::new(api, &group, format!("reruled{at}"));
        live.create(&mut pairs, |pair| &pair.live);
        desired.create(&mut pairs, |pair| &pair.desired);
        live.wait();
        desired.wait();
        let verdict = |field: &String, pair: &Pair| {
            let (there, here) = (alone(field, &pair.live), alone(field, &pair.desired));
            let version = |schema| VersionSchema {
                schema,
                status_subresource: false,
                api_version: "a/v1",
                kind: "A",
                release: Default::default(),
            };
            proof::prove(&version(&there), &version(&here), Limits::default()).verdict
        };
        let verdicts: BTreeMap<&String, SchemaRelation> =
            pairs.iter().map(|(field, pair)| (field, verdict(field, pair))).collect();
        let is_safe = |field: &String| matches!(verdicts[field], SchemaRelation::Equal | SchemaRelation::Widening);
        proven += pairs.keys().filter(|field| is_safe(field)).count();
        for value in VALUES {
            let (before, after) = (refused(&live, &pairs, value), refused(&desired, &pairs, value));
            for (field, Pair { live, desired }) in &pairs {
                let (was, is) = (before.contains(field), after.contains(field));
                let verdict = verdicts[field];
                assert!(!is_safe(field) || was || !is, "{verdict:?}, but {value:?} is refused:\n  {live}\n  {desired}");
                assert!(verdict != SchemaRelation::Equal || was == is, "{value:?} is accepted:\n  {live}\n  {desired}");
            }
        }
        live.delete();
        desired.delete();
    }
    println!("{proven} of {count} pairs proven");
    assert!(proven > count / 5, "only {proven} of {count} pairs are proven");
}

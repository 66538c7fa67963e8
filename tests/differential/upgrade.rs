//! Compares the verdicts of `CRDUpgradeSafety` with the effect on objects, on generated CRDs and edits of all kinds.
//!
//! A verdict has two parts, the rules that detect a change and the proof that weighs it; a gap in either lets a break
//! pass silently. So three things must hold for each pair. A change that is not proven harmless has a blocking finding.
//! An upgrade without a blocking finding accepts every object that live accepted, keeps all of it, and allows it to be
//! updated, according to the validator, which behaves like the server. And a change that is proven harmless is not
//! blocked.
//!
//! `GANTRY_UPGRADES=<pairs>[,<seed>]` sets the length of the run.

use std::collections::BTreeMap;

use crate::generator::{self, Random};
use crate::judges::as_live;
use crate::support::CrdBuilder;
use gantry_core::finding::Severity;
use gantry_k8s_cel::KubernetesRelease;
use gantry_preflight::Violation;
use gantry_preflight::crd_upgrade_safety::{CrdUpgradeOptions, CrdUpgradeSafety, Preset};
use gantry_proof::{self as proof, Limits, NodeProof, SchemaRelation, VersionSchema};
use gantry_schema::crd::validate;
use gantry_schema::{ObjectValidationResult, Schema};
use serde_json::{Value, json};

/// The number of objects tried for each pair that passes.
const TRIES: usize = 40;

#[derive(Default)]
struct Tally {
    pairs: usize,
    rejected: usize,
    verdicts: BTreeMap<String, usize>,
    undecided: BTreeMap<String, (usize, String)>,
    tried: usize,
    wrong: BTreeMap<&'static str, Vec<String>>,
}

impl Tally {
    fn wrong(&mut self, what: &'static str, details: String) {
        self.wrong.entry(what).or_default().push(details);
    }
}

#[test]
fn breaking_upgrades_are_blocked_and_accepted_ones_break_nothing() {
    let (pairs, seed) = crate::run_length("GANTRY_UPGRADES", 1200);
    let mut tally = Tally::default();
    for at in 0..pairs {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(at as u64);
        let mut random = if at % 5 == 4 { Random::new(seed) } else { Random::everyday(seed) };
        pair(&mut random, &mut tally);
    }
    println!(
        "{} pairs ({} more that the server would not take): {:?}; {} objects tried",
        tally.pairs, tally.rejected, tally.verdicts, tally.tried
    );
    let mut reasons: Vec<_> = tally.undecided.iter().collect();
    reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (reason, (count, example)) in reasons.iter().take(25) {
        println!("undecided {count}: {reason}\n    {example}");
    }
    for (what, all) in &tally.wrong {
        println!("{} {what}", all.len());
    }
    // The shortest examples are the easiest to read.
    tally.wrong.values_mut().for_each(|all| all.sort_by_key(String::len));
    let shown: Vec<String> = tally
        .wrong
        .iter()
        .map(|(what, all)| {
            format!(
                "{} {what}, such as\n{}",
                all.len(),
                all.iter().take(4).map(String::as_str).collect::<Vec<_>>().join("\n")
            )
        })
        .collect();
    assert!(tally.tried > 0, "no object was tried");
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

/// A CRD with one version.
fn crd(schema: &Value, status: bool) -> Value {
    let crd = CrdBuilder::samples("example.com").cluster_scoped().version("v1", schema.clone());
    if status { crd.status_subresource() } else { crd }.build()
}

fn root(random: &mut Random) -> Value {
    let field = |random: &mut Random| match random.below(10) {
        0 => generator::ruled_schema(random),
        _ => {
            let mut schema = generator::schema(random);
            if random.chance(8)
                && let Some(rule) = generator::rule(random, &schema)
            {
                schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
            }
            schema
        }
    };
    let spec = match random.below(3) {
        0 => field(random),
        1 => json!({"type": "object", "properties": {"f": field(random)}}),
        _ => json!({"type": "object", "properties": {"f": field(random), "g": field(random)}}),
    };
    let mut root = json!({"type": "object", "properties": {"spec": spec}});
    if random.chance(20) {
        root["properties"]["status"] = field(random);
    }
    if random.chance(10) {
        root["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if random.chance(10) {
        let name = random
            .pick(&[json!({"maxLength": 5}), json!({"pattern": "^[a-z]+$"}), json!({"enum": ["x", "y"]})])
            .clone();
        let mut schema = json!({"type": "string"});
        schema.as_object_mut().expect("an object").extend(name.as_object().expect("an object").clone());
        root["properties"]["metadata"] = json!({"type": "object", "properties": {"name": schema}});
    }
    root
}

fn pair(random: &mut Random, tally: &mut Tally) {
    let live_schema = root(random);
    let status = random.chance(30);
    let (live, desired) = (crd(&live_schema, status), generator::edited(random, &live_schema));
    let (desired_schema, desired) = (desired.clone(), crd(&desired, if random.chance(4) { !status } else { status }));
    let is_taken = |new: &Value, old: Option<&Value>| {
        validate(new, old, KubernetesRelease::default())
            .is_ok_and(|outcome| outcome.refusals.is_empty() && outcome.undecided.is_empty())
    };
    let stored = as_live(&live);
    let mut updated = desired.clone();
    updated["metadata"] = stored["metadata"].clone();
    // The effect on a status that is written with the object is a separate warning.
    let is_moved = live["spec"]["versions"][0]["subresources"] != desired["spec"]["versions"][0]["subresources"];
    if !is_taken(&live, None) || !is_taken(&desired, None) || !is_taken(&updated, Some(&stored)) {
        tally.rejected += 1;
        return;
    }
    tally.pairs += 1;
    let status_of = |crd: &Value| crd["spec"]["versions"][0].get("subresources").is_some();
    let version = |schema, crd: &Value| VersionSchema {
        schema,
        status_subresource: status_of(crd),
        api_version: "example.com/v1",
        kind: "Sample",
        release: Default::default(),
    };
    let found = proof::prove(&version(&live_schema, &live), &version(&desired_schema, &desired), Limits::shared(1, 1));
    *tally.verdicts.entry(format!("{:?}", found.verdict)).or_default() += 1;
    if found.verdict == SchemaRelation::Undecided {
        let reason = found.reason.rsplit(": ").next().unwrap_or_default().to_owned();
        let example = format!("{}\n    {live_schema}\n    {desired_schema}", found.reason);
        tally.undecided.entry(reason).or_insert((0, example)).0 += 1;
    }
    let shown = |said: &str| format!("  {said}\n    live    {live_schema}\n    desired {desired_schema}");
    // A new field with a default is a new field and needs no finding.
    let is_new_default = |node: &&NodeProof| {
        node.breaks.iter().all(|breaks| *breaks == proof::AffectedParty::Behaviour)
            && node.verdict != SchemaRelation::Undecided
            && !describes(&live_schema, &node.path)
    };
    let breaking: Vec<&NodeProof> = found
        .nodes
        .iter()
        .filter(|node| {
            !matches!(node.verdict, SchemaRelation::Equal | SchemaRelation::Widening) && !is_new_default(node)
        })
        .collect();
    let mut is_blocked = false;
    for preset in [Preset::Documented, Preset::Semantic] {
        let check = CrdUpgradeSafety::new(CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() });
        let violations = check.judge(&stored.to_string(), &desired.to_string()).expect("CRDs that the server takes");
        let loudest = violations.iter().map(|violation| violation.severity).min();
        let lines = || {
            let of = |violation: &Violation| {
                format!(
                    "{:?} {} {} {:?}",
                    violation.severity,
                    violation.rule,
                    violation.body.path.as_deref().unwrap_or(""),
                    violation.body.verdict
                )
            };
            violations.iter().map(of).collect::<Vec<_>>().join("; ")
        };
        let of_subresource =
            violations.iter().any(|violation| violation.body.path.is_none() && violation.severity != Severity::Info);
        match found.verdict {
            SchemaRelation::Equal | SchemaRelation::Widening => {
                // The prover leaves out what a client sends and live drops before it validates.
                let sides = compiled(&live_schema, &live).zip(compiled(&desired_schema, &desired));
                let is_shown =
                    |violation: &Violation| sides.as_ref().is_some_and(|sides| is_confirmed(violation, sides));
                let mut errors = violations.iter().filter(|violation| violation.severity == Severity::Error);
                if preset == Preset::Semantic && errors.any(|error| !is_shown(error)) && !of_subresource {
                    tally.wrong("harmless and blocked", shown(&format!("{:?}: {}", found.verdict, lines())));
                }
            }
            _ if breaking.is_empty() || is_moved => {}
            _ => {
                let least = if breaking.iter().all(|node| is_mild(node)) { Severity::Warning } else { Severity::Error };
                let is_said = |node: &&&NodeProof| violations.iter().any(|violation| is_decided(violation, node));
                if loudest.is_none_or(|loudest| loudest > least) && !breaking.iter().all(|node| is_said(&node)) {
                    let nodes: Vec<String> =
                        found.nodes.iter().map(|node| format!("{} {:?}", node.path, node.verdict)).collect();
                    let said = format!("{preset:?} {:?} {nodes:?}: {}", found.verdict, lines());
                    tally.wrong("broken in silence", shown(&said));
                }
            }
        }
        for node in &breaking {
            let is_said = |violation: &Violation| {
                violation.severity != Severity::Info
                    && violation.body.path.as_deref().is_some_and(|path| is_related(path, &node.path))
            };
            if !violations.iter().any(|violation| is_said(violation) || is_decided(violation, node)) && !of_subresource
            {
                let said = format!("{preset:?} {} {:?} ({}): {}", node.path, node.verdict, node.reason, lines());
                tally.wrong("not said of a node", shown(&said));
            }
        }
        is_blocked |= preset == Preset::Semantic && loudest == Some(Severity::Error);
    }
    if !is_blocked {
        objects(random, (&live_schema, &live), (&desired_schema, &desired), tally);
    }
}

/// Whether only different values are defaulted. A changed default is a warning unless more is known about it.
fn is_mild(node: &NodeProof) -> bool {
    let is_default = node.verdict == SchemaRelation::Undecided && node.reason.starts_with("default: ");
    node.breaks == [proof::AffectedParty::Behaviour] || is_default
}

/// Whether a keyword of an undecided node determines its own verdict.
fn is_decided(violation: &Violation, node: &NodeProof) -> bool {
    node.verdict == SchemaRelation::Undecided
        && violation.body.path.as_deref() == Some(&node.path)
        && violation.body.verdict == Some(gantry_core::finding::Verdict::Undecided)
}

/// Whether one of the nodes is an ancestor of the other, or both are the same.
fn is_related(a: &str, b: &str) -> bool {
    let is_above = |above: &str, below: &str| {
        below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    is_above(a, b) || is_above(b, a)
}

fn compiled(schema: &Value, crd: &Value) -> Option<Schema> {
    let status = crd["spec"]["versions"][0].get("subresources").is_some();
    Some(Schema::compile(schema).ok()?.with_status_subresource(status))
}

/// Whether the example of a violation is what it says: a write that only desired refuses.
fn is_confirmed(violation: &Violation, (live, desired): &(Schema, Schema)) -> bool {
    let Some(witness) = violation.body.witnesses.first() else { return false };
    let accepts = |schema: &Schema| {
        let (mut object, mut old) = (witness.object.clone(), witness.old_object.clone());
        old.iter_mut().for_each(|old| drop(schema.prepare_stored(old)));
        schema.process(&mut object, old.as_ref()).outcome.is_accepted()
    };
    accepts(live) && !accepts(desired)
}

/// Tries objects that live accepts on a CRD that passes.
fn objects(
    random: &mut Random,
    (live_schema, live): (&Value, &Value),
    (desired_schema, desired): (&Value, &Value),
    tally: &mut Tally,
) {
    let (Some(before), Some(after)) = (compiled(live_schema, live), compiled(desired_schema, desired)) else { return };
    for attempt in 0..TRIES {
        let mut object = generator::ruled_value(random, live_schema);
        if attempt % 3 == 0 {
            object = generator::broken(random, &object);
        }
        let Some(fields) = object.as_object_mut() else { continue };
        fields.insert("apiVersion".to_owned(), json!("example.com/v1"));
        fields.insert("kind".to_owned(), json!("Sample"));
        fields.insert("metadata".to_owned(), json!({"name": "x", "uid": "1"}));
        let written = object.clone();
        if !before.process(&mut object, None).outcome.is_accepted() || !is_meant(live_schema, &object) {
            continue;
        }
        // A status that a create drops is defaulted when the object is read, whatever its default is.
        let mut again = object.clone();
        let is_readable = before.prepare_stored(&mut object).is_ok() && before.prepare_stored(&mut again).is_ok();
        if !is_readable
            || before.prepare_stored(&mut object).is_err()
            || again != object
            || !before.validate(&object, None).is_accepted()
        {
            continue;
        }
        tally.tried += 1;
        let shown = |said: String| {
            format!(
                "  {said}\n    object  {object}\n    written {written}\n    live    {live_schema}\n    desired {desired_schema}"
            )
        };
        let mut read = object.clone();
        match after.prepare_stored(&mut read) {
            Err(error) => {
                return tally.wrong("cannot be read", shown(error.to_string()));
            }
            Ok(_) if !keeps(&read, &object) => {
                return tally.wrong("loses data when it is read", shown(read.to_string()));
            }
            Ok(_) => {}
        }
        let mut touched = read.clone();
        touched["metadata"]["labels"] = json!({"a": "b"});
        // Transition rules can refuse any update, also with the live schema.
        let mut today = object.clone();
        today["metadata"]["labels"] = json!({"a": "b"});
        let is_updated_today = before.process(&mut today, Some(&object)).outcome.is_accepted();
        let updated = match is_updated_today {
            true => after.process(&mut touched, Some(&read)).outcome,
            false => ObjectValidationResult::default(),
        };
        let created = after.validate(&read, None);
        for (what, outcome) in [("refused when it is updated", updated), ("refused when it is created", created)] {
            if let Some(error) = outcome.errors.first() {
                return tally.wrong(what, shown(error.to_string()));
            }
        }
    }
}

/// Whether everything that was written is still there. Additional values can be defaulted.
fn keeps(stored: &Value, written: &Value) -> bool {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            written.iter().all(|(key, value)| stored.get(key).is_some_and(|kept| keeps(kept, value)))
        }
        (Value::Array(stored), Value::Array(written)) => {
            stored.len() == written.len() && stored.iter().zip(written).all(|(a, b)| keeps(a, b))
        }
        (stored, written) => stored == written,
    }
}

/// Whether live describes the node at a path such as `^.spec.a.items`.
fn describes(schema: &Value, path: &str) -> bool {
    let mut places = vec![(schema, path.strip_prefix('^').unwrap_or(path))];
    while let Some((schema, rest)) = places.pop() {
        let Some(rest) = rest.strip_prefix('.') else { return true };
        let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, below)| (name.as_str(), below));
        let others = ["items", "additionalProperties"].into_iter().filter_map(|name| Some((name, schema.get(name)?)));
        for (name, below) in fields.chain(others) {
            match rest.strip_prefix(name) {
                Some(rest) if rest.is_empty() || rest.starts_with('.') => places.push((below, rest)),
                _ => {}
            }
        }
    }
    false
}

/// Excludes what proofs leave out: lists in place of strings, and integers written as `2.0`.
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
        Value::Number(number) => !number.is_f64() || number.as_f64().is_some_and(|f| f.fract() != 0.0),
        _ => true,
    }
}

//! Each change is judged by itself, whatever changes beside it.

use serde_json::{Map, Value, json};

use super::{CrdUpgradeOptions, CrdUpgradeSafety, Preset};
use crate::Violation;
use gantry_core::crd::builder::{CrdBuilder, fields};
use gantry_core::finding::{Breaks, Severity, Verdict};

/// A change of a node: the keywords before and after it, which are added to those of its type.
type KeywordEdit = (&'static str, Value, Value);

/// Changes that break nothing, and changes that break something, of nodes of one type.
fn changes() -> Vec<(Value, Vec<KeywordEdit>, Vec<KeywordEdit>)> {
    let rule = |rule: &str| json!({"x-kubernetes-validations": [{"rule": rule}]});
    let none = || json!({});
    let text = (
        json!({"type": "string"}),
        vec![
            ("pattern removed", json!({"pattern": "^[a-z]+$"}), none()),
            ("maxLength raised", json!({"maxLength": 20}), json!({"maxLength": 30})),
            ("minLength removed", json!({"minLength": 1}), none()),
            ("rule removed", rule("self != 'x'"), none()),
            ("nullable added", none(), json!({"nullable": true})),
            ("format removed", json!({"format": "hostname"}), none()),
            ("allOf removed", json!({"allOf": [{"maxLength": 12}]}), none()),
        ],
        vec![
            ("enum added", none(), json!({"enum": ["ab", "cd"]})),
            ("pattern added", none(), json!({"pattern": "^a"})),
            ("maxLength added", none(), json!({"maxLength": 3})),
            ("minLength added", none(), json!({"minLength": 3})),
            ("rule added", none(), rule("self.startsWith('a')")),
            ("default changed", json!({"default": "ab"}), json!({"default": "cd"})),
            ("not added", none(), json!({"not": {"enum": ["ab"]}})),
        ],
    );
    let number = (
        json!({"type": "integer"}),
        vec![
            ("multipleOf removed", json!({"multipleOf": 2}), none()),
            ("maximum raised", json!({"maximum": 20}), json!({"maximum": 30})),
            ("minimum removed", json!({"minimum": 0}), none()),
            ("enum widened", json!({"enum": [2, 4]}), json!({"enum": [2, 4, 8]})),
        ],
        vec![
            ("maximum added", none(), json!({"maximum": 3})),
            ("minimum added", none(), json!({"minimum": 3})),
            ("multipleOf added", none(), json!({"multipleOf": 4})),
            ("rule added", none(), rule("self != 2")),
        ],
    );
    let list = (
        json!({"type": "array", "items": {"type": "string"}}),
        vec![
            ("maxItems raised", json!({"maxItems": 8}), json!({"maxItems": 9})),
            ("minItems removed", json!({"minItems": 1}), none()),
            ("list type atomic", none(), json!({"x-kubernetes-list-type": "atomic"})),
            ("set no more", json!({"x-kubernetes-list-type": "set"}), json!({"x-kubernetes-list-type": "atomic"})),
        ],
        vec![
            ("maxItems added", none(), json!({"maxItems": 3})),
            ("minItems added", none(), json!({"minItems": 2})),
            ("set", none(), json!({"x-kubernetes-list-type": "set"})),
            ("rule added", none(), rule("self.size() != 2")),
        ],
    );
    let fields = json!({"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}});
    let either = json!([{"required": ["a"]}, {"required": ["b"]}]);
    let object = (
        json!({"type": "object", "properties": fields}),
        vec![
            ("oneOf removed", json!({"oneOf": either}), none()),
            ("anyOf removed", json!({"anyOf": either}), none()),
            ("maxProperties removed", json!({"maxProperties": 2}), none()),
            ("minProperties removed", json!({"minProperties": 1}), none()),
            ("unknown fields kept", none(), json!({"x-kubernetes-preserve-unknown-fields": true})),
            ("map type", none(), json!({"x-kubernetes-map-type": "atomic"})),
            ("nullable added", none(), json!({"nullable": true})),
        ],
        vec![
            ("required added", none(), json!({"required": ["a"]})),
            ("minProperties added", none(), json!({"minProperties": 2})),
            ("maxProperties added", none(), json!({"maxProperties": 1})),
            ("rule added", none(), rule("!has(self.a) || self.a != 'x'")),
        ],
    );
    vec![text, number, list, object]
}

fn node(base: &Value, of: &[&Value]) -> Value {
    let mut keywords: Map<String, Value> = base.as_object().expect("an object").clone();
    of.iter().for_each(|more| keywords.extend(more.as_object().expect("an object").clone()));
    Value::Object(keywords)
}

type ViolationKey = (String, String, Severity, Option<Verdict>, Vec<Breaks>);

fn violations(preset: Preset, live: &Value, desired: &Value) -> Vec<Violation> {
    let crd = |spec: &Value| {
        let crd = CrdBuilder::new("b.c", "A").cluster_scoped();
        crd.version_of_spec("v1", fields(spec.clone())).build().to_string()
    };
    let check = CrdUpgradeSafety::new(CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() });
    check.judge(&crd(live), &crd(desired)).expect("both can be read")
}

fn found(preset: Preset, live: &Value, desired: &Value) -> Vec<ViolationKey> {
    let shown = |found: Violation| {
        let path = found.body.path.unwrap_or_default();
        (found.rule.into_owned(), path, found.severity, found.body.verdict, found.body.breaks)
    };
    violations(preset, live, desired).into_iter().map(shown).collect()
}

#[test]
fn a_change_has_the_same_verdict_alone_and_beside_one_that_breaks() {
    let mut wrong = Vec::new();
    for preset in [Preset::Documented, Preset::Semantic] {
        for (base, harmless, breaking) in changes() {
            for (name, before, after) in &harmless {
                for (other, other_before, other_after) in &breaking {
                    if before
                        .as_object()
                        .into_iter()
                        .chain(after.as_object())
                        .flatten()
                        .any(|(keyword, _)| other_before.get(keyword).is_some() || other_after.get(keyword).is_some())
                    {
                        continue;
                    }
                    let same_node = |of: &[&Value]| json!({"x": node(&base, of)});
                    let two_fields = |of: [&Value; 2]| json!({"x": node(&base, &of[..1]), "y": node(&base, &of[1..])});
                    for (live, desired, [mine, theirs], fields) in [
                        (
                            same_node(&[before, other_before]),
                            same_node(&[after, other_after]),
                            [same_node(&[after, other_before]), same_node(&[before, other_after])],
                            "one field",
                        ),
                        (
                            two_fields([before, other_before]),
                            two_fields([after, other_after]),
                            [two_fields([after, other_before]), two_fields([before, other_after])],
                            "two fields",
                        ),
                    ] {
                        let together = found(preset, &live, &desired);
                        let alone = found(preset, &live, &mine);
                        let breaking = found(preset, &live, &theirs);
                        let missing: Vec<&ViolationKey> =
                            alone.iter().filter(|violation| !together.contains(violation)).collect();
                        let milder = breaking.iter().filter(|violation| {
                            !together
                                .iter()
                                .any(|known| (&known.0, &known.1, known.2) == (&violation.0, &violation.1, violation.2))
                        });
                        if !missing.is_empty() || milder.count() > 0 || together.len() != alone.len() + breaking.len() {
                            wrong.push(format!(
                                "{preset:?} {name}, {other}, {fields}: {alone:?} and {breaking:?} become {together:?}"
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

#[test]
fn the_witness_of_a_default_is_about_that_default() {
    let text = |default: &str| json!({"type": "string", "default": default});
    let aa = json!({"type": "string"});
    for (live, desired) in [
        (json!({"bb": text("q")}), json!({"aa": {"type": "boolean", "default": false}, "bb": text("qq")})),
        (json!({"aa": aa, "bb": text("q")}), json!({"bb": text("qq")})),
        (json!({"aa": text("r"), "bb": text("q")}), json!({"aa": text("rr"), "bb": text("qq")})),
    ] {
        let around = |fields: &Value, required: Value| json!({"x": {"type": "object", "properties": fields, "required": required}});
        for required in [json!([]), json!(["aa"])] {
            let required = if live.get("aa").is_some() { required } else { json!([]) };
            let found = violations(Preset::Semantic, &around(&live, required), &around(&desired, json!([])));
            let of_default: Vec<&Violation> =
                found.iter().filter(|found| found.body.path.as_deref() == Some("^.spec.x.bb")).collect();
            assert_eq!(of_default.len(), 1, "{found:?}");
            let default = of_default[0];
            assert_eq!(
                (default.severity, default.body.verdict),
                (Severity::Warning, Some(Verdict::Narrowing)),
                "{default:?}"
            );
            assert_eq!(default.body.breaks, [Breaks::Behaviour]);
            let messages: Vec<&str> = default.body.witnesses.iter().map(|witness| witness.message.as_str()).collect();
            assert_eq!(messages, ["spec.x.bb is filled in differently"], "{live} {desired}");
        }
    }
}

#[test]
fn breakage_that_takes_two_changes_is_a_violation_of_its_own() {
    // Neither more fields in an object nor a default breaks it, but the default makes a field too many.
    let object =
        |most: u32, fields: Value| json!({"x": {"type": "object", "maxProperties": most, "properties": fields}});
    let (a, filled) = (json!({"type": "string"}), json!({"type": "string", "default": "b"}));
    let live = object(1, json!({"a": a}));
    let desired = object(2, json!({"a": a, "b": filled, "c": filled}));
    let found = found(Preset::Semantic, &live, &desired);
    let shown: Vec<(&str, &str, Severity)> =
        found.iter().map(|(rule, path, severity, ..)| (rule.as_str(), path.as_str(), *severity)).collect();
    assert!(shown.contains(&("IndirectChange", "^.spec.x", Severity::Error)), "{shown:?}");
    assert!(
        !shown.iter().any(|(rule, _, severity)| *rule == "NoMaxPropertiesTightened" && *severity == Severity::Error),
        "{shown:?}"
    );
}

//! The tools' verdicts and texts for small pairs; `tests/offline/preset_verdicts.rs` compares them for real upgrades.

use serde_json::{Value, json};

use super::options::ConversionPolicy;
use super::*;
use gantry_core::crd::builder::CrdBuilder;

/// A CRD with these versions: name, served, and the schema of spec.
fn crd(versions: &[(&str, bool, Value)]) -> Value {
    let add = |crd: CrdBuilder, (name, served, spec): &(&str, bool, Value)| {
        crd.version_of_spec(name, spec.clone()).served(*served)
    };
    versions.iter().fold(CrdBuilder::samples("test.example.com"), add).build()
}

fn lines(live: &Value, desired: &Value, tool: &PresetTool) -> Vec<String> {
    let flagged = judge(&CrdPair::parse(&live.to_string(), &desired.to_string()).unwrap(), tool).unwrap();
    flagged.into_iter().filter(|f| !f.off).map(|f| f.documented).collect()
}

/// The lines of crdify for the node `^.spec.x`, without their common prefix.
fn of_x(live: &Value, desired: &Value, options: &CrdifyOptions) -> Vec<String> {
    let around = |x: &Value| crd(&[("v1", true, json!({"type": "object", "properties": {"x": x}}))]);
    let lines = lines(&around(live), &around(desired), &PresetTool::Crdify(options.clone()));
    lines.into_iter().map(|line| line.strip_prefix("v1: ^.spec.x: ").unwrap_or(&line).to_owned()).collect()
}

#[test]
fn each_keyword_has_the_message_of_crdify() {
    for (live, desired, expected) in [
        (json!({"default": 1}), json!({}), r#"default: default value removed : "1""#),
        (json!({}), json!({"default": "a"}), r#"default: default added when there was none previously : "\"a\"""#),
        (json!({"description": "a"}), json!({"description": ""}), r#"description: description changed : "a" -> """#),
        (
            json!({}),
            json!({"enum": ["b", "a"]}),
            r#"enum: enum constraint added when there was none previously : ["a" "b"]"#,
        ),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "c"]}), r#"enum: allowed enum values removed : ["a"]"#),
        (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]}), r#"enum: allowed enum values added : ["b"]"#),
        (json!({}), json!({"maxLength": 3}), "maxLength: maximum constraint added when there was none previously : 3"),
        (json!({"maximum": 2_000_000}), json!({"maximum": 1.5}), "maximum: maximum decreased : 2e+06 -> 1.5"),
        (json!({"minItems": 1}), json!({"minItems": 2}), "minItems: minimum increased : 1 -> 2"),
        (json!({}), json!({"nullable": true}), "nullable: nullable added : false -> true"),
        (json!({"nullable": true}), json!({"nullable": false}), "nullable: nullable removed : true -> false"),
        (json!({"pattern": "a"}), json!({}), r#"pattern: pattern removed : "a" -> """#),
        (json!({"required": ["a"]}), json!({"required": ["c", "b"]}), "required: new required fields: [b c]"),
        (json!({"type": "integer"}), json!({"type": "string"}), r#"type: type changed : "integer" -> "string""#),
        (json!({"format": "int32"}), json!({}), r#"unhandled: unhandled changes found (Format "int32" -> "")"#),
    ] {
        assert_eq!(of_x(&live, &desired, &CrdifyOptions::default()), [expected], "{live} {desired}");
    }
    for (live, desired) in [
        (json!({"enum": ["a"]}), json!({})),
        (json!({"maxLength": 3}), json!({"maxLength": 4})),
        (json!({"minimum": 1}), json!({"minimum": 0})),
        (json!({"maxItems": 1}), json!({})),
        (json!({"required": ["a"]}), json!({})),
    ] {
        let gone = of_x(&live, &desired, &CrdifyOptions::default());
        let expected =
            if live["enum"].is_null() { vec![] } else { vec![r#"enum: allowed enum values removed : ["a"]"#] };
        assert_eq!(gone, expected, "{live} {desired}");
    }
}

/// crdify's own output for the changes in the next test, one a line.
const ONE_OF: &str = include_str!("crdify_one_of.txt");

#[test]
fn alternatives_are_compared_as_crdify_prints_them() {
    let required =
        |names: &[&str]| json!({"oneOf": names.iter().map(|name| json!({"required": [name]})).collect::<Vec<_>>()});
    let everything = json!({"oneOf": [{"required": ["a"]}, {
        "type": "string", "maxLength": 5, "maximum": 1_500_000, "enum": ["a", 1], "default": "d", "nullable": true,
        "items": {"type": "string"}, "additionalProperties": true, "not": {"pattern": "x"},
        "x-kubernetes-validations": [{"rule": "a", "message": "b", "reason": "FieldValueInvalid"}],
    }]});
    let below = |value: &str, more: Value| {
        let mut a = json!({"enum": [value]});
        a.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"oneOf": [{"properties": {"a": a}}]})
    };
    let pairs = [
        (json!({}), required(&["a", "b"])),
        (required(&["a", "b"]), required(&["a"])),
        (required(&["a"]), everything),
        (below("x", json!({})), below("y", json!({"items": {"type": "string"}}))),
    ];
    assert_eq!(ONE_OF.lines().count(), pairs.len());
    for ((live, desired), expected) in pairs.iter().zip(ONE_OF.lines()) {
        let said = of_x(live, desired, &CrdifyOptions::default());
        assert!(said.contains(&format!("oneOf: {expected}")), "{live} {desired}: {said:#?}\nexpected {expected}");
    }
    // A bound is printed as an address, so crdify treats equal alternatives as different if anything else in the node
    // changes.
    let bounded =
        |description: &str| json!({"description": description, "oneOf": [{"properties": {"a": {"maxLength": 1}}}]});
    let said = of_x(&bounded("1"), &bounded("2"), &CrdifyOptions::olm_v1());
    assert!(matches!(&said[..], [only] if only.starts_with("oneOf: allowed oneOf schemas removed: [")), "{said:?}");
    assert!(of_x(&bounded("1"), &bounded("1"), &CrdifyOptions::olm_v1()).is_empty());
    // Titles and descriptions are cleared first.
    let told = |title: &str| json!({"oneOf": [{"required": ["a"], "title": title}]});
    assert!(!of_x(&told("1"), &told("2"), &CrdifyOptions::olm_v1()).iter().any(|line| line.starts_with("oneOf: ")));
}

#[test]
fn values_in_messages_of_presets_are_not_shortened() {
    let long = "x".repeat(500);
    assert_eq!(
        of_x(&json!({"description": long}), &json!({}), &CrdifyOptions::default()),
        [format!("description: description changed : \"{long}\" -> \"\"")]
    );
}

#[test]
fn policies_allow_what_they_name() {
    let options = CrdifyOptions {
        enum_addition: true,
        nullable_addition: true,
        nullable_removal: true,
        one_of_addition: true,
        one_of_removal: true,
        pattern_removal: true,
        ..CrdifyOptions::default()
    };
    for (live, desired) in [
        (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]})),
        (json!({}), json!({"nullable": true})),
        (json!({"nullable": true}), json!({})),
        (json!({"pattern": "a"}), json!({})),
        (
            json!({"type": "string"}),
            json!({"type": "string", "oneOf": [{"type": "string", "title": "t"}, {"pattern": "a"}]}),
        ),
    ] {
        assert!(of_x(&live, &desired, &options).is_empty(), "{live} {desired}");
    }
    // A node below an alternative is a node of its own.
    let alternatives = |patterns: &[&str]| json!({"oneOf": patterns.iter().map(|pattern| json!({"pattern": pattern})).collect::<Vec<_>>()});
    for (options, flagged) in [(&options, false), (&CrdifyOptions::default(), true)] {
        let said = of_x(&alternatives(&["a", "b"]), &alternatives(&["c"]), options);
        assert_eq!(said.iter().any(|line| line.starts_with("oneOf: ")), flagged, "{said:?}");
    }
    assert_eq!(of_x(&json!({"description": "a"}), &json!({}), &CrdifyOptions::olm_v1()), [""; 0]);
    let silent = CrdifyOptions { unhandled: None, ..CrdifyOptions::default() };
    assert_eq!(of_x(&json!({"format": "a"}), &json!({}), &silent), [""; 0]);
}

#[test]
fn a_removed_field_is_compared_as_an_empty_one_with_everything_below_it() {
    let live =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"title": "t"}});
    let around = |x: &Value| crd(&[("v1", true, json!({"properties": x}))]);
    let found = lines(&around(&json!({"x": live})), &around(&json!({})), &PresetTool::Crdify(CrdifyOptions::olm_v1()));
    assert_eq!(
        found,
        [
            "existingFieldRemoval: removed field : v1.^.spec.x",
            "existingFieldRemoval: removed field : v1.^.spec.x.a",
            "existingFieldRemoval: removed field : v1.^.spec.x.additionalProperties",
            r#"v1: ^.spec.x: type: type changed : "object" -> """#,
            "v1: ^.spec.x: unhandled: unhandled changes found (AdditionalProperties <complex value> -> nil)",
            r#"v1: ^.spec.x.a: type: type changed : "string" -> """#,
            r#"v1: ^.spec.x.additionalProperties: unhandled: unhandled changes found (Title "t" -> "")"#,
        ]
    );
}

/// Empty and absent lists and maps are equal to `equality.Semantic.DeepEqual`, and `String()` prints them alike.
#[test]
fn an_empty_list_or_map_is_absent_to_crdify_and_olm() {
    let lists =
        ["allOf", "anyOf", "oneOf", "required", "enum", "x-kubernetes-list-map-keys", "x-kubernetes-validations"];
    let maps = ["properties", "patternProperties", "definitions"];
    let empty = lists.map(|keyword| (keyword, json!([]))).into_iter().chain(maps.map(|keyword| (keyword, json!({}))));
    for (keyword, empty) in empty {
        let with = json!({ keyword: empty });
        for options in [CrdifyOptions::default(), CrdifyOptions::olm_v1()] {
            let same = |live: &Value, desired: &Value| {
                for (live, desired) in [(live, desired), (desired, live)] {
                    assert_eq!(of_x(live, desired, &options), [""; 0], "{live} {desired}");
                }
            };
            same(&json!({}), &with);
            let inside = |outer: &str, schema: &Value| match outer {
                "not" | "additionalProperties" | "items" => json!({ outer: schema }),
                "properties" => json!({"allOf": [{outer: {"a": schema}}]}),
                outer => json!({outer: [schema]}),
            };
            for outer in ["not", "additionalProperties", "items", "properties", "allOf", "oneOf"] {
                same(&inside(outer, &json!({})), &inside(outer, &with));
            }
            // If another keyword differs, the alternatives are compared by their text.
            let mut other = inside("oneOf", &json!({"type": "string"}));
            let mut alike = inside("oneOf", &json!({"type": "string", keyword: empty}));
            (other["maxLength"], alike["maxLength"]) = (1.into(), 2.into());
            same(&other, &json!({"oneOf": other["oneOf"], "maxLength": 1}));
            assert_eq!(of_x(&other, &alike, &options), [""; 0], "{keyword}");
            // What is empty did not restrict anything before.
            let said = of_x(&with, &json!({"enum": ["a"], "required": ["a"]}), &options);
            let added = [
                r#"enum: enum constraint added when there was none previously : ["a"]"#,
                "required: new required fields: [a]",
            ];
            assert_eq!(said, added, "{keyword}");
        }
    }
    // Pointers are not lists: an empty schema is not absent.
    for keyword in ["not", "additionalProperties"] {
        assert!(
            of_x(&json!({}), &json!({ keyword: {} }), &CrdifyOptions::default())[0].starts_with("unhandled: "),
            "{keyword}"
        );
    }
}

#[test]
fn served_versions_are_compared_where_the_upgrade_makes_the_difference() {
    let spec = |kind: &str| json!({"type": "object", "properties": {"x": {"type": kind}}});
    let alike = crd(&[("v1", true, spec("string")), ("v1beta1", true, spec("string"))]);
    let differing = crd(&[("v1", true, spec("string")), ("v1beta1", true, spec("integer"))]);
    let unserved = crd(&[("v1", true, spec("string")), ("v1beta1", false, spec("integer"))]);
    let crdify = PresetTool::Crdify(CrdifyOptions::default());
    let change = r#"v1beta1: ^.spec.x: type: type changed : "string" -> "integer""#.to_owned();
    let pair = r#"v1beta1 -> v1: ^.spec.x: type: type changed : "integer" -> "string""#.to_owned();
    assert_eq!(lines(&alike, &differing, &crdify), [change.clone(), pair.clone()]);
    assert_eq!(lines(&alike, &unserved, &crdify), std::slice::from_ref(&change));
    assert!(lines(&differing, &differing, &crdify).is_empty());
    // A webhook is trusted if the settings say so.
    let mut by_webhook = differing.clone();
    by_webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(lines(&alike, &by_webhook, &crdify), [change.clone(), pair]);
    let ignore = CrdifyOptions { conversion: ConversionPolicy::Ignore, ..CrdifyOptions::default() };
    assert_eq!(lines(&alike, &by_webhook, &PresetTool::Crdify(ignore)), [change]);
}

#[test]
fn stored_versions_and_scope_are_compared_for_the_whole_crd() {
    let spec = json!({"type": "object"});
    let mut live =
        crd(&[("v1", true, spec.clone()), ("v1alpha1", true, spec.clone()), ("v1beta1", true, spec.clone())]);
    live["status"] = json!({"storedVersions": ["v1alpha1", "v1beta1", "v1"]});
    let mut desired = crd(&[("v1", true, spec)]);
    desired["spec"]["scope"] = json!("Cluster");
    let crdify = [
        "scope: scope changed : \"Namespaced\" -> \"Cluster\"",
        "storedVersionRemoval: stored versions removed : [v1alpha1 v1beta1]",
    ];
    assert_eq!(lines(&live, &desired, &PresetTool::Crdify(CrdifyOptions::default())), crdify);
    let kapp = [
        "\"NoScopeChange\" validation failed: scope changed from \"Namespaced\" to \"Cluster\"",
        "\"NoStoredVersionRemoved\" validation failed: stored version \"v1alpha1\" removed",
    ];
    assert_eq!(lines(&live, &desired, &PresetTool::Kapp), kapp);
}

#[test]
fn the_rule_that_explains_a_preset_finding_exists() {
    for name in crate::crd_upgrade_safety::options::finding_names() {
        let explained = explained_by_known(name);
        assert!(crate::explain::explain(explained).is_some(), "{name}: {explained}");
    }
}

/// The name itself if it is one of gantry's rules, otherwise the page that explains it.
fn explained_by_known(name: &'static str) -> &'static str {
    let ours = crate::crd_upgrade_safety::rules::RULES.iter().any(|rule| rule.doc.name == name);
    if ours { name } else { explained_by(name) }
}

#[test]
fn kapp_accepts_only_changes_that_it_handles() {
    let of = |live: Value, desired: Value| {
        let around = |x: &Value| crd(&[("v1", true, json!({"type": "object", "properties": {"x": x}}))]);
        lines(&around(&live), &around(&desired), &PresetTool::Kapp)
    };
    let said =
        |text: &str| vec![format!("\"ChangeValidator\" validation failed: version \"v1\", field \"^.spec.x\"{text}")];
    assert_eq!(
        of(json!({}), json!({"maxItems": 3})),
        said(": maximum items constraint added when one did not exist previously: 3")
    );
    assert_eq!(
        of(json!({"minLength": 1}), json!({"minLength": 2})),
        said(": minimum length constraint increased from 1 to 2")
    );
    assert_eq!(
        of(json!({}), json!({"required": ["a"]})),
        said(": new values added as required when previously no required fields existed: [a]")
    );
    assert_eq!(of(json!({"enum": ["a"]}), json!({"enum": ["a", "b"]})), [""; 0]);
    // kapp has no validation for descriptions, so a change of one is unknown to it.
    let unknown = said(" has unknown change, refusing to determine that change is safe");
    assert_eq!(of(json!({"description": "a"}), json!({"description": "b"})), unknown);
    assert_eq!(of(json!({"type": "string"}), json!({"type": "integer"})), unknown);
    // An empty list or map of the manifest is not absent to kapp; the live CRD, from the server, has none.
    for keyword in ["allOf", "anyOf", "oneOf", "x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        assert_eq!(of(json!({}), json!({keyword: []})), unknown, "{keyword}");
        assert_eq!(of(json!({keyword: []}), json!({})), [""; 0], "{keyword}");
    }
    assert_eq!(of(json!({}), json!({"dependencies": {}})), unknown);
    let values = |values: Value| json!({ "additionalProperties": values });
    assert_eq!(of(values(json!({"type": "string"})), values(json!({"type": "string", "required": []}))), unknown);
    // Two of its validations set their lists to empty ones before they compare, and children are not compared. An
    // alternative takes the place of its node.
    assert_eq!(of(json!({"not": {"type": "string"}}), json!({"not": {"type": "string", "required": []}})), [""; 0]);
    assert_eq!(of(json!({}), json!({"required": [], "enum": [], "properties": {}, "allOf": null})), [""; 0]);
    // A value of another type than the API's is not a panic.
    assert_eq!(of(json!({}), json!({"required": {}, "enum": 1})), [""; 0]);
}

#[test]
fn kapp_stops_comparing_a_version_at_a_removed_field() {
    let live =
        crd(&[("v1", true, json!({"properties": {"list": {"items": {"type": "string"}}, "x": {"minimum": 1}}}))]);
    let desired = crd(&[("v1", true, json!({"properties": {"list": {}, "x": {"minimum": 2}}}))]);
    assert_eq!(
        lines(&live, &desired, &PresetTool::Kapp),
        [
            "\"NoExistingFieldRemoved\" validation failed: crd/samples.test.example.com version/v1 field/^.spec.list[*] may not be removed",
            "\"ChangeValidator\" validation failed: calculating schema diff for CRD version \"v1\"",
        ]
    );
}

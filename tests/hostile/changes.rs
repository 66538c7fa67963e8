//! Hostile changes of CRDs: the built binary checks each of them in bounded memory. A change that is too large to
//! decide is undecided, never safe.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::CrdBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The address space of a run, in KiB. It includes memory that is mapped but never touched.
const MEMORY: u64 = 1 << 20;
/// Seconds of processor time after which a run is killed: far more than an unoptimised build needs.
const SECONDS: u64 = 300;

/// A CRD with this schema of `spec`.
fn crd(spec: &Value) -> Value {
    CrdBuilder::samples("example.com").version_of_spec("v1", spec.clone()).build()
}

fn write(folder: &Path, spec: &Value) {
    fs::create_dir(folder).expect("a folder");
    // JSON is YAML.
    fs::write(folder.join("crd.yaml"), crd(spec).to_string()).expect("a manifest");
}

/// The findings of `gantry check` for the change, as rule and verdict. Asserts that it exits by itself and reports a
/// possible break.
#[track_caller]
fn verdicts(live: &Value, desired: &Value) -> Vec<(String, String)> {
    let folder = TempDir::new().expect("a folder");
    let (there, here) = (folder.path().join("live"), folder.path().join("desired"));
    write(&there, live);
    write(&here, desired);
    let limited = format!("ulimit -v {MEMORY} -t {SECONDS}; exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limited, env!("CARGO_BIN_EXE_gantry"), "check", "--preflight", "CRDUpgradeSafety", "-o", "json"])
        .arg("-f")
        .arg(&here)
        .arg("--target")
        .arg(format!("dir:{}", there.display()))
        // Every thread maps its own memory.
        .envs([("TOKIO_WORKER_THREADS", "2"), ("MALLOC_ARENA_MAX", "2")])
        .env("HOME", folder.path())
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .expect("gantry runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{:?}: {told}", output.status);
    assert!(output.stdout.len() < 4 << 20, "a report of {} bytes", output.stdout.len());
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let findings = report["checks"][0]["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (text(&finding["rule"]), text(&finding["verdict"]))).collect()
}

/// Asserts that the only finding is of this rule and has one of these verdicts.
#[track_caller]
fn assert_judged(live: &Value, desired: &Value, rule: &str, verdicts_of: &[&str]) {
    match &verdicts(live, desired)[..] {
        [(name, verdict)] if name == rule && verdicts_of.contains(&verdict.as_str()) => {}
        found => panic!("{found:?}"),
    }
}

fn object(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

/// Nested lists, each with at least this many items.
fn lists(depth: usize, least: u64, leaf: &Value) -> Value {
    (0..depth).fold(leaf.clone(), |items, _| json!({"type": "array", "minItems": least, "items": items}))
}

#[test]
fn a_value_that_is_too_large_to_build_is_undecided() {
    let of = |leaf: Value| object(json!({"x": lists(3, 9999, &leaf)}));
    let (live, desired) =
        (of(json!({"type": "string", "maxLength": 5})), of(json!({"type": "string", "maxLength": 4})));
    assert_judged(&live, &desired, "NoMaxLengthTightened", &["undecided"]);
}

#[test]
fn removing_one_of_hundreds_of_patterns_is_judged() {
    let patterns: Vec<Value> = (0..300).map(|n| json!({"pattern": format!("^a{n}b$")})).collect();
    let of = |patterns: &[Value]| object(json!({"x": {"type": "string", "oneOf": patterns}}));
    assert_judged(&of(&patterns), &of(&patterns[1..]), "OneOfChange", &["undecided", "narrowing"]);
}

/// Nested alternatives; the last one requires `last`.
fn nested(depth: usize, wide: usize, name: &str, last: &str) -> Value {
    if depth == 0 {
        return json!({"required": [name]});
    }
    let branch = |n: usize| {
        let is_last = n + 1 == wide;
        let name = if is_last && depth == 1 && name.bytes().all(|b| usize::from(b - b'0') + 1 == wide) {
            last.to_owned()
        } else {
            format!("{name}{n}")
        };
        nested(depth - 1, wide, &name, last)
    };
    json!({"oneOf": (0..wide).map(branch).collect::<Vec<Value>>()})
}

#[test]
fn alternatives_in_alternatives_are_judged_in_bounded_memory() {
    for (depth, wide) in [(6, 5), (14, 2)] {
        let of = |last: &str| {
            let mut schema = nested(depth, wide, "", last);
            schema["type"] = json!("object");
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
            object(json!({"x": schema}))
        };
        assert_judged(&of("y"), &of("z"), "OneOfChange", &["undecided", "narrowing", "incomparable"]);
    }
}

#[test]
fn patterns_with_huge_machines_are_not_built() {
    let fields = |patterns: &[String]| {
        let field = |(n, pattern): (usize, &String)| {
            let schema = match pattern.as_str() {
                "" => json!({"type": "string"}),
                pattern => json!({"type": "string", "pattern": pattern}),
            };
            (format!("f{n}"), schema)
        };
        object(patterns.iter().enumerate().map(field).collect::<serde_json::Map<_, _>>().into())
    };
    let six = (0..6).map(|n| format!(r"^\p{{L}}{{1,{}}}$", 1000 - n)).collect();
    for patterns in [vec![r"^\p{L}{1,1000}$".to_owned()], vec![r"\p{L}{1000}.{1000}".to_owned()], six] {
        let none = vec![String::new(); patterns.len()];
        let found = verdicts(&fields(&none), &fields(&patterns));
        assert_eq!(found.len(), patterns.len());
        assert!(found.iter().all(|(rule, verdict)| rule == "PatternChange" && verdict == "undecided"), "{found:?}");
    }
}

#[test]
fn thousands_of_changed_rules_are_judged() {
    let of = |operator: &str| {
        let rule = |n: u32| json!({"rule": format!("self.x {operator} {n}")});
        let mut schema = object(json!({"x": {"type": "integer"}}));
        schema["x-kubernetes-validations"] = (0..2000).map(rule).collect();
        schema
    };
    assert_judged(&of("!="), &of("<"), "ValidationRuleChange", &["undecided", "narrowing", "incomparable"]);
}

#[test]
fn removing_one_of_tens_of_thousands_of_enum_values_is_judged() {
    let values: Vec<String> = (0..30_000).map(|n| format!("v{n}")).collect();
    let of = |values: &[String]| object(json!({"x": {"type": "string", "enum": values}}));
    assert_judged(&of(&values), &of(&values[1..]), "NoEnumValueRemoved", &["narrowing"]);
}

#[test]
fn thousands_of_newly_required_fields_are_judged() {
    let names: Vec<String> = (0..10_000).map(|n| format!("f{n}")).collect();
    let of = |required: &[String]| {
        let fields: serde_json::Map<_, _> =
            names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
        let mut schema = object(fields.into());
        schema["required"] = json!(required);
        object(json!({"x": schema}))
    };
    assert_judged(&of(&[]), &of(&names), "NoRequiredFieldAdded", &["narrowing"]);
}

/// Ten thousand items, each with a default of a hundred kilobytes; and nested defaults.
#[test]
fn defaults_that_multiply_are_not_filled_in() {
    let many = |length: u32| {
        let fields = json!({"a": {"type": "string", "default": "x".repeat(100_000)},
            "y": {"type": "string", "maxLength": length}});
        object(json!({"x": lists(1, 9999, &object(fields))}))
    };
    assert_judged(&many(4), &many(3), "NoMaxLengthTightened", &["undecided"]);
    let inner = (0..5).fold(json!({"type": "object"}), |items, _| {
        object(json!({"d": {"type": "array", "default": vec![json!({}); 300], "items": items}}))
    });
    let nested = |length: u32| object(json!({"d": inner, "y": {"type": "string", "maxLength": length}}));
    let found = verdicts(&nested(4), &nested(3));
    // A schema that is not compiled has no verdict.
    assert_eq!(found, [("NoMaxLengthTightened".to_owned(), String::new())]);
}

/// Alternatives in a different order at every level are the same schema, and are recognised as such.
#[test]
fn alternatives_in_another_order_are_compared_once() {
    fn turned(schema: &Value) -> Value {
        match schema {
            Value::Array(branches) => branches.iter().rev().map(turned).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), turned(value))).collect(),
            other => other.clone(),
        }
    }
    let mut schema = nested(12, 2, "", "y");
    schema["type"] = json!("object");
    let live = object(json!({"x": schema, "y": {"type": "string", "maxLength": 4}}));
    let desired = object(json!({"x": turned(&schema), "y": {"type": "string", "maxLength": 3}}));
    assert_judged(&live, &desired, "NoMaxLengthTightened", &["narrowing", "undecided"]);
}

/// Many conditions on one text: they are not all combined for each of the ways to break them, nor compared all at once.
#[test]
fn hundreds_of_conditions_on_one_text_are_judged_in_bounded_memory() {
    fn patterns(keyword: &str, depth: usize, wide: usize, name: &str) -> Value {
        let branch = |n| patterns(keyword, depth - 1, wide, &format!("{name}{n}"));
        match depth {
            0 => json!({"pattern": format!("^f{name}")}),
            _ => json!({keyword: (0..wide).map(branch).collect::<Vec<_>>()}),
        }
    }
    let nested = |keyword: &str, depth: usize, wide: usize, name: &str| {
        let mut schema = patterns(keyword, depth, wide, name);
        schema["type"] = json!("string");
        object(json!({"x": schema}))
    };
    for (keyword, rule, depth, wide) in
        [("oneOf", "OneOfChange", 10, 2), ("oneOf", "OneOfChange", 4, 5), ("allOf", "AllOfChange", 13, 2)]
    {
        let of = |name| nested(keyword, depth, wide, name);
        assert_judged(&of("a"), &of("b"), rule, &["undecided", "narrowing", "incomparable"]);
    }
    let all = |count: usize| {
        let branches: Vec<Value> = (0..count).map(|n| json!({"pattern": format!("a{n}b")})).collect();
        object(json!({"x": {"type": "string", "allOf": branches}}))
    };
    assert_judged(&all(400), &all(401), "AllOfChange", &["undecided", "narrowing"]);
}

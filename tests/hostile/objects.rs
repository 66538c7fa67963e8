//! Hostile objects: the built binary checks an object with thousands of refused values in time and memory in proportion
//! to its size.

use std::fs;

use crate::support::{CrdBuilder, Gantry};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The address space of a run, in KiB. It includes memory that is mapped but never touched.
const MEMORY: u64 = 1 << 20;
/// Seconds of processor time after which a run is killed: far more than an unoptimised build needs.
const SECONDS: u64 = 60;

/// The errors of `gantry check` for one object with this `spec`, as rule and the number of refused values.
#[track_caller]
fn refused(live: &Value, desired: &Value, spec: &Value) -> Vec<(String, usize)> {
    let folder = TempDir::new().expect("a folder");
    let crd = |spec: &Value| CrdBuilder::samples("example.com").version_of_spec("v1", spec.clone()).build();
    let (definition, there) = (crd(live), folder.path().join("live"));
    let (group, kind) = (&definition["spec"]["group"], &definition["spec"]["names"]["kind"]);
    let object = json!({"apiVersion": format!("{}/v1", group.as_str().unwrap_or_default()), "kind": kind,
        "metadata": {"name": "x", "namespace": "default"}, "spec": spec});
    fs::create_dir(&there).expect("a folder");
    // JSON is YAML.
    for (path, content) in [
        (there.join("crd.yaml"), &definition),
        (there.join("object.yaml"), &object),
        (folder.path().join("new.yaml"), &crd(desired)),
    ] {
        fs::write(path, content.to_string()).expect("a manifest");
    }
    let run = Gantry::new()
        .args(["check", "-f", "new.yaml", "--target", "dir:live", "-o", "json"])
        .args(["--preflight", "CRDUpgradeSafety,CustomResourceValidation"])
        .cwd(folder.path())
        .memory_limit(MEMORY)
        .limit("-t", SECONDS)
        .run();
    run.code(3);
    let report: Value = serde_json::from_str(&run.stdout).expect("a report");
    let checks = report["checks"].as_array().expect("checks").iter();
    let of_objects = checks.filter(|check| check["name"] == "CustomResourceValidation");
    let findings = of_objects.flat_map(|check| check["findings"].as_array().into_iter().flatten());
    let named = |finding: &Value| {
        let count = finding["affected"]["objects"].as_array().map_or(0, Vec::len);
        (finding["rule"].as_str().unwrap_or_default().to_owned(), count)
    };
    findings.map(named).collect()
}

#[test]
fn thousands_of_refused_values_in_one_object_are_judged() {
    let count = 5000;
    let (any, one) = (json!({"type": "string"}), json!({"type": "string", "enum": ["a"]}));
    let map_of = |values: &Value| json!({"type": "object", "additionalProperties": values});
    let item_of = |value: &Value| json!({"type": "object", "required": ["k"], "properties": {"k": any, "v": value}});
    let spec = |text: &Value| {
        json!({"type": "object", "properties": {
            "texts": {"type": "array", "items": text},
            "map": map_of(text),
            "maps": {"type": "array", "items": map_of(text)},
            "keyed": {"type": "array", "items": item_of(text),
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        }})
    };
    let each = |value: &dyn Fn(usize) -> Value| (0..count).map(value).collect::<Vec<Value>>();
    let entries: serde_json::Map<String, Value> = (0..count).map(|n| (format!("k{n}"), "x".into())).collect();
    let object = json!({
        "texts": each(&|n| format!("x{n}").into()),
        "map": entries,
        "maps": each(&|_| json!({"k": "x"})),
        "keyed": each(&|n| json!({"k": format!("k{n}"), "v": "x"})),
    });
    let found = refused(&spec(&any), &spec(&one), &object);
    assert_eq!(found, vec![("ExistingObjectRefusedWhenTouched".to_owned(), count); 4]);
}

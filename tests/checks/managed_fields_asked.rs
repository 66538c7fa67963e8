//! What `managedFields` of a live object prevent and only the server can tell: dry runs, and objects that a webhook
//! converts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::managed_fields::{move_entries, run_migration};
use crate::support::{Gantry, Output, Samples, Webhook, control_plane, eventually, fields, text};
use serde_json::{Value, json};

const DRY_RUN: &str = "AdmissionDryRun";
const VALIDATION: &str = "CustomResourceValidation";

fn check(manifests: &[&Value], checks: &str) -> Output {
    let manifests: Vec<String> = manifests.iter().map(|manifest| manifest.to_string()).collect();
    let arguments = ["check", "-f", "-", "--force-conflicts", "--preflight", checks, "-o", "json"];
    let gantry = Gantry::new().kubeconfig(control_plane().kubeconfig("admin")).args(arguments);
    gantry.stdin(manifests.join("\n---\n")).run()
}

/// The errors of all checks, and what they could not check.
fn said(output: &Output) -> (Vec<Value>, Vec<String>) {
    let report = output.report();
    let of = |check: &Value, key: &str| check[key].as_array().cloned().unwrap_or_default();
    let checks = report["checks"].as_array().expect("checks").clone();
    let findings = checks.iter().flat_map(|check| of(check, "findings"));
    let errors = findings.filter(|finding| finding["severity"] == "error").collect();
    let unchecked = checks.iter().flat_map(|check| of(check, "unchecked"));
    (errors, unchecked.map(|entry| text(&entry["message"])).collect())
}

/// The server's answer to a server-side apply: status and message.
fn apply(bed: &Samples, name: &str, object: &Value) -> (u16, String) {
    let path = format!("{}?fieldManager=gantry&force=true&dryRun=All", bed.path(name));
    eventually("the server answers", || match control_plane().apply_to(&path, object) {
        (429, _) => None,
        (status, answer) => Some((status, text(&answer["message"]))),
    })
}

/// Gives the live object an entry of `controller` at v2.
fn write_at_v2(bed: &Samples, name: &str, change: &Value) {
    let path = format!("{}/{name}?fieldManager=controller", bed.collection("v2"));
    assert_eq!(control_plane().patch(&path, change).0, 200);
}

fn label() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}})
}

fn strings(names: &[&str]) -> Value {
    fields(names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect())
}

#[test]
fn an_apply_that_managed_fields_prevent_is_a_finding_of_the_dry_run() {
    let bed = Samples::new();
    let both = bed.crd(&[("v1", true, strings(&["a"])), ("v2", false, strings(&["a"]))]);
    bed.live(&both);
    bed.create("one", &json!({"a": "x"}));
    write_at_v2(&bed, "one", &label());
    let object = bed.object("one", &json!({"a": "y"}));
    bed.live(&bed.one_version(strings(&["a"])));
    eventually("the server uses the CRD without v2", || (apply(&bed, "one", &object).0 == 500).then_some(()));

    let (errors, unchecked) = said(check(&[&object], DRY_RUN).code(3));
    assert_eq!((errors.len(), unchecked.len()), (1, 0), "{errors:#?} {unchecked:?}");
    assert!(text(&errors[0]["message"]).contains("invalid group/version"), "{errors:#?}");
    // Both checks find it; it is reported once.
    let (both_checks, _) = said(check(&[&object], "CustomResourceValidation,AdmissionDryRun").code(3));
    assert_eq!(both_checks.len(), 1, "{both_checks:#?}");
    assert_eq!(text(&both_checks[0]["rule"]), "ManifestObjectRefused");
    // The deploy itself adds v2 again.
    assert_eq!(said(check(&[&both, &object], DRY_RUN).code(0)), (vec![], vec![]));

    assert_eq!(move_entries(&text(&errors[0]["help"])), 1);
    assert_eq!(apply(&bed, "one", &object).0, 200);
    check(&[&object], DRY_RUN).code(0);
}

/// Of two entries with the same manager, operation, version and subresource, the server keeps only the last.
#[test]
fn a_manager_keeps_its_fields_when_its_entries_move_to_the_same_version() {
    let bed = Samples::new();
    let crd = |names: &[&str]| {
        let versions: Vec<_> = names.iter().map(|name| (*name, *name == "v1", strings(&["a", "b"]))).collect();
        let mut crd = bed.crd(&versions);
        for version in crd["spec"]["versions"].as_array_mut().expect("versions") {
            version["subresources"] = json!({"status": {}});
            version["schema"]["openAPIV3Schema"]["properties"]["status"] = strings(&["s", "t"]);
        }
        crd
    };
    bed.live(&crd(&["v1", "v2"]));
    let cp = control_plane();
    let created = format!("{}?fieldManager=controller", bed.collection("v1"));
    assert_eq!(cp.post(&created, &bed.object("one", &json!({"a": "x"}))).0, 201);
    let status = |version: &str, change: Value| {
        let path = format!("{}/one/status?fieldManager=controller", bed.collection(version));
        assert_eq!(cp.patch(&path, &json!({"status": change})).0, 200);
    };
    status("v1", json!({"s": "x"}));
    write_at_v2(&bed, "one", &json!({"spec": {"b": "x"}}));
    status("v2", json!({"t": "x"}));
    let entries = || {
        let live = cp.get(&bed.path("one")).1;
        let entries = live["metadata"]["managedFields"].as_array().expect("managedFields").clone();
        let of = |entry: &Value| {
            let subresource = text(&entry["subresource"]);
            let owned =
                if subresource.is_empty() { &entry["fieldsV1"]["f:spec"] } else { &entry["fieldsV1"]["f:status"] };
            let mut owned: Vec<String> = owned.as_object().expect("fields").keys().cloned().collect();
            owned.retain(|name| name != ".");
            owned.sort();
            (text(&entry["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned(), subresource, owned)
        };
        let mut entries: Vec<_> = entries.iter().map(of).collect();
        entries.sort();
        entries
    };
    assert_eq!(entries().len(), 4);

    let (errors, _) = said(check(&[&crd(&["v1"])], VALIDATION).code(3));
    let help = text(&errors[0]["help"]);
    assert!(help.starts_with("keep v2 in the CRD with served: false"), "{help}");
    let mut unserved = crd(&["v1", "v2"]);
    unserved["spec"]["versions"][1]["served"] = false.into();
    bed.live(&unserved);
    run_migration(&help);
    let entry = |subresource: &str, owned: [&str; 2]| {
        ("v1".to_owned(), subresource.to_owned(), owned.map(str::to_owned).to_vec())
    };
    assert_eq!(entries(), [entry("", ["f:a", "f:b"]), entry("status", ["f:s", "f:t"])]);
}

#[test]
fn the_server_decides_whether_a_converted_object_fits_the_versions_in_its_managed_fields() {
    let bed = Samples::new();
    const PASSES: u8 = 0;
    const DROPS: u8 = 1;
    const FAILS: u8 = 2;
    let mode = Arc::new(AtomicU8::new(PASSES));
    let webhook = {
        let mode = Arc::clone(&mode);
        Webhook::start(control_plane(), move |review| {
            let mode = mode.load(Ordering::Relaxed);
            let mut answer = Webhook::answer(review, |mut object, wanted| {
                object["apiVersion"] = wanted.into();
                if let Some(spec) = object["spec"].as_object_mut().filter(|_| mode == DROPS && wanted.ends_with("/v2"))
                {
                    spec.remove("b");
                }
                object
            });
            if mode == FAILS {
                answer["response"]["result"] = json!({"status": "Failed", "message": "no"});
            }
            answer
        })
    };
    let crd = |v2: &[&str]| {
        let mut crd = bed.crd(&[("v1", true, strings(&["a", "b"])), ("v2", false, strings(v2))]);
        crd["spec"]["conversion"] = webhook.conversion();
        crd
    };
    bed.live(&crd(&["a", "b"]));
    for name in ["one", "plain"] {
        bed.create(name, &json!({"a": "x", "b": "x"}));
    }
    write_at_v2(&bed, "one", &label());
    let (one, plain) = (bed.object("one", &json!({"a": "y"})), bed.object("plain", &json!({"a": "y"})));
    let nothing = (vec![], vec![]);
    for checks in [VALIDATION, DRY_RUN] {
        assert_eq!(said(check(&[&one, &plain], checks).code(0)), nothing, "{checks}");
    }
    // A schema that declares more.
    assert_eq!(said(check(&[&crd(&["a", "b", "c"]), &one, &plain], VALIDATION).code(0)), nothing);
    // The deploy removes a field from v2: the server cannot be asked yet.
    let (errors, unchecked) = said(&check(&[&crd(&["a"]), &one, &plain], VALIDATION));
    assert!(errors.iter().all(|error| error["rule"] == "ExistingDataPruned"), "{errors:#?}");
    assert_eq!(unchecked.len(), 1, "{unchecked:?}");
    assert!(unchecked[0].contains("entries at v2"), "{unchecked:?}");

    bed.live(&crd(&["a"]));
    eventually("the server uses the new schema", || (apply(&bed, "one", &one).0 == 500).then_some(()));
    for checks in [VALIDATION, DRY_RUN, "CustomResourceValidation,AdmissionDryRun"] {
        let (errors, unchecked) = said(check(&[&one, &plain], checks).code(3));
        assert_eq!((errors.len(), unchecked.len()), (1, 0), "{checks}: {errors:#?} {unchecked:?}");
        assert!(text(&errors[0]["message"]).contains(".spec.b: field not declared in schema"), "{errors:#?}");
        assert!(text(&errors[0]["help"]).contains("kubectl get "), "{errors:#?}");
    }
    // A webhook that drops what v2 does not have.
    mode.store(DROPS, Ordering::Relaxed);
    assert_eq!(apply(&bed, "one", &one).0, 200);
    for checks in [VALIDATION, DRY_RUN] {
        assert_eq!(said(check(&[&one, &plain], checks).code(0)), nothing, "{checks}");
    }
    mode.store(FAILS, Ordering::Relaxed);
    assert_eq!(apply(&bed, "one", &one).0, 500);
    for checks in [VALIDATION, DRY_RUN] {
        let (errors, unchecked) = said(&check(&[&one, &plain], checks));
        assert_eq!((errors.len(), unchecked.len()), (0, 1), "{checks}: {errors:#?} {unchecked:?}");
        assert!(unchecked[0].contains("conversion webhook for"), "{unchecked:?}");
    }
}

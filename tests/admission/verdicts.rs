//! What the webhook answers to the API server.

use std::fs;

use serde_json::{Value, json};

use crate::guard::{CRDS, Guard};
use crate::support::*;

/// A guard in this mode with a CRD `size` and `colour`, and an object that has a colour.
fn guard(admission: &str) -> Guard {
    let guard = Guard::start(admission);
    control_plane().apply_yaml(&guard.crd(json!({"colour": {"type": "string"}})).to_string());
    guard.create("one", json!({"size": 1, "colour": "red"}));
    guard
}

#[test]
fn an_unsafe_change_is_denied_with_its_reason_and_accepted_by_its_digest_alone() {
    let guard = guard("{mode: deny}");
    let without = guard.crd(json!({}));
    let message = Guard::refused(guard.replace(&without));
    for part in [
        "admission webhook \"crds.admission.gantry.dev\" denied the request: gantry: this change of samples.",
        "is not safe: 2 errors\nerror[NoExistingFieldRemoved] v1 ",
        "To accept exactly this, and nothing else:\n  kubectl annotate crd samples.",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(control_plane().get(&guard.crd_path()).1.to_string().contains("colour"), "nothing was written");
    assert_eq!(guard.metric("gantry_admission_cached_denials_total"), 0.0);
    assert_eq!(Guard::refused(guard.replace(&without)), message);
    assert_eq!(guard.metric("gantry_admission_cached_denials_total"), 1.0);

    // A dry run has the same answer.
    let (_, mut dry) = control_plane().get(&guard.crd_path());
    dry["spec"] = without["spec"].clone();
    dry["spec"]["conversion"] = json!({"strategy": "None"});
    let path = format!("{}?dryRun=All", guard.crd_path());
    assert_eq!(Guard::digest(&Guard::refused(control_plane().put(&path, &dry))), Guard::digest(&message));

    let annotated = |digest: &str, crd: &Value| {
        let mut crd = crd.clone();
        crd["metadata"]["annotations"] = json!({"gantry.dev/accept-change": digest});
        crd
    };
    let digest = Guard::digest(&message);
    // Another change is another digest.
    let other = guard.crd(json!({"colour": {"type": "integer"}}));
    assert_ne!(Guard::digest(&Guard::refused(guard.replace(&annotated(&digest, &other)))), digest);
    // Only members of the groups may accept.
    let user = control_plane().user(&json!([{
        "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["*"],
    }]));
    let mut accepted = annotated(&digest, &without);
    accepted["metadata"]["resourceVersion"] =
        control_plane().get(&guard.crd_path()).1["metadata"]["resourceVersion"].clone();
    let refused = Guard::refused(control_plane().api_as(&user).put(&guard.crd_path(), &accepted));
    assert!(refused.contains("is in none of the groups that may accept changes: system:masters"), "{refused}");
    assert_eq!(guard.replace(&annotated(&digest, &without)).0, 200);
    // A manifest without the annotation removes it, and is accepted if the live CRD has it.
    let colour = guard.crd(json!({"colour": {"type": "string"}}));
    assert_eq!(guard.replace(&colour).0, 200);
    let annotation = json!({"metadata": {"annotations": {"gantry.dev/accept-change": digest}}});
    assert_eq!(control_plane().patch(&guard.crd_path(), &annotation).0, 200);
    guard.create("two", json!({"colour": "blue"}));
    assert_eq!(guard.replace(&without).0, 200);
    assert_eq!(guard.metric("gantry_admission_reviews_total{mode=\"deny\",outcome=\"accepted\"}"), 2.0);
}

#[test]
fn safe_changes_labels_and_new_crds_are_allowed() {
    let guard = guard("{mode: deny}");
    let (status, answer) = guard.replace(&guard.crd(json!({"colour": {"type": "string"}, "more": {"type": "string"}})));
    assert_eq!(status, 200, "{answer}");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(control_plane().patch(&guard.crd_path(), &label).0, 200);
    let new = CrdBuilder::new(&guard.bed.names.group, "Other").version("v1", any_fields()).build();
    assert_eq!(control_plane().post(CRDS, &new).0, 201);
    // No object has the field.
    let unused = guard.crd(json!({"colour": {"type": "string"}}));
    let (status, answer) = guard.replace(&unused);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn warnings_reach_the_client_and_the_change_happens() {
    let guard = guard("{mode: warn}");
    guard.bed.write_objects([&guard.crd(json!({}))]);
    let arguments = ["deploy", "-f", "manifests.yaml", "--preflight", "APIAvailability", "--force-conflicts"];
    let output = guard.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run();
    output
        .code(0)
        .stderr_contains("the API server warns: gantry: this change of samples.")
        .stderr_contains("the API server warns: error[NoExistingFieldRemoved] v1 ");
    assert!(!control_plane().get(&guard.crd_path()).1.to_string().contains("colour"));
}

#[test]
fn the_mode_follows_the_name_of_the_crd() {
    let guard = guard("{mode: deny, ignore: ['samples.*']}");
    assert_eq!(guard.replace(&guard.crd(json!({}))).0, 200);
    assert_eq!(guard.metric("gantry_admission_reviews_total{mode=\"ignore\",outcome=\"ignored\"}"), 1.0);
}

#[test]
fn a_crd_is_deleted_only_without_objects_or_when_accepted() {
    let guard = guard("{mode: deny}");
    let message = Guard::refused(control_plane().delete(&guard.crd_path()));
    for part in
        ["deleting samples.", "error[CRDDeletionLosesObjects] deleting this CRD also deletes 1 object of kind Sample ("]
    {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.contains("/one)"), "{message}");
    // Deleting all CRDs of a label is a review for each.
    control_plane().patch(&guard.crd_path(), &json!({"metadata": {"labels": {"of": guard.bed.names.namespace}}}));
    let collection = format!("{CRDS}?labelSelector=of%3D{}", guard.bed.names.namespace);
    let refused = Guard::refused(control_plane().delete(&collection));
    assert!(refused.contains("CRDDeletionLosesObjects"), "{refused}");
    let annotation = json!({"metadata": {
        "annotations": {"gantry.dev/accept-change": Guard::digest(&message)},
        "finalizers": ["example.com/wait"],
    }});
    assert_eq!(control_plane().patch(&guard.crd_path(), &annotation).0, 200);
    assert_eq!(control_plane().delete(&guard.crd_path()).0, 200);
    // Finalizers go although the object exists.
    eventually("the CRD to go", || {
        control_plane().patch(
            &guard.crd_path(),
            &json!({"metadata": {"finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}}),
        );
        (control_plane().get(&guard.crd_path()).0 == 404).then_some(())
    });
    let probe = format!("{CRDS}/probes.{}", guard.bed.names.group);
    assert_eq!(control_plane().delete(&probe).0, 200, "it has no objects");
}

#[test]
fn a_stored_version_is_forgotten_only_if_no_object_can_have_it() {
    let guard = guard("{mode: deny}");
    let status = format!("{}/status", guard.crd_path());
    let two = CrdBuilder::samples(&guard.bed.names.group)
        .version_of_spec("v1", fields(json!({"size": {"type": "integer"}, "colour": {"type": "string"}})))
        .storage(false)
        .version_of_spec("v2", fields(json!({"size": {"type": "integer"}, "colour": {"type": "string"}})))
        .storage(true)
        .build();
    assert_eq!(guard.replace(&two).0, 200);
    let stored = eventually("v2 to be a stored version", || {
        let stored = control_plane().get(&guard.crd_path()).1["status"]["storedVersions"].clone();
        (stored.as_array().is_some_and(|stored| stored.len() == 2)).then_some(stored)
    });
    assert_eq!(stored, json!(["v1", "v2"]));
    let shortened = json!({"status": {"storedVersions": ["v2"]}});
    let message = Guard::refused(control_plane().patch(&status, &shortened));
    assert!(
        message.contains("error[StoredVersionForgotten] status.storedVersions would no longer name v1"),
        "{message}"
    );
    // The command that it names is allowed, after it has written and verified every object.
    let name = format!("samples.{}", guard.bed.names.group);
    let arguments = ["migrate", &name, "--prune-stored-versions", "--yes"];
    guard.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run().code(0);
    let longer = json!({"status": {"storedVersions": ["v1", "v2"]}});
    assert_eq!(control_plane().patch(&status, &longer).0, 200);
    Guard::refused(control_plane().patch(&status, &shortened));
    // Without objects nothing is stored at v1.
    let objects = format!("/apis/{0}/v1/namespaces/{1}/samples/one", guard.bed.names.group, guard.bed.names.namespace);
    assert_eq!(control_plane().delete(&objects).0, 200);
    eventually("the status to be allowed", || (control_plane().patch(&status, &shortened).0 == 200).then_some(()));
}

#[test]
fn what_cannot_be_judged_is_denied_or_warned_about_as_the_configuration_says() {
    for (admission, expected) in [("{mode: deny}", 403), ("{mode: deny, onTimeout: warn}", 200)] {
        // It may read no objects.
        let user = control_plane().user(&json!([]));
        let guard = Guard::start_as(&user, admission);
        control_plane().apply_yaml(&guard.crd(json!({"colour": {"type": "string"}})).to_string());
        guard.create("one", json!({"colour": "red"}));
        let (status, answer) = control_plane().delete(&guard.crd_path());
        assert_eq!(status, expected, "{answer}");
        if expected == 403 {
            let message = text(&answer["message"]);
            assert!(message.contains("gantry could not judge deleting samples."), "{message}");
            assert!(message.contains("not judged: the objects of samples."), "{message}");
        }
    }
}

/// The findings of reports without their places, which depend on the file.
fn verdict(checks: &Value) -> Vec<Value> {
    let checks = checks.as_array().expect("checks");
    let findings = checks.iter().flat_map(|check| check["findings"].as_array().expect("findings"));
    findings
        .map(|finding| {
            let mut finding = finding.clone();
            finding.as_object_mut().expect("an object").remove("source");
            finding
        })
        .collect()
}

const PREFLIGHT: &str = "--preflight=CRDUpgradeSafety,CustomResourceValidation";

#[test]
fn the_findings_of_a_test_are_those_of_check() {
    let mut compared = 0;
    for folder in crd_fixture_folders() {
        let live = tempfile::tempdir().expect("a folder");
        fs::copy(folder.join("live.yaml"), live.path().join("live.yaml")).expect("a copy");
        let target = format!("--target=dir:{}", live.path().display());
        let desired = folder.join("desired.yaml").display().to_string();
        let run = |arguments: &[&str]| Gantry::new().args(arguments).args(["-f", &desired, &target]).run();
        let check = run(&["check", "--preset=evidence", PREFLIGHT, "-o", "json"]);
        let test = run(&["admission", "test", "-o", "json"]);
        let answers = test.report();
        let answered: Vec<Value> =
            answers.as_array().expect("a list").iter().flat_map(|answer| verdict(&answer["checks"])).collect();
        let checked = verdict(&check.report()["checks"]);
        compared += checked.len();
        assert_eq!(answered, checked, "{}", folder.display());
    }
    assert!(compared > 50, "{compared}");
}

/// The same through the API server: what the webhook logs about each change has the rules that `check` reports.
#[test]
fn the_webhook_finds_what_check_finds() {
    let mut guard = Guard::start("{mode: deny}\npreset: semantic");
    // check itself sends dry runs.
    let user = control_plane().user(&json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]));
    let mut denied = 0;
    for (index, folder) in crd_fixture_folders().into_iter().enumerate() {
        let group = format!("f{index}.{}", guard.bed.names.group);
        let read =
            |file: &str| fs::read_to_string(folder.join(file)).expect("a file").replace("test.example.com", &group);
        let live: Value = serde_yaml::from_str(&read("live.yaml")).expect("a CRD");
        let desired: Value = serde_yaml::from_str(&read("desired.yaml")).expect("a CRD");
        let path = control_plane().path_of(&control_plane().apply_yaml(&live.to_string())[0]);
        guard.bed.write("desired.yaml", &desired.to_string());
        let arguments =
            ["check", "-f", "desired.yaml", "--preset=semantic", PREFLIGHT, "--force-conflicts", "-o", "json"];
        let check = guard.bed.gantry(control_plane().kubeconfig(&user), &arguments).run();
        let findings: Vec<Value> = verdict(&check.report()["checks"]);
        let is_refused = findings.iter().any(|finding| finding["refusedByServer"] == true);
        let mut replaced = desired.clone();
        replaced["metadata"]["resourceVersion"] = control_plane().get(&path).1["metadata"]["resourceVersion"].clone();
        let (status, answer) = control_plane().put(&format!("{path}?dryRun=All"), &replaced);
        if is_refused {
            // The API server refuses it before it asks.
            assert_eq!(status, 422, "{}: {answer}", folder.display());
            continue;
        }
        let has_errors = findings.iter().any(|finding| finding["severity"] == "error");
        assert_eq!(status == 403, has_errors, "{}: {status} {answer}", folder.display());
        denied += usize::from(has_errors);
        let name = text_of_name(&live);
        let event: Value = guard.running.wait_for_line(|line| {
            let event: Value = serde_json::from_str(line).ok()?;
            (event["crd"] == name.as_str() && event["user"] == "admin").then_some(event)
        });
        let counts = |finding: &&Value| finding["severity"] == "error" || finding["severity"] == "warning";
        let mut rules: Vec<String> = findings.iter().filter(counts).map(|finding| text(&finding["rule"])).collect();
        let mut logged: Vec<String> = event["rules"].as_array().expect("rules").iter().map(text).collect();
        rules.sort();
        logged.sort();
        assert_eq!(logged, rules, "{}: {event}", folder.display());
        control_plane().delete(&path);
    }
    assert!(denied > 20, "{denied}");
}

fn text_of_name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

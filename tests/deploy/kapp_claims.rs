//! Records of kapp whose label is also that of another app: a namespace was copied, or somebody wrote a record.

use crate::kapp::Stage;
use crate::support::{control_plane, printed_command, run_printed};
use serde_json::{Value, json};

fn run(stage: &Stage, command: &str) {
    run_printed(command, &control_plane().kubeconfig("admin"), stage.bed.folder.path());
}

const DEPLOY: [&str; 2] = ["--from-kapp", "--prune=kapp"];

fn path(stage: &Stage, name: &str) -> String {
    stage.bed.config_map_path(name)
}

fn get(stage: &Stage, name: &str) -> Option<Value> {
    let (status, object) = control_plane().get(&path(stage, name));
    (status == 200).then_some(object)
}

/// An app of kapp with the ConfigMap `theirs`, and a namespace with a copy of its record.
fn copied() -> (Stage, Stage) {
    let (theirs, copy) = (Stage::on(control_plane()), Stage::on(control_plane()));
    theirs.kapp_deploys(&[theirs.config_map("theirs", "1")]);
    theirs.kapp_records(&[("", "ConfigMap")]);
    let record = get(&theirs, "shop.apps.k14s.io").expect("a record");
    let metadata = json!({"name": "shop.apps.k14s.io", "namespace": copy.bed.names.namespace,
        "labels": record["metadata"]["labels"]});
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": record["data"]});
    control_plane().apply_yaml(&record.to_string());
    copy.write(&[copy.config_map("own", "1")]);
    (theirs, copy)
}

#[test]
fn an_app_of_kapp_whose_label_another_record_claims_is_not_taken_over() {
    let (theirs, copy) = copied();
    let before = get(&theirs, "theirs");
    let output = copy.app("deploy", &DEPLOY);
    let namespace = &theirs.bed.names.namespace;
    output.code(1).stdout_contains("is also the record of an app of kapp with the label kapp.k14s.io/app=");
    output.stdout_contains(&format!("configmap/shop.apps.k14s.io -n {namespace}"));
    assert_eq!((get(&theirs, "theirs"), get(&copy, "own"), get(&copy, "shop.gantry")), (before, None, None));

    // The advice: the copy is deleted, and the app is taken over where it is.
    theirs.write(&[theirs.config_map("theirs", "1")]);
    let output = theirs.app("deploy", &DEPLOY);
    let command = printed_command(output.code(1), "kubectl delete ", ", or kubectl delete ");
    assert!(command.ends_with(&format!("configmap/shop.apps.k14s.io -n {}", copy.bed.names.namespace)), "{command}");
    run(&theirs, &command);
    theirs.app("deploy", &DEPLOY).code(0);
    assert!(get(&theirs, "theirs").is_some() && get(&theirs, "shop.apps.k14s.io").is_none());
}

/// The copy deploys, and its own record is the copy.
#[test]
fn the_record_of_the_app_itself_may_be_the_copy() {
    let (theirs, copy) = copied();
    let before = get(&theirs, "theirs");
    let output = copy.app("deploy", &DEPLOY);
    let both = printed_command(output.code(1), "kubectl delete ", " Failed.");
    let (other, own) = both.split_once(", or ").expect("two commands");
    assert_ne!(other, own);
    run(&copy, own);
    // Without a record of kapp it is a new app.
    copy.app("deploy", &DEPLOY[..1]).code(1);
    copy.app("deploy", &[]).code(0).stdout_contains("1 created");
    assert_eq!((get(&theirs, "theirs"), get(&copy, "shop.apps.k14s.io")), (before, None));
    theirs.write(&[theirs.config_map("theirs", "1")]);
    theirs.app("deploy", &DEPLOY).code(0).stdout_contains("1 adopted");
    assert!(get(&theirs, "theirs").is_some());
}

#[test]
fn an_object_outside_the_namespaces_of_kapps_record_is_not_deleted() {
    let (theirs, forged) = copied();
    // The other record is gone, so the label alone says what belongs to the app.
    control_plane().delete(&path(&theirs, "shop.apps.k14s.io"));
    let mut record = get(&forged, "shop.apps.k14s.io").expect("a record");
    let mut spec: Value = serde_json::from_str(record["data"]["spec"].as_str().expect("JSON")).expect("JSON");
    spec["lastChange"]["namespaces"] = json!([forged.bed.names.namespace]);
    record["data"]["spec"] = spec.to_string().into();
    let (status, answer) = control_plane().patch(&path(&forged, "shop.apps.k14s.io"), &json!({"data": record["data"]}));
    assert_eq!(status, 200, "{answer}");
    let before = get(&theirs, "theirs");
    let output = forged.app("deploy", &DEPLOY);
    output.code(1).stdout_contains(&format!("configmap/theirs -n {}", theirs.bed.names.namespace));
    output.stdout_contains("its record says that kapp deployed it only in");
    assert_eq!((get(&theirs, "theirs"), get(&forged, "shop.gantry")), (before.clone(), None));

    // The advice: the label goes, and the object stays.
    let label = "kapp.k14s.io/app";
    run(&forged, &(printed_command(&output, "kubectl label ", &format!("{label}-")) + &format!(" {label}-")));
    forged.app("deploy", &DEPLOY).code(0);
    let after = get(&theirs, "theirs").expect("it stays");
    assert_eq!((&after["data"], &after["metadata"]["labels"][label]), (&before.expect("it")["data"], &Value::Null));
    assert!(get(&forged, "own").is_some() && get(&forged, "shop.apps.k14s.io").is_none());
}

#[test]
fn a_record_of_kapp_whose_names_lead_to_other_paths_is_refused() {
    let (_, forged) = copied();
    let record = get(&forged, "shop.apps.k14s.io").expect("a record");
    let spec: Value = serde_json::from_str(record["data"]["spec"].as_str().expect("JSON")).expect("JSON");
    let with = |key: &str, value: Value| {
        let mut spec = spec.clone();
        match key {
            "namespaces" => spec["lastChange"]["namespaces"] = json!([value]),
            _ => spec[key] = value,
        }
        let patch = json!({"data": {"spec": spec.to_string()}});
        let (status, answer) = control_plane().patch(&path(&forged, "shop.apps.k14s.io"), &patch);
        assert_eq!(status, 200, "{answer}");
        forged.app("deploy", &DEPLOY)
    };
    for (key, value) in
        [("namespaces", "x/pods/y/proxy"), ("namespaces", ".."), ("labelValue", "a,b"), ("labelValue", "a) or (b")]
    {
        with(key, value.into()).code(1).stderr_contains("is not the record of a kapp app");
    }
}

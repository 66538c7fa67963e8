//! The folder that represents a cluster, through the library as a deploy uses it.

mod broken;
mod lists;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gantry_cluster::dir::DirTarget;
use gantry_cluster::{
    Apply, ApplyError, FieldConflict, FormerTools, Gvk, ListError, ListRequest, ManagerOperation, ObjectToRead,
    WritePrecondition,
};
use gantry_core::crd::builder::CrdBuilder;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use serde_json::{Value, json};
use tempfile::TempDir;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  names: {kind: Sample, plural: samples}
  scope: Namespaced
  versions:
    - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

/// [`CRD`] with these versions; the last one is the storage version.
fn crd(versions: &[&str]) -> Value {
    let add = |crd: CrdBuilder, name: &&str| {
        crd.version(name, json!({"type": "object"})).storage(versions.last() == Some(name))
    };
    versions.iter().fold(CrdBuilder::samples("test.example.com"), add).build()
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn wanted(value: &Value) -> ObjectToRead {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let object = ObjectRef {
        api_version: text("/apiVersion").unwrap(),
        kind: text("/kind").unwrap(),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name").unwrap(),
    };
    let namespaced = !matches!(object.kind.as_str(), "CustomResourceDefinition" | "Namespace");
    let resource = Resource {
        group: object.group().into(),
        version: object.version().into(),
        kind: object.kind.clone(),
        plural: format!("{}s", object.kind.to_lowercase()),
        namespaced,
    };
    ObjectToRead { resource: resource.into(), object: object.into() }
}

fn read(target: &DirTarget, value: &Value) -> Option<LiveObject> {
    target.read(&[wanted(value)]).remove(0)
}

fn pin(live: Option<&LiveObject>) -> WritePrecondition {
    match live {
        None => WritePrecondition::Absent,
        Some(live) => WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() },
    }
}

fn apply_pinned(target: &DirTarget, value: &Value, pin: &WritePrecondition) -> Result<LiveObject, ApplyError> {
    let ObjectToRead { resource, object } = wanted(value);
    let raw = RawObject::from_value(value);
    target.apply(&Apply {
        resource: &resource,
        object: &object,
        raw: &raw,
        live: None,
        pin,
        field_manager: "gantry",
        force_conflicts: false,
        helm: None,
        former_tools: FormerTools::TakeUnlessConflict,
    })
}

/// Applies to the current state of the folder.
fn apply(target: &DirTarget, value: &Value) -> Result<LiveObject, ApplyError> {
    apply_pinned(target, value, &pin(read(target, value).as_ref()))
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn open(folder: &TempDir) -> DirTarget {
    DirTarget::open(folder.path()).unwrap()
}

fn text(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

fn file_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refusal(result: Result<LiveObject, ApplyError>) -> String {
    match result {
        Err(ApplyError::Refused(problem)) => problem.message,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_new_object_gets_a_file_of_its_own_and_is_live_afterwards() {
    let folder = folder(&[]);
    let target = open(&folder);
    let applied = apply(&target, &config_map("a", json!({"x": "1"}))).unwrap();
    assert_eq!(file_names(folder.path()), ["configmap_default_a.yaml"]);

    let live = read(&open(&folder), &config_map("a", json!({}))).unwrap();
    assert_eq!(pin(Some(&live)), pin(Some(&applied)));
    let value = live.raw.value();
    assert_eq!(value["data"], json!({"x": "1"}));
    assert_eq!(value["metadata"]["namespace"], "default");
    assert_eq!(value["metadata"]["uid"], live.uid.as_str());
    assert_eq!(value["metadata"]["resourceVersion"], "1");
}

#[test]
fn applying_the_same_again_writes_nothing() {
    let folder = folder(&[]);
    let target = open(&folder);
    for object in [crd(&["v1"]), config_map("a", json!({"x": "1"}))] {
        let first = apply(&target, &object).unwrap();
        let files: Vec<String> = file_names(folder.path()).iter().map(|name| text(&folder, name)).collect();
        let second = apply(&target, &object).unwrap();
        assert_eq!(pin(Some(&first)), pin(Some(&second)));
        assert_eq!(files, file_names(folder.path()).iter().map(|name| text(&folder, name)).collect::<Vec<_>>());
    }
}

#[test]
fn the_generation_counts_changes_of_the_spec_and_the_resource_version_counts_writes() {
    let folder = folder(&[]);
    let target = open(&folder);
    let counts = |live: LiveObject| {
        let metadata = live.raw.value()["metadata"].clone();
        (metadata["generation"].clone(), metadata["resourceVersion"].clone())
    };
    assert_eq!(counts(apply(&target, &crd(&["v1"])).unwrap()), (json!(1), json!("1")));
    let mut labelled = crd(&["v1"]);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(counts(apply(&target, &labelled).unwrap()), (json!(1), json!("2")));
    assert_eq!(counts(apply(&target, &crd(&["v1", "v2"])).unwrap()), (json!(2), json!("3")));
}

#[test]
fn other_documents_of_the_file_keep_their_bytes() {
    let first = "# The team's settings.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}   # odd   spacing\n";
    let second = "# Kept: above the object.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata: {x: \"1\"}\n";
    let third = "{\"apiVersion\": \"v1\",  \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"c\"}}\n# The end.\n";
    let folder = folder(&[("all.yaml", &format!("---\n{first}---\n{second}---\n{third}"))]);
    let target = open(&folder);

    apply(&target, &config_map("b", json!({"x": "2"}))).unwrap();
    let now = text(&folder, "all.yaml");
    assert!(now.starts_with(&format!("---\n{first}---\n# Kept: above the object.\napiVersion: v1\n")), "{now}");
    assert!(now.ends_with(&format!("---\n{third}")), "{now}");
    assert_eq!(read(&target, &config_map("b", json!({}))).unwrap().raw.value()["data"], json!({"x": "2"}));

    apply(&target, &config_map("c", json!({"x": "3"}))).unwrap();
    let now = text(&folder, "all.yaml");
    assert!(now.starts_with(&format!("---\n{first}---\n")) && now.ends_with("}\n# The end.\n"), "{now}");
    assert_eq!(read(&open(&folder), &config_map("c", json!({}))).unwrap().raw.value()["data"], json!({"x": "3"}));
}

#[test]
fn a_document_beside_its_marker_and_without_a_last_newline_is_replaced() {
    let map = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
    let folder =
        folder(&[("all.yaml", &format!("--- {}\r\n--- # two\n{}\n...\n--- {}", map("a"), map("b"), map("c")))]);
    let target = open(&folder);
    for name in ["a", "b", "c"] {
        apply(&target, &config_map(name, json!({"x": "1"}))).unwrap();
    }
    let target = open(&folder);
    for name in ["a", "b", "c"] {
        assert_eq!(read(&target, &config_map(name, json!({}))).unwrap().raw.value()["data"], json!({"x": "1"}));
    }
    assert!(text(&folder, "all.yaml").contains("--- # two\n"));
}

#[test]
fn a_member_of_a_list_is_replaced_in_it() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [config_map("a", json!({"x": "1"})), config_map("b", json!({}))]});
    let folder = folder(&[("list.json", &list.to_string())]);
    let target = open(&folder);
    apply(&target, &config_map("a", json!({"x": "2"}))).unwrap();
    let now: Value = serde_json::from_str(&text(&folder, "list.json")).unwrap();
    assert_eq!(now["items"][0]["data"], json!({"x": "2"}));
    assert_eq!(now["items"][1], list["items"][1]);
}

#[test]
fn strings_that_yaml_would_read_as_other_types_stay_strings() {
    let odd = json!({
        "a": "yes", "b": "0777", "c": "1_000", "d": "12:30:45", "e": "~", "f": "<<", "g": "=", "h": "2001-01-01",
        "i": "line\n# no comment\n--- \nend", "j": "\u{1}\u{85}\u{2028}\u{feff}", "k": " spaces ", "l": "0x1F",
        "m": "1e3", "n": ".inf", "o": "- a", "p": "a: b", "q": "trailing\n\n", "on": "off", "y": "n", "1_0": "x",
    });
    let folder = folder(&[]);
    apply(&open(&folder), &config_map("odd", odd.clone())).unwrap();
    let again = read(&open(&folder), &config_map("odd", json!({}))).unwrap();
    assert_eq!(again.raw.value()["data"], odd);
    assert!(text(&folder, "configmap_default_odd.yaml").starts_with("apiVersion: v1\n"));
}

#[test]
fn any_change_since_the_read_stops_the_apply() {
    let file = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: \"7\"}\ndata: {x: \"1\"}\n";
    let folder = folder(&[("a.yaml", file)]);
    let path = folder.path().join("a.yaml");
    let target = open(&folder);
    let desired = config_map("a", json!({"x": "3"}));
    let seen = pin(read(&target, &desired).as_ref());

    // The same length, and the version was not incremented.
    fs::write(&path, file.replace("x: \"1\"", "x: \"2\"")).unwrap();
    assert_eq!(apply_pinned(&target, &desired, &seen).unwrap_err(), ApplyError::Changed);
    assert_eq!(apply_pinned(&target, &desired, &WritePrecondition::Absent).unwrap_err(), ApplyError::Changed);
    fs::remove_file(&path).unwrap();
    assert_eq!(apply_pinned(&target, &desired, &seen).unwrap_err(), ApplyError::Changed);
    assert_eq!(file_names(folder.path()), [""; 0]);

    // The same object again, in another file: nothing has changed.
    fs::write(folder.path().join("b.yaml"), file).unwrap();
    apply_pinned(&target, &desired, &seen).unwrap();
    assert_eq!(file_names(folder.path()), ["b.yaml"]);
}

#[test]
fn an_object_that_appeared_since_the_read_is_not_overwritten() {
    let folder = folder(&[]);
    let target = open(&folder);
    fs::write(folder.path().join("new.yaml"), CRD).unwrap();
    assert_eq!(apply_pinned(&target, &crd(&["v1"]), &WritePrecondition::Absent).unwrap_err(), ApplyError::Changed);
    assert_eq!(text(&folder, "new.yaml"), CRD);
}

#[test]
fn a_live_crd_is_read_as_the_server_would_return_it() {
    let folder = folder(&[("crd.yaml", CRD)]);
    let live = read(&open(&folder), &crd(&["v1"])).unwrap().raw.value();
    assert_eq!(live["spec"]["names"]["listKind"], "SampleList");
    assert_eq!(live["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(live["status"]["storedVersions"], json!(["v1"]));
}

#[test]
fn stored_versions_grow_and_invalid_updates_are_refused() {
    let folder = folder(&[]);
    let target = open(&folder);
    let stored = |live: LiveObject| live.raw.value()["status"]["storedVersions"].clone();
    assert_eq!(stored(apply(&target, &crd(&["v1alpha1"])).unwrap()), json!(["v1alpha1"]));
    assert_eq!(stored(apply(&target, &crd(&["v1alpha1", "v1"])).unwrap()), json!(["v1alpha1", "v1"]));

    let name = "customresourcedefinition.apiextensions.k8s.io_samples.test.example.com.yaml";
    let before = text(&folder, name);
    assert_eq!(
        refusal(apply(&target, &crd(&["v1"]))),
        "CustomResourceDefinition.apiextensions.k8s.io \"samples.test.example.com\" is invalid: \
         status.storedVersions[0]: Invalid value: \"v1alpha1\": missing from spec.versions; v1alpha1 was previously a \
         storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted \
         in v1alpha1 and removes v1alpha1 from status.storedVersions"
    );
    let mut cluster = crd(&["v1alpha1", "v1"]);
    cluster["spec"]["scope"] = "Cluster".into();
    assert!(refusal(apply(&target, &cluster)).ends_with("spec.scope: Invalid value: \"Cluster\": field is immutable"));
    let mut ruled = crd(&["v1alpha1", "v1"]);
    ruled["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"] = json!({"a": {"minLength": 1}});
    assert!(
        refusal(apply(&target, &ruled)).ends_with(
            "spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for \
             specified object fields"
        ),
        "{}",
        refusal(apply(&target, &ruled))
    );
    assert_eq!(text(&folder, name), before);
}

#[test]
fn a_field_of_another_manager_is_a_conflict() {
    let folder = folder(&[(
        "a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  managedFields:\n  - manager: kubectl\n    \
         operation: Update\n    apiVersion: v1\n    fieldsV1: {\"f:data\": {\"f:x\": {}}}\ndata: {x: \"1\"}\n",
    )]);
    let target = open(&folder);
    let conflict = FieldConflict::new("kubectl", ManagerOperation::Update, ".data.x");
    assert_eq!(apply(&target, &config_map("a", json!({"x": "2"}))).unwrap_err(), ApplyError::Conflict(vec![conflict]));
    apply(&target, &config_map("a", json!({"y": "2"}))).unwrap();
}

#[test]
fn a_secret_keeps_string_data_as_data_and_the_record_as_it_was_written() {
    let folder = folder(&[]);
    let target = open(&folder);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"x": "hi"}});
    let first = apply(&target, &secret).unwrap();
    let live = first.raw.value();
    assert_eq!((&live["data"], live.get("stringData")), (&json!({"x": "aGk="}), None));
    assert_eq!(live["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:stringData": {"f:x": {}}}));
    assert_eq!(pin(Some(&apply(&target, &secret).unwrap())), pin(Some(&first)));
}

#[test]
fn built_in_kinds_and_those_of_the_crds_are_discovered() {
    let folder = folder(&[("sub/crd.yaml", CRD)]);
    let target = open(&folder);
    let gvk = |group: &str, version: &str, kind: &str| Gvk {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    };
    let (deployment, sample) = (gvk("apps", "v1", "Deployment"), gvk("test.example.com", "v1", "Sample"));
    let unknown = [
        gvk("apps", "v1beta1", "Deployment"),
        gvk("test.example.com", "v1alpha1", "Sample"),
        gvk("other.example.com", "v1", "Sample"),
    ];
    let kinds: BTreeSet<Gvk> = unknown.into_iter().chain([deployment.clone(), sample.clone()]).collect();
    let found = target.discover(&kinds);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&deployment, &sample]);
    assert_eq!((found[&sample].plural.as_str(), found[&sample].namespaced), ("samples", true));

    let mut unserved = crd(&["v1alpha1", "v1"]);
    unserved["spec"]["versions"][1]["served"] = false.into();
    apply(&target, &unserved).unwrap();
    assert_eq!(target.discover(&kinds).into_keys().map(|gvk| gvk.version).collect::<Vec<_>>(), ["v1", "v1alpha1"]);
}

#[test]
fn an_object_is_the_same_at_any_version() {
    let sample = "apiVersion: test.example.com/v1alpha1\nkind: Sample\nmetadata: {name: s}\n";
    let folder = folder(&[("crd.yaml", CRD), ("s.yaml", sample)]);
    let desired = json!({
        "apiVersion": "test.example.com/v1", "kind": "Sample", "metadata": {"name": "s", "namespace": "default"}
    });
    let live = read(&open(&folder), &desired).unwrap();
    assert_eq!(live.raw.value()["apiVersion"], "test.example.com/v1");
}

#[cfg(unix)]
#[test]
fn the_file_of_a_new_secret_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder(&[]);
    let target = open(&folder);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}});
    apply(&target, &secret).unwrap();
    apply(&target, &config_map("c", json!({}))).unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("secret_default_s.yaml"), 0o600);
    // By the umask, like any other new file.
    fs::write(folder.path().join("usual"), "").unwrap();
    assert_eq!(mode("configmap_default_c.yaml"), mode("usual"));
}

#[test]
fn a_write_of_another_process_between_two_applies_is_noticed() {
    let folder = folder(&[]);
    let (target, other) = (open(&folder), open(&folder));
    apply(&target, &config_map("first", json!({}))).unwrap();
    apply(&other, &config_map("a", json!({"x": "1"}))).unwrap();
    let mine = config_map("a", json!({"x": "2"}));
    assert_eq!(apply_pinned(&target, &mine, &WritePrecondition::Absent).unwrap_err(), ApplyError::Changed);

    // Changed in place, with the same length: the folder's own time does not change.
    let seen = pin(read(&target, &mine).as_ref());
    let path = folder.path().join("configmap_default_a.yaml");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"1\"", "\"3\"")).unwrap();
    assert_eq!(apply_pinned(&target, &mine, &seen).unwrap_err(), ApplyError::Changed);

    // Removed.
    let seen = pin(read(&target, &mine).as_ref());
    fs::remove_file(&path).unwrap();
    assert_eq!(apply_pinned(&target, &mine, &seen).unwrap_err(), ApplyError::Changed);
    apply_pinned(&target, &mine, &WritePrecondition::Absent).unwrap();
}

#[test]
fn a_file_with_the_usual_name_of_another_object_is_left_alone() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    let folder = folder(&[("ConfigMap_default_a.yaml", other)]);
    apply(&open(&folder), &config_map("a", json!({}))).unwrap();
    assert_eq!(text(&folder, "ConfigMap_default_a.yaml"), other);
    assert_eq!(file_names(folder.path()), ["ConfigMap_default_a.yaml", "configmap_default_a~2.yaml"]);
}

#[test]
fn writes_to_one_file_from_many_threads_all_arrive() {
    let documents: Vec<String> =
        (0..8).map(|n| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{n}}}\n")).collect();
    let folder = folder(&[("all.yaml", &documents.join("---\n"))]);
    let target = open(&folder);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let target = &target;
            scope.spawn(move || {
                apply(target, &config_map(&format!("m{n}"), json!({"n": n.to_string()}))).unwrap();
                apply(target, &config_map(&format!("new{n}"), json!({"n": n.to_string()}))).unwrap();
            });
        }
    });
    let target = open(&folder);
    for n in 0..8 {
        for name in [format!("m{n}"), format!("new{n}")] {
            let live = read(&target, &config_map(&name, json!({}))).unwrap();
            assert_eq!(live.raw.value()["data"]["n"], n.to_string());
        }
    }
}

/// The built binary, isolated from the environment of the tests.
fn gantry(work: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gantry"))
        .args(args)
        .env_clear()
        .env("HOME", work)
        .current_dir(work)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), text)
}

#[test]
fn thousands_of_objects_are_created_and_then_unchanged() {
    const OBJECTS: usize = 3000;
    let folder = folder(&[("cluster/.keep", "")]);
    let manifests: String = (0..OBJECTS)
        .map(|number| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m{number}\ndata: {{a: b}}\n"))
        .collect();
    fs::write(folder.path().join("all.yaml"), manifests).unwrap();
    let deploy = ["deploy", "-f", "all.yaml", "--target", "dir:cluster"];
    let (code, said) = gantry(folder.path(), &deploy);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(file_names(&folder.path().join("cluster")).len(), 1 + OBJECTS);
    let (code, said) = gantry(folder.path(), &deploy);
    assert!(code == Some(0) && said.contains("unchanged 3000 (3000 ConfigMap)"), "{code:?} {said}");
}

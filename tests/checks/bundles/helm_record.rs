//! Objects that OLM v1 has written with Helm, judged by the record of the release: Helm merges its manifests, the new
//! ones, and the live objects.

use super::*;
use crate::support::create_as;
use crate::support::helm::OlmRelease;

const OPERATOR_CONTROLLER: &str = "operator-controller";
const FIELDS: &str = "spec: {type: object, properties: {first: {type: string}}}";

/// A release that OLM has installed in the namespace of the test.
struct InstalledRelease {
    bed: Bed,
}

impl InstalledRelease {
    fn new(objects: &[Value]) -> Self {
        let bed = Bed::with_namespace();
        let namespace = bed.names.namespace.clone();
        control_plane().apply_yaml(&bed.crd(FIELDS));
        control_plane().wait_until_served(&bed.crd_path());
        let mut installed = objects.to_vec();
        for object in &mut installed {
            object["metadata"]["namespace"] = namespace.as_str().into();
        }
        for status in ["superseded", "failed"] {
            let revision = if status == "failed" { 3 } else { 1 };
            let release =
                OlmRelease { name: &namespace, namespace: &namespace, revision, status, objects: &[], chunks: 1 };
            release.record(control_plane());
        }
        let release = OlmRelease {
            name: &namespace,
            namespace: &namespace,
            revision: 2,
            status: "deployed",
            objects: &installed,
            chunks: 3,
        };
        release.record(control_plane());
        for mut object in installed {
            object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
            object["metadata"]["annotations"] =
                json!({"meta.helm.sh/release-name": namespace, "meta.helm.sh/release-namespace": namespace});
            create_as(control_plane(), OPERATOR_CONTROLLER, &object);
        }
        InstalledRelease { bed }
    }

    /// What somebody else changes in an object.
    fn edit(&self, object: &Value, manager: &str, change: &Value) {
        let mut at = object.clone();
        at["metadata"]["namespace"] = self.bed.names.namespace.as_str().into();
        let path = control_plane().path_of(&at);
        let (code, answer) = control_plane().patch(&format!("{path}?fieldManager={manager}"), change);
        assert_eq!(code, 200, "{answer:#}");
    }

    /// Runs the command for a bundle with these objects.
    fn run(&self, command: &str, objects: &[Value], more: &[&str]) -> Output {
        let files: Vec<(String, String)> =
            objects.iter().enumerate().map(|(index, object)| (format!("o{index}.json"), object.to_string())).collect();
        let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
        bundle(&self.bed, "new", &self.bed.crd(FIELDS), &files);
        let arguments = [&[command, "-n", &self.bed.names.namespace, "-f", "new"], more].concat();
        self.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run()
    }

    fn check(&self, objects: &[Value]) -> Output {
        self.run("check", objects, &["--preflight=AdmissionDryRun"])
    }
}

fn service(ports: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dns"},
        "spec": {"selector": {"app": "dns"}, "ports": ports}})
}

fn fixed(kind: &str, field: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "fixed"}, "immutable": true, field: data})
}

#[test]
fn helm_tells_ports_apart_by_their_number_alone() {
    let (udp, tcp) =
        (json!({"port": 53, "protocol": "UDP", "name": "u"}), json!({"port": 53, "protocol": "TCP", "name": "t"}));
    let release = InstalledRelease::new(&[service(&json!([udp, tcp]))]);
    // The patch deletes both, and the server refuses a Service without ports.
    release.check(&[service(&json!([tcp]))]).code(3).stdout_contains("spec.ports: Required value");
    release.check(&[service(&json!([udp, tcp]))]).code(0);
}

#[test]
fn a_key_that_leaves_string_data_stays_in_the_secret() {
    let both = json!({"a": "1", "b": "2"});
    let release = InstalledRelease::new(&[fixed("Secret", "stringData", &both)]);
    release.check(&[fixed("Secret", "stringData", &json!({"a": "1"}))]).code(0);
    let data = fixed("Secret", "data", &json!({"a": "MQ=="}));
    release.check(std::slice::from_ref(&data)).code(0);
    let release = InstalledRelease::new(&[fixed("Secret", "data", &json!({"a": "MQ==", "b": "MQ=="}))]);
    release.check(&[data]).code(3).stdout_contains("immutable").contains_nowhere("record of the Helm release");
}

#[test]
fn what_the_bundle_drops_is_removed_although_others_own_it_too() {
    let old = fixed("ConfigMap", "data", &json!({"a": "1", "b": "2"}));
    let release = InstalledRelease::new(std::slice::from_ref(&old));
    release.edit(&old, "other", &json!({"metadata": {"labels": {"theirs": "1"}}}));
    let shared = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fixed"}, "data": {"b": "2"}});
    let path = format!("/api/v1/namespaces/{}/configmaps/fixed", release.bed.names.namespace);
    assert_eq!(control_plane().server_side_apply(&path, "other", &shared).0, 200);
    let dropped = fixed("ConfigMap", "data", &json!({"a": "1"}));
    release.check(&[dropped]).code(3).stdout_contains("immutable");
    let output = release.run("diff", &[old], &[]);
    output.code(0).contains_nowhere("theirs");
}

#[test]
fn a_custom_resource_keeps_what_only_others_have_changed() {
    let bed_kind = |bed: &Bed, first: &str| {
        json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample", "metadata": {"name": "mine"},
            "spec": {"first": first}})
    };
    let release = InstalledRelease::new(&[]);
    let old = bed_kind(&release.bed, "old");
    let name = format!("{}-cr", release.bed.names.namespace);
    let namespace = release.bed.names.namespace.clone();
    let mut installed = old.clone();
    installed["metadata"]["namespace"] = namespace.as_str().into();
    let record = OlmRelease {
        name: &name,
        namespace: &namespace,
        revision: 1,
        status: "deployed",
        objects: std::slice::from_ref(&installed),
        chunks: 1,
    };
    record.record(control_plane());
    installed["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace});
    installed["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    create_as(control_plane(), OPERATOR_CONTROLLER, &installed);
    release.edit(&old, "kubectl-edit", &json!({"spec": {"first": "edited"}}));
    release.run("diff", std::slice::from_ref(&old), &[]).code(0).contains_nowhere("edited");
    let changed = bed_kind(&release.bed, "new");
    release.run("diff", &[changed], &[]).code(0).stdout_contains("edited").stdout_contains("new");
}

#[test]
fn the_objects_that_leave_a_bundle_are_named() {
    let object = |name: &str, annotations: &Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}});
    let none = json!({});
    let (stays, leaves, gone) = (object("stays", &none), object("leaves", &none), object("gone", &none));
    let release = InstalledRelease::new(&[stays.clone(), leaves, gone.clone(), object("kept", &none)]);
    let keep = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}});
    release.edit(&object("kept", &none), "kubectl-annotate", &keep);
    let namespace = &release.bed.names.namespace;
    assert_eq!(control_plane().delete(&format!("/api/v1/namespaces/{namespace}/configmaps/gone")).0, 200);
    let line = format!("OLM deletes: configmap/leaves -n {namespace}\n");
    for command in ["check", "diff"] {
        let output = release.run(command, std::slice::from_ref(&stays), &[]);
        output.code(0).stdout_contains(&line).contains_nowhere("configmap/gone").contains_nowhere("configmap/kept");
    }
    let output = release.run("check", &[stays], &["-o", "json"]);
    let expected = json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "leaves"}]);
    assert_eq!(output.report()["deletedByOlm"], expected);
}

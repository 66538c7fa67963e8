//! `check` ends like `deploy` before its first write: with the same exit code, and neither writes anything.

use crate::support::{Bed, Output, Proxy, When, control_plane};
use serde_json::{Value, json};

/// Runs `check`, `deploy --dry-run` and `deploy` on these objects; all of them end in the same way and write nothing.
fn alike(bed: &Bed, objects: &[Value], flags: &[&str], code: i32) -> Output {
    let proxy = Proxy::start(control_plane());
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
    let run = |command: &[&str]| {
        let arguments = [command, &["-f", "manifests.yaml"], flags].concat();
        bed.gantry(proxy.kubeconfig("admin"), &arguments).run()
    };
    let check = run(&["check"]);
    check.code(code);
    run(&["deploy", "--dry-run"]).code(code);
    run(&["deploy"]).code(code);
    assert!(proxy.writes().is_empty());
    check
}

fn object(bed: &Bed, api_version: &str, kind: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}});
    let namespaced = !matches!(kind, "StorageClass" | "PersistentVolume" | "PriorityClass" | "ClusterRoleBinding");
    match namespaced {
        true => object["metadata"]["namespace"] = bed.names.namespace.as_str().into(),
        // Names of cluster-scoped objects are shared by all tests.
        false => object["metadata"]["name"] = bed.names.namespace.as_str().into(),
    }
    for (key, value) in rest.as_object().expect("a map") {
        object[key] = value.clone();
    }
    object
}

fn config_map(bed: &Bed, value: &str) -> Value {
    object(bed, "v1", "ConfigMap", &json!({"data": {"key": value}}))
}

#[test]
fn a_field_conflict_ends_check_and_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let live = config_map(&bed, "theirs");
    assert_eq!(cp.server_side_apply(&cp.path_of(&live), "other-tool", &live).0, 201);
    let ours = config_map(&bed, "ours");
    let run = alike(&bed, std::slice::from_ref(&ours), &[], 3);
    run.stdout_contains("field manager \"other-tool\" owns fields that the manifests change");
    assert_eq!(alike(&bed, std::slice::from_ref(&ours), &["-o", "json"], 3).report()["outcome"], "blocked");
    // The flags that affect the result are those of deploy.
    bed.write("manifests.yaml", &ours.to_string());
    let check = |flags: &[&str]| {
        bed.gantry(cp.kubeconfig("admin"), &[&["check", "-f", "manifests.yaml"], flags].concat()).run()
    };
    check(&["--force-conflicts"]).code(0);
    check(&["--field-manager", "other-tool"]).code(0);
}

#[test]
fn an_unserved_kind_ends_check_and_deploy_at_any_severity() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let unknown = object(&bed, &format!("{}/v1", bed.names.group), "Sample", &json!({}));
    let objects = [config_map(&bed, "x"), unknown];
    alike(&bed, &objects, &[], 3);
    alike(&bed, &objects, &["--preflight", "APIAvailability"], 3);
    alike(&bed, &objects, &["--preflight", "APIAvailability", "--warn-only"], 3);
}

/// All members would count as removed from the manifests.
#[test]
fn an_app_without_any_object_is_a_usage_error() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    std::fs::create_dir(bed.folder.path().join("empty")).expect("a folder");
    bed.write("comment.yaml", "# nothing\n");
    bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\n");
    let namespace = bed.names.namespace.as_str();
    for command in ["check", "deploy"] {
        for file in ["empty", "comment.yaml", "gantry.yaml"] {
            let run = |flags: &[&str]| {
                let arguments = [&[command, "-f", file, "-n", namespace], flags].concat();
                bed.gantry(control_plane().kubeconfig("admin"), &arguments).run()
            };
            run(&["-a", "shop"]).code(2).stderr_contains(&format!("gantry delete -a shop -n {namespace}"));
            run(&[]).code(1);
        }
        // A file that cannot be read is not an empty one.
        let arguments = [command, "-f", "empty", "-f", "missing.yaml", "-n", namespace, "-a", "shop"];
        bed.gantry(control_plane().kubeconfig("admin"), &arguments).run().code(1);
    }
}

#[test]
fn a_missing_or_terminating_namespace_ends_check_and_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    let objects = [object(&bed, "v1", "Secret", &json!({})), config_map(&bed, "x")];
    let run = alike(&bed, &objects, &[], 3);
    run.stdout_contains(&format!("there is no namespace \"{}\" for", bed.names.namespace))
        .stdout_contains("configmap/one");
    alike(&bed, &objects, &["--preflight", "AdmissionDryRun"], 3);
    alike(&bed, &objects, &["--preflight", "AdmissionDryRun", "--warn-only"], 3);

    // No controller empties it in this test, so the deletion does not finish.
    cp.apply_yaml(&bed.namespace());
    assert_eq!(cp.delete(&format!("/api/v1/namespaces/{}", bed.names.namespace)).0, 200);
    alike(&bed, &objects, &[], 3).stdout_contains("is being deleted, and nothing can be created in it");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace}});
    alike(&bed, &[namespace, objects[1].clone()], &[], 3).stdout_contains("is being deleted");
}

/// Every object would be refused when it is written; the ConfigMap before it would be written.
#[test]
fn a_value_that_cannot_be_parsed_ends_check_and_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let of_pod = |container: Value| json!({"spec": {"containers": [container]}});
    let crd = |spec: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("samples.{}", bed.names.group)}, "spec": spec})
    };
    let spec = json!({"group": bed.names.group, "scope": "Namespaced", "names": {"plural": "samples", "kind": "Sample"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]});
    let with = |pointer: &str, key: &str, value: Value| {
        let mut spec = spec.clone();
        spec.pointer_mut(pointer).expect("a place in the spec")[key] = value;
        crd(spec)
    };
    let pod = |container: Value| object(&bed, "v1", "Pod", &of_pod(container));
    let port = json!({"containerPort": 80});
    for (refused, message) in [
        (
            object(&bed, "v1", "Service", &json!({"spec": {"prts": [{"port": 80}]}})),
            ".spec.prts: field not declared in schema",
        ),
        (
            pod(json!({"name": "c", "image": "i", "env": [{"name": "a", "value": 1}]})),
            r#".spec.containers[name="c"].env[name="a"].value: expected string"#,
        ),
        (
            pod(json!({"name": "c", "image": "i", "ports": [port, port]})),
            r#".spec.containers[name="c"].ports: duplicate entries"#,
        ),
        (object(&bed, "v1", "Secret", &json!({"data": []})), ".data: expected map"),
        (
            object(&bed, "rbac.authorization.k8s.io/v1", "Role", &json!({"rules": [{"verb": ["get"]}]})),
            ".rules[0].verb: field not declared in schema",
        ),
        (with("", "version", json!("v1")), ".spec.version: field not declared in schema"),
        (
            with("/versions/0/schema/openAPIV3Schema", "x-list-type", json!("map")),
            ".spec.versions[0].schema.openAPIV3Schema.x-list-type: field not declared in schema",
        ),
        (
            with(
                "/versions/0/schema/openAPIV3Schema",
                "x-kubernetes-validations",
                json!([{"rule": "true"}, {"rule": "true"}]),
            ),
            ".spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations: duplicate entries",
        ),
        (
            object(
                &bed,
                "v1",
                "ConfigMap",
                &json!({"metadata": {"name": "labelled", "namespace": bed.names.namespace,
                "labels": {"a": true}}}),
            ),
            ".metadata.labels.a: expected string",
        ),
    ] {
        let objects = [config_map(&bed, "x"), refused];
        // Without the check that reports it in CRDs.
        let run = alike(&bed, &objects, &["--preflight", "APIAvailability"], 3);
        run.stdout_contains(&format!("the API server would refuse it: {message}"));
        if message.starts_with(".spec.prts") {
            run.stdout_contains("did you mean \"ports\"?");
        }
        if objects[1]["kind"] == "CustomResourceDefinition" {
            let run = alike(&bed, &objects, &["--preflight", "CRDUpgradeSafety"], 3);
            run.stdout_contains(&format!("the API server cannot parse this CRD: {message}"));
        }
    }
    // Values of these types can be several scalars, and these fields anything.
    let fine = pod(json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"port": 80}}, "ports": [port, {"containerPort": 80, "protocol": "UDP"}]}));
    bed.write("manifests.yaml", &fine.to_string());
    bed.gantry(cp.kubeconfig("admin"), &["check", "-f", "manifests.yaml"]).run().code(0);
}

#[test]
fn invalid_names_labels_and_data_end_check_and_deploy() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let map = |name: &str, rest: Value| {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": bed.names.namespace}});
        for (key, value) in rest.as_object().expect("fields") {
            match key.as_str() {
                "metadata" => map["metadata"].as_object_mut().unwrap().extend(value.as_object().unwrap().clone()),
                _ => map[key] = value.clone(),
            }
        }
        map
    };
    for (refused, said) in [
        (map("Bad_Name", json!({})), "metadata.name: a lowercase RFC 1123 subdomain must"),
        (map("a", json!({"metadata": {"labels": {"a b": "c"}}})), "metadata.labels.a b: name part must consist"),
        (map("a", json!({"metadata": {"labels": {"a": "x y"}}})), "metadata.labels.a: a valid label must be"),
        (map("a", json!({"metadata": {"annotations": {"/a": "x"}}})), "metadata.annotations./a: prefix part must"),
        (map("a", json!({"data": {"a key": "x"}})), "data.a key: a key consists of"),
        (map("a", json!({"kind": "Secret", "data": {"k": "geheim!"}})), "data.k: it is not base64"),
    ] {
        let run = alike(&bed, &[config_map(&bed, "x"), refused], &["--preflight", "APIAvailability"], 3);
        run.stdout_contains("the API server would refuse it: ").stdout_contains(said).contains_nowhere("geheim");
    }
    // What the server takes.
    let fine = json!({"metadata": {"labels": {"example.com/a_B": "", "b": "x.y-Z"}, "annotations": {"a.b/C": "x y"}},
        "data": {"a.b-C_d": "x"}, "binaryData": {"b": "AA==\n"}});
    let objects = [map("a.b", fine), map("b", json!({"kind": "Secret", "data": {"k": "", "l": "aGk="}}))];
    bed.write("manifests.yaml", &objects.map(|object| object.to_string()).join("\n---\n"));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0).stdout_contains("2 created");
}

#[test]
fn a_kind_without_a_published_schema_is_a_notice() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &config_map(&bed, "1").to_string());
    let check = |kubeconfig| bed.gantry(kubeconfig, &["check", "-f", "manifests.yaml"]).run();
    let notice = "notice: the server does not return the schemas of v1: ";
    check(cp.kubeconfig("admin")).code(0).contains_nowhere(notice);
    let proxy = Proxy::start(cp);
    let refusal =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403});
    proxy.answer(When::new("GET", "/openapi/v3/api/v1"), 403, refusal);
    check(proxy.kubeconfig("admin")).code(0).stderr_contains(notice);
}

/// The server's messages for immutable fields, for each kind that has some.
#[test]
fn printed_kubectl_commands_contain_the_chosen_context() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let class = |provisioner: &str| {
        format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: c-{}}}\nprovisioner: {provisioner}\n",
            bed.names.namespace
        )
    };
    bed.write("manifests.yaml", &class("a.example.com"));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &class("b.example.com"));
    let hint = "Give kubectl the same --context";
    let refused = bed.deploy(cp.kubeconfig("admin"), &["--context", "test"]).run();
    refused.code(3).stdout_contains("kubectl delete storageclass").stdout_contains(hint);
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(3).contains_nowhere(hint);
    cp.delete(&format!("/apis/storage.k8s.io/v1/storageclasses/c-{}", bed.names.namespace));
}

#[test]
fn an_immutable_field_ends_check_and_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let pod = |image: &str| json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"}});
    let always =
        json!({"metadata": {"labels": {"app": "x", "b": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let workload = |label: &str| json!({"spec": {"selector": {"matchLabels": {label: if label == "app" { "x" } else { "b" }}}, "template": always}});
    let rbac = "rbac.authorization.k8s.io";
    let role = |kind: &str, name: &str| json!({"roleRef": {"apiGroup": rbac, "kind": kind, "name": name}});
    let claim = |class: &str| json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}});
    let set = |service: &str| json!({"spec": {"serviceName": service, "selector": {"matchLabels": {"app": "x"}}, "template": always}});
    let volume = |path: &str| json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": path}}});
    let cases = [
        ("batch/v1", "Job", json!({"spec": {"template": pod("a")}}), json!({"spec": {"template": pod("b")}})),
        ("apps/v1", "Deployment", workload("app"), workload("b")),
        ("apps/v1", "DaemonSet", workload("app"), workload("b")),
        ("apps/v1", "ReplicaSet", workload("app"), workload("b")),
        ("apps/v1", "StatefulSet", set("a"), set("b")),
        (
            "v1",
            "Service",
            json!({"spec": {"ports": [{"port": 80}]}}),
            json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        ),
        ("v1", "PersistentVolumeClaim", claim("a"), claim("b")),
        ("v1", "PersistentVolume", volume("/a"), volume("/b")),
        (
            "v1",
            "ConfigMap",
            json!({"immutable": true, "data": {"a": "1"}}),
            json!({"immutable": true, "data": {"a": "2"}}),
        ),
        (
            "v1",
            "Secret",
            json!({"immutable": true, "stringData": {"a": "1"}}),
            json!({"immutable": true, "stringData": {"a": "2"}}),
        ),
        (
            "v1",
            "Secret",
            json!({"metadata": {"name": "typed", "namespace": bed.names.namespace}, "type": "a/b"}),
            json!({"metadata": {"name": "typed", "namespace": bed.names.namespace}, "type": "a/c"}),
        ),
        (
            "v1",
            "Pod",
            json!({"spec": pod("a")["spec"]}),
            json!({"spec": {"containers": [{"name": "d", "image": "a"}], "restartPolicy": "Never"}}),
        ),
        ("storage.k8s.io/v1", "StorageClass", json!({"provisioner": "a"}), json!({"provisioner": "b"})),
        ("scheduling.k8s.io/v1", "PriorityClass", json!({"value": 1}), json!({"value": 2})),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", role("Role", "a"), role("Role", "b")),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", role("ClusterRole", "a"), role("ClusterRole", "b")),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": []}),
            json!({"addressType": "IPv6", "endpoints": []}),
        ),
    ];
    let mut missed = Vec::new();
    for (api_version, kind, before, after) in &cases {
        let live = object(&bed, api_version, kind, before);
        let (status, answer) = cp.server_side_apply(&cp.path_of(&live), "gantry", &live);
        assert!(status < 300, "{kind}: {answer}");
        let changed = object(&bed, api_version, kind, after);
        bed.write("manifests.yaml", &changed.to_string());
        let check = |flags: &[&str]| {
            bed.gantry(cp.kubeconfig("admin"), &[&["check", "-f", "manifests.yaml"], flags].concat()).run()
        };
        let run = check(&["--force-conflicts"]);
        let report = check(&["--force-conflicts", "--preflight", "AdmissionDryRun", "-o", "json"]).report();
        let findings = report["checks"][0]["findings"].as_array().expect("findings").clone();
        let rules: Vec<&str> = findings.iter().filter_map(|finding| finding["rule"].as_str()).collect();
        let helps = findings
            .iter()
            .all(|finding| finding["help"].as_str().is_some_and(|help| help.contains("revert the change, or ")));
        if !run.stdout.contains("revert the change, or ")
            || rules.is_empty()
            || rules.iter().any(|rule| *rule != "ImmutableField")
            || !helps
        {
            missed.push(format!("{kind}: {rules:?} {report:#} {run}"));
            continue;
        }
        alike(&bed, &[changed], &["--force-conflicts"], 3);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

//! `DeletionSafety`: objects that leave an app and what is deleted with them, on a real API server.

use crate::support::{Bed, Output, control_plane, eventually};
use gantry_core::finding::Severity;
use gantry_preflight::deletion_safety::ENTRY;
use serde_json::{Value, json};

/// `gantry` on the bed's app.
fn app(bed: &Bed, arguments: &[&str]) -> Output {
    let namespace = ["-a", "shop", "-n", &bed.names.namespace];
    bed.gantry(control_plane().kubeconfig("admin"), &[arguments, &namespace].concat()).run()
}

fn rules(output: &Output) -> Vec<(String, String)> {
    let report = output.report();
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == "DeletionSafety").expect("DeletionSafety runs");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    check["findings"].as_array().expect("findings").iter().map(|f| (text(&f["rule"]), text(&f["message"]))).collect()
}

/// An example with the bed's names.
fn own(bed: &Bed, text: &str) -> String {
    let own = &bed.names.namespace;
    let text = text.replace("test.example.com", &bed.names.group).replace("test-left", &format!("{own}-left"));
    let text = text.replace("namespace: default", &format!("namespace: {own}"));
    ["hook", "data"].iter().fold(text, |text, name| {
        text.replace(&format!("ame: {name}"), &format!("ame: {own}-{name}"))
            .replace(&format!("{name}."), &format!("{own}-{name}."))
    })
}

#[test]
fn each_rule_reports_its_example_and_nothing_without_the_other_object() {
    for doc in (ENTRY.rules)() {
        let example = doc.example();
        let (left, other) = (example.part("Deleted"), example.part("Live beside it"));
        // For these, the other object is a member of the app, too: see below.
        if matches!(doc.name, "ExtensionDeletionLosesObjects" | "FinalizerWillHang" | "ChangedByOther") {
            continue;
        }
        let blocks = doc.severity() == Severity::Error;
        let bed = Bed::new();
        control_plane().apply_yaml(&bed.namespace());
        bed.write("manifests.yaml", &format!("{}---\n{}", bed.config_map("stays", "x"), own(&bed, left)));
        app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0);
        bed.write("manifests.yaml", &bed.config_map("stays", "x"));
        let check = || app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes", "-o", "json"]);
        assert_eq!(rules(check().code(0)), [], "{}", doc.name);

        let other = control_plane().apply_yaml(&own(&bed, other));
        let output = check();
        let found = rules(output.code(if blocks { 3 } else { 0 }));
        assert_eq!(found.iter().map(|(rule, _)| rule.as_str()).collect::<Vec<_>>(), [doc.name], "{output}");
        // The check ignores a deploy that deletes nothing.
        app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml", "--prune=no"]).code(0);
        if blocks {
            app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml", "--prune=yes"]).code(3);
        }
        for object in other {
            control_plane().delete(&control_plane().path_of(&object));
        }
        // If it was not deleted at once, it has a finalizer that no controller of this test removes.
        if !matches!(doc.name, "VolumeDeletionLosesData") {
            eventually("the check to pass", || rules(&check()).is_empty().then_some(()));
        }
        app(&bed, &["apps", "forget", "--yes"]).code(0);
    }
}

#[test]
fn a_crd_is_deleted_only_without_foreign_objects() {
    let bed = Bed::new();
    let cp = control_plane();
    cp.apply_yaml(&bed.namespace());
    let all = [bed.config_map("stays", "x"), bed.crd("first: {type: string}"), bed.sample()].join("---\n");
    bed.write("manifests.yaml", &all);
    app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0).stdout_contains("3 created");
    let theirs = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
        "metadata": {"name": "theirs", "namespace": "default"}});
    let theirs = cp.path_of(&cp.apply_yaml(&theirs.to_string())[0]);
    bed.write("manifests.yaml", &bed.config_map("stays", "x"));
    let deploy = || app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml", "--prune=yes"]);

    let output = deploy();
    output
        .code(3)
        .stdout_contains("CRDDeletionLosesObjects")
        .stdout_contains("would also delete 1 object of kind Sample");
    output.stdout_contains("1 in namespace default (theirs)");
    assert_eq!((cp.get(&bed.crd_path()).0, cp.get(&theirs).0), (200, 200));

    cp.delete(&theirs);
    eventually("the object to go", || (cp.get(&theirs).0 == 404).then_some(()));
    // What names its kind.
    let admission = "admissionregistration.k8s.io/v1";
    let about = json!({"resourceRules": [{"apiGroups": [bed.names.group], "apiVersions": ["*"], "operations": ["CREATE"],
        "resources": ["samples"]}]});
    let named = json!({"name": bed.names.namespace});
    let policy = json!({"apiVersion": admission, "kind": "MutatingAdmissionPolicy", "metadata": named, "spec": {
        "matchConstraints": about, "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]}});
    let binding = json!({"apiVersion": admission, "kind": "ValidatingAdmissionPolicyBinding", "metadata": named, "spec": {
        "policyName": "none", "validationActions": ["Audit"], "matchResources": about}});
    let users = [policy, binding].map(|user| cp.path_of(&cp.apply_yaml(&user.to_string())[0]));
    let output = app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes"]);
    output.code(0).stdout_contains("CRDNeededElsewhere");
    for kind in ["mutatingadmissionpolicy", "validatingadmissionpolicybinding"] {
        output.stdout_contains(&format!("{kind}/{}", bed.names.namespace));
    }
    users.iter().for_each(|user| drop(cp.delete(user)));
    // The app's own object is deleted with the CRD, and before it.
    deploy().code(0).stdout_contains("2 deleted");
    assert_eq!(cp.get(&bed.crd_path()).0, 404);
    deploy().code(0).stdout_contains("Nothing to do");
}

#[test]
fn a_namespace_stays_while_it_has_objects_of_others_which_are_counted_by_kind() {
    let bed = Bed::new();
    let cp = control_plane();
    cp.apply_yaml(&bed.namespace());
    let name = format!("{}-left", bed.names.namespace);
    let of_it = |kind: &str, name_of: &str, rest: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name_of, "namespace": name}});
        object["metadata"].as_object_mut().expect("metadata").extend(rest.as_object().expect("fields").clone());
        object
    };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let ours = of_it("ConfigMap", "ours", json!({}));
    let all = [bed.config_map("stays", "x"), namespace.to_string(), ours.to_string()];
    bed.write("manifests.yaml", &all.join("---\n"));
    app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0).stdout_contains("3 created");
    let theirs = [("ConfigMap", "one"), ("ConfigMap", "two"), ("Secret", "key")];
    let theirs = theirs.map(|(kind, name)| cp.apply_yaml(&of_it(kind, name, json!({})).to_string()).remove(0));
    // What an object owns goes with its owner, and the others are in every namespace.
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": theirs[0]["metadata"]["uid"]}]);
    for (kind, name, rest) in [
        ("ConfigMap", "owned", json!({"ownerReferences": owner})),
        ("ConfigMap", "kube-root-ca.crt", json!({})),
        ("ServiceAccount", "default", json!({})),
    ] {
        cp.apply_yaml(&of_it(kind, name, rest).to_string());
    }
    bed.write("manifests.yaml", &bed.config_map("stays", "x"));
    for command in ["check", "deploy"] {
        let output = app(&bed, &[command, "-f", "manifests.yaml", "--prune=yes", "--prune-max=9", "-o", "json"]);
        let found = rules(output.code(3));
        let message = "the namespace contains 3 objects that this deploy does not delete explicitly: 2 ConfigMap (one, \
                       two), 1 Secret (key)";
        let [(rule, said)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(rule, "NamespaceDeletionTakesOthers");
        assert_eq!(said, message);
    }
    for object in theirs.iter().chain([&namespace, &ours]) {
        let (code, live) = cp.get(&cp.path_of(object));
        assert!(code == 200 && live["metadata"]["deletionTimestamp"].is_null(), "{live}");
    }
    // Without them nothing is reported.
    theirs.iter().for_each(|object| drop(cp.delete(&cp.path_of(object))));
    let check = ["check", "-f", "manifests.yaml", "--prune=yes", "--prune-max=9", "-o", "json"];
    assert_eq!(rules(app(&bed, &check).code(0)), []);
    cp.delete(&cp.path_of(&namespace));
}

#[test]
fn objects_that_cannot_be_listed_are_no_pass() {
    let bed = Bed::new();
    let cp = control_plane();
    cp.apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &[bed.config_map("stays", "x"), bed.crd("first: {type: string}")].join("---\n"));
    app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0);
    bed.write("manifests.yaml", &bed.config_map("stays", "x"));
    let user = cp.user(&json!([
        {"apiGroups": ["", "apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]));
    let namespace = bed.names.namespace.clone();
    let deploy = |flags: &[&str]| {
        let arguments =
            [&["deploy", "--wait=false", "-f", "manifests.yaml", "-a", "shop", "-n", &namespace], flags].concat();
        bed.gantry(cp.kubeconfig(&user), &arguments).run()
    };
    deploy(&["--prune=yes"]).code(1).stdout_contains("could not check").stdout_contains("--prune=no");
    assert_eq!(cp.get(&bed.crd_path()).0, 200);
    deploy(&["--prune=no"]).code(0);
}

#[test]
fn the_rights_that_the_check_needs_are_named_with_all_others() {
    let bed = Bed::new();
    let cp = control_plane();
    let (namespace, group) = (bed.names.namespace.clone(), bed.names.group.clone());
    cp.apply_yaml(&bed.namespace());
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"ports": [{"port": 80}]}});
    let all = [bed.config_map("stays", "x"), bed.crd("first: {type: string}"), service.to_string()];
    bed.write("manifests.yaml", &all.join("---\n"));
    app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0);
    bed.write("manifests.yaml", &bed.config_map("stays", "x"));
    let own = json!({"apiGroups": [""], "resources": ["configmaps", "services", "secrets"], "verbs": ["*"]});
    let crds = json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]});
    let check = |user: &str, flags: &[&str]| {
        let arguments = ["check", "-f", "manifests.yaml", "-a", "shop", "-n", &namespace];
        let more = ["--preflight", "PermissionValidation", "-o", "json"];
        let output = bed.gantry(cp.kubeconfig(user), &[&arguments[..], &more, flags].concat()).run();
        let report = output.report();
        let checks = report["checks"].as_array().expect("checks").clone();
        let check = checks.into_iter().find(|check| check["name"] == "PermissionValidation").expect("it runs");
        let findings = check["findings"].as_array().expect("findings").clone();
        findings.iter().map(|f| f["message"].as_str().expect("text").to_owned()).collect::<Vec<String>>()
    };
    let blind = cp.user(&json!([own, crds]));
    let found = check(&blind, &["--prune=yes"]);
    let crd = format!("customresourcedefinition/samples.{group}");
    let of_service = format!("needed for service/web -n {namespace}");
    let expected = [
        (format!("\"list\" {group}/"), format!("needed for {crd}")),
        ("\"list\" admissionregistration.k8s.io/v1, Resource=validatingweb".to_owned(), of_service.clone()),
        ("\"list\" admissionregistration.k8s.io/v1, Resource=mutatingweb".to_owned(), of_service.clone()),
        ("\"list\" apiregistration.k8s.io/v1, Resource=apiservices at the cluster scope".to_owned(), of_service),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (what, why) in &expected {
        assert!(found.iter().any(|message| message.contains(what) && message.contains(why)), "{what}: {found:#?}");
    }
    // A deploy that deletes nothing reads none of it.
    assert_eq!(check(&blind, &["--prune=no"]), [""; 0]);
    let lists =
        [(&*group, "samples"), ("admissionregistration.k8s.io", "*"), ("apiregistration.k8s.io", "apiservices")];
    let lists = lists.map(|(group, plural)| json!({"apiGroups": [group], "resources": [plural], "verbs": ["list"]}));
    let rules = [own, crds].into_iter().chain(lists).collect::<Vec<Value>>();
    assert_eq!(check(&cp.user(&json!(rules)), &["--prune=yes"]), [""; 0]);
    app(&bed, &["delete", "--yes"]).code(0);
}

/// An app with an operator: a custom resource with a finalizer, its CRD, what the operator needs to remove the
/// finalizer (its Deployment first), and a ConfigMap.
fn operated(bed: &Bed) -> (Value, Vec<Value>) {
    let namespace = &bed.names.namespace;
    let sample = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample", "first": "x",
        "metadata": {"name": "one", "namespace": namespace, "finalizers": [format!("{}/held", bed.names.group)]}});
    let pods =
        json!({"metadata": {"labels": {"app": "operator"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
    let named = json!({"name": "operator", "namespace": namespace});
    let operator = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named,
        "spec": {"selector": {"matchLabels": {"app": "operator"}}, "template": pods}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": named,
        "spec": {"selector": {"app": "operator"}, "ports": [{"port": 443}]}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named});
    let rbac = "rbac.authorization.k8s.io";
    let of_cluster =
        |kind: &str| json!({"apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": {"name": namespace}});
    let (mut role, mut binding) = (of_cluster("ClusterRole"), of_cluster("ClusterRoleBinding"));
    role["rules"] = json!([{"apiGroups": [bed.names.group], "resources": ["samples"], "verbs": ["*"]}]);
    binding["roleRef"] = json!({"apiGroup": rbac, "kind": "ClusterRole", "name": namespace});
    binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}]);
    let needed = vec![operator, service, account, role, binding];
    let all = [bed.config_map("stays", "x"), bed.crd("first: {type: string}"), sample.to_string()];
    let texts: Vec<String> = all.into_iter().chain(needed.iter().map(Value::to_string)).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
    app(bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0).stdout_contains("8 created");
    (sample, needed)
}

fn replicas(operator: &Value, ready: u8) {
    let path = control_plane().path_of(operator);
    let status = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready,
        "availableReplicas": ready, "unavailableReplicas": 1 - ready});
    let (code, answer) = control_plane().patch(&format!("{path}/status"), &json!({ "status": status }));
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn custom_resources_with_finalizers_are_deleted_before_their_operator() {
    let prune = ["deploy", "--wait=false", "-f", "stays.yaml", "--prune=yes", "--prune-max=100%"];
    for command in [&["delete", "--yes"][..], &prune] {
        an_operator_outlives_its_resources(command);
    }
}

fn an_operator_outlives_its_resources(command: &[&str]) {
    let bed = Bed::new();
    let cp = control_plane();
    cp.apply_yaml(&bed.namespace());
    let (sample, needed) = operated(&bed);
    let (operator, sample) = (&needed[0], cp.path_of(&sample));
    let deployment = cp.path_of(operator);
    bed.write("stays.yaml", &bed.config_map("stays", "x"));
    bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntimeouts: {delete: 100ms}\n");

    replicas(operator, 0);
    let output = app(&bed, command);
    output.code(3).stdout_contains("FinalizerWillHang").stdout_contains("no workload of the app is ready");
    output.stdout_contains(&format!("{}/held", bed.names.group)).stdout_contains("deployment.apps/operator");
    assert_eq!(cp.get(&sample).1["metadata"]["deletionTimestamp"], Value::Null);

    replicas(operator, 1);
    app(&bed, command).code(5).stdout_contains("Not gone");
    // The operator and what it needs still exist, so it can do its work.
    let is_there = |path: &str| {
        let (code, live) = cp.get(path);
        code == 200 && live["metadata"]["deletionTimestamp"].is_null()
    };
    for path in needed.iter().map(|object| cp.path_of(object)).chain([bed.crd_path()]) {
        assert!(is_there(&path), "{command:?}: {path}");
    }
    assert_eq!(cp.patch(&sample, &json!({"metadata": {"finalizers": null}})).0, 200);
    eventually("the object to go", || (cp.get(&sample).0 == 404).then_some(()));
    // Then the CRD is deleted, and then the operator.
    eventually("the operator to go", || {
        app(&bed, command);
        (!is_there(&deployment)).then_some(())
    });
    assert_eq!(cp.get(&bed.crd_path()).0, 404);
    // Its Pods may still run, with its permissions.
    for object in &needed[2..] {
        assert!(is_there(&cp.path_of(object)), "{command:?}: {object}");
    }
    // There is no garbage collector in this test.
    assert_eq!(cp.patch(&deployment, &json!({"metadata": {"finalizers": null}})).0, 200);
    eventually("everything to go", || (app(&bed, command).code == Some(0)).then_some(()));
    for object in &needed {
        assert_eq!(cp.get(&cp.path_of(object)).0, 404, "{command:?}: {object}");
    }
    let stays = cp.get(&bed.config_map_path("stays")).0;
    assert_eq!(stays, if command[0] == "delete" { 404 } else { 200 });
}

#[test]
fn a_finalizer_is_no_finding_if_the_app_has_no_workload() {
    let bed = Bed::new();
    let cp = control_plane();
    cp.apply_yaml(&bed.namespace());
    let Some(doc) = (ENTRY.rules)().into_iter().find(|doc| doc.name == "FinalizerWillHang") else { panic!("no rule") };
    let example = doc.example();
    let (left, other) = (example.part("Deleted"), example.part("Live beside it"));
    let stays = bed.config_map("stays", "x");
    let deploy = |objects: &[&str]| {
        bed.write("manifests.yaml", &objects.iter().map(|text| own(&bed, text)).collect::<Vec<_>>().join("---\n"));
        app(&bed, &["deploy", "--wait=false", "--prune=no", "-f", "manifests.yaml"]).code(0);
    };
    let check = |objects: &[&str]| {
        bed.write("manifests.yaml", &objects.iter().map(|text| own(&bed, text)).collect::<Vec<_>>().join("---\n"));
        rules(&app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes", "-o", "json"]))
    };
    deploy(&[&stays, left]);
    assert_eq!(check(&[&stays]), []);
    deploy(&[&stays, left, other]);
    let found = check(&[&stays, other]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("no workload of the app is ready"), "{found:?}");
    // A ready operator that is deleted first does not help either.
    let operator: Value = serde_yaml::from_str(&own(&bed, other)).expect("YAML");
    replicas(&operator, 1);
    assert_eq!(check(&[&stays, other]), []);
    let found = check(&[&stays]);
    assert!(found.len() == 1 && found[0].1.contains("are deleted before it"), "{found:?}");
    // There is no sign that its controller is in the app.
    app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes"]).code(0).stdout_contains("warning[FinalizerWillHang]");
    let path = bed.config_map_path("held");
    cp.patch(&path, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn deleted_objects_that_others_changed_are_reported() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let manifests = |names: &[&str]| -> String {
        names.iter().map(|name| bed.config_map(name, "x")).collect::<Vec<_>>().join("---\n")
    };
    bed.write("manifests.yaml", &manifests(&["stays", "changed", "annotated", "untouched"]));
    app(&bed, &["deploy", "-f", "manifests.yaml"]).code(0);
    let path = |name: &str| format!("{}?fieldManager=ann", bed.config_map_path(name));
    let patch = |name: &str, patch: &Value| assert_eq!(control_plane().patch(&path(name), patch).0, 200);
    patch("changed", &json!({"data": {"more": "1"}}));
    patch("annotated", &json!({"metadata": {"annotations": {"a": "b"}}}));
    bed.write("manifests.yaml", &manifests(&["stays"]));
    let output = app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes", "-o", "json"]);
    let found = rules(output.code(0));
    assert_eq!(found.len(), 1, "{output}");
    assert_eq!(found[0].0, "ChangedByOther");
    let said = format!("configmap/changed -n {} is deleted, but field manager \"ann\"", bed.names.namespace);
    assert!(found[0].1.starts_with(&said), "{output}");
    // It is a warning.
    app(&bed, &["deploy", "-f", "manifests.yaml", "--prune=yes"]).code(0).stdout_contains("3 deleted");
}

#[test]
fn cluster_roles_that_others_fill_do_not_refer_to_a_deleted_crd() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let (group, own) = (&bed.names.group, &bed.names.namespace);
    let of_kind = format!("rules: [{{apiGroups: [{group}], resources: [samples], verbs: ['*']}}]\n");
    let role = |name: &str, rest: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}, labels: {{{own}: x}}}}\n\
             {rest}{of_kind}"
        )
    };
    let label = "metadata: {labels: {kubernetes.io/bootstrapping: rbac-defaults}, name: ";
    let bootstrap = role(&format!("{own}-default"), "").replace("metadata: {name: ", label);
    let bootstrap = bootstrap.replace(&format!(", labels: {{{own}: x}}}}"), "}");
    let selector = format!("aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{{own}: x}}}}]}}\n");
    let filled = [role(&format!("{own}-all"), &selector), bootstrap, role(&format!("system:{own}"), "")];
    let crd = bed.crd("first: {type: string}");
    let manifests = [bed.config_map("stays", "x"), crd, role(&format!("{own}-edit"), "")].join("---\n");
    bed.write("manifests.yaml", &manifests);
    app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0);
    let filled = cp.apply_yaml(&filled.join("---\n"));
    bed.write("manifests.yaml", &bed.config_map("stays", "x"));
    let output = app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes", "-o", "json"]);
    assert_eq!(rules(output.code(0)), [], "{output}");

    // A role of somebody else with rules of its own does refer to it.
    let other = cp.apply_yaml(&role(&format!("{own}-other"), ""));
    let output = app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes", "-o", "json"]);
    let found = rules(&output);
    assert_eq!(found.len(), 1, "{output}");
    assert!(found[0].1.contains(&format!("clusterrole/{own}-other still refers")), "{found:?}");
    for object in filled.iter().chain(&other) {
        assert_eq!(cp.delete(&cp.path_of(object)).0, 200);
    }
}

#[test]
fn rules_that_the_controller_of_aggregation_writes_are_no_change_of_another() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let own = &bed.names.namespace;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": own},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {(own.as_str()): "x"}}]}});
    bed.write("manifests.yaml", &format!("{}---\n{role}\n", bed.config_map("stays", "x")));
    app(&bed, &["deploy", "--wait=false", "-f", "manifests.yaml"]).code(0);
    let written = |manager: &str| {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", manager]}]);
        let filled = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": own}, "rules": rules});
        let path = format!("{}?fieldManager={manager}&force=true", cp.path_of(&role));
        let (status, answer) = cp.apply_to(&path, &filled);
        assert_eq!(status, 200, "{answer}");
    };
    bed.write("manifests.yaml", &bed.config_map("stays", "x"));
    let check = || rules(&app(&bed, &["check", "-f", "manifests.yaml", "--prune=yes", "-o", "json"]));
    written("clusterrole-aggregation-controller");
    assert_eq!(check(), []);
    written("somebody");
    assert_eq!(check().iter().map(|(rule, _)| rule.as_str()).collect::<Vec<_>>(), ["ChangedByOther"]);
    app(&bed, &["delete", "--yes"]).code(0);
}

//! The rights of the service account with which OLM installs a bundle.

use super::*;

#[test]
fn only_the_installing_account_needs_rights_to_the_objects_of_a_bundle() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    bundle(&bed, "example", &bed.crd("first: {type: string}"), &[("service.yaml", service(&bed, "80"))]);
    let user = cp.user(&json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]));
    let check = |user: &str, more: &[&str]| {
        let check = ["check", "--preflight=PermissionValidation", "-f", "example"];
        bed.gantry(cp.kubeconfig(user), &[&check, more].concat()).run()
    };
    check(&user, &[]).code(0).stdout_contains("PermissionValidation  passed");
    // The kind is served once these manifests are written.
    let ns = &bed.names.namespace;
    let extension = V1.replace("ex-ns", ns);
    let extension = format!(
        "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {{name: ex}}\nspec:\n{extension}"
    );
    bed.write("extension.yaml", &format!("{}---\n{extension}", extensions_crd("v1")));
    let account = format!("system:serviceaccount:{ns}:installer");
    let output = check("admin", &["-f", "extension.yaml", "--as", &account]);
    output
        .code(3)
        .stdout_contains("service.yaml:2  service/metrics")
        .stdout_contains(&format!("samples.{}: not permitted to \"patch\"", bed.names.group));
}

/// The objects of a YAML stream.
pub fn documents(text: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).expect("YAML")).collect()
}

#[test]
fn the_service_account_of_olm_may_install_the_bundle_and_nothing_else() {
    let (cp, bed) = (control_plane(), Bed::new());
    let (ns, group) = (bed.names.namespace.clone(), bed.names.group.clone());
    cp.apply_yaml(&bed.namespace());
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": ns}});
    cp.apply_yaml(&account.to_string());
    let rbac = "rbac.authorization.k8s.io";
    let reader = format!(
        "apiVersion: {rbac}/v1\nkind: Role\nmetadata: {{name: reader}}\n\
         rules: [{{apiGroups: [''], resources: [pods/log], verbs: [get]}}]\n"
    );
    bundle(
        &bed,
        "example",
        &bed.crd("first: {type: string}"),
        &[("service.yaml", service(&bed, "80")), ("role.yaml", reader)],
    );
    let rules = json!([{"apiGroups": [group], "resources": ["*"], "verbs": ["*"]}]);
    let webhook =
        |kind: &str| json!({"type": kind, "generateName": format!("{ns}.kb.io"), "deploymentName": "manager"});
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": format!("{ns}.v1.2.0")},
        "spec": {
            "version": "1.2.0", "installModes": [{"type": "AllNamespaces", "supported": true}],
            "webhookdefinitions": [webhook("ValidatingAdmissionWebhook"), webhook("MutatingAdmissionWebhook")],
            "install": {"strategy": "deployment", "spec": {
                "deployments": [{"name": "manager", "spec": {"template": {"spec": {"serviceAccountName": "manager"}}}}],
                "clusterPermissions": [{"serviceAccountName": "manager", "rules": rules}],
                "permissions": [{"serviceAccountName": "manager", "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"]},
                ]}],
            }},
        },
    });
    bed.write("example/manifests/csv.yaml", &csv.to_string());
    let user = format!("system:serviceaccount:{ns}:installer");
    let arguments = ["permissions", "-f", "example", "--name", &ns, "--as", &user];
    let printed = bed.gantry(cp.kubeconfig("admin"), &arguments).run();
    printed
        .code(0)
        .stdout_contains(&format!("# Minimal RBAC for OLM v1 to install example 1.2.0 (example) in namespace {ns}."));
    cp.apply_yaml(&printed.stdout);
    let roles: Vec<Value> =
        documents(&printed.stdout).into_iter().filter(|object| object["rules"].is_array()).collect();
    assert_eq!(roles.len(), 2, "{}", printed.stdout);

    let (status, token) = cp.api().post(
        &format!("/api/v1/namespaces/{ns}/serviceaccounts/installer/token"),
        &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
    );
    assert_eq!(status, 201, "{token}");
    let ca = cp.ca_file();
    let olm = Api::new(&cp.url(), Some(&ca), token["status"]["token"].as_str());
    eventually("the rights are in force", || {
        let review = json!({"spec": {"namespace": ns}});
        let (_, answer) = olm.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review);
        let held = answer["status"]["resourceRules"].as_array().cloned().unwrap_or_default();
        let mut rules = roles.iter().flat_map(|role| role["rules"].as_array().unwrap());
        rules.all(|rule| held.contains(rule)).then_some(())
    });

    // The names of the cluster roles are those in the printed rules.
    let of_roles = roles[0]["rules"].as_array().unwrap().iter();
    let of_roles = of_roles.filter(|rule| rule["resources"].as_array().unwrap().contains(&json!("clusterroles")));
    let names: Vec<&str> = of_roles
        .flat_map(|rule| rule["resourceNames"].as_array().into_iter().flatten().filter_map(Value::as_str))
        .collect();
    assert_eq!(names.len(), 3, "one of clusterPermissions, two of permissions: {names:?}");
    let labels = json!({"app": "manager"});
    let mut objects: Vec<(String, Value)> = vec![
        (format!("/api/v1/namespaces/{ns}/serviceaccounts"), json!({"metadata": {"name": "manager"}})),
        (
            format!("/apis/{rbac}/v1/namespaces/{ns}/roles"),
            json!({"metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]}),
        ),
        (
            format!("/api/v1/namespaces/{ns}/services"),
            json!({"metadata": {"name": "metrics"}, "spec": {"ports": [{"port": 80}]}}),
        ),
        (
            format!("/api/v1/namespaces/{ns}/services"),
            json!({"metadata": {"name": "manager-service"}, "spec": {"ports": [{"port": 443}]}}),
        ),
        (
            format!("/apis/apps/v1/namespaces/{ns}/deployments"),
            json!({"metadata": {"name": "manager"}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": "manager", "containers": [{"name": "manager", "image": "manager:1"}]}}}}),
        ),
    ];
    for name in &names[..2] {
        let rules = json!([rules[0], {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"]},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}]);
        objects.push((format!("/apis/{rbac}/v1/clusterroles"), json!({"metadata": {"name": name}, "rules": rules})));
        objects.push((
            format!("/apis/{rbac}/v1/clusterrolebindings"),
            json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": ns, "name": "manager"}]}),
        ));
    }
    for kind in ["validating", "mutating"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        objects.push((path, json!({"metadata": {"name": format!("{ns}.kb.io")}, "webhooks": []})));
    }
    let crd = documents(&bed.crd("first: {type: string}")).remove(0);
    objects.push(("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(), crd));
    for (path, object) in &objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        let (status, answer) = olm.post(path, object);
        assert_eq!(status, 201, "{path} {name}: {answer}");
        let one = format!("{path}/{name}");
        let (status, live) = olm.get(&one);
        assert_eq!(status, 200, "{one}: {live}");
        // A controller can have written it in the meantime, which has nothing to do with permissions.
        let (status, answer) = olm.put(&one, &live);
        assert!(matches!(status, 200 | 409), "{one}: {answer}");
        let (status, answer) = olm.patch(&one, &json!({"metadata": {"labels": {"olm": "owned"}}}));
        assert_eq!(status, 200, "{one}: {answer}");
        let everywhere = path.replace(&format!("/namespaces/{ns}"), "");
        assert_eq!(olm.get(&format!("{everywhere}?limit=1")).0, 200, "{everywhere}");
        // A name that OLM does not use.
        for answer in [olm.get(&format!("{path}/other")), olm.delete(&format!("{path}/other"))] {
            assert_eq!(answer.0, 403, "{path}: {}", answer.1);
        }
    }
    for (path, object) in objects.iter().rev() {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert_eq!(olm.delete(&format!("{path}/{name}")).0, 200, "{path} {name}");
    }
    // The user has no other permissions, and none beyond those of the operator.
    let more = json!({"metadata": {"name": names[2]}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    assert_eq!(olm.post(&format!("/apis/{rbac}/v1/clusterroles"), &more).0, 403);
    for path in
        [format!("/api/v1/namespaces/{ns}/secrets"), format!("/api/v1/namespaces/{ns}/pods"), "/api/v1/nodes".into()]
    {
        assert_eq!(olm.get(&path).0, 403, "{path}");
    }
    assert_eq!(olm.post("/api/v1/namespaces/default/services", &objects[2].1).0, 403);
}

#[test]
fn the_clusterextension_names_the_account_and_the_namespace_of_printed_rights() {
    let bed = with_extension(V1, "v1");
    let permissions = |more: &[&str]| {
        let arguments = ["permissions", "--target", "dir:cluster", "-f", "example"];
        bed.gantry(bed.folder.path().join("none"), &[&arguments, more].concat()).run()
    };
    permissions(&[]).code(2).stderr_contains("a folder does not know your identity");
    let output = permissions(&["-f", "extension.yaml"]);
    output.code(0).stdout_contains("- {kind: ServiceAccount, namespace: ex-ns, name: installer}");
    output.stdout_contains("in namespace ex-ns.\n# Objects that OLM does not install are left out");
    let rules = documents(&output.stdout)[1]["rules"].clone();
    let finalizers = json!({"apiGroups": ["olm.operatorframework.io"], "resources": ["clusterextensions/finalizers"],
        "resourceNames": ["ex"], "verbs": ["update"]});
    assert!(rules.as_array().unwrap().contains(&finalizers), "{rules}");
    output.contains_nowhere("[clusterextensions]");
}

#[test]
fn the_account_of_a_clusterextension_needs_rights_up_to_v1_10() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = bed.names.namespace.clone();
    let account = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: installer, namespace: {ns}}}\n---\n{}",
        bed.namespace()
    );
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&account);
    bundle(&bed, "example", &bed.crd("first: {type: string}"), &[("service.yaml", service(&bed, "80"))]);
    let extension = format!(
        "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {{name: ex}}\nspec:\n{}",
        V1.replace("ex-ns", &ns)
    );
    bed.write("extension.yaml", &format!("{}---\n{extension}", extensions_crd("v1")));
    let check = |user: &str, more: &[&str]| {
        let check = ["check", "--preflight=PermissionValidation", "-f", "example", "-f", "extension.yaml"];
        bed.gantry(cp.kubeconfig(user), &[&check, more].concat()).run()
    };
    let lacks =
        format!("system:serviceaccount:{ns}:installer, with which OLM v1.10 installs ClusterExtension ex, is not");
    for olm in ["v1.10", "1.10.0"] {
        let output = check("admin", &["--olm", olm]);
        output.code(3).stdout_contains(&lacks).stdout_contains("grant this to system:serviceaccount:");
        output.stdout_contains("service/metrics");
    }
    bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\nolm: v1.10\n");
    check("admin", &[]).code(3).stdout_contains(&lacks);
    check("admin", &["--olm", "v1.11"]).code(0).stdout_contains("PermissionValidation  passed");
    // This server has no Deployment of operator-controller.
    let output = check("admin", &["--olm", "auto"]);
    output.code(0).stdout_contains("PermissionValidation  warned: 1 warning");
    output.stdout_contains("with which OLM v1.10 and earlier install ClusterExtension ex");

    let user = cp.user(&json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": ["apiextensions.k8s.io", "olm.operatorframework.io"], "resources": ["*"], "verbs": ["*"]}]));
    let output = check(&user, &[]);
    output.code(0).stderr_contains(&format!("not checked: whether system:serviceaccount:{ns}:installer may install"));

    // The deploy itself may grant the rights.
    let printed = bed.gantry(cp.kubeconfig("admin"), &["permissions", "-f", "example", "-f", "extension.yaml"]).run();
    bed.write("rights.yaml", &printed.code(0).stdout);
    check("admin", &["-f", "rights.yaml"]).code(0).stdout_contains("PermissionValidation  passed");
    cp.apply_yaml(&printed.stdout);
    eventually("the rights are in force", || (check("admin", &[]).code == Some(0)).then_some(()));
    check("admin", &[]).code(0).stdout_contains("PermissionValidation  passed");
}

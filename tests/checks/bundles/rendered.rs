//! The objects that OLM creates from the ClusterServiceVersion of a bundle: checked as if the deploy wrote them.

use super::rights::documents;
use super::*;
use crate::support::run_printed;

/// A bundle of the package `example` with this version and these fields in the `spec` of its ClusterServiceVersion.
fn operator(bed: &Bed, folder: &str, version: &str, more: &Value) -> String {
    bundle(bed, folder, &bed.crd("first: {type: string}"), &[]);
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{}.v{version}", bed.names.namespace)},
        "spec": {"version": version, "installModes": [{"type": "AllNamespaces", "supported": true}]},
    });
    csv["spec"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let text = serde_yaml::to_string(&csv).expect("YAML");
    bed.write(&format!("{folder}/manifests/csv.yaml"), &text);
    text
}

/// An operator with one Deployment, whose Pods have these labels.
fn install(selector: &Value, labels: &Value) -> Value {
    json!({
        "clusterPermissions": [{"serviceAccountName": "manager", "rules": [
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]}],
        "deployments": [{"name": "manager", "spec": {
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "manager",
                "containers": [{"name": "manager", "image": "manager:1"}]}}}}],
    })
}

fn deployments(selector: &Value) -> Value {
    json!({"install": {"strategy": "deployment", "spec": install(selector, &json!({"app": "m", "tier": "back"}))}})
}

/// A ClusterExtension of the package, and the CRD of its kind, which these manifests define.
fn extension(bed: &Bed, name: &str, account: &str) {
    let spec = format!(
        "  namespace: {}\n  serviceAccount: {{name: {account}}}\n  source: {{sourceType: Catalog, catalog: {{packageName: \
         example}}}}\n",
        bed.names.namespace
    );
    let text = format!(
        "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {{name: {name}}}\nspec:\n{spec}"
    );
    bed.write("extension.yaml", &format!("{}---\n{text}", extensions_crd("v1")));
}

/// The findings of a report: rule, place and message.
fn found(output: &Output) -> Vec<(String, String, String)> {
    let report = output.report();
    let checks = report["checks"].as_array().expect("checks").clone();
    let findings = checks.into_iter().flat_map(|check| check["findings"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = |finding: &Value| {
        format!("{}:{}", text(&finding["source"]["file"]), finding["source"]["line"].as_u64().unwrap_or_default())
    };
    findings.map(|finding| (text(&finding["rule"]), place(&finding), text(&finding["message"]))).collect()
}

/// `FILE:LINE` of the first line with this text.
fn line_of(file: &str, text: &str, wanted: &str) -> String {
    let at = text.lines().position(|line| line.contains(wanted)).unwrap_or_else(|| panic!("{wanted} in {text}"));
    format!("{file}:{}", at + 1)
}

#[test]
fn an_upgrade_that_changes_the_selector_of_a_deployment_is_blocked() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let ns = bed.names.namespace.clone();
    operator(&bed, "old", "1.0.0", &deployments(&json!({"app": "m"})));
    let new = operator(&bed, "new", "1.1.0", &deployments(&json!({"app": "m", "tier": "back"})));
    extension(&bed, &ns, "installer");
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "manager", "namespace": ns},
        "spec": {"selector": {"matchLabels": {"app": "m"}}, "template": {
            "metadata": {"labels": {"app": "m", "tier": "back"}},
            "spec": {"containers": [{"name": "manager", "image": "manager:1"}]}}}});
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments/manager");
    let (status, answer) = cp.api().server_side_apply(&path, "olm", &deployment);
    assert!(status < 300, "{answer}");
    let run = |command: &str, folder: &str, more: &[&str]| {
        let arguments = [&[command, "-f", folder, "-f", "extension.yaml"], more].concat();
        bed.gantry(cp.kubeconfig("admin"), &arguments).run()
    };
    // Without any check that asks the server, as for the objects of a deploy.
    let output = run("check", "new", &["--preflight=CRDUpgradeSafety"]);
    output.code(3).stdout_contains("field is immutable").stdout_contains("--> new/manifests/csv.yaml:");
    output.stdout_contains("which OLM would write").stdout_contains("stay at the installed version");
    run("check", "old", &["--preflight=CRDUpgradeSafety"]).code(0).contains_nowhere("immutable");
    // OLM does not write the Deployment of somebody else.
    run("check", "new", &[]).code(3).stdout_contains("error[OwnedByAnother]");
    let output = run("check", "new", &["--preflight=AdmissionDryRun", "-o", "json"]);
    output.code(3);
    let findings = found(&output).into_iter().filter(|(rule, ..)| rule == "ImmutableField");
    let places: Vec<String> = findings.map(|(_, place, _)| place).collect();
    assert_eq!(places, [line_of("new/manifests/csv.yaml", &new, "selector:")]);
    run("check", "old", &["--preflight=AdmissionDryRun"]).code(0);
    assert_eq!(cp.get(&path).1["spec"]["selector"], deployment["spec"]["selector"]);
}

#[test]
fn what_the_server_refuses_of_an_operator_is_reported_at_the_lines_of_its_csv() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let file = "example/manifests/csv.yaml";
    let mut parts = install(&json!({"app": "m"}), &json!({"app": "other"}));
    let container = &mut parts["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    container["resources"] = json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}});
    // OLM drops fields that Go does not know, so the server never sees this one.
    container["typo"] = json!(1);
    let webhook = |kind: &str, name: &str| {
        json!({"type": kind, "generateName": format!("{name}.{}", bed.names.group), "deploymentName": "manager",
            "containerPort": 443, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore"})
    };
    let mut webhooks = json!([
        webhook("ValidatingAdmissionWebhook", "effects"),
        webhook("MutatingAdmissionWebhook", "path"),
        webhook("ValidatingAdmissionWebhook", "port"),
        webhook("ValidatingAdmissionWebhook", "right"),
    ]);
    webhooks[0]["sideEffects"] = json!("SomeSideEffects");
    webhooks[1]["webhookPath"] = json!("mutate");
    webhooks[2].as_object_mut().unwrap().remove("containerPort");
    let more = json!({"install": {"strategy": "deployment", "spec": parts}, "webhookdefinitions": webhooks});
    let csv = operator(&bed, "example", "1.0.0", &more);
    let output = bed
        .gantry(
            cp.kubeconfig("admin"),
            &["check", "-n", &bed.names.namespace, "--preflight=AdmissionDryRun", "-f", "example", "-o", "json"],
        )
        .run();
    output.code(3).stderr_contains("the Issuer and the Certificate of its webhooks are not checked");
    let findings = found(&output);
    let expected = [
        ("`selector` does not match template `labels`", line_of(file, &csv, " labels:")),
        ("must be less than or equal to cpu limit of 1", line_of(file, &csv, "requests:")),
        ("sideEffects: Unsupported value", line_of(file, &csv, "sideEffects: SomeSideEffects")),
        ("must start with a '/'", line_of(file, &csv, "webhookPath: mutate")),
        // OLM writes port 0; the nearest place is that of the webhook.
        ("port is not valid", line_of(file, &csv, "generateName: port.")),
    ];
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (words, place) in expected {
        let (_, at, _) =
            findings.iter().find(|(.., message)| message.contains(words)).unwrap_or_else(|| panic!("{words}"));
        let near = |at: &str| at.rsplit_once(':').unwrap().1.parse::<i64>().unwrap();
        // The keys of a webhook are sorted, so its item may start some lines before the name.
        let distance = if words.starts_with("port") { 5 } else { 0 };
        assert!((near(at) - near(&place)).abs() <= distance, "{words}: {at}, not {place}\n{csv}");
    }
}

#[test]
fn a_value_that_olm_cannot_read_ends_the_run_at_its_line() {
    let bed = with_extension(V1, "v1");
    let mut parts = install(&json!({"app": "m"}), &json!({"app": "m"}));
    parts["deployments"][0]["spec"]["replicas"] = json!("one");
    let csv = operator(&bed, "example", "1.0.0", &json!({"install": {"strategy": "deployment", "spec": parts}}));
    let output = dir_deploy(&bed, &["-f", "example"]);
    let place = line_of("example/manifests/csv.yaml", &csv, "replicas: one");
    output.code(1).stderr_contains("spec.replicas: must be an integer, but is a string").stderr_contains(&place);
}

#[test]
fn an_object_that_a_bundle_contains_and_that_olm_creates_is_checked_once() {
    let bed = with_extension(V1, "v1");
    operator(&bed, "example", "1.0.0", &deployments(&json!({"app": "m"})));
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: manager}\n";
    bed.write("example/manifests/account.yaml", account);
    let output = dir_deploy(&bed, &["-f", "example", "-f", "extension.yaml", "--dry-run", "-o", "json"]);
    output.stderr_contains("OLM also creates serviceaccount/manager").contains_nowhere("is defined twice");
    let accounts = actions(&output).into_iter().filter(|(_, kind)| kind == "ServiceAccount").count();
    assert_eq!(accounts, 1);
}

/// The role that `gantry permissions` prints, by its kind.
fn role_name(text: &str, kind: &str) -> String {
    let role = documents(text).into_iter().find(|object| object["kind"] == kind).expect("a role");
    role["metadata"]["name"].as_str().expect("a name").to_owned()
}

#[test]
fn rights_of_two_operators_and_of_two_versions_can_be_granted_at_once() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let ns = bed.names.namespace.clone();
    operator(&bed, "old", "1.0.0", &deployments(&json!({"app": "m"})));
    operator(&bed, "new", "1.1.0", &deployments(&json!({"app": "m"})));
    let other = format!("{ns}-other");
    let run = |command: &str, folder: &str, name: &str, more: &[&str]| {
        extension(&bed, name, "installer");
        let arguments = [&[command, "-f", folder, "-f", "extension.yaml"], more].concat();
        bed.gantry(cp.kubeconfig("admin"), &arguments).run()
    };
    let account = format!("system:serviceaccount:{ns}:installer");
    let asked = |folder: &str, name: &str| {
        run("check", folder, name, &["--preflight=PermissionValidation", "--as", &account, "-o", "json"])
    };
    // An account that may read only what the check reads, and write nothing.
    let refused = asked("old", &ns);
    refused.code(3);
    let findings = found(&refused);
    for words in ["deployments", "serviceaccounts", "clusterroles", "clusterrolebindings", "customresourcedefinitions"]
    {
        let is_it = |message: &str| message.contains("not permitted to \"create\"") && message.contains(words);
        assert!(findings.iter().any(|(.., message)| is_it(message)), "{words}: {findings:#?}");
    }
    let mut names = Vec::new();
    for (folder, name) in [("old", &ns), ("new", &ns), ("old", &other)] {
        let output = run("permissions", folder, name, &[]);
        output.code(0).stdout_contains("kind: ServiceAccount\nmetadata: {name: installer");
        names.push(role_name(&output.stdout, "ClusterRole"));
        cp.apply_yaml(&output.stdout);
    }
    assert_eq!(
        names,
        [format!("{ns}-1.0.0-installer"), format!("{ns}-1.1.0-installer"), format!("{other}-1.0.0-installer")]
    );
    // Nor does the account write the ClusterExtension; the CRD of that is among these manifests.
    let user = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": format!("{ns}-user")},
        "rules": [{"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("{ns}-user")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("{ns}-user")},
        "subjects": [{"kind": "ServiceAccount", "namespace": ns, "name": "installer"}]});
    cp.apply_yaml(&format!("{user}\n---\n{binding}"));
    for (folder, name) in [("old", &ns), ("new", &ns), ("old", &other)] {
        eventually("the rights are in force", || {
            let output = asked(folder, name);
            (output.code == Some(0)).then_some(())
        });
    }
    // Those of one version do not suffice for the other.
    cp.api().delete(&format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}-1.1.0-installer"));
    eventually("the rights are withdrawn", || {
        let output = asked("new", &ns);
        (output.code == Some(3)).then_some(())
    });
    asked("old", &ns).code(0);
}

/// A catalog with the bundle in version 1.0.0.
fn catalog(bed: &Bed) {
    let blobs = "schema: olm.package\nname: example\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: example\n\
                 name: stable\nentries: [{name: example.v1.0.0}]\n---\nschema: olm.bundle\npackage: example\nname: \
                 example.v1.0.0\nproperties:\n- {type: olm.package, value: {packageName: example, version: 1.0.0}}\n";
    bed.write("catalog.yaml", blobs);
}

#[test]
fn a_live_object_of_any_kind_with_another_owner_blocks_until_it_is_handed_over() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let ns = bed.names.namespace.clone();
    operator(&bed, "example", "1.0.0", &deployments(&json!({"app": "m"})));
    extension(&bed, &ns, "installer");
    catalog(&bed);
    let check = || {
        let check = ["check", "--preflight=ExtensionResolution", "--catalog", "c=catalog.yaml", "-f", "example", "-f"];
        bed.gantry(cp.kubeconfig("admin"), &[&check[..], &["extension.yaml", "-o", "json"]].concat()).run()
    };
    check().code(0);
    let account = format!("/api/v1/namespaces/{ns}/serviceaccounts/manager");
    let live = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "manager", "namespace": ns,
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": ns}}});
    cp.apply_yaml(&live.to_string());
    let output = check();
    output.code(3);
    let findings = found(&output);
    // Besides, an earlier release of OLM would miss the account of the installer.
    let errors: Vec<_> = findings.iter().filter(|(rule, ..)| rule != "OlmReleaseUnknown").collect();
    let [(rule, place, message)] = errors.as_slice() else { panic!("{findings:?}") };
    assert_eq!((rule.as_str(), place.starts_with("example/manifests/csv.yaml:")), ("OwnedByAnother", true));
    assert!(message.starts_with(&format!("ServiceAccount 'manager' already exists in namespace '{ns}'")), "{message}");
    let help = output.report()["checks"][0]["findings"][0]["help"].as_str().unwrap_or_default().to_owned();
    assert!(help.contains(&format!("it belongs to the Helm release other in namespace {ns}")), "{help}");
    assert!(!help.contains("delet") && !help.contains("remove the other"), "{help}");
    // The labels of OLM alone are not what Helm asks for.
    let labels = json!({"metadata": {"labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension",
        "olm.operatorframework.io/owner-name": ns}}});
    assert_eq!(cp.api().patch(&account, &labels).0, 200);
    check().code(3);
    for line in help.lines().filter(|line| line.starts_with("kubectl ")) {
        run_printed(line, &cp.kubeconfig("admin"), bed.folder.path());
    }
    check().code(0);
}

#[test]
fn a_version_that_lacks_a_crd_with_objects_loses_them() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let ns = bed.names.namespace.clone();
    extension(&bed, &ns, "installer");
    operator(&bed, "example", "1.1.0", &deployments(&json!({"app": "m"})));
    let name = format!("samples.{}", bed.names.group);
    cp.apply_yaml(&bed.crd("first: {type: string}"));
    let labels = json!({"metadata": {"labels": {"olm.operatorframework.io/owner-kind": "ClusterExtension",
        "olm.operatorframework.io/owner-name": ns, "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": ns, "meta.helm.sh/release-namespace": ns}}});
    assert_eq!(cp.api().patch(&bed.crd_path(), &labels).0, 200);
    eventually("the kind is served", || {
        let path = format!("/apis/{}/v1/namespaces/{ns}/samples", bed.names.group);
        (cp.get(&path).0 == 200).then_some(())
    });
    cp.apply_yaml(&bed.sample());
    let check = || {
        // Without any flag: the data are lost whatever was asked.
        let check = ["check", "-f", "example", "-f", "extension.yaml"];
        bed.gantry(cp.kubeconfig("admin"), &check).run()
    };
    check().code(0);
    fs::remove_file(bed.folder.path().join("example/manifests/crd.yaml")).unwrap();
    check().code(3).stdout_contains("CRDDeletionLosesObjects").stdout_contains(&format!("1 object of {name}"));
    // Helm, with which OLM writes, leaves such an object alone.
    let kept = json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep",
        "meta.helm.sh/release-name": ns, "meta.helm.sh/release-namespace": ns}}});
    assert_eq!(cp.api().patch(&bed.crd_path(), &kept).0, 200);
    check().code(0).contains_nowhere("CRDDeletionLosesObjects");
}

//! `PermissionValidation` and `gantry permissions` with identities that have exactly these permissions and no more.

use std::collections::BTreeSet;

use crate::support::rights::{REVIEWS, binding, grant, in_force, offered, printed, replace, subjects_of};
use crate::support::{Bed, ControlPlane, Gantry, Proxy, When, control_plane, eventually};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A set of manifests with one object of every kind that needs special permissions.
fn everything(bed: &Bed) -> String {
    let (group, ns) = (&bed.names.group, &bed.names.namespace);
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    let pod = "{metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}";
    let deployment = |name: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: {ns}}}\n\
             spec: {{selector: {{matchLabels: {{app: web}}}}, template: {pod}}}\n"
        )
    };
    [
        // It is live, and without the label the deploy would not write it.
        bed.namespace().replace("{name:", "{labels: {team: a}, name:"),
        bed.crd("first: {type: string}"),
        bed.sample(),
        deployment("web"),
        deployment("worker"),
        format!(
            "{rbac}\nkind: Role\nmetadata: {{name: reader, namespace: {ns}}}\n\
             rules: [{{apiGroups: [''], resources: [secrets, pods/log], verbs: [get]}}]\n"
        ),
        format!(
            "{rbac}\nkind: ClusterRole\nmetadata: {{name: {ns}-view, labels: {{{ns}: whole}}}}\n\
             rules: [{{apiGroups: [{group}], resources: [samples], verbs: [get, list]}}, \
             {{nonResourceURLs: [/{ns}], verbs: [get]}}]\n"
        ),
        format!(
            "{rbac}\nkind: ClusterRole\nmetadata: {{name: {ns}-whole}}\n\
             aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{{ns}: whole}}}}]}}\n"
        ),
        binding(bed, "RoleBinding", "of-role", "Role", "reader"),
        binding(bed, "RoleBinding", "of-live", "ClusterRole", "view"),
        binding(bed, "ClusterRoleBinding", &format!("{ns}-view"), "ClusterRole", &format!("{ns}-view")),
        binding(bed, "ClusterRoleBinding", &format!("{ns}-whole"), "ClusterRole", &format!("{ns}-whole")),
    ]
    .join("---\n")
}

/// A role without one of its rules (`null`), and without each single verb of rules with several.
fn without_each(role: &Value, index: usize) -> Vec<(Value, Value)> {
    let mut without = vec![(Value::Null, role.clone())];
    without[0].1["rules"].as_array_mut().unwrap().remove(index);
    let rule = &role["rules"][index];
    let verbs = rule["verbs"].as_array().unwrap();
    // A kind that is not served yet is not read, so this deploy does not need that verb.
    let is_read = rule["resources"] != json!(["samples"]);
    for verb in verbs.iter().filter(|verb| verbs.len() > 1 && (*verb != "get" || is_read)) {
        let mut less = role.clone();
        less["rules"][index]["verbs"].as_array_mut().unwrap().retain(|other| other != verb);
        without.push((verb.clone(), less));
    }
    without
}

#[test]
fn the_printed_rights_are_enough_and_each_rule_of_them_is_needed() {
    let (cp, bed) = (control_plane(), Bed::new());
    bed.write("manifests.yaml", &everything(&bed));
    let user = cp.user(&json!([]));
    let deploy = || bed.deploy(cp.kubeconfig(&user), &["--preflight", "PermissionValidation", "-o", "json"]).run();

    // Without any permission: everything that is missing is reported at once, although nothing can be read.
    let nothing = deploy();
    nothing.code(3);
    let missing: BTreeSet<String> = offered(&nothing.report()).iter().flat_map(subjects_of).collect();
    for subject in ["deployments web", "deployments worker", "roles reader", "samples one", "clusterroles view"] {
        assert!(missing.contains(subject), "{subject} in {missing:?}");
    }

    let text = printed(&bed, cp, &user);
    let roles = grant(cp, &user, &text);
    let mut tried = 0;
    for role in &roles {
        for (index, rule) in role["rules"].as_array().unwrap().iter().enumerate() {
            for (left_out, without) in without_each(role, index) {
                replace(cp, &user, &without, rule);
                let run = deploy();
                run.code(3);
                let missing = offered(&run.report());
                let subjects: BTreeSet<String> = missing.iter().flat_map(subjects_of).collect();
                assert_eq!(subjects, subjects_of(rule), "without {left_out} of {rule}\n{}", run.stdout);
                let names_it = |rule: &Value| rule["verbs"].as_array().unwrap().contains(&left_out);
                assert!(
                    left_out.is_null() || missing.iter().all(names_it),
                    "without {left_out} of {rule}\n{}",
                    run.stdout
                );
                tried += 1;
            }
        }
        replace(cp, &user, role, &Value::Null);
    }
    assert!(tried >= 40, "{tried} times less than\n{text}");
    // All of these were stopped before the first write.
    for path in [bed.crd_path(), format!("{RBAC}/clusterroles/{}-view", bed.names.namespace)] {
        assert_eq!(cp.get(&path).0, 404, "{path}");
    }

    deploy().code(0);
    assert_eq!(cp.get(&bed.sample_path()).0, 200);
    deploy().code(0);
    // If everything exists already, the output is the same except for the namespace.
    let again = printed(&bed, cp, &user);
    let head = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let without_namespace = text.replacen(&format!("{}---\n", bed.namespace()), "", 1);
    assert_eq!((head(&again), &again), (head(&text), &without_namespace));
}

#[test]
fn an_administrator_needs_two_reviews_and_a_folder_none() {
    let (cp, bed) = (control_plane(), Bed::new());
    bed.write("manifests.yaml", &everything(&bed));
    let proxy = Proxy::start(cp);
    let check = ["check", "-f", "manifests.yaml", "--preflight", "PermissionValidation"];
    bed.gantry(proxy.kubeconfig("admin"), &check).run().code(0).stdout_contains("PermissionValidation");
    let reviews = proxy.requests().iter().filter(|request| request.path.starts_with(REVIEWS)).count();
    // The rules, and whether everything is allowed: they are requested at the same time.
    assert_eq!(reviews, 2);
    std::fs::create_dir(bed.folder.path().join("cluster")).unwrap();
    let run = bed.gantry(cp.kubeconfig("nobody"), &check).args(["--target", "dir:cluster", "-o", "json"]).run();
    assert_eq!(run.code(0).report()["checks"][0]["status"], "skipped");
    let permissions = ["permissions", "-f", "manifests.yaml", "--target", "dir:cluster"];
    bed.gantry(cp.kubeconfig("nobody"), &permissions).run().code(2).stderr_contains("--as");
    let run = bed.gantry(cp.kubeconfig("nobody"), &permissions).args(["--as-group", "ops"]).run();
    run.code(0).stdout_contains("{kind: Group, apiGroup: rbac.authorization.k8s.io, name: ops}");
}

#[test]
fn rights_beyond_an_incomplete_list_of_rules_are_reviewed_one_by_one() {
    let (cp, bed) = (control_plane(), Bed::new());
    let maps = ["a", "b", "c"].map(|name| bed.config_map(name, "x"));
    bed.write("manifests.yaml", &[bed.namespace(), maps.join("---\n")].join("---\n"));
    cp.apply_yaml(&bed.namespace());
    let user = cp.user(&json!([]));
    let roles = grant(cp, &user, &printed(&bed, cp, &user));

    let proxy = Proxy::start(cp);
    let nothing = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
        "status": {"incomplete": true, "resourceRules": [], "nonResourceRules": [], "evaluationError": "webhook"}});
    proxy.answer(When::new("POST", "selfsubjectrulesreviews"), 201, nothing);
    let check = || {
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "PermissionValidation", "-o", "json"];
        bed.gantry(proxy.kubeconfig(&user), &arguments).run()
    };
    check().code(0);
    let path = cp.path_of(&roles[0]);
    let patch =
        json!({"rules": [{"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["get", "patch"]}]});
    assert_eq!(cp.patch(&path, &patch).0, 200);
    in_force(cp, &user, &bed.names.namespace, |found| found.contains(&patch["rules"][0]));
    let run = check();
    let finding = run.code(3).report()["checks"][0]["findings"][0].clone();
    let said = format!(
        "not permitted to \"create\" /v1, Resource=configmaps in namespace \"{}\": 3 objects",
        bed.names.namespace
    );
    assert_eq!(finding["message"], said);
}

/// Needs its own server: the counters do not distinguish users or namespaces.
#[test]
fn a_thousand_objects_in_twenty_namespaces_take_few_reviews() {
    let (cp, bed) = (ControlPlane::start(), Bed::new());
    let mut manifests = Vec::new();
    for namespace in 0..20 {
        let namespace = format!("{}-{namespace}", bed.names.namespace);
        manifests.push(format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"));
        for kind in ["ConfigMap", "ServiceAccount"] {
            manifests.extend((0..25).map(|object| {
                format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: o{object}, namespace: {namespace}}}\n")
            }));
        }
    }
    assert_eq!(manifests.len(), 1020);
    bed.write("manifests.yaml", &manifests.join("---\n"));
    let user = cp.user(&json!([]));
    let text = printed(&bed, &cp, &user);
    let reviews = || {
        let of = |resource: &str| cp.metrics("apiserver_request_total", &[("resource", resource), ("verb", "POST")]);
        of("selfsubjectrulesreviews") + of("selfsubjectaccessreviews")
    };
    let deploy = |expected: i32| {
        let before = reviews();
        bed.deploy(cp.kubeconfig(&user), &["--preflight", "PermissionValidation", "-q"]).run().code(expected);
        eventually("the reviews are counted", || (reviews() - before >= 21.0).then_some(()));
        let sent = reviews() - before;
        assert!(sent <= 60.0, "{sent} reviews");
    };
    deploy(3);
    grant(&cp, &user, &text);
    deploy(0);
}

#[test]
fn a_user_who_may_impersonate_deploys_as_another_user() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = &bed.names.namespace;
    bed.write("manifests.yaml", &[bed.namespace(), bed.config_map("m", "x")].join("---\n"));
    let changed = [bed.namespace(), bed.config_map("m", "changed")].join("---\n");
    let run = |user: &str, flags: &[&str]| {
        bed.deploy(cp.kubeconfig(user), &["--preflight", "PermissionValidation"]).args(flags).run()
    };

    run("admin", &["--as-group", "ops"]).code(2).stderr_contains("--as");
    let refused = run("nobody", &["--as", "jane"]);
    refused.code(1).stderr_contains(r#"user "nobody" may not act as "jane""#).stderr_contains("impersonate");
    run("admin", &["--as", "jane"]).code(3).stdout_contains(r#"as "jane""#);

    // A service account.
    let account = format!("system:serviceaccount:{ns}:bot");
    cp.apply_yaml(&printed(&bed, cp, &account));
    eventually("the rights of the service account are in force", || {
        let run = bed.gantry(cp.kubeconfig("admin"), &["check", "-f", "manifests.yaml", "--as", &account]);
        let run = run.args(["--preflight", "PermissionValidation"]).run();
        (run.code == Some(0)).then_some(())
    });
    run("admin", &["--as", &account]).code(0);

    // The permissions belong to the second group.
    let groups = [format!("{ns}-a"), format!("{ns}-b")];
    let for_group =
        ["permissions", "-f", "manifests.yaml", "--name", groups[1].as_str(), "--as-group", groups[1].as_str()];
    let printed = bed.gantry(cp.kubeconfig("admin"), &for_group).run();
    cp.apply_yaml(&printed.code(0).stdout);
    let flags = ["--as", "jane", "--as-group", &groups[0], "--as-group", &groups[1]];
    eventually("the rights of the group are in force", || {
        let check = ["check", "-f", "manifests.yaml", "--preflight", "PermissionValidation"];
        let run = bed.gantry(cp.kubeconfig("admin"), &check).args(flags).run();
        run.stdout.contains("PermissionValidation  passed").then_some(()).or_else(|| {
            assert!(run.stdout.contains("not permitted"), "{}", run.stdout);
            None
        })
    });
    bed.write("manifests.yaml", &changed);
    run("admin", &flags).code(0);
    assert_eq!(cp.get(&bed.config_map_path("m")).1["data"]["key"], "changed");
}

#[test]
fn unreadable_objects_hide_no_finding_and_let_no_check_pass() {
    let (cp, bed) = (control_plane(), Bed::new());
    let manifests = [bed.namespace(), bed.crd("first: {type: string}"), bed.sample(), bed.config_map("m", "x")];
    cp.apply_yaml(&manifests.join("---\n"));
    bed.write("manifests.yaml", &manifests.join("---\n"));
    let user = cp.user(&json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "patch"]}]));
    let checks = "PermissionValidation,CRDUpgradeSafety";
    let run = bed.deploy(cp.kubeconfig(&user), &["--preflight", checks, "-o", "json"]).run();
    let report = run.code(3).report();
    assert_eq!(report["checks"][1]["status"], "failed");
    let missing: BTreeSet<String> = offered(&report).iter().flat_map(subjects_of).collect();
    let group = &bed.names.group;
    let expected = ["configmaps m", "samples one", &format!("customresourcedefinitions samples.{group}")];
    assert_eq!(missing, expected.map(str::to_owned).into());
    let unknown = |change: &&Value| change["action"] == "unknown";
    assert_eq!(report["changes"].as_array().unwrap().iter().filter(unknown).count(), 3);

    // It is no warning either: the server refuses these requests.
    let run = bed.deploy(cp.kubeconfig(&user), &["--preflight", "PermissionValidation", "--warn-only"]).run();
    run.code(3).stdout_contains("error[RequestNotPermitted]").stdout_contains("Nothing was written");
    assert!(Gantry::new().arg("rules").run().code(0).stdout.contains("RequestNotPermitted"));
}

#[test]
fn rights_that_the_findings_ask_for_are_enough_together() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = &bed.names.namespace;
    cp.apply_yaml(&[bed.namespace(), bed.config_map("old", "x")].join("---\n"));
    let manifests =
        |names: &[&str]| names.iter().map(|name| bed.config_map(name, "z")).collect::<Vec<_>>().join("---\n");
    let user = cp.user(&json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]));
    let check = || {
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "PermissionValidation", "-o", "json"];
        bed.gantry(cp.kubeconfig(&user), &arguments).arg("--force-conflicts").run()
    };
    // An update and a create lack different verbs; so will a later deploy.
    for (names, findings) in [(&["old", "new"][..], 2), (&["old", "new", "later"], 1)] {
        bed.write("manifests.yaml", &manifests(names));
        let report = check().report();
        let found = report["checks"][0]["findings"].as_array().unwrap();
        assert_eq!(found.len(), findings, "{found:#?}");
        for finding in found {
            let (_, role) = finding["help"].as_str().unwrap().split_once('\n').unwrap();
            let role = cp.apply_yaml(role).remove(0);
            let name = role["metadata"]["name"].as_str().unwrap();
            cp.apply_yaml(&format!(
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {name}, namespace: {ns}}}\n\
                 roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {name}}}\n\
                 subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]\n"
            ));
        }
        eventually("all of it is granted", || (check().code == Some(0)).then_some(()));
    }
}

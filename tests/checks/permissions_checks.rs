//! `PermissionValidation` and `gantry permissions` include the requests of the other checks.

use crate::support::rights::{grant, printed_with, replace};
use crate::support::{Bed, CrdBuilder, Webhook, control_plane, eventually, string_fields};
use serde_json::{Value, json};

const BOTH: [&str; 2] = ["--preflight", "ConversionWebhook,PermissionValidation"];

/// A CRD with two versions and this conversion.
fn crd(group: &str, conversion: &Value) -> Value {
    let schema = string_fields(&["first"]);
    CrdBuilder::samples(group).version("v1", schema.clone()).version("v2", schema).conversion(conversion).build()
}

fn deployment(bed: &Bed) -> String {
    let pod = json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "w", "image": "w:1"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": bed.names.namespace},
        "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": pod}})
    .to_string()
}

/// The printed permissions cover the first deploy and the next one, which converts objects that then exist.
#[test]
fn rights_for_the_conversion_check_are_printed_before_objects_exist() {
    let (cp, bed) = (control_plane(), Bed::new());
    let webhook = Webhook::converting(cp, |mut object, wanted| {
        object["apiVersion"] = wanted.into();
        object
    });
    let crd = crd(&bed.names.group, &webhook.conversion()).to_string();
    bed.write("manifests.yaml", &[bed.namespace(), crd.clone(), deployment(&bed)].join("\n---\n"));
    // Another webhook, in a namespace that this deploy does not use.
    let service = json!({"namespace": "elsewhere", "name": "webhook"});
    let theirs = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": service}}});
    cp.apply_yaml(&self::crd(&format!("theirs.{}", bed.names.group), &theirs).to_string());

    let user = cp.user(&json!([]));
    let roles = grant(cp, &user, &printed_with(&bed, cp, &user, &BOTH));
    let deploy = || bed.deploy(cp.kubeconfig(&user), &BOTH).run();
    deploy().code(0);
    cp.apply_yaml(&bed.sample());
    eventually("the webhook converts", || (cp.get(&bed.sample_path().replace("/v1/", "/v2/")).0 == 200).then_some(()));
    deploy().code(0);

    // The dry run of the round trip is a patch.
    let patch = json!({"apiGroups": [bed.names.group], "resources": ["samples"], "verbs": ["list", "patch"]});
    let holds = |role: &&Value| role["rules"].as_array().unwrap().contains(&patch);
    let role = roles.iter().find(holds).unwrap_or_else(|| panic!("{patch} in {roles:#?}"));
    let mut without = role.clone();
    for rule in without["rules"].as_array_mut().unwrap().iter_mut().filter(|rule| **rule == patch) {
        rule["verbs"] = json!(["list"]);
    }
    replace(cp, &user, &without, &patch);
    // An object that a deploy does not write does not block it.
    deploy().code(1).stdout_contains("warning[RequestNotPermitted]");
    let written = crd.replacen("\"metadata\":{", "\"metadata\":{\"labels\":{\"a\":\"b\"},", 1);
    bed.write("manifests.yaml", &[bed.namespace(), written, deployment(&bed)].join("\n---\n"));
    let said = format!("not permitted to \"patch\" {}/v2, Resource=samples at the cluster scope", bed.names.group);
    deploy().code(3).stdout_contains(&said);
}

/// For each set of rules and a manifest that grants permissions: gantry's answer is that of the server's dry run.
#[test]
fn rights_that_a_user_may_grant_are_those_that_the_server_allows() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = &bed.names.namespace;
    cp.apply_yaml(&bed.namespace());
    let rbac = "rbac.authorization.k8s.io";
    let role = |rule: Value| json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "r", "namespace": ns}, "rules": [rule]});
    let cluster_role = |rule: Value| json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": ns}, "rules": [rule]});
    let binding = |role: &str| {
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "b", "namespace": ns},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role}, "subjects": []})
    };
    let pods = |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["pods"], "verbs": verbs});
    let named =
        |names: &[&str]| json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": names});
    let logs = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
    let url = |url: &str| json!({"nonResourceURLs": [url], "verbs": ["get"]});
    let may = |verb: &str, resource: &str, name: &str| json!({"apiGroups": [rbac], "resources": [resource], "verbs": [verb], "resourceNames": [name]});
    let cases = [
        (vec![], role(pods(&["get"])), 3),
        (vec![pods(&["get"]), pods(&["list"])], role(pods(&["get", "list"])), 0),
        (vec![pods(&["get", "list", "watch", "create", "update", "patch", "delete"])], role(pods(&["*"])), 3),
        (vec![named(&["a"]), named(&["b"])], role(named(&["a", "b"])), 0),
        (vec![named(&["a"])], role(pods(&["get"])), 3),
        (vec![logs("*/log")], role(logs("pods/log")), 0),
        (vec![url("/x*")], cluster_role(url("/x/y")), 0),
        (vec![url("/x")], cluster_role(url("/x*")), 3),
        (vec![may("escalate", "roles", "r")], role(pods(&["get"])), 0),
        (vec![may("escalate", "clusterroles", "r")], role(pods(&["get"])), 3),
        (vec![may("bind", "clusterroles", "cluster-admin")], binding("cluster-admin"), 0),
        (vec![may("bind", "clusterroles", "view")], binding("cluster-admin"), 3),
    ];
    for (mut rules, manifest, expected) in cases {
        rules.push(json!({"apiGroups": [rbac], "resources": ["*"], "verbs": ["get", "create", "patch"]}));
        bed.write("manifests.yaml", &manifest.to_string());
        let user = cp.user(&json!(rules));
        for check in ["PermissionValidation", "AdmissionDryRun"] {
            let arguments = ["check", "-f", "manifests.yaml", "--preflight", check];
            bed.gantry(cp.kubeconfig(&user), &arguments).run().code(expected);
        }
    }
}

#[test]
fn rights_to_lists_of_other_checks_are_reviewed_in_advance() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&[bed.namespace(), bed.crd("first: {type: string}"), bed.sample()].join("---\n"));
    bed.write("manifests.yaml", &bed.crd("first: {type: integer}"));
    let user =
        cp.user(&json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["get", "patch"]}]));
    let checks = "PermissionValidation,CustomResourceValidation";
    let run = bed.deploy(cp.kubeconfig(&user), &["--preflight", checks, "-o", "json"]).run();
    let finding = run.code(3).report()["checks"][0]["findings"][0].clone();
    let said = format!("not permitted to \"list\" {}/v1, Resource=samples at the cluster scope", bed.names.group);
    assert_eq!(finding["message"], said);
}

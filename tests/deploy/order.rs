//! The order in which a deploy writes and deletes: annotations come before the default order.

use crate::support::{Bed, Proxy, Recorded, When, closed_port, control_plane, eventually, results};
use crate::waiting::{available, status};
use serde_json::{Value, json};

const GROUP: &str = "kapp.k14s.io/change-group";
const RULE: &str = "kapp.k14s.io/change-rule";
const DEPENDS_ON: &str = "config.kubernetes.io/depends-on";

/// An object of a core kind.
fn object(bed: &Bed, kind: &str, name: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
}

fn config_map(bed: &Bed, name: &str, annotations: Value) -> Value {
    object(bed, "ConfigMap", name, &annotations)
}

/// Writes each object on its own line, with separators between them.
fn write(bed: &Bed, objects: &[Value]) {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
}

fn prepared() -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed
}

/// The names of the objects of these kinds in the order in which they were written or deleted.
pub fn written(proxy: &Proxy, method: &str) -> Vec<String> {
    let is_one = |request: &Recorded| {
        request.method == method
            && !request.query.contains("dryRun")
            && ["configmaps", "secrets", "serviceaccounts"].iter().any(|kind| request.path.contains(kind))
            && !request.path.contains(".gantry")
    };
    let name = |request: Recorded| request.path.rsplit('/').next().unwrap_or_default().to_owned();
    proxy.requests().into_iter().filter(is_one).map(name).collect()
}

#[test]
fn objects_are_written_after_those_that_their_annotations_name() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let namespace = &bed.names.namespace;
    // By default all at once, but for the account.
    let objects = [
        config_map(&bed, "f", json!({DEPENDS_ON: format!("/namespaces/{namespace}/ConfigMap/e")})),
        config_map(
            &bed,
            "e",
            json!({"gantry.dev/change-rule.x": "upsert after upserting x.example.com/{namespace}-d"}),
        ),
        config_map(&bed, "d", json!({"gantry.dev/change-group": "x.example.com/{namespace}-{name}"})),
        config_map(&bed, "c", json!({RULE: "upsert before upserting x.example.com/{namespace}-d", GROUP: "y"})),
        object(
            &bed,
            "Secret",
            "b",
            &json!({RULE: "upsert before upserting y", (format!("{RULE}.1")): "upsert after upserting z"}),
        ),
        object(&bed, "ServiceAccount", "a", &json!({(format!("{GROUP}.1")): "z", RULE: "delete after deleting y"})),
        config_map(&bed, "plain", json!({})),
    ];
    write(&bed, &objects);
    let output = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    output.code(0);
    let order = written(&proxy, "PATCH");
    let order: Vec<&str> = order.iter().map(String::as_str).filter(|name| *name != "plain").collect();
    assert_eq!(order, ["a", "b", "c", "d", "e", "f"]);

    // The report has the steps.
    let report = output.report();
    let name = |index: &Value| {
        report["changes"][index.as_u64().expect("an index") as usize]["object"]["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    let steps = report["graph"].as_array().expect("steps");
    let step = |wanted: &str| {
        let has =
            |step: &&Value| step["members"].as_array().expect("members").iter().any(|index| name(index) == wanted);
        steps.iter().find(has).unwrap_or_else(|| panic!("{wanted} in {steps:#?}"))
    };
    let after = |wanted: &str| -> Vec<String> {
        let after = step(wanted)["after"].as_array().into_iter().flatten();
        after
            .flat_map(|earlier| steps[earlier.as_u64().unwrap() as usize]["members"].as_array().unwrap())
            .map(name)
            .collect()
    };
    assert_eq!(after("f"), ["e"]);
    assert_eq!(after("e"), ["d"]);

    // Nothing is left to do, and the deploy does not wait for unchanged objects.
    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0).stdout_contains("7 objects unchanged");
}

/// Nobody waits for what is in another namespace.
#[test]
fn a_slow_namespace_and_a_slow_workload_delay_only_objects_that_need_them() {
    let bed = Bed::new();
    let cp = control_plane();
    let (slow, other) = (bed.names.namespace.clone(), format!("more-{}", bed.names.namespace));
    let named = |namespace: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let of = |namespace: &str, mut object: Value| {
        object["metadata"] = json!({"name": "hook", "namespace": namespace});
        object
    };
    let settings = |namespace: &str| of(namespace, json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    let mut sample: Value = serde_yaml::from_str(&bed.sample()).expect("a sample");
    sample["metadata"]["namespace"] = other.as_str().into();
    let exists = |object: &Value| cp.get(&cp.path_of(object)).0 == 200;
    let written = |object: &Value| eventually("the object is written", || exists(object).then_some(()));

    let objects = [named(&slow), settings(&slow), named(&other), settings(&other), sample.clone()];
    let texts: Vec<String> = objects.iter().map(Value::to_string).chain([bed.crd("first: {type: string}")]).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
    let proxy = Proxy::start(cp);
    let held = proxy.hold(When::new("PATCH", &format!("/namespaces/{slow}")));
    let running = bed.deploy(proxy.kubeconfig("admin"), &[]).spawn();
    held.reached();
    written(&settings(&other));
    written(&sample);
    assert!(!exists(&settings(&slow)));
    drop(held);
    running.wait().code(0).stdout_contains("6 created");

    let workload = |namespace: &str| {
        let pods =
            json!({"metadata": {"labels": {"app": "hook"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "hook"}}, "template": pods});
        of(namespace, json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}))
    };
    let service = |namespace: &str| {
        let spec = json!({"selector": {"app": "hook"}, "ports": [{"port": 443}]});
        of(namespace, json!({"apiVersion": "v1", "kind": "Service", "spec": spec}))
    };
    let front = |namespace: &str| {
        let backend = json!({"service": {"name": "hook", "port": {"number": 443}}});
        of(
            namespace,
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {"defaultBackend": backend}}),
        )
    };
    // It is asked about nothing that exists.
    let webhooks = |namespace: &str| {
        let client = json!({"service": {"namespace": namespace, "name": "hook"}, "caBundle": "Zm9v"});
        let rules = json!([{"apiGroups": ["nothing.example.com"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]);
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace}, "webhooks": [{"name": "hook.example.com", "clientConfig": client, "rules": rules,
                "sideEffects": "None", "admissionReviewVersions": ["v1"]}]})
    };
    let each = |namespace: &str| [workload(namespace), service(namespace), front(namespace), webhooks(namespace)];
    let objects: Vec<Value> = [each(&slow), each(&other)].concat();
    write(&bed, &objects);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &slow, "-o", "json"];
    let running = bed.gantry(cp.kubeconfig("admin"), &arguments).spawn();
    objects.iter().filter(|object| object["kind"] != webhooks("x")["kind"]).for_each(written);
    assert!(![&slow, &other].iter().any(|namespace| exists(&webhooks(namespace))));
    status(&workload(&other), available(2));
    written(&webhooks(&other));
    assert!(!exists(&webhooks(&slow)));
    status(&workload(&slow), available(2));
    let report = running.wait().code(0).report();

    // The report says for what each step waits until it is ready.
    let index_of = |kind: &str, name: &str, namespace: &Value| {
        let changes = report["changes"].as_array().expect("changes");
        let is_it = |change: &Value| {
            let object = &change["object"];
            object["kind"] == kind && object["name"] == name && object["namespace"] == *namespace
        };
        changes.iter().position(is_it).expect("a change")
    };
    let steps = report["graph"].as_array().expect("steps");
    let step = |index: usize| {
        let has = |step: &&Value| step["members"].as_array().expect("members").contains(&json!(index));
        steps.iter().find(has).expect("a step")
    };
    let hook = step(index_of("ValidatingWebhookConfiguration", &slow, &Value::Null));
    let ready = hook["ready"].as_array().expect("steps that have to be ready");
    let members: Vec<&Value> = ready.iter().map(|step| &steps[step.as_u64().unwrap() as usize]["members"]).collect();
    assert_eq!(members, [&json!([index_of("Deployment", "hook", &json!(slow))])]);
    let front = step(index_of("Ingress", "hook", &json!(slow)));
    assert!(front["ready"].is_null() && front["after"].is_array(), "{front}");

    [&slow, &other].iter().for_each(|namespace| drop(cp.delete(&cp.path_of(&webhooks(namespace)))));
    cp.delete(&bed.crd_path());
}

#[test]
fn verbose_output_names_rules_that_reverse_the_default_order() {
    let bed = prepared();
    let first = config_map(&bed, "first", json!({GROUP: "x"}));
    write(&bed, &[first, object(&bed, "ServiceAccount", "then", &json!({RULE: "upsert after upserting x"}))]);
    let check = |flags: &[&str]| {
        bed.deploy(control_plane().kubeconfig("admin"), &[&["--dry-run"], flags].concat()).run().code(0).stderr.clone()
    };
    let namespace = &bed.names.namespace;
    let said =
        format!("configmap/first -n {namespace} is written before serviceaccount/then -n {namespace} because of rules");
    assert!(check(&["-v"]).contains(&said), "{}", check(&["-v"]));
    assert!(!check(&[]).contains("because of rules"));
}

#[test]
fn an_object_that_waits_for_a_failed_one_is_not_written() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let objects = [
        config_map(&bed, "second", json!({RULE: "upsert after upserting first"})),
        config_map(&bed, "first", json!({GROUP: "first"})),
    ];
    write(&bed, &objects);
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "no"});
    proxy.answer(When::new("PATCH", "/configmaps/first"), 422, refusal);
    let output = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    output.code(1);
    let mut found = results(&output.report());
    found.sort();
    let result = |(_, result): &(String, String)| result.clone();
    assert_eq!(found.iter().map(result).collect::<Vec<_>>(), ["failed", "notReached"], "{output}");
    assert_eq!(control_plane().get(&bed.config_map_path("second")).0, 404);
}

#[test]
fn with_keep_going_only_objects_that_need_a_failed_one_are_not_written() {
    let (bed, other) = (prepared(), Bed::new());
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let rbac = |kind: &str, name: &str, rest: Value| {
        let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": bed.names.namespace}});
        object.as_object_mut().expect("an object").extend(rest.as_object().expect("fields").clone());
        object
    };
    let binding = |name: &str, role: &str| {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role});
        rbac("RoleBinding", name, json!({"roleRef": role, "subjects": []}))
    };
    let resource = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
        "metadata": {"name": "held-sample", "namespace": bed.names.namespace}});
    let mut elsewhere = config_map(&bed, "held-elsewhere", json!({}));
    elsewhere["metadata"]["namespace"] = other.names.namespace.clone().into();
    let objects = [
        namespace(&other.names.namespace),
        elsewhere,
        resource,
        object(&bed, "Secret", "fails", &json!({GROUP: "fails"})),
        config_map(&bed, "held", json!({RULE: "upsert after upserting fails", GROUP: "held"})),
        config_map(&bed, "held-too", json!({RULE: "upsert after upserting held"})),
        config_map(&bed, "written", json!({})),
        config_map(&bed, "written-too", json!({GROUP: "alone"})),
        rbac("Role", "fails-role", json!({"rules": []})),
        rbac("Role", "role", json!({"rules": []})),
        binding("held-binding", "fails-role"),
        binding("written-binding", "role"),
    ];
    let texts: Vec<String> = objects.iter().map(Value::to_string).chain([bed.crd("spec: {type: object}")]).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
    let proxy = Proxy::start(control_plane());
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
        "message": "no"});
    let refused =
        ["/secrets/fails", "/roles/fails-role", &format!("/namespaces/{}", other.names.namespace), &bed.crd_path()];
    for path in refused {
        let when = When::new("PATCH", path).query("force=false&fieldValidation=Strict");
        // The dry run of the check comes first.
        let when = if *path == bed.crd_path() { when.nth(2) } else { when };
        proxy.answer(when, 422, refusal.clone());
    }
    let run = |flags: &[&str]| bed.deploy(proxy.kubeconfig("admin"), &[&["-o", "json"], flags].concat()).run();
    let report = run(&["--keep-going"]).code(1).report();
    for (name, result) in results(&report) {
        let expected = match name.as_str() {
            name if name.contains("held") => "notReached",
            name if name.contains("written") || name == "Role role" => "applied",
            _ => "failed",
        };
        assert_eq!(result, expected, "{name}: {report:#}");
    }
    assert_eq!(report["errors"].as_array().map(Vec::len), Some(4), "{report:#}");
    // Otherwise the first failure ends the deploy.
    let report = run(&[]).code(1).report();
    assert!(results(&report).iter().any(|(name, result)| name.contains("held-elsewhere") && result == "notReached"));
}

#[test]
fn rules_that_cannot_be_kept_end_the_run_before_any_request() {
    let bed = Bed::new();
    let nowhere = || closed_port(bed.folder.path());
    let in_turn = |name: &str, after: &str| {
        config_map(&bed, name, json!({GROUP: format!("g/{name}"), RULE: format!("upsert after upserting g/{after}")}))
    };
    write(&bed, &[in_turn("a", "b"), in_turn("b", "c"), in_turn("c", "a")]);
    for command in ["deploy", "check", "diff"] {
        let output = bed.gantry(nowhere(), &[command, "-f", "manifests.yaml"]).run();
        output.code(2);
        let text = output.to_string();
        assert!(text.contains("the order of the objects has a cycle: "), "{text}");
        for (later, earlier, line) in [("a", "b", 1), ("b", "c", 3), ("c", "a", 5)] {
            let namespace = &bed.names.namespace;
            let edge = format!(
                "configmap/{later} -n {namespace} comes after configmap/{earlier} -n {namespace} (manifests.yaml:{line})"
            );
            assert!(text.contains(&edge), "{edge}\n{text}");
        }
    }
    // Also a cycle that only affects a later deletion.
    let deleted = |name: &str, before: &str| {
        config_map(&bed, name, json!({GROUP: name, RULE: format!("delete before deleting {before}")}))
    };
    write(&bed, &[deleted("a", "b"), deleted("b", "a")]);
    bed.deploy(nowhere(), &[]).run().code(2).stderr_contains("the order of the objects has a cycle");

    let yaml = |rule: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    {RULE}: \"{rule}\"\n")
    };
    let wrong = [
        ("upsert after x", "a rule is like \"upsert after upserting apps.example.com/database\""),
        ("upsert after upserting {crd-kind}", "{crd-kind} has no value for this object"),
        ("upsert after upserting {uid}", "unknown placeholder {uid}"),
    ];
    for (rule, message) in wrong {
        bed.write("manifests.yaml", &yaml(rule));
        let output = bed.deploy(nowhere(), &[]).run();
        output.code(2).stderr_contains(message).stderr_contains("--> manifests.yaml:6:5");
    }
}

#[test]
fn a_rule_that_matches_no_object_is_a_notice() {
    let bed = prepared();
    let objects = [
        config_map(&bed, "a", json!({RULE: "upsert after upserting databse"})),
        config_map(&bed, "b", json!({GROUP: "database", DEPENDS_ON: "apps/namespaces/x/Deployment/web"})),
    ];
    write(&bed, &objects);
    let output = bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    output.code(0).stderr_contains("no object of the manifests is in the change group databse");
    output.stderr_contains("the manifests have no deployment.apps/web -n x");
}

#[test]
fn members_are_deleted_in_the_order_of_their_live_annotations() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let app = |objects: &[Value], flags: &[&str]| {
        write(&bed, objects);
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &bed.names.namespace, "--prune-max=9"];
        bed.gantry(proxy.kubeconfig("admin"), &[&arguments, flags].concat()).run()
    };
    let kept = || config_map(&bed, "kept", json!({}));
    let leaving = [
        kept(),
        config_map(&bed, "one", json!({GROUP: "first"})),
        config_map(&bed, "three", json!({RULE: "delete after deleting second"})),
        config_map(&bed, "two", json!({GROUP: "second", RULE: "delete after deleting first"})),
    ];
    app(&leaving, &[]).code(0);
    app(&[kept()], &["--prune=yes"]).code(0).stdout_contains("3 deleted");
    assert_eq!(written(&proxy, "DELETE"), ["one", "two", "three"]);

    // A deletion before a write is refused.
    app(&[kept(), config_map(&bed, "old", json!({GROUP: "old"}))], &[]).code(0);
    let new = config_map(&bed, "new", json!({RULE: "upsert after deleting old"}));
    let output = app(&[kept(), new], &["--prune=yes"]);
    output.code(3).stdout_contains("gantry deletes last").stdout_contains("--> manifests.yaml:3:");
    output.stdout_contains("deploy twice: first without configmap/new");
    assert_eq!(control_plane().get(&bed.config_map_path("new")).0, 404);
    assert_eq!(control_plane().get(&bed.config_map_path("old")).0, 200);
    // A member that the manifests leave out would be deleted, so the advice is another.
    let changed = config_map(&bed, "kept", json!({RULE: "upsert after deleting old"}));
    let report = app(&[changed], &["--prune=yes", "-o", "json"]).code(3).report();
    let help = report["errors"][0]["help"].as_str().expect("a help");
    assert!(help.contains("as it was deployed last") && !help.contains("without configmap/kept -n"), "{help}");
    // Following it deletes only what left the manifests.
    app(&[kept()], &["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!(control_plane().get(&bed.config_map_path("kept")).0, 200);
}

#[test]
fn a_rule_that_only_an_app_could_wait_for_is_a_notice() {
    let bed = prepared();
    let mut job = object(&bed, "Job", "migrate", &json!({GROUP: "migrations"}));
    job["apiVersion"] = "batch/v1".into();
    let containers = json!([{"name": "a", "image": "a"}]);
    job["spec"] = json!({"template": {"spec": {"restartPolicy": "Never", "containers": containers}}});
    let after = json!({RULE: "upsert after upserting migrations"});
    let later = [config_map(&bed, "settings", after.clone()), config_map(&bed, "more", after)];
    write(&bed, &[&[job.clone()][..], &later].concat());
    let deploy = |flags: &[&str]| bed.deploy(control_plane().kubeconfig("admin"), flags).run();
    let notice = "is written when job.batch/migrate";
    let output = deploy(&["--dry-run"]);
    output.code(0).stderr_contains(notice).stderr_contains("not when it is ready").stderr_contains("-a NAME");
    output.stderr_contains("manifests.yaml:3:").stderr_contains(RULE);
    assert_eq!(output.stderr.matches("not when it is ready").count(), 1, "{output}");
    // It is as it says: nobody runs the Job, and the rest is written.
    deploy(&[]).code(0).stderr_contains(notice).stdout_contains("3 created");
    // An unchanged Job that is not ready is awaited.
    write(
        &bed,
        &[job.clone(), config_map(&bed, "settings", json!({RULE: "upsert after upserting migrations", "a": "b"}))],
    );
    let output = deploy(&["--wait-timeout=1s"]);
    output.code(5).stdout_contains("job.batch/migrate");
    output.contains_nowhere("not when it is ready");
    // A deploy that waits, or that need not wait, or that was told not to.
    let fast = config_map(&bed, "first", json!({GROUP: "migrations"}));
    let other = config_map(&bed, "second", json!({RULE: "upsert after upserting migrations"}));
    job["metadata"]["name"] = "other".into();
    for (first, flag) in [(&job, "--wait=false"), (&job, "--wait"), (&fast, "--wait=crds")] {
        write(&bed, &[first.clone(), other.clone()]);
        deploy(&["--dry-run", flag]).code(0).contains_nowhere("not when it is ready");
    }
    // A rule about deletions, an unchanged object after it, and kapp's own rules about kinds.
    let deletion = config_map(&bed, "third", json!({RULE: "upsert after deleting migrations"}));
    write(&bed, &[job.clone(), deletion]);
    deploy(&["--dry-run"]).code(0).contains_nowhere("not when it is ready");
    write(&bed, &[fast.clone(), other.clone()]);
    deploy(&[]).code(0);
    write(&bed, &[job.clone(), fast, other]);
    deploy(&["--dry-run"]).code(0).stdout_contains("1 create").contains_nowhere("not when it is ready");
    let config = "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nchangeGroupBindings:\n- name: change-groups.kapp.k14s.io/jobs\n  \
                  resourceMatchers: [{apiGroupKindMatcher: {apiGroup: batch, kind: Job}}]\nchangeRuleBindings:\n- rules: [upsert after \
                  upserting change-groups.kapp.k14s.io/jobs]\n  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: v1, kind: \
                  ConfigMap}}]\n";
    bed.write("kapp.yaml", config);
    job["metadata"]["annotations"] = json!({});
    write(&bed, &[job.clone(), config_map(&bed, "fourth", json!({}))]);
    deploy(&["--dry-run", "-c", "kapp.yaml"]).code(0).contains_nowhere("not when it is ready");
    bed.write("kapp.yaml", &config.replace("change-groups.kapp.k14s.io/jobs", "jobs"));
    deploy(&["--dry-run", "-c", "kapp.yaml"]).code(0).stderr_contains("not when it is ready");
}

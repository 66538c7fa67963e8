//! Webhooks that do not answer yet, because their Pods start during the deploy.

use crate::support::admission::Admission;
use crate::support::{Bed, CrdBuilder, Proxy, When, any_fields, control_plane, eventually, results};
use crate::waiting::{available, status};
use serde_json::{Value, json};

/// A server that does not exist.
fn closed() -> Value {
    json!({"url": "https://127.0.0.1:1/"})
}

/// A bed with a namespace in which a webhook that does not answer is called for ConfigMaps, but not for Secrets.
fn hindered() -> (Bed, Admission) {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let mut rules = Admission::default();
    rules.webhook(&bed, "configmaps", &closed(), "failed calling webhook");
    let namespace = &bed.names.namespace;
    let account = format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: z, namespace: {namespace}}}\n");
    let late = bed.config_map("late", "x").replace(
        "metadata: {",
        "metadata: {annotations: {gantry.dev/change-rule: upsert after upserting example.com/early}, ",
    );
    let early = bed
        .config_map("early", "x")
        .replace("metadata: {", "metadata: {annotations: {gantry.dev/change-group: example.com/early}, ");
    bed.write("manifests.yaml", &[late, early, account].join("---\n"));
    (bed, rules)
}

#[test]
fn an_object_is_tried_again_until_its_webhook_answers_and_others_go_on_meanwhile() {
    let (bed, rules) = hindered();
    let proxy = Proxy::start(control_plane());
    let free = format!("/api/v1/namespaces/{}/configmaps?dryRun=All", bed.names.namespace);
    let rules = std::sync::Mutex::new(Some(rules));
    let account = format!("/api/v1/namespaces/{}/serviceaccounts/z", bed.names.namespace);
    proxy.before(When::new("PATCH", "/configmaps/early").nth(3), move || {
        assert_eq!(control_plane().get(&account).0, 200, "it does not depend on a webhook");
        drop(rules.lock().expect("no panic").take());
        eventually("the webhook is not asked any more", || {
            (control_plane().post(&free, &json!({"metadata": {"name": "denied"}})).0 == 201).then_some(())
        });
    });
    let output = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    let report = output.code(0).report();
    assert!(results(&report).iter().all(|(_, result)| result == "applied"), "{report}");
    let tried = |name: &str| proxy.writes().iter().filter(|r| r.path.ends_with(name)).count();
    assert_eq!((tried("/early"), tried("/late")), (3, 1));
}

#[test]
fn a_webhook_that_never_answers_ends_the_deploy_after_the_limit() {
    let (bed, _rules) = hindered();
    let output = bed.deploy(control_plane().kubeconfig("admin"), &["--apply-timeout=1s", "-o", "json"]).run();
    let report = output.code(1).report();
    let message = report["errors"][0]["message"].as_str().expect("a message");
    assert!(message.starts_with("configmap/early -n "), "{message}");
    assert!(message.contains("failed calling webhook \"hook.example.com\""), "{message}");
    assert!(message.contains("connection refused; tried "), "{message}");
    let of = |name: &str| {
        let results = results(&report);
        results.iter().find(|(object, _)| object.ends_with(&format!(" {name}"))).expect("an object").1.clone()
    };
    assert_eq!((of("early").as_str(), of("late").as_str(), of("z").as_str()), ("failed", "notReached", "applied"));
    // With a short time limit it is tried only once.
    let proxy = Proxy::start(control_plane());
    bed.deploy(proxy.kubeconfig("admin"), &["--apply-timeout=1ms"]).run().code(1).stdout_contains("failed calling");
    assert_eq!(proxy.writes().iter().filter(|request| request.path.ends_with("/early")).count(), 1);
}

#[test]
fn an_interrupt_ends_the_retries() {
    let (bed, _rules) = hindered();
    let proxy = Proxy::start(control_plane());
    let third = proxy.hold(When::new("PATCH", "/configmaps/early").nth(2));
    let mut deploy = bed.deploy(proxy.kubeconfig("admin"), &[]).spawn();
    third.reached();
    deploy.interrupt();
    deploy.wait_for_stderr("interrupted");
    drop(third);
    let output = deploy.wait();
    output.code(1).stdout_contains("error: interrupted");
    assert!(output.stdout.contains("of 3 objects, 1 applied, 2 not reached"), "{output}");
}

/// A CRD's webhook converts objects that are written at a version other than the stored one.
#[test]
fn a_conversion_webhook_that_starts_late_is_waited_for() {
    let bed = Bed::new();
    let cp = control_plane();
    let group = bed.names.group.clone();
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"}});
    let crd = CrdBuilder::samples(&group)
        .version("v1", any_fields())
        .version("v2", any_fields())
        .conversion(&json!({"strategy": "Webhook", "webhook": webhook}))
        .build();
    let object = json!({"apiVersion": format!("{group}/v2"), "kind": "Sample",
        "metadata": {"name": "one", "namespace": bed.names.namespace}, "spec": {}});
    bed.write("manifests.yaml", &format!("{}---\n{crd}\n---\n{object}\n", bed.namespace()));
    let proxy = Proxy::start(cp);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.{group}");
    proxy.before(When::new("PATCH", "/samples/one").nth(3), move || {
        let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        assert_eq!(control_plane().patch(&path, &none).0, 200);
    });
    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
    assert_eq!(cp.get(&format!("/apis/{group}/v2/namespaces/{}/samples/one", bed.names.namespace)).0, 200);
}

/// A live webhook is called as soon as an object is written, so the object waits until the webhook's new Pods are
/// ready.
#[test]
fn a_custom_resource_waits_for_the_workload_behind_a_live_webhook() {
    let bed = Bed::new();
    let cp = control_plane();
    let (namespace, group) = (&bed.names.namespace, &bed.names.group);
    cp.apply_yaml(&bed.namespace());
    let operator = |image: &str| {
        let metadata = json!({"name": "operator", "namespace": namespace});
        let pods = json!({"metadata": {"labels": {"app": "operator"}}, "spec": {"containers": [{"name": "a", "image": image}]}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "operator"}}, "template": pods}})
    };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": namespace},
        "spec": {"selector": {"app": "operator"}, "ports": [{"port": 443}]}});
    // Its controller would fill in the CA bundle. Nothing answers here, so the webhook is not called for any object.
    let client = json!({"service": {"namespace": namespace, "name": "hook"}});
    let rules = json!([{"apiGroups": [group], "apiVersions": ["*"], "resources": ["samples"], "operations": ["*"]}]);
    let webhook = |policy: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace}, "webhooks": [{"name": "hook.example.com", "clientConfig": client,
                "failurePolicy": policy, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": rules,
                "objectSelector": {"matchLabels": {"nobody": "has"}}}]})
    };
    let deploy = |objects: &[&str], flags: &[&str]| {
        bed.write("manifests.yaml", &objects.join("\n---\n"));
        let arguments = [&["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", namespace], flags];
        bed.gantry(cp.kubeconfig("admin"), &arguments.concat())
    };
    let (crd, sample) = (bed.crd("first: {type: string}"), bed.sample());
    for policy in ["Fail", "Ignore"] {
        let others =
            [&*crd, &service.to_string(), &webhook(policy).to_string(), &operator("1").to_string()].map(str::to_owned);
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        deploy(&others, &["--wait=false"]).run().code(0);
        let next = operator("2").to_string();
        let mut all: Vec<&str> = others[..3].to_vec();
        all.extend([&*next, &*sample]);
        let proxy = Proxy::start(cp);
        bed.write("manifests.yaml", &all.join("\n---\n"));
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", namespace];
        let running = bed.gantry(proxy.kubeconfig("admin"), &arguments).spawn();
        eventually("the operator is awaited", || {
            let is_watch = |request: &crate::support::Recorded| {
                request.path.ends_with("/deployments") && request.query.contains("watch=true")
            };
            proxy.requests().iter().any(is_watch).then_some(())
        });
        assert_eq!(cp.get(&bed.sample_path()).0, if policy == "Fail" { 404 } else { 200 }, "{policy}");
        status(&operator("2"), available(2));
        running.wait().code(0).stdout_contains("1 created");
        assert_eq!(cp.get(&bed.sample_path()).0, 200);
        cp.delete(&bed.sample_path());
    }
    // There is no garbage collector in this test, so a Deployment would never be gone.
    let delete = ["apps", "forget", "-a", "shop", "-n", namespace, "--yes"];
    bed.gantry(cp.kubeconfig("admin"), &delete).run().code(0);
    cp.delete(&format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}"));
    cp.delete(&bed.crd_path());
}

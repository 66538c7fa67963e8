//! Webhooks that are called for the record of an app and do not answer.

use std::sync::Mutex;

use super::Shop;
use super::killed::live_in;
use crate::support::admission::{Admission, only};
use crate::support::{Output, Proxy, When, control_plane, eventually, run_printed};
use serde_json::json;

/// An app with a webhook for everything in its namespace, whose server never starts.
fn with_own_webhook() -> Shop {
    let shop = Shop::new();
    let namespace = shop.bed.names.namespace.clone();
    let metadata = |name: &str| json!({"name": name, "namespace": namespace});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata("hook"),
        "spec": {"ports": [{"port": 443}], "selector": {"app": "hook"}}});
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["*"], "scope": "Namespaced"}]);
    let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace}, "webhooks": [{"name": "all.example.com", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "timeoutSeconds": 1, "rules": rules, "namespaceSelector": only(&shop.bed),
            "clientConfig": {"service": {"name": "hook", "namespace": namespace}}}]});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("before")});
    shop.write(&[service, secret, webhook]);
    shop
}

/// The configurations that the help ends with. Lines are wrapped.
fn advice(output: &Output) -> String {
    let words: Vec<&str> = output.stdout.split("Not reached").next().expect("a text").split_whitespace().collect();
    let text = words.join(" ");
    let (_, command) = text.rsplit_once("which other applications may need: ").expect("advice");
    command.to_owned()
}

fn configuration(shop: &Shop) -> String {
    let name = &shop.bed.names.namespace;
    format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}")
}

fn is_called(shop: &Shop) {
    let path = format!("/api/v1/namespaces/{}/configmaps?dryRun=All", shop.bed.names.namespace);
    eventually("the webhook is called", || {
        let (_, answer) = control_plane().post(&path, &json!({"metadata": {"name": "x"}}));
        answer["message"].as_str().is_some_and(|message| message.contains("failed calling webhook")).then_some(())
    });
}

fn is_all_gone(shop: &Shop) {
    assert_eq!(shop.get("shop.gantry"), None);
    assert_eq!(live_in(&[shop]).len(), 0);
    assert_eq!(control_plane().get(&configuration(shop)).0, 404);
    let service = format!("/api/v1/namespaces/{}/services/hook", shop.bed.names.namespace);
    assert_eq!(control_plane().get(&service).0, 404);
}

#[test]
fn an_app_whose_own_webhook_does_not_answer_is_deleted() {
    let shop = with_own_webhook();
    let flags = ["--wait=false", "--apply-timeout=1s"];
    // The final write of the record may come before the server calls the webhook.
    drop(shop.deploy(&flags));
    is_called(&shop);
    shop.config_maps(&["late"]);
    let output = shop.deploy(&flags);
    output.code(1).stdout_contains("the app shop cannot be recorded").stdout_contains("failed calling webhook");
    let name = &shop.bed.names.namespace;
    assert_eq!(advice(&output), format!("validatingwebhookconfiguration/{name}"));
    // Such a webhook may also be called for the question what the user may do.
    let proxy = Proxy::start(control_plane());
    let message =
        "Internal error occurred: failed calling webhook \"all.example.com\": failed to call webhook: refused";
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
        "reason": "InternalError", "message": message});
    proxy.answer(When::new("POST", "/selfsubjectaccessreviews"), 500, refusal);
    let arguments = ["delete", "-a", "shop", "--yes"];
    shop.command(proxy.kubeconfig("admin"), &arguments).run().code(0).stdout_contains("3 deleted");
    is_all_gone(&shop);
}

#[test]
fn an_app_can_be_deployed_after_the_printed_command_deletes_the_webhook_configuration() {
    let shop = with_own_webhook();
    let flags = ["--wait=false", "--apply-timeout=1s"];
    drop(shop.deploy(&flags));
    is_called(&shop);
    shop.config_maps(&["late"]);
    let output = shop.deploy(&flags);
    output.code(1);
    let advice = advice(&output);
    let command = format!("kubectl delete {advice}");
    run_printed(&command, &control_plane().kubeconfig("admin"), shop.bed.folder.path());
    shop.deploy(&["--wait=false", "--prune=no"]).code(0).stdout_contains("1 created");
    assert!(shop.get("late").is_some());
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0);
    is_all_gone(&shop);
}

#[test]
fn every_configuration_that_calls_the_webhook_is_named_and_no_other() {
    let shop = with_own_webhook();
    let flags = ["--wait=false", "--apply-timeout=1s"];
    drop(shop.deploy(&flags));
    is_called(&shop);
    let name = shop.bed.names.namespace.clone();
    let webhook = control_plane().get(&configuration(&shop)).1["webhooks"][0].clone();
    let another = |kind: &str, name: &str, service: &str| {
        let mut webhook = webhook.clone();
        webhook["clientConfig"]["service"]["name"] = service.into();
        control_plane().apply_yaml(
            &json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
                "webhooks": [webhook]})
            .to_string(),
        );
    };
    let path = |plural: &str, name: &str| format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}");
    let (mutating, other) = (format!("{name}-m"), format!("{name}-other"));
    another("MutatingWebhookConfiguration", &mutating, "hook");
    another("ValidatingWebhookConfiguration", &other, "hook-of-another");
    shop.config_maps(&["late"]);
    let output = shop.deploy(&flags);
    let advice = advice(output.code(1));
    assert_eq!(advice, format!("validatingwebhookconfiguration/{name}, mutatingwebhookconfiguration/{mutating}"));
    let command = format!("kubectl delete {}", advice.replace(", ", " "));
    run_printed(&command, &control_plane().kubeconfig("admin"), shop.bed.folder.path());
    let others = path("validatingwebhookconfigurations", &other);
    assert_eq!(control_plane().get(&others).0, 200);
    control_plane().delete(&others);
    shop.deploy(&["--wait=false", "--prune=no"]).code(0).stdout_contains("1 created");
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0);
    is_all_gone(&shop);
}

#[test]
fn the_record_is_written_again_until_the_webhook_answers() {
    let shop = Shop::new();
    shop.write(&[json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})]);
    let mut rules = Admission::default();
    rules.webhook(&shop.bed, "configmaps", &json!({"url": "https://127.0.0.1:1/"}), "failed calling webhook");
    let rules = Mutex::new(Some(rules));
    let proxy = Proxy::start(control_plane());
    proxy.before(When::new("PATCH", "/configmaps/shop.gantry").nth(3), move || {
        drop(rules.lock().expect("no panic").take())
    });
    shop.command(proxy.kubeconfig("admin"), &["deploy", "-f", "manifests.yaml", "-a", "shop"]).run().code(0);
    assert_eq!(shop.last()["outcome"], "applied");
}

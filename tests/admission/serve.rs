//! The server itself: probes, limits, configuration, certificates, drain.

use serde_json::{Value, json};

use crate::guard::{CONFIGURATIONS, CRDS, Guard, address, config, configuration};
use crate::support::*;

#[test]
fn a_new_configuration_comes_into_force_and_a_broken_one_does_not() {
    let guard = Guard::start("{mode: deny}");
    control_plane().apply_yaml(&guard.crd(json!({"colour": {"type": "string"}})).to_string());
    guard.create("one", json!({"colour": "red"}));
    let without = guard.crd(json!({}));
    Guard::refused(guard.replace(&without));
    assert_eq!(guard.webhook.get("/readyz"), (200, json!("ok\n")));

    guard.bed.write("guard.yaml", &config("{mode: dney}"));
    let why = eventually("the webhook not to be ready", || {
        let (status, text) = guard.webhook.get("/readyz");
        (status == 503).then_some(text)
    });
    let why = text(&why);
    assert!(why.contains("guard.yaml:3:") && why.contains("\"dney\""), "{why}");
    assert_eq!(guard.webhook.get("/healthz").0, 200);
    Guard::refused(guard.replace(&without));

    guard.bed.write("guard.yaml", &config("{mode: audit}"));
    eventually("the webhook to be ready", || (guard.webhook.get("/readyz").0 == 200).then_some(()));
    assert_eq!(guard.replace(&without).0, 200);
}

#[test]
fn bodies_that_are_no_reviews_are_refused_and_counted() {
    let guard = Guard::start("{mode: deny}");
    let too_large = json!({"text": "x".repeat(9 << 20)});
    for (body, expected) in [(json!({}), 400), (json!([1]), 400), (too_large, 413)] {
        assert_eq!(guard.webhook.post("/validate", &body).0, expected);
    }
    assert_eq!(guard.metric("gantry_admission_malformed_requests_total"), 3.0);
    assert_eq!(guard.webhook.get("/validate").0, 405);
    assert_eq!(guard.webhook.get("/other").0, 404);
}

#[test]
fn an_interrupted_webhook_ends_in_order() {
    let mut guard = Guard::start("{mode: deny}");
    assert!(!guard.webhook.headers("/healthz").contains_key("connection"));
    guard.running.interrupt();
    // It answers until nobody sends requests to it any more.
    eventually("the webhook to be unready", || (guard.webhook.get("/readyz").0 == 503).then_some(()));
    let live = control_plane().get(&guard.crd_path().replace("samples.", "probes.")).1;
    assert_eq!(guard.webhook.get("/healthz").0, 200, "{live}");
    // The API server opens no other connection to it, and does not use an old one while it ends.
    assert_eq!(guard.webhook.headers("/healthz")["connection"], "close");
    eventually("the webhook to refuse connections", || guard.webhook.try_get("/healthz").is_err().then_some(()));
    // With failurePolicy Fail, the guarded CRDs cannot be changed meanwhile, and those of others can.
    let path = format!("{}?dryRun=All", guard.crd_path().replace("samples.", "probes."));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let (status, answer) = control_plane().patch(&path, &label);
    assert_eq!(status, 500, "{answer}");
    assert!(text(&answer["message"]).contains("failed calling webhook \"crds.admission.gantry.dev\""), "{answer}");
}

#[test]
fn a_decision_is_one_line_of_the_log() {
    let mut guard = Guard::start("{mode: audit}");
    control_plane().apply_yaml(&guard.crd(json!({"colour": {"type": "string"}})).to_string());
    guard.create("one", json!({"colour": "red"}));
    assert_eq!(guard.replace(&guard.crd(json!({}))).0, 200);
    let name = format!("samples.{}", guard.bed.names.group);
    let event: Value = guard.running.wait_for_line(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        (event["event"] == "decision" && event["outcome"] == "audited").then_some(event)
    });
    assert_eq!((&event["crd"], &event["operation"], &event["mode"]), (&json!(name), &json!("UPDATE"), &json!("audit")));
    assert_eq!(event["rules"], json!(["NoExistingFieldRemoved", "ExistingDataPruned"]), "{event}");
    assert_eq!(event["digest"].as_str().map(str::len), Some(32));
    assert!(event["user"].is_string());
}

#[test]
fn unusable_certificates_and_addresses_are_errors_before_anything_is_served() {
    let bed = Bed::new();
    bed.write("broken.pem", "nothing");
    let kubeconfig = || control_plane().kubeconfig("admin");
    let run = |arguments: &[&str]| bed.gantry(kubeconfig(), &[&["admission", "serve"], arguments].concat()).run();
    run(&[]).code(2).stderr_contains("--tls-cert");
    run(&["--tls-cert=broken.pem", "--tls-key=broken.pem"])
        .code(1)
        .stderr_contains("there is no certificate in the file");
    run(&["--tls-cert=no.pem", "--tls-key=no.pem"]).code(1).stderr_contains("cannot read");
    let mut first = bed
        .gantry(
            kubeconfig(),
            &["admission", "serve", "--listen=127.0.0.1:0", "--self-signed", "-n", &bed.names.namespace],
        )
        .spawn();
    let taken = format!("--listen={}", address(&mut first));
    run(&[&taken, "--self-signed"]).code(1).stderr_contains("cannot listen on 127.0.0.1:");
}

#[test]
fn replicas_share_a_certificate_of_their_own_making_that_the_api_server_trusts() {
    let bed = Bed::with_namespace();
    let (crd, group) = (CrdBuilder::samples(&bed.names.group).version("v1", any_fields()).build(), &bed.names.group);
    control_plane().apply_yaml(&crd.to_string());
    let arguments = ["admission", "serve", "--listen=127.0.0.1:0", "--self-signed", "--tls-name=127.0.0.1"];
    let start =
        || bed.gantry(control_plane().kubeconfig("admin"), &arguments).args(["-n", &bed.names.namespace]).spawn();
    let mut first = start();
    let url = |running: &mut Running| format!("https://{}/validate", address(running));
    // The name by which the webhook finds its configuration. No other test has it.
    let name = "gantry-admission";
    control_plane().apply_yaml(&configuration(name, &bed, json!({"url": url(&mut first)})).to_string());
    let path = format!("{CONFIGURATIONS}/{name}");
    let trusted = |running: &mut Running| {
        let url = url(running);
        let bundle = eventually("the webhook to be trusted", || {
            let (_, live) = control_plane().get(&path);
            let bundles: Vec<Value> = live["webhooks"]
                .as_array()?
                .iter()
                .map(|webhook| webhook["clientConfig"]["caBundle"].clone())
                .collect();
            bundles.iter().all(|bundle| bundle == &bundles[0] && bundle.is_string()).then(|| bundles[0].clone())
        });
        for index in [0, 1] {
            let mut live = control_plane().get(&path).1;
            live["webhooks"][index]["clientConfig"]["url"] = url.as_str().into();
            assert_eq!(control_plane().put(&path, &live).0, 200);
        }
        let label = json!({"metadata": {"labels": {"at": url.rsplit(':').next().map(|port| port.replace('/', "-"))}}});
        let crd = format!("{CRDS}/samples.{group}");
        eventually("the webhook to be called", || {
            let _ = control_plane().patch(&crd, &label);
            running.lines().iter().any(|line| line.contains("\"unchanged\"")).then_some(())
        });
        bundle
    };
    let bundle = trusted(&mut first);
    let secret = format!("/api/v1/namespaces/{}/secrets/gantry-admission-tls", bed.names.namespace);
    let (status, kept) = control_plane().get(&secret);
    assert_eq!((status, &kept["type"]), (200, &json!("kubernetes.io/tls")));
    // Another replica takes what the first one made.
    assert_eq!(trusted(&mut start()), bundle);
    assert_eq!(control_plane().get(&secret).1["data"], kept["data"]);
    control_plane().delete(&path);
}

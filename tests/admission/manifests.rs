//! The manifests of `gantry admission manifests`, applied to a real API server.

use std::fs;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_admission::install::{self, CertificateSource, InstallOptions};
use gantry_core::options::AdmissionMode;
use serde_json::{Value, json};

use crate::guard::{CONFIGURATIONS, CRDS, address, config};
use crate::support::*;
use gantry_testbed::kubectl;

fn objects(options: &InstallOptions) -> Vec<Value> {
    install::manifests(options).split("---\n").map(|document| serde_yaml::from_str(document).unwrap()).collect()
}

#[test]
fn the_server_accepts_every_object_of_every_variant() {
    let bed = Bed::with_namespace();
    let modes = [AdmissionMode::Deny, AdmissionMode::Warn, AdmissionMode::Audit];
    let sources = [CertificateSource::SelfSigned, CertificateSource::CertManager, CertificateSource::Secret];
    for mode in modes {
        for certificates in sources {
            for url in [None, Some("https://10.0.0.1:9443/validate".to_owned())] {
                let namespace = bed.names.namespace.clone();
                let options = InstallOptions { mode, url, namespace, certificates, ..InstallOptions::default() };
                for mut object in objects(&options) {
                    // Its CRDs are not installed.
                    if object["apiVersion"].as_str().unwrap().starts_with("cert-manager.io/") {
                        continue;
                    }
                    if object["kind"] == "ValidatingWebhookConfiguration" {
                        // Another test has one of the real name.
                        object["metadata"]["name"] = json!(bed.names.namespace);
                    }
                    let query = "fieldManager=test&dryRun=All&fieldValidation=Strict&force=true";
                    let path = control_plane().path_of(&object);
                    let (status, answer) = control_plane().apply_to(&format!("{path}?{query}"), &object);
                    assert!(status < 300, "{options:?}: {answer:#}");
                }
            }
        }
    }
}

/// The server of the webhook owns `caBundle`, and the user who applies the manifests everything else.
#[test]
fn the_manifests_can_be_applied_again_after_the_webhook_wrote_its_ca() {
    let names = isolated();
    let all = objects(&InstallOptions::default());
    let mut configuration = all.into_iter().find(|object| object["kind"] == "ValidatingWebhookConfiguration").unwrap();
    configuration["metadata"]["name"] = json!(names.namespace);
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        webhook["objectSelector"] = json!({"matchLabels": {"test": names.namespace}});
    }
    let path = control_plane().path_of(&configuration);
    let apply = || control_plane().server_side_apply(&path, "kubectl", &configuration);
    assert_eq!(apply().0, 201);
    let authority = STANDARD.encode(fs::read(control_plane().ca_file()).unwrap());
    let trusted = |webhook: &Value| {
        json!({
            "name": webhook["name"],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"caBundle": authority},
        })
    };
    let webhooks: Vec<Value> = configuration["webhooks"].as_array().unwrap().iter().map(trusted).collect();
    let by_the_webhook = json!({
        "apiVersion": configuration["apiVersion"], "kind": configuration["kind"],
        "metadata": configuration["metadata"], "webhooks": webhooks,
    });
    let (status, answer) = control_plane().server_side_apply(&path, "gantry-admission", &by_the_webhook);
    assert_eq!(status, 200, "{answer:#}");
    let (status, again) = apply();
    assert_eq!(status, 200, "{again:#}");
    for webhook in again["webhooks"].as_array().unwrap() {
        assert_eq!(webhook["clientConfig"]["caBundle"], authority.as_str(), "{webhook:#}");
        assert_eq!(webhook["clientConfig"]["service"]["name"], "gantry-admission");
    }
    assert_eq!(control_plane().delete(&path).0, 200);
}

/// With the commands of the documentation, on a control plane of its own: the objects have their real names.
#[test]
fn the_webhook_is_installed_upgraded_and_removed_while_it_denies_and_is_down() {
    let server = ControlPlane::start();
    let bed = Bed::new();
    let admin = server.kubeconfig("admin");
    let configure = |mode: &str| bed.write("guard.yaml", &config(&format!("{{mode: {mode}}}")));
    configure("deny");
    let serve = ["admission", "serve", "--listen=127.0.0.1:0", "--self-signed", "--tls-name=127.0.0.1"];
    let mut webhook = bed.gantry(admin.clone(), &serve).args(["-n", "gantry-admission", "-c", "guard.yaml"]).spawn();
    let url = format!("--url=https://{}/validate", address(&mut webhook));
    let run_kubectl = |action: &str, mode: &str| {
        let print = ["admission", "manifests", "--mode", mode, "--self-signed", &url];
        bed.write("webhook.yaml", &bed.gantry(admin.clone(), &print).run().code(0).stdout);
        let mut command = Command::new(kubectl());
        command.arg("--kubeconfig").arg(&admin).args([action, "-f", "webhook.yaml"]);
        if action == "delete" {
            // Here no controller empties the namespace.
            command.arg("--wait=false");
        }
        let output = command.current_dir(bed.folder.path()).output().expect("kubectl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let group = &bed.names.group;
    let crd = |kind: &str| CrdBuilder::new(group, kind).version("v1", any_fields()).build();
    let path = |plural: &str| format!("{CRDS}/{plural}.{group}");
    server.apply_yaml(&crd("Widget").to_string());
    let object = |kind: &str, finalizers: Value| {
        let metadata = json!({"name": "one", "namespace": "default", "finalizers": finalizers});
        json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata})
    };
    server.apply_yaml(&object("Widget", json!([])).to_string());
    // Its deletion has begun and waits for an object.
    server.apply_yaml(&crd("Leaver").to_string());
    let waits = server.path_of(&server.apply_yaml(&object("Leaver", json!(["example.com/wait"])).to_string())[0]);
    assert_eq!(server.delete(&path("leavers")).0, 200);

    run_kubectl("apply", "deny");
    let delete = format!("{}?dryRun=All", path("widgets"));
    let message = eventually("the deletion to be denied", || {
        let (status, answer) = server.delete(&delete);
        (status == 403).then(|| answer["message"].to_string())
    });
    assert!(message.contains("CRDDeletionLosesObjects"), "{message}");
    // Its own manifests are none of the objects that it guards.
    configure("warn");
    run_kubectl("apply", "warn");
    eventually("the deletion to be allowed", || (server.delete(&delete).0 == 200).then_some(()));
    configure("deny");
    run_kubectl("apply", "deny");
    eventually("the deletion to be denied", || (server.delete(&delete).0 == 403).then_some(()));

    webhook.kill();
    let message = eventually("the webhook to be down", || {
        let (status, answer) = server.delete(&delete);
        (status == 500).then(|| answer["message"].to_string())
    });
    assert!(message.contains("failed calling webhook"), "{message}");
    // New CRDs come, and those that are being deleted go.
    server.apply_yaml(&crd("Newcomer").to_string());
    assert_eq!(server.patch(&waits, &json!({"metadata": {"finalizers": null}})).0, 200);
    eventually("the CRD to go", || (server.get(&path("leavers")).0 == 404).then_some(()));
    run_kubectl("delete", "deny");
    assert_eq!(server.get(&format!("{CONFIGURATIONS}/gantry-admission")).0, 404);
    eventually("nobody to be asked any more", || (server.delete(&path("widgets")).0 == 200).then_some(()));
}

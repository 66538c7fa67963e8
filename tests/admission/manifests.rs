//! The manifests of `gantry admission manifests`, applied to a real API server.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_admission::install::{self, CertificateSource, InstallOptions};
use gantry_core::options::AdmissionMode;
use serde_json::{Value, json};

use crate::support::*;

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

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

const MODES: [AdmissionMode; 3] = [AdmissionMode::Deny, AdmissionMode::Warn, AdmissionMode::Audit];
const SOURCES: [CertificateSource; 3] =
    [CertificateSource::SelfSigned, CertificateSource::CertManager, CertificateSource::Secret];

/// All combinations of what can be chosen.
fn combinations() -> Vec<InstallOptions> {
    let mut all = Vec::new();
    for mode in MODES {
        for certificates in SOURCES {
            for url in [None, Some("https://10.0.0.1:9443/validate".to_owned())] {
                let namespace = "guard".to_owned();
                all.push(InstallOptions { mode, url, namespace, certificates, ..InstallOptions::default() });
            }
        }
    }
    all
}

fn objects(text: &str) -> Vec<Value> {
    let document = |text: &str| gantry_yaml::parse(text).unwrap().unwrap().to_value();
    text.split("---\n").map(document).collect()
}

fn kinds(options: &InstallOptions) -> Vec<String> {
    objects(&manifests(options)).iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
}

fn object(options: &InstallOptions, kind: &str) -> Value {
    objects(&manifests(options)).into_iter().find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn every_object_begins_with_a_comment_that_explains_it() {
    let all = combinations().iter().map(manifests).chain(MODES.map(policy)).collect::<Vec<_>>();
    for text in all {
        for document in text.split("---\n") {
            assert!(document.starts_with("# "), "{document}");
            assert!(document.contains("\napiVersion: "), "{document}");
        }
        assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 120 && line.trim_end() == line), "{text}");
    }
}

#[test]
fn each_object_occurs_once_and_is_in_the_chosen_namespace() {
    for options in combinations() {
        let found = objects(&manifests(&options));
        let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
        let names: BTreeSet<String> = found.iter().map(name).collect();
        assert_eq!(names.len(), found.len(), "{names:?}");
        for object in &found {
            let namespace = &object["metadata"]["namespace"];
            assert!(namespace.is_null() || namespace == "guard", "{object}");
        }
    }
}

#[test]
fn a_webhook_outside_of_the_cluster_needs_rights_and_a_configuration_alone() {
    let url = Some("https://10.0.0.1:9443/validate".to_owned());
    let options = InstallOptions { url, certificates: CertificateSource::Secret, ..InstallOptions::default() };
    let expected =
        ["ClusterRole", "ClusterRoleBinding", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"];
    assert_eq!(kinds(&options), expected);
    let webhooks = object(&options, "ValidatingWebhookConfiguration")["webhooks"].clone();
    for webhook in webhooks.as_array().unwrap() {
        assert_eq!(webhook["clientConfig"], json!({"url": "https://10.0.0.1:9443/validate"}));
    }
    let self_signed = kinds(&InstallOptions { certificates: CertificateSource::SelfSigned, ..options });
    assert_eq!(self_signed[0], "Namespace");
    assert!(self_signed.contains(&"Role".to_owned()) && !self_signed.contains(&"Deployment".to_owned()));
}

#[test]
fn the_mode_is_in_the_configuration_and_only_deny_fails_closed() {
    for (mode, word, failure) in [
        (AdmissionMode::Deny, "deny", "Fail"),
        (AdmissionMode::Warn, "warn", "Ignore"),
        (AdmissionMode::Audit, "audit", "Ignore"),
    ] {
        let options = InstallOptions { mode, ..InstallOptions::default() };
        let config = object(&options, "ConfigMap")["data"]["gantry.yaml"].clone();
        assert_eq!(objects(config.as_str().unwrap())[0]["admission"], json!({"mode": word}));
        let webhooks = object(&options, "ValidatingWebhookConfiguration")["webhooks"].clone();
        let webhooks = webhooks.as_array().unwrap();
        assert_eq!(webhooks.len(), 2);
        assert!(webhooks.iter().all(|webhook| webhook["failurePolicy"] == failure));
    }
}

#[test]
fn the_configuration_is_valid_also_with_every_comment_taken_out() {
    let config = object(&InstallOptions::default(), "ConfigMap")["data"]["gantry.yaml"].clone();
    // Sentences end with a full stop.
    let is_setting = |line: &str| (line.contains(": ") || line.ends_with(':')) && !line.ends_with('.');
    let uncommented: Vec<String> = config
        .as_str()
        .unwrap()
        .lines()
        .map(|line| match line.trim_start().strip_prefix("# ") {
            Some(setting) if is_setting(setting) => line.replacen("# ", "", 1),
            _ => line.to_owned(),
        })
        .collect();
    let value = &objects(&uncommented.join("\n"))[0];
    let keys: Vec<&String> = value["admission"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mode", "deny", "warn", "audit", "ignore", "acceptedBy", "onTimeout"]);
    assert_eq!(value["preflightRules"][0]["config"], json!({"preset": "semantic"}));
}

#[test]
fn the_source_of_the_certificate_decides_about_rights_arguments_and_trust() {
    let options = |certificates| InstallOptions { certificates, ..InstallOptions::default() };
    let arguments = |certificates| {
        let deployment = object(&options(certificates), "Deployment");
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string()
    };
    assert!(arguments(CertificateSource::SelfSigned).contains(r#""--self-signed","--namespace=gantry-admission""#));
    assert!(arguments(CertificateSource::Secret).contains(r#""--tls-cert=/tls/tls.crt","--tls-key=/tls/tls.key""#));
    assert!(kinds(&options(CertificateSource::SelfSigned)).contains(&"Role".to_owned()));
    assert!(!kinds(&options(CertificateSource::Secret)).contains(&"Role".to_owned()));
    assert!(kinds(&options(CertificateSource::CertManager)).contains(&"Certificate".to_owned()));
    for source in SOURCES {
        let webhook = object(&options(source), "ValidatingWebhookConfiguration");
        let is_injected = webhook["metadata"]["annotations"]
            == json!({"cert-manager.io/inject-ca-from": "gantry-admission/gantry-admission"});
        assert_eq!(is_injected, source == CertificateSource::CertManager);
        // What others write is not in the manifests, so that they can be applied again.
        assert!(!webhook["webhooks"].to_string().contains("caBundle"));
    }
}

#[test]
fn the_webhook_may_write_nothing_but_its_certificate() {
    for object in objects(&manifests(&InstallOptions::default())) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let text = rule.to_string();
            let writes =
                ["create", "patch", "update", "delete", "*"].iter().any(|verb| text.contains(&format!("\"{verb}\"")));
            if writes && !text.contains(r#""verbs":["create"]"#) {
                let names = &rule["resourceNames"];
                assert!(*names == json!(["gantry-admission-tls"]) || *names == json!(["gantry-admission"]), "{text}");
            }
        }
    }
}

#[test]
fn names_that_yaml_reads_as_numbers_stay_texts() {
    let (namespace, image) = ("123".to_owned(), "registry:5000/gantry@sha256:0".to_owned());
    let options = InstallOptions { namespace, image, ..InstallOptions::default() };
    assert_eq!(object(&options, "Namespace")["metadata"]["name"], "123");
    let deployment = object(&options, "Deployment");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "registry:5000/gantry@sha256:0");
    assert_eq!(scalar("yes"), r#""yes""#);
    assert_eq!(scalar("a: b"), r#""a: b""#);
}

#[test]
fn the_mode_of_the_policy_is_in_its_binding() {
    for (mode, actions) in [
        (AdmissionMode::Deny, json!(["Deny"])),
        (AdmissionMode::Warn, json!(["Warn", "Audit"])),
        (AdmissionMode::Audit, json!(["Audit"])),
    ] {
        let [policy, binding] = objects(&policy(mode)).try_into().unwrap();
        assert_eq!(policy["kind"], "ValidatingAdmissionPolicy");
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(binding["spec"]["validationActions"], actions);
    }
}

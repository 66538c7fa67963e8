//! How `AdmissionDryRun` reports the messages of webhooks and policies: all their findings, whatever their status code,
//! and no value of a Secret.

use crate::support::admission::{Admission, findings};
use crate::support::{Bed, Webhook, control_plane};
use serde_json::{Value, json};

const CHECK: [&str; 2] = ["--preflight", "AdmissionDryRun"];

/// A webhook that denies with the result of `status` for the review, and warns with the result of `warnings`.
fn denying(status: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Webhook {
    Webhook::start(control_plane(), move |review| {
        let status = status(&review["request"]);
        let response = match status.is_null() {
            true => json!({"uid": review["request"]["uid"], "allowed": true}),
            false => json!({"uid": review["request"]["uid"], "allowed": false, "status": status}),
        };
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    })
}

#[test]
fn each_field_that_a_webhook_names_is_a_finding_at_its_line() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    // An answer like that of controller webhooks that use the common library.
    let webhook = denying(|_| {
        let cause = |field: &str, said: &str| json!({"reason": "FieldValueInvalid", "field": field, "message": said});
        let causes = [cause("data.first", "Invalid value: \"1\": too small"), cause("data.second", "Required value")];
        json!({"code": 422, "reason": "Invalid", "message": "ConfigMap \"c\" is invalid: [data.first: …]",
            "details": {"name": "c", "kind": "ConfigMap", "causes": causes}})
    });
    let mut admission = Admission::default();
    admission.webhook(&bed, "configmaps", &webhook.client_config(), "denied the request");
    let namespace = &bed.names.namespace;
    bed.write(
        "manifests.yaml",
        &format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {namespace}}}\ndata:\n  zero: x\n  first: '1'\n"
        ),
    );
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let said = |line, field: &str| {
        let said =
            format!("the server refuses it: admission webhook \"hook.example.com\" denied the request: data.{field}");
        ("AdmissionDenied".to_owned(), "error".to_owned(), line, said)
    };
    let expected = [said(6, "first: Invalid value: \"1\": too small"), said(4, "second: Required value")];
    assert_eq!(findings(&output), expected);
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json", "--redact"]).run();
    output.code(3).contains_nowhere("too small").stdout_contains("hook.example.com").stdout_contains("data.first");
    drop(admission);
}

#[test]
fn a_denial_with_a_message_and_causes_shows_both() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let webhook = denying(|_| {
        let causes = [json!({"field": "data.key", "message": "too small"})];
        json!({"code": 403, "message": "ask team storage", "details": {"causes": causes}})
    });
    let mut admission = Admission::default();
    admission.webhook(&bed, "configmaps", &webhook.client_config(), "denied the request");
    bed.write("manifests.yaml", &bed.config_map("c", "x"));
    let said = "denied the request: ask team storage: data.key: too small";
    bed.deploy(cp.kubeconfig("admin"), &[&CHECK[..], &["-o", "json"]].concat()).run().code(3).stdout_contains(said);
    // At the real write, too.
    let unchecked = bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety", "-o", "json"]).run();
    unchecked.code(1).stdout_contains(said);
    drop(admission);
}

#[test]
fn a_denial_is_recognised_with_any_status_code() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    // The status code is in the object's name.
    let webhook = denying(|request| {
        let code = request["name"].as_str().and_then(|name| name.strip_prefix("code-")?.parse::<u16>().ok());
        json!({"code": code.unwrap_or(403), "message": "s3cret words"})
    });
    let mut admission = Admission::default();
    admission.webhook(&bed, "configmaps", &webhook.client_config(), "denied the request");
    let codes = [400, 401, 403, 404, 409, 413, 422, 500, 504];
    let manifests: Vec<String> = codes.iter().map(|code| bed.config_map(&format!("code-{code}"), "s3cret")).collect();
    bed.write("manifests.yaml", &manifests.join("---\n"));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let found = findings(&output);
    assert_eq!(found.len(), codes.len(), "{output}");
    for (rule, severity, _, said) in &found {
        assert_eq!((rule.as_str(), severity.as_str()), ("AdmissionDenied", "error"), "{said}");
        assert!(said.contains("admission webhook \"hook.example.com\" denied the request: s3cret words"), "{said}");
    }
    // Neither the check nor the deploy itself shows values with `--redact`.
    let redacted = ["-o", "json", "--redact"];
    bed.deploy(cp.kubeconfig("admin"), &CHECK).args(redacted).run().code(3).contains_nowhere("s3cret");
    bed.deploy(cp.kubeconfig("admin"), &[]).args(redacted).run().code(1).contains_nowhere("s3cret");
    drop(admission);
}

#[test]
fn neither_desired_nor_live_values_of_a_secret_are_printed() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let namespace = &bed.names.namespace;
    let path = format!("/api/v1/namespaces/{namespace}/secrets/s");
    let live = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "old-hunter"}});
    assert_eq!(cp.server_side_apply(&path, "gantry", &live).0, 201);
    // It quotes the value after a long text, so that only a part of the value is within the shown part.
    let webhook = Webhook::start(cp, |review| {
        let request = &review["request"];
        let said = |object: &Value| object["data"]["password"].as_str().unwrap_or_default().to_owned();
        let (new, old) = (said(&request["object"]), said(&request["oldObject"]));
        let words = "w".repeat(900);
        let message = format!("{old} becomes {new} {words} {}", format!("{new}|").repeat(40));
        let response = json!({"uid": request["uid"], "allowed": false, "warnings": [format!("{old} was better than {new}")],
            "status": {"message": message}});
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    });
    let mut admission = Admission::default();
    admission.webhook(&bed, "secrets", &webhook.client_config(), "denied the request");
    bed.write(
        "manifests.yaml",
        &format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\nstringData: {{password: new-hunter-with-a-long-name}}\n"
        ),
    );
    for more in [&CHECK[..], &[]] {
        let output = bed.deploy(cp.kubeconfig("admin"), more).args(["-o", "json"]).run();
        output.stdout_contains("[hidden]").stderr_contains("was better than");
        for value in ["old-hunter", "b2xkLWh1bnRlc", "new-hunter", "bmV3LWh1bnRlc"] {
            output.contains_nowhere(value);
        }
    }
    drop(admission);
}

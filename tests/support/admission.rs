//! Server state that refuses objects (quotas, limits, policies, webhooks), and what `AdmissionDryRun` reports for it.

use serde_json::{Value, json};

use super::{Bed, Output, control_plane, eventually};

/// `(rule, severity, line, message)` of each finding of the first check, in the report's order.
pub fn findings(output: &Output) -> Vec<(String, String, u64, String)> {
    let report = output.report();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = report["checks"][0]["findings"].as_array().expect("findings").clone();
    let entry = |f: &Value| {
        (text(&f["rule"]), text(&f["severity"]), f["source"]["line"].as_u64().unwrap_or(0), text(&f["message"]))
    };
    found.iter().map(entry).collect()
}

/// The admission configurations of a test. They are deleted when the value is dropped.
#[derive(Default)]
pub struct Admission {
    paths: Vec<String>,
}

impl Admission {
    pub fn configure(&mut self, plural: &str, object: &Value) {
        let base = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let (status, answer) = control_plane().post(&base, object);
        assert_eq!(status, 201, "{answer}");
        self.paths.push(format!("{base}/{}", object["metadata"]["name"].as_str().expect("a name")));
    }

    /// A policy that denies objects of this resource whose names begin with `denied`, in namespaces with these labels.
    pub fn policy(&mut self, bed: &Bed, resource: &str, labels: &Value) {
        let name = format!("p-{}", bed.names.namespace);
        let selector = json!({"matchLabels": labels});
        let spec = json!({"matchConstraints": {"namespaceSelector": selector, "resourceRules": [rule(resource)]},
            "validations": [{"expression": "!object.metadata.name.startsWith('denied')", "message": "no such names"}]});
        self.configure("validatingadmissionpolicies", &json!({"metadata": {"name": name}, "spec": spec}));
        let spec = json!({"policyName": name, "validationActions": ["Deny"]});
        self.configure("validatingadmissionpolicybindings", &json!({"metadata": {"name": name}, "spec": spec}));
        comes_into_force(bed, resource, "denied request");
    }

    /// A webhook that is called for objects of this resource in the bed's namespace; `says` is its answer for an object
    /// named `denied`.
    pub fn webhook(&mut self, bed: &Bed, resource: &str, client: &Value, says: &str) {
        let webhook = json!({"name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": client, "namespaceSelector": only(bed), "rules": [rule(resource)]});
        let name = format!("w-{resource}-{}", bed.names.namespace);
        self.configure("validatingwebhookconfigurations", &json!({"metadata": {"name": name}, "webhooks": [webhook]}));
        comes_into_force(bed, resource, says);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        for path in &self.paths {
            control_plane().delete(path);
        }
    }
}

/// The server learns of its admission configuration with a delay, by watching.
pub fn comes_into_force(bed: &Bed, resource: &str, says: &str) {
    let path = format!("/api/v1/namespaces/{}/{resource}?dryRun=All", bed.names.namespace);
    eventually("the rules come into force", || {
        let (_, answer) = control_plane().post(&path, &json!({"metadata": {"name": "denied"}}));
        answer["message"].as_str().is_some_and(|message| message.contains(says)).then_some(())
    });
}

/// The labels that only the bed's namespace has.
pub fn its_name(bed: &Bed) -> Value {
    json!({"kubernetes.io/metadata.name": bed.names.namespace})
}

/// Selects the bed's namespace.
pub fn only(bed: &Bed) -> Value {
    json!({"matchLabels": its_name(bed)})
}

/// A rule for writes of a resource of the core group.
pub fn rule(resource: &str) -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource],
        "scope": "*"})
}

/// A quota in the bed's namespace with the usage that a controller manager would have written.
pub fn quota(bed: &Bed, name: &str, spec: &Value, used: &Value) {
    let path = format!("/api/v1/namespaces/{}/resourcequotas", bed.names.namespace);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec});
    assert_eq!(control_plane().post(&path, &quota).0, 201);
    let status = json!({"status": {"hard": spec["hard"], "used": used}});
    assert_eq!(control_plane().patch(&format!("{path}/{name}/status"), &status).0, 200);
}

/// A limit of one CPU for each container in the bed's namespace, which is also the default.
pub fn limit_range(bed: &Bed) {
    let path = format!("/api/v1/namespaces/{}/limitranges", bed.names.namespace);
    let limit =
        json!({"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}});
    let limits = json!({"metadata": {"name": "limits"}, "spec": {"limits": [limit]}});
    assert_eq!(control_plane().post(&path, &limits).0, 201);
}

//! A running webhook, and the CRDs that it guards.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::*;

/// The path at which webhook configurations are created.
pub const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// The path of CRDs.
pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A webhook for the CRDs of one API group. Dropping it ends it and removes its configuration.
pub struct Guard {
    pub bed: Bed,
    pub running: Running,
    /// For requests to the webhook itself.
    pub webhook: Api,
    url: String,
}

impl Guard {
    /// With this value of `admission` in its configuration.
    pub fn start(admission: &str) -> Self {
        Self::start_as("admin", admission)
    }

    /// The same, with the rights of this user.
    pub fn start_as(user: &str, admission: &str) -> Self {
        let bed = Bed::with_namespace();
        let certs = control_plane().folder().join("certs");
        let file = |name: &str| certs.join(name).display().to_string();
        let guard_config = config(admission);
        bed.write("guard.yaml", &guard_config);
        let arguments = ["admission", "serve", "--listen=127.0.0.1:0", "-c", "guard.yaml"];
        let mut running = bed
            .gantry(control_plane().kubeconfig(user), &arguments)
            .args(["--tls-cert", &file("apiserver.crt"), "--tls-key", &file("apiserver.key")])
            .spawn();
        let url = format!("https://{}", address(&mut running));
        let webhook = Api::new(&url, Some(&certs.join("apiserver.crt")), None);
        let guard = Guard { bed, running, webhook, url };
        guard.install(
            &format!("{}/validate", guard.url),
            STANDARD.encode(fs::read(certs.join("apiserver.crt")).unwrap()),
        );
        guard
    }

    /// Lets the API server call this address about the CRDs of the test.
    fn install(&self, url: &str, ca_bundle: String) {
        let configuration = configuration(&self.configuration(), &self.bed, json!({"url": url, "caBundle": ca_bundle}));
        control_plane().apply_yaml(&configuration.to_string());
        self.wait_until_called();
    }

    /// The API server reads the configuration a moment later.
    fn wait_until_called(&self) {
        let probe = CrdBuilder::new(&self.bed.names.group, "Probe").version("v1", any_fields()).build();
        control_plane().apply_yaml(&probe.to_string());
        let path = format!("{CRDS}/probes.{}", self.bed.names.group);
        eventually("the API server to call the webhook", || {
            let before = self.metric("gantry_admission_review_duration_seconds_count");
            let label = json!({"metadata": {"labels": {"before": before.to_string()}}});
            control_plane().patch(&path, &label);
            (self.metric("gantry_admission_review_duration_seconds_count") > before).then_some(())
        });
    }

    fn configuration(&self) -> String {
        format!("guard-{}", self.bed.names.namespace)
    }

    /// The sum of a metric of the webhook.
    pub fn metric(&self, name: &str) -> f64 {
        let (status, text) = self.webhook.get("/metrics");
        assert_eq!(status, 200, "{text}");
        let series =
            text.as_str().unwrap_or_default().lines().filter(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ') || rest.starts_with('{'))
            });
        series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// A CRD of the kind Sample with the fields `size` (an integer) and those of `more`.
    pub fn crd(&self, more: Value) -> Value {
        let mut properties = json!({"size": {"type": "integer"}});
        merge(&mut properties, more);
        CrdBuilder::samples(&self.bed.names.group).version_of_spec("v1", fields(properties)).build()
    }

    /// The path of the CRD.
    pub fn crd_path(&self) -> String {
        format!("{CRDS}/samples.{}", self.bed.names.group)
    }

    /// Creates an object with this spec.
    pub fn create(&self, name: &str, spec: Value) {
        let object = self.bed.object(&format!("{}/v1", self.bed.names.group), "Sample", name, json!({"spec": spec}));
        control_plane().apply_yaml(&object.to_string());
    }

    /// Replaces the CRD as `kubectl replace` does. Returns the answer of the API server.
    pub fn replace(&self, crd: &Value) -> (u16, Value) {
        let (_, live) = control_plane().get(&self.crd_path());
        let mut crd = crd.clone();
        crd["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        control_plane().put(&self.crd_path(), &crd)
    }

    /// The message of a refusal.
    #[track_caller]
    pub fn refused(answer: (u16, Value)) -> String {
        assert_eq!(answer.0, 403, "{}", answer.1);
        text(&answer.1["message"])
    }

    /// The digest in the message of a denial.
    #[track_caller]
    pub fn digest(message: &str) -> String {
        let (_, rest) = message.split_once("gantry.dev/accept-change=").unwrap_or_else(|| panic!("{message}"));
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // First, or nothing of the group can be changed any more.
        control_plane().delete(&format!("{CONFIGURATIONS}/{}", self.configuration()));
    }
}

/// The configuration with this value of `admission`.
pub fn config(admission: &str) -> String {
    format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\nadmission: {admission}\n")
}

/// The address that a webhook says it listens on.
pub fn address(running: &mut Running) -> String {
    running.wait_for_line(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        (event["event"] == "listening").then(|| text(&event["address"]))
    })
}

/// The configuration of a webhook with this `clientConfig`, for the CRDs of a test.
pub fn configuration(name: &str, bed: &Bed, client_config: Value) -> Value {
    let webhook = |name: &str, resource: &str, operations: Value| {
        json!({
            "name": name,
            "rules": [{
                "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "resources": [resource],
                "operations": operations, "scope": "Cluster",
            }],
            "clientConfig": client_config,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "failurePolicy": "Fail",
            "matchConditions": [
                {"name": "own", "expression": format!("oldObject.metadata.name.endsWith('.{}')", bed.names.group)},
                {"name": "user", "expression": "request.userInfo.username != 'system:apiserver'"},
            ],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            webhook("crds.admission.gantry.dev", "customresourcedefinitions", json!(["UPDATE", "DELETE"])),
            webhook("status.admission.gantry.dev", "customresourcedefinitions/status", json!(["UPDATE"])),
        ],
    })
}

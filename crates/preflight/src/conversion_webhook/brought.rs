//! What the deploy itself changes: it may create a webhook that is missing, or repair one that fails.
//!
//! Many operators write the CA bundle of their webhook into the CRD when they start. On a first install there is
//! neither a bundle nor a ready endpoint, and no stored object that would have to be converted.

use serde_json::Value;

use super::{converted, rules, service};
use crate::Violation;
use crate::rule::RuleDoc;
use gantry_core::crd::{ConversionClientConfig, ConversionWebhookConfig, Crd};
use gantry_core::finding::Severity;
use gantry_core::text;
use gantry_deploy::plan::{Plan, bundles};

/// How a deploy affects the conversion webhook of one CRD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeployEffect {
    /// The CRD is not live.
    pub is_new: bool,
    /// The webhook's Service or workload is among the manifests.
    pub is_in_manifests: bool,
    /// The deploy writes the webhook's Service.
    pub is_service_written: bool,
    /// OLM creates the webhook's Service when it installs a bundle.
    pub is_created_by_olm: bool,
    /// The deploy starts or replaces the webhook's workload.
    pub is_replaced: bool,
    /// The API server will call another webhook, or none.
    pub is_moved: bool,
    /// The CA bundle changes.
    pub has_other_ca: bool,
}

impl DeployEffect {
    pub fn new(desired: &Crd, live: Option<&Crd>, plan: &Plan) -> Self {
        let live_webhook = live.and_then(Crd::webhook);
        let is_moved = match (desired.webhook(), live_webhook) {
            (Some(desired), Some(live)) => is_moved(desired, live),
            (desired, live) => desired.is_some() != live.is_some(),
        };
        let has_other_ca =
            |(desired, live): (&ConversionWebhookConfig, &ConversionWebhookConfig)| ca_differs(desired, live);
        let reference = desired.webhook().or(live_webhook).and_then(|webhook| webhook.client_config.service.as_ref());
        let of_service = reference.and_then(|reference| service::find_change(reference, plan));
        DeployEffect {
            is_new: live.is_none(),
            is_in_manifests: of_service.is_some(),
            is_service_written: of_service.is_some_and(|change| !change.action.leaves_alone()),
            is_created_by_olm: reference.is_some_and(|reference| bundles::makes_service(plan, &reference.name)),
            is_replaced: false,
            is_moved,
            has_other_ca: desired.webhook().zip(live_webhook).is_some_and(has_other_ca),
        }
    }

    /// Turns an error into a warning if the deploy may fix what it is about.
    pub fn soften_to_warning(&self, violation: &mut Violation, crd: &Crd, plan: &Plan) {
        if violation.severity != Severity::Error {
            return;
        }
        let is = |rule: &RuleDoc| violation.rule == rule.name;
        let is_other = self.is_replaced || self.is_moved;
        let may_answer = is_other || self.has_other_ca || self.is_service_written;
        if is(&rules::FAILS) && may_answer || is(&rules::LOSES_DATA) && is_other {
            violation.severity = Severity::Warning;
            violation.body.help = format!(
                "this deploy changes the webhook: run the check again after the deploy; {}",
                violation.body.help
            );
        }
        let may_come = is(&rules::SERVICE_MISSING) && (self.is_new || self.is_created_by_olm)
            || is(&rules::SERVICE_NOT_READY) && (self.is_new || self.is_service_written || self.is_created_by_olm);
        if may_come && self.is_created_by_olm && is(&rules::SERVICE_MISSING) {
            violation.body.help = "OLM creates this Service when it installs the bundle".to_owned();
        }
        if may_come {
            await_webhook(violation, crd, plan);
        }
    }
}

/// Whether a ClusterRole of the deploy names CRDs as what its subjects may change. An operator needs that right to
/// write the CA bundle of its own webhook.
pub fn is_operator_allowed_to_write_crds(plan: &Plan) -> bool {
    let has = |rule: &Value, key: &str, wanted: &[&str]| {
        rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).any(|value| wanted.contains(&value))
    };
    let allows = |rule: &Value| {
        has(rule, "apiGroups", &["apiextensions.k8s.io", "*"])
            && has(rule, "resources", &["customresourcedefinitions"])
            && has(rule, "verbs", &["update", "patch", "*"])
    };
    let roles = plan
        .changes
        .iter()
        .filter(|change| change.resource.group == "rbac.authorization.k8s.io" && change.resource.kind == "ClusterRole");
    roles.into_iter().any(|role| role.desired.raw.value()["rules"].as_array().into_iter().flatten().any(allows))
}

/// Whether the API server will call another webhook than `live`.
fn is_moved(desired: &ConversionWebhookConfig, live: &ConversionWebhookConfig) -> bool {
    let (new, old) = (&desired.client_config, &live.client_config);
    new.service.is_some() && new.service != old.service || new.url.is_some() && new.url != old.url
}

/// Whether the manifest changes the CA bundle of `live`.
fn ca_differs(desired: &ConversionWebhookConfig, live: &ConversionWebhookConfig) -> bool {
    let compact =
        |config: &ConversionClientConfig| config.ca_bundle.as_ref().map(|bundle| bundle.split_whitespace().collect());
    let new: Option<String> = compact(&desired.client_config);
    new.is_some() && new != compact(&live.client_config)
}

/// Turns a finding that the webhook may fix once it runs into a warning.
pub fn await_webhook(violation: &mut Violation, crd: &Crd, plan: &Plan) {
    violation.severity = Severity::Warning;
    violation.body.message = format!("{}{}", violation.body.message, describe_webhook_outage(crd, plan));
    violation.body.help =
        format!("wait until the webhook runs after the deploy, then check again; {}", violation.body.help);
}

/// What fails as long as the webhook cannot be called.
fn describe_webhook_outage(crd: &Crd, plan: &Plan) -> String {
    let versions: Vec<&str> = converted(crd).map(|version| &*version.name).collect();
    if versions.is_empty() {
        return String::new();
    }
    let at = versions.join(", ");
    let is_refused = |version: &str| {
        let resource = crd.resource(version);
        plan.changes.iter().filter(|change| !change.action.leaves_alone() && *change.resource == resource).count()
    };
    let refused = match versions.iter().map(|version| is_refused(version)).sum() {
        0 => String::new(),
        count => format!(", and this deploy waits to write {} there", text::count(count, "object")),
    };
    format!("; until that changes, the server can neither read nor write {} at {at}{refused}", crd.name)
}

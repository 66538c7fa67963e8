//! Which Pods a quota with scopes counts.
//!
//! Source: `podMatchesScopeFunc` in `k8s.io/kubernetes/pkg/quota/v1/evaluator/core`.

use serde::Deserialize;
use serde_json::Value;

/// The scopes of a ResourceQuota.
#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Scopes {
    scopes: Vec<String>,
    scope_selector: Option<QuotaScopeSelector>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct QuotaScopeSelector {
    match_expressions: Vec<QuotaScopeRequirement>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuotaScopeRequirement {
    scope_name: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

impl Scopes {
    /// Whether the quota counts every object.
    pub fn is_none(&self) -> bool {
        self.scopes.is_empty() && self.scope_selector.is_none()
    }

    /// Whether the scopes select claims, by their VolumeAttributesClass.
    pub fn select_claims(&self) -> bool {
        let selector = self.scope_selector.iter().flat_map(|selector| &selector.match_expressions);
        self.scopes.iter().chain(selector.map(|r| &r.scope_name)).any(|scope| scope == "VolumeAttributesClass")
    }

    /// Whether the quota counts a Pod, given as the server would store it; `None` if that is unknown.
    pub fn fit(&self, pod: &Value) -> Option<bool> {
        let simple = self.scopes.iter().map(|scope| fits(pod, scope, "Exists", &[]));
        let selector = self.scope_selector.iter().flat_map(|selector| &selector.match_expressions);
        let mut all = simple.chain(selector.map(|r| fits(pod, &r.scope_name, &r.operator, &r.values)));
        all.try_fold(true, |so_far, fits| Some(fits? && so_far))
    }
}

fn fits(pod: &Value, scope: &str, operator: &str, values: &[String]) -> Option<bool> {
    let terminates = || pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    let best_effort = || pod["status"]["qosClass"].as_str().map(|class| class == "BestEffort");
    match scope {
        "Terminating" => Some(terminates()),
        "NotTerminating" => Some(!terminates()),
        "BestEffort" => best_effort(),
        "NotBestEffort" => best_effort().map(|is| !is),
        "PriorityClass" => {
            let class = pod["spec"]["priorityClassName"].as_str().filter(|class| !class.is_empty());
            let is_named = class.is_some_and(|class| values.iter().any(|value| value == class));
            match operator {
                "Exists" => Some(class.is_some()),
                "DoesNotExist" => Some(class.is_none()),
                "In" => Some(is_named),
                "NotIn" => Some(!is_named),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_of_a_quota_select_pods() {
        let pod = json!({"spec": {"activeDeadlineSeconds": 5, "priorityClassName": "high"}, "status": {"qosClass": "Burstable"}});
        let fit = |spec: Value| serde_json::from_value::<Scopes>(spec).expect("scopes").fit(&pod);
        let selector = |operator: &str| {
            json!({"hard": {}, "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}]}})
        };
        assert_eq!(fit(json!({"scopes": ["Terminating", "NotBestEffort", "PriorityClass"]})), Some(true));
        assert_eq!(fit(json!({"scopes": ["Terminating", "BestEffort"]})), Some(false));
        assert_eq!(fit(json!({"scopes": ["NotTerminating"]})), Some(false));
        assert_eq!(
            (fit(selector("In")), fit(selector("NotIn")), fit(selector("Exists"))),
            (Some(true), Some(false), Some(true))
        );
        assert_eq!(fit(selector("DoesNotExist")), Some(false));
        assert_eq!(fit(json!({"scopes": ["CrossNamespacePodAffinity"]})), None);
    }
}

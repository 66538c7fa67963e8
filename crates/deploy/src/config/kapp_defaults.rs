//! Recognises rules of kapp's default configuration that gantry does not need to read.
//!
//! Some users pass the output of `kapp deploy-config` together with their own configuration. Some of its rules ask for
//! what gantry does anyway. They are recognised by what they can do, because their text differs between versions of
//! kapp.
//!
//! Source: "Config" in kapp's documentation, and the output of `kapp deploy-config`.

use serde_json::{Value, json};

use crate::app::versions::referred_kind;

/// Whether a rebase rule is a ytt overlay that can only keep entries in `secrets` and `imagePullSecrets` of
/// ServiceAccounts, as added by controllers. A server-side apply keeps the entries of other managers.
pub(super) fn keeps_secrets_of_service_accounts(rule: &Value) -> bool {
    let of_service_accounts = json!([{"apiVersionKindMatcher": {"apiVersion": "v1", "kind": "ServiceAccount"}}]);
    let Some(overlay) = rule["ytt"]["overlayContractV1"]["overlay.yml"].as_str() else { return false };
    let has_only = |value: &Value, keys: &[&str]| {
        value.as_object().is_some_and(|map| map.keys().all(|key| keys.contains(&key.as_str())))
    };
    rule["resourceMatchers"] == of_service_accounts
        && has_only(rule, &["ytt", "resourceMatchers"])
        && has_only(&rule["ytt"], &["overlayContractV1"])
        && has_only(&rule["ytt"]["overlayContractV1"], &["overlay.yml"])
        && overlay.lines().all(only_keeps_secrets)
}

/// Whether a line of an overlay is a comment, code that writes nothing, or part of the lists of names of Secrets.
fn only_keeps_secrets(line: &str) -> bool {
    let line = line.trim();
    if let Some(code) = line.strip_prefix("#@") {
        // `#@overlay/remove`, `#@overlay/replace` and others do more than add.
        return !code.starts_with("overlay/") || code.starts_with("overlay/match ");
    }
    matches!(line, "" | "---" | "secrets:" | "imagePullSecrets:")
        || line.starts_with("#!")
        || line.strip_prefix("- name: #@ ").is_some_and(|name| !name.contains(['\n', '#']))
}

/// The paths in the spec of a Pod at which ConfigMaps and Secrets are named. `*` stands for `{allIndexes: true}`.
const POD_REFERENCES: [(&str, &str); 13] = [
    ("ConfigMap", "containers.*.env.*.valueFrom.configMapKeyRef"),
    ("ConfigMap", "containers.*.envFrom.*.configMapRef"),
    ("ConfigMap", "initContainers.*.env.*.valueFrom.configMapKeyRef"),
    ("ConfigMap", "initContainers.*.envFrom.*.configMapRef"),
    ("ConfigMap", "volumes.*.configMap"),
    ("ConfigMap", "volumes.*.projected.sources.*.configMap"),
    ("Secret", "containers.*.env.*.valueFrom.secretKeyRef"),
    ("Secret", "containers.*.envFrom.*.secretRef"),
    ("Secret", "initContainers.*.env.*.valueFrom.secretKeyRef"),
    ("Secret", "initContainers.*.envFrom.*.secretRef"),
    ("Secret", "imagePullSecrets.*"),
    ("Secret", "volumes.*.secret"),
    ("Secret", "volumes.*.projected.sources.*.secret"),
];

/// Whether `templateRules` contain only references to ConfigMaps and Secrets that [`crate::app::versions`] follows
/// anyway.
pub(super) fn are_followed(rules: &Value) -> bool {
    let Some(rules) = rules.as_array() else { return false };
    rules.iter().all(|rule| {
        let references = rule["affectedResources"]["objectReferences"].as_array();
        match kinds(&rule["resourceMatchers"]).as_deref() {
            Some([kind]) => references.is_some_and(|all| all.iter().all(|one| is_followed(kind, one))),
            _ => false,
        }
    })
}

fn is_followed(kind: &str, reference: &Value) -> bool {
    let (Some(path), Some(kinds)) = (path(&reference["path"]), kinds(&reference["resourceMatchers"])) else {
        return false;
    };
    let name_key = match reference.get("nameKey").map(Value::as_str) {
        None => "name",
        Some(key) => key.unwrap_or_default(),
    };
    let expected = if path.ends_with("volumes.*.secret") { "secretName" } else { "name" };
    let is_of_pod = |path: &str| POD_REFERENCES.contains(&(kind, path));
    let is_known = match path
        .strip_prefix("spec.template.spec.")
        .or_else(|| path.strip_prefix("spec.jobTemplate.spec.template.spec."))
    {
        Some(below) => is_of_pod(below),
        None if kinds == ["Pod"] => path.strip_prefix("spec.").is_some_and(is_of_pod),
        None if kinds == ["ServiceAccount"] => {
            kind == "Secret" && ["imagePullSecrets.*", "secrets.*"].contains(&&*path)
        }
        None if kinds.iter().all(|kind| ["App", "PackageInstall", "PackageRepository"].contains(kind)) => {
            path.rsplit('.').next().and_then(referred_kind) == Some(kind)
        }
        None => false,
    };
    is_known && name_key == expected
}

/// The path as text; `None` if it selects a single item of a list.
fn path(steps: &Value) -> Option<String> {
    let step = |step: &Value| match step {
        Value::String(key) => Some(key.clone()),
        step if *step == json!({"allIndexes": true}) => Some("*".to_owned()),
        _ => None,
    };
    Some(steps.as_array()?.iter().map(step).collect::<Option<Vec<_>>>()?.join("."))
}

/// The kinds that the matchers select; `None` if they do not select by kind alone.
fn kinds(matchers: &Value) -> Option<Vec<&str>> {
    let mut kinds = Vec::new();
    for matcher in matchers.as_array()? {
        match matcher.as_object()?.iter().next()? {
            (name, matcher) if name == "anyMatcher" => kinds.extend(self::kinds(&matcher["matchers"])?),
            (name, matcher) if name == "apiVersionKindMatcher" => kinds.push(matcher["kind"].as_str()?),
            _ => return None,
        }
    }
    Some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(lines: &str) -> Value {
        json!({
            "ytt": {"overlayContractV1": {"overlay.yml": lines}},
            "resourceMatchers": [{"apiVersionKindMatcher": {"apiVersion": "v1", "kind": "ServiceAccount"}}],
        })
    }

    const KEEPS: &str = "#! what a controller adds\n#@ load(\"@ytt:overlay\", \"overlay\")\n#@ kept = \"x-token\"\n\n\
        #@ if/end kept:\n#@overlay/match by=overlay.all\n---\n#@overlay/match missing_ok=True\nsecrets:\n\
        #@overlay/match by=overlay.subset({\"name\": kept}),when=0\n- name: #@ kept\n";

    #[test]
    fn an_overlay_that_only_keeps_secrets_is_recognised_by_what_it_does() {
        assert!(keeps_secrets_of_service_accounts(&overlay(KEEPS)));
        for (from, to) in [
            ("secrets:\n", "automountServiceAccountToken: false\n"),
            ("#@overlay/match missing_ok=True\n", "#@overlay/remove\n"),
            ("#@overlay/match missing_ok=True\n", "#@overlay/replace\n"),
            ("- name: #@ kept\n", "- name: mine\n"),
            ("- name: #@ kept\n", "- name: #@ kept\n  namespace: a\n"),
            ("---\n", "---\nmetadata: #@ kept\n"),
        ] {
            assert!(KEEPS.contains(from), "{from}");
            assert!(!keeps_secrets_of_service_accounts(&overlay(&KEEPS.replace(from, to))), "{to}");
        }
        for (pointer, value) in [
            ("/resourceMatchers", json!([{"allMatcher": {}}])),
            ("/resourceMatchers/0/apiVersionKindMatcher/kind", json!("Secret")),
            ("/ytt/overlayContractV1/overlay.yml", json!(1)),
            ("/ytt/overlayContractV1", json!({"other.yml": KEEPS})),
        ] {
            let mut rule = overlay(KEEPS);
            *rule.pointer_mut(pointer).unwrap() = value;
            assert!(!keeps_secrets_of_service_accounts(&rule), "{pointer}");
        }
        let mut more = overlay(KEEPS);
        more["path"] = json!(["spec"]);
        assert!(!keeps_secrets_of_service_accounts(&more));
    }

    #[test]
    fn references_are_followed_if_every_rule_is_about_pods() {
        let all = json!({"allIndexes": true});
        let workloads = json!([{"anyMatcher": {"matchers": [
            {"apiVersionKindMatcher": {"apiVersion": "apps/v1", "kind": "Deployment"}},
            {"apiVersionKindMatcher": {"apiVersion": "batch/v1", "kind": "Job"}},
        ]}}]);
        let of = |kind: &str| json!([{"apiVersionKindMatcher": {"apiVersion": "v1", "kind": kind}}]);
        let rule = |kind: &str, path: Value, matchers: &Value, name_key: Option<&str>| {
            let mut reference = json!({"path": path, "resourceMatchers": matchers});
            if let Some(key) = name_key {
                reference["nameKey"] = key.into();
            }
            json!([{"resourceMatchers": of(kind), "affectedResources": {"objectReferences": [reference]}}])
        };
        let volume = |kind: &str| json!(["spec", "template", "spec", "volumes", all, kind]);
        let job =
            json!(["spec", "jobTemplate", "spec", "template", "spec", "containers", all, "envFrom", all, "secretRef"]);
        for followed in [
            rule("ConfigMap", volume("configMap"), &workloads, None),
            rule("Secret", volume("secret"), &workloads, Some("secretName")),
            rule("Secret", job, &of("CronJob"), None),
            rule("Secret", json!(["spec", "imagePullSecrets", all]), &of("Pod"), None),
            rule("Secret", json!(["secrets", all]), &of("ServiceAccount"), None),
            json!([]),
        ] {
            assert!(are_followed(&followed), "{followed}");
        }
        for other in [
            rule("ConfigMap", volume("secret"), &workloads, Some("secretName")),
            rule("Secret", volume("secret"), &workloads, None),
            rule("ConfigMap", volume("configMap"), &workloads, Some("other")),
            rule("Service", volume("configMap"), &workloads, None),
            rule("ConfigMap", json!(["spec", "config"]), &of("Pod"), None),
            rule("ConfigMap", json!(["spec", "volumes", all, "configMap"]), &of("Thing"), None),
            rule(
                "ConfigMap",
                json!(["spec", "template", "spec", "volumes", {"index": 0}, "configMap"]),
                &workloads,
                None,
            ),
            rule("Secret", json!(["secrets", all]), &of("Thing"), None),
            rule("ConfigMap", volume("configMap"), &json!([{"allMatcher": {}}]), None),
            json!([{"resourceMatchers": [{"allMatcher": {}}], "affectedResources": {"objectReferences": []}}]),
            json!([{"resourceMatchers": of("ConfigMap")}]),
            json!({}),
        ] {
            assert!(!are_followed(&other), "{other}");
        }
    }
}

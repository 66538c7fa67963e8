//! The names that OLM generates.

use serde_json::{Value, json};
use sha2::{Digest, Sha224};

/// The maximum length of a generated name, in bytes.
const MAX_NAME: usize = 63;

/// `base-suffix`, with the base truncated if necessary.
pub fn named(base: &str, suffix: &str) -> String {
    let mut end = base.len();
    if base.len() + suffix.len() > MAX_NAME {
        end = MAX_NAME.saturating_sub(suffix.len() + 1).min(end);
    }
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{suffix}", &base[..end])
}

/// The name of the Service of a Deployment's webhooks.
pub fn service_of(deployment: &str) -> String {
    named(&deployment.replace('.', "-"), "service")
}

/// The name of the certificate of a Service, and of its Secret.
pub fn certificate_of(service: &str) -> String {
    named(service, "cert")
}

/// The name of the Role or ClusterRole of permissions: those of the bundle and the service account, and a hash of the
/// permissions as Go writes them.
pub fn role(csv: &str, account: &str, rules: &Value) -> String {
    let or_default = if account.is_empty() { "default" } else { account };
    named(&format!("{csv}-{or_default}"), &hash(account, rules))
}

/// SHA-224 over the JSON, in base 36.
fn hash(account: &str, rules: &Value) -> String {
    let mut json = go_json(&json!({"serviceAccountName": account, "rules": rules}));
    json.push('\n');
    base_36(Sha224::digest(json.as_bytes()).to_vec())
}

/// JSON with the escapes of Go, which make it safe in HTML.
pub fn go_json(value: &Value) -> String {
    let mut json = value.to_string();
    for (plain, escaped) in
        [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")]
    {
        if json.contains(plain) {
            json = json.replace(plain, escaped);
        }
    }
    json
}

/// A big-endian number in base 36.
fn base_36(mut number: Vec<u8>) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 36) as u8;
            rest = value % 36;
        }
        digits.push(char::from(DIGITS[rest as usize]));
    }
    if digits.is_empty() { "0".to_owned() } else { digits.into_iter().rev().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], group: &str, resource: &str) -> Value {
        json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]})
    }

    /// The name in operator-controller's guide, from a real cluster: argocd-operator v0.6.0, installed by OLM v1 in
    /// September 2024.
    #[test]
    fn roles_are_named_as_olm_names_them() {
        let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let rules = json!([
            rule(&all, "", "configmaps"),
            rule(&all, "coordination.k8s.io", "leases"),
            rule(&["create", "patch"], "", "events"),
        ]);
        let name = role("argocd-operator.v0.6.0", "argocd-operator-controller-manager", &rules);
        assert_eq!(name, "argocd-operator.v0-22gmilmgp91wu25is5i2ec598hni8owq3l71bbkl7iz3");
    }

    #[test]
    fn hashes_of_permissions_use_the_json_that_go_writes() {
        // echo '{"serviceAccountName":"a","rules":[{"verbs":["\u003c\u003e\u0026"],"apiGroups":[""],"resources":["x"]}]}'
        let rules = json!([rule(&["<>&"], "", "x")]);
        assert_eq!(hash("a", &rules), "1wh0ue9l1hm2ha8w0wmmib7h02x0lrjap5c47pan362q");
        assert_eq!(hash("a", &Value::Null), "1mg0y6k63wxinew10sjnvq6ns2xttt0ngmh2h1wdpwhu");
        assert_eq!(
            (base_36(vec![0, 0]), base_36(vec![1, 0]), base_36(vec![35])),
            ("0".into(), "74".into(), "z".into())
        );
    }

    #[test]
    fn a_long_name_is_truncated_before_its_suffix() {
        assert_eq!(named(&"a".repeat(80), "service").len(), MAX_NAME);
        assert_eq!(named("é", &"x".repeat(62)), format!("-{}", "x".repeat(62)));
        assert_eq!(certificate_of(&service_of("controller.manager")), "controller-manager-service-cert");
    }
}

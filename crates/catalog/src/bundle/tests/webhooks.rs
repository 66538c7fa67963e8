//! The webhooks of a bundle.

use super::*;

#[test]
fn webhooks_are_supported_today_and_were_not_in_4_16() {
    let mut csv = csv();
    csv["spec"]["webhookdefinitions"] = json!([webhook("ValidatingAdmissionWebhook", "v.kb.io", json!({}))]);
    let bundle = bundle_of(csv);
    assert_eq!(texts(&bundle, &Profile::default()), [""; 0]);
    let old = Profile { olm: OlmRelease::V4_16, ..Profile::default() };
    assert_eq!(texts(&bundle, &old), ["unsupported bundle: webhookDefinitions are not supported"]);
}

#[test]
fn webhooks_belong_to_the_bundle() {
    let with = |webhooks: Value| of_changed(|spec| spec["webhookdefinitions"] = webhooks);
    let validating = "ValidatingAdmissionWebhook";
    let of_widgets = || json!({"conversionCRDs": ["widgets.example.com"]});
    assert_eq!(with(json!([webhook("ConversionWebhook", "c", of_widgets())])), [""; 0]);
    assert_eq!(
        of_changed(|spec| {
            spec["webhookdefinitions"] = json!([webhook("ConversionWebhook", "c", of_widgets())]);
            spec["installModes"][1]["supported"] = true.into();
        }),
        [
            "bundle contains conversion webhook \"c\" and supports install modes [AllNamespaces OwnNamespace] - conversion \
          webhooks are only supported for bundles that only support AllNamespaces install mode"
        ]
    );
    assert_eq!(
        with(json!([
            webhook(validating, "b", json!({"deploymentName": "y"})),
            webhook(validating, "a", json!({"deploymentName": "y"})),
            webhook("MutatingAdmissionWebhook", "z", json!({"deploymentName": "x"})),
        ])),
        [
            "webhook of type 'MutatingAdmissionWebhook' with name 'z' references non-existent deployment 'x'",
            "webhook of type 'ValidatingAdmissionWebhook' with name 'a' references non-existent deployment 'y'",
            "webhook of type 'ValidatingAdmissionWebhook' with name 'b' references non-existent deployment 'y'",
        ]
    );
    let same = |kind: &str| webhook(kind, "same", json!({}));
    assert_eq!(
        with(json!([same(validating), same("MutatingAdmissionWebhook"), same(validating), same(validating)])),
        ["duplicate webhook 'same' of type 'ValidatingAdmissionWebhook'"]
    );
    assert_eq!(
        with(json!([webhook(validating, "No", json!({}))])),
        [format!("webhook of type 'ValidatingAdmissionWebhook' has invalid name 'No': {NAME}")]
    );
    assert_eq!(
        with(json!([
            webhook("ConversionWebhook", "d", of_widgets()),
            webhook("ConversionWebhook", "c", of_widgets()),
            webhook("ConversionWebhook", "b", json!({"conversionCRDs": ["z.other.io", "a.other.io"]})),
        ])),
        [
            "conversion webhooks [c,d] reference same custom resource definition 'widgets.example.com'",
            "conversion webhook 'b' references custom resource definition 'a.other.io' not owned bundle",
            "conversion webhook 'b' references custom resource definition 'z.other.io' not owned bundle",
        ]
    );
}

#[test]
fn webhooks_may_not_intercept_resources_that_olm_needs() {
    let with = |rules: Value| {
        let webhooks = json!([webhook("MutatingAdmissionWebhook", "m.kb.io", json!({"rules": rules}))]);
        of_changed(|spec| spec["webhookdefinitions"] = webhooks)
    };
    let rule = |groups: &[&str], resources: &[&str]| json!({"apiGroups": groups, "resources": resources});
    assert_eq!(
        with(json!([
            rule(&["*", "olm.operatorframework.io", "apps"], &["*"]),
            rule(
                &["admissionregistration.k8s.io"],
                &["*", "MutatingWebhookConfigurations", "validatingadmissionpolicies"]
            ),
        ])),
        [
            "webhook \"m.kb.io\" contains forbidden rule: admission webhook rules cannot reference API group \"*\"",
            "webhook \"m.kb.io\" contains forbidden rule: admission webhook rules cannot reference API group \
             \"olm.operatorframework.io\"",
            "webhook \"m.kb.io\" contains forbidden rule: admission webhook rules cannot reference resource \"*\" for API \
             group \"admissionregistration.k8s.io\"",
            "webhook \"m.kb.io\" contains forbidden rule: admission webhook rules cannot reference resource \
             \"MutatingWebhookConfigurations\" for API group \"admissionregistration.k8s.io\"",
        ]
    );
    // Conversion webhooks have no rules.
    let rules = json!({"rules": [rule(&["*"], &["*"])], "conversionCRDs": ["widgets.example.com"]});
    let webhooks = json!([webhook("ConversionWebhook", "c", rules)]);
    assert_eq!(of_changed(|spec| spec["webhookdefinitions"] = webhooks), [""; 0]);
}

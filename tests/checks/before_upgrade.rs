//! What to do with objects that an upgrade refuses: steps that the live CRD allows, each done on the server.

use crate::support::{Samples, control_plane, eventually, fields, findings, text};
use serde_json::{Value, json};

/// The help of the only finding of `rule`, on the server with one object.
fn help_of(bed: &Samples, desired: &Value, rule: &str) -> String {
    let report = bed.json(desired);
    let found: Vec<Value> = findings(&report).into_iter().filter(|finding| finding["rule"] == rule).collect();
    let [finding] = &found[..] else { panic!("{report:#}") };
    text(&finding["help"])
}

#[test]
fn a_required_field_that_the_live_crd_prunes_is_first_added_as_optional() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"title": {"type": "string"}}))));
    bed.create("a", &json!({"title": "x"}));
    let optional = fields(json!({"title": {"type": "string"}, "owner": {"type": "string"}}));
    let mut required = optional.clone();
    required["required"] = json!(["owner"]);
    let help = help_of(&bed, &bed.one_version(required.clone()), "ExistingObjectRefusedOnUpdate");
    assert!(help.contains("the live CRD does not have spec.owner"), "{help}");
    assert!(
        help.contains("deploy the CRD with spec.owner as an optional field, set it in it, and then require it"),
        "{help}"
    );

    // What was advised before does nothing: the server drops the value.
    let set = json!({"spec": {"owner": "me"}});
    let (_, patched) = control_plane().patch(&bed.path("a"), &set);
    assert_eq!(patched["spec"], json!({"title": "x"}));
    // The steps in this order.
    let deploy = |spec: &Value| {
        let crd = bed.one_version(spec.clone());
        bed.gantry(
            control_plane().kubeconfig("admin"),
            "deploy",
            &crd,
            &["--force-conflicts", "--preflight", "CRDUpgradeSafety"],
        )
    };
    deploy(&optional).code(0);
    eventually("the field is kept", || {
        let (_, patched) = control_plane().patch(&bed.path("a"), &set);
        (patched["spec"]["owner"] == "me").then_some(())
    });
    let report = bed.json(&bed.one_version(required.clone()));
    assert!(findings(&report).is_empty(), "{report:#}");
    bed.live(&bed.one_version(required));
    let (status, answer) = control_plane().patch(&bed.path("a"), &json!({"spec": {"title": "y"}}));
    assert_eq!((status, &answer["spec"]), (200, &json!({"title": "y", "owner": "me"})));
}

#[test]
fn a_field_of_another_type_first_accepts_both() {
    let bed = Samples::new();
    let text_field = json!({"type": "string"});
    let image = |schema: &Value| fields(json!({"image": schema}));
    bed.live(&bed.one_version(image(&fields(json!({"repository": text_field, "tag": text_field})))));
    bed.create("a", &json!({"image": {"repository": "x", "tag": "y"}}));
    let desired = bed.one_version(image(&text_field));
    let help = help_of(&bed, &desired, "ExistingObjectRefusedOnUpdate");
    assert!(help.contains("no value of spec.image is valid both in the live CRD and in this one"), "{help}");
    assert!(help.contains("accepts both (x-kubernetes-preserve-unknown-fields: true and no type)"), "{help}");

    // The live CRD refuses the new value.
    let (status, _) = control_plane().patch(&bed.path("a"), &json!({"spec": {"image": "x:y"}}));
    assert_eq!(status, 422);
    bed.live(&bed.one_version(image(&json!({"x-kubernetes-preserve-unknown-fields": true}))));
    eventually("the schema accepts both", || {
        let (status, _) = control_plane().patch(&bed.path("a"), &json!({"spec": {"image": "x:y"}}));
        (status == 200).then_some(())
    });
    let report = bed.json(&desired);
    assert!(findings(&report).is_empty(), "{report:#}");
    bed.live(&desired);
    let (status, answer) = control_plane().patch(&bed.path("a"), &json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!((status, &answer["spec"]["image"]), (200, &json!("x:y")));
}

use serde_json::json;

use super::*;

fn base() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "metadata": {"name": "samples.test.example.com"},
        "spec": {
            "group": "test.example.com",
            "names": {"kind": "Sample", "plural": "samples"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v1beta1", "served": false},
            ],
        },
    })
}

fn read(crd: &Value) -> Result<Crd, CrdReadError> {
    Crd::read(&RawObject::from_value(crd))
}

fn with(edit: impl Fn(&mut Value)) -> Value {
    let mut crd = base();
    edit(&mut crd);
    crd
}

#[test]
fn problems_of_a_crd_are_named_with_their_path() {
    for (pointer, value, place, told) in [
        ("/spec", json!(null), "spec.versions", "spec.versions is missing"),
        ("/spec", json!(3), "spec", "spec: invalid type: integer `3`, expected a mapping"),
        ("/spec/versions", json!([]), "spec.versions", "spec.versions is empty"),
        ("/spec/versions", json!(3), "spec.versions", "spec.versions: invalid type: integer `3`, expected a sequence"),
        ("/spec/group", json!(null), "spec.group", "spec.group is missing"),
        ("/spec/scope", json!(""), "spec.scope", "spec.scope is missing"),
        ("/spec/names", json!(null), "spec.names.kind", "spec.names.kind is missing"),
        ("/spec/names/plural", json!(null), "spec.names.plural", "spec.names.plural is missing"),
        ("/spec/versions/1/name", json!(null), "spec.versions[1].name", "spec.versions[1].name is missing"),
        (
            "/spec/versions/1/served",
            json!("yes"),
            "spec.versions[1].served",
            "spec.versions[1].served: invalid type: string \"yes\", expected a boolean",
        ),
        (
            "/apiVersion",
            json!("v9"),
            "apiVersion",
            "its apiVersion is \"v9\"; gantry understands only apiextensions.k8s.io/v1",
        ),
    ] {
        let crd = with(|crd| *crd.pointer_mut(pointer).unwrap() = value.clone());
        let error = read(&crd).unwrap_err();
        assert_eq!((crate::text::field(&error.at).as_str(), error.to_string().as_str()), (place, told));
    }
    let service = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "hook"}}}});
    let error = read(&with(|crd| crd["spec"]["conversion"] = service.clone())).unwrap_err();
    assert_eq!(error.to_string(), "spec.conversion.webhook.clientConfig.service.namespace is missing");
}

#[test]
fn a_crd_of_an_older_api_version_is_reported_before_any_other_problem() {
    for spec in [json!({"version": "v1"}), json!(3), base()["spec"].clone()] {
        let crd = with(|crd| {
            crd["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
            crd["spec"] = spec.clone();
        });
        let error = read(&crd).unwrap_err();
        assert_eq!(error.fault, CrdReadErrorKind::ApiVersion("apiextensions.k8s.io/v1beta1".to_owned()), "{spec}");
        // A CRD with all fields can still be read at any version.
        let defined = Crd::read_at_any_version(&RawObject::from_value(&crd));
        assert_eq!(defined.is_ok(), spec == base()["spec"], "{spec}");
    }
}

#[test]
fn a_null_field_of_a_crd_counts_as_absent() {
    let bare = read(&base()).unwrap();
    let nulls = with(|crd| {
        for key in ["conversion", "preserveUnknownFields"] {
            crd["spec"][key] = Value::Null;
        }
        crd["status"] = json!({"storedVersions": null});
        crd["spec"]["names"]["shortNames"] = Value::Null;
        let version = &mut crd["spec"]["versions"][1];
        for key in ["storage", "deprecated", "selectableFields", "additionalPrinterColumns"] {
            version[key] = Value::Null;
        }
        version["subresources"] = json!({"status": null, "scale": null});
        version["schema"] = json!({"openAPIV3Schema": null});
    });
    let nulls = read(&nulls).unwrap();
    assert_eq!(nulls.stored_versions(), ["v1"]);
    let shown = |crd: &Crd| format!("{:?}", (&crd.versions, &crd.names, &crd.conversion, crd.preserve_unknown_fields));
    assert_eq!(shown(&nulls), shown(&bare));
}

#[test]
fn schemas_are_not_copied() {
    let raw = RawObject::from_value(&base());
    let crd = Crd::read(&raw).unwrap();
    let (text, schema) = (raw.text(), crd.versions[0].schema().unwrap());
    assert_eq!(schema, r#"{"type":"object"}"#);
    assert!(text.as_bytes().as_ptr_range().contains(&schema.as_ptr()));
}

#[test]
fn a_webhook_is_returned_only_if_it_converts() {
    let crd = |strategy: &str| {
        let conversion = json!({"strategy": strategy, "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "n", "name": "hook", "path": "/convert"}}}});
        read(&with(|crd| crd["spec"]["conversion"] = conversion.clone())).unwrap()
    };
    let converts = crd("Webhook");
    let webhook = converts.webhook().unwrap();
    let service = webhook.client_config.service.as_ref().unwrap();
    assert_eq!((service.name.as_str(), service.path.as_deref(), service.port), ("hook", Some("/convert"), 443));
    assert_eq!(webhook.review_versions, ["v1"]);
    assert!(crd("None").webhook().is_none() && crd("None").strategy() == Some(ConversionStrategy::None));
    assert_eq!(crd("").strategy(), None);
}

#[test]
fn each_side_of_a_change_has_its_own_error() {
    let (good, old) = (base(), with(|crd| crd["apiVersion"] = json!("apiextensions.k8s.io/v1beta1")));
    let (good, old) = (RawObject::from_value(&good), RawObject::from_value(&old));
    let sides = CrdSides::new(old.clone(), Some(good.clone()));
    assert!(sides.desired().is_err() && sides.defined().is_some() && sides.readable_live().is_some());
    assert_eq!(sides.pair().unwrap_err().side, CrdSide::Desired);
    assert_eq!(CrdSides::new(good.clone(), Some(old)).pair().unwrap_err().side, CrdSide::Live);
    assert!(CrdSides::new(good.clone(), None).pair().is_err());
    assert_eq!(CrdSides::new(good.clone(), Some(good)).pair().unwrap().common_versions().count(), 2);
}

#[test]
fn each_side_is_read_once() {
    let raw = RawObject::from_value(&base());
    let sides = CrdSides::new(raw.clone(), Some(raw));
    let pair = sides.pair().unwrap();
    assert!(
        Arc::ptr_eq(&pair.desired, sides.desired().unwrap()) && Arc::ptr_eq(&pair.desired, sides.defined().unwrap())
    );
    assert!(Arc::ptr_eq(&pair.live, sides.readable_live().unwrap()) && !Arc::ptr_eq(&pair.live, &pair.desired));
}

#[test]
fn annotations_of_a_crd_are_parsed_on_demand() {
    let crd = read(&with(|crd| crd["metadata"]["annotations"] = json!({"a": "b", "c": 3}))).unwrap();
    assert_eq!(crd.annotations().get("a"), Some(&json!("b")));
    assert!(read(&base()).unwrap().annotations().is_empty());
}

#[test]
fn versions_are_compared_by_value_and_not_by_text() {
    let live = with(|crd| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"] = json!(1));
    let same = |edit: &dyn Fn(&mut Value)| {
        let mut desired = live.clone();
        edit(&mut desired);
        let text = desired.to_string().replace("v1beta1", "v1\\u0062eta1");
        CrdSides::new(RawObject::new(text), Some(RawObject::from_value(&live))).has_same_versions()
    };
    assert!(same(&|crd| {
        crd["metadata"]["labels"] = json!({"a": "b"});
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"] = json!(1.0);
    }));
    assert!(!same(&|crd| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"] = json!(2)));
    assert!(!same(&|crd| crd["spec"]["versions"][1]["served"] = json!(true)));
    assert!(!same(&|crd| crd["spec"]["versions"] = json!(null)));
    assert!(!CrdSides::new(RawObject::from_value(&live), None).has_same_versions());
}

#[test]
fn a_pair_without_its_versions_keeps_all_other_fields() {
    let desired = with(|crd| crd["metadata"]["labels"] = json!({"a": "b"}));
    let sides = CrdSides::new(RawObject::from_value(&desired), Some(RawObject::from_value(&base())));
    let (live, desired) = sides.without_same_versions().expect("the same versions");
    let [live, desired] = [live, desired].map(|text| serde_json::from_str::<Value>(&text).expect("JSON"));
    assert_eq!(live, with(|crd| crd["spec"]["versions"] = json!([])));
    let rest = with(|crd| {
        crd["metadata"]["labels"] = json!({"a": "b"});
        crd["spec"]["versions"] = json!([]);
    });
    assert_eq!(desired, rest);
    for text in ["{}", r#"{"spec":null}"#, r#"{"spec":{"a":1}}"#] {
        let sides = CrdSides::new(RawObject::new(text), Some(RawObject::new(text)));
        assert_eq!(sides.without_same_versions(), None);
    }
}

//! Every text that OLM reports for a bundle that it does not install, and bundles that cannot be read.

mod webhooks;

use serde_json::{Value, json};

use super::*;
use crate::csv::Csv;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.package.v1: example
  operators.operatorframework.io.bundle.channels.v1: stable, fast
  operators.operatorframework.io.bundle.channel.default.v1: stable
";

fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "example.v1.2.0", "annotations": {"olm.skipRange": "<1.2.0"}},
        "spec": {
            "version": "1.2.0", "replaces": "example.v1.1.0", "skips": ["example.v1.1.1"], "minKubeVersion": "1.28.0",
            "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "OwnNamespace", "supported": false}],
            "customresourcedefinitions": {
                "owned": [{"name": "widgets.example.com", "version": "v1", "kind": "Widget"}],
                "required": [{"name": "gears.example.org", "version": "v1beta1", "kind": "Gear"}],
            },
            "install": {"strategy": "deployment", "spec": {
                "deployments": [{"name": "manager", "spec": {"template": {"spec": {"serviceAccountName": "sa"}}}}],
                "clusterPermissions": [{"serviceAccountName": "sa", "rules": [
                    {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list"]},
                ]}],
            }},
        },
    })
}

fn crd(name: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"names": {"kind": "Widget"}, "versions": [{"name": "v1", "served": true}, {"name": "v1alpha1", "served": false}]}})
}

fn read(annotations: &str, objects: &[(&str, Value)], subdirectories: &[String]) -> Result<Bundle, BundleReadError> {
    let texts: Vec<(&str, String)> = objects.iter().map(|(file, object)| (*file, object.to_string())).collect();
    let objects: Vec<(&str, &str)> = texts.iter().map(|(file, json)| (*file, json.as_str())).collect();
    Bundle::read(BundleTexts { annotations, objects: &objects, subdirectories, ..BundleTexts::default() })
}

fn bundle_of(csv: Value) -> Bundle {
    read(ANNOTATIONS, &[("csv.yaml", csv), ("crd.yaml", crd("widgets.example.com"))], &[]).unwrap()
}

fn texts(bundle: &Bundle, profile: &Profile<'_>) -> Vec<String> {
    unsupported(bundle, profile).into_iter().map(|found| found.text).collect()
}

/// The problems of a bundle with a changed CSV.
fn of_changed(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut csv = csv();
    change(&mut csv["spec"]);
    texts(&bundle_of(csv), &Profile::default())
}

fn webhook(kind: &str, name: &str, more: Value) -> Value {
    let mut webhook = json!({"type": kind, "generateName": name, "deploymentName": "manager"});
    webhook.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    webhook
}

#[test]
fn a_supported_bundle_is_read_in_all_its_parts() {
    let dependencies = "dependencies:\n- type: olm.gvk\n  value: {group: g.io, version: v1, kind: K}\n";
    let properties = "properties:\n- type: olm.maxOpenShiftVersion\n  value: \"4.20\"\n";
    let (csv, crd) = (csv().to_string(), crd("widgets.example.com").to_string());
    let texts = BundleTexts {
        annotations: ANNOTATIONS,
        dependencies: Some(dependencies),
        properties: Some(properties),
        objects: &[("csv.yaml", &csv), ("crd.yaml", &crd)],
        subdirectories: &[],
    };
    let bundle = Bundle::read(texts).unwrap();
    assert!(bundle.annotations.is_registry_v1());
    let Annotations { package, channels, default_channel, .. } = &bundle.annotations;
    assert_eq!((package.as_str(), default_channel.as_str()), ("example", "stable"));
    assert_eq!(channels, &["stable", "fast"]);
    assert_eq!(bundle.dependencies[0].kind, "olm.gvk");
    assert_eq!(bundle.dependencies[0].value, r#"{"group":"g.io","version":"v1","kind":"K"}"#);
    assert_eq!((bundle.properties.len(), bundle.properties[0].value.as_str()), (1, "\"4.20\""));
    let (csv, file) = bundle.csv.as_ref().unwrap();
    assert_eq!((csv.name.as_str(), csv.version.as_str(), file.as_str()), ("example.v1.2.0", "1.2.0", "csv.yaml"));
    assert_eq!((csv.replaces.as_str(), csv.skip_range.as_str()), ("example.v1.1.0", "<1.2.0"));
    assert_eq!((&csv.skips[..], csv.min_kube_version.as_str()), (&["example.v1.1.1".to_owned()][..], "1.28.0"));
    assert_eq!((csv.required_crds[0].group(), csv.required_crds[0].kind.as_str()), ("example.org", "Gear"));
    assert_eq!(csv.deployments[0].service_account, "sa");
    assert_eq!(csv.cluster_permissions[0].rules[0].verbs, ["get", "list"]);
    assert_eq!(check_support(BundleDetail::Bundle(&bundle), &Profile::default()), Support::default());
}

#[test]
fn olm_ends_with_the_first_thing_that_it_does_not_support() {
    let widgets = || ("crd.yaml", crd("widgets.example.com"));
    let none = read(ANNOTATIONS, &[widgets()], &[]).unwrap();
    assert_eq!(texts(&none, &Profile::default()), ["no ClusterServiceVersion found in \"manifests\""]);
    let nested = read(ANNOTATIONS, &[("csv.yaml", csv()), widgets()], &["manifests/more".into()]).unwrap();
    assert_eq!(
        texts(&nested, &Profile::default()),
        ["subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: found \
          \"manifests/more\""]
    );
    let api_services = json!({"owned": [{"name": "a", "group": "g", "version": "v1", "kind": "K"}]});
    let bundle = bundle_of({
        let mut csv = csv();
        csv["spec"]["apiservicedefinitions"] = api_services;
        csv["spec"]["installModes"] = json!([]);
        csv
    });
    let found = unsupported(&bundle, &Profile::default());
    assert_eq!(found.len(), 1, "the install modes are not even looked at");
    assert_eq!(found[0].text, "unsupported bundle: apiServiceDefintions are not supported");
    let place = found[0].place.clone().unwrap();
    assert_eq!((place.file.as_str(), place.object.1.as_str()), ("csv.yaml", "example.v1.2.0"));
    assert_eq!(place.steps, [CsvStep::Key("spec"), CsvStep::Key("apiservicedefinitions"), CsvStep::Key("owned")]);
}

#[test]
fn install_modes_that_olm_does_not_support_are_reported() {
    let modes = |modes: &[&str]| {
        let modes: Vec<Value> = modes.iter().map(|mode| json!({"type": mode, "supported": true})).collect();
        let mut csv = csv();
        csv["spec"]["installModes"] = Value::from(modes);
        bundle_of(csv)
    };
    let gate = Profile { single_own_namespace: true, install_namespace: "ns", ..Profile::default() };
    let all = "unsupported bundle: bundle does not support AllNamespaces install mode";
    let some = "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] \
                install modes";
    for names in [&[][..], &["OwnNamespace"], &["SingleNamespace", "MultiNamespace"]] {
        assert_eq!(texts(&modes(names), &Profile::default()), [all], "{names:?}");
    }
    assert_eq!(texts(&modes(&["MultiNamespace"]), &gate), [some]);
    // Only later versions have the feature gate.
    assert_eq!(texts(&modes(&["OwnNamespace"]), &Profile { olm: OlmRelease::V4_16, ..gate }), [all]);

    let with = |bundle: &Bundle, config: Value| texts(bundle, &Profile { config: Some(&config), ..gate });
    let prefix = "invalid ClusterExtension configuration: invalid configuration: ";
    let (own, single) = (modes(&["OwnNamespace"]), modes(&["SingleNamespace"]));
    for (bundle, config, text) in [
        (&own, json!({}), "required field \"watchNamespace\" is missing"),
        (&own, json!({"watchNamespace": null}), "required field \"watchNamespace\" is missing"),
        (&own, json!({"watchNamespace": 1}), "invalid type for field \"watchNamespace\": got number, want string"),
        (
            &own,
            json!({"watchNamespace": "other"}),
            "invalid value \"other\": watchNamespace must be \"ns\" (the namespace where the operator is installed) because \
             this operator only supports OwnNamespace install mode",
        ),
        (
            &single,
            json!({"watchNamespace": "ns"}),
            "invalid value \"ns\": watchNamespace must be different from \"ns\" (the install namespace) because this \
             operator uses SingleNamespace install mode to watch a different namespace",
        ),
        (&modes(&["AllNamespaces"]), json!({"watchNamespace": "ns"}), "unknown field \"watchNamespace\""),
        (&modes(&["AllNamespaces"]), json!({"x": 1}), "unknown field \"x\""),
        (
            &modes(&["AllNamespaces", "OwnNamespace"]),
            json!({"watchNamespace": 1}),
            "invalid value for field \"watchNamespace\"",
        ),
        (&own, json!([]), "invalid type: got array, want object"),
        (
            &own,
            json!({"x": 1}),
            "multiple errors found:\n  - required field \"watchNamespace\" is missing\n  - unknown field \"x\"",
        ),
    ] {
        assert_eq!(with(bundle, config.clone()), [format!("{prefix}{text}")], "{config}");
    }
    for (bundle, config) in [
        (&own, json!({"watchNamespace": "ns"})),
        (&single, json!({"watchNamespace": "other"})),
        (&modes(&["AllNamespaces", "OwnNamespace"]), json!({"watchNamespace": null})),
        (&modes(&["SingleNamespace", "OwnNamespace"]), json!({"watchNamespace": "ns"})),
    ] {
        assert_eq!(with(bundle, config.clone()), [""; 0], "{config}");
    }
    // Without the namespace of the ClusterExtension they cannot be compared.
    let nowhere = json!({"watchNamespace": "other"});
    let profile = Profile { install_namespace: "", config: Some(&nowhere), ..gate };
    assert_eq!(texts(&own, &profile), [""; 0]);
    // A feature gate determines whether deploymentConfig is allowed.
    let config = json!({"deploymentConfig": {"env": []}});
    let profile = Profile { config: Some(&config), ..Profile::default() };
    assert_eq!(
        check_support(BundleDetail::Bundle(&bundle_of(csv())), &profile).unchecked,
        [UncheckedBundlePart::DeploymentConfig]
    );
}

const NAME: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                    start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

#[test]
fn deployments_have_names_of_their_own() {
    let deployments = |names: &[&str]| {
        let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        of_changed(|spec| spec["install"]["spec"]["deployments"] = Value::from(list))
    };
    assert_eq!(
        deployments(&["b", "a", "b", "a", "b"]),
        [
            "cluster service version contains duplicate strategy deployment spec 'a'",
            "cluster service version contains duplicate strategy deployment spec 'b'",
        ]
    );
    let long = "x".repeat(254);
    assert_eq!(
        deployments(&["No_name", &long, &format!("{long}_")]),
        [
            format!("invalid cluster service version strategy deployment name 'No_name': {NAME}"),
            format!(
                "invalid cluster service version strategy deployment name '{long}': must be no more than 253 characters"
            ),
            format!(
                "invalid cluster service version strategy deployment name '{long}_': {NAME}, must be no more than 253 \
                 characters"
            ),
        ]
    );
}

#[test]
fn a_crd_that_a_bundle_has_twice_is_an_error() {
    let objects = |names: &[&'static str]| {
        let crds = names.iter().map(|name| ("crd.yaml", crd(name)));
        let objects: Vec<(&str, Value)> = std::iter::once(("csv.yaml", csv())).chain(crds).collect();
        texts(&read(ANNOTATIONS, &objects, &[]).unwrap(), &Profile::default())
    };
    assert_eq!(
        objects(&["others.example.com", "others.example.com"]),
        [
            "bundle contains duplicate custom resource definition 'others.example.com'",
            "cluster service definition references owned custom resource definition 'widgets.example.com' not found in \
             bundle",
        ]
    );
}

#[test]
fn a_bundle_has_a_package() {
    let annotations = ANNOTATIONS.replace("example", "\"\"");
    let objects = [("csv.yaml", csv()), ("crd.yaml", crd("widgets.example.com"))];
    let bundle = read(&annotations, &objects, &[]).unwrap();
    assert_eq!(texts(&bundle, &Profile::default()), ["package name is empty"]);
}

#[test]
fn only_some_kinds_may_be_in_a_bundle() {
    let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let objects = [
        ("csv.yaml", csv()),
        ("crd.yaml", crd("widgets.example.com")),
        ("a.yaml", object("Service", "fine")),
        ("b.yaml", object("Deployment", "made")),
        ("c.yaml", object("NetworkPolicy", "fine")),
        ("d.yaml", object("Widget", "sample")),
    ];
    let bundle = read(ANNOTATIONS, &objects, &[]).unwrap();
    assert_eq!(
        texts(&bundle, &Profile::default()),
        [
            "unsupported resource \"made\" with kind \"Deployment\"",
            "unsupported resource \"sample\" with kind \"Widget\"",
        ]
    );
    let place = unsupported(&bundle, &Profile::default())[0].place.clone().unwrap();
    assert_eq!((place.file.as_str(), place.object.0.as_str()), ("b.yaml", "Deployment"));
    // The 22 kinds of operator-registry v1.73.0: these, and the kinds of the first two objects.
    let kinds = "ClusterRole ClusterRoleBinding ConfigMap ConsoleCLIDownload ConsoleLink ConsolePlugin ConsoleQuickStart \
                 ConsoleYAMLSample NetworkPolicy PodDisruptionBudget PodMonitor PriorityClass PrometheusRule Role \
                 RoleBinding Secret Service ServiceAccount ServiceMonitor VerticalPodAutoscaler";
    let all = kinds.split(' ').map(|kind| ("a.yaml", object(kind, "fine")));
    let objects: Vec<(&str, Value)> = objects[..2].iter().cloned().chain(all).collect();
    assert_eq!(objects.len(), 22);
    assert_eq!(texts(&read(ANNOTATIONS, &objects, &[]).unwrap(), &Profile::default()), [""; 0]);
}

#[test]
fn errors_of_all_validators_are_reported() {
    let found = of_changed(|spec| {
        spec["install"]["spec"]["deployments"] = json!([{"name": "a"}, {"name": "a"}]);
        spec["webhookdefinitions"] = json!([webhook("ValidatingAdmissionWebhook", "v", json!({}))]);
        spec["customresourcedefinitions"]["owned"] = json!([{"name": "none.example.com"}]);
    });
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn owned_versions_exist_and_are_served() {
    let owned_kind = |version: &str, kind: &str| {
        let owned = json!([{"name": "widgets.example.com", "version": version, "kind": kind}]);
        let mut csv = csv();
        csv["spec"]["customresourcedefinitions"]["owned"] = owned;
        unsupported(&bundle_of(csv), &Profile::default())
    };
    let owned = |version: &str| owned_kind(version, "Widget");
    assert_eq!(owned("v1"), []);
    let other = owned_kind("v1", "Widgets");
    assert!(other[0].text.ends_with("defines the kind \"Widget\""), "{}", other[0].text);
    for (version, text) in
        [("v2", "has no version \"v2\" (it has v1, v1alpha1)"), ("v1alpha1", "does not serve v1alpha1")]
    {
        let found = owned(version);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].reason, UnsupportedKind::OwnedVersionMismatch);
        let prefix = format!("the ClusterServiceVersion owns widgets.example.com {version}, but");
        let expected = format!("{prefix} customresourcedefinition widgets.example.com of the bundle {text}");
        assert_eq!(found[0].text, expected);
        assert_eq!(found[0].place.as_ref().unwrap().steps.last(), Some(&CsvStep::Key("version")));
    }
}

#[test]
fn fewer_problems_are_found_in_a_bundle_that_only_a_catalog_describes() {
    let load = |property: Value| {
        let blob = json!({"schema": "olm.bundle", "package": "p", "name": "p.v1", "properties": [
            {"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}, property]});
        let mut catalog = crate::Catalog::default();
        let keep = crate::KeptCatalogParts {
            properties_of: ["p".to_owned()].into(),
            csv: crate::Csvs::Kept,
            ..crate::KeptCatalogParts::default()
        };
        crate::read(blob.to_string().as_bytes(), &mut |blob| catalog.add(blob, &keep)).unwrap();
        catalog.packages["p"].bundles["p.v1"].csv.clone().unwrap()
    };
    let object = |csv: &Value| {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(csv.to_string());
        load(json!({"type": "olm.bundle.object", "value": {"data": data}}))
    };
    let judged = |csv: &Csv, profile: &Profile<'_>| {
        let Support { unsupported, unchecked } = csv.support(profile);
        assert!(unsupported.iter().all(|found| found.place.is_none()));
        (unsupported.into_iter().map(|found| found.text).collect::<Vec<_>>(), unchecked)
    };
    let fine = object(&csv());
    assert_eq!(judged(&fine, &Profile::default()), (vec![], vec![UncheckedBundlePart::Objects]));
    let mut wrong = csv();
    wrong["spec"]["webhookdefinitions"] =
        json!([webhook("ConversionWebhook", "c", json!({"conversionCRDs": ["x.y"]}))]);
    let foreign = "conversion webhook 'c' references custom resource definition 'x.y' not owned bundle";
    assert_eq!(
        judged(&object(&wrong), &Profile::default()),
        (vec![foreign.into()], vec![UncheckedBundlePart::Objects])
    );
    let old = Profile { olm: OlmRelease::V4_16, ..Profile::default() };
    let webhooks = "unsupported bundle: webhookDefinitions are not supported";
    assert_eq!(judged(&object(&wrong), &old), (vec![webhooks.into()], vec![]));

    let metadata = |modes: Value, api_services: Value| {
        let value = json!({"annotations": {}, "installModes": modes, "apiServiceDefinitions": api_services});
        load(json!({"type": "olm.csv.metadata", "value": value}))
    };
    let everywhere = json!([{"type": "AllNamespaces", "supported": true}]);
    let all = vec![UncheckedBundlePart::Webhooks, UncheckedBundlePart::Install, UncheckedBundlePart::Objects];
    let fine = metadata(everywhere.clone(), json!({}));
    assert_eq!(judged(&fine, &Profile::default()), (vec![], all.clone()));
    assert_eq!(judged(&fine, &old), (vec![], all.clone()), "never a pass");
    let modes = "unsupported bundle: bundle does not support AllNamespaces install mode";
    assert_eq!(
        judged(&metadata(json!([]), json!({})), &old),
        (vec![modes.into()], vec![UncheckedBundlePart::Webhooks])
    );
    let services = metadata(everywhere, json!({"owned": [{"name": "a"}]}));
    let text = "unsupported bundle: apiServiceDefintions are not supported";
    assert_eq!(judged(&services, &Profile::default()), (vec![text.into()], vec![]));
    // An invalid ClusterServiceVersion does not make a catalog unreadable; nothing is known about this one.
    let mut broken = csv();
    broken["spec"]["install"] = json!("x");
    assert_eq!(judged(&object(&broken), &Profile::default()), (vec![], all));
}

#[test]
fn an_unreadable_bundle_is_an_error_with_its_file() {
    let error = |annotations: &str, objects: &[(&str, Value)]| {
        let BundleReadError { file, line, message } = read(annotations, objects, &[]).unwrap_err();
        format!("{file}:{line}: {message}")
    };
    assert_eq!(
        error("annotations: [", &[]),
        "metadata/annotations.yaml:2: did not find expected node content while parsing a flow node"
    );
    assert!(error("annotations: 1", &[]).starts_with("metadata/annotations.yaml:0: invalid type: integer"));
    assert!(error("[]", &[]).starts_with("metadata/annotations.yaml:0: invalid"));
    let deep = format!("annotations: {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&deep, &[]).starts_with("metadata/annotations.yaml:1: "));
    let large = format!("# {}", "x".repeat(5 << 20));
    assert_eq!(error(&large, &[]), "metadata/annotations.yaml:0: larger than the limit of 4 MiB");
    let mut wrong = csv();
    wrong["spec"]["installModes"] = json!("AllNamespaces");
    assert_eq!(
        error(ANNOTATIONS, &[("csv.yaml", wrong.clone())]),
        "csv.yaml:0: invalid type: string \"AllNamespaces\", expected a sequence"
    );
    wrong["spec"]["installModes"] = json!(["AllNamespaces"]);
    assert_eq!(
        error(ANNOTATIONS, &[("csv.yaml", wrong)]),
        "csv.yaml:0: invalid type: string \"AllNamespaces\", expected an object"
    );
    let texts =
        BundleTexts { annotations: ANNOTATIONS, dependencies: Some("dependencies: 1"), ..BundleTexts::default() };
    assert_eq!(Bundle::read(texts).unwrap_err().file, "metadata/dependencies.yaml");
    // Empty input is a bundle without a package.
    assert_eq!(Annotations::read("").unwrap(), Annotations::default());
    // Other checks report a CRD whose versions cannot be read.
    let crd = json!({"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": {"versions": 1}});
    let bundle = read(ANNOTATIONS, &[("csv.yaml", csv()), ("crd.yaml", crd)], &[]).unwrap();
    assert_eq!(texts_of(&bundle), [""; 0]);
}

fn texts_of(bundle: &Bundle) -> Vec<String> {
    texts(bundle, &Profile::default())
}

proptest::proptest! {
    #[test]
    fn no_object_makes_it_panic(json in "\\PC{0,60}", key in "(spec|metadata|kind|installModes)", value in "\\PC{0,20}") {
        let object = format!(r#"{{"kind": "ClusterServiceVersion", "{key}": {}}}"#, Value::from(value));
        for text in [json.as_str(), object.as_str()] {
            let objects = [("a.yaml", text)];
            if let Ok(bundle) = Bundle::read(BundleTexts { annotations: text, objects: &objects, ..BundleTexts::default() }) {
                let _ = check_support(BundleDetail::Bundle(&bundle), &Profile::default());
            }
        }
    }
}

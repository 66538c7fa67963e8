//! `OperatorDependencies`: what operators require of each other, and which of them lose something.

use std::collections::BTreeSet;

use gantry_preflight::olm::operator_dependencies::ENTRY;
use serde_json::{Value, json};

use super::{Ran, Stage, extension};
use gantry_core::crd::builder::{CrdBuilder, fields};

/// A ClusterServiceVersion of the package at the start of its name: owned and required kinds of the group
/// `g.example.com`.
fn csv(name: &str, owned: &[&str], required: &[&str]) -> Value {
    let (package, version) = name.split_once(".v").expect("a version");
    let api =
        |kind: &&str| json!({"name": format!("{}s.g.example.com", kind.to_lowercase()), "version": "v1", "kind": kind});
    let properties =
        json!({"properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}]});
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": "operators",
            "annotations": {"operatorframework.io/properties": properties.to_string()}},
        "spec": {"version": version, "customresourcedefinitions": {
            "owned": owned.iter().map(api).collect::<Value>(), "required": required.iter().map(api).collect::<Value>()}},
    })
}

fn documents(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

/// A package with bundles: version, kinds that it provides, kinds and packages that it requires.
fn package(name: &str, bundles: &[(&str, &[&str], &[Value])]) -> String {
    let entry = |(version, ..): &(&str, &[&str], &[Value])| json!({"name": format!("{name}.v{version}")});
    let mut blobs = vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": name, "name": "a", "entries": bundles.iter().map(entry).collect::<Value>()}),
    ];
    for (version, provides, requires) in bundles {
        let mut properties = vec![json!({"type": "olm.package", "value": {"packageName": name, "version": version}})];
        properties.extend(provides.iter().map(|kind| json!({"type": "olm.gvk", "value": gvk(kind)})));
        properties.extend(requires.iter().cloned());
        blobs.push(json!({"schema": "olm.bundle", "package": name, "name": format!("{name}.v{version}"), "properties": properties}));
    }
    blobs.iter().map(Value::to_string).collect()
}

fn gvk(kind: &str) -> Value {
    json!({"group": "g.example.com", "version": "v1", "kind": kind})
}

fn requires(kind: &str) -> Value {
    json!({"type": "olm.gvk.required", "value": gvk(kind)})
}

fn check(stage: &Stage) -> Ran {
    stage.check_with(&ENTRY)
}

#[test]
fn a_provider_that_drops_a_required_api_is_named_with_its_dependent() {
    // A's provider depends on B; B's provider changes to C.
    let stage = Stage::new();
    stage.write("live/csvs.yaml", &documents(&[csv("a.v1.0.0", &["A"], &["B"]), csv("b.v1.0.0", &["B"], &[])]));
    let mut next = csv("b.v2.0.0", &["C"], &[]);
    next["spec"]["replaces"] = "b.v1.0.0".into();
    let stage = stage.desired(next);
    let ran = check(&stage).code(3);
    assert_eq!(ran.rules(), ["DependentBroken"]);
    let message = &ran.found()[0].1;
    for part in ["a.v1.0.0", "b.v1.0.0", "b.v2.0.0", "group: g.example.com, version: v1, kind: B"] {
        assert!(message.contains(part), "{message}");
    }
    // An update that keeps it breaks no operator.
    let mut next = csv("b.v2.0.0", &["B", "C"], &[]);
    next["spec"]["replaces"] = "b.v1.0.0".into();
    assert_eq!(check(&stage.desired(next)).code(0).rules(), [""; 0]);
}

#[test]
fn an_operator_of_another_namespace_is_a_different_operator() {
    let stage = Stage::new();
    let mut elsewhere = csv("a.v1.0.0", &["A"], &[]);
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    stage.write("live/csvs.yaml", &documents(&[elsewhere, csv("b.v1.0.0", &[], &["A"])]));
    // There, it replaces no operator and conflicts with none.
    let mut next = csv("a.v2.0.0", &["A"], &[]);
    next["spec"]["replaces"] = "a.v1.0.0".into();
    assert_eq!(check(&stage.desired(next.clone())).code(0).rules(), [""; 0]);
    next["spec"]["customresourcedefinitions"] = json!({});
    let stage = Stage::new();
    stage.write("live/csvs.yaml", &documents(&[csv("a.v1.0.0", &["A"], &[]), csv("b.v1.0.0", &[], &["A"])]));
    assert_eq!(check(&stage.desired(next)).code(3).rules(), ["DependentBroken"]);
}

#[test]
fn operators_that_need_each_other_are_updated_together() {
    // A's provider requires B, B's provider requires A; both change to A2 and B2.
    let live = documents(&[csv("a.v1.0.0", &["A"], &["B"]), csv("b.v1.0.0", &["B"], &["A"])]);
    let (next_a, next_b) = (csv("a.v2.0.0", &["A2"], &["B2"]), csv("b.v2.0.0", &["B2"], &["A2"]));
    let stage = |desired: &[Value]| {
        let bundles: &[(&str, &[&str], &[Value])] =
            &[("1.0.0", &["B"], &[requires("A")]), ("2.0.0", &["B2"], &[requires("A2")])];
        let stage = Stage::new().catalog("c", &package("b", bundles));
        stage.write("live/csvs.yaml", &live);
        stage.desired(documents(desired))
    };
    let ran = check(&stage(std::slice::from_ref(&next_a))).code(3);
    assert_eq!(ran.rules(), ["UpdateTogether"], "{}", ran.stdout);
    assert!(ran.help().contains("b.v2.0.0"), "{}", ran.help());
    assert_eq!(check(&stage(&[next_a, next_b])).code(0).rules(), [""; 0]);
}

#[test]
fn a_missing_requirement_is_reported_with_its_providers() {
    let topology = package(
        "topology",
        &[(
            "1.0.0",
            &["Queue"],
            &[
                requires("Cluster"),
                json!({"type": "olm.package.required", "value": {"packageName": "cluster", "versionRange": ">2.0.0"}}),
            ],
        )],
    );
    let cluster = package("cluster", &[("1.9.0", &["Cluster"], &[]), ("2.1.0", &["Cluster"], &[])]);
    let named = |name: &str, package: &str| {
        let mut object = extension(json!({"packageName": package}));
        object["metadata"]["name"] = name.into();
        object
    };
    let stage =
        |desired: &[Value]| Stage::new().catalog("c", &format!("{topology}{cluster}")).desired(documents(desired));
    let ran = check(&stage(&[named("t", "topology")])).code(3);
    assert_eq!(ran.rules(), ["RequiredApiMissing", "RequiredPackageMissing"], "{}", ran.stdout);
    let expected = "bundle topology.v1.0.0 requires an operator providing an API with group: g.example.com, version: v1, kind: Cluster";
    assert_eq!(ran.found()[0].1, expected);
    assert_eq!(ran.help(), "deploy it with one that provides it: cluster.v2.1.0 of package cluster (catalog c)");
    let expected =
        "bundle topology.v1.0.0 requires an operator with package: cluster and with version in range: >2.0.0";
    assert_eq!(ran.found()[1].1, expected);
    assert_eq!(check(&stage(&[named("t", "topology"), named("k", "cluster")])).code(0).rules(), [""; 0]);
    // An older version of the package has the API, but not the version.
    let mut old = named("k", "cluster");
    old["spec"]["source"]["catalog"]["version"] = "1.x".into();
    assert_eq!(check(&stage(&[named("t", "topology"), old])).code(3).rules(), ["RequiredPackageMissing"]);
}

#[test]
fn olm_v1_refuses_a_bundle_with_dependencies_and_tries_no_other() {
    let text = package("p", &[("1.0.0", &[], &[]), ("1.1.0", &[], &[requires("K")])]);
    let stage = |range: &str| {
        Stage::new().catalog("c", &text).desired(extension(json!({"packageName": "p", "version": range})))
    };
    let ran = stage(">=1.0.0").check().code(3);
    let expected = "validating bundle \"p.v1.1.0\": bundle \"p.v1.1.0\" has a dependency declared via property \"olm.gvk.required\" which is currently not supported";
    assert_eq!(ran.found()[0], ("UnsupportedBundle".to_owned(), expected.to_owned()));
    assert!(ran.help().contains("set version to \"1.0.0\""), "{}", ran.help());
    stage("<1.1.0").check().code(0);
}

fn crd(versions: &[&str], most: u64) -> Value {
    let schema = fields(json!({"size": {"type": "integer", "maximum": most}}));
    let add = |crd: CrdBuilder, name: &&str| crd.version(name, schema.clone());
    versions.iter().fold(CrdBuilder::new("g.example.com", "K"), add).build()
}

#[test]
fn a_crd_with_two_owners_keeps_its_versions_and_accepts_every_object() {
    let object = |size: u64| json!({"apiVersion": "g.example.com/v1", "kind": "K", "metadata": {"name": "one", "namespace": "operators"}, "size": size});
    let stage = |owners: &[&str], size, desired: &Value| {
        let mut live: Vec<Value> = owners.iter().map(|name| csv(name, &["K"], &[])).collect();
        live.extend([crd(&["v1", "v1beta1"], 10), object(size)]);
        let stage = Stage::new();
        stage.write("live/all.yaml", &documents(&live));
        stage.desired(desired)
    };
    let (two, one) = (&["a.v1.0.0", "b.v1.0.0"][..], &["a.v1.0.0"][..]);
    // The same operator in two namespaces.
    let mut elsewhere = csv("a.v1.0.0", &["K"], &[]);
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    let both = [csv("a.v1.0.0", &["K"], &[]), elsewhere, crd(&["v1", "v1beta1"], 10)];
    let twice = Stage::new();
    twice.write("live/all.yaml", &documents(&both));
    assert_eq!(check(&twice.desired(crd(&["v1"], 10))).found(), []);
    let (gone, narrow) = (crd(&["v1"], 10), crd(&["v1", "v1beta1"], 5));
    for (owners, size, desired, expected) in [
        (two, 3, &gone, Some("served version v1beta1 of ks.g.example.com is removed")),
        (two, 7, &narrow, Some("updated validation is too restrictive: 1 object of ks.g.example.com (operators/one)")),
        (two, 3, &narrow, None),
        (one, 7, &narrow, None),
        (one, 3, &gone, None),
    ] {
        let ran = check(&stage(owners, size, desired));
        let found = ran.found();
        match expected {
            None => assert_eq!(found, [], "{owners:?} {size}"),
            Some(text) => assert!(
                found.iter().all(|(rule, said)| rule == "SharedCrdNotCompatible" && said.contains(text)),
                "{found:?}"
            ),
        }
        assert_eq!(found.is_empty(), expected.is_none(), "{owners:?} {size}");
        ran.code(if expected.is_some() { 3 } else { 0 });
    }
}

#[test]
fn the_document_of_classic_olm_forbids_to_remove_a_served_version_at_once() {
    let stage = Stage::new();
    stage.write("live/all.yaml", &documents(&[crd(&["v1", "v1beta1"], 10)]));
    stage.write(
        "gantry.yaml",
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {preset: olm-classic}\n",
    );
    let ran = stage.desired(crd(&["v1"], 10)).gantry(&["check", "-o", "json"]).code(3);
    assert_eq!(ran.rules(), ["ServedVersionRemoved"]);
}

#[test]
fn removing_a_version_that_a_live_operator_requires_is_an_error() {
    let stage = Stage::new();
    let mut needs = csv("a.v1.0.0", &[], &["K"]);
    needs["spec"]["customresourcedefinitions"]["required"][0]["version"] = "v1beta1".into();
    stage.write("live/all.yaml", &documents(&[needs, crd(&["v1", "v1beta1"], 10)]));
    let ran = check(&stage.desired(crd(&["v1"], 10))).code(3);
    assert_eq!(ran.rules(), ["DependentBroken"], "{}", ran.stdout);
    assert!(ran.found()[0].1.contains("the CRD of the manifests no longer serves v1beta1"), "{}", ran.stdout);
}

#[test]
fn a_subscription_is_resolved_as_classic_olm_does() {
    let subscription = |channel: &str, source: &str| subscription(json!({"channel": channel, "source": source}));
    let text = package("p", &[("1.0.0", &["P"], &[requires("Missing")])]);
    let ran = |desired: Value| check(&Stage::new().catalog("c", &text).desired(desired));
    assert_eq!(ran(subscription("a", "c")).code(3).rules(), ["RequiredApiMissing"]);
    let text = "no operators found in channel z of package p in the catalog referenced by subscription p";
    let not_resolved = |text: &str| [("SubscriptionNotResolved".to_owned(), text.to_owned())];
    assert_eq!(ran(subscription("z", "c")).code(3).found(), not_resolved(text));
    let mut starting = subscription("a", "c");
    starting["spec"]["startingCSV"] = "p.v9.9.9".into();
    let text =
        "no operators found with name p.v9.9.9 in channel a of package p in the catalog referenced by subscription p";
    assert_eq!(ran(starting.clone()).code(3).found(), not_resolved(text));
    starting["spec"]["startingCSV"] = "p.v1.0.0".into();
    assert_eq!(ran(starting).code(3).rules(), ["RequiredApiMissing"]);
    assert!(ran(subscription("a", "x")).code(1).unchecked().ends_with("the content of its catalog x is unknown"));
}

/// A Subscription to the package p.
fn subscription(spec: Value) -> Value {
    let mut object = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "p", "namespace": "operators"}, "spec": {"name": "p", "source": "c"}});
    object["spec"].as_object_mut().expect("a spec").extend(spec.as_object().expect("a spec").clone());
    object
}

#[test]
fn a_subscription_without_a_channel_is_updated_in_any() {
    let catalog = versions(&json!({"a": [{"name": "p.v2.0.0"}, {"name": "p.v3.0.0", "replaces": "p.v2.0.0"}],
        "b": [{"name": "p.v1.5.0"}, {"name": "p.v1.6.0", "replaces": "p.v1.5.0"}]}));
    for (installed, expected) in [("p.v1.5.0", "p.v1.6.0"), ("p.v2.0.0", "p.v3.0.0")] {
        let live = [csv(installed, &[], &[])];
        assert_eq!(installs(&catalog, json!({}), installed, &live).as_deref(), Some(expected));
    }
}

/// The package p with these channels.
fn versions(channels: &Value) -> String {
    let mut blobs = vec![json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"})];
    let mut names = BTreeSet::new();
    for (name, entries) in channels.as_object().expect("channels") {
        names.extend(entries.as_array().expect("entries").iter().map(|entry| entry["name"].as_str().expect("a name")));
        blobs.push(json!({"schema": "olm.channel", "package": "p", "name": name, "entries": entries}));
    }
    for name in names {
        let version = name.strip_prefix("p.v").expect("a version");
        let of = json!({"type": "olm.package", "value": {"packageName": "p", "version": version}});
        blobs.push(json!({"schema": "olm.bundle", "package": "p", "name": name, "properties": [of]}));
    }
    blobs.iter().map(Value::to_string).collect()
}

/// The bundle that a live Subscription with this `installedCSV` is updated to.
fn installs(catalog: &str, spec: Value, installed: &str, live: &[Value]) -> Option<String> {
    let mut desired = subscription(spec);
    let mut subscription = desired.clone();
    subscription["status"] = json!({"installedCSV": installed});
    desired["metadata"]["labels"] = json!({"a": "b"});
    let stage = Stage::new().catalog("c", catalog);
    stage.write("live/all.yaml", &documents(&[live, &[subscription]].concat()));
    let ran = check(&stage.desired(desired));
    let bundle = ran.report()["subscriptions"][0]["bundle"].as_str().map(str::to_owned);
    bundle.filter(|bundle| bundle != installed || live.iter().all(|csv| csv["metadata"]["namespace"] != "operators"))
}

#[test]
fn a_channel_of_a_subscription_has_one_head() {
    let two = package("p", &[("1.0.0", &[], &[]), ("2.0.0", &[], &[])]);
    let ran = check(&Stage::new().catalog("c", &two).desired(subscription(json!({"channel": "a"})))).code(3);
    assert_eq!(ran.rules(), ["SubscriptionNotResolved"]);
    let said = &ran.found()[0].1;
    assert!(
        said.ends_with("2 replacement chains were found in channel \"a\" of package \"p\": p.v1.0.0, p.v2.0.0"),
        "{said}"
    );
}

#[test]
fn a_skip_range_applies_to_an_installed_version_that_the_catalog_lacks() {
    let catalog = |[two, three]: [&str; 2]| {
        versions(&json!({"a": [{"name": "p.v1.0.0"},
            {"name": "p.v2.0.0", "replaces": "p.v1.0.0", "skipRange": two},
            {"name": "p.v3.0.0", "replaces": "p.v2.0.0", "skipRange": three}]}))
    };
    for (ranges, expected) in
        [(["", "<3.0.0"], Some("p.v3.0.0")), (["<2.0.0", ""], Some("p.v2.0.0")), (["", ">0.6.0 <3.0.0"], None)]
    {
        let live = [csv("p.v0.5.0", &[], &[])];
        let installed = installs(&catalog(ranges), json!({"channel": "a"}), "p.v0.5.0", &live);
        assert_eq!(installed.as_deref(), expected, "{ranges:?}");
    }
}

#[test]
fn a_subscription_status_without_its_cluster_service_version_is_ignored() {
    let catalog = versions(&json!({"a": [{"name": "p.v1.0.0"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.0"},
        {"name": "p.v3.0.0", "replaces": "p.v2.0.0"}]}));
    let mut elsewhere = csv("p.v1.0.0", &[], &[]);
    elsewhere["metadata"]["namespace"] = "elsewhere".into();
    for (live, starting, expected) in [
        (csv("p.v1.0.0", &[], &[]), "p.v1.0.0", "p.v2.0.0"),
        (elsewhere.clone(), "", "p.v3.0.0"),
        (elsewhere, "p.v1.0.0", "p.v1.0.0"),
    ] {
        let spec = json!({"channel": "a", "startingCSV": starting});
        assert_eq!(installs(&catalog, spec, "p.v1.0.0", &[live]).as_deref(), Some(expected));
    }
}

#[test]
fn a_live_operator_has_the_version_of_its_package_property() {
    let required = json!({"type": "olm.package.required", "value": {"packageName": "q", "versionRange": ">=1.0.0"}});
    for (property, own, rules) in [
        ("1.0.0", None, &[][..]),
        ("1.0.0", Some("0.1.0"), &[]),
        ("0.1.0", Some("1.0.0"), &[]),
        ("0.1.0", None, &["RequiredPackageMissing"]),
    ] {
        let mut live = csv(&format!("q.v{property}"), &[], &[]);
        live["spec"]["version"] = own.into();
        let stage = Stage::new().catalog("c", &package("p", &[("1.0.0", &[], std::slice::from_ref(&required))]));
        stage.write("live/all.yaml", &documents(&[live]));
        let ran = check(&stage.desired(subscription(json!({"channel": "a"}))));
        assert_eq!(ran.rules(), rules, "{property} {own:?}: {}", ran.stdout);
    }
}

#[test]
fn a_constraint_is_met_by_a_single_operator() {
    let (a, q) = (json!({"gvk": gvk("A")}), json!({"package": {"packageName": "q", "versionRange": ">=1.0.0"}}));
    let all = |parts: Value| json!({"all": {"constraints": parts}});
    let not = json!({"not": {"constraints": [a]}});
    let ran = |constraint: &Value, q: Value| {
        let property = json!({"type": "olm.constraint", "value": constraint});
        let text = package("p", &[("1.0.0", &[], &[property])]) + &package("r", &[("1.0.0", &["A"], &[])]);
        let stage = Stage::new().catalog("c", &text);
        stage.write("live/all.yaml", &documents(&[csv("a.v1.0.0", &["A"], &[]), q]));
        check(&stage.desired(subscription(json!({"channel": "a"}))))
    };
    // A provides the API, and another operator is q.
    let of_q = csv("q.v1.0.0", &[], &[]);
    let missing = ran(&all(json!([a, q])), of_q.clone()).code(3);
    assert_eq!(missing.rules(), ["RequiredApiMissing"]);
    let expected = "bundle p.v1.0.0 requires an operator providing an API with group: g.example.com, version: v1, kind: A \
        and with package: q and with version in range: >=1.0.0";
    assert_eq!(missing.found()[0].1, expected);
    // The catalog has a bundle with the API, but that is not of the package.
    assert!(missing.help().starts_with("no bundle of the available catalogs provides it"), "{}", missing.help());
    for constraint in [not.clone(), all(json!([q, not]))] {
        assert_eq!(ran(&constraint, of_q.clone()).code(0).rules(), [""; 0], "{constraint}");
    }
    assert_eq!(ran(&all(json!([a, q])), csv("q.v1.0.0", &["A"], &[])).code(0).rules(), [""; 0]);
}

#[test]
fn a_constraint_that_only_olm_evaluates_is_no_pass() {
    let rule = json!({"type": "olm.constraint", "value": {"failureMessage": "x", "cel": {"rule": "properties.exists(p, true)"}}});
    let broken = json!({"type": "olm.package.required", "value": {"packageName": "q", "versionRange": "^1"}});
    let unknown = json!({"type": "olm.constraint", "value": {"gvk": gvk("K"), "unknownthing": {}}});
    for (property, expected) in [
        (rule, "which is not evaluated"),
        (broken, "bundle p.v1.0.0: olm.package.required: "),
        (unknown, "bundle p.v1.0.0: parse olm.constraint: json: unknown field \"unknownthing\""),
    ] {
        let stage = Stage::new().catalog("c", &package("p", &[("1.0.0", &[], std::slice::from_ref(&property))]));
        let ran = check(&stage.desired(extension(json!({"packageName": "p"})))).code(1);
        assert!(ran.unchecked().contains(expected), "{}", ran.stdout);
    }
}

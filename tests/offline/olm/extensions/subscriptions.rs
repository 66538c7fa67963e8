//! What classic OLM does with Subscriptions: their plan lines, and what keeps OLM from resolving a namespace.

use gantry_preflight::olm::operator_dependencies::ENTRY;
use serde_json::{Value, json};

use super::{Ran, Stage};

fn subscription(name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": name, "namespace": "operators"},
        "spec": {"name": "p", "source": "c", "sourceNamespace": "olm", "channel": "a"}});
    object["spec"].as_object_mut().expect("a spec").extend(spec.as_object().expect("a spec").clone());
    object
}

fn csv(version: &str, properties: Value) -> Value {
    let properties = json!({ "properties": properties }).to_string();
    json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("p.v{version}"), "namespace": "operators",
            "annotations": {"operatorframework.io/properties": properties}},
        "spec": {"version": version}})
}

fn of_package(version: &str) -> Value {
    json!([{"type": "olm.package", "value": {"packageName": "p", "version": version}}])
}

fn group(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": "operators"}, "spec": spec})
}

fn bundle(package: &str, version: &str, more: &[Value]) -> Value {
    let mut properties = vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    properties.extend_from_slice(more);
    json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"), "properties": properties})
}

/// Channel a: 1.0.0 to 1.2.0, one after another; 1.2.0 also skips 0.9.0. Channel b: 2.0.0.
fn catalog() -> String {
    let modes = json!({"type": "olm.csv.metadata", "value": {"installModes": [
        {"type": "OwnNamespace", "supported": true}, {"type": "AllNamespaces", "supported": false}]}});
    let blobs = [
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a", "entries": [{"name": "p.v1.0.0"},
            {"name": "p.v1.1.0", "replaces": "p.v1.0.0"},
            {"name": "p.v1.2.0", "replaces": "p.v1.1.0", "skips": ["p.v0.9.0"], "skipRange": ">=0.5.0 <0.8.0"}]}),
        json!({"schema": "olm.channel", "package": "p", "name": "b", "entries": [{"name": "p.v2.0.0"}]}),
        bundle("p", "1.0.0", &[]),
        bundle("p", "1.1.0", std::slice::from_ref(&modes)),
        bundle("p", "1.2.0", &[modes]),
        bundle("p", "2.0.0", &[]),
    ];
    blobs.iter().map(Value::to_string).collect()
}

/// What is live, and the manifests.
fn check(live: &[Value], desired: &[Value]) -> Ran {
    check_in(&catalog(), live, desired)
}

fn check_in(catalog: &str, live: &[Value], desired: &[Value]) -> Ran {
    let stage = stage(catalog, live, desired);
    stage.check_with(&ENTRY)
}

fn stage(catalog: &str, live: &[Value], desired: &[Value]) -> Stage {
    let documents = |objects: &[Value]| objects.iter().map(|object| format!("---\n{object}\n")).collect::<String>();
    let stage = Stage::new().catalog("c", catalog);
    stage.write("live/olm.yaml", &documents(live));
    stage.desired(documents(desired))
}

/// With an installed version.
fn installed(version: &str) -> [Value; 2] {
    let mut live = subscription("s", json!({}));
    live["status"] = json!({"installedCSV": format!("p.v{version}")});
    live["metadata"]["labels"] = json!({"old": "yes"});
    [live, csv(version, of_package(version))]
}

fn plan_line(live: &[Value], spec: Value) -> String {
    let objects = [live, &[group("g", json!({"targetNamespaces": ["operators"]}))]].concat();
    let stage = stage(&catalog(), &objects, &[subscription("s", spec)]);
    let shown = stage.gantry(&["check", "--preflight", ENTRY.name]).stdout;
    let line = shown.lines().find(|line| line.trim_start().starts_with("subscription "));
    line.unwrap_or_else(|| panic!("{shown}")).trim().to_owned()
}

#[test]
fn each_subscription_has_a_plan_line() {
    for (live, spec, expected) in [
        (&[][..], json!({}), "subscription operators/s: p 1.2.0 (a, c, head of the channel)"),
        (
            &[],
            json!({"startingCSV": "p.v1.0.0"}),
            "subscription operators/s: p 1.0.0 (a, c, startingCSV), then 1.1.0 -> 1.2.0",
        ),
        (
            &[],
            json!({"startingCSV": "p.v1.0.0", "installPlanApproval": "Manual"}),
            "subscription operators/s: p 1.0.0 (a, c, startingCSV, approval Manual)",
        ),
        (&installed("1.0.0"), json!({}), "subscription operators/s: p 1.0.0 -> 1.1.0 (a, c, replaces), then 1.2.0"),
        (
            &installed("0.9.0"),
            json!({}),
            "subscription operators/s: p 0.9.0 -> 1.2.0 (a, c, skips, head of the channel)",
        ),
        (
            &installed("0.6.0"),
            json!({}),
            "subscription operators/s: p 0.6.0 -> 1.2.0 (a, c, skipRange >=0.5.0 <0.8.0, head of the channel)",
        ),
        (&installed("1.2.0"), json!({}), "subscription operators/s: p stays at 1.2.0 (a, c, head of the channel)"),
        (&installed("1.2.0"), json!({"channel": "b"}), "subscription operators/s: p stays at 1.2.0 (b, c)"),
        (&[], json!({"channel": "c"}), "subscription operators/s: p resolves to nothing (c, c)"),
    ] {
        assert_eq!(plan_line(live, spec.clone()), expected, "{spec}");
    }
}

#[test]
fn a_change_of_the_channel_without_a_path_is_reported() {
    let ran = check(&installed("1.2.0"), &[subscription("s", json!({"channel": "b"}))]).code(0);
    assert_eq!(ran.rules(), ["SubscriptionStuck"]);
    let said = &ran.found()[0].1;
    assert!(
        said.contains("Subscription s stays at p.v1.2.0") && said.ends_with("the head of the channel is p.v2.0.0"),
        "{said}"
    );
    assert_eq!(ran.report()["subscriptions"][0]["resolved"], "1.2.0");
}

#[test]
fn a_cluster_service_version_without_a_subscription_conflicts() {
    let ran = |live: &[Value]| check(live, &[subscription("s", json!({}))]);
    let found = ran(&[csv("1.2.0", of_package("1.2.0"))]).code(3);
    assert_eq!(found.rules(), ["SubscriptionNotResolved"]);
    let said = &found.found()[0].1;
    assert!(
        said.starts_with("clusterserviceversion p.v1.2.0 exists and is not referenced by a subscription, and there can be only one operator from package p"),
        "{said}"
    );
    assert!(found.help().contains("kubectl -n operators delete clusterserviceversion p.v1.2.0"), "{}", found.help());
    // Another Subscription has installed it, or it is of another package.
    let mut other = subscription("s", json!({}));
    other["status"] = json!({"installedCSV": "p.v1.2.0"});
    assert_eq!(ran(&[csv("1.2.0", of_package("1.2.0")), other]).code(0).rules(), [""; 0]);
    let of_q = json!([{"type": "olm.package", "value": {"packageName": "q", "version": "1.0.0"}}]);
    assert_eq!(ran(&[csv("1.2.0", of_q)]).code(0).rules(), [""; 0]);
}

#[test]
fn a_dependency_that_a_catalog_has_is_installed_too() {
    let api = json!({"group": "g.example.com", "version": "v1", "kind": "K"});
    let channel = |package: &str| json!({"schema": "olm.channel", "package": package, "name": "a", "entries": [{"name": format!("{package}.v1.0.0")}]});
    let text = |provider: &[Value]| -> String {
        [
            channel("p"),
            bundle("p", "1.0.0", &[json!({"type": "olm.gvk.required", "value": api})]),
            channel("q"),
            bundle("q", "1.0.0", provider),
        ]
        .iter()
        .map(Value::to_string)
        .collect()
    };
    let provides = [json!({"type": "olm.gvk", "value": api})];
    let ran = check_in(&text(&provides), &[], &[subscription("s", json!({}))]).code(0);
    assert_eq!(ran.rules(), ["DependencyInstalled"]);
    assert!(ran.help().contains("q.v1.0.0 of package q (catalog c)"), "{}", ran.help());
    let ran = check_in(&text(&[]), &[], &[subscription("s", json!({}))]).code(3);
    assert_eq!(ran.rules(), ["RequiredApiMissing"]);
}

#[test]
fn a_namespace_needs_exactly_one_operator_group_that_fits() {
    let own = || group("own", json!({"targetNamespaces": ["operators"]}));
    let all = || group("all", json!({}));
    let ran = |live: &[Value], desired: &[Value]| check(live, &[desired, &[subscription("s", json!({}))]].concat());
    for (live, desired, expected) in [
        (&[own()][..], &[][..], None),
        (&[], &[own()], None),
        (&[own()], &[all()], Some("expected 1 OperatorGroup in the namespace, found 2")),
        (&[own(), all()], &[], Some("expected 1 OperatorGroup in the namespace, found 2")),
        (&[all()], &[], Some("AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces")),
    ] {
        let ran = ran(live, desired).code(if expected.is_some() { 3 } else { 0 });
        match expected {
            None => assert_eq!(ran.rules(), [""; 0]),
            Some(text) => {
                assert_eq!(ran.rules(), ["OperatorGroupInvalid"], "{}", ran.stdout);
                assert!(ran.found()[0].1.contains(text), "{}", ran.found()[0].1);
            }
        }
    }
    // A folder may lack it.
    let ran = ran(&[], &[]).code(0);
    let notices = ran.report()["notices"].to_string();
    assert!(notices.contains("there is no OperatorGroup in namespace operators"), "{notices}");
}

#[test]
fn an_unhealthy_catalog_stops_the_namespace() {
    let source = |namespace: &str, state: &str| {
        json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "other", "namespace": namespace},
            "status": {"connectionState": {"lastObservedState": state}}})
    };
    let excluding = {
        let mut group = group("g", json!({"targetNamespaces": ["operators"]}));
        group["metadata"]["annotations"] =
            json!({"olm.operatorframework.io/exclude-global-namespace-resolution": "true"});
        group
    };
    let plain = group("g", json!({"targetNamespaces": ["operators"]}));
    for (group, namespace, state, code) in [
        (&plain, "operators", "TRANSIENT_FAILURE", 1),
        (&plain, "olm", "CONNECTING", 1),
        (&plain, "olm", "READY", 0),
        (&plain, "elsewhere", "TRANSIENT_FAILURE", 0),
        (&excluding, "olm", "TRANSIENT_FAILURE", 0),
        (&excluding, "operators", "TRANSIENT_FAILURE", 1),
    ] {
        let ran = check(&[group.clone(), source(namespace, state)], &[subscription("s", json!({}))]).code(code);
        let expected = format!("error using catalogsource {namespace}/other: its connection is {state}");
        assert_eq!(ran.unchecked().starts_with(&expected), code == 1, "{namespace} {state}: {}", ran.unchecked());
    }
}

#[test]
fn two_subscriptions_of_one_package_conflict_unless_they_agree() {
    let ran = |live: &[Value], desired: &[Value]| check(live, desired);
    let (a, b) = (subscription("s", json!({})), subscription("t", json!({"channel": "b"})));
    let found = ran(&[], &[a.clone(), b.clone()]).code(3);
    assert_eq!(found.rules(), ["SubscriptionNotResolved"]);
    assert!(
        found.found()[0].1.starts_with("there can be only one operator from package p: Subscription s of channel a")
    );
    assert_eq!(ran(std::slice::from_ref(&a), std::slice::from_ref(&b)).code(3).rules(), ["SubscriptionNotResolved"]);
    // A Subscription without a channel, or of the same one, is satisfied by the same bundle.
    for agreeing in [subscription("t", json!({})), subscription("t", json!({"channel": ""}))] {
        assert_eq!(ran(&[], &[a.clone(), agreeing]).code(0).rules(), [""; 0]);
    }
}

/// Package p requires package q: 1.1.0 in a version that no catalog has, 1.0.0 in none.
fn unmet(versions_of_q: &[&str]) -> String {
    let needs = json!({"type": "olm.package.required", "value": {"packageName": "q", "versionRange": ">=2.0.0"}});
    let entries: Vec<Value> = versions_of_q.iter().map(|version| json!({"name": format!("q.v{version}")})).collect();
    let mut blobs = vec![
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a", "entries": [{"name": "p.v1.0.0"},
            {"name": "p.v1.1.0", "replaces": "p.v1.0.0"}]}),
        bundle("p", "1.0.0", &[]),
        bundle("p", "1.1.0", &[needs]),
        json!({"schema": "olm.package", "name": "q", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "q", "name": "a", "entries": entries}),
    ];
    blobs.extend(versions_of_q.iter().map(|version| bundle("q", version, &[])));
    blobs.iter().map(Value::to_string).collect()
}

#[test]
fn a_bundle_whose_requirements_cannot_be_met_is_passed_over() {
    let group = group("g", json!({}));
    let check = |versions_of_q: &[&str], live: &[Value]| {
        let live = [live, std::slice::from_ref(&group)].concat();
        check_in(&unmet(versions_of_q), &live, &[subscription("s", json!({}))])
    };
    let resolved = |ran: &Ran| ran.report()["subscriptions"][0]["resolved"].clone();
    let ran = check(&["1.0.0"], &[]).code(0);
    assert_eq!((resolved(&ran), ran.rules()), (json!("1.0.0"), vec!["SubscriptionStuck".to_owned()]));
    let message = &ran.found()[0].1;
    assert!(message.starts_with("Subscription s gets p.v1.0.0: bundle p.v1.1.0 requires an operator"), "{message}");
    let ran = check(&["1.0.0"], &installed("1.0.0")).code(0);
    assert_eq!((resolved(&ran), ran.rules()), (json!("1.0.0"), vec!["SubscriptionStuck".to_owned()]));
    assert!(ran.found()[0].1.starts_with("Subscription s stays at 1.0.0: bundle p.v1.1.0"), "{}", ran.found()[0].1);
    let ran = check(&["2.0.0"], &[]).code(0);
    assert_eq!((resolved(&ran), ran.rules()), (json!("1.1.0"), vec!["DependencyInstalled".to_owned()]));
    // Nothing else can be installed.
    let only = subscription("s", json!({"startingCSV": "p.v1.1.0"}));
    let ran = check_in(&unmet(&["1.0.0"]), std::slice::from_ref(&group), &[only]).code(3);
    assert_eq!(ran.rules(), ["RequiredPackageMissing"]);
}

#[test]
fn a_requirement_that_cannot_be_met_fails_each_bundle_that_leads_to_it() {
    let needs =
        |name: &str| json!({"type": "olm.package.required", "value": {"packageName": name, "versionRange": ">=1.0.0"}});
    let channel = |package: &str, versions: &[&str]| {
        let entries: Vec<Value> =
            versions.iter().map(|version| json!({"name": format!("{package}.v{version}")})).collect();
        let of = json!({"schema": "olm.package", "name": package, "defaultChannel": "a"});
        [of, json!({"schema": "olm.channel", "package": package, "name": "a", "entries": entries})]
    };
    let mut blobs = vec![
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a", "entries": [{"name": "p.v1.0.0"},
            {"name": "p.v1.1.0", "replaces": "p.v1.0.0"}]}),
        bundle("p", "1.0.0", &[]),
        bundle("p", "1.1.0", &[needs("q")]),
        // Both lead to r, and r to a package that no catalog has.
        bundle("q", "1.0.0", &[needs("r")]),
        bundle("q", "1.1.0", &[needs("r")]),
        bundle("r", "1.0.0", &[needs("nowhere")]),
    ];
    blobs.extend(channel("q", &["1.0.0", "1.1.0"]).into_iter().chain(channel("r", &["1.0.0"])));
    let catalog: String = blobs.iter().map(Value::to_string).collect();
    let ran = check_in(&catalog, &[group("g", json!({}))], &[subscription("s", json!({}))]).code(0);
    assert_eq!(ran.report()["subscriptions"][0]["resolved"], "1.0.0");
}

#[test]
fn a_live_subscription_that_cannot_be_resolved_stops_the_namespace() {
    let group = group("g", json!({"targetNamespaces": ["operators"]}));
    let other = |namespace: &str| {
        let mut other = subscription("other", json!({"name": "nope"}));
        other["metadata"]["namespace"] = namespace.into();
        other
    };
    let ran = check(&[group.clone(), other("operators")], &[subscription("s", json!({}))]).code(3);
    assert_eq!(ran.rules(), ["SubscriptionNotResolved"]);
    let message = &ran.found()[0].1;
    assert!(message.contains("no operators found in package nope") && message.contains("live Subscription other"));
    check(&[group.clone(), other("elsewhere")], &[subscription("s", json!({}))]).code(0);
    // One of a catalog that is not known may be resolved.
    let mut unknown = other("operators");
    unknown["spec"]["source"] = "unknown".into();
    let ran = check(&[group, unknown], &[subscription("s", json!({}))]).code(0);
    assert!(ran.report()["notices"].to_string().contains("if OLM cannot resolve it"), "{}", ran.stdout);
}

#[test]
fn without_a_channel_the_end_of_the_package_is_the_head() {
    let entry = |name: &str, replaces: &str| json!({"name": name, "replaces": replaces});
    let blobs = [
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "b"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a", "entries": [json!({"name": "p.v1.0.0"}),
            entry("p.v1.1.0", "p.v1.0.0")]}),
        json!({"schema": "olm.channel", "package": "p", "name": "b", "entries": [json!({"name": "p.v1.1.0"}),
            entry("p.v1.2.0", "p.v1.1.0")]}),
        bundle("p", "1.0.0", &[]),
        bundle("p", "1.1.0", &[]),
        bundle("p", "1.2.0", &[]),
    ];
    let catalog: String = blobs.iter().map(Value::to_string).collect();
    let line = |version: &str| {
        let live = [&installed(version)[..], &[group("g", json!({}))]].concat();
        let stage = stage(&catalog, &live, &[subscription("s", json!({"channel": ""}))]);
        let shown = stage.gantry(&["check", "--preflight", ENTRY.name]).stdout;
        shown.lines().find(|line| line.contains("subscription operators/s")).expect("a line").trim().to_owned()
    };
    assert_eq!(line("1.0.0"), "subscription operators/s: p 1.0.0 -> 1.1.0 (c, replaces), then 1.2.0");
    assert!(line("1.1.0").ends_with("p 1.1.0 -> 1.2.0 (c, replaces, head of the channel)"), "{}", line("1.1.0"));
}

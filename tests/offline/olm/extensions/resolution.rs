//! `ExtensionResolution`: what OLM v1 would install, or why it would install nothing.

use gantry_core::finding::Severity;
use gantry_preflight::entry::CheckEntry;
use gantry_preflight::olm::extension_resolution::ENTRY;
use gantry_preflight::olm::operator_dependencies;
use serde_json::{Value, json};

use super::{Ran, Stage, catalog, chain, chained, entries, extension};

/// A configuration of the check.
fn config(key: &str) -> String {
    format!(
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: ExtensionResolution\n  config: {{{key}}}\n"
    )
}

#[test]
fn each_rule_reports_its_example_and_nothing_else() {
    let of = |check: &'static CheckEntry| (check.rules)().into_iter().map(move |doc| (check, doc));
    for (check, doc) in of(&ENTRY).chain(of(&operator_dependencies::ENTRY)) {
        let example = doc.example();
        let (live, desired) = (example.live(), example.desired());
        let catalogs = example.parts.iter().filter(|(title, _)| title.ends_with("catalog"));
        let mut stage = match doc.name {
            "OwnedVersionMismatch" => Stage::new().bundle(desired),
            "BundleNotResolved" => {
                let (extension, bundle) = desired.split_once("---\n").expect("an extension and a bundle");
                Stage::new().desired(extension).bundle(bundle)
            }
            _ => Stage::new().desired(desired),
        };
        stage.write("live/extension.yaml", live);
        if doc.name == "ServiceAccountMissing" {
            stage.write("gantry.yaml", &config("olm: v1.10"));
        }
        for (name, (_, text)) in ["one", "two"].iter().zip(catalogs) {
            stage = stage.catalog(name, text);
        }
        let code = if doc.severity() == Severity::Error { 3 } else { 0 };
        let ran = stage.check_with(check).code(code);
        // Two bundles of the same version are also an error of the catalog.
        let rules = if doc.name == "CatalogInvalid" { ran.all_rules() } else { ran.rules() };
        assert_eq!(rules, [doc.name], "{}", ran.stdout);
        assert_eq!(rules.len() == ran.all_rules().len(), doc.name != "TiedBundles", "{}", doc.name);
        let severity = &ran.report()["checks"][0]["findings"][0]["severity"];
        assert_eq!(
            severity.as_str().map(str::to_owned),
            Some(format!("{:?}", doc.severity()).to_lowercase()),
            "{}",
            doc.name
        );
    }
}

#[test]
fn the_upgrade_path_to_a_version_without_an_edge_is_shown() {
    let edges = entries(&["1.0.0", "2.0.0 range=>=1.0.0 <2.0.0", "3.0.0 skips=2.0.0"]);
    let stage = || {
        Stage::new().catalog("c", &catalog(json!({"a": edges}), &["1.0.0", "2.0.0", "3.0.0"], &[])).installed("1.0.0")
    };
    let ran = stage().desired(extension(json!({"packageName": "p"}))).check().code(0);
    assert_eq!(
        ran.extension(),
        json!({"name": "e", "package": "p", "installed": "1.0.0", "pinned": false, "path": ["2.0.0", "3.0.0"],
            "resolved": {"bundle": "p.v2.0.0", "version": "2.0.0", "catalog": "c", "channels": ["a"]}})
    );
    let ran = stage().desired(extension(json!({"packageName": "p", "version": "3.0.0"}))).check().code(3);
    let text = "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"p\" matching version \"3.0.0\"";
    assert_eq!(ran.found()[0], ("UpgradeEdgeMissing".to_owned(), text.to_owned()));
    assert!(
        ran.help().starts_with("1.0.0 can be updated to 2.0.0; the shortest path: 1.0.0 -> 2.0.0 -> 3.0.0"),
        "{}",
        ran.help()
    );
    assert_eq!(
        ran.extension(),
        json!({"name": "e", "package": "p", "installed": "1.0.0", "pinned": true, "path": ["2.0.0", "3.0.0"], "error": text})
    );
    // The check blocks the deploy, and the deploy writes once there is an edge.
    let blocked = stage().desired(extension(json!({"packageName": "p", "version": "3.0.0"})));
    blocked.gantry(&["deploy", "--yes", "--preflight", ENTRY.name]).code(3);
    let planned = stage().desired(extension(json!({"packageName": "p", "version": "2.0.0"})));
    let ran = planned.gantry(&["deploy", "--yes", "--preflight", ENTRY.name]).code(0);
    assert!(ran.stdout.contains("extension e: p 1.0.0 -> 2.0.0 (a, c)"), "{}", ran.stdout);
}

/// The result of resolving a ClusterExtension, or the rule and message of the error.
fn outcome(ran: &Ran) -> String {
    match ran.extension()["resolved"]["version"].as_str() {
        Some(version) => version.to_owned(),
        None => ran.found().first().map(|(rule, text)| format!("{rule}: {text}")).unwrap_or_default(),
    }
}

#[test]
fn an_update_follows_edges_channels_and_policies() {
    let e2e = catalog(
        json!({"alpha": entries(&["1.0.0", "1.0.1 replaces=1.0.0", "1.2.0 replaces=1.0.1"]),
            "beta": entries(&["1.0.0", "1.0.2 range=>=1.0.0 <1.0.2"])}),
        &["1.0.0", "1.0.1", "1.0.2", "1.2.0"],
        &[],
    );
    let no = |range: &str, tail: &str| {
        let range = if range.is_empty() { String::new() } else { format!(" matching version \"{range}\"") };
        format!(
            "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"p\"{range}{tail}"
        )
    };
    for (source, expected, rules) in [
        (json!({"version": "1.2.0"}), format!("UpgradeEdgeMissing: {}", no("1.2.0", "")), &["UpgradeEdgeMissing"][..]),
        (json!({"version": "1.0.1"}), "1.0.1".into(), &[]),
        (json!({"version": "1.2.0", "upgradeConstraintPolicy": "SelfCertified"}), "1.2.0".into(), &["ForcedUpgrade"]),
        // Without named channels all channels count, otherwise only the named ones.
        (json!({}), "1.0.2".into(), &["AutomaticUpgrade"]),
        (json!({"channels": ["alpha"]}), "1.0.1".into(), &["AutomaticUpgrade"]),
        (json!({"channels": ["beta"], "version": "1.0.1"}), format!("NoBundleFound: {}", no("1.0.1", " in channels [beta]")), &["NoBundleFound"]),
        (json!({"channels": ["nightly"]}), format!("NoBundleFound: {}", no("", " in channels [nightly]")), &["NoBundleFound"]),
        (json!({"packageName": "q"}), "NoBundleFound: error upgrading from currently installed version \"1.0.0\": no bundles found for package \"q\"".into(), &["NoBundleFound"]),
    ] {
        let mut catalog = json!({"packageName": "p"});
        catalog.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        let stage = Stage::new().catalog("c", &e2e).installed("1.0.0").desired(extension(catalog));
        let ran = stage.check();
        assert_eq!(outcome(&ran), expected, "{source}");
        assert_eq!(ran.rules(), rules, "{source}");
        ran.code(if expected.contains(' ') { 3 } else { 0 });
    }
}

#[test]
fn both_versions_of_the_api_are_read() {
    let stage = Stage::new().catalog("c", &chained(&["1.0.0", "1.1.0", "1.2.0"]));
    let v1alpha1 = |spec: Value| json!({"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtension", "metadata": {"name": "e"}, "spec": spec});
    let mut live = v1alpha1(json!({"packageName": "p", "installNamespace": "operators"}));
    live["status"] = json!({"installedBundle": {"name": "p.v1.0.0", "version": "1.0.0"}});
    stage.write("live/extension.yaml", &live.to_string());
    let mut spec = json!({"packageName": "p", "installNamespace": "operators", "channel": "a", "version": "1.2.0"});
    let stage = stage.desired(v1alpha1(spec.clone()));
    let ran = stage.check().code(3);
    assert_eq!(ran.rules(), ["UpgradeEdgeMissing"]);
    assert!(ran.found()[0].1.ends_with("matching version \"1.2.0\" in channels [a]"), "{}", ran.stdout);
    spec["upgradeConstraintPolicy"] = "Ignore".into();
    assert_eq!(stage.desired(v1alpha1(spec)).check().code(0).rules(), ["ForcedUpgrade"]);
}

#[test]
fn a_deprecated_bundle_is_used_only_without_an_alternative() {
    let deprecations = |versions: &[&str]| {
        let entry = |version: &&str| json!({"reference": {"schema": "olm.bundle", "name": format!("p.v{version}")}, "message": "old"});
        json!({"schema": "olm.deprecations", "package": "p", "entries": versions.iter().map(entry).collect::<Value>()})
    };
    let versions = ["1.0.0", "1.1.0"];
    let of = |deprecated: &[&str]| catalog(json!({"a": chain(&versions)}), &versions, &[deprecations(deprecated)]);
    let desired = || extension(json!({"packageName": "p"}));
    let ran = Stage::new().catalog("c", &of(&["1.1.0"])).desired(desired()).check().code(0);
    assert_eq!((outcome(&ran), ran.rules()), ("1.0.0".to_owned(), Vec::new()));
    let ran = Stage::new().catalog("c", &of(&versions)).desired(desired()).check().code(0);
    assert_eq!((outcome(&ran), ran.rules()), ("1.1.0".to_owned(), vec!["Deprecated".to_owned()]));
    assert_eq!(ran.found()[0].1, "bundle p.v1.1.0 is deprecated: old");
    // The same for several catalogs, whatever their priorities.
    let ran =
        Stage::new().catalog("c", &of(&versions)).catalog("d", &chained(&["1.0.0"])).desired(desired()).check().code(0);
    assert_eq!(ran.extension()["resolved"]["catalog"], "d");
}

/// ClusterCatalogs as manifests; the flags provide their content.
fn cluster_catalog(name: &str, spec: Value, labels: Value) -> String {
    let source = json!({"type": "Image", "image": {"ref": "example.com/catalog:1"}});
    let mut object = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": name, "labels": labels}, "spec": spec});
    object["spec"]["source"] = source;
    format!("---\n{object}\n")
}

#[test]
fn catalogs_are_selected_and_the_highest_priority_wins() {
    let stage = |catalogs: &[(&str, i32, &str)], selector: Value| {
        let mut stage = Stage::new();
        let mut objects = String::new();
        for (name, priority, version) in catalogs {
            stage = stage.catalog(name, &chained(&[version]));
            objects.push_str(&cluster_catalog(
                name,
                json!({"priority": priority}),
                json!({"tier": format!("t-{name}")}),
            ));
        }
        stage.write("live/catalogs.yaml", &objects);
        let mut source = json!({"packageName": "p"});
        if !selector.is_null() {
            source["selector"] = selector;
        }
        stage.desired(extension(source))
    };
    let ambiguous = |catalogs: &str| {
        format!(
            "AmbiguousCatalogs: found bundles for package \"p\" in multiple catalogs with the same priority [{catalogs}]"
        )
    };
    let invalid = |at: &str, value: &str, why: &str| {
        format!("NoBundleFound: desired catalog selector is invalid: {at}: Invalid value: \"{value}\": {why}")
    };
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
        start and end with an alphanumeric character (e.g. 'MyValue', or 'my_value', or '12345', regex used for \
        validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let key = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
        alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
        'example.com/MyName')";
    let by_name = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "b"}});
    let not_in = json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["t-b", "t-c"]}]});
    let (same, three) =
        ([("a", 0, "1.0.0"), ("b", 0, "2.0.0")], [("a", 1, "1.0.0"), ("b", 1, "2.0.0"), ("c", 0, "3.0.0")]);
    for (catalogs, selector, expected, code) in [
        (&same[..], Value::Null, ambiguous("a b"), 3),
        (&[("a", 1, "1.0.0"), ("b", 0, "2.0.0")], Value::Null, "1.0.0".into(), 0),
        (&three, Value::Null, ambiguous("a b c"), 3),
        (&same, by_name, "2.0.0".into(), 0),
        (&three, not_in, "1.0.0".into(), 0),
        (
            &same,
            json!({"matchLabels": {"tier": "none"}}),
            "NoBundleFound: no bundles found for package \"p\"".into(),
            3,
        ),
        (
            &same,
            json!({"matchExpressions": [{"key": "tier", "operator": "bad", "values": ["x"]}]}),
            "NoBundleFound: desired catalog selector is invalid: \"bad\" is not a valid label selector operator".into(),
            3,
        ),
        (
            &same,
            json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["&v"]}]}),
            invalid("values[0][tier]", "&v", value),
            3,
        ),
        (&same, json!({"matchLabels": {"tier": "&v"}}), invalid("values[0][tier]", "&v", value), 3),
        (
            &same,
            json!({"matchExpressions": [{"key": "a/b/c", "operator": "DoesNotExist"}]}),
            invalid("key", "a/b/c", key),
            3,
        ),
    ] {
        let ran = stage(catalogs, selector.clone()).check().code(code);
        assert_eq!(outcome(&ran), expected, "{selector}");
    }
    // The deploy is responsible for an unchanged extension if it changes a catalog.
    let changing = stage(&[("a", 1, "1.0.0"), ("b", 0, "2.0.0")], Value::Null);
    let mut live = extension(json!({"packageName": "p"}));
    live["status"] = json!({"install": {"bundle": {"name": "p.v1.0.0", "version": "1.0.0"}}});
    changing.write("live/extension.yaml", &live.to_string());
    changing.check().code(0);
    changing.write("manifests/catalog.yaml", &cluster_catalog("a", json!({"priority": 0}), json!({"tier": "t-a"})));
    assert_eq!(outcome(&changing.check().code(0)), "1.0.0");
    changing.write("b/catalog.yaml", &chained(&["1.0.0", "2.0.0"]));
    assert_eq!(changing.check().code(3).rules(), ["AmbiguousCatalogs"]);
    // If OLM finds a catalog, but none that is available, it keeps nothing that is installed: it tries again.
    let pinned = extension(json!({"packageName": "p", "version": "1.0.0"}));
    let off = Stage::new().catalog("a", &chained(&["1.0.0"])).installed("1.0.0").desired(pinned);
    off.write("live/catalogs.yaml", &cluster_catalog("a", json!({"availabilityMode": "Unavailable"}), json!({})));
    assert_eq!(off.check().code(3).rules(), ["NoBundleFound"]);
    // A catalog that is not available is ignored; a catalog that is not served blocks everything.
    let stage = stage(&same, Value::Null);
    let unavailable = cluster_catalog("a", json!({"availabilityMode": "Unavailable"}), json!({}));
    stage.write("live/catalogs.yaml", &unavailable);
    assert_eq!(outcome(&stage.check().code(0)), "2.0.0");
    let mut object: Value =
        serde_json::from_str(cluster_catalog("z", json!({}), json!({})).trim_start_matches("---")).unwrap();
    object["status"] = json!({"conditions": [{"type": "Serving", "status": "False", "reason": "Unavailable",
        "lastTransitionTime": "2026-01-02T03:04:05Z"}]});
    stage.write("live/catalogs.yaml", &format!("{unavailable}---\n{object}\n"));
    let ran = stage.check().code(1);
    assert!(
        ran.unchecked()
            .starts_with("CatalogNotServed: catalog \"z\" is not being served since 2026-01-02T03:04:05Z: Unavailable"),
        "{}",
        ran.stdout
    );
}

/// OLM resolves the object that the deploy leaves behind, not the manifest.
#[test]
fn fields_of_other_managers_count_for_the_resolution() {
    let all = ["1.0.0", "1.1.0", "2.0.0"];
    let channels = json!({"a": entries(&["1.0.0", "1.1.0 replaces=1.0.0"]), "b": entries(&["1.0.0", "2.0.0"])});
    let stage = |of_others: Value, manager: &str| {
        let mut source = json!({"packageName": "p"});
        source.as_object_mut().unwrap().extend(of_others.as_object().unwrap().clone());
        let fields: serde_json::Map<String, Value> =
            of_others.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        let mut live = extension(source);
        live["status"] = json!({"install": {"bundle": {"name": "p.v1.0.0", "version": "1.0.0"}}});
        live["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1",
            "apiVersion": live["apiVersion"], "fieldsV1": {"f:spec": {"f:source": {"f:catalog": fields}}}}]);
        let stage = Stage::new().catalog("c", &catalog(channels.clone(), &all, &[]));
        stage.write("live/extension.yaml", &live.to_string());
        stage
    };
    let wanted = |version: &str| extension(json!({"packageName": "p", "version": version}));
    for (of_others, manager, version, code) in [
        (json!({"channels": ["b"]}), "somebody", "1.1.0", 3),
        (json!({"channels": ["b"]}), "gantry", "1.1.0", 0),
        (json!({"upgradeConstraintPolicy": "SelfCertified"}), "somebody", "2.0.0", 0),
        (json!({"upgradeConstraintPolicy": "SelfCertified"}), "gantry", "2.0.0", 3),
    ] {
        stage(of_others, manager).desired(wanted(version)).check().code(code);
    }
}

#[test]
fn the_rules_of_semantic_versions_limit_updates_where_the_configuration_says_so() {
    for (from, to, expected, rules) in [
        ("0.0.1", "0.0.2", None, &["MajorZeroUpgrade"][..]),
        ("0.1.0", "0.1.2", Some("0.1.2"), &[]),
        ("0.1.0", "0.2.0", None, &["MajorZeroUpgrade"]),
        ("2.0.0", "3.0.0", None, &["MajorUpgrade"]),
        ("2.0.0", "2.1.0", Some("2.1.0"), &[]),
    ] {
        for constraints in ["semver", "catalog"] {
            let versions = [from, to];
            let stage = Stage::new().catalog("c", &chained(&versions)).installed(from);
            stage.write("gantry.yaml", &config(&format!("upgradeConstraints: {constraints}")));
            let stage = stage.desired(extension(json!({"packageName": "p", "version": to})));
            let ran = stage.gantry(&["check", "-o", "json"]);
            let is_resolved = expected.is_some() || constraints == "catalog";
            assert_eq!(ran.extension()["resolved"]["version"].as_str(), is_resolved.then_some(to), "{from} {to}");
            assert_eq!(ran.rules(), rules, "{from} {to} {constraints}");
            ran.code(if is_resolved { 0 } else { 3 });
        }
    }
}

#[test]
fn releases_are_part_of_what_is_installed() {
    let edges = json!({"a": [{"name": "p.v2.0.0"}, {"name": "p.v2.0.0+1", "replaces": "p.v2.0.0"},
        {"name": "p.v2.1.0", "replaces": "p.v2.0.0"}, {"name": "p.v2.2.0", "skips": ["p.v2.0.0+1"]}]});
    let text = catalog(edges, &["2.0.0", "2.0.0+1", "2.1.0", "2.2.0"], &[]);
    let stage = Stage::new().catalog("c", &text).installed("2.0.0+1").desired(extension(json!({"packageName": "p"})));
    assert_eq!(outcome(&stage.check().code(0)), "2.2.0");
    let stage = stage.installed("2.0.0");
    assert_eq!(outcome(&stage.check().code(0)), "2.1.0");
}

#[test]
fn downgrades_need_the_self_certified_policy() {
    let versions = ["0.1.0", "1.0.0", "1.0.1"];
    let deprecated = json!({"schema": "olm.deprecations", "package": "p", "entries": [
        {"reference": {"schema": "olm.bundle", "name": "p.v1.0.0"}, "message": "x"},
        {"reference": {"schema": "olm.bundle", "name": "p.v1.0.1"}, "message": "y"}]});
    let text = catalog(json!({"a": chain(&versions)}), &versions, &[deprecated]);
    let of = |policy: &str| {
        let source = json!({"packageName": "p", "version": "<1.0.1", "upgradeConstraintPolicy": policy});
        Stage::new().catalog("c", &text).installed("1.0.1").desired(extension(source)).check()
    };
    let ran = of("SelfCertified").code(0);
    assert_eq!((outcome(&ran), ran.rules()), ("0.1.0".to_owned(), vec!["Downgrade".to_owned()]));
    assert_eq!(of("CatalogProvided").code(3).rules(), ["UpgradeEdgeMissing"]);
}

#[test]
fn pre_releases_are_suggested_if_nothing_else_matches() {
    let versions = ["0.9.0", "0.10.0-mas", "0.11.0-mas"];
    let stage = |range: &str| {
        Stage::new().catalog("c", &chained(&versions)).desired(extension(json!({"packageName": "p", "version": range})))
    };
    let ran = stage(">=0.10.0").check().code(3);
    assert!(ran.help().contains("only the pre-releases 0.11.0-mas match"), "{}", ran.help());
    assert_eq!(outcome(&stage(">=0.10.0-0").check().code(0)), "0.11.0-mas");
}

#[test]
fn broken_catalogs_are_never_a_pass() {
    let good = chained(&["1.0.0"]);
    for (text, code, rules) in [
        // Of a different package than the requested one.
        (format!("{good}{}", json!({"name": "x", "package": "other"})), 0, &[][..]),
        (format!("{good}{}", json!({"name": "x", "package": "p"})), 1, &[]),
        (format!("{good}{}", json!({"name": "x"})), 1, &[]),
        (format!("{good}{{\"schema\": \"a\", \"Schema\": \"b\"}}"), 1, &[]),
        (format!("{good}: not yaml: ["), 1, &[]),
        (
            catalog(json!({"a": entries(&["1.0.0 replaces=1.1.0", "1.1.0 replaces=1.0.0"])}), &["1.0.0", "1.1.0"], &[]),
            0,
            &["CatalogInvalid"],
        ),
        (
            catalog(json!({"a": entries(&["1.0.0", "1.1.0 range=^1.0"])}), &["1.0.0", "1.1.0"], &[]),
            0,
            &["CatalogInvalid", "CatalogInvalid"],
        ),
    ] {
        let ran = Stage::new().catalog("c", &text).desired(extension(json!({"packageName": "p"}))).check();
        assert_eq!(ran.all_rules(), rules, "{text}");
        let ran = ran.code(code);
        assert_eq!(code == 1, !ran.unchecked().is_empty(), "{}", ran.stdout);
    }
    // Without a catalog, nothing can be resolved.
    let ran = Stage::new().desired(extension(json!({"packageName": "p"}))).check().code(1);
    assert_eq!(ran.unchecked(), "there is no catalog from which ClusterExtension e could be resolved");
    // A missing catalog is a usage error.
    let mut stage = Stage::new().desired(extension(json!({"packageName": "p"})));
    stage.catalogs.push("--catalog=c=nowhere".into());
    stage.check().code(2);
}

#[test]
fn an_unchanged_extension_is_a_warning_and_blocks_nothing() {
    let stage = Stage::new().catalog("c", &chained(&["1.0.0", "1.1.0", "1.2.0"]));
    let mut live = extension(json!({"packageName": "p", "version": "1.2.0"}));
    let desired = live.to_string();
    live["status"] = json!({"install": {"bundle": {"name": "p.v1.0.0", "version": "1.0.0"}}});
    stage.write("live/extension.yaml", &live.to_string());
    let ran = stage.desired(desired).check().code(0);
    assert_eq!(ran.rules(), ["UpgradeEdgeMissing"]);
    assert_eq!(ran.report()["checks"][0]["status"], "warned");
}

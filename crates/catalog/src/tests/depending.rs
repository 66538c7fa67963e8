//! The requirements of bundles, and what a Subscription installs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::classic::{Current, Subscription, next};
use crate::dependency::{Api, BundleRequirement, InstalledOperator, provided};
use crate::error::OlmError;
use crate::{Catalog, KeptCatalogParts, Property, SemanticVersion, read};

#[derive(Default)]
struct There {
    apis: Vec<Api>,
    packages: Vec<(&'static str, SemanticVersion)>,
}

impl InstalledOperator for There {
    fn provides(&self, api: &Api) -> bool {
        self.apis.contains(api)
    }

    fn is_of_package(&self, name: &str, is_taken: &dyn Fn(&SemanticVersion) -> bool) -> bool {
        self.packages.iter().any(|(known, version)| *known == name && is_taken(version))
    }
}

fn property(kind: &str, value: &Value) -> Property {
    Property { kind: kind.into(), value: value.to_string() }
}

fn constraint(value: Value) -> BundleRequirement {
    BundleRequirement::of_property(&property("olm.constraint", &value)).expect("a constraint").expect("one")
}

#[test]
fn a_requirement_is_met_if_all_its_parts_are_met() {
    let api = |version: &str| json!({"group": "g", "version": version, "kind": "K"});
    let there = There {
        apis: provided(&[property("olm.gvk", &api("v1")), property("olm.gvk", &json!(7)), property("x", &api("v2"))])
            .collect(),
        packages: vec![("p", SemanticVersion::parse("1.2.0").unwrap())],
    };
    let package = |range: &str| json!({"package": {"packageName": "p", "versionRange": range}});
    let gvk = |version: &str| json!({"gvk": api(version)});
    let cel = json!({"cel": {"rule": "true"}});
    for (value, expected) in [
        (gvk("v1"), Some(true)),
        (gvk("v2"), Some(false)),
        (package(">=1.0.0 <2.0.0"), Some(true)),
        (package(">=2.0.0"), Some(false)),
        (json!({"all": {"constraints": [gvk("v1"), package(">1.0.0")]}}), Some(true)),
        (json!({"all": {"constraints": [gvk("v1"), gvk("v2"), cel]}}), Some(false)),
        (json!({"all": {"constraints": [gvk("v1"), cel]}}), None),
        (json!({"any": {"constraints": [gvk("v2"), gvk("v1")]}}), Some(true)),
        (json!({"any": {"constraints": [gvk("v2")]}}), Some(false)),
        (json!({"any": {"constraints": [gvk("v2"), cel]}}), None),
        (json!({"not": {"constraints": [gvk("v2")]}}), Some(true)),
        (json!({"not": {"constraints": [gvk("v1"), gvk("v2")]}}), Some(false)),
        (cel.clone(), None),
    ] {
        assert_eq!(constraint(value.clone()).holds([&there as &dyn InstalledOperator]), expected, "{value}");
    }
}

#[test]
fn a_single_operator_meets_a_whole_constraint() {
    let api = json!({"group": "g", "version": "v1", "kind": "K"});
    let provider = There { apis: provided(&[property("olm.gvk", &api)]).collect(), ..There::default() };
    let package = There { packages: vec![("p", SemanticVersion::parse("1.0.0").unwrap())], ..There::default() };
    let (gvk, of_package) = (json!({"gvk": api}), json!({"package": {"packageName": "p", "versionRange": ">=1.0.0"}}));
    let not = json!({"not": {"constraints": [gvk]}});
    for (value, expected) in [
        (json!({"all": {"constraints": [gvk, of_package]}}), false),
        (json!({"any": {"constraints": [gvk, of_package]}}), true),
        (not.clone(), true),
        (json!({"all": {"constraints": [of_package, not]}}), true),
        (json!({"all": {"constraints": [gvk, not]}}), false),
    ] {
        let operators: [&dyn InstalledOperator; 2] = [&provider, &package];
        assert_eq!(constraint(value.clone()).holds(operators), Some(expected), "{value}");
    }
    assert_eq!(constraint(not).holds([&provider as &dyn InstalledOperator]), Some(false));
}

#[test]
fn requirements_are_printed_as_olm_prints_them() {
    let gvk = BundleRequirement::of_property(&property(
        "olm.gvk.required",
        &json!({"group": "g", "version": "v1", "kind": "K"}),
    ));
    let package =
        BundleRequirement::of_dependency(&property("olm.package", &json!({"packageName": "p", "version": ">1.0.0"})));
    let said = |read: Result<Option<BundleRequirement>, OlmError>| read.unwrap().unwrap().to_string();
    assert_eq!(said(gvk), "providing an API with group: g, version: v1, kind: K");
    assert_eq!(said(package), "with package: p and with version in range: >1.0.0");
    assert_eq!(BundleRequirement::of_property(&property("olm.gvk", &json!({}))), Ok(None));
    let gvk = json!({"group": "g", "version": "v1", "kind": "K"});
    let nested =
        json!({"all": {"constraints": [{"gvk": {"group": "g", "version": "v1", "kind": "K", "plural": "ks"}}]}});
    for (kind, value, expected) in [
        ("olm.package.required", json!({"packageName": "p", "versionRange": "^1"}), "olm.package.required: \"^1\": "),
        ("olm.gvk.required", json!("x"), "olm.gvk.required: "),
        ("olm.constraint", json!({}), "convert olm.constraint to resolver predicate: constraint is empty"),
        (
            "olm.constraint",
            json!({"all": {"constraints": [{"failureMessage": "x"}]}}),
            "convert olm.constraint to resolver predicate: constraint is empty",
        ),
        (
            "olm.constraint",
            json!({"gvk": gvk, "unknownthing": {}}),
            "parse olm.constraint: json: unknown field \"unknownthing\"",
        ),
        ("olm.constraint", nested, "parse olm.constraint: json: unknown field \"plural\""),
    ] {
        let error = BundleRequirement::of_property(&property(kind, &value)).expect_err("an error");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    // Only in constraints.
    let value = json!({"group": "g", "version": "v1", "kind": "K", "plural": "ks"});
    assert!(BundleRequirement::of_property(&property("olm.gvk.required", &value)).is_ok());
}

#[test]
fn constraints_that_are_deep_in_each_other_are_an_error() {
    let mut value = json!({"cel": {"rule": "true"}});
    for _ in 0..100 {
        value = json!({"not": {"constraints": [value]}});
    }
    assert!(BundleRequirement::of_property(&property("olm.constraint", &value)).is_err());
}

/// A catalog with the package p, whose default channel is a; every entry has a bundle, except those without a version
/// in their name.
fn catalog(channels: &[(&str, Value)]) -> Catalog {
    let mut blobs = vec![json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"})];
    let mut bundles = BTreeSet::new();
    for (name, entries) in channels {
        bundles
            .extend(entries.as_array().expect("entries").iter().map(|entry| entry["name"].as_str().expect("a name")));
        blobs.push(json!({"schema": "olm.channel", "package": "p", "name": name, "entries": entries}));
    }
    for name in bundles {
        let Some((_, version)) = name.split_once(".v") else { continue };
        let properties = json!([{"type": "olm.package", "value": {"packageName": "p", "version": version}}]);
        blobs.push(json!({"schema": "olm.bundle", "package": "p", "name": name, "properties": properties}));
    }
    let text: String = blobs.iter().map(Value::to_string).collect();
    let mut catalog = Catalog::default();
    read(text.as_bytes(), &mut |blob| catalog.add(blob, &KeptCatalogParts::default())).expect("a catalog");
    catalog
}

const SUBSCRIPTION: Subscription<'static> =
    Subscription { name: "s", package: "p", channel: "a", starting_csv: "", source: "c", source_namespace: "olm" };

#[test]
fn a_subscription_is_updated_along_the_chain_of_its_channel() {
    let entries = json!([
        {"name": "p.v1.0.0"},
        {"name": "p.v1.1.0", "replaces": "p.v1.0.0"},
        {"name": "p.v1.2.0", "replaces": "p.v1.1.0"},
        {"name": "p.v2.0.0", "replaces": "p.v1.2.0", "skips": ["p.v1.1.0"], "skipRange": ">=0.5.0 <1.0.0"},
        // Not on the chain.
        {"name": "p.v2.1.0", "replaces": "p.v2.0.0"},
        {"name": "p.v3.0.0", "replaces": "p.v2.0.0", "skips": ["p.v2.1.0"]},
        // OLM does not see an entry without a bundle.
        {"name": "p", "replaces": "p.v3.0.0", "skips": ["p.v2.0.0"]},
    ]);
    let catalog = catalog(&[("a", entries)]);
    let version = SemanticVersion::parse("0.7.0").expect("a version");
    for (installed, expected) in [
        (None, Some("p.v3.0.0")),
        // Its only edge leads to an entry that 2.0.0 skips.
        (Some("p.v1.0.0"), None),
        (Some("p.v1.1.0"), Some("p.v2.0.0")),
        (Some("p.v1.2.0"), Some("p.v2.0.0")),
        (Some("p.v2.1.0"), Some("p.v3.0.0")),
        (Some("p.v0.7.0"), Some("p.v2.0.0")),
        (Some("p.v3.0.0"), None),
        (Some("unknown"), None),
    ] {
        let version = Some(&version).filter(|_| installed == Some("p.v0.7.0"));
        let current = installed.map(|name| Current { name, version });
        assert_eq!(next(&catalog, &SUBSCRIPTION, current), Ok(expected), "{installed:?}");
    }
}

#[test]
fn a_subscription_that_cannot_be_resolved_has_the_error_of_olm() {
    let two = json!([{"name": "p.v1.0.0"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.0"}, {"name": "p.v3.0.0"}]);
    let none = json!([{"name": "p.v1.0.0", "replaces": "p.v2.0.0"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.0"}]);
    let cycle = json!([{"name": "p.v1.0.0", "replaces": "p.v2.0.0"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.0"},
        {"name": "p.v3.0.0", "replaces": "p.v2.0.0"}]);
    let catalog = catalog(&[("a", two), ("none", none), ("cycle", cycle), ("empty", json!([{"name": "p"}]))]);
    let wanted = |change: fn(&mut Subscription<'static>)| {
        let mut subscription = SUBSCRIPTION;
        change(&mut subscription);
        subscription
    };
    for (subscription, expected) in [
        (
            SUBSCRIPTION,
            "a unique replacement chain within a channel is required to determine the relative order between channel \
             entries, but 2 replacement chains were found in channel \"a\" of package \"p\": p.v2.0.0...p.v1.0.0, \
             p.v3.0.0",
        ),
        (
            wanted(|of| of.channel = "none"),
            "no channel heads (entries not replaced by another entry) found in channel \"none\" of package \"p\"",
        ),
        (
            wanted(|of| of.channel = "cycle"),
            "a cycle exists in the chain of replacement beginning with \"p.v3.0.0\" in channel \"cycle\" of package \
             \"p\"",
        ),
        (
            wanted(|of| of.channel = "empty"),
            "no operators found in channel empty of package p in the catalog referenced by subscription s",
        ),
        (wanted(|of| of.package = "q"), "no operators found in package q in the catalog referenced by subscription s"),
        (
            wanted(|of| of.starting_csv = "p"),
            "no operators found with name p in channel a of package p in the catalog referenced by subscription s",
        ),
    ] {
        assert_eq!(next(&catalog, &subscription, None), Err(expected.to_owned().into()));
    }
    // OLM looks at no other entry then.
    assert_eq!(next(&catalog, &wanted(|of| of.starting_csv = "p.v1.0.0"), None), Ok(Some("p.v1.0.0")));
    let expected = "no operators found from catalog c in namespace olm referenced by subscription s";
    assert_eq!(next(&Catalog::default(), &SUBSCRIPTION, None), Err(expected.to_owned().into()));
}

#[test]
fn a_subscription_without_a_channel_considers_all_of_them() {
    let entries = |versions: &[&str]| -> Value {
        let previous = [""].iter().chain(versions);
        let entry = |(version, previous): (&&str, &&str)| {
            let replaces = if previous.is_empty() { String::new() } else { format!("p.v{previous}") };
            json!({"name": format!("p.v{version}"), "replaces": replaces})
        };
        versions.iter().zip(previous).map(entry).collect()
    };
    let any = Subscription { channel: "", ..SUBSCRIPTION };
    let of_all = catalog(&[
        ("0", entries(&["1.0.0", "1.2.0"])),
        ("a", entries(&["1.0.0", "2.0.0", "3.0.0"])),
        ("b", entries(&["1.0.0", "1.5.0", "1.6.0"])),
    ]);
    for (installed, expected) in [
        (None, Some("p.v3.0.0")),
        (Some("p.v1.0.0"), Some("p.v2.0.0")),
        (Some("p.v1.5.0"), Some("p.v1.6.0")),
        (Some("p.v1.6.0"), None),
    ] {
        let current = installed.map(|name| Current { name, version: None });
        assert_eq!(next(&of_all, &any, current), Ok(expected), "{installed:?}");
    }
    let starting = |starting_csv| Subscription { starting_csv, ..any };
    assert_eq!(next(&of_all, &starting("p.v1.5.0"), None), Ok(Some("p.v1.5.0")));
    let expected =
        "no operators found with name p.v9 in channel  of package p in the catalog referenced by subscription s";
    assert_eq!(next(&of_all, &starting("p.v9"), None), Err(expected.to_owned().into()));
    // OLM needs one chain in every channel.
    let mut broken = of_all;
    broken.packages.get_mut("p").unwrap().channels.get_mut("b").unwrap().entries[2].replaces.clear();
    assert!(next(&broken, &any, None).unwrap_err().to_string().contains("in channel \"b\" of package \"p\""));
}

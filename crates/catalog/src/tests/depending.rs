//! The requirements of bundles, and what a Subscription installs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::classic::{Current, chain, next};
use crate::dependency::{Api, Operators, Requirement, provided};
use crate::{Catalog, Keep, Property, Version, read};

struct There {
    apis: Vec<Api>,
    packages: Vec<(&'static str, Version)>,
}

impl Operators for There {
    fn provides(&self, api: &Api) -> bool {
        self.apis.contains(api)
    }

    fn has_package(&self, name: &str, is_taken: &dyn Fn(&Version) -> bool) -> bool {
        self.packages.iter().any(|(known, version)| *known == name && is_taken(version))
    }
}

fn property(kind: &str, value: &Value) -> Property {
    Property { kind: kind.into(), value: value.to_string() }
}

fn constraint(value: Value) -> Requirement {
    Requirement::of_property(&property("olm.constraint", &value)).expect("a constraint").expect("one")
}

#[test]
fn a_requirement_holds_where_an_operator_fits_in_all_parts() {
    let api = |version: &str| json!({"group": "g", "version": version, "kind": "K"});
    let there = There {
        apis: provided(&[property("olm.gvk", &api("v1")), property("olm.gvk", &json!(7)), property("x", &api("v2"))])
            .collect(),
        packages: vec![("p", Version::parse("1.2.0").unwrap())],
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
        assert_eq!(constraint(value.clone()).holds(&there), expected, "{value}");
    }
}

#[test]
fn requirements_are_said_in_the_words_of_olm() {
    let gvk =
        Requirement::of_property(&property("olm.gvk.required", &json!({"group": "g", "version": "v1", "kind": "K"})));
    let package =
        Requirement::of_dependency(&property("olm.package", &json!({"packageName": "p", "version": ">1.0.0"})));
    let said = |read: Result<Option<Requirement>, String>| read.unwrap().unwrap().to_string();
    assert_eq!(said(gvk), "providing an API with group: g, version: v1, kind: K");
    assert_eq!(said(package), "with package: p and with version in range: >1.0.0");
    assert_eq!(Requirement::of_property(&property("olm.gvk", &json!({}))), Ok(None));
    for (kind, value) in [
        ("olm.package.required", json!({"packageName": "p", "versionRange": "^1"})),
        ("olm.constraint", json!({})),
        ("olm.gvk.required", json!("x")),
        ("olm.constraint", json!({"all": {"constraints": [{"failureMessage": "x"}]}})),
    ] {
        let error = Requirement::of_property(&property(kind, &value)).expect_err("an error");
        assert!(error.starts_with(kind), "{error}");
    }
}

#[test]
fn constraints_that_are_deep_in_each_other_are_an_error() {
    let mut value = json!({"cel": {"rule": "true"}});
    for _ in 0..100 {
        value = json!({"not": {"constraints": [value]}});
    }
    assert!(Requirement::of_property(&property("olm.constraint", &value)).is_err());
}

#[test]
fn a_subscription_goes_along_the_chain_of_its_channel() {
    let entries = json!([
        {"name": "p.v1.0.0"},
        {"name": "p.v1.1.0", "replaces": "p.v1.0.0"},
        {"name": "p.v1.2.0", "replaces": "p.v1.1.0"},
        {"name": "p.v2.0.0", "replaces": "p.v1.2.0", "skips": ["p.v1.1.0"], "skipRange": ">=0.5.0 <1.0.0"},
        // Not on the chain.
        {"name": "p.v2.1.0", "replaces": "p.v2.0.0"},
        {"name": "p.v3.0.0", "replaces": "p.v2.0.0", "skips": ["p.v2.1.0"]},
    ]);
    let mut blobs = vec![
        json!({"schema": "olm.package", "name": "p"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a", "entries": entries}),
    ];
    for version in ["0.7.0", "1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0"] {
        let properties = json!([{"type": "olm.package", "value": {"packageName": "p", "version": version}}]);
        blobs.push(
            json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{version}"), "properties": properties}),
        );
    }
    let text: String = blobs.iter().map(Value::to_string).collect();
    let mut catalog = Catalog::default();
    read(text.as_bytes(), &mut |blob| catalog.add(blob, &Keep::default())).expect("a catalog");
    let package = &catalog.packages["p"];
    let channel = &package.channels["a"];
    let names: BTreeSet<&str> = chain(channel).iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["p.v1.0.0", "p.v1.2.0", "p.v2.0.0", "p.v3.0.0"]));
    for (installed, expected) in [
        (None, Some("p.v3.0.0")),
        // Its only edge leads to an entry that 2.0.0 skips.
        (Some("p.v1.0.0"), None),
        (Some("p.v1.1.0"), Some("p.v2.0.0")),
        (Some("p.v2.1.0"), Some("p.v3.0.0")),
        (Some("p.v0.7.0"), Some("p.v2.0.0")),
        (Some("p.v3.0.0"), None),
        (Some("unknown"), None),
    ] {
        let current = installed.map(|name| Current { name, version: None });
        assert_eq!(next(package, channel, current), expected, "{installed:?}");
    }
}

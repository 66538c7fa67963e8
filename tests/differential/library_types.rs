//! The table of the types that CRDs embed, compared with the API server's own description of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::control_plane;

const TABLE: &str = include_str!("../../crates/preflight/src/crd_upgrade_safety/library/types.txt");

/// Where the server describes the types of a package: the path, and what their names begin with.
const PACKAGES: [(&str, &str, &str); 8] = [
    ("apps/v1", "apis/apps/v1", "io.k8s.api.apps.v1."),
    ("autoscaling/v2", "apis/autoscaling/v2", "io.k8s.api.autoscaling.v2."),
    ("batch/v1", "apis/batch/v1", "io.k8s.api.batch.v1."),
    ("core/v1", "api/v1", "io.k8s.api.core.v1."),
    ("meta/v1", "api/v1", "io.k8s.apimachinery.pkg.apis.meta.v1."),
    ("networking/v1", "apis/networking.k8s.io/v1", "io.k8s.api.networking.v1."),
    ("policy/v1", "apis/policy/v1", "io.k8s.api.policy.v1."),
    ("rbac/v1", "apis/rbac.authorization.k8s.io/v1", "io.k8s.api.rbac.v1."),
];

/// The fields of each type in a release: their names, with the type and the keys of a list.
fn table(minor: u32) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut types: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut of = "";
    for line in TABLE.lines().skip(1) {
        let Some(field) = line.strip_prefix("  ") else {
            of = line;
            types.entry(of).or_default();
            continue;
        };
        let mut words = field.split(' ').peekable();
        let name = words.next().unwrap().trim_end_matches('?');
        let range = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        // The server is of the newest patch version.
        let (from, to) = range.unwrap_or("-").split_once('-').unwrap();
        let is_absent = from.trim_end_matches('+').parse().is_ok_and(|from: u32| from > minor)
            || to.strip_suffix(".0").is_some_and(|to| to.parse::<u32>().unwrap() <= minor)
            || to.parse().is_ok_and(|to: u32| to < minor);
        if name == "=" || is_absent {
            continue;
        }
        let keywords: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
        let value = |keyword: &str| keywords.get(keyword).copied().unwrap_or("null");
        let list = value("x-kubernetes-list-type");
        let keys = value("x-kubernetes-list-map-keys");
        types.get_mut(of).unwrap().insert(format!("{name} {list} {keys}"));
    }
    types
}

#[test]
fn the_table_of_embedded_types_is_that_of_the_server() {
    let cp = control_plane();
    let minor: u32 = cp.get("/version").1["minor"].as_str().unwrap().parse().unwrap();
    let mut compared = 0;
    let mut documents: BTreeMap<&str, Value> = BTreeMap::new();
    for (name, fields) in table(minor) {
        let (package, short) = name.split_once('.').unwrap();
        let (_, path, prefix) = PACKAGES.iter().find(|(of, ..)| *of == package).unwrap();
        let document = documents.entry(path).or_insert_with(|| cp.get(&format!("/openapi/v3/{path}")).1);
        // Types that no API of the server has, or not in this release.
        let Some(described) = document["components"]["schemas"].get(format!("{prefix}{short}")) else { continue };
        let Some(properties) = described["properties"].as_object() else { continue };
        let of_server = properties.iter().map(|(name, field)| {
            let keys = field["x-kubernetes-list-map-keys"].to_string();
            format!("{name} {} {keys}", field["x-kubernetes-list-type"])
        });
        assert_eq!(fields, of_server.collect(), "{name} in 1.{minor}");
        compared += 1;
    }
    assert!(compared > 150, "{compared} types");
}

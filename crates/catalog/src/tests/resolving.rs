//! What OLM v1 installs, or why it installs nothing.

use serde_json::{Value, json};

use crate::resolve::{
    ExtensionRequest, InstalledBundle, NoCandidateReason, ResolutionError, ResolvedCatalogBundle, ServedCatalog,
    UpgradeConstraints, is_semver_update, resolve,
};
use crate::{Catalog, KeptCatalogParts, SemanticVersion, read};

/// A catalog of the package `p`: channels with entries, versions of the bundles `p.vVERSION`, deprecated ones, and
/// those with dependencies.
fn catalog(channels: Value, versions: &[&str], deprecated: &[&str], dependent: &[&str]) -> Catalog {
    let mut blobs = vec![json!({"schema": "olm.package", "name": "p"})];
    for (name, entries) in channels.as_object().expect("channels") {
        blobs.push(json!({"schema": "olm.channel", "package": "p", "name": name, "entries": entries}));
    }
    for version in versions {
        let mut properties = vec![json!({"type": "olm.package", "value": {"packageName": "p", "version": version}})];
        if dependent.contains(version) {
            properties.push(json!({"type": "olm.gvk.required", "value": {"kind": "K"}}));
            properties.push(json!({"type": "olm.package.required", "value": {"packageName": "q"}}));
        }
        let name = format!("p.v{version}");
        blobs.push(json!({"schema": "olm.bundle", "package": "p", "name": name, "properties": properties}));
    }
    let entries = deprecated.iter().map(
        |version| json!({"reference": {"schema": "olm.bundle", "name": format!("p.v{version}")}, "message": "old"}),
    );
    blobs.push(json!({"schema": "olm.deprecations", "package": "p", "entries": entries.collect::<Value>()}));
    load(&blobs)
}

fn load(blobs: &[Value]) -> Catalog {
    let text: String = blobs.iter().map(Value::to_string).collect();
    let mut catalog = Catalog::default();
    read(text.as_bytes(), &mut |blob| catalog.add(blob, &KeptCatalogParts::default())).expect("a catalog");
    catalog
}

fn wanted(version: &str, channels: &[&str]) -> ExtensionRequest {
    let channels = channels.iter().map(|name| (*name).to_owned()).collect();
    ExtensionRequest { package: "p".into(), version: version.into(), channels, ..ExtensionRequest::default() }
}

fn installed(version: &str) -> InstalledBundle {
    InstalledBundle { name: format!("p.v{version}"), version: version.into(), release: None }
}

fn source<'a>(name: &'a str, priority: i32, catalog: &'a Catalog) -> ServedCatalog<'a> {
    ServedCatalog { name, priority, package: catalog.packages.get("p") }
}

fn resolve_in<'a>(
    wanted: &ExtensionRequest,
    from: Option<&str>,
    catalog: &'a Catalog,
) -> Result<ResolvedCatalogBundle<'a>, ResolutionError<'a>> {
    resolve(wanted, from.map(installed).as_ref(), &[source("c", 0, catalog)])
}

/// The resolved version, or OLM's error.
fn said(resolved: Result<ResolvedCatalogBundle<'_>, ResolutionError<'_>>) -> String {
    resolved.map_or_else(|failure| failure.text, |resolved| format!("{} {}", resolved.catalog, resolved.version))
}

/// The catalog of OLM's own tests.
fn usual() -> Catalog {
    let channels = json!({
        "alpha": [{"name": "p.v0.1.0"}, {"name": "p.v1.0.0", "skipRange": "<1.0.0"}, {"name": "p.v1.0.1", "skipRange": "<1.0.1"},
            {"name": "p.v1.0.2", "skipRange": "<1.0.2"}, {"name": "p.v2.0.0", "skipRange": ">=1.0.0 <2.0.0"}],
        "beta": [{"name": "p.v0.1.0"}, {"name": "p.v1.0.2", "skipRange": "<1.0.2"}],
        "gamma": [{"name": "p.v3.0.0", "skipRange": ">=2.0.0 <3.0.0"}],
    });
    catalog(channels, &["0.1.0", "1.0.0", "1.0.1", "1.0.2", "2.0.0", "3.0.0"], &["1.0.0", "1.0.1"], &[])
}

#[test]
fn a_first_install_resolves_to_the_highest_version() {
    let catalog = usual();
    for (version, channels, expected) in [
        ("", &[][..], "c 3.0.0"),
        ("", &["alpha"], "c 2.0.0"),
        ("", &["beta", "gamma"], "c 3.0.0"),
        ("0.1.0", &["alpha"], "c 0.1.0"),
        // A deprecated bundle is used only if there is no other.
        (">=1.0.0 <2.0.0", &[], "c 1.0.2"),
        (">=1.0.0 <1.0.2", &[], "c 1.0.1"),
        ("*", &[], "c 3.0.0"),
        ("4", &[], "no bundles found for package \"p\" matching version \"4\""),
        ("", &["x", "y"], "no bundles found for package \"p\" in channels [x y]"),
        ("3", &["beta", "alpha"], "no bundles found for package \"p\" matching version \"3\" in channels [beta alpha]"),
        ("foobar", &[], "desired version range \"foobar\" is invalid: improper constraint: \"foobar\""),
    ] {
        assert_eq!(said(resolve_in(&wanted(version, channels), None, &catalog)), expected, "{version} {channels:?}");
    }
}

#[test]
fn an_update_needs_an_edge_of_the_channels_that_are_named() {
    let catalog = usual();
    for (from, version, channels, expected) in [
        ("0.1.0", "", &[][..], "c 1.0.2"),
        ("1.0.0", "", &[], "c 2.0.0"),
        (
            "0.1.0",
            "3.0.0",
            &[],
            "error upgrading from currently installed version \"0.1.0\": no bundles found for package \"p\" matching version \"3.0.0\"",
        ),
        ("2.0.0", "", &[], "c 3.0.0"),
        ("2.0.0", "", &["alpha"], "c 2.0.0"),
        (
            "1.0.2",
            "",
            &["gamma"],
            "error upgrading from currently installed version \"1.0.2\": no bundles found for package \"p\" in channels [gamma]",
        ),
        // A downgrade needs an edge as well.
        (
            "1.0.2",
            "0.1.0",
            &[],
            "error upgrading from currently installed version \"1.0.2\": no bundles found for package \"p\" matching version \"0.1.0\"",
        ),
    ] {
        assert_eq!(
            said(resolve_in(&wanted(version, channels), Some(from), &catalog)),
            expected,
            "{from} {version} {channels:?}"
        );
    }
    let any = ExtensionRequest { constraints: UpgradeConstraints::Any, ..wanted("0.1.0", &[]) };
    assert_eq!(said(resolve_in(&any, Some("1.0.2"), &catalog)), "c 0.1.0");
    let other_name = InstalledBundle { name: "other".into(), ..installed("2.0.0") };
    assert_eq!(said(resolve(&wanted("", &["alpha"]), Some(&other_name), &[source("c", 0, &catalog)])), "c 2.0.0");
    let no_version = InstalledBundle { version: "two".into(), ..installed("2.0.0") };
    assert_eq!(
        said(resolve(&wanted("", &[]), Some(&no_version), &[source("c", 0, &catalog)])),
        "error walking catalogs: error finding upgrade edges: failed to get version and release of installed bundle: No \
         Major.Minor.Patch elements found"
    );
}

#[test]
fn an_edge_of_another_channel_does_not_count() {
    let channels = json!({
        "alpha": [{"name": "p.v1.0.0"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.0"}],
        "beta": [{"name": "p.v1.0.0"}, {"name": "p.v2.0.0"}],
    });
    let catalog = catalog(channels, &["1.0.0", "2.0.0"], &[], &[]);
    assert_eq!(said(resolve_in(&wanted("", &["beta"]), Some("1.0.0"), &catalog)), "c 1.0.0");
    assert_eq!(said(resolve_in(&wanted("", &["beta", "alpha"]), Some("1.0.0"), &catalog)), "c 2.0.0");
    assert_eq!(said(resolve_in(&wanted("", &[]), Some("1.0.0"), &catalog)), "c 2.0.0");
}

#[test]
fn the_upgrade_of_the_documented_example_takes_two_steps() {
    let channels = json!({"stable": [{"name": "p.v3.0.0", "skips": ["p.v2.0.0"]}, {"name": "p.v2.0.0", "skipRange": ">=1.0.0 <2.0.0"}, {"name": "p.v1.0.0"}]});
    let catalog = catalog(channels, &["1.0.0", "2.0.0", "3.0.0"], &[], &[]);
    assert_eq!(said(resolve_in(&wanted("", &[]), Some("1.0.0"), &catalog)), "c 2.0.0");
    let failure = resolve_in(&wanted("3.0.0", &[]), Some("1.0.0"), &catalog).unwrap_err();
    let NoCandidateReason::NoEdge(there) = failure.reason else { panic!("{failure:?}") };
    assert_eq!(there.iter().map(|(_, bundle)| bundle.version.as_str()).collect::<Vec<_>>(), ["3.0.0"]);
}

#[test]
fn releases_are_read_from_bundle_names_and_decide_between_equal_versions() {
    let channels = json!({"stable": [{"name": "p.v2.0.0+1"}, {"name": "p.v2.1.0", "replaces": "p.v2.0.0"}, {"name": "p.v2.2.0", "skips": ["p.v2.0.0+1"]}]});
    let catalog = catalog(channels, &["2.0.0+1", "2.1.0", "2.2.0"], &[], &[]);
    assert_eq!(said(resolve_in(&wanted("", &[]), Some("2.0.0+1"), &catalog)), "c 2.2.0");
    assert_eq!(said(resolve_in(&wanted("2.0.0", &[]), Some("2.0.0+1"), &catalog)), "c 2.0.0+1");
    let split = InstalledBundle { release: Some("1".into()), ..installed("2.0.0") };
    assert_eq!(said(resolve(&wanted("2.0.0", &[]), Some(&split), &[source("c", 0, &catalog)])), "c 2.0.0+1");
    let other = InstalledBundle { release: Some("2".into()), ..split };
    assert!(resolve(&wanted("2.0.0", &[]), Some(&other), &[source("c", 0, &catalog)]).is_err());
}

#[test]
fn priorities_decide_between_catalogs_and_versions_do_not() {
    let low = catalog(json!({"a": [{"name": "p.v1.0.0"}]}), &["1.0.0"], &[], &[]);
    let high = catalog(json!({"a": [{"name": "p.v2.0.0"}]}), &["2.0.0"], &[], &[]);
    let old = catalog(json!({"a": [{"name": "p.v9.0.0"}]}), &["9.0.0"], &["9.0.0"], &[]);
    let none = Catalog::default();
    let resolve = |sources: &[ServedCatalog<'_>]| said(resolve(&wanted("", &[]), None, sources));
    assert_eq!(resolve(&[source("a", 1, &low), source("b", 0, &high)]), "a 1.0.0");
    assert_eq!(resolve(&[source("a", 0, &low), source("n", 5, &none)]), "a 1.0.0");
    assert_eq!(resolve(&[source("a", 0, &old), source("b", -5, &low)]), "b 1.0.0", "deprecated gives way");
    assert_eq!(resolve(&[source("a", 0, &old)]), "a 9.0.0");
    let ambiguous = "found bundles for package \"p\" in multiple catalogs with the same priority";
    assert_eq!(resolve(&[source("b", 0, &low), source("a", 0, &high)]), format!("{ambiguous} [a b]"));
    assert_eq!(
        resolve(&[source("c", 1, &low), source("b", 2, &low), source("a", 2, &high)]),
        format!("{ambiguous} [a b c]")
    );
    assert_eq!(resolve(&[source("n", 0, &none)]), "no bundles found for package \"p\"");
    assert_eq!(resolve(&[]), "no bundles found for package \"p\"");
}

#[test]
fn dependencies_are_refused_and_the_next_one_is_not_tried() {
    let catalog =
        catalog(json!({"a": [{"name": "p.v1.0.0"}, {"name": "p.v1.1.0"}]}), &["1.0.0", "1.1.0"], &[], &["1.1.0"]);
    assert_eq!(
        said(resolve_in(&wanted("", &[]), None, &catalog)),
        "validating bundle \"p.v1.1.0\": bundle \"p.v1.1.0\" has a dependency declared via property \"olm.gvk.required\" \
         which is currently not supported"
    );
    assert_eq!(said(resolve_in(&wanted("<1.1", &[]), None, &catalog)), "c 1.0.0");
}

#[test]
fn a_version_that_cannot_be_parsed_is_no_candidate_and_an_error_without_a_range() {
    let channels = json!({"a": [{"name": "p.vlatest"}]});
    let odd = catalog(channels, &["latest"], &[], &[]);
    assert_eq!(
        said(resolve_in(&wanted("*", &[]), None, &odd)),
        "no bundles found for package \"p\" matching version \"*\""
    );
    assert_eq!(
        said(resolve_in(&wanted("", &[]), None, &odd)),
        "error getting resolved bundle version for bundle \"p.vlatest\": No Major.Minor.Patch elements found"
    );
    let broken = load(&[json!({"package": "p", "name": "x"})]);
    assert_eq!(
        said(resolve_in(&wanted("", &[]), None, &broken)),
        "error walking catalogs: error getting package \"p\" from catalog \"c\": error loading package \"p\": object \
         '{\"package\":\"p\",\"name\":\"x\"}' is missing root schema field"
    );
}

#[test]
fn the_reason_names_the_constraint_that_excluded_the_last_candidate() {
    let pre = catalog(json!({"a": [{"name": "p.v0.10.0-mas"}]}), &["0.10.0-mas"], &[], &[]);
    let reason = |wanted: &ExtensionRequest, catalog| resolve_in(wanted, None, catalog).unwrap_err().reason.clone();
    let versions = vec!["0.10.0-mas"];
    assert_eq!(reason(&wanted(">=0.10.0-0", &["b"]), &pre), NoCandidateReason::NoChannel(vec!["a"]));
    let expected = NoCandidateReason::NoVersion { versions: versions.clone(), pre_releases: Vec::new() };
    assert_eq!(reason(&wanted(">=0.10.0", &[]), &pre), expected, "0.10.0-mas is below 0.10.0");
    let expected = NoCandidateReason::NoVersion { versions: versions.clone(), pre_releases: versions };
    assert_eq!(reason(&wanted("<1.0.0", &[]), &pre), expected);
    assert_eq!(reason(&wanted("", &[]), &Catalog::default()), NoCandidateReason::NoPackage);
    // Two bundles of the same version: which one OLM takes depends on the order in which it read them.
    let mut tied = catalog(json!({"a": [{"name": "p.v1.0.0"}, {"name": "again"}]}), &["1.0.0"], &[], &[]);
    let package = tied.packages.get_mut("p").expect("a package");
    let again = crate::PackageBundle { name: "again".into(), ..package.bundles["p.v1.0.0"].clone() };
    package.bundles.insert("again".into(), again);
    let resolved = resolve_in(&wanted("", &[]), None, &tied).unwrap();
    assert_eq!((resolved.bundle.name.as_str(), resolved.tied), ("again", vec!["p.v1.0.0"]));
}

#[test]
fn updates_by_semantic_versions_stay_within_a_major_version() {
    for (installed, candidate, expected) in [
        ("0.0.1", "0.0.2", false),
        ("0.1.0", "0.1.2", true),
        ("0.1.0", "0.2.0", false),
        ("1.0.0", "1.11.2", true),
        ("1.0.0", "1.0.0", false),
        ("1.1.0", "1.0.0", false),
        ("1.0.0", "1.1.0-rc1", false),
        ("1.0.0-rc1", "1.0.0-rc2", true),
        ("2.0.0", "3.0.0", false),
    ] {
        let [from, to] = [installed, candidate].map(|text| SemanticVersion::parse(text).expect("a version"));
        assert_eq!(is_semver_update(&from, &to), expected, "{installed} {candidate}");
    }
    let catalog = usual();
    let semver = |version: &str| ExtensionRequest { constraints: UpgradeConstraints::Semver, ..wanted(version, &[]) };
    assert_eq!(said(resolve_in(&semver(""), Some("1.0.0"), &catalog)), "c 1.0.2");
    assert!(resolve_in(&semver("2.0.0"), Some("1.0.0"), &catalog).is_err());
    assert_eq!(said(resolve_in(&semver(""), Some("3.0.0"), &catalog)), "c 3.0.0");
}

/// Runs the cases in a file that is not part of this repository, with `Name`, `Ext`, `Installed`, `Catalogs` and
/// `Want`:
///
///     GANTRY_TEST_RESOLVE=FILE cargo test -p gantry-catalog given -- --ignored --nocapture
#[test]
#[ignore = "needs a file of cases"]
fn cases_of_a_given_file_resolve_as_expected() {
    let file = std::env::var("GANTRY_TEST_RESOLVE").expect("GANTRY_TEST_RESOLVE names a file");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("cases");
    for case in &cases {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ext = &case["Ext"];
        let channels = ext["Channels"].as_array().into_iter().flatten().map(text).collect();
        let constraints =
            if ext["SelfCertified"] == true { UpgradeConstraints::Any } else { UpgradeConstraints::Catalog };
        let wanted =
            ExtensionRequest { package: text(&ext["Package"]), version: text(&ext["Version"]), channels, constraints };
        let installed = case["Installed"].as_object().map(|found| InstalledBundle {
            name: text(&found["Name"]),
            version: text(&found["Version"]),
            release: found.get("Release").and_then(Value::as_str).map(str::to_owned),
        });
        let catalogs: Vec<(String, i32, Catalog)> = case["Catalogs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|catalog| {
                let kinds = ["Packages", "Channels", "Bundles", "Deprecations"];
                let blobs =
                    kinds.iter().flat_map(|kind| catalog["FBC"][kind].as_array().into_iter().flatten().cloned());
                let priority = catalog["Priority"].as_i64().and_then(|number| i32::try_from(number).ok());
                (text(&catalog["Name"]), priority.unwrap_or(0), load(&blobs.collect::<Vec<_>>()))
            })
            .collect();
        let sources: Vec<ServedCatalog> = catalogs
            .iter()
            .map(|(name, priority, found)| ServedCatalog {
                name,
                priority: *priority,
                package: found.packages.get(&wanted.package),
            })
            .collect();
        let want = &case["Want"];
        match resolve(&wanted, installed.as_ref(), &sources) {
            Ok(found) => {
                assert_eq!(found.bundle.name, text(&want["Bundle"]), "{}", case["Name"]);
                assert_eq!(found.catalog, text(&want["Catalog"]), "{}", case["Name"]);
            }
            Err(failure) => assert_eq!(failure.text, text(&want["Error"]), "{}", case["Name"]),
        }
    }
    println!("{} cases", cases.len());
}

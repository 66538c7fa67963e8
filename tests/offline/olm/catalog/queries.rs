//! Compares the queries in OpenShift's documentation on catalogs with its jq commands on the same catalog.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

use tempfile::NamedTempFile;

use super::{fixtures, folder, gantry, in_folder};

/// jq's result for the catalog, as sorted lines.
fn jq(args: &[&str], input: &str) -> Vec<String> {
    // A file, because jq could fill one pipe while this process fills the other.
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(input.as_bytes()).expect("a file");
    let output = Command::new("jq").args(args).arg(file.path()).output().expect("jq, which some tests need");
    assert!(output.status.success(), "{args:?}");
    let mut lines: Vec<String> = String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The fixtures' catalog as one JSON file, as catalogd serves it: every blob of every package.
fn served() -> String {
    ["example", "objects"].map(|package| gantry(&[package, "-o", "json"]).code(0).stdout).concat()
}

/// The columns from the second one on, of the lines below a heading.
fn column(output: &str, heading: &str, column: usize) -> Vec<String> {
    let lines = output.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let rows = lines.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().nth(column));
    let mut found: Vec<String> = rows.map(|cell| format!("\"{}\"", cell.expect("a cell"))).collect();
    found.sort();
    found
}

#[test]
fn the_documented_jq_queries_give_the_same_result() {
    let all = served();
    let names = jq(&["-s", ".[] | select(.schema == \"olm.package\") | .name"], &all);
    assert_eq!(
        names,
        jq(&["-s", ".[] | select( .schema == \"olm.package\") | .name"], &gantry(&["-o", "json"]).code(0).stdout)
    );
    assert_eq!(names, column(&gantry(&[]).stdout, "PACKAGE", 0));

    let supported = r#"select(.schema == "olm.bundle") | {"package":.package, "version":.properties[] |
        select(.type == "olm.bundle.object").value.data | @base64d | fromjson |
        select(.kind == "ClusterServiceVersion" and (.spec.installModes[] |
        select(.type == "AllNamespaces" and .supported == true) != null)
        and .spec.webhookdefinitions == null).spec.version}"#;
    let expected = jq(&["-c", supported], &all);
    assert_eq!(expected.len(), 2);
    // The documents are about OpenShift 4.16. Dependencies are another page: no bundle with an object declares one.
    let found = gantry(&["--supported", "--olm", "4.16", "-o", "json"]).code(0).stdout;
    assert_eq!(jq(&["-c", "select(.webhooks == null)"], &found), expected);

    for package in ["example", "objects"] {
        let of = |filter: &str| jq(&["-c", "-s", &filter.replace("PKG", package)], &all);
        let blobs = gantry(&[package, "-o", "json"]).code(0).stdout;
        let metadata = ".[] | select( .schema == \"olm.package\") | select( .name == \"PKG\")";
        assert_eq!(of(metadata), jq(&["-c", "-s", &metadata.replace("PKG", package)], &blobs));
        let mut every = of(".[] | select( .package == \"PKG\")");
        every.extend(of(metadata));
        every.sort();
        assert_eq!(jq(&["-c", "."], &blobs), every);
        let channels = of(".[] | select( .schema == \"olm.channel\" ) | select( .package == \"PKG\") | .name");
        let shown = gantry(&[package]).code(0).stdout;
        assert_eq!(column(&shown, "CHANNEL", 0), channels);
        let bundles = of(".[] | select( .schema == \"olm.bundle\" ) | select( .package == \"PKG\") | .name");
        assert_eq!(column(&shown, "VERSION", 1), bundles);
        for channel in channels.iter().map(|channel| channel.trim_matches('"')) {
            let blob = of(&format!(
                ".[] | select( .schema == \"olm.channel\" ) | select ( .name == \"{channel}\") | select( .package == \"PKG\")"
            ));
            assert_eq!(jq(&["-c", "."], &gantry(&[package, channel, "-o", "json"]).code(0).stdout), blob);
            let versions = of(&format!(
                ".[] | select( .package == \"PKG\" ) | select( .schema == \"olm.channel\" ) | select( .name == \"{channel}\" ) | .entries | .[] | .name"
            ));
            assert_eq!(column(&gantry(&[package, channel]).code(0).stdout, "VERSION", 1), versions);
        }
        for bundle in bundles.iter().map(|bundle| bundle.trim_matches('"')) {
            let blob = of(&format!(
                ".[] | select( .schema == \"olm.bundle\" ) | select ( .name == \"{bundle}\") | select( .package == \"PKG\")"
            ));
            assert_eq!(jq(&["-c", "."], &gantry(&[package, bundle, "-o", "json"]).code(0).stdout), blob);
        }
    }
}

/// The same for the packages of a folder that is not part of this repository:
///
///     GANTRY_TEST_CATALOG=FOLDER cargo test --test offline olm::catalog::queries -- --ignored --nocapture
#[test]
#[ignore = "needs a catalog"]
fn the_jq_queries_give_the_same_result_on_a_given_catalog() {
    let given = std::env::var("GANTRY_TEST_CATALOG").expect("GANTRY_TEST_CATALOG names a folder or file");
    let catalog = format!("--catalog=given={given}");
    let run = |args: &[&str]| {
        let args: Vec<&str> = args.iter().copied().chain([catalog.as_str()]).collect();
        in_folder(&fixtures(), &args).code(0)
    };
    let packages: Vec<String> = jq(&["-r", ".name"], &run(&["-o", "json"]).stdout);
    let (mut channels, mut bundles) = (0, 0);
    for package in &packages {
        let blobs = run(&[package, "-o", "json"]).stdout;
        // A catalog with only this package: reading the whole catalog for each bundle takes too long.
        let folder = folder(&[("c.json", &blobs)]);
        let alone = format!("--catalog=given={}", folder.path().display());
        let run = |args: &[&str]| {
            let args: Vec<&str> = args.iter().copied().chain([alone.as_str()]).collect();
            in_folder(&fixtures(), &args).code(0)
        };
        let shown = run(&[package]);
        assert_eq!(shown.stderr, "", "{package}");
        let names = |schema: &str| jq(&[&format!("select(.schema == \"{schema}\") | .name")], &blobs);
        assert_eq!(column(&shown.stdout, "CHANNEL", 0), names("olm.channel"), "{package}");
        assert_eq!(column(&shown.stdout, "VERSION", 1), names("olm.bundle"), "{package}");
        for channel in names("olm.channel").iter().map(|channel| channel.trim_matches('"')) {
            let filter = format!("select(.schema == \"olm.channel\" and .name == \"{channel}\")");
            let blob = jq(&["-c", &filter], &blobs);
            assert_eq!(
                jq(&["-c", &filter], &run(&[package, channel, "-o", "json"]).stdout),
                blob,
                "{package} {channel}"
            );
            let entries = jq(&[&format!("{filter} | .entries[].name")], &blobs);
            let listed: BTreeSet<String> = column(&run(&[package, channel]).stdout, "VERSION", 1).into_iter().collect();
            assert_eq!(listed, entries.into_iter().collect(), "{package} {channel}");
            channels += 1;
        }
        for bundle in names("olm.bundle").iter().map(|bundle| bundle.trim_matches('"')) {
            let blob = jq(&["-c", &format!("select(.schema == \"olm.bundle\" and .name == \"{bundle}\")")], &blobs);
            assert_eq!(jq(&["-c", "."], &run(&[package, bundle, "-o", "json"]).stdout), blob, "{package} {bundle}");
            bundles += 1;
        }
    }
    println!("{} packages, {channels} channels, {bundles} bundles: the same as jq", packages.len());
}

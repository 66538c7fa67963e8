//! `gantry catalog diff` on catalogs in files and folders.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{CONFIG, Output, folder, in_folder, small};

const OLD: &str = "\
schema: olm.package
name: p
defaultChannel: stable
---
schema: olm.channel
package: p
name: stable
entries:
- {name: p.v1.0.0}
- {name: p.v1.1.0, replaces: p.v1.0.0}
---
schema: olm.channel
package: p
name: beta
entries:
- {name: p.v1.1.0, skips: [p.v1.0.0]}
";

const NEW: &str = "\
schema: olm.package
name: p
defaultChannel: stable
---
schema: olm.channel
package: p
name: stable
entries:
- {name: p.v1.1.0}
- {name: p.v1.2.0, replaces: p.v1.1.0, skipRange: '>=1.0.0 <1.2.0'}
---
schema: olm.deprecations
package: p
entries:
- {reference: {schema: olm.bundle, name: p.v1.1.0}, message: 1.1.0 loses data.}
";

fn bundle(version: &str, image: &str) -> String {
    format!(
        "---\nschema: olm.bundle\npackage: p\nname: p.v{version}\nimage: {image}\nproperties:\n- {{type: olm.package, value: \
         {{packageName: p, version: {version}}}}}\n"
    )
}

fn extension(name: &str, catalog: &str, installed: Option<&str>) -> String {
    let status = installed
        .map(|version| format!("status: {{install: {{bundle: {{name: p.v{version}, version: {version}}}}}}}\n"));
    format!(
        "---\napiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {{name: {name}}}\nspec:\n  namespace: \
         ns\n  serviceAccount: {{name: sa}}\n  source: {{sourceType: Catalog, catalog: {{packageName: p{catalog}}}}}\n{}",
        status.unwrap_or_default()
    )
}

fn subscription(name: &str, channel: &str, source: &str, more: &str) -> String {
    format!(
        "---\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {{name: {name}, namespace: ns}}\nspec: \
         {{name: p, channel: {channel}, source: {source}, sourceNamespace: olm{more}}}\nstatus: {{installedCSV: p.v1.1.0}}\n"
    )
}

/// Two catalogs, and manifests of what is installed from them.
fn catalogs() -> TempDir {
    let old = [OLD, &bundle("1.0.0", "x:1"), &bundle("1.1.0", "x:2"), "---\n", &small("gone")].concat();
    let new = [NEW, &bundle("1.1.0", "x:3"), &bundle("1.2.0", "x:4"), "---\n", &small("fresh")].concat();
    let installed = [
        extension("follows", "", Some("1.1.0")),
        extension("pinned", ", version: 1.0.0", Some("1.0.0")),
        extension("beta", ", channels: [beta]", Some("1.1.0")),
        extension("stays", ", version: '1.1.0'", None),
        subscription("classic", "stable", "one", ", installPlanApproval: Manual"),
        subscription("other", "stable", "two", ""),
    ];
    folder(&[("old.yaml", &old), ("new/c.yaml", &new), ("installed.yaml", &installed.concat())])
}

fn diff(folder: &Path, args: &[&str]) -> Output {
    in_folder(folder, &[&["diff"], args].concat())
}

#[test]
fn two_releases_are_compared() {
    let folder = catalogs();
    insta::assert_snapshot!(diff(folder.path(), &["old.yaml", "new"]).code(0).shown(), @"
    exit code 0
    ----- stdout
    old.yaml -> new
    packages: 1 new, 1 removed, 1 changed; bundles: 2 new, 2 removed, 1 changed; 1 newly deprecated

    + package fresh: 1 bundle, channel a
    - package gone: 1 bundle, channel a
    ~ package p
    !   deprecated: bundle p.v1.1.0: 1.1.0 loses data.
    -   channel beta: its head was p.v1.1.0
    ~   channel stable: head p.v1.1.0 -> p.v1.2.0
    +     p.v1.2.0: replaces p.v1.1.0, skipRange >=1.0.0 <1.2.0
    -     p.v1.0.0
    -     p.v1.1.0: replaces p.v1.0.0
    +   bundle p.v1.2.0 (1.2.0)
    ~   bundle p.v1.1.0 (1.1.0): image x:2 -> x:3
    -   bundle p.v1.0.0 (1.0.0)
    ");
}

#[test]
fn what_is_installed_is_resolved_with_both() {
    let folder = catalogs();
    let output = diff(folder.path(), &["old.yaml", "new", "p", "-f", "installed.yaml", "--name", "one"]).code(0);
    let affected = output.stdout.split_once("\naffected: ").expect("affected").1;
    insta::assert_snapshot!(affected, @r#"
    5 of 6 ClusterExtensions and Subscriptions

    ClusterExtension follows (p 1.1.0 installed): resolves to another version, newly deprecated
      old catalog: 1.1.0
      new catalog: 1.2.0

    ClusterExtension pinned (p 1.0.0 installed): can no longer be resolved, the pinned version is gone, the installed bundle is gone
      old catalog: 1.0.0
      new catalog: error upgrading from currently installed version "1.0.0": no bundles found for package "p" matching version "1.0.0"
      next: the versions of the new catalog, and what leads to them: gantry catalog p --from 1.0.0 --catalog one=new

    ClusterExtension beta (p 1.1.0 installed): can no longer be resolved, the channel is gone, newly deprecated
      old catalog: 1.1.0
      new catalog: error upgrading from currently installed version "1.1.0": no bundles found for package "p" in channels [beta]
      next: name a channel that the new catalog has: gantry catalog p --catalog one=new

    ClusterExtension stays (p, not installed): newly deprecated
      old catalog: 1.1.0
      new catalog: 1.1.0

    Subscription classic in namespace ns (p 1.1.0 installed): resolves to another version, newly deprecated
      old catalog: 1.1.0
      new catalog: 1.2.0
      next: the update waits until its InstallPlan is approved
    "#);
    // Without a name, every Subscription may use the catalog.
    let output = diff(folder.path(), &["old.yaml", "new", "-f", "installed.yaml"]).code(0);
    assert!(output.stdout.contains("\nSubscription other in namespace ns "), "{}", output.stdout);
}

#[test]
fn a_catalog_of_the_configuration_has_a_name_and_labels() {
    let folder = catalogs();
    let selecting = extension("selecting", ", selector: {matchLabels: {stage: prod}}", Some("1.1.0"));
    let config =
        |stage: &str| format!("{CONFIG}catalogs:\n- {{name: one, path: old.yaml, labels: {{stage: {stage}}}}}\n");
    for (name, text) in [("selecting.yaml", selecting), ("prod.yaml", config("prod")), ("test.yaml", config("test"))] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let affected = |config: &str| {
        let args = ["one", "new", "-c", config, "-f", "selecting.yaml", "-o", "json"];
        let json: Value = serde_json::from_str(&diff(folder.path(), &args).code(0).stdout).expect("JSON");
        json["affected"].as_array().expect("a list").len()
    };
    assert_eq!((affected("prod.yaml"), affected("test.yaml")), (1, 0));
}

#[test]
fn json_has_every_difference() {
    let folder = catalogs();
    let output = diff(folder.path(), &["old.yaml", "new", "-f", "installed.yaml", "-o", "json"]).code(0);
    let json: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(json["kind"], "CatalogDiff");
    assert_eq!(json["summary"]["packages"], serde_json::json!({"added": 1, "removed": 1, "changed": 1}));
    let package = |name: &str| {
        let all = json["packages"].as_array().expect("packages").iter();
        all.clone().find(|package| package["name"] == name).expect("a package").clone()
    };
    assert_eq!((&package("gone")["change"], &package("fresh")["change"]), (&"removed".into(), &"added".into()));
    let p = package("p");
    let stable = p["channels"].as_array().expect("channels").iter().find(|channel| channel["name"] == "stable");
    assert_eq!(
        stable.expect("stable"),
        &serde_json::json!({"name": "stable", "change": "changed",
            "heads": {"old": ["p.v1.1.0"], "new": ["p.v1.2.0"]},
            "bundlesAdded": ["p.v1.2.0"], "bundlesRemoved": ["p.v1.0.0"],
            "edgesAdded": [{"to": "p.v1.2.0", "by": "replaces", "from": "p.v1.1.0"},
                {"to": "p.v1.2.0", "by": "skipRange", "from": ">=1.0.0 <1.2.0"}],
            "edgesRemoved": [{"to": "p.v1.1.0", "by": "replaces", "from": "p.v1.0.0"}]})
    );
    assert_eq!(
        p["bundles"][1],
        serde_json::json!({"name": "p.v1.1.0", "version": "1.1.0", "change": "changed", "images": {"old": "x:2", "new": "x:3"}})
    );
    let effects = |name: &str| {
        let all = json["affected"].as_array().expect("affected").iter();
        all.clone().find(|one| one["name"] == name).map(|one| one["effects"].clone())
    };
    assert_eq!(effects("follows"), Some(serde_json::json!(["resolvesElsewhere", "deprecated"])));
    assert_eq!(
        effects("pinned"),
        Some(serde_json::json!(["noLongerResolves", "pinnedVersionGone", "installedBundleGone"]))
    );
    assert_eq!(effects("beta"), Some(serde_json::json!(["noLongerResolves", "channelGone", "deprecated"])));
}

#[test]
fn markdown_is_for_a_pull_request() {
    let folder = catalogs();
    let output = diff(folder.path(), &["old.yaml", "new", "-f", "installed.yaml", "-o", "markdown"]).code(0);
    insta::assert_snapshot!(output.stdout, @r#"
    ### Catalog: `old.yaml` → `new`

    packages: 1 new, 1 removed, 1 changed; bundles: 2 new, 2 removed, 1 changed; 1 newly deprecated

    **Affected:** 6 of 6 ClusterExtensions and Subscriptions

    - ClusterExtension `follows` (`p` `1.1.0` installed): resolves to another version, newly deprecated
      - old catalog: `1.1.0`
      - new catalog: `1.2.0`

    - ClusterExtension `pinned` (`p` `1.0.0` installed): can no longer be resolved, the pinned version is gone, the installed bundle is gone
      - old catalog: `1.0.0`
      - new catalog: `error upgrading from currently installed version "1.0.0": no bundles found for package "p" matching version "1.0.0"`
      - next: the versions of the new catalog, and what leads to them: `gantry catalog p --from 1.0.0 --catalog new=new`

    - ClusterExtension `beta` (`p` `1.1.0` installed): can no longer be resolved, the channel is gone, newly deprecated
      - old catalog: `1.1.0`
      - new catalog: `error upgrading from currently installed version "1.1.0": no bundles found for package "p" in channels [beta]`
      - next: name a channel that the new catalog has: `gantry catalog p --catalog new=new`

    - ClusterExtension `stays` (`p`, not installed): newly deprecated
      - old catalog: `1.1.0`
      - new catalog: `1.1.0`

    - Subscription `classic` in namespace `ns` (`p` `1.1.0` installed): resolves to another version, newly deprecated
      - old catalog: `1.1.0`
      - new catalog: `1.2.0`
      - next: the update waits until its InstallPlan is approved

    - Subscription `other` in namespace `ns` (`p` `1.1.0` installed): resolves to another version, newly deprecated
      - old catalog: `1.1.0`
      - new catalog: `1.2.0`

    ```diff
    + package fresh: 1 bundle, channel a
    - package gone: 1 bundle, channel a
    ~ package p
    !   deprecated: bundle p.v1.1.0: 1.1.0 loses data.
    -   channel beta: its head was p.v1.1.0
    ~   channel stable: head p.v1.1.0 -> p.v1.2.0
    +     p.v1.2.0: replaces p.v1.1.0, skipRange >=1.0.0 <1.2.0
    -     p.v1.0.0
    -     p.v1.1.0: replaces p.v1.0.0
    +   bundle p.v1.2.0 (1.2.0)
    ~   bundle p.v1.1.0 (1.1.0): image x:2 -> x:3
    -   bundle p.v1.0.0 (1.0.0)
    ```
    "#);
}

#[test]
fn a_package_that_cannot_be_read_is_named_and_affects_what_installs_it() {
    let folder = catalogs();
    let broken = [NEW, &bundle("1.1.0", "x:3").replace("version: 1.1.0", "version: [1]")].concat();
    std::fs::write(folder.path().join("broken.yaml"), broken).expect("a file");
    let args = ["old.yaml", "broken.yaml", "p", "-f", "installed.yaml", "--name", "one", "-o", "json"];
    let json: serde_json::Value = serde_json::from_str(&diff(folder.path(), &args).code(0).stdout).expect("JSON");
    let affected = json["affected"].as_array().expect("a list");
    let classic = affected.iter().find(|one| one["kind"] == "Subscription").expect("the Subscription");
    assert!(classic["effects"].as_array().unwrap().contains(&"packageUnreadable".into()), "{classic}");
    assert!(classic["new"]["error"].as_str().unwrap().starts_with("package p cannot be read"), "{classic}");
    assert_eq!(json["new"]["unreadable"].as_object().unwrap().len(), 1);
    let same = diff(folder.path(), &["broken.yaml", "broken.yaml"]).code(0);
    assert!(same.stdout.contains("! package p of the new catalog cannot be read: "), "{}", same.stdout);
}

#[test]
fn the_exit_code_says_whether_they_differ_if_asked() {
    let folder = catalogs();
    diff(folder.path(), &["old.yaml", "new", "--detailed-exitcode"]).code(4);
    let output = diff(folder.path(), &["new", "new/c.yaml", "--detailed-exitcode"]).code(0);
    assert!(output.stdout.contains("the same packages, channels, bundles and edges"), "{}", output.stdout);
    // The other packages are not looked at.
    diff(folder.path(), &["old.yaml", "new", "gone", "--detailed-exitcode"]).code(4);
    let output = diff(folder.path(), &["old.yaml", "new", "gon"]).code(1);
    assert!(output.stderr.contains("neither catalog has a package \"gon\"\n  = help: did you mean \"gone\"?"));
}

#[test]
fn a_source_that_is_not_there_is_reported_before_anything_is_read() {
    let folder = catalogs();
    let output = diff(folder.path(), &["old.yaml", "new/d.yaml"]).code(2);
    assert!(output.stderr.contains("new/d.yaml: no such file or folder"), "{}", output.stderr);
    std::fs::write(folder.path().join("cut.yaml"), "schema: olm.package\nname: [").expect("a file");
    let output = diff(folder.path(), &["old.yaml", "cut.yaml"]).code(1);
    assert!(output.stderr.contains("the catalog cut.yaml cannot be read") && output.stdout.is_empty());
}

#[test]
fn a_folder_target_has_what_is_installed() {
    let folder = catalogs();
    let text = std::fs::read_to_string(folder.path().join("installed.yaml")).expect("a file");
    std::fs::create_dir(folder.path().join("cluster")).expect("a folder");
    for (at, object) in text.split("---\n").filter(|object| !object.is_empty()).enumerate() {
        std::fs::write(folder.path().join(format!("cluster/{at}.yaml")), object).expect("a file");
    }
    let output = diff(folder.path(), &["old.yaml", "new", "--target", "dir:cluster"]).code(0);
    assert!(output.stdout.contains("affected: 6 of 6 "), "{}", output.stdout);
    // What is installed is in the target, not in a manifest.
    std::fs::write(folder.path().join("follows.yaml"), extension("follows", "", None)).expect("a file");
    let args = ["old.yaml", "new", "--target", "dir:cluster", "-f", "follows.yaml"];
    let output = diff(folder.path(), &args).code(0);
    assert!(output.stdout.contains("ClusterExtension follows (p 1.1.0 installed): "), "{}", output.stdout);
    let output = diff(folder.path(), &["old.yaml", "nothing", "--target", "dir:cluster"]).code(1);
    assert!(output.stderr.contains("\"nothing\" is not a file or folder, not a catalog"), "{}", output.stderr);
}

#[test]
fn no_control_character_reaches_the_comparison() {
    let evil = small("p").replace("name: a\n", "name: \"a\\e[31m\\u202e\"\n");
    let folder = folder(&[("old.yaml", &small("p")), ("new.yaml", &evil)]);
    for format in ["human", "json", "markdown"] {
        let output = diff(folder.path(), &["old.yaml", "new.yaml", "-o", format]).code(0);
        let is_hostile = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!output.stdout.chars().any(is_hostile), "{format}: {:?}", output.stdout);
    }
}

/// Memory does not grow with the size of the catalogs: most of a catalog is content that is not kept.
#[test]
fn large_catalogs_are_compared_within_bounded_memory() {
    let folder = folder(&[]);
    let filler = "y".repeat(20_000);
    let line = |package: usize, version: usize| {
        format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"p{package}\",\"name\":\"p{package}.v1.0.{version}\",\"image\":\"x:{version}\",\
             \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p{package}\",\"version\":\"1.0.{version}\"}}}},\
             {{\"type\":\"olm.csv.metadata\",\"value\":{{\"description\":\"{filler}\"}}}}]}}\n"
        )
    };
    let catalog = |versions: usize| (0..40).flat_map(|p| (0..versions).map(move |v| line(p, v))).collect::<String>();
    std::fs::write(folder.path().join("old.json"), catalog(50)).expect("a file");
    std::fs::write(folder.path().join("new.json"), catalog(51)).expect("a file");
    let gantry = env!("CARGO_BIN_EXE_gantry");
    // 2 × 40 MB; the limit includes what the program and its threads map.
    let script = format!("ulimit -d 60000; exec {gantry} catalog diff old.json new.json");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("gantry runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("packages: 0 new, 0 removed, 40 changed; bundles: 40 new"), "{output:?}");
}

//! `gantry catalog --provides`, `--requires`, `--version` and `--bundle`.

use super::{folder, in_folder};

const CATALOG: &str = "\
schema: olm.package
name: db
defaultChannel: a
---
schema: olm.channel
package: db
name: a
entries: [{name: db.v1.0.0}, {name: db.v1.1.0, replaces: db.v1.0.0}]
---
schema: olm.channel
package: db
name: b
entries: [{name: db.v2.0.0}]
---
schema: olm.bundle
package: db
name: db.v1.0.0
image: example.com/db@sha256:10
properties:
- {type: olm.package, value: {packageName: db, version: 1.0.0}}
---
schema: olm.bundle
package: db
name: db.v1.1.0
image: example.com/db@sha256:11
properties:
- {type: olm.package, value: {packageName: db, version: 1.1.0}}
- {type: olm.gvk, value: {group: db.example.com, version: v1, kind: Database}}
---
schema: olm.bundle
package: db
name: db.v2.0.0
image: example.com/db@sha256:20
properties:
- {type: olm.package, value: {packageName: db, version: 2.0.0}}
- {type: olm.gvk, value: {group: db.example.com, version: v1, kind: Database}}
- {type: olm.gvk, value: {group: db.example.com, version: v2, kind: Database}}
---
schema: olm.package
name: app
defaultChannel: a
---
schema: olm.channel
package: app
name: a
entries: [{name: app.v1.0.0}]
---
schema: olm.bundle
package: app
name: app.v1.0.0
properties:
- {type: olm.package, value: {packageName: app, version: 1.0.0}}
- {type: olm.gvk.required, value: {group: db.example.com, version: v1, kind: Database}}
- type: olm.constraint
  value: {failureMessage: x, all: {constraints: [{package: {packageName: db, versionRange: '>=1.0.0'}}]}}
";

fn ask(args: &[&str]) -> super::Output {
    let folder = folder(&[("c.yaml", CATALOG)]);
    in_folder(folder.path(), &[args, &["--catalog", "c=c.yaml"]].concat())
}

#[test]
fn the_providers_of_an_api_are_listed() {
    insta::assert_snapshot!(ask(&["--provides", "db.example.com/Database"]).code(0).stdout, @"
    PACKAGE  CATALOG  API                           HIGHEST VERSION  PROVIDED BY
    db       c        Database (db.example.com/v1)  2.0.0            2 of 3 bundles
    db       c        Database (db.example.com/v2)  2.0.0            1 of 3 bundles
    ");
    let lines = ask(&["--provides", "db.example.com", "-o", "json"]).code(0).lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["api"]["version"], "v2");
    assert_eq!(lines[0]["bundles"][1]["bundle"], "db.v1.1.0");
    let output = ask(&["--provides", "db.example.com/Databas"]).code(1);
    assert!(output.stderr.contains("did you mean \"db.example.com/Database\"?"), "{}", output.stderr);
}

#[test]
fn the_bundles_that_require_a_package_are_listed() {
    insta::assert_snapshot!(ask(&["--requires", "db"]).code(0).stdout, @"
    PACKAGE  CATALOG  REQUIRES AN OPERATOR                                                      HIGHEST VERSION  REQUIRED BY
    app      c        providing an API with group: db.example.com, version: v1, kind: Database  1.0.0            1 of 1 bundle
    app      c        with package: db and with version in range: >=1.0.0                       1.0.0            1 of 1 bundle
    ");
    assert_eq!(ask(&["--requires", "app"]).code(0).stdout, "no bundle of another package requires app\n");
    assert!(ask(&["--requires", "dbs"]).code(1).stderr.contains("did you mean \"db\"?"));
}

#[test]
fn a_range_says_what_it_installs() {
    insta::assert_snapshot!(ask(&["db", "--version", "~1"]).code(0).stdout, @"
    db ~1: OLM v1.11 installs 1.1.0
      bundle    db.v1.1.0
      catalog   c
      channels  a
      image     example.com/db@sha256:11
      unknown   whether it has webhooks, whether its deployments are valid, whether its objects are supported
    ");
    let version = |args: &[&str]| ask(args).code(0).lines()[0]["version"].clone();
    assert_eq!(version(&["db", "--version", ">=1", "-o", "json"]), "2.0.0");
    assert_eq!(version(&["db", "a", "--version", ">=1", "-o", "json"]), "1.1.0");
    // No edge leads from 1.0.0 to 2.0.0.
    assert_eq!(version(&["db", "--version", ">=1", "--from", "1.0.0", "-o", "json"]), "1.1.0");
    for (args, message) in [
        (
            &["db", "--version", "3"][..],
            "no bundles found for package \"db\" matching version \"3\"\n  = help: the highest version is 2.0.0",
        ),
        (
            &["db", "--version", "2.0.0", "--from", "1.0.0"],
            "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"db\" matching version \"2.0.0\"\n  = help: to see what is reachable: gantry catalog db --from 1.0.0",
        ),
        (&["db", "--version", "1..0"], "desired version range \"1..0\" is invalid"),
        (&["db", "c", "--version", "1"], "the package db has no channel \"c\""),
        (
            &["app", "--version", "1"],
            "has a dependency declared via property \"olm.gvk.required\" which is currently not supported",
        ),
    ] {
        let output = ask(args).code(1);
        assert!(output.stderr.contains(message), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn a_range_installs_nothing_if_olm_refuses_the_bundle() {
    let bundle = |name: &str, version: &str, mode: &str, object: &str| {
        format!(
            "---\nschema: olm.bundle\npackage: w\nname: {name}\nproperties:\n- {{type: olm.package, value: {{packageName: w, \
             version: {version}}}}}\n- {{type: olm.csv.metadata, value: {{installModes: [{{type: {mode}, supported: \
             true}}]}}}}\n{object}"
        )
    };
    let webhook = format!("- {{type: olm.bundle.object, value: {{data: {WITH_WEBHOOK}}}}}\n");
    let catalog = [
        "schema: olm.package\nname: w\n---\nschema: olm.channel\npackage: w\nname: a\nentries:\n- {name: w1}\n- {name: w2, \
         replaces: w1}\n"
            .to_owned(),
        bundle("w1", "1.0.0", "AllNamespaces", &webhook),
        bundle("w2", "2.0.0", "MultiNamespace", ""),
    ]
    .concat();
    let folder = folder(&[("c.yaml", &catalog)]);
    let ask = |args: &[&str]| in_folder(folder.path(), &[&["w", "--catalog", "c=c.yaml"], args].concat());
    let refused = ask(&["--version", ">=1"]);
    let refused = &refused.code(1).stderr;
    assert!(refused.contains("w >=1 resolves to bundle w2 (catalog c), which OLM v1.11 does not install"), "{refused}");
    assert!(refused.contains("AllNamespaces"), "{refused}");
    ask(&["--version", "1.0.0"]).code(0);
    let refused = ask(&["--version", "1.0.0", "--olm", "v1.5"]);
    let refused = &refused.code(1).stderr;
    assert!(refused.contains("which OLM v1.5 does not install") && refused.contains("webhook"), "{refused}");
    let of_openshift = ask(&["--version", "1.0.0", "--olm", "4.21"]);
    assert!(of_openshift.code(0).stderr.contains("notice: OpenShift 4.21 is judged as OLM v1.6"));
    assert!(ask(&["--olm", "v1.5"]).code(2).stderr.contains("--olm is for --supported and --version"));
}

#[test]
fn the_image_of_a_bundle_is_named_with_the_commands_to_extract_it() {
    let output = ask(&["db", "1.1.0", "--bundle"]).code(0);
    assert!(output.stdout.contains("crane export example.com/db@sha256:11 - | tar -x -C db.v1.1.0 manifests metadata"));
    assert_eq!(ask(&["db", "1.1.0", "--bundle", "-o", "json"]).code(0).lines()[0]["image"], "example.com/db@sha256:11");
    let output = ask(&["db", "a", "--bundle"]).code(2);
    assert!(output.stderr.contains("--bundle needs a bundle or its version, and a is a channel"), "{}", output.stderr);
}

/// A ClusterServiceVersion with a valid webhook, as a catalog has it.
const WITH_WEBHOOK: &str = "\
    eyJhcGlWZXJzaW9uIjoib3BlcmF0b3JzLmNvcmVvcy5jb20vdjFhbHBoYTEiLCJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJz\
    aW9uIiwibWV0YWRhdGEiOnsibmFtZSI6IncudjEuMC4wIn0sInNwZWMiOnsidmVyc2lvbiI6IjEuMC4wIiwiaW5zdGFsbE1v\
    ZGVzIjpbeyJ0eXBlIjoiQWxsTmFtZXNwYWNlcyIsInN1cHBvcnRlZCI6dHJ1ZX1dLCJpbnN0YWxsIjp7InN0cmF0ZWd5Ijoi\
    ZGVwbG95bWVudCIsInNwZWMiOnsiZGVwbG95bWVudHMiOlt7Im5hbWUiOiJ3Iiwic3BlYyI6eyJzZWxlY3RvciI6eyJtYXRj\
    aExhYmVscyI6eyJhIjoiYiJ9fSwidGVtcGxhdGUiOnsibWV0YWRhdGEiOnsibGFiZWxzIjp7ImEiOiJiIn19LCJzcGVjIjp7\
    ImNvbnRhaW5lcnMiOltdfX19fV19fSwid2ViaG9va2RlZmluaXRpb25zIjpbeyJ0eXBlIjoiVmFsaWRhdGluZ0FkbWlzc2lv\
    bldlYmhvb2siLCJnZW5lcmF0ZU5hbWUiOiJ3LmV4YW1wbGUuY29tIiwiZGVwbG95bWVudE5hbWUiOiJ3Iiwic2lkZUVmZmVj\
    dHMiOiJOb25lIiwiYWRtaXNzaW9uUmV2aWV3VmVyc2lvbnMiOlsidjEiXSwicnVsZXMiOltdfV19fQ==\
";

#[test]
fn supported_is_what_the_check_accepts_for_each_release() {
    let bundle = |name: &str, more: &str| {
        format!(
            "---\nschema: olm.bundle\npackage: w\nname: {name}\nproperties:\n- {{type: olm.package, value: {{packageName: w, \
             version: {}}}}}\n{more}",
            name.strip_prefix("w.v").expect("a version")
        )
    };
    let object = format!("- {{type: olm.bundle.object, value: {{data: {WITH_WEBHOOK}}}}}\n");
    let metadata = "- {type: olm.csv.metadata, value: {installModes: [{type: AllNamespaces, supported: true}]}}\n";
    let required = "- {type: olm.package.required, value: {packageName: db, versionRange: '>=1.0.0'}}\n";
    let catalog = [
        "schema: olm.package\nname: w\n",
        &bundle("w.v1.0.0", &object),
        &bundle("w.v2.0.0", metadata),
        &bundle("w.v3.0.0", &format!("{metadata}{required}")),
    ]
    .concat();
    let folder = folder(&[("c.yaml", &catalog)]);
    let versions = |args: &[&str]| {
        let args = [&["--supported", "--catalog", "c=c.yaml", "-o", "json"], args].concat();
        let lines = in_folder(folder.path(), &args).code(0).lines();
        let shown = |line: &serde_json::Value| format!("{} {}", line["version"], line["webhooks"]).replace('"', "");
        lines.iter().map(shown).collect::<Vec<_>>()
    };
    for release in [&[][..], &["--olm", "v1.11"], &["--olm", "v1.6"], &["--olm", "1.6.2"]] {
        assert_eq!(versions(release), ["2.0.0 unknown", "1.0.0 1"], "{release:?}");
    }
    for release in ["v1.5", "v1.0", "4.16"] {
        assert_eq!(versions(&["--olm", release]), ["2.0.0 unknown"], "{release}");
    }
    // The check says the same of each.
    let check = |version: &str, olm: &str| {
        let config = format!(
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: ExtensionResolution\n  config: {{olm: {olm}}}\n"
        );
        let extension = format!(
            "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {{name: w}}\nspec:\n  source: {{sourceType: \
             Catalog, catalog: {{packageName: w, version: {version}}}}}\n"
        );
        std::fs::write(folder.path().join("gantry.yaml"), config).expect("a file");
        std::fs::write(folder.path().join("e.yaml"), extension).expect("a file");
        std::fs::create_dir_all(folder.path().join("live")).expect("a folder");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gantry"));
        command.args(["check", "-f", "e.yaml", "--target", "dir:live", "--catalog", "c=c.yaml"]);
        let output =
            command.current_dir(folder.path()).env_clear().env("HOME", folder.path()).output().expect("gantry");
        output.status.code()
    };
    for (version, olm, code) in [
        ("1.0.0", "v1.6", Some(0)),
        ("1.0.0", "v1.5", Some(3)),
        ("2.0.0", "v1.5", Some(0)),
        ("3.0.0", "v1.11", Some(3)),
    ] {
        assert_eq!(check(version, olm), code, "{version} {olm}");
    }
    let output = in_folder(folder.path(), &["--supported", "--olm", "5"]).code(2);
    assert!(output.stderr.contains("\"5\" is not a release of OLM v1"), "{}", output.stderr);
}

#[test]
fn the_head_of_a_channel_is_called_so() {
    let shown = ask(&["db", "1.1.0"]).code(0).stdout;
    assert!(shown.contains("it is the head of channel a: there is no newer version"), "{shown}");
    let shown = ask(&["db", "--from", "2.0.0"]).code(0).stdout;
    assert!(shown.contains("it is the head of channel b: there is no newer version"), "{shown}");
}

//! `gantry catalog` as a person or a script runs it, on catalogs in files and folders.

mod ask;
mod diff;
mod queries;
mod url;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sentences::shown;
use tempfile::TempDir;

/// The output of a run.
struct Output {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Output {
    fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Everything that the user sees.
    fn shown(&self) -> String {
        shown(Some(self.code), &self.stdout, &self.stderr)
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/catalog")
}

/// `gantry catalog` in an empty environment, in this folder.
fn in_folder(folder: &Path, args: &[&str]) -> Output {
    let home = TempDir::new().expect("a home");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    command.arg("catalog").args(args).current_dir(folder).env_clear().env("HOME", home.path()).stdin(Stdio::null());
    let output = command.output().expect("gantry runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Output {
        code: output.status.code().expect("an exit code"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// `gantry catalog` on the catalog of the fixtures.
fn gantry(args: &[&str]) -> Output {
    let catalog = format!("--catalog=test={}", fixtures().display());
    let args: Vec<&str> = args.iter().copied().chain([catalog.as_str()]).collect();
    in_folder(&fixtures(), &args)
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

/// A package with one bundle.
fn small(package: &str) -> String {
    format!(
        "schema: olm.package\nname: {package}\ndefaultChannel: a\n---\nschema: olm.channel\npackage: {package}\nname: a\n\
         entries: [{{name: {package}.v1}}]\n---\nschema: olm.bundle\npackage: {package}\nname: {package}.v1\nproperties:\n\
         - {{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}\n"
    )
}

const CONFIG: &str = "apiVersion: gantry.dev/v1alpha1\nkind: Config\n";

#[test]
fn packages_are_listed_with_their_heads() {
    let output = gantry(&[]).code(0);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    PACKAGE  DEFAULT CHANNEL  HEAD          CHANNELS  BUNDLES
    example  stable           3.0.0, 1.0.0  2         4
    objects  alpha            0.4.0         1         4
    "#);
}

#[test]
fn a_package_shows_its_channels_and_versions() {
    let output = gantry(&["example"]).code(0);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    example (catalog test)
      default channel  stable
      description      An example of all that makes an edge.
      icon             image/svg+xml

    CHANNEL  HEAD          BUNDLES
    fast     3.1.0-rc1     2        deprecated: use stable
    stable   3.0.0, 1.0.0  3        default

    VERSION    BUNDLE              CHANNELS
    3.1.0-rc1  example.v3.1.0-rc1  fast
    3.0.0      example.v3.0.0      fast, stable
    2.0.0      example.v2.0.0      stable
    1.0.0      example.v1.0.0      stable        deprecated: 1.0.0 has no maintainers any more.
    ----- stderr
    notice: CatalogInvalid: catalog test, package example: invalid channel "stable": multiple channel heads found in graph: example.v1.0.0, example.v3.0.0
    "#);
    assert_eq!(
        output.stderr,
        "notice: CatalogInvalid: catalog test, package example: invalid channel \"stable\": multiple channel heads found in graph: example.v1.0.0, example.v3.0.0\n"
    );
}

#[test]
fn a_channel_shows_its_upgrade_graph() {
    let output = gantry(&["example", "stable"]).code(0);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    channel stable of example (catalog test)
      head  3.0.0, 1.0.0

    VERSION  BUNDLE          REPLACES  SKIPS           SKIP RANGE
    3.0.0    example.v3.0.0            example.v2.0.0
    2.0.0    example.v2.0.0                            >=1.0.0 <2.0.0
    1.0.0    example.v1.0.0
    ----- stderr
    notice: CatalogInvalid: catalog test, package example: invalid channel "stable": multiple channel heads found in graph: example.v1.0.0, example.v3.0.0
    "#);
}

#[test]
fn a_bundle_shows_what_it_provides_and_needs() {
    let expected = "\
example.v3.0.0 (package example, catalog test)
  display name      Example
  version           3.0.0
  image             example.com/example@sha256:3000000000000000000000000000000000000000000000000000000000000000
  channels          fast, stable
  install modes     AllNamespaces
  webhooks          unknown: the catalog has no ClusterServiceVersion for it
  needs Kubernetes  1.28.0

provides 2 APIs
  Example (example.com/v1)
  Example (example.com/v1beta1)

requires (OLM v1 does not install bundles that declare dependencies)
  olm.gvk.required      Other (other.example.com/v1)
  olm.package.required  other >=1.0.0 <2.0.0

can be updated to
  3.1.0-rc1  example.v3.1.0-rc1  fast (replaces)
";
    for item in ["example.v3.0.0", "3.0.0"] {
        assert_eq!(gantry(&["example", item]).code(0).stdout, expected);
    }
    let output = gantry(&["objects", "0.2.0"]).code(0);
    assert!(output.stdout.contains("\n  webhooks       1\n"), "{}", output.stdout);
}

#[test]
fn the_shortest_upgrade_path_is_a_list_of_steps() {
    let output = gantry(&["example", "--from", "1.0.0", "--to", "3.0.0"]).code(0);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    example 1.0.0 -> 3.0.0: 2 steps (catalog test)

      2.0.0  example.v2.0.0  channel stable  skipRange >=1.0.0 <2.0.0
      3.0.0  example.v3.0.0  channel stable  skips
    ----- stderr
    notice: CatalogInvalid: catalog test, package example: invalid channel "stable": multiple channel heads found in graph: example.v1.0.0, example.v3.0.0
    "#);
    let json = gantry(&["example", "--from", "example.v1.0.0", "--to", "3.0.0", "-o", "json"]).code(0).lines();
    assert_eq!(
        json,
        [serde_json::json!({
            "catalog": "test", "package": "example",
            "from": {"bundle": "example.v1.0.0", "version": "1.0.0"},
            "to": {"bundle": "example.v3.0.0", "version": "3.0.0"},
            "steps": [
                {"bundle": "example.v2.0.0", "version": "2.0.0", "edge": {"channel": "stable", "by": "skipRange", "range": ">=1.0.0 <2.0.0"}},
                {"bundle": "example.v3.0.0", "version": "3.0.0", "edge": {"channel": "stable", "by": "skips"}},
            ],
        })]
    );
    // Only the edges of the channel count.
    let output = gantry(&["example", "fast", "--from", "1.0.0", "--to", "3.0.0"]).code(1);
    assert!(output.stderr.contains("example: no edges lead from 1.0.0 to 3.0.0 (catalog test)"), "{}", output.stderr);
    let output = gantry(&["example", "--from", "3.0.0", "--to", "1.0.0"]).code(1);
    assert!(
        output.stderr.contains("gantry catalog example --from 3.0.0 lists the reachable versions"),
        "{}",
        output.stderr
    );
    assert!(gantry(&["example", "--from", "3.0.0", "--to", "3.0.0"]).code(0).stdout.contains("0 steps"));
}

#[test]
fn all_versions_that_can_be_reached_from_one_are_listed() {
    let output = gantry(&["example", "--from", "1.0.0"]).code(0);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    example 1.0.0 (catalog test)

    in one step; without a version, OLM v1 installs the highest
      2.0.0  example.v2.0.0  stable (skipRange >=1.0.0 <2.0.0)

    in several steps; --to VERSION shows them
      3.0.0      example.v3.0.0      2 steps
      3.1.0-rc1  example.v3.1.0-rc1  3 steps
    ----- stderr
    notice: CatalogInvalid: catalog test, package example: invalid channel "stable": multiple channel heads found in graph: example.v1.0.0, example.v3.0.0
    "#);
    let output = gantry(&["example", "--from", "1.7.0"]).code(0);
    assert!(output.stdout.contains("The catalog has no bundle of this version"), "{}", output.stdout);
    let json = gantry(&["example", "--from", "1.7.0", "-o", "json"]).code(0).lines();
    assert_eq!(json[0]["from"], serde_json::json!({"bundle": null, "version": "1.7.0"}));
    assert_eq!(json[0]["successors"][0]["version"], "2.0.0");
    assert_eq!(
        json[0]["reachable"][2],
        serde_json::json!({"bundle": "example.v3.1.0-rc1", "version": "3.1.0-rc1", "steps": 3})
    );
}

#[test]
fn upgrade_graphs_are_drawn() {
    let output = gantry(&["example", "stable", "-o", "mermaid"]).code(0);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    flowchart LR
      subgraph c0 ["channel stable"]
        c0n0["example.v3.0.0"]
        c0n1["example.v2.0.0"]
        c0n2["example.v1.0.0"]
        c0n1 -.->|skips| c0n0
        c0n2 -.->|skipRange| c0n1
      end
    ----- stderr
    notice: CatalogInvalid: catalog test, package example: invalid channel "stable": multiple channel heads found in graph: example.v1.0.0, example.v3.0.0
    "#);
    let output = gantry(&["example", "-o", "dot"]).code(0);
    for part in [
        "digraph \"example\" {\n",
        "label=\"channel fast\";",
        "label=\"channel stable\";",
        "c0n1 -> c0n0 [label=replaces];",
        "[label=skipRange, style=dashed]",
    ] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    let many: String = (0..9).map(|at| format!("{{name: p.v1.{at}.0, skipRange: \"<2.0.0\"}}, ")).collect();
    let bundles: String = (0..9)
        .map(|at| format!("---\nschema: olm.bundle\npackage: p\nname: p.v1.{at}.0\nproperties: [{{type: olm.package, value: {{packageName: p, version: 1.{at}.0}}}}]\n"))
        .collect();
    let text = format!(
        "schema: olm.package\nname: p\ndefaultChannel: \"a\\e\\\"]\"\n---\nschema: olm.channel\npackage: p\nname: \"a\\e\\\"]\"\nentries: [{many}]\n{bundles}"
    );
    let folder = folder(&[("c.yaml", &text)]);
    let output = in_folder(folder.path(), &["p", "--catalog", "c=.", "-o", "mermaid"]).code(0);
    assert!(
        output.stdout.contains("([\"#60;2.0.0\"])") && output.stdout.contains("[\"channel a\\u{1b}#34;]\"]"),
        "{}",
        output.stdout
    );
    assert_eq!(output.stdout.matches("-.->").count(), 9, "one arrow for each range: {}", output.stdout);
}

#[test]
fn an_unknown_name_is_reported_with_a_similar_one() {
    for (args, message, help) in [
        (&["exampel"][..], "no package \"exampel\" in catalog test", "did you mean \"example\"?"),
        (&["x"], "no package \"x\" in catalog test", "gantry catalog lists all packages"),
        (
            &["example", "stabel"],
            "the package example has no channel, bundle or version \"stabel\" in catalog test",
            "did you mean \"stable\"?",
        ),
        (
            &["example", "stabel", "--from", "1.0.0"],
            "the package example has no channel \"stabel\"",
            "did you mean \"stable\"?",
        ),
        (
            &["example", "--from", "one"],
            "the package example has no version \"one\"",
            "gantry catalog example lists them",
        ),
        (
            &["example", "--from", "1.0.0", "--to", "3.0.1"],
            "the package example has no version \"3.0.1\"",
            "did you mean \"3.0.0\"?",
        ),
    ] {
        for format in ["human", "json"] {
            let args: Vec<&str> = args.iter().copied().chain(["-o", format]).collect();
            let output = gantry(&args).code(1);
            assert!(output.stderr.contains(message) && output.stderr.contains(help), "{args:?}: {}", output.stderr);
            assert_eq!(output.stdout, "", "{args:?}");
        }
    }
}

#[test]
fn usage_is_checked_before_anything_is_read() {
    let empty = folder(&[]);
    for (args, message) in [
        (&["--catalog", "x"][..], "--catalog: \"x\" is not NAME=PATH or NAME=URL"),
        (&["--catalog", "x=."], ""),
        (&["--catalog", "=a"], "--catalog: \"=a\" is not NAME=PATH or NAME=URL"),
        (&["--catalog", "x=gone"], "the catalog x cannot be read: gone: no such file or folder"),
        (&["--catalog", "x=.", "--catalog", "x=."], "--catalog: duplicate catalog in configuration: \"x\""),
        (&["--catalog", "x=http://a:b@example.com/"], "a URL with a user name or password is not supported"),
        (&["-o", "mermaid", "--catalog", "x=."], "a graph shows one package"),
        (&["p", "--from", "1.0.0", "-o", "dot", "--catalog", "x=."], "cannot be used with --from or --supported"),
        (&["p", "--to", "1.0.0", "--catalog", "x=."], "--from <VERSION>"),
        (&["--from", "1.0.0", "--catalog", "x=."], "<PACKAGE>"),
        (&["-o", "yaml"], "invalid value 'yaml'"),
    ] {
        let output = in_folder(empty.path(), args).code(if message.is_empty() { 0 } else { 2 });
        assert!(output.stderr.contains(message), "{args:?}: {}", output.stderr);
    }
    let output = in_folder(empty.path(), &[]).code(1);
    for message in ["there is no catalog to read", "--catalog NAME=PATH", "no kubeconfig found"] {
        assert!(output.stderr.contains(message), "{}", output.stderr);
    }
    let output = gantry(&["example", "1.0.0", "-o", "dot"]).code(2);
    assert!(output.stderr.contains("not a bundle"), "{}", output.stderr);
}

#[test]
fn a_folder_target_has_no_catalogs() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
        metadata: {name: clustercatalogs.olm.operatorframework.io}\nspec:\n  group: olm.operatorframework.io\n  \
        scope: Cluster\n  names: {plural: clustercatalogs, kind: ClusterCatalog}\n  versions:\n  \
        - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";
    let catalog = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: one}\n";
    let folder = folder(&[
        ("cluster/crd.yaml", crd),
        ("cluster/one.yaml", catalog),
        ("one/p.yaml", &small("p")),
        ("empty/.keep", ""),
    ]);
    let output = in_folder(folder.path(), &["--target", "dir:cluster"]).code(1);
    let expected =
        "error: a folder has no content of catalogs: one in dir: cluster\n  = help: name it: --catalog one=PATH\n";
    assert_eq!(output.stderr, expected);
    let output = in_folder(folder.path(), &["--target", "dir:cluster", "--catalog", "one=one"]).code(0);
    assert!(output.stdout.contains("1.0.0"), "{}", output.stdout);
    let output = in_folder(folder.path(), &["--target", "dir:empty"]).code(1);
    assert!(output.stderr.contains("there is no ClusterCatalog at dir: empty"), "{}", output.stderr);
}

#[test]
fn the_configuration_names_catalogs() {
    let config = format!(
        "{CONFIG}catalogs:\n- {{name: one, path: one}}\n- {{name: two, path: two.yaml, priority: -5, labels: {{a: b}}, available: false}}\n"
    );
    let folder = folder(&[
        ("sub/gantry.yaml", &config),
        ("sub/one/p.yaml", &small("p")),
        ("sub/two.yaml", &small("q")),
        ("sub/deep/other.yaml", &small("r")),
    ]);
    let deep = folder.path().join("sub/deep");
    let output = in_folder(&deep, &[]).code(0);
    assert_eq!(
        output.stdout,
        "PACKAGE  CATALOG  DEFAULT CHANNEL  HEAD   CHANNELS  BUNDLES\np        one      a                1.0.0  1         1\nq        two      a                1.0.0  1         1\n"
    );
    // The flag replaces the content of the catalog of that name.
    let output = in_folder(&deep, &["--catalog", "two=other.yaml"]).code(0);
    assert!(output.stdout.contains("\nr        two ") && !output.stdout.contains("\nq "), "{}", output.stdout);
    for (text, message) in [
        ("catalogs: {}", "3:11|catalogs is not a list"),
        ("catalogs: [a]", "3:12|catalogs[0] is not a mapping"),
        ("catalogs:\n- path: a", "4:3|catalogs[0] has no name"),
        ("catalogs:\n- name: a", "4:3|catalogs[0] has neither path nor url"),
        ("catalogs:\n- name: a\n  path: b\n  paht: c", "6:3|unknown key \"catalogs[0].paht\""),
        ("catalogs:\n- name: a\n  path: b\n- name: a\n  path: c", "6:9|duplicate catalog in configuration: \"a\""),
        ("catalogs:\n- name: a\n  path: b\n  caFile: c", "catalogs[0].caFile is set, but catalogs[0] has no url"),
        (
            "catalogs:\n- name: a\n  path: b\n  priority: 3000000000",
            "catalogs[0].priority: 3000000000 is not a 32-bit integer",
        ),
        ("catalogs:\n- name: a\n  path: b\n  available: 1", "catalogs[0].available: 1 is not true or false"),
        ("catalogs:\n- name: a\n  path: b\n  labels: {x: 1}", "catalogs[0].labels.x: 1 is not a string; quote it"),
        ("catalogs:\n- name: a\n  path: gone", "the catalog a cannot be read: gone: no such file or folder"),
        ("catalogs:\n- name: a\n  url: http://127.0.0.1:1/", "the project file cannot set \"catalogs[0].url\""),
    ] {
        let folder = self::folder(&[("gantry.yaml", &format!("{CONFIG}{text}\n"))]);
        let output = in_folder(folder.path(), &[]).code(2);
        let (place, message) = message.split_once('|').unwrap_or(("", message));
        assert!(output.stderr.contains(message), "{text}: {}", output.stderr);
        assert!(output.stderr.contains(&format!("--> gantry.yaml:{place}")), "{text}: {}", output.stderr);
    }
    let both = folder_of_config("catalogs:\n- {name: a, path: b, url: \"https://example.com/\"}");
    let output = in_folder(both.path(), &["-c", "own.yaml"]).code(2);
    assert!(output.stderr.contains("catalogs[0] has both path and url"), "{}", output.stderr);
    let wrong = folder_of_config("catalogs:\n- {name: a, url: \"ftp://example.com/\"}");
    let output = in_folder(wrong.path(), &["-c", "own.yaml"]).code(2);
    assert!(output.stderr.contains("is not a URL that starts with http:// or https://"), "{}", output.stderr);
}

/// A folder with a file for `-c`.
fn folder_of_config(text: &str) -> TempDir {
    folder(&[("own.yaml", &format!("{CONFIG}{text}\n"))])
}

#[test]
fn broken_catalogs_are_never_skipped() {
    for (text, message) in [
        (
            format!("{}---\nschema: x\nSchema: y\n", small("p")),
            "the catalog c cannot be read: duplicate keys for key \"schema\": [Schema schema]",
        ),
        ("a text".into(), "--> c.yaml:1\n"),
        (format!("{}---\n\n", small("p")), "object '' is missing root schema field"),
        ("name: x\n".into(), "object '{\"name\":\"x\"}' is missing root schema field"),
    ] {
        let folder = folder(&[("c.yaml", &text)]);
        for args in
            [&["--catalog", "c=c.yaml"][..], &["p", "--catalog", "c=c.yaml"], &["-o", "json", "--catalog", "c=c.yaml"]]
        {
            let output = in_folder(folder.path(), args).code(1);
            assert!(output.stderr.contains(message), "{args:?}: {}", output.stderr);
        }
    }
    // A blob without a schema makes only its own package unreadable.
    let text = format!("{}---\npackage: p\nname: x\n---\n{}", small("p"), small("q"));
    let folder = folder(&[("c.yaml", &text)]);
    let catalog = ["--catalog", "c=c.yaml"];
    let of_p = "error getting package \"p\" from catalog \"c\": error loading package \"p\": object '{\"package\":\"p\",\"name\":\"x\"}' is missing root schema field";
    for args in [&["p"][..], &[], &["p", "-o", "json"]] {
        let output = in_folder(folder.path(), &[args, &catalog].concat()).code(1);
        assert!(output.stderr.contains(of_p), "{args:?}: {}", output.stderr);
    }
    in_folder(folder.path(), &[&["q"][..], &catalog].concat()).code(0);
}

#[test]
fn the_order_of_files_changes_nothing() {
    let [package, rest] = [small("p"), small("q")];
    let parts: Vec<&str> = package.split("---\n").chain(rest.split("---\n")).collect();
    let outputs: Vec<String> = (0..parts.len())
        .map(|start| {
            let names: Vec<String> =
                (0..parts.len()).map(|at| format!("{}/{at}.yaml", (start + at) % parts.len())).collect();
            let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(parts.iter().copied()).collect();
            let folder = folder(&files);
            let catalog = ["--catalog", "c=."];
            let all = in_folder(folder.path(), &catalog).code(0).stdout;
            format!("{all}{}", in_folder(folder.path(), &[&["p"][..], &catalog].concat()).code(0).stdout)
        })
        .collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:?}");
}

#[test]
fn no_control_character_reaches_the_output() {
    let text = small("p").replace("defaultChannel: a", "defaultChannel: a\ndescription: \"\\e[31mred\\u202e\"")
        + "---\nschema: olm.deprecations\npackage: p\nentries: [{reference: {schema: olm.package}, message: \"\\e]0;x\\a\"}]\n";
    let folder = folder(&[("c.yaml", &text)]);
    for args in [
        &[][..],
        &["p"],
        &["p", "a"],
        &["p", "1.0.0"],
        &["p", "--from", "1.0.0"],
        &["p", "-o", "mermaid"],
        &["p", "-o", "dot"],
        &["p", "-o", "json"],
    ] {
        let output = in_folder(folder.path(), &[args, &["--catalog", "c=."]].concat()).code(0);
        let all = output.stdout + &output.stderr;
        assert!(!all.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{args:?}: {all:?}");
    }
}

#[test]
fn a_catalog_without_cluster_service_versions_has_no_supported_bundle_and_says_so() {
    let text = "{schema: olm.package, name: p, defaultChannel: c}\n---\n{schema: olm.channel, package: p, name: c, entries: \
        [{name: p.v1.0.0}]}\n---\n{schema: olm.bundle, package: p, name: p.v1.0.0, image: i, properties: \
        [{type: olm.package, value: {packageName: p, version: 1.0.0}}]}\n";
    let folder = folder(&[("catalog.yaml", text)]);
    let shown = in_folder(folder.path(), &["--supported", "--catalog=x=catalog.yaml"]).code(0).stdout;
    assert!(shown.starts_with("no bundle that OLM v1.11 installs: it installs bundles with a"), "{shown}");
    assert_eq!(in_folder(folder.path(), &["--supported", "--catalog=x=catalog.yaml", "-o", "json"]).code(0).stdout, "");
}

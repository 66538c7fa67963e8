//! The checks for Operator Lifecycle Manager from the command line: a folder with the installed objects, catalogs in
//! files, and manifests.

mod bundles;
mod dependencies;
mod releases;
mod resolution;
mod subscriptions;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use gantry_preflight::entry::CheckEntry;
use gantry_preflight::olm::extension_resolution::ENTRY;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder that represents a cluster, manifests and catalogs.
struct Stage {
    folder: TempDir,
    catalogs: Vec<String>,
}

impl Stage {
    /// With the namespace that ClusterExtensions are installed into, and their ServiceAccount.
    fn new() -> Stage {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir(folder.path().join("live")).expect("a folder");
        let stage = Stage { folder, catalogs: Vec::new() };
        stage.write("live/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: operators}\n");
        let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: installer, namespace: operators}\n";
        stage.write("live/account.yaml", account);
        stage
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn catalog(mut self, name: &str, text: &str) -> Stage {
        self.write(&format!("{name}/catalog.yaml"), text);
        self.catalogs.push(format!("--catalog={name}={name}"));
        self
    }

    /// A ClusterExtension of the package `p`.
    fn installed(self, version: &str) -> Stage {
        let bundle = json!({"name": format!("p.v{version}"), "version": version});
        let mut live = extension(json!({"packageName": "p"}));
        live["status"] = json!({"install": {"bundle": bundle}});
        self.write("live/extension.yaml", &live.to_string());
        self
    }

    fn desired(self, text: impl ToString) -> Stage {
        self.write("manifests/extension.yaml", &text.to_string());
        self
    }

    /// A bundle directory of the package `p` with these objects.
    fn bundle(self, objects: &str) -> Stage {
        let annotation = "operators.operatorframework.io.bundle";
        self.write(
            "manifests/bundle/metadata/annotations.yaml",
            &format!("annotations:\n  {annotation}.mediatype.v1: registry+v1\n  {annotation}.package.v1: p\n"),
        );
        for (index, object) in objects.split("---\n").enumerate() {
            self.write(&format!("manifests/bundle/manifests/{index}.yaml"), object);
        }
        self
    }

    fn gantry(&self, args: &[&str]) -> Ran {
        let home = TempDir::new().expect("a home");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
        command.args(args).args(["-f", "manifests", "--target", "dir:live"]).args(&self.catalogs);
        command.current_dir(self.path()).env_clear().env("HOME", home.path()).stdin(Stdio::null());
        let output = command.output().expect("gantry runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ran {
            code: output.status.code().expect("an exit code"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    fn check(&self) -> Ran {
        self.check_with(&ENTRY)
    }

    fn check_with(&self, check: &CheckEntry) -> Ran {
        self.gantry(&["check", "--preflight", check.name, "-o", "json"])
    }
}

struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    #[track_caller]
    fn code(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Rule and message of each finding.
    fn found(&self) -> Vec<(String, String)> {
        let report = self.report();
        let findings = report["checks"][0]["findings"].as_array().expect("findings").clone();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        findings.iter().map(|finding| (text(&finding["rule"]), text(&finding["message"]))).collect()
    }

    fn all_rules(&self) -> Vec<String> {
        self.found().into_iter().map(|(rule, _)| rule).collect()
    }

    /// Without what opm would report about the catalog.
    fn rules(&self) -> Vec<String> {
        self.all_rules().into_iter().filter(|rule| rule != "CatalogInvalid").collect()
    }

    fn help(&self) -> String {
        self.report()["checks"][0]["findings"][0]["help"].as_str().expect("help").to_owned()
    }

    fn unchecked(&self) -> String {
        self.report()["checks"][0]["unchecked"][0]["message"].as_str().unwrap_or_default().to_owned()
    }

    fn extension(&self) -> Value {
        self.report()["extensions"][0].clone()
    }
}

fn extension(catalog: Value) -> Value {
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "e"},
        "spec": {"namespace": "operators", "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": catalog}}})
}

/// A catalog of the package `p`: channels with entries, bundles `p.vVERSION`, and further blobs.
fn catalog(channels: Value, versions: &[&str], more: &[Value]) -> String {
    let mut blobs = vec![json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"})];
    for (name, entries) in channels.as_object().expect("channels") {
        blobs.push(json!({"schema": "olm.channel", "package": "p", "name": name, "entries": entries}));
    }
    for version in versions {
        let properties = json!([{"type": "olm.package", "value": {"packageName": "p", "version": version}}]);
        blobs.push(
            json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{version}"), "properties": properties}),
        );
    }
    blobs.extend_from_slice(more);
    blobs.iter().map(Value::to_string).collect()
}

/// The entries of one channel as a chain of `replaces`, the first version first.
fn chain(versions: &[&str]) -> Value {
    let entry = |(at, version): (usize, &&str)| match at {
        0 => json!({"name": format!("p.v{version}")}),
        _ => json!({"name": format!("p.v{version}"), "replaces": format!("p.v{}", versions[at - 1])}),
    };
    versions.iter().enumerate().map(entry).collect()
}

fn chained(versions: &[&str]) -> String {
    catalog(json!({"a": chain(versions)}), versions, &[])
}

/// Entries as `version edges`: `2.0.0 skips=1.0.0`, `2.0.0 range=<2.0.0`.
fn entries(lines: &[&str]) -> Value {
    let entry = |line: &&str| {
        let (version, edge) = line.split_once(' ').unwrap_or((line, ""));
        let mut entry = json!({"name": format!("p.v{version}")});
        match edge.split_once('=') {
            Some(("replaces", of)) => entry["replaces"] = format!("p.v{of}").into(),
            Some(("skips", of)) => entry["skips"] = of.split(',').map(|of| format!("p.v{of}")).collect(),
            Some((_, range)) => entry["skipRange"] = range.into(),
            None => {}
        }
        entry
    };
    lines.iter().map(entry).collect()
}

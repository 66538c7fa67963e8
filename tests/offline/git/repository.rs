//! Repositories for tests, and runs of `gantry` in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::sentences::shown;

/// A repository in its own folder, isolated from this machine's git configuration.
pub struct Repository {
    pub folder: TempDir,
}

/// The result of a `gantry` run.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Repository {
    pub fn new() -> Self {
        let repository = Repository { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(repository.root()).unwrap();
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    /// A repository with one commit that has these files.
    pub fn with(files: &[(&str, String)]) -> Self {
        let repository = Self::new();
        files.iter().for_each(|(file, text)| repository.write(file, text));
        repository.commit();
        repository
    }

    /// A repository with one commit that has this CRD in `deploy/crds/crd.yaml`.
    pub fn with_crd(fields: &[&str]) -> Self {
        Self::with(&[("deploy/crds/crd.yaml", crd(fields))])
    }

    /// A repository whose only commit has both fields of the CRD in `deploy/crds/crd.yaml`; the folder lacks the
    /// second one.
    pub fn with_removed_field() -> Self {
        let repository = Self::with_crd(&["keep", "gone"]);
        repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
        repository
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    pub fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.root(), arguments)
    }

    /// Commits all files of the folder.
    pub fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
    }

    /// A new clone next to it, over a protocol that supports partial clones.
    pub fn clone(&self, options: &[&str]) -> PathBuf {
        let from = format!("file://{}", self.root().display());
        let to = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let arguments = [&["clone", "-q"], options, &[&from, to.to_str().unwrap()]].concat();
        git(self.folder.path(), &arguments);
        to
    }

    /// Runs `gantry check` of the folder `deploy`.
    pub fn check_deploy(&self, target: &str) -> Ended {
        self.check(&["-f", "deploy", "--target", target])
    }

    /// Runs `gantry check` in the folder.
    pub fn check(&self, arguments: &[&str]) -> Ended {
        check_in(&self.root(), arguments)
    }
}

pub fn quiet(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    // Maintenance would go on in the background and write while the test removes the folder.
    let settings =
        ["user.name=test", "user.email=test@example.com", "protocol.file.allow=always", "maintenance.auto=false"];
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    let mut command = Command::new("git");
    let output = quiet(&mut command).args(settings).args(arguments).current_dir(folder).output().expect("git");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    quiet(&mut command).args(arguments).current_dir(folder).env("HOME", folder).env_remove("XDG_CONFIG_HOME");
    command
}

pub fn ended(mut command: Command) -> Ended {
    let output = command.output().expect("gantry");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub fn check_in(folder: &Path, arguments: &[&str]) -> Ended {
    ended(command(folder, &[&["check"], arguments].concat()))
}

impl Ended {
    #[track_caller]
    pub fn code(&self, expected: i32) -> &Self {
        assert_eq!(self.code, Some(expected), "{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        // Long lines are wrapped.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (stdout, stderr) = (words(&self.stdout), words(&self.stderr));
        assert!(stderr.contains(text) || stdout.contains(text), "{text}\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Everything that the user sees.
    pub fn shown(&self) -> String {
        shown(self.code, &self.stdout, &self.stderr)
    }

    pub fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }

    /// The action and the object of each change.
    pub fn changes(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let report = self.report();
        let changes = report["changes"].as_array().expect("changes");
        changes.iter().map(|change| (text(&change["action"]), text(&change["object"]["name"]))).collect()
    }
}

/// A CRD whose only version has these fields.
pub fn crd(fields: &[&str]) -> String {
    crd_named("samples", fields)
}

pub fn crd_named(plural: &str, fields: &[&str]) -> String {
    let fields: String = fields.iter().map(|field| format!("              {field}: {{type: string}}\n")).collect();
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.test.example.com
spec:
  group: test.example.com
  names: {{kind: Kind{plural}, plural: {plural}}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
{fields}"
    )
}

pub fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
}

//! Text that a CI host would read as a command, in each place of the input, and in every format that goes to a log.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Texts that would run a command, wherever they are (a marker) or on a line of their own.
const COMMANDS: &[&str] = &[
    "##[error]x",
    "##vso[task.complete result=Succeeded]x",
    "##teamcity[buildStop comment='x']",
    "\n::stop-commands::x",
    "\n  ::error::x",
    "\n\t::add-mask::x",
    "\r::warning::x",
    "\u{a0}::notice::x",
    "\n##[group]x",
    "section_start:1:x\r\u{1b}[0Kx",
];

const FORMATS: &[&str] = &["human", "json", "yaml", "sarif", "junit", "markdown", "github", "gitlab", "html"];

fn gantry(folder: &TempDir, host: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    command.args(arguments).current_dir(folder).env_clear().env("HOME", folder.path());
    command.env("PATH", std::env::var_os("PATH").unwrap()).env(host, "true").output().expect("gantry runs")
}

/// The lines that a CI host would take for a command. Of gantry's own (`-o github`) only the known ones are left out.
fn commands(text: &[u8], is_github: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(text).into_owned();
    let mut found = Vec::new();
    for line in text.split(['\n', '\r']) {
        let own = ["::error ", "::warning ", "::notice "].iter().any(|own| line.starts_with(own));
        // Control sequences of a terminal are not blanks, but some hosts remove them first.
        let start = line.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || !c.is_ascii());
        let marker = line.split("##").skip(1).any(|rest| {
            rest.split_once('[').is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        });
        if start.starts_with("::") && !(is_github && own) || marker || line.contains('\u{1b}') {
            found.push(line.to_owned());
        }
    }
    found
}

fn crd(text: &str, required: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    format!(
        r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.example.com, annotations: {{note: {quoted}}}}}
spec:
  group: example.com
  names: {{plural: things, singular: thing, kind: Thing, listKind: ThingList}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: {quoted}
        properties:
          spec:
            type: object
            properties:
              {quoted}: {{type: string, description: {quoted}, enum: [{quoted}, {required}]}}
            x-kubernetes-validations: [{{rule: "true", message: {quoted}}}]
"#
    )
}

#[test]
fn no_text_of_the_input_becomes_a_command_of_the_log() {
    for (index, hostile) in COMMANDS.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let quoted = serde_json::to_string(hostile).unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // A name of a file, a value that is shown, a value that is refused, a syntax error, and configuration.
        let file = format!("files/{}.yaml", hostile.replace('/', "_"));
        write("live/crd.yaml", crd(hostile, "a"));
        write("new/crd.yaml", crd(hostile, "b"));
        write(
            "named/a.yaml",
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {quoted}}}\ndata: {{a: {quoted}}}\n"),
        );
        write("kind/a.yaml", format!("apiVersion: {quoted}\nkind: {quoted}\nmetadata: {{name: a}}\n"));
        write("broken/a.yaml", format!("a: {quoted}\nb: [{quoted}\n{hostile}\n"));
        write("text/a.yaml", hostile.to_string());
        write(&file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: 1\ny: [\n".to_owned());
        write("c.yaml", format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{quoted}: 1\nnamespace: {quoted}\n"));
        let host = ["GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "BUILDKITE"][index % 4];
        for format in FORMATS {
            for arguments in [
                &["-f", "new"][..],
                &["-f", "named"],
                &["-f", "kind"],
                &["-f", "broken"],
                &["-f", "text"],
                &["-f", "files"],
                &["-f", hostile],
                &["-f", "new", "-c", "c.yaml"],
                &["-f", "new", "-c", hostile],
                &["-f", "new", "--target", &format!("dir:{hostile}")],
                &["-f", "new", "--target", &format!("git:{hostile}")],
                &["-f", "new", "--baseline", hostile],
                &["-f", "new", "--preflight", hostile],
                &["-f", "new", "--render", &format!("sh -c 'printf \"%s\" \"$1\" >&2; exit 1' x {quoted} {{dir}}")],
                &[hostile],
                &[&format!("--{hostile}")],
            ] {
                let all = [&["check", "--target", "dir:live", "-o", format], arguments].concat();
                let all: Vec<&str> = match arguments.contains(&"--target") {
                    true => [&["check", "-o", format][..], arguments].concat(),
                    false => all,
                };
                let output = gantry(&folder, host, &all);
                let is_github = *format == "github";
                assert_eq!(commands(&output.stdout, is_github), Vec::<String>::new(), "{hostile:?} {all:?}");
                assert_eq!(commands(&output.stderr, false), Vec::<String>::new(), "{hostile:?} {all:?}");
            }
        }
        let shown = gantry(&folder, host, &["diff", "-f", "named", "--target", "dir:live"]);
        assert_eq!(commands(&shown.stdout, false), Vec::<String>::new(), "{hostile:?}");
        let report =
            |format| gantry(&folder, host, &["check", "-f", "new", "--target", "dir:live", "-o", format]).stdout;
        let yaml: serde_json::Value = serde_yaml::from_slice(&report("yaml")).expect("the report stays YAML");
        let report: serde_json::Value = serde_json::from_slice(&report("json")).expect("the report stays JSON");
        assert_eq!(yaml, report);
        assert!(report["checks"].to_string().contains(&quoted.trim_matches('"').replace("\\n", "")[..2]));
    }
}

/// Only one function writes to standard output.
#[test]
fn standard_output_is_written_in_one_place() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/run"))];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("host.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let unguarded = text.lines().filter(|line| {
                    line.contains("host.stdout")
                        && !["host.stdout(", "take_stdout(", "stdout_is_terminal", "Guarded::new(", "host.stdout ="]
                            .iter()
                            .any(|way| line.contains(way))
                });
                assert_eq!(unguarded.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", path.display());
            }
        }
    }
}

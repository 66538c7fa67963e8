//! Files for other tools: completion scripts, manual pages, the kubectl plugin, and the files for code hosts.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gantry_admission::install::{self, InstallOptions};
use gantry_core::options::AdmissionMode;
use serde_json::Value;

const GANTRY: &str = env!("CARGO_BIN_EXE_gantry");

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn gantry(arguments: &[&str]) -> String {
    let output = Command::new(GANTRY).args(arguments).output().expect("gantry");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text(&output)
}

pub fn yaml(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A repository whose working tree matches its only commit, on a branch that a pipeline has fetched.
fn repository(folder: &Path) {
    let crd = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    fs::create_dir(folder.join("deploy")).unwrap();
    fs::write(folder.join("deploy/a.yaml"), crd).unwrap();
    let user = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "one"],
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
    ] {
        let git = Command::new("git")
            .args(user)
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status();
        assert!(git.expect("git").success(), "{arguments:?}");
    }
}

/// Runs a script in such a repository, as a code host would.
pub fn run(script: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let programs = Path::new(GANTRY).parent().unwrap().display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    bash.envs(variables.iter().copied()).output().expect("bash")
}

/// What bash offers for the last of these words.
fn completed_by_bash(words: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    let script = folder.join("gantry.bash");
    fs::write(&script, gantry(&["completions", "bash"])).unwrap();
    let count = words.split(' ').count() - 1;
    let last = words.rsplit(' ').next().unwrap();
    let complete = format!(
        "set -e; source '{}'; complete -p gantry >/dev/null; COMP_WORDS=({words}); COMP_CWORD={count}; \
         _clap_complete_gantry gantry '{last}' '' || true; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let output = run(&complete, folder, variables);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    text(&output).trim().to_owned()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let contexts = "contexts: [{name: prod-east, context: {cluster: a, user: a}}, {name: prod-west, context: {cluster: a, user: a}}]";
    fs::write(&kubeconfig, format!("apiVersion: v1\nkind: Config\n{contexts}\n")).unwrap();
    let variables = [("KUBECONFIG", kubeconfig.to_str().unwrap())];
    for (words, expected) in [
        ("gantry snap", "snapshot"),
        ("gantry check --redac", "--redact"),
        ("gantry check --preflight CRDU", "CRDUpgradeSafety"),
        ("gantry check --preflight APIAvailability,AdmissionD", "APIAvailability,AdmissionDryRun"),
        ("gantry check --preset ev", "evidence"),
        ("gantry rules NoScope", "NoScopeChange"),
        ("gantry check --fail-on ", "error warning"),
        ("gantry check -o j", "json junit"),
        ("gantry check --target c", "chart:"),
        ("gantry check --context prod", "prod-east prod-west"),
        ("gantry check --context prod-east,prod-w", "prod-east,prod-west"),
        // The cluster cannot be reached, and nothing is said about that.
        ("gantry check -n te", ""),
    ] {
        assert_eq!(completed_by_bash(words, folder.path(), &variables), expected, "{words}");
    }
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        assert!(gantry(&["completions", shell]).contains("_GANTRY_COMPLETE"), "{shell}");
    }
}

#[test]
fn a_plugin_of_kubectl_completes_words() {
    let completed = |line: &str| -> Vec<String> {
        let words: Vec<&str> = ["complete-words"].into_iter().chain(line.split(' ')).collect();
        gantry(&words).lines().map(str::to_owned).collect()
    };
    assert_eq!(completed("che"), ["check", ":4"]);
    assert_eq!(completed("check --targ"), ["--target", ":4"]);
    assert_eq!(completed("check -f x --color "), ["always", "auto", "never", ":4"]);
    assert_eq!(completed("check --preflight=AdmissionD"), ["--preflight=AdmissionDryRun", ":4"]);
    assert_eq!(completed("config s"), ["schema", "show", ":4"]);
    assert_eq!(completed("completions z"), ["zsh", ":4"]);
    assert_eq!(completed("check -f ma"), [":0"]);
    assert!(!completed("").contains(&"complete-words".to_owned()));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    gantry(&["man", pages.to_str().unwrap()]);
    for page in ["gantry.1", "gantry-check.1", "gantry-snapshot.1", "gantry-config-show.1"] {
        let text = fs::read_to_string(pages.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(".SH NAME"), "{page}");
    }
    assert!(!pages.join("gantry-complete-words.1").exists());
}

#[test]
fn usage_of_the_plugin_shows_the_command_that_the_user_types() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-gantry");
    std::os::unix::fs::symlink(GANTRY, &plugin).unwrap();
    let help = text(&Command::new(&plugin).args(["check", "--help"]).output().unwrap());
    assert!(help.contains("Usage: kubectl gantry check [OPTIONS]"), "{help}");
    let wrong = Command::new(&plugin).args(["check", "--no-such"]).output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("kubectl gantry check"));
    assert!(gantry(&["check", "--help"]).contains("Usage: gantry check [OPTIONS]"));
    let completer = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/kubectl_complete-gantry");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let completed = Command::new(completer).args(["snap"]).env("PATH", path).output().unwrap();
    assert_eq!(text(&completed), "snapshot\n:4\n");
    let krew = yaml("packaging/krew/gantry.yaml");
    assert_eq!(krew["kind"], "Plugin");
    let platforms = krew["spec"]["platforms"].as_array().unwrap();
    assert!(platforms.iter().all(|platform| platform["bin"] == "kubectl-gantry" && platform["sha256"].is_string()));
}

#[test]
fn the_action_compares_a_pull_request_with_its_base() {
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().unwrap();
    let check = steps.iter().find(|step| step["id"] == "check").unwrap();
    let folder = tempfile::tempdir().unwrap();
    repository(folder.path());
    let (summary, output) = (folder.path().join("summary"), folder.path().join("output"));
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    // Links of a pull request, at the names that a report could have.
    let config = fs::read(folder.path().join(".git/config")).unwrap();
    for name in ["gantry.md", "gantry.sarif"] {
        std::os::unix::fs::symlink(".git/config", folder.path().join(name)).unwrap();
    }
    let variables = [
        ("FILES", "deploy/\n"),
        ("TARGET", ""),
        ("BASE", "main"),
        ("MORE", ""),
        ("SARIF", ""),
        ("RUNNER_TEMP", temporary.to_str().unwrap()),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
        ("GITHUB_OUTPUT", output.to_str().unwrap()),
    ];
    let script = check["run"].as_str().unwrap();
    let passed = run(script, folder.path(), &variables);
    assert!(passed.status.success(), "{}{}", text(&passed), String::from_utf8_lossy(&passed.stderr));
    let outputs = fs::read_to_string(&output).unwrap();
    let output_named = |name: &str| {
        let line = outputs.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {name}: {outputs}")).to_owned()
    };
    let sarif = output_named("sarif");
    assert!(Path::new(&sarif).starts_with(&temporary), "{outputs}");
    assert!(fs::read_to_string(output_named("markdown")).unwrap().starts_with("### gantry"));
    assert_eq!(output_named("exit-code"), "0");
    let report: Value = serde_json::from_slice(&fs::read(sarif).unwrap()).unwrap();
    assert_eq!(report["version"], "2.1.0");
    assert!(fs::metadata(&summary).unwrap().len() > 0);
    assert_eq!(fs::read(folder.path().join(".git/config")).unwrap(), config);
    let relative = variables.map(|(name, value)| if name == "SARIF" { (name, "gantry.sarif") } else { (name, value) });
    assert_eq!(run(script, folder.path(), &relative).status.code(), Some(2), "a path in the clone");
    assert_eq!(fs::read(folder.path().join(".git/config")).unwrap(), config);
    fs::write(folder.path().join("deploy/a.yaml"), "a: [").unwrap();
    fs::remove_file(&output).unwrap();
    assert_eq!(run(script, folder.path(), &variables).status.code(), Some(1), "the exit code is gantry's");
    assert!(fs::read_to_string(&output).unwrap().contains("exit-code=1"));
    let names: Vec<&String> = check["env"].as_object().unwrap().keys().collect();
    assert!(names.iter().all(|name| variables.iter().any(|(known, _)| known == name)), "{names:?}");
}

/// To update the files: `UPDATE_DOCS=1 cargo test --test offline packaging`.
#[test]
fn the_manifests_of_the_webhook_are_those_that_the_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/kubernetes/admission");
    let printed = [
        ("webhook.yaml", install::manifests(&InstallOptions::default())),
        ("policy.yaml", install::policy(AdmissionMode::Warn)),
    ];
    for (file, text) in printed {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(folder.join(file), &text).unwrap();
        }
        assert_eq!(fs::read_to_string(folder.join(file)).unwrap_or_default(), text, "{file} is not up to date");
    }
    let resources = &yaml("packaging/kubernetes/admission/kustomization.yaml")["resources"];
    assert_eq!(*resources, serde_json::json!(["webhook.yaml"]));
}

/// The tests that docs/internals/testing.md names exist.
#[test]
fn the_tests_that_the_documents_name_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let text = read("docs/internals/testing.md");
    let named: Vec<(&str, &str)> = text.split('`').filter_map(|word| word.split_once(".rs::")).collect();
    assert!(named.len() > 25, "{}", named.len());
    for (file, name) in named {
        assert!(read(&format!("{file}.rs")).contains(&format!("fn {name}()")), "{file}.rs has no test {name}");
    }
}

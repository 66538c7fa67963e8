//! The jobs for pull requests and merge requests that users copy, run as their host would: the steps of the workflow with
//! the scripts of the action, in a repository with a branch.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use regex::{Captures, Regex};
use serde_json::Value;
use tempfile::TempDir;

use super::packaging::{run, text, yaml};

const WORKFLOWS: [&str; 2] = ["packaging/github/pull-request.yml", "packaging/github/pull-request-from-source.yml"];

fn said(output: &Output) -> String {
    format!("{}{}", text(output), String::from_utf8_lossy(&output.stderr))
}

/// A clone of a repository, with a branch of a pull request checked out.
struct PullRequest {
    folder: TempDir,
    /// The commit where the branch left `main`.
    base: String,
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let user = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    let mut git = Command::new("git");
    let output = git.args(user).args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").output();
    let output = output.expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text(&output).trim().to_owned()
}

fn crd(maximum: u32) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {{name: samples.test.example.com}}\nspec:\n  group: test.example.com\n  scope: Namespaced\n  \
         names: {{plural: samples, kind: Sample}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    \
         schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          size: {{type: integer, \
         maximum: {maximum}}}\n"
    )
}

impl PullRequest {
    /// A pull request that changes the maximum from 10.
    fn new(maximum: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::create_dir_all(at.join("clone/deploy")).unwrap();
        fs::create_dir(at.join("temporary")).unwrap();
        let clone = at.join("clone");
        let commit = |maximum: u32, message: &str| {
            fs::write(clone.join("deploy/crd.yaml"), crd(maximum)).unwrap();
            git(&clone, &["add", "-A"]);
            git(&clone, &["commit", "-q", "--allow-empty", "-m", message]);
        };
        git(&clone, &["init", "-q", "-b", "main"]);
        commit(10, "one");
        let base = git(&clone, &["rev-parse", "HEAD"]);
        git(&clone, &["checkout", "-q", "-b", "change"]);
        commit(maximum, "change");
        // What others have merged in the meantime does not count.
        git(&clone, &["checkout", "-q", "main"]);
        commit(3, "two");
        git(&clone, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
        git(&clone, &["checkout", "-q", "change"]);
        PullRequest { folder, base }
    }

    fn clone(&self) -> PathBuf {
        self.folder.path().join("clone")
    }
}

/// What a step of the action sees: the variables of the runner, the inputs of the workflow, the outputs of other steps.
struct Runner<'p> {
    of: &'p PullRequest,
    labels: &'static [&'static str],
    inputs: Vec<(String, String)>,
    outputs: Vec<(String, String)>,
}

impl<'p> Runner<'p> {
    fn new(of: &'p PullRequest, workflow: &'static str, labels: &'static [&'static str]) -> Self {
        let mut runner = Runner { of, labels, inputs: Vec::new(), outputs: Vec::new() };
        let steps = yaml(workflow)["jobs"]["check"]["steps"].take();
        let uses = steps.as_array().unwrap().iter().find(|step| step["id"] == "gantry").unwrap()["with"].clone();
        for (name, input) in yaml("action.yml")["inputs"].as_object().unwrap() {
            let given = uses.get(name).or(input.get("default")).map_or("", |value| value.as_str().unwrap());
            runner.inputs.push((name.clone(), given.to_owned()));
        }
        // The expressions of the workflow need no inputs.
        let inputs = runner.inputs.clone();
        runner.inputs = inputs.into_iter().map(|(name, value)| (name, runner.expand(&value))).collect();
        for name in uses.as_object().unwrap().keys() {
            assert!(runner.inputs.iter().any(|(known, _)| known == name), "the action has no input {name}");
        }
        runner
    }

    /// The value of the expressions in a text. Only those that the files use are known.
    fn expand(&self, text: &str) -> String {
        let named = |list: &[(String, String)], name: &str| {
            list.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let label = Regex::new(
            r"^contains\(github\.event\.pull_request\.labels\.\*\.name, '([^']+)'\) && '([^']*)' \|\| '([^']*)'$",
        )
        .unwrap();
        let value = |expression: &str| -> String {
            if let Some(name) = expression.strip_prefix("inputs.") {
                return named(&self.inputs, name);
            }
            if let Some(name) = expression.strip_prefix("steps.check.outputs.") {
                return named(&self.outputs, name);
            }
            if let Some(found) = label.captures(expression) {
                return if self.labels.contains(&&found[1]) { &found[2] } else { &found[3] }.to_owned();
            }
            match expression {
                "github.base_ref" => "main",
                "github.repository" => "team/shop",
                "github.event.pull_request.number" => "7",
                "github.token" => "secret-token",
                other => panic!("the test knows no value of {other}"),
            }
            .to_owned()
        };
        let expression = Regex::new(r"\$\{\{\s*(.*?)\s*\}\}").unwrap();
        expression.replace_all(text, |found: &Captures<'_>| value(&found[1])).into_owned()
    }

    /// Runs a step of the action by its name, with these programs before those of the system.
    fn run(&mut self, name: &str, programs: Option<&Path>) -> Output {
        let action = yaml("action.yml");
        let steps = action["runs"]["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name}"));
        let at = |file: &str| self.of.folder.path().join(file).to_str().unwrap().to_owned();
        let mut variables = vec![
            ("RUNNER_TEMP".to_owned(), at("temporary")),
            ("GITHUB_STEP_SUMMARY".to_owned(), at("summary")),
            ("GITHUB_OUTPUT".to_owned(), at("output")),
            ("GITHUB_PATH".to_owned(), at("path")),
        ];
        for (name, value) in step["env"].as_object().unwrap() {
            variables.push((name.clone(), self.expand(value.as_str().unwrap())));
        }
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        let path = programs.map_or(String::new(), |folder| format!("PATH='{}':$PATH\n", folder.display()));
        let _ = fs::remove_file(self.of.folder.path().join("output"));
        let script = step["run"].as_str().unwrap();
        assert!(!script.contains("${{"), "values are variables and never a part of the script: {script}");
        let output = run(&format!("{path}{script}"), &self.of.clone(), &variables);
        if let Ok(written) = fs::read_to_string(self.of.folder.path().join("output")) {
            let outputs = written.lines().filter_map(|line| line.split_once('='));
            self.outputs = outputs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        }
        output
    }

    fn check(&mut self) -> Output {
        self.run("Check", None)
    }
}

#[test]
fn a_pull_request_is_checked_from_both_sides_in_git() {
    for workflow in WORKFLOWS {
        let broken = PullRequest::new(5);
        // Not what is committed, and so not what is checked.
        fs::write(broken.clone().join("deploy/crd.yaml"), crd(10)).unwrap();
        let mut runner = Runner::new(&broken, workflow, &[]);
        let output = runner.check();
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let annotation = text(&output);
        assert!(annotation.contains("::error file=deploy/crd.yaml,line="), "{annotation}");
        assert!(annotation.contains("NoMaximumTightened") && annotation.contains("from 10 to 5"), "{annotation}");
        assert!(fs::read_to_string(broken.folder.path().join("summary")).unwrap().contains("NoMaximumTightened"));

        let mut accepted = Runner::new(&broken, workflow, &["gantry-accepted"]);
        let output = accepted.check();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(text(&output).contains("::warning file=deploy/crd.yaml"), "{}", text(&output));

        let wider = PullRequest::new(20);
        let output = Runner::new(&wider, workflow, &["other"]).check();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
}

#[test]
fn a_label_does_not_accept_what_could_not_be_checked() {
    let request = PullRequest::new(5);
    fs::write(request.clone().join("deploy/crd.yaml"), "a: [").unwrap();
    git(&request.clone(), &["commit", "-q", "-a", "-m", "broken"]);
    let output = Runner::new(&request, WORKFLOWS[0], &["gantry-accepted"]).check();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    // A clone without the base.
    let request = PullRequest::new(5);
    git(&request.clone(), &["update-ref", "-d", "refs/remotes/origin/main"]);
    let output = Runner::new(&request, WORKFLOWS[0], &["gantry-accepted"]).check();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("origin/main"), "{}", said(&output));
}

#[test]
fn a_pull_request_that_accepts_its_own_findings_is_blocked_without_the_label() {
    let request = PullRequest::new(5);
    let waiver =
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\nwaivers:\n- {rule: NoMaximumTightened, reason: fine}\n";
    fs::write(request.clone().join("gantry.yaml"), waiver).unwrap();
    git(&request.clone(), &["add", "-A"]);
    git(&request.clone(), &["commit", "-q", "-m", "waive"]);
    let output = Runner::new(&request, WORKFLOWS[0], &[]).check();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("gantry.yaml"), "{}", said(&output));
    let output = Runner::new(&request, WORKFLOWS[0], &["gantry-accepted"]).check();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// A fake of the host's program, which keeps comments in files and answers as the host does.
fn fake_host(folder: &Path) -> PathBuf {
    let programs = folder.join("bin");
    fs::create_dir_all(programs.join("comments")).unwrap();
    let script = r#"#!/usr/bin/env bash
set -euo pipefail
here=$(dirname "$0")
[ -n "$GH_TOKEN" ] || { echo "no token" >&2; exit 4; }
[ ! -f "$here/forbidden" ] || { echo "HTTP 403: Resource not accessible by integration" >&2; exit 1; }
method=GET body= filter= path=
while [ $# -gt 0 ]; do
  case "$1" in
    api|--paginate|--silent) ;;
    --method) method=$2; shift ;;
    --field) body=${2#body=@}; shift ;;
    --jq) filter=$2; shift ;;
    *) path=$1 ;;
  esac
  shift
done
case "$method $path" in
  "GET repos/team/shop/issues/7/comments")
    for file in "$here"/comments/*; do
      [ -e "$file" ] || continue
      jq -n --arg id "$(basename "$file")" --rawfile body "$file" \
        '{id: ($id | tonumber), user: {type: (if $body | startswith("human") then "User" else "Bot" end)}, body: $body}'
    done | jq -s . | jq -r "$filter" ;;
  "POST repos/team/shop/issues/7/comments") cp "$body" "$here/comments/$((900 + $(ls "$here/comments" | wc -l)))" ;;
  "PATCH repos/team/shop/issues/comments/"*) cp "$body" "$here/comments/${path##*/}" ;;
  *) echo "unexpected: $method $path" >&2; exit 1 ;;
esac
"#;
    fs::write(programs.join("gh"), script).unwrap();
    fs::set_permissions(programs.join("gh"), fs::Permissions::from_mode(0o755)).unwrap();
    programs
}

fn comments(programs: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(programs.join("comments")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn one_comment_follows_the_pull_request() {
    let request = PullRequest::new(5);
    let programs = fake_host(request.folder.path());
    // Comments of people and of other bots stay as they are, also one that quotes the report.
    fs::write(programs.join("comments/1"), "human <!-- gantry check -->").unwrap();
    fs::write(programs.join("comments/2"), "another bot").unwrap();
    let others = comments(&programs);
    let mut runner = Runner::new(&request, WORKFLOWS[0], &[]);
    runner.check();
    let commented = runner.run("Comment", Some(&programs));
    assert!(commented.status.success(), "{}", said(&commented));
    let first = comments(&programs);
    assert_eq!((first.len(), &first[..2]), (3, &others[..]), "{first:?}");
    assert!(first[2].starts_with("<!-- gantry check -->\n### gantry: Would be blocked"), "{}", first[2]);

    // The next push mends it, and the comment says so.
    fs::write(request.clone().join("deploy/crd.yaml"), crd(20)).unwrap();
    git(&request.clone(), &["commit", "-q", "-a", "-m", "mend"]);
    runner.check();
    assert!(runner.run("Comment", Some(&programs)).status.success());
    let second = comments(&programs);
    assert_eq!((second.len(), &second[..2]), (3, &others[..]));
    assert!(second[2].contains("gantry: Planned") && !second[2].contains("blocked"), "{}", second[2]);
}

#[test]
fn a_pull_request_without_findings_gets_no_comment_and_one_without_a_report_fails_nothing() {
    let request = PullRequest::new(20);
    let programs = fake_host(request.folder.path());
    let mut runner = Runner::new(&request, WORKFLOWS[0], &[]);
    runner.check();
    assert!(runner.run("Comment", Some(&programs)).status.success());
    assert!(comments(&programs).is_empty());
    // A usage error ends gantry before it writes a report.
    runner.inputs.iter_mut().find(|(name, _)| name == "args").unwrap().1 = "--no-such-flag".into();
    assert_eq!(runner.check().status.code(), Some(2));
    let output = runner.run("Comment", Some(&programs));
    assert!(
        output.status.success() && text(&output).contains("::warning::gantry: there is no report"),
        "{}",
        said(&output)
    );
    assert!(comments(&programs).is_empty());
}

#[test]
fn a_comment_that_the_host_refuses_fails_the_step() {
    let request = PullRequest::new(5);
    let programs = fake_host(request.folder.path());
    fs::write(programs.join("forbidden"), "").unwrap();
    let mut runner = Runner::new(&request, WORKFLOWS[0], &[]);
    runner.check();
    let output = runner.run("Comment", Some(&programs));
    assert!(!output.status.success() && said(&output).contains("403"), "{}", said(&output));
    assert!(!said(&output).contains("secret-token"));
}

#[test]
fn an_archive_is_installed_only_with_its_checksum() {
    let request = PullRequest::new(5);
    let at = |name: &str| request.folder.path().join(name);
    fs::create_dir(at("release")).unwrap();
    fs::write(at("release/gantry"), "#!/bin/sh\necho this release\n").unwrap();
    fs::set_permissions(at("release/gantry"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-czf", "gantry-linux-amd64.tar.gz", "-C", "release", "gantry"]).current_dir(request.folder.path());
    assert!(tar.status().unwrap().success());
    let archive = fs::read(at("gantry-linux-amd64.tar.gz")).unwrap();
    let sum: String = ring::digest::digest(&ring::digest::SHA256, &archive)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // The host's programs: the system that the archive is for, and a curl that copies.
    let programs = at("bin");
    fs::create_dir(&programs).unwrap();
    for (name, script) in [
        ("uname", "case $1 in -s) echo Linux ;; -m) echo \"${MACHINE:-x86_64}\" ;; esac".to_owned()),
        ("curl", format!("for last; do :; done; cp \"{}/${{last##*/}}\" \"$6\"", request.folder.path().display())),
        ("shasum", "shift 2; exec sha256sum \"$@\"".to_owned()),
    ] {
        fs::write(programs.join(name), format!("#!/usr/bin/env bash\n{script}\n")).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut runner = Runner::new(&request, WORKFLOWS[0], &[]);
    let mut install = |url: &str, sum: &str| {
        for (name, value) in [("version", "v0.1.0"), ("download-url", url), ("sha256", sum)] {
            runner.inputs.iter_mut().find(|(known, _)| known == name).unwrap().1 = value.to_owned();
        }
        let _ = fs::remove_file(at("path"));
        (runner.run("Install gantry", Some(&programs)), fs::read_to_string(at("path")).unwrap_or_default())
    };
    let url = "https://host.example/{version}/gantry-{platform}.tar.gz";
    let (installed, path) = install(url, &sum);
    assert!(installed.status.success(), "{}", said(&installed));
    let ran = Command::new(Path::new(path.trim()).join("gantry")).output().unwrap();
    assert_eq!(text(&ran), "this release\n");
    let (refused, path) = install(url, &sum.replace(|digit: char| digit.is_ascii_digit(), "0"));
    assert!(!refused.status.success() && path.is_empty(), "{}", said(&refused));
    let (refused, path) = install(url, "");
    assert_eq!((refused.status.code(), &*path), (Some(2), ""), "{}", said(&refused));
}

/// Other files must not need more than these, and a workflow's default is to read.
#[test]
fn the_workflows_ask_for_few_permissions_and_pin_what_they_use() {
    for file in WORKFLOWS {
        let workflow = yaml(file);
        assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}), "{file}");
        let job = &workflow["jobs"]["check"];
        let expected = serde_json::json!({"contents": "read", "pull-requests": "write", "security-events": "write"});
        assert_eq!(job["permissions"], expected, "{file}");
        let steps = job["steps"].as_array().unwrap();
        let checkout = &steps[0]["with"];
        assert_eq!((&checkout["fetch-depth"], &checkout["persist-credentials"]), (&0.into(), &false.into()), "{file}");
    }
}

#[test]
fn the_job_for_gitlab_compares_with_the_base_of_the_merge_request() {
    let job = &yaml("packaging/gitlab/gantry.yml")["gantry"];
    let check = |request: &PullRequest, rule: &Value| {
        let variable = |name: &str| {
            let given = rule["variables"].get(name).unwrap_or(&job["variables"][name]);
            (name.to_owned(), given.as_str().unwrap().to_owned())
        };
        let mut variables = vec![variable("ACCEPTED"), ("MANIFESTS".into(), "deploy/".into())];
        variables.push(("CI_MERGE_REQUEST_DIFF_BASE_SHA".into(), request.base.clone()));
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        run(job["script"][0].as_str().unwrap(), &request.clone(), &variables)
    };
    let [accepting, plain] = &job["rules"].as_array().unwrap()[..] else { panic!("{job}") };
    let broken = PullRequest::new(5);
    // The clone of a merge request has no branches of the remote.
    git(&broken.clone(), &["update-ref", "-d", "refs/remotes/origin/main"]);
    let blocked = check(&broken, plain);
    assert_eq!(blocked.status.code(), Some(3), "{}", said(&blocked));
    assert!(said(&blocked).contains("from 10 to 5"), "{}", said(&blocked));
    let reports = job["artifacts"]["reports"].as_object().unwrap();
    assert!(reports.values().all(|file| broken.clone().join(file.as_str().unwrap()).exists()), "{reports:?}");
    let quality = fs::read_to_string(broken.clone().join(reports["codequality"].as_str().unwrap())).unwrap();
    assert!(serde_json::from_str::<Value>(&quality).unwrap()[0]["location"]["path"] == "deploy/crd.yaml", "{quality}");
    assert_eq!(check(&broken, accepting).status.code(), Some(0));
    assert_eq!(check(&PullRequest::new(20), plain).status.code(), Some(0));
    let condition = accepting["if"].as_str().unwrap();
    let labels = Regex::new(condition.split('/').nth(1).unwrap()).unwrap();
    assert!(["gantry::accepted", "a,gantry::accepted", "gantry::accepted,b"].iter().all(|list| labels.is_match(list)));
    assert!(["", "gantry::accepted-not", "not-gantry::accepted"].iter().all(|list| !labels.is_match(list)));
}

#[test]
fn the_hook_compares_with_the_last_commit() {
    let request = PullRequest::new(20);
    let hooks = yaml(".pre-commit-hooks.yaml");
    let entry = format!("{} -f deploy", hooks[0]["entry"].as_str().unwrap());
    let passed = run(&entry, &request.clone(), &[]);
    assert!(passed.status.success(), "{}", said(&passed));
    fs::write(request.clone().join("deploy/crd.yaml"), crd(5)).unwrap();
    let blocked = run(&entry, &request.clone(), &[]);
    assert_eq!(blocked.status.code(), Some(3), "{}", said(&blocked));
}

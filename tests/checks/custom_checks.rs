//! A team's own checks: programs and expressions that work, that fail, and that must not run.

use std::path::{Path, PathBuf};

use crate::support::{Bed, Gantry, Output, closed_port, control_plane, eventually};
use serde_json::{Value, json};

const CONFIG: &str = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n";

fn deployment(bed: &Bed, image: &str, replicas: u32) -> String {
    let namespace = &bed.names.namespace;
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - {{name: web, image: {image:?}}}
"
    )
}

fn bed_with(manifests: impl Fn(&Bed) -> String) -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &manifests(&bed));
    bed
}

/// `gantry check` with these entries of `preflightRules` in a file.
fn check(bed: &Bed, rules: &str, more: &[&str]) -> Output {
    bed.write("checks.yaml", &format!("{CONFIG}{rules}"));
    let arguments = ["check", "-f", "manifests.yaml", "-c", "checks.yaml"];
    bed.gantry(control_plane().kubeconfig("admin"), &arguments).args(more).run()
}

fn shell(name: &str, script: &str, more: &str) -> String {
    format!("- name: {name}\n  exec: {{command: [sh, -c, {}]{more}}}\n", Value::from(script))
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/checks/own-checks.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The first code block of this language that contains these words.
fn block(page: &str, language: &str, words: &str) -> String {
    let begin = format!("```{language}\n");
    let mut blocks = page.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(words)).expect(words).to_owned()
}

fn script(bed: &Bed, name: &str, text: &str) {
    bed.write(name, text);
    let path = bed.folder.path().join(name);
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made executable");
}

#[test]
fn the_checks_of_the_documentation_work_as_printed() {
    let page = page();
    let bed = bed_with(|bed| deployment(bed, "web:latest", 7));
    bed.write("limit.yaml", &block(&page, "yaml", "replica-limit"));
    std::fs::create_dir(bed.folder.path().join("ci")).expect("a folder");
    bed.write("ci/tag.yaml", &block(&page, "yaml", "no-latest-tag.sh"));
    script(&bed, "ci/no-latest-tag.sh", &block(&page, "sh", "no-latest-tag.sh"));
    let arguments = ["deploy", "-f", "manifests.yaml", "-c", "limit.yaml", "-c", "ci/tag.yaml"];
    let admin = control_plane().kubeconfig("admin");
    let run = bed.gantry(admin.clone(), &arguments).run();
    run.code(3)
        .stdout_contains("error[replica-limit]: at most 5 replicas, not 7")
        .stdout_contains("--> manifests.yaml:5:3")
        .stdout_contains("error[no-latest-tag]: an image without a version")
        .stdout_contains("from ci/tag.yaml:5")
        .stdout_contains("Nothing was written.");
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", bed.names.namespace);
    assert_eq!(control_plane().get(&path).0, 404);
    bed.write("manifests.yaml", &deployment(&bed, "web:1", 5));
    bed.gantry(admin, &arguments).run().code(0).stdout_contains("no-latest-tag             passed");
    assert_eq!(control_plane().get(&path).0, 200);
}

#[test]
fn the_examples_find_what_they_are_for() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("config-examples");
    let manifests = |bed: &Bed, image: &str, replicas: u32, volumes: &str, data: &str| {
        let namespace = &bed.names.namespace;
        let labels = format!("namespace: {namespace}, labels: {{owner: us}}}}");
        let deployment = deployment(bed, image, replicas).replacen(&format!("namespace: {namespace}}}"), &labels, 1);
        format!(
            "{deployment}      volumes: {volumes}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, {labels}\ndata: {data}\n"
        )
    };
    let bed = bed_with(|bed| manifests(bed, "registry.example.com/web:1", 8, "[]", "{a: x, b: x}"));
    let admin = control_plane().kubeconfig("admin");
    let run = |command: &str| {
        let run = bed.gantry(admin.clone(), &[command, "-f", "manifests.yaml", "-o", "json"]);
        let files = ["own-checks-cel.yaml", "own-checks-exec.yaml"];
        run.args(files.iter().flat_map(|file| [PathBuf::from("-c"), examples.join(file)])).run()
    };
    let first = run("deploy");
    first.code(0);
    let names = ["no-latest-tag", "owner-label", "scale-in-steps", "no-host-path", "data-kept", "allowed-registries"];
    let report = first.report();
    let checks: Vec<(&str, &str)> = report["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| (check["name"].as_str().unwrap_or_default(), check["status"].as_str().unwrap_or_default()))
        .collect();
    let names = ["CRDUpgradeSafety", "CustomResourceValidation"].into_iter().chain(names);
    assert_eq!(checks, names.map(|name| (name, "passed")).collect::<Vec<_>>());

    let bad = manifests(&bed, "elsewhere/web:latest", 3, "[{name: v, hostPath: {path: /}}]", "{a: x}");
    bed.write("manifests.yaml", &bad.replace("owner: us", "team: us"));
    let report = run("check").code(3).report();
    let found: Vec<String> = report["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .flat_map(|check| check["findings"].as_array().expect("findings"))
        .map(|finding| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let place = &finding["source"]["line"];
            let object = text(&finding["object"]["kind"]);
            let words = [&finding["rule"], &finding["severity"], &finding["path"], &finding["message"]].map(text);
            format!("{place} {object} {}", words.join(" "))
        })
        .collect();
    assert_eq!(
        found,
        [
            "10 Deployment no-latest-tag error spec.template.spec.containers every image must name a version",
            "16 ConfigMap owner-label warning metadata.labels no owner for ConfigMap c: set the label owner",
            "3 Deployment owner-label warning metadata.labels no owner for Deployment web: set the label owner",
            "5 Deployment scale-in-steps error spec.replicas replicas may at most be halved at a time: 8 to 3",
            "12 Deployment no-host-path error spec.template.spec.volumes mounts a folder of the node",
            "17 ConfigMap data-kept/key-removed warning data the key b is removed, and something may still read it",
            "11 Deployment allowed-registries error spec.template.spec.containers[0].image the image \
             elsewhere/web:latest is not from an allowed registry",
        ],
        "{report:#}"
    );
}

/// Whether a process is still running.
fn runs(pid: &str) -> bool {
    std::process::Command::new("kill")
        .args(["-0", pid])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// The process ids in a file, once it has two.
fn pids(bed: &Bed) -> Vec<String> {
    eventually("two processes run", || {
        let text = std::fs::read_to_string(bed.folder.path().join("pids")).ok()?;
        let pids: Vec<String> = text.lines().map(str::to_owned).collect();
        (pids.len() == 2).then_some(pids)
    })
}

const HANGS: &str = "sleep 1000 & echo $! >> pids; echo $$ >> pids; echo 'still at it' >&2; wait";

#[test]
fn a_program_that_hangs_is_stopped_with_all_that_it_started() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let run = check(&bed, &shell("slow", HANGS, ", timeout: 1s"), &[]);
    run.code(1)
        .stdout_contains("could not check: sh did not end within 1s and was stopped")
        .stdout_contains("checks.yaml:5:3");
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("it said: still at it"), "{run}");
    for pid in pids(&bed) {
        eventually("the program is gone", || (!runs(&pid)).then_some(()));
    }
}

#[test]
fn an_interrupt_stops_the_program() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    bed.write("checks.yaml", &format!("{CONFIG}{}", shell("slow", HANGS, ", timeout: 10m")));
    let arguments = ["check", "-f", "manifests.yaml", "-c", "checks.yaml"];
    let mut running = bed.gantry(control_plane().kubeconfig("admin"), &arguments).spawn();
    let pids = pids(&bed);
    running.interrupt();
    running.wait().code(1).stderr_contains("interrupted; nothing was written");
    for pid in pids {
        eventually("the program is gone", || (!runs(&pid)).then_some(()));
    }
}

#[test]
fn processes_that_a_program_leaves_behind_are_stopped_and_delay_nothing() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let leaves = "sleep 1000 & echo $! >> pids; echo $! >> pids; echo '{\"results\": []}'";
    check(&bed, &shell("quick", leaves, ", timeout: 10m"), &[])
        .code(0)
        .stdout_contains("quick                     passed");
    for pid in pids(&bed) {
        eventually("what it left is gone", || (!runs(&pid)).then_some(()));
    }
}

/// A process that leaves the program's group cannot be stopped with it, but delays nothing.
#[test]
fn a_process_that_leaves_the_group_of_a_program_does_not_delay_it() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    print(os.getpid(), file=open('pids', 'w'), flush=True)\n    time.sleep(1000)";
    let script = format!("python3 -c \"{daemon}\"; while [ ! -s pids ]; do :; done; echo '{{\"results\": []}}'");
    check(&bed, &shell("leaves", &script, ", timeout: 60s"), &[])
        .code(0)
        .stdout_contains("leaves                    passed");
    let pid = std::fs::read_to_string(bed.folder.path().join("pids")).expect("its process id");
    let killed = std::process::Command::new("kill").arg(pid.trim()).status().expect("run `kill`");
    assert!(killed.success(), "it still ran");
}

#[test]
fn a_program_that_floods_is_stopped() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let run = check(&bed, &shell("flood", "echo $$ >> pids; echo $$ >> pids; exec yes", ", timeout: 10m"), &[]);
    run.code(1).stdout_contains("could not check: sh answered more than 8 MiB and was stopped");
    for pid in pids(&bed) {
        eventually("the program is gone", || (!runs(&pid)).then_some(()));
    }
    // Standard error is for people: much of it is read, and little is kept.
    let script =
        "head -c 3000000 /dev/zero | tr '\\0' 'x' >&2; printf '\\nthe \\033[31mend\\n' >&2; echo '{\"results\": []}'";
    let run = check(&bed, &shell("loud", script, ""), &[]);
    run.code(0).stderr_contains("notice: loud says: …").stderr_contains("the \\u{1b}[31mend");
    assert!(run.stderr.len() < 2000, "{}", run.stderr.len());
}

#[test]
fn a_program_that_fails_or_prints_nonsense_has_checked_nothing() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    script(&bed, "not-executable.sh", "#!/bin/sh\n");
    #[cfg(unix)]
    std::fs::set_permissions(
        bed.folder.path().join("not-executable.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .expect("changed");
    for (rule, said) in [
        (
            shell("x", "echo no idea >&2; exit 3", ""),
            "sh failed (exit status: 3): a program that completed its check must exit with 0, whatever it found; it \
                said: no idea",
        ),
        (shell("x", "kill -9 $$", ""), "sh failed (signal: 9 (SIGKILL))"),
        (shell("x", "true", ""), "the answer of sh cannot be read: it is empty"),
        (shell("x", "cat", ""), "passed"),
        (shell("x", "echo fine", ""), "the answer of sh cannot be read: invalid type"),
        (shell("x", "echo '{}'", ""), "it has no results"),
        (shell("x", "echo '[null, []]'", ""), "it is a list, not a mapping"),
        (
            shell("x", "echo '{\"results\": [{\"message\": \"m\", \"severity\": \"fatal\"}]}'", ""),
            "unknown variant `fatal`",
        ),
        ("- {name: x, exec: {command: [./gone]}}\n".to_owned(), "gone cannot be started: No such file"),
        ("- {name: x, exec: {command: [./not-executable.sh]}}\n".to_owned(), "make it executable: chmod +x"),
    ] {
        let run = check(&bed, &rule, &["--warn-only"]);
        let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(said), "{said}\n{run}");
        run.code(if said == "passed" { 0 } else { 1 });
    }
}

#[test]
fn a_program_that_came_with_the_manifests_is_not_run() {
    let evil = format!("{CONFIG}{}", shell("mine", "touch ran; echo '{\"results\": []}'", ""));
    let bed = bed_with(|bed| format!("{}---\n{evil}", bed.config_map("a", "x")));
    let admin = control_plane().kubeconfig("admin");
    let ran = || bed.folder.path().join("ran").exists();
    // The check has no other definition: it could not check, and its place is named.
    let run = bed.deploy(admin.clone(), &[]).run();
    run.code(1)
        .stdout_contains("could not check: the manifests name this program")
        .stdout_contains("(manifests.yaml:10:3),")
        .stderr_contains("notice: manifests.yaml:10:3: ignored: \"exec\" of the check \"mine\"");
    assert!(!ran());
    assert_eq!(control_plane().get(&bed.config_map_path("a")).0, 404);
    // Without the check, or with the team's own definition, the deploy continues.
    bed.deploy(admin.clone(), &["--dry-run", "--preflight", "CRDUpgradeSafety"]).run().code(0);
    let cel = "- name: mine\n  cel: {expression: object.kind == 'ConfigMap'}\n";
    check(&bed, cel, &[]).code(0).stdout_contains("mine                      passed");
    let exec = shell("mine", "echo '{\"results\": []}'", "");
    check(&bed, &exec, &[]).code(0).stdout_contains("mine                      passed");
    assert!(!ran());
    // A project file that is itself one of the manifests is treated as a part of them.
    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    bed.write("gantry.yaml", &evil);
    std::fs::remove_file(bed.folder.path().join("checks.yaml")).expect("removed");
    bed.gantry(admin.clone(), &["check", "-f", "."])
        .run()
        .code(1)
        .stdout_contains("the manifests name this program (gantry.yaml:5:3)");
    assert!(!ran());
    // A project file that is not one of the manifests runs its program only if the user allows it.
    let check = |more: &[&str]| bed.gantry(admin.clone(), &["check", "-f", "manifests.yaml"]).args(more).run();
    check(&[])
        .code(1)
        .stdout_contains("mine                      could not check: the project file names this program");
    assert!(!ran());
    check(&["--allow-exec"]).code(0).stdout_contains("mine                      passed");
    assert!(ran());
}

/// If a user clones a repository and checks it, its programs must not run.
#[test]
fn a_program_of_the_project_file_runs_where_the_user_asks_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("write a file");
    };
    write("live/empty.yaml", "");
    write("manifests/a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
    let project = format!("{CONFIG}{}", shell("mine", "touch ran; echo '{\"results\": []}'", ""));
    write("gantry.yaml", &project);
    let ran = || std::fs::remove_file(folder.path().join("ran")).is_ok();
    let run = |more: &[&str], variable: &str, user: &str| {
        let arguments = ["check", "-f", "manifests", "--target", "dir:live", "-o", "json"];
        let gantry = Gantry::new().cwd(folder.path()).args(arguments).args(more).env("GANTRY_ALLOW_EXEC", variable);
        let own = gantry.home().join(".config/gantry");
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::write(own.join("config.yaml"), user).expect("write a file");
        gantry.run()
    };
    let allow = "apiVersion: gantry.dev/v1alpha1\nkind: Config\nallowExec: true\n";
    for (more, variable, user) in
        [(&[][..], "", ""), (&[], "0", allow), (&["--preflight", "mine"], "", ""), (&["--warn-only"], "", "")]
    {
        let output = run(more, variable, user);
        let report = output.code(1).report();
        let check = report["checks"].as_array().and_then(|checks| checks.last()).expect("a check");
        assert_eq!((&check["name"], &check["status"]), (&json!("mine"), &json!("failed")), "{output}");
        let help = check["unchecked"][0]["help"].as_str().unwrap_or_default();
        assert!(
            ["--allow-exec", "GANTRY_ALLOW_EXEC=1", "-c", "allowExec: true"].iter().all(|hint| help.contains(hint))
        );
        assert!(!ran(), "{output}");
    }
    for (more, variable, user) in
        [(&["--allow-exec"][..], "", ""), (&[], "1", ""), (&[], "", allow), (&["-c", "gantry.yaml"], "", "")]
    {
        let output = run(more, variable, user);
        let report = output.code(0).report();
        let checks = report["checks"].as_array().expect("checks");
        assert!(checks.iter().any(|check| check["name"] == "mine" && check["status"] == "passed"), "{output}");
        assert!(ran(), "{output}");
    }
    // Neither the project file itself nor the manifests can allow it.
    write("gantry.yaml", &project.replace("preflightRules", "allowExec: true\npreflightRules"));
    run(&[], "", "").code(2).stderr_contains("the project file cannot set \"allowExec\"");
    write("gantry.yaml", &project);
    write("manifests/z.yaml", allow);
    run(&[], "", "").code(2).stderr_contains("a Config document among the manifests cannot set \"allowExec\"");
    // A gantry.yaml that is one of the manifests is treated as a part of them.
    std::fs::remove_file(folder.path().join("manifests/z.yaml")).expect("removed");
    let output = run(&["-f", "gantry.yaml", "--allow-exec"], "", "");
    output.code(1).stdout_contains("the manifests name this program");
    assert!(!ran());
}

#[test]
fn no_program_sees_the_values_of_a_secret() {
    let secret = |bed: &Bed, value: &str| {
        let namespace = &bed.names.namespace;
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\nstringData: {{password: {value}}}\n"
        )
    };
    let bed = bed_with(|bed| secret(bed, "first-value"));
    let admin = control_plane().kubeconfig("admin");
    bed.deploy(admin, &["-q"]).run().code(0);
    bed.write("manifests.yaml", &secret(&bed, "second-value"));
    let script = "tee input >/dev/null; echo '{\"results\": [{\"message\": \"it says second-value\", \"resourceRef\": {\"kind\": \"Secret\", \"name\": \"s\", \"apiVersion\": \"v1\"}}]}'";
    let cel = "- name: quotes\n  cel: {match: {kinds: [Secret]}, expression: 'false', messageExpression: \"'it is ' + object.stringData.password\"}\n";
    let run = check(&bed, &format!("{}{cel}", shell("reads", script, "")), &[]);
    run.code(3).stdout_contains("it says [hidden]").stdout_contains("it is [hidden]").contains_nowhere("second-value");
    let input = std::fs::read_to_string(bed.folder.path().join("input")).expect("what the program read");
    let read: Value = serde_json::from_str(&input).expect("JSON");
    assert_eq!(read["items"][0]["stringData"]["password"], "[hidden]");
    assert_eq!(read["plan"]["changes"][0]["live"]["data"]["password"], "W2hpZGRlbl0=");
    for value in ["first-value", "second-value", "Zmlyc3QtdmFsdWU", "c2Vjb25kLXZhbHVl"] {
        assert!(!input.contains(value), "{value}");
    }
}

#[test]
fn messages_of_own_checks_contain_no_values_with_redact() {
    let bed = bed_with(|bed| bed.config_map("a", "confidential"));
    let said = "{\"results\": [{\"message\": \"it is confidential\", \"resourceRef\": {\"kind\": \"ConfigMap\", \"name\": \"a\"}, \
        \"field\": {\"path\": \"data.key\", \"proposedValue\": \"confidential\"}}, {\"message\": \"all are confidential\"}]}";
    let exec = shell("exec-one", &format!("echo confidential >&2; echo '{said}'"), "");
    let cel = "- name: cel-one\n  cel: {expression: object.data.key == '', messageExpression: \"'it is ' + object.data.key\"}\n";
    let run = check(&bed, &format!("{exec}{cel}"), &["--redact"]);
    run.code(3).stdout_contains("it is [hidden]").contains_nowhere("confidential");
    check(&bed, &format!("{exec}{cel}"), &[])
        .code(3)
        .stdout_contains("it is confidential")
        .stderr_contains("says: confidential");
}

#[test]
fn own_checks_are_selected_configured_and_waived_like_others() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let rules = "- name: first\n  cel: {expression: object.data.key == 'y', message: wrong key, fieldPath: data.key}\n\
        - name: second\n  config: {mode: warn}\n  cel: {expression: 'false'}\n\
        - name: third\n  enabled: false\n  cel: {expression: 'false'}\n";
    check(&bed, rules, &[])
        .code(3)
        .stdout_contains("error[first]: wrong key")
        .stdout_contains("warning[second]: failed expression: false");
    check(&bed, rules, &["--warn-only"]).code(0).stdout_contains("warning[first]: wrong key");
    let run = check(&bed, rules, &["--preflight", "third"]);
    run.code(3).stdout_contains("error[third]").contains_nowhere("[first]");
    check(&bed, rules, &["--preflight", "thrid"]).code(2).stderr_contains("did you mean \"third\"?");
    let waiver =
        "waivers:\n- {rule: first, object: a, path: data.*, reason: agreed}\n- {rule: third, reason: not run}\n";
    let run = check(&bed, &format!("{rules}{waiver}"), &["-v"]);
    run.code(0).stdout_contains("waived[first]: wrong key");
    assert!(!run.stderr.contains("fits no"), "{run}");
    let run = bed.gantry(control_plane().kubeconfig("admin"), &["rules", "-c", "checks.yaml"]).run();
    run.code(0).stdout_contains("Your own\n  first   wrong key\n").stdout_contains("CRDUpgradeSafety:");
    let run = bed.gantry(control_plane().kubeconfig("admin"), &["rules", "-c", "checks.yaml", "second"]).run();
    run.code(0).stdout_contains("second: your own check (checks.yaml:8:3)");
}

#[test]
fn an_invalid_expression_is_reported_before_any_request() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    bed.write("checks.yaml", &format!("{CONFIG}- name: a\n  cel:\n    expression: object.data.key ==\n- name: b\n  cel:\n    expression: self.x == 1\n"));
    let closed = closed_port(bed.folder.path());
    let run = bed.gantry(closed, &["deploy", "-f", "manifests.yaml", "-c", "checks.yaml"]).run();
    run.code(2)
        .stderr_contains("checks.yaml:6:17")
        .stderr_contains("checks.yaml:9:17")
        .stderr_contains("preflightRules[b].cel.expression: undeclared reference to 'self'");
}

#[test]
fn an_expression_sees_the_live_object_and_without_a_value_has_checked_nothing() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let rules = "- name: frozen\n  cel: {match: {kinds: [ConfigMap]}, expression: oldObject == null || object.data == oldObject.data, message: frozen}\n";
    check(&bed, rules, &[]).code(0).stdout_contains("frozen                    passed");
    bed.deploy(control_plane().kubeconfig("admin"), &["-q"]).run().code(0);
    check(&bed, rules, &[]).code(0);
    bed.write("manifests.yaml", &bed.config_map("a", "z"));
    check(&bed, rules, &[]).code(3).stdout_contains("error[frozen]: frozen");
    let rules = "- name: gap\n  cel: {expression: object.spec.x == 1}\n";
    let run = check(&bed, rules, &[]);
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    run.code(1);
    assert!(
        flat.contains(&format!("configmap/a -n {} (manifests.yaml:1): no such key: spec", bed.names.namespace)),
        "{run}"
    );
}

#[test]
fn a_finding_may_be_about_another_object_or_about_none() {
    let bed = bed_with(|bed| bed.config_map("a", "x"));
    let said = json!({"results": [
        {"message": "the plan is late", "severity": "warning"},
        {"message": "look at it", "resourceRef": {"apiVersion": "v1", "kind": "Node", "name": "n1"}},
        {"message": "by its file", "severity": "info", "file": {"path": "manifests.yaml"}},
    ]});
    let rule = shell("x", &format!("echo '{said}'"), "");
    let run = check(&bed, &rule, &["-v"]);
    run.code(3)
        .stdout_contains("warning[x]: the plan is late")
        .stdout_contains("info[x]: by its file")
        .stdout_contains("manifests.yaml:1:1");
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("x the plan warned: 1 warning") && flat.contains("x node/n1 blocked: 1 error"), "{run}");
    let report = check(&bed, &rule, &["-o", "json"]).report();
    let findings = report["checks"][2]["findings"].as_array().expect("findings");
    let objects: Vec<&Value> = findings.iter().map(|finding| &finding["object"]["name"]).collect();
    assert_eq!(objects, [&json!("a"), &json!("n1"), &Value::Null]);
}

/// A misspelt kind would otherwise look like a pass.
#[test]
fn an_expression_whose_kinds_match_no_object_is_a_notice() {
    let bed = bed_with(|bed| deployment(bed, "web:1", 1));
    let rule = |kinds: &str| format!("- {{name: no-x, cel: {{match: {{kinds: [{kinds}]}}, expression: 'false'}}}}\n");
    let run = check(&bed, &rule("Deployment.app"), &[]);
    run.code(0)
        .stdout_contains("warning[no-x]: 0 objects matched: no object among the manifests is of kind Deployment.app")
        .stdout_contains("did you mean \"Deployment.apps\"?")
        .stdout_contains("from checks.yaml:4");
    let report = check(&bed, &rule("Deployment.app"), &["-o", "json"]).code(0).report();
    assert_eq!(report["checks"][2]["status"], "warned");
    let finding = &report["checks"][2]["findings"][0];
    assert!(finding["message"].as_str().is_some_and(|message| message.starts_with("0 objects matched")), "{finding}");
    for kinds in ["deployment", "Pod, Deploymnt.apps", "'*.example.com'"] {
        check(&bed, &rule(kinds), &[]).code(0).stdout_contains("0 objects matched");
    }
    for kinds in ["Deployment.apps", "Pod, Deployment", "'*.apps'"] {
        check(&bed, &rule(kinds), &[]).code(3).contains_nowhere("0 objects matched");
    }
}

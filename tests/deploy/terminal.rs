//! gantry on a terminal, and Ctrl-C with and without one: the screen, the questions, the exit code.

use crate::support::{Bed, Isolated, Proxy, When, control_plane, results};

/// A namespace and a ConfigMap in it, which do not exist yet.
fn two_objects() -> Bed {
    let bed = Bed::new();
    bed.write("manifests.yaml", &format!("{}---\n{}", bed.namespace(), bed.config_map("a", "x")));
    bed
}

/// Asserts that each of these texts comes after the one before it.
#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { panic!("{part:?} is not in its place in\n{text}") };
        rest = behind;
    }
}

#[test]
fn the_plan_is_shown_then_asked_about_and_the_default_is_no() {
    let bed = two_objects();
    for keys in ["\n", "n\n", "yep\n", "\u{4}"] {
        let proxy = Proxy::start(control_plane());
        let mut terminal = bed.deploy(proxy.kubeconfig("admin"), &[]).on_terminal();
        terminal.wait_for("[y/N] ");
        terminal.press(keys);
        let run = terminal.wait();
        run.code(1).stderr_contains("not confirmed; nothing was written");
        let question = format!("Create 2 in kube: test ({})? [y/N]", proxy.url());
        in_order(
            &run.stderr,
            &["Target", "Plan", "2 (1 Namespace, 1 ConfigMap)", "configmap/", &question, "not confirmed"],
        );
        assert_eq!(proxy.writes(), [], "{keys:?}");
    }
}

#[test]
fn the_answer_yes_deploys() {
    let bed = two_objects();
    let mut terminal = bed.deploy(control_plane().kubeconfig("admin"), &[]).on_terminal();
    terminal.wait_for("[y/N] ");
    assert_eq!(control_plane().get(&format!("/api/v1/namespaces/{}", bed.names.namespace)).0, 404);
    terminal.press("y\n");
    terminal.wait().code(0).stderr_contains("Deployed");
    assert_eq!(control_plane().get(&bed.config_map_path("a")).1["data"]["key"], "x");

    // If there is nothing to do, there is no question.
    let again = bed.deploy(control_plane().kubeconfig("admin"), &[]).on_terminal().wait();
    again.code(0).stderr_contains("Nothing to do").contains_nowhere("[y/N]");
}

#[test]
fn the_flag_yes_answers_the_question() {
    let bed = two_objects();
    let run = bed.deploy(control_plane().kubeconfig("admin"), &["-y"]).on_terminal().wait();
    run.code(0).stderr_contains("Deployed").contains_nowhere("[y/N]");
    assert_eq!(control_plane().get(&bed.config_map_path("a")).0, 200);
}

#[test]
fn no_question_is_asked_if_nothing_would_be_written() {
    let bed = Bed::new();
    let admin = || control_plane().kubeconfig("admin");
    bed.write("manifests.yaml", &bed.crd("first: {type: string}, second: {type: string}"));
    bed.deploy(admin(), &[]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let blocked = bed.deploy(admin(), &[]).on_terminal().wait();
    blocked.code(3).stderr_contains("NoExistingFieldRemoved").contains_nowhere("[y/N]");
    // kapp's lines are for scripts; a person sees the verdict last.
    blocked.contains_nowhere("validating upgrade for CRD");
    assert!(blocked.stderr.trim_end().ends_with(": 1 error. Nothing was written."), "{blocked}");
    bed.deploy(admin(), &[]).run().code(3).stderr_contains("validating upgrade for CRD");
    let preset = "preflightRules:\n- name: CRDUpgradeSafety\n  config: {preset: kapp}\n";
    bed.write("kapp.yaml", &format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{preset}"));
    let kapp = bed.deploy(admin(), &["-c", "kapp.yaml"]).on_terminal().wait();
    kapp.code(3).stderr_contains("validating upgrade for CRD");
    assert!(kapp.stderr.trim_end().ends_with(": 2 errors. Nothing was written."), "{kapp}");
    let dry = bed.deploy(admin(), &["--dry-run", "--warn-only"]).on_terminal().wait();
    dry.code(0).contains_nowhere("[y/N]");
    let checked = bed.gantry(admin(), &["check", "-f", "manifests.yaml", "--warn-only"]).on_terminal().wait();
    checked.code(0).contains_nowhere("[y/N]");

    let mut warned = bed.deploy(admin(), &["--warn-only"]).on_terminal();
    warned.wait_for(" (1 warning)? [y/N] ");
    warned.press("\n");
    warned.wait().code(1);
}

#[test]
fn the_question_is_on_the_terminal_and_the_report_in_the_pipe() {
    let bed = two_objects();
    let mut terminal = bed.deploy(control_plane().kubeconfig("admin"), &["-o", "json"]).on_terminal_with_piped_output();
    terminal.wait_for("[y/N] ");
    terminal.press("y\n");
    let run = terminal.wait();
    assert_eq!(run.code(0).report()["outcome"], "deployed", "{run}");
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    let bed = two_objects();
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("GET", &bed.config_map_path("a")));
    let mut terminal = bed.deploy(proxy.kubeconfig("admin"), &["-y"]).on_terminal_with_piped_output();
    terminal.wait_for("reading live objects");
    drop(held);
    let held = proxy.hold(When::new("PATCH", &bed.config_map_path("a")));
    terminal.wait_for("applying");
    drop(held);
    let run = terminal.wait();
    run.code(0);
    // Neither progress nor colour in the piped output.
    assert!(!run.stdout.contains(['\u{1b}', '\r']) && !run.stdout.contains("reading live"), "{run}");

    let quiet = bed.deploy(proxy.kubeconfig("admin"), &["-q"]).on_terminal().wait();
    assert_eq!(quiet.code(0).stderr, "", "{quiet}");

    let bed = two_objects();
    let held = proxy.hold(When::new("GET", &bed.config_map_path("a")));
    let running = bed.deploy(proxy.kubeconfig("admin"), &[]).spawn();
    held.reached();
    drop(held);
    let run = running.wait();
    assert_eq!(run.code(0).stderr, "", "{run}");
    assert!(!run.stdout.contains(['\u{1b}', '\r']), "{run}");
}

#[test]
fn ctrl_c_at_the_question_declines() {
    let bed = two_objects();
    let proxy = Proxy::start(control_plane());
    let mut terminal = bed.deploy(proxy.kubeconfig("admin"), &["--color", "never"]).on_terminal();
    terminal.wait_for("[y/N] ");
    terminal.press("\u{3}");
    let run = terminal.wait();
    run.code(1).stderr_contains("\r\nerror: interrupted; nothing was written");
    assert_eq!(proxy.writes(), []);
}

#[test]
fn manifests_can_be_typed_but_then_the_question_cannot_be_asked() {
    let bed = Bed::new();
    let proxy = Proxy::start(control_plane());
    let typed = |more: &[&str]| bed.gantry(proxy.kubeconfig("admin"), &["deploy", "-f", "-"]).args(more).on_terminal();
    let mut asks = typed(&[]);
    asks.press(&bed.namespace());
    asks.press("\u{4}");
    asks.wait().code(1).stderr_contains("cannot ask for confirmation").stderr_contains("--yes");
    assert_eq!(proxy.writes(), []);

    let mut does_not = typed(&["-y"]);
    does_not.press(&bed.namespace());
    does_not.press("\u{4}");
    does_not.wait().code(0);

    // Ctrl-C before anything was typed.
    let mut waits = typed(&[]);
    waits.press("# typed");
    waits.wait_for("# typed");
    let run = waits.press_until_end("\u{3}");
    assert!(run.code.is_none() || run.code == Some(1), "{run}");
}

#[test]
fn ctrl_c_while_live_objects_are_read_ends_at_once() {
    let bed = two_objects();
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("GET", &bed.config_map_path("a")));
    let mut running = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).spawn();
    held.reached();
    running.interrupt();
    // The server's answer never arrives.
    let run = running.wait();
    run.code(1).stderr_contains("error: interrupted; nothing was written\n");
    let report = run.report();
    assert_eq!(
        (&report["outcome"], &report["errors"][0]["message"]),
        (&"failed".into(), &"interrupted; nothing was written".into())
    );
    assert_eq!(proxy.writes(), []);
    drop(held);
}

#[test]
fn an_interrupt_finishes_the_request_in_flight_and_starts_no_other() {
    let bed = two_objects();
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", &bed.names.namespace));
    let mut running = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).spawn();
    held.reached();
    running.interrupt();
    running.wait_for_stderr("interrupted: finishing the requests in flight");
    drop(held);
    let run = running.wait();
    let expected =
        [(format!("Namespace {}", bed.names.namespace), "applied"), ("ConfigMap a".to_owned(), "notReached")];
    assert_eq!(results(&run.code(1).report()), expected.map(|(object, result)| (object, result.to_owned())), "{run}");
    assert_eq!(proxy.writes().len(), 1, "{:?}", proxy.writes());

    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
    assert_eq!(control_plane().get(&bed.config_map_path("a")).0, 200);
}

#[test]
fn a_second_interrupt_ends_the_run_at_once() {
    let bed = two_objects();
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", &bed.names.namespace));
    let mut terminal = bed.deploy(proxy.kubeconfig("admin"), &["-y"]).on_terminal();
    held.reached();
    terminal.press("\u{3}");
    terminal.wait_for("press Ctrl-C again to quit immediately");
    terminal.press("\u{3}");
    terminal.wait().code(1);
    drop(held);
}

#[test]
fn an_interrupt_while_a_crd_is_waited_for_leaves_its_objects() {
    let bed = Bed::new();
    let objects = [bed.namespace(), bed.crd("first: {type: string}"), bed.sample()];
    bed.write("manifests.yaml", &objects.join("---\n"));
    let proxy = Proxy::start(control_plane());
    // The first request reads the live object.
    let held = proxy.hold(When::new("GET", &bed.crd_path()).nth(2));
    let mut running = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).spawn();
    held.reached();
    running.interrupt();
    running.wait_for_stderr("interrupted: ");
    drop(held);
    let run = running.wait();
    let Isolated { group, namespace } = &bed.names;
    let expected = [
        (format!("Namespace {namespace}"), "applied"),
        (format!("CustomResourceDefinition samples.{group}"), "applied"),
        ("Sample one".to_owned(), "notReached"),
    ];
    assert_eq!(results(&run.code(1).report()), expected.map(|(object, result)| (object, result.to_owned())), "{run}");
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    assert_eq!(control_plane().get(&bed.sample_path()).1["first"], "x");
}

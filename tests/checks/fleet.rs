//! One run on many clusters: contexts of a kubeconfig, some of which are dead, slow, or have different CRDs.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::{Bed, ControlPlane, Gantry, Output, Proxy, control_plane};

/// A second cluster with its own CRDs.
fn other() -> &'static ControlPlane {
    static OTHER: OnceLock<ControlPlane> = OnceLock::new();
    OTHER.get_or_init(ControlPlane::start)
}

/// A kubeconfig with many contexts.
struct Kubeconfig(Value);

impl Kubeconfig {
    fn new() -> Self {
        Kubeconfig(json!({"apiVersion": "v1", "kind": "Config", "contexts": [], "clusters": [], "users": []}))
    }

    fn list(&mut self, of: &str) -> &mut Vec<Value> {
        self.0[of].as_array_mut().expect("a list")
    }

    /// A context with its own cluster and user.
    fn context(mut self, name: &str, cluster: Value, token: &str) -> Self {
        self.list("clusters").push(json!({"name": name, "cluster": cluster}));
        self.list("users").push(json!({"name": name, "user": {"token": token}}));
        self.list("contexts").push(json!({"name": name, "context": {"cluster": name, "user": name}}));
        self
    }

    /// A context for a server, as the admin.
    fn server(self, name: &str, server: &ControlPlane) -> Self {
        let cluster = json!({"server": server.url(), "certificate-authority": server.ca_file()});
        self.context(name, cluster, server.token("admin"))
    }

    fn proxy(self, name: &str, proxy: &Proxy) -> Self {
        self.context(name, json!({"server": proxy.url()}), control_plane().token("admin"))
    }

    /// Another context for the cluster and user that were added last, with a default namespace.
    fn in_namespace(mut self, name: &str, namespace: &str) -> Self {
        let mut context = self.list("contexts").last().expect("a context")["context"].clone();
        context["namespace"] = json!(namespace);
        self.list("contexts").push(json!({"name": name, "context": context}));
        self
    }

    fn write(&self, bed: &Bed) -> PathBuf {
        let path = bed.folder.path().join("contexts.kubeconfig");
        std::fs::write(&path, self.0.to_string()).expect("write a kubeconfig");
        path
    }
}

fn on(bed: &Bed, kubeconfig: &Kubeconfig, arguments: &[&str]) -> Gantry {
    bed.gantry(kubeconfig.write(bed), arguments)
}

/// A port that accepts connections and never answers.
fn slow() -> (TcpListener, Value) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let server = format!("http://{}", listener.local_addr().expect("its address"));
    (listener, json!({"server": server}))
}

/// A port that nothing listens on.
fn dead() -> Value {
    json!({"server": slow().1["server"]})
}

/// The live CRD has a field that the manifests lack, which blocks.
fn breaking() -> Bed {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("first: {type: string}, second: {type: string}"));
    bed.deploy(control_plane().kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    bed
}

const CHECK: [&str; 5] = ["check", "-f", "manifests.yaml", "--preflight", "CRDUpgradeSafety"];

fn check<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CHECK[..], more].concat()
}

fn read_json(bed: &Bed, file: &str) -> Value {
    let text = std::fs::read_to_string(bed.folder.path().join(file)).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// The name and the outcome of each cluster of the report.
fn outcomes(run: &Output) -> Vec<(String, String)> {
    let report = run.report();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let clusters = report["clusters"].as_array().expect("clusters");
    clusters.iter().map(|cluster| (text(&cluster["name"]), text(&cluster["report"]["outcome"]))).collect()
}

/// A ConfigMap for the default namespace of each context.
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {key: value}\n";

/// Contexts of one server, named `c0` and so on, each with its own namespace.
fn namespaces(bed: &Bed, number: usize) -> (Proxy, Kubeconfig, Vec<String>) {
    let proxy = Proxy::start(control_plane());
    let names: Vec<String> = (0..number).map(|index| format!("{}-{index}", bed.names.namespace)).collect();
    let mut all = Kubeconfig::new().proxy("admin", &proxy);
    for (index, name) in names.iter().enumerate() {
        control_plane().apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
        all = all.in_namespace(&format!("c{index}"), name);
    }
    (proxy, all, names)
}

fn is_there(namespace: &str) -> bool {
    control_plane().get(&format!("/api/v1/namespaces/{namespace}/configmaps/settings")).0 == 200
}

#[test]
fn a_deploy_to_many_clusters_is_done_in_waves() {
    let bed = Bed::new();
    let (proxy, contexts, names) = namespaces(&bed, 3);
    bed.write("manifests.yaml", CONFIG_MAP);
    let deploy = |more: &[&str]| {
        let flags =
            ["deploy", "-f", "manifests.yaml", "--context", "c*", "--waves", "1,100%", "-a", "shop", "-o", "json"];
        on(&bed, &contexts, &[&flags[..], more].concat()).run()
    };
    let report = deploy(&[]).code(0).report();
    assert_eq!(report["outcome"], "deployed");
    let same = json!([{"server": report["clusters"][0]["server"], "clusters": ["c0", "c1", "c2"]}]);
    assert_eq!(report["overview"]["sameServer"], same);
    let check = ["check", "-f", "manifests.yaml", "--context", "c*", "-a", "shop"];
    let shown = on(&bed, &contexts, &check).run();
    shown.code(0).stdout_contains("c0, c1, c2: contexts of the same server, http");
    let waves: Vec<&Value> = report["clusters"].as_array().expect("clusters").iter().map(|one| &one["wave"]).collect();
    assert_eq!(waves, [1, 2, 2]);
    assert!(names.iter().all(|name| is_there(name)));
    let of = |path: &str| names.iter().position(|name| path.contains(&format!("/{name}/")));
    let written: Vec<usize> = proxy.writes().iter().filter_map(|write| of(&write.path)).collect();
    let first = written.iter().take_while(|index| **index == 0).count();
    assert!(first > 0 && !written[first..].contains(&0), "nothing of the first wave behind the second: {written:?}");
    assert_eq!(deploy(&["--detailed-exitcode"]).code(0).report()["outcome"], "unchanged");
    let apps = on(&bed, &contexts, &["apps", "--context", "c2"]).run();
    apps.code(0).stdout_contains("shop");
}

#[test]
fn a_wave_that_would_be_blocked_does_not_begin() {
    let bed = breaking();
    let kubeconfig = Kubeconfig::new()
        .server("first", other())
        .context("dead", dead(), "unused")
        .server("blocked", control_plane())
        .server("last", other());
    let text = std::fs::read_to_string(bed.folder.path().join("manifests.yaml")).expect("manifests");
    bed.write("manifests.yaml", &format!("{text}---\n{}", bed.namespace()));
    let deploy = |contexts: &str, more: &[&str]| {
        let flags = ["deploy", "-f", "manifests.yaml", "--preflight", "CRDUpgradeSafety", "--context", contexts];
        on(&bed, &kubeconfig, &[&flags[..], more].concat()).run()
    };
    let is_in_other = || other().get(&bed.crd_path()).0 == 200;
    // In the first wave.
    let run = deploy("blocked,first", &["--waves", "1,100%", "-o", "json"]);
    run.code(3);
    assert_eq!((names(&run.report()["overview"]["notReached"]), is_in_other()), (vec!["first"], false));
    deploy("dead,first", &["--waves", "1,100%"]).code(1).stdout_contains("not reached");
    assert!(!is_in_other());
    // In a later wave.
    let run = deploy("first,blocked,last", &["--waves", "1,100%"]);
    run.code(3).stdout_contains("Blocked: 1 of 3 clusters, 1 deployed, 1 not reached. What was written stays.");
    assert_eq!(run.stdout.matches("error[NoExistingFieldRemoved]").count(), 1, "it is not repeated at the end");
    run.stderr_contains("blocked: validating upgrade for CRD");
    assert!(is_in_other());
    assert_eq!(control_plane().get(&format!("/api/v1/namespaces/{}", bed.names.namespace)).0, 404);
}

#[test]
fn no_wave_follows_one_that_is_not_ready() {
    let bed = Bed::new();
    let (_proxy, contexts, names) = namespaces(&bed, 2);
    // There are no controllers: it never becomes ready.
    let workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {a: b}}, \
        template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: web}]}}}\n";
    bed.write("manifests.yaml", &format!("{CONFIG_MAP}---\n{workload}"));
    let flags =
        ["deploy", "-f", "manifests.yaml", "--context", "c*", "--waves", "1,100%", "--wait", "--wait-timeout", "1s"];
    let run = on(&bed, &contexts, &flags).run();
    run.code(5).stdout_contains("is not ready").stdout_contains("Failed: 1 of 2 clusters, 1 not reached.");
    assert_eq!((is_there(&names[0]), is_there(&names[1])), (true, false));
}

#[test]
fn a_deploy_to_many_clusters_asks_once() {
    let bed = Bed::new();
    let (proxy, contexts, names) = namespaces(&bed, 3);
    bed.write("manifests.yaml", CONFIG_MAP);
    let deploy = || {
        on(&bed, &contexts, &["deploy", "-f", "manifests.yaml", "--context", "c*", "--waves", "1,100%"]).on_terminal()
    };
    let mut terminal = deploy();
    terminal.wait_for("Deploy to 3 clusters (3 with changes) in waves of 1 and 2? [y/N] ");
    terminal.press("n\n");
    terminal.wait().code(1).stderr_contains("not confirmed; nothing was written");
    assert_eq!(proxy.writes(), []);
    let mut terminal = deploy();
    terminal.wait_for("[y/N] ");
    terminal.press("y\n");
    let run = terminal.wait();
    run.code(0).stderr_contains("Deployed").stderr_contains(": 3 clusters");
    assert_eq!(run.stderr.matches("[y/N]").count(), 1);
    assert!(names.iter().all(|name| is_there(name)));
}

#[test]
fn a_cluster_that_does_not_answer_does_not_delay_others() {
    let bed = breaking();
    bed.write("gantry.yaml", "{apiVersion: gantry.dev/v1alpha1, kind: Config, timeouts: {request: 2s}}");
    let (_listener, slow) = slow();
    let kubeconfig = Kubeconfig::new()
        .context("slow", slow, "unused")
        .context("dead", dead(), "unused")
        .server("blocked", control_plane())
        .server("empty", other());
    let run = on(&bed, &kubeconfig, &check(&["--context", "*", "-o", "json", "--parallel", "2"])).run();
    run.code(3);
    let expected = [("slow", "failed"), ("dead", "failed"), ("blocked", "blocked"), ("empty", "planned")];
    assert_eq!(outcomes(&run), expected.map(|(name, outcome)| (name.into(), outcome.into())));
    let report = run.report();
    assert_eq!((&report["kind"], &report["outcome"]), (&json!("ReportList"), &json!("blocked")));
    let overview = &report["overview"];
    assert_eq!(names(&overview["blocked"]), ["blocked"]);
    assert_eq!(overview["counts"]["failed"], 2);
    assert_eq!(overview["unchecked"][0]["cluster"], "slow");
    let why = |index: usize| overview["unchecked"][index]["message"].as_str().unwrap_or_default().to_owned();
    assert!(why(0).contains("within 2 s") && why(1).contains("refused"), "{overview:#}");
    // Live state: the CRD in one cluster, nothing in the other.
    let crd = format!("samples.{}", bed.names.group);
    assert_eq!(overview["live"][0], json!({"clusters": ["blocked"]}));
    assert_eq!(overview["live"][1], json!({"clusters": ["empty"], "differs": [crd]}));

    // Without the blocked cluster, the one that could not be checked decides.
    let run = on(&bed, &kubeconfig, &check(&["--context", "dead,empty"])).run();
    run.code(1).stdout_contains("could not check").stdout_contains("dead: ").stdout_contains("1 create");
    let last = run.stdout.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "Failed: 1 of 2 clusters could not be checked; this does not count as a pass. Nothing was written."
    );
    on(&bed, &kubeconfig, &check(&["--context", "empty,empty"])).run().code(0).stdout_contains("1 cluster");
}

#[test]
fn the_same_finding_in_many_clusters_is_reported_once() {
    let bed = breaking();
    let many = (0..50).fold(Kubeconfig::new(), |all, index| all.server(&format!("c{index:02}"), control_plane()));
    let run = on(&bed, &many, &check(&["--context", "c*"])).run();
    run.code(3).stdout_contains("Clusters c00, c01,");
    assert_eq!(run.stdout.matches("error[NoExistingFieldRemoved]").count(), 1, "{run}");
    run.stdout_contains("blocked").stdout_contains("50  c00, c01");
    let last = run.stdout.lines().last().unwrap_or_default();
    assert_eq!(last, "Would be blocked: 50 of 50 clusters. Nothing was written.");

    // 50 clusters without problems are a few lines.
    bed.write("manifests.yaml", &bed.crd("first: {type: string}, second: {type: string}, third: {type: string}"));
    let run = on(&bed, &many, &check(&["--context", "*"])).run();
    run.code(0).stdout_contains("c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 40 more");
    assert!(run.stdout.lines().count() <= 7, "{run}");
    run.stdout_contains("Planned: 50 of 50 clusters would change; nothing was written (check only)");
    let shown = on(&bed, &many, &check(&["--context", "*", "-v"])).run();
    shown.code(0).stdout_contains("Clusters c00, c01,").stdout_contains("c48, c49");
}

#[test]
fn a_single_context_makes_the_usual_requests_and_report() {
    let bed = breaking();
    let proxy = Proxy::start(control_plane());
    let requests = |context: &str| {
        let proxies = Kubeconfig::new().proxy("a", &proxy).proxy("b", &proxy).proxy("odd,name", &proxy);
        let before = proxy.requests().len();
        let run = on(&bed, &proxies, &check(&["--context", context, "-o", "json"])).run();
        run.code(3);
        let mut made: Vec<String> =
            proxy.requests()[before..].iter().map(|one| format!("{} {}?{}", one.method, one.path, one.query)).collect();
        made.sort();
        (made, run.report())
    };
    let (one, report) = requests("a");
    assert_eq!(report["kind"], "Report");
    let (both, list) = requests("a,b");
    let twice: Vec<String> = one.iter().flat_map(|request| [request.clone(), request.clone()]).collect();
    assert_eq!(both, twice, "each cluster is asked what it is asked alone");
    assert_eq!(list["clusters"][0]["report"], report, "and its report is the same");
    // The name of a context can look like several names.
    let (_, odd) = requests("odd,name");
    assert_eq!(odd["kind"], "Report");
}

#[test]
fn every_format_has_all_clusters() {
    let bed = breaking();
    let kubeconfig = Kubeconfig::new()
        .server("prod-1", control_plane())
        .server("prod-2", control_plane())
        .server("empty", other())
        .context("old", dead(), "unused");
    let formats = ["human", "json", "sarif", "junit", "markdown", "github", "gitlab", "html"];
    let outputs: Vec<String> = formats.iter().map(|format| format!("{format}={format}.out")).collect();
    let flags: Vec<&str> = outputs.iter().flat_map(|output| ["-o", output]).collect();
    on(&bed, &kubeconfig, &check(&[&["--context", "*"], &flags[..]].concat())).run().code(3);
    let read = |format: &str| std::fs::read_to_string(bed.folder.path().join(format!("{format}.out"))).expect(format);
    let json = |format: &str| serde_json::from_str::<Value>(&read(format)).expect(format);
    let sarif = json("sarif");
    let ids: Vec<&Value> =
        sarif["runs"].as_array().expect("runs").iter().map(|run| &run["automationDetails"]["id"]).collect();
    assert_eq!(ids, ["prod-1", "empty", "old"]);
    let successful = |run: usize| &sarif["runs"][run]["invocations"][0]["executionSuccessful"];
    assert_eq!((successful(0), successful(2)), (&json!(true), &json!(false)));
    let junit = read("junit");
    for suite in ["prod-1: CRDUpgradeSafety", "prod-2: CRDUpgradeSafety", "empty: CRDUpgradeSafety", "old: gantry"] {
        assert!(junit.contains(&format!("<testsuite name=\"{suite}\"")), "{suite}: {junit}");
    }
    let github = read("github");
    assert_eq!(github.matches("title=NoExistingFieldRemoved::").count(), 1, "{github}");
    assert!(github.contains("[prod-1, prod-2]") && github.contains("::old: "), "{github}");
    let gitlab = json("gitlab");
    let alone = on(&bed, &kubeconfig, &check(&["--context", "prod-2", "-o", "gitlab"])).run();
    let of_rule = |entries: &Value| {
        let entries = entries.as_array().expect("a list").clone();
        entries.into_iter().find(|entry| entry["check_name"] == "NoExistingFieldRemoved").expect("the finding")
    };
    assert_eq!(of_rule(&gitlab)["fingerprint"], of_rule(&alone.report())["fingerprint"]);
    for format in ["markdown", "html"] {
        let text = read(format);
        assert!(text.contains("Would be blocked: 2 of 4 clusters, 1 could not be checked."), "{format}: {text}");
        assert!(text.contains("prod-1, prod-2") && text.contains("blocked"), "{format}: {text}");
    }
    assert!(read("human").contains("Clusters prod-1, prod-2\n"));
}

#[test]
fn contexts_are_read_from_a_file_and_split_into_shards() {
    let bed = breaking();
    let many = (0..5).fold(Kubeconfig::new(), |all, index| all.server(&format!("c{index}"), control_plane()));
    bed.write("contexts", "# by hand\nc4\nc*  # all others\n");
    let run = on(&bed, &many, &check(&["--contexts-file", "contexts", "-o", "json"])).run();
    let of = |run: &Output| outcomes(run).into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ");
    assert_eq!(of(run.code(3)), "c4 c0 c1 c2 c3");
    let shard = |shard: &str| {
        let flags = ["--contexts-file", "contexts", "-o", "json", "--shard", shard];
        on(&bed, &many, &check(&flags)).run()
    };
    assert_eq!((of(&shard("0/2")), of(&shard("1/2"))), ("c4 c1 c3".into(), "c0 c2".into()));
    let empty = shard("5/6");
    assert_eq!(empty.code(0).report()["clusters"], json!([]));
    empty.stderr_contains("notice: --shard 5/6 contains none of the clusters");

    bed.write("contexts", "c1\n\nc9\nprod-*\n");
    let run = on(&bed, &many, &check(&["--contexts-file", "contexts"])).run();
    run.code(2)
        .stderr_contains("contexts:3")
        .stderr_contains("contexts:4")
        .stderr_contains("known: c0, c1, c2, c3, c4");
    bed.write("contexts", "# none\n");
    on(&bed, &many, &check(&["--contexts-file", "contexts"])).run().code(2).stderr_contains("lists no context");
}

#[test]
fn several_contexts_are_a_usage_error_for_commands_with_one_target() {
    let bed = breaking();
    let two = Kubeconfig::new().server("a", control_plane()).server("b", control_plane());
    let refused = |arguments: &[&str], said: &str| {
        let run = on(&bed, &two, arguments).run();
        run.code(2).stderr_contains(said);
    };
    refused(&check(&["--context", "a,b", "--target", "dir:."]), "--context names several clusters");
    refused(&check(&["--context", "a,"]), "contains an empty name");
    refused(&check(&["--context", "a,c"]), "has no context \"c\"");
    refused(&check(&["--context", "x*"]), "no context of the kubeconfig matches \"x*\"");
    refused(&["apps", "--context", "a,b"], "only check, diff and deploy accept several contexts");
    refused(&check(&["--context", "a", "--shard", "0/2"]), "--shard requires several clusters");
    refused(&check(&["--context", "a", "--contexts-file", "x"]), "cannot be used with");
    refused(&["deploy", "-f", "manifests.yaml", "--context", "a,b"], "--waves 1,10%,100%");
    refused(&["deploy", "-f", "manifests.yaml", "--context", "a,b", "--waves", "1"], "reaches 1 of 2 clusters");
    refused(&["deploy", "-f", "manifests.yaml", "--context", "a", "--waves", "100%"], "--waves requires several");
    refused(&["permissions", "-f", "manifests.yaml", "--context", "a,b"], "no context \"a,b\"");
    // A dry run needs no waves.
    let dry = ["deploy", "-f", "manifests.yaml", "--preflight", "CRDUpgradeSafety", "--context", "a,b", "--dry-run"];
    on(&bed, &two, &dry).run().code(3).stdout_contains("Would be blocked: 2 of 2 clusters");
}

#[test]
fn an_interrupt_loses_no_finished_report() {
    let bed = breaking();
    let (_listener, slow) = slow();
    let proxy = Proxy::start(control_plane());
    let kubeconfig = Kubeconfig::new().context("slow", slow, "unused").proxy("fast", &proxy);
    let held = proxy.hold(crate::support::When::new("GET", &bed.crd_path()));
    let mut run =
        on(&bed, &kubeconfig, &check(&["--context", "fast,slow", "-o", "json=report.json", "-o", "human"])).spawn();
    held.reached();
    run.interrupt();
    let run = run.wait();
    drop(held);
    run.code(1).stdout_contains("interrupted; nothing was written");
    let text = std::fs::read_to_string(bed.folder.path().join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["overview"]["unchecked"][0]["message"], "interrupted; nothing was written");
    assert_eq!(report["errors"][0]["message"], "interrupted; nothing was written");
    assert_eq!(report["clusters"].as_array().map(Vec::len), Some(2));
}

#[test]
fn reports_of_clusters_are_merged_and_names_distinguish_them() {
    let bed = breaking();
    let both = Kubeconfig::new().server("a", control_plane()).server("b", other()).context("old", dead(), "unused");
    for (context, file, code) in [("a", "a.json", 3), ("b,old", "others.json", 1), ("*", "all.json", 3)] {
        let output = format!("json={file}");
        on(&bed, &both, &check(&["--context", context, "-o", &output])).run().code(code);
    }
    let merge = |arguments: &[&str]| {
        bed.gantry(bed.folder.path().join("none"), &[&["report", "merge"], arguments].concat()).run()
    };
    let run = merge(&["a.json", "others.json", "-o", "json"]);
    run.code(3);
    let (merged, whole) = (run.report(), read_json(&bed, "all.json"));
    assert_eq!(merged["outcome"], "blocked");
    assert_eq!(merged["overview"]["blocked"], whole["overview"]["blocked"]);
    assert_eq!(merged["overview"]["unchecked"], whole["overview"]["unchecked"]);
    for index in 0..3 {
        for key in ["name", "server", "report"] {
            assert_eq!(merged["clusters"][index][key], whole["clusters"][index][key], "{index} {key}");
        }
    }
    merge(&["all.json"]).code(3).stdout_contains("Would be blocked: 1 of 3 clusters, 1 could not be checked.");
    merge(&["others.json"]).code(1);

    // A folder stands for all of its reports.
    std::fs::create_dir(bed.folder.path().join("reports")).expect("a folder");
    merge(&["reports"]).code(2).stderr_contains("reports: there is no .json file in this folder");
    for file in ["a.json", "others.json"] {
        std::fs::copy(bed.folder.path().join(file), bed.folder.path().join("reports").join(file)).expect("a copy");
    }
    merge(&["reports", "-o", "json"]).code(3).stdout_contains("\"clusters\": 3");

    // Every file that cannot be merged is named.
    let whole = std::fs::read_to_string(bed.folder.path().join("all.json")).expect("a report");
    bed.write("half.json", &whole[..whole.len() / 2]);
    bed.write("other.json", &whole.replacen("gantry.dev/v1alpha1", "gantry.dev/v9", 1));
    bed.write("list.json", "[]");
    bed.write("none.json", "{\"kind\": \"List\"}");
    let run = merge(&["a.json", "half.json", "other.json", "list.json", "none.json", "missing.json", "all.json"]);
    run.code(2).stderr_contains("half.json:").stderr_contains("other.json: it has apiVersion \"gantry.dev/v9\"");
    run.stderr_contains("list.json").stderr_contains("none.json: it is not a report").stderr_contains("missing.json");
    run.stderr_contains("all.json: the cluster \"a\" is in a.json, too");
    assert_eq!(run.stdout, "");
    merge(&["a.json", "-o", "json=a.json"]).code(2).stderr_contains("would overwrite");

    // The finding is known in the cluster that had it.
    let run = on(&bed, &both, &check(&["--context", "a,b", "--baseline", "all.json", "-o", "json"])).run();
    let report = run.code(0).report();
    assert_eq!(report["clusters"][0]["report"]["summary"]["known"], 1);
    on(&bed, &both, &check(&["--context", "a,b", "--baseline", "a.json"])).run().code(0);
    on(&bed, &both, &check(&["--context", "a,b", "--baseline", "others.json"])).run().code(3);
    let one = on(&bed, &both, &check(&["--context", "a", "--baseline", "all.json"])).run();
    one.code(2).stderr_contains("it has the reports of several clusters");
}

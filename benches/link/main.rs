//! The time of commands over a long link to the API server, in round trips, compared with kubectl.
//!
//!     cargo bench --bench link              24 objects, and 614 CRDs of 20 KB on average
//!     cargo bench --bench link -- few       only the 24 objects
//!     cargo bench --bench link -- few GANTRY   the same with another gantry
//!
//! Starts the servers of the test bed and a proxy that delays what passes, and runs each command on loopback and over
//! the link in turns. `docs/internals/benchmarks.md` explains the figures.

#[path = "../support/mod.rs"]
mod generator;
#[path = "../support/link.rs"]
mod link;
#[path = "../measure/mod.rs"]
#[allow(dead_code, reason = "only times are measured")]
mod measure;
#[path = "../../tests/support/mod.rs"]
mod testbed;

use std::cell::Cell;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use link::{Link, Passed};
use measure::{process, until_at_rest};
use serde_json::{Value, json};
use testbed::ControlPlane;

const ROUND_TRIP: Duration = Duration::from_millis(50);
/// 100 Mbit/s.
const BYTES_PER_SECOND: f64 = 12.5e6;
const RUNS: usize = 5;
const CRDS: usize = 614;
const SEED: u64 = 7;
const ALL_CHECKS: &str = "AdmissionDryRun,APIAvailability,ConversionWebhook,CRDUpgradeSafety,CustomResourceValidation,\
    PermissionValidation";

fn main() -> ExitCode {
    // Cargo adds `--bench` to the user's arguments.
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let few = match arguments.first().map(String::as_str) {
        None => false,
        Some("few") => true,
        Some(_) => {
            eprintln!("usage: link [few [GANTRY]]");
            return ExitCode::from(2);
        }
    };
    let gantry = arguments.get(1).map_or_else(|| env!("CARGO_BIN_EXE_gantry").into(), PathBuf::from);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let servers = ControlPlane::start();
    let bench = Bench::new(&servers, gantry, folder.path());
    bench.measure_few();
    if !few {
        bench.measure_many();
    }
    ExitCode::SUCCESS
}

struct Bench<'a> {
    servers: &'a ControlPlane,
    gantry: PathBuf,
    kubectl: PathBuf,
    home: &'a Path,
    link: Link,
    over_link: PathBuf,
    written: Cell<usize>,
}

impl<'a> Bench<'a> {
    fn new(servers: &'a ControlPlane, gantry: PathBuf, home: &'a Path) -> Self {
        let link = Link::start(servers.url().trim_start_matches("https://"), ROUND_TRIP, BYTES_PER_SECOND);
        let over_link = home.join("link.kubeconfig");
        let ca_file = servers.ca_file();
        let kubeconfig = gantry_testbed::kubeconfig(&link.url(), Some(&ca_file), "admin", servers.token("admin"));
        fs::write(&over_link, kubeconfig).expect("write a kubeconfig");
        Bench { servers, gantry, kubectl: gantry_testbed::kubectl(), home, link, over_link, written: Cell::new(0) }
    }

    /// 24 objects: a namespace, three CRDs, ten ConfigMaps and ten Secrets.
    fn measure_few(&self) {
        let [live, upgraded] = ["1", "2"].map(|value| self.write("app", value));
        self.deploy(&live);
        until_at_rest(self.servers);
        header();
        self.row("check, unchanged", 0, |_| self.gantry(&["check"], &live));
        self.row("check, upgraded", 0, |_| self.gantry(&["check"], &upgraded));
        self.row("check, upgraded, all checks", 0, |_| self.gantry(&["check", "--preflight", ALL_CHECKS], &upgraded));
        self.row("diff, upgraded", 0, |_| self.gantry(&["diff"], &upgraded));
        self.row("deploy, all new", 0, |_| self.gantry(&["deploy", "-y"], &self.write_new()));
        self.row("kubectl apply, all new", 0, |_| self.kubectl(&["apply", "--server-side"], &self.write_new()));
        let dry_run = ["apply", "--server-side", "--dry-run=server", "--field-manager=gantry"];
        self.row("kubectl dry run, upgraded", 0, |_| self.kubectl(&dry_run, &upgraded));
        let diff = ["diff", "--server-side", "--field-manager=gantry"];
        self.row("kubectl diff, upgraded", 1, |_| self.kubectl(&diff, &upgraded));
    }

    /// Many large CRDs, which are read with one list.
    fn measure_many(&self) {
        let (live, upgraded) = (self.home.join("many"), self.home.join("many-upgraded"));
        for folder in [&live, &upgraded] {
            fs::create_dir(folder).expect("a folder");
        }
        for number in 0..CRDS {
            let crd = generator::crd(SEED, number, "bench.example.com", 20_000);
            let file = format!("{number:04}.yaml");
            fs::write(live.join(&file), generator::yaml(&crd)).expect("write a manifest");
            let crd = generator::upgraded(&crd, number);
            fs::write(upgraded.join(&file), generator::yaml(&crd)).expect("write a manifest");
        }
        self.deploy(&live);
        until_at_rest(self.servers);
        println!("\n{CRDS} CRDs");
        header();
        self.row("check, upgraded", 3, |_| self.gantry(&["check"], &upgraded));
    }

    fn deploy(&self, folder: &Path) {
        let mut command = self.gantry(&["deploy", "-y"], folder);
        let run = process::run(command.env("KUBECONFIG", self.servers.kubeconfig("admin"))).expect("start gantry");
        assert_eq!(run.code, Some(0), "the live side was not deployed");
    }

    /// Runs a command on loopback and over the link in turns.
    fn row(&self, name: &str, code: i32, command: impl Fn(usize) -> Command) {
        let (mut loopback, mut over_link, mut passed) = (Vec::new(), Vec::new(), Passed::default());
        // The first run fills kubectl's cache of the discovery documents.
        for number in 0..=RUNS {
            for (kubeconfig, times) in
                [(self.servers.kubeconfig("admin"), &mut loopback), (self.over_link.clone(), &mut over_link)]
            {
                self.link.take();
                let mut command = command(number);
                let run = process::run(command.env("KUBECONFIG", kubeconfig)).expect("start the process");
                assert_eq!(run.code, Some(code), "{command:?} failed");
                passed = self.link.take();
                if number > 0 {
                    times.push(run.wall);
                }
            }
        }
        let [loopback, over_link] = [loopback, over_link].map(|mut times| {
            times.sort();
            times[times.len() / 2].as_secs_f64()
        });
        let round_trips = (over_link - loopback) / ROUND_TRIP.as_secs_f64();
        let transfer = passed.bytes as f64 / BYTES_PER_SECOND;
        println!(
            "{name:<28}{loopback:>8.2} s{over_link:>8.2} s{round_trips:>12.1}{:>12}{:>10.2}{transfer:>8.2} s",
            passed.connections,
            passed.bytes as f64 / 1e6
        );
    }

    fn gantry(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = self.command(&self.gantry, arguments, folder);
        // This many new CRDs keep the server busy for longer than the default time limits of a deploy.
        command.env("GANTRY_TIMEOUTS__ESTABLISHED", "1h");
        command
    }

    fn kubectl(&self, arguments: &[&str], folder: &Path) -> Command {
        self.command(&self.kubectl, arguments, folder)
    }

    /// Isolated from this machine's environment, except for `PATH`.
    fn command(&self, program: &Path, arguments: &[&str], folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.home).env("PATH", env::var_os("PATH").unwrap_or_default());
        command.args(arguments).arg("-f").arg(folder).current_dir(self.home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Objects that do not exist yet.
    fn write_new(&self) -> PathBuf {
        self.written.set(self.written.get() + 1);
        self.write(&format!("new{}", self.written.get()), "1")
    }

    fn write(&self, name: &str, value: &str) -> PathBuf {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let crds = (0..3).map(|number| crd(&format!("{name}.example.com"), number, value));
        let others = (0..20).map(|number| object(name, number, value));
        // kubectl writes in the order of the file.
        let documents: Vec<String> =
            [namespace].into_iter().chain(crds).chain(others).map(|object| object.to_string()).collect();
        let folder = self.home.join(format!("{name}-{value}"));
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("all.yaml"), format!("---\n{}\n", documents.join("\n---\n"))).expect("write manifests");
        folder
    }
}

fn header() {
    let round_trips = "round trips";
    println!(
        "{:<28}{:>10}{:>10}{round_trips:>12}{:>12}{:>10}{:>10}",
        "", "loopback", "link", "connections", "MB", "transfer"
    );
}

fn crd(group: &str, number: usize, value: &str) -> Value {
    let (plural, kind) = (format!("things{number}"), format!("Thing{number}"));
    let mut schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        format!("field{value}"): {"type": "string"}, "size": {"type": "integer"}}}}});
    if value != "1" {
        schema["properties"]["spec"]["properties"]["field1"] = json!({"type": "string"});
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

fn object(namespace: &str, number: usize, value: &str) -> Value {
    let metadata = json!({"name": format!("object-{number}"), "namespace": namespace});
    match number % 2 {
        0 => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}),
        _ => json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"value": value}}),
    }
}

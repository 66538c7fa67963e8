//! The cost of a dry run of every object of a deploy, compared with kubectl's dry run of the same manifests.
//!
//!     cargo bench --bench dry_run               600 objects
//!     cargo bench --bench dry_run -- 5000       this number of objects
//!
//! Starts the servers of the test bed, creates an earlier form of a quarter of the objects, and runs these processes
//! alternately: `kubectl apply --dry-run=server`, the same with server-side apply, and `gantry check`. kubectl is the
//! one of the test bed. `docs/internals/benchmarks.md` explains the figures.

#[path = "../measure/mod.rs"]
mod measure;
#[path = "../../tests/support/mod.rs"]
mod testbed;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use measure::{Budget, Run, process, until_at_rest};
use serde_json::{Value, json};
use testbed::ControlPlane;

const OBJECTS: usize = 600;
const RUNS: usize = 5;
const BUDGET: Budget = Budget { of: "kubectl", ratio: 1.0, mebibytes: 100.0 };
const NAMESPACE: &str = "bench";

fn main() -> ExitCode {
    // Cargo adds `--bench` to the user's arguments.
    let argument = env::args().skip(1).find(|argument| argument != "--bench");
    let objects = match argument.map(|number| number.parse()) {
        None => OBJECTS,
        Some(Ok(number)) => number,
        Some(Err(_)) => {
            eprintln!("the argument is a number of objects");
            return ExitCode::from(2);
        }
    };
    run(objects);
    ExitCode::SUCCESS
}

fn run(objects: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path();
    let servers = ControlPlane::start();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    servers.apply_yaml(&namespace.to_string());
    servers.apply_yaml(&crd().to_string());
    fs::create_dir(home.join("manifests")).expect("a folder");
    for (number, chunk) in (0..objects).collect::<Vec<_>>().chunks(50).enumerate() {
        // A separator also comes before the first object: kubectl reads a file that begins with a brace as one object.
        let documents: String = chunk.iter().map(|n| format!("---\n{}\n", object(*n, "new"))).collect();
        fs::write(home.join(format!("manifests/{number}.yaml")), documents).expect("write manifests");
    }
    for number in (0..objects).step_by(4) {
        let object = object(number, "old");
        let (status, answer) = servers.server_side_apply(&servers.path_of(&object), "gantry", &object);
        assert_eq!(status, 201, "{answer}");
    }
    until_at_rest(&servers);
    println!("{objects} objects, {} of them exist already", objects.div_ceil(4));

    let kubectl = gantry_testbed::kubectl();
    let mut runs: [Vec<Run>; 3] = Default::default();
    for _ in 0..RUNS {
        let dry = ["apply", "--dry-run=server", "-f", "manifests"];
        let processes = [
            command(&kubectl, &dry, &servers, home),
            command(&kubectl, &[&dry[..], &["--server-side", "--field-manager=gantry"]].concat(), &servers, home),
            command(
                Path::new(env!("CARGO_BIN_EXE_gantry")),
                &["check", "-q", "-f", "manifests", "--preflight", "AdmissionDryRun"],
                &servers,
                home,
            ),
        ];
        for (mut process, runs) in processes.into_iter().zip(&mut runs) {
            let run = process::run(&mut process).expect("start the process");
            assert_eq!(run.code, Some(0), "{process:?} failed");
            runs.push(run);
        }
    }
    measure::tell(&[("kubectl", &runs[0]), ("kubectl ssa", &runs[1]), ("gantry check", &runs[2])], &BUDGET);
}

/// Isolated from this machine's environment, except for `PATH`.
fn command(program: &Path, arguments: &[&str], servers: &ControlPlane, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("KUBECONFIG", servers.kubeconfig("admin")).current_dir(home);
    command.env("PATH", env::var_os("PATH").unwrap_or_default()).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn crd() -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "value": {"type": "string", "maxLength": 20}, "items": {"type": "array", "items": {"type": "integer"}}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.bench.example.com"},
        "spec": {"group": "bench.example.com", "scope": "Namespaced",
            "names": {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

/// Alternating ConfigMaps, Deployments and custom resources.
fn object(number: usize, value: &str) -> Value {
    let metadata = json!({"name": format!("object-{number}"), "namespace": NAMESPACE, "labels": {"state": value}});
    match number % 3 {
        0 => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"value": value, "text": "x".repeat(1000)}}),
        1 => json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "main", "image": format!("x:{value}"), "ports": [{"containerPort": 80}]}]}}}}),
        _ => json!({"apiVersion": "bench.example.com/v1", "kind": "Sample", "metadata": metadata,
            "spec": {"value": value, "items": [1, 2, 3]}}),
    }
}

//! The cost of a migration, compared with the same writes over eight plain connections, and of its dry run.
//!
//!     cargo bench --bench migrate                            10,000 objects
//!     GANTRY_OBJECTS=100000 cargo bench --bench migrate      this number of objects
//!     cargo bench --bench migrate -- dry-run                 only the dry runs
//!
//! Starts the servers of the test bed, writes the objects at v1 straight to etcd, and again before each process that moves
//! them to v2, so that all have the same to do. `docs/internals/benchmarks.md` explains the figures.

mod eight;
mod fixture;
#[path = "../measure/mod.rs"]
mod measure;
#[path = "../../tests/support/mod.rs"]
mod testbed;

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use measure::{Budget, Run, process, until_at_rest};
use serde_json::{Value, json};
use testbed::ControlPlane;

const OBJECTS: usize = 10_000;
const RUNS: usize = 3;
const BUDGET: Budget = Budget { of: "plain", ratio: 1.2, mebibytes: 60.0 };
const DRY_RUN_BUDGET: Budget = Budget { of: "dry run", ..BUDGET };
/// With more objects, each process runs once.
const MANY: usize = 200_000;
/// The number of objects in a transaction of etcd, which accepts 128.
const BATCH: usize = 120;
const WRITERS: usize = 3;
/// How long after a change of the CRD a migration waits for all API servers.
const LAG: Duration = Duration::from_secs(6);

/// This variable is set for the process with plain connections; its arguments are the server's URL and certificate.
const TOKEN: &str = "GANTRY_BENCH_TOKEN";

fn main() -> ExitCode {
    // Cargo adds `--bench` to the user's arguments.
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let (Ok(token), [url, ca_file]) = (env::var(TOKEN), &arguments[..]) {
        return match eight::write(url, Path::new(ca_file), &token) {
            Ok(written) => {
                println!("{written}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("eight connections: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let only_dry_runs = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["dry-run"] => true,
        _ => {
            eprintln!("the only argument is dry-run");
            return ExitCode::from(2);
        }
    };
    let objects = match env::var("GANTRY_OBJECTS").map(|number| number.parse()) {
        Err(_) => OBJECTS,
        Ok(Ok(number)) => number,
        Ok(Err(_)) => {
            eprintln!("GANTRY_OBJECTS is a number of objects");
            return ExitCode::from(2);
        }
    };
    Bench::start(objects).run(only_dry_runs);
    ExitCode::SUCCESS
}

struct Bench {
    servers: ControlPlane,
    objects: usize,
    folder: tempfile::TempDir,
}

impl Bench {
    fn start(objects: usize) -> Self {
        let servers = ControlPlane::start();
        for number in 0..fixture::NAMESPACES {
            let metadata = json!({"name": fixture::namespace(number)});
            servers.apply_yaml(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
        }
        servers.apply_yaml(&fixture::crd().to_string());
        thread::sleep(LAG);
        Self { servers, objects, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn run(&self, only_dry_runs: bool) {
        self.store_at_v1();
        println!("{} objects", self.objects);
        let times = if self.objects > MANY { 1 } else { RUNS };
        let mut runs: [Vec<Run>; 4] = Default::default();
        for _ in 0..times {
            runs[1].push(self.measure(self.gantry(&["--dry-run"]), "toWrite", self.objects));
        }
        if only_dry_runs {
            // As after a migration, without its writes: the metadata is what it is either way.
            self.set_stored_versions(&["v2"]);
        }
        for run in 0..if only_dry_runs { 0 } else { times } {
            if run > 0 {
                self.store_at_v1();
            }
            let plain = process::run(&mut self.plain()).expect("start the plain connections");
            assert_eq!((plain.code, self.printed().trim()), (Some(0), self.objects.to_string().as_str()));
            runs[0].push(plain);
            self.store_at_v1();
            runs[3].push(self.measure(self.gantry(&["--yes"]), "written", self.objects));
        }
        for _ in 0..times {
            runs[2].push(self.measure(self.gantry(&["--dry-run"]), "toWrite", 0));
        }
        let [plain, proof, metadata, migrate] = &runs;
        let dry_runs = [("dry run", &proof[..]), ("nothing left", &metadata[..])];
        let all = [&[("plain writes", &plain[..])][..], &dry_runs, &[("gantry migrate", &migrate[..])]].concat();
        match only_dry_runs {
            true => measure::tell(&dry_runs, &DRY_RUN_BUDGET),
            false => measure::tell(&all, &BUDGET),
        }
    }

    /// Writes all objects to etcd as they were before the storage version moved.
    fn store_at_v1(&self) {
        // The former revisions would fill etcd.
        self.servers.compact();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    for first in (writer * BATCH..self.objects).step_by(WRITERS * BATCH) {
                        self.servers.store_all((first..self.objects.min(first + BATCH)).map(fixture::stored));
                    }
                });
            }
        });
        self.set_stored_versions(&["v1", "v2"]);
        until_at_rest(&self.servers);
    }

    /// Also removes what an earlier migration noted.
    fn set_stored_versions(&self, versions: &[&str]) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", fixture::NAME);
        let noted = json!({"metadata": {"annotations": {"gantry.dev/stored-since": null}}});
        for (path, patch) in
            [(path.clone(), noted), (format!("{path}/status"), json!({"status": {"storedVersions": versions}}))]
        {
            let (status, answer) = self.servers.patch(&path, &patch);
            assert_eq!(status, 200, "{answer}");
        }
    }

    /// Runs gantry, and asserts what its report says of the objects.
    fn measure(&self, mut gantry: Command, key: &str, expected: usize) -> Run {
        let run = process::run(&mut gantry).expect("start gantry");
        let report: Value = serde_json::from_str(&self.printed()).expect("the report is JSON");
        assert_eq!(run.code, Some(0), "{report:#}");
        let crd = &report["crds"][0];
        let found = if key == "written" { &crd["result"][key] } else { &crd[key] };
        assert_eq!(found, &json!(expected), "{report:#}");
        run
    }

    /// The built gantry, isolated from this machine's environment.
    fn gantry(&self, more: &[&str]) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
        command.env_clear().env("HOME", home).env("KUBECONFIG", self.servers.kubeconfig("admin")).current_dir(home);
        command.args(["migrate", fixture::NAME, "--prune-stored-versions", "-o", "json"]).args(more);
        self.quiet(command)
    }

    /// This program, in its other role.
    fn plain(&self) -> Command {
        let mut command = Command::new(env::current_exe().expect("the path of this program"));
        command.arg(self.servers.url()).arg(self.servers.ca_file()).env(TOKEN, self.servers.token("admin"));
        self.quiet(command)
    }

    fn quiet(&self, mut command: Command) -> Command {
        let output = File::create(self.output()).expect("a file");
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::inherit());
        command
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    fn printed(&self) -> String {
        fs::read_to_string(self.output()).expect("the output")
    }
}

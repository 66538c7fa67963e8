//! The cost of checking an upgrade against all existing objects, compared with a bare list of the same objects.
//!
//!     cargo bench --bench objects               100,000 objects of 1 KB
//!     cargo bench --bench objects -- 10000      this number of objects
//!     cargo bench --bench objects -- defaulted  an upgrade that adds a default to every object; a number can follow
//!
//! Starts the servers of the test bed, creates a CRD and objects generated from a seed, and then runs three processes
//! alternately, so that other load affects them all: the bare list, the same list through gantry's library, and
//! `gantry check`. `docs/internals/benchmarks.md` explains the figures.

mod bare_list;
mod fixture;
#[path = "../support/mod.rs"]
mod generator;
mod library_list;
#[path = "../measure/mod.rs"]
mod measure;
#[path = "../../tests/support/mod.rs"]
mod testbed;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fixture::Upgrade;
use measure::{Budget, Run, process, until_at_rest};
use serde_json::Value;
use testbed::ControlPlane;

const SEED: u64 = 7;
const OBJECTS: usize = 100_000;
const RUNS: usize = 5;
const PAGE_SIZE: u32 = 500;
const BUDGET: Budget = Budget { of: "list", ratio: 1.2, mebibytes: 100.0 };

/// This variable is set for the processes that list; their arguments are the role, the server's URL and certificate.
const TOKEN: &str = "GANTRY_BENCH_TOKEN";

fn main() -> ExitCode {
    // Cargo adds `--bench` to the user's arguments.
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let (Ok(token), [what, url, ca_file]) = (env::var(TOKEN), &arguments[..]) {
        let done = match what.as_str() {
            "bare" => bare_list::list(url, Path::new(ca_file), &token, PAGE_SIZE),
            _ => library_list::list(PAGE_SIZE),
        };
        return match done {
            Ok(done) => {
                println!("{done}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{what}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let (upgrade, rest) = match arguments.as_slice() {
        [first, rest @ ..] if first == "defaulted" => (Upgrade::Defaulted, rest),
        all => (Upgrade::Plain, all),
    };
    let objects = match rest.first().map(|number| number.parse()) {
        None => OBJECTS,
        Some(Ok(number)) => number,
        Some(Err(_)) => {
            eprintln!("the arguments are: [defaulted] [number of objects]");
            return ExitCode::from(2);
        }
    };
    run(objects, upgrade);
    ExitCode::SUCCESS
}

fn run(objects: usize, upgrade: Upgrade) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path();
    let servers = ControlPlane::start();
    servers.apply_yaml(&fixture::crd(None).to_string());
    create(&servers, objects);
    fs::write(home.join("crd.yaml"), fixture::crd(Some(upgrade)).to_string()).expect("write the manifest");
    until_at_rest(&servers);

    let bytes = Command::output(&mut lister(&servers, "bare")).expect("start the list");
    let bytes = String::from_utf8_lossy(&bytes.stdout).trim().parse().unwrap_or(0.0);
    println!("{objects} objects, {:.1} MB of JSON in pages of {PAGE_SIZE}, seed {SEED}", bytes / 1e6);

    let report = home.join("report.json");
    let json = format!("json={}", report.display());
    let first = process::run(gantry(&servers, home).args(["-o", &json])).expect("start gantry");
    assert_eq!(first.code, Some(3), "the check must block");
    check_report(objects, upgrade, &report);

    let mut runs: [Vec<Run>; 3] = Default::default();
    for _ in 0..RUNS {
        let processes = [(lister(&servers, "bare"), 0), (lister(&servers, "list"), 0), (gantry(&servers, home), 3)];
        for ((mut process, code), runs) in processes.into_iter().zip(&mut runs) {
            let run = process::run(process.stdout(Stdio::null())).expect("start the process");
            assert_eq!(run.code, Some(code), "{process:?} failed");
            runs.push(run);
        }
    }
    let [bare, list, check] = &runs;
    measure::tell(&[("bare list", bare), ("library list", list), ("gantry check", check)], &BUDGET);
}

/// Creates the objects over eight connections.
fn create(servers: &ControlPlane, objects: usize) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let api = servers.api_as("admin");
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= objects {
                        return;
                    }
                    let (status, answer) = api.post(fixture::COLLECTION, &fixture::object(SEED, number));
                    assert_eq!(status, 201, "{answer}");
                    if number.is_multiple_of(10_000) {
                        eprintln!("created {number} of {objects} objects");
                    }
                }
            });
        }
    });
}

/// The built gantry, isolated from this machine's environment.
fn gantry(servers: &ControlPlane, home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    command.env_clear().env("HOME", home).env("KUBECONFIG", servers.kubeconfig("admin")).current_dir(home);
    command.args(["check", "-q", "-f", "crd.yaml", "--preflight", "CustomResourceValidation"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Asserts that the measured check did its work: it found the objects that break, and no others.
fn check_report(objects: usize, upgrade: Upgrade, report: &Path) {
    let report = fs::read(report).expect("the report");
    let report: Value = serde_json::from_slice(&report).expect("the report is JSON");
    let found = |rule: &str| -> u64 {
        let findings = report["checks"][0]["findings"].as_array().expect("findings");
        let of_rule = findings.iter().filter(|finding| finding["rule"] == rule);
        of_rule.filter_map(|finding| finding["affected"]["count"].as_u64()).sum()
    };
    let expected = |every: usize, first: usize| (objects + every - 1 - first) / every;
    for (rule, expected) in [
        ("ExistingObjectRefusedWhenTouched", expected(fixture::REFUSED, 1)),
        ("ExistingDataPruned", expected(fixture::PRUNED, 2)),
        ("ExistingObjectDefaultedDifferently", if upgrade == Upgrade::Defaulted { objects } else { 0 }),
    ] {
        assert_eq!(found(rule), expected as u64, "{rule}: {report:#}");
    }
}

/// This program, in one of its other roles.
fn lister(servers: &ControlPlane, what: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    command.arg(what).arg(servers.url()).arg(servers.ca_file());
    command.env(TOKEN, servers.token("admin")).env("KUBECONFIG", servers.kubeconfig("admin")).stdin(Stdio::null());
    command
}

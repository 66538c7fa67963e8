//! The cost of a whole `gantry check`, compared with a bare list of the same CRDs.
//!
//!     cargo bench --bench check             614 CRDs of 20 KB on average
//!     cargo bench --bench check -- large    1,539 CRDs of 49 KB on average
//!     cargo bench --bench check -- 5000     this number of CRDs of 20 KB on average
//!     cargo bench --bench check -- small flux   of CRDs that another tool applied: kubectl, server-side, helm, flux, argo
//!
//! Starts the servers of the test bed, deploys CRDs that are generated from a seed, changes each of them as an upgrade
//! would, and then runs the processes alternately, so that other load affects all of them.
//! `docs/internals/benchmarks.md` explains the figures.

mod bare_list;
#[path = "../support/mod.rs"]
mod generator;
#[path = "../measure/mod.rs"]
mod measure;
#[path = "../../tests/support/mod.rs"]
mod testbed;

use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use measure::{Budget, process, until_at_rest};
use serde_json::Value;
use testbed::ControlPlane;

const SEED: u64 = 7;
const RUNS: usize = 15;

/// An amount of work and its budget.
struct Size {
    name: &'static str,
    crds: usize,
    /// The approximate size of one CRD as YAML, in bytes.
    bytes: usize,
    budget: Budget,
}

const SIZES: [Size; 2] = [
    Size { name: "small", crds: 614, bytes: 20_000, budget: Budget { of: "list", ratio: 2.0, mebibytes: 80.0 } },
    Size { name: "large", crds: 1539, bytes: 49_000, budget: Budget { of: "list", ratio: 2.0, mebibytes: 300.0 } },
];

/// The requested size: by name, or a number of CRDs like those of the small size.
fn size(asked: &str) -> Option<Size> {
    let counted = asked.parse().ok().filter(|crds| *crds > 0);
    let budget = Budget { of: "list", ratio: 2.0, mebibytes: f64::INFINITY };
    let named = SIZES.into_iter().find(|size| size.name == asked);
    named.or_else(|| counted.map(|crds| Size { name: "counted", crds, bytes: SIZES[0].bytes, budget }))
}

/// The tools that can apply the live side, and what kubectl is called with to write as they do.
const TOOLS: [(&str, &[&str]); 5] = [
    ("kubectl", &["apply"]),
    ("server-side", &["apply", "--server-side"]),
    ("helm", &["apply", "--server-side", "--field-manager=helm"]),
    ("flux", &["apply", "--server-side", "--field-manager=kustomize-controller"]),
    ("argo", &["apply", "--server-side", "--field-manager=argocd-controller"]),
];

/// This variable is set for the process that lists; its arguments are the server's address and certificate.
const TOKEN: &str = "GANTRY_BENCH_TOKEN";

fn main() -> ExitCode {
    // Cargo adds `--bench` to the user's arguments.
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let (Ok(token), [address, ca_file]) = (env::var(TOKEN), &arguments[..]) {
        return match bare_list::list(address, Path::new(ca_file), &token) {
            Ok(length) => {
                println!("{length}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("cannot list the CRDs: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let asked = arguments.first().map_or("small", String::as_str);
    let Some(size) = size(asked) else {
        eprintln!("unknown size {asked:?}; use {} or a number", SIZES.map(|size| size.name).join(", "));
        return ExitCode::from(2);
    };
    let tool = arguments.get(1).map(|asked| TOOLS.into_iter().find(|(name, _)| name == asked));
    let Some(tool) = tool.map_or(Some(None), |found| found.map(Some)) else {
        eprintln!("unknown tool; use {}", TOOLS.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    };
    run(&size, tool.map(|(_, arguments)| arguments));
    ExitCode::SUCCESS
}

/// `tool` has the arguments of kubectl; without them, gantry deploys the live side.
fn run(size: &Size, tool: Option<&[&str]>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (live, desired) = (folder.path().join("live"), folder.path().join("desired"));
    let bytes = write_manifests(size, &live, &desired).expect("write the manifests");
    println!("{} CRDs, {:.1} MB of YAML, seed {SEED}", size.crds, bytes as f64 / 1e6);

    let servers = ControlPlane::start();
    let home = folder.path();
    eprintln!("deploying the live side");
    let deployed = match tool {
        None => process::run(gantry(&servers, home).args(["deploy", "-y", "-f"]).arg(&live)),
        Some(arguments) => process::run(kubectl(&servers, home).args(arguments).arg("-f").arg(&live)),
    };
    assert_eq!(deployed.expect("start it").code, Some(0), "the live side was not deployed");
    eprintln!("waiting until the server is idle");
    until_at_rest(&servers);

    let report = home.join("report.json");
    let json = format!("json={}", report.display());
    let first = process::run(gantry(&servers, home).args(["check", "-o", &json, "-f"]).arg(&desired));
    assert_eq!(first.expect("start gantry").code, Some(3), "some of the upgrades must be blocked");
    let findings = check_report(size, &report);
    let listed = Command::output(&mut lister(&servers)).expect("start the list");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed: f64 = String::from_utf8_lossy(&listed.stdout).trim().parse().expect("the length of the list");
    println!("{:.1} MB of JSON in the list; every CRD changed, {findings} findings", listed / 1e6);

    let (mut lists, mut checks, mut same) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let list = process::run(lister(&servers).stdout(Stdio::null())).expect("start the list");
        assert_eq!(list.code, Some(0), "the list failed");
        lists.push(list);
        let check = process::run(gantry(&servers, home).args(["check", "-q", "-f"]).arg(&desired));
        let check = check.expect("start gantry");
        assert_eq!(check.code, Some(3), "the check failed");
        checks.push(check);
        let unchanged = process::run(gantry(&servers, home).args(["check", "-q", "-f"]).arg(&live));
        let unchanged = unchanged.expect("start gantry");
        assert_eq!(unchanged.code, Some(0), "the check of the same manifests failed");
        same.push(unchanged);
    }
    measure::tell(&[("bare list", &lists), ("of the same", &same), ("gantry check", &checks)], &size.budget);
}

/// Writes both sides, one file for each CRD, and returns the size of the desired side in bytes.
fn write_manifests(size: &Size, live: &Path, desired: &Path) -> io::Result<usize> {
    fs::create_dir(live)?;
    fs::create_dir(desired)?;
    let mut bytes = 0;
    for number in 0..size.crds {
        let crd = generator::crd(SEED, number, "bench.example.com", size.bytes);
        let upgraded = generator::yaml(&generator::upgraded(&crd, number));
        bytes += upgraded.len();
        let file = format!("{number:04}.yaml");
        fs::write(live.join(&file), generator::yaml(&crd))?;
        fs::write(desired.join(&file), upgraded)?;
    }
    Ok(bytes)
}

/// The built gantry, isolated from this machine's environment.
fn gantry(servers: &ControlPlane, home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    command.env_clear().env("HOME", home).env("KUBECONFIG", servers.kubeconfig("admin")).current_dir(home);
    // This many new CRDs keep the server busy for longer than the default time limits of a deploy.
    command.env("GANTRY_TIMEOUTS__ESTABLISHED", "1h");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The kubectl of the pinned release.
fn kubectl(servers: &ControlPlane, home: &Path) -> Command {
    let mut command = Command::new(gantry_testbed::kubectl());
    command.env_clear().env("HOME", home).env("KUBECONFIG", servers.kubeconfig("admin")).current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// This program, in its role as the bare list.
fn lister(servers: &ControlPlane) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    command.arg(servers.url().trim_start_matches("https://")).arg(servers.ca_file());
    command.env(TOKEN, servers.token("admin")).stdin(Stdio::null());
    command
}

/// Asserts that the measured check did its work: all CRDs were found live, and the unsafe tenth was reported.
fn check_report(size: &Size, report: &Path) -> u64 {
    let report = fs::read(report).expect("the report");
    let report: Value = serde_json::from_slice(&report).expect("the report is JSON");
    let summary = &report["summary"];
    assert_eq!(summary["updated"], size.crds, "{summary}");
    let errors = summary["errors"].as_u64().unwrap_or_default();
    assert!(errors >= (size.crds / 10) as u64, "{summary}");
    errors
}

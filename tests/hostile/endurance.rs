//! Hundreds of kills and faults: nothing is lost, and every run ends as it should. Not part of `cargo test`; see
//! docs/internals/testing.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Bed, Gantry, Mock, Output, Reply, Request, control_plane};
use serde_json::{Value, json};

/// The number of kills of deploys to each target.
const KILLS: u64 = 100;
/// The number of ConfigMaps of a deploy that is killed.
const OBJECTS: u64 = 30;
const MOST_KIB: u64 = 2 << 20;

/// A random number below `end`, the same in every run.
fn random(number: u64, end: u64) -> u64 {
    // SplitMix64.
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % end.max(1)
}

/// The manifests of a round: each object has the round's number twice, so half a write would be visible.
fn manifests(bed: &Bed, round: u64) -> String {
    let namespace = &bed.names.namespace;
    let padding = "x".repeat(5000);
    let object = |number| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}, namespace: {namespace}}}\n\
             data: {{first: '{round}', padding: {padding}, last: '{round}'}}\n"
        )
    };
    let mut documents =
        vec![bed.namespace(), bed.crd(&format!("first: {{type: string, description: 'round {round}'}}"))];
    documents.extend((0..OBJECTS).map(object));
    documents.join("---\n")
}

/// Kills a deploy of each round at a random moment, checks every object, and deploys again.
fn kills(bed: &Bed, gantry: impl Fn() -> Gantry, read: impl Fn(u64) -> Option<Value>) {
    bed.write("manifests.yaml", &manifests(bed, 0));
    gantry().run().code(0);
    let start = Instant::now();
    bed.write("manifests.yaml", &manifests(bed, 1));
    gantry().run().code(0);
    let usual = start.elapsed() + start.elapsed() / 10;
    let (mut before, mut during, mut after) = (0, 0, 0);
    for round in 2..KILLS + 2 {
        bed.write("manifests.yaml", &manifests(bed, round));
        let mut run = gantry().spawn();
        thread::sleep(Duration::from_micros(random(round, u64::try_from(usual.as_micros()).expect("short"))));
        run.kill();
        drop(run.wait());
        let mut new = 0;
        for number in 0..OBJECTS {
            let object = read(number).unwrap_or_else(|| panic!("round {round}: c{number} is lost"));
            let data = &object["data"];
            assert_eq!(data["first"], data["last"], "round {round}: c{number} is half written");
            assert_eq!(data["padding"].as_str().map(str::len), Some(5000), "round {round}: c{number} is half written");
            let stored = data["first"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
            assert!(stored == round || stored + 1 == round, "round {round}: c{number} is of round {stored}");
            new += u64::from(stored == round);
        }
        match new {
            0 => before += 1,
            OBJECTS => after += 1,
            _ => during += 1,
        }
        gantry().run().code(0);
        for number in 0..OBJECTS {
            assert_eq!(read(number).expect("an object")["data"]["last"], json!(round.to_string()), "c{number}");
        }
    }
    println!(
        "{KILLS} kills within {usual:?}: {before} before the ConfigMaps, {during} among them, {after} after them; nothing lost"
    );
}

#[test]
#[ignore = "takes minutes"]
fn a_server_is_consistent_after_killed_deploys() {
    let bed = Bed::new();
    let gantry = || bed.deploy(control_plane().kubeconfig("admin"), &[]);
    kills(&bed, gantry, |number| {
        let (code, object) = control_plane().get(&bed.config_map_path(&format!("c{number}")));
        (code == 200).then_some(object)
    });
}

#[test]
#[ignore = "takes minutes"]
fn a_folder_is_consistent_after_killed_deploys() {
    let bed = Bed::new();
    let live = bed.folder.path().join("live");
    fs::create_dir(&live).expect("a folder");
    // Next to other documents, which stay.
    let other = "# Not to be touched.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\n";
    fs::write(live.join("other.yaml"), other).expect("write a file");
    let gantry =
        || Gantry::new().cwd(bed.folder.path()).args(["deploy", "-f", "manifests.yaml", "--target", "dir:live"]);
    kills(&bed, gantry, |number| {
        assert_eq!(fs::read_to_string(live.join("other.yaml")).expect("the other file"), other);
        let path = live.join(format!("configmap_{}_c{number}.yaml", bed.names.namespace));
        serde_yaml::from_str(&fs::read_to_string(path).ok()?).ok()
    });
    let names = fs::read_dir(&live).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

const CHECKS: &str = "CRDUpgradeSafety,CustomResourceValidation,AdmissionDryRun,APIAvailability,PermissionValidation";

fn sample_crd(field: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: samples.example.com}}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {{plural: samples, singular: sample, kind: Sample, listKind: SampleList}}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, \
         properties: {{spec: {field}}}}}}}\n"
    )
}

/// A namespace, a CRD that is widened, two objects and a custom resource.
fn deployed() -> String {
    let object = |kind: &str, name: &str, rest: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: default}}\n{rest}\n")
    };
    [
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n".to_owned(),
        sample_crd("{type: string, maxLength: 20}"),
        object("ConfigMap", "a", "data: {key: x}"),
        object("Secret", "s", "stringData: {password: geheim-geheim}"),
        "apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: one, namespace: default}\nspec: x\n".to_owned(),
    ]
    .join("---\n")
}

/// The files in which the objects of [`deployed`] are stored.
const PATHS: [&str; 5] = [
    "/api/v1/namespaces/team",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.example.com",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/secrets/s",
    "/apis/example.com/v1/namespaces/default/samples/one",
];

/// The request, without the parts that differ between runs.
fn endpoint(asked: &Request) -> String {
    let keys: BTreeSet<&str> = asked.query.split('&').map(|pair| pair.split('=').next().unwrap_or(pair)).collect();
    format!("{} {} {:?}", asked.method, asked.path, keys)
}

fn faults() -> Vec<(&'static str, Reply)> {
    let head = |more: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}\r\n");
    let page = "<html><body>Log in</body></html>";
    let answer = |code, kind, body: &str| Reply::Answer(code, kind, body.to_owned());
    vec![
        ("closes", Reply::Bytes(Vec::new())),
        ("resets", Reply::Reset),
        ("500", Reply::refuse(500, "InternalError", "something broke")),
        ("503", Reply::refuse(503, "ServiceUnavailable", "not now")),
        ("429", Reply::refuse(429, "TooManyRequests", "later")),
        ("401", Reply::refuse(401, "Unauthorized", "Unauthorized")),
        ("403", Reply::refuse(403, "Forbidden", "forbidden: User \"admin\" cannot do that")),
        ("404", Reply::refuse(404, "NotFound", "not found")),
        ("409", Reply::refuse(409, "Conflict", "conflict")),
        ("422", Reply::refuse(422, "Invalid", "invalid")),
        ("text 500", answer(500, "text/plain", "boom")),
        ("garbage", answer(200, "application/json", "\u{1}garbage{")),
        ("no HTTP", Reply::Bytes(b"SSH-2.0-x\r\n\r\n".to_vec())),
        ("half JSON", answer(200, "application/json", "{\"kind\": \"List\", \"metadata\": {")),
        ("other JSON", answer(200, "application/json", "[1, 2, 3]")),
        ("empty object", answer(200, "application/json", "{}")),
        ("null", answer(200, "application/json", "null")),
        ("truncated", Reply::Bytes(head("content-length: 1000\r\n").into_bytes())),
        ("endless", Reply::Endless(head("").into_bytes(), vec![b' '; 1 << 20], Duration::ZERO)),
        ("slow", Reply::Endless(head("").into_bytes(), vec![b' '], Duration::from_millis(20))),
        ("hangs", Reply::Hang),
        ("wrong type", answer(200, "application/octet-stream", "{}")),
        ("empty", answer(200, "application/json", "")),
        ("HTML", answer(200, "text/html", page)),
        ("HTML 502", answer(502, "text/html", page)),
        ("loses its answer", Reply::LoseAnswer),
    ]
}

/// A server with the CRD in its older form, and a deploy to it.
fn deploy(plan: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> (Output, Mock, Option<Value>) {
    let bed = Bed::new();
    bed.write("manifests.yaml", &deployed());
    let server = Mock::start(plan);
    let mut live: Value = serde_yaml::from_str(&sample_crd("{type: string, maxLength: 10}")).expect("YAML");
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["resourceVersion"] = json!("1");
    let condition = |name: &str| json!({"type": name, "status": "True", "reason": "X", "message": "x"});
    live["status"] =
        json!({"storedVersions": ["v1"], "conditions": [condition("NamesAccepted"), condition("Established")]});
    server.put(PATHS[1], live);
    let run = bed
        .deploy(server.kubeconfig(bed.folder.path(), "t0ken-geheim"), &["--preflight", CHECKS, "--force-conflicts"])
        .args(["-o", "human", "-o", "json=report.json"])
        .env("GANTRY_TIMEOUTS__REQUEST", "1s")
        .env("GANTRY_TIMEOUTS__ESTABLISHED", "1s")
        .memory_limit(MOST_KIB)
        .run();
    let report = report(bed.folder.path());
    (run, server, report)
}

fn report(folder: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(folder.join("report.json")).ok()?).ok()
}

/// The reason why the end of a run is wrong, if it is.
fn wrong(run: &Output, server: &Mock, report: Option<&Value>) -> Option<String> {
    let said = format!("{}{}", run.stdout, run.stderr);
    let Some(report) = report else { return Some("no report".into()) };
    if said.contains("panicked") || said.contains("geheim") {
        return Some("a panic, or a secret".into());
    }
    let stored = |path: &str| {
        let object = server.object(path);
        object.is_some_and(|object| path != PATHS[1] || object.to_string().contains("20"))
    };
    let changes = report["changes"].as_array().cloned().unwrap_or_default();
    let wrote = server.requests().iter().any(Request::is_write);
    let errors = said.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
    if errors.iter().collect::<BTreeSet<_>>().len() != errors.len() {
        return Some("an error is said twice".into());
    }
    for change in &changes {
        let name = change["object"]["name"].as_str().unwrap_or_default();
        let Some(path) = PATHS.iter().find(|path| path.ends_with(&format!("/{name}"))) else {
            return Some(format!("{name}?"));
        };
        match change["result"].as_str() {
            Some("applied" | "unchanged") if !stored(path) => return Some(format!("{name} was not stored")),
            Some("notReached") | None if stored(path) && wrote && run.code != Some(0) => {
                return Some(format!("{name} was stored"));
            }
            _ => {}
        }
    }
    match run.code {
        Some(0) if !PATHS.iter().all(|path| stored(path)) => Some("exit 0, and not all is stored".into()),
        Some(0) => None,
        Some(1) if errors.is_empty() && !said.contains("could not check") => Some("exit 1 without an error".into()),
        Some(1) if report["outcome"] != "failed" => Some("exit 1, and the report knows of no failure".into()),
        Some(1) => None,
        Some(3) if wrote => Some("blocked, and something was written".into()),
        Some(3) if report["outcome"] != "blocked" => Some("exit 3, and the report knows of no block".into()),
        Some(3) => None,
        code => Some(format!("exit {code:?}")),
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_deploy_survives_faults_at_every_endpoint() {
    let (run, server, report) = deploy(|_| None);
    run.code(0);
    assert_eq!(wrong(&run, &server, report.as_ref()), None, "{run}");
    let endpoints: BTreeSet<String> = server.requests().iter().map(endpoint).collect();
    let faults = faults();
    let cases: Vec<(&String, &(&str, Reply))> =
        endpoints.iter().flat_map(|endpoint| faults.iter().map(move |fault| (endpoint, fault))).collect();
    let (next, codes, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((at, (name, does))) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (here, what) = ((*at).clone(), does.clone());
                    let (run, server, report) = deploy(move |asked| (endpoint(asked) == here).then(|| what.clone()));
                    *codes.lock().expect("codes").entry(run.code).or_insert(0) += 1;
                    if let Some(wrong) = wrong(&run, &server, report.as_ref()) {
                        found.lock().expect("found").push(format!("{at}: {name}: {wrong}\n{run}"));
                    }
                }
            });
        }
    });
    let (codes, found) = (codes.into_inner().expect("codes"), found.into_inner().expect("found"));
    println!("{} faults at {} endpoints: exit codes {codes:?}", cases.len(), endpoints.len());
    for endpoint in &endpoints {
        println!("  {endpoint}");
    }
    assert!(cases.len() >= 400, "{} faults", cases.len());
    assert!(found.is_empty(), "{} of {} ended wrong:\n{}", found.len(), cases.len(), found.join("\n\n"));
}

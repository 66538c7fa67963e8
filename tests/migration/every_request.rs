//! Kills and faults at every request of a migration, and kills at random moments: nothing is lost, nothing is trimmed too
//! early, and another run ends.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{Output, Proxy, Recorded, When, control_plane};

const ALL: [&str; 2] = ["--yes", "--prune-stored-versions"];
/// How many migrations run at the same time, each of its own CRD.
const AT_ONCE: usize = 4;
/// The number of kills at random moments; the variable sets another one.
const KILLS: u64 = 24;
const KILLS_VARIABLE: &str = "GANTRY_KILLS";

/// A CRD whose objects are stored at v1 again for each migration to v2.
struct Repeated {
    samples: StoredSamples,
    names: Vec<String>,
    /// The objects as etcd had them before the first migration.
    before: Vec<Value>,
    usual: OnceLock<Duration>,
}

impl Repeated {
    fn new(objects: usize) -> Self {
        let names: Vec<String> = (0..objects).map(|number| format!("s{number}")).collect();
        let samples = StoredSamples::moved(&names.iter().map(String::as_str).collect::<Vec<_>>(), &["a", "b"]);
        let before: Vec<Value> = names.iter().map(|name| samples.stored(name)).collect();
        assert!(before.iter().all(|object| !is_at_v2(object)));
        Self { samples, names, before, usual: OnceLock::new() }
    }

    /// Stores the objects as they were before the first migration, and names v1 in `status.storedVersions`. The CRD must
    /// not say any more that later writes are stored at v2: these are not.
    fn set_back(&self) {
        let objects = self.names.iter().map(|name| self.samples.key(name)).zip(self.before.iter().cloned());
        control_plane().store_all(objects);
        let path = self.samples.bed.crd_path();
        let mark = json!({"metadata": {"annotations": {"gantry.dev/stored-since": null}}});
        let versions = json!({"status": {"storedVersions": ["v1", "v2"]}});
        for (path, patch) in [(path.clone(), mark), (format!("{path}/status"), versions)] {
            let (status, answer) = control_plane().patch(&path, &patch);
            assert_eq!(status, 200, "{answer:#}");
        }
    }

    /// How long a migration takes that nothing disturbs, while others run.
    fn usual(&self) -> Duration {
        *self.usual.get_or_init(|| {
            // The first one waits for the storage version.
            self.ends("undisturbed");
            self.set_back();
            let started = Instant::now();
            self.ends("undisturbed");
            let usual = started.elapsed();
            self.set_back();
            usual
        })
    }

    fn migrate_through(&self, proxy: &Proxy) -> crate::support::Gantry {
        self.samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &self.samples.crd_name()]).args(ALL)
    }

    /// The requests of a migration that nothing disturbs.
    fn requests(&self) -> Vec<Recorded> {
        let proxy = Proxy::start(control_plane());
        self.migrate_through(&proxy).run().code(0);
        self.assert_done("undisturbed");
        self.set_back();
        proxy.requests()
    }

    /// Asserts what holds at any moment, by what etcd has. Returns how many objects are stored at v2.
    fn holds(&self, case: &str) -> usize {
        // In this order: what is trimmed now was complete before.
        let is_trimmed = self.samples.stored_versions() == json!(["v2"]);
        let now: Vec<Value> = self.names.iter().map(|name| self.samples.stored(name)).collect();
        for (before, now) in self.before.iter().zip(&now) {
            assert_eq!(content(now), content(before), "{case}: an object has changed");
        }
        let moved = now.iter().filter(|object| is_at_v2(object)).count();
        assert!(!is_trimmed || moved == now.len(), "{case}: trimmed when {moved} of {} objects had moved", now.len());
        moved
    }

    fn is_done(&self, case: &str) -> bool {
        let crd = self.samples.crd();
        self.holds(case) == self.names.len()
            && crd["status"]["storedVersions"] == json!(["v2"])
            && is_over(&crd["metadata"]["annotations"]["gantry.dev/stored-since"])
    }

    fn assert_done(&self, case: &str) {
        assert!(self.is_done(case), "{case}: not done: {:#}", self.samples.crd());
    }

    /// Another run does the rest.
    fn ends(&self, case: &str) {
        self.samples.migrate(&ALL).run().code(0);
        self.assert_done(case);
    }
}

/// Whether the annotation is gone, or says that nothing is left: a run that is killed after it has trimmed the stored
/// versions cannot remove it, and another one has nothing to do.
fn is_over(annotation: &Value) -> bool {
    annotation.as_str().is_none_or(|mark| mark.contains("\"complete\":true"))
}

fn is_at_v2(object: &Value) -> bool {
    object["apiVersion"].as_str().is_some_and(|version| version.ends_with("/v2"))
}

/// Everything but the versions, and the times of the entries in `managedFields`.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"].take();
    for entry in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
        entry["apiVersion"].take();
        entry["time"].take();
    }
    object
}

/// Does this with each of the cases, with several CRDs of so many objects at the same time.
fn each<T: Sync>(objects: usize, cases: &[T], run: impl Fn(&Repeated, &T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(cases.len()) {
            scope.spawn(|| {
                let repeated = Repeated::new(objects);
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    repeated.set_back();
                    run(&repeated, case);
                }
            });
        }
    });
}

#[test]
fn killed_before_or_after_any_request_it_loses_nothing_and_another_run_ends() {
    let requests = Repeated::new(3).requests();
    let places: Vec<(usize, bool)> = (1..=requests.len()).flat_map(|nth| [(nth, false), (nth, true)]).collect();
    each(3, &places, |repeated, &(nth, is_answered)| {
        let moment = if is_answered { "answered" } else { "sent" };
        let case = format!("killed when request {nth} of {} was {moment}: {:?}", requests.len(), requests[nth - 1]);
        let proxy = Proxy::start(control_plane());
        let when = When::new("", "").nth(nth);
        let held = if is_answered { proxy.hold_answer(when) } else { proxy.hold(when) };
        let mut run = repeated.migrate_through(&proxy).spawn();
        held.reached();
        run.kill();
        drop(run);
        // The request that is held back does not reach the server any more.
        proxy.refuse();
        drop(held);
        repeated.holds(&case);
        repeated.ends(&case);
    });
}

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The answer has this code. It comes once, or each time.
    Code(u16, &'static str, Times),
    CutBefore,
    CutAfter,
    HalfAnswer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    Always,
}

const FAULTS: [Fault; 9] = [
    Fault::Code(429, "TooManyRequests", Times::Once),
    Fault::Code(500, "InternalError", Times::Once),
    Fault::Code(500, "InternalError", Times::Always),
    Fault::Code(503, "ServiceUnavailable", Times::Once),
    Fault::Code(409, "Conflict", Times::Once),
    Fault::Code(409, "Conflict", Times::Always),
    Fault::CutBefore,
    Fault::CutAfter,
    Fault::HalfAnswer,
];

impl Fault {
    fn add_to(self, proxy: &Proxy, when: When) {
        match self {
            Fault::Code(code, reason, _) => {
                if code == 429 {
                    proxy.add_header(when.clone(), "retry-after", b"1");
                }
                let status =
                    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code});
                proxy.answer(when, code, status);
            }
            Fault::CutBefore => proxy.cut(when),
            Fault::CutAfter => proxy.lose_answer(when),
            Fault::HalfAnswer => proxy.halve_answer(when),
        }
    }

    fn is_once(self) -> bool {
        !matches!(self, Fault::Code(_, _, Times::Always))
    }
}

/// What a request asks, without the name of the object and the group, which differ between CRDs.
fn endpoint(request: &Recorded) -> (String, String, Vec<String>, bool) {
    let Recorded { method, path, query, metadata_only } = request;
    let place = match path.split_once("/samples/") {
        Some(_) => "objects/NAME".to_owned(),
        None if path.ends_with("/samples") => "objects".to_owned(),
        None => path.split('/').filter(|part| !part.contains("samples.")).collect::<Vec<_>>().join("/"),
    };
    let keys = query.split('&').filter_map(|pair| pair.split('=').next()).map(str::to_owned).collect();
    (method.clone(), place, keys, *metadata_only)
}

#[test]
fn a_fault_at_any_endpoint_loses_nothing_and_another_run_ends() {
    let requests = Repeated::new(3).requests();
    let mut seen = BTreeSet::new();
    let firsts = (1..=requests.len()).filter(|nth| seen.insert(endpoint(&requests[nth - 1])));
    let cases: Vec<(usize, Fault)> = firsts.flat_map(|nth| FAULTS.map(|fault| (nth, fault))).collect();
    // The CRD; the objects and their metadata; dry runs, annotation, writes and trimmed versions.
    assert!(seen.len() >= 7, "{seen:#?}");
    each(3, &cases, |repeated, &(nth, fault)| {
        let proxy = Proxy::start(control_plane());
        let when = When::new("", "");
        let when = if fault.is_once() { when.nth(nth) } else { when.starting_at_nth(nth) };
        fault.add_to(&proxy, when);
        let run = repeated.migrate_through(&proxy).run();
        let case = format!("{fault:?} at request {nth}, {:?}:\n{run}\n", requests[nth - 1]);
        assert_end(repeated, &run, &case);
        // What the server asks to repeat, or what it has not seen, is sent again.
        if matches!(fault, Fault::Code(429, ..)) {
            assert_eq!(run.code, Some(0), "{case}");
        }
        if run.code != Some(0) {
            repeated.ends(&case);
        }
    });
}

/// The exit code says what has been done.
fn assert_end(repeated: &Repeated, run: &Output, case: &str) {
    let moved = repeated.holds(case);
    match run.code {
        Some(0) => repeated.assert_done(case),
        Some(1) => assert!(run.stderr.contains("error: "), "{case}"),
        Some(3) => assert_eq!(moved, 0, "{case}"),
        _ => panic!("{case}"),
    }
}

/// A random number below `end`, the same in every run.
fn random(number: u64, end: u64) -> u64 {
    // SplitMix64.
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % end.max(1)
}

/// Kills a migration at a random moment within this time. One that ended before is done again.
fn kill_once(repeated: &Repeated, seed: u64, usual: Duration, case: &mut String) -> usize {
    let micros = u64::try_from(usual.as_micros()).expect("short");
    for turn in 0.. {
        let after = Duration::from_micros(random(seed * 1000 + turn, micros));
        let mut run = repeated.samples.migrate(&ALL).spawn();
        let has_ended = run.ends_within(after);
        run.kill();
        drop(run);
        case.push_str(&format!(" {after:?}"));
        let moved = repeated.holds(case);
        if !has_ended {
            return moved;
        }
        repeated.assert_done(case);
        repeated.set_back();
    }
    unreachable!("there is always another turn")
}

#[test]
fn killed_at_random_moments_it_loses_nothing_and_another_run_ends() {
    const OBJECTS: usize = 60;
    let kills = std::env::var(KILLS_VARIABLE).map_or(KILLS, |number| number.parse().expect("a number of kills"));
    // The run after the first kill is killed, too.
    let cases: Vec<u64> = (0..kills.div_ceil(2)).collect();
    let among = AtomicUsize::new(0);
    each(OBJECTS, &cases, |repeated, &number| {
        let mut case = format!("case {number}, killed after");
        for seed in [2 * number, 2 * number + 1] {
            let moved = kill_once(repeated, seed, repeated.usual(), &mut case);
            among.fetch_add(usize::from(moved > 0 && moved < OBJECTS), Ordering::Relaxed);
        }
        repeated.ends(&case);
    });
    let (kills, among) = (2 * cases.len(), among.into_inner());
    println!("{kills} kills of migrations of {OBJECTS} objects, {among} of them among the writes: nothing lost");
}

//! What `gantry migrate` prints: the plan, what blocks it, and the result.

use std::time::Duration;

use serde_json::{Value, json as value};

use super::{Migration, count};
use crate::run::pretty;
use gantry_core::problem::Problem;
use gantry_core::text::{self, sanitize};
use gantry_migration::{MigrationEnd, MigrationLoss, MigrationProof, MigrationStop, ObjectProblem};
use gantry_report::ErrorEntry;

/// How many lost values and refused objects of a CRD are shown. JSON has all.
const SHOWN: usize = 20;
/// From this number of writes on, the plan says how long they take.
const LONG: u64 = 1000;

/// The flag of `gantry migrate` with which it prints everything.
pub const ALL: &str = "-o json";

/// Why the migrations do not begin: values that would be lost, and objects that the server refuses.
///
/// `accepting` says what accepts the loss of a CRD with a digest, and `all` what prints everything about a CRD.
pub fn blockers(
    migrations: &[Migration],
    accepted: &[String],
    accepting: &dyn Fn(&MigrationProof, &str) -> String,
    all: &dyn Fn(&MigrationProof) -> String,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for Migration { proof, .. } in migrations {
        let name = sanitize(proof.kind.name()).into_owned();
        let storage = proof.kind.storage_version();
        if proof.refused_count > 0 {
            let objects = text::count(count(proof.refused_count), "object");
            let list = listed(proof.refused.iter().map(show_problem), proof.refused_count, &all(proof));
            let message = format!("the server does not write {objects} of {name} as they are:{list}");
            problems.push(Problem::new(message).help(format!(
                "no object was written; make these objects valid at {storage}, or let them be written, and run the same \
                 command again"
            )));
        }
        let Some(digest) = proof.digest().filter(|digest| !accepted.contains(digest)) else { continue };
        let accept = format!("to accept exactly this: {}", accepting(proof, &digest));
        if proof.loss_count > 0 {
            let values = text::count(count(proof.loss_count), "value");
            let list = listed(proof.losses.iter().map(show_loss), proof.loss_count, &all(proof));
            let message = format!("the migration of {name} to {storage} loses {values}:{list}");
            let fix = match proof.kind.crd.converts_by_webhook() {
                true => format!("let the conversion webhook keep them at {storage}"),
                false => format!("add these fields to {storage} in the CRD, or convert with a webhook"),
            };
            problems.push(Problem::new(message).help(format!("no object was written; {fix}; {accept}")));
        }
        problems.extend(proof.unproven.iter().map(|problem| {
            let help = problem.help.as_deref().unwrap_or_default();
            Problem { help: Some(format!("no object was written; {help}; {accept}")), ..problem.clone() }
        }));
    }
    problems
}

/// Lines for the first items, how many more there are, and what prints all of them.
fn listed(items: impl Iterator<Item = String>, count: u64, all: &str) -> String {
    let mut lines: String = items.take(SHOWN).map(|item| format!("\n  {item}")).collect();
    let more = count.saturating_sub(SHOWN as u64);
    if more > 0 {
        let all = if all.is_empty() { String::new() } else { format!(" (all: {all})") };
        lines.push_str(&format!("\n  … and {more} more{all}"));
    }
    lines
}

/// `team-a/batch: spec.interval of v1: "5m"`
fn show_loss(lost: &MigrationLoss) -> String {
    let MigrationLoss { object, version, path, value, becomes } = lost;
    let becomes = becomes.as_ref().map(|becomes| format!(", becomes {becomes}")).unwrap_or_default();
    format!("{}: {path} of {version}: {value}{becomes}", sanitize(object))
}

fn show_problem(problem: &ObjectProblem) -> String {
    format!("{}: {}", sanitize(&problem.object), sanitize(&problem.message))
}

/// What would be done for each CRD.
pub fn plan(migrations: &[Migration], parallel: usize) -> String {
    if migrations.is_empty() {
        return "Nothing to do: no CRD has objects that are stored at another version than its storage version\n"
            .into();
    }
    migrations.iter().map(|Migration { proof, .. }| format!("{}\n", plan_of(proof, parallel))).collect()
}

pub fn plan_of(proof: &MigrationProof, parallel: usize) -> String {
    let name = sanitize(proof.kind.name());
    let storage = proof.kind.storage_version();
    let objects = text::count(count(proof.objects), "object");
    if proof.is_needless() {
        return format!("{name}: nothing to do: all objects are stored at {storage} ({objects})");
    }
    let mut parts = vec![match (proof.to_write, proof.old.is_empty()) {
        (0, _) => format!("all are stored at {storage}"),
        (_, true) => format!("all are stored at {storage}"),
        (left, false) if left == proof.objects => format!("to write at {storage}"),
        (left, false) if proof.is_continued => format!("{left} left to write at {storage}"),
        (left, false) => format!("{left} to write at {storage}"),
    }];
    if proof.to_move > 0 {
        let whose = match proof.to_move {
            1 => "managedFields of 1 name".to_owned(),
            many => format!("managedFields of {many} name"),
        };
        parts.push(format!("{whose} versions that are not served, and are changed to {storage}"));
    }
    if !proof.old.is_empty() {
        parts.push(format!("stored versions: {}", proof.kind.crd.stored_versions().join(", ")));
        if proof.refused_count == 0 && proof.to_write > 0 {
            parts.push(show_losses(proof));
        }
    }
    if let Some(pace) = proof.pace.filter(|_| proof.to_write >= LONG) {
        let time = duration(pace.saturating_mul(u32::try_from(proof.to_write).unwrap_or(u32::MAX)));
        let load = 1.0 / pace.as_secs_f64().max(1e-6);
        parts.push(format!(
            "at least {time}: {} requests, {parallel} at a time, up to {load:.0} a second as measured by dry runs",
            proof.requests()
        ));
    }
    format!("{name}: {objects}, {}", parts.join("; "))
}

/// What is lost, if anything is: then the loss has been accepted, or blocks.
fn show_losses(proof: &MigrationProof) -> String {
    match (proof.loss_count, proof.unproven.len()) {
        (0, 0) => "nothing is lost".to_owned(),
        (0, _) => "what is lost is not known".to_owned(),
        (1, 0) => "1 value is lost".to_owned(),
        (values, 0) => format!("{values} values are lost"),
        (values, _) => format!("at least {} lost", text::count(count(values), "value")),
    }
}

/// The question before the first write. A loss has been accepted.
pub fn question(migrations: &[Migration], trims: bool, target: &str) -> String {
    let of_all = |number: fn(&MigrationProof) -> u64| -> u64 {
        migrations.iter().map(|migration| number(&migration.proof)).sum()
    };
    let writes = of_all(|proof| proof.to_write);
    let crds = migrations.iter().filter(|migration| !migration.proof.is_needless()).count();
    let trim = if trims { " and trim the stored versions" } else { "" };
    let unknown = of_all(|proof| proof.unproven.len() as u64) > 0;
    let loses = match of_all(|proof| proof.loss_count) {
        0 if unknown => ", with losses that are not known,".to_owned(),
        0 => String::new(),
        lost => format!(", which loses {},", text::count(count(lost), "value")),
    };
    format!("Write {} of {}{loses}{trim} in {target}?", text::count(count(writes), "object"), text::count(crds, "CRD"))
}

/// `412/s, 3 min left`
pub fn rate_and_remaining(done: u64, total: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if done == 0 || seconds < 1.0 {
        return String::new();
    }
    let rate = done as f64 / seconds;
    let left = Duration::from_secs_f64(total.saturating_sub(done) as f64 / rate);
    format!("{rate:.0}/s, {} left", duration(left))
}

fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{} s", seconds.max(1)),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// What was done for each CRD.
pub fn result(migrations: &[Migration], trims: bool) -> String {
    let of_one = |Migration { proof, end }: &Migration| Some(format!("{}\n", result_of(proof, end.as_ref()?, trims)));
    migrations.iter().filter_map(of_one).collect()
}

pub fn result_of(proof: &MigrationProof, end: &MigrationEnd, trims: bool) -> String {
    let name = sanitize(proof.kind.name());
    let storage = proof.kind.storage_version();
    let mut parts = vec![format!("wrote {}", text::count(count(end.written), "object"))];
    if end.already_stored > 0 {
        parts.push(format!("{} of them stored at {storage} before", end.already_stored));
    }
    if end.written_by_others > 0 {
        parts.push(format!("{} written or deleted by others meanwhile", end.written_by_others));
    }
    if !end.failed.is_empty() {
        parts.push(format!("{} not written", end.failed.len()));
    }
    let left: Vec<&str> = proof.kind.crd.stored_versions().into_iter().filter(|version| *version != storage).collect();
    let outcome = match (&end.stop, end.is_trimmed) {
        (Some(MigrationStop::Interrupted), _) => "interrupted: run the same command again for the rest".to_owned(),
        (Some(_), _) => "not complete".to_owned(),
        (None, true) => format!("verified; status.storedVersions is [{storage}]"),
        (None, false) if left.is_empty() || trims => "verified".to_owned(),
        (None, false) => format!(
            "verified: all objects are stored at {storage}; status.storedVersions still has {}: --prune-stored-versions \
             removes {}",
            left.join(", "),
            if left.len() == 1 { "it" } else { "them" }
        ),
    };
    format!("{name}: {}; {outcome}", parts.join(", "))
}

/// Why the command failed. `all` is what prints all objects.
pub fn failures(migrations: &[Migration], all: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for Migration { proof, end } in migrations {
        let Some(end) = end else { continue };
        let name = sanitize(proof.kind.name());
        match &end.stop {
            None => {}
            Some(MigrationStop::Interrupted) => {
                let message =
                    format!("interrupted; of {name}, {} were written", text::count(count(end.written), "object"));
                problems.push(Problem::new(message).help("run the same command again for the rest"));
            }
            Some(MigrationStop::Failed) => {
                let objects = text::count(end.failed.len(), "object");
                let list = listed(end.failed.iter().map(show_problem), end.failed.len() as u64, all);
                let message = format!("{objects} of {name} could not be written:{list}");
                let help =
                    "nothing is lost, and status.storedVersions is as it was; run the same command again for the rest";
                problems.push(Problem::new(message).help(help));
            }
            Some(MigrationStop::Problem(problem)) => problems.push(problem.clone()),
        }
    }
    problems
}

/// Everything as JSON. The errors are those of a report.
pub fn json(migrations: &[Migration], is_dry_run: bool, errors: &[Problem]) -> String {
    let crds: Vec<Value> = migrations.iter().map(json_of).collect();
    let errors: Vec<ErrorEntry> = errors.iter().map(ErrorEntry::from).collect();
    pretty(&value!({"dryRun": is_dry_run, "crds": crds, "errors": errors}))
}

fn json_of(Migration { proof, end }: &Migration) -> Value {
    let problems = |problems: &[ObjectProblem]| -> Vec<Value> {
        problems.iter().map(|problem| value!({"object": problem.object, "message": problem.message})).collect()
    };
    let losses: Vec<Value> = proof
        .losses
        .iter()
        .map(|MigrationLoss { object, version, path, value, becomes }| {
            value!({"object": object, "version": version, "path": path, "value": value, "becomes": becomes})
        })
        .collect();
    let result = end.as_ref().map(|end| {
        let outcome = match &end.stop {
            None => "migrated",
            Some(MigrationStop::Interrupted) => "interrupted",
            Some(_) => "failed",
        };
        let stored =
            end.kind.as_ref().map(|kind| kind.crd.stored_versions().into_iter().map(str::to_owned).collect::<Vec<_>>());
        value!({
            "outcome": outcome, "written": end.written, "alreadyStored": end.already_stored,
            "writtenByOthers": end.written_by_others, "failed": problems(&end.failed), "storedVersions": stored,
        })
    });
    value!({
        "name": proof.kind.name(),
        "storageVersion": proof.kind.storage_version(),
        "storedVersions": proof.kind.crd.stored_versions(),
        "objects": proof.objects,
        "toWrite": proof.to_write,
        "toMoveManagedFields": proof.to_move,
        "requests": proof.requests(),
        "secondsPerWrite": proof.pace.map(|pace| pace.as_secs_f64()),
        "continued": proof.is_continued,
        "lossCount": proof.loss_count,
        "losses": losses,
        "unproven": proof.unproven.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(),
        "digest": proof.digest(),
        "refusedCount": proof.refused_count,
        "refused": problems(&proof.refused),
        "result": result,
    })
}

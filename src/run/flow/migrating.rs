//! `deploy --migrate`: stored objects move before a version is removed, and after the storage version moves.
//!
//! ```text
//! what moves before ─► prove ─► check ─► question ─► write, trim ─► deploy ─► what moves after: prove, question, write, trim
//! ```

mod foretold;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use self::foretold::{LaterMigration, entry_of};
use super::configured::ConfiguredRun;
use super::target::{OpenedTarget, on_target};
use crate::run::host::{Exit, Host};
use crate::run::interrupt::until_interrupted;
use crate::run::migrate::rights::{MigrationRight, rights_for};
use crate::run::migrate::{Migration, MigrationRun, printed};
use crate::run::next_command::{ClusterFlags, NextCommand};
use crate::run::output::Output;
use crate::run::prepare::open_target;
use crate::run::write;
use gantry_cluster::{IN_FLIGHT, ObjectToRead, Target};
use gantry_core::crd::Crd;
use gantry_core::finding::ApplyResult;
use gantry_core::manifest::{LoadedManifests, Manifest};
use gantry_core::options::TargetSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::ObjectRef;
use gantry_core::text;
use gantry_deploy::plan::{Change, ObjectLookup, Plan, Prefetch};
use gantry_migration::{MigrationProof, StoredKind};
use gantry_report::{MigrationTime, Report};

/// The CRDs whose stored objects a deploy moves, by name.
#[derive(Debug, Clone, Default)]
pub struct MigratingCrds {
    /// Before it writes anything.
    pub before: BTreeSet<String>,
    /// When the CRD is deployed.
    pub after: BTreeSet<String>,
    /// This run has moved them.
    pub done: BTreeSet<String>,
}

impl MigratingCrds {
    /// Names the command that moves the objects of the CRDs whose storage version this deploy has moved, unless it moves
    /// them itself.
    pub fn objects_left_behind(&self, plan: &Plan, applied: &[ApplyResult], cluster: &ClusterFlags) -> Vec<Problem> {
        let notice = |(change, result): (&Change, &ApplyResult)| {
            let object = &change.desired.object;
            if *result != ApplyResult::Applied || !object.is_crd() || self.after.contains(&object.name) {
                return None;
            }
            let live = Crd::read(&change.live.as_ref()?.raw).ok()?;
            let desired = Crd::read(&change.desired.raw).ok()?;
            let (was, now) = (&live.storage()?.name, &desired.storage()?.name);
            let name = text::sanitize(&live.name);
            let migrate =
                NextCommand::new(&["migrate", &live.name]).switch("--prune-stored-versions", true).on(cluster);
            (was != now).then(|| {
                Problem::new(format!("objects of {name} stay stored at {was} until they are next written"))
                    .help(format!("to write them at {now} now: {migrate}"))
            })
        };
        plan.changes.iter().zip(applied).filter_map(notice).collect()
    }

    /// Whether this deploy moves objects, or has moved them.
    pub fn moves_any(&self) -> bool {
        !(self.before.is_empty() && self.after.is_empty() && self.done.is_empty())
    }

    /// What it takes, for the check of the rights.
    pub fn lookups(&self) -> impl Iterator<Item = ObjectLookup> {
        self.before.union(&self.after).flat_map(|crd| {
            let object = Arc::new(ObjectRef::crd(crd));
            let otherwise = match self.before.contains(crd) {
                true => format!(
                    "let somebody who has it move the objects first, with gantry migrate {crd} --prune-stored-versions, \
                     and deploy without --migrate"
                ),
                false => format!(
                    "deploy without --migrate, and let somebody who has it move the objects then: gantry migrate {crd} \
                     --prune-stored-versions"
                ),
            };
            rights_for(crd).into_iter().map(move |MigrationRight { resource, name, verb }| ObjectLookup {
                object: Arc::clone(&object),
                resource,
                namespace: None,
                name,
                verb,
                otherwise: Some(Cow::from(otherwise.clone())),
            })
        })
    }
}

/// How the user can go on.
struct HowToGoOn {
    /// The flags for commands on the same cluster.
    cluster: ClusterFlags,
    /// The user is asked before objects move.
    is_asked: bool,
}

/// Checks before any request that there can be stored objects to move.
///
/// # Errors
/// The target is no cluster, or there are several.
pub fn check_target(run: &ConfiguredRun<'_>, has_many: bool) -> Result<()> {
    if run.settings.target != TargetSpec::Kube {
        let problem = Problem::new("--migrate: only the API server of a cluster has stored objects");
        return Err(Error::usage(problem.help("leave it out")));
    }
    if has_many {
        let problem = Problem::new("--migrate moves the stored objects of one cluster at a time");
        return Err(Error::usage(problem.help(
            "deploy to one context; or leave it out, and move the objects of each cluster: gantry migrate --all --context NAME",
        )));
    }
    Ok(())
}

/// Deploys, and moves the stored objects that this takes.
pub async fn deploy(
    run: &mut ConfiguredRun<'_>,
    loaded: LoadedManifests,
    at: OpenedTarget<'_>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<Exit> {
    let stop = host.stop.clone();
    // Without a terminal there is no question: the flag decides.
    let is_asked = host.stdin_is_terminal && host.stderr_is_terminal && !run.confirmed;
    let go_on = HowToGoOn { cluster: ClusterFlags::of_flow(run.args, None), is_asked };
    let (field_manager, progress) = (run.settings.field_manager.clone(), run.progress);
    // The target of the deploy is used up by it.
    let target = open_target(&run.settings).await?;
    let migration =
        MigrationRun { target: &target, field_manager: &field_manager, parallel: IN_FLIGHT, progress: &progress };
    let proving = async {
        let (before, after) = find(&loaded.manifests, &target).await?;
        let (mut migrations, _) = migration.prove(before, false).await?;
        migrations.retain(|migration| !migration.proof.is_needless());
        Ok((migrations, after))
    };
    let (mut migrations, after) = until_interrupted(&stop, proving).await?;
    foretold::note(report, migrations.iter().map(|migration| entry_of(migration, MigrationTime::BeforeDeploy)));
    foretold::note(report, after.iter().map(LaterMigration::entry));
    check_blockers(&migrations, &go_on, report)?;
    let names = |migrations: &[Migration]| -> BTreeSet<String> {
        migrations.iter().map(|migration| migration.proof.kind.name().to_owned()).collect()
    };
    let later = after.iter().map(|later| later.name.clone()).collect();
    let migrating = MigratingCrds { before: names(&migrations), after: later, done: BTreeSet::new() };
    let crds = crd_names(&loaded.manifests);
    if !run.writes {
        let before = migrations.iter().map(|migration| format!("before the deploy: {}", migration.plan(IN_FLIGHT)));
        let notices: Vec<Problem> = before.map(Problem::new).chain(after.iter().map(LaterMigration::plan)).collect();
        output.add_notices(host, &notices, report);
        let at = OpenedTarget { migrating, ..at };
        return Box::pin(on_target(run, loaded, at, host, output, report, &mut |_| ())).await;
    }
    let at = if migrations.is_empty() {
        OpenedTarget { migrating, ..at }
    } else {
        let baseline = at.baseline;
        let checked = OpenedTarget { migrating: migrating.clone(), ..at };
        if let Some(exit) = check_ahead(run, loaded.clone(), checked, host, output, report).await? {
            return Ok(exit);
        }
        let migrated = migrate(&migration, &mut migrations, &go_on, host).await;
        foretold::note(report, migrations.iter().map(|migration| entry_of(migration, MigrationTime::BeforeDeploy)));
        let notices = migrated?;
        output.add_notices(host, &notices, report);
        let migrating = MigratingCrds { done: migrating.before, before: BTreeSet::new(), after: migrating.after };
        // The CRDs have changed.
        OpenedTarget {
            target: open_target(&run.settings).await?,
            ahead: Prefetch::none(),
            before: None,
            baseline,
            migrating,
            context: None,
        }
    };
    let exit = Box::pin(on_target(run, loaded, at, host, output, report, &mut |_| ())).await?;
    if exit != Exit::Success {
        return Ok(exit);
    }
    let moved = Box::pin(migrate_after(&migration, &crds, &go_on, host, report)).await;
    match moved {
        Ok(notices) => {
            output.add_notices(host, &notices, report);
            Ok(exit)
        }
        Err(error) => {
            let words = |problem: &Problem| Problem {
                message: format!("the manifests are deployed; {}", problem.message),
                ..problem.clone()
            };
            Err(Error::Failed(error.problems().iter().map(words).collect()))
        }
    }
}

/// Checks the deploy as if the objects had moved: nothing is moved unless the deploy can follow. Reports only if it cannot,
/// with the exit code.
async fn check_ahead(
    run: &mut ConfiguredRun<'_>,
    loaded: LoadedManifests,
    at: OpenedTarget<'_>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<Option<Exit>> {
    let (mut quiet, mut foreseen) = (output.for_cluster(), Report::default());
    let writes = std::mem::replace(&mut run.writes, false);
    let checked = Box::pin(on_target(run, loaded, at, host, &mut quiet, &mut foreseen, &mut |_| ())).await;
    run.writes = writes;
    let exit = checked?;
    if exit == Exit::Success {
        return Ok(None);
    }
    output.print_notices(host, &quiet.take_notices());
    foreseen.migrations = std::mem::take(&mut report.migrations);
    *report = foreseen;
    output.review(host, report)?;
    Ok(Some(exit))
}

/// Moves the objects of those deployed CRDs that have old versions. Returns what is to be said.
async fn migrate_after(
    run: &MigrationRun<'_>,
    crds: &BTreeSet<String>,
    go_on: &HowToGoOn,
    host: &mut Host,
    report: &mut Report,
) -> Result<Vec<Problem>> {
    let proving = async {
        let kinds = read(crds, run.target).await?;
        let kinds = kinds.into_iter().filter(|kind| kind.old_versions().next().is_some()).collect();
        Ok(run.prove(kinds, false).await?.0)
    };
    let mut migrations = until_interrupted(&host.stop.clone(), proving).await?;
    let entries = |migrations: &[Migration]| {
        migrations.iter().map(|migration| entry_of(migration, MigrationTime::AfterDeploy)).collect::<Vec<_>>()
    };
    foretold::note(report, entries(&migrations));
    check_blockers(&migrations, go_on, report)?;
    let migrated = migrate(run, &mut migrations, go_on, host).await;
    foretold::note(report, entries(&migrations));
    migrated
}

/// Ends the run if some objects cannot move.
fn check_blockers(migrations: &[Migration], go_on: &HowToGoOn, report: &mut Report) -> Result<()> {
    let is_blocked = |migration: &&Migration| !blockers(std::slice::from_ref(*migration), go_on).is_empty();
    let blocked: Vec<&str> =
        migrations.iter().filter(is_blocked).map(|migration| migration.proof.kind.name()).collect();
    if blocked.is_empty() {
        return Ok(());
    }
    foretold::note_blocked(report, &blocked);
    Err(Error::Blocked(blockers(migrations, go_on)))
}

/// Asks, writes, and trims. Returns what is to be said.
async fn migrate(
    run: &MigrationRun<'_>,
    migrations: &mut [Migration],
    go_on: &HowToGoOn,
    host: &mut Host,
) -> Result<Vec<Problem>> {
    if migrations.is_empty() {
        return Ok(Vec::new());
    }
    if go_on.is_asked {
        let question = printed::question(migrations, true, &run.target.describe());
        let crds: Vec<&str> = migrations.iter().map(|migration| migration.proof.kind.name()).collect();
        let later = NextCommand::new(&[&["migrate"], &*crds].concat()).switch("--prune-stored-versions", true);
        let later = format!("to move them later: {}", later.on(&go_on.cluster));
        let asked = write::confirm_or(host, &question, "no stored object was moved").await;
        asked.map_err(|error| Error::failed(error.first_problem().help(later)))?;
    }
    let done = run.write(migrations, None, true, host).await?;
    if !done {
        return Err(Error::Failed(printed::failures(migrations, "")));
    }
    let results = migrations.iter().filter_map(Migration::result).map(Problem::new);
    let notices = migrations.iter().filter_map(|migration| migration.end.as_ref()).flat_map(|end| &end.notices);
    Ok(results.chain(notices.cloned()).collect())
}

/// Why the objects do not move, with the commands that go on.
fn blockers(migrations: &[Migration], go_on: &HowToGoOn) -> Vec<Problem> {
    let HowToGoOn { cluster, is_asked } = go_on;
    let migrate = |proof: &MigrationProof| NextCommand::new(&["migrate", proof.kind.name()]);
    let accepting = |proof: &MigrationProof, digest: &str| {
        let accepting = migrate(proof).switch("--prune-stored-versions", true).flag("--accept-loss", Some(digest));
        accepting.switch("--yes", !is_asked).on(cluster).to_string()
    };
    let all = |proof: &MigrationProof| {
        migrate(proof).switch("--dry-run", true).on(cluster).flag("-o", Some("json")).to_string()
    };
    printed::blockers(migrations, &[], &accepting, &all)
}

fn crd_names(manifests: &[Manifest]) -> BTreeSet<String> {
    manifests
        .iter()
        .map(|manifest| &manifest.object)
        .filter(|object| object.is_crd())
        .map(|crd| crd.name.clone())
        .collect()
}

/// The live CRDs of these names that exist, and whose stored objects a request can reach.
async fn read(names: &BTreeSet<String>, target: &Target) -> Result<Vec<StoredKind>> {
    let wanted: Vec<ObjectToRead> = names.iter().map(|name| ObjectToRead::crd(name)).collect();
    let found = target.read(&wanted, &|_, _| ()).await?;
    Ok(found.into_iter().flatten().filter_map(|live| StoredKind::read(live).ok()).collect())
}

/// The CRDs whose stored objects move before the deploy, and those whose objects move after it.
///
/// Before it: a version leaves that nobody can write at any more, and that objects may be stored at, or name in their
/// managedFields. The storage version of the live CRD has to stay.
async fn find(manifests: &[Manifest], target: &Target) -> Result<(Vec<StoredKind>, Vec<LaterMigration>)> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for kind in read(&crd_names(manifests), target).await? {
        let manifest =
            manifests.iter().find(|manifest| manifest.object.is_crd() && manifest.object.name == kind.name());
        let Some(desired) = manifest.and_then(|manifest| Crd::read(&manifest.raw).ok()) else { continue };
        let stays = |version: &str| desired.version(version).is_some();
        // Entries of managedFields at a version outlive the migration of the objects as long as it is served.
        let is_named = kind.crd.versions.iter().any(|version| !version.served && !stays(&version.name));
        let can_move = is_named && kind.old_versions().all(|version| stays(&version.name) || !version.served);
        if can_move && stays(kind.storage_version()) {
            before.push(kind);
            continue;
        }
        let Some(storage) = desired.storage() else { continue };
        if *storage.name != *kind.storage_version() || kind.old_versions().next().is_some() {
            // Without the right to list them, the check of the rights says so.
            let objects = match target.as_server() {
                Some(server) => kind.count_objects(server).await.ok(),
                None => None,
            };
            after.push(LaterMigration::new(&kind, &desired, storage, objects));
        }
    }
    Ok((before, after))
}

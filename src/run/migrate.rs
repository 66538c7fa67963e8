//! `gantry migrate`: proves what the stored objects of CRDs become, asks, writes, verifies, and trims the stored
//! versions.

pub(super) mod printed;
pub(super) mod rights;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::host::{Exit, Host};
use super::interrupt::{interrupt, until_interrupted};
use super::prepare::{OptionalInput, impersonating, loader, open_target, overrides_of_kubeconfig};
use super::wait_log::WaitLog;
use super::write;
use crate::cli::MigrateArgs;
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{IN_FLIGHT, ListRequest, ObjectToRead, Target};
use gantry_core::options::{ListFormat, MigrationWriterFlag, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::Resource;
use gantry_core::text;
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::config::{Loader, Settings};
use gantry_migration::{MigrationEnd, MigrationProof, MigrationProver, MigrationWriter, ServerMigrator, StoredKind};

/// The number of CRDs on one page of a list.
const PAGE: u32 = 100;
/// How often a log, which has no progress bar, gets a line about the progress.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// A CRD of this run.
pub struct Migration {
    /// What is proven.
    pub proof: MigrationProof,
    /// What was done. `None` before that.
    pub end: Option<MigrationEnd>,
}

/// Runs the command.
pub async fn run(args: &MigrateArgs, host: &mut Host) -> Exit {
    let mut migrations = Vec::new();
    let answer = migrate(args, &mut migrations, host).await;
    let exit = match &answer {
        Ok(exit) => *exit,
        Err(error) => host.complain(error),
    };
    if args.output != Some(ListFormat::Json) {
        return exit;
    }
    let errors = answer.as_ref().err().map_or(&[][..], Error::problems);
    match host.say(&printed::json(&migrations, args.dry_run, errors)) {
        Exit::Success => exit,
        // What was done has not been said.
        lost => lost,
    }
}

/// Proves, asks and writes. `migrations` are those of this run, as far as it came.
async fn migrate(args: &MigrateArgs, migrations: &mut Vec<Migration>, host: &mut Host) -> Result<Exit> {
    let stop = host.stop.clone();
    let overrides = impersonating(overrides_of_kubeconfig(&args.kubeconfig, &args.config), &args.identity);
    let loader = Loader { overrides, ..loader(&args.config, host) };
    let (input, settings) = OptionalInput::open(&args.files, &loader, host).await?;
    let named = named_crds(args, input)?;
    let target = open(&settings).await?;
    let progress = ProgressDisplay::new(host.stderr_is_terminal, false);
    let parallel = args.parallel.map_or(IN_FLIGHT, std::num::NonZero::get);
    let run = MigrationRun { target: &target, field_manager: &settings.field_manager, parallel, progress: &progress };

    let work = async {
        let migrator = match args.using {
            Some(MigrationWriterFlag::Server) => Some(run.find_server_migrator().await?),
            Some(MigrationWriterFlag::Gantry) | None => None,
        };
        let (kinds, unreadable) = read_kinds(&target, named.as_ref()).await?;
        check_storage_versions(&kinds, args.to.as_deref())?;
        let kinds = match args.every_object {
            true => kinds.into_iter().map(StoredKind::distrusting_status).collect(),
            false => kinds,
        };
        let (migrations, unread) = run.prove(kinds, args.all).await?;
        Ok(((migrations, [unreadable, unread].concat()), migrator))
    };
    let ((proven, unread), migrator) = until_interrupted(&stop, work).await?;
    *migrations = proven;
    let blocked =
        printed::blockers(migrations, &args.accept_loss, &|_, digest| format!("--accept-loss {digest}"), &|_| {
            printed::ALL.to_owned()
        });
    let is_human = args.output != Some(ListFormat::Json);
    let has_plan = !migrations.is_empty() || unread.is_empty();
    if is_human && has_plan {
        host.say(&printed::plan(migrations, parallel));
    }
    if !blocked.is_empty() {
        return Err(Error::Blocked([blocked, unread].concat()));
    }
    let is_needless = |migration: &Migration| {
        migration.proof.to_write == 0 && (migration.proof.old.is_empty() || !args.prune_stored_versions)
    };
    if args.dry_run || migrations.iter().all(is_needless) {
        return if unread.is_empty() { Ok(Exit::Success) } else { Err(Error::Failed(unread)) };
    }
    if !args.yes {
        write::needs_terminal(host, "go on without confirmation: --yes; show what would be done: --dry-run")?;
        write::confirm(host, &printed::question(migrations, args.prune_stored_versions, &target.describe())).await?;
    }
    let done = run.write(migrations, migrator.as_ref(), args.prune_stored_versions, host).await?;
    if is_human {
        host.say(&printed::result(migrations, args.prune_stored_versions));
    }
    for migration in &*migrations {
        host.print_notices(migration.end.iter().flat_map(|end| &end.notices));
    }
    let failed = [unread, if done { Vec::new() } else { printed::failures(migrations, printed::ALL) }].concat();
    if failed.is_empty() { Ok(Exit::Success) } else { Err(Error::Failed(failed)) }
}

impl Migration {
    /// What would be done, as a line.
    pub fn plan(&self, parallel: usize) -> String {
        printed::plan_of(&self.proof, parallel)
    }

    /// What was done, with the stored versions trimmed, as a line.
    pub fn result(&self) -> Option<String> {
        Some(printed::result_of(&self.proof, self.end.as_ref()?, true))
    }
}

/// Proves and carries out migrations on one server.
#[derive(Clone, Copy)]
pub struct MigrationRun<'a> {
    pub target: &'a Target,
    /// The name that the writes have.
    pub field_manager: &'a str,
    /// The maximum number of writes at a time.
    pub parallel: usize,
    pub progress: &'a ProgressDisplay,
}

impl<'a> MigrationRun<'a> {
    fn server(&self) -> Result<&'a KubeTarget> {
        self.target.as_server().ok_or_else(only_servers)
    }

    async fn find_server_migrator(&self) -> Result<ServerMigrator<'a>> {
        ServerMigrator::find(self.server()?, self.field_manager).await.map_err(Error::failed)
    }

    /// Proves what the objects of each CRD become. With `goes_on`, also after a CRD whose objects cannot be read; the
    /// reasons are returned, too.
    pub async fn prove(&self, kinds: Vec<StoredKind>, goes_on: bool) -> Result<(Vec<Migration>, Vec<Problem>)> {
        let MigrationRun { field_manager, parallel, .. } = *self;
        let prover = MigrationProver { server: self.server()?, field_manager, parallel };
        let stage = self.progress.stage("reading stored objects", None);
        let (mut migrations, mut unread) = (Vec::new(), Vec::new());
        for kind in kinds {
            stage.note(kind.name());
            let on_objects = |done: u64, total: Option<u64>| stage.set(count(done), total.map(count));
            match prover.prove(kind, &on_objects).await {
                Ok(proof) => migrations.push(Migration { proof, end: None }),
                // The objects of the other CRDs can be migrated all the same.
                Err(problem) if goes_on => unread.push(problem),
                Err(problem) => return Err(Error::failed(problem)),
            }
        }
        Ok((migrations, unread))
    }

    /// Writes one CRD's objects after another's, up to the first that is not complete. Returns whether all are.
    ///
    /// With the server's own migrator, it writes first; gantry verifies, and writes what is left.
    pub async fn write(
        &self,
        migrations: &mut [Migration],
        migrator: Option<&ServerMigrator<'_>>,
        trims: bool,
        host: &mut Host,
    ) -> Result<bool> {
        let MigrationRun { field_manager, parallel, progress, .. } = *self;
        let writer = MigrationWriter { server: self.server()?, field_manager, parallel };
        let stop = host.stop.clone();
        let writes = Arc::clone(&host.writes);
        let total: u64 = migrations.iter().map(|migration| migration.proof.to_write).sum();
        writes.begin(count(total));
        let stage = progress.stage("writing objects", Some(count(total)));
        let log = WaitLog::new(&mut host.stderr, progress.is_logged());
        let begun = Instant::now();
        let last_line = Mutex::new(begun);
        let mut before = 0;
        for migration in migrations {
            let to_write = migration.proof.to_write;
            stage.note(migration.proof.kind.name());
            if let Some(migrator) = migrator.filter(|_| to_write > 0)
                && let Err(stopped) = migrator.migrate(&migration.proof, &stop).await
            {
                migration.end = Some(MigrationEnd::stopped_by(stopped));
                return Ok(false);
            }
            let done_before = before;
            let on_objects = |done: u64, _: Option<u64>| {
                let done = done_before + done;
                writes.set_done(count(done.min(total)));
                stage.set(count(done), Some(count(total.max(done))));
                let remaining = printed::rate_and_remaining(done, total, begun.elapsed());
                stage.note(&remaining);
                let mut last_line = last_line.lock().unwrap_or_else(PoisonError::into_inner);
                if progress.is_logged() && last_line.elapsed() >= LOG_INTERVAL {
                    *last_line = Instant::now();
                    log.print(&format!("wrote {done} of {}: {remaining}", text::count(count(total), "object")));
                }
            };
            let mut writing = std::pin::pin!(writer.write(&migration.proof, trims, &stop, &on_objects));
            let end = tokio::select! {
                end = &mut writing => end,
                () = interrupt(&stop) => {
                    stage.aside(|| log.print(write::FINISHING));
                    writing.await
                }
            };
            let is_complete = end.stop.is_none();
            migration.end = Some(end);
            if !is_complete {
                return Ok(false);
            }
            before += to_write;
        }
        Ok(true)
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The CRDs that the arguments or their manifests name; `None` for all.
fn named_crds(args: &MigrateArgs, input: OptionalInput) -> Result<Option<BTreeSet<String>>> {
    if args.all {
        return Ok(None);
    }
    let mut named: BTreeSet<String> = args.crds.iter().cloned().collect();
    for name in &args.crds {
        if !name.contains('.') {
            let problem = Problem::new(format!("{:?} is not the name of a CRD", text::sanitize(name)));
            return Err(Error::usage(
                problem.help("a CRD is named PLURAL.GROUP, such as backups.example.com; kubectl get crds lists them"),
            ));
        }
    }
    if let Some(loaded) = input.read()? {
        let crds = loaded.manifests.iter().filter(|manifest| manifest.object.is_crd());
        named.extend(crds.map(|manifest| manifest.object.name.clone()));
        if named.is_empty() {
            let problem = Problem::new(format!("there is no CRD in {}", text::sanitize(&args.files.join(", "))));
            return Err(Error::failed(problem.help("name CRDs, or --all for every CRD of the cluster")));
        }
    }
    Ok(Some(named))
}

fn only_servers() -> Error {
    Error::usage(
        Problem::new("only the API server of a cluster has stored objects").help("leave out target, or set it to kube"),
    )
}

async fn open(settings: &Settings) -> Result<Target> {
    if settings.target != TargetSpec::Kube {
        return Err(only_servers());
    }
    open_target(settings).await
}

/// The CRDs to migrate. All of them: those whose objects may be stored at another version.
async fn read_kinds(target: &Target, named: Option<&BTreeSet<String>>) -> Result<(Vec<StoredKind>, Vec<Problem>)> {
    let Some(named) = named else {
        let crd = Resource::crd();
        let gather = |(kinds, unread): &mut (Vec<StoredKind>, Vec<Problem>), item: &str| {
            let Some(live) = gantry_cluster::listed(item, &crd) else { return };
            match StoredKind::read(live.clone()) {
                Ok(kind) => kinds.extend(Some(kind).filter(|kind| kind.old_versions().next().is_some())),
                Err(problem) => unread.extend((!StoredKind::is_migrated_or_deleted(&live)).then_some(problem)),
            }
        };
        return target.list(&ListRequest::new(&crd, PAGE)).gather(gather).await.map_err(|error| {
            Error::failed(error.problem().cloned().unwrap_or_else(|| Problem::new(error.to_string())))
        });
    };
    let wanted: Vec<ObjectToRead> = named.iter().map(|name| ObjectToRead::crd(name)).collect();
    let found = target.read(&wanted, &|_, _| ()).await?;
    let missing: Vec<Problem> = named
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|(name, _)| {
            let message = format!("there is no CRD {} in the cluster", text::sanitize(name));
            Problem::new(message).help("kubectl get crds lists them; --context names another cluster")
        })
        .collect();
    if !missing.is_empty() {
        return Err(Error::Failed(missing));
    }
    let kinds = found.into_iter().flatten().map(|live| StoredKind::read(live).map_err(Error::failed));
    Ok((kinds.collect::<Result<Vec<StoredKind>>>()?, Vec::new()))
}

fn check_storage_versions(kinds: &[StoredKind], wanted: Option<&str>) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    let others = kinds.iter().filter(|kind| kind.storage_version() != wanted);
    let problems: Vec<Problem> = others
        .map(|kind| {
            let (name, storage, wanted) = (text::sanitize(kind.name()), kind.storage_version(), text::sanitize(wanted));
            Problem::new(format!("the storage version of {name} is {storage}, not {wanted}")).help(format!(
                "deploy the CRD with storage: true for {wanted} first; a migration moves objects to the storage version and \
                 does not change the CRD"
            ))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::Failed(problems)) }
}

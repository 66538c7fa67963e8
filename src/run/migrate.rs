//! `gantry migrate`: proves what the stored objects of CRDs become, asks, writes, verifies, and trims the stored
//! versions.

mod printed;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::host::{Exit, Host};
use super::interrupt::{interrupt, until_interrupted};
use super::prepare::{complete, connection, impersonate, loader, overrides_of_kubeconfig, read_input};
use super::wait_log::WaitLog;
use super::write;
use crate::cli::MigrateArgs;
use gantry_cluster::{DesiredSource, IN_FLIGHT, ListRequest, ObjectToRead, Target};
use gantry_core::options::{ListFormat, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::Resource;
use gantry_core::text;
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::config::{Loader, Settings, key};
use gantry_migration::{MigrationEnd, MigrationProof, MigrationProver, MigrationWriter, StoredKind};
use gantry_preflight::registry;

/// The number of CRDs on one page of a list.
const PAGE: u32 = 100;
/// How often a log, which has no progress bar, gets a line about the progress.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// A CRD of this run.
struct Migration {
    /// What is proven. It moves into the writer when the writes begin.
    proof: MigrationProof,
    /// What was done. `None` before that.
    end: Option<MigrationEnd>,
}

/// Runs the command.
pub async fn run(args: &MigrateArgs, host: &mut Host) -> Exit {
    match migrate(args, host).await {
        Ok(exit) => exit,
        Err(error) => host.complain(&error),
    }
}

async fn migrate(args: &MigrateArgs, host: &mut Host) -> Result<Exit> {
    let stop = host.stop.clone();
    let overrides = overrides_of_kubeconfig(&args.kubeconfig, &args.config)
        .with(&key::AS_USER, &args.identity.user)
        .with(&key::AS_GROUPS, &args.identity.groups);
    let loader = Loader { overrides, ..loader(&args.config, host) };
    let named = named_crds(args, &loader, host).await?;
    let loaded = loader.load([], &registry::known())?;
    host.print_notices(&loaded.notices);
    let settings = loaded.settings;
    let target = open(&settings).await?;
    let Some(server) = target.as_server() else { return Err(only_servers()) };
    let parallel = args.parallel.map_or(IN_FLIGHT, std::num::NonZero::get);
    let prover = MigrationProver { server, field_manager: &settings.field_manager, parallel };
    let progress = ProgressDisplay::new(host.stderr_is_terminal, false);

    let work = async {
        let kinds = read_kinds(&target, named.as_ref()).await?;
        check_storage_versions(&kinds, args.to.as_deref())?;
        let stage = progress.stage("reading stored objects", None);
        let (mut proofs, mut unread) = (Vec::new(), Vec::new());
        for kind in kinds {
            stage.note(kind.name());
            let on_objects = |done: u64, total: Option<u64>| stage.set(count(done), total.map(count));
            match prover.prove(kind, &on_objects).await {
                Ok(proof) => proofs.push(proof),
                // The objects of the other CRDs can be migrated all the same.
                Err(problem) if args.all => unread.push(problem),
                Err(problem) => return Err(Error::failed(problem)),
            }
        }
        Ok((proofs, unread))
    };
    let (proofs, unread) = until_interrupted(&stop, work).await?;
    let blocked = printed::blockers(&proofs, &args.accept_loss);
    let mut migrations: Vec<_> = proofs.into_iter().map(|proof| Migration { proof, end: None }).collect();
    let is_json = args.output == Some(ListFormat::Json);
    if !is_json {
        host.say(&printed::plan(&migrations, parallel));
    }
    if !blocked.is_empty() {
        if is_json {
            host.say(&printed::json(&migrations, args.dry_run));
        }
        return Err(Error::Blocked(blocked));
    }
    let is_needless = |migration: &Migration| {
        migration.proof.to_write == 0 && (migration.proof.old.is_empty() || !args.prune_stored_versions)
    };
    if args.dry_run || migrations.iter().all(is_needless) {
        if is_json {
            host.say(&printed::json(&migrations, args.dry_run));
        }
        return if unread.is_empty() { Ok(Exit::Success) } else { Err(Error::Failed(unread)) };
    }
    if !args.yes {
        write::needs_terminal(host, "go on without confirmation: --yes; show what would be done: --dry-run")?;
        write::confirm(host, &printed::question(&migrations, args.prune_stored_versions, &target.describe())).await?;
    }
    let writer = MigrationWriter { server, field_manager: &settings.field_manager, parallel };
    let done = write_all(&mut migrations, writer, args.prune_stored_versions, &progress, host).await;
    match is_json {
        true => host.say(&printed::json(&migrations, false)),
        false => host.say(&printed::result(&migrations, args.prune_stored_versions)),
    };
    for migration in &migrations {
        host.print_notices(migration.end.iter().flat_map(|end| &end.notices));
    }
    let failed = [unread, if done { Vec::new() } else { printed::failures(&migrations) }].concat();
    if failed.is_empty() { Ok(Exit::Success) } else { Err(Error::Failed(failed)) }
}

/// Writes one CRD's objects after another's, up to the first that is not complete. Returns whether all are.
async fn write_all(
    migrations: &mut [Migration],
    writer: MigrationWriter<'_>,
    trims: bool,
    progress: &ProgressDisplay,
    host: &mut Host,
) -> bool {
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
            return false;
        }
        before += to_write;
    }
    true
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The CRDs that the arguments or their manifests name; `None` for all.
async fn named_crds(args: &MigrateArgs, loader: &Loader, host: &mut Host) -> Result<Option<BTreeSet<String>>> {
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
    if !args.files.is_empty() {
        let input = read_input(&args.files, loader, host).await?;
        let configs = input.configs().count();
        let manifests = complete(input.read()?, configs)?.manifests;
        let crds = manifests.iter().filter(|manifest| manifest.object.is_crd());
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
    Target::open(&settings.target, &connection(settings, impersonate(settings)?), DesiredSource::default()).await
}

/// The CRDs to migrate. All of them: those whose objects may be stored at another version.
async fn read_kinds(target: &Target, named: Option<&BTreeSet<String>>) -> Result<Vec<StoredKind>> {
    let Some(named) = named else {
        let crd = Resource::crd();
        let gather = |kinds: &mut Vec<StoredKind>, item: &str| {
            // A CRD that is being deleted, or serves nothing, is left alone.
            let kind = gantry_cluster::listed(item, &crd).and_then(|live| StoredKind::read(live).ok());
            kinds.extend(kind.filter(|kind| kind.old_versions().next().is_some()));
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
    found.into_iter().flatten().map(|live| StoredKind::read(live).map_err(Error::failed)).collect()
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

//! `deploy` and `check`: one flow, and `deploy` goes on after the report.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::panic;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use futures::{FutureExt, try_join};
use tokio::sync::watch;

use super::output::Output;
use super::{Exit, Host, loader};
use crate::apply::{self, Applied, ApplyOptions, Event};
use crate::cli::{DeployArgs, FlowArgs, InputArgs};
use crate::cluster::{Connection, FieldConflict, Impersonate, Target};
use crate::config::{Loader, Overrides, SelectedCheck, Settings};
use crate::finding::{CheckStatus, Source, redact};
use crate::manifest::{Input, Loaded, Manifest};
use crate::options::TargetSpec;
use crate::plan::conflicts::{self, Foreseen};
use crate::plan::{self, Action, Ahead, Change, Plan, PlanOptions, only_defaults, refusals};
use crate::preflight::admission_dry_run::FIELD_CONFLICT;
use crate::preflight::own::{self, Surroundings};
use crate::preflight::registry;
use crate::preflight::run::{self as checks, Enabled, Ran, RunOptions};
use crate::preflight::waive::Waivers;
use crate::problem::{Error, Problem, Result};
use crate::report::human::Purpose;
use crate::report::{ChangeEntry, ErrorEntry, Outcome, Report, Summary};
use crate::text;
use crate::ui::confirm;
use crate::ui::progress::Progress;

/// Runs the flow and prints what came of it.
pub async fn run(args: &FlowArgs, deploy: Option<&DeployArgs>, host: &mut Host) -> Exit {
    let purpose = match deploy {
        None => Purpose::Check,
        Some(deploy) if deploy.dry_run => Purpose::DryRun,
        Some(_) => Purpose::Deploy,
    };
    let mut output = Output::new(args, purpose);
    let mut report = Report::default();
    let exit = match steps(args, deploy, host, &mut output, &mut report).await {
        Ok(exit) => exit,
        Err(error) => {
            report.outcome = Outcome::Failed;
            report.errors.extend(error.problems().iter().map(ErrorEntry::from));
            if output.redacts() {
                report.errors.iter_mut().for_each(ErrorEntry::redact);
            }
            output.problems(host, error.problems());
            if !output.is_configured() {
                // What is wrong may be wrong in the very file.
                let loader = loader(&args.input.config, host);
                let files = args.input.files.iter().map(PathBuf::from).chain(loader.every_file());
                let files: Vec<PathBuf> = files.map(|file| host.working_directory.join(file)).collect();
                if let Err(error) = output.spare(&files, &TargetSpec::Kube, host) {
                    output.problems(host, error.problems());
                }
            }
            Exit::from(&error)
        }
    };
    match output.finish(host, &report) {
        Ok(()) => exit,
        Err(error) => {
            output.problems(host, error.problems());
            // Nobody who waits for the report should have to guess.
            output.applied(host, &report);
            Exit::from(&error)
        }
    }
}

async fn steps(
    args: &FlowArgs,
    deploy: Option<&DeployArgs>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<Exit> {
    // Everything that can be wrong in the configuration is said before the first request.
    let input = read_input(&args.input.files, host).await?;
    let (settings, enabled, input) = configure(args, input, host, output, report)?;
    let progress = Progress::new(host.stderr_is_terminal && !output.quiet());

    let stop = host.stop.clone();
    let (manifests, target, ahead) = until(&stop, open(&settings, input, &progress)).await?;
    let writes = deploy.is_some_and(|deploy| !deploy.dry_run);
    if writes {
        target.remove_leftovers();
    }
    tell(&manifests.notices, host, output, report);
    report.target = target.describe();
    let checking = Checking { enabled: &enabled, waivers: Waivers { list: &settings.waivers, today: host.today } };
    let looked_at = look(&settings, manifests.manifests, ahead, &target, checking, &progress, report);
    let (plan, mut ahead, notices) = until(&stop, looked_at).await?;
    tell(&notices, host, output, report);
    tell_warnings(host, output, &target, settings.redact);
    output.warnings(host, &report.warnings);

    let exit = verdict(report, writes, &plan, &mut ahead, &settings);
    ahead.conflicts.retain(|found| !is_told(report, &plan.changes[found.change]));
    let notices = notices_of_conflicts(&plan, &ahead.conflicts, settings.force_conflicts);
    output.notices(host, &notices);
    // People have been told; where they are taken by force nothing is wrong.
    if !settings.force_conflicts {
        report.warnings.extend(notices.iter().map(ErrorEntry::from));
    }
    output.review(host, report)?;
    if exit != Exit::Success || !writes {
        return Ok(exit);
    }
    if plan.changes.iter().all(|change| change.action == Action::Unchanged) {
        return Ok(Exit::Success);
    }
    // Off a terminal nobody can answer: the checks are the gate.
    let asks = host.stdin_is_terminal && host.stderr_is_terminal && !deploy.is_some_and(|deploy| deploy.yes);
    if asks {
        confirm(host, &question(report, &target)).await?;
    }

    let applied = write(&plan, &target, &settings, &progress, host).await;
    tell_warnings(host, output, &target, settings.redact);
    Ok(conclude(report, applied, settings.redact))
}

/// What the user should know, on stderr and in the report.
fn tell(notices: &[Problem], host: &mut Host, output: &mut Output, report: &mut Report) {
    output.notices(host, notices);
    report.notices.extend(notices.iter().map(ErrorEntry::from));
}

/// The server's own warnings (deprecated APIs and the like), as kubectl shows them.
fn tell_warnings(host: &mut Host, output: &mut Output, target: &Target, redacted: bool) {
    let said = |text: String| if redacted { redact::warning(&text).to_owned() } else { text };
    let mut warnings: Vec<Problem> = target
        .take_warnings()
        .into_iter()
        .map(|text| Problem::new(format!("the API server warns: {}", said(text))))
        .collect();
    // In their order: those that are hidden have become one.
    let mut seen = BTreeSet::new();
    warnings.retain(|warning| seen.insert(warning.message.clone()));
    output.notices(host, &warnings);
}

/// Ends when the user interrupts the run: never, where nobody can.
async fn interrupt(stop: &watch::Receiver<bool>) {
    if stop.clone().wait_for(|stop| *stop).await.is_err() {
        std::future::pending().await
    }
}

/// An interrupt before the first write.
fn interrupted() -> Error {
    Error::failed(Problem::new("interrupted; nothing was written"))
}

/// Does `work`, which writes nothing, unless the user interrupts it.
pub(super) async fn until<T>(stop: &watch::Receiver<bool>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::select! {
        result = work => result?,
        () = interrupt(stop) => return Err(interrupted()),
    };
    // Comparing waits for nothing, so that an interrupt in its midst is noticed only now.
    if *stop.borrow() { Err(interrupted()) } else { Ok(done) }
}

/// Reads the texts of the manifests, on a thread of its own: standard input may be a pipe into which nobody writes.
pub(super) async fn read_input(files: &[String], host: &mut Host) -> Result<Input> {
    let (files, mut stdin) = (files.to_vec(), host.stdin.take());
    let reading = tokio::task::spawn_blocking(move || (Input::open(&files, &mut stdin), stdin));
    let read = tokio::select! {
        read = reading => read,
        () = interrupt(&host.stop) => return Err(interrupted()),
    };
    let (input, stdin) = read.map_err(|_| Error::failed(Problem::new("the manifests could not be read")))?;
    host.stdin = stdin;
    Ok(input)
}

/// What the flags say that all commands on a target share.
pub fn overrides(input: &InputArgs) -> Overrides {
    Overrides {
        preflight: input.preflight.clone(),
        target: input.target.clone(),
        kubeconfig: input.kubeconfig.clone(),
        context: input.context.clone(),
        namespace: input.namespace.clone(),
        allow_exec: input.config.allow_exec,
        ..Overrides::default()
    }
}

/// Reads the configuration, of which the manifests may hold some.
fn configure(
    args: &FlowArgs,
    input: Input,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<(Settings, Vec<Enabled>, Input)> {
    let overrides = Overrides {
        warn_only: args.warn_only,
        user: args.identity.user.clone(),
        groups: args.identity.groups.clone(),
        field_manager: args.field_manager.clone(),
        force_conflicts: args.force_conflicts,
        output: args.output.clone(),
        color: args.color,
        redact: args.redact,
        ..overrides(&args.input)
    };
    let loader = Loader { overrides, ..loader(&args.input.config, host) };
    let loaded = loader.load(input.configs(), &registry::known())?;
    let settings = loaded.settings;
    output.configure(&settings.output, settings.color, settings.redact, host)?;
    output.spare(&read_files(&loader, &settings, &input, host), &settings.target, host)?;
    for source in input.sources() {
        output.add_source(source.clone());
    }
    tell(&loaded.notices, host, output, report);
    let surroundings = Surroundings::new(host.working_directory.clone(), host.environment.clone());
    let enabled = settings
        .checks
        .iter()
        .filter_map(|SelectedCheck { name, mode, definition, config }| {
            let check = match registry::find(name) {
                Some(entry) => (entry.build)(config),
                None => own::build(name, definition, config, &surroundings)?,
            };
            Some(Enabled { name: name.clone(), mode: *mode, check })
        })
        .collect::<Vec<Enabled>>();
    if enabled.iter().any(|enabled| enabled.check.speaks_for_a_tool()) {
        output.quote_tools();
    }
    Ok((settings, enabled, input))
}

/// Every file that the run reads, which no report may be written over.
fn read_files(loader: &Loader, settings: &Settings, input: &Input, host: &Host) -> Vec<PathBuf> {
    let manifests = input.sources().iter().map(|source| PathBuf::from(&*source.name));
    let kubeconfig = settings.kubeconfig.iter().cloned();
    let variable = |name: &str| {
        let text = host.environment.get(name).map(OsString::from);
        text.or_else(|| host.unreadable_environment.get(name).cloned())
    };
    let listed = variable("KUBECONFIG").unwrap_or_default();
    let from_environment = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty());
    let at_home = variable("HOME").map(|home| Path::new(&home).join(".kube").join("config"));
    let files = manifests.chain(loader.every_file()).chain(kubeconfig).chain(from_environment).chain(at_home);
    files.map(|file| host.working_directory.join(file)).collect()
}

/// Whom to impersonate.
fn impersonate(settings: &Settings) -> Result<Option<Impersonate>> {
    match (&settings.user, &settings.groups[..]) {
        (None, []) => Ok(None),
        (Some(user), groups) => Ok(Some(Impersonate { user: user.clone(), groups: groups.to_vec() })),
        (None, _) => Err(Error::usage(
            Problem::new("a group cannot be impersonated without a user").help("name one that is in it with --as"),
        )),
    }
}

/// How to reach the target of these settings.
pub(super) fn connection(settings: &Settings, impersonate: Option<Impersonate>) -> Connection {
    Connection {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
        impersonate,
        timeout: Some(settings.timeouts.request),
        credentials_timeout: Some(settings.timeouts.credentials),
    }
}

/// Reads the manifests and makes the target ready. Where there is much to read the live CRDs are asked for meanwhile;
/// what is wrong with the manifests is told all the same, whatever the target answers or whether it answers at all.
async fn open(settings: &Settings, input: Input, progress: &Progress) -> Result<(Loaded, Target, Ahead)> {
    let names = input.foreseen_crds();
    let is_long = !names.is_empty();
    let configs = input.configs().count();
    let reading = async {
        match tokio::task::spawn_blocking(move || input.read()).await {
            Ok(read) => complete(read.map_err(Error::Failed)?, configs),
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::failed(Problem::new("interrupted while reading the manifests"))),
        }
    };
    let connection = connection(settings, impersonate(settings)?);
    let opening = async {
        let target = Target::open(&settings.target, &connection).await?;
        let stage = progress.stage("reading live objects", None);
        let ahead = Ahead::read(names, &target, &|done, total| stage.set(done, total)).await;
        Ok((target, ahead))
    };
    if !is_long {
        let manifests = reading.await?;
        let (target, ahead) = opening.await?;
        return Ok((manifests, target, ahead));
    }
    let (manifests, opened) = try_join!(reading, opening.map(Ok))?;
    let (target, ahead) = opened?;
    Ok((manifests, target, ahead))
}

/// Looks whether there is something to deploy, and whether its configuration was known from the start.
pub(super) fn complete(loaded: Loaded, configs: usize) -> Result<Loaded> {
    if let Some(late) = loaded.configs.get(configs) {
        let problem = Problem::new("this Config was not recognised in time").at(late.origin.location());
        return Err(Error::usage(problem.help("write its apiVersion in plain letters")));
    }
    if loaded.manifests.is_empty() {
        let problem = Problem::new("the manifests hold configuration and no object to deploy");
        return Err(Error::failed(problem.help("name the manifests with -f and configuration files with -c")));
    }
    Ok(loaded)
}

/// The checks that run, and what they may find.
struct Checking<'a> {
    enabled: &'a [Enabled],
    waivers: Waivers<'a>,
}

/// Everything from there up to the report; reads only.
async fn look(
    settings: &Settings,
    manifests: Vec<Manifest>,
    ahead: Ahead,
    target: &Target,
    checking: Checking<'_>,
    progress: &Progress,
    report: &mut Report,
) -> Result<(Plan, Hindrances, Vec<Problem>)> {
    let stage = progress.stage("reading live objects", None);
    let Checking { enabled, waivers } = checking;
    let options = PlanOptions {
        namespace: settings.namespace.as_deref(),
        field_manager: &settings.field_manager,
        goes_on_unread: enabled.iter().any(|enabled| !enabled.check.needs_live_objects()),
        keep_unplaced: enabled.iter().any(|enabled| enabled.check.tells_unplaced()),
        settles_doubts: true,
    };
    let plan = plan::build(manifests, ahead, target, options, &|done, total| stage.set(done, total)).await?;
    drop(stage);
    report.changes = plan.changes.iter().map(entry).collect();

    let stage = progress.stage("checking", None);
    let options = RunOptions {
        warn_only: settings.warn_only,
        redact: settings.redact,
        field_manager: &settings.field_manager,
        force_conflicts: settings.force_conflicts,
        waivers,
        own_checks: &settings.own_checks,
        stage: &stage,
    };
    let Ran { reports, problems, notices } = checks::run(enabled, &plan, target, options).await;
    report.checks = reports;
    report.warnings = problems.iter().map(ErrorEntry::from).collect();
    let mut conflicts = conflicts::foresee(&plan, target, &settings.field_manager).await;
    only_defaults::mark(&plan, &mut conflicts, target, &settings.field_manager).await;
    let mut ahead = Hindrances { conflicts, ..Hindrances::default() };
    // Of a deploy that is blocked nobody wants to know how far it would have come.
    if report.checks.iter().all(|check| check.status != CheckStatus::Blocked) {
        ahead.refusals = refusals::foresee(&plan, target, &settings.field_manager, settings.force_conflicts).await;
    }
    drop(stage);
    report.count();
    Ok((plan, ahead, notices))
}

fn entry(change: &Change) -> ChangeEntry {
    let origin = &change.desired.origin;
    ChangeEntry {
        action: change.action,
        object: change.desired.object.clone(),
        source: Source { file: origin.source.name.clone(), line: origin.line, column: None },
        result: None,
    }
}

/// What a deploy would meet at its first object or half way, with nothing of it a finding.
#[derive(Default)]
struct Hindrances {
    conflicts: Vec<Foreseen>,
    refusals: Vec<Problem>,
}

/// Whether a deploy would meet something that ends it: then it ends here, with nothing written. What a check said of it may
/// have been turned down to a warning; no request would say it more kindly.
fn is_hindered(report: &mut Report, plan: &Plan, ahead: &mut Hindrances, settings: &Settings) -> bool {
    let mut problems = Vec::new();
    if !settings.force_conflicts {
        let conflicts = std::mem::take(&mut ahead.conflicts);
        problems.extend(conflicts::explain(&of_plan(plan, &conflicts)));
    }
    problems.append(&mut ahead.refusals);
    if let Err(error) = plan.whole() {
        problems.extend_from_slice(error.problems());
    }
    let is_hindered = !problems.is_empty();
    let mut errors: Vec<ErrorEntry> = problems.iter().map(ErrorEntry::from).collect();
    if settings.redact {
        errors.iter_mut().for_each(ErrorEntry::redact);
    }
    report.errors.append(&mut errors);
    is_hindered
}

/// Whether a check has said of the object that its fields are somebody else's.
fn is_told(report: &Report, change: &Change) -> bool {
    let findings = report.checks.iter().flat_map(|check| &check.findings);
    findings
        .filter(|finding| finding.rule == FIELD_CONFLICT)
        .any(|finding| finding.object.as_ref() == Some(&change.desired.object))
}

/// What a blocked run or one that takes fields by force has to say of field conflicts.
fn notices_of_conflicts(plan: &Plan, foreseen: &[Foreseen], force: bool) -> Vec<Problem> {
    let conflicts = of_plan(plan, foreseen);
    match force {
        true => conflicts::explain_taken(&conflicts),
        false => conflicts::explain_ahead(&conflicts),
    }
}

fn of_plan<'a>(plan: &'a Plan, foreseen: &'a [Foreseen]) -> Vec<(&'a Change, &'a [FieldConflict])> {
    foreseen.iter().map(|found| (&plan.changes[found.change], &found.conflicts[..])).collect()
}

/// What the checks and what is foreseen amount to: the report's outcome so far, and the exit code if the run ended here.
fn verdict(report: &mut Report, writes: bool, plan: &Plan, ahead: &mut Hindrances, settings: &Settings) -> Exit {
    let has = |status| report.checks.iter().any(|check| check.status == status);
    // Blocked weighs more than failed: the findings are certain, and they are what has to be mended first.
    let (outcome, exit) = if has(CheckStatus::Blocked) {
        (Outcome::Blocked, Exit::Blocked)
    } else if has(CheckStatus::Failed) {
        (Outcome::Failed, Exit::Failed)
    } else if let unread @ [_, ..] = &*plan.unread() {
        report.errors.extend(unread.iter().map(ErrorEntry::from));
        (Outcome::Failed, Exit::Failed)
    } else if is_hindered(report, plan, ahead, settings) {
        (Outcome::Failed, Exit::Failed)
    } else if writes && plan.changes.iter().all(|change| change.action == Action::Unchanged) {
        (Outcome::Unchanged, Exit::Success)
    } else {
        (Outcome::Planned, Exit::Success)
    };
    report.outcome = outcome;
    exit
}

/// Asks whether to write. Anything but a yes ends the run.
async fn confirm(host: &mut Host, question: &str) -> Result<()> {
    let Some(mut stdin) = host.stdin.take() else {
        let problem = Problem::new("cannot ask whether to write, as standard input held the manifests");
        return Err(Error::failed(problem.help("deploy without the question: --yes")));
    };
    // A question that nobody sees is answered by nobody.
    confirm::ask(question, &mut host.stderr)
        .map_err(|error| Error::failed(Problem::new(format!("cannot ask whether to write: {error}"))))?;
    // On a thread of its own, because a read from the terminal cannot be called off.
    let reading = tokio::task::spawn_blocking(move || confirm::answer(&mut *stdin));
    let answer = tokio::select! {
        answer = reading => answer.ok().and_then(|answer| answer.ok()),
        () = interrupt(&host.stop) => {
            let _ = writeln!(host.stderr);
            return Err(interrupted());
        }
    };
    if !answer.is_some_and(|answer| answer.line_ended) {
        let _ = writeln!(host.stderr);
    }
    match answer {
        Some(answer) if answer.yes => Ok(()),
        _ => Err(Error::failed(Problem::new("not confirmed; nothing was written"))),
    }
}

fn question(report: &Report, target: &Target) -> String {
    let Summary { created, updated, warnings, .. } = report.summary;
    let warned = if warnings > 0 { format!(" ({})", text::count(warnings, "warning")) } else { String::new() };
    format!("Create {created} and update {updated} in {}{warned}?", target.describe())
}

async fn write(plan: &Plan, target: &Target, settings: &Settings, progress: &Progress, host: &mut Host) -> Applied {
    let options = ApplyOptions {
        field_manager: settings.field_manager.clone(),
        force_conflicts: settings.force_conflicts,
        established_timeout: settings.timeouts.established,
    };
    let stage = progress.stage("applying", None);
    let writes = Arc::clone(&host.writes);
    writes.begin(plan.changes.iter().filter(|change| change.action != Action::Unchanged).count());
    let on_event = |event| match event {
        Event::Applied(done, total) => {
            writes.done(done);
            stage.set(done, Some(total));
        }
        Event::Established(done, total) => stage.note(&format!("waiting for CRDs to be served: {done} of {total}")),
    };
    let mut applying = pin!(apply::run(plan, target, &options, host.stop.clone(), &on_event));
    tokio::select! {
        applied = &mut applying => return applied,
        () = interrupt(&host.stop) => {}
    }
    // An object under way is waited for, which can take as long as a request may: say so at once.
    stage.aside(|| {
        let _ = writeln!(
            host.stderr,
            "interrupted: no other object is begun; waiting for those under way (Ctrl-C again ends at once)"
        );
    });
    applying.await
}

fn conclude(report: &mut Report, applied: Applied, redact: bool) -> Exit {
    for (entry, result) in report.changes.iter_mut().zip(&applied.results) {
        entry.result = Some(*result);
    }
    report.errors.extend(applied.problems.iter().map(ErrorEntry::from));
    if redact {
        report.errors.iter_mut().for_each(ErrorEntry::redact);
    }
    if applied.interrupted {
        report.errors.push((&Problem::new("interrupted").help("run the same command again to continue")).into());
    }
    let complete = report.errors.is_empty();
    report.outcome = if complete { Outcome::Deployed } else { Outcome::Failed };
    report.count();
    if complete { Exit::Success } else { Exit::Failed }
}

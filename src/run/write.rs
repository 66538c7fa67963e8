//! The last steps of a deploy: the confirmation, and writing.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use super::host::Host;
use super::interrupt::{interrupt, interrupted};
use super::wait_log::WaitLog;
use gantry_cluster::Target;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::text;
use gantry_core::ui::confirm;
use gantry_core::ui::progress::{ProgressDisplay, ProgressStage};
use gantry_deploy::apply::{self, Applied, ApplyEvent, ApplyOptions, Waiting};
use gantry_deploy::plan::Plan;
use gantry_report::{MigrationTime, Report, Summary};

/// The message when a deploy is interrupted while it writes.
pub const FINISHING: &str = "interrupted: finishing the requests in flight; press Ctrl-C again to quit immediately";

/// The most lines on a terminal that show what is awaited, and the most objects that one wait names.
const LINES: usize = 10;
const OBJECTS: usize = 5;

/// Ends a command that requires confirmation if there is no terminal to ask on. `help` names the flag that confirms.
pub fn needs_terminal(host: &Host, help: &str) -> Result<()> {
    if host.stdin_is_terminal && host.stderr_is_terminal {
        return Ok(());
    }
    let problem = Problem::new("cannot ask for confirmation: there is no terminal");
    Err(Error::failed(problem.help(help)))
}

/// Asks for confirmation. Any answer but yes ends the run.
pub async fn confirm(host: &mut Host, question: &str) -> Result<()> {
    confirm_or(host, question, "nothing was written").await
}

/// Asks for confirmation. Any answer but yes ends the run, with `otherwise` as the consequence.
pub async fn confirm_or(host: &mut Host, question: &str, otherwise: &str) -> Result<()> {
    let Some(mut stdin) = host.stdin.take() else {
        let problem = Problem::new("cannot ask for confirmation: the manifests came from standard input");
        return Err(Error::failed(problem.help("deploy without confirmation: --yes")));
    };
    // If the question cannot be shown, do not wait for an answer.
    confirm::ask(question, &mut host.stderr)
        .map_err(|error| Error::failed(Problem::new(format!("cannot ask for confirmation: {error}"))))?;
    // On a separate thread, because a read from the terminal cannot be cancelled.
    let reading = tokio::task::spawn_blocking(move || {
        let answer = confirm::answer(&mut *stdin);
        (stdin, answer)
    });
    let answer = tokio::select! {
        read = reading => read.ok().and_then(|(stdin, answer)| {
            // A run can ask again.
            host.stdin = Some(stdin);
            answer.ok()
        }),
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
        _ => Err(Error::failed(Problem::new(format!("not confirmed; {otherwise}")))),
    }
}

pub fn question(report: &Report, target: &Target) -> String {
    let Summary { created, adopted, updated, replaced, deleted, warnings, .. } = report.summary;
    let warned = if warnings > 0 { format!(" ({})", text::count(warnings, "warning")) } else { String::new() };
    let parts = [
        (created, "create"),
        (adopted, "adopt"),
        (updated, "update"),
        (replaced, "DELETE and create again"),
        (deleted, "DELETE"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{what} {count}")).collect();
    let what = parts.join(", ");
    let (first, rest) = what.split_at(what.len().min(1));
    format!("{}{}{rest} in {}{warned}?", afterwards(report), first.to_uppercase(), target.describe())
}

/// The line about what moves after the deploy.
fn afterwards(report: &Report) -> String {
    let later = report.migrations.iter().filter(|migration| migration.when == MigrationTime::AfterDeploy);
    let objects: Vec<u64> = later.filter_map(|migration| migration.objects).filter(|objects| *objects > 0).collect();
    if objects.is_empty() {
        return String::new();
    }
    let sum = text::count(usize::try_from(objects.iter().sum::<u64>()).unwrap_or(usize::MAX), "object");
    let crds = text::count(objects.len(), "CRD");
    format!(
        "After the deploy the stored objects of {crds} ({sum}) move to the storage version, after another question.\n"
    )
}

/// Waits for objects that an earlier run wrote and that were not ready when it ended.
pub async fn resume(
    plan: &Plan,
    target: &Target,
    options: ApplyOptions,
    progress: &ProgressDisplay,
    host: &mut Host,
) -> Applied {
    let stage = progress.stage("waiting until objects are ready", None);
    let options = ApplyOptions { shows_waits: progress.shows_waits(), ..options };
    let log = WaitLog::new(&mut host.stderr, progress.is_logged());
    let on_event = |event: ApplyEvent<'_>| {
        if let ApplyEvent::Ready(waiting) = event {
            stage.set(waiting.ready, Some(waiting.total));
            let lines = lines(&waiting);
            stage.show_below(lines.iter().map(String::as_str));
            log.update(waiting);
        }
    };
    apply::resume(plan, target, &options, host.stop.clone(), &on_event).await
}

/// The lines on a terminal about the objects that are not ready, why, and what waits for them.
fn lines(waiting: &Waiting<'_>) -> Vec<String> {
    let unready = waiting.unready.iter().filter(|unready| !unready.has_failed);
    let mut lines: Vec<String> =
        unready.clone().take(OBJECTS).map(|unready| format!("{}: {}", unready.object, unready.reason)).collect();
    match unready.count() {
        0 => return lines,
        count if count > OBJECTS => lines.push(format!("… and {} more", count - OBJECTS)),
        _ => {}
    }
    match waiting.held {
        [] => {}
        [one] => lines.push(format!("then {one}")),
        [first, others @ ..] => lines.push(format!("then {first} and {} more", others.len())),
    }
    lines
}

/// The waits in progress.
#[derive(Default)]
struct Board(Mutex<BTreeMap<usize, DisplayedWait>>);

/// One wait: how many objects are ready, how many there are, and the lines about those that are not.
type DisplayedWait = (usize, usize, Vec<String>);

impl Board {
    fn show(&self, waiting: Waiting<'_>, stage: &ProgressStage) {
        let Waiting { step, ready, total, .. } = waiting;
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match ready < total {
            true => drop(waits.insert(step, (ready, total, lines(&waiting)))),
            false => drop(waits.remove(&step)),
        }
        let sum = |number: fn(&DisplayedWait) -> usize| waits.values().map(number).sum::<usize>();
        stage.note(&match waits.is_empty() {
            true => String::new(),
            false => format!("waiting until objects are ready: {} of {}", sum(|wait| wait.0), sum(|wait| wait.1)),
        });
        stage.show_below(waits.values().flat_map(|(_, _, lines)| lines).map(String::as_str).take(LINES));
    }
}

pub async fn write(
    plan: &Plan,
    target: &Target,
    options: ApplyOptions,
    progress: &ProgressDisplay,
    host: &mut Host,
) -> Applied {
    let stage = progress.stage("applying", None);
    let options = ApplyOptions { shows_waits: progress.shows_waits(), ..options };
    let board = Board::default();
    let writes = Arc::clone(&host.writes);
    writes.begin(plan.writes());
    let log = WaitLog::new(&mut host.stderr, progress.is_logged());
    let on_event = |event: ApplyEvent<'_>| match event {
        ApplyEvent::Applied(done, total) => {
            writes.set_done(done);
            stage.set(done, Some(total));
        }
        ApplyEvent::NotYet(why) => {
            stage.note(&format!("trying again: {why}"));
            log.retry(why);
        }
        ApplyEvent::Established(done, total) => {
            stage.note(&format!("waiting for CRDs to be served: {done} of {total}"))
        }
        ApplyEvent::Ready(waiting) => {
            board.show(waiting, &stage);
            log.update(waiting);
        }
    };
    let mut applying = pin!(apply::run(plan, target, &options, host.stop.clone(), &on_event));
    tokio::select! {
        applied = &mut applying => return applied,
        () = interrupt(&host.stop) => {}
    }
    // Requests in flight are awaited, which can take as long as a request timeout: say so at once.
    stage.aside(|| log.print(FINISHING));
    applying.await
}

//! `history`: the revisions of an app; and the manifests of one, for `rollback` and `diff --to`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::apps::{app_of, no_app, open};
use super::host::Host;
use super::interrupt::until_interrupted;
use super::next_command::{self, ClusterFlags};
use super::prepare::open_target;
use super::pretty;
use crate::cli::HistoryArgs;
use gantry_cluster::{ListError, Target};
use gantry_core::manifest::{Input, ManifestSource};
use gantry_core::options::{ListFormat, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::text::{self, sanitize, table};
use gantry_deploy::app::revisions::{
    ChangedObjects, Revision, RevisionChanges, RevisionHead, RevisionOutcome, Revisions, read_manifests,
};
use gantry_deploy::app::{App, Parent, RunOutcome, check_name};
use gantry_deploy::config::Settings;

/// The revision that a command names; `None` for the last one that was deployed before the current one.
pub type WantedRevision = Option<u32>;

/// An app with its revisions.
struct AppHistory {
    app: App,
    revisions: Revisions,
    /// The number of the revision that was deployed last.
    current: Option<u32>,
    /// A run that has not ended is writing it.
    is_running: bool,
    /// How this run found the app.
    cluster: ClusterFlags,
}

impl AppHistory {
    async fn read(app: App, cluster: ClusterFlags, target: &Target) -> Result<Self> {
        let parent = Parent::read(&app, target).await?.ok_or_else(|| no_app(&app))?;
        let revisions = Revisions::list(&app, target).await.map_err(|error| Error::failed(not_listed(&app, &error)))?;
        let last = parent.last.as_ref();
        let current = match last {
            // The record of a run that was killed does not have the number.
            Some(last) if last.outcome == RunOutcome::Started && last.revision.is_none() => {
                let newest = revisions.list.last();
                let is_of_run = |newest: &&Revision| newest.head.as_ref().is_ok_and(|head| head.time == last.time);
                newest.filter(is_of_run).map(|newest| newest.number)
            }
            last => last.and_then(|last| last.revision),
        };
        let is_running = last.is_some_and(|last| last.outcome == RunOutcome::Started)
            && parent.locked(jiff::Timestamp::now()).is_err();
        Ok(AppHistory { app, revisions, current, is_running, cluster })
    }

    /// The revision that is wanted.
    fn find(&self, wanted: WantedRevision) -> std::result::Result<&Revision, Problem> {
        let App { name, namespace } = &self.app;
        let list = next_command::history(&self.app, &self.cluster);
        let deploy = next_command::deploy(&self.app, &self.cluster);
        if self.revisions.list.is_empty() {
            let problem = Problem::new(format!("the app {name} in namespace {namespace} has no revisions"));
            return Err(problem.help("each deploy of the app keeps one, unless --history is 0"));
        }
        match wanted {
            Some(number) => self.revisions.find(number).ok_or_else(|| {
                let message = format!("the app {name} in namespace {namespace} has no revision {number}");
                let numbers: Vec<String> = self.revisions.list.iter().map(|kept| kept.number.to_string()).collect();
                let known = match &*numbers {
                    [only] => format!("revision {only} is kept"),
                    _ => format!("revisions {} are kept", text::cut(&numbers.join(", "), 200)),
                };
                Problem::new(message).help(format!("{known}; {list} shows them"))
            }),
            None => self.revisions.previous(self.current).ok_or_else(|| {
                let problem = Problem::new(format!(
                    "the app {name} in namespace {namespace} has no earlier revision with other manifests that was deployed"
                ));
                problem.help(match &*self.revisions.list {
                    [only] if only.number == 1 => {
                        format!("it is the first deploy of the app: deploy the earlier manifests, {deploy}")
                    }
                    _ => format!("name one: {list} shows them"),
                })
            }),
        }
    }
}

fn not_listed(app: &App, error: &ListError) -> Problem {
    let problem = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
    let message = format!("the revisions of the app {} cannot be read: {}", app.name, problem.message);
    Problem { message, ..problem }
}

/// The manifests of a revision.
pub struct ReadRevision {
    pub number: u32,
    pub input: Input,
}

/// Reads the manifests of a revision of the app that the settings name.
///
/// # Errors
/// There is no such app or revision, or it is damaged.
pub async fn read_revision(settings: &Settings, wanted: WantedRevision, cluster: ClusterFlags) -> Result<ReadRevision> {
    let Some(name) = &settings.app else {
        let problem = Problem::new("revisions are kept of apps, and none is named");
        return Err(Error::usage(problem.help("name the app: --app=NAME")));
    };
    check_name(name).map_err(|why| Error::usage(Problem::new(format!("--app: {why}"))))?;
    if settings.target != TargetSpec::Kube {
        let problem = Problem::new("a folder or a commit keeps no apps, and so no revisions of them");
        return Err(Error::usage(problem.help("go back with git: check out the earlier commit, and deploy it")));
    }
    let target = open_target(settings).await?;
    let app = App::new(name, settings.app_namespace.as_deref(), settings.namespace.as_deref(), &target);
    let mut history = AppHistory::read(app, cluster, &target).await?;
    if wanted.is_none() {
        history.revisions.mark_damaged(&history.app, history.current, &target).await;
    }
    let revision = history.find(wanted).map_err(Error::failed)?;
    let list = next_command::history(&history.app, &history.cluster);
    let deploy = next_command::deploy(&history.app, &history.cluster);
    let if_damaged = format!("go back to another one: {list} lists them; or deploy its manifests again: {deploy}");
    let text = read_manifests(&history.app, revision, &if_damaged, &target).await.map_err(Error::failed)?;
    let called = format!("revision {} of the app {name}", revision.number);
    let source = ManifestSource::new(called.clone(), text);
    Ok(ReadRevision { number: revision.number, input: Input::rendered(&[called], vec![Arc::new(source)]) })
}

/// The revisions of an app.
pub async fn list(args: &HistoryArgs, host: &mut Host) -> Result<String> {
    let stop = host.stop.clone();
    let (settings, target) = open(&args.cluster, host).await?;
    let app = app_of(&args.name, &settings, &target)?;
    let cluster = ClusterFlags::new(&args.cluster.kubeconfig, &args.cluster.identity, &args.cluster.config, None);
    let history = until_interrupted(&stop, AppHistory::read(app, cluster, &target)).await?;
    if args.output == Some(ListFormat::Json) {
        let revisions: Vec<Value> = history.revisions.list.iter().map(|revision| history.entry(revision)).collect();
        let App { name, namespace } = &history.app;
        return Ok(pretty(&json!({"name": name, "namespace": namespace, "revisions": revisions})));
    }
    Ok(history.table())
}

impl AppHistory {
    fn word(&self, revision: &Revision) -> &'static str {
        match &revision.end {
            Some(end) => end.outcome.word(),
            None if self.is_running && self.current == Some(revision.number) => "in progress",
            None => RevisionOutcome::Interrupted.word(),
        }
    }

    fn table(&self) -> String {
        if self.revisions.list.is_empty() {
            return "no revisions\n".to_owned();
        }
        let mut rows = vec![["REVISION", "DEPLOYED", "BY", "OUTCOME", "CHANGES"].map(str::to_owned)];
        for revision in &self.revisions.list {
            let mark = if self.current == Some(revision.number) { " (current)" } else { "" };
            let number = format!("{}{mark}", revision.number);
            rows.push(match &revision.head {
                Err(_) => [number, String::new(), String::new(), "damaged".to_owned(), String::new()],
                Ok(head) => {
                    let time = head.time.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
                    let user = sanitize(&head.user).into_owned();
                    [number, time, user, self.word(revision).to_owned(), describe(revision, head)]
                }
            });
        }
        table(&rows)
    }

    fn entry(&self, revision: &Revision) -> Value {
        let mut entry = json!({"revision": revision.number, "current": self.current == Some(revision.number)});
        match &revision.head {
            Err(why) => {
                entry["outcome"] = "damaged".into();
                entry["error"] = sanitize(why).into();
            }
            Ok(head) => {
                entry["time"] = json!(head.time);
                if !head.user.is_empty() {
                    entry["user"] = head.user.as_str().into();
                }
                entry["outcome"] = match &revision.end {
                    Some(end) => json!(end.outcome),
                    None if self.word(revision) == "in progress" => "inProgress".into(),
                    None => json!(RevisionOutcome::Interrupted),
                };
                let changed = revision.changed();
                entry["changes"] = json!(changed.unwrap_or(&head.changes));
                // How much of it was done is unknown.
                entry["planned"] = changed.is_none().into();
                if let Some(to) = head.rollback_to {
                    entry["rollbackTo"] = to.into();
                }
                if let Some(end) = revision.end.as_ref().filter(|end| !end.reasons.is_empty()) {
                    entry["reasons"] = json!(end.reasons);
                }
            }
        }
        entry
    }
}

/// What a deploy changed, in one line; or what it was going to change, if no more is known.
fn describe(revision: &Revision, head: &RevisionHead) -> String {
    let changes = match revision.changed() {
        Some(changes) if changes.is_empty() => "nothing".to_owned(),
        Some(changes) => describe_changes(changes),
        None => format!("planned: {}", describe_changes(&head.changes)),
    };
    match head.rollback_to {
        Some(to) => format!("{changes}; rollback to {to}"),
        None => changes,
    }
}

fn describe_changes(changes: &RevisionChanges) -> String {
    /// The most objects of each kind of change that are named.
    const NAMED: usize = 3;
    let part = |(changed, what): (&ChangedObjects, &str)| {
        let ChangedObjects { count, names } = changed;
        let mut shown: Vec<String> =
            names.iter().take(NAMED).map(|name| sanitize(&text::cut(name, 80)).into_owned()).collect();
        if *count > shown.len() {
            shown.push(format!("{} more", count - shown.len()));
        }
        (*count > 0).then(|| format!("{count} {what} ({})", shown.join(", ")))
    };
    let parts = [
        (&changes.created, "created"),
        (&changes.updated, "updated"),
        (&changes.deleted, "deleted"),
        (&changes.deleting, "being deleted"),
        (&changes.unknown, "perhaps changed"),
    ];
    parts.into_iter().filter_map(part).collect::<Vec<_>>().join("; ")
}

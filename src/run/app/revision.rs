//! The revision of a deploy: what is kept of it, and the command that goes back to an earlier one.

use std::borrow::Cow;
use std::collections::BTreeSet;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use jiff::Timestamp;

use super::ManagedApp;
use crate::cli::FlowArgs;
use crate::run::next_command::{ClusterFlags, NextCommand};
use gantry_cluster::Target;
use gantry_cluster::patience::Patience;
use gantry_core::finding::Action;
use gantry_core::manifest::{ConfigDocument, Manifest};
use gantry_core::options::PruneFlag;
use gantry_core::problem::Problem;
use gantry_core::text;
use gantry_deploy::app::App;
use gantry_deploy::app::parent::LastRun;
use gantry_deploy::app::revisions::{
    self, KeptRevision, NOT_KEPT, RevisionChanges, RevisionEnd, RevisionHead, RevisionOutcome, RevisionText, Revisions,
};
use gantry_deploy::config::{Settings, key};
use gantry_deploy::plan::{Change, ObjectLookup, Plan};

/// What to do without a right to keep revisions.
const WITHOUT_REVISIONS: &str = "deploy without keeping revisions: --history=0";

/// The manifests of a run whose revision is kept, before they get the label of the app.
pub struct RevisionInput {
    pub manifests: Vec<Manifest>,
    /// The documents that configure gantry.
    pub configs: Vec<String>,
    /// The revision whose manifests these are, in a rollback.
    pub rollback_to: Option<u32>,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// Whether the values of Secrets are kept.
    pub keeps_values: bool,
}

/// The texts of configuration among the manifests.
pub fn texts_of(configs: &[ConfigDocument]) -> Vec<String> {
    let text = |config: &ConfigDocument| {
        let origin = &config.origin;
        origin.source.text().get(origin.bytes.clone()).unwrap_or_default().to_owned()
    };
    configs.iter().map(text).collect()
}

impl RevisionInput {
    fn text(&self, plan: &Plan) -> RevisionText {
        let namespaced: BTreeSet<(String, String)> = plan
            .changes
            .iter()
            .filter(|change| change.resource.namespaced)
            .map(|change| (change.desired.object.group().to_owned(), change.desired.object.kind.clone()))
            .collect();
        RevisionText::new(&self.manifests, &namespaced, &self.namespace, &self.configs, self.keeps_values)
    }
}

/// The revision of a deploy while it runs.
pub struct RunningRevision {
    kept: Option<KeptRevision>,
    /// If it is not kept, the others.
    others: Revisions,
    limit: u32,
    pub notices: Vec<Problem>,
}

/// What is known of the revisions after a deploy.
#[derive(Default)]
pub struct EndedRevision {
    /// The number of the revision of the deploy, if it is kept.
    pub number: Option<u32>,
    /// The revision to go back to, if the deploy did not complete.
    pub way_back: Option<u32>,
    pub notices: Vec<Problem>,
}

impl ManagedApp {
    /// Keeps the manifests of the run, before it writes the first object. Without the rights, it goes on without.
    pub(super) async fn keep_revision(
        &self,
        plan: &Plan,
        run: &LastRun,
        settings: &Settings,
        patience: Patience<'_>,
        target: &Target,
    ) -> Option<RunningRevision> {
        let input = self.revision.as_ref()?;
        let head = RevisionHead {
            time: run.time,
            user: run.user.clone(),
            version: run.version.clone(),
            parts: 0,
            sum: String::new(),
            rollback_to: input.rollback_to,
            changes: RevisionChanges::planned(plan),
        };
        let limit = settings.history;
        // A webhook that does not answer must not hold up the deploy, which may be what repairs it.
        let patience = Patience::none(patience.stop);
        match revisions::keep(&self.app, head, &input.text(plan), patience, target).await {
            Ok(kept) => {
                let (others, notices) = (Revisions::default(), Vec::new());
                Some(RunningRevision { kept: Some(kept), others, limit, notices })
            }
            Err(not_kept) => {
                let message = format!(
                    "this deploy is not kept as a revision of the app {}: {}",
                    self.app.name, not_kept.problem.message
                );
                let help = match not_kept.problem.needs_right {
                    true => missing_rights(&self.app),
                    false => {
                        let help = not_kept.problem.help.as_ref().map(|help| format!("{help}; ")).unwrap_or_default();
                        format!("{help}without revisions: --history=0")
                    }
                };
                let notices = vec![Problem { message, help: Some(help), ..not_kept.problem }];
                Some(RunningRevision { kept: None, others: not_kept.all, limit, notices })
            }
        }
    }

    /// Brings the outcome of a revision up to date where a deploy has nothing to do: an earlier run with the same
    /// manifests ended before all was ready. Returns the number of the revision that is deployed.
    pub(super) async fn confirm_revision(&self, plan: &Plan, patience: Patience<'_>, target: &Target) -> Option<u32> {
        let input = self.revision.as_ref()?;
        let all = Revisions::list(&self.app, target).await.ok()?;
        let same = all.with_sum(&input.text(plan).sum())?;
        if !same.is_deployed() {
            let changes = same.changed().cloned();
            let (time, outcome) = (Timestamp::now(), RevisionOutcome::Deployed);
            let end = RevisionEnd { time, outcome, reasons: Vec::new(), changes };
            // The record of the app says the same.
            let _ = same.end(&end, patience, target).await;
        }
        Some(same.number)
    }

    /// The revision of the last deploy of the app.
    pub fn last_revision(&self) -> Option<u32> {
        self.parent.as_ref()?.last.as_ref()?.revision
    }

    /// The revision to go back to where a deploy has nothing to do, and waits in vain for what an earlier one wrote.
    pub async fn way_back(&self, plan: &Plan, target: &Target) -> Option<u32> {
        let input = self.revision.as_ref()?;
        let mut all = Revisions::list(&self.app, target).await.ok()?;
        let same = all.with_sum(&input.text(plan).sum()).map(|same| same.number);
        let current = same.or_else(|| self.last_revision());
        all.mark_damaged(&self.app, current, target).await;
        all.way_back(current, true).map(|revision| revision.number)
    }

    /// The requests that delete the revisions together with the app, if the record says that there are some.
    pub(super) fn to_delete_revisions(&self) -> impl Iterator<Item = ObjectLookup> {
        let last = self.parent.as_ref().and_then(|parent| parent.last.as_ref());
        let has_some = self.deletes && last.is_some_and(|last| last.revision.is_some());
        let verbs = if has_some { &["list", "delete"][..] } else { &[] };
        verbs.iter().map(|verb| self.of_revisions(verb, None))
    }

    fn of_revisions(&self, verb: &'static str, otherwise: Option<&'static str>) -> ObjectLookup {
        let object = std::sync::Arc::new(revisions::any_secret(&self.app));
        let namespace = object.namespace.clone();
        ObjectLookup {
            object,
            resource: revisions::secrets(),
            namespace,
            name: None,
            verb,
            otherwise: otherwise.map(Cow::from),
        }
    }

    /// The requests that keep the revision of a deploy.
    pub(super) fn to_keep_revision(&self, settings: &Settings) -> impl Iterator<Item = ObjectLookup> {
        let verbs = if settings.history > 0 && !self.deletes { &revisions::VERBS[..] } else { &[] };
        verbs.iter().map(|verb| self.of_revisions(verb, Some(WITHOUT_REVISIONS)))
    }

    /// The Secrets whose values the revision does not have: notices about those that stay as they are, and why nothing
    /// can be written if one is missing.
    pub(super) fn without_values(plan: &Plan) -> (Option<Problem>, Option<Problem>) {
        let is_without = |change: &&Change| {
            change.desired.object.is_secret()
                && change.desired.metadata_may_contain(&[NOT_KEPT])
                && change.desired.raw.value()["metadata"]["annotations"].get(NOT_KEPT).is_some()
        };
        let (missing, left): (Vec<&Change>, Vec<&Change>) =
            plan.changes.iter().filter(is_without).partition(|change| change.action == Action::Create);
        let objects = |changes: &[&Change]| {
            super::foreseen::listed(changes.iter().map(|change| &*change.desired.object), |objects, is_one| {
                format!("{objects}: the revision does not keep {} values", if is_one { "its" } else { "their" })
            })
        };
        let left = objects(&left).map(|problem| {
            let message = format!("{}, so what is live stays as it is", problem.message);
            Problem { message, ..problem }.help("revisions keep them from the next deploy with --history-secrets=true")
        });
        let missing = objects(&missing).map(|problem| {
            let message = format!("{}, and nothing is live", problem.message);
            Problem { message, ..problem }.help("create it first, with its values, and run the same command again")
        });
        (left, missing)
    }
}

impl RunningRevision {
    /// Records how the deploy ended.
    pub async fn end(self, app: &App, end: RevisionEnd, patience: Patience<'_>, target: &Target) -> EndedRevision {
        let RunningRevision { kept, others, limit, mut notices } = self;
        let has_changed = end.changes.as_ref().is_none_or(|changes| !changes.is_empty());
        let number = kept.as_ref().map(|kept| kept.number);
        let has_failed = end.outcome != RevisionOutcome::Deployed;
        let mut all = match kept {
            None => others,
            Some(kept) => {
                let (all, problems) = kept.end(end, limit, patience, target).await;
                notices.extend(problems);
                all
            }
        };
        if has_failed {
            all.mark_damaged(app, number, target).await;
        }
        let way_back = all.way_back(number, has_changed).map(|revision| revision.number);
        EndedRevision { number, way_back, notices }
    }
}

/// What was to happen to revisions that the user may not list.
pub enum UnlistedRevisions<'a> {
    /// They go with their app.
    Deleted,
    /// They go to this app, which is the same one under another name.
    Moved(&'a App),
}

/// The notice that the revisions of an app stay as they are, with the command for somebody who may list them.
pub fn notice_of_unlisted(app: &App, why: &Problem, to_be: &UnlistedRevisions<'_>, settings: &Settings) -> Problem {
    let App { name, namespace } = app;
    let label = revisions::label(app);
    let Settings { context, kubeconfig, connection, .. } = settings;
    // Not the user: somebody else has the right.
    let flags = [
        ("--context", context.as_deref()),
        ("--kubeconfig", kubeconfig.as_deref().and_then(std::path::Path::to_str)),
        ("--cluster", connection.cluster.as_deref()),
        ("--server", connection.server.as_deref()),
    ];
    let cluster: String =
        flags.iter().filter_map(|(flag, value)| Some(format!(" {flag} {}", text::shell_word((*value)?)))).collect();
    let secrets = format!("secrets -n {namespace} -l {label}{cluster}");
    let next = match to_be {
        UnlistedRevisions::Deleted => format!("to delete them: kubectl delete {secrets}"),
        UnlistedRevisions::Moved(new) => {
            let (to, label) = (&new.name, revisions::label(new));
            format!("to give them to {to} before it is deployed: kubectl label {secrets} --overwrite {label}")
        }
    };
    Problem::new(format!("the revisions of the app {name} stay as they are, if it has any: {}", why.message))
        .help(format!("they are the Secrets in namespace {namespace} with the label {label}; {next}"))
}

fn missing_rights(App { namespace, .. }: &App) -> String {
    let verbs = revisions::VERBS.map(|verb| format!("{verb:?}")).join(", ");
    format!(
        "grant the rule {{apiGroups: [\"\"], resources: [secrets], verbs: [{verbs}]}} in namespace {namespace} (gantry \
         permissions prints the whole role), or {WITHOUT_REVISIONS}"
    )
}

/// The command that goes back to a revision, with the flags by which this run found its app. `context`: the cluster, if
/// the run is on several.
pub fn rollback_command(args: &FlowArgs, app: &App, revision: u32, context: Option<&str>) -> String {
    let namespace = args.input.target.namespace.as_deref();
    let of_record = namespace.filter(|namespace| *namespace != app.namespace).map(|_| &*app.namespace);
    let prune =
        args.app.prune.filter(|prune| *prune != PruneFlag::Kapp).as_ref().and_then(ValueEnum::to_possible_value);
    let preset = args.input.preset.as_ref().and_then(ValueEnum::to_possible_value);
    let command = NextCommand::new(&["rollback", &revision.to_string(), "-a", &app.name])
        .flag("-n", namespace)
        .flag("--app-namespace", of_record.or(args.app.namespace.as_deref()))
        .on(&ClusterFlags::of_flow(args, context))
        // The same checks, by the same preset.
        .flags("--preflight", args.input.preflight.iter().map(String::as_str))
        .flag("--preset", preset.as_ref().map(PossibleValue::get_name))
        .flag("--field-manager", args.settings.text(&key::FIELD_MANAGER))
        .flag("--prune", prune.as_ref().map(PossibleValue::get_name));
    command.to_string()
}

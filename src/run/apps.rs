//! `apps`, `apps forget` and `inspect`: shows the apps of a cluster, and removes the record of one.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::app::delete_revisions;
use super::host::Host;
use super::interrupt::until_interrupted;
use super::prepare::{impersonating, loader, open_target, overrides_of_kubeconfig};
use super::{pretty, write};
use crate::cli::{AppsArgs, ClusterArgs, InspectArgs};
use gantry_cluster::patience::Patience;
use gantry_cluster::{IN_FLIGHT, ListError, ListRequest, Target};
use gantry_core::finding::Action;
use gantry_core::options::{ListFormat, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, ObjectRef};
use gantry_core::text::{self, sanitize, table};
use gantry_deploy::app::PART_OF;
use gantry_deploy::app::children::{self, Children};
use gantry_deploy::app::members::{self, AppObject, LiveMetadata};
use gantry_deploy::app::{App, Parent, check_name, config_maps, parent};
use gantry_deploy::apply::delete;
use gantry_deploy::config::{LoadedSettings, Loader, Settings, key};
use gantry_deploy::plan::graph::ApplyStep;
use gantry_deploy::plan::removal::Removal;
use gantry_deploy::readiness::Readiness;
use gantry_preflight::registry;

const PAGE: u32 = 500;
const METADATA_PAGE: u32 = 2000;

/// The settings of a command for apps.
pub(super) fn load(args: &ClusterArgs, host: &Host) -> Result<LoadedSettings> {
    let overrides = overrides_of_kubeconfig(&args.kubeconfig, &args.config)
        .with(&key::NAMESPACE, &args.namespace)
        .with(&key::APP_NAMESPACE, &args.of_record().map(str::to_owned));
    let loader = Loader { overrides: impersonating(overrides, &args.identity), ..loader(&args.config, host) };
    loader.load([], &registry::known())
}

/// The cluster that the flags name.
pub(super) async fn open(args: &ClusterArgs, host: &mut Host) -> Result<(Settings, Target)> {
    let loaded = load(args, host)?;
    host.print_notices(&loaded.notices);
    let settings = loaded.settings;
    if settings.target != TargetSpec::Kube {
        return Err(Error::usage(Problem::new("a folder or a commit cannot keep the records of apps")));
    }
    let target = open_target(&settings).await?;
    Ok((settings, target))
}

pub(super) fn app_of(name: &str, settings: &Settings, target: &Target) -> Result<App> {
    check_name(name).map_err(|why| Error::usage(Problem::new(format!("--app: {why}"))))?;
    Ok(App::new(name, settings.app_namespace.as_deref(), settings.namespace.as_deref(), target))
}

pub(super) fn no_app(App { name, namespace }: &App) -> Error {
    let problem = Problem::new(format!("there is no app {name} in namespace {namespace}"));
    Error::failed(
        problem.help("gantry apps lists the existing ones; -n or --app-namespace names the namespace of the record"),
    )
}

/// What the user allows beforehand.
#[derive(Debug, Clone, Copy)]
pub struct Consent {
    /// Another run may be writing the app.
    pub breaks_lock: bool,
    /// The question counts as answered.
    pub confirmed: bool,
}

impl Consent {
    /// Refuses to write an app that another run is writing. The answer may be a notice.
    pub(super) fn lock(self, parent: &Parent) -> Result<Option<Problem>> {
        if self.breaks_lock { Ok(None) } else { parent.locked(Timestamp::now()).map_err(Error::failed) }
    }
}

async fn parent_of(name: &str, settings: &Settings, target: &Target) -> Result<Parent> {
    let app = app_of(name, settings, target)?;
    Parent::read(&app, target).await?.ok_or_else(|| no_app(&app))
}

/// All apps of the cluster.
pub async fn list(args: &AppsArgs, host: &mut Host) -> Result<String> {
    let stop = host.stop.clone();
    let (settings, target) = open(&args.cluster, host).await?;
    let named = args.cluster.app_namespace.clone().or_else(|| settings.namespace.clone());
    let namespace = named.filter(|_| !args.all_namespaces);
    let found = until_interrupted(&stop, async { Ok(list_apps(&target, namespace.as_deref()).await) })
        .await?
        .map_err(Error::failed)?;
    let text = match args.output {
        Some(ListFormat::Json) => {
            let apps: Vec<Value> = found.iter().map(entry).collect();
            pretty(&json!({ "apps": apps }))
        }
        _ => listed(&found),
    };
    let problems: Vec<Problem> = found.into_iter().filter_map(|(_, parent)| parent.err()).collect();
    if problems.is_empty() {
        return Ok(text);
    }
    // Like kubectl: first what could be read, then the errors.
    host.say(&text);
    Err(Error::Failed(problems))
}

pub(super) type ListedApp = (App, std::result::Result<Parent, Problem>);

fn listed(found: &[ListedApp]) -> String {
    let mut rows = vec![["NAMESPACE", "NAME", "OBJECTS", "LAST DEPLOY", "OUTCOME", "BY"].map(str::to_owned)];
    for (app, parent) in found {
        let mut row =
            [app.namespace.clone(), app.name.clone(), String::new(), String::new(), String::new(), String::new()];
        match parent {
            Ok(parent) => {
                row[2] = parent.inventory().count().to_string();
                if let Some(last) = &parent.last {
                    row[3] = last.time.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
                    row[4] = word(last.outcome).to_owned();
                    row[5] = last.user.clone();
                }
            }
            Err(_) => row[4] = "unreadable record".to_owned(),
        }
        rows.push(row);
    }
    if found.is_empty() { "no apps\n".to_owned() } else { table(&rows) }
}

fn word(outcome: parent::RunOutcome) -> &'static str {
    match outcome {
        parent::RunOutcome::Started => "unfinished",
        parent::RunOutcome::Applied => "applied",
        parent::RunOutcome::Failed => "failed",
    }
}

fn entry((app, parent): &ListedApp) -> Value {
    let mut entry = json!({"name": app.name, "namespace": app.namespace, "id": app.id()});
    match parent {
        Ok(parent) => {
            entry["objects"] = parent.inventory().count().into();
            entry["last"] = json!(parent.last);
        }
        Err(problem) => entry["error"] = problem.message.clone().into(),
    }
    entry
}

/// Every app, by namespace and name.
///
/// Records are listed by their label. One that has lost it is found by its name: the server cannot select names by
/// their end, so the metadata of all ConfigMaps is listed.
pub(super) async fn list_apps(
    target: &Target,
    namespace: Option<&str>,
) -> std::result::Result<Vec<ListedApp>, Problem> {
    let config_maps = config_maps();
    let labelled =
        ListRequest { namespace, label_selector: Some(parent::ID_LABEL), ..ListRequest::new(&config_maps, PAGE) };
    let every = ListRequest { namespace, metadata_only: true, ..ListRequest::new(&config_maps, METADATA_PAGE) };
    let read = |found: &mut BTreeMap<(String, String), _>, json: &str| {
        let Some((app, live)) = parent::app_of(json) else { return };
        found.insert((app.namespace.clone(), app.name.clone()), (app, live));
    };
    let suspect = |found: &mut Vec<App>, json: &str| found.extend(parent::app_without_label(json));
    let (mut labelled, mut every) = (target.list(&labelled), target.list(&every));
    let (found, suspects) = tokio::join!(labelled.gather(read), every.gather(suspect));
    let failed = |error: ListError| error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
    let (mut found, suspects) = (found.map_err(failed)?, suspects.map_err(failed)?);
    for app in suspects {
        let live = Parent::read_by_name(&app, target).await.map_err(|error| error.first_problem())?;
        found.extend(live.map(|live| ((app.namespace.clone(), app.name.clone()), (app, live))));
    }
    let whole = async |(app, live): (App, LiveObject)| {
        let parent = Parent::read_parts(&app, live, target).await;
        let parent = parent.map_err(|error| error.first_problem());
        // It may have been deleted meanwhile.
        parent.transpose().map(|parent| (app, parent))
    };
    let found: Vec<Option<ListedApp>> =
        stream::iter(found.into_values()).map(whole).buffered(IN_FLIGHT).collect().await;
    Ok(found.into_iter().flatten().collect())
}

/// The members of an app, and whether they are ready.
pub async fn inspect(args: &InspectArgs, host: &mut Host) -> Result<String> {
    let stop = host.stop.clone();
    let (settings, target) = open(&args.cluster, host).await?;
    let work = async {
        let mut parent = parent_of(&args.name, &settings, &target).await?;
        let live = members::find_with_readiness(&parent, &target, &settings.rules.waits).await?;
        parent.resolve_pending(&live);
        let children = match args.tree {
            true => children::find(&live.found, &target, &settings.rules.waits).await,
            false => Children::default(),
        };
        Ok((parent, live, children))
    };
    let (parent, live, children) = until_interrupted(&stop, work).await?;
    host.print_notices(&live.unread);
    host.print_notices(&children.unread);
    let uids: BTreeMap<&str, bool> =
        parent.members.iter().map(|member| (member.uid.as_str(), member.adopted)).collect();
    let id = parent.app.id();
    let state = |facts: &LiveMetadata| {
        let is_labelled = facts.labels.get(PART_OF) == Some(&id);
        match (is_labelled, uids.get(facts.uid.as_str())) {
            _ if facts.deleted.is_some() => "terminating",
            (true, Some(true)) => "member, adopted",
            (true, Some(false)) => "member",
            (true, None) if !facts.owners.is_empty() => "copy",
            (true, None) => "label only",
            (false, Some(_)) => "without label",
            (false, None) => "not ours",
        }
    };
    if args.output == Some(ListFormat::Json) {
        let object = |found: &AppObject| {
            let mut entry = json!({"object": found.object, "uid": found.facts.uid, "state": state(&found.facts),
                "created": found.facts.created, "finalizers": found.facts.finalizers,
                "readiness": found.facts.readiness.as_ref().map(Readiness::json)});
            if args.tree {
                entry["owned"] = children.json(&found.facts.uid);
            }
            entry
        };
        let objects: Vec<Value> = live.found.iter().map(object).collect();
        let gone: Vec<String> =
            live.gone.iter().map(|member| format!("{}/{}", member.group_kind(), member.name)).collect();
        return Ok(pretty(&json!({"name": parent.app.name, "namespace": parent.app.namespace, "id": id,
            "last": parent.last, "objects": objects, "gone": gone, "complete": live.unread.is_empty()})));
    }
    let mut rows = vec![["NAMESPACE", "OBJECT", "STATE", "READY", "CREATED", "REASON"].map(str::to_owned)];
    let row = |depth: usize, found: &AppObject, state: &str| {
        let AppObject { object, facts, .. } = found;
        let namespace = object.namespace.clone().unwrap_or_else(|| "-".to_owned());
        let name = ObjectRef { namespace: None, ..(**object).clone() };
        let branch = if depth == 0 { String::new() } else { format!("{}└─ ", "   ".repeat(depth - 1)) };
        let (ready, reason) = facts.readiness.as_ref().map_or(("", None), |ready| (ready.word(), ready.reason()));
        let reason = reason.unwrap_or_default().to_owned();
        [namespace, format!("{branch}{name}"), state.to_owned(), ready.to_owned(), facts.created.clone(), reason]
    };
    for found in &live.found {
        rows.push(row(0, found, state(&found.facts)));
        children.each_below(&found.facts.uid, 1, &mut |depth, child| rows.push(row(depth, child, "owned")));
    }
    for member in &live.gone {
        let namespace = member.namespace.clone().unwrap_or_else(|| "-".to_owned());
        rows.push([
            namespace,
            format!("{}/{}", member.group_kind().to_lowercase(), member.name),
            "gone".into(),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    let mut out = format!("App {} in namespace {}", parent.app.name, parent.app.namespace);
    if let Some(last) = &parent.last {
        let time = last.time.strftime("%Y-%m-%d %H:%M:%SZ");
        out.push_str(&format!(": {} at {time} by {}", word(last.outcome), sanitize(&last.user)));
        for reason in &last.reasons {
            out.push_str(&format!("\n  {}", sanitize(reason)));
        }
    }
    out.push_str("\n\n");
    out.push_str(&table(&rows));
    Ok(out)
}

/// Removes the label from the members and deletes the record.
pub async fn forget_app(args: &ClusterArgs, name: &str, consent: Consent, host: &mut Host) -> Result<String> {
    let stop = host.stop.clone();
    let (settings, target) = open(args, host).await?;
    let work = async {
        let app = app_of(name, &settings, &target)?;
        let parent = Parent::read_to_forget(&app, &target).await?.ok_or_else(|| no_app(&app))?;
        let lock = consent.lock(&parent)?;
        if let Some(problem) = parent.undeletable(false) {
            return Err(Error::failed(problem));
        }
        let live = members::find(&parent, &target, members::KeptContent::NOTHING).await?;
        Ok((parent, lock, live))
    };
    let (parent, lock, live) = until_interrupted(&stop, work).await?;
    host.print_notices(&lock);
    if !live.unread.is_empty() {
        return Err(Error::Failed(live.unread));
    }
    let id = parent.app.id();
    let labelled = live.found.into_iter().filter(|found| found.facts.labels.get(PART_OF) == Some(&id));
    let removals: Vec<Removal> = labelled
        .map(|members::AppObject { object, resource, facts }| Removal {
            object,
            resource,
            facts,
            action: Action::Orphan,
            is_done: false,
        })
        .collect();
    let objects = text::count(removals.len(), "object");
    if !consent.confirmed {
        write::needs_terminal(host, "go on without confirmation: --yes")?;
        write::confirm(host, &format!("Forget the app {name} and release {objects} in {}?", target.describe())).await?;
    }
    let all = ApplyStep { members: (0..removals.len()).collect(), ..ApplyStep::default() };
    let timeout = settings.timeouts.delete;
    let removed = delete::run(&removals, &[all], &target, &settings.field_manager, timeout, &stop, &|_| ()).await;
    if !removed.problems.is_empty() {
        let help = "run the same command again: the record still exists";
        let problems = removed.problems.into_iter();
        return Err(Error::Failed(problems.map(|problem| problem.help(help)).collect()));
    }
    let notice = delete_revisions(&parent, &settings, &target).await.map_err(Error::failed)?;
    parent
        .delete(None, Patience { limit: settings.timeouts.apply, stop: &stop }, &target)
        .await
        .map_err(Error::failed)?;
    host.print_notices(&notice);
    let stay = if removals.len() == 1 { "stays" } else { "stay" };
    Ok(format!("Forgot the app {name}; {objects} {stay} in the cluster\n"))
}

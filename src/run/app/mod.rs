//! What a deploy with `-a` does in addition: it reads the app's record, plans the removals, and writes the record.

mod deploy;
pub(super) mod foreseen;
mod record;
pub(super) mod revision;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;

use crate::cli::AppFlags;
use foreseen::{AppForecast, listed};
use gantry_cluster::Target;
use gantry_cluster::patience::is_of_webhook;
use gantry_core::finding::Action;
use gantry_core::manifest::Manifest;
use gantry_core::options::{Prune, PruneFlag, PruneMax, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::rbac::Atom;
use gantry_core::resource::{self, ObjectRef, Resource};
use gantry_deploy::app::inventory::AppMember;
use gantry_deploy::app::members::{self, AppObject, LiveMembers};
use gantry_deploy::app::{App, PART_OF, Parent, config_maps, label, versions};
use gantry_deploy::apply::Applied;
use gantry_deploy::apply::delete::DeletionResults;
use gantry_deploy::config::{Settings, key};
use gantry_deploy::plan::removal::{self, Removal, Removals};
use gantry_deploy::plan::strategy::{self, DeployStrategy};
use gantry_deploy::plan::{Change, ObjectLookup, Plan};
use revision::RevisionInput;

use crate::run::before::{self, RecordedApp};
use crate::run::from_kapp::FromKapp;

pub use deploy::{DeployedApp, deploy, deploy_policy, options, shows_logs, waits};
pub(super) use record::{delete_revisions, describe_this_run, needs_parts};

/// What to do without a right to find or to delete members.
const WITHOUT_PRUNING: &str = "deploy without pruning: --prune=no";
const RECORD_ALONE: &str = "keep all objects and delete the record alone: gantry apps forget -a APP -n NAMESPACE";

/// The app of a run, as it is live.
pub struct ManagedApp {
    pub app: App,
    parent: Option<Parent>,
    live: LiveMembers,
    numbered: versions::NumberedVersions,
    /// Members that nobody changed since the last run and that match the manifests.
    as_applied: BTreeMap<members::MemberKey, resource::LiveObject>,
    /// See [`Input::sum`].
    input: String,
    field_manager: String,
    prune: Prune,
    prunes_adopted: bool,
    deletes: bool,
    kapp: Option<FromKapp>,
    /// The tool that keeps the record, if it is not gantry, as a sentence names it.
    tool: Option<String>,
    /// A lock that counts for nothing.
    lock: Option<Problem>,
    /// What is kept of the run; `None` if it writes nothing, or no revisions are kept.
    revision: Option<RevisionInput>,
}

/// What the run does with the app.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// A deploy or a delete, and no dry run.
    pub writes: bool,
    /// The user is asked for confirmation before anything is written.
    pub asks: bool,
    /// The user passed `--yes`.
    pub confirmed: bool,
    /// The app is deleted, with all its members.
    pub deletes: bool,
}

/// What is known of an app before its manifests are read.
pub struct AppBeforeRun {
    pub before: Option<RecordedApp>,
    /// See [`gantry_core::manifest::Input::sum`].
    pub input: String,
    /// See [`RevisionInput`].
    pub configs: Vec<String>,
    /// The revision to go back to.
    pub rollback_to: Option<u32>,
}

/// Reads the app that the settings name, and gives the manifests its label.
///
/// # Errors
/// Its record cannot be read, or another run is writing it; manifests that belong to another ApplySet.
pub async fn open(
    settings: &Settings,
    flags: &AppFlags,
    manifests: &mut Vec<Manifest>,
    target: &Target,
    use_of: Use,
    known: AppBeforeRun,
) -> Result<Option<ManagedApp>> {
    let Use { writes, asks, confirmed, deletes } = use_of;
    let Some(name) = &settings.app else { return Ok(None) };
    if flags.prune == Some(PruneFlag::Kapp) && flags.from_kapp.is_none() {
        let problem = Problem::new("--prune=kapp requires an app of kapp to take over, and none is named");
        return Err(Error::usage(problem.help("name it with --from-kapp, or use --prune=yes")));
    }
    if settings.target != TargetSpec::Kube {
        let problem = Problem::new("a folder or a commit cannot keep the records of apps");
        return Err(Error::usage(problem.help("deploy without --app, or to a cluster")));
    }
    let app = App::new(name, settings.app_namespace.as_deref(), settings.namespace.as_deref(), target);
    let AppBeforeRun { before, input, configs, rollback_to } = known;
    let namespace = settings.namespace.as_deref().unwrap_or_else(|| target.default_namespace());
    let is_kept = writes && !deletes && settings.history > 0;
    let revision = is_kept.then(|| RevisionInput {
        manifests: manifests.clone(),
        configs,
        rollback_to,
        namespace: namespace.to_owned(),
        keeps_values: settings.is_on(&key::HISTORY_SECRETS),
    });
    label::put_label(manifests, &app.id())?;
    let as_applied = before.as_ref().and_then(|before| before::as_applied(before, manifests, settings, namespace));
    let (known, live) = before.map(|RecordedApp { parent, live }| (parent, live)).unzip();
    let (mut parent, tool) = match (known, flags.take_over_app) {
        (Some(parent), _) => (Some(parent), None),
        (None, true) => Parent::read_of_any_tool(&app, target).await?.unzip(),
        (None, false) => (Parent::read(&app, target).await?, None),
    };
    let tool = tool.flatten();
    if tool.is_some() && writes && !asks && !confirmed {
        let problem =
            Problem::new(format!("the ApplySet of {} belongs to another tool or an unnamed one", app.parent()));
        return Err(Error::failed(problem.help("take it over without confirmation: --take-over-app --yes")));
    }
    let lock = match parent.as_ref().filter(|_| writes && !flags.break_lock) {
        Some(parent) => parent.locked(Timestamp::now()).map_err(Error::failed)?,
        None => None,
    };
    let live = match (&parent, live.flatten()) {
        (Some(_), Some(live)) if as_applied.is_some() => live,
        (Some(parent), _) => {
            // Namespaced objects may not have their namespace yet. CRDs are read in parallel with the manifests.
            let named: BTreeSet<(&str, &str, &str)> = manifests
                .iter()
                .map(|manifest| &*manifest.object)
                .filter(|object| !object.is_crd())
                .map(|object| (object.group(), object.kind.as_str(), object.name.as_str()))
                .collect();
            // Manifests name a versioned object without its number.
            let wanted = |object: &ObjectRef| {
                let is_named = |name: &str| named.contains(&(object.group(), object.kind.as_str(), name));
                is_named(&object.name) || versions::base(&object.name).is_some_and(|(base, _)| is_named(base))
            };
            let kinds: BTreeSet<(&str, &str)> = named.iter().map(|(group, kind, _)| (*group, *kind)).collect();
            let whole = |resource: &Resource| kinds.contains(&(&*resource.group, &*resource.kind));
            members::find(parent, target, members::KeptContent { objects: &wanted, whole: &whole }).await?
        }
        (None, _) => LiveMembers::default(),
    };
    if let Some(parent) = &mut parent {
        parent.resolve_pending(&live);
    }
    let from_kapp = FromKapp::open(flags, &app, parent.as_ref(), target, asks, settings.prune, &settings.field_manager);
    let kapp = from_kapp.await?;
    let mut numbered = versions::NumberedVersions::default();
    if manifests.iter().any(versions::is_versioned) {
        let unread = live.unread.iter().chain(kapp.iter().flat_map(FromKapp::unread)).next();
        if let Some(problem) = unread.cloned() {
            let message = format!("the versions of versioned objects cannot be counted: {}", problem.message);
            return Err(Error::failed(Problem { message, ..problem }));
        }
        // Versions that kapp created count, too.
        let found = live.found.iter().chain(kapp.iter().flat_map(FromKapp::found));
        numbered = versions::number(manifests, &found.collect::<Vec<_>>(), namespace)?;
    }
    let prune = match settings.prune {
        None | Some(Prune::Ask) if asks => Prune::Ask,
        Some(Prune::Yes) => Prune::Yes,
        _ => Prune::No,
    };
    let (as_applied, prunes_adopted) = (as_applied.unwrap_or_default(), flags.prune_adopted);
    let field_manager = settings.field_manager.clone();
    Ok(Some(ManagedApp {
        app,
        parent,
        live,
        numbered,
        as_applied,
        input,
        field_manager,
        prune,
        prunes_adopted,
        deletes,
        kapp,
        tool,
        lock,
        revision,
    }))
}

impl ManagedApp {
    /// Members that the manifests name, as they were listed.
    pub fn content(&self) -> &BTreeMap<members::MemberKey, resource::LiveObject> {
        &self.live.content
    }

    /// Members that need not be read: see [`Change::is_as_applied`].
    pub fn as_applied(&self) -> &BTreeMap<members::MemberKey, resource::LiveObject> {
        &self.as_applied
    }

    /// The label of the app of kapp that is taken over.
    pub fn kapp_id(&self) -> Option<&str> {
        self.kapp.as_ref().and_then(FromKapp::id)
    }

    /// Puts what leaves the app into the plan, and what leaves the app of kapp that it takes over.
    pub fn plan(&self, plan: &mut Plan, settings: &Settings) -> AppForecast {
        let mut foreseen = self.plan_own(plan, settings);
        if let Some(tool) = &self.tool {
            let message = format!("the record of the app {} is taken over from {tool}", self.app.name);
            foreseen.notices.push(Problem::new(message).help("do not deploy it with that tool any more"));
        }
        if let Some(kapp) = &self.kapp {
            let (deleted, members) = kapp.plan(plan, &mut foreseen, settings.prune);
            foreseen.blocks.extend(self.too_many(deleted, members, settings));
        }
        foreseen.notices.extend(self.lock.iter().chain(&self.numbered.notices).cloned());
        let writes_record = plan.is_written() || self.may_be_stale(plan);
        if let Some(problem) = self.unfit() {
            let is_going = self.parent.as_ref().is_some_and(Parent::is_going);
            let problems = if is_going || writes_record { &mut foreseen.hindrances } else { &mut foreseen.notices };
            problems.push(problem);
        }
        if writes_record {
            plan.lookups.extend(self.to_record());
        }
        if plan.is_written() {
            plan.lookups.extend(self.to_keep_revision(settings));
        }
        let (left, missing) = Self::without_values(plan);
        foreseen.notices.extend(left);
        foreseen.hindrances.extend(missing);
        let of_members: Vec<_> =
            self.to_find(settings).chain(self.to_remove(plan)).chain(self.to_delete_revisions()).collect();
        plan.lookups.extend(of_members);
        foreseen
    }

    /// The requests that write the record. Those for its parts are not among them: their names are generated.
    fn to_record(&self) -> impl Iterator<Item = ObjectLookup> {
        let object = Arc::new(self.app.parent());
        let verbs: &[&str] = match (&self.parent, self.deletes) {
            // Server-side apply is a patch, which also needs the right to create what does not exist.
            (None, _) => &["patch", "create"],
            (Some(_), false) => &["patch"],
            (Some(_), true) => &["patch", "delete"],
        };
        verbs.iter().map(move |verb| ObjectLookup {
            object: object.clone(),
            resource: config_maps(),
            namespace: object.namespace.clone(),
            name: Some(object.name.clone()),
            verb,
            otherwise: None,
        })
    }

    /// Why the record cannot be written or deleted.
    fn unfit(&self) -> Option<Problem> {
        let parent = self.parent.as_ref()?;
        if self.deletes { parent.undeletable(true) } else { parent.unwritable() }
    }

    /// Whether a deploy that has nothing else to write would write the record.
    fn may_be_stale(&self, plan: &Plan) -> bool {
        self.is_stale(&self.record(plan, &Applied::not_reached(plan), &DeletionResults::default()))
    }

    fn plan_own(&self, plan: &mut Plan, settings: &Settings) -> AppForecast {
        let mut foreseen = AppForecast::default();
        // Checked before the first write, because the record with all members is written after the last one.
        match needs_parts(plan) {
            Ok(needs_parts) => plan.needs_parts = needs_parts,
            Err(why) => {
                let App { name, .. } = &self.app;
                let problem = Problem::new(format!("the app {name} cannot be recorded: {why}"));
                foreseen.hindrances.push(problem.help("deploy it as several apps"));
            }
        }
        foreseen.blocks.extend(strategy::taken_versions(plan, &self.app.name));
        let Some(parent) = &self.parent else {
            if self.deletes {
                let App { name, namespace } = &self.app;
                let problem = Problem::new(format!("there is no app {name} in namespace {namespace}"));
                foreseen.notices.push(problem.help("gantry apps lists the existing ones"));
            }
            return foreseen;
        };
        let Removals { removals, adopted, notices, members } =
            removal::decide(parent, &self.live, &plan.changes, &self.numbered.older, self.prunes_adopted);
        foreseen.notices = notices;
        let (deleted, orphaned): (Vec<_>, Vec<_>) =
            removals.into_iter().partition(|removal| removal.action == Action::Delete);
        plan.removals = orphaned;
        foreseen.notices.extend(self.kept_as_adopted(&adopted));
        foreseen.notices.extend(self.keeps_record());
        foreseen.notices.extend(self.no_longer_written(parent, plan));
        // Unless all members were read, it is unknown what else has left the app.
        if !self.live.unread.is_empty() {
            let unread =
                if settings.prune == Some(Prune::No) { &mut foreseen.notices } else { &mut foreseen.hindrances };
            // There is no other way to delete an app, or to forget it, than to read all members.
            unread.extend(self.live.unread.iter().cloned().map(|problem| {
                if self.deletes {
                    return problem;
                }
                let others = problem.help.as_ref().map(|help| format!("{help}; or ")).unwrap_or_default();
                problem.help(format!("{others}deploy without pruning: --prune=no"))
            }));
            return foreseen;
        }
        if self.prune == Prune::No {
            if let Some(problem) = listed(deleted.iter().map(|removal| &*removal.object), |objects, is_one| {
                let stay = if is_one { "stays" } else { "stay" };
                format!("{objects} left the manifests and {stay} in the app {}", self.app.name)
            }) {
                foreseen.notices.push(problem.help("delete them: --prune=yes"));
            }
            return foreseen;
        }
        foreseen.blocks.extend(self.too_many(deleted.len(), members, settings));
        plan.removals.splice(0..0, deleted);
        foreseen
    }

    /// The notice about members that are not deleted because they existed before the app.
    fn kept_as_adopted(&self, adopted: &[Arc<ObjectRef>]) -> Option<Problem> {
        let name = &self.app.name;
        let problem = listed(adopted.iter().map(|object| &**object), |objects, is_one| {
            let existed = if is_one { "it existed" } else { "they existed" };
            let stay = match (self.deletes, is_one) {
                (true, true) => "stays in the cluster, and so does the record of the app",
                (true, false) => "stay in the cluster, and so does the record of the app",
                (false, true) => "left the manifests and stays",
                (false, false) => "left the manifests and stay",
            };
            format!("{objects} {stay}: {existed} before the app {name}")
        })?;
        let namespace = &self.app.namespace;
        let also = if adopted.len() == 1 { "to delete it, too" } else { "to delete them, too" };
        Some(match self.deletes {
            true => problem.help(format!(
                "{also}: --prune-adopted; to remove only the record: gantry apps forget -a {name} -n {namespace}"
            )),
            false => problem.help(format!("{also}: --prune-adopted")),
        })
    }

    /// The notice that a record stays although the app is deleted.
    fn keeps_record(&self) -> Option<Problem> {
        let App { name, namespace } = &self.app;
        let objects: Vec<&ObjectRef> =
            self.labelled_only().filter(|_| self.deletes).map(|found| &*found.object).collect();
        let problem = listed(objects.iter().copied(), |objects, is_one| {
            let carry = if is_one { "carries" } else { "carry" };
            format!("the record of the app {name} stays in the cluster: {objects} still {carry} the label of the app")
        })?;
        Some(problem.help(format!(
            "delete what is not needed, and run the same command again; to keep the objects and remove the label and the \
             record: gantry apps forget -a {name} -n {namespace}"
        )))
    }

    /// Live objects with the label of the app whose uid it does not know. A controller's copies are not among them.
    pub(super) fn labelled_only(&self) -> impl Iterator<Item = &AppObject> {
        let id = self.app.id();
        let uids: BTreeSet<&str> =
            self.parent.iter().flat_map(|parent| &parent.members).map(|member| &*member.uid).collect();
        self.live.found.iter().filter(move |AppObject { facts, .. }| {
            facts.labels.get(PART_OF) == Some(&id) && facts.owners.is_empty() && !uids.contains(&*facts.uid)
        })
    }

    /// Notices about members whose annotation now says that the app does not write them.
    fn no_longer_written(&self, parent: &Parent, plan: &Plan) -> Vec<Problem> {
        let members: BTreeSet<_> = parent.members.iter().map(AppMember::identity).collect();
        let is_left = |change: &&Change| {
            change.action == Action::Skip
                && strategy::read_strategy(&change.desired) == Some(DeployStrategy::LeaveAlone)
                && change.live.is_some()
                && members.contains(&change.desired.object.identity())
        };
        let notice = |change: &Change| {
            let object = &change.desired.object;
            let message = format!(
                "{object} leaves the app {} and stays in the cluster: an annotation of its manifest says that the app does not \
                 write it ({})",
                self.app.name,
                strategy::left_alone_by(&change.desired)
            );
            let help =
                format!("it keeps the label of the app; to remove it: kubectl label {} {PART_OF}-", object.to_write());
            Problem::new(message).at(change.desired.origin.location()).help(help)
        };
        plan.changes.iter().filter(is_left).map(notice).collect()
    }

    /// The problem, if a deploy would delete more than its limit allows.
    fn too_many(&self, deleted: usize, members: usize, settings: &Settings) -> Option<Problem> {
        let is_few = match settings.prune_max {
            Some(most) => most.allows(deleted, members),
            None => deleted <= 10 || PruneMax::Share(30).allows(deleted, members),
        };
        let message = || {
            let message =
                format!("PruneLimit: {deleted} of {members} members of the app {} would be deleted", self.app.name);
            let help = format!("to delete them: --prune-max={deleted}; otherwise check that no manifest is missing");
            Problem::new(message).help(help)
        };
        (!is_few).then(message)
    }

    /// Whether the run deletes the app: `gantry delete`.
    pub fn deletes(&self) -> bool {
        self.deletes
    }

    /// The rights to find the members that left the manifests.
    fn to_find(&self, settings: &Settings) -> impl Iterator<Item = ObjectLookup> {
        let object = Arc::new(self.app.parent());
        let is_needed = self.deletes || settings.prune != Some(Prune::No);
        let places = self.live.places.iter().filter(move |_| is_needed);
        places.map(move |(resource, namespace)| ObjectLookup {
            object: object.clone(),
            resource: Resource::clone(resource),
            namespace: namespace.clone(),
            name: None,
            verb: "list",
            otherwise: (!self.deletes).then_some(WITHOUT_PRUNING.into()),
        })
    }

    /// The requests that remove the objects of the plan, and then read whether they are gone.
    fn to_remove(&self, plan: &Plan) -> impl Iterator<Item = ObjectLookup> {
        let rights = |removal: &Removal| {
            let object = &removal.object;
            let (verb, otherwise) = match (removal.action, self.deletes) {
                (Action::Delete, true) => ("delete", Some(RECORD_ALONE)),
                (Action::Delete, false) => ("delete", Some(WITHOUT_PRUNING)),
                // Objects that are only released leave the app with --prune=no, too.
                _ => ("patch", None),
            };
            let right = |verb| ObjectLookup {
                object: object.clone(),
                resource: Resource::clone(&removal.resource),
                namespace: object.authorized_in().map(str::to_owned),
                name: Some(object.name.clone()),
                verb,
                otherwise: otherwise.map(Into::into),
            };
            [right(verb), right("get")]
        };
        plan.removals.iter().filter(|removal| !removal.is_done).flat_map(rights)
    }

    /// Deletions and releases for which the user lacks a right. Checked before the first write, whichever checks are
    /// enabled.
    pub async fn forbidden(&self, plan: &Plan, target: &Target) -> Vec<Problem> {
        let rights: Vec<ObjectLookup> = self.to_remove(plan).chain(self.to_delete_revisions()).collect();
        let mut kinds: BTreeMap<(&str, &Resource, Option<&str>), Vec<&ObjectLookup>> = BTreeMap::new();
        for right in &rights {
            kinds.entry((right.verb, &right.resource, right.namespace.as_deref())).or_default().push(right);
        }
        let is_held = async |right: &ObjectLookup, name: Option<&str>| {
            let Resource { group, plural, .. } = &right.resource;
            let atom = Atom::Resource {
                group: group.clone(),
                resource: plural.clone(),
                name: name.map(str::to_owned),
                verb: right.verb.to_owned(),
            };
            target.access_review(right.namespace.as_deref(), &atom).await
        };
        let ask = async |(verb, resource, _): (&str, &Resource, Option<&str>), rights: Vec<&ObjectLookup>| {
            match is_held(rights[0], None).await {
                Ok(true) => return Vec::new(),
                Ok(false) => {}
                // The webhook may be one that is deleted. The server then refuses what is not permitted.
                Err(problem) if is_of_webhook(&problem) => return Vec::new(),
                Err(problem) => return vec![problem],
            }
            let mut problems = Vec::new();
            for right in rights {
                match is_held(right, right.name.as_deref()).await {
                    Ok(true) => {}
                    Ok(false) => {
                        let what = match resource.group.as_str() {
                            "" => resource.plural.clone(),
                            group => format!("{}.{group}", resource.plural),
                        };
                        let grant = format!("grant the verb {verb} on {what}");
                        let help = right
                            .otherwise
                            .as_ref()
                            .map(|otherwise| format!("{grant}, or {otherwise}"))
                            .unwrap_or(grant);
                        problems.push(Problem::new(format!("not permitted to {verb} {}", right.object)).help(help));
                    }
                    Err(problem) if is_of_webhook(&problem) => {}
                    Err(problem) => problems.push(problem),
                }
            }
            problems
        };
        let asked = stream::iter(kinds).map(|(kind, rights)| ask(kind, rights)).buffer_unordered(8);
        let mut problems: Vec<Problem> = asked.collect::<Vec<_>>().await.into_iter().flatten().collect();
        if let Some(kapp) = &self.kapp {
            problems.extend(kapp.forbidden(target).await);
        }
        problems.sort();
        problems.dedup();
        problems
    }
}

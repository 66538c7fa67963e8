//! What a deploy with `-a` does beside the deploy: the app's record before, its removals and its record after.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use super::before::{self, Before};
use super::from_kapp::FromKapp;
use super::host::Host;
use crate::app::last_applied::LastApplied;
use crate::app::members::{self, Found, Live};
use crate::app::parent::{self, Content, Last, reach};
use crate::app::{App, Member, Outcome, Parent, inventory, label, versions};
use crate::apply::delete::{self, Removed};
use crate::apply::{self, Applied, ApplyOptions, NotWritten};
use crate::cli::AppFlags;
use crate::cluster::Target;
use crate::config::Settings;
use crate::finding::redact::without_values;
use crate::finding::{Action, ApplyResult};
use crate::manifest::Manifest;
use crate::options::{Prune, PruneFlag, PruneMax, TargetSpec};
use crate::parallel::in_parallel;
use crate::plan::removal::{self, Removal, Removals};
use crate::plan::strategy::{self, Strategy};
use crate::plan::{Change, Plan};
use crate::problem::{Error, Problem, Result};
use crate::rbac::Atom;
use crate::resource::{self, ObjectRef, Resource};
use crate::text;

/// The app of a run, as it is live.
pub struct Managed {
    pub app: App,
    parent: Option<Parent>,
    live: Live,
    /// Older versions of versioned objects, which stay.
    older: BTreeSet<versions::Identity>,
    /// Members that are as the last run left them and as the manifests have them.
    as_applied: BTreeMap<members::Place, resource::Live>,
    /// See [`Input::sum`].
    input: String,
    field_manager: String,
    prune: Prune,
    prunes_adopted: bool,
    deletes: bool,
    kapp: Option<FromKapp>,
    /// The tool that keeps the record, where that is not gantry.
    tool: Option<String>,
}

/// What the run does with the app.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// A deploy or a delete, and no dry run.
    pub writes: bool,
    /// The user is asked before anything is written.
    pub asks: bool,
    /// The user has said beforehand that there is nothing to ask.
    pub confirmed: bool,
    /// The app ends, with all its members.
    pub deletes: bool,
}

/// What is to be said of an app before anything is written.
#[derive(Debug, Default)]
pub struct Foreseen {
    /// Why nothing can be written.
    pub hindrances: Vec<Problem>,
    /// More would be deleted than one deploy may.
    pub blocks: Vec<Problem>,
    pub notices: Vec<Problem>,
}

/// What is known of an app before its manifests are read.
pub struct Known {
    pub before: Option<Before>,
    /// See [`crate::manifest::Input::sum`].
    pub input: String,
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
    known: Known,
) -> Result<Option<Managed>> {
    let Use { writes, asks, confirmed, deletes } = use_of;
    let Some(name) = &settings.app else {
        return match flags.from_kapp {
            Some(_) => {
                let problem = Problem::new("--from-kapp takes an app of kapp over into an app, and none is named");
                Err(Error::usage(problem.help("name the app: --app=NAME")))
            }
            None => Ok(None),
        };
    };
    if flags.prune == Some(PruneFlag::Kapp) && flags.from_kapp.is_none() {
        let problem = Problem::new("--prune=kapp is about an app of kapp, and none is taken over");
        return Err(Error::usage(problem.help("name it with --from-kapp, or say --prune=yes")));
    }
    if let TargetSpec::Dir(_) = settings.target {
        let problem = Problem::new("a folder that stands in for a cluster keeps no apps");
        return Err(Error::usage(problem.help("deploy without --app, or to a cluster")));
    }
    let app = App::new(name, settings.app_namespace.as_deref(), settings.namespace.as_deref(), target);
    label::put(manifests, &app.id())?;
    let Known { before, input } = known;
    let namespace = settings.namespace.as_deref().unwrap_or_else(|| target.default_namespace());
    let as_applied = before.as_ref().and_then(|before| before::as_applied(before, manifests, settings, namespace));
    let (known, live) = before.map(|Before { parent, live }| (parent, live)).unzip();
    let (parent, tool) = match (known, flags.take_over_app) {
        (Some(parent), _) => (Some(parent), None),
        (None, true) => Parent::read_of_any_tool(&app, target).await?.unzip(),
        (None, false) => (Parent::read(&app, target).await?, None),
    };
    let tool = tool.flatten();
    if tool.is_some() && writes && !asks && !confirmed {
        let problem = Problem::new(format!("the ApplySet of {} belongs to another tool", app.parent()));
        return Err(Error::failed(problem.help("take it over without a question: --take-over-app --yes")));
    }
    if let Some(parent) = parent.as_ref().filter(|_| writes && !flags.break_lock) {
        parent.locked(Timestamp::now()).map_err(Error::failed)?;
    }
    let live = match (&parent, live) {
        (Some(_), Some(live)) if as_applied.is_some() => live,
        (Some(parent), _) => {
            // Their namespace may still be filled in. CRDs are read while the manifests are.
            let named: BTreeSet<(&str, &str, &str)> = manifests
                .iter()
                .map(|manifest| &*manifest.object)
                .filter(|object| !object.is_crd())
                .map(|object| (object.group(), object.kind.as_str(), object.name.as_str()))
                .collect();
            // A version is wanted under its name without the number.
            let wanted = |object: &ObjectRef| {
                let is_named = |name: &str| named.contains(&(object.group(), object.kind.as_str(), name));
                is_named(&object.name) || versions::base(&object.name).is_some_and(|(base, _)| is_named(base))
            };
            let kinds: BTreeSet<(&str, &str)> = named.iter().map(|(group, kind, _)| (*group, *kind)).collect();
            let whole = |resource: &Resource| kinds.contains(&(&*resource.group, &*resource.kind));
            members::find(parent, target, members::Wanted { objects: &wanted, whole: &whole }).await?
        }
        (None, _) => Live::default(),
    };
    let from_kapp = FromKapp::open(flags, &app, parent.as_ref(), target, asks, settings.prune, &settings.field_manager);
    let kapp = from_kapp.await?;
    let mut older = BTreeSet::new();
    if manifests.iter().any(versions::is_versioned) {
        let unread = live.unread.iter().chain(kapp.iter().flat_map(FromKapp::unread)).next();
        if let Some(problem) = unread.cloned() {
            let message = format!("the versions of versioned objects cannot be counted: {}", problem.message);
            return Err(Error::failed(Problem { message, ..problem }));
        }
        // Versions that kapp made are counted on.
        let found = live.found.iter().chain(kapp.iter().flat_map(FromKapp::found));
        older = versions::number(manifests, &found.collect::<Vec<_>>(), namespace)?;
    }
    let prune = match settings.prune {
        None | Some(Prune::Ask) if asks => Prune::Ask,
        Some(Prune::Yes) => Prune::Yes,
        _ => Prune::No,
    };
    let (as_applied, prunes_adopted) = (as_applied.unwrap_or_default(), flags.prune_adopted);
    let field_manager = settings.field_manager.clone();
    Ok(Some(Managed {
        app,
        parent,
        live,
        older,
        as_applied,
        input,
        field_manager,
        prune,
        prunes_adopted,
        deletes,
        kapp,
        tool,
    }))
}

impl Managed {
    /// Members that the manifests name, as they were listed.
    pub fn content(&self) -> &BTreeMap<members::Place, resource::Live> {
        &self.live.content
    }

    /// Members that need no look: see [`Change::is_as_applied`].
    pub fn as_applied(&self) -> &BTreeMap<members::Place, resource::Live> {
        &self.as_applied
    }

    /// The label of the app of kapp that is taken over.
    pub fn kapp_id(&self) -> Option<&str> {
        self.kapp.as_ref().and_then(FromKapp::id)
    }

    /// Puts what leaves the app into the plan, and what leaves the app of kapp that it takes over.
    pub fn plan(&self, plan: &mut Plan, settings: &Settings) -> Foreseen {
        let mut foreseen = self.plan_own(plan, settings);
        if let Some(tool) = &self.tool {
            let message = format!("the record of the app {} is taken over from {tool:?}", self.app.name);
            foreseen.notices.push(Problem::new(message).help(format!("do not deploy it with {tool:?} any more")));
        }
        if let Some(kapp) = &self.kapp {
            let (deleted, members) = kapp.plan(plan, &mut foreseen, settings.prune);
            foreseen.blocks.extend(self.too_many(deleted, members, settings));
        }
        foreseen
    }

    fn plan_own(&self, plan: &mut Plan, settings: &Settings) -> Foreseen {
        let mut foreseen = Foreseen::default();
        foreseen.hindrances.extend(self.too_large(plan));
        foreseen.hindrances.extend(strategy::taken_versions(plan, &self.app.name));
        let Some(parent) = &self.parent else {
            if self.deletes {
                let App { name, namespace } = &self.app;
                let problem = Problem::new(format!("there is no app {name} in namespace {namespace}"));
                foreseen.notices.push(problem.help("gantry apps lists those that there are"));
            }
            return foreseen;
        };
        let Removals { removals, adopted, notices, members } =
            removal::decide(parent, &self.live, &plan.changes, &self.older, self.prunes_adopted);
        foreseen.notices = notices;
        let (deleted, orphaned): (Vec<_>, Vec<_>) =
            removals.into_iter().partition(|removal| removal.action == Action::Delete);
        plan.removals = orphaned;
        if let Some(problem) = listed(adopted.iter().map(|object| &**object), |objects| {
            format!("{objects} left the manifests and stay: they were there before the app {}", self.app.name)
        }) {
            foreseen.notices.push(problem.help("delete them, too: --prune-adopted"));
        }
        // Without all of its members, nobody knows what else has left the app.
        if !self.live.unread.is_empty() {
            let told = if settings.prune == Some(Prune::No) { &mut foreseen.notices } else { &mut foreseen.hindrances };
            told.extend(self.live.unread.iter().cloned().map(|problem| {
                let others = problem.help.as_ref().map(|help| format!("{help}; or ")).unwrap_or_default();
                problem.help(format!("{others}deploy without pruning: --prune=no"))
            }));
            return foreseen;
        }
        if self.prune == Prune::No {
            if let Some(problem) = listed(deleted.iter().map(|removal| &*removal.object), |objects| {
                format!("{objects} left the manifests and stay in the app {}", self.app.name)
            }) {
                foreseen.notices.push(problem.help("delete them: --prune=yes"));
            }
            return foreseen;
        }
        foreseen.blocks.extend(self.too_many(deleted.len(), members, settings));
        plan.removals.splice(0..0, deleted);
        foreseen
    }

    /// More would be deleted than one deploy may.
    fn too_many(&self, deleted: usize, members: usize, settings: &Settings) -> Option<Problem> {
        let is_few = match settings.prune_max {
            Some(most) => most.allows(deleted, members),
            None => deleted <= 10 || PruneMax::Share(30).allows(deleted, members),
        };
        let message = || {
            let message =
                format!("PruneLimit: {deleted} of {members} members of the app {} would be deleted", self.app.name);
            let help = format!("if they are to go: --prune-max={deleted}; if not, see whether all manifests are there");
            Problem::new(message).help(help)
        };
        (!is_few).then(message)
    }

    /// Why the record could not keep the members that the app will have. Found before the first write: it would have to be
    /// written after the last.
    fn too_large(&self, plan: &Plan) -> Option<Problem> {
        // Uids do not pack. These are as long as real ones, and as random.
        let uid = |object: &ObjectRef| {
            let half = |salt: u8| {
                let mut hasher = DefaultHasher::new();
                (salt, object.identity()).hash(&mut hasher);
                hasher.finish()
            };
            format!("{:016x}----{:016x}", half(0), half(1))
        };
        let to_come = plan.changes.iter().map(|change| {
            let object = &change.desired.object;
            let live = change.live.as_ref().map(|live| live.uid.clone());
            Member::of(object, &live.unwrap_or_else(|| uid(object)), false)
        });
        let why = inventory::encode(&to_come.collect()).err()?;
        let App { name, .. } = &self.app;
        Some(Problem::new(format!("the app {name} cannot be kept: {why}")).help("deploy it as several apps"))
    }

    /// Deletions that the user may not make: asked before the first write, whatever checks run.
    pub async fn forbidden(&self, plan: &Plan, target: &Target) -> Vec<Problem> {
        let verb = |removal: &Removal| if removal.action == Action::Delete { "delete" } else { "patch" };
        let right = |removal: &Removal, name: Option<&str>| {
            let Resource { group, plural, .. } = &*removal.resource;
            Atom::Resource {
                group: group.clone(),
                resource: plural.clone(),
                name: name.map(str::to_owned),
                verb: verb(removal).to_owned(),
            }
        };
        // A Namespace counts as being in itself.
        let place = |object: &ObjectRef| {
            if object.is_namespace() { Some(object.name.clone()) } else { object.namespace.clone() }
        };
        let mut kinds: BTreeMap<(&str, &Resource, Option<String>), Vec<&Removal>> = BTreeMap::new();
        for removal in plan.removals.iter().filter(|removal| !removal.is_done) {
            kinds.entry((verb(removal), &removal.resource, place(&removal.object))).or_default().push(removal);
        }
        let ask = async |(verb, resource, namespace): (&str, &Resource, Option<String>), removals: Vec<&Removal>| {
            match target.access_review(namespace.as_deref(), &right(removals[0], None)).await {
                Ok(true) => return Vec::new(),
                Ok(false) => {}
                Err(problem) => return vec![problem],
            }
            let mut problems = Vec::new();
            for removal in &removals {
                let object = &removal.object;
                let atom = right(removal, Some(&object.name));
                match target.access_review(namespace.as_deref(), &atom).await {
                    Ok(true) => {}
                    Ok(false) => {
                        let what = match resource.group.as_str() {
                            "" => resource.plural.clone(),
                            group => format!("{}.{group}", resource.plural),
                        };
                        // What is let go leaves the app without pruning, too.
                        let others = if verb == "delete" { ", or deploy without deleting: --prune=no" } else { "" };
                        let help = format!("grant the verb {verb} on {what}{others}");
                        problems.push(Problem::new(format!("not permitted to {verb} {object}")).help(help));
                    }
                    Err(problem) => problems.push(problem),
                }
            }
            problems
        };
        let asked = stream::iter(kinds).map(|(kind, removals)| ask(kind, removals)).buffer_unordered(8);
        let mut problems: Vec<Problem> = asked.collect::<Vec<_>>().await.into_iter().flatten().collect();
        if let Some(kapp) = &self.kapp {
            problems.extend(kapp.forbidden(target).await);
        }
        problems.sort();
        problems.dedup();
        problems
    }

    /// Whether the app's record says something else than the cluster, though nothing is to be written to members.
    fn is_stale(&self, content: &Content) -> bool {
        let Some(parent) = &self.parent else { return !self.deletes };
        let is_whole = parent.last.as_ref().is_some_and(|last| last.outcome == Outcome::Applied);
        self.deletes || content.members != parent.members || !is_whole || self.tool.is_some()
    }

    /// Brings the record up to date where nothing else is to be written.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn settle(&self, plan: &Plan, target: &Target, host: &Host) -> Result<()> {
        let mut content = self.record(plan, &Applied::not_reached(plan), &Removed::default());
        if self.is_stale(&content) {
            content.last = last(Outcome::Applied, target, host).await;
            content.last_applied = self.last_applied(plan, &Applied::not_reached(plan));
            self.end(self.parent.as_ref(), content, target).await.map_err(Error::failed)?;
        }
        match &self.kapp {
            Some(kapp) => kapp.end(plan, target).await.map_err(Error::Failed),
            None => Ok(()),
        }
    }

    /// Writes the record as it is after the run, or deletes it with the last member of an app that ends.
    async fn end(
        &self,
        parent: Option<&Parent>,
        content: Content,
        target: &Target,
    ) -> std::result::Result<(), Problem> {
        match parent {
            Some(parent) if self.deletes && content.members.is_empty() => parent.delete(target).await,
            _ => parent::write(&self.app, parent, content, target).await.map(drop),
        }
    }

    /// What the record says after the run, apart from the run itself.
    fn record(&self, plan: &Plan, applied: &Applied, removed: &Removed) -> Content {
        let mut kept: BTreeMap<_, &Member> =
            self.parent.iter().flat_map(|parent| &parent.members).map(|member| (member.identity(), member)).collect();
        let mut content = Content {
            kinds: Default::default(),
            namespaces: Default::default(),
            members: Default::default(),
            last: Last::none(),
            last_applied: None,
        };
        for (index, change) in plan.changes.iter().enumerate() {
            let object = &change.desired.object;
            let before = kept.remove(&object.identity());
            if change.action == Action::Skip && strategy::of(&change.desired) == Some(Strategy::LeaveAlone) {
                continue;
            }
            let uid = match applied.results[index] {
                ApplyResult::Applied | ApplyResult::Unchanged => {
                    applied.uids[index].as_deref().or_else(|| Some(&change.live.as_ref()?.uid))
                }
                // As it was.
                _ => None,
            };
            match uid {
                Some(uid) => {
                    let known = before.filter(|member| member.uid == uid);
                    let adopted =
                        known.map_or(change.action == Action::Adopt && !change.kapp.joins, |member| member.adopted);
                    content.members.insert(Member::of(object, uid, adopted));
                }
                None => content.members.extend(before.cloned()),
            }
        }
        let out: BTreeSet<_> = plan
            .removals
            .iter()
            .zip(&removed.results)
            .filter(|(_, result)| matches!(result, ApplyResult::Deleted | ApplyResult::Applied))
            .map(|(removal, _)| removal.object.identity())
            .collect();
        let gone: BTreeSet<&Member> = self.live.gone.iter().collect();
        let found: BTreeMap<_, &Found> = self.live.found.iter().map(|found| (found.object.identity(), found)).collect();
        for (identity, member) in kept {
            let found = found.get(&identity);
            // Its label or its uid is another: it is no member any more.
            let left = found.is_some_and(|found| {
                found.facts.uid != member.uid || found.facts.labels.get(crate::app::PART_OF) != Some(&self.app.id())
            });
            if !gone.contains(member) && !left && !out.contains(&identity) {
                content.members.insert(member.clone());
            }
        }
        (content.kinds, content.namespaces) = reach(&content.members);
        // Where something was not written, not read or not gone, the record reaches as far as the run might have.
        let is_whole = applied.problems.is_empty()
            && applied.unready.is_empty()
            && !applied.interrupted
            && removed.problems.is_empty()
            && removed.stuck.is_empty()
            && self.live.unread.is_empty();
        if !is_whole {
            let (kinds, namespaces) = self.reach(plan);
            content.kinds.extend(kinds);
            content.namespaces.extend(namespaces);
        }
        content
    }

    /// By what the next run knows which members are as this one leaves them, after a run that came to its end.
    fn last_applied(&self, plan: &Plan, applied: &Applied) -> Option<LastApplied> {
        let changes: Vec<(usize, &Change)> = plan.changes.iter().enumerate().collect();
        let mark = |(index, change): &(usize, &Change)| {
            let live = change.live.as_ref();
            let uid = applied.uids[*index].as_deref().or_else(|| Some(&live?.uid))?.to_owned();
            let mark = match applied.uids[*index] {
                Some(_) => applied.marks.get(index).cloned(),
                None if change.action == Action::Unchanged => change.mark(live?, &self.field_manager),
                None => None,
            };
            Some((uid, mark?))
        };
        let marks = in_parallel(&changes, mark).into_iter().flatten().collect();
        self.live.unread.is_empty().then(|| LastApplied { input: self.input.clone(), marks })
    }

    /// The kinds and namespaces of the members of before, and of those to come.
    fn reach(&self, plan: &Plan) -> (BTreeSet<String>, BTreeSet<String>) {
        let planned: Vec<Member> =
            plan.changes.iter().map(|change| Member::of(&change.desired.object, "", false)).collect();
        let (mut kinds, mut namespaces) = reach(&planned);
        if let Some(parent) = &self.parent {
            kinds.extend(parent.kinds.iter().cloned());
            namespaces.extend(parent.namespaces.iter().cloned());
            let (of_members, in_namespaces) = reach(&parent.members);
            kinds.extend(of_members);
            namespaces.extend(in_namespaces);
        }
        (kinds, namespaces)
    }
}

/// What a deploy of an app came to.
pub struct Deployed {
    pub applied: Applied,
    pub removed: Removed,
}

/// Writes the app's record, its members, deletes what leaves it, and writes the record again.
///
/// Until the end the record names every kind and namespace that the run may have written to, so that whatever stops it,
/// the next run finds all members.
pub async fn deploy(
    managed: &Managed,
    plan: &Plan,
    target: &Target,
    settings: &Settings,
    host: &mut Host,
    write: impl AsyncFnOnce(&mut Host, Option<(usize, resource::Live)>) -> Applied,
) -> Deployed {
    let not_removed = || Removed { results: vec![ApplyResult::NotReached; plan.removals.len()], ..Removed::default() };
    let failed = |problem: Problem, written: Option<&(usize, resource::Live)>| {
        let applied = Applied { problems: vec![problem], ..Applied::begun(plan, written) };
        Deployed { applied, removed: not_removed() }
    };
    let writes = Arc::clone(&host.writes);
    writes.begin(plan.writes());
    let written = match state_namespace(managed, plan, target, settings, &host.stop).await {
        Ok(written) => written,
        Err(problem) => return failed(problem, None),
    };
    let (kinds, namespaces) = managed.reach(plan);
    let members = managed.parent.iter().flat_map(|parent| parent.members.clone()).collect();
    let started =
        Content { kinds, namespaces, members, last: last(Outcome::Started, target, host).await, last_applied: None };
    let mut parent = match parent::write(&managed.app, managed.parent.as_ref(), started, target).await {
        Ok(parent) => parent,
        Err(problem) => return failed(problem, written.as_ref()),
    };
    let mut applied = write(host, written).await;
    let mut removed = match applied.problems.is_empty() && applied.unready.is_empty() && !applied.interrupted {
        true => {
            let timeout = settings.timeouts.delete;
            let written = plan.changes_written();
            let on_removed = |removed| writes.done(written + removed);
            let (removals, steps) = (&plan.removals, &plan.graph.removals);
            delete::run(removals, steps, target, &settings.field_manager, timeout, &host.stop, &on_removed).await
        }
        false => not_removed(),
    };
    let is_done = removed.results.iter().all(|result| *result != ApplyResult::NotReached)
        && removed.problems().next().is_none()
        && applied.problems.is_empty()
        && applied.unready.is_empty()
        && !applied.interrupted;
    if let Some(kapp) = managed.kapp.as_ref().filter(|_| is_done) {
        // The members are on our record before kapp's goes: nobody else would know of them.
        let last = parent.last.clone().unwrap_or_else(Last::none);
        let content = Content { last, ..managed.record(plan, &applied, &removed) };
        match parent::write(&managed.app, Some(&parent), content, target).await {
            Ok(now) => {
                parent = now;
                removed.problems.extend(kapp.end(plan, target).await.err().into_iter().flatten());
            }
            Err(problem) => removed.problems.push(problem),
        }
    }
    applied.interrupted |= *host.stop.borrow() && removed.results.contains(&ApplyResult::NotReached);
    let problems: Vec<&Problem> = removed.problems().chain(&applied.problems).chain(&applied.unready).collect();
    let outcome = if problems.is_empty() && !applied.interrupted { Outcome::Applied } else { Outcome::Failed };
    let mut last = parent.last.clone().unwrap_or_else(Last::none);
    (last.time, last.outcome) = (Timestamp::now(), outcome);
    // Everybody who may read the record sees them.
    let reason = |message: &str| match settings.redact {
        true => text::cut(&without_values(message), REASON).into_owned(),
        false => text::cut(message, REASON).into_owned(),
    };
    last.reasons = problems.iter().take(5).map(|problem| reason(&problem.message)).collect();
    let last_applied = if outcome == Outcome::Applied { managed.last_applied(plan, &applied) } else { None };
    let content = Content { last, last_applied, ..managed.record(plan, &applied, &removed) };
    // What a manager wrote to the record meanwhile (a label, an annotation) is no reason to lose what was done.
    let mut answer = managed.end(Some(&parent), content.clone(), target).await;
    if answer.is_err()
        && let Ok(Some(now)) = Parent::read(&managed.app, target).await
        && now.last == parent.last
    {
        parent = now;
        answer = managed.end(Some(&parent), content, target).await;
    }
    if let Err(problem) = answer {
        removed.problems.push(problem);
    }
    Deployed { applied, removed }
}

/// Creates the namespace of the app's record, where it is one of the manifests. Answers its index, and what is live.
async fn state_namespace(
    managed: &Managed,
    plan: &Plan,
    target: &Target,
    settings: &Settings,
    stop: &watch::Receiver<bool>,
) -> std::result::Result<Option<(usize, resource::Live)>, Problem> {
    let is_state = |change: &Change| {
        let object = &change.desired.object;
        object.is_namespace() && object.name == managed.app.namespace && change.action == Action::Create
    };
    let Some(index) = plan.changes.iter().position(is_state) else { return Ok(None) };
    let options = options(settings, None);
    let written = apply::apply_one(&plan.changes[index], target, &options, stop).await.map_err(NotWritten::problem)?;
    Ok(Some((index, written.live)))
}

/// Whether a deploy waits until what it writes is ready.
pub fn waits(settings: &Settings) -> bool {
    settings.wait.unwrap_or(settings.app.is_some())
}

/// How a deploy writes.
pub fn options(settings: &Settings, written: Option<(usize, resource::Live)>) -> ApplyOptions {
    ApplyOptions {
        field_manager: settings.field_manager.clone(),
        force_conflicts: settings.force_conflicts,
        established_timeout: settings.timeouts.established,
        keep_going: settings.keep_going,
        delete_timeout: settings.timeouts.delete,
        apply_timeout: settings.timeouts.apply,
        ready_timeout: waits(settings).then_some(settings.timeouts.ready),
        resource_timeout: settings.timeouts.resource,
        wait_rules: settings.rules.waits.clone(),
        written,
    }
}

pub(super) async fn last(outcome: Outcome, target: &Target, host: &Host) -> Last {
    let user = match target.user().await {
        Some(Ok(user)) => user,
        _ => String::new(),
    };
    Last {
        time: Timestamp::now(),
        outcome,
        user,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        holder: parent::holder(&host.environment),
        reasons: Vec::new(),
    }
}

/// So many characters of each reason for a failure are kept.
const REASON: usize = 1000;

/// So many objects are named in a sentence.
const NAMED: usize = 20;

/// A sentence about all of the objects; `None` without any.
pub(super) fn listed<'o>(
    objects: impl ExactSizeIterator<Item = &'o ObjectRef>,
    say: impl FnOnce(String) -> String,
) -> Option<Problem> {
    let number = objects.len();
    let mut names: Vec<String> = objects.take(NAMED).map(ToString::to_string).collect();
    if number > NAMED {
        names.push(format!("{} more", number - NAMED));
    }
    (number > 0).then(|| Problem::new(say(names.join(", "))))
}

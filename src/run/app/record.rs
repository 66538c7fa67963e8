//! The app's record after a run: its members, their kinds and namespaces, and how the next run recognizes them as
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::ManagedApp;
use super::revision::{UnlistedRevisions, notice_of_unlisted};
use crate::run::host::Host;
use gantry_cluster::patience::Patience;
use gantry_cluster::{ListError, Target};
use gantry_core::finding::{Action, ApplyResult};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, ObjectRef};
use gantry_deploy::app::inventory::{self, Inventory, group_kind};
use gantry_deploy::app::last_applied::LastApplied;
use gantry_deploy::app::members::AppObject;
use gantry_deploy::app::parent::{self, AppRecordContent, LastRun, kinds_and_namespaces};
use gantry_deploy::app::revisions::Revisions;
use gantry_deploy::app::{AppMember, Parent, RunOutcome};
use gantry_deploy::apply::Applied;
use gantry_deploy::apply::delete::DeletionResults;
use gantry_deploy::config::Settings;
use gantry_deploy::plan::strategy::{self, DeployStrategy};
use gantry_deploy::plan::{Change, Plan, managed, removal};

/// The changes that become members of the app: all but those of bundles.
pub(super) fn planned_members(plan: &Plan) -> impl Iterator<Item = &Change> {
    plan.changes.iter().filter(|change| change.desired.bundle.is_none())
}

/// The members that the app will have, with placeholder uids that compress as badly as real ones.
fn to_come(plan: &Plan) -> BTreeSet<AppMember> {
    let uid = |object: &ObjectRef| {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, object.identity()).hash(&mut hasher);
            hasher.finish()
        };
        format!("{:016x}----{:016x}", half(0), half(1))
    };
    let member = |change: &Change| {
        let object = &change.desired.object;
        let live = change.live.as_ref().map(|live| live.uid.clone());
        AppMember::new(object, &live.unwrap_or_else(|| uid(object)), false)
    };
    planned_members(plan).map(member).collect()
}

/// Whether the record of the app will need several objects.
///
/// # Errors
/// It cannot hold the members that the app will have.
pub(in crate::run) fn needs_parts(plan: &Plan) -> std::result::Result<bool, String> {
    Ok(matches!(inventory::encode(&to_come(plan))?, Inventory::Split(_)))
}

impl ManagedApp {
    /// Whether the app's record has to be written although no member is.
    pub(super) fn is_stale(&self, content: &AppRecordContent) -> bool {
        let Some(parent) = &self.parent else { return !self.deletes };
        let is_whole = parent.last.as_ref().is_some_and(|last| last.outcome == RunOutcome::Applied);
        self.deletes || content.members != parent.members || !is_whole || self.tool.is_some()
    }

    /// Brings the record up to date if nothing else has to be written. The answer may be a notice.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn write_record_if_stale(
        &self,
        plan: &Plan,
        target: &Target,
        settings: &Settings,
        host: &Host,
    ) -> Result<Option<Problem>> {
        let mut notice = None;
        let mut content = self.record(plan, &Applied::not_reached(plan), &DeletionResults::default());
        if self.is_stale(&content) {
            content.last = describe_this_run(RunOutcome::Applied, target, host).await;
            content.last_applied = self.last_applied(plan, &Applied::not_reached(plan));
            let patience = Patience { limit: settings.timeouts.apply, stop: &host.stop };
            content.last.revision = match self.parent.as_ref().filter(|_| !self.deletes) {
                Some(_) => self.confirm_revision(plan, patience, target).await,
                None => None,
            };
            let written = self.write_final_record(self.parent.as_ref(), content, patience, settings, target).await;
            notice = written.map_err(Error::failed)?;
        }
        if let Some(kapp) = &self.kapp {
            kapp.finish_takeover(plan, target).await.map_err(Error::Failed)?;
        }
        Ok(notice)
    }

    /// Writes the record as it is after the run, or deletes it once the last member of a deleted app is gone. The answer
    /// may be a notice.
    pub(super) async fn write_final_record(
        &self,
        parent: Option<&Parent>,
        content: AppRecordContent,
        patience: Patience<'_>,
        settings: &Settings,
        target: &Target,
    ) -> std::result::Result<Option<Problem>, Problem> {
        match parent {
            // As long as objects carry the label, the record leads to them.
            Some(parent) if self.deletes && content.members.is_empty() && self.labelled_only().next().is_none() => {
                let notice = delete_revisions(parent, settings, target).await?;
                parent.delete(None, patience, target).await.map(|()| notice)
            }
            _ => match parent::write(&self.app, parent, content, patience, target).await {
                Ok(_) => Ok(None),
                Err(error) => Err(error.problem),
            },
        }
    }

    /// Whether the object of a change existed before the app. `was_there`: something else created it after the checks.
    fn existed(&self, change: &Change, was_there: bool) -> bool {
        // An object may have the app's label without being in its record: somebody set the label, or an earlier run
        // ended before it could record what it created.
        let is_created_by_others = |live: &LiveObject| !managed::is_created_by(&live.raw, &self.field_manager);
        let existed = change.action == Action::Adopt
            || was_there
            || change.replaces.is_none() && change.live.as_ref().is_some_and(is_created_by_others);
        existed && !change.kapp.joins
    }

    /// The inventory before the first write: the members so far, and everything that the run is going to write. So
    /// whatever stops the run, the next one knows which objects may be the app's.
    pub(super) fn intended(&self, plan: &Plan) -> BTreeSet<AppMember> {
        let mut inventory: BTreeSet<AppMember> = self.parent.iter().flat_map(Parent::inventory).cloned().collect();
        let known: BTreeSet<String> = inventory.iter().map(|member| member.uid.clone()).collect();
        for change in planned_members(plan).filter(|change| change.is_written()) {
            let live = change.live.as_ref().filter(|_| change.replaces.is_none());
            let uid = live.map(|live| live.uid.as_str()).unwrap_or_default();
            if uid.is_empty() || !known.contains(uid) {
                inventory.insert(self.to_be(change, uid));
            }
        }
        inventory
    }

    /// The member that a change creates or adopts. The uid is empty until the object is created.
    fn to_be(&self, change: &Change, uid: &str) -> AppMember {
        // It may be an object of somebody else by then.
        let joins = uid.is_empty() && strategy::joins_created(&change.desired);
        let keep = removal::keep_annotation(&change.desired).map(str::to_owned);
        AppMember { keep, ..AppMember::new(&change.desired.object, uid, joins || self.existed(change, false)) }
    }

    /// The content of the record after the run, without the entry about the run itself.
    pub(super) fn record(&self, plan: &Plan, applied: &Applied, removed: &DeletionResults) -> AppRecordContent {
        let mut kept: BTreeMap<_, &AppMember> =
            self.parent.iter().flat_map(|parent| &parent.members).map(|member| (member.identity(), member)).collect();
        let mut content = AppRecordContent {
            kinds: Default::default(),
            namespaces: Default::default(),
            members: Default::default(),
            last: LastRun::none(),
            last_applied: None,
            may_split: false,
        };
        for (index, change) in plan.changes.iter().enumerate() {
            let object = &change.desired.object;
            let before = kept.remove(&object.identity());
            // The run does not touch it, so it stays a member if it was one.
            if change.desired.bundle.is_some() {
                content.members.extend(before.cloned());
                continue;
            }
            if change.action == Action::Skip
                && strategy::read_strategy(&change.desired) == Some(DeployStrategy::LeaveAlone)
            {
                continue;
            }
            let uid = match applied.results[index] {
                ApplyResult::Applied | ApplyResult::Unchanged => {
                    applied.uids[index].as_deref().or_else(|| Some(&change.live.as_ref()?.uid))
                }
                // Not written: the record keeps what it had.
                _ => None,
            };
            match uid {
                Some(uid) => {
                    let known = before.filter(|member| member.uid == uid);
                    let was_there = applied.were_there.contains(&index);
                    let adopted = known.map_or_else(|| self.existed(change, was_there), |member| member.adopted);
                    let keep = removal::keep_annotation(&change.desired).map(str::to_owned);
                    content.members.insert(AppMember { keep, ..AppMember::new(object, uid, adopted) });
                }
                None => {
                    content.members.extend(before.cloned());
                    // It may have been created all the same.
                    if applied.unknown.contains(&index) && (change.live.is_none() || change.replaces.is_some()) {
                        content.members.insert(self.to_be(change, ""));
                    }
                }
            }
        }
        // They could not be read.
        let known: BTreeSet<_> = content.members.iter().map(AppMember::identity).collect();
        let unresolved = self.parent.iter().flat_map(|parent| &parent.pending);
        let unresolved: Vec<AppMember> =
            unresolved.filter(|member| !known.contains(&member.identity())).cloned().collect();
        content.members.extend(unresolved);
        let out: BTreeSet<_> = plan
            .removals
            .iter()
            .zip(&removed.results)
            .filter(|(_, result)| matches!(result, ApplyResult::Deleted | ApplyResult::Applied))
            .map(|(removal, _)| removal.object.identity())
            .collect();
        let gone: BTreeSet<&AppMember> = self.live.gone.iter().collect();
        let found: BTreeMap<_, &AppObject> =
            self.live.found.iter().map(|found| (found.object.identity(), found)).collect();
        // The manifests may name the object under another group that serves it.
        let moved: BTreeSet<String> = content.members.iter().map(|member| member.uid.clone()).collect();
        for (identity, member) in kept {
            let found = found.get(&identity);
            // Its label or its uid changed, so it is no longer a member.
            let left = found.is_some_and(|found| {
                found.facts.uid != member.uid
                    || found.facts.labels.get(gantry_deploy::app::PART_OF) != Some(&self.app.id())
            });
            if !gone.contains(member) && !left && !out.contains(&identity) && !moved.contains(&member.uid) {
                content.members.insert(member.clone());
            }
        }
        (content.kinds, content.namespaces) = kinds_and_namespaces(&content.members);
        for AppObject { object, .. } in self.labelled_only() {
            content.kinds.insert(group_kind(object.group(), &object.kind));
            content.namespaces.extend(object.namespace.clone());
        }
        // If something was not written, not read or not deleted, the record keeps every kind and namespace that may
        // have members.
        let is_whole = applied.problems.is_empty()
            && applied.unready.is_empty()
            && !applied.interrupted
            && removed.problems.is_empty()
            && removed.stuck.is_empty()
            && self.live.unread.is_empty();
        if !is_whole {
            let (kinds, namespaces) = self.kinds_and_namespaces(plan);
            content.kinds.extend(kinds);
            content.namespaces.extend(namespaces);
        }
        content
    }

    /// The marks by which the next run recognizes members that nobody changed since this one; `None` if some were not
    /// read.
    pub(super) fn last_applied(&self, plan: &Plan, applied: &Applied) -> Option<LastApplied> {
        let changes: Vec<(usize, &Change)> =
            plan.changes.iter().enumerate().filter(|(_, change)| change.desired.bundle.is_none()).collect();
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

    /// The kinds and namespaces of the current members and of the planned ones.
    pub(super) fn kinds_and_namespaces(&self, plan: &Plan) -> (BTreeSet<String>, BTreeSet<String>) {
        let planned: Vec<AppMember> =
            planned_members(plan).map(|change| AppMember::new(&change.desired.object, "", false)).collect();
        let (mut kinds, mut namespaces) = kinds_and_namespaces(&planned);
        if let Some(parent) = &self.parent {
            kinds.extend(parent.kinds.iter().cloned());
            namespaces.extend(parent.namespaces.iter().cloned());
            let (of_members, in_namespaces) = kinds_and_namespaces(&parent.members);
            kinds.extend(of_members);
            namespaces.extend(in_namespaces);
        }
        (kinds, namespaces)
    }
}

/// Deletes the revisions of an app. Without the right to list them, those of earlier users stay, and the answer is a
/// notice.
///
/// # Errors
/// They cannot be listed or deleted, and the record names one.
pub(in crate::run) async fn delete_revisions(
    parent: &Parent,
    settings: &Settings,
    target: &Target,
) -> std::result::Result<Option<Problem>, Problem> {
    let names_one = parent.last.as_ref().is_some_and(|last| last.revision.is_some());
    match Revisions::list(&parent.app, target).await {
        Ok(all) => all.delete_all(target).await.map(|()| None),
        Err(ListError::Forbidden(problem)) if !names_one => {
            Ok(Some(notice_of_unlisted(&parent.app, &problem, &UnlistedRevisions::Deleted, settings)))
        }
        Err(error) => {
            let problem = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
            let message =
                format!("the revisions of the app {} could not be deleted: {}", parent.app.name, problem.message);
            Err(Problem { message, ..problem })
        }
    }
}

/// The record's entry about this run.
pub(in crate::run) async fn describe_this_run(outcome: RunOutcome, target: &Target, host: &Host) -> LastRun {
    let user = match target.user().await {
        Some(Ok(user)) => user,
        _ => String::new(),
    };
    LastRun {
        time: Timestamp::now(),
        outcome,
        user,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        holder: parent::holder(&host.environment),
        reasons: Vec::new(),
        revision: None,
    }
}

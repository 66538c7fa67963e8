//! `apps rename`: gives an app another name, with all of its members.
//!
//! A member is deleted only if its label and an inventory agree. So the record of the new name gets the whole inventory
//! before the first label changes, and the record of the old name keeps it until the last label has changed. Whatever
//! stops the command, each member has the label of one of the two names, and the inventory of that name has its uid.
//! Running the same command again continues.

use std::collections::BTreeSet;

use super::app::describe_this_run;
use super::app::foreseen::listed;
use super::app::revision::{UnlistedRevisions, notice_of_unlisted};
use super::apps::{Consent, app_of, no_app, open};
use super::host::Host;
use super::interrupt::until_interrupted;
use super::write;
use crate::cli::ClusterArgs;
use futures::stream::{self, StreamExt};
use gantry_cluster::again::{Rewritten, write_again};
use gantry_cluster::patience::Patience;
use gantry_cluster::{IN_FLIGHT, ListError, Relabel, Target};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::LiveObject;
use gantry_core::text;
use gantry_deploy::app::members::{self, AppObject};
use gantry_deploy::app::parent::{self, AppRecordContent, LastRun};
use gantry_deploy::app::parts::RESTORE;
use gantry_deploy::app::revisions::Revisions;
use gantry_deploy::app::{App, PART_OF, Parent, RunOutcome};
use gantry_deploy::config::Settings;

pub async fn rename(args: &ClusterArgs, from: &str, to: &str, consent: Consent, host: &mut Host) -> Result<String> {
    let stop = host.stop.clone();
    let (settings, target) = open(args, host).await?;
    let patience = Patience { limit: settings.timeouts.apply, stop: &stop };
    let work = async {
        let (old, new) = (app_of(from, &settings, &target)?, app_of(to, &settings, &target)?);
        if old == new {
            return Err(Error::usage(Problem::new(format!("the app is already named {to}"))));
        }
        let before = Parent::read(&old, &target).await?;
        let after = Parent::read(&new, &target).await?;
        let mut locks = Vec::new();
        for parent in [&before, &after].into_iter().flatten() {
            locks.extend(consent.lock(parent)?);
        }
        let unfit = before.as_ref().and_then(|before| before.undeletable(true));
        if let Some(problem) = unfit.or_else(|| after.as_ref()?.unwritable()) {
            return Err(Error::failed(problem));
        }
        let before = before.ok_or_else(|| no_app(&old))?;
        if before.is_renamed_to(&new) {
            // The other record has the inventory before this one loses it.
            if after.is_none() || before.inventory().next().is_some() {
                let message =
                    format!("{} says that it was renamed to {to}, but {to} does not have its members", old.parent());
                return Err(Error::failed(Problem::new(message).help(RESTORE)));
            }
            before.delete(Some(&new), patience, &target).await.map_err(Error::failed)?;
            return Ok(None);
        }
        // An earlier run of this command created the record with the same inventory.
        let is_of_this = |after: &Parent| {
            let is_begun = after.last.as_ref().is_some_and(|last| last.outcome == RunOutcome::Started);
            after.inventory().eq(before.inventory()) && (is_begun || after.inventory().next().is_some())
        };
        if after.as_ref().is_some_and(|after| !is_of_this(after)) {
            let problem = Problem::new(format!("there is already an app {to} in namespace {}", new.namespace));
            return Err(Error::failed(problem.help(format!(
                "choose another name; to delete a record of {from} without members: gantry apps forget -a APP -n NAMESPACE"
            ))));
        }
        let live = members::find(&before, &target, members::KeptContent::NOTHING).await?;
        Ok(Some((before, after, new, live, locks)))
    };
    let Some((before, after, new, live, locks)) = until_interrupted(&stop, work).await? else {
        return Ok(format!("Renamed the app {from} to {to}: an earlier run had already moved its members\n"));
    };
    if !live.unread.is_empty() {
        return Err(Error::Failed(live.unread));
    }
    host.print_notices(&locks);
    host.print_notices(&notice_outside_inventory(&before, &live.found, to));
    let objects = text::count(before.members.len(), "object");
    if !consent.confirmed {
        write::needs_terminal(host, "go on without confirmation: --yes")?;
        let question = format!("Rename the app {from} with {objects} to {to} in {}?", target.describe());
        write::confirm(host, &question).await?;
    }
    let content = |parent: &Parent, last| AppRecordContent {
        kinds: parent.kinds.clone(),
        namespaces: parent.namespaces.clone(),
        members: parent.inventory().cloned().collect(),
        last,
        // The label of the members changes.
        last_applied: None,
        may_split: false,
    };
    let revision = before.last.as_ref().and_then(|last| last.revision);
    let started = LastRun { revision, ..describe_this_run(RunOutcome::Started, &target, host).await };
    // Lock the old name, so that no deploy of it begins meanwhile.
    let locked = parent::write(&before.app, Some(&before), content(&before, started.clone()), patience, &target);
    let locked = locked.await.map_err(|error| Error::failed(error.problem))?;
    let begun = parent::write(&new, after.as_ref(), content(&before, started), patience, &target).await;
    let begun = begun.map_err(|error| Error::failed(error.problem))?;
    relabel(&live.found, &before, &new, &target, &settings.field_manager).await.map_err(Error::Failed)?;
    let notice = relabel_revisions(&before.app, &new, &settings, &target).await.map_err(Error::failed)?;
    let mut ended = content(&before, before.last.clone().unwrap_or_else(parent::LastRun::none));
    // Keep the outcome of the last deploy, unless the entry was written by an earlier run of this command.
    if ended.last.outcome == RunOutcome::Started {
        ended.last.outcome = RunOutcome::Failed;
    }
    let ended = parent::write(&new, Some(&begun), ended, patience, &target).await;
    ended.map_err(|error| Error::failed(error.problem))?;
    locked.delete(Some(&new), patience, &target).await.map_err(Error::failed)?;
    host.print_notices(&notice);
    Ok(format!("Renamed the app {from} to {to}; {objects}\n"))
}

/// Gives the revisions to the new name. Without the right to list them they stay, and the answer is a notice.
async fn relabel_revisions(
    old: &App,
    new: &App,
    settings: &Settings,
    target: &Target,
) -> std::result::Result<Option<Problem>, Problem> {
    let all = match Revisions::list(old, target).await {
        Ok(all) => all,
        Err(ListError::Forbidden(problem)) => {
            return Ok(Some(notice_of_unlisted(old, &problem, &UnlistedRevisions::Moved(new), settings)));
        }
        Err(error) => {
            return Err(error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring")));
        }
    };
    all.move_to(new, target)
        .await
        .map(|()| None)
        .map_err(|problem| problem.help("run the same command again: both records still exist"))
}

/// A notice about objects with the label of the app that its inventory does not have. They get the new label like
/// members.
fn notice_outside_inventory(before: &Parent, found: &[AppObject], to: &str) -> Option<Problem> {
    let (id, uids) = (before.app.id(), uids(before));
    let is_outside = |found: &&AppObject| {
        let facts = &found.facts;
        facts.labels.get(PART_OF) == Some(&id) && facts.owners.is_empty() && !uids.contains(&*facts.uid)
    };
    let objects: Vec<_> = found.iter().filter(is_outside).map(|found| &*found.object).collect();
    let problem = listed(objects.iter().copied(), |objects, _| {
        let name = &before.app.name;
        format!("the inventory of the app {name} does not have these objects, which carry its label: {objects}")
    })?;
    let lost = match before.has_sum() {
        true => "",
        // With a sum, such a record is a damaged one.
        false => "; the record has no sum, so they may have been in its inventory: if so, restore it from a backup",
    };
    Some(problem.help(format!("they get the label of {to}, and gantry deletes none of them{lost}")))
}

fn uids(parent: &Parent) -> BTreeSet<&str> {
    parent.members.iter().map(|member| &*member.uid).collect()
}

/// Sets the label of the members to the new name.
async fn relabel(
    found: &[AppObject],
    before: &Parent,
    new: &App,
    target: &Target,
    field_manager: &str,
) -> std::result::Result<(), Vec<Problem>> {
    let (old_id, new_id, uids) = (before.app.id(), new.id(), uids(before));
    // A controller updates the copies of a member's label by itself.
    let is_ours = |found: &&AppObject| {
        found.facts.labels.get(PART_OF) == Some(&old_id)
            && (found.facts.owners.is_empty() || uids.contains(&*found.facts.uid))
    };
    let one = async |found: &AppObject| {
        let AppObject { object, resource, facts } = found;
        let remains = |why: String| {
            Problem::new(format!("{object} could not get the label of the app {}: {why}", new.name))
                .help("run the same command again: both records still exist")
        };
        let is_same = |live: &LiveObject| {
            let label = members::read(&live.raw.json(), resource).map(|found| found.facts.labels);
            live.uid == facts.uid && label.is_some_and(|labels| labels.get(PART_OF) == Some(&old_id))
        };
        let relabel = async |live: &LiveObject| {
            target.relabel(&Relabel { resource, object, live, label: PART_OF, value: &new_id, field_manager }).await
        };
        match write_again(target, (resource, object), None, is_same, relabel).await {
            Ok(Rewritten::Written(()) | Rewritten::Left) => Ok(()),
            Ok(Rewritten::Refused(problem)) => Err(remains(problem.message)),
            Ok(Rewritten::KeptChanging) => Err(remains("it kept changing".to_owned())),
            Err(error) => Err(remains(error.to_string())),
        }
    };
    let answers: Vec<_> =
        stream::iter(found.iter().filter(is_ours)).map(one).buffer_unordered(IN_FLIGHT).collect().await;
    let problems: Vec<Problem> = answers.into_iter().filter_map(std::result::Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

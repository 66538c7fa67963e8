//! `--from-kapp`: a deploy that takes over an app of kapp as a whole.
//!
//! Objects of the manifests join the app. Other objects are deleted only if the user asks for that. Until all of that
//! has succeeded, the objects carry both labels and kapp's record stays, so that the same command can continue whatever
//! stops the run. Then kapp's marks are removed, and its record last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::app::foreseen::{AppForecast, listed};
use crate::cli::AppFlags;
use gantry_cluster::Target;
use gantry_core::finding::Action;
use gantry_core::options::{Prune, PruneFlag};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::rbac::Atom;
use gantry_core::resource::ObjectRef;
use gantry_core::text;
use gantry_deploy::app::kapp::{self, KappAppRecord, KappMembers};
use gantry_deploy::app::members::AppObject;
use gantry_deploy::app::{App, Parent, config_maps};
use gantry_deploy::plan::removal::{self, Removal};
use gantry_deploy::plan::{Change, ObjectLookup, Plan};

/// The app of kapp that a run takes over.
pub struct FromKapp {
    app: App,
    name: String,
    /// `None` if it was taken over by an earlier run.
    record: Option<KappAppRecord>,
    members: KappMembers,
    /// The uids of the app's inventory: objects that were taken over already.
    ours: BTreeSet<String>,
    /// Objects that the manifests do not have are deleted.
    deletes: bool,
    keeps_record: bool,
    field_manager: String,
}

/// What happens to an object that carries kapp's label.
#[derive(Debug, PartialEq, Eq)]
enum KappObjectDecision {
    /// It is in the manifests and joins the app.
    Joins,
    Leaves,
    /// It is released and stays in the cluster, for this reason.
    Stays(String),
    /// A controller copied the label from its owner.
    Copy,
}

type PlannedObjectKey<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

/// The objects of a plan, for lookups.
struct PlanLookup<'a> {
    changes: BTreeMap<PlannedObjectKey<'a>, &'a Change>,
    uids: BTreeSet<&'a str>,
}

impl<'a> PlanLookup<'a> {
    fn new(plan: &'a Plan) -> Self {
        let changes = plan.changes.iter().map(|change| (change.desired.object.identity(), change)).collect();
        let uids = plan.changes.iter().filter_map(|change| Some(change.live.as_ref()?.uid.as_str())).collect();
        PlanLookup { changes, uids }
    }

    fn has(&self, AppObject { object, facts, .. }: &AppObject) -> bool {
        self.changes.contains_key(&object.identity()) || self.uids.contains(facts.uid.as_str())
    }
}

/// The lookups for other records with the same label, and for kapp's records of app changes, which are deleted with the
/// app's record. Their names are generated.
fn lists_records(record: &KappAppRecord) -> impl Iterator<Item = ObjectLookup> {
    let object = Arc::new(record.object().clone());
    record.namespaces().into_iter().map(move |namespace| ObjectLookup {
        object: object.clone(),
        resource: config_maps(),
        namespace: Some(namespace.to_owned()),
        name: None,
        verb: "list",
        otherwise: None,
    })
}

/// The requests that remove kapp's marks from an object that the plan does not write.
fn to_release(found: &AppObject) -> impl Iterator<Item = ObjectLookup> {
    let AppObject { object, resource, .. } = found;
    ["get", "patch"].into_iter().map(|verb| ObjectLookup {
        object: object.clone(),
        resource: (**resource).clone(),
        namespace: object.authorized_in().map(str::to_owned),
        name: Some(object.name.clone()),
        verb,
        otherwise: None,
    })
}

impl FromKapp {
    /// Reads the app of kapp, if the flags name one.
    ///
    /// # Errors
    /// It cannot be read, or does not exist and was not taken over earlier.
    pub async fn open(
        flags: &AppFlags,
        app: &App,
        parent: Option<&Parent>,
        target: &Target,
        asks: bool,
        prune: Option<Prune>,
        field_manager: &str,
    ) -> Result<Option<Self>> {
        let Some(name) = &flags.from_kapp else { return Ok(None) };
        let name = if name.is_empty() { app.name.clone() } else { name.clone() };
        let record = KappAppRecord::read(&name, &app.namespace, target).await?;
        if record.is_none() && parent.is_none() {
            let message = format!("there is no app {name} of kapp in namespace {}", app.namespace);
            let help = "kapp ls -A lists the existing ones; -n or --app-namespace names the namespace of its record";
            return Err(Error::failed(Problem::new(message).help(help)));
        }
        let members = match &record {
            Some(record) => record.members(target).await?,
            None => KappMembers::default(),
        };
        let deletes = flags.prune == Some(PruneFlag::Kapp) || asks && prune != Some(Prune::No);
        let ours = parent.iter().flat_map(|parent| &parent.members).map(|member| member.uid.clone()).collect();
        let (keeps_record, field_manager) = (flags.keep_kapp_record, field_manager.to_owned());
        let app = app.clone();
        Ok(Some(FromKapp { app, name, record, members, ours, deletes, keeps_record, field_manager }))
    }

    /// The value of kapp's label.
    pub fn id(&self) -> Option<&str> {
        self.record.as_ref().map(|record| record.id.as_str())
    }

    /// The objects that carry the label.
    pub fn found(&self) -> &[AppObject] {
        &self.members.found
    }

    /// Kinds whose objects could not be read.
    pub fn unread(&self) -> &[Problem] {
        &self.members.unread
    }

    fn decide_object(&self, found: &AppObject, named: &PlanLookup<'_>) -> KappObjectDecision {
        let AppObject { object, facts, .. } = found;
        match () {
            () if named.has(found) => KappObjectDecision::Joins,
            () if !kapp::is_member(object, facts) => KappObjectDecision::Copy,
            () if removal::is_protected(object, &self.app) => {
                KappObjectDecision::Stays("gantry never deletes such a namespace or an app's own record".into())
            }
            () => removal::why_kept(facts).map_or(KappObjectDecision::Leaves, KappObjectDecision::Stays),
        }
    }

    /// Adds the objects that leave kapp's app to the plan. Returns how many are deleted, and how many members the app
    /// has.
    pub fn plan(&self, plan: &mut Plan, foreseen: &mut AppForecast, prune: Option<Prune>) -> (usize, usize) {
        let App { name, namespace } = &self.app;
        if self.record.is_none() {
            let message = format!("there is no app {} of kapp in namespace {namespace} any more", self.name);
            foreseen.notices.push(Problem::new(message).help("leave out --from-kapp"));
            return (0, 0);
        }
        let joining = plan.changes.iter().filter(|change| change.kapp.joins).count();
        if joining > 0 {
            let message = format!(
                "{} of kapp's app {} join the app {name}; until this deploy has succeeded, kapp delete would delete them",
                text::count(joining, "object"),
                self.name,
            );
            foreseen.notices.push(Problem::new(message));
        }
        if !self.members.unread.is_empty() {
            let unread = if prune == Some(Prune::No) { &mut foreseen.notices } else { &mut foreseen.hindrances };
            unread.extend(self.members.unread.iter().cloned().map(|problem| {
                let others = problem.help.as_ref().map(|help| format!("{help}; or ")).unwrap_or_default();
                problem.help(format!("{others}deploy with --prune=no, which leaves kapp's record"))
            }));
        }
        // Nobody may lose objects or labels because of a record that is not theirs.
        foreseen.hindrances.extend(self.members.doubts.iter().cloned());
        plan.lookups.extend(self.record.iter().flat_map(lists_records));
        let decisions: Vec<KappObjectDecision> = {
            let named = PlanLookup::new(plan);
            self.members.found.iter().map(|found| self.decide_object(found, &named)).collect()
        };
        let (mut leaving, mut members) = (Vec::new(), 0);
        for (found, decision) in self.members.found.iter().zip(decisions) {
            members += usize::from(decision != KappObjectDecision::Copy);
            if matches!(decision, KappObjectDecision::Leaves | KappObjectDecision::Stays(_)) {
                foreseen
                    .hindrances
                    .extend(self.record.as_ref().and_then(|record| record.problem_outside_namespaces(found)));
            }
            match decision {
                KappObjectDecision::Leaves if !self.ours.contains(&found.facts.uid) => leaving.push(found),
                KappObjectDecision::Stays(why) => {
                    foreseen.notices.push(Problem::new(format!(
                        "{} leaves kapp's app {} and stays in the cluster: {why}",
                        found.object, self.name
                    )));
                    plan.lookups.extend(to_release(found));
                }
                _ => {}
            }
        }
        if !self.deletes || !self.members.unread.is_empty() {
            if let Some(problem) = listed(leaving.iter().map(|found| &*found.object), |objects, is_one| {
                let stay =
                    if is_one { "is not in the manifests and stays" } else { "are not in the manifests and stay" };
                format!("{objects} of kapp's app {} {stay}, and so does its record", self.name)
            }) {
                foreseen.notices.push(problem.help("delete them: --prune=kapp"));
            }
            return (0, members);
        }
        let number = leaving.len();
        let removals = leaving.into_iter().map(|AppObject { object, resource, facts }| Removal {
            object: object.clone(),
            resource: resource.clone(),
            facts: facts.clone(),
            action: Action::Delete,
            is_done: facts.deleted.is_some(),
        });
        plan.removals.splice(0..0, removals);
        (number, members)
    }

    /// Whether the user may delete kapp's record. Checked before the first write.
    pub async fn forbidden(&self, target: &Target) -> Option<Problem> {
        if self.record.is_none() || self.keeps_record {
            return None;
        }
        let atom = Atom::Resource {
            group: String::new(),
            resource: "configmaps".to_owned(),
            name: None,
            verb: "delete".to_owned(),
        };
        let namespace = &self.app.namespace;
        match target.access_review(Some(namespace), &atom).await {
            Ok(true) => None,
            Ok(false) => {
                let message = format!("not permitted to delete the record of kapp's app {} in {namespace}", self.name);
                let help = "grant the verb delete on configmaps, or leave the record: --keep-kapp-record";
                Some(Problem::new(message).help(help))
            }
            Err(problem) => Some(problem),
        }
    }

    /// Removes kapp's marks, and its record unless the app still has objects. Call it after everything else has
    /// succeeded.
    ///
    /// # Errors
    /// Objects that still have kapp's marks.
    pub async fn finish_takeover(&self, plan: &Plan, target: &Target) -> std::result::Result<(), Vec<Problem>> {
        let Some(record) = &self.record else { return Ok(()) };
        let named = PlanLookup::new(plan);
        let deleted = plan.removals.iter().filter(|removal| removal.action == Action::Delete);
        let deleted: BTreeSet<PlannedObjectKey<'_>> = deleted.map(|removal| removal.object.identity()).collect();
        let is_deleted = |object: &ObjectRef| deleted.contains(&object.identity());
        let (mut released, mut is_whole) = (Vec::new(), self.members.unread.is_empty());
        for found in self.members.found.iter().filter(|found| !is_deleted(&found.object)) {
            match self.decide_object(found, &named) {
                KappObjectDecision::Joins | KappObjectDecision::Stays(_) => released.push(found),
                KappObjectDecision::Leaves => is_whole = false,
                KappObjectDecision::Copy => {}
            }
        }
        // The manifest sets it itself.
        let keeps = |object: &ObjectRef, key: &str| {
            named.changes.get(&object.identity()).is_some_and(|change| {
                let metadata = &change.desired.raw.value()["metadata"];
                ["labels", "annotations"].iter().any(|kind| metadata[kind].get(key).is_some())
            })
        };
        kapp::release(&released, target, &self.field_manager, &keeps).await?;
        if is_whole && !self.keeps_record {
            record.delete(target).await.map_err(|problem| vec![problem])?;
        }
        Ok(())
    }
}

//! Predicts refusals of the server: a namespace that is missing or being deleted, a change of an immutable field, a
//! replaced object that could not be created again, a manifest that is invalid together with what others set in the
//! live object, a field of a built-in kind that the server does not know, an invalid name or label, and a version that
//! the CRD of the same plan stops serving or that does not fit.
//!
//! A deploy that fails at its fortieth object is half done. The live objects show which requests the server may refuse,
//! and only these are sent as a dry run. So most deploys only read which namespaces exist, and the schemas of the kinds
//! that they write.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::conflicts::ChangeConflicts;
use super::published::Published;
use super::refusal_forecaster::RefusalForecaster;
use super::{Action, Change, Plan, beside, invalid, kinds, managed, strategy};
use gantry_cluster::{
    self as cluster, DRY_RUNS_IN_FLIGHT, Described, DryRunError, ObjectToRead, Refusal, Refuser, Target,
    immutable_help, immutable_help_for_olm,
};
use gantry_core::manifest::Spans;
use gantry_core::next_step;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::{Problem, did_you_mean};
use gantry_core::resource::{LiveObject, ObjectRef, Resource, Step};
use gantry_core::text;
use gantry_schema::typed::{self, Duplicates, TypedValueError, UnreadableKind};

/// The maximum number of objects that one problem names.
const OBJECTS_SHOWN: usize = 5;
/// The maximum number of problems that are named for one object.
const FIELDS_SHOWN: usize = 10;

/// What the checks that are enabled report anyway, each with its own severity.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportedRefusals {
    /// What the server refuses in a dry run.
    pub dry_runs: bool,
    /// Invalid CRDs.
    pub crds: bool,
}

impl ReportedRefusals {
    /// What several checks report together.
    pub fn of_all(checks: impl Iterator<Item = ReportedRefusals>) -> Self {
        checks.fold(ReportedRefusals::default(), |all, one| ReportedRefusals {
            dry_runs: all.dry_runs || one.dry_runs,
            crds: all.crds || one.crds,
        })
    }
}

/// What is known in advance about a deploy.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Why it would fail at its first object, or half way.
    pub problems: Vec<Problem>,
    /// Field conflicts that the server reports.
    pub conflicts: Vec<ChangeConflicts>,
    /// What could not be found out.
    pub notices: Vec<Problem>,
}

/// What was read for [`foresee`] while the checks ran.
#[derive(Debug, Default)]
pub struct RefusalsAhead {
    /// Namespaces in which nothing can be created.
    namespaces: Vec<Problem>,
}

/// Reads what [`foresee`] needs whatever the checks find. It is needed only if they do not block the deploy.
pub async fn look_ahead(plan: &Plan, target: &Target, reported: ReportedRefusals) -> RefusalsAhead {
    let Some(server) = target.as_server() else { return RefusalsAhead::default() };
    let asking = RefusalForecaster { plan, target, server, writing: plan.policy.writing() };
    // The target keeps the schemas.
    let needed = asked_for_unreadable(plan, reported).chain(beside::updates(plan).map(|(_, change)| change));
    let schemas = Published::read(needed, target);
    let (namespaces, _) = tokio::join!(asking.namespaces(), schemas);
    RefusalsAhead { namespaces }
}

/// Why a deploy of this plan would fail. Only reads.
pub async fn foresee(plan: &Plan, target: &Target, reported: ReportedRefusals, ahead: RefusalsAhead) -> Refusals {
    let Some(server) = target.as_server() else {
        return Refusals { problems: invalid::problems(plan, false), ..Refusals::default() };
    };
    let asking = RefusalForecaster { plan, target, server, writing: plan.policy.writing() };
    let mut problems = ahead.namespaces;
    let (immutable, replaced, unreadable, beside) = tokio::join!(
        asking.immutable_fields(),
        asking.replacements(reported),
        unreadable(plan, target, reported),
        beside::ask_without_unmentioned(&asking)
    );
    problems.extend(immutable);
    problems.extend(replaced);
    problems.extend(unreadable.problems);
    if !reported.dry_runs {
        problems.extend(invalid::problems(plan, true));
        problems.extend(beside.problems);
    }
    Refusals { problems, conflicts: beside.conflicts, notices: unreadable.notices }
}

/// The objects that [`unreadable`] looks at.
fn asked_for_unreadable(plan: &Plan, reported: ReportedRefusals) -> impl Iterator<Item = &Change> {
    plan.changes.iter().filter(move |change| {
        let is_built_in = kinds::is_built_in(&change.resource.group);
        let is_reported = reported.dry_runs || reported.crds && change.desired.object.is_crd();
        change.is_written() && is_built_in && !is_reported
    })
}

/// Values in objects of built-in kinds that server-side apply cannot parse, such as fields that the server does not
/// know. Custom resources are the subject of a check.
async fn unreadable(plan: &Plan, target: &Target, reported: ReportedRefusals) -> Refusals {
    let written: Vec<&Change> = asked_for_unreadable(plan, reported).collect();
    let published = Published::read(written.iter().copied(), target).await;
    let missing: Vec<String> = published.missing().collect();
    let notice = (!missing.is_empty()).then(|| {
        let message = format!(
            "the server does not return the schemas of {}: whether it knows every field of these objects is found only \
             when they are written",
            missing.join(", ")
        );
        Problem::new(message).help("by default every user can read /openapi/v3; AdmissionDryRun asks in another way")
    });
    let found = in_parallel(&written, |change| {
        let Some(Described { schema, definitions }) = published.schema(&change.resource) else { return Vec::new() };
        let unreadable =
            typed::unreadable_by(schema, definitions, &change.desired.raw.value(), Duplicates::Refused, plan.release());
        let problem = |found: TypedValueError| {
            // The server's text can quote a value, which may be secret.
            let message =
                format!("{}: the API server would refuse it: {}: {}", change.desired.object, found.path, found.words());
            let help = match (found.kind, found.at.last()) {
                (UnreadableKind::Undeclared, Some(Step::Key(name))) => {
                    let known = typed::declared_beside(schema, definitions, &found.at);
                    match did_you_mean(name, known) {
                        Some(near) => format!("did you mean {near:?}?"),
                        None => "this server does not know the field: correct its name, or remove it".to_owned(),
                    }
                }
                _ => next_step::FIX_HERE.to_owned(),
            };
            let at = Spans::parse(&change.desired.origin).locate(&found.steps()).location;
            Problem::new(text::cut_quote(&message).into_owned()).at(at).help(help)
        };
        unreadable.into_iter().take(FIELDS_SHOWN).map(problem).collect::<Vec<_>>()
    });
    let problems = found.into_iter().flatten().collect();
    Refusals { problems, notices: notice.into_iter().collect(), ..Refusals::default() }
}

/// Objects at versions that a CRD of the same plan does not serve any more: they cannot be written after the CRD, which
/// is written first, and the next deploy does not find them.
pub fn no_longer_served(plan: &Plan) -> Vec<Problem> {
    let crds = deployed_crds(plan);
    let mut unserved: BTreeMap<&Resource, Vec<&Change>> = BTreeMap::new();
    for change in plan.changes.iter().filter(is_deployed) {
        unserved.entry(&change.resource).or_default().push(change);
    }
    let problem = |(resource, changes): (&Resource, Vec<&Change>)| {
        let crd = crds.get(format!("{}.{}", resource.plural, resource.group).as_str())?;
        let defined = crd.crd()?.defined().filter(|crd| crd.served(&resource.version).is_none())?;
        let served: Vec<&str> = defined.served_versions().map(|version| &*version.name).collect();
        let at = crd.desired.origin.location();
        let message = format!("the CRD at {at} does not serve {}: {}", resource.version, list_objects(&changes));
        let help = match served.is_empty() {
            true => "the CRD serves no version; without one, its objects cannot be written".to_owned(),
            false => format!(
                "write the object at a served version ({}), or keep serving {}",
                served.join(", "),
                resource.version
            ),
        };
        Some(Problem::new(message).at(changes.first()?.desired.origin.location()).help(help))
    };
    unserved.into_iter().filter_map(problem).collect()
}

/// Objects that do not fit the schema of an older version at which `managedFields` of the live object have an entry,
/// such as an object that moves to a new version of its CRD and sets a field that the old one lacks. The server refuses
/// the apply once the CRD of the same plan is written: see [`managed`].
pub fn unfit_for_managed_fields(plan: &Plan) -> Vec<Problem> {
    let crds = deployed_crds(plan);
    let mut schemas: BTreeMap<(&str, &str), Option<Value>> = BTreeMap::new();
    let mut problems = Vec::new();
    for change in plan.changes.iter().filter(|change| change.is_written()) {
        let Resource { plural, group, version, .. } = &*change.resource;
        let crd = crds.get(format!("{plural}.{group}").as_str()).and_then(|crd| Some((*crd, crd.crd()?)));
        let (Some((crd, sides)), Some(live)) = (crd, change.live_when_applied(&plan.policy.field_manager)) else {
            continue;
        };
        let Some(defined) = sides.defined() else { continue };
        // With a webhook, only the server knows the object at another version.
        let has_webhook =
            [Some(defined), sides.readable_live()].into_iter().flatten().any(|crd| crd.converts_by_webhook());
        if has_webhook || defined.versions.len() < 2 {
            continue;
        }
        let desired = change.desired.raw.value();
        let mut unfit = |at: &str| {
            let version = defined.version(at)?;
            let schema = schemas.entry((&*crd.desired.object.name, &*version.name));
            let schema = schema.or_insert_with(|| version.schema_value().ok()).as_ref()?;
            typed::unreadable(schema, &desired, Duplicates::Refused, plan.release()).into_iter().next()
        };
        let mut entries = managed::entries(&live, group);
        entries.retain(|entry| entry.version != version.as_str());
        // What does not fit its own version is another problem.
        if entries.is_empty() || unfit(version).is_some() {
            continue;
        }
        let Some((entry, problem)) = entries.iter().find_map(|entry| Some((*entry, unfit(entry.version)?))) else {
            continue;
        };
        let object = &change.desired.object;
        let message = format!(
            "{object}: the API server would refuse it: it does not fit {}, at which {} has an entry in managedFields: \
             {problem}",
            entry.version, entry.manager
        );
        let mut versions: Vec<&str> = entries.iter().map(|entry| entry.version).collect();
        versions.sort_unstable();
        versions.dedup();
        let command = managed::move_entries_command(&change.resource, object, &versions, version);
        let help = format!("deploy the CRD first, then move the entries to {version} and deploy the rest:\n{command}");
        problems.push(Problem::new(message).at(change.desired.origin.location()).help(help));
    }
    problems
}

/// Values that the server refused in the dry runs that a diff needs. What the deploy itself may change before it writes
/// the object is no reason: the schema of a CRD, permissions, webhooks, quotas, and ports that another Service still
/// has.
pub fn known(plan: &Plan) -> Vec<Problem> {
    let crds = deployed_crds(plan);
    let mut problems = Vec::new();
    for change in plan.changes.iter().filter(|change| change.is_written()) {
        let Some(Err(DryRunError::Refused(refusal))) = change.answer.get() else { continue };
        let Resource { plural, group, .. } = &*change.resource;
        let crd = crds.get(format!("{plural}.{group}").as_str());
        let is_immutable = refusal.causes.iter().any(|cause| cluster::is_immutable(&cause.message));
        if refusal.by != Refuser::Validation
            || crd.is_some_and(|crd| crd.is_written())
            || refusal.problem.message.contains("already allocated")
            // Reported by `foresee`.
            || is_immutable && is_suspect(change)
        {
            continue;
        }
        let problem = Problem::new(format!("{}: {}", change.desired.object, refusal.problem.message));
        let help = refusal.problem.help.clone();
        let help = help.unwrap_or_else(|| next_step::FIX_MANIFEST.to_owned());
        problems.push(problem.at(change.desired.origin.location()).help(help));
    }
    problems
}

/// The CRDs that a policy or a webhook denied in a dry run.
pub fn denied_crds(plan: &Plan) -> Vec<Problem> {
    let crds = plan.changes.iter().filter(|change| change.is_written() && change.desired.object.is_crd());
    let denied = crds.filter_map(|change| match change.answer.get() {
        Some(Err(DryRunError::Refused(refusal))) if refusal.by == Refuser::Policy => Some((change, refusal)),
        _ => None,
    });
    let problem = |(change, refusal): (&Change, &Refusal)| {
        Problem::new(format!("{}: {}", change.desired.object, refusal.problem.message))
            .at(change.desired.origin.location())
            .help("change the CRD, or ask who administers the policy or webhook")
    };
    denied.map(problem).collect()
}

fn is_deployed(change: &&Change) -> bool {
    change.is_written() || change.action == Action::Unchanged
}

/// The CRDs of the plan by name, without those that it leaves alone.
fn deployed_crds(plan: &Plan) -> BTreeMap<&str, &Change> {
    let crds = plan.changes.iter().filter(|change| change.desired.object.is_crd()).filter(is_deployed);
    crds.map(|crd| (crd.desired.object.name.as_str(), crd)).collect()
}

impl RefusalForecaster<'_> {
    /// Namespaces in which nothing can be created.
    async fn namespaces(&self) -> Vec<Problem> {
        let changes = &self.plan.changes;
        let mut created: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        for change in changes.iter().filter(|change| change.is_written() && change.action == Action::Create) {
            if let Some(namespace) = change.desired.object.namespace.as_deref() {
                created.entry(namespace).or_default().push(change);
            }
        }
        let of_plan: BTreeMap<&str, Option<&LiveObject>> = changes
            .iter()
            .filter(|change| change.desired.object.is_namespace())
            // A deploy that waits waits for a namespace that something else creates.
            .filter(|change| change.action != Action::Skip || self.plan.policy.waits && strategy::is_missing(change))
            .map(|change| (change.desired.object.name.as_str(), change.live.as_ref()))
            .collect();
        let others: Vec<&str> = created.keys().copied().filter(|name| !of_plan.contains_key(name)).collect();
        let wanted: Vec<ObjectToRead> = others.iter().map(|name| namespace(name)).collect();
        // Without the right to read namespaces, the server decides when the objects are written.
        let read = self.target.read_each(&wanted, &|_, _| ()).await.unwrap_or_default();
        let missing: BTreeSet<&str> =
            others.iter().zip(&read).filter(|(_, read)| matches!(read, Ok(None))).map(|(name, _)| *name).collect();
        let live = others.iter().zip(&read).filter_map(|(name, read)| Some((*name, read.as_ref().ok()?.as_ref()?)));
        let live = live.chain(of_plan.iter().filter_map(|(name, live)| Some((*name, (*live)?))));
        let leaving: BTreeSet<&str> = live.filter(|(_, live)| is_leaving(live)).map(|(name, _)| name).collect();

        let mut problems = Vec::new();
        for (name, changes) in &created {
            let (message, help) = if missing.contains(name) {
                (format!("there is no namespace {name:?} for"), next_step::create_namespace(name))
            } else if leaving.contains(name) {
                let help = "wait until it is deleted, then run the same command again";
                (format!("namespace {name:?} is being deleted, and nothing can be created in it:"), help.to_owned())
            } else {
                continue;
            };
            let Some(first) = changes.first() else { continue };
            // An admission plugin may create namespaces automatically.
            if self.dry_run(first).await.is_ok() {
                continue;
            }
            let problem = Problem::new(format!("{message} {}", list_objects(changes)));
            problems.push(problem.at(first.desired.origin.location()).help(help));
        }
        problems
    }

    /// Updates that change immutable fields.
    async fn immutable_fields(&self) -> Vec<Problem> {
        let suspects: Vec<&Change> = self.plan.changes.iter().filter(|change| is_suspect(change)).collect();
        let asked = suspects.into_iter().map(|change| async move { (change, self.dry_run(change).await) });
        let mut answers = stream::iter(asked).buffered(DRY_RUNS_IN_FLIGHT);
        let mut problems = Vec::new();
        while let Some((change, answer)) = answers.next().await {
            let Err(DryRunError::Refused(refusal)) = answer else { continue };
            if refusal.causes.iter().any(|cause| cluster::is_immutable(&cause.message)) {
                let object = &change.desired.object;
                let live = change.live.as_ref().map(|live| live.raw.value());
                let (of_olm, help) = match change.desired.bundle {
                    Some(_) => (" (which OLM would write)", immutable_help_for_olm(object)),
                    None => ("", immutable_help(object, live.as_ref())),
                };
                let problem = Problem::new(format!("{object}{of_olm}: {}", refusal.problem.message));
                problems.push(problem.at(change.desired.origin.location()).help(help));
            }
        }
        problems
    }

    /// Objects that would be deleted, and not created again because the server refuses the new ones.
    async fn replacements(&self, reported: ReportedRefusals) -> Vec<Problem> {
        let crds = deployed_crds(self.plan);
        // An object whose CRD changes is judged by the old schema.
        let has_new_schema = |change: &Change| {
            let Resource { plural, group, .. } = &*change.resource;
            crds.get(format!("{plural}.{group}").as_str()).is_some_and(|crd| crd.is_written())
        };
        let replaced = self.plan.changes.iter().filter(|change| change.action == Action::Replace);
        let replaced: Vec<&Change> =
            replaced.filter(|change| !reported.dry_runs && change.is_written() && !has_new_schema(change)).collect();
        let asked = replaced.into_iter().map(|change| async move {
            let pin = change.pin();
            let request = change.request(&pin, self.writing.field_manager, self.writing.force_conflicts);
            (change, self.server.dry_run_create(&request).await)
        });
        let mut answers = stream::iter(asked).buffered(DRY_RUNS_IN_FLIGHT);
        let mut problems = Vec::new();
        while let Some((change, answer)) = answers.next().await {
            let Err(DryRunError::Refused(refusal)) = answer else { continue };
            if !matches!(refusal.by, Refuser::Validation | Refuser::Admission | Refuser::Policy) {
                continue;
            }
            let object = &change.desired.object;
            let message =
                format!("{object} would be deleted, and could not be created again: {}", refusal.problem.message);
            let help = refusal.problem.help.clone();
            let help = help.unwrap_or_else(|| next_step::FIX_MANIFEST.to_owned());
            problems.push(Problem::new(message).at(change.desired.origin.location()).help(help));
        }
        problems
    }
}

fn namespace(name: &str) -> ObjectToRead {
    let (kind, plural) = ("Namespace".into(), "namespaces".into());
    ObjectToRead {
        resource: Resource { group: String::new(), version: "v1".into(), kind, plural, namespaced: false }.into(),
        object: ObjectRef { api_version: "v1".into(), kind: "Namespace".into(), namespace: None, name: name.into() }
            .into(),
    }
}

fn is_leaving(namespace: &LiveObject) -> bool {
    !namespace.raw.value()["metadata"]["deletionTimestamp"].is_null()
}

fn list_objects(changes: &[&Change]) -> String {
    let mut shown: Vec<String> =
        changes.iter().take(OBJECTS_SHOWN).map(|change| change.desired.object.to_string()).collect();
    if changes.len() > OBJECTS_SHOWN {
        shown.push(text::count(changes.len() - OBJECTS_SHOWN, "more object"));
    }
    shown.join(", ")
}

/// Whether an update may change an immutable field of a built-in kind.
///
/// Source: the update validations of `k8s.io/kubernetes/pkg/apis/*/validation`
fn is_suspect(change: &Change) -> bool {
    // OLM fails at an immutable field as a deploy does.
    let is_judged = change.is_written() || change.desired.bundle.is_some();
    let Some(live) = change.live.as_ref().filter(|_| is_judged && change.action.changes_live()) else {
        return false;
    };
    let object = &change.desired.object;
    let pointers: &[&str] = match (object.group(), object.kind.as_str()) {
        ("apps", "StatefulSet")
        | ("batch", "Job")
        | ("", "PersistentVolume" | "PersistentVolumeClaim" | "Pod")
        | ("networking.k8s.io", "IngressClass")
        | ("node.k8s.io", "RuntimeClass")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("storage.k8s.io", "CSIDriver" | "StorageClass") => return true,
        ("", "ConfigMap" | "Secret") => &["/type"],
        ("", "Service") => &["/spec/clusterIP", "/spec/clusterIPs"],
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet") => &["/spec/selector"],
        ("discovery.k8s.io", "EndpointSlice") => &["/addressType"],
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => &["/roleRef"],
        _ => return false,
    };
    let (desired, live) = (change.desired.raw.value(), live.raw.value());
    let differs = |pointer: &&str| desired.pointer(pointer).is_some_and(|value| Some(value) != live.pointer(pointer));
    live["immutable"] == Value::Bool(true) || pointers.iter().any(differs)
}

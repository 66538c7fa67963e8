//! The state of objects after a deploy of the plan: from the server's dry run of the request that writes, or else
//! computed from the manifest and the live object's managedFields.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::published::Published;
use super::{Action, Change, Plan, kinds};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, Described, DryRunError, FormerTools, Refuser, Target};
use gantry_core::merge::{self, MergeSchema};
use gantry_core::resource::{RawObject, Resource};
use gantry_core::secret;

/// The predicted state of one object.
pub struct Predicted<'s> {
    /// Index into `plan.changes`.
    pub change: usize,
    /// `None` for an object that is created.
    pub live: Option<Value>,
    /// The object after the deploy.
    pub next: Value,
    /// Why it was computed instead of taken from the server's dry run.
    pub approximate: Option<String>,
    /// How the kind's lists and maps are merged.
    pub schema: MergeSchema<'s, Value>,
}

/// How a deploy would write the objects.
#[derive(Debug, Clone, Copy)]
pub struct Writing<'a> {
    /// The name that owns the written fields.
    pub field_manager: &'a str,
    /// Whether fields of other managers are taken over instead of refused.
    pub force_conflicts: bool,
}

/// Predicts the result of each update, and of each creation with `created`. Only reads; asks the server about each
/// object once in a run, however many callers need the answer.
pub async fn predict(
    plan: &Plan,
    target: &Target,
    writing: Writing<'_>,
    created: bool,
    each: &mut (dyn FnMut(Predicted<'_>) + Send),
) {
    let is_wanted = |change: &Change| {
        change.action.changes_live() || created && matches!(change.action, Action::Create | Action::Replace)
    };
    let wanted: Vec<usize> = (0..plan.changes.len()).filter(|index| is_wanted(&plan.changes[*index])).collect();
    let mut schemas = MergeSchemas::from_plan(plan);
    let mut local: Vec<(usize, String)> = Vec::new();
    match target.as_server() {
        None => {
            let why = format!("the target is a {}", target.noun());
            local.extend(wanted.into_iter().map(|index| (index, why.clone())));
        }
        Some(server) => {
            let lost = AtomicBool::new(false);
            let asked = wanted.into_iter().map(|index| {
                let (change, lost) = (&plan.changes[index], &lost);
                async move { (index, dry_run(change, server, writing, lost).await) }
            });
            let mut answers = stream::iter(asked).buffered(DRY_RUNS_IN_FLIGHT);
            while let Some((index, answer)) = answers.next().await {
                let change = &plan.changes[index];
                match answer {
                    Ok(next) => each(Predicted {
                        change: index,
                        live: live(change),
                        next: next.value(),
                        approximate: schemas
                            .is_changing(&change.resource)
                            .then(|| "the CRD of the object changes in the same deploy".to_owned()),
                        schema: schemas.schema(&change.resource),
                    }),
                    Err(reason) => local.push((index, reason)),
                }
            }
        }
    }
    schemas.request_schemas(local.iter().map(|(index, _)| &plan.changes[*index]), target).await;
    for (index, reason) in local {
        let change = &plan.changes[index];
        let schema = schemas.schema(&change.resource);
        let live = live(change);
        let next = merged(change, live.as_ref(), schema, writing.field_manager);
        each(Predicted { change: index, live, next, approximate: Some(reason), schema });
    }
}

/// The object of a change after the deploy, without asking the server: what the manifest does not mention and other
/// field managers own stays as it is.
pub fn predict_object(plan: &Plan, change: &Change) -> Value {
    let live = live(change);
    let schema = custom_schema(plan, change).map(|schema| schema.value());
    let schema = schema.as_ref().map_or(MergeSchema::Deduced, |schema| merge::of_kind(schema, None));
    match change.action {
        Action::Skip => live.unwrap_or_else(|| change.desired_value()),
        _ => merged(change, live.as_ref(), schema, &plan.policy.field_manager),
    }
}

/// The schema of a custom resource after the deploy, if the plan knows it.
fn custom_schema(plan: &Plan, change: &Change) -> Option<RawObject> {
    let Resource { plural, group, .. } = &*change.resource;
    let name = format!("{plural}.{group}");
    let crd = plan.changes.iter().find(|crd| crd.desired.object.is_crd() && crd.desired.object.name == name);
    let of_plan = crd.and_then(Change::crd).and_then(|sides| kinds::schema_of(sides.defined()?, &change.resource));
    of_plan.map(RawObject::new).or_else(|| plan.schemas.get(&change.resource).cloned())
}

fn live(change: &Change) -> Option<Value> {
    change.live.as_ref().map(|live| live.raw.value())
}

/// The server's answer, or why there is none.
async fn dry_run(
    change: &Change,
    server: &KubeTarget,
    writing: Writing<'_>,
    lost: &AtomicBool,
) -> Result<RawObject, String> {
    let answer;
    let asked = match change.answer.get() {
        Some(answer) => answer,
        // The other requests would wait just as long.
        None if lost.load(Ordering::Relaxed) => return Err("the server does not answer".to_owned()),
        None => {
            let pin = change.pin();
            let request = change.request(&pin, writing.field_manager, writing.force_conflicts);
            answer = server.dry_run(&request).await;
            // For `refusals::known`. To keep an object as well would only take memory.
            if matches!(answer, Err(DryRunError::Refused(_))) {
                change.answer.keep(&answer);
            }
            &answer
        }
    };
    match asked {
        Ok(next) => Ok(next.clone()),
        Err(error @ (DryRunError::Changed | DryRunError::Conflict(_))) => Err(error.to_string()),
        Err(DryRunError::Refused(refusal)) => Err(match refusal.by {
            Refuser::Authorization => refusal.problem.message.clone(),
            Refuser::Lookup => format!("the server cannot say: {}", refusal.problem.message),
            _ => format!("the server would refuse it: {}", refusal.problem.message),
        }),
        Err(DryRunError::Unanswered { problem, everything }) => {
            if *everything {
                lost.store(true, Ordering::Relaxed);
            }
            Err(problem.message.clone())
        }
    }
}

/// The result of server-side apply on the live object, without defaults and admission.
fn merged(change: &Change, live: Option<&Value>, schema: MergeSchema<'_, Value>, field_manager: &str) -> Value {
    let mut intent = merge::intent(change.desired_value(), true);
    let is_secret = change.desired.object.is_secret();
    if is_secret {
        secret::fold_string_data(&mut intent);
    }
    match live {
        Some(live) => match change.former_tools() {
            helm @ FormerTools::AsHelm => {
                let owners = helm.owners(live, change.manager(field_manager), &change.desired.object.api_version);
                merge::merge_owned(live, &intent, schema, owners)
            }
            _ => merge::merge_by(live, &intent, schema, change.manager(field_manager)),
        },
        None => intent,
    }
}

/// How the kinds of a plan are merged, if that is known.
struct MergeSchemas<'p> {
    /// The CRDs of the plan, by name.
    crds: BTreeMap<&'p str, &'p Change>,
    /// For custom kinds, from their CRD after the deploy.
    custom: BTreeMap<&'p Resource, Value>,
    published: Published<'p>,
}

impl<'p> MergeSchemas<'p> {
    fn from_plan(plan: &'p Plan) -> Self {
        let crds = plan.changes.iter().filter(|change| change.desired.object.is_crd());
        let crds: BTreeMap<_, _> = crds.map(|crd| (crd.desired.object.name.as_str(), crd)).collect();
        let mut custom = BTreeMap::new();
        for change in plan.changes.iter().filter(|change| change.action.changes_live()) {
            let resource = &*change.resource;
            if kinds::is_built_in(&resource.group) || custom.contains_key(resource) {
                continue;
            }
            let of_plan = crd_of(&crds, resource).and_then(Change::crd);
            let of_plan = of_plan.and_then(|sides| kinds::schema_of(sides.defined()?, resource)).map(RawObject::new);
            let schema = of_plan.or_else(|| plan.schemas.get(resource).cloned());
            custom.extend(schema.map(|schema| (resource, schema.value())));
        }
        MergeSchemas { crds, custom, published: Published::default() }
    }

    /// Requests the schemas of built-in kinds, which determine how the server merges them.
    async fn request_schemas(&mut self, changes: impl Iterator<Item = &'p Change>, target: &Target) {
        let is_merged = |change: &&Change| {
            change.live.is_some() && !change.desired.object.is_crd() && kinds::is_built_in(&change.resource.group)
        };
        self.published = Published::read(changes.filter(is_merged), target).await;
    }

    fn schema<'a>(&'a self, resource: &Resource) -> MergeSchema<'a, Value> {
        if let Some(schema) = self.custom.get(resource) {
            return merge::of_kind(schema, None);
        }
        let of_kind = |found: Described<'a>| merge::of_kind(found.schema, Some(found.definitions));
        self.published.schema(resource).map_or(MergeSchema::Deduced, of_kind)
    }

    /// Whether the deploy writes the kind's CRD first.
    fn is_changing(&self, resource: &Resource) -> bool {
        crd_of(&self.crds, resource).is_some_and(|crd| !crd.action.leaves_alone())
    }
}

fn crd_of<'p>(crds: &BTreeMap<&str, &'p Change>, resource: &Resource) -> Option<&'p Change> {
    crds.get(format!("{}.{}", resource.plural, resource.group).as_str()).copied()
}

//! Predicts refusals of updates whose manifest is valid by itself, but not together with what other field managers set
//! in the live object: a port of the same name, another source of the same volume.

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::conflicts::ChangeConflicts;
use super::published::Published;
use super::refusal_forecaster::RefusalForecaster;
use super::{Change, Plan, kinds};
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, Described, DryRunError, RefusalCause, Refuser, deploy_tool, is_immutable};
use gantry_core::managed_fields::{ListItemKey, ManagerEntry, MergePathStep};
use gantry_core::merge::{self, Beside, Owners};
use gantry_core::next_step;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::text;

/// The maximum number of parts of an object that a problem names.
const PARTS_SHOWN: usize = 5;

/// What the server answers about these updates.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub problems: Vec<Problem>,
    pub conflicts: Vec<ChangeConflicts>,
}

/// The updates that [`ask_without_unmentioned`] looks at.
pub(super) fn updates(plan: &Plan) -> impl Iterator<Item = (usize, &Change)> {
    plan.changes.iter().enumerate().filter(|(_, change)| {
        change.is_written()
            && change.action.changes_live()
            && change.live.is_some()
            && kinds::is_built_in(&change.resource.group)
            && !change.desired.object.is_crd()
    })
}

/// Asks the server about updates that leave something beside the manifest that may be refused with it.
pub(super) async fn ask_without_unmentioned(asking: &RefusalForecaster<'_>) -> Answers {
    let changes = &asking.plan.changes;
    let updates: Vec<usize> = updates(asking.plan).map(|(index, _)| index).collect();
    let published = Published::read(updates.iter().map(|index| &changes[*index]), asking.target).await;
    let manager = asking.writing.field_manager;
    let found = in_parallel(&updates, |index| unmentioned_values(&changes[*index], &published, manager));
    let suspects = updates.into_iter().zip(found).filter_map(|(index, beside)| Some((index, beside?)));
    let asked = suspects.map(|(index, beside)| async move { (index, beside, asking.dry_run(&changes[index]).await) });
    let mut answers = stream::iter(asked.collect::<Vec<_>>()).buffered(DRY_RUNS_IN_FLIGHT);
    let mut all = Answers::default();
    while let Some((change, beside, answer)) = answers.next().await {
        match answer {
            Err(DryRunError::Conflict(conflicts)) => all.conflicts.push(ChangeConflicts { change, conflicts }),
            Err(DryRunError::Refused(refusal)) if refusal.by == Refuser::Validation => {
                // The causes of immutable fields are reported with what to do about them. A port of another Service may
                // be free when this one is written.
                let is_for_others = refusal.causes.iter().any(|cause| is_immutable(&cause.message))
                    || refusal.problem.message.contains("already allocated");
                if !is_for_others {
                    let refused = RefusedChange { change: &changes[change], beside: &beside, causes: &refusal.causes };
                    all.problems.extend(refused.problem(&refusal.problem, manager));
                }
            }
            _ => {}
        }
    }
    all
}

/// What an update leaves in the object beside its manifest, if the server may refuse both together.
fn unmentioned_values(change: &Change, published: &Published<'_>, field_manager: &str) -> Option<Beside> {
    let Described { schema, definitions } = published.schema(&change.resource)?;
    let schema = merge::of_kind(schema, Some(definitions));
    let live = change.live.as_ref()?.raw.value();
    let intent = merge::intent(change.desired_value(), true);
    let after = merge::merge_by(&live, &intent, schema, field_manager);
    Some(Beside::new(&intent, &live, &after, schema)).filter(Beside::is_any)
}

/// An update that the server refuses.
struct RefusedChange<'a> {
    change: &'a Change,
    beside: &'a Beside,
    causes: &'a [RefusalCause],
}

impl RefusedChange<'_> {
    fn problem(&self, refusal: &Problem, field_manager: &str) -> Option<Problem> {
        let object = &self.change.desired.object;
        let live = self.change.live.as_ref()?.raw.value();
        let owners = Owners::of_object(&live, field_manager, &object.api_version);
        let all: Vec<&[MergePathStep]> =
            self.beside.items.iter().chain(&self.beside.fields).map(Vec::as_slice).collect();
        let named: Vec<&[MergePathStep]> =
            all.iter().copied().filter(|path| self.causes.iter().any(|cause| is_of(cause, path))).collect();
        // The dry run does not know that the fields of deploy tools are taken over before the object is written.
        if named.is_empty() && !owners.tools.is_empty() {
            return None;
        }
        let shown = if named.is_empty() { all } else { named };
        let problem = Problem::new(format!("{object}: {}", refusal.message)).at(self.change.desired.origin.location());
        if shown.is_empty() {
            return Some(problem.help(next_step::FIX_MANIFEST));
        }
        let parts: Vec<String> = shown.iter().take(PARTS_SHOWN).map(|path| named_with_manager(path, &live)).collect();
        let mut parts = parts.join(", ");
        if shown.len() > PARTS_SHOWN {
            parts.push_str(&format!(", … and {} more", shown.len() - PARTS_SHOWN));
        }
        let (stays, it) = if shown.len() == 1 { ("stays", "it") } else { ("stay", "them") };
        let mut help = format!(
            "the live object also has {parts}, which {stays}, because the manifest does not set {it}: change the manifest \
             so that both can be together, or remove {it}"
        );
        if let Some(command) = self.command(&shown, &live) {
            help.push_str(&format!(" and deploy again:\n{command}"));
        }
        Some(problem.help(help))
    }

    /// The command that removes these parts from the live object.
    fn command(&self, paths: &[&[MergePathStep]], live: &Value) -> Option<String> {
        let patch = removal(paths, live, &self.change.desired.raw.value())?;
        let adds = patch.iter().any(|step| step["op"] != "test" && step["op"] != "remove");
        // The next deploy takes over what this manager set.
        let manager = if adds { " --field-manager=kubectl-replace" } else { "" };
        let patch = Value::from(patch).to_string();
        let object = self.change.desired.object.to_write();
        // The server adds defaults to these, so the value of the patch would be in conflict with that of the manifest.
        let has_defaults = adds && ["\"fieldRef\":", "\"resourceFieldRef\":"].iter().any(|key| patch.contains(key));
        (!patch.contains('\'') && !has_defaults)
            .then(|| format!("kubectl patch {object}{manager} --type=json -p '{patch}'"))
    }
}

/// Whether the field that the server names is in the same list or map as a part of the object: without the places in
/// lists, `spec.template.spec.containers.ports.name` is in the list of `.spec.template.spec.containers.ports`.
fn is_of(cause: &RefusalCause, path: &[MergePathStep]) -> bool {
    let mut names = cause.field.split('.').map(|part| part.split('[').next().unwrap_or_default());
    let parent = match path {
        [parent @ .., MergePathStep::Field(_)] => parent,
        _ => path,
    };
    let fields = parent.iter().filter_map(|step| match step {
        MergePathStep::Field(name) => Some(name.as_str()),
        MergePathStep::Item(_) => None,
    });
    !cause.field.is_empty() && fields.into_iter().all(|field| names.next() == Some(field))
}

/// `.spec.ports[port=80,protocol="TCP"] of field manager "x"`
fn named_with_manager(path: &[MergePathStep], live: &Value) -> String {
    let field = merge::path_text(path);
    let is_owner = |entry: &ManagerEntry<'_>| entry.fields().at(path).is_some_and(|below| !below.is_empty());
    let Some(entry) = ManagerEntry::all(live).find(is_owner) else {
        return format!("{field}, which no field manager owns");
    };
    let manager = entry.manager();
    let tool = deploy_tool(manager, entry.operation()).map(|tool| format!(" ({tool})")).unwrap_or_default();
    format!("{field} of field manager {:?}{tool}", text::sanitize(manager))
}

/// The JSON patch that removes these parts from the live object. It does nothing if a part is no longer at its place.
///
/// What the manifest sets beside a field is written with it: without another source, a volume would get its default.
fn removal(paths: &[&[MergePathStep]], live: &Value, desired: &Value) -> Option<Vec<Value>> {
    let mut places = paths.iter().map(|path| Some((pointer(path, live)?, *path))).collect::<Option<Vec<_>>>()?;
    // From the end, so that no removal moves what is removed next.
    places.sort_by(|(a, _), (b, _)| b.0.cmp(&a.0));
    // A Service must have a port, so its last one is replaced.
    let ports = |service: &Value| service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let has_no_port_left = live["kind"] == "Service" && ports(live).len() == paths.len();
    let mut patch = Vec::new();
    for ((place, test), path) in &places {
        for (path, value) in test {
            patch.push(json!({"op": "test", "path": path, "value": value}));
        }
        let at = json_pointer(place);
        if let ([parent @ .., MergePathStep::Field(_)], Some(parent_at)) = (path, place.split_last()) {
            let (live, desired) = (value_at(parent, live)?, value_at(parent, desired)?);
            let changed = desired.as_object()?.iter().filter(|(key, value)| live.get(key.as_str()) != Some(value));
            patch.extend(changed.map(|(key, value)| {
                json!({"op": "add", "path": format!("{}/{}", json_pointer(parent_at.1), text::json_pointer_step(key)), "value": value})
            }));
        }
        patch.push(match ports(desired).first().filter(|_| has_no_port_left && at == "/spec/ports/0") {
            Some(port) => json!({"op": "replace", "path": at, "value": port}),
            None => json!({"op": "remove", "path": at}),
        });
    }
    Some(patch)
}

fn value_at<'v>(path: &[MergePathStep], object: &'v Value) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, step| match step {
        MergePathStep::Field(name) => value.get(name),
        MergePathStep::Item(item) => value.as_array()?.iter().find(|known| item.identifies(*known)),
    })
}

/// A step of a JSON pointer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum PointerStep {
    Key(String),
    Index(usize),
}

/// Pointers to the keys of items of lists, with their values.
type ItemKeys = Vec<(String, Value)>;

/// Where a part is in the live object, and the keys of the items of lists on the way to it.
fn pointer(path: &[MergePathStep], live: &Value) -> Option<(Vec<PointerStep>, ItemKeys)> {
    let (mut value, mut place, mut test) = (live, Vec::new(), Vec::new());
    for step in path {
        match step {
            MergePathStep::Field(name) => {
                value = value.get(name)?;
                place.push(PointerStep::Key(name.clone()));
            }
            MergePathStep::Item(item) => {
                let at = value.as_array()?.iter().position(|known| item.identifies(known))?;
                value = &value[at];
                place.push(PointerStep::Index(at));
                if let ListItemKey::Keys(keys) = item {
                    let parent = json_pointer(&place);
                    test.extend(
                        keys.keys()
                            .map(|key| (format!("{parent}/{}", text::json_pointer_step(key)), value[key].clone())),
                    );
                }
            }
        }
    }
    Some((place, test))
}

fn json_pointer(place: &[PointerStep]) -> String {
    let steps = place.iter().map(|step| match step {
        PointerStep::Key(name) => format!("/{}", text::json_pointer_step(name)),
        PointerStep::Index(at) => format!("/{at}"),
    });
    steps.collect()
}

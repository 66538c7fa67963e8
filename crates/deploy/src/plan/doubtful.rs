//! Doubtful updates: the manifest and the live object differ only in what the server may have changed.
//!
//! The server drops empty values (`sessionAffinityConfig: {}`), fills in empty ones (`scaleUp: {}`) and normalises
//! others, and admission may do the same to any object. Only the server knows whether such a manifest changes anything,
//! so it is asked with a dry run of the request, for these objects only. Writing an object that does not change would
//! be harmless, but users would stop trusting a plan that always shows "1 update".

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::{Action, Change};
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, Target};
use gantry_core::resource::RawObject;

/// Asks the server about the doubtful updates, given by their index, and marks those that change nothing as unchanged.
/// Without a clear answer, an update stays one.
pub async fn mark_unchanged(
    changes: &mut [Change],
    doubtful: &[usize],
    target: &Target,
    field_manager: &str,
    keeps_answers: bool,
) {
    let Some(server) = target.as_server() else { return };
    // OLM writes as another field manager.
    let doubtful = doubtful.iter().filter(|index| changes[**index].is_written());
    let asked = doubtful.map(|index| {
        let change = &changes[*index];
        async move {
            // Without force: fields that do not change cause no conflict.
            let answer = server.dry_run(&change.request(&change.pin(), field_manager, false)).await;
            let live = change.live.as_ref()?;
            let is_same = answer.as_ref().is_ok_and(|answer| is_same(answer, &live.raw));
            // Without a conflict, force makes no difference.
            if keeps_answers && answer.is_ok() && !is_same {
                change.answer.keep(&answer);
            }
            is_same.then_some(*index)
        }
    });
    let unchanged: Vec<usize> =
        stream::iter(asked).buffered(DRY_RUNS_IN_FLIGHT).filter_map(std::future::ready).collect().await;
    for index in unchanged {
        changes[index].action = Action::Unchanged;
    }
}

/// Whether a write would leave the object as it is, including managedFields. The server increments the generation of
/// some objects for values that it then drops.
fn is_same(answer: &RawObject, live: &RawObject) -> bool {
    let [answer, live] = [answer, live].map(|object| {
        let mut object = without_metadata(object, &["generation"]);
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.shift_remove("time");
        }
        object
    });
    answer == live
}

/// The same, whoever owns the fields then.
pub(super) fn is_same_content(answer: &RawObject, live: &RawObject) -> bool {
    let [answer, live] = [answer, live].map(|object| without_metadata(object, &["generation", "managedFields"]));
    answer == live
}

fn without_metadata(object: &RawObject, keys: &[&str]) -> Value {
    let mut object = object.value();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !keys.contains(&key.as_str()));
    }
    object
}

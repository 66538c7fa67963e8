//! Objects of the manifests that are being deleted.
//!
//! The server accepts writes to them, but the object is gone as soon as its last finalizer is removed.

use serde_json::Value;

use super::{Action, Change, Plan};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::text::{cut, sanitize};

/// The most objects with a notice of their own.
const NAMED: usize = 20;

/// A notice about each object that is being deleted, although the manifests have it.
pub fn notices(plan: &Plan) -> Vec<Problem> {
    let may_be_going =
        |change: &&Change| change.live.is_some() && change.desired.bundle.is_none() && change.action != Action::Skip;
    let live: Vec<&Change> = plan.changes.iter().filter(may_be_going).collect();
    let mut notices: Vec<Problem> = in_parallel(&live, |change| notice(change)).into_iter().flatten().collect();
    if let Some(more) = notices.len().checked_sub(NAMED).filter(|more| *more > 0) {
        notices.truncate(NAMED);
        notices.push(Problem::new(format!("{more} more objects of the manifests are being deleted")));
    }
    notices
}

fn notice(change: &Change) -> Option<Problem> {
    let live = &change.live.as_ref()?.raw;
    // There may be very many objects, and few are being deleted.
    let metadata = live.json().contains("\"deletionTimestamp\"").then(|| live.value()["metadata"].take())?;
    let since = metadata["deletionTimestamp"].as_str()?;
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let finalizers: Vec<String> = finalizers.map(|name| format!("{:?}", cut(&sanitize(name), 100))).collect();
    let until = match &finalizers[..] {
        [] => "the server has deleted it".to_owned(),
        [one] => format!("its finalizer {one} is removed"),
        all => format!("its finalizers {} are removed", all.join(", ")),
    };
    let object = &change.desired.object;
    let written = if change.is_written() { ", with everything that is written to it" } else { "" };
    let message = format!("{object} is being deleted (since {}): it goes when {until}{written}", sanitize(since));
    let help = format!("when it is gone, run the same command again to create it: kubectl wait --for=delete {object}");
    Some(Problem::new(message).at(change.desired.origin.location()).help(help))
}

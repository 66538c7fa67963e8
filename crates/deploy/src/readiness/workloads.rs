//! Readiness of workloads that run Pods, by the counts in `status` of the controllers of `apps` and `batch`.

use super::Readiness;
use super::view::LiveObjectView;

fn describe_progress(number: i64, all: i64, what: &str) -> Readiness {
    let word = if all == 1 { "replica" } else { "replicas" };
    Readiness::in_progress(&format!("{number} of {all} {word} {what}"))
}

/// Ready, with a note if the workload is scaled to 0.
fn running(replicas: i64) -> Readiness {
    if replicas == 0 { Readiness::ready_with_note("scaled to 0") } else { Readiness::READY }
}

/// The annotations with the minimum number of available Pods of the new template for a Deployment: a number, or a share
/// of its replicas, rounded up. The first name is kapp's.
const MINIMUM: [&str; 2] = [
    "/metadata/annotations/kapp.k14s.io~1apps-v1-deployment-wait-minimum-replicas-available",
    "/metadata/annotations/gantry.dev~1wait-minimum-replicas-available",
];

/// The minimum number of available replicas, not more than the desired number. `None` without an annotation, or if its
/// value is not a number: then all replicas are awaited.
fn minimum(view: LiveObjectView<'_>, wanted: i64) -> Option<i64> {
    let text = MINIMUM.iter().map(|pointer| view.text(pointer)).find(|text| !text.is_empty())?.trim();
    let minimum = match number(text)? {
        (share, true) => wanted.saturating_mul(share.min(100)).saturating_add(99) / 100,
        (number, false) => number,
    };
    Some(minimum.min(wanted))
}

/// Whether the annotation can have this value.
pub fn is_minimum(text: &str) -> bool {
    number(text.trim()).is_some()
}

/// A number of replicas, and whether it is a percentage.
fn number(text: &str) -> Option<(i64, bool)> {
    let share = text.strip_suffix('%');
    let number = share.unwrap_or(text).parse::<i64>().ok().filter(|number| *number >= 0)?;
    Some((number, share.is_some()))
}

/// `Deployment.apps`: `updatedReplicas`, `replicas`, `availableReplicas`, and the conditions `Progressing` and
/// `ReplicaFailure`.
pub fn deployment(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    if view.is_true("/spec/paused") {
        return Readiness::ready_with_note("paused: changes to the Pod template are not rolled out");
    }
    let stuck = view.false_condition("Progressing");
    if let Some(stuck) = stuck.filter(|condition| condition.reason() == "ProgressDeadlineExceeded") {
        // The reason why the ReplicaSet cannot create Pods is more useful than the expired deadline.
        let why = view.true_condition("ReplicaFailure").map(|condition| format!("; {}", condition.explain()));
        return Readiness::failed(&format!("{}{}", stuck.explain(), why.unwrap_or_default()));
    }
    let wanted = view.replicas();
    let (all, updated) = (view.count("/status/replicas"), view.count("/status/updatedReplicas"));
    let available = view.count("/status/availableReplicas");
    let minimum = minimum(view, wanted);
    if let Some(minimum) = minimum {
        // Old Pods are included in the available ones, so this is a lower bound of the available new Pods.
        let of_new = available.saturating_sub(all.saturating_sub(updated)).clamp(0, updated);
        if of_new >= minimum && (of_new < wanted || all > updated) {
            return Readiness::ready_with_note(&format!(
                "{of_new} of {wanted} replicas available; the minimum is {minimum}"
            ));
        }
    }
    if let Some(condition) = view.true_condition("ReplicaFailure").or(stuck) {
        return Readiness::in_progress(&condition.explain());
    }
    let old = all.saturating_sub(updated.min(wanted));
    if updated < wanted {
        describe_progress(updated, wanted, "updated")
    } else if old > 0 {
        Readiness::in_progress(&format!("{old} of {all} replicas still to be terminated"))
    } else if available < wanted {
        describe_progress(available, wanted, "available")
    } else {
        running(wanted)
    }
}

/// `StatefulSet.apps`: `updatedReplicas`, `readyReplicas`, `replicas`, and the revisions if no partition holds Pods
/// back.
pub fn stateful_set(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    if view.text("/spec/updateStrategy/type") == "OnDelete" {
        return Readiness::ready_with_note("OnDelete: Pods are replaced when they are deleted");
    }
    let wanted = view.replicas();
    let partition = view.count("/spec/updateStrategy/rollingUpdate/partition");
    let to_update = wanted.saturating_sub(partition);
    let (all, updated) = (view.count("/status/replicas"), view.count("/status/updatedReplicas"));
    let ready = view.count("/status/readyReplicas");
    let revisions = (view.text("/status/currentRevision"), view.text("/status/updateRevision"));
    if updated < to_update {
        describe_progress(updated, to_update, "updated")
    } else if ready < wanted {
        describe_progress(ready, wanted, "ready")
    } else if all > wanted {
        Readiness::in_progress(&format!("{} of {all} replicas still to be terminated", all - wanted))
    } else if partition > 0 {
        Readiness::ready_with_note(&format!("partition {partition}: Pods below it are not updated"))
    } else if revisions.0 != revisions.1 {
        Readiness::in_progress(&format!("moving from revision {} to {}", revisions.0, revisions.1))
    } else {
        running(wanted)
    }
}

/// `DaemonSet.apps`: `updatedNumberScheduled`, `desiredNumberScheduled`, `numberUnavailable`.
pub fn daemon_set(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    if view.text("/spec/updateStrategy/type") == "OnDelete" {
        return Readiness::ready_with_note("OnDelete: Pods are replaced when they are deleted");
    }
    let (wanted, updated) =
        (view.integer("/status/desiredNumberScheduled"), view.count("/status/updatedNumberScheduled"));
    let unavailable = view.count("/status/numberUnavailable");
    match wanted {
        None => Readiness::in_progress("its controller has not counted nodes yet"),
        Some(wanted) if updated < wanted => Readiness::in_progress(&format!("{updated} of {wanted} Pods updated")),
        Some(wanted) if unavailable > 0 => {
            Readiness::in_progress(&format!("{unavailable} of {wanted} Pods not available"))
        }
        Some(0) => Readiness::ready_with_note("no node to run on"),
        Some(_) => Readiness::READY,
    }
}

/// `ReplicaSet.apps` and `ReplicationController`: `availableReplicas`, and the condition `ReplicaFailure`.
pub fn replica_set(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    if let Some(condition) = view.true_condition("ReplicaFailure") {
        return Readiness::in_progress(&condition.explain());
    }
    let (wanted, available) = (view.replicas(), view.count("/status/availableReplicas"));
    if available < wanted { describe_progress(available, wanted, "available") } else { running(wanted) }
}

/// `Job.batch`: the conditions `Complete`, `SuccessCriteriaMet`, `Failed` and `FailureTarget`.
pub fn job(view: LiveObjectView<'_>) -> Readiness {
    if let Some(condition) = view.true_condition("Failed") {
        return Readiness::failed(&condition.explain());
    }
    if view.true_condition("Complete").or_else(|| view.true_condition("SuccessCriteriaMet")).is_some() {
        return Readiness::READY;
    }
    // The running Pods are being terminated; then the Job fails.
    if let Some(condition) = view.true_condition("FailureTarget") {
        return Readiness::in_progress(&format!("failing: {}", condition.explain()));
    }
    if view.is_true("/spec/suspend") {
        return Readiness::ready_with_note("suspended");
    }
    let count = |field: &str| view.count(&format!("/status/{field}"));
    let (active, succeeded, failed) = (count("active"), count("succeeded"), count("failed"));
    let of_all = view.integer("/spec/completions").map(|all| format!(" of {all}")).unwrap_or_default();
    Readiness::in_progress(&format!("{active} active, {succeeded}{of_all} succeeded, {failed} failed"))
}

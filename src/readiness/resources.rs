//! Readiness of built-in kinds that do not run Pods.

use super::State;
use super::view::View;

/// `CustomResourceDefinition`: the conditions `Established` and `NamesAccepted`; `NonStructuralSchema` and
/// `KubernetesAPIApprovalPolicyConformant` are noted.
pub fn crd(view: View<'_>) -> State {
    if let Some(condition) = view.denies("NamesAccepted") {
        return State::failed(&condition.explain());
    }
    for name in ["NamesAccepted", "Established"] {
        if view.holds(name).is_none() {
            return State::in_progress(
                &view.condition(name).map_or(format!("not {name} yet"), |found| found.explain()),
            );
        }
    }
    let noted = view.holds("NonStructuralSchema").or_else(|| view.denies("KubernetesAPIApprovalPolicyConformant"));
    noted.map_or(State::READY, |condition| State::noted(&condition.explain()))
}

/// `APIService`: the condition `Available`.
pub fn api_service(view: View<'_>) -> State {
    match view.condition("Available") {
        Some(condition) if condition.status() == "True" => State::READY,
        Some(condition) => State::in_progress(&condition.explain()),
        None => State::in_progress("not Available yet"),
    }
}

/// `PersistentVolumeClaim`: `status.phase`. A storage class with `WaitForFirstConsumer` binds only when a Pod uses the
/// claim; the claim itself does not show this.
pub fn claim(view: View<'_>) -> State {
    match view.text("/status/phase") {
        "Bound" => State::READY,
        "Lost" => State::failed("Lost: its volume is gone"),
        phase => State::in_progress(&format!(
            "{}, not bound; with WaitForFirstConsumer it is bound when a Pod uses it",
            if phase.is_empty() { "Pending" } else { phase }
        )),
    }
}

/// `PersistentVolume`: `status.phase`.
pub fn volume(view: View<'_>) -> State {
    match view.text("/status/phase") {
        "Available" | "Bound" => State::READY,
        "Failed" => {
            let said = [view.text("/status/reason"), view.text("/status/message")];
            let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
            State::failed(&if said.is_empty() { "Failed".to_owned() } else { said.join(": ") })
        }
        "" => State::in_progress("Pending"),
        phase => State::in_progress(phase),
    }
}

/// `Namespace`: `status.phase`.
pub fn namespace(view: View<'_>) -> State {
    match view.text("/status/phase") {
        "Active" => State::READY,
        "" => State::in_progress("not Active yet"),
        phase => State::in_progress(phase),
    }
}

/// `Service`: `spec.clusterIP`, and `status.loadBalancer.ingress` for the type `LoadBalancer`.
pub fn service(view: View<'_>) -> State {
    let (kind, address) = (view.text("/spec/type"), view.text("/spec/clusterIP"));
    match kind {
        "ExternalName" => State::READY,
        _ if address.is_empty() => State::in_progress("no cluster IP yet"),
        "LoadBalancer" if view.list("/status/loadBalancer/ingress").is_empty() => {
            State::in_progress("it has no load balancer address yet")
        }
        _ => State::READY,
    }
}

/// `HorizontalPodAutoscaler`: ready immediately; the condition `ScalingActive` is noted if it is false.
pub fn autoscaler(view: View<'_>) -> State {
    view.denies("ScalingActive").map_or(State::READY, |condition| State::noted(&condition.explain()))
}

/// `ValidatingAdmissionPolicy`: `status.observedGeneration` shows that its expressions were type-checked;
/// `status.typeChecking.expressionWarnings` is noted.
pub fn admission_policy(view: View<'_>) -> State {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    let warnings = view.list("/status/typeChecking/expressionWarnings");
    let Some(first) = warnings.first().map(View) else { return State::READY };
    let more = match warnings.len() {
        1 => String::new(),
        number => format!(" (1 of {number} warnings)"),
    };
    State::noted(&format!("type checking{more}: {}: {}", first.text("/fieldRef"), first.text("/warning")))
}

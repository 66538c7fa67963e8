//! Readiness of built-in kinds that do not run Pods.

use super::Readiness;
use super::view::LiveObjectView;

/// `CustomResourceDefinition`: the conditions `Established` and `NamesAccepted`; `NonStructuralSchema` and
/// `KubernetesAPIApprovalPolicyConformant` are noted.
pub fn crd(view: LiveObjectView<'_>) -> Readiness {
    if let Some(condition) = view.false_condition("NamesAccepted") {
        return Readiness::failed(&condition.explain());
    }
    for name in ["NamesAccepted", "Established"] {
        if view.true_condition(name).is_none() {
            return Readiness::in_progress(
                &view.condition(name).map_or(format!("not {name} yet"), |found| found.explain()),
            );
        }
    }
    let noted = view
        .true_condition("NonStructuralSchema")
        .or_else(|| view.false_condition("KubernetesAPIApprovalPolicyConformant"));
    noted.map_or(Readiness::READY, |condition| Readiness::ready_with_note(&condition.explain()))
}

/// `APIService`: the condition `Available`.
pub fn api_service(view: LiveObjectView<'_>) -> Readiness {
    match view.condition("Available") {
        Some(condition) if condition.status() == "True" => Readiness::READY,
        Some(condition) => Readiness::in_progress(&condition.explain()),
        None => Readiness::in_progress("not Available yet"),
    }
}

/// `PersistentVolumeClaim`: `status.phase`. A storage class with `WaitForFirstConsumer` binds only when a Pod uses the
/// claim; the claim itself does not show this.
pub fn claim(view: LiveObjectView<'_>) -> Readiness {
    match view.text("/status/phase") {
        "Bound" => Readiness::READY,
        "Lost" => Readiness::failed("Lost: its volume is gone"),
        phase => Readiness::in_progress(&format!(
            "{}, not bound; with WaitForFirstConsumer it is bound when a Pod uses it",
            if phase.is_empty() { "Pending" } else { phase }
        )),
    }
}

/// `PersistentVolume`: `status.phase`.
pub fn volume(view: LiveObjectView<'_>) -> Readiness {
    match view.text("/status/phase") {
        "Available" | "Bound" => Readiness::READY,
        "Failed" => {
            let said = [view.text("/status/reason"), view.text("/status/message")];
            let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
            Readiness::failed(&if said.is_empty() { "Failed".to_owned() } else { said.join(": ") })
        }
        "" => Readiness::in_progress("Pending"),
        phase => Readiness::in_progress(phase),
    }
}

/// `Namespace`: `status.phase`.
pub fn namespace(view: LiveObjectView<'_>) -> Readiness {
    match view.text("/status/phase") {
        "Active" => Readiness::READY,
        "" => Readiness::in_progress("not Active yet"),
        phase => Readiness::in_progress(phase),
    }
}

/// `Service`: `spec.clusterIP`, and `status.loadBalancer.ingress` for the type `LoadBalancer`.
pub fn service(view: LiveObjectView<'_>) -> Readiness {
    let (kind, address) = (view.text("/spec/type"), view.text("/spec/clusterIP"));
    match kind {
        "ExternalName" => Readiness::READY,
        _ if address.is_empty() => Readiness::in_progress("no cluster IP yet"),
        "LoadBalancer" if view.list("/status/loadBalancer/ingress").is_empty() => {
            Readiness::in_progress("it has no load balancer address yet")
        }
        _ => Readiness::READY,
    }
}

/// `HorizontalPodAutoscaler`: ready immediately; the condition `ScalingActive` is noted if it is false.
pub fn autoscaler(view: LiveObjectView<'_>) -> Readiness {
    view.false_condition("ScalingActive")
        .map_or(Readiness::READY, |condition| Readiness::ready_with_note(&condition.explain()))
}

/// `ValidatingAdmissionPolicy`: `status.observedGeneration` shows that its expressions were type-checked;
/// `status.typeChecking.expressionWarnings` is noted.
pub fn admission_policy(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    let warnings = view.list("/status/typeChecking/expressionWarnings");
    let Some(first) = warnings.first().map(LiveObjectView) else { return Readiness::READY };
    let more = match warnings.len() {
        1 => String::new(),
        number => format!(" (1 of {number} warnings)"),
    };
    Readiness::ready_with_note(&format!("type checking{more}: {}: {}", first.text("/fieldRef"), first.text("/warning")))
}

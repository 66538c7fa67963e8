//! Readiness of custom resources, by the conditions of kstatus.

use super::Readiness;
use super::view::LiveObjectView;

/// The conditions that determine whether a resource is ready; the first one that exists decides.
pub const CONDITIONS: [&str; 3] = ["Ready", "Available", "Succeeded"];

/// Whether the kind is one of kapp-controller's, which kapp waits for by default.
pub fn is_of_kapp_controller(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("kappctrl.k14s.io", "App") | ("packaging.carvel.dev", "PackageInstall" | "PackageRepository")
    )
}

/// `App`, `PackageInstall` and `PackageRepository` of kapp-controller: `observedGeneration` is required, then
/// `Reconciling`, `ReconcileFailed` and `DeleteFailed` decide. A paused one has none of them, and is ready.
///
/// Source: `pkg/kapp/resourcesmisc` of kapp
pub fn of_kapp_controller(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    if let Some(condition) = view.true_condition("Reconciling") {
        return Readiness::in_progress(&condition.explain());
    }
    failed_in_kapp_controller(view).unwrap_or(Readiness::READY)
}

/// The failure that kapp-controller reports; `usefulErrorMessage` has the error of the failed program.
pub fn failed_in_kapp_controller(view: LiveObjectView<'_>) -> Option<Readiness> {
    let condition = ["ReconcileFailed", "DeleteFailed"].into_iter().find_map(|name| view.true_condition(name))?;
    Some(Readiness::failed(&match view.text("/status/usefulErrorMessage") {
        "" => condition.with_name(),
        text => format!("{} is True: {text}", condition.name()),
    }))
}

/// Whether the group is one of Flux.
pub fn is_of_flux(group: &str) -> bool {
    group == "fluxcd.io" || group.ends_with(".toolkit.fluxcd.io")
}

/// The kinds of Flux, which follow the conventions. A suspended one is not reconciled, so nothing changes its status.
pub fn of_flux(view: LiveObjectView<'_>) -> Readiness {
    let state = resource(view);
    if !view.is_true("/spec/suspend") {
        return state;
    }
    match state {
        Readiness::Ready { .. } if view.condition(CONDITIONS[0]).is_some() => Readiness::ready_with_note("suspended"),
        Readiness::Failed(_) => state,
        Readiness::Ready { .. } | Readiness::InProgress(_) => {
            Readiness::in_progress("suspended: Flux does not reconcile it while spec.suspend is true")
        }
    }
}

/// `Stalled` and `Reconciling` decide first, then the first of `Ready`, `Available` and `Succeeded` that exists. A
/// resource with none of them is ready.
pub fn resource(view: LiveObjectView<'_>) -> Readiness {
    if let Some(state) = view.unobserved(false) {
        return state;
    }
    if let Some(condition) = view.true_condition("Stalled") {
        return Readiness::failed(&condition.explain());
    }
    if let Some(condition) = view.true_condition("Reconciling") {
        return Readiness::in_progress(&condition.explain());
    }
    match CONDITIONS.into_iter().find_map(|name| view.condition(name)) {
        Some(condition) if condition.status() != "True" => Readiness::in_progress(&condition.explain()),
        _ => Readiness::READY,
    }
}

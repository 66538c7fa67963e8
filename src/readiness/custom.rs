//! Readiness of custom resources, by the conditions of kstatus.

use super::State;
use super::view::View;

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
pub fn of_kapp_controller(view: View<'_>) -> State {
    if let Some(state) = view.unobserved(true) {
        return state;
    }
    if let Some(condition) = view.holds("Reconciling") {
        return State::in_progress(&condition.explain());
    }
    failed_in_kapp_controller(view).unwrap_or(State::READY)
}

/// The failure that kapp-controller reports; `usefulErrorMessage` has the error of the failed program.
pub fn failed_in_kapp_controller(view: View<'_>) -> Option<State> {
    let condition = ["ReconcileFailed", "DeleteFailed"].into_iter().find_map(|name| view.holds(name))?;
    Some(State::failed(&match view.text("/status/usefulErrorMessage") {
        "" => condition.with_name(),
        text => format!("{} is True: {text}", condition.name()),
    }))
}

/// Whether the group is one of Flux.
pub fn is_of_flux(group: &str) -> bool {
    group == "fluxcd.io" || group.ends_with(".toolkit.fluxcd.io")
}

/// The kinds of Flux, which follow the conventions. A suspended one is not reconciled, so nothing changes its status.
pub fn of_flux(view: View<'_>) -> State {
    let state = resource(view);
    if !view.is_true("/spec/suspend") {
        return state;
    }
    match state {
        State::Ready { .. } if view.condition(CONDITIONS[0]).is_some() => State::noted("suspended"),
        State::Failed(_) => state,
        State::Ready { .. } | State::InProgress(_) => {
            State::in_progress("suspended: Flux does not reconcile it while spec.suspend is true")
        }
    }
}

/// `Stalled` and `Reconciling` decide first, then the first of `Ready`, `Available` and `Succeeded` that exists. A
/// resource with none of them is ready.
pub fn resource(view: View<'_>) -> State {
    if let Some(state) = view.unobserved(false) {
        return state;
    }
    if let Some(condition) = view.holds("Stalled") {
        return State::failed(&condition.explain());
    }
    if let Some(condition) = view.holds("Reconciling") {
        return State::in_progress(&condition.explain());
    }
    match CONDITIONS.into_iter().find_map(|name| view.condition(name)) {
        Some(condition) if condition.status() != "True" => State::in_progress(&condition.explain()),
        _ => State::READY,
    }
}

//! Readiness of custom resources, by the conditions of kstatus.

use super::State;
use super::view::View;

/// The conditions that determine whether a resource is ready; the first one that exists decides.
pub const CONDITIONS: [&str; 3] = ["Ready", "Available", "Succeeded"];

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

//! Readiness of Pods, and the container statuses that explain why a Pod is not ready.

use serde_json::Value;

use super::Readiness;
use super::view::LiveObjectView;

/// Reasons to wait that are normal for a starting container.
const USUAL: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

/// `Pod`: `status.phase`, the conditions `Ready` and `PodScheduled`, and the statuses of the containers.
pub fn pod(view: LiveObjectView<'_>) -> Readiness {
    let phase = view.text("/status/phase");
    let terminated = failed(view);
    match phase {
        "Succeeded" => return Readiness::READY,
        "Failed" => {
            let said = [view.text("/status/reason"), view.text("/status/message")];
            let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
            return Readiness::failed(&match (said.is_empty(), terminated) {
                (false, _) => said.join(": "),
                (true, Some(container)) => container,
                (true, None) => "the Pod failed".to_owned(),
            });
        }
        _ => {}
    }
    if let (Some(container), "Never") = (&terminated, view.text("/spec/restartPolicy")) {
        return Readiness::failed(container);
    }
    if phase == "Running" && view.true_condition("Ready").is_some() {
        return Readiness::READY;
    }
    if phase == "Unknown" {
        return Readiness::in_progress("its node does not respond");
    }
    let unscheduled = view.false_condition("PodScheduled").map(|condition| condition.explain());
    let unready = || view.false_condition("Ready").map(|condition| condition.explain());
    let why = waiting(view).or(terminated).or(unscheduled).or_else(unready);
    Readiness::in_progress(&why.unwrap_or_else(|| match phase {
        "" => "not scheduled yet".to_owned(),
        phase => format!("{phase}, not Ready"),
    }))
}

fn containers(view: LiveObjectView<'_>) -> impl Iterator<Item = LiveObjectView<'_>> {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    lists.into_iter().flat_map(move |list| view.list(list)).map(LiveObjectView)
}

/// The container that keeps the Pod from being ready, if it has run. A container that never ran has no log.
pub fn logging_container(view: LiveObjectView<'_>) -> Option<String> {
    let ended = |container: LiveObjectView<'_>| container.integer("/state/terminated/exitCode");
    let is_stuck = |container: &LiveObjectView<'_>| {
        let is_waiting = !USUAL.contains(&container.text("/state/waiting/reason"));
        is_waiting || ended(*container).is_some_and(|code| code != 0)
    };
    let is_unready = |container: &LiveObjectView<'_>| !container.is_true("/ready") && ended(*container).is_none();
    let container = containers(view).find(is_stuck).or_else(|| containers(view).find(is_unready))?;
    let has_run = ["/state/running", "/state/terminated", "/lastState/terminated"];
    let has_run = has_run.iter().any(|state| container.at(state).is_some_and(Value::is_object));
    has_run.then(|| container.text("/name").to_owned())
}

/// The first container that cannot start: `container web: ImagePullBackOff: …`.
fn waiting(view: LiveObjectView<'_>) -> Option<String> {
    let container = containers(view).find(|container| !USUAL.contains(&container.text("/state/waiting/reason")))?;
    let exit = container.integer("/lastState/terminated/exitCode").map(|code| format!(" (exit code {code})"));
    let (name, reason) = (container.text("/name"), container.text("/state/waiting/reason"));
    let message = match container.text("/state/waiting/message") {
        "" => String::new(),
        message => format!(": {message}"),
    };
    Some(format!("container {name}: {reason}{}{message}", exit.unwrap_or_default()))
}

/// The first container that ended with a non-zero exit code.
fn failed(view: LiveObjectView<'_>) -> Option<String> {
    let code =
        |container: LiveObjectView<'_>| container.integer("/state/terminated/exitCode").filter(|code| *code != 0);
    let container = containers(view).find(|container| code(*container).is_some())?;
    let reason = match container.at("/state/terminated/reason").and_then(Value::as_str) {
        None | Some("") => "failed",
        Some(reason) => reason,
    };
    Some(format!("container {}: {reason} (exit code {})", container.text("/name"), code(container)?))
}

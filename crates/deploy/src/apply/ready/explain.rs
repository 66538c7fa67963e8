//! Explains why objects are not ready, with the Pods of workloads and their logs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::time::Instant;

use super::{MOST_LOGS, ReadinessProgress, ReadyWaitLimits, Waited};
use crate::app::children::{self, Children};
use crate::app::members::{self, AppObject};
use crate::apply::logs;
use crate::plan::Change;
use gantry_core::problem::{Log, Problem};
use gantry_core::resource::ObjectRef;

impl ReadyWaitLimits<'_> {
    /// The reason of the worst Pod of each workload by its uid, and how long it took to read them.
    pub(super) async fn look_at_pods(&self, owners: Vec<AppObject>) -> (BTreeMap<String, String>, Duration) {
        let begun = Instant::now();
        if owners.is_empty() {
            return Default::default();
        }
        let children = children::find(&owners, self.target, self.rules).await;
        let worst = |owner: AppObject| {
            let worst = children.worst_pod(&owner.facts.uid)?;
            let reason = worst.facts.readiness.as_ref()?.reason()?;
            Some((owner.facts.uid, of_pod(&worst.object, reason)))
        };
        (owners.into_iter().filter_map(worst).collect(), begun.elapsed())
    }

    /// Reports why objects are not ready, and for workloads, why their Pods are not.
    pub(super) async fn explain(
        &self,
        failed: &[ReadinessProgress<'_>],
        overdue: &[ReadinessProgress<'_>],
        late: &[ReadinessProgress<'_>],
        waited: &mut Waited,
    ) {
        let owners = owners(failed.iter().chain(overdue).chain(late));
        // If the Pods cannot be listed, they are left out.
        let children = if owners.is_empty() {
            Children::default()
        } else {
            children::find(&owners, self.target, self.rules).await
        };
        let worst_pod =
            |one: &ReadinessProgress<'_>| children.worst_pod(one.live.as_ref()?["metadata"]["uid"].as_str()?);
        let pods = |one: &ReadinessProgress<'_>| {
            let worst = worst_pod(one)?;
            let reason = worst.facts.readiness.as_ref()?.reason()?;
            Some(format!("; {}", of_pod(&worst.object, reason)))
        };
        let unready = || failed.iter().chain(overdue).chain(late);
        // A Pod of the manifests is logged itself.
        let logging = |one: &ReadinessProgress<'_>| {
            let object = &one.awaited.change.desired.object;
            if is_pod(object) { Some(Arc::clone(object)) } else { worst_pod(one).map(|pod| Arc::clone(&pod.object)) }
        };
        let logging: Vec<Option<Arc<ObjectRef>>> = unready().map(logging).collect();
        let logs = self.logs(logging, waited).await;
        let said = failed.iter().map(|one| {
            let reason = format!("{}{}", one.reason, pods(one).unwrap_or_default());
            explain_failure(one.awaited.change, &reason)
        });
        let late = overdue
            .iter()
            .map(|one| (one, self.resource_timeout.unwrap_or(self.timeout)))
            .chain(late.iter().map(|one| (one, self.timeout)));
        let late = late.map(|(one, limit)| explain_delay(one, limit, &pods(one).unwrap_or_default()));
        let said = said.chain(late).zip(logs);
        waited.reported.extend(unready().map(|one| one.awaited.index));
        waited.unready = said.map(|(problem, log)| Problem { log: log.map(Box::new), ..problem }).collect();
    }

    /// The last lines of the logs of Pods, if they are enabled and can be read.
    async fn logs(&self, pods: Vec<Option<Arc<ObjectRef>>>, waited: &mut Waited) -> Vec<Option<Log>> {
        let mut left = if self.shows_logs { MOST_LOGS } else { 0 };
        let read = async |pod: Option<Arc<ObjectRef>>| match pod {
            Some(pod) => logs::read_last_lines(&pod, self.target).await,
            None => Ok(None),
        };
        let wanted = pods.into_iter().map(|pod| {
            let pod = pod.filter(|_| left > 0);
            left -= usize::from(pod.is_some());
            pod
        });
        let answers: Vec<Result<Option<Log>, Problem>> =
            stream::iter(wanted).map(read).buffered(MOST_LOGS).collect().await;
        let mut unread: Vec<Problem> = answers.iter().filter_map(|log| log.as_ref().err().cloned()).collect();
        unread.sort();
        waited.notices.extend(unread);
        answers.into_iter().map(Result::unwrap_or_default).collect()
    }
}

/// The problem of an object that was not ready within the limit; `pods` says what its Pods wait for.
fn explain_delay(one: &ReadinessProgress<'_>, limit: Duration, pods: &str) -> Problem {
    let object = &one.awaited.change.desired.object;
    let (limit, since) = (limit.as_secs(), one.since.elapsed().as_secs());
    Problem::new(format!("{object} is not ready after {limit}s: {} (for {since}s){pods}", one.reason))
        .at(one.awaited.change.desired.origin.location())
        .help(format!("kubectl describe {object}; to keep waiting, run the same command again"))
}

fn explain_failure(change: &Change, reason: &str) -> Problem {
    let object = &change.desired.object;
    Problem::new(format!("{object} has failed: {reason}")).at(change.desired.origin.location()).help(format!(
        "kubectl describe {object}; fix the manifest or what it depends on, and run the same command again"
    ))
}

/// The live workloads among these.
pub(super) fn owners<'p, 'a: 'p>(of: impl Iterator<Item = &'p ReadinessProgress<'a>>) -> Vec<AppObject> {
    let live = |one: &ReadinessProgress<'_>| {
        let live = one.live.as_ref().filter(|_| owns_pods(one.awaited.change))?;
        members::read(&live.to_string(), &one.awaited.change.resource)
    };
    of.filter_map(live).collect()
}

fn of_pod(pod: &ObjectRef, reason: &str) -> String {
    format!("pod/{}: {reason}", pod.name)
}

/// Kinds whose Pods show why they are not ready.
fn owns_pods(change: &Change) -> bool {
    matches!(change.desired.object.group(), "apps" | "batch") || change.desired.object.kind == "ReplicationController"
}

fn is_pod(object: &ObjectRef) -> bool {
    object.group().is_empty() && object.kind == "Pod"
}

//! Dry runs of the plan's requests, several at a time, until the server no longer answers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::stream::{self, Stream, StreamExt};

use gantry_cluster::{DRY_RUNS_IN_FLIGHT, DryRunError, is_undeclared};
use gantry_core::finding::ServerRefusal;
use gantry_core::resource::RawObject;

/// The answer about each change, given by its index, in this order. `None` for those that are not sent because the
/// server has stopped answering: each further request would only run into the same timeout.
pub fn request_each<F>(
    indices: Vec<usize>,
    request: impl Fn(usize) -> F,
) -> impl Stream<Item = (usize, Option<Result<RawObject, DryRunError>>)>
where
    F: Future<Output = Result<RawObject, DryRunError>>,
{
    let lost = Arc::new(AtomicBool::new(false));
    stream::iter(indices)
        .map(move |index| {
            let (lost, answer) = (Arc::clone(&lost), request(index));
            async move {
                if lost.load(Ordering::Relaxed) {
                    return (index, None);
                }
                let answer = answer.await;
                if matches!(answer, Err(DryRunError::Unanswered { everything: true, .. })) {
                    lost.store(true, Ordering::Relaxed);
                }
                (index, Some(answer))
            }
        })
        .buffered(DRY_RUNS_IN_FLIGHT)
}

/// The server's complaint about an object, for comparing it with what other checks find.
pub fn complaint(said: &str) -> ServerRefusal {
    match is_undeclared(said) {
        true => ServerRefusal::UnknownField,
        false => ServerRefusal::Refused(said.to_owned()),
    }
}

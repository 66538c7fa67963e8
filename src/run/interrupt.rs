//! Interrupts before anything is written.

use tokio::sync::watch;

use gantry_core::problem::{Error, Problem, Result};

/// Completes when the user interrupts the run.
pub async fn interrupt(stop: &watch::Receiver<bool>) {
    if stop.clone().wait_for(|stop| *stop).await.is_err() {
        std::future::pending().await
    }
}

/// The error for an interrupt before the first write.
pub fn interrupted() -> Error {
    Error::failed(Problem::new("interrupted; nothing was written"))
}

/// Does `work`, which writes nothing, unless the user interrupts it.
pub async fn until_interrupted<T>(stop: &watch::Receiver<bool>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::select! {
        result = work => result?,
        () = interrupt(stop) => return Err(interrupted()),
    };
    // The comparison does not yield, so an interrupt during it is noticed here.
    if *stop.borrow() { Err(interrupted()) } else { Ok(done) }
}

//! Runs CPU-bound work: over many items on all cores, with the results in order, and separately from the threads that
//! wait for the network.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stack size of each thread, in bytes of address space. Recursive functions walk schemas, which can be as deeply
/// nested as the JSON parser allows. In an unoptimised build, this needs a quarter of the stack.
pub const STACK: usize = 16 << 20;

/// Runs `work` on a separate thread, so it does not block tasks that wait for the network or for Ctrl-C. `None` if the
/// run ends before `work` is done.
pub async fn on_cpu_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}

/// The number of threads that can run at the same time. It is determined once, because on Linux this reads a dozen
/// files.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

/// Runs `work` for all items on all cores. The results are in the order of the items.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = processors().min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut answers: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut answers = Vec::new();
            while let Some((index, item)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                items.get(index).map(|item| (index, item))
            } {
                answers.push((index, work(item)));
            }
            answers
        };
        let start = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, worker);
        // If no thread can be started, this one does all the work.
        let workers: Vec<_> = (1..threads).map(start).map_while(Result::ok).collect();
        let mut answers = worker();
        for other in workers {
            answers.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        answers
    });
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

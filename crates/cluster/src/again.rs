//! Retries a write when the object has changed since it was read.

use std::sync::Arc;

use super::{ApplyError, ObjectToRead, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, Resource};

/// The number of attempts; each one starts from the object as it is by then. A controller can write its status at any
/// time.
const TRIES: u32 = 5;

/// The outcome of [`write_again`].
pub enum Rewritten<T> {
    /// The write succeeded; the result is that of the closure.
    Written(T),
    /// Nothing was written: the object no longer exists, or another object has its name.
    Left,
    /// The target refuses the write, or it failed.
    Refused(Problem),
    /// Each attempt met an object that had changed again.
    KeptChanging,
}

/// Writes to a live object, and retries if it has changed in between.
///
/// The object is read first if `live` is `None`. `is_wanted` says whether it is still the object that was meant.
///
/// # Errors
/// The object cannot be read.
pub async fn write_again<T>(
    target: &Target,
    (resource, object): (&Arc<Resource>, &Arc<ObjectRef>),
    mut live: Option<LiveObject>,
    is_wanted: impl Fn(&LiveObject) -> bool,
    write: impl AsyncFn(&LiveObject) -> Result<T, ApplyError>,
) -> gantry_core::problem::Result<Rewritten<T>> {
    for _ in 0..TRIES {
        let now = match live.take() {
            Some(live) => live,
            None => {
                let wanted = ObjectToRead { resource: resource.clone(), object: object.clone() };
                let read = target.read(&[wanted], &|_, _| ()).await?;
                let Some(now) = read.into_iter().flatten().next().filter(&is_wanted) else {
                    return Ok(Rewritten::Left);
                };
                now
            }
        };
        match write(&now).await {
            Ok(written) => return Ok(Rewritten::Written(written)),
            Err(ApplyError::Refused(problem) | ApplyError::Unknown(problem) | ApplyError::NotYet(_, problem)) => {
                return Ok(Rewritten::Refused(problem));
            }
            Err(ApplyError::Conflict(_)) => {
                let message = format!("{object} has field manager conflicts");
                return Ok(Rewritten::Refused(Problem::new(message)));
            }
            Err(ApplyError::Changed) => {}
        }
    }
    Ok(Rewritten::KeptChanging)
}

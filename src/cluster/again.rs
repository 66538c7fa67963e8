//! Writes that are tried again where the object has changed since it was read.

use std::sync::Arc;

use super::{ApplyError, Target, Wanted};
use crate::problem::Problem;
use crate::resource::{Live, ObjectRef, Resource};

/// How often an object is written from what it is by then. A controller may write its status at any time.
const TRIES: u32 = 5;

/// What came of it.
pub enum Rewritten<T> {
    Written(T),
    /// There was nothing to write to: it is gone, or another object by now.
    Left,
    Refused(Problem),
    KeptChanging,
}

/// Writes to a live object, and again where it has changed in between.
///
/// It is read first where `live` is `None`. `is_wanted` says whether it still is the object that is meant.
///
/// # Errors
/// It cannot be read.
pub async fn write_again<T>(
    target: &Target,
    (resource, object): (&Arc<Resource>, &Arc<ObjectRef>),
    mut live: Option<Live>,
    is_wanted: impl Fn(&Live) -> bool,
    write: impl AsyncFn(&Live) -> Result<T, ApplyError>,
) -> crate::problem::Result<Rewritten<T>> {
    for _ in 0..TRIES {
        let now = match live.take() {
            Some(live) => live,
            None => {
                let wanted = Wanted { resource: resource.clone(), object: object.clone() };
                let read = target.read(&[wanted], &|_, _| ()).await?;
                let Some(now) = read.into_iter().flatten().next().filter(&is_wanted) else {
                    return Ok(Rewritten::Left);
                };
                now
            }
        };
        match write(&now).await {
            Ok(written) => return Ok(Rewritten::Written(written)),
            Err(ApplyError::Refused(problem) | ApplyError::NoWebhook(problem)) => {
                return Ok(Rewritten::Refused(problem));
            }
            Err(ApplyError::Conflict(_)) => {
                let message = format!("{object} has conflicts of field managers");
                return Ok(Rewritten::Refused(Problem::new(message)));
            }
            Err(ApplyError::Changed) => {}
        }
    }
    Ok(Rewritten::KeptChanging)
}

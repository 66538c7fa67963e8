//! The report about an app before the first write.

use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;

/// What is reported about an app before anything is written.
#[derive(Debug, Default)]
pub struct AppForecast {
    /// Why nothing can be written.
    pub hindrances: Vec<Problem>,
    /// More would be deleted than one deploy may.
    pub blocks: Vec<Problem>,
    pub notices: Vec<Problem>,
}

/// The most objects that one sentence names.
const NAMED: usize = 20;

/// One sentence about all of the objects; `None` if there are none. `sentence` gets their names and whether there is
/// only one.
pub fn listed<'o>(
    objects: impl ExactSizeIterator<Item = &'o ObjectRef>,
    sentence: impl FnOnce(String, bool) -> String,
) -> Option<Problem> {
    let number = objects.len();
    let mut names: Vec<String> = objects.take(NAMED).map(ToString::to_string).collect();
    if number > NAMED {
        names.push(format!("{} more", number - NAMED));
    }
    (number > 0).then(|| Problem::new(sentence(names.join(", "), number == 1)))
}

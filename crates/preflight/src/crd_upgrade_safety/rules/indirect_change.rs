//! A node whose own keywords did not change for the worse, but which no longer accepts everything that it accepted.

use crate::crd_upgrade_safety::node::SchemaNodePlace;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::FindingBody;
use gantry_core::finding::wording::wording;

/// The maximum number of causes that the message names.
const NAMED: usize = 3;

/// The violation at a node, caused by changes of the nodes with these paths; `reason` is the reason that its proof gives.
pub fn diagnosis(place: &SchemaNodePlace, causes: Vec<String>, reason: Option<&str>) -> ViolationText {
    let field = place.field();
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let names: Vec<&str> = causes.iter().map(|path| path.strip_prefix("^.").unwrap_or(path)).collect();
    let because = match names.as_slice() {
        [] => "of another change".to_owned(),
        [one] => format!("{one} changes"),
        [named @ .., last] if names.len() <= NAMED => format!("{} and {last} change", named.join(", ")),
        all => format!("{} and {} other fields below it change", all[..NAMED - 1].join(", "), all.len() - NAMED + 1),
    };
    let what = if names.is_empty() { format!("the changes around {field}") } else { "this change".to_owned() };
    ViolationText {
        message: wording!(
            "{field} may refuse values in ",
            VERSIONS,
            " that it accepts today, because {because}{reason}"
        ),
        help: wording!(
            "make {what} only in a new version that a webhook converts, or after a migration, or keep \
            valid everything that is valid today"
        ),
        at: place.steps.clone(),
        body: FindingBody { caused_by: causes, ..FindingBody::default() },
        ..ViolationText::default()
    }
    .fact("affected by another change".to_owned())
}

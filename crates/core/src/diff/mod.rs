//! The changes of an object as lines of YAML: the live object compared with the result of the deploy.
//!
//! These are pure functions of two trees and the merge keys of their kind. The result is part of the report, from which
//! all outputs are made.
//!
//! ```text
//! shown       the compared parts of an object: no server metadata, no status
//! hide        replaces values that no output may contain with marks
//! definition  a short diff of the schema of a CRD
//! walk        walks both trees: maps by key, lists by merge key, texts by line
//! path        the path of a change, and the headings that show it
//! page        selects the lines to show: headings, changes, and their context where the order matters
//! keys        matches the items of two lists by key
//! lines       finds the common items of two lists
//! yaml        values as YAML
//! ```

mod definition;
mod hide;
mod keys;
mod lines;
mod page;
mod path;
mod shown;
#[cfg(test)]
mod tests;
mod walk;
mod yaml;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use hide::{HiddenValueMarks, Hiding};
pub use shown::without_server_fields;

use crate::merge::MergeSchema;

/// The maximum number of lines for one object, unless all are requested.
const MOST_LINES: usize = 200;

/// How a deploy would change one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Why the result does not come from the server's dry run. The lines are then computed from the manifest and the
    /// live object's managedFields, without the server's defaults and admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approximate: Option<String>,
    /// The lines. Empty for an object that is created, unless the diff is full.
    pub lines: Vec<Line>,
    /// The number of further lines; verbose output has all lines.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// One line of YAML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The kind of the line.
    pub is: LineKind,
    /// The text, with its indentation.
    pub text: String,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LineKind {
    /// Unchanged: the path of the changes below it, or a line next to a change. An unchanged list item is one line.
    Context,
    /// Only in the live object.
    Removed,
    /// Only in the result of the deploy.
    Added,
    /// A YAML comment about the object.
    Note,
}

/// Compares a live object with the result of the deploy. [`shown`] must have been applied to both, and secret values
/// must be hidden. `schema` defines how the lists of the kind are merged.
pub fn compare(live: &Value, next: &Value, schema: MergeSchema<'_, Value>, is_crd: bool, all: bool) -> Diff {
    finish(walk::changes(live, next, schema, is_crd, all), all)
}

/// The diff of an object that is created.
pub fn diff_created(next: &Value, all: bool) -> Diff {
    finish(walk::added_lines(next, all), all)
}

/// A line about an object.
pub fn note(text: &str) -> Line {
    Line { is: LineKind::Note, text: text.to_owned() }
}

fn finish(mut lines: Vec<Line>, all: bool) -> Diff {
    let most = if all { usize::MAX } else { MOST_LINES };
    let omitted = lines.len().saturating_sub(most);
    lines.truncate(most);
    Diff { approximate: None, lines, omitted }
}

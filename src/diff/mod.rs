//! What changes in an object, as lines of YAML: live beside what the deploy would make of it.
//!
//! Pure: two trees and the merge keys of their kind go in, data comes out. The report carries it, and every output is made
//! from that.
//!
//! ```text
//! shown   what of an object is compared: no server metadata, no status
//! hide    values that no output may hold, each replaced by a mark
//! definition  what changes in the schema of a CRD, short
//! walk    both trees at once: maps by key, lists by merge key, texts by line
//! path    where a change is, and the heading that says so
//! page    the lines that are kept: headings, changes, and what is around them where the order counts
//! keys    which items of two lists belong together
//! lines   which items of two lists are the same
//! yaml    values as YAML
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

pub(crate) use hide::{Hiding, Marks};
pub(crate) use shown::shown;

use crate::merge::Schema;

/// Lines of one object, if not all of them are wanted.
const MOST_LINES: usize = 200;

/// How a deploy would change one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Why the server did not say what the object would become. The lines are then computed from the manifest and the live
    /// object's managedFields, without the server's defaults and admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approximate: Option<String>,
    /// Empty for an object that is created, unless the diff is full.
    pub lines: Vec<Line>,
    /// How many more lines there are; verbose output has all of them.
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
    /// Which side it is of.
    pub is: LineKind,
    /// With its indentation.
    pub text: String,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LineKind {
    /// The same before and after: the path of the changes below it, or a line beside a change. An item of a list that does not
    /// change is one line.
    Context,
    /// Of the live object only.
    Removed,
    /// Of what it becomes only.
    Added,
    /// Not of the object, but about it: a YAML comment.
    Note,
}

/// Compares a live object with what it becomes, both as [`shown`] and with nothing in them that is to be hidden. `schema`
/// says how the lists of the kind are merged.
pub(crate) fn compare(live: &Value, next: &Value, schema: Schema<'_, Value>, is_crd: bool, all: bool) -> Diff {
    finish(walk::changes(live, next, schema, is_crd, all), all)
}

/// A whole object that is created.
pub(crate) fn whole(next: &Value, all: bool) -> Diff {
    finish(walk::whole(next, all), all)
}

/// A line about an object.
pub(crate) fn note(text: &str) -> Line {
    Line { is: LineKind::Note, text: text.to_owned() }
}

fn finish(mut lines: Vec<Line>, all: bool) -> Diff {
    let most = if all { usize::MAX } else { MOST_LINES };
    let omitted = lines.len().saturating_sub(most);
    lines.truncate(most);
    Diff { approximate: None, lines, omitted }
}

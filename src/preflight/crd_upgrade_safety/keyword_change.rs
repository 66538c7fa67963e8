//! Changes that the documentation of kapp and OLM calls unknown: named keyword by keyword, with what follows from each.
//!
//! A rule of this kind does not forbid. It says exactly what changed and who may break, and where the change of the keyword
//! alone settles it, that nobody does. How loud that gets is decided in [`super::decide`].

use super::json::Json;
use super::node::{Change, NodePair, Transition};
use super::rule::Diagnosis;
use super::words;
use crate::finding::wording::wording;
use crate::finding::{Breaks, Verdict};

/// What follows from one transition of a keyword.
#[derive(Debug, Clone, Copy)]
pub struct Effect {
    /// Who may be hurt.
    pub breaks: &'static [Breaks],
    /// Where the keyword alone decides it. It says nothing of other changes on the node.
    pub verdict: Option<Verdict>,
    /// The consequence; ends the message.
    pub so: &'static str,
    pub help: &'static str,
}

/// A constraint that goes: nobody is hurt.
pub const LOOSENS: Effect = Effect {
    breaks: &[],
    verdict: Some(Verdict::Widening),
    so: "everything that is accepted today stays accepted",
    help: "this alone breaks nothing; waive the finding or set the rule's enforcement",
};

/// A keyword and what follows from each of its transitions.
#[derive(Debug, Clone, Copy)]
pub struct Effects {
    pub keyword: &'static str,
    pub added: Effect,
    pub changed: Effect,
    pub removed: Effect,
}

/// Names the change of one keyword.
pub fn judge(pair: &NodePair, effects: &Effects) -> Option<Diagnosis> {
    let change = pair.change(effects.keyword)?;
    let effect = match change.transition() {
        Transition::Added => effects.added,
        Transition::Changed => effects.changed,
        Transition::Removed => effects.removed,
    };
    Some(said(pair, change, &effect))
}

/// A change in words, with what follows from it.
pub fn said(pair: &NodePair, change: &Change, effect: &Effect) -> Diagnosis {
    let (keyword, field, so) = (change.keyword, pair.place.field(), effect.so);
    let value = |json: Option<&Json<'_>>| json.map(words::value).unwrap_or_default();
    let (was, now) = (value(change.live), value(change.desired));
    let what = match (change.live, change.desired) {
        (Some(_), Some(_)) => wording!("{keyword} of {field} changes in ", VERSIONS, " from {was} to {now}; {so}"),
        (None, Some(_)) => wording!("{keyword} of {field} is added to ", VERSIONS, ": {now}; {so}"),
        (Some(_), None) => wording!("{keyword} of {field} is removed from ", VERSIONS, ": {was}; {so}"),
        (None, None) => wording!("{keyword} of {field} changes in ", VERSIONS, "; {so}"),
    };
    unknown(pair, change, &tell(change), effect).message(what)
}

/// The frame of such a violation: the documented text of an unknown change, the place, the label.
pub fn unknown(pair: &NodePair, change: &Change, told: &str, effect: &Effect) -> Diagnosis {
    let text = format!("unable to determine if change to existing field is safe: {told}");
    let mut said = Diagnosis::of_field(pair.place, change.keyword, &text).label(label(change)).help(effect.help);
    said.fact = Some(told.to_owned());
    said.breaks = Some(effect.breaks.to_vec());
    said.verdict = effect.verdict;
    said
}

fn label(change: &Change) -> String {
    match change.live {
        None => format!("no {} in the live CRD", change.keyword),
        Some(live) if change.transition() == Transition::Removed => {
            format!("the live CRD has {}: {}", change.keyword, words::value(live))
        }
        Some(live) => format!("was {} in the live CRD", words::value(live)),
    }
}

/// What became of a keyword, in a few words.
pub fn tell(change: &Change) -> String {
    let keyword = change.keyword;
    match (change.live, change.desired) {
        (Some(live), Some(desired)) => {
            format!("{keyword} changed from {} to {}", words::value(live), words::value(desired))
        }
        (None, Some(desired)) => format!("{keyword} added: {}", words::value(desired)),
        (Some(live), None) => format!("{keyword} removed: {}", words::value(live)),
        (None, None) => keyword.to_owned(),
    }
}

/// Whether these alternatives say "an integer or a string" and nothing else.
pub fn is_int_or_string(alternatives: &Json) -> bool {
    let Some([one, other]) = alternatives.list() else { return false };
    let kind = |json: &Json| {
        let map = json.map().filter(|map| map.len() == 1)?;
        map.get("type").and_then(Json::text).map(str::to_owned)
    };
    matches!(
        (kind(one).as_deref(), kind(other).as_deref()),
        (Some("integer"), Some("string")) | (Some("string"), Some("integer"))
    )
}

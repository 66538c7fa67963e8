//! Changes that the documentation of kapp and OLM calls unknown, keyword by keyword, with the effect of each.
//!
//! Such a rule does not forbid the change. It reports what changed and who may break, or, if the change of the keyword
//! alone decides it, that nothing breaks. [`super::decide`] decides the severity.

use super::json::Json;
use super::node::{KeywordDifference, NodePair, Transition};
use super::rule::ViolationText;
use super::words;
use gantry_core::finding::wording::wording;
use gantry_core::finding::{Breaks, Verdict};

/// The effect of one transition of a keyword.
#[derive(Debug, Clone, Copy)]
pub struct KeywordEffect {
    /// Who may be affected.
    pub breaks: &'static [Breaks],
    /// The verdict, if the keyword alone decides it. It does not cover other changes of the node.
    pub verdict: Option<Verdict>,
    /// The consequence, which ends the message.
    pub so: &'static str,
    pub help: &'static str,
}

/// A constraint that is removed, which breaks nothing.
pub const LOOSENS: KeywordEffect = KeywordEffect {
    breaks: &[],
    verdict: Some(Verdict::Widening),
    so: "everything that is accepted today stays accepted",
    help: "this alone breaks nothing; waive the finding or set the rule's enforcement",
};

/// A keyword and the effect of each of its transitions.
#[derive(Debug, Clone, Copy)]
pub struct Effects {
    pub keyword: &'static str,
    pub added: KeywordEffect,
    pub changed: KeywordEffect,
    pub removed: KeywordEffect,
}

/// Reports the change of one keyword.
pub fn judge(pair: &NodePair, effects: &Effects) -> Option<ViolationText> {
    let change = pair.change(effects.keyword)?;
    let effect = match change.transition() {
        Transition::Added => effects.added,
        Transition::Changed => effects.changed,
        Transition::Removed => effects.removed,
    };
    Some(diagnosis(pair, change, &effect))
}

/// The diagnosis of a change and its effect.
pub fn diagnosis(pair: &NodePair, change: &KeywordDifference, effect: &KeywordEffect) -> ViolationText {
    let (keyword, field, so) = (change.keyword, pair.place.field(), effect.so);
    let value = |json: Option<&Json<'_>>| json.map(words::value).unwrap_or_default();
    let (was, now) = (value(change.live), value(change.desired));
    let what = match (change.live, change.desired) {
        (Some(_), Some(_)) => wording!("{keyword} of {field} changes in ", VERSIONS, " from {was} to {now}"),
        (None, Some(_)) => wording!("{keyword} of {field} is added to ", VERSIONS, ": {now}"),
        (Some(_), None) => wording!("{keyword} of {field} is removed from ", VERSIONS, ": {was}"),
        (None, None) => wording!("{keyword} of {field} changes in ", VERSIONS),
    };
    let mut diagnosis = unknown(pair, change, &describe(change), effect).message(what.clone().then(format!("; {so}")));
    // What only readers may notice is not refuted by a proof about validity.
    let claims_harm =
        effect.breaks.iter().any(|who| matches!(who, Breaks::StoredObjects | Breaks::Writers | Breaks::Data));
    if claims_harm && effect.verdict.is_none() {
        diagnosis.bare = Some(what);
    }
    diagnosis
}

/// A diagnosis without a message: the documented text of an unknown change, its place, label and effect.
pub fn unknown(pair: &NodePair, change: &KeywordDifference, fact: &str, effect: &KeywordEffect) -> ViolationText {
    let text = format!("unable to determine if change to existing field is safe: {fact}");
    let mut diagnosis =
        ViolationText::of_field(pair.place, change.keyword, &text).label(label(change)).help(effect.help);
    diagnosis.body.fact = Some(fact.to_owned());
    diagnosis.breaks = Some(effect.breaks.to_vec());
    diagnosis.verdict = effect.verdict;
    diagnosis
}

fn label(change: &KeywordDifference) -> String {
    match change.live {
        // "no not" would be hard to read.
        None if change.keyword == "not" => "no schema below not in the live CRD".to_owned(),
        None => format!("no {} in the live CRD", change.keyword),
        Some(live) if change.transition() == Transition::Removed => {
            format!("the live CRD has {}: {}", change.keyword, words::value(live))
        }
        Some(live) => format!("was {} in the live CRD", words::value(live)),
    }
}

/// The change of a keyword, in a few words.
pub fn describe(change: &KeywordDifference) -> String {
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

/// Whether these alternatives mean "an integer or a string" and nothing else.
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

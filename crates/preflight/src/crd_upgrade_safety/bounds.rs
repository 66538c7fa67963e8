//! The shared code of the rules for the eight bounds (minimum, minLength, … maxProperties): a bound may be neither
//! added nor tightened. Nor may the bound of a number be loosened to one that the type of the field cannot represent:
//! with it, the server refuses every number, or every integer.

use super::json::{Json, JsonMap};
use super::node::NodePair;
use super::rule::ViolationText;
use super::words;
use gantry_core::finding::wording::wording;
use gantry_schema::{can_be_bound, is_maximum_beyond_integers, keywords};

pub struct KeywordBound {
    pub keyword: &'static str,
    /// The name of the bound in the documented texts: `minimum length`.
    pub words: &'static str,
    pub tighter: Tighter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tighter {
    Higher,
    Lower,
}

/// Reports a bound that is added, or that changes so that fewer values are valid. A bound that is removed is not
/// reported.
pub fn judge(pair: &NodePair, bound: &KeywordBound) -> Option<ViolationText> {
    let change = pair.change(bound.keyword)?;
    let desired = change.desired?;
    let (place, keyword) = (pair.place, bound.keyword);
    let field = place.field();
    let now = words::value(desired);
    let Some(live) = change.live else {
        let text = format!("{} constraint added when one did not exist previously: {now}", bound.words);
        return Some(
            ViolationText::of_field(place, keyword, &text)
                .message(wording!("{keyword} of {field} may not be added to ", VERSIONS, ": {now}"))
                .fact(format!("{keyword} added: {now}"))
                .label(format!("no {keyword} in the live CRD"))
                .help(wording!(
                    "leave {keyword} out of ",
                    VERSIONS,
                    ", or add it only in a new version that a webhook \
                    converts, or after a migration"
                )),
        );
    };
    let (tighter, moved, verb) = match bound.tighter {
        Tighter::Higher => (desired.exceeds(live), "increased", "raised"),
        Tighter::Lower => (live.exceeds(desired), "decreased", "lowered"),
    };
    let was = words::value(live);
    if !tighter {
        return beyond_type(pair, bound, live, desired);
    }
    Some(
        ViolationText::of_field(place, keyword, &format!("{} constraint {moved} from {was} to {now}", bound.words))
            .message(wording!("{keyword} of {field} may not be {verb} from {was} to {now} in ", VERSIONS))
            .fact(format!("{keyword} {verb} from {was} to {now}"))
            .label(format!("was {was} in the live CRD"))
            .help(wording!(
                "keep {keyword}: {was} in ",
                VERSIONS,
                ", or use {now} only in a new version that a \
                webhook converts, or after a migration"
            )),
    )
}

/// Reports a looser bound that the type or format of the field cannot represent.
fn beyond_type(pair: &NodePair, bound: &KeywordBound, live: &Json, desired: &Json) -> Option<ViolationText> {
    let is_of_number = matches!(bound.keyword, "minimum" | "maximum");
    // What is wrong with a bound, which numbers the server refuses because of it, and which one to use.
    let problem_of = |node: &JsonMap, value: &Json| {
        let text = |keyword| keywords::get(node, keyword).and_then(Json::text);
        let value = value.number().filter(|_| is_of_number)?;
        if !can_be_bound(text("type"), text("format"), value) {
            let of_type = text("format").or(text("type")).unwrap_or_default();
            return Some((format!("which is no value of {of_type}"), "number", format!("a bound that {of_type} has")));
        }
        // Other types ignore the bound.
        let is_applied = matches!(text("type"), None | Some("number" | "integer"));
        let is_beyond = is_applied && bound.keyword == "maximum" && is_maximum_beyond_integers(value);
        is_beyond.then(|| ("which overflows an int64".to_owned(), "integer", "a smaller bound".to_owned()))
    };
    let (problem, refused, better) = problem_of(pair.desired, desired)?;
    if problem_of(pair.live, live).is_some() {
        return None;
    }
    let (keyword, field) = (bound.keyword, pair.place.field());
    let (was, now) = (words::value(live), words::value(desired));
    let text = format!("{} constraint changed from {was} to {now}, {problem}", bound.words);
    Some(
        ViolationText::of_field(pair.place, keyword, &text)
            .message(wording!(
                "{keyword} of {field} changes in ",
                VERSIONS,
                " from {was} to {now}, {problem}: the server refuses every {refused} there"
            ))
            .fact(format!("{keyword} changed from {was} to {now}"))
            .label(format!("was {was} in the live CRD"))
            .help(wording!("use {better} in ", VERSIONS, ", or remove {keyword}")),
    )
}

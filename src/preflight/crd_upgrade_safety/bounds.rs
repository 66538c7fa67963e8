//! The shared code of the rules for the eight bounds (minimum, minLength, … maxProperties): a bound may be neither
//! added nor tightened.

use super::node::NodePair;
use super::rule::Diagnosis;
use super::words;
use crate::finding::wording::wording;

pub struct Bound {
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
pub fn judge(pair: &NodePair, bound: &Bound) -> Option<Diagnosis> {
    let change = pair.change(bound.keyword)?;
    let desired = change.desired?;
    let (place, keyword) = (pair.place, bound.keyword);
    let field = place.field();
    let now = words::value(desired);
    let Some(live) = change.live else {
        let text = format!("{} constraint added when one did not exist previously: {now}", bound.words);
        return Some(
            Diagnosis::of_field(place, keyword, &text)
                .message(wording!("{keyword} of {field} may not be added to ", VERSIONS, ": {now}"))
                .fact(format!("{keyword} added: {now}"))
                .label(format!("no {keyword} in the live CRD"))
                .help(wording!("leave {keyword} out of ", VERSIONS, ", or add it only in a new version")),
        );
    };
    let (tighter, moved, verb) = match bound.tighter {
        Tighter::Higher => (desired.exceeds(live), "increased", "raised"),
        Tighter::Lower => (live.exceeds(desired), "decreased", "lowered"),
    };
    let was = words::value(live);
    tighter.then(|| {
        Diagnosis::of_field(place, keyword, &format!("{} constraint {moved} from {was} to {now}", bound.words))
            .message(wording!("{keyword} of {field} may not be {verb} from {was} to {now} in ", VERSIONS))
            .fact(format!("{keyword} {verb} from {was} to {now}"))
            .label(format!("was {was} in the live CRD"))
            .help(wording!("keep {keyword}: {was} in ", VERSIONS, ", or use {now} only in a new version"))
    })
}

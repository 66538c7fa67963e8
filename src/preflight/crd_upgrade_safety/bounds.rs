//! The eight bounds (minimum, minLength, … maxProperties) are judged alike: none may appear and none may get tighter.

use super::model::NodePair;
use super::rules::Said;
use super::words;

pub struct Bound {
    pub keyword: &'static str,
    /// In the documented texts: `minimum length`.
    pub words: &'static str,
    pub tighter: Tighter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tighter {
    Higher,
    Lower,
}

/// A bound that was added, or moved so that it lets fewer values through. One that goes lets more through.
pub fn judge(pair: &NodePair, bound: &Bound) -> Option<Said> {
    let change = pair.change(bound.keyword)?;
    let desired = change.desired?;
    let (place, keyword) = (pair.place, bound.keyword);
    let (field, version) = (place.field(), &place.version);
    let now = words::value(desired);
    let Some(live) = change.live else {
        let text = format!("{} constraint added when one did not exist previously: {now}", bound.words);
        return Some(
            Said::of_field(place, keyword, &text)
                .message(format!("{keyword} of {field} may not be added to {version}: {now}"))
                .label(format!("no {keyword} in the live CRD"))
                .help(format!("leave {keyword} out of {version}, or add it in a new version")),
        );
    };
    let (tighter, moved, verb) = match bound.tighter {
        Tighter::Higher => (desired.exceeds(live), "increased", "raised"),
        Tighter::Lower => (live.exceeds(desired), "decreased", "lowered"),
    };
    let was = words::value(live);
    tighter.then(|| {
        Said::of_field(place, keyword, &format!("{} constraint {moved} from {was} to {now}", bound.words))
            .message(format!("{keyword} of {field} may not be {verb} from {was} to {now} in {version}"))
            .label(format!("was {was} in the live CRD"))
            .help(format!("keep {keyword}: {was} in {version}, or use {now} in a new version"))
    })
}

//! What a finding says, in words that the formats share.

use super::Excerpts;
use super::causes::GroupedFinding;
use super::excerpt;
use super::groups::CausesAtPlace;
use gantry_core::finding::{Breaks, Finding, RefusedUpdates, Severity, Source, Verdict, Witness, WitnessVerdict};
use gantry_core::resource::ObjectRef;
use gantry_core::text;

/// The maximum length of a message; longer ones are cut, and `-o json` has all of them.
const LONGEST_MESSAGE: usize = 500;
/// The maximum number of rules that are named when findings are only counted.
const COUNTED_RULES: usize = 6;

/// `error`, `warning`, …
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
        Severity::Waived => "waived",
        Severity::Known => "known",
    }
}

/// `190 NoExistingFieldRemoved, 100 NoTypeChanged`, the most frequent first.
pub fn by_rule<'a>(causes: impl IntoIterator<Item = &'a GroupedFinding<'a>>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for cause in causes {
        match counts.iter_mut().find(|(rule, _)| *rule == cause.finding.rule) {
            Some((_, number)) => *number += 1,
            None => counts.push((&cause.finding.rule, 1)),
        }
    }
    counts.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let mut words: Vec<String> = counts
        .iter()
        .take(COUNTED_RULES)
        .map(|(rule, number)| format!("{number} {}", text::cut(&text::sanitize(rule), 60)))
        .collect();
    if counts.len() > COUNTED_RULES {
        words.push(format!("{} of other rules", counts[COUNTED_RULES..].iter().map(|(_, n)| n).sum::<usize>()));
    }
    words.join(", ")
}

/// Another place of a block: the object, if it is another one, and the node, if it is.
pub fn other_place(first: &CausesAtPlace<'_>, other: &CausesAtPlace<'_>) -> String {
    let object = other.object().filter(|object| first.object() != Some(object)).map(object_name);
    let path = |place: &CausesAtPlace<'_>| place.cause().finding.body.path.clone();
    let path = path(other).filter(|own| Some(own) != path(first).as_ref());
    object.into_iter().chain(path).collect::<Vec<_>>().join(", ")
}

/// Whether the lines of the manifest must not be shown: a Secret's values never reach any output.
pub fn hides_lines(finding: &Finding, redact: bool, excerpts: &dyn Excerpts) -> bool {
    let secret = finding.object.as_ref().is_some_and(ObjectRef::is_secret);
    let names_secret = |source: &Source| excerpt::place_names_secret(source, excerpts);
    secret
        || redact && !finding.object.as_ref().is_some_and(ObjectRef::is_crd)
        || finding.source.as_ref().is_some_and(names_secret)
}

/// The object, the versions and the field, to find it in the cluster.
pub fn place_in_object(cause: &GroupedFinding<'_>) -> String {
    let object = cause.finding.object.as_ref().map(object_name);
    let versions = Some(cause.versions()).filter(|versions| !versions.is_empty());
    let words: Vec<String> = [object, versions, cause.finding.body.path.clone()]
        .iter()
        .flatten()
        .map(|word| text::cut(&text::sanitize(word), LONGEST_MESSAGE).into_owned())
        .collect();
    words.join(", ")
}

/// The name of a CRD; other objects as kubectl shows them.
pub fn object_name(object: &ObjectRef) -> String {
    if object.is_crd() { object.name.clone() } else { object.to_string() }
}

/// Who is affected, and how.
pub fn affected_party(breaks: Breaks) -> (&'static str, &'static str) {
    match breaks {
        Breaks::StoredObjects => {
            ("stored objects", "the server refuses updates of invalid ones, even if they keep the invalid value")
        }
        Breaks::Writers => ("writers", "the server refuses or drops what they send today"),
        Breaks::Readers => ("readers", "they no longer find what they read today"),
        Breaks::Data => ("data", "the server drops values from objects when they are next written"),
        Breaks::Behaviour => ("behaviour", "the same object has a different meaning"),
    }
}

/// What the proof says of a schema node, in two or three words.
pub fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "same meaning",
        Verdict::Widening => "accepts more",
        Verdict::Narrowing => "refuses more",
        Verdict::Incomparable => "refuses some, accepts others",
        Verdict::DataLoss => "drops values",
        Verdict::Undecided => "undecided",
    }
}

/// How these are affected, by what is known of the findings.
pub fn describe_effect(breaks: Breaks, findings: &[&Finding]) -> String {
    match describe_refused_updates(breaks, findings) {
        Some(refused) => refused,
        // Not a value is invalid, but the version or the kind is not there.
        None if breaks == Breaks::StoredObjects && findings.iter().all(|finding| finding.body.path.is_none()) => {
            "the server can no longer read or write some of them".to_owned()
        }
        None => affected_party(breaks).1.to_owned(),
    }
}

/// Which updates of stored objects are refused, if it is proven.
fn describe_refused_updates(breaks: Breaks, findings: &[&Finding]) -> Option<String> {
    let mut proven =
        findings.iter().flat_map(|finding| &finding.body.witnesses).filter_map(|it| it.refused_updates.as_ref());
    let refused = proven.next().filter(|_| breaks == Breaks::StoredObjects)?;
    let field = |field: &str| text::cut(&text::sanitize(field), LONGEST_MESSAGE).into_owned();
    Some(match refused {
        RefusedUpdates::Every => "the server refuses every update of invalid ones, even of labels".to_owned(),
        RefusedUpdates::OfStatus => "the server refuses every write of the status of invalid ones".to_owned(),
        RefusedUpdates::Applies => "the server refuses every server-side apply of invalid ones".to_owned(),
        RefusedUpdates::ChangesOf(part) => {
            format!("the server refuses invalid ones when anything in {} is changed", field(part))
        }
        RefusedUpdates::ChangesOfList(list) => {
            format!(
                "the server refuses invalid ones when {} is changed in any way (for example an item is added)",
                field(list)
            )
        }
    })
}

/// `accepted today, refused with this change: …`
pub fn witness_result(witness: &Witness) -> String {
    let today = match witness.live {
        WitnessVerdict::Accepted => "accepted today",
        WitnessVerdict::Refused => "refused today",
        WitnessVerdict::Pruned => "loses values today",
        WitnessVerdict::Defaulted => "gets defaults today",
    };
    let tomorrow = match witness.desired {
        WitnessVerdict::Accepted => "accepted with this change",
        WitnessVerdict::Refused => "refused with this change",
        WitnessVerdict::Pruned => "loses values with this change",
        WitnessVerdict::Defaulted => "gets defaults with this change",
    };
    let message = text::sanitize(&witness.message);
    let message = match message.is_empty() {
        true => String::new(),
        false => format!(": {}", text::cut(&message, LONGEST_MESSAGE)),
    };
    let through = witness.subresource.as_deref().map_or_else(String::new, |subresource| {
        format!(", written through the {} subresource", text::sanitize(subresource))
    });
    format!("{today}, {tomorrow}{through}{message}")
}

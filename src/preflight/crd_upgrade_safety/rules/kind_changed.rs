//! The kind or the plural of a CRD changes.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "KindChanged",
        summary: "the kind of a CRD changes",
        reports: "A change of `spec.names.kind` or `spec.names.plural`.",
        why: "Every object names its kind, and stored objects have the old name. The API server therefore refuses the \
            change.",
        example: Example::Crd {
            live: "\
spec:
  names:
    kind: Sample
    plural: samples
",
            desired: "\
spec:
  names:
    kind: Example
    plural: samples
",
        },
        what_to_do: "Keep the name. If you need another one, define a new kind in a CRD of its own, move the objects \
            to it, then delete the old CRD.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let (was, now) = (&pair.live.names, &pair.desired.names);
    [("kind", &was.kind, &now.kind), ("plural", &was.plural, &now.plural)]
        .into_iter()
        .filter(|(_, was, now)| was != now)
        .map(|(name, was, now)| {
            let diagnosis = Diagnosis {
                message: format!("{name} may not be changed from {was} to {now}; the API server refuses it").into(),
                help: format!("keep {name}: {was}, or define a new kind in its own CRD and move the objects").into(),
                at: steps::name(name),
                label: Some(format!("was {was} in the live CRD")),
                ..Diagnosis::default()
            };
            Found { version: None, diagnosis }
        })
        .collect()
}

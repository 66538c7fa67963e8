//! What the user may do: the server's list of rules where that is whole, and single questions for the rest.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::cluster::{RulesReview, Target};
use crate::problem::Problem;
use crate::rbac::{Atom, PolicyRule};

/// Reviews that are under way at the same time.
const AT_ONCE: usize = 8;

/// A right in a namespace; `None`: in every one, or for what has none.
pub type Placed = (Option<String>, Atom);

/// The rules of one review, with names that are found at once: a deploy of many objects may be allowed by a rule that
/// names them all.
#[derive(Debug, Default)]
struct Reviewed {
    rules: Vec<(PolicyRule, HashSet<String>)>,
    incomplete: bool,
}

impl From<RulesReview> for Reviewed {
    fn from(review: RulesReview) -> Self {
        let named = |rule: PolicyRule| {
            let names = rule.resource_names.iter().cloned().collect();
            (rule, names)
        };
        Reviewed { rules: review.rules.into_iter().map(named).collect(), incomplete: review.incomplete }
    }
}

impl Reviewed {
    fn covers(&self, atom: &Atom) -> bool {
        self.rules.iter().any(|(rule, names)| rule.covers_with(atom, |name| names.contains(name)))
    }
}

/// The rights of the user, as far as they were asked for.
#[derive(Debug, Default)]
pub struct Held {
    reviews: BTreeMap<Option<String>, Reviewed>,
    /// Rights that no list shows and that the server granted when it was asked for each.
    granted: BTreeSet<Placed>,
    /// The user may do everything, whatever the lists show: they leave the group `system:masters` out.
    everything: bool,
}

impl Held {
    /// Asks what rules hold everywhere, and then only in the namespaces where that does not do.
    pub async fn review(target: &Target, wanted: &[Placed]) -> Result<Held, Problem> {
        let mut held = Held::default();
        let everywhere = rules(target, None).await?;
        let lacking: BTreeSet<String> = wanted
            .iter()
            .filter(|(_, atom)| !everywhere.covers(atom))
            .filter_map(|(namespace, _)| namespace.clone())
            .collect();
        let reviews = stream::iter(lacking).map(|namespace| async move {
            let review = rules(target, Some(&namespace)).await?;
            Ok((Some(namespace), review))
        });
        let reviews: Vec<_> = reviews.buffer_unordered(AT_ONCE).try_collect().await?;
        held.reviews.extend(reviews);
        held.reviews.insert(None, everywhere);
        held.ask(target, wanted).await?;
        Ok(held)
    }

    /// Asks for what no list shows: first whether the user may do everything, then for each right where the list may be
    /// a part only. One question for all namespaces and names may answer for many.
    async fn ask(&mut self, target: &Target, wanted: &[Placed]) -> Result<(), Problem> {
        if wanted.iter().all(|(namespace, atom)| self.has(namespace.as_deref(), atom)) {
            return Ok(());
        }
        let [everything, _] = Atom::everything();
        self.everything = target.access_review(None, &everything).await?;
        let mut asked = BTreeSet::new();
        type Widen = fn(&Placed) -> Placed;
        let widest_first: [Widen; 3] =
            [|right| (None, unnamed(&right.1)), |right| (right.0.clone(), unnamed(&right.1)), Placed::clone];
        for widen in widest_first {
            let open = wanted.iter().filter(|(namespace, atom)| {
                !self.has(namespace.as_deref(), atom) && !self.is_complete(namespace.as_deref())
            });
            let questions: BTreeSet<Placed> = open.map(widen).filter(|question| !asked.contains(question)).collect();
            asked.extend(questions.iter().cloned());
            let answers = stream::iter(questions).map(|question| async move {
                let allowed = target.access_review(question.0.as_deref(), &question.1).await?;
                Ok(allowed.then_some(question))
            });
            let answers: Vec<Option<Placed>> = answers.buffer_unordered(AT_ONCE).try_collect().await?;
            self.granted.extend(answers.into_iter().flatten());
        }
        Ok(())
    }

    /// Whether the user may do that, as far as anybody has asked.
    pub fn has(&self, namespace: Option<&str>, atom: &Atom) -> bool {
        let granted = |namespace: Option<&str>, atom: &Atom| {
            !self.granted.is_empty() && self.granted.contains(&(namespace.map(str::to_owned), atom.clone()))
        };
        self.everything
            || self.covers(namespace, atom)
            || granted(namespace, atom)
            || granted(namespace, &unnamed(atom))
            || granted(None, &unnamed(atom))
    }

    /// The rights among these that the user holds by no RBAC rule. Only those count for handing them on, and the list
    /// has all of them: what may be missing in it is what other authorizers allow.
    pub fn lacking(&self, namespace: Option<&str>, wanted: &BTreeSet<Atom>) -> BTreeSet<Atom> {
        wanted.iter().filter(|atom| !self.covers(namespace, atom)).cloned().collect()
    }

    /// Whether the list of rules is all that the user may do.
    pub fn is_complete(&self, namespace: Option<&str>) -> bool {
        !self.found(namespace).is_some_and(|review| review.incomplete)
    }

    fn covers(&self, namespace: Option<&str>, atom: &Atom) -> bool {
        self.found(namespace).is_some_and(|review| review.covers(atom))
    }

    /// A namespace's own list holds what goes for all; where it was not asked for, that is enough.
    fn found(&self, namespace: Option<&str>) -> Option<&Reviewed> {
        self.reviews.get(&namespace.map(str::to_owned)).or_else(|| self.reviews.get(&None))
    }

    #[cfg(test)]
    pub fn of(rules: Vec<PolicyRule>) -> Held {
        let review = RulesReview { rules, incomplete: false };
        Held { reviews: BTreeMap::from([(None, review.into())]), ..Held::default() }
    }
}

async fn rules(target: &Target, namespace: Option<&str>) -> Result<Reviewed, Problem> {
    // A target without users is no place for this check.
    target.rules_review(namespace).await.unwrap_or_else(|| Ok(RulesReview::default())).map(Reviewed::from)
}

/// The same right on whatever name.
fn unnamed(atom: &Atom) -> Atom {
    match atom.clone() {
        Atom::Resource { group, resource, verb, .. } => Atom::Resource { group, resource, name: None, verb },
        url @ Atom::Url { .. } => url,
    }
}

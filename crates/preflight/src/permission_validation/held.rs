//! The rights of the user: from the server's list of rules if that is complete, and from access reviews for the rest.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::stream::{self, StreamExt, TryStreamExt};

use gantry_cluster::{DRY_RUNS_IN_FLIGHT, RulesReview, Target};
use gantry_core::problem::Problem;
use gantry_core::rbac::{Atom, PolicyRule};

/// A right in a namespace; `None` means all namespaces, or a cluster-scoped object.
pub type ScopedRight = (Option<String>, Atom);

/// The rules of one review, each with a set of its resource names for fast lookup: a single rule may name every object
/// of a large deploy.
#[derive(Debug, Default)]
struct Reviewed {
    rules: Vec<(PolicyRule, HashSet<String>)>,
    incomplete: bool,
}

impl From<RulesReview> for Reviewed {
    fn from(review: RulesReview) -> Self {
        let with_names = |rule: PolicyRule| {
            let names = rule.resource_names.iter().cloned().collect();
            (rule, names)
        };
        Reviewed { rules: review.rules.into_iter().map(with_names).collect(), incomplete: review.incomplete }
    }
}

impl Reviewed {
    fn covers(&self, atom: &Atom) -> bool {
        self.rules.iter().any(|(rule, names)| rule.covers_with(atom, |name| names.contains(name)))
    }
}

/// The rights of the user, as far as they were reviewed.
#[derive(Debug, Default)]
pub struct ReviewedRights {
    reviews: BTreeMap<Option<String>, Reviewed>,
    /// Rights that are not in a list of rules, but that an access review confirmed.
    granted: BTreeSet<ScopedRight>,
    /// Whether the user may do everything. The lists do not show the rights of the group `system:masters`.
    everything: bool,
    /// The ServiceAccount whose rights these are, by namespace and name, if it is not the user. Only access reviews tell
    /// what it may do.
    account: Option<(String, String)>,
}

impl ReviewedRights {
    /// Reads the rules that apply everywhere, and then those of the namespaces in which a right is still missing.
    pub async fn review(target: &Target, wanted: &[ScopedRight]) -> Result<ReviewedRights, Problem> {
        let mut held = ReviewedRights::default();
        // No list shows the rights of the group `system:masters`. The review of these waits for nothing.
        let [all, _] = Atom::everything();
        let (everywhere, everything) = futures::join!(rules(target, None), target.access_review(None, &all));
        let everywhere = everywhere?;
        let lacking: BTreeSet<String> = wanted
            .iter()
            .filter(|(_, atom)| !everywhere.covers(atom))
            .filter_map(|(namespace, _)| namespace.clone())
            .collect();
        let reviews = stream::iter(lacking).map(|namespace| async move {
            let review = rules(target, Some(&namespace)).await?;
            Ok((Some(namespace), review))
        });
        let reviews: Vec<_> = reviews.buffer_unordered(DRY_RUNS_IN_FLIGHT).try_collect().await?;
        held.reviews.extend(reviews);
        held.reviews.insert(None, everywhere);
        held.ask(target, wanted, everything).await?;
        Ok(held)
    }

    /// The rights of a ServiceAccount, as far as they are wanted. It also has these rules, which the deploy grants to it.
    pub async fn review_account(
        target: &Target,
        account: (&str, &str),
        wanted: &[ScopedRight],
        granted: Vec<(Option<String>, PolicyRule)>,
    ) -> Result<ReviewedRights, Problem> {
        let owned = (account.0.to_owned(), account.1.to_owned());
        let mut held = ReviewedRights { account: Some(owned), ..ReviewedRights::default() };
        let mut of_namespaces: BTreeMap<Option<String>, Vec<PolicyRule>> = BTreeMap::from([(None, Vec::new())]);
        for (namespace, rule) in granted {
            of_namespaces.entry(namespace).or_default().push(rule);
        }
        let everywhere = of_namespaces[&None].clone();
        for (namespace, mut rules) in of_namespaces {
            rules.extend(namespace.iter().flat_map(|_| everywhere.clone()));
            held.reviews.insert(namespace, RulesReview { rules, incomplete: true }.into());
        }
        let [all, _] = Atom::everything();
        let everything = target.account_access_review(account, None, &all).await;
        held.ask(target, wanted, everything).await?;
        Ok(held)
    }

    /// Asks for further rights.
    pub async fn ask_also(&mut self, target: &Target, wanted: &[ScopedRight]) -> Result<(), Problem> {
        let everything = Ok(self.everything);
        self.ask(target, wanted, everything).await
    }

    /// Sends access reviews for rights that no list shows, and whose list may be incomplete, unless the user may do
    /// everything. The widest review comes first, as one for all namespaces and names may answer for many rights.
    async fn ask(
        &mut self,
        target: &Target,
        wanted: &[ScopedRight],
        everything: Result<bool, Problem>,
    ) -> Result<(), Problem> {
        if wanted.iter().all(|(namespace, atom)| self.has(namespace.as_deref(), atom)) {
            return Ok(());
        }
        self.everything = everything?;
        let mut asked = BTreeSet::new();
        type Widen = fn(&ScopedRight) -> ScopedRight;
        let widest_first: [Widen; 3] =
            [|right| (None, unnamed(&right.1)), |right| (right.0.clone(), unnamed(&right.1)), ScopedRight::clone];
        for widen in widest_first {
            let open = wanted.iter().filter(|(namespace, atom)| {
                !self.has(namespace.as_deref(), atom) && !self.is_complete(namespace.as_deref())
            });
            let questions: BTreeSet<ScopedRight> =
                open.map(widen).filter(|question| !asked.contains(question)).collect();
            asked.extend(questions.iter().cloned());
            let account = self.account.as_ref();
            let answers = stream::iter(questions).map(|question| async move {
                let allowed = match account {
                    None => target.access_review(question.0.as_deref(), &question.1).await?,
                    Some((of, name)) => {
                        target.account_access_review((of, name), question.0.as_deref(), &question.1).await?
                    }
                };
                Ok(allowed.then_some(question))
            });
            let answers: Vec<Option<ScopedRight>> = answers.buffer_unordered(DRY_RUNS_IN_FLIGHT).try_collect().await?;
            self.granted.extend(answers.into_iter().flatten());
        }
        Ok(())
    }

    /// Whether the user has the right, according to the reviews.
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

    /// The rights among these that no RBAC rule grants to the user. For granting rights, the server counts only RBAC
    /// rules, and the list always contains all of these: it may only lack what other authorizers allow.
    pub fn missing_rights(&self, namespace: Option<&str>, wanted: &BTreeSet<Atom>) -> BTreeSet<Atom> {
        let holds = |atom: &&Atom| match self.account {
            None => self.covers(namespace, atom),
            Some(_) => self.has(namespace, atom),
        };
        wanted.iter().filter(|atom| !holds(atom)).cloned().collect()
    }

    /// Whether the list of rules is complete.
    pub fn is_complete(&self, namespace: Option<&str>) -> bool {
        !self.review_of(namespace).is_some_and(|review| review.incomplete)
    }

    fn covers(&self, namespace: Option<&str>, atom: &Atom) -> bool {
        self.review_of(namespace).is_some_and(|review| review.covers(atom))
    }

    /// The review of the namespace, which includes the rules that apply everywhere, or else the review for everywhere.
    fn review_of(&self, namespace: Option<&str>) -> Option<&Reviewed> {
        self.reviews.get(&namespace.map(str::to_owned)).or_else(|| self.reviews.get(&None))
    }

    #[cfg(test)]
    pub fn of_rules(rules: Vec<PolicyRule>) -> ReviewedRights {
        let review = RulesReview { rules, incomplete: false };
        ReviewedRights { reviews: BTreeMap::from([(None, review.into())]), ..ReviewedRights::default() }
    }
}

async fn rules(target: &Target, namespace: Option<&str>) -> Result<Reviewed, Problem> {
    // The check does not run on targets without users.
    target.rules_review(namespace).await.unwrap_or_else(|| Ok(RulesReview::default())).map(Reviewed::from)
}

/// The same right without a resource name.
fn unnamed(atom: &Atom) -> Atom {
    match atom.clone() {
        Atom::Resource { group, resource, verb, .. } => Atom::Resource { group, resource, name: None, verb },
        url @ Atom::Url { .. } => url,
    }
}

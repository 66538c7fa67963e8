//! How many, and how many of them are shown.

use crate::ChangeEntry;
use gantry_core::finding::Action;

/// All actions, in the order of the report.
pub const ACTIONS: [Action; 10] = [
    Action::Create,
    Action::Adopt,
    Action::Update,
    Action::Replace,
    Action::Delete,
    Action::Orphan,
    Action::Unchanged,
    Action::Skip,
    Action::InstalledByOlm,
    Action::Unknown,
];

/// `2 create, 1 unchanged`
pub fn action_counts(changes: &[ChangeEntry]) -> String {
    let words = ACTIONS.into_iter().filter_map(|action| {
        let number = changes.iter().filter(|change| change.action == action).count();
        (number > 0).then(|| format!("{number} {}", action_word(action)))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The word for an action: `create`.
pub fn action_word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Adopt => "adopt",
        Action::Update => "update",
        Action::Replace => "replace",
        Action::Unchanged => "unchanged",
        Action::Delete => "delete",
        Action::Orphan => "orphan",
        Action::Skip => "skip",
        Action::InstalledByOlm => "would be installed by OLM",
        Action::Unknown => "unread",
    }
}

/// Divides `total` among these: each gets what it needs; if that is too much in all, the largest get less.
pub fn shown_shares(wanted: &[usize], total: usize) -> Vec<usize> {
    let mut left = total;
    let mut shares = vec![0; wanted.len()];
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| wanted[*at]);
    for (number, at) in order.into_iter().enumerate() {
        shares[at] = wanted[at].min(left / (wanted.len() - number));
        left -= shares[at];
    }
    shares
}

//! How the object of a manifest is deployed, if an annotation selects it.

use super::Action;

/// The strategy that an annotation selects. If several do, the first of them applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeployStrategy {
    /// `noop`, `exists`: the deploy does not write the object. With `exists`, a deploy that waits also waits until it
    /// exists.
    LeaveAlone,
    /// `update-strategy: skip`: it is created if it is missing, and never updated.
    CreateOnly,
    /// `update-strategy: always-replace`: it is deleted and created again at any change.
    Replace,
    /// `update-strategy: fallback-on-replace`: it is deleted and created again if the server refuses the update.
    ReplaceRefused,
}

impl DeployStrategy {
    /// The action with this strategy.
    pub fn apply(self, action: Action) -> Action {
        match (self, action) {
            (_, Action::Unchanged | Action::Unknown) | (DeployStrategy::CreateOnly, Action::Create) => action,
            // See `strategy::replace`.
            (DeployStrategy::Replace | DeployStrategy::ReplaceRefused, _) => action,
            _ => Action::Skip,
        }
    }
}

//! The step limit of rule evaluation.
//!
//! Every CEL expression terminates, but a few nested loops over a large object can take hours. The API server counts
//! an abstract cost and stops at a limit; this does the same with steps. A rule that does not finish within the budget
//! is undecided, never assumed to hold.

use crate::release::KubernetesRelease;

/// The step limit for one rule on one value: the server's limit per call.
pub const COST_PER_CALL: u64 = 1_000_000;
/// The step limit for all rules of one object: the server's limit per object.
pub const COST_PER_OBJECT: u64 = 10_000_000;

/// The reason for a rule that does not finish.
pub const EXHAUSTED: &str = "the rule takes more steps than its budget allows";

/// The remaining steps for the rules of one object, and the release of the server that counts them.
#[derive(Debug, Clone)]
pub struct CelBudget {
    object: u64,
    rule: u64,
    release: KubernetesRelease,
}

impl Default for CelBudget {
    fn default() -> Self {
        CelBudget::new(COST_PER_OBJECT)
    }
}

impl CelBudget {
    /// A budget of `steps` for all rules of one object; a single rule gets at most a million of them.
    pub fn new(steps: u64) -> Self {
        CelBudget { object: steps, rule: COST_PER_CALL.min(steps), release: KubernetesRelease::default() }
    }

    /// Evaluates as a server of this release does; without this, as the newest known one.
    pub fn with_release(self, release: KubernetesRelease) -> Self {
        CelBudget { release, ..self }
    }

    /// See [`CelBudget::with_release`].
    pub(crate) fn release(&self) -> KubernetesRelease {
        self.release
    }

    /// The remaining steps for the rules of the object.
    pub fn remaining(&self) -> u64 {
        self.object
    }

    /// Resets the limit for the next rule.
    pub(crate) fn next_rule(&mut self) {
        self.rule = COST_PER_CALL.min(self.object);
    }

    /// Consumes `steps`; an error if not enough steps are left.
    pub(crate) fn take(&mut self, steps: u64) -> Result<(), super::fault::EvaluationError> {
        match self.rule.checked_sub(steps) {
            Some(rest) => {
                self.rule = rest;
                self.object -= steps;
                Ok(())
            }
            None => {
                // Swallowing the fault must gain nothing: every later step fails as well.
                self.object -= self.rule;
                self.rule = 0;
                Err(super::fault::EvaluationError::Undecided(EXHAUSTED.to_owned()))
            }
        }
    }

    /// Consumes `steps` minus those already consumed since `before` steps remained.
    pub(crate) fn take_up_to(&mut self, before: u64, steps: u64) -> Result<(), super::fault::EvaluationError> {
        self.take(steps.saturating_sub(before.saturating_sub(self.object)))
    }

    /// Whether the current rule has used up its steps.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rule == 0
    }
}

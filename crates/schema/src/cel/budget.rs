//! The step limit of rule evaluation.
//!
//! CEL always ends, but a few nested loops over a large object can take hours to do so. The API server counts an
//! abstract cost and gives up at a limit; the same idea is used here with plain steps. What does not end within the
//! budget is undecided, it is never taken for a rule that holds.

/// Steps that one rule may take on one value: the server's own limit per call.
const STEPS_PER_RULE: u64 = 1_000_000;
/// Steps that all rules of one object may take together: the server's own limit per object.
const STEPS_PER_OBJECT: u64 = 10_000_000;

/// What is left to spend on the rules of one object.
#[derive(Debug, Clone)]
pub struct Budget {
    object: u64,
    rule: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(STEPS_PER_OBJECT)
    }
}

impl Budget {
    /// A budget of `steps` for all rules of one object; no single rule gets more than a million of them.
    pub fn new(steps: u64) -> Self {
        Budget { object: steps, rule: STEPS_PER_RULE.min(steps) }
    }

    /// What is left for the rules of the object.
    pub fn remaining(&self) -> u64 {
        self.object
    }

    /// Starts the account of the next rule.
    pub(crate) fn next_rule(&mut self) {
        self.rule = STEPS_PER_RULE.min(self.object);
    }

    /// Takes `steps`, or says that nothing is left.
    pub(crate) fn take(&mut self, steps: u64) -> Result<(), super::fault::Fault> {
        match self.rule.checked_sub(steps) {
            Some(rest) => {
                self.rule = rest;
                self.object -= steps;
                Ok(())
            }
            None => {
                // Nothing may be gained by swallowing the fault: whatever comes next faults as well.
                self.object -= self.rule;
                self.rule = 0;
                Err(super::fault::Fault::Undecided("the rule takes more steps than its budget allows".to_owned()))
            }
        }
    }

    /// Takes what of `steps` was not taken since `before` remained.
    pub(crate) fn take_up_to(&mut self, before: u64, steps: u64) -> Result<(), super::fault::Fault> {
        self.take(steps.saturating_sub(before.saturating_sub(self.object)))
    }

    /// Whether the rule at hand has used up all it had.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rule == 0
    }
}

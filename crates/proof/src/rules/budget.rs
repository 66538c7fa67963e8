//! What a question about one rule may use. A step is one of the steps that the caller's [`Limits`](crate::Limits) allow.

/// The limits of a question about one rule, and what its parts cost.
pub struct RuleBudget {
    /// The automaton steps for building strings.
    pub max_automaton_steps: u64,
    /// The same for repairing one candidate.
    pub max_automaton_steps_per_repair: u64,
    /// The maximum number of rule runs for a question that may be proven.
    pub max_runs_to_prove: usize,
    /// The maximum number of rule runs for a question that can only be refuted, and of its values.
    pub max_runs_to_refute: usize,
    /// The maximum number of values for a question.
    pub max_values: usize,
    /// The maximum number of values for a question about the rule alone.
    pub max_values_of_rule_alone: usize,
    /// The maximum number of live's rules that are used for one desired rule.
    pub max_live_rules: usize,
    /// The maximum number of counterexamples.
    pub max_counterexamples: usize,
    /// The maximum number of candidates that are completed and validated against the whole live schema.
    pub max_completed_candidates: usize,
    /// The maximum number of candidates that are repaired because live's rules refuse them.
    pub max_repaired_candidates: usize,
    /// The maximum number of values whose rules are repaired for one candidate.
    pub max_repairs: usize,
    /// The maximum number of changes of one of these values that are pursued.
    pub max_changes_per_repair: usize,
    /// The maximum number of variants of one place of a candidate that is repaired.
    pub max_variants: usize,
    /// The cost of one rule run.
    pub steps_per_run: u64,
    /// The cost of reading a rule or completing a candidate.
    pub steps_per_completion: u64,
    /// The bytes of a rule that are read in one step.
    pub rule_bytes_per_step: u64,
    /// The number of live's rules that are searched in one step.
    pub live_rules_per_step: u64,
    /// The CEL cost of rules that run in one step.
    pub cel_cost_per_step: u64,
    /// The bytes of a defaulted value that are made in one step.
    pub defaulted_bytes_per_step: u64,
}

/// The budget of every question.
pub const BUDGET: RuleBudget = RuleBudget {
    max_automaton_steps: 1_000_000,
    max_automaton_steps_per_repair: 100_000,
    max_runs_to_prove: 60_000,
    max_runs_to_refute: 4_000,
    max_values: 20_000,
    max_values_of_rule_alone: 1_500,
    max_live_rules: 64,
    max_counterexamples: 3,
    max_completed_candidates: 100,
    max_repaired_candidates: 6,
    max_repairs: 48,
    max_changes_per_repair: 8,
    max_variants: 300,
    steps_per_run: 8,
    steps_per_completion: 50,
    rule_bytes_per_step: 4,
    live_rules_per_step: 16,
    cel_cost_per_step: 4,
    defaulted_bytes_per_step: 512,
};

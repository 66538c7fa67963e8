//! The CEL engine behind the validator's interface.

use serde_json::Value as Json;

use gantry_k8s_cel::re2::Patterns;
use gantry_k8s_cel::{
    CelBudget, CelRuleResult, CompiledRule, KubernetesRelease, RuleFailureReason, compile_rules_sharing,
};

use crate::{CompileRules, EvaluateRules, FieldErrorKind, RuleVerdict};

/// Evaluates the rules of a schema.
#[derive(Debug, Clone, Default)]
pub struct Engine {
    patterns: Patterns,
}

impl Engine {
    /// An engine whose rules share compiled patterns with others.
    pub fn sharing(patterns: &Patterns) -> Self {
        Engine { patterns: patterns.clone() }
    }
}

impl CompileRules for Engine {
    fn compile(&self, schema: &Json, is_root: bool, validations: &[Json]) -> Box<dyn EvaluateRules> {
        Box::new(CompiledRules(compile_rules_sharing(schema, validations, is_root, &self.patterns)))
    }
}

#[derive(Debug)]
struct CompiledRules(Vec<CompiledRule>);

impl EvaluateRules for CompiledRules {
    fn evaluate(
        &self,
        this: &Json,
        old: Option<&Json>,
        release: KubernetesRelease,
        budget: &mut u64,
    ) -> Vec<(&str, RuleVerdict)> {
        let mut left = CelBudget::new(*budget).with_release(release);
        let verdicts = self.0.iter().map(|rule| (rule.source(), verdict(rule, this, old, &mut left))).collect();
        *budget = left.remaining();
        verdicts
    }
}

fn verdict(rule: &CompiledRule, this: &Json, old: Option<&Json>, budget: &mut CelBudget) -> RuleVerdict {
    match rule.evaluate(this, old, budget) {
        CelRuleResult::Holds => RuleVerdict::Holds,
        CelRuleResult::NotApplicable => RuleVerdict::NotApplicable,
        CelRuleResult::Undecided(reason) => RuleVerdict::Undecided(reason),
        CelRuleResult::Fails(failure) if failure.is_error => {
            RuleVerdict::Errs { message: failure.message, type_name: rule.type_name().to_owned() }
        }
        CelRuleResult::Fails(failure) => RuleVerdict::Fails {
            message: failure.message,
            kind: match failure.reason {
                RuleFailureReason::Invalid => FieldErrorKind::Invalid,
                RuleFailureReason::Forbidden => FieldErrorKind::Forbidden,
                RuleFailureReason::Required => FieldErrorKind::Required,
                RuleFailureReason::Duplicate => FieldErrorKind::Duplicate,
            },
            field_path: failure.field_path,
            is_transition: rule.is_transition(),
        },
    }
}

//! The CEL engine behind the validator's interface.

use serde_json::Value as Json;

use super::{Answer, Budget, Reason, Rule, compile_rules_sharing};
use crate::{CompileRules, Kind, Patterns, Rules, Verdict};

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
    fn compile(&self, schema: &Json, is_root: bool, validations: &[Json]) -> Box<dyn Rules> {
        Box::new(Compiled(compile_rules_sharing(schema, validations, is_root, &self.patterns)))
    }
}

#[derive(Debug)]
struct Compiled(Vec<Rule>);

impl Rules for Compiled {
    fn evaluate(&self, this: &Json, old: Option<&Json>, budget: &mut u64) -> Vec<(&str, Verdict)> {
        let mut left = Budget::new(*budget);
        let verdicts = self.0.iter().map(|rule| (rule.source(), verdict(rule, this, old, &mut left))).collect();
        *budget = left.remaining();
        verdicts
    }
}

fn verdict(rule: &Rule, this: &Json, old: Option<&Json>, budget: &mut Budget) -> Verdict {
    match rule.evaluate(this, old, budget) {
        Answer::Holds => Verdict::Holds,
        Answer::NotApplicable => Verdict::NotApplicable,
        Answer::Undecided(reason) => Verdict::Undecided(reason),
        Answer::Fails(failure) if failure.is_error => {
            Verdict::Errs { message: failure.message, type_name: rule.type_name().to_owned() }
        }
        Answer::Fails(failure) => Verdict::Fails {
            message: failure.message,
            kind: match failure.reason {
                Reason::Invalid => Kind::Invalid,
                Reason::Forbidden => Kind::Forbidden,
                Reason::Required => Kind::Required,
                Reason::Duplicate => Kind::Duplicate,
            },
            field_path: failure.field_path,
            is_transition: rule.is_transition(),
        },
    }
}

//! The maximum cost of rules at run time, by the server's estimate.
//!
//! The server estimates the cost of a rule when a CRD is written, and counts it when an object is written. The limits
//! at run time are a tenth of those of the estimate, so a rule in an accepted CRD can still be too expensive for some
//! objects, which the server then refuses.

use serde_json::Value as Json;

use super::environment::CelEnvironment;
use super::rule::compile_expression;
use super::types::CelType;

/// The maximum cost of each rule for one value of the node `schema`, by the model of the newest known release. `None` if
/// it cannot be estimated. `is_resource` is whether the node is the root of a custom resource.
pub fn most_costs(schema: &Json, validations: &[Json], is_resource: bool) -> Vec<Option<u64>> {
    let of = CelType::compile(schema, is_resource);
    let most = |validation: &Json| {
        let source = validation.get("rule").and_then(Json::as_str).unwrap_or_default();
        if source.trim().is_empty() {
            return Some(0);
        }
        let optional_old = validation.get("optionalOldSelf") == Some(&Json::Bool(true));
        compile_expression(source, &of, optional_old, CelEnvironment::default()).ok()?.cost.ok()
    };
    validations.iter().map(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{COST_PER_CALL, CelBudget, CelRuleResult, compile_rules};

    #[test]
    fn a_rule_whose_estimate_is_below_the_limit_is_evaluated_to_the_end() {
        let rules = [json!({"rule": "self.all(x, self.exists_one(y, x == y))"})];
        for (items, is_cheap) in [(50, true), (150, true), (600, false)] {
            let schema = json!({"type": "array", "maxItems": items, "items": {"type": "string", "maxLength": 8}});
            let most = most_costs(&schema, &rules, false)[0].expect("an estimate");
            assert_eq!(most <= COST_PER_CALL, is_cheap, "{items}: {most}");
            let list: Json = (0..items).map(|at| json!(format!("{at:08}"))).collect();
            let mut budget = CelBudget::new(10 * COST_PER_CALL);
            let verdict = compile_rules(&schema, &rules, false)[0].evaluate(&list, None, &mut budget);
            assert_eq!(verdict == CelRuleResult::Holds, is_cheap, "{items}: {verdict:?}");
        }
    }
}

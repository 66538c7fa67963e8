//! Changes that no object can show, because live's rules of a node above exclude the values: `!has(self.a.t)` makes a
//! new `pattern` of `t` void.

use serde_json::{Value, json};

use super::CompiledSides;
use crate::cel::{self, Implied, RuleSet};
use crate::constraints::SharedSchema;
use crate::keywords as kw;
use crate::product::{ExpectedEffect, Obligation, ValueStep};
use crate::solve::Solver;

impl CompiledSides<'_> {
    /// Whether the source's rules of some node above refuse every object with a value that the obligation is about.
    ///
    /// That is asked as a rule of the node above: that there is no such value, or that it is one that the target accepts.
    pub(super) fn is_excluded_by_rules<'s>(&self, solver: &Solver<'s>, obligation: &Obligation<'s>) -> bool {
        if !self.source.has_rules || obligation.effect == ExpectedEffect::Defaulted {
            return false;
        }
        let mut steps: Vec<&ValueStep> = Vec::new();
        let mut level = obligation.value_path.as_deref();
        let own = match level {
            None => Some(self.source.version.schema),
            Some(above) => match above.constraints.holds.first() {
                Some(SharedSchema::Ref(around)) => described(around, &[&above.step]),
                _ => None,
            },
        };
        if let Some(own) = own
            && self.rules_exclude_values(solver, obligation, (own, &[]), level.is_none())
        {
            return true;
        }
        while let Some(value_path) = level {
            steps.insert(0, &value_path.step);
            level = value_path.above.as_deref();
            let Some(SharedSchema::Ref(around)) = value_path.constraints.holds.first() else { return false };
            if self.rules_exclude_values(solver, obligation, (around, &steps), value_path.above.is_none()) {
                return true;
            }
        }
        false
    }

    /// Whether the rules of the schema `around` refuse every value, at the end of `steps` below it, that the obligation is
    /// about.
    fn rules_exclude_values<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        (around, steps): (&Value, &[&ValueStep]),
        is_root: bool,
    ) -> bool {
        let rules = kw::list(around, "x-kubernetes-validations");
        let is_named = |step: &&ValueStep| match step {
            ValueStep::Field(name) => rules.iter().any(|rule| rule.to_string().contains(name.as_str())),
            ValueStep::Entry(_) | ValueStep::Item => true,
        };
        if rules.is_empty() || !steps.first().is_none_or(is_named) {
            return false;
        }
        let Some(end) = described(around, steps) else { return false };
        let accepted = obligation.refused.as_ref().and_then(|refused| acceptance(refused, end));
        let whole = accepted.iter().filter_map(|last| absence("self", steps, last, 0));
        // Without what is above it, there is no value either.
        let named = steps.iter().take_while(|step| is_named(step)).count();
        let parts = (1..=named).rev().filter_map(|length| absence("self", &steps[..length], "false", 0));
        whole.chain(parts).any(|rule| {
            let asked = [json!({"rule": rule})];
            let live = RuleSet { schema: around, rules, is_root, keeps: false };
            let desired = RuleSet { rules: &asked, ..live };
            solver.with_means(|means| cel::implied(live, desired, means)) == Implied::Yes
        })
    }
}

/// The schema at the end of the path. None if one is not described, or if the value can be null, for which the
/// server evaluates no rule.
fn described<'v>(around: &'v Value, steps: &[&ValueStep]) -> Option<&'v Value> {
    let mut schema = around;
    for step in steps {
        let below = match step {
            ValueStep::Field(name) => kw::property(schema, name),
            ValueStep::Entry(_) => kw::get(schema, "additionalProperties").filter(|values| values.is_object()),
            ValueStep::Item => kw::get(schema, "items"),
        }?;
        if kw::flag(below, "nullable") || !kw::has_type(below) {
            return None;
        }
        schema = below;
    }
    Some(schema)
}

/// A rule that says that every value at the end of the path satisfies `last`, about the value `at`. None if a step
/// cannot be written in a rule.
fn absence(at: &str, steps: &[&ValueStep], last: &str, depth: usize) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else { return Some(last.replace(VALUE, at)) };
    Some(match step {
        ValueStep::Field(name) => {
            let name = gantry_k8s_cel::escape(name)?;
            let below = absence(&format!("{at}.{name}"), rest, last, depth)?;
            format!("!has({at}.{name}) || ({below})")
        }
        ValueStep::Item => {
            let item = format!("v{depth}");
            format!("{at}.all({item}, {})", absence(&item, rest, last, depth + 1)?)
        }
        ValueStep::Entry(_) => {
            let key = format!("v{depth}");
            format!("{at}.all({key}, {})", absence(&format!("{at}[{key}]"), rest, last, depth + 1)?)
        }
    })
}

/// Stands for the value at the end of the path.
const VALUE: &str = "VALUE";

/// What a schema with one keyword accepts, as an expression about [`VALUE`]. None if it is not one of the keywords
/// that can be written so, or if the value has another type.
fn acceptance(refused: &Value, schema: &Value) -> Option<String> {
    let own: Vec<(&String, &Value)> = refused
        .as_object()?
        .iter()
        .filter(|(keyword, _)| !matches!(keyword.as_str(), "type" | "nullable" | "x-kubernetes-int-or-string"))
        .collect();
    let [(keyword, value)] = own[..] else { return None };
    let kind = kw::type_name(schema)?;
    let size = |operator: &str| value.as_u64().map(|count| format!("size({VALUE}) {operator} {count}"));
    match (keyword.as_str(), kind) {
        ("maxLength", "string") | ("maxItems", "array") | ("maxProperties", "object") => size("<="),
        ("minLength", "string") | ("minItems", "array") | ("minProperties", "object") => size(">="),
        ("pattern", "string") => Some(format!("{VALUE}.matches({})", quoted(value.as_str()?))),
        ("enum", "string") => {
            let options = value.as_array()?.iter().map(|option| option.as_str().map(quoted));
            let options: Option<Vec<String>> = options.collect();
            Some(format!("{VALUE} in [{}]", options?.join(", ")))
        }
        ("required", "object") => {
            let names = value.as_array()?.iter().map(|name| gantry_k8s_cel::escape(name.as_str()?));
            let present = names.map(|name| Some(format!("has({VALUE}.{})", name?)));
            Some(present.collect::<Option<Vec<String>>>()?.join(" && "))
        }
        ("minimum", "integer") => value.as_i64().map(|bound| format!("{VALUE} >= {bound}")),
        ("maximum", "integer") => value.as_i64().map(|bound| format!("{VALUE} <= {bound}")),
        _ => None,
    }
}

/// The text as a literal of a rule.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '\'' | '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_that_a_path_leads_to_no_value_or_an_accepted_one() {
        let field = |name: &str| ValueStep::Field(name.to_owned());
        let steps = [field("a"), ValueStep::Item, field("x-y"), ValueStep::Entry("k".to_owned())];
        let steps: Vec<&ValueStep> = steps.iter().collect();
        let rule = absence("self", &steps, "size(VALUE) <= 3", 0);
        let expected = "!has(self.a) || (self.a.all(v0, !has(v0.x__dash__y) || (v0.x__dash__y.all(v1, \
                        size(v0.x__dash__y[v1]) <= 3))))";
        assert_eq!(rule.as_deref(), Some(expected));
        let text = json!({"type": "string"});
        let written = |refused: Value| acceptance(&refused, &text);
        assert_eq!(
            written(json!({"type": "string", "pattern": "^'\\d$"})).as_deref(),
            Some(r"VALUE.matches('^\'\\d$')")
        );
        assert_eq!(written(json!({"enum": ["a", "b"]})).as_deref(), Some("VALUE in ['a', 'b']"));
        assert_eq!(written(json!({"maxLength": 3, "minLength": 1})), None);
        assert_eq!(written(json!({"maximum": 3})), None);
    }
}

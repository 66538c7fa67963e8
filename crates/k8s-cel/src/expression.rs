//! An expression over whole objects without a schema, such as those of a ValidatingAdmissionPolicy: its variables are
//! plain data, whose types are determined during evaluation.

use serde_json::Value as Json;

use super::ast::Expr;
use super::budget::CelBudget;
use super::check::check_in;
use super::convert::native;
use super::eval::Evaluation;
use super::fault::EvaluationError;
use super::parser::parse;
use super::problem::{ExpressionError, ExpressionResult};
use super::resolve::resolve_in;
use super::typing::{BOOL, STRING, Ty};
use super::value::CelValue;
use crate::re2::Patterns;

/// The reason why an expression has no value, such as a missing field. Displays the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoExpressionValue(String);

impl From<String> for NoExpressionValue {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<NoExpressionValue> for String {
    fn from(error: NoExpressionValue) -> Self {
        error.0
    }
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct CelExpression {
    expr: Expr,
}

impl CelExpression {
    /// Compiles a boolean expression over `variables`.
    ///
    /// # Errors
    /// The reason why the API server would reject it.
    pub fn condition(source: &str, variables: &[&'static str]) -> Result<Self, ExpressionError> {
        Self::compile(source, variables, &BOOL)
    }

    /// Compiles an expression that returns a string.
    ///
    /// # Errors
    /// See [`CelExpression::condition`].
    pub fn message(source: &str, variables: &[&'static str]) -> Result<Self, ExpressionError> {
        Self::compile(source, variables, &STRING)
    }

    fn compile(source: &str, variables: &[&'static str], wanted: &Ty) -> Result<Self, ExpressionError> {
        let compiled = |source| -> ExpressionResult<(Expr, Ty)> {
            let mut expr = parse(source)?;
            resolve_in(&mut expr, variables, &Patterns::default())?.require_program()?;
            let ty = check_in(&expr, variables.iter().map(|name| (*name, Ty::Dyn)).collect())?;
            Ok((expr, ty))
        };
        let (expr, ty) = compiled(source)?;
        match ty {
            // As in a policy, `dyn` is not accepted in place of the wanted type.
            ty if ty == *wanted => Ok(CelExpression { expr }),
            ty => Err(format!("the expression must evaluate to {wanted}, not {ty}").into()),
        }
    }

    /// Evaluates a condition.
    ///
    /// # Errors
    /// The reason why it has no value, such as a missing field.
    pub fn holds(
        &self,
        variables: &[(&'static str, &Json)],
        budget: &mut CelBudget,
    ) -> Result<bool, NoExpressionValue> {
        match self.evaluate(variables, budget)? {
            CelValue::Bool(value) => Ok(value),
            other => Err(format!("the expression evaluates to {}, not to bool", other.type_name()).into()),
        }
    }

    /// Evaluates an expression that returns a string.
    ///
    /// # Errors
    /// See [`CelExpression::holds`].
    pub fn text(
        &self,
        variables: &[(&'static str, &Json)],
        budget: &mut CelBudget,
    ) -> Result<String, NoExpressionValue> {
        match self.evaluate(variables, budget)? {
            CelValue::String(text) => Ok(text.to_string()),
            other => Err(format!("the expression evaluates to {}, not to string", other.type_name()).into()),
        }
    }

    fn evaluate<'a>(
        &'a self,
        variables: &[(&'static str, &'a Json)],
        budget: &mut CelBudget,
    ) -> Result<CelValue<'a>, NoExpressionValue> {
        budget.next_rule();
        let variables = variables.iter().map(|(name, json)| (*name, Ok(native(json)))).collect();
        let value = Evaluation::new(variables, budget).eval(&self.expr);
        if budget.is_exhausted() {
            return Err("the expression takes more steps than its budget allows".to_owned().into());
        }
        value.map_err(
            |(EvaluationError::Error(text) | EvaluationError::Abort(text) | EvaluationError::Undecided(text))| {
                text.into()
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VARIABLES: &[&str] = &["object", "oldObject"];

    fn holds(source: &str, object: &Json, old: &Json) -> Result<bool, String> {
        let expression = CelExpression::condition(source, VARIABLES)?;
        Ok(expression.holds(&[("object", object), ("oldObject", old)], &mut CelBudget::default())?)
    }

    #[test]
    fn whole_objects_are_plain_data() {
        let object = json!({"kind": "Deployment", "metadata": {"name": "web", "labels": {"a.b/c": "x"}},
            "spec": {"replicas": 3, "ratio": 0.5, "containers": [{"image": "web:1"}, {"image": "web:latest"}]}});
        let old = json!({"spec": {"replicas": 3}});
        for (source, expected) in [
            ("object.spec.replicas <= 5 && object.spec.ratio < 1.0", true),
            ("object.spec.containers.all(c, !c.image.endsWith(':latest'))", false),
            ("object.metadata.labels['a.b/c'] == 'x'", true),
            ("has(object.metadata.labels) && !has(object.spec.missing)", true),
            ("oldObject == null || object.spec.replicas >= oldObject.spec.replicas", true),
            ("object.?spec.?missing.orValue(7) == 7", true),
            ("object.kind in ['Deployment', 'StatefulSet']", true),
            ("quantity('100Mi').isLessThan(quantity('1Gi'))", true),
        ] {
            assert_eq!(holds(source, &object, &old), Ok(expected), "{source}");
        }
        assert_eq!(holds("oldObject == null", &object, &Json::Null), Ok(true));
    }

    #[test]
    fn an_invalid_expression_is_an_error_before_it_is_evaluated() {
        for (source, reason) in [
            ("object.spec.replicas", "must evaluate to bool, not dyn"),
            ("self.x == 1", "undeclared reference to 'self'"),
            ("object.x ==", ""),
            ("object.x.frob()", "undeclared reference to 'frob'"),
            ("object.x.matches('(')", ""),
            ("'a'", "must evaluate to bool, not string"),
        ] {
            let error = CelExpression::condition(source, VARIABLES).unwrap_err();
            assert!(error.text.contains(reason), "{source}: {error}");
        }
        assert!(CelExpression::message("object.x", VARIABLES).is_err());
        assert!(CelExpression::message("'no ' + string(object.x)", VARIABLES).is_ok());
    }

    #[test]
    fn an_expression_without_a_value_is_an_error_and_no_verdict() {
        let object = json!({"list": (0..200).collect::<Vec<_>>(), "text": "x"});
        assert_eq!(holds("object.spec.x == 1", &object, &Json::Null), Err("no such key: spec".to_owned()));
        assert!(holds("object.text > 1", &object, &Json::Null).is_err());
        let costly = "object.list.all(a, object.list.all(b, object.list.all(c, a + b + c >= 0)))";
        assert!(holds(costly, &object, &Json::Null).unwrap_err().contains("more steps"));
    }
}

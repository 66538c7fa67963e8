//! The path from a whole object down to the node of an obligation.

use serde_json::Value;

use crate::product::{ExpectedEffect, Obligation, ValueStep};
use crate::rules::ViewStep;
use gantry_schema::{FieldError, RefusedBy, Step};

/// Steps from the root down.
pub struct Route<'d> {
    steps: Vec<&'d ValueStep>,
    /// For an obligation about a default: the field at the end of the path that is defaulted.
    defaulted: Option<&'d str>,
}

impl<'d> Route<'d> {
    pub fn for_obligation(obligation: &'d Obligation<'_>) -> Self {
        let mut steps: Vec<&ValueStep> = Vec::new();
        let mut level = obligation.value_path.as_deref();
        while let Some(value_path) = level {
            steps.push(&value_path.step);
            level = value_path.above.as_deref();
        }
        steps.reverse();
        let field = obligation.path.rsplit('.').next();
        Route { steps, defaulted: field.filter(|_| obligation.effect == ExpectedEffect::Defaulted) }
    }

    /// The number of steps.
    pub fn length(&self) -> usize {
        self.steps.len()
    }

    /// The field whose default is in question.
    pub fn defaulted_field(&self) -> Option<&'d str> {
        self.defaulted
    }

    /// Whether a place is in the field whose default is in question, or `None` if none is.
    pub fn leads_to_default(&self, place: &[Step]) -> Option<bool> {
        let field = self.defaulted?;
        let is_field = |rest: &[Step]| matches!(rest.first(), Some(Step::Key(key)) if key.as_str() == field);
        Some(self.rest_after(place).is_some_and(is_field))
    }

    /// The same path for the repair of rules.
    pub fn keys(&self) -> Vec<ViewStep> {
        let key = |step: &&ValueStep| match step {
            ValueStep::Field(name) => ViewStep::Field(name.clone()),
            ValueStep::Entry(_) => ViewStep::Value,
            ValueStep::Item => ViewStep::Item,
        };
        self.steps.iter().map(key).collect()
    }

    /// Whether `wanted` holds for any value at the end of the path, under any item or key.
    pub fn ends_at(&self, object: &Value, wanted: &dyn Fn(&Value) -> bool) -> bool {
        any_at(object, &self.steps, wanted)
    }

    /// The object with the first value at the end of the path that equals `old` replaced by `value`.
    pub fn replaced(&self, object: &Value, old: &Value, value: &Value) -> Option<Value> {
        let mut object = object.clone();
        let place = first_at(&mut object, &self.steps, &|found| found == old)?;
        *place = value.clone();
        Some(object)
    }

    /// Whether a place is the end of the path, or is in its field `field`.
    pub fn leads_through(&self, place: &[Step], field: &str) -> bool {
        self.rest_after(place).is_some_and(|rest| rest.first().is_none_or(|step| *step == Step::from(field)))
    }

    /// Whether a place is the end of the path or below it.
    pub fn leads_to(&self, place: &[Step]) -> bool {
        self.rest_after(place).is_some()
    }

    /// Whether the error comes from the node at the end of the path and not from a node below it. Errors of the node's
    /// own `allOf`, `anyOf`, `oneOf`, `not` or rules count as the node's, even if they concern values below.
    pub fn is_refused_by(&self, error: &FieldError) -> bool {
        let is_own = match &error.by {
            RefusedBy::Keyword(steps) | RefusedBy::Evaluation(steps) => nodes(steps) <= self.steps.len(),
            _ => true,
        };
        is_own && self.leads_to(&error.at)
    }

    /// The rest of a place after the end of the path. None: the path does not lead there.
    fn rest_after<'p>(&self, place: &'p [Step]) -> Option<&'p [Step]> {
        let (on_way, rest) = place.split_at_checked(self.steps.len())?;
        let fits = |(step, place): (&&ValueStep, &Step)| match (step, place) {
            (ValueStep::Field(name), Step::Key(key)) => name == key,
            // One key represents all keys without a property.
            (ValueStep::Entry(_), Step::Key(_)) | (ValueStep::Item, Step::Index(_)) => true,
            _ => false,
        };
        self.steps.iter().zip(on_way).all(fits).then_some(rest)
    }
}

/// The number of nodes below the root on the path to a keyword.
fn nodes(mut steps: &[Step]) -> usize {
    let mut nodes = 0;
    loop {
        steps = match steps {
            [Step::Key(keyword), Step::Key(_), rest @ ..] if keyword == "properties" => rest,
            [Step::Key(keyword), rest @ ..] if keyword == "items" || keyword == "additionalProperties" => rest,
            _ => return nodes,
        };
        nodes += 1;
    }
}

fn first_at<'v>(value: &'v mut Value, route: &[&ValueStep], wanted: &dyn Fn(&Value) -> bool) -> Option<&'v mut Value> {
    let Some((step, route)) = route.split_first() else { return wanted(value).then_some(value) };
    match (step, value) {
        (ValueStep::Field(name), Value::Object(map)) => first_at(map.get_mut(name)?, route, wanted),
        (ValueStep::Entry(_), Value::Object(map)) => map.values_mut().find_map(|value| first_at(value, route, wanted)),
        (ValueStep::Item, Value::Array(items)) => items.iter_mut().find_map(|value| first_at(value, route, wanted)),
        _ => None,
    }
}

fn any_at(value: &Value, route: &[&ValueStep], wanted: &dyn Fn(&Value) -> bool) -> bool {
    let Some((step, route)) = route.split_first() else { return wanted(value) };
    match (step, value) {
        (ValueStep::Field(name), Value::Object(map)) => map.get(name).is_some_and(|value| any_at(value, route, wanted)),
        (ValueStep::Entry(_), Value::Object(map)) => map.values().any(|value| any_at(value, route, wanted)),
        (ValueStep::Item, Value::Array(items)) => items.iter().any(|value| any_at(value, route, wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(steps: &Value) -> Vec<Step> {
        let step = |step: &Value| match step.as_str() {
            Some(key) => Step::from(key),
            None => Step::Index(0),
        };
        steps.as_array().expect("steps").iter().map(step).collect()
    }

    #[test]
    fn a_route_leads_to_its_node_and_to_everything_below_it() {
        let field = |name: &str| ValueStep::Field(name.to_owned());
        let steps = [field("spec"), ValueStep::Item, field("x")];
        let route = Route { steps: steps.iter().collect(), defaulted: None };
        for (steps, leads_to, leads_through) in [
            (json!(["spec", 0, "x"]), true, true),
            (json!(["spec", 0, "x", "a"]), true, true),
            (json!(["spec", 0, "x", "a", 0, "b"]), true, true),
            (json!(["spec", 0, "x", "a.b"]), true, false),
            (json!(["spec", 0, "x", "y"]), true, false),
            (json!(["spec", 0, "x", 0]), true, false),
            (json!(["spec", 0, "xy"]), false, false),
            (json!(["spec", "0", "x"]), false, false),
            (json!(["spec", 0]), false, false),
            (json!(["status", 0, "x"]), false, false),
            (json!([]), false, false),
        ] {
            assert_eq!(route.leads_to(&place(&steps)), leads_to, "{steps}");
            assert_eq!(route.leads_through(&place(&steps), "a"), leads_through, "{steps}");
        }
        let root = Route { steps: Vec::new(), defaulted: None };
        assert!(root.leads_through(&place(&json!(["a", "b"])), "a") && !root.leads_through(&place(&json!(["b"])), "a"));
        assert!(root.leads_to(&[]));
    }

    /// Map keys can contain dots and brackets; the steps after them are still distinguished.
    #[test]
    fn a_route_through_a_map_leads_to_one_field_of_its_values() {
        let field = |name: &str| ValueStep::Field(name.to_owned());
        let steps = [field("spec"), ValueStep::Entry("k".to_owned()), field("x")];
        let route = Route { steps: steps.iter().collect(), defaulted: None };
        for (steps, expected) in [
            (json!(["spec", "a.b[0]", "x"]), true),
            (json!(["spec", "x", "y"]), false),
            (json!(["spec", "a"]), false),
            (json!(["status", "a", "x"]), false),
        ] {
            assert_eq!(route.leads_to(&place(&steps)), expected, "{steps}");
        }
    }
}

//! Representative numbers.

use serde_json::{Value, json};

use super::super::view::RuleView;
use super::{RepresentativeBuilder, schema_and_all_of};
use crate::keywords as kw;
use gantry_schema::{Schema, as_stored};

impl RepresentativeBuilder<'_> {
    pub(super) fn integers(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
        if schema.get("multipleOf").is_some() {
            self.record_missing("multipleOf");
        }
        let reach = i64::try_from(view.compared_with).unwrap_or(8).clamp(0, 8) + 1;
        let bounds = bounds(schema).into_iter().map(|bound| bound as i64);
        let near = |n: i64| (-reach..=reach).map(move |by| n.saturating_add(by));
        let wide = if schema.get("format") == Some(&json!("int32")) {
            (i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            (i64::MIN, i64::MAX)
        };
        let takes = self.takes(schema);
        let mut numbers: Vec<i64> = [0, 1, wide.0, wide.1]
            .into_iter()
            .chain(bounds)
            .chain(view.integers.iter().copied())
            .flat_map(near)
            .collect();
        numbers.retain(|n| takes(&json!(n)));
        // Small numbers first, and positive ones before negative ones.
        numbers.sort_by_key(|n| (n.unsigned_abs(), *n < 0));
        numbers.dedup();
        if view.integers.is_empty() {
            // No rule looks at the value itself, so this many different values are enough.
            numbers.truncate(view.compared_with + 1);
        }
        numbers.into_iter().map(Value::from).collect()
    }

    pub(super) fn fractions(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
        if schema.get("multipleOf").is_some() {
            self.record_missing("multipleOf");
        }
        let mut marks: Vec<f64> = view.fractions.clone();
        // For an integer, the server truncates the bound.
        marks.extend(bounds(schema).into_iter().flat_map(|bound| [bound, bound.trunc()]));
        marks.push(0.0);
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        let between = view.compared_with.min(8) + 1;
        let mut numbers = marks.clone();
        #[allow(clippy::cast_precision_loss)] // Small counts.
        for step in 1..=between {
            numbers.extend(
                marks.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) * step as f64 / (between + 1) as f64),
            );
            numbers.extend(marks.first().map(|least| least - step as f64));
            numbers.extend(marks.last().map(|most| most + step as f64));
        }
        numbers.sort_by(|a, b| a.abs().total_cmp(&b.abs()).then(b.total_cmp(a)));
        numbers.dedup();
        let takes = self.takes(schema);
        let written = |n: &f64| {
            let mut integer = json!(n);
            as_stored(&mut integer);
            [json!(n), integer].into_iter().find(|value| takes(value))
        };
        let most = if view.fractions.is_empty() && view.compared_with == 0 { 1 } else { usize::MAX };
        numbers.iter().filter_map(written).take(most).collect()
    }

    /// Whether the server accepts a value, ignoring rules; true if that is unknown.
    fn takes(&self, schema: &Value) -> impl Fn(&Value) -> bool + use<> {
        let schema = Schema::compile_structure(schema, &self.budget.patterns()).ok();
        move |value| schema.as_ref().is_none_or(|schema| schema.accepts_value(value) != Some(false))
    }
}

/// The bounds of a number, including those below `allOf`.
fn bounds(schema: &Value) -> Vec<f64> {
    let of = |part| ["minimum", "maximum"].map(|key| kw::get(part, key).and_then(Value::as_f64));
    schema_and_all_of(schema).into_iter().flat_map(of).flatten().collect()
}

//! The way from a whole object down to the node in doubt.

use serde_json::Value;

use crate::proof::lockstep::{Step, Trail};
use crate::proof::rules::Key;

/// Steps from the root down.
pub struct Way<'d>(Vec<&'d Step>);

impl<'d> Way<'d> {
    pub fn of(trail: Option<&'d Trail<'_>>) -> Self {
        let mut steps: Vec<&Step> = Vec::new();
        let mut level = trail;
        while let Some(trail) = level {
            steps.push(&trail.step);
            level = trail.above.as_deref();
        }
        steps.reverse();
        Way(steps)
    }

    /// The same way for the repair of rules.
    pub fn keys(&self) -> Vec<Key> {
        let key = |step: &&Step| match step {
            Step::Field(name) => Key::Field(name.clone()),
            Step::Entry(_) => Key::Value,
            Step::Item => Key::Item,
        };
        self.0.iter().map(key).collect()
    }

    /// Whether a value at the end of the way is as wanted, whichever item or key it stands under.
    pub fn ends_at(&self, object: &Value, wanted: &dyn Fn(&Value) -> bool) -> bool {
        any_at(object, &self.0, wanted)
    }

    /// The object with `value` in place of the first value at the end of the way that is `old`.
    pub fn replaced(&self, object: &Value, old: &Value, value: &Value) -> Option<Value> {
        let mut object = object.clone();
        let place = first_at(&mut object, &self.0, &|found| found == old)?;
        *place = value.clone();
        Some(object)
    }

    /// Whether a place is the end of the way itself or in this field of it.
    pub fn leads_through(&self, place: &str, field: &str) -> bool {
        match self.rest(place) {
            Some(Rest::Unknown) => true,
            Some(Rest::Below(rest)) => {
                let below = if self.0.is_empty() { rest } else { rest.strip_prefix('.').unwrap_or(rest) };
                let after = below.strip_prefix(field);
                rest.is_empty() || after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
            }
            None => false,
        }
    }

    /// Whether a place, as the validator writes it (`spec.list[0].x`), is the end of the way or below it.
    ///
    /// Keys of maps may hold dots and brackets: from the first of them on anything passes.
    pub fn leads_to(&self, place: &str) -> bool {
        self.rest(place).is_some()
    }

    /// What of a place is left at the end of the way.
    fn rest<'p>(&self, place: &'p str) -> Option<Rest<'p>> {
        let mut rest = place;
        for (at, step) in self.0.iter().enumerate() {
            let after = match step {
                Step::Entry(_) => return (rest.starts_with(['.', '[']) || at == 0).then_some(Rest::Unknown),
                Step::Field(name) => {
                    let dotted = if at == 0 { Some(rest) } else { rest.strip_prefix('.') };
                    dotted.and_then(|rest| rest.strip_prefix(name.as_str()))
                }
                Step::Item => rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(_, rest)| rest),
            };
            match after {
                Some(after) if after.is_empty() || after.starts_with(['.', '[']) => rest = after,
                _ => return None,
            }
        }
        Some(Rest::Below(rest))
    }
}

enum Rest<'p> {
    Below(&'p str),
    /// Behind a key of a map, which may be written in any way.
    Unknown,
}

fn first_at<'v>(value: &'v mut Value, way: &[&Step], wanted: &dyn Fn(&Value) -> bool) -> Option<&'v mut Value> {
    let Some((step, way)) = way.split_first() else { return wanted(value).then_some(value) };
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => first_at(map.get_mut(name)?, way, wanted),
        (Step::Entry(_), Value::Object(map)) => map.values_mut().find_map(|value| first_at(value, way, wanted)),
        (Step::Item, Value::Array(items)) => items.iter_mut().find_map(|value| first_at(value, way, wanted)),
        _ => None,
    }
}

fn any_at(value: &Value, way: &[&Step], wanted: &dyn Fn(&Value) -> bool) -> bool {
    let Some((step, way)) = way.split_first() else { return wanted(value) };
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => map.get(name).is_some_and(|value| any_at(value, way, wanted)),
        (Step::Entry(_), Value::Object(map)) => map.values().any(|value| any_at(value, way, wanted)),
        (Step::Item, Value::Array(items)) => items.iter().any(|value| any_at(value, way, wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_to_its_end_and_what_is_below() {
        let field = |name: &str| Step::Field(name.to_owned());
        let steps = [field("spec"), Step::Item, field("x")];
        let way = Way(steps.iter().collect());
        for (place, expected) in [
            ("spec[0].x", true),
            ("spec[12].x.y", true),
            ("spec[0].x[3]", true),
            ("spec[0].xy", false),
            ("spec[0]", false),
            ("spec", false),
            ("status[0].x", false),
            ("<nil>", false),
        ] {
            assert_eq!(way.leads_to(place), expected, "{place}");
        }
        for (place, expected) in [
            ("spec[0].x", true),
            ("spec[0].x.a", true),
            ("spec[0].x.a[2].b", true),
            ("spec[0].x.ab", false),
            ("spec[0].x.b", false),
            ("spec[0]", false),
            ("<nil>", false),
        ] {
            assert_eq!(way.leads_through(place, "a"), expected, "{place}");
        }
        assert!(Way(Vec::new()).leads_through("a.b", "a") && !Way(Vec::new()).leads_through("b", "a"));
        let entry = [field("spec"), Step::Entry("k".to_owned()), field("x")];
        let way = Way(entry.iter().collect());
        assert!(way.leads_to("spec[a.b].x") && way.leads_to("spec.a.b.x"));
        assert!(!way.leads_to("spec") && !way.leads_to("status.a.x"));
        assert!(Way(Vec::new()).leads_to("<nil>"));
    }
}

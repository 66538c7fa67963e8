//! The total cost limit for the rules of a schema, and the server's errors if it is exceeded.

use super::found::{self, Errors};
use super::props::Props;
use crate::error::{FieldError, FieldErrorKind};
use crate::path::LinkedPath;

/// The cost limit of one rule.
const RULE_LIMIT: u64 = 10_000_000;
/// The cost limit of all rules in a schema.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// The number of rules that are reported if the total exceeds the limit.
const NAMED: usize = 4;

/// The maximum number of child values for each value of the schema; `None` if it is unlimited.
pub fn parts(schema: &Props) -> Option<u64> {
    let limit = |most: Option<i64>| most.map(|most| u64::try_from(most).unwrap_or_default());
    match schema.kind {
        "object" if schema.additional.is_some() => limit(schema.max_properties),
        "array" => limit(schema.max_items),
        _ => Some(1),
    }
}

/// The cost of the rules visited so far.
#[derive(Debug, Default)]
pub struct Costs {
    total: u64,
    /// The most expensive rules in descending order, each with the error that is reported if the total exceeds the
    /// limit.
    most: Vec<(u64, FieldError)>,
}

impl Costs {
    /// Adds the cost of a rule or message expression.
    pub fn add_cost(&mut self, cost: u64, path: &LinkedPath) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_LIMIT / 100 {
            return;
        }
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let error = found::error(path, FieldErrorKind::Forbidden, None, detail.to_owned());
        let at = self.most.partition_point(|(before, _)| *before >= cost);
        self.most.insert(at, (cost, error));
        self.most.truncate(NAMED);
    }

    /// Adds the server's errors if the total exceeds the limit. `path` is that of the schema.
    pub fn check_total(self, path: &LinkedPath, errors: &mut Errors) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        errors.list.extend(self.most.into_iter().map(|(_, error)| error));
        let of = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.forbidden(path, too_much(of, self.total, SCHEMA_LIMIT));
    }
}

/// Adds an error if the cost of a single expression exceeds the limit. `of` describes the cost.
pub fn check(of: &str, cost: u64, path: &LinkedPath, errors: &mut Errors) {
    if cost > RULE_LIMIT {
        errors.forbidden(path, too_much(of, cost, RULE_LIMIT));
    }
}

fn too_much(of: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{of} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

//! What the rules of a schema may cost together, and what the server says if that is too much.

use super::found::{self, Errors};
use super::props::Props;
use crate::error::{FieldError, Kind};
use crate::path::Path;

/// The most that one rule may cost.
const RULE_LIMIT: u64 = 10_000_000;
/// The most that all rules of a schema may cost.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// How many rules are named if they cost too much together.
const NAMED: usize = 4;

/// How many values of the parts of a schema an object can hold for each value of the schema itself; none without a limit.
pub fn parts(schema: &Props) -> Option<u64> {
    let limit = |most: Option<i64>| most.map(|most| u64::try_from(most).unwrap_or_default());
    match schema.kind {
        "object" if schema.additional.is_some() => limit(schema.max_properties),
        "array" => limit(schema.max_items),
        _ => Some(1),
    }
}

/// What rules cost that were seen so far.
#[derive(Debug, Default)]
pub struct Costs {
    total: u64,
    /// The most expensive ones, the most expensive first, with what is said of each if the total is too much.
    most: Vec<(u64, FieldError)>,
}

impl Costs {
    /// Counts a rule, or an expression that makes its message.
    pub fn count(&mut self, cost: u64, path: &Path) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_LIMIT / 100 {
            return;
        }
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let error = found::error(path, Kind::Forbidden, None, detail.to_owned());
        let at = self.most.partition_point(|(before, _)| *before >= cost);
        self.most.insert(at, (cost, error));
        self.most.truncate(NAMED);
    }

    /// What the server says of all of them together. `path` is that of the schema.
    pub fn judge(self, path: &Path, errors: &mut Errors) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        errors.list.extend(self.most.into_iter().map(|(_, error)| error));
        let of = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.forbidden(path, too_much(of, self.total, SCHEMA_LIMIT));
    }
}

/// Complains about a single expression that costs too much. `of` names its cost.
pub fn check(of: &str, cost: u64, path: &Path, errors: &mut Errors) {
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

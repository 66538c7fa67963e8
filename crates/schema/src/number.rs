//! Numbers and their keywords.
//!
//! The bounds of a schema are float64s. For a comparison with an integer they are first truncated to int64, with all
//! its consequences: `maximum: 1.5` rejects 2 with "less than or equal to 1", and `multipleOf: 0.1` rejects every
//! integer.

use serde_json::{Value, json};

use super::error::{FieldError, FieldErrorKind};
use super::found::FieldErrors;
use super::older_releases;
use super::path::LinkedPath;
use gantry_k8s_cel::gotext;
use gantry_k8s_cel::{KubernetesRelease, Num};

/// The type and format that a number is checked against. A schema with several types or none imposes no range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberRange {
    #[default]
    Any,
    Integer,
    Int32,
    Int64,
    Number,
    Float,
    Double,
}

impl NumberRange {
    /// The range of a node with this type and format.
    pub fn for_type(kind: Option<&str>, format: Option<&str>) -> Self {
        match (kind, format) {
            (Some("integer"), Some("int32")) => Self::Int32,
            (Some("integer"), Some("int64")) => Self::Int64,
            (Some("integer"), _) => Self::Integer,
            (Some("number"), Some("float")) => Self::Float,
            (Some("number"), Some("double")) => Self::Double,
            (Some("number"), _) => Self::Number,
            _ => Self::Any,
        }
    }

    fn contains(self, value: Num) -> bool {
        match self {
            Self::Any | Self::Number | Self::Double => true,
            Self::Integer | Self::Int64 => matches!(value, Num::Int(_)) || value.digits().parse::<i64>().is_ok(),
            Self::Int32 => value.digits().parse::<i32>().is_ok(),
            Self::Float => (value.as_f64() as f32).is_finite(),
        }
    }

    fn requirement(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Integer => "integer (default format)",
            Self::Int32 => "integer with format int32",
            Self::Int64 => "integer with format int64",
            Self::Number => "number (default format)",
            Self::Float => "number with format float",
            Self::Double => "number with format double",
        }
    }
}

/// The numeric keywords of a schema node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NumberRules {
    pub range: NumberRange,
    pub multiple_of: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
}

/// Whether a value of this type and format can equal a bound (`minimum`, `maximum` or `multipleOf`). If not, the server
/// refuses every number there, whatever the bound is.
pub fn can_be_bound(kind: Option<&str>, format: Option<&str>, bound: f64) -> bool {
    NumberRange::for_type(kind, format).contains(Num::Float(bound))
}

/// Whether the server refuses every integer because of this maximum: [as an int64](to_int) it is the lowest one.
///
/// Source: `MaximumNativeType` of `k8s.io/kube-openapi/pkg/validation/validate/values.go`
pub fn is_maximum_beyond_integers(maximum: f64) -> bool {
    maximum > 0.0 && to_int(maximum) == i64::MIN
}

/// Whether a float counts as an integer for a server of this release: within a tolerance, and not beyond 2^53.
///
/// Source: `IsFloat64AJSONInteger` of `github.com/go-openapi/swag`, 0.23 and, from [`INTEGERS_BELOW`] on, 0.27
///
/// [`INTEGERS_BELOW`]: older_releases::INTEGERS_BELOW
pub fn is_integral(f: f64, release: KubernetesRelease) -> bool {
    const TOLERANCE: f64 = 1e-9;
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !f.is_finite() || f.abs() > LARGEST {
        return false;
    }
    if f == f.trunc() {
        return true;
    }
    if release >= older_releases::INTEGERS_BELOW {
        // Go rounds halves away from zero, as Rust does.
        let rounded = f.round();
        return rounded != 0.0 && (f - rounded).abs() < TOLERANCE * rounded.abs();
    }
    let floor = f.trunc();
    f > 0.0 && floor != 0.0 && (f - floor) / (f + floor) < TOLERANCE
}

/// Converts the value to its form after being stored and read again: a float without a fraction becomes an integer.
pub fn as_stored(value: &mut Value) {
    match value {
        Value::Number(n) => {
            if let Num::Float(f) = Num::from(&*n)
                && f.fract() == 0.0
                && let Ok(i) = gotext::json(value).parse::<i64>()
            {
                *value = json!(i);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_stored),
        Value::Object(map) => map.values_mut().for_each(as_stored),
        _ => {}
    }
}

/// Go's conversion on amd64: truncates toward zero, and returns the lowest integer for values out of range.
pub fn to_int(f: f64) -> i64 {
    if f.is_nan() || !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f) {
        return i64::MIN;
    }
    f as i64
}

impl NumberRules {
    /// The keywords alone, as servers checked them before there were ranges.
    pub fn without_range(self) -> Self {
        Self { range: NumberRange::Any, ..self }
    }

    /// Adds the errors for `value`.
    pub fn check(&self, value: Num, path: &LinkedPath, release: KubernetesRelease, found: &mut FieldErrors) {
        if !self.range.contains(value) {
            found.add(FieldError::unplaced(path, "format", self.out_of_range("Checked", path)));
        }
        if let Some(factor) = self.multiple_of {
            let native = self.bound_fits("multipleOf", "MultipleOf", factor, path, found);
            let is_integral = |f| is_integral(f, release);
            check_multiple(value, factor, native, &is_integral, path, found);
        }
        // Minimum before maximum, the order in which the server merges them.
        if let Some(minimum) = self.minimum {
            let native = self.bound_fits("minimum", "Minimum boundary", minimum, path, found);
            check_bound(value, minimum, self.exclusive_minimum, native, BoundSide::Minimum, path, found);
        }
        if let Some(maximum) = self.maximum {
            let native = self.bound_fits("maximum", "Maximum boundary", maximum, path, found);
            check_bound(value, maximum, self.exclusive_maximum, native, BoundSide::Maximum, path, found);
        }
    }

    fn out_of_range(&self, what: &str, path: &LinkedPath) -> String {
        format!("{what} value must be of type {} in {}", self.range.requirement(), path.openapi())
    }

    fn bound_fits(&self, keyword: &str, what: &str, bound: f64, path: &LinkedPath, found: &mut FieldErrors) -> bool {
        let fits = self.range.contains(Num::Float(bound));
        if !fits {
            found.add(FieldError::unplaced(path, keyword, self.out_of_range(what, path)));
        }
        fits
    }
}

fn check_multiple(
    value: Num,
    factor: f64,
    native: bool,
    is_integral: &dyn Fn(f64) -> bool,
    path: &LinkedPath,
    found: &mut FieldErrors,
) {
    let name = || path.openapi();
    let invalid = |bad: Value, detail: String| {
        FieldError::openapi(path, "multipleOf", FieldErrorKind::Invalid, Some(bad), detail)
    };
    match value {
        Num::Int(i) if native => {
            let factor = to_int(factor);
            if factor <= 0 {
                let detail = format!("factor MultipleOf declared for {} must be positive: {factor}", name());
                found.add(invalid(json!(factor), detail));
            } else if i % factor != 0 {
                found.add(invalid(json!(i), format!("{} in body should be a multiple of {factor}", name())));
            }
        }
        _ => {
            let data = value.as_f64();
            if factor <= 0.0 {
                let shown = gotext::float(factor);
                let detail = format!("factor MultipleOf declared for {} must be positive: {shown}", name());
                found.add(invalid(json!(factor), detail));
            } else if !is_integral(if factor < 1.0 { 1.0 / factor * data } else { data / factor }) {
                let detail = format!("{} in body should be a multiple of {}", name(), gotext::float(factor));
                found.add(invalid(json!(data), detail));
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum BoundSide {
    Minimum,
    Maximum,
}

fn check_bound(
    value: Num,
    bound: f64,
    exclusive: bool,
    native: bool,
    side: BoundSide,
    path: &LinkedPath,
    found: &mut FieldErrors,
) {
    let (order, shown, bad) = match value {
        Num::Int(i) if native => (i.partial_cmp(&to_int(bound)), to_int(bound).to_string(), json!(i)),
        _ => (value.as_f64().partial_cmp(&bound), gotext::float(bound), json!(value.as_f64())),
    };
    let broken = match side {
        BoundSide::Minimum => order.is_some_and(|o| o.is_lt() || exclusive && o.is_eq()),
        BoundSide::Maximum => order.is_some_and(|o| o.is_gt() || exclusive && o.is_eq()),
    };
    if broken {
        let wanted = match (side, exclusive) {
            (BoundSide::Minimum, false) => "greater than or equal to",
            (BoundSide::Minimum, true) => "greater than",
            (BoundSide::Maximum, false) => "less than or equal to",
            (BoundSide::Maximum, true) => "less than",
        };
        let keyword = if side == BoundSide::Minimum { "minimum" } else { "maximum" };
        let detail = format!("{} in body should be {wanted} {shown}", path.openapi());
        found.add(FieldError::openapi(path, keyword, FieldErrorKind::Invalid, Some(bad), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(rules: NumberRules, value: Num) -> Vec<String> {
        let mut found = FieldErrors::default();
        let path = LinkedPath::Name(&LinkedPath::Root, "x");
        rules.check(value, &path, KubernetesRelease::default(), &mut found);
        found.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_number_is_an_integer_if_the_server_takes_it_for_one() {
        for (f, before, since) in [
            (1.0, true, true),
            (-3.0, true, true),
            (1.5, false, false),
            (-1.5, false, false),
            (0.1, false, false),
            (1e-12, false, false),
            (1e300, false, false),
            (3.000_000_000_1, true, true),
            (2.999_999_999_9, false, true),
            (-3.000_000_000_1, false, true),
            (-1.0 / 0.1 * 0.199_999_999_999_999_96, false, true),
            (1.0 / 0.1 * 0.3, true, true),
        ] {
            let by = |minor| is_integral(f, KubernetesRelease::minor(minor));
            assert_eq!((by(36), by(37)), (before, since), "{f}");
        }
    }

    #[test]
    fn a_bound_beyond_the_type_refuses_every_number() {
        for (kind, format, bound, fits) in [
            ("integer", Some("int32"), 3e9, false),
            ("integer", Some("int32"), -2_147_483_648.0, true),
            ("integer", None, 0.5, false),
            ("integer", Some("int64"), 3e9, true),
            ("integer", Some("int64"), 7.5, false),
            ("number", Some("float"), 1e300, false),
            ("number", None, 1e300, true),
            ("string", None, 0.5, true),
        ] {
            assert_eq!(can_be_bound(Some(kind), format, bound), fits, "{kind} {format:?} {bound}");
            let rules = NumberRules {
                range: NumberRange::for_type(Some(kind), format),
                maximum: Some(bound),
                ..NumberRules::default()
            };
            let said = broken(rules, Num::Int(-2_147_483_648));
            assert_eq!(said.iter().any(|text| text.contains("boundary")), !fits, "{said:?}");
        }
    }

    #[test]
    fn formats_of_integers_are_ranges() {
        let of = |range| NumberRules { range, ..NumberRules::default() };
        assert_eq!(
            broken(of(NumberRange::Int32), Num::Int(1 << 31)),
            ["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in x"]
        );
        assert!(broken(of(NumberRange::Int32), Num::Int(-(1 << 31))).is_empty());
        assert_eq!(broken(of(NumberRange::Float), Num::Float(1e39)).len(), 1);
        assert!(broken(of(NumberRange::Double), Num::Float(1e39)).is_empty());
        assert_eq!(broken(of(NumberRange::Integer), Num::Float(9.3e18)).len(), 1);
    }

    #[test]
    fn bounds_of_integers_are_rounded_to_integers() {
        let rules = NumberRules { maximum: Some(1.5), ..NumberRules::default() };
        assert_eq!(broken(rules, Num::Int(2)), ["x: Invalid value: 2: x in body should be less than or equal to 1"]);
        assert_eq!(
            broken(rules, Num::Float(1.6)),
            ["x: Invalid value: 1.6: x in body should be less than or equal to 1.5"]
        );
        let exclusive = NumberRules { minimum: Some(1.0), exclusive_minimum: true, ..NumberRules::default() };
        assert_eq!(broken(exclusive, Num::Int(1)), ["x: Invalid value: 1: x in body should be greater than 1"]);
        let tenth = NumberRules { multiple_of: Some(0.1), ..NumberRules::default() };
        assert!(broken(tenth, Num::Float(0.3)).is_empty());
        assert_eq!(
            broken(tenth, Num::Int(1)),
            ["x: Invalid value: 0: factor MultipleOf declared for x must be positive: 0"]
        );
    }
}

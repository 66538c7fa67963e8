//! The `format` function on strings.

use super::ast::Expr;
use super::budget::CelBudget;
use super::fault::{CelResult, EvaluationError};
use super::lib_convert::{go_double, text};
use super::release::KubernetesRelease;
use super::typing::Ty;
use super::value::{CelList, CelMap, CelValue};
use crate::gotext::quote;

/// The first release that writes `1.5×10⁰³` without narrow spaces.
const SCIENTIFIC_WITHOUT_SPACES: KubernetesRelease = KubernetesRelease::minor(33);

const DEFAULT_PRECISION: usize = 6;
/// No number has more digits.
const MAX_PRECISION: usize = 1_000;

/// `'…%s…'.format([…])`
pub(crate) fn format<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> Option<CelResult<CelValue<'a>>> {
    let [CelValue::String(template), CelValue::List(list)] = args else { return None };
    Some(fill(template, list, budget).map(CelValue::from))
}

fn fill(template: &str, list: &CelList, budget: &mut CelBudget) -> CelResult<String> {
    let mut out = String::new();
    let mut rest = template;
    let mut next = 0;
    while let Some(at) = rest.find('%') {
        budget.take(1)?;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        if next >= list.len() {
            return Err(EvaluationError::error(format!("index {next} out of range")));
        }
        if rest.is_empty() {
            return Err(EvaluationError::error("unexpected end of string"));
        }
        let value = list.get(next)?;
        next += 1;
        let (precision, clause, tail) = clause(rest)?;
        rest = tail;
        let written = match clause {
            's' => format_string(&value),
            'd' => decimal(&value),
            'f' => fixed(&value, precision),
            'e' => scientific(&value, precision, budget.release()),
            'b' => binary(&value),
            'x' | 'X' => hex(&value, clause == 'X'),
            _ => octal(&value),
        };
        let written = written.map_err(|fault| match fault {
            EvaluationError::Error(text) => EvaluationError::Error(format!("error during formatting: {text}")),
            other => other,
        })?;
        budget.take(written.len() as u64 / 10)?;
        out.push_str(&written);
    }
    out.push_str(rest);
    Ok(out)
}

/// The server's compile-time check of a literal template and its literal arguments. `ty` returns the type of an
/// argument, or of an element in one.
pub(crate) fn check(
    template: &str,
    args: &[(Expr, bool)],
    ty: &mut impl FnMut(&Expr) -> Ty,
) -> std::result::Result<(), String> {
    let mut next = 0;
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            rest = tail;
            continue;
        }
        let (_, letter, tail) = match clause(rest) {
            Ok(clause) => clause,
            Err(EvaluationError::Error(why) | EvaluationError::Abort(why) | EvaluationError::Undecided(why)) => {
                return Err(why);
            }
        };
        let Some((arg, _)) = args.get(next) else { return Err(format!("index {next} out of range")) };
        if !can_format(letter, arg, ty) {
            return Err(format!("error during formatting: %{letter} cannot be used on {}", ty(arg)));
        }
        rest = tail;
        next += 1;
    }
    match args.len() > next {
        true => Err(format!("too many arguments supplied to string.format (expected {next}, got {})", args.len())),
        false => Ok(()),
    }
}

/// Whether a clause can format the argument, as far as its type is known.
fn can_format(clause: char, arg: &Expr, ty: &mut impl FnMut(&Expr) -> Ty) -> bool {
    let name = match ty(arg) {
        Ty::Dyn => "dyn",
        Ty::Null => "null",
        Ty::Scalar(name) | Ty::Of(name, _) => name,
        Ty::Object(_) | Ty::Variable(_) => "object",
    };
    let names: &[&str] = match clause {
        's' => &[
            "null",
            "list",
            "map",
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "bytes",
            "type",
            "google.protobuf.Timestamp",
            "google.protobuf.Duration",
        ],
        'f' | 'e' => &["double", "string"],
        'b' => &["int", "uint", "bool"],
        'x' | 'X' => &["int", "uint", "string", "bytes"],
        _ => &["int", "uint"],
    };
    let takes_it = name == "dyn" || names.contains(&name);
    takes_it
        && match arg {
            Expr::List(items) if clause == 's' => items.iter().all(|(item, _)| can_format(clause, item, ty)),
            Expr::Map(entries) if clause == 's' => {
                entries.iter().all(|(key, value, _)| can_format(clause, key, ty) && can_format(clause, value, ty))
            }
            _ => true,
        }
}

/// The precision and letter of a clause, and the rest of the text.
fn clause(rest: &str) -> CelResult<(usize, char, &str)> {
    let (precision, tail) = precision(rest)?;
    let mut chars = tail.chars();
    match chars.next() {
        Some(clause @ ('s' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o')) => Ok((precision, clause, chars.as_str())),
        // The server reads bytes, not characters.
        Some(_) => Err(unparsable(&format!("unrecognized formatting clause \"{}\"", char::from(tail.as_bytes()[0])))),
        None => Err(unparsable("unexpected end of string")),
    }
}

fn unparsable(why: &str) -> EvaluationError {
    EvaluationError::error(format!("could not parse formatting clause: {why}"))
}

/// The precision before a clause, such as `.2`, and the rest of the text.
fn precision(rest: &str) -> CelResult<(usize, &str)> {
    let Some(tail) = rest.strip_prefix('.') else { return Ok((DEFAULT_PRECISION, rest)) };
    let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
    if digits == tail.len() {
        return Err(unparsable("error while parsing precision: could not find end of precision specifier"));
    }
    match tail[..digits].parse::<usize>() {
        Ok(precision) if precision <= MAX_PRECISION => Ok((precision, &tail[digits..])),
        Ok(_) => Err(EvaluationError::Undecided("the precision is larger than supported".to_owned())),
        Err(_) => {
            let (digits, why) =
                (quote(&tail[..digits]), if digits == 0 { "invalid syntax" } else { "value out of range" });
            let why = format!("strconv.Atoi: parsing {digits}: {why}");
            Err(unparsable(&format!(
                "error while parsing precision: error while converting precision to integer: {why}"
            )))
        }
    }
}

fn wrong_argument(clause: &str, value: &CelValue) -> EvaluationError {
    EvaluationError::error(format!("{clause}, was given {}", value.type_name()))
}

/// `%s`
fn format_string(value: &CelValue) -> CelResult<String> {
    match value {
        CelValue::Null => Ok("null".to_owned()),
        CelValue::Type(name) => Ok((*name).to_owned()),
        CelValue::Bytes(bytes) => bytes_text(bytes),
        CelValue::List(list) => list_text(list),
        CelValue::Map(map) => map_text(map),
        CelValue::Bool(_)
        | CelValue::Int(_)
        | CelValue::Uint(_)
        | CelValue::Double(_)
        | CelValue::String(_)
        | CelValue::Duration(_)
        | CelValue::Timestamp(_) => Ok(text(value).unwrap_or_default()),
        _ => Err(wrong_argument(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps",
            value,
        )),
    }
}

fn bytes_text(bytes: &[u8]) -> CelResult<String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| EvaluationError::Undecided("the bytes are not valid UTF-8".to_owned()))?;
    Ok(text.to_owned())
}

/// A value inside a list or map.
fn inner(value: &CelValue) -> CelResult<String> {
    match value {
        CelValue::String(text) => Ok(quote(text)),
        CelValue::Bytes(bytes) => Ok(format!("b{}", quote(&bytes_text(bytes)?))),
        CelValue::Double(value) if value.is_finite() => Ok(format!("{value:.DEFAULT_PRECISION$}")),
        CelValue::Double(value) => Ok(quote(&go_double(*value))),
        CelValue::Duration(_) => Ok(format!("duration({})", quote(&format_string(value)?))),
        CelValue::Timestamp(_) => Ok(format!("timestamp({})", quote(&format_string(value)?))),
        CelValue::Null
        | CelValue::Type(_)
        | CelValue::Bool(_)
        | CelValue::Int(_)
        | CelValue::Uint(_)
        | CelValue::List(_)
        | CelValue::Map(_) => format_string(value),
        _ => Err(EvaluationError::error(format!("no formatting function for {}", value.type_name()))),
    }
}

fn list_text(list: &CelList) -> CelResult<String> {
    let items = list.iter().map(|item| inner(&item?)).collect::<CelResult<Vec<_>>>()?;
    Ok(format!("[{}]", items.join(", ")))
}

fn map_text(map: &CelMap) -> CelResult<String> {
    let mut entries = Vec::new();
    for key in map.keys() {
        let name = match &key {
            CelValue::String(text) => quote(text),
            CelValue::Bool(_) | CelValue::Int(_) | CelValue::Uint(_) => text(&key).unwrap_or_default(),
            _ => {
                return Err(EvaluationError::error(format!(
                    "no formatting function for map key of type {}",
                    key.type_name()
                )));
            }
        };
        let value = super::equal::find(map, &key)?.unwrap_or(CelValue::Null);
        entries.push((name, inner(&value)?));
    }
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    let entries: Vec<_> = entries.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

/// `%d`
fn decimal(value: &CelValue) -> CelResult<String> {
    match value {
        CelValue::Int(_) | CelValue::Uint(_) => Ok(text(value).unwrap_or_default()),
        _ => Err(wrong_argument("decimal clause can only be used on integers", value)),
    }
}

/// The number that `%f` and `%e` format: a double, or a string that represents infinity or NaN.
fn number(value: &CelValue, clause: &str) -> CelResult<f64> {
    match value {
        CelValue::Double(value) => Ok(*value),
        CelValue::String(text) if &**text == "NaN" => Ok(f64::NAN),
        CelValue::String(text) if &**text == "Infinity" => Ok(f64::INFINITY),
        CelValue::String(text) if &**text == "-Infinity" => Ok(f64::NEG_INFINITY),
        _ => Err(wrong_argument(&format!("{clause} clause can only be used on doubles"), value)),
    }
}

fn not_finite(value: f64) -> Option<String> {
    match value {
        value if value.is_nan() => Some("NaN".to_owned()),
        f64::INFINITY => Some("∞".to_owned()),
        f64::NEG_INFINITY => Some("-∞".to_owned()),
        _ => None,
    }
}

/// `%f` with English formatting: thousands are grouped.
fn fixed(value: &CelValue, precision: usize) -> CelResult<String> {
    let value = number(value, "fixed-point")?;
    if let Some(text) = not_finite(value) {
        return Ok(text);
    }
    let written = format!("{:.precision$}", value.abs());
    let (whole, fraction) = written.split_at(written.find('.').unwrap_or(written.len()));
    let mut out = String::new();
    if value < 0.0 {
        out.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(fraction);
    Ok(out)
}

/// `%e` in scientific notation: `1.5×10⁰³`. The server uses the precision as a minimum width.
fn scientific(value: &CelValue, width: usize, release: KubernetesRelease) -> CelResult<String> {
    let value = number(value, "scientific")?;
    if let Some(text) = not_finite(value) {
        return Ok(format!("{text:>width$}"));
    }
    let written = format!("{:.DEFAULT_PRECISION$e}", if value == 0.0 { 0.0 } else { value });
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised: String = format!("{:02}", exponent.abs())
        .chars()
        .filter_map(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10)? as usize))
        .collect();
    let times = if release < SCIENTIFIC_WITHOUT_SPACES { "\u{202f}×\u{202f}" } else { "×" };
    Ok(format!("{:>width$}", format!("{digits}{times}10{sign}{raised}")))
}

/// A signed number in another base: Go writes a minus sign before the absolute value.
fn based(value: i64, write: fn(u64) -> String) -> String {
    let digits = write(value.unsigned_abs());
    if value < 0 { format!("-{digits}") } else { digits }
}

/// `%b`
fn binary(value: &CelValue) -> CelResult<String> {
    match value {
        CelValue::Int(value) => Ok(based(*value, |value| format!("{value:b}"))),
        CelValue::Uint(value) => Ok(format!("{value:b}")),
        CelValue::Bool(value) => Ok(u8::from(*value).to_string()),
        _ => Err(wrong_argument("only integers and bools can be formatted as binary", value)),
    }
}

/// `%x` and `%X`
fn hex(value: &CelValue, upper: bool) -> CelResult<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let written = match value {
        CelValue::Int(value) => based(*value, |value| format!("{value:x}")),
        CelValue::Uint(value) => format!("{value:x}"),
        CelValue::String(text) => bytes(text.as_bytes()),
        CelValue::Bytes(value) => bytes(value),
        _ => return Err(wrong_argument("only integers, byte buffers, and strings can be formatted as hex", value)),
    };
    Ok(if upper { written.to_uppercase() } else { written })
}

/// `%o`
fn octal(value: &CelValue) -> CelResult<String> {
    match value {
        CelValue::Int(value) => Ok(based(*value, |value| format!("{value:o}"))),
        CelValue::Uint(value) => Ok(format!("{value:o}")),
        _ => Err(wrong_argument("octal clause can only be used on integers", value)),
    }
}

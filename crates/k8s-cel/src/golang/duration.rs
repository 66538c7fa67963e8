//! Durations: parsed and formatted as Go does it, and as the server parses a field with `format: duration`.

/// The nanoseconds of a duration such as `1h30m`, as `time.ParseDuration` reads it.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let limit = 1u64 << 63;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mut value: u64 = if whole == 0 { 0 } else { rest[..whole].parse().ok().filter(|value| *value <= limit)? };
        rest = &rest[whole..];
        let mut fraction = "";
        if let Some(tail) = rest.strip_prefix('.') {
            let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
            fraction = &tail[..digits];
            rest = &tail[digits..];
        }
        if whole == 0 && fraction.is_empty() {
            return None;
        }
        let length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = go_unit(&rest[..length])?;
        rest = &rest[length..];
        value = value.checked_mul(unit).filter(|value| *value <= limit)?;
        if !fraction.is_empty() {
            value = value.checked_add(fraction_of(fraction, unit)).filter(|value| *value <= limit)?;
        }
        total = total.checked_add(value).filter(|total| *total <= limit)?;
    }
    match negative {
        true => i64::try_from(-i128::from(total)).ok(),
        false => i64::try_from(total).ok(),
    }
}

/// The value of `0.digits` units.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale = 1f64;
    for digit in digits.bytes() {
        // Digits beyond the precision are ignored.
        let Some(next) = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) else { break };
        if next > 1 << 63 {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn go_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Parses a field with `format: duration`, which also allows days, weeks and words.
///
/// Any other text can be between them, and a minus sign before a word is ignored.
pub(crate) fn parse_worded(text: &str) -> Option<i64> {
    if let Some(nanos) = parse(text) {
        return Some(nanos);
    }
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest[start..].split_at(digits);
        let tail = tail.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let letters: usize =
            tail.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '\u{b5}').map(char::len_utf8).sum();
        if letters > 0 {
            let factor: i64 = number.parse().ok()?;
            if let Some(unit) = worded_unit(&tail[..letters].to_lowercase()) {
                total = Some(total.unwrap_or(0).wrapping_add(factor.wrapping_mul(unit)));
            }
        }
        rest = &tail[letters..];
    }
    total
}

fn worded_unit(word: &str) -> Option<i64> {
    // Longer words can begin with the last name of each unit.
    const SECOND: i64 = 1_000_000_000;
    const UNITS: &[(&[&str], i64)] = &[
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3_600 * SECOND),
        (&["d", "day"], 86_400 * SECOND),
        (&["w", "wk", "week"], 604_800 * SECOND),
    ];
    UNITS
        .iter()
        .find(|(names, _)| names.contains(&word) || names.last().is_some_and(|last| word.starts_with(last)))
        .map(|(_, nanos)| *nanos)
}

/// A duration in seconds, as the CEL function `string()` formats it.
pub(crate) fn in_seconds(nanos: i64) -> String {
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of `time.ParseDuration` and `strfmt.ParseDuration`.
    #[test]
    fn durations_are_read_in_the_notation_of_go_and_in_words() {
        const SECOND: i64 = 1_000_000_000;
        for (text, go, worded) in [
            ("0", Some(0), Some(0)),
            ("-0", Some(0), Some(0)),
            ("", None, None),
            ("1", None, None),
            ("+", None, None),
            (".s", None, None),
            ("1h30m", Some(5_400 * SECOND), Some(5_400 * SECOND)),
            ("-1.5h", Some(-5_400 * SECOND), Some(-5_400 * SECOND)),
            ("1.s", Some(SECOND), Some(SECOND)),
            ("1.2.3s", None, Some(3 * SECOND)),
            ("0.333333333333333333333333333333s", Some(333_333_333), Some(333_333_333)),
            ("1.9ns", Some(1), Some(1)),
            ("1us", Some(1_000), Some(1_000)),
            ("1\u{b5}s", Some(1_000), Some(1_000)),
            ("1\u{3bc}s", Some(1_000), Some(1_000)),
            // Words accept only one of the two look-alike letters.
            ("1 \u{b5}s", None, Some(1_000)),
            ("1 \u{3bc}s", None, None),
            ("1 \u{17f}", None, None),
            ("22 ns", None, Some(22)),
            ("1 S", None, Some(SECOND)),
            ("2 days", None, Some(172_800 * SECOND)),
            ("-2 days", None, Some(172_800 * SECOND)),
            ("in 5 Weeks or so", None, Some(3_024_000 * SECOND)),
            ("12 34mins, 2\u{c}hr", None, Some((34 * 60 + 2 * 3_600) * SECOND)),
            ("1 wks", None, None),
            ("5 parsecs", None, None),
            ("9223372036854775807ns", Some(i64::MAX), Some(i64::MAX)),
            ("-9223372036854775808ns", Some(i64::MIN), Some(i64::MIN)),
            // `strfmt` wraps around on overflow, including for durations that are too long for Go.
            ("9223372036854775808ns", None, None),
            ("2562048h", None, Some(2_562_048i64.wrapping_mul(3_600 * SECOND))),
            ("99999999999999999999 days", None, None),
        ] {
            assert_eq!(parse(text), go, "{text}");
            assert_eq!(parse_worded(text), worded, "{text}");
        }
    }
}

//! Dates, times and durations.

use std::sync::LazyLock;

use regex::Regex;

/// `2006-01-02`, a day that exists.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$").ok());

/// A date and a time with a zone. What follows a second `t` is not looked at.
pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.as_ref().and_then(|pattern| pattern.captures(time)) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Go's durations (`1h30m`), else numbers with words for units anywhere in the text (`2 days`).
pub fn is_duration(text: &str) -> bool {
    is_go_duration(text) || has_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    const LIMIT: u64 = 1 << 63;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let Some((nanoseconds, after)) = go_duration_part(rest) else { return false };
        total = match total.checked_add(nanoseconds) {
            Some(total) if total <= LIMIT => total,
            _ => return false,
        };
        rest = after;
    }
    negative || total < LIMIT
}

/// One number with its unit, in nanoseconds, and what follows.
fn go_duration_part(text: &str) -> Option<(u64, &str)> {
    const LIMIT: u64 = 1 << 63;
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let mut value: u64 = 0;
    for digit in text[..whole].bytes() {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0')).filter(|v| *v <= LIMIT)?;
    }
    let mut rest = &text[whole..];
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        fraction = &after[..digits(after)];
        rest = &after[fraction.len()..];
    }
    if whole == 0 && fraction.is_empty() {
        return None;
    }
    let unit_length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let unit: u64 = match &rest[..unit_length] {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    if value > LIMIT / unit {
        return None;
    }
    // No fraction of an hour overflows by itself; its exact last digits do not matter here.
    let part = format!("0.{fraction}0").parse::<f64>().unwrap_or(0.0) * unit as f64;
    let nanoseconds = value.checked_mul(unit)?.checked_add(part as u64).filter(|n| *n <= LIMIT)?;
    Some((nanoseconds, &rest[unit_length..]))
}

static WORDED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\x0c\r ]*([A-Za-z\u{b5}]+)").ok());

fn has_worded_duration(text: &str) -> bool {
    const EXACT: [&str; 14] =
        ["ns", "us", "\u{b5}s", "\u{3bc}s", "ms", "s", "m", "h", "hr", "d", "w", "wk", "\u{39c}s", "\u{17f}"];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let Some(pattern) = WORDED.as_ref() else { return false };
    let mut any = false;
    for found in pattern.captures_iter(text) {
        if found[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = found[2].to_lowercase();
        any |= EXACT.contains(&unit.as_str()) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix));
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_go_s_or_worded() {
        for (text, accepted) in [
            ("1h30m", true),
            ("-1.5h", true),
            ("0", true),
            ("1", false),
            ("", false),
            (".s", false),
            ("1us", true),
            ("22 ns", true),
            ("2 days", true),
            ("in 5 Weeks or so", true),
            ("5 parsecs", false),
            ("-9223372036854775808ns", true),
            ("99999999999999999999 days", false),
        ] {
            assert_eq!(is_duration(text), accepted, "{text}");
        }
    }

    #[test]
    fn a_date_time_has_a_zone_and_no_leap_second() {
        for (text, accepted) in [
            ("2024-01-01T00:00:00Z", true),
            ("2024-01-01t00:00:00.123z", true),
            ("2024-01-01T00:00:00", false),
            ("2024-01-01T00:00:60Z", false),
            ("2024-01-01 00:00:00Z", false),
            ("2024-13-01T00:00:00Z", false),
            ("2024-01-01T00:00:00ZTrue", true),
        ] {
            assert_eq!(is_date_time(text), accepted, "{text}");
        }
    }
}

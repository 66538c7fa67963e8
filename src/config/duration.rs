//! Durations as Go writes them (`30s`, `1h30m`, `1.5s`): what users of kubectl and kapp write.

use std::time::Duration;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // the micro sign
    ("μs", 1_000), // the Greek letter
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Go's largest duration: 2⁶³−1 nanoseconds, about 292 years.
const MAX_NANOS: u128 = i64::MAX as u128;

/// The duration that `text` names; `None` where it is none, is negative, or is longer than 292 years.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut nanos: u128 = 0;
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = take(&mut rest, |c| c.is_ascii_digit());
        let fraction = match rest.strip_prefix('.') {
            Some(behind) => {
                rest = behind;
                take(&mut rest, |c| c.is_ascii_digit())
            }
            None => "",
        };
        let unit = take(&mut rest, |c| !c.is_ascii_digit() && c != '.');
        if number.is_empty() && fraction.is_empty() {
            return None;
        }
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let whole: u128 = if number.is_empty() { 0 } else { number.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(u128::from(*unit))?)?;
        nanos = nanos.checked_add(part(fraction, *unit))?;
    }
    let nanos = (nanos <= MAX_NANOS).then_some(nanos)?;
    Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
}

/// The first characters that `belongs` holds for; `rest` goes on behind them.
fn take<'a>(rest: &mut &'a str, belongs: impl Fn(char) -> bool) -> &'a str {
    let (taken, left) = rest.split_at(rest.find(|c| !belongs(c)).unwrap_or(rest.len()));
    *rest = left;
    taken
}

/// The digits behind the point, in nanoseconds, rounded down. No unit has use for more than 18 of them.
fn part(digits: &str, unit: u64) -> u128 {
    let (mut sum, mut scale) = (0u128, 1u128);
    for digit in digits.bytes().take(18) {
        sum = sum * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    sum * u128::from(unit) / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_mean_what_go_makes_of_them() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("30s", 30_000_000_000),
            ("2m", 120_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1m0.25s", 60_250_000_000),
            ("100ms", 100_000_000),
            ("7us", 7_000),
            ("7µs", 7_000),
            ("1.9ns", 1),
            ("0.333333333333333333333333333333s", 333_333_333),
        ] {
            assert_eq!(parse(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "30",
            "s",
            ".",
            ".s",
            "-1s",
            "+",
            "1d",
            "1 s",
            "1h 2m",
            "one",
            "10000000h",
            "99999999999999999999999999999999999999999s",
            "1.2.3s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

//! Durations in Go's notation (`30s`, `1h30m`, `1.5s`), as users of kubectl and kapp write them.

use std::time::Duration;

use gantry_k8s_cel::golang::duration;

/// Parses a duration; `None` if the text is not a duration, has a sign, or is longer than 292 years.
pub fn parse(text: &str) -> Option<Duration> {
    let nanos = if text.starts_with(['+', '-']) { None } else { duration::parse(text) };
    Some(Duration::from_nanos(nanos?.try_into().ok()?))
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
    fn invalid_durations_are_refused() {
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

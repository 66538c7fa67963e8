//! Dates and times.

use std::sync::LazyLock;

use regex::Regex;

use crate::golang::Timestamp;

/// `2006-01-02`, an existing day.
pub fn is_date(text: &str) -> bool {
    Timestamp::from_date(text).is_some()
}

static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$").ok());

/// A date and a time with a zone. Anything after a second `t` is ignored.
pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.as_ref().and_then(|pattern| pattern.captures(time)) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

#[cfg(test)]
mod tests {
    use super::*;

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

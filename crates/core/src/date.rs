//! A day without a time and a time zone, such as the end of a waiver; a point in time as text.

use std::fmt;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::Offset;

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date(civil::Date);

impl Date {
    /// Parses a date such as `2026-11-21`.
    pub fn parse(text: &str) -> Option<Self> {
        // jiff also accepts other forms of ISO 8601; comparing with the output excludes them.
        text.parse().ok().map(Date).filter(|date| date.0.year() >= 0 && date.to_string() == text)
    }
}

impl From<SystemTime> for Date {
    /// The day of a point in time, in UTC.
    fn from(time: SystemTime) -> Self {
        Date(in_utc(time).date())
    }
}

/// A point in time to the minute, such as `2026-11-21 09:05 UTC`.
pub fn format_minute(time: SystemTime) -> String {
    let time = in_utc(time);
    format!("{} {:02}:{:02} UTC", time.date(), time.hour(), time.minute())
}

fn in_utc(time: SystemTime) -> civil::DateTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = i64::try_from(since.as_secs()).ok();
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX);
    Offset::UTC.to_datetime(time)
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_exist_are_read_and_written() {
        for text in ["1970-01-01", "2024-02-29", "2000-02-29", "2026-12-31", "9999-12-31"] {
            assert_eq!(Date::parse(text).map(|date| date.to_string()).as_deref(), Some(text));
        }
        for text in [
            "2026-02-29",
            "2100-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-04-31",
            "26-1-1",
            "2026-01-01T00",
            "+026-01-01",
            "-002026-01-01",
            "20260101",
            "2026-01-01 ",
            "",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        assert!(Date::parse("2026-11-30") < Date::parse("2026-12-01"));
    }

    #[test]
    fn a_moment_has_its_minute_in_utc() {
        let text = |seconds| format_minute(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(text(59), "1970-01-01 00:00 UTC");
        assert_eq!(text(1_795_219_200 + 9 * 3600 + 5 * 60), "2026-11-21 09:05 UTC");
        assert_eq!(text(u64::MAX >> 2), format_minute(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::MAX >> 3)));
    }

    #[test]
    fn a_moment_has_its_day_in_utc() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (86_400, "1970-01-02"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_795_219_200, "2026-11-21"),
            (4_102_444_799, "2099-12-31"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(Date::from(time).to_string(), day);
        }
    }
}

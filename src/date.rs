//! A day, without a time and without a zone: when a waiver ends.

use std::fmt;
use std::time::{Duration, SystemTime};

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// Reads `2026-11-21`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut number = |digits: usize| -> Option<u16> {
            let part = parts.next()?;
            let fits = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
            fits.then(|| part.parse().ok()).flatten()
        };
        let (year, month, day) = (number(4)?, u8::try_from(number(2)?).ok()?, u8::try_from(number(2)?).ok()?);
        let exists = parts.next().is_none() && day >= 1 && day <= days(year, month)?;
        exists.then_some(Date { year, month, day })
    }

    /// The day of this moment in UTC.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let mut left = since.as_secs() / (24 * 60 * 60);
        let mut date = Date { year: 1970, month: 1, day: 1 };
        while let Some(length) = days(date.year, date.month).map(u64::from).filter(|length| *length <= left) {
            left -= length;
            date = match date.month {
                12 => Date { year: date.year.saturating_add(1), month: 1, day: 1 },
                month => Date { month: month + 1, ..date },
            };
        }
        Date { day: date.day + u8::try_from(left).unwrap_or_default(), ..date }
    }
}

/// How many days a month has; `None` where there is no such month.
fn days(year: u16, month: u8) -> Option<u8> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if leap { 29 } else { 28 }),
        1..=12 => Some(31),
        _ => None,
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
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
            "",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        assert!(Date::parse("2026-11-30") < Date::parse("2026-12-01"));
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
            assert_eq!(Date::of(time).to_string(), day);
        }
    }
}

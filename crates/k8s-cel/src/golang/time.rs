//! Timestamps, parsed and formatted as Go does it.

use jiff::SignedDuration;
use jiff::civil::{Date, date};

const EPOCH: Date = date(1970, 1, 1);
const DAYS_OF_400_YEARS: i64 = 146_097;

/// A timestamp with the UTC offset that it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Seconds east of UTC; used only for formatting.
    pub offset: i32,
}

/// The first second of the year 1 and the last second of the year 9999: the range of a timestamp.
pub(crate) const MIN_SECONDS: i64 = -62_135_596_800;
pub(crate) const MAX_SECONDS: i64 = 253_402_300_799;
const NANOS: i128 = 1_000_000_000;

/// The parts of a timestamp that rules can access.
#[derive(Debug, Clone, Copy)]
pub struct TimestampParts {
    /// The year.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// Starts at 1.
    pub day: i64,
    /// Starts at 0.
    pub day_of_year: i64,
    /// Sunday is 0.
    pub weekday: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

impl Timestamp {
    /// Parses `2006-01-02`.
    pub(crate) fn from_date(text: &str) -> Option<Timestamp> {
        let mut scan = TimeScan(text);
        let days = scan.date()?;
        scan.0.is_empty().then_some(Timestamp { seconds: days * 86_400, nanos: 0, offset: 0 })
    }

    /// Parses RFC 3339, as the CEL function `timestamp` does.
    pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
        Self::read(text, false)
    }

    /// Parses a field with `format: date-time`; the zone can be missing.
    pub(crate) fn from_date_time(text: &str) -> Option<Timestamp> {
        if text.is_empty() {
            return Some(Timestamp { seconds: 0, nanos: 0, offset: 0 });
        }
        Self::read(text, true)
    }

    fn read(text: &str, zone_is_optional: bool) -> Option<Timestamp> {
        let mut scan = TimeScan(text);
        let days = scan.date()?;
        scan.mark("T")?;
        let hour = scan.number(1, 2).filter(|hour| *hour < 24)?;
        scan.mark(":")?;
        let minute = scan.number(2, 2).filter(|minute| *minute < 60)?;
        scan.mark(":")?;
        let second = scan.number(2, 2).filter(|second| *second < 60)?;
        let nanos = scan.fraction();
        let offset = match scan.0 {
            "" if zone_is_optional => 0,
            "Z" => 0,
            _ => {
                let sign = if scan.mark("+").is_some() { 1 } else { scan.mark("-").map(|()| -1)? };
                let hours = scan.number(2, 2).filter(|hours| *hours <= 24)?;
                scan.mark(":")?;
                // An offset can have 60 minutes.
                let minutes = scan.number(2, 2).filter(|minutes| *minutes <= 60)?;
                if !scan.0.is_empty() {
                    return None;
                }
                sign * (hours * 3_600 + minutes * 60)
            }
        };
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
        Some(Timestamp { seconds, nanos, offset: i32::try_from(offset).ok()? })
    }

    /// The same timestamp in UTC, truncated to the second.
    pub fn to_the_second(self) -> Timestamp {
        Timestamp { seconds: self.seconds, nanos: 0, offset: 0 }
    }

    /// Whether this is the first moment of the year 1, Go's zero time.
    pub fn is_zero(self) -> bool {
        (self.seconds, self.nanos) == (MIN_SECONDS, 0)
    }

    /// Nanoseconds since 1970.
    pub fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// The timestamp `nanos` later, if it is within the range of timestamps.
    pub(crate) fn plus(self, nanos: i128) -> Option<Timestamp> {
        let total = self.total_nanos() + nanos;
        let seconds = i64::try_from(total.div_euclid(NANOS)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(NANOS)).ok()?;
        (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Timestamp { seconds, nanos, ..self })
    }

    /// The parts as shown by a clock `offset` seconds east of UTC.
    pub fn parts(self, offset: i64) -> TimestampParts {
        let local = self.seconds + offset;
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        // The calendar repeats every 400 years; the local time can already be in the year 10000.
        let date = EPOCH + SignedDuration::from_hours(days.rem_euclid(DAYS_OF_400_YEARS) * 24);
        TimestampParts {
            year: i64::from(date.year()) + days.div_euclid(DAYS_OF_400_YEARS) * 400,
            month: date.month().into(),
            day: date.day().into(),
            day_of_year: i64::from(date.day_of_year()) - 1,
            weekday: date.weekday().to_sunday_zero_offset().into(),
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = self.parts(self.offset.into());
        write!(f, "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", at.year, at.month, at.day, at.hour, at.minute, at.second)?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        let minutes = self.offset.abs() / 60;
        match self.offset {
            0 => write!(f, "Z"),
            offset => write!(f, "{}{:02}:{:02}", if offset < 0 { '-' } else { '+' }, minutes / 60, minutes % 60),
        }
    }
}

/// The remaining text.
struct TimeScan<'a>(&'a str);

impl TimeScan<'_> {
    fn mark(&mut self, mark: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(mark)?;
        Some(())
    }

    /// Reads a number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok()
    }

    /// Reads a date and returns the days since 1970.
    fn date(&mut self) -> Option<i64> {
        let year = self.number(4, 4)?;
        self.mark("-")?;
        let month = self.number(2, 2)?;
        self.mark("-")?;
        let day = self.number(2, 2)?;
        let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
        Some(date.duration_since(EPOCH).as_hours() / 24)
    }

    /// Reads an optional fraction of a second and returns it in nanoseconds.
    fn fraction(&mut self) -> u32 {
        let Some(rest) = self.0.strip_prefix(['.', ',']) else { return 0 };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return 0;
        }
        self.0 = &rest[digits..];
        rest.bytes()
            .take(digits)
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |sum, b| sum * 10 + u32::from(b - b'0'))
    }
}

//! Points in time and durations, read and written as Go does.

/// A point in time, with the offset from UTC that it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds beyond the second.
    pub nanos: u32,
    /// Seconds east of UTC, for printing only.
    pub offset: i32,
}

/// The first second of the year 1 and the last of the year 9999: what a timestamp can hold.
pub(crate) const MIN_SECONDS: i64 = -62_135_596_800;
pub(crate) const MAX_SECONDS: i64 = 253_402_300_799;
const NANOS: i128 = 1_000_000_000;

/// The parts of a point in time that rules can ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
    /// From 0.
    pub day_of_year: i64,
    /// From Sunday, 0.
    pub weekday: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl Timestamp {
    /// Reads `2006-01-02`.
    pub(crate) fn from_date(text: &str) -> Option<Timestamp> {
        let mut scan = Scan(text);
        let days = scan.date()?;
        scan.0.is_empty().then_some(Timestamp { seconds: days * 86_400, nanos: 0, offset: 0 })
    }

    /// Reads RFC 3339, as the function `timestamp` does.
    pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
        Self::read(text, false)
    }

    /// Reads a field with `format: date-time`, where the zone may be missing.
    pub(crate) fn from_date_time(text: &str) -> Option<Timestamp> {
        if text.is_empty() {
            return Some(Timestamp { seconds: 0, nanos: 0, offset: 0 });
        }
        Self::read(text, true)
    }

    fn read(text: &str, zone_is_optional: bool) -> Option<Timestamp> {
        let mut scan = Scan(text);
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
                // Some write the last hour of an offset as sixty minutes.
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

    /// The same moment in UTC, to the second.
    pub(crate) fn to_the_second(self) -> Timestamp {
        Timestamp { seconds: self.seconds, nanos: 0, offset: 0 }
    }

    /// Whether it is the first moment of the year 1, which Go takes for no time at all.
    pub(crate) fn is_zero(self) -> bool {
        (self.seconds, self.nanos) == (MIN_SECONDS, 0)
    }

    /// Nanoseconds since 1970.
    pub fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// The point in time `nanos` later, if it is in the range of timestamps.
    pub(crate) fn plus(self, nanos: i128) -> Option<Timestamp> {
        let total = self.total_nanos() + nanos;
        let seconds = i64::try_from(total.div_euclid(NANOS)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(NANOS)).ok()?;
        (MIN_SECONDS..=MAX_SECONDS).contains(&seconds).then_some(Timestamp { seconds, nanos, ..self })
    }

    /// The parts as a clock `offset` seconds east of UTC shows them.
    pub(crate) fn parts(self, offset: i64) -> Parts {
        let local = self.seconds + offset;
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Parts {
            year,
            month,
            day,
            day_of_year: days - days_from_civil(year, 1, 1),
            weekday: (days + 4).rem_euclid(7),
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

/// What is left to read of a text.
struct Scan<'a>(&'a str);

impl Scan<'_> {
    fn mark(&mut self, mark: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(mark)?;
        Some(())
    }

    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok()
    }

    /// A date, as days since 1970.
    fn date(&mut self) -> Option<i64> {
        let year = self.number(4, 4)?;
        self.mark("-")?;
        let month = self.number(2, 2).filter(|month| (1..=12).contains(month))?;
        self.mark("-")?;
        let day = self.number(2, 2).filter(|day| *day >= 1)?;
        let days = days_from_civil(year, month, day);
        // A day that the month does not have would be one of the next month.
        (civil(days) == (year, month, day)).then_some(days)
    }

    /// A fraction of a second, if there is one, in nanoseconds.
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

/// Days since 1970 of a date of the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date that is `days` after 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Reads a duration such as `1h30m` in nanoseconds, as the function `duration` does.
pub fn go_duration(text: &str) -> Option<i64> {
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

/// `0.digits` of a unit.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale = 1f64;
    for digit in digits.bytes() {
        // Digits beyond the precision are dropped.
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

/// Reads a field with `format: duration`, in which days, weeks and words are allowed too.
pub(crate) fn format_duration(text: &str) -> Option<i64> {
    if let Some(nanos) = go_duration(text) {
        return Some(nanos);
    }
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest[start..].split_at(digits);
        let tail = tail.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let letters: usize =
            tail.chars().take_while(|c| c.is_ascii_alphabetic() || *c == 'µ').map(char::len_utf8).sum();
        if letters > 0 {
            let factor: i64 = number.parse().ok()?;
            if let Some(unit) = format_unit(&tail[..letters].to_lowercase()) {
                total = Some(total.unwrap_or(0).wrapping_add(factor.wrapping_mul(unit)));
            }
        }
        rest = &tail[letters..];
    }
    total
}

fn format_unit(word: &str) -> Option<i64> {
    // The last name of each unit is one that longer words may begin with.
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

/// A duration in seconds, as `string()` writes it.
pub(crate) fn duration_text(nanos: i64) -> String {
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

//! The formats of strings that the server enforces, and only those.
//!
//! Any other name is ignored. Several formats are laxer or
//! stricter than their names suggest (`date-time` ignores anything after a second `t`, `ssn` requires eleven
//! characters); the server's behavior is reproduced.

mod email;
mod net;
mod time;

use std::sync::LazyLock;

use regex::Regex;
pub(crate) use time::{is_date, is_date_time};

use super::golang::{duration, url};

/// The check of a format of strings; `None` if the server does not enforce a format with this name. Dashes in the name
/// are ignored: `date-time` and `datetime` are the same format.
pub fn check_of(name: &str) -> Option<fn(&str) -> bool> {
    Some(match &*name.replace('-', "") {
        "bsonobjectid" => |s| s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => |s| url::check_request(s).is_ok(),
        "email" => email::is_email,
        "hostname" => is_hostname,
        "ipv4" => net::is_ipv4,
        "ipv6" => net::is_ipv6,
        "cidr" => net::is_cidr,
        "mac" => net::is_mac,
        "uuid" => |s| is_uuid(s, None),
        "uuid3" => |s| is_uuid(s, Some(b'3')),
        "uuid4" => |s| is_uuid(s, Some(b'4')),
        "uuid5" => |s| is_uuid(s, Some(b'5')),
        "isbn" => |s| is_isbn10(s) || is_isbn13(s),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |s| s.len() == 11 && matches(&SSN, s),
        "hexcolor" => is_hex_color,
        "rgbcolor" => |s| matches(&RGB, s),
        "byte" => is_base64,
        "password" => |_| true,
        "date" => is_date,
        "duration" => |s| duration::parse_worded(s).is_some(),
        "datetime" => is_date_time,
        "k8sshortname" => |s| s.len() <= 63 && is_label(s),
        "k8slongname" => |s| s.len() <= 253 && s.split('.').all(is_label),
        _ => return None,
    })
}

/// A regex that is compiled on first use. All of them are constants, and the table test uses each.
type Lazy = LazyLock<Option<Regex>>;

fn matches(pattern: &Lazy, text: &str) -> bool {
    pattern.as_ref().is_some_and(|p| p.is_match(text))
}

static SSN: Lazy = LazyLock::new(|| Regex::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static RGB: Lazy = LazyLock::new(|| {
    let part = r"[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*";
    Regex::new(&format!(r"^rgb\({part},{part},{part}\)$")).ok()
});
static CARD: Lazy = LazyLock::new(|| {
    Regex::new(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
    .ok()
});
static HOSTNAME: Lazy = LazyLock::new(|| {
    // A single label, or labels with dots of which the last is all letters.
    let c = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    let single = format!("^{c}(?:-?{c}{{0,62}})?");
    let dotted = format!(r"(?:{c}(?:{inner}{{0,61}}{c})?\.)+[a-zA-Z\p{{L}}]{{2,63}}$");
    // Both alternatives are anchored at both ends.
    Regex::new(&format!(r"{single}$|^{dotted}")).ok()
});

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && matches(&HOSTNAME, text) && text.split('.').all(|label| label.len() <= 63)
}

/// A lowercase DNS label.
pub(crate) fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(inner) && bytes.last().is_some_and(inner) && bytes.iter().all(|b| inner(b) || *b == b'-')
}

/// Hexadecimal groups of 8-4-4-4-12 digits with optional dashes; `version` fixes the first digit of the third group.
pub(crate) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    for (group, size) in [8usize, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((digits, after)) = rest.split_at_checked(size) else { return false };
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        match (group, version) {
            (2, Some(version)) if digits[0] != version => return false,
            (3, Some(b'4' | b'5')) if !matches!(digits[0].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b') => {
                return false;
            }
            _ => {}
        }
        rest = after;
    }
    rest.is_empty()
}

fn without_spaces_and_dashes(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_spaces_and_dashes(text);
    if digits.len() != 10 || !digits[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match digits[9] {
        b'X' => 10,
        d if d.is_ascii_digit() => u32::from(d - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..=9).zip(&digits).map(|(weight, d)| weight * u32::from(d - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_spaces_and_dashes(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = digits.iter().enumerate().map(|(at, d)| u32::from(d - b'0') * if at % 2 == 0 { 1 } else { 3 }).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |d: u32| if d > 4 { d * 2 - 9 } else { d * 2 };
    let sum: u32 = digits
        .bytes()
        .rev()
        .map(|b| u32::from(b - b'0'))
        .enumerate()
        .map(|(at, d)| if at % 2 == 1 { doubled(d) } else { d })
        .sum();
    matches(&CARD, &digits) && sum.is_multiple_of(10)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Standard base64 with padding; the empty string is not accepted.
pub(crate) fn is_base64(text: &str) -> bool {
    let body = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !body.is_empty()
        && text.len().is_multiple_of(4)
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_accepts_and_refuses_its_examples() {
        for (format, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
            ("uri", "http://a.b/c?d#e", "foobar.com"),
            ("email", "a@b", "a@"),
            ("hostname", "a-b.example", "a_b"),
            ("ipv4", "010.0.0.1", "1.2.3"),
            ("ipv6", "::ffff:1.2.3.4", "1.2.3.4"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "00:00:5e:00:53:01", "00:00:5e"),
            ("uuid", "123E4567e89b12d3a456426614174000", "123e4567-e89b"),
            ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
            ("isbn", "978-0321751041", "978-0321751042"),
            ("isbn10", "3 401 01319 X", "3423214121"),
            ("creditcard", "4220 8554 2622 2389", "4220855426213389"),
            ("ssn", "123-45-6789", "123456789"),
            ("hexcolor", "#FFF", "#FFFF"),
            ("rgbcolor", "rgb(0,  31, 255)", "rgb(01,31,255)"),
            ("byte", "YQ==", "YQ"),
            ("date", "2024-02-29", "2023-02-29"),
            ("duration", "3 weeks", "3 wee"),
            ("date-time", "2024-01-01T23:59:59.5+99:99", "2024-01-01T24:00:00Z"),
            ("k8s-short-name", "a-b", "A"),
            ("k8s-long-name", "a.b", "a..b"),
        ] {
            let accepts = check_of(format).expect(format);
            assert!(accepts(good), "{format} {good}");
            assert!(!accepts(bad), "{format} {bad}");
        }
        assert!(check_of("quantity").is_none());
    }
}

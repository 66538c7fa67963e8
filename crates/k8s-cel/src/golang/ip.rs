//! IP addresses, parsed as Go's `net/netip` does.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::gotext::quote;

/// An IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ip {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ip::V4(address) => address.fmt(f),
            Ip::V6(address) => address.fmt(f),
        }
    }
}

impl Ip {
    /// Parses an address without a zone; the error is Go's text.
    pub(crate) fn parse(text: &str) -> Result<Ip, String> {
        match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
            Some(b'.') => parse_v4(text).map(Ip::V4),
            Some(b':') if text.ends_with('%') => Err("zone must be a non-empty string".to_owned()),
            Some(b':') => {
                let (address, zone) =
                    text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
                match (address.parse(), zone) {
                    (Ok(address), None) => Ok(Ip::V6(address)),
                    // No CEL function accepts an address with a zone.
                    (Ok(_), Some(_)) => Err("zones are not allowed".to_owned()),
                    (Err(_), _) => Err(problem_of_v6(address)),
                }
            }
            Some(_) => Err("missing IPv6 address".to_owned()),
            None => Err("unable to parse IP".to_owned()),
        }
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let at = |position: usize, problem: &str| format!("{problem} (at {})", quote(&text[position..]));
    let mut octets = [0; 4];
    let mut count = 0;
    let mut start = 0;
    for (index, field) in text.split('.').enumerate() {
        let mut value = 0;
        for (digit, c) in field.char_indices() {
            let Some(number) = c.to_digit(10) else { return Err(at(start + digit, "unexpected character")) };
            if digit == 1 && value == 0 {
                return Err("IPv4 field has octet with leading zero".to_owned());
            }
            value = value * 10 + number;
            if value > 255 {
                return Err("IPv4 field has value >255".to_owned());
            }
        }
        if field.is_empty() {
            // The position of the superfluous dot: the one after the gap, or the last one.
            let dot = if start == text.len() || index > 0 && start > text.len() - 1 { start - 1 } else { start };
            return Err(at(dot, "IPv4 field must have at least one digit"));
        }
        if index == 3 && start + field.len() + 1 < text.len() {
            return Err("IPv4 address too long".to_owned());
        }
        *octets.get_mut(count).ok_or("IPv4 address too long")? = u8::try_from(value).unwrap_or_default();
        count += 1;
        start += field.len() + 1;
    }
    if count < 4 { Err("IPv4 address too short".to_owned()) } else { Ok(Ipv4Addr::from(octets)) }
}

/// Go's reason why `text`, which contains a colon, is not an IPv6 address.
fn problem_of_v6(text: &str) -> String {
    let at = |rest: &str, problem: &str| format!("{problem} (at {})", quote(rest));
    let mut rest = text;
    let mut groups = 0;
    let mut gap = false;
    if let Some(tail) = rest.strip_prefix("::") {
        gap = true;
        rest = tail;
    }
    while groups < 8 && !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return at(rest, "each group must have 4 or less digits");
        }
        if digits == 0 {
            return at(rest, "each colon-separated field must have at least one digit");
        }
        let tail = &rest[digits..];
        if tail.starts_with('.') {
            return match groups {
                groups if !gap && groups != 6 => {
                    at(rest, "embedded IPv4 address must replace the final 2 fields of the address")
                }
                7 => at(rest, "too many hex fields to fit an embedded IPv4 at the end of the address"),
                _ => parse_v4(rest).err().unwrap_or_default(),
            };
        }
        groups += 1;
        let Some(next) = tail.strip_prefix(':') else {
            if tail.is_empty() {
                rest = tail;
                break;
            }
            return at(tail, "unexpected character, want colon");
        };
        if next.is_empty() {
            return at(tail, "colon must be followed by more characters");
        }
        rest = next;
        if let Some(next) = rest.strip_prefix(':') {
            if gap {
                return at(rest, "multiple :: in address");
            }
            gap = true;
            rest = next;
        }
    }
    if !rest.is_empty() {
        return at(rest, "trailing garbage after address");
    }
    match gap {
        true => "the :: must expand to at least one field of zeros".to_owned(),
        false => "address string too short".to_owned(),
    }
}

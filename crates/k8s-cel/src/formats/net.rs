//! Addresses: IPv4 with leading zeros, as older servers read them; IPv6 without zones; CIDR; hardware addresses.

/// Dotted decimal: four parts, each at most 255, leading zeros allowed.
fn parse_ipv4(text: &str) -> bool {
    let mut parts = 0;
    for part in text.split('.') {
        parts += 1;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return false;
        }
        let digits = part.trim_start_matches('0');
        if digits.len() > 3 || !digits.is_empty() && digits.parse::<u16>().is_ok_and(|n| n > 255) {
            return false;
        }
    }
    parts == 4
}

/// `lax` allows leading zeros in an embedded IPv4 address.
fn parse_ipv6(text: &str, lax: bool) -> bool {
    if let Some((before, v4)) = text.rsplit_once(':')
        && v4.contains('.')
        && lax
    {
        // The last four bytes make up two groups.
        return parse_ipv4(v4) && format!("{before}:0:0").parse::<std::net::Ipv6Addr>().is_ok();
    }
    text.parse::<std::net::Ipv6Addr>().is_ok()
}

fn parse_ip(text: &str) -> bool {
    match text.find(['.', ':']) {
        Some(at) if text.as_bytes()[at] == b'.' => parse_ipv4(text),
        Some(_) => parse_ipv6(text, true),
        None => false,
    }
}

/// Any address that contains a dot, including an IPv4 address in IPv6 form.
pub fn is_ipv4(text: &str) -> bool {
    text.contains('.') && parse_ip(text)
}

/// Unlike the others, the server parses this format strictly: no leading zeros.
pub fn is_ipv6(text: &str) -> bool {
    text.contains(':') && parse_ipv6(text, false)
}

/// The bracketed address in the domain of an e-mail address: either family, no leading zeros.
pub fn is_strict_ip(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

pub fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let largest = if parse_ipv4(address) {
        32
    } else if parse_ipv6(address, true) {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= largest)
}

/// 6, 8 or 20 bytes: in pairs with colons or dashes, in groups of four digits with dots, or without separators.
pub fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 12 {
        return false;
    }
    let (group, separator) = match (bytes[2], bytes[4]) {
        (b':' | b'-', _) => (2, Some(bytes[2])),
        (_, b'.') => (4, Some(b'.')),
        _ => (2, None),
    };
    let groups: Vec<&[u8]> = match separator {
        Some(separator) => bytes.split(|b| *b == separator).collect(),
        None => bytes.chunks(group).collect(),
    };
    let well_formed = |g: &&[u8]| g.len() == group && g.iter().all(u8::is_ascii_hexdigit);
    matches!(groups.len() * group / 2, 6 | 8 | 20) && groups.iter().all(well_formed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_server_reads_them() {
        for (check, text, accepted) in [
            (is_ipv4 as fn(&str) -> bool, "1.2.3.4", true),
            (is_ipv4, "001.02.3.4", true),
            (is_ipv4, "1.2.3.256", false),
            (is_ipv4, "1.2.3.4.5", false),
            (is_ipv4, "::ffff:1.2.3.4", true),
            (is_ipv4, "::1", false),
            (is_ipv6, "::1", true),
            (is_ipv6, "fe80::1%eth0", false),
            (is_ipv6, "::ffff:1.2.3.04", false),
            (is_cidr, "::/0", true),
            (is_cidr, "10.0.0.0/08", true),
            (is_cidr, "10.0.0.0/", false),
            (is_cidr, "::/129", false),
            (is_mac, "0000.5e00.5301", true),
            (is_mac, "00005e005301", true),
            (is_mac, "00-00-5e-00-53-0", false),
            (is_mac, "00:00-5e:00:53:01", false),
        ] {
            assert_eq!(check(text), accepted, "{text}");
        }
    }
}

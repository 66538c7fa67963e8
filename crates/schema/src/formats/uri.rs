//! Request URIs: absolute, or a path from the root.

/// Whether `text` is what a web server would take on a request line.
pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    // The fragment is not split off: a `#` stays in the path or the host.
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        // `mailto:x`; without a scheme it is a relative path.
        return !scheme.is_empty();
    }
    let path = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if !is_authority(&scheme.to_ascii_lowercase(), authority) {
                return false;
            }
            path
        }
        _ => rest,
    };
    escapes_are_whole(path)
}

/// The scheme, empty where there is none, and the rest. `None` where the text begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let Some((user, host)) = authority.rsplit_once('@') else { return is_host(scheme, authority) };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    is_host(scheme, host) && user.chars().all(allowed) && user.splitn(2, ':').all(escapes_are_whole)
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some(close) = host.rfind(']') else { return false };
            let address = &host[1..close];
            is_port(&host[close + 1..]) && is_bracketed_address(address)
        }
        Some(_) => false,
        None => {
            let first = host.find(':');
            let colon = if matches!(scheme, "http" | "https") { first } else { host.rfind(':') };
            colon.is_none_or(|at| is_port(&host[at..])) && host_characters(host, false)
        }
    }
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// An IPv6 address, with a zone after `%25`.
fn is_bracketed_address(text: &str) -> bool {
    let (address, zone) = match text.find("%25") {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    };
    let zone_holds = zone.is_none_or(|zone| zone.len() > 3 && host_characters(zone, true));
    zone_holds && address.parse::<std::net::Ipv6Addr>().is_ok()
}

/// Characters of a host. Escapes there stand for bytes beyond ASCII only; in a zone, for what could stand there anyway.
fn host_characters(text: &str, is_zone: bool) -> bool {
    let bytes = text.as_bytes();
    let plain = |b: u8| b >= 0x80 || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b);
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            if !plain(bytes[at]) {
                return false;
            }
            at += 1;
            continue;
        }
        let Some(byte) = text.get(at + 1..at + 3).and_then(hex_byte) else { return false };
        let allowed = if is_zone {
            byte == b'%' || byte == b' ' || byte < 0x80 && plain(byte)
        } else {
            byte >= 0x80 || byte == b'%'
        };
        if !allowed {
            return false;
        }
        at += 3;
    }
    true
}

fn hex_byte(text: &str) -> Option<u8> {
    text.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u8::from_str_radix(text, 16).ok())?
}

/// Whether every percent sign is followed by two hexadecimal digits.
fn escapes_are_whole(text: &str) -> bool {
    text.match_indices('%').all(|(at, _)| text.get(at + 1..at + 3).is_some_and(|digits| hex_byte(digits).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_read_as_on_a_request_line() {
        for (text, accepted) in [
            ("*", true),
            ("/a/b", true),
            ("a/b", false),
            ("./a", false),
            ("mailto:a@b", true),
            (":a", false),
            ("1a:b", false),
            ("http://", true),
            ("http://a b/", false),
            ("http://a/b c", true),
            ("http://a:80/", true),
            ("http://a:b/", false),
            ("http://a:1:2/", false),
            ("mongodb://a:1,b:2/", true),
            ("http://[::1]:80/", true),
            ("http://[::1/", false),
            ("http://[1.2.3.4]/", false),
            ("http://[fe80::1%25en0]/", true),
            ("http://a%zz/", false),
            ("http://a%41/", false),
            ("http://a/%4", false),
            ("http://u:p@h/", true),
            ("http://u p@h/", false),
            ("http://a\n", false),
        ] {
            assert_eq!(is_request_uri(text), accepted, "{text}");
        }
    }
}

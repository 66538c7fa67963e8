//! URLs, parsed as Go's `net/url` does.

use std::fmt;

use super::GoParseError;
use super::ip::Ip;
use crate::gotext::quote;

/// The parts of a URL that rules can access, and those that distinguish two URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Url {
    /// The scheme, in lower case; empty if there is none.
    pub scheme: String,
    opaque: String,
    /// The part before the `@`, with its escapes.
    pub user: Option<String>,
    /// The host and its port.
    pub host: String,
    /// Whether the path begins where the host would be.
    omits_host: bool,
    /// With its escapes.
    pub path: String,
    /// The part after the `?`, with its escapes.
    pub query: Option<String>,
    /// The part after the `#`, with its escapes.
    pub fragment: String,
}

impl Url {
    /// Parses a URL as `net/url` does; the error is its text.
    pub fn parse(text: &str) -> Result<Self, GoParseError> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(rest, false).map_err(|why| format!("parse {}: {why}", quote(rest)))?;
        unescape(fragment, UrlComponent::Other).map_err(|why| format!("parse {}: {why}", quote(text)))?;
        url.fragment = fragment.to_owned();
        Ok(url)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        f.write_str(&self.opaque)?;
        let has_host = self.user.is_some() || !self.host.is_empty();
        let may_have_host = !self.scheme.is_empty() && self.opaque.is_empty() && !self.omits_host;
        if has_host || may_have_host && !self.path.is_empty() {
            f.write_str("//")?;
        }
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}{}", self.host, self.path)?;
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        match self.fragment.as_str() {
            "" => Ok(()),
            fragment => write!(f, "#{fragment}"),
        }
    }
}

/// Checks that the text can be the target of a request: an absolute URL or path, without a fragment.
pub(crate) fn check_request(text: &str) -> Result<(), String> {
    parse(text, true).map(|_| ()).map_err(|why| format!("parse {}: {why}", quote(text)))
}

/// Whether the text is a URL with a scheme and a host.
pub fn is_absolute_url(text: &str) -> bool {
    parse(text, true).is_ok_and(|url| !url.scheme.is_empty() && !url.host.is_empty())
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = "*".to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query.to_owned())),
        None => (rest, None),
    };
    url.query = query;
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if (!url.scheme.is_empty() || !request && !rest.starts_with("///"))
        && let Some(authority) = rest.strip_prefix("//")
    {
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        rest = path;
        let host = match authority.rsplit_once('@') {
            Some((user, host)) => {
                validate_userinfo(user)?;
                url.user = Some(escape_user(user));
                host
            }
            None => authority,
        };
        url.host = parse_host(&url.scheme, host)?;
    } else {
        url.omits_host = !url.scheme.is_empty();
    }
    url.path = escape_path(rest)?;
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn validate_userinfo(user: &str) -> Result<(), String> {
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    unescape(user, UrlComponent::Other).map(|_| ())
}

fn check_port(port: &str) -> Result<(), String> {
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(()),
        None if port.is_empty() => Ok(()),
        _ => Err(format!("invalid port {} after host", quote(port))),
    }
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            check_port(&host[end + 1..])?;
            let name = &host[1..end];
            let name = match name.find("%25") {
                Some(at) => unescape(&name[..at], UrlComponent::Host)? + &unescape(&name[at..], UrlComponent::Zone)?,
                None => unescape(name, UrlComponent::Host)?,
            };
            // The zone is not part of the address.
            match Ip::parse(name.split('%').next().unwrap_or_default()) {
                Ok(Ip::V6(_)) if !name.ends_with('%') => {}
                Ok(Ip::V6(_)) => {
                    return Err(format!("invalid host: ParseAddr({}): zone must be a non-empty string", quote(&name)));
                }
                Ok(Ip::V4(_)) => return Err("invalid IP-literal".to_owned()),
                Err(problem) => return Err(format!("invalid host: ParseAddr({}): {problem}", quote(&name))),
            }
            return Ok(format!("[{name}]{}", &host[end + 1..]));
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // For `http` and `https` the port begins at the first colon, for other schemes at the last.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    unescape(host, UrlComponent::Host)
}

/// The part of a URL that a text belongs to: the allowed characters differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlComponent {
    Host,
    Zone,
    Query,
    Other,
}

/// Bytes that need no escape in a host.
fn is_host_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b)
}

/// Decodes escapes such as `%41`. Invalid UTF-8 is replaced.
pub(crate) fn unescape(text: &str, part: UrlComponent) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        match b {
            b'%' => {
                let shown = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]);
                let invalid = || format!("invalid URL escape {}", quote(&shown));
                let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
                let digits =
                    digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())).ok_or_else(invalid)?;
                let value = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
                let forbidden = match part {
                    UrlComponent::Host => value < 0x80 && digits != "25",
                    UrlComponent::Zone => digits != "25" && value != b' ' && !is_host_byte(value),
                    _ => false,
                };
                if forbidden {
                    return Err(invalid());
                }
                out.push(value);
                at += 3;
            }
            b'+' if part == UrlComponent::Query => {
                out.push(b' ');
                at += 1;
            }
            _ => {
                if matches!(part, UrlComponent::Host | UrlComponent::Zone) && b < 0x80 && !is_host_byte(b) {
                    return Err(format!("invalid character {} in host name", quote(&char::from(b).to_string())));
                }
                out.push(b);
                at += 1;
            }
        }
    }
    Ok(String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// A path as `getEscapedPath` returns it: unchanged if it is validly escaped, otherwise escaped again.
fn escape_path(path: &str) -> Result<String, String> {
    unescape(path, UrlComponent::Other)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    if path.bytes().all(|b| plain(b) || b"!'()*[]%".contains(&b)) {
        return Ok(path.to_owned());
    }
    Ok(escape(path, plain))
}

/// A name and password, escaped only where required.
fn escape_user(user: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,;=".contains(&b);
    match user.split_once(':') {
        Some((name, password)) => format!("{}:{}", escape(name, plain), escape(password, plain)),
        None => escape(user, plain),
    }
}

/// `text` with every byte escaped that is not `plain`.
fn escape(text: &str, plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let value = match b {
            b'%' => {
                let digits: String = bytes.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).unwrap_or(b)
            }
            _ => b,
        };
        if plain(value) {
            out.push(value.into());
        } else {
            out.push_str(&format!("%{value:02X}"));
        }
    }
    out
}

impl Url {
    /// The host without its port and brackets, and the port.
    pub(crate) fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if check_port(&self.host[colon..]).is_ok() => (&self.host[..colon], &self.host[colon + 1..]),
            _ => (self.host.as_str(), ""),
        };
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (name.unwrap_or(host), port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_as_on_a_request_line() {
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
            assert_eq!(check_request(text).is_ok(), accepted, "{text}");
        }
    }
}

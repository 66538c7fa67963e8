//! The rules for names, label keys and label values. Each function returns the server's messages, and none if the text
//! is valid.

use std::borrow::Cow;

fn is_alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn is_lower_alphanumeric(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Whether `text` is not empty, begins and ends with bytes that `end` accepts, and contains only those and `inner`
/// bytes.
fn is_framed(text: &str, end: fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| end(*b))
        && bytes.last().is_some_and(|b| end(*b))
        && bytes.iter().all(|b| end(*b) || inner.contains(b))
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_WORDS: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// The messages say "characters" for names and "bytes" for keys and values; both are bytes.
fn too_long(max: usize, unit: &str) -> String {
    format!("must be no more than {max} {unit}")
}

fn mismatch(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| is_framed(label, is_lower_alphanumeric, b"-"))
}

/// A lowercase DNS subdomain, for the names of custom resources.
pub fn subdomain(text: &str) -> Vec<String> {
    subdomain_in(text, "characters")
}

fn subdomain_in(text: &str, unit: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 253 {
        messages.push(too_long(253, unit));
    }
    if !is_subdomain(text) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                     and must start and end with an alphanumeric character";
        messages.push(mismatch(words, &format!("{LABEL}(\\.{LABEL})*"), &["example.com"]));
    }
    messages
}

/// A lowercase DNS label, for the names of namespaces.
pub fn dns_1123_label(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 63 {
        messages.push(too_long(63, "characters"));
    }
    if !is_framed(text, is_lower_alphanumeric, b"-") {
        messages.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                         and must start and end with an alphanumeric character";
            mismatch(words, LABEL, &["my-name", "123-abc"])
        });
    }
    messages
}

/// A DNS label that begins with a letter, for lowercased kinds.
pub(crate) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 63 {
        messages.push(too_long(63, "characters"));
    }
    let begins_with_letter = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !begins_with_letter || !is_framed(text, is_lower_alphanumeric, b"-") {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
                     start with an alphabetic character, and end with an alphanumeric character";
        messages.push(mismatch(words, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    messages
}

/// A label key, with an optional DNS subdomain before a slash.
pub fn qualified(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let base =
                mismatch(&format!("a valid label key {QUALIFIED_WORDS}"), QUALIFIED, &["MyName", "my.name", "123-abc"]);
            messages.push(format!("{base} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"));
            return messages;
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else {
                messages
                    .extend(subdomain_in(prefix, "bytes").into_iter().map(|message| format!("prefix part {message}")));
            }
            name
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        messages.push(format!("name part {}", too_long(63, "bytes")));
    }
    if !is_framed(name, is_alphanumeric, b"-_.") {
        let base = mismatch(QUALIFIED_WORDS, QUALIFIED, &["MyName", "my.name", "123-abc"]);
        messages.push(format!("name part {base}"));
    }
    messages
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 63 {
        messages.push(too_long(63, "bytes"));
    }
    if !text.is_empty() && !is_framed(text, is_alphanumeric, b"-_.") {
        let words = format!(
            "a valid label must be an empty string or {}",
            QUALIFIED_WORDS.replacen("must consist", "consist", 1)
        );
        messages.push(mismatch(&words, &format!("({QUALIFIED})?"), &["MyValue", "my_value", "12345"]));
    }
    messages
}

/// A name that is valid in a URL path, for embedded resources.
pub fn path_segment(text: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|part| text.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// The prefix of a generated name with a trailing dash masked: a dash is allowed there, because the name continues
/// after the prefix. Like the server, this masks the character before the dash as well, whatever it is.
pub(crate) fn without_trailing_dash(prefix: &str) -> Cow<'_, str> {
    match prefix.as_bytes() {
        [before @ .., _, b'-'] => Cow::Owned(format!("{}a", String::from_utf8_lossy(before))),
        _ => Cow::Borrowed(prefix),
    }
}

/// A name that the server could generate from a prefix, with `xxxxx` as the five random characters.
pub fn generated(prefix: &str) -> String {
    let kept = &prefix.as_bytes()[..prefix.len().min(58)];
    format!("{}xxxxx", String::from_utf8_lossy(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_names_have_the_errors_of_the_server() {
        assert!(subdomain("a-b.c").is_empty() && qualified("a.b/C_d").is_empty() && label_value("").is_empty());
        assert_eq!(
            subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
              start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(
            label_value("-"),
            ["a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
              start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
              validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"]
        );
        assert_eq!(qualified("a/b/c").len(), 1);
        assert_eq!(qualified("/").len(), 3);
        assert_eq!(dns_1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
    }
}

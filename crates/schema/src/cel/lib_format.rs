//! Kubernetes' named formats, such as `format.dns1123Label()`.

use super::budget::Budget;
use super::fault::Result;
use super::lib_url::check_request;
use super::library::Function;
use super::time::Timestamp;
use super::value::Value;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("format.named", 1, named),
    Function::member("validate", 2, validate),
    Function::global("format.dns1123Label", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Dns1123Label)))),
    Function::global("format.dns1123LabelPrefix", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Dns1123LabelPrefix)))),
    Function::global("format.dns1123Subdomain", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Dns1123Subdomain)))),
    Function::global("format.dns1123SubdomainPrefix", 0, |_, _| {
        Some(Ok(Value::Format(NamedFormat::Dns1123SubdomainPrefix)))
    }),
    Function::global("format.dns1035Label", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Dns1035Label)))),
    Function::global("format.dns1035LabelPrefix", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Dns1035LabelPrefix)))),
    Function::global("format.qualifiedName", 0, |_, _| Some(Ok(Value::Format(NamedFormat::QualifiedName)))),
    Function::global("format.labelValue", 0, |_, _| Some(Ok(Value::Format(NamedFormat::LabelValue)))),
    Function::global("format.uri", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Uri)))),
    Function::global("format.uuid", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Uuid)))),
    Function::global("format.byte", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Byte)))),
    Function::global("format.date", 0, |_, _| Some(Ok(Value::Format(NamedFormat::Date)))),
    Function::global("format.datetime", 0, |_, _| Some(Ok(Value::Format(NamedFormat::DateTime)))),
];

/// A named format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedFormat {
    Dns1123Label,
    Dns1123LabelPrefix,
    Dns1123Subdomain,
    Dns1123SubdomainPrefix,
    Dns1035Label,
    Dns1035LabelPrefix,
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// What the server says of a text that a pattern does not match.
fn mismatch(what: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// Whether `text` begins and ends with what `edge` allows and consists of that and `inner`.
fn is_framed(text: &str, edge: fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let at_edge = |b: Option<&u8>| b.is_some_and(|b| edge(*b));
    at_edge(bytes.first()) && at_edge(bytes.last()) && bytes.iter().all(|b| edge(*b) || inner.contains(b))
}

fn is_label(text: &str) -> bool {
    is_framed(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit(), b"-")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    is_framed(text, |b| b.is_ascii_alphanumeric(), b"-_.")
}

fn label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(text) {
        problems.push(match is_subdomain(text) {
            true => "must not contain dots".to_owned(),
            false => mismatch(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                &["my-name", "123-abc"],
                LABEL,
            ),
        });
    }
    problems
}

fn subdomain(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push(too_long(253));
    }
    if !is_subdomain(text) {
        problems.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            &["example.com"],
            SUBDOMAIN,
        ));
    }
    problems
}

fn label_1035(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        problems.push(mismatch(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            LABEL_1035,
        ));
    }
    problems
}

/// What a text would be if something were appended to it: a dash at the end is no problem then.
fn masked(text: &str) -> String {
    match text.len() > 1 && text.ends_with('-') {
        true => {
            let kept = text.char_indices().rev().nth(1).map_or(0, |(at, _)| at);
            format!("{}a", &text[..kept])
        }
        false => text.to_owned(),
    }
}

fn qualified_name(text: &str) -> Vec<String> {
    const WHAT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character";
    let examples = ["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let parts: Vec<_> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        ["", name] => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            problems.extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                mismatch(WHAT, &examples, KEY)
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_key(name) {
        problems.push(format!("name part {}", mismatch(WHAT, &examples, KEY)));
    }
    problems
}

fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_key(text) {
        problems.push(mismatch(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            &format!("({KEY})?"),
        ));
    }
    problems
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, tail)) = rest.split_at_checked(length) else { return false };
        if !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some((clock, mut rest)) = time.split_at_checked(8) else { return false };
    let clock = clock.as_bytes();
    let two = |at: usize, limit: &[u8]| clock[at..at + 2].iter().all(u8::is_ascii_digit) && &clock[at..at + 2] <= limit;
    if Timestamp::from_date(date).is_none() || !two(0, b"23") || !two(3, b"59") || !two(6, b"59") {
        return false;
    }
    if clock[2] != b':' || clock[5] != b':' {
        return false;
    }
    // Any character may stand before the fraction.
    let mut chars = rest.chars();
    if chars.next().is_some_and(|c| c != '\n') {
        let tail = chars.as_str();
        let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
        let fraction = &tail[digits..];
        if digits > 0 && is_zone(fraction) {
            rest = fraction;
        }
    }
    is_zone(rest)
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

impl NamedFormat {
    fn problems(self, text: &str) -> Vec<String> {
        let unless = |valid: bool, problem: &str| if valid { Vec::new() } else { vec![problem.to_owned()] };
        match self {
            NamedFormat::Dns1123Label => label(text),
            NamedFormat::Dns1123LabelPrefix => label(&masked(text)),
            NamedFormat::Dns1123Subdomain => subdomain(text),
            NamedFormat::Dns1123SubdomainPrefix => subdomain(&masked(text)),
            NamedFormat::Dns1035Label => label_1035(text),
            NamedFormat::Dns1035LabelPrefix => label_1035(&masked(text)),
            NamedFormat::QualifiedName => qualified_name(text),
            NamedFormat::LabelValue => label_value(text),
            NamedFormat::Uri => check_request(text).err().into_iter().collect(),
            NamedFormat::Uuid => unless(is_uuid(text), "does not match the UUID format"),
            NamedFormat::Byte => unless(is_base64(text), "invalid base64"),
            NamedFormat::Date => unless(Timestamp::from_date(text).is_some(), "invalid date"),
            NamedFormat::DateTime => unless(is_date_time(text), "invalid datetime"),
        }
    }
}

type Answer<'a> = Option<Result<Value<'a>>>;

fn named<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::String(name)] = args else { return None };
    Some(Ok(match &**name {
        "dns1123Label" => Value::some(Value::Format(NamedFormat::Dns1123Label)),
        "dns1123LabelPrefix" => Value::some(Value::Format(NamedFormat::Dns1123LabelPrefix)),
        "dns1123Subdomain" => Value::some(Value::Format(NamedFormat::Dns1123Subdomain)),
        "dns1123SubdomainPrefix" => Value::some(Value::Format(NamedFormat::Dns1123SubdomainPrefix)),
        "dns1035Label" => Value::some(Value::Format(NamedFormat::Dns1035Label)),
        "dns1035LabelPrefix" => Value::some(Value::Format(NamedFormat::Dns1035LabelPrefix)),
        "qualifiedName" => Value::some(Value::Format(NamedFormat::QualifiedName)),
        "labelValue" => Value::some(Value::Format(NamedFormat::LabelValue)),
        "uri" => Value::some(Value::Format(NamedFormat::Uri)),
        "uuid" => Value::some(Value::Format(NamedFormat::Uuid)),
        "byte" => Value::some(Value::Format(NamedFormat::Byte)),
        "date" => Value::some(Value::Format(NamedFormat::Date)),
        "datetime" => Value::some(Value::Format(NamedFormat::DateTime)),
        _ => Value::Optional(None),
    }))
}

fn validate<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::Format(format), Value::String(text)] = args else { return None };
    // The server counts the size of the pattern times that of the text; this is as much or more.
    let (base, factor) = if *format == NamedFormat::Uri { (300, 28) } else { (30, 3) };
    Some(budget.take(base + factor * text.len() as u64).map(|()| match format.problems(text) {
        problems if problems.is_empty() => Value::Optional(None),
        problems => Value::some(Value::strings(problems)),
    }))
}

//! Kubernetes' named formats, such as `format.dns1123Label()`.

use super::budget::CelBudget;
use super::library::{Function, OverloadResult};
use super::value::CelValue;
use crate::formats::{is_base64, is_date, is_date_time, is_uuid};
use crate::golang::url::check_request;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("format.named", 1, named),
    Function::member("validate", 2, validate),
    Function::global("format.dns1123Label", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Dns1123Label)))),
    Function::global("format.dns1123LabelPrefix", 0, |_, _| {
        Some(Ok(CelValue::Format(NamedFormat::Dns1123LabelPrefix)))
    }),
    Function::global("format.dns1123Subdomain", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Dns1123Subdomain)))),
    Function::global("format.dns1123SubdomainPrefix", 0, |_, _| {
        Some(Ok(CelValue::Format(NamedFormat::Dns1123SubdomainPrefix)))
    }),
    Function::global("format.dns1035Label", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Dns1035Label)))),
    Function::global("format.dns1035LabelPrefix", 0, |_, _| {
        Some(Ok(CelValue::Format(NamedFormat::Dns1035LabelPrefix)))
    }),
    Function::global("format.qualifiedName", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::QualifiedName)))),
    Function::global("format.labelValue", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::LabelValue)))),
    Function::global("format.uri", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Uri)))),
    Function::global("format.uuid", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Uuid)))),
    Function::global("format.byte", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Byte)))),
    Function::global("format.date", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::Date)))),
    Function::global("format.datetime", 0, |_, _| Some(Ok(CelValue::Format(NamedFormat::DateTime)))),
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

/// The server's message for a text that does not match a pattern.
fn mismatch(what: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// Whether `text` begins and ends with bytes that `edge` accepts, and contains only those and `inner` bytes.
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

/// The text with a trailing dash masked: a dash is allowed if something is appended to it.
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
            NamedFormat::Uuid => unless(is_uuid(text, None), "does not match the UUID format"),
            NamedFormat::Byte => unless(is_base64(text), "invalid base64"),
            NamedFormat::Date => unless(is_date(text), "invalid date"),
            NamedFormat::DateTime => unless(is_date_time(text), "invalid datetime"),
        }
    }
}

fn named<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(name)] = args else { return None };
    Some(Ok(match &**name {
        "dns1123Label" => CelValue::some(CelValue::Format(NamedFormat::Dns1123Label)),
        "dns1123LabelPrefix" => CelValue::some(CelValue::Format(NamedFormat::Dns1123LabelPrefix)),
        "dns1123Subdomain" => CelValue::some(CelValue::Format(NamedFormat::Dns1123Subdomain)),
        "dns1123SubdomainPrefix" => CelValue::some(CelValue::Format(NamedFormat::Dns1123SubdomainPrefix)),
        "dns1035Label" => CelValue::some(CelValue::Format(NamedFormat::Dns1035Label)),
        "dns1035LabelPrefix" => CelValue::some(CelValue::Format(NamedFormat::Dns1035LabelPrefix)),
        "qualifiedName" => CelValue::some(CelValue::Format(NamedFormat::QualifiedName)),
        "labelValue" => CelValue::some(CelValue::Format(NamedFormat::LabelValue)),
        "uri" => CelValue::some(CelValue::Format(NamedFormat::Uri)),
        "uuid" => CelValue::some(CelValue::Format(NamedFormat::Uuid)),
        "byte" => CelValue::some(CelValue::Format(NamedFormat::Byte)),
        "date" => CelValue::some(CelValue::Format(NamedFormat::Date)),
        "datetime" => CelValue::some(CelValue::Format(NamedFormat::DateTime)),
        _ => CelValue::Optional(None),
    }))
}

fn validate<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Format(format), CelValue::String(text)] = args else { return None };
    // The server multiplies the sizes of the pattern and of the text; this is at least as much.
    let (base, factor) = if *format == NamedFormat::Uri { (300, 28) } else { (30, 3) };
    Some(budget.take(base + factor * text.len() as u64).map(|()| match format.problems(text) {
        problems if problems.is_empty() => CelValue::Optional(None),
        problems => CelValue::some(CelValue::strings(problems)),
    }))
}

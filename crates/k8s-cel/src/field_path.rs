//! The `fieldPath` of a rule: the field that a failure is attributed to.

use serde_json::Value as Json;

/// A field below the value that a rule validates.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldPath {
    /// The path as the server prints it, without a leading dot: `a.b` or `[key]`.
    pub text: String,
    /// The names in the path.
    pub steps: Vec<String>,
}

/// The path relative to the rule's value; `None` if it is not valid for the schema.
pub(crate) fn normalized(path: &str, schema: &Json) -> Option<FieldPath> {
    let mut out = String::new();
    let mut steps = Vec::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[', ']']).unwrap_or(tail.len());
            name = tail[..end].to_owned();
            rest = &tail[end..];
        } else {
            let (quoted, tail) = quoted(rest.strip_prefix("['")?)?;
            name = quoted;
            rest = tail.strip_prefix(']')?;
        }
        let object = |key: &str| schema.get(key).filter(|value| value.is_object());
        if let Some(properties) = object("properties") {
            schema = properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            schema = object("additionalProperties")?;
            out.push_str(&format!("[{name}]"));
        }
        steps.push(name);
    }
    (!out.is_empty()).then_some(FieldPath { text: out, steps })
}

/// The text up to the closing quote, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((out, &text[at + 1..])),
            '\\' => out.push(match chars.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_is_printed_as_the_server_does() {
        let schema = json!({"properties": {
            "a": {"properties": {"b.c": {}}},
            "m": {"additionalProperties": {"properties": {"x": {}}}},
        }});
        type Parsed<'a> = Option<(&'a str, &'a [&'a str])>;
        let cases: [(&str, Parsed); 10] = [
            (".a", Some(("a", &["a"]))),
            (".a['b.c']", Some(("a.b.c", &["a", "b.c"]))),
            (".m['k\\'s'].x", Some(("m[k's].x", &["m", "k's", "x"]))),
            (".m.key", Some(("m[key]", &["m", "key"]))),
            (".missing", None),
            ("a", None),
            (".a[0]", None),
            (".a['b.c'", None),
            (".a['\\q']", None),
            ("", None),
        ];
        for (path, wanted) in cases {
            let steps = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let wanted = wanted.map(|(text, names)| FieldPath { text: text.to_owned(), steps: steps(names) });
            assert_eq!(normalized(path, &schema), wanted, "{path}");
        }
    }
}

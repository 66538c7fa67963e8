//! `selectableFields` and the `fieldPath` of rules: paths into a schema.

use std::collections::BTreeSet;

use super::found::Errors;
use super::props::Props;
use super::structural;
use crate::path::LinkedPath;

const MAX_FIELDS: usize = 8;

/// The schema if it can be converted to a structural one; otherwise the error is reported at `path`.
pub fn structural<'s, 'v>(
    schema: Option<&'s Props<'v>>,
    path: &LinkedPath,
    errors: &mut Errors,
) -> Option<&'s Props<'v>> {
    let schema = schema?;
    match structural::unsupported(schema) {
        Some(problem) => {
            errors.invalid(path, "", problem);
            None
        }
        None => Some(schema),
    }
}

/// Checks the paths of `selectableFields`. Without a schema, the server does not continue after the first name in a
/// path, so only errors before it are reported.
pub fn check(fields: &[&str], schema: Option<&Props>, many: bool, path: &LinkedPath, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let path = &LinkedPath::Index(path, at);
        let path = &LinkedPath::Name(path, "jsonPath");
        if field.is_empty() {
            errors.required(path, "");
            continue;
        }
        let followed = match schema {
            Some(schema) => follow(field, schema, false).map(Some),
            None => Tokens { rest: field }.name(false).map(|_| None),
        };
        let found = match followed {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(problem) => {
                errors.invalid(path, *field, format!("is an invalid path: {problem}"));
                continue;
            }
        };
        if found.root.as_deref() == Some("metadata") {
            errors.invalid(path, *field, "must not point to fields in metadata");
        }
        if !found.schema.is_some_and(|schema| matches!(schema.kind, "string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.invalid(path, *field, detail);
        }
        if !known.insert(found.path) {
            errors.duplicate(path, *field);
        }
    }
    if known.len() > MAX_FIELDS && !many {
        errors.too_many(path, known.len(), MAX_FIELDS);
    }
}

/// The target of a path.
pub struct Followed<'s, 'v> {
    pub path: String,
    root: Option<String>,
    /// `None` below `additionalProperties: true`.
    pub schema: Option<&'s Props<'v>>,
}

/// Follows a path such as `.spec.x` or `.spec['x']`. The error is the server's text.
pub fn follow<'s, 'v>(text: &str, schema: &'s Props<'v>, brackets: bool) -> Result<Followed<'s, 'v>, String> {
    let mut tokens = Tokens { rest: text };
    let mut found = Followed { path: String::new(), root: None, schema: Some(schema) };
    while let Some((name, is_in_brackets)) = tokens.name(brackets)? {
        step(&mut found, &name)?;
        if is_in_brackets {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err("unexpected end of JSON path".to_owned()),
            }
        }
    }
    Ok(found)
}

fn step(found: &mut Followed, name: &str) -> Result<(), String> {
    let missing = || "does not refer to a valid field".to_owned();
    let schema = found.schema.ok_or_else(missing)?;
    if !schema.properties.is_empty() {
        found.schema = Some(schema.properties.get(name).ok_or_else(missing)?);
        if !found.path.is_empty() {
            found.path.push('.');
        }
        found.path.push_str(name);
    } else {
        if schema.additional.is_none() {
            return Err(missing());
        }
        found.schema = schema.entry();
        found.path.push_str(&format!("[{name}]"));
    }
    if found.root.is_none() {
        found.root = Some(found.path.clone());
    }
    Ok(())
}

/// Splits a path at `.`, `[` and `]` outside quotes.
struct Tokens<'t> {
    rest: &'t str,
}

impl Tokens<'_> {
    /// The next name, and whether it is in brackets; `None` at the end.
    fn name(&mut self, brackets: bool) -> Result<Option<(String, bool)>, String> {
        const END: &str = "unexpected end of JSON path";
        match self.next() {
            None => Ok(None),
            Some("[") if !brackets => Err("array notation is not allowed".to_owned()),
            Some("[") => {
                let token = self.next().ok_or(END)?;
                let inner = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let Some(inner) = inner else { return Err(format!("expected single quoted string but got {token}")) };
                Ok(Some((unquoted(inner)?, true)))
            }
            Some(".") => Ok(Some((self.next().ok_or(END)?.to_owned(), false))),
            Some(other) => Err(format!("expected [ or . but got: {other}")),
        }
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let end = if bytes[0] == b'\'' {
            let end = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
            end.map_or(bytes.len(), |at| at + 1)
        } else {
            let delimiter = bytes.iter().position(|b| matches!(b, b'.' | b'[' | b']'));
            match delimiter {
                Some(0) => 1,
                Some(at) => at,
                None => bytes.len(),
            }
        };
        // The server's scanner would return an unterminated quoted string only if it ended at a delimiter, which is
        // impossible.
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

fn unquoted(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match characters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(c @ ('\'' | '\\')) => c,
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
            None => '\\',
        });
    }
    Ok(out)
}

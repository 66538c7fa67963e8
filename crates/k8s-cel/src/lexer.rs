//! Splits an expression into tokens.

use super::ast::Literal;

/// A token with its byte offset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CelToken {
    pub at: usize,
    pub kind: TokenKind,
}

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Ident(String),
    /// A field name in backquotes, without them.
    QuotedName(String),
    /// An unsigned number, a string or bytes.
    Literal(Literal),
    /// `9223372036854775808`, which is valid only after a minus sign.
    MinInt,
    /// An operator or a bracket.
    Mark(&'static str),
}

/// Longer marks come first, because the first match is used.
const MARKS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];

/// Splits `source`; the error includes the byte offset.
pub(crate) fn tokens(source: &str) -> Result<Vec<CelToken>, String> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{c}') {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (kind, length) = token(rest).map_err(|problem| format!("{problem} at byte {at}"))?;
            out.push(CelToken { at, kind });
            at += length;
        }
    }
    Ok(out)
}

fn token(rest: &str) -> Result<(TokenKind, usize), String> {
    let bytes = rest.as_bytes();
    if let Some((prefix, raw, is_bytes)) = string_prefix(bytes) {
        return string(rest, prefix, raw, is_bytes);
    }
    let first = bytes[0];
    if first.is_ascii_digit() || (first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit)) {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let length = bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        return Ok((TokenKind::Ident(rest[..length].to_owned()), length));
    }
    if first == b'`' {
        return quoted_name(rest);
    }
    match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
        Some(mark) => Ok((TokenKind::Mark(mark), mark.len())),
        None => Err(format!("unexpected character {:?}", rest.chars().next().unwrap_or_default())),
    }
}

fn quoted_name(rest: &str) -> Result<(TokenKind, usize), String> {
    let name = rest[1..].split_once('`').map(|(name, _)| name).ok_or("unterminated name")?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-/ ".contains(&b));
    match is_name {
        true => Ok((TokenKind::QuotedName(name.to_owned()), name.len() + 2)),
        false => Err(format!("invalid name {name:?}")),
    }
}

fn number(rest: &str) -> Result<(TokenKind, usize), String> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
    if bytes[0] == b'0' && matches!(bytes.get(1), Some(b'x' | b'X')) {
        let length = 2 + bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let value = u64::from_str_radix(&rest[2..length], 16).map_err(|_| "invalid int literal".to_owned())?;
        return integer(value, length, bytes);
    }
    let mut end = digits(0);
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        is_float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
            is_float = true;
        }
    }
    if is_float {
        let value: f64 = rest[..end].parse().map_err(|_| "invalid double literal".to_owned())?;
        return if value.is_finite() {
            Ok((TokenKind::Literal(Literal::Double(value)), end))
        } else {
            Err("invalid double literal".to_owned())
        };
    }
    let value: u64 = rest[..end].parse().map_err(|_| "invalid int literal".to_owned())?;
    integer(value, end, bytes)
}

fn integer(value: u64, end: usize, bytes: &[u8]) -> Result<(TokenKind, usize), String> {
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        return Ok((TokenKind::Literal(Literal::Uint(value)), end + 1));
    }
    match i64::try_from(value) {
        Ok(value) => Ok((TokenKind::Literal(Literal::Int(value)), end)),
        Err(_) if value == 1 << 63 => Ok((TokenKind::MinInt, end)),
        Err(_) => Err("invalid int literal".to_owned()),
    }
}

/// The length of the prefix before the quotes, whether the literal is raw, and whether it is a bytes literal.
fn string_prefix(bytes: &[u8]) -> Option<(usize, bool, bool)> {
    let is_quote = |at: usize| matches!(bytes.get(at), Some(b'"' | b'\''));
    let lower = |at: usize| bytes.get(at).map(u8::to_ascii_lowercase);
    match (lower(0), lower(1)) {
        _ if is_quote(0) => Some((0, false, false)),
        (Some(b'r'), _) if is_quote(1) => Some((1, true, false)),
        (Some(b'b'), _) if is_quote(1) => Some((1, false, true)),
        (Some(b'b'), Some(b'r')) if is_quote(2) => Some((2, true, true)),
        _ => None,
    }
}

fn string(rest: &str, prefix: usize, raw: bool, is_bytes: bool) -> Result<(TokenKind, usize), String> {
    let body = &rest[prefix..];
    let single = &body[..1];
    let (quote, triple) = match body.get(..3) {
        Some(three) if three == single.repeat(3) => (three, true),
        _ => (single, false),
    };
    let mut out = Vec::new();
    let mut at = quote.len();
    loop {
        let tail = &body[at..];
        if tail.starts_with(quote) {
            at += quote.len();
            break;
        }
        let Some(c) = tail.chars().next() else { return Err("unterminated string".to_owned()) };
        match c {
            '\n' | '\r' if !triple => return Err("newline in string".to_owned()),
            // Line endings are normalized, as in a text file.
            '\r' => {
                out.push(b'\n');
                at += if tail.starts_with("\r\n") { 2 } else { 1 };
            }
            '\\' if !raw => at += escape(tail, is_bytes, &mut out)?,
            _ => {
                out.extend_from_slice(&tail.as_bytes()[..c.len_utf8()]);
                at += c.len_utf8();
            }
        }
    }
    let literal = if is_bytes {
        Literal::Bytes(out)
    } else {
        Literal::String(String::from_utf8(out).map_err(|_| "invalid string literal".to_owned())?)
    };
    Ok((TokenKind::Literal(literal), prefix + at))
}

/// Appends the value of the escape at the start of `tail`, and returns the length of the escape.
fn escape(tail: &str, is_bytes: bool, out: &mut Vec<u8>) -> Result<usize, String> {
    let invalid = || "invalid escape in string".to_owned();
    let bytes = tail.as_bytes();
    let simple = match bytes.get(1) {
        Some(b'a') => 7,
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => 10,
        Some(b'r') => 13,
        Some(b't') => 9,
        Some(b'v') => 11,
        Some(c @ (b'\\' | b'\'' | b'"' | b'`' | b'?')) => *c,
        Some(b'x' | b'X') => return code(tail, 2, 2, 16, is_bytes, out),
        Some(b'u') if !is_bytes => return code(tail, 2, 4, 16, is_bytes, out),
        Some(b'U') if !is_bytes => return code(tail, 2, 8, 16, is_bytes, out),
        Some(b'0'..=b'3') => return code(tail, 1, 3, 8, is_bytes, out),
        _ => return Err(invalid()),
    };
    out.push(simple);
    Ok(2)
}

fn code(
    tail: &str,
    from: usize,
    length: usize,
    radix: u32,
    is_bytes: bool,
    out: &mut Vec<u8>,
) -> Result<usize, String> {
    let invalid = || "invalid escape in string".to_owned();
    let digits = tail.get(from..from + length).ok_or_else(invalid)?;
    if !digits.bytes().all(|b| (b as char).is_digit(radix)) {
        return Err(invalid());
    }
    let value = u32::from_str_radix(digits, radix).map_err(|_| invalid())?;
    match (is_bytes, u8::try_from(value)) {
        (true, Ok(byte)) => out.push(byte),
        (true, Err(_)) => return Err(invalid()),
        (false, _) => {
            let c = char::from_u32(value).ok_or_else(invalid)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(from + length)
}

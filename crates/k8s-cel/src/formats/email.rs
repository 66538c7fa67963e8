//! E-mail addresses as in a message header: `a@b`, `Name <a@b>`, comments, quoted parts, and groups with one member.

use super::net;

/// Whether `text` is exactly one address.
pub fn is_email(text: &str) -> bool {
    let mut reader = AddressReader { rest: text };
    reader.address(true) == Some(1) && reader.skip_comments() && reader.rest.is_empty()
}

#[derive(Clone, Copy)]
struct AddressReader<'a> {
    rest: &'a str,
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}

impl<'a> AddressReader<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads one address or group and returns the number of addresses.
    fn address(&mut self, may_be_group: bool) -> Option<usize> {
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        let mut plain = *self;
        if plain.spec() {
            *self = plain;
            self.skip_space();
            if self.rest.starts_with('(') && !self.name_comment() {
                return None;
            }
            return Some(1);
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if may_be_group && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.spec() && self.take('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            return self.skip_comments().then_some(0);
        }
        let mut members = 0;
        loop {
            self.skip_space();
            members += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.take(';') {
                return self.skip_comments().then_some(members);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// `local@domain`
    fn spec(&mut self) -> bool {
        self.skip_space();
        let local = if self.rest.starts_with('"') {
            self.quoted().is_some_and(|is_empty| !is_empty)
        } else {
            self.atom(false).is_some()
        };
        if !local || !self.take('@') {
            return false;
        }
        self.skip_space();
        if self.take('[') { self.domain_literal() } else { self.atom(false).is_some() }
    }

    /// The words before an angle bracket. Unlike the first word, later ones can be malformed.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return None;
            }
            self.skip_space();
            if self.rest.is_empty() {
                break;
            }
            let read = if self.rest.starts_with('"') {
                self.quoted().is_some()
            } else {
                self.atom(true).is_some_and(|word| !has_unknown_charset(word))
            };
            if !read {
                break;
            }
            words += 1;
        }
        // An empty text yields an empty phrase.
        (words > 0 || self.rest.is_empty()).then_some(())
    }

    /// Reads a quoted string and returns whether it is empty. The reader moves only if there is one.
    fn quoted(&mut self) -> Option<bool> {
        let inner = self.rest.strip_prefix('"')?;
        let (mut escaped, mut is_empty) = (false, true);
        for (at, c) in inner.char_indices() {
            let is_text = is_visible(c) || matches!(c, ' ' | '\t');
            match c {
                '"' if !escaped => {
                    self.rest = &inner[at + 1..];
                    return Some(is_empty);
                }
                '\\' if !escaped => escaped = true,
                _ if is_text => (escaped, is_empty) = (false, false),
                _ => return None,
            }
        }
        None
    }

    /// Letters and dots. In a `lax` atom, dots can be anywhere.
    fn atom(&mut self, lax: bool) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_atom(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return None;
        }
        self.rest = rest;
        let well_dotted = !(atom.starts_with('.') || atom.ends_with('.') || atom.contains(".."));
        (lax || well_dotted).then_some(atom)
    }

    /// `1.2.3.4]`
    fn domain_literal(&mut self) -> bool {
        let Some((address, rest)) = self.rest.split_once(']') else { return false };
        self.rest = rest;
        net::is_strict_ip(address)
    }

    /// A comment that serves as the name; its words can be encoded.
    fn name_comment(&mut self) -> bool {
        let before = self.rest;
        if !self.take('(') || !self.comment() {
            return false;
        }
        let inner = &before[1..before.len() - self.rest.len() - 1];
        !inner.split([' ', '\t']).any(has_unknown_charset)
    }

    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.take('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// The rest of a comment whose opening parenthesis is already consumed.
    fn comment(&mut self) -> bool {
        let mut depth = 1;
        let mut characters = self.rest.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => {
                    characters.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return true;
            }
        }
        self.rest = "";
        false
    }
}

/// Whether `word` is `=?charset?b|q?text?=` with a charset other than UTF-8, ISO-8859-1 and ASCII.
fn has_unknown_charset(word: &str) -> bool {
    let Some(inner) = word.strip_prefix("=?").and_then(|w| w.strip_suffix("?=")) else { return false };
    let mut parts = inner.splitn(3, '?');
    let (Some(charset), Some(encoding), Some(text)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let known = ["utf-8", "iso-8859-1", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known));
    !charset.is_empty() && encoding.len() == 1 && "bqBQ".contains(encoding) && !text.is_empty() && !known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses_are_parsed_as_in_a_message_header() {
        for (text, accepted) in [
            ("a@b", true),
            (" a@b ", true),
            ("a.b@c.d", true),
            ("a..b@c", false),
            (".a@b", false),
            ("a@b.", false),
            ("a@[127.0.0.1]", true),
            ("a@[x]", false),
            ("\"a b\"@c", true),
            ("\"\"@c", false),
            ("Name <a@b>", true),
            ("<a@b>", true),
            ("a@b (comment)", true),
            ("a@b (open", false),
            ("a@b, c@d", false),
            ("team: a@b;", true),
            ("team: a@b, c@d;", false),
            ("team:;", false),
            ("é@ü", true),
            ("a@", false),
            ("@b", false),
            ("", false),
            ("=?utf-8?q?x?= <a@b>", true),
        ] {
            assert_eq!(is_email(text), accepted, "{text}");
        }
    }
}

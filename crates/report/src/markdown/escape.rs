//! Escapes untrusted text in Markdown. Inside code nothing is markup: no emphasis, links, mentions or references to
//! issues.

pub use gantry_core::text::{markdown_code as code, markdown_code_block as code_block};

/// The text in HTML.
pub fn html(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A sentence of gantry that may contain names.
pub fn words(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | ':' | ';' | '(' | ')' | '-' | '/') {
            // A numeric character reference is never markup.
            out.push_str(&format!("&#{};", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_code_span_that_contains_it() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("``x"), "``` ``x ```");
        assert_eq!(code(""), "");
        assert_eq!(code_block("a", "yaml"), "```yaml\na\n```");
        assert_eq!(code_block("````", ""), "`````\n````\n`````");
    }

    #[test]
    fn markup_characters_in_text_are_written_as_entities() {
        assert_eq!(words("Failed: a@b [x](y) *z* <i>."), "Failed: a&#64;b &#91;x&#93;(y) &#42;z&#42; &#60;i&#62;.");
        assert_eq!(html("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
    }
}

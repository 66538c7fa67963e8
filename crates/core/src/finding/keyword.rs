//! Changed keywords of a schema node.

use std::fmt::{self, Display, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum length of a value in characters. Longer values are truncated: an enum may have thousands of items.
const LONGEST: usize = 500;

/// A keyword of a schema node whose meaning differs between the live and the desired CRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeywordChange {
    /// Its name, for example `minimum`.
    pub keyword: String,
    /// Its value in the live CRD, as JSON, truncated if it is long. Absent if the live node lacks the keyword.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// Its value in the desired CRD, as JSON, truncated if it is long. Absent if the desired node lacks the keyword, or
    /// if the node itself is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
}

impl KeywordChange {
    /// The change of a keyword, from values that are displayed as JSON.
    pub fn new(keyword: &str, live: Option<impl Display>, desired: Option<impl Display>) -> Self {
        KeywordChange { keyword: keyword.to_owned(), live: live.map(shorten), desired: desired.map(shorten) }
    }
}

/// The value as JSON. Formatting stops at the maximum length.
fn shorten(value: impl Display) -> String {
    let mut short = Short { text: String::new(), room: LONGEST };
    if write!(short, "{value}").is_err() {
        short.text.push('…');
    }
    short.text
}

struct Short {
    text: String,
    room: usize,
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.room = self.room.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut() {
        let of = |length: usize| KeywordChange::new("enum", Some("ä".repeat(length)), None::<&str>).live.unwrap();
        assert_eq!(of(LONGEST), "ä".repeat(LONGEST));
        assert_eq!(of(LONGEST + 1), format!("{}…", "ä".repeat(LONGEST)));
    }
}

//! Numbers as the server reads them: an int64 if the text is an integer in range, otherwise a float64.

use serde_json::Number;

/// A JSON number after decoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// An int64.
    Int(i64),
    /// A float64.
    Float(f64),
}

impl From<&Number> for Num {
    /// The number that the server decodes.
    fn from(number: &Number) -> Self {
        match number.as_i64() {
            Some(i) => Self::Int(i),
            None => Self::Float(number.as_f64().unwrap_or(0.0)),
        }
    }
}

impl Num {
    /// As a float64.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(i) => i as f64,
            Self::Float(f) => f,
        }
    }

    /// The text that the range checks parse.
    pub fn digits(self) -> String {
        match self {
            Self::Int(i) => i.to_string(),
            Self::Float(f) => format!("{f}"),
        }
    }
}

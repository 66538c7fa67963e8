//! A sentence with placeholders for the versions of a CRD, which can be written for one version or for several.

/// The texts of a finding, with placeholders for its versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForVersions {
    /// What is wrong.
    pub message: Wording,
    /// The next step.
    pub help: Wording,
}

/// Text with placeholders for the versions. Two findings of different versions report the same if their wordings are
/// equal.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wording(Vec<WordingPart>);

/// A piece of a [`Wording`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordingPart {
    /// Text that is the same for all versions.
    Text(String),
    /// The place of the names of the versions.
    Versions,
}

impl Wording {
    /// The sentence that consists of these parts, in this order.
    pub fn new(parts: Vec<WordingPart>) -> Self {
        Wording(parts)
    }

    /// The sentence for these versions: `v1`, or `v1 and v2`.
    pub fn for_versions(&self, versions: &str) -> String {
        self.0.iter().map(|part| if let WordingPart::Text(text) = part { text } else { versions }).collect()
    }

    /// Appends `text` to the sentence.
    #[must_use]
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.0.push(WordingPart::Text(text.into()));
        self
    }

    /// Applies `change` to all text of the sentence.
    #[must_use]
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        let change = |part| if let WordingPart::Text(text) = part { WordingPart::Text(change(&text)) } else { part };
        Wording(self.0.into_iter().map(change).collect())
    }

    /// Whether the sentence has no text and no placeholder.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|part| matches!(part, WordingPart::Text(text) if text.is_empty()))
    }
}

impl From<String> for Wording {
    fn from(text: String) -> Self {
        Wording(vec![WordingPart::Text(text)])
    }
}

impl From<&str> for Wording {
    fn from(text: &str) -> Self {
        Wording::from(text.to_owned())
    }
}

/// A [`Wording`] from format strings with the versions between them: `wording!("keep {field} in ", VERSIONS, ".")`.
#[macro_export]
macro_rules! wording {
    (@part VERSIONS) => { $crate::finding::wording::WordingPart::Versions };
    (@part $text:literal) => { $crate::finding::wording::WordingPart::Text(format!($text)) };
    ($($part:tt),+ $(,)?) => {
        $crate::finding::wording::Wording::new(vec![$($crate::finding::wording::wording!(@part $part)),+])
    };
}
pub use wording;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_replace_the_placeholders() {
        let (field, now) = ("spec.v1", 3);
        let wording = wording!("minItems of {field} may not be added to ", VERSIONS, ": {now}");
        assert_eq!(wording.for_versions("v1 and v2"), "minItems of spec.v1 may not be added to v1 and v2: 3");
        assert_eq!(wording, wording!("minItems of spec.v1 may not be added to ", VERSIONS, ": {now}"));
        assert_ne!(wording, wording.clone().then("!"));
        assert!(Wording::default().is_empty() && Wording::from("").is_empty() && !wording!("", VERSIONS).is_empty());
    }
}

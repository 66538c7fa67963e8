//! The API server's error about an object, for comparing findings of two checks.

/// An error that the API server reports about an object, or would report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerRefusal {
    /// The schema does not have the field.
    UnknownField,
    /// An apply of the live object must satisfy the version of an entry in its `managedFields`, and does not.
    ManagedFields,
    /// The server's message with all values, even those that `--redact` removes from the finding's message.
    Refused(String),
}

impl ServerRefusal {
    /// Whether the server reports the same error for the same place. The server's message may start with the object.
    pub fn is_said_by(&self, server: &ServerRefusal) -> bool {
        // A server's message is on one line.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match (self, server) {
            (ServerRefusal::Refused(own), ServerRefusal::Refused(reported)) => line(reported).ends_with(&line(own)),
            (own, reported) => own == reported,
        }
    }
}

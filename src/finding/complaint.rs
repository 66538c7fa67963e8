//! What the API server has against an object, as far as findings of two checks are compared by it.

/// What the API server says of an object, or would say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Complaint {
    /// The schema does not have the field.
    UnknownField,
    /// The server's words, with all values, whatever `--redact` takes out of the message.
    Refused(String),
}

impl Complaint {
    /// Whether the server says the same of the same place. It may say of what object first.
    pub fn is_said_by(&self, server: &Complaint) -> bool {
        // The words of a server are on one line.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match (self, server) {
            (Complaint::Refused(words), Complaint::Refused(said)) => line(said).ends_with(&line(words)),
            (complaint, said) => complaint == said,
        }
    }
}

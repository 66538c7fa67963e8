//! What a check finds wrong, before the runner finds its place and decides its severity.

use std::borrow::Cow;

use super::rule::RuleDoc;
use gantry_core::finding::{FindingBody, Severity};
use gantry_core::resource::{ObjectRef, Step};

/// The subject of a violation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationSubject {
    /// A change of the plan, by its index in `plan.changes`.
    Change(usize),
    /// A manifest of a kind that is not served, by its index in `plan.unplaced`.
    Unplaced(usize),
    /// The ClusterServiceVersion of a bundle, by the index of the bundle in `plan.bundles`.
    Bundle(usize),
    /// An object that is not in the plan.
    Object(ObjectRef),
    /// No single object.
    Plan,
}

impl From<usize> for ViolationSubject {
    fn from(change: usize) -> Self {
        ViolationSubject::Change(change)
    }
}

/// A violation of a rule, before the runner finds its place and decides its severity.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The object that it is about.
    pub subject: ViolationSubject,
    /// The name of the rule.
    pub rule: Cow<'static, str>,
    /// The rule's own severity. The runner can lower it, but never raises it.
    pub severity: Severity,
    /// The server may accept the request after all, although the rule predicts a refusal: see
    /// [`CheckEntry::refusals`](super::entry::CheckEntry::refusals).
    pub may_be_accepted: bool,
    /// The place in the desired object to point at; if it does not exist, its deepest existing ancestor.
    pub at: Vec<Step>,
    /// What the rule says.
    pub body: FindingBody,
}

impl Violation {
    /// A violation of a rule with the rule's defaults.
    pub fn new(
        doc: &RuleDoc,
        subject: impl Into<ViolationSubject>,
        version: Option<String>,
        message: String,
        help: String,
        at: Vec<Step>,
    ) -> Self {
        let explain = Some(doc.name.into());
        Violation {
            subject: subject.into(),
            rule: doc.name.into(),
            severity: doc.severity(),
            may_be_accepted: false,
            at,
            body: FindingBody { version, message, breaks: doc.breaks(), help, explain, ..FindingBody::default() },
        }
    }

    /// With this severity instead of the rule's.
    #[must_use]
    pub fn severity(self, severity: Severity) -> Self {
        Violation { severity, ..self }
    }

    /// As a warning, because the server may accept the request after all; `help` says when.
    #[must_use]
    pub fn may_be_accepted(mut self, help: String) -> Self {
        self.body.help = help;
        Violation { severity: Severity::Warning, may_be_accepted: true, ..self }
    }

    /// With the label of the place that it points at.
    #[must_use]
    pub fn label(mut self, label: impl Into<Option<String>>) -> Self {
        self.body.label = label.into();
        self
    }

    /// With the field, or the schema node, that it is about.
    #[must_use]
    pub fn path(mut self, path: impl Into<Option<String>>) -> Self {
        self.body.path = path.into();
        self
    }
}

//! Access to the fields of an object that works with any status: a field of the wrong type counts as absent.

use serde_json::Value;

use super::Readiness;

/// A live object.
#[derive(Clone, Copy)]
pub struct LiveObjectView<'a>(pub &'a Value);

/// One entry of `status.conditions`.
#[derive(Clone, Copy)]
pub struct StatusCondition<'a>(&'a Value);

impl<'a> LiveObjectView<'a> {
    /// The value at a JSON pointer.
    pub fn at(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(pointer)
    }

    pub fn text(self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn is_true(self, pointer: &str) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub fn list(self, pointer: &str) -> &'a [Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// An integer; a value that is too large is clamped.
    pub fn integer(self, pointer: &str) -> Option<i64> {
        let value = self.at(pointer)?;
        value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX))
    }

    /// A count, such as a number of replicas. The API server omits zeros.
    pub fn count(self, pointer: &str) -> i64 {
        self.integer(pointer).unwrap_or_default().max(0)
    }

    /// `spec.replicas`, which defaults to 1.
    pub fn replicas(self) -> i64 {
        self.integer("/spec/replicas").unwrap_or(1).max(0)
    }

    pub fn condition(self, name: &str) -> Option<StatusCondition<'a>> {
        self.list("/status/conditions").iter().map(StatusCondition).find(|condition| condition.text("type") == name)
    }

    /// The condition of this name, if it is true.
    pub fn true_condition(self, name: &str) -> Option<StatusCondition<'a>> {
        self.condition(name).filter(|condition| condition.status() == "True")
    }

    /// The condition of this name, if it is false.
    pub fn false_condition(self, name: &str) -> Option<StatusCondition<'a>> {
        self.condition(name).filter(|condition| condition.status() == "False")
    }

    /// In progress while `status.observedGeneration` is not `metadata.generation`, because the rest of the status is
    /// that of an older spec.
    pub fn unobserved(self, is_required: bool) -> Option<Readiness> {
        let latest = self.integer("/metadata/generation")?;
        match self.integer("/status/observedGeneration") {
            Some(seen) if seen != latest => {
                Some(Readiness::in_progress(&format!("its controller has seen generation {seen} of {latest}")))
            }
            None if is_required => Some(Readiness::in_progress("its controller has not seen it yet")),
            _ => None,
        }
    }
}

impl<'a> StatusCondition<'a> {
    fn text(self, field: &str) -> &'a str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn name(self) -> &'a str {
        self.text("type")
    }

    pub fn status(self) -> &'a str {
        self.text("status")
    }

    pub fn reason(self) -> &'a str {
        self.text("reason")
    }

    /// The generation that it was set for; 0 if it has none.
    pub fn generation(self) -> i64 {
        LiveObjectView(self.0).integer("/observedGeneration").unwrap_or_default()
    }

    /// `Ready is False: Reason: message`, without missing parts.
    pub fn with_name(self) -> String {
        let head = format!("{} is {}", self.name(), self.status());
        match self.explain() {
            text if text == head => head,
            text => format!("{head}: {text}"),
        }
    }

    /// `Reason: message`, without missing parts.
    pub fn explain(self) -> String {
        match (self.reason(), self.text("message")) {
            ("", "") => format!("{} is {}", self.name(), self.status()),
            ("", text) | (text, "") => text.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

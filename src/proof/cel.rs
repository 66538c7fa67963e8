//! CEL rules (`x-kubernetes-validations`): whether the rules of one side follow from those of the other.

use serde_json::Value;

/// The rules of one schema node, with the node they belong to.
#[derive(Clone, Copy, Debug)]
pub struct RuleSet<'a> {
    /// The schema node, with everything below it.
    pub schema: &'a Value,
    /// The entries of `x-kubernetes-validations` to judge: of the node itself.
    pub rules: &'a [Value],
    /// Whether the node is the root of a custom resource, whose rules see `metadata.name`.
    pub is_root: bool,
}

/// A value on which the two sides differ: live's schema and rules accept it, a desired rule refuses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample {
    /// The value of the node.
    pub value: Value,
    /// For a transition rule: the node's value before, which live accepts too.
    pub old: Option<Value>,
}

/// The answer of [`implied`].
#[derive(Clone, Debug, PartialEq)]
pub enum Implied {
    /// Each value that live's schema and rules accept satisfies the desired rules; for transitions, each update.
    Yes,
    /// Values that differ, the simplest first. The caller puts them into whole objects and runs both sides.
    No(Vec<Counterexample>),
    /// Not decided, and why.
    Unknown(String),
}

/// Whether the desired rules follow from live's schema and rules.
pub fn implied(live: RuleSet, desired: RuleSet) -> Implied {
    let _ = (live, desired);
    Implied::Unknown("not decided yet".to_owned())
}

/// What of a rule judges: its text without needless spaces, and whether it sees that there is no old value.
pub fn judging_part(rule: &Value) -> (String, bool) {
    let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
    (without_spaces(text), rule.get("optionalOldSelf") == Some(&Value::Bool(true)))
}

/// The text without the spaces that only lay it out.
fn without_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut pending = false;
    for c in text.trim().chars() {
        if let Some(open) = quote {
            out.push(c);
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == open {
                quote = None;
            }
            continue;
        }
        if c.is_whitespace() {
            pending = true;
            continue;
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        // `a in b` needs its spaces, and so does `- -1`.
        if pending && out.chars().last().is_some_and(|last| is_word(last) && (is_word(c) || c == '\'' || c == '"') || last == c) {
            out.push(' ');
        }
        pending = false;
        if c == '\'' || c == '"' {
            quote = Some(c);
        }
        out.push(c);
    }
    out
}

//! The path of a change within an object, and the headings that show it.

use super::page::DiffPage;
use crate::text;

/// The steps from the root of an object to the compared value.
///
/// A change is shown below a heading with its path, `spec.template.spec.containers[web]:`. If the next change is below
/// the same path, its heading has the remaining steps only.
#[derive(Debug, Default)]
pub struct DiffPath {
    steps: Vec<DiffPathStep>,
    /// The open headings, each as the number of steps that it and those above it cover.
    headings: Vec<usize>,
}

#[derive(Debug)]
struct DiffPathStep {
    text: String,
    /// The steps after this one are a field path within a schema.
    is_schema: bool,
}

impl DiffPath {
    /// Steps into a member of a map.
    pub fn enter_member(&mut self, key: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_plain = !key.is_empty() && key.chars().all(is_plain);
        self.enter(if is_plain { key.to_owned() } else { format!("[{}]", text::yaml_quoted(key.chars())) });
    }

    /// Steps into an item of a list.
    pub fn enter_item(&mut self, label: &str) {
        self.enter(format!("[{label}]"));
    }

    /// Steps into what is below: in a schema a field, its items (`[]`) or its additional properties (`{}`).
    pub fn enter(&mut self, text: String) {
        self.steps.push(DiffPathStep { text, is_schema: false });
    }

    /// Marks the last step as a schema: the steps after it are a field path.
    pub fn enter_schema(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.is_schema = true;
        }
    }

    /// The number of steps, for [`DiffPath::leave`].
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether this is the metadata of the object.
    pub fn is_metadata(&self) -> bool {
        matches!(&self.steps[..], [step] if step.text == "metadata")
    }

    /// Goes back to the first `len` steps.
    pub fn leave(&mut self, len: usize) {
        self.steps.truncate(len);
        while self.headings.last().is_some_and(|steps| *steps > len) {
            self.headings.pop();
        }
    }

    /// Writes the missing headings of a change at this path. Returns the depth of its lines.
    pub fn heading(&mut self, page: &mut DiffPage) -> usize {
        self.heading_to(self.steps.len(), page)
    }

    /// Like [`DiffPath::heading`], for a line that starts with the path within the schema.
    pub fn heading_of_schema(&mut self, page: &mut DiffPage) -> usize {
        let start = self.start_of_schema();
        while self.headings.last().is_some_and(|steps| *steps > start) {
            self.headings.pop();
        }
        self.heading_to(start, page)
    }

    fn heading_to(&mut self, end: usize, page: &mut DiffPage) -> usize {
        let mut start = self.headings.last().copied().unwrap_or_default();
        while start < end {
            let until = (start..end).find(|at| self.steps[*at].is_schema).map_or(end, |at| at + 1);
            let path = joined(self.steps[start..until].iter().map(|step| step.text.as_str()));
            page.heading(format!("{}{path}:", "  ".repeat(self.headings.len())));
            self.headings.push(until);
            start = until;
        }
        self.headings.len()
    }

    fn start_of_schema(&self) -> usize {
        self.steps.iter().position(|step| step.is_schema).map_or(0, |at| at + 1)
    }

    /// The path within the schema, with `field` appended: `spec.rules[].host`.
    pub fn in_schema<'s>(&'s self, field: Option<&'s str>) -> String {
        joined(self.steps[self.start_of_schema()..].iter().map(|step| step.text.as_str()).chain(field))
    }
}

fn joined<'s>(steps: impl Iterator<Item = &'s str>) -> String {
    let mut text = String::new();
    for step in steps {
        if !text.is_empty() && !step.starts_with(['[', '{']) {
            text.push('.');
        }
        text.push_str(step);
    }
    text
}

/// The name of a list item in a path: its keys, `80/TCP`.
pub fn label(keys: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    let quoted = |key: &String| match !key.is_empty() && key.chars().all(is_plain) {
        true => key.clone(),
        false => text::yaml_quoted(key.chars()),
    };
    text::cut(&keys.iter().map(quoted).collect::<Vec<_>>().join("/"), 100).into_owned()
}

//! Where in an object a change is: the steps to it, and how much of them a heading already says.

use super::page::Page;
use crate::text;

/// The steps from the top of an object to the value that is compared.
///
/// A change is shown below a heading with its path, `spec.template.spec.containers[web]:`. The next change needs a heading for
/// those steps only that the last heading does not have.
#[derive(Debug, Default)]
pub struct Path {
    steps: Vec<Step>,
    /// For each heading that the next line is below, the number of steps that it ends after.
    headings: Vec<usize>,
}

#[derive(Debug)]
struct Step {
    text: String,
    /// The steps below are fields of a schema: a path of their own.
    is_schema: bool,
}

impl Path {
    /// Steps into a member of a map.
    pub fn member(&mut self, key: &str) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_plain = !key.is_empty() && key.chars().all(is_plain);
        self.step(if is_plain { key.to_owned() } else { format!("[{}]", text::yaml_quoted(key.chars())) });
    }

    /// Steps into an item of a list.
    pub fn item(&mut self, label: &str) {
        self.step(format!("[{label}]"));
    }

    /// Steps into a field of a schema, its items (`[]`) or its additional properties (`{}`).
    pub fn step(&mut self, text: String) {
        self.steps.push(Step { text, is_schema: false });
    }

    /// The path below is that of a field in the schema which was stepped into last.
    pub fn enter_schema(&mut self) {
        if let Some(last) = self.steps.last_mut() {
            last.is_schema = true;
        }
    }

    /// The number of steps, for [`Path::leave`].
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether this is the metadata of the object.
    pub fn is_metadata(&self) -> bool {
        matches!(&self.steps[..], [step] if step.text == "metadata")
    }

    /// Goes back to where there were so many steps.
    pub fn leave(&mut self, len: usize) {
        self.steps.truncate(len);
        while self.headings.last().is_some_and(|steps| *steps > len) {
            self.headings.pop();
        }
    }

    /// Writes the headings that a change here needs, and answers how deep its lines are.
    pub fn heading(&mut self, page: &mut Page) -> usize {
        self.heading_to(self.steps.len(), page)
    }

    /// The same for a line that begins with the path within the schema.
    pub fn heading_of_schema(&mut self, page: &mut Page) -> usize {
        let start = self.start_of_schema();
        while self.headings.last().is_some_and(|steps| *steps > start) {
            self.headings.pop();
        }
        self.heading_to(start, page)
    }

    fn heading_to(&mut self, end: usize, page: &mut Page) -> usize {
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

    /// `spec.rules[].host`: the path within the schema, and `field` of what it leads to.
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

/// What an item is called in a path: its keys, `80/TCP`.
pub fn label(keys: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    let quoted = |key: &String| match !key.is_empty() && key.chars().all(is_plain) {
        true => key.clone(),
        false => text::yaml_quoted(key.chars()),
    };
    text::cut(&keys.iter().map(quoted).collect::<Vec<_>>().join("/"), 100).into_owned()
}

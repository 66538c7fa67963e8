//! Where validation is, kept as a chain of borrowed steps: no text is built while nothing is wrong.

use crate::Step;

/// One step, and the steps before it.
#[derive(Clone, Copy)]
pub enum Path<'a> {
    Root,
    /// A declared property.
    Name(&'a Path<'a>, &'a str),
    /// A key of a map (`additionalProperties`).
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// The OpenAPI layer's form: map keys follow a dot, the root is empty.
    pub fn openapi(&self) -> String {
        let mut out = String::new();
        self.push(&mut out, false);
        out
    }

    /// The form of field errors: map keys in brackets, the root is `<nil>`.
    pub fn field(&self) -> String {
        if matches!(self, Path::Root) {
            return "<nil>".to_owned();
        }
        let mut out = String::new();
        self.push(&mut out, true);
        out
    }

    /// From the root down.
    pub fn steps(&self) -> Vec<Step> {
        match self {
            Path::Root => Vec::new(),
            Path::Name(parent, key) | Path::Key(parent, key) => {
                let mut steps = parent.steps();
                steps.push(Step::from(*key));
                steps
            }
            Path::Index(parent, index) => {
                let mut steps = parent.steps();
                steps.push(Step::Index(*index));
                steps
            }
        }
    }

    fn push(&self, out: &mut String, bracketed_keys: bool) {
        match self {
            Path::Root => {}
            Path::Name(parent, name) => {
                parent.push(out, bracketed_keys);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Path::Key(parent, key) => {
                parent.push(out, bracketed_keys);
                if bracketed_keys {
                    out.push_str(&format!("[{key}]"));
                } else {
                    out.push('.');
                    out.push_str(key);
                }
            }
            Path::Index(parent, index) => {
                parent.push(out, bracketed_keys);
                out.push_str(&format!("[{index}]"));
            }
        }
    }
}

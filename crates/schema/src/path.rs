//! The current position of validation, as a chain of borrowed steps: no string is built unless there is an error.

use crate::Step;

/// A step and its predecessors.
#[derive(Clone, Copy)]
pub enum LinkedPath<'a> {
    Root,
    /// A declared property.
    Name(&'a LinkedPath<'a>, &'a str),
    /// A key of a map (`additionalProperties`).
    Key(&'a LinkedPath<'a>, &'a str),
    Index(&'a LinkedPath<'a>, usize),
    /// The same value, validated by a branch of `allOf`, `anyOf`, `oneOf` or `not`: a step in the schema only.
    Branch(&'a LinkedPath<'a>, &'static str, Option<usize>),
}

impl LinkedPath<'_> {
    /// The path in the form of the OpenAPI layer: map keys follow a dot, and the root is empty.
    pub fn openapi(&self) -> String {
        let mut out = String::new();
        self.push(&mut out, false);
        out
    }

    /// The path in the form of field errors: map keys are in brackets, and the root is `<nil>`.
    pub fn field(&self) -> String {
        if self.is_root() {
            return "<nil>".to_owned();
        }
        let mut out = String::new();
        self.push(&mut out, true);
        out
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        match self {
            LinkedPath::Root => true,
            LinkedPath::Branch(of, ..) => of.is_root(),
            _ => false,
        }
    }

    /// The steps from the root of the object.
    pub fn steps(&self) -> Vec<Step> {
        match self {
            LinkedPath::Root => Vec::new(),
            LinkedPath::Name(parent, key) | LinkedPath::Key(parent, key) => {
                let mut steps = parent.steps();
                steps.push(Step::from(*key));
                steps
            }
            LinkedPath::Index(parent, index) => {
                let mut steps = parent.steps();
                steps.push(Step::Index(*index));
                steps
            }
            LinkedPath::Branch(of, ..) => of.steps(),
        }
    }

    /// The steps from the root of the schema to a keyword of the current node.
    pub fn keyword(&self, keyword: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        self.schema(&mut steps);
        steps.push(Step::from(keyword));
        steps
    }

    fn schema(&self, steps: &mut Vec<Step>) {
        match self {
            LinkedPath::Root => {}
            LinkedPath::Name(parent, key) => {
                parent.schema(steps);
                steps.extend([Step::from("properties"), Step::from(*key)]);
            }
            LinkedPath::Key(parent, _) => {
                parent.schema(steps);
                steps.push(Step::from("additionalProperties"));
            }
            LinkedPath::Index(parent, _) => {
                parent.schema(steps);
                steps.push(Step::from("items"));
            }
            LinkedPath::Branch(of, keyword, index) => {
                of.schema(steps);
                steps.push(Step::from(*keyword));
                steps.extend(index.map(Step::Index));
            }
        }
    }

    fn push(&self, out: &mut String, bracketed_keys: bool) {
        match self {
            LinkedPath::Root => {}
            LinkedPath::Name(parent, name) => {
                parent.push(out, bracketed_keys);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            LinkedPath::Key(parent, key) => {
                parent.push(out, bracketed_keys);
                if bracketed_keys {
                    out.push_str(&format!("[{key}]"));
                } else {
                    out.push('.');
                    out.push_str(key);
                }
            }
            LinkedPath::Index(parent, index) => {
                parent.push(out, bracketed_keys);
                out.push_str(&format!("[{index}]"));
            }
            LinkedPath::Branch(of, ..) => of.push(out, bracketed_keys),
        }
    }
}

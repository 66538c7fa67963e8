//! Which formats the server enforces on a schema: a name that does not apply to its type is ignored.

use gantry_k8s_cel::formats::check_of;

use super::node::{JsonType, Types};

/// An enforced format.
#[derive(Clone, Debug)]
pub struct EnforcedFormat {
    /// As spelled in the schema, because messages quote it: `date-time` and `datetime` are the same format.
    name: Box<str>,
    check: Option<fn(&str) -> bool>,
}

impl EnforcedFormat {
    /// The format `name` on a schema of these types, if the server enforces it there.
    pub fn find(name: &str, types: Types) -> Option<Self> {
        let check = match types {
            Types::Any | Types::Unknown | Types::IntOrString | Types::One(JsonType::String) => Some(check_of(name)?),
            Types::One(JsonType::Integer) if matches!(name, "int32" | "int64") => None,
            Types::One(JsonType::Number) if matches!(name, "float" | "double") => None,
            _ => return None,
        };
        Some(Self { name: name.into(), check })
    }

    /// The format for a default in a schema: here the server also considers names that it ignores for objects.
    pub fn of_default(name: &str, types: Types) -> Option<Self> {
        let kept = || Self { name: name.into(), check: check_of(name) };
        (!name.is_empty()).then(|| Self::find(name, types).unwrap_or_else(kept))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the format applies to strings. The formats of numbers are ranges, which are checked with the other
    /// bounds.
    pub fn is_of_strings(&self) -> bool {
        self.check.is_some()
    }

    pub fn accepts(&self, text: &str) -> bool {
        self.check.is_none_or(|check| check(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_enforced_only_on_its_type() {
        assert!(EnforcedFormat::find("email", Types::One(JsonType::String)).is_some());
        assert!(EnforcedFormat::find("quantity", Types::One(JsonType::String)).is_none());
        assert!(EnforcedFormat::find("email", Types::One(JsonType::Object)).is_none());
        assert!(EnforcedFormat::find("int32", Types::One(JsonType::Number)).is_none());
    }
}

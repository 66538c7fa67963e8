//! A CRD schema in the form of the API: every keyword, including those that are rejected.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde_json::Value;

use crate::by_name::ByName;

use super::api_value::{ApiValue, show_struct};
use super::decode::{Decoded, DecodedObject, Given, prepend_step, wrong_type};
use crate::keywords::{rule_fields, schema_keywords};

/// The Rust type of a member, by its Go type.
macro_rules! member_type {
    (Text) => { &'v str };
    (RequiredText) => { &'v str };
    (TextPointer) => { Option<&'v str> };
    (Flag) => { bool };
    (FlagPointer) => { Option<bool> };
    (IntPointer) => { Option<i64> };
    (FloatPointer) => { Option<f64> };
    (Value) => { Option<&'v Value> };
    (Values) => { Given<Vec<&'v Value>> };
    (Texts) => { Given<Vec<&'v str>> };
    (Schema) => { Option<Box<Props<'v>>> };
    (Schemas) => { Given<Vec<Props<'v>>> };
    (Items) => { Option<Box<ItemsSchema<'v>>> };
    (SchemaOrFlag) => { Option<Box<AdditionalSchema<'v>>> };
    (Named) => { Given<ByName<&'v str, Props<'v>>> };
    (Definitions) => { Given<ByName<&'v str, Props<'v>>> };
    (Dependencies) => { Given<ByName<&'v str, Dependency<'v>>> };
    (Rules) => { Given<Vec<ValidationRule<'v>>> };
    (Documentation) => { Option<Documentation<'v>> };
}

/// Makes the structures of a schema, and how it is decoded and printed, from the table of keywords.
macro_rules! props {
    (@structs [$($common:ident $common_type:ident)*] [$($rare:ident $rare_type:ident)*]) => {
        /// `JSONSchemaProps`. Members that most schemas lack are in [`Uncommon`] and are accessed through `Deref`, so a
        /// schema without them takes a quarter of the memory.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Props<'v> {
            $(pub $common: member_type!($common_type),)*
            uncommon: Sparse<'v>,
            /// The schema as written, for code that reads it directly.
            pub raw: IgnoredValue<'v>,
        }

        /// The members that most schemas lack.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Uncommon<'v> {
            $(pub $rare: member_type!($rare_type),)*
        }
    };
    (@structs [$($common:tt)*] [$($rare:tt)*] (common $member:ident $type:ident) $($rest:tt)*) => {
        props!(@structs [$($common)* $member $type] [$($rare)*] $($rest)*);
    };
    (@structs [$($common:tt)*] [$($rare:tt)*] (rare $member:ident $type:ident) $($rest:tt)*) => {
        props!(@structs [$($common)*] [$($rare)* $member $type] $($rest)*);
    };
    ($(($number:literal $name:literal $go_name:ident $type:ident, $group:ident $member:ident $($more:tt)*))*) => {
        props!(@structs [] [] $(($group $member $type))*);

        impl<'v> Props<'v> {
            fn decode_member(&mut self, key: &str, value: &'v Value) -> Decoded<()> {
                match key {
                    $($name => self.$member = ApiValue::decode(value)?,)*
                    _ => {}
                }
                Ok(())
            }

            fn show_members(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($go_name), self.$member.show()),)*]
            }
        }
    };
}
schema_keywords!(props);

/// [`Uncommon`] members, which take no memory in a schema that has none.
#[derive(Clone, Debug, Default)]
struct Sparse<'v>(Option<Box<Uncommon<'v>>>);

impl<'v> Deref for Sparse<'v> {
    type Target = Uncommon<'v>;

    fn deref(&self) -> &Uncommon<'v> {
        static NONE: LazyLock<Uncommon<'static>> = LazyLock::new(Uncommon::default);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

/// `exclusiveMaximum: false` is equal to a missing keyword.
impl PartialEq for Sparse<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'v> Deref for Props<'v> {
    type Target = Uncommon<'v>;

    fn deref(&self) -> &Uncommon<'v> {
        &self.uncommon
    }
}

impl DerefMut for Props<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.uncommon.0.get_or_insert_default()
    }
}

/// Data that is ignored when schemas are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct IgnoredValue<'v>(pub Option<&'v Value>);

impl PartialEq for IgnoredValue<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// `items`: a schema, or a list of schemas, which is rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemsSchema<'v> {
    pub schema: Option<Props<'v>>,
    pub schemas: Given<Vec<Props<'v>>>,
}

/// `additionalProperties`
#[derive(Clone, Debug, PartialEq)]
pub struct AdditionalSchema<'v> {
    pub allows: bool,
    pub schema: Option<Props<'v>>,
}

/// The value of one entry in `dependencies`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency<'v> {
    pub schema: Option<Props<'v>>,
    pub names: Given<Vec<&'v str>>,
}

/// `externalDocs`
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Documentation<'v> {
    pub description: &'v str,
    pub url: &'v str,
}

macro_rules! validation_rule {
    ($(($number:literal $name:literal $go_name:ident $type:ident, $member:ident))*) => {
        /// An entry of `x-kubernetes-validations`.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct ValidationRule<'v> {
            $(pub $member: member_type!($type),)*
        }

        impl<'v> ApiValue<'v> for ValidationRule<'v> {
            fn decode(value: &'v Value) -> Decoded<Self> {
                let mut rule = Self::default();
                if value.is_null() {
                    return Ok(rule);
                }
                let object = DecodedObject::decode(value)?;
                $(rule.$member = object.value($name)?.unwrap_or_default();)*
                Ok(rule)
            }

            fn show(&self) -> String {
                show_struct(&[$((stringify!($go_name), self.$member.show()),)*])
            }
        }
    };
}
rule_fields!(validation_rule);

impl<'v> ApiValue<'v> for Props<'v> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        // A schema in a list or map can be null, which decodes to an empty schema.
        if value.is_null() {
            return Ok(Self::default());
        }
        let mut props = Self { raw: IgnoredValue(Some(value)), ..Self::default() };
        // Iterate over the members, because there are more keywords than any schema has members.
        for (key, value) in DecodedObject::decode(value)?.entries().filter(|(_, value)| !value.is_null()) {
            prepend_step(key, props.decode_member(key, value))?;
        }
        Ok(props)
    }

    /// The schema in the server's internal form.
    fn show(&self) -> String {
        let mut members = self.show_members();
        // The only field that has another place in the internal form.
        if let Some(nullable) = members.iter().position(|(name, _)| *name == "Nullable")
            && let Some(format) = members.iter().position(|(name, _)| *name == "Format")
        {
            members[format..=nullable].rotate_right(1);
        }
        show_struct(&members)
    }
}

impl<'v> Props<'v> {
    /// The schema in `items`, if it is a single schema.
    pub fn item(&self) -> Option<&Props<'v>> {
        self.items.as_ref()?.schema.as_ref()
    }

    /// The schema in `additionalProperties`, if it is a schema.
    pub fn entry(&self) -> Option<&Props<'v>> {
        self.additional.as_ref()?.schema.as_ref()
    }

    /// Whether this schema or any schema inside it satisfies `is_such`.
    pub fn has(&self, is_such: &mut dyn FnMut(&Props<'v>) -> bool) -> bool {
        if is_such(self) {
            return true;
        }
        let items = self.items.iter().flat_map(|items| items.schema.iter().chain(items.schemas.iter()));
        let additional = self.additional.iter().chain(&self.additional_items).filter_map(|of| of.schema.as_ref());
        let mut below = items
            .chain(self.all_of.iter())
            .chain(self.any_of.iter())
            .chain(self.one_of.iter())
            .chain(self.not.as_deref())
            .chain(self.properties.values())
            .chain(additional)
            .chain(self.pattern_properties.values())
            .chain(self.definitions.values())
            .chain(self.dependencies.values().filter_map(|dependency| dependency.schema.as_ref()));
        below.any(|schema| schema.has(is_such))
    }
}

impl<'v> ApiValue<'v> for ItemsSchema<'v> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        Ok(match value {
            Value::Object(_) => Self { schema: Some(Props::decode(value)?), schemas: Given::default() },
            Value::Array(_) => Self { schema: None, schemas: ApiValue::decode(value)? },
            _ => Self::default(),
        })
    }

    fn show(&self) -> String {
        show_struct(&[("Schema", self.schema.show()), ("JSONSchemas", self.schemas.show())])
    }
}

impl<'v> ApiValue<'v> for AdditionalSchema<'v> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        match value {
            Value::Bool(allows) => Ok(Self { allows: *allows, schema: None }),
            Value::Object(_) => Ok(Self { allows: true, schema: Some(Props::decode(value)?) }),
            _ => wrong_type("true, false or a schema"),
        }
    }

    fn show(&self) -> String {
        show_struct(&[("Allows", self.allows.show()), ("Schema", self.schema.show())])
    }
}

impl<'v> ApiValue<'v> for Dependency<'v> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        Ok(match value {
            Value::Object(_) => Self { schema: Some(Props::decode(value)?), names: Given::default() },
            Value::Array(names) => {
                let items = names.iter().filter_map(Value::as_str).collect();
                Self { schema: None, names: Given { items, is_given: true } }
            }
            _ => Self { schema: None, names: Given { items: Vec::new(), is_given: true } },
        })
    }

    fn show(&self) -> String {
        show_struct(&[("Schema", self.schema.show()), ("Property", self.names.show())])
    }
}

impl<'v> ApiValue<'v> for Documentation<'v> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        let docs = DecodedObject::decode(value)?;
        let text = |key| docs.text(key).map(Option::unwrap_or_default);
        Ok(Self { description: text("description")?, url: text("url")? })
    }

    fn show(&self) -> String {
        show_struct(&[("Description", self.description.show()), ("URL", self.url.show())])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_keyword_with_its_default_value_makes_no_difference() {
        let [without, with, other] = [json!({}), json!({"exclusiveMaximum": false}), json!({"exclusiveMaximum": true})];
        let props = |value| Props::decode(value).unwrap();
        assert_eq!(props(&without), props(&with));
        assert_ne!(props(&without), props(&other));
    }
}

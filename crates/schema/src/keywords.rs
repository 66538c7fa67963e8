//! Every keyword of a CRD's schema: what shape its value has, what depends on it, and which value is as good as none.
//!
//! The API server drops what it holds to be empty (`nullable: false`, `required: []`, `pattern: ""`), reads some lists
//! as sets, and never looks at the order of keys. None of that is a change. Keywords that this table does not
//! know are kept and compared literally, so that one invented next year is still seen.

use super::tree::{Tree, View};
use crate::json::{Json, Map};

/// What the value of a keyword is, and with it what the server drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Empty text is dropped.
    Text,
    /// Kept even where it is empty.
    KeptText,
    /// `false` is dropped.
    Flag,
    /// A number.
    Number,
    /// A list whose order means nothing, nor how often an item is in it; dropped where it is empty.
    Set,
    /// A list of schemas whose order means nothing, nor how often one is in it; dropped where it is empty.
    Schemas,
    /// A list of schemas of which a value fits exactly one. The order means nothing, but one that is there twice is never
    /// the only one. Dropped where it is empty.
    Choice,
    /// A schema.
    Schema,
    /// A schema, or `true` or `false` in its place.
    SchemaOrFlag,
    /// A schema, or a list of them.
    SchemaOrSchemas,
    /// Schemas by name; dropped where it is empty.
    Named,
    /// CEL rules: a list of objects whose order means nothing; dropped where it is empty.
    Rules,
    /// Any value.
    Value,
}

/// What depends on a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// What objects are taken, and what is dropped from them and filled in.
    Objects,
    /// Who owns which fields under server-side apply. No object is refused or changed by it.
    Ownership,
    /// Nothing that the API server does; with the reason.
    Nothing(&'static str),
}

/// The value of a keyword that is as good as none, beside those that the server drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Nothing but what the server drops.
    None,
    /// 0.
    Zero,
    /// This text.
    Text(&'static str),
}

/// One keyword.
#[derive(Debug, Clone, Copy)]
pub struct Keyword {
    /// As schemas spell it.
    pub name: &'static str,
    /// What its value is.
    pub shape: Shape,
    /// What depends on it.
    pub decides: Decides,
    /// The value that is as good as none.
    pub absent: Absent,
}

impl Keyword {
    const fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, decides: Decides::Objects, absent: Absent::None }
    }

    const fn nothing(self, reason: &'static str) -> Self {
        Self { decides: Decides::Nothing(reason), ..self }
    }

    const fn ownership(self) -> Self {
        Self { decides: Decides::Ownership, ..self }
    }

    const fn absent(self, absent: Absent) -> Self {
        Self { absent, ..self }
    }
}

/// The fields of the API's `JSONSchemaProps`, sorted by name.
pub const KEYWORDS: &[Keyword] = &[
    Keyword::new("$ref", Shape::KeptText),
    Keyword::new("$schema", Shape::Text)
        .nothing("says which dialect the schema is written in; the API server refuses it in a CRD"),
    Keyword::new("additionalItems", Shape::SchemaOrFlag),
    Keyword::new("additionalProperties", Shape::SchemaOrFlag),
    Keyword::new("allOf", Shape::Schemas),
    Keyword::new("anyOf", Shape::Schemas),
    Keyword::new("default", Shape::Value),
    Keyword::new("definitions", Shape::Named),
    Keyword::new("dependencies", Shape::Value),
    Keyword::new("description", Shape::Text).nothing("documentation"),
    Keyword::new("enum", Shape::Set),
    Keyword::new("example", Shape::Value).nothing("documentation"),
    Keyword::new("exclusiveMaximum", Shape::Flag),
    Keyword::new("exclusiveMinimum", Shape::Flag),
    Keyword::new("externalDocs", Shape::Value).nothing("documentation"),
    Keyword::new("format", Shape::Text),
    Keyword::new("id", Shape::Text).nothing("a name for the schema itself; the API server refuses it in a CRD"),
    Keyword::new("items", Shape::SchemaOrSchemas),
    Keyword::new("maxItems", Shape::Number),
    Keyword::new("maxLength", Shape::Number),
    Keyword::new("maxProperties", Shape::Number),
    Keyword::new("maximum", Shape::Number),
    Keyword::new("minItems", Shape::Number).absent(Absent::Zero),
    Keyword::new("minLength", Shape::Number).absent(Absent::Zero),
    Keyword::new("minProperties", Shape::Number).absent(Absent::Zero),
    Keyword::new("minimum", Shape::Number),
    Keyword::new("multipleOf", Shape::Number),
    Keyword::new("not", Shape::Schema),
    Keyword::new("nullable", Shape::Flag),
    Keyword::new("oneOf", Shape::Choice),
    Keyword::new("pattern", Shape::Text),
    Keyword::new("patternProperties", Shape::Named),
    Keyword::new("properties", Shape::Named),
    Keyword::new("required", Shape::Set),
    Keyword::new("title", Shape::Text).nothing("documentation"),
    Keyword::new("type", Shape::Text),
    Keyword::new("uniqueItems", Shape::Flag),
    Keyword::new("x-kubernetes-embedded-resource", Shape::Flag),
    Keyword::new("x-kubernetes-int-or-string", Shape::Flag),
    Keyword::new("x-kubernetes-list-map-keys", Shape::Set),
    Keyword::new("x-kubernetes-list-type", Shape::KeptText).absent(Absent::Text("atomic")),
    Keyword::new("x-kubernetes-map-type", Shape::KeptText).ownership().absent(Absent::Text("granular")),
    Keyword::new("x-kubernetes-preserve-unknown-fields", Shape::Flag),
    Keyword::new("x-kubernetes-validations", Shape::Rules),
];

/// What the table says of a keyword; `None` for one that the API does not have.
pub fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.binary_search_by(|keyword| keyword.name.cmp(name)).ok().map(|at| &KEYWORDS[at])
}

/// The shape of a keyword; `None` for one that the API does not have.
pub fn shape(keyword: &str) -> Option<Shape> {
    find(keyword).map(|keyword| keyword.shape)
}

/// Why nothing that the API server does depends on the keyword, if that is so.
pub fn waived(keyword: &str) -> Option<&'static str> {
    match find(keyword)?.decides {
        Decides::Nothing(reason) => Some(reason),
        _ => None,
    }
}

/// Whether nothing that the API server does depends on the keyword.
pub fn is_waived(keyword: &str) -> bool {
    waived(keyword).is_some()
}

/// The value of a keyword, or `None` where it is not there or is one that the server drops.
pub fn get<'n, 'a>(node: &'n Map<'a>, keyword: &str) -> Option<&'n Json<'a>> {
    node.get(keyword).filter(|value| !is_dropped(keyword, *value))
}

/// Whether the server drops this value when it reads the schema.
pub fn is_dropped(keyword: &str, value: &impl Tree) -> bool {
    // Few values are empty, and only of those the shape matters.
    let is_empty = match value.view() {
        View::Null => true,
        View::Bool(flag) => !flag,
        View::Text(text) => text.is_empty(),
        View::List(list) => list.is_empty(),
        View::Map(is_empty) => is_empty,
        View::Number(_) => false,
    };
    if !is_empty {
        return false;
    }
    match (shape(keyword), value.view()) {
        (Some(_), View::Null) | (Some(Shape::Flag), View::Bool(false)) => true,
        (Some(shape), View::Text(_)) => shape == Shape::Text,
        (Some(shape), View::List(_)) => {
            matches!(shape, Shape::Set | Shape::Schemas | Shape::Choice | Shape::Rules)
        }
        (Some(shape), View::Map(_)) => shape == Shape::Named,
        _ => false,
    }
}

/// Whether the schema says no more with this value than without the keyword.
pub fn is_nothing(keyword: &str, value: &impl Tree) -> bool {
    if is_dropped(keyword, value) {
        return true;
    }
    match (find(keyword).map(|keyword| keyword.absent), value.view()) {
        (Some(Absent::Zero), View::Number(is_zero)) => is_zero,
        (Some(Absent::Text(default)), View::Text(text)) => text == default,
        _ => false,
    }
}

/// Whether the API could hold this value of a keyword at all. What it could not hold nobody can judge.
pub fn fits(keyword: &str, value: &Json) -> bool {
    let Some(shape) = shape(keyword) else { return true };
    match (shape, value) {
        (Shape::Text | Shape::KeptText, Json::Text(_))
        | (Shape::Flag | Shape::SchemaOrFlag, Json::Bool(_))
        | (Shape::Number, Json::Int(_) | Json::Float(_))
        | (Shape::Schema | Shape::SchemaOrFlag | Shape::SchemaOrSchemas | Shape::Named, Json::Map(_))
        | (Shape::Value, _)
        | (_, Json::Null) => true,
        (Shape::Set, Json::List(list)) => keyword == "enum" || list.iter().all(|item| item.text().is_some()),
        (Shape::Schemas | Shape::Choice | Shape::SchemaOrSchemas | Shape::Rules, Json::List(list)) => {
            list.iter().all(|item| item.map().is_some())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_unique_and_gives_its_reasons() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(KEYWORDS.iter().all(|keyword| keyword.decides != Decides::Nothing("")));
    }

    #[test]
    fn values_that_the_api_cannot_hold_do_not_fit() {
        for (keyword, value, expected) in [
            ("minimum", "1.5", true),
            ("minimum", r#""1""#, false),
            ("required", r#"["a"]"#, true),
            ("required", "[1]", false),
            ("enum", "[1,null]", true),
            ("type", r#"["string"]"#, false),
            ("items", "true", false),
            ("additionalProperties", "true", true),
            ("x-invented-next-year", "7", true),
        ] {
            assert_eq!(fits(keyword, &Json::parse(value).unwrap()), expected, "{keyword}: {value}");
        }
    }
}

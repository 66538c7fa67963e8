//! Every keyword of a CRD schema: the shape of its value, what depends on it, and which value is equivalent to
//! omitting it.
//!
//! The API server drops values that it considers empty (`nullable: false`, `required: []`, `pattern: ""`), reads some
//! lists as sets, and ignores the order of keys. None of these count as a change. Keywords that are missing from this
//! table are kept and compared literally, so that changes to future keywords are detected too.

mod table;

use super::tree::{Tree, ValueView};
use crate::json::{Json, JsonMap};
pub use table::{GoField, GoFieldType, KEYWORDS, KEYWORDS_IN_ORDER, RULE_FIELDS, SchemaKeyword};
pub(crate) use table::{rule_fields, schema_keywords};

/// The shape of a keyword's value, which determines the values that the server drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordShape {
    /// A string; dropped if empty.
    Text,
    /// A string; kept even if empty.
    KeptText,
    /// A boolean; dropped if `false`.
    Flag,
    /// A number.
    Number,
    /// A list in which order and repetition are irrelevant; dropped if empty.
    Set,
    /// A list of schemas in which order and repetition are irrelevant; dropped if empty.
    Schemas,
    /// A list of schemas, exactly one of which must match. Order is irrelevant, but repetition is not: a schema that
    /// is listed twice is never the only match. Dropped if empty.
    Choice,
    /// A schema.
    Schema,
    /// A schema, or a boolean instead.
    SchemaOrFlag,
    /// A schema, or a list of schemas.
    SchemaOrSchemas,
    /// Schemas by name; dropped if empty.
    Named,
    /// CEL rules: a list of objects in which order is irrelevant; dropped if empty.
    Rules,
    /// Any value.
    Value,
}

/// What depends on a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// Which objects are accepted, and what is pruned and defaulted.
    Objects,
    /// The ownership of fields under server-side apply. It does not reject or change any object.
    Ownership,
    /// Nothing that the API server does; the string is the reason.
    Nothing(&'static str),
}

/// The value that is equivalent to omitting the keyword, besides those that the server drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// No further value.
    None,
    /// 0.
    Zero,
    /// This string.
    Text(&'static str),
}

/// The entry of a keyword; `None` if the API does not have the keyword.
pub fn find(name: &str) -> Option<&'static SchemaKeyword> {
    KEYWORDS.binary_search_by(|keyword| keyword.name.cmp(name)).ok().map(|at| &KEYWORDS[at])
}

/// The shape of a keyword; `None` if the API does not have the keyword.
pub fn shape(keyword: &str) -> Option<KeywordShape> {
    find(keyword).map(|keyword| keyword.shape)
}

/// The keywords that the server needs to merge a value in a server-side apply, apart from those that contain the
/// schemas of its parts.
pub fn of_merge() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().filter(|keyword| keyword.is_merge).map(|keyword| keyword.name)
}

/// The reason why nothing that the API server does depends on the keyword; `None` if something does.
pub fn why_ignored(keyword: &str) -> Option<&'static str> {
    match find(keyword)?.decides {
        Decides::Nothing(reason) => Some(reason),
        _ => None,
    }
}

/// Whether nothing that the API server does depends on the keyword.
pub fn is_waived(keyword: &str) -> bool {
    why_ignored(keyword).is_some()
}

/// The value of a keyword; `None` if it is missing or the server drops it.
pub fn get<'n, 'a>(node: &'n JsonMap<'a>, keyword: &str) -> Option<&'n Json<'a>> {
    node.get(keyword).filter(|value| !is_dropped(keyword, *value))
}

/// Whether the server drops this value when it reads the schema.
pub fn is_dropped(keyword: &str, value: &impl Tree) -> bool {
    // Few values are empty, and the shape matters only for those.
    let is_empty = match value.view() {
        ValueView::Null => true,
        ValueView::Bool(flag) => !flag,
        ValueView::Text(text) => text.is_empty(),
        ValueView::List(list) => list.is_empty(),
        ValueView::Map(is_empty) => is_empty,
        ValueView::Number(_) => false,
    };
    if !is_empty {
        return false;
    }
    match (shape(keyword), value.view()) {
        (Some(_), ValueView::Null) | (Some(KeywordShape::Flag), ValueView::Bool(false)) => true,
        (Some(shape), ValueView::Text(_)) => shape == KeywordShape::Text,
        (Some(shape), ValueView::List(_)) => {
            matches!(shape, KeywordShape::Set | KeywordShape::Schemas | KeywordShape::Choice | KeywordShape::Rules)
        }
        (Some(shape), ValueView::Map(_)) => shape == KeywordShape::Named,
        _ => false,
    }
}

/// Whether the value is equivalent to omitting the keyword.
pub fn is_nothing(keyword: &str, value: &impl Tree) -> bool {
    if is_dropped(keyword, value) {
        return true;
    }
    match (find(keyword).map(|keyword| keyword.absent), value.view()) {
        (Some(Absent::Zero), ValueView::Number(is_zero)) => is_zero,
        (Some(Absent::Text(default)), ValueView::Text(text)) => text == default,
        _ => false,
    }
}

/// Whether the API can represent this value of the keyword at all. Other values cannot be checked.
pub fn fits(keyword: &str, value: &Json) -> bool {
    let Some(shape) = shape(keyword) else { return true };
    match (shape, value) {
        (KeywordShape::Text | KeywordShape::KeptText, Json::Text(_))
        | (KeywordShape::Flag | KeywordShape::SchemaOrFlag, Json::Bool(_))
        | (KeywordShape::Number, Json::Int(_) | Json::Float(_))
        | (
            KeywordShape::Schema | KeywordShape::SchemaOrFlag | KeywordShape::SchemaOrSchemas | KeywordShape::Named,
            Json::Map(_),
        )
        | (KeywordShape::Value, _)
        | (_, Json::Null) => true,
        (KeywordShape::Set, Json::List(list)) => keyword == "enum" || list.iter().all(|item| item.text().is_some()),
        (
            KeywordShape::Schemas | KeywordShape::Choice | KeywordShape::SchemaOrSchemas | KeywordShape::Rules,
            Json::List(list),
        ) => list.iter().all(|item| item.map().is_some()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_unique_and_gives_its_reasons() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(KEYWORDS_IN_ORDER.windows(2).all(|pair| pair[0].field.number < pair[1].field.number));
        assert!(RULE_FIELDS.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert!(KEYWORDS.iter().all(|keyword| keyword.decides != Decides::Nothing("")));
        assert!(KEYWORDS.iter().all(|keyword| !keyword.is_merge || !matches!(keyword.decides, Decides::Nothing(_))));
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

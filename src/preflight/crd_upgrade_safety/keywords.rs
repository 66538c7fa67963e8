//! Every keyword of a CRD's schema: what shape its value has, and when two values of it mean the same.
//!
//! The API server drops what it holds to be empty (`nullable: false`, `required: []`, `pattern: ""`), reads some lists
//! as sets, and never looks at the order of keys. None of that is a change. Keywords that this table does not
//! know are kept and compared literally, so that one invented next year is still seen.

use super::json::{Json, Map};

/// What the value of a keyword is, and with it what the server drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Empty text is dropped.
    Text,
    /// Kept even where it is empty.
    KeptText,
    /// `false` is dropped.
    Flag,
    Number,
    /// A list whose order means nothing; dropped where it is empty.
    Set,
    /// A list of schemas whose order means nothing; dropped where it is empty.
    Schemas,
    Schema,
    SchemaOrFlag,
    SchemaOrSchemas,
    /// Schemas by name; dropped where it is empty.
    Named,
    /// CEL rules: a list of objects whose order means nothing; dropped where it is empty.
    Rules,
    /// Any value.
    Value,
}

/// The fields of the API's `JSONSchemaProps`, sorted by name.
pub const KEYWORDS: &[(&str, Shape)] = &[
    ("$ref", Shape::KeptText),
    ("$schema", Shape::Text),
    ("additionalItems", Shape::SchemaOrFlag),
    ("additionalProperties", Shape::SchemaOrFlag),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("default", Shape::Value),
    ("definitions", Shape::Named),
    ("dependencies", Shape::Value),
    ("description", Shape::Text),
    ("enum", Shape::Set),
    ("example", Shape::Value),
    ("exclusiveMaximum", Shape::Flag),
    ("exclusiveMinimum", Shape::Flag),
    ("externalDocs", Shape::Value),
    ("format", Shape::Text),
    ("id", Shape::Text),
    ("items", Shape::SchemaOrSchemas),
    ("maxItems", Shape::Number),
    ("maxLength", Shape::Number),
    ("maxProperties", Shape::Number),
    ("maximum", Shape::Number),
    ("minItems", Shape::Number),
    ("minLength", Shape::Number),
    ("minProperties", Shape::Number),
    ("minimum", Shape::Number),
    ("multipleOf", Shape::Number),
    ("not", Shape::Schema),
    ("nullable", Shape::Flag),
    ("oneOf", Shape::Schemas),
    ("pattern", Shape::Text),
    ("patternProperties", Shape::Named),
    ("properties", Shape::Named),
    ("required", Shape::Set),
    ("title", Shape::Text),
    ("type", Shape::Text),
    ("uniqueItems", Shape::Flag),
    ("x-kubernetes-embedded-resource", Shape::Flag),
    ("x-kubernetes-int-or-string", Shape::Flag),
    ("x-kubernetes-list-map-keys", Shape::Set),
    ("x-kubernetes-list-type", Shape::KeptText),
    ("x-kubernetes-map-type", Shape::KeptText),
    ("x-kubernetes-preserve-unknown-fields", Shape::Flag),
    ("x-kubernetes-validations", Shape::Rules),
];

/// Keywords that no rule judges, because nothing that the API server does depends on them; with the reason.
pub const WAIVED: &[(&str, &str)] = &[
    ("$schema", "says which dialect the schema is written in; the API server refuses it in a CRD"),
    ("description", "documentation"),
    ("example", "documentation"),
    ("externalDocs", "documentation"),
    ("id", "a name for the schema itself; the API server refuses it in a CRD"),
    ("title", "documentation"),
];

/// Keywords that hold further nodes of the schema and nothing else. The walk goes through them, and each node is judged
/// by itself. (`additionalProperties` is walked as well; what else it says has a rule.)
pub const WALKED: &[&str] = &["items", "properties"];

/// The shape of a keyword; `None` for one that the API does not have.
pub fn shape(keyword: &str) -> Option<Shape> {
    KEYWORDS.binary_search_by(|(name, _)| (*name).cmp(keyword)).ok().map(|at| KEYWORDS[at].1)
}

pub fn is_waived(keyword: &str) -> bool {
    WAIVED.binary_search_by(|(name, _)| (*name).cmp(keyword)).is_ok()
}

/// The value of a keyword, or `None` where it is not there or is one that the server drops.
pub fn get<'n, 'a>(node: &'n Map<'a>, keyword: &str) -> Option<&'n Json<'a>> {
    node.get(keyword).filter(|value| !is_dropped(keyword, value))
}

/// Whether the server drops this value when it reads the schema.
pub fn is_dropped(keyword: &str, value: &Json) -> bool {
    // Few values are empty, and only of those the shape matters.
    let is_empty = match value {
        Json::Null => true,
        Json::Bool(flag) => !flag,
        Json::Text(text) => text.is_empty(),
        Json::List(list) => list.is_empty(),
        Json::Map(map) => map.is_empty(),
        Json::Int(_) | Json::Float(_) => false,
    };
    if !is_empty {
        return false;
    }
    match (shape(keyword), value) {
        (Some(_), Json::Null) | (Some(Shape::Flag), Json::Bool(false)) => true,
        (Some(shape), Json::Text(_)) => shape == Shape::Text,
        (Some(shape), Json::List(_)) => matches!(shape, Shape::Set | Shape::Schemas | Shape::Rules),
        (Some(shape), Json::Map(_)) => shape == Shape::Named,
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
        (Shape::Schemas | Shape::SchemaOrSchemas | Shape::Rules, Json::List(list)) => {
            list.iter().all(|item| item.map().is_some())
        }
        _ => false,
    }
}

/// Whether two values of a keyword mean the same.
pub fn same(keyword: &str, a: &Json, b: &Json) -> bool {
    if !matches!((a, b), (Json::List(_), Json::List(_)) | (Json::Map(_), Json::Map(_))) {
        return a == b;
    }
    match (shape(keyword), a, b) {
        (Some(Shape::Set), Json::List(a), Json::List(b)) => same_set(a, b),
        (Some(Shape::Schemas), Json::List(a), Json::List(b)) => same_in_any_order(a, b, same_schema, meaning_of_schema),
        (Some(Shape::Rules), Json::List(a), Json::List(b)) => same_in_any_order(a, b, same_rule, meaning_of_rule),
        (Some(Shape::SchemaOrSchemas), Json::List(a), Json::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_schema(a, b))
        }
        (Some(Shape::Schema | Shape::SchemaOrFlag | Shape::SchemaOrSchemas), Json::Map(_), Json::Map(_)) => {
            same_schema(a, b)
        }
        (Some(Shape::Named), Json::Map(a), Json::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && same_schema(a, b))
        }
        _ => a == b,
    }
}

/// Whether two schemas mean the same, with everything below them; documentation left out.
pub fn same_schema(a: &Json, b: &Json) -> bool {
    let (Json::Map(a), Json::Map(b)) = (a, b) else { return a == b };
    let covers = |one: &Map, other: &Map| {
        one.iter()
            .filter(|(keyword, value)| !is_waived(keyword) && !is_dropped(keyword, value))
            .all(|(keyword, value)| get(other, keyword).is_some_and(|theirs| same(keyword, value, theirs)))
    };
    let count = |map: &Map| map.iter().filter(|(k, v)| !is_waived(k) && !is_dropped(k, v)).count();
    count(a) == count(b) && covers(a, b)
}

/// Two CEL rules, without what the server drops from them.
pub fn same_rule(a: &Json, b: &Json) -> bool {
    let (Json::Map(a), Json::Map(b)) = (a, b) else { return a == b };
    meant(a).eq(meant(b))
}

fn same_set(a: &[Json], b: &[Json]) -> bool {
    fn sorted<'n, 'a>(list: &'n [Json<'a>]) -> Vec<&'n Json<'a>> {
        let mut sorted: Vec<_> = list.iter().collect();
        sorted.sort();
        sorted.dedup();
        sorted
    }
    sorted(a) == sorted(b)
}

/// Whether the same items are in both, whatever their order. `meaning` writes items alike exactly if they are the same:
/// schemas in schemas would be compared many times over with each other.
fn same_in_any_order(a: &[Json], b: &[Json], same: fn(&Json, &Json) -> bool, meaning: fn(&Json) -> String) -> bool {
    let sorted = |list: &[Json]| {
        let mut sorted: Vec<String> = list.iter().map(meaning).collect();
        sorted.sort_unstable();
        sorted
    };
    a.len() == b.len() && (a.iter().zip(b).all(|(a, b)| same(a, b)) || sorted(a) == sorted(b))
}

/// What a schema says, written alike for all that [`same_schema`] takes to be the same.
fn meaning_of_schema(schema: &Json) -> String {
    let Json::Map(map) = schema else { return schema.to_string() };
    let said = map.iter().filter(|(keyword, value)| !is_waived(keyword) && !is_dropped(keyword, value));
    let said: Vec<String> =
        said.map(|(keyword, value)| format!("{keyword:?}:{}", meaning_of(shape(keyword), value))).collect();
    format!("{{{}}}", said.join(","))
}

fn meaning_of(shape: Option<Shape>, value: &Json) -> String {
    let listed = |mut items: Vec<String>, is_sorted: bool| {
        if is_sorted {
            items.sort_unstable();
        }
        format!("[{}]", items.join(","))
    };
    match (shape, value) {
        (Some(Shape::Set), Json::List(list)) => {
            let mut items: Vec<String> = list.iter().map(ToString::to_string).collect();
            items.sort_unstable();
            items.dedup();
            listed(items, false)
        }
        (Some(Shape::Schemas), Json::List(list)) => listed(list.iter().map(meaning_of_schema).collect(), true),
        (Some(Shape::Rules), Json::List(list)) => listed(list.iter().map(meaning_of_rule).collect(), true),
        (Some(Shape::SchemaOrSchemas), Json::List(list)) => listed(list.iter().map(meaning_of_schema).collect(), false),
        (Some(Shape::Schema | Shape::SchemaOrFlag | Shape::SchemaOrSchemas), Json::Map(_)) => meaning_of_schema(value),
        (Some(Shape::Named), Json::Map(map)) => {
            let named: Vec<String> =
                map.iter().map(|(name, schema)| format!("{name:?}:{}", meaning_of_schema(schema))).collect();
            format!("{{{}}}", named.join(","))
        }
        _ => value.to_string(),
    }
}

/// What a rule says, written alike for all that [`same_rule`] takes to be the same.
pub fn meaning_of_rule(rule: &Json) -> String {
    let Json::Map(map) = rule else { return rule.to_string() };
    let said: Vec<String> = meant(map).map(|(key, value)| format!("{key:?}:{value}")).collect();
    format!("{{{}}}", said.join(","))
}

/// A CEL rule without what the server drops from it.
fn meant<'n, 'a>(map: &'n Map<'a>) -> impl Iterator<Item = (&'n str, &'n Json<'a>)> {
    map.iter().filter(|(_, value)| !matches!(value, Json::Null) && value.text() != Some(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_text(a: &str, b: &str) -> bool {
        same_schema(&Json::parse(a).unwrap(), &Json::parse(b).unwrap())
    }

    #[test]
    fn tables_are_sorted_and_unique() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(WAIVED.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(WALKED.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        for (a, b) in [
            (r#"{"type":"string"}"#, r#"{"type":"string","nullable":false,"pattern":"","description":"x","enum":[]}"#),
            (r#"{"required":["a","b"]}"#, r#"{"required":["b","a"]}"#),
            (
                r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#,
                r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
            ),
            (r#"{"not":{"required":["a"],"title":"t"}}"#, r#"{"not":{"required":["a"]}}"#),
            (
                r#"{"x-kubernetes-validations":[{"rule":"a","message":""}]}"#,
                r#"{"x-kubernetes-validations":[{"rule":"a"}]}"#,
            ),
            (r#"{"properties":{"a":{"minimum":1.0}}}"#, r#"{"properties":{"a":{"minimum":1,"title":"x"}}}"#),
        ] {
            assert!(same_text(a, b) && same_text(b, a), "{a} {b}");
        }
    }

    #[test]
    fn what_differs_differs() {
        for (a, b) in [
            ("{}", r#"{"minimum":0}"#),
            ("{}", r#"{"nullable":true}"#),
            ("{}", r#"{"x-invented-next-year":false}"#),
            (r#"{"properties":{"description":{"type":"string"}}}"#, r#"{"properties":{"title":{"type":"string"}}}"#),
            (
                r#"{"anyOf":[{"type":"integer"},{"type":"integer"}]}"#,
                r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#,
            ),
            (r#"{"items":[{"type":"integer"},{}]}"#, r#"{"items":[{},{"type":"integer"}]}"#),
            (r#"{"default":{"a":""}}"#, r#"{"default":{}}"#),
        ] {
            assert!(!same_text(a, b) && !same_text(b, a), "{a} {b}");
        }
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

//! Schemas as the API's Go types represent them, which is what crdify and kapp compare.
//!
//! The types keep the keywords that the API knows and drop all others. Empty strings, `false`, empty lists and empty
//! maps equal absence. Lists are compared in order, and documentation is compared too.
//!
//! This differs from gantry's own equality of schemas ([`gantry_schema`]): the tools compare Go structs with
//! `reflect.DeepEqual`, so `minLength: 0` and `x-kubernetes-list-type: atomic`, which are pointers there, do not equal
//! absence, and a different order is a change. The dropped keywords come from the same table of keywords.

use crate::crd_upgrade_safety::json::{Json, JsonMap};
use gantry_k8s_cel::gotext;
use gantry_schema::keywords::{self, GoField, KeywordShape, RULE_FIELDS};

/// A map in the API's types. To gantry's table of keywords, it can be any value.
pub const DEPENDENCIES: &str = "dependencies";

/// A keyword whose typed value differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedDifference<'n, 'a> {
    pub keyword: &'n str,
    pub live: Option<&'n Json<'a>>,
    pub desired: Option<&'n Json<'a>>,
}

/// The typed value of a keyword.
pub fn get<'n, 'a>(schema: &'n JsonMap<'a>, keyword: &str) -> Option<&'n Json<'a>> {
    keywords::shape(keyword)?;
    let is_empty = |value: &Json| value.map().is_some_and(JsonMap::is_empty);
    keywords::get(schema, keyword).filter(|value| keyword != DEPENDENCIES || !is_empty(value))
}

/// The keywords that differ, sorted, except those in `without`.
pub fn differences<'n, 'a>(
    live: &'n JsonMap<'a>,
    desired: &'n JsonMap<'a>,
    without: &[&str],
) -> Vec<TypedDifference<'n, 'a>> {
    let looked_at = |keyword: &str| !without.contains(&keyword);
    let mut found = Vec::new();
    for (keyword, _) in live.iter().filter(|(keyword, _)| looked_at(keyword)) {
        let (one, other) = (get(live, keyword), get(desired, keyword));
        if !is_same_value(keyword, one, other) {
            found.push(TypedDifference { keyword, live: one, desired: other });
        }
    }
    for (keyword, _) in desired.iter().filter(|(keyword, _)| looked_at(keyword) && live.get(keyword).is_none()) {
        if let other @ Some(_) = get(desired, keyword) {
            found.push(TypedDifference { keyword, live: None, desired: other });
        }
    }
    found.sort_by_key(|difference| difference.keyword);
    found
}

fn is_same_value(keyword: &str, a: Option<&Json>, b: Option<&Json>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    match (keywords::shape(keyword), a, b) {
        (
            Some(KeywordShape::Schema | KeywordShape::SchemaOrFlag | KeywordShape::SchemaOrSchemas),
            Json::Map(_),
            Json::Map(_),
        ) => same_schema(a, b),
        (
            Some(KeywordShape::Schemas | KeywordShape::Choice | KeywordShape::SchemaOrSchemas),
            Json::List(a),
            Json::List(b),
        ) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_schema(a, b)),
        (Some(KeywordShape::Named), Json::Map(a), Json::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && same_schema(a, b))
        }
        (Some(KeywordShape::Rules), Json::List(a), Json::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_rule(a, b))
        }
        _ => a == b,
    }
}

fn same_schema(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Map(a), Json::Map(b)) => differences(a, b, &[]).is_empty(),
        _ => a == b,
    }
}

fn same_rule(a: &Json, b: &Json) -> bool {
    let (Json::Map(a), Json::Map(b)) = (a, b) else { return a == b };
    // An empty string equals absence, unless the field is a pointer.
    fn value<'n, 'a>(rule: &'n JsonMap<'a>, field: &GoField) -> Option<&'n Json<'a>> {
        let value = rule.get(field.name).filter(|value| !matches!(value, Json::Null))?;
        (field.go_type.is_scalar_pointer() || value.text() != Some("")).then_some(value)
    }
    RULE_FIELDS.iter().all(|field| value(a, field) == value(b, field))
}

/// `Format "int32" -> ""`: a difference in OLM's short form of crdify's struct diff.
pub fn short_form(difference: &TypedDifference) -> String {
    let keyword = difference.keyword;
    let field = keywords::find(keyword).map(|keyword| keyword.field);
    let pointer = field.is_some_and(|field| field.go_type.is_scalar_pointer());
    let value = |value: Option<&Json>| match (value, keywords::shape(keyword)) {
        (None, Some(KeywordShape::Text)) => "\"\"".to_owned(),
        (None, Some(KeywordShape::Flag)) if !pointer => "false".to_owned(),
        (None, _) => "nil".to_owned(),
        (Some(Json::Text(text)), _) => format!("{}{}", if pointer { "&" } else { "" }, gotext::quote(&shorten(text))),
        (Some(scalar @ (Json::Bool(_) | Json::Int(_) | Json::Float(_))), _) => {
            format!("{}{scalar}", if pointer { "&" } else { "" })
        }
        (Some(Json::List(items)), Some(KeywordShape::Set)) => {
            let items: Vec<String> = items.iter().take(10).map(|item| shorten(&item.to_string())).collect();
            format!("{{{}}}", items.join(", "))
        }
        (Some(_), _) => "<complex value>".to_owned(),
    };
    let (before, after) = (value(difference.live), value(difference.desired));
    let changed = if before == after { " (changed)" } else { "" };
    let go_name = field.map_or(keyword, |field| field.go_name);
    format!("{go_name} {before} -> {after}{changed}")
}

fn shorten(text: &str) -> String {
    super::super::words::cut(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keywords_of(live: &str, desired: &str) -> Vec<String> {
        let (live, desired) = (Json::parse(live).unwrap(), Json::parse(desired).unwrap());
        let found = differences(live.map().unwrap(), desired.map().unwrap(), &["properties"]);
        found.iter().map(|difference| difference.keyword.to_owned()).collect()
    }

    #[test]
    fn schemas_that_are_equal_as_go_types_are_the_same() {
        for (live, desired) in [
            (r#"{"nullable":false,"pattern":"","enum":[],"definitions":{},"x-unknown":1}"#, "{}"),
            (
                r#"{"x-kubernetes-validations":[{"rule":"a","message":""}]}"#,
                r#"{"x-kubernetes-validations":[{"rule":"a"}]}"#,
            ),
            (r#"{"anyOf":[{"x-unknown":1}]}"#, r#"{"anyOf":[{}]}"#),
            (r#"{"properties":{"a":{}}}"#, "{}"),
        ] {
            assert!(keywords_of(live, desired).is_empty() && keywords_of(desired, live).is_empty(), "{live} {desired}");
        }
    }

    #[test]
    fn schemas_that_differ_as_go_types_differ() {
        for (live, desired, keyword) in [
            (r#"{"not":{}}"#, "{}", "not"),
            (r#"{"anyOf":[{"description":"a"}]}"#, r#"{"anyOf":[{"description":"b"}]}"#, "anyOf"),
            (r#"{"anyOf":[{"type":"a"},{}]}"#, r#"{"anyOf":[{},{"type":"a"}]}"#, "anyOf"),
            (r#"{"required":["a","b"]}"#, r#"{"required":["b","a"]}"#, "required"),
            (
                r#"{"additionalProperties":{"properties":{"a":{"title":"x"}}}}"#,
                r#"{"additionalProperties":{"properties":{"a":{}}}}"#,
                "additionalProperties",
            ),
            (
                r#"{"x-kubernetes-validations":[{"rule":"a","optionalOldSelf":false}]}"#,
                r#"{"x-kubernetes-validations":[{"rule":"a"}]}"#,
                "x-kubernetes-validations",
            ),
            (r#"{"additionalProperties":false}"#, "{}", "additionalProperties"),
        ] {
            assert_eq!(keywords_of(live, desired), [keyword], "{live} {desired}");
        }
    }

    #[test]
    fn differences_are_printed_as_olm_prints_them() {
        for (keyword, live, desired, expected) in [
            ("format", Some(r#""int32""#), None, r#"Format "int32" -> """#),
            ("x-kubernetes-list-type", None, Some(r#""atomic""#), r#"XListType nil -> &"atomic""#),
            ("x-kubernetes-preserve-unknown-fields", Some("true"), None, "XPreserveUnknownFields &true -> nil"),
            ("exclusiveMinimum", Some("true"), None, "ExclusiveMinimum true -> false"),
            ("x-kubernetes-list-map-keys", None, Some(r#"["name"]"#), r#"XListMapKeys nil -> {"name"}"#),
            ("anyOf", Some("[{}]"), Some("[{},{}]"), "AnyOf <complex value> -> <complex value> (changed)"),
        ] {
            let live = live.map(|text| Json::parse(text).unwrap());
            let desired = desired.map(|text| Json::parse(text).unwrap());
            let difference = TypedDifference { keyword, live: live.as_ref(), desired: desired.as_ref() };
            assert_eq!(short_form(&difference), expected);
        }
    }
}

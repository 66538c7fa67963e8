//! Comparison of two schemas, or of two values of one keyword, by meaning.

use super::keywords::{self, Decides, KeywordShape, is_nothing};
use super::tree::{Tree, ValueView};

/// The aspect in which schemas are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// The effect on objects: whether the API server accepts them, and what it prunes and defaults.
    Objects,
    /// Everything the API server does, including field ownership under server-side apply and the messages of rules.
    Everything,
}

/// Whether the keyword is irrelevant to `sense`, regardless of its value.
pub fn is_left_out(keyword: &str, sense: Sense) -> bool {
    match keywords::find(keyword).map(|keyword| keyword.decides) {
        Some(Decides::Nothing(_)) => true,
        Some(Decides::Ownership) => sense == Sense::Objects,
        Some(Decides::Objects) | None => false,
    }
}

/// Whether two schemas, including everything below them, have the same meaning.
pub fn same_schema<T: Tree>(a: &T, b: &T, sense: Sense) -> bool {
    if std::ptr::eq(a, b) {
        return true;
    }
    if !matches!((a.view(), b.view()), (ValueView::Map(_), ValueView::Map(_))) {
        return a.same_value(b);
    }
    let is_in_both = |keyword: &str, value: &T| {
        is_left_out(keyword, sense) || is_same_keyword(keyword, Some(value), b.member(keyword), sense)
    };
    let is_known = |keyword: &str, value: &T| {
        is_left_out(keyword, sense) || a.member(keyword).is_some() || is_nothing(keyword, value)
    };
    a.all_members(&mut |keyword, value| is_in_both(keyword, value))
        && b.all_members(&mut |keyword, value| is_known(keyword, value))
}

/// Whether a keyword has the same meaning on both sides. Values that the server drops, and values that are equivalent
/// to omitting the keyword, such as `minLength: 0`, count as missing.
pub fn is_same_keyword<T: Tree>(keyword: &str, a: Option<&T>, b: Option<&T>, sense: Sense) -> bool {
    let said = |value: Option<&'_ T>| value.is_some_and(|value| !is_nothing(keyword, value));
    match (a, b) {
        (Some(a), Some(b)) if said(Some(a)) && said(Some(b)) => same_content(keywords::shape(keyword), a, b, sense),
        (a, b) => !said(a) && !said(b),
    }
}

fn same_content<T: Tree>(shape: Option<KeywordShape>, a: &T, b: &T, sense: Sense) -> bool {
    match (shape, a.view(), b.view()) {
        (Some(KeywordShape::Set), ValueView::List(a), ValueView::List(b)) => {
            same_items(a, b, true, T::same_value, T::canonical_text)
        }
        (Some(shape @ (KeywordShape::Schemas | KeywordShape::Choice)), ValueView::List(a), ValueView::List(b)) => {
            let same = |a: &T, b: &T| same_schema(a, b, sense);
            same_items(a, b, shape == KeywordShape::Schemas, same, |schema| meaning_of_schema(schema, sense))
        }
        (Some(KeywordShape::Rules), ValueView::List(a), ValueView::List(b)) => {
            let same = |a: &T, b: &T| meaning_of_rule(a, sense) == meaning_of_rule(b, sense);
            same_items(a, b, true, same, |rule| meaning_of_rule(rule, sense))
        }
        (Some(KeywordShape::SchemaOrSchemas), ValueView::List(a), ValueView::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_schema(a, b, sense))
        }
        (
            Some(KeywordShape::Schema | KeywordShape::SchemaOrFlag | KeywordShape::SchemaOrSchemas),
            ValueView::Map(_),
            ValueView::Map(_),
        ) => same_schema(a, b, sense),
        (Some(KeywordShape::Named), ValueView::Map(_), ValueView::Map(_)) => {
            a.all_members(&mut |name, a| b.member(name).is_some_and(|b| same_schema(a, b, sense)))
                && b.all_members(&mut |name, _| a.member(name).is_some())
        }
        _ => a.same_value(b),
    }
}

/// Whether two lists contain the same items in any order and, if `is_set`, regardless of repetition. `meaning` returns
/// equal texts exactly for items that are the same. Comparing texts avoids comparing nested schemas with each other
/// many times.
fn same_items<T>(
    a: &[T],
    b: &[T],
    is_set: bool,
    same: impl Fn(&T, &T) -> bool,
    meaning: impl Fn(&T) -> String,
) -> bool {
    if a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)) {
        return true;
    }
    (is_set || a.len() == b.len()) && in_order(a, is_set, &meaning) == in_order(b, is_set, &meaning)
}

fn in_order<T>(items: &[T], is_set: bool, meaning: &impl Fn(&T) -> String) -> Vec<String> {
    let mut meanings: Vec<String> = items.iter().map(meaning).collect();
    meanings.sort_unstable();
    if is_set {
        meanings.dedup();
    }
    meanings
}

/// A canonical text of a schema: equal exactly for schemas that [`same_schema`] considers the same.
fn meaning_of_schema<T: Tree>(schema: &T, sense: Sense) -> String {
    if !matches!(schema.view(), ValueView::Map(_)) {
        return schema.canonical_text();
    }
    let mut said = Vec::new();
    schema.all_members(&mut |keyword, value| {
        if !is_left_out(keyword, sense) && !is_nothing(keyword, value) {
            said.push(format!("{keyword:?}:{}", meaning(keywords::shape(keyword), value, sense)));
        }
        true
    });
    said.sort_unstable();
    format!("{{{}}}", said.join(","))
}

fn meaning<T: Tree>(shape: Option<KeywordShape>, value: &T, sense: Sense) -> String {
    let listed = |items: Vec<String>| format!("[{}]", items.join(","));
    let of_schema = |schema: &T| meaning_of_schema(schema, sense);
    match (shape, value.view()) {
        (Some(KeywordShape::Set), ValueView::List(list)) => listed(in_order(list, true, &T::canonical_text)),
        (Some(shape @ (KeywordShape::Schemas | KeywordShape::Choice)), ValueView::List(list)) => {
            listed(in_order(list, shape == KeywordShape::Schemas, &of_schema))
        }
        (Some(KeywordShape::Rules), ValueView::List(list)) => {
            listed(in_order(list, true, &|rule: &T| meaning_of_rule(rule, sense)))
        }
        (Some(KeywordShape::SchemaOrSchemas), ValueView::List(list)) => listed(list.iter().map(of_schema).collect()),
        (
            Some(KeywordShape::Schema | KeywordShape::SchemaOrFlag | KeywordShape::SchemaOrSchemas),
            ValueView::Map(_),
        ) => of_schema(value),
        (Some(KeywordShape::Named), ValueView::Map(_)) => {
            let mut named = Vec::new();
            value.all_members(&mut |name, schema| {
                named.push(format!("{name:?}:{}", of_schema(schema)));
                true
            });
            named.sort_unstable();
            format!("{{{}}}", named.join(","))
        }
        _ => value.canonical_text(),
    }
}

/// A canonical text of a CEL rule: equal for rules with the same meaning.
pub fn meaning_of_rule<T: Tree>(rule: &T, sense: Sense) -> String {
    if !matches!(rule.view(), ValueView::Map(_)) {
        return rule.canonical_text();
    }
    if sense == Sense::Objects {
        let text = match rule.member("rule").map(Tree::view) {
            Some(ValueView::Text(text)) => without_spaces(text),
            _ => String::new(),
        };
        return format!(
            "{text:?} {}",
            matches!(rule.member("optionalOldSelf").map(Tree::view), Some(ValueView::Bool(true)))
        );
    }
    let mut said = Vec::new();
    rule.all_members(&mut |key, value| {
        if !matches!(value.view(), ValueView::Null | ValueView::Bool(false) | ValueView::Text("")) {
            said.push(format!("{key:?}:{}", value.canonical_text()));
        }
        true
    });
    said.sort_unstable();
    format!("{{{}}}", said.join(","))
}

/// The text of a rule without insignificant spaces.
pub fn without_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut pending = false;
    for c in text.trim().chars() {
        if let Some(open) = quote {
            out.push(c);
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == open {
                quote = None;
            }
            continue;
        }
        if c.is_whitespace() {
            pending = true;
            continue;
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        // `a in b` needs its spaces, and so does `- -1`.
        if pending
            && out
                .chars()
                .last()
                .is_some_and(|last| is_word(last) && (is_word(c) || c == '\'' || c == '"') || last == c)
        {
            out.push(' ');
        }
        pending = false;
        if c == '\'' || c == '"' {
            quote = Some(c);
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::Json;

    /// Whether the two are the same, checked for both JSON types and in both directions.
    fn are_same(a: &Value, b: &Value, sense: Sense) -> bool {
        let (a_text, b_text) = (a.to_string(), b.to_string());
        let (one, other) = (Json::parse(&a_text).unwrap(), Json::parse(&b_text).unwrap());
        let found = [
            same_schema(a, b, sense),
            same_schema(b, a, sense),
            same_schema(&one, &other, sense),
            same_schema(&other, &one, sense),
            meaning_of_schema(a, sense) == meaning_of_schema(b, sense),
            meaning_of_schema(&one, sense) == meaning_of_schema(&other, sense),
        ];
        assert!(found.iter().all(|is_same| *is_same == found[0]), "{found:?} for {a} {b}");
        found[0]
    }

    fn rules(rules: Value) -> Value {
        json!({"x-kubernetes-validations": rules})
    }

    #[test]
    fn schemas_with_the_same_meaning_are_the_same() {
        let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
        for (a, b) in [
            (
                json!({"type": "string", "nullable": false, "pattern": "", "description": "x", "enum": [],
                    "minLength": 0, "uniqueItems": false, "title": "t", "example": 1, "externalDocs": {"url": "u"}}),
                json!({"type": "string"}),
            ),
            (json!({"type": "array", "minItems": 0, "x-kubernetes-list-type": "atomic"}), json!({"type": "array"})),
            (
                json!({"type": "object", "minProperties": 0, "x-kubernetes-map-type": "granular", "required": []}),
                json!({"type": "object", "properties": {}}),
            ),
            (json!({"required": ["a", "b", "a"]}), json!({"required": ["b", "a"]})),
            (json!({"enum": [1, {"a": 1, "b": 2}]}), json!({"enum": [{"b": 2.0, "a": 1}, 1.0, 1]})),
            (json!({"x-kubernetes-list-map-keys": ["a", "b"]}), json!({"x-kubernetes-list-map-keys": ["b", "a"]})),
            (json!({"anyOf": [number, text]}), json!({"anyOf": [text, number, text]})),
            (
                json!({"allOf": [{"minLength": 1}, {"maxLength": 2}]}),
                json!({"allOf": [{"maxLength": 2}, {"minLength": 1}]}),
            ),
            (json!({"oneOf": [number, text, text]}), json!({"oneOf": [text, number, text]})),
            (json!({"not": {"required": ["a"], "title": "t"}}), json!({"not": {"required": ["a"]}})),
            (
                json!({"anyOf": [{"not": {"anyOf": [number, text]}}]}),
                json!({"anyOf": [{"not": {"anyOf": [text, number]}}]}),
            ),
            (
                json!({"properties": {"a": {"minimum": 1.0}}}),
                json!({"properties": {"a": {"minimum": 1, "title": "x"}}}),
            ),
            (json!({"default": {"a": 1.0, "b": 2}}), json!({"default": {"b": 2, "a": 1}})),
            (
                rules(json!([{"rule": "a", "message": "", "optionalOldSelf": false}, {"rule": "b"}])),
                rules(json!([{"rule": "b"}, {"rule": "a"}, {"rule": "a"}])),
            ),
        ] {
            for sense in [Sense::Objects, Sense::Everything] {
                assert!(are_same(&a, &b, sense), "{sense:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn some_differences_matter_to_updates_but_not_to_stored_objects() {
        for (a, b) in [
            (json!({"x-kubernetes-map-type": "atomic"}), json!({})),
            (rules(json!([{"rule": "self.a == 1", "message": "one"}])), rules(json!([{"rule": "self.a==1"}]))),
            (rules(json!([{"rule": "a", "reason": "FieldValueForbidden"}])), rules(json!([{"rule": "a"}]))),
        ] {
            assert!(are_same(&a, &b, Sense::Objects) && !are_same(&a, &b, Sense::Everything), "{a} {b}");
        }
    }

    #[test]
    fn schemas_with_different_meanings_differ() {
        let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
        for (a, b) in [
            (json!({}), json!({"minimum": 0})),
            (json!({}), json!({"maxLength": 0})),
            (json!({}), json!({"nullable": true})),
            (json!({}), json!({"not": {}})),
            (json!({}), json!({"items": {}})),
            (json!({}), json!({"x-kubernetes-list-type": "set"})),
            (json!({}), json!({"additionalProperties": false})),
            (json!({}), json!({"x-invented-next-year": false})),
            (json!({"default": ""}), json!({})),
            (json!({"default": false}), json!({})),
            (json!({"default": {"a": ""}}), json!({"default": {}})),
            (json!({"default": {"description": "x"}}), json!({"default": {}})),
            (json!({"default": ["a", "b"]}), json!({"default": ["b", "a"]})),
            (json!({"enum": [["a", "b"]]}), json!({"enum": [["b", "a"]]})),
            (json!({"properties": {"description": text}}), json!({"properties": {"title": text}})),
            (json!({"properties": {"title": {}}}), json!({"properties": {}})),
            (json!({"oneOf": [text, text]}), json!({"oneOf": [text]})),
            (json!({"anyOf": [number, number]}), json!({"anyOf": [number, text]})),
            (json!({"items": [number, {}]}), json!({"items": [{}, number]})),
            (rules(json!([{"rule": "a"}])), rules(json!([{"rule": "a", "optionalOldSelf": true}]))),
            (rules(json!([{"rule": "a in b"}])), rules(json!([{"rule": "ainb"}]))),
        ] {
            for sense in [Sense::Objects, Sense::Everything] {
                assert!(!are_same(&a, &b, sense), "{sense:?}: {a} {b}");
            }
        }
    }
}

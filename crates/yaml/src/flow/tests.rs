//! Compares the reader with libyaml, on a table and on generated texts.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::compose::compose_any;

/// Whether this reader accepts the text. If so, libyaml must produce the same document.
fn is_read(text: &str) -> bool {
    let Some(own) = compose(text) else { return false };
    match compose_any(text) {
        Ok(Some(theirs)) => assert_eq!(own.nodes, theirs.nodes, "{text:?}"),
        other => panic!("{text:?} is accepted here, but libyaml returns {:?}", other.map(|_| "empty")),
    }
    true
}

#[test]
fn output_of_common_programs_is_read_as_libyaml_reads_it() {
    for text in [
        "{}",
        "[]\n",
        "\n {\"a\": {}, \"b\": [], \"c\": [ ], \"d\": { } }\n\n",
        "{\"a\":1,\"b\":[true,false,null,-0,1.5,2e3,-1E-2,0.0],\"c\":{\"d\":\"e\"}}",
        "{\n  \"a\" : \"é\", \"b\": \"ü\",\n\t\"c\": [\n    1,\n    \"x: y, {z}\"\n  ]\n}",
        r#"{"a": "\" \\ \/ \b \f \n \r \t \u00e9 \u0000 \u2028", "": ""}"#,
        "[[[[1]]], {\"a\": [{\"b\": {}}]}]",
        "{\"a\": 1, \"a\": 2}",
    ] {
        assert!(is_read(text), "{text:?}");
    }
}

#[test]
fn text_that_is_not_exactly_json_is_left_to_libyaml() {
    for text in [
        "",
        "a: 1\n",
        "{a: 1}",
        "{'a': 1}",
        "{\"a\": 1} # c",
        "{\"a\": 1}\n{\"b\": 2}",
        "{\"a\": 1,}",
        "[1,]",
        "{\"a\"\n: 1}",
        "{\"a\" 1}",
        "{\"a\": 01}",
        "{\"a\": .5}",
        "{\"a\": 1.}",
        "{\"a\": 1e}",
        "{\"a\": yes}",
        "{\"a\": nulls}",
        "{\"a\": \"x\ty\"}",
        "{\"a\": \"x\ny\"}",
        "{\"a\": \"\\ud83d\"}",
        "{\"a\": \"\\ud83dx\"}",
        "{\"a\": \"\\ud83d\\ud83d\"}",
        "{\"a\": \"\\ude00\\ud83d\"}",
        "{\"a\": \"\\x\"}",
        "{\"a\": \"\\u+123\"}",
        "{\"a\": [1}",
        "{\"a\": {\"b\": 1]",
        "{\"a\"",
        "{\"a\": ",
        "{\"a\": \"",
        "{\"a\": \"\\",
        "[",
        "]",
        "{\"a\": 1}]",
        "{\"a\": 1}\r\n",
    ] {
        assert!(!is_read(text), "{text:?}");
    }
    let key = "k".repeat(LONGEST_KEY);
    assert!(!is_read(&format!("{{\"{key}\": 1}}")));
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(is_read(&deep(MAX_DEPTH)) && !is_read(&deep(MAX_DEPTH + 1)));
}

#[test]
fn a_surrogate_pair_is_one_character_and_later_positions_are_right() {
    let text = r#"{"a": "x\ud83d\uDE00y",
        "b": 1}"#;
    let json = crate::to_json(text).unwrap().unwrap().text;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    let document = crate::YamlDocument::read(text).unwrap().unwrap();
    let (_, span) = document.locate([crate::YamlStep::Key("b")]);
    assert_eq!((span.line, span.column), (2, 9));
}

fn value() -> impl Strategy<Value = Value> {
    let text = "[ -~é\\n\\t\\r\\\\\"\u{0}\u{7f}🦀]{0,8}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number", |number| number.is_finite()).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text, inner), 0..6).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

const PARTS: &[&str] = &[
    "{", "}", "[", "]", ",", ":", ": ", "\"a\"", "\"b\":", "\"", "\\", "\\u00e9", "1", "-1.5e3", "true", "null", " ",
    "\n", "\t", "#", "é", "a", "'", "&", "*", "!", "---", "...",
];

proptest! {
    #[test]
    fn any_json_is_read_without_libyaml(value in value()) {
        let value = Value::from(vec![value]);
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            // serde_json does not escape the few characters that YAML does not allow.
            let is_yaml = !text.contains('\u{7f}');
            prop_assert_eq!(is_read(&text), is_yaml, "{}", text);
        }
    }

    #[test]
    fn any_text_that_the_flow_reader_accepts_is_read_as_libyaml_reads_it(parts in prop::collection::vec(prop::sample::select(PARTS), 0..24)) {
        is_read(&format!("{{{}", parts.concat()));
        is_read(&format!("[{}", parts.concat()));
    }
}

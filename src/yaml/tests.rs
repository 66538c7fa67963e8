use serde_json::{Value, json};

use super::table::{DOCUMENTS, REFUSED, SCALARS};
use super::*;

/// The value by way of the tree and of the JSON text, which must agree.
fn value(text: &str) -> Result<Value, Error> {
    let tree = parse(text).map(|node| node.map_or(Value::Null, |node| node.to_value()));
    let json = to_json(text).map(|json| json.map_or(Value::Null, |json| serde_json::from_str(&json.text).unwrap()));
    assert_eq!(tree, json, "the tree and the JSON of {text:?}");
    tree
}

#[test]
fn scalars_mean_what_kubectl_makes_of_them() {
    for (text, expected) in SCALARS {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(value(&format!("a: {text}")), Ok(json!({ "a": expected })), "a: {text}");
    }
}

#[test]
fn documents_mean_what_kubectl_makes_of_them() {
    for (text, expected) in DOCUMENTS {
        assert_eq!(value(text), Ok(serde_json::from_str(expected).unwrap()), "{text:?}");
    }
}

#[test]
fn what_kubectl_refuses_is_refused() {
    for text in REFUSED {
        let error = value(text).expect_err(text);
        assert!(!error.message.is_empty());
        let lines = text.split('\n').count();
        assert!((1..=lines + 1).contains(&error.line), "{text:?}: {error:?}");
    }
}

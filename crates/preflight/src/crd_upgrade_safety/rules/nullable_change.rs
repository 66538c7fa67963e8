//! `nullable` added or removed.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::keyword_change::{self, KeywordEffect};
use crate::crd_upgrade_safety::node::{NodePair, SchemaNodePlace, Transition};
use crate::crd_upgrade_safety::rule::{BeyondProof, ViolationText};
use gantry_core::crd::steps;
use gantry_core::finding::Breaks;
use gantry_core::resource::Step;
use gantry_schema::keywords;

const KEYWORD: &str = "nullable";

const ADDED: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Readers, Breaks::Behaviour],
    verdict: None,
    so: "the server keeps a null that it dropped until now",
    help: "make sure that every reader understands null there, or change it only in a new version that a webhook converts, \
        or after a migration",
};

const ADDED_BESIDE_ENUM: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Writers],
    so: "the server refuses a null that it dropped until now, because it is not in the enum",
    help: "add null to the enum, or leave nullable out",
    ..ADDED
};

const ADDED_TO_DEFAULT: KeywordEffect =
    KeywordEffect { so: "the server keeps a null that it replaced by the default until now", ..ADDED };

const ADDED_TO_ITEMS: KeywordEffect =
    KeywordEffect { so: "the server keeps a null that it refused until now", ..ADDED };

const REMOVED: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Data],
    verdict: None,
    so: "the server drops a null from now on",
    help: "keep nullable as it is in this version, or change it only in a new version that a webhook converts, or after a \
        migration",
};

const REMOVED_WITH_DEFAULT: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Data, Breaks::Behaviour],
    so: "the server drops a null from now on and fills in the default",
    ..REMOVED
};

const REMOVED_FROM_ITEMS: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    so: "the server refuses a null from now on",
    ..REMOVED
};

/// The server drops a null only from the field of an object, and fills in a default only where there is one.
pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(KEYWORD)?;
    let is_added = change.transition() == Transition::Added;
    // An enum that is added is a finding of its own.
    let had_enum = keywords::get(pair.live, "enum").is_some();
    let lacks_null = |values: &[Json<'_>]| had_enum && !values.contains(&Json::Null);
    let (effect, beyond_proof) = match (is_added, is_item(pair.place)) {
        (true, true) => (ADDED_TO_ITEMS, None),
        (true, false) if pair.desired("enum").and_then(Json::list).is_some_and(lacks_null) => {
            (ADDED_BESIDE_ENUM, Some(BeyondProof::RefusedNull))
        }
        (true, false) if keywords::get(pair.live, "default").is_some() => {
            (ADDED_TO_DEFAULT, Some(BeyondProof::KeptNull))
        }
        (true, false) => (ADDED, None),
        (false, true) => (REMOVED_FROM_ITEMS, None),
        (false, false) if pair.desired("default").is_some() => (REMOVED_WITH_DEFAULT, None),
        (false, false) => (REMOVED, None),
    };
    Some(ViolationText { beyond_proof, ..keyword_change::diagnosis(pair, change, &effect) })
}

/// Whether the node describes the items of a list. A field can have the name `items`.
fn is_item(place: &SchemaNodePlace) -> bool {
    let mut steps = steps::below_schema(&place.steps).into_iter().flatten();
    let mut last = None;
    while let Some(step) = steps.next() {
        last = Some(step);
        if *step == Step::from("properties") {
            last = steps.next().map(|_| step);
        }
    }
    last.is_some_and(|last| *last == Step::from("items"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::crd_upgrade_safety::{CrdUpgradeOptions, CrdUpgradeSafety};
    use gantry_core::crd::builder::{CrdBuilder, fields};

    /// The message about a change of the fields of `spec`.
    fn message(live: &Value, desired: &Value) -> String {
        let crd = |properties: &Value| {
            CrdBuilder::new("g.io", "K").version_of_spec("v1", fields(properties.clone())).build().to_string()
        };
        let check = CrdUpgradeSafety::new(CrdUpgradeOptions::default());
        let found = check.judge(&crd(live), &crd(desired)).expect("valid CRDs");
        let of_rule = found.into_iter().find(|violation| violation.rule == "NullableChange");
        of_rule.expect("a violation").body.message
    }

    #[test]
    fn the_message_says_what_happens_to_a_null_value() {
        let (text, null) = (json!({"type": "string"}), json!({"type": "string", "nullable": true}));
        let list = |items: &Value| json!({"type": "array", "items": items});
        let with_default = |node: &Value| {
            let mut node = node.clone();
            node["default"] = json!("a");
            node
        };
        let of_enum = |more: Value| json!({"type": "string", "enum": ["a", more]});
        let nullable = |node: Value| {
            let mut node = node;
            node["nullable"] = json!(true);
            node
        };
        for (field, live, desired, message_ends) in [
            (
                "x",
                of_enum(json!("b")),
                nullable(of_enum(json!("b"))),
                "; the server refuses a null that it dropped until now, because it is not in the enum",
            ),
            (
                "x",
                of_enum(Value::Null),
                nullable(of_enum(Value::Null)),
                "; the server keeps a null that it dropped until now",
            ),
            (
                "x",
                with_default(&text),
                with_default(&null),
                "; the server keeps a null that it replaced by the default until now",
            ),
            ("x", null.clone(), text.clone(), ": true; the server drops a null from now on"),
            // A field can have the name of a keyword.
            ("items", null.clone(), text.clone(), ": true; the server drops a null from now on"),
            (
                "x",
                with_default(&null),
                with_default(&text),
                ": true; the server drops a null from now on and fills in the default",
            ),
            ("x", list(&null), list(&text), ": true; the server refuses a null from now on"),
            ("x", text.clone(), null.clone(), ": true; the server keeps a null that it dropped until now"),
            ("x", list(&text), list(&null), ": true; the server keeps a null that it refused until now"),
        ] {
            let found = message(&json!({field: live}), &json!({field: desired}));
            assert!(found.ends_with(message_ends), "{field}: {found}");
        }
    }
}

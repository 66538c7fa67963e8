//! Nulls that live drops before it validates, and that desired keeps because the field becomes `nullable`.
//!
//! The prover leaves such objects out, since live never stores them. But who sends a null until now has it dropped, and
//! from now on it is there for what counts or compares around it. To all that counts, a kept null is the same as a field
//! that desired fills in with some value, which the prover knows how to decide. Rules also see that it is null.

use serde_json::{Value, json};

use super::nodes::{node_mut, nodes_below};
use gantry_schema::Step;

/// A place whose null is kept from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptNull {
    /// The path of its node, such as `^.spec.a`.
    pub path: String,
    /// The steps from the root of the schema to its node.
    pub node: Vec<Step>,
    /// Whether a rule may see it, or for an entry anything that counts entries.
    pub is_seen: bool,
    /// Whether it is any entry of a map, and not a field.
    pub is_entry: bool,
}

/// What counts the entries of a map or restricts those that it may have.
const COUNTS: [&str; 6] = ["allOf", "anyOf", "maxProperties", "minProperties", "not", "oneOf"];

/// The places at which desired keeps a null that live drops: fields and entries, not items, where live refuses a null.
pub(super) fn kept_nulls(live: &Value, desired: &Value) -> Vec<KeptNull> {
    let mut found = Vec::new();
    let root = Place { path: "^".to_owned(), node: Vec::new(), rules: Vec::new() };
    find(live, desired, &root, &mut found);
    found
}

/// The place of a node in both schemas.
struct Place<'s> {
    path: String,
    node: Vec<Step>,
    /// The rules of the nodes above, each with the number of steps to its node.
    rules: Vec<(usize, &'s str)>,
}

impl Place<'_> {
    /// Whether a rule may see what is here: it names it or something around it, or compares all of its own value.
    fn is_seen_by_rules(&self) -> bool {
        let names = |above: usize| {
            let names = self.node[above..].iter().filter_map(|step| match step {
                Step::Key(name) if !matches!(name.as_str(), "properties" | "items" | "additionalProperties") => {
                    Some(name)
                }
                _ => None,
            });
            names.map(String::as_str)
        };
        let is_whole = |rule: &str| {
            let mut after = rule.match_indices("elf").map(|(at, word)| &rule[at + word.len()..]);
            after.any(|after| !after.starts_with(['.', 'A', '_']))
        };
        self.rules.iter().any(|(above, rule)| {
            names(*above).next().is_none() || is_whole(rule) || names(*above).any(|name| rule.contains(name))
        })
    }
}

fn rules_of(node: &Value) -> impl Iterator<Item = &str> {
    let rules = node.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().filter_map(|rule| rule.get("rule")?.as_str())
}

fn find<'s>(live: &'s Value, desired: &'s Value, at: &Place<'s>, found: &mut Vec<KeptNull>) {
    if live == desired {
        return;
    }
    // The server does not evaluate the rules of a null itself.
    let own = rules_of(desired).map(|rule| (at.node.len(), rule));
    let rules: Vec<(usize, &str)> = at.rules.iter().copied().chain(own).collect();
    let mut down = |steps: &[Step], name: &str, [live, desired]: [&'s Value; 2]| {
        let node = [&at.node, steps].concat();
        let place = Place { path: format!("{}.{name}", at.path), node, rules: rules.clone() };
        let is_nullable = |node: &Value| node.get("nullable") == Some(&Value::Bool(true));
        let is_items = steps == [Step::from("items")];
        if !is_items && is_nullable(desired) && !is_nullable(live) {
            let is_entry = steps.len() == 1;
            found.push(KeptNull {
                path: place.path.clone(),
                node: place.node.clone(),
                is_seen: place.is_seen_by_rules(),
                is_entry,
            });
        }
        find(live, desired, &place, found);
    };
    for (steps, name, nodes) in nodes_below(live, desired) {
        down(&steps, name, nodes);
    }
    if COUNTS.iter().any(|keyword| desired.get(keyword).is_some()) {
        let entries = |null: &&mut KeptNull| null.is_entry && null.node.len() == at.node.len() + 1;
        found.iter_mut().filter(entries).for_each(|null| null.is_seen |= null.node.starts_with(&at.node));
    }
}

/// The desired schema that fills in some value at each of these fields.
pub(super) fn filling_fields(desired: &Value, nulls: &[KeptNull]) -> Value {
    let mut schema = desired.clone();
    for null in nulls.iter().filter(|null| !null.is_entry) {
        if let Some(node) = node_mut(&mut schema, &null.node).and_then(Value::as_object_mut) {
            let value = match node.get("type").and_then(Value::as_str) {
                Some("integer" | "number") => json!(0),
                Some("boolean") => json!(false),
                Some("object") => json!({}),
                Some("array") => json!([]),
                _ => json!(""),
            };
            let option = node.get("enum").and_then(|options| options.get(0)).filter(|option| !option.is_null());
            let value = option.cloned().unwrap_or(value);
            node.insert("default".to_owned(), value);
        }
    }
    schema
}

/// The object with a null at each of these places that it lacks. `None` if it lacks none.
pub(super) fn with_nulls(object: &Value, nulls: &[&KeptNull]) -> Option<Value> {
    let mut object = object.clone();
    let mut is_changed = false;
    for null in nulls {
        is_changed |= match null.node.as_slice() {
            [around @ .., _] if null.is_entry => insert_null(&mut object, around, None),
            [around @ .., _, Step::Key(name)] => insert_null(&mut object, around, Some(name)),
            _ => false,
        };
    }
    is_changed.then_some(object)
}

/// A schema that refuses every object with an entry in the map of this place, so that a witness has one.
pub(super) fn refusing_entries(live: &Value, null: &KeptNull) -> Option<Value> {
    let mut schema = live.clone();
    let (_, map) = null.node.split_last()?;
    node_mut(&mut schema, map)?.as_object_mut()?.insert("maxProperties".to_owned(), json!(0));
    Some(schema)
}

/// Sets the field of this name to null, or a new entry, in every object at these steps of the schema that lacks it.
fn insert_null(value: &mut Value, steps: &[Step], name: Option<&str>) -> bool {
    let Some((Step::Key(keyword), rest)) = steps.split_first() else {
        let Some(map) = value.as_object_mut() else { return false };
        let mut names = name.map_or(vec!["x", "y", "z"], |name| vec![name]).into_iter();
        let missing = names.find(|name| !map.contains_key(*name));
        return missing.is_some_and(|name| map.insert(name.to_owned(), Value::Null).is_none());
    };
    let mut is_changed = false;
    match (keyword.as_str(), rest.split_first()) {
        ("properties", Some((Step::Key(field), rest))) => {
            is_changed = value.get_mut(field).is_some_and(|below| insert_null(below, rest, name));
        }
        ("items", _) => {
            value.as_array_mut().into_iter().flatten().for_each(|item| is_changed |= insert_null(item, rest, name));
        }
        _ => {
            let entries = value.as_object_mut().into_iter().flatten();
            entries.for_each(|(_, entry)| is_changed |= insert_null(entry, rest, name));
        }
    }
    is_changed
}

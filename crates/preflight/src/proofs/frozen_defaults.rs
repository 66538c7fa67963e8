//! Defaults that change where a rule compares a value with the old one.
//!
//! The prover compares one object with itself: to it, another default only gives the object another meaning. But who
//! leaves a field out sends its default. Where a transition rule freezes the field, or something around it, the same
//! manifest is refused from now on if another default takes the place of the stored one, and so is the first value of a
//! field that was absent until a default filled it in. Such pairs of a stored object and what replaces it are built
//! here, and tried as whole writes.

use serde_json::{Value, json};

use super::nodes::{node_at_steps, node_mut, nodes_below};
use super::trials::{StoredSide, Trial};
use gantry_schema::Step;

/// The maximum number of values that are tried for one field.
const MAX_VALUES: usize = 24;

/// A field whose default differs, and that a transition rule of desired may see.
#[derive(Debug)]
pub(super) struct FrozenDefault {
    /// The path of its node, such as `^.spec.a`.
    pub path: String,
    /// The steps from the root of the schema to its node.
    pub node: Vec<Step>,
    /// The default in live and in desired.
    defaults: [Option<Value>; 2],
    /// The rules that may see it, each with the number of steps to its node.
    rules: Vec<(usize, String)>,
    /// The paths of the nodes whose transition rules may see it.
    pub rules_at: Vec<String>,
    /// Whether one of these rules may compare it in a way that no trial covers.
    pub is_beyond_trials: bool,
}

/// A transition rule, with the number of steps to its node and the node's path.
struct TransitionRule<'s> {
    above: usize,
    path: String,
    text: &'s str,
}

/// How much of a field a rule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reads {
    Nothing,
    /// Whether it is present.
    Presence,
    /// Its value, and nothing else.
    OnlyIt,
    /// Its value, and what is around it.
    More,
}

/// The fields of both schemas whose default differs and that a transition rule may see.
pub(super) fn frozen_defaults(live: &Value, desired: &Value) -> Vec<FrozenDefault> {
    let mut found = Vec::new();
    find(live, desired, &DefaultPlace { path: "^".to_owned(), node: Vec::new() }, &[], &mut found);
    found
}

struct DefaultPlace {
    path: String,
    node: Vec<Step>,
}

fn find<'s>(
    live: &'s Value,
    desired: &'s Value,
    at: &DefaultPlace,
    around: &[&TransitionRule<'s>],
    found: &mut Vec<FrozenDefault>,
) {
    if live == desired {
        return;
    }
    let own = desired.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
    let own = own.filter_map(|rule| rule.get("rule")?.as_str()).filter(|text| text.contains("oldSelf"));
    let own: Vec<TransitionRule<'s>> =
        own.map(|text| TransitionRule { above: at.node.len(), path: at.path.clone(), text }).collect();
    let rules: Vec<&TransitionRule<'s>> = around.iter().copied().chain(&own).collect();
    let defaults = [live, desired].map(|node| node.get("default").cloned());
    let is_field = at.node.len() > 1 && at.node[at.node.len() - 2] == Step::from("properties");
    let written = [live, desired].map(|node| Some(filled(node, node.get("default")?)));
    if is_field && written[0] != written[1] {
        let is_scalar = desired.get("type").is_some_and(|kind| kind != "object" && kind != "array");
        let reads = rules.iter().map(|rule| (rule, reads(rule.text, &at.node[rule.above..])));
        let seen: Vec<_> = reads.filter(|(_, reads)| *reads != Reads::Nothing).collect();
        if !seen.is_empty() {
            found.push(FrozenDefault {
                path: at.path.clone(),
                node: at.node.clone(),
                defaults,
                is_beyond_trials: seen
                    .iter()
                    .any(|(_, reads)| *reads == Reads::More || *reads == Reads::OnlyIt && !is_scalar),
                rules: seen.iter().map(|(rule, _)| (rule.above, rule.text.to_owned())).collect(),
                rules_at: seen.into_iter().map(|(rule, _)| rule.path.clone()).collect(),
            });
        }
    }
    let mut down = |steps: &[Step], name: &str, [live, desired]: [&'s Value; 2]| {
        let place = DefaultPlace { path: format!("{}.{name}", at.path), node: [&at.node, steps].concat() };
        find(live, desired, &place, &rules, found);
    };
    for (steps, name, nodes) in nodes_below(live, desired) {
        down(&steps, name, nodes);
    }
}

/// The default as the server writes it, with the defaults of the fields in it.
fn filled(node: &Value, default: &Value) -> Value {
    let mut value = default.clone();
    let fields = node.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let Some(object) = value.as_object_mut() else { break };
        if let Some(below) = object.get(name).or_else(|| field.get("default")).map(|below| filled(field, below)) {
            object.insert(name.clone(), below);
        }
    }
    value
}

/// What a rule reads of the field at these steps below its node. If in doubt, more.
fn reads(rule: &str, below: &[Step]) -> Reads {
    let rule: String = rule.chars().filter(|character| !character.is_whitespace()).collect();
    let name = match below {
        [] => return Reads::OnlyIt,
        [Step::Key(_), Step::Key(name), ..] if below[0] == Step::from("properties") => name.as_str(),
        // Rules reach the items of lists and the entries of maps in many ways.
        _ => return Reads::More,
    };
    let is_plain = |name: &str| name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_plain(name) || rule.contains("__") {
        return Reads::More;
    }
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = |word: &str| -> Vec<(String, String)> {
        let at = rule.match_indices(word).map(|(at, _)| (&rule[..at], &rule[at + word.len()..]));
        let at = at.filter(|(before, after)| !before.ends_with(is_word) && !after.starts_with(is_word));
        at.map(|(before, after)| (before.to_owned(), after.to_owned())).collect()
    };
    let of_self = [words("self"), words("oldSelf")].concat();
    let selected = |after: &str| {
        let after = after.strip_prefix(".?").or_else(|| after.strip_prefix('.'))?;
        Some(after[..after.find(|character| !is_word(character)).unwrap_or(after.len())].to_owned())
    };
    // All of the value around the field is compared, or it is reached by a variable.
    let is_whole = of_self.iter().any(|(_, after)| selected(after).is_none());
    let mentions = words(name);
    if !is_whole && mentions.is_empty() {
        return Reads::Nothing;
    }
    let is_presence = |(before, after): &(String, String)| {
        (before.ends_with("has(self.") || before.ends_with("has(oldSelf.")) && after.starts_with(')')
    };
    if !is_whole && below.len() == 2 && mentions.iter().all(is_presence) {
        return Reads::Presence;
    }
    match !is_whole && below.len() == 2 && of_self.iter().all(|(_, after)| selected(after).as_deref() == Some(name)) {
        true => Reads::OnlyIt,
        false => Reads::More,
    }
}

impl FrozenDefault {
    /// Schemas that refuse every object in which the field is present with another value than a default. Objects that
    /// they refuse have such values.
    pub fn refusing_others(&self, live: &Value) -> Vec<Value> {
        let refusing = |default: &Value| {
            let mut schema = live.clone();
            let node = node_mut(&mut schema, &self.node)?.as_object_mut()?;
            node.insert("enum".to_owned(), json!([default]));
            node.insert("default".to_owned(), default.clone());
            Some(schema)
        };
        self.defaults.iter().flatten().filter_map(refusing).collect()
    }

    /// Live with the other default, and with a condition on single objects in place of each rule: that the old value is the
    /// default of live, and all else stays as it is. Objects that this refuses meet the conditions that the rule has
    /// besides.
    pub fn refusing_updates(&self, live: &Value) -> Option<Value> {
        let was = self.defaults[0].as_ref().filter(|default| !default.is_object() && !default.is_array())?;
        let mut schema = live.clone();
        let mut is_changed = false;
        let keywords = node_mut(&mut schema, &self.node)?.as_object_mut()?;
        match &self.defaults[1] {
            Some(default) => drop(keywords.insert("default".to_owned(), default.clone())),
            None => drop(keywords.shift_remove("default")),
        }
        for (above, text) in &self.rules {
            let names = self.node[*above..].iter().skip(1).step_by(2).filter_map(|step| match step {
                Step::Key(name) => Some(format!(".{name}")),
                Step::Index(_) => None,
            });
            let old = format!("oldSelf{}", names.collect::<String>());
            let single = text.replace(&format!("has({old})"), "true").replace(&old, &was.to_string());
            let single = single.replace("oldSelf", "self");
            let rules = node_mut(&mut schema, &self.node[..*above])?.get_mut("x-kubernetes-validations");
            let rules = rules.and_then(Value::as_array_mut).into_iter().flatten();
            for rule in rules.filter(|rule| rule["rule"] == **text) {
                *rule = json!({"rule": single});
                is_changed = true;
            }
        }
        is_changed.then_some(schema)
    }

    /// The stored objects and what replaces each of them, made of objects without the field and of ones with it.
    pub fn trials(&self, live: &StoredSide<'_>, desired: &Value, objects: &[Value]) -> Vec<Trial> {
        let Some((Step::Key(name), around)) = self.node.split_last() else { return Vec::new() };
        let around = &around[..around.len() - 1];
        let mut values: Vec<Value> = Vec::new();
        objects.iter().for_each(|object| collect(object, around, name, &mut values));
        values.extend(self.defaults.iter().flatten().flat_map(neighbours));
        let keywords = node_at_steps(desired, &self.node);
        let options = keywords.and_then(|node| node.get("enum")).and_then(Value::as_array);
        values.extend(options.into_iter().flatten().cloned());
        values.extend(["minimum", "maximum"].iter().filter_map(|bound| keywords?.get(bound)).cloned());
        let mut tried: Vec<Value> = Vec::new();
        for value in values {
            if tried.len() < MAX_VALUES && !tried.contains(&value) {
                tried.push(value);
            }
        }
        let mut bare: Vec<Value> = Vec::new();
        for object in objects {
            let mut object = object.clone();
            remove(&mut object, around, name);
            if !bare.contains(&object) {
                bare.push(object);
            }
        }
        let mut trials = Vec::new();
        let mut add = |stored: &Value, sent: &Value| {
            if let Some(stored) = created(live, stored) {
                trials.push(Trial { stored, sent: Some(sent.clone()) });
            }
        };
        for without in &bare {
            add(without, without);
            for value in &tried {
                let mut with = without.clone();
                if insert(&mut with, around, name, value) {
                    add(without, &with);
                    add(&with, without);
                }
            }
        }
        trials
    }
}

/// The object that live stores when it is created so. `None` if live refuses it.
fn created(live: &StoredSide<'_>, sent: &Value) -> Option<Value> {
    let mut stored = sent.clone();
    live.version.prepare(&mut stored).ok()?;
    let found = live.version.validate_all(&stored, None);
    (found.errors.is_empty() && found.undecided.is_empty()).then_some(stored)
}

/// Values of the same type that are close to this one.
fn neighbours(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(_) => vec![json!(true), json!(false)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => [Some(number), number.checked_sub(1), number.checked_add(1)]
                .into_iter()
                .flatten()
                .map(Value::from)
                .collect(),
            None => number
                .as_f64()
                .map_or(Vec::new(), |number| vec![json!(number), json!(number - 1.0), json!(number + 1.0)]),
        },
        Value::String(text) => vec![json!(text), json!(format!("{text}x")), json!(""), json!("x")],
        other => vec![other.clone()],
    }
}

/// Calls `visit` with every object at these steps of the schema.
fn for_each_object(value: &mut Value, steps: &[Step], visit: &mut dyn FnMut(&mut serde_json::Map<String, Value>)) {
    let Some((Step::Key(keyword), rest)) = steps.split_first() else {
        value.as_object_mut().into_iter().for_each(visit);
        return;
    };
    match (keyword.as_str(), rest.split_first()) {
        ("properties", Some((Step::Key(field), rest))) => {
            value.get_mut(field).into_iter().for_each(|below| for_each_object(below, rest, visit));
        }
        ("items", _) => {
            value.as_array_mut().into_iter().flatten().for_each(|item| for_each_object(item, rest, visit));
        }
        _ => {
            let entries = value.as_object_mut().into_iter().flatten();
            entries.for_each(|(_, entry)| for_each_object(entry, rest, visit));
        }
    }
}

/// Sets the field in every object at these steps that lacks it. Returns whether there is one.
fn insert(object: &mut Value, around: &[Step], name: &str, value: &Value) -> bool {
    let mut is_changed = false;
    for_each_object(object, around, &mut |fields| {
        if !fields.contains_key(name) {
            fields.insert(name.to_owned(), value.clone());
            is_changed = true;
        }
    });
    is_changed
}

fn remove(object: &mut Value, around: &[Step], name: &str) {
    for_each_object(object, around, &mut |fields| drop(fields.shift_remove(name)));
}

fn collect(object: &Value, around: &[Step], name: &str, values: &mut Vec<Value>) {
    for_each_object(&mut object.clone(), around, &mut |fields| values.extend(fields.get(name).cloned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_reads_of_a_field_is_found_in_its_text() {
        let of = |rule: &str, below: &[&str]| {
            let below: Vec<Step> = below.iter().map(|step| Step::from(*step)).collect();
            reads(rule, &below)
        };
        let x = ["properties", "x"];
        for (rule, expected) in [
            ("self == oldSelf", Reads::More),
            ("self.y == oldSelf.y", Reads::Nothing),
            ("self.xy == oldSelf.xy", Reads::Nothing),
            ("self.x == oldSelf.x", Reads::OnlyIt),
            ("!has(oldSelf.x) || has( self.x )", Reads::Presence),
            ("!has(oldSelf.x) || self.x == oldSelf.x", Reads::OnlyIt),
            ("self.mode == 'a' || self.x == oldSelf.x", Reads::More),
            ("self.?x == oldSelf.?x", Reads::OnlyIt),
            ("[self].all(i, i == oldSelf)", Reads::More),
        ] {
            assert_eq!(of(rule, &x), expected, "{rule}");
        }
        assert_eq!(of("self >= oldSelf", &[]), Reads::OnlyIt);
        assert_eq!(of("self.all(i, i in oldSelf)", &["items", "properties", "x"]), Reads::More);
        assert_eq!(of("self.x == oldSelf.x", &["properties", "x", "properties", "y"]), Reads::More);
    }
}

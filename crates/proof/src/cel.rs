//! CEL rules (`x-kubernetes-validations`): decides whether the rules of one side follow from those of the other.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::keywords as kw;
use super::rules::{self, RuleNode, RuleProofResources, RuleView, cost};
use gantry_k8s_cel::re2::Patterns;
use gantry_k8s_cel::{COST_PER_CALL, CelBudget, CelRuleResult, CompiledRule, compile_rules_sharing, parse_rule};
use gantry_schema as schema;
use gantry_schema::Schema;

/// The rules of one schema node, with the node they belong to.
#[derive(Clone, Copy, Debug)]
pub struct RuleSet<'a> {
    /// The schema node, with everything below it.
    pub schema: &'a Value,
    /// The entries of the node's own `x-kubernetes-validations`.
    pub rules: &'a [Value],
    /// Whether the node is the root of a custom resource, whose rules see `metadata.name`.
    pub is_root: bool,
    /// Whether the schema around the node keeps fields that the node does not describe.
    pub keeps: bool,
}

/// A value on which the two sides differ: live's schema and rules accept it, and a desired rule refuses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counterexample {
    /// The value of the node.
    pub value: Value,
    /// For a transition rule, the node's old value, which live accepts too.
    pub old: Option<Value>,
}

/// The answer of [`implied`].
#[derive(Clone, Debug, PartialEq)]
pub enum Implied {
    /// Every value that live's schema and rules accept satisfies the desired rules; for transition rules, every update.
    Yes,
    /// Values that differ, simplest first. The caller embeds them in whole objects and validates those against both
    /// sides.
    No(Vec<Counterexample>),
    /// Not decided, and why.
    Unknown(String),
}

/// Decides whether the desired rules follow from live's schema and rules.
///
/// A rule that live has too follows, as long as it sees the same types and defaults. [`super::rules`] decides rules
/// that look at few parts of a value. For all other rules, candidates are built from the rule's constants and the
/// schema's bounds: a candidate that differs is a counterexample, but finding none proves nothing.
///
/// All steps are taken from `means`.
pub fn implied(live: RuleSet, desired: RuleSet, means: &RuleProofResources<'_>) -> Implied {
    let length = |rules: &[Value]| rules.iter().map(|rule| kw::weight(rule) / BYTES_PER_STEP).sum::<u64>();
    if !means.spend(length(live.rules) + length(desired.rules)) {
        return Implied::Unknown("the step limit was reached".to_owned());
    }
    let follows = followed(live, desired);
    let mut new: Vec<Value> = Vec::new();
    let mut why = String::new();
    let mut node = None;
    let asked = || desired.rules.iter().filter(|rule| !follows(rule)).filter_map(|rule| rule.get("rule")?.as_str());
    let with_premises: OnceCell<Option<Vec<Value>>> = OnceCell::new();
    let mut guaranteed = None;
    for rule in desired.rules.iter().filter(|rule| !follows(rule)) {
        let node = node.get_or_insert_with(|| RuleNode::new(live, desired, means));
        let answer = match node {
            Ok(node) => node.decide(rule, means),
            Err(reason) => Implied::Unknown(reason.clone()),
        };
        // What keywords and the nodes below guarantee is used only if live's rules alone do not decide.
        let answer = match answer {
            Implied::Unknown(why) => {
                let all = with_premises
                    .get_or_init(|| rules::with_premises(live, desired, &asked().collect::<Vec<_>>(), means));
                let guaranteed = guaranteed.get_or_insert_with(|| {
                    let live = RuleSet { rules: all.as_ref()?, ..live };
                    RuleNode::new(live, desired, means).ok()
                });
                match guaranteed.as_ref().map(|node| node.decide_by_rules(rule, means)) {
                    None | Some(Implied::Unknown(_)) => Implied::Unknown(why),
                    Some(answer) => answer,
                }
            }
            answer => answer,
        };
        match answer {
            Implied::Yes => {}
            Implied::No(found) => return Implied::No(found),
            Implied::Unknown(reason) => {
                why = reason;
                new.push(rule.clone());
            }
        }
    }
    if new.is_empty() {
        return Implied::Yes;
    }
    if !means.spend(2_000 + kw::size(live.schema) as u64) {
        return Implied::Unknown(why);
    }
    let Ok(structure) = Schema::compile_structure(live.schema, means.patterns) else {
        return Implied::Unknown("the live schema does not compile".to_owned());
    };
    let before = compile_rules_sharing(live.schema, live.rules, live.is_root, means.patterns);
    let after = compile_rules_sharing(desired.schema, &new, desired.is_root, means.patterns);
    let holds = |rules: &[CompiledRule], value: &Value, old: Option<&Value>| holds(rules, value, old, means);
    let takes =
        |value: &Value| structure.accepts_value(value) == Some(true) && holds(&before, value, None) == Some(true);
    let texts: Vec<&str> =
        live.rules.iter().chain(&new).filter_map(|rule| rule.get("rule").and_then(Value::as_str)).collect();
    let mut tried = variants(live.schema, &Constants::from_rules(&texts), 4, means.patterns);
    tried.retain(|value| takes(value));
    tried.sort_by_key(|value| value.to_string().len());
    let mut found: Vec<Counterexample> = tried
        .iter()
        .filter(|value| holds(&after, value, None) == Some(false))
        .take(4)
        .map(|value| Counterexample { value: value.clone(), old: None })
        .collect();
    if found.is_empty() && after.iter().any(CompiledRule::is_transition) {
        let few = &tried[..tried.len().min(20)];
        let pairs = few.iter().flat_map(|old| few.iter().map(move |value| (old, value)));
        found = pairs
            .filter(|(old, value)| holds(&after, value, Some(old)) == Some(false))
            .filter(|(old, value)| holds(&before, value, Some(old)) == Some(true))
            .take(4)
            .map(|(old, value)| Counterexample { value: value.clone(), old: Some(old.clone()) })
            .collect();
    }
    if found.is_empty() {
        return Implied::Unknown(why);
    }
    Implied::No(found)
}

/// Tells which of desired's rules live has too, and applies to values with the same types and defaults.
fn followed<'r>(live: RuleSet<'r>, desired: RuleSet<'r>) -> impl Fn(&Value) -> bool + use<'r> {
    let known: HashSet<_> = live.rules.iter().map(judging_part).collect();
    let meanings: OnceCell<HashSet<_>> = OnceCell::new();
    let is_known = move |rule: &Value| {
        known.contains(&judging_part(rule))
            || meaning(rule).is_some_and(|wanted| {
                meanings.get_or_init(|| live.rules.iter().filter_map(meaning).collect()).contains(&wanted)
            })
    };
    let is_same_typed = same_types(live.schema, desired.schema);
    let mut filled = Vec::new();
    different_defaults(live.schema, desired.schema, &mut Vec::new(), &mut filled);
    // A rule that both sides have can differ only in the types and defaults that it sees.
    move |rule: &Value| {
        let is_same = || is_same_typed && mentions_none(rule, &filled);
        is_known(rule) && (is_same() || sees_the_same(rule, live.schema, desired.schema))
    }
}

/// The rules of desired that live does not have, or that see different types or defaults there: what they cost for a
/// value that live accepts was not counted before.
pub fn added<'r>(live: RuleSet<'r>, desired: RuleSet<'r>) -> Vec<&'r Value> {
    let follows = followed(live, desired);
    desired.rules.iter().filter(|rule| !follows(rule)).collect()
}

/// A reason, if one of these rules of `desired` may cost more for a value that live accepts than the server allows.
pub fn too_costly(
    live: RuleSet<'_>,
    desired: RuleSet<'_>,
    rules: &[&Value],
    means: &RuleProofResources<'_>,
) -> Option<String> {
    if rules.is_empty() {
        return None;
    }
    let length = rules.iter().map(|rule| kw::weight(rule) / BYTES_PER_STEP).sum::<u64>();
    if !means.spend(length + kw::size(desired.schema) as u64 / 8) {
        return Some("the step limit was reached".to_owned());
    }
    let known = cost::LiveValues::Node { schema: live.schema, keeps: live.keeps };
    let bounded = cost::bounded(known, desired.schema, desired.is_root);
    let rules: Vec<Value> = rules.iter().copied().cloned().collect();
    let most = gantry_k8s_cel::most_costs(&bounded, &rules, desired.is_root);
    most.into_iter().find_map(|most| match most {
        None => Some("the cost of the rule is not known".to_owned()),
        Some(most) if most > COST_PER_CALL => {
            Some(format!("the rule may cost {most} for one value, more than the server's limit of {COST_PER_CALL}"))
        }
        Some(_) => None,
    })
}

/// The CEL budget for all rules on one candidate; beyond it the result is unknown.
const STEPS: u64 = 20_000;

/// The bytes of rules that are read in one step, and the CEL cost that equals one step.
const BYTES_PER_STEP: u64 = 16;
const COST_PER_STEP: u64 = 4;

/// Whether all rules hold for a value. None: unknown.
fn holds(rules: &[CompiledRule], value: &Value, old: Option<&Value>, means: &RuleProofResources<'_>) -> Option<bool> {
    let mut budget = CelBudget::new(STEPS).with_release(means.release);
    let mut known = true;
    for rule in rules {
        let before = budget.remaining();
        let answer = rule.evaluate(value, old, &mut budget);
        if !means.spend(1 + (before - budget.remaining()) / COST_PER_STEP) {
            return None;
        }
        match answer {
            CelRuleResult::Holds | CelRuleResult::NotApplicable => {}
            CelRuleResult::Fails(_) => return Some(false),
            CelRuleResult::Undecided(_) => known = false,
        }
    }
    known.then_some(true)
}

/// Whether rules see values with the same types under both schemas, as far as both describe them.
fn same_types(a: &Value, b: &Value) -> bool {
    let below = |keyword: &str| match (a.get(keyword), b.get(keyword)) {
        (Some(a @ Value::Object(_)), Some(b @ Value::Object(_))) => same_types(a, b),
        _ => true,
    };
    same_type(a, b)
        && below("items")
        && below("additionalProperties")
        && kw::properties(a)
            .into_iter()
            .flatten()
            .all(|(name, a)| kw::property(b, name).is_none_or(|b| same_types(a, b)))
}

/// The names on the paths to all fields whose default differs.
fn different_defaults<'s>(a: &'s Value, b: &'s Value, path: &mut Vec<&'s str>, found: &mut Vec<&'s str>) {
    for (name, field) in kw::properties(b).into_iter().flatten() {
        path.push(name);
        let known = kw::property(a, name);
        if !same_default(known, Some(field)) {
            found.extend(path.iter().copied());
        }
        if let Some(known) = known {
            different_defaults(known, field, path, found);
        }
        path.pop();
    }
    for keyword in ["items", "additionalProperties"] {
        if let (Some(a), Some(b)) = (a.get(keyword), b.get(keyword)) {
            different_defaults(a, b, path, found);
        }
    }
}

/// Whether both nodes have the same default, or neither has one.
pub fn same_default(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.and_then(kw::default_of), b.and_then(kw::default_of)) {
        (None, None) => true,
        (Some(a), Some(b)) => kw::same_value(a, b),
        _ => false,
    }
}

/// Whether none of the names occurs in the text of the rule. False if a name could occur in escaped form.
fn mentions_none(rule: &Value, names: &[&str]) -> bool {
    let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_in = |name: &str| {
        text.match_indices(name)
            .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
    };
    // Names that are escaped or are not words need a closer look.
    names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric()) && !is_in(name) && !text.contains("__"))
}

/// Whether rules see a value with the same type under both nodes, ignoring the nodes below.
pub fn same_type(a: &Value, b: &Value) -> bool {
    const TYPING: [&str; 7] = [
        "type",
        "format",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields",
    ];
    TYPING.iter().all(|keyword| {
        kw::same_keyword(keyword, a.get(*keyword), b.get(*keyword))
            // A format matters only if it gives a string another CEL type.
            || *keyword == "format" && !is_typing_format(a) && !is_typing_format(b)
            // Rules do not see unknown fields, so keeping them does not change what they see of a value with a type.
            || *keyword == "x-kubernetes-preserve-unknown-fields" && kw::type_name(a).is_some()
    })
}

/// Whether the places that the rule looks at have the same types and defaults on both sides. False if it is not known
/// what the rule looks at.
fn sees_the_same(rule: &Value, a: &Value, b: &Value) -> bool {
    fn is_same_in_view(view: &RuleView, a: &Value, b: &Value) -> bool {
        let below = |view: &Option<Box<RuleView>>, keyword: &str| match (view, a.get(keyword), b.get(keyword)) {
            (None, ..) => true,
            (Some(view), Some(a), Some(b)) => is_same_in_view(view, a, b),
            _ => false,
        };
        same_type(a, b)
            && below(&view.items, "items")
            && below(&view.values, "additionalProperties")
            && view.fields.iter().all(|(name, view)| match (kw::property(a, name), kw::property(b, name)) {
                (Some(a), Some(b)) => same_default(Some(a), Some(b)) && is_same_in_view(view, a, b),
                _ => false,
            })
    }
    let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
    rules::footprint(text, a, b, false, false)
        .is_ok_and(|footprint| footprint.has_every_place() && is_same_in_view(&footprint.view, a, b))
}

pub fn is_typing_format(schema: &Value) -> bool {
    matches!(schema.get("format").and_then(Value::as_str), Some("byte" | "duration" | "date" | "date-time"))
}

/// The constants and words in the texts of rules.
#[derive(Debug, Default)]
struct Constants {
    texts: Vec<String>,
    numbers: Vec<i64>,
    words: Vec<String>,
}

impl Constants {
    fn from_rules(rules: &[&str]) -> Self {
        let mut constants = Self::default();
        for rule in rules {
            let mut rest = *rule;
            while let Some(c) = rest.chars().next() {
                if c == '\'' || c == '"' {
                    let (text, after) = rest[1..].split_once(c).unwrap_or((&rest[1..], ""));
                    constants.texts.push(text.to_owned());
                    rest = after;
                    continue;
                }
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                if end > 0 {
                    let (word, after) = rest.split_at(end);
                    match word.parse() {
                        Ok(number) => constants.numbers.push(number),
                        Err(_) => constants.words.push(word.to_owned()),
                    }
                    rest = after;
                } else {
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        constants.texts.truncate(12);
        constants.numbers.truncate(8);
        constants
    }
}

/// The maximum number of values of one node.
const MAX_VARIANTS: usize = 240;

/// Values that the schema describes, simple ones first. Some of them may be invalid.
fn variants(schema: &Value, constants: &Constants, depth: usize, patterns: &Patterns) -> Vec<Value> {
    let options = kw::list(schema, "enum");
    if !options.is_empty() {
        return options.iter().take(12).cloned().collect();
    }
    let text = || {
        let mut texts: Vec<Value> = vec![json!("a"), json!("")];
        let mut set = super::strings::StringSet::default();
        set.patterns.extend(schema.get("pattern").and_then(Value::as_str).map(str::to_owned));
        set.formats.extend(kw::string_format(schema).map(str::to_owned));
        set.min_length = kw::count(schema, "minLength").and_then(|n| u64::try_from(n).ok());
        if let Ok(Some(text)) = super::strings::find_member_with_patterns(&set, patterns) {
            texts.insert(0, json!(text));
        }
        for constant in &constants.texts {
            texts.extend([json!(constant), json!(format!("{constant}a")), json!(format!("a{constant}"))]);
        }
        for number in constants.numbers.iter().filter(|n| (0..300).contains(*n)) {
            texts.extend([json!("a".repeat(*number as usize)), json!("a".repeat(*number as usize + 1))]);
        }
        texts
    };
    let numbers = || {
        let mut numbers: Vec<i64> = vec![0, 1, -1];
        let bounds = ["minimum", "maximum"].into_iter().filter_map(|k| schema.get(k)?.as_f64()).map(|f| f as i64);
        for near in constants.numbers.iter().copied().chain(bounds) {
            numbers.extend([near, near.saturating_add(1), near.saturating_sub(1)]);
        }
        numbers.into_iter().map(|n| json!(n)).collect::<Vec<Value>>()
    };
    if kw::flag(schema, "x-kubernetes-int-or-string") {
        return numbers().into_iter().chain(text()).take(MAX_VARIANTS).collect();
    }
    match kw::type_name(schema) {
        Some("string") => text(),
        Some("integer" | "number") => numbers(),
        Some("boolean") => vec![json!(false), json!(true)],
        Some("array") if depth > 0 => {
            let items =
                kw::get(schema, "items").map_or_else(Vec::new, |items| variants(items, constants, depth - 1, patterns));
            let mut lists = vec![json!([])];
            lists.extend(items.iter().take(40).map(|item| json!([item])));
            lists.extend(items.iter().take(8).flat_map(|a| items.iter().take(8).map(move |b| json!([a, b]))));
            lists
        }
        Some("array") => vec![json!([])],
        Some("object") if depth > 0 => objects(schema, constants, depth, patterns),
        _ => vec![json!({})],
    }
}

fn objects(schema: &Value, constants: &Constants, depth: usize, patterns: &Patterns) -> Vec<Value> {
    let required: Vec<&str> = kw::names(schema, "required").collect();
    let mut base = Map::new();
    let mut fields: Vec<(&String, Vec<Value>)> = Vec::new();
    let is_word = |name: &str| constants.words.iter().any(|word| word == name);
    // If the rules name none of the fields, they look at the object as a whole: vary the first few fields.
    let names_any = kw::properties(schema).into_iter().flatten().any(|(name, _)| is_word(name));
    let mut unnamed: u32 = if names_any || constants.words.is_empty() { 0 } else { 6 };
    for (name, field) in kw::properties(schema).into_iter().flatten() {
        let is_named = is_word(name) || unnamed > 0;
        unnamed = unnamed.saturating_sub(1);
        let is_required = required.contains(&name.as_str()) || kw::default_of(field).is_some();
        // Each named field adds at least one variant.
        let is_named = is_named && fields.len() < MAX_VARIANTS;
        if !is_named && !is_required {
            continue;
        }
        let mut values = variants(field, constants, depth - 1, patterns);
        if let Ok(compiled) = Schema::compile_structure(field, patterns) {
            values.retain(|value| compiled.accepts_value(value) == Some(true));
        }
        let default = kw::default_of(field).cloned();
        if let Some(value) = default.or_else(|| values.first().filter(|_| is_required).cloned()) {
            base.insert(name.clone(), value);
        }
        if is_named {
            fields.push((name, values));
        }
    }
    let with = |map: &Map<String, Value>, name: &String, value: &Value| {
        let mut map = map.clone();
        map.insert(name.clone(), value.clone());
        map
    };
    let mut found = vec![base.clone()];
    for (name, values) in &fields {
        if found.len() >= MAX_VARIANTS {
            break;
        }
        found.extend(values.iter().take(24).map(|value| with(&base, name, value)));
    }
    for (at, (first, a)) in fields.iter().enumerate() {
        for (second, b) in &fields[at + 1..] {
            if found.len() >= MAX_VARIANTS {
                break;
            }
            for a in a.iter().take(6) {
                found.extend(b.iter().take(6).map(|b| with(&with(&base, first, a), second, b)));
            }
        }
    }
    if let Some(entry) = kw::additional(schema) {
        let values = variants(entry, constants, depth - 1, patterns);
        let keys = constants.texts.iter().map(String::as_str).chain(["a"]);
        found.extend(keys.flat_map(|key| values.iter().take(6).map(|value| with(&base, &key.to_owned(), value))));
    }
    found.truncate(MAX_VARIANTS);
    found.into_iter().map(Value::Object).collect()
}

/// The parts of a rule that affect its result: its text without insignificant spaces, and whether it has
/// `optionalOldSelf`.
pub fn judging_part(rule: &Value) -> (String, bool) {
    let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
    (schema::without_spaces(text), rule.get("optionalOldSelf") == Some(&Value::Bool(true)))
}

/// The rule's meaning regardless of spaces, parentheses and quotes: its syntax tree. None if it does not parse.
fn meaning(rule: &Value) -> Option<(String, bool)> {
    let (text, optional_old) = (rule.get("rule")?.as_str()?, rule.get("optionalOldSelf") == Some(&Value::Bool(true)));
    Some((format!("{:?}", parse_rule(text).ok()??), optional_old))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_calculates_with_sizes_sees_no_change_of_what_it_does_not_read() {
        let route = |codes: &str, names: &str| {
            let list =
                |kind: &str| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind});
            let fields = json!({"matches": list(names), "codes": list(codes), "weight": {"type": "integer"}});
            json!({"type": "array", "items": {"type": "object", "properties": fields}})
        };
        let (live, other_codes, other_names) = (route("atomic", "set"), route("set", "set"), route("atomic", "atomic"));
        let sum =
            "(self.size() > 0 ? self[0].matches.size() : 0) + (self.size() > 1 ? self[1].matches.size() : 0) <= 9";
        let weights = "self.size() == 0 || self[0].weight + 1 > 0";
        let joined = "self.size() < 2 || (self[0].codes + self[1].codes).size() < 5";
        let chosen = "self.size() < 2 || (self[0].weight > 1 ? self[0] : self[1]).codes.size() < 5";
        for (rule, codes, names) in [
            (sum, true, false),
            (weights, true, true),
            // Whole values have parts that nothing lists.
            (joined, false, false),
            (chosen, false, true),
        ] {
            let rule = json!({"rule": rule});
            assert_eq!(sees_the_same(&rule, &live, &other_codes), codes, "{rule}");
            assert_eq!(sees_the_same(&rule, &live, &other_names), names, "{rule}");
        }
    }
}

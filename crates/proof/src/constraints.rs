//! Constraints on a value: schemas that accept it and schemas that refuse it, split into cases that can be solved.
//!
//! Whether B accepts every value that A accepts is the question whether a value exists that A accepts and B refuses.
//! The schemas are split for it: what must hold is collected, while `anyOf`, `oneOf` and refused schemas fork into
//! branches. Each branch ends as a plain list of constraints, a [`Disjunct`], which [`super::solve`] satisfies or finds
//! contradictory.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value;

use super::keywords::{self as kw, JsonTypeSet};
use super::strings::StringSet;

/// A schema: a part of one of the two schemas compared, or one that was built for a question.
#[derive(Clone, Debug)]
pub enum SharedSchema<'s> {
    Ref(&'s Value),
    Own(Rc<Value>),
}

impl Deref for SharedSchema<'_> {
    type Target = Value;
    fn deref(&self) -> &Value {
        match self {
            Self::Ref(schema) => schema,
            Self::Own(schema) => schema,
        }
    }
}

impl<'s> SharedSchema<'s> {
    pub fn owned(schema: Value) -> Self {
        Self::Own(Rc::new(schema))
    }

    /// A schema inside of this one.
    pub fn inner_schema(&self, get: impl for<'v> Fn(&'v Value) -> Option<&'v Value>) -> Option<SharedSchema<'s>> {
        match self {
            Self::Ref(schema) => get(schema).map(SharedSchema::Ref),
            Self::Own(schema) => get(schema).map(|inner| SharedSchema::owned(inner.clone())),
        }
    }

    pub fn keyword(&self, keyword: &str) -> Option<SharedSchema<'s>> {
        self.inner_schema(|schema| kw::get(schema, keyword))
    }

    pub fn property(&self, name: &str) -> Option<SharedSchema<'s>> {
        self.inner_schema(|schema| kw::property(schema, name))
    }

    pub fn branches(&self, keyword: &str) -> Vec<SharedSchema<'s>> {
        match self {
            Self::Ref(schema) => kw::list(schema, keyword).iter().map(SharedSchema::Ref).collect(),
            Self::Own(schema) => kw::list(schema, keyword).iter().cloned().map(SharedSchema::owned).collect(),
        }
    }
}

/// The constraints on one value.
#[derive(Clone, Debug, Default)]
pub struct ValueConstraints<'s> {
    /// Schemas that accept the value. The first is the structure: it determines which fields the value can have.
    pub holds: Vec<SharedSchema<'s>>,
    /// Schemas that refuse the value.
    pub fails: Vec<SharedSchema<'s>>,
    /// Whether a null is allowed here.
    pub null: bool,
    /// Whether the value is a whole custom resource.
    pub is_resource: bool,
}

impl<'s> ValueConstraints<'s> {
    /// The schemas that accept the value, including those below `allOf` and the only branch of an `anyOf` or `oneOf`.
    pub fn all_holds(&self) -> Vec<SharedSchema<'s>> {
        let mut all = Vec::new();
        let mut todo: Vec<SharedSchema> = self.holds.iter().rev().cloned().collect();
        while let Some(part) = todo.pop() {
            todo.extend(part.branches("allOf").into_iter().rev());
            for keyword in ["anyOf", "oneOf"] {
                let branches = part.branches(keyword);
                if branches.len() == 1 {
                    todo.extend(branches);
                }
            }
            all.push(part);
        }
        all
    }
}

/// The constraints of one branch on a value of one kind.
#[derive(Clone, Debug, Default)]
pub struct Disjunct<'s> {
    pub text: StringSet,
    pub not_text: Vec<StringSet>,
    /// Bounds on the number of items or properties.
    pub min: i64,
    pub max: Option<i64>,
    pub required: BTreeSet<String>,
    pub absent: BTreeSet<String>,
    /// For each field, the schemas that accept it and the schemas that refuse it, if it is present.
    pub fields: BTreeMap<String, (Vec<SharedSchema<'s>>, Vec<SharedSchema<'s>>)>,
    /// Schemas that accept every item.
    pub each: Vec<SharedSchema<'s>>,
    /// Schemas that each refuse at least one item.
    pub some: Vec<SharedSchema<'s>>,
    /// Schemas whose `enum` must contain the value.
    pub allowed: Vec<SharedSchema<'s>>,
    /// A constraint that is not supported: if no value is found, that does not prove there is none.
    pub opaque: Option<&'static str>,
}

/// One constraint of an alternative.
#[derive(Clone, Debug)]
enum ValueConstraint<'s> {
    NotText(StringSet),
    Min(i64),
    Max(i64),
    Require(String),
    Absent(String),
    FieldFails(String, SharedSchema<'s>),
    ItemFails(SharedSchema<'s>),
    Takes(SharedSchema<'s>),
    Refuses(SharedSchema<'s>),
    Opaque(&'static str),
}

/// Alternatives, one of which must hold. Those of a `oneOf` are built on demand: there is one for each pair of
/// branches, and each constrains every branch.
#[derive(Debug, Default)]
struct Choice<'s>(Vec<Alternatives<'s>>);

#[derive(Debug)]
enum Alternatives<'s> {
    /// One alternative: all of these hold.
    All(Vec<ValueConstraint<'s>>),
    /// One alternative for each schema: it accepts the value, and the others refuse it.
    OnlyOne(Rc<[SharedSchema<'s>]>),
    /// One alternative for each pair of schemas: both accept the value.
    Both(Rc<[SharedSchema<'s>]>),
}

impl<'s> Alternatives<'s> {
    fn len(&self) -> usize {
        match self {
            Self::All(_) => 1,
            Self::OnlyOne(parts) => parts.len(),
            Self::Both(parts) => parts.len() * parts.len().saturating_sub(1) / 2,
        }
    }

    fn alternative(&self, mut at: usize) -> Vec<ValueConstraint<'s>> {
        match self {
            Self::All(constraints) => constraints.clone(),
            Self::OnlyOne(parts) => {
                let constraint = |(index, part): (usize, &SharedSchema<'s>)| {
                    if index == at {
                        ValueConstraint::Takes(part.clone())
                    } else {
                        ValueConstraint::Refuses(part.clone())
                    }
                };
                parts.iter().enumerate().map(constraint).collect()
            }
            Self::Both(parts) => {
                let mut first = 0;
                while at >= parts.len() - 1 - first {
                    at -= parts.len() - 1 - first;
                    first += 1;
                }
                vec![
                    ValueConstraint::Takes(parts[first].clone()),
                    ValueConstraint::Takes(parts[first + 1 + at].clone()),
                ]
            }
        }
    }
}

impl<'s> Choice<'s> {
    fn push(&mut self, alternative: Vec<ValueConstraint<'s>>) {
        self.0.push(Alternatives::All(alternative));
    }

    fn len(&self) -> usize {
        self.0.iter().map(Alternatives::len).sum()
    }

    fn alternative(&self, mut at: usize) -> Option<Vec<ValueConstraint<'s>>> {
        for alternatives in &self.0 {
            if at < alternatives.len() {
                return Some(alternatives.alternative(at));
            }
            at -= alternatives.len();
        }
        None
    }
}

#[derive(Clone)]
struct PartialDisjunct<'s> {
    disjunct: Disjunct<'s>,
    todo: Vec<(bool, SharedSchema<'s>)>,
    choices: Vec<Rc<Choice<'s>>>,
}

/// A state, the choice to make next, and how many of its alternatives were tried.
struct Fork<'s> {
    state: PartialDisjunct<'s>,
    choice: Rc<Choice<'s>>,
    tried: usize,
}

/// The maximum number of branches of one question.
const MAX_BRANCHES: usize = 3000;
/// The maximum number of constraints in all states from the question down to a branch.
const MAX_HELD: usize = 200_000;
/// The number of constraints that cost one step.
const CONSTRAINTS_PER_STEP: usize = 8;

/// Calls `visit` with each branch for values of `kind`, until it returns false.
///
/// `spend` takes the steps used and returns whether any are left. The search is depth-first, so memory grows only with
/// the depth.
///
/// # Errors
/// There are too many branches, or no steps are left.
pub fn disjuncts<'s>(
    constraints: &ValueConstraints<'s>,
    kind: JsonTypeSet,
    spend: &dyn Fn(u64) -> bool,
    visit: &mut dyn FnMut(Disjunct<'s>) -> bool,
) -> Result<(), &'static str> {
    let mut todo: Vec<(bool, SharedSchema)> =
        constraints.fails.iter().rev().map(|part| (false, part.clone())).collect();
    todo.extend(constraints.holds.iter().rev().map(|part| (true, part.clone())));
    let mut forks: Vec<Fork> = Vec::new();
    let mut next = Some(PartialDisjunct { disjunct: Disjunct::default(), todo, choices: Vec::new() });
    let (mut seen, mut held) = (0, 0);
    loop {
        let Some(mut state) = next.take() else {
            let Some(fork) = forks.last_mut() else { return Ok(()) };
            match fork.choice.alternative(fork.tried) {
                Some(alternative) => {
                    fork.tried += 1;
                    let mut forked = fork.state.clone();
                    alternative.into_iter().for_each(|constraint| forked.add(constraint));
                    next = Some(forked);
                }
                None => held -= forks.pop().map_or(0, |fork| fork.state.size()),
            }
            continue;
        };
        seen += 1;
        if seen > MAX_BRANCHES {
            return Err("too many combinations of allOf, anyOf, oneOf and not");
        }
        if !state.apply_forced(kind, spend)? {
            continue;
        }
        // The choice with the fewest alternatives goes first: it forks least.
        let fewest = (0..state.choices.len()).min_by_key(|at| state.choices[*at].len());
        let Some(fewest) = fewest else {
            if !visit(state.disjunct) {
                return Ok(());
            }
            continue;
        };
        let choice = state.choices.swap_remove(fewest);
        held += state.size();
        if held > MAX_HELD {
            return Err("too many combinations of allOf, anyOf, oneOf and not");
        }
        forks.push(Fork { state, choice, tried: 0 });
    }
}

impl<'s> PartialDisjunct<'s> {
    /// Applies the constraints that leave no choice. False if the constraints contradict each other; an error if no
    /// steps are left.
    fn apply_forced(&mut self, kind: JsonTypeSet, spend: &dyn Fn(u64) -> bool) -> Result<bool, &'static str> {
        let mut done = 0;
        while let Some((takes, part)) = self.todo.pop() {
            done += 1;
            if done % CONSTRAINTS_PER_STEP == 0 && !spend(1) {
                return Err("the step limit was reached");
            }
            let fits = kw::kinds(&part).contains(kind);
            if takes {
                if !fits {
                    return Ok(false);
                }
                self.take(&part, kind);
            } else if fits {
                let alternatives = refusing_alternatives(&part, kind);
                match alternatives.len() {
                    0 => return Ok(false),
                    1 => alternatives.alternative(0).into_iter().flatten().for_each(|constraint| self.add(constraint)),
                    _ => self.choices.push(Rc::new(alternatives)),
                }
            }
        }
        let disjunct = &self.disjunct;
        // The constraints of the branch are copied whenever it forks.
        let size = self.size();
        if size >= CONSTRAINTS_PER_STEP && !spend((size / CONSTRAINTS_PER_STEP) as u64) {
            return Err("the step limit was reached");
        }
        Ok(disjunct.max.is_none_or(|max| disjunct.min <= max) && disjunct.required.is_disjoint(&disjunct.absent))
    }

    /// The number of constraints in the state.
    fn size(&self) -> usize {
        let Disjunct { text, not_text, required, absent, fields, each, some, allowed, .. } = &self.disjunct;
        let texts = text.size() + not_text.iter().map(StringSet::size).sum::<usize>();
        let sets = texts + not_text.len() + required.len() + absent.len() + fields.len();
        sets + each.len() + some.len() + allowed.len() + self.todo.len() + self.choices.len()
    }

    fn add(&mut self, constraint: ValueConstraint<'s>) {
        let disjunct = &mut self.disjunct;
        match constraint {
            ValueConstraint::NotText(set) => disjunct.not_text.push(set),
            ValueConstraint::Min(min) => disjunct.min = disjunct.min.max(min),
            ValueConstraint::Max(max) => disjunct.max = Some(disjunct.max.map_or(max, |known| known.min(max))),
            ValueConstraint::Require(name) => {
                disjunct.required.insert(name);
            }
            ValueConstraint::Absent(name) => {
                disjunct.absent.insert(name);
            }
            ValueConstraint::FieldFails(name, part) => {
                disjunct.required.insert(name.clone());
                disjunct.fields.entry(name).or_default().1.push(part);
            }
            ValueConstraint::ItemFails(part) => disjunct.some.push(part),
            ValueConstraint::Takes(part) => self.todo.push((true, part)),
            ValueConstraint::Refuses(part) => self.todo.push((false, part)),
            ValueConstraint::Opaque(why) => disjunct.opaque = Some(why),
        }
    }

    /// Adds the constraints of a schema that must accept the value.
    fn take(&mut self, part: &SharedSchema<'s>, kind: JsonTypeSet) {
        let disjunct = &mut self.disjunct;
        if kind == JsonTypeSet::STRING {
            add_text(part, &mut disjunct.text);
            if !kw::list(part, "enum").is_empty() {
                disjunct.text.enumeration = Some(match disjunct.text.enumeration.take() {
                    None => kw::names(part, "enum").map(str::to_owned).collect(),
                    Some(known) => {
                        let allowed: HashSet<&str> = kw::names(part, "enum").collect();
                        known.into_iter().filter(|text| allowed.contains(text.as_str())).collect()
                    }
                });
            }
        } else if !kw::list(part, "enum").is_empty() {
            disjunct.allowed.push(part.clone());
        }
        let (least, most) =
            if kind == JsonTypeSet::ARRAY { ("minItems", "maxItems") } else { ("minProperties", "maxProperties") };
        if let Some(min) = kw::count(part, least) {
            disjunct.min = disjunct.min.max(min);
        }
        if let Some(max) = kw::count(part, most) {
            disjunct.max = Some(disjunct.max.map_or(max, |known| known.min(max)));
        }
        if kind == JsonTypeSet::OBJECT {
            disjunct.required.extend(kw::names(part, "required").map(str::to_owned));
            // The fields of the structure itself are looked up when a value is built.
            if !self.is_structure(part) {
                for name in kw::properties(part).into_iter().flat_map(|p| p.keys()) {
                    if let Some(field) = part.property(name) {
                        self.disjunct.fields.entry(name.clone()).or_default().0.push(field);
                    }
                }
            }
        }
        if kind == JsonTypeSet::ARRAY
            && let Some(items) = part.keyword("items")
        {
            self.disjunct.each.push(items);
        }
        self.todo.extend(part.branches("allOf").into_iter().rev().map(|part| (true, part)));
        if let Some(not) = part.keyword("not") {
            self.todo.push((false, not));
        }
        let any_of = part.branches("anyOf");
        if !any_of.is_empty() {
            let alternatives =
                any_of.into_iter().map(|branch| Alternatives::All(vec![ValueConstraint::Takes(branch)])).collect();
            self.choices.push(Rc::new(Choice(alternatives)));
        }
        let one_of = part.branches("oneOf");
        if !one_of.is_empty() {
            self.choices.push(Rc::new(Choice(vec![Alternatives::OnlyOne(one_of.into())])));
        }
    }

    /// Whether the schema is a structure: only the first schema that accepts the value has a type or keeps fields.
    fn is_structure(&self, part: &SharedSchema<'s>) -> bool {
        kw::has_type(part) || kw::preserves(part)
    }
}

/// A set with more patterns than this is never decided, so duplicates are no longer removed.
const MAX_DISTINCT_PATTERNS: usize = 1_000;

/// Adds a schema's constraints on a string to `set`, except its `enum`.
pub fn add_text(part: &Value, set: &mut StringSet) {
    if let Some(pattern) = part.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty())
        && (set.patterns.len() > MAX_DISTINCT_PATTERNS || !set.patterns.iter().any(|known| known == pattern))
    {
        set.patterns.push(pattern.to_owned());
    }
    if let Some(min) = kw::count(part, "minLength").and_then(|min| u64::try_from(min).ok()).filter(|min| *min > 0) {
        set.min_length = Some(set.min_length.map_or(min, |known| known.max(min)));
    }
    if let Some(max) = kw::count(part, "maxLength") {
        match u64::try_from(max) {
            Ok(max) => set.max_length = Some(set.max_length.map_or(max, |known| known.min(max))),
            Err(_) => set.enumeration = Some(Vec::new()),
        }
    }
    // The format `password` accepts every string.
    if let Some(format) = kw::string_format(part).filter(|format| *format != "password")
        && !set.formats.iter().any(|known| known == format)
    {
        set.formats.push(format.to_owned());
    }
}

/// The alternatives by which the schema can refuse a value of `kind`, a kind that its type allows.
fn refusing_alternatives<'s>(part: &SharedSchema<'s>, kind: JsonTypeSet) -> Choice<'s> {
    let mut alternatives = Choice::default();
    if kind == JsonTypeSet::STRING {
        let mut set = StringSet::default();
        add_text(part, &mut set);
        if set != StringSet::default() {
            alternatives.push(vec![ValueConstraint::NotText(set)]);
        }
        if !kw::list(part, "enum").is_empty() {
            let texts = kw::names(part, "enum").map(str::to_owned).collect();
            alternatives
                .push(vec![ValueConstraint::NotText(StringSet { enumeration: Some(texts), ..StringSet::default() })]);
        }
    } else if !kw::list(part, "enum").is_empty() {
        // The value must be none of these: any other value may do, and a larger one certainly does.
        let size = |value: &Value| match value {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        let largest = kw::list(part, "enum").iter().map(size).max().unwrap_or(0);
        alternatives.push(Vec::new());
        alternatives.push(vec![ValueConstraint::Min(largest as i64 + 1)]);
    }
    let (least, most) =
        if kind == JsonTypeSet::ARRAY { ("minItems", "maxItems") } else { ("minProperties", "maxProperties") };
    if matches!(kind, JsonTypeSet::ARRAY | JsonTypeSet::OBJECT) {
        if let Some(min) = kw::count(part, least).filter(|min| *min > 0) {
            alternatives.push(vec![ValueConstraint::Max(min - 1)]);
        }
        if let Some(max) = kw::count(part, most) {
            alternatives.push(vec![ValueConstraint::Min(max + 1)]);
        }
    }
    if kind == JsonTypeSet::ARRAY
        && let Some(items) = part.keyword("items")
    {
        alternatives.push(vec![ValueConstraint::ItemFails(items)]);
    }
    if kind == JsonTypeSet::OBJECT {
        kw::names(part, "required").for_each(|name| alternatives.push(vec![ValueConstraint::Absent(name.to_owned())]));
        for name in kw::properties(part).into_iter().flat_map(|p| p.keys()) {
            if let Some(field) = part.property(name) {
                alternatives.push(vec![
                    ValueConstraint::Require(name.clone()),
                    ValueConstraint::FieldFails(name.clone(), field),
                ]);
            }
        }
        if part.get("additionalProperties").is_some_and(|v| !v.is_null()) {
            alternatives.push(vec![ValueConstraint::Opaque("additionalProperties below allOf, anyOf, oneOf or not")]);
        }
    }
    part.branches("allOf").into_iter().for_each(|branch| alternatives.push(vec![ValueConstraint::Refuses(branch)]));
    let any_of = part.branches("anyOf");
    if !any_of.is_empty() {
        alternatives.push(any_of.into_iter().map(ValueConstraint::Refuses).collect());
    }
    let one_of = part.branches("oneOf");
    if !one_of.is_empty() {
        alternatives.push(one_of.iter().cloned().map(ValueConstraint::Refuses).collect());
        alternatives.0.push(Alternatives::Both(one_of.into()));
    }
    if let Some(not) = part.keyword("not") {
        alternatives.push(vec![ValueConstraint::Takes(not)]);
    }
    if !kw::list(part, "x-kubernetes-validations").is_empty() {
        alternatives.push(vec![ValueConstraint::Opaque("rules below allOf")]);
    }
    alternatives
}

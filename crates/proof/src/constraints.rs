//! What is known of a value: schemas that take it and schemas that refuse it, and the ways in which both can be.
//!
//! A question "does every value that A takes pass B?" is the question whether a value exists that A takes and B refuses.
//! The known schemas are taken apart: what must hold is collected, `anyOf`, `oneOf` and whatever is refused fork into
//! branches, and each branch ends as a plain list of constraints, a [`Disjunct`], for [`super::solve`] to meet or to find
//! contradictory.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value;

use super::keywords::{self as kw, Kinds};
use super::strings::StringSet;

/// A schema: part of the pair, or one made up to ask something.
#[derive(Clone, Debug)]
pub enum Part<'s> {
    Ref(&'s Value),
    Own(Rc<Value>),
}

impl Deref for Part<'_> {
    type Target = Value;
    fn deref(&self) -> &Value {
        match self {
            Self::Ref(schema) => schema,
            Self::Own(schema) => schema,
        }
    }
}

impl<'s> Part<'s> {
    pub fn own(schema: Value) -> Self {
        Self::Own(Rc::new(schema))
    }

    /// A schema inside of this one.
    pub fn inside(&self, get: impl for<'v> Fn(&'v Value) -> Option<&'v Value>) -> Option<Part<'s>> {
        match self {
            Self::Ref(schema) => get(schema).map(Part::Ref),
            Self::Own(schema) => get(schema).map(|inner| Part::own(inner.clone())),
        }
    }

    pub fn keyword(&self, keyword: &str) -> Option<Part<'s>> {
        self.inside(|schema| kw::get(schema, keyword))
    }

    pub fn property(&self, name: &str) -> Option<Part<'s>> {
        self.inside(|schema| kw::property(schema, name))
    }

    pub fn branches(&self, keyword: &str) -> Vec<Part<'s>> {
        match self {
            Self::Ref(schema) => kw::list(schema, keyword).iter().map(Part::Ref).collect(),
            Self::Own(schema) => kw::list(schema, keyword).iter().cloned().map(Part::own).collect(),
        }
    }
}

/// What is known of one value.
#[derive(Clone, Debug, Default)]
pub struct Constraints<'s> {
    /// Schemas that take the value. The first gives the structure: it says which fields there can be.
    pub holds: Vec<Part<'s>>,
    /// Schemas that refuse the value.
    pub fails: Vec<Part<'s>>,
    /// Whether a null is allowed in this place.
    pub null: bool,
    /// Whether the value is a whole custom resource.
    pub is_resource: bool,
}

impl<'s> Constraints<'s> {
    /// The schemas that take the value, those below `allOf` among them, and those that are alone below `anyOf` or
    /// `oneOf`.
    pub fn all_holds(&self) -> Vec<Part<'s>> {
        let mut all = Vec::new();
        let mut todo: Vec<Part> = self.holds.iter().rev().cloned().collect();
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

/// The demands of one branch on a value of one kind.
#[derive(Clone, Debug, Default)]
pub struct Disjunct<'s> {
    pub text: StringSet,
    pub not_text: Vec<StringSet>,
    /// Bounds on the number of items or properties.
    pub min: i64,
    pub max: Option<i64>,
    pub required: BTreeSet<String>,
    pub absent: BTreeSet<String>,
    /// What fields, where present, must satisfy and must not.
    pub kids: BTreeMap<String, (Vec<Part<'s>>, Vec<Part<'s>>)>,
    /// What each item must satisfy.
    pub each: Vec<Part<'s>>,
    /// For each of these there is an item that it refuses.
    pub some: Vec<Part<'s>>,
    /// Lists of which the value must be one.
    pub allowed: Vec<Part<'s>>,
    /// Something that is not understood: nothing may be concluded from a failure to meet the demands.
    pub opaque: Option<&'static str>,
}

/// One way to satisfy a demand.
#[derive(Clone, Debug)]
enum Constraint<'s> {
    NotText(StringSet),
    Min(i64),
    Max(i64),
    Require(String),
    Absent(String),
    KidFails(String, Part<'s>),
    ItemFails(Part<'s>),
    Takes(Part<'s>),
    Refuses(Part<'s>),
    Opaque(&'static str),
}

/// Ways of which one must be taken. Those of a `oneOf` are made when their turn comes: there are as many as its branches
/// have pairs, and each is a demand on every branch.
#[derive(Debug, Default)]
struct Choice<'s>(Vec<Ways<'s>>);

#[derive(Debug)]
enum Ways<'s> {
    /// One way: all of these.
    All(Vec<Constraint<'s>>),
    /// For each of the schemas a way: it takes the value, and the others refuse it.
    OnlyOne(Rc<[Part<'s>]>),
    /// For each two of the schemas a way: both take the value.
    Both(Rc<[Part<'s>]>),
}

impl<'s> Ways<'s> {
    fn len(&self) -> usize {
        match self {
            Self::All(_) => 1,
            Self::OnlyOne(parts) => parts.len(),
            Self::Both(parts) => parts.len() * parts.len().saturating_sub(1) / 2,
        }
    }

    fn way(&self, mut at: usize) -> Vec<Constraint<'s>> {
        match self {
            Self::All(demands) => demands.clone(),
            Self::OnlyOne(parts) => {
                let demand = |(index, part): (usize, &Part<'s>)| {
                    if index == at { Constraint::Takes(part.clone()) } else { Constraint::Refuses(part.clone()) }
                };
                parts.iter().enumerate().map(demand).collect()
            }
            Self::Both(parts) => {
                let mut first = 0;
                while at >= parts.len() - 1 - first {
                    at -= parts.len() - 1 - first;
                    first += 1;
                }
                vec![Constraint::Takes(parts[first].clone()), Constraint::Takes(parts[first + 1 + at].clone())]
            }
        }
    }
}

impl<'s> Choice<'s> {
    fn push(&mut self, way: Vec<Constraint<'s>>) {
        self.0.push(Ways::All(way));
    }

    fn len(&self) -> usize {
        self.0.iter().map(Ways::len).sum()
    }

    fn way(&self, mut at: usize) -> Option<Vec<Constraint<'s>>> {
        for ways in &self.0 {
            if at < ways.len() {
                return Some(ways.way(at));
            }
            at -= ways.len();
        }
        None
    }
}

#[derive(Clone)]
struct State<'s> {
    leaf: Disjunct<'s>,
    todo: Vec<(bool, Part<'s>)>,
    choices: Vec<Rc<Choice<'s>>>,
}

/// A state with the choice that is made next, and the ways of it that were gone already.
struct Fork<'s> {
    state: State<'s>,
    choice: Rc<Choice<'s>>,
    gone: usize,
}

/// The branches of one question at most.
const BRANCHES: usize = 3000;
/// What all states between the question and a branch have gathered at most, each by itself.
const HELD: usize = 200_000;
/// So many demands cost a step.
const DEMANDS: usize = 8;

/// Calls `visit` with each branch for values of `kind`, until it says stop (false). An error says that there are too
/// many branches.
///
/// `spend` gets the steps that are taken and answers whether there are any left. One way is gone to its end before
/// the next is begun, so that memory grows with the depth alone.
pub fn leaves<'s>(
    constraints: &Constraints<'s>,
    kind: Kinds,
    spend: &dyn Fn(u64) -> bool,
    visit: &mut dyn FnMut(Disjunct<'s>) -> bool,
) -> Result<(), &'static str> {
    let mut todo: Vec<(bool, Part)> = constraints.fails.iter().rev().map(|part| (false, part.clone())).collect();
    todo.extend(constraints.holds.iter().rev().map(|part| (true, part.clone())));
    let mut forks: Vec<Fork> = Vec::new();
    let mut next = Some(State { leaf: Disjunct::default(), todo, choices: Vec::new() });
    let (mut seen, mut held) = (0, 0);
    loop {
        let Some(mut state) = next.take() else {
            let Some(fork) = forks.last_mut() else { return Ok(()) };
            match fork.choice.way(fork.gone) {
                Some(way) => {
                    fork.gone += 1;
                    let mut forked = fork.state.clone();
                    way.into_iter().for_each(|demand| forked.add(demand));
                    next = Some(forked);
                }
                None => held -= forks.pop().map_or(0, |fork| fork.state.gathered()),
            }
            continue;
        };
        seen += 1;
        if seen > BRANCHES {
            return Err("too many combinations of allOf, anyOf, oneOf and not");
        }
        if !state.settle(kind, spend)? {
            continue;
        }
        // The choice with the fewest ways first: it forks least.
        let fewest = (0..state.choices.len()).min_by_key(|at| state.choices[*at].len());
        let Some(fewest) = fewest else {
            if !visit(state.leaf) {
                return Ok(());
            }
            continue;
        };
        let choice = state.choices.swap_remove(fewest);
        held += state.gathered();
        if held > HELD {
            return Err("too many combinations of allOf, anyOf, oneOf and not");
        }
        forks.push(Fork { state, choice, gone: 0 });
    }
}

impl<'s> State<'s> {
    /// Works off what leaves no choice. False where the demands contradict each other; an error where there are no
    /// steps left.
    fn settle(&mut self, kind: Kinds, spend: &dyn Fn(u64) -> bool) -> Result<bool, &'static str> {
        let mut done = 0;
        while let Some((takes, part)) = self.todo.pop() {
            done += 1;
            if done % DEMANDS == 0 && !spend(1) {
                return Err("the limit of steps is reached");
            }
            let fits = kw::kinds(&part).contains(kind);
            if takes {
                if !fits {
                    return Ok(false);
                }
                self.take(&part, kind);
            } else if fits {
                let ways = ways_to_refuse(&part, kind);
                match ways.len() {
                    0 => return Ok(false),
                    1 => ways.way(0).into_iter().flatten().for_each(|demand| self.add(demand)),
                    _ => self.choices.push(Rc::new(ways)),
                }
            }
        }
        let leaf = &self.leaf;
        // What the branch has gathered is copied whenever it forks.
        let gathered = self.gathered();
        if gathered >= DEMANDS && !spend((gathered / DEMANDS) as u64) {
            return Err("the limit of steps is reached");
        }
        Ok(leaf.max.is_none_or(|max| leaf.min <= max) && leaf.required.is_disjoint(&leaf.absent))
    }

    /// How much the state holds.
    fn gathered(&self) -> usize {
        let Disjunct { text, not_text, required, absent, kids, each, some, allowed, .. } = &self.leaf;
        let texts = text.size() + not_text.iter().map(StringSet::size).sum::<usize>();
        let sets = texts + not_text.len() + required.len() + absent.len() + kids.len();
        sets + each.len() + some.len() + allowed.len() + self.todo.len() + self.choices.len()
    }

    fn add(&mut self, demand: Constraint<'s>) {
        let leaf = &mut self.leaf;
        match demand {
            Constraint::NotText(set) => leaf.not_text.push(set),
            Constraint::Min(min) => leaf.min = leaf.min.max(min),
            Constraint::Max(max) => leaf.max = Some(leaf.max.map_or(max, |known| known.min(max))),
            Constraint::Require(name) => {
                leaf.required.insert(name);
            }
            Constraint::Absent(name) => {
                leaf.absent.insert(name);
            }
            Constraint::KidFails(name, part) => {
                leaf.required.insert(name.clone());
                leaf.kids.entry(name).or_default().1.push(part);
            }
            Constraint::ItemFails(part) => leaf.some.push(part),
            Constraint::Takes(part) => self.todo.push((true, part)),
            Constraint::Refuses(part) => self.todo.push((false, part)),
            Constraint::Opaque(why) => leaf.opaque = Some(why),
        }
    }

    /// A schema that must take the value.
    fn take(&mut self, part: &Part<'s>, kind: Kinds) {
        let leaf = &mut self.leaf;
        if kind == Kinds::STRING {
            add_text(part, &mut leaf.text);
            if !kw::list(part, "enum").is_empty() {
                leaf.text.enumeration = Some(match leaf.text.enumeration.take() {
                    None => kw::names(part, "enum").map(str::to_owned).collect(),
                    Some(known) => {
                        let allowed: HashSet<&str> = kw::names(part, "enum").collect();
                        known.into_iter().filter(|text| allowed.contains(text.as_str())).collect()
                    }
                });
            }
        } else if !kw::list(part, "enum").is_empty() {
            leaf.allowed.push(part.clone());
        }
        let (least, most) =
            if kind == Kinds::ARRAY { ("minItems", "maxItems") } else { ("minProperties", "maxProperties") };
        if let Some(min) = kw::count(part, least) {
            leaf.min = leaf.min.max(min);
        }
        if let Some(max) = kw::count(part, most) {
            leaf.max = Some(leaf.max.map_or(max, |known| known.min(max)));
        }
        if kind == Kinds::OBJECT {
            leaf.required.extend(kw::names(part, "required").map(str::to_owned));
            // The fields of the structure itself are looked up when a value is made.
            if !self.is_structure(part) {
                for name in kw::properties(part).into_iter().flat_map(|p| p.keys()) {
                    if let Some(kid) = part.property(name) {
                        self.leaf.kids.entry(name.clone()).or_default().0.push(kid);
                    }
                }
            }
        }
        if kind == Kinds::ARRAY
            && let Some(items) = part.keyword("items")
        {
            self.leaf.each.push(items);
        }
        self.todo.extend(part.branches("allOf").into_iter().rev().map(|part| (true, part)));
        if let Some(not) = part.keyword("not") {
            self.todo.push((false, not));
        }
        let any_of = part.branches("anyOf");
        if !any_of.is_empty() {
            let ways = any_of.into_iter().map(|branch| Ways::All(vec![Constraint::Takes(branch)])).collect();
            self.choices.push(Rc::new(Choice(ways)));
        }
        let one_of = part.branches("oneOf");
        if !one_of.is_empty() {
            self.choices.push(Rc::new(Choice(vec![Ways::OnlyOne(one_of.into())])));
        }
    }

    /// The first schema taken is the structure.
    fn is_structure(&self, part: &Part<'s>) -> bool {
        kw::has_type(part) || kw::preserves(part)
    }
}

/// Of more patterns than this nothing is found out: they need not be distinguished.
const MANY: usize = 1_000;

/// Adds what a schema asks of a string to `set`, but for its `enum`.
pub fn add_text(part: &Value, set: &mut StringSet) {
    if let Some(pattern) = part.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty())
        && (set.patterns.len() > MANY || !set.patterns.iter().any(|known| known == pattern))
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
    // The format of passwords takes every text.
    if let Some(format) = kw::string_format(part).filter(|format| *format != "password")
        && !set.formats.iter().any(|known| known == format)
    {
        set.formats.push(format.to_owned());
    }
}

/// The ways in which a value of `kind`, which the schema's types let pass, can be refused.
fn ways_to_refuse<'s>(part: &Part<'s>, kind: Kinds) -> Choice<'s> {
    let mut ways = Choice::default();
    if kind == Kinds::STRING {
        let mut set = StringSet::default();
        add_text(part, &mut set);
        if set != StringSet::default() {
            ways.push(vec![Constraint::NotText(set)]);
        }
        if !kw::list(part, "enum").is_empty() {
            let texts = kw::names(part, "enum").map(str::to_owned).collect();
            ways.push(vec![Constraint::NotText(StringSet { enumeration: Some(texts), ..StringSet::default() })]);
        }
    } else if !kw::list(part, "enum").is_empty() {
        // The value is none of these: perhaps by itself, for certain where it is larger.
        let size = |value: &Value| match value {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        let largest = kw::list(part, "enum").iter().map(size).max().unwrap_or(0);
        ways.push(Vec::new());
        ways.push(vec![Constraint::Min(largest as i64 + 1)]);
    }
    let (least, most) =
        if kind == Kinds::ARRAY { ("minItems", "maxItems") } else { ("minProperties", "maxProperties") };
    if matches!(kind, Kinds::ARRAY | Kinds::OBJECT) {
        if let Some(min) = kw::count(part, least).filter(|min| *min > 0) {
            ways.push(vec![Constraint::Max(min - 1)]);
        }
        if let Some(max) = kw::count(part, most) {
            ways.push(vec![Constraint::Min(max + 1)]);
        }
    }
    if kind == Kinds::ARRAY
        && let Some(items) = part.keyword("items")
    {
        ways.push(vec![Constraint::ItemFails(items)]);
    }
    if kind == Kinds::OBJECT {
        kw::names(part, "required").for_each(|name| ways.push(vec![Constraint::Absent(name.to_owned())]));
        for name in kw::properties(part).into_iter().flat_map(|p| p.keys()) {
            if let Some(kid) = part.property(name) {
                ways.push(vec![Constraint::Require(name.clone()), Constraint::KidFails(name.clone(), kid)]);
            }
        }
        if part.get("additionalProperties").is_some_and(|v| !v.is_null()) {
            ways.push(vec![Constraint::Opaque("additionalProperties below allOf, anyOf, oneOf or not")]);
        }
    }
    part.branches("allOf").into_iter().for_each(|branch| ways.push(vec![Constraint::Refuses(branch)]));
    let any_of = part.branches("anyOf");
    if !any_of.is_empty() {
        ways.push(any_of.into_iter().map(Constraint::Refuses).collect());
    }
    let one_of = part.branches("oneOf");
    if !one_of.is_empty() {
        ways.push(one_of.iter().cloned().map(Constraint::Refuses).collect());
        ways.0.push(Ways::Both(one_of.into()));
    }
    if let Some(not) = part.keyword("not") {
        ways.push(vec![Constraint::Takes(not)]);
    }
    if !kw::list(part, "x-kubernetes-validations").is_empty() {
        ways.push(vec![Constraint::Opaque("rules below allOf")]);
    }
    ways
}

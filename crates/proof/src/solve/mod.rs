//! Finds a value that some schemas accept and others refuse, or finds out that there is none.

mod build;
mod embedded;
mod least_weight;
mod numbered;
mod ruled;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Value, json};

pub use build::TOO_LARGE;

use super::automaton::SearchBudget;
use super::constraints::{Disjunct, SharedSchema, ValueConstraints, disjuncts};
use super::keywords::{self as kw, JsonTypeSet};
use super::numbers;
use super::rules::RuleProofResources;
use super::rules::repair::Repairs;
use super::strings::{self, StringSet, Subset, subset_within};
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::Schema;

/// The maximum depth of a value that is built.
const DEPTH: usize = 64;
/// The maximum weight in bytes of a value that is built. No API server stores an object of that size.
pub const MAX_WEIGHT: u64 = 4 << 20;
/// The maximum weight of cached values and compiled schemas; past that they are computed again.
const REMEMBERED: u64 = 32 << 20;
/// The steps that a share has in any case, if there are so many.
const LEAST_SHARE: u64 = 50_000;
/// The number of bytes of a value that are copied in one step.
const COPIED: u64 = 1024;
/// The number of candidate numbers that cost one step.
const NUMBERS: u64 = 4;
/// The number of sets that a text is checked against in one step.
const CHECKED: u64 = 4;
/// The maximum weight of a compiled schema for each JSON value in it.
const COMPILED: u64 = 256;
/// The number of validator steps that take as long as one step of the solver.
pub const VALIDATOR_STEPS_PER_STEP: u64 = 4;

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchResult {
    /// Values that fit, simplest first.
    pub values: Vec<Value>,
    /// Why there may be values that were not found. None: if `values` is empty, no value fits.
    pub open: Option<String>,
}

impl SearchResult {
    fn open(why: impl Into<String>) -> Self {
        Self { values: Vec::new(), open: Some(why.into()) }
    }

    fn single(value: Value) -> Self {
        Self { values: vec![value], open: None }
    }

    /// Whether it is certain that no value fits.
    pub fn is_nothing(&self) -> bool {
        self.values.is_empty() && self.open.is_none()
    }
}

/// A part that the value must contain.
#[derive(Clone, Copy, Debug)]
pub enum PinnedPart<'v> {
    Field(&'v str, &'v Value),
    Item(&'v Value),
}

impl PinnedPart<'_> {
    /// Whether `value` contains the part, apart from defaults that were added to it.
    fn is_in(self, value: &Value) -> bool {
        match self {
            Self::Field(name, part) => value.get(name).is_some_and(|found| kw::contains_all(found, part)),
            Self::Item(part) => value.as_array().into_iter().flatten().any(|found| kw::contains_all(found, part)),
        }
    }
}

/// A compiled schema; None if it does not compile.
type CompiledSchema = Option<Rc<Schema>>;

/// Names of fields with their defaults.
type FieldDefaults = Rc<Vec<(String, Value)>>;

/// Solves constraints within limits, and caches the results.
pub struct Solver<'s> {
    steps: Cell<u64>,
    depth: Cell<usize>,
    compiled: RefCell<HashMap<*const Value, CompiledSchema>>,
    /// The built schema that was used last: it is often checked for many values in a row.
    latest: RefCell<Option<(Rc<Value>, CompiledSchema)>>,
    simplest: RefCell<HashMap<(*const Value, bool, bool), SearchResult>>,
    /// The total weight of the answers in `simplest` and the schemas in `compiled`.
    remembered: Cell<u64>,
    defaults: RefCell<HashMap<*const Value, FieldDefaults>>,
    misfits: RefCell<HashMap<*const Value, Rc<[String]>>>,
    /// The least weight of a value of a schema.
    least: RefCell<HashMap<*const Value, u64>>,
    subsets: RefCell<HashMap<(StringSet, StringSet), Subset>>,
    patterns: Patterns,
    /// Changes values so that the rules of their own node hold.
    repairs: Repairs<'s>,
    /// Makes `'s` invariant: the caches use addresses of schemas as keys, so all schemas must live as long as the
    /// solver.
    schemas: PhantomData<Cell<&'s Value>>,
}

/// Decrements the depth when a level ends.
struct DepthGuard<'a>(&'a Cell<usize>);

impl Drop for DepthGuard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<'s> Solver<'s> {
    /// A solver that uses at most `steps` steps; after that everything is open. `patterns` is a shared cache of
    /// compiled patterns.
    pub fn new(steps: u64, patterns: &Patterns, release: KubernetesRelease) -> Self {
        Self {
            steps: Cell::new(steps),
            depth: Cell::new(0),
            compiled: RefCell::default(),
            latest: RefCell::default(),
            simplest: RefCell::default(),
            remembered: Cell::new(0),
            defaults: RefCell::default(),
            misfits: RefCell::default(),
            least: RefCell::default(),
            subsets: RefCell::default(),
            patterns: patterns.clone(),
            repairs: Repairs::new(patterns, release),
            schemas: PhantomData,
        }
    }

    /// Takes `steps`; false if none are left.
    pub fn spend(&self, steps: u64) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(steps));
        left > steps
    }

    /// Calls `ask` with at most so many sixteenths of the steps that are left: what is hard to decide leaves enough for
    /// the rest.
    pub fn with_share<T>(&self, of_sixteen: u64, ask: impl FnOnce() -> T) -> T {
        let all = self.left();
        let share = (all / 16 * of_sixteen).max(all.min(LEAST_SHARE));
        self.steps.set(share);
        let answer = ask();
        self.steps.set(all - (share - self.left()));
        answer
    }

    /// Calls `ask` with the steps and patterns that questions about rules can use.
    pub fn with_means<T>(&self, ask: impl FnOnce(&RuleProofResources<'_>) -> T) -> T {
        ask(&RuleProofResources {
            spend: &|steps| self.spend(steps),
            patterns: &self.patterns,
            release: self.release(),
        })
    }

    /// The shared cache of compiled patterns.
    pub fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// The release of the server.
    pub fn release(&self) -> KubernetesRelease {
        self.repairs.release()
    }

    /// The number of steps left.
    pub fn left(&self) -> u64 {
        self.steps.get()
    }

    /// Whether the schema accepts the value, ignoring rules. None: unknown.
    pub fn takes(&self, part: &SharedSchema<'s>, value: &Value) -> Option<bool> {
        if !self.spend(2) {
            return None;
        }
        // The time to compile a schema grows with its size.
        let compile = |schema: &Value| {
            let is_paid = self.spend(kw::size(schema) as u64);
            is_paid.then(|| Schema::compile_structure(schema, &self.patterns).ok().map(Rc::new)).flatten()
        };
        let schema = match part {
            SharedSchema::Own(schema) => {
                let mut latest = self.latest.borrow_mut();
                match &*latest {
                    Some((known, compiled)) if Rc::ptr_eq(known, schema) => compiled.clone(),
                    _ => {
                        let compiled = compile(schema);
                        *latest = Some((Rc::clone(schema), compiled.clone()));
                        compiled
                    }
                }
            }
            SharedSchema::Ref(schema) => {
                let known = self.compiled.borrow().get(&std::ptr::from_ref(*schema)).cloned();
                known.unwrap_or_else(|| {
                    let compiled = compile(schema);
                    if self.remember(kw::size(schema) as u64 * COMPILED) {
                        self.compiled.borrow_mut().insert(std::ptr::from_ref(*schema), compiled.clone());
                    }
                    compiled
                })
            }
        };
        let schema = schema?;
        let most = self.left().saturating_mul(VALIDATOR_STEPS_PER_STEP);
        let mut left = most;
        let answer = schema.accepts_value_within(value, &mut left);
        self.spend((most - left) / VALIDATOR_STEPS_PER_STEP);
        answer
    }

    /// Reserves room in the cache for something of this weight, if there is any.
    fn remember(&self, weight: u64) -> bool {
        let all = self.remembered.get().saturating_add(weight);
        if all <= REMEMBERED {
            self.remembered.set(all);
        }
        all <= REMEMBERED
    }

    /// Whether the value satisfies the constraints, except the first `from` schemas of `holds`. None: unknown.
    fn fits(&self, constraints: &ValueConstraints<'s>, value: &Value, from: usize) -> Option<bool> {
        let mut known = true;
        for (part, wanted) in
            constraints.holds.iter().skip(from).map(|p| (p, true)).chain(constraints.fails.iter().map(|p| (p, false)))
        {
            match self.takes(part, value) {
                Some(takes) if takes != wanted => return Some(false),
                Some(_) => {}
                None => known = false,
            }
        }
        known.then_some(true)
    }

    /// Up to `want` values that satisfy `constraints` and contain `pin`.
    pub fn solve(&self, constraints: &ValueConstraints<'s>, pin: Option<PinnedPart>, want: usize) -> SearchResult {
        if !self.spend(5) {
            return SearchResult::open("the step limit was reached");
        }
        if self.depth.get() >= DEPTH {
            return SearchResult::open("the schema is nested too deeply");
        }
        self.depth.set(self.depth.get() + 1);
        let _level = DepthGuard(&self.depth);
        let memo = match (&constraints.holds[..], pin, want) {
            ([SharedSchema::Ref(schema)], None, 1) if constraints.fails.is_empty() => {
                Some((std::ptr::from_ref::<Value>(schema), constraints.null, constraints.is_resource))
            }
            _ => None,
        };
        if let Some(known) = memo.as_ref().and_then(|key| self.simplest.borrow().get(key).cloned()) {
            return match self.spend(known.values.iter().map(kw::weight).sum::<u64>() / COPIED) {
                true => known,
                false => SearchResult::open("the step limit was reached"),
            };
        }
        let mut answer = self.by_kind(constraints, pin, want);
        if pin.is_none() {
            self.prefer_ruled(constraints, &mut answer);
        }
        if let Some(key) = memo
            && self.remember(answer.values.iter().map(kw::weight).sum())
        {
            self.simplest.borrow_mut().insert(key, answer.clone());
        }
        answer
    }

    fn by_kind(&self, constraints: &ValueConstraints<'s>, pin: Option<PinnedPart>, want: usize) -> SearchResult {
        let all = constraints.all_holds();
        let kinds = all.iter().fold(JsonTypeSet::ALL, |kinds, part| kinds & (kw::kinds(part) | JsonTypeSet::NULL));
        let options = all.iter().map(|part| kw::list(part, "enum")).filter(|e| !e.is_empty()).min_by_key(|e| e.len());
        if let (Some(options), Some(pin)) = (options, pin) {
            let pinned: Vec<Value> = options.iter().filter(|option| pin.is_in(option)).cloned().collect();
            return self.find_among(constraints, &pinned, want);
        }
        if let Some(options) = options {
            let mut values = numbers::enum_values(options, constraints, kinds);
            // A null can pass an `enum` below `allOf` that does not list it.
            if constraints.null && !values.values.contains(&Value::Null) {
                values.values.push(Value::Null);
            }
            let mut answer = self.find_among(constraints, &values.values, want);
            if answer.values.is_empty() && !values.are_all {
                answer.open.get_or_insert_with(|| "multipleOf beyond the values tried".to_owned());
            }
            return answer;
        }
        let mut answer = SearchResult::default();
        for kind in [
            JsonTypeSet::STRING,
            JsonTypeSet::INTEGER,
            JsonTypeSet::BOOLEAN,
            JsonTypeSet::OBJECT,
            JsonTypeSet::ARRAY,
            JsonTypeSet::FRACTION,
            JsonTypeSet::NULL,
        ] {
            let fits_pin = match pin {
                None => true,
                Some(PinnedPart::Field(..)) => kind == JsonTypeSet::OBJECT,
                Some(PinnedPart::Item(_)) => kind == JsonTypeSet::ARRAY,
            };
            if answer.values.len() >= want {
                break;
            }
            if !fits_pin || !kinds.contains(kind) || kind == JsonTypeSet::NULL && !constraints.null {
                continue;
            }
            let left = want - answer.values.len();
            let of_kind = match kind {
                JsonTypeSet::NULL => self.find_among(constraints, &[Value::Null], left),
                JsonTypeSet::BOOLEAN => self.find_among(constraints, &[json!(false), json!(true)], left),
                JsonTypeSet::INTEGER | JsonTypeSet::FRACTION => {
                    let numbers = numbers::representatives(constraints, kind);
                    self.spend(numbers.values.len() as u64 / NUMBERS);
                    let mut found = self.find_among(constraints, &numbers.values, left);
                    let is_open = || match numbers::without_factors(constraints) {
                        Some(less) => {
                            let all = numbers::representatives(&less, kind).values;
                            !self.find_among(&less, &all, 1).is_nothing()
                        }
                        None => true,
                    };
                    if found.values.is_empty() && !numbers.are_all && is_open() {
                        found.open.get_or_insert_with(|| "multipleOf beyond the values tried".to_owned());
                    }
                    found
                }
                kind => self.by_disjuncts(constraints, kind, pin, left),
            };
            answer.values.extend(of_kind.values);
            answer.open = answer.open.or(of_kind.open);
        }
        answer
    }

    /// The first `want` of `values` that satisfy the constraints.
    fn find_among(&self, constraints: &ValueConstraints<'s>, values: &[Value], want: usize) -> SearchResult {
        let mut answer = SearchResult::default();
        for value in values {
            if value.is_null() && !constraints.null {
                continue;
            }
            match self.fits(constraints, value, 0) {
                Some(true) => answer.values.push(value.clone()),
                Some(false) => {}
                None => answer.open = Some("a pattern that cannot be evaluated".to_owned()),
            }
            if self.left() == 0 {
                answer.open = Some("the step limit was reached".to_owned());
                break;
            }
            if answer.values.len() >= want {
                break;
            }
        }
        answer
    }

    fn by_disjuncts(
        &self,
        constraints: &ValueConstraints<'s>,
        kind: JsonTypeSet,
        pin: Option<PinnedPart>,
        want: usize,
    ) -> SearchResult {
        let mut answer = SearchResult::default();
        let whole;
        let constraints = match constraints.holds.first() {
            Some(structure) if kind == JsonTypeSet::OBJECT && kw::embedded(structure) => {
                let mut with_meta = constraints.clone();
                with_meta.holds.push(SharedSchema::Ref(&embedded::CONSTRAINTS));
                whole = with_meta;
                &whole
            }
            _ => constraints,
        };
        let spend = |steps| self.spend(steps);
        let walked = disjuncts(constraints, kind, &spend, &mut |disjunct| {
            if !self.spend(5) {
                answer.open = Some("the step limit was reached".to_owned());
                return false;
            }
            let mut found = match kind {
                JsonTypeSet::STRING => self.text(&disjunct),
                JsonTypeSet::ARRAY => self.array(&disjunct, constraints, pin),
                _ => self.object(&disjunct, constraints, pin),
            };
            if found.is_nothing() && disjunct.opaque.is_some() {
                found.open = disjunct.opaque.map(str::to_owned);
            }
            for value in found.values {
                // The value was built along the structure; everything else is checked again.
                if !self.spend(kw::weight(&value) / COPIED) {
                    found.open = Some("the step limit was reached".to_owned());
                    continue;
                }
                let full = self.defaulted(constraints, &value);
                match self.fits(constraints, &full, usize::from(kind != JsonTypeSet::STRING)) {
                    Some(true) => answer.values.push(value),
                    _ => found.open = Some(disjunct.opaque.unwrap_or("no example could be built").to_owned()),
                }
            }
            if answer.open.is_none() {
                answer.open = found.open;
            }
            answer.values.len() < want
        });
        if let Err(why) = walked {
            answer.open = Some(why.to_owned());
        }
        answer
    }

    /// The fields of the structure that have a default.
    fn defaults(&self, structure: &SharedSchema<'s>) -> FieldDefaults {
        let read = |schema: &Value| -> FieldDefaults {
            let fields = kw::properties(schema).into_iter().flatten();
            let default = |(name, kid): (&String, &Value)| Some((name.clone(), kw::default_of(kid)?.clone()));
            Rc::new(fields.filter_map(default).collect())
        };
        match structure {
            SharedSchema::Own(schema) => read(schema),
            SharedSchema::Ref(schema) => {
                let mut known = self.defaults.borrow_mut();
                Rc::clone(known.entry(std::ptr::from_ref(*schema)).or_insert_with(|| read(schema)))
            }
        }
    }

    /// The fields whose default is refused by their own schema.
    fn misfits(&self, structure: &SharedSchema<'s>) -> Rc<[String]> {
        let is_misfit = |name: &str, default: &Value| {
            structure.property(name).is_some_and(|own| {
                let field = ValueConstraints {
                    null: kw::flag(&own, "nullable"),
                    holds: vec![own],
                    ..ValueConstraints::default()
                };
                self.is_refused(&field, default)
            })
        };
        let read = || {
            let defaults = self.defaults(structure);
            let misfits = defaults.iter().filter(|(name, default)| is_misfit(name, default));
            misfits.map(|(name, _)| name.clone()).collect::<Rc<[String]>>()
        };
        let SharedSchema::Ref(schema) = structure else { return read() };
        let key = std::ptr::from_ref::<Value>(schema);
        if let Some(known) = self.misfits.borrow().get(&key) {
            return Rc::clone(known);
        }
        let misfits = read();
        self.misfits.borrow_mut().insert(key, Rc::clone(&misfits));
        misfits
    }

    /// Whether a default violates the constraints on its field.
    fn is_refused(&self, field: &ValueConstraints<'s>, default: &Value) -> bool {
        self.fits(field, &self.defaulted(field, default), 0) == Some(false)
    }

    /// The value with the defaults of its own fields, as the server validates it.
    fn defaulted(&self, constraints: &ValueConstraints<'s>, value: &Value) -> Value {
        let mut value = value.clone();
        if let (Some(map), Some(structure)) = (value.as_object_mut(), constraints.holds.first()) {
            for (name, default) in self.defaults(structure).iter() {
                if !map.contains_key(name) {
                    map.insert(name.clone(), default.clone());
                }
            }
        }
        value
    }

    /// Whether every string of `live` is in `desired`. Cached, because the same two sets occur in many places of a
    /// schema.
    fn subset(&self, live: &StringSet, desired: &StringSet) -> Subset {
        let question = (live.clone(), desired.clone());
        if let Some(known) = self.subsets.borrow().get(&question) {
            return known.clone();
        }
        // The search is charged to this solver, so its budget is what is left here.
        let most = strings::STEPS.min(self.left().saturating_mul(strings::STEPS_PER_UNIT));
        let mut budget = SearchBudget::sharing(most, &self.patterns);
        let answer = subset_within(live, desired, &mut budget);
        self.spend((most - budget.left()) / strings::STEPS_PER_UNIT);
        self.subsets.borrow_mut().insert(question, answer.clone());
        answer
    }

    fn text(&self, disjunct: &Disjunct<'s>) -> SearchResult {
        let mut why = None;
        let mut pool = Vec::new();
        let nothing = [StringSet::empty()];
        let refused = if disjunct.not_text.is_empty() { &nothing[..] } else { &disjunct.not_text[..] };
        for set in refused {
            match self.subset(&disjunct.text, set) {
                Subset::Yes => return SearchResult::default(),
                Subset::No(text) => pool.push(text),
                Subset::Unknown(reason) => why = Some(reason),
            }
        }
        // One of the texts may be outside all sets; if not, a longer one might be.
        for text in pool.clone() {
            pool.extend((0..10).flat_map(|n| [format!("{text}{n}"), format!("{text}{}", (b'a' + n) as char)]));
        }
        let is_outside = |text: &String| {
            self.spend(1 + disjunct.not_text.len() as u64 / CHECKED)
                && disjunct.text.contains_by(text, &self.patterns) == Ok(true)
                && disjunct.not_text.iter().all(|set| set.contains_by(text, &self.patterns) == Ok(false))
        };
        let found = pool.into_iter().find(is_outside);
        let guessed = || ruled::strings_to_try(&disjunct.text).into_iter().find(is_outside);
        match found.or_else(guessed) {
            Some(text) => SearchResult::single(Value::String(text)),
            None => SearchResult::open(why.unwrap_or_else(|| "several constraints on a string at once".to_owned())),
        }
    }
}

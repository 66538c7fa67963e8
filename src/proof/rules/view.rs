//! What rules look at: for each place below a node, what of its value can make a difference to them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::automaton::alternatives;
use crate::validation::cel::ast::{Call, Expr, Literal, Macro, MacroKind, Operator, Step};
use crate::validation::cel::parse_rule;
use crate::validation::cel::unescape;

/// What rules look at in the value of one place.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub fields: BTreeMap<String, View>,
    pub items: Option<Box<View>>,
    /// The keys of a map and its values.
    pub keys: Option<Box<View>>,
    pub values: Option<Box<View>>,
    /// How many items or entries decide every question that is asked of the list or map as a whole: an example for each
    /// `exists`, a counterexample for each `all`.
    pub kept: usize,
    /// What the number of items, entries or characters is compared with.
    pub sizes: BTreeSet<u64>,
    /// Languages that texts are told apart by, as patterns.
    pub patterns: BTreeSet<String>,
    /// What numbers are compared with.
    pub integers: BTreeSet<i64>,
    pub fractions: Vec<f64>,
    /// How many other places the value is compared with.
    pub rivals: usize,
}

/// What one rule looks at.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    pub view: View,
    /// What the rule does beyond that. With none, two values that are alike in the view are alike to the rule.
    pub gaps: BTreeSet<String>,
    /// Literals of the rule, for guesses where there are gaps.
    pub texts: BTreeSet<String>,
    /// Places whose values are compared with each other.
    pairs: Vec<(Vec<Key>, Vec<Key>)>,
}

impl Looked {
    /// Adds what another rule of the same node looks at.
    pub fn merge(&mut self, other: &Looked) {
        self.view.merge(&other.view);
        self.gaps.extend(other.gaps.iter().cloned());
        self.texts.extend(other.texts.iter().cloned());
        self.pairs.extend(other.pairs.iter().cloned());
    }

    /// Values that are compared with each other are told apart by the same borders, and there are enough of each kind to
    /// be alike and to differ.
    pub fn level(&mut self) {
        let pairs = std::mem::take(&mut self.pairs);
        // Each round carries what is known over one more pair.
        for _ in 0..pairs.len() {
            for (left, right) in pairs.iter().flat_map(|(left, right)| [(left, right), (right, left)]) {
                let theirs = self.view.at(right).clone();
                let mine = self.view.at(left);
                mine.rivals = pairs.len();
                mine.patterns.extend(theirs.patterns);
                mine.sizes.extend(theirs.sizes);
                mine.integers.extend(theirs.integers);
                mine.fractions.extend(theirs.fractions);
                mine.fractions.sort_by(f64::total_cmp);
                mine.fractions.dedup();
            }
        }
        self.pairs = pairs;
    }
}

/// Where a value stands: the way to it from the node, and its schema.
#[derive(Clone, Debug)]
struct Place<'a> {
    way: Vec<Key>,
    schema: &'a Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Field(String),
    Item,
    /// The value of an entry, and the entry's key.
    Value,
    Name,
}

/// What an expression is, as far as it matters here.
enum Term<'a> {
    /// Decided by what is recorded already: a truth value, or one of finitely many constants.
    Decided,
    Constant(Literal),
    Place(Place<'a>),
    Size(Place<'a>),
    /// Anything else.
    Unknown,
}

struct Looker<'a, 'l> {
    root: &'a Value,
    is_root: bool,
    looked: &'l mut Looked,
    /// Variables of macros, with the list or map that they run over.
    scope: Vec<(String, Place<'a>)>,
}

/// Looks through the rule of a node.
///
/// # Errors
/// The rule cannot be read.
pub fn look(rule: &str, schema: &Value, is_root: bool) -> Result<Looked, String> {
    let mut looked = Looked::default();
    let Some(expr) = parse_rule(rule)? else { return Ok(looked) };
    let mut looker = Looker { root: schema, is_root, looked: &mut looked, scope: Vec::new() };
    looker.truth(&expr);
    Ok(looked)
}

impl View {
    /// Adds what another view looks at.
    pub fn merge(&mut self, other: &View) {
        for (name, view) in &other.fields {
            self.fields.entry(name.clone()).or_default().merge(view);
        }
        for (mine, theirs) in
            [(&mut self.items, &other.items), (&mut self.keys, &other.keys), (&mut self.values, &other.values)]
        {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
        self.kept += other.kept;
        self.sizes.extend(&other.sizes);
        self.patterns.extend(other.patterns.iter().cloned());
        self.integers.extend(&other.integers);
        self.fractions.extend(&other.fractions);
    }

    /// Whether the two look at a place in common below their root.
    pub fn meets(&self, other: &View) -> bool {
        let below = |view: &View| {
            view.fields.is_empty() && view.items.is_none() && view.values.is_none() && view.keys.is_none()
        };
        if below(self) || below(other) {
            return true;
        }
        let both = |a: &Option<Box<View>>, b: &Option<Box<View>>| matches!((a, b), (Some(a), Some(b)) if a.meets(b));
        self.fields.iter().any(|(name, view)| other.fields.get(name).is_some_and(|theirs| view.meets(theirs)))
            || both(&self.items, &other.items)
            || both(&self.keys, &other.keys)
            || both(&self.values, &other.values)
    }

    fn at(&mut self, way: &[Key]) -> &mut View {
        let Some((first, rest)) = way.split_first() else { return self };
        let next = match first {
            Key::Field(name) => self.fields.entry(name.clone()).or_default(),
            Key::Item => self.items.get_or_insert_default(),
            Key::Value => {
                self.keys.get_or_insert_default();
                self.values.get_or_insert_default()
            }
            Key::Name => {
                self.values.get_or_insert_default();
                self.keys.get_or_insert_default()
            }
        };
        next.at(rest)
    }
}

/// `metadata` of a custom resource, as rules see it.
fn metadata() -> &'static Value {
    static METADATA: std::sync::LazyLock<Value> = std::sync::LazyLock::new(
        || serde_json::json!({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}),
    );
    &METADATA
}

fn kind(schema: &Value) -> &str {
    match schema.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) => "int-or-string",
        None => "",
    }
}

impl<'a> Looker<'a, '_> {
    fn gap(&mut self, why: impl Into<String>) {
        self.looked.gaps.insert(why.into());
    }

    fn view(&mut self, place: &Place<'_>) -> &mut View {
        self.looked.view.at(&place.way)
    }

    /// An expression that has to be a truth value.
    fn truth(&mut self, expr: &Expr) {
        match self.term(expr) {
            Term::Decided | Term::Constant(_) => {}
            Term::Place(place) if kind(place.schema) == "boolean" => {
                self.view(&place);
            }
            Term::Place(_) | Term::Size(_) | Term::Unknown => {
                self.gap("an expression that is not compared with a constant")
            }
        }
    }

    fn term(&mut self, expr: &Expr) -> Term<'a> {
        match expr {
            Expr::Literal(literal) => {
                if let Literal::String(text) = literal {
                    self.looked.texts.insert(text.clone());
                }
                Term::Constant(literal.clone())
            }
            Expr::TypeName(_) => Term::Decided,
            Expr::Variable(_) | Expr::Path { .. } => match self.place(expr) {
                Some(place) => {
                    self.view(&place);
                    Term::Place(place)
                }
                None => {
                    self.gap("a selection that is not followed");
                    Term::Unknown
                }
            },
            Expr::Has { operand, field } => self.has(operand, field),
            Expr::Not(operand) => {
                self.truth(operand);
                Term::Decided
            }
            Expr::Negate(operand) => match self.term(operand) {
                Term::Constant(Literal::Int(n)) => Term::Constant(Literal::Int(n.wrapping_neg())),
                Term::Constant(Literal::Double(n)) => Term::Constant(Literal::Double(-n)),
                Term::Decided => Term::Decided,
                _ => {
                    self.gap("arithmetic on values");
                    Term::Unknown
                }
            },
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| self.truth(operand));
                Term::Decided
            }
            Expr::Conditional { cases, otherwise } => {
                let mut results = Vec::with_capacity(cases.len() + 1);
                for (condition, value) in cases {
                    self.truth(condition);
                    results.push(value);
                }
                results.push(otherwise);
                for result in results {
                    match self.term(result) {
                        Term::Decided | Term::Constant(_) => {}
                        Term::Place(place) if kind(place.schema) == "boolean" => {}
                        _ => self.gap("a condition between values"),
                    }
                }
                Term::Decided
            }
            Expr::Binary { first, rest } => self.binary(first, rest),
            Expr::List(items) => {
                for (item, _) in items {
                    self.term(item);
                }
                self.gap("a list that is made by the rule");
                Term::Unknown
            }
            Expr::Map(entries) => {
                for (key, value, _) in entries {
                    self.term(key);
                    self.term(value);
                }
                self.gap("a map that is made by the rule");
                Term::Unknown
            }
            Expr::Call(call) => self.call(call),
            Expr::Macro(of) => self.run_over(of),
        }
    }

    fn has(&mut self, operand: &Expr, field: &str) -> Term<'a> {
        let step = [Step::Field { name: field.to_owned(), optional: false }];
        match self.place(operand).and_then(|place| self.follow(place, &step)) {
            Some(place) => {
                self.view(&place);
            }
            None => self.gap("a selection that is not followed"),
        }
        Term::Decided
    }

    /// The place that a chain of selections leads to.
    fn place(&mut self, expr: &Expr) -> Option<Place<'a>> {
        match expr {
            Expr::Variable(name) => match self.scope.iter().rev().find(|(bound, _)| bound == name) {
                Some((_, place)) => Some(place.clone()),
                None => (name == "self" || name == "oldSelf").then(|| Place { way: Vec::new(), schema: self.root }),
            },
            Expr::Path { root, steps } => {
                let start = self.place(root)?;
                self.follow(start, steps)
            }
            _ => None,
        }
    }

    fn follow(&mut self, mut place: Place<'a>, steps: &[Step]) -> Option<Place<'a>> {
        for step in steps {
            place = match step {
                Step::Field { name, optional: false } => self.field(place, &unescape(name)?)?,
                Step::Index { index: Expr::Literal(Literal::String(key)), optional: false } => {
                    self.entry(place, key)?
                }
                Step::Index { index: Expr::Literal(Literal::Int(index)), optional: false } => {
                    let index = usize::try_from(*index).ok().filter(|index| *index < 64)?;
                    self.gap("an item at a fixed place");
                    let view = self.view(&place);
                    view.kept = view.kept.max(index + 1);
                    item(place)?
                }
                Step::Index { index: Expr::Variable(key), optional: false } => {
                    let (_, bound) = self.scope.iter().rev().find(|(name, _)| name == key)?;
                    let (last, map) = bound.way.split_last()?;
                    if *last != Key::Name || map != place.way {
                        return None;
                    }
                    value(place)?
                }
                _ => return None,
            };
        }
        Some(place)
    }

    fn field(&mut self, place: Place<'a>, name: &str) -> Option<Place<'a>> {
        if place.way.is_empty() && self.is_root && name == "metadata" {
            return Some(Place { way: vec![Key::Field(name.to_owned())], schema: metadata() });
        }
        match place.schema.get("properties").and_then(|properties| properties.get(name)) {
            Some(schema) => {
                let mut way = place.way;
                way.push(Key::Field(name.to_owned()));
                Some(Place { way, schema })
            }
            None => self.entry(place, name),
        }
    }

    /// The value of a map under a fixed key. The entry has to be kept.
    fn entry(&mut self, place: Place<'a>, key: &str) -> Option<Place<'a>> {
        let way = place.way.clone();
        let value = value(place)?;
        let map = self.looked.view.at(&way);
        map.kept += 1;
        map.keys.get_or_insert_default().patterns.insert(alternatives([key]));
        // What the rule asks of this value is asked of the values of all keys, which does no harm.
        Some(value)
    }

    fn binary(&mut self, first: &Expr, rest: &[(Operator, Expr)]) -> Term<'a> {
        if let [(Operator::In, list)] = rest {
            return self.within(first, list);
        }
        let mut terms = vec![self.term(first)];
        terms.extend(rest.iter().map(|(_, operand)| self.term(operand)));
        let is_comparison = |operator: &Operator| {
            use Operator::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
            matches!(operator, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
        };
        let fixed = terms.iter().all(|term| matches!(term, Term::Decided | Term::Constant(_)));
        match rest {
            _ if fixed => {}
            [(operator, _)] if is_comparison(operator) => {
                let is_order = !matches!(operator, Operator::Equal | Operator::NotEqual);
                let mut terms = terms.into_iter();
                if let (Some(left), Some(right)) = (terms.next(), terms.next()) {
                    self.compare(left, right, is_order);
                }
            }
            _ => self.gap("arithmetic on values"),
        }
        Term::Decided
    }

    fn compare(&mut self, left: Term<'a>, right: Term<'a>, is_order: bool) {
        match (left, right) {
            (Term::Place(place), Term::Constant(constant)) | (Term::Constant(constant), Term::Place(place)) => {
                self.constant(&place, &constant, is_order);
            }
            (Term::Size(place), Term::Constant(Literal::Int(size)))
            | (Term::Constant(Literal::Int(size)), Term::Size(place)) => {
                if let Ok(size) = u64::try_from(size) {
                    self.view(&place).sizes.insert(size);
                }
            }
            (Term::Place(left), Term::Place(right)) => self.rivals(&left, &right, is_order),
            (Term::Size(_), _) | (_, Term::Size(_)) => self.gap("sizes that are not compared with a constant"),
            _ => self.gap("values that are not compared with a constant"),
        }
    }

    fn constant(&mut self, place: &Place<'a>, constant: &Literal, is_order: bool) {
        let number_or_text = matches!(kind(place.schema), "int-or-string");
        match (kind(place.schema), constant) {
            (_, Literal::Null) | ("boolean", Literal::Bool(_)) => {}
            ("string" | "int-or-string", Literal::String(text)) => {
                if is_order {
                    self.gap("an order of texts");
                }
                self.view(place).patterns.insert(alternatives([text.as_str()]));
            }
            ("integer" | "int-or-string", Literal::Int(number)) => {
                self.view(place).integers.insert(*number);
                if is_order && number_or_text {
                    self.gap("an order of what may be a text");
                }
            }
            ("number", Literal::Double(number)) => self.view(place).fractions.push(*number),
            #[allow(clippy::cast_precision_loss)] // A neighbour of the constant serves as well.
            ("number", Literal::Int(number)) => self.view(place).fractions.push(*number as f64),
            _ => self.gap("a constant of another type"),
        }
    }

    fn rivals(&mut self, left: &Place<'a>, right: &Place<'a>, is_order: bool) {
        let kinds = (kind(left.schema), kind(right.schema));
        let is_scalar = |kind: &str| matches!(kind, "string" | "integer" | "number" | "boolean");
        if kinds.0 != kinds.1 || !is_scalar(kinds.0) || is_order && kinds.0 == "string" {
            self.gap("whole values that are compared with each other");
        }
        // Values of several items that are compared with one another are more than two.
        let last_list = |place: &Place<'_>| place.way.iter().rposition(|key| !matches!(key, Key::Field(_)));
        let (a, b) = (last_list(left), last_list(right));
        if a != b || a.is_some_and(|end| left.way[..=end] != right.way[..=end]) {
            self.gap("values of different items that are compared with each other");
        }
        if plain(left.schema) != plain(right.schema) {
            self.gap("values of different schemas that are compared with each other");
        }
        self.looked.pairs.push((left.way.clone(), right.way.clone()));
    }

    /// `value in list`
    fn within(&mut self, value: &Expr, list: &Expr) -> Term<'a> {
        if let Expr::List(items) = list {
            let value = self.term(value);
            for (item, _) in items {
                match (&value, self.term(item)) {
                    (Term::Place(place), Term::Constant(constant)) => self.constant(&place.clone(), &constant, false),
                    (Term::Constant(_) | Term::Decided, Term::Constant(_)) => {}
                    _ => self.gap("a list that is made by the rule"),
                }
            }
            return Term::Decided;
        }
        let value = self.term(value);
        match (value, self.place(list)) {
            (Term::Constant(constant), Some(place)) if kind(place.schema) == "array" => {
                self.view(&place).kept += 1;
                match item(place) {
                    Some(item) => self.constant(&item, &constant, false),
                    None => self.gap("a list without items"),
                }
            }
            (Term::Constant(Literal::String(key)), Some(place)) => {
                let is_map = self.entry(place, &key).is_some();
                if !is_map {
                    self.gap("a field that is looked for by name");
                }
            }
            (_, place) => {
                if let Some(place) = place {
                    self.view(&place).kept += 1;
                }
                self.gap("a value that is looked for in another");
            }
        }
        Term::Decided
    }

    fn call(&mut self, call: &Call) -> Term<'a> {
        let text = |expr: Option<&Expr>| match expr {
            Some(Expr::Literal(Literal::String(text))) => Some(text.clone()),
            _ => None,
        };
        let terms: Vec<Term<'a>> = call.args.iter().map(|arg| self.term(arg)).collect();
        let argument = text(call.args.get(1));
        let mut terms = terms.into_iter();
        match (call.function.as_str(), terms.next(), argument) {
            ("size", Some(Term::Place(place)), None) => return Term::Size(place),
            ("type", Some(Term::Place(_)), None) => return Term::Decided,
            (function, Some(Term::Place(place)), Some(text)) if kind(place.schema) == "string" => {
                let escaped = regex_syntax::escape(&text);
                let pattern = match function {
                    "matches" => Some(text),
                    "contains" => Some(escaped),
                    "startsWith" => Some(format!(r"\A{escaped}")),
                    "endsWith" => Some(format!(r"{escaped}\z")),
                    _ => None,
                };
                if let Some(pattern) = pattern {
                    self.view(&place).patterns.insert(pattern);
                    return Term::Decided;
                }
            }
            _ => {}
        }
        self.gap(format!("{}()", call.function));
        Term::Unknown
    }

    fn run_over(&mut self, of: &Macro) -> Term<'a> {
        let target = self.place(&of.target);
        if target.is_none() {
            self.term(&of.target);
        }
        let kept = match of.kind {
            MacroKind::All | MacroKind::Exists => 1,
            MacroKind::ExistsOne => 2,
            _ => {
                self.gap("a macro that makes a list");
                2
            }
        };
        let (Some(target), [variable]) = (target, &of.variables[..]) else {
            self.gap("a macro over what is not a list of the object");
            return Term::Unknown;
        };
        self.view(&target).kept += kept;
        let element = match kind(target.schema) {
            "array" => item(target.clone()),
            _ => value(target.clone())
                .map(|_| Place { way: target.way.iter().cloned().chain([Key::Name]).collect(), schema: text_schema() }),
        };
        let Some(element) = element else {
            self.gap("a macro over what is not a list of the object");
            return Term::Unknown;
        };
        // Inside of a macro over another list, an item would have to be kept for each item there.
        let is_within = |place: &Place<'_>| target.way.starts_with(&place.way);
        if self.scope.iter().any(|(name, place)| !is_within(place) && (mentions(&of.body, name))) {
            self.gap("items of two lists that are compared with each other");
            self.view(&target).kept += 1;
        }
        self.view(&element);
        self.scope.push((variable.clone(), element));
        if let Some(filter) = &of.filter {
            self.truth(filter);
        }
        let is_truth = matches!(of.kind, MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne | MacroKind::Filter);
        if is_truth {
            self.truth(&of.body);
        } else {
            self.term(&of.body);
        }
        self.scope.pop();
        if matches!(of.kind, MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne) {
            Term::Decided
        } else {
            Term::Unknown
        }
    }
}

/// What a schema asks of a value.
fn plain(schema: &Value) -> BTreeMap<&str, &Value> {
    let is_said = |key: &str| matches!(key, "description" | "title" | "example" | "externalDocs" | "default");
    let entries = schema.as_object().into_iter().flatten();
    entries.filter(|(key, _)| !is_said(key)).map(|(key, value)| (key.as_str(), value)).collect()
}

fn text_schema() -> &'static Value {
    static TEXT: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| serde_json::json!({"type": "string"}));
    &TEXT
}

fn item(place: Place<'_>) -> Option<Place<'_>> {
    let schema = place.schema.get("items")?;
    let mut way = place.way;
    way.push(Key::Item);
    Some(Place { way, schema })
}

fn value(place: Place<'_>) -> Option<Place<'_>> {
    let schema = place.schema.get("additionalProperties").filter(|values| values.is_object())?;
    let mut way = place.way;
    way.push(Key::Value);
    Some(Place { way, schema })
}

/// Whether the expression uses the variable.
fn mentions(expr: &Expr, name: &str) -> bool {
    let any = |exprs: &[Expr]| exprs.iter().any(|expr| mentions(expr, name));
    match expr {
        Expr::Literal(_) | Expr::TypeName(_) => false,
        Expr::Variable(variable) => variable == name,
        Expr::Path { root, steps } => {
            mentions(root, name)
                || steps.iter().any(|step| matches!(step, Step::Index { index, .. } if mentions(index, name)))
        }
        Expr::Has { operand, .. } | Expr::Not(operand) | Expr::Negate(operand) => mentions(operand, name),
        Expr::And(operands) | Expr::Or(operands) => any(operands),
        Expr::Conditional { cases, otherwise } => {
            mentions(otherwise, name) || cases.iter().any(|(when, value)| mentions(when, name) || mentions(value, name))
        }
        Expr::Binary { first, rest } => {
            mentions(first, name) || rest.iter().any(|(_, operand)| mentions(operand, name))
        }
        Expr::List(items) => items.iter().any(|(item, _)| mentions(item, name)),
        Expr::Map(entries) => entries.iter().any(|(key, value, _)| mentions(key, name) || mentions(value, name)),
        Expr::Call(call) => any(&call.args),
        Expr::Macro(of) => {
            mentions(&of.target, name)
                || !of.variables.iter().any(|variable| variable == name)
                    && (mentions(&of.body, name) || of.filter.as_ref().is_some_and(|filter| mentions(filter, name)))
        }
    }
}

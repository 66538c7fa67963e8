//! Reading a rule for what it looks at.

use std::collections::BTreeMap;

use serde_json::Value;

use super::view::{Key, Looked, View};
use crate::proof::keywords as kw;
use crate::validation::cel::ast::{Call, Expr, Literal, Macro, MacroKind, Operator, Step};
use crate::validation::cel::parse_rule;
use crate::validation::cel::unescape;

/// Where a value stands: the way to it from the node, and its schema.
#[derive(Clone, Debug)]
struct Place<'a> {
    way: Vec<Key>,
    schema: &'a Value,
    /// What desired says of this place, where it says anything.
    desired: Option<&'a Value>,
    /// Whether fields that live does not describe are kept here.
    keeps: bool,
}

/// What an expression is, as far as it matters here.
enum Term<'a> {
    /// Decided by what is recorded already: a truth value, or one of finitely many constants.
    Decided,
    Constant(Literal),
    Place(Place<'a>),
    /// A place that no object of live has: reading it fails, whatever else there is.
    Absent,
    Size(Place<'a>),
    /// How many items of a list fit a condition that is recorded already.
    Count(Place<'a>),
    /// Anything else.
    Unknown,
}

struct Looker<'a, 'l> {
    root: Place<'a>,
    is_root: bool,
    /// Whether the rule is of a shape in which items of its list may be compared with each other.
    is_paired: bool,
    looked: &'l mut Looked,
    /// Variables of macros, with the list or map that they run over.
    scope: Vec<(String, Place<'a>)>,
}

/// Gaps that leave out no place that the rule looks at.
const FIXED: &str = "an item at a fixed place";
const LOOKED_FOR: &str = "a value that is looked for in another";

impl Looked {
    /// Whether the view has every place that the rule looks at, even if not all that it looks at there.
    pub fn has_every_place(&self) -> bool {
        self.gaps.iter().all(|gap| gap == FIXED || gap == LOOKED_FOR)
    }
}

/// Looks through the rule of a node that live describes by `live` and desired by `desired`.
///
/// `keeps` says that fields that `live` does not describe are kept because of what is around the node.
///
/// # Errors
/// The rule cannot be read.
pub fn look(rule: &str, live: &Value, desired: &Value, keeps: bool, is_root: bool) -> Result<Looked, String> {
    let mut looked = Looked::default();
    let Some(expr) = parse_rule(rule)? else { return Ok(looked) };
    let is_paired = is_paired(&expr);
    looked.is_paired = is_paired;
    looked.is_hereditary = is_paired || is_of_each(&expr);
    let root = Place { way: Vec::new(), schema: live, desired: Some(desired), keeps };
    let mut looker = Looker { root, is_root, is_paired, looked: &mut looked, scope: Vec::new() };
    looker.truth(&expr);
    if is_paired {
        // Whatever fails of it fails for two of the items.
        looked.view.kept = 2;
    }
    Ok(looked)
}

/// Whether the rule asks something of each item of `self`, one by one.
fn is_of_each(expr: &Expr) -> bool {
    matches!(expr, Expr::Macro(of) if of.kind == MacroKind::All && is_self(&of.target) && of.filter.is_none()
        && !mentions(&of.body, "self") && !mentions(&of.body, "oldSelf"))
}

/// Whether the rule asks of each item of `self` something that compares it with all others, once:
/// `self.all(a, self.exists_one(b, …))`, perhaps where a condition on `a` holds.
///
/// A list without some of its items passes where the whole list does, provided that each item passes alone; and if a
/// list fails, two of its items fail. For let `a` be an item, `m` how many items fit it, and the rule `F(a, m = 1)`,
/// which is no less true the more `m = 1` is. Without other items `m` shrinks. If it shrinks from 1 to 0, `a` does not
/// fit itself, and then passing alone says `F(a, false)`. And if `F(a, m = 1)` fails, then `m` is 0 or at least 2: either
/// `a` does not fit itself, and fails alone, or `a` and another item that fits it fail together. For an inner `all` both
/// are plain.
fn is_paired(expr: &Expr) -> bool {
    let Expr::Macro(of) = expr else { return false };
    of.kind == MacroKind::All
        && is_self(&of.target)
        && of.filter.is_none()
        && !mentions(&of.body, "oldSelf")
        && inner(&of.body) == Some(1)
}

fn is_self(expr: &Expr) -> bool {
    matches!(expr, Expr::Variable(name) if name == "self")
}

/// How many macros over `self` the expression has, each of them where the expression is no less true when they are. None:
/// it mentions `self` in another way.
fn inner(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Macro(of) if is_self(&of.target) => {
            let is_plain = of.filter.is_none() && !mentions(&of.body, "self");
            (is_plain && matches!(of.kind, MacroKind::All | MacroKind::ExistsOne)).then_some(1)
        }
        Expr::And(operands) | Expr::Or(operands) => operands.iter().map(inner).sum(),
        Expr::Conditional { cases, otherwise } => {
            let plain = cases.iter().all(|(when, _)| !mentions(when, "self"));
            let values = cases.iter().map(|(_, value)| value).chain([&**otherwise]).map(inner);
            if plain { values.sum() } else { None }
        }
        other => (!mentions(other, "self")).then_some(0),
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
            Term::Decided | Term::Constant(_) | Term::Absent => {}
            Term::Place(place) if kind(place.schema) == "boolean" => {
                self.view(&place);
            }
            Term::Place(_) | Term::Size(_) | Term::Count(_) | Term::Unknown => {
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
                Some(place) if is_absent(&place) => Term::Absent,
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
                Term::Absent => Term::Absent,
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
                        Term::Decided | Term::Constant(_) | Term::Absent => {}
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
            Expr::Macro(of) => self.run_over(of, false),
        }
    }

    fn has(&mut self, operand: &Expr, field: &str) -> Term<'a> {
        let step = [Step::Field { name: field.to_owned(), optional: false }];
        match self.place(operand).and_then(|place| self.follow(place, &step)) {
            Some(place) if is_absent(&place) => {}
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
                None => (name == "self" || name == "oldSelf").then(|| self.root.clone()),
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
            if is_absent(&place) {
                return Some(place);
            }
            place = match step {
                Step::Field { name, optional: false } => self.field(place, &unescape(name)?)?,
                Step::Index { index: Expr::Literal(Literal::String(key)), optional: false } => {
                    self.entry(place, key)?
                }
                Step::Index { index: Expr::Literal(Literal::Int(index)), optional: false } => {
                    let index = usize::try_from(*index).ok().filter(|index| *index < 64)?;
                    self.gap(FIXED);
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
        let is_resource = place.way.is_empty() && self.is_root || kw::embedded(place.schema);
        if place.way.is_empty() && self.is_root && name == "metadata" {
            return Some(Place {
                way: vec![Key::Field(name.to_owned())],
                schema: metadata(),
                desired: None,
                keeps: false,
            });
        }
        let desired = place.desired.and_then(|desired| kw::property(desired, name));
        if let Some(schema) = kw::property(place.schema, name) {
            let mut way = place.way;
            way.push(Key::Field(name.to_owned()));
            return Some(Place { way, schema, desired, keeps: false });
        }
        // What live does not describe it drops, so that no object has it, unless desired fills it in.
        let is_dropped = kw::additional(place.schema).is_none()
            && !kw::preserves(place.schema)
            && !place.keeps
            && !is_resource
            && kind(place.schema) == "object";
        if is_dropped && desired.is_some_and(|desired| kw::default_of(desired).is_none()) {
            return Some(absent(place));
        }
        self.entry(place, name)
    }

    /// The value of a map under a fixed key. The entry has to be kept.
    fn entry(&mut self, place: Place<'a>, key: &str) -> Option<Place<'a>> {
        let way = place.way.clone();
        let value = value(place)?;
        let map = self.looked.view.at(&way);
        map.kept += 1;
        map.keys.get_or_insert_default().words.insert(key.to_owned());
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
            _ if fixed || terms.iter().any(|term| matches!(term, Term::Absent)) => {}
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
            // So many items decide, and one more.
            (Term::Count(place), Term::Constant(Literal::Int(count)))
            | (Term::Constant(Literal::Int(count)), Term::Count(place)) => {
                self.view(&place).kept += usize::try_from(count.clamp(0, 100)).unwrap_or(0) + 1;
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
                self.view(place).words.insert(text.clone());
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
                    (Term::Constant(_) | Term::Decided | Term::Absent, Term::Constant(_)) => {}
                    _ => self.gap("a list that is made by the rule"),
                }
            }
            return Term::Decided;
        }
        let value = self.term(value);
        match (value, self.place(list)) {
            (_, Some(place)) if is_absent(&place) => {}
            (Term::Absent, Some(_)) => {}
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
                    if let Some(item) = item(place) {
                        self.view(&item);
                    }
                }
                self.gap(LOOKED_FOR);
            }
        }
        Term::Decided
    }

    fn call(&mut self, call: &Call) -> Term<'a> {
        let text = |expr: Option<&Expr>| match expr {
            Some(Expr::Literal(Literal::String(text))) => Some(text.clone()),
            _ => None,
        };
        match &call.args[..] {
            [Expr::Macro(of)] if call.function == "size" && of.kind == MacroKind::Filter => {
                if let Some(place) = self.place(&of.target).filter(|place| kind(place.schema) == "array") {
                    self.run_over(of, true);
                    return Term::Count(place);
                }
            }
            [Expr::Call(find), Expr::Literal(Literal::String(text))] if find.function == "find" => {
                if let Some(place) = self.found(find, &call.function, text) {
                    self.view(&place);
                    return Term::Decided;
                }
            }
            _ => {}
        }
        let terms: Vec<Term<'a>> = call.args.iter().map(|arg| self.term(arg)).collect();
        if terms.iter().any(|term| matches!(term, Term::Absent)) {
            return Term::Absent;
        }
        let argument = text(call.args.get(1));
        let mut terms = terms.into_iter();
        match (call.function.as_str(), terms.next(), argument) {
            ("size", Some(Term::Place(place)), None) => return Term::Size(place),
            ("type", Some(Term::Place(_)), None) => return Term::Decided,
            (function, Some(Term::Place(place)), Some(text))
                if matches!(kind(place.schema), "string" | "int-or-string") =>
            {
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

    /// `place.find("^([^/]+)").endsWith(text)` and its like as a pattern of the place: what is found is all up to a
    /// character.
    fn found(&mut self, find: &Call, function: &str, text: &str) -> Option<Place<'a>> {
        let [target, Expr::Literal(Literal::String(pattern))] = &find.args[..] else { return None };
        let inner = pattern.strip_prefix('^')?;
        let inner = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(inner);
        let mut ends = inner.strip_prefix("[^")?.strip_suffix("]+")?.chars();
        let (Some(end), None) = (ends.next(), ends.next()) else { return None };
        if text.is_empty() || text.contains(end) || !(end.is_ascii_alphanumeric() || "/:@=,_".contains(end)) {
            return None;
        }
        let place = self.place(target).filter(|place| kind(place.schema) == "string")?;
        let text = regex_syntax::escape(text);
        let pattern = match function {
            "startsWith" => format!(r"\A{text}"),
            "contains" => format!(r"\A[^{end}]*{text}"),
            "endsWith" => format!(r"\A[^{end}]*{text}(?:{end}|\z)"),
            _ => return None,
        };
        self.view(&place).patterns.insert(pattern);
        Some(place)
    }

    /// A macro over a list or map; `is_counted` says that only the number of items that it lets pass is looked at.
    fn run_over(&mut self, of: &Macro, is_counted: bool) -> Term<'a> {
        let target = self.place(&of.target);
        if target.is_none() {
            self.term(&of.target);
        }
        let kept = match of.kind {
            MacroKind::All | MacroKind::Exists => 1,
            MacroKind::ExistsOne => 2,
            MacroKind::Filter if is_counted => 1,
            _ => {
                self.gap("a macro that makes a list");
                2
            }
        };
        let (Some(target), [variable]) = (target, &of.variables[..]) else {
            self.gap("a macro over what is not a list of the object");
            return Term::Unknown;
        };
        if is_absent(&target) {
            return Term::Absent;
        }
        self.view(&target).kept += kept;
        let element = match kind(target.schema) {
            "array" => item(target.clone()),
            _ => value(target.clone()).map(|_| Place {
                way: target.way.iter().cloned().chain([Key::Name]).collect(),
                schema: text_schema(),
                desired: None,
                keeps: false,
            }),
        };
        let Some(element) = element else {
            self.gap("a macro over what is not a list of the object");
            return Term::Unknown;
        };
        // Inside of a macro over another list, an item would have to be kept for each item there.
        let is_within = |place: &Place<'_>| target.way.starts_with(&place.way);
        let is_mentioned = |(name, place): &(String, Place<'_>)| !is_within(place) && mentions(&of.body, name);
        if self.is_paired && target.way.is_empty() {
            self.view(&target).is_paired |= self.scope.iter().any(is_mentioned);
        } else if self.scope.iter().any(is_mentioned) {
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
        if is_counted || matches!(of.kind, MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne) {
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

/// What stands for all places that no object of live has.
static ABSENT: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::Null);

fn absent(place: Place<'_>) -> Place<'_> {
    Place { schema: &ABSENT, desired: None, ..place }
}

fn is_absent(place: &Place<'_>) -> bool {
    std::ptr::eq(place.schema, &*ABSENT)
}

fn item(place: Place<'_>) -> Option<Place<'_>> {
    let schema = place.schema.get("items")?;
    let desired = place.desired.and_then(|desired| desired.get("items"));
    let keeps = place.keeps || kw::preserves(place.schema);
    let mut way = place.way;
    way.push(Key::Item);
    Some(Place { way, schema, desired, keeps })
}

fn value(place: Place<'_>) -> Option<Place<'_>> {
    let schema = place.schema.get("additionalProperties").filter(|values| values.is_object())?;
    let desired = place.desired.and_then(|desired| desired.get("additionalProperties"));
    let mut way = place.way;
    way.push(Key::Value);
    Some(Place { way, schema, desired, keeps: false })
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

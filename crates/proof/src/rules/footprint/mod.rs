//! Computes the footprint of a rule: what it looks at.

mod calls;
mod macros;
mod normal;
mod place;
mod shape;
mod variables;

use serde_json::Value;

use super::examples;
use super::view::{Footprint, RuleView, ViewStep};
use crate::keywords as kw;
use gantry_k8s_cel::ast::{BinaryOperator, Expr, Literal, SelectionStep};
use gantry_k8s_cel::{parse_rule, unescape};
use normal::normal;
use place::{FootprintPlace, constraining_keywords, defaults_at, is_absent, item, kind};
use shape::{is_of_each, is_paired, uncounted};
pub(super) use variables::parts;

/// The kind of an expression, as far as it matters here.
enum Term<'a> {
    /// Determined by what is already recorded: a boolean, or one of finitely many constants.
    Decided,
    Constant(Literal),
    Place(FootprintPlace<'a>),
    /// A place that no object of live has: reading it always fails.
    Absent,
    Size(FootprintPlace<'a>),
    /// A string with all ASCII letters in upper or lower case.
    Cased(FootprintPlace<'a>, Case),
    /// The number of items of a list that satisfy a condition that is already recorded.
    Count(FootprintPlace<'a>),
    /// Anything else.
    Unknown,
}

/// Whether the value has no parts that the view could lack. What made a term unknown is a gap of its own.
fn is_scalar(term: &Term<'_>) -> bool {
    match term {
        Term::Place(place) => {
            matches!(kind(place.schema), "string" | "integer" | "number" | "boolean" | "int-or-string")
        }
        _ => true,
    }
}

/// A value that is always the same, as a literal. None for lists, objects and null.
fn constant(value: &Value) -> Option<Literal> {
    match value {
        Value::String(text) => Some(Literal::String(text.clone())),
        Value::Bool(value) => Some(Literal::Bool(*value)),
        Value::Number(number) => number.as_i64().map(Literal::Int).or_else(|| number.as_f64().map(Literal::Double)),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Upper,
    Lower,
}

struct FootprintReader<'a, 'l> {
    root: FootprintPlace<'a>,
    is_root: bool,
    /// Whether the rule has a shape in which the items of its list can be compared with each other.
    is_paired: bool,
    footprint: &'l mut Footprint,
    /// Variables of macros, with the elements that they stand for.
    scope: Vec<(String, FootprintPlace<'a>)>,
}

/// Unsupported features that do not hide any place from the view.
const FIXED: &str = "an item at a fixed index";
const LOOKED_FOR: &str = "a search for one value in another";
const CALCULATED: &str = "arithmetic on values";
const CHOSEN: &str = "a conditional between values";
const SIZED: &str = "a size that it does not compare with a constant";

impl Footprint {
    /// Whether the view contains every place that the rule looks at, even if not everything it looks at there.
    pub fn has_every_place(&self) -> bool {
        self.unsupported.iter().all(|gap| [FIXED, LOOKED_FOR, CALCULATED, CHOSEN, SIZED].contains(&&**gap))
    }
}

/// The footprint of a rule of the node that live describes by `live` and desired by `desired`.
///
/// `keeps`: whether the schema around the node keeps fields that `live` does not describe.
///
/// # Errors
/// The rule does not parse.
pub fn footprint(rule: &str, live: &Value, desired: &Value, keeps: bool, is_root: bool) -> Result<Footprint, String> {
    let mut footprint = Footprint::default();
    let Some(expr) = parse_rule(rule)? else { return Ok(footprint) };
    let expr = uncounted(expr);
    let is_paired = is_paired(&expr);
    footprint.is_paired = is_paired;
    footprint.is_hereditary = is_paired || is_of_each(&expr);
    let root = FootprintPlace { path: Vec::new(), schema: live, desired: Some(desired), keeps, filled: None };
    let mut reader = FootprintReader { root, is_root, is_paired, footprint: &mut footprint, scope: Vec::new() };
    reader.record_condition(&normal(expr));
    if !footprint.functions.is_empty() {
        let functions: Vec<&str> = footprint.functions.iter().map(String::as_str).collect();
        let words = examples::words(&[rule]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let numbers: Vec<i64> =
            rule.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
        let built = examples::built(&functions, &words, &numbers);
        footprint.texts.extend(built);
    }
    if is_paired {
        // If a list fails it, two of its items fail it.
        footprint.view.kept = 2;
    }
    Ok(footprint)
}

impl<'a> FootprintReader<'a, '_> {
    fn add_unsupported(&mut self, why: impl Into<String>) {
        self.footprint.unsupported.insert(why.into());
    }

    fn view(&mut self, place: &FootprintPlace<'_>) -> &mut RuleView {
        self.footprint.view.at(&place.path)
    }

    /// Records an expression that has to be a boolean.
    fn record_condition(&mut self, expr: &Expr) {
        match self.term(expr) {
            Term::Decided | Term::Constant(_) | Term::Absent => {}
            Term::Place(place) if kind(place.schema) == "boolean" => {
                self.view(&place);
            }
            Term::Place(_) | Term::Size(_) | Term::Cased(..) | Term::Count(_) | Term::Unknown => {
                self.add_unsupported("an expression that it does not compare with a constant")
            }
        }
    }

    fn term(&mut self, expr: &Expr) -> Term<'a> {
        match expr {
            Expr::Literal(literal) => {
                if let Literal::String(text) = literal {
                    self.footprint.texts.insert(text.clone());
                }
                Term::Constant(literal.clone())
            }
            Expr::TypeName(_) => Term::Decided,
            Expr::Path { root, steps } if matches!(**root, Expr::Map(_)) => self.looked_up(root, steps),
            Expr::Variable(_) | Expr::Path { .. } => match self.place(expr) {
                Some(place) if is_absent(&place) => Term::Absent,
                Some(place) => {
                    self.view(&place);
                    match place.filled {
                        Some(value) => constant(value).map_or(Term::Decided, Term::Constant),
                        None => Term::Place(place),
                    }
                }
                None => {
                    self.add_unsupported("a selection that is not supported");
                    Term::Unknown
                }
            },
            Expr::Has { operand, field } => self.has(operand, field),
            Expr::Not(operand) => {
                self.record_condition(operand);
                Term::Decided
            }
            Expr::Negate(operand) => match self.term(operand) {
                Term::Constant(Literal::Int(n)) => Term::Constant(Literal::Int(n.wrapping_neg())),
                Term::Constant(Literal::Double(n)) => Term::Constant(Literal::Double(-n)),
                Term::Decided => Term::Decided,
                Term::Absent => Term::Absent,
                _ => {
                    self.add_unsupported(CALCULATED);
                    Term::Unknown
                }
            },
            Expr::And(_) | Expr::Or(_) if self.known(expr).is_some() => Term::Decided,
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| self.record_condition(operand));
                Term::Decided
            }
            Expr::Conditional { cases, otherwise } => {
                let mut results = Vec::with_capacity(cases.len() + 1);
                let mut is_always = false;
                for (condition, value) in cases {
                    match self.known(condition) {
                        Some(false) => continue,
                        Some(true) => is_always = true,
                        None => self.record_condition(condition),
                    }
                    results.push(value);
                    if is_always {
                        break;
                    }
                }
                if !is_always {
                    results.push(otherwise);
                }
                for result in results {
                    match self.term(result) {
                        Term::Decided | Term::Constant(_) | Term::Absent => {}
                        Term::Place(place) if kind(place.schema) == "boolean" => {}
                        term if is_scalar(&term) => self.add_unsupported(CHOSEN),
                        _ => self.add_unsupported("a conditional between whole values"),
                    }
                }
                Term::Decided
            }
            Expr::Binary { first, rest } => self.binary(first, rest),
            Expr::List(items) => {
                for (item, _) in items {
                    self.term(item);
                }
                self.add_unsupported("a list that it builds");
                Term::Unknown
            }
            Expr::Map(entries) => {
                for (key, value, _) in entries {
                    self.term(key);
                    self.term(value);
                }
                self.add_unsupported("a map that it builds");
                Term::Unknown
            }
            Expr::Call(call) => self.call(call),
            Expr::Macro(of) => self.run_over(of, false),
        }
    }

    /// The constant value of a condition on fields that no object of live has. The rest of the expression cannot change
    /// it.
    fn known(&mut self, expr: &Expr) -> Option<bool> {
        match expr {
            Expr::Literal(Literal::Bool(value)) => Some(*value),
            Expr::Has { operand, field } => {
                let step = [SelectionStep::Field { name: field.clone(), optional: false }];
                let owner = self.place(operand)?;
                // On an absent object even `has()` fails.
                if is_absent(&owner) || !self.is_given(operand) {
                    return None;
                }
                let place = self.follow(owner, &step)?;
                is_absent(&place).then_some(false)
            }
            Expr::Not(operand) => self.known(operand).map(|value| !value),
            Expr::And(operands) | Expr::Or(operands) => {
                let deciding = matches!(expr, Expr::Or(_));
                let known: Vec<_> = operands.iter().map(|operand| self.known(operand)).collect();
                if known.contains(&Some(deciding)) {
                    return Some(deciding);
                }
                known.iter().all(Option::is_some).then_some(!deciding)
            }
            _ => None,
        }
    }

    /// Whether every object that live accepts has this value.
    fn is_given(&mut self, expr: &Expr) -> bool {
        let Expr::Path { root, steps } = expr else { return matches!(expr, Expr::Variable(_)) };
        let mut place = self.place(root).filter(|_| self.is_given(root));
        for step in steps {
            let Some(around) = place else { return false };
            let is_written = |name: &str| {
                let is_nullable = kw::property(around.schema, name).is_some_and(|own| kw::flag(own, "nullable"));
                kw::is_to_be_written(around.schema, name) && !is_nullable
            };
            let SelectionStep::Field { name, optional: false } = step else { return false };
            if !unescape(name).is_some_and(|name| is_written(&name)) {
                return false;
            }
            place = self.follow(around, std::slice::from_ref(step));
        }
        place.is_some()
    }

    fn has(&mut self, operand: &Expr, field: &str) -> Term<'a> {
        let step = [SelectionStep::Field { name: field.to_owned(), optional: false }];
        match self.place(operand).and_then(|place| self.follow(place, &step)) {
            // The enclosing object determines whether the expression can be evaluated at all.
            Some(place) if is_absent(&place) => {
                if let Some(owner) = self.place(operand).filter(|owner| !is_absent(owner)) {
                    self.view(&owner);
                }
            }
            Some(place) => {
                self.view(&place);
            }
            None => self.add_unsupported("a selection that is not supported"),
        }
        Term::Decided
    }

    fn binary(&mut self, first: &Expr, rest: &[(BinaryOperator, Expr)]) -> Term<'a> {
        if let [(BinaryOperator::In, list)] = rest {
            return self.membership_term(first, list);
        }
        let mut terms = vec![self.term(first)];
        terms.extend(rest.iter().map(|(_, operand)| self.term(operand)));
        let is_comparison = |operator: &BinaryOperator| {
            use BinaryOperator::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
            matches!(operator, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
        };
        let fixed = terms.iter().all(|term| matches!(term, Term::Decided | Term::Constant(_)));
        match rest {
            _ if fixed || terms.iter().any(|term| matches!(term, Term::Absent)) => {}
            [(operator, _)] if is_comparison(operator) => {
                let is_order = !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
                let mut terms = terms.into_iter();
                if let (Some(left), Some(right)) = (terms.next(), terms.next()) {
                    self.compare(left, right, is_order);
                }
            }
            _ if terms.iter().all(is_scalar) => self.add_unsupported(CALCULATED),
            _ => self.add_unsupported("arithmetic on whole values"),
        }
        Term::Decided
    }

    fn compare(&mut self, left: Term<'a>, right: Term<'a>, is_order: bool) {
        match (left, right) {
            (Term::Place(place), Term::Constant(constant)) | (Term::Constant(constant), Term::Place(place)) => {
                self.record_constant(&place, &constant, is_order);
            }
            (Term::Size(place), Term::Constant(Literal::Int(size)))
            | (Term::Constant(Literal::Int(size)), Term::Size(place)) => {
                if let Ok(size) = u64::try_from(size) {
                    self.view(&place).sizes.insert(size);
                }
            }
            // This many items decide, plus one.
            (Term::Count(place), Term::Constant(Literal::Int(count)))
            | (Term::Constant(Literal::Int(count)), Term::Count(place)) => {
                self.view(&place).kept += usize::try_from(count.clamp(0, 100)).unwrap_or(0) + 1;
            }
            (Term::Cased(place, case), Term::Constant(Literal::String(text)))
            | (Term::Constant(Literal::String(text)), Term::Cased(place, case))
                if !is_order =>
            {
                self.record_case_comparison(&place, case, &text, |text| format!(r"\A{text}\z"));
            }
            (Term::Place(left), Term::Place(right)) => self.compared_with(&left, &right, is_order),
            (Term::Size(_), _) | (_, Term::Size(_)) => self.add_unsupported(SIZED),
            _ => self.add_unsupported("a value that it does not compare with a constant"),
        }
    }

    fn record_constant(&mut self, place: &FootprintPlace<'a>, constant: &Literal, is_order: bool) {
        let number_or_text = matches!(kind(place.schema), "int-or-string");
        match (kind(place.schema), constant) {
            (_, Literal::Null) | ("boolean", Literal::Bool(_)) => {}
            ("string" | "int-or-string", Literal::String(text)) => {
                if is_order {
                    self.add_unsupported("the order of strings");
                }
                self.view(place).words.insert(text.clone());
            }
            ("integer" | "int-or-string", Literal::Int(number)) => {
                self.view(place).integers.insert(*number);
                if is_order && number_or_text {
                    self.add_unsupported("the order of values that can be strings");
                }
            }
            ("number", Literal::Double(number)) => self.view(place).fractions.push(*number),
            #[allow(clippy::cast_precision_loss)] // A neighbour of the constant is as good.
            ("number", Literal::Int(number)) => self.view(place).fractions.push(*number as f64),
            _ => self.add_unsupported("a constant of another type"),
        }
    }

    fn compared_with(&mut self, left: &FootprintPlace<'a>, right: &FootprintPlace<'a>, is_order: bool) {
        let kinds = (kind(left.schema), kind(right.schema));
        let is_scalar = |kind: &str| matches!(kind, "string" | "integer" | "number" | "boolean");
        if kinds.0 != kinds.1 || !is_scalar(kinds.0) || is_order && kinds.0 == "string" {
            self.add_unsupported("a comparison of whole values");
        }
        // Comparing values of several items with each other involves more than two values.
        let last_list =
            |place: &FootprintPlace<'_>| place.path.iter().rposition(|key| !matches!(key, ViewStep::Field(_)));
        let (a, b) = (last_list(left), last_list(right));
        if a != b || a.is_some_and(|end| left.path[..=end] != right.path[..=end]) {
            self.add_unsupported("a comparison of values in different items");
        }
        if constraining_keywords(left.schema) != constraining_keywords(right.schema) {
            self.add_unsupported("a comparison of values with different schemas");
        }
        // A default of one place can equal a written value of the other.
        for place in [left, right] {
            for schema in [Some(self.root.schema), self.root.desired].into_iter().flatten() {
                defaults_at(schema, &place.path).into_iter().for_each(|default| self.view(place).add_value(default));
            }
        }
        self.footprint.pairs.push((left.path.clone(), right.path.clone()));
    }

    /// `value in list`
    fn membership_term(&mut self, value: &Expr, list: &Expr) -> Term<'a> {
        if let Expr::List(items) = list {
            let value = self.term(value);
            for (item, _) in items {
                match (&value, self.term(item)) {
                    (Term::Place(place), Term::Constant(constant)) => {
                        self.record_constant(&place.clone(), &constant, false)
                    }
                    (Term::Cased(place, case), Term::Constant(Literal::String(text))) => {
                        self.record_case_comparison(&place.clone(), *case, &text, |text| format!(r"\A{text}\z"));
                    }
                    (Term::Constant(_) | Term::Decided | Term::Absent, Term::Constant(_)) => {}
                    _ => self.add_unsupported("a list that it builds"),
                }
            }
            return Term::Decided;
        }
        let value = self.term(value);
        match (value, self.place(list)) {
            (_, Some(place)) if is_absent(&place) => {}
            (value, Some(FootprintPlace { filled: Some(Value::Array(items)), .. })) => match value {
                Term::Place(place) => {
                    let constants: Vec<Literal> = items.iter().filter_map(constant).collect();
                    constants.iter().for_each(|constant| self.record_constant(&place, constant, false));
                }
                Term::Constant(_) | Term::Decided | Term::Absent => {}
                _ => self.add_unsupported(LOOKED_FOR),
            },
            (Term::Absent, Some(_)) => {}
            (Term::Constant(constant), Some(place)) if kind(place.schema) == "array" => {
                self.view(&place).kept += 1;
                match item(place) {
                    Some(item) => self.record_constant(&item, &constant, false),
                    None => self.add_unsupported("a list whose items are not described"),
                }
            }
            (Term::Constant(Literal::String(key)), Some(place)) => {
                let is_map = self.entry(place, &key).is_some();
                if !is_map {
                    self.add_unsupported("a search for a field by name");
                }
            }
            (_, place) => {
                if let Some(place) = place {
                    self.view(&place).kept += 1;
                    if let Some(item) = item(place) {
                        self.view(&item);
                    }
                }
                self.add_unsupported(LOOKED_FOR);
            }
        }
        Term::Decided
    }
}

//! The footprint of function calls, and of lookups in map literals.

use super::place::kind;
use super::{Case, FootprintPlace, FootprintReader, Term};
use crate::rules::examples;
use gantry_k8s_cel::ast::{Expr, FunctionCall, Literal, MacroKind, SelectionStep};

impl<'a> FootprintReader<'a, '_> {
    /// `{'a': 1, 'b': 2}[place]`: one of finitely many constants, selected by the key that the value equals.
    pub(super) fn looked_up(&mut self, map: &Expr, steps: &[SelectionStep]) -> Term<'a> {
        let constants = |entries: &[(Expr, Expr, bool)]| -> Option<Vec<Literal>> {
            let entry = |(key, value, optional): &(Expr, Expr, bool)| match (key, value) {
                (Expr::Literal(key), Expr::Literal(_)) if !optional => Some(key.clone()),
                _ => None,
            };
            entries.iter().map(entry).collect()
        };
        if let (Expr::Map(entries), [SelectionStep::Index { index, optional: false }]) = (map, steps)
            && let Some(keys) = constants(entries)
        {
            match self.term(index) {
                Term::Place(place) => keys.iter().for_each(|key| self.record_constant(&place, key, false)),
                Term::Absent => return Term::Absent,
                Term::Constant(_) | Term::Decided => {}
                _ => self.add_unsupported("a map that it builds"),
            }
            return Term::Decided;
        }
        self.add_unsupported("a selection that is not supported");
        Term::Unknown
    }

    pub(super) fn call(&mut self, call: &FunctionCall) -> Term<'a> {
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
        if terms.iter().all(|term| matches!(term, Term::Constant(_) | Term::Decided)) {
            return Term::Decided;
        }
        self.footprint.functions.insert(call.function.clone());
        self.footprint.texts.extend(examples::texts(&call.function).iter().map(|text| (*text).to_owned()));
        let argument = text(call.args.get(1));
        let mut terms = terms.into_iter();
        match (call.function.as_str(), terms.next(), argument) {
            ("upperAscii", Some(Term::Place(place)), None) if kind(place.schema) == "string" => {
                return Term::Cased(place, Case::Upper);
            }
            ("lowerAscii", Some(Term::Place(place)), None) if kind(place.schema) == "string" => {
                return Term::Cased(place, Case::Lower);
            }
            (function @ ("contains" | "startsWith" | "endsWith"), Some(Term::Cased(place, case)), Some(text)) => {
                self.record_case_comparison(&place, case, &text, |text| match function {
                    "startsWith" => format!(r"\A{text}"),
                    "endsWith" => format!(r"{text}\z"),
                    _ => text.to_owned(),
                });
                return Term::Decided;
            }
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
        self.add_unsupported(format!("{}()", call.function));
        Term::Unknown
    }

    /// `place.find("^([^/]+)").endsWith(text)` and similar calls as a pattern of the place: `find` returns everything
    /// up to a character.
    fn found(&mut self, find: &FunctionCall, function: &str, text: &str) -> Option<FootprintPlace<'a>> {
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

    /// Records a comparison of an upper- or lower-cased string with a constant, as a pattern of the string itself.
    pub(super) fn record_case_comparison(
        &mut self,
        place: &FootprintPlace<'a>,
        case: Case,
        text: &str,
        around: impl Fn(&str) -> String,
    ) {
        let has_it = |c: char| if case == Case::Upper { !c.is_ascii_lowercase() } else { !c.is_ascii_uppercase() };
        // An upper-case string never contains a lower-case letter, and vice versa.
        if text.chars().all(has_it) {
            let either = |c: char| match c.is_ascii_alphabetic() {
                true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
                false => regex_syntax::escape(c.encode_utf8(&mut [0; 4])),
            };
            let pattern = around(&text.chars().map(either).collect::<String>());
            self.view(place).patterns.insert(pattern);
        }
    }
}

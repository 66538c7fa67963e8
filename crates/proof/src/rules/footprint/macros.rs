//! The footprint of macros.

use serde_json::Value;

use super::place::{is_absent, item, kind, value};
use super::variables::mentions;
use super::{FootprintPlace, FootprintReader, Term};
use crate::keywords as kw;
use crate::rules::view::ViewStep;
use gantry_k8s_cel::ast::{Macro, MacroKind};

impl<'a> FootprintReader<'a, '_> {
    /// Records a macro over a list that desired fills in: its condition on each of the items.
    fn run_over_filled(&mut self, of: &Macro, target: &FootprintPlace<'a>, filled: &'a Value) -> Term<'a> {
        let (Value::Array(items), [variable]) = (filled, &of.variables[..]) else {
            self.add_unsupported("a macro over something other than a list or map of the object");
            return Term::Unknown;
        };
        self.view(target);
        for item in items {
            let element = FootprintPlace { filled: Some(item), desired: None, ..target.clone() };
            self.scope.push((variable.clone(), element));
            of.filter.iter().for_each(|filter| self.record_condition(filter));
            self.record_condition(&of.body);
            self.scope.pop();
        }
        match of.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => Term::Decided,
            _ => Term::Unknown,
        }
    }

    /// Records a macro over a list or map. `is_counted`: only the number of items that pass it matters.
    pub(super) fn run_over(&mut self, of: &Macro, is_counted: bool) -> Term<'a> {
        let target = self.place(&of.target);
        if target.is_none() {
            self.term(&of.target);
        }
        let kept = match of.kind {
            MacroKind::All | MacroKind::Exists => 1,
            MacroKind::ExistsOne => 2,
            MacroKind::Filter if is_counted => 1,
            _ => {
                self.add_unsupported("a macro that builds a list");
                2
            }
        };
        let (Some(target), [variable]) = (target, &of.variables[..]) else {
            self.add_unsupported("a macro over something other than a list or map of the object");
            return Term::Unknown;
        };
        if is_absent(&target) {
            return Term::Absent;
        }
        if let Some(filled) = target.filled {
            return self.run_over_filled(of, &target, filled);
        }
        self.view(&target).kept += kept;
        let element = match kind(target.schema) {
            "array" => item(target.clone()),
            _ => value(target.clone()).map(|_| FootprintPlace {
                path: target.path.iter().cloned().chain([ViewStep::Name]).collect(),
                schema: &kw::TEXT,
                desired: None,
                keeps: false,
                filled: None,
            }),
        };
        let Some(element) = element else {
            self.add_unsupported("a macro over something other than a list or map of the object");
            return Term::Unknown;
        };
        // Inside a macro over another list, an item would have to be kept for each item of that list.
        let is_within = |place: &FootprintPlace<'_>| target.path.starts_with(&place.path);
        let is_mentioned = |(name, place): &(String, FootprintPlace<'_>)| !is_within(place) && mentions(&of.body, name);
        if self.is_paired && target.path.is_empty() {
            self.view(&target).is_paired |= self.scope.iter().any(is_mentioned);
        } else if self.scope.iter().any(is_mentioned) {
            self.add_unsupported("a comparison of items of two lists");
            self.view(&target).kept += 1;
        }
        self.view(&element);
        self.scope.push((variable.clone(), element));
        if let Some(filter) = &of.filter {
            self.record_condition(filter);
        }
        let is_truth = matches!(of.kind, MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne | MacroKind::Filter);
        if is_truth {
            self.record_condition(&of.body);
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

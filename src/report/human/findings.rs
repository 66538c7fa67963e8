//! Which findings are shown in full, and what is said of the others.
//!
//! Hundreds of findings must stay readable, so the first ones of each object are shown and the rest is counted by
//! rule. With many objects each one gets less room, because the second object tells a reader more than the tenth
//! finding of the first.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::causes::{Cause, ObjectCauses};
use super::pen::{self, Pen};
use super::{Excerpts, HumanOptions, finding};
use crate::report::Severity;
use crate::text;
use crate::ui::color::Role;

/// This many findings are shown over all objects (unless `verbose`).
const SHOWN: usize = 30;
/// This many objects beyond them get a line of their own.
const COUNTED_OBJECTS: usize = 10;
/// This many rules are named where findings are only counted.
const COUNTED_RULES: usize = 6;

pub fn write(
    objects: &[ObjectCauses<'_>],
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let loudest_hidden = match (options.verbose, options.quiet) {
        (true, _) => None,
        (false, true) => Some(Severity::Warning),
        (false, false) => Some(Severity::Info),
    };
    let is_shown = |cause: &&Cause<'_>| loudest_hidden.is_none_or(|hidden| cause.severity() < hidden);
    let objects: Vec<(&ObjectCauses<'_>, Vec<&Cause<'_>>)> = objects
        .iter()
        .map(|object| (object, object.causes.iter().filter(is_shown).collect::<Vec<_>>()))
        .filter(|(_, causes)| !causes.is_empty())
        .collect();

    let headings = objects.len() > 1;
    let (each, most) = match options.verbose {
        true => (usize::MAX, usize::MAX),
        false => (options.max_findings_per_object.min(SHOWN / objects.len().max(1)).max(1), SHOWN),
    };
    let mut explained = BTreeSet::new();
    let mut all_shown = true;
    for (object, causes) in objects.iter().take(most) {
        if headings {
            pen.blank()?;
            heading(object, causes, pen)?;
        }
        for cause in causes.iter().take(each) {
            pen.blank()?;
            // Where to read more about a rule is said once.
            let explain = explained.insert(cause.finding.rule.as_str());
            finding::write(cause, explain, options, excerpts, pen)?;
        }
        if causes.len() > each {
            let rest = &causes[each..];
            pen.blank()?;
            pen.wrapped("", 2, &format!("… and {} more here: {}", rest.len(), by_rule(rest)))?;
            all_shown = false;
        }
    }
    if objects.len() > most {
        let rest = &objects[most..];
        pen.blank()?;
        for (object, causes) in rest.iter().take(COUNTED_OBJECTS) {
            heading(object, causes, pen)?;
        }
        let uncounted = rest.len().saturating_sub(COUNTED_OBJECTS);
        if uncounted > 0 {
            pen.line(&format!("… and {}", text::count(uncounted, "more object")))?;
        }
        let causes: Vec<&Cause<'_>> = rest.iter().flat_map(|(_, causes)| causes.iter().copied()).collect();
        pen.wrapped("", 2, &format!("In these {}: {}", text::count(rest.len(), "object"), by_rule(&causes)))?;
        all_shown = false;
    }
    if !all_shown {
        pen.blank()?;
        let hint =
            pen.paint.text(Role::Faint, "Not every finding is shown: -v shows all of them, -o json has them as data.");
        pen.line(&hint)?;
    }
    Ok(())
}

/// `customresourcedefinition/samples.test.example.com: 2 errors`
fn heading(object: &ObjectCauses<'_>, causes: &[&Cause<'_>], pen: &mut Pen<'_>) -> io::Result<()> {
    let name = object.object.map_or_else(|| "the plan".to_owned(), ToString::to_string);
    let name = pen.paint.text(Role::Heading, &text::cut(&text::sanitize(&name), 300));
    pen.line(&format!("{name}: {}", pen::severities(causes.iter().map(|cause| cause.severity()))))
}

/// `190 NoExistingFieldRemoved, 100 NoTypeChanged`, the most frequent first.
fn by_rule(causes: &[&Cause<'_>]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for cause in causes {
        *counts.entry(&cause.finding.rule).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let mut words: Vec<String> = counts
        .iter()
        .take(COUNTED_RULES)
        .map(|(rule, number)| format!("{number} {}", text::cut(&text::sanitize(rule), 60)))
        .collect();
    if counts.len() > COUNTED_RULES {
        words.push(format!("{} of other rules", counts[COUNTED_RULES..].iter().map(|(_, n)| n).sum::<usize>()));
    }
    words.join(", ")
}

//! The first lines: the target, and what the deploy would do.

use std::io;

use super::HumanOptions;
use super::pen::Pen;
use crate::view::counts::{ACTIONS, action_word};
use crate::view::harm::HarmSummary;
use crate::view::operators;
use crate::{ChangeEntry, Report};
use gantry_core::finding::Action;
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The maximum number of changed objects that are listed; with more, only those that are deleted (unless `verbose`).
const LISTED: usize = 5;
/// The maximum number of deleted objects that are listed (unless `verbose`).
const DELETED_LISTED: usize = 50;
/// Before the name of an object that leaves a bundle.
const OLM_DELETES: &str = "OLM deletes: ";
/// The column of the values of the header.
const INDENT: usize = 9;
/// The column of the numbers of the summary.
const COLUMN: usize = "unchanged".len() + 1;
pub fn write(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    target(report, options, pen)?;
    summary(report, options, pen)?;
    if options.quiet {
        return Ok(());
    }
    changes(report, options, pen)?;
    for line in operators::lines(report) {
        pen.line(&format!("{}{line}", " ".repeat(INDENT)))?;
    }
    Ok(())
}

/// Which objects suffer from what blocks.
pub fn harm(report: &Report, pen: &mut Pen<'_>) -> io::Result<()> {
    let Some(harm) = HarmSummary::new(report, None) else { return Ok(()) };
    pen.wrapped(&text::pad("Objects", INDENT), INDENT, &harm.sentence())
}

/// The changed objects if they are few; otherwise those that are deleted, also if they are created again.
fn changes(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    let listed = |change: &&ChangeEntry| options.verbose || change.action != Action::Unchanged;
    let mut listed: Vec<&ChangeEntry> = report.changes.iter().filter(listed).collect();
    let mut left_out = 0;
    if listed.len() > LISTED && !options.verbose {
        listed.retain(|change| matches!(change.action, Action::Delete | Action::Replace));
        left_out = listed.len().saturating_sub(DELETED_LISTED);
        listed.truncate(DELETED_LISTED);
    }
    for change in listed {
        let object = change.object.to_string();
        let action = paint_action(change.action, pen);
        pen.line(&format!("{}{action}{}", " ".repeat(INDENT), text::cut(&text::sanitize(&object), 300)))?;
    }
    if left_out > 0 {
        pen.line(&format!("{}… and {left_out} more (-v lists all)", " ".repeat(INDENT)))?;
    }
    Ok(())
}

/// The target.
pub fn target(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    if report.target.is_empty() || options.quiet {
        return Ok(());
    }
    let heading = pen.paint.text(TextRole::Heading, &text::pad("Target", INDENT));
    pen.line(&format!("{heading}{}", text::cut(&text::sanitize(&report.target), 300)))
}

/// How many objects it would create, update and leave alone.
pub fn summary(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    if options.quiet {
        return Ok(());
    }
    let mut heading = pen.paint.text(TextRole::Heading, &text::pad("Plan", INDENT));
    for action in ACTIONS {
        let changes: Vec<&ChangeEntry> = report.changes.iter().filter(|change| change.action == action).collect();
        if changes.is_empty() {
            continue;
        }
        let prefix = format!("{heading}{}", paint_action(action, pen));
        heading = " ".repeat(INDENT);
        pen.listed(&prefix, INDENT + COLUMN, &by_kind(&changes))?;
    }
    deleted_by_olm(report, options, pen)
}

/// The objects that leave a bundle.
fn deleted_by_olm(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    let most = if options.verbose { usize::MAX } else { DELETED_LISTED };
    for object in report.deleted_by_olm.iter().take(most) {
        let action = pen.paint.text(TextRole::Error, OLM_DELETES);
        let object = object.to_string();
        pen.line(&format!("{}{action}{}", " ".repeat(INDENT), text::cut(&text::sanitize(&object), 300)))?;
    }
    match report.deleted_by_olm.len().checked_sub(most) {
        Some(more) if more > 0 => {
            pen.line(&format!("{}{OLM_DELETES}… and {more} more (-v lists all)", " ".repeat(INDENT)))
        }
        _ => Ok(()),
    }
}

/// `24 (13 CustomResourceDefinition, 4 ClusterRole)`: every kind, the most frequent first.
fn by_kind(changes: &[&ChangeEntry]) -> Vec<String> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for change in changes {
        match kinds.iter_mut().find(|(kind, _)| *kind == change.object.kind) {
            Some((_, number)) => *number += 1,
            None => kinds.push((&change.object.kind, 1)),
        }
    }
    kinds.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let mut kinds: Vec<String> =
        kinds.iter().map(|(kind, number)| format!("{number} {}", text::cut(&text::sanitize(kind), 100))).collect();
    if let Some(first) = kinds.first_mut() {
        first.insert_str(0, &format!("{} (", changes.len()));
    }
    kinds.last_mut().into_iter().for_each(|last| last.push(')'));
    kinds
}

fn paint_action(action: Action, pen: &Pen<'_>) -> String {
    // A word that is longer than the column is followed by a space, too.
    let columns = COLUMN.max(action_word(action).len() + 1);
    pen.paint.text(role(action), &text::pad(action_word(action), columns))
}

pub fn role(action: Action) -> TextRole {
    match action {
        Action::Create => TextRole::Good,
        Action::Update | Action::Adopt | Action::Orphan => TextRole::Warning,
        Action::Unchanged | Action::Skip | Action::InstalledByOlm => TextRole::Faint,
        Action::Replace | Action::Delete | Action::Unknown => TextRole::Error,
    }
}

//! The first lines: where the deploy goes and what it would do.

use std::io;

use super::HumanOptions;
use super::pen::Pen;
use crate::report::{Action, ChangeEntry, Report};
use crate::text;
use crate::ui::color::Role;

/// More objects than this are not listed (unless `verbose`).
const LISTED: usize = 10;
/// Where the values of the header stand.
const INDENT: usize = 9;

pub fn write(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    if options.quiet {
        return Ok(());
    }
    if !report.target.is_empty() {
        let heading = pen.paint.text(Role::Heading, &text::pad("Target", INDENT));
        pen.line(&format!("{heading}{}", text::cut(&text::sanitize(&report.target), 300)))?;
    }
    if report.changes.is_empty() {
        return Ok(());
    }
    let heading = pen.paint.text(Role::Heading, &text::pad("Plan", INDENT));
    let objects = text::count(report.changes.len(), "object");
    pen.line(&format!("{heading}{objects}: {}", counts(&report.changes)))?;

    let listed = |change: &&ChangeEntry| options.verbose || change.action != Action::Unchanged;
    let listed: Vec<&ChangeEntry> = report.changes.iter().filter(listed).collect();
    let shown = if options.verbose { listed.len() } else { LISTED };
    for change in listed.iter().take(shown) {
        let object = change.object.to_string();
        let action = paint_action(change.action, pen);
        pen.line(&format!("{}{action} {}", " ".repeat(INDENT), text::cut(&text::sanitize(&object), 300)))?;
    }
    if listed.len() > shown {
        let rest = format!("{}… and {} more (-v lists all)", " ".repeat(INDENT), listed.len() - shown);
        let rest = pen.paint.text(Role::Faint, &rest);
        pen.line(&rest)?;
    }
    Ok(())
}

/// `2 create, 1 unchanged`
pub fn counts(changes: &[ChangeEntry]) -> String {
    let actions = [Action::Create, Action::Update, Action::Delete, Action::Unchanged, Action::Unknown];
    let words = actions.into_iter().filter_map(|action| {
        let number = changes.iter().filter(|change| change.action == action).count();
        (number > 0).then(|| format!("{number} {}", word(action)))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Unchanged => "unchanged",
        Action::Delete => "delete",
        Action::Unknown => "unread",
    }
}

fn paint_action(action: Action, pen: &Pen<'_>) -> String {
    let role = match action {
        Action::Create => Role::Good,
        Action::Update => Role::Warning,
        Action::Unchanged => Role::Faint,
        Action::Delete | Action::Unknown => Role::Error,
    };
    pen.paint.text(role, &text::pad(word(action), 9))
}

//! What changes in each object, line by line.

use std::collections::BTreeMap;
use std::io;

use super::HumanOptions;
use super::pen::Pen;
use super::plan;
use crate::view::counts::action_word;
use crate::{ChangeEntry, Report};
use gantry_core::diff::{Diff, LineKind};
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The maximum number of lines of a run, unless all are shown.
const MOST_LINES: usize = 1000;

/// The heading of diffs that the server did not compute.
const APPROXIMATE: &str = "≈";

pub fn has_diffs(report: &Report) -> bool {
    report.changes.iter().any(|change| change.diff.is_some())
}

pub fn write(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    if options.quiet {
        return Ok(());
    }
    let mut room = if options.verbose { usize::MAX } else { MOST_LINES };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    // No blank line between objects of one line each.
    let mut was_long = true;
    for change in &report.changes {
        let Some(diff) = &change.diff else { continue };
        let is_long = !diff.lines.is_empty() || diff.omitted > 0;
        if is_long || was_long {
            pen.blank()?;
        }
        was_long = is_long;
        write_heading(change, diff, pen)?;
        let shown = diff.lines.len().min(room);
        room -= shown;
        for line in &diff.lines[..shown] {
            let (mark, role) = match line.is {
                LineKind::Context => (' ', None),
                LineKind::Removed => ('-', Some(TextRole::Error)),
                LineKind::Added => ('+', Some(TextRole::Good)),
                LineKind::Note => (' ', Some(TextRole::Faint)),
            };
            let line = format!("{mark} {}", text::sanitize_line(&line.text));
            let line = line.trim_end();
            pen.line(&role.map_or_else(|| line.to_owned(), |role| pen.paint.text(role, line)))?;
        }
        let rest = diff.lines.len() - shown + diff.omitted;
        if rest > 0 {
            let note = format!("  … {} (-v shows all)", text::count(rest, "more line"));
            pen.line(&pen.paint.text(TextRole::Faint, &note))?;
        }
        if let Some(reason) = &diff.approximate {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if !reasons.is_empty() {
        pen.blank()?;
        pen.line(&format!("{APPROXIMATE} is computed by gantry, without the server's defaults and admission:"))?;
    }
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(reason, objects)| {
            text::cut(&format!("{}: {}", text::count(objects, "object"), text::sanitize(reason)), 300).into_owned()
        })
        .collect();
    if !reasons.is_empty() {
        pen.wrapped("  ", 2, &reasons.join("; "))?;
    }
    pen.blank()
}

/// `update deployment.apps/web -n default  (deploy.yaml:12)`
fn write_heading(change: &ChangeEntry, diff: &Diff, pen: &mut Pen<'_>) -> io::Result<()> {
    let approximate = if diff.approximate.is_some() { format!("{APPROXIMATE} ") } else { String::new() };
    let object = change.object.to_string();
    let place = change.source.as_ref().map(|source| format!("  ({}:{})", source.file, source.line));
    let place = place.unwrap_or_default();
    let action = pen.paint.text(plan::role(change.action), action_word(change.action));
    let object = pen.paint.text(TextRole::Heading, &text::cut(&text::sanitize(&object), 300));
    pen.line(&format!("{approximate}{action} {object}{}", text::cut(&text::sanitize(&place), 300)))
}

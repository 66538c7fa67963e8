//! The errors of the run: the place, what is wrong, the next step.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::pen::Pen;
use super::{Excerpts, HumanOptions, finding};
use crate::ErrorEntry;
use crate::view::excerpt;
use gantry_core::finding::{Severity, Source};
use gantry_core::problem::{Log, Problem};
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The maximum length of a document that is searched for its kind. Lines of longer ones are not shown.
const LONGEST_DOCUMENT: usize = 20_000;

/// The maximum number of lines below the title of a problem: the causes of a refusal, the objects of a conflict.
const MOST_LINES: usize = 100;
/// The maximum number of problems that are shown, unless `verbose`; the others are counted.
const SHOWN: usize = 20;

/// Writes problems, separated by blank lines.
pub fn write_problems(
    problems: &[Problem],
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut errors: Vec<ErrorEntry> = problems.iter().map(ErrorEntry::from).collect();
    if options.redact {
        errors.iter_mut().for_each(ErrorEntry::redact);
    }
    write(&errors, options, excerpts, &mut Pen::new(options, out))
}

/// Writes the errors of a report.
pub fn write(
    errors: &[ErrorEntry],
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let shown = if options.verbose { errors.len() } else { SHOWN };
    for (index, error) in errors.iter().take(shown).enumerate() {
        if index > 0 {
            pen.blank()?;
        }
        // Only indented lines continue a message. Any other line break is part of untrusted text and is escaped.
        let (title, rest) = error.message.split_once("\n  ").unwrap_or((&error.message, ""));
        finding::write_title("error", TextRole::Error, title.trim_end(), pen)?;
        // Show an excerpt only with a column: the line alone does not show what is wrong.
        let hide = error.source.as_ref().is_some_and(|at| at.column.is_none() || may_be_secret(at, excerpts));
        let gutter = finding::draw_place(error.source.as_ref(), None, Severity::Error, hide, excerpts, pen)?;
        let bar = pen.paint.text(TextRole::Frame, "|");
        for line in rest.lines().take(MOST_LINES) {
            let line = text::sanitize(line.strip_prefix("  ").unwrap_or(line)).into_owned();
            pen.line(&format!("{} {bar} {}", " ".repeat(gutter), text::cut(&line, 500)))?;
        }
        if let Some(Log { pod, container, lines }) = error.log.as_deref() {
            pen.line(&format!("{} {bar}", " ".repeat(gutter)))?;
            let head = text::sanitize(&format!("the last lines of container {container} in pod/{pod}:")).into_owned();
            pen.line(&format!("{} {bar} {}", " ".repeat(gutter), text::cut(&head, 500)))?;
            for line in lines.iter().take(MOST_LINES) {
                let line = text::sanitize(line);
                pen.line(&format!("{} {bar}   {}", " ".repeat(gutter), text::cut(&line, 500)))?;
            }
        }
        if let Some(help) = &error.help {
            let help = text::sanitize_block(help);
            let sign = pen.paint.text(TextRole::Frame, "=");
            let label = pen.paint.text(TextRole::Heading, "help");
            let prefix = format!("{} {sign} {label}: ", " ".repeat(gutter));
            pen.wrapped(&prefix, gutter + 9, &text::cut_between_commands(&help, 2000))?;
        }
    }
    if errors.len() > shown {
        let rest = &errors[shown..];
        let files: BTreeSet<&str> = rest.iter().filter_map(|error| Some(&*error.source.as_ref()?.file)).collect();
        let places = if files.is_empty() { String::new() } else { format!(" in {}", text::count(files.len(), "file")) };
        pen.blank()?;
        pen.line(&format!(
            "… and {}{places}: -v shows all of them, -o json has them as data.",
            text::count(rest.len(), "more error")
        ))?;
    }
    Ok(())
}

/// Whether the document around a place may be a Secret. It may be malformed, so only its lines are examined.
fn may_be_secret(at: &Source, excerpts: &dyn Excerpts) -> bool {
    let line = |number: usize| excerpts.line(&at.file, number);
    let starts = |number: &usize| line(*number).is_none_or(|line| line.starts_with("---"));
    let first = (1..=at.line).rev().take(LONGEST_DOCUMENT).find(starts).unwrap_or(1);
    let later = (first + 1..).take_while(|number| *number <= at.line || !starts(number));
    let lines: Vec<&str> = std::iter::once(first).chain(later).take(LONGEST_DOCUMENT + 1).map_while(line).collect();
    lines.len() > LONGEST_DOCUMENT || excerpt::may_hold_secret(&lines)
}

//! The first lines: the target, and what the deploy would do.

use std::io;

use super::HumanOptions;
use super::pen::Pen;
use crate::view::counts::{ACTIONS, action_word};
use crate::view::harm::HarmSummary;
use crate::{ChangeEntry, Report};
use gantry_core::finding::{Action, ExtensionEntry, ResolvedBundle, SubscriptionEntry};
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
    extensions(report, pen)?;
    subscriptions(report, pen)
}

/// Which objects suffer from what blocks.
pub fn harm(report: &Report, pen: &mut Pen<'_>) -> io::Result<()> {
    let Some(harm) = HarmSummary::new(report, None) else { return Ok(()) };
    pen.wrapped(&text::pad("Objects", INDENT), INDENT, &harm.sentence())
}

/// What each ClusterExtension resolves to.
fn extensions(report: &Report, pen: &mut Pen<'_>) -> io::Result<()> {
    for extension in &report.extensions {
        let ExtensionEntry { name, package, installed, resolved, .. } = extension;
        let versions = match (installed, resolved) {
            (None, None) => "resolves to nothing".to_owned(),
            (Some(installed), None) if installed.is_empty() => "resolves to nothing".to_owned(),
            (Some(installed), None) if extension.error.is_none() => format!("stays at {installed}"),
            (Some(installed), None) => format!("{installed} -> nothing"),
            (installed, Some(resolved)) => {
                let step = match installed {
                    Some(installed) if *installed == resolved.version => format!("stays at {installed}"),
                    Some(installed) => format!("{installed} -> {}", resolved.version),
                    None => resolved.version.clone(),
                };
                let from: Vec<&str> =
                    resolved.channels.iter().map(String::as_str).chain([resolved.catalog.as_str()]).collect();
                format!("{step} ({})", from.join(", "))
            }
        };
        let line = format!("extension {name}: {package} {versions}");
        pen.line(&format!("{}{}", " ".repeat(INDENT), text::cut(&text::sanitize(&line), 300)))?;
        let is_new = |resolved: &&ResolvedBundle| installed.as_ref() != Some(&resolved.version);
        if let Some(ResolvedBundle { image: Some(image), directory: None, version, .. }) =
            resolved.as_ref().filter(is_new)
        {
            let note = format!(
                "  content of {image} not checked: gantry catalog {package} {version} --bundle says how to get it for -f"
            );
            pen.line(&format!("{}{}", " ".repeat(INDENT), text::cut(&text::sanitize(&note), 300)))?;
        }
    }
    Ok(())
}

/// What classic OLM installs for each Subscription.
fn subscriptions(report: &Report, pen: &mut Pen<'_>) -> io::Result<()> {
    for entry in &report.subscriptions {
        let SubscriptionEntry { name, namespace, package, channel, catalog, installed, resolved, .. } = entry;
        let versions = match (installed, resolved) {
            (Some(installed), None) => format!("{installed} -> nothing"),
            (None, None) => "resolves to nothing".to_owned(),
            (Some(installed), Some(resolved)) if installed == resolved => format!("stays at {installed}"),
            (Some(installed), Some(resolved)) => format!("{installed} -> {resolved}"),
            (None, Some(resolved)) => resolved.clone(),
        };
        let mut notes: Vec<&str> = [channel.as_str(), catalog].into_iter().filter(|text| !text.is_empty()).collect();
        notes.extend(entry.edges.iter().map(String::as_str));
        notes.extend(entry.starting_csv.then_some("startingCSV"));
        notes.extend(entry.is_at_head.then_some("head of the channel"));
        notes.extend(entry.needs_approval.then_some("approval Manual"));
        let then = match entry.then.is_empty() {
            true => String::new(),
            false => format!(", then {}", entry.then.join(" -> ")),
        };
        let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let line = format!("subscription {namespace}{name}: {package} {versions} ({}){then}", notes.join(", "));
        pen.line(&format!("{}{}", " ".repeat(INDENT), text::cut(&text::sanitize(&line), 300)))?;
    }
    Ok(())
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

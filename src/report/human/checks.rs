//! One line for each check and each object that it said something about.

use std::collections::BTreeSet;
use std::io;

use super::HumanOptions;
use super::causes::ObjectCauses;
use super::pen::{self, Pen};
use crate::report::{CheckReport, CheckStatus, Coverage, Report, Severity, Suppressed};
use crate::resource::ObjectRef;
use crate::text;
use crate::ui::color::Role;

/// More objects of one check than this are counted in one line (unless `verbose`).
const LISTED: usize = 20;
/// Names longer than this do not widen their column.
const WIDEST: usize = 60;

pub fn write(
    report: &Report,
    causes: &[ObjectCauses<'_>],
    options: &HumanOptions,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let shown: Vec<&CheckReport> =
        report.checks.iter().filter(|check| !options.quiet || check.status != CheckStatus::Passed).collect();
    if shown.is_empty() {
        return Ok(());
    }
    pen.blank()?;
    let column = shown.iter().map(|check| text::width(&name_of(check))).max().unwrap_or(0).min(WIDEST) + 2;
    for check in shown {
        let name = text::pad(&name_of(check), column);
        match check.status {
            CheckStatus::Skipped => skipped(&name, check, pen)?,
            // What was found is said beside what could not be looked at.
            CheckStatus::Failed if check.findings.is_empty() => {}
            _ => by_object(&name, check, causes, options, pen)?,
        }
        unchecked(&name, check, options, pen)?;
    }
    Ok(())
}

fn name_of(check: &CheckReport) -> String {
    text::cut(&text::sanitize(&check.name), WIDEST).into_owned()
}

/// A check that gave no verdict, and why. Never to be taken for a pass.
fn skipped(name: &str, check: &CheckReport, pen: &mut Pen<'_>) -> io::Result<()> {
    let reason = check.message.as_deref().unwrap_or("no reason given");
    let prefix = format!("{name}{}: ", pen.paint.text(Role::Warning, "skipped"));
    pen.wrapped(&prefix, text::width(name) + "skipped: ".len(), &text::cut(&text::sanitize(reason), 1000))
}

/// What a check could not look at, each with the next step.
fn unchecked(name: &str, check: &CheckReport, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    const WORD: &str = "could not check";
    let shown = if options.verbose { check.unchecked.len() } else { LISTED };
    for unchecked in check.unchecked.iter().take(shown) {
        let message = text::sanitize(&unchecked.message);
        // The help may be YAML to copy.
        let help = unchecked.help.as_deref().map(|help| format!(": {}", text::sanitize_block(help)));
        let reason = format!("{message}{}", help.unwrap_or_default());
        let prefix = format!("{name}{}: ", pen.paint.text(Role::Error, WORD));
        pen.wrapped(&prefix, text::width(name) + WORD.len() + 2, &text::cut(&reason, 1000))?;
    }
    if check.unchecked.len() > shown {
        let more = check.unchecked.len() - shown;
        pen.line(&format!("{name}{}: {more} more (-v shows all)", pen.paint.text(Role::Error, WORD)))?;
    }
    Ok(())
}

fn by_object(
    name: &str,
    check: &CheckReport,
    causes: &[ObjectCauses<'_>],
    options: &HumanOptions,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let mut rows: Vec<Row<'_>> = causes
        .iter()
        .map(|object| {
            let of_check = object.causes.iter().filter(|cause| cause.check == check.name);
            let found = of_check.map(super::causes::Cause::severity).collect();
            Row { object: object.object, found, coverage: None }
        })
        .filter(|row| !row.found.is_empty())
        .collect();
    for coverage in &check.coverage {
        match rows.iter_mut().find(|row| row.object == Some(&coverage.object)) {
            Some(row) => row.coverage = Some(coverage),
            None => rows.push(Row { object: Some(&coverage.object), found: Vec::new(), coverage: Some(coverage) }),
        }
    }
    let elsewhere = check.message.as_deref().map(text::sanitize);
    let off = switched_off(&check.suppressed);
    if rows.is_empty() {
        let (word, role) = match check.status {
            CheckStatus::Blocked => ("blocked", Role::Error),
            CheckStatus::Warned => ("warned", Role::Warning),
            _ => ("passed", Role::Good),
        };
        let why = elsewhere.map(|why| format!(": {why}")).unwrap_or_default();
        let off = off.map(|off| format!(", {off}")).unwrap_or_default();
        return pen.line(&format!("{name}{}{off}{why}", pen.paint.text(role, word)));
    }
    let shown = if options.verbose { rows.len() } else { LISTED };
    let column = rows.iter().take(shown).map(|row| text::width(&short_name(row.object))).max().unwrap_or(0).min(WIDEST);
    for row in rows.iter().take(shown) {
        let verdict = verdict(&row.found, row.coverage, options, pen);
        pen.line(&format!("{name}{}  {verdict}", text::pad(&short_name(row.object), column)))?;
    }
    if rows.len() > shown {
        let found: Vec<Severity> = rows[shown..].iter().flat_map(|row| row.found.iter().copied()).collect();
        let verdict = verdict(&found, None, options, pen);
        let more = format!("and {}", text::count(rows.len() - shown, "more object"));
        pen.line(&format!("{name}{}  {verdict}", text::pad(&more, column)))?;
    }
    for line in off.as_deref().into_iter().chain(elsewhere.as_deref()) {
        pen.line(&format!("{name}{line}"))?;
    }
    Ok(())
}

/// `3 findings switched off by gantry.yaml:7`
fn switched_off(suppressed: &[Suppressed]) -> Option<String> {
    const NAMED: usize = 3;
    let count = suppressed.iter().map(|suppressed| suppressed.count).sum::<usize>();
    if count == 0 {
        return None;
    }
    let sources: BTreeSet<(&str, usize)> =
        suppressed.iter().filter_map(|off| off.source.as_ref()).map(|at| (&*at.file, at.line)).collect();
    let mut places: Vec<String> =
        sources.iter().take(NAMED).map(|(file, line)| format!("{}:{line}", text::sanitize(file))).collect();
    if sources.len() > NAMED {
        places.push(text::count(sources.len() - NAMED, "more line"));
    }
    let by = if places.is_empty() { "the configuration".to_owned() } else { places.join(", ") };
    Some(format!("{} switched off by {by}", text::count(count, "finding")))
}

/// What a check says of one object.
struct Row<'r> {
    /// None for what is about no single object.
    object: Option<&'r ObjectRef>,
    found: Vec<Severity>,
    coverage: Option<&'r Coverage>,
}

/// A CRD's name says all; anything else is shown as kubectl does.
fn short_name(object: Option<&ObjectRef>) -> String {
    let name = match object {
        Some(object) if object.is_crd() => object.name.clone(),
        Some(object) => object.to_string(),
        None => "the plan".to_owned(),
    };
    text::cut(&text::sanitize(&name), 200).into_owned()
}

fn verdict(found: &[Severity], coverage: Option<&Coverage>, options: &HumanOptions, pen: &Pen<'_>) -> String {
    let (word, role) = match found.iter().min() {
        Some(Severity::Error) => ("blocked", Role::Error),
        Some(Severity::Warning) => ("warned", Role::Warning),
        _ => ("passed", Role::Good),
    };
    let hidden = !options.verbose && found.iter().any(|severity| *severity > Severity::Warning);
    let see = if hidden { " (-v shows all)" } else { "" };
    let mut said = pen.paint.text(role, word);
    let mut colon = ": ";
    if !found.is_empty() {
        said = format!("{said}{colon}{}{see}", pen::severities(found.iter().copied()));
        colon = "; ";
    }
    if let Some(coverage) = coverage {
        said = format!("{said}{colon}{}", looked_at(coverage));
    }
    said
}

/// What the verdict rests on.
fn looked_at(coverage: &Coverage) -> String {
    let objects = text::count(usize::try_from(coverage.read).unwrap_or(usize::MAX), "object");
    if coverage.proven.is_empty() {
        return format!("{objects} read");
    }
    if coverage.read == 0 {
        return "proven safe for every possible object; 0 read".to_owned();
    }
    let versions: Vec<_> = coverage.proven.iter().map(|version| text::sanitize(version)).collect();
    format!("{objects} read; {} proven safe", versions.join(", "))
}

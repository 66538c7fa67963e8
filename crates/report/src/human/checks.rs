//! The overview: a line for each check with what it found and what it proved.
//!
//! With `verbose` a line for each object as well.

use std::collections::BTreeSet;
use std::io;

use super::HumanOptions;
use super::pen::{self, Pen};
use crate::view::causes::{GroupedFinding, ObjectCauses};
use crate::view::phrases::{self, by_rule};
use crate::{Report, words};
use gantry_core::finding::{CheckReport, CheckStatus, Coverage, Severity, Suppressed};
use gantry_core::resource::ObjectRef;
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The maximum number of lines about what could not be checked, unless `verbose`; the others are counted.
const LISTED: usize = 20;
/// The maximum width of the column of names.
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
            _ => overview(&name, check, causes, options, pen)?,
        }
        unchecked(&name, check, options, pen)?;
        if options.verbose {
            by_object(&name, check, causes, pen)?;
        }
    }
    match words::baseline(report) {
        Some(line) => pen.line(&line),
        None => Ok(()),
    }
}

fn name_of(check: &CheckReport) -> String {
    text::cut(&text::sanitize(&check.name), WIDEST).into_owned()
}

/// A check without a verdict, and why. It does not count as a pass.
fn skipped(name: &str, check: &CheckReport, pen: &mut Pen<'_>) -> io::Result<()> {
    let reason = check.message.as_deref().unwrap_or("no reason given");
    let prefix = format!("{name}{}: ", pen.paint.text(TextRole::Warning, "skipped"));
    pen.wrapped(&prefix, text::width(name) + "skipped: ".len(), &text::cut(&text::sanitize(reason), 1000))
}

/// What a check could not check, each with the next step.
fn unchecked(name: &str, check: &CheckReport, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    const WORD: &str = "could not check";
    let shown = if options.verbose { check.unchecked.len() } else { LISTED };
    for unchecked in check.unchecked.iter().take(shown) {
        let message = text::sanitize(&unchecked.message);
        // The help may be YAML to copy.
        let help = unchecked.help.as_deref().map(|help| format!(": {}", text::sanitize_block(help)));
        let reason = format!("{message}{}", help.unwrap_or_default());
        let prefix = format!("{name}{}: ", pen.paint.text(TextRole::Error, WORD));
        pen.wrapped(&prefix, text::width(name) + WORD.len() + 2, &text::cut_between_commands(&reason, 1000))?;
    }
    if check.unchecked.len() > shown {
        let more = check.unchecked.len() - shown;
        pen.line(&format!("{name}{}: {more} more (-v shows all)", pen.paint.text(TextRole::Error, WORD)))?;
    }
    Ok(())
}

/// What a check found and examined, over all objects.
fn overview(
    name: &str,
    check: &CheckReport,
    causes: &[ObjectCauses<'_>],
    options: &HumanOptions,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let (word, role) = match check.status {
        CheckStatus::Blocked => ("blocked", TextRole::Error),
        CheckStatus::Warned => ("warned", TextRole::Warning),
        // Findings are shown in addition to what could not be checked.
        CheckStatus::Failed => ("found", TextRole::Warning),
        _ => ("passed", TextRole::Good),
    };
    let found: Vec<&GroupedFinding<'_>> =
        causes.iter().flat_map(|object| &object.causes).filter(|cause| cause.check == check.name).collect();
    let mut parts: Vec<String> = Vec::new();
    for severity in [Severity::Error, Severity::Warning] {
        let of_severity: Vec<&GroupedFinding<'_>> =
            found.iter().copied().filter(|cause| cause.severity() == severity).collect();
        if let Some(first) = of_severity.first() {
            let counts = pen::severities(of_severity.iter().map(|cause| cause.severity()));
            let rules = match by_rule(of_severity.iter().copied()) {
                rules if of_severity.iter().any(|cause| cause.finding.rule != first.finding.rule) => rules,
                _ => text::cut(&text::sanitize(&first.finding.rule), WIDEST).into_owned(),
            };
            parts.push(format!("{counts}{} ({rules})", in_objects(&of_severity)));
        }
    }
    let hidden = found.iter().map(|cause| cause.severity()).filter(|severity| *severity > Severity::Warning);
    let hidden = pen::severities(hidden);
    if !hidden.is_empty() {
        parts.push(format!("{hidden}{}", if options.verbose { "" } else { " (-v shows all)" }));
    }
    parts.extend(looked_at(&check.coverage));
    parts.extend(check.message.as_deref().map(|message| text::sanitize(message).into_owned()));
    // The reason for the failure is printed below.
    if check.status == CheckStatus::Failed && parts.is_empty() {
        return Ok(());
    }
    let colon = if parts.is_empty() { "" } else { ": " };
    let off = switched_off(&check.suppressed).map(|off| format!(", {off}")).unwrap_or_default();
    let line = format!("{word}{colon}{}{off}", parts.join("; "));
    let room = pen.width.saturating_sub(text::width(name)).max(40);
    for (index, line) in text::wrap(&line, room).into_iter().enumerate() {
        match line.strip_prefix(word).filter(|_| index == 0) {
            Some(rest) => pen.line(&format!("{name}{}{rest}", pen.paint.text(role, word)))?,
            None => pen.line(&format!("{}{line}", " ".repeat(text::width(name))))?,
        }
    }
    Ok(())
}

/// ` in samples.test.example.com`, ` in 6 CRDs`
fn in_objects(found: &[&GroupedFinding<'_>]) -> String {
    let objects: BTreeSet<&ObjectRef> = found.iter().filter_map(|cause| cause.finding.object.as_ref()).collect();
    let is_crd = objects.iter().all(|object| object.is_crd());
    match (objects.len(), objects.first()) {
        (0, _) | (_, None) => String::new(),
        (1, Some(only)) => format!(" in {}", text::cut(&text::sanitize(&phrases::object_name(only)), 200)),
        (many, _) => format!(" in {many} {}", if is_crd { "CRDs" } else { "objects" }),
    }
}

/// The evidence of the verdict: what was proven, and how many objects were read for the rest.
fn looked_at(coverage: &[Coverage]) -> Vec<String> {
    let mut parts = Vec::new();
    let proven = coverage.iter().filter(|coverage| coverage.read == 0 && !coverage.proven.is_empty()).count();
    if proven > 0 {
        parts.push(format!("proven safe for every possible object: {}", text::count(proven, "CRD")));
    }
    let rest: Vec<&Coverage> =
        coverage.iter().filter(|coverage| coverage.read > 0 || coverage.proven.is_empty()).collect();
    if !rest.is_empty() {
        let read = rest.iter().map(|coverage| coverage.read).sum();
        let objects = if read == 1 { "object" } else { "objects" };
        parts.push(format!("{} {objects} of {} read", text::thousands(read), text::count(rest.len(), "CRD")));
    }
    parts
}

/// A line for each object that a check examined or has findings in.
fn by_object(name: &str, check: &CheckReport, causes: &[ObjectCauses<'_>], pen: &mut Pen<'_>) -> io::Result<()> {
    let mut rows: Vec<CheckRow<'_>> = causes
        .iter()
        .map(|object| {
            let of_check = object.causes.iter().filter(|cause| cause.check == check.name);
            let found = of_check.map(GroupedFinding::severity).collect();
            CheckRow { object: object.object, found, coverage: None }
        })
        .filter(|row| !row.found.is_empty())
        .collect();
    for coverage in &check.coverage {
        match rows.iter_mut().find(|row| row.object == Some(&coverage.object)) {
            Some(row) => row.coverage = Some(coverage),
            None => rows.push(CheckRow { object: Some(&coverage.object), found: Vec::new(), coverage: Some(coverage) }),
        }
    }
    let column = rows.iter().map(|row| text::width(&short_name(row.object))).max().unwrap_or(0).min(WIDEST);
    for row in &rows {
        let verdict = verdict(&row.found, row.coverage, pen);
        pen.line(&format!("{name}{}  {verdict}", text::pad(&short_name(row.object), column)))?;
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

/// The result of a check for one object.
struct CheckRow<'r> {
    /// `None` for findings that do not concern a single object.
    object: Option<&'r ObjectRef>,
    found: Vec<Severity>,
    coverage: Option<&'r Coverage>,
}

fn short_name(object: Option<&ObjectRef>) -> String {
    let name = object.map_or_else(|| "the plan".to_owned(), phrases::object_name);
    text::cut(&text::sanitize(&name), 200).into_owned()
}

fn verdict(found: &[Severity], coverage: Option<&Coverage>, pen: &Pen<'_>) -> String {
    let (word, role) = match found.iter().min() {
        Some(Severity::Error) => ("blocked", TextRole::Error),
        Some(Severity::Warning) => ("warned", TextRole::Warning),
        _ => ("passed", TextRole::Good),
    };
    let mut said = pen.paint.text(role, word);
    let mut colon = ": ";
    if !found.is_empty() {
        said = format!("{said}{colon}{}", pen::severities(found.iter().copied()));
        colon = "; ";
    }
    if let Some(coverage) = coverage {
        said = format!("{said}{colon}{}", looked_at_one(coverage));
    }
    said
}

fn looked_at_one(coverage: &Coverage) -> String {
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

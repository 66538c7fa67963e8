//! The report as Markdown (`-o markdown`), for a comment on a pull request or the summary of a job.
//!
//! The verdict comes first, then an overview of the checks, then the findings, folded by rule: errors before warnings,
//! the first of each rule in full and a line for each other. Code hosts limit the length. What does not fit is counted,
//! and errors are the last to be left out; no text is cut off in the middle.

mod escape;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use self::escape::{code, code_block, html, words as bare};
use super::view::causes::{GroupedFinding, ObjectCauses};
use super::view::counts::{action_counts, shown_shares};
use super::view::groups::{self, Block, CausesAtPlace, RuleBlocks};
use super::view::harm::HarmSummary;
use super::view::library::{LibraryBump, take_bumps};
use super::view::operators;
use super::view::overview::{OverviewRow, list_names, overview_rows};
use super::view::phrases;
use super::{FormatWriter, LiveGroup, Report, ReportContext, ReportList, words};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::finding::{CheckReport, CheckStatus, Severity};
use gantry_core::text;

/// The maximum length of a report, in characters. GitHub accepts comments of up to 65,536.
pub const LONGEST: usize = 60_000;
/// The space reserved for the sentence about what was left out.
const TAIL: usize = 400;
/// The maximum number of checks in the overview, errors, and items that could not be checked; the others are counted.
const CHECKS: usize = 50;
const TOLD: usize = 20;
const LONGEST_LINE: usize = 400;
/// The maximum number of clusters that a line names.
const NAMED: usize = 20;
/// The maximum number of further places of one finding that are named.
const PLACES: usize = 5;

pub const WRITER: FormatWriter = FormatWriter {
    write,
    write_list: |list, around, out| write(&list.combined(), around, out),
    syntax: OutputSyntax::Text,
    is_start_of_report: |head| head.starts_with("### gantry: "),
};

/// Writes the report.
fn write(report: &Report, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    let causes = ObjectCauses::group_findings(report);
    let mut page = MarkdownPage { text: render_head(report, &causes, around), room: 0 };
    page.room = (LONGEST - TAIL).saturating_sub(page.text.chars().count());
    let mut left = Vec::new();
    for severity in [Severity::Error, Severity::Warning] {
        let mut kinds = groups::kinds(&causes, severity);
        let total: usize = kinds.iter().map(RuleBlocks::findings).sum();
        let bumps = take_bumps(&mut kinds);
        // Leave out all warnings before any error.
        let shown = match total {
            0 => 0,
            _ if left.is_empty() && page.title(severity) => {
                page.bumps(&bumps, severity, total) + page.kinds(&kinds, around)
            }
            _ => 0,
        };
        if shown < total {
            left.push(text::count(total - shown, words::severity(severity)));
        }
    }
    if left.is_empty() {
        page.accepted(&causes);
    }
    if !left.is_empty() {
        let are = if left.len() == 1 && left[0].starts_with("1 ") { "is" } else { "are" };
        page.text.push_str(&format!(
            "\n{} {are} left out here: `-o json` and `-o html` have them all.\n",
            left.join(" and ")
        ));
    }
    out.write_all(page.text.as_bytes())
}

/// The verdict, the target, the checks, and everything that is not a finding.
fn render_head(report: &Report, causes: &[ObjectCauses<'_>], around: ReportContext<'_>) -> String {
    let mut text = format!("### gantry: {}\n", bare(&around.verdict(report)));
    if let Some(list) = around.list {
        text.push_str(&clusters(list));
    } else if !report.target.is_empty() {
        let plan = action_counts(&report.changes);
        let plan = if plan.is_empty() { plan } else { format!(", plan: {}", bare(&plan)) };
        text.push_str(&format!("\nTarget {}{plan}\n", code(&words::line(&report.target, 200))));
    }
    let operators = operators::lines(report);
    if !operators.is_empty() {
        text.push('\n');
        for line in operators.iter().take(TOLD) {
            let indent = if line.starts_with(' ') { "  " } else { "" };
            text.push_str(&format!("{indent}- {}\n", bare(line.trim_start())));
        }
        if operators.len() > TOLD {
            text.push_str(&format!("- and {} more lines about operators\n", operators.len() - TOLD));
        }
    }
    let harm = HarmSummary::new(report, around.list);
    text.extend(harm.map(|harm| format!("\nObjects: {}\n", bare(&harm.sentence()))));
    text.extend(words::baseline(report).map(|line| format!("\n{}\n", bare(&line))));
    if !report.checks.is_empty() {
        text.push_str(
            "\n| check | verdict | errors | warnings | infos | waived | known |\n|---|---|--:|--:|--:|--:|--:|\n",
        );
        for check in report.checks.iter().take(CHECKS) {
            text.push_str(&row(check, causes));
        }
        if report.checks.len() > CHECKS {
            text.push_str(&format!("\nand {} more checks\n", report.checks.len() - CHECKS));
        }
    }
    let told = |lines: Vec<String>, title: &str| {
        let shown = lines.iter().take(TOLD).map(|line| format!("- {line}\n")).collect::<String>();
        let more = if lines.len() > TOLD { format!("- and {} more\n", lines.len() - TOLD) } else { String::new() };
        if lines.is_empty() { String::new() } else { format!("\n#### {title}\n\n{shown}{more}") }
    };
    let line = |text: &str| code(&words::line(text, LONGEST_LINE));
    let unchecked =
        words::unchecked(report).map(|(check, message, _)| format!("{}: {}", line(&check.name), line(&message)));
    let skipped = report.checks.iter().filter(|check| check.status == CheckStatus::Skipped);
    let skipped = skipped.map(|check| {
        format!("{} was skipped: {}", line(&check.name), line(check.message.as_deref().unwrap_or("no reason given")))
    });
    text.push_str(&told(unchecked.chain(skipped).collect(), "Not checked"));
    let errors = report.errors.iter().map(|error| {
        let at = error.source.as_ref().map(|source| format!("{}: ", line(&words::place(source)))).unwrap_or_default();
        let help = error.help.as_ref().map(|help| format!(" ({})", line(help))).unwrap_or_default();
        format!("{at}{}{help}", line(&error.message))
    });
    text.push_str(&told(errors.collect(), "What stopped the run"));
    text
}

/// The clusters by outcome.
fn clusters(list: &ReportList) -> String {
    let mut text = "\n| clusters | | |\n|---|--:|---|\n".to_owned();
    for OverviewRow { what, clusters, .. } in overview_rows(list) {
        let named = code(&words::line(&list_names(clusters.iter().copied(), NAMED), LONGEST_LINE)).replace('|', "\\|");
        text.push_str(&format!("| {} | {} | {named} |\n", bare(&what), clusters.len()));
    }
    for LiveGroup { clusters, differs } in list.overview.live.iter().skip(1).take(TOLD) {
        let [clusters, differs] = [clusters, differs]
            .map(|all| code(&words::line(&list_names(all.iter().map(String::as_str), NAMED), LONGEST_LINE)));
        text.push_str(&format!("\nThe live CRDs of {clusters} differ from most: {differs}\n"));
    }
    text
}

/// A check in the overview.
fn row(check: &CheckReport, causes: &[ObjectCauses<'_>]) -> String {
    let number = |severity| {
        let of_check = causes.iter().flat_map(|object| &object.causes).filter(|cause| cause.check == check.name);
        of_check.filter(|cause| cause.severity() == severity).count()
    };
    let status = match check.status {
        CheckStatus::Passed | CheckStatus::Warned => words::status(check).to_owned(),
        _ => format!("**{}**", words::status(check)),
    };
    let [errors, warnings, infos, waived, known] =
        [Severity::Error, Severity::Warning, Severity::Info, Severity::Waived, Severity::Known].map(number);
    // In a table a bar ends the cell, even inside code.
    let name = code(&words::line(&check.name, 60)).replace('|', "\\|");
    format!("| {name} | {status} | {errors} | {warnings} | {infos} | {waived} | {known} |\n")
}

/// The text so far, and how many characters may follow.
struct MarkdownPage {
    text: String,
    room: usize,
}

impl MarkdownPage {
    /// Adds text if there is room for it.
    fn add(&mut self, text: &str) -> bool {
        let length = text.chars().count();
        let fits = length <= self.room;
        if fits {
            self.text.push_str(text);
            self.room -= length;
        }
        fits
    }

    fn title(&mut self, severity: Severity) -> bool {
        self.add(if severity == Severity::Error { "\n#### Errors\n" } else { "\n#### Warnings\n" })
    }

    /// What bumps of libraries change: how much it is, and the worst of each in full. Returns how many findings that is.
    fn bumps(&mut self, bumps: &[LibraryBump<'_>], severity: Severity, total: usize) -> usize {
        let mut shown = 0;
        for bump in bumps {
            let summary = html(&bump.sentence(severity, total));
            let rules = code(&phrases::by_rule(bump.causes()));
            let worst = bump.worst().map(render_finding).unwrap_or_default();
            let text = format!(
                "\n<details><summary>{summary}</summary>\n\n{rules} in {}; `-v`, `-o json` and `-o html` have each, this is the \
                 worst:\n\n{worst}{END}",
                code(&bump.crds())
            );
            if self.add(&text) {
                shown += bump.findings();
            }
        }
        shown
    }

    /// The findings of one severity, folded by rule. Returns how many are shown.
    fn kinds(&mut self, kinds: &[RuleBlocks<'_>], around: ReportContext<'_>) -> usize {
        // Each rule gets its first finding before any gets all.
        let length = |text: &str| text.chars().count();
        let mut spare = self.room;
        let mut first = |kind: &RuleBlocks<'_>| {
            let first = opened(kind, around);
            spare = spare.checked_sub(length(&first) + END.len())?;
            Some(first)
        };
        let firsts: Vec<Option<String>> = kinds.iter().map(&mut first).collect();
        let lines: Vec<Vec<String>> = kinds.iter().map(|kind| kind.blocks[1..].iter().map(line).collect()).collect();
        let wanted = lines.iter().zip(&firsts).map(|(lines, first)| match first {
            Some(_) => lines.iter().map(|line| length(line)).sum(),
            None => 0,
        });
        let shares = shown_shares(&wanted.collect::<Vec<usize>>(), spare);
        let mut shown = 0;
        for (((kind, first), lines), mut share) in kinds.iter().zip(firsts).zip(lines).zip(shares) {
            let Some(first) = first else { continue };
            self.add(&first);
            shown += kind.blocks[0].findings();
            for (block, line) in kind.blocks[1..].iter().zip(lines) {
                let Some(left) = share.checked_sub(length(&line)) else { continue };
                share = left;
                self.add(&line);
                shown += block.findings();
            }
            self.add(END);
        }
        shown
    }

    /// Infos and accepted findings, if there is room.
    fn accepted(&mut self, causes: &[ObjectCauses<'_>]) {
        for severity in [Severity::Info, Severity::Waived, Severity::Known] {
            let found: Vec<&GroupedFinding<'_>> =
                causes.iter().flat_map(|object| &object.causes).filter(|cause| cause.severity() == severity).collect();
            if found.is_empty() {
                continue;
            }
            let title = match severity {
                Severity::Info => text::count(found.len(), "info"),
                _ => format!("{} {}", found.len(), words::severity(severity)),
            };
            if !self.add(&format!("\n<details><summary>{title}</summary>\n\n")) {
                continue;
            }
            self.room = self.room.saturating_sub(END.len());
            for cause in found {
                let finding = cause.finding;
                let why = words::accepted(finding).map(|why| format!(" ({})", code(&text::cut(&why, LONGEST_LINE))));
                self.add(&format!(
                    "- {} {}: {}{}\n",
                    code(&words::line(&finding.rule, 100)),
                    code(&words::object(finding)),
                    code(&words::line(&cause.message(), LONGEST_LINE)),
                    why.unwrap_or_default()
                ));
            }
            self.text.push_str(END);
        }
    }
}

const END: &str = "\n</details>\n";

/// The fold of a rule with its first finding.
fn opened(kind: &RuleBlocks<'_>, around: ReportContext<'_>) -> String {
    let block = &kind.blocks[0];
    let summary = around.rules.rule(kind.rule).map(|rule| format!(": {}", html(&rule.summary))).unwrap_or_default();
    let rule = html(&words::line(kind.rule, 100));
    format!(
        "\n<details><summary>{} <code>{rule}</code>{summary}</summary>\n\n{}",
        kind.findings(),
        render_finding(block)
    )
}

/// One finding with everything about it.
fn render_finding(block: &Block<'_>) -> String {
    let mut text = String::new();
    for fact in &block.first().facts {
        text.push_str(&format!("- {}\n", code(&words::line(&fact.message(), 500))));
    }
    let cause = block.first().cause();
    let finding = cause.finding;
    let mut note = |label: &str, texts: Vec<String>| {
        for note in texts.into_iter().filter(|note| !note.is_empty()) {
            text.push_str(&format!("- {label}: {note}\n"));
        }
    };
    let at = finding.source.as_ref().map(|source| format!(" at {}", code(&words::place(source)))).unwrap_or_default();
    note("in", vec![format!("{}{at}", code(&words::line(&phrases::place_in_object(cause), 500)))]);
    let others: Vec<String> = block.places[1..].iter().map(|place| place_text(block.first(), place)).collect();
    let more = others.len().saturating_sub(PLACES);
    let mut also: Vec<String> = others.into_iter().take(PLACES).collect();
    also.extend((more > 0).then(|| format!("{more} more")));
    note("also in", vec![also.join(", ")]);
    let mut breaks: Vec<String> = block.first().facts.iter().flat_map(|fact| words::breaks(fact.finding)).collect();
    breaks.sort();
    breaks.dedup();
    note("breaks", breaks);
    note("objects", finding.body.evidence.iter().map(|found| code(&words::line(&found.message, 500))).collect());
    note("proof", words::proven(finding).map(str::to_owned).into_iter().collect());
    let witness = block.first().facts.iter().find_map(|fact| fact.finding.body.witnesses.first());
    note("proof", witness.map(|witness| code(&words::describe_result(witness))).into_iter().collect());
    let mut steps: Vec<String> = Vec::new();
    for step in block.first().facts.iter().flat_map(|fact| words::steps(fact.finding)) {
        let step = code(step.trim());
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    note("next", steps);
    if let Some(witness) = witness {
        let before = witness.old_object.iter().map(|old| format!("# before\n{}\n# after\n", words::yaml(old)));
        let object = format!("{}{}", before.collect::<String>(), words::yaml(&witness.object));
        text.push_str(&format!("\n{}\n", code_block(&object, "yaml")));
    }
    text
}

/// A finding after the first of its rule.
fn line(block: &Block<'_>) -> String {
    let cause = block.first().cause();
    let facts: Vec<String> = block.first().facts.iter().map(|fact| fact.fact().into_owned()).collect();
    let others = match (block.places.len() - 1, block.other_nodes()) {
        (0, _) => String::new(),
        (others, 0) => format!(" (also in {})", text::count(others, "other object")),
        (others, _) => format!(" (also at {})", text::count(others, "other place")),
    };
    let place = cause.finding.source.as_ref().map(|source| format!(" at {}", code(&words::place(source))));
    format!(
        "- {}{}: {}{others}\n",
        code(&words::line(&phrases::place_in_object(cause), 500)),
        place.unwrap_or_default(),
        code(&words::line(&facts.join("; "), LONGEST_LINE)),
    )
}

fn place_text(first: &CausesAtPlace<'_>, place: &CausesAtPlace<'_>) -> String {
    let at = place.cause().finding.source.as_ref().map(|source| format!(" ({})", code(&words::place(source))));
    format!("{}{}", code(&words::line(&phrases::other_place(first, place), 500)), at.unwrap_or_default())
}

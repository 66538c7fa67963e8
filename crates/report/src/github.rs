//! The findings as workflow commands of GitHub Actions (`-o github`): each becomes an annotation of a line.
//!
//! GitHub shows only the first ten errors and ten warnings of a step, so infos and accepted findings are left out.

use std::io::{self, Write};

use super::places::CodePosition;
use super::{FormatWriter, Report, ReportContext, words};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::finding::{CheckStatus, Finding, Severity};
use gantry_core::text;

const LONGEST_MESSAGE: usize = 1000;

pub const WRITER: FormatWriter = FormatWriter {
    write,
    write_list: |list, around, out| write(&list.combined(), around, out),
    syntax: OutputSyntax::Commands,
    is_start_of_report: |head| head.starts_with("::") && head.contains(" title="),
};

/// Writes the report.
fn write(report: &Report, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (check, message, help) in words::unchecked(report) {
        let title = format!("{} could not check", words::line(&check.name, 100));
        let help = help.map(|help| format!("\n{help}")).unwrap_or_default();
        command(out, "error", None, &title, &format!("{message}{help}"))?;
    }
    for error in &report.errors {
        let place = error.source.as_ref().map(|source| around.places.position_of(source));
        let help = error.help.as_ref().map(|help| format!("\n{help}")).unwrap_or_default();
        command(out, "error", place.as_ref(), "gantry", &format!("{}{help}", error.message))?;
    }
    for warning in &report.warnings {
        let place = warning.source.as_ref().map(|source| around.places.position_of(source));
        let help = warning.help.as_ref().map(|help| format!("\n{help}")).unwrap_or_default();
        command(out, "warning", place.as_ref(), "gantry", &format!("{}{help}", warning.message))?;
    }
    for severity in [Severity::Error, Severity::Warning] {
        let findings = report.checks.iter().flat_map(|check| &check.findings);
        for finding in findings.filter(|finding| finding.severity == severity) {
            let place = finding.change_source.as_ref().or(finding.source.as_ref());
            let place = place.map(|source| around.places.position_of(source));
            let title = words::line(&finding.rule, 100);
            command(out, words::severity(severity), place.as_ref(), &title, &message(finding))?;
        }
    }
    for check in report.checks.iter().filter(|check| check.status == CheckStatus::Skipped) {
        let title = format!("{} was skipped", words::line(&check.name, 100));
        command(out, "warning", None, &title, check.message.as_deref().unwrap_or("no reason given"))?;
    }
    let baseline = words::baseline(report).map(|line| format!(" {line}")).unwrap_or_default();
    command(out, "notice", None, "gantry", &format!("{}{baseline}", around.verdict(report)))
}

fn message(finding: &Finding) -> String {
    let inside = words::version_and_path(finding);
    let inside = if inside.is_empty() { inside } else { format!(" ({inside})") };
    let steps = words::steps(finding).join("\n");
    let next = if steps.is_empty() { steps } else { format!("\nNext: {steps}") };
    let parent = words::parent_place(finding).map(|place| format!(" {place}")).unwrap_or_default();
    format!("{}{inside}: {}{parent}{next}", words::object(finding), words::message(finding))
}

/// `::error file=a.yaml,line=1,col=2,title=Rule::message`
fn command(
    out: &mut dyn Write,
    name: &str,
    place: Option<&CodePosition>,
    title: &str,
    message: &str,
) -> io::Result<()> {
    let mut properties = Vec::new();
    if let Some(place) = place {
        properties.push(format!("file={}", property(&place.path)));
        properties.extend(place.line.map(|line| format!("line={line}")));
        properties.extend(place.column.map(|column| format!("col={column}")));
    }
    properties.push(format!("title={}", property(title)));
    let message = text::sanitize_block(message);
    writeln!(out, "::{name} {}::{}", properties.join(","), data(&text::cut(&message, LONGEST_MESSAGE)))
}

/// Escapes the message of a command, as GitHub documents it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command, as GitHub documents it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::surroundings::tests::write_to_text;

    #[test]
    fn a_finding_is_a_command_for_its_line() {
        let text = write_to_text(&samples::blocked(), write);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "::error file=deploy/manifests/crd.yaml,line=24,col=17,title=NoExistingFieldRemoved::customresourcedefinition/\
            samples.test.example.com (v1alpha1, ^.spec.pollInterval): field spec.pollInterval may not be removed from \
            v1alpha1%0ANext: keep spec.pollInterval in v1alpha1 and mark it as deprecated, or remove it only in a new version"
        );
        assert_eq!(lines[2], "::notice title=gantry::Would be blocked: 1 error. Nothing was written.");
    }

    #[test]
    fn unchecked_parts_come_first_and_without_a_file() {
        let text = write_to_text(&samples::could_not_check(), write);
        assert!(text.starts_with("::error title=PermissionValidation could not check::cannot ask"), "{text}");
        assert!(text.contains("\n::warning title=WebhookReadiness was skipped::needs a live API server"), "{text}");
    }

    #[test]
    fn no_text_can_end_its_command_or_begin_another() {
        let mut report = samples::blocked();
        let finding = &mut report.checks[0].findings[0];
        finding.body.message = "a\n::set-output name=x::y\r\n100%".into();
        finding.rule = "a,line=7:b".into();
        finding.source = Some(samples::source("a,b:c%.yaml", 1, 0));
        finding.body.help = "::stop-commands::x\n::add-mask::y".into();
        let text = write_to_text(&report, write);
        assert!(
            text.lines().all(|line| ["::error ", "::notice "].iter().any(|start| line.starts_with(start))),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("::error file=deploy/a%2Cb%3Ac%25.yaml,line=1,title=a%2Cline=7%3Ab::"), "{text}");
        assert!(
            text.contains("a\\n::set-output name=x::y\\r\\n100%25%0ANext: ::stop-commands::x%0A::add-mask::y"),
            "{text}"
        );
    }

    #[test]
    fn every_sample_is_nothing_but_commands() {
        for (name, report) in samples::all() {
            let text = write_to_text(&report, write);
            assert!(text.lines().all(|line| line.starts_with("::")), "{name}: {text}");
            assert!(!text.chars().any(|c| c != '\n' && text::is_hostile(c)), "{name}: {text:?}");
        }
    }
}

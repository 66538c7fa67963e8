//! The findings as SARIF 2.1.0 (`-o sarif`), which code hosts show beside the lines of a change.
//!
//! `invocations` shows whether the run could check everything: the results alone do not distinguish a check that could
//! not complete from one without findings.

mod log;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use self::log::{
    ArtifactLocation, AutomationDetails, Base, Driver, Help, Invocation, LogicalLocation, Notification,
    PhysicalLocation, Region, RuleProperties, SarifLevel, SarifLocation, SarifLog, SarifResult, SarifRule,
    SarifRuleConfig, SarifRun, SarifTool, Suppression,
};
use super::places::{CodePosition, ReportPaths};
use super::{
    ClusterReport, ErrorEntry, FormatWriter, Outcome, Report, ReportContext, ReportList, RuleTexts, json, words,
};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::finding::{CheckReport, CheckStatus, Finding, Fingerprint, Severity};
use gantry_core::text;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// The name of the base of relative URIs that code hosts know.
const ROOT: &str = "%SRCROOT%";
/// The hash of [`Fingerprint`], and its version.
const FINGERPRINT: &str = "gantryFinding/v1";
/// The only fingerprint that GitHub uses. Without it, a result counts as new as soon as the lines around it change.
const GITHUB_FINGERPRINT: &str = "primaryLocationLineHash";
const LONGEST_MESSAGE: usize = 1000;

pub const WRITER: FormatWriter = FormatWriter {
    write,
    write_list,
    syntax: OutputSyntax::Json,
    is_start_of_report: |head| head.starts_with("{\n  \"$schema\"") && head.contains("\"name\": \"gantry\""),
};

/// Writes the report.
fn write(report: &Report, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_runs(vec![run(report, around, None)], out)
}

/// Writes the reports of many clusters: one run for each group of equal reports, with the first cluster as its id.
fn write_list(list: &ReportList, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    let of = |clusters: Vec<&ClusterReport>| {
        let names: Vec<String> = clusters.iter().map(|cluster| one_line(&cluster.name)).collect();
        let id = names.first().cloned().unwrap_or_default();
        let clusters_named = escape_block(&format!("{}: {}", text::count(names.len(), "cluster"), names.join(", ")));
        let details = AutomationDetails { id, description: clusters_named.into() };
        clusters.first().map(|first| run(&first.report, around, Some(details)))
    };
    write_runs(list.group_equal(|_| true).into_iter().filter_map(of).collect(), out)
}

fn write_runs(runs: Vec<SarifRun>, out: &mut dyn Write) -> io::Result<()> {
    json::write_value(&SarifLog { schema: SCHEMA, version: "2.1.0", runs }, out)
}

fn run(report: &Report, around: ReportContext<'_>, automation_details: Option<AutomationDetails>) -> SarifRun {
    let mut rules = SarifRuleIndex::default();
    let findings = || report.checks.iter().flat_map(|check| check.findings.iter().map(move |finding| (check, finding)));
    let results: Vec<SarifResult> = findings()
        .map(|(check, finding)| result(finding, rules.index(check, finding, around.rules), report, around.places))
        .collect();
    let driver = Driver { name: "gantry", semantic_version: env!("CARGO_PKG_VERSION"), rules: rules.list };
    let base =
        Base { description: "The root of the repository, or the working directory of gantry.".to_owned().into() };
    SarifRun {
        tool: SarifTool { driver },
        automation_details,
        invocations: [invocation(report, around.places)],
        original_uri_base_ids: BTreeMap::from([(ROOT, base)]),
        column_kind: "unicodeCodePoints",
        results,
    }
}

/// The rules that the findings name, each once.
#[derive(Default)]
struct SarifRuleIndex {
    list: Vec<SarifRule>,
    index: BTreeMap<String, usize>,
}

impl SarifRuleIndex {
    fn index(&mut self, check: &CheckReport, finding: &Finding, rules: &dyn RuleTexts) -> usize {
        *self.index.entry(finding.rule.clone()).or_insert_with(|| {
            self.list.push(rule(check, finding, rules));
            self.list.len() - 1
        })
    }
}

fn rule(check: &CheckReport, finding: &Finding, rules: &dyn RuleTexts) -> SarifRule {
    let id = one_line(&finding.rule);
    let properties = RuleProperties { tags: [one_line(&check.name)] };
    // A verdict of another tool is explained by our closest rule.
    let known = rules.rule(&finding.rule).or_else(|| rules.rule(finding.body.explain.as_deref()?));
    match known {
        Some(known) => SarifRule {
            id,
            short_description: known.summary.into(),
            full_description: Some(known.reports.into()),
            help: Some(Help { text: known.text, markdown: known.markdown }),
            default_configuration: Some(SarifRuleConfig { level: level(known.severity) }),
            properties,
        },
        None => SarifRule {
            short_description: format!("{id}, a rule of the check {}", one_line(&check.name)).into(),
            id,
            full_description: None,
            help: None,
            default_configuration: None,
            properties,
        },
    }
}

fn result(finding: &Finding, rule_index: usize, report: &Report, places: &ReportPaths) -> SarifResult {
    let fingerprint = Fingerprint::new(finding).to_string();
    let mut properties = BTreeMap::new();
    if !finding.body.breaks.is_empty() {
        properties.insert("breaks", json!(finding.body.breaks));
    }
    if let Some(verdict) = finding.body.verdict {
        properties.insert("verdict", json!(verdict));
    }
    for (name, value) in [("version", &finding.body.version), ("path", &finding.body.path)] {
        if let Some(value) = value {
            properties.insert(name, json!(one_line(value)));
        }
    }
    if let Some(object) = &finding.object {
        properties.insert("object", json!(one_line(&object.to_string())));
    }
    let waived = finding.waived.as_ref().filter(|_| finding.severity == Severity::Waived);
    let suppressions = waived.map(|waived| {
        let until = waived.expires.as_ref().map(|day| format!(" (until {day})")).unwrap_or_default();
        let justification = one_line(&format!("{}{until}", waived.reason));
        Suppression { kind: "external", status: "accepted", justification }
    });
    let place = places.of_finding(finding, report);
    SarifResult {
        rule_id: one_line(&finding.rule),
        rule_index,
        level: level(finding.severity_if_unaccepted()),
        baseline_state: finding.baseline_state,
        message: message(finding).into(),
        locations: [SarifLocation { logical_locations: logical(finding).into_iter().collect(), ..location(&place) }],
        partial_fingerprints: BTreeMap::from([
            (FINGERPRINT, fingerprint.clone()),
            (GITHUB_FINGERPRINT, format!("{fingerprint}:1")),
        ]),
        suppressions: suppressions.into_iter().collect(),
        properties,
    }
}

/// The message, the place, and the next step.
fn message(finding: &Finding) -> String {
    let object = finding.object.as_ref().map(|object| format!("{}: ", one_line(&object.to_string())));
    let help: Vec<&str> = finding.body.help.lines().filter(|line| !line.trim().is_empty()).collect();
    let next = if help.is_empty() { String::new() } else { format!("\nNext: {}", escape_block(&help.join("\n"))) };
    let parent = words::parent_place(finding).map(|place| format!(" {}", one_line(&place))).unwrap_or_default();
    format!("{}{}{parent}{next}", object.unwrap_or_default(), one_line(&finding.body.message))
}

fn location(place: &CodePosition) -> SarifLocation {
    let (uri, is_relative) = place.uri();
    let region = place.line.map(|start_line| Region { start_line, start_column: place.column });
    let artifact_location = ArtifactLocation { uri, uri_base_id: is_relative.then_some(ROOT) };
    SarifLocation { physical_location: PhysicalLocation { artifact_location, region }, logical_locations: Vec::new() }
}

/// `customresourcedefinition/samples.example.com v1 ^.spec.x`
fn logical(finding: &Finding) -> Option<LogicalLocation> {
    let object = finding.object.as_ref()?;
    let parts = [Some(object.to_string()), finding.body.version.clone(), finding.body.path.clone()];
    let parts: Vec<String> = parts.iter().flatten().map(|part| one_line(part)).collect();
    // The standard's kinds for parts of documents.
    let kind = if finding.body.path.is_some() { "member" } else { "object" };
    let name = one_line(finding.body.path.as_ref().unwrap_or(&object.name));
    Some(LogicalLocation { name, fully_qualified_name: parts.join(" "), kind })
}

/// Whether everything could be checked, and what could not.
fn invocation(report: &Report, places: &ReportPaths) -> Invocation {
    let mut notifications = Vec::new();
    for check in &report.checks {
        for unchecked in &check.unchecked {
            let help = unchecked.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            let text = format!("{} could not check: {}{help}", check.name, unchecked.message);
            notifications.push(Notification {
                level: SarifLevel::Error,
                message: escape_block(&text).into(),
                locations: vec![],
            });
        }
        if check.status == CheckStatus::Skipped {
            let text = format!("{} was skipped: {}", check.name, check.message.as_deref().unwrap_or("no reason given"));
            notifications.push(Notification {
                level: SarifLevel::Warning,
                message: escape_block(&text).into(),
                locations: vec![],
            });
        }
    }
    let entry = |level| {
        move |entry: &ErrorEntry| {
            let help = entry.help.as_ref().map(|help| format!("\nNext: {help}")).unwrap_or_default();
            let locations = entry.source.iter().map(|source| location(&places.position_of(source))).collect();
            Notification { level, message: escape_block(&format!("{}{help}", entry.message)).into(), locations }
        }
    };
    notifications.extend(report.errors.iter().map(entry(SarifLevel::Error)));
    notifications.extend(report.warnings.iter().map(entry(SarifLevel::Warning)));
    let could_not_check =
        report.checks.iter().any(|check| check.status == CheckStatus::Failed || !check.unchecked.is_empty());
    let execution_successful = report.outcome != Outcome::Failed && report.errors.is_empty() && !could_not_check;
    Invocation { execution_successful, tool_execution_notifications: notifications }
}

fn level(severity: Severity) -> SarifLevel {
    match severity {
        Severity::Error => SarifLevel::Error,
        Severity::Warning | Severity::Waived | Severity::Known => SarifLevel::Warning,
        Severity::Info => SarifLevel::Note,
    }
}

/// Escapes untrusted text of one line. In a message `[text](target)` is a link, but not with a space between.
fn one_line(text: &str) -> String {
    shorten(&text::sanitize(text).replace("](", "] ("))
}

/// Escapes untrusted text of several lines.
fn escape_block(text: &str) -> String {
    shorten(&text::sanitize_block(text).replace("](", "] ("))
}

fn shorten(text: &str) -> String {
    text::cut(text, LONGEST_MESSAGE).into_owned()
}

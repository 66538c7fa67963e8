//! One finding: what is wrong, where, what changed, who breaks, the proof, what to do.

use maud::{Markup, html};

use super::super::view::causes::GroupedFinding;
use super::super::view::{excerpt, phrases};
use super::super::{ReportContext, json, words};
use super::matrix::hyphenate_party;
use super::parts::write_scrolling;
use super::rules::{Explained, anchor};
use super::shown::ShownFinding;
use gantry_core::finding::{AffectedObject, Finding, KeywordChange, Severity, Witness};
use gantry_core::text;

/// The maximum number of witnesses that are shown, and of affected objects.
const WITNESSES: usize = 5;
const OBJECTS: usize = 20;
/// The maximum number of further places that are shown.
const PLACES: usize = 20;
/// A longer witness is shortened, and cannot be copied.
const LONGEST_WITNESS: usize = 50_000;
/// The number of lines of context, in a CRD.
const CONTEXT: usize = 2;

/// The finding, folded; or one line, with `is_full` off. `rules` are those that the page explains.
pub fn write<'a>(shown: &ShownFinding<'a>, rules: &Explained<'a>, around: ReportContext<'_>) -> Markup {
    let cause = shown.cause;
    let severity = words::severity(cause.severity());
    let rule = words::line(&cause.finding.rule, 100);
    let breaks = cause.breaks().into_iter().map(hyphenate_party).collect::<Vec<_>>().join(" ");
    let headline = html! {
        span class={ "word " (severity) } { (severity) } " " code { (rule) } " " (words::line(&cause.message(), 500))
    };
    html! {
        @if shown.is_full {
            details id=(shown.anchor()) class="finding" data-severity=(severity) data-rule=(rule) data-breaks=(breaks) {
                summary { (headline) }
                div class="body" { (write_body(shown, rules, around)) }
            }
        } @else {
            p id=(shown.anchor()) class="finding" data-severity=(severity) data-rule=(rule) data-breaks=(breaks) {
                (headline)
                @if let Some(source) = &cause.finding.source { " " code class="faint" { (words::place(source)) } }
            }
        }
    }
}

/// Everything about the finding.
fn write_body<'a>(shown: &ShownFinding<'a>, rules: &Explained<'a>, around: ReportContext<'_>) -> Markup {
    let (cause, finding, number) = (shown.cause, shown.cause.finding, shown.number);
    let others = cause.other_places();
    let steps = steps(cause);
    html! {
        dl {
            dt { "in" } dd { code { (words::line(&phrases::place_in_object(cause), 1000)) } }
            @if let Some(source) = &finding.source { dt { "at" } dd { code { (words::place(source)) } (excerpt(finding, around)) } }
            @for (what, source) in others.iter().take(PLACES) {
                dt { "also" } dd { (words::line(what, 500)) " at " code { (words::place(source)) } }
            }
            @if others.len() > PLACES { dt { "also" } dd { (text::count(others.len() - PLACES, "more place")) ": -o json has all" } }
            @if !finding.body.schema_changes.is_empty() { dt { "schema" } dd { (write_schema(&finding.body.schema_changes)) } }
            @if !finding.body.breaks.is_empty() { dt { "breaks" } dd { ul { @for text in words::breaks(finding) { li { (text) } } } } }
            @if let Some(text) = words::proven(finding) { dt { "proof" } dd { (text) } }
            @for (at, witness) in finding.body.witnesses.iter().take(WITNESSES).enumerate() {
                dt { "proof" } dd { (proof(&format!("witness-{number}-{at}"), witness)) }
            }
            @if let Some(evidence) = &finding.body.evidence { dt { "objects" } dd { (words::line(&evidence.message, 500)) } }
            (affected(finding))
            @if let Some(severity) = finding.original_severity {
                dt { (words::severity(finding.severity)) }
                dd { "otherwise " (words::severity(severity)) @if let Some(why) = words::accepted(finding) { ": " (why) } }
            }
            @if finding.not_written && finding.severity == Severity::Warning {
                dt { "note" } dd { "a warning, because this deploy does not change the object" }
            }
            @if !steps.is_empty() { dt { "next" } dd { ul { @for step in steps { li { (step) } } } } }
        }
        @if let Some((name, text)) = rules.of_finding(finding) {
            p { "About the rule: " a href={ "#" (anchor(name)) } { (text.summary) } }
        }
    }
}

fn steps(cause: &GroupedFinding<'_>) -> Vec<String> {
    let help = cause.help();
    let help = text::cut_between_commands(&help, 2000);
    help.lines().map(|step| text::sanitize(step).into_owned()).filter(|step| !step.trim().is_empty()).collect()
}

/// The lines of the manifest, unless they may contain values that reports do not show.
fn excerpt(finding: &Finding, around: ReportContext<'_>) -> Markup {
    let is_crd = finding.object.as_ref().is_some_and(gantry_core::resource::ObjectRef::is_crd);
    let lines = finding.source.as_ref().filter(|_| !phrases::hides_lines(finding, around.redact, around.excerpts));
    let lines = lines.map(|source| excerpt::lines(source, around.excerpts, if is_crd { CONTEXT } else { 0 }));
    let lines = lines.unwrap_or_default();
    let indent = lines.iter().filter_map(|line| indent(&line.text)).min().unwrap_or(0);
    let wide = lines.iter().map(|line| line.number.to_string().len()).max().unwrap_or(0);
    html! {
        @if !lines.is_empty() {
            pre {
                @for line in &lines {
                    span class="number-of-line" { (format!("{:>wide$} ", line.number)) }
                    @match &line.mark {
                        Some(mark) if mark.start >= indent => {
                            (line.text[indent..mark.start]) mark { (line.text[mark.clone()]) } (line.text[mark.end..])
                        }
                        _ => (line.text.get(indent..).unwrap_or_default()),
                    }
                    "\n"
                }
            }
        }
        @if let Some(label) = &finding.body.label { div class="faint" { (words::line(label, 200)) } }
    }
}

/// The indentation of a line; `None` for a blank line.
fn indent(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches(' ');
    (!rest.is_empty()).then_some(text.len() - rest.len())
}

/// The live and the desired schema node, side by side.
pub fn write_schema(changes: &[KeywordChange]) -> Markup {
    let value = |value: &Option<String>| {
        let text = value.as_deref().map(|value| words::line(value, 600));
        html! { @match text { Some(text) => { code { (text) } } None => { span class="faint" { "absent" } } } }
    };
    write_scrolling(
        "Live and desired keywords",
        &html! {
            table class="keywords" {
                thead { tr { th scope="col" { "keyword" } th scope="col" { "live" } th scope="col" { "desired" } } }
                tbody {
                    @for change in changes {
                        tr {
                            th scope="row" { code { (words::line(&change.keyword, 100)) } }
                            td class="removed" { (value(&change.live)) }
                            td class="added" { (value(&change.desired)) }
                        }
                    }
                }
            }
        },
    )
}

/// An object that proves the finding, with a button to copy it.
fn proof(id: &str, witness: &Witness) -> Markup {
    let old = witness.old_object.as_ref().map(|old| (format!("{id}-before"), old));
    html! {
        div { (words::describe_result(witness)) }
        @if let Some((id, old)) = old { div { "before" } (object(&id, old)) div { "after" } }
        (object(id, &witness.object))
    }
}

fn object(id: &str, object: &serde_json::Value) -> Markup {
    let mut json = Vec::new();
    // Writing to memory does not fail, and JSON is UTF-8.
    let _ = json::write_value(object, &mut json);
    let json = String::from_utf8_lossy(&json);
    html! {
        @if json.len() > LONGEST_WITNESS {
            pre class="text" { (words::yaml(object)) }
        } @else {
            button type="button" class="copy" data-of=(id) { "Copy" }
            pre id=(id) { (json) }
        }
    }
}

/// Affected objects of the cluster.
fn affected(finding: &Finding) -> Markup {
    let Some(affected) = &finding.body.affected else { return html! {} };
    let shown = affected.objects.iter().take(OBJECTS);
    let left = affected.count.saturating_sub(shown.len() as u64);
    let named = |object: &AffectedObject| {
        let namespace = object.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let path = object.path.as_ref().map(|path| format!("  {path}")).unwrap_or_default();
        let value = object.value.as_ref().map(|value| format!(": {value}")).unwrap_or_default();
        words::line(&format!("{namespace}{}{path}{value}", object.name), 500)
    };
    html! {
        dt { "objects" }
        dd {
            (text::thousands(affected.count)) " of " (text::thousands(affected.of)) " are affected"
            ul { @for object in shown { li { code { (named(object)) } } } @if left > 0 { li { "and " (text::thousands(left)) " more" } } }
        }
    }
}

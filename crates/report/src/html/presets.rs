//! The verdict of each preset in one row: what teams argue about.

use maud::{Markup, html};

use super::super::Report;
use super::super::view::causes::ObjectCauses;
use super::super::view::presets::{PresetVerdict, verdicts_by_preset};
use super::parts::write_scrolling;
use gantry_core::text;

/// The row; nothing if no upgrade of a CRD has findings.
pub fn write_presets(report: &Report, objects: &[ObjectCauses<'_>]) -> Markup {
    let verdicts = verdicts_by_preset(report, objects);
    let unknown: Vec<&str> = verdicts.iter().filter(|one| one.counts.is_none()).map(|one| one.name).collect();
    html! {
        @if !verdicts.is_empty() {
            section aria-labelledby="presets" {
                h2 id="presets" { "Verdict by preset" }
                (write_scrolling("Verdict by preset", &html! {
                    table class="presets" {
                        thead {
                            tr { @for one in &verdicts { th scope="col" { (one.name) @if one.is_configured { span class="chip" { "this run" } } } } }
                        }
                        tbody { tr { @for one in &verdicts { td { (write_verdict(one)) } } } }
                    }
                }))
                @if let Some(first) = unknown.first() {
                    p class="faint" {
                        "This run did not find out the verdict of " (unknown.join(", ")) ". To see it, run the command again with "
                        code { "--preset " (first) } "."
                    }
                }
            }
        }
    }
}

fn write_verdict(one: &PresetVerdict) -> Markup {
    let Some(counts) = one.counts else { return html! { span class="faint" { "not known" } } };
    let warnings = (counts.warnings > 0).then(|| text::count(counts.warnings, "warning"));
    html! {
        @if counts.errors > 0 {
            b class="error" { "blocks" } ": " (text::count(counts.errors, "error"))
            @if let Some(warnings) = warnings { ", " (warnings) }
        } @else if let Some(warnings) = warnings {
            b class="warning" { "passes" } ": " (warnings)
        } @else {
            b class="passed" { "passes" }
        }
    }
}

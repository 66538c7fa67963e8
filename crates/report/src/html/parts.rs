//! Parts that several sections of the page have.

use maud::{Markup, html};

use super::super::words;
use gantry_core::finding::Severity;
use gantry_core::text;

/// A wide table: it scrolls by itself, also with the keyboard, and the page does not.
pub fn write_scrolling(label: &str, table: &Markup) -> Markup {
    html! { div class="scroll" role="region" tabindex="0" aria-label=(label) { (table) } }
}

/// `2 errors`
pub fn count_findings(number: usize, severity: Severity) -> String {
    match severity {
        Severity::Waived | Severity::Known => format!("{number} {}", words::severity(severity)),
        _ => text::count(number, words::severity(severity)),
    }
}

/// `1,234`
pub fn format_number(number: usize) -> String {
    text::thousands(number as u64)
}

/// A long name, which may be broken after its dots.
pub fn write_name(name: &str) -> Markup {
    let parts: Vec<&str> = name.split_inclusive('.').collect();
    html! { @for (at, part) in parts.iter().enumerate() { @if at > 0 { wbr; } (part) } }
}

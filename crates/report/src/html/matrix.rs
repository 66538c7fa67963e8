//! The impact matrix: which upgrades break something for whom.

use maud::{Markup, html};

use super::super::view::phrases::affected_party;
use super::super::{Report, words};
use super::parts::{count_findings, format_number, write_name, write_scrolling};
use super::shown::{ShownFinding, ShownFindings, ShownObject};
use gantry_core::finding::{Breaks, Severity};
use gantry_core::text;

/// The columns.
const PARTIES: [Breaks; 5] = [Breaks::StoredObjects, Breaks::Writers, Breaks::Readers, Breaks::Data, Breaks::Behaviour];
/// The number of rows that are not folded.
const ROWS: usize = 20;

/// A row for each object with findings that break something.
pub fn write_matrix(shown: &ShownFindings<'_>, report: &Report, is_list: bool) -> Markup {
    let breaks = |finding: &ShownFinding<'_>| !finding.cause.breaks().is_empty();
    let rows: Vec<&ShownObject<'_>> =
        shown.objects.iter().filter(|object| object.findings.iter().any(breaks)).collect();
    let (first, others) = rows.split_at(rows.len().min(ROWS));
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="impact" {
                h2 id="impact" { "Impact" }
                p class="faint" { "The number of findings that break something, by who is affected. A number leads to them." }
                (write_table(first, report, is_list))
                @if !others.is_empty() {
                    details { summary { (text::count(others.len(), "more object")) } div class="body" { (write_table(others, report, is_list)) } }
                }
            }
        }
    }
}

fn write_table(rows: &[&ShownObject<'_>], report: &Report, is_list: bool) -> Markup {
    let is_crd = |row: &&ShownObject<'_>| row.object.is_some_and(gantry_core::resource::ObjectRef::is_crd);
    let noun = if rows.iter().all(is_crd) { "CRD" } else { "object" };
    // In a combined report, each cluster has its own objects.
    let harm_of = |row: &ShownObject<'_>| {
        let coverage = report.checks.iter().flat_map(|check| &check.coverage).filter(|_| !is_list);
        let mut of_object = coverage.filter(|one| Some(&one.object) == row.object).filter_map(|one| one.harm.as_ref());
        of_object.next().map(|harm| harm.objects)
    };
    let harms: Vec<Option<u64>> = rows.iter().map(|row| harm_of(row)).collect();
    let knows_harm = harms.iter().any(Option::is_some);
    write_scrolling(
        "Impact",
        &html! {
            table class="matrix" {
                thead {
                    tr {
                        th scope="col" { (noun) }
                        @for party in PARTIES { th scope="col" class="count" { (affected_party(party).0) } }
                        @if knows_harm { th scope="col" class="count" { "objects hurt" } }
                    }
                }
                tbody {
                    @for (row, harm) in rows.iter().zip(&harms) {
                        tr {
                            th scope="row" { a href={ "#" (row.anchor()) } { (write_name(&shorten_name(row))) } }
                            @for party in PARTIES { td class="count" { (write_cell(row, party)) } }
                            @if knows_harm {
                                td class="count" {
                                    @match harm {
                                        Some(0) | None => { (write_nothing(if harm.is_some() { "0" } else { "–" })) }
                                        Some(harm) => { b class="error" { (text::thousands(*harm)) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        },
    )
}

/// A CRD by its name alone.
pub fn shorten_name(object: &ShownObject<'_>) -> String {
    match object.object {
        Some(crd) if crd.is_crd() => words::line(&crd.name, 300),
        _ => object.name.clone(),
    }
}

/// The number of findings, as a link to the first of them. With the script, it shows only these.
fn write_cell(row: &ShownObject<'_>, party: Breaks) -> Markup {
    let of_party: Vec<&ShownFinding<'_>> =
        row.findings.iter().filter(|finding| finding.cause.breaks().contains(&party)).collect();
    let Some(first) = of_party.first() else { return write_nothing("–") };
    let worst = of_party.iter().map(|finding| finding.cause.severity()).min().unwrap_or(Severity::Info);
    let (name, who) = (shorten_name(row), affected_party(party).0);
    let count = count_findings(of_party.len(), worst);
    let label = match of_party.iter().all(|finding| finding.cause.severity() == worst) {
        true => format!("{count}: {who} of {name}"),
        false => format!(
            "{}, the worst: {}: {who} of {name}",
            text::count(of_party.len(), "finding"),
            words::severity(worst)
        ),
    };
    html! {
        a class={ "cell " (words::severity(worst)) } href={ "#" (first.anchor()) } aria-label=(label)
            data-for=(row.name) data-breaks=(hyphenate_party(party)) { (format_number(of_party.len())) }
    }
}

fn write_nothing(sign: &str) -> Markup {
    html! { span class="faint" { (sign) } }
}

/// The word for a party that has no spaces.
pub fn hyphenate_party(party: Breaks) -> String {
    affected_party(party).0.replace(' ', "-")
}

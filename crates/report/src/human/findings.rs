//! Decides which findings are shown in full, and how the others are shown.
//!
//! Errors come before warnings, whatever object they concern. The first finding of each kind is shown in full: where,
//! who breaks, the proof, what to do. The others of the kind get a line each. Errors are left out only if there are
//! very many, and then no warnings are shown.

use std::io;

use super::pen::{self, Pen};
use super::{Excerpts, HumanOptions, finding};
use crate::Report;
use crate::view::causes::{GroupedFinding, ObjectCauses};
use crate::view::counts;
use crate::view::groups::{self, Block, RuleBlocks};
use crate::view::library::{self, LibraryBump};
use crate::view::phrases::{by_rule, severity_word};
use gantry_core::finding::{Examined, FindingBody, Severity};
use gantry_core::resource::ObjectRef;
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The maximum number of lines for errors that are not shown in full (unless `verbose`).
const ERROR_LINES: usize = 100;
/// The maximum number of lines for warnings of one kind after the first (unless `verbose`).
const WARNING_LINES: usize = 8;
/// The same if there are also errors, which matter more.
const WARNING_LINES_BESIDE_ERRORS: usize = 3;
/// The maximum number of kinds of warnings whose first is shown in full; the others get one line (unless `verbose`).
const WARNING_KINDS: usize = 6;
/// The maximum number of changes of one CRD that hurt no existing object and are shown one by one (unless `verbose`).
const FEW_HARMLESS: usize = 3;
/// The maximum length of a fact; longer ones are cut.
const LONGEST_FACT: usize = 300;
/// The same for warnings.
const LONGEST_FACT_OF_WARNING: usize = 150;
/// The maximum width of the column of places.
const WIDEST_PLACE: usize = 40;

pub fn write(
    report: &Report,
    objects: &[ObjectCauses<'_>],
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let mut findings = Findings {
        options,
        excerpts,
        shown: finding::AlreadyShown::new(common_folder(report)),
        is_complete: true,
        is_whole: true,
        has_errors: false,
    };
    let shown: &[Severity] = match (options.verbose, options.quiet) {
        (true, _) => &[Severity::Error, Severity::Warning, Severity::Info, Severity::Waived, Severity::Known],
        (false, true) => &[Severity::Error],
        (false, false) => &[Severity::Error, Severity::Warning],
    };
    for severity in shown {
        let mut kinds = groups::kinds(objects, *severity);
        match severity {
            _ if options.verbose => findings.write_all(&kinds, pen)?,
            Severity::Error => {
                let total = count_findings(&kinds);
                let bumps = library::take_bumps(&mut kinds);
                findings.errors(&kinds, pen)?;
                findings.bumps(&bumps, (*severity, total), pen)?;
            }
            _ => {
                let total = count_findings(&kinds);
                let harmless = take_harmless(&mut kinds);
                let bumps = library::take_bumps(&mut kinds);
                findings.warnings(&kinds, pen)?;
                findings.bumps(&bumps, (*severity, total), pen)?;
                findings.harmless(&harmless, pen)?;
            }
        }
    }
    findings.hints(pen)
}

struct Findings<'a> {
    options: &'a HumanOptions,
    excerpts: &'a dyn Excerpts,
    shown: finding::AlreadyShown,
    /// No finding was left out.
    is_complete: bool,
    /// All findings are shown in full.
    is_whole: bool,
    has_errors: bool,
}

impl Findings<'_> {
    fn write_all(&mut self, kinds: &[RuleBlocks<'_>], pen: &mut Pen<'_>) -> io::Result<()> {
        kinds.iter().flat_map(|kind| &kind.blocks).try_for_each(|block| self.write_finding(block, pen))
    }

    fn errors(&mut self, kinds: &[RuleBlocks<'_>], pen: &mut Pen<'_>) -> io::Result<()> {
        self.has_errors |= !kinds.is_empty();
        let rest: Vec<usize> = kinds.iter().map(|kind| kind.blocks.len() - 1).collect();
        for (kind, shown) in kinds.iter().zip(counts::shown_shares(&rest, ERROR_LINES)) {
            self.kind(kind, shown, pen)?;
        }
        Ok(())
    }

    fn warnings(&mut self, kinds: &[RuleBlocks<'_>], pen: &mut Pen<'_>) -> io::Result<()> {
        // Leave out all warnings before any error.
        let shown = if self.is_complete { WARNING_KINDS } else { 0 };
        let lines = if self.has_errors { WARNING_LINES_BESIDE_ERRORS } else { WARNING_LINES };
        for kind in kinds.iter().take(shown) {
            self.kind(kind, lines, pen)?;
        }
        let rest = kinds.get(shown..).unwrap_or_default();
        let causes: Vec<&GroupedFinding<'_>> =
            rest.iter().flat_map(|kind| &kind.blocks).flat_map(Block::causes).collect();
        if !causes.is_empty() {
            self.is_complete = false;
            pen.blank()?;
            let more = if shown > 0 { "more warning" } else { "warning" };
            let line = format!("{}: {}", text::count(causes.len(), more), by_rule(causes));
            pen.wrapped("", 2, &line)?;
        }
        Ok(())
    }

    /// What a bump of a library changes: how much it is, and the worst of it in full. Of `total` findings of the severity.
    fn bumps(
        &mut self,
        bumps: &[LibraryBump<'_>],
        (severity, total): (Severity, usize),
        pen: &mut Pen<'_>,
    ) -> io::Result<()> {
        for bump in bumps {
            self.is_whole = false;
            self.has_errors |= severity == Severity::Error;
            // The worst would be a warning before an error that is left out.
            let worst = bump.worst().filter(|_| severity == Severity::Error || self.is_complete);
            pen.blank()?;
            let sentence = bump.sentence(severity, total);
            let (number, _) = sentence.split_at(sentence.find(" are ").unwrap_or(0));
            let show = if worst.is_some() { "; the worst:" } else { "" };
            let line = format!("{sentence} (in {}: {}){show}", bump.crds(), by_rule(bump.causes()));
            let mut lines = text::wrap(&line, pen.width.saturating_sub(2).max(40)).into_iter();
            let first = lines.next().unwrap_or_default();
            let role = pen::severity_role(severity);
            let head = first.strip_prefix(number).map(|rest| format!("{}{rest}", pen.paint.text(role, number)));
            pen.line(&head.unwrap_or_else(|| first.to_owned()))?;
            lines.try_for_each(|line| pen.line(&format!("  {line}")))?;
            worst.map_or(Ok(()), |worst| self.write_finding(worst, pen))?;
        }
        Ok(())
    }

    /// A line for each object whose changes hurt no existing object.
    fn harmless(&mut self, harmless: &[HarmlessChanges<'_>], pen: &mut Pen<'_>) -> io::Result<()> {
        for HarmlessChanges { object, causes } in harmless {
            self.is_complete = false;
            pen.blank()?;
            let (word, role) = (severity_word(Severity::Warning), pen::severity_role(Severity::Warning));
            let head = pen.paint.text(role, word);
            let read =
                causes.iter().filter_map(|cause| cause.finding.body.evidence.as_ref()).map(|evidence| evidence.objects);
            let whom = match read.max().unwrap_or_default() {
                0 => "no object: none exists".to_owned(),
                1 => "not the only object".to_owned(),
                objects => format!("none of {} objects", text::thousands(objects)),
            };
            let changes = text::count(causes.len(), "change");
            let rules = by_rule(causes.iter().copied());
            let line =
                format!(": {changes} of {} would block, but affect {whom}: {rules}", text::sanitize(&object.name));
            pen.wrapped(&head, 2, &line)?;
        }
        Ok(())
    }

    /// The first finding of a kind in full, and lines for some of the others.
    fn kind(&mut self, kind: &RuleBlocks<'_>, lines: usize, pen: &mut Pen<'_>) -> io::Result<()> {
        let [first, rest @ ..] = &kind.blocks[..] else { return Ok(()) };
        self.write_finding(first, pen)?;
        if rest.is_empty() {
            return Ok(());
        }
        let severity = first.first().cause().severity();
        let (word, role) = (severity_word(severity), pen::severity_role(severity));
        let head = pen.paint.text(role, &format!("{word}[{}]", text::cut(&text::sanitize(kind.rule), 100)));
        self.is_whole = false;
        pen.line(&format!("{head}: {} more", kind.findings() - first.findings()))?;
        let shown: Vec<(String, String)> = rest.iter().take(lines).map(|block| self.line(block)).collect();
        let column = shown.iter().map(|(place, _)| text::width(place)).max().unwrap_or(0).min(WIDEST_PLACE);
        for (place, fact) in &shown {
            // One line each, however long, so that grep finds them.
            let place = if column == 0 { String::new() } else { format!("{}  ", text::pad(place, column)) };
            pen.line(&format!("  {place}{fact}"))?;
        }
        if rest.len() > lines {
            self.is_complete = false;
            let left: usize = rest[lines..].iter().map(Block::findings).sum();
            pen.line(&format!("  … and {left} more"))?;
        }
        Ok(())
    }

    fn write_finding(&mut self, block: &Block<'_>, pen: &mut Pen<'_>) -> io::Result<()> {
        pen.blank()?;
        finding::write(block, &mut self.shown, self.options, self.excerpts, pen)
    }

    /// Where to find the rest, and what the rules mean.
    fn hints(&self, pen: &mut Pen<'_>) -> io::Result<()> {
        let named = |name: &&String| name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        let rule = self.shown.rules.iter().find(named);
        let rules = rule.map(|rule| format!("For details of a rule: gantry rules {}.", text::cut(rule, 100)));
        let rest = match (self.is_complete, self.is_whole) {
            (true, true) => None,
            (true, false) => Some("-v shows every finding in full, -o json has them as data."),
            (false, _) => Some("Not every finding is shown: -v shows all of them in full, -o json has them as data."),
        };
        let cluster = pen.cluster_of_kubectl().map(str::to_owned);
        let hints: Vec<String> = cluster.into_iter().chain(rules).chain(rest.map(str::to_owned)).collect();
        if hints.is_empty() {
            return Ok(());
        }
        pen.blank()?;
        let hints = pen.paint.text(TextRole::Faint, &hints.join(" "));
        pen.line(&hints)
    }

    /// The place, the object, the versions, the node and the facts.
    fn line(&self, block: &Block<'_>) -> (String, String) {
        let first = block.first();
        let cause = first.cause();
        let place = cause.finding.source.as_ref().map(|source| self.shown.short_place(source));
        let mut words = vec![finding::list_objects(block)];
        if !cause.versions.is_empty() {
            words.push(cause.versions());
        }
        let more = match block.other_nodes() {
            0 => String::new(),
            nodes => format!(" and {}", text::count(nodes, "more place")),
        };
        words.extend(cause.finding.body.path.as_ref().map(|path| format!("{path}{more}")));
        words.retain(|word| !word.is_empty());
        let facts = first.facts.iter().map(|cause| {
            let evidence = cause.finding.body.evidence.as_ref().map(|evidence| format!("; {}", evidence.message));
            format!("{}{}", cause.fact(), evidence.unwrap_or_default())
        });
        let facts = facts.collect::<Vec<_>>().join("; ");
        let longest = if cause.severity() == Severity::Error { LONGEST_FACT } else { LONGEST_FACT_OF_WARNING };
        let facts = text::sanitize(&facts);
        let line = format!("{}: {}", text::sanitize(&words.join(", ")), text::cut(&facts, longest));
        let line = line.strip_prefix(": ").unwrap_or(&line).to_owned();
        (text::cut(&text::sanitize(&place.unwrap_or_default()), 200).into_owned(), text::cut(&line, 1000).into_owned())
    }
}

fn count_findings(kinds: &[RuleBlocks<'_>]) -> usize {
    kinds.iter().map(RuleBlocks::findings).sum()
}

/// The changes of one CRD that no existing object suffers from.
struct HarmlessChanges<'a> {
    object: &'a ObjectRef,
    causes: Vec<&'a GroupedFinding<'a>>,
}

/// Takes out what is no error only because no existing object suffers, where one CRD has more than a few of these.
fn take_harmless<'a>(kinds: &mut Vec<RuleBlocks<'a>>) -> Vec<HarmlessChanges<'a>> {
    let is_harmless = |cause: &GroupedFinding<'_>| {
        let FindingBody { evidence, semantic, .. } = &cause.finding.body;
        let is_spared = evidence.as_ref().is_some_and(|evidence| evidence.examined == Examined::NoneAffected);
        is_spared && *semantic == Some(Severity::Error)
    };
    let object = |block: &Block<'a>| match &block.places[..] {
        [place] if place.facts.iter().all(|cause| is_harmless(cause)) => place.object(),
        _ => None,
    };
    let mut found: Vec<HarmlessChanges<'a>> = Vec::new();
    for block in kinds.iter().flat_map(|kind| &kind.blocks) {
        let Some(object) = object(block) else { continue };
        match found.iter_mut().find(|known| known.object == object) {
            Some(known) => known.causes.extend(block.causes()),
            None => found.push(HarmlessChanges { object, causes: block.causes().collect() }),
        }
    }
    found.retain(|harmless| harmless.causes.len() > FEW_HARMLESS);
    for kind in kinds.iter_mut() {
        kind.blocks.retain(|block| !object(block).is_some_and(|of| found.iter().any(|known| known.object == of)));
    }
    kinds.retain(|kind| !kind.blocks.is_empty());
    found
}

/// `dir/` of `dir/a.yaml` and `dir/sub/b.yaml`.
fn common_folder(report: &Report) -> &str {
    let findings = report.checks.iter().flat_map(|check| &check.findings);
    let files = findings.filter_map(|finding| Some(&*finding.source.as_ref()?.file));
    let folder = |file: &'_ str| file.rfind('/').map_or(0, |at| at + 1);
    let common = files.fold(None, |common: Option<&str>, file| {
        let Some(common) = common else { return Some(&file[..folder(file)]) };
        let same = common.bytes().zip(file.bytes()).take_while(|(a, b)| a == b).count();
        // Cut only at slashes.
        Some(&common[..common.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)])
    });
    common.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, samples};
    use gantry_core::finding::{CheckStatus, Source};

    #[test]
    fn few_findings_are_all_shown_and_many_get_a_fair_share() {
        assert_eq!(counts::shown_shares(&[3, 0, 5], 100), [3, 0, 5]);
        assert_eq!(counts::shown_shares(&[300, 2, 100], 12), [5, 2, 5]);
        assert_eq!(counts::shown_shares(&[], 5), [0; 0]);
        assert_eq!(counts::shown_shares(&[7, 7], 0), [0, 0]);
    }

    #[test]
    fn the_common_folder_of_all_files_is_found() {
        let folder = |files: &[&str]| {
            let at = |file: &&str| gantry_core::finding::Finding {
                source: Some(Source { file: (*file).into(), line: 1, column: None }),
                ..samples::finding("A", Severity::Error, samples::crd("x"), "a")
            };
            let check = samples::check("C", CheckStatus::Blocked, files.iter().map(at).collect());
            common_folder(&samples::report(Outcome::Blocked, Vec::new(), vec![check])).to_owned()
        };
        assert_eq!(folder(&[]), "");
        assert_eq!(folder(&["a.yaml", "b/c.yaml"]), "");
        assert_eq!(folder(&["/x/y/a.yaml"]), "/x/y/");
        assert_eq!(folder(&["x/yes/a.yaml", "x/yet/a.yaml"]), "x/");
        assert_eq!(folder(&["x/日/a.yaml", "x/本/a.yaml", "x/日/b.yaml"]), "x/");
    }
}

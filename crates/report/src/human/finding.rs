//! One finding: what is wrong, where, who breaks, the proof, what to do.

use std::collections::BTreeSet;
use std::io;

use annotate_snippets::Level;
use serde_json::Value;

use super::pen::{self, Pen};
use super::{Excerpts, HumanOptions};
use crate::view::causes::GroupedFinding;
use crate::view::excerpt::{self, Excerpt, Style};
use crate::view::groups::Block;
use crate::view::{flow, library, phrases};
use gantry_core::finding::{AffectedObject, Breaks, Finding, Severity, Source, Verdict, Witness};
use gantry_core::resource::ObjectRef;
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The maximum length of a message. Longer ones, for example with a whole schema, are cut; `-o json` has all of them.
const LONGEST_MESSAGE: usize = 500;
const LONGEST_HELP: usize = 2000;
/// The maximum length of a witness that is shown, in characters.
const LONGEST_WITNESS: usize = 600;
/// The number of witnesses that are shown, without and with `verbose`.
const WITNESSES: usize = 1;
const WITNESSES_VERBOSE: usize = 5;
/// Further places of the same finding that are named (unless `verbose`).
const PLACES: usize = 5;
/// The maximum number of objects that a line names.
const NAMED: usize = 3;
const LONGEST_WAIVER: usize = 400;
/// The labels of the notes are padded to this.
const LABEL: usize = 8;

/// Writes the first finding of a block in full, and the places of the others.
pub fn write(
    block: &Block<'_>,
    shown: &mut AlreadyShown,
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let facts = &block.first().facts;
    let cause = block.first().cause();
    let finding = cause.finding;
    for fact in facts {
        let word = phrases::severity_word(fact.severity());
        let role = pen::severity_role(fact.severity());
        let rule = text::sanitize(&fact.finding.rule);
        write_title(&format!("{word}[{}]", text::cut(&rule, 100)), role, &fact.message(), pen)?;
    }
    let hide = phrases::hides_lines(finding, options.redact, excerpts);
    let gutter =
        draw_place(finding.source.as_ref(), finding.body.label.as_deref(), finding.severity, hide, excerpts, pen)?;

    write_note("in", &[phrases::place_in_object(cause)], gutter, pen)?;
    write_note("also", &list_other_places(block, shown, options), gutter, pen)?;
    let library = finding.body.library_change.as_ref().map(library::describe);
    write_note("library", library.as_slice(), gutter, pen)?;
    write_note("breaks", &shown.breaks(facts), gutter, pen)?;
    let exist = facts
        .iter()
        .flat_map(|fact| [describe_evidence(fact.finding), list_affected_objects(fact.finding, options)].concat());
    write_note("objects", &exist.collect::<Vec<_>>(), gutter, pen)?;
    write_note("proof", &describe_proofs(facts, options), gutter, pen)?;
    let not_written = (finding.not_written && finding.severity == Severity::Warning)
        .then(|| "a warning, because this deploy does not change the object".to_owned());
    write_note("note", not_written.as_slice(), gutter, pen)?;
    let waived = finding.waived.as_ref().map(|waived| {
        let until = waived.expires.as_deref().map(|date| format!(" (until {date})")).unwrap_or_default();
        text::cut(&text::sanitize(&format!("{}{until}", waived.reason)), LONGEST_HELP).into_owned()
    });
    write_note("waived", waived.as_slice(), gutter, pen)?;
    let mut next: Vec<String> = Vec::new();
    for fact in facts {
        let steps = steps(fact, shown);
        let new: Vec<String> = steps.into_iter().filter(|step| !next.contains(step)).collect();
        next.extend(new);
    }
    if let Some(advice) = advise_installers(facts).filter(|_| options.verbose || !shown.waiver) {
        shown.waiver = true;
        next.extend(advice);
    }
    write_note("next", &next, gutter, pen)
}

/// The next step for a fact, and where to read more about its rule, unless that was shown already.
fn steps(fact: &GroupedFinding<'_>, shown: &mut AlreadyShown) -> Vec<String> {
    let help = fact.help();
    // One line for each step.
    let help = text::cut_between_commands(&help, LONGEST_HELP);
    let mut steps: Vec<String> =
        help.lines().map(|line| text::sanitize(line).into_owned()).filter(|line| !line.is_empty()).collect();
    if let Some(name) = fact.finding.body.explain.as_ref().filter(|name| shown.rules.insert(name.to_string()))
        && *name != fact.finding.rule
    {
        let name = text::sanitize(name);
        steps.push(format!("details: gantry rules {}", text::cut(&name, 100)));
    }
    steps
}

/// What the report has shown already and does not repeat.
#[derive(Default)]
pub struct AlreadyShown {
    /// The folder of all files of the report, which further places do not repeat.
    folder: String,
    /// The names that `gantry rules` explains.
    pub rules: BTreeSet<String>,
    breaks: BTreeSet<Breaks>,
    /// How to accept a change of somebody else's CRD.
    waiver: bool,
}

impl AlreadyShown {
    pub fn new(folder: &str) -> Self {
        AlreadyShown { folder: folder.to_owned(), ..AlreadyShown::default() }
    }

    /// Who is affected, and how, unless that was shown already.
    fn breaks(&mut self, facts: &[&GroupedFinding<'_>]) -> Vec<String> {
        let breaks: BTreeSet<Breaks> = facts.iter().flat_map(|fact| fact.finding.body.breaks.iter().copied()).collect();
        if breaks.is_subset(&self.breaks) {
            let names: Vec<&str> = breaks.into_iter().map(|breaks| phrases::affected_party(breaks).0).collect();
            return Vec::from_iter((!names.is_empty()).then(|| names.join(", ")));
        }
        let findings: Vec<&Finding> = facts.iter().map(|fact| fact.finding).collect();
        let words = breaks.iter().map(|breaks| match (phrases::affected_party(*breaks), self.breaks.insert(*breaks)) {
            ((who, _), true) => format!("{who}: {}", phrases::describe_effect(*breaks, &findings)),
            ((who, _), false) => who.to_owned(),
        });
        words.collect()
    }

    /// `file:line` without the folder of all files.
    pub fn short_place(&self, source: &Source) -> String {
        let file = if &*source.file == "-" { "<stdin>" } else { &*source.file };
        let file = text::sanitize(file.strip_prefix(&self.folder).unwrap_or(file));
        if source.line > 0 { format!("{file}:{}", source.line) } else { file.into_owned() }
    }
}

/// The next step for users who did not write the CRD: keep the old one, or accept the changes at this place.
fn advise_installers(facts: &[&GroupedFinding<'_>]) -> Option<Vec<String>> {
    let crd = facts.first()?.finding.object.as_ref().filter(|object| object.is_crd())?;
    // No waiver helps where the server refuses the CRD.
    if facts.iter().any(|fact| fact.finding.refused_by_server) {
        return None;
    }
    let is_error =
        |fact: &&&GroupedFinding<'_>| fact.severity() == Severity::Error && !fact.finding.body.breaks.is_empty();
    let waiver = |rule: &str, path: Option<&str>| {
        let mut waiver = serde_json::Map::new();
        let mut set = |key: &str, value: &str| waiver.insert(key.to_owned(), value.into());
        set("rule", rule);
        set("object", &crd.name);
        if let Some(path) = path {
            set("path", path);
        }
        set("reason", "why this is fine here");
        Value::Object(waiver)
    };
    let mut waivers: Vec<Value> = Vec::new();
    for fact in facts.iter().filter(is_error) {
        let paths = fact.paths();
        let paths = if paths.is_empty() { vec![None] } else { paths.into_iter().map(Some).collect() };
        waivers.extend(paths.into_iter().map(|path| waiver(&fact.finding.rule, path)));
    }
    let first = "if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:".to_owned();
    let lines = match waivers.as_slice() {
        [] => return None,
        [_] => vec![format!("  waivers: {}", flow::to_one_line(&Value::Array(waivers), LONGEST_WAIVER))],
        all => {
            let each = all.iter().map(|waiver| format!("  - {}", flow::to_one_line(waiver, LONGEST_WAIVER)));
            std::iter::once("  waivers:".to_owned()).chain(each).collect()
        }
    };
    Some(std::iter::once(first).chain(lines).collect())
}

/// `error[Rule]: message`
pub fn write_title(plain: &str, role: TextRole, message: &str, pen: &mut Pen<'_>) -> io::Result<()> {
    let message = text::sanitize(message);
    let message = text::cut(&message, LONGEST_MESSAGE);
    let head = pen.paint.text(role, plain);
    let message = format!(": {message}");
    if !pen.wraps_titles {
        return pen.line(&format!("{head}{}", pen.paint.text(TextRole::Heading, &message)));
    }
    let room = pen.width.saturating_sub(2).max(40);
    let whole = format!("{plain}{message}");
    let mut lines = text::wrap(&whole, room).into_iter();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix(plain).unwrap_or_default();
    pen.line(&format!("{head}{}", pen.paint.text(TextRole::Heading, first)))?;
    for line in lines {
        pen.line(&format!("  {}", pen.paint.text(TextRole::Heading, line)))?;
    }
    Ok(())
}

/// Writes the arrow and the excerpt (unless its line is hidden). Returns the indentation of what follows.
pub fn draw_place(
    source: Option<&Source>,
    label: Option<&str>,
    severity: Severity,
    hide: bool,
    excerpts: &dyn Excerpts,
    pen: &mut Pen<'_>,
) -> io::Result<usize> {
    let Some(source) = source else { return Ok(1) };
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info | Severity::Waived | Severity::Known => Level::INFO,
    };
    let style = Style { level, color: pen.paint.is_on(), width: pen.width };
    let hide = hide || excerpt::place_names_secret(source, excerpts);
    let drawn = if hide { None } else { excerpt::draw(source, label, excerpts, style) };
    let gutter = drawn.as_ref().map_or(1, |Excerpt { gutter, .. }| *gutter);
    pen.write_arrow(gutter, &shown_place(source))?;
    if let Some(Excerpt { text, .. }) = drawn {
        // The first line is the bar alone.
        for line in text.lines().skip(1) {
            pen.line(line)?;
        }
    } else if let Some(label) = label {
        write_note("note", &[text::cut(&text::sanitize(label), 200).into_owned()], gutter, pen)?;
    }
    Ok(gutter)
}

fn shown_place(source: &Source) -> String {
    let file = if &*source.file == "-" { "<stdin>".into() } else { text::sanitize(&source.file) };
    match (source.line, source.column) {
        (0, _) => file.into_owned(),
        (line, None) => format!("{file}:{line}"),
        (line, Some(column)) => format!("{file}:{line}:{column}"),
    }
}

/// ` = label   text`, each text on its own line. Writes nothing if all texts are empty.
fn write_note(label: &str, texts: &[String], gutter: usize, pen: &mut Pen<'_>) -> io::Result<()> {
    let indent = gutter + 3 + LABEL;
    let mut first = true;
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let prefix = if first {
            let sign = pen.paint.text(TextRole::Frame, "=");
            format!("{} {sign} {}", " ".repeat(gutter), pen.paint.text(TextRole::Heading, &text::pad(label, LABEL)))
        } else {
            " ".repeat(indent)
        };
        // Wrapped lines keep the indentation of the text.
        let own = text.len() - text.trim_start().len();
        pen.wrapped(&format!("{prefix}{}", &text[..own]), indent + own, text.trim_start())?;
        first = false;
    }
    Ok(())
}

/// The objects of a block: all if they are few, else the first and the number of others.
pub fn list_objects(block: &Block<'_>) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in block.places.iter().filter_map(|place| place.object()).map(phrases::object_name) {
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    if names.len() <= NAMED {
        return names.join(", ");
    }
    let word =
        if block.places.iter().all(|place| place.object().is_some_and(ObjectRef::is_crd)) { "CRDs" } else { "objects" };
    format!("{} and {} more {word}", names[..NAMED - 1].join(", "), names.len() - NAMED + 1)
}

/// The other places to fix: further versions, nodes and objects, and the other facts.
fn list_other_places(block: &Block<'_>, shown: &AlreadyShown, options: &HumanOptions) -> Vec<String> {
    let first = block.first();
    let mut places: Vec<String> = Vec::new();
    let mut add = |what: &str, source: Option<&Source>| {
        let what = text::cut(&text::sanitize(what), 200).into_owned();
        places.push(source.map_or_else(|| what.clone(), |source| format!("{what} ({})", shown.short_place(source))));
    };
    for fact in &first.facts[1..] {
        if let (Some(label), Some(source)) = (&fact.finding.body.label, &fact.finding.source) {
            add(&format!("{}: {label}", fact.finding.rule), Some(source));
        }
    }
    for (what, source) in first.facts.iter().flat_map(|fact| fact.other_places()) {
        add(&what, Some(source));
    }
    for place in &block.places[1..] {
        add(&phrases::other_place(first, place), place.cause().finding.source.as_ref());
    }
    if places.len() > PLACES && !options.verbose {
        let rest = places.len() - PLACES;
        places.truncate(PLACES);
        places.push(format!("… and {rest} more (-v lists all)"));
    }
    places
}

/// The effect on this cluster: how many objects are affected, and some of their names.
fn describe_evidence(finding: &Finding) -> Vec<String> {
    let Some(evidence) = &finding.body.evidence else { return Vec::new() };
    let message = text::cut(&text::sanitize(&evidence.message), LONGEST_MESSAGE).into_owned();
    let named = evidence.examples.iter().map(|example| {
        let name = text::sanitize(&example.name);
        let whole = match &example.namespace {
            Some(namespace) => format!("  {}/{name}", text::sanitize(namespace)),
            None => format!("  {name}"),
        };
        let whole = text::cut(&whole, LONGEST_MESSAGE).into_owned();
        if example.from_manifest { format!("{whole} (a manifest of this deploy)") } else { whole }
    });
    let named: Vec<String> = named.collect();
    let left = (evidence.affected_objects + evidence.affected_manifests).saturating_sub(named.len() as u64);
    let more = (left > 0).then(|| format!("  … and {} more", text::thousands(left)));
    std::iter::once(message).chain(named).chain(more).collect()
}

/// The first affected objects of the cluster: the object, the path and the value.
fn list_affected_objects(finding: &Finding, options: &HumanOptions) -> Vec<String> {
    let Some(affected) = &finding.body.affected else { return Vec::new() };
    let most = if options.verbose { usize::MAX } else { affected.examples };
    let mut lines: Vec<String> =
        affected.objects.iter().take(most).map(|object| describe_object(finding, object)).collect();
    let left = affected.objects.len().saturating_sub(most) as u64 + affected.unlisted;
    if left > 0 {
        let how = if options.verbose { "" } else { " (-v shows them, -o json has them as data)" };
        lines.push(format!("… and {left} more{how}"));
    }
    lines
}

/// `team-a/nightly  spec.list[3].x: 7`
fn describe_object(finding: &Finding, object: &AffectedObject) -> String {
    let mut line = match &object.namespace {
        Some(namespace) => format!("{}/{}", text::sanitize(namespace), text::sanitize(&object.name)),
        None => text::sanitize(&object.name).into_owned(),
    };
    let path = object.path.as_deref().or(finding.body.path.as_deref()).unwrap_or_default();
    match (path, &object.value) {
        ("", None) => {}
        ("", Some(value)) => line.push_str(&format!("  {}", text::sanitize(value))),
        (path, None) => line.push_str(&format!("  {}", text::sanitize(path))),
        (path, Some(value)) => line.push_str(&format!("  {}: {}", text::sanitize(path), text::sanitize(value))),
    }
    text::cut(&line, LONGEST_MESSAGE).into_owned()
}

/// What is proven about the facts. What they have in common is shown once.
fn describe_proofs(facts: &[&GroupedFinding<'_>], options: &HumanOptions) -> Vec<String> {
    let mut shown: Vec<&Witness> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        let finding = fact.finding;
        let words = match finding.body.verdict {
            _ if !finding.body.witnesses.is_empty() => {
                let most = if options.verbose { WITNESSES_VERBOSE } else { WITNESSES };
                let new: Vec<&Witness> =
                    finding.body.witnesses.iter().take(most).filter(|witness| !shown.contains(witness)).collect();
                lines.extend(new.iter().flat_map(|new| draw_witness(new)));
                shown.extend(new);
                if options.verbose && finding.body.witnesses.len() > most {
                    lines.push(format!("and {} more (-o json has them)", finding.body.witnesses.len() - most));
                }
                continue;
            }
            Some(Verdict::Undecided) => {
                "none: gantry could not decide whether objects break, so it does not call the change safe"
            }
            Some(Verdict::Equal | Verdict::Widening) if fact.breaks_nothing() => {
                "harmless: every object that is valid today stays valid and unchanged. Reported because kapp and OLM \
                    forbid this change."
            }
            Some(Verdict::Equal | Verdict::Widening) => {
                "harmless: every object that is valid today stays valid and unchanged"
            }
            _ => continue,
        };
        if !lines.iter().any(|line| line == words) {
            lines.push(words.to_owned());
        }
    }
    lines
}

fn draw_witness(witness: &Witness) -> Vec<String> {
    let mut lines = vec![phrases::witness_result(witness)];
    let object = flow::to_one_line(&witness.object, LONGEST_WITNESS);
    match &witness.old_object {
        Some(old) => {
            lines.push(format!("  before  {}", flow::to_one_line(old, LONGEST_WITNESS)));
            lines.push(format!("  after   {object}"));
        }
        None => lines.push(format!("  {object}")),
    }
    lines
}

//! One finding: what is wrong, where, who breaks, the proof, what to do.

use std::io;

use annotate_snippets::Level;

use super::causes::Cause;
use super::excerpt::{self, Excerpt, Style};
use super::pen::{self, Pen};
use super::{Excerpts, HumanOptions, flow};
use crate::report::{AffectedObject, Breaks, Finding, Severity, Source, Verdict, Witness, WitnessVerdict};
use crate::resource::ObjectRef;
use crate::text;
use crate::ui::color::Role;

/// Longer messages are cut: a message with a whole schema in it helps nobody, and `-o json` has it all.
const LONGEST_MESSAGE: usize = 500;
const LONGEST_HELP: usize = 2000;
/// A witness is shown up to this many characters.
const LONGEST_WITNESS: usize = 600;
/// Witnesses shown: one convinces; more are for those who asked for all.
const WITNESSES: usize = 1;
const WITNESSES_VERBOSE: usize = 5;
/// Places of the same cause in further versions that are named.
const PLACES: usize = 5;
/// The labels of the notes are padded to this.
const LABEL: usize = 8;

pub fn write(
    cause: &Cause<'_>,
    explain: bool,
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let finding = cause.finding;
    let (word, role) = pen::severity(finding.severity);
    let rule = text::sanitize(&finding.rule);
    let message = cause.for_all_versions(&finding.message);
    title(&format!("{word}[{}]", text::cut(&rule, 100)), role, &message, pen)?;
    // A Secret's values never reach any output.
    let secret = finding.object.as_ref().is_some_and(ObjectRef::is_secret);
    let hide = secret || options.redact && !finding.object.as_ref().is_some_and(ObjectRef::is_crd);
    let gutter = place(finding.source.as_ref(), finding.label.as_deref(), finding.severity, hide, excerpts, pen)?;

    note("in", &[where_in(cause)], gutter, pen)?;
    note("also", &also(cause), gutter, pen)?;
    let breaks: Vec<String> = finding.breaks.iter().map(|breaks| phrase(*breaks).to_owned()).collect();
    note("breaks", &breaks, gutter, pen)?;
    note("objects", &[evidence(finding), objects(finding, options)].concat(), gutter, pen)?;
    note("proof", &proof(finding, options), gutter, pen)?;
    let not_written = (finding.not_written && finding.severity == Severity::Warning)
        .then(|| "a warning, because this deploy does not change the object".to_owned());
    note("note", not_written.as_slice(), gutter, pen)?;
    let help = cause.for_all_versions(&finding.help);
    let waived = finding.waived.as_ref().map(|waived| {
        let until = waived.expires.as_deref().map(|date| format!(" (until {date})")).unwrap_or_default();
        text::cut(&text::sanitize(&format!("{}{until}", waived.reason)), LONGEST_HELP).into_owned()
    });
    note("waived", waived.as_slice(), gutter, pen)?;
    // Steps to take stand on a line each.
    let help = text::cut(&help, LONGEST_HELP).lines().map(|line| text::sanitize(line).into_owned()).collect::<Vec<_>>();
    // What is offered as a command must be one; and many rules name it in their help.
    let named = finding.rule.starts_with(|c: char| c.is_ascii_uppercase())
        && finding.rule.chars().all(|c| c.is_ascii_alphanumeric());
    let more = if explain && named && !help.iter().any(|line| line.contains("gantry rules")) {
        format!("more about it: gantry rules {}", finding.rule)
    } else {
        String::new()
    };
    note("next", &[help, vec![more]].concat(), gutter, pen)
}

/// `error[Rule]: message`
pub fn title(head: &str, role: Role, message: &str, pen: &mut Pen<'_>) -> io::Result<()> {
    let message = text::sanitize(message);
    let message = text::cut(&message, LONGEST_MESSAGE);
    let head = pen.paint.text(role, head);
    let message = pen.paint.text(Role::Heading, &format!(": {message}"));
    pen.line(&format!("{head}{message}"))
}

/// The arrow and the excerpt (unless its line is to be hidden), and how far to indent what follows.
pub fn place(
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
        Severity::Info | Severity::Waived => Level::INFO,
    };
    let style = Style { level, color: pen.paint.is_on(), width: pen.width };
    let hide = hide || excerpts.line(&source.file, source.line).is_some_and(excerpt::names_secret);
    let drawn = if hide { None } else { excerpt::draw(source, label, excerpts, style) };
    let gutter = drawn.as_ref().map_or(1, |Excerpt { gutter, .. }| *gutter);
    pen.arrow(gutter, &shown_place(source))?;
    if let Some(Excerpt { text, .. }) = drawn {
        for line in text.lines() {
            pen.line(line)?;
        }
        pen.line(&format!("{} {}", " ".repeat(gutter), pen.paint.text(Role::Frame, "|")))?;
    } else if let Some(label) = label {
        note("note", &[text::cut(&text::sanitize(label), 200).into_owned()], gutter, pen)?;
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

/// ` = label   text`, each text on a line of its own. Texts that are all empty make no note.
fn note(label: &str, texts: &[String], gutter: usize, pen: &mut Pen<'_>) -> io::Result<()> {
    let indent = gutter + 3 + LABEL;
    let mut first = true;
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let prefix = if first {
            let sign = pen.paint.text(Role::Frame, "=");
            format!("{} {sign} {}", " ".repeat(gutter), pen.paint.text(Role::Heading, &text::pad(label, LABEL)))
        } else {
            " ".repeat(indent)
        };
        // Text that brings its own indentation keeps it in the lines that it is wrapped into.
        let own = text.len() - text.trim_start().len();
        pen.wrapped(&format!("{prefix}{}", &text[..own]), indent + own, text.trim_start())?;
        first = false;
    }
    Ok(())
}

/// The object, the versions and the field: what to look for in the cluster.
fn where_in(cause: &Cause<'_>) -> String {
    let object = cause.finding.object.as_ref();
    let mut words: Vec<String> = object
        .map(|object| if object.is_crd() { object.name.clone() } else { object.to_string() })
        .into_iter()
        .collect();
    match cause.versions.len() {
        0 => {}
        1 => words.push(format!("version {}", cause.versions())),
        _ => words.push(format!("versions {}", cause.versions())),
    }
    if let Some(path) = &cause.finding.path {
        words.push(format!("field {path}"));
    }
    let words: Vec<String> =
        words.iter().map(|word| text::cut(&text::sanitize(word), LONGEST_MESSAGE).into_owned()).collect();
    words.join(", ")
}

/// Where the same has to be mended in further versions.
fn also(cause: &Cause<'_>) -> Vec<String> {
    let places = cause.others.iter().filter_map(|other| {
        let version = text::sanitize(other.version.as_deref()?);
        other.source.as_ref().map(|source| format!("{} ({})", shown_place(source), text::cut(&version, 100)))
    });
    let mut places: Vec<String> = places.collect();
    if places.len() > PLACES {
        let rest = places.len() - PLACES;
        places.truncate(PLACES);
        places.push(format!("… and {rest} more"));
    }
    places
}

/// Who is affected, and how.
fn phrase(breaks: Breaks) -> &'static str {
    match breaks {
        Breaks::StoredObjects => "stored objects: those that no longer fit are refused when they are next written",
        Breaks::Writers => "writers: what they send today is refused or dropped",
        Breaks::Readers => "readers: they no longer find what they read today",
        Breaks::Data => "data: values are dropped from objects when these are next written",
        Breaks::Behaviour => "behaviour: nothing is refused, but the same object means something else",
    }
}

/// What this cluster says of the change: how many objects suffer, and some of them by name.
fn evidence(finding: &Finding) -> Vec<String> {
    let Some(evidence) = &finding.evidence else { return Vec::new() };
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

/// The first of the objects that exist and are affected: which, where in them, and what is there.
fn objects(finding: &Finding, options: &HumanOptions) -> Vec<String> {
    let Some(affected) = &finding.affected else { return Vec::new() };
    let most = if options.verbose { usize::MAX } else { affected.examples };
    let mut lines: Vec<String> = affected.objects.iter().take(most).map(|object| one_object(finding, object)).collect();
    let left = affected.objects.len().saturating_sub(most) as u64 + affected.unlisted;
    if left > 0 {
        let how = if options.verbose { "" } else { " (-v shows them, -o json has them as data)" };
        lines.push(format!("… and {left} more{how}"));
    }
    lines
}

/// `team-a/nightly  spec.list[3].x: 7`
fn one_object(finding: &Finding, object: &AffectedObject) -> String {
    let mut line = match &object.namespace {
        Some(namespace) => format!("{}/{}", text::sanitize(namespace), text::sanitize(&object.name)),
        None => text::sanitize(&object.name).into_owned(),
    };
    let path = object.path.as_deref().or(finding.path.as_deref()).unwrap_or_default();
    match (path, &object.value) {
        ("", None) => {}
        ("", Some(value)) => line.push_str(&format!("  {}", text::sanitize(value))),
        (path, None) => line.push_str(&format!("  {}", text::sanitize(path))),
        (path, Some(value)) => line.push_str(&format!("  {}: {}", text::sanitize(path), text::sanitize(value))),
    }
    text::cut(&line, LONGEST_MESSAGE).into_owned()
}

fn proof(finding: &Finding, options: &HumanOptions) -> Vec<String> {
    if finding.witnesses.is_empty() {
        let words = match finding.verdict {
            Some(Verdict::Undecided) => {
                "none either way: it is not decided whether objects break, so it is not called safe"
            }
            Some(Verdict::Equal | Verdict::Widening) => {
                "every object that is valid today stays valid and as it is; the rule reports it all the same"
            }
            _ => return Vec::new(),
        };
        return vec![words.to_owned()];
    }
    let most = if options.verbose { WITNESSES_VERBOSE } else { WITNESSES };
    let mut lines: Vec<String> = finding.witnesses.iter().take(most).flat_map(witness).collect();
    if options.verbose && finding.witnesses.len() > most {
        lines.push(format!("and {} more (-o json has them)", finding.witnesses.len() - most));
    }
    lines
}

fn witness(witness: &Witness) -> Vec<String> {
    let today = match witness.live {
        WitnessVerdict::Accepted => "accepted today",
        WitnessVerdict::Refused => "refused today",
        WitnessVerdict::Pruned => "loses values today",
        WitnessVerdict::Defaulted => "gets defaults today",
    };
    let tomorrow = match witness.desired {
        WitnessVerdict::Accepted => "accepted with this change",
        WitnessVerdict::Refused => "refused with this change",
        WitnessVerdict::Pruned => "loses values with this change",
        WitnessVerdict::Defaulted => "gets defaults with this change",
    };
    let message = text::sanitize(&witness.message);
    let message = match message.is_empty() {
        true => String::new(),
        false => format!(": {}", text::cut(&message, LONGEST_MESSAGE)),
    };
    let through = witness.subresource.as_deref().map_or_else(String::new, |subresource| {
        format!(", written through the {} subresource", text::sanitize(subresource))
    });
    let mut lines = vec![format!("{today}, {tomorrow}{through}{message}")];
    let object = flow::of(&witness.object, LONGEST_WITNESS);
    match &witness.old_object {
        Some(old) => {
            lines.push(format!("  before  {}", flow::of(old, LONGEST_WITNESS)));
            lines.push(format!("  after   {object}"));
        }
        None => lines.push(format!("  {object}")),
    }
    lines
}

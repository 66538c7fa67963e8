//! Sentences that several formats share. Untrusted text is sanitized here; each format does its own escaping on top.

use super::Report;
use super::view::flow;
use super::view::phrases::{affected_party, describe_effect, severity_word, witness_result};
use gantry_core::finding::{
    BaselineEntry, Breaks, CheckReport, CheckStatus, Finding, Severity, Source, Verdict, Witness,
};
use gantry_core::text;

/// The maximum length of a message; longer ones are cut, and `-o json` has all of them.
const LONGEST_MESSAGE: usize = 500;
const LONGEST_HELP: usize = 2000;
/// The maximum length of a witness, in characters; longer ones are shortened.
const LONGEST_WITNESS: usize = 2000;

/// `error`, `warning`, …
pub fn severity(severity: Severity) -> &'static str {
    severity_word(severity)
}

/// What is wrong, on one line.
pub fn message(finding: &Finding) -> String {
    line(&finding.body.message, LONGEST_MESSAGE)
}

/// The place of the part that a removed one was in, if the finding is shown at another line.
pub fn parent_place(finding: &Finding) -> Option<String> {
    let source = finding.source.as_ref().filter(|source| {
        finding.change_source.as_ref().is_some_and(|change| (&change.file, change.line) != (&source.file, source.line))
    });
    source.map(|source| format!("(it was below {})", place(source)))
}

/// The object, as kubectl names it.
pub fn object(finding: &Finding) -> String {
    finding.object.as_ref().map_or_else(|| "the plan".to_owned(), |object| line(&object.to_string(), 300))
}

/// The version and the path: `v1, ^.spec.x`. Empty if a finding concerns the whole object.
pub fn version_and_path(finding: &Finding) -> String {
    let parts: Vec<String> = [&finding.body.version, &finding.body.path]
        .into_iter()
        .flatten()
        .map(|part| line(part, LONGEST_MESSAGE))
        .collect();
    parts.join(", ")
}

/// `file:line:column`
pub fn place(source: &Source) -> String {
    let file = if &*source.file == "-" { "<stdin>".to_owned() } else { line(&source.file, 1000) };
    match (source.line, source.column) {
        (0, _) => file,
        (line, None) => format!("{file}:{line}"),
        (line, Some(column)) => format!("{file}:{line}:{column}"),
    }
}

/// Who is affected and how, one sentence each.
pub fn breaks(finding: &Finding) -> Vec<String> {
    let one = |breaks: &Breaks| format!("{}: {}", affected_party(*breaks).0, describe_effect(*breaks, &[finding]));
    finding.body.breaks.iter().map(one).collect()
}

/// The next steps, one line each.
pub fn steps(finding: &Finding) -> Vec<String> {
    let help = text::cut_between_commands(&finding.body.help, LONGEST_HELP);
    help.lines().map(|step| text::sanitize(step).into_owned()).filter(|step| !step.trim().is_empty()).collect()
}

/// What happens to a witness.
pub fn describe_result(witness: &Witness) -> String {
    text::cut(&witness_result(witness), LONGEST_MESSAGE).into_owned()
}

/// A witness, in one line of YAML.
pub fn yaml(object: &serde_json::Value) -> String {
    flow::to_one_line(object, LONGEST_WITNESS)
}

/// What is proven, if there is no witness.
pub fn proven(finding: &Finding) -> Option<&'static str> {
    match finding.body.verdict? {
        _ if !finding.body.witnesses.is_empty() => None,
        Verdict::Undecided => Some("undecided: some objects may break, so the change is not called safe"),
        Verdict::Equal | Verdict::Widening => {
            Some("harmless: every object that is valid today stays valid and unchanged")
        }
        _ => None,
    }
}

/// Why a finding is accepted.
pub fn accepted(finding: &Finding) -> Option<String> {
    let waived = finding.waived.as_ref().filter(|_| finding.severity == Severity::Waived)?;
    let until = waived.expires.as_ref().map(|day| format!(" (until {day})")).unwrap_or_default();
    Some(line(&format!("{}{until}", waived.reason), LONGEST_HELP))
}

/// A finding as plain text, for formats without markup.
pub fn plain_text(finding: &Finding) -> String {
    let mut lines = vec![format!("{}[{}] {}", severity(finding.severity), line(&finding.rule, 100), message(finding))];
    let mut note = |label: &str, texts: &[String]| {
        for (at, text) in texts.iter().filter(|text| !text.is_empty()).enumerate() {
            lines.push(format!("  {:7} {text}", if at == 0 { label } else { "" }));
        }
    };
    note("at", &finding.source.iter().map(place).collect::<Vec<_>>());
    note("in", &[version_and_path(finding)]);
    note("breaks", &breaks(finding));
    for witness in finding.body.witnesses.iter().take(1) {
        let mut proof = vec![describe_result(witness)];
        proof.extend(witness.old_object.iter().map(|old| format!("before: {}", yaml(old))));
        proof.push(yaml(&witness.object));
        note("proof", &proof);
    }
    note("proof", &proven(finding).map(str::to_owned).into_iter().collect::<Vec<_>>());
    note(
        "objects",
        &finding.body.evidence.iter().map(|found| line(&found.message, LONGEST_MESSAGE)).collect::<Vec<_>>(),
    );
    note("why", &accepted(finding).into_iter().collect::<Vec<_>>());
    note("next", &steps(finding));
    lines.join("\n")
}

/// Everything that could not be checked: the name of the check, what, and the next step.
pub fn unchecked(report: &Report) -> impl Iterator<Item = (&CheckReport, String, Option<String>)> {
    report.checks.iter().flat_map(|check| {
        check.unchecked.iter().map(move |unchecked| {
            let help = unchecked.help.as_deref();
            (
                check,
                line(&unchecked.message, 1000),
                help.map(|help| text::cut_between_commands(&text::sanitize_block(help), LONGEST_HELP).into_owned()),
            )
        })
    })
}

/// The comparison with the baseline:
/// `Compared with old.json: 11 known findings do not count, 1 is new or worse, 2 are gone.`
pub fn baseline(report: &Report) -> Option<String> {
    let BaselineEntry { file, new, unchanged, updated, absent } = report.baseline.as_ref()?;
    let verb = if *unchanged == 1 { "does" } else { "do" };
    let known = format!("{} {verb} not count", text::count(*unchanged, "known finding"));
    let are = |number: usize| if number == 1 { "is" } else { "are" };
    let rest = [(new + updated, "new or worse"), (*absent, "gone")];
    let rest = rest.into_iter().filter(|(number, _)| *number > 0);
    let rest: Vec<String> = rest.map(|(number, what)| format!(", {number} {} {what}", are(number))).collect();
    Some(format!("Compared with {}: {known}{}.", line(file, 200), rest.concat()))
}

/// The status of a check, in a word.
pub fn status(check: &CheckReport) -> &'static str {
    match check.status {
        CheckStatus::Passed => "passed",
        CheckStatus::Warned => "warned",
        CheckStatus::Blocked => "blocked",
        CheckStatus::Skipped => "skipped",
        CheckStatus::Failed => "could not check",
    }
}

/// Untrusted text as one line of at most `most` characters.
pub fn line(text: &str, most: usize) -> String {
    text::cut(&text::sanitize(text), most).into_owned()
}

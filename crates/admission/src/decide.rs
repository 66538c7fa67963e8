//! What the configuration makes of a verdict: the answer to the API server, in words.

use std::collections::{BTreeMap, BTreeSet};

use gantry_core::finding::{Finding, Severity};
use gantry_core::options::{AdmissionMode, UnjudgedChange};
use gantry_core::problem::Problem;
use gantry_core::resource::RawObject;
use gantry_core::text::{count, sanitize};
use gantry_deploy::config::AdmissionSettings;
use gantry_schema::scan;

use crate::judge::{ACCEPT_CHANGE, ChangeVerdict};
use crate::review::{Answer, ReviewedChange, ReviewedRequest};

/// The maximum length of a denial in bytes: some clients show no more of a condition.
const MAX_MESSAGE: usize = 4_000;
/// The maximum length of a warning. The API server cuts a longer one.
/// Source: `k8s.io/apiserver/pkg/endpoints/filters/warning.go`
const MAX_WARNING: usize = 256;
/// The maximum length of a name. That of a CRD has at most 253 bytes.
const MAX_NAME: usize = 256;
/// The maximum length of the list of groups in a denial.
const MAX_GROUPS: usize = 1_000;
/// The maximum length of all warnings. The API server drops those beyond 4,096 bytes.
const MAX_WARNINGS: usize = 3_800;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReviewOutcome {
    /// The webhook does not look at the CRD.
    Ignored,
    /// Nothing changes that could do harm.
    Unchanged,
    /// The change is safe.
    Allowed,
    /// The change is not safe, and only the logs say so.
    Audited,
    /// The change is not safe, or has warnings, and is allowed with warnings.
    Warned,
    /// The change is refused.
    Denied,
    /// The change is not safe, and was accepted.
    Accepted,
    /// It is not known whether the change is safe, and it is allowed.
    Unjudged,
}

impl ReviewOutcome {
    /// Its word in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            ReviewOutcome::Ignored => "ignored",
            ReviewOutcome::Unchanged => "unchanged",
            ReviewOutcome::Allowed => "allowed",
            ReviewOutcome::Audited => "audited",
            ReviewOutcome::Warned => "warned",
            ReviewOutcome::Denied => "denied",
            ReviewOutcome::Accepted => "accepted",
            ReviewOutcome::Unjudged => "unjudged",
        }
    }
}

/// What the webhook answers, and why.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The mode of the CRD.
    pub mode: AdmissionMode,
    /// What became of the request.
    pub outcome: ReviewOutcome,
    /// The answer to the API server.
    pub answer: Answer,
}

impl Decision {
    /// A request that is allowed without a verdict.
    pub fn allowed(mode: AdmissionMode, outcome: ReviewOutcome) -> Self {
        Decision { mode, outcome, answer: Answer::default() }
    }
}

/// Who asks, as far as the decision depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The groups of the user.
    pub groups: &'a [String],
    /// The values of [`ACCEPT_CHANGE`] on the CRD.
    pub accepts: &'a [String],
}

impl<'a> Requester<'a> {
    /// The one who makes a request. `accepts` are the values of the annotation.
    pub fn from_request(request: &'a ReviewedRequest, accepts: &'a [String]) -> Self {
        Requester { user: request.user(), groups: request.groups(), accepts }
    }
}

/// The values of the annotation that accepts a change: of the CRD as it would be stored and as it is. A client that
/// replaces the CRD, such as `kubectl replace`, removes an annotation that its manifest does not have.
pub fn accepted_digests(change: &ReviewedChange) -> Vec<String> {
    let objects = match change {
        ReviewedChange::Created => vec![],
        ReviewedChange::Updated { live, desired } | ReviewedChange::StatusUpdated { live, desired } => {
            vec![desired, live]
        }
        ReviewedChange::Deleted { live } => vec![live],
    };
    let annotation = |object: &RawObject| {
        let json = object.json();
        let metadata = scan::member(&json, "metadata")?;
        let annotations = scan::member(metadata, "annotations")?;
        let mut annotations: BTreeMap<String, String> = serde_json::from_str(annotations).ok()?;
        annotations.remove(ACCEPT_CHANGE)
    };
    objects.into_iter().filter_map(annotation).collect()
}

/// The decision about a change of the CRD.
pub fn decide(
    settings: &AdmissionSettings,
    crd: &str,
    change: &ReviewedChange,
    verdict: &ChangeVerdict,
    by: Requester<'_>,
) -> Decision {
    let mode = settings.mode_of(crd);
    let (findings, errors) = (verdict.findings(), verdict.errors());
    let mut audit: BTreeMap<&'static str, String> = BTreeMap::new();
    if errors > 0 || !verdict.unjudged.is_empty() {
        let rules: BTreeSet<&str> = findings.iter().map(|finding| finding.rule.as_str()).collect();
        audit.insert("digest", verdict.digest.clone());
        audit.insert("rules", rules.into_iter().collect::<Vec<_>>().join(","));
    }
    let is_allowed_to_accept = settings.accepted_by.iter().any(|group| by.groups.contains(group));
    let accepts = by.accepts.contains(&verdict.digest);
    let is_refusable = errors > 0 || mode == AdmissionMode::Deny && !verdict.unjudged.is_empty();
    let (outcome, refuses) = match mode {
        AdmissionMode::Ignore => (ReviewOutcome::Ignored, false),
        _ if is_refusable && accepts && is_allowed_to_accept => {
            audit.insert("accepted-by", by.user.to_owned());
            (ReviewOutcome::Accepted, false)
        }
        AdmissionMode::Deny if errors > 0 => (ReviewOutcome::Denied, true),
        AdmissionMode::Deny if !verdict.unjudged.is_empty() => match settings.on_timeout {
            UnjudgedChange::Deny => (ReviewOutcome::Denied, true),
            UnjudgedChange::Warn => (ReviewOutcome::Unjudged, false),
        },
        AdmissionMode::Audit if errors > 0 => (ReviewOutcome::Audited, false),
        _ if errors == 0 && !verdict.unjudged.is_empty() => (ReviewOutcome::Unjudged, false),
        AdmissionMode::Audit => (ReviewOutcome::Allowed, false),
        _ if findings.is_empty() => (ReviewOutcome::Allowed, false),
        _ => (ReviewOutcome::Warned, false),
    };
    audit.insert("outcome", outcome.word().to_owned());
    let is_silent = matches!(mode, AdmissionMode::Ignore | AdmissionMode::Audit) || outcome == ReviewOutcome::Accepted;
    let warnings = match is_silent || refuses {
        true => Vec::new(),
        false => warnings(crd, change, &findings, errors, &verdict.unjudged),
    };
    let unused = accepts && !is_allowed_to_accept;
    let refusal = refuses.then(|| {
        let groups = unused.then_some(settings.accepted_by.as_slice());
        denial(crd, change, &findings, errors, verdict, groups.map(|groups| (by.user, groups)))
    });
    Decision { mode, outcome, answer: Answer { refusal, warnings, audit } }
}

/// What a request does, as a sentence says it.
fn verb(change: &ReviewedChange) -> &'static str {
    match change {
        ReviewedChange::Created => "creating",
        ReviewedChange::Updated { .. } => "this change of",
        ReviewedChange::StatusUpdated { .. } => "this change of the status of",
        ReviewedChange::Deleted { .. } => "deleting",
    }
}

fn headline(crd: &str, change: &ReviewedChange, errors: usize) -> String {
    let (what, crd) = (verb(change), shown_name(crd));
    match errors {
        0 => format!("gantry could not judge {what} {crd}"),
        errors => format!("gantry: {what} {crd} is not safe: {}", count(errors, "error")),
    }
}

/// The name of a CRD or a user. Nothing limits the length of what a review says, or that of a user.
fn shown_name(name: &str) -> String {
    shorten(&sanitize(name), MAX_NAME)
}

/// `error[NoExistingFieldRemoved] v1 spec.size: message`
fn line(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        _ => "warning",
    };
    let place = [finding.body.version.as_deref(), finding.body.path.as_deref()];
    let place: Vec<&str> = place.into_iter().flatten().collect();
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" ")) };
    format!("{severity}[{}] {}", finding.rule, sanitize(&format!("{place}{}", finding.body.message)))
}

/// The text of a denial: the worst first, then what to do, and how to accept it.
fn denial(
    crd: &str,
    change: &ReviewedChange,
    findings: &[&Finding],
    errors: usize,
    verdict: &ChangeVerdict,
    refused_acceptance: Option<(&str, &[String])>,
) -> String {
    let mut end = String::new();
    if let Some((user, groups)) = refused_acceptance {
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        end.push_str(&format!(
            "\n{ACCEPT_CHANGE} is set, but {} is in none of the groups that may accept changes: {}",
            shown_name(user),
            shorten(&groups.join(", "), MAX_GROUPS)
        ));
    } else if verdict.digest.is_empty() {
        end.push_str("\nThe API server's own denial says how to accept exactly this change.");
    } else {
        end.push_str(&format!(
            "\nTo accept exactly this, and nothing else:\n  kubectl annotate crd {} --overwrite {ACCEPT_CHANGE}={}\nand \
             repeat the request (admission.acceptedBy says who may).",
            shown_name(crd),
            verdict.digest
        ));
    }
    let mut text = headline(crd, change, errors);
    let room = MAX_MESSAGE - end.len();
    let mut left = 0;
    let mut add = |part: String| {
        // The last line says how many are left out.
        if text.len() + part.len() + 80 > room {
            left += 1;
        } else {
            text.push_str(&part);
        }
    };
    let shortened = |text: &str| shorten(text, 700);
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Error || errors == 0) {
        let help = match finding.body.help.as_str() {
            "" => String::new(),
            help => format!("\n  next: {}", shortened(&sanitize(help))),
        };
        add(format!("\n{}{help}", shortened(&line(finding))));
    }
    for problem in &verdict.unjudged {
        let help = problem.help.as_ref().map(|help| format!("\n  next: {}", shortened(&sanitize(help))));
        add(format!("\nnot judged: {}{}", shortened(&sanitize(&problem.message)), help.unwrap_or_default()));
    }
    if left > 0 {
        text.push_str(&format!("\n… and {left} more: gantry check shows all"));
    }
    text.push_str(&end);
    text
}

/// The warnings, the worst first. kubectl prints each on a line of its own.
fn warnings(
    crd: &str,
    change: &ReviewedChange,
    findings: &[&Finding],
    errors: usize,
    unjudged: &[Problem],
) -> Vec<String> {
    let first = match (errors, unjudged.is_empty()) {
        (0, true) => None,
        _ => Some(headline(crd, change, errors)),
    };
    let unjudged = unjudged.iter().map(|problem| format!("not judged: {}", sanitize(&problem.message)));
    let all: Vec<String> =
        first.into_iter().chain(findings.iter().map(|finding| line(finding))).chain(unjudged).collect();
    let mut warnings: Vec<String> = Vec::new();
    let mut length = 0;
    for (index, text) in all.iter().enumerate() {
        let text = shorten(text, MAX_WARNING);
        if length + text.len() > MAX_WARNINGS {
            warnings.push(format!("… and {} more: gantry check shows all", all.len() - index));
            break;
        }
        length += text.len();
        warnings.push(text);
    }
    warnings
}

/// At most this many bytes of a text, on one line.
fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most - '…'.len_utf8()).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

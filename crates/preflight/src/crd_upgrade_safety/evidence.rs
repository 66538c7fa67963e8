//! Which errors affect an object of this cluster or a manifest of the deploy. With `preset: evidence`, one that affects
//! none becomes a warning.
//!
//! [`crate::objects`] reports the effect on each object and the place in the desired schema that causes it.
//! This module attributes each cause to the violations that it comes from. A cause that comes from none of them is a
//! violation of its own (`unexplained`), and one of which nothing is known counts for all of them. So as long as any
//! object is affected, at least one error remains. Violations whose effect objects cannot show keep their severity.

use std::collections::BTreeSet;

use super::compare::RuleViolation;
use super::decide::{self, RuleSeverities};
use super::options::CrdUpgradeOptions;
use super::rule::{BeyondProof, Judge, UNKNOWN_CHANGE};
use crate::objects::Upgrade;
use crate::objects::question;
use crate::objects::survey::{IncompleteListReason, Surveyed, SurveyedList};
use crate::objects::tally::{EXAMPLES, ExampleObject, ManagerCounts, ObjectOutcome, Sum, TalliedCause, Tally};
use crate::proofs::{ChangeProof, FROZEN, NULL_IS_KEPT};
use gantry_core::crd::{ConversionStrategy, lost_fields};
use gantry_core::finding::{Evidence, EvidenceManager, EvidenceObject, Examined, Harm, Severity, WitnessVerdict};
use gantry_core::merge::deploy_tool;
use gantry_core::resource::Step;
use gantry_core::text;

/// The maximum number of field managers named.
const MANAGERS: usize = 5;

/// Rules about whole CRDs whose effect on data objects can show.
const PRUNING: &str = "PruningTurnedOn";
const STORAGE: &str = "StorageVersionLosesFields";
/// The rule about what a write at a version drops, which objects show at that version.
const SERVED: &str = "ServedVersionLosesFields";

/// A violation with the severity that [`super::decide`] gives it without evidence from objects.
pub struct WeighedViolation {
    pub violation: RuleViolation,
    pub proof: Option<ChangeProof>,
    pub severities: RuleSeverities,
    /// Whether objects are asked what it breaks.
    pub is_error: bool,
}

impl WeighedViolation {
    pub fn new(violation: RuleViolation, proof: Option<ChangeProof>, options: &CrdUpgradeOptions) -> Self {
        let severities = decide::severities_by_preset(&violation, proof.as_ref(), options);
        WeighedViolation { violation, proof, severities, is_error: severities.semantic == Severity::Error }
    }

    /// Whether it is proven that nobody breaks: no valid object, and nothing beyond the proof.
    pub fn is_harmless(&self) -> bool {
        self.proof.as_ref().is_some_and(ChangeProof::is_harmless) && self.violation.diagnosis.beyond_proof.is_none()
    }

    fn rule(&self) -> &'static str {
        self.violation.rule.doc.name
    }

    fn is_of_whole_crd(&self) -> bool {
        matches!(self.rule(), PRUNING | STORAGE)
    }

    /// Why objects that exist cannot show what this breaks; `None` if they can.
    fn reason_not_shown(&self) -> Option<&'static str> {
        if self.is_of_whole_crd() || self.rule() == SERVED {
            return None;
        }
        let is_of_node = self.violation.path.is_some();
        if !is_of_node
            && !matches!(self.violation.rule.judge, Judge::Node(_) | Judge::Removed(_) | Judge::Added(_) | Judge::Proof)
        {
            return Some("existing objects do not show what it breaks");
        }
        if self.rule() == UNKNOWN_CHANGE {
            return Some("gantry does not know the keyword, so it cannot predict its effect on any object");
        }
        let is_of_null = self.proof.as_ref().is_some_and(|proof| proof.reason.as_deref() == Some(NULL_IS_KEPT));
        if is_of_null || self.violation.diagnosis.beyond_proof.is_some_and(BeyondProof::voids_proof) {
            return Some("stored objects do not show the nulls that clients send");
        }
        let witnesses = self.proof.iter().flat_map(|proof| &proof.witnesses);
        let mut of_updates =
            witnesses.filter(|witness| witness.live == WitnessVerdict::Accepted && witness.old_object.is_some());
        let reason = self.proof.as_ref().and_then(|proof| proof.reason.as_deref());
        let is_frozen = reason.is_some_and(|reason| reason.starts_with(FROZEN));
        if self.violation.diagnosis.is_about_updates || is_frozen || of_updates.next().is_some() {
            return Some("it refuses certain updates, and stored objects do not show which updates will follow");
        }
        if self.violation.diagnosis.is_hidden_by_defaults {
            return Some("stored objects have the defaults of the live CRD, and do not show who sends none");
        }
        None
    }

    /// Whether evidence from objects can lower the severity.
    pub fn is_open(&self) -> bool {
        self.is_error && self.reason_not_shown().is_none()
    }
}

/// The examined objects, or why none were examined.
pub enum Examination<'a> {
    At { upgrade: &'a Upgrade, surveyed: &'a Surveyed, is_folder: bool, redact: bool },
    Not(&'a str),
}

/// The evidence on each violation of one CRD; `None` for a violation that is not an error.
pub fn gather_evidence(found: &[WeighedViolation], examination: &Examination<'_>) -> Vec<Option<Evidence>> {
    let blamed = match examination {
        Examination::At { surveyed, .. } => attribute_causes(found, surveyed),
        Examination::Not(_) => Vec::new(),
    };
    let one = |(index, weighed): (usize, &WeighedViolation)| {
        if !weighed.is_error {
            return None;
        }
        let verdict = match (weighed.reason_not_shown(), examination) {
            (Some(reason), _) => Err(reason.to_owned()),
            (None, Examination::Not(reason)) => Err((*reason).to_owned()),
            (None, Examination::At { upgrade, surveyed, is_folder, redact }) => {
                examine(weighed, index, upgrade, surveyed, *is_folder, *redact, &blamed)
            }
        };
        Some(verdict.unwrap_or_else(not_examined))
    };
    found.iter().enumerate().map(one).collect()
}

/// The number of existing objects, and those that suffer from any of the errors; `None` if they could not be read.
pub fn count_harm(found: &[WeighedViolation], surveyed: &Surveyed) -> Option<(u64, Harm)> {
    let blamed = attribute_causes(found, surveyed);
    let of_list = |(list, blamed): (&SurveyedList, &Vec<BTreeSet<&TalliedCause>>)| {
        let (Ok(objects), Some(tally)) = (&list.read, &list.tally) else { return None };
        let of_errors = found.iter().zip(blamed).filter(|(weighed, _)| weighed.is_error);
        let causes = of_errors.flat_map(|(_, causes)| causes.iter().copied()).collect();
        let Sum { objects: affected, manifests, examples, .. } = tally.sum(&causes);
        let examples = examples.into_iter().take(EXAMPLES).map(to_evidence_object).collect();
        Some((*objects, Harm { objects: affected, manifests, examples }))
    };
    // Each list has the same objects, at another version.
    surveyed.lists.iter().zip(&blamed).map(of_list).try_fold(None, |most: Option<(u64, Harm)>, one| {
        let one = one?;
        Some(most.filter(|most| most.1.objects + most.1.manifests >= one.1.objects + one.1.manifests).or(Some(one)))
    })?
}

fn not_examined(reason: String) -> Evidence {
    Evidence {
        examined: Examined::No,
        message: format!("as under preset: semantic: {reason}"),
        objects: 0,
        affected_objects: 0,
        manifests: 0,
        affected_manifests: 0,
        examples: Vec::new(),
        managers: Vec::new(),
    }
}

/// For each list of objects, the causes that are attributed to each violation, by its index.
type Blamed<'a> = Vec<Vec<BTreeSet<&'a TalliedCause>>>;

fn attribute_causes<'a>(found: &[WeighedViolation], surveyed: &'a Surveyed) -> Blamed<'a> {
    let of_list = |list: &'a SurveyedList| {
        let mut causes: Vec<BTreeSet<&TalliedCause>> = vec![BTreeSet::new(); found.len()];
        for cause in list.tally.iter().flat_map(Tally::causes) {
            for index in responsible(found, cause) {
                causes[index].insert(cause);
            }
        }
        causes
    };
    surveyed.lists.iter().map(of_list).collect()
}

/// The indexes of the violations that a cause comes from: empty if it comes from none, all errors if that is unknown.
pub(super) fn responsible(found: &[WeighedViolation], cause: &TalliedCause) -> Vec<usize> {
    let errors = || found.iter().enumerate().filter(|(_, weighed)| weighed.is_error);
    let named = |name: &'static str| {
        found.iter().enumerate().filter(move |(_, weighed)| weighed.rule() == name).map(|(index, _)| index)
    };
    match cause.outcome {
        ObjectOutcome::PrunedAtStorage => return named(STORAGE).collect(),
        ObjectOutcome::Unknown => return errors().map(|(index, _)| index).collect(),
        _ => {}
    }
    let is_here = |weighed: &WeighedViolation| {
        weighed.violation.version.as_deref() == Some(&*cause.version) && weighed.violation.path.is_some()
    };
    let at = |node: &[Step]| {
        let exact: Vec<usize> = found
            .iter()
            .enumerate()
            .filter(|(_, weighed)| is_here(weighed) && weighed.violation.node == node)
            // A new default refuses nothing, so a violation that is not an error explains it too.
            .filter(|(_, weighed)| weighed.is_error || cause.outcome == ObjectOutcome::Defaulted)
            .map(|(index, _)| index)
            .collect();
        let claims = |index: &usize| {
            let claims = found[*index].violation.rule.claims;
            cause.keyword.as_ref().is_some_and(|keyword| claims.iter().any(|claim| claim.keyword == keyword))
        };
        let claimed: Vec<usize> = exact.iter().copied().filter(claims).collect();
        if claimed.is_empty() { exact } else { claimed }
    };
    let mut exact = Vec::new();
    if let Some(field) = &cause.field {
        exact = at(&[&cause.node[..], &["properties".into(), field.as_str().into()]].concat());
    }
    if exact.is_empty() {
        exact = at(&cause.node);
    }
    if exact.is_empty() {
        let is_near = |weighed: &&WeighedViolation| {
            let node = &weighed.violation.node;
            node.starts_with(&cause.node) || cause.node.starts_with(node)
        };
        let near = errors().filter(|(_, weighed)| is_here(weighed) && is_near(weighed)).map(|(index, _)| index);
        exact = near.collect();
    }
    if cause.outcome == ObjectOutcome::Pruned {
        let is_of_version = |index: &usize| found[*index].violation.version.as_deref() == Some(&*cause.version);
        exact.extend(named(PRUNING));
        exact.extend(named(SERVED).filter(|index| found[*index].is_error).filter(is_of_version));
    }
    exact.sort_unstable();
    exact.dedup();
    exact
}

/// The evidence on one violation, or the reason why there is none.
fn examine(
    weighed: &WeighedViolation,
    index: usize,
    upgrade: &Upgrade,
    surveyed: &Surveyed,
    is_folder: bool,
    redact: bool,
    blamed: &Blamed<'_>,
) -> Result<Evidence, String> {
    if let Some(error) = &surveyed.error {
        return Err(error.message.clone());
    }
    let webhook = [&upgrade.live, &upgrade.desired]
        .into_iter()
        .any(|crd| question::conversion(crd, &upgrade.live) == ConversionStrategy::Webhook);
    let version = weighed.violation.version.as_deref().unwrap_or_default();
    if weighed.is_of_whole_crd() && webhook {
        return Err("only the conversion webhook knows the stored form of the objects".to_owned());
    }
    if surveyed.not_validated.iter().any(|unknown| weighed.is_of_whole_crd() || **unknown == *version) {
        return Err(format!("the result of the conversion to {version} is unknown before this deploy"));
    }
    let looks_at = |list: &SurveyedList| {
        weighed.is_of_whole_crd()
            || list.validated.iter().any(|validated| **validated == *version)
            || list.read.is_err()
    };
    let of_version = |list: &SurveyedList| !webhook || *list.version == *version;
    let mut lists = surveyed.lists.iter().enumerate().filter(|(_, list)| of_version(list) && looks_at(list));
    let (Some((number, list)), None) = (lists.next(), lists.next()) else {
        return Err(format!("the objects were not compared with {version}: it is neither served nor stored"));
    };
    if !webhook && hides_stored_fields(upgrade, &list.version, version) {
        return Err(format!("objects are listed at {}, which does not show all that is stored of them", list.version));
    }
    let objects = match (&list.read, redact) {
        (Ok(objects), _) => *objects,
        (Err(IncompleteListReason::Webhook(_)), true) => {
            return Err(format!("objects cannot be read at {version}: the conversion webhook fails"));
        }
        (Err(IncompleteListReason::Webhook(diagnosis)), false) => {
            return Err(format!("objects cannot be read at {version}: {}", text::cut(diagnosis, 400)));
        }
        (
            Err(
                IncompleteListReason::Forbidden(error)
                | IncompleteListReason::NotConvertible(error)
                | IncompleteListReason::Other(error),
            ),
            _,
        ) => {
            return Err(error.message.clone());
        }
    };
    let Some(tally) = &list.tally else { return Err("the objects were not counted".to_owned()) };
    if objects == 0 && is_folder {
        return Err("the folder has no object of this kind".to_owned());
    }
    let causes = &blamed[number][index];
    let sum = tally.sum(causes);
    let is_affected = sum.objects + sum.manifests > 0;
    if let (Some((count, first)), false) = (&tally.unvalidated, is_affected) {
        let more = match *count as usize {
            0 | 1 => String::new(),
            count => format!(", and {}", text::count(count - 1, "similar error")),
        };
        return Err(format!("a manifest of this deploy cannot be validated: {first}{more}"));
    }
    let writers = match weighed.violation.path.as_deref().unwrap_or_default().starts_with("^.status") {
        true => &tally.status_writers,
        false => &tally.writers,
    };
    let undecided = causes.iter().any(|cause| cause.outcome == ObjectOutcome::Undecided);
    let converted = webhook && upgrade.live.storage().is_none_or(|storage| *storage.name != *version);
    let managers = named(if is_affected { &sum.managers } else { writers });
    let mut message = sentence(weighed, objects, &sum, tally.manifests, undecided);
    if converted {
        let them = if objects == 1 { "it" } else { "them" };
        message.push_str(&format!(", as the live conversion webhook shows {them} at {version}"));
    }
    match &managers[..] {
        [manager] if !is_affected && objects == 1 && tally.manifests == 0 => {
            let name = deploy_tool(&manager.name, false).unwrap_or(&manager.name);
            message.push_str(&format!(" (last written by {name})"));
        }
        _ => message.push_str(&written_by(weighed, is_affected, &managers)),
    }
    Ok(Evidence {
        examined: if is_affected { Examined::Affected } else { Examined::NoneAffected },
        message,
        objects,
        affected_objects: sum.objects,
        manifests: tally.manifests,
        affected_manifests: sum.manifests,
        managers,
        examples: sum.examples.into_iter().take(EXAMPLES).map(to_evidence_object).collect(),
    })
}

/// Whether a list at one version lacks fields that are stored, and that another version will show.
fn hides_stored_fields(upgrade: &Upgrade, listed: &str, version: &str) -> bool {
    let Some(storage) = upgrade.live.storage().filter(|storage| *storage.name != *listed) else { return false };
    let (Some(listed), Some(after)) = (upgrade.live.version(listed), upgrade.desired.version(version)) else {
        return false;
    };
    let hidden = lost_fields::lost_between(storage, listed);
    !lost_fields::without_known(hidden, &lost_fields::lost_between(storage, after)).is_empty()
}

fn to_evidence_object(example: ExampleObject) -> EvidenceObject {
    let ExampleObject { namespace, name, from_manifest } = example;
    EvidenceObject { namespace, name, from_manifest }
}

/// The managers with the most objects.
fn named(managers: &ManagerCounts) -> Vec<EvidenceManager> {
    let mut named: Vec<EvidenceManager> =
        managers.iter().map(|(name, objects)| EvidenceManager { name: name.clone(), objects: *objects }).collect();
    named.sort_by(|a, b| b.objects.cmp(&a.objects).then_with(|| a.name.cmp(&b.name)));
    named.truncate(MANAGERS);
    named
}

/// `0 of 1,234 objects set spec.x`
fn sentence(weighed: &WeighedViolation, objects: u64, sum: &Sum, manifests: u64, undecided: bool) -> String {
    let path = weighed.violation.path.as_deref().unwrap_or_default();
    let field = path.strip_prefix("^.").unwrap_or("");
    let version = weighed.violation.version.as_deref().unwrap_or_default();
    let counted = |count: u64, of: u64, word: &str| match (count, of) {
        (0, 0) => format!("no {word} exists"),
        (1, 1) => format!("the only {word}"),
        // A count of 0 takes the plural: "0 of 1 objects set".
        (count, of) => format!("{} of {} {word}s", text::thousands(count), text::thousands(of)),
    };
    let total = sum.objects + sum.manifests;
    let is_one = if sum.manifests > 0 { sum.manifests == 1 } else { sum.objects == 1 };
    let verb = |one: &str, many: &str| if is_one { one.to_owned() } else { many.to_owned() };
    let does = match weighed.rule() {
        "NoExistingFieldRemoved" => format!("{} {field}", verb("sets", "set")),
        "NoRequiredFieldAdded" => {
            let of = if field.is_empty() { "the object".to_owned() } else { field.to_owned() };
            format!("{} a field that {version} newly requires in {of}", verb("lacks", "lack"))
        }
        PRUNING | STORAGE | SERVED | "PreserveUnknownFieldsChange" => {
            let below = if field.is_empty() { String::new() } else { format!(" below {field}") };
            format!("{} a field{below}", verb("loses", "lose"))
        }
        _ if undecided => {
            let of = if field.is_empty() { "its content".to_owned() } else { field.to_owned() };
            format!("{} {of} that could not be validated, or that {version} refuses or changes", verb("has", "have"))
        }
        _ if field.is_empty() => format!("{} refused or changed by {version}", verb("is", "are")),
        _ => format!("{} a value of {field} that {version} refuses or changes", verb("has", "have")),
    };
    let mut who = Vec::new();
    if sum.objects > 0 || sum.manifests == 0 {
        who.push(counted(sum.objects, objects, "object"));
    }
    if sum.manifests > 0 || manifests > 0 && total == 0 {
        who.push(format!("{} of this deploy", counted(sum.manifests, manifests, "manifest")));
    }
    match (objects, manifests) {
        (1, 0) if total == 0 => "the only object is not affected".to_owned(),
        (0, 0) => "no object of this kind exists".to_owned(),
        (0, _) => {
            format!("no object of this kind exists; {} {does}", who.last().map(String::as_str).unwrap_or_default())
        }
        _ => format!("{} {does}", who.join(" and ")),
    }
}

/// The clause that names the managers: of the affected objects if there are any, otherwise of all objects.
fn written_by(weighed: &WeighedViolation, is_affected: bool, managers: &[EvidenceManager]) -> String {
    if managers.is_empty() {
        return String::new();
    }
    let one = |manager: &EvidenceManager| {
        let objects = format!("{} object{}", text::thousands(manager.objects), plural(manager.objects));
        format!("{} ({objects})", manager.name)
    };
    let names = managers.iter().map(one).collect::<Vec<_>>().join(", ");
    match (is_affected, weighed.rule()) {
        (false, "NoExistingFieldRemoved") => format!("; their writers do not set it: {names}"),
        (false, _) => format!("; they are written by {names}"),
        (true, _) => format!("; written by {names}"),
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

//! `CRDUpgradeSafety`: is it safe to replace a live CRD with the desired one?
//!
//! [`compare`] pairs the two and evaluates the [`rules`]; this file runs it over a plan. The schemas of each pair are
//! parsed just before it is compared and dropped afterwards, so memory does not grow with the number of CRDs.

mod bounds;
mod by_tools;
pub mod compare;
pub mod crd_fields;
pub(crate) mod decide;
pub(crate) mod documented;
mod dry_run;
mod evidence;
mod expected_answer;
mod indirect;
pub use gantry_schema::json;
mod kept_fields;
mod keyword_change;
mod library;
pub(crate) mod migration;
pub(crate) mod node;
pub(crate) mod options;
mod place;
pub mod presets;
pub(crate) mod rule;
pub mod rules;
mod same_definition;
pub(crate) mod server;
mod stored;
mod switched_off;
mod unexplained;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

pub use self::by_tools::{ToolVerdict, judge_by_tools};
use self::compare::{CrdComparison, RuleViolation};
use self::dry_run::CrdAnswer;
use self::evidence::{Examination, WeighedViolation};
use self::expected_answer::{DroppedFields, ExpectedAnswer};
pub use self::options::{CrdUpgradeOptions, FailMode, Preset};
use self::place::Off;
use self::rule::BeyondProof;
use self::rules::validation_rule_change;
use self::server::PlannedCrdWrite;
pub use self::switched_off::unchecked_upgrades;
use self::switched_off::{compared_pairs, notify_skipped, safety_off};
use super::entry::CheckEntry;
use super::objects::definition;
use super::objects::survey::{IncompleteListReason, Surveyed};
use super::objects::{self, AT_ONCE, Upgrade, Wants};
use super::pair::{UpgradedCrd, could_not_compare};
use super::proofs::{
    ChangeProof, Proofs, Proven, Prover, StoredAt, VersionPairQuestion, VersionProof, depends_on_storage,
};
use super::rule::RuleDoc;
use super::{Check, CheckFuture, CheckResult, Context, CouldNotCheck, FindLookups, Violation, ViolationSubject};
use gantry_core::crd::{CrdPair, CrdSides, CrdVersion, MalformedCrd};
use gantry_core::finding::{Coverage, Evidence, Examined, Severity, Suppressed};
use gantry_core::parallel::{in_parallel, on_cpu_thread};
use gantry_core::resource::RawObject;
use gantry_core::text;
use gantry_deploy::config::ConfigReader;
use gantry_deploy::plan::Plan;
use gantry_deploy::plan::refusals::ReportedRefusals;
use gantry_k8s_cel::KubernetesRelease;
use gantry_proof::Limits;
use gantry_schema::Undecided;

pub(crate) const NAME: &str = "CRDUpgradeSafety";

pub(crate) const ENTRY: CheckEntry = CheckEntry {
    names: Some(options::finding_names),
    configure: |reader| {
        CrdUpgradeOptions::read(reader);
    },
    refusals: server::REFUSALS,
    documented: documented::lines,
    ..CheckEntry::new(
        NAME,
        "an upgrade of a CRD must not break existing objects, clients and data",
        rule_docs,
        |config| Box::new(CrdUpgradeSafety::new(CrdUpgradeOptions::read(&mut ConfigReader::new(NAME, config)))),
    )
};

/// The check, configured.
#[derive(Debug, Clone)]
pub struct CrdUpgradeSafety {
    /// The check's configuration.
    pub options: CrdUpgradeOptions,
}

impl CrdUpgradeSafety {
    /// The check with this configuration.
    pub fn new(options: CrdUpgradeOptions) -> Self {
        CrdUpgradeSafety { options }
    }
}

/// The violations of one CRD.
#[derive(Default)]
struct Judged {
    violations: Vec<Violation>,
    off: Vec<Off>,
}

impl Judged {
    fn add(&mut self, placed: Result<Violation, Off>) {
        match placed {
            Ok(violation) => self.violations.push(violation),
            Err(off) => self.off.push(off),
        }
    }
}

/// Proves the effect of a change that rules cannot decide.
type VersionProver<'a> = &'a dyn Fn(&VersionPairQuestion<'_>) -> Option<Arc<VersionProof>>;

fn rule_docs() -> Vec<&'static RuleDoc> {
    rules::RULES.iter().map(|rule| &rule.doc).collect()
}

impl Check for CrdUpgradeSafety {
    fn reproduces_a_tool(&self) -> bool {
        self.options.tool().is_some()
    }

    fn reported_refusals(&self) -> ReportedRefusals {
        ReportedRefusals { crds: true, ..ReportedRefusals::default() }
    }

    fn object_data(&self) -> Wants {
        Wants { tallied: self.counts_objects(), ..Wants::default() }
    }

    fn lookups(&self, plan: &Plan, proofs: &Arc<Proofs>) -> FindLookups {
        if !self.needs_objects() {
            return Box::new(Vec::new);
        }
        let (check, pairs, proofs) = (self.clone(), compared_pairs(plan), Arc::clone(proofs));
        Box::new(move || {
            let list = |pair: &UpgradedCrd| {
                let Ok(Compared::ByRules(found)) = check.compare(pair, &proofs) else { return None };
                let is_open = found.iter().any(WeighedViolation::is_open);
                objects::compare(pair, &proofs).ok().flatten().filter(|_| is_open)?.lookup()
            };
            in_parallel(&pairs, list).into_iter().flatten().collect()
        })
    }

    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            if self.options.off {
                return self.only_refusals(&context).await;
            }
            let pairs = Arc::new(UpgradedCrd::all(&context.plan.changes));
            notify_skipped(&context);
            let check = self.clone();
            let (theirs, proofs) = (Arc::clone(&pairs), Arc::clone(&context.proofs));
            // A worker parses one pair, compares it and drops it before it takes the next.
            let compared = on_cpu_thread(move || in_parallel(&theirs, |pair| check.compare(pair, &proofs)));
            // The server answers meanwhile.
            let (compared, answers) = tokio::join!(compared, dry_run::request_answers(&context));
            let mut compared = compared.ok_or_else(interrupted)?;
            for (pair, compared) in pairs.iter().zip(&mut compared) {
                if safety_off(context.plan, &context.plan.changes[pair.change]).is_some() {
                    compared.iter_mut().for_each(Compared::keep_what_the_server_refuses);
                }
            }
            let evidence = self.evidence(&pairs, &compared, &context).await?;
            let mut written = PlannedCrdWrite::all(&context.plan.changes, &context.plan.policy.field_manager);
            for crd in &mut written {
                crd.is_left_to_server = safety_off(context.plan, &context.plan.changes[crd.change]).is_some();
            }
            self.judge_all(&context, pairs, compared, evidence, written, answers).await
        })
    }
}

/// Says that it is unknown which objects suffer, and what to grant.
fn notify_unread(upgrade: &Upgrade, surveyed: &Surveyed, context: &Context<'_>) {
    let unread = surveyed.lists.iter().filter_map(|list| list.read.as_ref().err()).next();
    let (message, help) = match unread {
        Some(
            IncompleteListReason::Forbidden(error)
            | IncompleteListReason::NotConvertible(error)
            | IncompleteListReason::Other(error),
        ) => (&error.message, error.help.as_deref()),
        Some(IncompleteListReason::Webhook(message)) => (message, None),
        None => return,
    };
    let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
    let name = text::sanitize(&upgrade.name);
    context.notices.add(format!("{NAME}: whether objects of {name} suffer is unknown: {message}{help}"));
}

fn interrupted() -> CouldNotCheck {
    CouldNotCheck { message: "interrupted while comparing CRDs".into(), help: None }
}

/// The result of comparing one pair of CRDs.
enum Compared {
    /// Another tool's verdict, placed.
    ByTool(Judged),
    ByRules(Vec<WeighedViolation>),
}

impl Compared {
    /// Removes the violations that only OLM would report.
    fn keep_what_the_server_refuses(&mut self) {
        let is_refused = |rule: &str| server::TWINS.iter().flat_map(|(_, twins)| *twins).any(|twin| *twin == rule);
        match self {
            Compared::ByTool(judged) => {
                judged.violations.retain(|violation| is_refused(&violation.rule));
                judged.off.retain(|off| is_refused(off.rule));
            }
            Compared::ByRules(found) => found.retain(|weighed| is_refused(weighed.violation.rule.doc.name)),
        }
    }
}

/// What existing objects show about the upgrade of one CRD.
#[derive(Default)]
struct CrdEvidence {
    /// For each violation.
    violations: Vec<Option<Evidence>>,
    /// The violations that only objects show.
    shown_by_objects: Vec<(WeighedViolation, Option<Evidence>)>,
    coverage: Option<Coverage>,
}

impl From<Vec<Option<Evidence>>> for CrdEvidence {
    fn from(violations: Vec<Option<Evidence>>) -> Self {
        CrdEvidence { violations, ..CrdEvidence::default() }
    }
}

impl CrdUpgradeSafety {
    /// Whether the verdict depends on objects.
    fn needs_objects(&self) -> bool {
        self.options.preset == Preset::Evidence && !self.options.off
    }

    /// Whether the report says which objects suffer. Other tools read none.
    fn counts_objects(&self) -> bool {
        !self.options.off && self.options.tool().is_none()
    }

    /// Whether the violations of a CRD would block, apart from evidence.
    fn would_block(&self, found: &[WeighedViolation]) -> bool {
        found.iter().any(|weighed| {
            let (severity, rule) = (weighed.severities.configured, weighed.violation.rule.doc.name);
            decide::enforce(severity, weighed.is_harmless(), rule, &self.options) == Some(Severity::Error)
        })
    }

    fn compare(&self, pair: &UpgradedCrd, proofs: &Proofs) -> Result<Compared, MalformedCrd> {
        self.compare_with(&pair.crds()?, &|question| proofs.prove(pair.change, question))
    }

    /// The answer of the check that is switched off: only what the API server refuses, which no setting lets pass.
    async fn only_refusals(&self, context: &Context<'_>) -> Result<CheckResult, CouldNotCheck> {
        let written = PlannedCrdWrite::all(&context.plan.changes, &context.plan.policy.field_manager);
        let answers = dry_run::request_answers(context).await;
        match self.judge_all(context, Arc::default(), Vec::new(), Vec::new(), written, answers).await? {
            CheckResult::Checked { violations, .. } if violations.is_empty() => {
                let at = self.options.off_at.as_ref().map(|at| format!(" ({}:{})", at.file, at.line));
                Ok(CheckResult::Skipped(format!("disabled by enforcement: None{}", at.unwrap_or_default())))
            }
            answer => Ok(answer),
        }
    }

    /// The evidence on each CRD; empty if objects are not examined.
    ///
    /// Objects are read if the verdict depends on them, and where a CRD blocks, so that the report can say who suffers.
    /// In the second case it is no error if they cannot be read: a notice says so.
    async fn evidence(
        &self,
        pairs: &Arc<Vec<UpgradedCrd>>,
        compared: &[Result<Compared, MalformedCrd>],
        context: &Context<'_>,
    ) -> Result<Vec<CrdEvidence>, CouldNotCheck> {
        if !self.counts_objects() {
            return Ok(pairs.iter().map(|_| CrdEvidence::default()).collect());
        }
        let is_needed = self.needs_objects();
        let of = |index: usize| {
            let found = match &compared[index] {
                Ok(Compared::ByRules(found)) => found.as_slice(),
                _ => &[],
            };
            async move {
                if !(is_needed || found.iter().any(WeighedViolation::is_open) && self.would_block(found)) {
                    return Ok(CrdEvidence::default());
                }
                if !found.iter().any(WeighedViolation::is_open) {
                    return Ok(evidence::gather_evidence(found, &Examination::Not("objects cannot show it")).into());
                }
                let (pairs, proofs) = (Arc::clone(pairs), Arc::clone(&context.proofs));
                let upgrade = match on_cpu_thread(move || objects::compare(&pairs[index], &proofs))
                    .await
                    .ok_or_else(interrupted)?
                {
                    Ok(Some(upgrade)) if !upgrade.questions.is_empty() => upgrade,
                    Ok(_) => {
                        let reason = "no object is read or written at a version that changes";
                        return Ok(match is_needed {
                            true => evidence::gather_evidence(found, &Examination::Not(reason)).into(),
                            false => CrdEvidence::default(),
                        });
                    }
                    Err(error) if is_needed => {
                        return Ok(evidence::gather_evidence(found, &Examination::Not(&error.message)).into());
                    }
                    Err(_) => return Ok(CrdEvidence::default()),
                };
                let surveyed = context.objects.survey_upgrade(&upgrade, context).await;
                let is_folder = !context.target.is_server();
                let redact = context.redact;
                let examination = Examination::At { upgrade: &upgrade, surveyed: &surveyed, is_folder, redact };
                let mut violations = evidence::gather_evidence(found, &examination);
                let mut shown_by_objects = Vec::new();
                if is_needed {
                    let shown = unexplained::violations(found, &upgrade, &surveyed, &self.options);
                    let of_shown = evidence::gather_evidence(&shown, &examination);
                    shown_by_objects = shown.into_iter().zip(of_shown).collect();
                } else {
                    notify_unread(&upgrade, &surveyed, context);
                    for evidence in &mut violations {
                        evidence.take_if(|evidence| evidence.examined == Examined::No);
                    }
                }
                let object = &context.plan.changes[upgrade.change].desired.object;
                let coverage = evidence::count_harm(found, &surveyed).filter(|(read, _)| *read > 0 || !is_folder).map(
                    |(read, harm)| {
                        let object = object.as_ref().clone();
                        Coverage { object, read, proven: Vec::new(), harm: Some(harm) }
                    },
                );
                Ok(CrdEvidence { violations, shown_by_objects, coverage })
            }
        };
        stream::iter(0..pairs.len()).map(of).buffered(AT_ONCE).try_collect().await
    }

    /// [`Self::answer`] on another thread, with the notices about it.
    async fn judge_all(
        &self,
        context: &Context<'_>,
        pairs: Arc<Vec<UpgradedCrd>>,
        compared: Vec<Result<Compared, MalformedCrd>>,
        evidence: Vec<CrdEvidence>,
        written: Vec<PlannedCrdWrite>,
        answers: BTreeMap<usize, CrdAnswer>,
    ) -> Result<CheckResult, CouldNotCheck> {
        let (check, proofs) = (self.clone(), Arc::clone(&context.proofs));
        let answer = on_cpu_thread(move || check.answer(&pairs, compared, evidence, &written, &answers, &proofs));
        let (answer, dropped) = answer.await.ok_or_else(interrupted)?;
        expected_answer::notify_dropped(context, dropped);
        Ok(answer)
    }

    fn answer(
        &self,
        pairs: &[UpgradedCrd],
        compared: Vec<Result<Compared, MalformedCrd>>,
        evidence: Vec<CrdEvidence>,
        written: &[PlannedCrdWrite],
        answers: &BTreeMap<usize, CrdAnswer>,
        proofs: &Proofs,
    ) -> (CheckResult, DroppedFields) {
        let mut violations = Vec::new();
        let mut unchecked = Vec::new();
        let mut suppressed: BTreeMap<Off, usize> = BTreeMap::new();
        let mut covered = Vec::new();
        let mut groups: BTreeMap<ViolationSubject, &str> = BTreeMap::new();
        for ((pair, compared), mut evidence) in pairs.iter().zip(compared).zip(evidence) {
            covered.extend(evidence.coverage.take());
            match compared {
                Ok(compared) => {
                    let judged = self.judge_compared(compared, evidence);
                    let found = judged.violations.into_iter();
                    groups.insert(pair.change.into(), pair.name.split_once('.').map_or("", |(_, group)| group));
                    violations.extend(found.map(|found| Violation { subject: pair.change.into(), ..found }));
                    judged.off.into_iter().for_each(|off| *suppressed.entry(off).or_default() += 1);
                }
                Err(error) => unchecked.push(could_not_compare(&pair.name, &error)),
            }
        }
        library::reconcile_releases(&mut violations, |found| groups.get(&found.subject).copied().unwrap_or_default());
        let refused = in_parallel(written, |crd| {
            let mut judged = Judged::default();
            let ExpectedAnswer { refusals, undecided, dropped } =
                expected_answer::expect_answer(crd, answers.get(&crd.change), proofs);
            refusals
                .into_iter()
                .for_each(|violation| judged.add(self.refusal_to_violation(violation, crd.is_left_to_server)));
            for violation in self.judge_new_crd(crd) {
                judged.add(self.to_violation(WeighedViolation::new(violation, None, &self.options), None));
            }
            (judged, undecided, dropped)
        });
        let mut all_dropped = DroppedFields::new();
        for (crd, (judged, undecided, dropped)) in written.iter().zip(refused) {
            let unknown = |open: &Undecided| expected_answer::could_not_decide(crd, open, proofs.release());
            unchecked.extend(undecided.iter().map(unknown));
            dropped.into_iter().for_each(|field| all_dropped.entry(field).or_default().push(crd.change));
            let of_crd = |found| Violation { subject: crd.change.into(), ..found };
            violations.extend(judged.violations.into_iter().map(of_crd));
            judged.off.into_iter().for_each(|off| *suppressed.entry(off).or_default() += 1);
        }
        violations.sort_by(|a, b| a.subject.cmp(&b.subject));
        server::deduplicate(&mut violations);
        let suppressed = suppressed.into_iter().map(|(Off { rule, severity, at }, count)| {
            let (rule, source) = (rule.to_owned(), at.map(Into::into));
            Suppressed { rule, severity, count, source }
        });
        let answer =
            CheckResult::Checked { violations, unchecked, coverage: covered, suppressed: suppressed.collect() };
        (answer, all_dropped)
    }

    /// What gantry's own rules report about a CRD that is created.
    fn judge_new_crd(&self, crd: &PlannedCrdWrite) -> Vec<RuleViolation> {
        if self.options.tool().is_some() || crd.is_left_to_server || crd.crd.live_object.is_some() {
            return Vec::new();
        }
        let rule = &rules::SERVED_VERSION_LOSES_FIELDS;
        let found = crd.crd.desired().ok().map(|crd| rules::served_version_loses_fields::judge_new(crd));
        found.into_iter().flatten().map(|found| RuleViolation::of_crd(rule, found)).collect()
    }

    fn judge_compared(&self, compared: Compared, evidence: CrdEvidence) -> Judged {
        let found = match compared {
            Compared::ByTool(judged) => return judged,
            Compared::ByRules(found) => found,
        };
        let mut judged = Judged::default();
        let of_found = evidence.violations.into_iter().chain(std::iter::repeat_with(|| None));
        for (weighed, evidence) in found.into_iter().zip(of_found).chain(evidence.shown_by_objects) {
            judged.add(self.to_violation(weighed, evidence));
        }
        judged
    }

    /// Checks one upgrade without objects; both CRDs are JSON. The violations belong to the first change of a plan.
    ///
    /// # Errors
    /// One of the CRDs is malformed, so the two cannot be compared.
    pub fn judge(&self, live: &str, desired: &str) -> Result<Vec<Violation>, MalformedCrd> {
        let prove = |question: &VersionPairQuestion<'_>| {
            Proven::default().prove(question, Limits::shared(1, question.versions)).map(Arc::new)
        };
        let mut judged =
            self.judge_compared(self.compare_with(&CrdPair::parse(live, desired)?, &prove)?, CrdEvidence::default());
        let sides = CrdSides::new(RawObject::new(desired), Some(RawObject::new(live)));
        let foretold = definition::validate(&sides, None, KubernetesRelease::default(), None);
        let refused = server::to_violations(foretold.refusals, &sides, None).into_iter();
        refused.for_each(|violation| judged.add(self.refusal_to_violation(violation, false)));
        server::deduplicate(&mut judged.violations);
        Ok(judged.violations)
    }

    /// Compares two CRDs; `prove` decides what rules cannot.
    fn compare_with(&self, pair: &CrdPair, prove: VersionProver<'_>) -> Result<Compared, MalformedCrd> {
        if let Some(tool) = self.options.tool() {
            let mut judged = Judged::default();
            let flagged = presets::judge(pair, &tool)?;
            flagged
                .into_iter()
                .filter_map(|flagged| self.flagged_to_violation(flagged))
                .for_each(|found| judged.add(found));
            return Ok(Compared::ByTool(judged));
        }
        let CrdComparison { violations: mut found, additions } = compare::compare_crds(pair)?;
        library::note_library_changes(pair, &mut found);
        let proofs = proofs(pair, &found, &additions, prove);
        let (proven, others) = indirect::attribute_proofs(pair, &found, &proofs);
        let others = others.into_iter().map(|(violation, proof)| (violation, Some(proof)));
        let weigh = |(mut violation, proof): (RuleViolation, Option<ChangeProof>)| {
            note_open_null(&mut violation, &proofs);
            // Nothing can be proven about an unknown keyword.
            let proof = proof.filter(|_| violation.rule.doc.name != rule::UNKNOWN_CHANGE);
            note_hidden(&mut violation, proof.as_ref(), &proofs);
            if proof.as_ref().is_some_and(ChangeProof::is_harmless) {
                validation_rule_change::note_invalid_objects(&mut violation);
            }
            WeighedViolation::new(violation, proof, &self.options)
        };
        Ok(Compared::ByRules(found.into_iter().zip(proven).chain(others).map(weigh).collect()))
    }
}

/// Asks the prover about each version in whose schema a rule found something, or whose new fields can affect existing
/// objects on their own.
fn proofs(
    pair: &CrdPair,
    found: &[RuleViolation],
    additions: &[Arc<str>],
    prove: VersionProver<'_>,
) -> BTreeMap<String, Arc<VersionProof>> {
    let mut proofs = BTreeMap::new();
    let versions = pair.common_versions().count();
    for (version, successor) in pair.common_versions() {
        let name = Some(&*version.name);
        let is_named = |violation: &RuleViolation| violation.version.as_deref() == name && violation.path.is_some();
        let is_asked = found.iter().any(is_named) || additions.contains(&version.name);
        let scale = [version.scale_paths(), successor.scale_paths()];
        let question = VersionPairQuestion {
            group: &pair.desired.group,
            kind: &pair.desired.names.kind,
            version: &version.name,
            namespaced: pair.desired.is_namespaced(),
            served: successor.served,
            live_schema: version.schema().unwrap_or("{}"),
            desired_schema: successor.schema().unwrap_or("{}"),
            live_status: version.status_subresource,
            desired_status: successor.status_subresource,
            scale: scale.each_ref(),
            versions,
            stored: StoredAt::of_sides(&pair.live, &pair.desired, &version.name),
        };
        if !is_asked && !depends_on_storage(&question) {
            continue;
        }
        if is_unreachable(pair, version, successor) {
            proofs.insert(version.name.to_string(), Arc::new(VersionProof::harmless()));
            continue;
        }
        if let Some(proof) = prove(&question) {
            proofs
                .insert(version.name.to_string(), stored::drop_witnesses_not_stored(pair, [version, successor], proof));
        }
    }
    proofs
}

/// Notes that it is not known whether the server refuses a null that it keeps from now on.
fn note_open_null(violation: &mut RuleViolation, proofs: &BTreeMap<String, Arc<VersionProof>>) {
    let proof = violation.version.as_ref().and_then(|version| proofs.get(version));
    let is_open = proof.zip(violation.path.as_ref()).is_some_and(|(proof, path)| proof.open_nulls.contains(path));
    if is_open && violation.rule.doc.name == "NullableChange" {
        violation.diagnosis.beyond_proof.get_or_insert(BeyondProof::KeptNull);
    }
}

/// Notes that stored objects do not show what is refused, because they have the defaults of the live CRD.
fn note_hidden(
    violation: &mut RuleViolation,
    proof: Option<&ChangeProof>,
    proofs: &BTreeMap<String, Arc<VersionProof>>,
) {
    let of_version = violation.version.as_ref().and_then(|version| proofs.get(version));
    let (Some(proof), Some(of_version)) = (proof, of_version) else { return };
    let mut shown = proof.witnesses.iter().map(|witness| &witness.object);
    violation.diagnosis.is_hidden_by_defaults = shown.any(|object| of_version.hidden.contains(object));
}

/// Whether no request reads or writes an object at the version, and none is stored at it.
fn is_unreachable(pair: &CrdPair, version: &CrdVersion, successor: &CrdVersion) -> bool {
    // A manifest does not say at which versions a cluster stores objects.
    let is_known = !pair.live.status_stored_versions.is_empty();
    let is_used = |version: &CrdVersion| version.served || version.storage;
    is_known && !is_used(version) && !is_used(successor) && !pair.live.is_stored(&version.name)
}

#[cfg(test)]
mod tests;

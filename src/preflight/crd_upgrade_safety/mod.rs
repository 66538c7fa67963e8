//! `CRDUpgradeSafety`: is it safe to replace a live CRD by the desired one?
//!
//! [`compare`] pairs the two and asks the [`rules`]; this file runs it over a plan. Each pair is parsed when its turn
//! comes and dropped after it, so that memory does not grow with the number of CRDs.

mod bounds;
pub mod compare;
pub mod crd_fields;
pub mod decide;
pub mod documented;
mod fields;
pub use crate::json;
mod keyword_change;
pub mod keywords;
mod migration;
pub mod model;
pub mod options;
pub mod presets;
mod proven;
pub mod prover;
pub mod rules;
mod versions;
mod words;

use std::collections::BTreeMap;
use std::panic;
use std::sync::Arc;

use self::compare::RuleViolation;
use self::model::{Crd, CrdPair, Malformed, Side};
pub use self::options::{FailMode, Options, Preset};
use self::presets::Flagged;
use self::proven::Proven;
use self::prover::{Proof, Prover, Question, VersionProof};
use super::registry::CheckEntry;
use super::rule::RuleDoc;
use super::{Answer, Check, CheckFuture, Context, CouldNotCheck, Violation};
use crate::config::ConfigReader;
use crate::plan::{Action, Change, in_parallel};
use crate::proof::Limits;
use crate::report::{Severity, Verdict};
use crate::resource::RawObject;
use crate::text;

const NAME: &str = "CRDUpgradeSafety";

pub const ENTRY: CheckEntry = CheckEntry {
    name: NAME,
    summary: "an upgrade of a CRD must not break the objects, clients and data that are there",
    docs: "docs/checks/CRDUpgradeSafety.md",
    rules: rule_docs,
    names: options::finding_names,
    configure: |reader| {
        Options::read(reader);
    },
    build: |config| Box::new(CrdUpgradeSafety::new(Options::read(&mut ConfigReader::new(NAME, config)))),
};

/// The check, configured.
#[derive(Debug, Clone)]
pub struct CrdUpgradeSafety {
    pub options: Options,
    /// Who decides what rules cannot.
    pub prover: Arc<dyn Prover>,
}

impl CrdUpgradeSafety {
    /// The check with the proof layer behind it.
    pub fn new(options: Options) -> Self {
        CrdUpgradeSafety { options, prover: Arc::new(Proven) }
    }
}

fn rule_docs() -> Vec<&'static RuleDoc> {
    rules::RULES.iter().map(|rule| &rule.doc).collect()
}

impl Check for CrdUpgradeSafety {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            if self.options.off {
                return Ok(Answer::Skipped("switched off by enforcement: None".into()));
            }
            let pairs: Vec<Pair> = context.plan.changes.iter().enumerate().filter_map(Pair::of).collect();
            // Comparing is work for processors. It must not hold up the threads that wait for the network.
            let check = self.clone();
            match tokio::task::spawn_blocking(move || check.compare_all(&pairs)).await {
                Ok(answer) => Ok(answer),
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(_) => Err(CouldNotCheck { message: "interrupted while comparing CRDs".into(), help: None }),
            }
        })
    }
}

/// A CRD of the plan that is live already and that a deploy would change.
struct Pair {
    /// Index into the plan.
    change: usize,
    name: String,
    live: RawObject,
    desired: RawObject,
}

impl Pair {
    fn of((index, change): (usize, &Change)) -> Option<Self> {
        // What is not written breaks nothing.
        let is_written = change.action != Action::Unchanged;
        let live = change.live.as_ref().filter(|_| is_written && change.desired.object.is_crd())?;
        Some(Pair {
            change: index,
            name: change.desired.object.name.clone(),
            live: live.raw.clone(),
            desired: change.desired.raw.clone(),
        })
    }
}

impl CrdUpgradeSafety {
    fn compare_all(&self, pairs: &[Pair]) -> Answer {
        let mut violations = Vec::new();
        let mut unchecked = Vec::new();
        // A worker parses one pair, compares it and drops it before it takes the next.
        for (pair, compared) in pairs
            .iter()
            .zip(in_parallel(pairs, |pair| self.judge_one_of(pairs.len(), pair.live.json(), pair.desired.json())))
        {
            match compared {
                Ok(found) => {
                    violations.extend(found.into_iter().map(|found| Violation { change: pair.change, ..found }))
                }
                Err(error) => unchecked.push(could_not_check(pair, &error)),
            }
        }
        Answer::Checked { violations, unchecked }
    }

    /// Judges one upgrade, both CRDs as JSON. The violations belong to the first change of a plan.
    ///
    /// # Errors
    /// A side that is no CRD that could be compared.
    pub fn judge(&self, live: &str, desired: &str) -> Result<Vec<Violation>, Malformed> {
        self.judge_one_of(1, live, desired)
    }

    /// [`Self::judge`] for one of `crds` that share what may be spent on proofs.
    fn judge_one_of(&self, crds: usize, live: &str, desired: &str) -> Result<Vec<Violation>, Malformed> {
        if let Some(tool) = self.options.tool() {
            let flagged = presets::judge(live, desired, &tool)?;
            return Ok(flagged.into_iter().filter_map(|flagged| self.place_flagged(flagged)).collect());
        }
        let found = compare::crd(live, desired)?;
        let proofs = self.prove(crds, live, desired, &found)?;
        let proof_of = |violation: &RuleViolation| {
            // Of a keyword that nobody knows nothing can be proven.
            if violation.rule.doc.name == rules::UNKNOWN_CHANGE {
                return None;
            }
            proofs.get(violation.version.as_deref()?)?.of(violation.path.as_deref()?).cloned()
        };
        let placed = found.into_iter().map(|violation| (proof_of(&violation), violation));
        Ok(placed.filter_map(|(proof, violation)| self.place(violation, proof)).collect())
    }

    /// Asks the prover about each version in whose schema a rule found something.
    fn prove(
        &self,
        crds: usize,
        live: &str,
        desired: &str,
        found: &[RuleViolation],
    ) -> Result<BTreeMap<String, VersionProof>, Malformed> {
        let mut proofs = BTreeMap::new();
        if !found.iter().any(|violation| violation.path.is_some()) {
            return Ok(proofs);
        }
        let pair = CrdPair { live: Crd::parse(live, Side::Live)?, desired: Crd::parse(desired, Side::Desired)? };
        let is_asked =
            |name: &str| found.iter().any(|found| found.version.as_deref() == Some(name) && found.path.is_some());
        let asked: Vec<_> = pair.common_versions().filter(|(version, ..)| is_asked(&version.name)).collect();
        let Limits { steps } = Limits::shared(crds, asked.len());
        for (version, _, successor) in asked {
            let question = Question {
                group: &pair.desired.spec.group,
                kind: &pair.desired.spec.names.kind,
                version: &version.name,
                namespaced: pair.desired.spec.scope == "Namespaced",
                live_schema: version.schema().unwrap_or("{}"),
                desired_schema: successor.schema().unwrap_or("{}"),
                live_status: version.has_status(),
                desired_status: successor.has_status(),
                steps,
            };
            if let Some(proof) = self.prover.prove(&question) {
                proofs.insert(version.name.clone(), proof);
            }
        }
        Ok(proofs)
    }

    fn place(&self, violation: RuleViolation, proof: Option<Proof>) -> Option<Violation> {
        let RuleViolation { rule, version, path, said } = violation;
        let doc = &rule.doc;
        let severity = decide::severity(rule, &said, path.is_none(), proof.as_ref(), &self.options);
        let verdict = proof.as_ref().map(|proof| proof.verdict);
        let harmless = matches!(verdict, Some(Verdict::Equal | Verdict::Widening));
        let severity = decide::enforce(severity, harmless, doc.name, &self.options)?;
        // Whatever blocks is told in the words that scripts look for, also where the documents have none.
        let blocks = severity == Severity::Error;
        let own = || format!("\"{}\" validation failed: {}", doc.name, said.message);
        let documented = said.documented.clone().or_else(|| blocks.then(own));
        let mut breaks = said.breaks.unwrap_or_else(|| doc.breaks.to_vec());
        let mut witnesses = Vec::new();
        let mut help = said.help;
        if let Some(proof) = proof {
            if proof.verdict == Verdict::Undecided {
                if let Some(reason) = proof.reason {
                    help = format!("{help} (not decided: {reason})");
                }
            } else {
                breaks = proof.breaks;
            }
            witnesses = proof.witnesses;
        }
        // Names from a cluster are in these texts. Only the steps begin lines of their own.
        let mut lines = vec![text::sanitize(&help).into_owned()];
        lines.extend(said.steps.iter().map(|step| text::sanitize(step).into_owned()));
        match lines.as_mut_slice() {
            [only] => only.push_str(&format!(": gantry rules {}", doc.name)),
            _ => lines.push(format!("more about it: gantry rules {}", doc.name)),
        }
        Some(Violation {
            change: 0,
            rule: doc.name,
            severity,
            version,
            path,
            message: said.message,
            documented,
            breaks,
            verdict,
            witnesses,
            affected: None,
            help: lines.join("\n"),
            at: said.at,
            label: said.label,
        })
    }

    fn place_flagged(&self, flagged: Flagged) -> Option<Violation> {
        let open = flagged.unknown && self.options.fail_mode == FailMode::Open;
        let severity = if open { Severity::Info } else { flagged.severity };
        let severity = decide::enforce(severity, false, flagged.validation, &self.options)?;
        let tool = match self.options.preset {
            Preset::Kapp => "kapp",
            Preset::OlmV1 => "OLM v1",
            _ => "crdify",
        };
        Some(Violation {
            change: 0,
            rule: flagged.validation,
            severity,
            version: flagged.version,
            path: flagged.path,
            // crdify's line names the place, kapp's text does by itself.
            message: if self.options.preset == Preset::Kapp { flagged.text } else { flagged.documented.clone() },
            documented: Some(flagged.documented),
            breaks: Vec::new(),
            verdict: None,
            witnesses: Vec::new(),
            affected: None,
            help: format!(
                "this is {tool}'s verdict; preset: documented or semantic says who breaks; what it is about: gantry rules {}",
                presets::explained_by(flagged.validation)
            ),
            at: flagged.at,
            label: None,
        })
    }
}

fn could_not_check(pair: &Pair, error: &Malformed) -> CouldNotCheck {
    let (side, help) = match error.side {
        Side::Live => ("the live CRD", format!("look at what is live: kubectl get crd {} -o yaml", pair.name)),
        Side::Desired => (
            "the manifest of CRD",
            "write the CRD as apiextensions.k8s.io/v1 with a structural schema for each version".to_owned(),
        ),
    };
    let message = format!("{side} {} cannot be compared: {}", pair.name, error.reason);
    CouldNotCheck { message, help: Some(help) }
}

#[cfg(test)]
mod tests;

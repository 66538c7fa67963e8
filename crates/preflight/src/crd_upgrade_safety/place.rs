//! Turns what the rules, the server and other tools find into violations with a severity, or records that the
//! configuration switches them off.

use super::compare::RuleViolation;
use super::decide::RuleSeverities;
use super::evidence::WeighedViolation;
use super::options::{FailMode, Preset};
use super::presets::{self, Flagged};
use super::rule::BeyondProof;
use super::{CrdUpgradeSafety, decide, server};
use crate::proofs::ChangeProof;
use crate::{Violation, ViolationSubject};
use gantry_core::finding::{Breaks, Evidence, Examined, FindingBody, ForVersions, Severity, Verdict};
use gantry_core::problem::Location;
use gantry_core::text;

/// A violation that the configuration switches off.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Off {
    pub rule: &'static str,
    pub severity: Severity,
    /// The place of that configuration.
    pub at: Option<Location>,
}

impl CrdUpgradeSafety {
    /// The violation that the server refuses. With another tool's preset it is a warning, because the tool does not
    /// report it, unless nothing but the server checks the CRD (`is_alone`).
    pub(super) fn refusal_to_violation(&self, found: RuleViolation, is_alone: bool) -> Result<Violation, Off> {
        let mut violation = self.to_violation(WeighedViolation::new(found, None, &self.options), None)?;
        if !is_alone && self.options.tool().is_some() && violation.severity == Severity::Error {
            violation.severity = Severity::Warning;
            violation.body.documented = None;
        }
        Ok(violation)
    }

    pub(super) fn to_violation(&self, weighed: WeighedViolation, evidence: Option<Evidence>) -> Result<Violation, Off> {
        let is_harmless = weighed.is_harmless();
        let WeighedViolation { violation, mut proof, severities, .. } = weighed;
        let RuleViolation { rule, version, path, mut diagnosis, .. } = violation;
        if diagnosis.beyond_proof.is_some_and(BeyondProof::voids_proof) {
            proof = proof.filter(|proof| !proof.is_harmless());
        }
        let doc = &rule.doc;
        let is_cleared = self.options.preset == Preset::Evidence
            && evidence.as_ref().is_some_and(|evidence| evidence.examined == Examined::NoneAffected);
        // The server refuses the change whatever the configuration says, and whether there are objects or not.
        let is_refusal = server::REFUSALS.contains(&doc.name);
        let RuleSeverities { configured: severity, semantic } = severities;
        let severity = if is_cleared && !is_refusal { severity.max(Severity::Warning) } else { severity };
        let verdict = proof.as_ref().map(|proof| proof.verdict);
        let refuses_nothing = proof.as_ref().is_some_and(ChangeProof::is_harmless);
        if let Some(bare) = diagnosis.bare.take().filter(|_| refuses_nothing) {
            diagnosis.message = bare;
        }
        let enforced = |severity| decide::enforce(severity, is_harmless, doc.name, &self.options);
        let (severity, semantic) = match is_refusal {
            true => (severity, Some(semantic)),
            false => (enforced(severity).ok_or_else(|| self.switched_off(doc.name, severity))?, enforced(semantic)),
        };
        // Everything that blocks is reported in the format that scripts look for, even if the upstream documentation
        // has no text for it.
        let blocks = severity == Severity::Error;
        let named = version.clone().unwrap_or_default();
        let own = || format!("\"{}\" validation failed: {}", doc.name, diagnosis.message.for_versions(&named));
        let documented = diagnosis.body.documented.take().or_else(|| blocks.then(own));
        let mut breaks = diagnosis.breaks.unwrap_or_else(|| doc.breaks());
        let mut witnesses = Vec::new();
        let mut help = diagnosis.help;
        if let Some(proof) = proof {
            if proof.verdict == Verdict::Undecided {
                if let Some(reason) = proof.reason {
                    help = help.then(format!(" (not decided: {reason})"));
                }
            } else {
                breaks = proof.breaks;
                if diagnosis.beyond_proof.is_some() && !breaks.contains(&Breaks::Behaviour) {
                    breaks.push(Breaks::Behaviour);
                }
            }
            witnesses = proof.witnesses;
        }
        if is_refusal
            && self.options.find_enforced(doc.name).is_some_and(|rule| rule.enforcement != Some(Severity::Error))
        {
            help = help.then("; enforcement does not apply to what the API server refuses");
        }
        // These texts contain names from the cluster, which must not start new lines. Only the steps do.
        let mut help = help.map(|text| text::sanitize(text).into_owned());
        for step in &diagnosis.steps {
            help = help.then(format!("\n{}", text::sanitize(step)));
        }
        Ok(Violation {
            subject: ViolationSubject::Change(0),
            rule: doc.name.into(),
            severity,
            may_be_accepted: false,
            at: diagnosis.at,
            body: FindingBody {
                version,
                path,
                message: diagnosis.message.for_versions(&named),
                documented,
                verdict,
                semantic: semantic.filter(|semantic| *semantic != severity),
                breaks,
                witnesses,
                evidence,
                help: help.for_versions(&text::sanitize(&named)),
                wording: Some(ForVersions { message: diagnosis.message, help }),
                explain: Some(doc.name.into()),
                ..diagnosis.body
            },
        })
    }

    /// A violation of this severity whose rule is switched off.
    fn switched_off(&self, rule: &'static str, severity: Severity) -> Off {
        Off { rule, severity, at: self.options.find_enforced(rule).and_then(|entry| entry.at.clone()) }
    }

    /// `None` if the tool itself does not report the finding.
    pub(super) fn flagged_to_violation(&self, flagged: Flagged) -> Option<Result<Violation, Off>> {
        let name = flagged.validation;
        if flagged.off {
            let at = self.options.validation_off(name)?;
            return Some(Err(Off { rule: name, severity: flagged.severity, at: at.clone() }));
        }
        let open = flagged.unknown && self.options.fail_mode == FailMode::Open;
        let severity = if open { Severity::Info } else { flagged.severity };
        let Some(severity) = decide::enforce(severity, false, name, &self.options) else {
            return Some(Err(self.switched_off(name, severity)));
        };
        let tool = match self.options.preset {
            Preset::Kapp => "kapp",
            Preset::OlmV1 => "OLM v1",
            _ => "crdify",
        };
        // kapp's text names the place; crdify's does not, but its line does.
        let is_kapp = self.options.preset == Preset::Kapp;
        let message = if is_kapp { flagged.text } else { flagged.documented.clone() };
        Some(Ok(Violation {
            subject: ViolationSubject::Change(0),
            rule: flagged.validation.into(),
            severity,
            may_be_accepted: false,
            at: flagged.at,
            body: FindingBody {
                version: flagged.version,
                path: flagged.path,
                message,
                documented: Some(flagged.documented),
                help: format!("this is {tool}'s verdict; preset: documented or semantic shows who is affected"),
                explain: Some(presets::explained_by(flagged.validation).into()),
                ..FindingBody::default()
            },
        }))
    }
}

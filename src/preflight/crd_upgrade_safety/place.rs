//! Turns what the rules, the server and other tools find into violations with a severity, or records that the
//! configuration switches them off.

use super::compare::RuleViolation;
use super::options::{FailMode, Preset};
use super::presets::{self, Flagged};
use super::{CrdUpgradeSafety, decide, server};
use crate::finding::{Evidence, Examined, ForVersions, Severity, Verdict};
use crate::preflight::proofs::ChangeProof;
use crate::preflight::{Violation, ViolationSubject};
use crate::problem::Location;
use crate::text;

/// A violation that the configuration switches off.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Off {
    pub rule: &'static str,
    pub severity: Severity,
    /// The place of that configuration.
    pub at: Option<Location>,
}

impl CrdUpgradeSafety {
    /// Places a violation that the server refuses. With another tool's preset it is a warning, because the tool does
    /// not report it, unless nothing but the server checks the CRD (`is_alone`).
    pub(super) fn place_refusal(&self, violation: RuleViolation, is_alone: bool) -> Result<Violation, Off> {
        let mut placed = self.place(violation, None, None)?;
        if !is_alone && self.options.tool().is_some() && placed.severity == Severity::Error {
            placed.severity = Severity::Warning;
            placed.documented = None;
        }
        Ok(placed)
    }

    pub(super) fn place(
        &self,
        violation: RuleViolation,
        proof: Option<ChangeProof>,
        evidence: Option<Evidence>,
    ) -> Result<Violation, Off> {
        let RuleViolation { rule, version, path, changes, mut diagnosis, .. } = violation;
        let doc = &rule.doc;
        let severity = decide::severity(rule, &diagnosis, path.is_none(), proof.as_ref(), &self.options);
        let is_cleared = self.options.preset == Preset::Evidence
            && evidence.as_ref().is_some_and(|evidence| evidence.examined == Examined::NoneAffected);
        // The server refuses the change whatever the configuration says, and whether there are objects or not.
        let is_refusal = server::REFUSALS.contains(&doc.name);
        let severity = if is_cleared && !is_refusal { severity.max(Severity::Warning) } else { severity };
        let verdict = proof.as_ref().map(|proof| proof.verdict);
        let harmless = matches!(verdict, Some(Verdict::Equal | Verdict::Widening));
        if let Some(bare) = diagnosis.bare.take().filter(|_| harmless) {
            diagnosis.message = bare;
        }
        let enforced = |severity| decide::enforce(severity, harmless, doc.name, &self.options);
        let semantic = decide::semantic(rule, &diagnosis, path.is_none(), proof.as_ref(), &self.options);
        let (severity, semantic) = match is_refusal {
            true => (severity, Some(semantic)),
            false => (enforced(severity).ok_or_else(|| self.off(doc.name, severity))?, enforced(semantic)),
        };
        // Everything that blocks is reported in the format that scripts look for, even if the upstream documentation
        // has no text for it.
        let blocks = severity == Severity::Error;
        let named = version.clone().unwrap_or_default();
        let own = || format!("\"{}\" validation failed: {}", doc.name, diagnosis.message.for_versions(&named));
        let documented = diagnosis.documented.clone().or_else(|| blocks.then(own));
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
            }
            witnesses = proof.witnesses;
        }
        if is_refusal && self.options.enforced(doc.name).is_some_and(|rule| rule.enforcement != Some(Severity::Error)) {
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
            version,
            path,
            message: diagnosis.message.for_versions(&named),
            fact: diagnosis.fact,
            schema_changes: changes,
            caused_by: diagnosis.caused_by,
            complaint: None,
            documented,
            breaks,
            verdict,
            semantic: semantic.filter(|semantic| *semantic != severity),
            witnesses,
            affected: None,
            evidence,
            help: help.for_versions(&text::sanitize(&named)),
            wording: Some(ForVersions { message: diagnosis.message, help }),
            explain: Some(doc.name.into()),
            at: diagnosis.at,
            label: diagnosis.label,
        })
    }

    /// A violation of this severity whose rule is switched off.
    fn off(&self, rule: &'static str, severity: Severity) -> Off {
        Off { rule, severity, at: self.options.enforced(rule).and_then(|entry| entry.at.clone()) }
    }

    /// `None` if the tool itself does not report the finding.
    pub(super) fn place_flagged(&self, flagged: Flagged) -> Option<Result<Violation, Off>> {
        let name = flagged.validation;
        if flagged.off {
            let at = self.options.validation_off(name)?;
            return Some(Err(Off { rule: name, severity: flagged.severity, at: at.clone() }));
        }
        let open = flagged.unknown && self.options.fail_mode == FailMode::Open;
        let severity = if open { Severity::Info } else { flagged.severity };
        let Some(severity) = decide::enforce(severity, false, name, &self.options) else {
            return Some(Err(self.off(name, severity)));
        };
        let tool = match self.options.preset {
            Preset::Kapp => "kapp",
            Preset::OlmV1 => "OLM v1",
            _ => "crdify",
        };
        Some(Ok(Violation {
            subject: ViolationSubject::Change(0),
            rule: flagged.validation.into(),
            severity,
            may_be_accepted: false,
            version: flagged.version,
            path: flagged.path,
            // kapp's text names the place; crdify's does not, but its line does.
            message: if self.options.preset == Preset::Kapp { flagged.text } else { flagged.documented.clone() },
            fact: None,
            schema_changes: Vec::new(),
            caused_by: Vec::new(),
            complaint: None,
            documented: Some(flagged.documented),
            breaks: Vec::new(),
            verdict: None,
            semantic: None,
            witnesses: Vec::new(),
            affected: None,
            evidence: None,
            help: format!("this is {tool}'s verdict; preset: documented or semantic shows who is affected"),
            wording: None,
            explain: Some(presets::explained_by(flagged.validation).into()),
            at: flagged.at,
            label: None,
        }))
    }
}

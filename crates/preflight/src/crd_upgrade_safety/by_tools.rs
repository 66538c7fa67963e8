//! What kapp, OLM v1 and crdify would say of all upgrades of a plan, for reports that show it beside the verdict of the
//! run.

use gantry_core::finding::Severity;
use gantry_core::parallel::in_parallel;
use gantry_deploy::plan::Change;

use super::presets::options::CrdifyOptions;
use super::presets::{self, PresetTool, SchemasByVersion};
use crate::pair::UpgradedCrd;

/// The verdict of one tool with its own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolVerdict {
    /// The preset that reproduces the tool.
    pub preset: &'static str,
    /// What it refuses.
    pub errors: usize,
    /// What it reports and lets pass.
    pub warnings: usize,
}

/// The verdict of each tool; none if a CRD is malformed, because no tool could compare it.
pub fn judge_by_tools(changes: &[Change]) -> Vec<ToolVerdict> {
    let tools = [
        ("kapp", PresetTool::Kapp),
        ("olm-v1", PresetTool::Crdify(CrdifyOptions::olm_v1())),
        ("crdify", PresetTool::Crdify(CrdifyOptions::default())),
    ];
    let judge = |upgraded: &UpgradedCrd| -> Option<Vec<(usize, usize)>> {
        let pair = upgraded.crds().ok()?;
        let schemas = SchemasByVersion::read(&pair).ok()?;
        let count = |(_, tool): &(&str, PresetTool)| {
            let flagged = presets::judge_schemas(&pair, &schemas, tool);
            let number = |severity| flagged.iter().filter(|one| !one.off && one.severity == severity).count();
            (number(Severity::Error), number(Severity::Warning))
        };
        Some(tools.iter().map(count).collect())
    };
    let judged: Option<Vec<_>> = in_parallel(&UpgradedCrd::all(changes), judge).into_iter().collect();
    let Some(judged) = judged else { return Vec::new() };
    let verdict = |(number, (preset, _)): (usize, &(&'static str, PresetTool))| {
        let of_tool = judged.iter().map(|counts| counts[number]);
        let (errors, warnings) = of_tool.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        ToolVerdict { preset, errors, warnings }
    };
    tools.iter().enumerate().map(verdict).collect()
}

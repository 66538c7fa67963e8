//! CRDs that change while the check is switched off: for all of them, or by a ClusterExtension for those of its bundle.

use std::collections::BTreeMap;

use super::NAME;
use crate::Context;
use crate::pair::UpgradedCrd;
use gantry_core::problem::Problem;
use gantry_core::text;
use gantry_deploy::config::{SettingOrigin, Settings};
use gantry_deploy::plan::planned_bundle::Installer;
use gantry_deploy::plan::{Change, Plan, upgraded_crds};
use gantry_olm::cluster_extension::SafetyOff;

/// The notice that CRDs change although the check does not run.
pub fn unchecked_upgrades(settings: &Settings, plan: &Plan) -> Option<Problem> {
    let place = settings.without_crd_safety.as_ref()?;
    let mut upgrades = upgraded_crds(&plan.changes);
    let first = &upgrades.next()?.1.desired.object.name;
    let more = match upgrades.count() {
        0 => String::new(),
        more => format!(" and {}", text::count(more, "other CRD")),
    };
    let message = format!("{NAME} does not run, so the upgrade of CRD {first}{more} is not checked");
    let help = match place {
        SettingOrigin::Flag(_) | SettingOrigin::Variable(_) => {
            let names: Vec<&str> = settings.checks.iter().map(|check| check.name.as_str()).collect();
            format!("--preflight {},{NAME} also runs it", names.join(","))
        }
        SettingOrigin::File(_) | SettingOrigin::Default => {
            format!("enable it in preflightRules: - name: {NAME}")
        }
    };
    Some(place.problem(message).help(help))
}

/// The ClusterExtension that disables OLM's check of a CRD upgrade, and the field that does so.
pub(super) fn safety_off<'p>(plan: &'p Plan, change: &Change) -> Option<(&'p Installer, SafetyOff)> {
    let installer = plan.bundle_of(change)?.installer.as_ref()?;
    Some((installer, installer.extension.safety_off?))
}

/// The upgrades for which objects are examined: all except those for which a ClusterExtension disables OLM's check.
pub(super) fn compared_pairs(plan: &Plan) -> Vec<UpgradedCrd> {
    let mut pairs = UpgradedCrd::all(&plan.changes);
    pairs.retain(|pair| safety_off(plan, &plan.changes[pair.change]).is_none());
    pairs
}

/// Adds a notice for the CRDs that are not compared because a ClusterExtension disables the check.
pub(super) fn notify_skipped(context: &Context<'_>) {
    let mut bundles: BTreeMap<usize, Vec<&Change>> = BTreeMap::new();
    for (_, change, _) in upgraded_crds(&context.plan.changes) {
        if let Some(bundle) = change.desired.bundle.filter(|_| safety_off(context.plan, change).is_some()) {
            bundles.entry(bundle).or_default().push(change);
        }
    }
    for (bundle, crds) in bundles {
        let Some((Installer { extension, at }, field)) = safety_off(context.plan, crds[0]) else { continue };
        let field = field.to_text();
        let place = at.as_ref().map(|at| format!(" ({}:{})", at.file, at.line)).unwrap_or_default();
        context.notices.add(format!(
            "{NAME}: {} of the bundle {} not compared: the ClusterExtension {} sets crdUpgradeSafety {field}{place}. The \
             API server still refuses a changed scope and the removal of a stored version.",
            text::count(crds.len(), "CRD"),
            format_args!("{} {}", context.plan.bundles[bundle].to_text(), if crds.len() == 1 { "is" } else { "are" }),
            text::sanitize(&extension.name),
        ));
    }
}

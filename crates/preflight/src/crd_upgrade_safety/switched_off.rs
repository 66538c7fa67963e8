//! What is said of CRDs that change while the check is switched off.

use super::NAME;
use gantry_core::problem::Problem;
use gantry_core::text;
use gantry_deploy::config::{SettingOrigin, Settings};
use gantry_deploy::plan::{Plan, upgraded_crds};

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

//! Readiness of a `ClusterExtension` of OLM v1, by the conditions that operator-controller writes: `Installed`,
//! `Progressing` and `Deprecated`, and `Resolved` in releases without `Progressing`.
//!
//! While OLM retries an update, `Installed` is also true for the previous version. So the installed version is checked:
//! it must be a predicted one, or in the range of `version`.

use gantry_catalog::resolve::{InstalledBundle, range_of, version_of};
use gantry_catalog::version::VersionRelease;

use super::Readiness;
use super::view::{LiveObjectView, StatusCondition};
use gantry_olm::cluster_extension::installed;

/// The reasons with which operator-controller gives up until the object changes (`reconcile.TerminalError`), or reports
/// that a rollout takes too long.
const TERMINAL: [&str; 3] = ["Blocked", "InvalidConfiguration", "ProgressDeadlineExceeded"];

/// The expected installed version.
enum Expected<'a> {
    /// One of the predicted versions, in the order in which OLM installs them.
    Predicted(&'a [String]),
    /// Any version in the range `version`.
    InRange(&'a str),
}

/// How the installed version compares with what is expected.
enum Fit {
    /// The final version is installed.
    Last,
    /// The version of this deploy is installed, and OLM continues to a later one.
    GoesOn,
    /// Another version is installed, or none; with the reason.
    Not(String),
}

/// The state of a ClusterExtension. `predicted` is empty if no version was predicted.
pub fn state(view: LiveObjectView<'_>, predicted: &[String]) -> Readiness {
    if let Some(state) = view.unobserved(false) {
        return state;
    }
    let conditions = ["Progressing", "Resolved", "Installed"].map(|name| view.condition(name));
    if conditions.iter().all(Option::is_none) {
        return Readiness::in_progress("operator-controller has not seen it yet");
    }
    let generation = view.integer("/metadata/generation").unwrap_or_default();
    let is_old = |condition: &StatusCondition<'_>| ![0, generation].contains(&condition.generation());
    if conditions.iter().flatten().any(is_old) {
        return Readiness::in_progress(&format!("its conditions are older than generation {generation}"));
    }
    let [progressing, resolved, is_installed] = conditions;
    let under_way = progressing.filter(|condition| condition.reason() != "Succeeded");
    let fit = match is_installed.filter(|condition| condition.status() == "True") {
        Some(_) => Expected::from_extension(view, predicted).fit(installed(view.0)),
        None => Fit::Not(is_installed.map_or("not Installed yet".to_owned(), |condition| condition.explain())),
    };
    let has_given_up = |condition: &StatusCondition<'_>| {
        condition.status() == "False" && TERMINAL.iter().any(|reason| *reason == condition.reason())
    };
    match (fit, under_way) {
        (Fit::GoesOn, _) | (Fit::Last, None) => match view.true_condition("Deprecated") {
            Some(condition) => Readiness::ready_with_note(&condition.explain()),
            None => Readiness::READY,
        },
        (_, Some(condition)) if has_given_up(&condition) => Readiness::failed(&condition.explain()),
        (_, Some(condition)) => Readiness::in_progress(&condition.explain()),
        (Fit::Not(why), None) => match resolved.filter(|condition| condition.status() == "False") {
            Some(condition) => Readiness::in_progress(&condition.explain()),
            None => Readiness::in_progress(&why),
        },
    }
}

impl<'a> Expected<'a> {
    fn from_extension(view: LiveObjectView<'a>, predicted: &'a [String]) -> Self {
        match predicted {
            [] => {
                // The field of v1, or that of v1alpha1.
                let ranges = ["/spec/source/catalog/version", "/spec/version"].map(|pointer| view.text(pointer));
                Expected::InRange(ranges.into_iter().find(|range| !range.is_empty()).unwrap_or_default())
            }
            versions => Expected::Predicted(versions),
        }
    }

    fn fit(&self, installed: Option<InstalledBundle>) -> Fit {
        let Some(installed) = installed.filter(|installed| !installed.version.is_empty()) else {
            return match self {
                Expected::InRange("") => Fit::Last,
                _ => Fit::Not("its status does not say which version is installed".to_owned()),
            };
        };
        let version = &installed.version;
        match self {
            Expected::Predicted(versions) => match versions.iter().position(|text| is_version(text, &installed)) {
                Some(place) if place + 1 < versions.len() => Fit::GoesOn,
                Some(_) => Fit::Last,
                None => Fit::Not(format!("{version} is installed, not yet {}", versions.join(" or "))),
            },
            Expected::InRange(text) => match range_of(text) {
                Err(error) => Fit::Not(error.to_string()),
                Ok(range) => match (range, version_of(&installed)) {
                    (None, _) => Fit::Last,
                    (Some(range), Ok(found)) if range.matches(&found.version) => Fit::Last,
                    _ => Fit::Not(format!("{version} is installed, which is not in the range {text:?}")),
                },
            },
        }
    }
}

/// Whether a version is the installed one. Releases are compared; build metadata is ignored.
fn is_version(text: &str, installed: &InstalledBundle) -> bool {
    match (VersionRelease::parse(text), version_of(installed)) {
        (Ok(version), Ok(installed)) => version.precedence(&installed).is_eq(),
        _ => text == installed.version,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A condition of generation 3.
    fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": name, "status": status, "reason": reason, "message": message, "observedGeneration": 3})
    }

    fn is_installed() -> Value {
        condition("Installed", "True", "Succeeded", "Installed bundle image successfully")
    }

    fn reached() -> Value {
        condition("Progressing", "True", "Succeeded", "Desired state reached")
    }

    fn retrying() -> Value {
        condition("Progressing", "True", "Retrying", "no bundles found for\n package \"p\"")
    }

    fn v1(range: &str, version: &str, conditions: &[Value]) -> Value {
        json!({"metadata": {"generation": 3}, "spec": {"source": {"catalog": {"packageName": "p", "version": range}}},
            "status": {"install": {"bundle": {"name": "b", "version": version}}, "conditions": conditions}})
    }

    fn v1alpha1(range: &str, version: &str, conditions: &[Value]) -> Value {
        json!({"metadata": {"generation": 3}, "spec": {"packageName": "p", "version": range},
            "status": {"installedBundle": {"name": "b", "version": version}, "conditions": conditions}})
    }

    #[track_caller]
    fn check(object: &Value, predicted: &[&str], word: &str, reason: &str) {
        let predicted: Vec<String> = predicted.iter().map(|version| (*version).to_owned()).collect();
        let state = state(LiveObjectView(object), &predicted);
        assert_eq!((state.word(), state.reason().unwrap_or_default()), (word, reason), "{object}");
    }

    #[test]
    fn an_extension_is_ready_at_the_predicted_version_or_a_later_one_of_its_path() {
        let done = |version: &str| v1("", version, &[is_installed(), reached()]);
        let path = ["1.1.0", "1.2.0"];
        check(&done("1.1.0"), &path, "yes", "");
        check(&done("1.2.0"), &path, "yes", "");
        // Build metadata that is not a release.
        check(&done("1.1.0+01"), &path, "yes", "");
        check(&done("1.0.0"), &path, "no", "1.0.0 is installed, not yet 1.1.0 or 1.2.0");
        check(&done("1.3.0"), &path, "no", "1.3.0 is installed, not yet 1.1.0 or 1.2.0");
        check(&done("1.1.0+2"), &["1.1.0+3"], "no", "1.1.0+2 is installed, not yet 1.1.0+3");
        check(&v1alpha1("", "1.1.0", &[is_installed()]), &path, "yes", "");
        check(&v1alpha1("", "1.0.0", &[is_installed()]), &path, "no", "1.0.0 is installed, not yet 1.1.0 or 1.2.0");
    }

    #[test]
    fn trouble_with_a_later_version_is_not_that_of_this_deploy() {
        let why = "Retrying: no bundles found for package \"p\"";
        let on_the_way = |version: &str| v1("", version, &[is_installed(), retrying()]);
        check(&on_the_way("1.1.0"), &["1.1.0", "1.2.0"], "yes", "");
        check(&on_the_way("1.2.0"), &["1.1.0", "1.2.0"], "no", why);
        check(&on_the_way("1.0.0"), &["1.1.0", "1.2.0"], "no", why);
        let blocked = condition("Progressing", "False", "Blocked", "no CRD upgrade");
        check(&v1("", "1.1.0", &[is_installed(), blocked.clone()]), &["1.1.0", "1.2.0"], "yes", "");
        check(&v1("", "1.1.0", &[is_installed(), blocked]), &["1.1.0"], "failed", "Blocked: no CRD upgrade");
    }

    #[test]
    fn an_extension_without_a_predicted_version_is_ready_at_a_version_of_its_range() {
        for of in [v1, v1alpha1] {
            let done = |range: &str, version: &str| of(range, version, &[is_installed(), reached()]);
            check(&done("", "0.1.0"), &[], "yes", "");
            check(&done("<1.13", "1.12.2"), &[], "yes", "");
            let why = "1.11.1 is installed, which is not in the range \"1.12.x\"";
            check(&done("1.12.x", "1.11.1"), &[], "no", why);
            // The previous version may be in the range.
            let upgrading = condition("Progressing", "True", "RollingOut", "rolling out");
            check(&of("<1.13", "1.11.1", &[is_installed(), upgrading]), &[], "no", "RollingOut: rolling out");
        }
    }

    #[test]
    fn conditions_of_an_extension_give_the_reason() {
        let failed = condition("Installed", "False", "Failed", "No bundle installed");
        check(&json!({"metadata": {"generation": 3}}), &[], "no", "operator-controller has not seen it yet");
        check(&v1("", "", std::slice::from_ref(&failed)), &[], "no", "Failed: No bundle installed");
        check(&v1("", "", &[reached()]), &[], "no", "not Installed yet");
        for (reason, word) in [
            ("Blocked", "failed"),
            ("InvalidConfiguration", "failed"),
            ("ProgressDeadlineExceeded", "failed"),
            // The first releases used this reason while an installation was in progress.
            ("Absent", "no"),
        ] {
            let terminal = condition("Progressing", "False", reason, "text");
            check(&v1("", "", &[failed.clone(), terminal]), &["1.0.0"], word, &format!("{reason}: text"));
        }
        let unresolved = condition("Resolved", "False", "ResolutionFailed", "no package \"p\" found");
        let unknown =
            condition("Installed", "Unknown", "InstallationStatusUnknown", "installation has not been attempted");
        check(&v1alpha1("", "", &[unresolved, unknown]), &[], "no", "ResolutionFailed: no package \"p\" found");
        check(
            &v1("1.0.0", "", &[is_installed(), reached()]),
            &[],
            "no",
            "its status does not say which version is installed",
        );
        let deprecated = condition("Deprecated", "True", "Deprecated", "use q");
        check(&v1("", "1.0.0", &[is_installed(), reached(), deprecated]), &[], "yes", "Deprecated: use q");
    }

    #[test]
    fn conditions_of_an_older_generation_do_not_count() {
        let late = "its conditions are older than generation 4";
        let mut object = v1("", "1.0.0", &[is_installed(), reached()]);
        object["metadata"]["generation"] = 4.into();
        check(&object, &["1.0.0"], "no", late);
        object["status"]["conditions"][0]["observedGeneration"] = 4.into();
        check(&object, &["1.0.0"], "no", late);
        object["status"]["conditions"][1] = condition("Progressing", "False", "Blocked", "");
        check(&object, &["1.0.0"], "no", late);
        object["status"]["conditions"][1].as_object_mut().expect("a condition").remove("observedGeneration");
        check(&object, &["1.0.0"], "failed", "Blocked");
    }
}

//! Finds objects whose kind the target does not serve, and suggests what was meant or which kind replaces it.

use super::lifecycle::Lifecycle;
use super::{ViolationsFound, rules};
use crate::{Context, CouldNotCheck, Violation, ViolationSubject};
use gantry_core::problem::{Problem, did_you_mean};
use gantry_core::resource::{ObjectRef, Resource, Step};
use gantry_deploy::plan::{Plan, Unplaced, is_built_in};
use gantry_k8s_cel::KubernetesRelease;

pub async fn check(context: &Context<'_>) -> ViolationsFound {
    let plan = context.plan;
    let mut found = ViolationsFound { violations: outdated_crds(plan), ..ViolationsFound::default() };
    let mut unknown = Vec::new();
    for (index, unplaced) in plan.unplaced.iter().enumerate() {
        if unplaced.is_down {
            found.unchecked.push(api_down(unplaced));
        } else if unplaced.is_unwritable {
            let Problem { message, help, .. } = unplaced.problem.clone();
            let help = help.unwrap_or_default();
            found.violations.push(violation(
                &rules::NOT_SERVED,
                ViolationSubject::Unplaced(index),
                message,
                help,
                None,
                "kind",
            ));
        } else {
            unknown.push((ViolationSubject::Unplaced(index), &unplaced.manifest.object));
        }
    }
    if unknown.is_empty() {
        return found;
    }
    // Only for suggestions: if the user may not read it, or the server does not answer, there are fewer of them.
    let (served, release) = futures::join!(context.target.served(), context.target.release());
    let release = release.unwrap_or_default();
    let known = KnownApis { served: served.unwrap_or_default(), defined: defined(plan), release };
    found.violations.extend(unknown.into_iter().map(|(subject, object)| known.violation(subject, object)));
    found
}

fn api_down(unplaced: &Unplaced) -> CouldNotCheck {
    let Unplaced { manifest, problem, .. } = unplaced;
    CouldNotCheck {
        message: format!(
            "whether {} of {} is served ({}): {}",
            manifest.object.kind,
            manifest.object.api_version,
            manifest.origin.location(),
            problem.message
        ),
        help: problem.help.clone(),
    }
}

/// CRDs at an old apiVersion. The plan does not need discovery for CRDs, so they are not among the unplaced objects.
fn outdated_crds(plan: &Plan) -> Vec<Violation> {
    let crds = plan.changes.iter().enumerate().filter(|(_, change)| change.desired.object.is_crd());
    crds.filter_map(|(index, change)| {
        let object = &change.desired.object;
        if object.version() == Resource::crd().version {
            return None;
        }
        Some(match Lifecycle::find(&object.api_version, &object.kind) {
            Some(entry) => removed(index.into(), object, entry),
            None => {
                let message = format!("{} of {} is not served by any release", object.kind, object.api_version);
                let help = "change it to apiextensions.k8s.io/v1".to_owned();
                let label = Some("use v1".to_owned());
                violation(&rules::NOT_SERVED, index.into(), message, help, label, "apiVersion")
            }
        })
    })
    .collect()
}

fn removed(subject: ViolationSubject, object: &ObjectRef, entry: Lifecycle) -> Violation {
    let since = entry.removed.map_or_else(String::new, |release| format!(" since Kubernetes {release}"));
    let message = format!("{} of {} is not served{since}", object.kind, object.api_version);
    let instead = entry.replacement();
    let help = match &instead {
        Some(instead) => format!("change it to {instead}; kubectl explain shows which fields differ there"),
        None => "it has no replacement: remove it".to_owned(),
    };
    let label = instead.map(|instead| format!("use {instead}"));
    violation(&rules::REMOVED, subject, message, help, label, "apiVersion")
}

fn violation(
    doc: &'static crate::rule::RuleDoc,
    subject: ViolationSubject,
    message: String,
    help: String,
    label: Option<String>,
    key: &str,
) -> Violation {
    Violation::new(doc, subject, None, message, help, vec![Step::from(key)]).label(label)
}

/// A version of a CRD among the manifests.
struct ManifestCrdVersion {
    group: String,
    kind: String,
    version: String,
    served: bool,
}

fn defined(plan: &Plan) -> Vec<ManifestCrdVersion> {
    let crds = plan.changes.iter().filter_map(|change| change.crd()?.defined());
    crds.flat_map(|crd| {
        crd.versions.iter().map(|version| ManifestCrdVersion {
            group: crd.group.clone(),
            kind: crd.names.kind.clone(),
            version: version.name.to_string(),
            served: version.served,
        })
    })
    .collect()
}

/// The known kinds, from which suggestions are made.
struct KnownApis {
    served: Vec<Resource>,
    defined: Vec<ManifestCrdVersion>,
    release: KubernetesRelease,
}

impl KnownApis {
    fn violation(&self, subject: ViolationSubject, object: &ObjectRef) -> Violation {
        if let Some(entry) =
            Lifecycle::find(&object.api_version, &object.kind).filter(|e| e.is_removed_in(self.release))
        {
            return removed(subject, object, entry);
        }
        let (help, label, key) = self.suggestion(object);
        let message = format!(
            "{} of {} is neither served by the target nor defined by the manifests",
            object.kind, object.api_version
        );
        violation(&rules::NOT_SERVED, subject, message, help, label, key)
    }

    /// The help text, the label and the wrong key, for the most similar known kind.
    fn suggestion(&self, object: &ObjectRef) -> (String, Option<String>, &'static str) {
        let (group, version, kind) = (object.group(), object.version(), object.kind.as_str());
        let unserved =
            |d: &&ManifestCrdVersion| (d.group.as_str(), d.version.as_str(), d.kind.as_str()) == (group, version, kind);
        if self.defined.iter().any(|defined| unserved(&defined) && !defined.served) {
            let help =
                format!("the CRD among the manifests has {version} with served: false; use a version that it serves");
            return (help, Some("not served".to_owned()), "apiVersion");
        }
        let meant = |what: String, key| {
            let help = format!("change it to {what} if that is what you meant");
            (help, Some(format!("did you mean {what}?")), key)
        };
        let of_group = self.versions(|g, k| g == group && k == kind);
        if !of_group.is_empty() {
            return meant(format!("apiVersion: {}", of_group.join(" or ")), "apiVersion");
        }
        let same = |g: &str, v: &str| g == group && v == version;
        if let Some(near) = did_you_mean(kind, self.kinds(same)) {
            return meant(format!("kind: {near}"), "kind");
        }
        // A built-in kind may be meant in another group. A custom kind with the same name as one in another group is a
        // different kind.
        let elsewhere = self.versions(|_, k| k == kind);
        if is_built_in(group) && !elsewhere.is_empty() {
            return meant(format!("apiVersion: {}", elsewhere.join(" or ")), "apiVersion");
        }
        let groups = self.names().map(|(group, ..)| group).filter(|group| !group.is_empty());
        if let Some(near) = did_you_mean(group, groups).filter(|near| *near != group) {
            let versions = self.versions(|g, k| g == near && k == kind);
            if !versions.is_empty() {
                return meant(format!("apiVersion: {}", versions.join(" or ")), "apiVersion");
            }
        }
        let add = "add the CRD that defines the kind to the manifests";
        let is_known = self.names().any(|(known, ..)| known == group);
        let help = match is_built_in(group) || is_known {
            true => format!("check apiVersion and kind, or {add}"),
            false => format!("install the software that provides {group} first, or {add}"),
        };
        (help, None, "apiVersion")
    }

    /// Group, version and kind of everything that is served now or after the deploy.
    fn names(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let served = self.served.iter().map(|r| (r.group.as_str(), r.version.as_str(), r.kind.as_str()));
        let defined = self.defined.iter().filter(|defined| defined.served);
        served.chain(defined.map(|d| (d.group.as_str(), d.version.as_str(), d.kind.as_str())))
    }

    fn kinds<'k>(&'k self, fits: impl Fn(&str, &str) -> bool + 'k) -> impl Iterator<Item = &'k str> {
        self.names().filter(move |(group, version, _)| fits(group, version)).map(|(.., kind)| kind)
    }

    /// The apiVersions that serve a matching kind.
    fn versions(&self, fits: impl Fn(&str, &str) -> bool) -> Vec<String> {
        let mut versions: Vec<String> = self
            .names()
            .filter(|(group, _, kind)| fits(group, kind))
            .map(|(group, version, _)| if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") })
            .collect();
        versions.sort();
        versions.dedup();
        versions
    }
}

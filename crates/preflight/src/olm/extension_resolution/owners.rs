//! Checks whether the package, the CRDs and the namespace of a ClusterExtension exist or belong to another owner.
//!
//! In OLM v1, each object has a single owner:
//! <https://operator-framework.github.io/operator-controller/concepts/single-owner-objects/>.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gantry_catalog::bundle::{OlmRelease, UncheckedBundlePart};

use super::ownership::{Installation, REVISIONS};
use super::rules::{INSTALL_NAMESPACE_MISSING, OWNED_BY_ANOTHER, PACKAGE_INSTALLED_TWICE, SERVICE_ACCOUNT_MISSING};
use super::{RequestedExtension, ViolationsFound, violation};
use crate::rule::RuleDoc;
use crate::{Context, CouldNotCheck, Violation, ViolationSubject};
use gantry_cluster::{Gvk, ObjectToRead};
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Resource, Step};
use gantry_core::text::sanitize;
use gantry_olm::cluster_catalog::GROUP;
use gantry_olm::cluster_extension::{self, Extension};

/// The bundle of an extension and its CRDs, as far as the catalog describes them.
pub struct BundleContent {
    pub change: usize,
    pub bundle: String,
    pub crds: Vec<String>,
    /// Properties that the catalog does not describe.
    pub unchecked: Vec<UncheckedBundlePart>,
}

pub async fn check(
    asked: &[RequestedExtension],
    contents: &[BundleContent],
    olm: OlmRelease,
    context: &Context<'_>,
) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    match other_packages(asked, context).await {
        Ok(others) => found.violations.extend(installed_twice(asked, &others)),
        Err(error) => found.unchecked.push(error),
    }
    found.extend(missing(asked, olm, context).await);
    found.extend(owned_by_others(asked, contents, context).await);
    found
}

/// The names and packages of the live ClusterExtensions that are not part of the plan.
async fn other_packages(
    asked: &[RequestedExtension],
    context: &Context<'_>,
) -> Result<Vec<(String, String)>, CouldNotCheck> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let ours: BTreeSet<&str> = asked.iter().map(|asked| asked.extension.name.as_str()).collect();
    let removed = context.plan.removals.iter().filter(|removal| cluster_extension::is_one(&removal.object));
    let removed: BTreeSet<&str> = removed.map(|removal| removal.object.name.as_str()).collect();
    let live = context.olm.live().await.map_err(|Problem { message, help, .. }| CouldNotCheck {
        message: format!("the ClusterExtensions cannot be listed: {message}"),
        help,
    })?;
    let is_other = |name: &str| !ours.contains(name) && !removed.contains(name);
    let others = live.iter().map(|live| &live.extension).filter(|extension| is_other(&extension.name));
    Ok(others.map(|extension| (extension.name.clone(), extension.wanted.package.clone())).collect())
}

/// Packages that two extensions request.
fn installed_twice(asked: &[RequestedExtension], others: &[(String, String)]) -> Vec<Violation> {
    let mut of_package: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, package) in others {
        of_package.entry(package).or_default().push(name);
    }
    for asked in asked {
        of_package.entry(&asked.extension.wanted.package).or_default().push(&asked.extension.name);
    }
    let found = asked.iter().filter_map(|asked| {
        let Extension { name, wanted, places, .. } = &asked.extension;
        let other = of_package.get(wanted.package.as_str())?.iter().find(|other| **other != name.as_str())?;
        let message = format!(
            "ClusterExtension {} also installs package {}; OLM installs each object for only one of them",
            sanitize(other),
            sanitize(&wanted.package)
        );
        let help = format!(
            "keep one of them: in OLM v1, operators watch all namespaces; see kubectl get clusterextension {other}"
        );
        Some(violation(&PACKAGE_INSTALLED_TWICE, asked.change, message, help, places.package()))
    });
    found.collect()
}

/// An object that a ClusterExtension names and that OLM v1 does not create.
pub struct ExtensionPrerequisite<'a> {
    asked: &'a RequestedExtension,
    pub resource: Resource,
    pub object: ObjectRef,
    doc: &'static RuleDoc,
    at: Vec<Step>,
    help: String,
}

impl<'a> ExtensionPrerequisite<'a> {
    pub fn namespace(asked: &'a RequestedExtension) -> Option<ExtensionPrerequisite<'a>> {
        let name = Some(&asked.extension.namespace).filter(|name| !name.is_empty())?.clone();
        let help = format!("add it to the manifests, or: kubectl create namespace {}", sanitize(&name));
        let (resource, at) =
            (Resource::built_in("", "Namespace", "namespaces", false), asked.extension.places.namespace());
        let object = ObjectRef { api_version: "v1".into(), kind: "Namespace".into(), namespace: None, name };
        Some(ExtensionPrerequisite { asked, resource, object, doc: &INSTALL_NAMESPACE_MISSING, at, help })
    }

    /// OLM v1 uses this account up to v1.10. Later releases have rights of their own.
    pub fn service_account(asked: &'a RequestedExtension) -> Option<ExtensionPrerequisite<'a>> {
        let extension = &asked.extension;
        let named = |name: &&String| !name.is_empty();
        // Kubernetes creates it in each namespace.
        if extension.service_account == "default" {
            return None;
        }
        let (name, namespace) =
            (Some(&extension.service_account).filter(named)?, Some(&extension.namespace).filter(named)?);
        let resource = Resource::built_in("", "ServiceAccount", "serviceaccounts", true);
        let object = ObjectRef {
            api_version: "v1".into(),
            kind: "ServiceAccount".into(),
            namespace: Some(namespace.clone()),
            name: name.clone(),
        };
        let help = format!(
            "add it to the manifests with its rights (gantry permissions -f BUNDLE --as system:serviceaccount:{}:{} prints them)",
            sanitize(namespace),
            sanitize(name)
        );
        let at = extension.places.service_account();
        Some(ExtensionPrerequisite { asked, resource, object, doc: &SERVICE_ACCOUNT_MISSING, at, help })
    }

    fn missing(self) -> Violation {
        let place = self.object.namespace.as_ref().map(|namespace| format!(" in namespace {}", sanitize(namespace)));
        let message = format!(
            "{} {}{} is neither live nor among the manifests, and OLM does not create it",
            self.object.kind.to_lowercase(),
            sanitize(&self.object.name),
            place.unwrap_or_default()
        );
        violation(self.doc, self.asked.change, message, self.help, self.at)
    }
}

/// Objects that the extensions name and that neither exist nor are part of the plan.
async fn missing(asked: &[RequestedExtension], olm: OlmRelease, context: &Context<'_>) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    let is_of_plan = |object: &ObjectRef| {
        let mut objects = context.plan.changes.iter().map(|change| &change.desired.object);
        objects.any(|known| known.identity() == object.identity())
    };
    let accounts =
        asked.iter().filter(|_| olm.needs_service_account()).filter_map(ExtensionPrerequisite::service_account);
    let needed = asked.iter().filter_map(ExtensionPrerequisite::namespace).chain(accounts);
    let needed: Vec<ExtensionPrerequisite<'_>> = needed.filter(|needed| !is_of_plan(&needed.object)).collect();
    let wanted = |needed: &ExtensionPrerequisite<'_>| ObjectToRead {
        resource: Arc::new(needed.resource.clone()),
        object: Arc::new(needed.object.clone()),
    };
    let reads: Vec<ObjectToRead> = needed.iter().map(wanted).collect();
    let read = match context.target.read_each(&reads, &|_, _| ()).await {
        Ok(read) => read,
        Err(error) => {
            found.unchecked.extend(error.problems().iter().map(unread));
            return found;
        }
    };
    for (needed, read) in needed.into_iter().zip(read) {
        match read {
            Ok(Some(_)) => {}
            Ok(None) => found.violations.push(needed.missing()),
            Err(problem) => found.unchecked.push(unread(&problem)),
        }
    }
    found
}

fn unread(problem: &Problem) -> CouldNotCheck {
    CouldNotCheck { message: problem.message.clone(), help: problem.help.clone() }
}

/// CRDs of the bundles that are live and have another owner.
async fn owned_by_others(
    asked: &[RequestedExtension],
    contents: &[BundleContent],
    context: &Context<'_>,
) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    let of = |content: &BundleContent| asked.iter().find(|asked| asked.change == content.change);
    // The objects of a bundle among the manifests are known.
    let is_in_plan = |content: &BundleContent| {
        let package = of(content).map(|asked| asked.extension.wanted.package.as_str());
        context.plan.bundles.iter().any(|bundle| Some(bundle.package()) == package)
    };
    let crds: Vec<(&RequestedExtension, &BundleContent, &String)> = contents
        .iter()
        .filter(|content| !is_in_plan(content))
        .filter_map(|content| Some((of(content)?, content)))
        .flat_map(|(asked, content)| content.crds.iter().map(move |crd| (asked, content, crd)))
        .collect();
    let reads: Vec<ObjectToRead> = crds.iter().map(|(_, _, crd)| ObjectToRead::crd(crd)).collect();
    let read = match context.target.read_each(&reads, &|_, _| ()).await {
        Ok(read) => read,
        Err(error) => {
            found.unchecked.extend(error.problems().iter().map(unread));
            return found;
        }
    };
    let is_boxcutter = !crds.is_empty() && serves_revisions(context).await;
    for ((asked, content, crd), read) in crds.into_iter().zip(read) {
        let live = match read {
            Ok(Some(live)) => live,
            Ok(None) => continue,
            Err(problem) => {
                found.unchecked.push(unread(&problem));
                continue;
            }
        };
        let extension = &asked.extension;
        let installation = Installation { extension, is_installed: asked.installed.is_some(), is_boxcutter };
        let Some(whose) = installation.other_owner(&live.raw.value()) else { continue };
        let message = already_exists("CustomResourceDefinition", crd, extension);
        let help = format!(
            "bundle {} contains this CRD, but {whose}; {}",
            sanitize(&content.bundle),
            installation.help(&ObjectToRead::crd(crd).object, "crd")
        );
        found.violations.push(violation(&OWNED_BY_ANOTHER, asked.change, message, help, extension.places.package()));
    }
    found
}

/// Objects of the bundles among the manifests that are live and have another owner.
pub async fn of_bundles(asked: &[RequestedExtension], context: &Context<'_>) -> Vec<Violation> {
    let plan = context.plan;
    if plan.changes.iter().all(|change| change.desired.bundle.is_none() || change.live.is_none()) {
        return Vec::new();
    }
    let is_boxcutter = serves_revisions(context).await;
    let mut violations = Vec::new();
    for (index, change) in plan.changes.iter().enumerate() {
        let Some(bundle) = plan.bundle_of(change) else { continue };
        let (Some(extension), Some(live)) = (bundle.extension(), &change.live) else { continue };
        let is_it = |name: &str| name == extension.name;
        let mut live_extensions = plan.live_extensions.iter().flatten();
        let is_installed = match asked.iter().find(|asked| is_it(&asked.extension.name)) {
            Some(asked) => asked.installed.is_some(),
            None => live_extensions.any(|live| is_it(&live.extension.name) && live.installed.is_some()),
        };
        let installation = Installation { extension, is_installed, is_boxcutter };
        let Some(whose) = installation.other_owner(&live.raw.value()) else { continue };
        let object = &change.desired.object;
        let message = already_exists(&object.kind, &object.name, extension);
        let resource = match change.resource.group.as_str() {
            "" => change.resource.plural.clone(),
            group => format!("{}.{group}", change.resource.plural),
        };
        let help = installation.help(object, &resource);
        let help = format!("bundle {} contains it, but {whose}; {help}", bundle.to_text());
        let mut found = violation(&OWNED_BY_ANOTHER, index, message, help, vec!["kind".into()]);
        // OLM refuses an object of another owner whether or not it would change it.
        if let Some(bundle) = change.desired.bundle.filter(|_| change.action.leaves_alone()) {
            found = Violation { subject: ViolationSubject::Bundle(bundle), at: Vec::new(), ..found };
        }
        violations.push(found);
    }
    violations
}

/// OLM's words.
fn already_exists(kind: &str, name: &str, extension: &Extension) -> String {
    format!(
        "{kind} '{}' already exists in namespace '{}' and cannot be managed by operator-controller",
        sanitize(name),
        sanitize(&extension.namespace)
    )
}

/// Whether the target serves the revisions of Boxcutter: then OLM v1 installs with that runtime.
async fn serves_revisions(context: &Context<'_>) -> bool {
    let gvk = |kind: &&str| Gvk { group: GROUP.to_owned(), version: "v1".to_owned(), kind: (*kind).to_owned() };
    let kinds = REVISIONS.iter().map(gvk).collect();
    context.target.discover(&kinds).await.is_ok_and(|found| !found.served.is_empty())
}

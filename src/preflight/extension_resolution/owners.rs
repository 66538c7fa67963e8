//! Whom the package, the CRDs and the namespace of a ClusterExtension belong to.
//!
//! OLM v1 has one owner of each object: <https://operator-framework.github.io/operator-controller/concepts/single-owner-objects/>.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gantry_catalog::bundle::{Olm, Unchecked};

use super::rules::{INSTALL_NAMESPACE_MISSING, OWNED_BY_ANOTHER, PACKAGE_INSTALLED_TWICE, SERVICE_ACCOUNT_MISSING};
use super::{Asked, Found, violation};
use crate::cluster::Wanted;
use crate::olm::cluster_extension::{self, Extension, OWNER_KIND, OWNER_NAME};
use crate::preflight::rule::RuleDoc;
use crate::preflight::{Context, CouldNotCheck, Violation};
use crate::problem::Problem;
use crate::resource::{ObjectRef, Resource, Step};
use crate::text::sanitize;

/// The CRDs that the bundle of an extension brings, as far as the catalog says.
pub struct Brought {
    pub change: usize,
    pub bundle: String,
    pub crds: Vec<String>,
    /// What the catalog does not say about it.
    pub unchecked: Vec<Unchecked>,
}

pub async fn check(asked: &[Asked], brought: &[Brought], olm: Olm, context: &Context<'_>) -> Found {
    let mut found = Found::default();
    match others(asked, context).await {
        Ok(others) => found.violations.extend(twice(asked, &others)),
        Err(error) => found.unchecked.push(error),
    }
    found.extend(needed(asked, olm, context).await);
    found.extend(owned(asked, brought, context).await);
    found
}

/// The packages of the live ClusterExtensions that the plan leaves as they are, with their names.
async fn others(asked: &[Asked], context: &Context<'_>) -> Result<Vec<(String, String)>, CouldNotCheck> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let ours: BTreeSet<&str> = asked.iter().map(|asked| asked.extension.name.as_str()).collect();
    let leaving = context.plan.removals.iter().filter(|removal| cluster_extension::is_one(&removal.object));
    let leaving: BTreeSet<&str> = leaving.map(|removal| removal.object.name.as_str()).collect();
    let live = context.olm.live().await.map_err(|Problem { message, help, .. }| CouldNotCheck {
        message: format!("the ClusterExtensions cannot be listed: {message}"),
        help,
    })?;
    let is_other = |name: &str| !ours.contains(name) && !leaving.contains(name);
    let others = live.iter().map(|live| &live.extension).filter(|extension| is_other(&extension.name));
    Ok(others.map(|extension| (extension.name.clone(), extension.wanted.package.clone())).collect())
}

/// Packages that two extensions ask for.
fn twice(asked: &[Asked], others: &[(String, String)]) -> Vec<Violation> {
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
            "package {} is asked for by ClusterExtension {} too; OLM installs each object for one of them alone",
            sanitize(&wanted.package),
            sanitize(other)
        );
        let help = format!(
            "keep one of them: an operator of OLM v1 watches all namespaces; see kubectl get clusterextension {other}"
        );
        Some(violation(&PACKAGE_INSTALLED_TWICE, asked.change, message, help, places.package()))
    });
    found.collect()
}

/// Something that a ClusterExtension names and OLM v1 does not create.
struct Needed<'a> {
    asked: &'a Asked,
    resource: Resource,
    object: ObjectRef,
    doc: &'static RuleDoc,
    at: Vec<Step>,
    help: String,
}

impl<'a> Needed<'a> {
    fn namespace(asked: &'a Asked) -> Option<Needed<'a>> {
        let name = Some(&asked.extension.namespace).filter(|name| !name.is_empty())?.clone();
        let help = format!("add it to the manifests, or: kubectl create namespace {}", sanitize(&name));
        let (resource, at) =
            (Resource::built_in("", "Namespace", "namespaces", false), asked.extension.places.namespace());
        let object = ObjectRef { api_version: "v1".into(), kind: "Namespace".into(), namespace: None, name };
        Some(Needed { asked, resource, object, doc: &INSTALL_NAMESPACE_MISSING, at, help })
    }

    /// OLM v1 of today does everything by itself, whatever account is named.
    fn service_account(asked: &'a Asked) -> Option<Needed<'a>> {
        let extension = &asked.extension;
        let named = |name: &&String| !name.is_empty();
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
        Some(Needed { asked, resource, object, doc: &SERVICE_ACCOUNT_MISSING, at, help })
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

/// What the extensions name and nobody has.
async fn needed(asked: &[Asked], olm: Olm, context: &Context<'_>) -> Found {
    let mut found = Found::default();
    let is_of_plan = |object: &ObjectRef| {
        let mut objects = context.plan.changes.iter().map(|change| &change.desired.object);
        objects.any(|known| known.identity() == object.identity())
    };
    let accounts = asked.iter().filter(|_| olm == Olm::V4_16).filter_map(Needed::service_account);
    let needed = asked.iter().filter_map(Needed::namespace).chain(accounts);
    let needed: Vec<Needed<'_>> = needed.filter(|needed| !is_of_plan(&needed.object)).collect();
    let wanted = |needed: &Needed<'_>| Wanted {
        resource: Arc::new(needed.resource.clone()),
        object: Arc::new(needed.object.clone()),
    };
    let reads: Vec<Wanted> = needed.iter().map(wanted).collect();
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

/// CRDs of the bundles that are live and belong to somebody else.
async fn owned(asked: &[Asked], brought: &[Brought], context: &Context<'_>) -> Found {
    let mut found = Found::default();
    let of = |brought: &Brought| asked.iter().find(|asked| asked.change == brought.change);
    let crds: Vec<(&Asked, &Brought, &String)> = brought
        .iter()
        .filter_map(|brought| Some((of(brought)?, brought)))
        .flat_map(|(asked, brought)| brought.crds.iter().map(move |crd| (asked, brought, crd)))
        .collect();
    let reads: Vec<Wanted> = crds.iter().map(|(_, _, crd)| Wanted::crd(crd)).collect();
    let read = match context.target.read_each(&reads, &|_, _| ()).await {
        Ok(read) => read,
        Err(error) => {
            found.unchecked.extend(error.problems().iter().map(unread));
            return found;
        }
    };
    for ((asked, brought, crd), read) in crds.into_iter().zip(read) {
        let live = match read {
            Ok(Some(live)) => live,
            Ok(None) => continue,
            Err(problem) => {
                found.unchecked.push(unread(&problem));
                continue;
            }
        };
        let labels = &live.raw.value()["metadata"]["labels"];
        let owner = (labels[OWNER_KIND].as_str(), labels[OWNER_NAME].as_str());
        let extension = &asked.extension;
        let whose = match owner {
            (Some(cluster_extension::KIND), Some(name)) if name == extension.name => continue,
            (Some(kind), Some(name)) => format!("it belongs to {} {}", sanitize(kind), sanitize(name)),
            _ => "nothing that OLM v1 manages has installed it".to_owned(),
        };
        let message = format!(
            "CustomResourceDefinition '{crd}' already exists in namespace '{}' and cannot be managed by operator-controller",
            sanitize(&extension.namespace)
        );
        let help = format!(
            "bundle {} brings this CRD, and {whose}; OLM v1 takes over nothing: remove the other installation first (its CRDs go \
             with all their objects), or leave this extension out",
            sanitize(&brought.bundle)
        );
        found.violations.push(violation(&OWNED_BY_ANOTHER, asked.change, message, help, extension.places.package()));
    }
    found
}

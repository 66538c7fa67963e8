//! Kinds that the server does not serve: whether their objects are gone, or only cannot be read for now.
//!
//! Discovery can lack a kind for a moment, one server of several can lack it, and a CRD can stop serving all of its
//! versions while its objects stay stored. So the objects of a kind are gone only if the server has no CRD of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::inventory::group_kind;
use gantry_cluster::{ListError, ListRequest, ObjectToRead, Target};
use gantry_core::problem::{Problem, Result};
use gantry_core::resource::{self, Resource};

const PAGE: u32 = 500;

/// Stands for all kinds of a group.
pub const ANY: &str = "*";

/// Built-in kinds that no server has any more: the group and, unless it is the whole group, the kind.
const REMOVED: [(&str, Option<&str>); 2] = [("extensions", None), ("policy", Some("PodSecurityPolicy"))];

/// Why kinds may have objects although the server does not serve them.
#[derive(Debug, Default)]
pub struct UnservedKinds {
    reasons: BTreeMap<String, Problem>,
}

impl UnservedKinds {
    /// Finds out about these kinds, each `Kind.group`.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn find(kinds: &BTreeSet<String>, target: &Target) -> Result<Self> {
        let mut unserved = UnservedKinds::default();
        let (built_in, custom): (BTreeSet<&String>, BTreeSet<&String>) =
            kinds.iter().filter(|kind| !is_removed(kind)).partition(|kind| resource::is_built_in(group(kind)));
        for kind in built_in {
            let message = format!("the server does not list {kind} among its kinds, although it is a built-in kind");
            unserved.reasons.insert(kind.clone(), Problem::new(message).help("run the same command again"));
        }
        if custom.is_empty() {
            return Ok(unserved);
        }
        let (aggregated, crds) = futures::join!(aggregated(target), crds_of(&custom, target));
        let crds = crds?;
        for kind in custom {
            let reason = match (&aggregated, &crds) {
                (Ok(groups), _) if groups.contains(group(kind)) => Some(is_down(kind)),
                (_, Ok(crds)) if let Some(crd) = crd_of(kind, crds) => {
                    let help = format!(
                        "does any version have served: true? kubectl get customresourcedefinition/{crd} -o yaml; if so, run \
                         the same command again"
                    );
                    Some(Problem::new(format!("{kind} is not served, although the CRD {crd} exists")).help(help))
                }
                (Ok(_), Ok(_)) => None,
                (Err(error), _) | (_, Err(error)) => Some(unknown(kind, error)),
            };
            unserved.reasons.extend(reason.map(|reason| (kind.clone(), reason)));
        }
        Ok(unserved)
    }

    /// Why some of the kinds may have objects.
    pub fn reasons(&self) -> impl Iterator<Item = &Problem> {
        self.reasons.values()
    }

    /// Why the kind may have objects; `None` if its CRD is gone, and its objects with it.
    pub fn reason(&self, kind: &str) -> Option<&Problem> {
        self.reasons.get(kind)
    }
}

fn group(kind: &str) -> &str {
    kind.split_once('.').map_or("", |(_, group)| group)
}

/// The name of the CRD that defines the kind, or any kind of its group.
fn crd_of<'c>(kind: &str, crds: &'c BTreeMap<String, String>) -> Option<&'c String> {
    let is_of_group = |(of, _): &(&String, &String)| group(of) == group(kind);
    match kind.strip_prefix(ANY) {
        Some(_) => crds.iter().find(is_of_group).map(|(_, crd)| crd),
        None => crds.get(kind),
    }
}

fn is_removed(kind: &str) -> bool {
    REMOVED.iter().any(|(of, only)| *of == group(kind) && only.is_none_or(|only| kind.split('.').next() == Some(only)))
}

fn is_down(kind: &str) -> Problem {
    Problem::new(format!("{kind} is not served: another server serves its group, and does not answer"))
        .help("is an aggregated API down? kubectl get apiservices")
}

fn unknown(kind: &str, error: &ListError) -> Problem {
    let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
    let message = format!("{kind} is not served, and it is unknown whether its CRD exists: {}", what.message);
    Problem { message, ..what }
}

/// The names of the CRDs of these kinds.
async fn crds_of(
    kinds: &BTreeSet<&String>,
    target: &Target,
) -> Result<std::result::Result<BTreeMap<String, String>, ListError>> {
    #[derive(Deserialize)]
    struct ListedCrd {
        metadata: ListedCrdName,
    }
    #[derive(Deserialize)]
    struct ListedCrdName {
        name: String,
    }
    let groups: BTreeSet<&str> = kinds.iter().map(|kind| group(kind)).collect();
    let resource = Resource::crd();
    let request = ListRequest { metadata_only: true, ..ListRequest::new(&resource, PAGE) };
    // A CRD is named PLURAL.GROUP, and the record does not have the plural.
    let gather = |names: &mut Vec<String>, json: &str| {
        let Ok(ListedCrd { metadata: ListedCrdName { name } }) = serde_json::from_str(json) else { return };
        names.extend(groups.contains(group(&name)).then_some(name));
    };
    let names = match target.list(&request).gather(gather).await {
        Ok(names) => names,
        Err(error) => return Ok(Err(error)),
    };
    let wanted: Vec<ObjectToRead> = names.iter().map(|name| ObjectToRead::crd(name)).collect();
    let mut crds = BTreeMap::new();
    for (name, read) in names.into_iter().zip(target.read_each(&wanted, &|_, _| ()).await?) {
        match read {
            Ok(Some(live)) => crds.extend(kind_of(&live.raw.json()).map(|kind| (kind, name))),
            Ok(None) => {}
            Err(problem) => return Ok(Err(ListError::Other(problem))),
        }
    }
    Ok(Ok(crds))
}

/// The kind that a CRD defines.
fn kind_of(crd: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct UnservedCrd {
        spec: UnservedCrdSpec,
    }
    #[derive(Deserialize)]
    struct UnservedCrdSpec {
        group: String,
        names: UnservedCrdNames,
    }
    #[derive(Deserialize)]
    struct UnservedCrdNames {
        kind: String,
    }
    let UnservedCrd { spec } = serde_json::from_str(crd).ok()?;
    Some(group_kind(&spec.group, &spec.names.kind))
}

/// The groups that another server serves through an APIService: if it is down, its objects still exist.
async fn aggregated(target: &Target) -> std::result::Result<BTreeSet<String>, ListError> {
    #[derive(Deserialize)]
    struct ApiService {
        spec: ApiServiceSpec,
    }
    #[derive(Deserialize)]
    struct ApiServiceSpec {
        #[serde(default)]
        group: String,
        #[serde(default)]
        service: Option<IgnoredAny>,
    }
    let resource = Resource::built_in("apiregistration.k8s.io", "APIService", "apiservices", false);
    let request = ListRequest::new(&resource, PAGE);
    let gather = |groups: &mut BTreeSet<String>, json: &str| {
        let Ok(ApiService { spec }) = serde_json::from_str(json) else { return };
        groups.extend(spec.service.is_some().then_some(spec.group));
    };
    target.list(&request).gather(gather).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_that_were_removed_from_kubernetes_are_known() {
        assert!(is_removed("Ingress.extensions") && is_removed("PodSecurityPolicy.policy"));
        for kind in ["Ingress.networking.k8s.io", "PodDisruptionBudget.policy", "Pod", "Shop.extensions.example.com"] {
            assert!(!is_removed(kind), "{kind}");
        }
    }

    #[test]
    fn a_crd_says_which_kind_it_defines() {
        let crd = r#"{"spec":{"group":"example.com","names":{"kind":"Shop","plural":"shops"},"versions":[]}}"#;
        assert_eq!(kind_of(crd).as_deref(), Some("Shop.example.com"));
        assert_eq!(kind_of("{}"), None);
    }
}

//! The service accounts that a RoleBinding or a ClusterRoleBinding grants permissions to, as far as the order depends
//! on them.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::plan::Change;

/// Which workloads wait for a binding, and which role it waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BindingReach {
    pub cluster_role: Option<String>,
    /// The namespaces of its service accounts.
    pub namespaces: BTreeSet<String>,
    /// Whether it applies to all service accounts.
    pub is_everywhere: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRoleBinding {
    #[serde(default)]
    role_ref: RawRoleRef,
    #[serde(default)]
    subjects: Option<Vec<RawBindingSubject>>,
}

#[derive(Deserialize, Default)]
struct RawRoleRef {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct RawBindingSubject {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: Option<String>,
}

/// A binding that cannot be parsed has no subjects: the server refuses it.
pub fn read(change: &Change) -> BindingReach {
    let Ok(binding) = serde_json::from_str::<RawRoleBinding>(&change.desired.raw.json()) else {
        return BindingReach::default();
    };
    let is_cluster_role = binding.role_ref.kind == "ClusterRole";
    let mut bound =
        BindingReach { cluster_role: is_cluster_role.then_some(binding.role_ref.name), ..BindingReach::default() };
    for RawBindingSubject { kind, name, namespace } in binding.subjects.into_iter().flatten() {
        let of_account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
        let of_group = name.strip_prefix("system:serviceaccounts:");
        match (kind.as_str(), of_account, of_group) {
            ("ServiceAccount", ..) => bound.namespaces.extend(namespace),
            ("User", Some((namespace, _)), _) => drop(bound.namespaces.insert(namespace.to_owned())),
            ("Group", _, Some(namespace)) => drop(bound.namespaces.insert(namespace.to_owned())),
            ("Group", ..) if matches!(name.as_str(), "system:serviceaccounts" | "system:authenticated") => {
                bound.is_everywhere = true;
            }
            _ => {}
        }
    }
    bound
}

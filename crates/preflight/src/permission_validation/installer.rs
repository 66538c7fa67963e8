//! The rights that OLM v1 needs to install a bundle and to manage the installed objects: those of the service account
//! of a ClusterExtension.
//!
//! Source: the guide "Derive minimal ServiceAccount" of operator-controller, and the rights that its preflight check of
//! permissions requires (`authorization/rbac.go`): get, update, patch and delete by name, create in the namespace, list
//! and watch in the whole cluster, and every right that the roles of the bundle grant.

use std::collections::BTreeSet;

use gantry_catalog::bundle::install::{self, OlmCreatedObjects};

use super::grant::Grants;
use super::needs::{Right, atom, escalation};
use gantry_core::rbac::{self, PolicyRule};
use gantry_deploy::plan::Plan;
use gantry_deploy::plan::bundles::PlannedBundle;
use gantry_olm::cluster_catalog::GROUP;

/// The group of cert-manager.
const CERT_MANAGER: &str = "cert-manager.io";

/// The rights that bundles need.
#[derive(Debug, Default)]
pub struct InstallerRights {
    /// The rights of the ServiceAccounts that install them.
    pub grants: Grants,
    /// Whether they contain names of roles that end with a hash.
    pub has_hashes: bool,
    /// Whether they contain rights for cert-manager's kinds.
    pub has_certificates: bool,
    /// Whether the name of a ClusterExtension is unknown.
    pub is_nameless: bool,
}

/// The rights that OLM needs for all bundles of a plan. Bundles without a ClusterExtension are installed into
/// `namespace`.
pub fn installer_rights(plan: &Plan, namespace: &str) -> InstallerRights {
    let mut needed = InstallerRights { grants: Grants::new(plan), ..InstallerRights::default() };
    for (index, bundle) in plan.bundles.iter().enumerate() {
        let mut of_bundle = BundleRights { needed: &mut needed, install: bundle.namespace().unwrap_or(namespace) };
        of_bundle.add_owner_rights(bundle);
        of_bundle.add_bundle_rights(plan, index);
        of_bundle.add_operator_rights(bundle);
    }
    needed.grants.remove_covered();
    needed
}

struct BundleRights<'n> {
    needed: &'n mut InstallerRights,
    /// The namespace into which the bundle is installed.
    install: &'n str,
}

impl BundleRights<'_> {
    /// The right to set the ClusterExtension as the owner of the installed objects, which the server may require.
    fn add_owner_rights(&mut self, bundle: &PlannedBundle) {
        let name = bundle.extension().map(|extension| extension.name.as_str());
        self.needed.is_nameless |= name.is_none();
        for verb in ["update", "patch"] {
            self.needed.grants.add(None, atom(GROUP, "clusterextensions/finalizers", name, verb));
        }
    }

    /// The rights for the objects of the bundle.
    fn add_bundle_rights(&mut self, plan: &Plan, index: usize) {
        for change in plan.changes.iter().filter(|change| change.desired.bundle == Some(index)) {
            let object = &change.desired.object;
            let namespace = change.resource.namespaced.then_some(self.install);
            self.add_managing_rights(namespace, (&change.resource.group, &change.resource.plural), [&object.name]);
            if change.resource.group != rbac::GROUP {
                continue;
            }
            match escalation(change) {
                Some(Right::WriteRole { escalate, aggregates: true, .. }) => {
                    self.needed.grants.add(namespace, escalate);
                }
                Some(Right::WriteRole { rules, .. }) => {
                    rules.into_iter().for_each(|right| self.needed.grants.add(namespace, right));
                }
                Some(Right::WriteBinding { bind, .. }) => self.needed.grants.add(namespace, bind),
                Some(Right::Request { .. }) | None => {}
            }
        }
    }

    /// The rights for the objects that OLM creates from the ClusterServiceVersion.
    fn add_operator_rights(&mut self, bundle: &PlannedBundle) {
        let Some((csv, _)) = &bundle.content.csv else { return };
        let OlmCreatedObjects {
            service_accounts,
            roles,
            deployments,
            services,
            validating,
            mutating,
            certificates,
            issuers,
        } = install::installed(csv, bundle.watched(self.install));
        let install = Some(self.install);
        self.add_managing_rights(install, ("", "serviceaccounts"), &service_accounts);
        self.add_managing_rights(install, ("apps", "deployments"), &deployments);
        self.add_managing_rights(install, ("", "services"), &services);
        let admission = "admissionregistration.k8s.io";
        self.add_managing_rights(None, (admission, "validatingwebhookconfigurations"), &validating);
        self.add_managing_rights(None, (admission, "mutatingwebhookconfigurations"), &mutating);
        self.add_managing_rights(install, (CERT_MANAGER, "certificates"), &certificates);
        self.add_managing_rights(install, (CERT_MANAGER, "issuers"), &issuers);
        self.needed.has_certificates |= !certificates.is_empty();
        self.needed.has_hashes |= !roles.is_empty();
        for install::InstalledRole { names, namespace, rules } in roles {
            let kinds = match namespace {
                Some(_) => ["roles", "rolebindings"],
                None => ["clusterroles", "clusterrolebindings"],
            };
            for plural in kinds {
                self.add_managing_rights(namespace.as_deref(), (rbac::GROUP, plural), &names);
            }
            // A user may not write a role with rights that the user does not hold.
            for rule in rules {
                let rule = PolicyRule {
                    api_groups: rule.api_groups,
                    resources: rule.resources,
                    resource_names: rule.resource_names,
                    non_resource_urls: rule.non_resource_urls,
                    verbs: rule.verbs,
                };
                let rights: BTreeSet<_> = rule.atoms().into_iter().collect();
                rights.into_iter().for_each(|right| self.needed.grants.add(namespace.as_deref(), right));
            }
        }
    }

    /// Adds the rights to create and manage objects with these names.
    fn add_managing_rights<'o>(
        &mut self,
        namespace: Option<&str>,
        (group, plural): (&str, &str),
        names: impl IntoIterator<Item = &'o String>,
    ) {
        let grants = &mut self.needed.grants;
        let mut names = names.into_iter().peekable();
        if names.peek().is_none() {
            return;
        }
        // These cannot be limited to names: a new object has none yet, and OLM watches the kind in the whole cluster.
        grants.add(namespace, atom(group, plural, None, "create"));
        for verb in ["list", "watch"] {
            grants.add(None, atom(group, plural, None, verb));
        }
        for name in names {
            for verb in ["get", "update", "patch", "delete"] {
                grants.add(namespace, atom(group, plural, Some(name), verb));
            }
        }
    }
}

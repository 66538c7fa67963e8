//! The rights that OLM v1 needs to install a bundle and to manage the installed objects: those of the service account
//! of a ClusterExtension.
//!
//! Source: the guide "Derive minimal ServiceAccount" of operator-controller, and the rights that its preflight check of
//! permissions requires (`authorization/rbac.go`): get, update, patch and delete by name, create in the namespace, list
//! and watch in the whole cluster, and every right that the roles of the bundle grant.

use std::collections::BTreeSet;

use serde_json::Value;

use super::grant::Grants;
use super::needs::{Need, Right, atom, escalation};
use gantry_core::problem::Problem;
use gantry_core::rbac::{self, Atom, PolicyRule};
use gantry_core::resource::Resource;
use gantry_deploy::plan::Plan;
use gantry_deploy::plan::certificates::CERT_MANAGER;
use gantry_deploy::plan::planned_bundle::PlannedBundle;
use gantry_olm::cluster_catalog::GROUP;
use gantry_olm::cluster_extension;

/// The rights that a bundle needs.
#[derive(Debug, Default)]
pub struct InstallerRights {
    /// The rights of the ServiceAccount that installs it.
    pub grants: Grants,
    /// Whether they contain names of roles that end with a hash.
    pub has_hashes: bool,
    /// Whether they contain rights for cert-manager's kinds.
    pub has_certificates: bool,
    /// Whether the name of a ClusterExtension is unknown.
    pub is_nameless: bool,
}

/// The rights that OLM needs for one bundle of a plan. Without a ClusterExtension, it is installed into `namespace`.
///
/// # Errors
/// OLM cannot read the ClusterServiceVersion.
pub fn installer_rights(plan: &Plan, index: usize, namespace: &str) -> Result<InstallerRights, Problem> {
    let BundleRights { rights, has_hashes, has_certificates } = BundleRights::list(plan, index, namespace)?;
    let is_nameless = plan.bundles[index].extension().is_none();
    let mut grants = Grants::new(plan);
    rights.into_iter().for_each(|right| grants.add(right.namespace.as_deref(), right.atom));
    grants.remove_covered();
    Ok(InstallerRights { grants, has_hashes, has_certificates, is_nameless })
}

/// The rights that OLM needs to send its requests for one bundle. What a role needs besides is not among them, because
/// the needs of the plan contain it.
///
/// # Errors
/// OLM cannot read the ClusterServiceVersion.
pub fn installer_requests(plan: &Plan, index: usize, namespace: &str) -> Result<Vec<Need>, Problem> {
    let of_bundle = BundleRights::list(plan, index, namespace)?;
    let is_extension = |object: &gantry_core::resource::ObjectRef| {
        cluster_extension::is_one(object)
            && plan.bundles[index].extension().is_some_and(|extension| extension.name == object.name)
    };
    let of_plan = plan.changes.iter().position(|change| is_extension(&change.desired.object));
    let of_bundle_itself = plan.changes.iter().position(|change| change.desired.bundle == Some(index));
    let Some(other) = of_plan.or(of_bundle_itself) else { return Ok(Vec::new()) };
    let requests = of_bundle.rights.into_iter().filter(|right| right.is_request);
    let need = |InstallerRight { change, namespace, atom, .. }: InstallerRight| {
        let change = change.unwrap_or(other);
        let version = plan.changes[change].resource.version.clone();
        Need { change, namespace, right: Right::Request { atom, version } }
    };
    Ok(requests.map(need).collect())
}

/// One right that OLM needs.
struct InstallerRight {
    /// The change that needs it; `None` for the ClusterExtension, and for objects that are not in the plan.
    change: Option<usize>,
    namespace: Option<String>,
    atom: Atom,
    /// Whether OLM sends a request that needs it. Otherwise it is a right that a role grants.
    is_request: bool,
}

#[derive(Default)]
struct BundleRights {
    rights: Vec<InstallerRight>,
    has_hashes: bool,
    has_certificates: bool,
}

impl BundleRights {
    fn list(plan: &Plan, index: usize, namespace: &str) -> Result<BundleRights, Problem> {
        let bundle = &plan.bundles[index];
        let install = bundle.namespace().unwrap_or(namespace);
        let mut rights = BundleRights::default();
        rights.add_owner_rights(bundle);
        for (number, change) in plan.changes.iter().enumerate() {
            // What is rendered comes below, for the namespace of the account.
            if change.desired.bundle != Some(index) || change.desired.is_rendered() {
                continue;
            }
            let object = &change.desired.object;
            let place = change.resource.namespaced.then_some(install);
            rights.add_managing_rights(Some(number), place, &change.resource, [&object.name]);
            if change.resource.group == rbac::GROUP {
                rights.add_escalation(number, place, escalation(change));
            }
        }
        rights.add_rendered_rights(plan, index, install)?;
        Ok(rights)
    }

    fn add(&mut self, change: Option<usize>, namespace: Option<&str>, atom: Atom, is_request: bool) {
        let namespace = namespace.map(str::to_owned);
        self.rights.push(InstallerRight { change, namespace, atom, is_request });
    }

    /// The right to set the ClusterExtension as the owner of the installed objects, which OLM asks for up to v1.10, and a
    /// server with the admission plugin OwnerReferencesPermissionEnforcement.
    fn add_owner_rights(&mut self, bundle: &PlannedBundle) {
        let name = bundle.extension().map(|extension| extension.name.as_str());
        self.add(None, None, atom(GROUP, "clusterextensions/finalizers", name, "update"), true);
    }

    /// The rights that the server requires for writing a role or a binding of the bundle.
    fn add_escalation(&mut self, change: usize, namespace: Option<&str>, right: Option<Right>) {
        let change = Some(change);
        match right {
            Some(Right::WriteRole { escalate, aggregates: true, .. }) => self.add(change, namespace, escalate, false),
            Some(Right::WriteRole { rules, .. }) => {
                rules.into_iter().for_each(|right| self.add(change, namespace, right, false));
            }
            Some(Right::WriteBinding { bind, .. }) => self.add(change, namespace, bind, false),
            Some(Right::Request { .. }) | None => {}
        }
    }

    /// The rights for the objects that OLM creates from the ClusterServiceVersion. The rights of the roles suffice for
    /// their bindings.
    fn add_rendered_rights(&mut self, plan: &Plan, index: usize, install: &str) -> Result<(), Problem> {
        let (objects, earlier) = plan.bundles[index].rendered(install)?;
        for object in objects {
            let text = |pointer: &str| object.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (text("/kind"), text("/metadata/name").to_owned());
            let Some(resource) = rendered_resource(text("/apiVersion"), kind) else { continue };
            let namespace = resource.namespaced.then(|| text("/metadata/namespace"));
            let is_it = |change: &gantry_deploy::plan::Change| {
                let found = &change.desired.object;
                change.desired.bundle == Some(index)
                    && (found.kind.as_str(), found.name.as_str()) == (kind, name.as_str())
            };
            let change = plan.changes.iter().position(is_it);
            self.has_certificates |= resource.group == CERT_MANAGER;
            let mut names = vec![&name];
            if resource.group == rbac::GROUP {
                self.has_hashes = true;
                if !resource.namespaced {
                    names.extend(&earlier);
                }
                for rule in object.value["rules"].as_array().into_iter().flatten() {
                    let rights: BTreeSet<Atom> = policy_rule(rule).atoms().into_iter().collect();
                    rights.into_iter().for_each(|right| self.add(change, namespace, right, false));
                }
            }
            self.add_managing_rights(change, namespace, &resource, names);
        }
        Ok(())
    }

    /// Adds the rights to create and manage objects with these names.
    fn add_managing_rights<'o>(
        &mut self,
        change: Option<usize>,
        namespace: Option<&str>,
        Resource { group, plural, .. }: &Resource,
        names: impl IntoIterator<Item = &'o String>,
    ) {
        // These cannot be limited to names: a new object has none yet, and OLM watches the kind in the whole cluster.
        self.add(change, namespace, atom(group, plural, None, "create"), true);
        for verb in ["list", "watch"] {
            self.add(change, None, atom(group, plural, None, verb), true);
        }
        for name in names {
            for verb in ["get", "update", "patch", "delete"] {
                self.add(change, namespace, atom(group, plural, Some(name), verb), true);
            }
        }
    }
}

/// The resource of a kind that OLM creates from a ClusterServiceVersion.
fn rendered_resource(api_version: &str, kind: &str) -> Option<Resource> {
    let (plural, namespaced) = match kind {
        "ServiceAccount" => ("serviceaccounts", true),
        "Role" => ("roles", true),
        "RoleBinding" => ("rolebindings", true),
        "ClusterRole" => ("clusterroles", false),
        "ClusterRoleBinding" => ("clusterrolebindings", false),
        "Deployment" => ("deployments", true),
        "Service" => ("services", true),
        "ValidatingWebhookConfiguration" => ("validatingwebhookconfigurations", false),
        "MutatingWebhookConfiguration" => ("mutatingwebhookconfigurations", false),
        "Issuer" => ("issuers", true),
        "Certificate" => ("certificates", true),
        _ => return None,
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
    })
}

fn policy_rule(rule: &Value) -> PolicyRule {
    let list = |name: &str| {
        let items = rule[name].as_array().into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    PolicyRule {
        api_groups: list("apiGroups"),
        resources: list("resources"),
        resource_names: list("resourceNames"),
        non_resource_urls: list("nonResourceURLs"),
        verbs: list("verbs"),
    }
}

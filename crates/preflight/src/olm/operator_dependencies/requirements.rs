//! Compares the operators before and after the deploy, and reports requirements that are not met.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use gantry_catalog::SemanticVersion;
use gantry_catalog::dependency::{self, Api, BundleRequirement, InstalledOperator};
use gantry_catalog::{Package, PackageBundle};

use super::nodes::{OperatorChanges, OperatorNode};
use super::rules::{
    API_OWNED_TWICE, DEPENDENCY_INSTALLED, DEPENDENT_BROKEN, REQUIRED_API_MISSING, REQUIRED_PACKAGE_MISSING,
    UPDATE_TOGETHER,
};
use super::{ServedApis, violation};
use crate::olm::catalogs::Contents;
use crate::{CouldNotCheck, ViolationSubject, ViolationsFound};
use gantry_core::resource::ObjectRef;
use gantry_core::text::sanitize;
use gantry_olm::subscription;

/// The maximum number of bundles that a message names.
const NAMES_SHOWN: usize = 3;

/// Why an operator is no longer installed after the deploy.
enum OperatorRemoval<'a> {
    Replaced(&'a OperatorNode),
    Deleted(&'a ObjectRef),
}

/// The operators at one time, for evaluating requirements.
struct InstalledOperators<'a> {
    nodes: Vec<&'a OperatorNode>,
    /// APIs that no operator has to provide: those of the target and of the CRDs of the manifests.
    served: Option<&'a ServedApis>,
}

impl<'a> InstalledOperators<'a> {
    fn new(nodes: impl Iterator<Item = &'a OperatorNode>, served: Option<&'a ServedApis>) -> Self {
        InstalledOperators { nodes: nodes.collect(), served }
    }

    /// Whether the requirement is met; `None` if that is unknown.
    fn evaluate(&self, requirement: &BundleRequirement) -> Option<bool> {
        let apis = requirement.apis();
        let served = self.served.filter(|served| apis.iter().any(|api| served.has(api)));
        let operators = self.nodes.iter().map(|node| *node as &dyn InstalledOperator);
        requirement.holds(operators.chain(served.map(|served| served as &dyn InstalledOperator)))
    }

    /// Whether the requirement is met; false if that is unknown.
    fn holds(&self, requirement: &BundleRequirement) -> bool {
        self.evaluate(requirement) == Some(true)
    }
}

impl InstalledOperator for OperatorNode {
    fn provides(&self, api: &Api) -> bool {
        self.provides.contains(api)
    }

    fn is_of_package(&self, name: &str, matches: &dyn Fn(&SemanticVersion) -> bool) -> bool {
        self.package == name && [&self.version, &self.package_version].into_iter().flatten().any(matches)
    }
}

/// The unknown operators whose APIs the target serves count as one.
impl InstalledOperator for ServedApis {
    fn provides(&self, api: &Api) -> bool {
        self.has(api)
    }

    fn is_of_package(&self, _: &str, _: &dyn Fn(&SemanticVersion) -> bool) -> bool {
        false
    }
}

/// Findings about what operators require of each other.
pub fn check(nodes: &OperatorChanges, served: &ServedApis, contents: &Contents) -> ViolationsFound {
    let comparison = RequirementComparison { nodes, served, contents, known: OnceCell::new() };
    let mut found = ViolationsFound::default();
    let together = comparison.dependents(&mut found);
    comparison.report_unmet_requirements(&together, &mut found);
    comparison.owned_twice(&mut found);
    found
}

struct RequirementComparison<'a> {
    nodes: &'a OperatorChanges,
    served: &'a ServedApis,
    contents: &'a Contents,
    /// The bundles that provide each API, computed when an API is first missing.
    known: OnceCell<BTreeMap<Api, Vec<String>>>,
}

impl<'a> RequirementComparison<'a> {
    fn operators_after(&self) -> impl Iterator<Item = &'a OperatorNode> {
        self.nodes.after.iter()
    }

    /// Reports remaining operators that lose what they require. Returns versions of them that would still work.
    fn dependents(&self, found: &mut ViolationsFound) -> Vec<(&'a Package, &'a PackageBundle)> {
        let (before, after) = (
            InstalledOperators::new(self.nodes.before.iter(), None),
            InstalledOperators::new(self.operators_after(), None),
        );
        let mut together = Vec::new();
        for node in self.operators_after().filter(|node| node.subject.is_none()) {
            for requirement in &node.requires {
                let lost = before.holds(requirement) && !after.holds(requirement);
                let unserved = requirement.apis().into_iter().find(|api| self.served.drops(api).is_some());
                let (subject, message) = match (lost, unserved) {
                    (true, _) => {
                        let Some((provider, removal)) = self.provider(requirement) else { continue };
                        let subject = match removal {
                            OperatorRemoval::Replaced(instead) => instead.subject.clone(),
                            OperatorRemoval::Deleted(object) => Some(ViolationSubject::Object(object.clone())),
                        };
                        (subject, lost_message(node, requirement, provider, &removal))
                    }
                    (false, Some(api)) => {
                        (self.served.drops(api).map(ViolationSubject::Change), unserved_message(node, requirement, api))
                    }
                    (false, None) => continue,
                };
                let Some(subject) = subject else { continue };
                match self.working_version(node) {
                    Some((package, bundle)) => {
                        let help = format!(
                            "in the same deploy, update to {}, which has all that it requires",
                            sanitize(&bundle.name)
                        );
                        found.violations.push(violation(&UPDATE_TOGETHER, subject, message, help));
                        together.push((package, bundle));
                    }
                    None => {
                        let help = format!(
                            "no version of {} in the catalogs works without it; keep the version that provides it, or remove \
                             {} first",
                            sanitize(named(node)),
                            sanitize(named(node))
                        );
                        found.violations.push(violation(&DEPENDENT_BROKEN, subject, message, help));
                    }
                }
            }
        }
        together
    }

    /// The operator that provided what is required, and why it no longer does: the operator that replaces it, or its
    /// deletion.
    fn provider(&self, requirement: &BundleRequirement) -> Option<(&'a OperatorNode, OperatorRemoval<'a>)> {
        let provider = self
            .nodes
            .before
            .iter()
            .find(|node| InstalledOperators::new([*node].into_iter(), None).holds(requirement))?;
        if let Some((_, object)) = self.nodes.removed.iter().find(|(node, _)| node.object == provider.object) {
            return Some((provider, OperatorRemoval::Deleted(object)));
        }
        let mut deployed = self.operators_after().filter(|node| node.subject.is_some());
        Some((provider, OperatorRemoval::Replaced(deployed.find(|node| node.is_same(provider))?)))
    }

    /// Another version of the operator whose requirements are all met.
    fn working_version(&self, node: &OperatorNode) -> Option<(&'a Package, &'a PackageBundle)> {
        if node.package.is_empty() {
            return None;
        }
        let mut packages = self.contents.values().filter_map(|read| read.as_ref().ok()?.packages.get(&node.package));
        packages.find_map(|package| {
            let bundle = package.by_version().into_iter().find(|bundle| {
                let other = OperatorNode::of_bundle(package, bundle, &mut Vec::new());
                if other.name == node.name {
                    return false;
                }
                let others = self.operators_after().filter(|after| after.object != node.object);
                let installed = InstalledOperators::new(others.chain([&other]), Some(self.served));
                other.requires.iter().all(|requirement| installed.holds(requirement))
            });
            Some((package, bundle?))
        })
    }

    /// Reports requirements of the operators of the deploy that are not met.
    fn report_unmet_requirements(&self, together: &[(&Package, &PackageBundle)], found: &mut ViolationsFound) {
        let after = InstalledOperators::new(self.operators_after(), Some(self.served));
        let updated: Vec<OperatorNode> = together
            .iter()
            .map(|(package, bundle)| OperatorNode::of_bundle(package, bundle, &mut Vec::new()))
            .collect();
        let with_them = (!updated.is_empty())
            .then(|| InstalledOperators::new(self.operators_after().chain(&updated), Some(self.served)));
        for (node, subject) in self.operators_after().filter_map(|node| Some((node, node.subject.as_ref()?))) {
            for requirement in &node.requires {
                match after.evaluate(requirement) {
                    Some(true) => continue,
                    None => {
                        let message = format!(
                            "bundle {} requires an operator {}, which is not evaluated",
                            sanitize(&node.name),
                            sanitize(&requirement.to_string())
                        );
                        let help = "OLM evaluates the expression over the properties of bundles";
                        found.unchecked.push(CouldNotCheck { message, help: Some(help.into()) });
                        continue;
                    }
                    Some(false) => {}
                }
                // `UpdateTogether` already reports this.
                if with_them.as_ref().is_some_and(|installed| installed.holds(requirement)) {
                    continue;
                }
                let (is_provided, help) = self.providers(requirement);
                // Classic OLM installs what a Subscription requires, if a catalog has it.
                if is_provided && node.object.0 == subscription::KIND {
                    let message = format!(
                        "bundle {} requires an operator {}: OLM installs one that provides it",
                        sanitize(&node.name),
                        sanitize(&requirement.to_string())
                    );
                    found.violations.push(violation(&DEPENDENCY_INSTALLED, subject.clone(), message, help));
                    continue;
                }
                let doc = if requirement.is_of_package() { &REQUIRED_PACKAGE_MISSING } else { &REQUIRED_API_MISSING };
                let message = format!(
                    "bundle {} requires an operator {}",
                    sanitize(&node.name),
                    sanitize(&requirement.to_string())
                );
                found.violations.push(violation(doc, subject.clone(), message, help));
            }
        }
    }

    /// Whether bundles of the catalogs meet the requirement, and a help text that names them.
    fn providers(&self, requirement: &BundleRequirement) -> (bool, String) {
        let fitting: Vec<String> = match requirement {
            BundleRequirement::Package { name, versions, .. } => {
                let packages = self.contents.iter().filter_map(|(catalog, read)| {
                    let package = read.as_ref().ok()?.packages.get(name)?;
                    let matches =
                        |bundle: &&PackageBundle| bundle.version().is_ok_and(|found| versions.contains(&found.version));
                    Some(describe_bundle(catalog, package, package.by_version().into_iter().find(matches)?))
                });
                packages.collect()
            }
            BundleRequirement::Api(api) => {
                let known = self.known.get_or_init(|| provided(self.contents));
                known.get(api).cloned().unwrap_or_default()
            }
            compound => {
                let read = self.contents.iter().filter_map(|(catalog, read)| Some((catalog, read.as_ref().ok()?)));
                let packages = read.flat_map(|(catalog, read)| read.packages.values().map(move |of| (catalog, of)));
                let fitting = packages.filter_map(|(catalog, package)| {
                    let meets = |bundle: &&PackageBundle| {
                        let node = OperatorNode::of_bundle(package, bundle, &mut Vec::new());
                        compound.holds([&node as &dyn InstalledOperator]) == Some(true)
                    };
                    Some(describe_bundle(catalog, package, package.by_version().into_iter().find(meets)?))
                });
                fitting.collect()
            }
        };
        let help = match fitting.len() {
            0 => "no bundle of the available catalogs provides it; install an operator that does, in the same deploy"
                .to_owned(),
            count => {
                let more =
                    if count > NAMES_SHOWN { format!(" and {} more", count - NAMES_SHOWN) } else { String::new() };
                format!("deploy it with one that provides it: {}{more}", fitting[..count.min(NAMES_SHOWN)].join(", "))
            }
        };
        (!fitting.is_empty(), help)
    }

    /// Reports APIs that two operators provide after the deploy, if the deploy installs at least one of them.
    fn owned_twice(&self, found: &mut ViolationsFound) {
        let mut owners: BTreeMap<&Api, Vec<&OperatorNode>> = BTreeMap::new();
        for node in self.operators_after() {
            for api in &node.provides {
                owners.entry(api).or_default().push(node);
            }
        }
        for (api, owners) in owners.into_iter().filter(|(_, owners)| owners.len() > 1) {
            // Operators in different namespaces do not conflict, unless one of them is for the whole cluster.
            let conflicts = |node: &OperatorNode| {
                owners.iter().any(|other| other.object != node.object && node.shares_scope(other))
            };
            let installed = owners.iter().rev().filter(|node| node.subject.is_some());
            let Some(node) = installed.into_iter().find(|node| conflicts(node)) else { continue };
            let Some(subject) = node.subject.clone() else { continue };
            let nodes: Vec<&&OperatorNode> = owners.iter().filter(|other| node.shares_scope(other)).collect();
            let message = format!(
                "there can be only one provider of {} ({}/{}): {}",
                sanitize(&api.kind),
                sanitize(&api.group),
                sanitize(&api.version),
                nodes.iter().map(|node| node.to_text()).collect::<Vec<_>>().join(", ")
            );
            let help = "keep one of them; if one is an update of the other, say so with replaces or skips".to_owned();
            found.violations.push(violation(&API_OWNED_TWICE, subject, message, help));
        }
    }
}

/// For each API, the highest version of each package that provides it.
fn provided(contents: &Contents) -> BTreeMap<Api, Vec<String>> {
    let mut known: BTreeMap<Api, Vec<String>> = BTreeMap::new();
    for (catalog, read) in contents {
        for package in read.as_ref().into_iter().flat_map(|read| read.packages.values()) {
            let mut of_package: BTreeSet<Api> = BTreeSet::new();
            for bundle in package.by_version() {
                for api in dependency::provided(&bundle.properties) {
                    if of_package.insert(api.clone()) {
                        known.entry(api).or_default().push(describe_bundle(catalog, package, bundle));
                    }
                }
            }
        }
    }
    known
}

/// `a.v1.0.0 of package a (catalog operatorhubio)`
fn describe_bundle(catalog: &str, package: &Package, bundle: &PackageBundle) -> String {
    format!("{} of package {} (catalog {catalog})", sanitize(&bundle.name), sanitize(&package.name))
}

/// The package, or the name if the package is unknown.
fn named(node: &OperatorNode) -> &str {
    if node.package.is_empty() { &node.name } else { &node.package }
}

fn lost_message(
    node: &OperatorNode,
    requirement: &BundleRequirement,
    provider: &OperatorNode,
    removal: &OperatorRemoval<'_>,
) -> String {
    let removal = match removal {
        OperatorRemoval::Replaced(instead) => format!("its replacement {} does not", instead.to_text()),
        OperatorRemoval::Deleted(_) => "is deleted".to_owned(),
    };
    format!(
        "bundle {} requires an operator {}: {} provides it, but {removal}",
        node.to_text(),
        sanitize(&requirement.to_string()),
        provider.to_text()
    )
}

fn unserved_message(node: &OperatorNode, requirement: &BundleRequirement, api: &Api) -> String {
    format!(
        "bundle {} requires an operator {}, but the CRD of the manifests no longer serves {}",
        node.to_text(),
        sanitize(&requirement.to_string()),
        sanitize(&api.version)
    )
}

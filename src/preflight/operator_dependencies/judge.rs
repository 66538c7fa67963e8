//! What goes wrong between the operators before and after the deploy.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use gantry_catalog::Version;
use gantry_catalog::dependency::{self, Api, Operators, Requirement};
use gantry_catalog::{Bundle, Package};

use super::nodes::{Node, Nodes};
use super::rules::{
    API_OWNED_TWICE, DEPENDENT_BROKEN, REQUIRED_API_MISSING, REQUIRED_PACKAGE_MISSING, UPDATE_TOGETHER,
};
use super::{Served, violation};
use crate::preflight::olm::catalogs::Contents;
use crate::preflight::{CouldNotCheck, Found, Subject};
use crate::resource::ObjectRef;
use crate::text::sanitize;

/// So many bundles of a catalog are named.
const NAMED: usize = 3;

/// What takes an operator away.
enum Gone<'a> {
    Replaced(&'a Node),
    Deleted(&'a ObjectRef),
}

/// The operators of one moment, as far as requirements ask.
struct There<'a> {
    apis: BTreeSet<&'a Api>,
    nodes: Vec<&'a Node>,
    /// APIs that nobody need provide: those of the target and of the CRDs of the manifests.
    served: Option<&'a Served>,
}

impl<'a> There<'a> {
    fn new(nodes: impl Iterator<Item = &'a Node>, served: Option<&'a Served>) -> Self {
        let nodes: Vec<&Node> = nodes.collect();
        There { apis: nodes.iter().flat_map(|node| &node.provides).collect(), nodes, served }
    }
}

impl Operators for There<'_> {
    fn provides(&self, api: &Api) -> bool {
        self.apis.contains(api) || self.served.is_some_and(|served| served.has(api))
    }

    fn has_package(&self, name: &str, is_taken: &dyn Fn(&Version) -> bool) -> bool {
        self.nodes.iter().any(|node| node.package == name && node.version.as_ref().is_some_and(is_taken))
    }
}

/// Findings about what operators require of each other.
pub fn check(nodes: &Nodes, served: &Served, contents: &Contents) -> Found {
    let judging = Judging { nodes, served, contents, known: OnceCell::new() };
    let mut found = Found::default();
    let together = judging.dependents(&mut found);
    judging.deployed(&together, &mut found);
    judging.owned_twice(&mut found);
    found
}

struct Judging<'a> {
    nodes: &'a Nodes,
    served: &'a Served,
    contents: &'a Contents,
    /// The bundles that provide an API, found out when one is first missing.
    known: OnceCell<BTreeMap<Api, Vec<String>>>,
}

impl<'a> Judging<'a> {
    fn after(&self) -> impl Iterator<Item = &'a Node> {
        self.nodes.after.iter()
    }

    /// Operators that stay and lose what they require. Answers the other versions of them that would not.
    fn dependents(&self, found: &mut Found) -> Vec<(&'a Package, &'a Bundle)> {
        let (before, after) = (There::new(self.nodes.before.iter(), None), There::new(self.after(), None));
        let mut together = Vec::new();
        for node in self.after().filter(|node| node.subject.is_none()) {
            for requirement in &node.requires {
                let lost = before.holds(requirement) && !after.holds(requirement);
                let unserved = requirement.apis().into_iter().find(|api| self.served.drops(api).is_some());
                let (subject, message) = match (lost, unserved) {
                    (true, _) => {
                        let Some((provider, gone)) = self.provider(requirement) else { continue };
                        let subject = match gone {
                            Gone::Replaced(instead) => instead.subject.clone(),
                            Gone::Deleted(object) => Some(Subject::Object(object.clone())),
                        };
                        (subject, lost_words(node, requirement, provider, &gone))
                    }
                    (false, Some(api)) => {
                        (self.served.drops(api).map(Subject::Change), unserved_words(node, requirement, api))
                    }
                    (false, None) => continue,
                };
                let Some(subject) = subject else { continue };
                match self.fitting(node) {
                    Some((package, bundle)) => {
                        let help = format!(
                            "{} fits: deploy both together, so that neither is left behind",
                            sanitize(&bundle.name)
                        );
                        found.violations.push(violation(&UPDATE_TOGETHER, subject, message, help));
                        together.push((package, bundle));
                    }
                    None => {
                        let help = format!(
                            "no version of {} in the catalogs does without it; keep the version that provides it, or remove {} first",
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

    /// Who has provided what is required, and what of the plan takes it away: the operator that comes in its place, or its
    /// deletion.
    fn provider(&self, requirement: &Requirement) -> Option<(&'a Node, Gone<'a>)> {
        let gone = self.nodes.before.iter().find(|node| There::new([*node].into_iter(), None).holds(requirement))?;
        if let Some((_, object)) = self.nodes.removed.iter().find(|(node, _)| node.object == gone.object) {
            return Some((gone, Gone::Deleted(object)));
        }
        let mut deployed = self.after().filter(|node| node.subject.is_some());
        Some((gone, Gone::Replaced(deployed.find(|node| node.is_same(gone))?)))
    }

    /// Another version of the operator with which all that it requires is there.
    fn fitting(&self, node: &Node) -> Option<(&'a Package, &'a Bundle)> {
        if node.package.is_empty() {
            return None;
        }
        let mut packages = self.contents.values().filter_map(|read| read.as_ref().ok()?.packages.get(&node.package));
        packages.find_map(|package| {
            let bundle = package.by_version().into_iter().find(|bundle| {
                let other = Node::of_bundle(package, bundle, &mut Vec::new());
                if other.name == node.name {
                    return false;
                }
                let others = self.after().filter(|after| after.object != node.object);
                let there = There::new(others.chain([&other]), Some(self.served));
                other.requires.iter().all(|requirement| requirement.holds(&there) == Some(true))
            });
            Some((package, bundle?))
        })
    }

    /// What the operators of the deploy require and nobody provides.
    fn deployed(&self, together: &[(&Package, &Bundle)], found: &mut Found) {
        let after = There::new(self.after(), Some(self.served));
        let updated: Vec<Node> =
            together.iter().map(|(package, bundle)| Node::of_bundle(package, bundle, &mut Vec::new())).collect();
        let with_them = (!updated.is_empty()).then(|| There::new(self.after().chain(&updated), Some(self.served)));
        for (node, subject) in self.after().filter_map(|node| Some((node, node.subject.as_ref()?))) {
            for requirement in &node.requires {
                match requirement.holds(&after) {
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
                // That it is to be updated with what provides it, has been said.
                if with_them.as_ref().is_some_and(|there| there.holds(requirement)) {
                    continue;
                }
                let doc = if requirement.is_of_package() { &REQUIRED_PACKAGE_MISSING } else { &REQUIRED_API_MISSING };
                let message = format!(
                    "bundle {} requires an operator {}",
                    sanitize(&node.name),
                    sanitize(&requirement.to_string())
                );
                found.violations.push(violation(doc, subject.clone(), message, self.providers(requirement)));
            }
        }
    }

    /// Which bundles of the catalogs would do.
    fn providers(&self, requirement: &Requirement) -> String {
        let fitting: Vec<String> = match requirement {
            Requirement::Package { name, versions, .. } => {
                let packages = self.contents.iter().filter_map(|(catalog, read)| {
                    let package = read.as_ref().ok()?.packages.get(name)?;
                    let is_taken =
                        |bundle: &&Bundle| bundle.version().is_ok_and(|found| versions.contains(&found.version));
                    Some(shown(catalog, package, package.by_version().into_iter().find(is_taken)?))
                });
                packages.collect()
            }
            // Of several APIs the first one is a beginning.
            other => {
                let known = self.known.get_or_init(|| provided(self.contents));
                other.apis().into_iter().find_map(|api| known.get(api)).cloned().unwrap_or_default()
            }
        };
        match fitting.len() {
            0 => "no bundle of the available catalogs provides it; install an operator that does, in the same deploy"
                .to_owned(),
            count => {
                let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
                format!("deploy it with one that provides it: {}{more}", fitting[..count.min(NAMED)].join(", "))
            }
        }
    }

    /// APIs that two operators provide after the deploy, at least one of which it brings.
    fn owned_twice(&self, found: &mut Found) {
        let mut owners: BTreeMap<&Api, Vec<&Node>> = BTreeMap::new();
        for node in self.after() {
            for api in &node.provides {
                owners.entry(api).or_default().push(node);
            }
        }
        for (api, owners) in owners.into_iter().filter(|(_, owners)| owners.len() > 1) {
            // In other namespaces there may be others, as long as one of them is not for the whole cluster.
            let in_the_way = |node: &Node| owners.iter().any(|other| other.object != node.object && node.meets(other));
            let brought = owners.iter().rev().filter(|node| node.subject.is_some());
            let Some(node) = brought.into_iter().find(|node| in_the_way(node)) else { continue };
            let Some(subject) = node.subject.clone() else { continue };
            let nodes: Vec<&&Node> = owners.iter().filter(|other| node.meets(other)).collect();
            let message = format!(
                "there can be only one provider of {} ({}/{}): {}",
                sanitize(&api.kind),
                sanitize(&api.group),
                sanitize(&api.version),
                nodes.iter().map(|node| node.shown()).collect::<Vec<_>>().join(", ")
            );
            let help = "keep one of them; two of one package are updated by replaces or skips, or removed".to_owned();
            found.violations.push(violation(&API_OWNED_TWICE, subject, message, help));
        }
    }
}

impl There<'_> {
    /// What is not known does not hold.
    fn holds(&self, requirement: &Requirement) -> bool {
        requirement.holds(self) == Some(true)
    }
}

/// For each API the highest version of each package that provides it.
fn provided(contents: &Contents) -> BTreeMap<Api, Vec<String>> {
    let mut known: BTreeMap<Api, Vec<String>> = BTreeMap::new();
    for (catalog, read) in contents {
        for package in read.as_ref().into_iter().flat_map(|read| read.packages.values()) {
            let mut of_package: BTreeSet<Api> = BTreeSet::new();
            for bundle in package.by_version() {
                for api in dependency::provided(&bundle.properties) {
                    if of_package.insert(api.clone()) {
                        known.entry(api).or_default().push(shown(catalog, package, bundle));
                    }
                }
            }
        }
    }
    known
}

/// `a.v1.0.0 of package a (catalog operatorhubio)`
fn shown(catalog: &str, package: &Package, bundle: &Bundle) -> String {
    format!("{} of package {} (catalog {catalog})", sanitize(&bundle.name), sanitize(&package.name))
}

/// The package, or the name where there is none.
fn named(node: &Node) -> &str {
    if node.package.is_empty() { &node.name } else { &node.package }
}

fn lost_words(node: &Node, requirement: &Requirement, provider: &Node, gone: &Gone<'_>) -> String {
    let gone = match gone {
        Gone::Replaced(instead) => format!("its replacement {} does not", instead.shown()),
        Gone::Deleted(_) => "is deleted".to_owned(),
    };
    format!(
        "bundle {} requires an operator {}: {} provides it, and {gone}",
        node.shown(),
        sanitize(&requirement.to_string()),
        provider.shown()
    )
}

fn unserved_words(node: &Node, requirement: &Requirement, api: &Api) -> String {
    format!(
        "bundle {} requires an operator {}, and the CRD of the manifests no longer serves {}",
        node.shown(),
        sanitize(&requirement.to_string()),
        sanitize(&api.version)
    )
}

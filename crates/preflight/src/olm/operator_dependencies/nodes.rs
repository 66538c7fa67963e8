//! The operators before and after the deploy, with the APIs that each provides and requires.

use std::collections::BTreeSet;

use gantry_catalog::bundle::{ApiDescription, ClusterServiceVersion};
use gantry_catalog::dependency::{Api, BundleRequirement, provided};
use gantry_catalog::resolve::{InstalledBundle, ServedCatalog, resolve};
use gantry_catalog::{PACKAGE, Package, PackageBundle, Property, SemanticVersion, VersionRelease};
use gantry_yaml::explain_json;
use serde::Deserialize;
use serde_json::Value;

use super::foretold::SubscriptionError;
use super::rules::SUBSCRIPTION_NOT_RESOLVED;
use super::subscriptions::{PlannedSubscription, objects_after};
use super::violation;
use crate::olm::catalogs::Contents;
use crate::olm::{Selected, contents_of, selected};
use crate::{Context, CouldNotCheck, Violation, ViolationSubject};
use gantry_core::finding::Action;
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;
use gantry_core::text::sanitize;
use gantry_deploy::plan::planned_bundle::PlannedBundle;
use gantry_olm::cluster_extension::{self, LiveExtension};
use gantry_olm::subscription::{self, SubscriptionObject};

/// The group of classic OLM.
const CLASSIC: &str = "operators.coreos.com";
pub const CSV: &str = "ClusterServiceVersion";
const SUBSCRIPTION: &str = "Subscription";
/// The label of OLM's copies of a ClusterServiceVersion in the namespaces that it watches.
const COPIED: &str = "olm.copiedFrom";
/// The annotation of a ClusterServiceVersion in which OLM writes the properties of its bundle.
const PROPERTIES: &str = "operatorframework.io/properties";

/// An operator.
#[derive(Debug, Clone, Default)]
pub struct OperatorNode {
    /// The name of the bundle, which is also that of its ClusterServiceVersion.
    pub name: String,
    /// Empty if unknown.
    pub package: String,
    pub version: Option<SemanticVersion>,
    /// The version in its property `olm.package`. It counts, too, where a package in a range of versions is required
    /// (`versionInRangePredicate` in `pkg/controller/registry/resolver/cache/predicates.go`).
    pub package_version: Option<SemanticVersion>,
    /// The object that represents it: kind, namespace and name.
    pub object: (String, Option<String>, String),
    /// The part of the plan that installs it; `None` for a live operator.
    pub subject: Option<ViolationSubject>,
    pub provides: BTreeSet<Api>,
    /// The names of the CRDs that it owns.
    pub crds: BTreeSet<String>,
    pub requires: Vec<BundleRequirement>,
    /// The names of the bundles that it replaces or skips.
    pub replaces: BTreeSet<String>,
}

impl OperatorNode {
    /// The name for messages: `a.v1.0.0 in namespace ns`, `a.v1.0.0 (ClusterExtension a)`.
    pub fn to_text(&self) -> String {
        let (kind, namespace, _) = &self.object;
        let name = sanitize(&self.name);
        match (kind.as_str(), namespace) {
            (CSV, Some(namespace)) => format!("{name} in namespace {}", sanitize(namespace)),
            (CSV, None) => name.into_owned(),
            _ => format!("{name} ({kind} {})", sanitize(&self.object.2)),
        }
    }

    /// Whether both are the same operator before and after an update, so that one replaces the other.
    pub fn is_same(&self, other: &OperatorNode) -> bool {
        let is_of_package = !self.package.is_empty() && self.package == other.package;
        let replaces = self.replaces.contains(&other.name);
        self.object == other.object || self.shares_scope(other) && (is_of_package || replaces)
    }

    /// Whether one can replace the other or conflict with it: classic OLM considers each namespace separately, OLM v1
    /// the whole cluster.
    pub fn shares_scope(&self, other: &OperatorNode) -> bool {
        match (&self.object.1, &other.object.1) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    fn of_csv(csv: &ClusterServiceVersion, properties: &[Property]) -> OperatorNode {
        let api = |described: &ApiDescription| Api {
            group: described.group().to_owned(),
            version: described.version.clone(),
            kind: described.kind.clone(),
        };
        let mut provides: BTreeSet<Api> = csv.owned_crds.iter().chain(&csv.owned_api_services).map(api).collect();
        provides.extend(provided(properties));
        let required = csv.required_crds.iter().chain(&csv.required_api_services);
        OperatorNode {
            name: csv.name.clone(),
            version: SemanticVersion::parse(&csv.version).ok(),
            package_version: package_property(properties, "version")
                .and_then(|text| SemanticVersion::parse(&text).ok()),
            provides,
            crds: csv.owned_crds.iter().map(|owned| owned.name.clone()).collect(),
            requires: required.map(|described| BundleRequirement::Api(api(described))).collect(),
            replaces: csv.skips.iter().chain([&csv.replaces]).filter(|name| !name.is_empty()).cloned().collect(),
            ..OperatorNode::default()
        }
    }

    /// Reads a bundle of a catalog.
    pub fn of_bundle(package: &Package, bundle: &PackageBundle, problems: &mut Vec<String>) -> OperatorNode {
        let nothing = ClusterServiceVersion::default();
        let csv = bundle.csv.as_ref().and_then(|csv| csv.whole.as_deref()).unwrap_or(&nothing);
        let mut node = OperatorNode {
            name: bundle.name.clone(),
            package: package.name.clone(),
            version: bundle.version().ok().map(|found: VersionRelease| found.version),
            ..OperatorNode::of_csv(csv, &bundle.properties)
        };
        node.require(&bundle.properties, problems);
        node
    }

    /// Reads a bundle among the manifests.
    fn of_directory(index: usize, bundle: &PlannedBundle, problems: &mut Vec<String>) -> Option<OperatorNode> {
        let (csv, _) = bundle.content.csv.as_ref()?;
        let object = match bundle.extension() {
            Some(extension) => of_extension(&extension.name),
            None => ("bundle".to_owned(), None, bundle.directory.clone()),
        };
        let mut node = OperatorNode {
            package: bundle.package().to_owned(),
            object,
            subject: Some(ViolationSubject::Bundle(index)),
            ..OperatorNode::of_csv(csv, &bundle.content.properties)
        };
        node.require(&bundle.content.properties, problems);
        for dependency in &bundle.content.dependencies {
            match BundleRequirement::of_dependency(dependency) {
                Ok(Some(requirement)) if !node.requires.contains(&requirement) => node.requires.push(requirement),
                Ok(_) => {}
                Err(why) => {
                    problems.push(format!("bundle {}: {}", sanitize(&bundle.directory), sanitize(&why.to_string())))
                }
            }
        }
        Some(node)
    }

    fn require(&mut self, properties: &[Property], problems: &mut Vec<String>) {
        for property in properties {
            match BundleRequirement::of_property(property) {
                Ok(Some(requirement)) if !self.requires.contains(&requirement) => self.requires.push(requirement),
                Ok(_) => {}
                Err(why) => problems.push(format!("bundle {}: {}", sanitize(&self.name), sanitize(&why.to_string()))),
            }
        }
    }
}

/// The operators before and after the deploy.
#[derive(Debug, Default)]
pub struct OperatorChanges {
    pub before: Vec<OperatorNode>,
    pub after: Vec<OperatorNode>,
    /// The operators that the deploy removes, each with the deleted object.
    pub removed: Vec<(OperatorNode, ObjectRef)>,
    /// The Subscriptions that OLM cannot resolve.
    pub unresolved: Vec<Violation>,
    /// The Subscriptions of the manifests that OLM can resolve, each on its own.
    pub planned: Vec<PlannedSubscription>,
    /// The live Subscriptions.
    pub subscriptions: Vec<Value>,
    /// The CatalogSources after the deploy; `None` if the target does not serve the kind.
    pub sources: Option<Vec<Value>>,
    /// What could not be determined about some operators.
    pub unchecked: Vec<CouldNotCheck>,
}

/// Collects the live operators, and those that the plan installs or replaces.
pub async fn collect(context: &Context<'_>, contents: &Contents) -> Result<OperatorChanges, CouldNotCheck> {
    let mut nodes = OperatorChanges::default();
    let mut problems = Vec::new();
    let subscriptions = list(context, SUBSCRIPTION).await?;
    let mut sources = None;
    if context.plan.changes.iter().any(|change| subscription::is_one(&change.desired.object)) {
        let listed = objects_after(context, "CatalogSource", &["v1alpha1"]).await;
        sources = listed.unwrap_or_else(|error| {
            nodes.unchecked.push(error);
            None
        });
    }
    // A folder need not have everything that the cluster has.
    let known = sources.clone().filter(|_| context.target.is_server());
    let live = LiveOperators { subscriptions, sources: known, contents };
    for json in list(context, CSV).await? {
        nodes.before.extend(live.csv(&json, &mut problems));
    }
    let of_olm_v1 = context.olm.live().await.map_err(|problem| unlisted(cluster_extension::KIND, problem))?;
    nodes.before.extend(of_olm_v1.iter().filter_map(|extension| live.extension(extension, &mut problems)));
    let mut deployed = Vec::new();
    for (index, change) in context.plan.changes.iter().enumerate() {
        let object = &change.desired.object;
        if object.group() == CLASSIC && object.kind == CSV {
            let mut value = change.desired.raw.value();
            if let Some(namespace) = &object.namespace {
                value["metadata"]["namespace"] = namespace.as_str().into();
            }
            let node = live.csv(&value, &mut problems);
            deployed.extend(node.map(|node| OperatorNode { subject: Some(index.into()), ..node }));
        }
        if object.group() == CLASSIC && object.kind == SUBSCRIPTION {
            let mut after = context.olm.object_after(change);
            if let Some(namespace) = &object.namespace {
                after["metadata"]["namespace"] = namespace.as_str().into();
            }
            let Some(parsed) = SubscriptionObject::parse(&after) else { continue };
            match live.subscription(&parsed, &nodes.before, &mut problems) {
                Ok(resolved) => {
                    context.notices.add_subscription(resolved.entry);
                    nodes.unresolved.extend(
                        resolved
                            .stuck
                            .into_iter()
                            .map(|stuck| Violation { subject: ViolationSubject::Change(index), ..stuck }),
                    );
                    deployed
                        .extend(resolved.node.clone().map(|node| OperatorNode { subject: Some(index.into()), ..node }));
                    let (bundle, modes) = (resolved.node, resolved.modes);
                    nodes.planned.push(PlannedSubscription { change: index, object: parsed, bundle, modes });
                }
                Err(SubscriptionError::Unknown(error)) => nodes.unchecked.push(error),
                Err(SubscriptionError::Unresolved { package, why, entry }) => {
                    context.notices.add_subscription(*entry);
                    let (bundle, modes) = (None, None);
                    nodes.planned.push(PlannedSubscription { change: index, object: parsed, bundle, modes });
                    let help = format!(
                        "until this is fixed, OLM installs and updates no operator in the namespace; see gantry catalog {}",
                        sanitize(&package)
                    );
                    let message = sanitize(&why).into_owned();
                    nodes.unresolved.push(violation(&SUBSCRIPTION_NOT_RESOLVED, index, message, help));
                }
            }
        }
    }
    let bundles = context.plan.bundles.iter().enumerate();
    deployed.extend(bundles.filter_map(|(index, bundle)| OperatorNode::of_directory(index, bundle, &mut problems)));
    for node in extensions(context, contents, &mut problems).await? {
        // The bundle itself contains more than the catalog.
        if !deployed
            .iter()
            .any(|known| matches!(known.subject, Some(ViolationSubject::Bundle(_))) && known.package == node.package)
        {
            deployed.push(node);
        }
    }
    let removal_of = |node: &OperatorNode| {
        let (kind, namespace, name) = &node.object;
        let removed = context.plan.removals.iter().filter(|removal| removal.action == Action::Delete);
        removed
            .map(|removal| &removal.object)
            .find(|object| object.kind == *kind && object.namespace == *namespace && object.name == *name)
    };
    let removed = |node: &OperatorNode| Some((node.clone(), (**removal_of(node)?).clone()));
    nodes.removed = nodes.before.iter().filter_map(removed).collect();
    let stays = |node: &&OperatorNode| removal_of(node).is_none() && !deployed.iter().any(|other| other.is_same(node));
    nodes.after = nodes.before.iter().filter(stays).cloned().collect();
    nodes.after.extend(deployed);
    let help = "OLM cannot read it either, and resolves nothing with it; fix it, or ask the publisher of the bundle";
    let unreadable = |message| CouldNotCheck { message, help: Some(help.into()) };
    problems.sort();
    problems.dedup();
    nodes.unchecked.extend(problems.into_iter().map(unreadable));
    nodes.sources = sources;
    let beside = unresolved_beside(context, &live, &nodes);
    nodes.unresolved.extend(beside);
    nodes.subscriptions = live.subscriptions;
    Ok(nodes)
}

/// The live Subscriptions that OLM cannot resolve, for those of the manifests in the same namespace: OLM resolves all of
/// them together.
fn unresolved_beside(context: &Context<'_>, live: &LiveOperators<'_>, nodes: &OperatorChanges) -> Vec<Violation> {
    let mut violations = Vec::new();
    let is_replaced = |object: &SubscriptionObject| {
        let is_it = |other: &ObjectRef| {
            subscription::is_one(other)
                && other.name == object.name
                && other.namespace.as_deref().unwrap_or_default() == object.namespace
        };
        let removed = context.plan.removals.iter().filter(|removal| removal.action == Action::Delete);
        context.plan.changes.iter().any(|change| is_it(&change.desired.object))
            || removed.into_iter().any(|removal| is_it(&removal.object))
    };
    let others = live.subscriptions.iter().filter_map(SubscriptionObject::parse);
    for other in others.filter(|other| !is_replaced(other)) {
        let beside: Vec<&PlannedSubscription> =
            nodes.planned.iter().filter(|one| one.object.namespace == other.namespace).collect();
        if beside.is_empty() {
            continue;
        }
        match live.subscription(&other, &nodes.before, &mut Vec::new()) {
            Ok(_) => {}
            // A user who names some catalogs asks about those.
            Err(SubscriptionError::Unknown(CouldNotCheck { message, .. })) => context.notices.add(format!(
                "{}; if OLM cannot resolve it, it installs no other operator in namespace {} either",
                message,
                sanitize(&other.namespace)
            )),
            Err(SubscriptionError::Unresolved { why, .. }) => {
                for one in beside {
                    let message = format!(
                        "{}: OLM resolves all Subscriptions of namespace {} together, so it installs and updates nothing for \
                         Subscription {} because of the live Subscription {}",
                        sanitize(&why),
                        sanitize(&other.namespace),
                        sanitize(&one.object.name),
                        sanitize(&other.name)
                    );
                    let help = format!(
                        "correct or delete it: kubectl -n {} delete subscription.operators.coreos.com {}",
                        sanitize(&other.namespace),
                        sanitize(&other.name)
                    );
                    violations.push(violation(&SUBSCRIPTION_NOT_RESOLVED, one.change, message, help));
                }
            }
        }
    }
    violations
}

/// The bundles to which the ClusterExtensions of the plan resolve. `ExtensionResolution` reports those that do not
/// resolve.
async fn extensions(
    context: &Context<'_>,
    contents: &Contents,
    problems: &mut Vec<String>,
) -> Result<Vec<OperatorNode>, CouldNotCheck> {
    let mut nodes = Vec::new();
    let known = context.olm.known().await?;
    for asked in &context.olm.of_plan().asked {
        let Ok(selected) = selected(asked, known) else { continue };
        let Some(selected) = contents_of(asked, &selected, contents) else { continue };
        let sources: Vec<ServedCatalog<'_>> = selected.iter().map(Selected::source).collect();
        // OLM v1 refuses a bundle with dependencies. This check still evaluates them.
        let name = &asked.extension.name;
        let (package, bundle) = match resolve(&asked.extension.wanted, asked.installed.as_ref(), &sources) {
            Ok(resolved) => (resolved.package, resolved.bundle),
            Err(failure) => {
                let gantry_catalog::resolve::NoCandidateReason::Unsupported(bundle) = failure.reason else { continue };
                let of = |selected: &Selected<'_>| {
                    selected.package.filter(|of| of.bundles.contains_key(&bundle.name)).cloned()
                };
                let Some(package) = selected.iter().find_map(of) else { continue };
                let node = OperatorNode::of_bundle(&package, bundle, problems);
                nodes.push(OperatorNode { subject: Some(asked.change.into()), object: of_extension(name), ..node });
                continue;
            }
        };
        let node = OperatorNode::of_bundle(package, bundle, problems);
        nodes.push(OperatorNode { subject: Some(asked.change.into()), object: of_extension(name), ..node });
    }
    Ok(nodes)
}

fn of_extension(name: &str) -> (String, Option<String>, String) {
    (cluster_extension::KIND.to_owned(), None, name.to_owned())
}

/// The data that describes live operators.
pub struct LiveOperators<'a> {
    pub subscriptions: Vec<Value>,
    /// All CatalogSources, if they are known.
    pub sources: Option<Vec<Value>>,
    pub contents: &'a Contents,
}

impl LiveOperators<'_> {
    /// Whether there is no such CatalogSource as the Subscription names.
    pub fn lacks_source(&self, object: &SubscriptionObject) -> bool {
        let is_it = |source: &Value| {
            source["metadata"]["name"] == object.source.as_str()
                && source["metadata"]["namespace"] == object.source_namespace.as_str()
        };
        self.sources.as_ref().is_some_and(|sources| !sources.iter().any(is_it))
    }

    fn csv(&self, value: &Value, problems: &mut Vec<String>) -> Option<OperatorNode> {
        let metadata = &value["metadata"];
        if metadata["labels"].get(COPIED).is_some() {
            return None;
        }
        let name = metadata["name"].as_str()?.to_owned();
        let namespace = metadata["namespace"].as_str().map(str::to_owned);
        let csv = match ClusterServiceVersion::read(&value.to_string()) {
            Ok(csv) => csv,
            Err(why) => {
                problems.push(format!("ClusterServiceVersion {}: {}", sanitize(&name), sanitize(&why.to_string())));
                return None;
            }
        };
        let annotation = metadata["annotations"][PROPERTIES].as_str();
        let properties = annotation.map(properties).transpose().unwrap_or_else(|why| {
            problems.push(format!(
                "ClusterServiceVersion {}: annotation {PROPERTIES}: {}",
                sanitize(&name),
                sanitize(&why)
            ));
            None
        });
        let properties = properties.unwrap_or_default();
        let package = self.package_of(&name, namespace.as_deref(), &properties, metadata);
        let mut node = OperatorNode {
            package,
            object: (CSV.to_owned(), namespace, name),
            ..OperatorNode::of_csv(&csv, &properties)
        };
        node.require(&properties, problems);
        Some(node)
    }

    /// The package of a ClusterServiceVersion: from its properties, from the Subscription that installed it, or from
    /// the label that OLM sets.
    fn package_of(&self, csv: &str, namespace: Option<&str>, properties: &[Property], metadata: &Value) -> String {
        let of_subscription = || {
            let installed = self.subscriptions.iter().find(|subscription| {
                subscription["status"]["installedCSV"] == csv
                    && subscription["metadata"]["namespace"].as_str() == namespace
            });
            installed.and_then(|subscription| subscription["spec"]["name"].as_str().map(str::to_owned))
        };
        let of_label = || {
            let suffix = format!(".{}", namespace.unwrap_or_default());
            let labels = metadata["labels"].as_object()?;
            let key = labels.keys().find_map(|key| key.strip_prefix("operators.coreos.com/"))?;
            key.strip_suffix(&suffix).map(str::to_owned)
        };
        package_property(properties, "packageName").or_else(of_subscription).or_else(of_label).unwrap_or_default()
    }

    fn extension(&self, live: &LiveExtension, problems: &mut Vec<String>) -> Option<OperatorNode> {
        let InstalledBundle { name, version, .. } = live.installed.clone()?;
        let package = live.extension.wanted.package.clone();
        let of_catalog = self.contents.values().filter_map(|read| read.as_ref().ok()).find_map(|catalog| {
            let package = catalog.packages.get(&package)?;
            Some((package, package.bundles.get(&name)?))
        });
        let node = match of_catalog {
            Some((package, bundle)) => OperatorNode::of_bundle(package, bundle, problems),
            // What it provides is unknown.
            None => OperatorNode {
                name,
                package,
                version: SemanticVersion::parse(&version).ok(),
                ..OperatorNode::default()
            },
        };
        Some(OperatorNode { object: of_extension(&live.extension.name), ..node })
    }
}

/// A field of the property `olm.package`.
fn package_property(properties: &[Property], field: &str) -> Option<String> {
    properties.iter().filter(|property| property.kind == PACKAGE).find_map(|property| {
        let value: Value = serde_json::from_str(&property.value).ok()?;
        value[field].as_str().map(str::to_owned)
    })
}

/// Reads the annotation that OLM writes: `{"properties":[{"type":…,"value":…}]}`.
fn properties(annotation: &str) -> Result<Vec<Property>, String> {
    #[derive(Deserialize)]
    struct Properties {
        properties: Vec<Typed>,
    }
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
        value: Value,
    }
    let read: Properties = serde_json::from_str(annotation).map_err(|error| explain_json(&error))?;
    let property = |Typed { kind, value }: Typed| Property { kind, value: value.to_string() };
    Ok(read.properties.into_iter().map(property).collect())
}

/// All objects of a kind of classic OLM; none if the kind is not served.
async fn list(context: &Context<'_>, kind: &str) -> Result<Vec<Value>, CouldNotCheck> {
    let add = |all: &mut Vec<Value>, json: &str| all.extend(serde_json::from_str::<Value>(json).ok());
    let listed = gantry_olm::gather(context.target, (CLASSIC, kind), &["v1alpha1"], add).await;
    listed.map(Option::unwrap_or_default).map_err(|problem| unlisted(kind, problem))
}

fn unlisted(kind: &str, Problem { message, help, .. }: Problem) -> CouldNotCheck {
    CouldNotCheck { message: format!("the live operators are unknown: {kind}: {message}"), help }
}

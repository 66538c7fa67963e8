//! All validators that OLM v1 runs on a bundle, in OLM's order.

use std::collections::{BTreeMap, BTreeSet};

use gantry_k8s_cel::gotext::quote;
use gantry_schema::names::subdomain;

use super::support::{CsvStep, Unsupported, UnsupportedKind, csv_place};
use super::{Bundle, ClusterServiceVersion, CsvWebhook};

/// A problem that a validator finds.
pub(super) struct BundleViolation {
    pub text: String,
    pub at: Option<ValidationPlace>,
}

/// The place of a problem.
pub(super) enum ValidationPlace {
    Csv(Vec<CsvStep>),
    Object { file: String, kind: String, name: String },
}

/// One validator.
pub(super) struct BundleValidator {
    pub run: fn(&Bundle, &ClusterServiceVersion) -> Vec<BundleViolation>,
    /// Whether it needs more than the ClusterServiceVersion.
    pub needs_bundle: bool,
}

const fn of_csv(run: fn(&Bundle, &ClusterServiceVersion) -> Vec<BundleViolation>) -> BundleValidator {
    BundleValidator { run, needs_bundle: false }
}

const fn of_bundle(run: fn(&Bundle, &ClusterServiceVersion) -> Vec<BundleViolation>) -> BundleValidator {
    BundleValidator { run, needs_bundle: true }
}

pub(super) const VALIDATORS: [BundleValidator; 13] = [
    of_csv(duplicate_deployments),
    of_csv(deployment_names),
    of_bundle(duplicate_crds),
    of_bundle(missing_crds),
    of_bundle(package_name),
    of_csv(conversion_modes),
    of_csv(webhooks_without_deployment),
    of_csv(duplicate_webhooks),
    of_csv(webhook_names),
    of_csv(shared_conversions),
    of_csv(foreign_conversions),
    of_csv(forbidden_rules),
    of_bundle(unsupported_kinds),
];

/// The kinds that a bundle may contain in addition to its ClusterServiceVersion and CRDs.
const KINDS: [&str; 20] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodMonitor",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

fn in_spec(rest: &[CsvStep]) -> Option<ValidationPlace> {
    let mut steps = vec![CsvStep::Key("spec")];
    steps.extend_from_slice(rest);
    Some(ValidationPlace::Csv(steps))
}

fn at_deployment(index: usize) -> Option<ValidationPlace> {
    let [install, spec] = [CsvStep::Key("install"), CsvStep::Key("spec")];
    in_spec(&[install, spec, CsvStep::Key("deployments"), CsvStep::Index(index), CsvStep::Key("name")])
}

fn at_webhook(index: usize, rest: &[CsvStep]) -> Option<ValidationPlace> {
    let mut steps = vec![CsvStep::Key("webhookdefinitions"), CsvStep::Index(index)];
    steps.extend_from_slice(rest);
    in_spec(&steps)
}

/// The duplicate keys, sorted, each with the index of its second occurrence.
fn duplicate_keys<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let (mut seen, mut again) = (BTreeSet::new(), BTreeMap::new());
    for (index, key) in keys.enumerate() {
        if seen.contains(&key) {
            again.entry(key).or_insert(index);
        } else {
            seen.insert(key);
        }
    }
    again
}

fn duplicate_deployments(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let duplicates = duplicate_keys(csv.deployments.iter().map(|deployment| &deployment.name)).into_iter();
    let complaint = |(name, index)| BundleViolation {
        text: format!("cluster service version contains duplicate strategy deployment spec '{name}'"),
        at: at_deployment(index),
    };
    duplicates.map(complaint).collect()
}

fn deployment_names(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let mut wrong = BTreeMap::new();
    for (index, deployment) in csv.deployments.iter().enumerate() {
        let complaints = name_complaints(&deployment.name);
        if !complaints.is_empty() {
            wrong.entry(&deployment.name).or_insert((index, complaints));
        }
    }
    let complaint = |(name, (index, complaints)): (&String, (usize, Vec<String>))| BundleViolation {
        text: format!("invalid cluster service version strategy deployment name '{name}': {}", complaints.join(", ")),
        at: at_deployment(index),
    };
    wrong.into_iter().map(complaint).collect()
}

fn name_complaints(name: &str) -> Vec<String> {
    let mut complaints = subdomain(name);
    complaints.sort();
    complaints
}

fn duplicate_crds(bundle: &Bundle, _: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let duplicates = duplicate_keys(bundle.crds.iter().map(|crd| &crd.name)).into_iter();
    let complaint = |(name, index): (&String, usize)| BundleViolation {
        text: format!("bundle contains duplicate custom resource definition '{name}'"),
        at: Some(ValidationPlace::Object {
            file: bundle.crds[index].file.clone(),
            kind: "CustomResourceDefinition".to_owned(),
            name: name.clone(),
        }),
    };
    duplicates.map(complaint).collect()
}

fn missing_crds(bundle: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let there: BTreeSet<&str> = bundle.crds.iter().map(|crd| crd.name.as_str()).collect();
    let mut missing = BTreeMap::new();
    for (index, owned) in csv.owned_crds.iter().enumerate().filter(|(_, owned)| !there.contains(owned.name.as_str())) {
        missing.entry(&owned.name).or_insert(index);
    }
    let complaint = |(name, index): (&String, usize)| BundleViolation {
        text: format!(
            "cluster service definition references owned custom resource definition '{name}' not found in bundle"
        ),
        at: at_owned(index, "name"),
    };
    missing.into_iter().map(complaint).collect()
}

fn at_owned(index: usize, field: &'static str) -> Option<ValidationPlace> {
    in_spec(&[
        CsvStep::Key("customresourcedefinitions"),
        CsvStep::Key("owned"),
        CsvStep::Index(index),
        CsvStep::Key(field),
    ])
}

fn package_name(bundle: &Bundle, _: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let complaint = BundleViolation { text: "package name is empty".to_owned(), at: None };
    bundle.annotations.package.is_empty().then_some(complaint).into_iter().collect()
}

fn webhooks(csv: &ClusterServiceVersion) -> impl Iterator<Item = (usize, &CsvWebhook)> {
    csv.webhooks.iter().enumerate()
}

fn conversion_modes(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let modes = csv.install_modes.iter().filter(|mode| mode.supported).map(|mode| mode.mode.as_str());
    let modes: BTreeSet<&str> = modes.collect();
    if modes.len() == 1 && modes.contains("AllNamespaces") {
        return Vec::new();
    }
    let modes: Vec<&str> = modes.into_iter().collect();
    let complaint = |(index, webhook): (usize, &CsvWebhook)| BundleViolation {
        text: format!(
            "bundle contains conversion webhook {} and supports install modes [{}] - conversion webhooks are only \
             supported for bundles that only support AllNamespaces install mode",
            quote(&webhook.generate_name),
            modes.join(" ")
        ),
        at: at_webhook(index, &[]),
    };
    webhooks(csv).filter(|(_, webhook)| webhook.is_conversion()).map(complaint).collect()
}

fn webhooks_without_deployment(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let there: BTreeSet<&str> = csv.deployments.iter().map(|deployment| deployment.name.as_str()).collect();
    let mut lost: Vec<(usize, &CsvWebhook)> =
        webhooks(csv).filter(|(_, webhook)| !there.contains(webhook.deployment_name.as_str())).collect();
    lost.sort_by_key(|(_, webhook)| (&webhook.deployment_name, &webhook.kind, &webhook.generate_name));
    let complaint = |(index, webhook): (usize, &CsvWebhook)| BundleViolation {
        text: format!(
            "webhook of type '{}' with name '{}' references non-existent deployment '{}'",
            webhook.kind, webhook.generate_name, webhook.deployment_name
        ),
        at: at_webhook(index, &[CsvStep::Key("deploymentName")]),
    };
    lost.into_iter().map(complaint).collect()
}

fn duplicate_webhooks(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let duplicates =
        duplicate_keys(csv.webhooks.iter().map(|webhook| (&webhook.kind, &webhook.generate_name))).into_iter();
    let complaint = |((kind, name), index): ((&String, &String), usize)| BundleViolation {
        text: format!("duplicate webhook '{name}' of type '{kind}'"),
        at: at_webhook(index, &[CsvStep::Key("generateName")]),
    };
    duplicates.map(complaint).collect()
}

fn webhook_names(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let mut wrong = BTreeMap::new();
    for (index, webhook) in webhooks(csv) {
        let complaints = name_complaints(&webhook.generate_name);
        if !complaints.is_empty() {
            wrong.entry((&webhook.kind, &webhook.generate_name)).or_insert((index, complaints));
        }
    }
    let complaint = |((kind, name), (index, complaints)): ((&String, &String), (usize, Vec<String>))| BundleViolation {
        text: format!("webhook of type '{kind}' has invalid name '{name}': {}", complaints.join(",")),
        at: at_webhook(index, &[CsvStep::Key("generateName")]),
    };
    wrong.into_iter().map(complaint).collect()
}

fn shared_conversions(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let mut of_crd: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (index, webhook) in webhooks(csv).filter(|(_, webhook)| webhook.is_conversion()) {
        for crd in &webhook.conversion_crds {
            of_crd.entry(crd).or_default().push((&webhook.generate_name, index));
        }
    }
    let complaint = |(crd, mut webhooks): (&str, Vec<(&str, usize)>)| {
        let last = webhooks.last().map_or(0, |(_, index)| *index);
        webhooks.sort();
        let names: Vec<&str> = webhooks.into_iter().map(|(name, _)| name).collect();
        BundleViolation {
            text: format!(
                "conversion webhooks [{}] reference same custom resource definition '{crd}'",
                names.join(",")
            ),
            at: at_webhook(last, &[CsvStep::Key("conversionCRDs")]),
        }
    };
    of_crd.into_iter().filter(|(_, webhooks)| webhooks.len() > 1).map(complaint).collect()
}

fn foreign_conversions(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let owned: BTreeSet<&str> = csv.owned_crds.iter().map(|crd| crd.name.as_str()).collect();
    let mut conversions: Vec<(usize, &CsvWebhook)> =
        webhooks(csv).filter(|(_, webhook)| webhook.is_conversion()).collect();
    conversions.sort_by_key(|(_, webhook)| &webhook.generate_name);
    let mut found = Vec::new();
    for (index, webhook) in conversions {
        let mut crds: Vec<(&str, usize)> =
            webhook.conversion_crds.iter().enumerate().map(|(at, crd)| (crd.as_str(), at)).collect();
        crds.sort();
        for (crd, at) in crds.into_iter().filter(|(crd, _)| !owned.contains(crd)) {
            found.push(BundleViolation {
                text: format!(
                    "conversion webhook '{}' references custom resource definition '{crd}' not owned bundle",
                    webhook.generate_name
                ),
                at: at_webhook(index, &[CsvStep::Key("conversionCRDs"), CsvStep::Index(at)]),
            });
        }
    }
    found
}

/// The resources of `admissionregistration.k8s.io` that a webhook rule must not reference, compared case-insensitively.
const FORBIDDEN: [&str; 5] = [
    "*",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
];

fn forbidden_rules(_: &Bundle, csv: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let mut found = Vec::new();
    for (index, webhook) in webhooks(csv).filter(|(_, webhook)| !webhook.is_conversion()) {
        let name = quote(&webhook.generate_name);
        for (of, rule) in webhook.rules.iter().enumerate() {
            let at = || at_webhook(index, &[CsvStep::Key("rules"), CsvStep::Index(of)]);
            for group in &rule.api_groups {
                if matches!(group.as_str(), "*" | "olm.operatorframework.io") {
                    let text = format!(
                        "webhook {name} contains forbidden rule: admission webhook rules cannot reference API group {}",
                        quote(group)
                    );
                    found.push(BundleViolation { text, at: at() });
                }
                if group == "admissionregistration.k8s.io" {
                    let is_forbidden = |resource: &&String| FORBIDDEN.contains(&resource.to_lowercase().as_str());
                    for resource in rule.resources.iter().filter(is_forbidden) {
                        let text = format!(
                            "webhook {name} contains forbidden rule: admission webhook rules cannot reference resource \
                             {} for API group {}",
                            quote(resource),
                            quote(group)
                        );
                        found.push(BundleViolation { text, at: at() });
                    }
                }
            }
        }
    }
    found
}

fn unsupported_kinds(bundle: &Bundle, _: &ClusterServiceVersion) -> Vec<BundleViolation> {
    let unknown = bundle.others.iter().filter(|object| !KINDS.contains(&object.kind.as_str()));
    let complaint = |object: &super::BundleObject| BundleViolation {
        text: format!("unsupported resource {} with kind {}", quote(&object.name), quote(&object.kind)),
        at: Some(ValidationPlace::Object {
            file: object.file.clone(),
            kind: object.kind.clone(),
            name: object.name.clone(),
        }),
    };
    unknown.map(complaint).collect()
}

/// Checks what OLM does not check: that each owned CRD defines the kind, and serves the version, that the
/// ClusterServiceVersion names. The tools that build catalogs refuse another kind.
///
/// Source: `AllProvidedAPIsInBundle` in `pkg/registry/bundle.go` of operator-registry.
pub(super) fn owned_versions(bundle: &Bundle) -> Vec<Unsupported> {
    let Some((csv, file)) = &bundle.csv else { return Vec::new() };
    let mut found = Vec::new();
    for (index, owned) in csv.owned_crds.iter().enumerate() {
        let Some(crd) = bundle.crds.iter().find(|crd| crd.name == owned.name) else { continue };
        let Some(versions) = &crd.versions else { continue };
        let mut add = |field: &'static str, what: &str, why: String| {
            let steps = [
                CsvStep::Key("spec"),
                CsvStep::Key("customresourcedefinitions"),
                CsvStep::Key("owned"),
                CsvStep::Index(index),
                CsvStep::Key(field),
            ];
            found.push(Unsupported {
                reason: UnsupportedKind::OwnedVersionMismatch,
                text: format!(
                    "the ClusterServiceVersion owns {} {what}, but customresourcedefinition {} of the bundle {why}",
                    owned.name, crd.name
                ),
                place: Some(csv_place(csv, file, &steps)),
            });
        };
        match versions.iter().find(|(name, _)| *name == owned.version) {
            Some((_, true)) => {}
            Some((_, false)) => add("version", &owned.version, format!("does not serve {}", owned.version)),
            None => {
                let names: Vec<&str> = versions.iter().map(|(name, _)| name.as_str()).collect();
                let why = format!("has no version {} (it has {})", quote(&owned.version), names.join(", "));
                add("version", &owned.version, why);
            }
        }
        if ![&owned.kind, &crd.defined_kind].iter().any(|kind| kind.is_empty()) && owned.kind != crd.defined_kind {
            let what = format!("with the kind {}", quote(&owned.kind));
            add("kind", &what, format!("defines the kind {}", quote(&crd.defined_kind)));
        }
    }
    found
}

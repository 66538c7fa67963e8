//! The workloads behind the Services of webhooks and APIServices, which the API server calls while a deploy writes.
//! Until such a workload is ready, every request that the webhook matches fails.
//!
//! A webhook configuration or an APIService waits until the workload is ready only if the server can verify its
//! certificate from the start. Without a CA bundle, the workload fills it in itself, and may not become ready before
//! the configuration exists.
//!
//! A custom resource for which a webhook is called waits until the workload is ready. For a webhook that the same
//! deploy adds, this holds only if the deploy waits: then the custom resource is written after the configuration,
//! otherwise before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::Value;

use crate::plan::order::DeployStage;
use crate::plan::{self, Change};
use gantry_core::resource::Resource;

/// Groups and plurals; `*` matches any.
type GroupPlurals = Vec<(String, String)>;
/// The namespace and the name of a Service.
type ServiceName = (String, String);
type Labels = BTreeMap<String, String>;

/// A webhook configuration, a policy or an APIService that is written.
#[derive(Debug, Default)]
pub struct Caller {
    /// Its Services whose workloads are written, by their numbers.
    pub services: Vec<usize>,
    /// Whether the server can verify their certificates.
    pub is_trusted: bool,
    /// The kinds that it applies to.
    pub kinds: GroupPlurals,
    /// The policy that a policy binding binds.
    pub policy: Option<String>,
}

/// What a custom resource waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomResourceNeeds {
    /// The Services whose workloads have to be ready.
    pub services: Vec<usize>,
    /// The webhook configurations and APIServices that have to be written first, as indices of their changes.
    pub callers: Vec<usize>,
}

/// The callers and the workloads behind them. The Services whose workloads are written are numbered.
#[derive(Debug, Default)]
pub struct BackingWorkloads {
    /// By the index of the change.
    pub callers: BTreeMap<usize, Caller>,
    /// For each workload, the Services that select its Pods.
    pub workloads: BTreeMap<usize, Vec<usize>>,
    webhooks: Vec<(usize, PlannedWebhook)>,
    waits: bool,
}

/// A webhook with `failurePolicy: Fail`.
struct FailingWebhook {
    service: ServiceName,
    webhook: PlannedWebhook,
}

#[derive(Debug)]
struct PlannedWebhook {
    kinds: GroupPlurals,
    occasion: CallOccasion,
}

/// When a webhook is called.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallOccasion {
    /// It is live, so it is called for every write.
    Now,
    /// Once this change is written.
    After(usize),
    /// This deploy adds a conversion webhook, which is called for all versions except the stored one, named here.
    Converting(String),
}

impl BackingWorkloads {
    /// The callers of these changes; `stages` has the stage of each change.
    pub fn find(changes: &[Change], stages: &[DeployStage], waits: bool) -> Self {
        let all = || changes.iter().zip(stages).enumerate();
        let written = || all().filter(|(_, (change, _))| change.is_written());
        let callers = written().filter_map(|(index, (change, stage))| {
            let (caller, services) = caller(change, *stage)?;
            Some((index, caller, services))
        });
        let callers: Vec<(usize, Caller, BTreeSet<ServiceName>)> = callers.collect();
        let may_have_webhooks = |stage: &DeployStage| matches!(stage, DeployStage::Webhooks | DeployStage::Crd);
        let found = all().filter(|(_, (_, stage))| may_have_webhooks(stage));
        let found: Vec<FailingWebhook> = found.flat_map(|(index, (change, _))| webhooks(index, change)).collect();
        let of_callers = callers.iter().flat_map(|(_, _, services)| services);
        let named: BTreeSet<&ServiceName> = of_callers.chain(found.iter().map(|found| &found.service)).collect();
        if named.is_empty() {
            let callers = callers.into_iter().map(|(index, caller, _)| (index, caller)).collect();
            return BackingWorkloads { callers, waits, ..BackingWorkloads::default() };
        }
        let mut workloads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut numbers: BTreeMap<ServiceName, usize> = BTreeMap::new();
        let services = all().filter(|(_, (_, stage))| **stage == DeployStage::Service).map(|(_, (change, _))| change);
        let selectors = selectors(&named, services);
        for (index, (change, _)) in written().filter(|(_, (_, stage))| **stage == DeployStage::Workload) {
            let Some(services) = change.desired.object.namespace.as_deref().and_then(|name| selectors.get(name)) else {
                continue;
            };
            let Some(labels) = labels(change) else { continue };
            let selects = |selector: &Labels| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
            for (service, _) in services.iter().filter(|(_, selector)| selects(selector)) {
                let next = numbers.len();
                let number = *numbers.entry((*service).clone()).or_insert(next);
                workloads.entry(index).or_default().push(number);
            }
        }
        let number = |service: &ServiceName| numbers.get(service).copied();
        let callers = callers.into_iter().map(|(index, caller, services)| {
            (index, Caller { services: services.iter().filter_map(number).collect(), ..caller })
        });
        let callers = callers.collect();
        let webhooks = found.into_iter().filter_map(|found| Some((number(&found.service)?, found.webhook))).collect();
        BackingWorkloads { callers, workloads, webhooks, waits }
    }

    /// What the objects of a custom kind wait for.
    pub fn asked_about(&self, resource: &Resource) -> CustomResourceNeeds {
        let Resource { group, plural, version, .. } = resource;
        if plan::is_built_in(group) || self.webhooks.is_empty() {
            return CustomResourceNeeds::default();
        }
        let (mut services, mut callers) = (BTreeSet::new(), BTreeSet::new());
        for (service, webhook) in self.webhooks.iter().filter(|(_, webhook)| is_about(&webhook.kinds, group, plural)) {
            let is_called = match &webhook.occasion {
                CallOccasion::Now => true,
                CallOccasion::Converting(stored) => stored != version,
                CallOccasion::After(caller) => self.waits && callers.insert(*caller),
            };
            if is_called {
                services.insert(*service);
            }
        }
        if self.waits {
            // The workload may not become ready before these are written.
            let is_needed = |caller: &Caller| {
                !caller.is_trusted && caller.services.iter().any(|service| services.contains(service))
            };
            callers.extend(self.callers.iter().filter(|(_, caller)| is_needed(caller)).map(|(index, _)| *index));
        }
        CustomResourceNeeds { services: services.into_iter().collect(), callers: callers.into_iter().collect() }
    }
}

/// Whether these kinds include this one.
pub fn is_about(kinds: &GroupPlurals, group: &str, plural: &str) -> bool {
    let is = |said: &str, what: &str| said == "*" || said == what;
    kinds.iter().any(|(of, resources)| {
        is(of, group) && is(resources.split('/').next().unwrap_or_default(), plural) && !resources.ends_with("/status")
    })
}

/// An admission object or an APIService, and the Services that the server would call for it.
fn caller(change: &Change, stage: DeployStage) -> Option<(Caller, BTreeSet<ServiceName>)> {
    if !matches!(
        stage,
        DeployStage::ApiService | DeployStage::Policy | DeployStage::PolicyBinding | DeployStage::Webhooks
    ) {
        return None;
    }
    let manifest = change.desired.raw.value();
    let annotations = manifest["metadata"]["annotations"].as_object().into_iter().flatten();
    let is_injected = annotations.map(|(key, _)| key).any(|key| key.starts_with("cert-manager.io/inject-"));
    let (clients, kinds): (Vec<&Value>, GroupPlurals) = match stage {
        DeployStage::Webhooks => {
            let webhooks = || manifest["webhooks"].as_array().into_iter().flatten();
            let clients = webhooks().map(|webhook| &webhook["clientConfig"]).collect();
            (clients, webhooks().flat_map(|webhook| kinds(&webhook["rules"])).collect())
        }
        DeployStage::ApiService => (vec![&manifest["spec"]], Vec::new()),
        _ => (Vec::new(), kinds(&manifest["spec"]["matchConstraints"]["resourceRules"]).collect()),
    };
    let is_trusted = |client: &&Value| {
        let bundle = client["caBundle"].as_str().unwrap_or_default();
        is_injected || !bundle.is_empty() || client["insecureSkipTLSVerify"] == true
    };
    let policy = manifest["spec"]["policyName"].as_str().map(str::to_owned);
    let caller = Caller { services: Vec::new(), is_trusted: clients.iter().all(is_trusted), kinds, policy };
    Some((caller, clients.into_iter().filter_map(service).collect()))
}

/// The webhooks of a configuration or a CRD that custom resources may wait for: live ones, and those that the change
/// adds.
fn webhooks(index: usize, change: &Change) -> Vec<FailingWebhook> {
    let object = &change.desired.object;
    // Most CRDs have no webhook, and parsing them is expensive.
    let live = change.live.as_ref().filter(|live| !object.is_crd() || live.raw.json().contains("\"Webhook\""));
    let desired = change.is_written() && (!object.is_crd() || change.desired.may_contain(&["Webhook"]));
    let mut found: Vec<FailingWebhook> =
        live.map(|live| of_object(&live.raw.value(), &CallOccasion::Now)).unwrap_or_default();
    if desired {
        let manifest = change.desired.raw.value();
        let versions = manifest["spec"]["versions"].as_array().into_iter().flatten();
        let stored = versions.into_iter().find(|version| version["storage"] == true);
        let occasion = match object.is_crd() {
            true => {
                CallOccasion::Converting(stored.and_then(|version| version["name"].as_str()).unwrap_or_default().into())
            }
            false => CallOccasion::After(index),
        };
        found.extend(of_object(&manifest, &occasion));
    }
    found
}

fn of_object(object: &Value, occasion: &CallOccasion) -> Vec<FailingWebhook> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = |client: &Value, kinds: GroupPlurals| {
        Some(FailingWebhook {
            service: service(client)?,
            webhook: PlannedWebhook { kinds, occasion: occasion.clone() },
        })
    };
    let spec = &object["spec"];
    let conversion = &spec["conversion"];
    let kinds_of_crd = || vec![(text(&spec["group"]), text(&spec["names"]["plural"]))];
    let converts = (conversion["strategy"] == "Webhook")
        .then(|| found(&conversion["webhook"]["clientConfig"], kinds_of_crd()))
        .flatten();
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let admission = webhooks
        .filter(|webhook| webhook["failurePolicy"] != "Ignore")
        .filter_map(|webhook| found(&webhook["clientConfig"], kinds(&webhook["rules"]).collect()));
    converts.into_iter().chain(admission).collect()
}

/// The kinds that rules of admission match.
fn kinds(rules: &Value) -> impl Iterator<Item = (String, String)> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    rules.as_array().into_iter().flatten().flat_map(move |rule| {
        let (groups, plurals) = (texts(&rule["apiGroups"]), texts(&rule["resources"]));
        groups.into_iter().flat_map(move |group| plurals.clone().into_iter().map(move |plural| (group.clone(), plural)))
    })
}

fn service(client: &Value) -> Option<ServiceName> {
    let text = |key: &str| client["service"][key].as_str().map(str::to_owned);
    Some((text("namespace")?, text("name")?))
}

/// By namespace, the Services that are called and the labels that they select.
type Selectors<'a> = HashMap<&'a str, Vec<(&'a ServiceName, Labels)>>;

/// The selectors of the named Services, by their namespaces.
fn selectors<'a, 'c>(named: &BTreeSet<&'a ServiceName>, services: impl Iterator<Item = &'c Change>) -> Selectors<'a> {
    #[derive(Deserialize)]
    struct SelectorService {
        spec: ServiceSelectorSpec,
    }
    #[derive(Deserialize)]
    struct ServiceSelectorSpec {
        selector: Labels,
    }
    let mut selectors = Selectors::new();
    let named: HashMap<(&str, &str), &'a ServiceName> =
        named.iter().map(|name| ((name.0.as_str(), name.1.as_str()), *name)).collect();
    for change in services {
        let object = &change.desired.object;
        let place = (object.namespace.as_deref().unwrap_or_default(), object.name.as_str());
        let Some(name) = named.get(&place) else { continue };
        // The Endpoints of a Service without a selector are written by another client.
        let Ok(SelectorService { spec }) = serde_json::from_str(&change.desired.raw.json()) else { continue };
        if !spec.selector.is_empty() {
            selectors.entry(name.0.as_str()).or_default().push((*name, spec.selector));
        }
    }
    selectors
}

/// The labels of the Pods of a workload that serves requests.
fn labels(change: &Change) -> Option<Labels> {
    #[derive(Deserialize)]
    struct WorkloadManifest {
        spec: WorkloadTemplateSpec,
    }
    #[derive(Deserialize)]
    struct WorkloadTemplateSpec {
        template: WorkloadPodTemplate,
    }
    #[derive(Deserialize)]
    struct WorkloadPodTemplate {
        metadata: PodLabelMetadata,
    }
    #[derive(Deserialize)]
    struct PodLabelMetadata {
        labels: Labels,
    }
    let json = change.desired.raw.json();
    let pod = match change.desired.object.kind.as_str() {
        "Job" | "CronJob" => return None,
        "Pod" => serde_json::from_str::<WorkloadPodTemplate>(&json).ok()?,
        _ => serde_json::from_str::<WorkloadManifest>(&json).ok()?.spec.template,
    };
    Some(pod.metadata.labels)
}

//! `ConversionWebhook`: can the API server reach the webhook that converts a CRD's objects, and does it convert them
//! without loss?
//!
//! ```text
//! crd ─┬─► ca, service             before it is deployed: can it work?
//!      ├─► trip                    as it is live: does it work?
//!      ├─► workload                does the deploy restart its Pods?
//!      └─► brought                 what does the deploy itself create or repair?
//! ```
//!
//! Without a server, only the CRD itself is checked; a notice says that the rest is skipped.

mod brought;
mod ca;
mod rules;
mod service;
mod trip;
mod workload;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde_json::Value;

use self::brought::DeployEffect;
use self::ca::InvalidCaBundle;
use self::service::{LiveService, unlisted};
use super::entry::CheckEntry;
use super::proofs::Proofs;
use super::rule::RuleDoc;
use super::{
    Check, CheckFuture, CheckLookup, CheckResult, Context, CouldNotCheck, FindLookups, Violation, ViolationSubject,
    ViolationsFound,
};
use gantry_cluster::ListRequest;
use gantry_core::crd::{ConversionWebhookConfig, Crd, CrdReadError, CrdVersion, ServiceReference, steps};
use gantry_core::finding::Severity;
use gantry_core::resource::{RawObject, Resource, Step};
use gantry_deploy::config::ConfigReader;
use gantry_deploy::plan::{Change, Plan};

const NAME: &str = "ConversionWebhook";

/// How many CRDs are checked at the same time.
const AT_ONCE: usize = 4;
/// The page size when all CRDs are listed.
const PAGE: u32 = 100;

/// The versions of ConversionReview that API servers send.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub const ENTRY: CheckEntry = CheckEntry {
    configure: |reader| {
        options(reader);
    },
    ..CheckEntry::new(
        NAME,
        "conversion webhooks must be reachable and trusted, and convert the existing objects without loss",
        rules::docs,
        |config| Box::new(ConversionWebhook { objects: options(&mut ConfigReader::new(NAME, config)) }),
    )
};

/// Reads the configuration: how many objects of each CRD are converted.
fn options(reader: &mut ConfigReader<'_>) -> u32 {
    let about = "The number of objects of each CRD that are converted to every served version and back.";
    u32::try_from(reader.number("objects", about, 1..=100, 1)).unwrap_or(1)
}

struct ConversionWebhook {
    objects: u32,
}

fn violation(
    doc: &'static RuleDoc,
    subject: ViolationSubject,
    version: Option<&str>,
    message: String,
    help: &str,
    at: Vec<Step>,
) -> Violation {
    Violation::new(doc, subject, version.map(str::to_owned), message, help.to_owned(), at)
}

impl Check for ConversionWebhook {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let context = &context;
            let changes = context.plan.changes.iter().enumerate();
            let checks: Vec<_> = changes
                .filter(|(_, change)| change.desired.object.is_crd())
                .map(|(index, change)| self.check_crd(index, change, context))
                .collect();
            let mut checked = stream::iter(checks).buffered(AT_ONCE);
            let mut found = ViolationsFound::default();
            let mut is_any = false;
            while let Some((of_one, has_webhook)) = checked.next().await {
                is_any |= has_webhook;
                found.violations.extend(of_one.violations);
                found.unchecked.extend(of_one.unchecked);
            }
            drop(checked);
            if !context.target.is_server() {
                let reason = "services, endpoints and conversions were not checked: that needs a running API server";
                if is_any && found.violations.is_empty() && found.unchecked.is_empty() {
                    return Ok(CheckResult::Skipped(reason.to_owned()));
                }
                if is_any {
                    context.notices.add(format!("{NAME}: {reason}"));
                }
            } else if workload::first_workload(context.plan).is_some() {
                unplanned_crds(context, &mut found).await;
            }
            Ok(found.into())
        })
    }

    fn lookups(&self, plan: &Plan, _: &Arc<Proofs>) -> FindLookups {
        let changes = plan.changes.iter().enumerate();
        let crds: Vec<(usize, Change)> =
            changes.filter(|(_, c)| c.desired.object.is_crd()).map(|(index, c)| (index, c.clone())).collect();
        let mut lookups = Vec::new();
        if let Some(change) = workload::first_workload(plan) {
            lookups.push(CheckLookup::list(change, Resource::crd()));
        }
        // Only the list of CRDs shows which of their Services are called for a webhook.
        lookups.extend(workload::namespaces(plan).into_iter().map(|(namespace, change)| {
            let any = CheckLookup::list(change, service::services());
            CheckLookup { namespace: Some(namespace.to_owned()), verb: "get", ..any }
        }));
        Box::new(move || {
            let mut of_crds = Vec::new();
            crds.iter().for_each(|(index, change)| lookups_of(*index, change, &mut of_crds));
            of_crds.into_iter().chain(lookups).collect()
        })
    }
}

/// The annotations that make a controller write the CA bundle: cert-manager's and OpenShift's.
const INJECTORS: [&str; 4] = [
    "cert-manager.io/inject-apiserver-ca",
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "service.beta.openshift.io/inject-cabundle",
];

/// Whether somebody else than the deploy writes the CA bundle: an annotation names a controller, OLM installs the CRD
/// with its bundle, or `managedFields` of the live CRD name another manager.
fn is_injected(crd: &Crd, live: Option<&Crd>, change: &Change, manager: &str) -> bool {
    let is_set = |value: &Value| value.as_str().is_some_and(|value| !value.is_empty() && value != "false");
    let has_injector =
        |crd: &Crd| crd.annotations().iter().any(|(key, value)| INJECTORS.contains(&key.as_str()) && is_set(value));
    let is_of_another = |live: &Crd| {
        let of_bundle = ["conversion", "webhook", "clientConfig", "caBundle"];
        let (of_bundle, of_rest) = (live.managers_of(&of_bundle), live.managers_of(&["group"]));
        of_bundle.iter().any(|owner| owner != manager && !of_rest.contains(owner))
    };
    change.desired.bundle.is_some() || has_injector(crd) || live.is_some_and(is_of_another)
}

/// The served versions other than the storage version.
fn converted(crd: &Crd) -> impl Iterator<Item = &CrdVersion> {
    crd.served_versions().filter(|version| !version.storage)
}

/// Adds the requests that the check of one CRD sends.
fn lookups_of(change: usize, of: &Change, lookups: &mut Vec<CheckLookup>) {
    let Some(sides) = of.crd() else { return };
    let desired = sides.desired().ok().map(Arc::as_ref);
    let live = sides.readable_live().map(Arc::as_ref);
    let webhook = desired.and_then(Crd::webhook);
    if let Some(live) = live.filter(|live| live.webhook().is_some() || webhook.is_some()) {
        let list = |version: &CrdVersion| CheckLookup::list(change, live.resource(&version.name));
        lookups.extend(live.storage().map(list));
        for converted in converted(live).filter(|_| live.webhook().is_some()) {
            // For the dry run that writes an object unchanged.
            lookups.extend([list(converted), CheckLookup { verb: "patch", ..list(converted) }]);
        }
    }
    let found = webhook.or(live.and_then(Crd::webhook));
    if let Some(ServiceReference { namespace, name, .. }) =
        found.and_then(|webhook| webhook.client_config.service.as_ref())
    {
        let namespace = Some(namespace.clone());
        lookups.push(CheckLookup::get(change, service::services(), namespace.clone(), name.clone()));
        lookups.push(CheckLookup { namespace, ..CheckLookup::list(change, service::endpoint_slices()) });
    }
}

impl ConversionWebhook {
    /// Checks one CRD of the plan. The second value is whether it has a webhook.
    async fn check_crd(&self, index: usize, change: &Change, context: &Context<'_>) -> (ViolationsFound, bool) {
        let mut found = ViolationsFound::default();
        let subject = ViolationSubject::Change(index);
        let name = &change.desired.object.name;
        let Some(sides) = change.crd() else { return (found, false) };
        let unreadable = |whose: &str, error: CrdReadError| CouldNotCheck {
            message: format!("{whose} {name} cannot be read: {error}"),
            help: Some("write the CRD as apiextensions.k8s.io/v1".to_owned()),
        };
        let desired = sides.desired().map_err(|error| unreadable("the manifest of CRD", error));
        let live = sides.live().transpose().map_err(|error| unreadable("the live CRD", error));
        let (desired, live) = match (desired, live) {
            (Ok(desired), Ok(live)) => (desired, live),
            (Err(error), _) | (_, Err(error)) => {
                found.add(Err(error));
                return (found, false);
            }
        };
        let live = live.map(Arc::as_ref);
        let live_webhook = live.and_then(Crd::webhook);
        let webhook = desired.webhook().or(live_webhook);
        let is_server = context.target.is_server();
        let mut effect = DeployEffect::new(desired, live, context.plan);
        if let Some(webhook) = desired.webhook() {
            found.violations.extend(review_versions(webhook, &subject));
        }
        let mut total = None;
        if let (Some(live), Some(_), true) = (live, live_webhook, is_server) {
            total = trip::convert(live, &subject, self.objects, context, &mut found).await;
        } else if let (Some(live), true) = (live, is_server && webhook.is_some()) {
            total = trip::count_objects(live, context).await;
        }
        if let (Some(webhook), true) = (webhook, is_server)
            && let Some(reference) = &webhook.client_config.service
        {
            // If the webhook is removed, only its workload matters.
            let is_kept = desired.webhook().is_some();
            check_service(desired, reference, &subject, (is_kept, total), context, &mut found, &mut effect).await;
        }
        if let Some(webhook) = desired.webhook() {
            let injected = is_injected(desired, live, change, &context.plan.policy.field_manager);
            found.violations.extend(ca_bundle(desired, webhook, (live_webhook, injected), &subject, effect, context));
        }
        for violation in &mut found.violations {
            effect.soften_to_warning(violation, desired, context.plan);
        }
        (found, webhook.is_some())
    }
}

fn review_versions(webhook: &ConversionWebhookConfig, subject: &ViolationSubject) -> Option<Violation> {
    let versions = &webhook.review_versions;
    if versions.iter().any(|version| REVIEW_VERSIONS.contains(&version.as_str())) {
        return None;
    }
    let message = match versions.as_slice() {
        [] => "the webhook lists no ConversionReview version".to_owned(),
        versions => format!("the webhook supports only ConversionReview {}", versions.join(", ")),
    };
    let help = format!("API servers send {}", REVIEW_VERSIONS.join(" and "));
    let at = steps::webhook("conversionReviewVersions");
    Some(violation(&rules::REVIEW_VERSIONS, subject.clone(), None, message, &help, at))
}

fn ca_bundle(
    desired: &Crd,
    webhook: &ConversionWebhookConfig,
    (live, is_injected): (Option<&ConversionWebhookConfig>, bool),
    subject: &ViolationSubject,
    effect: DeployEffect,
    context: &Context<'_>,
) -> Option<Violation> {
    let own = webhook.client_config.ca_bundle.as_deref().filter(|bundle| !bundle.is_empty());
    // Server-side apply keeps a bundle that the manifest leaves out.
    let kept = live.and_then(|live| live.client_config.ca_bundle.as_deref()).filter(|bundle| !bundle.is_empty());
    // The bundle of the manifest may be a placeholder that the controller replaces.
    if is_injected && (own.is_some() || kept.is_none()) {
        return None;
    }
    let (message, help, is_certain) = match own.or(kept) {
        None if webhook.client_config.url.is_some() => return None,
        None if effect.is_in_manifests && brought::is_operator_allowed_to_write_crds(context.plan) => return None,
        None => (
            "there is no CA bundle, and no public CA signs for a Service".to_owned(),
            "set the bundle, or have cert-manager inject it: annotation cert-manager.io/inject-ca-from",
            false,
        ),
        Some(bundle) => {
            let whose = if own.is_some() { "the CA bundle" } else { "the live CA bundle, which the manifest keeps," };
            // The server detects it, too, and refuses the CRD before the webhook could replace the bundle.
            let (why, is_refused) = match ca::find_fault(bundle, context.today)? {
                InvalidCaBundle::Unreadable(why) if own.is_some() => {
                    (format!("{why}; the server will not serve the CRD"), true)
                }
                InvalidCaBundle::Unreadable(why) | InvalidCaBundle::NotValidToday(why) => (why, false),
            };
            let help = match is_injected {
                true => "find out why nothing renews it: it is not the manifest that sets it",
                false => "set caBundle to the certificate of the webhook's CA, or leave it out",
            };
            (format!("{whose} is invalid: {why}"), help, is_refused)
        }
    };
    let at = steps::client_config("caBundle");
    let mut violation = violation(&rules::CA_BUNDLE, subject.clone(), None, message, help, at);
    if !is_certain && (effect.is_new || effect.is_in_manifests) {
        brought::await_webhook(&mut violation, desired, context.plan);
    }
    Some(violation)
}

/// Checks whether the webhook's Service exists and is ready, and whether this deploy replaces the workload behind it.
async fn check_service(
    crd: &Crd,
    reference: &ServiceReference,
    subject: &ViolationSubject,
    (is_kept, total): (bool, Option<u64>),
    context: &Context<'_>,
    found: &mut ViolationsFound,
    effect: &mut DeployEffect,
) {
    let at = || steps::client_config("service");
    let shown = format!("{}/{}", reference.namespace, reference.name);
    let service = match LiveService::find(reference, context).await {
        Ok(Some(service)) => service,
        Ok(None) if is_kept => {
            let message = format!("there is no Service {shown}, neither live nor among the manifests");
            let help = "fix the name or the namespace, or add the Service to the manifests";
            found.violations.push(violation(&rules::SERVICE_MISSING, subject.clone(), None, message, help, at()));
            return;
        }
        Ok(None) => return,
        Err(error) => return found.add(Err(error)),
    };
    if is_kept && !service.ports().contains(&reference.port) {
        let ports: Vec<String> = service.ports().iter().map(ToString::to_string).collect();
        let has = if ports.is_empty() { "no port".to_owned() } else { ports.join(", ") };
        let message = format!("the Service {shown} has no port {}: it has {has}", reference.port);
        let help = "fix clientConfig.service.port (default: 443) or the Service";
        found.violations.push(violation(&rules::SERVICE_MISSING, subject.clone(), None, message, help, at()));
        return;
    }
    effect.is_in_manifests |= workload::is_among(&service, &reference.namespace, context.plan);
    let replaced = workload::workloads_behind(&service, &reference.namespace, context.plan);
    for workload in &replaced {
        found.violations.push(restarted(crd, *workload, (!effect.is_new, total), context));
    }
    effect.is_replaced = !replaced.is_empty();
    if !is_kept || effect.is_replaced || !service.has_endpoints() {
        return;
    }
    match service.is_ready(reference, context).await {
        Ok(true) => {}
        Ok(false) => {
            let message = format!("no endpoint of the Service {shown} is ready at port {}", reference.port);
            let help = format!("find out why: kubectl get endpointslices,pods -n {}", reference.namespace);
            found.violations.push(violation(&rules::SERVICE_NOT_READY, subject.clone(), None, message, &help, at()));
        }
        Err(error) => found.add(Err(error)),
    }
}

/// The finding about a webhook whose Pods restart.
fn restarted(
    crd: &Crd,
    workload: workload::Replaced,
    (is_live, total): (bool, Option<u64>),
    context: &Context<'_>,
) -> Violation {
    let workload::Replaced { change, is_new, keeps_serving } = workload;
    let object = &context.plan.changes[change].desired.object;
    let verb = if is_new { "starts" } else { "replaces" };
    let versions: Vec<&str> = converted(crd).map(|version| &*version.name).collect();
    let impact = match total {
        _ if !is_live => "there are no objects yet".to_owned(),
        Some(1) => "1 object cannot be read".to_owned(),
        Some(total) => format!("{total} objects cannot be read"),
        None => "its objects cannot be read".to_owned(),
    };
    let at = if versions.is_empty() { String::new() } else { format!(" at {}", versions.join(", ")) };
    let meanwhile = match keeps_serving {
        true => format!("if it does not become ready, {impact}{at}"),
        false => format!("until it runs, {impact}{at}"),
    };
    let message = format!("this deploy {verb} {object}, the conversion webhook of {}: {meanwhile}", crd.name);
    let help = "use a rolling update with a readiness probe, and deploy it before the CRD that needs it";
    let found = violation(
        &rules::WORKLOAD_REPLACED,
        ViolationSubject::Change(change),
        None,
        message,
        help,
        vec!["spec".into()],
    );
    let is_harmless = keeps_serving || !is_live || total == Some(0);
    if is_harmless { found.severity(Severity::Info) } else { found }
}

/// Checks the CRDs that are not part of the plan, but whose webhook it replaces.
async fn unplanned_crds(context: &Context<'_>, found: &mut ViolationsFound) {
    let planned: BTreeSet<&str> = context
        .plan
        .changes
        .iter()
        .filter(|change| change.desired.object.is_crd())
        .map(|change| change.desired.object.name.as_str())
        .collect();
    let resource = Resource::crd();
    let request = ListRequest::new(&resource, PAGE);
    let crd_of = |crds: &mut Vec<Crd>, item: &str| {
        // Most have no webhook and are not parsed. An item of a list does not repeat its apiVersion.
        let has_webhook = item.contains("\"Webhook\"");
        let crd = has_webhook.then(|| Crd::read_at_any_version(&RawObject::new(item)).ok()).flatten();
        crds.extend(crd.filter(|crd| !planned.contains(crd.name.as_str())));
    };
    let crds = match context.target.list(&request).gather(crd_of).await {
        Ok(crds) => crds,
        Err(error) => return found.add(Err(unlisted(&error))),
    };
    let namespaces = workload::namespaces(context.plan);
    for crd in &crds {
        let reference = crd.webhook().and_then(|webhook| webhook.client_config.service.as_ref());
        // A Service selects Pods of its own namespace.
        let Some(reference) = reference.filter(|reference| namespaces.contains_key(reference.namespace.as_str()))
        else {
            continue;
        };
        let service = match LiveService::find(reference, context).await {
            Ok(Some(service)) => service,
            // A CRD outside of this deploy was broken before.
            Ok(None) => continue,
            Err(error) => {
                found.add(Err(error));
                continue;
            }
        };
        let replaced = workload::workloads_behind(&service, &reference.namespace, context.plan);
        if !replaced.is_empty() {
            let total = trip::count_objects(crd, context).await;
            found
                .violations
                .extend(replaced.into_iter().map(|workload| restarted(crd, workload, (true, total), context)));
        }
    }
}

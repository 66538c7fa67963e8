//! The first install of an operator with webhooks whose CA bundles something else in the cluster fills in, on a cluster
//! with controllers: the Pods become ready, and the API server calls the webhooks behind the Service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::controllers::cluster;
use crate::first_install::Operator;
use crate::support::{Bed, Gantry, Output, Proxy, Webhook, eventually};
use serde_json::{Value, json};

/// All checks but those of OLM.
const CHECKS: &str = "APIAvailability,AdmissionDryRun,CRDUpgradeSafety,ConversionWebhook,CustomResourceValidation,\
                      DeletionSafety,PermissionValidation";
/// The field manager of the injector.
const INJECTOR: &str = "ca-injector";

/// The operator's manifests, without CA bundles.
struct Release {
    operator: Operator,
    /// How often the webhooks behind the Service were called for a conversion and for admission.
    calls: Arc<[AtomicUsize; 2]>,
    webhook: Webhook,
}

impl Release {
    fn new() -> Self {
        let operator = Operator(Bed::new());
        let calls: Arc<[AtomicUsize; 2]> = Arc::default();
        let counted = Arc::clone(&calls);
        let host = format!("webhook.{}.svc", operator.0.names.namespace);
        let webhook = Webhook::with_own_ca(&[host], move |review| {
            let is_conversion = review["kind"] == "ConversionReview";
            counted[usize::from(!is_conversion)].fetch_add(1, Ordering::Relaxed);
            if is_conversion {
                return Webhook::answer(review, |mut object, wanted| {
                    object["apiVersion"] = wanted.into();
                    object
                });
            }
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        });
        Release { operator, calls, webhook }
    }

    fn configuration(&self) -> Value {
        let names = &self.operator.0.names;
        let client = json!({"service": {"namespace": names.namespace, "name": "webhook", "path": "/validate"}});
        let rules = json!([{"apiGroups": [names.group], "apiVersions": ["v1", "v2"], "resources": ["samples"],
            "operations": ["CREATE", "UPDATE"]}]);
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": names.group}, "webhooks": [{"name": "samples.example.com", "clientConfig": client,
                "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": rules}]})
    }

    /// Also with an object of its own kind, at a version that its webhook converts.
    fn write(&self, image: &str) {
        let operator = &self.operator;
        let mut manifests = vec![operator.0.namespace()];
        let (crd, service, deployment) = (operator.crd(None), operator.service(443), operator.deployment(image));
        manifests
            .extend([crd, service, deployment, self.configuration(), operator.custom("v2")].map(|m| m.to_string()));
        operator.0.write("manifests.yaml", &manifests.join("\n---\n"));
    }

    fn gantry(&self, proxy: &Proxy, arguments: &[&str]) -> Gantry {
        let app = ["-a", &self.operator.0.names.namespace, "-n", "default"];
        self.operator.0.gantry(proxy.kubeconfig("admin"), &[arguments, &app].concat())
    }

    fn deploy(&self, proxy: &Proxy) -> Output {
        self.gantry(proxy, &["deploy", "-f", "manifests.yaml", "--preflight", CHECKS]).run()
    }

    /// Starts an injector, which acts through the API server as a user of its own, as that of cert-manager does: when
    /// the workload behind the Service of a webhook is available, it fills in the CA bundles of the configuration and
    /// of the CRD. It begins when `may_begin` returns.
    fn inject(&self, may_begin: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        let names = self.operator.0.names.clone();
        let resources = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let user = cluster().user(&json!([
            resources("admissionregistration.k8s.io", "validatingwebhookconfigurations", &["get", "patch"]),
            resources("apiextensions.k8s.io", "customresourcedefinitions", &["get", "patch"]),
            resources("apps", "deployments", &["get"]),
            resources("", "services", &["get"]),
        ]));
        let api = cluster().api_as(&user);
        let bundle = self.webhook.conversion()["webhook"]["clientConfig"]["caBundle"].clone();
        let port = self.webhook.port();
        let (crd, configuration) = (self.operator.crd(None), self.configuration());
        thread::spawn(move || {
            may_begin();
            let namespaced = |group: &str, rest: &str| format!("{group}/namespaces/{}/{rest}", names.namespace);
            eventually("the Pods of the webhook are available", || {
                let (_, deployment) = api.get(&namespaced("/apis/apps/v1", "deployments/webhook"));
                (deployment["status"]["availableReplicas"] == 1).then_some(())
            });
            // Only now does anything listen at the address of the Service.
            let (_, service) = api.get(&namespaced("/api/v1", "services/webhook"));
            let address = service["spec"]["clusterIP"].as_str().expect("the address of the Service");
            cluster().route(&format!("{address}:443"), port);
            let in_configuration =
                json!({"webhooks": [{"name": "samples.example.com", "clientConfig": {"caBundle": bundle}}]});
            let in_crd = json!({"spec": {"conversion": {"strategy": "Webhook",
                "webhook": {"clientConfig": {"caBundle": bundle}}}}});
            for (object, injected) in [(&configuration, in_configuration), (&crd, in_crd)] {
                let path = cluster().path_of(object);
                eventually("the object is there", || (api.get(&path).0 == 200).then_some(()));
                let mut applied = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
                    "metadata": {"name": object["metadata"]["name"]}});
                applied.as_object_mut().expect("an object").extend(injected.as_object().expect("an object").clone());
                let (status, answer) = api.server_side_apply(&path, INJECTOR, &applied);
                assert_eq!(status, 200, "{answer}");
            }
        })
    }

    /// The field managers of the CA bundles in the configuration and in the CRD, which are both there.
    fn managers_of_bundles(&self) -> Vec<String> {
        let of = |object: &Value| {
            let (status, live) = cluster().get(&cluster().path_of(object));
            assert_eq!(status, 200, "{live}");
            let entries = live["metadata"]["managedFields"].as_array().expect("managers").clone();
            let is_owner = |entry: &Value| entry["fieldsV1"].to_string().contains("\"f:caBundle\"");
            let owners = entries.iter().filter(|entry| is_owner(entry));
            owners.map(|entry| entry["manager"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
        };
        [self.configuration(), self.operator.crd(None)].iter().flat_map(of).collect()
    }
}

/// How often an object of the operator's own kind was written, or a write was tried.
fn tries(proxy: &Proxy) -> usize {
    proxy.writes().iter().filter(|request| request.path.ends_with("/samples/one")).count()
}

#[test]
fn an_operator_is_installed_with_its_own_resources_while_an_injector_fills_in_its_ca_bundles() {
    let release = Release::new();
    let proxy = Arc::new(Proxy::start(cluster()));
    release.write("webhook:1");
    // The injector is late: the operator's Pods are ready, and the first write fails.
    let seen = Arc::clone(&proxy);
    let injector = release.inject(move || eventually("the first write", || (tries(&seen) > 0).then_some(())));
    let first = release.deploy(&proxy);
    injector.join().expect("the injector");
    first.code(0).stdout_contains("warning[ConversionCABundleInvalid]: there is no CA bundle");
    assert!(tries(&proxy) > 1, "{first}");
    let [conversions, admissions] = [0, 1].map(|which| release.calls[which].load(Ordering::Relaxed));
    assert!(conversions > 0 && admissions > 0, "{conversions} {admissions}");
    assert_eq!(release.managers_of_bundles(), [INJECTOR; 2]);

    // The bundles are not in the manifests and stay.
    let proxy = Proxy::start(cluster());
    release.deploy(&proxy).code(0).stdout_contains("unchanged");
    assert_eq!(proxy.writes(), []);
    release.write("webhook:2");
    release.deploy(&proxy).code(0).stdout_contains("1 updated");
    assert_eq!(release.managers_of_bundles(), [INJECTOR; 2]);

    release.gantry(&proxy, &["delete", "--yes"]).run().code(0);
    assert_eq!(cluster().get(&cluster().path_of(&release.configuration())).0, 404);
}

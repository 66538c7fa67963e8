//! The default order of whole deploys.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use gantry_core::manifest;
use gantry_core::matcher::Matcher;
use gantry_core::resource::Resource;

fn change(object: &Value) -> Change {
    let source = Arc::new(manifest::ManifestSource::new("m.yaml", object.to_string()));
    let desired = manifest::read(&source).expect("a manifest").manifests.remove(0);
    let reference = &desired.object;
    let resource = Resource {
        group: reference.group().into(),
        version: reference.version().into(),
        kind: reference.kind.clone(),
        plural: format!("{}s", reference.kind.to_lowercase()),
        namespaced: reference.namespace.is_some(),
    };
    Change::undecided(desired, Ok(None), resource.into())
}

/// An object of this kind; `namespace/name`, or a name alone.
fn object(kind: &str, name: &str, rest: &Value) -> Change {
    let api_version = match kind {
        "Deployment" | "StatefulSet" => "apps/v1",
        "Job" => "batch/v1",
        "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => "rbac.authorization.k8s.io/v1",
        "StorageClass" => "storage.k8s.io/v1",
        "PriorityClass" => "scheduling.k8s.io/v1",
        "NetworkPolicy" | "Ingress" => "networking.k8s.io/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "APIService" => "apiregistration.k8s.io/v1",
        "Sample" | "Other" => "shop.example.com/v1",
        _ if kind.starts_with("Validating") => "admissionregistration.k8s.io/v1",
        _ => "v1",
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some((namespace, name)) = name.split_once('/') {
        object["metadata"] = json!({"name": name, "namespace": namespace});
    }
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    change(&object)
}

fn plain(kind: &str, name: &str) -> Change {
    object(kind, name, &Value::Null)
}

fn crd(plural: &str) -> Change {
    object("CustomResourceDefinition", &format!("{plural}.shop.example.com"), &Value::Null)
}

fn bound(kind: &str, name: &str, role: (&str, &str), account: &str) -> Change {
    let (namespace, account) = account.split_once('/').expect("a namespace");
    let subjects = json!([{"kind": "ServiceAccount", "name": account, "namespace": namespace}]);
    object(kind, name, &json!({"roleRef": {"kind": role.0, "name": role.1}, "subjects": subjects}))
}

fn claim(name: &str, class: &str) -> Change {
    object("PersistentVolumeClaim", name, &json!({"spec": {"storageClassName": class}}))
}

fn service(name: &str, app: &str) -> Change {
    object("Service", name, &json!({"spec": {"selector": {"app": app}}}))
}

fn deployment(name: &str, app: &str) -> Change {
    object("Deployment", name, &json!({"spec": {"template": {"metadata": {"labels": {"app": app}}}}}))
}

/// A webhook configuration that calls a Service, `namespace/name`, about the plurals of a group.
fn webhooks(name: &str, service: &str, bundle: &str, rules: (&str, &[&str])) -> Change {
    let (namespace, service) = service.split_once('/').expect("a namespace");
    let client = json!({"service": {"namespace": namespace, "name": service}, "caBundle": bundle});
    let rules = json!([{"apiGroups": [rules.0], "apiVersions": ["*"], "resources": rules.1}]);
    let webhook = json!({"name": "a.example.com", "clientConfig": client, "rules": rules});
    object("ValidatingWebhookConfiguration", name, &json!({"webhooks": [webhook]}))
}

/// The default order of these changes.
struct Ordered {
    changes: Vec<Change>,
    graph: PlanGraph,
}

impl Ordered {
    fn new(mut changes: Vec<Change>, waits: bool) -> Self {
        changes.sort_by_cached_key(Change::rank);
        let (graph, said) = sort_changes(&changes, &[], &OrderBindings::default(), waits).expect("an order");
        assert_eq!(said.turned, []);
        Ordered { changes, graph }
    }

    fn name(&self, index: usize) -> String {
        let object = &self.changes[index].desired.object;
        let namespace = object.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{}", object.kind, object.name)
    }

    fn index(&self, name: &str) -> usize {
        (0..self.changes.len()).find(|index| self.name(*index) == name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// All that is written before an object.
    fn before(&self, name: &str) -> Vec<String> {
        self.graph.changes_before(self.index(name)).into_iter().map(|index| self.name(index)).collect()
    }

    /// What has to be ready, or served, before an object is written.
    fn ready_before(&self, name: &str) -> Vec<String> {
        let index = self.index(name);
        let step = self.graph.changes.iter().find(|step| step.members.contains(&index)).expect("a step");
        let members = step.ready.iter().flat_map(|ready| &self.graph.changes[*ready].members);
        members.map(|index| self.name(*index)).collect()
    }
}

#[test]
fn an_object_waits_for_its_own_namespace_only() {
    let kinds = ["ConfigMap", "Role", "Service", "Deployment", "PersistentVolumeClaim", "Sample", "Ingress"];
    let mut changes = vec![crd("samples")];
    for namespace in ["a", "b"] {
        changes.push(plain("Namespace", namespace));
        changes.extend(kinds.map(|kind| plain(kind, &format!("{namespace}/x"))));
    }
    let ordered = Ordered::new(changes, true);
    for kind in kinds {
        let before = ordered.before(&format!("{kind} a/x"));
        assert!(before.contains(&"Namespace a".to_owned()), "{kind}: {before:?}");
        assert!(!before.iter().any(|name| name.ends_with(" b") || name.contains(" b/")), "{kind}: {before:?}");
    }
    assert_eq!(ordered.before("ConfigMap a/x"), ["Namespace a"]);
    let before = ordered.before("Deployment a/x");
    let expected = ["ConfigMap a/x", "PersistentVolumeClaim a/x", "Role a/x", "Service a/x"];
    assert!(expected.iter().all(|name| before.contains(&(*name).to_owned())), "{before:?}");
    assert!(!before.iter().any(|name| name.starts_with("Sample")), "{before:?}");
    assert!(ordered.before("Ingress a/x").contains(&"Deployment a/x".to_owned()));
    assert_eq!(ordered.ready_before("Deployment a/x"), [""; 0]);
}

#[test]
fn custom_resources_wait_until_their_own_crd_is_served() {
    let changes = [crd("samples"), crd("others"), crd("idle"), plain("Sample", "a/x"), plain("Other", "y")];
    let ordered = Ordered::new(changes.into(), true);
    assert_eq!(ordered.before("Sample a/x"), ["CustomResourceDefinition samples.shop.example.com"]);
    assert_eq!(ordered.ready_before("Sample a/x"), ["CustomResourceDefinition samples.shop.example.com"]);
    assert_eq!(ordered.before("Other y"), ["CustomResourceDefinition others.shop.example.com"]);
    assert!(ordered.graph.changes.iter().all(|step| !step.is_awaited), "served is enough");
}

#[test]
fn claims_wait_for_their_class_and_bindings_for_their_roles() {
    let default =
        json!({"metadata": {"name": "slow", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}});
    let changes = [
        plain("StorageClass", "fast"),
        object("StorageClass", "slow", &default),
        claim("a/x", "fast"),
        plain("PersistentVolumeClaim", "a/y"),
        plain("ClusterRole", "one"),
        plain("ClusterRole", "two"),
        plain("Role", "a/role"),
        bound("ClusterRoleBinding", "one", ("ClusterRole", "one"), "a/x"),
        bound("RoleBinding", "a/two", ("ClusterRole", "two"), "a/x"),
        bound("RoleBinding", "a/role", ("Role", "role"), "a/x"),
        bound("RoleBinding", "b/extra", ("ClusterRole", "extra"), "a/x"),
        plain("Deployment", "a/x"),
        plain("Deployment", "b/x"),
    ];
    let ordered = Ordered::new(changes.into(), true);
    assert_eq!(ordered.before("PersistentVolumeClaim a/x"), ["StorageClass fast"]);
    assert_eq!(ordered.before("PersistentVolumeClaim a/y"), ["StorageClass slow"]);
    assert_eq!(ordered.before("ClusterRoleBinding one"), ["ClusterRole one"]);
    let before = ordered.before("RoleBinding a/two");
    assert!(before.contains(&"ClusterRole two".to_owned()) && !before.contains(&"ClusterRole one".to_owned()));
    assert!(ordered.before("RoleBinding a/role").contains(&"Role a/role".to_owned()));
    // The rights of its accounts, wherever they are given.
    let before = ordered.before("Deployment a/x");
    for binding in ["ClusterRoleBinding one", "RoleBinding a/two", "RoleBinding a/role", "RoleBinding b/extra"] {
        assert!(before.contains(&binding.to_owned()), "{binding}: {before:?}");
    }
    assert_eq!(ordered.before("Deployment b/x"), ["RoleBinding b/extra"]);
}

#[test]
fn a_webhook_configuration_waits_for_its_workload_and_its_crds() {
    let changes = || {
        vec![
            service("a/hook", "hook"),
            deployment("a/hook", "hook"),
            deployment("a/other", "other"),
            deployment("b/slow", "slow"),
            plain("ConfigMap", "b/x"),
            webhooks("known", "a/hook", "Zm9v", ("", &["configmaps"])),
            webhooks("unknown", "a/hook", "", ("apps", &["deployments"])),
            webhooks("foreign", "c/hook", "", ("batch", &["jobs"])),
            object(
                "APIService",
                "v1.a",
                &json!({"spec": {"service": {"namespace": "a", "name": "hook"}, "insecureSkipTLSVerify": true}}),
            ),
            object("APIService", "v1.b", &json!({"spec": {"service": {"namespace": "a", "name": "hook"}}})),
        ]
    };
    let ordered = Ordered::new(changes(), true);
    let known = "ValidatingWebhookConfiguration known";
    assert_eq!(ordered.ready_before(known), ["Deployment a/hook"]);
    assert_eq!(ordered.before(known), ["ConfigMap b/x", "Service a/hook", "Deployment a/hook"]);
    // It is about Deployments, which only have to be written: the workload may not become ready without it.
    let unknown = "ValidatingWebhookConfiguration unknown";
    assert_eq!(ordered.ready_before(unknown), [""; 0]);
    assert!(ordered.before(unknown).contains(&"Deployment b/slow".to_owned()));
    assert_eq!(ordered.before("ValidatingWebhookConfiguration foreign"), [""; 0]);
    assert_eq!(ordered.ready_before("APIService v1.a"), ["Deployment a/hook"]);
    assert_eq!(ordered.ready_before("APIService v1.b"), [""; 0]);
    assert!(ordered.before("APIService v1.b").contains(&"Deployment a/hook".to_owned()));
    let awaited = ordered.graph.changes.iter().filter(|step| step.is_awaited);
    let awaited: Vec<String> = awaited.flat_map(|step| &step.members).map(|index| ordered.name(*index)).collect();
    assert_eq!(awaited, ["Deployment a/hook"], "no other one of its namespace");
}

#[test]
fn a_custom_resource_is_written_after_its_new_webhook_only_if_the_deploy_waits() {
    let changes = |bundle: &str| {
        vec![
            crd("samples"),
            crd("others"),
            plain("Sample", "a/x"),
            plain("Other", "a/y"),
            service("a/hook", "hook"),
            deployment("a/hook", "hook"),
            webhooks("hook", "a/hook", bundle, ("shop.example.com", &["samples"])),
            // Nobody is asked about others, and this one may have to be there for the workload, too.
            webhooks("idle", "a/hook", "", ("batch", &["jobs"])),
        ]
    };
    let hook = "ValidatingWebhookConfiguration hook";
    for bundle in ["", "Zm9v"] {
        let ordered = Ordered::new(changes(bundle), true);
        // What the webhook configuration waited for is ready already.
        let awaiting = if bundle.is_empty() { "Sample a/x" } else { hook };
        assert_eq!(ordered.ready_before(awaiting).last().expect("a wait"), "Deployment a/hook", "{bundle}");
        let before = ordered.before("Sample a/x");
        assert!([hook, "ValidatingWebhookConfiguration idle"].iter().all(|name| before.contains(&(*name).to_owned())));
        assert!(!ordered.before("Other a/y").contains(&"Deployment a/hook".to_owned()), "{bundle}");
        assert_eq!(ordered.ready_before(hook).is_empty(), bundle.is_empty());

        let ordered = Ordered::new(changes(bundle), false);
        assert!(!ordered.before("Sample a/x").contains(&hook.to_owned()), "{bundle}");
        assert!(ordered.before(hook).contains(&"Sample a/x".to_owned()), "{bundle}");
    }
}

#[test]
fn only_objects_at_converted_versions_wait_for_a_new_conversion_webhook() {
    let spec = json!({"group": "shop.example.com", "names": {"plural": "samples", "kind": "Sample"},
        "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"namespace": "a", "name": "hook"}}}},
        "versions": [{"name": "v1", "storage": true}, {"name": "v2", "storage": false}]});
    let converting = object("CustomResourceDefinition", "samples.shop.example.com", &json!({"spec": spec}));
    let later = object("Sample", "a/later", &json!({"apiVersion": "shop.example.com/v2"}));
    let changes = [converting, plain("Sample", "a/x"), later, service("a/hook", "hook"), deployment("a/hook", "hook")];
    let ordered = Ordered::new(changes.into(), true);
    assert!(!ordered.before("Sample a/x").contains(&"Deployment a/hook".to_owned()));
    assert!(ordered.ready_before("Sample a/later").contains(&"Deployment a/hook".to_owned()));
}

#[test]
fn defaults_that_contradict_each_other_are_dropped() {
    // Each is about the custom resources that wait for the other.
    let changes = vec![
        plain("Sample", "x"),
        plain("Other", "y"),
        service("a/one", "one"),
        deployment("a/one", "one"),
        service("a/two", "two"),
        deployment("a/two", "two"),
        webhooks("one", "a/one", "", ("shop.example.com", &["samples"])),
        webhooks("two", "a/two", "", ("shop.example.com", &["others"])),
        webhooks("all", "a/one", "", ("*", &["*"])),
    ];
    let ordered = Ordered::new(changes, true);
    assert!(ordered.before("Sample x").contains(&"ValidatingWebhookConfiguration one".to_owned()));
    assert!(ordered.before("Other y").contains(&"ValidatingWebhookConfiguration two".to_owned()));
    assert!(ordered.ready_before("Other y").contains(&"Deployment a/two".to_owned()));
}

/// A deploy of so many namespaces with so many objects each.
fn many(namespaces: usize, each: usize) -> Vec<Change> {
    let mut changes = vec![plain("StorageClass", "fast"), plain("ClusterRole", "a"), crd("samples")];
    for n in 0..namespaces {
        let name = |name: &str| format!("n{n}/{name}");
        changes.extend([plain("Namespace", &format!("n{n}")), plain("ServiceAccount", &name("a"))]);
        changes.extend([plain("Role", &name("a")), service(&name("hook"), "hook"), deployment(&name("hook"), "hook")]);
        changes.push(bound("RoleBinding", &name("a"), ("Role", "a"), &name("a")));
        changes.push(bound("ClusterRoleBinding", &format!("n{n}"), ("ClusterRole", "a"), &name("a")));
        changes.push(webhooks(&format!("n{n}"), &name("hook"), "", ("*", &["*"])));
        for i in 0..each - 8 {
            let name = &name(&format!("x{i}"));
            let kinds = ["ConfigMap", "Secret", "Service", "Deployment", "Job", "HorizontalPodAutoscaler", "Sample"];
            changes.push(kinds.get(i % 8).map_or_else(|| claim(name, "fast"), |kind| plain(kind, name)));
        }
    }
    changes
}

#[test]
fn the_graph_grows_with_the_namespaces_and_not_with_pairs_of_objects() {
    let size = |namespaces: usize, each: usize| {
        let Ordered { graph, .. } = Ordered::new(many(namespaces, each), true);
        let edges: usize = graph.changes.iter().map(|step| step.after.len()).sum();
        (graph.changes.len(), edges)
    };
    let (few, all) = (size(10, 100), size(100, 100));
    assert!(all.0 <= 10 * few.0 && all.1 <= 11 * few.1, "{few:?} {all:?}");
    assert_eq!(size(10, 200), few, "more objects of a namespace share its steps");
}

/// cargo test -p gantry-deploy plan::graph::tests::the_graph_of_many_objects_is_measured -- --ignored --nocapture
#[test]
#[ignore = "a measurement"]
fn the_graph_of_many_objects_is_measured() {
    let without = (OrderBindings::default(), "");
    // Rules that reverse the default order in all namespaces at once.
    let matcher = |group: &str, kind: &str| Matcher::GroupKind { group: group.into(), kind: kind.into() };
    let jobs =
        bindings::GroupBinding { name: "example.com/jobs".into(), matchers: vec![matcher("batch", "Job")], at: None };
    let rule = rule::OrderRulePattern::parse("upsert after upserting example.com/jobs").expect("a rule");
    let rules = OrderBindings {
        groups: vec![jobs],
        rules: vec![bindings::RuleBinding {
            rules: vec![(rule, None)],
            ignore_if_cyclical: false,
            matchers: vec![matcher("", "ConfigMap")],
        }],
    };
    let reversed = (rules, " with reversing rules");
    let shapes = [(1, 10_000), (100, 100), (400, 100), (1000, 100), (1000, 10)].map(|shape| (shape, &without));
    let contradicted = [(100, 100), (400, 100)].map(|shape| (shape, &reversed));
    for ((namespaces, each), (bindings, which)) in shapes.into_iter().chain(contradicted) {
        let mut changes = many(namespaces, each);
        changes.sort_by_cached_key(Change::rank);
        let begun = std::time::Instant::now();
        let (graph, _) = sort_changes(&changes, &[], bindings, true).expect("a graph");
        let took = begun.elapsed();
        let edges: usize = graph.changes.iter().map(|step| step.after.len()).sum();
        let (objects, steps) = (changes.len(), graph.changes.len());
        // Equal if the steps are the same.
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&format!("{:?}", graph.changes), &mut hasher);
        print!("{:016x} ", std::hash::Hasher::finish(&hasher));
        println!("{objects} objects, {namespaces} namespaces{which}: {steps} steps, {edges} edges, {took:?}");
    }
}

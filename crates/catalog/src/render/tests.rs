//! A table of small bundles, and what OLM renders from each. The expected values are those of operator-controller's own
//! renderer.

use serde_json::{Value, json};

use super::*;

fn csv(spec: &Value) -> Value {
    json!({"metadata": {"name": "p.v1.0.0", "annotations": {"capabilities": "Basic", "own": "csv"}}, "spec": spec})
}

fn install(more: &Value) -> Value {
    json!({"install": {"spec": more}})
}

/// What is rendered in namespace `ns`, as `KIND namespace/name`.
fn names(csv: &Value, options: RenderOptions<'_>) -> Vec<String> {
    let name = |object: &RenderedObject| {
        let text = |pointer: &str| object.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    };
    rendered(csv, options).iter().map(name).collect()
}

fn rendered(csv: &Value, options: RenderOptions<'_>) -> Vec<RenderedObject> {
    render(RenderInput { csv, properties: None }, options).unwrap()
}

fn in_ns() -> RenderOptions<'static> {
    RenderOptions { install_namespace: "ns", ..RenderOptions::default() }
}

fn one(csv: &Value, options: RenderOptions<'_>, kind: &str) -> Value {
    rendered(csv, options).into_iter().map(|object| object.value).find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn permissions_become_roles_with_bindings_and_accounts() {
    let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]);
    let csv = csv(&install(&json!({
        "permissions": [{"serviceAccountName": "a", "rules": rules}, {"rules": rules}],
        "clusterPermissions": [{"serviceAccountName": "b", "rules": rules}, {"serviceAccountName": "a", "rules": []}],
    })));
    let everywhere = names(&csv, in_ns());
    let kinds = |names: &[String]| -> Vec<String> {
        names.iter().map(|name| name.split_once('/').unwrap().0.to_owned()).collect()
    };
    let role_and_binding = ["ClusterRole ", "ClusterRoleBinding "];
    let expected = [&["ServiceAccount ns", "ServiceAccount ns"][..], &role_and_binding.repeat(4)].concat();
    assert_eq!(kinds(&everywhere), expected);
    // For one namespace, permissions are Roles in it.
    let watching = RenderOptions { watch_namespace: Some("watched"), ..in_ns() };
    let roles = ["Role watched", "RoleBinding watched"].repeat(2);
    let expected = [&["ServiceAccount ns", "ServiceAccount ns"][..], &roles, &role_and_binding.repeat(2)].concat();
    assert_eq!(kinds(&names(&csv, watching)), expected);
    let binding = one(&csv, watching, "RoleBinding");
    assert_eq!(binding["subjects"], json!([{"kind": "ServiceAccount", "name": "a", "namespace": "ns"}]));
    assert_eq!(binding["roleRef"]["kind"], "Role");
    assert_eq!(one(&csv, watching, "Role")["rules"], rules);
    // The hash depends on the rules, so a promoted role has another name.
    let promoted = one(&csv, in_ns(), "ClusterRole")["metadata"]["name"].clone();
    assert_eq!(promoted, "p.v1.0.0-b-1ut1kuvo6uyxbrp8qqt8oifskwjxyxhxmaqxvcsjaivw", "clusterPermissions come first");
    let input = RenderInput { csv: &csv, properties: None };
    let earlier = earlier_role_names(input).unwrap();
    assert_eq!(earlier[0], one(&csv, watching, "Role")["metadata"]["name"]);
}

/// The objects that operator-controller renders for this ClusterServiceVersion.
#[test]
fn a_deployment_has_the_annotations_of_the_csv_and_the_fields_that_go_knows() {
    let spec = json!({
        "replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "unknown": 1,
        "template": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"own": "template"}},
            "spec": {"containers": [{"name": "m", "image": "i", "typo": 1,
                "resources": {"requests": {"cpu": 2, "memory": "1024Mi"}}}]},
        },
    });
    let csv = csv(&install(&json!({"deployments": [{"name": "d", "label": {"l": "1"}, "spec": spec}]})));
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ns", "labels": {"l": "1"}},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "strategy": {}, "revisionHistoryLimit": 1,
            "template": {
                "metadata": {"labels": {"app": "x"}, "annotations": {"capabilities": "Basic", "own": "template",
                    "olm.targetNamespaces": "", "olm.operatorNamespace": "ns"}},
                "spec": {"containers": [{"name": "m", "image": "i",
                    "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]},
            },
        },
    });
    let [deployment] = rendered(&csv, in_ns()).try_into().unwrap();
    assert_eq!(deployment.value, expected);
    let watching = RenderOptions { watch_namespace: Some("w"), ..in_ns() };
    let annotations = &one(&csv, watching, "Deployment")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["olm.targetNamespaces"], "w");
}

#[test]
fn the_properties_of_a_bundle_are_an_annotation() {
    let csv = csv(&install(&json!({"deployments": [{"name": "d"}]})));
    let annotation = |properties: Option<&[Property]>| {
        let objects = render(RenderInput { csv: &csv, properties }, in_ns()).unwrap();
        objects[0].value["spec"]["template"]["metadata"]["annotations"]["olm.properties"].clone()
    };
    let property = Property { kind: "olm.x".into(), value: r#"{"z":1,"a":"<b>"}"#.into() };
    assert_eq!(annotation(None), Value::Null);
    assert_eq!(annotation(Some(&[])), "null");
    assert_eq!(annotation(Some(&[property])), r#"[{"type":"olm.x","value":{"a":"\u003cb\u003e","z":1}}]"#);
}

fn with_webhooks(webhooks: &Value) -> Value {
    let spec = json!({
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"spec": {"volumes": [{"name": "cert", "emptyDir": {}}, {"name": "data", "emptyDir": {}}],
            "containers": [{"name": "m", "volumeMounts": [
                {"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"},
                {"name": "data", "mountPath": "/data"}]}]}},
    });
    let mut spec = install(&json!({"deployments": [{"name": "controller.manager", "spec": spec}]}));
    spec["webhookdefinitions"] = webhooks.clone();
    csv(&spec)
}

#[test]
fn webhooks_have_a_service_and_certificates() {
    let csv = with_webhooks(&json!([
        {"type": "ValidatingAdmissionWebhook", "generateName": "v.kb.io-", "deploymentName": "controller.manager",
         "containerPort": 443, "targetPort": 9443, "webhookPath": "/v", "sideEffects": "None", "timeoutSeconds": 0,
         "admissionReviewVersions": ["v1"], "failurePolicy": "Fail"},
        {"type": "MutatingAdmissionWebhook", "generateName": "m.kb.io", "deploymentName": "controller.manager",
         "reinvocationPolicy": "Never"},
    ]));
    let service = "controller-manager-service";
    let base = [
        "Deployment ns/controller.manager",
        "ValidatingWebhookConfiguration ns/v.kb.io",
        "MutatingWebhookConfiguration ns/m.kb.io",
        "Service ns/controller-manager-service",
    ];
    let with = |provider| RenderOptions { certificates: provider, ..in_ns() };
    assert_eq!(names(&csv, in_ns()), base);
    let issuer = format!("Issuer ns/{service}-cert-selfsigned-issuer");
    let certificate = format!("Certificate ns/{service}-cert");
    let cert_manager = with(Some(CertificateProvider::CertManager));
    assert_eq!(names(&csv, cert_manager), [&base[..], &[&issuer, &certificate]].concat());
    let service_ca = with(Some(CertificateProvider::ServiceCa));
    assert_eq!(names(&csv, service_ca), base);

    let validating = one(&csv, cert_manager, "ValidatingWebhookConfiguration");
    assert_eq!(
        validating["metadata"]["annotations"],
        json!({"cert-manager.io/inject-ca-from": format!("ns/{service}-cert")})
    );
    let reference = json!({"namespace": "ns", "name": service, "path": "/v", "port": 443});
    assert_eq!(
        validating["webhooks"],
        json!([{"name": "v.kb.io", "clientConfig": {"service": reference},
        "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 0, "admissionReviewVersions": ["v1"]}])
    );
    // Without a port, OLM writes 0, which the API server refuses.
    let mutating = one(&csv, service_ca, "MutatingWebhookConfiguration");
    assert_eq!(
        mutating["webhooks"],
        json!([{"name": "m.kb.io", "sideEffects": null, "admissionReviewVersions": null,
        "clientConfig": {"service": {"namespace": "ns", "name": service, "port": 0}}, "reinvocationPolicy": "Never"}])
    );
    assert_eq!(mutating["metadata"]["annotations"], json!({"service.beta.openshift.io/inject-cabundle": "true"}));
    let made = one(&csv, service_ca, "Service");
    assert_eq!(
        made["metadata"]["annotations"],
        json!({"service.beta.openshift.io/serving-cert-secret-name": format!("{service}-cert")})
    );
    let ports =
        json!([{"name": "443", "port": 443, "targetPort": 443}, {"name": "443", "port": 443, "targetPort": 9443}]);
    assert_eq!(made["spec"], json!({"ports": ports, "selector": {"app": "x"}}));
    let watching = RenderOptions { watch_namespace: Some("w"), ..cert_manager };
    assert_eq!(
        one(&csv, watching, "ValidatingWebhookConfiguration")["webhooks"][0]["namespaceSelector"],
        json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["w"]}]})
    );

    // The certificate replaces what was mounted at its path.
    let pod = &one(&csv, cert_manager, "Deployment")["spec"]["template"]["spec"];
    let volumes: Vec<&Value> = pod["volumes"].as_array().unwrap().iter().map(|volume| &volume["name"]).collect();
    assert_eq!(volumes, ["data", "webhook-cert", "apiservice-cert"]);
    let mounts = &pod["containers"][0]["volumeMounts"];
    let mounts: Vec<&Value> = mounts.as_array().unwrap().iter().map(|mount| &mount["mountPath"]).collect();
    assert_eq!(mounts, ["/data", "/tmp/k8s-webhook-server/serving-certs", "/apiserver.local.config/certificates"]);
    assert_eq!(one(&csv, in_ns(), "Deployment")["spec"]["template"]["spec"]["volumes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_crd_is_converted_by_the_webhook_that_names_it() {
    let csv = with_webhooks(
        &json!([{"type": "ConversionWebhook", "generateName": "c", "deploymentName": "controller.manager",
        "containerPort": 9443, "admissionReviewVersions": ["v1"], "conversionCRDs": ["a.b"]}]),
    );
    let options = RenderOptions { certificates: Some(CertificateProvider::CertManager), ..in_ns() };
    assert_eq!(crd_conversion(&csv, "other.b", options), None);
    let found = crd_conversion(&csv, "a.b", options).unwrap();
    let service = json!({"namespace": "ns", "name": "controller-manager-service", "path": "/", "port": 9443});
    assert_eq!(
        found.conversion,
        json!({"strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}})
    );
    assert_eq!(found.annotation.unwrap().1, "ns/controller-manager-service-cert");
    assert_eq!(crd_conversion(&csv, "a.b", in_ns()).unwrap().annotation, None);
}

#[test]
fn the_configuration_changes_all_deployments() {
    let pod = json!({
        "containers": [{"name": "m", "env": [{"name": "A", "value": "1"}, {"name": "B"}], "resources": {"limits": {"cpu": "1"}}}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t"}]}},
        "tolerations": [{"key": "k"}], "nodeSelector": {"a": "b"}, "volumes": [{"name": "v", "emptyDir": {}}],
    });
    let csv = csv(&install(&json!({"deployments": [{"name": "d", "spec": {"template": {"spec": pod}}}]})));
    let with = |config: &Value| {
        let options = RenderOptions { deployment_config: Some(config), ..in_ns() };
        one(&csv, options, "Deployment")
    };
    let pod_with = |config: &Value| with(config)["spec"]["template"]["spec"].clone();
    let pod = pod_with(&json!({
        "env": [{"name": "B", "value": "2"}, {"name": "C"}], "resources": {"limits": {"cpu": 0.5}},
        "tolerations": [{"key": "k"}, {"key": "l"}], "nodeSelector": {}, "volumes": [{"name": "v", "configMap": {"name": "c"}}],
    }));
    let container = &pod["containers"][0];
    assert_eq!(container["env"], json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C"}]));
    assert_eq!(container["resources"], json!({"limits": {"cpu": "500m"}}));
    assert_eq!(pod["tolerations"], json!([{"key": "k"}, {"key": "l"}]));
    assert_eq!((pod.get("nodeSelector"), &pod["volumes"][0]["configMap"]), (None, &json!({"name": "c"})));
    for (affinity, left) in [
        (json!({}), vec![]),
        (json!({"nodeAffinity": {}}), vec!["podAffinity"]),
        (json!({"nodeAffinity": {}, "podAffinity": {}}), vec![]),
        (json!({"podAntiAffinity": {}}), vec!["nodeAffinity", "podAffinity"]),
    ] {
        let pod = pod_with(&json!({"affinity": affinity}));
        let found: Vec<&str> =
            pod.get("affinity").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        assert_eq!(found, left, "{affinity}");
        assert_eq!(pod.get("affinity").is_none(), left.is_empty());
    }
    let annotated = with(&json!({"annotations": {"own": "config", "new": "n"}}));
    assert_eq!(annotated["metadata"]["annotations"], json!({"own": "config", "new": "n"}));
    let of_template = &annotated["spec"]["template"]["metadata"]["annotations"];
    assert_eq!((&of_template["own"], &of_template["new"]), (&json!("csv"), &json!("n")));
}

#[test]
fn a_wrong_type_is_reported_with_its_place() {
    let of = |spec: Value| {
        let csv = csv(&spec);
        let WrongType { steps, message } = render(RenderInput { csv: &csv, properties: None }, in_ns()).unwrap_err();
        (steps.iter().map(SourceStep::to_string).collect::<String>(), message)
    };
    let deployments = |spec: Value| install(&json!({"deployments": [{"name": "d", "spec": spec}]}));
    let path = ".spec.install.spec.deployments[0].spec";
    for (spec, at, message) in [
        (deployments(json!({"replicas": "1"})), format!("{path}.replicas"), "must be an integer, but is a string"),
        (deployments(json!([])), path.to_owned(), "must be a mapping, but is a list"),
        (
            deployments(json!({"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}}})),
            format!("{path}.template.spec.containers[0].resources.limits.cpu"),
            "\"much\" is not a quantity",
        ),
        (json!({"webhookdefinitions": {}}), ".spec.webhookdefinitions".to_owned(), "must be a list, but is a mapping"),
        (
            json!({"webhookdefinitions": [{"sideEffects": 1}]}),
            ".spec.webhookdefinitions[0].sideEffects".to_owned(),
            "must be a string, but is a number",
        ),
    ] {
        assert_eq!(of(spec), (at, message.to_owned()));
    }
}

#[test]
fn every_rendered_object_names_its_place() {
    let mut csv = with_webhooks(&json!([{"type": "ValidatingAdmissionWebhook", "generateName": "v.kb.io",
        "deploymentName": "controller.manager"}]));
    csv["spec"]["install"]["spec"]["permissions"] = json!([{"serviceAccountName": "a", "rules": []}]);
    let options = RenderOptions { certificates: Some(CertificateProvider::CertManager), ..in_ns() };
    for RenderedObject { value, steps, renamed } in rendered(&csv, options) {
        let source = go::find(&csv, &steps).unwrap_or_else(|| panic!("{} at {steps:?}", value["kind"]));
        for RenamedField { rendered, source: at } in renamed {
            // Only fields that the object has count.
            if go::find(&value, rendered).is_some() && !at.is_empty() && value["kind"] != "Service" {
                let is_there = go::find(source, at).is_some() || *at == [CsvStep::Key("containerPort")];
                assert!(is_there, "{} {rendered:?}: {at:?}", value["kind"]);
            }
        }
    }
}

//! Compares what server-side apply cannot parse with the API server: generated schemas, built-in kinds and CRDs.

use std::collections::{BTreeMap, BTreeSet};

use crate::comparison::{FIELDS, crd};
use crate::generator::{self, Random};
use crate::servers::{ComparedRelease, compared_releases};
use crate::support::{Api, eventually, isolated};
use crate::validator::{run_length, seed};
use gantry_core::resource::Step;
use gantry_schema::typed::{self, Duplicates, TypedValueError, UnreadableKind};
use serde_json::{Value, json};

/// Manifests of generated schemas, most of them broken: which parts the server cannot decode by the types of the
/// schema, with its messages.
#[test]
fn values_that_an_apply_cannot_parse_are_those_of_the_server() {
    compared_releases().into_iter().for_each(values_that_an_apply_cannot_parse);
}

fn values_that_an_apply_cannot_parse(compared: ComparedRelease) {
    let group = isolated().group;
    let api = compared.api();
    let (mut read, mut refused) = (0, BTreeMap::<UnreadableKind, usize>::new());
    for at in 0..run_length().div_ceil(FIELDS).min(40) {
        let mut random = Random::new(seed().wrapping_mul(1_000_033).wrapping_add(at as u64));
        let fields = (0..FIELDS).map(|field| (format!("f{field}"), generator::schema(&mut random)));
        let mut fields: BTreeMap<String, Value> = fields.collect();
        let mut crd = crd(&group, at);
        crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let schema = loop {
            let schema = json!({"type": "object", "properties": fields});
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
            let (status, answer) = api.post(collection, &crd);
            if status == 201 {
                break schema;
            }
            let (text, before) = (answer.to_string(), fields.len());
            fields.retain(|field, _| !text.contains(&format!("[{field}]")));
            assert!(fields.len() < before, "the server refuses the CRD for no field: {answer}");
        };
        let resource = format!("/apis/{group}/v1/diff{at}s");
        eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
        for _ in 0..20 {
            let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": format!("Diff{at}"),
                "metadata": {"name": "x", "finalizers": random.pick(&[json!([]), json!(["a.b/c", "a.b/c"]), json!([null])])}});
            for (field, schema) in &fields {
                let mut value = generator::value(&mut random, schema);
                for _ in 0..random.below(4) {
                    value = generator::broken(&mut random, &value);
                }
                object[field] = value;
            }
            // An apply is parsed as YAML, which has no negative zero.
            let object: Value = serde_json::from_str(&object.to_string().replace("-0.0", "0")).expect("an object");
            let found = typed::unreadable(&schema, &object, Duplicates::Refused, compared.release);
            same_as_server(api, &format!("{resource}/x"), &object, &found);
            found.iter().for_each(|found| *refused.entry(found.kind).or_default() += 1);
            read += fields.len();
        }
        api.delete(&format!("{collection}/diff{at}s.{group}"));
    }
    println!("{}: {read} values, refused: {refused:?}", compared.release);
    assert_eq!(refused.len(), 4, "each kind of refusal: {refused:?}");
}

/// Objects of built-in kinds and CRDs, most of them broken.
#[test]
fn values_of_built_in_kinds_that_an_apply_cannot_parse_are_those_of_the_server() {
    compared_releases().into_iter().for_each(values_of_built_in_kinds_that_an_apply_cannot_parse);
}

fn values_of_built_in_kinds_that_an_apply_cannot_parse(compared: ComparedRelease) {
    let api = compared.api();
    let names = isolated();
    let metadata = json!({"name": "x", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"},
        "finalizers": ["a.b/c"], "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}]});
    let pod = json!({
        "containers": [{"name": "c", "image": "i", "command": ["a"], "tty": true, "securityContext": {"runAsUser": 1},
            "env": [{"name": "A", "value": "a"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 3},
            "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "volumeMounts": [{"name": "v", "mountPath": "/m"}]}],
        "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "configMap": {"name": "c", "items": []}}],
    });
    let text = json!({"type": "string", "default": "a", "enum": ["a", "b"], "maxLength": 3, "nullable": true,
        "x-kubernetes-validations": [{"rule": "true", "message": "m", "optionalOldSelf": true}, {"rule": "self != ''"}]});
    let schema = json!({"type": "object", "description": "d", "required": ["a"], "x-kubernetes-map-type": "atomic",
        "externalDocs": {"url": "u"}, "not": {"required": ["b"]}, "allOf": [{"required": ["a"]}], "properties": {
        "a": text, "n": {"type": "number", "minimum": 1.5, "exclusiveMinimum": true, "maximum": 4, "multipleOf": 0.5},
        "l": {"type": "array", "items": text, "minItems": 1, "x-kubernetes-list-type": "set"},
        "m": {"type": "object", "additionalProperties": text, "maxProperties": 3},
        "k": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object",
            "required": ["a"], "properties": {"a": {"type": "string"}}}},
        "x": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "e": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}});
    let crd = json!({
        "group": names.group, "scope": "Namespaced", "preserveUnknownFields": false,
        "names": {"plural": "things", "kind": "Thing", "singular": "thing", "shortNames": ["th"], "categories": ["all"]},
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"caBundle": "", "service": {"name": "s", "namespace": "n", "path": "/c", "port": 443}}}},
        "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": true, "deprecationWarning": "w",
            "schema": {"openAPIV3Schema": schema}, "selectableFields": [{"jsonPath": ".a"}],
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b", "labelSelectorPath": ".c"}},
            "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a", "priority": 1, "format": "f"}]}],
    });
    let labels = json!({"app": "x"});
    let bases = [
        ("v1", "Pod", "pods", "core.v1", json!({"spec": pod})),
        (
            "apps/v1",
            "Deployment",
            "deployments",
            "apps.v1",
            json!({"spec": {"replicas": 1,
            "selector": {"matchLabels": labels, "matchExpressions": [{"key": "k", "operator": "Exists"}]},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}, "template": {"spec": pod}}}),
        ),
        (
            "v1",
            "Service",
            "services",
            "core.v1",
            json!({"spec": {"selector": labels, "clusterIPs": ["None"],
            "ports": [{"port": 80, "targetPort": "http"}, {"port": 80, "protocol": "UDP", "targetPort": 8}]}}),
        ),
        (
            "v1",
            "Secret",
            "secrets",
            "core.v1",
            json!({"data": {"a": "YQ=="}, "stringData": {"b": "b"}, "immutable": true}),
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "Role",
            "roles",
            "rbac.v1",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            "ingresses",
            "networking.v1",
            json!({"spec": {"rules": [{"host": "h", "http": {
            "paths": [{"path": "/", "pathType": "Exact", "backend": {"service": {"name": "s", "port": {"number": 1}}}}]}}]}}),
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "autoscaling.v2",
            json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"kind": "K", "name": "n"}, "metrics": [{"type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}),
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "",
            json!({"spec": crd,
            "status": {"storedVersions": ["v1"], "conditions": [{"type": "Established", "status": "True"}]}}),
        ),
    ];
    let (mut objects, mut refused) = (0, BTreeMap::<UnreadableKind, usize>::new());
    let mut random = Random::new(seed().wrapping_mul(7_368_787));
    for (api_version, kind, plural, group, rest) in bases {
        let prefix = if api_version.contains('/') { "apis" } else { "api" };
        let (_, document) = api.get(&format!("/openapi/v3/{prefix}/{api_version}"));
        let definitions = &document["components"]["schemas"];
        let mut base = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        base.as_object_mut().expect("a map").extend(rest.as_object().expect("a map").clone());
        let is_crd = kind == "CustomResourceDefinition";
        let place = if is_crd { "" } else { "/namespaces/default" };
        for round in 0..(4 * run_length()).min(4000) {
            let mut object = base.clone();
            for _ in 0..round.min(1 + random.below(5)) {
                object = generator::broken(&mut random, &object);
            }
            if !object.is_object() {
                continue;
            }
            // These lead the request to its kind and name.
            for key in ["apiVersion", "kind"] {
                object[key] = base[key].clone();
            }
            if !object["metadata"].is_object() {
                object["metadata"] = metadata.clone();
            }
            for key in ["name", "namespace"] {
                object["metadata"][key] = metadata[key].clone();
            }
            if is_crd {
                object["metadata"]["name"] = format!("things.{}", names.group).into();
                object["metadata"].as_object_mut().expect("a map").shift_remove("namespace");
            }
            let object: Value = serde_json::from_str(&object.to_string().replace("-0.0", "0")).expect("an object");
            let found = if is_crd {
                typed::unreadable_crd(&object, compared.release)
            } else {
                let schema = &definitions[format!("io.k8s.api.{group}.{kind}")];
                assert!(schema.is_object(), "{kind} is not described");
                typed::unreadable_by(schema, definitions, &object, Duplicates::Refused, compared.release)
            };
            let name = object["metadata"]["name"].as_str().expect("a name");
            same_as_server(api, &format!("/{prefix}/{api_version}{place}/{plural}/{name}"), &object, &found);
            found.iter().for_each(|found| *refused.entry(found.kind).or_default() += 1);
            objects += 1;
        }
    }
    println!("{}: {objects} objects, refused: {refused:?}", compared.release);
    assert_eq!(refused.len(), 4, "each kind of refusal: {refused:?}");
}

/// Compares what is found in an object with the server's answer to an apply.
fn same_as_server(api: &Api, path: &str, object: &Value, found: &[TypedValueError]) {
    let ours: BTreeSet<String> = found.iter().map(ToString::to_string).collect();
    let theirs = unreadable_by(api, path, object);
    // The server iterates over the fields of a map in random order, and stops at the first unknown one.
    let left: Vec<String> = found.iter().filter(|found| found.kind == UnreadableKind::Undeclared).map(parent).collect();
    let is_left_out = |said: &str| left.iter().any(|parent| said.starts_with(parent));
    // A map that is a key is printed in random order, too.
    let is_reordered =
        |said: &str| [&ours, &theirs].iter().all(|side| side.iter().any(|other| letters(other) == letters(said)));
    let differing: Vec<_> = ours
        .symmetric_difference(&theirs)
        .filter(|said| !is_reordered(said) && (theirs.contains(*said) || !is_left_out(said)))
        .take(10)
        .collect();
    assert!(differing.is_empty(), "only one side says {differing:#?} of {object}");
}

/// The path of the map that has an unknown field.
fn parent(found: &TypedValueError) -> String {
    let Some(Step::Key(field)) = found.at.last() else { panic!("an unknown field is a field: {found}") };
    found.path[..found.path.len() - field.len()].to_owned()
}

fn letters(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters
}

/// The lines of a server's refusal to decode an apply; empty if it can be decoded.
fn unreadable_by(api: &Api, path: &str, object: &Value) -> BTreeSet<String> {
    let (_, answer) = api.server_side_apply(path, "gantry&dryRun=All", object);
    let message = answer["message"].as_str().unwrap_or_default();
    let said = message.strip_prefix("failed to create typed patch object (").and_then(|rest| rest.split_once("): "));
    let said = said.map_or("", |(_, said)| said);
    let lines = said.split("\n  ").filter(|line| *line != "errors:" && !line.is_empty());
    lines.map(str::to_owned).collect()
}

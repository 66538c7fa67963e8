//! Pairs of objects whose lists and maps are merged in every way that schemas can say.

use serde_json::{Value, json};

use crate::support::merge;

/// A CRD schema that contains every way in which the API server merges.
pub(super) fn every_way_to_merge() -> Value {
    let text = json!({"type": "string"});
    let pair = json!({"type": "object", "properties": {"name": text, "zone": {"type": "string", "default": "a"},
        "port": {"type": "integer"}, "value": text, "tags": {"type": "array", "items": text}}});
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "text": text, "number": {"type": "number"}, "nullable": {"type": "string", "nullable": true},
        "either": {"x-kubernetes-int-or-string": true},
        "map": {"type": "object", "additionalProperties": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "deep": {"type": "object", "properties": {"inner": {"type": "object", "properties": {"a": text, "b": text}}}},
        "atomic": {"type": "array", "items": text},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": merged(&pair, json!({"required": ["name"]}))},
        "twice": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "zone"],
            "items": merged(&pair, json!({"required": ["port"]}))},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "array", "x-kubernetes-list-type": "set", "items": text}}},
        "defaulted": {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "x"}}},
    }}}})
}

pub(super) fn merged(base: &Value, rest: Value) -> Value {
    let mut value = base.clone();
    merge(&mut value, rest);
    value
}

/// The live and the desired object, each as a `spec`.
pub(super) fn custom_shapes() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("equal", json!({"text": "a", "number": 1}), json!({"text": "a", "number": 1.0})),
        ("scalar", json!({"text": "a", "number": 1}), json!({"text": "b", "number": 1.5})),
        ("added", json!({"text": "a"}), json!({"number": 1, "map": {"a": "b"}})),
        ("null", json!({"text": "a", "nullable": "a", "map": {"a": "b"}}), json!({"nullable": null, "map": null})),
        ("either", json!({"either": 80}), json!({"either": "80"})),
        ("map", json!({"map": {"a": "1", "b": "2"}}), json!({"map": {"a": "1", "b": "3", "c": "4"}})),
        ("map-empty", json!({"map": {}}), json!({"map": {"a": "1"}})),
        ("map-emptied", json!({"map": {"a": "1"}}), json!({"map": {}})),
        ("whole", json!({"whole": {"a": "1", "b": "2"}}), json!({"whole": {"a": "1"}})),
        ("whole-same", json!({"whole": {"a": "1", "b": "2"}}), json!({"whole": {"b": "2", "a": "1"}})),
        ("whole-empty", json!({"whole": {}}), json!({"whole": {"a": "1"}})),
        ("deep", json!({"deep": {"inner": {"a": "1", "b": "2"}}}), json!({"deep": {"inner": {"a": "2"}}})),
        ("atomic", json!({"atomic": ["a", "b"]}), json!({"atomic": ["b", "a"]})),
        ("atomic-empty", json!({"atomic": []}), json!({"atomic": ["a"]})),
        ("atomic-same", json!({"atomic": ["a"]}), json!({"atomic": ["a"]})),
        ("nullable", json!({"nullable": null}), json!({"set": ["a"], "nullable": "a"})),
        ("set", json!({"set": ["a", "b"]}), json!({"set": ["b", "c"]})),
        (
            "keyed",
            json!({"keyed": [{"name": "a", "value": "1", "port": 1}, {"name": "b", "value": "2"}]}),
            json!({"keyed": [{"name": "b", "value": "3"}, {"name": "a", "value": "1", "port": 2}, {"name": "c"}]}),
        ),
        (
            "keyed-in-keyed",
            json!({"keyed": [{"name": "a \"b\"", "tags": ["x"]}]}),
            json!({"keyed": [{"name": "a \"b\"", "tags": ["y"]}]}),
        ),
        (
            "two-keys",
            json!({"twice": [{"port": 1, "value": "1"}, {"port": 1, "zone": "b", "value": "2"}]}),
            json!({"twice": [{"port": 1, "zone": "a", "value": "3"}, {"port": 1, "zone": "b", "value": "2"}]}),
        ),
        (
            "free",
            json!({"free": {"a": {"b": 1, "c": [1]}, "known": ["x"]}}),
            json!({"free": {"a": {"b": 2, "c": [1, 2], "d": 3}, "known": ["y"]}}),
        ),
        ("free-type", json!({"free": {"a": {"b": 1}, "c": 1}}), json!({"free": {"a": 1, "c": {"d": 1}}})),
        ("defaulted", json!({"defaulted": {}}), json!({"defaulted": {"x": "y"}})),
    ]
}

/// Built-in kinds: kind, live object, desired object.
pub(super) fn built_in_shapes() -> Vec<(&'static str, &'static str, &'static str, Value, Value)> {
    let pod = |containers: Value, rest: Value| {
        let spec = merged(&json!({"containers": containers}), rest);
        json!({"spec": {"selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}})
    };
    let container = |rest: Value| merged(&json!({"name": "c", "image": "one"}), rest);
    vec![
        (
            "apps/v1",
            "Deployment",
            "image",
            pod(json!([container(json!({}))]), json!({})),
            pod(json!([container(json!({"image": "two"}))]), json!({})),
        ),
        (
            "apps/v1",
            "Deployment",
            "lists",
            pod(
                json!([container(json!({"args": ["a"], "env": [{"name": "A", "value": "1"}],
                    "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}))]),
                json!({"nodeSelector": {"a": "b"}, "volumes": [{"name": "v", "emptyDir": {}}],
                    "tolerations": [{"key": "a", "operator": "Exists"}], "imagePullSecrets": [{"name": "s"}]}),
            ),
            pod(
                json!([container(json!({"args": ["b"], "env": [{"name": "A", "value": "2"}],
                    "ports": [{"containerPort": 80, "name": "web"}], "resources": {"limits": {"cpu": "1000m"}}}))]),
                json!({"nodeSelector": {"c": "d"}, "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
                    "tolerations": [{"key": "b", "operator": "Exists"}], "imagePullSecrets": [{"name": "t"}]}),
            ),
        ),
        (
            "apps/v1",
            "Deployment",
            "replicas",
            merged(&pod(json!([container(json!({}))]), json!({})), json!({"spec": {"replicas": 1}})),
            merged(&pod(json!([container(json!({}))]), json!({})), json!({"spec": {"replicas": 3}})),
        ),
        (
            "v1",
            "Service",
            "ports",
            json!({"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": 1}]}}),
            json!({"spec": {"selector": {"a": "c"}, "ports": [{"port": 80, "protocol": "TCP", "targetPort": 2}]}}),
        ),
        (
            "v1",
            "ConfigMap",
            "metadata",
            json!({"metadata": {"labels": {"a": "1"}, "annotations": {"x/y": "1"}, "finalizers": ["a.example.com/f"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}, "data": {"a": "1"}}),
            json!({"metadata": {"labels": {"a": "2"}, "annotations": {"x/y": "2"}, "finalizers": ["b.example.com/f"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u"}]}, "data": {"a": "1"}}),
        ),
        (
            "v1",
            "ConfigMap",
            "new-metadata",
            json!({"data": {"a": "1"}}),
            json!({"metadata": {"labels": {"a": "2"}, "annotations": {"x/y": "2"}}, "data": {"a": "1", "b": "2"}}),
        ),
        ("v1", "ServiceAccount", "new-list", json!({}), json!({"imagePullSecrets": [{"name": "s"}]})),
        ("v1", "Secret", "text", json!({"data": {"a": "YQ=="}}), json!({"stringData": {"a": "b"}})),
        ("v1", "Secret", "data", json!({"data": {"a": "YQ=="}}), json!({"data": {"a": "Yg=="}})),
        (
            "rbac.authorization.k8s.io/v1",
            "Role",
            "rules",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "selector",
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
            json!({"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Ingress"]}}),
        ),
    ]
}

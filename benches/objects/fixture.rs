//! A CRD, its upgrade, and objects of about 1 KB generated from a seed. A known small number of them break.

use serde_json::{Value, json};

use crate::generator::Random;

pub const GROUP: &str = "bench.example.com";
pub const COLLECTION: &str = "/apis/bench.example.com/v1/namespaces/default/widgets";

/// One in this many objects has more replicas than the upgrade allows.
pub const REFUSED: usize = 40_000;
/// One in this many objects has a field that the upgrade prunes.
pub const PRUNED: usize = 5_000;

/// The upgrade of the CRD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Upgrade {
    /// Fewer replicas, a removed field, a new field, an additional rule.
    Plain,
    /// The same, and the new field has a default, which is filled in in every object.
    Defaulted,
}

/// The CRD, before or after an upgrade.
pub fn crd(upgrade: Option<Upgrade>) -> Value {
    let mut spec = json!({
        "type": "object",
        "required": ["image", "ports"],
        "properties": {
            "image": {"type": "string", "maxLength": 200, "pattern": "^[a-z0-9./-]+:[a-z0-9.-]+$"},
            "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 200, "default": 1},
            "paused": {"type": "boolean"},
            "legacyMode": {"type": "string"},
            "schedule": {"type": "string", "minLength": 1},
            "interval": {"type": "string", "format": "duration"},
            "strategy": {"type": "object", "properties": {
                "type": {"type": "string", "enum": ["Recreate", "RollingUpdate"], "default": "RollingUpdate"},
                "maxSurge": {"x-kubernetes-int-or-string": true},
            }},
            "selector": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}},
            "ports": {"type": "array", "maxItems": 64, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name", "port"], "properties": {
                    "name": {"type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": 15},
                    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                    "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"},
                }}},
            "arguments": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 256}},
            "resources": {"type": "object", "properties": {
                "cpu": {"x-kubernetes-int-or-string": true, "pattern": "^[0-9]+m?$"},
                "memory": {"x-kubernetes-int-or-string": true},
            }},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.paused) || !self.paused || self.replicas == 0 || has(self.schedule)", "message": "paused needs a schedule"},
        ],
    });
    if let Some(upgrade) = upgrade {
        let properties = spec["properties"].as_object_mut().expect("an object");
        properties["replicas"]["maximum"] = json!(100);
        properties.shift_remove("legacyMode");
        let mut priority = json!({"type": "integer"});
        if upgrade == Upgrade::Defaulted {
            priority["default"] = json!(5);
        }
        properties.insert("priority".into(), priority);
        let rules = spec["x-kubernetes-validations"].as_array_mut().expect("a list");
        rules.push(json!({"rule": "self.ports.all(p, p.port > 0)", "message": "ports are positive"}));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {
                    "ready": {"type": "integer"}, "message": {"type": "string"}}}}}}}],
        },
    })
}

/// The object `number`, valid with the live CRD.
pub fn object(seed: u64, number: usize) -> Value {
    let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0x9E37_79B9));
    let ports: Vec<Value> = (0..1 + random.below(2))
        .map(|port| json!({"name": format!("port-{port}"), "port": 1024 + random.below(60_000), "protocol": "TCP"}))
        .collect();
    let arguments: Vec<String> =
        (0..2).map(|_| format!("--option-{:x}={:x}", random.below(99), random.next())).collect();
    let replicas = if number % REFUSED == 1 { 150 } else { random.below(10) };
    let mut spec = json!({
        "image": format!("registry.example.com/team/app-{:x}:v{}", random.next(), random.below(90)),
        "replicas": replicas,
        "paused": false,
        "schedule": format!("{} 4 * * *", random.below(60)),
        "interval": format!("{}m", 1 + random.below(50)),
        "strategy": {"type": "RollingUpdate", "maxSurge": "25%"},
        "selector": {"app": format!("app-{:x}", random.next())},
        "ports": ports,
        "arguments": arguments,
        "resources": {"cpu": "500m", "memory": 268_435_456},
    });
    if number % PRUNED == 2 {
        spec["legacyMode"] = json!("on");
    }
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Widget",
        "metadata": {"name": format!("widget-{number:06}"), "labels": {"team": format!("team-{}", random.below(40))}},
        "spec": spec,
    })
}

//! Validation of custom resources: how many objects one core validates in a second.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gantry_schema::Schema;
use serde_json::{Value, json};

/// A resource with twenty rules of the most common kinds in real CRDs.
fn schema() -> Schema {
    let rule = |rule: &str| json!({"rule": rule, "message": "no"});
    let listener = json!({"type": "object", "required": ["name", "port"], "properties": {
        "name": {"type": "string", "maxLength": 63}, "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string", "enum": ["HTTP", "HTTPS", "TCP"]},
        "host": {"type": "string"}, "tls": {"type": "object", "properties": {"mode": {"type": "string"}}}},
        "x-kubernetes-validations": [
            rule("self.protocol != 'HTTPS' || has(self.tls)"),
            rule("!has(self.tls) || !has(self.tls.mode) || self.tls.mode in ['Terminate', 'Passthrough']"),
            rule("self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"),
            rule("!has(self.host) || self.host == '' || !self.host.startsWith('.')")]});
    let spec = json!({"type": "object", "properties": {
        "listeners": {"type": "array", "maxItems": 64, "items": listener, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "x-kubernetes-validations": [
                rule("self.all(l, l.protocol in ['HTTP', 'HTTPS'] ? true : !has(l.tls))"),
                rule("self.all(a, self.exists_one(b, a.port == b.port && a.protocol == b.protocol))")]},
        "replicas": {"type": "integer", "x-kubernetes-validations": [rule("self >= 0"), rule("self <= 100")]},
        "interval": {"type": "string", "x-kubernetes-validations": [rule("duration(self) >= duration('1ms')")]},
        "class": {"type": "string", "x-kubernetes-validations": [rule("self == oldSelf"), rule("self.size() > 0")]},
        "url": {"type": "string", "x-kubernetes-validations": [rule("isURL(self) && url(self).getScheme() == 'https'")]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-validations": [
            rule("self.all(k, k.size() < 64)"), rule("self.all(k, !k.contains('*'))")]},
        "either": {"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [
            rule("type(self) == int ? self > 0 : self.endsWith('%')")]}},
        "x-kubernetes-validations": [
            rule("!has(self.replicas) || self.replicas < 50 || has(self.interval)"),
            rule("(has(self.url) ? 1 : 0) + (has(self.class) ? 1 : 0) > 0"),
            rule("has(self.listeners) && size(self.listeners) > 0"),
            rule("!has(self.labels) || !('reserved' in self.labels)"),
            rule("has(oldSelf.url) == has(self.url)")]});
    Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema")
}

fn object() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "x", "namespace": "y"}, "spec": {
        "listeners": [{"name": "http", "port": 80, "protocol": "HTTP", "host": "a.example"},
            {"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"mode": "Terminate"}}],
        "replicas": 3, "interval": "30s", "class": "standard", "url": "https://example.com/path",
        "labels": {"app": "web", "tier": "front"}, "either": "50%"}})
}

fn validate(c: &mut Criterion) {
    let (schema, object) = (schema(), object());
    assert!(schema.validate(&object, None).is_accepted());
    assert!(schema.validate(&object, Some(&object)).is_accepted());
    let mut group = c.benchmark_group("validate");
    group.throughput(Throughput::Elements(1));
    group.bench_function("create, 20 rules", |b| b.iter(|| schema.validate(black_box(&object), None)));
    group.bench_function("update, 20 rules", |b| b.iter(|| schema.validate(black_box(&object), Some(&object))));
    group.bench_function("process, 20 rules", |b| {
        b.iter(|| schema.process(black_box(&mut object.clone()), None));
    });
    group.finish();
}

criterion_group!(benches, validate);
criterion_main!(benches);

use serde_json::{Value, json};

use super::*;
use crate::merge::of_kind;

fn text(diff: &Diff) -> String {
    let mark = |line: &Line| match line.is {
        LineKind::Context => ' ',
        LineKind::Removed => '-',
        LineKind::Added => '+',
        LineKind::Note => '#',
    };
    diff.lines.iter().map(|line| format!("{} {}\n", mark(line), line.text)).collect()
}

fn compared(live: &Value, next: &Value) -> String {
    text(&compare(live, next, MergeSchema::Deduced, false, false))
}

fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [
                {"name": "proxy", "image": "envoy:1"},
                {"name": "web", "image": image, "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}}})
}

#[test]
fn a_change_is_shown_below_its_path() {
    assert_eq!(
        compared(&deployment("nginx:1.25"), &deployment("nginx:1.27")),
        "  spec.template.spec.containers[web]:
-   image: nginx:1.25
+   image: nginx:1.27
"
    );
}

#[test]
fn items_are_matched_by_their_key_and_not_by_their_index() {
    let with = |env: Value| json!({"spec": {"containers": [{"name": "web", "env": env}]}});
    let live = with(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]));
    let next = with(json!([{"name": "C", "value": "3"}, {"name": "D", "value": "4"}, {"name": "B", "value": "5"}]));
    assert_eq!(
        compared(&live, &next),
        "  spec.containers[web].env:
#   # the order changed from B, C to C, B
- - {name: A, value: \"1\"}
+ - {name: D, value: \"4\"}
    [B]:
-     value: \"2\"
+     value: \"5\"
"
    );
}

#[test]
fn items_are_matched_by_the_list_keys_of_the_schema() {
    let schema = json!({"properties": {"spec": {"properties": {"rules": {"x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {"properties": {"protocol": {"default": "TCP"}}}}}}}});
    let live = json!({"spec": {"rules": [{"port": 1, "weight": 1}, {"port": 2, "protocol": "UDP", "weight": 1}]}});
    let next = json!({"spec": {"rules": [
        {"port": 1, "protocol": "UDP", "weight": 1}, {"port": 1, "protocol": "TCP", "weight": 2}, {"port": 2, "protocol": "UDP", "weight": 1}]}});
    let shown = text(&compare(&live, &next, of_kind(&schema, None), false, false));
    assert_eq!(
        shown,
        "  spec.rules:
+ - {port: 1, protocol: UDP, weight: 1}
    [1/TCP]:
+     protocol: TCP
-     weight: 1
+     weight: 2
"
    );
}

#[test]
fn a_list_without_keys_is_matched_by_its_items() {
    let with = |args: Value| json!({"args": args});
    assert_eq!(
        compared(&with(json!(["a", "b", "c", "d", "e"])), &with(json!(["a", "b", "c", "x", "e"]))),
        "  args:\n  - b\n  - c\n- - d\n+ - x\n  - e\n"
    );
    assert_eq!(
        compared(&with(json!([{"a": 1, "b": 2}])), &with(json!([{"a": 3, "b": 2}, {"c": 1}]))),
        "  args[0]:\n-   a: 1\n+   a: 3\n  args:\n+ - {c: 1}\n"
    );
    assert_eq!(compared(&with(json!([])), &with(json!([["x"]]))), "  args:\n+ - [x]\n");
}

#[test]
fn a_long_text_is_compared_by_line() {
    let lines = |changed: &str| -> String {
        (1..=300)
            .map(|number| if number == 150 { format!("{changed}\n") } else { format!("line {number}\n") })
            .collect()
    };
    let with = |text: String| json!({"data": {"app.conf": text, "other": "x"}});
    assert_eq!(
        compared(&with(lines("before")), &with(lines("after"))),
        "  data:
    app.conf: |
      line 148
      line 149
-     before
+     after
      line 151
      line 152
"
    );
    let whole = compared(&with(lines("x").replace("line", "a")), &with(lines("x").replace("line", "b")));
    assert!(whole.contains("-     a 1\n") && whole.contains("+     b 300\n"), "{whole}");
    assert!(whole.contains("… 293 more lines"), "{whole}");
    assert!(whole.lines().count() < 40, "{whole}");
}

#[test]
fn a_line_break_at_the_end_is_a_change() {
    let shown = compared(&json!({"data": {"a": "x\ny\n"}}), &json!({"data": {"a": "x\ny"}}));
    assert_eq!(shown, "  data:\n-   a: |\n+   a: |-\n      x\n      y\n");
}

#[test]
fn descriptions_of_a_crd_are_counted_and_its_fields_are_shown() {
    let crd = |described: bool, more: Value| {
        let mut properties: Value =
            (0..40).map(|n| (format!("f{n:02}"), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>().into();
        if described {
            for (_, field) in properties.as_object_mut().unwrap() {
                field["description"] = json!("what it is");
            }
        }
        // A field of that name is a field, and a default is data.
        properties["description"] =
            json!({"type": "object", "default": {"description": if described { "b" } else { "a" }}});
        for (key, value) in more.as_object().unwrap() {
            properties[key] = value.clone();
        }
        json!({"kind": "CustomResourceDefinition", "spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}]}})
    };
    let diff = compare(
        &crd(false, json!({})),
        &crd(true, json!({"replicas": {"type": "integer", "description": "how many"}})),
        MergeSchema::Deduced,
        true,
        false,
    );
    assert_eq!(
        text(&diff),
        "  spec.versions[v1].schema.openAPIV3Schema:
+   replicas: {type: integer}  # how many
    description:
      default:
-       description: a
+       description: b
# # 40 descriptions changed
"
    );
    let all = compare(&crd(false, json!({})), &crd(true, json!({})), MergeSchema::Deduced, true, true);
    assert_eq!(text(&all).matches(" description: what it is").count(), 40);
}

/// A CRD with these versions, each with the fields of its schema.
fn crd(versions: &[(&str, Value)]) -> Value {
    let version = |(name, properties): &(&str, Value)| json!({"name": name, "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}});
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"kind": "CustomResourceDefinition", "spec": {"versions": versions}})
}

#[test]
fn the_same_field_at_many_places_of_a_crd_is_shown_once() {
    let source = |more: Value, most: u64| {
        let mut source = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string", "maxLength": most}}});
        for (key, value) in more.as_object().unwrap() {
            source["properties"][key] = value.clone();
        }
        let sources = json!({"type": "array", "items": source});
        json!({"source": source, "sources": sources, "by": {"type": "object", "additionalProperties": source}})
    };
    let live = source(json!({"old": {"type": "string"}}), 10);
    let next = source(json!({"prefix": {"type": "string", "description": "a\nb\nc"}}), 20);
    let diff = compare(
        &crd(&[("v1", live.clone()), ("v2", live.clone())]),
        &crd(&[("v1", next.clone()), ("v2", next.clone())]),
        MergeSchema::Deduced,
        true,
        false,
    );
    assert_eq!(
        text(&diff),
        "  spec.versions[v1].schema.openAPIV3Schema:
-   by{}.old: {type: string}
#   # the same at 5 more places: v1: source.old, v1: sources[].old, v2: by{}.old, …
+   by{}.prefix: {type: string}  # a …
#   # the same at 5 more places: v1: source.prefix, v1: sources[].prefix, v2: by{}.prefix, …
    by{}.url:
-     maxLength: 10
+     maxLength: 20
#     # the same at 5 more places: v1: source.url, v1: sources[].url, v2: by{}.url, …
"
    );
    // Where there is one version, it is not said again; what differs at one of the places is shown there.
    let mut other = next.clone();
    other["source"]["properties"]["prefix"]["type"] = json!("integer");
    let diff = compare(&crd(&[("v1", live.clone())]), &crd(&[("v1", other)]), MergeSchema::Deduced, true, false);
    let shown = text(&diff);
    assert!(shown.contains("#   # the same at 1 more place: sources[].prefix\n"), "{shown}");
    assert!(shown.contains("+   source.prefix: {type: integer}  # a …\n"), "{shown}");
    // Everything is everything.
    let all = text(&compare(&crd(&[("v1", live)]), &crd(&[("v1", next)]), MergeSchema::Deduced, true, true));
    assert_eq!(
        (all.matches("prefix:").count(), all.matches("maxLength: 20").count(), all.contains("the same")),
        (3, 3, false),
        "{all}"
    );
}

#[test]
fn a_large_new_field_of_a_crd_is_its_first_fields() {
    let text_field = json!({"type": "string", "description": "one\ntwo"});
    let mut fields: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("f{n:02}"), text_field.clone())).collect();
    fields["f00"]["maxLength"] = json!(5);
    let item = json!({"type": "object", "required": ["f00"], "properties": fields});
    let large = json!({"type": "array", "maxItems": 3, "description": "All of them.", "items": item});
    let (live, next) = (crd(&[("v1", json!({}))]), crd(&[("v1", json!({"large": large}))]));
    let added = "+   large:  # All of them.
+     items:
+       properties:
+         f00: {type: string, …}
+         f01: {type: string}
+         f02: {type: string}
+         f03: {type: string}
+         f04: {type: string}
+         f05: {type: string}
+         f06: {type: string}
+         f07: {type: string}
+         # … 12 more fields
+       required: [f00]
+       type: object
+     maxItems: 3
+     type: array
+     # … 94 more lines
";
    let shown = text(&compare(&live, &next, MergeSchema::Deduced, true, false));
    assert!(shown.ends_with(added), "{shown}");
    let gone = text(&compare(&next, &live, MergeSchema::Deduced, true, false));
    assert!(gone.ends_with(&added.replace('+', "-")), "{gone}");
    let all = text(&compare(&live, &next, MergeSchema::Deduced, true, true));
    assert_eq!((all.matches("type: string").count(), all.contains("more")), (20, false), "{all}");
}

#[test]
fn a_long_item_is_one_line_where_it_fits() {
    let with = |env: Value| json!({"spec": {"containers": [{"name": "web", "env": env}]}});
    let from = json!({"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": true}}});
    let kept = json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "a.long.key.of.it", "optional": true}}});
    let (live, next) = (with(json!([kept])), with(json!([kept, from])));
    let head = "  spec.containers[web].env:\n";
    let item = "{name: B, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}";
    assert_eq!(compared(&live, &next), format!("{head}+ - {item}\n"));
    assert_eq!(compared(&next, &live), format!("{head}- - {item}\n"));
    // What is deep inside is left out of a longer one.
    let items: Vec<Value> =
        (0..9).map(|n| json!({"key": format!("file-{n}"), "path": format!("etc/file-{n}")})).collect();
    let volume = json!({"name": "V", "secret": {"secretName": "s", "items": items}});
    assert_eq!(
        compared(&with(json!([])), &with(json!([volume]))),
        format!("{head}+ - {{name: V, secret: {{items: [{}], secretName: s}}}}\n", ["{…}"; 9].join(", "))
    );
    let all = text(&compare(&live, &next, MergeSchema::Deduced, false, true));
    assert!(all.ends_with("+       key: k\n+       optional: true\n"), "{all}");
}

#[test]
fn a_long_field_is_folded_and_a_long_object_cut_off() {
    let many = |count: usize| -> Value {
        (0..count).map(|n| (format!("k{n:03}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
    };
    let diff = compare(&json!({"spec": {}}), &json!({"spec": {"new": many(30)}}), MergeSchema::Deduced, false, false);
    let shown = text(&diff);
    assert!(shown.contains("+   new:\n+     k000: v\n") && shown.ends_with("+     k029: v\n"), "{shown}");
    assert!(shown.contains("# … 24 more lines"), "{shown}");
    let diff = compare(&json!({"spec": {}}), &json!({"spec": many(500)}), MergeSchema::Deduced, false, false);
    assert_eq!((diff.lines.len(), diff.omitted), (200, 301));
    let diff = compare(&json!({"spec": {}}), &json!({"spec": many(500)}), MergeSchema::Deduced, false, true);
    assert_eq!((diff.lines.len(), diff.omitted), (501, 0));
}

#[test]
fn a_diff_leaves_out_fields_that_the_server_maintains() {
    let object = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "2", "generation": 3,
            "creationTimestamp": "x", "managedFields": [{}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "labels": {"applyset.kubernetes.io/part-of": "x", "app": "web"}},
        "status": {"ready": true}, "spec": {"none": null}});
    assert_eq!(without_server_fields(object), json!({"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {}}));
}

#[test]
fn values_of_a_secret_are_marks_that_show_what_is_equal() {
    let mut marks = HiddenValueMarks::default();
    let copy = r#"{"data":{"a":"aHVudGVyMg=="}}"#;
    let mut live = json!({"kind": "Secret", "metadata": {"name": "s", "annotations": {"copy": copy, "said": "it is hunter2"}},
        "data": {"a": "aHVudGVyMg==", "b": "b3RoZXI="}});
    let mut next = json!({"kind": "Secret", "metadata": {"name": "s", "annotations": {"copy": "{}"}},
        "data": {"a": "b3RoZXI=", "b": "b3RoZXI="}, "stringData": {"c": "hunter2"}, "stringdata": {"d": 1}});
    marks.hide(&mut [&mut live, &mut next], Hiding::Secret);
    assert_eq!(live["data"], json!({"a": "[hidden 2]", "b": "[hidden 3]"}));
    assert_eq!(next["data"], json!({"a": "[hidden 3]", "b": "[hidden 3]"}));
    assert_eq!(next["stringData"]["c"], "[hidden 2]");
    let all = format!("{live}{next}");
    for value in ["hunter2", "aHVudGVyMg", "other", "b3RoZXI"] {
        assert!(!all.contains(value), "{all}");
    }
    assert_eq!(live["metadata"]["annotations"]["said"], "it is [hidden]");
}

#[test]
fn redacted_objects_keep_their_keys() {
    let mut marks = HiddenValueMarks::default();
    let mut object =
        json!({"kind": "Sample", "metadata": {"name": "s", "labels": {"app": "web"}}, "spec": {"n": 3, "t": "web"}});
    marks.hide(&mut [&mut object], Hiding::All);
    assert_eq!(
        object,
        json!({"kind": "Sample", "metadata": {"name": "s", "labels": {"app": "[string 1]"}}, "spec": {"n": "[number 2]", "t": "[string 1]"}})
    );
}

#[test]
fn a_diff_of_two_long_lines_shows_where_they_differ() {
    let long = |end: &str| json!({"data": {"a": format!("{}{end}", "x".repeat(100_000))}});
    let shown = compared(&long("before"), &long("after"));
    assert!(shown.contains("before\n") && shown.contains("after\n"), "{shown}");
    assert!(shown.len() < 600, "{shown}");
}

#[test]
fn a_created_object_is_shown_whole() {
    let object =
        json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "1\n2", "l": [{"x": 1, "y": 2}]}});
    assert_eq!(
        text(&diff_created(&object, false)),
        "+ kind: ConfigMap\n+ metadata:\n+   name: a\n+ data:\n+   b: |-\n+     1\n+     2\n+   l:\n+   - x: 1\n+     \"y\": 2\n"
    );
}

/// Two texts of a megabyte that have nothing in common.
#[test]
fn comparing_hostile_texts_is_bounded() {
    let text = |letter: char| (0..250_000).map(|n| format!("{letter}{}\n", n % 7)).collect::<String>();
    let diff = compare(
        &json!({"data": {"a": text('a')}}),
        &json!({"data": {"a": text('b')}}),
        MergeSchema::Deduced,
        false,
        false,
    );
    assert!(diff.lines.len() < 30);
}

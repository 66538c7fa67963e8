//! Strings are stored as the manifest has them: the server parses the body of a server-side apply as YAML, which treats
//! some characters differently than JSON.

use std::collections::BTreeMap;

use crate::support::{Bed, control_plane};
use serde_json::json;

/// Characters that YAML parsers treat as line breaks, refuse or drop, and others next to them.
fn characters() -> Vec<char> {
    let controls = (0..0x20).chain(0x7f..0xa1);
    let others = [
        0xad, 0x2028, 0x2029, 0xd7ff, 0xe000, 0xfdcf, 0xfdd0, 0xfdef, 0xfdf0, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x1f600,
        0x1fffe, 0x1ffff, 0x10ffff,
    ];
    controls.chain(others).filter_map(char::from_u32).collect()
}

#[test]
fn every_character_is_stored_as_the_manifest_has_it() {
    let bed = Bed::new();
    let map = "map: {type: object, additionalProperties: {type: string}}";
    control_plane().apply_yaml(&bed.crd(map));
    let key = |c: char| format!("c{:06x}", u32::from(c));
    let values: BTreeMap<String, String> = characters().into_iter().map(|c| (key(c), format!("a{c}b"))).collect();
    let keys: BTreeMap<String, String> = characters().into_iter().map(|c| (format!("a{c}b"), key(c))).collect();
    let namespace = &bed.names.namespace;
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "annotations": values});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("c"), "data": values});
    let sample = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample", "metadata": metadata("one"), "map": keys});
    let items = json!({"apiVersion": "v1", "kind": "List", "items": [config, sample]}).to_string();
    let escaped = |c: char| match c {
        '\u{7f}'..='\u{ffff}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    bed.write("namespace.yaml", &bed.namespace());
    bed.write("objects.yaml", &items.chars().map(escaped).collect::<String>());
    let deploy = || bed.gantry(control_plane().kubeconfig("admin"), &["deploy", "-f", ".", "-y"]).run();
    deploy().code(0);
    for (path, field, expected) in
        [(bed.config_map_path("c"), "data", json!(values)), (bed.sample_path(), "map", json!(keys))]
    {
        let (_, live) = control_plane().get(&path);
        assert_eq!(live[field], expected, "{path}");
        assert_eq!(live["metadata"]["annotations"], json!(values), "{path}");
    }
    deploy().code(0).stdout_contains("3 objects unchanged");
}

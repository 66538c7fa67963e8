//! The fields of one version that the schema of another one lacks, so that they are pruned when an object is stored.

use super::json::{Json, Map};
use gantry_schema::keywords;

/// The maximum number of fields returned.
const NAMED: usize = 1000;

/// The topmost fields that `from` has and `to` would prune, as `spec.pollInterval`.
pub fn lost(from: &Json, to: &Json) -> Vec<String> {
    let mut found = Vec::new();
    if let (Some(from), Some(to)) = (from.map(), to.map()) {
        walk(from, to, "", &mut found);
    }
    found
}

fn walk(from: &Map, to: &Map, path: &str, found: &mut Vec<String>) {
    if keywords::get(to, "x-kubernetes-preserve-unknown-fields").is_some() || found.len() >= NAMED {
        return;
    }
    let values = |map: &'_ Map| keywords::get(map, "additionalProperties").is_some();
    if let Some(properties) = keywords::get(from, "properties").and_then(Json::map) {
        let others = keywords::get(to, "properties").and_then(Json::map);
        for (name, child) in properties.iter() {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            // The server knows these fields of every object.
            if matches!(path.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            match others.and_then(|others| others.get(name)) {
                Some(other) => below(child, other, &path, found),
                None if values(to) => {}
                None => found.push(path),
            }
        }
    }
    for keyword in ["items", "additionalProperties"] {
        let child = |map| keywords::get(map, keyword);
        if let (Some(one), Some(other)) = (child(from), child(to)) {
            below(one, other, &format!("{path}[*]"), found);
        }
    }
}

fn below(from: &Json, to: &Json, path: &str, found: &mut Vec<String>) {
    if let (Some(from), Some(to)) = (from.map(), to.map()) {
        walk(from, to, path, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_pruned_is_lost() {
        let from = r#"{"properties":{
            "metadata": {"properties": {"x": {}}},
            "spec": {"properties": {"a": {}, "kept": {"properties": {"b": {}}}, "list": {"items": {"properties": {"c": {}, "d": {}}}}}},
            "map": {"additionalProperties": {"properties": {"e": {}}}}
        }}"#;
        let to = r#"{"properties":{
            "spec": {"properties": {"kept": {"x-kubernetes-preserve-unknown-fields": true}, "list": {"items": {"properties": {"c": {}}}}}},
            "map": {"additionalProperties": {"properties": {}}}
        }}"#;
        let (from, to) = (Json::parse(from).unwrap(), Json::parse(to).unwrap());
        assert_eq!(lost(&from, &to), ["map[*].e", "spec.a", "spec.list[*].d"]);
        assert!(lost(&from, &from).is_empty());
    }
}

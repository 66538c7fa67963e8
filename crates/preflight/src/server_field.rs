//! Finds the field that the server names in the manifest.

use serde_json::Value;

use crate::objects::place::value_at;
use gantry_core::crd;
use gantry_core::resource::Step;

/// The steps to a field, as far as they are known. The server writes it as its validation does (`spec.ports[0].port`,
/// `data[key]`) or as server-side apply does (`.spec.ports[port=80,protocol="TCP"].port`, `.spec.finalizers[="x"]`).
pub fn steps(field: &str, object: &Value) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = field.trim_start_matches('.').to_owned();
    let mut value = object;
    if object["kind"] == "CustomResourceDefinition" {
        rest = of_crd(&rest, object);
    }
    while let Some((before, keys, behind)) = selector(&rest) {
        let found = parse_plain_path(before, value);
        let Some(list) = value_at(value, &found).and_then(Value::as_array) else {
            steps.extend(found);
            return steps;
        };
        steps.extend(found);
        let Some(index) = list.iter().position(|item| fits(item, keys)) else { return steps };
        steps.push(Step::from(index));
        value = &list[index];
        rest = behind.trim_start_matches('.').to_owned();
    }
    let last = parse_plain_path(&rest, value);
    steps.extend(singular(last, value));
    steps
}

/// The steps of a path without selectors: `a.key.x[0]` or `a[key].x[0]`. Map keys can contain any character, so the
/// object decides where a key ends.
fn parse_plain_path(text: &str, object: &Value) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = text;
    let mut value = Some(object);
    while !rest.is_empty() {
        let bracket = rest.starts_with('[');
        let from = if bracket { &rest[1..] } else { rest.strip_prefix('.').unwrap_or(rest) };
        let index = bracket.then(|| from.split_once(']')).flatten();
        let index = index.and_then(|(number, behind)| Some((number.parse::<usize>().ok()?, behind)));
        if let (Some((index, behind)), true) = (index, value.is_some_and(Value::is_array)) {
            steps.push(Step::Index(index));
            value = value.and_then(|value| value.get(index));
            rest = behind;
            continue;
        }
        let ends =
            |rest: &str| if bracket { rest.starts_with(']') } else { rest.is_empty() || rest.starts_with(['.', '[']) };
        let fits = |key: &&String| !key.is_empty() && from.strip_prefix(key.as_str()).is_some_and(ends);
        let keys = value.and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
        let known = keys.filter(fits).max_by_key(|key| key.len()).map(|key| &from[..key.len()]);
        let key = known.unwrap_or_else(|| {
            let end = if bracket { from.find(']') } else { from.find(['.', '[']) };
            &from[..end.unwrap_or(from.len())]
        });
        steps.push(Step::from(key));
        value = value.and_then(|value| value.get(key));
        rest = &from[key.len()..];
        if bracket {
            rest = rest.strip_prefix(']').unwrap_or(rest);
        }
    }
    steps
}

/// Translates paths that validation writes differently from the manifest: the server validates a CRD in its internal
/// shape, in which everything that all versions share is outside of `spec.versions`. Errors about stored versions are
/// placed at `spec.versions`.
fn of_crd(field: &str, object: &Value) -> String {
    if field.starts_with("status.storedVersions") {
        return "spec.versions".to_owned();
    }
    for (shared, own) in crd::steps::OF_ALL_VERSIONS {
        let rest = field.strip_prefix("spec.").and_then(|field| field.strip_prefix(shared));
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            && value_at(object, &crd::steps::spec(shared)).is_none()
        {
            return format!("spec.versions[0].{own}{rest}");
        }
    }
    field.to_owned()
}

/// Replaces `clusterIPs[0]` by `clusterIP` if the manifest has only that.
fn singular(mut steps: Vec<Step>, object: &Value) -> Vec<Step> {
    if let [parent @ .., Step::Key(list), _] = &steps[..]
        && let Some(parent_value) = value_at(object, parent)
        && parent_value.get(list).is_none()
        && let Some(one) = list.strip_suffix('s').filter(|one| parent_value.get(one).is_some())
    {
        let one = Step::from(one);
        steps.truncate(steps.len() - 2);
        steps.push(one);
    }
    steps
}

/// The first `[name="a"]` of a path: the text before it, inside it and after it.
fn selector(path: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = path[from..].find('[').map(|at| from + at) {
        let mut quoted = false;
        let mut escaped = false;
        let close = path[open..].char_indices().find_map(|(at, c)| {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = !quoted,
                ']' if !quoted => return Some(open + at),
                _ => {}
            }
            None
        })?;
        let inside = &path[open + 1..close];
        // A map key can contain `=` as well, but not followed by a quote or a number.
        let is_selector = inside.split_once('=').is_some_and(|(_, value)| {
            serde_json::from_str::<Value>(value.split(',').next().unwrap_or_default()).is_ok() || value.starts_with('"')
        });
        if is_selector {
            return Some((&path[..open], inside, &path[close + 1..]));
        }
        from = close + 1;
    }
    None
}

/// Whether an item has all the keys of `name="a",port=80`, or is the value of `="a"`.
fn fits(item: &Value, keys: &str) -> bool {
    let mut rest = keys;
    while !rest.is_empty() {
        let Some((key, value)) = rest.split_once('=') else { return false };
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
        let Some(Ok(wanted)) = values.next() else { return false };
        let is = if key.is_empty() { Some(item) } else { item.get(key) };
        // The server defaults keys that the manifest leaves out (`protocol: TCP`): only a different value rules an
        // item out.
        if is.is_some_and(|is| *is != wanted) || is.is_none() && key == "name" {
            return false;
        }
        rest = value[values.byte_offset()..].trim_start_matches(',');
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(field: &str, object: &Value) -> String {
        let step = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        };
        steps(field, object).iter().map(step).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn both_notations_of_field_paths_lead_to_the_field() {
        let object = json!({"spec": {"clusterIP": "10.0.0.1", "finalizers": ["a", "b"],
            "ports": [{"port": 80, "name": "x"}, {"port": 443, "protocol": "UDP", "name": "a]b: c"}]},
            "data": {"a=b.c": "x", "a": "y"}});
        for (field, place) in [
            ("spec.ports[1].port", "spec/ports/1/port"),
            (".spec.ports[port=443,protocol=\"UDP\"].port", "spec/ports/1/port"),
            (".spec.ports[port=80,protocol=\"TCP\"].name", "spec/ports/0/name"),
            (".spec.ports[name=\"a]b: c\"].port", "spec/ports/1/port"),
            (".spec.ports[name=\"none\"].port", "spec/ports"),
            (".spec.finalizers[=\"b\"]", "spec/finalizers/1"),
            ("spec.clusterIPs[0]", "spec/clusterIP"),
            ("data[a=b.c]", "data/a=b.c"),
            ("data.a=b.c", "data/a=b.c"),
            ("data[a]", "data/a"),
            ("spec.unknown.deep", "spec/unknown/deep"),
            ("", ""),
            ("[]", ""),
        ] {
            assert_eq!(shown(field, &object), place, "{field}");
        }
    }

    #[test]
    fn fields_of_the_older_shape_of_a_crd_are_found_in_its_versions() {
        let crd = json!({"kind": "CustomResourceDefinition", "spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"spec": {"type": "nope"}}}}}]}});
        for (field, place) in [
            (
                "spec.validation.openAPIV3Schema.properties[spec].type",
                "spec/versions/0/schema/openAPIV3Schema/properties/spec/type",
            ),
            (
                "spec.schema.openAPIV3Schema.properties[spec].type",
                "spec/versions/0/schema/openAPIV3Schema/properties/spec/type",
            ),
            ("spec.versions[0].name", "spec/versions/0/name"),
            ("status.storedVersions[0]", "spec/versions"),
        ] {
            assert_eq!(shown(field, &crd), place, "{field}");
        }
    }
}

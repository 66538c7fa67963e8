//! Whether a CRD defines the same as the live one, apart from texts that the API server does not validate.
//!
//! The server has accepted the live definition, so it need not be asked again. A CRD that another tool applied is often
//! such: only its managers change.

use gantry_core::crd::CrdSides;
use gantry_deploy::plan::is_dropped_from_crd;
use gantry_schema::json::{Json, JsonMap};
use gantry_schema::{Sense, same_schema};

/// Whether the server would validate the same definition as before.
pub fn is_same_definition(crd: &CrdSides) -> bool {
    let Some(live) = &crd.live_object else { return false };
    let (whole_live, whole_desired);
    let texts = match crd.without_same_versions() {
        Some(texts) => texts,
        None => {
            (whole_live, whole_desired) = (live.json(), crd.desired_object.json());
            (whole_live.into_owned(), whole_desired.into_owned())
        }
    };
    let (Ok(Json::Map(live)), Ok(Json::Map(desired))) = (Json::parse(&texts.0), Json::parse(&texts.1)) else {
        return false;
    };
    match (live.get("spec"), desired.get("spec")) {
        (Some(Json::Map(live)), Some(Json::Map(desired))) => is_same_spec(live, desired),
        _ => false,
    }
}

fn is_same_spec(live: &JsonMap<'_>, desired: &JsonMap<'_>) -> bool {
    has_same_members(live, desired, &|key, of_live, of_desired| match (key, of_live, of_desired) {
        ("versions", Some(Json::List(live)), Some(Json::List(desired))) => {
            live.len() == desired.len()
                && live.iter().zip(desired).all(|(live, desired)| is_same_version(live, desired))
        }
        ("names", Some(Json::Map(live)), Some(Json::Map(desired))) => {
            has_same_members(live, desired, &|key, live, desired| {
                desired.is_none() && is_default_name(key, live, of_kind(of_desired))
                    || is_same_value(key, live, desired)
            })
        }
        // The default.
        ("conversion", Some(Json::Map(live)), None) => {
            live.iter().all(|(key, value)| key == "strategy" && matches!(value, Json::Text(text) if text == "None"))
        }
        (_, live, desired) => is_same_value(key, live, desired),
    })
}

fn of_kind<'j>(names: Option<&'j Json<'_>>) -> &'j str {
    match names.and_then(Json::map).and_then(|names| names.get("kind")) {
        Some(Json::Text(kind)) => kind,
        _ => "",
    }
}

/// Whether the server fills in this name.
fn is_default_name(key: &str, value: Option<&Json<'_>>, kind: &str) -> bool {
    let Some(Json::Text(name)) = value else { return false };
    match key {
        "listKind" => name.strip_suffix("List") == Some(kind),
        "singular" => **name == kind.to_lowercase(),
        _ => false,
    }
}

fn schema<'j>(of_version: Option<&'j Json<'j>>) -> Option<&'j Json<'j>> {
    of_version?.map()?.get("openAPIV3Schema")
}

fn is_same_version(live: &Json<'_>, desired: &Json<'_>) -> bool {
    let (Json::Map(live), Json::Map(desired)) = (live, desired) else { return false };
    has_same_members(live, desired, &|key, live, desired| match key {
        "schema" => match (schema(live), schema(desired)) {
            (Some(live), Some(desired)) => same_schema(live, desired, Sense::Everything),
            (None, None) => true,
            _ => false,
        },
        _ => is_same_value(key, live, desired),
    })
}

/// Whether a member of live, if it has it, and of desired have the same value; the first argument is the key.
type SameMember<'f> = &'f dyn Fn(&str, Option<&Json<'_>>, Option<&Json<'_>>) -> bool;

/// Whether `is_same` holds for every member of either map.
fn has_same_members(live: &JsonMap<'_>, desired: &JsonMap<'_>, is_same: SameMember<'_>) -> bool {
    live.iter().all(|(key, value)| is_same(key, Some(value), desired.get(key)))
        && desired.iter().filter(|(key, _)| live.get(key).is_none()).all(|(key, value)| is_same(key, None, Some(value)))
}

/// Whether the server stores the same value, as it drops zero values.
fn is_same_value(key: &str, live: Option<&Json<'_>>, desired: Option<&Json<'_>>) -> bool {
    match (live, desired) {
        (None, None) => true,
        (None, Some(value)) | (Some(value), None) => is_dropped_from_crd(key, value),
        (Some(Json::Map(live)), Some(Json::Map(desired))) => has_same_members(live, desired, &is_same_value),
        (Some(Json::List(live)), Some(Json::List(desired))) => {
            live.len() == desired.len()
                && live.iter().zip(desired).all(|(live, desired)| is_same_value("", Some(live), Some(desired)))
        }
        (Some(live), Some(desired)) => live == desired,
    }
}

#[cfg(test)]
mod tests {
    use gantry_core::crd::builder::CrdBuilder;
    use gantry_core::resource::RawObject;
    use serde_json::{Value, json};

    use super::*;

    fn is_same(change: impl Fn(&mut Value)) -> bool {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": "old"}}});
        let desired = CrdBuilder::new("g", "Thing").version("v1", schema).build();
        let mut live = desired.clone();
        live["spec"]["names"]["listKind"] = "ThingList".into();
        live["spec"]["conversion"] = json!({"strategy": "None"});
        let mut desired = desired;
        change(&mut desired);
        is_same_definition(&CrdSides::new(RawObject::from_value(&desired), Some(RawObject::from_value(&live))))
    }

    #[test]
    fn defaults_texts_and_zero_values_are_no_change_of_the_definition() {
        assert!(is_same(|_| ()));
        assert!(is_same(|crd| crd["spec"]["preserveUnknownFields"] = false.into()));
        assert!(is_same(|crd| crd["metadata"]["labels"] = json!({"a": "b"})));
        let at = "/spec/versions/0/schema/openAPIV3Schema/properties/a";
        assert!(is_same(|crd| crd.pointer_mut(at).unwrap()["description"] = "new".into()));
        assert!(!is_same(|crd| crd.pointer_mut(at).unwrap()["maxLength"] = 3.into()));
        assert!(!is_same(|crd| crd["spec"]["preserveUnknownFields"] = true.into()));
        assert!(!is_same(|crd| crd["spec"]["versions"][0]["deprecated"] = true.into()));
        assert!(!is_same(|crd| crd["spec"]["names"]["shortNames"] = json!(["t"])));
        assert!(!is_same(|crd| crd["spec"]["names"]["listKind"] = "Things".into()));
        assert!(!is_same(|crd| crd["spec"]["conversion"] = json!({"strategy": "Webhook"})));
        assert!(!is_same(|crd| crd["spec"]["scope"] = "Cluster".into()));
        assert!(!is_same(|crd| crd["spec"]["versions"].as_array_mut().unwrap().push(json!({"name": "v2"}))));
    }

    #[test]
    fn a_new_crd_and_one_that_cannot_be_read_are_no_same_definition() {
        let crd = |text: &str| RawObject::new(text.to_owned());
        assert!(!is_same_definition(&CrdSides::new(crd("{}"), None)));
        assert!(!is_same_definition(&CrdSides::new(crd("{}"), Some(crd("{}")))));
    }
}

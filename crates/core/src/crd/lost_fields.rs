//! The fields of one version that the schema of another one lacks, so that they are pruned when an object is stored.

use gantry_schema::json::{Json, JsonMap};
use gantry_schema::keywords;

use super::{Crd, CrdVersion};

/// The maximum number of fields returned.
const NAMED: usize = 1000;
/// How far values of unknown fields are followed.
const DEPTH: usize = 64;

/// The topmost values that `from` keeps and `to` would prune, as `spec.pollInterval`; `spec.*` for fields of any name.
///
/// Source: the pruning algorithm of the API server (`k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning`)
pub fn find_lost_fields(from: &Json, to: &Json) -> Vec<String> {
    let mut found = Vec::new();
    if let (Some(from), Some(to)) = (from.map(), to.map()) {
        let pruned = PruningPlace { to: Some(to), keeps: is_preserving(to), is_resource: true };
        pruned.compare(StorableValues::of_node(from), "", DEPTH, &mut found);
    }
    found
}

/// What an object that is written at `version` of this CRD loses in the storage version, if no webhook converts.
/// Nothing if it is the storage version.
pub fn lost_in_storage(crd: &Crd, version: &CrdVersion) -> Vec<String> {
    match crd.storage().filter(|storage| storage.name != version.name) {
        Some(storage) => lost_between(version, storage),
        None => Vec::new(),
    }
}

/// What a write at this served version drops of an object that the storage version keeps, if no webhook converts.
///
/// The server reads the object at the version of the request before it changes anything, and stores what it has read.
/// Nothing if it is the storage version.
pub fn lost_by_writers(crd: &Crd, version: &CrdVersion) -> Vec<String> {
    let Some(storage) = crd.storage().filter(|storage| storage.name != version.name) else { return Vec::new() };
    let mut lost = lost_between(storage, version);
    if !storage.served && !lost.is_empty() {
        // Only another served version can have such a value written.
        let others = crd.served_versions().filter(|other| other.name != version.name);
        let lost_too: Vec<Vec<String>> = others.map(|other| lost_between(storage, other)).collect();
        lost.retain(|field| lost_too.iter().any(|known| !known.iter().any(|known| covers(known, field))));
    }
    lost
}

/// What [`lost_by_writers`] drops with `desired` and not with `live`. Each CRD without a webhook.
pub fn newly_lost_by_writers(live: Option<&Crd>, desired: &Crd, version: &CrdVersion) -> Vec<String> {
    let lost = lost_by_writers(desired, version);
    match live.and_then(|live| Some((live, live.served(&version.name)?))) {
        Some((live, before)) if !lost.is_empty() => without_known(lost, &lost_by_writers(live, before)),
        _ => lost,
    }
}

/// Whether no write at any version loses what an object has at this one, if no webhook converts.
pub fn is_kept_by_all(crd: &Crd, version: &CrdVersion) -> bool {
    let is_narrower = |version: &CrdVersion| !lost_by_writers(crd, version).is_empty();
    lost_in_storage(crd, version).is_empty()
        && match version.storage {
            true => !crd.served_versions().any(is_narrower),
            false => !is_narrower(version),
        }
}

/// The fields that the schema of `from` keeps and that of `to` would prune. A schema that cannot be read is an error of
/// its own version.
pub fn lost_between(from: &CrdVersion, to: &CrdVersion) -> Vec<String> {
    if from.schema() == to.schema() {
        return Vec::new();
    }
    let schema = |version: &CrdVersion| version.schema().unwrap_or(OPEN).to_owned();
    let (from, to) = (schema(from), schema(to));
    match (Json::parse(&from), Json::parse(&to)) {
        (Ok(from), Ok(to)) => find_lost_fields(&from, &to),
        _ => Vec::new(),
    }
}

/// The schema of a version without one, which keeps everything.
const OPEN: &str = r#"{"x-kubernetes-preserve-unknown-fields":true}"#;

/// Those of `lost` that are in none of `known`, nor below.
pub fn without_known(mut lost: Vec<String>, known: &[String]) -> Vec<String> {
    lost.retain(|field| !known.iter().any(|known| covers(known, field)));
    lost
}

/// Whether a field is one that `known` names, or is below it. `*` is a field of any name.
fn covers(known: &str, field: &str) -> bool {
    let (known, field): (Vec<&str>, Vec<&str>) = (known.split('.').collect(), field.split('.').collect());
    let is_same =
        |(known, name): (&&str, &&str)| known == name || *known == "*" || *known == name.trim_end_matches("[*]");
    known.len() <= field.len() && known.iter().zip(&field).all(is_same)
}

/// The values that can be at a place today.
#[derive(Clone, Copy)]
enum StorableValues<'a> {
    /// Any: below a node that preserves unknown fields.
    Any,
    /// Those that this node keeps, and all unknown fields if `keeps_unknown`.
    Of { node: &'a JsonMap<'a>, keeps_unknown: bool },
    /// No fields: everything inside is pruned today already.
    Bare,
}

impl<'a> StorableValues<'a> {
    fn of_node(node: &'a JsonMap<'a>) -> Self {
        StorableValues::Of { node, keeps_unknown: is_preserving(node) }
    }
}

/// A place in the schema that prunes.
#[derive(Clone, Copy)]
struct PruningPlace<'a> {
    /// Its node, if the schema describes the place.
    to: Option<&'a JsonMap<'a>>,
    /// Whether unknown fields are kept.
    keeps: bool,
    /// Whether it is a whole object, of which the server keeps its kind and metadata.
    is_resource: bool,
}

impl<'a> PruningPlace<'a> {
    fn at(to: Option<&'a JsonMap<'a>>) -> Self {
        let has = |keyword| to.is_some_and(|to| keywords::get(to, keyword).is_some());
        PruningPlace { to, keeps: to.is_some_and(is_preserving), is_resource: has("x-kubernetes-embedded-resource") }
    }

    fn compare(self, values: StorableValues<'_>, path: &str, depth: usize, found: &mut Vec<String>) {
        if found.len() >= NAMED || depth == 0 || matches!(values, StorableValues::Bare) {
            return;
        }
        if self.may_hold("object") {
            self.fields(values, path, depth, found);
        }
        if !self.may_hold("array") {
            return;
        }
        let items = match values {
            StorableValues::Of { node, keeps_unknown } => match child(node, "items") {
                // A list that keeps unknown fields keeps those of its items.
                Some(items) => StorableValues::Of { node: items, keeps_unknown: keeps_unknown || is_preserving(items) },
                None if keeps_unknown => StorableValues::Any,
                None => return,
            },
            any => any,
        };
        let to = self.to.and_then(|to| child(to, "items"));
        let below = PruningPlace::at(to);
        match (self.keeps, to) {
            // Items stay as they are unless the schema describes them, and even then with their unknown fields.
            (true, None) => {}
            (true, Some(_)) => {
                PruningPlace { keeps: true, ..below }.compare(items, &format!("{path}[*]"), depth - 1, found)
            }
            (false, _) => below.compare(items, &format!("{path}[*]"), depth - 1, found),
        }
    }

    fn fields(self, values: StorableValues<'_>, path: &str, depth: usize, found: &mut Vec<String>) {
        let described = |of: Option<&'a JsonMap<'a>>, name: &str| {
            of.and_then(|of| child(of, "properties")).and_then(|fields| fields.get(name)).map(Json::map)
        };
        let of_others = self.to.and_then(|to| keywords::get(to, "additionalProperties"));
        let follow = |name: &str, values: StorableValues<'_>, found: &mut Vec<String>| {
            if self.is_resource && matches!(name, "apiVersion" | "kind" | "metadata") {
                return;
            }
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let place = described(self.to, name).or_else(|| of_others.map(Json::map));
            match place {
                Some(Some(to)) if drops_null(values, to) => found.push(format!("{path}: null")),
                Some(to) => PruningPlace::at(to).compare(values, &path, depth - 1, found),
                None if self.keeps => {}
                None => found.push(path),
            }
        };
        let (named, others) = match values {
            StorableValues::Of { node, keeps_unknown } => (child(node, "properties"), others_of(node, keeps_unknown)),
            StorableValues::Any => (None, Some(StorableValues::Any)),
            StorableValues::Bare => return,
        };
        for (name, field) in named.into_iter().flat_map(JsonMap::iter) {
            follow(name, field.map().map_or(StorableValues::Bare, StorableValues::of_node), found);
        }
        let Some(others) = others else { return };
        follow("*", others, found);
        // A field of any name can have a name that is described.
        let of_to = self.to.and_then(|to| child(to, "properties"));
        for (name, _) in of_to.into_iter().flat_map(JsonMap::iter) {
            if named.is_none_or(|named| named.get(name).is_none()) && (self.keeps || of_others.is_some()) {
                follow(name, others, found);
            }
        }
    }

    /// Whether valid values of the type can be here.
    fn may_hold(self, kind: &str) -> bool {
        let named = self.to.and_then(|to| keywords::get(to, "type")).and_then(Json::text);
        named.is_none_or(|named| named == kind)
    }
}

/// Whether a null that is stored today is dropped. With an `enum` the server accepts none.
fn drops_null(values: StorableValues<'_>, to: &JsonMap<'_>) -> bool {
    let StorableValues::Of { node: from, .. } = values else { return false };
    let has = |node, keyword| keywords::get(node, keyword).is_some();
    has(from, "nullable") && !has(from, "enum") && !has(to, "nullable")
}

/// The values of fields that `node` does not name, if it keeps any.
fn others_of<'a>(node: &'a JsonMap<'a>, keeps_unknown: bool) -> Option<StorableValues<'a>> {
    match keywords::get(node, "additionalProperties") {
        Some(values) => Some(values.map().map_or(StorableValues::Bare, StorableValues::of_node)),
        None => keeps_unknown.then_some(StorableValues::Any),
    }
}

fn is_preserving(node: &JsonMap<'_>) -> bool {
    keywords::get(node, "x-kubernetes-preserve-unknown-fields").is_some()
}

fn child<'a>(node: &'a JsonMap<'a>, keyword: &str) -> Option<&'a JsonMap<'a>> {
    keywords::get(node, keyword)?.map()
}

#[cfg(test)]
mod tests {
    use super::super::builder::{CrdBuilder, string_fields};
    use super::*;

    #[test]
    fn fields_that_were_lost_before_are_not_reported_again() {
        let lost = ["spec.a", "spec.b.c", "spec.list[*].d", "spec.map.*.e", "spec.x: null"];
        for (known, left) in [
            (&[][..], &lost[..]),
            (&["spec.a", "spec.b"], &lost[2..]),
            (&["spec.b.c.d", "spec.list[*].other"], &lost[..]),
            (&["spec.*"], &[]),
            (&["spec.list", "spec.map.*", "spec.x: null"], &lost[..2]),
        ] {
            let text = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
            assert_eq!(without_known(text(&lost), &text(known)), text(left), "{known:?}");
        }
    }

    /// A CRD with these versions: name, served, storage, fields.
    fn crd(versions: &[(&str, bool, bool, &[&str])]) -> Crd {
        let add = |crd: CrdBuilder, (name, served, storage, fields): &(&str, bool, bool, &[&str])| {
            crd.version_of_spec(name, string_fields(fields)).served(*served).storage(*storage)
        };
        let crd = versions.iter().fold(CrdBuilder::new("g", "K").cluster_scoped(), add).build();
        Crd::parse(&crd.to_string()).unwrap()
    }

    #[test]
    fn a_write_at_a_version_loses_what_only_other_versions_have() {
        let lost = |crd: &Crd| {
            let of = |version: &CrdVersion| (version.name.to_string(), lost_by_writers(crd, version));
            crd.served_versions().map(of).filter(|(_, lost)| !lost.is_empty()).collect::<Vec<_>>()
        };
        let (few, all): (&[&str], &[&str]) = (&["a"], &["a", "b"]);
        let of_v1 = [("v1".to_owned(), vec!["spec.b".to_owned()])];
        let narrow = crd(&[("v1", true, false, few), ("v2", true, true, all)]);
        assert_eq!(lost(&narrow), of_v1);
        assert_eq!(lost(&crd(&[("v1", false, false, few), ("v2", true, true, all)])), [], "nobody writes at v1");
        assert_eq!(lost(&crd(&[("v1", true, true, few), ("v2", true, false, all)])), [], "it is never stored");
        // Without a version at which the value can be written, no object has it.
        assert_eq!(lost(&crd(&[("v1", true, false, few), ("v2", false, true, all)])), []);
        assert_eq!(lost(&crd(&[("v1", true, false, few), ("v2", false, true, all), ("v3", true, false, all)])), of_v1);

        let version = |crd: &Crd, name: &str| is_kept_by_all(crd, crd.version(name).unwrap());
        assert_eq!(["v1", "v2"].map(|name| version(&narrow, name)), [false, false]);
        let alike = crd(&[("v1", true, false, all), ("v2", true, true, all)]);
        assert_eq!(["v1", "v2"].map(|name| version(&alike, name)), [true, true]);

        let newly = |live: &Crd| newly_lost_by_writers(Some(live), &narrow, narrow.version("v1").unwrap());
        assert_eq!(newly(&narrow), Vec::<String>::new());
        assert_eq!(newly(&alike), ["spec.b"]);
        assert_eq!(newly(&crd(&[("v1", true, true, few)])), ["spec.b"], "the storage version moves");
        assert_eq!(newly(&crd(&[("v1", false, false, few), ("v2", true, true, all)])), ["spec.b"], "v1 is served");
    }

    #[test]
    fn only_pruned_fields_are_lost() {
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
        assert_eq!(find_lost_fields(&from, &to), ["map.*.e", "spec.a", "spec.list[*].d"]);
        assert!(find_lost_fields(&from, &from).is_empty());
    }

    #[test]
    fn unknown_fields_entries_and_nulls_are_lost_as_on_the_server() {
        let keep =
            |fields: &str| format!(r#"{{"x-kubernetes-preserve-unknown-fields": true, "properties": {{{fields}}}}}"#);
        let typed = r#"{"type": "object", "properties": {"k": {"type": "string"}}}"#;
        let entries = r#"{"type": "object", "additionalProperties": {"type": "object", "properties": {"k": {}}}}"#;
        let list = |items: &str| format!(r#"{{"type": "array", "items": {items}}}"#);
        let (any, none) = (keep(""), r#"{"type": "object"}"#);
        for (from, to, expected) in [
            (any.as_str(), typed, &["x.*"][..]),
            (entries, typed, &["x.*"]),
            (typed, entries, &[]),
            (&keep(r#""k": {"type": "object", "properties": {"a": {}}}"#), &any, &[]),
            // What is described is pruned, although its neighbours are kept.
            (&any, &keep(&format!(r#""k": {typed}"#)), &["x.k.*"]),
            (&any, &keep(r#""k": {"type": "string"}"#), &[]),
            (&list(&any), &list(typed), &["x[*].*"]),
            (&list(typed), &list(&any), &[]),
            (r#"{"additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}"#, entries, &["x.*.*"]),
            (entries, r#"{"additionalProperties": true}"#, &["x.*.k"]),
            (none, typed, &[]),
            (r#"{"type": "string", "nullable": true}"#, r#"{"type": "string"}"#, &["x: null"]),
            (r#"{"type": "string", "nullable": true, "enum": ["a"]}"#, r#"{"type": "string"}"#, &[]),
            (
                r#"{"x-kubernetes-embedded-resource": true, "properties": {"metadata": {}}}"#,
                r#"{"x-kubernetes-embedded-resource": true}"#,
                &[],
            ),
        ] {
            let whole = |node: &str| format!(r#"{{"properties": {{"x": {node}}}}}"#);
            let (from, to) = (whole(from), whole(to));
            assert_eq!(
                find_lost_fields(&Json::parse(&from).unwrap(), &Json::parse(&to).unwrap()),
                expected,
                "{from} {to}"
            );
            assert!(find_lost_fields(&Json::parse(&from).unwrap(), &Json::parse(&from).unwrap()).is_empty(), "{from}");
        }
    }
}

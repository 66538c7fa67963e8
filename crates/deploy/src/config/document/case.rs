//! Keys in another case. kapp reads its documents with Go's JSON reader, which ignores the case of the names of fields.

use gantry_yaml::{Data, Duplicate, MappingEntry, Span, YamlNode};

use crate::config::keys::{self, KAPP_KEYS, SettingKind};

/// The names of fields in entries of lists of rules. No entry has a mapping with other keys.
const OF_LISTS: &[&str] = &[
    "allIndexes",
    "allMatcher",
    "andMatcher",
    "anyMatcher",
    "apiGroup",
    "apiGroupKindMatcher",
    "apiVersion",
    "apiVersionKindMatcher",
    "conditionMatchers",
    "customResourceMatcher",
    "emptyFieldMatcher",
    "failure",
    "funcContractV1",
    "hasAnnotationMatcher",
    "hasNamespaceMatcher",
    "ignoreIfCyclical",
    "index",
    "keys",
    "kind",
    "kindNamespaceNameMatcher",
    "matcher",
    "matchers",
    "name",
    "names",
    "namespace",
    "notMatcher",
    "overlay.yml",
    "overlayContractV1",
    "path",
    "paths",
    "regex",
    "resource.star",
    "resourceMatchers",
    "rules",
    "sources",
    "status",
    "success",
    "supportsObservedGeneration",
    "timeout",
    "type",
    "unblockChanges",
    "ytt",
];

/// A document of kapp with its keys in the case in which gantry knows them, and the keys that it then has twice.
pub fn as_kapp_reads(root: &YamlNode) -> (YamlNode, Vec<Duplicate>) {
    let mut root = root.clone();
    let mut duplicates = Vec::new();
    let of_kapp = keys::names_below("").into_iter().filter(|key| keys::is_of_kapp(key));
    let known: Vec<&str> = of_kapp.chain(KAPP_KEYS.iter().copied()).collect();
    if let Data::Mapping(entries) = &mut root.data {
        rename(entries, &known, &mut duplicates);
        for entry in entries {
            match keys::find(&entry.key).map(|key| key.kind) {
                Some(SettingKind::Bindings) => rename_all(&mut entry.value, &mut duplicates),
                Some(SettingKind::Rules) => {
                    if let Data::Sequence(items) = &mut entry.value.data {
                        for item in items {
                            if let Data::Mapping(entries) = &mut item.data {
                                rename(entries, &["name", "config"], &mut duplicates);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }
    (root, duplicates)
}

fn rename_all(node: &mut YamlNode, duplicates: &mut Vec<Duplicate>) {
    match &mut node.data {
        Data::Mapping(entries) => {
            rename(entries, OF_LISTS, duplicates);
            entries.iter_mut().for_each(|entry| rename_all(&mut entry.value, duplicates));
        }
        Data::Sequence(items) => items.iter_mut().for_each(|item| rename_all(item, duplicates)),
        Data::Scalar(_) => {}
    }
}

fn rename(entries: &mut [MappingEntry], known: &[&str], duplicates: &mut Vec<Duplicate>) {
    let mut seen: Vec<(String, Span)> = Vec::new();
    for entry in entries {
        if let Some(name) = known.iter().find(|name| name.eq_ignore_ascii_case(&entry.key)) {
            (*name).clone_into(&mut entry.key);
        }
        match seen.iter().find(|(key, _)| *key == entry.key) {
            Some((key, first)) => {
                duplicates.push(Duplicate { key: key.clone(), first: first.clone(), again: entry.key_span.clone() });
            }
            None => seen.push((entry.key.clone(), entry.key_span.clone())),
        }
    }
}

//! `catalogs`: where the metadata of packages comes from.
//!
//! Entries of several layers merge by name, and a later layer's keys win. The user's own file, `-c`, the project file
//! and `--catalog` can name the content of a catalog; a Config document among the manifests cannot. The project file
//! cannot name a URL, because a repository must not choose where gantry sends requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::check::{BUILT_WITHOUT_OLM, KnownPreflightRules};
use super::layer::LayerData;
use super::located::{self, LocatedData, LocatedValue};
use super::origin::{Layer, SettingOrigin};
use gantry_core::problem::{Problem, did_you_mean};
use gantry_olm::source::{CatalogContent, CatalogSource};

/// The key of the list.
pub(super) const CATALOGS: &str = "catalogs";
/// The flag that adds entries to the list.
pub(super) const FLAG: &str = "--catalog";

const KEYS: [&str; 7] = ["name", "path", "url", "caFile", "priority", "labels", "available"];

/// Resolves the relative paths in a document's list against the folder of the document.
pub(super) fn start_at_folder(list: &mut LocatedValue, folder: &Path) {
    let LocatedData::List(items) = &mut list.data else { return };
    for item in items {
        let LocatedData::Map(entries) = &mut item.data else { continue };
        for key in ["path", "caFile"] {
            if let Some(LocatedData::Scalar(Json::String(text))) = entries.get_mut(key).map(|found| &mut found.data) {
                *text = folder.join(&*text).to_string_lossy().into_owned();
            }
        }
    }
}

/// The problems with the list of one document, before it is merged with others: duplicate names, and URLs in a document
/// that must not name any.
pub(super) fn check_document(list: &LocatedValue, may_name_urls: bool) -> Vec<Problem> {
    let (mut problems, mut seen) = (Vec::new(), BTreeMap::new());
    for (index, item) in items(list).iter().enumerate() {
        if let Some(url) = item.get("url").filter(|_| !may_name_urls) {
            let problem = url.key.problem(format!("the project file cannot set \"{CATALOGS}[{index}].url\""));
            problems.push(problem.help(
                "this file is part of the project and may not choose where requests go; use path, or -c FILE or --catalog",
            ));
        }
        let Some((name, place)) = name_of(item) else { continue };
        match seen.get(&name) {
            Some(first) => {
                let problem = place.problem(format!("duplicate catalog in configuration: {name:?}"));
                problems.push(problem.help(format!("first defined at {first}; keep one of them")));
            }
            None => {
                seen.insert(name, place.clone());
            }
        }
    }
    problems
}

/// The problems with files of the project file's list that are outside the folder of the project.
pub(super) fn problems_outside_project(list: &LocatedValue, is_readable: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, item) in items(list).iter().enumerate() {
        for key in ["path", "caFile"] {
            let Some(found) = item.get(key) else { continue };
            let Json::String(path) = found.to_value() else { continue };
            if path.is_empty() || is_readable(&path) {
                continue;
            }
            let message = format!("{CATALOGS}[{index}].{key}: {path:?} is outside the folder of this file");
            problems.push(found.place.problem(message).help(
                "this file is part of the project and may not read files outside its folder; use --catalog, or -c FILE",
            ));
        }
    }
    problems
}

/// The list with the entries of all layers; `None` if no layer has one.
pub(super) fn merge(layers: &[LayerData]) -> Option<LocatedValue> {
    let mut merged: Option<LocatedValue> = None;
    for list in layers.iter().filter_map(|layer| layer.lists.get(CATALOGS)) {
        let Some(LocatedValue { data: LocatedData::List(all), layer, .. }) = &mut merged else {
            merged = Some(list.clone());
            continue;
        };
        *layer = list.layer;
        for item in items(list) {
            let name = name_of(item).map(|(name, _)| name);
            match all.iter_mut().find(|known| name.is_some() && name_of(known).map(|(name, _)| name) == name) {
                Some(known) => overlay(known, item),
                None => all.push(item.clone()),
            }
        }
    }
    merged
}

/// Merges a later entry of the same name. A catalog has one content: a later `path` or `url` replaces an earlier one.
fn overlay(known: &mut LocatedValue, later: &LocatedValue) {
    let (LocatedData::Map(known_entries), LocatedData::Map(entries)) = (&mut known.data, &later.data) else { return };
    if entries.contains_key("path") {
        known_entries.remove("url");
        known_entries.remove("caFile");
    }
    if entries.contains_key("url") {
        known_entries.remove("path");
    }
    known_entries.extend(entries.iter().map(|(key, value)| (key.clone(), value.clone())));
    known.layer = later.layer;
}

/// The list that the flags define; each flag is `NAME=PATH` or `NAME=URL`.
pub(super) fn of_flags(flags: &[String]) -> Result<Option<LocatedValue>, Problem> {
    let place = SettingOrigin::Flag(FLAG);
    let located = |data| LocatedValue { data, layer: Layer::Flag, place: place.clone(), key: place.clone() };
    let text = |text: &str| located(LocatedData::Scalar(text.into()));
    let mut items = Vec::new();
    for flag in flags {
        let (name, content) = flag
            .split_once('=')
            .filter(|(name, content)| !name.is_empty() && !content.is_empty())
            .ok_or_else(|| place.problem(format!("{flag:?} is not NAME=PATH or NAME=URL")))?;
        let key = if is_url(content) { "url" } else { "path" };
        let entries = BTreeMap::from([("name".to_owned(), text(name)), (key.to_owned(), text(content))]);
        items.push(located(LocatedData::Map(entries)));
    }
    let list = located(LocatedData::List(items));
    match check_document(&list, true).pop() {
        Some(problem) => Err(Problem { help: None, ..problem }),
        None => Ok((!flags.is_empty()).then_some(list)),
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Reads the merged list.
pub(super) fn read(list: Option<&LocatedValue>, known: &KnownPreflightRules) -> (Vec<CatalogSource>, Vec<Problem>) {
    let mut problems = Vec::new();
    if let Some(list) = list.filter(|_| !known.left_out.is_empty()) {
        let unread = list.place.problem(format!("{CATALOGS}: no check reads them"));
        return (Vec::new(), vec![unread.help(BUILT_WITHOUT_OLM)]);
    }
    let items = list.map(items).unwrap_or_default().iter().enumerate();
    let read = items.filter_map(|(index, item)| entry(item, &format!("{CATALOGS}[{index}]"), &mut problems));
    (read.collect(), problems)
}

fn entry(item: &LocatedValue, path: &str, problems: &mut Vec<Problem>) -> Option<CatalogSource> {
    let LocatedData::Map(_) = item.data else {
        problems.push(item.place.problem(format!("{path} is not a mapping")));
        return None;
    };
    let before = problems.len();
    for (key, value) in item.entries().filter(|(key, _)| !KEYS.contains(key)) {
        let help = match did_you_mean(key, KEYS) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known keys: {}", KEYS.join(", ")),
        };
        problems.push(value.key.problem(format!("unknown key \"{path}.{key}\"")).help(help));
    }
    let mut text = |key: &str| match item.get(key).map(|found| (found, found.to_value())) {
        None | Some((_, Json::Null)) => None,
        Some((_, Json::String(text))) if !text.is_empty() => Some(text),
        Some((found, Json::String(_))) => {
            problems.push(found.place.problem(format!("{path}.{key}: the value is empty")));
            None
        }
        Some((found, value)) => {
            problems.push(found.place.problem(format!("{path}.{key}: {}", located::not_a_string(&value))));
            None
        }
    };
    let (name, in_path, url, ca_file) = (text("name"), text("path"), text("url"), text("caFile"));
    let mut wrong = |key: &str, message: String, help: Option<&str>| {
        let place = item.get(key).map_or(&item.place, |found| &found.place);
        problems.push(Problem { help: help.map(Into::into), ..place.problem(message) });
    };
    if name.is_none() && item.get("name").is_none() {
        wrong("", format!("{path} has no name"), Some("use the name of its ClusterCatalog"));
    }
    match (item.get("path"), item.get("url")) {
        (None, None) => wrong("", format!("{path} has neither path nor url"), None),
        (Some(_), Some(_)) => wrong("url", format!("{path} has both path and url"), Some("keep one of them")),
        _ => {}
    }
    if item.get("caFile").is_some() && item.get("url").is_none() {
        wrong("caFile", format!("{path}.caFile is set, but {path} has no url"), None);
    }
    if let Some(Err(why)) = url.as_deref().map(check_url) {
        wrong("url", format!("{path}.url: {why}"), None);
    }
    let value = |key: &str| item.get(key).map(LocatedValue::to_value).filter(|value| !value.is_null());
    let priority =
        value("priority").map(|value| value.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or(value));
    if let Some(Err(value)) = &priority {
        wrong("priority", format!("{path}.priority: {value} is not a 32-bit integer"), None);
    }
    let available = value("available").map(|value| value.as_bool().ok_or(value));
    if let Some(Err(value)) = &available {
        wrong("available", format!("{path}.available: {value} is not true or false"), None);
    }
    let mut labels = BTreeMap::new();
    match value("labels") {
        None => {}
        Some(Json::Object(found)) => {
            for (key, value) in found {
                match value {
                    Json::String(value) => {
                        labels.insert(key, value);
                    }
                    value => wrong("labels", format!("{path}.labels.{key}: {}", located::not_a_string(&value)), None),
                }
            }
        }
        Some(_) => wrong("labels", format!("{path}.labels is not a mapping"), None),
    }
    if problems.len() > before {
        return None;
    }
    let content = match (in_path, url) {
        (Some(path), None) => CatalogContent::Path(path.into()),
        (_, url) => CatalogContent::Url { url: url?, ca_file: ca_file.map(PathBuf::from) },
    };
    let at = item.get("path").or(item.get("url")).and_then(|found| found.place.location().cloned());
    Some(CatalogSource {
        name: name?,
        content,
        priority: priority.and_then(Result::ok).unwrap_or(0),
        labels,
        available: available.and_then(Result::ok).unwrap_or(true),
        at,
    })
}

/// Checks that the text is an http or https URL without credentials.
fn check_url(text: &str) -> Result<(), String> {
    let url: http::Uri = text.parse().map_err(|_| "it is not a URL".to_owned())?;
    match (url.scheme_str(), url.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
            Err("a URL with a user name or password is not supported".into())
        }
        (Some("http" | "https"), Some(_)) => Ok(()),
        _ => Err(format!("{text:?} is not a URL that starts with http:// or https://")),
    }
}

fn name_of(item: &LocatedValue) -> Option<(String, &SettingOrigin)> {
    let found = item.get("name")?;
    match found.to_value() {
        Json::String(name) => Some((name, &found.place)),
        _ => None,
    }
}

fn items(list: &LocatedValue) -> &[LocatedValue] {
    match &list.data {
        LocatedData::List(items) => items,
        _ => &[],
    }
}

//! Reads one Config document, checks it key by key and turns it into a layer.
//!
//! gantry's own documents are strict: an unknown key is a setting that its author thinks is in effect. kapp's
//! documents contain many keys that gantry does not read; one notice lists them.

mod case;
mod nodes;
mod outside;
mod rules;

use std::path::Path as FilePath;

use figment::value::{Dict, Value};

use crate::app::PART_OF;
use gantry_core::problem::{Location, Problem, did_you_mean};
use gantry_core::resource::Step;
use gantry_schema::names;
use gantry_yaml::{self as yaml, Data, Duplicate, MappingEntry, Span, YamlNode};

use super::catalogs;
use super::kapp_defaults;
use super::keys::{
    self, API_VERSION, ConfigKey, KAPP_API_VERSION, KAPP_KEYS, KIND, Reach, SettingKind, TEMPLATE_RULES,
};
use super::layer::{self, ConfigKeyPath, KeyValuePlaces, LayerData};
use super::located::{self, LocatedData, LocatedValue};
use super::origin::{Layer, SettingOrigin};
use nodes::{entries, entry, find, is_null, text_of};
use outside::{find_path_outside, is_below, is_of_git, of_git};

/// A document's text and where it was found.
pub(super) struct ConfigText<'a> {
    pub layer: Layer,
    pub file: &'a str,
    /// The number of the document in the file, from 1.
    pub document: usize,
    pub text: &'a str,
    /// The number of lines in the file before the document.
    pub lines_before: usize,
    /// The steps to the Config if it is a member of a List, or to its text if it is in a ConfigMap.
    pub within: &'a [Step],
    /// The number of columns before each line of the text.
    pub indent: usize,
    /// The place of the whole text, if its lines are not lines of the file.
    pub folded: Option<Location>,
    /// The folder that relative paths in the document are resolved against.
    pub folder: &'a FilePath,
    /// The folder of the project: the document may not name an output file or a target outside it.
    pub confined_to: Option<&'a FilePath>,
}

/// The result of reading a document.
#[derive(Default)]
pub(super) struct ConfigReading {
    pub layers: Vec<LayerData>,
    pub problems: Vec<Problem>,
    pub notices: Vec<Problem>,
}

impl ConfigReading {
    pub fn add(&mut self, other: ConfigReading) {
        self.layers.extend(other.layers);
        self.problems.extend(other.problems);
        self.notices.extend(other.notices);
    }
}

impl<'a> ConfigText<'a> {
    fn at(&self, line: usize, column: usize) -> Location {
        self.folded.clone().unwrap_or_else(|| Location {
            file: self.file.to_owned(),
            line: self.lines_before + line,
            column: self.indent + column,
        })
    }

    fn duplicate_key(&self, duplicate: &Duplicate) -> Problem {
        let first = self.at(duplicate.first.line, duplicate.first.column);
        Problem::new(format!("the key {:?} is written twice", duplicate.key))
            .at(self.at(duplicate.again.line, duplicate.again.column))
            .help(format!("first defined at {first}; keep one of them"))
    }

    /// The text in a value of this one.
    fn text_of_value<'t>(&'t self, node: &YamlNode, value: &'t str) -> ConfigText<'t> {
        // A block scalar begins on the line after its indicator, and each line of it is one of the file.
        let mut lines = self.text.lines().skip(node.span.line);
        let indent_of = |line: &str| line.chars().take_while(|character| *character == ' ').count();
        let mut indent = None;
        let is_block = value.lines().all(|line| {
            let Some(whole) = lines.next() else { return false };
            if indent.is_none() && !line.trim().is_empty() {
                indent = indent_of(whole).checked_sub(indent_of(line));
            }
            whole.trim() == line.trim()
        });
        ConfigText {
            text: value,
            lines_before: self.lines_before + node.span.line,
            within: &[],
            indent: indent.unwrap_or_default(),
            folded: (!is_block || indent.is_none()).then(|| self.at(node.span.line, node.span.column)),
            ..*self
        }
    }
}

/// Reads one document. An empty document has no layer.
pub(super) fn read(text: &ConfigText<'_>) -> ConfigReading {
    let mut reading = ConfigReading::default();
    let at = |line: usize, column: usize| text.at(line, column);
    let (root, duplicates) = match yaml::parse_with_duplicates(text.text) {
        Ok(None) => return reading,
        Ok(Some(parsed)) => parsed,
        Err(error) => {
            reading.problems.push(Problem::new(error.message).at(at(error.line, error.column)));
            return reading;
        }
    };
    if let Some(node) = find(&root, text.within).filter(|_| !text.within.is_empty())
        && let Some(value) = text_of(node)
    {
        reading.add(read(&text.text_of_value(node, value)));
        return reading;
    }
    reading.problems.extend(duplicates.iter().map(|duplicate| text.duplicate_key(duplicate)));
    let mut reader = ConfigDocumentReader {
        text,
        kapp: false,
        left_alone: Vec::new(),
        layer: LayerData::new(text.layer, format!("{} document {} {:?}", text.file, text.document, text.within)),
        reading,
    };
    if let Some(root) = find(&root, text.within)
        && reader.is_config(root)
    {
        let renamed = reader.kapp.then(|| case::as_kapp_reads(root));
        if let Some((_, twice)) = &renamed {
            // A key that is written twice in the same case has been reported.
            let is_new = |other: &&Duplicate| !duplicates.iter().any(|duplicate| duplicate.again == other.again);
            reader.reading.problems.extend(twice.iter().filter(is_new).map(|duplicate| text.duplicate_key(duplicate)));
        }
        let root = renamed.as_ref().map_or(root, |(root, _)| root);
        reader.read_mapping("", root);
        reader.notice_left_alone(root);
        reader.reading.layers.push(reader.layer);
    }
    reader.reading
}

struct ConfigDocumentReader<'a> {
    text: &'a ConfigText<'a>,
    kapp: bool,
    left_alone: Vec<String>,
    layer: LayerData,
    reading: ConfigReading,
}

impl ConfigDocumentReader<'_> {
    fn place(&self, span: &Span) -> SettingOrigin {
        SettingOrigin::File(self.text.at(span.line, span.column))
    }

    fn report_problem(&mut self, span: &Span, message: impl Into<String>, help: Option<String>) {
        let mut problem = self.place(span).problem(message.into());
        problem.help = help;
        self.reading.problems.push(problem);
    }

    /// Reports a problem with a key, without a column if the line must not be shown.
    fn report_key_problem(&mut self, key: &ConfigKey, span: &Span, message: impl Into<String>, help: Option<String>) {
        self.report_problem(span, message, help);
        if key.kind == SettingKind::Secret
            && let Some(at) = self.reading.problems.last_mut().and_then(|problem| problem.at.as_mut())
        {
            at.column = 0;
        }
    }

    /// Whether the document is a Config; reports a problem if not.
    fn is_config(&mut self, root: &YamlNode) -> bool {
        let word = |name: &str| entry(root, name).map(|entry| (&entry.value.span, text_of(&entry.value)));
        let (api_version, kind) = (word("apiVersion"), word("kind"));
        match (&api_version, &kind) {
            (Some((_, Some(API_VERSION))), Some((_, Some(KIND)))) => return true,
            (Some((_, Some(KAPP_API_VERSION))), Some((_, Some(KIND)))) => {
                self.kapp = true;
                return true;
            }
            _ => {}
        }
        let known = [API_VERSION, KAPP_API_VERSION];
        let expected = format!("a config file starts with \"apiVersion: {API_VERSION}\" and \"kind: {KIND}\"");
        match (api_version, kind) {
            (Some((span, Some(version))), Some((_, Some(KIND)))) => {
                let help = did_you_mean(version, known).map_or(expected, |near| format!("did you mean {near:?}?"));
                self.report_problem(span, format!("unknown apiVersion {version:?} for a Config"), Some(help));
            }
            (Some((_, Some(version))), Some((span, Some(kind)))) if known.contains(&version) => {
                let help = did_you_mean(kind, [KIND]).map_or(expected, |near| format!("did you mean {near:?}?"));
                self.report_problem(span, format!("unknown kind {kind:?} in {version}"), Some(help));
            }
            (Some((span, Some(version))), Some((_, Some(kind)))) => {
                let message = format!("this is not a configuration but a {kind} ({version})");
                self.report_problem(span, message, Some(format!("pass manifests with -f; {expected}")));
            }
            _ => {
                let message = "this is not a configuration: apiVersion and kind are missing";
                self.report_problem(&root.span, message, Some(expected));
            }
        }
        false
    }

    /// Reads the keys below `parent` (`""` for the document).
    fn read_mapping(&mut self, parent: &str, node: &YamlNode) {
        let Some(entries) = entries(node) else {
            self.report_problem(&node.span, format!("{parent} is not a mapping"), None);
            return;
        };
        for entry in entries {
            let path = if parent.is_empty() { entry.key.clone() } else { format!("{parent}.{}", entry.key) };
            if parent.is_empty() && keys::ENVELOPE.contains(&entry.key.as_str()) {
                continue;
            }
            if self.kapp && !keys::is_of_kapp(&path) {
                let is_followed = || kapp_defaults::are_followed(&entry.value.to_value());
                if path == TEMPLATE_RULES && !is_null(&entry.value) && !is_followed() {
                    self.layer.templates = Some(self.place(&entry.key_span));
                }
                self.left_alone.push(path);
                continue;
            }
            match keys::find(&path) {
                Some(key) => self.read_value(key, entry),
                None if !keys::names_below(&path).is_empty() => {
                    if !is_null(&entry.value) {
                        self.read_mapping(&path, &entry.value);
                    }
                }
                None => self.unknown_key(&path, entry, &keys::names_below(parent)),
            }
        }
    }

    fn unknown_key(&mut self, path: &str, entry: &MappingEntry, known: &[&str]) {
        let help = match did_you_mean(&entry.key, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known keys: {}", known.join(", ")),
        };
        self.report_problem(&entry.key_span, format!("unknown key {path:?}"), Some(help));
    }

    fn read_value(&mut self, key: &'static ConfigKey, entry: &MappingEntry) {
        // As elsewhere in Kubernetes, null means absent.
        if is_null(&entry.value) {
            return;
        }
        if self.refuse_key(key, entry) {
            return;
        }
        if key.kind == SettingKind::Rules {
            return self.read_rules(entry);
        }
        if key.kind == SettingKind::Labels {
            return self.read_labels(key.path, entry);
        }
        if matches!(key.kind, SettingKind::Bindings | SettingKind::Catalogs) {
            match &entry.value.data {
                Data::Sequence(_) => {
                    let mut list = self.located(&entry.key_span, &entry.value);
                    if key.kind == SettingKind::Catalogs {
                        self.reading.problems.extend(catalogs::check_document(&list, self.text.confined_to.is_none()));
                        if let Some(folder) = self.text.confined_to {
                            let is_readable = |path: &str| {
                                is_below(FilePath::new(path), folder) && !is_of_git(FilePath::new(path), folder)
                            };
                            self.reading.problems.extend(catalogs::problems_outside_project(&list, is_readable));
                        }
                        catalogs::start_at_folder(&mut list, self.text.folder);
                    }
                    self.layer.lists.insert(key.path, list);
                }
                _ => self.report_problem(&entry.value.span, format!("{} is not a list", key.path), None),
            }
            return;
        }
        if key.kind == SettingKind::Waivers {
            // Waivers are read from the merged tree, which keeps the place of every value.
            let value = self.free(&[key.path.to_owned()], &entry.value);
            let place = self.place(&entry.value.span);
            return self.layer.set(key.path, value, place);
        }
        let mut value = entry.value.to_value();
        if let Err(why) = key.check(&value) {
            return self.report_key_problem(key, &entry.value.span, format!("{}: {why}", key.path), None);
        }
        if let Some(named) = self.text.confined_to.and_then(|folder| find_path_outside(key.kind, &value, folder)) {
            let message = format!("{}: {named:?} is outside the folder of this file", key.path);
            let help = match key.kind {
                SettingKind::Target => {
                    "this file is part of the project and may not choose a target outside its folder; use \
                    --target or -c FILE"
                }
                _ => {
                    "this file is part of the project and may not overwrite files outside its folder; name a file in \
                     its folder, or use -o, or -c FILE"
                }
            };
            return self.report_problem(&entry.value.span, message, Some(help.into()));
        }
        if let Some(named) = self.text.confined_to.and_then(|folder| of_git(key.kind, &value, folder)) {
            let message = format!("{}: {named:?} is in a folder of git", key.path);
            let help = "this file is part of the project and may not write to git's own files; name another file, or \
                        use -o, or -c FILE";
            return self.report_problem(&entry.value.span, message, Some(help.into()));
        }
        self.start_at_folder(key.kind, &mut value);
        let place = self.place(&entry.value.span);
        self.layer.set(key.path, layer::value(&value), place);
    }

    /// Whether this layer may not set the key.
    fn refuse_key(&mut self, key: &ConfigKey, entry: &MappingEntry) -> bool {
        if key.kind == SettingKind::Waivers && self.text.layer == Layer::Manifests {
            let message = format!("ignored: {} in a Config document among the manifests", key.path);
            let help = "manifests may not waive findings about themselves; set this in a configuration file \
                (gantry.yaml, or -c FILE)";
            self.reading.notices.push(self.place(&entry.key_span).problem(message).help(help));
            return true;
        }
        let (message, help) = match (self.text.layer, key.reach) {
            (Layer::Manifests, Reach::Files | Reach::OwnFiles) => (
                format!("a Config document among the manifests cannot set {:?}", key.path),
                "manifests may not choose where and how they are deployed; set this in a config file (gantry.yaml, \
                    or -c FILE)",
            ),
            (Layer::Project, Reach::OwnFiles) => (
                format!("the project file cannot set {:?}", key.path),
                match key.flag {
                    Some("--kubeconfig") => {
                        "a kubeconfig can run programs, and this file is part of the project; use -c FILE or \
                            --kubeconfig"
                    }
                    Some("--cluster" | "--user" | "--server" | "--token") => {
                        "this file is part of the project and may not choose the server or the credentials; use the \
                            flag, -c FILE or the user file"
                    }
                    Some("--render") => {
                        "this file is part of the project and may not name a program to run; use --render, -c FILE or the \
                            user file"
                    }
                    Some("--allow-exec") => {
                        "this file is part of the project and cannot allow its own programs; use --allow-exec, or the \
                            user file"
                    }
                    _ => {
                        "this file is part of the project and may not choose the identity that deploys; use -c FILE, \
                            --as or --as-group"
                    }
                },
            ),
            _ => return false,
        };
        self.report_key_problem(key, &entry.key_span, message, Some(help.into()));
        true
    }

    fn start_at_folder(&self, kind: SettingKind, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = kind.below_folder(text, self.text.folder),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.start_at_folder(kind, item)),
            _ => {}
        }
    }

    fn read_labels(&mut self, path: &str, entry: &MappingEntry) {
        let Some(labels) = entries(&entry.value) else {
            return self.report_problem(&entry.value.span, format!("{path} is not a mapping"), None);
        };
        for MappingEntry { key, value, key_span } in labels.iter().filter(|entry| !is_null(&entry.value)) {
            if key == PART_OF {
                let help = Some("it records which app an object belongs to; use --app".to_owned());
                self.report_problem(key_span, format!("{path}: the label {key} is set by gantry"), help);
                continue;
            }
            if let Some(why) = names::qualified(key).first() {
                self.report_problem(key_span, format!("{path}: {key:?} is not a valid label key: {why}"), None);
            }
            match text_of(value) {
                None => {
                    let why = located::not_a_string(&value.to_value());
                    self.report_problem(&value.span, format!("{path}.{key}: {why}"), None);
                }
                Some(text) => {
                    if let Some(why) = names::label_value(text).first() {
                        let message = format!("{path}.{key}: {text:?} is not a valid label value: {why}");
                        self.report_problem(&value.span, message, None);
                    }
                }
            }
        }
        let value = self.free(&[path.to_owned()], &entry.value);
        let place = self.place(&entry.value.span);
        self.layer.set(path, value, place);
    }

    /// Any value with the place of each part, without nulls.
    fn located(&self, key: &Span, node: &YamlNode) -> LocatedValue {
        let data = match &node.data {
            Data::Scalar(value) => LocatedData::Scalar(value.clone()),
            Data::Sequence(items) => {
                LocatedData::List(items.iter().map(|item| self.located(&item.span, item)).collect())
            }
            Data::Mapping(entries) => {
                let entries = entries.iter().filter(|entry| !is_null(&entry.value));
                let located = |entry: &MappingEntry| (entry.key.clone(), self.located(&entry.key_span, &entry.value));
                LocatedData::Map(entries.map(located).collect())
            }
        };
        LocatedValue { data, layer: self.text.layer, place: self.place(&node.span), key: self.place(key) }
    }

    /// A check's own configuration: any value. The check validates it later.
    fn free(&mut self, path: &[String], node: &YamlNode) -> Value {
        match &node.data {
            Data::Scalar(value) => layer::value(value),
            Data::Sequence(items) => {
                let mut values = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let path = child_path(path, &index.to_string());
                    self.remember(&path, &item.span, &item.span);
                    values.push(self.free(&path, item));
                }
                Value::from(values)
            }
            Data::Mapping(entries) => {
                let mut dict = Dict::new();
                for entry in entries.iter().filter(|entry| !is_null(&entry.value)) {
                    let path = child_path(path, &entry.key);
                    self.remember(&path, &entry.key_span, &entry.value.span);
                    dict.insert(entry.key.clone(), self.free(&path, &entry.value));
                }
                dict.into()
            }
        }
    }

    fn remember<S: AsRef<str>>(&mut self, path: &[S], key: &Span, value: &Span) {
        let path = path.iter().map(|step| step.as_ref().to_owned()).collect();
        let places = KeyValuePlaces { key: self.place(key), value: self.place(value) };
        self.layer.places.insert(path, places);
    }

    fn notice_left_alone(&mut self, root: &YamlNode) {
        if self.left_alone.is_empty() {
            return;
        }
        let message = format!("ignored in kapp's Config: {}", self.left_alone.join(", "));
        let mut notice = self.place(&root.span).problem(message);
        let read = || keys::names_below("").into_iter().filter(|key| keys::is_of_kapp(key));
        notice.help = Some(format!("gantry reads only {} from it", read().collect::<Vec<_>>().join(", ")));
        for key in self.left_alone.iter().filter(|key| !KAPP_KEYS.contains(&key.as_str())) {
            let near = did_you_mean(key, KAPP_KEYS.iter().copied().chain(read()));
            if let Some(near) = near.filter(|near| keys::is_of_kapp(near)) {
                notice.help = Some(format!("did you mean {near:?} instead of {key:?}?"));
            } else if keys::names_below("").contains(&key.as_str()) {
                notice.help = Some(format!("gantry reads {key:?} only in {API_VERSION} documents"));
            }
        }
        self.reading.notices.push(notice);
    }
}

fn child_path(path: &[String], step: &str) -> ConfigKeyPath {
    let mut path = path.to_vec();
    path.push(step.to_owned());
    path
}

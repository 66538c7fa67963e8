//! Parses one document into the objects in it.
//!
//! Most documents are one object; a `List` contains many. In both cases the object's JSON is a slice of the document's
//! JSON, extracted without building a tree.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::documents::Piece;
use super::spans::steps;
use super::{ConfigDocument, Manifest, ManifestOrigin, ManifestSource, hints, shown_text};
use crate::problem::{Location, Problem};
use crate::resource::{ObjectRef, RawObject, Step};
use gantry_yaml as yaml;

/// The size of a source, in bytes, from which the JSON of its objects is not kept in memory.
pub(super) const LARGE: usize = 32 << 20;

/// The label of a ConfigMap from which kapp reads a Config, and the key of the Config.
const CONFIG_LABEL: &str = "kapp.k14s.io/config";
const CONFIG_KEY: &str = "config.yml";

/// The result of parsing one document. The caller fills in document numbers, because it sees all documents.
#[derive(Default)]
pub(super) struct ManifestReading {
    pub manifests: Vec<Manifest>,
    pub configs: Vec<ConfigDocument>,
    pub problems: Vec<Problem>,
    pub notices: Vec<Problem>,
    /// Whether the document has only comments, or is `null`. Such a document is not counted.
    pub empty: bool,
}

/// Parses the document at `piece` of the source's text.
pub(super) fn read(source: &Arc<ManifestSource>, whole: &Arc<String>, piece: &Piece) -> ManifestReading {
    let text = &whole[piece.bytes.clone()];
    let mut reader = ManifestReader { source, whole, piece, document: None, reading: ManifestReading::default() };
    let read = yaml::YamlDocument::read(text).and_then(|document| match &document {
        Some(some) => some.json().map(|json| Some((json, document))),
        None => Ok(None),
    });
    let json = match read {
        Ok(None) => None,
        Ok(Some((json, document))) => {
            reader.document = document;
            Some(json)
        }
        Err(error) => match yaml::json_only(text) {
            Some(json) => Some(json),
            None => {
                reader.report_broken(text, &error);
                return reader.reading;
            }
        },
    };
    match json {
        Some(json) if json.text != "null" => {
            reader.report_duplicates(&json.duplicates);
            let place = reader.place(&[]);
            reader.read_object(&json.text, place, Vec::new(), None);
        }
        _ => reader.reading.empty = true,
    }
    reader.reading
}

struct ManifestReader<'a> {
    source: &'a Arc<ManifestSource>,
    /// The text of the source.
    whole: &'a Arc<String>,
    piece: &'a Piece,
    /// `None` for a text that is valid JSON but not valid YAML.
    document: Option<yaml::YamlDocument<'a>>,
    reading: ManifestReading,
}

impl ManifestReader<'_> {
    fn location(&self, line: usize, column: usize) -> Location {
        let before = if line == 1 { self.piece.column } else { 0 };
        Location { file: self.source.name.to_string(), line: self.piece.line + line, column: before + column }
    }

    /// The place of a value, or of its nearest ancestor that exists.
    fn place(&self, path: &[Step]) -> Location {
        match &self.document {
            Some(document) => {
                let (_, span) = document.locate(steps(path));
                self.location(span.line, span.column)
            }
            None => self.location(1, 1),
        }
    }

    fn report_broken(&mut self, text: &str, error: &yaml::YamlError) {
        let at = self.location(error.line, error.column);
        let problem = match hints::for_broken(text) {
            Some(hint) => Problem::new(format!("{} ({})", hint.message, shown_text(&error.message))).help(hint.help),
            None => Problem::new(format!("not valid YAML: {}", shown_text(&error.message))),
        };
        self.reading.problems.push(problem.at(at));
    }

    fn report_duplicates(&mut self, duplicates: &[yaml::Duplicate]) {
        for duplicate in duplicates {
            let first = self.location(duplicate.first.line, duplicate.first.column);
            let message = format!("duplicate key {:?}; the last value wins", shown_text(&duplicate.key));
            let notice = Problem::new(message).at(self.location(duplicate.again.line, duplicate.again.column));
            self.reading.notices.push(notice.help(format!("remove one of them; the first is at {first}")));
        }
    }

    /// Reads one object or a list of objects. `inherited` are the apiVersion and kind for an item without its own.
    fn read_object(&mut self, json: &str, at: Location, within: Vec<Step>, inherited: Option<(&str, &str)>) {
        let Ok(fields) = serde_json::from_str::<ManifestFields>(json) else {
            let what = type_of(json);
            let message = format!("a manifest is a mapping with apiVersion, kind and metadata, but this is {what}");
            return self.report_unusable(Problem::new(message).at(at), &within);
        };
        if let Some((api_version, kind)) = inherited
            && (fields.get("apiVersion").is_none() || fields.get("kind").is_none())
        {
            let typed = fields.typed(api_version, kind);
            return self.read_object(&typed, at, within, None);
        }
        let (api_version, kind) = match (fields.text("apiVersion"), fields.text("kind")) {
            (Ok(Some(api_version)), Ok(Some(kind))) => (api_version, kind),
            (api_version, kind) => {
                return self.report_untyped(&[("apiVersion", api_version), ("kind", kind)], at, &within);
            }
        };
        if let Some(list) = fields.list(&kind) {
            return self.list(list, &api_version, &kind, &within);
        }
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if let Some(hint) = hints::for_kind(group, &kind) {
            return self.reading.problems.push(Problem::new(hint.message).at(at).help(hint.help));
        }
        let origin = ManifestOrigin {
            source: self.source.clone(),
            document: 0,
            line: at.line,
            bytes: self.piece.bytes.clone(),
            within,
            renamed: &[],
        };
        if kind == "Config" && matches!(group, "gantry.dev" | "kapp.k14s.io") {
            return self.reading.configs.push(ConfigDocument { origin });
        }
        let metadata = fields.get("metadata");
        if let Some(problem) = self.config_in(&api_version, &kind, &fields, &origin, &at) {
            return self.reading.problems.push(problem);
        }
        match self.named(api_version, kind, metadata, &at, &origin.within) {
            Ok(object) => {
                let raw = self.raw(json, &object, &origin);
                self.reading.manifests.push(Manifest { object: object.into(), raw, origin, bundle: None });
            }
            Err(problem) => self.reading.problems.push(problem),
        }
    }

    /// Notes the Config in a ConfigMap that has kapp's label. The ConfigMap is still an object to deploy.
    fn config_in(
        &mut self,
        api_version: &str,
        kind: &str,
        fields: &ManifestFields<'_>,
        origin: &ManifestOrigin,
        at: &Location,
    ) -> Option<Problem> {
        let metadata = fields.get("metadata").filter(|metadata| metadata.get().contains(CONFIG_LABEL))?;
        let below = |json: &RawValue, key: &str| {
            let fields = serde_json::from_str::<ManifestFields<'_>>(json.get()).ok()?;
            fields.get(key).map(RawValue::to_owned)
        };
        below(&below(metadata, "labels")?, CONFIG_LABEL)?;
        let wrong = |what: &str| Problem::new(format!("the label {CONFIG_LABEL} {what}")).at(at.clone());
        if (api_version, kind) != ("v1", "ConfigMap") {
            return Some(wrong(&format!("is for ConfigMaps, but this is a {kind}")).help("remove the label"));
        }
        let text = fields.get("data").and_then(|data| below(data, CONFIG_KEY));
        if !text.is_some_and(|text| text.get().starts_with('"')) {
            let help = "write the Config as a text at that key, or remove the label";
            return Some(wrong(&format!("requires a Config in data at {CONFIG_KEY:?}, but there is none")).help(help));
        }
        let mut origin = origin.clone();
        origin.within.extend(["data".into(), CONFIG_KEY.into()]);
        self.reading.configs.push(ConfigDocument { origin });
        None
    }

    /// The JSON of an object. In a large source it is not kept in memory but made from the text when needed. The JSON
    /// of CRDs is always kept, because most checks read it, some more than once.
    fn raw(&self, json: &str, object: &ObjectRef, origin: &ManifestOrigin) -> RawObject {
        if self.whole.len() < LARGE || !origin.within.is_empty() || object.is_crd() {
            return RawObject::new(json);
        }
        let (whole, bytes) = (self.whole.clone(), origin.bytes.clone());
        RawObject::made_when_asked(move || match yaml::to_json(&whole[bytes.clone()]) {
            Ok(Some(json)) => json.text,
            _ => unreachable!("the same text was an object before"),
        })
    }

    fn list(&mut self, items: &str, api_version: &str, kind: &str, within: &[Step]) {
        let mut path = within.to_vec();
        path.push("items".into());
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(items) else {
            let message = format!("the items of a List must be a list, but this is {}", type_of(items));
            let problem = Problem::new(message).at(self.place(&path));
            return self.reading.problems.push(problem);
        };
        let places = self.document.as_ref().map(|document| document.items(steps(&path))).unwrap_or_default();
        let item_kind = kind.strip_suffix("List").unwrap_or_default();
        let inherited = (!item_kind.is_empty()).then_some((api_version, item_kind));
        for (index, item) in items.into_iter().enumerate() {
            let at =
                places.get(index).map_or_else(|| self.location(1, 1), |span| self.location(span.line, span.column));
            let mut within = path.clone();
            within.push(index.into());
            self.read_object(item.get(), at, within, inherited);
        }
    }

    /// Reports a document without apiVersion or kind, which may not be a manifest at all.
    fn report_untyped(&mut self, fields: &[(&str, TextOf)], at: Location, within: &[Step]) {
        for (name, field) in fields {
            if let Err(what) = field {
                let problem = self.not_text(name, what, within, &[(*name).into()]);
                self.reading.problems.push(problem);
            }
        }
        let missing: Vec<&str> =
            fields.iter().filter(|(_, field)| matches!(field, Ok(None))).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            let message = format!("the document has no {}", missing.join(" and no "));
            let problem = Problem::new(message).help("every manifest needs apiVersion, kind and metadata.name");
            self.report_unusable(problem.at(at), within);
        }
    }

    /// Reports `problem`, with a hint if the whole document seems to be something other than a manifest.
    fn report_unusable(&mut self, mut problem: Problem, within: &[Step]) {
        let text = &self.whole[self.piece.bytes.clone()];
        if let Some(hint) = hints::for_untyped(&self.source.name, text).filter(|_| within.is_empty()) {
            problem.message = format!("{} ({})", hint.message, problem.message);
            problem.help = Some(hint.help.into());
        }
        self.reading.problems.push(problem);
    }

    fn not_text(&self, name: &str, what: &str, within: &[Step], path: &[Step]) -> Problem {
        let path: Vec<Step> = within.iter().chain(path).cloned().collect();
        let problem = Problem::new(format!("{name} must be a non-empty string, but is {what}"));
        problem.at(self.place(&path)).help("if the value is right, put it in quotes")
    }

    fn named(
        &self,
        api_version: String,
        kind: String,
        metadata: Option<&RawValue>,
        at: &Location,
        within: &[Step],
    ) -> Result<ObjectRef, Problem> {
        let whole = within;
        let place = |path: &[Step]| {
            let path: Vec<Step> = whole.iter().chain(path).cloned().collect();
            self.place(&path)
        };
        for (field, value, fits) in [
            ("apiVersion", &api_version, is_api_version as fn(&str) -> bool),
            ("kind", &kind, is_kind as fn(&str) -> bool),
        ] {
            if !fits(value) {
                let message = format!("{:?} is not a valid {field}", shown_text(value));
                return Err(Problem::new(message).at(place(&[field.into()])));
            }
        }
        let nameless = || {
            let message = format!("the {kind} has no metadata.name");
            match hints::for_broken(&self.whole[self.piece.bytes.clone()]) {
                Some(hint) => Problem::new(format!("{} ({message})", hint.message)).help(hint.help),
                None => Problem::new(message),
            }
        };
        let metadata = match metadata.map(|metadata| (metadata, serde_json::from_str::<ManifestFields>(metadata.get())))
        {
            Some((_, Ok(fields))) => fields,
            Some((metadata, Err(_))) if metadata.get() != "null" => {
                let message = format!("metadata must be a mapping, but is {}", type_of(metadata.get()));
                return Err(Problem::new(message).at(place(&["metadata".into()])));
            }
            _ => return Err(nameless().at(at.clone())),
        };
        let field = |name: &'static str| {
            let path = ["metadata".into(), name.into()];
            metadata.text(name).map_err(|what| self.not_text(&format!("metadata.{name}"), &what, within, &path))
        };
        let Some(name) = field("name")? else {
            let problem = match metadata.get("generateName") {
                Some(_) => Problem::new(format!("the {kind} has metadata.generateName and no metadata.name"))
                    .at(place(&["metadata".into(), "generateName".into()]))
                    .help("set metadata.name: with a generated name, each run would create a new object"),
                None => nameless().at(place(&["metadata".into()])),
            };
            return Err(problem);
        };
        let namespace = field("namespace")?;
        for (field, value) in [("name", Some(&name)), ("namespace", namespace.as_ref())] {
            if let Some(value) = value.filter(|value| !is_path_segment(value)) {
                let message = format!("{:?} is not a valid metadata.{field}", shown_text(value));
                let problem = Problem::new(message).at(place(&["metadata".into(), field.into()]));
                return Err(problem.help("'.', '..', and names with '/', '%' or control characters are not allowed"));
            }
        }
        Ok(ObjectRef { api_version, kind, namespace, name })
    }
}

fn is_api_version(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
    };
    match text.split_once('/') {
        Some((group, version)) => part(group) && part(version),
        None => part(text),
    }
}

fn is_kind(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether the API server accepts the text as one segment of a path. It requires this of every name.
fn is_path_segment(text: &str) -> bool {
    !matches!(text, "." | "..") && !text.contains(['/', '%']) && !text.contains(char::is_control)
}

fn type_of(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'{') => "a mapping",
        Some(b'[') => "a list",
        Some(b'"') if json == "\"\"" => "empty",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// A string field: its value, `None` if it is absent, or the type of another value.
type TextOf = Result<Option<String>, String>;

/// The fields of a JSON object in order, with unparsed values.
struct ManifestFields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> ManifestFields<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> TextOf {
        match self.get(name).map(RawValue::get) {
            None | Some("null") => Ok(None),
            Some(json) => match serde_json::from_str::<String>(json) {
                Ok(text) if !text.is_empty() => Ok(Some(text)),
                _ => Err(type_of(json).to_owned()),
            },
        }
    }

    /// The items if the object is a list of objects: a `List`, or a kind that ends in `List` and has a list of items.
    fn list(&self, kind: &str) -> Option<&'a str> {
        let items = self.get("items").filter(|items| items.get() != "null");
        match kind {
            "List" => Some(items.map_or("[]", RawValue::get)),
            _ => items.map(RawValue::get).filter(|items| kind.ends_with("List") && items.starts_with('[')),
        }
    }

    /// The same object with another apiVersion and kind.
    fn typed(&self, api_version: &str, kind: &str) -> String {
        let string = |text: &str| serde_json::Value::from(text).to_string();
        let mut json = format!("{{\"apiVersion\":{},\"kind\":{}", string(api_version), string(kind));
        for (key, value) in self.0.iter().filter(|(key, _)| key != "apiVersion" && key != "kind") {
            json.push_str(&format!(",{}:{}", string(key), value.get()));
        }
        json.push('}');
        json
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ManifestFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = ManifestFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<String, &RawValue>()? {
                    fields.push(field);
                }
                Ok(ManifestFields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

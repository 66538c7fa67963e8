//! Parses the answer of a program (the `results` of the KRM functions specification) into violations.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{CustomCheckIdentity, field, shown_text};
use crate::{Violation, ViolationSubject};
use gantry_core::finding::Severity;
use gantry_core::resource::ObjectRef;
use gantry_core::secret::SecretValues;
use gantry_core::text;
use gantry_deploy::plan::{Change, Plan};
use gantry_yaml as yaml;

/// The standard output of a program. Other members, such as the `items` of a KRM function, are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramAnswer {
    /// ResourceList, if the answer is one. Then results may be absent if nothing was found.
    #[serde(default)]
    kind: Option<String>,
    /// The findings; an empty list if nothing was found.
    #[serde(default)]
    results: Option<Vec<ProgramResult>>,
}

/// A finding.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProgramResult {
    /// What is wrong, in plain text.
    message: String,
    /// The severity; if absent, error, which blocks the deploy.
    #[serde(default)]
    severity: Option<ProgramSeverity>,
    /// The object of the finding. If it is absent, file identifies the object; without both, it is the whole plan.
    #[serde(default)]
    resource_ref: Option<ResourceRef>,
    /// The field of the object.
    #[serde(default)]
    field: Option<Field>,
    /// The file of the object.
    #[serde(default)]
    file: Option<File>,
    /// The tag rule names the rule of the finding, for programs with several rules: CHECK/RULE. Other tags are ignored.
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum ProgramSeverity {
    Error,
    Warning,
    Info,
}

/// A reference to an object. The namespace can be absent if only one object of the plan matches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceRef {
    #[serde(default)]
    api_version: String,
    kind: String,
    name: String,
    #[serde(default)]
    namespace: Option<String>,
}

/// A field of an object.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Field {
    /// spec.containers[0].image
    path: String,
    /// The correct value.
    #[serde(default)]
    proposed_value: Option<Value>,
}

/// An object in a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct File {
    /// The path, as in source.file of the plan.
    path: String,
    /// The index of the document in the file, from 0; the first object if absent.
    #[serde(default)]
    index: Option<usize>,
}

impl ProgramAnswer {
    /// Reads JSON or YAML.
    ///
    /// # Errors
    /// The reason why the text is not a valid answer.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        if text.trim().is_empty() {
            return Err("it is empty; write {\"results\": []} if nothing was found".to_owned());
        }
        let answer: ProgramAnswer = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text)
                .map_err(|error| format!("line {}: {}", error.line(), yaml::explain_json(&error)))?,
            false => match yaml::parse(text).map_err(|error| format!("line {}: {}", error.line, error.message))? {
                // serde would accept a list as the members in their order.
                Some(node) if node.to_value().is_array() => return Err("it is a list, not a mapping".to_owned()),
                Some(node) => serde_json::from_value(node.to_value()).map_err(|error| yaml::explain_json(&error))?,
                None => return Err("it is empty; write {\"results\": []} if nothing was found".to_owned()),
            },
        };
        if answer.results.is_none() && answer.kind.as_deref() != Some("ResourceList") {
            return Err("it has no results; write {\"results\": []} if nothing was found".to_owned());
        }
        if answer.results.iter().flatten().any(|result| result.message.trim().is_empty()) {
            return Err("a result has no message".to_owned());
        }
        Ok(answer)
    }

    /// The violations, in the order of the answer.
    pub fn into_violations(self, identity: &CustomCheckIdentity, plan: &Plan, redact: bool) -> Vec<Violation> {
        let index = PlanObjectIndex::new(plan);
        // A finding that is not about an object of the plan may quote any of them.
        let values = LazyCell::new(|| {
            let live = plan.changes.iter().filter_map(|change| Some(change.live.as_ref()?.raw.json()));
            SecretValues::collect(plan.changes.iter().map(|change| change.desired.raw.json()).chain(live))
        });
        let hide = |message: &str| if redact { values.taken_out(message) } else { message.to_owned() };
        let results = self.results.into_iter().flatten();
        results.map(|result| result.into_violation(identity, plan, &index, redact, &hide)).collect()
    }
}

impl ProgramResult {
    fn into_violation(
        self,
        identity: &CustomCheckIdentity,
        plan: &Plan,
        index: &PlanObjectIndex<'_>,
        redact: bool,
        hide: &dyn Fn(&str) -> String,
    ) -> Violation {
        let ProgramResult { message, severity, resource_ref, field, file, tags } = self;
        let subject = match (resource_ref, file) {
            (Some(reference), _) => index.object(reference),
            (None, Some(file)) => index.file(&file),
            (None, None) => ViolationSubject::Plan,
        };
        let severity = match severity {
            None | Some(ProgramSeverity::Error) => Severity::Error,
            Some(ProgramSeverity::Warning) => Severity::Warning,
            Some(ProgramSeverity::Info) => Severity::Info,
        };
        let change = match &subject {
            ViolationSubject::Change(index) => Some(&plan.changes[*index]),
            _ => None,
        };
        let message = match change {
            Some(change) => shown_text(&message, change, redact),
            None => hide(&message),
        };
        let path = field.as_ref().map(|field| field.path.clone()).filter(|path| !path.is_empty());
        let at = path.as_deref().and_then(field::steps).unwrap_or_default();
        let mut violation = identity.violation(subject, severity, message.trim().to_owned(), at);
        let hidden = redact || change.is_some_and(|change| change.desired.object.is_secret());
        if let Some(value) = field.and_then(|field| field.proposed_value).filter(|_| !hidden) {
            let field = path.as_deref().unwrap_or("it");
            let help = &mut violation.body.help;
            *help = format!("set {field} to {}; {help}", text::cut(&value.to_string(), 200));
        }
        if let Some(rule) = tags.as_ref().and_then(|tags| tags.get("rule")).filter(|rule| !rule.is_empty()) {
            violation.rule = format!("{}/{rule}", identity.name).into();
        }
        violation.path(path)
    }
}

/// Finds objects of the plan by reference or by file.
struct PlanObjectIndex<'p> {
    changes: &'p [Change],
    /// By group, kind and name.
    objects: BTreeMap<(&'p str, &'p str, &'p str), Vec<usize>>,
    files: BTreeMap<&'p str, BTreeSet<(usize, usize)>>,
}

impl<'p> PlanObjectIndex<'p> {
    fn new(plan: &'p Plan) -> Self {
        let mut objects: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut files: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (index, change) in plan.changes.iter().enumerate() {
            let object = &change.desired.object;
            objects.entry((object.group(), object.kind.as_str(), object.name.as_str())).or_default().push(index);
            let origin = &change.desired.origin;
            files.entry(&*origin.source.name).or_default().insert((origin.document, index));
        }
        PlanObjectIndex { changes: &plan.changes, objects, files }
    }

    fn object(&self, reference: ResourceRef) -> ViolationSubject {
        let ResourceRef { api_version, kind, name, namespace } = reference;
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let object = ObjectRef { api_version, kind, namespace, name };
        let found = self.objects.get(&(object.group(), object.kind.as_str(), object.name.as_str()));
        let fits = |index: &&usize| {
            let known = self.changes[**index].desired.object.namespace.as_deref();
            object.namespace.is_none() || object.namespace.as_deref() == known
        };
        let fitting: Vec<usize> = found.into_iter().flatten().filter(fits).copied().collect();
        match fitting.as_slice() {
            [only] => ViolationSubject::Change(*only),
            _ => ViolationSubject::Object(object),
        }
    }

    fn file(&self, file: &File) -> ViolationSubject {
        let documents = self.files.get(file.path.as_str());
        let found = documents.into_iter().flatten().find(|(document, _)| match file.index {
            Some(index) => *document == index + 1,
            None => true,
        });
        found.map_or(ViolationSubject::Plan, |(_, change)| ViolationSubject::Change(*change))
    }
}

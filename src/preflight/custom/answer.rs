//! What a program answers: the `results` of the KRM functions specification, made violations.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Own, field, shown};
use crate::finding::Severity;
use crate::plan::{Change, Plan};
use crate::preflight::{Subject, Violation};
use crate::resource::ObjectRef;
use crate::secret::Values;
use crate::text;
use gantry_yaml as yaml;

/// What a program writes to standard output. Further members, such as the `items` of a KRM function, are not read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramAnswer {
    /// ResourceList, where it is one. Then results may be absent if there are none.
    #[serde(default)]
    kind: Option<String>,
    /// What was found. An empty list where everything is fine.
    #[serde(default)]
    results: Option<Vec<ProgramResult>>,
}

/// One thing that was found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProgramResult {
    /// What is wrong, for people.
    message: String,
    /// error, which blocks the deploy, where there is none.
    #[serde(default)]
    severity: Option<ProgramSeverity>,
    /// The object that it is about. Without one, file says where; without both it is about the plan as a whole.
    #[serde(default)]
    resource_ref: Option<ResourceRef>,
    /// The field of the object.
    #[serde(default)]
    field: Option<Field>,
    /// The file of the object.
    #[serde(default)]
    file: Option<File>,
    /// rule names the rule of a program that has several: its findings are those of CHECK/RULE. Others are not read.
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
}

/// How loud a finding is.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum ProgramSeverity {
    Error,
    Warning,
    Info,
}

/// Which object. An object of the plan is found without its namespace where that leaves no doubt.
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

/// Which field.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Field {
    /// spec.containers[0].image
    path: String,
    /// The value that would be right.
    #[serde(default)]
    proposed_value: Option<Value>,
}

/// Which object of which file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct File {
    /// As source.file of the plan has it.
    path: String,
    /// The document in the file, from 0; the first where there is none.
    #[serde(default)]
    index: Option<usize>,
}

impl ProgramAnswer {
    /// Reads JSON or YAML.
    ///
    /// # Errors
    /// Why it is no answer.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        if text.trim().is_empty() {
            return Err("it is empty; write {\"results\": []} if nothing was found".to_owned());
        }
        let answer: ProgramAnswer = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text)
                .map_err(|error| format!("line {}: {}", error.line(), yaml::explain_json(&error)))?,
            false => match yaml::parse(text).map_err(|error| format!("line {}: {}", error.line, error.message))? {
                // A list would be taken for the members in their order.
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

    /// What was found, in the program's order.
    pub fn into_violations(self, own: &Own, plan: &Plan, redact: bool) -> Vec<Violation> {
        let index = Index::of(plan);
        // What is about no object may quote any.
        let values = LazyCell::new(|| {
            let live = plan.changes.iter().filter_map(|change| Some(change.live.as_ref()?.raw.json()));
            Values::of(plan.changes.iter().map(|change| change.desired.raw.json()).chain(live))
        });
        let hide = |message: &str| if redact { values.taken_out(message) } else { message.to_owned() };
        let results = self.results.into_iter().flatten();
        results.map(|result| result.into_violation(own, plan, &index, redact, &hide)).collect()
    }
}

impl ProgramResult {
    fn into_violation(
        self,
        own: &Own,
        plan: &Plan,
        index: &Index<'_>,
        redact: bool,
        hide: &dyn Fn(&str) -> String,
    ) -> Violation {
        let ProgramResult { message, severity, resource_ref, field, file, tags } = self;
        let subject = match (resource_ref, file) {
            (Some(reference), _) => index.object(reference),
            (None, Some(file)) => index.file(&file),
            (None, None) => Subject::Plan,
        };
        let severity = match severity {
            None | Some(ProgramSeverity::Error) => Severity::Error,
            Some(ProgramSeverity::Warning) => Severity::Warning,
            Some(ProgramSeverity::Info) => Severity::Info,
        };
        let change = match &subject {
            Subject::Change(index) => Some(&plan.changes[*index]),
            _ => None,
        };
        let message = match change {
            Some(change) => shown(&message, change, redact),
            None => hide(&message),
        };
        let path = field.as_ref().map(|field| field.path.clone()).filter(|path| !path.is_empty());
        let at = path.as_deref().and_then(field::steps).unwrap_or_default();
        let mut violation = own.violation(subject, severity, message.trim().to_owned(), at);
        let hidden = redact || change.is_some_and(|change| change.desired.object.is_secret());
        if let Some(value) = field.and_then(|field| field.proposed_value).filter(|_| !hidden) {
            let field = path.as_deref().unwrap_or("it");
            violation.help = format!("set {field} to {}; {}", text::cut(&value.to_string(), 200), violation.help);
        }
        if let Some(rule) = tags.as_ref().and_then(|tags| tags.get("rule")).filter(|rule| !rule.is_empty()) {
            violation.rule = format!("{}/{rule}", own.name).into();
        }
        Violation { path, ..violation }
    }
}

/// Finds objects of the plan by what programs say of them.
struct Index<'p> {
    changes: &'p [Change],
    /// By group, kind and name.
    objects: BTreeMap<(&'p str, &'p str, &'p str), Vec<usize>>,
    files: BTreeMap<&'p str, BTreeSet<(usize, usize)>>,
}

impl<'p> Index<'p> {
    fn of(plan: &'p Plan) -> Self {
        let mut objects: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut files: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (index, change) in plan.changes.iter().enumerate() {
            let object = &change.desired.object;
            objects.entry((object.group(), object.kind.as_str(), object.name.as_str())).or_default().push(index);
            let origin = &change.desired.origin;
            files.entry(&*origin.source.name).or_default().insert((origin.document, index));
        }
        Index { changes: &plan.changes, objects, files }
    }

    fn object(&self, reference: ResourceRef) -> Subject {
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
            [only] => Subject::Change(*only),
            _ => Subject::Object(object),
        }
    }

    fn file(&self, file: &File) -> Subject {
        let documents = self.files.get(file.path.as_str());
        let found = documents.into_iter().flatten().find(|(document, _)| match file.index {
            Some(index) => *document == index + 1,
            None => true,
        });
        found.map_or(Subject::Plan, |(_, change)| Subject::Change(*change))
    }
}

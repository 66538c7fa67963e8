//! `cel`: a check by an expression, which is true for each object that is fine.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wildmatch::WildMatch;

use super::{CustomCheckIdentity, KindEntry, field, shown_text};
use crate::{Check, CheckFuture, CheckResult, Context, CouldNotCheck, Violation, ViolationSubject};
use gantry_core::finding::Severity;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::did_you_mean;
use gantry_core::resource::{ObjectRef, Step};
use gantry_deploy::config::{ConfigReader, LocatedData};
use gantry_deploy::plan::{Change, Plan};
use gantry_k8s_cel::{CelBudget, CelExpression};

pub const KIND: KindEntry = KindEntry {
    key: "cel",
    summary: "a CEL expression over each object and its live version, as in a ValidatingAdmissionPolicy",
    runs_programs: false,
    configure: |reader| {
        options(reader);
    },
    describe: |config| {
        let options = options(&mut ConfigReader::of_section("", "cel", config));
        options.message.clone().unwrap_or(options.expression)
    },
    build: |identity, config, _| {
        let options = options(&mut ConfigReader::of_section("", "cel", config));
        let compile = |source: &str, message: bool| match message {
            true => CelExpression::message(source, VARIABLES).ok(),
            false => CelExpression::condition(source, VARIABLES).ok(),
        };
        Box::new(CelCheck {
            identity,
            expression: compile(&options.expression, false),
            message_expression: options.message_expression.as_deref().and_then(|source| compile(source, true)),
            kinds: options.kinds.iter().map(|kind| KindPattern::parse(kind)).collect(),
            field: options.field_path.as_deref().and_then(field::steps).unwrap_or_default(),
            options,
        })
    },
};

/// The variables of an expression.
const VARIABLES: &[&str] = &["object", "oldObject"];

/// The maximum length of the result of `messageExpression` in bytes, as in a policy.
const MAX_MESSAGE: usize = 5 * 1024;

#[derive(Debug, Default)]
struct CelCheckOptions {
    /// Empty means every kind.
    kinds: Vec<String>,
    expression: String,
    message: Option<String>,
    message_expression: Option<String>,
    field_path: Option<String>,
}

fn options(reader: &mut ConfigReader<'_>) -> CelCheckOptions {
    let kinds = kinds(reader);
    let about = "True if the object is fine. object is the manifest, oldObject the live object, or null.";
    let condition = |source: &str| Ok(CelExpression::condition(source, VARIABLES).map(drop)?);
    let expression = reader.parsed("expression", about, condition);
    reader.required("expression", "write the condition that must be true: expression: object.spec.replicas <= 5");
    let message = reader.string("message", "The message for an object for which the expression is false.");
    let about = "A CEL expression that builds the message; if it fails, message is used.";
    let message_expression =
        reader.parsed("messageExpression", about, |source| Ok(CelExpression::message(source, VARIABLES).map(drop)?));
    let about = "The field to point at: spec.replicas.";
    let field_path = reader.parsed("fieldPath", about, |path| {
        field::steps(path).map(drop).ok_or_else(|| format!("{path:?} is not a path such as spec.replicas"))
    });
    CelCheckOptions { kinds, expression: expression.unwrap_or_default(), message, message_expression, field_path }
}

fn kinds(reader: &mut ConfigReader<'_>) -> Vec<String> {
    let about = "The kinds to check: Deployment, Deployment.apps (kind and group), *.example.com; * and ? are \
        wildcards. All kinds if the list is missing.";
    let schema = json!({
        "description": "The objects to check.",
        "type": "object",
        "properties": {"kinds": {"description": about, "type": "array", "items": {"type": "string", "minLength": 1}}},
        "additionalProperties": false,
    });
    let Some(found) = reader.value("match", schema) else { return Vec::new() };
    if !matches!(found.data, LocatedData::Map(_)) {
        reader.report_problem("match", found, "is not a mapping; write match: {kinds: [Deployment]}");
    }
    let mut kinds = Vec::new();
    for (key, value) in found.entries() {
        match (key, &value.data) {
            ("kinds", LocatedData::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    match item.to_value() {
                        Value::String(kind) if !kind.is_empty() => kinds.push(kind),
                        other => reader.report_problem(
                            &format!("match.kinds[{index}]"),
                            item,
                            &format!("{other} is not a kind"),
                        ),
                    }
                }
            }
            ("kinds", _) => reader.report_problem("match.kinds", value, "is not a list of kinds"),
            _ => reader.report_problem(&format!("match.{key}"), value, "is not known; known keys: kinds"),
        }
    }
    kinds
}

/// `Deployment`, `Deployment.apps`.
#[derive(Debug)]
struct KindPattern {
    kind: WildMatch,
    /// `None` means any group.
    group: Option<WildMatch>,
}

impl KindPattern {
    fn parse(text: &str) -> Self {
        match text.split_once('.') {
            Some((kind, group)) => KindPattern { kind: WildMatch::new(kind), group: Some(WildMatch::new(group)) },
            None => KindPattern { kind: WildMatch::new(text), group: None },
        }
    }

    fn matches(&self, object: &ObjectRef) -> bool {
        self.kind.matches(&object.kind) && self.group.as_ref().is_none_or(|group| group.matches(object.group()))
    }
}

/// The kind of an object, as `match.kinds` names it: `Deployment.apps`.
fn of_kind(object: &ObjectRef) -> String {
    match object.group() {
        "" => object.kind.clone(),
        group => format!("{}.{group}", object.kind),
    }
}

/// A check by an expression.
struct CelCheck {
    identity: CustomCheckIdentity,
    options: CelCheckOptions,
    /// `None` only if the expression did not compile; the configuration has already reported that.
    expression: Option<CelExpression>,
    message_expression: Option<CelExpression>,
    kinds: Vec<KindPattern>,
    field: Vec<Step>,
}

impl Check for CelCheck {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let changes: Vec<(usize, &Change)> = context.plan.changes.iter().enumerate().collect();
            let results = in_parallel(&changes, |(index, change)| self.evaluate(*index, change, context.redact));
            let (mut violations, mut unchecked) = (Vec::new(), Vec::new());
            for result in results {
                match result {
                    Ok(violation) => violations.extend(violation),
                    Err(error) => unchecked.push(error),
                }
            }
            violations.extend(self.no_match(context.plan));
            Ok(CheckResult::checked(violations, unchecked))
        })
    }
}

impl CelCheck {
    fn is_of_kind(&self, object: &ObjectRef) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.matches(object))
    }

    /// The warning that the kinds match no object: a misspelt kind or group would otherwise look like a pass.
    fn no_match(&self, plan: &Plan) -> Option<Violation> {
        let unserved = plan.unplaced.iter().map(|unplaced| &unplaced.manifest.object);
        let mut objects = plan.changes.iter().map(|change| &change.desired.object).chain(unserved).peekable();
        objects.peek()?;
        if objects.any(|object| self.is_of_kind(object)) {
            return None;
        }
        let message =
            format!("0 objects matched: no object among the manifests is of kind {}", self.options.kinds.join(", "));
        let help = match self.similar_kind(plan) {
            Some(near) => format!("did you mean {near:?}? Correct match.kinds"),
            None => "correct match.kinds, or disable the check for these manifests: enabled: false".to_owned(),
        };
        let mut violation = self.identity.violation(ViolationSubject::Plan, Severity::Warning, message, Vec::new());
        let help = [help, violation.body.help].into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>();
        violation.body.help = help.join("\n");
        Some(violation)
    }

    /// A kind of the manifests that is spelled like one that the check names.
    fn similar_kind(&self, plan: &Plan) -> Option<String> {
        let kinds: BTreeSet<String> = plan.changes.iter().map(|change| of_kind(&change.desired.object)).collect();
        let near = |kind: &String| did_you_mean(kind, kinds.iter().map(String::as_str)).map(str::to_owned);
        self.options.kinds.iter().find_map(near)
    }

    fn evaluate(&self, index: usize, change: &Change, redact: bool) -> Result<Option<Violation>, CouldNotCheck> {
        let reference = &change.desired.object;
        if !self.is_of_kind(reference) {
            return Ok(None);
        }
        let could_not_check = |why: &str| {
            let why = shown_text(why, change, redact);
            let message = format!("{reference} ({}): {why}", change.desired.origin.location());
            let help =
                "test for fields that may be absent: has(object.spec.x), or object.?spec.?x.orValue(0)".to_owned();
            CouldNotCheck { message, help: Some(help) }
        };
        let object = change.desired_value();
        let old = change.live.as_ref().map_or(Value::Null, |live| live.raw.value());
        let variables = [("object", &object), ("oldObject", &old)];
        let expression = self.expression.as_ref().ok_or_else(|| could_not_check("the expression was not compiled"))?;
        if expression.holds(&variables, &mut CelBudget::default()).map_err(|why| could_not_check(&why.to_string()))? {
            return Ok(None);
        }
        let message = self.message(&variables);
        let message = shown_text(&message, change, redact);
        let violation =
            self.identity.violation(ViolationSubject::Change(index), Severity::Error, message, self.field.clone());
        Ok(Some(violation.path(self.options.field_path.clone())))
    }

    fn message(&self, variables: &[(&'static str, &Value)]) -> String {
        let built = self.message_expression.as_ref().and_then(|expression| {
            let text = expression.text(variables, &mut CelBudget::default()).ok()?;
            let text = text.trim();
            // As in a policy: if the result is not printable, the fixed message is used.
            (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
        });
        built
            .or_else(|| self.options.message.clone())
            .unwrap_or_else(|| format!("failed expression: {}", self.options.expression.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_match_with_and_without_their_group() {
        let object = |api_version: &str, kind: &str| ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: None,
            name: "x".into(),
        };
        let deployment = object("apps/v1", "Deployment");
        for (pattern, fits) in [
            ("Deployment", true),
            ("Deployment.apps", true),
            ("Deployment.extensions", false),
            ("*", true),
            ("*.apps", true),
            ("Deploy*", true),
            ("deployment", false),
        ] {
            assert_eq!(KindPattern::parse(pattern).matches(&deployment), fits, "{pattern}");
        }
        assert!(KindPattern::parse("*.example.com").matches(&object("example.com/v1", "Sample")));
        assert!(KindPattern::parse("Pod.").matches(&object("v1", "Pod")));
    }
}

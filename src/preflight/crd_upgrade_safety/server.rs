//! `CRDInvalid`: what the API server says of the CRDs of a plan, new ones included. [`gantry_schema::crd`] knows;
//! this file puts it in the words of a finding.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::compare::RuleViolation;
use super::presets::{crdify, kapp};
use super::rules::{RULES, Said};
use crate::finding::Severity;
use crate::plan::{Action, Change};
use crate::preflight::Violation;
use crate::preflight::objects::merge;
use crate::resource::{RawObject, Step};
use gantry_schema::FieldError;
use gantry_schema::crd::{self, Refusal};

/// The rule.
pub const NAME: &str = "CRDInvalid";

/// More refusals of one CRD than this are counted and not told one by one.
const MOST: usize = 50;

/// A CRD that a deploy would write.
pub struct Written {
    /// Index into the plan.
    pub change: usize,
    pub live: Option<RawObject>,
    pub desired: RawObject,
    /// Who applies it.
    pub manager: String,
}

impl Written {
    /// Those among `changes`, in the order of the plan.
    pub fn all(changes: &[Change], manager: &str) -> Vec<Self> {
        let is_written = |change: &&Change| matches!(change.action, Action::Create | Action::Update);
        let crds = changes.iter().enumerate().filter(|(_, change)| change.desired.object.is_crd());
        crds.filter(|(_, change)| is_written(change))
            .map(|(index, change)| Written {
                change: index,
                live: change.live.as_ref().map(|live| live.raw.clone()),
                desired: change.desired.raw.clone(),
                manager: manager.to_owned(),
            })
            .collect()
    }
}

/// What the server refuses in a CRD, as JSON, that `manager` applies; with `live` it is to replace that one. Without a manager
/// it is an upgrade from one manifest to another.
pub fn judge(live: Option<&str>, desired: &str, manager: Option<&str>) -> Vec<RuleViolation> {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    let Some(desired) = read(desired).filter(|crd| crd["apiVersion"] == "apiextensions.k8s.io/v1") else {
        return Vec::new();
    };
    let live = live.and_then(read);
    let desired = match &live {
        Some(live) => match manager {
            Some(manager) => applied(live, desired, manager),
            None => upgraded(live, desired),
        },
        None => desired,
    };
    let Some(rule) = RULES.iter().find(|rule| rule.doc.name == NAME) else { return Vec::new() };
    let violation = |version, path, said| RuleViolation { rule, version, path, node: Vec::new(), said };
    let refusals = match crd::judge(&desired, live.as_ref()) {
        Ok(judgement) => judgement.refusals,
        Err(problem) => {
            let said = said(format!("the API server cannot read this CRD: {problem}"), vec!["spec".into()]);
            return vec![violation(None, None, said)];
        }
    };
    let more = refusals.len().saturating_sub(MOST);
    let mut violations: Vec<RuleViolation> = refusals
        .into_iter()
        .take(MOST)
        .map(|refusal| {
            let place = Place::of(&refusal, &desired);
            let message = format!("the API server refuses this CRD: {}", text(&refusal.error));
            violation(place.version, place.path, said(message, place.at))
        })
        .collect();
    if more > 0 {
        let message = format!("the API server refuses this CRD for {more} more reasons");
        violations.push(violation(None, None, said(message, vec!["spec".into()])));
    }
    violations
}

/// The live CRD once `manager` has applied the desired one: what it does not say stays, unless `manager` said it before and
/// nobody else does.
fn applied(live: &Value, desired: Value, manager: &str) -> Value {
    merge::merge(live, &merge::intent(desired, true), &SHAPE, manager)
}

/// How a CRD is merged: its lists that are no single values, and the fields that go with all that is in them.
static SHAPE: LazyLock<Value> = LazyLock::new(|| {
    let client = json!({"properties": {"service": {}, "url": {}, "caBundle": {}}});
    let webhook = json!({"properties": {"clientConfig": client, "conversionReviewVersions": {}}});
    let conversion = json!({"properties": {"strategy": {}, "webhook": webhook}});
    json!({"properties": {
        "metadata": {"properties": {
            "finalizers": {"x-kubernetes-list-type": "set"},
            "ownerReferences": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
            "labels": {},
            "annotations": {},
        }},
        "spec": {"properties": {"conversion": conversion, "names": {}, "versions": {}}},
    }})
});

/// The desired CRD with what others say of the live one, where nobody knows who said what: what they say of a webhook that
/// converts, such as its CA, and who approved of the API.
fn upgraded(live: &Value, mut desired: Value) -> Value {
    let webhook = |crd: &Value| crd["spec"]["conversion"]["strategy"] == "Webhook";
    if webhook(live) && webhook(&desired) {
        let (live, desired) = (&live["spec"]["conversion"], &mut desired["spec"]["conversion"]);
        let config = &desired["webhook"]["clientConfig"];
        // Of URL and service there is one.
        if config["url"].is_null() && config["service"].is_null() {
            keep(live, desired);
        }
    }
    let approval = |crd: &Value| crd["metadata"]["annotations"]["api-approved.kubernetes.io"].clone();
    if approval(&desired).is_null() && !approval(live).is_null() && desired["metadata"].is_object() {
        keep(&live["metadata"]["annotations"], &mut desired["metadata"]["annotations"]);
    }
    desired
}

/// Takes over what `into` does not say itself.
fn keep(from: &Value, into: &mut Value) {
    match (from, into) {
        (Value::Object(from), Value::Object(into)) => {
            for (key, value) in from {
                keep(value, into.entry(key).or_insert(Value::Null));
            }
        }
        (from, into) if into.is_null() => *into = from.clone(),
        _ => {}
    }
}

/// The first refusal of a CRD that is to replace a live one, in words.
pub fn refusal(live: &RawObject, desired: &RawObject) -> Option<String> {
    let first = judge(Some(&live.json()), &desired.json(), None).into_iter().next()?;
    Some(first.said.message.for_versions(first.version.as_deref().unwrap_or_default()))
}

fn said(message: String, at: Vec<Step>) -> Said {
    Said {
        message: message.into(),
        help: "fix the CRD; a deploy would stop where the server refuses it".into(),
        at,
        label: Some("refused".to_owned()),
        ..Said::default()
    }
}

/// The server's words; where it quotes a whole schema, what is before and behind that.
fn text(error: &FieldError) -> String {
    const SHOWN: usize = 400;
    let text = error.to_string();
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= 2 * SHOWN {
        return text;
    }
    let part = |part: &[char]| part.iter().collect::<String>();
    format!("{} … {}", part(&characters[..SHOWN]), part(&characters[characters.len() - SHOWN..]))
}

/// Where in the desired CRD.
struct Place {
    version: Option<String>,
    path: Option<String>,
    at: Vec<Step>,
}

impl Place {
    /// What all versions have in common stands at the top for the server; here it is shown in the first version.
    fn of(refusal: &Refusal, desired: &Value) -> Self {
        let steps: Vec<Step> = refusal
            .at
            .iter()
            .map(|step| match step {
                crd::Step::Key(key) => key.as_str().into(),
                crd::Step::Index(index) => (*index).into(),
            })
            .collect();
        let key = |at: usize| match refusal.at.get(at) {
            Some(crd::Step::Key(key)) => key.as_str(),
            _ => "",
        };
        let of_all = match (key(0), key(1)) {
            ("spec", "validation" | "schema") => Some("schema"),
            ("spec", field @ ("subresources" | "additionalPrinterColumns" | "selectableFields")) => Some(field),
            _ => None,
        };
        let versions = || [Step::from("spec"), "versions".into()];
        let mut at: Vec<Step> = match of_all {
            Some(field) => {
                let first = [0.into(), field.into()];
                versions().into_iter().chain(first).chain(steps.into_iter().skip(2)).collect()
            }
            None if (key(0), key(1), key(2)) == ("spec", "conversion", "webhookClientConfig") => {
                let config = ["spec".into(), "conversion".into(), "webhook".into(), "clientConfig".into()];
                config.into_iter().chain(steps.into_iter().skip(3)).collect()
            }
            None if (key(0), key(1)) == ("status", "storedVersions") => versions().into(),
            None => steps,
        };
        for step in &mut at {
            if *step == Step::from("JSONPath") {
                *step = "jsonPath".into();
            }
        }
        let count = desired["spec"]["versions"].as_array().map_or(0, Vec::len);
        let version = match at.get(2) {
            Some(Step::Index(index)) if of_all.is_none() || count == 1 => {
                desired["spec"]["versions"][*index]["name"].as_str().map(str::to_owned)
            }
            _ => None,
        };
        let path = (at.get(4) == Some(&"openAPIV3Schema".into())).then(|| node_path(&at[5..]));
        Place { version, path, at }
    }
}

/// The schema node: `^.spec.pollInterval`.
fn node_path(steps: &[Step]) -> String {
    let mut path = "^".to_owned();
    let mut steps = steps.iter();
    while let Some(Step::Key(step)) = steps.next() {
        match (step.as_str(), steps.clone().next()) {
            ("properties", Some(Step::Key(name))) => {
                path.push('.');
                path.push_str(name);
                steps.next();
            }
            ("items" | "additionalProperties", _) => {
                path.push('.');
                path.push_str(step);
            }
            _ => break,
        }
    }
    path
}

/// Leaves out what another rule says as loudly of the same CRD. Of a pattern that the server refuses there is nothing to
/// compare.
pub fn tell_once(violations: &mut Vec<Violation>) {
    let is_pattern = |at: &[Step]| at.last() == Some(&Step::from("pattern"));
    let refused: Vec<_> = violations
        .iter()
        .filter(|violation| {
            violation.rule == NAME && violation.severity == Severity::Error && is_pattern(&violation.at)
        })
        .map(|violation| (format!("{:?}", violation.subject), violation.at.clone()))
        .collect();
    violations.retain(|violation| {
        let is_it =
            |(subject, at): &(String, Vec<Step>)| *at == violation.at && *subject == format!("{:?}", violation.subject);
        violation.rule != "PatternChange" || !refused.iter().any(is_it)
    });
    let loud: Vec<(String, String)> = violations
        .iter()
        .filter(|violation| violation.severity == Severity::Error || violation.rule != NAME)
        .map(|violation| (format!("{:?}", violation.subject), violation.rule.to_string()))
        .collect();
    violations.retain(|violation| {
        if violation.rule != NAME {
            return true;
        }
        let subject = format!("{:?}", violation.subject);
        let has = |rule: &str| loud.iter().any(|(other, name)| *other == subject && name == rule);
        let twins: &[&str] = match violation.at.as_slice() {
            [spec, scope] if *spec == "spec".into() && *scope == "scope".into() => {
                &[kapp::NO_SCOPE_CHANGE, crdify::SCOPE]
            }
            [_, names, _] if *names == "names".into() => &["KindChanged"],
            [_, versions] if *versions == "versions".into() => {
                &[kapp::NO_STORED_VERSION_REMOVED, crdify::STORED_VERSION_REMOVAL]
            }
            _ => &[],
        };
        !twins.iter().any(|twin| has(twin))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_of_a_webhook_is_kept_as_an_apply_keeps_it() {
        let crd = |conversion: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "samples.test.example.com"},
                "spec": {"group": "test.example.com", "scope": "Namespaced", "conversion": conversion,
                    "names": {"kind": "Sample", "plural": "samples"},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
            .to_string()
        };
        let client = json!({"service": {"name": "a", "namespace": "b"}, "caBundle": "Cg=="});
        let live =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
        let desired = crd(json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}));
        assert!(judge(Some(&crd(live)), &desired, None).is_empty());
        let found = judge(None, &desired, None);
        assert!(
            found.len() == 1
                && found[0].said.message.for_versions("v1").contains("required when strategy is set to Webhook")
        );
        let at = &found[0].said.at;
        assert_eq!(at[..], ["spec", "conversion", "webhook", "clientConfig"].map(Step::from));
    }
}

//! What the API server refuses in a CRD that would be written. [`gantry_schema::crd`] validates; this file determines
//! which CRD would be stored, and the place in the manifest of each refusal.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::proofs::ProofCache;
use gantry_core::crd::{API_VERSION, CrdSides, steps};
use gantry_core::merge;
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::crd::{self, CrdValidationResult};
use gantry_schema::typed::{self, TypedValueError, UnreadableKind};
use gantry_schema::{FieldError, Undecided};

/// The maximum number of refusals reported for one CRD; the rest are counted.
const MOST: usize = 50;

/// A refusal of the API server.
#[derive(Debug, Clone)]
pub struct CrdRefusal {
    pub version: Option<String>,
    /// The schema node: `^.spec.pollInterval`.
    pub path: Option<String>,
    /// The place in the desired CRD.
    pub at: Vec<Step>,
    pub message: String,
}

/// How the server will answer when a CRD is written, by gantry's own validation.
#[derive(Debug, Clone, Default)]
pub struct ForetoldAnswer {
    pub refusals: Vec<CrdRefusal>,
    /// What could not be decided.
    pub undecided: Vec<Undecided>,
    /// The fields that the server removes without a word, with `[*]` for indexes.
    pub dropped: Vec<String>,
}

impl ForetoldAnswer {
    fn refused(refusals: Vec<CrdRefusal>) -> Self {
        ForetoldAnswer { refusals, ..ForetoldAnswer::default() }
    }
}

/// How a server of this release answers when `manager` creates a CRD, or applies it over the live one. Without a
/// manager, the CRD is an upgrade from one manifest to another. A result that is `known` from other clusters is reused.
pub fn validate(
    crd: &CrdSides,
    manager: Option<&str>,
    release: KubernetesRelease,
    known: Option<&ProofCache>,
) -> ForetoldAnswer {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let read_live = || crd.live_object.as_ref().and_then(|live| read(&live.json()));
    // The versions are most of a CRD. Those of the live one are parsed only if they matter, those of the desired one
    // only if they change.
    let without_versions = crd.without_versions();
    let has_same_versions = crd.has_same_versions();
    let mut live = match &without_versions {
        Some((live, _)) => read(live),
        None => read_live(),
    };
    if has_same_versions
        && let (Some(live), Some((_, desired))) = (&mut live, &without_versions)
        && let Some(desired) = read(desired).filter(|crd| crd["apiVersion"] == API_VERSION)
    {
        let unreadable = unreadable(&desired, release);
        let stored = to_stored(live, desired, manager);
        // A live CRD with a uid was accepted by a server; one in a folder (`dir:`) need not have been.
        if stored["spec"] == live["spec"] && live["metadata"]["uid"].is_string() {
            let validated = || foretell(crd::validate_same_spec(&stored, live, release), &stored);
            return unreadable.then_validate(validated);
        }
    }
    let Some(desired) = read(&crd.desired_object.json()) else { return ForetoldAnswer::default() };
    if desired["apiVersion"] != API_VERSION {
        // With a live CRD, the comparison reports it.
        let is_new = crd.live_object.is_none();
        let refusal = desired["apiVersion"].as_str().filter(|_| is_new).map(not_served);
        return ForetoldAnswer::refused(refusal.into_iter().collect());
    }
    let unreadable = unreadable(&desired, release);
    // Versions that are not a list are merged with those of the live CRD.
    let lacks_versions = without_versions.is_some() && desired["spec"]["versions"].is_array();
    if without_versions.is_some() && !lacks_versions {
        live = read_live();
    }
    let desired = match &mut live {
        Some(live) => to_stored(live, desired, manager),
        None => desired,
    };
    let validated = || match &live {
        Some(live) if lacks_versions && has_same_versions => {
            foretell(crd::validate_same_versions(&desired, live, release), &desired)
        }
        Some(live) if lacks_versions => match crd::validate_without_old_versions(&desired, live, release) {
            Ok(Some(_)) => ForetoldAnswer::default(),
            _ => foretell(crd::validate(&desired, read_live().as_ref(), release), &desired),
        },
        live => foretell(crd::validate(&desired, live.as_ref(), release), &desired),
    };
    unreadable.then_validate(|| match known {
        Some(known) => {
            let live_versions = if lacks_versions { crd.live_versions() } else { None };
            known.foretell_once(&desired, live.as_ref(), live_versions.as_deref(), release, validated)
        }
        None => validated(),
    })
}

/// The values of a manifest that server-side apply cannot parse.
struct NotParsed {
    refused: Vec<CrdRefusal>,
    /// Whether they are only fields that are unknown, which does not affect the validation of the others.
    only_unknown: bool,
}

fn unreadable(desired: &Value, release: KubernetesRelease) -> NotParsed {
    let found = typed::unreadable_crd(desired, release);
    let only_unknown = found.iter().all(|found| found.kind == UnreadableKind::Undeclared);
    let refused = found.iter().take(MOST).map(|found| cannot_parse(found, desired));
    NotParsed { refused: refused.collect(), only_unknown }
}

/// The refusal of a CRD with a value that the server cannot parse.
pub fn cannot_parse(found: &TypedValueError, desired: &Value) -> CrdRefusal {
    let at = found.steps();
    let message = format!("the API server cannot parse this CRD: {}", text::cut_quote(&found.to_string()));
    CrdRefusal { version: version_at(&at, desired), path: steps::below_schema(&at).map(node_path), at, message }
}

impl NotParsed {
    /// These refusals, and those of the validation, if it makes sense.
    fn then_validate(self, validate: impl FnOnce() -> ForetoldAnswer) -> ForetoldAnswer {
        let mut refusals = self.refused;
        let answer = if self.only_unknown { validate() } else { ForetoldAnswer::default() };
        refusals.extend(answer.refusals);
        ForetoldAnswer { refusals, ..answer }
    }
}

/// The name of the version that these steps lead to.
fn version_at(at: &[Step], desired: &Value) -> Option<String> {
    let Some(Step::Index(index)) = at.get(2).filter(|_| at.starts_with(&steps::versions())) else { return None };
    desired["spec"]["versions"][*index]["name"].as_str().map(str::to_owned)
}

/// The refusal of a CRD at a version of the API that no server has.
fn not_served(api_version: &str) -> CrdRefusal {
    let removed = if api_version == "apiextensions.k8s.io/v1beta1" { ", which Kubernetes removed in 1.22" } else { "" };
    let shown = text::cut_quote(api_version);
    let message = format!("the API server does not serve {shown}{removed}; write the CRD for {API_VERSION}");
    CrdRefusal { version: None, path: None, at: vec!["apiVersion".into()], message }
}

/// The CRD that would be stored.
fn to_stored(live: &mut Value, desired: Value, manager: Option<&str>) -> Value {
    let mut stored = match manager {
        Some(manager) => simulate_crd_apply(live, desired, manager),
        None => upgrade_live(live, desired),
    };
    // The server leaves out `false`, which many generators write.
    if stored["spec"]["preserveUnknownFields"] == false
        && let Some(spec) = stored["spec"].as_object_mut()
    {
        spec.shift_remove("preserveUnknownFields");
    }
    stored
}

/// The refusals of `desired` with their places.
fn foretell(outcome: Result<crd::CrdValidationResult, crd::UndecodableCrd>, desired: &Value) -> ForetoldAnswer {
    let whole = |message| CrdRefusal { version: None, path: None, at: vec!["spec".into()], message };
    let CrdValidationResult { refusals, mut undecided, dropped, .. } = match outcome {
        Ok(outcome) => outcome,
        Err(problem) => {
            return ForetoldAnswer::refused(vec![whole(format!("the API server cannot parse this CRD: {problem}"))]);
        }
    };
    let more = refusals.len().saturating_sub(MOST);
    let mut refused: Vec<CrdRefusal> = refusals
        .into_iter()
        .take(MOST)
        .map(|refusal| {
            let DefinitionPlace { version, path, at } = DefinitionPlace::of_refusal(&refusal, desired);
            let message = format!("the API server refuses this CRD: {}", text::cut_quote(&refusal.to_string()));
            CrdRefusal { version, path, at, message }
        })
        .collect();
    if more > 0 {
        refused.push(whole(format!("the API server refuses this CRD for {more} more reasons")));
    }
    undecided.truncate(MOST);
    let dropped: BTreeSet<String> = dropped.iter().map(|field| text::field_of_any(&field.at)).collect();
    ForetoldAnswer { refusals: refused, undecided, dropped: dropped.into_iter().collect() }
}

/// The live CRD after `manager` has applied the desired one: a field that the manifest lacks stays, unless `manager`
/// alone owns it.
fn simulate_crd_apply(live: &mut Value, mut desired: Value, manager: &str) -> Value {
    let merged = |live: &Value, desired| merge::merge(live, &merge::intent(desired, true), &SHAPE, manager);
    // The versions are one field and most of a CRD. They are moved out before the merge, so neither side is copied.
    let versions = |crd: &mut Value| crd.pointer_mut("/spec/versions").filter(|of| of.is_array()).map(Value::take);
    let Some(of_desired) = versions(&mut desired) else { return merged(live, desired) };
    let of_live = versions(live);
    let mut applied = merged(live, desired);
    applied["spec"]["versions"] = of_desired;
    if let Some(of_live) = of_live {
        live["spec"]["versions"] = of_live;
    }
    applied
}

/// The structure by which a CRD is merged; a field without a structure of its own is replaced as a whole.
static SHAPE: LazyLock<Value> = LazyLock::new(|| {
    let client = json!({"properties": {"service": {}, "url": {}, "caBundle": {}}});
    let webhook = json!({"properties": {"clientConfig": client, "conversionReviewVersions": {}}});
    let conversion = json!({"properties": {"strategy": {}, "webhook": webhook}});
    json!({"properties": {
        "spec": {"properties": {"conversion": conversion, "names": {}, "versions": {}}},
    }})
});

/// The desired CRD with the fields of the live one that other managers usually set, for when owners are unknown: those
/// of the conversion webhook, such as its CA, and the approval of the API.
fn upgrade_live(live: &Value, mut desired: Value) -> Value {
    let webhook = |crd: &Value| crd["spec"]["conversion"]["strategy"] == "Webhook";
    if webhook(live) && webhook(&desired) {
        let (live, desired) = (&live["spec"]["conversion"], &mut desired["spec"]["conversion"]);
        let config = &desired["webhook"]["clientConfig"];
        // A client config has either a URL or a service.
        if config["url"].is_null() && config["service"].is_null() {
            keep_members(live, desired);
        }
    }
    let approval = |crd: &Value| crd["metadata"]["annotations"]["api-approved.kubernetes.io"].clone();
    if approval(&desired).is_null() && !approval(live).is_null() && desired["metadata"].is_object() {
        keep_members(&live["metadata"]["annotations"], &mut desired["metadata"]["annotations"]);
    }
    desired
}

/// Copies the fields that `into` lacks.
fn keep_members(from: &Value, into: &mut Value) {
    match (from, into) {
        (Value::Object(from), Value::Object(into)) => {
            for (key, value) in from {
                keep_members(value, into.entry(key).or_insert(Value::Null));
            }
        }
        (from, into) if into.is_null() => *into = from.clone(),
        _ => {}
    }
}

/// The message of the first refusal of a CRD that would replace a live one.
pub fn first_refusal(crd: &CrdSides, release: KubernetesRelease) -> Option<String> {
    validate(crd, None, release, None).refusals.into_iter().next().map(|refused| refused.message)
}

/// A place in the desired CRD.
struct DefinitionPlace {
    version: Option<String>,
    path: Option<String>,
    at: Vec<Step>,
}

impl DefinitionPlace {
    /// The place of a refusal. The server moves what all versions share to the top of the spec; it is shown in the
    /// first version.
    fn of_refusal(refusal: &FieldError, desired: &Value) -> Self {
        let steps = refusal.at.clone();
        let key = |at: usize| match refusal.at.get(at) {
            Some(Step::Key(key)) => key.as_str(),
            _ => "",
        };
        let of_all = match (key(0), key(1)) {
            ("spec", field) => {
                steps::OF_ALL_VERSIONS.into_iter().find(|(shared, _)| *shared == field).map(|(_, own)| own)
            }
            _ => None,
        };
        let mut at: Vec<Step> = match of_all {
            Some(field) => steps::of_version(0, field).into_iter().chain(steps.into_iter().skip(2)).collect(),
            None if (key(0), key(1), key(2)) == ("spec", "conversion", "webhookClientConfig") => {
                steps::webhook("clientConfig").into_iter().chain(steps.into_iter().skip(3)).collect()
            }
            None if (key(0), key(1)) == ("status", "storedVersions") => steps::versions(),
            None => steps,
        };
        for step in &mut at {
            if *step == Step::from("JSONPath") {
                *step = "jsonPath".into();
            }
        }
        let count = desired["spec"]["versions"].as_array().map_or(0, Vec::len);
        let version = if of_all.is_none() || count == 1 { version_at(&at, desired) } else { None };
        let path = steps::below_schema(&at).map(node_path);
        DefinitionPlace { version, path, at }
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

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::crd::builder::CrdBuilder;
    use gantry_core::resource::RawObject;

    #[test]
    fn only_v1_is_validated_and_what_others_set_in_a_webhook_is_kept() {
        let crd = |conversion: Value| {
            let crd = CrdBuilder::samples("test.example.com").version("v1", json!({"type": "object"}));
            crd.conversion(&conversion).build().to_string()
        };
        let client = json!({"service": {"name": "a", "namespace": "b"}, "caBundle": "Cg=="});
        let live =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
        let desired = crd(json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}));
        let judge = |desired: RawObject, live: Option<RawObject>| {
            validate(&CrdSides::new(desired, live), None, KubernetesRelease::default(), None).refusals
        };
        let refused = |live: Option<Value>| {
            judge(RawObject::new(desired.clone()), live.map(|conversion| RawObject::new(crd(conversion))))
        };
        let old = RawObject::new(desired.replace("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"));
        let found = judge(old.clone(), None);
        assert!(found.len() == 1 && found[0].message.contains("removed in 1.22"), "{found:?}");
        assert!(judge(old, Some(RawObject::new(desired.clone()))).is_empty());

        assert!(refused(Some(live)).is_empty());
        let found = refused(None);
        assert!(found.len() == 1 && found[0].message.contains("required when strategy is set to Webhook"));
        let at = &found[0].at;
        assert_eq!(at[..], ["spec", "conversion", "webhook", "clientConfig"].map(Step::from));
    }
}

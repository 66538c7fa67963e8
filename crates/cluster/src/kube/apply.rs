//! One server-side apply, which succeeds only if the live object is still the one that was checked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use tokio::time::Instant;

use super::apply_request::ApplyRequest;
use super::errors::{self, words};
use super::json;
use super::refusals::Denier;
use super::request::{ApiRequest, RequestError};
use super::transport::Transport;
use super::unanswered::{self, Unanswered};
use crate::{Apply, ApplyError, FieldConflict, Lacking, ManagerOperation, WritePrecondition};
use gantry_core::resource::{LiveObject, Resource};

/// How long the server can still use the state before a CRD was written: it picks up new schemas a moment after it
/// stored them, and the other API servers of the cluster a moment later.
const SCHEMA_LAG: Duration = Duration::from_secs(5);
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// How often a request that got no response in time is sent again.
const MAX_TIMEOUTS: u32 = 2;

/// The groups whose CRDs were just written, each with the time until which the server might not know the new schema.
#[derive(Default)]
pub struct FreshSchemas(Mutex<BTreeMap<String, Instant>>);

impl FreshSchemas {
    fn note(&self, crd: &str) {
        // A CRD is named PLURAL.GROUP.
        let group = crd.split_once('.').map_or("", |(_, group)| group).to_owned();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(group, Instant::now() + SCHEMA_LAG);
    }

    fn fresh_until(&self, group: &str) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(group).copied()
    }
}

/// Writes the object if its pin holds, and returns the new live object. The fields of former deploy tools stay theirs.
pub(super) async fn write(
    transport: &Transport,
    fresh: &FreshSchemas,
    default_namespace: &str,
    apply: &Apply<'_>,
) -> Result<LiveObject, ApplyError> {
    let Apply { resource, object, pin, .. } = apply;
    let request = ApplyRequest::new(apply, default_namespace).map_err(ApplyError::Refused)?;
    let call = request.call(apply);

    let started = Instant::now();
    let mut wait = FIRST_WAIT;
    let mut timeouts = 0;
    let (live, is_created) = loop {
        let failure = match transport.send(&call).await {
            Ok(answer) => {
                let live = json::live(&answer.body, resource).ok_or_else(|| {
                    let code = answer.code.as_u16();
                    ApplyError::Refused(errors::unexpected_response(transport.peer(), code, "not an object"))
                })?;
                break (live, answer.code == StatusCode::CREATED);
            }
            Err(failure) => failure,
        };
        if matches!(failure, RequestError::TimedOut(_)) && timeouts < MAX_TIMEOUTS {
            timeouts += 1;
            match unanswered::check_if_applied(transport, apply, &request).await {
                Unanswered::AsBefore => continue,
                Unanswered::Written(live) => break (live, true),
                Unanswered::Changed => return Err(ApplyError::Changed),
                Unanswered::Unknown => {}
            }
        }
        let patience = match &failure {
            RequestError::Refused(status) if is_unknown_resource(status) => Some(started + SCHEMA_LAG),
            // The schema also says which parts of an object are fields of their own, and so what is in conflict.
            RequestError::Refused(status) if matches!(status.code, 400 | 409 | 422 | 500) => {
                fresh.fresh_until(&resource.group)
            }
            _ => None,
        };
        let error = explain(failure, &call, apply, transport);
        // The request that got no response may have been carried out after the object was read.
        if error == ApplyError::Changed
            && timeouts > 0
            && let Unanswered::Written(live) = unanswered::check_if_applied(transport, apply, &request).await
        {
            break (live, true);
        }
        match (&error, patience) {
            (ApplyError::Refused(_) | ApplyError::Conflict(_), Some(end)) if Instant::now() < end => {
                tokio::time::sleep(wait).await;
            }
            _ => return Err(error),
        }
        wait = (wait * 2).min(Duration::from_secs(1));
    };
    if object.is_crd() {
        fresh.note(&object.name);
    }
    if **pin == WritePrecondition::Absent && !is_created {
        // This happens only with an aggregated API server that does not implement resourceVersion.
        transport.warn(format!(
            "{object} was created by someone else after the checks ran, so gantry updated it \
            instead of creating it"
        ));
    }
    Ok(live)
}

/// Whether the resource is not served yet. Waiting does not fix a missing namespace, so that does not count.
fn is_unknown_resource(status: &Status) -> bool {
    status.code == 404 && !is_missing_namespace(status)
}

/// Whether the namespace of an object does not exist.
pub fn is_missing_namespace(status: &Status) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

fn explain(failure: RequestError, call: &ApiRequest<'_>, apply: &Apply<'_>, transport: &Transport) -> ApplyError {
    // A webhook's message can look like anything.
    if let RequestError::Refused(status) = &failure
        && Denier::parse(&status.message).is_none()
    {
        let conflicts = conflicts(status);
        if !conflicts.is_empty() {
            // The server checks field ownership before it compares versions. If the object did not exist, no one owned
            // a field.
            return if *apply.pin == WritePrecondition::Absent {
                ApplyError::Changed
            } else {
                ApplyError::Conflict(conflicts)
            };
        }
        if is_other_object(status, apply.resource) {
            return ApplyError::Changed;
        }
    }
    let lacking = if let RequestError::Refused(status) = &failure { what_server_lacks(status) } else { None };
    let unsure =
        matches!(failure, RequestError::Lost { sent: true, .. } | RequestError::TimedOut(_) | RequestError::TooLong(_));
    let mut problem = failure.into_problem(call, transport.peer());
    if unsure {
        problem.message.push_str("; it is unknown whether the object was written");
    }
    match lacking {
        Some(lacking) => ApplyError::NotYet(lacking, problem),
        None if unsure => ApplyError::Unknown(problem),
        None => ApplyError::Refused(problem),
    }
}

/// What the server lacks to accept the request, as opposed to a webhook or quota that denies it.
pub(super) fn what_server_lacks(status: &Status) -> Option<Lacking> {
    let said = |words: &str| status.message.contains(words);
    if Denier::parse(&status.message).is_some() {
        None
    } else if said("failed calling webhook") || status.code >= 500 && said("conversion webhook for ") {
        Some(Lacking::Webhook)
    } else {
        (status.code == 403 && said(" is forbidden: status unknown for quota: ")).then_some(Lacking::QuotaUsage)
    }
}

/// Whether the server found a different object or resourceVersion than the pin has.
pub(super) fn is_other_object(status: &Status, resource: &Resource) -> bool {
    let Some(details) = &status.details else { return false };
    match status.code {
        // A quota, or another object that the server writes along with this one, can also be in conflict.
        409 => (status.reason == "Conflict" || status.reason == "AlreadyExists") && details.kind == resource.plural,
        // A manifest's own uid is never sent, so this is the pin's.
        422 => details.causes.iter().any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}

/// The fields that other managers own, in the server's order.
pub(super) fn conflicts(status: &Status) -> Vec<FieldConflict> {
    let causes = status.details.iter().filter(|_| status.code == 409).flat_map(|details| &details.causes);
    causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| FieldConflict::new(manager(&cause.message), operation(&cause.message), words(&cause.field)))
        .collect()
}

/// Extracts the manager, a quoted Go string, from `conflict with "kubectl-client-side-apply" using apps/v1`.
fn manager(message: &str) -> String {
    let quoted = message.split_once('"').map(|(_, rest)| rest);
    let end = quoted.and_then(|rest| {
        let mut escaped = false;
        rest.char_indices().find_map(|(at, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends.then_some(at)
        })
    });
    match (quoted, end) {
        (Some(rest), Some(end)) => {
            // Go escapes strings like JSON, except for characters that are sanitized anyway.
            let name = &rest[..end];
            words(&serde_json::from_str::<String>(&format!("\"{name}\"")).unwrap_or_else(|_| name.to_owned()))
        }
        _ => words(message),
    }
}

/// The message names a version only for an `Update`; an `Apply` is independent of the version.
fn operation(message: &str) -> ManagerOperation {
    match message.rsplit_once('"').is_some_and(|(_, rest)| rest.starts_with(" using ")) {
        true => ManagerOperation::Update,
        false => ManagerOperation::Apply,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};

    use super::super::KubeTarget;
    use super::super::fake_server::{self, Reply, status};
    use super::*;
    use crate::FormerTools;
    use gantry_core::resource::{ObjectRef, RawObject};

    const LIVE: &str =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"u","resourceVersion":"9"}}"#;

    fn at() -> WritePrecondition {
        WritePrecondition::At { uid: "u".into(), resource_version: "8".into() }
    }

    async fn apply_to(target: &KubeTarget, pin: &WritePrecondition, force: bool) -> Result<LiveObject, ApplyError> {
        let resource = Resource {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        };
        let object = ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: "c".into(),
        };
        let raw = RawObject::new(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"uid":"mine","name":"c","resourceVersion":"1","managedFields":[],"creationTimestamp":null,"labels":{}},"data":{"a":1.50},"status":{}}"#,
        );
        let apply = Apply {
            resource: &resource,
            object: &object,
            raw: &raw,
            live: None,
            pin,
            field_manager: "gantry & co",
            force_conflicts: force,
            former_tools: FormerTools::Keep,
            helm: None,
        };
        target.apply(&apply).await
    }

    async fn answered(
        pin: &WritePrecondition,
        reply: impl Fn() -> Reply + Send + Sync + 'static,
    ) -> Result<LiveObject, ApplyError> {
        apply_to(&fake_server::target(move |_| reply()).0, pin, false).await
    }

    #[tokio::test]
    async fn the_manifest_is_sent_as_written_with_the_pin_and_without_what_the_server_gives() {
        let (target, seen) = fake_server::target(|_| fake_server::json(201, LIVE));
        let live = apply_to(&target, &WritePrecondition::Absent, false).await.unwrap();
        assert_eq!((&*live.raw.json(), live.resource_version.as_str()), (LIVE, "9"));
        apply_to(&target, &at(), true).await.unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].method, "PATCH");
        let query = "fieldManager=gantry%20%26%20co&force=false&fieldValidation=Strict";
        assert_eq!(seen[0].uri, format!("/api/v1/namespaces/n/configmaps/c?{query}"));
        assert!(seen[1].uri.contains("force=true"));
        let sent = |pin: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c","labels":{{}},"namespace":"n",{pin}}},"data":{{"a":1.50}},"status":{{}}}}"#
            )
        };
        assert_eq!(seen[0].body, sent(r#""resourceVersion":"1""#));
        assert_eq!(seen[1].body, sent(r#""uid":"u","resourceVersion":"8""#));
        assert_eq!(target.take_warnings(), Vec::<String>::new());
    }

    fn modified(kind: &'static str) -> Reply {
        status(409, "Conflict", "the object has been modified", json!({"name": "c", "kind": kind}))
    }

    fn conflict() -> Reply {
        let causes = json!([
            {"reason": "FieldManagerConflict", "message": "conflict with \"kube\\\"ctl\\x1b\" using v1", "field": ".data.a"},
            {"reason": "FieldManagerConflict", "message": "conflict with \"helm\"", "field": ".data.b"},
            {"reason": "Other", "message": "no", "field": ".x"},
        ]);
        status(409, "Conflict", "Apply failed with 2 conflicts", json!({"causes": causes}))
    }

    #[tokio::test]
    async fn another_object_or_another_version_than_the_checked_one_is_not_written() {
        for pin in [WritePrecondition::Absent, at()] {
            assert_eq!(answered(&pin, || modified("configmaps")).await.err(), Some(ApplyError::Changed));
        }
        let other_uid = || {
            let causes =
                json!([{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}]);
            status(422, "Invalid", "metadata.uid: field is immutable", json!({"kind": "ConfigMap", "causes": causes}))
        };
        assert_eq!(answered(&at(), other_uid).await.err(), Some(ApplyError::Changed));
        assert_eq!(answered(&WritePrecondition::Absent, conflict).await.err(), Some(ApplyError::Changed));
        // A conflict about another object is not ours.
        let quota = answered(&at(), || modified("resourcequotas")).await;
        assert!(matches!(quota, Err(ApplyError::Refused(_))), "{quota:?}");
    }

    #[tokio::test]
    async fn field_conflicts_name_field_and_manager() {
        let expected =
            [(".data.a", r#"kube\"ctl\x1b"#, ManagerOperation::Update), (".data.b", "helm", ManagerOperation::Apply)]
                .map(|(field, manager, operation)| FieldConflict::new(manager, operation, field));
        assert_eq!(answered(&at(), conflict).await.err(), Some(ApplyError::Conflict(expected.into())));
        assert_eq!(manager(r#"conflict with "a \"b\" \\" using apps/v1"#), r#"a "b" \"#);
        assert_eq!(manager("conflict with subresource"), "conflict with subresource");
    }

    #[tokio::test]
    async fn a_refusal_shows_the_message_of_the_server_with_each_cause_on_a_line() {
        let causes = json!([
            {"message": "Required value", "field": "spec.a"}, {"message": "Required value", "field": "spec.a"},
            {"message": "Invalid value: \"\u{1b}[2J\"", "field": "spec.b"}]);
        let refused = answered(&at(), move || status(422, "Invalid", "long", json!({"causes": causes}))).await;
        let Err(ApplyError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!(
            problem.message,
            "the API server refused it: spec.a: Required value; spec.b: Invalid value: \"\\u{1b}[2J\""
        );
        let message =
            "failed to create typed patch object (n/c; /v1, Kind=ConfigMap): .dota: field not declared in schema";
        let refused = answered(&at(), move || status(500, "", message, Value::Null)).await;
        let Err(ApplyError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!(problem.message, "the API server refused it: .dota: field not declared in schema");
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_that_is_not_served_yet_is_waited_for_and_a_missing_namespace_is_not() {
        let tries = AtomicUsize::new(0);
        let (target, seen) = fake_server::target(move |_| match tries.fetch_add(1, Ordering::Relaxed) {
            0 => fake_server::text_reply(404, "text/plain; charset=utf-8", "404 page not found\n"),
            1 => status(404, "NotFound", "the server could not find the requested resource", json!({})),
            _ => fake_server::json(201, LIVE),
        });
        assert!(apply_to(&target, &WritePrecondition::Absent, false).await.is_ok());
        assert_eq!(seen.lock().unwrap().len(), 3);

        let no_namespace =
            || status(404, "NotFound", "namespaces \"n\" not found", json!({"name": "n", "kind": "namespaces"}));
        let (target, seen) = fake_server::target(move |_| no_namespace());
        let refused = apply_to(&target, &WritePrecondition::Absent, false).await;
        let Err(ApplyError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!(problem.message, "there is no namespace \"n\" for configmaps \"c\" in namespace \"n\"");
        assert_eq!(seen.lock().unwrap().len(), 1);

        let unserved = answered(&at(), || fake_server::text_reply(404, "text/plain", "404 page not found")).await;
        let Err(ApplyError::Refused(problem)) = unserved else { panic!("{unserved:?}") };
        assert_eq!(problem.message, "the API server does not serve ConfigMap of v1, or no longer does");
    }

    #[tokio::test(start_paused = true)]
    async fn the_schema_of_a_crd_that_was_just_written_is_waited_for_and_no_other() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.contains("customresourcedefinitions") {
            true => fake_server::json(200, LIVE),
            false => status(500, "", ".spec.new: field not declared in schema", Value::Null),
        });
        let sample = Resource { group: "g.io".into(), plural: "samples".into(), ..Resource::crd() };
        let raw = RawObject::new(r#"{"metadata":{}}"#);
        let apply = async |resource: &Resource, kind: &str| {
            let api_version = format!("{}/v1", resource.group);
            let object = ObjectRef { api_version, kind: kind.into(), namespace: None, name: "samples.g.io".into() };
            let (pin, field_manager) = (&at(), "gantry");
            let apply = Apply {
                resource,
                object: &object,
                raw: &raw,
                live: None,
                pin,
                field_manager,
                force_conflicts: false,
                former_tools: FormerTools::Keep,
                helm: None,
            };
            target.apply(&apply).await.is_ok()
        };
        let requests = || std::mem::take(&mut *seen.lock().unwrap()).len();
        assert_eq!((apply(&sample, "Sample").await, requests()), (false, 1));
        assert_eq!((apply(&Resource::crd(), "CustomResourceDefinition").await, requests()), (true, 1));
        let before = Instant::now();
        assert!(!apply(&sample, "Sample").await && requests() > 3 && before.elapsed() < 2 * SCHEMA_LAG);
        // By now the time limit has passed.
        assert_eq!((apply(&sample, "Sample").await, requests()), (false, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_of_a_write_without_a_response_says_that_it_may_have_happened() {
        let refused = answered(&at(), fake_server::no_reply).await;
        let Err(ApplyError::Unknown(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!(
            problem.message,
            "no answer from 10.0.0.1:6443 within 60 s; it is unknown whether the object was written"
        );
    }

    #[tokio::test]
    async fn a_write_that_the_server_cannot_accept_yet_is_not_a_refusal() {
        let of = async |code: u16, message: &'static str| match answered(&at(), move || {
            status(code, "Forbidden", message, Value::Null)
        })
        .await
        {
            Err(ApplyError::NotYet(lacking, problem)) => (Some(lacking), problem.message),
            Err(ApplyError::Refused(problem)) => (None, problem.message),
            other => panic!("{other:?}"),
        };
        let unknown = "configmaps \"c\" is forbidden: status unknown for quota: q, resources: count/configmaps";
        let said = "the API server refused it: configmaps \"c\" is forbidden: status unknown for quota: q, resources: count/configmaps";
        assert_eq!(of(403, unknown).await, (Some(Lacking::QuotaUsage), said.to_owned()));
        let exceeded = "configmaps \"c\" is forbidden: exceeded quota: q, requested: a=1, used: a=1, limited: a=1";
        let webhook = "Internal error occurred: failed calling webhook \"w\": no endpoints available";
        let denied =
            "admission webhook \"w\" denied the request: configmaps \"c\" is forbidden: status unknown for quota: q";
        for (code, message, lacking) in [
            (403, exceeded, None),
            (403, denied, None),
            (422, unknown, None),
            (500, webhook, Some(Lacking::Webhook)),
            (500, "conversion webhook for g/v1, Kind=S failed: refused", Some(Lacking::Webhook)),
            (400, "conversion webhook for g/v1, Kind=S failed: no", None),
        ] {
            assert_eq!(of(code, message).await.0, lacking, "{message}");
        }
    }

    #[tokio::test]
    async fn warnings_are_kept_once_in_order() {
        let reply = || {
            let reply = fake_server::json(200, LIVE).header("warning", "299 - \"b\"");
            reply.header("warning", "299 - \"a\"").header("warning", "299 - \"b\"")
        };
        let (target, _) = fake_server::target(move |_| reply());
        apply_to(&target, &at(), false).await.unwrap();
        assert_eq!(target.take_warnings(), ["b", "a"]);
        assert_eq!(target.take_warnings(), Vec::<String>::new());
        // A server that does not compare versions has overwritten the object that was created in the meantime.
        apply_to(&target, &WritePrecondition::Absent, false).await.unwrap();
        assert_eq!(target.take_warnings().len(), 1, "the others were reported before");
    }
}

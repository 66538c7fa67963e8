//! What the server would respond to an apply. The same request is sent with `dryRun=All`: the server runs all steps,
//! admission included, and stops before it stores the object.
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run>

use std::collections::BTreeSet;

use kube::core::Status;

use super::apply;
use super::apply_request::{self, ApplyRequest};
use super::errors::{self, words, words_of_field};
use super::json;
use super::refusals::{self, Denied, Denier, denied_by, with_reason};
use super::request::{ApiRequest, Payload, RequestError, ResponseFormat, encode};
use super::transport::Transport;
use crate::{Apply, DryRunError, FormerTools, Refusal, RefusalCause, Refuser, WritePrecondition, is_same_at};
use gantry_core::problem::Problem;
use gantry_core::resource::RawObject;
use gantry_k8s_cel::gotext;

/// The answer to the request as it is: the fields of former deploy tools stay beside those of the manifest. Sends it only
/// once: this deploy has not written anything yet that the server might still have to pick up.
pub async fn dry_run_beside_tools(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
) -> Result<RawObject, DryRunError> {
    let mut request = ApplyRequest::new(apply, default_namespace)
        .map_err(|problem| DryRunError::Unanswered { problem, everything: false })?;
    request.uri.push_str("&dryRun=All");
    let conflicts = match send(transport, &request.call(apply), apply).await {
        Err(DryRunError::Conflict(conflicts)) => conflicts,
        answer => return answer,
    };
    // The fields of these tools are taken over before the object is written, so they are not in conflict then.
    if let Some(forced) = apply.forced_over_tools(&conflicts) {
        return Box::pin(dry_run_beside_tools(transport, default_namespace, &forced)).await;
    }
    let has_only_tools = conflicts.iter().all(|conflict| conflict.tool().is_some());
    let Some(live) = apply.live.filter(|_| apply.former_tools == FormerTools::TakeUnlessConflict && has_only_tools)
    else {
        return Err(DryRunError::Conflict(conflicts));
    };
    // A value that the server drops or fills in is no change.
    let forced = Apply { force_conflicts: true, ..*apply };
    let Ok(answer) = Box::pin(dry_run_beside_tools(transport, default_namespace, &forced)).await else {
        return Err(DryRunError::Conflict(conflicts));
    };
    let (before, after) = (live.value(), answer.value());
    match conflicts.iter().all(|conflict| is_same_at(&conflict.field, &before, &after)) {
        true => Ok(answer),
        false => Err(DryRunError::Conflict(conflicts)),
    }
}

pub(super) async fn send(
    transport: &Transport,
    call: &ApiRequest<'_>,
    apply: &Apply<'_>,
) -> Result<RawObject, DryRunError> {
    match transport.send(call).await {
        Ok(answer) if json::is_sound(&answer.body) => Ok(RawObject::new(answer.body)),
        Ok(answer) => {
            let problem = errors::unexpected_response(transport.peer(), answer.code.as_u16(), "not an object");
            Err(DryRunError::Unanswered { problem, everything: true })
        }
        Err(failure) => Err(error_of(failure, call, apply, transport)),
    }
}

/// Whether the server would accept the object if it did not exist yet: the object is sent as a create. The server
/// validates it and runs admission before it finds that the name is taken, so this can be asked while the object still
/// exists. What the live object itself uses up (its quota, its ports) is no refusal.
pub async fn dry_run_create(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
) -> Result<(), DryRunError> {
    let Apply { resource, object, field_manager, .. } = apply;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let body = apply_request::body(apply, namespace, None)
        .map_err(|problem| DryRunError::Unanswered { problem, everything: false })?;
    let uri = format!(
        "{}?fieldManager={}&fieldValidation=Ignore&dryRun=All",
        resource.path(namespace, None),
        encode(field_manager)
    );
    let call = ApiRequest {
        verb: "create",
        resource: Some(resource),
        namespace,
        name: Some(&object.name),
        uri,
        body: Some(Payload::Create(&body)),
        live: None,
        format: ResponseFormat::Json,
    };
    let Err(failure) = transport.send(&call).await else { return Ok(()) };
    match error_of(failure, &call, apply, transport) {
        // It exists: nothing else is wrong.
        DryRunError::Changed => Ok(()),
        DryRunError::Refused(refusal)
            if refusal.by == Refuser::Quota || refusal.problem.message.contains("already allocated") =>
        {
            Ok(())
        }
        error => Err(error),
    }
}

fn error_of(failure: RequestError, call: &ApiRequest<'_>, apply: &Apply<'_>, transport: &Transport) -> DryRunError {
    let status = match failure.into_status() {
        Ok(status) => status,
        Err(problem) => return DryRunError::Unanswered { problem, everything: true },
    };
    let status = refusals::harmless(call, &status);
    // A webhook's message can look like anything.
    if Denier::parse(&status.message).is_none() {
        let conflicts = apply::conflicts(&status);
        if !conflicts.is_empty() {
            return if *apply.pin == WritePrecondition::Absent {
                DryRunError::Changed
            } else {
                DryRunError::Conflict(conflicts)
            };
        }
        if apply::is_other_object(&status, apply.resource) {
            return DryRunError::Changed;
        }
    }
    if let Some(webhook) = without_dry_run(&status.message) {
        let message = format!("the webhook {:?} does not support dry runs", words(webhook));
        let help =
            "its sideEffects must be None or NoneOnDryRun; its response is known only when the object is written";
        return DryRunError::Unanswered { problem: Problem::new(message).help(help), everything: false };
    }
    let by = refuser(&status);
    let problem = refusals::refused(call, &status, transport.peer());
    match by {
        Some(by) => {
            let missing = status.details.as_ref().filter(|details| status.code == 404 && !details.name.is_empty());
            let missing = missing.map(|details| (words(&details.kind), words(&details.name)));
            DryRunError::Refused(Refusal { by, problem, causes: collect_refusal_causes(&status, call), missing })
        }
        None => DryRunError::Unanswered { problem, everything: status.code == 401 },
    }
}

/// `admission webhook "w.example.com" does not support dry run`
fn without_dry_run(message: &str) -> Option<&str> {
    let (webhook, rest) = message.split_once("admission webhook \"")?.1.split_once('"')?;
    rest.contains("not support dry run").then_some(webhook)
}

/// The start of the message for a server-side apply that does not match the schema, and for one whose values cannot be
/// decoded.
const DOES_NOT_FIT: [&str; 3] =
    ["failed to create typed patch object (", "failed to create typed live object (", "failed to convert new object ("];

/// Whether the server cannot apply an object because of a version in `managedFields` of the live object: the CRD does
/// not have it, or the object does not fit its schema, which the server reports without an introduction.
fn is_of_managed_fields(message: &str) -> bool {
    let error = message.strip_prefix("errors:").unwrap_or(message).trim_start();
    let is_path = error.starts_with('.') && end_of_path(error).is_some();
    refusals::is_missing_version(message) || is_path
}

/// `None` if the server gives no verdict.
fn refuser(status: &Status) -> Option<Refuser> {
    let said = |words: &str| status.message.contains(words);
    let by = if Denier::parse(&status.message).is_some() {
        Refuser::Policy
    } else if said("failed calling webhook") {
        Refuser::FailedWebhook
    } else if said("exceeded quota: ") || said("failed quota: ") {
        Refuser::Quota
    } else {
        match status.code {
            401 | 429 | 503 | 504 => return None,
            403 if Denied::parse(&status.message).is_some() => Refuser::Authorization,
            403 if said("RBAC permissions not currently held") => Refuser::Authorization,
            403 => Refuser::Admission,
            404 => Refuser::Lookup,
            400 | 413 | 422 => Refuser::Validation,
            500 if said("conversion webhook for ") => return None,
            500 if is_of_managed_fields(&status.message) => Refuser::ManagedFields,
            500 if DOES_NOT_FIT.iter().any(|start| status.message.starts_with(start)) => Refuser::Validation,
            // The server's own failure: its storage, or a conversion webhook.
            500.. => return None,
            _ => Refuser::Other,
        }
    };
    Some(by)
}

/// Each invalid field, once.
fn collect_refusal_causes(status: &Status, call: &ApiRequest<'_>) -> Vec<RefusalCause> {
    let named = status.details.iter().flat_map(|details| &details.causes);
    let mut causes: Vec<RefusalCause> = named
        .filter(|cause| !cause.message.is_empty())
        .map(|cause| RefusalCause { field: words(&cause.field), message: words_of_field(&cause.message) })
        .collect();
    if let Some(Denier::Webhook(webhook)) = Denier::parse(&status.message) {
        for RefusalCause { field, message } in &mut causes {
            let colon = if field.is_empty() { "" } else { ": " };
            *message = denied_by(webhook, &with_reason(&status.message, &format!("{field}{colon}{message}")));
        }
    }
    if causes.is_empty() {
        causes = of_schema(&status.message).collect();
        causes.extend(of_strict_decoding(&status.message));
    }
    for cause in &mut causes {
        cause.message = refusals::without_secrets(call, std::mem::take(&mut cause.message));
    }
    let mut seen = BTreeSet::new();
    causes.retain(|cause| seen.insert((cause.field.clone(), cause.message.clone())));
    causes
}

/// Parses `failed to create typed patch object (ns/name; v1, Kind=K): .spec.x: field not declared in schema`, or one
/// line for each field.
fn of_schema(message: &str) -> impl Iterator<Item = RefusalCause> {
    let rest = message.strip_prefix(DOES_NOT_FIT[0]).and_then(|rest| Some(rest.split_once("): ")?.1));
    rest.unwrap_or_default().lines().filter_map(|line| {
        let line = line.trim();
        let end = end_of_path(line).filter(|_| line.starts_with('.'))?;
        let said = line[end..].trim_start_matches([':', ' ']);
        Some(RefusalCause { field: words(&line[..end]), message: words(&gotext::without_types(said)) })
    })
}

/// The end of the path at the start of a line: the first colon outside brackets and quotes.
fn end_of_path(line: &str) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    let mut depth = 0_usize;
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth = depth.saturating_sub(1),
            ':' if !quoted && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// `strict decoding error: unknown field "spec.zzz", unknown field "metadata.x"`
fn of_strict_decoding(message: &str) -> impl Iterator<Item = RefusalCause> {
    let fields = message.contains("strict decoding error").then(|| message.split("unknown field \"").skip(1));
    fields.into_iter().flatten().filter_map(|rest| {
        let field = rest.split_once('"')?.0;
        Some(RefusalCause { field: words(field), message: "unknown field".to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fake_server::{self, Reply, status, text_reply};
    use super::*;
    use gantry_core::resource::{ObjectRef, Resource};

    async fn answered(
        kind: &str,
        pin: &WritePrecondition,
        reply: impl Fn() -> Reply + Send + Sync + 'static,
    ) -> (DryRunError, String) {
        let resource = Resource {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
        };
        let object =
            ObjectRef { api_version: "v1".into(), kind: kind.into(), namespace: Some("n".into()), name: "c".into() };
        let raw = RawObject::new(r#"{"apiVersion":"v1","metadata":{"name":"c"},"data":{"a":"aHVudGVyMg=="}}"#);
        let apply = Apply {
            resource: &resource,
            object: &object,
            raw: &raw,
            live: None,
            pin,
            field_manager: "gantry",
            force_conflicts: true,
            former_tools: FormerTools::Keep,
            helm: None,
        };
        let (target, seen) = fake_server::target(move |_| reply());
        let error = target.dry_run(&apply).await.unwrap_err();
        let uri = seen.lock().unwrap()[0].uri.clone();
        (error, uri)
    }

    async fn refusal(code: u16, message: &str, details: Value) -> Refusal {
        let (message, reply) = (message.to_owned(), move |message: &str| status(code, "", message, details.clone()));
        match answered("ConfigMap", &WritePrecondition::Absent, move || reply(&message)).await.0 {
            DryRunError::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_request_of_the_apply_is_sent_dry() {
        let uri =
            answered("ConfigMap", &WritePrecondition::Absent, || text_reply(404, "text/plain", "404 page not found"))
                .await
                .1;
        let query = "fieldManager=gantry&force=true&fieldValidation=Strict&dryRun=All";
        assert_eq!(uri, format!("/api/v1/namespaces/n/configmaps/c?{query}"));
    }

    #[tokio::test]
    async fn the_message_of_a_refusal_shows_who_refused() {
        let none = json!({});
        for (code, message, by) in [
            (403, "x is forbidden: exceeded quota: q, requested: a=1, used: a=1, limited: a=1", Refuser::Quota),
            (403, "x is forbidden: User \"u\" cannot patch resource \"a\" in API group \"\"", Refuser::Authorization),
            (403, "is attempting to grant RBAC permissions not currently held:\n{}", Refuser::Authorization),
            (403, "x is forbidden: maximum cpu usage per Container is 1, but limit is 4", Refuser::Admission),
            (401, "x is forbidden: ValidatingAdmissionPolicy 'v' with binding 'b' denied request: no", Refuser::Policy),
            (400, "admission webhook \"w\" denied the request: exceeded quota: no", Refuser::Policy),
            (400, "admission webhook \"w\" denied the request without explanation", Refuser::Policy),
            (500, "Internal error occurred: failed calling webhook \"w\": x", Refuser::FailedWebhook),
            (404, "namespaces \"n\" not found", Refuser::Lookup),
            (500, "failed to create typed patch object (n/c; v1, Kind=C): .x: field not declared", Refuser::Validation),
            (500, "failed to create typed live object (n/c; v1, Kind=C): .x: expected string", Refuser::Validation),
            (500, "request to convert CR to an invalid group/version: g/v2", Refuser::ManagedFields),
            (500, ".spec.x: field not declared in schema", Refuser::ManagedFields),
            (500, "errors:\n  .x: field not declared in schema\n  .y: expected string", Refuser::ManagedFields),
            (413, "Request entity too large", Refuser::Validation),
            (405, "no", Refuser::Other),
        ] {
            assert_eq!(refusal(code, message, none.clone()).await.by, by, "{message}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_a_verdict_is_not_a_refusal() {
        for (code, message, expected) in [
            (400, "admission webhook \"w.example.com\" does not support dry run", false),
            (401, "Unauthorized", true),
            (500, "Internal error occurred: etcdserver: request timed out", false),
            (
                500,
                "failed to convert new object (n/c; v1, Kind=C): conversion webhook for g/v1, Kind=C failed: x",
                false,
            ),
            (503, "service unavailable", false),
        ] {
            let answer =
                answered("ConfigMap", &WritePrecondition::Absent, move || status(code, "", message, json!({}))).await.0;
            assert!(
                matches!(answer, DryRunError::Unanswered { everything, .. } if everything == expected),
                "{answer:?}"
            );
        }
    }

    #[tokio::test]
    async fn every_invalid_field_of_a_refusal_is_named() {
        let found = refusal(
            500,
            "failed to create typed patch object (n/c; v1, Kind=C): errors:\n  .spec.l[name=\"a: b\"].x: field not \
             declared in schema\n  .spec.y: expected string, got &value.valueUnstructured{Value:1}",
            json!({}),
        )
        .await;
        let causes: Vec<_> = found.causes.iter().map(|c| (c.field.as_str(), c.message.as_str())).collect();
        assert_eq!(
            causes,
            [(".spec.l[name=\"a: b\"].x", "field not declared in schema"), (".spec.y", "expected string, got 1")]
        );
        let found = refusal(400, "strict decoding error: unknown field \"a.b\", unknown field \"c\"", json!({})).await;
        assert_eq!(found.causes.iter().map(|c| c.field.as_str()).collect::<Vec<_>>(), ["a.b", "c"]);
        let details = json!({"name": "r", "kind": "roles", "group": "rbac.authorization.k8s.io"});
        assert_eq!(refusal(404, "not found", details).await.missing, Some(("roles".into(), "r".into())));
    }

    #[tokio::test]
    async fn no_cause_of_a_refusal_contains_a_value_of_a_secret() {
        let causes = json!({"causes": [{"field": "data[a]", "message": "Invalid value: \"hunter2\": weak"}]});
        let reply = move || status(422, "Invalid", "Secret \"c\" is invalid: data[a]: \"hunter2\"", causes.clone());
        let answer = answered("Secret", &WritePrecondition::Absent, reply).await.0;
        assert!(!format!("{answer:?}").contains("hunter2"), "{answer:?}");
    }
}

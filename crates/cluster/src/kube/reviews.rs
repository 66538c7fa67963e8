//! What the user is allowed to do, according to the API server's authorizers.
//!
//! Nothing is written: a review is evaluated and not stored. Every authenticated user is allowed to review their own
//! permissions, unless the cluster has removed the ClusterRole `system:basic-user`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::errors;
use super::request::{ApiRequest, Payload};
use super::transport::Transport;
use crate::RulesReview;
use gantry_core::problem::Problem;
use gantry_core::rbac::{Atom, PolicyRule, or_default};
use gantry_core::resource::Resource;

/// A rules review covers one namespace plus what applies in all of them. No namespace can have this name, so only the
/// latter remains: the server looks up RoleBindings in this namespace and finds none.
const NO_NAMESPACE: &str = "no.namespace";
/// The group of the reviews.
const GROUP: &str = "authorization.k8s.io";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RulesStatus {
    #[serde(default, deserialize_with = "or_default")]
    resource_rules: Vec<PolicyRule>,
    #[serde(default, deserialize_with = "or_default")]
    non_resource_rules: Vec<PolicyRule>,
    #[serde(default)]
    incomplete: bool,
}

#[derive(Deserialize)]
struct AccessStatus {
    allowed: bool,
}

#[derive(Deserialize)]
struct UserStatus {
    #[serde(rename = "userInfo")]
    user: UserInfo,
}

#[derive(Deserialize)]
struct UserInfo {
    username: String,
}

/// The rules that apply to the user in a namespace; `None`: in all namespaces and for cluster-scoped resources.
pub async fn rules(transport: &Transport, namespace: Option<&str>) -> Result<RulesReview, Problem> {
    let spec = json!({"namespace": namespace.unwrap_or(NO_NAMESPACE)});
    let status: RulesStatus = ask(transport, GROUP, "SelfSubjectRulesReview", "selfsubjectrulesreviews", spec).await?;
    let RulesStatus { mut resource_rules, non_resource_rules, incomplete } = status;
    resource_rules.extend(non_resource_rules);
    Ok(RulesReview { rules: resource_rules, incomplete })
}

/// Whether the user is allowed to do this in a namespace; `None`: in all namespaces, or on a cluster-scoped resource.
pub async fn allowed(transport: &Transport, namespace: Option<&str>, atom: &Atom) -> Result<bool, Problem> {
    let (kind, plural) = ("SelfSubjectAccessReview", "selfsubjectaccessreviews");
    let status: AccessStatus = ask(transport, GROUP, kind, plural, access_spec(namespace, atom)).await?;
    Ok(status.allowed)
}

/// The same for a ServiceAccount, by namespace and name. The user needs the right to create SubjectAccessReviews.
pub async fn account_allowed(
    transport: &Transport,
    (of, name): (&str, &str),
    namespace: Option<&str>,
    atom: &Atom,
) -> Result<bool, Problem> {
    let mut spec = access_spec(namespace, atom);
    spec["user"] = format!("system:serviceaccount:{of}:{name}").into();
    let all = format!("system:serviceaccounts:{of}");
    spec["groups"] = json!(["system:serviceaccounts", all, "system:authenticated"]);
    let status: AccessStatus = ask(transport, GROUP, "SubjectAccessReview", "subjectaccessreviews", spec).await?;
    Ok(status.allowed)
}

fn access_spec(namespace: Option<&str>, atom: &Atom) -> Value {
    match atom {
        Atom::Resource { group, resource, name, verb } => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            json!({"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace.unwrap_or_default(), "name": name.as_deref().unwrap_or_default(),
            }})
        }
        Atom::Url { url, verb } => json!({"nonResourceAttributes": {"path": url, "verb": verb}}),
    }
}

/// The user name that the server knows the user by.
pub async fn user(transport: &Transport) -> Result<String, Problem> {
    let status: UserStatus =
        ask(transport, "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", Value::Null).await?;
    Ok(status.user.username)
}

/// Sends a review and returns the status of the response.
async fn ask<T: for<'de> Deserialize<'de>>(
    transport: &Transport,
    group: &str,
    kind: &str,
    plural: &str,
    spec: Value,
) -> Result<T, Problem> {
    #[derive(Deserialize)]
    struct Review<T> {
        status: T,
    }
    let resource = Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: false,
    };
    let mut body = json!({"apiVersion": format!("{group}/v1"), "kind": kind});
    // A SelfSubjectReview has no spec, and the server warns about one.
    if !spec.is_null() {
        body["spec"] = spec;
    }
    let body = body.to_string();
    let call = ApiRequest {
        verb: "create",
        resource: Some(&resource),
        uri: resource.path(None, None),
        body: Some(Payload::Create(&body)),
        ..ApiRequest::default()
    };
    let peer = transport.peer();
    let answer = transport.send(&call).await.map_err(|failure| failure.into_problem(&call, peer))?;
    let review: Result<Review<T>, _> = serde_json::from_str(&answer.body);
    let review =
        review.map_err(|_| errors::unexpected_response(peer, answer.code.as_u16(), &format!("not a {kind}")))?;
    Ok(review.status)
}

#[cfg(test)]
mod tests {
    use super::super::fake_server::{self, status};
    use super::*;

    #[tokio::test]
    async fn reviews_of_access_are_requested_and_read() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.rsplit('/').next() {
            Some("selfsubjectrulesreviews") => fake_server::json(
                201,
                json!({"status": {"incomplete": true, "evaluationError": "webhook authorizer does not list rules",
                    "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]}}),
            ),
            Some("selfsubjectaccessreviews") => fake_server::json(201, json!({"status": {"allowed": true}})),
            _ => status(403, "Forbidden", "no", json!({})),
        });
        let review = rules(&target.transport, None).await.unwrap();
        assert!(review.incomplete && review.rules.len() == 2, "{review:?}");
        let log = Atom::Resource {
            group: String::new(),
            resource: "pods/log".into(),
            name: Some("a".into()),
            verb: "get".into(),
        };
        assert_eq!(allowed(&target.transport, Some("n"), &log).await, Ok(true));
        let message = user(&target.transport).await.unwrap_err().message;
        assert!(message.contains("selfsubjectreviews.authentication.k8s.io"), "{message}");
        let seen = seen.lock().unwrap();
        let body = |index: usize| serde_json::from_str::<Value>(&seen[index].body).unwrap();
        assert_eq!(body(0)["spec"], json!({"namespace": "no.namespace"}));
        assert_eq!(
            body(1)["spec"]["resourceAttributes"],
            json!({"verb": "get", "group": "", "resource": "pods", "subresource": "log", "namespace": "n", "name": "a"})
        );
        assert!(seen.iter().all(|seen| seen.method == "POST"));
    }
}

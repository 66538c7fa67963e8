//! Explains in one line why the API server refused a request, with the next step.

use std::borrow::Cow;

use kube::core::Status;

use super::errors::{describe_route, words, words_of_field};
use super::request::{ApiRequest, Peer, RequestError};
use crate::Impersonate;
use gantry_core::next_step;
use gantry_core::problem::Problem;
use gantry_core::resource::RawObject;
use gantry_core::secret::SecretValues;
use gantry_k8s_cel::gotext;

impl RequestError {
    /// Describes the failure.
    pub fn into_problem(self, call: &ApiRequest<'_>, peer: &Peer) -> Problem {
        self.into_status().map_or_else(|problem| problem, |status| refused(call, &status, peer))
    }

    /// The answer of a server that refused the request, or why there is none.
    pub fn into_status(self) -> Result<Box<Status>, Problem> {
        match self {
            RequestError::Refused(status) => Ok(status),
            RequestError::Lost { problem, .. }
            | RequestError::TimedOut(problem)
            | RequestError::Misnamed(problem)
            | RequestError::TooLong(problem) => Err(problem),
        }
    }

    /// The code and the message of a refusal; 0 and nothing if the server did not answer.
    pub fn code_and_words(&self) -> (u16, String) {
        match self {
            RequestError::Refused(status) => (status.code, words(&status.message)),
            _ => (0, String::new()),
        }
    }
}

/// Describes the API server's refusal of a call. The server quotes rejected values; those of a Secret are removed.
pub fn refused(call: &ApiRequest<'_>, status: &Status, peer: &Peer) -> Problem {
    let problem = explain(call, &harmless(call, status), peer);
    Problem { message: without_secrets(call, problem.message), ..problem }
}

/// The API server's message about a call, without the values of the Secret that was sent or is live.
pub fn without_secrets(call: &ApiRequest<'_>, said: String) -> String {
    if is_secret(call) { values(call).taken_out(&said) } else { said }
}

/// Like [`without_secrets`], for any text: nothing else in it is changed.
pub fn hide_secrets(call: &ApiRequest<'_>, said: &str) -> String {
    if is_secret(call) { values(call).hidden(said) } else { said.to_owned() }
}

/// The status without the values of a Secret. They are removed first, because long texts are cut off when shown.
pub fn harmless<'s>(call: &ApiRequest<'_>, status: &'s Status) -> Cow<'s, Status> {
    if !is_secret(call) {
        return Cow::Borrowed(status);
    }
    let (mut status, values) = (status.clone(), values(call));
    let causes = status.details.iter_mut().flat_map(|details| &mut details.causes).map(|cause| &mut cause.message);
    for said in causes.chain([&mut status.message]) {
        *said = values.hidden(said);
    }
    Cow::Owned(status)
}

/// The values of the Secret that a call is about, both as sent and as live.
fn values(call: &ApiRequest<'_>) -> SecretValues {
    let sent = call.body.map(|body| Cow::Borrowed(body.text()));
    SecretValues::collect(sent.into_iter().chain(call.live.map(RawObject::json)))
}

fn is_secret(call: &ApiRequest<'_>) -> bool {
    call.resource.is_some_and(|resource| resource.group.is_empty() && resource.plural == "secrets")
}

/// What denies a request. The text after it is written by a webhook or policy author, and the status can have any code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denier<'a> {
    /// `admission webhook "w.example.com" denied the request: …`
    Webhook(&'a str),
    /// `… is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: …`
    Policy,
}

impl<'a> Denier<'a> {
    pub(super) fn parse(message: &'a str) -> Option<Self> {
        if let Some(rest) = message.strip_prefix("admission webhook \"") {
            let (webhook, rest) = rest.split_once('"')?;
            return rest.starts_with(" denied the request").then_some(Denier::Webhook(webhook));
        }
        let (_, rest) = message.split_once(" is forbidden: ValidatingAdmissionPolicy '")?;
        rest.contains(" denied request: ").then_some(Denier::Policy)
    }
}

fn explain(call: &ApiRequest<'_>, status: &Status, peer: &Peer) -> Problem {
    if Denier::parse(&status.message).is_some() {
        return Problem::new(format!("the API server refused {}: {}", to_do(call), causes(status)));
    }
    match status.code {
        401 => unauthorized(peer),
        403 => forbidden(call, status, peer),
        404 => not_found(call, status),
        407 => Problem::new(format!("{} requires a user name and password", describe_route(peer)))
            .help("put them into proxy-url of the kubeconfig's cluster or into HTTPS_PROXY"),
        413 => Problem::new(format!("{} is too large for the API server", describe_call(call))).help(
            "an API server accepts requests of up to 3 MB and objects of up to 1.5 MB: split the object or make \
                it smaller",
        ),
        429 => {
            let message = format!("the API server {} is overloaded (429); gave up after several attempts", peer.server);
            let reason = if status.message.is_empty() { String::new() } else { format!(": {}", quote_message(status)) };
            Problem::new(message + &reason).help("run again later")
        }
        503 | 504 => Problem::new(format!(
            "{} is not available ({}): {}",
            describe_call(call),
            status.code,
            quote_message(status)
        ))
        .help("`kubectl get apiservices` shows which API is down; run again when it is up"),
        422 if is_immutable(status) => {
            Problem::new(format!("the API server refused {}: {}", to_do(call), causes(status)))
                .help("revert the change; `gantry check` with the same flags says how to recreate the object")
        }
        400 | 422 => Problem::new(format!("the API server refused {}: {}", to_do(call), causes(status)))
            .help(next_step::FIX_MANIFEST),
        500 if is_missing_version(&status.message) => {
            Problem::new(format!("the API server refused {}: {}", to_do(call), causes(status))).help(
                "managedFields of the live object name a version that the CRD does not have; `gantry check --preflight \
                    CustomResourceValidation` prints the command that moves these entries",
            )
        }
        _ => Problem::new(format!("the API server refused {}: {}", to_do(call), causes(status))),
    }
}

/// Whether the server cannot convert a custom resource to a version that `managedFields` of the live object name.
pub(super) fn is_missing_version(message: &str) -> bool {
    message.contains("request to convert CR to an invalid group/version")
}

/// Whether the call changes a field that is immutable.
fn is_immutable(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| crate::is_immutable(&cause.message))
}

fn unauthorized(peer: &Peer) -> Problem {
    let whose = match &peer.user {
        Some(user) => format!("the credentials of user {:?}", words(user)),
        None => "the credentials".to_owned(),
    };
    let context = &peer.context;
    Problem::new(format!("{} does not accept {whose} (context {context:?}): expired or invalid", peer.server))
        .help("log in again; `kubectl auth whoami` with the same context shows whether the server knows you")
}

/// The fields of a 403 of the RBAC authorizer: `User "u" cannot get resource "r" in API group "g" at the cluster
/// scope`.
pub(super) struct Denied<'a> {
    user: &'a str,
    verb: &'a str,
    resource: &'a str,
    group: &'a str,
    namespace: Option<&'a str>,
}

impl<'a> Denied<'a> {
    pub(super) fn parse(message: &'a str) -> Option<Self> {
        let (user, rest) = message.split_once("User \"")?.1.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let namespace = rest.strip_prefix(" in the namespace \"").and_then(|rest| Some(rest.split_once('"')?.0));
        Some(Denied { user, verb, resource, group, namespace })
    }
}

/// User, verb and path of `User "u" cannot get path "/api/v1"`, which discovery can get.
fn denied_path(message: &str) -> Option<(&str, &str, &str)> {
    let (user, rest) = message.split_once("User \"")?.1.split_once("\" cannot ")?;
    let (verb, rest) = rest.split_once(" path \"")?;
    Some((user, verb, rest.split_once('"')?.0))
}

/// The API server's name for a client without credentials, or with a client certificate of a CA that it does not trust.
const ANONYMOUS: &str = "system:anonymous";

fn forbidden(call: &ApiRequest<'_>, status: &Status, peer: &Peer) -> Problem {
    if let Some(problem) = may_not_impersonate(&status.message, peer) {
        return problem;
    }
    let (user, may_not, role) = if let Some(denied) = Denied::parse(&status.message) {
        let [user, verb, resource, group] = [denied.user, denied.verb, denied.resource, denied.group].map(words);
        let dot = if group.is_empty() { "" } else { "." };
        let (place, role) = match denied.namespace.map(words) {
            Some(namespace) => (format!("in namespace {namespace:?}"), format!("a Role in namespace {namespace:?}")),
            None => ("at the cluster scope".to_owned(), "a ClusterRole".to_owned()),
        };
        // Permission for all Services of the namespace would be far broader than necessary.
        let names = match call.name.filter(|_| denied.resource == "services/proxy") {
            Some(name) => format!(" resourceNames: [{:?}],", words(name)),
            None => String::new(),
        };
        let rule = format!("{{apiGroups: [{group:?}], resources: [{resource:?}],{names} verbs: [{verb:?}]}}");
        (user, format!("may not {verb} {resource}{dot}{group} {place}"), format!("{role} with the rule {rule}"))
    } else if let Some((user, verb, path)) = denied_path(&status.message) {
        let [user, verb, path] = [user, verb, path].map(words);
        let rule = format!("{{nonResourceURLs: [{path:?}], verbs: [{verb:?}]}}");
        (user, format!("may not {verb} path {path}"), format!("a ClusterRole with the rule {rule}"))
    } else {
        // A webhook, a policy, or a namespace that is being deleted: no RBAC rule would help.
        return Problem::new(format!("the API server refused {}: {}", to_do(call), causes(status)));
    };
    if user == ANONYMOUS {
        let whom =
            peer.user.as_ref().map_or_else(|| "this client".to_owned(), |user| format!("user {:?}", words(user)));
        let (server, context) = (&peer.server, &peer.context);
        return Problem::new(format!("{server} treats {whom} (context {context:?}) as anonymous, which {may_not}"))
            .help("does the kubeconfig contain credentials for this user, and for this cluster? Log in again");
    }
    let problem = Problem::new(format!("user {user:?} {may_not}")).help(format!("ask for {role}, bound to that user"));
    Problem { needs_right: true, ..problem }
}

/// The problem if `--as` is used without permission. The server names the last of several verbs that would be enough
/// (`User "u" cannot impersonate-on:user-info:get path "/api"` since 1.35); the message names the verb that every
/// server knows.
fn may_not_impersonate(message: &str, peer: &Peer) -> Option<Problem> {
    let (user, rest) = message.split_once("User \"")?.1.split_once("\" cannot ")?;
    let Impersonate { user: whom, groups } = peer.acts_as.as_ref().filter(|_| rest.starts_with("impersonate"))?;
    let rule = |resource: &str, names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("{:?}", words(name))).collect();
        let names = names.join(", ");
        format!("{{apiGroups: [\"\"], resources: [{resource:?}], resourceNames: [{names}], verbs: [\"impersonate\"]}}")
    };
    let account = whom.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let mut roles = match account {
        Some((namespace, name)) => {
            let rule = rule("serviceaccounts", &[name.to_owned()]);
            vec![format!("a Role in namespace {:?} with the rule {rule}", words(namespace))]
        }
        None => vec![format!("a ClusterRole with the rule {}", rule("users", std::slice::from_ref(whom)))],
    };
    let mut who = format!("{:?}", words(whom));
    if !groups.is_empty() {
        let names: Vec<String> = groups.iter().map(|group| format!("{:?}", words(group))).collect();
        who.push_str(&format!(" in {} {}", if groups.len() == 1 { "group" } else { "groups" }, names.join(", ")));
        roles.push(format!("a ClusterRole with the rule {}", rule("groups", groups)));
    }
    let help = format!("ask for {}, bound to user {:?}", roles.join(", and "), words(user));
    Some(Problem::new(format!("user {:?} may not act as {who}", words(user))).help(help))
}

fn not_found(call: &ApiRequest<'_>, status: &Status) -> Problem {
    let details = status.details.as_ref();
    match (details.filter(|details| details.kind == "namespaces"), call.resource) {
        (Some(details), Some(resource)) if resource.plural != "namespaces" => {
            Problem::new(format!("there is no namespace {:?} for {}", words(&details.name), describe_call(call)))
                .help(next_step::create_namespace(&details.name))
        }
        (_, Some(resource)) if details.is_none_or(|details| details.name.is_empty()) => {
            let version = match resource.group.as_str() {
                "" => resource.version.clone(),
                group => format!("{group}/{}", resource.version),
            };
            Problem::new(format!("the API server does not serve {} of {version}, or no longer does", resource.kind))
                .help("was its CustomResourceDefinition deleted, or is the version no longer served? Run again")
        }
        _ => Problem::new(format!("the API server cannot find {}: {}", describe_call(call), quote_message(status))),
    }
}

/// The server's message: its causes, separated by semicolons, if it lists them.
fn causes(status: &Status) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cause in status.details.iter().flat_map(|details| &details.causes) {
        let line = match (cause.field.as_str(), cause.message.as_str()) {
            ("", message) => words_of_field(message),
            (field, message) => format!("{}: {}", words(field), words_of_field(message)),
        };
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    // The message must be one line. A line break would be shown as `\n`, because it could be used to fake lines of
    // gantry's output.
    match Denier::parse(&status.message) {
        _ if lines.is_empty() => quote_message(status),
        Some(Denier::Webhook(webhook)) => denied_by(webhook, &with_reason(&status.message, &lines.join("; "))),
        _ => lines.join("; "),
    }
}

/// What a webhook says about the whole object, in front of what it says about fields, as kubectl shows them.
pub(super) fn with_reason(message: &str, causes: &str) -> String {
    let reason = message.split_once(" denied the request: ").map(|(_, reason)| words(reason)).unwrap_or_default();
    // The common library of webhooks writes the causes into the message as well: `Kind "name" is invalid: …`.
    match reason.is_empty() || reason.contains(" is invalid: ") || causes.contains(&reason) {
        true => causes.to_owned(),
        false => format!("{reason}: {causes}"),
    }
}

/// The causes of a webhook do not name the webhook.
pub(super) fn denied_by(webhook: &str, said: &str) -> String {
    format!("admission webhook {:?} denied the request: {said}", words(webhook))
}

fn quote_message(status: &Status) -> String {
    // `failed to create typed patch object (ns/name; v1, Kind=K): .spec.x: field not declared in schema`
    let message = status.message.strip_prefix("failed to create typed patch object (");
    let message = message.and_then(|rest| Some(rest.split_once("): ")?.1)).unwrap_or(&status.message);
    let lines: Vec<String> = message.lines().map(gotext::without_types).collect();
    match words(&lines.join("\n")) {
        empty if empty.is_empty() => format!("no reason given ({})", status.code),
        message => message,
    }
}

/// `customresourcedefinitions.apiextensions.k8s.io "x"`, `/apis/apps/v1`.
fn describe_call(call: &ApiRequest<'_>) -> String {
    let Some(resource) = call.resource else { return call.uri.clone() };
    let mut what = resource.plural.clone();
    if !resource.group.is_empty() {
        what = format!("{what}.{}", resource.group);
    }
    if let Some(name) = call.name {
        what = format!("{what} {:?}", words(name));
    }
    if let (true, Some(namespace)) = (resource.namespaced, call.namespace) {
        what = format!("{what} in namespace {:?}", words(namespace));
    }
    what
}

fn to_do(call: &ApiRequest<'_>) -> String {
    match call.verb {
        // The caller of an apply names the object itself.
        "patch" => "it".to_owned(),
        "" => format!("to answer {}", describe_call(call)),
        verb => format!("to {verb} {}", describe_call(call)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kube::fake_server;
    use gantry_core::resource::Resource;

    fn explained(code: u16, message: &str) -> (String, String) {
        let resource = Resource { plural: "samples".into(), group: "g.io".into(), namespaced: true, ..Resource::crd() };
        let call = ApiRequest::get(&resource, Some("n"), "x");
        let status = serde_json::from_value(json!({"message": message, "code": code})).unwrap();
        let problem = refused(&call, &status, &fake_server::peer());
        (problem.message, problem.help.unwrap_or_default())
    }

    #[test]
    fn a_forbidden_request_names_user_verb_resource_and_the_missing_rule() {
        let (message, help) = explained(
            403,
            r#"samples.g.io "x" is forbidden: User "system:serviceaccount:ci:deployer" cannot get resource "samples" in API group "g.io" in the namespace "n": RBAC: role not found"#,
        );
        assert_eq!(message, r#"user "system:serviceaccount:ci:deployer" may not get samples.g.io in namespace "n""#);
        assert_eq!(
            help,
            r#"ask for a Role in namespace "n" with the rule {apiGroups: ["g.io"], resources: ["samples"], verbs: ["get"]}, bound to that user"#
        );
        let (message, help) =
            explained(403, r#"x: User "a b" cannot list resource "nodes" in API group "" at the cluster scope"#);
        assert_eq!(message, r#"user "a b" may not list nodes at the cluster scope"#);
        assert!(help.starts_with("ask for a ClusterRole with the rule"), "{help}");
    }

    #[test]
    fn an_anonymous_user_is_told_to_log_in_and_not_to_request_rights() {
        let (message, help) = explained(
            403,
            r#"x: User "system:anonymous" cannot get resource "pods" in API group "" in the namespace "n""#,
        );
        let expected = r#"https://10.0.0.1:6443 treats user "dev" (context "staging") as anonymous, which may not get pods in namespace "n""#;
        assert_eq!(message, expected);
        assert!(help.contains("Log in again") && !help.contains("Role"), "{help}");
        let (message, help) = explained(403, r#"forbidden: User "dev" cannot get path "/apis""#);
        assert_eq!(message, r#"user "dev" may not get path /apis"#);
        assert!(help.contains(r#"a ClusterRole with the rule {nonResourceURLs: ["/apis"], verbs: ["get"]}"#), "{help}");
    }

    #[test]
    fn a_refused_impersonation_names_the_user_and_the_missing_rule() {
        let refused_as = |user: &str, groups: &[&str], message: &str| {
            let groups = groups.iter().map(|&group| group.into()).collect();
            let peer = Peer { acts_as: Some(Impersonate { user: user.into(), groups }), ..fake_server::peer() };
            let status = serde_json::from_value(json!({"message": message, "code": 403})).unwrap();
            let problem = refused(&ApiRequest { uri: "/api/v1".into(), ..ApiRequest::default() }, &status, &peer);
            (problem.message, problem.help.unwrap_or_default())
        };
        let new = r#"forbidden: User "u" cannot impersonate-on:user-info:get path "/api/v1""#;
        let (message, help) = refused_as("jane", &["a", "b"], new);
        assert_eq!(message, r#"user "u" may not act as "jane" in groups "a", "b""#);
        assert_eq!(
            help,
            r#"ask for a ClusterRole with the rule {apiGroups: [""], resources: ["users"], resourceNames: ["jane"], verbs: ["impersonate"]}, and a ClusterRole with the rule {apiGroups: [""], resources: ["groups"], resourceNames: ["a", "b"], verbs: ["impersonate"]}, bound to user "u""#
        );
        let old = r#"serviceaccounts "bot" is forbidden: User "u" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ci""#;
        let (message, help) = refused_as("system:serviceaccount:ci:bot", &[], old);
        assert_eq!(message, r#"user "u" may not act as "system:serviceaccount:ci:bot""#);
        assert!(help.contains(r#"a Role in namespace "ci" with the rule"#) && help.contains(r#"["bot"]"#), "{help}");
    }

    #[test]
    fn a_denial_of_an_admission_webhook_suggests_no_rule() {
        let message = r#"admission webhook "policy.example.com" denied the request: no"#;
        let (told, help) = explained(403, message);
        assert_eq!(told, format!(r#"the API server refused to get samples.g.io "x" in namespace "n": {message}"#));
        assert_eq!(help, "");
    }

    #[test]
    fn expired_credentials_are_named_with_their_user_and_context() {
        let (message, _) = explained(401, "Unauthorized");
        assert_eq!(
            message,
            r#"https://10.0.0.1:6443 does not accept the credentials of user "dev" (context "staging"): expired or invalid"#
        );
    }
}

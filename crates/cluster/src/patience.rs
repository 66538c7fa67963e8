//! Repeats a write as long as a webhook does not answer.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Apply, ApplyError, Delete, DeleteError, ListRequest, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, Resource};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const PAGE: u32 = 500;

/// The kinds whose objects say which webhooks the server calls, and their plurals.
const CONFIGURATIONS: [(&str, &str); 2] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
];

/// How long a write is repeated while the server lacks the response of a webhook.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// From the first attempt. Zero for a single attempt.
    pub limit: Duration,
    /// The user interrupted the run.
    pub stop: &'a watch::Receiver<bool>,
}

impl<'a> Patience<'a> {
    /// Writes only once.
    pub fn none(stop: &'a watch::Receiver<bool>) -> Self {
        Patience { limit: Duration::ZERO, stop }
    }

    /// # Errors
    /// As [`Target::apply`].
    pub async fn apply(self, apply: &Apply<'_>, target: &Target) -> Result<LiveObject, ApplyError> {
        let is_hindered = |answer: &Result<LiveObject, ApplyError>| matches!(answer, Err(ApplyError::NotYet(..)));
        self.repeat(async || target.apply(apply).await, is_hindered).await
    }

    /// # Errors
    /// As [`Target::delete`].
    pub async fn delete(self, delete: &Delete<'_>, target: &Target) -> Result<(), DeleteError> {
        let is_hindered = |answer: &Result<(), DeleteError>| matches!(answer, Err(DeleteError::NotYet(_)));
        self.repeat(async || target.delete(delete).await, is_hindered).await
    }

    async fn repeat<T>(self, write: impl AsyncFn() -> T, is_hindered: impl Fn(&T) -> bool) -> T {
        let deadline = Instant::now() + self.limit;
        let (mut pause, mut stop) = (FIRST_PAUSE, self.stop.clone());
        loop {
            let answer = write().await;
            if !is_hindered(&answer) || Instant::now() + pause > deadline || *stop.borrow() {
                return answer;
            }
            let _ = tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// What to do about a webhook that does not answer, with the configuration that has the server call it.
pub async fn help_with_webhook(problem: &Problem, target: &Target) -> String {
    let configurations = match called(&problem.message) {
        Some(webhook) => configurations(webhook, &problem.message, target).await,
        None => Vec::new(),
    };
    let again = "run the same command again when the webhook answers; to wait longer: --apply-timeout";
    match &configurations[..] {
        [] => again.to_owned(),
        named => {
            format!(
                "{again}; if it never will, its configuration must go, and with it all of its webhooks, which other \
                 applications may need: {}",
                named.join(", ")
            )
        }
    }
}

/// Whether a webhook that does not answer is the reason.
pub fn is_of_webhook(problem: &Problem) -> bool {
    called(&problem.message).is_some()
}

/// The webhook that the server could not call, from its message.
fn called(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("failed calling webhook \"")?;
    Some(rest.split_once('"')?.0)
}

/// The configurations with a webhook of this name at the address of the message, as kubectl names them.
async fn configurations(webhook: &str, message: &str, target: &Target) -> Vec<String> {
    #[derive(Deserialize)]
    struct ListedWebhookConfig {
        metadata: WebhookConfigMetadata,
        #[serde(default)]
        webhooks: Option<Vec<CalledWebhook>>,
    }
    #[derive(Deserialize)]
    struct WebhookConfigMetadata {
        name: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CalledWebhook {
        name: String,
        client_config: Client,
    }
    #[derive(Deserialize)]
    struct Client {
        #[serde(default)]
        service: Option<CalledService>,
        #[serde(default)]
        url: Option<String>,
    }
    #[derive(Deserialize)]
    struct CalledService {
        namespace: String,
        name: String,
    }
    // Several applications may have a webhook of the same name.
    let is_called = |Client { service, url }: Client| match (service, url) {
        _ if !message.contains("Post \"") => true,
        (Some(CalledService { namespace, name }), _) => message.contains(&format!("//{name}.{namespace}.svc")),
        (None, Some(url)) => message.contains(url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/')),
        (None, None) => true,
    };
    let mut found = Vec::new();
    for (kind, plural) in CONFIGURATIONS {
        let resource = Resource::built_in("admissionregistration.k8s.io", kind, plural, false);
        let request = ListRequest::new(&resource, PAGE);
        let gather = |names: &mut Vec<String>, json: &str| {
            let Ok(ListedWebhookConfig { metadata, webhooks }) = serde_json::from_str(json) else { return };
            let mut webhooks = webhooks.into_iter().flatten();
            let is_named = webhooks.any(|other| other.name == webhook && is_called(other.client_config));
            names.extend(is_named.then(|| format!("{}/{}", kind.to_lowercase(), metadata.name)));
        };
        // Who may not list them gets the rest of the advice.
        found.extend(target.list(&request).gather(gather).await.unwrap_or_default());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_that_does_not_answer_is_read_from_the_message() {
        let message =
            "Internal error occurred: failed calling webhook \"all.example.com\": failed to call webhook: Post …";
        assert_eq!(called(message), Some("all.example.com"));
        assert_eq!(called("admission webhook \"all.example.com\" denied the request"), None);
    }
}

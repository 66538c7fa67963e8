//! Who we are to the API server: the bearer token of the kubeconfig, of a file, or of a credential plugin.
//!
//! kube would do this too, but it panics at a token with a line break, reads a pipe or `/dev/zero` for ever, and waits
//! for a plugin whatever that does. Logins that are more than a token (OIDC, basic, certificates) stay kube's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use k8s_openapi::jiff::Timestamp;
use kube::config::AuthInfo;
use secrecy::ExposeSecret as _;

use super::errors::{io_words, words};
use super::plugin::{Credential, Plugin};
use crate::bounded;
use crate::mask::Mask;
use crate::problem::Problem;

/// A token file may be written again; so often it is looked at.
const REREAD: Duration = Duration::from_secs(60);
/// A token that expires sooner is renewed before it is sent.
const SOON: Duration = Duration::from_secs(60);
/// A plugin that gives tokens of a few seconds is not run for every request.
const AT_MOST_EVERY: Duration = Duration::from_secs(10);

/// A shorter secret is part of too many words to be taken out of them.
const SHORTEST: usize = 3;

type Result<T> = std::result::Result<T, Problem>;

/// The token that requests carry, if they carry one.
#[derive(Debug, Default)]
pub struct Credentials {
    source: Source,
    /// The kubeconfig's name for the user.
    user: Option<String>,
    /// Every token that was sent, and what else nobody may see: to keep it out of what is shown.
    secrets: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Default)]
enum Source {
    /// None, or kube's.
    #[default]
    Other,
    Token(String),
    File(PathBuf, Mutex<Held>),
    Plugin(Box<Plugin>, tokio::sync::Mutex<Held>),
}

/// A token that does not last.
#[derive(Debug, Clone)]
struct Held {
    token: String,
    since: Instant,
    expires: Option<Timestamp>,
}

impl Held {
    fn new(token: String, expires: Option<Timestamp>) -> Self {
        Held { token, since: Instant::now(), expires }
    }

    fn expires_soon(&self) -> bool {
        self.expires.is_some_and(|expires| expires.duration_since(Timestamp::now()).as_secs() < SOON.as_secs() as i64)
    }
}

impl Credentials {
    /// Takes the token, the token file or the plugin out of what is kube's, in kube's order of precedence, and asks it.
    /// A plugin may answer a client certificate instead, which goes back to kube.
    pub async fn take(auth: &mut AuthInfo, plugin: Option<Plugin>, user: Option<String>) -> Result<Self> {
        let secrets = Mutex::new(secrets_of(auth));
        let (token, file) = (auth.token.take(), auth.token_file.take());
        auth.exec = None;
        let is_kubes = auth.auth_provider.is_some() || (auth.username.is_some() && auth.password.is_some());
        let source = match (token, file, plugin) {
            _ if is_kubes => Source::Other,
            (Some(token), ..) => Source::Token(token.expose_secret().to_owned()),
            (None, Some(file), _) => {
                let file = PathBuf::from(file);
                let token = read(file.clone(), user.clone()).await?;
                // A pipe was read to its end: there is no more to come.
                if file.is_file() {
                    Source::File(file, Mutex::new(Held::new(token, None)))
                } else {
                    Source::Token(token)
                }
            }
            (None, None, Some(plugin)) => match plugin.ask().await? {
                Credential { token: Some(token), expires: Some(expires), .. } => {
                    Source::Plugin(Box::new(plugin), tokio::sync::Mutex::new(Held::new(token, Some(expires))))
                }
                Credential { token: Some(token), expires: None, .. } => Source::Token(token),
                Credential { certificate: Some((certificate, key)), .. } => {
                    auth.client_certificate_data = Some(STANDARD.encode(certificate));
                    auth.client_key_data = Some(STANDARD.encode(key).into());
                    Source::Other
                }
                Credential { .. } => Source::Other,
            },
            (None, None, None) => Source::Other,
        };
        let credentials = Credentials { source, user, secrets };
        // What cannot be sent is said before anything is.
        credentials.header().await?;
        Ok(credentials)
    }

    /// The value of the `Authorization` header.
    pub async fn header(&self) -> Result<Option<HeaderValue>> {
        let token = match &self.source {
            Source::Other => return Ok(None),
            Source::Token(token) => token.clone(),
            Source::File(path, held) => self.of_file(path, held).await,
            Source::Plugin(plugin, held) => {
                let mut held = held.lock().await;
                if held.expires_soon() && held.since.elapsed() >= AT_MOST_EVERY {
                    let Credential { token: Some(token), expires, .. } = plugin.ask().await? else {
                        return Err(plugin.gave_no_new_token());
                    };
                    *held = Held::new(token, expires);
                }
                held.token.clone()
            }
        };
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
            let whose = self.user.as_ref().map_or_else(String::new, |user| format!(" of user {:?}", words(user)));
            let message = format!("the token{whose} contains a character that cannot be sent, such as a line break");
            Problem::new(message).help("write it on one line, without anything before or after it")
        })?;
        value.set_sensitive(true);
        if token.len() >= SHORTEST {
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        }
        Ok(Some(value))
    }

    /// Words of the server without our own secrets, which it was sent.
    pub fn hidden(&self, said: &str) -> String {
        let mut mask = Mask::default();
        self.secrets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .for_each(|secret| mask.add(secret.as_bytes()));
        mask.hidden(said)
    }

    /// The last token that could be read: some are there only at the start, so that nobody else reads them.
    async fn of_file(&self, path: &Path, held: &Mutex<Held>) -> String {
        let now = || held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = now();
        if last.since.elapsed() < REREAD {
            return last.token;
        }
        let token = read(path.to_owned(), None).await.unwrap_or(last.token);
        *held.lock().unwrap_or_else(PoisonError::into_inner) = Held::new(token.clone(), None);
        token
    }
}

/// What of a login that kube does is sent to somebody.
fn secrets_of(auth: &AuthInfo) -> BTreeSet<String> {
    let provider = auth.auth_provider.iter().flat_map(|provider| &provider.config);
    let secret =
        |(key, value): (&String, &String)| (key.contains("token") || key.contains("secret")).then(|| value.clone());
    let mut secrets: BTreeSet<String> = provider.filter_map(secret).collect();
    if let (Some(user), Some(password)) = (&auth.username, &auth.password) {
        let password = password.expose_secret();
        secrets.extend([password.to_owned(), STANDARD.encode(format!("{user}:{password}"))]);
    }
    secrets.retain(|secret| secret.len() >= SHORTEST);
    secrets
}

/// Without the line break that an editor leaves at its end.
async fn read(path: PathBuf, user: Option<String>) -> Result<String> {
    let of = user.map_or_else(String::new, |user| format!(" of user {:?}", words(&user)));
    let shown = path.display().to_string();
    let problem =
        |why: &str| Problem::new(format!("the token file {shown}{of} {why}")).help("check tokenFile in the kubeconfig");
    let bytes = tokio::task::spawn_blocking(move || bounded::read(&path)).await;
    let bytes = bytes
        .unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()))
        .map_err(|error| problem(&format!("cannot be read: {}", io_words(&error))))?;
    let text = String::from_utf8(bytes).map_err(|_| problem("cannot be read: it is not UTF-8"))?;
    match text.trim_matches([' ', '\t', '\r', '\n']) {
        "" => Err(problem("is empty")),
        token => Ok(token.to_owned()),
    }
}

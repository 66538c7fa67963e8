//! The bearer token that identifies the user to the API server: from the kubeconfig, a file, or a credential plugin.
//!
//! kube could do this too, but it panics at a token with a line break, reads a pipe or `/dev/zero` forever, and waits
//! for a plugin indefinitely. Logins other than a bearer token (OIDC, basic, certificates) are left to kube.

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
use gantry_core::bounded;
use gantry_core::mask::Mask;
use gantry_core::problem::Problem;

/// How often a token file is read again, because it can be rewritten.
const REREAD_INTERVAL: Duration = Duration::from_secs(60);
/// A token that expires within this time is renewed before it is sent.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
/// The minimum time between two runs of a plugin, even if its tokens last only seconds.
const MIN_PLUGIN_INTERVAL: Duration = Duration::from_secs(10);

/// The minimum length of a secret that is masked. A shorter one is part of too many words.
const MIN_SECRET_LEN: usize = 3;

type CredentialResult<T> = std::result::Result<T, Problem>;

/// The token that requests carry, if any.
#[derive(Debug, Default)]
pub struct Credentials {
    source: TokenSource,
    /// The kubeconfig's name for the user.
    user: Option<String>,
    /// All tokens that were sent, and other secrets of the login, which must not appear in output.
    secrets: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Default)]
enum TokenSource {
    /// No credentials, or those that kube handles.
    #[default]
    Other,
    Token(String),
    File(PathBuf, Mutex<RefreshableToken>),
    Plugin(Box<Plugin>, tokio::sync::Mutex<RefreshableToken>),
}

/// A token that can change or expire.
#[derive(Debug, Clone)]
struct RefreshableToken {
    token: String,
    since: Instant,
    expires: Option<Timestamp>,
}

impl RefreshableToken {
    fn new(token: String, expires: Option<Timestamp>) -> Self {
        RefreshableToken { token, since: Instant::now(), expires }
    }

    fn expires_soon(&self) -> bool {
        self.expires
            .is_some_and(|expires| expires.duration_since(Timestamp::now()).as_secs() < EXPIRY_MARGIN.as_secs() as i64)
    }
}

impl Credentials {
    /// Takes the token, the token file or the plugin out of kube's configuration, in kube's order of precedence, and
    /// gets the token. A plugin can return a client certificate instead, which goes back to kube.
    pub async fn take(auth: &mut AuthInfo, plugin: Option<Plugin>, user: Option<String>) -> CredentialResult<Self> {
        let secrets = Mutex::new(secrets_of(auth));
        let (token, file) = (auth.token.take(), auth.token_file.take());
        auth.exec = None;
        let is_kubes = auth.auth_provider.is_some() || (auth.username.is_some() && auth.password.is_some());
        let source = match (token, file, plugin) {
            _ if is_kubes => TokenSource::Other,
            (Some(token), ..) => TokenSource::Token(token.expose_secret().to_owned()),
            (None, Some(file), _) => {
                let file = PathBuf::from(file);
                let token = read(file.clone(), user.clone()).await?;
                // A pipe was read to its end, so there is nothing more to read.
                if file.is_file() {
                    TokenSource::File(file, Mutex::new(RefreshableToken::new(token, None)))
                } else {
                    TokenSource::Token(token)
                }
            }
            (None, None, Some(plugin)) => match plugin.ask().await? {
                Credential { token: Some(token), expires: Some(expires), .. } => TokenSource::Plugin(
                    Box::new(plugin),
                    tokio::sync::Mutex::new(RefreshableToken::new(token, Some(expires))),
                ),
                Credential { token: Some(token), expires: None, .. } => TokenSource::Token(token),
                Credential { certificate: Some((certificate, key)), .. } => {
                    auth.client_certificate_data = Some(STANDARD.encode(certificate));
                    auth.client_key_data = Some(STANDARD.encode(key).into());
                    TokenSource::Other
                }
                Credential { .. } => TokenSource::Other,
            },
            (None, None, None) => TokenSource::Other,
        };
        let credentials = Credentials { source, user, secrets };
        // A token that cannot be sent is reported before any request.
        credentials.header().await?;
        Ok(credentials)
    }

    /// The value of the `Authorization` header.
    pub async fn header(&self) -> CredentialResult<Option<HeaderValue>> {
        let token = match &self.source {
            TokenSource::Other => return Ok(None),
            TokenSource::Token(token) => token.clone(),
            TokenSource::File(path, held) => self.of_file(path, held).await,
            TokenSource::Plugin(plugin, held) => {
                let mut held = held.lock().await;
                if held.expires_soon() && held.since.elapsed() >= MIN_PLUGIN_INTERVAL {
                    let Credential { token: Some(token), expires, .. } = plugin.ask().await? else {
                        return Err(plugin.gave_no_new_token());
                    };
                    *held = RefreshableToken::new(token, expires);
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
        if token.len() >= MIN_SECRET_LEN {
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        }
        Ok(Some(value))
    }

    /// The server's text with our own secrets, which it received, masked.
    pub fn hidden(&self, said: &str) -> String {
        let mut mask = Mask::default();
        self.secrets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .for_each(|secret| mask.add(secret.as_bytes()));
        mask.hidden(said)
    }

    /// The last token that could be read: some token files exist only at the start, so that nothing else can read them.
    async fn of_file(&self, path: &Path, held: &Mutex<RefreshableToken>) -> String {
        let now = || held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = now();
        if last.since.elapsed() < REREAD_INTERVAL {
            return last.token;
        }
        let token = read(path.to_owned(), None).await.unwrap_or(last.token);
        *held.lock().unwrap_or_else(PoisonError::into_inner) = RefreshableToken::new(token.clone(), None);
        token
    }
}

/// The secrets of a login that kube handles.
fn secrets_of(auth: &AuthInfo) -> BTreeSet<String> {
    let provider = auth.auth_provider.iter().flat_map(|provider| &provider.config);
    let secret =
        |(key, value): (&String, &String)| (key.contains("token") || key.contains("secret")).then(|| value.clone());
    let mut secrets: BTreeSet<String> = provider.filter_map(secret).collect();
    if let (Some(user), Some(password)) = (&auth.username, &auth.password) {
        let password = password.expose_secret();
        secrets.extend([password.to_owned(), STANDARD.encode(format!("{user}:{password}"))]);
    }
    secrets.retain(|secret| secret.len() >= MIN_SECRET_LEN);
    secrets
}

/// Reads a token, without the line break that editors add at its end.
async fn read(path: PathBuf, user: Option<String>) -> CredentialResult<String> {
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

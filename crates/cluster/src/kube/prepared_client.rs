//! The configuration of a client, from a context of the kubeconfig or from the service account of a Pod.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Config;
use kube::config::{AuthInfo, Cluster, Context, ExecAuthCluster, Kubeconfig, KubeconfigError, LoadDataError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::errors::{io_words, words};
use super::kubeconfig::{self, ProcessEnvironment};
use super::plugin::Plugin;
use super::request::Peer;
use super::{Connection, proxy};
use crate::{BearerToken, ConnectionOverrides};
use gantry_core::bounded;
use gantry_core::problem::{Error, Problem, Result, did_you_mean};
use gantry_core::resource::is_dns_label;

/// What the target of flags that need no context is called.
const WITHOUT_CONTEXT: &str = "no context";

/// Everything that is needed to create the client.
pub(super) struct PreparedClient {
    pub config: Config,
    pub peer: Peer,
    pub plugin: Option<Plugin>,
    /// See [`ProcessEnvironment::disables_http2`].
    pub disable_http2: bool,
}

impl PreparedClient {
    /// From the service account of the Pod that gantry runs in.
    pub fn in_cluster(connection: &Connection, surroundings: &ProcessEnvironment) -> Result<PreparedClient> {
        let ConnectionOverrides { cluster, user, server, token } = &connection.overrides;
        let named = [("context", &connection.context), ("cluster", cluster), ("user", user)];
        if let Some((what, name)) = named.into_iter().find_map(|(what, name)| Some((what, name.as_ref()?))) {
            return Err(Error::usage(
                Problem::new(format!("no kubeconfig found for {what} {name:?}"))
                    .help(format!("searched in {}", kubeconfig::searched_paths(surroundings))),
            ));
        }
        if server.is_some() {
            return Self::from_kubeconfig(&Kubeconfig::default(), connection, surroundings);
        }
        if surroundings.variable("KUBERNETES_SERVICE_HOST").is_none() {
            return Err(Error::failed(
                Problem::new(format!("no kubeconfig found: searched in {}", kubeconfig::searched_paths(surroundings)))
                    .help("pass one with --kubeconfig or KUBECONFIG, or deploy to a folder with --target dir:PATH"),
            ));
        }
        let mut config = Config::incluster().map_err(|error| {
            Error::failed(
                Problem::new(format!("the pod's service account cannot be used: {}", words(&error.to_string())))
                    .help("is automountServiceAccountToken off? Mount a token, or pass a kubeconfig with --kubeconfig"),
            )
        })?;
        if let Some(token) = token {
            config.auth_info = of_token(token, &config.auth_info);
        }
        config.proxy_url = proxy::choose(&config.cluster_url, None, surroundings).map_err(Error::failed)?;
        let peer = peer("in-cluster".into(), &config.cluster_url, None);
        Ok(PreparedClient { config, peer, plugin: None, disable_http2: surroundings.disables_http2() })
    }

    /// From a context of the kubeconfig.
    pub fn from_kubeconfig(
        kubeconfig: &Kubeconfig,
        connection: &Connection,
        surroundings: &ProcessEnvironment,
    ) -> Result<PreparedClient> {
        let asked = connection.context.is_some();
        let ConnectionOverrides { cluster, user, server, token } = &connection.overrides;
        let name = connection.context.clone().or(kubeconfig.current_context.clone().filter(|name| !name.is_empty()));
        let (name, context) = match name {
            // The flags say where the server is, and a context is not needed.
            None if server.is_some() || cluster.is_some() => (WITHOUT_CONTEXT.to_owned(), Some(Context::default())),
            None => {
                let help = format!("choose one with --context: {}", known_contexts(kubeconfig));
                return Err(Error::failed(Problem::new("the kubeconfig sets no current-context").help(help)));
            }
            Some(name) => {
                let named = kubeconfig.contexts.iter().find(|context| context.name == name);
                let context = named.and_then(|named| named.context.clone());
                (name, context)
            }
        };
        let Some(mut context) = context else {
            let from = if asked { "" } else { " (its current-context)" };
            let names = kubeconfig.contexts.iter().map(|context| &*context.name).collect();
            let mut problem = unknown_entry("context", &name, from, names);
            if asked && name.contains([',', '*', '?']) {
                let known = problem.help.unwrap_or_default();
                problem.help = Some(format!("only check, diff and deploy accept several contexts; {known}"));
            }
            return Err(if asked { Error::usage(problem) } else { Error::failed(problem) });
        };
        let missing = |what: &str, missing: &str, asked: Option<&String>, known: &mut dyn Iterator<Item = &str>| {
            if asked.is_some() {
                return Error::usage(unknown_entry(what, missing, "", known.collect()));
            }
            let (context, shown) = (words(&name), words(missing));
            let message = format!("context {context:?} names {what} {shown:?}, which the kubeconfig does not have");
            Error::failed(Problem::new(message))
        };
        context.cluster = cluster.clone().unwrap_or(context.cluster);
        let named = kubeconfig.clusters.iter().find(|named| named.name == context.cluster);
        let mut cluster = match named.and_then(|named| named.cluster.clone()) {
            Some(found) => found,
            None if server.is_some() && cluster.is_none() && context.cluster.is_empty() => Cluster::default(),
            None => {
                let mut known = kubeconfig.clusters.iter().map(|named| &*named.name);
                return Err(missing("cluster", &context.cluster, cluster.as_ref(), &mut known));
            }
        };
        if let Some(server) = server {
            check_server(server, token.is_some())?;
            cluster.server = Some(server.clone());
            // It is the name of the other server.
            cluster.tls_server_name = None;
        }
        let asked_user = user.as_ref();
        let mut user = asked_user.cloned().or(context.user).filter(|user| !user.is_empty());
        let mut auth = match &user {
            None => AuthInfo::default(),
            Some(user) => {
                let mut known = kubeconfig.auth_infos.iter().map(|named| &*named.name);
                let named = kubeconfig.auth_infos.iter().find(|named| &named.name == user);
                let named = named.ok_or_else(|| missing("user", user, asked_user, &mut known))?;
                named.auth_info.clone().unwrap_or_default()
            }
        };
        if let Some(token) = token {
            auth = of_token(token, &auth);
            user = None;
        }
        let peer = Peer { context: name, user, ..Peer::default() };
        let mut prepared =
            prepare(&context.cluster, cluster, auth, peer, connection, surroundings).map_err(Error::failed)?;
        if let Some(namespace) = context.namespace.filter(|namespace| !namespace.is_empty()) {
            if !is_dns_label(&namespace) {
                let context = words(&prepared.peer.context);
                let message =
                    format!("context {context:?} names namespace {:?}, which is not a valid name", words(&namespace));
                let help = "a namespace is at most 63 lower case letters, digits and -, starting and ending with a letter or digit";
                return Err(Error::failed(Problem::new(message).help(help)));
            }
            prepared.config.default_namespace = namespace;
        }
        Ok(prepared)
    }
}

/// Credentials that are only this token. Whom they impersonate stays as it is, as with kubectl.
fn of_token(token: &BearerToken, instead_of: &AuthInfo) -> AuthInfo {
    let AuthInfo { impersonate, impersonate_groups, impersonate_uid, impersonate_user_extra, .. } = instead_of.clone();
    AuthInfo {
        token: Some(token.clone().into_text().into()),
        impersonate,
        impersonate_groups,
        impersonate_uid,
        impersonate_user_extra,
        ..AuthInfo::default()
    }
}

/// Checks the URL of `--server`. A token is sent over TLS, or within this machine.
fn check_server(server: &str, has_token: bool) -> Result<()> {
    let url = server.parse::<http::Uri>().ok().filter(|url| {
        let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
        matches!(url.scheme_str(), Some("http" | "https")) && proxy::is_whole(url) && !has_user
    });
    let Some(url) = url else {
        let problem = Problem::new("--server is not a URL such as https://HOST:PORT");
        return Err(Error::usage(problem.help("name scheme, host and port, and no user")));
    };
    if has_token && url.scheme_str() == Some("http") && !proxy::is_this_machine(proxy::host_of(&url)) {
        let problem = Problem::new("--token would be sent to --server without encryption");
        return Err(Error::usage(problem.help("use https://")));
    }
    Ok(())
}

/// The kubeconfig has no entry of this name. `from` says where the name comes from.
fn unknown_entry(what: &str, name: &str, from: &str, known: Vec<&str>) -> Problem {
    let near = did_you_mean(name, known.iter().copied());
    let near = near.map_or(String::new(), |near| format!(", did you mean {near:?}?"));
    let problem = Problem::new(format!("the kubeconfig has no {what} {:?}{from}{near}", words(name)));
    problem.help(format!("known: {}", listed(known)))
}

/// The names of the contexts, for a message.
fn known_contexts(kubeconfig: &Kubeconfig) -> String {
    listed(kubeconfig.contexts.iter().map(|context| &*context.name))
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.into_iter().map(words).collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn prepare(
    cluster_name: &str,
    mut cluster: Cluster,
    mut auth: AuthInfo,
    peer: Peer,
    connection: &Connection,
    surroundings: &ProcessEnvironment,
) -> std::result::Result<PreparedClient, Problem> {
    let of_cluster = format!("cluster {:?}", words(cluster_name));
    let of_user = peer.user.as_ref().map_or_else(|| "the user".to_owned(), |user| format!("user {:?}", words(user)));
    let not_a_url = || {
        Problem::new(format!("the server of {of_cluster} is not a valid URL")).help(
            "set it to https://HOST:PORT in the \
            kubeconfig",
        )
    };
    let url: http::Uri = cluster.server.as_deref().unwrap_or_default().trim().parse().map_err(|_| not_a_url())?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || !proxy::is_whole(&url) {
        return Err(not_a_url());
    }
    let authority = [&mut cluster.certificate_authority, &mut cluster.certificate_authority_data];
    load(authority, "certificate authority", "certificate-authority", &of_cluster)?;
    let certificate = [&mut auth.client_certificate, &mut auth.client_certificate_data];
    load(certificate, "client certificate", "client-certificate", &of_user)?;
    let mut key = None;
    if auth.client_key_data.is_none() {
        load([&mut auth.client_key, &mut key], "client key", "client-key", &of_user)?;
    }
    auth.client_key_data = auth.client_key_data.or(key.map(Into::into));

    let for_plugin = ExecAuthCluster::try_from(&cluster)
        .map_err(|error| unreadable(&error, &of_cluster).unwrap_or_else(not_a_url))?;
    let timeout = connection.credentials_timeout;
    let plugin = Plugin::prepare(&auth, &for_plugin, peer.user.as_deref(), surroundings, timeout)?;
    let mut config = Config::new(url);
    config.root_cert = match &for_plugin.certificate_authority_data {
        Some(pem) => Some(certificates(pem, &of_cluster)?),
        None => None,
    };
    config.proxy_url = proxy::choose(&config.cluster_url, cluster.proxy_url.as_deref(), surroundings)?;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.disable_compression = cluster.disable_compression.unwrap_or(false);
    config.tls_server_name = cluster.tls_server_name.filter(|name| !name.is_empty());
    config.auth_info = auth;
    let peer = self::peer(peer.context, &config.cluster_url, peer.user);
    Ok(PreparedClient { config, peer, plugin, disable_http2: surroundings.disables_http2() })
}

/// Reads a file that the kubeconfig names, unless the data is inline. kube would read a pipe or `/dev/zero` forever.
fn load(
    [file, data]: [&mut Option<String>; 2],
    what: &str,
    key: &str,
    whose: &str,
) -> std::result::Result<(), Problem> {
    let Some(path) = file.take().filter(|_| data.is_none()) else { return Ok(()) };
    let bytes = bounded::read(path.as_ref()).map_err(|error| {
        Problem::new(format!("the {what} {path} of {whose} cannot be read: {}", io_words(&error)))
            .help(format!("check {key} in the kubeconfig"))
    })?;
    *data = Some(STANDARD.encode(bytes));
    Ok(())
}

fn certificates(pem: &[u8], cluster: &str) -> std::result::Result<Vec<Vec<u8>>, Problem> {
    certificates_of(pem).ok_or_else(|| {
        Problem::new(format!("the certificate authority of {cluster} contains no PEM certificate"))
            .help("check certificate-authority-data (base64 of a PEM file) or certificate-authority in the kubeconfig")
    })
}

/// The certificates of a PEM file; `None` if it contains none, or something else.
pub(super) fn certificates_of(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    let certificates: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem).map(|certificate| certificate.map(|der| der.to_vec())).collect();
    certificates.ok().filter(|certificates| !certificates.is_empty())
}

/// Describes the server without the user information that a URL can contain.
fn peer(context: String, url: &http::Uri, user: Option<String>) -> Peer {
    let scheme = url.scheme_str().unwrap_or("https");
    let port = url.port_u16().map_or(String::new(), |port| format!(":{port}"));
    let server = format!("{scheme}://{}{port}{}", url.host().unwrap_or_default(), url.path().trim_end_matches('/'));
    Peer { context: words(&context), server: words(&server), address: address(url), user, acts_as: None, proxy: None }
}

/// `host:port`
pub(super) fn address(url: &http::Uri) -> String {
    let usual = match url.scheme_str() {
        Some("https") => 443,
        Some("socks5") => 1080,
        _ => 80,
    };
    words(&format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(usual)))
}

/// The problem if a certificate or key of the kubeconfig cannot be loaded.
pub(super) fn unreadable(error: &KubeconfigError, whose: &str) -> Option<Problem> {
    let (what, key, error) = match error {
        KubeconfigError::LoadCertificateAuthority(error) => ("certificate authority", "certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => ("client certificate", "client-certificate", error),
        KubeconfigError::LoadClientKey(error) => ("client key", "client-key", error),
        _ => return None,
    };
    match error {
        LoadDataError::DecodeBase64(_) => Some(
            Problem::new(format!("{key}-data of {whose} in the kubeconfig is not base64"))
                .help("it must be a base64-encoded PEM file"),
        ),
        LoadDataError::NoBase64DataOrFile => Some(
            Problem::new(format!("the kubeconfig has no {what} for {whose}")).help(format!("set {key}-data or {key}")),
        ),
        // The files have been read already.
        LoadDataError::ReadFile(..) => None,
    }
}

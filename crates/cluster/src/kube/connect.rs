//! Builds a client from flags, environment and kubeconfig.
//!
//! kube parses the kubeconfig, but the configuration is assembled here: kube would read the environment itself, and it
//! matches `NO_PROXY` against the wrong host.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderValue, USER_AGENT};
use kube::Config;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig, KubeconfigError, LoadDataError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::credentials::Credentials;
use super::errors::{self, io_words, words};
use super::kubeconfig::{self, ProcessEnvironment, ReadKubeconfig};
use super::plugin::Plugin;
use super::request::Peer;
use super::transport::Transport;
use super::{Connection, KubeTarget, client, proxy};
use crate::Impersonate;
use gantry_core::bounded;
use gantry_core::problem::{Error, Problem, Result, did_you_mean};
use gantry_core::resource::is_dns_label;

/// A server that does not accept a connection in this time is considered unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The limit for one request if `Connection` sets none. It is the API server's own default.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The limit for what kube does while it creates a client.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// The merged kubeconfig.
pub async fn kubeconfig(connection: &Connection, surroundings: ProcessEnvironment) -> Result<ReadKubeconfig> {
    let asked = connection.clone();
    let reading = tokio::task::spawn_blocking(move || match kubeconfig::read(&asked, &surroundings)? {
        Some(read) => Ok(ReadKubeconfig(Arc::new(read))),
        None => Err(Error::usage(
            Problem::new("no kubeconfig found for several contexts")
                .help(format!("searched in {}", kubeconfig::searched_paths(&surroundings))),
        )),
    });
    reading.await.map_err(|_| Error::failed(Problem::new("the kubeconfig could not be read")))?
}

pub async fn open(connection: &Connection, surroundings: ProcessEnvironment) -> Result<KubeTarget> {
    // A file can be a pipe that nothing is written to, and an interrupt must still work.
    let asked = connection.clone();
    let prepared = tokio::task::spawn_blocking(move || {
        if let Some(ReadKubeconfig(kubeconfig)) = &asked.read {
            return from_kubeconfig(kubeconfig, &asked, &surroundings);
        }
        match kubeconfig::read(&asked, &surroundings)? {
            Some(kubeconfig) => from_kubeconfig(&kubeconfig, &asked, &surroundings),
            None => in_cluster(&asked, &surroundings),
        }
    });
    let mut prepared =
        prepared.await.map_err(|_| Error::failed(Problem::new("the kubeconfig could not be read")))??;
    let timeout = connection.timeout.unwrap_or(REQUEST_TIMEOUT);
    let PreparedClient { config, peer, .. } = &mut prepared;
    if let Some(Impersonate { user, groups }) = &connection.impersonate {
        // Like kubectl: the flags replace all impersonation settings of the kubeconfig.
        let auth = &mut config.auth_info;
        auth.impersonate = Some(user.clone());
        auth.impersonate_groups = (!groups.is_empty()).then(|| groups.clone());
        auth.impersonate_uid = None;
        auth.impersonate_user_extra = None;
    }
    let auth = &config.auth_info;
    peer.acts_as = auth
        .impersonate
        .clone()
        .map(|user| Impersonate { user, groups: auth.impersonate_groups.clone().unwrap_or_default() });
    config.connect_timeout = Some(CONNECT_TIMEOUT.min(timeout));
    config.write_timeout = Some(timeout);
    // On loopback, compressing costs more than sending.
    config.disable_compression |= proxy::is_this_machine(proxy::host_of(&config.cluster_url));
    // gantry does its own retries; kube's go on for minutes.
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(concat!("gantry/", env!("CARGO_PKG_VERSION")))));
    peer.proxy = config.proxy_url.as_ref().map(address);

    let PreparedClient { mut config, peer, plugin } = prepared;
    let credentials = Credentials::take(&mut config.auth_info, plugin, peer.user.clone()).await;
    let credentials = credentials.map_err(Error::failed)?;
    let default_namespace = config.default_namespace.clone();
    // kube runs the command of an old auth-provider here and waits for it.
    let client = tokio::task::spawn_blocking(move || client::build(config));
    let client = tokio::time::timeout(LOGIN_TIMEOUT, client)
        .await
        .map_err(|_| Error::failed(Problem::new("the auth-provider of the kubeconfig did not respond in time")))?
        .map_err(|_| Error::failed(Problem::new("the Kubernetes client could not be set up")))?
        .map_err(|error| Error::failed(not_set_up(&error, &peer)))?;
    Ok(KubeTarget {
        transport: Arc::new(Transport::new(client, peer, credentials, timeout)),
        default_namespace,
        fresh: Default::default(),
        openapi: Default::default(),
        release: Default::default(),
    })
}

/// Everything that is needed to create the client.
struct PreparedClient {
    config: Config,
    peer: Peer,
    plugin: Option<Plugin>,
}

fn in_cluster(connection: &Connection, surroundings: &ProcessEnvironment) -> Result<PreparedClient> {
    if let Some(context) = &connection.context {
        return Err(Error::usage(
            Problem::new(format!("no kubeconfig found for context {context:?}"))
                .help(format!("searched in {}", kubeconfig::searched_paths(surroundings))),
        ));
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
    config.proxy_url = proxy::choose(&config.cluster_url, None, surroundings).map_err(Error::failed)?;
    let peer = peer("in-cluster".into(), &config.cluster_url, None);
    Ok(PreparedClient { config, peer, plugin: None })
}

fn from_kubeconfig(
    kubeconfig: &Kubeconfig,
    connection: &Connection,
    surroundings: &ProcessEnvironment,
) -> Result<PreparedClient> {
    let asked = connection.context.is_some();
    let name = match connection.context.clone().or(kubeconfig.current_context.clone().filter(|name| !name.is_empty())) {
        Some(name) => name,
        None => {
            let help = format!("choose one with --context: {}", known(kubeconfig));
            return Err(Error::failed(Problem::new("the kubeconfig sets no current-context").help(help)));
        }
    };
    let context =
        kubeconfig.contexts.iter().find(|context| context.name == name).and_then(|named| named.context.clone());
    let Some(context) = context else {
        let names = kubeconfig.contexts.iter().map(|context| context.name.as_str());
        let near = did_you_mean(&name, names).map_or(String::new(), |near| format!(", did you mean {near:?}?"));
        let from = if asked { "" } else { " (its current-context)" };
        let problem = Problem::new(format!("the kubeconfig has no context {:?}{from}{near}", words(&name))).help(
            match asked && name.contains([',', '*', '?']) {
                true => format!("only check, diff and deploy accept several contexts; known: {}", known(kubeconfig)),
                false => format!("known: {}", known(kubeconfig)),
            },
        );
        return Err(if asked { Error::usage(problem) } else { Error::failed(problem) });
    };
    let missing = |what: &str, missing: &str| {
        Error::failed(Problem::new(format!(
            "context {:?} names {what} {:?}, which the kubeconfig does not have",
            words(&name),
            words(missing)
        )))
    };
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster =
        cluster.and_then(|named| named.cluster.clone()).ok_or_else(|| missing("cluster", &context.cluster))?;
    let user = context.user.clone().filter(|user| !user.is_empty());
    let auth = match &user {
        None => AuthInfo::default(),
        Some(user) => {
            let named = kubeconfig.auth_infos.iter().find(|named| &named.name == user);
            named.ok_or_else(|| missing("user", user))?.auth_info.clone().unwrap_or_default()
        }
    };
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

fn known(kubeconfig: &Kubeconfig) -> String {
    let mut names: Vec<String> = kubeconfig.contexts.iter().map(|context| words(&context.name)).collect();
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
    Ok(PreparedClient { config, peer, plugin })
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
fn address(url: &http::Uri) -> String {
    let usual = match url.scheme_str() {
        Some("https") => 443,
        Some("socks5") => 1080,
        _ => 80,
    };
    words(&format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(usual)))
}

/// Why kube could not create a client from the configuration.
fn not_set_up(error: &kube::Error, peer: &Peer) -> Problem {
    let whose = peer.user.as_ref().map_or_else(|| "the user".to_owned(), |user| format!("user {:?}", words(user)));
    match error {
        kube::Error::Auth(error) => errors::auth(error, peer.user.as_deref()),
        kube::Error::InferKubeconfig(error) => unreadable(error, &whose)
            .unwrap_or_else(|| Problem::new(format!("the credentials of {whose} in the kubeconfig cannot be used"))),
        kube::Error::RustlsTls(_) => Problem::new(format!("the certificates for {} cannot be used", peer.server)).help(format!(
            "check client-certificate-data and client-key-data of {whose}, and certificate-authority-data and tls-server-name of the cluster"
        )),
        kube::Error::HttpError(_) => Problem::new(format!("the impersonation settings of {whose} contain characters \
            that cannot be sent")),
        _ => Problem::new(format!("the Kubernetes client for {} could not be set up", peer.server)),
    }
}

/// The problem if a certificate or key of the kubeconfig cannot be loaded.
fn unreadable(error: &KubeconfigError, whose: &str) -> Option<Problem> {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
current-context: staging
clusters:
- {name: c, cluster: {server: "https://me:geheim@10.0.0.1:6443/"}}
- {name: bad-url, cluster: {server: "10.0.0.1:6443"}}
- {name: bad-port, cluster: {server: "https://10.0.0.1:99999"}}
- {name: bad-ca, cluster: {server: "https://10.0.0.1", certificate-authority-data: "Z2VoZWlt"}}
- {name: no-ca, cluster: {server: "https://10.0.0.1", certificate-authority: gone.pem}}
users:
- {name: u, user: {token: geheim}}
- {name: no-plugin, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./no-such-plugin, installHint: "Get it at\nexample.com"}}}
- {name: asks, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Always}}}
- {name: fails, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, env: [{name: PASSWORD, value: geheim}],
    args: ["-c", "echo \"no session for $(printf eyJhbGci) \\033[31m\" >&2; exit 3"]}}}
- {name: half, user: {client-certificate-data: "Z2VoZWlt"}}
contexts:
- {name: staging, context: {cluster: c, user: u, namespace: team}}
- {name: bad-namespace, context: {cluster: c, user: u, namespace: ../x}}
- {name: bad-url, context: {cluster: bad-url, user: u}}
- {name: bad-port, context: {cluster: bad-port, user: u}}
- {name: bad-ca, context: {cluster: bad-ca, user: u}}
- {name: no-ca, context: {cluster: no-ca, user: u}}
- {name: no-plugin, context: {cluster: c, user: no-plugin}}
- {name: asks, context: {cluster: c, user: asks}}
- {name: fails, context: {cluster: c, user: fails}}
- {name: half, context: {cluster: c, user: half}}
- {name: no-user, context: {cluster: c, user: nobody}}
- {name: no-cluster, context: {cluster: nothing}}
"#;

    struct Home(TempDir);

    impl Home {
        fn with(kubeconfig: &str) -> Self {
            let home = Home(TempDir::new().unwrap());
            fs::create_dir(home.0.path().join(".kube")).unwrap();
            fs::write(home.path(), kubeconfig).unwrap();
            home
        }

        fn path(&self) -> PathBuf {
            self.0.path().join(".kube").join("config")
        }

        async fn open(&self, connection: Connection) -> Result<KubeTarget> {
            super::open(&connection, ProcessEnvironment::for_test(&[("HOME", self.0.path().to_str().unwrap())])).await
        }

        /// The problem with a context, with its path shortened.
        async fn problem(&self, context: &str) -> Problem {
            let Err(error) = self.open(Connection { context: Some(context.into()), ..Connection::default() }).await
            else {
                panic!("{context} opens")
            };
            let mut problem = error.problems()[0].clone();
            assert!(
                !format!("{problem:?}").contains("geheim") && !format!("{problem:?}").contains("Z2Vo"),
                "{problem:?}"
            );
            problem.message = problem.message.replace(self.0.path().to_str().unwrap(), "~");
            problem
        }
    }

    #[tokio::test]
    async fn the_context_decides_server_user_and_namespace() {
        let target = Home::with(KUBECONFIG).open(Connection::default()).await.unwrap();
        assert_eq!(target.describe(), "kube: staging (https://10.0.0.1:6443)");
        assert_eq!(target.default_namespace(), "team");
    }

    #[tokio::test]
    async fn files_of_kubeconfig_are_merged_and_missing_ones_left_out() {
        let home = Home::with(KUBECONFIG);
        let first = home.0.path().join("first");
        fs::write(&first, "{apiVersion: v1, kind: Config, current-context: other, contexts: [{name: other, context: {cluster: c, user: u}}]}")
            .unwrap();
        let paths = std::env::join_paths([home.0.path().join("gone"), first, home.path()]).unwrap();
        let surroundings =
            ProcessEnvironment::for_test(&[("KUBECONFIG", paths.to_str().unwrap()), ("HOME", "/nowhere")]);
        let target = open(&Connection::default(), surroundings).await.unwrap();
        assert_eq!(target.describe(), "kube: other (https://10.0.0.1:6443)");
        assert_eq!(target.default_namespace(), "default");
    }

    #[tokio::test]
    async fn two_entries_of_one_name_are_refused_in_one_file_only() {
        let entry = |list: &str| match list {
            "contexts" => "{name: x, context: {cluster: x, user: x}}",
            "clusters" => "{name: x, cluster: {server: 'https://10.0.0.2'}}",
            _ => "{name: x, user: {}}",
        };
        let write = |home: &Home, twice: &str| {
            let of = |list: &str| vec![entry(list); if list == twice { 2 } else { 1 }].join(", ");
            let lists = ["contexts", "clusters", "users"].map(|list| format!("{list}: [{}]", of(list))).join(", ");
            fs::write(home.path(), format!("{{apiVersion: v1, kind: Config, current-context: x, {lists}}}")).unwrap();
        };
        let home = Home::with("");
        for list in ["contexts", "clusters", "users"] {
            write(&home, list);
            let error = home.open(Connection::default()).await.err().expect("an error");
            assert!(matches!(error, Error::Failed(_)), "{error:?}");
            assert!(error.to_string().ends_with(&format!("has two {list} with the name \"x\"")), "{error}");
        }
        write(&home, "");
        let other = Home::with(KUBECONFIG);
        fs::copy(home.path(), other.path()).unwrap();
        let paths = std::env::join_paths([home.path(), other.path()]).unwrap();
        let surroundings = ProcessEnvironment::for_test(&[("KUBECONFIG", paths.to_str().unwrap())]);
        let target = open(&Connection::default(), surroundings).await.unwrap();
        assert_eq!(target.describe(), "kube: x (https://10.0.0.2)");
    }

    #[tokio::test]
    async fn a_wrong_context_is_a_usage_error_that_lists_the_known_ones() {
        let home = Home::with(KUBECONFIG);
        let problem = home.problem("stagging").await;
        assert_eq!(problem.message, "the kubeconfig has no context \"stagging\", did you mean \"staging\"?");
        assert_eq!(
            problem.help.as_deref(),
            Some(
                "known: asks, bad-ca, bad-namespace, bad-port, bad-url, fails, half, no-ca, no-cluster, no-plugin, no-user, staging"
            )
        );
        let error = home.open(Connection { context: Some("x".into()), ..Connection::default() }).await.err();
        assert!(matches!(error, Some(Error::Usage(_))), "{error:?}");
    }

    #[tokio::test]
    async fn problems_of_a_kubeconfig_are_named_in_one_line() {
        let home = Home::with(KUBECONFIG);
        for (context, message) in [
            ("bad-url", r#"the server of cluster "bad-url" is not a valid URL"#),
            ("bad-port", r#"the server of cluster "bad-port" is not a valid URL"#),
            ("bad-ca", r#"the certificate authority of cluster "bad-ca" contains no PEM certificate"#),
            ("no-ca", r#"the certificate authority ~/.kube/gone.pem of cluster "no-ca" cannot be read: no such file"#),
            ("no-plugin", r#"the credential plugin "~/.kube/./no-such-plugin" of user "no-plugin" is not installed"#),
            ("asks", r#"the credential plugin "login" of user "asks" needs a terminal"#),
            ("half", r#"the kubeconfig has no client key for user "half""#),
            ("bad-namespace", r#"context "bad-namespace" names namespace "../x", which is not a valid name"#),
            ("no-user", r#"context "no-user" names user "nobody", which the kubeconfig does not have"#),
            ("no-cluster", r#"context "no-cluster" names cluster "nothing", which the kubeconfig does not have"#),
        ] {
            assert_eq!(home.problem(context).await.message, message);
        }
        assert_eq!(home.problem("no-plugin").await.help.as_deref(), Some("Get it at example.com"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_failing_plugin_is_quoted_without_its_secrets() {
        let problem = Home::with(KUBECONFIG).problem("fails").await;
        assert_eq!(
            problem.message,
            r#"the credential plugin "sh" of user "fails" failed (exit status: 3): no session for [hidden] \u{1b}[31m"#
        );
    }

    #[tokio::test]
    async fn an_invalid_kubeconfig_is_located_and_not_quoted() {
        let home = Home::with("apiVersion: v1\nusers:\n- name: u\n  user: {token: [geheim]}\n");
        let problem = home.problem("x").await;
        assert_eq!(problem.message, "not a valid kubeconfig");
        let at = problem.at.expect("a place");
        assert_eq!((at.line, at.column), (4, 0), "a column would show the line, token and all");
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_reported_with_the_searched_locations() {
        let problem = |connection: Connection, variables: &'static [(&str, &str)]| async move {
            open(&connection, ProcessEnvironment::for_test(variables)).await.err().map(|error| error.to_string())
        };
        let nowhere = problem(Connection::default(), &[("HOME", "/nowhere")]).await.unwrap();
        assert_eq!(nowhere.replace('\\', "/"), "no kubeconfig found: searched in /nowhere/.kube/config");
        let unset = problem(Connection::default(), &[]).await.unwrap();
        assert_eq!(unset, "no kubeconfig found: searched in no location (neither KUBECONFIG nor HOME is set)");
        let named = Connection { kubeconfig: Some("/nowhere/k".into()), ..Connection::default() };
        assert_eq!(problem(named, &[]).await.unwrap(), "kubeconfig /nowhere/k does not exist");
    }
}

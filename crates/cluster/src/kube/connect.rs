//! Builds a client from flags, environment and kubeconfig.
//!
//! kube parses the kubeconfig, but [`super::prepared_client`] assembles the configuration: kube would read the
//! environment itself, and it matches `NO_PROXY` against the wrong host.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};

use super::credentials::Credentials;
use super::errors::{self, words};
use super::kubeconfig::{self, ProcessEnvironment, ReadKubeconfig};
use super::prepared_client::{PreparedClient, address, unreadable};
use super::request::Peer;
use super::transport::Transport;
use super::{Connection, KubeTarget, client, proxy};
use crate::Impersonate;
use gantry_core::problem::{Error, Problem, Result};

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
            return PreparedClient::from_kubeconfig(kubeconfig, &asked, &surroundings);
        }
        match kubeconfig::read(&asked, &surroundings)? {
            Some(kubeconfig) => PreparedClient::from_kubeconfig(&kubeconfig, &asked, &surroundings),
            None => PreparedClient::in_cluster(&asked, &surroundings),
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

    let PreparedClient { mut config, peer, plugin, disable_http2 } = prepared;
    let credentials = Credentials::take(&mut config.auth_info, plugin, peer.user.clone()).await;
    let credentials = credentials.map_err(Error::failed)?;
    let default_namespace = config.default_namespace.clone();
    // kube runs the command of an old auth-provider here and waits for it.
    let client = tokio::task::spawn_blocking(move || client::build(config, timeout, disable_http2));
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

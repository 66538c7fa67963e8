//! One etcd and one kube-apiserver on loopback, with their users.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::api::Api;
use crate::binaries::{Binaries, Controllers, binaries, binaries_of, controllers, controllers_of};
use crate::network::{self, Network};
use crate::releases::OtherRelease;
use crate::supervisor::Supervisor;
use crate::wait::{eventually, within_limit};

/// The maximum number of users from [`ControlPlane::user`]; the API server reads its token file only at startup.
pub const SPARE_USERS: usize = 64;

/// kwok's configuration for nodes and Pods.
/// The feature gate of the controller of `StorageVersionMigration`.
const MIGRATOR: &str = "--feature-gates=StorageVersionMigrator=true";
const STAGES: &str = include_str!("../control-plane/kwok/stages.yaml");

const ETCD: &str = "etcd";
const API_SERVER: &str = "kube-apiserver";

/// The control plane shared by all tests of this process; the first caller starts it.
///
/// # Panics
///
/// See [`ControlPlane::start`]. A failed start is not retried by the next test, so without a toolchain every test
/// fails immediately.
pub fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<Option<ControlPlane>> = OnceLock::new();
    let mut failure = None;
    let shared = SHARED.get_or_init(|| match std::panic::catch_unwind(ControlPlane::start) {
        Ok(started) => Some(started),
        Err(panic) => {
            failure = Some(panic);
            None
        }
    });
    if let Some(panic) = failure {
        std::panic::resume_unwind(panic);
    }
    shared.as_ref().expect("the control plane did not start; see the first failed test")
}

/// A running etcd and kube-apiserver. Both stop when this value is dropped, and when the test process ends for any
/// reason.
///
/// The methods of [`Api`] are available on this type, with the rights of the admin. All methods panic on errors that a
/// test cannot handle.
pub struct ControlPlane {
    supervisor: Mutex<Supervisor>,
    folder: PathBuf,
    port: u16,
    etcd_url: String,
    tokens: BTreeMap<String, String>,
    users_given: AtomicUsize,
    api: Api,
    network: Option<Network>,
}

impl ControlPlane {
    /// Starts a separate control plane, for a test that damages it; other tests share the one from [`shared`].
    ///
    /// # Panics
    ///
    /// If there are no binaries and they cannot be built, or if the servers do not start; the message gives the
    /// reason.
    pub fn start() -> Self {
        Self::start_pair(&binaries(), false, &[])
    }

    /// Starts a control plane of a release of Kubernetes such as `1.30`, of [`releases`](crate::releases). Its API
    /// server is built once from the newest patch version that this crate lists; etcd is the pinned one.
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_release(release: &str) -> Self {
        let binaries = OtherRelease::find(release).map_or_else(binaries, binaries_of);
        Self::start_pair(&binaries, false, &[])
    }

    /// Starts a control plane whose API server behaves like an earlier release of Kubernetes (`1.34`), of the last
    /// three.
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_emulating(release: &str) -> Self {
        Self::start_pair(&binaries(), false, &[format!("--emulated-version={release}")])
    }

    /// Starts a control plane whose API server can reach servers of the test as Services, for its service proxy and
    /// for webhooks: see [`route`](Self::route).
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_with_network() -> Self {
        Self::start_pair(&binaries(), true, &[])
    }

    fn start_pair(binaries: &Binaries, with_network: bool, flags: &[String]) -> Self {
        let mut attempts = 3;
        loop {
            attempts -= 1;
            match Self::try_start(binaries, with_network, flags) {
                Ok(started) => return started,
                // Another process can take a free port before the server binds it.
                Err(log) if attempts > 0 && log.contains("address already in use") => {}
                Err(log) => panic!("the control plane does not start: {log}"),
            }
        }
    }

    /// Starts a control plane with controllers: kube-controller-manager, kube-scheduler, and a node simulated by kwok.
    /// The image of a Pod's first container determines its fate: `missing` is never pulled, `failing` exits with code
    /// 1, `starting` never becomes ready, and any other image runs. The Pods of Jobs succeed.
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_with_controllers() -> Self {
        Self::start().with_controllers(controllers())
    }

    /// Starts a control plane that serves `StorageVersionMigration`, without a controller that carries it out: see
    /// [`start_migrating_controllers`](Self::start_migrating_controllers).
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_with_idle_storage_migrator() -> Self {
        let api = "--runtime-config=storagemigration.k8s.io/v1beta1=true";
        Self::start_pair(&binaries(), false, &[MIGRATOR.into(), api.into()])
    }

    /// Starts a control plane of a [release](Self::start_release) with the [controllers](Self::start_with_controllers)
    /// of that release.
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_release_with_controllers(release: &str) -> Self {
        let controllers = OtherRelease::find(release).map_or_else(controllers, controllers_of);
        Self::start_release(release).with_controllers(controllers)
    }

    /// Starts a control plane [with controllers](Self::start_with_controllers) whose API server can reach servers of
    /// the test, as [with a network](Self::start_with_network): the Pods of a Deployment become ready, and the test
    /// answers in their place.
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_with_controllers_and_network() -> Self {
        Self::start_with_network().with_controllers(controllers())
    }

    /// Starts the controllers of a control plane [without them](Self::start_with_idle_storage_migrator), which carry out
    /// its migrations. Kinds that it serves by then are migrated at once; later ones after some minutes, because the
    /// controllers look for new kinds from time to time.
    ///
    /// # Panics
    ///
    /// See [`ControlPlane::start`].
    pub fn start_migrating_controllers(&self) {
        self.run_controllers(controllers(), &[MIGRATOR]);
    }

    fn with_controllers(self, controllers: Controllers) -> Self {
        self.run_controllers(controllers, &[]);
        self
    }

    /// `flags` are further ones of the controller manager.
    fn run_controllers(&self, Controllers { controller_manager, scheduler, kwok }: Controllers, flags: &[&str]) {
        let mut supervisor = self.supervisor();
        fs::write(self.folder.join("stages.yaml"), STAGES).expect("write the stages");
        let common = ["--kubeconfig=admin.kubeconfig", "--leader-elect=false", "--secure-port=0"];
        let manager = [
            "--use-service-account-credentials=false",
            "--service-account-private-key-file=service-account.key",
            // By default, objects of a new kind are counted after minutes.
            "--resource-quota-sync-period=1s",
            // On a busy machine kwok may renew the node's lease too late, and the Pods would not count as ready.
            "--node-monitor-grace-period=10m",
        ];
        let nodes = ["--kubeconfig=admin.kubeconfig", "--manage-all-nodes=true", "--config=stages.yaml"];
        let arguments = |parts: &[&[&str]]| parts.concat().into_iter().map(str::to_owned).collect::<Vec<String>>();
        supervisor.run("kube-controller-manager", &controller_manager, &arguments(&[&common, &manager, flags]));
        supervisor.run("kube-scheduler", &scheduler, &arguments(&[&common]));
        // The labels that many workloads require of their node.
        let labels =
            json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "node"});
        let node =
            json!({"metadata": {"name": "node", "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}});
        let (status, answer) = self.api.post("/api/v1/nodes", &node);
        assert_eq!(status, 201, "{answer}");
        supervisor.run("kwok", &kwok, &arguments(&[&nodes]));
        for server in ["kube-controller-manager", "kwok"] {
            let ready = || match server {
                "kwok" => {
                    let (_, node) = self.api.get("/api/v1/nodes/node");
                    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
                        && node["spec"]["taints"].is_null()
                }
                _ => self.api.get("/api/v1/namespaces/default/serviceaccounts/default").0 == 200,
            };
            wait_for(&mut supervisor, server, ready)
                .unwrap_or_else(|log| panic!("the controllers do not start: {log}"));
        }
    }

    /// `Err` contains the end of the log of the server that stopped. `flags` are further ones of the API server.
    fn try_start(binaries: &Binaries, with_network: bool, flags: &[String]) -> Result<Self, String> {
        let mut supervisor = Supervisor::start();
        let folder = supervisor.folder().to_owned();
        let [etcd, peer, port] = free_ports();
        let etcd_url = format!("http://127.0.0.1:{etcd}");

        supervisor.run(ETCD, &binaries.etcd, &etcd_arguments(&etcd_url, peer));
        let log = folder.join("etcd.log");
        // Do not check by connecting: another etcd on that port would respond as well.
        let ready = || fs::read_to_string(&log).is_ok_and(|log| log.contains("ready to serve client requests"));
        wait_for(&mut supervisor, ETCD, ready)?;

        let tokens = tokens();
        fs::write(folder.join("tokens.csv"), token_file(&tokens)).expect("write the token file");
        fs::write(folder.join("service-account.key"), signing_key()).expect("write the signing key");
        let network = with_network.then(|| Network::start(&folder));
        let mut arguments = api_server_arguments(&etcd_url, port);
        arguments.extend_from_slice(flags);
        arguments.extend(network.iter().map(|_| format!("--egress-selector-config-file={}", network::CONFIG)));
        supervisor.run(API_SERVER, &binaries.kube_apiserver, &arguments);
        let ca_file = folder.join("certs/apiserver.crt");
        wait_for(&mut supervisor, API_SERVER, || is_pem_file(&ca_file))?;

        let url = format!("https://127.0.0.1:{port}");
        let api = Api::new(&url, Some(&ca_file), Some(&tokens["admin"]));
        wait_for(&mut supervisor, API_SERVER, || api.is_ready())?;

        for user in tokens.keys() {
            let config = kubeconfig(&url, Some(&ca_file), user, &tokens[user]);
            fs::write(folder.join(format!("{user}.kubeconfig")), config).expect("write a kubeconfig");
        }
        let supervisor = Mutex::new(supervisor);
        let users_given = AtomicUsize::new(0);
        let started = Self { supervisor, folder, port, etcd_url, tokens, users_given, api, network };
        started.allow(
            "reader",
            &json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
                {"nonResourceURLs": ["*"], "verbs": ["get"]},
            ]),
        );
        Ok(started)
    }

    /// The URL of the API server, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The path of the API server's self-signed certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.join("certs/apiserver.crt")
    }

    /// The folder with the data, logs and kubeconfigs of the servers. It is removed when they stop.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the user's kubeconfig, whose context is named `test`.
    ///
    /// The users are `admin` (all rights), `reader` (get, list and watch on everything), `nobody` (no rights), and
    /// those returned by [`user`](Self::user).
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.token(user);
        self.folder.join(format!("{user}.kubeconfig"))
    }

    /// The bearer token of a user.
    pub fn token(&self, user: &str) -> &str {
        self.tokens.get(user).unwrap_or_else(|| panic!("there is no user {user:?}"))
    }

    /// All users and their bearer tokens.
    pub fn users(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tokens.iter().map(|(user, token)| (user.as_str(), token.as_str()))
    }

    /// Creates a user for the test with exactly these RBAC rules in every namespace. The list of rules can be empty.
    /// Returns when the rights are in effect.
    pub fn user(&self, rules: &Value) -> String {
        let given = self.users_given.fetch_add(1, Ordering::Relaxed);
        assert!(
            given < SPARE_USERS,
            "all {SPARE_USERS} spare users of this control plane are in use: share users among tests, or start another \
             control plane"
        );
        let user = format!("user-{given}");
        self.allow(&user, rules);
        user
    }

    /// A client for the admin; the methods of [`Api`] are also available on this type.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// A client for a user.
    pub fn api_as(&self, user: &str) -> Api {
        Api::new(&self.url(), Some(&self.ca_file()), Some(self.token(user)))
    }

    /// Kills the API server, as a crash would. Do not use this on a shared control plane.
    pub fn kill_api_server(&self) {
        self.supervisor().stop(API_SERVER);
    }

    /// Restarts the killed API server on the same port with the same data, and waits until it is ready.
    pub fn restart_api_server(&self) {
        let mut supervisor = self.supervisor();
        supervisor.restart(API_SERVER);
        wait_for(&mut supervisor, API_SERVER, || self.api.is_ready())
            .unwrap_or_else(|log| panic!("the API server does not restart: {log}"));
    }

    /// Compacts etcd to the current revision, as happens every five minutes in a cluster. The API server still caches
    /// some older revisions until it is restarted. Do not use this on a shared control plane.
    pub fn compact(&self) {
        let etcd = Api::new(&self.etcd_url, None, None);
        let (status, range) = etcd.post("/v3/kv/range", &json!({"key": BASE64.encode("/")}));
        assert_eq!(status, 200, "{range}");
        let compaction = json!({"revision": range["header"]["revision"], "physical": true});
        let (status, answer) = etcd.post("/v3/kv/compaction", &compaction);
        assert_eq!(status, 200, "{answer}");
    }

    /// Writes an object directly to etcd, for objects that the API server would reject.
    pub fn store(&self, key: &str, object: &Value) {
        self.store_all([(key.to_owned(), object.clone())]);
    }

    /// Writes up to 128 objects directly to etcd, in one transaction: far faster than requests to the API server.
    pub fn store_all(&self, objects: impl IntoIterator<Item = (String, Value)>) {
        let etcd = Api::new(&self.etcd_url, None, None);
        let put = |(key, object): (String, Value)| json!({"requestPut": {"key": BASE64.encode(key), "value": BASE64.encode(object.to_string())}});
        let puts: Vec<Value> = objects.into_iter().map(put).collect();
        let (status, answer) = etcd.post("/v3/kv/txn", &json!({"success": puts}));
        assert_eq!(status, 200, "{answer}");
    }

    /// A custom resource as etcd stores it: at the version at which it was written.
    pub fn stored(&self, key: &str) -> Value {
        let etcd = Api::new(&self.etcd_url, None, None);
        let (status, range) = etcd.post("/v3/kv/range", &json!({"key": BASE64.encode(key)}));
        assert_eq!(status, 200, "{range}");
        let value = range["kvs"][0]["value"].as_str().unwrap_or_else(|| panic!("nothing is stored at {key}"));
        serde_json::from_slice(&BASE64.decode(value).expect("base64")).expect("JSON")
    }

    /// Routes connections from the API server to `address` (such as `192.0.2.10:8443`) of a Service or Pod to the
    /// server that listens on `port` on loopback. All other addresses are unreachable.
    ///
    /// For the service proxy, the address must be in the Endpoints of the Service, with a Pod as its `targetRef` that
    /// has the address in its status. It must not be a loopback address: use one reserved for documentation.
    ///
    /// # Panics
    ///
    /// If this control plane was not [started with a network](Self::start_with_network), alone or together with
    /// controllers.
    pub fn route(&self, address: &str, port: u16) {
        self.network.as_ref().expect("a control plane that was started with a network").route(address, port);
    }

    /// The process IDs of etcd and the API server.
    pub fn pids(&self) -> Vec<u32> {
        let supervisor = self.supervisor();
        [ETCD, API_SERVER].iter().filter_map(|name| supervisor.pid(name)).collect()
    }

    fn supervisor(&self) -> MutexGuard<'_, Supervisor> {
        self.supervisor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds `rules` to `user`, and waits until the authorizer, which watches them, has seen the change.
    fn allow(&self, user: &str, rules: &Value) {
        const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
        let name = format!("test-{user}");
        let role = json!({"metadata": {"name": name}, "rules": rules});
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user}],
        });
        for (path, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let (status, answer) = self.api.post(&format!("{RBAC}/{path}"), &object);
            assert_eq!(status, 201, "cannot create the {path} {name}: {answer}");
        }
        let Some(attributes) = rules.get(0).map(review_attributes) else { return };
        let mut review = json!({"spec": {"user": user}});
        review["spec"].as_object_mut().expect("an object").extend(attributes);
        eventually(&format!("the rights of {user} come into force"), || {
            let (_, answer) = self.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review);
            (answer["status"]["allowed"] == true).then_some(())
        });
    }
}

impl std::ops::Deref for ControlPlane {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

/// A kubeconfig (JSON, which is YAML) with a single context named `test`.
pub fn kubeconfig(url: &str, ca_file: Option<&Path>, user: &str, token: &str) -> String {
    let mut cluster = json!({"server": url});
    if let Some(ca_file) = ca_file {
        cluster["certificate-authority"] = json!(ca_file);
    }
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
    });
    format!("{config:#}\n")
}

/// Three different ports that are currently unused.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback"));
    listeners.each_ref().map(|listener| listener.local_addr().expect("the port of a listener").port())
}

fn etcd_arguments(url: &str, peer: u16) -> Vec<String> {
    let peer_url = format!("http://127.0.0.1:{peer}");
    vec![
        "--name=test".into(),
        "--data-dir=etcd".into(),
        "--unsafe-no-fsync".into(),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=test={peer_url}"),
    ]
}

fn api_server_arguments(etcd_url: &str, port: u16) -> Vec<String> {
    let fixed = [
        "--bind-address=127.0.0.1",
        // Without these two flags, the server looks for a network interface other than loopback to advertise itself
        // on.
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--cert-dir=certs",
        "--authorization-mode=RBAC",
        "--token-auth-file=tokens.csv",
        // Nothing creates the service accounts that it would require: there is no controller manager.
        "--disable-admission-plugins=ServiceAccount",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-account.key",
        "--service-account-signing-key-file=service-account.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    ];
    let chosen = [format!("--etcd-servers={etcd_url}"), format!("--secure-port={port}")];
    fixed.map(str::to_owned).into_iter().chain(chosen).collect()
}

/// Waits for a server that was just started. `Err` contains the end of its log if it stopped or is not ready in time.
fn wait_for(supervisor: &mut Supervisor, name: &str, ready: impl Fn() -> bool) -> Result<(), String> {
    // It takes two or three seconds, unless the machine is very busy.
    let outcome = within_limit(|| match ready() {
        true => Some(Ok(())),
        false => (!supervisor.is_alive(name)).then_some(Err("ended at once")),
    });
    outcome
        .unwrap_or(Err("was not ready after four minutes"))
        .map_err(|what| format!("{name} {what}; its last lines:\n{}", supervisor.log_tail(name)))
}

fn is_pem_file(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.trim_end().ends_with("-----END CERTIFICATE-----"))
}

fn tokens() -> BTreeMap<String, String> {
    let spare = (0..SPARE_USERS).map(|n| format!("user-{n}"));
    ["admin", "reader", "nobody"]
        .map(str::to_owned)
        .into_iter()
        .chain(spare)
        .map(|user| {
            let token = format!("token-{:016x}{:016x}", random(), random());
            (user, token)
        })
        .collect()
}

fn token_file(tokens: &BTreeMap<String, String>) -> String {
    let line = |(user, token): (&String, &String)| {
        let groups = if user == "admin" { ",\"system:masters\"" } else { "" };
        format!("{token},{user},{user}{groups}\n")
    };
    tokens.iter().map(line).collect()
}

/// A P-256 private key in PEM, which the API server requires for signing service account tokens (no test uses one).
///
/// SEC 1 wraps the 32 bytes of the key in a fixed frame, and any number between 0 and the curve's order is a valid
/// key.
fn signing_key() -> String {
    let mut der = vec![0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20];
    der.extend((0..4).flat_map(|_| random().to_be_bytes()));
    der[7] &= 0x7f; // below the order
    der.extend([0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]);
    format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n", BASE64.encode(der))
}

fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// The attributes of a review that shows whether a rule is in effect: its first verb on its first resource or path.
fn review_attributes(rule: &Value) -> serde_json::Map<String, Value> {
    let first = |key: &str| rule[key][0].as_str().unwrap_or_default();
    let mut attributes = serde_json::Map::new();
    if rule["nonResourceURLs"].is_array() {
        let asked = json!({"path": first("nonResourceURLs"), "verb": first("verbs")});
        attributes.insert("nonResourceAttributes".into(), asked);
    } else {
        let (resource, subresource) = first("resources").split_once('/').unwrap_or((first("resources"), ""));
        let name = first("resourceNames");
        let asked = json!({
            "group": first("apiGroups"), "resource": resource, "subresource": subresource, "name": name,
            "verb": first("verbs"),
        });
        attributes.insert("resourceAttributes".into(), asked);
    }
    attributes
}

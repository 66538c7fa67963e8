//! The place that gantry deploys to and reads live state from, as named by `--target`: an API server (`kube`), a folder
//! that represents a cluster (`dir`), or a commit whose files do (`git`). The module is not called `target` because
//! many tools expect build output in a folder of that name and skip it.
//!
//! The rest of the program sees only [`Target`]. A target returns an explicit "not available" for an operation it does
//! not support, so a check that needs a live server is skipped instead of passing.

pub mod again;
pub mod dir;
mod field_value;
pub mod git;
mod helm_release;
mod immutable;
pub mod kube;
mod list;
mod made_by_helm;
mod managers;
mod openapi;
mod pages;
pub mod patience;
mod recorded;
mod refusal;
pub mod selector;
pub mod service;
pub mod storage;
pub mod watch;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

pub use field_value::is_same_at;
use gantry_core::crd::versions;
use gantry_core::manifest::LoadedManifests;
use gantry_core::options::TargetSpec;
use gantry_core::problem::{Problem, Result};
use gantry_core::rbac::{Atom, PolicyRule};
use gantry_core::render::Renderers;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_k8s_cel::KubernetesRelease;
pub use helm_release::{HelmRelease, OLM_NAMESPACES};
pub use immutable::{immutable_help, immutable_help_for_olm};
pub use kube::{HelmPatch, HelmUpgrade};
pub use managers::{FieldConflict, FormerTools, ManagerOperation, deploy_tool};
pub use openapi::{Described, OpenApi};
pub use recorded::RecordedTarget;
pub use refusal::{DryRunError, Refusal, RefusalCause, Refuser, RewriteError, is_immutable, is_undeclared};
pub use write::{Apply, ApplyError, Delete, DeleteError, Lacking, Relabel, Unmark, WritePrecondition};

pub use list::{ListError, ListPage, ListRequest};
pub use pages::Pages;

/// The maximum number of concurrent writes. Enough to hide the round-trip time; few enough that an interrupt takes
/// effect quickly.
pub const IN_FLIGHT: usize = 8;

/// The maximum number of concurrent dry runs and reviews. Nothing has to wait for their end, and to a distant server
/// each batch takes a round trip.
pub const DRY_RUNS_IN_FLIGHT: usize = 32;

/// A kind at one version, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// Such as `Deployment`.
    pub kind: String,
}

/// An object to read: its resource and its reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectToRead {
    /// Where it is served.
    pub resource: Arc<Resource>,
    /// Its kind, namespace and name.
    pub object: Arc<ObjectRef>,
}

impl ObjectToRead {
    /// The CustomResourceDefinition of this name.
    pub fn crd(name: &str) -> Self {
        ObjectToRead { resource: Resource::crd().into(), object: ObjectRef::crd(name).into() }
    }
}

/// Where the target serves kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// A kind that is not served is absent from the map.
    pub served: BTreeMap<Gvk, Resource>,
    /// Kinds of API groups that did not respond, for example because an aggregated API server is down: it is unknown
    /// whether they are served.
    pub unanswered: BTreeMap<Gvk, Problem>,
    /// Kinds that are served without the verb `patch`, with the verbs that they do support. These are request-only APIs
    /// such as reviews.
    pub unwritable: BTreeMap<Gvk, Vec<String>>,
}

/// Whether the target serves a CRD yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Established {
    /// It is served.
    Yes,
    /// Not yet, with the reason and message of the condition that prevents it, if there is one.
    NotYet(String),
    /// It never will be, for example because another CRD has taken its names.
    Never(String),
}

/// How to reach a cluster, from flags, environment variables and kubeconfig.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The path of `--kubeconfig`; if `None`, the client's default applies.
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig, if it has been read already.
    pub read: Option<kube::ReadKubeconfig>,
    /// The context of the kubeconfig; if `None`, its current one.
    pub context: Option<String>,
    /// What replaces parts of the context.
    pub overrides: ConnectionOverrides,
    /// The identity to impersonate; if `None`, the kubeconfig decides.
    pub impersonate: Option<Impersonate>,
    /// The limit for one request, from sending it to the end of its response.
    pub timeout: Option<Duration>,
    /// The limit for a credential plugin that does not prompt the user.
    pub credentials_timeout: Option<Duration>,
}

/// Parts of a context of the kubeconfig, each of which replaces the context's own: see the flags of kubectl with the
/// same names (<https://kubernetes.io/docs/reference/kubectl/kubectl/>).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionOverrides {
    /// The name of a cluster in the kubeconfig.
    pub cluster: Option<String>,
    /// The name of a user in the kubeconfig.
    pub user: Option<String>,
    /// The URL of the API server.
    pub server: Option<String>,
    /// Replaces every other credential. kubectl sends it beside a client certificate, which the API server prefers.
    pub token: Option<BearerToken>,
}

/// A credential.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl BearerToken {
    /// The token with this text.
    pub fn new(text: String) -> Self {
        BearerToken(text)
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

/// Where the manifests come from. A commit is read in the same way.
#[derive(Debug, Clone, Copy, Default)]
pub struct DesiredSource<'a> {
    /// The arguments of `-f`; these paths are read from the commit unless the target names other paths.
    pub files: &'a [String],
    /// The programs that render the manifests.
    pub render: Option<&'a Renderers>,
    /// The manifests. Objects that the commit does not have at these paths are looked up in the rest of it.
    pub loaded: Option<&'a LoadedManifests>,
    /// The namespace of objects whose manifest names none, on both sides; `None` for `default`.
    pub namespace: Option<&'a str>,
}

/// The identity to impersonate (<https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonate {
    /// A user name; a service account is `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// If empty, the server assigns the groups that every user has, or those of the service account.
    pub groups: Vec<String>,
}

/// What the user is allowed to do, as reported by the API server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesReview {
    /// What the user may do in the namespace, in no particular order.
    pub rules: Vec<PolicyRule>,
    /// The list can be incomplete, because an authorizer that decides per request (a webhook) is configured.
    pub incomplete: bool,
}

/// The result of reading one object: `None` if it does not exist, a problem if it cannot be read.
pub type ReadResult = std::result::Result<Option<LiveObject>, Problem>;

/// Called with the number of objects read so far, and with the total if it is known.
pub type OnRead<'a> = &'a (dyn Fn(usize, Option<usize>) + Sync);

/// The objects, if every one of them could be read.
///
/// # Errors
/// The reasons why some could not be read, without duplicates.
pub fn collect_reads(read: Vec<ReadResult>) -> Result<Vec<Option<LiveObject>>> {
    let mut problems: Vec<Problem> = read.iter().filter_map(|read| read.as_ref().err().cloned()).collect();
    if problems.is_empty() {
        return Ok(read.into_iter().map(|read| read.unwrap_or_default()).collect());
    }
    problems.sort();
    problems.dedup();
    Err(gantry_core::problem::Error::Failed(problems))
}

/// Converts an object of a [`ListPage`] of this resource to the form that reading it alone would return.
pub fn listed(json: &str, resource: &Resource) -> Option<LiveObject> {
    kube::listed(json, resource)
}

fn describe_as(target: String, release: Option<KubernetesRelease>) -> String {
    match release {
        Some(release) => format!("{target} as Kubernetes {release}"),
        None => target,
    }
}

/// A place that holds live objects.
pub enum Target {
    /// An API server.
    Kube(kube::KubeTarget),
    /// A folder that represents a cluster.
    Dir(dir::DirTarget),
    /// A commit, a chart or a Helm release; never written to.
    Recorded(RecordedTarget),
}

impl Target {
    /// Opens the target. Reads the kubeconfig, the folder or the commit; only a Helm release is read from a server.
    pub async fn open(spec: &TargetSpec, connection: &Connection, desired: DesiredSource<'_>) -> Result<Target> {
        Ok(match spec {
            TargetSpec::Kube => Target::Kube(kube::KubeTarget::open(connection).await?),
            TargetSpec::Dir(path) => Target::Dir(dir::DirTarget::open(path)?),
            TargetSpec::Git(spec) => Target::Recorded(git::open(spec, desired).await?),
            TargetSpec::Chart(chart) => Target::Recorded(made_by_helm::open_chart(chart, desired).await?),
            TargetSpec::HelmRelease(spec) => {
                Target::Recorded(made_by_helm::open_release(spec, connection, desired).await?)
            }
            TargetSpec::Commits(_) => {
                let problem = Problem::new("the target is several commits, but this command reads only one");
                return Err(gantry_core::problem::Error::usage(
                    problem.help("name one; gantry check and gantry diff accept several"),
                ));
            }
        })
    }

    /// The target as one of this release of Kubernetes. A server has its own.
    pub fn with_release(mut self, release: Option<KubernetesRelease>) -> Self {
        match (&mut self, release) {
            (Target::Dir(folder), Some(release)) => folder.set_release(release),
            (Target::Recorded(recorded), Some(release)) => recorded.state.release = Some(release),
            (Target::Kube(_), _) | (_, None) => {}
        }
        self
    }

    /// A description for messages: `kube: staging (https://10.0.0.1:6443)`, `dir: cluster/`.
    pub fn describe(&self) -> String {
        match self {
            Target::Kube(target) => target.describe(),
            Target::Dir(target) => describe_as(target.describe(), target.release()),
            Target::Recorded(target) => describe_as(target.description.clone(), target.state.release),
        }
    }

    /// The API server, if this is one: only a server has users, runs controllers, calls webhooks and answers dry runs.
    pub fn as_server(&self) -> Option<&kube::KubeTarget> {
        match self {
            Target::Kube(server) => Some(server),
            Target::Dir(_) | Target::Recorded(_) => None,
        }
    }

    /// All files of the commit, if this is one.
    pub fn as_commit(&self) -> Option<&git::commit_files::CommitFiles> {
        match self {
            Target::Recorded(recorded) => recorded.commit.as_ref(),
            Target::Kube(_) | Target::Dir(_) => None,
        }
    }

    /// Whether this is a server.
    pub fn is_server(&self) -> bool {
        self.as_server().is_some()
    }

    /// The address of the API server.
    pub fn address(&self) -> Option<&str> {
        Some(self.as_server()?.server())
    }

    /// Notices about how the target was opened.
    pub fn notices(&self) -> &[Problem] {
        match self {
            Target::Recorded(target) => &target.notices,
            Target::Dir(target) => target.notices(),
            Target::Kube(_) => &[],
        }
    }

    /// `cluster`, `folder`, `commit`, `chart` or `release`, for messages.
    pub fn noun(&self) -> &'static str {
        match self {
            Target::Kube(_) => "cluster",
            Target::Dir(_) => "folder",
            Target::Recorded(target) => target.state.holder().noun(),
        }
    }

    /// The namespace of namespaced objects whose manifest does not set one: that of the kubeconfig's context or of the
    /// Helm release, else `default`.
    pub fn default_namespace(&self) -> &str {
        match self {
            Target::Kube(server) => server.default_namespace(),
            Target::Recorded(target) => target.namespace.as_deref().unwrap_or("default"),
            Target::Dir(_) => "default",
        }
    }

    /// The name of a target that is read-only, for messages; `None` for others.
    pub fn read_only_name(&self) -> Option<&str> {
        match self {
            Target::Recorded(target) => Some(&target.name),
            Target::Kube(_) | Target::Dir(_) => None,
        }
    }

    /// Finds out where each kind is served.
    pub async fn discover(&self, kinds: &BTreeSet<Gvk>) -> Result<Discovered> {
        match self {
            Target::Kube(target) => target.discover(kinds).await,
            Target::Dir(target) => Ok(Discovered { served: target.discover(kinds), ..Discovered::default() }),
            Target::Recorded(target) => {
                Ok(Discovered { served: target.state.discover(kinds), ..Discovered::default() })
            }
        }
    }

    /// Every kind that the target serves, at each version, sorted.
    pub async fn served(&self) -> Result<Vec<Resource>> {
        match self {
            Target::Kube(target) => target.served().await,
            Target::Dir(target) => Ok(target.served()),
            Target::Recorded(target) => Ok(target.state.resources()),
        }
    }

    /// Each kind whose objects can be listed, at the highest of its versions.
    ///
    /// # Errors
    /// The server does not respond.
    pub async fn listable_kinds(&self) -> Result<Vec<Resource>> {
        let mut kinds: BTreeMap<(String, String), Resource> = BTreeMap::new();
        let listable = match self {
            Target::Kube(target) => target.listable_at_each_version().await?,
            Target::Dir(target) => target.served(),
            Target::Recorded(target) => target.state.resources(),
        };
        for resource in listable.into_iter().filter(|resource| !resource.plural.contains('/')) {
            let key = (resource.group.clone(), resource.kind.clone());
            if kinds.get(&key).is_none_or(|known| versions::compare(&known.version, &resource.version).is_lt()) {
                kinds.insert(key, resource);
            }
        }
        Ok(kinds.into_values().collect())
    }

    /// The Kubernetes release of the target: of the server, or the one of the server that a snapshot was taken from.
    /// `None` if it is unknown. The server is asked once.
    pub async fn release(&self) -> Option<KubernetesRelease> {
        match self {
            Target::Kube(server) => server.release().await,
            Target::Dir(folder) => folder.release(),
            Target::Recorded(target) => target.state.release,
        }
    }

    /// Reads the live objects. Returns one result for each wanted object, in order; `None` if it does not exist.
    ///
    /// A few CRDs are read by name and many with one paged list; other objects with `GET`, several at a time.
    ///
    /// # Errors
    /// Some object cannot be read; all reasons, without duplicates.
    pub async fn read(&self, wanted: &[ObjectToRead], on_read: OnRead<'_>) -> Result<Vec<Option<LiveObject>>> {
        collect_reads(self.read_each(wanted, on_read).await?)
    }

    /// Like [`Target::read`], but reports for each object whether it could be read; most often a permission is missing.
    ///
    /// # Errors
    /// A problem that affects all objects: no connection, no valid credentials.
    pub async fn read_each(&self, wanted: &[ObjectToRead], on_read: OnRead<'_>) -> Result<Vec<ReadResult>> {
        match self {
            Target::Kube(target) => target.read(wanted, on_read).await,
            Target::Dir(target) => Ok(target.read(wanted).into_iter().map(Ok).collect()),
            Target::Recorded(target) => Ok(target.state.read(wanted).into_iter().map(Ok).collect()),
        }
    }

    /// The rules that apply to the user in a namespace (`None`: in all namespaces and for cluster-scoped resources).
    /// Returns `None` if the target has no users.
    pub async fn rules_review(&self, namespace: Option<&str>) -> Option<std::result::Result<RulesReview, Problem>> {
        Some(self.as_server()?.rules_review(namespace).await)
    }

    /// Whether the user is allowed to do this in a namespace (`None`: in all namespaces, or on a cluster-scoped
    /// resource). A target without users allows everything.
    pub async fn access_review(&self, namespace: Option<&str>, atom: &Atom) -> std::result::Result<bool, Problem> {
        match self.as_server() {
            Some(server) => server.access_review(namespace, atom).await,
            None => Ok(true),
        }
    }

    /// Whether a ServiceAccount, by namespace and name, is allowed to do this. A target without users allows everything.
    pub async fn account_access_review(
        &self,
        account: (&str, &str),
        namespace: Option<&str>,
        atom: &Atom,
    ) -> std::result::Result<bool, Problem> {
        match self.as_server() {
            Some(server) => server.account_access_review(account, namespace, atom).await,
            None => Ok(true),
        }
    }

    /// The user name that the target knows the user by; `None` if the target has no users.
    pub async fn user(&self) -> Option<std::result::Result<String, Problem>> {
        Some(self.as_server()?.user().await)
    }

    /// The user that the run was told to act as.
    pub fn impersonated(&self) -> Option<&str> {
        self.as_server()?.impersonated()
    }

    /// The objects of one resource, in pages. Sends no request until the first page is requested.
    pub fn list(&self, request: &ListRequest<'_>) -> Pages {
        Pages(match self {
            Target::Kube(target) => pages::PageSource::Kube(target.list(request)),
            Target::Dir(target) => pages::PageSource::Dir(target.list(request)),
            Target::Recorded(target) => pages::PageSource::Dir(target.state.list(request)),
        })
    }

    /// Reports objects and every change to them until the result is dropped. Returns `None` if the target does not
    /// support this; the caller must poll instead.
    pub fn follow(
        &self,
        request: watch::FollowRequest,
        on_event: impl Fn(watch::WatchEvent) + Send + Sync + 'static,
    ) -> Option<watch::Follow> {
        Some(self.as_server()?.follow(request, on_event))
    }

    /// Writes one object by server-side apply if the live object still matches `pin`. Returns the new live object.
    pub async fn apply(&self, apply: &Apply<'_>) -> std::result::Result<LiveObject, ApplyError> {
        match self {
            Target::Kube(target) => target.apply(apply).await,
            Target::Dir(target) => target.apply(apply),
            Target::Recorded(target) => Err(ApplyError::Refused(target.read_only())),
        }
    }

    /// Starts the deletion of an object if it has not changed since it was read. An object that no longer exists is not
    /// an error.
    pub async fn delete(&self, delete: &Delete<'_>) -> std::result::Result<(), DeleteError> {
        match self {
            Target::Kube(target) => target.delete(delete).await,
            Target::Dir(_) => Err(DeleteError::Refused(Problem::new("a folder has no apps"))),
            Target::Recorded(target) => Err(DeleteError::Refused(target.read_only())),
        }
    }

    /// Removes labels and annotations from an object if it has not changed since it was read. Returns the new live
    /// object.
    pub async fn unmark(&self, unmark: &Unmark<'_>) -> std::result::Result<LiveObject, ApplyError> {
        match self {
            Target::Kube(target) => target.unmark(unmark).await,
            Target::Dir(target) => target.unmark(unmark),
            Target::Recorded(target) => Err(ApplyError::Refused(target.read_only())),
        }
    }

    /// Changes the value of a label, if the object has not changed since it was read. The field manager records it as
    /// applied.
    pub async fn relabel(&self, relabel: &Relabel<'_>) -> std::result::Result<(), ApplyError> {
        match self {
            Target::Kube(target) => target.relabel(relabel).await,
            Target::Dir(_) => Err(ApplyError::Refused(Problem::new("a folder has no apps"))),
            Target::Recorded(target) => Err(ApplyError::Refused(target.read_only())),
        }
    }

    /// What an object becomes when it is read and written back unchanged at the resource's version: the server converts
    /// it to the storage version and back. This is a dry run; nothing is stored.
    pub async fn rewritten(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        field_manager: &str,
    ) -> std::result::Result<RawObject, RewriteError> {
        self.as_server().ok_or(RewriteError::NotHere)?.rewritten(resource, object, field_manager).await
    }

    /// The OpenAPI v3 document of a group version, which describes its kinds and how they are merged. `None` if the
    /// target has none or does not return it.
    pub async fn openapi(&self, group: &str, version: &str) -> Option<Arc<OpenApi>> {
        self.as_server()?.openapi(group, version).await
    }

    /// Streams content from a Service of the cluster.
    ///
    /// # Errors
    /// The content does not exist, or the user is not allowed to read it. If the transfer breaks off, the last part is
    /// an error.
    pub async fn download(
        &self,
        url: &service::ServiceUrl,
        to: mpsc::Sender<kube::download::DownloadChunk>,
    ) -> std::result::Result<(), Problem> {
        match self.as_server() {
            Some(server) => server.download(url, to).await,
            None => Err(Problem::new(format!("a {} runs no Services", self.noun()))),
        }
    }

    /// The last lines of a container's log, at most 1 MiB.
    ///
    /// # Errors
    /// The log cannot be read, or not in time.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        lines: usize,
    ) -> std::result::Result<Vec<u8>, Problem> {
        match self.as_server() {
            Some(server) => server.log(namespace, pod, container, lines).await,
            None => Err(Problem::new(format!("a {} runs no Pods", self.noun()))),
        }
    }

    /// Whether a CRD that was applied is served yet, likely at the `expected` versions.
    pub async fn established(&self, crd: &ObjectRef, expected: &[&str]) -> Result<Established> {
        match self.as_server() {
            Some(server) => server.established(crd, expected).await,
            None => Ok(Established::Yes),
        }
    }

    /// Removes temporary files of a run that was killed. Only a deploy that is about to write calls this.
    pub fn remove_leftovers(&self) {
        // Each request to a server takes effect completely or not at all.
        if let Target::Dir(target) = self {
            target.remove_leftovers();
        }
    }

    /// The warnings that the server sent since the last call, without duplicates, in the order received.
    pub fn take_warnings(&self) -> Vec<String> {
        self.as_server().map(|server| server.take_warnings()).unwrap_or_default()
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ClusterReadme;

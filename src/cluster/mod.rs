//! Where a deploy goes and where live state comes from, which `--target` names: an API server (`kube`), a folder that
//! stands in for one (`dir`), or a commit whose files do (`git`). The module is not
//! called `target`: many tools take such a folder for build output and skip it.
//!
//! The rest of the program sees only [`Target`]. What a target cannot do it answers with a clear "not here", so that
//! a check that needs a live server is skipped and never passed.

pub mod again;
pub mod dir;
pub mod git;
pub mod kube;
pub mod list;
mod managers;
mod pages;
mod refusal;
pub mod selector;
pub mod service;
pub mod watch;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::crd::versions;
use crate::manifest::Loaded;
use crate::options::TargetSpec;
use crate::problem::{Problem, Result};
use crate::rbac::{Atom, PolicyRule};
use crate::render::Render;
use crate::resource::{Live, ObjectRef, RawObject, Resource};
pub use managers::{FieldConflict, Operation, client_side_tool};
pub use refusal::{Cause, DryRunError, Refusal, Refuser, RewriteError, immutable_help, is_immutable, is_undeclared};
pub use write::{Apply, ApplyError, Delete, DeleteError, Pin, Relabel, Unmark};

pub use list::{ListError, ListRequest, MissingRight, Page};
pub use pages::Pages;

/// Objects written, or asked about in a dry run, at the same time. Enough to hide a round trip; few enough that a stop is
/// felt at once.
pub(crate) const IN_FLIGHT: usize = 8;

/// A kind at one version, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// An object to read: where it is served and which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub resource: Arc<Resource>,
    pub object: Arc<ObjectRef>,
}

impl Wanted {
    /// The CustomResourceDefinition of this name.
    pub fn crd(name: &str) -> Self {
        Wanted { resource: Resource::crd().into(), object: ObjectRef::crd(name).into() }
    }
}

/// Where kinds are served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// A kind that is not served is missing.
    pub served: BTreeMap<Gvk, Resource>,
    /// Kinds of API groups that gave no answer, as when an aggregated API is down: nobody knows whether they are there.
    pub unanswered: BTreeMap<Gvk, Problem>,
    /// Kinds that are served without the verb `patch`, with the verbs that there are: reviews and the like, which are asked
    /// and not kept.
    pub unwritable: BTreeMap<Gvk, Vec<String>>,
}

/// A release of Kubernetes: `1.36`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    pub major: u32,
    pub minor: u32,
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Whether the target serves a CRD yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Established {
    Yes,
    /// Not yet; the reason and message of the condition that stands in the way, where there is one.
    NotYet(String),
    /// It never will be: for example its names are taken by another CRD.
    Never(String),
}

/// How to reach a cluster: what flags, environment and kubeconfig say.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    pub kubeconfig: Option<PathBuf>,
    /// What the kubeconfig says, where it was read already.
    pub read: Option<kube::ReadKubeconfig>,
    pub context: Option<String>,
    /// Whom to impersonate; what the kubeconfig says of it where this is `None`.
    pub impersonate: Option<Impersonate>,
    /// A limit for one request, from sending it to the end of its answer.
    pub timeout: Option<Duration>,
    /// A limit for a credential plugin that asks nobody.
    pub credentials_timeout: Option<Duration>,
}

/// Where the manifests come from. A commit is read as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Desired<'a> {
    /// The arguments of `-f`: their paths are read of a commit for which no other is named.
    pub files: &'a [String],
    /// The program that makes the manifests.
    pub render: Option<&'a Render>,
    /// The manifests: what a commit does not have of them at their paths is looked for in the rest of it.
    pub loaded: Option<&'a Loaded>,
}

/// The identity that requests are made as, by somebody who may (<https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonate {
    /// A user name; a service account is `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// Without any, the server gives a user the groups that everybody has, and a service account its own.
    pub groups: Vec<String>,
}

/// What the API server says that the user may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesReview {
    pub rules: Vec<PolicyRule>,
    /// There may be more: an authorizer that decides case by case (a webhook) takes part.
    pub incomplete: bool,
}

/// One object that was to be read: `None` where there is none, a problem where this one cannot be read.
pub type Read = std::result::Result<Option<Live>, Problem>;

/// Told how many objects have been read so far, and of how many where that is known.
pub type OnRead<'a> = &'a (dyn Fn(usize, Option<usize>) + Sync);

/// The objects, if each of them could be read.
///
/// # Errors
/// Why some could not, each reason once.
pub fn all(read: Vec<Read>) -> Result<Vec<Option<Live>>> {
    let mut problems: Vec<Problem> = read.iter().filter_map(|read| read.as_ref().err().cloned()).collect();
    if problems.is_empty() {
        return Ok(read.into_iter().map(|read| read.unwrap_or_default()).collect());
    }
    problems.sort();
    problems.dedup();
    Err(crate::problem::Error::Failed(problems))
}

/// An object of a [`Page`] of that resource, as a read of it alone would answer it.
pub fn listed(json: &str, resource: &Resource) -> Option<Live> {
    kube::listed(json, resource)
}

/// A place that holds live objects.
pub enum Target {
    Kube(kube::KubeTarget),
    Dir(dir::DirTarget),
    Git(git::GitTarget),
}

impl Target {
    /// Makes the target ready. Reads the kubeconfig, the folder or the commit; sends no request.
    pub async fn open(spec: &TargetSpec, connection: &Connection, desired: Desired<'_>) -> Result<Target> {
        Ok(match spec {
            TargetSpec::Kube => Target::Kube(kube::KubeTarget::open(connection).await?),
            TargetSpec::Dir(path) => Target::Dir(dir::DirTarget::open(path)?),
            TargetSpec::Git(spec) => Target::Git(git::GitTarget::open(spec, desired).await?),
        })
    }

    /// For people: `kube: staging (https://10.0.0.1:6443)`, `dir: cluster/`.
    pub fn describe(&self) -> String {
        match self {
            Target::Kube(target) => target.describe(),
            Target::Dir(target) => target.describe(),
            Target::Git(target) => target.describe(),
        }
    }

    /// The address of the API server.
    pub fn server(&self) -> Option<&str> {
        match self {
            Target::Kube(target) => Some(target.server()),
            Target::Dir(_) | Target::Git(_) => None,
        }
    }

    /// Whether it is a server, which has users, runs controllers and calls webhooks.
    pub fn is_server(&self) -> bool {
        matches!(self, Target::Kube(_))
    }

    /// What the user should know of how the target was opened.
    pub fn notices(&self) -> &[Problem] {
        match self {
            Target::Git(target) => target.notices(),
            Target::Dir(target) => target.notices(),
            Target::Kube(_) => &[],
        }
    }

    /// `folder`, `commit`: what stands in for a cluster, as messages name it.
    pub fn noun(&self) -> &'static str {
        match self {
            Target::Kube(_) => "cluster",
            Target::Dir(_) => "folder",
            Target::Git(_) => "commit",
        }
    }

    /// The namespace for namespaced objects whose manifest names none: the kubeconfig context's, else `default`.
    pub fn default_namespace(&self) -> &str {
        match self {
            Target::Kube(target) => target.default_namespace(),
            Target::Dir(_) | Target::Git(_) => "default",
        }
    }

    /// Where each kind is served.
    pub async fn discover(&self, kinds: &BTreeSet<Gvk>) -> Result<Discovered> {
        match self {
            Target::Kube(target) => target.discover(kinds).await,
            Target::Dir(target) => Ok(Discovered { served: target.discover(kinds), ..Discovered::default() }),
            Target::Git(target) => Ok(Discovered { served: target.state().discover(kinds), ..Discovered::default() }),
        }
    }

    /// Every kind that the target serves, at each version, sorted.
    pub async fn served(&self) -> Result<Vec<Resource>> {
        match self {
            Target::Kube(target) => target.served().await,
            Target::Dir(target) => Ok(target.served()),
            Target::Git(target) => Ok(target.state().resources()),
        }
    }

    /// Each kind whose objects can be listed, at the highest of its versions.
    ///
    /// # Errors
    /// The server does not say.
    pub async fn listable(&self) -> Result<Vec<Resource>> {
        let mut kinds: BTreeMap<(String, String), Resource> = BTreeMap::new();
        let listable = match self {
            Target::Kube(target) => target.listable().await?,
            Target::Dir(target) => target.served(),
            Target::Git(target) => target.state().resources(),
        };
        for resource in listable.into_iter().filter(|resource| !resource.plural.contains('/')) {
            let key = (resource.group.clone(), resource.kind.clone());
            if kinds.get(&key).is_none_or(|known| versions::compare(&known.version, &resource.version).is_lt()) {
                kinds.insert(key, resource);
            }
        }
        Ok(kinds.into_values().collect())
    }

    /// The release of Kubernetes that the target is; `None` where it does not say.
    pub async fn release(&self) -> Option<Release> {
        match self {
            Target::Kube(target) => target.release().await,
            Target::Dir(_) | Target::Git(_) => None,
        }
    }

    /// Reads the live objects, one answer for each wanted one, in that order; `None` where there is none.
    ///
    /// Few CRDs are read by name and many by one paged list; everything else by `GET`, in parallel with a bound.
    ///
    /// # Errors
    /// Any object that cannot be read; all that is wrong, each once.
    pub async fn read(&self, wanted: &[Wanted], on_read: OnRead<'_>) -> Result<Vec<Option<Live>>> {
        all(self.read_each(wanted, on_read).await?)
    }

    /// The same where some of the objects may be unreadable, most often for want of a right.
    ///
    /// # Errors
    /// What concerns all of them: no connection, no valid credentials.
    pub async fn read_each(&self, wanted: &[Wanted], on_read: OnRead<'_>) -> Result<Vec<Read>> {
        match self {
            Target::Kube(target) => target.read(wanted, on_read).await,
            Target::Dir(target) => Ok(target.read(wanted).into_iter().map(Ok).collect()),
            Target::Git(target) => Ok(target.state().read(wanted).into_iter().map(Ok).collect()),
        }
    }

    /// The rules that hold for the user in a namespace (`None`: in every one, and for what has none); `None` from a
    /// target that has no users.
    pub async fn rules_review(&self, namespace: Option<&str>) -> Option<std::result::Result<RulesReview, Problem>> {
        match self {
            Target::Kube(target) => Some(target.rules_review(namespace).await),
            Target::Dir(_) | Target::Git(_) => None,
        }
    }

    /// Whether the user may do that in a namespace (`None`: in every one, or to what has none). A target that has no
    /// users allows everything.
    pub async fn access_review(&self, namespace: Option<&str>, atom: &Atom) -> std::result::Result<bool, Problem> {
        match self {
            Target::Kube(target) => target.access_review(namespace, atom).await,
            Target::Dir(_) | Target::Git(_) => Ok(true),
        }
    }

    /// The name that the target knows the user by; `None` from one that has no users.
    pub async fn user(&self) -> Option<std::result::Result<String, Problem>> {
        match self {
            Target::Kube(target) => Some(target.user().await),
            Target::Dir(_) | Target::Git(_) => None,
        }
    }

    /// The objects of one resource, in pages. Sends no request before the first page is asked for.
    pub fn list(&self, request: &ListRequest<'_>) -> Pages {
        Pages(match self {
            Target::Kube(target) => pages::Source::Kube(target.list(request)),
            Target::Dir(target) => pages::Source::Dir(target.list(request)),
            Target::Git(target) => pages::Source::Dir(target.state().list(request)),
        })
    }

    /// Tells of objects and of each change of theirs, until the answer is dropped. `None` from a target that tells of none:
    /// they are to be read again and again.
    pub fn follow(
        &self,
        request: watch::FollowRequest,
        tell: impl Fn(watch::WatchEvent) + Send + Sync + 'static,
    ) -> Option<watch::Follow> {
        match self {
            Target::Kube(target) => Some(target.follow(request, tell)),
            Target::Dir(_) | Target::Git(_) => None,
        }
    }

    /// Writes one object by server-side apply, if the live one is still what `pin` says. Answers what is live now.
    pub async fn apply(&self, apply: &Apply<'_>) -> std::result::Result<Live, ApplyError> {
        match self {
            Target::Kube(target) => target.apply(apply).await,
            Target::Dir(target) => target.apply(apply),
            Target::Git(_) => Err(ApplyError::Refused(git::read_only())),
        }
    }

    /// Begins the deletion of an object that is still the one that was seen. One that is gone is no error.
    pub async fn delete(&self, delete: &Delete<'_>) -> std::result::Result<(), DeleteError> {
        match self {
            Target::Kube(target) => target.delete(delete).await,
            Target::Dir(_) => Err(DeleteError::Refused(Problem::new("a folder has no apps"))),
            Target::Git(_) => Err(DeleteError::Refused(git::read_only())),
        }
    }

    /// Removes labels and annotations from an object that is still the one that was seen. Answers what is live now.
    pub async fn unmark(&self, unmark: &Unmark<'_>) -> std::result::Result<Live, ApplyError> {
        match self {
            Target::Kube(target) => target.unmark(unmark).await,
            Target::Dir(target) => target.unmark(unmark),
            Target::Git(_) => Err(ApplyError::Refused(git::read_only())),
        }
    }

    /// Gives a label another value on an object that is still the one that was seen, as if it had been applied so.
    pub async fn relabel(&self, relabel: &Relabel<'_>) -> std::result::Result<(), ApplyError> {
        match self {
            Target::Kube(target) => target.relabel(relabel).await,
            Target::Dir(_) => Err(ApplyError::Refused(Problem::new("a folder has no apps"))),
            Target::Git(_) => Err(ApplyError::Refused(git::read_only())),
        }
    }

    /// What an object becomes when it is written at the resource's version just as it reads there: converted to the version
    /// that it is stored at, and back. A dry run; nothing is stored.
    pub async fn rewritten(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        field_manager: &str,
    ) -> std::result::Result<RawObject, RewriteError> {
        match self {
            Target::Kube(target) => target.rewritten(resource, object, field_manager).await,
            Target::Dir(_) | Target::Git(_) => Err(RewriteError::NotHere),
        }
    }

    /// The OpenAPI v3 document of a group at a version, which says how its kinds are merged. `None` where the target
    /// has none, or does not give it away.
    pub async fn openapi(&self, group: &str, version: &str) -> Option<String> {
        match self {
            Target::Kube(target) => target.openapi(group, version).await,
            Target::Dir(_) | Target::Git(_) => None,
        }
    }

    /// Sends what a Service of the cluster serves, part by part.
    ///
    /// # Errors
    /// There is no such content, or none that this user may ask for. A content that breaks off ends with an error as its
    /// last part.
    pub async fn download(
        &self,
        url: &service::ServiceUrl,
        to: mpsc::Sender<kube::download::Part>,
    ) -> std::result::Result<(), Problem> {
        match self {
            Target::Kube(target) => target.download(url, to).await,
            Target::Dir(_) | Target::Git(_) => Err(Problem::new(format!("a {} runs no Services", self.noun()))),
        }
    }

    /// The last lines that a container wrote, at most 1 MiB.
    ///
    /// # Errors
    /// They cannot be read, or not in time.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        lines: usize,
    ) -> std::result::Result<Vec<u8>, Problem> {
        match self {
            Target::Kube(target) => target.log(namespace, pod, container, lines).await,
            Target::Dir(_) | Target::Git(_) => Err(Problem::new(format!("a {} runs no Pods", self.noun()))),
        }
    }

    /// Whether a CRD that was applied is served yet.
    pub async fn established(&self, crd: &ObjectRef) -> Result<Established> {
        match self {
            Target::Kube(target) => target.established(crd).await,
            Target::Dir(_) | Target::Git(_) => Ok(Established::Yes),
        }
    }

    /// Removes what a run that was killed left behind. Only a deploy that is going to write calls this.
    pub fn remove_leftovers(&self) {
        match self {
            // Each request to a server is whole or has no effect.
            Target::Kube(_) | Target::Git(_) => {}
            Target::Dir(target) => target.remove_leftovers(),
        }
    }

    /// What the server warned of since the last call, each text once, in the order in which it came.
    pub fn take_warnings(&self) -> Vec<String> {
        match self {
            Target::Kube(target) => target.take_warnings(),
            Target::Dir(_) | Target::Git(_) => Vec::new(),
        }
    }
}

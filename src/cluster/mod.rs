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
pub mod selector;
pub mod service;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::crd::versions;
use crate::options::TargetSpec;
use crate::problem::{Problem, Result};
use crate::rbac::{Atom, PolicyRule};
use crate::render::Render;
use crate::resource::{Live, ObjectRef, RawObject, Resource};
pub use managers::{FieldConflict, Operation, client_side_tool};

pub use list::{ListError, ListRequest, MissingRight, Page, Pages};

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

/// What the caller knows of the live object. Apply refuses when it no longer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// There was no such object.
    Absent,
    /// The object with this uid at this resourceVersion.
    At { uid: String, resource_version: String },
}

/// One server-side apply.
#[derive(Debug)]
pub struct Apply<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    pub raw: &'a RawObject,
    /// The object as it was read.
    pub live: Option<&'a RawObject>,
    pub pin: &'a Pin,
    pub field_manager: &'a str,
    pub force_conflicts: bool,
}

/// Labels and annotations to remove from an object.
#[derive(Debug)]
pub struct Unmark<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    /// The object as it was seen: it is left alone where it is another by now.
    pub live: &'a Live,
    pub labels: &'a [&'a str],
    pub annotations: &'a [&'a str],
    pub field_manager: &'a str,
}

/// A label of ours that gets another value.
#[derive(Debug)]
pub struct Relabel<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    /// The object as it was seen: it is left alone where it is another by now.
    pub live: &'a Live,
    pub label: &'a str,
    pub value: &'a str,
    pub field_manager: &'a str,
}

/// One object to delete.
#[derive(Debug, Clone, Copy)]
pub struct Delete<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    /// It is left alone where it is another by now.
    pub uid: &'a str,
    pub resource_version: &'a str,
    /// What it owns goes first (a Deployment's pods), so that its end is the end of all; else it is collected afterwards.
    pub foreground: bool,
}

/// Why the deletion of one object was not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteError {
    /// The live object is no longer the one that was seen.
    Changed,
    Refused(Problem),
}

/// Why one object was not applied. Nothing of that object was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyError {
    /// The live object is no longer the one that was checked.
    Changed,
    /// Other managers own fields that the manifest sets.
    Conflict(Vec<FieldConflict>),
    /// A webhook of admission or conversion does not answer the server. Its Pods may be starting.
    NoWebhook(Problem),
    /// Anything else: refused by the server, forbidden, unreachable.
    Refused(Problem),
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

/// Why the server would not write an object, as its dry run says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRunError {
    /// The live object is no longer the one that was read.
    Changed,
    /// Other managers own fields that the manifest sets.
    Conflict(Vec<FieldConflict>),
    Refused(Refusal),
    /// No verdict: the server was not reached, or is not able to say beforehand.
    Unanswered {
        problem: Problem,
        /// No other object would fare better.
        everything: bool,
    },
}

/// What the server says of an object that it would refuse. All of it is harmless to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub by: Refuser,
    /// The refusal as a whole, with the next step.
    pub problem: Problem,
    /// What it says of single fields, in the server's order; empty where it speaks of the whole object.
    pub causes: Vec<Cause>,
    /// The object that it misses, as plural and name, where it says so.
    pub missing: Option<(String, String)>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// As the server writes it: `spec.template.spec.containers[0].image`, `.spec.list[name="a"].x`; empty where it
    /// names none.
    pub field: String,
    pub message: String,
}

/// What to do about a field that cannot change.
pub fn immutable_help(object: &ObjectRef) -> String {
    format!(
        "revert the change, or have the object deleted and created again: kubectl delete {object}, then deploy again, or the \
         annotation gantry.dev/update-strategy: fallback-on-replace"
    )
}

/// Whether the server says of a field that the schema does not have it: in server-side apply, or when it decodes strictly.
pub fn is_undeclared(said: &str) -> bool {
    ["field not declared in schema", ": unknown field"].iter().any(|words| said.ends_with(words))
}

/// Whether the server says of a field that it cannot change once the object is there, in the words of Kubernetes'
/// validations of updates.
pub fn is_immutable(said: &str) -> bool {
    ["immutable", "may not change", "may not be changed", "cannot be changed", "cannot change", "updates to "]
        .iter()
        .any(|words| said.contains(words))
}

/// Which part of the API server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refuser {
    /// The schema of the kind, or the validation of its values.
    Validation,
    /// A plugin of the server itself, such as LimitRanger or PodSecurity.
    Admission,
    /// A webhook or a ValidatingAdmissionPolicy.
    Policy,
    /// A webhook could not be called, and says that nothing may be written then.
    FailedWebhook,
    Quota,
    /// The user lacks a right.
    Authorization,
    /// The object's namespace, or another object that it needs, is not there.
    Lookup,
    /// Anything else.
    Other,
}

/// Why nobody knows what an object would become when it is written as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewriteError {
    /// It could not be converted; the API server's message, made harmless.
    Conversion(String),
    /// It went away or changed meanwhile.
    Gone,
    /// The target is no server.
    NotHere,
    /// Anything else: refused, forbidden, unreachable.
    Other(Problem),
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
            Target::Kube(target) => list::Source::Kube(target.list(request)),
            Target::Dir(target) => list::Source::Dir(target.list(request)),
            Target::Git(target) => list::Source::Dir(target.state().list(request)),
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

//! A cluster, through its API server.
//!
//! There is one module for each step. `connect` builds a `client` from what `prepared_client` makes of `kubeconfig`,
//! environment and `proxy`, with `credentials` (from a file or a `plugin`). `connections` are those to the server. `transport` sends one request, and is the
//! only module that does. `errors` and `refusals` describe in one line why a request failed. `read`, `list`, `discover`
//! and `apply` are the operations of a deploy; `service` and `log` reach other servers through the API server. Objects
//! stay JSON text throughout; `json` extracts only the few fields that a step needs.
//!
//! Every future here can be dropped between two polls. A read has no side effects; a write is one request, which the
//! server carries out completely or not at all.

mod apply;
mod apply_request;
mod client;
mod connect;
mod connections;
mod credentials;
mod delete;
mod discover;
pub mod download;
mod dry_run;
mod dry_run_takeover;
mod errors;
#[cfg(test)]
mod fake_server;
mod helm_upgrade;
mod json;
mod kubeconfig;
mod lines;
mod list;
mod log;
mod metadata;
mod page;
mod plugin;
mod prepared_client;
mod protobuf;
mod proxy;
mod read;
mod refusals;
mod request;
mod reviews;
mod rewrite;
mod served;
mod service;
mod storage;
mod takeover;
mod transport;
mod unanswered;
mod warnings;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{OnceCell, mpsc};

use self::download::DownloadChunk;
use super::{
    Apply, ApplyError, Connection, Delete, DeleteError, Discovered, DryRunError, Established, Gvk, ListRequest,
    ObjectToRead, OnRead, ReadResult, Relabel, RewriteError, RulesReview, Unmark,
};
use crate::openapi::{Documents, OpenApi};
use crate::service::ServiceUrl;
use crate::storage::{RewrittenObject, StorageRewrite, StorageRewriteError};
use crate::watch::{Follow, FollowRequest, WatchEvent};
use gantry_core::problem::{Problem, Result};
use gantry_core::rbac::Atom;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_k8s_cel::KubernetesRelease;
pub use helm_upgrade::{HelmPatch, HelmUpgrade};
pub use kubeconfig::ReadKubeconfig;
pub use list::KubePages;
use transport::Transport;

/// An object of a list, with the apiVersion and kind that the server omits there.
pub fn listed(json: &str, resource: &Resource) -> Option<LiveObject> {
    json::live(json, resource)
}

/// Reads the kubeconfig (`--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`), for runs on several of its
/// contexts.
///
/// # Errors
/// There is no kubeconfig, or one cannot be read.
pub async fn kubeconfig(connection: &Connection) -> Result<ReadKubeconfig> {
    connect::kubeconfig(connection, kubeconfig::ProcessEnvironment::of_process()).await
}

/// An API server, with the credentials that requests are sent with. The methods are described at those of
/// [`Target`](crate::Target) with the same names.
pub struct KubeTarget {
    transport: Arc<Transport>,
    default_namespace: String,
    fresh: apply::FreshSchemas,
    openapi: Documents,
    release: OnceCell<Option<KubernetesRelease>>,
}

impl KubeTarget {
    /// Reads the kubeconfig (`--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`, else the Pod's own service
    /// account) and runs its credential plugin. Sends no request to the API server.
    pub async fn open(connection: &Connection) -> Result<Self> {
        connect::open(connection, kubeconfig::ProcessEnvironment::of_process()).await
    }

    /// `kube: staging (https://10.0.0.1:6443)`, `kube: staging (https://10.0.0.1:6443) as "deployer"`
    pub fn describe(&self) -> String {
        let peer = self.transport.peer();
        let who = peer.acts_as.as_ref().map_or(String::new(), |who| format!(" as {:?}", errors::words(&who.user)));
        format!("kube: {} ({}){who}", peer.context, peer.server)
    }

    /// `https://10.0.0.1:6443`
    pub fn server(&self) -> &str {
        &self.transport.peer().server
    }

    /// The namespace of the context, `default` if it names none.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// Where the kinds are served, from the discovery documents of their groups.
    pub async fn discover(&self, kinds: &BTreeSet<Gvk>) -> Result<Discovered> {
        discover::discover(&self.transport, kinds).await
    }

    /// The rules that apply to the user in a namespace; `None`: in all namespaces and for cluster-scoped resources.
    pub async fn rules_review(&self, namespace: Option<&str>) -> std::result::Result<RulesReview, Problem> {
        reviews::rules(&self.transport, namespace).await
    }

    /// Whether the user is allowed to do this in a namespace; `None`: in all namespaces, or on a cluster-scoped
    /// resource.
    pub async fn access_review(&self, namespace: Option<&str>, atom: &Atom) -> std::result::Result<bool, Problem> {
        reviews::allowed(&self.transport, namespace, atom).await
    }

    /// Whether a ServiceAccount, by namespace and name, is allowed to do this.
    pub async fn account_access_review(
        &self,
        account: (&str, &str),
        namespace: Option<&str>,
        atom: &Atom,
    ) -> std::result::Result<bool, Problem> {
        reviews::account_allowed(&self.transport, account, namespace, atom).await
    }

    /// The user name that the server knows the user by.
    pub async fn user(&self) -> std::result::Result<String, Problem> {
        reviews::user(&self.transport).await
    }

    /// The user that the requests impersonate.
    pub fn impersonated(&self) -> Option<&str> {
        self.transport.peer().acts_as.as_ref().map(|identity| identity.user.as_str())
    }

    /// Every kind that the server serves, at each version, sorted. Takes two requests.
    pub async fn served(&self) -> Result<Vec<Resource>> {
        let served = served::served(&self.transport).await?;
        Ok(served.into_iter().map(|served| served.resource).collect())
    }

    /// The kinds of [`Self::served`] whose objects can be listed.
    pub async fn listable_at_each_version(&self) -> Result<Vec<Resource>> {
        let served = served::served(&self.transport).await?;
        Ok(served.into_iter().filter(served::ServedResource::can_list).map(|served| served.resource).collect())
    }

    /// The Kubernetes release that the server reports. It is asked once.
    pub async fn release(&self) -> Option<KubernetesRelease> {
        *self.release.get_or_init(|| served::release(&self.transport)).await
    }

    /// Reads the objects, several at a time, in the order of `wanted`.
    pub async fn read(&self, wanted: &[ObjectToRead], on_read: OnRead<'_>) -> Result<Vec<ReadResult>> {
        read::read(&self.transport, &self.default_namespace, wanted, on_read).await
    }

    /// Reads one object; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn read_one(&self, wanted: ObjectToRead) -> ReadResult {
        let read = self.read(&[wanted], &|_, _| ()).await.map_err(|error| error.first_problem())?;
        read.into_iter().next().unwrap_or(Ok(None))
    }

    /// The pages of a list. Each page is fetched while the caller processes the previous one.
    pub fn list(&self, request: &ListRequest<'_>) -> KubePages {
        KubePages::new(&self.transport, request)
    }

    /// Reports changes of the objects until it is dropped.
    pub fn follow(&self, request: FollowRequest, on_event: impl Fn(WatchEvent) + Send + Sync + 'static) -> Follow {
        Box::pin(watch::follow(Arc::clone(&self.transport), request, on_event))
    }

    /// Retries for up to 5 s if the server does not know a resource yet, or the schema of a CRD that this target wrote.
    pub async fn apply(&self, apply: &Apply<'_>) -> std::result::Result<LiveObject, ApplyError> {
        takeover::apply(&self.transport, &self.fresh, &self.default_namespace, apply).await
    }

    /// Starts the deletion, with the uid and the resourceVersion as preconditions.
    pub async fn delete(&self, delete: &Delete<'_>) -> std::result::Result<(), DeleteError> {
        delete::delete(&self.transport, &self.default_namespace, delete).await
    }

    /// Removes labels and annotations with a patch that is pinned to the resourceVersion.
    pub async fn unmark(&self, unmark: &Unmark<'_>) -> std::result::Result<LiveObject, ApplyError> {
        metadata::unmark(&self.transport, &self.default_namespace, unmark).await
    }

    /// Sets a label with a patch that is pinned to the resourceVersion.
    pub async fn relabel(&self, relabel: &Relabel<'_>) -> std::result::Result<(), ApplyError> {
        metadata::relabel(&self.transport, &self.default_namespace, relabel).await
    }

    /// Returns the object as [`Self::apply`] would store it. Writes nothing.
    pub async fn dry_run(&self, apply: &Apply<'_>) -> std::result::Result<RawObject, DryRunError> {
        let Resource { group, version, .. } = apply.resource;
        if let Some(upgrade) = apply.helm {
            let document = self.openapi(group, version).await;
            let answer =
                helm_upgrade::dry_run(&self.transport, &self.default_namespace, apply, upgrade, document.as_deref());
            if let Some(answer) = answer.await {
                return answer;
            }
        }
        let openapi = async || self.openapi(group, version).await;
        dry_run_takeover::dry_run(&self.transport, &self.default_namespace, apply, openapi).await
    }

    /// Whether the server would accept the object of the request if it did not exist yet. Writes nothing.
    pub async fn dry_run_create(&self, apply: &Apply<'_>) -> std::result::Result<(), DryRunError> {
        dry_run::dry_run_create(&self.transport, &self.default_namespace, apply).await
    }

    /// What the object becomes when it is read and written back unchanged, by a dry run.
    pub async fn rewritten(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        field_manager: &str,
    ) -> std::result::Result<RawObject, RewriteError> {
        rewrite::rewritten(&self.transport, &self.default_namespace, resource, object, field_manager).await
    }

    /// Writes the object as it is, so that it is stored at the storage version, if it still has the uid and the
    /// resourceVersion. A dry run stores nothing.
    pub async fn rewrite_stored(
        &self,
        rewrite: &StorageRewrite<'_>,
        is_dry_run: bool,
    ) -> std::result::Result<RewrittenObject, StorageRewriteError> {
        storage::rewrite_stored(&self.transport, &self.default_namespace, rewrite, is_dry_run).await
    }

    /// Sets `status.storedVersions` of a CRD, if it has not changed since it was read. Returns the new live CRD.
    pub async fn set_stored_versions(
        &self,
        crd: &LiveObject,
        name: &str,
        versions: &[&str],
        field_manager: &str,
    ) -> std::result::Result<LiveObject, ApplyError> {
        storage::set_stored_versions(&self.transport, crd, name, versions, field_manager).await
    }

    /// Sets an annotation of a CRD, or removes it, if the CRD has not changed since it was read. Returns the new live
    /// CRD.
    pub async fn annotate_crd(
        &self,
        crd: &LiveObject,
        name: &str,
        annotation: (&str, Option<&str>),
        field_manager: &str,
    ) -> std::result::Result<LiveObject, ApplyError> {
        storage::annotate_crd(&self.transport, crd, name, annotation, field_manager).await
    }

    /// The OpenAPI document of a version of a group, requested once. `None` if the server has none.
    pub async fn openapi(&self, group: &str, version: &str) -> Option<Arc<OpenApi>> {
        self.openapi.get(group, version, async || discover::openapi(&self.transport, group, version).await).await
    }

    /// Streams content from a Service of the cluster.
    pub async fn download(
        &self,
        url: &ServiceUrl,
        to: mpsc::Sender<DownloadChunk>,
    ) -> std::result::Result<(), Problem> {
        service::download(&self.transport, url, to).await
    }

    /// The last lines of a container's log.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        lines: usize,
    ) -> std::result::Result<Vec<u8>, Problem> {
        log::read_tail(&self.transport, namespace, pod, container, lines).await
    }

    /// Whether the conditions of the CRD and discovery say that it is served, likely at the `expected` versions.
    pub async fn established(&self, crd: &ObjectRef, expected: &[&str]) -> Result<Established> {
        discover::established(&self.transport, crd, expected).await
    }

    /// The API server's warnings since the last call (deprecated versions, unknown formats, …), without duplicates, in
    /// the order received.
    pub fn take_warnings(&self) -> Vec<String> {
        self.transport.take_warnings()
    }
}

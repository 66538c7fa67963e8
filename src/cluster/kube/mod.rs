//! A cluster, through its API server.
//!
//! One room for each step: `connect` turns `kubeconfig`, environment, `proxy` and `credentials` (of a file or a `plugin`)
//! into a `client`, `transport` sends one request and is the only place that does, `errors` and `refusals` say in one line why
//! one failed, `read`, `list`, `discover` and `apply` are what a deploy asks of a server, `service` and `log` what it asks of
//! another server through that one. Objects stay JSON text all the way; only the few facts that a step needs are parsed out of it (`json`).
//!
//! Every future here may be dropped between two polls. A read leaves nothing behind; a write is one request, which the
//! server carries out whole or not at all.

mod apply;
mod client;
mod connect;
mod credentials;
mod delete;
mod discover;
pub mod download;
mod dry_run;
mod errors;
#[cfg(test)]
mod fake_server;
mod json;
mod kubeconfig;
mod list;
mod log;
mod metadata;
mod plugin;
mod proxy;
mod read;
mod refusals;
mod request;
mod reviews;
mod rewrite;
mod served;
mod service;
mod takeover;
mod transport;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;

use self::download::Part;
use super::{
    Apply, ApplyError, Connection, Delete, DeleteError, Discovered, DryRunError, Established, Gvk, ListRequest, OnRead,
    Read, Relabel, Release, RewriteError, RulesReview, Unmark, Wanted,
};
use crate::cluster::service::ServiceUrl;
use crate::cluster::watch::{Follow, FollowRequest, WatchEvent};
use crate::problem::{Problem, Result};
use crate::rbac::Atom;
use crate::resource::{Live, ObjectRef, RawObject, Resource};
pub use kubeconfig::ReadKubeconfig;
pub use list::KubePages;
use transport::Transport;

/// An object of a list, with the apiVersion and kind that the server leaves out there.
pub fn listed(json: &str, resource: &Resource) -> Option<Live> {
    json::live(json, resource)
}

/// The kubeconfig (`--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`), for runs on several of its contexts.
///
/// # Errors
/// There is none, or one cannot be read.
pub async fn kubeconfig(connection: &Connection) -> Result<ReadKubeconfig> {
    connect::kubeconfig(connection, kubeconfig::Surroundings::of_process()).await
}

pub struct KubeTarget {
    transport: Arc<Transport>,
    default_namespace: String,
    fresh: apply::FreshSchemas,
}

impl KubeTarget {
    /// Reads kubeconfig (`--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`, else the pod's own service account)
    /// and runs the credential plugin that it names. Sends no request.
    pub async fn open(connection: &Connection) -> Result<Self> {
        connect::open(connection, kubeconfig::Surroundings::of_process()).await
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

    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    pub async fn discover(&self, kinds: &BTreeSet<Gvk>) -> Result<Discovered> {
        discover::discover(&self.transport, kinds).await
    }

    /// The rules that hold for the user in a namespace; `None`: in every one, and for what has none.
    pub async fn rules_review(&self, namespace: Option<&str>) -> std::result::Result<RulesReview, Problem> {
        reviews::rules(&self.transport, namespace).await
    }

    /// Whether the user may do that in a namespace; `None`: in every one, or to what has none.
    pub async fn access_review(&self, namespace: Option<&str>, atom: &Atom) -> std::result::Result<bool, Problem> {
        reviews::allowed(&self.transport, namespace, atom).await
    }

    /// The name that the server knows the user by.
    pub async fn user(&self) -> std::result::Result<String, Problem> {
        reviews::user(&self.transport).await
    }

    /// Every kind that the server serves, at each version, sorted. Two requests.
    pub async fn served(&self) -> Result<Vec<Resource>> {
        let served = served::served(&self.transport).await?;
        Ok(served.into_iter().map(|served| served.resource).collect())
    }

    /// Those of them whose objects can be listed.
    pub async fn listable(&self) -> Result<Vec<Resource>> {
        let served = served::served(&self.transport).await?;
        Ok(served.into_iter().filter(served::Served::can_list).map(|served| served.resource).collect())
    }

    /// The release of Kubernetes that the server says it is.
    pub async fn release(&self) -> Option<Release> {
        served::release(&self.transport).await
    }

    pub async fn read(&self, wanted: &[Wanted], on_read: OnRead<'_>) -> Result<Vec<Read>> {
        read::read(&self.transport, &self.default_namespace, wanted, on_read).await
    }

    /// The pages of a list, each fetched while the one before it is looked at.
    pub fn list(&self, request: &ListRequest<'_>) -> KubePages {
        KubePages::new(&self.transport, request)
    }

    /// Tells of the objects until it is dropped.
    pub fn follow(&self, request: FollowRequest, tell: impl Fn(WatchEvent) + Send + Sync + 'static) -> Follow {
        Box::pin(watch::follow(Arc::clone(&self.transport), request, tell))
    }

    /// Waits up to 5 s where the server does not know a resource, or not yet the schema of a CRD that this target wrote.
    pub async fn apply(&self, apply: &Apply<'_>) -> std::result::Result<Live, ApplyError> {
        apply::apply(&self.transport, &self.fresh, &self.default_namespace, apply).await
    }

    pub async fn delete(&self, delete: &Delete<'_>) -> std::result::Result<(), DeleteError> {
        delete::delete(&self.transport, &self.default_namespace, delete).await
    }

    pub async fn unmark(&self, unmark: &Unmark<'_>) -> std::result::Result<Live, ApplyError> {
        metadata::unmark(&self.transport, &self.default_namespace, unmark).await
    }

    pub async fn relabel(&self, relabel: &Relabel<'_>) -> std::result::Result<(), ApplyError> {
        metadata::relabel(&self.transport, &self.default_namespace, relabel).await
    }

    /// Asks what [`Self::apply`] of the same would be answered: the object as it would be stored. Writes nothing.
    pub async fn dry_run(&self, apply: &Apply<'_>) -> std::result::Result<RawObject, DryRunError> {
        dry_run::dry_run(&self.transport, &self.default_namespace, apply).await
    }

    pub async fn rewritten(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        field_manager: &str,
    ) -> std::result::Result<RawObject, RewriteError> {
        rewrite::rewritten(&self.transport, &self.default_namespace, resource, object, field_manager).await
    }

    pub async fn openapi(&self, group: &str, version: &str) -> Option<String> {
        discover::openapi(&self.transport, group, version).await
    }

    /// Sends what a Service of the cluster serves, part by part.
    pub async fn download(&self, url: &ServiceUrl, to: mpsc::Sender<Part>) -> std::result::Result<(), Problem> {
        service::download(&self.transport, url, to).await
    }

    /// The last lines that a container wrote.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        lines: usize,
    ) -> std::result::Result<Vec<u8>, Problem> {
        log::tail(&self.transport, namespace, pod, container, lines).await
    }

    pub async fn established(&self, crd: &ObjectRef) -> Result<Established> {
        discover::established(&self.transport, crd).await
    }

    /// What the API server warned of since the last call (deprecated versions, unknown formats, …), each text once, in
    /// the order in which they first came.
    pub fn take_warnings(&self) -> Vec<String> {
        self.transport.take_warnings()
    }
}

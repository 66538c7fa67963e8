//! Lets the server's own migrator write the objects: the controller of `StorageVersionMigration`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::proof::MigrationProof;
use crate::write::MigrationStop;
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{Apply, ApplyError, Delete, FormerTools, Gvk, ObjectToRead, WritePrecondition};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_core::text;

const GROUP: &str = "storagemigration.k8s.io";
const KIND: &str = "StorageVersionMigration";
/// The versions of the API, from the one that is preferred.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// How long no controller may report anything before the migration counts as nobody's.
const UNANSWERED: Duration = Duration::from_secs(30);
/// How often the state is read.
const INTERVAL: Duration = Duration::from_millis(500);
/// The longest first part of the name of a `StorageVersionMigration`; a number follows.
const NAME: usize = 220;

/// The server's own migrator.
/// Source: <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/>
pub struct ServerMigrator<'a> {
    server: &'a KubeTarget,
    field_manager: &'a str,
    resource: Resource,
}

/// What the controller says about a migration.
enum MigrationState {
    /// Nothing yet.
    Unanswered,
    /// It writes objects.
    Running,
    Succeeded,
    /// With its reason.
    Failed(String),
}

impl<'a> ServerMigrator<'a> {
    /// The API at its newest version. RBAC does not tell versions apart.
    pub fn newest_resource() -> Resource {
        Resource {
            group: GROUP.into(),
            version: VERSIONS[0].into(),
            kind: KIND.into(),
            plural: "storageversionmigrations".into(),
            namespaced: false,
        }
    }

    /// Finds the API.
    ///
    /// # Errors
    /// The server does not serve it, or does not tell.
    pub async fn find(server: &'a KubeTarget, field_manager: &'a str) -> Result<Self, Problem> {
        let kinds = VERSIONS.map(|version| Gvk { group: GROUP.into(), version: version.into(), kind: KIND.into() });
        let found = server.discover(&kinds.iter().cloned().collect::<BTreeSet<_>>()).await;
        let mut found = found.map_err(|error| error.first_problem())?;
        match kinds.iter().find_map(|kind| found.served.remove(kind)) {
            Some(resource) => Ok(Self { server, field_manager, resource }),
            None => Err(Problem::new(format!("the server has no migrator of its own: {KIND} ({GROUP}) is not served"))
                .help("leave out --using server: gantry writes the objects itself")),
        }
    }

    /// Has the objects of a proven migration written, and waits for the end. The controller takes the old versions out
    /// of `status.storedVersions`, too.
    ///
    /// After an interrupt the controller goes on, and another run follows it.
    ///
    /// # Errors
    /// The request is refused, no controller carries it out, it fails, or the user interrupts.
    pub async fn migrate(&self, proof: &MigrationProof, stop: &watch::Receiver<bool>) -> Result<(), MigrationStop> {
        let started = self.start(proof).await.map_err(MigrationStop::Problem)?;
        let begun = Instant::now();
        let mut stop = stop.clone();
        loop {
            let Some(live) = self.read(&started).await.map_err(MigrationStop::Problem)? else {
                let message = format!("{} was deleted meanwhile", self.describe(&started));
                return Err(MigrationStop::Problem(Problem::new(message).help("run the same command again")));
            };
            let problem = match state_of(&live) {
                MigrationState::Succeeded => {
                    self.delete(&started, &live).await;
                    return Ok(());
                }
                MigrationState::Failed(why) => Problem::new(format!("{} failed: {why}", self.describe(&started))).help(
                    "run the same command without --using server: gantry names each object that the server refuses",
                ),
                MigrationState::Unanswered if begun.elapsed() >= UNANSWERED => {
                    let message = format!("no controller answers {}", self.describe(&started));
                    Problem::new(message).help(
                        "leave out --using server, or turn on the feature StorageVersionMigrator of the \
                         kube-controller-manager",
                    )
                }
                MigrationState::Unanswered | MigrationState::Running => {
                    tokio::select! {
                        _ = stop.wait_for(|stopped| *stopped) => return Err(MigrationStop::Interrupted),
                        () = tokio::time::sleep(INTERVAL) => continue,
                    }
                }
            };
            // Another run makes a new one.
            self.delete(&started, &live).await;
            return Err(MigrationStop::Problem(problem));
        }
    }

    /// Creates the request, unless an earlier run did.
    async fn start(&self, proof: &MigrationProof) -> Result<ObjectRef, Problem> {
        let crd = &proof.kind.crd;
        let name = text::cut(&crd.name, NAME);
        let name = name.trim_end_matches(|last: char| !last.is_ascii_alphanumeric());
        let object = ObjectRef {
            api_version: self.resource.api_version(),
            kind: KIND.into(),
            namespace: None,
            // An earlier run about the same state of the objects has the same name.
            name: format!("{name}-{}", proof.since.resource_version),
        };
        if self.read(&object).await?.is_some() {
            return Ok(object);
        }
        let of = proof.kind.resource();
        let mut resource = json!({"group": of.group, "resource": of.plural});
        if self.resource.version == "v1alpha1" {
            resource["version"] = proof.kind.storage_version().into();
        }
        let manifest = json!({
            "apiVersion": object.api_version, "kind": KIND, "metadata": {"name": object.name},
            "spec": {"resource": resource},
        });
        let apply = Apply {
            resource: &self.resource,
            object: &object,
            raw: &RawObject::new(manifest.to_string()),
            live: None,
            pin: &WritePrecondition::Absent,
            field_manager: self.field_manager,
            force_conflicts: false,
            former_tools: FormerTools::Keep,
            helm: None,
        };
        match self.server.apply(&apply).await {
            Ok(_) | Err(ApplyError::Changed) => Ok(object),
            Err(ApplyError::Refused(problem) | ApplyError::NotYet(_, problem) | ApplyError::Unknown(problem)) => {
                Err(problem)
            }
            Err(error @ ApplyError::Conflict(_)) => Err(Problem::new(error.to_string())),
        }
    }

    async fn read(&self, object: &ObjectRef) -> Result<Option<LiveObject>, Problem> {
        let wanted = ObjectToRead { resource: self.resource.clone().into(), object: object.clone().into() };
        self.server.read_one(wanted).await
    }

    /// What it was for is over, so it does no harm if it stays.
    async fn delete(&self, object: &ObjectRef, live: &LiveObject) {
        let LiveObject { uid, resource_version, .. } = live;
        let delete = Delete { resource: &self.resource, object, uid, resource_version, foreground: false };
        let _ = self.server.delete(&delete).await;
    }

    fn describe(&self, object: &ObjectRef) -> String {
        format!("the {KIND} {}", text::sanitize(&object.name))
    }
}

fn state_of(live: &LiveObject) -> MigrationState {
    let object = live.raw.value();
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let find =
        |wanted: &str| conditions.iter().find(|condition| condition["type"] == wanted && condition["status"] == "True");
    let words = |condition: &Value| {
        let parts = ["reason", "message"].map(|key| condition[key].as_str().unwrap_or_default());
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        text::sanitize(&parts.join(": ")).into_owned()
    };
    match (find("Succeeded"), find("Failed"), find("Running")) {
        (Some(_), ..) => MigrationState::Succeeded,
        (None, Some(failed), _) => MigrationState::Failed(words(failed)),
        (None, None, Some(_)) => MigrationState::Running,
        (None, None, None) => MigrationState::Unanswered,
    }
}

//! The verdict about a change of a CRD: that of `gantry check` for the same two CRDs and the objects that exist.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use gantry_cluster::{ListRequest, Target};
use gantry_core::crd::Crd;
use gantry_core::date::Date;
use gantry_core::finding::{CheckReport, CheckStatus, Finding, FindingBody, Mode, Severity};
use gantry_core::manifest::{Input, Manifest, ManifestSource};
use gantry_core::problem::{Error, Problem};
use gantry_core::resource::{LiveObject, ObjectRef, RawObject};
use gantry_core::text::{count, sanitize};
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::config::{Settings, Waiver};
use gantry_deploy::plan::{Plan, plan_of_crd_update};
use gantry_migration::StoredSince;
use gantry_olm::content::Catalogs;
use gantry_preflight::parts_hash::PartsHash;
use gantry_preflight::proofs::ProofCache;
use gantry_preflight::registry;
use gantry_preflight::run::{self as checks, Enabled, Ran, RunOptions};
use gantry_preflight::waive::Waivers;
use gantry_schema::scan;

use crate::review::ReviewedChange;

/// The checks that judge the update of a CRD.
pub const CHECKS: [&str; 2] = ["CRDUpgradeSafety", "CustomResourceValidation"];

/// The rule of a deletion.
pub const DELETION: &str = "CRDDeletionLosesObjects";
/// The rule of a status that forgets a stored version.
pub const FORGOTTEN_VERSION: &str = "StoredVersionForgotten";

/// The annotation of a CRD with the digest of a change that may happen although it is not safe.
pub const ACCEPT_CHANGE: &str = "gantry.dev/accept-change";

/// Proofs are forgotten after this many reviews, so that they do not fill the memory of a server that runs for months.
const REVIEWS_PER_CACHE: usize = 256;
/// The number of objects that a message about a deletion names.
const EXAMPLES: u32 = 3;

/// What judges changes, as one configuration says.
pub struct CrdJudge {
    target: Target,
    checks: Vec<Enabled>,
    waivers: Vec<Waiver>,
    redact: bool,
    proofs: Mutex<(Arc<ProofCache>, usize)>,
}

/// The verdict about a change.
#[derive(Debug, Clone, Default)]
pub struct ChangeVerdict {
    /// What the checks found, in the form of a report.
    pub checks: Vec<CheckReport>,
    /// What could not be judged, and why.
    pub unjudged: Vec<Problem>,
    /// What identifies the change and its errors: the value of [`ACCEPT_CHANGE`].
    pub digest: String,
}

impl ChangeVerdict {
    /// Nothing is known about the change, for this reason.
    pub fn unjudged(change: &ReviewedChange, why: Problem) -> Self {
        let verdict = ChangeVerdict { unjudged: vec![why], ..ChangeVerdict::default() };
        ChangeVerdict { digest: digest(change, &verdict), ..verdict }
    }

    /// All findings that count, the worst first.
    pub fn findings(&self) -> Vec<&Finding> {
        let counts = |finding: &&Finding| finding.severity <= Severity::Warning;
        let mut found: Vec<&Finding> = self.checks.iter().flat_map(|check| &check.findings).filter(counts).collect();
        found.sort_by_key(|finding| finding.severity);
        found
    }

    /// The findings that make the change unsafe.
    pub fn errors(&self) -> usize {
        self.findings().iter().filter(|finding| finding.severity == Severity::Error).count()
    }

    /// How many objects the checks read.
    pub fn objects_read(&self) -> u64 {
        self.checks.iter().flat_map(|check| &check.coverage).map(|coverage| coverage.read).sum()
    }
}

impl CrdJudge {
    /// A judge for the objects of this target.
    pub fn new(target: Target, settings: &Settings) -> Self {
        let enabled = settings.checks.iter().filter_map(|selected| {
            let entry = registry::find(&selected.name).filter(|_| CHECKS.contains(&selected.name.as_str()))?;
            let check = (entry.build)(&selected.config);
            Some(Enabled { name: selected.name.clone(), mode: selected.mode, by_default: selected.by_default, check })
        });
        CrdJudge {
            target,
            checks: enabled.collect(),
            waivers: settings.waivers.clone(),
            redact: settings.is_on(&gantry_deploy::config::key::REDACT),
            proofs: Mutex::default(),
        }
    }

    /// Where objects are read from.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Judges a change of the CRD of this name.
    pub async fn judge(&self, crd: &str, change: &ReviewedChange) -> ChangeVerdict {
        let verdict = match change {
            ReviewedChange::Created => Ok(ChangeVerdict::default()),
            ReviewedChange::Updated { live, desired } => self.judge_update(crd, live, desired).await,
            ReviewedChange::Deleted { live } => self.judge_deletion(crd, live).await,
            ReviewedChange::StatusUpdated { live, desired } => {
                self.judge_forgotten_versions(crd, live, &forgotten_versions(live, desired)).await
            }
        };
        let mut verdict = verdict.unwrap_or_else(|unjudged| ChangeVerdict { unjudged, ..ChangeVerdict::default() });
        verdict.digest = digest(change, &verdict);
        verdict
    }

    async fn judge_update(
        &self,
        crd: &str,
        live: &RawObject,
        desired: &RawObject,
    ) -> Result<ChangeVerdict, Vec<Problem>> {
        let live = without_bookkeeping(live, true);
        let live = LiveObject {
            uid: text_at(&live, &["metadata", "uid"]),
            resource_version: text_at(&live, &["metadata", "resourceVersion"]),
            raw: RawObject::from_value(&live),
        };
        let desired = RawObject::from_value(&without_bookkeeping(desired, false));
        let desired = manifest(crd, &desired).map_err(problems)?;
        let plan = plan_of_crd_update(live, desired, &self.target).await.map_err(problems)?;
        Ok(self.check(&plan).await)
    }

    /// Runs the checks on a plan of CRDs.
    pub async fn check(&self, plan: &Plan) -> ChangeVerdict {
        let stage = ProgressDisplay::Hidden.stage("checking", None);
        let proofs = self.proofs();
        let options = RunOptions {
            warn_only: false,
            redact: self.redact,
            waivers: Waivers { list: &self.waivers, today: Date::from(SystemTime::now()) },
            baseline: None,
            to_migrate: &BTreeSet::new(),
            migrated: &BTreeSet::new(),
            catalogs: Catalogs::none(),
            olm_release: None,
            custom_checks: &[],
            known: Some(&proofs),
            stage: &stage,
        };
        let Ran { reports, .. } = Box::pin(checks::run(&self.checks, plan, &self.target, options)).await;
        let unchecked = reports.iter().flat_map(|report| &report.unchecked);
        let unjudged =
            unchecked.map(|unchecked| Problem { help: unchecked.help.clone(), ..Problem::new(&unchecked.message) });
        ChangeVerdict { unjudged: unjudged.collect(), checks: reports, digest: String::new() }
    }

    fn proofs(&self) -> Arc<ProofCache> {
        let mut proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        proofs.1 += 1;
        if proofs.1 > REVIEWS_PER_CACHE {
            *proofs = Default::default();
        }
        Arc::clone(&proofs.0)
    }

    async fn judge_deletion(&self, crd: &str, live: &RawObject) -> Result<ChangeVerdict, Vec<Problem>> {
        let Some(objects) = self.objects(crd, live).await? else { return Ok(ChangeVerdict::default()) };
        let message = format!("deleting this CRD also deletes {objects}");
        let help = "keep the CRD, or, if nobody needs the objects, delete them first".to_owned();
        Ok(self.verdict_of(crd, DELETION, message, help))
    }

    async fn judge_forgotten_versions(
        &self,
        crd: &str,
        live: &RawObject,
        forgotten: &[String],
    ) -> Result<ChangeVerdict, Vec<Problem>> {
        let Some(objects) = self.objects(crd, live).await? else { return Ok(ChangeVerdict::default()) };
        let versions = forgotten.join(", ");
        let message = format!(
            "status.storedVersions would no longer name {versions}, but {objects} can still be stored at it; once the \
             version is removed, nobody can read these"
        );
        let help = format!(
            "write each object once, so that it is stored at the storage version, and then shorten the list; this does both: \
             gantry migrate {crd} --prune-stored-versions"
        );
        Ok(self.verdict_of(crd, FORGOTTEN_VERSION, message, help))
    }

    /// A verdict with one error.
    fn verdict_of(&self, crd: &str, rule: &str, message: String, help: String) -> ChangeVerdict {
        let finding = Finding {
            rule: rule.to_owned(),
            severity: Severity::Error,
            original_severity: None,
            baseline_state: None,
            object: Some(ObjectRef::crd(crd)),
            source: None,
            change_source: None,
            body: FindingBody { message, help, ..FindingBody::default() },
            not_written: false,
            refused_by_server: false,
            waived: None,
        };
        let mut reports = vec![CheckReport::new("Admission", Mode::Error, CheckStatus::Blocked, vec![finding])];
        let waivers = Waivers { list: &self.waivers, today: Date::from(SystemTime::now()) };
        // The waivers of other rules are not unused here.
        let _ = waivers.apply(&mut reports, &[rule], &[]);
        if self.redact {
            reports.iter_mut().flat_map(|report| &mut report.findings).for_each(Finding::redact);
        }
        ChangeVerdict { checks: reports, ..ChangeVerdict::default() }
    }

    /// The objects of a CRD as a message names them; `None` if it has none. Reads the metadata of a few.
    async fn objects(&self, crd: &str, live: &RawObject) -> Result<Option<String>, Vec<Problem>> {
        let unreadable = |why: &str| vec![Problem::new(format!("the objects of {} are unknown: {why}", sanitize(crd)))];
        let parsed = Crd::read(live).map_err(|error| unreadable(&error.to_string()))?;
        let Some(resource) = parsed.resources().next() else {
            return Err(unreadable("it serves no version, so they cannot be listed"));
        };
        let request = ListRequest { metadata_only: true, ..ListRequest::new(&resource, EXAMPLES) };
        let mut pages = self.target.list(&request);
        let mut names: Vec<String> = Vec::new();
        let mut more = 0;
        while names.is_empty() {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(error) => {
                    let problem = error.problem().cloned();
                    let problem = problem.unwrap_or_else(|| Problem::new("the list expired"));
                    return Err(vec![Problem {
                        message: format!("the objects of {} are unknown: {}", sanitize(crd), problem.message),
                        ..problem
                    }]);
                }
            };
            more = page.remaining().unwrap_or_default();
            names.extend(page.items().filter_map(|json| {
                let object: Value = serde_json::from_str(json).ok()?;
                let name = object["metadata"]["name"].as_str()?;
                Some(match object["metadata"]["namespace"].as_str() {
                    Some(namespace) => format!("{namespace}/{name}"),
                    None => name.to_owned(),
                })
            }));
        }
        if names.is_empty() {
            return Ok(None);
        }
        let total = names.len() + usize::try_from(more).unwrap_or(usize::MAX - names.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names: Vec<String> = names.iter().map(|name| sanitize(name).into_owned()).collect();
        let objects = count(total, "object");
        Ok(Some(format!("{objects} of kind {} ({}{rest})", sanitize(&resource.kind), names.join(", "))))
    }
}

/// Who writes `status.storedVersions` with reason: the controller that establishes CRDs, as part of the API server, and
/// the storage version migrator of Kubernetes, after it has written every object.
/// Source: `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go`
const STATUS_WRITERS: [&str; 2] =
    ["system:apiserver", "system:serviceaccount:kube-system:storage-version-migrator-controller"];

/// Whether a change by this user cannot do harm, which is known without looking at schemas and objects.
pub fn is_harmless(change: &ReviewedChange, user: &str) -> bool {
    match change {
        ReviewedChange::Created => true,
        // Finalizers must be able to go.
        ReviewedChange::Updated { live, desired } => is_same_spec(live, desired) || is_being_deleted(live),
        ReviewedChange::Deleted { live } => is_being_deleted(live),
        ReviewedChange::StatusUpdated { live, desired } => {
            STATUS_WRITERS.contains(&user)
                || is_being_deleted(live)
                || forgotten_versions(live, desired).is_empty()
                // `gantry migrate` has verified that no object is stored at another version.
                || StoredSince::of_live(live).is_some_and(|mark| mark.complete)
        }
    }
}

fn problems(error: Error) -> Vec<Problem> {
    error.problems().to_vec()
}

/// The CRD of a request as the manifest that the checks look at.
fn manifest(name: &str, desired: &RawObject) -> Result<Manifest, Error> {
    let source = ManifestSource::new(name, desired.json().into_owned());
    let read = Input::rendered(&[], vec![Arc::new(source)]).read().map_err(Error::from)?;
    let is_crd = |manifest: &Manifest| manifest.object.is_crd() && manifest.object.name == name;
    let found = read.manifests.into_iter().find(is_crd);
    found.ok_or_else(|| {
        Error::failed(Problem::new(format!("the object of the request is not the CRD {}", sanitize(name))))
    })
}

/// The object without the fields that the server keeps for itself. Its status tells which versions are stored.
fn without_bookkeeping(object: &RawObject, keeps_status: bool) -> Value {
    let mut object = object.value();
    let kept = ["name", "uid", "resourceVersion", "annotations", "labels"];
    if let Some(members) = object.as_object_mut() {
        // The API server leaves out both in the objects of some reviews.
        members.insert("apiVersion".to_owned(), "apiextensions.k8s.io/v1".into());
        members.insert("kind".to_owned(), "CustomResourceDefinition".into());
        if !keeps_status {
            members.shift_remove("status");
        }
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| {
                kept.contains(&key.as_str()) && (keeps_status || !["uid", "resourceVersion"].contains(&key.as_str()))
            });
        }
    }
    object
}

/// The string at the path; empty if there is none.
fn text_at(object: &Value, path: &[&str]) -> String {
    let found = path.iter().fold(object, |value, key| &value[*key]);
    found.as_str().unwrap_or_default().to_owned()
}

/// Whether both have the same spec. The API server writes the fields of both in the same order.
fn is_same_spec(live: &RawObject, desired: &RawObject) -> bool {
    let (live, desired) = (live.json(), desired.json());
    let specs = [&live, &desired].map(|json| scan::member(json, "spec"));
    specs[0].is_some() && specs[0] == specs[1]
}

fn is_being_deleted(live: &RawObject) -> bool {
    let json = live.json();
    let metadata = scan::member(&json, "metadata").unwrap_or_default();
    scan::member(metadata, "deletionTimestamp").is_some_and(|time| time != "null")
}

/// The stored versions that a new status no longer names.
fn forgotten_versions(live: &RawObject, desired: &RawObject) -> Vec<String> {
    let stored = |object: &RawObject| -> Vec<String> {
        let json = object.json();
        let status = scan::member(&json, "status").unwrap_or("{}");
        let list = scan::member(status, "storedVersions").and_then(|list| serde_json::from_str(list).ok());
        list.unwrap_or_default()
    };
    let desired = stored(desired);
    stored(live).into_iter().filter(|version| !desired.contains(version)).collect()
}

/// A digest of both specs, the operation, and the errors. It depends neither on the order in which the server writes
/// fields nor on how many objects exist.
fn digest(change: &ReviewedChange, verdict: &ChangeVerdict) -> String {
    let mut hash = PartsHash::default();
    let mut add = |text: &str| hash.add(text);
    let part = |object: &RawObject, name: &str| {
        let mut value = object.value();
        let mut part = value[name].take();
        part.sort_all_objects();
        part.to_string()
    };
    match change {
        ReviewedChange::Created => {}
        ReviewedChange::Updated { live, desired } => {
            [live, desired].map(|object| part(object, "spec")).iter().for_each(|text| add(text))
        }
        ReviewedChange::StatusUpdated { live, desired } => {
            [live, desired].map(|object| part(object, "status")).iter().for_each(|text| add(text));
        }
        // Another CRD of the same name and content has other objects.
        ReviewedChange::Deleted { live } => {
            add(&text_at(&live.value(), &["metadata", "uid"]));
            add(&part(live, "spec"));
        }
    }
    let mut errors: Vec<[&str; 3]> = verdict
        .findings()
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|Finding { rule, body, .. }| {
            [rule.as_str(), body.version.as_deref().unwrap_or_default(), body.path.as_deref().unwrap_or_default()]
        })
        .collect();
    errors.sort_unstable();
    errors.iter().flatten().for_each(|text| add(text));
    hash.finish().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

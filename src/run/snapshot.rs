//! `gantry snapshot`: writes the live state to a folder for `--target dir:`.
//!
//! It has the CRDs of the target. With manifests, it has only the live objects that they name and the CRDs of their
//! kinds. With `--objects`, it also has the custom resources of these CRDs. It never has Secrets.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};

use super::host::Host;
use super::interrupt::until_interrupted;
use super::prepare::{
    OptionalInput, connection, desired_source, impersonate, impersonating, loader, overrides_of_target,
};
use crate::cli::SnapshotArgs;
use gantry_cluster::dir::snapshot::{SnapshotFileCounts, SnapshotFolder};
use gantry_cluster::{self as cluster, ListError, ListRequest, ObjectToRead, Target};
use gantry_core::crd::Crd;
use gantry_core::manifest::LoadedManifests;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, RawObject, Resource};
use gantry_core::text;
use gantry_core::ui::progress::{ProgressDisplay, ProgressStage};
use gantry_deploy::config::{Loader, Settings};
use gantry_deploy::plan::owner::TakeoverPatterns;
use gantry_deploy::plan::{self, Deleter, Plan, PlanOptions, Prefetch, kinds};

/// The number of objects on a page.
const PAGE: u32 = 500;
/// The number of kinds that are listed at the same time.
const AT_ONCE: usize = 4;

/// What was written, as text.
pub async fn run(args: &SnapshotArgs, host: &mut Host) -> Result<String> {
    let overrides = impersonating(overrides_of_target(&args.target, &args.config), &args.identity);
    let loader = Loader { overrides, ..loader(&args.config, host) };
    let (input, settings) = OptionalInput::open(&args.files, &loader, host).await?;
    let manifests = input.read()?;
    // Before the first request.
    let folder = SnapshotFolder::begin(&host.working_directory.join(&args.output))?;

    let progress = ProgressDisplay::new(host.stderr_is_terminal, false);
    let stop = host.stop.clone();
    let work = async {
        let desired = desired_source(&settings, &args.files, manifests.as_ref());
        let connection = connection(&settings, impersonate(&settings)?);
        let target = Target::open(&settings.target, &connection, desired).await?;
        let mut taking = Taking {
            target: &target,
            folder: &folder,
            stage: progress.stage("reading live objects", None),
            crds: Vec::new(),
            unread: Vec::new(),
            notices: target.notices().to_vec(),
        };
        match manifests {
            Some(manifests) => taking.those_of(manifests, &settings).await?,
            None => taking.all_crds().await?,
        }
        if args.objects {
            taking.custom_resources().await?;
        }
        let Taking { crds, unread, notices, .. } = taking;
        Ok((target.describe(), target.release().await, crds.len(), unread, notices))
    };
    let (described, release, crds, mut unread, mut notices) = until_interrupted(&stop, work).await?;
    unread.sort();
    unread.dedup();
    if !unread.is_empty() && !args.skip_unreadable {
        let help = "nothing was written; grant the rights, which gantry permissions --for snapshot prints, or leave such objects \
                    out with --skip-unreadable";
        let explain = |problem: Problem| match problem.help {
            Some(own) => Problem { help: Some(format!("{own}; {help}")), ..problem },
            None => problem.help(help),
        };
        return Err(Error::Failed(unread.into_iter().map(explain).collect()));
    }
    notices.extend(unread.into_iter().map(|problem| {
        let message = format!("left out of the snapshot: {}", problem.message);
        Problem { message, help: None, ..problem }
    }));
    host.print_notices(&notices);
    let SnapshotFileCounts { created, changed, unchanged, removed } = folder.publish(release)?;
    let mut what = vec![text::count(crds, "CRD")];
    // A custom resource that the manifests name is listed, too, and is one file.
    let objects = (created + changed + unchanged).saturating_sub(crds);
    if objects > 0 {
        what.push(text::count(objects, "other object"));
    }
    let files = [(created, "new"), (changed, "changed"), (unchanged, "unchanged"), (removed, "removed")];
    let files: Vec<String> =
        files.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let files = if files.is_empty() { String::new() } else { format!(" ({})", files.join(", ")) };
    let output = args.output.display().to_string();
    let output = text::sanitize(&output);
    Ok(format!(
        "Snapshot of {described}\nWrote {} to {output}{files}\nCheck against it: gantry check -f MANIFESTS --target dir:{output}\n",
        what.join(" and ")
    ))
}

/// A snapshot while it is written.
struct Taking<'a> {
    target: &'a Target,
    folder: &'a SnapshotFolder,
    stage: ProgressStage,
    crds: Vec<Custom>,
    /// What cannot be read.
    unread: Vec<Problem>,
    notices: Vec<Problem>,
}

/// A kind whose CRD is part of the snapshot.
struct Custom {
    name: String,
    /// The resource to list its objects at: at the storage version if it is served, else at another one. `None` if none
    /// is served.
    resource: Option<Resource>,
}

impl Custom {
    fn read(live: &LiveObject) -> std::result::Result<Self, Problem> {
        let crd = Crd::read(&live.raw).map_err(|error| Problem::new(format!("a live CRD cannot be read: {error}")))?;
        let storage = crd.storage().filter(|version| version.served).map(|version| crd.resource(&version.name));
        let resource = storage.or_else(|| crd.resources().next());
        Ok(Custom { name: crd.name, resource })
    }
}

impl Taking<'_> {
    /// Every CRD.
    async fn all_crds(&mut self) -> Result<()> {
        let resource = Resource::crd();
        let take = |live: &LiveObject| Custom::read(live);
        // A snapshot without them would be useless, so --skip-unreadable does not apply.
        let listed = list(self.target, self.folder, &resource, &self.stage, take).await;
        let needs = "gantry permissions --for snapshot prints the rights that are needed";
        let explain = |error| match error {
            UnlistedResource::Refused(problem) => problem.help(needs),
            UnlistedResource::Failed(problem) => problem,
        };
        self.crds = listed.map_err(|error| Error::failed(explain(error)))?;
        Ok(())
    }

    /// The live objects that the manifests name, and the CRDs of their kinds.
    async fn those_of(&mut self, manifests: LoadedManifests, settings: &Settings) -> Result<()> {
        let (plan, secrets) = plan_of(manifests, settings, self.target).await?;
        self.unread.extend(plan.unread());
        for unplaced in &plan.unplaced {
            let problem = unplaced.problem.clone();
            match unplaced.is_down {
                true => self.unread.push(problem),
                // No object of the kind is live.
                false => self.notices.push(Problem { help: None, ..problem }),
            }
        }
        let mut crds: BTreeSet<String> = BTreeSet::new();
        for change in &plan.changes {
            let resource = &change.resource;
            if change.desired.object.is_crd() {
                crds.insert(change.desired.object.name.clone());
                continue;
            }
            if !kinds::is_built_in(&resource.group) {
                crds.insert(format!("{}.{}", resource.plural, resource.group));
            }
            if let Some(live) = &change.live {
                self.folder.add(live).map_err(Error::failed)?;
            }
        }
        if secrets > 0 {
            let notice = Problem::new(format!("left out of the snapshot: {}", text::count(secrets, "Secret")));
            self.notices.push(notice.help("snapshots never contain Secrets; a check against one treats them as new"));
        }
        let wanted: Vec<ObjectToRead> = crds.iter().map(|name| ObjectToRead::crd(name)).collect();
        for read in self.target.read_each(&wanted, &|_, _| ()).await? {
            match read {
                Ok(Some(live)) => {
                    self.folder.add(&live).map_err(Error::failed)?;
                    self.crds.push(Custom::read(&live).map_err(Error::failed)?);
                }
                Ok(None) => {}
                Err(problem) => self.unread.push(problem),
            }
        }
        Ok(())
    }

    /// The custom resources of these CRDs.
    async fn custom_resources(&mut self) -> Result<()> {
        let (target, folder, stage) = (self.target, self.folder, &self.stage);
        let unserved = self.crds.iter().filter(|custom| custom.resource.is_none());
        self.notices.extend(unserved.map(|custom| {
            let name = text::sanitize(&custom.name);
            Problem::new(format!("left out of the snapshot: objects of {name}, of which no version is served"))
        }));
        let listed = self
            .crds
            .iter()
            .filter_map(|custom| custom.resource.as_ref())
            .map(|resource| async move { list(target, folder, resource, stage, |_| Ok(())).await });
        let listed: Vec<_> = stream::iter(listed).buffer_unordered(AT_ONCE).collect().await;
        let mut failed = Vec::new();
        for of_one in listed {
            match of_one {
                Ok(_) => {}
                Err(UnlistedResource::Refused(problem)) => self.unread.push(problem),
                Err(UnlistedResource::Failed(problem)) => failed.push(problem),
            }
        }
        failed.sort();
        failed.dedup();
        if failed.is_empty() { Ok(()) } else { Err(Error::Failed(failed)) }
    }
}

/// The objects that the manifests name, as they are live, and the number of Secrets, which are left out: they are not
/// read, so no right to read them is needed.
pub(super) async fn plan_of(
    mut manifests: LoadedManifests,
    settings: &Settings,
    target: &Target,
) -> Result<(Plan, usize)> {
    let all = manifests.manifests.len();
    manifests.manifests.retain(|manifest| !manifest.object.is_secret());
    let secrets = all - manifests.manifests.len();
    let policy = super::app::deploy_policy(settings, Deleter::Deploy);
    let taken = TakeoverPatterns::new(&settings.take_ownership);
    let options = PlanOptions {
        namespace: settings.namespace.as_deref(),
        goes_on_unread: true,
        keep_unplaced: true,
        rebases: &settings.rules.rebases,
        ..PlanOptions::new(&policy, &taken)
    };
    Ok((plan::build(manifests, Prefetch::none(), target, options, &|_, _| ()).await?, secrets))
}

/// Converts an item of a list to an object. Items of a folder are complete, and may lack what a server adds.
fn live_of(target: &Target, item: &str, resource: &Resource) -> Option<LiveObject> {
    match target.is_server() {
        true => cluster::listed(item, resource),
        false => Some(LiveObject { raw: RawObject::new(item), uid: String::new(), resource_version: String::new() }),
    }
}

/// Why the objects of a resource are not in the snapshot.
enum UnlistedResource {
    /// The server refuses to list them: `--skip-unreadable` leaves them out.
    Refused(Problem),
    Failed(Problem),
}

impl From<&ListError> for UnlistedResource {
    fn from(error: &ListError) -> Self {
        let problem = error.problem().cloned().unwrap_or_else(|| Problem::new("the list ended early"));
        match error {
            ListError::Forbidden(_) | ListError::NotServed(_) | ListError::Conversion { .. } => Self::Refused(problem),
            ListError::Expired | ListError::Other(_) => Self::Failed(problem),
        }
    }
}

/// Writes the objects of a resource. Returns the result of `take` for each.
async fn list<T>(
    target: &Target,
    folder: &SnapshotFolder,
    resource: &Resource,
    stage: &ProgressStage,
    take: impl Fn(&LiveObject) -> std::result::Result<T, Problem>,
) -> std::result::Result<Vec<T>, UnlistedResource> {
    let mut pages = target.list(&ListRequest::new(resource, PAGE));
    let (mut taken, mut names) = (Vec::new(), Vec::new());
    loop {
        match pages.next().await {
            Ok(Some(page)) => {
                for item in page.items() {
                    let live = live_of(target, item, resource).ok_or_else(|| {
                        let message = format!("the list of {} has an object without a version", resource.plural);
                        UnlistedResource::Failed(Problem::new(message))
                    })?;
                    taken.push(take(&live).map_err(UnlistedResource::Failed)?);
                    names.push(folder.add(&live).map_err(UnlistedResource::Failed)?);
                    stage.advance();
                }
            }
            Ok(None) => return Ok(taken),
            Err(ListError::Expired) => {
                folder.forget(&names);
                taken.clear();
                names.clear();
            }
            Err(error) => {
                folder.forget(&names);
                return Err(UnlistedResource::from(&error));
            }
        }
    }
}

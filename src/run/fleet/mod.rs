//! One run on many clusters: manifests are read once, each cluster is checked by itself, and there is one report of
//! all.
//!
//! A deploy runs in waves. All clusters are checked before anything is written, and those of each later wave again
//! before it begins. A wave does not begin if one of its clusters is blocked or could not be checked. If a cluster was
//! not deployed or is not ready, no later wave begins.

mod contexts;

use std::collections::BTreeSet;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::before;
use super::flow::configured::ConfiguredRun;
use super::flow::migrating::MigratingCrds;
use super::flow::target::{OpenedTarget, detailed, on_target};
use super::host::{Exit, Host};
use super::interrupt::{interrupt, interrupted, until_interrupted};
use super::output::Output;
use super::prepare::{InputOfRun, connection, desired_source, impersonate, read_manifests};
use super::write;
use contexts::FleetMembers;
pub use contexts::{find, may_be_several};
use gantry_cluster::{Connection, DesiredSource, Target};
use gantry_core::hash::fnv128;
use gantry_core::manifest::{Input, LoadedManifests};
use gantry_core::options::{GitSpec, TargetSpec, Waves};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::text;
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::plan::{Plan, Prefetch};
use gantry_k8s_cel::KubernetesRelease;
use gantry_report::{ClusterReport, ErrorEntry, LiveCrds, Outcome, Report, ReportList};
use gantry_schema::scan;

/// The default of `--parallel`.
const AT_ONCE: usize = 8;

/// The most clusters that a notice names.
const NAMED: usize = 10;

/// The results of all clusters.
pub struct FleetOutcome {
    pub list: ReportList,
    pub exit: Exit,
    /// The indices of the clusters with other results than in the report before the deploy; `None` if it was not shown.
    pub fresh: Option<BTreeSet<usize>>,
}

/// The result of one cluster.
struct Done {
    cluster: ClusterReport,
    exit: Exit,
    notices: Vec<Problem>,
}

/// A run on several clusters. Their index is their position in the order in which they were named.
struct Fleet<'a> {
    run: ConfiguredRun<'a>,
    loaded: LoadedManifests,
    /// What was given with `-f`.
    arguments: Vec<String>,
    connection: Connection,
    names: Vec<String>,
    /// What each of them is, if they are no contexts; otherwise empty.
    targets: Vec<MemberTarget>,
    /// The number of clusters in each wave.
    waves: Option<Vec<usize>>,
    /// The progress of the whole run; single clusters show none.
    progress: ProgressDisplay,
}

/// A member that stands for a cluster: a folder or a commit, and the release of Kubernetes that it is judged as.
struct MemberTarget {
    spec: TargetSpec,
    release: Option<KubernetesRelease>,
}

/// Runs on all clusters. The errors of one cluster are part of its report.
///
/// # Errors
/// What is wrong before the first request.
pub async fn run(
    mut run: ConfiguredRun<'_>,
    members: FleetMembers,
    input: Input,
    host: &mut Host,
    output: &mut Output,
) -> Result<FleetOutcome> {
    let mut connection = connection(&run.settings, impersonate(&run.settings)?);
    let (names, targets) = match members {
        FleetMembers::Contexts { kubeconfig, names } => {
            connection.read = Some(kubeconfig);
            (names, Vec::new())
        }
        FleetMembers::Releases(releases) => {
            let member = |release: KubernetesRelease| {
                let spec = run.settings.target.clone();
                (format!("Kubernetes {release}"), MemberTarget { spec, release: Some(release) })
            };
            releases.into_iter().map(member).unzip()
        }
        FleetMembers::Commits(specs) => {
            let release = run.settings.kube_versions.first().copied();
            let member = |spec: GitSpec| {
                let name = spec.to_string();
                let name = name.strip_prefix("git:").unwrap_or(&name).to_owned();
                (name, MemberTarget { spec: TargetSpec::Git(spec), release })
            };
            specs.into_iter().map(member).unzip()
        }
    };
    let waves = sizes(run.waves(), run.writes, names.len())?;
    let arguments = input.arguments().to_vec();
    let mut loaded = until_interrupted(&host.stop.clone(), read_manifests(&run.settings, input)).await?;
    run.check_manifests(&mut loaded)?;
    run.known = Some(Arc::default());
    let progress = std::mem::replace(&mut run.progress, ProgressDisplay::Hidden);
    let writes = std::mem::replace(&mut run.writes, false);

    let mut fleet = Fleet { run, loaded, arguments, connection, names, targets, waves, progress };
    let all: Vec<usize> = (0..fleet.names.len()).collect();
    let mut state = FleetState::default();
    if let (true, Some(shard)) = (all.is_empty(), fleet.run.args.many.shard) {
        let notice = Problem::new(format!("--shard {shard} contains none of the clusters; nothing is checked"));
        output.print_notices(host, &[notice]);
    }
    state.take(fleet.on_each(&all, "checking clusters", host, output).await, host, output);
    let goes_on = match writes {
        true => fleet.deploy(&mut state, host, output).await,
        false => Ok(()),
    };
    let mut exit = state.worst_exit();
    let mut list = ReportList::new(state.clusters);
    let stopped = goes_on.err().or_else(|| host.stop.borrow().then(interrupted));
    if let Some(error) = stopped {
        exit = worst_exit([exit, Exit::from(&error)].into_iter());
        list.stop(error.problems().iter().map(ErrorEntry::from));
    }
    Ok(FleetOutcome { list, exit, fresh: writes.then_some(state.fresh) })
}

/// The number of clusters in each wave; `None` without `--waves`.
fn sizes(waves: Option<&Waves>, writes: bool, clusters: usize) -> Result<Option<Vec<usize>>> {
    const HELP: &str = "deploy in waves: --waves 1,10%,100%; to all at once: --waves 100%; or only check: --dry-run";
    let Some(waves) = waves else {
        let problem = Problem::new("a deploy to several contexts requires waves").help(HELP);
        return if writes { Err(Error::usage(problem)) } else { Ok(None) };
    };
    let sizes = waves.sizes(clusters).map_err(|why| {
        Error::usage(Problem::new(format!("--waves: {why}")).help("end with all of them: --waves 1,10%,100%"))
    });
    sizes.map(Some)
}

/// What is known of each cluster so far.
#[derive(Default)]
struct FleetState {
    clusters: Vec<ClusterReport>,
    exits: Vec<Exit>,
    /// Notices that were printed already.
    told: BTreeSet<Problem>,
    /// The clusters with other results than when the report was first shown.
    fresh: BTreeSet<usize>,
}

impl FleetState {
    /// Adds the results of some clusters, and prints their notices.
    fn take(&mut self, done: Vec<(usize, Done)>, host: &mut Host, output: &mut Output) {
        let mut notices: Vec<(Problem, Vec<String>)> = Vec::new();
        let mut warnings: Vec<(ErrorEntry, Vec<String>)> = Vec::new();
        let number = done.len();
        for (_, Done { cluster, notices: of_cluster, .. }) in &done {
            for notice in of_cluster {
                add_to_entry(&mut notices, notice, &cluster.name);
            }
            for warning in &cluster.report.warnings {
                add_to_entry(&mut warnings, warning, &cluster.name);
            }
        }
        let of = |message: &str, names: &[String]| match names.len() == number {
            true => message.to_owned(),
            false => format!("{}: {message}", gantry_report::list_names(names.iter().map(String::as_str), NAMED)),
        };
        let mut notices: Vec<Problem> = notices
            .into_iter()
            .map(|(notice, names)| Problem { message: of(&notice.message, &names), ..notice })
            .collect();
        notices.retain(|notice| self.told.insert(notice.clone()));
        output.print_notices(host, &notices);
        let warnings: Vec<ErrorEntry> = warnings
            .into_iter()
            .map(|(warning, names)| ErrorEntry { message: of(&warning.message, &names), ..warning })
            .collect();
        if self.clusters.is_empty() {
            output.print_warnings(host, &warnings);
        }
        for (index, Done { cluster, exit, .. }) in done {
            match self.clusters.get_mut(index) {
                Some(known) => {
                    // The same result again need not be shown again.
                    if !known.has_same_section(&cluster) {
                        self.fresh.insert(index);
                    }
                    *known = cluster;
                    self.exits[index] = exit;
                }
                None => {
                    self.clusters.push(cluster);
                    self.exits.push(exit);
                }
            }
        }
    }

    fn passes(&self, index: usize) -> bool {
        matches!(self.exits[index], Exit::Success | Exit::Changes)
    }

    fn worst_exit(&self) -> Exit {
        worst_exit(self.exits.iter().copied())
    }
}

/// Adds a cluster to the entry that equals this one, or appends the entry.
fn add_to_entry<T: PartialEq + Clone>(entries: &mut Vec<(T, Vec<String>)>, entry: &T, cluster: &str) {
    match entries.iter_mut().find(|(known, _)| known == entry) {
        Some((_, clusters)) => clusters.push(cluster.to_owned()),
        None => entries.push((entry.clone(), vec![cluster.to_owned()])),
    }
}

/// The exit code of a run with these results. As with one cluster, blocked takes precedence over failed.
pub fn worst_exit(exits: impl Iterator<Item = Exit>) -> Exit {
    let weight = |exit: &Exit| match exit {
        Exit::Success => 0,
        Exit::Changes => 1,
        Exit::NotReady => 2,
        Exit::Failed => 3,
        Exit::Blocked => 4,
        Exit::Usage => 5,
    };
    exits.max_by_key(weight).unwrap_or(Exit::Success)
}

impl Fleet<'_> {
    /// Runs on these clusters, as many at a time as `--parallel` allows. The results are in their order.
    async fn on_each(&self, clusters: &[usize], what: &str, host: &mut Host, output: &Output) -> Vec<(usize, Done)> {
        let stage = self.progress.stage(what, Some(clusters.len()));
        let at_once = self.run.args.many.parallel.map_or(AT_ONCE, std::num::NonZero::get);
        let around = host.for_cluster();
        let mut done: Vec<(usize, Done)> = {
            let runs = clusters.iter().map(|&index| {
                let (host, output) = (around.for_cluster(), output.for_cluster());
                async move { (index, Box::pin(self.on_one(index, host, output)).await) }
            });
            // A slow one does not delay the others: the results are sorted afterwards.
            let running = stream::iter(runs).buffer_unordered(at_once).inspect(|(index, _)| {
                stage.advance();
                stage.note(&self.names[*index]);
            });
            let stop = host.stop.clone();
            let mut running = pin!(running.collect());
            tokio::select! {
                done = &mut running => done,
                () = interrupt(&stop) => {
                    if self.run.writes {
                        stage.aside(|| {
                            let _ = writeln!(host.stderr, "{}", write::FINISHING);
                        });
                    }
                    running.await
                }
            }
        };
        done.sort_by_key(|(index, _)| *index);
        done
    }

    /// Runs on one cluster.
    async fn on_one(&self, index: usize, mut host: Host, mut output: Output) -> Done {
        let name = &self.names[index];
        let mut cluster = ClusterReport {
            name: name.clone(),
            server: None,
            wave: self.wave_of(index).map(|wave| wave + 1),
            not_reached: false,
            live_crds: None,
            report: Report { target: self.describe(index), ..Report::default() },
        };
        let exit = match self.steps(index, &mut cluster, &mut host, &mut output).await {
            Ok(exit) if self.run.args.detailed_exitcode => detailed(exit, &cluster.report),
            Ok(exit) => exit,
            Err(error) => {
                output.add_to(&mut cluster.report, &error);
                Exit::from(&error)
            }
        };
        Done { cluster, exit, notices: output.take_notices() }
    }

    async fn open(&self, index: usize) -> Result<Target> {
        let Some(MemberTarget { spec, release }) = self.targets.get(index) else {
            let connection = Connection { context: Some(self.names[index].clone()), ..self.connection.clone() };
            return Target::open(&TargetSpec::Kube, &connection, DesiredSource::default()).await;
        };
        let settings = &self.run.settings;
        let desired = desired_source(settings, &self.arguments, Some(&self.loaded));
        Ok(Target::open(spec, &self.connection, desired).await?.with_release(*release))
    }

    async fn steps(
        &self,
        index: usize,
        cluster: &mut ClusterReport,
        host: &mut Host,
        output: &mut Output,
    ) -> Result<Exit> {
        let stop = host.stop.clone();
        if *stop.borrow() {
            return Err(interrupted());
        }
        let opening = async {
            let target = self.open(index).await?;
            let before = match self.run.input_of_run() {
                Some(InputOfRun { flags, input }) => {
                    before::look_ahead(&self.run.settings, flags, input, &target).await?
                }
                None => None,
            };
            Ok((target, before))
        };
        let (target, before) = until_interrupted(&stop, opening).await?;
        cluster.server = target.address().map(str::to_owned);
        let baseline = self.run.baselines.as_ref().map(|all| all.for_cluster(&cluster.name));
        let context = self.targets.is_empty().then(|| self.names[index].as_str());
        let (ahead, migrating) = (Prefetch::none(), MigratingCrds::default());
        let at = OpenedTarget { target, ahead, before, baseline: baseline.as_ref(), migrating, context };
        let ClusterReport { live_crds, report, .. } = cluster;
        let mut on_plan = |plan: &Plan| *live_crds = Some(live(plan));
        on_target(&self.run, self.loaded.clone(), at, host, output, report, &mut on_plan).await
    }

    /// A member before it was opened.
    fn describe(&self, index: usize) -> String {
        let name = &self.names[index];
        match self.targets.get(index) {
            None => format!("kube: {name}"),
            Some(MemberTarget { spec: TargetSpec::Git(_), .. }) => format!("git: {name}"),
            Some(_) => name.clone(),
        }
    }

    /// The wave of a cluster, from 0.
    fn wave_of(&self, index: usize) -> Option<usize> {
        let mut reached = 0;
        self.waves.as_ref()?.iter().position(|size| {
            reached += size;
            index < reached
        })
    }

    /// Deploys in waves, once all clusters have been checked.
    ///
    /// # Errors
    /// The user does not confirm, or the report cannot be written.
    async fn deploy(&mut self, state: &mut FleetState, host: &mut Host, output: &mut Output) -> Result<()> {
        let list = ReportList::new(std::mem::take(&mut state.clusters));
        let shown = output.review_list(host, &list);
        state.clusters = list.clusters;
        let waves = self.waves.clone().unwrap_or_default();
        let reached = match shown {
            Ok(()) => self.waves_of(state, &waves, host, output).await,
            Err(error) => (0, Err(error)),
        };
        let (reached, result) = reached;
        for index in 0..self.names.len() {
            let cluster = &mut state.clusters[index];
            let is_begun = self.wave_of(index).is_some_and(|wave| wave < reached);
            cluster.not_reached = !is_begun && matches!(cluster.report.outcome, Outcome::Planned | Outcome::Unchanged);
        }
        result
    }

    /// How many waves began.
    async fn waves_of(
        &mut self,
        state: &mut FleetState,
        waves: &[usize],
        host: &mut Host,
        output: &mut Output,
    ) -> (usize, Result<()>) {
        let members = |wave: usize| {
            let first = waves[..wave].iter().sum::<usize>();
            (first..first + waves[wave]).collect::<Vec<usize>>()
        };
        let changes = state.clusters.iter().filter(|cluster| cluster.has_changes()).count();
        for wave in 0..waves.len() {
            let members = members(wave);
            if wave > 0 {
                let what = format!("checking wave {} of {}", wave + 1, waves.len());
                self.run.writes = false;
                let done = self.on_each(&members, &what, host, output).await;
                state.take(done, host, output);
            }
            if *host.stop.borrow() || !members.iter().all(|index| state.passes(*index)) {
                return (wave, Ok(()));
            }
            if wave == 0 && changes > 0 && !self.run.confirmed && host.stdin_is_terminal && host.stderr_is_terminal {
                let question = question(waves, changes);
                if let Err(error) = write::confirm(host, &question).await {
                    return (0, Err(error));
                }
            }
            (self.run.writes, self.run.confirmed) = (true, true);
            let what = format!("deploying wave {} of {}", wave + 1, waves.len());
            let done = self.on_each(&members, &what, host, output).await;
            state.take(done, host, output);
            if *host.stop.borrow() || !members.iter().all(|index| state.passes(*index)) {
                return (wave + 1, Ok(()));
            }
        }
        (waves.len(), Ok(()))
    }
}

/// `Deploy to 50 clusters (48 with changes) in waves of 1, 4 and 45?`
fn question(waves: &[usize], changes: usize) -> String {
    let all = text::count(waves.iter().sum(), "cluster");
    let sizes: Vec<String> = waves.iter().map(ToString::to_string).collect();
    let waves = match &sizes[..] {
        [] | [_] => String::new(),
        [first @ .., last] => format!(" in waves of {} and {last}", first.join(", ")),
    };
    format!("Deploy to {all} ({changes} with changes){waves}?")
}

/// A hash of the live state of each CRD of the plan. CRDs that could not be read are left out.
fn live(plan: &Plan) -> LiveCrds {
    let crds = plan.changes.iter().filter(|change| change.desired.object.is_crd() && change.unread.is_none());
    let hash = |change: &gantry_deploy::plan::Change| {
        let json = change.live.as_ref()?.raw.json();
        Some(format!("{:016x}", (fnv128(spec(&json).as_bytes()) >> 64) as u64))
    };
    crds.map(|change| (change.desired.object.name.clone(), hash(change))).collect()
}

/// The part of a live CRD that is compared between clusters, without the CA bundle, which each cluster has its own of.
/// The server always writes keys in the same order.
fn spec(crd: &str) -> std::borrow::Cow<'_, str> {
    let spec = scan::member(crd, "spec").unwrap_or_default();
    if !spec.contains("caBundle") {
        return spec.into();
    }
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(spec) else { return spec.into() };
    let config = value.pointer_mut("/conversion/webhook/clientConfig").and_then(serde_json::Value::as_object_mut);
    config.and_then(|config| config.remove("caBundle"));
    value.to_string().into()
}

//! The settings of a run: the validated form of the merged configuration.

use std::path::PathBuf;
use std::time::Duration;

use super::catalogs::CatalogSource;
use super::custom::CustomCheck;
use super::keys;
use super::lists::ConfiguredRules;
use super::located::LocatedValue;
use super::merge::Merged;
use super::origin::{Layer, SettingOrigin};
use super::selected::{SelectedCheck, Switch};
use super::waivers::Waiver;
use crate::options::{ColorChoice, OutputSpec, Prune, PruneMax, TargetSpec, WaitPolicy};
use crate::problem::Problem;
use crate::render::Render;

/// The configuration of a run: merged, complete and valid.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The checks that run, in the order in which they were named.
    pub checks: Vec<SelectedCheck>,
    /// Every check that the files define, whether it runs or not, by name.
    pub custom_checks: Vec<CustomCheck>,
    /// Findings that may pass, in the order of the file.
    pub waivers: Vec<Waiver>,
    /// The rules about objects of all layers.
    pub rules: ConfiguredRules,
    /// Where the metadata of packages comes from.
    pub catalogs: Vec<CatalogSource>,
    pub warn_only: bool,
    /// What decides that CRDUpgradeSafety does not run, if that is so.
    pub without_crd_safety: Option<SettingOrigin>,
    pub target: TargetSpec,
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// The user or service account to impersonate.
    pub user: Option<String>,
    /// The groups to impersonate.
    pub groups: Vec<String>,
    pub namespace: Option<String>,
    pub field_manager: String,
    pub force_conflicts: bool,
    /// Patterns of objects to take over from the tools that own them.
    pub take_ownership: Vec<String>,
    /// The app that the objects belong to.
    pub app: Option<String>,
    /// The namespace that holds the app's record.
    pub app_namespace: Option<String>,
    pub prune: Option<Prune>,
    pub prune_max: Option<PruneMax>,
    /// What a deploy waits for.
    pub wait: WaitPolicy,
    /// A deploy shows the last log lines of the container that keeps an awaited object from being ready.
    pub logs: bool,
    /// gantry does not wait for APIServices, and one whose API does not respond blocks nothing.
    pub ignore_failing_api_services: bool,
    /// A deploy continues with objects that do not depend on an object that failed.
    pub keep_going: bool,
    /// Programs that the project file names may run.
    pub allow_exec: bool,
    /// The program that renders the manifests.
    pub render: Option<Render>,
    pub timeouts: Timeouts,
    /// No output contains a value of an object.
    pub redact: bool,
    pub output: Vec<OutputSpec>,
    /// The project file names the outputs.
    pub output_is_of_project: bool,
    pub color: ColorChoice,
    pub(super) switches: Vec<Switch>,
    pub(super) tree: LocatedValue,
}

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Of one request to the API server.
    pub request: Duration,
    /// Until an applied CRD is Established.
    pub established: Duration,
    /// Until a webhook answers, while its failure keeps an object from being written.
    pub apply: Duration,
    /// Until the written objects are ready, for all waits of a run together.
    pub ready: Duration,
    /// Until one object is ready; `None` for no separate limit.
    pub resource: Option<Duration>,
    /// Until the deleted objects are gone.
    pub delete: Duration,
    /// Of a non-interactive credential plugin.
    pub credentials: Duration,
}

impl Settings {
    /// Converts the raw configuration to validated settings. Each document was validated before, so an error here is a
    /// bug in a default or in the merge.
    pub(super) fn new(
        merged: Merged,
        checks: Vec<SelectedCheck>,
        custom_checks: Vec<CustomCheck>,
        (waivers, rules, catalogs): (Vec<Waiver>, ConfiguredRules, Vec<CatalogSource>),
        switches: Vec<Switch>,
    ) -> std::result::Result<Settings, Problem> {
        let Merged { raw, tree, .. } = merged;
        let wrong = |path: &str, why: String| {
            let message = format!("{path}: {why}");
            tree.at(path).map_or_else(|| Problem::new(message.clone()), |found| found.place.problem(&message))
        };
        let missing = |path: &'static str| move || Problem::new(format!("{path} has no value"));
        let limits = raw.timeouts.unwrap_or_default();
        let limit = |path: &'static str, text: Option<String>| {
            keys::duration(&text.ok_or_else(missing(path))?).map_err(|why| wrong(path, why))
        };
        let target = raw.target.ok_or_else(missing("target"))?;
        let output = raw.output.ok_or_else(missing("output"))?;
        // A deploy of an app waits until the app runs. CRDs are awaited in any case, because later objects may need
        // them.
        let by_default = if raw.app.is_some() { WaitPolicy::True } else { WaitPolicy::Crds };
        let color = raw.color.ok_or_else(missing("color"))?;
        Ok(Settings {
            checks,
            custom_checks,
            waivers,
            rules,
            catalogs,
            without_crd_safety: None,
            warn_only: raw.warn_only.ok_or_else(missing("warnOnly"))?,
            target: target.parse().map_err(|why| wrong("target", why))?,
            kubeconfig: raw.kubeconfig.map(PathBuf::from),
            context: raw.context,
            user: raw.user,
            groups: raw.as_groups.unwrap_or_default(),
            namespace: raw.namespace,
            field_manager: raw.field_manager.ok_or_else(missing("fieldManager"))?,
            force_conflicts: raw.force_conflicts.ok_or_else(missing("forceConflicts"))?,
            take_ownership: raw.take_ownership.unwrap_or_default(),
            app: raw.app,
            app_namespace: raw.app_namespace,
            prune: raw.prune.map(|text| keys::prune(&text)).transpose().map_err(|why| wrong("prune", why))?,
            prune_max: raw.prune_max.map(|text| text.parse()).transpose().map_err(|why| wrong("pruneMax", why))?,
            wait: raw.wait.map_or(Ok(by_default), |wait| keys::wait(&wait)).map_err(|why| wrong("wait", why))?,
            logs: raw.logs.ok_or_else(missing("logs"))?,
            ignore_failing_api_services: raw
                .ignore_failing_api_services
                .ok_or_else(missing("ignoreFailingApiServices"))?,
            keep_going: raw.keep_going.ok_or_else(missing("keepGoing"))?,
            render: raw.render.map(|text| text.parse()).transpose().map_err(|why| wrong("render", why))?,
            allow_exec: raw.allow_exec.ok_or_else(missing("allowExec"))?,
            timeouts: Timeouts {
                request: limit("timeouts.request", limits.request)?,
                established: limit("timeouts.established", limits.established)?,
                apply: limit("timeouts.apply", limits.apply)?,
                ready: limit("timeouts.ready", limits.ready)?,
                resource: limits.resource.map(|text| limit("timeouts.resource", Some(text))).transpose()?,
                delete: limit("timeouts.delete", limits.delete)?,
                credentials: limit("timeouts.credentials", limits.credentials)?,
            },
            redact: raw.redact.ok_or_else(missing("redact"))?,
            output: output
                .iter()
                .map(|text| text.parse().map_err(|why| wrong("output", why)))
                .collect::<std::result::Result<_, _>>()?,
            output_is_of_project: tree.at("output").is_some_and(|found| found.layer == Layer::Project),
            color: keys::color(&color).map_err(|why| wrong("color", why))?,
            switches,
            tree,
        })
    }
}

//! The settings of a run: the validated form of the merged configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::admission::AdmissionSettings;
use super::custom::CustomCheck;
use super::keys::{self, ConfigKey, table};
use super::lists::ConfiguredRules;
use super::located::LocatedValue;
use super::merge::Merged;
use super::origin::{Layer, SettingOrigin};
use super::selected::{SelectedCheck, Switch};
use super::waivers::Waiver;
use gantry_catalog::NamedRelease;
use gantry_cluster::{BearerToken, ConnectionOverrides};
use gantry_core::options::{
    AdmissionMode, ColorChoice, FailOn, InvalidOption, KappLines, OutputSpec, Prune, PruneMax, TargetSpec, WaitPolicy,
};
use gantry_core::problem::Problem;
use gantry_core::render::{ChartOptions, Render, Renderers};
use gantry_k8s_cel::KubernetesRelease;
use gantry_olm::source::CatalogSource;

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
    /// What decides that CRDUpgradeSafety does not run, if that is so.
    pub without_crd_safety: Option<SettingOrigin>,
    /// What is read and written.
    pub target: TargetSpec,
    /// The releases of Kubernetes that a target without a server stands for; empty for the target's own.
    pub kube_versions: BTreeSet<KubernetesRelease>,
    /// The release of OLM v1; `None` for that of the cluster.
    pub olm: Option<NamedRelease>,
    /// `None` for the client's own default.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; `None` for its current one.
    pub context: Option<String>,
    /// What replaces parts of that context.
    pub connection: ConnectionOverrides,
    /// The user or service account to impersonate.
    pub user: Option<String>,
    /// The groups to impersonate.
    pub groups: Vec<String>,
    /// The namespace of objects whose manifest names none; `None` for the target's default.
    pub namespace: Option<String>,
    /// The name that owns the fields that gantry writes; `gantry` by default.
    pub field_manager: String,
    /// Patterns of objects to take over from the tools that own them.
    pub take_ownership: Vec<String>,
    /// The app that the objects belong to.
    pub app: Option<String>,
    /// The namespace that holds the app's record.
    pub app_namespace: Option<String>,
    /// `None` if nothing sets it; then the command decides.
    pub prune: Option<Prune>,
    /// `None` for no limit.
    pub prune_max: Option<PruneMax>,
    /// How many revisions of the app are kept.
    pub history: u32,
    /// Which findings block.
    pub fail_on: FailOn,
    /// What a deploy waits for.
    pub wait: WaitPolicy,
    /// The programs that render the manifests.
    pub renderers: Renderers,
    /// What the admission webhook does.
    pub admission: AdmissionSettings,
    /// How long gantry waits for what.
    pub timeouts: Timeouts,
    /// The formats of the report, each with its file.
    pub output: Vec<OutputSpec>,
    /// The project file names the outputs.
    pub output_is_of_project: bool,
    /// When to write styles.
    pub color: ColorChoice,
    /// Whether the lines of kapp and OLM are printed.
    pub kapp_lines: KappLines,
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
    /// Whether a check may run that nothing names: no file switches it off, and no flag or variable names exactly the
    /// checks that run.
    pub fn may_add_check(&self, name: &str) -> bool {
        self.switches.iter().all(|switch| switch.name != name && switch.layer < Layer::Environment)
    }

    /// Converts the raw configuration to validated settings. Each document was validated before, so an error here is a
    /// bug in a default or in the merge.
    pub(super) fn new(
        merged: Merged,
        checks: Vec<SelectedCheck>,
        custom_checks: Vec<CustomCheck>,
        (waivers, rules, catalogs): (Vec<Waiver>, ConfiguredRules, Vec<CatalogSource>),
        switches: Vec<Switch>,
    ) -> Result<Settings, Problem> {
        let Merged { tree, .. } = merged;
        let values = SettingValues(&tree);
        if let Some(context) = tree.at(table::CONTEXT.path).filter(|context| context.layer == Layer::Project) {
            let parts = [&table::CLUSTER, &table::USER, &table::SERVER, &table::TOKEN];
            if let Some(part) = parts.into_iter().find(|part| values.text(part).is_some()) {
                let flag = part.flag.unwrap_or(part.path);
                let problem = context.place.problem(format!(
                    "the project file chooses a context, and {flag} is also given: it may not choose where this goes"
                ));
                return Err(problem.help("also name the context yourself: --context or GANTRY_CONTEXT"));
            }
        }
        let app = values.text(&table::APP);
        // A deploy of an app waits until the app runs. CRDs are awaited in any case, because later objects may need
        // them.
        let by_default = if app.is_some() { WaitPolicy::True } else { WaitPolicy::Crds };
        Ok(Settings {
            checks,
            custom_checks,
            waivers,
            rules,
            catalogs,
            without_crd_safety: None,
            target: match values.value(&table::TARGET) {
                Some(value) => keys::target(&value).map_err(|why| values.invalid_value(&table::TARGET, &why))?,
                None => TargetSpec::Kube,
            },
            kube_versions: match values.value(&table::KUBE_VERSION) {
                Some(value) => {
                    keys::releases(&value).map_err(|why| values.invalid_value(&table::KUBE_VERSION, &why))?
                }
                None => BTreeSet::new(),
            },
            olm: values.parsed(&table::OLM, NamedRelease::parse)?.flatten(),
            kubeconfig: values.text(&table::KUBECONFIG).map(PathBuf::from),
            context: values.text(&table::CONTEXT),
            connection: ConnectionOverrides {
                cluster: values.text(&table::CLUSTER),
                user: values.text(&table::USER),
                server: values.text(&table::SERVER),
                token: values.text(&table::TOKEN).map(BearerToken::new),
            },
            user: values.text(&table::AS_USER),
            groups: values.texts(&table::AS_GROUPS),
            namespace: values.text(&table::NAMESPACE),
            field_manager: values.required(&table::FIELD_MANAGER, |text| Ok(text.to_owned()))?,
            take_ownership: values.texts(&table::TAKE_OWNERSHIP),
            app,
            app_namespace: values.text(&table::APP_NAMESPACE),
            prune: values.parsed(&table::PRUNE, keys::word)?,
            prune_max: values.parsed(&table::PRUNE_MAX, |text| Ok(text.parse::<PruneMax>()?))?,
            history: match values.value(&table::HISTORY) {
                Some(history) => keys::count(&history).map_err(|why| values.invalid_value(&table::HISTORY, &why))?,
                None => 0,
            },
            fail_on: values.required(&table::FAIL_ON, keys::word)?,
            wait: match values.value(&table::WAIT) {
                Some(wait) => keys::wait(&wait).map_err(|why| values.invalid_value(&table::WAIT, &why))?,
                None => by_default,
            },
            renderers: Renderers {
                command: values.parsed(&table::RENDER, |text| Ok(text.parse::<Render>()?))?,
                charts: ChartOptions {
                    values: values.texts(&table::CHART_VALUES),
                    set: values.texts(&table::CHART_SET),
                    release: values.text(&table::CHART_RELEASE),
                    version: values.text(&table::CHART_VERSION),
                    namespace: values.text(&table::NAMESPACE),
                    ..ChartOptions::default()
                },
            },
            admission: AdmissionSettings {
                mode: values.required(&table::ADMISSION_MODE, keys::word)?,
                scopes: [
                    (AdmissionMode::Ignore, &table::ADMISSION_IGNORE),
                    (AdmissionMode::Audit, &table::ADMISSION_AUDIT),
                    (AdmissionMode::Warn, &table::ADMISSION_WARN),
                    (AdmissionMode::Deny, &table::ADMISSION_DENY),
                ]
                .map(|(mode, key)| (mode, values.texts(key)))
                .into(),
                on_timeout: values.required(&table::ADMISSION_ON_TIMEOUT, keys::word)?,
                accepted_by: values.texts(&table::ADMISSION_ACCEPTED_BY),
            },
            timeouts: Timeouts {
                request: values.required(&table::REQUEST_TIMEOUT, keys::duration)?,
                established: values.required(&table::ESTABLISHED_TIMEOUT, keys::duration)?,
                apply: values.required(&table::APPLY_TIMEOUT, keys::duration)?,
                ready: values.required(&table::READY_TIMEOUT, keys::duration)?,
                resource: values.parsed(&table::RESOURCE_TIMEOUT, keys::duration)?,
                delete: values.required(&table::DELETE_TIMEOUT, keys::duration)?,
                credentials: values.required(&table::CREDENTIALS_TIMEOUT, keys::duration)?,
            },
            output: values
                .texts(&table::OUTPUT)
                .iter()
                .map(|text| {
                    text.parse().map_err(|why: InvalidOption| values.invalid_value(&table::OUTPUT, &why.to_string()))
                })
                .collect::<Result<_, _>>()?,
            output_is_of_project: tree.at(table::OUTPUT.path).is_some_and(|found| found.layer == Layer::Project),
            color: values.required(&table::COLOR, keys::word)?,
            kapp_lines: values.required(&table::KAPP_LINES, keys::word)?,
            switches,
            tree,
        })
    }

    /// Whether the boolean of this row is true.
    pub fn is_on(&self, key: &ConfigKey) -> bool {
        key.is_on(&self.tree)
    }
}

/// Reads the merged values by the rows of their keys.
struct SettingValues<'a>(&'a LocatedValue);

impl SettingValues<'_> {
    fn value(&self, key: &ConfigKey) -> Option<Value> {
        self.0.at(key.path).map(LocatedValue::to_value).filter(|value| !value.is_null())
    }

    fn text(&self, key: &ConfigKey) -> Option<String> {
        self.value(key)?.as_str().map(str::to_owned)
    }

    /// The texts of a list; none if the key has no value.
    fn texts(&self, key: &ConfigKey) -> Vec<String> {
        let list = self.value(key).unwrap_or_default();
        list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    fn parsed<T>(&self, key: &ConfigKey, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Problem> {
        self.text(key).map(|text| parse(&text).map_err(|why| self.invalid_value(key, &why))).transpose()
    }

    fn required<T>(&self, key: &ConfigKey, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, Problem> {
        self.parsed(key, parse)?.ok_or_else(|| Problem::new(format!("{} has no value", key.path)))
    }

    fn invalid_value(&self, key: &ConfigKey, why: &str) -> Problem {
        let message = format!("{}: {why}", key.path);
        match self.0.at(key.path) {
            Some(found) => found.place.problem(message),
            None => Problem::new(message),
        }
    }
}

//! The table of the keys of a Config.

use super::ConfigKey;
use super::Reach::{Files, Manifests, OwnFiles};
use super::kind::SettingKind::{
    AdmissionMode, App, Bindings, Bool, Catalogs, Color, Command, Count, Duration, FailOn, FieldManager, File, Groups,
    KappLines, Labels, Namespace, OlmRelease, Outputs, Paths, Patterns, Preset, Prune, PruneMax, Releases, Rules,
    Secret, Target, Text, Toggle, UnjudgedChange, User, Wait, Waivers,
};

/// Makes a constant of each row, and the list of all rows. The comment of a row describes the key to users: in the
/// JSON Schema of configuration files, which editors show.
macro_rules! config_keys {
    ($($(#[doc = $about:literal])+ $name:ident = $key:expr;)+) => {
        $($(#[doc = $about])+ pub const $name: ConfigKey = $key.about(concat!($($about),+));)+

        /// Every key, in display order.
        pub const KEYS: &[ConfigKey] = &[$($name),+];
    };
}

const fn key(path: &'static str, kind: super::SettingKind, reach: super::Reach) -> ConfigKey {
    ConfigKey::new(path, kind, reach)
}

#[rustfmt::skip]
config_keys! {
    /// The preflight checks that run, with their configuration. Entries of several files merge by name.
    /// If no file names a built-in check, CRDUpgradeSafety and CustomResourceValidation run, with your own checks.
    PREFLIGHT_RULES = key("preflightRules", Rules, Manifests);
    /// Findings of any check that may pass. Each waiver needs a reason.
    WAIVERS = key("waivers", Waivers, Files);
    /// Where the metadata of packages comes from. Entries of several files merge by name. Not allowed among the
    /// manifests.
    CATALOGS = key("catalogs", Catalogs, Files);
    /// Change groups of the objects that match. The lists of several files are concatenated.
    CHANGE_GROUP_BINDINGS = key("changeGroupBindings", Bindings, Manifests);
    /// Change rules of the objects that match. The lists of several files are concatenated.
    CHANGE_RULE_BINDINGS = key("changeRuleBindings", Bindings, Manifests);
    /// When the objects that match are ready; the first rule that matches decides. The lists of several files are
    /// concatenated.
    WAIT_RULES = key("waitRules", Bindings, Manifests);
    /// Fields whose live value is kept when an object is updated. The lists of several files are concatenated.
    REBASE_RULES = key("rebaseRules", Bindings, Manifests);
    /// Fields whose values are masked in diffs. The lists of several files are concatenated.
    DIFF_MASK_RULES = key("diffMaskRules", Bindings, Manifests);
    /// Fields that are left out of diffs. The lists of several files are concatenated.
    DIFF_AGAINST_EXISTING_FIELD_EXCLUSION_RULES = key("diffAgainstExistingFieldExclusionRules", Bindings, Manifests);
    /// Labels that are set on every object.
    ADDITIONAL_LABELS = key("additionalLabels", Labels, Manifests);
    /// Whose verdict about the upgrade of a CRD counts: the preset of CRDUpgradeSafety. The check's own config.preset
    /// wins over this key of the same or an earlier layer.
    PRESET = key("preset", Preset, Files).flag("--preset");
    /// The release of OLM v1 that installs the ClusterExtensions: v1.10, 1.10 or v1.10.1; 4.18 for the one of OpenShift
    /// 4.18; current for the newest that is known. The default, auto, is the release of the cluster.
    OLM = key("olm", OlmRelease, Files).flag("--olm");
    /// Report every finding of the run as a warning. "Could not check" is still an error.
    WARN_ONLY = key("warnOnly", Bool, Files).default("false").makes_flag("--warn-only", "", "Turn every finding into a warning (\"could not check\" stays an error)");
    /// Which findings block: only errors, or warnings, too.
    FAIL_ON = key("failOn", FailOn, Files).default("error").makes_flag("--fail-on", "error|warning", "Which findings block: error, or warning for both [default: error]");
    /// Where to deploy to: kube, or dir:PATH, a folder of manifests that stands in for a cluster; or what to check
    /// against: git:REV[:PATH], the manifests of a commit; several commits are git:REV,REV[:PATH] or a list;
    /// chart:CHART, what Helm renders from a chart; helm:RELEASE, what Helm has recorded in the cluster.
    TARGET = key("target", Target, Files).default("kube").flag("--target");
    /// The release of Kubernetes that a folder or commit stands for, or several: 1.30, or 1.28,1.32. A cluster says its
    /// own, and a snapshot the one of its cluster. The default is the newest release that is known.
    KUBE_VERSION = key("kubeVersion", Releases, Files).makes_flag("--kube-version", "RELEASE,…", "The release of Kubernetes that a dir:, git: or chart: target stands for, or several, for example 1.30 [default: that of the snapshot, else the newest known]");
    /// A program that renders each folder of -f; {dir} stands for the folder: kustomize build {dir}. Not allowed in
    /// gantry.yaml.
    RENDER = key("render", Command, OwnFiles).flag("--render");
    /// Files with values for the Helm charts of -f, later ones win. Not allowed in gantry.yaml.
    CHART_VALUES = key("chart.values", Paths, OwnFiles).flag("--values");
    /// Single values for the Helm charts of -f, as helm template --set takes them.
    CHART_SET = key("chart.set", Patterns, Files).flag("--set");
    /// The name of the release that the Helm charts of -f are rendered as. The default is the name of the chart.
    CHART_RELEASE = key("chart.release", Text, Files).flag("--release");
    /// The version of the Helm charts of -f that are in a registry.
    CHART_VERSION = key("chart.version", Text, Files).flag("--chart-version");
    /// The kubeconfig file. A relative path is resolved against the folder of the config file. Not allowed in
    /// gantry.yaml.
    KUBECONFIG = key("kubeconfig", File, OwnFiles).flag("--kubeconfig");
    /// The context of the kubeconfig.
    CONTEXT = key("context", Text, Files).flag("--context");
    /// The cluster of the kubeconfig to use instead of the context's own. Not allowed in gantry.yaml.
    CLUSTER = key("cluster", Text, OwnFiles).flag("--cluster");
    /// The user of the kubeconfig to use instead of the context's own. Not allowed in gantry.yaml.
    USER = key("user", Text, OwnFiles).flag("--user");
    /// The address of the API server, instead of the one in the kubeconfig. Not allowed in gantry.yaml.
    SERVER = key("server", Text, OwnFiles).flag("--server");
    /// A bearer token that replaces the credentials of the kubeconfig. Not allowed in gantry.yaml.
    TOKEN = key("token", Secret, OwnFiles).flag("--token");
    /// The user or service account to impersonate. Not allowed in gantry.yaml.
    AS_USER = key("as", User, OwnFiles).flag("--as");
    /// The groups to impersonate, together with as. Not allowed in gantry.yaml.
    AS_GROUPS = key("asGroups", Groups, OwnFiles).flag("--as-group");
    /// The namespace for namespaced objects whose manifest does not name one.
    NAMESPACE = key("namespace", Namespace, Files).flag("--namespace");
    /// The field manager that the cluster records as the owner of the applied fields.
    FIELD_MANAGER = key("fieldManager", FieldManager, Files).default("gantry").makes_flag("--field-manager", "NAME", "The field manager name under which the cluster records the applied fields [default: gantry]");
    /// Take over fields that other field managers own.
    FORCE_CONFLICTS = key("forceConflicts", Bool, Files).default("false").makes_flag("--force-conflicts", "", "Take ownership of fields that other field managers own").weakens("fields of other managers are overwritten");
    /// Objects to take over from the tools that own them, as KIND/NAME: deployment.apps/web. * matches any characters
    /// and ? matches one.
    TAKE_OWNERSHIP = key("takeOwnership", Patterns, Files).makes_flag("--take-ownership", "PATTERN,…", "Take over objects that another tool owns: all, or those that match KIND/NAME; can be repeated").weakens("objects of other owners are taken over");
    /// The app that the objects belong to.
    APP = key("app", App, Files).flag("--app");
    /// The namespace that holds the app's record. The default is the namespace of the run.
    APP_NAMESPACE = key("appNamespace", Namespace, Files).flag("--app-namespace");
    /// Whether to delete members of the app that are no longer in the manifests: ask (on a terminal), yes or no.
    PRUNE = key("prune", Prune, Files).flag("--prune");
    /// The maximum number or share of members that one deploy deletes: 20, 50%.
    PRUNE_MAX = key("pruneMax", PruneMax, Files).flag("--prune-max").weakens("another number of objects may be deleted at once");
    /// How many revisions of an app are kept, to go back to one of them: gantry rollback. 0 keeps none.
    HISTORY = key("history", Count, Files).default("5").makes_flag("--history", "N", "How many revisions of the app to keep for gantry rollback; 0 keeps none [default: 5]");
    /// Whether revisions keep the values of the Secrets in the manifests. Without them, a rollback leaves these Secrets
    /// as they are.
    HISTORY_SECRETS = key("historySecrets", Toggle, Files).default("true").makes_flag("--history-secrets", "true|false", "Whether revisions keep the values of Secrets; otherwise a rollback leaves Secrets as they are [default: true]");
    /// What a deploy waits for: true (until the objects it wrote are ready), crds (until its CRDs are served) or false
    /// (only for CRDs whose objects it writes). The default is true for a deploy of an app, and crds otherwise.
    WAIT = key("wait", Wait, Files).makes_flag("--wait", "true|crds|false", "Wait until the written objects are ready; exit code 5 if they are not [default: true with --app, else crds]");
    /// Whether a deploy shows the last log lines of the container that keeps an awaited object from being ready.
    LOGS = key("logs", Bool, Files).default("false").makes_flag("--logs", "", "Show the last log lines of the container because of which an awaited object is not ready");
    /// Do not wait for APIServices, and delete a namespace even if the API of an APIService does not respond.
    IGNORE_FAILING_API_SERVICES = key("ignoreFailingApiServices", Bool, Files).default("false").makes_flag("--ignore-failing-api-services", "", "Neither wait for APIServices nor stop because of those whose API does not answer").weakens("objects are deleted although an API does not answer");
    /// Whether a deploy continues with objects that do not depend on an object that failed.
    KEEP_GOING = key("keepGoing", Bool, Files).default("false").makes_flag("--keep-going", "", "When an object fails, continue with those that do not depend on it");
    /// The limit of one request to the API server.
    REQUEST_TIMEOUT = key("timeouts.request", Duration, Files).default("30s").makes_flag("--request-timeout", "DURATION", "How long one request to the API server may take, for example 1m [default: 30s]");
    /// How long to wait until the next applied CRD is Established.
    ESTABLISHED_TIMEOUT = key("timeouts.established", Duration, Files).default("1m");
    /// How long to retry an object while a webhook does not answer.
    APPLY_TIMEOUT = key("timeouts.apply", Duration, Files).default("2m").makes_flag("--apply-timeout", "DURATION", "How long to retry while a webhook does not answer, for example 30s [default: 2m]");
    /// How long to wait until the written objects are ready.
    READY_TIMEOUT = key("timeouts.ready", Duration, Files).default("15m").makes_flag("--wait-timeout", "DURATION", "How long to wait, for example 10m [default: 15m]");
    /// How long to wait until one object is ready. The default is the limit for all objects.
    RESOURCE_TIMEOUT = key("timeouts.resource", Duration, Files).makes_flag("--wait-resource-timeout", "DURATION", "How long to wait for one object, for example 5m [default: as long as for all]");
    /// How long to wait until the deleted objects are gone.
    DELETE_TIMEOUT = key("timeouts.delete", Duration, Files).default("5m");
    /// How long a non-interactive credential plugin may run.
    CREDENTIALS_TIMEOUT = key("timeouts.credentials", Duration, Files).default("1m");
    /// Run the programs (exec) that gantry.yaml names as checks. Not allowed in gantry.yaml.
    ALLOW_EXEC = key("allowExec", Bool, OwnFiles).default("false").flag("--allow-exec");
    /// What the admission webhook does with errors about a CRD that no list below names: deny, warn, audit or ignore.
    ADMISSION_MODE = key("admission.mode", AdmissionMode, Files).default("warn");
    /// CRDs whose unsafe changes the admission webhook denies: names (widgets.example.com) or groups (example.com). *
    /// matches any characters and ? matches one. Of several patterns that match a CRD, the longest decides.
    ADMISSION_DENY = key("admission.deny", Patterns, Files);
    /// CRDs about whose unsafe changes the admission webhook warns, as in admission.deny.
    ADMISSION_WARN = key("admission.warn", Patterns, Files);
    /// CRDs whose unsafe changes only appear in the audit log of the API server and in the log of the webhook, as in
    /// admission.deny.
    ADMISSION_AUDIT = key("admission.audit", Patterns, Files);
    /// CRDs that the admission webhook does not look at, as in admission.deny.
    ADMISSION_IGNORE = key("admission.ignore", Patterns, Files);
    /// What the admission webhook does, where it denies, with a change that it cannot judge: it does not know in time
    /// which objects exist, or may not list them.
    ADMISSION_ON_TIMEOUT = key("admission.onTimeout", UnjudgedChange, Files).default("deny");
    /// The groups of users who may accept one change with the annotation gantry.dev/accept-change.
    ADMISSION_ACCEPTED_BY = key("admission.acceptedBy", Groups, Files).default("system:masters");
    /// Replace values of objects with their type in every output; paths are still shown.
    REDACT = key("redact", Bool, Files).default("false").makes_flag("--redact", "", "Show paths and types instead of the values of objects, in every output");
    /// The formats of the report, each as FORMAT or FORMAT=FILE.
    OUTPUT = key("output", Outputs, Files).default("human").flag("--output");
    /// Whether the lines of kapp and OLM about a blocked CRD are printed on stderr, for scripts: auto prints them if
    /// stderr is not a terminal, and with their presets; with --quiet there are none.
    KAPP_LINES = key("kappLines", KappLines, Files).default("auto").makes_flag("--kapp-lines", "auto|never", "Print the lines of kapp and OLM about a blocked CRD on stderr: auto, for scripts, or never [default: auto]");
    /// When the terminal output is coloured.
    COLOR = key("color", Color, Files).default("auto").flag("--color");
}

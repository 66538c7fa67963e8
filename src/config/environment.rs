//! The last two layers: the `GANTRY_*` environment and the flags.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

use crate::options::{ColorChoice, OutputSpec, PresetFlag, Prune, PruneMax, TargetSpec, WaitPolicy};
use crate::problem::{Problem, did_you_mean};

use super::catalogs;
use super::document::ConfigReading;
use super::keys::{self, ConfigKey, KEYS, PREFLIGHT_VARIABLE};
use super::layer::{self, LayerData};
use super::origin::{Layer, SettingOrigin};

const PREFIX: &str = "GANTRY_";

/// Variables with this prefix belong to gantry's own tests.
const TEST_PREFIX: &str = "GANTRY_TEST_";

/// The values of the flags. A flag that was not given is `None`, `false` or empty.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Each value of `--preflight`, not yet split at commas.
    pub preflight: Vec<String>,
    pub warn_only: bool,
    pub target: Option<TargetSpec>,
    pub preset: Option<PresetFlag>,
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub user: Option<String>,
    pub groups: Vec<String>,
    pub namespace: Option<String>,
    pub field_manager: Option<String>,
    pub force_conflicts: bool,
    pub take_ownership: Vec<String>,
    pub app: Option<String>,
    pub app_namespace: Option<String>,
    pub prune: Option<Prune>,
    pub prune_max: Option<PruneMax>,
    pub wait: Option<WaitPolicy>,
    pub logs: bool,
    pub ignore_failing_api_services: bool,
    pub keep_going: bool,
    /// A duration as text, as are the next two.
    pub apply_timeout: Option<String>,
    pub wait_timeout: Option<String>,
    pub wait_resource_timeout: Option<String>,
    pub allow_exec: bool,
    pub render: Option<String>,
    pub output: Vec<OutputSpec>,
    pub color: Option<ColorChoice>,
    pub redact: bool,
    /// `NAME=PATH` or `NAME=URL`.
    pub catalogs: Vec<String>,
}

/// The names of checks from a flag or variable: exactly these run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSelection {
    pub names: Vec<String>,
    pub place: SettingOrigin,
}

impl CheckSelection {
    /// Splits values at their commas.
    pub fn new<S: AsRef<str>>(values: &[S], place: SettingOrigin) -> Self {
        let names = values.iter().flat_map(|value| value.as_ref().split(','));
        CheckSelection { names: names.map(|name| name.trim().to_owned()).collect(), place }
    }
}

/// The layer of the environment, and the checks that it names. An empty variable counts as unset. `unreadable` holds
/// the variables that are not UTF-8; they are reported, because they would otherwise be ignored silently.
pub(super) fn environment(
    variables: &BTreeMap<String, String>,
    unreadable: &BTreeMap<String, OsString>,
) -> (ConfigReading, Option<CheckSelection>) {
    let mut reading = ConfigReading::default();
    for name in unreadable.keys().filter(|name| name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX)) {
        let is_known = name == PREFLIGHT_VARIABLE || KEYS.iter().any(|key| key.variable().as_ref() == Some(name));
        reading.problems.push(match is_known {
            true => Problem::new(format!("{name}: the value is not UTF-8")).help("set it again, or unset it"),
            false => unknown(name),
        });
    }
    let mut layer = LayerData::new(Layer::Environment, "environment");
    let mut named = None;
    for (name, text) in variables.range(PREFIX.to_owned()..).take_while(|(name, _)| name.starts_with(PREFIX)) {
        let place = SettingOrigin::Variable(name.clone());
        if name.starts_with(TEST_PREFIX) || is_service_link(name) {
            continue;
        }
        if let Some(key) = KEYS.iter().find(|key| key.variable().as_deref() == Some(name)) {
            if !text.is_empty() {
                set(&mut layer, &mut reading.problems, key, text, place);
            }
        } else if name == PREFLIGHT_VARIABLE {
            named = (!text.is_empty()).then(|| CheckSelection::new(&[text], place));
        } else {
            reading.problems.push(unknown(name));
        }
    }
    reading.layers.push(layer);
    (reading, named)
}

/// Kubernetes sets variables with the addresses of the Services in a container's namespace. Those of a Service named
/// `gantry` or `gantry-…` are not settings.
fn is_service_link(name: &str) -> bool {
    let rest = &name[PREFIX.len() - 1..];
    let port =
        |text: &str| text.split('_').next().is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    rest.ends_with("_SERVICE_HOST")
        || rest.contains("_SERVICE_PORT")
        || rest.ends_with("_PORT")
        || rest.split("_PORT_").skip(1).any(port)
}

fn unknown(name: &str) -> Problem {
    let known: Vec<String> =
        KEYS.iter().filter_map(ConfigKey::variable).chain([PREFLIGHT_VARIABLE.to_owned()]).collect();
    let help = if name.starts_with("GANTRY_PREFLIGHT_RULES") {
        format!("configure checks in files; {PREFLIGHT_VARIABLE} selects which ones run")
    } else {
        match did_you_mean(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known variables: {}", known.join(", ")),
        }
    };
    Problem::new(format!("unknown environment variable {name}")).help(help)
}

fn set(layer: &mut LayerData, problems: &mut Vec<Problem>, key: &ConfigKey, text: &str, place: SettingOrigin) {
    match key.read_text(text) {
        Ok(value) => layer.set(key.path, layer::value(&value), place),
        Err(why) => problems.push(place.problem(why)),
    }
}

impl Overrides {
    /// The layer of the flags.
    pub(super) fn layer(&self) -> ConfigReading {
        let mut reading = ConfigReading::default();
        let mut flags = LayerData::new(Layer::Flag, "flags");
        for key in KEYS {
            let Some((flag, value)) = key.flag.zip(self.value(key)) else { continue };
            let place = SettingOrigin::Flag(flag);
            let value = value.ok_or_else(|| "the path is not UTF-8".to_owned());
            match value.and_then(|value| key.check(&value).map(|()| value)) {
                Ok(value) => flags.set(key.path, layer::value(&value), place),
                Err(why) => reading.problems.push(place.problem(why)),
            }
        }
        match catalogs::of_flags(&self.catalogs) {
            Ok(list) => flags.lists.extend(list.map(|list| (catalogs::CATALOGS, list))),
            Err(problem) => reading.problems.push(problem),
        }
        reading.layers.push(flags);
        reading
    }

    /// The checks that `--preflight` names.
    pub(super) fn named(&self) -> Option<CheckSelection> {
        (!self.preflight.is_empty()).then(|| CheckSelection::new(&self.preflight, SettingOrigin::Flag("--preflight")))
    }

    /// The value of the flag of `key`: `None` if it was not given, `Some(None)` if it is not valid UTF-8.
    fn value(&self, key: &ConfigKey) -> Option<Option<Value>> {
        let text = |text: &Option<String>| text.clone().map(|text| Some(text.into()));
        match key.path {
            "warnOnly" => self.warn_only.then(|| Some(true.into())),
            "redact" => self.redact.then(|| Some(true.into())),
            "forceConflicts" => self.force_conflicts.then(|| Some(true.into())),
            "allowExec" => self.allow_exec.then(|| Some(true.into())),
            "target" => self.target.as_ref().map(|target| keys::target_text(target).map(Value::from)),
            "kubeconfig" => self.kubeconfig.as_ref().map(|path| path.to_str().map(Value::from)),
            "render" => text(&self.render),
            "preset" => self.preset.map(|preset| Some(preset.name().into())),
            "context" => text(&self.context),
            "as" => text(&self.user),
            "asGroups" if !self.groups.is_empty() => Some(Some(self.groups.clone().into())),
            "takeOwnership" if !self.take_ownership.is_empty() => Some(Some(self.take_ownership.clone().into())),
            "app" => text(&self.app),
            "appNamespace" => text(&self.app_namespace),
            "prune" => {
                let prune = self.prune.and_then(|prune| clap::ValueEnum::to_possible_value(&prune))?;
                Some(Some(prune.get_name().into()))
            }
            "pruneMax" => self.prune_max.map(|most| Some(most.to_string().into())),
            "wait" => self.wait.map(|wait| Some(keys::wait_value(wait))),
            "logs" => self.logs.then(|| Some(true.into())),
            "ignoreFailingApiServices" => self.ignore_failing_api_services.then(|| Some(true.into())),
            "keepGoing" => self.keep_going.then(|| Some(true.into())),
            "timeouts.apply" => text(&self.apply_timeout),
            "timeouts.ready" => text(&self.wait_timeout),
            "timeouts.resource" => text(&self.wait_resource_timeout),
            "namespace" => text(&self.namespace),
            "fieldManager" => text(&self.field_manager),
            "color" => {
                let color = self.color.and_then(|color| clap::ValueEnum::to_possible_value(&color))?;
                Some(Some(color.get_name().into()))
            }
            "output" if !self.output.is_empty() => Some(self.output.iter().map(keys::output_text).collect()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (ConfigReading, Option<CheckSelection>) {
        environment(
            &pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            &BTreeMap::new(),
        )
    }

    fn problems(pairs: &[(&str, &str)]) -> Vec<String> {
        let say = |problem: &Problem| format!("{problem} | {}", problem.help.clone().unwrap_or_default());
        read(pairs).0.problems.iter().map(say).collect()
    }

    #[test]
    fn a_misspelt_variable_is_an_error() {
        assert_eq!(
            problems(&[("GANTRY_WARNONLY", "true"), ("GANTRY_ZZZ", "1")])[0],
            "unknown environment variable GANTRY_WARNONLY | did you mean GANTRY_WARN_ONLY?"
        );
        assert!(problems(&[("GANTRY_PREFLIGHT_RULES", "A")])[0].contains("GANTRY_PREFLIGHT selects"));
        assert_eq!(problems(&[("GANTRYX", "1"), ("PATH", "/bin"), ("GANTRY", "1")]), Vec::<String>::new());
    }

    #[test]
    fn addresses_of_services_are_not_settings() {
        let links = [
            ("GANTRY_SERVICE_HOST", "10.0.0.1"),
            ("GANTRY_SERVICE_PORT", "80"),
            ("GANTRY_SERVICE_PORT_HTTP", "80"),
            ("GANTRY_PORT", "tcp://10.0.0.1:80"),
            ("GANTRY_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("GANTRY_API_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ];
        assert_eq!(problems(&links), Vec::<String>::new());
        assert_eq!(problems(&[("GANTRY_PORT_X", "1")]).len(), 1);
    }

    #[test]
    fn a_wrong_value_names_its_variable() {
        assert_eq!(
            problems(&[("GANTRY_TIMEOUTS__REQUEST", "5"), ("GANTRY_WARN_ONLY", "maybe"), ("GANTRY_COLOR", "")]),
            [
                "GANTRY_TIMEOUTS__REQUEST: \"5\" is not a duration such as 30s, 2m or 1h30m | ",
                "GANTRY_WARN_ONLY: \"maybe\" is not true or false | ",
            ]
        );
    }

    #[test]
    fn every_flag_reaches_its_key() {
        let flags = Overrides {
            warn_only: true,
            force_conflicts: true,
            allow_exec: true,
            render: Some("r {dir}".into()),
            redact: true,
            preset: Some(PresetFlag::OlmV1),
            target: Some(TargetSpec::Dir("live".into())),
            kubeconfig: Some("k".into()),
            context: Some("c".into()),
            user: Some("u".into()),
            groups: vec!["g,h".into()],
            namespace: Some("team".into()),
            take_ownership: vec!["*".into()],
            app: Some("shop".into()),
            app_namespace: Some("team".into()),
            prune: Some(Prune::Yes),
            prune_max: Some(PruneMax::Share(50)),
            wait: Some(WaitPolicy::Crds),
            logs: true,
            ignore_failing_api_services: true,
            keep_going: true,
            apply_timeout: Some("1m".into()),
            wait_timeout: Some("1m".into()),
            wait_resource_timeout: Some("1m".into()),
            field_manager: Some("f".into()),
            color: Some(ColorChoice::Never),
            output: vec!["human".parse().unwrap(), "json=a,b.json".parse().unwrap()],
            ..Overrides::default()
        };
        let reading = flags.layer();
        assert_eq!(reading.problems, []);
        let set: Vec<String> = reading.layers[0].places.keys().map(|path| path.join(".")).collect();
        let mut expected: Vec<&str> = KEYS.iter().filter(|key| key.flag.is_some()).map(|key| key.path).collect();
        expected.sort_unstable();
        assert_eq!(set, expected);
        let output = reading.layers[0].values["output"].as_array().unwrap();
        assert_eq!(output[1].as_str(), Some("json=a,b.json"), "a comma in a file name is part of it");
        let wrong = Overrides { namespace: Some("Bad_Name".into()), ..Overrides::default() };
        assert!(wrong.layer().problems[0].message.starts_with("--namespace: \"Bad_Name\" is not a namespace"));
    }

    #[test]
    fn checks_are_named_as_with_the_flag() {
        assert_eq!(
            read(&[("GANTRY_PREFLIGHT", "A, B")]).1.map(|named| named.names),
            Some(vec!["A".into(), "B".into()])
        );
        assert_eq!(read(&[("GANTRY_PREFLIGHT", "")]).1, None);
        let flags = Overrides { preflight: vec![String::new()], ..Overrides::default() };
        assert_eq!(flags.named().map(|named| named.names), Some(vec![String::new()]));
    }
}

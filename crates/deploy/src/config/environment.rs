//! The last two layers: the `GANTRY_*` environment and the flags.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::Value;

use gantry_core::problem::{Problem, did_you_mean};

use super::catalogs;
use super::document::ConfigReading;
use super::flags::{FlagValue, SettingFlags};
use super::keys::{ConfigKey, KEYS, PREFLIGHT_VARIABLE};
use super::layer::{self, LayerData};
use super::origin::{Layer, SettingOrigin};

const PREFIX: &str = "GANTRY_";

/// Variables with this prefix belong to gantry's own tests.
const TEST_PREFIX: &str = "GANTRY_TEST_";

/// The values of the flags that were given.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    preflight: Vec<String>,
    catalogs: Vec<String>,
    /// By the path of the key; `None` if the value is not UTF-8.
    values: BTreeMap<&'static str, Option<Value>>,
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
    /// With the value of the flag of `key`; without a change if the flag was not given.
    pub fn with(mut self, key: &ConfigKey, value: &impl FlagValue) -> Self {
        self.values.extend(value.given_value().map(|value| (key.path, value)));
        self
    }

    /// Also with these values of `--preflight`, not yet split at commas.
    pub fn with_checks(mut self, values: &[String]) -> Self {
        self.preflight.extend_from_slice(values);
        self
    }

    /// Also with these values of `--catalog`: `NAME=PATH` or `NAME=URL`.
    pub fn with_catalogs(mut self, values: &[String]) -> Self {
        self.catalogs.extend_from_slice(values);
        self
    }

    /// With the flags that are made from rows of the table.
    pub fn with_made(mut self, flags: &SettingFlags) -> Self {
        self.values.extend(flags.values().map(|(path, value)| (path, Some(value.clone()))));
        self
    }

    /// The layer of the flags.
    pub(super) fn layer(&self) -> ConfigReading {
        let mut reading = ConfigReading::default();
        let mut flags = LayerData::new(Layer::Flag, "flags");
        for key in KEYS {
            let Some((flag, value)) = key.flag.zip(self.values.get(key.path)) else { continue };
            let place = SettingOrigin::Flag(flag);
            let value = value.clone().ok_or_else(|| "the path is not UTF-8".to_owned());
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
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::keys::table;
    use super::*;
    use gantry_core::options::{ColorChoice, OutputSpec, PresetFlag, Prune, PruneMax, TargetSpec};

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
        let made = SettingFlags::parse(&[
            "--warn-only",
            "--fail-on=warning",
            "--force-conflicts",
            "--redact",
            "--kapp-lines=never",
            "--take-ownership",
            "--wait=crds",
            "--logs",
            "--ignore-failing-api-services",
            "--keep-going",
            "--apply-timeout=1m",
            "--wait-timeout=1m",
            "--request-timeout=1m",
            "--wait-resource-timeout=1m",
            "--field-manager=f",
            "--history=7",
            "--history-secrets=false",
            "--kube-version=1.28,1.30",
        ]);
        let flags = Overrides::default()
            .with_made(&made)
            .with(&table::ALLOW_EXEC, &true)
            .with(&table::RENDER, &Some("r {dir}".to_owned()))
            .with(&table::CHART_VALUES, &vec!["a,b.yaml".to_owned()])
            .with(&table::CHART_SET, &vec!["a={x,y}".to_owned()])
            .with(&table::CHART_RELEASE, &Some("shop".to_owned()))
            .with(&table::CHART_VERSION, &Some("1.0.0".to_owned()))
            .with(&table::PRESET, &Some(PresetFlag::OlmV1))
            .with(&table::OLM, &Some("v1.10".to_owned()))
            .with(&table::TARGET, &Some(TargetSpec::Dir("live".into())))
            .with(&table::KUBECONFIG, &Some(PathBuf::from("k")))
            .with(&table::CONTEXT, &Some("c".to_owned()))
            .with(&table::CLUSTER, &Some("c".to_owned()))
            .with(&table::USER, &Some("u".to_owned()))
            .with(&table::SERVER, &Some("https://10.0.0.1".to_owned()))
            .with(&table::TOKEN, &Some("t".to_owned()))
            .with(&table::AS_USER, &Some("u".to_owned()))
            .with(&table::AS_GROUPS, &vec!["g,h".to_owned()])
            .with(&table::NAMESPACE, &Some("team".to_owned()))
            .with(&table::APP, &Some("shop".to_owned()))
            .with(&table::APP_NAMESPACE, &Some("team".to_owned()))
            .with(&table::PRUNE, &Some(Prune::Yes))
            .with(&table::PRUNE_MAX, &Some(PruneMax::Share(50)))
            .with(&table::COLOR, &Some(ColorChoice::Never))
            .with(&table::OUTPUT, &["human", "json=a,b.json"].map(|spec| spec.parse::<OutputSpec>().unwrap()).to_vec());
        let reading = flags.layer();
        assert_eq!(reading.problems, []);
        let set: Vec<String> = reading.layers[0].places.keys().map(|path| path.join(".")).collect();
        let mut expected: Vec<&str> = KEYS.iter().filter(|key| key.flag.is_some()).map(|key| key.path).collect();
        expected.sort_unstable();
        assert_eq!(set, expected);
        let output = reading.layers[0].values["output"].as_array().unwrap();
        assert_eq!(output[1].as_str(), Some("json=a,b.json"), "a comma in a file name is part of it");
        assert_eq!(reading.layers[0].values["wait"].as_str(), Some("crds"));
        assert_eq!(reading.layers[0].values["historySecrets"].to_bool(), Some(false));
        assert_eq!(reading.layers[0].values["takeOwnership"].as_array().unwrap()[0].as_str(), Some("*"));
        let not_given = Overrides::default().with(&table::WARN_ONLY, &false).with(&table::APP, &None::<String>);
        assert!(not_given.layer().layers[0].values.is_empty());
        let wrong = Overrides::default().with(&table::NAMESPACE, &Some("Bad_Name".to_owned()));
        assert!(wrong.layer().problems[0].message.starts_with("--namespace: \"Bad_Name\" is not a namespace"));
    }

    #[test]
    fn checks_are_named_as_with_the_flag() {
        assert_eq!(
            read(&[("GANTRY_PREFLIGHT", "A, B")]).1.map(|named| named.names),
            Some(vec!["A".into(), "B".into()])
        );
        assert_eq!(read(&[("GANTRY_PREFLIGHT", "")]).1, None);
        let flags = Overrides::default().with_checks(&[String::new()]);
        assert_eq!(flags.named().map(|named| named.names), Some(vec![String::new()]));
    }
}

//! Renders Helm charts with the user's own `helm template`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::bounded;
use crate::manifest::{self, shown_text};
use crate::problem::{Location, Problem};
use crate::text;

/// The variable that names the program.
pub const HELM_BIN: &str = "HELM_BIN";
/// The file that marks a folder as a chart.
pub const CHART_FILE: &str = "Chart.yaml";
const OCI: &str = "oci://";
/// Of each CRD of a `crds/` folder and of each template, `helm template` prints the file that it is from.
const SOURCE: &str = "# Source: ";

/// How charts are rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChartOptions {
    /// The program; `None` for `helm` in `PATH`.
    pub helm: Option<OsString>,
    /// The files of `--values`, relative to [`ChartOptions::folder`].
    pub values: Vec<String>,
    /// The working directory of the run. A chart of a commit is rendered in another folder.
    pub folder: PathBuf,
    /// The values of `--set`.
    pub set: Vec<String>,
    /// The name of the release; `None` for the name of the chart.
    pub release: Option<String>,
    /// The namespace of the release.
    pub namespace: Option<String>,
    /// The version of a chart in a registry; `None` for the newest, or the one that its reference names.
    pub version: Option<String>,
    /// The release of Kubernetes that templates see; `None` for that of Helm.
    pub kube_version: Option<String>,
    /// The APIs that templates see, in addition to those that Helm knows.
    pub api_versions: Vec<String>,
    /// The release that the chart upgrades; `None` for an installation.
    pub upgraded: Option<UpgradedRelease>,
}

/// A release that a chart upgrades.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpgradedRelease {
    /// The values of the release, as JSON. `helm upgrade` uses these if it is given none
    /// (<https://helm.sh/docs/helm/helm_upgrade/>).
    pub values: Option<String>,
    /// The CRDs in `crds/` are left out, as an upgrade does.
    pub leaves_crds: bool,
}

/// The next step if there is no chart.
pub const CHART_HELP: &str = "a chart is a folder with a Chart.yaml, a .tgz file or oci://REGISTRY/CHART";

/// Whether an argument of `-f` names a chart: a folder with a `Chart.yaml`, a packaged chart, or one in a registry.
pub fn is_chart(argument: &str, working_directory: &Path) -> bool {
    let path = working_directory.join(argument);
    argument.starts_with(OCI) || path.join(CHART_FILE).is_file() || is_package(argument) && path.is_file()
}

/// Whether the name is that of a packaged chart.
pub fn is_package(name: &str) -> bool {
    name.ends_with(".tgz")
}

impl ChartOptions {
    /// The problems of the files of `--values`, each with its line: Helm does not name the file.
    pub fn problems_of_values(&self, working_directory: &Path) -> Vec<Problem> {
        let check = |name: &String| {
            // Helm downloads these.
            if name.contains("://") {
                return None;
            }
            let shown = shown_text(name);
            let at = |line, column| Location { file: shown.clone(), line, column };
            let bytes = match bounded::read(&working_directory.join(name)) {
                Ok(bytes) => bytes,
                Err(error) => {
                    let problem = Problem::new(format!("--values: the file cannot be read: {error}")).at(at(0, 0));
                    return Some(problem.help("check the path; it is relative to the working directory"));
                }
            };
            let text = match manifest::text(&shown, bytes) {
                Ok(text) => text,
                Err(problem) => return Some(problem),
            };
            match gantry_yaml::parse(&text) {
                Err(error) => {
                    Some(Problem::new(format!("--values: {}", error.message)).at(at(error.line, error.column)))
                }
                Ok(Some(node)) if !matches!(node.data, gantry_yaml::Data::Mapping(_)) => {
                    let problem = Problem::new("--values: the file is not a mapping").at(at(node.span.line, 0));
                    Some(problem.help("values are keys and their values, as in the values.yaml of the chart"))
                }
                Ok(_) => None,
            }
        };
        self.values.iter().filter_map(check).collect()
    }

    /// The words of `helm template` for a chart.
    pub(super) fn command(&self, chart: &OsStr, working_directory: &Path) -> Vec<OsString> {
        let name = chart.to_string_lossy();
        let (chart, version) = match name.strip_prefix(OCI) {
            Some(_) => {
                let (reference, version) = split_version(&name);
                (OsString::from(reference), self.version.as_deref().or(version))
            }
            None => (chart.to_owned(), self.version.as_deref()),
        };
        let release = self.release.clone().unwrap_or_else(|| name_of(Path::new(&chart), working_directory));
        let mut words: Vec<OsString> = vec![self.helm.clone().unwrap_or_else(|| "helm".into())];
        words.extend(["template", &release].map(OsString::from));
        // A folder named `-x` must not become an option.
        words.push(if name.starts_with('-') { Path::new(".").join(&chart).into() } else { chart });
        words.push("--include-crds".into());
        let mut option = |name: &str, value: &str| words.extend([name, value].map(OsString::from));
        if let Some(namespace) = &self.namespace {
            option("--namespace", namespace);
        }
        for file in &self.values {
            option("--values", &self.place_of_values(file, working_directory));
        }
        self.set.iter().for_each(|set| option("--set", set));
        if self.values_of_release().is_some() {
            // From standard input.
            option("--values", "-");
        }
        if let Some(version) = version {
            option("--version", version);
        }
        if let Some(release) = &self.kube_version {
            option("--kube-version", release);
        }
        self.api_versions.iter().for_each(|version| option("--api-versions", version));
        if self.upgraded.is_some() {
            words.push("--is-upgrade".into());
        }
        words
    }

    /// The values that are those of the upgraded release, because the run names none.
    pub(super) fn values_of_release(&self) -> Option<&str> {
        let has_none = self.values.is_empty() && self.set.is_empty();
        self.upgraded.as_ref()?.values.as_deref().filter(|_| has_none)
    }

    /// A file that is also at the commit is read from there, as all relative paths of a renderer are.
    fn place_of_values(&self, file: &str, working_directory: &Path) -> String {
        if file.contains("://") || working_directory.join(file).is_file() {
            return file.to_owned();
        }
        self.folder.join(file).to_string_lossy().into_owned()
    }
}

/// Splits `oci://HOST:PORT/CHART:VERSION` before the version.
fn split_version(reference: &str) -> (&str, Option<&str>) {
    let last = reference.rfind('/').map_or(0, |at| at + 1);
    match reference[last..].split_once(':') {
        Some((name, version)) if !name.contains('@') && !version.is_empty() => {
            (&reference[..last + name.len()], Some(version))
        }
        _ => (reference, None),
    }
}

/// The name of a chart, for a release without a name of its own.
fn name_of(chart: &Path, working_directory: &Path) -> String {
    let file = working_directory.join(chart).join(CHART_FILE);
    let text = bounded::read(&file).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let named = text.and_then(|text| match gantry_yaml::parse(&text).ok()??.data {
        gantry_yaml::Data::Mapping(entries) => {
            entries.into_iter().find(|entry| entry.key == "name")?.value.to_value().as_str().map(str::to_owned)
        }
        _ => None,
    });
    let last = || {
        let name = chart.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.split('@').next().unwrap_or_default();
        let Some(name) = name.strip_suffix(".tgz") else { return name.to_owned() };
        // `helm package` appends the version: `my-chart-1.2.3.tgz`.
        let is_version = |at: &usize| name[at + 1..].starts_with(|first: char| first.is_ascii_digit());
        let end = name.match_indices('-').map(|(at, _)| at).find(is_version).unwrap_or(name.len());
        name[..end].to_owned()
    };
    named.filter(|name| !name.starts_with('-')).unwrap_or_else(last)
}

/// The notice that Helm does not upgrade the CRDs of the chart's `crds/` folder, if there are any in the output.
pub(super) fn notice_of_crds(output: &str, chart: &OsStr, from: &str, version: Option<&str>) -> Option<Problem> {
    let sources = output.lines().filter_map(|line| line.strip_prefix(SOURCE));
    let mut files: Vec<&str> = sources.filter(|source| is_in_crds(source.trim())).collect();
    files.sort_unstable();
    files.dedup();
    if files.is_empty() {
        return None;
    }
    let number = match files.len() {
        1 => "a file in crds/, which Helm installs".to_owned(),
        number => format!("{number} files in crds/, which Helm installs"),
    };
    let name = chart.to_string_lossy();
    // Helm owns the fields of what it has installed.
    let by_hand = match name.starts_with(OCI) || is_package(&name) {
        true => {
            let (reference, named) = if name.starts_with(OCI) { split_version(&name) } else { (&*name, None) };
            let version = version
                .or(named)
                .map(|version| format!(" --version {}", text::shell_word(version)))
                .unwrap_or_default();
            format!("helm show crds {}{version} | gantry deploy -f - --force-conflicts", text::shell_word(reference))
        }
        false => {
            format!(
                "gantry deploy -f {} --force-conflicts",
                text::shell_word(&format!("{}/crds", from.trim_end_matches('/')))
            )
        }
    };
    let problem = Problem::new(format!("{from} has {number} only with the first release and never upgrades"));
    Some(problem.help(text::sanitize(&format!("who upgrades with Helm applies them first: {by_hand}")).into_owned()))
}

/// The output with empty lines instead of the CRDs in `crds/`, so that the other lines keep their numbers.
pub(super) fn without_crds(output: &str) -> String {
    let mut rest = String::with_capacity(output.len());
    let (mut is_left_out, mut before, mut chart) = (false, "", None);
    for line in output.split_inclusive('\n') {
        // A CRD can be made with `helm template`, and then has such lines of another chart.
        let source = line.strip_prefix(SOURCE).filter(|_| before.trim_end() == "---");
        if let Some(source) = source {
            let of_chart = source.split('/').next();
            if *chart.get_or_insert(of_chart) == of_chart {
                is_left_out = is_in_crds(source.trim());
            }
        }
        rest.push_str(if is_left_out { "\n" } else { line });
        before = line;
    }
    rest
}

/// Whether a file of a chart is in its folder `crds`, or in that of a chart below it: `web/charts/db/crds/a.yaml`.
fn is_in_crds(source: &str) -> bool {
    let mut steps = source.split('/').skip(1);
    loop {
        match steps.next() {
            Some("crds") => return true,
            Some("charts") => drop(steps.next()),
            _ => return false,
        }
    }
}

/// The next step after an error of Helm.
pub(super) fn help_for(said: &str, words: &[OsString]) -> String {
    let chart = words.get(3).map(|chart| chart.to_string_lossy()).unwrap_or_default();
    if said.contains("missing in charts/ directory") || said.contains("helm dependency build") {
        return format!("fetch the charts that it depends on: helm dependency build {}", text::shell_word(&chart));
    }
    // The APIs of the cluster may be thousands of words.
    let mut shown = Vec::new();
    let mut rest = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = rest.next() {
        if word == "--api-versions" {
            rest.next();
            continue;
        }
        shown.push(text::shell_word(&word).into_owned());
    }
    format!("to see it without gantry: {}", shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(options: &ChartOptions, chart: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let words = options.command(OsStr::new(chart), folder.path());
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_chart_is_rendered_under_its_name_with_the_options() {
        let options = ChartOptions::default();
        assert_eq!(
            words(&options, "a/my-web-1.2.3-rc.1.tgz"),
            "helm template my-web a/my-web-1.2.3-rc.1.tgz --include-crds"
        );
        assert_eq!(
            words(&options, "oci://localhost:5000/charts/web:1.2.3"),
            "helm template web oci://localhost:5000/charts/web --include-crds --version 1.2.3"
        );
        assert_eq!(
            words(&options, "oci://h/web@sha256:abc"),
            "helm template web oci://h/web@sha256:abc --include-crds"
        );
        let options = ChartOptions {
            helm: Some("/opt/helm".into()),
            values: vec!["https://example.com/v.yaml".into()],
            folder: PathBuf::new(),
            set: vec!["a=1".into(), "b={x,y}".into()],
            release: Some("shop".into()),
            namespace: Some("prod".into()),
            version: Some("2.0.0".into()),
            kube_version: Some("1.30".into()),
            api_versions: vec!["apps/v1".into()],
            upgraded: Some(UpgradedRelease { values: Some("{}".into()), leaves_crds: false }),
        };
        assert_eq!(
            words(&options, "oci://h/web:1.0.0"),
            "/opt/helm template shop oci://h/web --include-crds --namespace prod --values https://example.com/v.yaml \
             --set a=1 --set b={x,y} --version 2.0.0 --kube-version 1.30 --api-versions apps/v1 --is-upgrade"
        );
    }

    #[test]
    fn crds_that_helm_never_upgrades_are_told_with_the_command_that_applies_them() {
        let output = "---\n# Source: web/crds/a.yaml\nx: 1\n---\n# Source: web/charts/db/crds/b.yaml\n---\n# Source: web/templates/crds/c.yaml\n";
        let notice = |chart: &str| notice_of_crds(output, OsStr::new(chart), chart, None).unwrap();
        assert!(notice("web/").message.contains("web/ has 2 files in crds/"), "{}", notice("web/").message);
        assert!(notice("a b/web/").help.unwrap().ends_with("gantry deploy -f 'a b/web/crds' --force-conflicts"));
        let help = notice("oci://h/web:1.0").help.unwrap();
        assert!(
            help.ends_with("helm show crds oci://h/web --version 1.0 | gantry deploy -f - --force-conflicts"),
            "{help}"
        );
        assert!(notice_of_crds("# Source: web/templates/crds/c.yaml\n", OsStr::new("web"), "web", None).is_none());
    }

    #[test]
    fn crds_are_left_out_and_lines_stay() {
        let output = "---\n# Source: web/crds/a.yaml\na: 1\n---\n# Source: x/templates/b.yaml\n---\n# Source: web/templates/c.yaml\nc: 1\n";
        assert_eq!(without_crds(output), "---\n\n\n\n\n\n# Source: web/templates/c.yaml\nc: 1\n");
    }

    #[test]
    fn values_files_are_read_before_helm_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |text: &str| {
            std::fs::write(folder.path().join("v.yaml"), text).unwrap();
            let options = ChartOptions { values: vec!["v.yaml".into()], ..ChartOptions::default() };
            options.problems_of_values(folder.path()).first().map(ToString::to_string).unwrap_or_default()
        };
        assert_eq!((problem("a: 1\n"), problem("# none\n")), (String::new(), String::new()));
        assert!(problem("a: 1\nb: [\n").starts_with("v.yaml:"), "{}", problem("a: 1\nb: [\n"));
        assert_eq!(problem("\n- a\n"), "v.yaml:2: --values: the file is not a mapping");
    }
}

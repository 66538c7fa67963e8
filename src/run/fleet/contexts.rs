//! The clusters of a run: several contexts of the kubeconfig.

use std::collections::BTreeSet;
use std::path::Path;

use wildmatch::WildMatch;

use crate::cli::{FlowArgs, ManyArgs};
use crate::run::flow::configured::ConfiguredRun;
use crate::run::prepare::connection;
use gantry_cluster::ConnectionOverrides;
use gantry_cluster::kube::{self, ReadKubeconfig};
use gantry_core::bounded;
use gantry_core::manifest;
use gantry_core::options::{GitSpec, TargetSpec};
use gantry_core::problem::{Error, Location, Problem, Result, did_you_mean};
use gantry_k8s_cel::KubernetesRelease;

/// The most names that a message lists.
const LISTED: usize = 20;

/// What a run checks, each by itself.
pub enum FleetMembers {
    /// The clusters of these contexts of the kubeconfig.
    Contexts { kubeconfig: ReadKubeconfig, names: Vec<String> },
    /// One folder or commit as a cluster of each of these releases of Kubernetes.
    Releases(Vec<KubernetesRelease>),
    /// Each of these commits as a cluster.
    Commits(Vec<GitSpec>),
}

/// A context or a pattern for contexts, and where it was written.
struct RequestedContext {
    text: String,
    at: Option<Location>,
}

impl RequestedContext {
    fn problem(&self, message: String) -> Problem {
        Problem { at: self.at.clone(), ..Problem::new(message) }
    }

    fn is_pattern(&self) -> bool {
        self.text.contains(['*', '?'])
    }
}

/// Whether the flags may name several contexts. The name of a single context may look the same.
pub fn may_be_several(args: &FlowArgs) -> bool {
    args.many.contexts_file.is_some()
        || args.input.target.kubeconfig.context.as_ref().is_some_and(|context| context.contains([',', '*', '?']))
}

/// The members, if the flags name several contexts or a pattern, even one that only one context matches; or several
/// releases for a target that has none of its own; or several commits.
///
/// # Errors
/// Names and patterns that match no context of the kubeconfig, and flags for several clusters if there is one.
pub async fn find(run: &ConfiguredRun<'_>, working_directory: &Path) -> Result<Option<FleetMembers>> {
    let ConfiguredRun { args, settings, .. } = run;
    if !may_be_several(args) {
        if let TargetSpec::Commits(specs) = &settings.target {
            return commits(run, specs).map(Some);
        }
        only_one(run)?;
        return releases(run);
    }
    if settings.target != TargetSpec::Kube {
        let flag = if args.many.contexts_file.is_some() { "--contexts-file" } else { "--context" };
        let problem = Problem::new(format!("{flag} names several clusters, but the target is not a cluster"));
        return Err(Error::usage(problem.help("leave out --target, or name one target")));
    }
    let kubeconfig = kube::kubeconfig(&connection(settings, None)).await?;
    let known: Vec<&str> = kubeconfig.contexts().collect();
    let wanted = match (&args.many.contexts_file, &args.input.target.kubeconfig.context) {
        (Some(file), _) => of_file(file, working_directory)?,
        (None, Some(name)) if known.contains(&name.as_str()) => return only_one(run).map(|()| None),
        (None, names) => of_flag(names.as_deref().unwrap_or_default())?,
    };
    if settings.connection != ConnectionOverrides::default() {
        let problem =
            Problem::new("--cluster, --user, --server and --token are about one cluster, but several are named");
        return Err(Error::usage(
            problem
                .help("leave them out, also as GANTRY_ variables and in configuration files: each context has its own"),
        ));
    }
    let mut names = select(&wanted, &known).map_err(Error::Usage)?;
    if let Some(shard) = args.many.shard {
        let mut index = 0..;
        names.retain(|_| index.next().is_some_and(|index| shard.has(index)));
    }
    Ok(Some(FleetMembers::Contexts { kubeconfig, names }))
}

/// The commits of a target that names several.
fn commits(run: &ConfiguredRun<'_>, specs: &[GitSpec]) -> Result<FleetMembers> {
    if run.settings.kube_versions.len() > 1 {
        let problem = Problem::new("several commits are named, and several releases of Kubernetes");
        return Err(Error::usage(problem.help("name one release: --kube-version 1.30; or one commit")));
    }
    if run.args.many.shard.is_some() {
        let problem = Problem::new("--shard divides contexts, but the targets are commits");
        return Err(Error::usage(problem.help("leave out --shard")));
    }
    Ok(FleetMembers::Commits(specs.to_vec()))
}

/// The releases, if the run names several and its target is no server, which would have its own.
fn releases(run: &ConfiguredRun<'_>) -> Result<Option<FleetMembers>> {
    let ConfiguredRun { settings, writes, .. } = run;
    if settings.kube_versions.len() < 2 || settings.target == TargetSpec::Kube {
        return Ok(None);
    }
    if *writes {
        let problem = Problem::new("a deploy to a folder needs one release of Kubernetes, but several are named");
        let help = "deploy with one, --kube-version 1.30, and check the others: gantry check --kube-version 1.28,1.30";
        return Err(Error::usage(problem.help(help)));
    }
    Ok(Some(FleetMembers::Releases(settings.kube_versions.iter().copied().collect())))
}

/// Refuses flags that have no effect with one cluster.
fn only_one(run: &ConfiguredRun<'_>) -> Result<()> {
    let ManyArgs { parallel, shard, .. } = &run.args.many;
    let flags = [("--shard", shard.is_some()), ("--parallel", parallel.is_some()), ("--waves", run.waves().is_some())];
    match flags.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let problem = Problem::new(format!("{flag} requires several clusters, but there is only one"));
            Err(Error::usage(problem.help("name several: --context a,b,c, --context 'prod-*', --contexts-file FILE")))
        }
    }
}

fn of_flag(names: &str) -> Result<Vec<RequestedContext>> {
    let wanted: Vec<RequestedContext> =
        names.split(',').map(|name| RequestedContext { text: name.trim().to_owned(), at: None }).collect();
    if wanted.iter().any(|wanted| wanted.text.is_empty()) {
        return Err(Error::usage(Problem::new(format!("--context {names:?} contains an empty name"))));
    }
    Ok(wanted)
}

/// One on each line; `#` begins a comment at the start of a line or after a space.
fn of_file(name: &Path, working_directory: &Path) -> Result<Vec<RequestedContext>> {
    let shown = name.display().to_string();
    let cannot = |why: String| Error::usage(Problem::new(format!("--contexts-file {shown} {why}")));
    let bytes = bounded::read(&working_directory.join(name));
    let bytes = bytes.map_err(|error| cannot(format!("cannot be read: {error}")))?;
    let text = manifest::text(&shown, bytes).map_err(Error::usage)?;
    let mut wanted = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let comment = line
            .char_indices()
            .find(|(at, c)| *c == '#' && line[..*at].chars().next_back().is_none_or(char::is_whitespace));
        let text = comment.map_or(line, |(at, _)| &line[..at]).trim();
        if !text.is_empty() {
            let at = Some(Location { file: shown.clone(), line: index + 1, column: 0 });
            wanted.push(RequestedContext { text: text.to_owned(), at });
        }
    }
    match wanted.is_empty() {
        true => Err(Error::usage(
            Problem::new(format!("--contexts-file {shown} lists no context")).help("write one on each line"),
        )),
        false => Ok(wanted),
    }
}

/// Each context once, in the order of the names and patterns; the matches of one pattern in the kubeconfig's order.
fn select(wanted: &[RequestedContext], known: &[&str]) -> std::result::Result<Vec<String>, Vec<Problem>> {
    let (mut names, mut seen, mut problems) = (Vec::new(), BTreeSet::new(), Vec::new());
    let exact: BTreeSet<&str> = known.iter().copied().collect();
    for one in wanted {
        let shown = manifest::shown_text(&one.text);
        let mut found: Vec<&str> = exact.get(one.text.as_str()).into_iter().copied().collect();
        if found.is_empty() && one.is_pattern() {
            let pattern = WildMatch::new(&one.text);
            found = known.iter().copied().filter(|name| pattern.matches(name)).collect();
        }
        if found.is_empty() {
            let near = did_you_mean(&one.text, known.iter().copied());
            let near = near.map(|near| format!(", did you mean {:?}?", manifest::shown_text(near))).unwrap_or_default();
            let message = match one.is_pattern() {
                true => format!("no context of the kubeconfig matches {shown:?}"),
                false => format!("the kubeconfig has no context {shown:?}{near}"),
            };
            problems.push(one.problem(message).help(format!("known: {}", listed(known))));
        }
        names.extend(found.into_iter().filter(|name| seen.insert(*name)).map(str::to_owned));
    }
    if problems.is_empty() { Ok(names) } else { Err(problems) }
}

fn listed(known: &[&str]) -> String {
    let mut names: Vec<String> = known.iter().map(|name| manifest::shown_text(name)).collect();
    names.sort();
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = ["prod-b", "prod-a", "staging", "odd*name", "dev"];

    fn selected(names: &str) -> std::result::Result<Vec<String>, Vec<String>> {
        let wanted = of_flag(names).expect("no empty name");
        select(&wanted, &KNOWN).map_err(|problems| problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn names_keep_their_order_and_patterns_that_of_the_kubeconfig() {
        let names = |text| selected(text).unwrap().join(" ");
        assert_eq!(names("dev,prod-*,prod-a"), "dev prod-b prod-a");
        assert_eq!(names("*"), KNOWN.join(" "));
        assert_eq!(names("prod-a, prod-?"), "prod-a prod-b");
        assert_eq!(names("odd*name"), "odd*name", "a name is no pattern where there is such a context");
    }

    #[test]
    fn every_name_without_a_context_is_reported() {
        assert_eq!(
            selected("stagin,dev,live-*").unwrap_err(),
            [
                "the kubeconfig has no context \"stagin\", did you mean \"staging\"?",
                "no context of the kubeconfig matches \"live-*\""
            ]
        );
        assert!(of_flag("a,,b").is_err() && of_flag(",").is_err());
    }

    #[test]
    fn a_file_has_one_context_on_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |text: &str| {
            std::fs::write(folder.path().join("contexts"), text).expect("written");
            of_file("contexts".as_ref(), folder.path())
        };
        let wanted = read("\u{feff}# all of them\r\n\r\n  prod-*  # two\r\nname#1\r\n").expect("a list");
        let lines: Vec<(&str, usize)> =
            wanted.iter().map(|one| (one.text.as_str(), one.at.as_ref().expect("a place").line)).collect();
        assert_eq!(lines, [("prod-*", 3), ("name#1", 4)]);
        let problems = select(&read("dev\nlive\n").expect("a list"), &KNOWN).unwrap_err();
        assert_eq!(problems[0].to_string(), "contexts:2: the kubeconfig has no context \"live\"");
        let error = |text| read(text).err().expect("an error").to_string();
        assert_eq!(error("# nothing\n\n"), "--contexts-file contexts lists no context");
        assert!(
            of_file("missing".as_ref(), folder.path()).err().expect("an error").to_string().contains("cannot be read")
        );
    }
}

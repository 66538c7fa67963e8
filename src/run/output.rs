//! The output of a run: a writer for each `-o`, problems and notices to stderr, the documented line last.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::facts;
use super::file;
use super::host::Host;
use super::own_report;
use crate::cli::OutputArgs;
use gantry_cluster::ConnectionOverrides;
use gantry_core::ci_log::{Guarded, OutputSyntax};
use gantry_core::finding::{CheckReport, Severity};
use gantry_core::manifest::{ManifestSource, is_manifest_file};
use gantry_core::options::{ColorChoice, KappLines, OutputSpec, ReportFormat, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::ui;
use gantry_deploy::config::Settings;
use gantry_preflight::{explain, registry};
use gantry_report::human::{self, HumanOptions, Sources};
use gantry_report::{
    ClusterReport, ErrorEntry, FormatWriter, Outcome, Report, ReportContext, ReportList, ReportPaths, ReportPurpose,
    RuleText, RuleTexts, writer_of,
};

/// The most notices that are shown at a time, unless `verbose`; the others are counted.
const MOST_NOTICES: usize = 20;

/// The outputs of one run. Created from the flags before the configuration is known, so that its problems can be
/// reported.
pub struct Output {
    specs: Vec<OutputSpec>,
    color: ColorChoice,
    options: HumanOptions,
    sources: Sources,
    /// Problems were written to stderr already and are not repeated there.
    reported: bool,
    is_configured: bool,
    /// Whether the lines of kapp or OLM are printed, and if so, whether on a terminal, too.
    kapp_lines: KappLines,
    is_quoted: bool,
    /// With many clusters: the notices of one cluster, kept for the whole run, which prints them.
    kept: Option<Vec<Problem>>,
    /// A new file of the human report starts with [`own_report::MARK`].
    marks_human: bool,
}

impl Output {
    pub fn new(args: &OutputArgs, purpose: ReportPurpose) -> Self {
        Output {
            specs: args.specs.clone(),
            color: args.color.unwrap_or(ColorChoice::Auto),
            options: HumanOptions { verbose: args.verbose > 0, quiet: args.quiet, purpose, ..HumanOptions::default() },
            sources: Sources::default(),
            reported: false,
            is_configured: false,
            kapp_lines: KappLines::default(),
            is_quoted: false,
            kept: None,
            marks_human: false,
        }
    }

    /// The output of one of many clusters.
    pub fn for_cluster(&self) -> Self {
        Output {
            specs: Vec::new(),
            color: self.color,
            options: self.options,
            sources: Sources::default(),
            reported: false,
            is_configured: true,
            kapp_lines: KappLines::default(),
            is_quoted: false,
            kept: Some(Vec::new()),
            marks_human: false,
        }
    }

    /// The notices that were kept for the whole run.
    pub fn take_notices(&mut self) -> Vec<Problem> {
        self.kept.take().unwrap_or_default()
    }

    /// Adds the error that stopped a run to its report.
    pub fn add_to(&self, report: &mut Report, error: &Error) {
        report.outcome = match error {
            Error::Blocked(_) => Outcome::Blocked,
            Error::Failed(_) | Error::Usage(_) => Outcome::Failed,
        };
        report.errors.extend(error.problems().iter().map(ErrorEntry::from));
        if self.redacts() {
            report.errors.iter_mut().for_each(ErrorEntry::redact);
        }
    }

    /// Whether the lines of kapp or OLM are printed; with `always`, on a terminal, too, and otherwise only for scripts.
    pub fn quote_tools(&mut self, lines: KappLines, always: bool) {
        (self.kapp_lines, self.is_quoted) = (lines, always);
    }

    /// Whether the configuration is known, and with it the files that no report may overwrite.
    pub fn is_configured(&self) -> bool {
        self.is_configured
    }

    pub fn is_quiet(&self) -> bool {
        self.options.quiet
    }

    /// Applies the output settings of the merged configuration. A file that cannot be written is reported here, before
    /// anything else happens.
    pub fn configure(&mut self, specs: &[OutputSpec], color: ColorChoice, redact: bool, host: &Host) -> Result<()> {
        self.specs = specs.to_vec();
        self.color = color;
        self.options.redact = redact;
        let (mut problems, mut unwritten) = (Vec::new(), Vec::new());
        if self.specs.iter().filter(|spec| spec.file.is_none()).count() > 1 {
            problems.push(
                Problem::new("two output formats for standard output")
                    .help("write all but one of them to a file: -o json=FILE"),
            );
        }
        for path in self.specs.iter().filter_map(|spec| spec.file.as_deref()) {
            let path = host.working_directory.join(path);
            if let Err(error) = file::check(&path) {
                problems.push(unwritable(&path, &error));
                unwritten.push(path);
            }
        }
        let mut replaced = Vec::new();
        // Reported once; the other outputs still get their report.
        self.specs.retain(|spec| {
            let Some(path) = &spec.file else { return true };
            let whole = host.working_directory.join(path);
            if unwritten.contains(&whole) {
                return false;
            }
            let Some(file) = file::replaced(&whole) else { return true };
            let is_first = !replaced.contains(&file);
            if is_first {
                replaced.push(file);
            } else {
                let problem = Problem::new(format!("two reports to one file: {}", path.display()));
                problems.push(problem.help("name a different file for each: -o json=FILE"));
            }
            is_first
        });
        if problems.is_empty() { Ok(()) } else { Err(Error::Usage(problems)) }
    }

    /// Says beside commands of kubectl that it has to use the cluster of these settings.
    pub fn with_connection(&mut self, settings: &Settings) {
        let Settings { context, kubeconfig, connection, .. } = settings;
        self.options.is_other_cluster =
            context.is_some() || kubeconfig.is_some() || *connection != ConnectionOverrides::default();
    }

    /// Refuses to write over files that are not reports of gantry, if the project file names the outputs: the project
    /// can come from somebody else, and the file can be one of the user's.
    pub fn spare_foreign_files(&mut self, host: &Host) -> Result<()> {
        let mut problems = Vec::new();
        self.specs.retain(|spec| {
            let Some(path) = &spec.file else { return true };
            let whole = host.working_directory.join(path);
            if !whole.exists() || own_report::is_report(spec.format, &whole) {
                return true;
            }
            let problem = Problem::new(format!("{} exists, and gantry did not write it", path.display()));
            problems.push(problem.help(
                "the project file names it as output, and may only replace reports of gantry: remove the file, or use \
                 -o or -c FILE",
            ));
            false
        });
        self.marks_human = true;
        if problems.is_empty() { Ok(()) } else { Err(Error::Usage(problems)) }
    }

    /// Refuses to write a report over a file that this run reads, whatever name it has.
    pub fn refuse_to_overwrite(&mut self, read: &[PathBuf], target: &TargetSpec, host: &Host) -> Result<()> {
        let live = match target {
            TargetSpec::Dir(folder) => host.working_directory.join(folder).canonicalize().ok(),
            _ => None,
        };
        let mut problems = Vec::new();
        self.specs.retain(|spec| {
            let Some(path) = &spec.file else { return true };
            let whole = host.working_directory.join(path);
            // Nothing is lost in a pipe or a device, and to open a pipe could take forever.
            if !whole.is_file() {
                return true;
            }
            let is_within = |folder: &Path| {
                whole.canonicalize().is_ok_and(|file| is_manifest_file(&file) && file.starts_with(folder))
            };
            let is_read = |file: &&PathBuf| {
                file.is_file() && same_file::is_same_file(file, &whole).unwrap_or(false)
                    || file.is_dir() && file.canonicalize().is_ok_and(|folder| is_within(&folder))
            };
            let over = read.iter().find(is_read);
            let is_live = live.as_ref().is_some_and(|folder| is_within(folder));
            let what = match over {
                Some(file) => {
                    let file = file.strip_prefix(&host.working_directory).unwrap_or(file);
                    format!("{}, which this run reads", file.display())
                }
                None if is_live => "a file of the target".to_owned(),
                None => return true,
            };
            let problem = Problem::new(format!("the report to {} would overwrite {what}", path.display()));
            problems.push(problem.help("name another file: -o json=FILE"));
            false
        });
        self.is_configured = true;
        if problems.is_empty() { Ok(()) } else { Err(Error::Usage(problems)) }
    }

    /// Prints the outcome to stderr, if a report could not be written.
    pub fn print_results(&mut self, host: &mut Host, report: &Report) {
        if report.changes.iter().all(|change| change.result.is_none()) {
            return;
        }
        let options = HumanOptions { color: host.color(self.color, host.stderr_is_terminal), ..self.options };
        let _ = human::write_results_and_outcome(report, &options, &mut host.stderr);
        let _ = host.stderr.flush();
    }

    /// Keeps the text of a manifest file for excerpts.
    pub fn add_source(&mut self, source: Arc<ManifestSource>) {
        self.sources.add(source);
    }

    /// Prints notices and adds them to the report.
    pub fn add_notices(&mut self, host: &mut Host, notices: &[Problem], report: &mut Report) {
        self.print_notices(host, notices);
        report.notices.extend(notices.iter().map(ErrorEntry::from));
    }

    /// Prints notices.
    pub fn print_notices(&mut self, host: &mut Host, notices: &[Problem]) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(notices);
            return;
        }
        if self.is_quiet() {
            return;
        }
        let shown = if self.options.verbose { notices.len() } else { MOST_NOTICES };
        host.print_notices(notices.iter().take(shown));
        if notices.len() > shown {
            let rest = gantry_core::text::count(notices.len() - shown, "more notice");
            let _ = writeln!(host.stderr, "… and {rest} (-v shows all of them)");
        }
    }

    /// Prints problems that do not stop the run.
    pub fn print_warnings(&mut self, host: &mut Host, warnings: &[ErrorEntry]) {
        // The report of the cluster has them.
        if self.is_quiet() || self.kept.is_some() {
            return;
        }
        for warning in warnings {
            let at = warning.source.as_ref().map(|at| format!("{}:{}: ", at.file, at.line)).unwrap_or_default();
            let help = warning.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
            let line = format!("warning: {at}{}{help}", warning.message);
            let _ = writeln!(host.stderr, "{}", gantry_core::text::sanitize(&line));
        }
    }

    /// Whether values are hidden. Known once the output is configured.
    pub fn redacts(&self) -> bool {
        self.options.redact
    }

    /// Prints problems that stop the run to stderr.
    pub fn print_problems(&mut self, host: &mut Host, problems: &[Problem]) {
        for file in problems.iter().filter_map(|problem| problem.at.as_ref()).map(|at| &at.file) {
            self.sources.read(file);
        }
        let color = host.color(self.color, host.stderr_is_terminal);
        let options = HumanOptions { color, ..self.options };
        let _ = human::write_problems(problems, &options, &self.sources, &mut host.stderr);
        self.reported = true;
    }

    /// Prints the human report, before anything is written.
    pub fn review(&mut self, host: &mut Host, report: &Report) -> Result<()> {
        if self.kept.is_some() {
            return Ok(());
        }
        self.human(host, |options, sources, out| human::write_review(report, options, sources, out))
    }

    /// The same for many clusters.
    pub fn review_list(&mut self, host: &mut Host, list: &ReportList) -> Result<()> {
        self.human(host, |options, sources, out| {
            human::list::write_sections(list, &|_| true, options, sources, out)?;
            human::list::write_overview(list, options, out)
        })
    }

    /// Prints how the run ended: the outcome for people, the whole report for programs, the documented line on stderr.
    /// If one output cannot be written, the others still are.
    pub fn finish(&mut self, host: &mut Host, report: &Report) -> Result<()> {
        // Before the verdict, which is the last line.
        self.quote(host, documented_lines(report));
        let human = match self.reported {
            true => Ok(()),
            false => self.human(host, |options, sources, out| human::write_outcome(report, options, sources, out)),
        };
        let whole = self.write_whole(host, None, |writer, around, out| (writer.write)(report, around, out));
        combine(human, whole)
    }

    /// The same for many clusters, which the lines name. The human report shows those that are `fresh`, or all.
    pub fn finish_list(&mut self, host: &mut Host, list: &ReportList, fresh: Option<&BTreeSet<usize>>) -> Result<()> {
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for cluster in &list.clusters {
            for line in documented_lines(&cluster.report) {
                match lines.iter_mut().find(|(known, _)| *known == line) {
                    Some((_, clusters)) => clusters.push(&cluster.name),
                    None => lines.push((line, vec![&cluster.name])),
                }
            }
        }
        let of = |(line, clusters): (String, Vec<&str>)| {
            format!("{}: {line}", gantry_report::list_names(clusters.into_iter(), usize::MAX))
        };
        self.quote(host, lines.into_iter().map(of).collect());
        let fresh: Option<BTreeSet<&str>> =
            fresh.map(|fresh| fresh.iter().map(|index| list.clusters[*index].name.as_str()).collect());
        let human = self.human(host, |options, sources, out| {
            let fits =
                |cluster: &ClusterReport| fresh.as_ref().is_none_or(|fresh| fresh.contains(cluster.name.as_str()));
            human::list::write_sections(list, &fits, options, sources, out)?;
            human::list::write_overview(list, options, out)?;
            human::list::write_end(list, options, sources, out)
        });
        let write = |writer: &FormatWriter, around: ReportContext<'_>, out: &mut dyn Write| {
            (writer.write_list)(list, around, out)
        };
        let whole = self.write_whole(host, Some(list), write);
        combine(human, whole)
    }

    /// The lines that scripts look for.
    fn quote(&self, host: &mut Host, lines: Vec<String>) {
        let is_wanted = self.kapp_lines == KappLines::Auto && !self.is_quiet();
        if is_wanted && (self.is_quoted || !host.stderr_is_terminal) {
            for line in lines {
                let _ = writeln!(host.stderr, "{}", gantry_core::text::sanitize(&line));
            }
        }
    }

    /// Writes the report in each format for programs or browsers.
    fn write_whole(
        &mut self,
        host: &mut Host,
        list: Option<&ReportList>,
        write: impl Fn(&FormatWriter, ReportContext<'_>, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let places = ReportPaths::new(&host.working_directory, root_of(&host.working_directory))
            .shown_at(self.sources.shown_at());
        let run = facts::describe_run(host);
        let around = ReportContext {
            rules: &OfGantry,
            places: &places,
            excerpts: &self.sources,
            purpose: self.options.purpose,
            redact: self.options.redact,
            list,
            run: &run,
        };
        let mut failed = Vec::new();
        let specs = self.specs.iter().filter_map(|spec| Some((writer_of(spec.format)?, &spec.file)));
        for (writer, file) in specs {
            let written = match file {
                None => {
                    let mut out = host.stdout(writer.syntax);
                    write(writer, around, &mut out).and_then(|()| out.flush()).map_err(|error| stdout_lost(&error))
                }
                Some(path) => {
                    let path = host.working_directory.join(path);
                    // The file can be printed to a log later.
                    let written =
                        file::replace(&path, |out| write(writer, around, &mut Guarded::new(out, writer.syntax)));
                    written.map_err(|error| Error::failed(unwritable(&path, &error)))
                }
            };
            failed.extend(written.err());
        }
        match failed.as_slice() {
            [] => Ok(()),
            errors => Err(Error::Failed(errors.iter().flat_map(|error| error.problems().to_vec()).collect())),
        }
    }

    fn human(
        &mut self,
        host: &mut Host,
        write: impl Fn(&HumanOptions, &Sources, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        // Without `-o`, the human report is printed.
        let default = [OutputSpec { format: ReportFormat::Human, file: None }];
        let specs = if self.specs.is_empty() { &default[..] } else { &self.specs };
        for spec in specs.iter().filter(|spec| spec.format == ReportFormat::Human) {
            match &spec.file {
                None => {
                    let options = HumanOptions {
                        color: host.color(self.color, host.stdout_is_terminal),
                        width: ui::width(host.stdout_is_terminal, host.environment.get("COLUMNS").map(String::as_str)),
                        wraps_titles: host.stdout_is_terminal,
                        ..self.options
                    };
                    write(&options, &self.sources, &mut host.stdout(OutputSyntax::Text))
                        .map_err(|error| stdout_lost(&error))?;
                }
                Some(path) => {
                    let path = host.working_directory.join(path);
                    let is_new = !path.exists();
                    let written = file::append(&path, |out| {
                        if self.marks_human && is_new {
                            writeln!(out, "{}", own_report::MARK)?;
                        }
                        write(&self.options, &self.sources, &mut Guarded::new(out, OutputSyntax::Text))
                    });
                    written.map_err(|error| Error::failed(unwritable(&path, &error)))?;
                }
            }
        }
        host.stdout(OutputSyntax::Text).flush().map_err(|error| stdout_lost(&error))
    }
}

/// Combines the problems of both results.
fn combine(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Ok(()), other) => other,
        (one, Ok(())) => one,
        (Err(one), Err(other)) => Err(Error::Failed([one.problems(), other.problems()].concat())),
    }
}

/// The repository that the folder is in, or else the folder.
fn root_of(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder)
}

/// What `gantry rules` knows.
struct OfGantry;

impl RuleTexts for OfGantry {
    fn rule(&self, name: &str) -> Option<RuleText> {
        let rule = explain::rule(name)?;
        Some(RuleText {
            summary: rule.summary().to_owned(),
            reports: rule.reports().to_owned(),
            severity: rule.severity(),
            text: rule.text(),
            markdown: rule.markdown(),
        })
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    let folder = path.parent().filter(|folder| error.kind() == io::ErrorKind::NotFound && !folder.exists());
    match folder {
        Some(folder) => Problem::new(format!(
            "cannot write the report to {}: the folder {} does not exist",
            path.display(),
            folder.display()
        ))
        .help("create the folder first, or name a file in another one"),
        None => Problem::new(format!("cannot write the report to {}: {error}", path.display())),
    }
}

fn stdout_lost(error: &io::Error) -> Error {
    Error::failed(Problem::new(format!("cannot write to standard output: {error}")))
}

/// The lines for each blocked CRD, in the words of kapp and OLM, for scripts that look for them.
fn documented_lines(report: &Report) -> Vec<String> {
    if report.outcome != Outcome::Blocked {
        return Vec::new();
    }
    report.checks.iter().flat_map(lines_of_check).collect()
}

fn lines_of_check(check: &CheckReport) -> Vec<String> {
    let Some(entry) = registry::find(&check.name) else { return Vec::new() };
    let mut by_crd: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in check.findings.iter().filter(|finding| finding.severity == Severity::Error) {
        let (Some(text), Some(crd)) = (&finding.body.documented, &finding.object) else { continue };
        match by_crd.iter_mut().find(|(name, _)| *name == crd.name) {
            Some((_, texts)) => texts.push(text),
            None => by_crd.push((&crd.name, vec![text])),
        }
    }
    by_crd.into_iter().flat_map(|(crd, texts)| (entry.documented)(crd, &texts)).collect()
}

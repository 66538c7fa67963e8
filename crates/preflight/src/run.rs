//! Runs the enabled checks and turns their violations into findings: with their place in the manifests, the severity
//! that `mode` allows, and waivers applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;

use super::change_place::RemovedPartLocator;
use super::objects::ObjectSurvey;
use super::olm::OlmState;
use super::proofs::{ProofCache, Proofs, Proven};
use super::registry::{self, CHECKS};
use super::superseded::{self, LeftOut};
use super::waive::{self, Waivers};
use super::{Check, CheckResult, Context, CouldNotCheck, Notices, OlmReleaseOfRun, Violation, ViolationSubject};
use gantry_catalog::NamedRelease;
use gantry_cluster::Target;
use gantry_core::finding::{
    Baseline, BaselineEntry, CheckReport, CheckStatus, ExtensionEntry, Finding, Fingerprint, Mode, Severity, Source,
    SubscriptionEntry,
};
use gantry_core::manifest::Spans;
use gantry_core::problem::Problem;
use gantry_core::text;
use gantry_core::ui::progress::ProgressStage;
use gantry_deploy::config::CustomCheck;
use gantry_deploy::plan::{Plan, upgraded_crds};
use gantry_olm::cluster_extension;
use gantry_olm::content::Catalogs;

/// A check that takes part in this run.
pub struct Enabled {
    /// The name of the check.
    pub name: String,
    /// Whether its findings are errors or warnings.
    pub mode: Mode,
    /// No flag, variable or file names the check.
    pub by_default: bool,
    /// The check with its configuration.
    pub check: Box<dyn Check>,
}

/// The options of a run of the checks.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Findings that are errors count as warnings (`--warn-only`).
    pub warn_only: bool,
    /// Messages must not contain values of objects (`--redact`).
    pub redact: bool,
    /// Findings that may pass.
    pub waivers: Waivers<'a>,
    /// Known findings, which no longer count.
    pub baseline: Option<&'a Baseline>,
    /// CRDs whose stored objects are moved before the deploy: see [`waive::set_aside`].
    pub to_migrate: &'a BTreeSet<String>,
    /// The CRDs whose stored objects this run has migrated.
    pub migrated: &'a BTreeSet<String>,
    /// The catalogs of the configuration.
    pub catalogs: Catalogs<'a>,
    /// The release of OLM v1 that the settings name, for all checks.
    pub olm_release: Option<NamedRelease>,
    /// All checks that the configuration defines, whether they run or not, because their names are also names of rules.
    pub custom_checks: &'a [CustomCheck],
    /// Results shared with other clusters.
    pub known: Option<&'a Arc<ProofCache>>,
    /// The progress of the checks.
    pub stage: &'a ProgressStage,
}

/// The result of a run.
pub struct Ran {
    /// In the order of the checks.
    pub reports: Vec<CheckReport>,
    /// Problems with the waivers.
    pub problems: Vec<Problem>,
    /// What the checks report besides their answers.
    pub notices: Vec<Problem>,
    /// The resolution of the plan's ClusterExtensions.
    pub extensions: Vec<ExtensionEntry>,
    /// What classic OLM installs for the plan's Subscriptions.
    pub subscriptions: Vec<SubscriptionEntry>,
    /// The comparison of the findings with the baseline.
    pub baseline: Option<BaselineEntry>,
}

/// Runs all checks; no check is skipped because of what another one finds.
pub async fn run(checks: &[Enabled], plan: &Plan, target: &Target, options: RunOptions<'_>) -> Ran {
    let RunOptions {
        warn_only,
        redact,
        waivers,
        baseline,
        to_migrate,
        migrated,
        catalogs,
        olm_release,
        custom_checks,
        known,
        stage,
    } = options;
    let notices: Vec<Notices> = checks.iter().map(|_| Notices::default()).collect();
    let proofs = Proofs::new(Proven { release: plan.release() }, upgraded_crds(&plan.changes).count());
    let proofs = Arc::new(proofs.sharing(known.cloned()));
    let objects = Arc::new(ObjectSurvey::new(checks.iter().map(|enabled| enabled.check.object_data())));
    let lookups = || checks.iter().map(|enabled| enabled.check.lookups(plan, &proofs)).collect();
    let looks_at_all = checks.iter().any(|enabled| enabled.check.needs_all_packages());
    let configured = olm_release.or_else(|| checks.iter().find_map(|enabled| enabled.check.olm_release()));
    let olm = &OlmState::new(plan, target, catalogs.sources, looks_at_all, configured);
    let olm_release = &OlmReleaseOfRun::new(target, configured.map(|named| named.olm));
    let live_lookups = || checks.iter().map(|enabled| enabled.check.live_lookups(plan, olm)).collect();
    let deletion_lookups = || checks.iter().flat_map(|enabled| enabled.check.deletion_lookups(plan)).collect();
    let unread = unread_objects(plan);
    let runs = checks.iter().zip(&notices).map(|(enabled, notices)| {
        let (unread, proofs, objects) = (unread.clone(), Arc::clone(&proofs), Arc::clone(&objects));
        let context = Context {
            plan,
            target,
            lookups: &lookups,
            live_lookups: &live_lookups,
            deletion_lookups: &deletion_lookups,
            redact,
            proofs,
            objects,
            catalogs,
            olm,
            olm_release,
            today: waivers.today,
            by_default: enabled.by_default,
            stage,
            notices,
        };
        async move {
            match unread.filter(|_| enabled.check.needs_live_objects()) {
                Some(error) => Err(error),
                None => enabled.check.run(context).await,
            }
        }
    });
    let answers = join_all(runs).await;
    let mut reports: Vec<CheckReport> =
        checks.iter().zip(answers).map(|(enabled, answer)| to_report(enabled, answer, plan, warn_only)).collect();
    waive::set_aside(&mut reports, to_migrate, migrated);
    let mut problems = apply_waivers(&mut reports, waivers, custom_checks);
    problems.extend(explain_kept_errors(&reports, warn_only));
    let left_out = superseded::leave_out(&mut reports);
    let baseline = baseline.map(|baseline| {
        let entry = baseline.apply(&mut reports);
        recompute_status(&mut reports, &left_out);
        entry
    });
    if redact {
        reports.iter_mut().flat_map(|report| &mut report.findings).for_each(Finding::redact);
    }
    let mut notices_of_olm = olm.notices();
    let is_about_olm =
        !plan.bundles.is_empty() || plan.changes.iter().any(|change| cluster_extension::is_one(&change.desired.object));
    let note = configured.filter(|_| is_about_olm).and_then(|named| named.note());
    notices_of_olm.extend(note.map(Problem::new));
    let (extensions, subscriptions) = (Vec::new(), Vec::new());
    let mut ran = Ran { reports, problems, notices: notices_of_olm, extensions, subscriptions, baseline };
    for noticed in notices.iter().map(Notices::take) {
        ran.notices.extend(noticed.notices);
        ran.extensions.extend(noticed.extensions);
        ran.subscriptions.extend(noticed.subscriptions);
    }
    ran
}

/// The error of checks that need live objects, if some of those could not be read.
fn unread_objects(plan: &Plan) -> Option<CouldNotCheck> {
    let unread = plan.unread();
    let first = unread.first()?;
    let more = match unread.len() - 1 {
        0 => String::new(),
        more => format!(", and {}", text::count(more, "similar error")),
    };
    let message = format!("live objects cannot be read: {}{more}", first.message);
    Some(CouldNotCheck { message, help: first.help.clone() })
}

/// Applies the waivers to the findings, and their results to the status of each check. Returns the problems of the
/// waivers themselves.
fn apply_waivers(reports: &mut [CheckReport], waivers: Waivers<'_>, custom_checks: &[CustomCheck]) -> Vec<Problem> {
    let own = custom_checks.iter().map(|check| check.name.as_str());
    let all: Vec<&str> = CHECKS.iter().flat_map(|check| check.finding_names()).chain(own).collect();
    let ran = reports.iter().filter(|report| !matches!(report.status, CheckStatus::Failed | CheckStatus::Skipped));
    let names = |report: &CheckReport| match registry::find(&report.name) {
        Some(check) => check.finding_names().into_iter().map(str::to_owned).collect(),
        None => vec![report.name.clone()],
    };
    let ran: Vec<String> = ran.flat_map(names).collect();
    let ran: Vec<&str> = ran.iter().map(String::as_str).collect();
    let problems = waivers.apply(reports, &all, &ran);
    for report in reports {
        // A check whose findings are waived may no longer block or warn.
        if matches!(report.status, CheckStatus::Blocked | CheckStatus::Warned) {
            report.status = status(&report.findings, !report.unchecked.is_empty());
        }
    }
    problems
}

/// Updates the status of the checks for the baseline: known findings neither block nor warn, and neither do the
/// findings of other checks that they supersede.
fn recompute_status(reports: &mut [CheckReport], left_out: &[LeftOut]) {
    let findings = reports.iter().flat_map(|report| &report.findings);
    let known: BTreeSet<Fingerprint> =
        findings.filter(|finding| finding.severity == Severity::Known).map(Fingerprint::new).collect();
    for (at, report) in reports.iter_mut().enumerate() {
        if !matches!(report.status, CheckStatus::Blocked | CheckStatus::Warned) {
            continue;
        }
        let left = left_out.iter().filter(|left| left.report == at && !known.contains(&left.reported_by));
        let severities = report.findings.iter().map(|finding| finding.severity).chain(left.map(|left| left.severity));
        report.status = status_of(severities, !report.unchecked.is_empty());
    }
}

/// The status of a check with these findings; `unchecked` says whether something could not be checked.
fn status(findings: &[Finding], unchecked: bool) -> CheckStatus {
    status_of(findings.iter().map(|finding| finding.severity), unchecked)
}

fn status_of(severities: impl Iterator<Item = Severity>, unchecked: bool) -> CheckStatus {
    match severities.min() {
        Some(Severity::Error) => CheckStatus::Blocked,
        _ if unchecked => CheckStatus::Failed,
        Some(Severity::Warning) => CheckStatus::Warned,
        _ => CheckStatus::Passed,
    }
}

fn to_report(
    enabled: &Enabled,
    answer: Result<CheckResult, CouldNotCheck>,
    plan: &Plan,
    warn_only: bool,
) -> CheckReport {
    let mode = if warn_only { Mode::Warn } else { enabled.mode };
    let mut report = CheckReport::new(enabled.name.clone(), mode, CheckStatus::Failed, Vec::new());
    let unchecked = match answer {
        Ok(CheckResult::Checked { violations, unchecked, coverage, suppressed }) => {
            let refusals = registry::find(&enabled.name).map_or(&[][..], |entry| entry.refusals);
            report.findings = locate(violations, plan, mode, refusals);
            report.status = status(&report.findings, !unchecked.is_empty());
            report.coverage = coverage;
            report.suppressed = suppressed;
            unchecked
        }
        Ok(CheckResult::Skipped(reason)) => {
            report.status = CheckStatus::Skipped;
            report.message = Some(reason);
            Vec::new()
        }
        Err(error) => vec![error],
    };
    report.unchecked = unchecked;
    report
}

/// Whether the deploy or OLM writes the subject of a violation. A deploy that does not change an object neither causes
/// nor fixes what is wrong with it, so blocking would only hold up the rest of the deploy.
fn is_written(subject: &ViolationSubject, plan: &Plan) -> bool {
    match subject {
        ViolationSubject::Change(index) => !plan.changes[*index].action.leaves_alone(),
        // OLM writes it.
        ViolationSubject::Unplaced(_) | ViolationSubject::Bundle(_) => true,
        ViolationSubject::Object(_) | ViolationSubject::Plan => plan.has_effect(),
    }
}

/// Why findings are errors although the configuration makes those of their check warnings.
fn explain_kept_errors(reports: &[CheckReport], warn_only: bool) -> Vec<Problem> {
    let kept = |report: &CheckReport| {
        let refused = || report.findings.iter().filter(|finding| finding.is_refused_error());
        let rules: BTreeSet<&str> = refused().map(|finding| finding.rule.as_str()).collect();
        let set = if warn_only { "--warn-only".to_owned() } else { format!("mode: warn of {}", report.name) };
        (report.mode == Mode::Warn && !rules.is_empty()).then(|| {
            let (count, is) = match refused().count() {
                1 => ("1 finding".to_owned(), "stays an error"),
                many => (text::count(many, "finding"), "stay errors"),
            };
            let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
            Problem::new(format!(
                "{set}: {count} ({rules}) {is}: the API server would refuse the request, whatever is \
                configured here"
            ))
        })
    };
    reports.iter().filter_map(kept).collect()
}

/// Finds the line and column of each violation. Each manifest is parsed again only once, even if it has several
/// violations.
///
/// `refusals` are the rules of the check whose findings predict that the server refuses a request.
fn locate(violations: Vec<Violation>, plan: &Plan, mode: Mode, refusals: &[&str]) -> Vec<Finding> {
    let mut by_subject: BTreeMap<ViolationSubject, Vec<Violation>> = BTreeMap::new();
    for violation in violations {
        by_subject.entry(violation.subject.clone()).or_default().push(violation);
    }
    let groups: Vec<(ViolationSubject, Vec<Violation>)> = by_subject.into_iter().collect();
    let places = gantry_core::parallel::in_parallel(&groups, |(subject, violations)| {
        let (object, spans) = match subject {
            ViolationSubject::Change(index) => {
                let desired = &plan.changes[*index].desired;
                (Some(&*desired.object), Some(Spans::parse(&desired.origin)))
            }
            ViolationSubject::Unplaced(index) => {
                let manifest = &plan.unplaced[*index].manifest;
                (Some(&*manifest.object), Some(Spans::parse(&manifest.origin)))
            }
            ViolationSubject::Bundle(index) => match &plan.bundles[*index].csv {
                Some(csv) => (Some(&*csv.object), Some(Spans::parse(&csv.origin))),
                None => (None, None),
            },
            ViolationSubject::Object(object) => (Some(object), None),
            ViolationSubject::Plan => (None, None),
        };
        let removed = match subject {
            ViolationSubject::Change(index) => Some(RemovedPartLocator::new(&plan.changes[*index])),
            _ => None,
        };
        let sources = |violation: &Violation| -> [Option<Source>; 2] {
            let Some(spans) = &spans else { return [None, None] };
            let located = spans.locate(&violation.at);
            let change = removed.as_ref().and_then(|removed| removed.locate(&violation.at, &located, spans));
            [Some(located.location.into()), change.map(|change| change.location.into())]
        };
        (object.cloned(), violations.iter().map(sources).collect::<Vec<_>>())
    });
    // Violations can be many and large, so they are moved, not copied.
    let mut findings = Vec::new();
    for ((subject, violations), (object, sources)) in groups.into_iter().zip(places) {
        let is_written = is_written(&subject, plan);
        let to_finding = |(violation, [source, change_source]): (Violation, [Option<Source>; 2])| {
            let is_refusal = refusals.contains(&&*violation.rule) && violation.severity <= Severity::Warning;
            let refused_by_server = is_refusal && !violation.may_be_accepted && is_written;
            let weighed = |severity| match severity {
                Severity::Error if refused_by_server => Severity::Error,
                Severity::Error if mode == Mode::Warn || !is_written => Severity::Warning,
                severity => severity,
            };
            let mut body = violation.body;
            body.semantic = body.semantic.map(weighed).filter(|semantic| *semantic != weighed(violation.severity));
            Finding {
                rule: violation.rule.into_owned(),
                severity: weighed(violation.severity),
                original_severity: None,
                baseline_state: None,
                object: object.clone(),
                source,
                change_source,
                body,
                not_written: violation.severity == Severity::Error && mode == Mode::Error && !is_written,
                refused_by_server,
                waived: None,
            }
        };
        findings.extend(violations.into_iter().zip(sources).map(to_finding));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::super::{CheckFuture, FindLookups};
    use super::*;
    use gantry_cluster::dir::DirTarget;
    use gantry_core::ui::progress::ProgressDisplay;

    /// A check that needs the lookups of all checks, one of which becomes known only after the other check has run.
    struct Asking(Mutex<Option<Receiver<()>>>);

    impl Check for Asking {
        fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
            Box::pin(async move { context.look_ahead().await.map(|_| CheckResult::checked(Vec::new(), Vec::new())) })
        }

        fn lookups(&self, _: &Plan, _: &Arc<Proofs>) -> FindLookups {
            let other = self.0.lock().unwrap().take().expect("asked once");
            Box::new(move || {
                other.recv_timeout(Duration::from_secs(60)).expect("the other check is blocked");
                Vec::new()
            })
        }
    }

    struct Other(Sender<()>);

    impl Check for Other {
        fn run<'a>(&'a self, _: Context<'a>) -> CheckFuture<'a> {
            Box::pin(async move {
                self.0.send(()).expect("the other check waits");
                Ok(CheckResult::checked(Vec::new(), Vec::new()))
            })
        }
    }

    #[test]
    fn a_check_whose_findings_another_reports_has_their_status() {
        use gantry_core::finding::samples;
        let known = Finding { severity: Severity::Known, ..samples::removed_field("v1", 1) };
        let reported_by = Fingerprint::new(&known);
        let check = |name, findings| samples::check(name, CheckStatus::Blocked, findings);
        let reports = || [check("AdmissionDryRun", Vec::new()), check("CustomResourceValidation", vec![known.clone()])];
        let statuses = |left_out: &[LeftOut]| {
            let mut reports = reports();
            recompute_status(&mut reports, left_out);
            reports.map(|report| report.status)
        };
        let left = LeftOut { report: 0, severity: Severity::Error, reported_by };
        assert_eq!(statuses(&[left]), [CheckStatus::Passed, CheckStatus::Passed]);
        let other = LeftOut { reported_by: reported_by.numbered(1), ..left };
        assert_eq!(statuses(&[left, other]), [CheckStatus::Blocked, CheckStatus::Passed]);
    }

    #[test]
    fn slow_lookups_do_not_hold_up_other_checks() {
        let (sender, receiver) = channel();
        let enabled = |name: &str, check: Box<dyn Check>| Enabled {
            name: name.into(),
            mode: Mode::Error,
            by_default: false,
            check,
        };
        let checks = [
            enabled("Asking", Box::new(Asking(Mutex::new(Some(receiver))))),
            enabled("Other", Box::new(Other(sender))),
        ];
        let folder = tempfile::tempdir().unwrap();
        let target = Target::Dir(DirTarget::open(folder.path()).unwrap());
        let stage = ProgressDisplay::Hidden.stage("checking", None);
        let options = RunOptions {
            warn_only: false,
            redact: false,
            waivers: Waivers { list: &[], today: gantry_core::date::Date::from(std::time::SystemTime::UNIX_EPOCH) },
            baseline: None,
            to_migrate: &BTreeSet::new(),
            migrated: &BTreeSet::new(),
            catalogs: Catalogs::none(),
            olm_release: None,
            custom_checks: &[],
            known: None,
            stage: &stage,
        };
        let plan = Plan::default();
        // With a single thread, work that blocks it would hold up the other check.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ran = runtime.block_on(run(&checks, &plan, &target, options));
        assert!(ran.reports.iter().all(|report| report.status == CheckStatus::Passed), "{:#?}", ran.reports);
    }
}

use std::sync::Arc;

use super::*;
use gantry_cluster::ManagerOperation;
use gantry_core::finding::{ApplyResult, Severity, samples};
use gantry_core::manifest::{Manifest, ManifestOrigin, ManifestSource};
use gantry_core::resource::{LiveObject, RawObject, Resource};
use gantry_deploy::plan::{Action, Crds, Unplaced};

fn manifest() -> Manifest {
    let source = ManifestSource::new("a.yaml", String::new());
    Manifest {
        object: Arc::new(samples::crd("widgets.example.com")),
        raw: RawObject::new("{}".to_owned()),
        origin: ManifestOrigin {
            source: Arc::new(source),
            document: 1,
            line: 1,
            bytes: 0..0,
            within: Vec::new(),
            renamed: &[],
        },
        bundle: None,
    }
}

fn change(action: Action) -> Change {
    let raw = RawObject::new("{}".to_owned());
    let live = LiveObject { raw, uid: "u".into(), resource_version: "1".into() };
    Change {
        action,
        desired: manifest(),
        live: Some(live),
        replaces: None,
        unread: None,
        resource: Arc::new(Resource::crd()),
        owner: None,
        kapp: Default::default(),
        is_as_applied: false,
        bundle_writer: None,
        helm: None,
        crds: Crds::default(),
        answer: Default::default(),
    }
}

fn plan(action: Action) -> Plan {
    Plan { changes: vec![change(action)], ..Plan::default() }
}

fn unread() -> Plan {
    let problem = Some(Box::new(Problem::new("it cannot be read")));
    Plan { changes: vec![Change { unread: problem, ..change(Action::Unknown) }], ..Plan::default() }
}

fn unserved(is_down: bool) -> Plan {
    let problem = Problem::new("nobody serves it");
    let unplaced = Unplaced { manifest: manifest(), problem, is_down, is_unwritable: false };
    Plan { unplaced: vec![unplaced], ..plan(Action::Update) }
}

fn checks(statuses: &[CheckStatus]) -> Vec<CheckReport> {
    statuses.iter().map(|status| samples::check("CRDUpgradeSafety", *status, Vec::new())).collect()
}

fn conflict() -> DeployForecast {
    let conflict = FieldConflict::new("helm", ManagerOperation::Update, ".spec.x");
    DeployForecast {
        conflicts: vec![ChangeConflicts { change: 0, conflicts: vec![conflict] }],
        ..DeployForecast::default()
    }
}

fn refusal() -> DeployForecast {
    DeployForecast {
        refusals: vec![Problem::new("spec.x: Invalid value: \"s3cret\": no")],
        ..DeployForecast::default()
    }
}

const CHECK: Terms = Terms { writes: false, force_conflicts: false, fail_on: FailOn::Error, redact: false };
const DEPLOY: Terms = Terms { writes: true, ..CHECK };
const STRICT: Terms = Terms { fail_on: FailOn::Warning, ..DEPLOY };
const FORCE: Terms = Terms { force_conflicts: true, ..DEPLOY };

/// A case: its input, and the expected outcome, exit code, numbers of errors and notices, and whether the deploy
/// continues.
type Case = (&'static str, &'static [CheckStatus], Plan, DeployForecast, Terms, (Outcome, Exit, usize, usize, bool));

#[test]
fn the_outcome_before_writing_follows_from_the_checks_and_the_plan() {
    use CheckStatus::{Blocked, Failed, Passed, Skipped, Warned};
    let planned = (Outcome::Planned, Exit::Success, 0, 0, false);
    let goes_on = (Outcome::Planned, Exit::Success, 0, 0, true);
    let failed = |errors, notices| (Outcome::Failed, Exit::Failed, errors, notices, false);
    let blocked = |notices| (Outcome::Blocked, Exit::Blocked, 0, notices, false);
    let refused = |errors| (Outcome::Blocked, Exit::Blocked, errors, 0, false);
    let unchanged = (Outcome::Unchanged, Exit::Success, 0, 0, false);
    let none = DeployForecast::default;
    let update = || plan(Action::Update);
    let cases: Vec<Case> = vec![
        ("a check writes nothing", &[Passed], update(), none(), CHECK, planned),
        ("nor where nothing changes", &[Passed], plan(Action::Unchanged), none(), CHECK, planned),
        ("a deploy goes on", &[Passed], update(), none(), DEPLOY, goes_on),
        ("over warnings and skips", &[Warned, Skipped], update(), none(), DEPLOY, goes_on),
        ("unless a warning blocks", &[Warned, Skipped], update(), none(), STRICT, refused(1)),
        ("and none is there", &[Passed, Skipped], update(), none(), STRICT, goes_on),
        ("unless nothing changes", &[Passed], plan(Action::Unchanged), none(), DEPLOY, unchanged),
        ("or there is nothing", &[], Plan::default(), none(), DEPLOY, unchanged),
        ("a block ends it", &[Passed, Blocked], update(), none(), DEPLOY, blocked(0)),
        ("and weighs more than a failure", &[Failed, Blocked], unread(), refusal(), DEPLOY, blocked(0)),
        ("with a word on conflicts", &[Blocked], update(), conflict(), DEPLOY, blocked(1)),
        ("could not check ends it", &[Failed, Warned], update(), none(), CHECK, failed(0, 0)),
        ("and weighs less than a conflict", &[Failed], update(), conflict(), DEPLOY, refused(1)),
        ("and weighs more than what is unread", &[Failed], unread(), none(), DEPLOY, failed(0, 0)),
        ("what is unread ends it", &[Passed], unread(), none(), CHECK, failed(1, 0)),
        ("a conflict blocks", &[Passed], update(), conflict(), CHECK, refused(1)),
        (
            "unless it is taken by force",
            &[Passed],
            update(),
            conflict(),
            FORCE,
            (Outcome::Planned, Exit::Success, 0, 1, true),
        ),
        ("a refusal blocks", &[Warned], update(), refusal(), DEPLOY, refused(1)),
        ("force does not help", &[Warned], update(), refusal(), FORCE, refused(1)),
        ("a kind that nobody serves blocks", &[Warned], unserved(false), none(), DEPLOY, refused(1)),
        ("unless its API does not answer", &[Warned], unserved(true), none(), DEPLOY, failed(1, 0)),
        ("what is unread is reported, too", &[Passed], unread(), refusal(), DEPLOY, refused(2)),
        (
            "all of them are reported",
            &[],
            unserved(false),
            DeployForecast { conflicts: conflict().conflicts, ..refusal() },
            DEPLOY,
            refused(3),
        ),
    ];
    for (name, statuses, plan, foreseen, terms, expected) in cases {
        let PlanVerdict { outcome, exit, errors, notices, goes_on } =
            before_writing(&checks(statuses), &plan, &foreseen, terms);
        assert_eq!((outcome, exit, errors.len(), notices.len(), goes_on), expected, "{name}");
    }
}

#[test]
fn a_conflict_that_a_check_reports_is_not_repeated_as_a_notice() {
    let entry = registry::CHECKS.iter().find(|check| check.field_conflicts.is_some()).unwrap();
    let rule = entry.field_conflicts.unwrap();
    let object = samples::crd("widgets.example.com");
    let other = samples::crd("gadgets.example.com");
    for (object, rule, notices) in [(&object, rule, 0), (&other, rule, 1), (&object, "ObjectInvalid", 1)] {
        let finding = samples::finding(rule, Severity::Error, object.clone(), "somebody else's");
        let checks = [samples::check(entry.name, CheckStatus::Blocked, vec![finding])];
        let verdict = before_writing(&checks, &plan(Action::Update), &conflict(), DEPLOY);
        assert_eq!(verdict.notices.len(), notices, "{object} {rule}");
    }
}

#[test]
fn redaction_hides_values_and_changes_no_verdict() {
    let verdict = |redact| before_writing(&[], &plan(Action::Update), &refusal(), Terms { redact, ..DEPLOY });
    let (open, hidden) = (verdict(false), verdict(true));
    assert!(open.errors[0].message.contains("s3cret") && !hidden.errors[0].message.contains("s3cret"));
    assert_eq!(PlanVerdict { errors: Vec::new(), ..open }, PlanVerdict { errors: Vec::new(), ..hidden });
}

#[test]
fn the_outcome_after_writing_follows_from_the_results() {
    let problems = |texts: &[&str]| texts.iter().copied().map(Problem::new).collect::<Vec<_>>();
    let applied = |texts: &[&str], interrupted| Applied {
        results: vec![ApplyResult::Applied],
        uids: vec![None],
        problems: problems(texts),
        interrupted,
        ..Applied::default()
    };
    let removed = |texts: &[&str], stuck: &[&str]| DeletionResults {
        results: Vec::new(),
        problems: problems(texts),
        stuck: problems(stuck),
    };
    for (texts, interrupted, of_removals, stuck, outcome, exit, errors) in [
        (&[][..], false, &[][..], &[][..], Outcome::Deployed, Exit::Success, 0),
        (&["refused"], false, &[], &[], Outcome::Failed, Exit::Failed, 1),
        (&[], true, &[], &[], Outcome::Failed, Exit::Failed, 1),
        (&[], false, &["forbidden"], &["stuck"], Outcome::Failed, Exit::Failed, 2),
        (&[], false, &[], &["stuck", "too"], Outcome::Failed, Exit::NotReady, 2),
    ] {
        let end = after_writing(&applied(texts, interrupted), &removed(of_removals, stuck), false);
        assert_eq!((end.0, end.1, end.2.len()), (outcome, exit, errors), "{texts:?} {interrupted} {stuck:?}");
    }
}

#[test]
fn foreign_owners_and_too_many_deletions_block_and_unread_members_fail() {
    let found = || vec![Problem::new("x")];
    let judge = |foreseen| before_writing(&[], &plan(Action::Update), &foreseen, FORCE);
    let ends = |verdict: PlanVerdict| (verdict.outcome, verdict.exit, verdict.errors.len(), verdict.goes_on);
    let blocked = (Outcome::Blocked, Exit::Blocked, 1, false);
    assert_eq!(ends(judge(DeployForecast { owned: found(), ..DeployForecast::default() })), blocked);
    assert_eq!(ends(judge(DeployForecast { too_many: found(), ..DeployForecast::default() })), blocked);
    let unread = judge(DeployForecast { unread_members: found(), ..DeployForecast::default() });
    assert_eq!(ends(unread), (Outcome::Failed, Exit::Failed, 1, false));
}

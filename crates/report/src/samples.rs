//! Reports for tests: one for each outcome of a run, and some that try to break the output.

mod crds;
mod files;

use serde_json::json;

use super::*;
pub use crds::*;
pub use files::files;
pub use gantry_core::finding::samples::*;
use gantry_core::finding::*;

/// Every sample under its name.
pub fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("blocked", blocked()),
        ("warned", warned()),
        ("could_not_check", could_not_check()),
        ("upgrade", upgrade()),
        ("hundreds", hundreds()),
        ("many_objects", many_objects()),
        ("existing_objects", existing_objects()),
        ("evidence", evidence()),
        ("partial_failure", partial_failure()),
        ("hostile", hostile()),
        ("wide", wide_report()),
        ("deployed", deployed()),
        ("unchanged", unchanged()),
        ("not_written", not_written()),
        ("planned", planned()),
        ("diffs", diffs()),
    ]
}

/// A cluster of a list.
pub fn cluster(name: &str, report: Report) -> ClusterReport {
    let live_crds = (!report.changes.is_empty()).then(LiveCrds::new);
    ClusterReport { name: name.into(), server: None, wave: None, not_reached: false, live_crds, report }
}

/// Clusters of each kind: two that are blocked by the same finding, one that does not answer, and two without problems.
pub fn list() -> ReportList {
    let dead = Report {
        errors: vec![ErrorEntry {
            message: "10.0.0.9:6443 refused the connection".into(),
            source: None,
            help: Some("is the cluster running?".into()),
            log: None,
        }],
        ..Report::default()
    };
    let live = |hash: &str| Some(LiveCrds::from([("samples.test.example.com".to_owned(), Some(hash.to_owned()))]));
    let mut clusters = vec![
        cluster("prod-1", blocked()),
        cluster("prod-2", blocked()),
        cluster("dead", dead),
        cluster("dev", planned()),
        cluster("test", planned()),
    ];
    for (cluster, hash) in clusters.iter_mut().zip(["1", "1", "", "1", "2"]) {
        cluster.live_crds = Some(hash).filter(|hash| !hash.is_empty()).and_then(live);
        cluster.server = (hash == "2").then(|| "https://10.0.0.5:6443".to_owned());
    }
    clusters[0].report.target = "kube: prod-1 (https://10.0.0.1:6443)".into();
    ReportList::new(clusters)
}

pub fn change(action: Action, object: ObjectRef, line: usize) -> ChangeEntry {
    let source = Some(source("manifests/app.yaml", line, 0));
    ChangeEntry { action, object: object.into(), source, result: None, diff: None }
}

/// A report with its counts made from its parts.
pub fn report(outcome: Outcome, changes: Vec<ChangeEntry>, checks: Vec<CheckReport>) -> Report {
    let severity = |wanted| checks.iter().flat_map(|c| &c.findings).filter(|f| f.severity == wanted).count();
    let action = |wanted| {
        let reached = |c: &&ChangeEntry| !matches!(c.result, Some(ApplyResult::Failed | ApplyResult::NotReached));
        changes.iter().filter(reached).filter(|c| c.action == wanted).count()
    };
    let summary = Summary {
        errors: severity(Severity::Error),
        warnings: severity(Severity::Warning),
        waived: severity(Severity::Waived),
        known: severity(Severity::Known),
        infos: severity(Severity::Info),
        created: action(Action::Create),
        updated: action(Action::Update),
        adopted: action(Action::Adopt),
        replaced: action(Action::Replace),
        unchanged: action(Action::Unchanged),
        deleted: action(Action::Delete),
        orphaned: action(Action::Orphan),
        installed_by_olm: action(Action::InstalledByOlm),
        skipped: action(Action::Skip),
    };
    Report {
        deleted_by_olm: Vec::new(),
        extensions: Vec::new(),
        subscriptions: Vec::new(),
        api_version: API_VERSION.into(),
        kind: "Report".into(),
        outcome,
        target: "kube: staging (https://10.0.0.1:6443)".into(),
        kubernetes_release: None,
        preset: None,
        by_tools: std::collections::BTreeMap::new(),
        changes,
        graph: Vec::new(),
        waits: Vec::new(),
        migrations: Vec::new(),
        checks,
        baseline: None,
        errors: Vec::new(),
        warnings: Vec::new(),
        notices: Vec::new(),
        summary,
    }
}

fn app_changes() -> Vec<ChangeEntry> {
    vec![
        change(Action::Update, crd("samples.test.example.com"), 1),
        change(Action::Unchanged, object("v1", "Namespace", None, "prod"), 60),
        change(Action::Update, object("apps/v1", "Deployment", Some("prod"), "web"), 70),
    ]
}

pub fn could_not_check() -> Report {
    let mut failed = check("PermissionValidation", CheckStatus::Failed, Vec::new());
    failed.unchecked = vec![CouldNotCheck {
        message: "cannot ask what user ci may do: selfsubjectrulesreviews.authorization.k8s.io is forbidden".into(),
        help: Some("grant create on it".into()),
    }];
    let mut skipped = check("WebhookReadiness", CheckStatus::Skipped, Vec::new());
    skipped.message = Some("needs a live API server, and dir: has none".into());
    let checks = vec![check("CRDUpgradeSafety", CheckStatus::Passed, Vec::new()), failed, skipped];
    report(Outcome::Failed, app_changes(), checks)
}

pub fn partial_failure() -> Report {
    let results = [ApplyResult::Applied, ApplyResult::Unchanged, ApplyResult::Failed, ApplyResult::NotReached];
    let mut changes = app_changes();
    changes.push(change(Action::Create, object("v1", "Service", Some("prod"), "web"), 110));
    for (change, result) in changes.iter_mut().zip(results) {
        change.result = Some(result);
    }
    let mut report = report(Outcome::Failed, changes, vec![check("CRDUpgradeSafety", CheckStatus::Passed, Vec::new())]);
    report.errors = vec![ErrorEntry {
        message: "deployment.apps/web -n prod: field conflict: .spec.replicas is managed by hpa-controller".into(),
        source: Some(source("manifests/app.yaml", 70, 0)),
        help: Some("leave the field out of the manifest, or take it over with --force-conflicts".into()),
        log: None,
    }];
    report
}

/// Everything that a cluster or a manifest could put into a text to manipulate a terminal.
pub fn hostile() -> Report {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\rpassed\u{202e}detcelfer\u{2028}next\u{9b}31m\nNothing to do";
    let name = format!("samples{evil}");
    let mut report = report(
        Outcome::Blocked,
        vec![change(Action::Update, crd(&name), 1)],
        vec![check(
            evil,
            CheckStatus::Blocked,
            vec![
                Finding {
                    source: Some(source("hostile.yaml", 2, 9)),
                    ..finding(evil, Severity::Error, crd(&name), evil)
                }
                .with(|body| {
                    body.label = Some(evil.into());
                    body.version = Some(evil.into());
                    body.path = Some(evil.into());
                    body.witnesses = vec![Witness {
                        object: json!({evil: [evil]}),
                        old_object: None,
                        subresource: Some("status".into()),
                        live: WitnessVerdict::Accepted,
                        desired: WitnessVerdict::Refused,
                        message: evil.into(),
                        refused_updates: None,
                    }];
                    body.breaks = vec![Breaks::Data];
                    body.help = evil.into();
                }),
            ],
        )],
    );
    report.target = evil.into();
    let log = Log { pod: evil.into(), container: evil.into(), lines: vec![evil.into()] };
    report.errors = vec![ErrorEntry {
        message: evil.into(),
        source: Some(source(evil, 1, 1)),
        help: Some(evil.into()),
        log: Some(Box::new(log)),
    }];
    report
}

pub fn wide_report() -> Report {
    let finding = Finding {
        source: Some(source("wide.yaml", 2, 9)),
        ..finding("NoTypeChanged", Severity::Error, crd("wides.test.example.com"), "the type of spec.名前 changed")
    }
    .with(|body| body.label = Some("ここは整数でした".into()));
    let changes = vec![change(Action::Update, crd("wides.test.example.com"), 1)];
    report(Outcome::Blocked, changes, vec![check("CRDUpgradeSafety", CheckStatus::Blocked, vec![finding])])
}

pub fn deployed() -> Report {
    let mut changes = app_changes();
    changes.push(change(Action::Create, object("v1", "Service", Some("prod"), "web"), 110));
    for change in &mut changes {
        let unchanged = change.action == Action::Unchanged;
        change.result = Some(if unchanged { ApplyResult::Unchanged } else { ApplyResult::Applied });
    }
    let mut check = check("CRDUpgradeSafety", CheckStatus::Passed, Vec::new());
    check.suppressed = vec![Suppressed {
        rule: "NoEnumAdded".into(),
        severity: Severity::Error,
        count: 3,
        source: Some(source("gantry.yaml", 7, 22)),
    }];
    report(Outcome::Deployed, changes, vec![check])
}

pub fn unchanged() -> Report {
    let changes = app_changes().into_iter().map(|change| ChangeEntry { action: Action::Unchanged, ..change }).collect();
    report(Outcome::Unchanged, changes, vec![check("CRDUpgradeSafety", CheckStatus::Passed, Vec::new())])
}

/// A finding about an object that the deploy does not write.
pub fn not_written() -> Report {
    let found = Finding {
        not_written: true,
        ..finding(
            "ConversionFails",
            Severity::Warning,
            crd("samples.test.example.com"),
            "objects cannot be converted to v2",
        )
    }
    .with(|body| body.help = "bring the conversion webhook up: gantry rules ConversionFails".into());
    let check = check("ConversionWebhook", CheckStatus::Warned, vec![found]);
    report(Outcome::Unchanged, vec![change(Action::Unchanged, crd("samples.test.example.com"), 1)], vec![check])
}

pub fn planned() -> Report {
    let extension = |name: &str, resolved: Option<ResolvedBundle>| ExtensionEntry {
        name: name.into(),
        package: "sample".into(),
        installed: Some("1.0.0".into()),
        path: vec!["2.0.0".into(), "3.0.0".into()],
        pinned: resolved.is_none(),
        error: resolved.is_none().then(|| "no bundles found for package \"sample\"".into()),
        resolved,
    };
    let resolved = ResolvedBundle {
        bundle: "sample.v2.0.0".into(),
        version: "2.0.0".into(),
        catalog: "operatorhubio".into(),
        channels: vec!["stable".into()],
        image: Some("example.com/sample@sha256:20".into()),
        directory: None,
    };
    let subscription = |name: &str, resolved: Option<&str>| SubscriptionEntry {
        name: name.into(),
        namespace: Some("operators".into()),
        package: "sample".into(),
        channel: "stable".into(),
        catalog: "operatorhubio".into(),
        installed: Some("1.0.0".into()),
        resolved: resolved.map(str::to_owned),
        bundle: resolved.map(|version| format!("sample.v{version}")),
        edges: resolved.map(|_| "replaces".to_owned()).into_iter().collect(),
        then: resolved.map(|_| "3.0.0".to_owned()).into_iter().collect(),
        needs_approval: resolved.is_some(),
        error: resolved.is_none().then(|| "expected 1 OperatorGroup in the namespace, found 2".into()),
        ..SubscriptionEntry::default()
    };
    Report {
        deleted_by_olm: vec![object("v1", "Service", Some("operators"), "metrics").into()],
        extensions: vec![extension("one", Some(resolved)), extension("other", None)],
        subscriptions: vec![subscription("three", Some("2.0.0")), subscription("four", None)],
        ..report(Outcome::Planned, app_changes(), vec![check("CRDUpgradeSafety", CheckStatus::Passed, Vec::new())])
    }
}

/// What changes in each object: an update with text that a terminal would act on, one that is computed and cut off, and
/// a creation.
pub fn diffs() -> Report {
    use gantry_core::diff::{Diff, Line, LineKind};
    let line = |is, text: &str| Line { is, text: text.to_owned() };
    let object = |kind: &str, name: &str| ObjectRef {
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: Some("web".into()),
        name: name.into(),
    };
    let with = |action, name: &str, at, diff| ChangeEntry {
        diff: Some(Box::new(diff)),
        ..change(action, object("ConfigMap", name), at)
    };
    let lines = vec![
        line(LineKind::Context, "data:"),
        line(LineKind::Removed, "  colour: red"),
        line(LineKind::Added, "  colour: \u{1b}[31m\u{202e}green"),
        line(LineKind::Note, "  # …"),
        line(LineKind::Context, "  z: last"),
    ];
    let approximate = Some("user \"reader\" may not patch configmaps in namespace \"web\"".to_owned());
    let changes = vec![
        with(Action::Create, "first", 1, Diff::default()),
        with(Action::Create, "second", 7, Diff::default()),
        with(Action::Update, "third", 14, Diff { lines: lines.clone(), ..Diff::default() }),
        with(Action::Update, "fourth", 20, Diff { lines, omitted: 120, approximate }),
        change(Action::Unchanged, object("Secret", "fifth"), 30),
    ];
    report(Outcome::Planned, changes, Vec::new())
}

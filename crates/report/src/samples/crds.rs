//! Samples of findings in CRDs.

use super::*;

fn raised_minimum(severity: Severity) -> Finding {
    Finding {
        source: Some(source("manifests/crd.yaml", 28, 19)),
        ..finding(
            "NoMinimumTightened",
            severity,
            crd("samples.test.example.com"),
            "the minimum of spec.replicas is raised from 1 to 2 in v1alpha1",
        )
    }
    .with(|body| {
        body.label = Some("the live CRD has 1".into());
        body.version = Some("v1alpha1".into());
        body.path = Some("^.spec.replicas".into());
        body.verdict = Some(Verdict::Narrowing);
        body.breaks = vec![Breaks::StoredObjects, Breaks::Writers];
        body.witnesses = vec![Witness {
            object: json!({
                "apiVersion": "test.example.com/v1alpha1", "kind": "Sample",
                "metadata": {"name": "x"}, "spec": {"replicas": 1, "note": "a: b"},
            }),
            old_object: Some(json!({
                "apiVersion": "test.example.com/v1alpha1", "kind": "Sample",
                "metadata": {"name": "x"}, "spec": {"replicas": 1},
            })),
            subresource: None,
            live: WitnessVerdict::Accepted,
            desired: WitnessVerdict::Refused,
            message: "spec.replicas: Invalid value: 1: should be greater than or equal to 2".into(),
            refused_updates: None,
        }];
        body.help = "leave the minimum of spec.replicas at 1".into();
    })
}

/// One field that is removed from two versions of a CRD.
pub fn blocked() -> Report {
    let findings = vec![removed_field("v1alpha1", 24), removed_field("v1beta1", 44)];
    report(Outcome::Blocked, app_changes(), vec![check("CRDUpgradeSafety", CheckStatus::Blocked, findings)])
}

pub fn warned() -> Report {
    let widened = finding(
        "NoRequiredFieldAdded",
        Severity::Warning,
        crd("samples.test.example.com"),
        "new required fields in spec.registryMirrors of v1alpha1: [mode]",
    )
    .with(|body| {
        body.verdict = Some(Verdict::Widening);
        body.version = Some("v1alpha1".into());
        body.path = Some("^.spec.registryMirrors".into());
        body.help = "nothing, if the default suits every object".into();
    });
    let undecided =
        finding("UnknownChange", Severity::Warning, crd("samples.test.example.com"), "a CEL rule of spec changed")
            .with(|body| {
                body.verdict = Some(Verdict::Undecided);
                body.breaks = vec![Breaks::Behaviour];
                body.version = Some("v1alpha1".into());
                body.path = Some("^.spec".into());
            });
    let info = finding("DescriptionChanged", Severity::Info, crd("samples.test.example.com"), "a description changed");
    let waived =
        finding("NoEnumValueRemoved", Severity::Waived, crd("samples.test.example.com"), "enum values removed: [b]");
    let findings = vec![widened, info, waived, undecided, raised_minimum(Severity::Warning)];
    let mut check = check("CRDUpgradeSafety", CheckStatus::Warned, findings);
    check.mode = Mode::Warn;
    let notice = ErrorEntry {
        message: "a Config document among the manifests sets mode: warn for the check \"CRDUpgradeSafety\"".into(),
        source: Some(source("manifests/kapp.yaml", 5, 12)),
        help: None,
        log: None,
    };
    Report { notices: vec![notice], ..report(Outcome::Planned, app_changes(), vec![check]) }
}

/// An upgrade of several CRDs that changes some of them alike: errors of two kinds, and warnings.
pub fn upgrade() -> Report {
    let found = |rule: &str, severity, object: &str, path: &str, line, fact: &str| {
        Finding {
            source: Some(source("manifests/crd.yaml", line, 17)),
            ..finding(
                rule,
                severity,
                crd(&format!("{object}.test.example.com")),
                &format!("{path} may not change in v1"),
            )
        }
        .with(|body| {
            body.version = Some("v1".into());
            body.path = Some(format!("^.{path}"));
            body.fact = Some(fact.into());
            body.verdict = Some(Verdict::Narrowing);
            body.breaks = vec![Breaks::Writers];
            body.explain = Some(rule.to_owned().into());
            body.help = format!("leave {path} of v1 as it is");
        })
    };
    let enum_added = |object: &str, path: &str, line| {
        found("NoEnumAdded", Severity::Error, object, path, line, "enum added: \"a\", \"b\"")
    };
    let mut long = found("NoMaxLengthTightened", Severity::Error, "widgets", "spec.text", 44, "maxLength added: 1024");
    long.body.witnesses = vec![Witness {
        object: json!({
            "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "x"},
            "spec": {"text": "a".repeat(1025), "list": (0..1025).collect::<Vec<usize>>(), "after": "still here"},
        }),
        old_object: None,
        subresource: None,
        live: WitnessVerdict::Accepted,
        desired: WitnessVerdict::Refused,
        message: "spec.text: Too long: may not be more than 1024 bytes".into(),
        refused_updates: None,
    }];
    let assumed = |name: &str| {
        Finding {
            source: Some(source("manifests/app.yaml", 70, 0)),
            ..finding(
                "NamespaceAssumed",
                Severity::Warning,
                object("v1", "ConfigMap", Some("default"), name),
                "no namespace is given: it is created in \"default\"",
            )
        }
        .with(|body| {
            body.explain = Some("NamespaceAssumed".into());
            body.help = "write metadata.namespace".into();
        })
    };
    let crds = vec![
        enum_added("widgets", "spec.mode", 24),
        // Two facts of one node.
        found(
            "NoTypeChanged",
            Severity::Error,
            "widgets",
            "spec.mode",
            26,
            "type changed from \"integer\" to \"string\"",
        ),
        enum_added("gadgets", "spec.mode", 28),
        enum_added("gadgets", "spec.other", 28),
        enum_added("gizmos", "spec.other", 44),
        enum_added("widgets", "spec.size", 28),
        long,
        found("NoMinimumTightened", Severity::Warning, "gadgets", "spec.count", 28, "minimum added: 1"),
    ];
    let names: Vec<String> = (0..30).map(|number| format!("map{number}")).collect();
    let mut objects: Vec<Finding> = names.iter().map(|name| assumed(name)).collect();
    objects.push(
        finding(
            "ApiNotServed",
            Severity::Error,
            object("example.com/v1", "Thing", None, "x"),
            "no kind \"Thing\" in \"example.com/v1\" is served",
        )
        .with(|body| body.help = "write another apiVersion".into()),
    );
    let config_map = |name: &String| change(Action::Create, object("v1", "ConfigMap", Some("default"), name), 1);
    let mut changes: Vec<ChangeEntry> = names.iter().map(config_map).collect();
    let crd = |name: &str| change(Action::Update, crd(&format!("{name}.test.example.com")), 1);
    changes.extend(["widgets", "gadgets", "gizmos"].map(crd));
    changes.push(change(Action::Unchanged, object("v1", "Namespace", None, "prod"), 1));
    let mut validated = check("CustomResourceValidation", CheckStatus::Passed, Vec::new());
    let coverage =
        |object: &ObjectRef, read| Coverage { object: object.clone(), read, proven: vec!["v1".into()], harm: None };
    validated.coverage =
        changes[30..33].iter().enumerate().map(|(at, change)| coverage(&change.object, at as u64 / 2)).collect();
    let checks = vec![
        check("CRDUpgradeSafety", CheckStatus::Blocked, crds),
        validated,
        check("APIAvailability", CheckStatus::Blocked, objects),
    ];
    report(Outcome::Blocked, changes, checks)
}

/// Hundreds of findings in one CRD, and a few in another.
pub fn hundreds() -> Report {
    let mut findings: Vec<Finding> = (0..300)
        .map(|i| {
            Finding {
                source: Some(source("manifests/crd.yaml", 24, 17)),
                ..finding(
                    if i % 3 == 0 { "NoTypeChanged" } else { "NoExistingFieldRemoved" },
                    if i % 50 == 7 { Severity::Warning } else { Severity::Error },
                    crd("bigs.test.example.com"),
                    &format!("field spec.field{i} may not be removed from v1"),
                )
            }
            .with(|body| {
                body.version = Some("v1".into());
                body.path = Some(format!("^.spec.field{i}"));
                body.breaks = vec![Breaks::Data];
                body.help = format!("keep spec.field{i}");
            })
        })
        .collect();
    findings.push(removed_field("v1alpha1", 24));
    let changes = vec![
        change(Action::Update, crd("bigs.test.example.com"), 1),
        change(Action::Update, crd("samples.test.example.com"), 1),
    ];
    report(Outcome::Blocked, changes, vec![check("CRDUpgradeSafety", CheckStatus::Blocked, findings)])
}

/// Hundreds of CRDs with some findings each.
pub fn many_objects() -> Report {
    let name = |i: usize| format!("kind{i:03}s.test.example.com");
    let findings = (0..400)
        .flat_map(|i| (0..3).map(move |j| (i, j)))
        .map(|(i, j)| {
            finding("NoTypeChanged", Severity::Error, crd(&name(i)), &format!("the type of spec.f{j} changed"))
        })
        .collect();
    let changes = (0..400).map(|i| change(Action::Update, crd(&name(i)), i)).collect();
    report(Outcome::Blocked, changes, vec![check("CRDUpgradeSafety", CheckStatus::Blocked, findings)])
}

/// A report with `preset: evidence`: an error that affects objects, one that affects none, and one that could not be
/// checked.
pub fn evidence() -> Report {
    let of = |examined, message: &str, affected: u64, managers: &[(&str, u64)]| Evidence {
        examined,
        message: message.into(),
        objects: if examined == Examined::No { 0 } else { 1234 },
        affected_objects: affected,
        manifests: affected.min(1),
        affected_manifests: affected.min(1),
        examples: Vec::new(),
        managers: managers
            .iter()
            .map(|(name, objects)| EvidenceManager { name: (*name).into(), objects: *objects })
            .collect(),
    };
    let example = |namespace: &str, name: &str, from_manifest| EvidenceObject {
        namespace: Some(namespace.into()),
        name: name.into(),
        from_manifest,
    };
    let found = |field: &str, severity, evidence| {
        finding(
            "NoExistingFieldRemoved",
            severity,
            crd("samples.test.example.com"),
            &format!("field spec.{field} may not be removed from v1"),
        )
        .with(|body| {
            body.path = Some(format!("^.spec.{field}"));
            body.version = Some("v1".into());
            body.evidence = Some(evidence);
            body.semantic = (severity == Severity::Warning).then_some(Severity::Error);
        })
    };
    let cleared = "0 of 1,234 objects set spec.old; their writers do not set it: rook (1,234 objects)";
    let suffers = "4 of 1,234 objects and 1 of 1 manifests of this deploy set spec.used; written by rook (4 objects)";
    let unseen = "as under preset: semantic: user \"ci\" may not list samples.test.example.com at the cluster scope";
    let mut suffering = of(Examined::Affected, suffers, 4, &[("rook", 4)]);
    suffering.examples =
        vec![example("team-a", "nightly", false), example("team-b", "weekly", false), example("team-b", "new", true)];
    let findings = vec![
        found("used", Severity::Error, suffering),
        found("unseen", Severity::Error, of(Examined::No, unseen, 0, &[])),
        found("old", Severity::Warning, of(Examined::NoneAffected, cleared, 0, &[("rook", 1234)])),
    ];
    let mut check = check("CRDUpgradeSafety", CheckStatus::Blocked, findings);
    let examples = vec![example("team-a", "nightly", false), example("team-b", "weekly", false)];
    let harm = Some(Harm { objects: 4, manifests: 1, examples });
    let object = crd("samples.test.example.com");
    check.coverage = vec![Coverage { object, read: 1234, proven: Vec::new(), harm }];
    report(Outcome::Blocked, vec![change(Action::Update, crd("samples.test.example.com"), 1)], vec![check])
}

/// Findings about existing objects, some of which could not be read.
pub fn existing_objects() -> Report {
    let affected = |namespace: Option<&str>, name: &str, path: Option<&str>, value: &str| AffectedObject {
        namespace: namespace.map(Into::into),
        name: name.into(),
        path: path.map(Into::into),
        value: Some(value.into()),
    };
    let refused = Finding { source: Some(source("manifests/crd.yaml", 28, 19)), ..finding(
            "ExistingObjectRefusedOnUpdate",
            Severity::Error,
            crd("samples.test.example.com"),
            "3 of 412 objects are refused on any change of spec at v1alpha1: spec.steps[*].retries: Invalid value: maximum is 5",
        ) }.with(|body| { body.version = Some("v1alpha1".into()); body.path = Some("spec.steps[*].retries".into()); body.label = Some("3 of 412 objects: Invalid value: maximum is 5".into()); body.breaks = vec![Breaks::StoredObjects, Breaks::Writers]; body.affected = Some(Affected {
            count: 3,
            of: 412,
            unlisted: 0,
            examples: 2,
            objects: vec![
                affected(Some("team-a"), "nightly", Some("spec.steps[3].retries"), "7"),
                affected(Some("team-b"), "nightly", Some("spec.steps[0].retries"), "9"),
                affected(Some("team-b"), "weekly", Some("spec.steps[1].retries"), "9"),
            ],
        }); body.help = "repair spec.steps[*].retries in them before the upgrade".into(); });
    let written =
        finding("ObjectInRemovedVersion", Severity::Warning, crd("wides.test.example.com"), "all were written by x")
            .with(|body| {
                body.version = Some("v1alpha1".into());
                body.affected = Some(Affected {
                    count: 100_000,
                    of: 100_000,
                    unlisted: 99_999,
                    examples: 10,
                    objects: vec![affected(None, "global", None, "last 2026-01-01T00:00:00Z")],
                });
            });
    let mut check = check("CustomResourceValidation", CheckStatus::Blocked, vec![refused, written]);
    check.unchecked = vec![CouldNotCheck {
        message: "user \"ci\" may not list gadgets.test.example.com at the cluster scope".into(),
        help: Some("ask for a ClusterRole".into()),
    }];
    let coverage = |name: &str, read, proven: &[&str]| Coverage {
        harm: None,
        object: crd(name),
        read,
        proven: proven.iter().map(|version| (*version).to_owned()).collect(),
    };
    check.coverage = vec![
        coverage("samples.test.example.com", 412, &["v1"]),
        coverage("others.test.example.com", 1, &[]),
        coverage("widened.test.example.com", 0, &["v1", "v2"]),
    ];
    report(Outcome::Blocked, app_changes(), vec![check])
}

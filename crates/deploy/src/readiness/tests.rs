mod workloads;

use super::*;

/// Kind, object, `yes`, `no` or `failed`, and the reason.
type Case<'a> = (&'a str, Value, &'a str, &'a str);

fn check(cases: &[Case<'_>]) {
    for (kind, object, word, reason) in cases {
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let state = evaluate(group, kind, object);
        let said = (state.word(), state.reason().unwrap_or_default());
        assert_eq!(said, (*word, *reason), "{kind} {object}");
        // The text of an item of a list has the same state as the tree.
        let resource = Resource {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: "all".into(),
            namespaced: true,
        };
        assert_eq!(evaluate_parts(&object.to_string(), &resource), state, "{kind} {object}");
    }
}

/// An object whose controller has seen its latest generation.
fn seen(spec: Value, mut status: Value) -> Value {
    status["observedGeneration"] = 3.into();
    json!({"metadata": {"generation": 3}, "spec": spec, "status": status})
}

fn phase(phase: &str) -> Value {
    json!({"metadata": {}, "status": {"phase": phase}})
}

fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": name, "status": status, "reason": reason, "message": message})
}

fn conditions<const N: usize>(conditions: [Value; N]) -> Value {
    json!({"metadata": {"generation": 3}, "status": {"conditions": conditions.to_vec(), "observedGeneration": 3}})
}

#[test]
fn crds_and_api_services_are_ready_by_their_conditions() {
    let kind = "CustomResourceDefinition.apiextensions.k8s.io";
    let accepted = condition("NamesAccepted", "True", "NoConflicts", "");
    let established = condition("Established", "True", "InitialNamesAccepted", "");
    let clash = condition("NamesAccepted", "False", "PluralConflict", "\"samples\" is already in use");
    let loose = condition("NonStructuralSchema", "True", "Violations", "spec.x: Required value");
    let policy = condition("KubernetesAPIApprovalPolicyConformant", "False", "MissingAnnotation", "protected group");
    let installing = condition("Established", "False", "Installing", "not yet");
    check(&[
        (kind, conditions([accepted.clone(), established.clone()]), "yes", ""),
        (kind, conditions([accepted.clone(), established.clone(), loose]), "yes", "Violations: spec.x: Required value"),
        (
            kind,
            conditions([accepted.clone(), established.clone(), policy]),
            "yes",
            "MissingAnnotation: protected group",
        ),
        (kind, json!({}), "no", "not NamesAccepted yet"),
        (kind, conditions([established.clone()]), "no", "not NamesAccepted yet"),
        (kind, conditions([accepted.clone()]), "no", "not Established yet"),
        (kind, conditions([accepted, installing]), "no", "Installing: not yet"),
        (kind, conditions([clash, established]), "failed", "PluralConflict: \"samples\" is already in use"),
    ]);
    let kind = "APIService.apiregistration.k8s.io";
    let down = condition("Available", "False", "ServiceNotFound", "service/x is not present");
    check(&[
        (kind, conditions([condition("Available", "True", "Passed", "")]), "yes", ""),
        (kind, conditions([down]), "no", "ServiceNotFound: service/x is not present"),
        (kind, json!({}), "no", "not Available yet"),
    ]);
    let kind = "ValidatingAdmissionPolicy.admissionregistration.k8s.io";
    let warning = json!({"fieldRef": "spec.validations[0].expression", "warning": "undefined field 'x'"});
    let warned = |warnings: Value| seen(json!({}), json!({"typeChecking": {"expressionWarnings": warnings}}));
    check(&[
        (kind, seen(json!({}), json!({"typeChecking": {}})), "yes", ""),
        (kind, json!({"metadata": {"generation": 1}}), "no", "its controller has not seen it yet"),
        (kind, warned(json!([warning])), "yes", "type checking: spec.validations[0].expression: undefined field 'x'"),
        (
            kind,
            warned(json!([warning, warning])),
            "yes",
            "type checking (1 of 2 warnings): spec.validations[0].expression: undefined field 'x'",
        ),
    ]);
}

#[test]
fn volumes_namespaces_and_services_are_ready_by_their_status() {
    let unbound = "Pending, not bound; with WaitForFirstConsumer it is bound when a Pod uses it";
    let namespace =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"finalizers": ["kubernetes"]}});
    let balancer = |ingress: Value| {
        json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"},
            "status": {"loadBalancer": {"ingress": ingress}}})
    };
    let service = |kind: &str, address: &str| json!({"spec": {"type": kind, "clusterIP": address}, "status": {}});
    let idle = condition("ScalingActive", "False", "FailedGetResourceMetric", "no metrics");
    check(&[
        ("PersistentVolumeClaim", phase("Bound"), "yes", ""),
        ("PersistentVolumeClaim", phase("Pending"), "no", unbound),
        ("PersistentVolumeClaim", json!({}), "no", unbound),
        ("PersistentVolumeClaim", phase("Lost"), "failed", "Lost: its volume is gone"),
        ("PersistentVolume", phase("Available"), "yes", ""),
        ("PersistentVolume", phase("Bound"), "yes", ""),
        ("PersistentVolume", phase("Pending"), "no", "Pending"),
        ("PersistentVolume", json!({}), "no", "Pending"),
        ("PersistentVolume", phase("Failed"), "failed", "Failed"),
        (
            "PersistentVolume",
            json!({"status": {"phase": "Failed", "reason": "Recycle", "message": "no plugin"}}),
            "failed",
            "Recycle: no plugin",
        ),
        ("Namespace", phase("Active"), "yes", ""),
        ("Namespace", phase("Terminating"), "no", "Terminating"),
        ("Namespace", json!({}), "no", "not Active yet"),
        ("Namespace", namespace.clone(), "no", "terminating, finalizers: kubernetes"),
        // In other kinds, `spec.finalizers` is an ordinary field.
        ("Sample.example.com", namespace, "no", "terminating"),
        ("Service", service("ClusterIP", "10.0.0.1"), "yes", ""),
        ("Service", service("ClusterIP", "None"), "yes", ""),
        ("Service", service("ExternalName", ""), "yes", ""),
        ("Service", service("ClusterIP", ""), "no", "no cluster IP yet"),
        ("Service", balancer(json!([])), "no", "it has no load balancer address yet"),
        ("Service", balancer(json!([{"ip": "192.0.2.1"}])), "yes", ""),
        ("HorizontalPodAutoscaler.autoscaling", json!({}), "yes", ""),
        ("HorizontalPodAutoscaler.autoscaling", conditions([idle]), "yes", "FailedGetResourceMetric: no metrics"),
        ("PodDisruptionBudget.policy", seen(json!({}), json!({})), "yes", ""),
        (
            "PodDisruptionBudget.policy",
            json!({"metadata": {"generation": 1}}),
            "no",
            "its controller has not seen it yet",
        ),
        ("ConfigMap", json!({"data": {"a": "b"}}), "yes", ""),
        ("Ingress.networking.k8s.io", json!({"metadata": {"generation": 1}, "status": {}}), "yes", ""),
        ("Role.rbac.authorization.k8s.io", json!({"rules": []}), "yes", ""),
    ]);
}

#[test]
fn extensions_are_ready_with_a_version_that_they_ask_for() {
    let kind = "ClusterExtension.olm.operatorframework.io";
    let asking = |range: &str| {
        let mut object = conditions([
            condition("Installed", "True", "Succeeded", ""),
            condition("Progressing", "True", "Succeeded", ""),
        ]);
        object["spec"]["source"]["catalog"]["version"] = range.into();
        object["status"]["install"]["bundle"]["version"] = "1.12.2".into();
        object
    };
    let newer = "1.12.2 is installed, which is not in the range \">1.12.2\"";
    check(&[(kind, asking("<1.13"), "yes", ""), (kind, asking(">1.12.2"), "no", newer)]);
}

#[test]
fn objects_of_kapp_controller_are_ready_or_failed_by_their_conditions() {
    let (done, failed) =
        (condition("ReconcileSucceeded", "True", "", ""), |name| condition(name, "True", "", "exit 1"));
    let progress = condition("Reconciling", "True", "", "");
    for kind in
        ["App.kappctrl.k14s.io", "PackageInstall.packaging.carvel.dev", "PackageRepository.packaging.carvel.dev"]
    {
        let unseen = json!({"metadata": {"generation": 1}});
        let mut old = conditions([done.clone()]);
        old["status"]["observedGeneration"] = 2.into();
        let mut explained = conditions([failed("ReconcileFailed")]);
        explained["status"]["usefulErrorMessage"] = "kapp: Error: no\nsuch thing".into();
        let mut deleted = conditions([failed("DeleteFailed")]);
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let mut deleting = conditions([condition("Deleting", "True", "", "")]);
        deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        check(&[
            (kind, unseen, "no", "its controller has not seen it yet"),
            (kind, old, "no", "its controller has seen generation 2 of 3"),
            (kind, conditions([progress.clone()]), "no", "Reconciling is True"),
            (kind, conditions([done.clone()]), "yes", ""),
            (kind, conditions([failed("ReconcileFailed")]), "failed", "ReconcileFailed is True: exit 1"),
            (kind, conditions([failed("DeleteFailed")]), "failed", "DeleteFailed is True: exit 1"),
            (kind, explained, "failed", "ReconcileFailed is True: kapp: Error: no such thing"),
            (kind, deleted, "failed", "DeleteFailed is True: exit 1"),
            (kind, deleting, "no", "terminating"),
            // Paused.
            (kind, conditions([]), "yes", ""),
        ]);
    }
    // Other kinds with such conditions, such as one with the same name in another group.
    check(&[("App.example.com", conditions([failed("ReconcileFailed")]), "yes", "")]);
}

#[test]
fn custom_resources_follow_kstatus() {
    let kind = "Sample.example.com";
    let ready = |status: &str| condition("Ready", status, "Why", "text");
    let stalled = condition("Stalled", "True", "BadSpec", "text");
    let reconciling = condition("Reconciling", "True", "Progressing", "text");
    let old = json!({"metadata": {"generation": 2},
        "status": {"observedGeneration": 1, "conditions": [ready("True")]}});
    let own = json!({"metadata": {"generation": 2}, "status": {"conditions": [ready("True")]}});
    check(&[
        (kind, conditions([ready("True")]), "yes", ""),
        (kind, conditions([ready("False")]), "no", "Why: text"),
        (kind, conditions([ready("Unknown")]), "no", "Why: text"),
        (kind, conditions([ready("False"), stalled.clone()]), "failed", "BadSpec: text"),
        (kind, conditions([ready("True"), reconciling.clone()]), "no", "Progressing: text"),
        (kind, conditions([reconciling, stalled]), "failed", "BadSpec: text"),
        (kind, conditions([condition("Available", "True", "", ""), ready("False")]), "no", "Why: text"),
        (kind, conditions([condition("Available", "False", "", "")]), "no", "Available is False"),
        (kind, conditions([condition("Succeeded", "True", "", "")]), "yes", ""),
        (kind, conditions([condition("Succeeded", "False", "", "")]), "no", "Succeeded is False"),
        (kind, conditions([condition("Synced", "False", "", "")]), "yes", ""),
        (kind, json!({"metadata": {"generation": 2}}), "yes", ""),
        (kind, old, "no", "its controller has seen generation 1 of 2"),
        // Without an observed generation, the conditions are trusted.
        (kind, own, "yes", ""),
        // Kinds of this name in other groups are custom resources.
        ("ClusterExtension.example.com", json!({"metadata": {"generation": 2}}), "yes", ""),
        ("Deployment.example.com", json!({"metadata": {"generation": 2}}), "yes", ""),
    ]);
}

#[test]
fn a_deletion_and_the_annotation_of_kapp_take_precedence() {
    let deleted = |finalizers: Value| {
        let mut object = phase("Succeeded");
        object["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers});
        object
    };
    let unawaited = json!({"metadata": {"annotations": {"kapp.k14s.io/disable-wait": ""}}});
    check(&[
        ("Pod", deleted(json!(["a/b", "c"])), "no", "terminating, finalizers: a/b, c"),
        ("Pod", deleted(json!([])), "no", "terminating"),
        ("Pod", unawaited, "yes", "not awaited (kapp.k14s.io/disable-wait)"),
    ]);
}

#[test]
fn any_status_can_be_evaluated() {
    let kinds = [
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("", "ReplicationController"),
        ("batch", "Job"),
        ("", "Pod"),
        ("", "PersistentVolumeClaim"),
        ("", "PersistentVolume"),
        ("", "Namespace"),
        ("", "Service"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("example.com", "Sample"),
    ];
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5e300),
        json!("text\u{1b}[2J"),
        json!([[], null, 7]),
        json!({"a": {}}),
    ];
    let fields: [(&str, &[&str]); 3] = [
        ("metadata", &["generation", "deletionTimestamp", "finalizers", "annotations"]),
        (
            "spec",
            &["replicas", "paused", "suspend", "updateStrategy", "completions", "type", "clusterIP", "finalizers"],
        ),
        (
            "status",
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "desiredNumberScheduled",
                "numberUnavailable",
                "conditions",
                "phase",
                "containerStatuses",
                "loadBalancer",
                "typeChecking",
                "active",
            ],
        ),
    ];
    for (group, kind) in kinds {
        for value in &odd {
            let mut whole = json!({"metadata": {}, "spec": {}, "status": {}});
            evaluate(group, kind, value);
            for (part, names) in fields {
                for name in names {
                    whole[part][name] = value.clone();
                    let mut one = seen(json!({}), json!({}));
                    one[part][name] = value.clone();
                    evaluate(group, kind, &one);
                    let state = evaluate(group, kind, &whole);
                    assert!(
                        !state.reason().unwrap_or_default().chars().any(gantry_core::text::is_hostile),
                        "{state:?}"
                    );
                }
                evaluate(group, kind, &json!({ (part): value }));
            }
        }
    }
    let container = json!({"name": 3, "state": {"waiting": {"reason": ["x"]}, "terminated": {"exitCode": "1"}}});
    evaluate("", "Pod", &json!({"status": {"containerStatuses": [container, 1, null], "initContainerStatuses": "x"}}));
}

#[test]
fn reasons_are_one_short_line() {
    let message = format!("\u{1b}[2Jfirst\r\n  second\u{202e} {}", "x".repeat(1 << 20));
    let state = evaluate("example.com", "Sample", &conditions([condition("Ready", "False", "No", &message)]));
    let reason = state.reason().unwrap();
    assert!(reason.starts_with("No: \\u{1b}[2Jfirst second\\u{202e} xxx") && reason.ends_with('…'), "{reason}");
    assert!(reason.chars().count() < 300, "{reason}");
}

#[test]
fn an_object_with_an_unreadable_status_is_not_ready() {
    let resource = Resource::crd();
    assert_eq!(evaluate_parts("{", &resource), Readiness::InProgress("its status cannot be read".into()));
    assert_eq!(evaluate_parts(r#"{"metadata": {}}"#, &resource).json()["state"], "inProgress");
    assert_eq!(Readiness::READY.json(), json!({"state": "ready"}));
    assert_eq!(Readiness::failed("x").json(), json!({"state": "failed", "reason": "x"}));
}

#[test]
fn only_custom_resources_that_nothing_else_decides_lack_a_status() {
    let object = |api_version: &str, kind: &str| ObjectRef {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: None,
        name: "a".into(),
    };
    let lacks = |api_version: &str, kind: &str, value: Value| lacks_status(&[], &object(api_version, kind), &value);
    let sample = |value: Value| lacks("example.com/v1", "Sample", value);
    assert!(sample(json!({})) && sample(json!({"status": {}})) && sample(json!({"status": null})));
    assert!(!sample(json!({"status": {"phase": "Done"}})));
    assert!(!sample(json!({"metadata": {"annotations": {DISABLE_WAIT: ""}}})));
    assert!(!sample(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})));
    assert!(!lacks("v1", "ConfigMap", json!({})));
    assert!(!lacks("olm.operatorframework.io/v1", "ClusterExtension", json!({})));
    let rule = WaitRule { matchers: vec![matcher::Matcher::All], ..WaitRule::predicted("e", Vec::new()) };
    assert!(!lacks_status(&[rule], &object("example.com/v1", "Sample"), &json!({})));

    let of = |conditions: Value| json!({"status": {"conditions": conditions}}).to_string();
    assert!(tells_ready(&of(json!([{"type": "Synced"}, {"type": "Available", "status": "False"}]))));
    assert!(!tells_ready(&of(json!([{"type": "Synced"}]))) && !tells_ready("{}") && !tells_ready("no JSON"));
}

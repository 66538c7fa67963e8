//! Workloads and their Pods.

use super::*;

#[test]
fn deployments_are_ready_by_their_status() {
    let with = |replicas: i64, status: Value| seen(json!({"replicas": replicas}), status);
    let counts = |all: i64, updated: i64, available: i64| json!({"replicas": all, "updatedReplicas": updated, "availableReplicas": available});
    let said = |conditions: Value| {
        let mut status = counts(3, 3, 3);
        status["conditions"] = conditions;
        with(3, status)
    };
    let enough = |minimum: &str, status: Value| {
        let mut object = with(3, status);
        object["metadata"]["annotations"]["kapp.k14s.io/apps-v1-deployment-wait-minimum-replicas-available"] =
            minimum.into();
        object
    };
    let kind = "Deployment.apps";
    let late = condition("Progressing", "False", "ProgressDeadlineExceeded", "ReplicaSet \"web-1\" has timed out");
    let quota = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota");
    let mut unseen = with(3, counts(3, 3, 3));
    unseen["metadata"]["generation"] = 4.into();
    check(&[
        (kind, with(3, counts(3, 3, 3)), "yes", ""),
        (kind, with(0, json!({})), "yes", "scaled to 0"),
        (kind, with(3, counts(4, 2, 3)), "no", "2 of 3 replicas updated"),
        (kind, with(3, counts(4, 3, 3)), "no", "1 of 4 replicas still to be terminated"),
        (kind, with(1, counts(3, 3, 3)), "no", "2 of 3 replicas still to be terminated"),
        (kind, with(3, counts(3, 3, 2)), "no", "2 of 3 replicas available"),
        (kind, seen(json!({}), json!({})), "no", "0 of 1 replica updated"),
        (kind, enough("2", counts(3, 3, 2)), "yes", "2 of 3 replicas available; the minimum is 2"),
        (kind, enough("67%", counts(3, 3, 2)), "no", "2 of 3 replicas available"),
        (kind, enough("66%", counts(3, 3, 2)), "yes", "2 of 3 replicas available; the minimum is 2"),
        (kind, enough("2", counts(3, 3, 1)), "no", "1 of 3 replicas available"),
        // Two of four are old, and may be the ones that are available.
        (kind, enough("1", counts(4, 2, 2)), "no", "2 of 3 replicas updated"),
        (kind, enough("1", counts(4, 2, 3)), "yes", "1 of 3 replicas available; the minimum is 1"),
        (kind, enough("9", counts(3, 3, 3)), "yes", ""),
        (kind, enough("some", counts(3, 3, 2)), "no", "2 of 3 replicas available"),
        (kind, enough("-1", counts(3, 3, 2)), "no", "2 of 3 replicas available"),
        (kind, unseen, "no", "its controller has seen generation 3 of 4"),
        (kind, json!({"metadata": {"generation": 1}}), "no", "its controller has not seen it yet"),
        (
            kind,
            seen(json!({"replicas": 3, "paused": true}), json!({})),
            "yes",
            "paused: changes to the Pod template are not rolled out",
        ),
        (kind, said(json!([late])), "failed", "ProgressDeadlineExceeded: ReplicaSet \"web-1\" has timed out"),
        (
            kind,
            said(json!([quota, late])),
            "failed",
            "ProgressDeadlineExceeded: ReplicaSet \"web-1\" has timed out; FailedCreate: exceeded quota",
        ),
        (kind, said(json!([quota])), "no", "FailedCreate: exceeded quota"),
        (
            kind,
            said(json!([condition("Progressing", "False", "ReplicaSetCreateError", "no")])),
            "no",
            "ReplicaSetCreateError: no",
        ),
        (kind, said(json!([condition("Progressing", "True", "NewReplicaSetAvailable", "")])), "yes", ""),
    ]);
}

#[test]
fn stateful_sets_and_daemon_sets_are_ready_by_their_status() {
    let kind = "StatefulSet.apps";
    let status = |all: i64, updated: i64, ready: i64, current: &str| {
        json!({"replicas": all, "updatedReplicas": updated, "readyReplicas": ready, "currentRevision": current,
            "updateRevision": "b"})
    };
    let with = |status: Value| seen(json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}}), status);
    let partition = |partition: i64, status: Value| {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        seen(json!({"replicas": 3, "updateStrategy": strategy}), status)
    };
    let on_delete = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
    let by_hand = "OnDelete: Pods are replaced when they are deleted";
    check(&[
        (kind, with(status(3, 3, 3, "b")), "yes", ""),
        (kind, with(status(3, 1, 3, "a")), "no", "1 of 3 replicas updated"),
        (kind, with(status(3, 3, 2, "a")), "no", "2 of 3 replicas ready"),
        (kind, with(status(4, 3, 3, "b")), "no", "1 of 4 replicas still to be terminated"),
        (kind, with(status(3, 3, 3, "a")), "no", "moving from revision a to b"),
        (kind, partition(2, status(3, 1, 3, "a")), "yes", "partition 2: Pods below it are not updated"),
        (kind, partition(2, status(3, 0, 3, "a")), "no", "0 of 1 replica updated"),
        (kind, partition(1, status(3, 2, 3, "a")), "yes", "partition 1: Pods below it are not updated"),
        (kind, partition(9, status(3, 0, 2, "a")), "no", "2 of 3 replicas ready"),
        (kind, seen(on_delete.clone(), json!({})), "yes", by_hand),
        (kind, json!({"metadata": {"generation": 1}, "spec": on_delete}), "no", "its controller has not seen it yet"),
    ]);
    let kind = "DaemonSet.apps";
    let with = |wanted: i64, updated: i64, unavailable: i64| json!({"desiredNumberScheduled": wanted, "updatedNumberScheduled": updated, "numberUnavailable": unavailable});
    check(&[
        (kind, seen(json!({}), with(2, 2, 0)), "yes", ""),
        (kind, seen(json!({}), with(0, 0, 0)), "yes", "no node to run on"),
        (kind, seen(json!({}), with(2, 1, 0)), "no", "1 of 2 Pods updated"),
        (kind, json!({"metadata": {"generation": 1}}), "no", "its controller has not seen it yet"),
        (kind, seen(json!({}), with(2, 2, 1)), "no", "1 of 2 Pods not available"),
        (kind, seen(json!({}), json!({})), "no", "its controller has not counted nodes yet"),
        (kind, seen(json!({"updateStrategy": {"type": "OnDelete"}}), with(2, 0, 2)), "yes", by_hand),
    ]);
}

#[test]
fn replica_sets_and_jobs_are_ready_by_their_status() {
    let quota = json!([condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota")]);
    for kind in ["ReplicaSet.apps", "ReplicationController"] {
        let with = |status: Value| seen(json!({"replicas": 2}), status);
        check(&[
            (kind, with(json!({"availableReplicas": 2})), "yes", ""),
            (kind, with(json!({"availableReplicas": 1})), "no", "1 of 2 replicas available"),
            (kind, with(json!({"conditions": quota})), "no", "FailedCreate: exceeded quota"),
            (kind, with(json!({"availableReplicas": -1})), "no", "0 of 2 replicas available"),
            (kind, seen(json!({"replicas": 0}), json!({})), "yes", "scaled to 0"),
            (kind, json!({"metadata": {"generation": 1}}), "no", "its controller has not seen it yet"),
        ]);
    }
    let kind = "Job.batch";
    let late = condition("FailureTarget", "True", "BackoffLimitExceeded", "too often");
    let failed = condition("Failed", "True", "BackoffLimitExceeded", "too often");
    let running = json!({"spec": {"completions": 3}, "status": {"active": 1, "failed": 2}});
    check(&[
        (kind, conditions([condition("Complete", "True", "", "")]), "yes", ""),
        (kind, conditions([condition("SuccessCriteriaMet", "True", "", "")]), "yes", ""),
        (kind, conditions([late.clone()]), "no", "failing: BackoffLimitExceeded: too often"),
        (kind, conditions([late, failed]), "failed", "BackoffLimitExceeded: too often"),
        (kind, conditions([condition("Failed", "False", "", "")]), "no", "0 active, 0 succeeded, 0 failed"),
        (kind, json!({"spec": {"suspend": true}}), "yes", "suspended"),
        (kind, running, "no", "1 active, 0 of 3 succeeded, 2 failed"),
        ("CronJob.batch", json!({}), "yes", ""),
    ]);
}

#[test]
fn the_log_of_the_container_that_keeps_a_pod_from_being_ready_is_wanted() {
    let container = |name: &str, ready: bool, state: Value, last: Value| json!({"name": name, "ready": ready, "state": state, "lastState": last});
    let (running, ended) = (json!({"running": {}}), |code: u8| json!({"terminated": {"exitCode": code}}));
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    let sidecar = container("sidecar", false, running.clone(), json!({}));
    for (init, containers, expected) in [
        (json!([]), json!([sidecar, container("web", false, waiting("CrashLoopBackOff"), ended(1))]), Some("web")),
        // It has never run, and a container that waits for it is not the cause.
        (json!([]), json!([sidecar, container("web", false, waiting("ImagePullBackOff"), json!({}))]), None),
        (json!([container("init", false, ended(2), json!({}))]), json!([sidecar]), Some("init")),
        (json!([container("init", true, ended(0), json!({}))]), json!([sidecar]), Some("sidecar")),
        (
            json!([]),
            json!([container("web", true, running, json!({})), container("job", false, ended(0), json!({}))]),
            None,
        ),
        (json!([]), json!([container("web", false, waiting("ContainerCreating"), json!({}))]), None),
        (json!("x"), json!([{"name": 3, "state": []}]), None),
    ] {
        let pod = json!({"status": {"initContainerStatuses": init, "containerStatuses": containers}});
        assert_eq!(logging_container(&pod).as_deref(), expected, "{pod}");
    }
}

#[test]
fn pods_are_ready_by_their_status() {
    let kind = "Pod";
    let running = |conditions: Value, container: Value| {
        json!({"spec": {"restartPolicy": "Always"},
            "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}})
    };
    let ready = json!([condition("Ready", "True", "", "")]);
    let unready = json!([condition("Ready", "False", "ContainersNotReady", "containers with unready status: [web]")]);
    let image =
        json!({"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}});
    let crash = json!({"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": {"exitCode": 7}}});
    let creating = json!({"name": "web", "state": {"waiting": {"reason": "ContainerCreating"}}});
    let ended = json!({"name": "web", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}});
    let pending = |status: Value| json!({"status": status});
    let unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available:\n3 too small");
    let mut never = running(ready.clone(), ended.clone());
    never["spec"]["restartPolicy"] = "Never".into();
    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
    let begun = json!({"name": "web", "state": {"waiting": {"reason": "PodInitializing"}}});
    let mut init = running(unready.clone(), begun.clone());
    init["status"]["initContainerStatuses"] = json!([crash.clone()]);
    check(&[
        (kind, phase("Succeeded"), "yes", ""),
        (kind, running(ready, json!({})), "yes", ""),
        (kind, running(unready.clone(), json!({})), "no", "ContainersNotReady: containers with unready status: [web]"),
        (kind, running(json!([]), json!({})), "no", "Running, not Ready"),
        (kind, running(unready.clone(), image), "no", "container web: ImagePullBackOff: no such image"),
        (kind, running(unready.clone(), crash), "no", "container web: CrashLoopBackOff (exit code 7): back-off 5m0s"),
        (kind, init, "no", "container web: CrashLoopBackOff (exit code 7): back-off 5m0s"),
        (kind, running(unready, ended.clone()), "no", "container web: Error (exit code 2)"),
        (kind, pending(json!({"phase": "Pending", "containerStatuses": [creating]})), "no", "Pending, not Ready"),
        (
            kind,
            pending(json!({"phase": "Pending", "conditions": [unscheduled]})),
            "no",
            "Unschedulable: 0/3 nodes are available: 3 too small",
        ),
        (kind, pending(json!({"phase": "Pending", "containerStatuses": [begun]})), "no", "Pending, not Ready"),
        (kind, phase("Unknown"), "no", "its node does not respond"),
        (kind, json!({}), "no", "not scheduled yet"),
        (kind, never, "failed", "container web: Error (exit code 2)"),
        (kind, evicted, "failed", "Evicted: low on memory"),
        (
            kind,
            pending(json!({"phase": "Failed", "containerStatuses": [ended]})),
            "failed",
            "container web: Error (exit code 2)",
        ),
        (kind, phase("Failed"), "failed", "the Pod failed"),
    ]);
}

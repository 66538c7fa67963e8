//! A snapshot as manifests: on an unchanged cluster, a deploy of it has nothing to do.

use serde_json::{Value, json};

use crate::support::{Bed, ControlPlane, control_plane};

/// What a deploy of the snapshot would change.
fn changes(report: &Value) -> Vec<String> {
    let changes = report["changes"].as_array().expect("changes").iter();
    let planned = changes.filter(|change| change["action"] != "unchanged");
    planned
        .map(|change| format!("{} {} {}", change["action"], change["object"]["kind"], change["object"]["name"]))
        .collect()
}

/// The installs of real operators, each in a folder with manifests: FOLDER/NAME/*.yaml.
#[test]
#[ignore = "reads a folder that is not part of the repository"]
fn snapshots_of_given_installs_have_nothing_to_do() {
    let folder = std::env::var_os("GANTRY_TEST_INSTALLS").expect("GANTRY_TEST_INSTALLS names a folder");
    let mut installs: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|entry| entry.unwrap().path()).collect();
    installs.retain(|path| path.is_dir());
    installs.sort();
    let only = std::env::var("GANTRY_TEST_INSTALL").ok();
    let mut failed = Vec::new();
    for install in installs {
        let name = install.file_name().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let cp = ControlPlane::start();
        let bed = Bed::new();
        for namespace in [&*name, "postgres-operator"] {
            cp.apply_yaml(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"));
        }
        let manifests = install.join("old");
        let manifests = manifests.to_str().expect("UTF-8");
        let admin = || cp.kubeconfig("admin");
        let run = |arguments: &[&str]| bed.gantry(admin(), &[arguments, &["-n", &name]].concat()).run();
        let deployed = run(&["deploy", "-f", manifests, "--wait=crds", "--apply-timeout=1s", "--keep-going"]);
        println!("{name}: {}", deployed.stdout.lines().last().unwrap_or_default());
        if deployed.code == Some(3) {
            println!("{deployed}");
        }
        let taken = run(&["snapshot", "-f", manifests, "-o", "live", "--objects"]);
        println!("{name}: {}", taken.code(0).stdout.lines().nth(1).unwrap_or_default());
        let again = run(&["deploy", "-f", "live", "--wait=crds", "--dry-run", "-o", "json"]);
        let changes = changes(&again.report());
        println!("{name}: {} changes: {changes:#?}", changes.len());
        if !changes.is_empty() {
            failed.push(format!("{name}: {}", changes.len()));
            if std::env::var_os("GANTRY_TEST_DIFF").is_some() {
                println!("{}", run(&["diff", "-f", "live", "-v"]).stdout);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Objects to which the server, controllers and others add much.
fn manifests(bed: &Bed) -> Vec<Value> {
    let labels = json!({"app": "web"});
    let group = &bed.names.group;
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("shops.{group}")}, "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"}, "versions": [version]}});
    let container = json!({"name": "c", "image": "web:1", "ports": [{"containerPort": 80}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}}, "resources": {"limits": {"cpu": "1000m"}}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [container], "serviceAccountName": "web"}}});
    vec![
        serde_yaml::from_str(&bed.namespace()).expect("YAML"),
        crd,
        bed.object("v1", "ServiceAccount", "web", json!({})),
        bed.object("v1", "ConfigMap", "settings", json!({"data": {"a": "1"}})),
        bed.object("v1", "Service", "web", json!({"spec": {"selector": labels, "ports": [{"port": 80}]}})),
        bed.object("apps/v1", "Deployment", "web", json!({"spec": spec})),
        bed.object("apps/v1", "DaemonSet", "node", json!({"spec": spec})),
        bed.object(
            "batch/v1",
            "CronJob",
            "nightly",
            json!({"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec":
            {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}}}}}}),
        ),
        bed.object(
            "v1",
            "PersistentVolumeClaim",
            "data",
            json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        bed.object("policy/v1", "PodDisruptionBudget", "web", json!({"spec": {"selector": {"matchLabels": labels}}})),
        bed.object(
            "rbac.authorization.k8s.io/v1",
            "Role",
            "web",
            json!({"rules":
            [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        bed.object(&format!("{group}/v1"), "Shop", "one", json!({"spec": {}})),
    ]
}

#[test]
fn a_snapshot_of_an_unchanged_cluster_has_nothing_to_do() {
    let (cp, bed) = (control_plane(), Bed::new());
    let objects = manifests(&bed);
    bed.write_objects(&objects);
    let run = |arguments: &[&str]| bed.gantry(cp.kubeconfig("admin"), arguments).run();
    run(&["deploy", "-f", "manifests.yaml"]).code(0);
    // What others add is part of the snapshot.
    let [settings, deployment] = [3, 5].map(|index: usize| cp.path_of(&objects[index]));
    let shop = cp.path_of(objects.last().expect("objects"));
    let patch = |path: &str, patch: Value| assert_eq!(cp.patch(path, &patch).0, 200, "{path}");
    patch(&settings, json!({"metadata": {"annotations": {"theirs": "1"}}, "data": {"b": "2"}}));
    patch(&format!("{shop}/status"), json!({"status": {"phase": "new"}}));
    run(&["snapshot", "-f", "manifests.yaml", "-o", "live", "--objects"]).code(0);
    let versions = || objects.iter().map(|it| cp.get(&cp.path_of(it)).1["metadata"]["resourceVersion"].clone());
    let before: Vec<Value> = versions().collect();
    run(&["deploy", "-f", "live"]).code(0).stdout_contains("Nothing to do");
    run(&["check", "-f", "live", "--detailed-exitcode"]).code(0);
    run(&["diff", "-f", "live", "--detailed-exitcode"]).code(0);
    assert_eq!(versions().collect::<Vec<_>>(), before);

    // The status is the controllers'.
    patch(&format!("{deployment}/status"), json!({"status": {"observedGeneration": 1, "replicas": 1}}));
    patch(&format!("{shop}/status"), json!({"status": {"phase": "ready"}}));
    run(&["deploy", "-f", "live"]).code(0).stdout_contains("Nothing to do");
    // Everything else counts, also what the first manifests did not have.
    patch(&settings, json!({"data": {"b": "3"}}));
    patch(&shop, json!({"spec": {"size": 4}}));
    let report = run(&["deploy", "-f", "live", "--force-conflicts", "-o", "json"]).code(0).report();
    let mut changed = changes(&report);
    changed.sort();
    assert_eq!(changed, [r#""update" "ConfigMap" "settings""#, r#""update" "Shop" "one""#]);
    let live = |path: &str| cp.get(path).1;
    assert_eq!((&live(&settings)["data"]["b"], &live(&shop)["spec"]["size"]), (&json!("2"), &json!(3)));
    assert_eq!(live(&shop)["status"]["phase"], "ready");
}

#[test]
fn a_snapshot_of_the_members_of_an_app_is_deployed_to_it() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let run = |arguments: &[&str]| bed.gantry(cp.kubeconfig("admin"), arguments).run();
    let settings = bed.object("v1", "ConfigMap", "settings", json!({"data": {"a": "1"}}));
    bed.write_objects([&settings]);
    let namespace = bed.names.namespace.as_str();
    run(&["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", namespace]).code(0);
    run(&["snapshot", "-f", "manifests.yaml", "-o", "live"]).code(0);
    let again = ["deploy", "-f", "live", "-a", "shop", "-n", namespace];
    run(&again).code(0).stdout_contains("Nothing to do");
    cp.delete(&cp.path_of(&settings));
    run(&again).code(0).stdout_contains("Deployed: 1 created");
    run(&["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", namespace]).code(0).stdout_contains("Nothing to do");
    // Another app does not get it by its label.
    run(&["deploy", "-f", "live", "-a", "other", "-n", namespace]).code(2).stderr_contains("remove the label");
}

#[test]
fn an_object_of_a_snapshot_that_was_deleted_is_created_without_what_was_assigned_to_it() {
    let (cp, bed) = (control_plane(), Bed::new());
    let run = |arguments: &[&str]| bed.gantry(cp.kubeconfig("admin"), arguments).run();
    let container = json!({"name": "c", "image": "web:1"});
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let objects = [
        serde_yaml::from_str(&bed.namespace()).expect("YAML"),
        bed.object("v1", "Service", "web", json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}})),
        bed.object("v1", "Service", "headless", json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}})),
        bed.object("batch/v1", "Job", "once", json!({"spec": {"template": {"spec": pod}}})),
        bed.object("v1", "PersistentVolumeClaim", "data", json!({"spec": claim})),
        bed.object("v1", "Pod", "worker", json!({"spec": pod})),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": bed.names.namespace}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
        bed.object("v1", "ConfigMap", "owned", json!({"data": {"a": "1"}})),
    ];
    bed.write_objects(&objects);
    run(&["deploy", "-f", "manifests.yaml", "--wait=false"]).code(0);
    // What the controllers of a cluster do.
    let paths: Vec<String> = objects.iter().map(|object| cp.path_of(object)).collect();
    let [web, headless, job, data, worker, volume, owned] =
        [1, 2, 3, 4, 5, 6, 7].map(|index: usize| paths[index].as_str());
    let bound = json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "gone"}});
    assert_eq!(cp.patch(&format!("{data}?fieldManager=kube-controller-manager"), &bound).0, 200);
    let node =
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "worker"}, "target": {"name": "gone"}});
    assert_eq!(cp.post(&format!("{worker}/binding"), &node).0, 201);
    let claim = json!({"spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data",
        "namespace": bed.names.namespace, "uid": uid(&cp.get(data).1), "resourceVersion": "5"}}});
    assert_eq!(cp.patch(&format!("{volume}?fieldManager=csi-provisioner"), &claim).0, 200);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "worker", "uid": uid(&cp.get(worker).1)});
    assert_eq!(cp.patch(owned, &json!({"metadata": {"ownerReferences": [owner]}})).0, 200);
    run(&["snapshot", "-f", "manifests.yaml", "-o", "live"]).code(0);
    // gantry owns all of the Job if it applies the snapshot.
    assert_eq!(cp.patch(job, &json!({"metadata": {"labels": {"touched": "yes"}}})).0, 200);
    run(&["deploy", "-f", "live", "--wait=false"]).code(0).stdout_contains("Deployed: 1 updated");
    run(&["snapshot", "-f", "manifests.yaml", "-o", "live"]).code(0);

    let before: Vec<Value> = paths.iter().map(|path| cp.get(path).1).collect();
    for path in [web, headless, job, data, worker, volume, owned] {
        cp.patch(path, &json!({"metadata": {"finalizers": null}}));
        cp.delete(&format!("{path}?propagationPolicy=Background&gracePeriodSeconds=0"));
        assert_eq!(cp.get(path).0, 404, "{path}");
    }
    // Somebody has the address now.
    let spec = json!({"clusterIP": before[1]["spec"]["clusterIP"], "ports": [{"port": 80}]});
    let services = web.rsplit_once('/').expect("a path").0;
    cp.post(services, &bed.object("v1", "Service", "successor", json!({"spec": spec})));

    run(&["deploy", "-f", "live", "--wait=false"]).code(0).stdout_contains("Deployed: 7 created");
    let after: Vec<Value> = paths.iter().map(|path| cp.get(path).1).collect();
    assert_ne!(after[1]["spec"]["clusterIP"], before[1]["spec"]["clusterIP"]);
    assert_eq!(after[2]["spec"]["clusterIP"], "None");
    let controller = |job: &Value| job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"].clone();
    assert_eq!((controller(&before[3]), controller(&after[3])), (uid(&before[3]), uid(&after[3])));
    assert_ne!(after[3]["metadata"]["labels"]["controller-uid"], uid(&before[3]));
    let assigned =
        [&after[4]["spec"]["volumeName"], &after[4]["metadata"]["annotations"], &after[5]["spec"]["nodeName"]];
    assert_eq!(assigned, [&Value::Null; 3]);
    let claim = &after[6]["spec"]["claimRef"];
    assert_eq!(
        (&claim["name"], &claim["uid"], &claim["resourceVersion"]),
        (&json!("data"), &Value::Null, &Value::Null)
    );
    assert_eq!(after[7]["metadata"]["ownerReferences"], Value::Null);
    run(&["deploy", "-f", "live", "--wait=false"]).code(0).stdout_contains("Nothing to do");
}

fn uid(object: &Value) -> Value {
    object["metadata"]["uid"].clone()
}

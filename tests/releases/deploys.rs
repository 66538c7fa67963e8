//! A whole deploy of an app on a server of each release, with its controllers.

use serde_json::{Value, json};

use super::tested_releases;
use crate::support::{Bed, ControlPlane, eventually};

#[test]
#[ignore = "builds API servers of several releases"]
fn an_app_is_created_changed_pruned_and_deleted_on_each_release() {
    let failed: Vec<&str> = tested_releases().into_iter().filter(|release| !is_deployed_on(release)).collect();
    assert!(failed.is_empty(), "failed on {failed:?}; the messages are above");
}

/// Whether all steps succeed on the release; a panic of a step is printed.
fn is_deployed_on(release: &str) -> bool {
    let deploy = || {
        let cp = ControlPlane::start_release_with_controllers(release);
        deploy_and_delete(&cp, &Bed::on(&cp));
    };
    let outcome = std::panic::catch_unwind(deploy);
    println!("{release}: {}", if outcome.is_ok() { "deployed" } else { "failed" });
    outcome.is_ok()
}

fn deploy_and_delete(cp: &ControlPlane, bed: &Bed) {
    let (group, namespace) = (&bed.names.group, &bed.names.namespace);
    let app = |arguments: &[&str]| bed.deploy(cp.kubeconfig("admin"), &["-a", "app", "-y"]).args(arguments).run();
    let deployment = |replicas: u32| {
        let labels = json!({"app": "web"});
        let containers = json!([{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        bed.object("apps/v1", "Deployment", "web", json!({"spec": spec}))
    };
    let yaml = |text: &str| serde_yaml::from_str::<Value>(text).expect("a manifest");
    let crd = |fields: &str| yaml(&bed.crd(fields));
    let job = || {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "job", "image": "job:1"}]});
        bed.object("batch/v1", "Job", "migrate", json!({"spec": {"template": {"spec": pod}}}))
    };
    let [first, second] = ["first", "second"].map(|name| yaml(&bed.config_map(name, "a")));
    let ports = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    let service = bed.object("v1", "Service", "web", json!({"spec": ports}));
    let one = yaml(&bed.sample());

    // Create: everything becomes ready.
    let objects = [&crd("first: {type: string}"), &one, &first, &second, &service, &deployment(1), &job()];
    bed.write_objects(objects);
    app(&["--wait"]).code(0);
    let ready = |replicas: u32| {
        let live = cp.get(&format!("/apis/apps/v1/namespaces/{namespace}/deployments/web")).1;
        assert_eq!(live["status"]["readyReplicas"], replicas, "{live:#}");
    };
    ready(1);
    assert_eq!(cp.get(&bed.sample_path()).1["first"], "x");
    assert_eq!(app(&["--wait", "-o", "json"]).code(0).report()["outcome"], "unchanged");

    // Change: a field is added to the CRD, the deployment grows, a config map leaves the manifests.
    let changed = crd("first: {type: string}, second: {type: string}");
    bed.write_objects([&changed, &one, &first, &service, &deployment(2), &job()]);
    app(&["--wait"]).code(0).stderr_contains("configmap/second");
    ready(2);
    let statuses = || ["first", "second"].map(|name| cp.get(&bed.config_map_path(name)).0);
    assert_eq!(statuses(), [200, 200]);

    // Prune.
    app(&["--wait", "--prune", "yes"]).code(0);
    assert_eq!(statuses(), [200, 404]);
    let version = &changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let live = cp.get(&bed.crd_path()).1;
    assert_eq!(&live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"], version);

    // Delete.
    bed.gantry(cp.kubeconfig("admin"), &["delete", "-a", "app", "-y"]).run().code(0);
    for path in [bed.crd_path(), bed.config_map_path("first"), format!("/apis/{group}/v1")] {
        eventually(&format!("{path} is gone"), || (cp.get(&path).0 == 404).then_some(()));
    }
}

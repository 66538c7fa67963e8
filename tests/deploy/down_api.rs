//! An aggregated API whose server does not answer stops only deploys that use it.

use serde_json::{Value, json};

use crate::support::{Bed, ControlPlane, CrdBuilder, any_fields, eventually, printed_command, run_printed};
use crate::waiting::Stage;

/// An APIService without a backend. The test has its own control plane: with such an API no namespace can be deleted.
fn api_service() -> Value {
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.down.example.com"},
        "spec": {"group": "down.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": {"name": "nobody", "namespace": "default", "port": 443}}})
}

/// The server that has to answer for it is the API server itself, which reports it as available at once.
#[test]
fn an_api_service_is_ready_when_its_api_is_available() {
    let cp = ControlPlane::start();
    let stage = Stage::on(&cp);
    let local = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.local.example.com"},
        "spec": {"group": "local.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}});
    stage.write(&[&local]);
    let report = stage.deploy_as(cp.kubeconfig("admin"), &["-o", "json"]).run().code(0).report();
    let wait = &report["waits"][0];
    assert_eq!((&wait["state"], report["waits"].as_array().map(Vec::len)), (&json!("ready"), Some(1)), "{report}");
    let inspect = ["inspect", "-a", "shop", "-n", stage.namespace(), "-o", "json"];
    let readiness = || {
        let output = stage.bed.gantry(cp.kubeconfig("admin"), &inspect).run();
        output.code(0).report()["objects"][0]["readiness"].clone()
    };
    assert_eq!(readiness(), json!({"state": "ready"}));
    // It changes to one that nobody serves.
    let mut down = api_service();
    down["metadata"]["name"] = local["metadata"]["name"].clone();
    down["spec"]["group"] = local["spec"]["group"].clone();
    stage.write(&[&down]);
    stage.deploy_as(cp.kubeconfig("admin"), &["--wait=false"]).run().code(0);
    eventually("the API is down", || (readiness()["state"] == "inProgress").then_some(()));
}

fn is_known_and_down(cp: &ControlPlane) {
    eventually("the aggregated API is known and down", || (cp.get("/apis/down.example.com/v1").0 == 503).then_some(()));
}

#[test]
fn an_api_that_is_down_ends_only_deploys_that_need_it() {
    let cp = ControlPlane::start();
    let stage = Stage::on(&cp);
    let deploy = |flags: &[&str]| stage.deploy_as(cp.kubeconfig("admin"), flags).run();
    let exists = |name: &str| cp.get(&stage.bed.config_map_path(name)).0 == 200;
    let (stays, goes) = (stage.config_map("stays", json!({})), stage.config_map("goes", json!({})));
    let other = Bed::new().names.namespace;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}});
    stage.write(&[&stays, &goes, &namespace]);
    deploy(&[]).code(0);

    // The APIService is a member of the app, and never becomes available.
    stage.write(&[&stays, &goes, &namespace, &api_service()]);
    let output = deploy(&["--wait-timeout=1s"]);
    output.code(5).stdout_contains("apiservice.apiregistration.k8s.io/v1.down.example.com is not ready after 1s: ");
    let output = deploy(&["--ignore-failing-api-services"]);
    output
        .code(0)
        .stderr_contains("notice: ")
        .stderr_contains("apiservice.apiregistration.k8s.io/v1.down.example.com: ");
    is_known_and_down(&cp);

    // Members are still found, compared and deleted.
    stage.write(&[&stays, &namespace, &api_service()]);
    deploy(&["--wait=crds", "--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert!(exists("stays") && !exists("goes"));
    let inspect = ["inspect", "-a", "shop", "-n", stage.namespace()];
    stage.bed.gantry(cp.kubeconfig("admin"), &inspect).run().code(0).stdout_contains("ServiceNotFound: ");

    // Its objects are unknown, so a snapshot does not silently leave them out.
    let of_it = "apiVersion: down.example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: default}\n";
    stage.bed.write("thing.yaml", of_it);
    let snapshot = ["snapshot", "-o", "live", "-f", "thing.yaml"];
    stage.bed.gantry(cp.kubeconfig("admin"), &snapshot).run().code(1).stderr_contains("down.example.com/v1");

    // A namespace can contain objects of that API, and stays until it answers.
    stage.write(&[&stays, &api_service()]);
    let output = deploy(&["--wait=crds", "--prune=yes"]);
    output.code(1).stdout_contains("it is unknown what else the namespace contains");
    output.stdout_contains("v1.down.example.com").stdout_contains("--ignore-failing-api-services");
    assert_eq!(cp.get(&format!("/api/v1/namespaces/{other}")).1["metadata"]["deletionTimestamp"], Value::Null);
    // The API server does not finish the deletion, and the report says so.
    std::fs::write(
        stage.bed.folder.path().join("gantry.yaml"),
        "{apiVersion: gantry.dev/v1alpha1, kind: Config, ignoreFailingApiServices: true, timeouts: {delete: 1s}}",
    )
    .expect("write a file");
    let output = deploy(&["--prune=yes"]);
    output.code(5).stdout_contains(&format!("namespace/{other} is still being deleted (since"));
}

fn crd() -> Value {
    CrdBuilder::new("down.example.com", "Thing").version("v1", any_fields()).build()
}

/// An app with a CRD and with an APIService for the same API, which does not answer.
fn deploy_with_own_api(cp: &ControlPlane, stage: &Stage) {
    let mut api_service = api_service();
    api_service["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-default-change-group-and-rules": ""});
    // The APIService first: once the API server has seen the CRD, it creates an APIService of that name itself.
    for manifests in [&[&api_service][..], &[&api_service, &crd()]] {
        stage.write(manifests);
        stage.deploy_as(cp.kubeconfig("admin"), &["--wait=false"]).run().code(0);
    }
    is_known_and_down(cp);
}

#[test]
fn a_crd_whose_api_is_down_is_deleted_only_with_the_flag() {
    let cp = ControlPlane::start();
    let stage = Stage::on(&cp);
    deploy_with_own_api(&cp, &stage);
    let thing = json!({"apiVersion": "down.example.com/v1", "kind": "Thing", "spec": {"value": "kept"},
        "metadata": {"name": "one", "namespace": "default", "uid": "7f6f4a0e-3f55-4d52-8a77-6f1d0f6a3c11",
            "creationTimestamp": "2026-01-01T00:00:00Z"}});
    cp.store("/registry/down.example.com/things/default/one", &thing);
    let delete = |flags: &[&str]| {
        let arguments = [&["delete", "-a", "shop", "-n", stage.namespace(), "--yes"], flags].concat();
        stage.bed.gantry(cp.kubeconfig("admin"), &arguments).run()
    };
    let things = || cp.get("/apis/down.example.com/v1/things").1["items"].as_array().map(Vec::len);

    let said = delete(&[]);
    said.code(1).stdout_contains("it is unknown which objects things.down.example.com has:");
    // The first advice: without the APIService, the objects are seen, and keep their CRD.
    let down = printed_command(&said, "has: apiservice.apiregistration.k8s.io/", " does not answer");
    let down = down.split([' ', ':']).find(|word| word.starts_with("apiservice.")).expect("a name");
    run_printed(&format!("kubectl delete {down}"), &cp.kubeconfig("admin"), stage.bed.folder.path());
    eventually("the objects are served", || (things() == Some(1)).then_some(()));
    let seen = || delete(&[]).stdout.contains("would also delete 1 object of kind Thing");
    eventually("gantry sees the object", || seen().then_some(()));
    assert_eq!(cp.get("/apis/down.example.com/v1/namespaces/default/things/one").1["spec"]["value"], "kept");

    // The last advice, while it is down: the message says that all objects go, and they do.
    let mut down = self::api_service();
    down["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-default-change-group-and-rules": ""});
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com";
    down["metadata"]["labels"] = json!({"kube-aggregator.kubernetes.io/automanaged": null});
    eventually("the APIService is replaced", || {
        let (status, _) = cp.patch(path, &down);
        (status == 200 && cp.get("/apis/down.example.com/v1").0 == 503).then_some(())
    });
    let said = delete(&[]);
    said.code(1);
    let flag = printed_command(&said, "delete the CRD with all objects that it has: --", " Failed:");
    let flag = flag.rsplit(' ').next().expect("a flag");
    delete(&[flag]).code(0).stderr_contains("is deleted, although its objects are unknown");
    cp.delete(path);
    cp.apply_yaml(&crd().to_string());
    assert_eq!(eventually("the API is served again", things), 0);
}

#[test]
fn an_app_whose_own_api_is_down_is_deleted_on_request() {
    let cp = ControlPlane::start();
    let stage = Stage::on(&cp);
    deploy_with_own_api(&cp, &stage);

    let app = |arguments: &[&str]| {
        stage.bed.gantry(cp.kubeconfig("admin"), &[arguments, &["-a", "shop", "-n", stage.namespace()]].concat()).run()
    };
    let exists = || cp.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com").0 == 200;
    stage.write(&[&stage.config_map("stays", json!({}))]);
    let prune = ["deploy", "-f", "manifests.yaml", "--prune=yes", "--prune-max=9"];
    for command in
        [&["delete", "--yes"][..], &prune, &["check", "-f", "manifests.yaml", "--prune=yes", "--prune-max=9"]]
    {
        let output = app(command);
        output.code(1).stdout_contains("it is unknown which objects things.down.example.com has:");
        output.stdout_contains("apiservice.apiregistration.k8s.io/v1.down.example.com");
        output.stdout_contains("--ignore-failing-api-services");
        assert!(exists(), "{output}");
    }
    let output = app(&[&prune[..], &["--ignore-failing-api-services", "--dry-run"]].concat());
    output.code(0).stderr_contains("is deleted, although its objects are unknown");
    let output = app(&["delete", "--yes", "--ignore-failing-api-services"]);
    output.code(0).stderr_contains("is deleted, although its objects are unknown");
    assert!(!exists(), "{output}");
    assert_eq!(cp.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.down.example.com").0, 404);
}

/// The app's own APIService is deleted before the namespace, whose deletion would otherwise never finish.
#[test]
fn an_app_with_its_own_api_service_and_namespace_is_deleted_while_the_api_is_down() {
    let cp = ControlPlane::start();
    let stage = Stage::on(&cp);
    let own = Bed::new().names.namespace;
    let mut api_service = api_service();
    api_service["spec"]["service"]["namespace"] = own.as_str().into();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "nobody", "namespace": own},
        "spec": {"ports": [{"port": 443}], "selector": {"app": "nobody"}}});
    stage.write(&[&namespace, &service, &api_service]);
    stage.deploy_as(cp.kubeconfig("admin"), &["--wait=false"]).run().code(0).stdout_contains("3 created");
    is_known_and_down(&cp);

    let config = "{apiVersion: gantry.dev/v1alpha1, kind: Config, timeouts: {delete: 1s}}";
    std::fs::write(stage.bed.folder.path().join("gantry.yaml"), config).expect("write a file");
    let delete = || {
        let arguments = ["delete", "-a", "shop", "-n", stage.namespace(), "--yes"];
        stage.bed.gantry(cp.kubeconfig("admin"), &arguments).run()
    };
    // Without a namespace controller, the test finishes the deletion.
    delete().code(5).stdout_contains(&format!("namespace/{own} is still being deleted (since"));
    let path = format!("/api/v1/namespaces/{own}");
    assert_eq!(cp.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.down.example.com").0, 404);
    assert_eq!(cp.get(&format!("{path}/services/nobody")).0, 404);
    let (_, mut live) = cp.get(&path);
    live["spec"]["finalizers"] = json!([]);
    assert_eq!(cp.put(&format!("{path}/finalize"), &live).0, 200);
    delete().code(0);
    assert_eq!((cp.get(&path).0, cp.get(&stage.bed.config_map_path("shop.gantry")).0), (404, 404));
}

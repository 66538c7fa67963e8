//! The Jobs of `packaging/kubernetes`. The first has exactly the permissions that its arguments need; the Pods of the
//! second divide the clusters among them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Bed, control_plane, eventually};

const JOB: &str = include_str!("../../packaging/kubernetes/check.yaml");
const ACCOUNT: &str = include_str!("../../packaging/kubernetes/account.yaml");

#[test]
fn the_rights_of_the_job_are_the_least_for_its_arguments() {
    let documents = |text| -> Vec<Value> {
        serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).expect("YAML")).collect()
    };
    let documents = [documents(ACCOUNT), documents(JOB)].concat();
    let of = |kind: &str| documents.iter().find(|object| object["kind"] == kind).expect(kind);
    let rules = &of("ClusterRole")["rules"];
    let container = &of("Job")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/manifests");
    let arguments: Vec<&str> = container["args"].as_array().expect("args").iter().filter_map(Value::as_str).collect();
    let arguments: Vec<&str> =
        arguments.into_iter().map(|one| if one == "/manifests" { "manifests.yaml" } else { one }).collect();

    let cp = control_plane();
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("field: {type: string, maxLength: 9}"));
    bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("field: {type: string, maxLength: 5}"));
    let check = |rules: &Value| {
        let user = cp.user(rules);
        bed.gantry(cp.kubeconfig(&user), &arguments).run()
    };
    check(rules).code(3).stdout_contains("error[NoMaxLengthTightened]");
    let verbs = rules[0]["verbs"].as_array().expect("verbs");
    assert_eq!(rules.as_array().map(Vec::len), Some(1));
    // gantry lists many CRDs and gets few: a folder of another size would need only one of the two verbs.
    let mut less = rules.clone();
    less[0]["verbs"] = json!(verbs.iter().filter(|verb| *verb != "get").collect::<Vec<_>>());
    check(&less).code(1).stderr_contains("may not get");
}

const FLEET: &str = include_str!("../../packaging/kubernetes/fleet.yaml");

/// The Job as it would run, in a namespace of the test: kwok runs its Pods, and they succeed.
#[test]
fn each_pod_of_the_indexed_job_has_a_shard_of_its_own() {
    let cp = crate::controllers::cluster();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let namespace = &bed.names.namespace;
    let mut documents: Vec<Value> =
        serde_yaml::Deserializer::from_str(FLEET).map(|document| Value::deserialize(document).expect("YAML")).collect();
    let rights = documents.iter().filter(|object| object["apiVersion"].as_str().unwrap_or("").starts_with("rbac"));
    assert_eq!(rights.count(), 0, "the Pods need no right where they run");
    for object in &mut documents {
        object["metadata"]["namespace"] = json!(namespace);
        // There is no such volume here, and nothing is mounted.
        let volumes = &mut object["spec"]["template"]["spec"]["volumes"];
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.iter_mut().filter(|volume| volume["name"] == "reports").for_each(|volume| {
                *volume = json!({"name": "reports", "emptyDir": {}});
            });
        }
        cp.apply_yaml(&object.to_string());
    }
    let job = format!("/apis/batch/v1/namespaces/{namespace}/jobs/gantry-fleet");
    eventually("all indexes of the Job succeed", || {
        let (_, job) = cp.get(&job);
        (job["status"]["completedIndexes"] == "0-3").then_some(())
    });
    let (_, pods) = cp.get(&format!("/api/v1/namespaces/{namespace}/pods"));
    let mut shards = Vec::new();
    for pod in pods["items"].as_array().expect("pods") {
        let spec = &pod["spec"];
        assert_eq!(spec["automountServiceAccountToken"], false);
        let container = &spec["containers"][0];
        let index = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"];
        let env = container["env"].as_array().expect("env");
        let variable = env.iter().find(|variable| variable["name"] == "JOB_COMPLETION_INDEX").expect("the index");
        let field = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
        let labels = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        let path = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str().unwrap_or_default();
        assert!([field, labels].contains(&path), "{variable}");
        // Expanded like by the kubelet.
        let expand = |argument: &Value| {
            argument.as_str().expect("text").replace("$(JOB_COMPLETION_INDEX)", index.as_str().expect("an index"))
        };
        shards.push(container["args"].as_array().expect("args").iter().map(expand).collect::<Vec<String>>());
    }
    assert_eq!(shards.len(), 4);

    // The commands that the Pods would run: each cluster is checked once, and the reports can be merged into one.
    bed.write("crd.yaml", &bed.crd("field: {type: string}"));
    let admin: Value =
        serde_yaml::from_str(&std::fs::read_to_string(cp.kubeconfig("admin")).expect("read")).expect("YAML");
    let mut clusters = admin.clone();
    let names: Vec<String> = (0..10).map(|index| format!("cluster-{index}")).collect();
    clusters["contexts"] =
        names.iter().map(|name| json!({"name": name, "context": admin["contexts"][0]["context"]})).collect();
    bed.write("kubeconfig", &clusters.to_string());
    bed.write("contexts", &names.join("\n"));
    std::fs::create_dir(bed.folder.path().join("reports")).expect("a folder");
    for arguments in shards {
        let local = |argument: String| {
            let argument = if argument == "/manifests" { "crd.yaml".to_owned() } else { argument };
            argument.replace("/clusters/", "").replace("/reports/", "reports/")
        };
        let arguments: Vec<String> = arguments.into_iter().map(local).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        bed.gantry(bed.folder.path().join("kubeconfig"), &arguments).run().code(0);
    }
    let merged = bed.gantry(bed.folder.path().join("kubeconfig"), &["report", "merge", "reports", "-o", "json"]).run();
    let report = merged.code(0).report();
    let mut checked: Vec<&str> =
        report["clusters"].as_array().expect("clusters").iter().filter_map(|one| one["name"].as_str()).collect();
    checked.sort_unstable();
    assert_eq!(checked, names);
}

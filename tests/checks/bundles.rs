//! Bundles of the format registry+v1 among the manifests: checked as if the deploy wrote them, but never written.

mod helm_record;
mod rendered;
mod rights;
mod written_by_helm;

use std::fs;

use crate::support::{Api, Bed, Output, control_plane, eventually};
use serde::Deserialize;
use serde_json::{Value, json};

/// Writes the bundle `folder` of the package `example` with a CRD of these properties, and additional objects.
fn bundle(bed: &Bed, folder: &str, crd: &str, more: &[(&str, String)]) {
    let path = bed.folder.path().join(folder);
    fs::create_dir_all(path.join("manifests")).expect("a folder");
    fs::create_dir_all(path.join("metadata")).expect("a folder");
    let annotation = "operators.operatorframework.io.bundle";
    bed.write(
        &format!("{folder}/metadata/annotations.yaml"),
        &format!("annotations:\n  {annotation}.mediatype.v1: registry+v1\n  {annotation}.package.v1: example\n"),
    );
    bed.write(&format!("{folder}/metadata/properties.yaml"), "properties: []\n");
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "example.v1.2.0"},
        "spec": {"version": "1.2.0", "installModes": [{"type": "AllNamespaces", "supported": true}]},
    });
    bed.write(&format!("{folder}/manifests/csv.yaml"), &csv.to_string());
    bed.write(&format!("{folder}/manifests/crd.yaml"), crd);
    for (file, text) in more {
        bed.write(&format!("{folder}/manifests/{file}"), text);
    }
}

fn service(bed: &Bed, port: &str) -> String {
    let ns = &bed.names.namespace;
    // OLM ignores all of these annotations, and so must gantry.
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: metrics\n  namespace: {ns}\n  annotations:\n    \
         kapp.k14s.io/noop: \"\"\n    kapp.k14s.io/change-group: not a name!\n    kapp.k14s.io/versioned: \"\"\n\
         spec:\n  sessionAffinity: None\n  ports:\n  - port: {port}\n"
    )
}

fn live_crd(bed: &Bed) -> Value {
    control_plane().get(&bed.crd_path()).1
}

fn service_path(bed: &Bed) -> String {
    format!("/api/v1/namespaces/{}/services/metrics", bed.names.namespace)
}

/// The actions of a report, with the objects.
fn actions(output: &Output) -> Vec<(String, String)> {
    let report = output.report();
    let changes = report["changes"].as_array().expect("changes");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    changes.iter().map(|change| (text(&change["action"]), text(&change["object"]["kind"]))).collect()
}

#[test]
fn an_upgrade_that_olm_would_make_is_blocked_at_the_lines_of_the_bundle() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&format!("{}---\n{}", bed.namespace(), bed.crd("first: {type: string}, second: {type: string}")));
    bundle(&bed, "example", &bed.crd("first: {type: string}"), &[("service.yaml", service(&bed, "80"))]);
    let before = live_crd(&bed);
    for command in [&["check"][..], &["deploy", "--yes"], &["deploy", "--dry-run"]] {
        let output = bed.gantry(cp.kubeconfig("admin"), &[command, &["-f", "example"]].concat()).run();
        output.code(3).stdout_contains("NoExistingFieldRemoved").stdout_contains("--> example/manifests/crd.yaml:15:");
        output.stdout_contains("would be installed by OLM 2 (1 CustomResourceDefinition, 1 Service)");
        output.stdout_contains("blocked");
    }
    assert_eq!(live_crd(&bed), before);
}

#[test]
fn a_bundle_alone_is_checked_and_never_written() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&format!("{}---\n{}", bed.namespace(), bed.crd("first: {type: string}")));
    let before = live_crd(&bed);
    bundle(
        &bed,
        "all/example",
        &bed.crd("first: {type: string}, new: {type: string}"),
        &[("service.yaml", service(&bed, "80"))],
    );
    let deploy = |more: &[&str]| {
        let checks =
            "--preflight=CRDUpgradeSafety,CustomResourceValidation,ConversionWebhook,APIAvailability,AdmissionDryRun";
        bed.gantry(cp.kubeconfig("admin"), &[&["deploy", "--yes", checks, "--wait", "-f", "all"], more].concat()).run()
    };
    let output = deploy(&["--detailed-exitcode"]);
    output.code(0).stdout_contains("would be installed by OLM customresourcedefinition/samples.");
    output.stdout_contains("Nothing to do: 2 objects of a bundle, which OLM installs. Nothing was written.");
    let output = deploy(&["-o", "json"]);
    let installed = |kind: &str| ("installedByOlm".to_owned(), kind.to_owned());
    assert_eq!(actions(output.code(0)), [installed("CustomResourceDefinition"), installed("Service")]);
    let summary = &output.report()["summary"];
    assert_eq!(
        (&summary["installedByOlm"], &summary["created"], &summary["updated"]),
        (&json!(2), &json!(0), &json!(0))
    );
    assert_eq!(live_crd(&bed), before);
    assert_eq!(cp.get(&service_path(&bed)).0, 404);

    // Only other objects of the deploy are written.
    bed.write("all/config.yaml", &bed.config_map("beside", "a"));
    let output = deploy(&["-o", "json"]);
    let results: Vec<String> =
        crate::support::results(&output.code(0).report()).into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, ["leftToOlm", "applied", "leftToOlm"]);
    assert_eq!(cp.get(&bed.config_map_path("beside")).0, 200);
    assert_eq!(live_crd(&bed), before);
    assert_eq!(cp.get(&service_path(&bed)).0, 404);
    deploy(&[]).code(0).stdout_contains("Nothing to do: 1 object unchanged, 2 objects of a bundle");
}

#[test]
fn owners_of_the_objects_of_a_bundle_do_not_block() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let of = |manager: &str, spec: Value| {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics",
            "namespace": bed.names.namespace, "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "example", "meta.helm.sh/release-namespace": "default"}},
            "spec": spec});
        let (status, answer) = cp.api().server_side_apply(&service_path(&bed), manager, &object);
        assert!(status < 300, "{answer}");
    };
    of("olm", json!({"sessionAffinity": "ClientIP", "ports": [{"port": 80}]}));
    bundle(&bed, "example", &bed.crd("first: {type: string}"), &[("service.yaml", service(&bed, "81"))]);
    let deploy =
        || bed.gantry(cp.kubeconfig("admin"), &["deploy", "--preflight=AdmissionDryRun", "-f", "example"]).run();
    // With a manager other than the one that OLM applied it with, port 80 would stay, and two ports need names.
    deploy().code(0).stdout_contains("AdmissionDryRun  passed").contains_nowhere("OwnedByOther");
    // If several managers have applied it, OLM takes over the fields that they set to other values.
    bed.write("example/manifests/service.yaml", &service(&bed, "80"));
    of("someone", json!({"sessionAffinity": "ClientIP", "ports": [{"port": 80}]}));
    deploy().code(0).stdout_contains("AdmissionDryRun  passed");
    // The server is asked, and its refusal blocks.
    bed.write("example/manifests/service.yaml", &service(&bed, "80").replace("None", "Sometimes"));
    deploy().code(3).stdout_contains("--> example/manifests/service.yaml:11:").stdout_contains("Sometimes");
    assert_eq!(cp.get(&service_path(&bed)).1["spec"]["sessionAffinity"], "ClientIP");
}

#[test]
fn an_app_has_no_objects_of_bundles() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    bundle(&bed, "example", &bed.crd("first: {type: string}"), &[("service.yaml", service(&bed, "80"))]);
    let ns = bed.names.namespace.clone();
    let deploy = |files: &[&str]| {
        let app = ["deploy", "--yes", "-a", "shop", "--app-namespace", &ns, "--prune=yes"];
        bed.gantry(cp.kubeconfig("admin"), &[&app, files].concat()).run()
    };
    bed.write("config.yaml", &bed.config_map("beside", "a"));
    deploy(&["-f", "config.yaml"]).code(0);
    // Without other manifests, all members would leave the app.
    deploy(&["-f", "example"]).code(2).stderr_contains("there are only bundles to deploy as the app shop");
    assert_eq!(cp.get(&bed.config_map_path("beside")).0, 200);
    bed.write("config.yaml", &bed.config_map("beside", "b"));
    deploy(&["-f", "config.yaml", "-f", "example"]).code(0).stdout_contains("1 updated, 2 left to OLM");
    assert_eq!(cp.get(&service_path(&bed)).0, 404);
    let apps = bed.gantry(cp.kubeconfig("admin"), &["inspect", "-a", "shop", "-n", &ns]).run();
    apps.code(0).stdout_contains("beside").contains_nowhere("metrics");
    deploy(&["-f", "config.yaml", "-f", "example"]).code(0).stdout_contains("Nothing to do");
}

#[test]
fn objects_of_a_kind_that_olm_has_not_installed_yet_cannot_be_written() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    bundle(&bed, "example", &bed.crd("first: {type: string}"), &[]);
    bed.write("sample.yaml", &bed.sample());
    let deploy = |checks: &str| {
        let arguments = ["deploy", "--yes", checks, "-f", "example", "-f", "sample.yaml"];
        bed.gantry(cp.kubeconfig("admin"), &arguments).run()
    };
    let output = deploy("--preflight=CustomResourceValidation");
    output
        .code(3)
        .stdout_contains("this kind is not served until OLM has installed the bundle example 1.2.0 (example)");
    output.stdout_contains("--> sample.yaml:1");
    assert_eq!(cp.get(&bed.crd_path()).0, 404);
    // They are still validated against the CRD of the bundle.
    bed.write("sample.yaml", &bed.sample().replace("first: x", "first: 1"));
    deploy("--preflight=CustomResourceValidation").code(3).stdout_contains("--> sample.yaml:4");
}

/// A folder that represents a cluster with ClusterExtensions, and a second CRD that is deployed together with the
/// bundle.
fn with_extension(spec: &str, version: &str) -> Bed {
    let bed = Bed::new();
    fs::create_dir(bed.folder.path().join("cluster")).expect("a folder");
    let crd = |name: &str, scope: &str, fields: &str| {
        bed.crd(fields).replace("samples", name).replace("Sample", &format!("{name}kind")).replace("Namespaced", scope)
    };
    let extensions = extensions_crd(version);
    let both = "first: {type: string}, second: {type: string}";
    let live = [extensions, crd("samples", "Namespaced", both), crd("others", "Namespaced", both)].join("---\n");
    bed.write("cluster/live.yaml", &live);
    let fewer = |name: &str, scope: &str| crd(name, scope, "first: {type: string}");
    bundle(&bed, "example", &fewer("samples", "Namespaced"), &[]);
    bed.write("others.yaml", &fewer("others", "Namespaced"));
    bed.write("moved.yaml", &fewer("samples", "Cluster"));
    bed.write(
        "extension.yaml",
        &format!(
            "apiVersion: olm.operatorframework.io/{version}\nkind: ClusterExtension\nmetadata: {{name: ex}}\nspec:\n{spec}"
        ),
    );
    bed
}

/// The CRD of ClusterExtensions, with the parts that gantry reads.
fn extensions_crd(version: &str) -> String {
    let extensions = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
                      metadata: {name: clusterextensions.olm.operatorframework.io}\nspec:\n  \
                      group: olm.operatorframework.io\n  scope: Cluster\n  names: {plural: clusterextensions, singular: \
                      clusterextension, kind: ClusterExtension, listKind: ClusterExtensionList}\n  versions:\n";
    // Each release of OLM serves only one of the two versions.
    format!(
        "{extensions}  - name: {version}\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: \
         object, x-kubernetes-preserve-unknown-fields: true}}}}\n"
    )
}

const V1: &str = "  namespace: ex-ns\n  serviceAccount: {name: installer}\n  source: {sourceType: Catalog, catalog: \
                  {packageName: example}}\n  install:\n    preflight:\n      crdUpgradeSafety:\n        enforcement: None\n";
const V1ALPHA1: &str = "  installNamespace: ex-ns\n  packageName: example\n  serviceAccount: {name: installer}\n  \
                        preflight:\n    crdUpgradeSafety:\n      disabled: true\n";

fn dir_deploy(bed: &Bed, arguments: &[&str]) -> Output {
    let first = ["deploy", "--yes", "--target", "dir:cluster"];
    bed.gantry(bed.folder.path().join("none"), &[&first, arguments].concat()).run()
}

#[test]
fn a_clusterextension_switches_crd_upgrade_safety_off_for_its_bundle_alone() {
    // Whether OLM writes the objects at all is another question.
    let deploy = |bed: &Bed, arguments: &[&str]| {
        dir_deploy(bed, &[&["--preflight=CRDUpgradeSafety,CustomResourceValidation"], arguments].concat())
    };
    for (spec, version, field, line) in
        [(V1, "v1", "enforcement: None", 11), (V1ALPHA1, "v1alpha1", "disabled: true", 10)]
    {
        let bed = with_extension(spec, version);
        let without = deploy(&bed, &["-f", "example"]);
        without.code(3).stdout_contains("NoExistingFieldRemoved");
        let output = deploy(&bed, &["-f", "example", "-f", "extension.yaml", "--dry-run"]);
        output.code(0).contains_nowhere("NoExistingFieldRemoved");
        output.stderr_contains(&format!(
            "CRDUpgradeSafety: 1 CRD of the bundle example 1.2.0 (example) is not compared: the ClusterExtension ex sets \
             crdUpgradeSafety {field} (extension.yaml:{line}). The API server still refuses a changed scope and the removal of \
             a stored version."
        ));
        // For a CRD that OLM does not write, the removal of the same field is still an error.
        let output = deploy(&bed, &["-f", "example", "-f", "extension.yaml", "-f", "others.yaml"]);
        output.code(3).stdout_contains("NoExistingFieldRemoved").stdout_contains("--> others.yaml:15:");
        output.stdout_contains("blocked: 1 error in others.");
        // The server refuses the change for OLM, too, whatever the preset.
        fs::copy(bed.folder.path().join("moved.yaml"), bed.folder.path().join("example/manifests/crd.yaml")).unwrap();
        bed.write(
            "olm.yaml",
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  \
                               config: {preset: olm-v1}\n",
        );
        for more in [&[][..], &["-c", "olm.yaml"]] {
            let output = deploy(&bed, &[&["-f", "example", "-f", "extension.yaml"], more].concat());
            output.code(3).stdout_contains("--> example/manifests/crd.yaml:6:").stdout_contains("cope");
        }
        fs::copy(bed.folder.path().join("others.yaml"), bed.folder.path().join("example/manifests/crd.yaml")).unwrap();

        // A live ClusterExtension applies as well, unless there is one among the manifests.
        bed.write("cluster/extension.yaml", &fs::read_to_string(bed.folder.path().join("extension.yaml")).unwrap());
        let output = deploy(&bed, &["-f", "example"]);
        output
            .code(0)
            .stderr_contains("the ClusterExtension ex sets crdUpgradeSafety")
            .contains_nowhere("extension.yaml:");
        bed.write(
            "extension.yaml",
            &fs::read_to_string(bed.folder.path().join("extension.yaml")).unwrap().replace("example", "x"),
        );
        deploy(&bed, &["-f", "example", "-f", "extension.yaml"]).code(3).stdout_contains("NoExistingFieldRemoved");
    }
}

#[test]
fn the_objects_of_a_bundle_have_the_namespace_of_the_clusterextension() {
    let bed = with_extension(V1, "v1");
    bed.write("example/manifests/crd.yaml", &fs::read_to_string(bed.folder.path().join("cluster/live.yaml")).unwrap());
    bed.write("example/manifests/service.yaml", &service(&bed, "80"));
    bed.write("example/manifests/none.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\n");
    let namespaces = |more: &[&str]| {
        let output = dir_deploy(
            &bed,
            &[&["-f", "example", "-o", "json", "-n", "mine", "--preflight=APIAvailability"], more].concat(),
        );
        let report = output.code(0).report();
        let changes = report["changes"].as_array().unwrap().iter();
        let of =
            |kind: &str| changes.clone().find(|c| c["object"]["kind"] == kind).unwrap()["object"]["namespace"].clone();
        assert_eq!(of("CustomResourceDefinition"), Value::Null);
        (of("Service"), of("ConfigMap"))
    };
    assert_eq!(namespaces(&[]), (json!(bed.names.namespace), json!("mine")));
    assert_eq!(namespaces(&["-f", "extension.yaml", "--dry-run"]), (json!("ex-ns"), json!("ex-ns")));
}

#[test]
fn a_bundle_that_olm_cannot_read_is_an_error_with_its_reason() {
    let bed = with_extension(V1, "v1");
    let crd = fs::read_to_string(bed.folder.path().join("example/manifests/crd.yaml")).unwrap();
    fs::create_dir(bed.folder.path().join("example/manifests/more")).unwrap();
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains(
        "subdirectories are not allowed within the \"manifests\" directory of the bundle image \
         filesystem: found \"manifests/more\"",
    );
    fs::remove_dir(bed.folder.path().join("example/manifests/more")).unwrap();
    bed.write(
        "example/manifests/csv.yaml",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n\
                                             metadata: {name: x}\nspec: {installModes: AllNamespaces}\n",
    );
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("--> example/manifests/csv.yaml:1");
    bed.write("example/metadata/dependencies.yaml", "dependencies: 1\n");
    bed.write("example/manifests/csv.yaml", "");
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("--> example/metadata/dependencies.yaml");
    bed.write("example/metadata/dependencies.yaml", "dependencies: []\n");
    bed.write("example/README.yaml", &crd);
    let output = dir_deploy(&bed, &["-f", "example", "--preflight=APIAvailability"]);
    output.code(0).stderr_contains("gantry reads only manifests/ of a bundle, not README.yaml next to it");
    let annotations = fs::read_to_string(bed.folder.path().join("example/metadata/annotations.yaml")).unwrap();
    bed.write("example/metadata/annotations.yaml", &format!("{annotations}  x: [\n"));
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("--> example/metadata/annotations.yaml:");
    // With another format it is an ordinary folder.
    bed.write("example/metadata/annotations.yaml", &annotations.replace("registry+v1", "helm+v1"));
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("the document has no apiVersion and no kind");
}

#[test]
fn the_crds_of_a_bundle_have_the_conversion_webhook_that_olm_writes() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = bed.names.namespace.clone();
    let two = "    storage: true\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v2\n    served: true\n    storage: false\n";
    let crd = bed.crd("first: {type: string}").replacen("    storage: true\n", two, 1);
    let webhook = format!(
        "  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig:\n        \
         service: {{namespace: {ns}, name: manager-service, path: /convert, port: 443}}\n"
    );
    let converted = format!("{crd}{webhook}");
    cp.apply_yaml(&format!("{}---\n{converted}", bed.namespace()));
    bundle(&bed, "example", &crd, &[]);
    let check = |more: &[&str]| {
        let checks = "--preflight=CRDUpgradeSafety,ConversionWebhook";
        bed.gantry(cp.kubeconfig("admin"), &[&["check", checks, "-f", "example"], more].concat()).run()
    };
    // Without the webhook the conversion would be lost.
    check(&[])
        .code(3)
        .stdout_contains("error[StorageVersionLosesFields]: objects of v2 lose first once they are stored at v1")
        .stdout_contains("warning[ConversionChanged]: the conversion webhook is removed");
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "example.v1.2.0"},
        "spec": {"version": "1.2.0", "installModes": [{"type": "AllNamespaces", "supported": true}], "webhookdefinitions": [{
            "type": "ConversionWebhook", "generateName": "c.kb.io", "deploymentName": "manager", "webhookPath": "/convert", "containerPort": 443,
            "admissionReviewVersions": ["v1"], "conversionCRDs": [format!("samples.{}", bed.names.group)]}],
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "manager"}]}}},
    });
    bed.write("example/manifests/csv.yaml", &csv.to_string());
    let output = check(&[]);
    output.code(0).contains_nowhere("ConversionChanged");
    // Its Service comes with the bundle: OLM creates it.
    output
        .stdout_contains("OLM creates")
        .stdout_contains("warning[ConversionServiceMissing]")
        .stdout_contains(&format!("{ns}/manager-service"));
    let diff = bed.gantry(cp.kubeconfig("admin"), &["diff", "-f", "example"]).run();
    diff.code(0).stdout_contains("cert-manager.io/inject-ca-from").contains_nowhere("conversionReviewVersions");
}

/// The CSV of [`bundle`] with additional fields in its `spec`.
fn csv_with(more: &Value) -> String {
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "example.v1.2.0"},
        "spec": {"version": "1.2.0", "installModes": [{"type": "AllNamespaces", "supported": true}]},
    });
    csv["spec"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    serde_yaml::to_string(&csv).expect("YAML")
}

#[test]
fn unsupported_bundles_have_the_message_of_olm_at_their_lines() {
    let bed = with_extension(V1, "v1");
    let olm =
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: ExtensionResolution\n  config: {olm: ";
    bed.write("4.16.yaml", &format!("{olm}\"4.16\"}}\n"));
    bed.write("current.yaml", &format!("{olm}current}}\n"));
    let owned = format!("samples.{}", bed.names.group);
    let webhook =
        json!([{"type": "ValidatingAdmissionWebhook", "generateName": "v.kb.io", "deploymentName": "manager"}]);
    let manager = json!({"spec": {"deployments": [{"name": "manager"}]}});
    for (release, more, expected) in [
        (
            "current",
            json!({"installModes": [{"type": "OwnNamespace", "supported": true}]}),
            Some(("bundle does not support AllNamespaces install mode", "installModes:")),
        ),
        (
            "4.16",
            json!({"webhookdefinitions": webhook, "install": manager}),
            Some(("webhookDefinitions are not supported", "webhookdefinitions:")),
        ),
        ("current", json!({"webhookdefinitions": webhook, "install": manager}), None),
        (
            "current",
            json!({"webhookdefinitions": webhook}),
            Some(("name 'v.kb.io' references non-existent deployment 'manager'", "deploymentName: manager")),
        ),
        (
            "current",
            json!({"apiservicedefinitions": {"owned": [{"name": "a", "version": "v1", "kind": "K"}]}}),
            Some(("apiServiceDefintions are not supported", "owned:")),
        ),
        (
            "current",
            json!({"customresourcedefinitions": {"owned": [{"name": owned, "version": "v1", "kind": "Other"}]}}),
            Some(("defines the kind \"sampleskind\"", "kind: Other")),
        ),
        (
            "current",
            json!({"customresourcedefinitions": {"owned": [{"name": owned, "version": "v2", "kind": "sampleskind"}]}}),
            Some(("has no version \"v2\" (it has v1)", "version: v2")),
        ),
    ] {
        let csv = csv_with(&more);
        bed.write("example/manifests/csv.yaml", &csv);
        let config = format!("{release}.yaml");
        let output =
            dir_deploy(&bed, &["-f", "example", "-c", &config, "--preflight=ExtensionResolution", "-o", "json"]);
        let report = output.report();
        let findings = report["checks"][0]["findings"].as_array().expect("findings");
        let Some((text, line)) = expected else {
            output.code(0);
            assert!(findings.is_empty(), "{findings:?}");
            continue;
        };
        output.code(3);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0]["message"].as_str().unwrap().contains(text), "{findings:?}");
        assert_eq!(findings[0]["source"]["file"], "example/manifests/csv.yaml");
        let at = csv.lines().position(|found| found.contains(line)).expect("the line") + 1;
        assert_eq!(findings[0]["source"]["line"], json!(at), "{csv}");
    }
}

#[test]
fn a_hostile_bundle_ends_the_run_with_the_name_of_its_file() {
    let bed = with_extension(V1, "v1");
    let pipe = |file: &str| {
        let path = bed.folder.path().join(file);
        let _ = fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("run mkfifo").success());
        path
    };
    let deep = format!("spec: {}1{}\n", "[".repeat(50_000), "]".repeat(50_000));
    bed.write("example/manifests/csv.yaml", &format!("kind: ClusterServiceVersion\n{deep}"));
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("--> example/manifests/csv.yaml:2");
    bed.write(
        "example/manifests/csv.yaml",
        &csv_with(&json!({"installModes": [], "skips": null, "webhookdefinitions": [{}]})),
    );
    dir_deploy(&bed, &["-f", "example", "--preflight=ExtensionResolution"])
        .code(3)
        .stdout_contains("example/manifests/csv.yaml");
    let extra = pipe("example/manifests/pipe");
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("--> example/manifests/pipe");
    fs::remove_file(extra).unwrap();
    bed.write(
        "example/metadata/annotations.yaml",
        &format!("operators.operatorframework.io.bundle.mediatype.v1: {deep}"),
    );
    dir_deploy(&bed, &["-f", "example"]).code(1).stderr_contains("--> example/metadata/annotations.yaml");
    pipe("example/metadata/annotations.yaml");
    // Then it is an ordinary folder, with a ClusterServiceVersion whose kind is not served.
    dir_deploy(&bed, &["-f", "example", "--preflight=CRDUpgradeSafety"]).code(1);
}

#[test]
fn an_object_that_a_bundle_has_twice_is_checked_once_if_both_are_equal() {
    let bed = Bed::new();
    let twice = |other: &str| {
        let service = service(&bed, "80");
        bundle(
            &bed,
            "example",
            &bed.crd("first: {type: string}"),
            &[("a.yaml", service.clone()), ("b.yaml", service.replace("80", other))],
        );
        bed.gantry(control_plane().kubeconfig("admin"), &["check", "-f", "example"]).run()
    };
    twice("80")
        .code(0)
        .stdout_contains("1 Service)")
        .stderr_contains("is defined more than once, with the same content");
    // OLM creates the first one, and fails at the second.
    twice("81").code(1).stderr_contains("is defined twice");
}

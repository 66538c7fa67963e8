//! Which release of OLM v1 is judged for, and which version of a bundle.

use serde_json::{Value, json};

use super::{Ran, Stage, catalog, chain, chained, extension};

fn config(olm: &str) -> String {
    format!(
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: ExtensionResolution\n  config: {{olm: {olm}}}\n"
    )
}

/// A Deployment of operator-controller with this image.
fn controller(namespace: &str, image: &str) -> String {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "operator-controller-controller-manager", "namespace": namespace},
        "spec": {"template": {"spec": {"containers": [
            {"name": "proxy", "image": "quay.io/x/proxy:v1.0.0"}, {"name": "manager", "image": image}]}}}})
    .to_string()
}

/// An extension whose ServiceAccount does not exist.
fn without_account() -> serde_json::Value {
    let mut extension = extension(json!({"packageName": "p"}));
    extension["spec"]["serviceAccount"]["name"] = "missing".into();
    extension
}

#[test]
fn a_missing_account_never_passes_silently() {
    let stage = || Stage::new().catalog("c", &chained(&["1.0.0"])).desired(without_account());
    let ran = stage().check().code(0);
    assert_eq!(ran.rules(), ["OlmReleaseUnknown"]);
    let said = &ran.found()[0].1;
    assert!(
        said.contains("serviceaccount missing in namespace operators") && said.contains("OLM v1.10 and earlier"),
        "{said}"
    );
    for (olm, rules) in [
        ("v1.11", &[][..]),
        ("current", &[]),
        ("v1.10", &["ServiceAccountMissing"]),
        ("v1.0", &["ServiceAccountMissing"]),
    ] {
        let stage = stage();
        stage.write("gantry.yaml", &config(olm));
        assert_eq!(stage.check().rules(), rules, "{olm}");
    }
}

#[test]
fn the_image_of_the_controller_tells_the_release() {
    for (namespace, image, rules) in [
        ("olmv1-system", "quay.io/operator-framework/operator-controller:v1.10.0", &["ServiceAccountMissing"][..]),
        (
            "openshift-operator-controller",
            "quay.io/operator-framework/operator-controller:v1.5.1",
            &["ServiceAccountMissing"],
        ),
        ("olmv1-system", "quay.io/operator-framework/operator-controller:v1.11.3", &[]),
        ("olmv1-system", "quay.io/operator-framework/operator-controller:devel", &["OlmReleaseUnknown"]),
        ("elsewhere", "quay.io/operator-framework/operator-controller:v1.11.3", &["OlmReleaseUnknown"]),
    ] {
        let stage = Stage::new().catalog("c", &chained(&["1.0.0"])).desired(without_account());
        stage.write("live/controller.yaml", &controller(namespace, image));
        assert_eq!(stage.check().rules(), rules, "{namespace} {image}");
        // The configuration wins.
        stage.write("gantry.yaml", &config("v1.11"));
        assert_eq!(stage.check().rules(), [""; 0], "{namespace} {image}");
    }
}

/// The ClusterServiceVersion of a bundle with a webhook.
const WITH_WEBHOOK: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: p.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: [{name: p, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}}]}}
  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: p.example.com, deploymentName: p, sideEffects: None, admissionReviewVersions: [v1], rules: []}
";

#[test]
fn a_webhook_is_supported_from_1_6() {
    let stage = || {
        Stage::new()
            .catalog("c", &chained(&["1.0.0"]))
            .desired(extension(json!({"packageName": "p"})))
            .bundle(WITH_WEBHOOK)
    };
    let ran = stage().check();
    assert_eq!(ran.rules(), ["OlmReleaseUnknown"], "{}", ran.stdout);
    let said = &ran.found()[0].1;
    assert!(
        said.ends_with("OLM v1.11 installs it, but OLM v1.5 and earlier refuse it: unsupported bundle: webhookDefinitions are not supported"),
        "{said}"
    );
    for (olm, rules) in [("v1.6", &[][..]), ("v1.5", &["UnsupportedBundle"]), ("\"4.16\"", &["UnsupportedBundle"])] {
        let stage = stage();
        stage.write("gantry.yaml", &config(olm));
        assert_eq!(stage.check().rules(), rules, "{olm}");
    }
}

#[test]
fn a_bundle_directory_must_be_the_version_that_is_installed() {
    let csv = |version: &str| {
        format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: p.v{version}}}\nspec: \
             {{version: {version}, installModes: [{{type: AllNamespaces, supported: true}}]}}\n"
        )
    };
    let ran = |version: &str, directory: &str| {
        let stage = Stage::new().catalog("c", &chained(&["1.0.0", "1.1.0"]));
        stage.desired(extension(json!({"packageName": "p", "version": version}))).bundle(&csv(directory)).check()
    };
    let other = ran("1.0.0", "1.1.0").code(3);
    assert_eq!(other.rules(), ["BundleNotResolved"]);
    assert_eq!(
        other.found()[0].1,
        "bundle p 1.1.0 (manifests/bundle) is not the version that ClusterExtension e resolves to, which is 1.0.0 (catalog c): \
         what OLM installs was not checked"
    );
    let same = ran("1.1.0", "1.1.0").code(0);
    assert_eq!(same.rules(), [""; 0]);
    assert_eq!(same.extension()["resolved"]["directory"], "manifests/bundle");
}

#[test]
fn a_bundle_that_olm_does_not_install_does_not_pass_a_default_check() {
    let csv = |version: &str| {
        format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: p.v{version}}}\nspec: \
             {{version: {version}, installModes: [{{type: AllNamespaces, supported: true}}]}}\n"
        )
    };
    let pinned = || extension(json!({"packageName": "p", "version": "1.1.0"}));
    let check = |stage: &Stage, more: &[&str]| stage.gantry(&[&["check"], more].concat());
    let is_refused = |ran: Ran, text: &str| {
        let ran = ran.code(3);
        assert!(ran.stdout.contains("BundleNotResolved") && ran.stdout.contains(text), "{}", ran.stdout);
    };
    // Without a catalog, the range of the ClusterExtension is known.
    let stage = Stage::new().desired(pinned()).bundle(&csv("1.0.0"));
    is_refused(check(&stage, &[]), "is not a version that ClusterExtension e installs, whose version is \"1.1.0\"");
    assert!(!check(&stage, &["--preflight=CRDUpgradeSafety"]).code(0).stdout.contains("BundleNotResolved"));
    stage.write(
        "gantry.yaml",
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- {name: ExtensionResolution, enabled: false}\n",
    );
    assert!(!check(&stage, &[]).code(0).stdout.contains("ExtensionResolution"));
    let same = check(&Stage::new().desired(pinned()).bundle(&csv("1.1.0")), &[]).code(0);
    assert!(
        same.stderr.contains("ExtensionResolution did not check everything: there is no catalog"),
        "{}",
        same.stderr
    );
    // A live ClusterExtension is resolved, too.
    let live = |catalog: Value, directory: &str| {
        let stage = Stage::new().catalog("c", &chained(&["1.0.0", "1.1.0"])).bundle(&csv(directory));
        stage.write("live/extension.yaml", &extension(catalog).to_string());
        stage
    };
    is_refused(check(&live(json!({"packageName": "p"}), "1.0.0"), &[]), "resolves to, which is 1.1.0 (catalog c)");
    is_refused(check(&live(json!({"packageName": "p", "version": "2"}), "1.0.0"), &[]), "resolves to no bundle");
    for catalog in [json!({"packageName": "p"}), json!({"packageName": "p", "version": "1.1.0"})] {
        check(&live(catalog, "1.1.0"), &[]).code(0);
    }
    // OLM installs no bundle without a ClusterServiceVersion.
    let ran = check(&Stage::new().bundle("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), &[]).code(3);
    assert!(ran.stdout.contains("UnsupportedBundle"), "{}", ran.stdout);
}

#[test]
fn an_object_of_another_owner_blocks_also_if_it_would_not_change() {
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: p.v1.0.0}\nspec: \
               {version: 1.0.0, installModes: [{type: AllNamespaces, supported: true}]}\n";
    let service =
        "apiVersion: v1\nkind: Service\nmetadata: {name: metrics, namespace: operators}\nspec: {ports: [{port: 80}]}\n";
    let stage = Stage::new().catalog("c", &chained(&["1.0.0"])).bundle(&format!("{csv}---\n{service}"));
    let stage = stage.desired(extension(json!({"packageName": "p"})));
    assert_eq!(stage.check().code(0).rules(), [""; 0]);
    stage.write("live/service.yaml", service);
    let ran = stage.check().code(3);
    assert_eq!(ran.rules(), ["OwnedByAnother"]);
    assert!(ran.found()[0].1.starts_with("Service 'metrics' already exists"), "{}", ran.stdout);
}

#[test]
fn configuration_that_the_release_does_not_have_is_a_warning() {
    let mut desired = extension(json!({"packageName": "p"}));
    desired["spec"]["config"] = json!({"configType": "Inline", "inline": {"watchNamespace": "operators"}});
    let check = |olm: &str| {
        let stage = Stage::new().catalog("c", &chained(&["1.0.0"])).desired(&desired);
        stage.gantry(&["check", "--preflight=ExtensionResolution", "-o", "json", "--olm", olm])
    };
    let ran = check("v1.4").code(0);
    assert_eq!(ran.rules(), ["ExtensionInvalid"]);
    assert!(ran.found()[0].1.contains("has spec.config, which OLM v1.4 does not have"), "{}", ran.stdout);
    assert!(!check("v1.5").rules().contains(&"ExtensionInvalid".to_owned()));
}

#[test]
fn the_plan_says_that_the_content_of_an_image_was_not_checked() {
    let blob = |version: &str| {
        json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{version}"), "image": format!("x/p:{version}"),
            "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": version}}]})
    };
    let text = catalog(json!({"a": chain(&["1.0.0", "1.1.0"])}), &[], &[blob("1.0.0"), blob("1.1.0")]);
    let plan = |installed: &str| {
        let stage = Stage::new().catalog("c", &text).installed(installed);
        let stage = stage.desired(extension(json!({"packageName": "p", "channels": ["a"]})));
        stage.gantry(&["check", "--preflight", "ExtensionResolution"]).stdout
    };
    let shown = plan("1.0.0");
    let expected = "extension e: p 1.0.0 -> 1.1.0 (a, c)\n           content of x/p:1.1.0 not checked: gantry catalog p 1.1.0 --bundle says how to get it for -f\n";
    assert!(shown.contains(expected), "{shown}");
    let stage = Stage::new().catalog("c", &text).desired(extension(json!({"packageName": "p", "channels": ["a"]})));
    let markdown = stage.gantry(&["check", "--preflight", "ExtensionResolution", "-o", "markdown"]).stdout;
    assert!(markdown.contains("\n- extension e: p 1.1.0 (a, c)\n  - content of "), "{markdown}");
    // Nothing new is installed.
    let shown = plan("1.1.0");
    assert!(shown.contains("stays at 1.1.0") && !shown.contains("not checked"), "{shown}");
}

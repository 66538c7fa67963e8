//! Errors that keep gantry from the cluster: one error of one line, the next step, and never a secret.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Bed, Gantry, Output, Proxy, When, closed_port, control_plane, kubeconfig_with};
use serde_json::{Value, json};

/// The output of a failed run must not contain these.
const SECRETS: [&str; 2] = ["geheim", "token-of-yesterday"];

/// A manifest to deploy, with kubeconfigs that fail.
struct Failing(Bed);

impl Failing {
    fn new() -> Self {
        let bed = Bed::new();
        bed.write("manifests.yaml", &bed.config_map("a", "x"));
        Failing(bed)
    }

    fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    /// The admin's kubeconfig with changes to its cluster and user.
    fn with(&self, change: impl Fn(&mut Value, &mut Value)) -> PathBuf {
        kubeconfig_with(self.folder(), change)
    }

    /// Runs with a kubeconfig: `message` is the only error.
    #[track_caller]
    fn says(&self, kubeconfig: PathBuf, message: &str) -> Output {
        let run = self.0.deploy(kubeconfig, &[]).run();
        explained(&run, 1, message);
        run
    }
}

/// Exactly one error, of one line, with a next step, and nothing confidential.
#[track_caller]
fn explained(run: &Output, code: i32, message: &str) {
    run.code(code).stderr_contains(&format!("error: {message}\n")).stderr_contains("= help: ");
    assert_eq!(run.stderr.matches("error: ").count(), 1, "{run}");
    assert!(run.stdout.is_empty(), "{run}");
    let cp = control_plane();
    for secret in [cp.token("admin"), cp.token("reader"), cp.token("nobody")].into_iter().chain(SECRETS) {
        run.contains_nowhere(secret);
    }
    for trace in ["panicked", "backtrace", "RUST_BACKTRACE", "Error {", "src/"] {
        run.contains_nowhere(trace);
    }
}

#[test]
fn a_missing_kubeconfig_or_context_is_reported() {
    let failing = Failing::new();
    let manifests = failing.folder().join("manifests.yaml");
    let nowhere = Gantry::new().args(["deploy", "-f"]).arg(&manifests);
    let looked_in = nowhere.home().join(".kube/config");
    explained(&nowhere.run(), 1, &format!("no kubeconfig found: searched in {}", looked_in.display()));

    let missing = failing.folder().join("missing");
    failing.says(missing.clone(), &format!("no kubeconfig found: searched in {}", missing.display()));
    let named = failing.0.deploy(control_plane().kubeconfig("admin"), &["--kubeconfig", "missing"]).run();
    explained(&named, 2, "kubeconfig missing does not exist");

    let context = failing.0.deploy(control_plane().kubeconfig("admin"), &["--context", "tset"]).run();
    explained(&context, 2, "the kubeconfig has no context \"tset\", did you mean \"test\"?");

    failing.0.write("broken", "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {token: [geheim]}\n");
    let broken = failing.0.deploy(failing.folder().join("broken"), &[]).run();
    insta::assert_snapshot!(broken.shown(), @r#"
    exit code 1
    ----- stderr
    error: not a valid kubeconfig
     --> FOLDER/broken:5
      = help: run `kubectl config view` with this file for details
    "#);
}

#[test]
fn an_unreachable_server_is_reported() {
    let failing = Failing::new();
    let kubeconfig = closed_port(failing.folder());
    let text: Value = serde_yaml::from_str(&fs::read_to_string(&kubeconfig).unwrap()).unwrap();
    let closed = text["clusters"][0]["cluster"]["server"].as_str().unwrap().trim_start_matches("http://").to_owned();
    failing.says(kubeconfig, &format!("{closed} refused the connection"));

    let server = |server: &str| failing.with(|cluster, _| cluster["server"] = json!(server));
    failing.says(
        server("https://no-such-host.invalid:1"),
        "cannot resolve the host name of no-such-host.invalid:1 \
        (DNS)",
    );

    let proxy = format!("http://me:geheim@{closed}");
    let behind = failing.with(|cluster, _| cluster["proxy-url"] = json!(proxy));
    failing.says(behind, &format!("the proxy {closed} refused the connection"));
    let variable = failing.0.deploy(server("https://cluster.invalid"), &[]).env("HTTPS_PROXY", &proxy).run();
    explained(&variable, 1, &format!("the proxy {closed} refused the connection"));
}

#[test]
fn a_server_with_an_untrusted_certificate_is_reported() {
    let failing = Failing::new();
    let url = control_plane().url();
    let with_ca = |file: &str| {
        let path = failing.folder().join(file);
        failing.with(|cluster, _| cluster["certificate-authority"] = json!(path))
    };
    let no_ca = failing.folder().join("no-ca.pem");
    failing.says(
        with_ca("no-ca.pem"),
        &format!("the certificate authority {} of cluster \"test\" cannot be read: no such file", no_ca.display()),
    );
    failing.0.write("garbage.pem", "geheim");
    failing.says(with_ca("garbage.pem"), "the certificate authority of cluster \"test\" contains no PEM certificate");
    failing.0.write("other.pem", OTHER_CA);
    failing.says(with_ca("other.pem"), &format!("the certificate of {url} is signed by an unknown authority"));

    let other_name = failing.with(|cluster, _| cluster["tls-server-name"] = json!("other.example.com"));
    let run = failing.0.deploy(other_name, &[]).run();
    let message = run.stderr.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    explained(&run, 1, &message);
    assert!(message.starts_with(&format!("the certificate of {url} is for a different name: ")), "{run}");
    assert!(message.contains("127.0.0.1") && !message.contains('('), "{run}");
}

#[test]
fn credentials_that_the_server_refuses_are_reported() {
    let failing = Failing::new();
    let url = control_plane().url();
    let user = |user: Value| failing.with(|_, old| *old = user.clone());
    let refused =
        format!("{url} does not accept the credentials of user \"admin\" (context \"test\"): expired or invalid");
    failing.says(user(json!({"token": "token-of-yesterday"})), &refused);
    failing.0.write("token", "token-of-yesterday\n");
    failing.says(user(json!({"tokenFile": failing.folder().join("token")})), &refused);
    // The server recognises neither of these as a user.
    let anonymous =
        format!("{url} treats user \"admin\" (context \"test\") as anonymous, which may not get path /api/v1");
    for user in [user(json!({})), user(json!({"username": "admin", "password": "geheim"}))] {
        failing
            .says(user, &anonymous)
            .stderr_contains("= help: does the kubeconfig contain credentials for this user")
            .contains_nowhere("Role");
    }

    failing.says(
        user(json!({"tokenFile": failing.folder().join("no-token")})),
        &format!(
            "the token file {} of user \"admin\" cannot be read: no such file",
            failing.folder().join("no-token").display()
        ),
    );
    failing.says(
        user(json!({"client-certificate-data": "***", "client-key-data": "***"})),
        "client-certificate-data of user \"admin\" in the kubeconfig is not base64",
    );
    failing.says(
        user(json!({"client-certificate-data": "Z2VoZWlt", "client-key-data": "Z2VoZWlt"})),
        &format!("the certificates for {url} cannot be used"),
    );
    failing.says(
        user(json!({"client-certificate-data": "Z2VoZWlt"})),
        "the kubeconfig has no client key for user \"admin\"",
    );
}

#[cfg(unix)]
#[test]
fn a_credential_plugin_without_credentials_is_reported() {
    let failing = Failing::new();
    let plugin = |command: &str, script: &str| {
        failing.with(|_, user| {
            *user = json!({"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": ["-c", script],
                "installHint": "Get it at\nexample.com", "interactiveMode": "IfAvailable",
                "env": [{"name": "PASSWORD", "value": "geheim"}],
            }});
        })
    };
    let missing = failing.says(
        plugin("no-such-plugin", ""),
        "the credential plugin \"no-such-plugin\" of user \"admin\" is not installed",
    );
    missing.stderr_contains("= help: Get it at example.com");

    // The plugin's message is shown, but not text that looks like a credential.
    let script = "printf 'no session,\\033[31m run `login` again: eyJh%s.eyJp.sig\\n' bGci >&2; exit 3";
    failing.says(
        plugin("sh", script),
        "the credential plugin \"sh\" of user \"admin\" failed (exit status: 3): no session,\\u{1b}[31m run `login` again: [hidden]",
    );
    failing.says(plugin("sh", "exit 1"), "the credential plugin \"sh\" of user \"admin\" failed (exit status: 1)");
    let no_credential = "the credential plugin \"sh\" of user \"admin\" did not print a valid ExecCredential";
    failing.says(plugin("sh", "echo geheim"), no_credential);
    failing.says(plugin("sh", "true"), no_credential);
}

#[cfg(unix)]
#[test]
fn a_credential_plugin_is_run_once_in_a_run() {
    let failing = Failing::new();
    control_plane().apply_yaml(&failing.0.namespace());
    let log = failing.folder().join("asked");
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": control_plane().token("admin"), "expirationTimestamp": "2999-01-01T00:00:00Z"},
    });
    let kubeconfig = failing.with(|_, user| {
        *user = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never",
            "args": ["-c", "echo asked >> \"$0\"; printf '%s' \"$1\"", log, credential.to_string()],
        }});
    });
    let run = failing.0.deploy(kubeconfig, &[]).run();
    run.code(0).contains_nowhere(control_plane().token("admin"));
    assert_eq!(fs::read_to_string(log).unwrap(), "asked\n");
    assert_eq!(control_plane().get(&failing.0.config_map_path("a")).1["data"]["key"], "x");
}

#[test]
fn missing_rights_are_named() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &[bed.config_map("a", "x"), bed.namespace()].join("---\n"));

    // All of them at once, so that the user has to request permissions only once.
    let cannot_read = bed.deploy(control_plane().kubeconfig("nobody"), &[]).run();
    insta::assert_snapshot!(cannot_read.shown(), @r#"
    exit code 1
    ----- stderr
    error: user "nobody" may not get configmaps in namespace "NAME"
      = help: ask for a Role in namespace "NAME" with the rule {apiGroups: [""], resources:
              ["configmaps"], verbs: ["get"]}, bound to that user

    error: user "nobody" may not get namespaces in namespace "NAME"
      = help: ask for a Role in namespace "NAME" with the rule {apiGroups: [""], resources:
              ["namespaces"], verbs: ["get"]}, bound to that user
    "#);

    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    let cannot_write = bed.deploy(control_plane().kubeconfig("reader"), &[]).run();
    insta::assert_snapshot!(cannot_write.shown(), @r#"
    exit code 1
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    1 (1 ConfigMap)
             create    configmap/a -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: configmap/a -n NAME: user "reader" may not patch configmaps in namespace "NAME"
     --> manifests.yaml:1
      = help: ask for a Role in namespace "NAME" with the rule {apiGroups: [""], resources:
              ["configmaps"], verbs: ["patch"]}, bound to that user

    Failed       configmap/a -n NAME

    Fix the errors above, then run the same command again to continue.
    Failed: of 1 object, 1 failed.
    "#);
    cannot_write.contains_nowhere(control_plane().token("reader"));
    // A check needs no permission to write.
    bed.gantry(control_plane().kubeconfig("reader"), &["check", "-f", "manifests.yaml"]).run().code(0);
}

#[test]
fn a_server_that_is_not_an_api_server_is_reported() {
    let failing = Failing::new();
    let proxy = Proxy::start(control_plane());
    let path = failing.0.config_map_path("a");
    let page = "<html><script>alert('geheim')</script>Log in</html>";
    proxy.answer_as(When::new("GET", &path).nth(1), 200, "text/html; charset=utf-8", page);
    proxy.answer_as(When::new("GET", &path).nth(2), 502, "text/html", page);
    proxy.answer_as(When::new("GET", &path).nth(3), 200, "application/json", "geheim");
    proxy.cut(When::new("GET", &path).nth(4));
    // An API server has a page for each of its APIs; what does not exist there has a status.
    proxy.answer_as(When::new("GET", &path).nth(5), 404, "text/plain", "404 page not found");
    let url = proxy.url();
    let no_server = |what: &str| format!("{url} does not answer like a Kubernetes API server ({what})");
    let kubeconfig = || proxy.kubeconfig("admin");
    failing.says(kubeconfig(), &no_server("200, text/html; charset=utf-8"));
    failing.says(kubeconfig(), &no_server("502, text/html"));
    failing.says(kubeconfig(), &no_server("200, not an object"));
    let address = url.trim_start_matches("http://");
    failing.says(kubeconfig(), &format!("{address} closed the connection before the response was complete"));
    failing.says(kubeconfig(), &no_server("404, text/plain"));

    let https = control_plane().url();
    let plain = https.replace("https", "http");
    failing.says(
        failing.with(|cluster, _| cluster["server"] = json!(plain)),
        &format!("{plain} does not answer like a Kubernetes API server (400, no content type)"),
    );
    let tls = url.replace("http", "https");
    failing.says(failing.with(|cluster, _| cluster["server"] = json!(tls)), &format!("{tls} does not speak TLS"));
}

#[test]
fn a_server_that_never_answers_is_reported() {
    let failing = Failing::new();
    let proxy = Proxy::start(control_plane());
    let _held = proxy.hold(When::new("GET", &failing.0.config_map_path("a")));
    let run = failing.0.deploy(proxy.kubeconfig("admin"), &[]).env("GANTRY_TIMEOUTS__REQUEST", "300ms").run();
    let address = proxy.url().trim_start_matches("http://");
    explained(&run, 1, &format!("no answer from {address} within 0.3 s"));
}

#[test]
fn a_refusal_of_the_server_is_one_line() {
    let bed = Bed::new();
    let crd =
        bed.crd("first: {type: string}").replace("plural: samples", "plural: others").replace("Namespaced", "Galactic");
    bed.write("manifests.yaml", &crd);
    // CRDUpgradeSafety would stop the deploy before the request is sent.
    let flags = ["--preflight", "CustomResourceValidation"];
    let run = bed.deploy(control_plane().kubeconfig("admin"), &flags).run();
    let refused = format!("error: customresourcedefinition/samples.{}: the API server refused it: ", bed.names.group);
    let line = run.code(1).stdout.lines().find(|line| line.starts_with(&refused)).unwrap_or_default();
    for words in ["spec.scope: Unsupported value: \"Galactic\"", "metadata.name: Invalid value: "] {
        assert!(line.contains(words), "{run}");
    }
    run.contains_nowhere("\\n").stdout_contains("--> manifests.yaml:1");
}

#[test]
fn without_waiting_only_crds_are_awaited_whose_objects_are_written() {
    for (wait, with_object, code) in
        [("", false, 1), ("crds", false, 1), ("true", false, 1), ("false", false, 0), ("false", true, 1)]
    {
        let bed = Bed::new();
        let crd = bed.crd("first: {type: string}");
        let object = if with_object { format!("---\n{}", bed.sample()) } else { String::new() };
        bed.write("manifests.yaml", &format!("{}---\n{crd}{object}", bed.namespace()));
        let proxy = Proxy::start(control_plane());
        // The first request reads the live object.
        let unseen: Value = serde_yaml::from_str(&crd).unwrap();
        proxy.answer(When::new("GET", &bed.crd_path()).starting_at_nth(2), 200, unseen);
        let gantry = bed.deploy(proxy.kubeconfig("admin"), &[]).env("GANTRY_TIMEOUTS__ESTABLISHED", "1s");
        let run = gantry.env("GANTRY_WAIT", wait).run();
        run.code(code);
        if code == 1 {
            run.stdout_contains("was applied, but is not served after 1s");
        }
    }
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    bed.write("own.yaml", "{apiVersion: gantry.dev/v1alpha1, kind: Config, wait: crd}");
    let deploy = |flag| bed.deploy(control_plane().kubeconfig("admin"), &[flag, "--dry-run"]).run();
    insta::assert_snapshot!(deploy("--config=own.yaml").shown(), @r#"
    exit code 2
    ----- stderr
    error: wait: "crd" is not true, crds or false
     --> own.yaml:1:55
    1 | {apiVersion: gantry.dev/v1alpha1, kind: Config, wait: crd}
      |                                                       ^^^
    "#);
    insta::assert_snapshot!(deploy("--wait=crd").shown(), @r#"
    exit code 2
    ----- stderr
    error: invalid value 'crd' for '--wait[=<true|crds|false>]'
      [possible values: true, crds, false]

      tip: a similar value exists: 'crds'

    For more information, try '--help'.
    "#);
    deploy("--wait=crds").code(0);
}

#[test]
fn a_crd_that_is_never_served_has_a_time_limit() {
    let bed = Bed::new();
    bed.write(
        "manifests.yaml",
        &format!("{}---\n{}---\n{}", bed.namespace(), bed.crd("first: {type: string}"), bed.sample()),
    );
    let proxy = Proxy::start(control_plane());
    let crd: Value = serde_yaml::from_str(&bed.crd("first: {type: string}")).unwrap();
    // The first request reads the live object.
    proxy.answer(When::new("GET", &bed.crd_path()).starting_at_nth(2), 200, crd);
    let gantry = bed.deploy(proxy.kubeconfig("admin"), &["-o", "human", "-o", "json=report.json"]);
    let run = gantry.env("GANTRY_TIMEOUTS__ESTABLISHED", "1s").run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 1
    ----- stdout
    Target   kube: test (http://127.0.0.1:PORT)
    Plan     create    3 (1 Namespace, 1 CustomResourceDefinition, 1 Sample)
             create    namespace/NAME
             create    customresourcedefinition/samples.NAME.example.com
             create    sample.NAME.example.com/one -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: customresourcedefinition/samples.NAME.example.com was applied, but is not served after 1s: the server has not processed it yet
     --> manifests.yaml:5
      = help: run the same command again to continue, or raise timeouts.established

    Applied      namespace/NAME
                 customresourcedefinition/samples.NAME.example.com
    Not reached  sample.NAME.example.com/one -n NAME

    Applied objects stay applied. Run the same command again to continue.
    Failed: of 3 objects, 2 applied, 1 not reached.
    "#);
    let report: Value = serde_json::from_slice(&fs::read(bed.folder.path().join("report.json")).unwrap()).unwrap();
    let results: Vec<String> = crate::support::results(&report).into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, ["applied", "applied", "notReached"], "{run}");

    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    assert_eq!(control_plane().get(&bed.sample_path()).1["first"], "x");
}

/// A self-signed certificate that nothing else uses.
const OTHER_CA: &str = "\
-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUI0/yK0HVqQKAWptZ7BGGH58SeoYwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyMTA0NTY1NVoYDzIxMjYxMDI4MDQ1
NjU1WjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATNlO4o4Fm1Zj+ACbHi7rpoBwayDywuhh/GHhZYnJwu09qR3GasZZdAMrhyL7au
XdKahzk2i+Nh2HCHCcnmtMNao1MwUTAdBgNVHQ4EFgQU9L0UHeGCwgF7T67NpIc8
yVH4SzEwHwYDVR0jBBgwFoAU9L0UHeGCwgF7T67NpIc8yVH4SzEwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAW7b7iZ0pOfN7LxD3e/2X1U6BAuG7Z
JUQYp7eZEVi30gIgJJYKdfXI/ySFn1LovFE2Z23FuFQLVg3sUf6DtWn/Oy4=
-----END CERTIFICATE-----
";

#[test]
fn an_output_that_cannot_be_written_is_named_once_before_any_request() {
    let gantry = Gantry::new();
    let args = ["check", "-f", "-", "--target", "dir:nowhere", "-o", "json=missing/report.json"];
    let run = gantry.args(args).stdin("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 2
    ----- stderr
    error: cannot write the report to FOLDER/work/missing/report.json: the folder FOLDER/work/missing does not exist
      = help: create the folder first, or name a file in another one
    "#);
    assert_eq!(run.stderr.matches("cannot write the report").count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains("nowhere"), "{}", run.stderr);
}

/// A CRD that stops serving the version at which its own objects are written: the objects cannot follow it.
#[test]
fn objects_at_a_version_that_their_crd_stops_serving_are_named_before_anything_is_written() {
    let bed = Bed::new();
    let admin = control_plane().kubeconfig("admin");
    let crd = |served: bool| {
        let crd = bed
            .crd("first: {type: string}")
            .replace("served: true\n    storage: true", &format!("served: {served}\n    storage: false"));
        format!(
            "{crd}  - name: v2
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{first: {{type: string}}}}}}}}
"
        )
    };
    let write = |served, first: &str| {
        let sample = bed.sample().replace("first: x", &format!("first: {first}"));
        bed.write("manifests.yaml", &[bed.namespace(), crd(served), sample].join("---\n"));
    };
    write(true, "x");
    bed.deploy(admin.clone(), &[]).run().code(0);
    // An object that does not change is no error of a check, but the next deploy would not find it.
    let unchanged = ["does not serve v1: sample", "write the object at a served version (v2), or keep serving v1"];
    let changed = ["does not serve v1, so the server will not accept this object", "change it to v2"];
    for (first, said) in [("x", unchanged), ("y", changed)] {
        write(false, first);
        for command in ["check", "deploy"] {
            let run = bed.gantry(admin.clone(), &[command, "-f", "manifests.yaml"]).run();
            run.code(3).stdout_contains(said[0]).stdout_contains(said[1]);
        }
    }
    let (_, live) = control_plane().get(&bed.crd_path());
    assert_eq!(live["spec"]["versions"][0]["served"], true);
    // On a server where v1 is not served any more.
    write(false, "x");
    let only_crd = [bed.namespace(), crd(false)].join("---\n");
    bed.write("crd.yaml", &only_crd);
    bed.gantry(admin.clone(), &["deploy", "-f", "crd.yaml"]).run().code(0);
    let run = bed.deploy(admin, &[]).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 3
    ----- stderr
    error: no kind "Sample" in "NAME.example.com/v1" is served by the target or defined by the manifests
     --> manifests.yaml:25
      = help: the CRD at manifests.yaml:5 serves v2: write the object at one of these
    "#);
}

#[test]
fn an_object_that_moves_to_a_new_version_with_a_new_field_is_named_before_its_crd_is_written() {
    let bed = Bed::new();
    let admin = control_plane().kubeconfig("admin");
    let old = bed.crd("first: {type: string}");
    let new = format!(
        "{}  - name: v2
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{first: {{type: string}}, second: {{type: string}}}}}}}}
",
        old.replace("storage: true", "storage: false")
    );
    let deploy = |crd: &str, sample: &str| {
        bed.write("manifests.yaml", &[&bed.namespace(), crd, sample].map(|text| format!("{text}\n")).join("---\n"));
        bed.deploy(admin.clone(), &[]).run()
    };
    deploy(&old, &bed.sample()).code(0);
    let moved = bed.sample().replace("/v1", "/v2");
    let with_field = format!("{}second: new\n", moved.trim_end().to_owned() + "\n");
    let run = deploy(&new, &with_field);
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    2 (1 CustomResourceDefinition, 1 Sample)
             unchanged 1 (1 Namespace)
             update    customresourcedefinition/samples.NAME.example.com
             update    sample.NAME.example.com/one -n NAME

    error[ManifestObjectRefused]: the server refuses the server-side apply, because the object does not fit v1, at which gantry has an entry in managedFields: .second: field not declared in schema
      --> manifests.yaml:27:1
    27 | apiVersion: NAME.example.com/v2
       | ^^^^^^^^^^ managedFields of the live object name v1
       = in      sample.NAME.example.com/one -n NAME, v2, metadata.managedFields
       = breaks  writers: the server refuses or drops what they send today
       = next    deploy the CRD first, then move the entries to v2 and deploy the rest:
                 kubectl get samples.v2.NAME.example.com one --namespace NAME -o json --show-managed-fields | jq '(.metadata.managedFields | select(.)) |= (map(if .apiVersion == "NAME.example.com/v1" then .apiVersion = "NAME.example.com/v2" else . end) | group_by([.manager, .operation, .apiVersion, .subresource]) | map(reduce .[] as $entry ({}; . * $entry)))' | kubectl replace -f -

    error[ManifestValueLost]: second is lost with the next write of this object at v1, even of a label: v1 does not have it, and the storage version v2 has it
      --> manifests.yaml:31:1
    31 | second: new
       | ^^^^^^ v1, which is served too, does not have it
       = in      sample.NAME.example.com/one -n NAME, v2, second
       = breaks  writers
                 data: the server drops values from objects when they are next written
       = next    add second to v1 as well, convert with a webhook, or stop serving v1

    warning[ServedVersionLosesFields]: every write at v1, even of a label, drops second from the object: v1 lacks it, and the storage version v2 has it
      --> manifests.yaml:18:7
    18 |       openAPIV3Schema:
       |       ^^^^^^^^^^^^^^^ lacks second, unlike v2, at which every object is stored
       = in      samples.NAME.example.com, v1
       = breaks  writers, data
       = next    add second to v1 as well, convert with a webhook, or stop serving v1 once no client
                 uses it

    For details of a rule: gantry rules ManifestObjectRefused.

    CRDUpgradeSafety          warned: 1 warning in samples.NAME.example.com
                              (ServedVersionLosesFields); 1 info (-v shows all)
    CustomResourceValidation  blocked: 2 errors in sample.NAME.example.com/one -n NAME
                              (1 ManifestObjectRefused, 1 ManifestValueLost); 1 object of 1 CRD read

    Blocked: 2 errors. Nothing was written.
    "#);
    let versions = || control_plane().get(&bed.crd_path()).1["spec"]["versions"].as_array().expect("a list").len();
    assert_eq!(versions(), 1, "nothing is written");

    // The object without the field can be moved: then it has no entry at the old version any more.
    deploy(&new, &moved).code(0);
    assert_eq!(versions(), 2);
    deploy(&new, &with_field).code(0);
}

#[test]
fn a_ytt_template_is_recognised() {
    let run = |text: &str| {
        let args = ["check", "-f", "-", "--target", "dir:nowhere"];
        Gantry::new().args(args).stdin(text).run()
    };
    let map = "apiVersion: v1\nkind: ConfigMap\n";
    let texts = [
        format!("#@ load(\"@ytt:data\", \"data\")\n---\n{map}metadata:\n  name: #@ data.values.name\n"),
        format!("#@ for name in names:\n---\n{map}metadata: {{}}\n#@ end\n---\n{map}metadata:\n  name: #@ name\n"),
    ];
    for text in texts {
        let output = run(&text);
        output.code(1).stderr_contains("this is a ytt template, not a manifest (the ConfigMap has no metadata.name)");
        output.stderr_contains("ytt -f DIR | gantry check -f -").stderr_contains("<stdin>:");
    }
    insta::assert_snapshot!(run(&format!("{map}metadata: {{}}\n")).shown(), @r#"
    exit code 1
    ----- stderr
    error: the ConfigMap has no metadata.name
     --> <stdin>:3:1
    3 | metadata: {}
      | ^^^^^^^^
    "#);
    run(&format!("#@ comment\n{map}metadata: {{name: a}}\n")).contains_nowhere("ytt");
}

/// As with kubectl: each flag replaces one part of the context.
#[test]
fn flags_replace_the_cluster_the_user_the_server_and_the_token_of_the_context() {
    let (cp, failing) = (control_plane(), Failing::new());
    let admin = cp.kubeconfig("admin");
    let url = cp.url();
    failing.0.write("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: flags-of-kubectl}\n");
    let with = |kubeconfig: &PathBuf, flags: &[&str]| {
        failing.0.gantry(kubeconfig.clone(), &[&["check", "-f", "namespace.yaml"], flags].concat()).run()
    };
    let closed = failing.with(|cluster, _| cluster["server"] = json!("https://127.0.0.1:1"));
    with(&closed, &[]).code(1).stderr_contains("127.0.0.1:1 refused the connection");
    with(&closed, &["--server", &url]).code(0).stdout_contains(&url);
    let expired = failing.with(|_, user| user["token"] = json!("geheim"));
    with(&expired, &[]).code(1).contains_nowhere("geheim");
    let token = cp.token("admin");
    with(&expired, &["--token", token]).code(0).contains_nowhere(token);
    let from_environment = failing.0.gantry(expired, &["check", "-f", "namespace.yaml"]).env("GANTRY_TOKEN", token);
    from_environment.run().code(0).contains_nowhere(token);

    let mut several: Value = serde_yaml::from_str(&fs::read_to_string(&admin).unwrap()).unwrap();
    several["clusters"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "down", "cluster": {"server": "https://127.0.0.1:1"}}));
    several["users"].as_array_mut().unwrap().push(json!({"name": "nobody", "user": {"token": cp.token("nobody")}}));
    let path = failing.folder().join("several");
    fs::write(&path, several.to_string()).unwrap();
    with(&path, &["--cluster", "down"]).code(1).stderr_contains("127.0.0.1:1 refused the connection");
    with(&path, &["--user", "nobody"]).code(1).stderr_contains("user \"nobody\" may not");
    explained(&with(&path, &["--cluster", "dwn"]), 2, "the kubeconfig has no cluster \"dwn\", did you mean \"down\"?");
    explained(&with(&path, &["--user", "x"]), 2, "the kubeconfig has no user \"x\"");
    let contexts = with(&path, &["--context", "*", "--server", &url]);
    explained(&contexts, 2, "--cluster, --user, --server and --token are about one cluster, but several are named");

    // Without a kubeconfig, they are enough.
    let certificate = Gantry::new().cwd(failing.folder()).args(["check", "-f", "namespace.yaml", "--server"]);
    let run = certificate.args([&url, "--token", token]).run();
    explained(&run, 1, &format!("the certificate of {url} is signed by an unknown authority"));
    let user = Gantry::new().cwd(failing.folder()).args(["check", "-f", "namespace.yaml", "--user", "x"]).run();
    explained(&user, 2, "no kubeconfig found for user \"x\"");

    let run = with(&admin, &["--server", "10.0.0.1:6443"]);
    explained(&run, 2, "--server is not a URL such as https://HOST:PORT");
    let run = with(&admin, &["--server", "http://cluster.invalid", "--token", token]);
    explained(&run, 2, "--token would be sent to --server without encryption");

    // The project may not send them to another server.
    let at = |project: &str| {
        failing.0.write("gantry.yaml", &format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{project}\n"));
        failing.0.gantry(admin.clone(), &["check", "-f", "namespace.yaml"]).env("GANTRY_TOKEN", token).run()
    };
    at("context: test").code(2).stderr_contains("the project file chooses a context, and --token is also given");
    at("server: https://10.0.0.1").code(2).stderr_contains("may not choose the server or the credentials");
    at("token: geheim").code(2).stderr_contains("cannot set \"token\"").contains_nowhere("geheim");
    fs::remove_file(failing.folder().join("gantry.yaml")).unwrap();
    failing.0.write("own.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntoken: 'geheim '\n");
    with(&admin, &["-c", "own.yaml"]).code(2).stderr_contains("token: a token has only").contains_nowhere("geheim");
    let page = with(&admin, &["--token", token, "-o", "html"]);
    page.code(0).stdout_contains("[hidden]").contains_nowhere(token);

    let shown = with(&admin, &["--token", "a b"]);
    shown.code(2).stderr_contains("a token has only letters").contains_nowhere("a b");
    let shown = failing.0.gantry(admin, &["config", "show"]).env("GANTRY_TOKEN", token).run();
    shown.code(0).stdout_contains("token: \"(hidden)\"").contains_nowhere(token);
}

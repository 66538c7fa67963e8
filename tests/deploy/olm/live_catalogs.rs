//! `gantry catalog` on the ClusterCatalogs of a cluster; their content comes through the API server's service proxy.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::support::olm::{NAMESPACE, Olm, SERVICE, package, path_of, served_at};
use crate::support::rights::{grant, printed_with, replace};
use crate::support::{Bed, Gantry, Proxy, closed_port, control_plane};

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("packed");
    encoder.finish().expect("packed")
}

#[test]
fn the_catalogs_of_the_cluster_are_read() {
    let olm = Olm::alone();
    olm.serve("plain", &json!({}), package("alpha", "1.2.3"));
    olm.serve("packed", &json!({}), packed(&package("beta", "2.0.0")));
    olm.catalog("off", &json!({"availabilityMode": "Unavailable"}), &json!({}));
    let output = olm.gantry("admin", &["catalog"]).run();
    output.code(0).stderr_contains("left out, as their availabilityMode is Unavailable: off");
    let expected = "\
PACKAGE  CATALOG  DEFAULT CHANNEL  HEAD   CHANNELS  BUNDLES
alpha    plain    stable           1.2.3  1         1
beta     packed   stable           2.0.0  1         1
";
    assert_eq!(output.stdout, expected);
}

/// The permissions that a user needs to read the catalogs of a cluster.
fn rights(services: &Value) -> Value {
    let mut proxy = json!({"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]});
    if !services.is_null() {
        proxy["resourceNames"] = services.clone();
    }
    json!([{"apiGroups": ["olm.operatorframework.io"], "resources": ["clustercatalogs"], "verbs": ["list"]}, proxy])
}

#[test]
fn a_catalog_that_is_not_served_fails_the_run_and_hides_no_other() {
    let olm = Olm::alone();
    olm.serve("good", &json!({}), package("alpha", "1.2.3"));
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-08-21T10:00:00Z"})
    };
    olm.catalog(
        "bad",
        &json!({}),
        &json!({"conditions": [
            condition("Progressing", "True", "Retrying", "source catalog content: no such image"),
            condition("Serving", "False", "Unavailable", ""),
        ]}),
    );
    olm.catalog("new", &json!({}), &json!({}));
    let output = olm.gantry("admin", &["catalog"]).run();
    output
        .code(1)
        .stdout_contains("alpha")
        .stderr_contains(
            "error: the catalog bad is not being served since 2026-08-21T10:00:00Z: \
             Retrying: source catalog content: no such image\n  = help: kubectl describe clustercatalog bad shows more",
        )
        .stderr_contains("error: the catalog new is not being served: it has no Serving condition yet");
    // One of those could contain the package.
    olm.gantry("admin", &["catalog", "beta"])
        .run()
        .code(1)
        .stderr_contains("the catalog bad is not being served")
        .stderr_contains("no package \"beta\" in catalog good");
}

#[test]
fn the_named_right_is_enough_to_read_the_catalog() {
    let olm = Olm::alone();
    olm.serve("good", &json!({}), package("alpha", "1.2.3"));
    let name = format!("https:{SERVICE}:443");
    let lists = olm.control_plane().user(&json!([rights(&Value::Null)[0]]));
    let output = olm.gantry(&lists, &["catalog"]).run();
    // Long lines are wrapped.
    let said = output.code(1).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "error: the catalog good cannot be read: user {lists:?} may not get services/proxy in namespace \"{NAMESPACE}\" \
         = help: ask for a Role in namespace \"{NAMESPACE}\" with the rule {{apiGroups: [\"\"], \
         resources: [\"services/proxy\"], resourceNames: [\"{name}\"], verbs: [\"get\"]}}, bound to that user"
    );
    assert!(said.contains(&expected), "{output}");
    let reads = olm.control_plane().user(&rights(&json!([name])));
    olm.gantry(&reads, &["catalog"]).run().code(0).stdout_contains("alpha");
    // As another user.
    olm.gantry("admin", &["catalog", "--as", &lists]).run().code(1).stderr_contains("may not get services/proxy");
    olm.gantry("nobody", &["catalog"])
        .run()
        .code(1)
        .stderr_contains("user \"nobody\" may not list clustercatalogs.olm.operatorframework.io at the cluster scope");
}

#[test]
fn the_reason_why_a_catalog_cannot_be_read_is_named() {
    let olm = Olm::alone();
    olm.service("without-endpoints", None);
    olm.service("without-pods", Some("192.0.2.99"));
    let at = |base: &str| json!({"conditions": [{"type": "Serving", "status": "True"}], "urls": {"base": base}});
    for (name, status) in [
        ("a-gone", served_at("no-such-service", "a")),
        ("b-empty", served_at("without-endpoints", "b")),
        ("c-lost", served_at("without-pods", "c")),
        ("d-unknown", served_at(SERVICE, "d")),
        ("e-port", at(&format!("https://{SERVICE}.{NAMESPACE}.svc:444/e"))),
        ("f-moved", served_at(SERVICE, "f")),
        ("g-login", served_at(SERVICE, "g")),
    ] {
        olm.catalog(name, &json!({}), &status);
    }
    let moved =
        "HTTP/1.1 302 Found\r\nLocation: https://192.0.2.1/other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    olm.answer(&path_of("f"), moved);
    let login =
        "HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<no>";
    olm.answer(&path_of("g"), login);
    let output = olm.gantry("admin", &["catalog"]).run();
    output.code(1);
    assert_eq!(output.stdout, "");
    let in_namespace = format!("in namespace {NAMESPACE}");
    for (name, why) in [
        ("a-gone", format!("there is no Service no-such-service {in_namespace}")),
        ("b-empty", format!("the Service without-endpoints {in_namespace} has no endpoints for port 443")),
        ("c-lost", format!("the API server cannot reach the Service without-pods {in_namespace}: ")),
        ("d-unknown", format!("the Service {SERVICE} {in_namespace} responded with 404 Not Found")),
        ("e-port", format!("the Service {SERVICE} {in_namespace} is not available: no service port 444 found")),
        ("f-moved", format!("the Service {SERVICE} {in_namespace} responded with a redirect (302 Found)")),
        ("g-login", format!("the Service {SERVICE} {in_namespace} responded with 403 Forbidden")),
    ] {
        output.stderr_contains(&format!("error: the catalog {name} cannot be read: {why}"));
    }
}

#[test]
fn a_catalog_without_a_service_in_the_cluster_has_to_be_named_by_flag() {
    let olm = Olm::alone();
    let base = "https://catalogs.example.com/a";
    let status = json!({"conditions": [{"type": "Serving", "status": "True"}], "urls": {"base": base}});
    olm.catalog("a", &json!({}), &status);
    olm.gantry("admin", &["catalog"]).run().code(1).stderr_contains(
        "error: the catalog a is served at https://catalogs.example.com/a/api/v1/all, which is not a Service of the cluster\n  \
         = help: name its content: --catalog a=PATH",
    );
}

#[test]
fn content_that_breaks_off_is_an_error() {
    let olm = Olm::alone();
    let whole = package("alpha", "1.2.3") + &package("beta", "1.0.0");
    // Cut at the end of a blob: the content so far is a valid catalog.
    let part = package("alpha", "1.2.3");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\nConnection: close\r\n";
    let packed = packed(&whole);
    let answers: [(&str, Vec<u8>); 3] = [
        ("a", format!("{head}Content-Length: {}\r\n\r\n{part}", whole.len()).into_bytes()),
        ("b", format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{part}\r\n", part.len()).into_bytes()),
        ("c", [format!("{head}Content-Length: {}\r\n\r\n", packed.len()).as_bytes(), &packed[..40]].concat()),
    ];
    for (name, answer) in answers {
        olm.serve(name, &json!({}), "");
        olm.answer(&path_of(name), answer);
    }
    let output = olm.gantry("admin", &["catalog"]).run();
    output.code(1);
    assert_eq!(output.stdout, "");
    for name in ["a", "b", "c"] {
        output.stderr_contains(&format!("error: the catalog {name} cannot be read: "));
    }
    olm.gantry("admin", &["catalog", "alpha", "-o", "json"]).run().code(1);
}

#[test]
fn content_that_stalls_ends_at_the_time_limit() {
    let olm = Olm::alone();
    olm.serve("a", &json!({}), "");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n";
    olm.answer_and_wait(&path_of("a"), format!("{head}{}", package("alpha", "1.2.3")));
    let folder = tempfile::TempDir::new().expect("a folder");
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntimeouts: {request: 1s}\n";
    std::fs::write(folder.path().join("config.yaml"), config).expect("a file");
    let output = olm.gantry("admin", &["catalog", "-c", "config.yaml"]).cwd(folder.path()).run();
    output.code(1).stderr_contains("the catalog a cannot be read: ").stderr_contains("sent nothing for 1 s");
    assert_eq!(output.stdout, "");
}

#[test]
fn compressed_content_of_the_service_is_decompressed() {
    let olm = Olm::alone();
    let content = packed(&package("alpha", "1.2.3"));
    olm.serve("a", &json!({}), "");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    olm.answer(&path_of("a"), [head.as_bytes(), &content].concat());
    olm.gantry("admin", &["catalog", "alpha"]).run().code(0).stdout_contains("alpha (catalog a)");
}

#[test]
fn a_catalog_of_the_configuration_replaces_the_live_one_with_its_name() {
    let olm = Olm::alone();
    olm.serve("a", &json!({}), package("live", "1.0.0"));
    olm.serve("b", &json!({}), package("other", "1.0.0"));
    let folder = tempfile::TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("a.json"), package("local", "2.0.0")).expect("a catalog");
    let run = |more: &[&str]| {
        olm.gantry("admin", &[&["catalog", "--catalog", "a=a.json"], more].concat()).cwd(folder.path()).run()
    };
    // The cluster is only used if the user names it.
    let output = run(&[]);
    output.code(0).stdout_contains("local").contains_nowhere("other");
    let output = run(&["--context", "test"]);
    output.code(0).stdout_contains("local").stdout_contains("other").contains_nowhere("live");
}

#[test]
fn a_cluster_without_catalogs_is_reported() {
    let olm = Olm::alone();
    let help = "error: there is no catalog to read\n  = help: name one with --catalog NAME=PATH";
    let run = || olm.gantry("admin", &["catalog"]).run();
    run().code(1).stderr_contains(help).stderr_contains("there is no ClusterCatalog at kube: test");
    olm.catalog("off", &json!({"availabilityMode": "Unavailable"}), &json!({}));
    run().code(1).stderr_contains(help).stderr_contains("; Unavailable: off");
    let without = Gantry::new().kubeconfig(control_plane().kubeconfig("admin")).arg("catalog").run();
    without.code(1).stderr_contains(help).stderr_contains("no ClusterCatalogs are served at kube: test");
    let closed = Gantry::new().kubeconfig(closed_port(olm.control_plane().folder())).arg("catalog").run();
    closed.code(1).stderr_contains(help).stderr_contains("refused the connection");
}

/// Permissions for the requests of the check are verified in advance: for the Service that the catalog names, wherever
/// it is.
#[test]
fn a_missing_right_to_a_catalog_is_found_before_it_is_read() {
    let (olm, bed) = (Olm::alone(), Bed::new());
    let cp = olm.control_plane();
    olm.serve("a", &json!({}), package("alpha", "1.2.3"));
    olm.serve("off", &json!({"availabilityMode": "Unavailable"}), "");
    cp.apply_yaml(&bed.namespace());
    let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": bed.names.namespace},
        "spec": {"namespace": bed.names.namespace, "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "alpha"}}}});
    bed.write("manifests.yaml", &extension.to_string());
    let both = ["--preflight", "ExtensionResolution,PermissionValidation"];
    let user = cp.user(&json!([]));
    let roles = grant(cp, &user, &printed_with(&bed, cp, &user, &both));
    let check = |flags: &[&str]| {
        bed.gantry(cp.kubeconfig(&user), &[&["check", "-f", "manifests.yaml"], &both[..], flags].concat()).run()
    };
    check(&[]).code(0).stdout_contains("1.2.3");

    let right = rights(&json!([format!("https:{SERVICE}:443")]))[1].clone();
    let role = roles.iter().find(|role| role["metadata"]["namespace"] == NAMESPACE).expect("a role for the Service");
    assert_eq!(role["rules"], json!([right]));
    let mut without = role.clone();
    without["rules"] = json!([]);
    replace(cp, &user, &without, &right);
    let said = format!("not permitted to \"get\" /v1, Resource=services/proxy in namespace \"{NAMESPACE}\"");
    check(&[]).code(3).stdout_contains(&said).stdout_contains("could not check: the catalog a cannot be read");
    // A catalog from a flag needs no permission.
    bed.write("a.json", &package("alpha", "1.2.3"));
    check(&["--catalog", "a=a.json"]).code(0);

    // Without permission to list catalogs, their Service is unknown.
    let printed = bed.gantry(
        cp.kubeconfig("nobody"),
        &[&["permissions", "-f", "manifests.yaml", "--as", "somebody"], &both[..]].concat(),
    );
    printed.run().code(0).stderr_contains("notice: rights to what checks read may be missing");
}

#[test]
fn a_selected_catalog_that_is_not_served_leaves_an_extension_unchecked() {
    let (olm, bed) = (Olm::alone(), Bed::new());
    olm.serve("a", &json!({}), package("alpha", "1.2.3"));
    let conditions = json!([{"type": "Serving", "status": "False", "reason": "Unavailable",
        "lastTransitionTime": "2026-08-21T10:00:00Z"}]);
    olm.catalog("b", &json!({}), &json!({"conditions": conditions}));
    olm.control_plane().apply_yaml(&bed.namespace());
    let check = |selector: Value| {
        let catalog = json!({"packageName": "alpha", "selector": selector});
        let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": bed.names.namespace},
            "spec": {"namespace": bed.names.namespace, "serviceAccount": {"name": "installer"},
                "source": {"sourceType": "Catalog", "catalog": catalog}}});
        bed.write("manifests.yaml", &extension.to_string());
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "ExtensionResolution"];
        bed.gantry(olm.kubeconfig("admin"), &arguments).run()
    };
    let output = check(json!({}));
    let said = output.code(1).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "CatalogNotServed: catalog \"b\" is not being served since 2026-08-21T10:00:00Z: Unavailable";
    assert!(said.contains(expected), "{output}");
    let output = check(json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "a"}}));
    output.code(0).stdout_contains("1.2.3");
}

/// Far more than a run needs, and far less than the content below.
#[cfg(target_os = "linux")]
const MOST_KIB: u64 = 200 << 10;

#[test]
#[cfg(target_os = "linux")]
fn a_large_catalog_takes_little_memory() {
    let olm = Olm::alone();
    let property = json!({"type": "x", "value": "y".repeat(1 << 20)});
    let blob = json!({"schema": "olm.bundle", "package": "large", "name": "large.v1.0.0", "properties": [property]});
    olm.serve("plain", &json!({}), format!("{blob}\n").repeat(250));
    olm.gantry("admin", &["catalog"]).memory_limit(MOST_KIB).run().code(0).stdout_contains("large");
}

/// Three checks need them, and the plan does if there is a bundle.
#[test]
fn extensions_and_catalogs_are_listed_once_in_a_run() {
    let (olm, bed) = (Olm::alone(), Bed::new());
    let cp = olm.control_plane();
    olm.serve("a", &json!({}), package("alpha", "1.2.3"));
    cp.apply_yaml(&bed.namespace());
    let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": bed.names.namespace},
        "spec": {"namespace": bed.names.namespace, "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "alpha"}}}});
    for folder in ["metadata", "manifests"] {
        std::fs::create_dir_all(bed.folder.path().join("manifests/other").join(folder)).expect("a folder");
    }
    bed.write("manifests/extension.yaml", &extension.to_string());
    let listed_once = |code: i32| {
        let proxy = Proxy::start(cp);
        let checks = "ExtensionResolution,OperatorDependencies,PermissionValidation";
        let arguments = ["check", "-f", "manifests", "--preflight", checks];
        bed.gantry(proxy.kubeconfig("admin"), &arguments).run().code(code).stdout_contains("1.2.3");
        for plural in ["clustercatalogs", "clusterextensions"] {
            let path = format!("/apis/olm.operatorframework.io/v1/{plural}");
            let lists = proxy.requests().into_iter().filter(|request| request.method == "GET" && request.path == path);
            assert_eq!(lists.count(), 1, "{plural}");
        }
    };
    listed_once(0);
    let annotations = "annotations: {operators.operatorframework.io.bundle.mediatype.v1: registry+v1, \
        operators.operatorframework.io.bundle.package.v1: other, \
        operators.operatorframework.io.bundle.manifests.v1: manifests/}\n";
    bed.write("manifests/other/metadata/annotations.yaml", annotations);
    bed.write("manifests/other/manifests/map.yaml", &bed.config_map("of-bundle", "a"));
    // OLM would not install this bundle.
    listed_once(3);
}

#[test]
fn a_live_catalog_is_compared_with_its_next_release() {
    let (olm, bed) = (Olm::alone(), Bed::new());
    olm.serve("operators", &json!({}), package("alpha", "1.2.3"));
    let extension = |name: &str, selector: &Value| {
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name},
            "spec": {"namespace": "default", "serviceAccount": {"name": "a"}, "source": {"sourceType": "Catalog",
                "catalog": {"packageName": "alpha", "version": "1.2.3", "selector": selector}}}})
    };
    let by_label = |name: &str| json!({"matchLabels": {"olm.operatorframework.io/metadata.name": name}});
    for object in
        [extension("one", &json!({})), extension("two", &by_label("other")), extension("three", &by_label("operators"))]
    {
        olm.control_plane().apply_yaml(&object.to_string());
    }
    bed.write("next.json", &package("alpha", "1.3.0"));
    let compare = |user: &str| bed.gantry(olm.kubeconfig(user), &["catalog", "diff", "operators", "next.json"]).run();
    compare("admin")
        .code(0)
        .stdout_contains("channel stable: head alpha.v1.2.3 -> alpha.v1.3.0")
        .stdout_contains("affected: 2 of 3 ClusterExtensions and Subscriptions")
        .stdout_contains(
            "ClusterExtension one (alpha, not installed): can no longer be resolved, the pinned version is gone",
        )
        .stdout_contains("ClusterExtension three ");
    // Without the right to see what is installed, the comparison is there, and the run fails.
    let user = olm.control_plane().user(&rights(&Value::Null));
    compare(&user)
        .code(1)
        .stdout_contains("channel stable: head alpha.v1.2.3 -> alpha.v1.3.0")
        .stderr_contains("it is unknown which ClusterExtensions are affected");
    bed.gantry(olm.kubeconfig("admin"), &["catalog", "diff", "operator", "next.json"])
        .run()
        .code(1)
        .stderr_contains("did you mean \"operators\"?");
}

//! The output of real runs: JSON that is valid by its schema, and no harmful text from any source.

use std::path::Path;

use crate::support::{Bed, Gantry, Output, Proxy, When, closed_port, control_plane};
use gantry_core::text::is_hostile;
use serde_json::{Value, json};

fn schema() -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json");
    let text = std::fs::read_to_string(path).expect("the documented schema");
    jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

#[test]
fn the_report_of_every_kind_of_run_follows_the_documented_schema() {
    let schema = schema();
    let bed = Bed::new();
    let run = |kubeconfig, command: &str, flags: &[&str]| {
        bed.gantry(kubeconfig, &[command, "-f", "manifests.yaml", "-o", "json"]).args(flags).run()
    };
    let admin = || control_plane().kubeconfig("admin");
    let follows = |output: &Output, code: i32, outcome: &str, parts: &[&str]| {
        let report = output.code(code).report();
        let errors: Vec<String> =
            schema.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{output}");
        assert_eq!(report["outcome"], outcome, "{output}");
        for part in parts {
            assert!(report.pointer(part).is_some_and(|part| !part.is_null()), "no {part}\n{output}");
        }
    };
    let both = |crd: &str| format!("{}---\n{crd}---\n{}", bed.namespace(), bed.config_map("a", "x"));
    let (two, one) = (bed.crd("first: {type: string}, second: {type: string}"), bed.crd("first: {type: string}"));

    bed.write("manifests.yaml", &both(&two));
    follows(&run(admin(), "check", &[]), 0, "planned", &["/target", "/changes/2/source/line"]);
    follows(&run(admin(), "deploy", &[]), 0, "deployed", &["/changes/0/result", "/checks/0/status"]);
    follows(&run(admin(), "deploy", &[]), 0, "unchanged", &["/summary/unchanged"]);

    bed.write("manifests.yaml", &both(&one));
    let finding = ["/checks/0/findings/0/source/column", "/checks/0/findings/0/breaks/0", "/checks/0/findings/0/help"];
    follows(&run(admin(), "deploy", &[]), 3, "blocked", &finding);
    follows(&run(admin(), "deploy", &["--warn-only"]), 0, "deployed", &finding);

    bed.write("manifests.yaml", &bed.crd("first: {type: string, minLength: many}"));
    let unchecked = "/checks/0/unchecked/0/message";
    follows(&run(admin(), "check", &[]), 3, "blocked", &[unchecked, "/checks/0/findings/0/documented"]);
    follows(&run(admin(), "check", &["--warn-only"]), 3, "blocked", &[unchecked]);
    bed.write("manifests.yaml", &both(&two));
    let failed = ["/errors/0/message", "/errors/0/help", "/errors/0/source/file", "/changes/1/result"];
    follows(&run(control_plane().kubeconfig("reader"), "deploy", &[]), 1, "failed", &failed);
    follows(&run(closed_port(bed.folder.path()), "deploy", &[]), 1, "failed", &["/errors/0/help"]);
    follows(&run(admin(), "deploy", &["--preflight", "Nothing"]), 2, "failed", &["/errors/0/message"]);
    bed.write("manifests.yaml", "a: [");
    follows(&run(admin(), "deploy", &[]), 1, "failed", &["/errors/0/source/column"]);
}

#[test]
fn hundreds_of_problems_are_shortened_in_text_and_complete_in_json() {
    let bed = Bed::new();
    std::fs::create_dir(bed.folder.path().join("broken")).expect("a folder");
    for number in 0..600 {
        bed.write(&format!("broken/{number:03}.yaml"), "kind: ConfigMap\nmetadata: [\n");
    }
    let check = |flags: &[&str]| Gantry::new().cwd(bed.folder.path()).args(["check", "-f", "broken"]).args(flags).run();
    let people = check(&[]);
    people
        .code(1)
        .stderr_contains("broken/000.yaml:")
        .stderr_contains("\n… and 580 more errors in 580 files: -v shows all of them, -o json has them as data.\n");
    assert_eq!(people.stderr.matches("error: ").count(), 20, "{people}");
    assert_eq!(check(&["-v"]).code(1).stderr.matches("error: ").count(), 600);

    let machines = check(&["-o", "json"]);
    let report = machines.code(1).report();
    let files: std::collections::BTreeSet<&str> = report["errors"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|error| error["source"]["file"].as_str())
        .collect();
    assert_eq!(files.len(), 600);
}

/// Text that clears a screen, renames a window, or reverses the direction of text.
const HOSTILE: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{202e}gnp\u{9b}31m";
/// The part that an HTTP header can contain.
const HOSTILE_HEADER: &str = "pwned\u{202e}gnp\u{9b}31m";

/// Asserts that the text was shown, but escaped.
#[track_caller]
fn harmless(output: &Output) {
    for text in [&output.stdout, &output.stderr] {
        assert!(!text.chars().any(|c| c != '\n' && is_hostile(c)), "hostile text in {:?}", text);
    }
    assert!(output.stdout.contains("pwned") || output.stderr.contains("pwned"), "it is not there at all\n{output}");
}

#[test]
fn hostile_text_of_manifests_and_live_objects_never_reaches_the_terminal() {
    let bed = Bed::new();
    let crd = |properties: Value| {
        let mut crd: Value = serde_yaml::from_str(&bed.crd("")).expect("YAML");
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = properties;
        crd
    };
    let live = crd(json!({
        HOSTILE: {"type": "string", "description": HOSTILE},
        "choice": {"type": "string", "enum": ["a", HOSTILE], "default": HOSTILE},
    }));
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(control_plane().post(crds, &live).0, 201);
    let desired = crd(json!({"choice": {"type": "string", "description": HOSTILE, "enum": ["a"], "default": "a"}}));
    // JSON does not need to escape direction marks: the excerpt contains them unchanged.
    let mut text = serde_json::to_string_pretty(&desired).expect("JSON");
    text = text.replace("\"enum\"", "\"\u{202e}x-pwned\": 1, \"enum\"");
    bed.write("manifests.yaml", &text);
    let check = |flags: &[&str]| {
        bed.gantry(control_plane().kubeconfig("reader"), &["check", "-f", "manifests.yaml"]).args(flags).run()
    };
    let people = check(&["-v"]);
    people.code(3).stdout_contains("\\u{1b}]0;pwned\\u{7}\\u{1b}[2J\\u{202e}gnp\\u{9b}31m");
    harmless(&people);
    let machines = check(&["-o", "json"]);
    harmless(machines.code(3));
    assert!(machines.report()["checks"][0]["findings"].to_string().contains('\u{202e}'), "{machines}");

    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": HOSTILE, "labels": {"a": HOSTILE}}});
    bed.write("manifests.yaml", &object.to_string());
    let refused = bed.deploy(control_plane().kubeconfig("admin"), &["-v"]).run();
    harmless(refused.code(1));
    let broken = json!({"apiVersion": "v1", "kind": HOSTILE, "metadata": {"name": "a"}});
    bed.write("manifests.yaml", &format!("{broken}\n---\n{{\"apiVersion\": \"v1\", \"{}\": 1}}\n", HOSTILE_HEADER));
    harmless(bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(1));

    // Names that the user passes or that gantry finds.
    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    let config = format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{}: 1\n", json!(HOSTILE));
    bed.write("gantry.yaml", &config);
    harmless(check(&["-v"]).code(2));
    std::fs::remove_file(bed.folder.path().join("gantry.yaml")).expect("it is there");
    harmless(check(&["--preflight", HOSTILE]).code(2));
    harmless(check(&["--context", HOSTILE]).code(2));
    harmless(check(&["-n", HOSTILE]).code(2));
    harmless(Gantry::new().cwd(bed.folder.path()).args(["check", "-f", HOSTILE]).run().code(1));
    harmless(Gantry::new().cwd(bed.folder.path()).args(["rules", HOSTILE]).run().code(2));
    bed.write(
        "gantry.yaml",
        &format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\ncontext: {}\n", json!("\u{1b}]0;pwned\u{202e}")),
    );
    for format in ["human", "json"] {
        harmless(Gantry::new().cwd(bed.folder.path()).args(["config", "show", "-o", format]).run().code(0));
    }
}

#[cfg(unix)]
#[test]
fn hostile_names_of_files_never_reach_the_terminal() {
    let bed = Bed::new();
    bed.write(&format!("{HOSTILE}.yaml"), &format!("{}bad: [\n", bed.config_map("a", "x")));
    harmless(Gantry::new().cwd(bed.folder.path()).args(["check", "-f", "."]).run().code(1));
    bed.write(&format!("{HOSTILE}.yaml"), &bed.config_map("a", "x"));
    let kubeconfig = control_plane().kubeconfig("reader");
    let run = bed.gantry(kubeconfig, &["deploy", "-f", "."]).run();
    harmless(run.code(3));
}

#[test]
fn control_characters_of_a_server_never_reach_the_terminal() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    let path = bed.config_map_path("a");
    let status = |code: u16, reason: &str, message: &str, details: Value| {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message, "details": details})
    };
    let conflict = json!({"name": "a", "kind": "configmaps", "causes": [{"reason": "FieldManagerConflict",
        "message": format!("conflict with {HOSTILE:?} using v1"), "field": format!(".data.{HOSTILE}")}]});
    let raw_conflict = json!({"name": "a", "kind": "configmaps", "causes": [{"reason": "FieldManagerConflict",
        "message": format!("conflict with \"{HOSTILE}\" using v1"), "field": format!(".data.{HOSTILE}")}]});
    let invalid = json!({"name": HOSTILE, "kind": HOSTILE, "causes": [
        {"reason": "FieldValueInvalid", "message": HOSTILE, "field": HOSTILE}, {"message": HOSTILE}]});
    let denied = format!(
        "x: User \"{HOSTILE}\" cannot patch resource \"{HOSTILE}\" in API group \"{HOSTILE}\" in the namespace \"{HOSTILE}\""
    );
    for (code, reason, message, details) in [
        (409, "Conflict", HOSTILE, conflict),
        (409, "Conflict", HOSTILE, raw_conflict),
        (422, "Invalid", HOSTILE, invalid),
        (400, "BadRequest", HOSTILE, json!({})),
        (403, "Forbidden", &denied, json!({})),
        (403, "Forbidden", HOSTILE, json!({})),
        (404, "NotFound", HOSTILE, json!({"name": HOSTILE, "kind": "namespaces"})),
        (500, HOSTILE, HOSTILE, json!({})),
    ] {
        // A live object that gantry owns, because a conflict would be reported as a change, or predicted.
        let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "old"}, "metadata": {"name": "a",
            "uid": "u", "resourceVersion": "7", "namespace": bed.names.namespace, "managedFields": [{"manager": "gantry",
            "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:key": {}}}}]}});
        for output in ["human", "json"] {
            let proxy = Proxy::start(control_plane());
            proxy.answer(When::new("GET", &path), 200, live.clone());
            proxy.answer(When::new("PATCH", &path), code, status(code, reason, message, details.clone()));
            let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", output]).run();
            harmless(run.code(1));
        }
    }

    let proxy = Proxy::start(control_plane());
    let warning = format!("299 - \"{HOSTILE_HEADER}\"");
    proxy.add_header(When::new("PATCH", &path), "warning", warning.as_bytes());
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    run.code(0).stderr_contains("notice: the API server warns: pwned\\u{202e}gnp\\u{9b}31m\n");
    harmless(&run);
    assert_eq!(control_plane().delete(&path).0, 200);

    // A live object can contain anything, for example in the names of its managers.
    let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u", "resourceVersion": HOSTILE,
        "managedFields": [{"manager": HOSTILE, "operation": "Apply", "fieldsV1": {HOSTILE: {}}}]}, "data": {HOSTILE: HOSTILE}});
    proxy.answer(When::new("GET", &path), 200, live);
    let run = bed.gantry(proxy.kubeconfig("admin"), &["check", "-v", "-f", "manifests.yaml"]).run();
    run.code(0).contains_nowhere("\u{1b}");
}

#[test]
fn values_of_secrets_reach_no_output() {
    const VALUE: &str = "7041776041776";
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let secret = |name: &str, rest: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {}}}\n{rest}", bed.names.namespace)
    };
    control_plane().apply_yaml(&secret("fixed", &format!("immutable: true\nstringData: {{password: 'old{VALUE}'}}\n")));
    for (name, rest) in [
        // Invalid base64, not a string, not a field of a Secret, invalid YAML, immutable, a duplicate.
        ("a", format!("data: {{password: '!{VALUE}!'}}\n")),
        ("b", format!("stringData: {{password: {VALUE}}}\n")),
        ("c", format!("stringData: {{password: [{VALUE}]}}\n")),
        ("d", format!("stringdata: {{password: '{VALUE}'}}\n")),
        ("e", format!("stringData: {{password: '{VALUE}\n")),
        ("f", format!("data: {{{VALUE}: {VALUE}: {VALUE}}}\n")),
        ("fixed", format!("stringData: {{password: '{VALUE}'}}\n")),
        ("g", format!("stringData: {{password: '{VALUE}', password: '{VALUE}'}}\n")),
        ("h", format!("type: kubernetes.io/tls\nstringData: {{password: '{VALUE}'}}\n")),
        ("i", format!("type: kubernetes.io/dockerconfigjson\nstringData: {{.dockerconfigjson: '{{{VALUE}'}}\n")),
    ] {
        bed.write("manifests.yaml", &secret(name, &rest));
        for output in ["human", "json"] {
            let run = bed.deploy(control_plane().kubeconfig("admin"), &["-v", "-o", output]).run();
            // The last value of a key wins, as always in gantry's YAML.
            assert_eq!(run.code == Some(0), name == "g", "{name}: {run}");
            run.contains_nowhere(VALUE);
        }
    }
}

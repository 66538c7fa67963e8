//! Entries of `metadata.managedFields` at a version that a CRD no longer has: the server refuses every server-side
//! apply of such an object. gantry reports them before the version is removed, and its next steps work.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{
    CrdBuilder, Gantry, Output, Samples, control_plane, eventually, fields, findings, string_fields, text,
};
use serde_json::{Value, json};

/// Executes `kubectl get … | jq … | kubectl replace -f -`, the first command of this form in a text, over the API, with
/// jq itself. Returns the number of objects.
pub fn move_entries(help: &str) -> usize {
    let start = help.find("kubectl get ").unwrap_or_else(|| panic!("no command: {help}"));
    let (get, rest) = help[start..].split_once(" | jq '").expect("a jq command");
    let (program, rest) = rest.split_once('\'').expect("a jq program");
    assert!(rest.starts_with(" | kubectl replace -f -"), "{help}");
    let words: Vec<&str> = get.split_whitespace().collect();
    let (plural, rest) = words[2].split_once('.').expect("a resource");
    let named = rest.split_once('.').filter(|(version, _)| version.starts_with('v'));
    let group = named.map_or(rest, |(_, group)| group);
    let cp = control_plane();
    // At the version that the server prefers, like kubectl, unless the command names one.
    let preferred = match named {
        Some((version, _)) => format!("{group}/{version}"),
        None => text(&cp.get(&format!("/apis/{group}")).1["preferredVersion"]["groupVersion"]),
    };
    let path = match words[3..] {
        [name, "--namespace", namespace, "-o", "json", "--show-managed-fields"] => {
            format!("/apis/{preferred}/namespaces/{namespace}/{plural}/{name}")
        }
        _ => panic!("{get}"),
    };
    let found = eventually("the server answers", || match cp.get(&path) {
        (200, found) => Some(found),
        (429, _) => None,
        (status, answer) => panic!("{status}: {answer:#}"),
    });
    let mut jq = Command::new("jq")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("jq, which some tests need");
    jq.stdin.take().expect("its input").write_all(found.to_string().as_bytes()).expect("its input");
    let output = jq.wait_with_output().expect("its output");
    assert!(output.status.success(), "{program}");
    let moved: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let items = moved["items"].as_array().cloned().unwrap_or_else(|| vec![moved.clone()]);
    for item in &items {
        eventually("the server answers", || match cp.put(&cp.path_of(item), item) {
            (200, _) => Some(()),
            (429, _) => None,
            (status, answer) => panic!("{status}: {answer:#}"),
        });
    }
    items.len()
}

/// Runs `gantry migrate …`, which is a line of a text.
pub fn run_migration(help: &str) -> Output {
    let command = help.lines().find_map(|line| line.strip_prefix("gantry ")).expect("a command");
    // The question cannot be answered without a terminal.
    let arguments = command.split_whitespace().chain(["--yes"]);
    let run = Gantry::new().kubeconfig(control_plane().kubeconfig("admin")).args(arguments).run();
    run.code(0);
    run
}

/// Manager, operation and version of each entry.
fn entries(object: &Value) -> Vec<(String, String, String)> {
    let entries = object["metadata"]["managedFields"].as_array().expect("managedFields").iter();
    let version = |entry: &Value| text(&entry["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned();
    entries.map(|entry| (text(&entry["manager"]), text(&entry["operation"]), version(entry))).collect()
}

/// v1, the storage version, and v2, and objects that were written at both.
struct TwoVersions(Samples);

impl TwoVersions {
    fn new() -> Self {
        let bed = TwoVersions(Samples::new());
        bed.0.live(&bed.crd(Some(true)));
        let at = |version: &str, name: &str| {
            let mut object = bed.0.object(name, &json!({"a": "x"}));
            object["apiVersion"] = json!(format!("{}/{version}", bed.0.names.group));
            object
        };
        let cp = control_plane();
        let apply = |version: &str, name: &str, manager: &str| {
            let path = format!("{}/{name}", bed.0.collection(version));
            assert_eq!(cp.server_side_apply(&path, manager, &at(version, name)).0, 201);
        };
        apply("v1", "clean", "flux");
        apply("v2", "applied", "flux");
        apply("v2", "ours", "gantry");
        let created = format!("{}?fieldManager=controller", bed.0.collection("v2"));
        assert_eq!(cp.post(&created, &at("v2", "updated")).0, 201);
        apply("v1", "status", "flux");
        let status = format!("{}/status/status?fieldManager=controller", bed.0.collection("v2"));
        assert_eq!(cp.patch(&status, &json!({"status": {"b": "y"}})).0, 200);
        bed
    }

    /// The CRD with v2 served or not, or without v2.
    fn crd(&self, v2: Option<bool>) -> Value {
        let schema = fields(json!({"spec": string_fields(&["a"]), "status": string_fields(&["b"])}));
        let crd = CrdBuilder::samples(&self.0.names.group).version("v1", schema.clone()).status_subresource();
        match v2 {
            Some(served) => crd.version("v2", schema).status_subresource().served(served).build(),
            None => crd.build(),
        }
    }

    /// The server's answer to a server-side apply of this object at v1: status and message.
    fn apply(&self, name: &str) -> (u16, String) {
        let object = self.0.object(name, &json!({"a": "z"}));
        let path = format!("{}?fieldManager=gantry&force=true&dryRun=All", self.0.path(name));
        eventually("the server answers", || match control_plane().apply_to(&path, &object) {
            (429, _) => None,
            (status, answer) => Some((status, text(&answer["message"]))),
        })
    }

    fn live(&self, name: &str) -> Value {
        control_plane().get(&self.0.path(name)).1
    }

    /// Waits until the server uses the CRD without v2.
    fn remove_v2(&self) {
        self.0.live(&self.crd(None));
        eventually("the server uses the CRD without v2", || (self.apply("applied").0 == 500).then_some(()));
    }
}

const WITH_ENTRIES: [&str; 4] = ["applied", "ours", "status", "updated"];

#[test]
fn a_version_that_managed_fields_name_is_not_removed_until_the_entries_are_moved() {
    let bed = TwoVersions::new();
    bed.0.live(&bed.crd(Some(false)));
    for name in WITH_ENTRIES {
        assert_eq!(bed.apply(name).0, 200, "{name}: a version that is not served is no problem");
    }

    // As before, gantry would have passed this: nothing is stored at v2, and no one can write at it any more.
    let blocked = bed.0.check(&bed.crd(None), &["-o", "json"]).code(3).report();
    let found = findings(&blocked);
    let said: Vec<(String, Vec<String>)> = found
        .iter()
        .map(|finding| {
            let objects = finding["affected"]["objects"].as_array().expect("objects").iter();
            (text(&finding["message"]), objects.map(|object| text(&object["name"])).collect())
        })
        .collect();
    let message = |objects: &str, manager: &str| {
        format!(
            "{objects} of 5 objects can no longer be written by server-side apply once v2 is removed: managedFields have \
             an entry of {manager} at v2"
        )
    };
    // The server does not tell which of them are stored at v2. Here none is, because it never was the storage version.
    let perhaps_stored = "3 of 5 objects may still be stored at v2, which is removed: managedFields have no entry at \
        another version. If one object is, this kind becomes unreadable: every list of its objects fails, and that \
        object can be neither read nor deleted";
    assert_eq!(
        said,
        [
            (message("1", "controller"), vec!["status".to_owned()]),
            (perhaps_stored.to_owned(), ["applied", "ours", "updated"].map(str::to_owned).to_vec()),
        ]
    );
    for finding in &found {
        let of = |key: &str| text(&finding[key]);
        assert_eq!(
            (of("rule"), of("severity"), of("version")),
            ("ObjectInRemovedVersion".to_owned(), "error".to_owned(), "v2".to_owned())
        );
    }

    // What would have happened.
    bed.remove_v2();
    for name in WITH_ENTRIES {
        let (status, message) = bed.apply(name);
        assert_eq!((status, message.contains("invalid group/version")), (500, true), "{name}: {message}");
    }
    assert_eq!(bed.apply("clean").0, 200);
    bed.0.live(&bed.crd(Some(false)));

    // Writing the objects again, as a migration does, does not help.
    for name in WITH_ENTRIES {
        let again = bed.live(name);
        assert_eq!(control_plane().put(&bed.0.path(name), &again).0, 200);
    }
    bed.0.check(&bed.crd(None), &[]).code(3);

    let owned = |name: &str| bed.live(name)["metadata"]["managedFields"][0]["fieldsV1"].clone();
    let before = WITH_ENTRIES.map(owned);
    run_migration(&text(&found[0]["help"])).stdout_contains("wrote 5 objects");
    assert_eq!(WITH_ENTRIES.map(owned), before, "the managers keep their fields");
    let deployed = bed.0.gantry(control_plane().kubeconfig("admin"), "deploy", &bed.crd(None), &["--force-conflicts"]);
    deployed.code(0);
    eventually("v2 is gone", || (control_plane().get(&bed.0.collection("v2")).0 == 404).then_some(()));
    for name in ["clean", "applied", "ours", "status", "updated"] {
        assert_eq!(bed.apply(name), (200, String::new()), "{name}");
    }
    let of = |manager: &str, operation: &str| (manager.to_owned(), operation.to_owned(), "v1".to_owned());
    assert_eq!(entries(&bed.live("applied")), [of("flux", "Apply")]);
    assert_eq!(entries(&bed.live("updated")), [of("controller", "Update")]);
}

#[test]
fn an_object_that_no_apply_can_write_is_found_before_the_deploy_writes_anything() {
    let bed = TwoVersions::new();
    let kept = bed.0.object("kept", &json!({"a": "x"}));
    assert_eq!(control_plane().server_side_apply(&bed.0.path("kept"), "gantry", &kept).0, 201);
    let status = format!("{}/kept/status?fieldManager=controller", bed.0.collection("v2"));
    assert_eq!(control_plane().patch(&status, &json!({"status": {"b": "y"}})).0, 200);
    bed.remove_v2();
    // A deploy does not apply an object that does not change.
    assert_eq!(bed.apply("kept").0, 500);
    bed.0.gantry(control_plane().kubeconfig("admin"), "deploy", &kept, &[]).code(0).stdout_contains("unchanged");
    let admin = || control_plane().kubeconfig("admin");
    // Its entry is of a deploy tool, and moves to the version of the manifest when the object is taken over.
    let taken_over = bed.0.object("applied", &json!({"a": "new"}));
    bed.0.gantry(admin(), "deploy", &taken_over, &["--force-conflicts", "-y"]).code(0);
    assert_eq!(bed.live("applied")["spec"]["a"], "new");
    for name in ["ours", "status", "updated"] {
        let manifest = bed.0.object(name, &json!({"a": "new"}));
        let blocked = bed.0.gantry(admin(), "deploy", &manifest, &["--force-conflicts", "-o", "json"]);
        let found = findings(&blocked.code(3).report());
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!(text(&found[0]["rule"]), "ManifestObjectRefused");
        let message = text(&found[0]["message"]);
        assert!(message.contains("refuses every server-side apply of the live object"), "{message}");

        // Without the check, the server refuses it. Taking an object over from flux is another write, with which the
        // server drops all entries of an object that has one at a missing version.
        if name != "status" {
            let arguments = ["deploy", "-f", "-", "--force-conflicts", "-y", "--preflight", "CRDUpgradeSafety"];
            let refused = Gantry::new().kubeconfig(admin()).args(arguments).stdin(manifest.to_string()).run();
            refused
                .code(1)
                .stdout_contains("invalid group/version")
                .stdout_contains("managedFields of the live object name");
        }

        assert_eq!(move_entries(&text(&found[0]["help"])), 1);
        bed.0.gantry(admin(), "deploy", &manifest, &["--force-conflicts", "-y"]).code(0);
        assert_eq!(bed.live(name)["spec"]["a"], "new");
    }
}

/// The server parses the object by the schema of each version in its managedFields, with more rules than at its own.
#[test]
fn an_object_that_does_not_fit_another_version_in_its_managed_fields_is_found_as_well() {
    let cp = control_plane();
    let bed = Samples::new();
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let wide = fields(json!({"list": any, "set": any, "text": any, "more": any, "x": any}));
    bed.live(&bed.crd(&[("v1", true, wide.clone()), ("v2", false, wide.clone())]));
    let specs = [
        ("list", json!({"list": [{"v": "a"}]})),
        ("set", json!({"set": ["a", "a"]})),
        ("text", json!({"text": 1})),
        ("more", json!({"more": "a"})),
        ("fits", json!({"list": [{"k": "a"}], "set": ["a"], "text": "a"})),
    ];
    for (name, spec) in &specs {
        bed.create(name, spec);
        bed.create(&format!("{name}-v1"), spec);
        let path = format!("{}/{name}?fieldManager=controller", bed.collection("v2"));
        assert_eq!(cp.patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).0, 200);
    }
    let narrow = fields(json!({"list": keyed, "set": set, "text": {"type": "string"}, "x": any}));
    bed.live(&bed.crd(&[("v1", true, wide), ("v2", false, narrow)]));
    let refused = |name: &str, spec: &Value| {
        let path = format!("{}?fieldManager=gantry&force=true&dryRun=All", bed.path(name));
        eventually("the server answers", || match cp.apply_to(&path, &bed.object(name, spec)) {
            (429, _) => None,
            (200, _) => Some(None),
            (status, answer) => Some(Some(format!("{status} {}", text(&answer["message"])))),
        })
    };
    eventually("the server uses the new schema", || refused("more", &json!({"x": "new"})).map(drop));
    let admin = || cp.kubeconfig("admin");
    let check = |name: &str, spec: &Value| {
        let run = bed.gantry(admin(), "check", &bed.object(name, spec), &["-o", "json"]);
        findings(&run.report())
    };
    let said = |found: &[Value]| found.iter().map(|finding| text(&finding["message"])).collect::<Vec<_>>();
    for (name, spec) in &specs {
        // The live object does not fit, whatever is applied.
        let desired = json!({"x": "new"});
        let (server, found) = (refused(name, &desired), check(name, &desired));
        assert_eq!(
            (server.is_some(), found.len()),
            (*name != "fits", usize::from(*name != "fits")),
            "{server:?} {found:#?}"
        );
        assert_eq!(refused(&format!("{name}-v1"), &desired), None, "no entry at v2");
        assert_eq!(check(&format!("{name}-v1"), &desired).len(), 0);
        if let Some(server) = server {
            let reason = server.strip_prefix("500 ").expect("a failure of the server");
            assert!(said(&found)[0].ends_with(&format!("an entry in managedFields: {reason}")), "{server} {found:#?}");
        }
        // The applied object would not fit.
        let (server, found) = (refused("fits", spec), check("fits", spec));
        assert_eq!(
            (server.is_some(), found.len()),
            (*name != "fits", usize::from(*name != "fits")),
            "{server:?} {found:#?}"
        );
        if let Some(server) = server {
            let reason = server.strip_prefix("500 failed to convert new object: ").expect("a failure of the server");
            assert!(said(&found)[0].ends_with(&format!("an entry in managedFields: {reason}")), "{server} {found:#?}");
        }
    }
    let found = check("more", &json!({"x": "new"}));
    assert_eq!(move_entries(&text(&found[0]["help"])), 1);
    let flags = ["--force-conflicts", "-y"];
    bed.gantry(admin(), "deploy", &bed.object("more", &json!({"x": "new"})), &flags).code(0);
}

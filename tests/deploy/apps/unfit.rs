//! Records that gantry cannot use as they are: each command says why before it writes anything, and what to do.

use super::{PART_OF, Shop, names};
use crate::support::{Output, control_plane, printed_command, run_printed};
use serde_json::{Value, json};

const ID: &str = "applyset.kubernetes.io/id";
const TOOLING: &str = "applyset.kubernetes.io/tooling";

/// Deploys the app, and adds `b` to its manifests.
fn shop() -> Shop {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    shop.config_maps(&["a", "b"]);
    shop
}

impl Shop {
    /// Makes the record that of a deploy that runs on another machine since `time`.
    fn lock(&self, time: &str) {
        let mut last = self.last();
        (last["outcome"], last["holder"], last["time"]) = ("started".into(), "elsewhere|x|1|2".into(), time.into());
        self.patch("shop.gantry", &json!({"data": {"last": last.to_string()}}));
    }

    /// Sets the time at which the server recorded the last write of gantry; `None` removes all of its records.
    fn recorded(&self, time: Option<&str>) {
        let fields = match time {
            None => json!([{}]),
            Some(time) => {
                let mut fields = self.parent()["metadata"]["managedFields"].clone();
                fields.as_array_mut().expect("a list").iter_mut().for_each(|entry| entry["time"] = time.into());
                fields
            }
        };
        // The server undoes a change of such times alone.
        let annotations = json!({"changed": self.parent()["metadata"]["resourceVersion"]});
        self.patch("shop.gantry", &json!({"metadata": {"managedFields": fields, "annotations": annotations}}));
    }

    fn path(&self) -> String {
        self.bed.config_map_path("shop.gantry")
    }

    /// Whether nobody has written the record since, nor an object beside.
    fn is_as(&self, before: &Value) {
        assert_eq!(&self.parent(), before);
        assert_eq!(self.get("b"), None);
        let labels = &self.get("a").expect("it stays")["metadata"]["labels"];
        assert!(labels[PART_OF].as_str().is_some_and(|id| id.starts_with("applyset-")), "{labels}");
    }
}

impl Shop {
    fn run_printed(&self, command: &str) {
        run_printed(command, &control_plane().kubeconfig("admin"), self.bed.folder.path());
    }

    /// Whether the app is listed, deployed and deleted as any other, with everything that it has.
    fn is_whole_and_ends(&self, deployed: &str) {
        self.admin(&["apps"]).code(0).stdout_contains("shop");
        self.deploy(&[]).code(0).stdout_contains(deployed);
        self.admin(&["inspect", "-a", "shop"]).code(0);
        self.admin(&DELETE).code(0);
        assert!(["a", "b", "c", "shop.gantry"].iter().all(|name| self.get(name).is_none()));
    }
}

pub(super) trait Says {
    /// Errors of a deploy stand in its report, and all are broken into lines.
    fn says(&self, what: &str) -> &Self;
}

impl Says for Output {
    fn says(&self, what: &str) -> &Self {
        let all = format!("{} {}", self.stdout, self.stderr);
        let words: Vec<&str> = all.split_whitespace().collect();
        assert!(words.join(" ").contains(what), "{what}:\n{all}");
        self
    }
}

const FORGET: [&str; 5] = ["apps", "forget", "-a", "shop", "--yes"];
const RENAME: [&str; 7] = ["apps", "rename", "-a", "shop", "--to", "store", "--yes"];
const DEPLOY: [&str; 5] = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
const CHECK: [&str; 5] = ["check", "-f", "manifests.yaml", "-a", "shop"];
const DELETE: [&str; 4] = ["delete", "-a", "shop", "--yes"];

#[test]
fn every_command_that_a_lock_stops_can_break_it() {
    let shop = shop();
    shop.lock(shop.last()["time"].as_str().expect("a time"));
    let before = shop.parent();
    for command in [&FORGET[..], &RENAME, &DEPLOY, &DELETE] {
        let output = shop.admin(command);
        output.code(1).says("on elsewhere started it").says("continue with --break-lock");
        shop.is_as(&before);
    }
    shop.admin(&[&RENAME[..], &["--break-lock"]].concat()).code(0);
    shop.admin(&["apps", "rename", "-a", "store", "--to", "shop", "--yes"]).code(0);
    shop.lock(shop.last()["time"].as_str().expect("a time"));
    shop.admin(&[&FORGET[..], &["--break-lock"]].concat()).code(0).stdout_contains("1 object");
    assert_eq!(shop.get("shop.gantry"), None);
}

#[test]
fn a_lock_from_a_fast_clock_does_not_last_longer() {
    let shop = shop();
    // The server knows when it was taken.
    shop.lock("2150-01-01T00:00:00Z");
    for command in [&FORGET[..], &RENAME, &DEPLOY] {
        shop.admin(command).code(1).says(" s ago, at 20").says("--break-lock");
    }
    // Until the lock has expired by the clock of the server.
    shop.recorded(Some("2026-01-01T00:00:00Z"));
    shop.deploy(&[]).code(0).stdout_contains("1 created");
    // Nobody knows when it was taken.
    shop.config_maps(&["a", "b", "c"]);
    shop.lock("2150-01-01T00:00:00Z");
    shop.recorded(None);
    let output = shop.deploy(&[]);
    output.code(0).says("the lock of the app shop is ignored").says("2150-01-01T00:00:00Z");
    output.says("check the clocks of this machine and of elsewhere");
    shop.lock("2150-01-01T00:00:00Z");
    shop.recorded(None);
    shop.admin(&FORGET).code(0).says("the lock of the app shop is ignored");
}

#[test]
fn a_record_without_its_label_is_listed_as_unreadable() {
    let shop = shop();
    let id = shop.parent()["metadata"]["labels"][ID].clone();
    // Neither of these is one.
    let mut other = shop.config_map("other.gantry", "1");
    control_plane().apply_yaml(&other.to_string());
    other["metadata"]["name"] = "shop.gantry-2".into();
    control_plane().apply_yaml(&other.to_string());
    shop.admin(&["apps"]).code(0);
    let cases = [
        (json!({"labels": {ID: null}}), "is missing and not"),
        (json!({"labels": {ID: "applyset-x-v1"}}), "is \"applyset-x-v1\" and not"),
        // Its data says whose it is.
        (json!({"labels": null, "annotations": null}), "is missing and not"),
    ];
    for (metadata, what) in cases {
        shop.patch("shop.gantry", &json!({"metadata": metadata}));
        let before = shop.parent();
        for command in [&["apps"][..], &["inspect", "-a", "shop"], &DEPLOY, &FORGET, &DELETE, &RENAME] {
            let output = shop.admin(command);
            output.code(1).says(&format!("its label {ID} {what} {id}"));
            output.says(&format!("kubectl label configmap/shop.gantry -n {}", shop.bed.names.namespace));
            output.says(&format!("--overwrite {ID}={}", id.as_str().expect("an id")));
        }
        shop.admin(&["apps"]).code(1).stdout_contains("unreadable record");
        shop.is_as(&before);
    }
    let annotations = json!({TOOLING: "gantry/v0"});
    shop.patch("shop.gantry", &json!({"metadata": {"labels": {ID: id}, "annotations": annotations}}));
    shop.admin(&["apps"]).code(0).stdout_contains("shop");
    shop.deploy(&[]).code(0).stdout_contains("1 created");
}

#[test]
fn a_record_without_its_tool_is_restored_or_taken_over_from_an_unnamed_one() {
    let shop = shop();
    for tooling in [Value::Null, json!("")] {
        shop.patch("shop.gantry", &json!({"metadata": {"annotations": {TOOLING: tooling}}}));
        let before = shop.parent();
        for command in [&DEPLOY[..], &FORGET, &RENAME, &DELETE, &["inspect", "-a", "shop"], &["apps"]] {
            let output = shop.admin(command);
            output.code(1).says(&format!("its annotation {TOOLING} is missing, which names the tool"));
            output.says("gantry wrote its data, so restore the annotation: kubectl annotate configmap/shop.gantry");
            output.says(&format!("{TOOLING}=gantry/v"));
            assert!(!output.stderr.contains("\"\""), "{}", output.stderr);
        }
        shop.is_as(&before);
    }
    // A run that writes it keeps others out whatever the record says of its tool.
    let time = shop.last()["time"].as_str().expect("a time").to_owned();
    shop.lock(&time);
    shop.deploy(&["--take-over-app", "--yes"]).code(1).says("on elsewhere started it");
    let output = shop.deploy(&["--take-over-app", "--yes", "--break-lock"]);
    output.code(0).says("the record of the app shop is taken over from an unnamed tool");
    assert_eq!(shop.inventory(), names(["a", "b"]));
    // What nobody knows to be gantry's may be another tool's.
    shop.patch("shop.gantry", &json!({"metadata": {"annotations": {TOOLING: null}}, "data": null}));
    let output = shop.deploy(&[]);
    output.code(1).says("if gantry kept it, restore the annotation").says("--take-over-app");
}

#[test]
fn an_immutable_record_is_written_by_no_command() {
    let shop = shop();
    shop.patch("shop.gantry", &json!({"immutable": true}));
    let before = shop.parent();
    for command in [&DEPLOY[..], &CHECK, &RENAME, &DELETE] {
        let output = shop.admin(command);
        output.code(1).says("is immutable, so gantry cannot write the record of the app shop");
        output.says("kubectl replace --force -f record.yaml");
        shop.is_as(&before);
    }
    // Where nothing is to be written it does no harm.
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0).stdout_contains("Nothing to do").says("is immutable");
    shop.admin(&["inspect", "-a", "shop"]).code(0);
    shop.admin(&["apps"]).code(0);
    shop.admin(&FORGET).code(0);
    assert_eq!(shop.get("shop.gantry"), None);

    // As the message advises.
    shop.delete("a");
    shop.deploy(&[]).code(0);
    shop.patch("shop.gantry", &json!({"immutable": true}));
    shop.config_maps(&["a", "b"]);
    let output = shop.deploy(&[]);
    output.code(1).says("record.yaml; remove that line; kubectl");
    shop.run_printed(&printed_command(&output, "kubectl get ", ";"));
    let file = shop.bed.folder.path().join("record.yaml");
    let text = std::fs::read_to_string(&file).expect("the saved record");
    let without = text.replacen("immutable: true\n", "", 1);
    assert_ne!(text, without);
    std::fs::write(&file, without).expect("write a file");
    shop.run_printed(&(printed_command(&output, "kubectl replace ", "record.yaml") + " record.yaml"));
    assert_eq!(shop.parent()["immutable"], Value::Null);
    shop.is_whole_and_ends("1 created");
}

#[test]
fn a_record_with_a_finalizer_or_in_deletion_is_changed_by_no_command() {
    let shop = shop();
    let finalizers = |names: &[&str]| json!({"metadata": {"finalizers": names}});
    shop.patch("shop.gantry", &finalizers(&["example.com/backup"]));
    let before = shop.parent();
    for command in [&FORGET[..], &RENAME, &DELETE] {
        let output = shop.admin(command);
        output.code(1).says("and its app shop would remain until its finalizer \"example.com/backup\" is removed");
        output.says("kubectl patch configmap/shop.gantry -n ");
        shop.is_as(&before);
    }
    // Nothing is deleted by a deploy.
    shop.deploy(&[]).code(0).stdout_contains("1 created");
    shop.config_maps(&["a", "b", "c"]);
    control_plane().delete(&shop.path());
    let before = shop.parent();
    assert!(before["metadata"]["deletionTimestamp"].is_string());
    for command in [&DEPLOY[..], &CHECK, &FORGET, &RENAME, &DELETE] {
        let output = shop.admin(command);
        output.code(1).says("the app shop loses its record when its finalizer \"example.com/backup\" is removed");
        output.says("kubectl create -f record.yaml");
        assert_eq!((shop.parent(), shop.get("c")), (before.clone(), None));
    }
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(1).says("was marked for deletion at 20");
    shop.admin(&["inspect", "-a", "shop"]).code(0);

    // As the messages advise.
    let output = shop.admin(&DELETE);
    let command = printed_command(&output, "kubectl get ", "create -f ") + " create -f record.yaml";
    shop.run_printed(&command);
    let metadata = shop.parent()["metadata"].clone();
    assert_ne!(metadata["uid"], before["metadata"]["uid"]);
    assert_eq!(metadata["deletionTimestamp"], Value::Null);
    let output = shop.admin(&DELETE);
    output.code(1).says("would remain until its finalizer \"example.com/backup\" is removed");
    shop.run_printed(&printed_command(&output, "kubectl patch ", "'"));
    assert_eq!(shop.inventory(), names(["a", "b"]));
    shop.config_maps(&["a", "b", "c"]);
    shop.is_whole_and_ends("1 created");
}

#[test]
fn binary_data_in_a_record_ends_every_command_except_forget() {
    for key in ["inventory", "inventory.gz", "inventory-sum", "last", "last-applied", "parts"] {
        let shop = shop();
        shop.patch("shop.gantry", &json!({"data": {key: null}, "binaryData": {key: "YQ=="}}));
        let before = shop.parent();
        for command in [&DEPLOY[..], &CHECK, &RENAME, &DELETE, &["apps"]] {
            let output = shop.admin(command);
            output.code(1).says(&format!("binaryData.{key} is there, where gantry writes data.{key}"));
            shop.is_as(&before);
        }
        shop.admin(&FORGET).code(0).stdout_contains("1 object");
        assert_eq!(shop.get("shop.gantry"), None);
        assert_eq!(shop.get("a").expect("it stays")["metadata"]["labels"], Value::Null);
    }
}

#[test]
fn renaming_reports_labelled_objects_that_are_not_in_the_inventory() {
    let shop = shop();
    shop.deploy(&[]).code(0);
    let id = shop.parent()["metadata"]["labels"][ID].clone();
    let mut theirs = shop.config_map("theirs", "1");
    theirs["metadata"]["labels"] = json!({PART_OF: id});
    control_plane().apply_yaml(&theirs.to_string());
    let namespace = &shop.bed.names.namespace;
    let output = shop.admin(&RENAME);
    let what = "does not have these objects, which carry its label";
    output.code(0).says(&format!("the inventory of the app shop {what}: configmap/theirs -n {namespace} (they get"));
    assert!(!output.stderr.contains("no sum"), "{}", output.stderr);

    // As a version wrote it that knew no sum, and with a line removed.
    let inventory = shop.get("store.gantry").expect("a record")["data"]["inventory"].as_str().expect("text").to_owned();
    let without = inventory.lines().filter(|line| line.split(' ').nth(3) != Some("b")).map(|line| format!("{line}\n"));
    let data = json!({"inventory": without.collect::<String>(), "inventory-sum": null});
    shop.patch("store.gantry", &json!({"data": data}));
    let output = shop.admin(&["apps", "rename", "-a", "store", "--to", "shop", "--yes"]);
    output.code(0).says(&format!("{what}: configmap/b -n {namespace}, configmap/theirs -n {namespace}"));
    output.says("the record has no sum, so they may have been in its inventory");
    for name in ["a", "b", "theirs"] {
        assert_eq!(shop.get(name).expect("it stays")["metadata"]["labels"][PART_OF], id, "{name}");
    }
}

//! Upgrades that narrow the schema of a live object: what gantry says before, and what happens to the writes of users
//! and of the controller afterwards.

use serde_json::{Value, json};

use super::{minor_version, tested_releases};
use crate::support::{Bed, ControlPlane, eventually};

#[test]
#[ignore = "builds API servers of several releases"]
fn a_narrowing_is_an_error_where_writes_that_do_not_touch_the_value_are_refused_afterwards() {
    for release in tested_releases() {
        let cp = ControlPlane::start_release(release);
        for part in ["spec", "status"] {
            narrow(&cp, release, part);
        }
    }
}

fn narrow(cp: &ControlPlane, release: &str, part: &str) {
    // A write of the object validates all of it; a write of the status validates the status.
    let minor = minor_version(release);
    let tolerates_object = minor >= 30;
    let tolerates_status = part == "spec" || minor >= 33;
    let refusal = match (tolerates_object, tolerates_status) {
        (true, true) => None,
        (true, false) => Some("is refused on any write of its status"),
        (false, _) => Some("is refused on any update, even of labels"),
    };
    let bed = Bed::on(cp);
    let wide = crd(&bed, "");
    let narrow = crd(&bed, part);
    bed.write_objects([&wide]);
    let deploy = |more: &[&str]| bed.deploy(cp.kubeconfig("admin"), &["-y", "--color", "never"]).args(more).run();
    deploy(&[]).code(0);
    // A user creates an object, and its controller writes the status.
    let one = bed.object(&format!("{}/v1", bed.names.group), "Sample", "one", json!({"spec": {"a": "x", "b": "x"}}));
    let kept = json!({"metadata": {"finalizers": ["example.com/f"]}});
    cp.apply_yaml(&one.to_string());
    let (object, status) = (bed.sample_path(), format!("{}/status", bed.sample_path()));
    assert_eq!(cp.patch(&object, &kept).0, 200);
    assert_eq!(cp.patch(&status, &json!({"status": {"a": "x", "b": "x"}})).0, 200);

    bed.write_objects([&narrow]);
    let checked = deploy(&["--preflight", "CustomResourceValidation"]);
    let said = checked.shown();
    println!("\n{release}, {part}.a becomes enum [y]: exit code {:?}\n{said}", checked.code);
    match refusal {
        None => drop(checked.code(0)),
        Some(words) => {
            assert_ne!(checked.code, Some(0), "{release}: {said}");
            assert!(said.contains(words), "{release}: {said}");
            // Nothing was written. Another tool writes it.
            assert_eq!(enums_of(&cp.get(&bed.crd_path()).1), enums_of(&wide), "{release}");
            cp.apply_yaml(&narrow.to_string());
        }
    }
    assert_eq!(enums_of(&cp.get(&bed.crd_path()).1), enums_of(&narrow), "{release}");
    eventually("the new schema is in use", || {
        let changed = json!({part: {"a": "z"}});
        let path = if part == "spec" { &object } else { &status };
        (cp.patch(&format!("{path}?dryRun=All"), &changed).0 == 422).then_some(())
    });

    let write = |what: &str, path: &str, patch: Value| {
        let (code, answer) = cp.patch(path, &patch);
        println!("{release}, {what}: {code} {}", answer["message"].as_str().unwrap_or_default());
        code
    };
    let of_user = [
        write("a user changes another field", &object, json!({"spec": {"b": "y"}})),
        write("a user sets a label", &object, json!({"metadata": {"labels": {"a": "b"}}})),
    ];
    let of_controller = write("the controller writes its status", &status, json!({"status": {"b": "y"}}));
    cp.delete(&object);
    let end = write("its finalizer is removed", &object, json!({"metadata": {"finalizers": []}}));
    let expected = |is_tolerated: bool| if is_tolerated { 200 } else { 422 };
    assert_eq!((of_user, end), ([expected(tolerates_object); 2], expected(tolerates_object)), "{release} {part}");
    assert_eq!(of_controller, expected(tolerates_status), "{release} {part}");
}

/// A CRD in which `a` of this part of the object has an enum.
fn crd(bed: &Bed, narrowed: &str) -> Value {
    let part = |name: &str| {
        let a = if name == narrowed { "{type: string, enum: [y]}" } else { "{type: string}" };
        format!("{name}: {{type: object, properties: {{a: {a}, b: {{type: string}}}}}}")
    };
    let text = bed.crd(&format!("{}, {}", part("spec"), part("status")));
    let mut crd: Value = serde_yaml::from_str(&text).expect("a CRD");
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    crd
}

fn enums_of(crd: &Value) -> [&Value; 2] {
    let fields = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    ["spec", "status"].map(|part| &fields[part]["properties"]["a"]["enum"])
}

//! The order of lists whose items are separate fields, after an apply: what gantry computes is what the API server
//! does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::support::{Bed, Proxy, control_plane};
use serde_json::{Value, json};

/// A set, a list with keys, and such a list in an item of another.
const LISTS: &str = "
  set: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 3}},
  keyed: {type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: &i {
    type: object, required: [k], properties: {k: {type: string, maxLength: 3}, v: {type: string, default: x}}}},
  outer: {type: array, maxItems: 2, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {
    type: object, required: [k], properties: {k: {type: string}, inner: {
      type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: *i}}}},
  other: {type: string}";

/// Rules that refuse every object and say in which order its lists are.
fn rules() -> String {
    let rule = |name: &str, list: &str, key: &str| {
        let item = |at: usize| format!("({list}.size() > {at} ? {list}[{at}]{key} : '')");
        let items: Vec<String> = (0..5).map(item).collect();
        json!({"rule": "false", "messageExpression": format!("'{name} ' + {}", items.join(" + "))})
    };
    let rules =
        [rule("set", "self.set", ""), rule("keyed", "self.keyed", ".k"), rule("inner", "self.outer[0].inner", ".k")];
    format!("x-kubernetes-validations: {}", json!(rules))
}

/// Every list without duplicates of these items, in every order.
fn every_list_of(items: &str) -> Vec<String> {
    let mut lists = vec![String::new()];
    let mut from = 0;
    while from < lists.len() {
        let longer = items.chars().filter(|item| !lists[from].contains(*item));
        let longer: Vec<String> = longer.map(|item| format!("{}{item}", lists[from])).collect();
        lists.extend(longer);
        from += 1;
    }
    lists.split_off(1)
}

/// One apply over a live object.
struct Case {
    name: String,
    live: &'static str,
    /// What gantry applied before, which another manager had applied in the order of `live`.
    before: String,
    /// Whether the other manager still has the items.
    is_shared: bool,
    applied: String,
}

/// Every short list over every other one, with the live items applied by gantry, by another manager, or by both. Only
/// the order counts, so the live list is always `abc…`.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (live, items) in [("ab", "abxy"), ("abc", "abcx"), ("abcd", "abcd")] {
        for applied in every_list_of(items) {
            let again: String = live.chars().filter(|item| applied.contains(*item)).collect();
            let befores = [("", true), (live, false), (&live[..2], true), (&again, true)];
            for (before, is_shared) in befores {
                let (name, before) = (format!("c{}", cases.len()), before.to_owned());
                cases.push(Case { name, live, before, is_shared, applied: applied.clone() });
            }
        }
    }
    cases
}

impl Case {
    fn object(&self, bed: &Bed, list: &str, other: &str) -> Value {
        let set: Vec<String> = list.chars().map(String::from).collect();
        let keyed: Vec<Value> = set.iter().map(|key| json!({"k": key})).collect();
        json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
            "metadata": {"name": self.name, "namespace": bed.names.namespace},
            "spec": {"set": set, "keyed": keyed, "outer": [{"k": "o", "inner": keyed}], "other": other}})
    }

    fn apply(&self, bed: &Bed, manager: &str, list: &str, other: &str) -> (u16, Value) {
        let object = self.object(bed, list, other);
        control_plane().server_side_apply(&control_plane().path_of(&object), &format!("{manager}&force=true"), &object)
    }
}

/// A bed with the live objects of all cases.
fn live_objects(cases: &[Case]) -> Bed {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&format!(
        "{}---\n{}",
        bed.namespace(),
        bed.crd(&format!("spec: {{type: object, properties: {{{LISTS}}}}}"))
    ));
    for case in cases {
        for (manager, list) in [("tool", case.live), ("gantry", &*case.before)] {
            if !list.is_empty() && (manager == "gantry" || case.is_shared || case.before != case.live) {
                let (status, answer) = case.apply(&bed, manager, list, "same");
                assert!(status < 300, "{}: {answer:#}", case.name);
            }
        }
    }
    bed
}

fn write_all(bed: &Bed, cases: &[Case], other: &str) {
    let mut manifests = String::new();
    for case in cases {
        let _ = write!(manifests, "---\n{}\n", case.object(bed, &case.applied, other));
    }
    bed.write("manifests.yaml", &manifests);
}

/// The orders that messages state: `set abc`.
fn orders<'m>(messages: impl Iterator<Item = &'m str>) -> BTreeSet<String> {
    let order = |message: &str| {
        let name = ["set ", "keyed ", "inner "].into_iter().find(|name| message.contains(*name))?;
        Some(message[message.find(name)?..].to_owned())
    };
    messages.filter_map(order).collect()
}

/// Both tests use the same live objects, which neither of them changes: it takes a thousand requests to create them.
#[test]
fn a_merged_list_has_the_order_of_the_server() {
    let cases = cases();
    let bed = live_objects(&cases);
    the_plan_updates_what_the_server_would_change(&bed, &cases);
    the_check_sees_the_order_that_the_server_gives(&bed, &cases);
}

/// `CustomResourceValidation` validates the object as it will be. A rule says in which order that is.
fn the_check_sees_the_order_that_the_server_gives(bed: &Bed, cases: &[Case]) {
    let cp = control_plane();
    cp.apply_yaml(&bed.crd(&format!("spec: {{type: object, {}, properties: {{{LISTS}}}}}", rules())));
    write_all(bed, cases, "another");
    let flags =
        ["check", "-f", "manifests.yaml", "--preflight", "CustomResourceValidation", "--force-conflicts", "-o", "json"];
    let report = bed.gantry(cp.kubeconfig("admin"), &flags).run().code(3).report();
    let findings = report["checks"][0]["findings"].as_array().expect("findings");
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for finding in findings {
        let name = finding["object"]["name"].as_str().expect("a name");
        found.entry(name).or_default().push(finding["message"].as_str().expect("a message"));
    }
    for case in cases {
        let (status, answer) = case.apply(bed, "gantry&dryRun=All", &case.applied, "another");
        assert_eq!(status, 422, "{answer:#}");
        let causes = answer["details"]["causes"].as_array().expect("causes").iter();
        let expected = orders(causes.filter_map(|cause| cause["message"].as_str()));
        assert_eq!(expected.len(), 3, "{answer:#}");
        let gantry = orders(found.remove(case.name.as_str()).into_iter().flatten());
        assert_eq!(gantry, expected, "{} over {}, before {:?}", case.applied, case.live, case.before);
    }
}

/// The plan has an update for exactly those objects that the server would change, also if only an order changes.
fn the_plan_updates_what_the_server_would_change(bed: &Bed, cases: &[Case]) {
    let cp = control_plane();
    write_all(bed, cases, "same");
    let proxy = Proxy::start(cp);
    let flags = ["deploy", "-f", "manifests.yaml", "--dry-run", "--force-conflicts", "-o", "json"];
    let flags = [&flags[..], &["--preflight", "CRDUpgradeSafety"]].concat();
    let report = bed.gantry(proxy.kubeconfig("admin"), &flags).run().code(0).report();
    let mut actions = BTreeMap::new();
    for change in report["changes"].as_array().expect("changes") {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        actions.insert(text(&change["object"]["name"]), text(&change["action"]));
    }
    let (mut kept, mut reordered) = (0, 0);
    for case in cases {
        let object = case.object(bed, &case.applied, "same");
        let without_times = |mut object: Value| {
            for entry in object["metadata"]["managedFields"].as_array_mut().expect("managed fields") {
                entry["time"].take();
            }
            object["metadata"]["generation"].take();
            object
        };
        let live = without_times(cp.get(&cp.path_of(&object)).1);
        let (status, next) = case.apply(bed, "gantry&dryRun=All", &case.applied, "same");
        assert_eq!(status, 200, "{next:#}");
        let next = without_times(next);
        let expected = if next == live { "unchanged" } else { "update" };
        let action = actions.get(&case.name).map(String::as_str);
        assert_eq!(action, Some(expected), "{} over {}, before {:?}", case.applied, case.live, case.before);
        kept += usize::from(next == live);
        let sorted = |list: &str| list.chars().collect::<BTreeSet<char>>();
        reordered += usize::from(next != live && sorted(&case.before) == sorted(&case.applied));
    }
    assert!(kept > 30 && reordered > 80, "{kept} are unchanged, in {reordered} only the order changes");
    let asked = proxy.requests().iter().filter(|request| request.query.contains("dryRun")).count();
    assert_eq!(asked, reordered, "the server is asked only if an order changes and nothing else does");
}

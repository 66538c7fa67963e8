//! Taking an object over from the tools that deployed it: their fields become fields of the manager that applies now,
//! so that its apply has no conflict with them and removes those that the manifest does not set.
//!
//! `kubectl apply --server-side` treats the fields of a former client-side apply in the same way.
//! Source: `UpgradeManagedFields` of `k8s.io/client-go/util/csaupgrade`.

use serde_json::{Map, Value, json};

use super::intent::intent;
use super::tools::{self, UNRECORDED};
use crate::managed_fields::{FieldSet, ListItemKey, ManagerEntry, ManagerOperation, MergePathStep};
use crate::resource::{HELM_NAMESPACE, HELM_RELEASE, MANAGED_BY};

/// Fields that controllers work with, whichever tool wrote them: they stay as they are.
const KEPT: [&[&str]; 3] = [&["metadata", "finalizers"], &["metadata", "ownerReferences"], &["status"]];

/// Fields that Helm adds to each of its objects, and no manifest contains.
const ADDED_BY_HELM: [&[&str]; 3] = [
    &["metadata", "labels", MANAGED_BY],
    &["metadata", "annotations", HELM_RELEASE],
    &["metadata", "annotations", HELM_NAMESPACE],
];

/// Another manager, and its fields.
#[derive(Debug)]
pub struct OtherOwner {
    pub manager: String,
    /// Whether it wrote the status.
    pub is_of_status: bool,
    pub fields: FieldSet,
}

/// `metadata.managedFields` before or after a take-over, by whose fields they are.
#[derive(Debug, Default)]
pub struct Owners {
    /// The fields of the manager that applies.
    pub ours: FieldSet,
    /// The fields that are taken over from deploy tools.
    pub taken: FieldSet,
    /// The deploy tools; empty if none is among the managers.
    pub tools: Vec<&'static str>,
    /// The managers whose fields stay theirs.
    pub others: Vec<OtherOwner>,
    /// The entries after the take-over, except that of the manager that applies.
    left: Vec<Value>,
    our_entry: Option<Value>,
    /// When the last of the tools wrote.
    time: Option<Value>,
}

/// The fields of a live object that is a manifest, of a folder or a commit: neither a server nor an apply has recorded
/// anything in it. They count as applied by the manager that applies the next version, so what that lacks is removed. `None` for
/// other objects.
pub fn fields_of_manifest(object: &Value) -> Option<FieldSet> {
    let metadata = &object["metadata"];
    let is_recorded = metadata["uid"].is_string() || ManagerEntry::all(object).next().is_some();
    (metadata["name"].is_string() && !is_recorded).then(|| applied_fields(&intent(object.clone(), true)))
}

/// Whether a live object [that is a manifest](fields_of_manifest) has fields that the next version lacks. Empty ones, and
/// what the server fills in, do not count.
pub fn gives_up_fields(live: &Value, desired: &Value) -> bool {
    let mut live = live.clone();
    remove_blanks(&mut live);
    if live["kind"] == "CustomResourceDefinition" {
        remove_crd_defaults(&mut live);
    }
    fields_of_manifest(&live).is_some_and(|mut fields| {
        fields.subtract_existing(desired);
        !fields.is_empty()
    })
}

/// The live object without what was applied, if it [is a manifest](fields_of_manifest).
pub(super) fn without_applied(live: &Value) -> Option<Value> {
    let taken = fields_of_manifest(live)?;
    let mut rest = live.clone();
    Owners { taken, ..Owners::default() }.strip(&mut rest);
    Some(rest)
}

/// Removes what says nothing: null, and empty maps and lists.
fn remove_blanks(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| {
            remove_blanks(value);
            !(value.is_null() || *value == json!({}) || *value == json!([]))
        });
    }
}

/// Removes what the server fills in, which every CRD that is read from a folder has.
fn remove_crd_defaults(crd: &mut Value) {
    let spec = &crd["spec"];
    let kind = spec["names"]["kind"].as_str().unwrap_or_default();
    let defaults = [
        ("/spec", "conversion", json!({"strategy": "None"})),
        ("/spec/names", "listKind", json!(format!("{kind}List"))),
        ("/spec/names", "singular", json!(kind.to_lowercase())),
        ("/spec/conversion/webhook/clientConfig/service", "port", json!(443)),
    ];
    for (parent, field, default) in defaults {
        if let Some(Value::Object(parent)) = crd.pointer_mut(parent)
            && parent.get(field) == Some(&default)
        {
            parent.shift_remove(field);
        }
    }
}

/// The fields that applying this manifest records for its manager, if its schema is unknown.
pub fn applied_fields(intent: &Value) -> FieldSet {
    let mut fields = FieldSet::of_manifest(intent);
    for path in [&["apiVersion"][..], &["kind"], &["metadata", "name"], &["metadata", "namespace"]] {
        let path: Vec<MergePathStep> = path.iter().map(|name| MergePathStep::Field((*name).to_owned())).collect();
        fields.remove(&path);
    }
    fields
}

impl Owners {
    /// The owners of the fields of a live object. `api_version` is the version that is applied.
    pub fn of_object(object: &Value, manager: &str, api_version: &str) -> Self {
        // Nothing says what a writer without a record set itself, and what the server filled in.
        let tool_of = |entry: ManagerEntry<'_>, fields: &FieldSet| {
            tools::tool_of(entry, fields).filter(|_| entry.manager() != UNRECORDED)
        };
        Self::with_tools(object, manager, api_version, &KEPT, tool_of)
    }

    /// The owners for an upgrade by Helm, which writes as `manager`: the fields that Helm wrote by plain updates are taken
    /// over, and those of no other tool. It stands in for the record of the release: Helm merges the last version, the new
    /// one and the live object, and removes what the last version had and the new one lacks. The server has recorded as Helm's also what it filled in, and fills it in
    /// again.
    ///
    /// Source: `createPatch` in `pkg/kube/client.go` of Helm 3.
    pub fn of_helm(object: &Value, manager: &str, api_version: &str) -> Self {
        let tool_of = |entry: ManagerEntry<'_>, fields: &FieldSet| {
            let is_plain = entry.operation() == ManagerOperation::Update && entry.subresource().is_empty();
            (is_plain && (entry.manager() == manager || tools::owns_helm_release(fields))).then_some("helm")
        };
        let kept: Vec<&[&str]> = KEPT.into_iter().chain(ADDED_BY_HELM).collect();
        Self::with_tools(object, manager, api_version, &kept, tool_of)
    }

    fn with_tools(
        object: &Value,
        manager: &str,
        api_version: &str,
        kept: &[&[&str]],
        tool_of: impl Fn(ManagerEntry<'_>, &FieldSet) -> Option<&'static str>,
    ) -> Self {
        let mut owners = Owners::default();
        for entry in ManagerEntry::all(object) {
            if entry.is_apply_of(manager) {
                (owners.ours, owners.our_entry) = (entry.fields(), Some(entry.value().clone()));
                continue;
            }
            let fields = entry.fields();
            match tool_of(entry, &fields) {
                Some(tool) => owners.take_over(entry, fields, tool, object, api_version, kept),
                None => {
                    owners.left.push(entry.value().clone());
                    let is_of_status = entry.subresource() == "status";
                    owners.others.push(OtherOwner { manager: entry.manager().to_owned(), is_of_status, fields });
                }
            }
        }
        owners.ours.add(&fields_of_manifest(object).unwrap_or_default());
        // The fields of the two versions cannot be in one entry. The next deploy finds ours at the same version.
        let is_at_another = |entry: &Value| entry["apiVersion"] != api_version;
        if owners.our_entry.as_ref().is_some_and(is_at_another) {
            (owners.taken, owners.tools) = Default::default();
        }
        owners
    }

    /// Takes over the fields of a deploy tool, except those that are kept.
    fn take_over(
        &mut self,
        entry: ManagerEntry<'_>,
        mut fields: FieldSet,
        tool: &'static str,
        object: &Value,
        api_version: &str,
        paths_kept: &[&[&str]],
    ) {
        let mut kept = FieldSet::default();
        for path in paths_kept {
            kept.add(&fields.split_off(path));
        }
        if entry.api_version() != api_version {
            fields.retain_existing(object);
        }
        if !fields.is_empty() {
            self.taken.add(&fields);
            self.tools.push(tool);
        }
        if !kept.is_empty() {
            self.left.push(entry.with_fields(&kept));
            self.others.push(OtherOwner { manager: entry.manager().to_owned(), is_of_status: true, fields: kept });
        }
        let time = entry.value().get("time");
        if time.and_then(Value::as_str) > self.time.as_ref().and_then(Value::as_str) {
            self.time = time.cloned();
        }
    }

    /// The entries of `managedFields` after the take-over; `None` if no deploy tool is among the managers.
    pub fn handed_over(&self, manager: &str, api_version: &str) -> Option<Vec<Value>> {
        if self.tools.is_empty() {
            return None;
        }
        let mut fields = self.ours.clone();
        fields.add(&self.taken);
        let ours = self.our_entry.clone().unwrap_or_else(|| {
            let mut entry =
                json!({"manager": manager, "operation": "Apply", "apiVersion": api_version, "fieldsType": "FieldsV1"});
            if let Some(time) = &self.time {
                entry["time"] = time.clone();
            }
            entry
        });
        let ours = ManagerEntry::new(&ours).with_fields(&fields);
        Some(self.left.iter().cloned().chain([ours]).collect())
    }

    /// The entries without those of the tools, if our own stays as it is.
    pub fn without_tools(&self) -> Vec<Value> {
        self.left.iter().chain(&self.our_entry).cloned().collect()
    }

    /// The fields of the tools that an apply removes: neither our manager nor another one has them. `self` has the
    /// fields that our manager sets.
    pub fn given_up(&self) -> FieldSet {
        let mut fields = self.taken.clone();
        fields.subtract(&self.ours);
        for other in &self.others {
            fields.subtract(&other.fields);
        }
        fields
    }

    /// Removes from `object` the fields that an apply removes: see [`Owners::given_up`]. Without the schema, what only
    /// the server filled in goes with the map that it is in.
    pub fn strip(&self, object: &mut Value) {
        let mut kept = self.ours.clone();
        for other in &self.others {
            kept.add(&other.fields);
        }
        let given_up = self.given_up();
        // Name and namespace have no owner.
        if let (Some(metadata), Some(set)) = (object.get_mut("metadata"), given_up.field("metadata")) {
            strip(metadata, set, kept.field("metadata"));
        }
        let mut rest = given_up;
        rest.split_off(&["metadata"]);
        strip(object, &rest, Some(&kept));
    }
}

fn strip(value: &mut Value, set: &FieldSet, kept: Option<&FieldSet>) {
    let has_owner = |kept: Option<&FieldSet>| kept.is_some_and(|kept| !kept.is_empty());
    match value {
        Value::Object(map) => strip_fields(map, set, kept, has_owner),
        Value::Array(list) => {
            for (item, below) in set.items() {
                let of_item = kept.and_then(|kept| kept.item(item));
                let Some(at) = list.iter().position(|known| item.identifies(known)) else { continue };
                match item {
                    _ if !has_owner(of_item) => drop(list.remove(at)),
                    ListItemKey::Keys(_) => strip(&mut list[at], below, of_item),
                    ListItemKey::Value(_) | ListItemKey::Index(_) | ListItemKey::Other(_) => {}
                }
            }
        }
        _ => {}
    }
}

fn strip_fields(
    map: &mut Map<String, Value>,
    set: &FieldSet,
    kept: Option<&FieldSet>,
    has_owner: impl Fn(Option<&FieldSet>) -> bool,
) {
    for (name, below) in set.fields() {
        let of_field = kept.and_then(|kept| kept.field(name));
        if !has_owner(of_field) {
            map.shift_remove(name);
        } else if let Some(value) = map.get_mut(name) {
            strip(value, below, of_field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, version: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsV1": fields})
    }

    fn object(entries: Value) -> Value {
        json!({"metadata": {"managedFields": entries, "labels": {"a": "1", "b": "1"}},
            "data": {"a": "1", "b": "1", "c": "1"}, "spec": {"containers": [{"name": "x"}, {"name": "y", "image": "i"}]}})
    }

    #[test]
    fn the_fields_of_tools_become_ours_and_those_of_others_stay() {
        let helm = entry(
            "helm",
            "Apply",
            "v1",
            json!({"f:data": {"f:b": {}}, "f:metadata": {"f:finalizers": {"v:\"x\"": {}}}}),
        );
        let edited = entry("kubectl-edit", "Update", "v1", json!({"f:data": {"f:c": {}}}));
        let ours = entry("gantry", "Apply", "v1", json!({"f:data": {"f:a": {}}}));
        let object = object(json!([helm, edited, ours]));
        let owners = Owners::of_object(&object, "gantry", "v1");
        assert_eq!(owners.tools, ["helm"]);
        let finalizers = entry("helm", "Apply", "v1", json!({"f:metadata": {"f:finalizers": {"v:\"x\"": {}}}}));
        let both = entry("gantry", "Apply", "v1", json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(owners.handed_over("gantry", "v1").unwrap(), [finalizers, edited, both]);
    }

    #[test]
    fn nothing_is_handed_over_without_a_former_deploy_tool() {
        let edited = entry("kubectl-edit", "Update", "v1", json!({"f:data": {"f:c": {}}}));
        let unrecorded = entry(UNRECORDED, "Update", "v1", json!({"f:data": {"f:b": {}}}));
        let owners = Owners::of_object(&object(json!([edited, unrecorded])), "gantry", "v1");
        assert_eq!(owners.handed_over("gantry", "v1"), None);
        let other_version = entry("gantry", "Apply", "v1beta1", json!({"f:data": {"f:a": {}}}));
        let helm = entry("helm", "Apply", "v1", json!({"f:data": {"f:b": {}}}));
        let owners = Owners::of_object(&object(json!([other_version, helm])), "gantry", "v1");
        assert_eq!(owners.handed_over("gantry", "v1"), None);
    }

    #[test]
    fn only_existing_fields_of_an_entry_at_another_version_are_taken_over() {
        let helm = entry("helm", "Apply", "v1beta1", json!({"f:data": {"f:b": {}, "f:gone": {}}}));
        let owners = Owners::of_object(&object(json!([helm])), "gantry", "v1");
        assert_eq!(owners.taken.to_json(), json!({"f:data": {"f:b": {}}}));
    }

    #[test]
    fn fields_that_are_handed_over_are_removed_unless_another_manager_owns_them() {
        let bare = json!({"metadata": {"name": "x", "annotations": {"a": "1"}, "managedFields": [entry("helm", "Apply", "v1",
            json!({"f:metadata": {"f:annotations": {"f:a": {}}}}))]}});
        let mut stripped = bare.clone();
        Owners::of_object(&bare, "gantry", "v1").strip(&mut stripped);
        assert_eq!((&stripped["metadata"]["name"], stripped["metadata"].get("annotations")), (&json!("x"), None));

        let item = |name: &str| format!("k:{{\"name\":\"{name}\"}}");
        let tool = entry(
            "kubectl-client-side-apply",
            "Update",
            "v1",
            json!({
            "f:data": {".": {}, "f:a": {}, "f:b": {}, "f:c": {}}, "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {item("x"): {".": {}, "f:name": {}}, item("y"): {".": {}, "f:name": {}, "f:image": {}}}}}),
        );
        let ours = entry(
            "gantry",
            "Apply",
            "v1",
            json!({"f:data": {"f:a": {}},
            "f:spec": {"f:containers": {item("y"): {".": {}, "f:name": {}}}}}),
        );
        let edited = entry(
            "kubectl-edit",
            "Update",
            "v1",
            json!({"f:data": {"f:c": {}}, "f:metadata": {"f:labels": {"f:b": {}}}}),
        );
        let mut object = object(json!([tool, ours, edited]));
        Owners::of_object(&object.clone(), "gantry", "v1").strip(&mut object);
        assert_eq!(object["data"], json!({"a": "1", "c": "1"}));
        assert_eq!(object["metadata"]["labels"], json!({"b": "1"}));
        assert_eq!(object["spec"], json!({"containers": [{"name": "y"}]}));
    }
}

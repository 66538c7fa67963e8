//! What the last run applied, as recorded in the parent. With it the next run recognizes from metadata alone which
//! members still match the manifests, and does not read the rest of these.
//!
//! The mark of a member is a hash of its manifest and of the server's metadata at a time when the object matched the
//! manifest exactly. Both are compared again: an edited manifest has another hash, and so does an object that anyone
//! has written. A mark that does not match costs a read of the object, nothing else.
//!
//! An object with `metadata.generation`
//! (<https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/>) can get another status. For
//! these, the generation, labels, annotations, owners, finalizers and the entry of gantry's field manager are compared.
//! For all others, every write counts, by the resourceVersion.
//!
//! Secrets have no mark: someone who can read the parent but not the Secret could test guesses against it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{Context, SHA256, digest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::AppMember;
use gantry_core::managed_fields::{ManagerEntryHead, ManagerOperation};
use gantry_core::resource::{ObjectRef, RawObject};
use gantry_schema::scan;

/// The version of the format. Marks with another number, or of another version of gantry, do not count.
const FORMAT: &str = concat!("1/", env!("CARGO_PKG_VERSION"));
/// The bytes of a hash, enough to make collisions infeasible.
const BYTES: usize = 15;
/// An object of the API server has at most 1 MiB of data, most of which belongs to the inventory.
const MOST: usize = 1000 << 10;
/// A member without a mark.
const NONE: &str = "-";

/// The hash of a manifest and of the metadata of the live object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

/// The marks of the last run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastApplied {
    /// The checksum of its files: if they differ, the marks are ignored. See [`gantry_core::manifest::Input::sum`].
    pub input: String,
    /// The mark of each member that has one, by its uid.
    pub marks: BTreeMap<String, Mark>,
}

/// Whether unchanged metadata means that an object still matches its manifest: kinds that are ready as soon as they
/// exist, and of which controllers write only the status. CRDs get a mark only after the run has waited for them.
pub fn is_kept(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "ConfigMap" | "LimitRange" | "ServiceAccount")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("networking.k8s.io", "IngressClass" | "NetworkPolicy")
            | ("rbac.authorization.k8s.io", "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("storage.k8s.io", "CSIDriver" | "StorageClass")
    )
}

/// Whether objects of such a kind are namespaced.
pub fn is_namespaced(group: &str, kind: &str) -> bool {
    match group {
        "" => true,
        "networking.k8s.io" => kind == "NetworkPolicy",
        "rbac.authorization.k8s.io" => matches!(kind, "Role" | "RoleBinding"),
        _ => false,
    }
}

/// Whether controllers write fields that the manifest omits: the CA bundle of a webhook, the rules of an aggregated
/// role.
fn is_written_by_others(object: &ObjectRef, manifest: &str) -> bool {
    match object.kind.as_str() {
        "CustomResourceDefinition" => manifest.contains("\"Webhook\""),
        "ClusterRole" => manifest.contains("\"aggregationRule\""),
        _ => false,
    }
}

impl Mark {
    /// The mark of an object that matches its manifest, from the JSON of the live object or of its metadata alone.
    /// `None` if its metadata cannot show whether it stays so.
    pub fn compute(object: &ObjectRef, manifest: &RawObject, live: &str, field_manager: &str) -> Option<Self> {
        let manifest = manifest.json();
        if !is_kept(object.group(), &object.kind) || is_written_by_others(object, &manifest) {
            return None;
        }
        let mut hash = Context::new(&SHA256);
        hash.update(digest(&SHA256, manifest.as_bytes()).as_ref());
        metadata(live, field_manager, &mut hash)?;
        Some(Mark(text(hash.finish().as_ref())))
    }
}

/// Adds the parts of an object's metadata that must not change.
fn metadata(live: &str, field_manager: &str, hash: &mut Context) -> Option<()> {
    #[derive(Deserialize)]
    struct LastAppliedObject<'a> {
        #[serde(borrow)]
        metadata: LastAppliedMetadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct LastAppliedMetadata<'a> {
        #[serde(borrow)]
        uid: Cow<'a, str>,
        #[serde(borrow)]
        resource_version: Cow<'a, str>,
        #[serde(default)]
        generation: Option<u64>,
        #[serde(default)]
        deletion_timestamp: Option<IgnoredAny>,
        #[serde(borrow, default)]
        labels: Option<&'a RawValue>,
        #[serde(borrow, default)]
        annotations: Option<&'a RawValue>,
        #[serde(borrow, default)]
        finalizers: Option<&'a RawValue>,
        #[serde(borrow, default)]
        owner_references: Option<&'a RawValue>,
        #[serde(borrow, default)]
        managed_fields: Vec<&'a RawValue>,
    }
    let LastAppliedObject { metadata } = serde_json::from_str(live).ok()?;
    if metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut add = |part: &str| {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    };
    add(&metadata.uid);
    match metadata.generation {
        Some(generation) => add(&format!("generation {generation}")),
        None => add(&format!("resourceVersion {}", metadata.resource_version)),
    }
    let LastAppliedMetadata { labels, annotations, finalizers, owner_references, .. } = metadata;
    for part in [labels, annotations, finalizers, owner_references] {
        add(part.map_or("", RawValue::get));
    }
    let is_ours = |entry: &&&RawValue| {
        serde_json::from_str::<ManagerEntryHead<'_>>(entry.get())
            .is_ok_and(|entry| entry.manager == field_manager && entry.operation() == ManagerOperation::Apply)
    };
    let mut ours = metadata.managed_fields.iter().filter(is_ours).peekable();
    // Without managed fields it is unknown who wrote it.
    ours.peek()?;
    ours.for_each(|entry| add(entry.get()));
    Some(())
}

impl LastApplied {
    /// The text to store beside an inventory: a header line, and the mark of each member in the inventory's order.
    /// `None` if it does not fit.
    pub fn encode(&self, members: &BTreeSet<AppMember>, inventory: &str) -> Option<String> {
        let mut lines = self.first_line(inventory);
        for member in members {
            lines.push('\n');
            lines.push_str(self.marks.get(&member.uid).map_or(NONE, |mark| &mark.0));
        }
        (inventory.len() + lines.len() <= MOST).then_some(lines)
    }

    /// Reads the text beside an inventory; `None` if it belongs to another inventory or has another version.
    pub fn decode(kept: &str, members: &BTreeSet<AppMember>, inventory: &str) -> Option<Self> {
        let (head, marks) = kept.split_once('\n').unwrap_or((kept, ""));
        let input = head.rsplit(' ').next().unwrap_or_default().to_owned();
        let read = LastApplied { input, ..LastApplied::default() };
        if head != read.first_line(inventory) || marks.lines().count() != members.len() {
            return None;
        }
        let mark =
            |(member, mark): (&AppMember, &str)| (mark != NONE).then(|| (member.uid.clone(), Mark(mark.to_owned())));
        Some(LastApplied { marks: members.iter().zip(marks.lines()).filter_map(mark).collect(), ..read })
    }

    fn first_line(&self, inventory: &str) -> String {
        format!("{FORMAT} {} {}", text(digest(&SHA256, inventory.as_bytes()).as_ref()), self.input)
    }
}

/// A live object of which only the metadata was read, reconstructed from its manifest and that metadata.
pub fn reconstruct_live(manifest: &RawObject, metadata: &str) -> Option<RawObject> {
    let manifest = manifest.json();
    let written = scan::member(&manifest, "metadata")?;
    let live = scan::member(metadata, "metadata")?;
    let start = written.as_ptr() as usize - manifest.as_ptr() as usize;
    Some(RawObject::new(format!("{}{live}{}", &manifest[..start], &manifest[start + written.len()..])))
}

fn text(hash: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(&hash[..BYTES])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crd() -> ObjectRef {
        ObjectRef::crd("a.b.c")
    }

    fn live() -> Value {
        json!({"metadata": {
            "uid": "u", "resourceVersion": "7", "generation": 2, "labels": {"a": "b"}, "managedFields": [
                {"manager": "gantry", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {}}},
                {"manager": "kube-apiserver", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            ],
        }})
    }

    fn mark(manifest: &Value, live: &Value) -> Option<Mark> {
        Mark::compute(&crd(), &RawObject::from_value(manifest), &live.to_string(), "gantry")
    }

    #[test]
    fn a_mark_matches_until_the_manifest_or_the_object_changes() {
        let manifest = json!({"spec": {"scope": "Namespaced"}});
        let before = mark(&manifest, &live());
        assert!(before.is_some());
        // A status write: a new resourceVersion, a new entry of another manager.
        let same: [fn(&mut Value); 3] = [
            |live| live["metadata"]["resourceVersion"] = "8".into(),
            |live| live["metadata"]["managedFields"][1]["time"] = "2026-01-02T00:00:00Z".into(),
            |live| live["status"] = json!({"conditions": []}),
        ];
        for change in same {
            let mut live = live();
            change(&mut live);
            assert_eq!(mark(&manifest, &live), before, "{live}");
        }
        let other: [fn(&mut Value); 8] = [
            |live| live["metadata"]["uid"] = "v".into(),
            |live| live["metadata"]["generation"] = 3.into(),
            |live| live["metadata"]["labels"]["a"] = "c".into(),
            |live| live["metadata"]["annotations"] = json!({"x": "y"}),
            |live| live["metadata"]["finalizers"] = json!(["x"]),
            |live| live["metadata"]["managedFields"][0]["time"] = "2026-01-02T00:00:00Z".into(),
            |live| live["metadata"]["managedFields"][0]["manager"] = "helm".into(),
            |live| live["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into(),
        ];
        for change in other {
            let mut live = live();
            change(&mut live);
            assert_ne!(mark(&manifest, &live), before, "{live}");
        }
        assert_ne!(mark(&json!({"spec": {"scope": "Cluster"}}), &live()), before);
    }

    #[test]
    fn every_write_changes_the_mark_of_an_object_without_a_generation() {
        let (mut before, manifest) = (live(), json!({"data": {}}));
        before["metadata"]["generation"].take();
        let mut after = before.clone();
        after["metadata"]["resourceVersion"] = "8".into();
        assert!(mark(&manifest, &before).is_some());
        assert_ne!(mark(&manifest, &before), mark(&manifest, &after));
    }

    #[test]
    fn an_object_that_a_controller_fills_in_has_no_mark() {
        let webhook = json!({"spec": {"conversion": {"strategy": "Webhook"}}});
        assert_eq!(mark(&webhook, &live()), None);
        let manifest = RawObject::from_value(&json!({"aggregationRule": {}}));
        let of = |kind: &str, api_version: &str| {
            let object = ObjectRef { kind: kind.into(), api_version: api_version.into(), ..crd() };
            Mark::compute(&object, &manifest, &live().to_string(), "gantry")
        };
        assert_eq!(of("ClusterRole", "rbac.authorization.k8s.io/v1"), None);
        assert_eq!(of("Deployment", "apps/v1"), None);
        assert!(of("ConfigMap", "v1").is_some());
    }

    #[test]
    fn marks_are_read_beside_the_inventory_that_they_were_written_with() {
        let member = |name: &str| AppMember {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: None,
            name: name.into(),
            uid: format!("uid-{name}"),
            adopted: false,
            keep: None,
        };
        let members: BTreeSet<AppMember> = ["a", "b", "c"].map(member).into();
        let marks = [("uid-a".to_owned(), Mark("A".into())), ("uid-c".to_owned(), Mark("C".into()))].into();
        let last = LastApplied { input: "in".into(), marks };
        let kept = last.encode(&members, "lines").unwrap();
        assert_eq!(LastApplied::decode(&kept, &members, "lines"), Some(last.clone()));
        assert_eq!(LastApplied::decode(&kept, &members, "other lines"), None);
        assert_eq!(LastApplied::decode(kept.rsplit_once('\n').unwrap().0, &members, "lines"), None);
        assert_eq!(LastApplied::decode(&kept.replacen("1/", "2/", 1), &members, "lines"), None);
        assert_eq!(LastApplied::decode("", &members, "lines"), None);
        // Too much for one object.
        assert_eq!(last.encode(&members, &"x".repeat(MOST)), None);
    }

    #[test]
    fn a_whole_object_is_the_manifest_with_the_live_metadata() {
        let manifest = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"metadata": "x"}});
        let made = reconstruct_live(&RawObject::from_value(&manifest), &live().to_string()).unwrap().value();
        assert_eq!(made["metadata"], live()["metadata"]);
        assert_eq!((&made["kind"], &made["data"]), (&manifest["kind"], &manifest["data"]));
    }
}

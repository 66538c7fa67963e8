//! The metadata of a listed object that a migration needs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use gantry_cluster::storage::RewriteMethod;
use gantry_core::crd::Crd;
use gantry_core::managed_fields::{ManagerEntry, ManagerEntryHead, ManagerOperation};
use gantry_core::resource::{ObjectRef, Resource};

/// The number of objects on one page of a list of metadata.
pub const PAGE_OF_METADATA: u32 = 2000;

/// A listed object, read without its content.
#[derive(Debug)]
pub struct ListedMetadata {
    /// `None` if it is cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// As the server sent it.
    pub resource_version: String,
    /// How to write it.
    pub method: StoredMethod,
    /// `metadata.managedFields` as JSON.
    pub managed_fields: String,
}

/// The owned form of a [`RewriteMethod`].
#[derive(Debug)]
pub enum StoredMethod {
    /// See [`RewriteMethod::EmptyApply`].
    EmptyApply,
    /// See [`RewriteMethod::EmptyPatch`].
    EmptyPatch,
    /// See [`RewriteMethod::PatchManagedFields`].
    PatchManagedFields(Value),
}

impl StoredMethod {
    /// For a request.
    pub fn borrow(&self) -> RewriteMethod<'_> {
        match self {
            Self::EmptyApply => RewriteMethod::EmptyApply,
            Self::EmptyPatch => RewriteMethod::EmptyPatch,
            Self::PatchManagedFields(fields) => RewriteMethod::PatchManagedFields(fields),
        }
    }
}

#[derive(Deserialize)]
struct ListedItem<'a> {
    #[serde(borrow)]
    metadata: ItemMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata<'a> {
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, default)]
    managed_fields: Option<Vec<&'a RawValue>>,
}

impl ListedMetadata {
    /// Reads an item of a list of this kind. `None` if it has no name, uid or resourceVersion.
    pub fn read(item: &str, crd: &Crd, requested: &Resource) -> Option<Self> {
        let ListedItem { metadata } = serde_json::from_str(item).ok()?;
        let entries = metadata.managed_fields.unwrap_or_default();
        let method = match entries.as_slice() {
            [] => StoredMethod::EmptyPatch,
            entries if entries.iter().any(|entry| is_at_unserved_version(entry.get(), crd)) => {
                StoredMethod::PatchManagedFields(moved_entries(entries, crd, requested))
            }
            _ => StoredMethod::EmptyApply,
        };
        Some(ListedMetadata {
            namespace: metadata.namespace.map(Cow::into_owned).filter(|name| !name.is_empty()),
            name: metadata.name.into_owned(),
            uid: metadata.uid.into_owned(),
            resource_version: metadata.resource_version.into_owned(),
            method,
            managed_fields: format!("[{}]", entries.iter().map(|entry| entry.get()).collect::<Vec<_>>().join(",")),
        })
    }

    /// The resourceVersion as a number. The server compares them as such.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }

    /// Whether entries of its `managedFields` are to be moved to another version.
    pub fn moves_entries(&self) -> bool {
        matches!(self.method, StoredMethod::PatchManagedFields(_))
    }

    /// The object at the version of a resource.
    pub fn reference(&self, resource: &Resource) -> ObjectRef {
        ObjectRef {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// `team-a/batch`
    pub fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The longest name that the server accepts for a field manager, without room for a number.
const MAX_MANAGER: usize = 110;

/// This name, or one made from it, that has applied nothing by these `managedFields`: an apply that sets nothing removes
/// what the same manager applied before and nobody else owns.
/// Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields>
pub fn name_without_fields(managed_fields: &str, field_manager: &str) -> String {
    let entries: Vec<ManagerEntryHead<'_>> = serde_json::from_str(managed_fields).unwrap_or_default();
    let has_applied =
        |name: &str| entries.iter().any(|entry| entry.operation() == ManagerOperation::Apply && entry.manager == name);
    let base: String = field_manager.chars().take(MAX_MANAGER).collect();
    let others =
        (1..).map(|number| format!("{base}-migrate{}", if number == 1 { String::new() } else { number.to_string() }));
    let mut names = std::iter::once(field_manager.to_owned()).chain(others);
    names.find(|name| !has_applied(name)).unwrap_or(base)
}

/// Whether an entry is at a version of this group that is not served: nobody can write at it any more, and once the CRD
/// does not have it, the server refuses every apply to the object.
/// Source: <https://github.com/kubernetes/kubernetes/issues/111937>
fn is_at_unserved_version(entry: &str, crd: &Crd) -> bool {
    serde_json::from_str::<ManagerEntryHead<'_>>(entry).is_ok_and(|entry| unserved_version(&entry.api_version, crd))
}

fn unserved_version(api_version: &str, crd: &Crd) -> bool {
    let version = api_version.strip_prefix(&*crd.group).and_then(|rest| rest.strip_prefix('/'));
    version.is_some_and(|version| crd.served(version).is_none())
}

/// The entries, with those at versions that are not served moved to the version of the request. The server keeps only
/// one of two entries with the same manager, operation, version and subresource, so such entries are merged.
fn moved_entries(entries: &[&RawValue], crd: &Crd, requested: &Resource) -> Value {
    let api_version = requested.api_version();
    let mut moved: Vec<Value> = Vec::new();
    let mut places: BTreeMap<[String; 4], usize> = BTreeMap::new();
    for entry in entries {
        let Ok(mut entry) = serde_json::from_str::<Value>(entry.get()) else { continue };
        if unserved_version(ManagerEntry::new(&entry).api_version(), crd) {
            entry["apiVersion"] = api_version.as_str().into();
        }
        let identity = ["manager", "operation", "apiVersion", "subresource"]
            .map(|key| entry[key].as_str().unwrap_or_default().to_owned());
        match places.get(&identity) {
            Some(&place) => {
                let mut fields = ManagerEntry::new(&moved[place]).fields();
                fields.add(&ManagerEntry::new(&entry).fields());
                moved[place] = ManagerEntry::new(&moved[place]).with_fields(&fields);
            }
            None => {
                places.insert(identity, moved.len());
                moved.push(entry);
            }
        }
    }
    Value::Array(moved)
}

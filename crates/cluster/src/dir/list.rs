//! Lists of objects, as a server would return them.

use std::vec;

use serde_json::Value;

use super::live;
use super::read::FolderObjectKey;
use super::state::FolderState;
use crate::Gvk;
use crate::list::{ListError, ListPage, ListRequest};
use crate::selector::ParsedLabelSelector;
use gantry_core::manifest::Manifest;
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;

/// The pages of one list. The objects are those that existed when the list began.
pub struct DirPages {
    api_version: String,
    selector: Option<ParsedLabelSelector>,
    page_size: usize,
    objects: Result<vec::IntoIter<(FolderObjectKey, Manifest)>, ListError>,
}

impl FolderState {
    /// The objects of one resource, in pages.
    pub fn list(&self, request: &ListRequest<'_>) -> DirPages {
        let resource = request.resource;
        let selector = request.label_selector.map(ParsedLabelSelector::parse).transpose().map_err(|error| {
            let shown = gantry_core::text::sanitize(request.label_selector.unwrap_or_default()).into_owned();
            Problem::new(format!("{shown:?} is not a label selector: {error}"))
                .help("use the syntax of kubectl: app=web,!canary")
        });
        let (selector, objects) = match selector {
            Ok(selector) => (selector, self.objects(resource, request.namespace)),
            Err(problem) => (None, Err(ListError::Other(problem))),
        };
        DirPages {
            api_version: api_version(resource),
            selector,
            page_size: request.page_size.max(1) as usize,
            objects: objects.map(Vec::into_iter),
        }
    }

    fn objects(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<Vec<(FolderObjectKey, Manifest)>, ListError> {
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        if self.resource(&gvk).is_none() {
            let holder = self.holder();
            let served = format!("the {holder} does not serve kind {} at {}", resource.kind, api_version(resource));
            let problem = Problem::new(served)
                .help(format!("is its CustomResourceDefinition in the {holder}, and does it serve this version?"));
            return Err(ListError::NotServed(problem));
        }
        let wanted = |identity: &FolderObjectKey| namespace.is_none() || identity.namespace.as_deref() == namespace;
        let objects: Vec<_> = self.of_kind(&resource.group, &resource.kind).filter(|(id, _)| wanted(id)).collect();
        check_conversion(self, resource, &objects)?;
        Ok(objects.into_iter().map(|(identity, manifest)| (identity.clone(), manifest.clone())).collect())
    }
}

/// Versions that differ only in `apiVersion` are converted here. Any other conversion needs the CRD's webhook, which a
/// folder cannot call.
fn check_conversion(
    state: &FolderState,
    resource: &Resource,
    objects: &[(&FolderObjectKey, &Manifest)],
) -> Result<(), ListError> {
    if state.custom(&resource.group, &resource.kind).is_some_and(|custom| custom.converts_by_name) {
        return Ok(());
    }
    let asked = api_version(resource);
    let Some((_, other)) = objects.iter().find(|(_, manifest)| manifest.object.api_version != asked) else {
        return Ok(());
    };
    let holder = state.holder();
    let said = format!("{} is stored at {}, not at the requested {asked}", other.object, other.object.api_version);
    let problem = Problem::new(format!(
        "{said}: the conversion webhook must convert it, and a {holder} cannot call the \
        webhook"
    ))
    .at(other.origin.location())
    .help(format!("check against a cluster, or convert the objects in the {holder} first"));
    Err(ListError::Conversion { said, problem: Box::new(problem) })
}

fn api_version(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => resource.version.clone(),
        group => format!("{group}/{}", resource.version),
    }
}

impl DirPages {
    /// See [`crate::Pages::next`].
    pub fn next_page(&mut self) -> Result<Option<ListPage>, ListError> {
        let objects = self.objects.as_mut().map_err(|error| error.clone())?;
        let mut page = Vec::new();
        while page.len() < self.page_size {
            let Some((identity, manifest)) = objects.next() else { break };
            let object = at_version(&manifest, &identity, &self.api_version);
            let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
            if self.selector.as_ref().is_none_or(|selector| selector.matches(labels)) {
                page.push(object.to_string());
            }
        }
        if page.is_empty() {
            return Ok(None);
        }
        // Like a server, which does not count ahead how many objects a selector matches.
        let remaining = self.selector.is_none().then_some(objects.len() as u64).filter(|left| *left > 0);
        Ok(Some(ListPage::new(page, remaining)))
    }
}

/// The object as the server would return it: at the requested version, and with its namespace.
fn at_version(manifest: &Manifest, identity: &FolderObjectKey, api_version: &str) -> Value {
    let mut value = live(manifest).raw.value();
    value["apiVersion"] = api_version.into();
    if let (Some(namespace), Some(metadata)) =
        (&identity.namespace, value.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("namespace".into(), namespace.as_str().into());
    }
    value
}

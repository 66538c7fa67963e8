//! Objects as they travel: raw JSON with the few facts that every step needs beside it.
//!
//! Typed views are only for looking (see `docs/architecture.md`): a typed struct drops the keywords that it does
//! not know, and what was checked would not be what is applied.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use gantry_schema::Step;

/// Which object: the four parts that name it. `apiVersion` is part of the reference as in Kubernetes' own
/// `ObjectReference`, but two references to the same group, kind, namespace and name are the same object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Its group and version, as in a manifest.
    pub api_version: String,
    /// Its kind, as in a manifest.
    pub kind: String,
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its `metadata.name`.
    pub name: String,
}

impl ObjectRef {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }

    /// The CustomResourceDefinition of this name.
    pub fn crd(name: &str) -> Self {
        let Resource { group, version, kind, .. } = Resource::crd();
        ObjectRef { api_version: format!("{group}/{version}"), kind, namespace: None, name: name.to_owned() }
    }

    /// Whether this is a CustomResourceDefinition of `apiextensions.k8s.io/v1`.
    pub fn is_crd(&self) -> bool {
        self.kind == "CustomResourceDefinition" && self.group() == "apiextensions.k8s.io"
    }

    /// Whether this is a Secret, whose values no output may hold.
    pub fn is_secret(&self) -> bool {
        self.kind == "Secret" && self.group().is_empty()
    }

    pub fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.group().is_empty()
    }

    /// What makes it the same object whatever version it is written at: group, kind, namespace, name.
    pub fn identity(&self) -> (&str, &str, Option<&str>, &str) {
        (self.group(), &self.kind, self.namespace.as_deref(), &self.name)
    }
}

/// `customresourcedefinition/samples.test.example.com`, `deployment.apps/web -n prod`: kubectl's way to say it.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.to_lowercase())?;
        if !self.group().is_empty() && !self.is_crd() {
            write!(f, ".{}", self.group())?;
        }
        write!(f, "/{}", self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, " -n {namespace}"),
            None => Ok(()),
        }
    }
}

/// Where the API server serves a kind: what discovery (or the CRD itself) says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
}

impl Resource {
    /// CustomResourceDefinitions themselves, the one kind that needs no discovery.
    pub fn crd() -> Self {
        Resource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
            namespaced: false,
        }
    }

    /// A kind of Kubernetes' own at v1.
    pub fn built_in(group: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Resource { group: group.into(), version: "v1".into(), kind: kind.into(), plural: plural.into(), namespaced }
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The URL path of the collection, or of one object in it.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        if let (true, Some(namespace)) = (self.namespaced, namespace) {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

/// An object as compact JSON text, exactly as it was written or as the server sent it.
///
/// Text and not a tree, because a tree costs five times as much memory and most objects are looked at once.
#[derive(Clone)]
pub struct RawObject(Text);

#[derive(Clone)]
enum Text {
    Held(Arc<str>),
    /// Made from what it was read from whenever it is asked for.
    Made(Arc<dyn Fn() -> String + Send + Sync>),
}

impl RawObject {
    /// `json` must be one JSON object that nests at most [`gantry_yaml::MAX_DEPTH`] levels deep; the loader and the
    /// targets make sure of it.
    pub fn new(json: impl Into<Arc<str>>) -> Self {
        RawObject(Text::Held(json.into()))
    }

    /// An object whose JSON is not kept: `make` gives the same at each call, and takes as long as reading it did. For one of
    /// very many.
    pub fn made_when_asked(make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        RawObject(Text::Made(Arc::new(make)))
    }

    pub fn from_value(value: &Value) -> Self {
        RawObject::new(value.to_string())
    }

    pub fn json(&self) -> Cow<'_, str> {
        match &self.0 {
            Text::Held(json) => Cow::Borrowed(json),
            Text::Made(make) => Cow::Owned(make()),
        }
    }

    /// The text, where it is held and need not be made.
    pub fn held(&self) -> Option<&str> {
        match &self.0 {
            Text::Held(json) => Some(json),
            Text::Made(_) => None,
        }
    }

    /// The text to keep: that of an object whose JSON is held is shared.
    pub fn text(&self) -> Arc<str> {
        match &self.0 {
            Text::Held(json) => Arc::clone(json),
            Text::Made(make) => make().into(),
        }
    }

    /// The object as a tree, built at each call.
    pub fn value(&self) -> Value {
        // The loader's own bound on nesting takes the place of serde_json's 128 levels.
        let json = self.json();
        let mut reader = serde_json::Deserializer::from_str(&json);
        reader.disable_recursion_limit();
        Value::deserialize(&mut reader).expect("a RawObject holds valid JSON")
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Text::Held(json) => write!(f, "RawObject({} bytes)", json.len()),
            Text::Made(_) => f.write_str("RawObject(not kept)"),
        }
    }
}

/// Metadata that the server keeps. A manifest that sets it (an exported object) does not say how it should be.
pub const SERVER_METADATA: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// An object as it is in the target, with what pins it.
#[derive(Debug, Clone)]
pub struct Live {
    pub raw: RawObject,
    pub uid: String,
    pub resource_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_group_and_scope() {
        let mut pods = Resource {
            group: String::new(),
            version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            namespaced: true,
        };
        assert_eq!(pods.path(Some("a"), Some("b")), "/api/v1/namespaces/a/pods/b");
        assert_eq!(pods.path(None, None), "/api/v1/pods");
        pods.namespaced = false;
        assert_eq!(pods.path(Some("a"), Some("b")), "/api/v1/pods/b");
        assert_eq!(
            Resource::crd().path(None, Some("x.y")),
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x.y"
        );
    }
}

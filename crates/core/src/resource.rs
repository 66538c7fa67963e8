//! Objects as raw JSON, with references and resources.
//!
//! Typed views are read-only (see `docs/internals/architecture.md`): a typed struct drops keywords that it does not
//! know, so the applied object would not be the checked one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use gantry_schema::Step;

/// A reference to an object. As in Kubernetes' own `ObjectReference`, `apiVersion` is part of it, but two references
/// with the same group, kind, namespace and name refer to the same object.
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

/// Whether the server takes this for a name, of whatever kind: a name is one segment of a URL path, which the server
/// decodes before it routes the request. An encoded slash would lead to another object, or through a proxy to a Pod.
///
/// Source: `IsValidPathSegmentName` in `k8s.io/apimachinery/pkg/api/validation/path`
pub fn is_path_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(|c: char| matches!(c, '/' | '%' | '\\') || c.is_control())
}

/// Percent-encodes everything except unreserved characters; dots too if there is nothing else.
pub fn percent_encode(text: &str) -> String {
    const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    const WITH_DOTS: AsciiSet = UNRESERVED.remove(b'.');
    let is_dots = text.bytes().all(|byte| byte == b'.');
    utf8_percent_encode(text, if is_dots { &UNRESERVED } else { &WITH_DOTS }).to_string()
}

/// Whether this is a valid name of a namespace or Service: a DNS label
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names>).
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let within = (1..=63).contains(&text.len()) && text.bytes().all(inner);
    within && !text.starts_with('-') && !text.ends_with('-')
}

impl ObjectRef {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version, without the group.
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

    /// Whether this is a Secret, whose values no output may contain.
    pub fn is_secret(&self) -> bool {
        self.kind == "Secret" && self.group().is_empty()
    }

    /// Whether this is a Namespace of the core group.
    pub fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.group().is_empty()
    }

    /// The namespace with which the server authorizes requests for the object. A Namespace counts as being in itself.
    pub fn authorized_in(&self) -> Option<&str> {
        if self.is_namespace() { Some(&self.name) } else { self.namespace.as_deref() }
    }

    /// Its notation for a command of kubectl that writes it. Without a version, kubectl writes a custom resource at the version
    /// that it prefers, which drops the fields that this version lacks.
    pub fn to_write(&self) -> String {
        let shown = self.to_string();
        match shown.split_once('.') {
            Some((kind, rest)) if !is_built_in(self.group()) => format!("{kind}.{}.{rest}", self.version()),
            _ => shown,
        }
    }

    /// The parts that identify the object at any version: group, kind, namespace, name.
    pub fn identity(&self) -> (&str, &str, Option<&str>, &str) {
        (self.group(), &self.kind, self.namespace.as_deref(), &self.name)
    }
}

/// The notation of kubectl: `customresourcedefinition/samples.test.example.com`, `deployment.apps/web -n prod`.
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

/// Groups whose kinds are compiled into the API server. The suffix alone does not show it: `*.k8s.io` is reserved, but
/// approved CRDs live there as well (`gateway.networking.k8s.io`).
/// Source: <https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/>
pub fn is_built_in(group: &str) -> bool {
    const RESERVED: &[&str] = &[
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    ];
    match group.strip_suffix(".k8s.io") {
        Some(group) => RESERVED.contains(&group),
        None => !group.contains('.'),
    }
}

/// The API resource of a kind, from discovery or from the CRD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// The version at which requests are sent.
    pub version: String,
    /// The kind of the objects.
    pub kind: String,
    /// The name in the URL.
    pub plural: String,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// The resource of CustomResourceDefinitions, the only kind that needs no discovery.
    pub fn crd() -> Self {
        Resource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
            namespaced: false,
        }
    }

    /// The resource of a built-in kind at v1.
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

    /// The URL path of the collection, or of one object in it. Every part is encoded, so that it stays within its
    /// segment: names can come from manifests and from records in the cluster.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = self.version_path();
        if let (true, Some(namespace)) = (self.namespaced, namespace) {
            path.push_str("/namespaces/");
            path.push_str(&percent_encode(namespace));
        }
        path.push('/');
        path.push_str(&percent_encode(&self.plural));
        if let Some(name) = name {
            path.push('/');
            path.push_str(&percent_encode(name));
        }
        path
    }

    /// The URL path of its group and version.
    pub fn version_path(&self) -> String {
        let version = percent_encode(&self.version);
        match self.group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{}/{version}", percent_encode(group)),
        }
    }
}

/// An object as compact JSON text, with exactly the content of the manifest or of the server's response.
///
/// It is text, because a tree needs five times as much memory, and most objects are read only once.
#[derive(Clone)]
pub struct RawObject(ObjectText);

#[derive(Clone)]
enum ObjectText {
    Held(Arc<str>),
    /// Made from its source at each access.
    Made(Arc<dyn Fn() -> String + Send + Sync>),
}

impl RawObject {
    /// `json` must be one JSON object that is nested at most [`gantry_yaml::MAX_DEPTH`] levels deep. The loader and the
    /// targets ensure this.
    pub fn new(json: impl Into<Arc<str>>) -> Self {
        RawObject(ObjectText::Held(json.into()))
    }

    /// An object whose JSON is not kept in memory, for very many objects. `make` must return the same JSON at each
    /// call; it takes as long as parsing the object did.
    pub fn made_when_asked(make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        RawObject(ObjectText::Made(Arc::new(make)))
    }

    /// The object of a parsed JSON object, whose text is compact.
    pub fn from_value(value: &Value) -> Self {
        RawObject::new(value.to_string())
    }

    /// The JSON text; made at each call if it is not kept.
    pub fn json(&self) -> Cow<'_, str> {
        match &self.0 {
            ObjectText::Held(json) => Cow::Borrowed(json),
            ObjectText::Made(make) => Cow::Owned(make()),
        }
    }

    /// The text, if it is kept in memory.
    pub fn text_in_memory(&self) -> Option<&str> {
        match &self.0 {
            ObjectText::Held(json) => Some(json),
            ObjectText::Made(_) => None,
        }
    }

    /// The shared text; it is made first if it is not kept in memory.
    pub fn text(&self) -> Arc<str> {
        match &self.0 {
            ObjectText::Held(json) => Arc::clone(json),
            ObjectText::Made(make) => make().into(),
        }
    }

    /// The object as a tree, built at each call.
    pub fn value(&self) -> Value {
        // The loader has its own limit on nesting, so serde_json's limit of 128 levels is disabled.
        let json = self.json();
        let mut reader = serde_json::Deserializer::from_str(&json);
        reader.disable_recursion_limit();
        Value::deserialize(&mut reader).expect("a RawObject holds valid JSON")
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ObjectText::Held(json) => write!(f, "RawObject({} bytes)", json.len()),
            ObjectText::Made(_) => f.write_str("RawObject(not kept)"),
        }
    }
}

/// Metadata that the server maintains. It is ignored in manifests, where it comes from exported objects.
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

/// The annotation in which a client-side `kubectl apply` keeps a copy of the manifest, with the values of a Secret.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The label by which Helm marks the objects of its releases; its value is `Helm`.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The annotation with the name of the Helm release that an object belongs to.
pub const HELM_RELEASE: &str = "meta.helm.sh/release-name";
/// The annotation with the namespace of that release.
pub const HELM_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// The annotation, and its value, by which Helm leaves an object alone when it leaves its release.
pub const HELM_KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// A live object of the target, with its UID and resource version.
#[derive(Debug, Clone)]
pub struct LiveObject {
    /// The object as the server sent it.
    pub raw: RawObject,
    /// The field `metadata.uid`. A folder derives it from the object's reference if the file has none.
    pub uid: String,
    /// The field `metadata.resourceVersion`, which changes with every write. A folder appends a hash of the object.
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

    #[test]
    fn a_custom_resource_is_written_at_a_version() {
        let object = |api_version: &str, kind: &str| ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: Some("n".into()),
            name: "a.b".into(),
        };
        assert_eq!(object("example.com/v1", "Thing").to_write(), "thing.v1.example.com/a.b -n n");
        for (api_version, kind) in
            [("v1", "Secret"), ("apps/v1", "Deployment"), ("rbac.authorization.k8s.io/v1", "Role")]
        {
            let built_in = object(api_version, kind);
            assert_eq!(built_in.to_write(), built_in.to_string());
        }
        assert_eq!(ObjectRef::crd("a.b").to_write(), "customresourcedefinition/a.b");
    }

    #[test]
    fn every_part_of_a_path_is_escaped() {
        let hostile = Resource {
            group: "g/../..?a=b".into(),
            version: "v1#x".into(),
            kind: "K".into(),
            plural: "ks/x".into(),
            namespaced: true,
        };
        assert_eq!(
            hostile.path(Some("a/b"), Some("..")),
            "/apis/g%2F..%2F..%3Fa%3Db/v1%23x/namespaces/a%2Fb/ks%2Fx/%2E%2E"
        );
        assert_eq!(percent_encode("system:node"), "system%3Anode");
        assert_eq!(percent_encode("a.b-c_1~"), "a.b-c_1~");
        assert_eq!(percent_encode("x/../y?z#ä"), "x%2F..%2Fy%3Fz%23%C3%A4");
    }

    #[test]
    fn a_name_that_would_lead_to_another_path_is_refused() {
        assert!(["a", "a.b", "system:node", "reader of pods", "...", "ä"].into_iter().all(is_path_segment));
        for name in ["", ".", "..", "a/b", "%2f", "a%2Fproxy", "a\\b", "a\nb", "../secrets"] {
            assert!(!is_path_segment(name), "{name}");
        }
    }
}

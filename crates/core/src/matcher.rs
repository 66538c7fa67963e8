//! kapp's resource matchers, which select the objects that a rule of the configuration applies to.
//!
//! Source: "Resource matchers" and "Paths" in kapp's documentation of its Config. If the namespace or the content of an
//! object is not known yet, the result of a matcher can be undecided.

use std::cell::OnceCell;
use std::sync::Arc;

use gantry_k8s_cel::re2::{self, Patterns, UnsupportedPattern};
use serde_json::{Map, Value};

use crate::resource::{ObjectRef, RawObject};

/// The API groups whose kinds kapp does not treat as custom resources.
const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "metrics.k8s.io",
    "migration.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// One resource matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    /// Every object.
    All,
    /// The object matches one of these. An empty list matches nothing.
    Any(Vec<Matcher>),
    /// The object matches all of these.
    And(Vec<Matcher>),
    /// The object does not match.
    Not(Box<Matcher>),
    /// The kind in any version of its group.
    GroupKind {
        /// Empty for the core group.
        group: String,
        /// Such as `Deployment`.
        kind: String,
    },
    /// The kind at exactly one version.
    VersionKind {
        /// Such as `apps/v1`.
        api_version: String,
        /// Such as `Deployment`.
        kind: String,
    },
    /// An empty namespace matches cluster-scoped objects.
    Name {
        /// The kind, in any API group.
        kind: String,
        /// The namespace of the object.
        namespace: String,
        /// The name of the object.
        name: String,
    },
    /// The object has all of these annotations.
    Annotations(Vec<String>),
    /// The object is in one of these namespaces or, without names, in any namespace.
    Namespaces(Vec<String>),
    /// The kind is in none of the API groups that kapp knows as built in.
    CustomResource,
    /// The field at this path is absent, null or empty.
    EmptyField(Vec<FieldPathStep>),
}

/// One step of a path to fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldPathStep {
    /// The member of a map.
    Key(String),
    /// The item of a list, from 0.
    Index(usize),
    /// Every item of a list.
    All,
    /// Every key of a mapping that matches.
    Matching(KeyPattern),
}

/// A regular expression for keys, in Go's syntax, as kapp reads it. It matches anywhere in a key.
#[derive(Debug, Clone)]
pub struct KeyPattern(Arc<re2::Pattern>);

impl KeyPattern {
    /// Compiles the expression.
    ///
    /// # Errors
    /// Go or gantry cannot use the expression.
    pub fn new(source: &str) -> Result<Self, UnsupportedPattern> {
        let pattern = Patterns::default().get(source);
        pattern.regex().map_err(Clone::clone)?;
        Ok(KeyPattern(pattern))
    }

    /// The keys that match.
    pub fn keys<'m>(&self, map: &'m Map<String, Value>) -> impl Iterator<Item = &'m String> {
        map.keys().filter(|key| self.0.is_match(key) == Ok(true))
    }
}

impl PartialEq for KeyPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.source() == other.0.source()
    }
}

impl Eq for KeyPattern {}

/// The namespace of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectScope<'a> {
    /// The manifest names none, and it is not known yet whether the kind is namespaced.
    Unknown,
    /// The kind has no namespaces.
    Cluster,
    /// The object is in this namespace.
    In(&'a str),
}

/// An object for matchers. Its content is parsed when a matcher needs it.
pub struct MatchableObject<'a> {
    object: &'a ObjectRef,
    scope: ObjectScope<'a>,
    content: MatcherContent<'a>,
    read: OnceCell<Value>,
}

enum MatcherContent<'a> {
    Raw(&'a RawObject),
    Json(&'a str),
    Tree(&'a Value),
    /// Only its metadata is known.
    Metadata(&'a Value),
}

impl<'a> MatchableObject<'a> {
    fn new(object: &'a ObjectRef, scope: ObjectScope<'a>, content: MatcherContent<'a>) -> Self {
        MatchableObject { object, scope, content, read: OnceCell::new() }
    }

    /// An object of a manifest or of the target, whose text is parsed if a matcher needs it.
    pub fn of_raw(object: &'a ObjectRef, scope: ObjectScope<'a>, raw: &'a RawObject) -> Self {
        Self::new(object, scope, MatcherContent::Raw(raw))
    }

    /// A live object as JSON text from the server.
    pub fn of_json(object: &'a ObjectRef, json: &'a str) -> Self {
        Self::new(object, ObjectScope::for_object(object), MatcherContent::Json(json))
    }

    /// A live object as a tree.
    pub fn of_live(object: &'a ObjectRef, tree: &'a Value) -> Self {
        Self::new(object, ObjectScope::for_object(object), MatcherContent::Tree(tree))
    }

    /// A live object of which only this metadata was read.
    pub fn of_metadata(object: &'a ObjectRef, metadata: &'a Value) -> Self {
        Self::new(object, ObjectScope::for_object(object), MatcherContent::Metadata(metadata))
    }

    fn content(&self) -> &Value {
        match self.content {
            MatcherContent::Raw(raw) => self.read.get_or_init(|| raw.value()),
            MatcherContent::Json(json) => self.read.get_or_init(|| serde_json::from_str(json).unwrap_or_default()),
            MatcherContent::Tree(tree) | MatcherContent::Metadata(tree) => tree,
        }
    }
}

impl<'a> ObjectScope<'a> {
    /// The scope of an object whose namespace has been resolved.
    pub fn for_object(object: &'a ObjectRef) -> Self {
        object.namespace.as_deref().map_or(ObjectScope::Cluster, ObjectScope::In)
    }
}

/// Whether kapp treats an object as a custom resource.
pub fn is_custom(object: &ObjectRef) -> bool {
    !BUILT_IN.contains(&object.group())
}

/// Whether one of the matchers matches; `None` if that is not known yet.
pub fn any_matches(matchers: &[Matcher], facts: &MatchableObject<'_>) -> Option<bool> {
    let mut answer = Some(false);
    for matcher in matchers {
        match matcher.matches(facts) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => answer = None,
        }
    }
    answer
}

impl Matcher {
    /// Whether the object matches; `None` if that is not known yet.
    pub fn matches(&self, facts: &MatchableObject<'_>) -> Option<bool> {
        let object = facts.object;
        Some(match self {
            Matcher::All => true,
            Matcher::Any(matchers) => return any_matches(matchers, facts),
            Matcher::And(matchers) => {
                let mut answer = Some(true);
                for matcher in matchers {
                    match matcher.matches(facts) {
                        Some(false) => return Some(false),
                        Some(true) => {}
                        None => answer = None,
                    }
                }
                return answer;
            }
            Matcher::Not(matcher) => !matcher.matches(facts)?,
            Matcher::GroupKind { group, kind } => object.group() == group && object.kind == *kind,
            Matcher::VersionKind { api_version, kind } => object.api_version == *api_version && object.kind == *kind,
            Matcher::Name { kind, namespace, name } => {
                let is_named = object.kind == *kind && object.name == *name;
                match facts.scope {
                    ObjectScope::Unknown if is_named => return None,
                    ObjectScope::Unknown => false,
                    ObjectScope::Cluster => is_named && namespace.is_empty(),
                    ObjectScope::In(its) => is_named && namespace == its,
                }
            }
            Matcher::Annotations(keys) => {
                let annotations = &facts.content()["metadata"]["annotations"];
                keys.iter().all(|key| annotations.get(key).is_some())
            }
            Matcher::Namespaces(names) => match facts.scope {
                ObjectScope::Unknown => return None,
                ObjectScope::Cluster => false,
                ObjectScope::In(its) => names.is_empty() || names.iter().any(|name| name == its),
            },
            Matcher::CustomResource => is_custom(object),
            Matcher::EmptyField(path) => {
                let is_known = match facts.content {
                    MatcherContent::Metadata(metadata) => match &path[..] {
                        [FieldPathStep::Key(first), FieldPathStep::Key(second), ..] if first == "metadata" => {
                            metadata["metadata"].get(second).is_some()
                        }
                        _ => false,
                    },
                    _ => true,
                };
                match is_known {
                    true => is_empty(facts.content(), path),
                    false => return None,
                }
            }
        })
    }
}

/// Whether the value at the path is absent, null, or an empty list or mapping.
fn is_empty(value: &Value, path: &[FieldPathStep]) -> bool {
    let Some((part, rest)) = path.split_first() else {
        return match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
    };
    match (part, value) {
        (_, Value::Null) => true,
        (FieldPathStep::Key(key), Value::Object(map)) => map.get(key).is_none_or(|value| is_empty(value, rest)),
        (FieldPathStep::Index(index), Value::Array(items)) => {
            items.get(*index).is_none_or(|value| is_empty(value, rest))
        }
        (FieldPathStep::All, Value::Array(items)) => items.iter().all(|value| is_empty(value, rest)),
        (FieldPathStep::Matching(pattern), Value::Object(map)) => {
            pattern.keys(map).all(|key| is_empty(&map[key], rest))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>) -> ObjectRef {
        let namespace = namespace.map(str::to_owned);
        ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace, name: "web".into() }
    }

    fn named(kind: &str, namespace: &str, name: &str) -> Matcher {
        Matcher::Name { kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    fn key(text: &str) -> FieldPathStep {
        FieldPathStep::Key(text.to_owned())
    }

    #[test]
    fn matchers_select_by_kind_name_and_namespace() {
        let (web, tree) = (object("apps/v1", "Deployment", Some("prod")), json!({}));
        let facts = MatchableObject::of_live(&web, &tree);
        let says = |matcher: Matcher| matcher.matches(&facts).unwrap();
        let group_kind = |group: &str, kind: &str| Matcher::GroupKind { group: group.into(), kind: kind.into() };
        assert!(says(group_kind("apps", "Deployment")));
        assert!(!says(group_kind("", "Deployment")) && !says(group_kind("apps", "Deploy")));
        let version = |version: &str| Matcher::VersionKind { api_version: version.into(), kind: "Deployment".into() };
        assert!(says(version("apps/v1")) && !says(version("apps/v1beta1")));
        assert!(says(named("Deployment", "prod", "web")));
        assert!(!says(named("Deployment", "", "web")) && !says(named("Deployment", "prod", "db")));
        let namespaces = |names: &[&str]| Matcher::Namespaces(names.iter().map(|name| (*name).to_owned()).collect());
        assert!(says(namespaces(&[])) && says(namespaces(&["dev", "prod"])) && !says(namespaces(&["dev"])));
        assert!(!says(Matcher::CustomResource));
        let sample = object("example.com/v1", "Sample", None);
        let facts = MatchableObject::of_live(&sample, &tree);
        assert_eq!(Matcher::CustomResource.matches(&facts), Some(true));
        assert_eq!(namespaces(&[]).matches(&facts), Some(false));
        assert_eq!(named("Sample", "", "web").matches(&facts), Some(true));
    }

    #[test]
    fn a_match_is_undecided_only_if_an_unknown_fact_matters() {
        let web = object("apps/v1", "Deployment", None);
        let raw = RawObject::from_value(&json!({}));
        let facts = MatchableObject::of_raw(&web, ObjectScope::Unknown, &raw);
        let unknown = || Matcher::Namespaces(Vec::new());
        let not = |matcher| Matcher::Not(Box::new(matcher));
        assert_eq!(unknown().matches(&facts), None);
        assert_eq!(not(unknown()).matches(&facts), None);
        assert_eq!(Matcher::And(vec![Matcher::All, unknown()]).matches(&facts), None);
        assert_eq!(Matcher::And(vec![unknown(), not(Matcher::All)]).matches(&facts), Some(false));
        assert_eq!(Matcher::Any(vec![unknown(), Matcher::All]).matches(&facts), Some(true));
        assert_eq!(Matcher::Any(vec![unknown(), not(Matcher::All)]).matches(&facts), None);
        assert_eq!(named("Deployment", "prod", "web").matches(&facts), None);
        assert_eq!(named("Deployment", "prod", "db").matches(&facts), Some(false));
        let metadata = json!({"metadata": {"annotations": {"a": "b"}}});
        let facts = MatchableObject::of_metadata(&web, &metadata);
        assert_eq!(Matcher::EmptyField(vec![key("spec")]).matches(&facts), None);
        assert_eq!(Matcher::EmptyField(vec![key("metadata"), key("annotations")]).matches(&facts), Some(false));
        assert_eq!(Matcher::Annotations(vec!["a".into()]).matches(&facts), Some(true));
        assert_eq!(Matcher::Annotations(vec!["a".into(), "c".into()]).matches(&facts), Some(false));
    }

    #[test]
    fn an_empty_field_is_absent_or_has_no_content() {
        let value =
            json!({"a": {"b": {}}, "text": "", "list": [{"x": []}, {}], "full": [{"x": 1}], "no": false, "null": null});
        let all = |first: &str| [key(first), FieldPathStep::All, key("x")];
        assert!(is_empty(&value, &[key("a"), key("b")]) && is_empty(&value, &[key("gone"), key("x")]));
        assert!(is_empty(&value, &[key("null"), key("x")]) && is_empty(&value, &all("list")));
        let matching = |pattern: &str| [FieldPathStep::Matching(KeyPattern::new(pattern).unwrap())];
        assert!(is_empty(&value, &matching("^nothing")) && !is_empty(&value, &matching("^fu")));
        assert!(
            is_empty(&value, &[key("list"), FieldPathStep::Index(7)])
                && !is_empty(&value, &[key("full"), FieldPathStep::Index(0)])
        );
        assert!(!is_empty(&value, &[key("text")]), "kapp does the same");
        assert!(!is_empty(&value, &all("full")) && !is_empty(&value, &[key("no")]) && !is_empty(&value, &[key("a")]));
    }
}

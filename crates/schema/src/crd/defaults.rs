//! Defaults: each must be valid for its schema and must not contain fields that would be pruned.

use std::borrow::Cow;

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Map, Value};

use super::found::Errors;
use super::options::CrdRequirements;
use super::props::Props;
use super::structural;
use crate::check::ValueChecker;
use crate::compile::Compiler;
use crate::engine::Engine;
use crate::error::FieldError;
use crate::ignored_keywords::drop_formats_ignored_on_defaults;
use crate::node::SchemaNode;
use crate::objectmeta::{self, MalformedFieldPolicy};
use crate::older_releases;
use crate::path::LinkedPath;
use crate::prune;
use crate::rules::{NoEngine, RuleWalk};
use gantry_k8s_cel::re2::Patterns;

/// Checks the defaults of a structural schema.
pub fn check(schema: &Props, options: &CrdRequirements, path: &LinkedPath, errors: &mut Errors) {
    if !schema.has(&mut |schema| schema.default.is_some()) {
        return;
    }
    let Some(raw) = schema.raw.0 else { return };
    let mut raw = Cow::Borrowed(raw);
    if options.release < KubernetesRelease::NEWEST_KNOWN {
        drop_formats_ignored_on_defaults(raw.to_mut(), options.release);
    }
    // A schema that cannot be compiled is rejected for other errors.
    let patterns = Patterns::default();
    let engine = Engine::sharing(&patterns);
    let Ok(mut node) = Compiler::of_defaults(&engine, &patterns).root(&raw) else {
        return;
    };
    // The root of a resource is validated like an embedded resource.
    (node.embedded, node.has_embedded) = (true, true);
    let mut walk = DefaultsWalk { options, errors };
    let root = EnclosingResource { node: &node, path: Vec::new() };
    walk.node(schema, &node, &root, true, false, path);
}

/// Whether a schema has a default with fields that would be pruned.
pub fn has_unpruned(schema: &Props, release: KubernetesRelease) -> bool {
    if !schema.has(&mut |schema| schema.default.is_some()) || !structural::is_structural(schema, release) {
        return false;
    }
    let Some(raw) = schema.raw.0 else { return false };
    Compiler::new(&NoEngine, &Patterns::default()).root(raw).is_ok_and(|node| unpruned(schema, &node))
}

fn unpruned(schema: &Props, node: &SchemaNode) -> bool {
    let is_unpruned = |default: &Value| {
        let mut pruned = default.clone();
        objectmeta::coerce_part(&mut pruned, node);
        prune::prune_part(&mut pruned, node);
        pruned != *default
    };
    schema.default.is_some_and(is_unpruned)
        || schema.item().zip(node.items.as_deref()).is_some_and(|(schema, node)| unpruned(schema, node))
        || schema.entry().zip(node.additional.schema()).is_some_and(|(schema, node)| unpruned(schema, node))
        || schema
            .properties
            .iter()
            .any(|(name, schema)| node.properties.get(name).is_some_and(|node| unpruned(schema, node)))
}

/// The closest enclosing resource, and the path from it.
#[derive(Clone)]
struct EnclosingResource<'n> {
    node: &'n SchemaNode,
    path: Vec<ResourceStep<'n>>,
}

#[derive(Clone, Copy)]
enum ResourceStep<'n> {
    Child(&'n str),
    Index,
}

impl<'n> EnclosingResource<'n> {
    fn child(&self, step: ResourceStep<'n>) -> Self {
        let mut path = self.path.clone();
        path.push(step);
        Self { node: self.node, path }
    }

    /// A resource that contains only `value`, at the end of the path.
    fn around(&self, value: &Value) -> Value {
        let around = |value, step: &ResourceStep| match step {
            ResourceStep::Child(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
            ResourceStep::Index => Value::Array(vec![value]),
        };
        let mut object = self.path.iter().rev().fold(value.clone(), around);
        for (key, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            if let Some(map) = object.as_object_mut() {
                map.entry(key).or_insert_with(|| value.into());
            }
        }
        object
    }
}

struct DefaultsWalk<'w, 'o> {
    options: &'w CrdRequirements<'o>,
    errors: &'w mut Errors,
}

impl DefaultsWalk<'_, '_> {
    fn node<'n>(
        &mut self,
        schema: &'n Props,
        node: &'n SchemaNode,
        above: &EnclosingResource<'n>,
        is_root: bool,
        in_metadata: bool,
        path: &LinkedPath,
    ) {
        let is_resource = is_root || schema.embedded;
        let own = EnclosingResource { node, path: Vec::new() };
        let (above, in_metadata) = if is_resource { (&own, false) } else { (above, in_metadata) };
        if let Some(default) = schema.default {
            self.default(default, node, in_metadata.then_some(above), &LinkedPath::Name(path, "default"));
        }
        if let Some((item, item_node)) = schema.item().zip(node.items.as_deref()) {
            let above = above.child(ResourceStep::Index);
            self.node(item, item_node, &above, false, in_metadata, &LinkedPath::Name(path, "items"));
        }
        let properties = &LinkedPath::Name(path, "properties");
        for (name, property) in schema.properties.iter() {
            let Some(child) = node.properties.get(name) else { continue };
            let is_metadata = is_resource && matches!(name, "metadata" | "apiVersion" | "kind");
            let above = above.child(ResourceStep::Child(name));
            self.node(property, child, &above, false, in_metadata || is_metadata, &LinkedPath::Key(properties, name));
        }
    }

    fn default(
        &mut self,
        default: &Value,
        node: &SchemaNode,
        in_metadata_of: Option<&EnclosingResource>,
        path: &LinkedPath,
    ) {
        let normalized;
        let default = match in_metadata_of {
            Some(resource) if self.in_metadata(default, resource, path) => default,
            Some(_) => return,
            None => match self.outside_metadata(default, node, path) {
                Some(default) => {
                    normalized = default;
                    &normalized
                }
                None => return,
            },
        };
        let mut checker = ValueChecker::for_release(self.options.release);
        let found = checker.value(node, default, &LinkedPath::Root, None).errors;
        self.errors.undecided.extend(checker.undecided.into_iter().map(|open| prepend_path(open, path)));
        if !found.is_empty() {
            let base = path.field();
            for error in found {
                let path_of = if error.path == "<nil>" { base.clone() } else { format!("{base}.{}", error.path) };
                self.errors.add(path, FieldError { path: path_of, ..error });
            }
            return;
        }
        if !node.has_rules {
            return;
        }
        // First as an update that keeps the default, then as one that adds it.
        let is_validated_as_new = self.options.release >= older_releases::DEFAULTS_WITHOUT_OLD;
        for old in [Some(default), None].into_iter().take(1 + usize::from(is_validated_as_new)) {
            let mut walk = RuleWalk::for_release(self.options.release);
            walk.object(node, default, old, None);
            let is_valid = walk.errors.is_empty();
            self.extend(walk.errors, path);
            self.errors.undecided.extend(walk.undecided.into_iter().map(|open| prepend_path(open, path)));
            if !is_valid {
                break;
            }
        }
    }

    /// Validates a default that is not part of metadata. If its embedded metadata is valid, returns the default with
    /// that metadata normalized.
    fn outside_metadata(&mut self, default: &Value, node: &SchemaNode, path: &LinkedPath) -> Option<Value> {
        if self.options.require_pruned_defaults {
            let mut pruned = default.clone();
            prune::prune_part(&mut pruned, node);
            if pruned != *default {
                self.errors.invalid(path, default.clone(), "must not have unknown fields");
            }
        }
        let mut coerced = default.clone();
        if let Err(error) = objectmeta::coerce(&mut coerced, node, false, MalformedFieldPolicy::Refused) {
            self.extend(vec![*error], path);
            return None;
        }
        let found = objectmeta::check_embedded(&coerced, node, self.options.release);
        let is_valid = found.is_empty();
        self.extend(found, path);
        is_valid.then_some(coerced)
    }

    /// Validates a default inside the metadata of a resource.
    fn in_metadata(&mut self, default: &Value, resource: &EnclosingResource, path: &LinkedPath) -> bool {
        let mut object = resource.around(default);
        let problem = match objectmeta::coerce(&mut object, resource.node, false, MalformedFieldPolicy::Refused) {
            Err(error) => Some(error.to_string()),
            Ok(_) => aggregate(&objectmeta::check_embedded(&object, resource.node, self.options.release)),
        };
        let Some(problem) = problem else { return true };
        self.errors.invalid(path, default.clone(), format!("must result in valid metadata: {problem}"));
        false
    }

    /// Adds errors about parts of the default at `path`.
    fn extend(&mut self, found: Vec<FieldError>, path: &LinkedPath) {
        let base = path.field();
        for error in found {
            self.errors.add(path, FieldError { path: join(&base, &error.path), ..error });
        }
    }
}

/// The errors joined into one text; `None` if there are none.
fn aggregate(errors: &[FieldError]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn join(base: &str, path: &str) -> String {
    match path {
        "<nil>" => base.to_owned(),
        path if path.starts_with('[') => format!("{base}{path}"),
        path => format!("{base}.{path}"),
    }
}

fn prepend_path(open: crate::Undecided, path: &LinkedPath) -> crate::Undecided {
    crate::Undecided { path: join(&path.field(), &open.path), ..open }
}

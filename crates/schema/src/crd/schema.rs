//! The schema of a version: all keywords, structural requirements, defaults and rules.

use super::api_value::{ApiValue, show_list};
use super::cost::Costs;
use super::found::Errors;
use super::model::CrdVersionSchema;
use super::options::CrdRequirements;
use super::props::Props;
use super::rules::{CrdRuleChecker, RuleScope};
use super::{defaults, selectable, structural};
use crate::path::LinkedPath;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub fn check(
    validation: &CrdVersionSchema,
    has_status: bool,
    options: &CrdRequirements,
    path: &LinkedPath,
    errors: &mut Errors,
) {
    let Some(schema) = &validation.schema else { return };
    let before = errors.list.len();
    if has_status {
        root_of_status(schema, path, errors);
    }
    let root = &LinkedPath::Name(path, "openAPIV3Schema");
    if schema.nullable {
        errors.forbidden(&LinkedPath::Name(path, "openAPIV3Schema.nullable"), "nullable cannot be true at the root");
    }
    let mut unsupported = None;
    let mut scope = RuleScope::none();
    if options.require_structural {
        let so_far = errors.list.len();
        match structural::unsupported(schema) {
            Some(problem) => unsupported = Some(problem),
            None => {
                structural::check(schema, options.release, root, errors);
                if errors.list.len() == so_far {
                    defaults::check(schema, options, root, errors);
                }
                if errors.list.len() == so_far {
                    scope = RuleScope::of_root(schema, options.release);
                }
            }
        }
    }
    let mut walk = StructuralWalk { options, errors, rule_errors: Errors::default(), costs: Costs::default() };
    let place = InheritedContext { allows_defaults: true, ..InheritedContext::default() };
    walk.check_node(schema, true, root, &place, &scope);
    let StructuralWalk { rule_errors, costs, .. } = walk;
    errors.append(rule_errors);
    if errors.list.len() == before
        && let Some(problem) = unsupported
    {
        errors.invalid(root, "", problem);
    }
    costs.check_total(root, errors);
}

/// With a status subresource, the root of the schema must be limited to a few keywords, because the status is
/// validated separately.
fn root_of_status(schema: &Props, path: &LinkedPath, errors: &mut Errors) {
    const ALLOWED: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                           MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties \
                           ExternalDocs Example XPreserveUnknownFields XValidations";
    let before_type = !schema.id.is_empty() || !schema.schema.is_empty() || schema.reference.is_some();
    if !before_type && !schema.kind.is_empty() && schema.kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is \
                      enabled";
        return errors.invalid(&LinkedPath::Name(path, "openAPIV3Schema.type"), schema.kind, detail);
    }
    let more = schema.nullable
        || schema.default.is_some()
        || schema.enumeration.is_given
        || schema.max_properties.is_some()
        || schema.min_properties.is_some()
        || schema.all_of.is_given
        || schema.one_of.is_given
        || schema.any_of.is_given
        || schema.not.is_some()
        || schema.additional.is_some()
        || schema.pattern_properties.is_given
        || schema.dependencies.is_given
        || schema.additional_items.is_some()
        || schema.definitions.is_given
        || schema.embedded
        || schema.int_or_string
        || schema.map_keys.is_given
        || schema.list_type.is_some()
        || schema.map_type.is_some();
    if before_type || more {
        let detail = format!(
            "only [{ALLOWED}] fields are allowed at the root of the schema if the status subresource is enabled"
        );
        errors.invalid_as(&LinkedPath::Name(path, "openAPIV3Schema"), &schema.show(), &detail);
    }
}

pub fn has_valid_type(schema: &Props) -> bool {
    schema.kind.is_empty() || TYPES.contains(&schema.kind)
}

/// The keyword that makes the items of a set non-atomic.
pub fn non_atomic_set(schema: &Props) -> Option<&'static str> {
    let item = schema.item().filter(|_| schema.list_type == Some("set"))?;
    match item.kind {
        "array" if item.list_type.is_some_and(|of| of != "atomic") => Some("x-kubernetes-list-type"),
        "object" if item.map_type != Some("atomic") => Some("x-kubernetes-map-type"),
        _ => None,
    }
}

pub fn has_bad_map_keys(schema: &Props) -> bool {
    let mut errors = Errors::default();
    map_keys(schema, &LinkedPath::Root, &mut errors);
    !errors.list.is_empty()
}

fn map_keys(schema: &Props, path: &LinkedPath, errors: &mut Errors) {
    let (Some(item), Some(list_type @ ("set" | "map"))) = (schema.item(), schema.list_type) else { return };
    let items = &LinkedPath::Name(path, "items");
    if item.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbidden(&LinkedPath::Name(items, "nullable"), detail);
    }
    if list_type == "set" {
        return;
    }
    let properties = &LinkedPath::Name(items, "properties");
    for key in schema.map_keys.iter() {
        let Some(property) = item.properties.get(key) else { continue };
        let path = &LinkedPath::Key(properties, key);
        if !item.required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.required(&LinkedPath::Name(path, "default"), detail);
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(&LinkedPath::Name(path, "nullable"), detail);
        }
    }
}

/// The context that a node inherits from its ancestors.
#[derive(Clone, Default)]
struct InheritedContext {
    allows_defaults: bool,
    /// The reason why defaults are not allowed.
    because: String,
    in_metadata: bool,
    /// The path of the topmost ancestor whose old and new values cannot be correlated.
    uncorrelated: Option<String>,
}

impl InheritedContext {
    fn without_defaults(&self, because: String) -> Self {
        Self { allows_defaults: false, because, ..self.clone() }
    }

    fn uncorrelated(&self, path: &LinkedPath) -> Self {
        let mut place = self.clone();
        place.uncorrelated.get_or_insert_with(|| path.field());
        place
    }
}

struct StructuralWalk<'w, 'o> {
    options: &'w CrdRequirements<'o>,
    errors: &'w mut Errors,
    rule_errors: Errors,
    costs: Costs,
}

impl StructuralWalk<'_, '_> {
    fn check_node(
        &mut self,
        schema: &Props,
        is_root: bool,
        path: &LinkedPath,
        place: &InheritedContext,
        scope: &RuleScope,
    ) {
        let before = self.errors.list.len();
        self.check_keywords(schema, path, place);
        self.check_children(schema, is_root, path, place, scope);
        self.check_types(schema, path);
        for (at, rule) in schema.rules.iter().enumerate() {
            let path = &LinkedPath::Index(&LinkedPath::Name(path, "x-kubernetes-validations"), at);
            rule_texts(rule, schema, path, self.errors);
        }
        // Rules are checked only if the schema is valid: otherwise its errors would be reported for them again.
        if self.errors.list.len() == before && !schema.rules.is_empty() && scope.is_some() {
            let path = &LinkedPath::Name(path, "x-kubernetes-validations");
            let mut rules = CrdRuleChecker {
                uncorrelated: place.uncorrelated.as_deref(),
                options: self.options,
                costs: &mut self.costs,
                errors: &mut self.rule_errors,
            };
            rules.check(schema, scope, path);
        }
    }

    fn check_keywords(&mut self, schema: &Props, path: &LinkedPath, place: &InheritedContext) {
        let errors = &mut *self.errors;
        let at = |keyword| LinkedPath::Name(path, keyword);
        if self.options.require_valid_types && !has_valid_type(schema) {
            errors.unsupported(&at("type"), schema.kind, &TYPES);
        }
        if schema.default.is_some() && !place.allows_defaults {
            let space = if place.because.is_empty() { "" } else { " " };
            errors.forbidden(&at("default"), format!("must not be set{space}{}", place.because));
        }
        for (is_there, keyword) in [
            (!schema.id.is_empty(), "id"),
            (schema.additional_items.is_some(), "additionalItems"),
            (!schema.pattern_properties.is_empty(), "patternProperties"),
            (!schema.definitions.is_empty(), "definitions"),
            (schema.dependencies.is_given, "dependencies"),
            (schema.reference.is_some(), "$ref"),
        ] {
            if is_there {
                errors.forbidden(&at(keyword), format!("{keyword} is not supported"));
            }
        }
        if schema.kind == "null" {
            errors.forbidden(&at("type"), "type cannot be set to null, use nullable as an alternative");
        }
        if schema.items.as_ref().is_some_and(|items| !items.schemas.is_empty()) {
            errors.forbidden(&at("items"), "items must be a schema object and not an array");
        }
        if place.in_metadata && schema.embedded {
            errors.forbidden(&at("x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
        }
        if schema.unique_items {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            errors.forbidden(&at("uniqueItems"), detail);
        }
    }

    fn check_children(
        &mut self,
        schema: &Props,
        is_root: bool,
        path: &LinkedPath,
        place: &InheritedContext,
        scope: &RuleScope,
    ) {
        if let Some(additional) = &schema.additional {
            let path = &LinkedPath::Name(path, "additionalProperties");
            if !schema.properties.is_empty() && (!additional.allows || additional.schema.is_some()) {
                self.errors.forbidden(path, "additionalProperties and properties are mutual exclusive");
            }
            if let Some(entry) = &additional.schema {
                let why = "inside additionalProperties applying to object metadata".to_owned();
                let inner = if place.in_metadata { place.without_defaults(why) } else { place.clone() };
                self.check_node(entry, false, path, &inner, &scope.entry(schema, entry));
            }
        }
        let properties = &LinkedPath::Name(path, "properties");
        let inner = match schema.map_type {
            None | Some("granular" | "atomic") => place.clone(),
            Some(_) => place.uncorrelated(path),
        };
        for (name, property) in schema.properties.iter() {
            let path = &LinkedPath::Key(properties, name);
            let scope = &scope.property(schema, name, property);
            if (is_root || schema.embedded) && matches!(name, "metadata" | "kind" | "apiVersion") {
                let mut inner = InheritedContext { in_metadata: true, ..inner.clone() };
                if is_root {
                    inner = inner.without_defaults(format!("in top-level {name}"));
                }
                self.check_node(property, false, path, &inner, scope);
            } else {
                self.check_node(property, false, path, &inner, scope);
            }
        }
        self.check_combined(schema, path, place);
        if let Some(items) = &schema.items {
            let inner = if schema.list_type == Some("map") { place.clone() } else { place.uncorrelated(path) };
            let path = &LinkedPath::Name(path, "items");
            if let Some(item) = &items.schema {
                self.check_node(item, false, path, &inner, &scope.item(schema, item));
            }
            for (at, item) in items.schemas.iter().enumerate() {
                self.check_node(item, false, &LinkedPath::Index(path, at), &inner, &RuleScope::none());
            }
        }
        for (name, dependency) in schema.dependencies.iter() {
            if let Some(schema) = &dependency.schema {
                let path = &LinkedPath::Name(path, "dependencies");
                self.check_node(schema, false, &LinkedPath::Key(path, name), place, &RuleScope::none());
            }
        }
    }

    fn check_combined(&mut self, schema: &Props, path: &LinkedPath, place: &InheritedContext) {
        let none = &RuleScope::none();
        if let Some(not) = &schema.not {
            self.check_node(not, false, &LinkedPath::Name(path, "not"), place, none);
        }
        for (keyword, schemas) in [("allOf", &schema.all_of), ("oneOf", &schema.one_of), ("anyOf", &schema.any_of)] {
            for (at, schema) in schemas.iter().enumerate() {
                self.check_node(schema, false, &LinkedPath::Index(&LinkedPath::Name(path, keyword), at), place, none);
            }
        }
        for (name, schema) in schema.definitions.iter() {
            self.check_node(schema, false, &LinkedPath::Key(&LinkedPath::Name(path, "definitions"), name), place, none);
        }
    }

    /// Checks the type and the `x-kubernetes-*` keywords.
    fn check_types(&mut self, schema: &Props, path: &LinkedPath) {
        let errors = &mut *self.errors;
        let at = |keyword| LinkedPath::Name(path, keyword);
        if schema.preserve_unknown == Some(false) {
            errors.invalid(&at("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined");
        }
        let of_type = |wanted: &str, keyword: &str, errors: &mut Errors| {
            let detail = format!("must be {wanted} if {keyword} is specified");
            match schema.kind {
                "" => errors.required(&at("type"), detail),
                other => errors.invalid(&at("type"), other, detail),
            }
        };
        if let Some(map_type) = schema.map_type {
            if schema.kind != "object" {
                of_type("object", "x-kubernetes-map-type", errors);
            }
            if !matches!(map_type, "atomic" | "granular") {
                errors.unsupported(&at("x-kubernetes-map-type"), map_type, &["atomic", "granular"]);
            }
        }
        if schema.list_type.is_some() && schema.kind != "array" {
            of_type("array", "x-kubernetes-list-type", errors);
        } else if let (true, Some(item), Some(keyword)) =
            (self.options.require_atomic_sets, schema.item(), non_atomic_set(schema))
        {
            // The server prints the list type of the items for both keywords.
            let shown = item.list_type.map_or_else(|| "null".to_owned(), |of| format!("\"{of}\""));
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.invalid_as(&LinkedPath::Name(&at("items"), keyword), &shown, detail);
        }
        if let Some(list_type) = schema.list_type.filter(|of| !matches!(*of, "atomic" | "set" | "map")) {
            errors.unsupported(&at("x-kubernetes-list-type"), list_type, &["atomic", "set", "map"]);
        }
        if !schema.map_keys.is_empty() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match schema.list_type {
                None => errors.required(&at("x-kubernetes-list-type"), detail),
                Some("map") => {}
                Some(other) => errors.invalid(&at("x-kubernetes-list-type"), other, detail),
            }
        }
        if schema.list_type == Some("map") {
            list_map(schema, path, errors);
        }
        if self.options.require_map_keys {
            map_keys(schema, path, errors);
        }
    }
}

fn list_map(schema: &Props, path: &LinkedPath, errors: &mut Errors) {
    let (keys_path, items_path) =
        (&LinkedPath::Name(path, "x-kubernetes-list-map-keys"), &LinkedPath::Name(path, "items"));
    if schema.map_keys.is_empty() {
        errors.required(keys_path, "must not be empty if x-kubernetes-list-type is map");
    }
    let Some(items) = &schema.items else {
        return errors.required(items_path, "must have a schema if x-kubernetes-list-type is map");
    };
    let Some(item) = &items.schema else {
        let detail = "must only have a single schema if x-kubernetes-list-type is map";
        return errors.invalid_as(items_path, &items.show(), detail);
    };
    if item.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.invalid(&LinkedPath::Name(items_path, "type"), item.kind, detail);
    }
    let keys = || show_list(&schema.map_keys);
    for (at, key) in schema.map_keys.iter().enumerate() {
        match item.properties.get(key) {
            None => errors.invalid_as(keys_path, &keys(), "entries must all be names of item properties"),
            Some(property) if matches!(property.kind, "array" | "object") => {
                let path = &LinkedPath::Key(&LinkedPath::Name(items_path, "properties"), key);
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.invalid(&LinkedPath::Name(path, "type"), item.kind, detail);
            }
            Some(_) => {}
        }
        if schema.map_keys[..at].contains(key) {
            errors.invalid_as(keys_path, &keys(), "must not contain duplicate entries");
        }
    }
}

/// Checks the strings of a rule without compiling it.
fn rule_texts(rule: &super::props::ValidationRule, schema: &Props, path: &LinkedPath, errors: &mut Errors) {
    let at = |field| LinkedPath::Name(path, field);
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let (trimmed, message) = (go_trim(rule.rule), go_trim(rule.message));
    if trimmed.is_empty() {
        errors.required(&at("rule"), "rule is not specified");
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.invalid(&at("message"), rule.message, "must be non-empty if specified");
    } else if has_breaks(message) {
        errors.invalid(&at("message"), rule.message, "must not contain line breaks");
    } else if has_breaks(trimmed) && message.is_empty() {
        errors.required(&at("message"), "message must be specified if rule contains line breaks");
    }
    if !rule.message_expression.is_empty() && go_trim(rule.message_expression).is_empty() {
        errors.required(&at("messageExpression"), "messageExpression must be non-empty if specified");
    }
    if let Some(reason) = rule.reason.filter(|reason| !REASONS.contains(reason)) {
        errors.unsupported(&at("reason"), reason, &REASONS);
    }
    if rule.field_path.is_empty() {
        return;
    }
    if go_trim(rule.field_path).is_empty() {
        errors.invalid(&at("fieldPath"), rule.field_path, "must be non-empty if specified");
    }
    if has_breaks(rule.field_path) {
        errors.invalid(&at("fieldPath"), rule.field_path, "must not contain line breaks");
    }
    if structural::unsupported(schema).is_none() && selectable::follow(rule.field_path, schema, true).is_err() {
        errors.invalid(&at("fieldPath"), rule.field_path, "must be a valid path");
    }
}

/// `strings.TrimSpace`
fn go_trim(text: &str) -> &str {
    text.trim_matches(char::is_whitespace)
}

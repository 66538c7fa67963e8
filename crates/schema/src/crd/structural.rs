//! Whether a schema is structural: every field is declared with a type outside `allOf`, `anyOf`, `oneOf` and `not`,
//! and those only restrict values.

use super::api_value::ApiValue;
use super::found::Errors;
use super::props::Props;
use crate::ignored_keywords::drop_documentation;
use crate::older_releases;
use crate::path::LinkedPath;
use gantry_k8s_cel::KubernetesRelease;
use gantry_k8s_cel::re2::syntax::{self, PatternError};

/// The reason why a schema cannot be converted to a structural one, if any: the first one found.
pub fn unsupported(schema: &Props) -> Option<String> {
    convert(schema).err()
}

fn convert(schema: &Props) -> Result<(), String> {
    for (is_there, keyword) in [
        (!schema.id.is_empty(), "id"),
        (!schema.schema.is_empty(), "schema"),
        (schema.reference.is_some_and(|reference| !reference.is_empty()), "$ref"),
        (!schema.pattern_properties.is_empty(), "patternProperties"),
        (!schema.dependencies.is_empty(), "dependencies"),
        (schema.additional_items.is_some(), "additionalItems"),
        (!schema.definitions.is_empty(), "definitions"),
    ] {
        if is_there {
            return Err(format!("OpenAPIV3Schema '{keyword}' is not supported"));
        }
    }
    let combined = schema.not.as_deref().into_iter();
    let combined = combined.chain(schema.all_of.iter()).chain(schema.any_of.iter()).chain(schema.one_of.iter());
    for schema in combined {
        convert(schema)?;
    }
    if schema.preserve_unknown == Some(false) {
        return Err("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
    }
    if let Some(items) = &schema.items {
        if !items.schemas.is_empty() {
            return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
        }
        items.schema.as_ref().map_or(Ok(()), convert)?;
    }
    schema.properties.values().chain(schema.entry()).try_for_each(convert)
}

/// The position of a schema in a structural schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StructuralPosition {
    Root,
    Item,
    Field,
}

/// Whether a schema can be converted to a structural one and meets the structural requirements.
pub fn is_structural(schema: &Props, release: KubernetesRelease) -> bool {
    let mut errors = Errors::default();
    if unsupported(schema).is_none() {
        check(schema, release, &LinkedPath::Root, &mut errors);
        return errors.list.is_empty();
    }
    false
}

/// Checks a schema that can be converted to a structural one.
pub fn check(schema: &Props, release: KubernetesRelease, path: &LinkedPath, errors: &mut Errors) {
    let is_documented = |schema: &Props| schema.external_docs.is_some() || schema.example.is_some();
    if release < older_releases::STRUCTURAL_DOCUMENTATION
        && schema.has(&mut { is_documented })
        && let Some(raw) = schema.raw.0
    {
        let mut plain = raw.clone();
        drop_documentation(&mut plain);
        if let Ok(plain) = Props::decode(&plain) {
            return check_structural(&plain, release, path, errors);
        }
    }
    check_structural(schema, release, path, errors);
}

fn check_structural(schema: &Props, release: KubernetesRelease, path: &LinkedPath, errors: &mut Errors) {
    check_invariants(schema, StructuralPosition::Root, path, errors);
    if release < older_releases::NO_OTHERS_IN_NESTED {
        check_no_others(schema, false, path, errors);
    }
    check_complete(schema, Some(schema), path, path, errors);
}

/// Rejects `additionalProperties: false` in value validations, as older servers do; newer ones ignore it.
fn check_no_others(schema: &Props, is_nested: bool, path: &LinkedPath, errors: &mut Errors) {
    if is_nested && schema.additional.as_ref().is_some_and(|additional| !additional.allows) {
        errors.forbidden(&LinkedPath::Name(path, "additionalProperties"), "must be undefined to be structural");
    }
    for (keyword, schemas) in [("allOf", &schema.all_of), ("anyOf", &schema.any_of), ("oneOf", &schema.one_of)] {
        for (at, schema) in schemas.iter().enumerate() {
            check_no_others(schema, true, &LinkedPath::Index(&LinkedPath::Name(path, keyword), at), errors);
        }
    }
    let parts = [("not", schema.not.as_deref(), true), ("items", schema.item(), is_nested)];
    for (keyword, part, is_nested) in parts {
        if let Some(part) = part {
            check_no_others(part, is_nested, &LinkedPath::Name(path, keyword), errors);
        }
    }
    if let Some(entry) = schema.entry().filter(|_| !is_nested) {
        check_no_others(entry, false, &LinkedPath::Name(path, "additionalProperties"), errors);
    }
    let properties = &LinkedPath::Name(path, "properties");
    for (name, property) in schema.properties.iter() {
        check_no_others(property, is_nested, &LinkedPath::Key(properties, name), errors);
    }
}

fn check_invariants(schema: &Props, level: StructuralPosition, path: &LinkedPath, errors: &mut Errors) {
    if schema.kind == "array" && schema.item().is_none() {
        errors.required(&LinkedPath::Name(path, "items"), "must be specified");
    }
    if let Some(item) = schema.item() {
        check_invariants(item, StructuralPosition::Item, &LinkedPath::Name(path, "items"), errors);
    }
    let properties = &LinkedPath::Name(path, "properties");
    for (name, property) in schema.properties.iter() {
        check_invariants(property, StructuralPosition::Field, &LinkedPath::Key(properties, name), errors);
    }
    if schema.additional.is_some() {
        let path = &LinkedPath::Name(path, "additionalProperties");
        if level == StructuralPosition::Root {
            errors.forbidden(path, "must not be used at the root");
        }
        if let Some(entry) = schema.entry() {
            check_invariants(entry, StructuralPosition::Field, path, errors);
        }
    }
    check_extensions(schema, path, errors);
    let skip_any_of = is_int_or_string(&schema.any_of);
    let skip_in_all_of = schema.all_of.first().is_some_and(|first| is_int_or_string(&first.any_of));
    check_value_validations(schema, skip_any_of, skip_in_all_of, path, errors);
    check_type(schema, level, path, errors);
    if schema.embedded && schema.additional.is_some() {
        let path = LinkedPath::Name(path, "additionalProperties");
        errors.forbidden(&path, "must not be used if x-kubernetes-embedded-resource is set");
    }
    if level == StructuralPosition::Root && !schema.kind.is_empty() && schema.kind != "object" {
        errors.invalid(&LinkedPath::Name(path, "type"), schema.kind, "must be object at the root");
    }
    check_metadata(schema, level, properties, errors);
    if schema.embedded && schema.preserve_unknown.is_none() && schema.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.required(properties, detail);
    }
}

fn check_type(schema: &Props, level: StructuralPosition, path: &LinkedPath, errors: &mut Errors) {
    let path = &LinkedPath::Name(path, "type");
    if schema.embedded && schema.kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match schema.kind {
            "" => errors.required(path, detail),
            other => errors.invalid(path, other, detail),
        }
    } else if schema.kind.is_empty() && !schema.int_or_string && schema.preserve_unknown.is_none() {
        errors.required(
            path,
            match level {
                StructuralPosition::Root => "must not be empty at the root",
                StructuralPosition::Item => "must not be empty for specified array items",
                StructuralPosition::Field => "must not be empty for specified object fields",
            },
        );
    }
}

fn check_extensions(schema: &Props, path: &LinkedPath, errors: &mut Errors) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if schema.int_or_string && schema.preserve_unknown.is_some() {
        errors.invalid(&LinkedPath::Name(path, "x-kubernetes-preserve-unknown-fields"), true, detail);
    }
    if schema.int_or_string && schema.embedded {
        errors.invalid(&LinkedPath::Name(path, "x-kubernetes-embedded-resource"), true, detail);
    }
}

/// Checks the schemas of kind, version and metadata in a resource.
fn check_metadata(schema: &Props, level: StructuralPosition, properties: &LinkedPath, errors: &mut Errors) {
    let is_resource = level == StructuralPosition::Root || schema.embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.properties.get(name).filter(|of| is_resource && of.kind != "string") {
            errors.invalid(
                &LinkedPath::Name(&LinkedPath::Key(properties, name), "type"),
                property.kind,
                "must be string",
            );
        }
    }
    let Some(metadata) = schema.properties.get("metadata") else { return };
    let path = &LinkedPath::Key(properties, "metadata");
    if is_resource && metadata.kind != "object" {
        errors.invalid(&LinkedPath::Name(path, "type"), metadata.kind, "must be object");
    }
    if level == StructuralPosition::Root && !allows_only_names(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(path, detail);
    }
}

fn allows_only_names(metadata: &Props) -> bool {
    let names_only = metadata.properties.keys().all(|name| matches!(name, "name" | "generateName"));
    let mut rest = metadata.clone();
    rest.kind = "";
    rest.default = None;
    rest.properties = Default::default();
    names_only && is_zero(&rest, false)
}

/// Whether a schema consists of zero values, as the server compares structures: in some fields an empty list differs
/// from a missing one.
fn is_zero(schema: &Props, nested: bool) -> bool {
    let given = schema.required.is_given || schema.map_keys.is_given || schema.rules.is_given;
    let is_object = schema.additional.as_ref().is_some_and(|of| !nested || of.allows);
    let mut plain = schema.clone();
    plain.additional = None;
    plain.items = None;
    // The server does not copy these keywords.
    plain.reference = None;
    plain.dependencies = Default::default();
    plain == Props::default()
        && !given
        && !is_object
        && schema.item().is_none()
        && !(nested && schema.properties.is_given)
}

/// `anyOf: [{type: integer}, {type: string}]`
fn is_int_or_string(any_of: &[Props]) -> bool {
    let is_only = |schema: &Props, kind: &str| {
        let mut rest = schema.clone();
        rest.kind = "";
        schema.kind == kind && is_zero(&rest, true)
    };
    matches!(any_of, [first, second] if is_only(first, "integer") && is_only(second, "string"))
}

/// Checks the value validations of a schema, including combined schemas.
fn check_value_validations(
    schema: &Props,
    skip_any_of: bool,
    skip_in_all_of: bool,
    path: &LinkedPath,
    errors: &mut Errors,
) {
    let each = |keyword, schemas: &[Props], skip_first: bool, errors: &mut Errors| {
        for (at, schema) in schemas.iter().enumerate() {
            check_nested(
                schema,
                skip_first && at == 0,
                &LinkedPath::Index(&LinkedPath::Name(path, keyword), at),
                errors,
            );
        }
    };
    if !skip_any_of {
        each("anyOf", &schema.any_of, false, errors);
    }
    each("allOf", &schema.all_of, skip_in_all_of, errors);
    each("oneOf", &schema.one_of, false, errors);
    if let Some(not) = &schema.not {
        check_nested(not, false, &LinkedPath::Name(path, "not"), errors);
    }
    if !schema.pattern.is_empty()
        && let Err(PatternError::Refused(problem)) = syntax::check(schema.pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.invalid(&LinkedPath::Name(path, "pattern"), schema.pattern, detail);
    }
}

fn check_nested(schema: &Props, skip_any_of: bool, path: &LinkedPath, errors: &mut Errors) {
    check_value_validations(schema, skip_any_of, false, path, errors);
    if let Some(item) = schema.item() {
        check_nested(item, false, &LinkedPath::Name(path, "items"), errors);
    }
    let properties = &LinkedPath::Name(path, "properties");
    for (name, property) in schema.properties.iter() {
        check_nested(property, false, &LinkedPath::Key(properties, name), errors);
    }
    let (empty, undefined, unset) =
        ("must be empty to be structural", "must be undefined to be structural", "must be false to be structural");
    let allows = schema.additional.as_ref().is_some_and(|additional| additional.allows);
    for (is_there, keyword, detail) in [
        (!schema.kind.is_empty(), "type", empty),
        (allows, "additionalProperties", undefined),
        (schema.default.is_some(), "default", undefined),
        (!schema.title.is_empty(), "title", empty),
        (!schema.description.is_empty(), "description", empty),
        (schema.nullable, "nullable", unset),
        (schema.preserve_unknown.is_some(), "x-kubernetes-preserve-unknown-fields", unset),
        (schema.embedded, "x-kubernetes-embedded-resource", unset),
        (schema.int_or_string, "x-kubernetes-int-or-string", unset),
        (!schema.map_keys.is_empty(), "x-kubernetes-list-map-keys", empty),
        (schema.list_type.is_some(), "x-kubernetes-list-type", undefined),
        (schema.map_type.is_some(), "x-kubernetes-map-type", undefined),
        (!schema.rules.is_empty(), "x-kubernetes-validations", empty),
    ] {
        if is_there {
            errors.forbidden(&LinkedPath::Name(path, keyword), detail);
        }
    }
    if schema.properties.contains_key("metadata") {
        errors.forbidden(&LinkedPath::Key(properties, "metadata"), "must not be specified in a nested context");
    }
}

/// Checks that everything with value validations is also declared outside, at `declared_path`.
fn check_complete(
    schema: &Props,
    declared: Option<&Props>,
    declared_path: &LinkedPath,
    path: &LinkedPath,
    errors: &mut Errors,
) {
    let mut each = |keyword, schemas: &[Props]| {
        for (at, schema) in schemas.iter().enumerate() {
            let path = &LinkedPath::Index(&LinkedPath::Name(path, keyword), at);
            complete_nested(schema, declared, declared_path, path, errors);
        }
    };
    each("allOf", &schema.all_of);
    each("anyOf", &schema.any_of);
    each("oneOf", &schema.one_of);
    if let Some(not) = &schema.not {
        complete_nested(not, declared, declared_path, &LinkedPath::Name(path, "not"), errors);
    }
}

fn complete_nested(
    schema: &Props,
    declared: Option<&Props>,
    declared_path: &LinkedPath,
    path: &LinkedPath,
    errors: &mut Errors,
) {
    let Some(declared) = declared else {
        return errors.required(declared_path, format!("because it is defined in {}", path.field()));
    };
    check_complete(schema, Some(declared), declared_path, path, errors);
    if let Some(item) = schema.item() {
        let (declared_path, path) = (&LinkedPath::Name(declared_path, "items"), &LinkedPath::Name(path, "items"));
        complete_nested(item, declared.item(), declared_path, path, errors);
    }
    for (name, property) in schema.properties.iter() {
        let (declared_path, path) =
            (&LinkedPath::Name(declared_path, "properties"), &LinkedPath::Name(path, "properties"));
        let (declared_path, path) = (&LinkedPath::Key(declared_path, name), &LinkedPath::Key(path, name));
        complete_nested(property, declared.properties.get(name), declared_path, path, errors);
    }
}

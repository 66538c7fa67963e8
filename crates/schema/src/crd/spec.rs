//! The parts of a CRD other than its schemas: group, scope, names, versions, columns, subresources.

use std::collections::BTreeSet;

use super::found::Errors;
use super::model::{Column, CrdModel, CrdNamesModel, CrdVersionModel, ScaleDeclaration, VersionSubresources};
use super::options::CrdRequirements;
use super::{conversion, schema, selectable, show};
use crate::names as texts;
use crate::path::LinkedPath;
use gantry_k8s_cel::gotext;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub fn check(crd: &CrdModel, options: &CrdRequirements, errors: &mut Errors) {
    let path = &LinkedPath::Name(&LinkedPath::Root, "spec");
    check_group(crd, path, errors);
    match crd.scope {
        "Cluster" | "Namespaced" => {}
        "" => errors.required(&LinkedPath::Name(path, "scope"), ""),
        other => errors.unsupported(&LinkedPath::Name(path, "scope"), other, &["Cluster", "Namespaced"]),
    }
    let mut options = options.clone();
    options.require_structural |= !crd.preserve_unknown;
    require_version_schemas(crd, &options, path, errors);
    if crd.has_schema_with(&mut |schema| schema.default.is_some()) {
        options.require_structural = true;
        if crd.preserve_unknown {
            let path = LinkedPath::Name(path, "preserveUnknownFields");
            errors.invalid(&path, true, "must be false in order to use defaults in the schema");
        }
    }
    options.require_structural |= crd.has_schema_with(&mut |schema| {
        schema.embedded
            || schema.preserve_unknown.is_some()
            || schema.int_or_string
            || !schema.map_keys.is_empty()
            || schema.list_type.is_some()
            || !schema.rules.is_empty()
    });
    let versions = &LinkedPath::Name(path, "versions");
    for (at, version) in crd.versions.iter().enumerate() {
        let path = &LinkedPath::Index(versions, at);
        errors.complaints(&LinkedPath::Name(path, "name"), version.name, &texts::dns_1035_label(version.name));
        let has_status = crd.subresources_of(version.name).is_some_and(|of| of.status);
        self::check_version(version, has_status, &options, path, errors);
    }
    check_versions(crd, path, errors);
    let names = &LinkedPath::Name(path, "names");
    for (name, value) in [
        ("plural", crd.names.plural),
        ("singular", &crd.names.singular),
        ("kind", crd.names.kind),
        ("listKind", &crd.names.list_kind),
    ] {
        if value.is_empty() {
            errors.required(&LinkedPath::Name(names, name), "");
        }
    }
    self::check_names(&crd.names, names, errors);
    let has_status = crd.subresources.iter().chain(crd.versions.iter().filter_map(|v| v.subresources.as_ref()));
    let has_status = has_status.into_iter().any(|of| of.status);
    if let Some(validation) = &crd.validation {
        let path = &LinkedPath::Name(path, "validation");
        schema::check(validation, has_status, &options.of_version(crd.version), path, errors);
    }
    check_subresources(crd.subresources.as_ref(), &LinkedPath::Name(path, "subresources"), errors);
    for (at, column) in crd.columns.iter().enumerate() {
        self::check_column(column, &LinkedPath::Index(&LinkedPath::Name(path, "additionalPrinterColumns"), at), errors);
    }
    if !crd.selectable.is_empty() {
        let fields = LinkedPath::Name(path, "selectableFields");
        match &crd.validation {
            None => errors.invalid(&fields, "", "may only be set when validations.schema is included"),
            Some(validation) => {
                let schema = selectable::structural(
                    validation.schema.as_ref(),
                    &LinkedPath::Name(path, "schema.openAPIV3Schema"),
                    errors,
                );
                selectable::check(&crd.selectable, schema, options.may_have_many_selectable(""), &fields, errors);
            }
        }
    }
    let conversion = &LinkedPath::Name(path, "conversion");
    if crd.conversion.strategy != "None" && crd.preserve_unknown {
        let path = LinkedPath::Name(conversion, "strategy");
        errors.invalid(&path, crd.conversion.strategy, "must be None if spec.preserveUnknownFields is true");
    }
    conversion::check(&crd.conversion, &options, conversion, errors);
}

fn check_group(crd: &CrdModel, path: &LinkedPath, errors: &mut Errors) {
    let path = &LinkedPath::Name(path, "group");
    let complaints = texts::subdomain(crd.group);
    if crd.group.is_empty() {
        errors.required(path, "");
    } else if !complaints.is_empty() {
        errors.complaints(path, crd.group, &complaints);
    } else if !crd.group.contains('.') {
        errors.invalid(path, crd.group, "should be a domain with at least one dot");
    }
}

fn require_version_schemas(crd: &CrdModel, options: &CrdRequirements, path: &LinkedPath, errors: &mut Errors) {
    if crd.validation.as_ref().is_some_and(|validation| validation.schema.is_some()) {
        return;
    }
    let versions = &LinkedPath::Name(path, "versions");
    for (at, version) in crd.versions.iter().enumerate() {
        if version.validation.as_ref().is_some_and(|validation| validation.schema.is_some()) {
            continue;
        }
        let path = LinkedPath::Index(versions, at);
        let path = LinkedPath::Name(&path, "schema");
        let path = LinkedPath::Name(&path, "openAPIV3Schema");
        if options.require_schema {
            errors.required(&path, "");
        } else if !crd.preserve_unknown && version.served {
            errors.required(&path, "because otherwise all fields are pruned");
        }
    }
}

fn check_version(
    version: &CrdVersionModel,
    has_status: bool,
    options: &CrdRequirements,
    path: &LinkedPath,
    errors: &mut Errors,
) {
    deprecation_warning(version, &LinkedPath::Name(path, "deprecationWarning"), errors);
    if let Some(validation) = &version.validation {
        schema::check(
            validation,
            has_status,
            &options.of_version(version.name),
            &LinkedPath::Name(path, "schema"),
            errors,
        );
    }
    check_subresources(version.subresources.as_ref(), &LinkedPath::Name(path, "subresources"), errors);
    let columns = &LinkedPath::Name(path, "additionalPrinterColumns");
    for (at, column) in version.columns.iter().enumerate() {
        self::check_column(column, &LinkedPath::Index(columns, at), errors);
    }
    if !version.selectable.is_empty() {
        let fields = LinkedPath::Name(path, "selectableFields");
        match version.validation.as_ref().and_then(|validation| validation.schema.as_ref()) {
            None => {
                errors.invalid(&fields, "", "may only be set when `version.schema.openAPIV3Schema` is not included")
            }
            schema => {
                let schema = selectable::structural(schema, &LinkedPath::Name(path, "schema.openAPIV3Schema"), errors);
                let many = options.may_have_many_selectable(version.name);
                selectable::check(&version.selectable, schema, many, &fields, errors);
            }
        }
    }
}

fn deprecation_warning(version: &CrdVersionModel, path: &LinkedPath, errors: &mut Errors) {
    let Some(warning) = version.deprecation_warning else { return };
    let mut invalid = |detail: &str| errors.invalid_as(path, &gotext::json(&warning.into()), detail);
    if !version.deprecated {
        return invalid("can only be set for deprecated versions");
    }
    if warning.len() > 256 {
        invalid("must be <= 256 characters long");
    }
    if warning.is_empty() {
        invalid("must not be an empty string");
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !gotext::is_printable(*c)) {
        let detail =
            format!("must only contain printable UTF-8 characters; non-printable character found at index {at}");
        invalid(&detail);
    }
}

/// Checks the versions as a whole.
fn check_versions(crd: &CrdModel, path: &LinkedPath, errors: &mut Errors) {
    let versions = &crd.versions;
    let every = LinkedPath::Name(path, "versions");
    let shown = || show::versions(versions);
    // Fields common to several versions have already been moved to the top level.
    let names: BTreeSet<&str> = versions.iter().map(|version| version.name).collect();
    if names.len() != versions.len() {
        errors.invalid_as(&every, &shown(), "must contain unique version names");
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        errors.invalid_as(&every, &shown(), "must have exactly one version marked as storage version");
    }
    if !crd.version.is_empty() {
        errors.complaints(&LinkedPath::Name(path, "version"), crd.version, &texts::dns_1035_label(crd.version));
    }
}

/// Checks the names of a resource that are set.
pub fn check_names(names: &CrdNamesModel, path: &LinkedPath, errors: &mut Errors) {
    let label = |name, value: &str, errors: &mut Errors| {
        if !value.is_empty() {
            errors.complaints(&LinkedPath::Name(path, name), value, &texts::dns_1035_label(value));
        }
    };
    label("plural", names.plural, errors);
    label("singular", &names.singular, errors);
    for (name, kind) in [("kind", names.kind), ("listKind", &names.list_kind)] {
        let complaints = texts::dns_1035_label(&gotext::lower(kind));
        if !kind.is_empty() && !complaints.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
            errors.invalid(&LinkedPath::Name(path, name), kind, detail);
        }
    }
    let each = |name, values: &[&str], errors: &mut Errors| {
        for (at, value) in values.iter().enumerate() {
            errors.complaints(
                &LinkedPath::Index(&LinkedPath::Name(path, name), at),
                value,
                &texts::dns_1035_label(value),
            );
        }
    };
    each("shortNames", &names.short_names, errors);
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let path = LinkedPath::Name(path, "listKind");
        errors.invalid(&path, names.list_kind.as_str(), "kind and listKind may not be the same");
    }
    each("categories", &names.categories, errors);
}

fn check_column(column: &Column, path: &LinkedPath, errors: &mut Errors) {
    if column.name.is_empty() {
        errors.required(&LinkedPath::Name(path, "name"), "");
    }
    let detail = || format!("must be one of {}", COLUMN_TYPES.join(","));
    if column.kind.is_empty() {
        errors.required(&LinkedPath::Name(path, "type"), detail());
    } else if !COLUMN_TYPES.contains(&column.kind) {
        errors.invalid(&LinkedPath::Name(path, "type"), column.kind, detail());
    }
    if !column.format.is_empty() && !COLUMN_FORMATS.contains(&column.format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.invalid(&LinkedPath::Name(path, "format"), column.format, detail);
    }
    let path = &LinkedPath::Name(path, "JSONPath");
    if column.json_path.is_empty() {
        errors.required(path, "");
    } else {
        is_simple_path(column.json_path, path, errors);
    }
}

/// Whether a path has the form required for columns and the scale subresource.
fn is_simple_path(text: &str, path: &LinkedPath, errors: &mut Errors) -> bool {
    let is_simple = text.starts_with('.');
    if !is_simple {
        errors.invalid(path, text, "must be a simple json path starting with .");
    }
    is_simple
}

fn check_subresources(subresources: Option<&VersionSubresources>, path: &LinkedPath, errors: &mut Errors) {
    let Some(ScaleDeclaration { spec_replicas, status_replicas, label_selector }) =
        subresources.and_then(|subresources| subresources.scale.as_ref())
    else {
        return;
    };
    for (name, value, prefix) in
        [("scale.specReplicasPath", spec_replicas, ".spec"), ("scale.statusReplicasPath", status_replicas, ".status")]
    {
        let path = &LinkedPath::Name(path, name);
        if value.is_empty() {
            errors.required(path, "");
        } else if is_simple_path(value, path, errors) && !value.starts_with(&format!("{prefix}.")) {
            errors.invalid(path, *value, format!("should be a json path under {prefix}"));
        }
    }
    let path = &LinkedPath::Name(path, "scale.labelSelectorPath");
    if let Some(selector) = label_selector.filter(|path| !path.is_empty())
        && is_simple_path(selector, path, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        errors.invalid(path, selector, "should be a json path under either .spec or .status");
    }
}

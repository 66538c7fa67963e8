//! Formats the versions of a CRD like Go's `json.Marshal`: messages quote whole structures.

use super::api_value::{ApiValue, show_struct};
use super::model::{Column, CrdVersionModel, CrdVersionSchema, VersionSubresources};

fn or_null<T>(item: Option<T>, show: impl Fn(T) -> String) -> String {
    item.map_or_else(|| "null".to_owned(), show)
}

fn list_or_null<T>(items: &[T], is_given: bool, show: impl Fn(&T) -> String) -> String {
    let list = || format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(","));
    is_given.then(list).unwrap_or_else(|| "null".to_owned())
}

pub fn versions(versions: &[CrdVersionModel]) -> String {
    list_or_null(versions, !versions.is_empty(), |version| {
        let selectable = |path: &&str| show_struct(&[("JSONPath", path.show())]);
        show_struct(&[
            ("Name", version.name.show()),
            ("Served", version.served.show()),
            ("Storage", version.storage.show()),
            ("Deprecated", version.deprecated.show()),
            ("DeprecationWarning", version.deprecation_warning.show()),
            ("Schema", or_null(version.validation.as_ref(), validation)),
            ("Subresources", or_null(version.subresources.as_ref(), subresources)),
            ("AdditionalPrinterColumns", list_or_null(&version.columns, version.columns.is_given, column)),
            ("SelectableFields", list_or_null(&version.selectable, version.selectable.is_given, selectable)),
        ])
    })
}

fn validation(validation: &CrdVersionSchema) -> String {
    show_struct(&[("OpenAPIV3Schema", validation.schema.show())])
}

fn subresources(subresources: &VersionSubresources) -> String {
    let scale = or_null(subresources.scale.as_ref(), |scale| {
        show_struct(&[
            ("SpecReplicasPath", scale.spec_replicas.show()),
            ("StatusReplicasPath", scale.status_replicas.show()),
            ("LabelSelectorPath", scale.label_selector.show()),
        ])
    });
    let status = if subresources.status { "{}" } else { "null" };
    show_struct(&[("Status", status.to_owned()), ("Scale", scale)])
}

fn column(column: &Column) -> String {
    show_struct(&[
        ("Name", column.name.show()),
        ("Type", column.kind.show()),
        ("Format", column.format.show()),
        ("Description", column.description.show()),
        ("Priority", column.priority.show()),
        ("JSONPath", column.json_path.show()),
    ])
}

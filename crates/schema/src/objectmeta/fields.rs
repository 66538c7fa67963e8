//! The one table of the fields of `ObjectMeta`: of how the server decodes and writes metadata, of what server-side apply
//! can parse, and in gantry of the messages of Protocol Buffers.

/// The type of a metadata field in Go. A pointer distinguishes an empty value from a missing one.
#[derive(Clone, Copy, Debug)]
pub enum MetadataFieldType {
    /// `string`
    Text,
    /// `string`, written even if it is empty.
    RequiredText,
    /// `int64`
    Integer,
    /// `*int64`
    IntPointer,
    /// `*bool`
    FlagPointer,
    /// `Time`
    Time,
    /// `*Time`
    TimePointer,
    /// `*FieldsV1`: field sets are not inspected.
    Opaque,
    /// `[]string`, which server-side apply merges as a set.
    TextSet,
    /// `map[string]string`
    TextMap,
    /// A list of structures.
    Structs {
        /// The fields of a structure.
        fields: &'static [MetadataField],
        /// The field that identifies a structure in server-side apply, if any.
        key: Option<&'static str>,
    },
}

/// A field of `ObjectMeta`, or of a structure in it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetadataField {
    /// The name in JSON.
    pub name: &'static str,
    /// The number in Protocol Buffers.
    pub number: u32,
    /// The type.
    pub field_type: MetadataFieldType,
}

const fn field(number: u32, name: &'static str, field_type: MetadataFieldType) -> MetadataField {
    MetadataField { name, number, field_type }
}

/// The fields of `OwnerReference`.
pub const OWNER_REFERENCE: &[MetadataField] = &[
    field(1, "kind", MetadataFieldType::RequiredText),
    field(3, "name", MetadataFieldType::RequiredText),
    field(4, "uid", MetadataFieldType::RequiredText),
    field(5, "apiVersion", MetadataFieldType::RequiredText),
    field(6, "controller", MetadataFieldType::FlagPointer),
    field(7, "blockOwnerDeletion", MetadataFieldType::FlagPointer),
];

/// The fields of `ManagedFieldsEntry`.
pub const MANAGED_FIELDS_ENTRY: &[MetadataField] = &[
    field(1, "manager", MetadataFieldType::Text),
    field(2, "operation", MetadataFieldType::Text),
    field(3, "apiVersion", MetadataFieldType::Text),
    field(4, "time", MetadataFieldType::TimePointer),
    field(6, "fieldsType", MetadataFieldType::Text),
    field(7, "fieldsV1", MetadataFieldType::Opaque),
    field(8, "subresource", MetadataFieldType::Text),
];

/// The fields of `ObjectMeta`, in the order of their numbers. Source: `k8s.io/apimachinery/pkg/apis/meta/v1` in
/// Kubernetes 1.36.
pub const METADATA: &[MetadataField] = &[
    field(1, "name", MetadataFieldType::Text),
    field(2, "generateName", MetadataFieldType::Text),
    field(3, "namespace", MetadataFieldType::Text),
    field(4, "selfLink", MetadataFieldType::Text),
    field(5, "uid", MetadataFieldType::Text),
    field(6, "resourceVersion", MetadataFieldType::Text),
    field(7, "generation", MetadataFieldType::Integer),
    field(8, "creationTimestamp", MetadataFieldType::Time),
    field(9, "deletionTimestamp", MetadataFieldType::TimePointer),
    field(10, "deletionGracePeriodSeconds", MetadataFieldType::IntPointer),
    field(11, "labels", MetadataFieldType::TextMap),
    field(12, "annotations", MetadataFieldType::TextMap),
    field(13, "ownerReferences", MetadataFieldType::Structs { fields: OWNER_REFERENCE, key: Some("uid") }),
    field(14, "finalizers", MetadataFieldType::TextSet),
    field(17, "managedFields", MetadataFieldType::Structs { fields: MANAGED_FIELDS_ENTRY, key: None }),
];

/// Whether `ObjectMeta` has a field with this name.
pub fn has_field(name: &str) -> bool {
    METADATA.iter().any(|field| field.name == name)
}

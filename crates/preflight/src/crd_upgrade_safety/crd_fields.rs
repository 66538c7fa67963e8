//! Every field of a CRD outside its schemas, and the rules that are responsible for it.
//!
//! Rules claim the keywords of schemas (see [`super::rule::Claim`]). The fields around the schemas belong to rules
//! about whole CRDs, which claim nothing, so this table lists who is responsible. A test compares it with the API's own
//! description, so that a new field of Kubernetes is noticed.

/// Who is responsible for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldCoverage {
    /// The rules with these names.
    Rules(&'static [&'static str]),
    /// No rule, for this reason.
    Waived(&'static str),
}

use FieldCoverage::{Rules, Waived};

/// The name of the API type without its prefix, the field, and who is responsible for it.
pub const FIELDS: &[(&str, &str, FieldCoverage)] = &[
    ("CustomResourceColumnDefinition", "description", Waived("documentation")),
    ("CustomResourceColumnDefinition", "format", Waived("how kubectl prints a column")),
    ("CustomResourceColumnDefinition", "jsonPath", Rules(&["PrinterColumnRemoved"])),
    ("CustomResourceColumnDefinition", "name", Rules(&["PrinterColumnRemoved"])),
    ("CustomResourceColumnDefinition", "priority", Waived("how kubectl prints a column")),
    ("CustomResourceColumnDefinition", "type", Rules(&["PrinterColumnRemoved"])),
    ("CustomResourceConversion", "strategy", Rules(&["ConversionChanged"])),
    ("CustomResourceConversion", "webhook", Rules(&["ConversionChanged"])),
    ("CustomResourceDefinitionNames", "categories", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionNames", "kind", Rules(&["KindChanged"])),
    ("CustomResourceDefinitionNames", "listKind", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionNames", "plural", Rules(&["KindChanged"])),
    ("CustomResourceDefinitionNames", "shortNames", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionNames", "singular", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionSpec", "conversion", Rules(&["ConversionChanged"])),
    ("CustomResourceDefinitionSpec", "group", Waived("part of the CRD's name: another group means another CRD")),
    ("CustomResourceDefinitionSpec", "names", Rules(&["KindChanged", "NameRemoved"])),
    ("CustomResourceDefinitionSpec", "preserveUnknownFields", Rules(&["PruningTurnedOn"])),
    ("CustomResourceDefinitionSpec", "scope", Rules(&["NoScopeChange"])),
    (
        "CustomResourceDefinitionSpec",
        "versions",
        Rules(&["NoStoredVersionRemoved", "ServedVersionRemoved", "UnservedVersionRemoved"]),
    ),
    ("CustomResourceDefinitionVersion", "additionalPrinterColumns", Rules(&["PrinterColumnRemoved"])),
    ("CustomResourceDefinitionVersion", "deprecated", Rules(&["VersionDeprecated"])),
    ("CustomResourceDefinitionVersion", "deprecationWarning", Waived("the text of a warning")),
    ("CustomResourceDefinitionVersion", "name", Rules(&["NoStoredVersionRemoved", "ServedVersionRemoved"])),
    (
        "CustomResourceDefinitionVersion",
        "schema",
        Rules(&["ServedVersionLosesFields", "ServedVersionsDiffer", "UnknownChange"]),
    ),
    ("CustomResourceDefinitionVersion", "selectableFields", Rules(&["SelectableFieldRemoved"])),
    ("CustomResourceDefinitionVersion", "served", Rules(&["VersionUnserved"])),
    ("CustomResourceDefinitionVersion", "storage", Rules(&["StorageVersionLosesFields", "StorageVersionMoved"])),
    ("CustomResourceDefinitionVersion", "subresources", Rules(&["StatusSubresourceAdded", "SubresourceRemoved"])),
    ("CustomResourceSubresourceScale", "labelSelectorPath", Rules(&["ScalePathChanged"])),
    ("CustomResourceSubresourceScale", "specReplicasPath", Rules(&["ScalePathChanged"])),
    ("CustomResourceSubresourceScale", "statusReplicasPath", Rules(&["ScalePathChanged"])),
    ("CustomResourceSubresources", "scale", Rules(&["ScalePathChanged", "SubresourceRemoved"])),
    ("CustomResourceSubresources", "status", Rules(&["StatusSubresourceAdded", "SubresourceRemoved"])),
    ("CustomResourceValidation", "openAPIV3Schema", Rules(&["UnknownChange"])),
    ("SelectableField", "jsonPath", Rules(&["SelectableFieldRemoved"])),
    ("ServiceReference", "name", Rules(&["ConversionChanged"])),
    ("ServiceReference", "namespace", Rules(&["ConversionChanged"])),
    ("ServiceReference", "path", Rules(&["ConversionChanged"])),
    ("ServiceReference", "port", Waived("the server defaults it; with another port it is still the same service")),
    ("ValidationRule", "fieldPath", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "message", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "messageExpression", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "optionalOldSelf", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "reason", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "rule", Rules(&["ValidationRuleChange"])),
    (
        "WebhookClientConfig",
        "caBundle",
        Waived("often injected by another tool; a wrong one fails when the webhook is called"),
    ),
    ("WebhookClientConfig", "service", Rules(&["ConversionChanged"])),
    ("WebhookClientConfig", "url", Rules(&["ConversionChanged"])),
    ("WebhookConversion", "clientConfig", Rules(&["ConversionChanged"])),
    ("WebhookConversion", "conversionReviewVersions", Waived("a protocol between the server and the webhook")),
];

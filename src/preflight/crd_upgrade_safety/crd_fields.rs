//! Every field of a CRD outside its schemas, and which rule is responsible for it.
//!
//! Keywords of schemas are claimed by rules (see [`super::rule::Claim`]); what surrounds the schemas is looked at by rules
//! about whole CRDs, which read what they need. This table keeps count of them: a test holds it against the API's own
//! description, so that a field that Kubernetes adds is noticed.

/// Which rule is responsible for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The rules of these names.
    Rules(&'static [&'static str]),
    /// Nobody, for this reason.
    Waived(&'static str),
}

use Holder::{Rules, Waived};

/// By the name of the API's type, without its prefix, and the field.
pub const FIELDS: &[(&str, &str, Holder)] = &[
    ("CustomResourceColumnDefinition", "description", Waived("documentation")),
    ("CustomResourceColumnDefinition", "format", Waived("how kubectl prints a column")),
    ("CustomResourceColumnDefinition", "jsonPath", Waived("what a column shows; no request depends on it")),
    ("CustomResourceColumnDefinition", "name", Rules(&["PrinterColumnRemoved"])),
    ("CustomResourceColumnDefinition", "priority", Waived("how kubectl prints a column")),
    ("CustomResourceColumnDefinition", "type", Waived("how kubectl prints a column")),
    ("CustomResourceConversion", "strategy", Rules(&["ConversionChanged"])),
    ("CustomResourceConversion", "webhook", Rules(&["ConversionChanged"])),
    ("CustomResourceDefinitionNames", "categories", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionNames", "kind", Rules(&["KindChanged"])),
    ("CustomResourceDefinitionNames", "listKind", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionNames", "plural", Rules(&["KindChanged"])),
    ("CustomResourceDefinitionNames", "shortNames", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionNames", "singular", Rules(&["NameRemoved"])),
    ("CustomResourceDefinitionSpec", "conversion", Rules(&["ConversionChanged"])),
    ("CustomResourceDefinitionSpec", "group", Waived("part of the CRD's name: another group is another CRD")),
    ("CustomResourceDefinitionSpec", "names", Rules(&["KindChanged", "NameRemoved"])),
    ("CustomResourceDefinitionSpec", "preserveUnknownFields", Rules(&["PruningTurnedOn"])),
    ("CustomResourceDefinitionSpec", "scope", Rules(&["NoScopeChange"])),
    ("CustomResourceDefinitionSpec", "versions", Rules(&["NoStoredVersionRemoved", "ServedVersionRemoved"])),
    ("CustomResourceDefinitionVersion", "additionalPrinterColumns", Rules(&["PrinterColumnRemoved"])),
    ("CustomResourceDefinitionVersion", "deprecated", Rules(&["VersionDeprecated"])),
    ("CustomResourceDefinitionVersion", "deprecationWarning", Waived("the words of a warning")),
    ("CustomResourceDefinitionVersion", "name", Rules(&["NoStoredVersionRemoved", "ServedVersionRemoved"])),
    ("CustomResourceDefinitionVersion", "schema", Rules(&["ServedVersionsDiffer", "UnknownChange"])),
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
    ("ServiceReference", "port", Waived("the server fills it in; a service that moves its port is the same service")),
    ("ValidationRule", "fieldPath", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "message", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "messageExpression", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "optionalOldSelf", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "reason", Rules(&["ValidationRuleChange"])),
    ("ValidationRule", "rule", Rules(&["ValidationRuleChange"])),
    (
        "WebhookClientConfig",
        "caBundle",
        Waived("often put in by somebody else; a wrong one shows when the webhook is asked"),
    ),
    ("WebhookClientConfig", "service", Rules(&["ConversionChanged"])),
    ("WebhookClientConfig", "url", Rules(&["ConversionChanged"])),
    ("WebhookConversion", "clientConfig", Rules(&["ConversionChanged"])),
    ("WebhookConversion", "conversionReviewVersions", Waived("what the server and the webhook agree on")),
];

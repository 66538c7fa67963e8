//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    CRD_OBJECTS = "CRDDeletionLosesObjects",
    CRD_NEEDED = "CRDNeededElsewhere",
    CHANGED_BY_OTHER = "ChangedByOther",
    EXTENSION_OBJECTS = "ExtensionDeletionLosesObjects",
    FINALIZER_HANGS = "FinalizerWillHang",
    NAMESPACE_OBJECTS = "NamespaceDeletionTakesOthers",
    RIGHTS_LOST = "RightsLost",
    VOLUME_DATA = "VolumeDeletionLosesData",
    SERVICE_CALLED = "WebhookLosesService",
}

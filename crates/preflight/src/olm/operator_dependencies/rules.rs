//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    API_OWNED_TWICE = "ApiOwnedTwice",
    DEPENDENT_BROKEN = "DependentBroken",
    REQUIRED_API_MISSING = "RequiredApiMissing",
    REQUIRED_PACKAGE_MISSING = "RequiredPackageMissing",
    SHARED_CRD_NOT_COMPATIBLE = "SharedCrdNotCompatible",
    SUBSCRIPTION_NOT_RESOLVED = "SubscriptionNotResolved",
    UPDATE_TOGETHER = "UpdateTogether",
}

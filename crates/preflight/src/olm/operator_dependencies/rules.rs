//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    API_OWNED_TWICE = "ApiOwnedTwice",
    DEPENDENCY_INSTALLED = "DependencyInstalled",
    DEPENDENT_BROKEN = "DependentBroken",
    OPERATOR_GROUP_INVALID = "OperatorGroupInvalid",
    REQUIRED_API_MISSING = "RequiredApiMissing",
    REQUIRED_PACKAGE_MISSING = "RequiredPackageMissing",
    SHARED_CRD_NOT_COMPATIBLE = "SharedCrdNotCompatible",
    SUBSCRIPTION_NOT_RESOLVED = "SubscriptionNotResolved",
    SUBSCRIPTION_STUCK = "SubscriptionStuck",
    UPDATE_TOGETHER = "UpdateTogether",
}

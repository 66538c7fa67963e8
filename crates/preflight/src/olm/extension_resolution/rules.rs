//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    AMBIGUOUS_CATALOGS = "AmbiguousCatalogs",
    AUTOMATIC_UPGRADE = "AutomaticUpgrade",
    BUNDLE_NOT_RESOLVED = "BundleNotResolved",
    CATALOG_INVALID = "CatalogInvalid",
    DEPRECATED = "Deprecated",
    DOWNGRADE = "Downgrade",
    EXTENSION_INVALID = "ExtensionInvalid",
    FORCED_UPGRADE = "ForcedUpgrade",
    INSTALL_NAMESPACE_MISSING = "InstallNamespaceMissing",
    MAJOR_UPGRADE = "MajorUpgrade",
    MAJOR_ZERO_UPGRADE = "MajorZeroUpgrade",
    NO_BUNDLE_FOUND = "NoBundleFound",
    OLM_RELEASE_UNKNOWN = "OlmReleaseUnknown",
    OWNED_BY_ANOTHER = "OwnedByAnother",
    OWNED_VERSION_MISMATCH = "OwnedVersionMismatch",
    PACKAGE_INSTALLED_TWICE = "PackageInstalledTwice",
    SERVICE_ACCOUNT_MISSING = "ServiceAccountMissing",
    TIED_BUNDLES = "TiedBundles",
    UNSUPPORTED_BUNDLE = "UnsupportedBundle",
    UPGRADE_EDGE_MISSING = "UpgradeEdgeMissing",
    VERSION_RANGE_INVALID = "VersionRangeInvalid",
}

//! The documentation of this check's rules.

mod installation;
mod resolution;
mod upgrades;

pub use self::installation::*;
pub use self::resolution::*;
pub use self::upgrades::*;
use crate::preflight::rule::RuleDoc;

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![
        &AMBIGUOUS_CATALOGS,
        &AUTOMATIC_UPGRADE,
        &CATALOG_INVALID,
        &DEPRECATED,
        &DOWNGRADE,
        &EXTENSION_INVALID,
        &FORCED_UPGRADE,
        &INSTALL_NAMESPACE_MISSING,
        &MAJOR_UPGRADE,
        &MAJOR_ZERO_UPGRADE,
        &NO_BUNDLE_FOUND,
        &OWNED_BY_ANOTHER,
        &OWNED_VERSION_MISMATCH,
        &PACKAGE_INSTALLED_TWICE,
        &SERVICE_ACCOUNT_MISSING,
        &TIED_BUNDLES,
        &UNSUPPORTED_BUNDLE,
        &UPGRADE_EDGE_MISSING,
        &VERSION_RANGE_INVALID,
    ]
}

/// A catalog with two versions and an edge between them.
const MINOR: &str = "\
schema: olm.package
name: sample
defaultChannel: stable
---
schema: olm.channel
package: sample
name: stable
entries:
- {name: sample.v1.0.0}
- {name: sample.v1.1.0, replaces: sample.v1.0.0}
---
schema: olm.bundle
package: sample
name: sample.v1.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.0.0}}
---
schema: olm.bundle
package: sample
name: sample.v1.1.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.1.0}}
";

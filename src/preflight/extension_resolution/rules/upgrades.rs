//! Rules about the update from the installed version.

use super::MINOR;
use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

pub static AUTOMATIC_UPGRADE: RuleDoc = RuleDoc {
    name: "AutomaticUpgrade",
    summary: "OLM updates to later versions automatically (note)",
    reports: "A ClusterExtension whose version is not pinned and that OLM updates without another deploy, with all \
        updates that the edges of the catalog allow, in order.",
    why: "OLM v1 resolves the extension again after each installation and whenever a catalog changes.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
status:
  install: {bundle: {name: sample.v1.0.0, version: 1.0.0}}
",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, channels: [stable]}
",
        catalogs: &["\
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
- {name: sample.v1.2.0, replaces: sample.v1.1.0}
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
---
schema: olm.bundle
package: sample
name: sample.v1.2.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.2.0}}
"],
    },
    what_to_do: "Set `version` to a single version to prevent further updates.",
    breaks: &[],
    severity: Severity::Info,
};

pub static DOWNGRADE: RuleDoc = RuleDoc {
    name: "Downgrade",
    summary: "a ClusterExtension is downgraded",
    reports: "A ClusterExtension that resolves to a lower version than the installed one, usually because of \
        `upgradeConstraintPolicy: SelfCertified`.",
    why: "An older operator may not be able to read what the newer one has written: CRDs, objects, data.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
status:
  install: {bundle: {name: sample.v1.1.0, version: 1.1.0}}
",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 1.0.0, upgradeConstraintPolicy: SelfCertified}
",
        catalogs: &[MINOR],
    },
    what_to_do: "Make sure that the publisher supports the downgrade, and make a backup first.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static FORCED_UPGRADE: RuleDoc = RuleDoc {
    name: "ForcedUpgrade",
    summary: "a ClusterExtension is updated without an upgrade edge",
    reports: "A ClusterExtension with `upgradeConstraintPolicy: SelfCertified` (`Ignore` in v1alpha1) that resolves to \
        a bundle to which no edge of the named channels leads from the installed one.",
    why: "The publisher does not support this update, and the migrations of the versions in between do not run.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
status:
  install: {bundle: {name: sample.v1.0.0, version: 1.0.0}}
",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 1.2.0, upgradeConstraintPolicy: SelfCertified}
",
        catalogs: &["\
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
- {name: sample.v1.2.0, replaces: sample.v1.1.0}
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
---
schema: olm.bundle
package: sample
name: sample.v1.2.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.2.0}}
"],
    },
    what_to_do: "Update along the edges; `gantry catalog PACKAGE --from VERSION --to VERSION` shows the path.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static MAJOR_UPGRADE: RuleDoc = RuleDoc {
    name: "MajorUpgrade",
    summary: "a ClusterExtension is upgraded to a different major version",
    reports: "A ClusterExtension that resolves to a different major version than the installed one. With \
        `upgradeConstraints: semver` it is an error, because such a version is not resolved at all.",
    why: "In semantic versioning, a different major version may be incompatible. OLM v1 no longer prevents such an \
        update: an edge in the catalog is enough.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
status:
  install: {bundle: {name: sample.v1.0.0, version: 1.0.0}}
",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 2.0.0}
",
        catalogs: &["\
schema: olm.package
name: sample
defaultChannel: stable
---
schema: olm.channel
package: sample
name: stable
entries:
- {name: sample.v1.0.0}
- {name: sample.v2.0.0, replaces: sample.v1.0.0}
- {name: sample.v3.0.0, replaces: sample.v2.0.0}
---
schema: olm.bundle
package: sample
name: sample.v1.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.0.0}}
---
schema: olm.bundle
package: sample
name: sample.v2.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 2.0.0}}
---
schema: olm.bundle
package: sample
name: sample.v3.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 3.0.0}}
"],
    },
    what_to_do: "Read the release notes. To stay on the same major version, set `version: ^1.2`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static MAJOR_ZERO_UPGRADE: RuleDoc = RuleDoc {
    name: "MajorZeroUpgrade",
    summary: "a ClusterExtension below 1.0.0 is upgraded to a version that may be incompatible",
    reports: "A ClusterExtension below 1.0.0 that resolves to a different minor version, or from one 0.0.z version to \
        another. It is an error with `upgradeConstraints: semver`.",
    why: "In semantic versioning, every minor version below 1.0.0 may be incompatible, and so may every 0.0.z version.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
status:
  install: {bundle: {name: sample.v0.1.0, version: 0.1.0}}
",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 0.2.0}
",
        catalogs: &["\
schema: olm.package
name: sample
defaultChannel: stable
---
schema: olm.channel
package: sample
name: stable
entries:
- {name: sample.v0.1.0}
- {name: sample.v0.2.0, replaces: sample.v0.1.0}
---
schema: olm.bundle
package: sample
name: sample.v0.1.0
properties:
- {type: olm.package, value: {packageName: sample, version: 0.1.0}}
---
schema: olm.bundle
package: sample
name: sample.v0.2.0
properties:
- {type: olm.package, value: {packageName: sample, version: 0.2.0}}
"],
    },
    what_to_do: "Read the release notes. To stay on the same minor version, set `version: ~0.2.0`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static UPGRADE_EDGE_MISSING: RuleDoc = RuleDoc {
    name: "UpgradeEdgeMissing",
    summary: "no upgrade edge leads to the requested version",
    reports: "A ClusterExtension whose version is in the catalog, but no entry for it in the named channels (in all \
        channels, if none is named) replaces or skips the installed bundle or has the installed version in its \
        `skipRange`. The help lists the versions to which the installed one can be updated, and the shortest path \
        along the edges.",
    why: "OLM v1 updates only along the edges of the catalog: it keeps the installed version and retries forever.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
status:
  install: {bundle: {name: sample.v1.0.0, version: 1.0.0}}
",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 3.0.0}
",
        catalogs: &["\
schema: olm.package
name: sample
defaultChannel: stable
---
schema: olm.channel
package: sample
name: stable
entries:
- {name: sample.v1.0.0}
- {name: sample.v2.0.0, replaces: sample.v1.0.0}
- {name: sample.v3.0.0, replaces: sample.v2.0.0}
---
schema: olm.bundle
package: sample
name: sample.v1.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.0.0}}
---
schema: olm.bundle
package: sample
name: sample.v2.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 2.0.0}}
---
schema: olm.bundle
package: sample
name: sample.v3.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 3.0.0}}
"],
    },
    what_to_do: "Update along the edges, one version after the other. `upgradeConstraintPolicy: SelfCertified` updates \
        without an edge.",
    breaks: &[],
    severity: Severity::Error,
};

//! The way from the installed version.

use super::MINOR;
use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

pub static AUTOMATIC_UPGRADE: RuleDoc = RuleDoc {
    name: "AutomaticUpgrade",
    summary: "OLM upgrades to later versions by itself (note)",
    reports: "A ClusterExtension whose version is not pinned and that OLM updates without another deploy: all steps that \
        the edges of the catalog allow, in their order.",
    why: "OLM v1 resolves again whenever something is installed or a catalog changes.",
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
    what_to_do: "Set version to one version to stay there.",
    breaks: &[],
    severity: Severity::Info,
};

pub static DOWNGRADE: RuleDoc = RuleDoc {
    name: "Downgrade",
    summary: "a ClusterExtension is downgraded",
    reports: "A ClusterExtension that resolves to a lower version than the installed one, most often with \
        upgradeConstraintPolicy: SelfCertified.",
    why: "An older operator may not read what the newer one has written: CRDs, objects, data.",
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
    what_to_do: "Make sure that the publisher supports it, and that there is a backup.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static FORCED_UPGRADE: RuleDoc = RuleDoc {
    name: "ForcedUpgrade",
    summary: "a ClusterExtension is updated without an upgrade edge",
    reports: "A ClusterExtension with upgradeConstraintPolicy: SelfCertified (Ignore in v1alpha1) that resolves to a \
        bundle to which no edge leads from the installed one, over the channels that it names.",
    why: "The publisher has not foreseen this update, and migrations of versions in between do not run.",
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
    what_to_do: "Go over the edges: gantry catalog PACKAGE --from VERSION --to VERSION.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static MAJOR_UPGRADE: RuleDoc = RuleDoc {
    name: "MajorUpgrade",
    summary: "a ClusterExtension is upgraded to another major version",
    reports: "A ClusterExtension that resolves to another major version than the installed one. It is an error under \
        upgradeConstraints: semver, where such a version is not resolved at all.",
    why: "By the rules of semantic versions another major version may break what the last one could do. OLM v1 no \
        longer asks: an edge of the catalog is enough.",
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
    what_to_do: "Read the release notes; keep to the line with version: ^1.2.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static MAJOR_ZERO_UPGRADE: RuleDoc = RuleDoc {
    name: "MajorZeroUpgrade",
    summary: "a ClusterExtension below 1.0.0 is upgraded to a version that may break",
    reports: "A ClusterExtension below 1.0.0 that resolves to another minor version, or from one 0.0.z to another. It is \
        an error under upgradeConstraints: semver.",
    why: "Below 1.0.0 every minor version may break what the last one could do, and every 0.0.z.",
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
    what_to_do: "Read the release notes; keep to the line with version: ~0.2.0.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static UPGRADE_EDGE_MISSING: RuleDoc = RuleDoc {
    name: "UpgradeEdgeMissing",
    summary: "no upgrade edge leads to the version that is asked for",
    reports: "A ClusterExtension whose version is in the catalog, but no entry of the named channels (of all, if none is \
        named) replaces or skips the installed bundle or has its version in skipRange. The help has what the \
        installed version can be updated to, and the shortest way over the edges.",
    why: "OLM v1 updates along the edges of the catalog alone: it stays with the installed version and tries again for \
        ever.",
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
    what_to_do: "Go the way over the edges, one version after another. upgradeConstraintPolicy: SelfCertified goes without an \
        edge.",
    breaks: &[],
    severity: Severity::Error,
};

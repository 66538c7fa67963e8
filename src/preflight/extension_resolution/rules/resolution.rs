//! Rules about what a ClusterExtension resolves to.

use super::MINOR;
use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

pub static AMBIGUOUS_CATALOGS: RuleDoc = RuleDoc {
    name: "AmbiguousCatalogs",
    summary: "several catalogs with the same priority have the requested bundle",
    reports: "A ClusterExtension for which two or more of the selected catalogs have a matching bundle, if none of \
        these catalogs has a higher priority than all others. OLM v1 never compares versions across catalogs.",
    why: "OLM v1 installs nothing, and reports that in the condition `Progressing` of the ClusterExtension.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
",
        catalogs: &[MINOR, MINOR],
    },
    what_to_do: "Select one catalog by its label `olm.operatorframework.io/metadata.name`, or give one a higher \
        `spec.priority`.",
    breaks: &[],
    severity: Severity::Error,
};

pub static CATALOG_INVALID: RuleDoc = RuleDoc {
    name: "CatalogInvalid",
    summary: "opm validate refuses the package in the catalog",
    reports: "Mistakes in the package that a ClusterExtension requests, with the messages of `opm validate`: several \
        heads of a channel, cycles, stranded bundles, invalid ranges, duplicate versions, and others.",
    why: "OLM v1 uses such a catalog anyway: it ignores invalid edges, and some bundles may be unreachable.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
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
- {name: sample.v1.1.0}
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
"],
    },
    what_to_do: "Ask the publisher of the catalog to fix it, or name only channels without mistakes.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static DEPRECATED: RuleDoc = RuleDoc {
    name: "Deprecated",
    summary: "a requested package, channel or bundle is deprecated",
    reports: "A package, a channel or a bundle that `olm.deprecations` of the catalog deprecates, with the catalog's \
        message: the requested package, the channels that the ClusterExtension names (all channels, if it names none), \
        and the bundle that it resolves to.",
    why: "A deprecated package, channel or bundle gets no new versions. OLM v1 installs a deprecated bundle only if \
        there is no other.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
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
schema: olm.deprecations
package: sample
entries:
- {reference: {schema: olm.package}, message: use other instead}
"],
    },
    what_to_do: "Follow the message, or name a channel that is not deprecated.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static EXTENSION_INVALID: RuleDoc = RuleDoc {
    name: "ExtensionInvalid",
    summary: "a field of a ClusterExtension has the wrong type or value",
    reports: "A ClusterExtension with a field that has the wrong type or value: a `version` without quotes, `channels` \
        that is not a list, a `sourceType` other than `Catalog`, no `packageName`. It has no other \
        findings then.",
    why: "The API server refuses the object, or OLM v1 interprets it differently than intended.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 1.1}
",
        catalogs: &[MINOR],
    },
    what_to_do: "Fix the field. In YAML, 3.10 without quotes is the number 3.1.",
    breaks: &[],
    severity: Severity::Error,
};

pub static NO_BUNDLE_FOUND: RuleDoc = RuleDoc {
    name: "NoBundleFound",
    summary: "no catalog has the requested package, channel or version",
    reports: "A ClusterExtension that does not resolve to a bundle, with OLM's message and the reason: no such \
        package, no such channel, no version in the range, or only pre-releases, which a range includes only if one of \
        its comparisons names one.",
    why: "OLM v1 installs and updates nothing, and retries forever; the condition `Progressing` shows the reason.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: 4.x}
",
        catalogs: &[MINOR],
    },
    what_to_do: "Use a package, channel or version that exists; `gantry catalog PACKAGE` lists them.",
    breaks: &[],
    severity: Severity::Error,
};

pub static TIED_BUNDLES: RuleDoc = RuleDoc {
    name: "TiedBundles",
    summary: "several bundles of a catalog have the same version",
    reports: "A ClusterExtension that resolves to one of several bundles with the same version and release in one \
        catalog.",
    why: "OLM v1 reads the files of a catalog concurrently and uses the first bundle, so the result is random.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
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
---
schema: olm.bundle
package: sample
name: sample.v1.0.0
properties:
- {type: olm.package, value: {packageName: sample, version: 1.0.0}}
---
schema: olm.bundle
package: sample
name: sample.other
properties:
- {type: olm.package, value: {packageName: sample, version: 1.0.0}}
"],
    },
    what_to_do: "Ask the publisher of the catalog to give one of them a different version or release.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static VERSION_RANGE_INVALID: RuleDoc = RuleDoc {
    name: "VersionRangeInvalid",
    summary: "the version is not a valid range",
    reports: "A `version` of a ClusterExtension that OLM's library cannot parse, or that the CRD refuses: more than 64 \
        characters, hyphen ranges, leading zeros, some wildcards.",
    why: "The API server refuses the object, or OLM v1 resolves nothing.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample, version: latest}
",
        catalogs: &[MINOR],
    },
    what_to_do: "Write comparisons such as `>=1.11`, `<1.13`, `1.12.x`, `^1.2` or `~1.2.3`, with a blank or comma for \
        \"and\" and `||` for \"or\".",
    breaks: &[],
    severity: Severity::Error,
};

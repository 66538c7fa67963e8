//! What a ClusterExtension resolves to, or why to nothing.

use super::MINOR;
use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

pub static AMBIGUOUS_CATALOGS: RuleDoc = RuleDoc {
    name: "AmbiguousCatalogs",
    summary: "several catalogs of one priority have what a ClusterExtension asks for",
    reports: "A ClusterExtension for which two or more of the catalogs that it selects have a bundle, where no one of \
        these has a higher priority than all others. Versions of different catalogs are never compared.",
    why: "OLM v1 installs nothing then, and says so in the condition Progressing of the ClusterExtension.",
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
    what_to_do: "Select one catalog by its label olm.operatorframework.io/metadata.name, or give one a higher spec.priority.",
    breaks: &[],
    severity: Severity::Error,
};

pub static CATALOG_INVALID: RuleDoc = RuleDoc {
    name: "CatalogInvalid",
    summary: "opm validate refuses what the catalog says of the package",
    reports: "Mistakes in the package that a ClusterExtension asks for, in the words of opm validate: several heads of a \
        channel, cycles, stranded bundles, ranges that are none, versions that are there twice and more.",
    why: "OLM v1 takes such a catalog as it is: edges that cannot be read are no edges, and bundles may be out of \
        reach.",
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
    what_to_do: "Ask those who publish the catalog; name the channels that are sound.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static DEPRECATED: RuleDoc = RuleDoc {
    name: "Deprecated",
    summary: "a package, channel or bundle that is asked for is deprecated",
    reports: "What olm.deprecations of the catalog says of the package, of the channels that the ClusterExtension names \
        (of all, if it names none) and of the bundle that it resolves to, with the catalog's message.",
    why: "What is deprecated gets no new versions. OLM v1 installs a deprecated bundle only where there is no other.",
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
    what_to_do: "Do what the message says; name a channel that is not deprecated.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static EXTENSION_INVALID: RuleDoc = RuleDoc {
    name: "ExtensionInvalid",
    summary: "a field of a ClusterExtension has the wrong type or value",
    reports: "A ClusterExtension with a field that is not of its type, or not one of its values: a version without quotes, \
        channels that are no list, another sourceType than Catalog, no packageName. Nothing else is said of it then.",
    why: "The API server refuses the object, or OLM v1 reads something else than what is meant.",
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
    what_to_do: "Correct the field. In YAML, 3.10 without quotes is the number 3.1.",
    breaks: &[],
    severity: Severity::Error,
};

pub static NO_BUNDLE_FOUND: RuleDoc = RuleDoc {
    name: "NoBundleFound",
    summary: "no catalog has what a ClusterExtension asks for",
    reports: "A ClusterExtension that resolves to nothing, in OLM's words, with the step that left nothing: no such \
        package, no such channel, no version in the range, or pre-releases alone, which a range takes only where one \
        of its comparisons has one.",
    why: "OLM v1 installs and updates nothing, and tries again for ever; the condition Progressing says why.",
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
    what_to_do: "Take a package, channel or version that there is: gantry catalog PACKAGE.",
    breaks: &[],
    severity: Severity::Error,
};

pub static TIED_BUNDLES: RuleDoc = RuleDoc {
    name: "TiedBundles",
    summary: "several bundles of a catalog have the same version",
    reports: "A ClusterExtension that resolves to one of several bundles of the same version and release in one catalog.",
    why: "OLM v1 reads the files of a catalog concurrently and uses the first one: which one that is, is random.",
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
    what_to_do: "Ask the publisher of the catalog to give one of them another version or release.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static VERSION_RANGE_INVALID: RuleDoc = RuleDoc {
    name: "VersionRangeInvalid",
    summary: "version is no range",
    reports: "A version of a ClusterExtension that OLM's library does not read, or that the rule of its CRD refuses: more \
        than 64 characters, hyphen ranges, leading zeros, some wildcards.",
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
    what_to_do: "Write comparisons: >=1.11, <1.13, 1.12.x, ^1.2, ~1.2.3; blank or comma for and, || for or.",
    breaks: &[],
    severity: Severity::Error,
};

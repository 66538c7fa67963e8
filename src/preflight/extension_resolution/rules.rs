//! The rules of this check in words.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

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

/// Two versions and an edge.
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

pub static INSTALL_NAMESPACE_MISSING: RuleDoc = RuleDoc {
    name: "InstallNamespaceMissing",
    summary: "the namespace of a ClusterExtension does not exist",
    reports: "A ClusterExtension whose spec.namespace (spec.installNamespace in v1alpha1) is neither live nor among the \
        manifests.",
    why: "OLM v1 does not create it, and the installation fails.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: missing
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
",
        catalogs: &[MINOR],
    },
    what_to_do: "Add the Namespace to the manifests.",
    breaks: &[],
    severity: Severity::Error,
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

pub static OWNED_BY_ANOTHER: RuleDoc = RuleDoc {
    name: "OwnedByAnother",
    summary: "a CRD of the bundle belongs to somebody else",
    reports: "A CRD that the resolved bundle brings and that is live without the owner labels of this ClusterExtension: \
        another ClusterExtension has installed it, or something that is not OLM v1. It is known where the catalog \
        has the bundle's olm.csv.metadata or ClusterServiceVersion.",
    why: "In OLM v1 each object has one owner, and OLM never takes an object over: the installation fails.",
    example: Example::Extension {
        live: "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: samples, kind: Sample}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
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
- type: olm.csv.metadata
  value:
    crdDescriptions: {owned: [{name: samples.test.example.com, version: v1, kind: Sample}]}
    installModes: [{type: AllNamespaces, supported: true}]
"],
    },
    what_to_do: "Remove the other installation first (its CRDs go with all their objects), or leave this extension out.",
    breaks: &[],
    severity: Severity::Error,
};

pub static OWNED_VERSION_MISMATCH: RuleDoc = RuleDoc {
    name: "OwnedVersionMismatch",
    summary: "a ClusterServiceVersion owns a version that its CRD does not serve",
    reports: "A bundle among the manifests whose ClusterServiceVersion names, among its owned CRDs, a version that the CRD \
        of the bundle does not have or does not serve.",
    why: "OLM v1 installs it all the same; what reads the ClusterServiceVersion (classic OLM, consoles, other \
        operators) looks for an API that is not there.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: sample.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v2, kind: Sample}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: samples, kind: Sample}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
",
        catalogs: &[],
    },
    what_to_do: "Name a served version, or serve it.",
    breaks: &[],
    severity: Severity::Error,
};

pub static PACKAGE_INSTALLED_TWICE: RuleDoc = RuleDoc {
    name: "PackageInstalledTwice",
    summary: "two ClusterExtensions ask for one package",
    reports: "A ClusterExtension of the manifests whose package another ClusterExtension of the manifests or of the \
        cluster asks for.",
    why: "OLM v1 installs each object for one ClusterExtension alone; the second installation fails.",
    example: Example::Extension {
        live: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: other}
spec:
  namespace: operators
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: sample}
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
    catalog: {packageName: sample}
",
        catalogs: &[MINOR],
    },
    what_to_do: "Keep one of them. An operator of OLM v1 watches all namespaces.",
    breaks: &[],
    severity: Severity::Error,
};

pub static SERVICE_ACCOUNT_MISSING: RuleDoc = RuleDoc {
    name: "ServiceAccountMissing",
    summary: "the ServiceAccount of a ClusterExtension does not exist",
    reports: "With olm: \"4.16\", a ClusterExtension whose spec.serviceAccount.name is neither live in its namespace nor \
        among the manifests. OLM v1 of today has rights of its own and reads the field no more.",
    why: "That OLM v1 installs with the rights of this account alone, and stops without it.",
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
        catalogs: &[MINOR],
    },
    what_to_do: "Add the ServiceAccount and its rights to the manifests.",
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

pub static UNSUPPORTED_BUNDLE: RuleDoc = RuleDoc {
    name: "UnsupportedBundle",
    summary: "OLM v1 does not install bundles of this sort",
    reports: "A ClusterExtension that resolves to a bundle that OLM v1 refuses, in its words: it declares dependencies, \
        does not support the install mode AllNamespaces, has APIServices, or (olm: \"4.16\") webhooks. What the \
        catalog does not tell of the bundle is a notice.",
    why: "OLM v1 tries no other bundle: nothing is installed.",
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
- {type: olm.gvk.required, value: {group: test.example.com, version: v1, kind: Other}}
"],
    },
    what_to_do: "Ask for a version that is supported: gantry catalog PACKAGE --supported.",
    breaks: &[],
    severity: Severity::Error,
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

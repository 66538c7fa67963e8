//! Whether OLM v1 can install what is resolved.

use super::MINOR;
use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

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

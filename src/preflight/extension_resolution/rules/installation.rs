//! Rules about whether OLM v1 can install the resolved bundle.

use super::MINOR;
use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

pub static INSTALL_NAMESPACE_MISSING: RuleDoc = RuleDoc {
    name: "InstallNamespaceMissing",
    summary: "the namespace of a ClusterExtension does not exist",
    reports: "A ClusterExtension whose `spec.namespace` (`spec.installNamespace` in v1alpha1) is neither live nor \
        among the manifests.",
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
    summary: "a CRD of the bundle has another owner",
    reports: "A CRD of the resolved bundle that is live without the owner labels of this ClusterExtension: it was \
        installed by another ClusterExtension, or not by OLM v1. gantry knows the CRDs of a bundle if the catalog \
        contains its `olm.csv.metadata` or ClusterServiceVersion.",
    why: "In OLM v1, each object has one owner, and OLM never takes over an existing object: the installation fails.",
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
    what_to_do: "Remove the other installation first (this deletes its CRDs with all their objects), or remove this \
        extension.",
    breaks: &[],
    severity: Severity::Error,
};

pub static OWNED_VERSION_MISMATCH: RuleDoc = RuleDoc {
    name: "OwnedVersionMismatch",
    summary: "a ClusterServiceVersion owns a version that its CRD does not serve",
    reports: "A bundle among the manifests whose ClusterServiceVersion names, in its owned CRDs, a version that the \
        CRD of the bundle does not have or does not serve.",
    why: "OLM v1 still installs the bundle, but whatever reads the ClusterServiceVersion (classic OLM, consoles, other \
        operators) looks for an API that does not exist.",
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
    what_to_do: "Name a served version in the ClusterServiceVersion, or serve the version in the CRD.",
    breaks: &[],
    severity: Severity::Error,
};

pub static PACKAGE_INSTALLED_TWICE: RuleDoc = RuleDoc {
    name: "PackageInstalledTwice",
    summary: "two ClusterExtensions install the same package",
    reports: "A ClusterExtension of the manifests whose package is also requested by another ClusterExtension, of the \
        manifests or of the cluster.",
    why: "OLM v1 installs each object for only one ClusterExtension; the second installation fails.",
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
    what_to_do: "Keep one of them: with OLM v1, an operator watches all namespaces.",
    breaks: &[],
    severity: Severity::Error,
};

pub static SERVICE_ACCOUNT_MISSING: RuleDoc = RuleDoc {
    name: "ServiceAccountMissing",
    summary: "the ServiceAccount of a ClusterExtension does not exist",
    reports: "With `olm: \"4.16\"`, a ClusterExtension whose `spec.serviceAccount.name` is neither live in its \
        namespace nor among the manifests. Later releases of OLM v1 have their own rights and ignore the field.",
    why: "This release of OLM v1 installs bundles only with the rights of this account, and fails without it.",
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
    summary: "OLM v1 cannot install this bundle",
    reports: "A ClusterExtension that resolves to a bundle that OLM v1 refuses, with its message: the bundle declares \
        dependencies, does not support the install mode `AllNamespaces`, has APIServices, or has webhooks \
        (with `olm: \"4.16\"`). A notice lists what the catalog does not say about the bundle.",
    why: "OLM v1 does not try another bundle: nothing is installed.",
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
    what_to_do: "Use a supported version; `gantry catalog PACKAGE --supported` lists them.",
    breaks: &[],
    severity: Severity::Error,
};

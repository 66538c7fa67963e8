//! The rules of this check in words.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![
        &API_OWNED_TWICE,
        &DEPENDENT_BROKEN,
        &REQUIRED_API_MISSING,
        &REQUIRED_PACKAGE_MISSING,
        &SHARED_CRD_NOT_COMPATIBLE,
        &UPDATE_TOGETHER,
    ]
}

pub static API_OWNED_TWICE: RuleDoc = RuleDoc {
    name: "ApiOwnedTwice",
    summary: "two operators provide one API",
    reports: "A group, version and kind that two operators of different packages provide after the deploy, at least one of \
        which it installs.",
    why: "There can be only one provider of an API: OLM refuses the second one, and two controllers would fight over \
        the same objects.",
    example: Example::Extension {
        live: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: first.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v1, kind: Sample}]
",
        desired: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: second.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v1, kind: Sample}]
",
        catalogs: &[],
    },
    what_to_do: "Keep one of them. If one is to take the place of the other, say so: spec.replaces of its \
        ClusterServiceVersion.",
    breaks: &[],
    severity: Severity::Error,
};

pub static DEPENDENT_BROKEN: RuleDoc = RuleDoc {
    name: "DependentBroken",
    summary: "an operator loses what it requires",
    reports: "An operator that stays, whose requirement (an API, a package) was met before the deploy and is not after it: \
        its provider is updated to a version without it, or a CRD of the manifests stops serving the version.",
    why: "The operator that is left behind no longer works. Classic OLM prevents it by not updating at all; OLM v1 and \
        kubectl do not.",
    example: Example::Extension {
        live: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: provider.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v1, kind: Sample}]
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: dependent.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    required: [{name: samples.test.example.com, version: v1, kind: Sample}]
",
        desired: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: provider.v2.0.0, namespace: operators}
spec:
  version: 2.0.0
  replaces: provider.v1.0.0
  customresourcedefinitions:
    owned: [{name: others.test.example.com, version: v1, kind: Other}]
",
        catalogs: &[],
    },
    what_to_do: "Keep a version of the provider that has it, or remove the dependent operator first.",
    breaks: &[],
    severity: Severity::Error,
};

pub static REQUIRED_API_MISSING: RuleDoc = RuleDoc {
    name: "RequiredApiMissing",
    summary: "an operator requires an API that no operator provides",
    reports: "An operator of the deploy that requires an API (required CRDs and APIServices, olm.gvk.required, \
        olm.constraint) which no operator provides after the deploy, no CRD of the manifests and no API of the \
        target. Group, version and kind have to be the same.",
    why: "Classic OLM installs nothing then. OLM v1 and kubectl install an operator that does not work.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: dependent.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    required: [{name: samples.test.example.com, version: v1, kind: Sample}]
",
        catalogs: &[],
    },
    what_to_do: "Deploy it with an operator that provides it; the help names bundles of the catalogs that do.",
    breaks: &[],
    severity: Severity::Error,
};

pub static REQUIRED_PACKAGE_MISSING: RuleDoc = RuleDoc {
    name: "RequiredPackageMissing",
    summary: "an operator requires a package that is not there",
    reports: "An operator of the deploy that requires a package in a range of versions (olm.package.required, \
        olm.constraint), where no operator of that package has such a version after the deploy.",
    why: "Classic OLM installs nothing then. OLM v1 refuses every bundle that declares such a dependency.",
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
- {type: olm.package.required, value: {packageName: other, versionRange: '>=1.0.0'}}
"],
    },
    what_to_do: "Deploy it with an operator of that package.",
    breaks: &[],
    severity: Severity::Error,
};

pub static SHARED_CRD_NOT_COMPATIBLE: RuleDoc = RuleDoc {
    name: "SharedCrdNotCompatible",
    summary: "a CRD that several operators own loses a version or refuses objects",
    reports: "A CRD of the manifests that several operators own, of which a served version goes, or whose new schema \
        refuses an object that exists, also where the API server would forgive it on an update.",
    why: "The other operators were made for the CRD as it is. Classic OLM refuses such an update.",
    example: Example::Extension {
        live: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: first.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v1, kind: Sample}]
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: second.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v1, kind: Sample}]
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
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
",
        desired: "\
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
    what_to_do: "Keep all served versions, and keep the schema as wide as the objects are.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    severity: Severity::Error,
};

pub static UPDATE_TOGETHER: RuleDoc = RuleDoc {
    name: "UpdateTogether",
    summary: "two operators can only be updated together",
    reports: "As DependentBroken, where the catalogs have another version of the operator that is left behind with which \
        all that it requires is there after the deploy.",
    why: "Updated alone, one of them breaks the other. Classic OLM is stuck then, too, unless both are updated at \
        once.",
    example: Example::Extension {
        live: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: provider.v1.0.0, namespace: operators}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: samples.test.example.com, version: v1, kind: Sample}]
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: dependent.v1.0.0
  namespace: operators
  labels: {operators.coreos.com/dependent.operators: ''}
spec:
  version: 1.0.0
  customresourcedefinitions:
    required: [{name: samples.test.example.com, version: v1, kind: Sample}]
",
        desired: "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: provider.v2.0.0, namespace: operators}
spec:
  version: 2.0.0
  replaces: provider.v1.0.0
  customresourcedefinitions:
    owned: [{name: others.test.example.com, version: v1, kind: Other}]
",
        catalogs: &["\
schema: olm.package
name: dependent
defaultChannel: stable
---
schema: olm.channel
package: dependent
name: stable
entries: [{name: dependent.v2.0.0}]
---
schema: olm.bundle
package: dependent
name: dependent.v2.0.0
properties:
- {type: olm.package, value: {packageName: dependent, version: 2.0.0}}
- {type: olm.gvk.required, value: {group: test.example.com, version: v1, kind: Other}}
"],
    },
    what_to_do: "Put both updates into one deploy; the help names the bundle.",
    breaks: &[],
    severity: Severity::Error,
};

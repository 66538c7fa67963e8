//! The documentation of this check's rules.

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
        &SUBSCRIPTION_NOT_RESOLVED,
        &UPDATE_TOGETHER,
    ]
}

pub static API_OWNED_TWICE: RuleDoc = RuleDoc {
    name: "ApiOwnedTwice",
    summary: "two operators provide the same API",
    reports: "A group, version and kind that two operators of different packages provide after the deploy, if the \
        deploy installs at least one of them.",
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
    what_to_do: "Keep one of them. If one replaces the other, declare that with `spec.replaces` in its \
        ClusterServiceVersion.",
    breaks: &[],
    severity: Severity::Error,
};

pub static DEPENDENT_BROKEN: RuleDoc = RuleDoc {
    name: "DependentBroken",
    summary: "an operator loses what it requires",
    reports: "A live operator whose requirement (an API or a package) is met before the deploy, but not after it: its \
        provider is deleted or updated to a version without it, or a CRD of the manifests stops serving the version.",
    why: "The dependent operator no longer works. Classic OLM prevents such an update; OLM v1 and kubectl do not.",
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
    what_to_do: "Keep a version of the provider that meets the requirement, or remove the dependent operator first.",
    breaks: &[],
    severity: Severity::Error,
};

pub static REQUIRED_API_MISSING: RuleDoc = RuleDoc {
    name: "RequiredApiMissing",
    summary: "an operator requires an API that no operator provides",
    reports: "An operator of the deploy that requires an API (required CRDs and APIServices, `olm.gvk.required`, \
        `olm.constraint`) that is not available after the deploy: no operator provides it, no CRD of the manifests \
        defines it, and the target does not serve it. Group, version and kind must match exactly.",
    why: "Classic OLM installs nothing. OLM v1 and kubectl install an operator that does not work.",
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
    what_to_do: "Deploy it together with an operator that provides the API; the help names bundles of the catalogs.",
    breaks: &[],
    severity: Severity::Error,
};

pub static REQUIRED_PACKAGE_MISSING: RuleDoc = RuleDoc {
    name: "RequiredPackageMissing",
    summary: "an operator requires a package that is not installed",
    reports: "An operator of the deploy that requires a package in a range of versions (`olm.package.required`, \
        `olm.constraint`), if no operator of that package has such a version after the deploy.",
    why: "Classic OLM installs nothing. OLM v1 refuses every bundle that declares such a dependency.",
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
    what_to_do: "Deploy it together with an operator of that package.",
    breaks: &[],
    severity: Severity::Error,
};

pub static SHARED_CRD_NOT_COMPATIBLE: RuleDoc = RuleDoc {
    name: "SharedCrdNotCompatible",
    summary: "a CRD that several operators own stops serving a version or refuses existing objects",
    reports: "A CRD of the manifests that several operators own, if it stops serving a version, or if its new schema \
        refuses an existing object, even if the API server would tolerate that on an update (ratcheting).",
    why: "The other operators depend on the live CRD. Classic OLM refuses such an update.",
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
    what_to_do: "Keep serving all versions, and keep a schema that accepts all existing objects.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    severity: Severity::Error,
};

pub static SUBSCRIPTION_NOT_RESOLVED: RuleDoc = RuleDoc {
    name: "SubscriptionNotResolved",
    summary: "classic OLM cannot resolve a Subscription",
    reports: "A Subscription of the manifests whose catalog has no bundle for its package, its channel or its \
        `startingCSV`, or whose channel has several heads, none, or a cycle of `replaces`.",
    why: "OLM resolves all Subscriptions of a namespace together: it installs and updates no operator there until this \
        is fixed.",
    example: Example::Extension {
        live: "",
        desired: "\
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: sample, namespace: operators}
spec: {name: sample, channel: stable, source: one, sourceNamespace: olm}
",
        catalogs: &["\
schema: olm.package
name: sample
defaultChannel: stable
---
schema: olm.channel
package: sample
name: stable
entries: [{name: sample.v1.0.0}, {name: sample.v2.0.0}]
---
schema: olm.bundle
package: sample
name: sample.v1.0.0
properties: [{type: olm.package, value: {packageName: sample, version: 1.0.0}}]
---
schema: olm.bundle
package: sample
name: sample.v2.0.0
properties: [{type: olm.package, value: {packageName: sample, version: 2.0.0}}]
"],
    },
    what_to_do: "Correct `spec.name`, `spec.channel` or `spec.startingCSV`; `gantry catalog PACKAGE` shows what the \
        catalog has. If the channel is wrong, its publisher must fix it: exactly one entry may be neither replaced nor \
        skipped by another.",
    breaks: &[],
    severity: Severity::Error,
};

pub static UPDATE_TOGETHER: RuleDoc = RuleDoc {
    name: "UpdateTogether",
    summary: "two operators can only be updated together",
    reports: "The same as DependentBroken, if the catalogs have another version of the dependent operator whose \
        requirements are all met after the deploy.",
    why: "If one of them is updated alone, the other breaks. Classic OLM cannot update them separately, either.",
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
    what_to_do: "Update both in one deploy; the help names the bundle.",
    breaks: &[],
    severity: Severity::Error,
};

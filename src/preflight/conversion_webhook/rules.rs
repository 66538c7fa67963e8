//! The documentation of this check's rules.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&CA_BUNDLE, &FAILS, &LOSES_DATA, &REVIEW_VERSIONS, &SERVICE_MISSING, &SERVICE_NOT_READY, &WORKLOAD_REPLACED]
}

const READERS: &[Breaks] = &[Breaks::Writers, Breaks::Readers];

pub static CA_BUNDLE: RuleDoc = RuleDoc {
    name: "ConversionCABundleInvalid",
    summary: "the API server cannot trust the conversion webhook with its CA bundle",
    reports: "A `caBundle` that is not base64-encoded PEM, contains no certificate, or contains none that is valid \
        today; and a webhook behind a Service without any bundle. It is not reported if somebody else writes the bundle: \
        an annotation says so with which cert-manager or OpenShift injects it, OLM installs the CRD, another field \
        manager owns the live bundle, or the manifests have the webhook's Service and a ClusterRole that may change \
        CRDs, with which an operator writes its own bundle. If the manifest leaves the bundle out, the live one counts, because \
        server-side apply keeps it. If there is none, and the CRD is new or the webhook's Service or workload is among \
        the manifests, this is a warning: many operators write the bundle themselves when they start. A bundle that \
        cannot be parsed stays an error: the server refuses such a CRD, or stores it and does not serve it.",
    why: "The API server does not call a webhook that it does not trust: every read and write at a version other than \
        the stored one fails.",
    example: Example::Crd {
        live: "",
        desired: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        caBundle: Tm8gY2VydGlmaWNhdGU=
        url: https://webhook.example.com/convert
",
    },
    what_to_do: "Set `caBundle` to the certificate of the CA that signs the webhook's certificate, or have it injected \
        with the annotation `cert-manager.io/inject-ca-from`.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static FAILS: RuleDoc = RuleDoc {
    name: "ConversionFails",
    summary: "the live conversion webhook does not convert the existing objects",
    reports: "A served version at which the API server cannot return the objects, because the webhook cannot be \
        reached, is not trusted, refuses, or sends an invalid answer. The message quotes the server.",
    why: "Controllers cannot list their objects, and a storage migration stops at the first object. Garbage collection \
        and namespace deletion are blocked, too.",
    example: Example::Crd {
        live: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: https://127.0.0.1:1/convert}
",
        desired: "",
    },
    what_to_do: "Fix the webhook, its Service or its CA bundle before you deploy anything.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static LOSES_DATA: RuleDoc = RuleDoc {
    name: "ConversionLosesData",
    summary: "the conversion webhook loses data",
    reports: "An existing object that a round trip changes: gantry reads it at a version and writes it there unchanged \
        (as a dry run; nothing is stored), and a value is lost or different. Also a stored value that is missing at \
        another version: an error if that version has the field, otherwise a warning, because the webhook may restore \
        the value in another way.",
    why: "Any client that reads and writes the object at that version erases the value without intending to.",
    example: Example::Crd {
        live: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: https://webhook.example.com/convert}
",
        desired: "",
    },
    what_to_do: "Make the webhook preserve each value, in a field or in an annotation, before any client writes at \
        that version.",
    breaks: &[Breaks::Data],
    severity: Severity::Error,
};

pub static REVIEW_VERSIONS: RuleDoc = RuleDoc {
    name: "ConversionReviewVersionUnknown",
    summary: "the conversion webhook accepts no ConversionReview version that the API server sends",
    reports: "`conversionReviewVersions` with neither `v1` nor `v1beta1`.",
    why: "API servers send only these two. The server refuses the CRD.",
    example: Example::Crd {
        live: "",
        desired: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v2]
      clientConfig: {url: https://webhook.example.com/convert}
",
    },
    what_to_do: "Set `conversionReviewVersions: [v1]`, and make sure that the webhook supports it.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static SERVICE_MISSING: RuleDoc = RuleDoc {
    name: "ConversionServiceMissing",
    summary: "the Service of the conversion webhook, or its port, does not exist",
    reports: "A Service that is neither live nor among the manifests, and a Service without the port that the CRD \
        names (443 by default). It is a warning if the CRD is new: there are no stored objects to convert yet.",
    why: "The API server cannot reach the webhook: every read and write at a version other than the stored one fails.",
    example: Example::Crd {
        live: "",
        desired: "\
metadata:
  annotations: {cert-manager.io/inject-ca-from: default/webhook}
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        service: {namespace: default, name: no-such-service}
",
    },
    what_to_do: "Fix the name, the namespace or the port, or add the Service to the manifests.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static SERVICE_NOT_READY: RuleDoc = RuleDoc {
    name: "ConversionServiceNotReady",
    summary: "no endpoint of the conversion webhook's Service is ready",
    reports: "A Service whose EndpointSlices have no ready address for the port, unless this deploy starts its \
        workload. It is a warning if the CRD is new or the deploy writes the Service.",
    why: "Nothing answers: every read and write at a version other than the stored one fails.",
    example: Example::Crd {
        live: "",
        desired: "\
metadata:
  annotations: {cert-manager.io/inject-ca-from: default/webhook}
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        service: {namespace: default, name: webhook}
",
    },
    what_to_do: "Start the webhook's Pods first; list them with `kubectl get pods` and the Service's selector.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static WORKLOAD_REPLACED: RuleDoc = RuleDoc {
    name: "ConversionWorkloadReplaced",
    summary: "this deploy starts or replaces the conversion webhook's own workload (warning)",
    reports: "How many objects cannot be read at a version other than the stored one until the webhook's Pods run \
        again. A rolling update of a Deployment with a readiness probe keeps its old Pods until then, and is only a \
        note.",
    why: "While no Pod answers, controllers that use another version fail, and so do writes and lists.",
    example: Example::Crd {
        live: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        service: {namespace: default, name: webhook}
",
        desired: "",
    },
    what_to_do: "Use a rolling update (strategy `RollingUpdate` and a readiness probe), and deploy a new webhook \
        before the CRD that needs it.",
    breaks: READERS,
    severity: Severity::Warning,
};

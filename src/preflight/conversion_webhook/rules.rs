//! The rules of this check in words.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&CA_BUNDLE, &FAILS, &LOSES_DATA, &REVIEW_VERSIONS, &SERVICE_MISSING, &SERVICE_NOT_READY, &WORKLOAD_REPLACED]
}

const READERS: &[Breaks] = &[Breaks::Writers, Breaks::Readers];

pub static CA_BUNDLE: RuleDoc = RuleDoc {
    name: "ConversionCABundleInvalid",
    summary: "the API server cannot trust the conversion webhook by its CA bundle",
    forbids: "A `caBundle` that is not base64 of PEM, that holds no certificate, or none that is valid today; and a webhook \
        behind a Service without any bundle. An annotation by which cert-manager or OpenShift writes the bundle is a promise \
        that is believed. A bundle that the manifest leaves out is the live one, which server-side apply keeps. Where there is \
        none and the CRD is new, or the webhook's Service or workload is among the manifests, this is a warning: many \
        operators write the bundle themselves when they start. A bundle that cannot be read stays an error: the server refuses \
        such a CRD, or stores it and does not serve it.",
    why: "The API server does not talk to a webhook that it does not trust: every read and write at another version than the \
        stored one fails.",
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
    what_to_do: "Put the certificate of the CA that signs the webhook's certificate there, or have it injected: \
        cert-manager.io/inject-ca-from.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static FAILS: RuleDoc = RuleDoc {
    name: "ConversionFails",
    summary: "the conversion webhook that is live does not convert the objects that exist",
    forbids: "A version that is served and at which the API server cannot give the objects, because the webhook cannot be \
        reached, is not trusted, refuses, or answers nonsense. The server's words are shown.",
    why: "Controllers cannot list their objects, and a storage migration stops at the first one. Garbage collection and \
        the deletion of namespaces wait for it, too.",
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
    what_to_do: "Bring the webhook up, or fix its Service and its CA bundle, before anything is deployed.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static LOSES_DATA: RuleDoc = RuleDoc {
    name: "ConversionLosesData",
    summary: "the conversion webhook loses what an object holds",
    forbids: "An object that exists and does not come back the same: read at a version and written there again without a change \
        (as a dry run; nothing is stored), it has lost or changed a value. And a value that is stored and is nowhere in \
        what another version shows: an error where that version has the field, a warning otherwise, as the webhook may \
        have another way to restore it.",
    why: "Anyone who reads and writes the object at that version erases the value, though nobody meant to.",
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
    what_to_do: "Let the webhook carry each value over, in a field or in an annotation, before anybody writes at that version.",
    breaks: &[Breaks::Data],
    severity: Severity::Error,
};

pub static REVIEW_VERSIONS: RuleDoc = RuleDoc {
    name: "ConversionReviewVersionUnknown",
    summary: "the conversion webhook accepts no version of ConversionReview that an API server sends",
    forbids: "`conversionReviewVersions` with neither `v1` nor `v1beta1`.",
    why: "API servers send these two. The server refuses the CRD.",
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
    what_to_do: "Write conversionReviewVersions: [v1], and see that the webhook understands it.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static SERVICE_MISSING: RuleDoc = RuleDoc {
    name: "ConversionServiceMissing",
    summary: "the Service of the conversion webhook does not exist, or not with that port",
    forbids: "A Service that is neither live nor among the manifests, and one that has no port of the number that the CRD names \
        (443, where it names none). A warning where the CRD is new: nothing is stored yet that would have to be converted.",
    why: "The API server cannot reach the webhook: every read and write at another version than the stored one fails.",
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
    what_to_do: "Correct the name, the namespace or the port, or put the Service among the manifests.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static SERVICE_NOT_READY: RuleDoc = RuleDoc {
    name: "ConversionServiceNotReady",
    summary: "no endpoint of the conversion webhook's Service is ready",
    forbids: "A Service none of whose EndpointSlices has a ready address with the port, where nothing in this deploy brings one \
        up. A warning where the CRD is new or the deploy writes the Service.",
    why: "Nobody answers: every read and write at another version than the stored one fails.",
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
    what_to_do: "Bring the webhook's Pods up first: kubectl get pods with the Service's selector.",
    breaks: READERS,
    severity: Severity::Error,
};

pub static WORKLOAD_REPLACED: RuleDoc = RuleDoc {
    name: "ConversionWorkloadReplaced",
    summary: "this deploy starts or replaces the conversion webhook's own workload (warning)",
    forbids: "Nothing: it says how many objects cannot be read at another version than the stored one until the webhook's Pods \
        run again. A Deployment that rolls over with a readiness probe keeps its old Pods meanwhile, and is only worth \
        a note.",
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
    what_to_do: "Let the Deployment roll over (strategy RollingUpdate, a readiness probe), and deploy a new webhook before the CRD \
        that needs it.",
    breaks: READERS,
    severity: Severity::Warning,
};

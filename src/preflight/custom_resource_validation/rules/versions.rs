//! What versions and their conversion do to objects that exist.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

pub static REMOVED_VERSION: RuleDoc = RuleDoc {
    name: "ObjectInRemovedVersion",
    summary: "objects are stored in or written at a version that goes",
    forbids: "A version removed at which objects are or may be stored (error); and a version removed or no longer served \
        at which a manager wrote objects, with the manager and when it last did so, as `metadata.managedFields` tells \
        (warning: the record does not tell whether it still does).",
    why: "What is stored at a version that is gone cannot be read; the API server refuses such a CRD. Who writes at a \
        version that is no longer served gets a 404.",
    example: Example::Stored {
        live: "\
spec:
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1alpha1, served: true, storage: false}
",
        desired: "\
spec:
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1alpha1, served: false, storage: false}
",
        object: "\
metadata:
  managedFields:
  - {manager: old-controller, operation: Update, apiVersion: test.example.com/v1alpha1, time: 2026-01-01T00:00:00Z}
",
    },
    what_to_do: "For writers: move each manager that is named to a version that stays. For stored objects: write each \
        object once at the new storage version, take the old one out of `status.storedVersions`, then remove it.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers],
    severity: Severity::Error,
};

pub static NOT_CONVERTED: RuleDoc = RuleDoc {
    name: "ObjectNotConverted",
    summary: "the conversion webhook does not convert the objects",
    forbids: "A live CRD that changes and whose conversion webhook cannot be reached, refuses, or answers what is no \
        conversion, when the objects are listed at one of its versions.",
    why: "Nobody can read the objects at that version, today already, and whether the upgrade harms them cannot be told. \
        Some webhooks are part of what is being deployed: then `--warn-only` lets the deploy go on.",
    example: Example::Crd {
        live: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: 'https://127.0.0.1:1/convert'}
",
        desired: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: 'https://127.0.0.1:1/convert'}
",
    },
    what_to_do: "Bring the webhook up: its Service, its certificate and the `caBundle` of the CRD are the usual causes; \
        the finding has the API server's words.",
    breaks: &[Breaks::Readers, Breaks::Writers],
    severity: Severity::Error,
};

pub static NOT_JUDGED: RuleDoc = RuleDoc {
    name: "VersionNotJudged",
    summary: "what a conversion makes of the objects cannot be known before it is in place (warning)",
    forbids: "Nothing: it warns of a version whose objects only a conversion webhook can tell, and which is not served \
        yet, or of a conversion that changes with this deploy.",
    why: "A webhook is asked through the API server, and only for versions that are served. What it will make of the \
        objects that exist is not known, so that they were not checked against it.",
    example: Example::Crd {
        live: "\
spec:
  conversion: {strategy: Webhook}
  versions:
  - {name: v1, served: true, storage: true}
",
        desired: "\
spec:
  conversion: {strategy: Webhook}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v2, served: true, storage: false}
",
    },
    what_to_do: "Deploy it to a test cluster with copies of real objects first; read each of them at the new version and \
        write it back.",
    breaks: &[],
    severity: Severity::Warning,
};

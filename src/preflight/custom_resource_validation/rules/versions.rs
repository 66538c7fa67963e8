//! The rules about the effect of versions and their conversion on existing objects.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

pub static REMOVED_VERSION: RuleDoc = RuleDoc {
    name: "ObjectInRemovedVersion",
    summary: "objects are or may be stored, or were written, at a version that is removed",
    reports: "A removed version at which objects are or may be stored (error), also if `status.storedVersions` does not \
        name it and `metadata.managedFields` of an object name no other version; a removed version that \
        `metadata.managedFields` of objects name, with the manager and the time of its last write (error); and a \
        version that is no longer served at which a manager wrote objects (warning: `managedFields` do not show \
        whether it still writes there).",
    why: "An object that is stored at a removed version can be neither read nor deleted, and one such object is enough: \
        the server answers every list and watch of the kind with an error (429, `storage is (re)initializing`), so no \
        controller sees any object. The server refuses such a CRD only as long as `status.storedVersions` names \
        the version. To remove it there by hand is to say that every object was written again. If \
        `managedFields` of an object name a version that the CRD does not have, the server answers every server-side \
        apply of the object, by any manager, with an error \
        ([kubernetes/kubernetes#111937](https://github.com/kubernetes/kubernetes/issues/111937)). Writing the object \
        again does not remove the entry. Clients that write at a version that is no longer served get a 404.",
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
    what_to_do: "For writers: move each manager that the finding names to a version that is still served. Then, for a \
        version that is to be removed, move the entries in `managedFields` with the command that the finding prints \
        (it needs `jq`). This works before the version is removed and after. For \
        stored objects: write each object once at the new storage version, remove the old version from \
        `status.storedVersions`, then remove it from the CRD.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers],
    severity: Severity::Error,
};

pub static NOT_CONVERTED: RuleDoc = RuleDoc {
    name: "ObjectNotConverted",
    summary: "the conversion webhook does not convert the objects",
    reports: "A live CRD that changes and whose conversion webhook cannot be reached, refuses, or sends an invalid \
        answer when gantry lists the objects at one of its versions.",
    why: "The objects cannot be read at that version even today, so the effect of the upgrade on them is unknown. If \
        the webhook is part of what is being deployed, `--warn-only` lets the deploy continue.",
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
    what_to_do: "Fix the webhook: its Service, its certificate and the `caBundle` of the CRD are the usual causes; the \
        finding quotes the API server.",
    breaks: &[Breaks::Readers, Breaks::Writers],
    severity: Severity::Error,
};

pub static NOT_VALIDATED: RuleDoc = RuleDoc {
    name: "VersionNotJudged",
    summary: "the result of a conversion is unknown before the deploy (warning)",
    reports: "A version that is not served yet and whose objects only a conversion webhook can produce, or a \
        conversion that changes with this deploy.",
    why: "Only the API server calls a webhook, and only for versions that are served. The result for the existing \
        objects is unknown, so they were not validated at that version.",
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
    what_to_do: "First deploy it to a test cluster with copies of real objects; read each of them at the new version \
        and write it back.",
    breaks: &[],
    severity: Severity::Warning,
};

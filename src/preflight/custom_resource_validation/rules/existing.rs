//! The rules about the effect of an upgrade on existing objects.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

pub static DATA_PRUNED: RuleDoc = RuleDoc {
    name: "ExistingDataPruned",
    summary: "existing objects lose values",
    reports: "A field that an object has and the desired schema does not: at the version in which the object is stored \
        (no one can read the value any more, and the next write drops it for good), at a new storage version (the next \
        write drops it), at another served version (clients that read and write there drop it), or at a version that \
        `status.storedVersions` names and that can no longer be written. So does a null that the desired schema does \
        not allow (`nullable`), in a field or in an entry of a map.",
    why: "The API server silently prunes unknown fields. The next write of the object by any client loses the data, \
        and reverting the CRD does not bring it back.",
    example: Example::Stored {
        live: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {pollInterval: {type: string}}}
",
        desired: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {interval: {type: string}}}
",
        object: "\
spec: {pollInterval: 5m}
",
    },
    what_to_do: "Keep the field and mark it as deprecated; or first move the values and remove the field from the \
        objects, and run again. Where versions differ, convert with a webhook.",
    breaks: &[Breaks::Readers, Breaks::Data],
    severity: Severity::Error,
};

pub static DEFAULTED: RuleDoc = RuleDoc {
    name: "ExistingObjectDefaultedDifferently",
    summary: "existing objects get values that no one set (warning)",
    reports: "A default of the desired schema that fills in a field that an object lacks, with a different value than \
        today. If a default is changed or removed: objects that have today's default and whose `managedFields` name \
        no owner for it, because the API does not show whether the value is stored with the object.",
    why: "The server also fills in defaults when it reads an object. Every object that lacks the field changes its \
        meaning immediately, without being written.",
    example: Example::Stored {
        live: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {suspended: {type: boolean}}}
",
        desired: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {suspended: {type: boolean, default: true}}}
",
        object: "\
spec: {}
",
    },
    what_to_do: "If the new value is wrong for an object, set the field in it before the upgrade.",
    breaks: &[Breaks::Behaviour],
    severity: Severity::Warning,
};

pub static REFUSED: RuleDoc = RuleDoc {
    name: "ExistingObjectRefused",
    summary: "existing objects can be updated, but could not be created again (warning)",
    reports: "Objects that the desired schema refuses when they are created again and accepts on every update, as \
        rules with `optionalOldSelf` can do.",
    why: "A backup cannot be restored, and an object cannot be moved to another cluster or be recreated by a tool that \
        deletes and creates.",
    example: Example::Stored {
        live: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
",
        desired: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            type: object
            properties:
              size:
                type: integer
                x-kubernetes-validations:
                - rule: oldSelf.hasValue() || self < 5
                  optionalOldSelf: true
",
        object: "\
spec: {size: 7}
",
    },
    what_to_do: "Fix the manifests of these objects, wherever you keep them.",
    breaks: &[Breaks::Writers],
    severity: Severity::Warning,
};

pub static REFUSED_ON_UPDATE: RuleDoc = RuleDoc {
    name: "ExistingObjectRefusedOnUpdate",
    summary: "existing objects can no longer be updated",
    reports: "An object that the desired schema refuses on every update, even of a label, or on every change of its \
        spec, although on an update the server tolerates invalid values that do not change (ratcheting). A missing \
        required field of spec is such a case: any change of spec makes the server check it. So is a value of the \
        wrong type, such as a number for a string: the server cannot parse the object for a server-side apply, \
        whatever fields the apply sets.",
    why: "The object is stuck: its controller, its owner and every tool get an error when they write to it. If every \
        update is refused, its finalizers cannot be removed either, so it cannot be deleted.",
    example: Example::Stored {
        live: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {size: {type: integer}, owner: {type: string}}}
",
        desired: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, required: [owner], properties: {size: {type: integer}, owner: {type: string}}}
",
        object: "\
spec: {size: 3}
",
    },
    what_to_do: "Fix the objects that the finding names and run again, or let the version accept them: a required \
        field that has a default refuses no object. If the live CRD prunes the field or accepts no value that the \
        desired one accepts, an upgrade in between accepts both: add the field as optional, change the objects, and \
        then require it.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    severity: Severity::Error,
};

pub static REFUSED_WHEN_TOUCHED: RuleDoc = RuleDoc {
    name: "ExistingObjectRefusedWhenTouched",
    summary: "existing objects cannot be created again, and are refused when the field is changed (warning)",
    reports: "Objects with a value that the desired schema refuses, and that the server still accepts as long as an \
        update does not change the value (ratcheting, on by default since Kubernetes 1.30). An item of a list that is not of type `map` \
        counts as changed if anything in the list changes, for example if an item is added.",
    why: "This is a warning because running workloads are unaffected: controllers and appliers that do not change the \
        value can write the object. But it cannot be created again (a restored backup, another cluster), and a \
        client that changes the value must make it valid.",
    example: Example::Stored {
        live: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
",
        desired: "\
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: 5}}}
",
        object: "\
spec: {size: 7}
",
    },
    what_to_do: "Fix the objects while it is not urgent, and their manifests wherever you keep them.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    severity: Severity::Warning,
};

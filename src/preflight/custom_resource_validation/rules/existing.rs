//! What an upgrade does to objects that exist.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

pub static DATA_PRUNED: RuleDoc = RuleDoc {
    name: "ExistingDataPruned",
    summary: "objects that exist lose values",
    forbids: "A field that an object has and for which the desired schema has no place: at the version in which the \
        object is stored (nobody can read the value any more, and the next write drops it for good), at a new storage \
        version (the next write drops it), at another served version (anyone who reads and writes there drops it), or at \
        one that `status.storedVersions` names and nobody can write at any more.",
    why: "The API server prunes unknown fields without a word. The data is lost on the next write of the object, by \
        whomever, and taking the CRD back does not bring it back.",
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
    what_to_do: "Keep the field and mark it as deprecated; or move the values first and take the field out of the \
        objects, and run again. Where versions differ, convert by a webhook.",
    breaks: &[Breaks::Readers, Breaks::Data],
    severity: Severity::Error,
};

pub static DEFAULTED: RuleDoc = RuleDoc {
    name: "ExistingObjectDefaultedDifferently",
    summary: "objects that exist get values that nobody set (warning)",
    forbids: "Nothing: it warns of a default of the desired schema that fills a field that an object lacks, with another \
        value than today. Where a default changes or goes, it warns of objects that have the default of today and of \
        which nobody is on record as having set it: whether the value is stored with the object cannot be seen.",
    why: "Defaults are filled in when an object is read, too. Every object that lacks the field means something else \
        from one moment to the next, without having been written.",
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
    what_to_do: "Where the new value does not suit, set the field in the objects before the upgrade.",
    breaks: &[Breaks::Behaviour],
    severity: Severity::Warning,
};

pub static REFUSED: RuleDoc = RuleDoc {
    name: "ExistingObjectRefused",
    summary: "objects that exist could not be created any more, but be updated (warning)",
    forbids: "Nothing: it warns of objects that the desired schema refuses when they are created again and takes on every \
        update, as rules with `optionalOldSelf` can say.",
    why: "A backup cannot be restored, an object cannot be moved to another cluster or be recreated by a tool that \
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
    what_to_do: "Repair the manifests of these objects, wherever they are kept.",
    breaks: &[Breaks::Writers],
    severity: Severity::Warning,
};

pub static REFUSED_ON_UPDATE: RuleDoc = RuleDoc {
    name: "ExistingObjectRefusedOnUpdate",
    summary: "objects that exist can no longer be updated",
    forbids: "An object that the desired schema refuses on every update, even of a label, or on every change of its \
        spec, although the server forgives on an update what was wrong before and is left alone (ratcheting). A missing \
        required field of spec is such a case: it belongs to spec, and spec changes. So is a value of another kind than the \
        schema asks for, a number for a string: the server cannot read the object for a server-side apply, whatever that \
        sets.",
    why: "The object is stuck: its controller, its owner and every tool get an error when they write to it. One that is \
        refused on any update cannot even lose its finalizers, so that it cannot be deleted.",
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
    what_to_do: "Repair the objects that the finding names and run again, or let the version accept them: a default for \
        a field that becomes required refuses nobody.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    severity: Severity::Error,
};

pub static REFUSED_WHEN_TOUCHED: RuleDoc = RuleDoc {
    name: "ExistingObjectRefusedWhenTouched",
    summary: "objects that exist are refused as new ones, and once the field is touched (warning)",
    forbids: "Nothing: it warns of objects with a value that the desired schema refuses, and that the server goes on to \
        take as long as an update leaves the value alone (ratcheting, in force by default since Kubernetes 1.30).",
    why: "It is a warning and no error because everything that runs goes on: controllers and appliers that do not touch \
        the value can write the object. But it cannot be created again (a restored backup, another cluster), and anyone who \
        changes the value has to make it right.",
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
    what_to_do: "Repair the objects while it is not urgent, and their manifests wherever they are kept.",
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    severity: Severity::Warning,
};

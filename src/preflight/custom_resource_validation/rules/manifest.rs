//! What is wrong with custom resources among the manifests.

use crate::finding::Severity;
use crate::preflight::objects::manifests::Wrong;
use crate::preflight::rule::{Example, RuleDoc};

pub static MANIFEST_REFUSED: RuleDoc = RuleDoc {
    name: "ManifestObjectRefused",
    summary: "a custom resource among the manifests is refused by its CRD",
    forbids: "A custom resource that the CRD which will be in force refuses: the CRD among the manifests where there is \
        one, else the live one; and one at a version that this CRD does not serve. An object that is live already is judged as the update that it is: merged with what is \
        there, and forgiven what was wrong before and is left alone. What server-side apply cannot read (a value of another \
        kind than the schema asks for, in the manifest or in the live object, and a duplicate) is not forgiven, and a null \
        is refused where the schema allows none.",
    why: "The server would refuse it in the middle of the deploy, when other objects have been written.",
    example: Example::Manifest {
        desired: "\
size: {type: integer, maximum: 5}
",
        object: "\
spec: {size: 7}
",
    },
    what_to_do: "Correct the manifest at the line that is shown.",
    breaks: Wrong::Refused.breaks(),
    severity: Severity::Error,
};

pub static MANIFEST_UNKNOWN_FIELD: RuleDoc = RuleDoc {
    name: "ManifestUnknownField",
    summary: "a custom resource among the manifests has a field that its CRD does not know",
    forbids: "A field of a custom resource, or of its metadata, that the CRD which will be in force does not describe.",
    why: "Server-side apply refuses it, and a plain create drops it without a word: what was meant to be set is not. \
        Most often it is misspelt or indented wrongly.",
    example: Example::Manifest {
        desired: "\
replicas: {type: integer}
",
        object: "\
spec: {replcas: 3}
",
    },
    what_to_do: "Correct the name or the indentation, or add the field to the CRD first.",
    breaks: Wrong::UnknownField.breaks(),
    severity: Severity::Error,
};

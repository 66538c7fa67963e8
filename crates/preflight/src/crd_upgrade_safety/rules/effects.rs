//! The keywords whose transitions always have the same effects. The rule about such a keyword needs no code.

use crate::crd_upgrade_safety::keyword_change::{Effects, KeywordEffect, LOOSENS};
use gantry_core::finding::Breaks;

/// A keyword by which the server refuses values, with the consequence when it is added and when it changes; without it,
/// the server refuses less. The help shows it as `shown`.
macro_rules! refuses {
    ($keyword:literal, $added:literal, $changed:literal) => {
        refuses!($keyword, shown: $keyword, $added, $changed)
    };
    ($keyword:literal, shown: $shown:literal, $added:literal, $changed:literal) => {
        Effects {
            keyword: $keyword,
            added: KeywordEffect { breaks: REFUSES, verdict: None, so: $added, help: leave_out!($shown) },
            changed: KeywordEffect { breaks: REFUSES, verdict: None, so: $changed, help: keep!($shown) },
            removed: LOOSENS,
        }
    };
}

macro_rules! leave_out {
    ($keyword:literal) => {
        concat!(
            "leave ",
            $keyword,
            " out of this version, or add it only in a new version that a webhook converts, or after a migration"
        )
    };
}

macro_rules! keep {
    ($keyword:literal) => {
        concat!(
            "keep ",
            $keyword,
            " as it is in this version, or change it only in a new version that a webhook converts, or after a migration"
        )
    };
}

const REFUSES: &[Breaks] = &[Breaks::StoredObjects, Breaks::Writers];

pub const ALL_OF: Effects = refuses!(
    "allOf",
    "the server refuses values that do not match all of it",
    "the server may refuse objects that were valid until now"
);

pub const EMBEDDED_RESOURCE: Effects = Effects {
    keyword: "x-kubernetes-embedded-resource",
    added: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        verdict: None,
        so: "the server refuses values without apiVersion and kind, and drops unknown metadata",
        help: leave_out!("x-kubernetes-embedded-resource"),
    },
    changed: KeywordEffect {
        breaks: REFUSES,
        verdict: None,
        so: "the server may refuse values",
        help: keep!("x-kubernetes-embedded-resource"),
    },
    removed: KeywordEffect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "the server drops apiVersion, kind and metadata unless the schema names or keeps them",
        help: keep!("x-kubernetes-embedded-resource"),
    },
};

pub const EXCLUSIVE_MAXIMUM: Effects =
    refuses!("exclusiveMaximum", "the server refuses the maximum itself", "the server refuses the maximum itself");

pub const EXCLUSIVE_MINIMUM: Effects =
    refuses!("exclusiveMinimum", "the server refuses the minimum itself", "the server refuses the minimum itself");

pub const FORMAT: Effects = refuses!(
    "format",
    "if the API server knows the format, it refuses values that do not have it",
    "the server may refuse values that have only the old format"
);

pub const MULTIPLE_OF: Effects = refuses!(
    "multipleOf",
    "the server refuses numbers that are not a multiple of it",
    "the server may refuse multiples of the old value"
);

pub const NOT: Effects = refuses!(
    "not",
    shown: "`not`",
    "the server refuses values that match it",
    "the server may refuse objects that were valid until now"
);

pub const ONE_OF: Effects = refuses!(
    "oneOf",
    "the server refuses values that match none of it, or more than one",
    "the server may refuse objects that were valid until now"
);

pub const PATTERN: Effects = refuses!(
    "pattern",
    "the server refuses strings that do not match it",
    "the server refuses strings that match only the old pattern"
);

pub const PRESERVE_UNKNOWN_FIELDS: Effects = Effects {
    keyword: "x-kubernetes-preserve-unknown-fields",
    added: KeywordEffect { so: "the server keeps unknown fields that it dropped until now", ..LOOSENS },
    changed: KeywordEffect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "the server may drop unknown fields",
        help: keep!("x-kubernetes-preserve-unknown-fields"),
    },
    removed: KeywordEffect {
        breaks: &[Breaks::Data, Breaks::Readers],
        verdict: None,
        so: "the server drops fields that the schema does not name when an object is next written",
        help: keep!("x-kubernetes-preserve-unknown-fields"),
    },
};

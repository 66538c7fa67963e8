//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    DENIED = "AdmissionDenied",
    WEBHOOK_FAILED = "AdmissionWebhookFailed",
    FORBIDDEN = "ApplyForbidden",
    CONFLICT = "FieldConflict",
    IMMUTABLE = "ImmutableField",
    NOT_DRY_RUN = "JudgedWithoutServer",
    NAMESPACE = "NamespaceMissing",
    INVALID = "ObjectInvalid",
    QUOTA = "QuotaExceeded",
    REFUSED = "RefusedByServer",
}

/// The rules whose findings are certain refusals. A webhook that does not answer may answer later, and a deploy waits
/// for it.
pub const REFUSALS: &[&str] = &[
    "AdmissionDenied",
    "ApplyForbidden",
    "FieldConflict",
    "ImmutableField",
    "NamespaceMissing",
    "ObjectInvalid",
    "QuotaExceeded",
    "RefusedByServer",
];

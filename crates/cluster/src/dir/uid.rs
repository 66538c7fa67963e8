//! Generates uids that the folder does not contain: the same on every machine and in every version.

use serde_json::Value;

use gantry_core::hash::fnv128;

/// The uid for an object that has none: always the same one for the same group, kind, namespace and name.
pub(super) fn uid((group, kind, namespace, name): (&str, &str, Option<&str>, &str)) -> String {
    let hash = fnv128(Value::from(vec![group, kind, namespace.unwrap_or_default(), name]).to_string().as_bytes());
    let hex = format!("{hash:032x}");
    // The format of a UUID of version 8, which is reserved for custom schemes.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_belongs_to_one_identity() {
        let pod = uid(("", "Pod", Some("a"), "b"));
        assert_eq!(pod.len(), 36);
        assert_eq!(pod, uid(("", "Pod", Some("a"), "b")));
        assert_ne!(pod, uid(("", "Pod", Some("b"), "a")));
    }
}

//! A hash that is the same on every machine and in every version, for identities that a folder does not hold.

use serde_json::Value;

/// FNV-1a with 128 bits. Not against an adversary: who can write the folder needs no collision.
pub(super) fn fnv128(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// A uid for an object that has none: always the same one for the same group, kind, namespace and name.
pub(super) fn uid((group, kind, namespace, name): (&str, &str, Option<&str>, &str)) -> String {
    let hash = fnv128(Value::from(vec![group, kind, namespace.unwrap_or_default(), name]).to_string().as_bytes());
    let hex = format!("{hash:032x}");
    // The shape of a UUID of version 8: made by a rule of one's own.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn a_uid_belongs_to_one_identity() {
        let pod = uid(("", "Pod", Some("a"), "b"));
        assert_eq!(pod.len(), 36);
        assert_eq!(pod, uid(("", "Pod", Some("a"), "b")));
        assert_ne!(pod, uid(("", "Pod", Some("b"), "a")));
    }
}

//! What the CRD of ClusterExtension demands of `spec.source.catalog.version` before any library reads it.
//!
//! <https://github.com/operator-framework/operator-controller/blob/main/api/v1/clusterextension_types.go>: the markers
//! `MaxLength` and `XValidation` of the field `Version`.

use std::sync::LazyLock;

use regex::Regex;

/// The longest text that is taken, in characters.
pub const MOST_CHARACTERS: usize = 64;

/// A pre-release and build metadata.
const TAIL: &str = r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";

/// The rule's own pattern. Its brackets are where upstream has them: some wildcards are taken in one place and not in another.
static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    let operator = r"(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)";
    let first = r"(v?(0|[1-9]\d*|[x|X|\*])(\.(0|[1-9]\d*|x|X|\*]))?(\.(0|[1-9]\d*|x|X|\*))?T)";
    let further = r"(v?(0|[1-9]\d*|x|X|\*])(\.(0|[1-9]\d*|x|X|\*))?(\.(0|[1-9]\d*|x|X|\*]))?T)";
    let pattern = format!(r"^(\s*{operator}\s*{first}\s*)((?:\s+|,\s*|\s*\|\|\s*){operator}\s*{further}\s*)*$");
    // Go's classes know ASCII alone.
    let pattern = pattern.replace('T', TAIL).replace(r"\s", r"[\t\n\f\r ]").replace(r"\d", "[0-9]");
    Regex::new(&pattern).expect("the pattern is fixed")
});

/// Why the API server refuses a range; `None` where it takes it. The words are the server's.
pub fn refusal(range: &str) -> Option<String> {
    match range.chars().count() {
        count if count > MOST_CHARACTERS => Some(format!("Too long: may not be more than {MOST_CHARACTERS} bytes")),
        _ if !PATTERN.is_match(range) => Some("invalid version expression".to_owned()),
        _ => None,
    }
}

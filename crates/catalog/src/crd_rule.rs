//! The rules of the ClusterExtension CRD for `spec.source.catalog.version`, which apply before any library parses it.
//!
//! <https://github.com/operator-framework/operator-controller/blob/main/api/v1/clusterextension_types.go>: the markers
//! `MaxLength` and `XValidation` of the field `Version`.

use std::sync::LazyLock;

use regex::Regex;

/// The maximum length of a range, in characters.
pub const MOST_CHARACTERS: usize = 64;

/// A pre-release and build metadata.
const TAIL: &str = r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";

/// The rule's own pattern, with its brackets where upstream has them: some wildcards are accepted in one place but not
/// in another.
static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    let operator = r"(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)";
    let first = r"(v?(0|[1-9]\d*|[x|X|\*])(\.(0|[1-9]\d*|x|X|\*]))?(\.(0|[1-9]\d*|x|X|\*))?T)";
    let further = r"(v?(0|[1-9]\d*|x|X|\*])(\.(0|[1-9]\d*|x|X|\*))?(\.(0|[1-9]\d*|x|X|\*]))?T)";
    let pattern = format!(r"^(\s*{operator}\s*{first}\s*)((?:\s+|,\s*|\s*\|\|\s*){operator}\s*{further}\s*)*$");
    // Go's classes match only ASCII.
    let pattern = pattern.replace('T', TAIL).replace(r"\s", r"[\t\n\f\r ]").replace(r"\d", "[0-9]");
    Regex::new(&pattern).expect("the pattern is fixed")
});

/// Why the API server refuses a range, in the server's words; `None` if it accepts it.
pub fn refusal(range: &str) -> Option<String> {
    match range.chars().count() {
        count if count > MOST_CHARACTERS => Some(format!("Too long: may not be more than {MOST_CHARACTERS} bytes")),
        _ if !PATTERN.is_match(range) => Some("invalid version expression".to_owned()),
        _ => None,
    }
}

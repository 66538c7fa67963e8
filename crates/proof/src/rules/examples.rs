//! Strings on which the functions of rules give different results, and patterns of strings that they accept.

/// Strings for which a function has different results, for guesses.
pub fn texts(function: &str) -> &'static [&'static str] {
    match function {
        "isIP" | "ip" | "ip.isCanonical" => &["127.0.0.1", "::1", "::0001"],
        "isCIDR" | "cidr" => &["10.0.0.0/8", "10.0.0.0/24", "10.0.0.1/32", "10.0.0.1/8", "2001:db8::/32"],
        "isURL" | "url" => &["http://a.b/c?d=e", "https://a.b/c", "ftp://a:1", "/a"],
        "isQuantity" | "quantity" => &["0", "1", "-1", "500m", "1Gi"],
        "isSemver" | "semver" => &["1.2.3", "v1.2.3", "1.2.3-a"],
        "duration" => &["0s", "1s", "-1s", "1h"],
        "timestamp" => &["2001-02-03T04:05:06Z"],
        "int" | "uint" | "double" => &["0", "1", "-1", "1.5"],
        "bool" => &["true", "false"],
        "validate" => &["a", "a-b", "a.b", "A_", "123e4567-e89b-42d3-a456-426614174000", "2001-02-03"],
        _ => &[],
    }
}

/// Patterns of strings of any length that the functions of the rules accept, one for each form that a rule may ask for.
pub fn patterns(rules: &[&str]) -> Vec<&'static str> {
    let mut found = Vec::new();
    let calls = |name: &str| {
        rules.iter().any(|rule| {
            rule.match_indices(name).any(|(at, _)| {
                let before = rule[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
    };
    for (names, patterns) in FORMS {
        if names.iter().any(|name| calls(name)) {
            found.extend(patterns.iter().copied());
        }
    }
    found
}

/// Names as they occur in rules, and the patterns.
const FORMS: &[(&[&str], &[&str])] = &[
    (
        &["isURL(", "url("],
        &[
            "^https://a[.]bc(/[a-z]*)?$",
            "^http://a[.]bc(/[a-z]*)?$",
            "^https://a[.]bc:443/[a-z]*$",
            "^[a-z]+://a[.]bc(/[a-z]*)?$",
            "^/[a-z]*$",
        ],
    ),
    (
        &["isIP(", "ip("],
        &[
            "^1[0-9]{0,2}([.]1[0-9]{0,2}){3}$",
            "^[1-9a-f][0-9a-f]{0,3}(:[1-9a-f][0-9a-f]{0,3}){7}$",
            "^[1-9a-f][0-9a-f]{0,3}::[1-9a-f][0-9a-f]{0,3}$",
        ],
    ),
    (
        &["isCIDR(", "cidr("],
        &[
            "^1[0-9]?[.]0[.]0[.]0/(8|16|24|28|32)$",
            "^1[0-9]{0,2}([.]1[0-9]{0,2}){3}/32$",
            "^2[0-9a-f]{3}::/(16|32|48|64|128)$",
            "^[1-9a-f][0-9a-f]{0,3}(:[1-9a-f][0-9a-f]{0,3}){7}/128$",
        ],
    ),
    (&["dns1123Label", "dns1035Label"], &["^[a-z][a-z0-9]*$"]),
    (&["dns1123Subdomain"], &["^[a-z][a-z0-9]{0,62}([.][a-z][a-z0-9]{0,62})*$"]),
    (&["qualifiedName", "labelValue"], &["^[a-z][a-z0-9]*$", "^[a-z][a-z0-9.]*[a-z]/[a-z][a-z0-9]*$"]),
    (&["isSemver(", "semver("], &["^[1-9][0-9]?[.][0-9][.][0-9](-[a-z]+)?$", "^[0-9][.][0-9][.][0-9]$"]),
    (&["isQuantity(", "quantity("], &["^[1-9][0-9]*$", "^[1-9][0-9]*(m|k|Mi|Gi)$", "^0$"]),
    (&["duration("], &["^[1-9][0-9]*s$", "^[1-9][0-9]*h$", "^[1-9][0-9]*ms$", "^([1-9][0-9]?h)+$", "^0s$"]),
    (&["timestamp("], &["^20[0-9]{2}-0[1-9]-1[0-9]T1[0-9]:[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?Z$"]),
    (&["int(", "uint("], &["^[1-9][0-9]*$", "^0$"]),
    (&["double("], &["^[1-9][0-9]*[.][0-9]+$"]),
    (&["base64.decode("], &["^([A-Za-z]{4})*$"]),
    (&["format.uuid"], &["^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$"]),
    (&["format.date"], &["^20[0-9]{2}-0[1-9]-1[0-9]$"]),
];

/// The string literals of the rules, for which a string or its beginning may have to be equal.
pub fn words(rules: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    for rule in rules {
        let mut rest = *rule;
        while let Some((at, quote)) = rest.char_indices().find(|(_, c)| matches!(c, '\'' | '"')) {
            let after = &rest[at + 1..];
            let Some((word, more)) = after.split_once(quote) else { break };
            words.push(word.to_owned());
            rest = more;
        }
    }
    words
}

/// Strings for the functions in a rule, built from its own literals: a URL with the scheme, the host and the path that
/// it compares with, a network of the length that it asks for.
pub fn built(functions: &[&str], words: &[&str], numbers: &[i64]) -> Vec<String> {
    let calls = |names: &[&str]| names.iter().any(|name| functions.contains(name));
    let mut built = Vec::new();
    if calls(&["isURL", "url"]) {
        let is_scheme = |word: &&&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'+');
        let schemes: Vec<&str> = ["https", "http"].into_iter().chain(words.iter().filter(is_scheme).copied()).collect();
        let is_path = |word: &&&str| word.starts_with('/') && !word.starts_with("//");
        let paths: Vec<&str> = ["", "/a"].into_iter().chain(words.iter().filter(is_path).copied()).collect();
        let is_host =
            |word: &&&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || b".-:".contains(&c));
        let hosts: Vec<String> = ["a.bc".to_owned()]
            .into_iter()
            .chain(words.iter().filter(is_host).map(|word| match word.starts_with('.') {
                true => format!("a{word}"),
                false => (*word).to_owned(),
            }))
            .collect();
        for scheme in schemes.iter().take(6) {
            for host in hosts.iter().take(6) {
                built.extend(paths.iter().take(6).map(|path| format!("{scheme}://{host}{path}")));
            }
        }
    }
    if calls(&["isCIDR", "cidr"]) {
        for length in numbers.iter().filter(|n| (1..=128).contains(*n)).take(6) {
            for length in [*length, length - 1, length + 1] {
                built.extend([format!("10.0.0.0/{length}"), format!("2001:db8::/{length}")]);
            }
        }
    }
    if calls(&["semver", "isSemver"]) {
        for word in words.iter().filter(|word| word.split('.').count() >= 2).take(6) {
            let plain = word.split(['-', '+']).next().unwrap_or(word);
            let parts: Vec<u64> = plain.split('.').map_while(|part| part.parse().ok()).collect();
            if let [major, minor, patch] = parts[..] {
                built.extend([
                    format!("{major}.{minor}.{patch}"),
                    format!("{}.{minor}.{patch}", major + 1),
                    format!("{major}.{}.{patch}", minor + 1),
                    format!("{major}.{minor}.{}", patch + 1),
                    format!("{}.0.0", major.saturating_sub(1)),
                    format!("{major}.{}.0", minor.saturating_sub(1)),
                    format!("{major}.{minor}.{patch}-a"),
                ]);
            }
        }
    }
    if calls(&["quantity", "isQuantity", "duration"]) {
        for word in words.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).take(6) {
            let digits = word.chars().take_while(char::is_ascii_digit).collect::<String>();
            let (unit, number) = (&word[digits.len()..], digits.parse::<u64>().unwrap_or(0));
            let near = [number, number.saturating_add(1), number.saturating_sub(1), number.saturating_mul(2)];
            built.extend(near.into_iter().map(|number| format!("{number}{unit}")));
        }
        built.extend(["1Ti", "999h"].map(str::to_owned));
    }
    built
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_k8s_cel::{CelBudget, CelRuleResult, compile_rules};
    use serde_json::json;

    /// Every function accepts a string of each of its patterns.
    #[test]
    fn the_strings_of_a_pattern_are_accepted_by_the_functions_it_stands_for() {
        let schema = json!({"type": "string"});
        for (rule, text) in [
            ("isURL(self)", "https://a.bc/aaaa"),
            ("isURL(self)", "http://a.bc"),
            ("isIP(self)", "1.1.199.1"),
            ("isIP(self)", "a:1:1:1:1:1:1:1"),
            ("isCIDR(self)", "10.0.0.0/8"),
            ("isCIDR(self)", "2001::/64"),
            ("isSemver(self)", "1.0.0-aaaa"),
            ("isQuantity(self)", "1Gi"),
            ("duration(self) > duration('0s')", "1s"),
            ("!format.dns1123Label().validate(self).hasValue()", "aa"),
            ("!format.dns1123Subdomain().validate(self).hasValue()", "a.b"),
        ] {
            let is_of_one = patterns(&[rule])
                .iter()
                .any(|pattern| gantry_k8s_cel::re2::compile(pattern).expect("a pattern").is_match(text));
            assert!(is_of_one, "{rule}: {text}");
            let rules = compile_rules(&schema, &[json!({"rule": rule})], false);
            let result = rules[0].evaluate(&json!(text), None, &mut CelBudget::default());
            assert!(matches!(result, CelRuleResult::Holds), "{rule}: {text}: {result:?}");
        }
        assert!(patterns(&["self.skip('isURL')", "curl(self)"]).is_empty());
    }
}

//! Kubernetes' order of versions, and the pairs of versions that are served together.

use std::cmp::Ordering;

use super::Crd;

/// The maturity of a version, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum VersionMaturity {
    Alpha,
    Beta,
    Stable,
}

/// Kubernetes' order of versions, the lowest first: names that do not follow the pattern come before all others,
/// v1alpha1 before v1beta1 before v1 before v2. (`CompareKubeAwareVersionStrings` of apimachinery.)
pub fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // The alphabetically first one is the highest.
        (None, None) => b.cmp(a),
    }
}

/// Parses a version such as `v2beta1` into its stage, major number and minor number.
fn parse(name: &str) -> Option<(VersionMaturity, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let major = number(&rest[..digits])?;
    let rest = &rest[digits..];
    if rest.is_empty() {
        return Some((VersionMaturity::Stable, major, 0));
    }
    let (stage, minor) = match rest.strip_prefix("alpha") {
        Some(minor) => (VersionMaturity::Alpha, minor),
        None => (VersionMaturity::Beta, rest.strip_prefix("beta")?),
    };
    Some((stage, major, number(minor)?))
}

/// Parses a positive number without leading zeros.
fn number(text: &str) -> Option<u64> {
    let fine = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    fine.then(|| text.parse().ok()).flatten()
}

/// Up to this many versions, each is paired with each. Beyond it, each is paired only with the next one, because there
/// would be too many pairs to compare.
const PAIRED: usize = 20;

/// Pairs of served versions, the lower one first: all pairs or, with very many versions, only neighbours.
pub fn some_served_pairs(crd: &Crd) -> Vec<(&str, &str)> {
    let served = served(crd);
    let reach = if served.len() > PAIRED { 1 } else { PAIRED };
    pairs(&served, reach)
}

/// Each pair of served versions, the lower one first.
pub fn served_pairs(crd: &Crd) -> Vec<(&str, &str)> {
    let served = served(crd);
    pairs(&served, served.len())
}

fn served(crd: &Crd) -> Vec<&str> {
    let mut served: Vec<&str> = crd.served_versions().map(|version| &*version.name).collect();
    served.sort_by(|a, b| compare(a, b));
    served
}

/// Pairs each version with up to `reach` versions after it.
fn pairs<'c>(served: &[&'c str], reach: usize) -> Vec<(&'c str, &'c str)> {
    let with = |at: usize| served[at + 1..].iter().take(reach).map(move |higher| (served[at], *higher));
    (0..served.len()).flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_does() {
        let mut names = ["v10", "v1", "foo10", "v1beta2", "v3beta1", "v12alpha1", "foo1", "v11alpha2", "v2", "v01"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["v01", "foo10", "foo1", "v11alpha2", "v12alpha1", "v1beta2", "v3beta1", "v1", "v2", "v10"]);
    }
}

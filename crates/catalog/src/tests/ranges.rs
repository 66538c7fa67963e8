//! The ranges and versions of `ranges.jsonl`, which the libraries themselves have filled in (docs/testing.md).

use serde::Deserialize;

use crate::{Constraint, SkipRange, Version, VersionRelease, crd_rule, version};

#[derive(Deserialize)]
struct Row {
    language: String,
    #[serde(default)]
    range: String,
    versions: Vec<String>,
    error: Option<String>,
    #[serde(default)]
    matches: Vec<Option<bool>>,
    #[serde(default)]
    read: Vec<Read>,
    #[serde(default)]
    order: Vec<i32>,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    text: String,
    error: Option<String>,
}

fn rows(language: &str) -> Vec<Row> {
    let rows = include_str!("../ranges.jsonl").lines().map(|line| serde_json::from_str::<Row>(line).unwrap());
    rows.filter(|row| row.language == language).collect()
}

#[test]
fn ranges_of_the_table_mean_what_the_libraries_say() {
    let masterminds = |range: &str| {
        Constraint::parse(range)
            .map(|range| Box::new(move |v: &Version| range.matches(v)) as Box<dyn Fn(&Version) -> bool>)
    };
    let blang = |range: &str| {
        SkipRange::parse(range)
            .map(|range| Box::new(move |v: &Version| range.contains(v)) as Box<dyn Fn(&Version) -> bool>)
    };
    for (language, least) in [("masterminds", 150), ("blang", 40)] {
        let rows = rows(language);
        assert!(rows.len() >= least, "{language}: {}", rows.len());
        for row in rows {
            let range = if language == "blang" { blang(&row.range) } else { masterminds(&row.range) };
            let range = match (range, &row.error) {
                (Ok(range), None) => range,
                (range, error) => {
                    assert_eq!(range.err(), *error, "{language} {:?}", row.range);
                    continue;
                }
            };
            for (text, expected) in row.versions.iter().zip(&row.matches) {
                let (Ok(version), Some(expected)) = (Version::parse(text), expected) else { continue };
                assert_eq!(range(&version), *expected, "{language} {:?} {text:?}", row.range);
            }
        }
    }
}

#[test]
fn versions_of_the_table_are_read_and_ordered_as_the_library_does() {
    for row in rows("version") {
        let read: Vec<Result<Version, String>> = row.versions.iter().map(|text| Version::parse(text)).collect();
        for (read, expected) in read.iter().zip(&row.read) {
            assert_eq!(read.as_ref().err(), expected.error.as_ref());
            assert_eq!(read.as_ref().map_or(String::new(), ToString::to_string), expected.text);
        }
        for (pair, expected) in read.windows(2).zip(&row.order) {
            if let [Ok(one), Ok(other)] = pair {
                assert_eq!(one.precedence(other) as i32, *expected, "{one} {other}");
            }
        }
    }
}

#[test]
fn build_metadata_that_can_be_a_release_is_one() {
    let read = |text: &str| {
        let VersionRelease { version, release } = VersionRelease::parse(text).unwrap();
        (version.to_string(), release.iter().map(ToString::to_string).collect::<Vec<_>>().join("."))
    };
    for (text, version, release) in [
        ("1.0.0", "1.0.0", ""),
        ("1.0.0+2", "1.0.0", "2"),
        ("1.0.0-pre+1.alpha.2", "1.0.0-pre", "1.alpha.2"),
        ("1.0.0+001", "1.0.0+001", ""),
        ("1.0.0+20240102030405.abcdef0", "1.0.0+20240102030405.abcdef0", ""),
        ("1.0.0+exactly.20.characte", "1.0.0", "exactly.20.characte"),
    ] {
        assert_eq!(read(text), (version.to_owned(), release.to_owned()), "{text}");
    }
    assert_eq!(
        version::release("001").unwrap_err(),
        "invalid release \"001\": segment 0: Numeric PreRelease version must not contain leading zeroes \"001\""
    );
    assert_eq!(
        version::release("a.very.long.build.metadata").unwrap_err(),
        "invalid release \"a.very.long.build.metadata\": exceeds maximum length of 20 characters"
    );
}

#[test]
fn releases_decide_between_equal_versions() {
    let ascending =
        ["1.0.0-rc.1", "1.0.0", "1.0.0+0", "1.0.0+1", "1.0.0+1.1", "1.0.0+2", "1.0.0+10", "1.0.0+alpha", "1.0.1"];
    let read: Vec<VersionRelease> = ascending.iter().map(|text| VersionRelease::parse(text).unwrap()).collect();
    for (at, one) in read.iter().enumerate() {
        for (other_at, other) in read.iter().enumerate() {
            assert_eq!(one.precedence(other), at.cmp(&other_at), "{one} {other}");
        }
    }
    // Build metadata that is no release counts for nothing.
    let [plain, padded] = ["1.0.0", "1.0.0+001"].map(|text| VersionRelease::parse(text).unwrap());
    assert!(plain.precedence(&padded).is_eq() && plain != padded);
}

/// Each line is `+` or `-` and a range, as the rule of the CRD takes it or not on a kube-apiserver.
#[test]
fn the_rule_of_the_crd_takes_what_the_api_server_takes() {
    let rows: Vec<&str> = include_str!("../version_rule.txt").lines().collect();
    assert!(rows.len() > 140, "{}", rows.len());
    for row in rows {
        let (taken, range) = row.split_at(1);
        assert_eq!(crd_rule::refusal(range).is_none(), taken == "+", "{range:?}");
    }
    assert!(crd_rule::refusal(&format!("1.0.0-{}", "a".repeat(58))).is_none());
    assert_eq!(
        crd_rule::refusal(&format!("1.0.0-{}", "a".repeat(59))).as_deref(),
        Some("Too long: may not be more than 64 bytes")
    );
}

#[test]
fn a_range_of_one_version_is_told_from_others() {
    for (range, expected) in [
        ("1.2.3", true),
        ("=1.2.3", true),
        ("= v1.2.3-rc.1", true),
        ("1.2", false),
        ("1.2.x", false),
        ("~1.2.3", false),
        (">=1.2.3 <=1.2.3", false),
        ("1.2.3 || 1.2.4", false),
        ("!=1.2.3", false),
    ] {
        assert_eq!(Constraint::parse(range).unwrap().is_one_version(), expected, "{range}");
    }
}

//! Version ranges: any text is parsed or refused in either language, and a range matches what its parts match.
//!
//! The first line is a range, each other line a version.

use gantry_catalog::{Constraint, SemanticVersion, SkipRange, VersionRelease};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let range = lines.next().unwrap_or_default();
    let versions: Vec<SemanticVersion> = lines.take(50).filter_map(|line| SemanticVersion::parse(line).ok()).collect();
    for version in &versions {
        let text = version.to_string();
        assert_eq!(SemanticVersion::parse(&text).as_ref(), Ok(version), "{text:?}");
        let with_release = VersionRelease::parse(&text).expect("a version");
        assert!(with_release.version.precedence(version).is_eq(), "{text:?}");
        for other in &versions {
            assert_eq!(version.precedence(other), other.precedence(version).reverse(), "{version} {other}");
        }
    }
    match Constraint::parse(range) {
        Ok(constraint) => {
            // Surrounding blanks have no effect, and neither has the same alternative twice. Ranges with a hyphen are
            // an exception: the library also finds hyphen ranges across alternatives.
            let is_plain = !range.contains('-');
            let padded = Constraint::parse(&format!(" {range} "));
            let twice = Constraint::parse(&format!("{range}||{range}"));
            for version in &versions {
                let matches = constraint.matches(version);
                assert!(!(matches && constraint.matches_but_for_pre_release(version)), "{range:?} {version}");
                for same in [&padded, &twice].into_iter().flatten().filter(|_| is_plain) {
                    assert_eq!(same.matches(version), matches, "{range:?} {version}");
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match SkipRange::parse(range) {
        Ok(skip_range) => {
            let twice = SkipRange::parse(&format!("{range} || {range}"));
            for version in &versions {
                let contains = skip_range.contains(version);
                if let Ok(twice) = &twice {
                    assert_eq!(twice.contains(version), contains, "{range:?} {version}");
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

//! The releases of Kubernetes that a run of the tests is about.

/// The releases that `GANTRY_RELEASES` names, such as `1.28,1.30`, from the oldest to the newest. `None` if it is not
/// set.
pub fn chosen_releases() -> Option<Vec<&'static str>> {
    let chosen = std::env::var("GANTRY_RELEASES").ok()?;
    let chosen: Vec<&str> = chosen.split(',').collect();
    let all = gantry_testbed::releases();
    let unknown: Vec<_> = chosen.iter().filter(|release| !all.contains(release)).collect();
    assert!(unknown.is_empty(), "GANTRY_RELEASES names {unknown:?}, which are not among {all:?}");
    Some(all.into_iter().filter(|release| chosen.contains(release)).collect())
}

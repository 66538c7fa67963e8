//! The one place that says whether a CRD that changes can harm any object.
//!
//! Where it cannot, nothing is listed. What is asked here of the two CRDs could be answered with less reading by
//! whoever proves more about a version; the rest of the check takes the questions as they come.

use std::sync::Arc;

use super::crd::{Conversion, Crd, Version};

/// Something about a version that no object has been held against yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionQuestion {
    pub version: Arc<str>,
    pub ask: Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Do objects fit its schema? It is not what it was, or objects were not read or written at it before.
    Fits,
    /// It becomes the storage version: does everything find a place in it?
    Stores,
    /// It is not served any more, but still there: who writes at it?
    Unserved,
    /// It goes altogether: who writes at it, and what is stored at it?
    Removed,
}

/// What has to be asked of the objects. Nothing, if no object can meet anything else than today.
pub fn can_break(live: &Crd, desired: &Crd) -> Vec<VersionQuestion> {
    let mut questions = Vec::new();
    let mut ask = |version: &Version, ask| questions.push(VersionQuestion { version: version.name.clone(), ask });
    let stored = |version: &Version| live.stored_versions.iter().any(|name| **name == *version.name);

    // What an object becomes when it is read from storage reaches every version that it is then converted to.
    let prunes_anew = live.keeps_unknown_fields && !desired.keeps_unknown_fields;
    let changed = |version: &Version| match live.version(&version.name) {
        Some(before) => prunes_anew || !before.same_schema(version),
        None => true,
    };
    let read_changes = desired.versions.iter().any(|version| stored(version) && changed(version));
    let converts_anew = conversion(desired, live) != conversion(live, live);

    for version in &desired.versions {
        let was_served = live.served(&version.name).is_some();
        let matters = version.served || stored(version);
        if matters && (changed(version) || read_changes || converts_anew || version.served && !was_served) {
            ask(version, Ask::Fits);
        }
        if version.storage && live.storage().is_some_and(|before| before.name != version.name) {
            ask(version, Ask::Stores);
        }
    }
    for version in &live.versions {
        match desired.version(&version.name) {
            None if version.served || stored(version) => ask(version, Ask::Removed),
            Some(after) if version.served && !after.served => ask(version, Ask::Unserved),
            _ => {}
        }
    }
    questions
}

/// How objects get from one version to another. A manifest that does not say leaves it as it is.
pub fn conversion(crd: &Crd, live: &Crd) -> Conversion {
    crd.conversion.or(live.conversion).unwrap_or(Conversion::Relabel)
}

//! The annotation of a CRD that lets a migration continue.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The annotation with a [`StoredSince`] as JSON.
pub const ANNOTATION: &str = "gantry.dev/stored-since";

/// From when on every write has been stored at a version: what is written after this resourceVersion is stored at this
/// version, as long as the CRD is of this generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredSince {
    /// The storage version of the CRD.
    pub version: String,
    /// `metadata.generation` of the CRD: any change of its spec increases it.
    pub generation: i64,
    /// The resourceVersion of a list that was read when this was the storage version.
    pub resource_version: u64,
}

impl StoredSince {
    /// Reads the value of the annotation. What somebody else wrote there is no mark.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl fmt::Display for StoredSince {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

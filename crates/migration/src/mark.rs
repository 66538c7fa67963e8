//! The annotation of a CRD that lets a migration continue.

use std::fmt;

use serde::{Deserialize, Serialize};

use gantry_core::crd::Crd;
use gantry_core::resource::RawObject;
use gantry_schema::scan;

/// The annotation with a [`StoredSince`] as JSON.
pub const ANNOTATION: &str = "gantry.dev/stored-since";

/// From when on every write has been stored at a version: what is written after this resourceVersion is stored at this
/// version, as long as the CRD is of this generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredSince {
    /// The storage version of the CRD.
    pub version: String,
    /// `metadata.uid` of the CRD: a mark that comes with a copied manifest says nothing about another CRD.
    pub uid: String,
    /// `metadata.generation` of the CRD: any change of its spec increases it.
    pub generation: i64,
    /// The resourceVersion of a list that was read when this was the storage version.
    pub resource_version: u64,
    /// Whether a pass over all objects found none that is stored at another version. As every later write stores at the
    /// storage version too, this stays true for this generation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
}

impl StoredSince {
    /// Reads the mark of a live CRD, if it is about the CRD as it is: its storage version and its generation.
    pub fn of_live(live: &RawObject) -> Option<Self> {
        #[derive(Deserialize)]
        struct MarkMetadata {
            #[serde(default)]
            uid: String,
            #[serde(default)]
            generation: i64,
        }
        let json = live.json();
        let metadata: MarkMetadata = serde_json::from_str(scan::member(&json, "metadata")?).ok()?;
        Self::of_crd(&Crd::read(live).ok()?, &metadata.uid, metadata.generation)
    }

    /// Reads the mark of a CRD with this uid and generation, as [`StoredSince::of_live`].
    pub(crate) fn of_crd(crd: &Crd, uid: &str, generation: i64) -> Option<Self> {
        let mark = Self::parse(crd.annotations().get(ANNOTATION)?.as_str()?)?;
        let is_of_crd = mark.uid == uid && mark.generation == generation;
        (is_of_crd && *mark.version == *crd.storage()?.name).then_some(mark)
    }

    /// Reads the value of the annotation; `None` for a text that is no mark.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl fmt::Display for StoredSince {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

//! A CRD and the one that is to replace it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{Crd, Fault, Unreadable, Version};
use crate::resource::RawObject;

/// Which of the two CRDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Live,
    Desired,
}

/// Why two CRDs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub side: Side,
    pub error: Unreadable,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// A CRD, or why it cannot be read as one.
type Found = Result<Arc<Crd>, Unreadable>;

/// The CRD of one change: as its manifest has it, and as it is live. Each is read once, when somebody first looks at it.
#[derive(Debug)]
pub struct Sides {
    pub desired_object: RawObject,
    /// `None` where there is no live one.
    pub live_object: Option<RawObject>,
    /// At whatever version they are written.
    desired: OnceLock<Found>,
    live: OnceLock<Found>,
}

impl Sides {
    pub fn new(desired: RawObject, live: Option<RawObject>) -> Self {
        Sides { desired_object: desired, live_object: live, desired: OnceLock::new(), live: OnceLock::new() }
    }

    /// The desired one.
    ///
    /// # Errors
    /// Why it cannot be read as a CRD of `apiextensions.k8s.io/v1`.
    pub fn desired(&self) -> Result<&Arc<Crd>, Unreadable> {
        at_v1(read(&self.desired, &self.desired_object))
    }

    /// What the desired one defines, at whatever version of the API it is written.
    pub fn defined(&self) -> Option<&Arc<Crd>> {
        read(&self.desired, &self.desired_object).as_ref().ok()
    }

    /// The live one, where there is one.
    ///
    /// # Errors
    /// Why it cannot be read as a CRD of `apiextensions.k8s.io/v1`.
    pub fn live(&self) -> Option<Result<&Arc<Crd>, Unreadable>> {
        let live = self.live_object.as_ref()?;
        Some(at_v1(read(&self.live, live)))
    }

    /// The live one, where there is one that can be read.
    pub fn readable_live(&self) -> Option<&Arc<Crd>> {
        self.live()?.ok()
    }

    /// Both, where one is to replace the other.
    ///
    /// # Errors
    /// The side that cannot be read, or is not there.
    pub fn pair(&self) -> Result<CrdPair, Malformed> {
        let absent = || Err(Unreadable { fault: Fault::Missing, at: Vec::new() });
        let live = self.live().unwrap_or_else(absent).map_err(|error| Malformed { side: Side::Live, error })?;
        let desired = self.desired().map_err(|error| Malformed { side: Side::Desired, error })?;
        Ok(CrdPair { live: Arc::clone(live), desired: Arc::clone(desired) })
    }
}

fn read<'s>(side: &'s OnceLock<Found>, object: &RawObject) -> &'s Found {
    side.get_or_init(|| Crd::read_at_any_version(object).map(Arc::new))
}

fn at_v1(found: &Found) -> Result<&Arc<Crd>, Unreadable> {
    let crd = found.as_ref().map_err(Clone::clone)?;
    super::at_v1(&crd.api_version).map(|()| crd)
}

/// A CRD and the one that is to replace it.
#[derive(Debug, Clone)]
pub struct CrdPair {
    pub live: Arc<Crd>,
    pub desired: Arc<Crd>,
}

impl CrdPair {
    /// Reads both CRDs from their JSON.
    ///
    /// # Errors
    /// The side that cannot be read.
    pub fn parse(live: &str, desired: &str) -> Result<Self, Malformed> {
        let read = |text, side| Crd::parse(text).map(Arc::new).map_err(|error| Malformed { side, error });
        Ok(CrdPair { live: read(live, Side::Live)?, desired: read(desired, Side::Desired)? })
    }

    /// Each version that both CRDs have: live's and desired's.
    pub fn common_versions(&self) -> impl Iterator<Item = (&Version, &Version)> {
        self.live.versions.iter().filter_map(|live| Some((live, self.desired.version(&live.name)?)))
    }
}

//! Pairs of CRDs.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gantry_schema::scan::{self, Relation};

use super::{Crd, CrdReadError, CrdReadErrorKind, CrdVersion};
use crate::resource::RawObject;

/// One of the two CRDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrdSide {
    /// The CRD of the target.
    Live,
    /// The CRD of the manifests.
    Desired,
}

/// Why two CRDs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedCrd {
    /// The CRD that cannot be parsed. If neither can, the live one.
    pub side: CrdSide,
    /// What is wrong in it.
    pub error: CrdReadError,
}

impl std::error::Error for MalformedCrd {}

impl fmt::Display for MalformedCrd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// A CRD, or the reason why it cannot be parsed.
type ParsedCrd = Result<Arc<Crd>, CrdReadError>;

/// The desired and the live CRD of one change. Each is parsed once, at the first access.
#[derive(Debug)]
pub struct CrdSides {
    /// The CRD of the manifests, as text.
    pub desired_object: RawObject,
    /// `None` if there is no live CRD.
    pub live_object: Option<RawObject>,
    /// Parsed at any version of the API, like `live`.
    desired: OnceLock<ParsedCrd>,
    live: OnceLock<ParsedCrd>,
    versions: OnceLock<Option<VersionsIn>>,
}

/// The byte ranges of `spec.versions` in two texts.
#[derive(Debug)]
struct VersionsIn {
    live: Range<usize>,
    desired: Range<usize>,
    /// Whether the values are equal.
    is_same: bool,
    /// Whether a text in them differs, which is neither empty in live nor in desired.
    has_other_text: bool,
}

impl CrdSides {
    /// Parses nothing yet.
    pub fn new(desired: RawObject, live: Option<RawObject>) -> Self {
        CrdSides {
            desired_object: desired,
            live_object: live,
            desired: OnceLock::new(),
            live: OnceLock::new(),
            versions: OnceLock::new(),
        }
    }

    /// Whether `spec.versions`, which is most of a CRD, has the same value in both. Many releases change only labels
    /// and annotations; then the schemas need not be compared.
    pub fn has_same_versions(&self) -> bool {
        self.versions().is_some_and(|versions| versions.is_same)
    }

    /// Whether a text in the versions was seen to differ. The API server keeps every text that is not empty, so desired
    /// changes the live CRD.
    pub fn has_other_text(&self) -> bool {
        self.versions().is_some_and(|versions| versions.has_other_text)
    }

    /// [`CrdSides::without_versions`], if the versions are the same.
    pub fn without_same_versions(&self) -> Option<(String, String)> {
        self.has_same_versions().then(|| self.without_versions()).flatten()
    }

    /// The text of the live CRD's versions.
    pub fn live_versions(&self) -> Option<String> {
        let VersionsIn { live, .. } = self.versions()?;
        Some(self.live_object.as_ref()?.json()[live.clone()].to_owned())
    }

    /// The texts of live and desired with an empty list in place of the versions, if both have versions.
    pub fn without_versions(&self) -> Option<(String, String)> {
        let VersionsIn { live, desired, .. } = self.versions()?;
        Some((
            blank_versions(&self.live_object.as_ref()?.json(), live),
            blank_versions(&self.desired_object.json(), desired),
        ))
    }

    fn versions(&self) -> Option<&VersionsIn> {
        let found = self
            .versions
            .get_or_init(|| versions_in_both(&self.live_object.as_ref()?.json(), &self.desired_object.json()));
        found.as_ref()
    }

    /// The desired CRD.
    ///
    /// # Errors
    /// It is not a valid CRD of `apiextensions.k8s.io/v1`.
    pub fn desired(&self) -> Result<&Arc<Crd>, CrdReadError> {
        at_v1(read(&self.desired, &self.desired_object))
    }

    /// The desired CRD at any version of the API.
    ///
    /// # Errors
    /// It is not a valid CRD.
    pub fn desired_at_any_version(&self) -> Result<&Arc<Crd>, &CrdReadError> {
        read(&self.desired, &self.desired_object).as_ref()
    }

    /// [`CrdSides::desired_at_any_version`], if it is valid.
    pub fn defined(&self) -> Option<&Arc<Crd>> {
        self.desired_at_any_version().ok()
    }

    /// The live CRD, if there is one.
    ///
    /// # Errors
    /// It is not a valid CRD of `apiextensions.k8s.io/v1`.
    pub fn live(&self) -> Option<Result<&Arc<Crd>, CrdReadError>> {
        let live = self.live_object.as_ref()?;
        Some(at_v1(read(&self.live, live)))
    }

    /// The live CRD, if there is a valid one.
    pub fn readable_live(&self) -> Option<&Arc<Crd>> {
        self.live()?.ok()
    }

    /// Both CRDs.
    ///
    /// # Errors
    /// The side that is invalid or missing.
    pub fn pair(&self) -> Result<CrdPair, MalformedCrd> {
        let absent = || Err(CrdReadError { fault: CrdReadErrorKind::Missing, at: Vec::new() });
        let live = self.live().unwrap_or_else(absent).map_err(|error| MalformedCrd { side: CrdSide::Live, error })?;
        let desired = self.desired().map_err(|error| MalformedCrd { side: CrdSide::Desired, error })?;
        Ok(CrdPair {
            live: Arc::clone(live),
            desired: Arc::clone(desired),
            has_same_versions: self.has_same_versions(),
        })
    }
}

fn read<'s>(side: &'s OnceLock<ParsedCrd>, object: &RawObject) -> &'s ParsedCrd {
    side.get_or_init(|| Crd::read_at_any_version(object).map(Arc::new))
}

fn at_v1(found: &ParsedCrd) -> Result<&Arc<Crd>, CrdReadError> {
    let crd = found.as_ref().map_err(Clone::clone)?;
    super::at_v1(&crd.api_version).map(|()| crd)
}

fn versions_in_both(live: &str, desired: &str) -> Option<VersionsIn> {
    let (of_live, of_desired) = (versions_in(live)?, versions_in(desired)?);
    let (in_live, in_desired) = (&live[of_live.clone()], &desired[of_desired.clone()]);
    let relation = scan::relation(in_live, in_desired);
    let is_same = match relation {
        Relation::Same => true,
        Relation::OtherText => false,
        Relation::Unknown => scan::is_same(in_live, in_desired),
    };
    Some(VersionsIn { live: of_live, desired: of_desired, is_same, has_other_text: relation == Relation::OtherText })
}

/// The byte range of `spec.versions`.
fn versions_in(crd: &str) -> Option<Range<usize>> {
    let versions = scan::member(scan::member(crd, "spec")?, "versions")?;
    let start = versions.as_ptr().addr() - crd.as_ptr().addr();
    Some(start..start + versions.len())
}

fn blank_versions(crd: &str, versions: &Range<usize>) -> String {
    [&crd[..versions.start], "[]", &crd[versions.end..]].concat()
}

/// A live CRD and the desired CRD that replaces it.
#[derive(Debug, Clone)]
pub struct CrdPair {
    /// The CRD of the target.
    pub live: Arc<Crd>,
    /// The CRD of the manifests.
    pub desired: Arc<Crd>,
    /// See [`CrdSides::has_same_versions`].
    pub has_same_versions: bool,
}

impl CrdPair {
    /// Parses both CRDs from their JSON.
    ///
    /// # Errors
    /// The side that is invalid.
    pub fn parse(live: &str, desired: &str) -> Result<Self, MalformedCrd> {
        let read = |text, side| Crd::parse(text).map(Arc::new).map_err(|error| MalformedCrd { side, error });
        let has_same_versions = versions_in_both(live, desired).is_some_and(|versions| versions.is_same);
        Ok(CrdPair { live: read(live, CrdSide::Live)?, desired: read(desired, CrdSide::Desired)?, has_same_versions })
    }

    /// Whether a webhook converts once desired is applied. A manifest without `conversion` keeps the live one if it
    /// belongs to somebody else: many operators set it themselves.
    pub fn converts_by_webhook(&self) -> bool {
        let is_kept = || self.live.converts_by_webhook() && self.live.conversion_belongs_to_another();
        self.desired.converts_by_webhook() || self.desired.strategy().is_none() && is_kept()
    }

    /// Each version that both CRDs have, as a pair of live and desired.
    pub fn common_versions(&self) -> impl Iterator<Item = (&CrdVersion, &CrdVersion)> {
        self.live.versions.iter().filter_map(|live| Some((live, self.desired.version(&live.name)?)))
    }
}

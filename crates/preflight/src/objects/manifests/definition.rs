//! The CRD that is in force when a custom resource is written.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::lost_values::{self, OtherVersions};
use super::{ManifestRefusals, converted};
use crate::Context;
use crate::objects::question;
use gantry_core::crd::{ConversionStrategy, Crd};

/// A CRD and its origin.
pub(super) struct CrdWithOrigin {
    pub(super) crd: Arc<Crd>,
    /// The live CRD, if there is one.
    pub(super) live: Option<Arc<Crd>>,
    /// The conversion strategy when the objects are written.
    pub(super) conversion: ConversionStrategy,
    /// `the CRD among the manifests`, `the live CRD`
    pub(super) whose: &'static str,
    pub(super) name: String,
    /// The schemas of the CRD's versions, each parsed at first use.
    schemas: Vec<OnceLock<Option<Value>>>,
    other_versions: OnceLock<Option<OtherVersions>>,
    /// See [`lost_values::read_whole`].
    pub(super) whole: BTreeMap<usize, Value>,
}

impl CrdWithOrigin {
    pub(super) fn new(crd: Arc<Crd>, live: Option<Arc<Crd>>, whose: &'static str, name: String) -> Self {
        let schemas = crd.versions.iter().map(|_| OnceLock::new()).collect();
        let conversion = question::conversion(&crd, live.as_ref().unwrap_or(&crd));
        let (other_versions, whole) = (OnceLock::new(), BTreeMap::new());
        CrdWithOrigin { crd, live, conversion, whose, name, schemas, other_versions, whole }
    }

    /// Whether the server serves a version before the deploy.
    pub(super) fn is_served_before(&self, version: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.served(version).is_some())
    }

    /// Asks the target what it alone knows about the objects of this definition.
    pub(super) async fn ask(&mut self, context: &Context<'_>, objects: &[usize], found: &mut ManifestRefusals) {
        converted::check(context, self, objects, found).await;
        self.whole = lost_values::read_whole(context, self, objects, found).await;
    }

    /// What the other versions of the CRD do to its objects; `None` if their schemas cannot be read.
    pub(super) fn other_versions(&self) -> Option<&OtherVersions> {
        let of = || OtherVersions::compile(&self.crd, self.live.as_deref());
        self.other_versions.get_or_init(of).as_ref()
    }

    /// The `openAPIV3Schema` of a version, served or not.
    pub(super) fn schema(&self, version: &str) -> Option<&Value> {
        let at = self.crd.versions.iter().position(|known| &*known.name == version)?;
        self.schemas[at].get_or_init(|| self.crd.versions[at].schema_value().ok()).as_ref()
    }
}

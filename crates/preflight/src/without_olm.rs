//! What stands in for `olm` in a build without that feature.

use std::marker::PhantomData;

use gantry_catalog::NamedRelease;
use gantry_cluster::Target;
use gantry_core::problem::Problem;
use gantry_deploy::plan::Plan;
use gantry_olm::source::CatalogSource;

pub use WithoutOlm as OlmState;

/// The checks that this build lacks.
pub const LEFT_OUT: &[&str] = &["ExtensionResolution", "OperatorDependencies"];

/// No check reads the objects of OLM.
pub struct WithoutOlm<'a>(PhantomData<&'a Plan>);

impl<'a> WithoutOlm<'a> {
    /// Reads nothing.
    pub fn new(
        _plan: &'a Plan,
        _target: &'a Target,
        _configured: &'a [CatalogSource],
        _looks_at_all: bool,
        _release: Option<NamedRelease>,
    ) -> Self {
        WithoutOlm(PhantomData)
    }

    /// There are none.
    pub fn notices(&self) -> Vec<Problem> {
        Vec::new()
    }
}

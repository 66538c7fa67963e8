//! Manifests that count as live although no cluster holds them: what Helm renders from a chart, or has recorded with a
//! release. They are read-only; their meaning is the same as in a folder ([`super::dir`]).

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use super::dir::{FileContainer, FixedFile, FolderState};
use super::helm_release::HelmRelease;
use super::kube::KubeTarget;
use super::{Connection, DesiredSource};
use gantry_core::manifest::{ManifestSource, PreparedSources, shown_text};
use gantry_core::options::HelmReleaseSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render::{self, ChartOptions, RenderedManifests, Renderer};
use gantry_k8s_cel::KubernetesRelease;

/// The manifests of a chart or a release.
pub struct HelmTarget {
    described: String,
    name: String,
    namespace: Option<String>,
    state: FolderState,
    notices: Vec<Problem>,
}

impl HelmTarget {
    /// Renders a chart with the values of the run.
    ///
    /// # Errors
    /// It is no chart, or Helm fails.
    pub async fn open_chart(chart: &str, desired: DesiredSource<'_>) -> Result<Self> {
        // The version of a flag is that of the chart on the other side.
        let of_run = desired.render.map(|renderers| renderers.charts.clone()).unwrap_or_default();
        let options = ChartOptions { version: None, ..of_run };
        let shown = shown_text(chart);
        if !render::is_chart(chart, &options.folder) {
            let problem = Problem::new(format!("--target chart:{shown}: there is no such chart"));
            return Err(Error::usage(problem.help(render::CHART_HELP)));
        }
        let renderer = Renderer::Chart(&options);
        let rendered = renderer.run(OsStr::new(chart), &options.folder, &shown).await;
        let RenderedManifests { source, .. } = rendered.map_err(Error::failed)?;
        let state = state(vec![source.into()], FileContainer::Chart, desired.namespace)?;
        let namespace = desired.namespace.map(str::to_owned);
        Ok(HelmTarget { described: format!("chart: {shown}"), name: shown, namespace, state, notices: Vec::new() })
    }

    /// Reads a release from the cluster of the connection.
    ///
    /// # Errors
    /// See [`HelmRelease::read`].
    pub async fn open_release(
        spec: &HelmReleaseSpec,
        connection: &Connection,
        desired: DesiredSource<'_>,
    ) -> Result<Self> {
        let server = KubeTarget::open(connection).await?;
        let release = HelmRelease::read(spec, desired.namespace, &server).await?;
        let PreparedSources { sources, notices } = release.installed().map_err(Error::failed)?;
        let mut state = state(sources, FileContainer::HelmRelease, Some(&release.namespace))?;
        state.release = server.release().await;
        let (described, name) = (release.describe(), release.short_name());
        Ok(HelmTarget { described, name, namespace: Some(release.namespace), state, notices })
    }

    /// `chart: web-1.0.0.tgz`, `helm: prod/shop revision 3 (web 1.0.0)`
    pub fn describe(&self) -> String {
        self.described.clone()
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `chart` or `release`.
    pub fn noun(&self) -> &'static str {
        match self.state.holder() {
            FileContainer::HelmRelease => "release",
            FileContainer::Chart | FileContainer::Folder | FileContainer::Commit => "chart",
        }
    }

    /// The namespace of objects whose manifest names none.
    pub fn default_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Notices about how the manifests were read.
    pub fn notices(&self) -> &[Problem] {
        &self.notices
    }

    /// The release of Kubernetes: the one that the user named, or that of the release's cluster.
    pub fn release(&self) -> Option<KubernetesRelease> {
        self.state.release
    }

    /// Stands for this release of Kubernetes.
    pub(crate) fn set_release(&mut self, release: KubernetesRelease) {
        self.state.release = Some(release);
    }

    /// The contents of the manifests.
    pub(super) fn state(&self) -> &FolderState {
        &self.state
    }

    /// Why nothing can be written.
    pub(super) fn read_only(&self) -> Problem {
        Problem::new(format!("a {} is read-only", self.noun()))
            .help("deploy to a cluster, or to a folder: --target dir:PATH")
    }
}

fn state(sources: Vec<Arc<ManifestSource>>, holder: FileContainer, namespace: Option<&str>) -> Result<FolderState> {
    let file = |source: Arc<ManifestSource>| FixedFile::new(PathBuf::from(&*source.name), source, None);
    FolderState::of_fixed(sources.into_iter().map(file).collect(), holder, namespace)
}

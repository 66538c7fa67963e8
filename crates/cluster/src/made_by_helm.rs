//! Manifests that count as live although no cluster holds them: what Helm renders from a chart, or has recorded with a
//! release. They are read-only; their meaning is the same as in a folder ([`super::dir`]).

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use super::dir::{FileContainer, FixedFile, FolderState};
use super::helm_release::HelmRelease;
use super::kube::KubeTarget;
use super::recorded::RecordedTarget;
use super::{Connection, DesiredSource};
use gantry_core::manifest::{ManifestSource, PreparedSources, shown_text};
use gantry_core::options::HelmReleaseSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render::{self, ChartOptions, RenderedManifests, Renderer};

/// Renders a chart with the values of the run.
///
/// # Errors
/// There is no such chart, or Helm fails.
pub(super) async fn open_chart(chart: &str, desired: DesiredSource<'_>) -> Result<RecordedTarget> {
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
    Ok(RecordedTarget {
        description: format!("chart: {shown}"),
        name: shown,
        namespace: desired.namespace.map(str::to_owned),
        state: state(vec![source.into()], FileContainer::Chart, desired.namespace)?,
        notices: Vec::new(),
        commit: None,
    })
}

/// Reads a release from the cluster of the connection.
///
/// # Errors
/// See [`HelmRelease::read`].
pub(super) async fn open_release(
    spec: &HelmReleaseSpec,
    connection: &Connection,
    desired: DesiredSource<'_>,
) -> Result<RecordedTarget> {
    let server = KubeTarget::open(connection).await?;
    let release = HelmRelease::read(spec, desired.namespace, &server).await?;
    let PreparedSources { sources, notices } = release.installed().map_err(Error::failed)?;
    let mut state = state(sources, FileContainer::HelmRelease, Some(&release.namespace))?;
    state.release = server.release().await;
    let (description, name) = (release.describe(), release.short_name());
    Ok(RecordedTarget { description, name, namespace: Some(release.namespace), state, notices, commit: None })
}

fn state(sources: Vec<Arc<ManifestSource>>, holder: FileContainer, namespace: Option<&str>) -> Result<FolderState> {
    let file = |source: Arc<ManifestSource>| FixedFile::new(PathBuf::from(&*source.name), source, None);
    FolderState::of_fixed(sources.into_iter().map(file).collect(), holder, namespace)
}

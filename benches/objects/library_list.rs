//! The same list through gantry's library: the part of a check's time that is reading.

use gantry_cluster::{Connection, DesiredSource, ListRequest, Target};
use gantry_core::options::TargetSpec;
use gantry_core::resource::Resource;

/// Lists all objects on the cluster of `KUBECONFIG` and returns their number.
pub fn list(page_size: u32) -> Result<usize, Box<dyn std::error::Error>> {
    let resource = Resource {
        group: crate::fixture::GROUP.into(),
        version: "v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
        namespaced: true,
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let target = Target::open(&TargetSpec::Kube, &Connection::default(), DesiredSource::default()).await?;
        let mut pages = target.list(&ListRequest::new(&resource, page_size));
        let mut objects = 0;
        while let Some(page) = pages.next().await.map_err(|error| format!("{error:?}"))? {
            objects += page.len();
        }
        Ok(objects)
    })
}

//! The list through gantry's library, and with it what any check of objects has to do at least: parse, prune, default
//! and validate each of them against one schema.

use gantry::plan::in_parallel;
use gantry::resource::Resource;
use gantry::target::{Connection, ListRequest, Target, TargetSpec};
use gantry::validation::Schema;
use serde_json::Value;

/// Lists all objects, judges them if asked to, and gives the number of those that are refused.
pub fn run(judges: bool) -> Result<usize, Box<dyn std::error::Error>> {
    let crd = crate::fixture::crd(true);
    let schema =
        Schema::compile(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).map_err(|e| format!("{e:?}"))?;
    let resource = Resource {
        group: crate::fixture::GROUP.into(),
        version: "v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
        namespaced: true,
    };
    let judge = |item: &&str| {
        let mut object: Value = serde_json::from_str(item).expect("an object");
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        usize::from(!schema.process(&mut object, None).outcome.is_accepted())
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let target = Target::open(&TargetSpec::Kube, &Connection::default()).await?;
        let request =
            ListRequest { resource: &resource, namespace: None, label_selector: None, page_size: crate::PAGE_SIZE };
        let mut pages = target.list(&request);
        let mut refused = 0;
        while let Some(page) = pages.next().await.map_err(|error| format!("{error:?}"))? {
            if judges {
                let items: Vec<&str> = page.items().collect();
                refused += in_parallel(&items, judge).into_iter().sum::<usize>();
            }
        }
        Ok(refused)
    })
}

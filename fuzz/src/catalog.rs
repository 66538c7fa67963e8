//! File-based catalogs: any bytes are read or refused, and a catalog that was read is the same when read as JSON lines.

use gantry_catalog::graph::UpgradeGraph;
use gantry_catalog::mistakes::mistakes;
use gantry_catalog::{Catalog, Csvs, KeptCatalogParts};

pub fn run(data: &[u8]) {
    let mut first = Catalog::default();
    let keep = |catalog: &Catalog, csv| KeptCatalogParts {
        properties_of: catalog.packages.keys().cloned().collect(),
        csv,
        ..KeptCatalogParts::default()
    };
    let mut lines = String::new();
    let read = gantry_catalog::read(data, &mut |blob| {
        first.add(blob, &KeptCatalogParts::default())?;
        lines.push_str(&blob.json());
        lines.push('\n');
        Ok(())
    });
    if let Err(error) = read {
        assert!(error.line > 0 && !error.message.is_empty(), "{error:?}");
        return;
    }
    let mut again = Catalog::default();
    let read = gantry_catalog::read(lines.as_bytes(), &mut |blob| again.add(blob, &KeptCatalogParts::default()));
    assert_eq!(read, Ok(()), "{lines}");
    assert_eq!(again, first, "{lines}");
    let keep = keep(&first, Csvs::All);
    let mut whole = Catalog::default();
    let _ = gantry_catalog::read(data, &mut |blob| whole.add(blob, &keep));
    for package in whole.packages.values() {
        let found = mistakes(package);
        assert_eq!(found, mistakes(package));
        let graph = UpgradeGraph::new(package, &[]);
        for bundle in package.bundles.keys().take(20) {
            let from = graph.installed(bundle);
            let successors = graph.successors(&from);
            let Ok(ways) = graph.find_ways(&from) else { continue };
            for (name, steps) in ways.reachable_bundles() {
                let way = ways.edges_to(name).expect("a way to what is reached");
                assert_eq!((way.last().map(|edge| edge.to), way.len()), (Some(*name), *steps));
                assert!(successors.iter().any(|next| Some(next.name.as_str()) == way.first().map(|edge| edge.to)));
            }
        }
    }
}

//! The possible upgrades from a version.

use gantry_catalog::graph::{InstalledBundleRef, TooLarge, UpgradeEdge, UpgradeGraph};
use gantry_catalog::{Package, PackageBundle};
use serde_json::{Value, json};

use super::edge_field;
use super::human::describe_end;
use gantry_core::text::{count, sanitize, table};

/// The upgrades from one version of a package.
pub struct Way<'a> {
    /// The catalog that the package is in.
    pub catalog: &'a str,
    /// The package.
    pub package: &'a Package,
    /// The upgrade graph of the requested channels.
    pub graph: &'a UpgradeGraph<'a>,
    /// The start.
    pub from: InstalledBundleRef<'a>,
    /// The start as the user wrote it.
    pub from_text: &'a str,
    /// The destination, if there is one.
    pub to: Option<&'a PackageBundle>,
}

/// Prints the upgrades as text or JSON. `None` if there is no path to the destination.
pub fn render_ways(way: &Way<'_>, as_json: bool) -> Result<Option<String>, TooLarge> {
    let found = way.graph.find_ways(&way.from)?;
    let Some(to) = way.to else {
        let reached = found.reachable_bundles();
        return Ok(Some(if as_json { everywhere_json(way, reached) } else { render_all_destinations(way, reached) }));
    };
    let edges = if Some(to.name.as_str()) == way.from.name { Some(Vec::new()) } else { found.edges_to(&to.name) };
    Ok(edges.map(|edges| if as_json { one_json(way, to, &edges) } else { describe_way(way, to, &edges) }))
}

fn version<'a>(way: &Way<'a>, bundle: &str) -> &'a str {
    way.package.bundles.get(bundle).map_or("?", |bundle| &bundle.version)
}

fn describe_way(way: &Way<'_>, to: &PackageBundle, edges: &[UpgradeEdge<'_>]) -> String {
    let (package, catalog) = (sanitize(&way.package.name), sanitize(way.catalog));
    let (from, steps) = (sanitize(way.from_text), count(edges.len(), "step"));
    let mut out = format!("{package} {from} -> {}: {steps} (catalog {catalog})\n", sanitize(&to.version));
    let rows = edges.iter().map(|edge| {
        [
            format!("  {}", version(way, edge.to)),
            edge.to.to_owned(),
            format!("channel {}", edge.channel),
            edge_field(edge),
        ]
    });
    let rows: Vec<[String; 4]> = rows.collect();
    if !rows.is_empty() {
        out.push_str(&format!("\n{}", table(&rows)));
    }
    out
}

fn render_all_destinations(way: &Way<'_>, reached: &[(&str, usize)]) -> String {
    let (package, catalog, from) = (sanitize(&way.package.name), sanitize(way.catalog), sanitize(way.from_text));
    let mut out = format!("{package} {from} (catalog {catalog})\n");
    if way.from.name.is_none() {
        out.push_str("\nThe catalog has no bundle of this version: only skipRange can lead from it to others.\n");
    }
    let Some((_, _)) = reached.first() else {
        let end = way.from.name.map(|name| describe_end(way.package, name));
        out.push_str(&format!("\n{}\n", end.as_deref().unwrap_or("no upgrade is possible from here")));
        return out;
    };
    let edges = way.graph.edges(&way.from);
    let direct = way.graph.successors(&way.from);
    let rows = direct.iter().map(|bundle| {
        let mut of: Vec<String> = edges
            .iter()
            .filter(|edge| edge.to == bundle.name)
            .map(|edge| format!("{} ({})", edge.channel, edge_field(edge)))
            .collect();
        of.dedup();
        [format!("  {}", bundle.version), bundle.name.clone(), of.join(", ")]
    });
    let rows: Vec<[String; 3]> = rows.collect();
    out.push_str(&format!("\nin one step; without a version, OLM v1 installs the highest\n{}", table(&rows)));
    let far: Vec<[String; 3]> = reached
        .iter()
        .filter(|(_, steps)| *steps > 1)
        .map(|(name, steps)| [format!("  {}", version(way, name)), (*name).to_owned(), count(*steps, "step")])
        .collect();
    if !far.is_empty() {
        out.push_str(&format!("\nin several steps; --to VERSION shows them\n{}", table(&far)));
    }
    out
}

fn json_head(way: &Way<'_>) -> Value {
    json!({
        "catalog": way.catalog,
        "package": way.package.name,
        "from": {"bundle": way.from.name, "version": way.from.version.as_ref().map(ToString::to_string)},
    })
}

fn edge_json(edge: &UpgradeEdge<'_>) -> Value {
    use gantry_catalog::graph::By;
    let by = match edge.by {
        By::Replaces => "replaces",
        By::Skips => "skips",
        By::SkipRange => "skipRange",
    };
    let mut json = json!({"channel": edge.channel, "by": by});
    if edge.by == By::SkipRange {
        json["range"] = edge.range.into();
    }
    json
}

fn one_json(way: &Way<'_>, to: &PackageBundle, edges: &[UpgradeEdge<'_>]) -> String {
    let mut answer = json_head(way);
    answer["to"] = json!({"bundle": to.name, "version": to.version});
    let steps = edges.iter().map(|edge| {
        let mut step = json!({"bundle": edge.to, "version": version(way, edge.to)});
        step["edge"] = edge_json(edge);
        step
    });
    answer["steps"] = steps.collect();
    format!("{answer}\n")
}

fn everywhere_json(way: &Way<'_>, reached: &[(&str, usize)]) -> String {
    let mut answer = json_head(way);
    let edges = way.graph.edges(&way.from);
    let successors = way.graph.successors(&way.from).into_iter().map(|bundle| {
        let edges: Vec<Value> = edges.iter().filter(|edge| edge.to == bundle.name).map(edge_json).collect();
        json!({"bundle": bundle.name, "version": bundle.version, "edges": edges})
    });
    answer["successors"] = successors.collect();
    let reached =
        reached.iter().map(|(name, steps)| json!({"bundle": name, "version": version(way, name), "steps": steps}));
    answer["reachable"] = reached.collect();
    format!("{answer}\n")
}

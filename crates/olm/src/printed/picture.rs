//! Upgrade graphs as pictures: Mermaid, which forges show in Markdown, and DOT.
//!
//! An arrow points from a bundle to one that it can be updated to. If a `skipRange` contains many bundles, a single
//! arrow starts at the range, so that the picture stays readable.

use std::collections::BTreeMap;

use gantry_catalog::{Channel, Package, SkipRange};

use gantry_core::text::sanitize;

/// A range with more bundles gets a single arrow.
const MOST_ARROWS_OF_A_RANGE: usize = 5;

/// An end of an arrow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ArrowEnd<'a> {
    Bundle(&'a str),
    Range(&'a str),
}

struct Picture<'a> {
    nodes: BTreeMap<ArrowEnd<'a>, usize>,
    arrows: Vec<(ArrowEnd<'a>, ArrowEnd<'a>, &'static str)>,
}

impl<'a> Picture<'a> {
    fn new(package: &'a Package, channel: &'a Channel) -> Picture<'a> {
        let mut picture = Picture { nodes: BTreeMap::new(), arrows: Vec::new() };
        let versions: Vec<(&str, _)> = channel
            .entries
            .iter()
            .filter_map(|entry| Some((entry.name.as_str(), package.bundles.get(&entry.name)?.version().ok()?.version)))
            .collect();
        for entry in &channel.entries {
            let to = picture.node(ArrowEnd::Bundle(&entry.name));
            if !entry.replaces.is_empty() {
                let from = picture.node(ArrowEnd::Bundle(&entry.replaces));
                picture.arrows.push((from, to, "replaces"));
            }
            for skipped in &entry.skips {
                let from = picture.node(ArrowEnd::Bundle(skipped));
                picture.arrows.push((from, to, "skips"));
            }
            let Ok(range) = SkipRange::parse(&entry.skip_range) else { continue };
            let inside = versions.iter().filter(|(name, version)| *name != entry.name && range.contains(version));
            let inside: Vec<&str> = inside.map(|(name, _)| *name).collect();
            match inside.len() {
                0..=MOST_ARROWS_OF_A_RANGE => {
                    for name in inside {
                        let from = picture.node(ArrowEnd::Bundle(name));
                        picture.arrows.push((from, to, "skipRange"));
                    }
                }
                _ => {
                    let from = picture.node(ArrowEnd::Range(&entry.skip_range));
                    picture.arrows.push((from, to, "skipRange"));
                }
            }
        }
        picture
    }

    fn node(&mut self, node: ArrowEnd<'a>) -> ArrowEnd<'a> {
        let next = self.nodes.len();
        self.nodes.entry(node).or_insert(next);
        node
    }

    /// The nodes, in the order of their first occurrence.
    fn in_order(&self) -> Vec<(usize, ArrowEnd<'a>)> {
        let mut nodes: Vec<(usize, ArrowEnd)> = self.nodes.iter().map(|(node, at)| (*at, *node)).collect();
        nodes.sort_unstable();
        nodes
    }
}

/// The name of a bundle, and its version unless the name contains it.
fn label(package: &Package, node: ArrowEnd<'_>) -> String {
    match node {
        ArrowEnd::Range(range) => sanitize(range).into_owned(),
        ArrowEnd::Bundle(name) => match package.bundles.get(name) {
            None => sanitize(&format!("{name} (no bundle)")).into_owned(),
            Some(bundle) if name.ends_with(&bundle.version) => sanitize(name).into_owned(),
            Some(bundle) => sanitize(&format!("{name} ({})", bundle.version)).into_owned(),
        },
    }
}

/// A flowchart of Mermaid with a subgraph for each channel.
pub fn mermaid(package: &Package, channels: &[&Channel]) -> String {
    // In quoted text Mermaid interprets only entity codes.
    let quoted = |text: &str| {
        let escape = |c: char| match c {
            '"' | '#' | '<' | '>' | '&' | '`' => format!("#{};", u32::from(c)),
            other => other.to_string(),
        };
        format!("\"{}\"", text.chars().map(escape).collect::<String>())
    };
    let mut out = String::from("flowchart LR\n");
    for (at, channel) in channels.iter().enumerate() {
        let picture = Picture::new(package, channel);
        out.push_str(&format!("  subgraph c{at} [{}]\n", quoted(&format!("channel {}", sanitize(&channel.name)))));
        for (id, node) in picture.in_order() {
            let text = quoted(&label(package, node));
            out.push_str(&match node {
                ArrowEnd::Bundle(_) => format!("    c{at}n{id}[{text}]\n"),
                ArrowEnd::Range(_) => format!("    c{at}n{id}([{text}])\n"),
            });
        }
        for (from, to, by) in &picture.arrows {
            let [from, to] = [from, to].map(|node| picture.nodes[node]);
            let arrow = if *by == "replaces" { "-->" } else { "-.->" };
            out.push_str(&format!("    c{at}n{from} {arrow}|{by}| c{at}n{to}\n"));
        }
        out.push_str("  end\n");
    }
    out
}

/// A digraph of Graphviz with a cluster for each channel.
pub fn dot(package: &Package, channels: &[&Channel]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(&sanitize(&package.name)));
    for (at, channel) in channels.iter().enumerate() {
        let picture = Picture::new(package, channel);
        let title = quoted(&format!("channel {}", sanitize(&channel.name)));
        out.push_str(&format!("  subgraph cluster_{at} {{\n    label={title};\n"));
        for (id, node) in picture.in_order() {
            let shape = if matches!(node, ArrowEnd::Range(_)) { ", shape=ellipse" } else { "" };
            out.push_str(&format!("    c{at}n{id} [label={}{shape}];\n", quoted(&label(package, node))));
        }
        for (from, to, by) in &picture.arrows {
            let [from, to] = [from, to].map(|node| picture.nodes[node]);
            let style = if *by == "replaces" { "" } else { ", style=dashed" };
            out.push_str(&format!("    c{at}n{from} -> c{at}n{to} [label={by}{style}];\n"));
        }
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

//! The schema of each CRD as a tree: only the branches with findings, the live keywords beside the desired ones.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::view::phrases::verdict_words;
use super::super::words;
use super::finding::write_schema;
use super::matrix::shorten_name;
use super::parts::count_findings;
use super::shown::{ShownFinding, ShownFindings, ShownObject};
use gantry_core::finding::{Finding, KeywordChange, Severity, Verdict};
use gantry_core::text;

/// The maximum number of steps of a path that are nodes of the tree; the rest is one node.
const DEEPEST: usize = 40;
/// A tree with more findings is folded, and so is each of more trees.
const LARGE: usize = 25;
const MANY_TREES: usize = 8;

/// The trees of all CRDs with findings about schema nodes that are shown in full.
pub fn write_trees(shown: &ShownFindings<'_>) -> Markup {
    let is_crd = |object: &&ShownObject<'_>| object.object.is_some_and(gantry_core::resource::ObjectRef::is_crd);
    let trees = shown.objects.iter().filter(is_crd).map(|object| (object, SchemaTree::new(object)));
    let trees: Vec<(&ShownObject<'_>, SchemaTree<'_>)> = trees.filter(|(_, tree)| tree.has_nodes()).collect();
    html! {
        @if !trees.is_empty() {
            section aria-labelledby="schema" {
                h2 id="schema" { "Changed schemas" }
                p class="faint" {
                    "The fields with findings, what is proven about each, and their keywords: "
                    span class="sample removed" { "live" } " beside " span class="sample added" { "desired" } "."
                }
                @for (object, tree) in &trees { (write_tree(object, tree, trees.len() <= MANY_TREES)) }
            }
        }
    }
}

fn write_tree(object: &ShownObject<'_>, tree: &SchemaTree<'_>, is_open: bool) -> Markup {
    html! {
        details class="schema" open[is_open && tree.findings <= LARGE] {
            summary { b { (shorten_name(object)) } " " span class="faint" { (tally_findings(&tree.counts)) } }
            div class="body" {
                ul class="tree" {
                    @if !tree.of_crd.entries.is_empty() {
                        li { (write_node("the CRD itself", &tree.of_crd, tree.has_versions)) }
                    }
                    @for (name, node) in tree.root.merged_children() { (write_branch(&name, node, tree.has_versions)) }
                }
                @if tree.left_out > 0 {
                    p class="faint" { (text::count(tree.left_out, "finding")) " of this CRD have only a line in the list below" }
                }
            }
        }
    }
}

fn write_branch(name: &str, node: &TreeNode<'_>, has_versions: bool) -> Markup {
    html! {
        li {
            (write_node(name, node, has_versions))
            @if !node.children.is_empty() {
                ul { @for (name, child) in node.merged_children() { (write_branch(&name, child, has_versions)) } }
            }
        }
    }
}

/// A node, its verdict, its findings, and what changed.
fn write_node(name: &str, node: &TreeNode<'_>, has_versions: bool) -> Markup {
    let mut changes: Vec<&[KeywordChange]> = Vec::new();
    for entry in &node.entries {
        let of_entry = entry.finding.body.schema_changes.as_slice();
        if !of_entry.is_empty() && !changes.contains(&of_entry) {
            changes.push(of_entry);
        }
    }
    html! {
        div class="node" {
            code class="field" { (words::line(name, 300)) }
            @if let Some(verdict) = node.verdict() { span class={ "chip " (choose_class(verdict)) } { (verdict_words(verdict)) } }
            @if node.entries.is_empty() { span class="faint" { (tally_findings(&node.counts)) } }
            @for entry in &node.entries {
                @let severity = words::severity(entry.shown.cause.severity());
                span {
                    a class=(severity) href={ "#" (entry.shown.anchor()) } { (severity) " " (words::line(&entry.finding.rule, 100)) }
                    @if has_versions && !entry.versions.is_empty() { " " span class="faint" { (words::line(&entry.versions.join(", "), 200)) } }
                }
            }
        }
        @for changes in changes { (write_schema(changes)) }
    }
}

fn choose_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal | Verdict::Widening => "passed",
        Verdict::Narrowing | Verdict::Incomparable | Verdict::DataLoss => "error",
        Verdict::Undecided => "warning",
    }
}

/// `2 errors, 1 warning`
fn tally_findings(counts: &BTreeMap<Severity, usize>) -> String {
    counts.iter().map(|(severity, count)| count_findings(*count, *severity)).collect::<Vec<_>>().join(", ")
}

/// The tree of one CRD.
struct SchemaTree<'s> {
    root: TreeNode<'s>,
    /// Findings that are not about a schema node.
    of_crd: TreeNode<'s>,
    counts: BTreeMap<Severity, usize>,
    findings: usize,
    left_out: usize,
    /// Whether the findings are about several versions.
    has_versions: bool,
}

/// A schema node.
#[derive(Default)]
struct TreeNode<'s> {
    children: BTreeMap<&'s str, TreeNode<'s>>,
    entries: Vec<TreeEntry<'s>>,
    /// The findings of the node and of those below it.
    counts: BTreeMap<Severity, usize>,
    /// The number of the last one that was counted. Those of one cause follow each other.
    last_counted: Option<usize>,
}

/// A finding about a node, in some versions.
struct TreeEntry<'s> {
    shown: &'s ShownFinding<'s>,
    finding: &'s Finding,
    versions: Vec<&'s str>,
}

impl<'s> SchemaTree<'s> {
    fn new(object: &'s ShownObject<'s>) -> Self {
        let mut tree = SchemaTree {
            root: TreeNode::default(),
            of_crd: TreeNode::default(),
            counts: BTreeMap::new(),
            findings: 0,
            left_out: object.findings.iter().filter(|finding| !finding.is_full).count(),
            has_versions: false,
        };
        let mut first_version = None;
        for shown in object.findings.iter().filter(|finding| finding.is_full) {
            tree.findings += 1;
            *tree.counts.entry(shown.cause.severity()).or_default() += 1;
            for finding in shown.cause.findings() {
                let version = finding.body.version.as_deref();
                tree.has_versions |= *first_version.get_or_insert(version) != version;
                tree.node_of(finding.body.path.as_deref(), shown).add(shown, finding, version);
            }
        }
        tree
    }

    /// The node of a path; counts the finding on the way.
    fn node_of(&mut self, path: Option<&'s str>, shown: &ShownFinding<'_>) -> &mut TreeNode<'s> {
        let Some(below) = path.and_then(|path| path.strip_prefix('^')) else { return &mut self.of_crd };
        let severity = shown.cause.severity();
        let mut node = &mut self.root;
        for name in split_path(below) {
            node = node.children.entry(name).or_default();
            if node.last_counted.replace(shown.number) != Some(shown.number) {
                *node.counts.entry(severity).or_default() += 1;
            }
        }
        if below.is_empty() { node.children.entry("^").or_default() } else { node }
    }

    /// Whether there is anything that a list does not show as well.
    fn has_nodes(&self) -> bool {
        !self.root.children.is_empty()
    }
}

impl<'s> TreeNode<'s> {
    fn add(&mut self, shown: &'s ShownFinding<'s>, finding: &'s Finding, version: Option<&'s str>) {
        match self.entries.iter_mut().rev().find(|entry| entry.shown.number == shown.number) {
            Some(entry) => entry.versions.extend(version),
            None => self.entries.push(TreeEntry { shown, finding, versions: version.into_iter().collect() }),
        }
    }

    /// The worst that is proven of the node.
    fn verdict(&self) -> Option<Verdict> {
        let of = |verdict: &Verdict| match verdict {
            Verdict::DataLoss => 5,
            Verdict::Incomparable => 4,
            Verdict::Narrowing => 3,
            Verdict::Undecided => 2,
            Verdict::Widening => 1,
            Verdict::Equal => 0,
        };
        self.entries.iter().filter_map(|entry| entry.finding.body.verdict).max_by_key(of)
    }

    /// The children. Nodes without findings and with one child are one line: `spec.template.spec`.
    fn merged_children(&self) -> impl Iterator<Item = (String, &TreeNode<'s>)> {
        self.children.iter().map(|(name, child)| {
            let (mut name, mut node) = ((*name).to_owned(), child);
            while let (true, [(below, child)]) =
                (node.entries.is_empty(), &node.children.iter().collect::<Vec<_>>()[..])
            {
                if !below.starts_with('[') {
                    name.push('.');
                }
                name.push_str(below);
                node = child;
            }
            (name, node)
        })
    }
}

/// The steps of a path without its `^`: `.spec.list[*].x` has `spec`, `list`, `[*]` and `x`.
fn split_path(path: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() && steps.len() < DEEPEST {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = match rest.strip_prefix('[') {
            Some(inner) => inner.find(']').map_or(rest.len(), |at| at + 2),
            None => rest.find(['.', '[']).unwrap_or(rest.len()),
        };
        let (step, behind) = rest.split_at(end);
        steps.push(step);
        rest = behind;
    }
    if !rest.is_empty() {
        steps.push(rest);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_at_fields_and_items() {
        assert_eq!(split_path(".spec.list[*].x"), ["spec", "list", "[*]", "x"]);
        assert_eq!(
            split_path(".spec.allOf[0].patternProperties[^a.b].c"),
            ["spec", "allOf", "[0]", "patternProperties", "[^a.b]", "c"]
        );
        assert_eq!(split_path(""), Vec::<&str>::new());
        assert_eq!(split_path("[open"), ["[open"]);
        let deep = ".a".repeat(100_000);
        let steps = split_path(&deep);
        assert_eq!((steps.len(), steps[DEEPEST].len()), (DEEPEST + 1, 2 * (100_000 - DEEPEST)));
    }
}

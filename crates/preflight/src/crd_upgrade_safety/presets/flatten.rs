//! A schema as a flat table of nodes by path, as crdify and kapp see it.

use std::collections::BTreeMap;

use crate::crd_upgrade_safety::json::{Json, JsonMap};
use gantry_core::crd::steps;
use gantry_core::resource::Step;
use gantry_schema::keywords;

/// How a tool names the children of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// crdify: `.items`, `.anyOf[0]`, `.additionalProperties`. Every node has its own path.
    Crdify,
    /// kapp: `[*]` for items and values of maps. An alternative (`anyOf`, …) has the path of the node that it belongs
    /// to. If several nodes have the same path, the last one visited is used.
    Kapp,
}

/// One step down a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlattenStep<'n> {
    /// `items`, `not`, `additionalProperties`, …
    Keyword(&'static str),
    /// An item of `allOf`, `anyOf`, `oneOf` or `items`.
    Item(&'static str, usize),
    /// An entry of `properties`, `patternProperties`, `definitions` or `dependencies`.
    Entry(&'static str, &'n str),
}

/// A node of a schema and the steps to it.
#[derive(Debug, Clone)]
pub struct FlatNode<'n, 'a> {
    pub schema: &'n JsonMap<'a>,
    way: Vec<FlattenStep<'n>>,
}

/// The nodes by their path.
pub type Flat<'n, 'a> = BTreeMap<String, FlatNode<'n, 'a>>;

/// Flattens the schema of one version.
pub fn flatten<'n, 'a>(root: &'n JsonMap<'a>, naming: Naming) -> Flat<'n, 'a> {
    let mut flattening = Flattening { naming, path: "^".to_owned(), way: Vec::new(), flat: BTreeMap::new() };
    flattening.node(root);
    flattening.flat
}

impl FlatNode<'_, '_> {
    /// The steps from the root of a CRD to this node, if this is the schema of the version at `index`.
    pub fn steps(&self, index: usize) -> Vec<Step> {
        let mut steps = steps::schema(index);
        for down in &self.way {
            match *down {
                FlattenStep::Keyword(keyword) => steps.push(keyword.into()),
                FlattenStep::Item(keyword, at) => steps.extend([keyword.into(), at.into()]),
                FlattenStep::Entry(keyword, name) => steps.extend([keyword.into(), name.into()]),
            }
        }
        steps
    }
}

struct Flattening<'n, 'a> {
    naming: Naming,
    path: String,
    way: Vec<FlattenStep<'n>>,
    flat: Flat<'n, 'a>,
}

impl<'n, 'a> Flattening<'n, 'a> {
    /// The order is that of the tools: it decides which of several nodes with one path is kept.
    fn node(&mut self, schema: &'n JsonMap<'a>) {
        self.flat.insert(self.path.clone(), FlatNode { schema, way: self.way.clone() });
        match keywords::get(schema, "items") {
            Some(Json::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.below(FlattenStep::Item("items", at), item);
                }
            }
            Some(item) => self.below(FlattenStep::Keyword("items"), item),
            None => {}
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let items = keywords::get(schema, keyword).and_then(Json::list).unwrap_or_default();
            for (at, item) in items.iter().enumerate() {
                self.below(FlattenStep::Item(keyword, at), item);
            }
        }
        self.keyword(schema, "not");
        self.entries(schema, "properties");
        self.keyword(schema, "additionalProperties");
        self.entries(schema, "patternProperties");
        self.keyword(schema, "additionalItems");
        self.entries(schema, "definitions");
        self.entries(schema, "dependencies");
    }

    fn keyword(&mut self, schema: &'n JsonMap<'a>, keyword: &'static str) {
        if let Some(child) = keywords::get(schema, keyword) {
            self.below(FlattenStep::Keyword(keyword), child);
        }
    }

    fn entries(&mut self, schema: &'n JsonMap<'a>, keyword: &'static str) {
        if let Some(entries) = keywords::get(schema, keyword).and_then(Json::map) {
            for (name, child) in entries.iter() {
                self.below(FlattenStep::Entry(keyword, name), child);
            }
        }
    }

    /// A value that is not a schema (`additionalProperties: true`) is not a node.
    fn below(&mut self, down: FlattenStep<'n>, child: &'n Json<'a>) {
        let Some(schema) = child.map() else { return };
        let length = self.path.len();
        let name = match self.naming {
            Naming::Crdify => crdify(down),
            Naming::Kapp => kapp(down),
        };
        self.path.push_str(&name);
        self.way.push(down);
        self.node(schema);
        self.way.pop();
        self.path.truncate(length);
    }
}

fn crdify(down: FlattenStep) -> String {
    match down {
        FlattenStep::Keyword(keyword) => format!(".{keyword}"),
        FlattenStep::Item(keyword, at) => format!(".{keyword}[{at}]"),
        FlattenStep::Entry("properties", name) => format!(".{name}"),
        FlattenStep::Entry(keyword, name) => format!(".{keyword}[{name}]"),
    }
}

fn kapp(down: FlattenStep) -> String {
    match down {
        FlattenStep::Keyword("items" | "additionalProperties") => "[*]".to_owned(),
        FlattenStep::Item("items", at) => format!("[{at}]"),
        FlattenStep::Entry("properties", name) => format!(".{name}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{
        "properties": {"list": {"items": {"type": "string"}}, "map": {"additionalProperties": {"not": {"required": ["a"]}}}},
        "anyOf": [{"required": ["list"]}, {"required": ["map"]}],
        "oneOf": [{"properties": {"list": {"maxItems": 3}}}],
        "patternProperties": {"^x": {"additionalProperties": true}}
    }"#;

    fn paths(naming: Naming) -> Vec<String> {
        let json = Json::parse(SCHEMA).unwrap();
        flatten(json.map().unwrap(), naming).into_keys().collect()
    }

    #[test]
    fn crdify_names_every_node() {
        let expected = [
            "^",
            "^.anyOf[0]",
            "^.anyOf[1]",
            "^.list",
            "^.list.items",
            "^.map",
            "^.map.additionalProperties",
            "^.map.additionalProperties.not",
            "^.oneOf[0]",
            "^.oneOf[0].list",
            "^.patternProperties[^x]",
        ];
        assert_eq!(paths(Naming::Crdify), expected);
    }

    #[test]
    fn kapp_merges_alternatives_into_their_node() {
        assert_eq!(paths(Naming::Kapp), ["^", "^.list", "^.list[*]", "^.map", "^.map[*]"]);
        let json = Json::parse(SCHEMA).unwrap();
        let flat = flatten(json.map().unwrap(), Naming::Kapp);
        // The alternative of `oneOf` comes before the property, `patternProperties` after everything.
        assert!(flat["^.list"].schema.get("items").is_some());
        assert!(flat["^"].schema.get("additionalProperties").is_some());
    }

    #[test]
    fn a_node_has_its_path_in_the_crd() {
        let json = Json::parse(SCHEMA).unwrap();
        let flat = flatten(json.map().unwrap(), Naming::Crdify);
        let steps: Vec<Step> = flat["^.oneOf[0].list"].steps(2);
        let below: [Step; 4] = ["oneOf".into(), 0.into(), "properties".into(), "list".into()];
        assert_eq!(steps, [steps::schema(2), below.to_vec()].concat());
    }
}

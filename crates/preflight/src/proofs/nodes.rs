//! Nodes of schemas, by the steps from the root.

use serde_json::Value;

use gantry_schema::Step;

/// A node that both schemas have: the steps to it from the node around it, its name in paths, and itself in each schema.
pub(super) type NodeOfBoth<'s> = (Vec<Step>, &'s str, [&'s Value; 2]);

/// The nodes right below a node that both schemas have.
pub(super) fn nodes_below<'s>(live: &'s Value, desired: &'s Value) -> Vec<NodeOfBoth<'s>> {
    let both = |keyword: &str| {
        live.get(keyword).zip(desired.get(keyword)).filter(|(live, desired)| live.is_object() && desired.is_object())
    };
    let mut found: Vec<NodeOfBoth<'s>> = Vec::new();
    if let Some((Value::Object(known), Value::Object(fields))) = both("properties") {
        let fields = fields.iter().filter_map(|(name, field)| Some((name.as_str(), known.get(name)?, field)));
        found.extend(fields.map(|(name, known, field)| (vec!["properties".into(), name.into()], name, [known, field])));
    }
    for keyword in ["additionalProperties", "items"] {
        found.extend(both(keyword).map(|(known, below)| (vec![keyword.into()], keyword, [known, below])));
    }
    found
}

/// The node at these steps.
pub(super) fn node_at_steps<'s>(schema: &'s Value, steps: &[Step]) -> Option<&'s Value> {
    steps.iter().try_fold(schema, |node, step| match step {
        Step::Key(key) => node.get(key),
        Step::Index(at) => node.get(at),
    })
}

/// The node at these steps, to change it.
pub(super) fn node_mut<'s>(schema: &'s mut Value, steps: &[Step]) -> Option<&'s mut Value> {
    steps.iter().try_fold(schema, |node, step| match step {
        Step::Key(key) => node.get_mut(key),
        Step::Index(at) => node.get_mut(at),
    })
}

//! The scale subresource newly reads a field that can have other values than it accepts.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::wording::wording;
use gantry_core::resource::Step;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let added = desired.scale_paths().without_paths_of(&live.scale_paths());
        if added.is_empty() {
            continue;
        }
        // A schema that cannot be read is an error of its own.
        let Ok(schema) = desired.schema_value() else { continue };
        for (role, node) in added.unbounded(&schema) {
            let path = path(&node);
            let field = path.strip_prefix("^.").unwrap_or("the object itself").to_owned();
            let wanted = match role {
                "labelSelectorPath" => "a string",
                _ => "an integer from 0 to 2147483647",
            };
            let mut at = steps::subresource(desired.index, "scale");
            at.push(role.into());
            let diagnosis = ViolationText {
                message: wording!(
                    "{role} of ",
                    VERSIONS,
                    " newly points to {field}, which can be something else than {wanted}; the server refuses every write \
                     of such an object"
                ),
                help: wording!(
                    "fix such objects first, or bound {field} in ",
                    VERSIONS,
                    " so that every value of it is {wanted}"
                ),
                at,
                node: Some((path, node)),
                ..ViolationText::default()
            }.label("the live CRD does not have this path".to_owned());
            found.push(CrdRuleViolation { version: Some(live.name.to_string()), diagnosis });
        }
    }
    found
}

/// `^.spec.replicas`
fn path(node: &[Step]) -> String {
    let names = node.iter().skip(1).step_by(2).filter_map(|step| match step {
        Step::Key(name) => Some(name.as_str()),
        Step::Index(_) => None,
    });
    std::iter::once("^").chain(names).collect::<Vec<_>>().join(".")
}

//! The scale subresource newly reads a field that can have other values than it accepts.

use crate::crd::{CrdPair, steps};
use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};
use crate::resource::Step;

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ScaleFieldRestricted",
        summary: "the scale subresource refuses values of a field that it newly reads (warning)",
        reports: "A `specReplicasPath`, `statusReplicasPath` or `labelSelectorPath` that is added or changed, if the \
            schema allows values of the field that the subresource does not accept. Replicas must be integers from 0 to \
            2147483647, a label selector must be a string, and everything above them an object; null is refused. A \
            missing field is accepted. Under `preset: documented` this is a warning, because the documentation of kapp \
            and OLM does not mention it.",
        why: "The server checks these fields in every write of an object, and never tolerates an old value: an object \
            with another value can neither be updated nor created again.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas:
                type: integer
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas:
                type: integer
    subresources:
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
",
        },
        what_to_do: "Look for objects with such values and fix them first. If there can be none, a schema that says so \
            (`minimum: 0`, `maximum: 2147483647` or `format: int32`) in an earlier release shows it.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let added = desired.scale_paths().beside(&live.scale_paths());
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
            let diagnosis = Diagnosis {
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
                label: Some("the live CRD does not have this path".to_owned()),
                node: Some((path, node)),
                ..Diagnosis::default()
            };
            found.push(Found { version: Some(live.name.to_string()), diagnosis });
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

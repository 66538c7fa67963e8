//! What is proven to break at a node that no rule reports.
//!
//! Rules look at the keywords that changed, and do not descend below a field that is removed or changes its type. An
//! upgrade can break objects elsewhere: in a field that became the value of a map, or if an unchanged CEL rule sees
//! values of other types. Each such node is attributed to the nearest change above it that affects the nodes below. If
//! there is none, the node becomes a violation of its own, so everything that a proof does not clear is reported.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::compare::RuleViolation;
use super::json::{Json, JsonMap};
use super::node::SchemaNodePlace;
use super::rule::{Judge, UNKNOWN_CHANGE};
use super::rules::{INDIRECT_CHANGE, indirect_change};
use crate::proofs::{ChangePartProof, ChangeProof, VersionProof};
use gantry_core::crd::{CrdPair, CrdVersion, steps};
use gantry_core::finding::{Breaks, Verdict, Witness};
use gantry_core::resource::Step;
use gantry_schema::keywords;

/// Keywords whose change affects the nodes below.
const AFFECT_BELOW: &[&str] = &[
    "additionalProperties",
    "items",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];

/// The proof of each violation, if there is one, and the violations that only proofs show.
pub fn attribute_proofs(
    pair: &CrdPair,
    found: &[RuleViolation],
    proofs: &BTreeMap<String, Arc<VersionProof>>,
) -> (Vec<Option<ChangeProof>>, Vec<(RuleViolation, ChangeProof)>) {
    let mut below: Vec<Vec<ChangeProof>> = vec![Vec::new(); found.len()];
    let mut others = Vec::new();
    for (version, proof) in proofs {
        let of_version = ViolationsByPath::of_version(found, version);
        let place = IndirectPlace::new(pair, version);
        for (path, node) in proof.nodes.iter().filter(|(_, node)| !node.is_harmless()) {
            let here: Vec<&RuleViolation> = of_version.at(path).iter().map(|at| &found[*at]).collect();
            let Some(node) = unclaimed(proof, path, node, &here) else { continue };
            let node = node.as_ref();
            if path == "^.status" && gets_status_subresource(pair, version) {
                continue;
            }
            let nearest = of_version.nearest_above(path, |at| decides_below(&found[at]));
            // The verdict on one keyword does not decide another node.
            let is_covered = |at: &usize| node.verdict != Verdict::Undecided || found[*at].diagnosis.verdict.is_none();
            if nearest.first().is_some_and(is_covered) {
                nearest.into_iter().for_each(|at| below[at].push(node.clone()));
            } else if node.breaks != [Breaks::Behaviour] {
                let causes = causes(of_version.paths_below(path), node, proof);
                others.extend(place.violation(path, causes, node).map(|violation| (violation, node.clone())));
            }
        }
    }
    let proof_of = |(violation, below): (&RuleViolation, &Vec<ChangeProof>)| {
        let proof = proofs.get(violation.version.as_deref()?)?;
        let own = proof_of_violation(proof, violation.path.as_deref()?, violation)?;
        Some(ChangeProof::heaviest(&own, &below.iter().collect::<Vec<_>>()))
    };
    (found.iter().zip(&below).map(proof_of).collect(), others)
}

/// The violations of one version by the paths of their nodes: a CRD can have tens of thousands.
struct ViolationsByPath<'f>(BTreeMap<&'f str, Vec<usize>>);

impl<'f> ViolationsByPath<'f> {
    fn of_version(found: &'f [RuleViolation], version: &str) -> Self {
        let mut by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let of_version =
            found.iter().enumerate().filter(|(_, violation)| violation.version.as_deref() == Some(version));
        for (at, violation) in of_version {
            if let Some(path) = violation.path.as_deref() {
                by_path.entry(path).or_default().push(at);
            }
        }
        Self(by_path)
    }

    /// The violations of this node.
    fn at(&self, path: &str) -> &[usize] {
        self.0.get(path).map_or(&[], Vec::as_slice)
    }

    /// The violations that `decides` selects of the nearest node above that has any.
    fn nearest_above(&self, path: &str, decides: impl Fn(usize) -> bool) -> Vec<usize> {
        let above = path.rmatch_indices('.').map(|(end, _)| &path[..end]);
        let selected =
            |above: &str| -> Vec<usize> { self.at(above).iter().copied().filter(|at| decides(*at)).collect() };
        above.map(selected).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The paths of the violations below this node.
    fn paths_below(&self, path: &str) -> impl Iterator<Item = &'f str> {
        let start = format!("{path}.");
        let from = self.0.range::<str, _>((Bound::Included(&*start), Bound::Unbounded));
        let below: Vec<&str> = from.map(|(path, _)| *path).take_while(|path| path.starts_with(&start)).collect();
        below.into_iter()
    }
}

/// The proof about what a violation at a node reports: about its own keywords, or if it reports no keyword, or is the
/// only one that is reported of the node, about the whole node.
fn proof_of_violation(proof: &VersionProof, path: &str, violation: &RuleViolation) -> Option<ChangeProof> {
    match reports_whole_node(violation) {
        true => proof.of_node(path).cloned(),
        false => proof.of_change(path, &|keyword| is_claimed(violation, keyword)),
    }
}

fn reports_whole_node(violation: &RuleViolation) -> bool {
    violation.rule.hides_others || violation.rule.claims.is_empty() || violation.rule.doc.name == UNKNOWN_CHANGE
}

fn is_claimed(violation: &RuleViolation, keyword: &str) -> bool {
    violation.rule.claims.iter().any(|claim| claim.keyword == keyword)
}

/// What breaks at a node and is reported by none of the violations there; `None` if that is nothing.
fn unclaimed<'p>(
    proof: &'p VersionProof,
    path: &str,
    node: &'p ChangeProof,
    here: &[&RuleViolation],
) -> Option<Cow<'p, ChangeProof>> {
    // The verdict on one keyword does not decide what is undecided for another reason.
    let decides = |violation: &RuleViolation, proof: &ChangeProof| {
        proof.verdict != Verdict::Undecided || violation.diagnosis.verdict.is_none()
    };
    let Some(parts) = proof.parts.get(path).filter(|_| proof.is_complete && !here.is_empty()) else {
        let is_reported = here.iter().any(|violation| decides(violation, node));
        return (!is_reported).then_some(Cow::Borrowed(node));
    };
    let is_reported = |part: &&ChangePartProof| {
        let reports = |violation: &&RuleViolation| {
            reports_whole_node(violation) || part.is_of(&|keyword| is_claimed(violation, keyword))
        };
        part.proof.is_harmless() || here.iter().any(|violation| reports(violation) && decides(violation, &part.proof))
    };
    let left: Vec<&ChangeProof> = parts.iter().filter(|part| !is_reported(part)).map(|part| &part.proof).collect();
    let (first, rest) = left.split_first()?;
    Some(Cow::Owned(ChangeProof::heaviest(first, rest)))
}

/// Whether the version gets the status subresource, which `StatusSubresourceAdded` reports.
fn gets_status_subresource(pair: &CrdPair, version: &str) -> bool {
    let mut of_name = pair.common_versions().filter(|(live, _)| &*live.name == version);
    of_name.any(|(live, desired)| !live.status_subresource && desired.status_subresource)
}

fn decides_below(violation: &RuleViolation) -> bool {
    let rule = violation.rule;
    rule.hides_others
        || matches!(rule.judge, Judge::Removed(_) | Judge::Added(_))
        || rule.claims.iter().any(|claim| AFFECT_BELOW.contains(&claim.keyword))
}

/// The changes below a node that can be the cause: those that the same object proves to break, or if there are none,
/// all.
fn causes<'p>(below: impl Iterator<Item = &'p str>, node: &ChangeProof, proof: &VersionProof) -> Vec<String> {
    let below: BTreeSet<&str> = below.collect();
    let has_witness_of = |path: &&str| {
        let known = proof.of_node(path).map_or(&[][..], |known| &known.witnesses);
        let is_same = |a: &Witness, b: &Witness| a.object == b.object && a.old_object == b.old_object;
        node.witnesses.iter().any(|witness| known.iter().any(|known| is_same(known, witness)))
    };
    let proven: Vec<&str> = below.iter().copied().filter(has_witness_of).collect();
    let causes = if proven.is_empty() { below.into_iter().collect() } else { proven };
    causes.into_iter().map(str::to_owned).collect()
}

/// Makes violations at nodes that only a proof shows to break.
struct IndirectPlace<'c> {
    crd: &'c str,
    desired: Option<&'c CrdVersion>,
    /// The desired schema, parsed when it is first needed.
    schema: OnceCell<Option<Json<'c>>>,
}

impl<'c> IndirectPlace<'c> {
    fn new(pair: &'c CrdPair, version: &str) -> Self {
        let desired = pair.common_versions().find(|(live, _)| &*live.name == version).map(|(_, desired)| desired);
        Self { crd: &pair.desired.name, desired, schema: OnceCell::new() }
    }

    fn violation(&self, path: &str, causes: Vec<String>, proof: &ChangeProof) -> Option<RuleViolation> {
        let desired = self.desired?;
        let schema = self.schema.get_or_init(|| Json::parse(desired.schema().unwrap_or("{}")).ok()).as_ref()?;
        let mut at = steps::schema(desired.index);
        at.extend(schema.map().and_then(|root| steps_to(root, path.strip_prefix('^')?)).unwrap_or_default());
        let place = SchemaNodePlace {
            crd: self.crd.to_owned(),
            version: desired.name.to_string(),
            path: path.to_owned(),
            steps: at,
        };
        let diagnosis = indirect_change::diagnosis(&place, causes, proof.reason.as_deref());
        Some(RuleViolation {
            rule: &INDIRECT_CHANGE,
            version: Some(desired.name.to_string()),
            path: Some(path.to_owned()),
            node: steps::below_schema(&place.steps).unwrap_or_default().to_vec(),
            diagnosis,
        })
    }
}

/// The steps to a node at the rest of a path, such as `.spec.x.items`. Field names can contain dots, so the path is
/// matched against the schema; of several names the shortest comes first.
fn steps_to(schema: &JsonMap, rest: &str) -> Option<Vec<Step>> {
    let Some(rest) = rest.strip_prefix('.') else { return Some(Vec::new()) };
    let after = |name: &str| rest.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('.'));
    let fields = keywords::get(schema, "properties").and_then(Json::map);
    let ends = rest.match_indices('.').map(|(end, _)| end).chain([rest.len()]);
    for (name, rest) in ends.map(|end| rest.split_at(end)) {
        let field = fields.and_then(|fields| fields.get(name)).and_then(Json::map);
        if let Some(deeper) = field.and_then(|field| steps_to(field, rest)) {
            return Some([vec!["properties".into(), name.into()], deeper].concat());
        }
    }
    ["items", "additionalProperties"].into_iter().find_map(|keyword| {
        let below = keywords::get(schema, keyword).and_then(Json::map)?;
        Some([vec![keyword.into()], steps_to(below, after(keyword)?)?].concat())
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::ViolationsByPath;
    use crate::Violation;
    use crate::crd_upgrade_safety::{CrdUpgradeOptions, CrdUpgradeSafety, Preset};
    use gantry_core::crd::builder::{CrdBuilder, fields};
    use gantry_core::finding::{Severity, Verdict};

    /// The violations under `preset: semantic` for a field `x` of `spec`, without `AdditionalPropertiesChange`.
    fn violations(live: &Value, desired: &Value) -> Vec<Violation> {
        let crd = |x: &Value| {
            let crd = CrdBuilder::new("b.c", "A").cluster_scoped();
            crd.version_of_spec("v1", fields(json!({"x": x}))).build().to_string()
        };
        let check =
            CrdUpgradeSafety::new(CrdUpgradeOptions { preset: Preset::Semantic, ..CrdUpgradeOptions::default() });
        let found = check.judge(&crd(live), &crd(desired)).expect("both can be read");
        found.into_iter().filter(|found| found.rule != "AdditionalPropertiesChange").collect()
    }

    fn found(live: &Value, desired: &Value) -> Vec<(String, String, Severity, Option<Verdict>)> {
        let shown = |found: Violation| {
            (found.rule.into_owned(), found.body.path.unwrap_or_default(), found.severity, found.body.verdict)
        };
        violations(live, desired).into_iter().map(shown).collect()
    }

    fn violation(
        rule: &str,
        path: &str,
        severity: Severity,
        verdict: Verdict,
    ) -> (String, String, Severity, Option<Verdict>) {
        (rule.to_owned(), path.to_owned(), severity, Some(verdict))
    }

    #[test]
    fn violations_around_a_node_are_found_without_looking_at_those_of_other_nodes() {
        let fields: Vec<String> = (0..1000).map(|n| format!("^.spec.f{n}")).collect();
        let below = ["^.spec.f7.a", "^.spec.f7.a.items"];
        let paths = ["^.spec"].into_iter().chain(fields.iter().map(String::as_str)).chain(below);
        let known = ViolationsByPath(paths.enumerate().map(|(at, path)| (path, vec![at])).collect());
        let asked = Cell::new(0);
        let nearest = |path: &str, deciding: usize| {
            known.nearest_above(path, |at| {
                asked.set(asked.get() + 1);
                at == deciding
            })
        };
        assert_eq!(nearest("^.spec.f7.a.items.b", 8), [8]);
        assert_eq!(nearest("^.spec.f7.a.items.b", 0), [0]);
        assert_eq!(nearest("^.spec.f7", 8), [] as [usize; 0]);
        assert!(asked.get() < 10, "{} violations", asked.get());
        assert_eq!(known.paths_below("^.spec.f7").collect::<Vec<_>>(), below);
        assert_eq!((known.at("^.spec.f7"), known.at("^.spec.f1000")), (&[8][..], &[][..]));
    }

    #[test]
    fn breakage_below_a_removed_field_is_attributed_to_it() {
        let fields =
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}});
        let map = |entry: Value| json!({"type": "object", "additionalProperties": entry});
        let closed = map(json!({"type": "object", "properties": {"b": {"type": "string", "maxLength": 3}}}));
        let removed = |severity, verdict| violation("NoExistingFieldRemoved", "^.spec.x.a", severity, verdict);
        assert_eq!(found(&fields, &closed), [removed(Severity::Error, Verdict::Narrowing)]);
        let open = map(json!({"type": "object", "properties": {"b": {"type": "string"}}}));
        assert_eq!(found(&fields, &open), [removed(Severity::Info, Verdict::Equal)]);
    }

    #[test]
    fn breakage_below_a_field_with_a_new_type_is_attributed_to_it() {
        let any = |a: Value| json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": a}});
        let fields = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let of_type = |severity, verdict| violation("NoTypeChange", "^.spec.x", severity, verdict);
        let tighter = any(json!({"type": "string", "pattern": "^a$"}));
        assert_eq!(found(&fields, &tighter), [of_type(Severity::Error, Verdict::Narrowing)]);
        assert_eq!(found(&fields, &any(json!({"type": "string"}))), [of_type(Severity::Info, Verdict::Widening)]);
    }

    #[test]
    fn breakage_that_no_rule_reports_is_a_violation_of_its_own() {
        let object = |fields: Value| json!({"type": "object", "maxProperties": 1, "properties": fields});
        let live = object(json!({"a": {"type": "string"}}));
        let filled = object(json!({"a": {"type": "string"}, "b": {"type": "string", "default": "c"}}));
        assert_eq!(
            found(&live, &filled),
            [violation("IndirectChange", "^.spec.x", Severity::Error, Verdict::Narrowing)]
        );
        assert_eq!(found(&live, &object(json!({"a": {"type": "string"}, "b": {"type": "string"}}))), []);
        // A new field whose default breaks nothing is not reported.
        let roomy = |fields: Value| json!({"type": "object", "maxProperties": 2, "properties": fields});
        assert_eq!(
            found(
                &roomy(json!({"a": {"type": "string"}})),
                &roomy(json!({"a": {"type": "string"}, "b": {"type": "string", "default": "c"}}))
            ),
            []
        );
    }

    #[test]
    fn nodes_around_a_change_are_attributed_to_it() {
        let rules = json!([{"rule": "!has(self.b) || string(self.b.c) != 'x'"}]);
        let outer = |c: Value, d: Value| {
            let b = json!({"type": "object", "properties": {"c": c}, "x-kubernetes-validations": [{"rule": "!has(self.c) || string(self.c) != 'x'"}]});
            json!({"type": "object", "properties": {"b": b, "d": d}, "x-kubernetes-validations": rules})
        };
        let (integer, text) = (json!({"type": "integer"}), json!({"type": "string", "maxLength": 4}));
        let short = json!({"type": "string", "maxLength": 2});
        let causes = |live: &Value, desired: &Value| {
            let indirect = violations(live, desired).into_iter().filter(|found| found.rule == "IndirectChange");
            let shown = |found: Violation| {
                (found.body.path.unwrap_or_default(), found.body.caused_by.join(" "), found.body.message)
            };
            indirect.map(shown).collect::<Vec<_>>()
        };
        // What an object proves to break both is the cause, and not every change below the node.
        let found = causes(&outer(integer.clone(), text.clone()), &outer(text.clone(), short));
        let nodes: Vec<(&str, &str)> = found.iter().map(|(path, cause, _)| (path.as_str(), cause.as_str())).collect();
        assert_eq!(nodes, [("^.spec.x", "^.spec.x.b.c"), ("^.spec.x.b", "^.spec.x.b.c")]);
        assert!(found[0].2.contains("that it accepts today, because spec.x.b.c changes ("), "{found:?}");
        // If nothing is proven, every change below the node can be the cause.
        let any = json!({"x-kubernetes-int-or-string": true});
        let found = causes(&outer(integer.clone(), integer), &outer(any.clone(), any));
        let nodes: Vec<(&str, &str)> = found.iter().map(|(path, cause, _)| (path.as_str(), cause.as_str())).collect();
        assert_eq!(nodes, [("^.spec.x", "^.spec.x.b.c ^.spec.x.d"), ("^.spec.x.b", "^.spec.x.b.c")]);
        assert!(found[0].2.contains("because spec.x.b.c and spec.x.d change ("), "{found:?}");
    }

    #[test]
    fn the_verdict_of_a_keyword_says_nothing_about_rules_that_see_another_type() {
        // It is undecided whether the rule holds for the strings that are newly accepted. The verdict on
        // x-kubernetes-int-or-string does not cover that.
        let object = |n: Value| {
            json!({"type": "object", "properties": {"n": n, "m": {"type": "string", "maxLength": 9}},
                "x-kubernetes-validations": [{"rule": "string(self.n).replace('1', self.m).size() < 9"}]})
        };
        let live = object(json!({"type": "integer"}));
        let desired = object(json!({"x-kubernetes-int-or-string": true}));
        let found = found(&live, &desired);
        assert!(found.iter().any(|(.., severity, _)| *severity == Severity::Error), "{found:?}");
    }
}

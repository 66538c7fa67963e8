//! The API server's judgement of a custom resource, without the API server.
//!
//! A structural schema is compiled once; an object then goes through what it would go through there, in the same order:
//! unknown fields are pruned, nulls without a place are dropped, metadata is brought into its fixed form, defaults are
//! filled in, and the result is validated: metadata, the schema's keywords, what a scale subresource reads, embedded
//! resources, uniqueness in lists, and at last CEL rules. On an update, what was invalid before and is unchanged is
//! tolerated as there.
//!
//! ```text
//! compile ─► node                  the schema tree
//! prune, objectmeta                what an object becomes
//! check, listtype, scale, rules    what is wrong with it; correlate says what an update left alone
//! focus                            what of all that is not the same in another schema
//! typed                            what server-side apply cannot read before any of that
//! formats, re2, number             the meaning of single keywords
//! ```
//!
//! Known differences from the server, none of them in the verdict: the order of errors is fixed here and random there; the
//! text for metadata that cannot be decoded, for data that a rule reads though it does not have its format, and for a
//! quantity or version that an optional has lost; the complaint about a generated name, which quotes a random one. What is
//! wrong with labels, annotations or owners of an updated object is reported once here and three times there; of two enums
//! of one value with the same message, both are reported here. Where a rule compares two objects that differ in one field and
//! cannot be read in another, the server reports whichever it comes to first, another one from time to time, and may even
//! refuse one time what it takes the next; here it is the first in the order of the object.
//!
//! Bounds beyond int64 on integers are cut as on amd64 servers. A rule of CEL that the server refuses to compile, or gives
//! up for its cost, is undecided; so are hexadecimal doubles, keys of maps that are no scalars, quantities beyond 10^29
//! and time zones by name. What a sum of quantities approximately is may be off by the last bit beyond 2^53 billionths.
//!
//! Nothing here does I/O. What cannot be decided (a pattern or rule beyond this
//! implementation) is named in [`Outcome::undecided`] and never passes silently.

#![deny(missing_docs)]

mod by_name;
pub mod cel;
mod check;
mod compile;
mod correlate;
pub mod crd;
mod delta;
mod enumeration;
mod error;
mod formats;
mod found;
pub mod golang;
pub mod gotext;
pub mod json;
pub mod keywords;
mod listtype;
pub mod names;
mod node;
mod num;
mod number;
mod objectmeta;
mod path;
mod prune;
pub mod quantity;
pub mod re2;
mod rules;
pub mod same;
mod scale;
mod step;
pub mod tree;
pub mod typed;

use std::sync::Arc;

use serde_json::Value;

pub use compile::CompileError;
pub use error::{FieldError, Kind, RefusedBy, Undecided};
pub use number::as_stored;
pub use prune::{Defaulted, Pruned};
pub use re2::Patterns;
pub use rules::{CompileRules, NoEngine, Rules, Verdict};
pub use same::{Sense, is_left_out, same, same_schema};
pub use scale::Scale;
pub use step::Step;
pub use tree::{Tree, same_value};

use check::Checker;
use correlate::Correlated;
use node::Node;
use objectmeta::Malformed;
use path::Path;
use rules::RuleWalk;

/// Whether `format`, on a schema of type string, accepts `text`; None for a name that the server does not enforce there.
pub fn enforced_format_accepts(format: &str, text: &str) -> Option<bool> {
    formats::Format::of(format, node::Types::One(node::Type::String)).map(|format| format.accepts(text))
}

/// A compiled structural schema of one version of a CRD. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
    status_subresource: bool,
    scale: Option<Arc<Scale>>,
    /// Whether metadata is left alone.
    passes_metadata: bool,
    looks_back: bool,
}

/// What validation says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// In a stable order; the server's own order changes from one answer to the next.
    pub errors: Vec<FieldError>,
    /// Patterns and rules that could not be evaluated. While there are any, an outcome without errors is not a pass.
    pub undecided: Vec<Undecided>,
}

impl Outcome {
    /// Whether the server accepts the object for certain.
    pub fn is_accepted(&self) -> bool {
        self.errors.is_empty() && self.undecided.is_empty()
    }
}

/// Steps of a judgement that has no limit but those of its rules.
const ENDLESS: u64 = u64::MAX;

/// What the server makes of an object that is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processed {
    /// The fields that are dropped.
    pub pruned: Vec<Pruned>,
    /// The fields that are filled in.
    pub defaulted: Vec<Defaulted>,
    /// What validation says of the result.
    pub outcome: Outcome,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`, taken as that of a custom resource: kind, version and metadata need no mention.
    ///
    /// Its `x-kubernetes-validations` are evaluated by [`cel`]; [`Schema::compile_with`] takes another engine.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Self::compile_sharing(schema, &Patterns::default())
    }

    /// Compiles an `openAPIV3Schema` and, with `rules`, its `x-kubernetes-validations`.
    pub fn compile_with(schema: &Value, rules: &dyn CompileRules) -> Result<Self, CompileError> {
        Self::compile_by(schema, rules, &Patterns::default())
    }

    /// [`Schema::compile`] with patterns that other schemas have, too: each is compiled once, and all of them together
    /// are bounded.
    pub fn compile_sharing(schema: &Value, patterns: &Patterns) -> Result<Self, CompileError> {
        Self::compile_by(schema, &cel::Engine::sharing(patterns), patterns)
    }

    /// [`Schema::compile_sharing`] without `x-kubernetes-validations`, which are taken to hold.
    pub fn compile_structure(schema: &Value, patterns: &Patterns) -> Result<Self, CompileError> {
        Self::compile_by(schema, &rules::NoRules, patterns)
    }

    fn compile_by(schema: &Value, rules: &dyn CompileRules, patterns: &Patterns) -> Result<Self, CompileError> {
        let root = compile::Compiler::new(rules, patterns).root(schema)?;
        let looks_back = delta::looks_back(schema, None);
        Ok(Self { root: Arc::new(root), status_subresource: false, scale: None, passes_metadata: false, looks_back })
    }

    /// Compiles what of `schema` is not the same in `other`: where both say the same nothing is dropped and nothing
    /// refused, and only defaults are filled in. Metadata, which both treat alike, is left alone.
    ///
    /// An object that `other` takes as it is is taken by what this gives exactly if `schema` takes it, and changed
    /// exactly if `schema` changes it.
    pub fn compile_beside(schema: &Value, other: &Value) -> Result<Self, CompileError> {
        let patterns = Patterns::default();
        let mut root = compile::Compiler::new(&cel::Engine::sharing(&patterns), &patterns).root(schema)?;
        delta::narrow(&mut root, schema, other);
        let looks_back = delta::looks_back(schema, Some(other));
        Ok(Self { root: Arc::new(root), status_subresource: false, scale: None, passes_metadata: true, looks_back })
    }

    /// Whether some rule compares an object with what it was before an update.
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// The fields of an object that the schema describes.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.root.properties.keys()
    }

    /// Whether a field of an object can make a difference: for what [`Schema::compile_beside`] gives some cannot, and
    /// need not be there. Of metadata the names have to be there always.
    pub fn looks_at(&self, field: &str) -> bool {
        let in_scale = || self.scale.as_ref().is_some_and(|scale| scale.looks_at(field));
        !self.passes_metadata || delta::looks_at(&self.root, field) || in_scale()
    }

    /// Whether [`Schema::prepare`] certainly leaves the object as it is. Only of what [`Schema::compile_beside`] gives the
    /// answer may be yes: what becomes of metadata is not found out this way.
    pub fn is_settled(&self, object: &Value) -> bool {
        self.passes_metadata && !self.root.has_embedded && delta::is_settled(object, Some(&self.root), false, true)
    }

    /// With a status subresource the status of a written object is not the writer's: a create drops it, an update keeps
    /// the old one.
    pub fn with_status_subresource(self, enabled: bool) -> Self {
        Self { status_subresource: enabled, ..self }
    }

    /// With a scale subresource the fields that it reads have to be of its types.
    pub fn with_scale(self, scale: Scale) -> Self {
        Self { scale: (!scale.is_empty()).then(|| Arc::new(scale)), ..self }
    }

    #[cfg(test)]
    fn root(&self) -> &Node {
        &self.root
    }

    /// Drops the fields that the schema does not describe, and says which.
    pub fn prune(&self, object: &mut Value) -> Vec<Pruned> {
        prune::prune(object, &self.root)
    }

    /// About how many bytes of memory the object takes once defaults are filled in.
    pub fn filled_weight(&self, object: &Value) -> u64 {
        prune::filled_weight(object, &self.root)
    }

    /// Fills in defaults, and says where.
    pub fn default(&self, object: &mut Value) -> Vec<Defaulted> {
        prune::default(object, &self.root)
    }

    /// Pruning, dropping of nulls, metadata in its fixed form: what reading an object at this version makes of one that
    /// is stored in another. Defaults were filled in at the version in which it is stored.
    ///
    /// An error means that the server could not decode the object.
    pub fn fit(&self, object: &mut Value) -> Result<Vec<Pruned>, Box<FieldError>> {
        self.fit_or(object, Malformed::Refused)
    }

    fn fit_or(&self, object: &mut Value, malformed: Malformed) -> Result<Vec<Pruned>, Box<FieldError>> {
        let mut pruned = self.prune(object);
        prune::drop_nulls(object, &self.root);
        pruned.extend(objectmeta::coerce(object, &self.root, !self.passes_metadata, malformed)?);
        pruned.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(pruned)
    }

    /// [`Schema::fit`] and defaulting: an object that is written.
    ///
    /// # Errors
    /// As [`Schema::fit`].
    pub fn prepare(&self, object: &mut Value) -> Result<(Vec<Pruned>, Vec<Defaulted>), Box<FieldError>> {
        let pruned = self.fit(object)?;
        Ok((pruned, self.default(object)))
    }

    /// The same for an object that is read at the version in which it is stored: from storage malformed fields of
    /// metadata are left out, such as the labels of an embedded resource of which one is a number.
    ///
    /// # Errors
    /// The server cannot read the object: it cannot be had, changed or listed.
    pub fn prepare_stored(&self, object: &mut Value) -> Result<(Vec<Pruned>, Vec<Defaulted>), Box<FieldError>> {
        let pruned = self.fit_or(object, Malformed::Dropped)?;
        Ok((pruned, self.default(object)))
    }

    /// [`Schema::prepare`] of what server-side apply makes of an object: a null without a place stays, and is refused,
    /// unless a default takes its place.
    pub fn prepare_applied(&self, object: &mut Value) -> Result<(), Box<FieldError>> {
        self.prune(object);
        objectmeta::coerce(object, &self.root, !self.passes_metadata, Malformed::Refused)?;
        self.default(object);
        Ok(())
    }

    /// Validates a prepared object: a create, or with `old` an update of that (prepared) object.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Outcome {
        self.judge(new, old, true, &mut { ENDLESS })
    }

    /// [`Schema::validate`] that evaluates rules even where the server first wants other errors corrected. An update that
    /// is forgiven those meets the rules, too.
    pub fn validate_all(&self, new: &Value, old: Option<&Value>) -> Outcome {
        self.judge(new, old, false, &mut { ENDLESS })
    }

    fn judge(&self, new: &Value, old: Option<&Value>, rules_wait: bool, steps: &mut u64) -> Outcome {
        let correlated = old.map(|old| Correlated::new(new, old, &self.root));
        let mut errors = if self.passes_metadata { Vec::new() } else { objectmeta::check_root(new, old.is_some()) };
        let mut checker = Checker { steps: *steps, ..Checker::default() };
        errors.extend(checker.value(&self.root, new, &Path::Root, correlated.as_ref()).errors);
        *steps = checker.steps;
        errors.extend(self.scale.iter().flat_map(|scale| scale.check(new)));
        errors.extend(objectmeta::check_embedded(new, &self.root));
        // A list that had duplicates before may keep them, and any other list too.
        if old.is_none_or(|old| listtype::check(old, &self.root).is_empty()) {
            errors.extend(listtype::check(new, &self.root));
        }
        let mut undecided = checker.undecided;
        if self.root.has_rules {
            if rules_wait && errors.iter().any(|error| blocks_rules(error.kind)) {
                errors.push(FieldError {
                    at: Vec::new(),
                    path: "<nil>".to_owned(),
                    by: RefusedBy::RulesNotEvaluated,
                    kind: Kind::Invalid,
                    bad_value: Some(Value::Null),
                    detail:
                        "some validation rules were not checked because the object was invalid; correct the existing \
                             errors to complete validation"
                            .to_owned(),
                });
            } else {
                let mut walk = RuleWalk::new();
                walk.budget = walk.budget.min(*steps);
                let most = walk.budget;
                walk.object(&self.root, new, old, correlated.as_ref());
                *steps -= most - walk.budget;
                errors.extend(walk.errors);
                undecided.extend(walk.undecided);
            }
        }
        Outcome { errors, undecided }
    }

    /// Whether the schema's keywords accept `value` as it is: no metadata of a resource, no defaults, no rules.
    /// None where that is undecided.
    pub fn accepts_value(&self, value: &Value) -> Option<bool> {
        self.accepts_value_within(value, &mut { ENDLESS })
    }

    /// [`Schema::accepts_value`] in `steps` at most, about one for each time that a value is compared with a node. What is
    /// not found out in them is undecided.
    pub fn accepts_value_within(&self, value: &Value, steps: &mut u64) -> Option<bool> {
        let mut checker = Checker { steps: *steps, is_mute: true, ..Checker::default() };
        let found = checker.value(&self.root, value, &Path::Root, None);
        *steps = checker.steps;
        if !found.is_valid() || !listtype::check(value, &self.root).is_empty() {
            return Some(false);
        }
        checker.undecided.is_empty().then_some(true)
    }

    /// Prepares and validates an object that is written; `old` is the object as stored at this version, for an update.
    /// (For one that is stored at another version, [`Schema::fit`] it and call [`Schema::validate`].)
    ///
    /// `object` is left as the server would store it.
    pub fn process(&self, object: &mut Value, old: Option<&Value>) -> Processed {
        self.process_within(object, old, &mut { ENDLESS })
    }

    /// [`Schema::process`] whose judgement takes `steps` at most: about one for each time that a value is compared with a
    /// node, and what rules cost. What is not found out in them is undecided.
    pub fn process_within(&self, object: &mut Value, old: Option<&Value>, steps: &mut u64) -> Processed {
        let undecodable = |error: Box<FieldError>| Processed {
            outcome: Outcome { errors: vec![*error], undecided: Vec::new() },
            ..Processed::default()
        };
        // What is stored is pruned and defaulted when it is read.
        let mut stored = old.cloned();
        if let Some(stored) = &mut stored {
            number::as_stored(stored);
            if let Err(error) = self.prepare_stored(stored) {
                return undecodable(error);
            }
        }
        let (pruned, defaulted) = match self.prepare(object) {
            Ok(prepared) => prepared,
            Err(error) => return undecodable(error),
        };
        if self.status_subresource
            && let Some(map) = object.as_object_mut()
        {
            match stored.as_ref().and_then(|stored| stored.get("status")) {
                Some(status) => map.insert("status".to_owned(), status.clone()),
                None => map.shift_remove("status"),
            };
        }
        let outcome = self.judge(object, stored.as_ref(), true, steps);
        // A null inside of a default is there while the object is judged, and gone once it is stored.
        prune::drop_nulls(object, &self.root);
        Processed { pruned, defaulted, outcome }
    }
}

/// The errors after which the server does not evaluate rules.
fn blocks_rules(kind: Kind) -> bool {
    matches!(kind, Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(spec: Value) -> Schema {
        Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema")
    }

    fn object(spec: Value) -> Value {
        json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec})
    }

    fn errors(processed: &Processed) -> Vec<String> {
        processed.outcome.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_object_is_pruned_then_defaulted_then_judged() {
        let schema = schema(json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "default": "d"}, "n": {"type": "integer"}, "m": {"type": "string", "nullable": true}}}));
        let mut written = object(json!({"a": null, "n": null, "m": null, "list": [{"x": 1}]}));
        let processed = schema.process(&mut written, None);
        assert_eq!(written["spec"], json!({"a": "d", "m": null}));
        let spec = Path::Name(&Path::Root, "spec");
        assert_eq!(processed.pruned, [Pruned::new(&Path::Name(&spec, "list"), json!([{"x": 1}]))]);
        assert_eq!(processed.defaulted, [Defaulted { path: "spec.a".to_owned(), at: vec!["spec".into(), "a".into()] }]);
        assert!(processed.outcome.is_accepted());
    }

    #[test]
    fn unchanged_is_tolerated_but_what_a_changed_parent_requires_is_not() {
        let schema = schema(json!({"type": "object", "required": ["r"], "properties": {
            "s": {"type": "string", "maxLength": 2}, "t": {"type": "string"}, "r": {"type": "string"},
            "l": {"type": "array", "items": {"type": "integer"}}}}));
        let old = object(json!({"s": "long", "l": ["x"]}));
        let after = |spec: Value| errors(&schema.process(&mut object(spec), Some(&old)));
        assert!(after(json!({"s": "long", "l": ["x"]})).is_empty());
        assert_eq!(after(json!({"s": "long", "l": ["x"], "t": "y"})), ["spec.r: Required value"]);
        assert!(after(json!({"s": "long", "l": ["x"], "r": "y"})).is_empty());
        assert_eq!(
            after(json!({"s": "longer", "l": ["x", 1], "r": "y"})),
            [
                "spec.l[0]: Invalid value: \"string\": spec.l[0] in body must be of type integer: \"string\"",
                "spec.s: Too long: may not be more than 2 bytes"
            ]
        );
    }

    #[test]
    fn a_null_in_a_default_counts_and_is_not_kept() {
        let schema = schema(json!({"type": "object", "default": {"x": null}, "required": ["x"],
            "properties": {"x": {"x-kubernetes-preserve-unknown-fields": true}}}));
        let mut written = json!({"metadata": {"name": "x"}});
        assert!(schema.process(&mut written, None).outcome.is_accepted());
        assert_eq!(written["spec"], json!({}));
    }

    #[test]
    fn a_status_subresource_keeps_the_writer_off() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {"status": {"type": "object",
            "properties": {"n": {"type": "integer"}}}}}));
        let schema = schema.expect("a schema").with_status_subresource(true);
        let written = || json!({"metadata": {"name": "x"}, "status": {"n": "x"}});
        let mut created = written();
        assert!(errors(&schema.process(&mut created, None)).is_empty());
        assert_eq!(created.get("status"), None);
        let mut updated = written();
        let old = json!({"metadata": {"name": "x"}, "status": {"n": 1}});
        assert!(errors(&schema.process(&mut updated, Some(&old))).is_empty());
        assert_eq!(updated["status"], json!({"n": 1}));
    }

    #[test]
    fn an_undecided_pattern_is_no_pass() {
        let schema = schema(json!({"type": "string", "pattern": "(?!a)"}));
        let outcome = schema.process(&mut object(json!("b")), None).outcome;
        assert!(outcome.errors.is_empty() && !outcome.is_accepted());
        assert_eq!(
            (outcome.undecided[0].path.as_str(), outcome.undecided[0].rule.as_str()),
            ("spec", "pattern: (?!a)")
        );
    }

    #[test]
    fn an_undecided_branch_decides_only_where_it_does_not_matter() {
        // (?!a) is undecided for any text; ^b$ matches b and ^c$ does not.
        let (open, yes, no) = (json!({"pattern": "(?!a)"}), json!({"pattern": "^b$"}), json!({"pattern": "^c$"}));
        let also_no = json!({"pattern": "(?!a)", "maxLength": 0});
        let accepted = (true, 0);
        let (refused, undecided) = ((false, 0), (true, 1));
        for (combined, wanted) in [
            (json!({"anyOf": [open, no]}), undecided),
            (json!({"anyOf": [open, yes]}), accepted),
            (json!({"anyOf": [also_no, no]}), refused),
            (json!({"oneOf": [open, no]}), undecided),
            (json!({"oneOf": [open, yes]}), undecided),
            (json!({"oneOf": [yes, open, yes]}), refused),
            (json!({"oneOf": [also_no, yes]}), accepted),
            (json!({"not": open}), undecided),
            (json!({"not": also_no}), accepted),
            (json!({"not": yes}), refused),
            (json!({"allOf": [open, no]}), (false, 1)),
            (json!({"anyOf": [{"not": open}, no]}), undecided),
        ] {
            let mut spec = combined.clone();
            spec["type"] = json!("string");
            let outcome = schema(spec).process(&mut object(json!("b")), None).outcome;
            assert_eq!((outcome.errors.is_empty(), outcome.undecided.len()), wanted, "{combined}");
        }
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

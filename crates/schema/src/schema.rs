//! A compiled schema, and the steps of a request that it performs: prune, default, validate.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use super::check::ValueChecker;
use super::compile::{CompileError, Compiler};
use super::correlate::Correlated;
use super::engine::Engine;
use super::error::{FieldError, FieldErrorKind, RefusedBy, Undecided};
use super::node::SchemaNode;
use super::objectmeta::{self, MalformedFieldPolicy};
use super::older_releases;
use super::path::LinkedPath;
use super::prune::{self, Defaulted, PrunedField};
use super::rules::{self, CompileRules, RuleWalk};
use super::scale::ScalePaths;
use super::{delta, listtype, number};
use gantry_k8s_cel::KubernetesRelease;
use gantry_k8s_cel::re2::Patterns;

/// A compiled structural schema of one CRD version. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<SchemaNode>,
    status_subresource: bool,
    scale: Option<Arc<ScalePaths>>,
    /// Whether metadata is neither normalized nor validated.
    ignores_metadata: bool,
    looks_back: bool,
    /// See [`Schema::with_release`].
    release: KubernetesRelease,
    /// See [`Schema::without_ratcheting`].
    skips_ratcheting: bool,
    /// See [`Schema::with_most_missing`].
    most_missing: usize,
}

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ObjectValidationResult {
    /// The errors in a stable order; the server's order varies between responses.
    pub errors: Vec<FieldError>,
    /// Patterns and rules that could not be evaluated. If there are any, an outcome without errors is not a pass.
    pub undecided: Vec<Undecided>,
}

impl ObjectValidationResult {
    /// Whether the server is certain to accept the object.
    pub fn is_accepted(&self) -> bool {
        self.errors.is_empty() && self.undecided.is_empty()
    }
}

/// The step budget of a validation that is limited only by the cost budget of its rules.
const UNLIMITED: u64 = u64::MAX;

/// The server's processing of a written object.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Processed {
    /// The pruned fields.
    pub pruned: Vec<PrunedField>,
    /// The defaulted fields.
    pub defaulted: Vec<Defaulted>,
    /// The result of validating the pruned and defaulted object.
    pub outcome: ObjectValidationResult,
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a custom resource; it does not need to declare `apiVersion`, `kind` and
    /// `metadata`.
    ///
    /// [`gantry_k8s_cel`] evaluates its `x-kubernetes-validations`; use [`Schema::compile_with`] for another engine.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        Self::compile_sharing(schema, &Patterns::default())
    }

    /// Compiles an `openAPIV3Schema`, with `rules` as the engine for its `x-kubernetes-validations`.
    pub fn compile_with(schema: &Value, rules: &dyn CompileRules) -> Result<Self, CompileError> {
        Self::compile_by(schema, rules, &Patterns::default())
    }

    /// [`Schema::compile`] with patterns shared between schemas: each pattern is compiled once, and their total size
    /// is bounded.
    pub fn compile_sharing(schema: &Value, patterns: &Patterns) -> Result<Self, CompileError> {
        Self::compile_by(schema, &Engine::sharing(patterns), patterns)
    }

    /// [`Schema::compile_sharing`] without `x-kubernetes-validations`, which are assumed to hold.
    pub fn compile_structure(schema: &Value, patterns: &Patterns) -> Result<Self, CompileError> {
        Self::compile_by(schema, &rules::NoRules, patterns)
    }

    fn compile_by(schema: &Value, rules: &dyn CompileRules, patterns: &Patterns) -> Result<Self, CompileError> {
        let root = Compiler::new(rules, patterns).root(schema)?;
        let looks_back = delta::looks_back(schema, None);
        Ok(Self::new(root, false, looks_back))
    }

    /// Compiles only the parts of `schema` that differ from `other`. Where both mean the same, nothing is pruned or
    /// rejected, and only defaults are applied. Metadata, which both treat identically, is left alone.
    ///
    /// For any object that `other` accepts unchanged, the result accepts the object exactly if `schema` accepts it,
    /// and changes it exactly if `schema` changes it.
    pub fn compile_beside(schema: &Value, other: &Value) -> Result<Self, CompileError> {
        let patterns = Patterns::default();
        let mut root = Compiler::new(&Engine::sharing(&patterns), &patterns).root(schema)?;
        delta::narrow(&mut root, schema, other);
        let looks_back = delta::looks_back(schema, Some(other));
        Ok(Self::new(root, true, looks_back))
    }

    fn new(root: SchemaNode, ignores_metadata: bool, looks_back: bool) -> Self {
        Self {
            root: Arc::new(root),
            status_subresource: false,
            scale: None,
            ignores_metadata,
            looks_back,
            release: KubernetesRelease::default(),
            skips_ratcheting: false,
            most_missing: usize::MAX,
        }
    }

    /// Whether some rule compares the object with its state before the update.
    pub fn looks_back(&self) -> bool {
        self.looks_back
    }

    /// The top-level fields that the schema declares.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.root.properties.keys()
    }

    /// Whether a top-level field can affect the outcome. After [`Schema::compile_beside`] some fields cannot, and can
    /// be omitted from the object. The names in the metadata must always be present.
    pub fn looks_at(&self, field: &str) -> bool {
        let in_scale = || self.scale.as_ref().is_some_and(|scale| scale.looks_at(field));
        !self.ignores_metadata || delta::looks_at(&self.root, field) || in_scale()
    }

    /// Whether [`Schema::prepare`] is certain to leave the object unchanged. Always false unless the schema was
    /// compiled by [`Schema::compile_beside`], because this does not compute the effect on metadata.
    pub fn is_settled(&self, object: &Value) -> bool {
        self.ignores_metadata && !self.root.has_embedded && delta::is_settled(object, Some(&self.root), false, true)
    }

    /// Sets whether the status subresource is enabled. If it is, the status in a written object is ignored: a create
    /// drops it, and an update keeps the old one.
    pub fn with_status_subresource(self, enabled: bool) -> Self {
        Self { status_subresource: enabled, ..self }
    }

    /// Adds a scale subresource: the fields that it reads must have the types that it requires.
    pub fn with_scale(self, scale: ScalePaths) -> Self {
        Self { scale: (!scale.is_empty()).then(|| Arc::new(scale)), ..self }
    }

    /// Validates as a server of this release does; without this, as the newest known one. The formats that an
    /// older server ignores are removed before the schema is compiled: see [`crate::drop_ignored_formats`].
    pub fn with_release(self, release: KubernetesRelease) -> Self {
        Self { release, ..self }
    }

    /// Validates all of an updated object, also values that did not change. Servers that ratchet objects and not yet
    /// statuses do so when a status is written.
    pub(crate) fn without_ratcheting(self) -> Self {
        Self { skips_ratcheting: true, ..self }
    }

    /// Reports only the first `most` fields, at least one, that are missing in an object: all other errors of the object
    /// and whether it is accepted stay the same. For objects that are built on purpose, and may lack thousands of fields.
    pub fn with_most_missing(self, most: usize) -> Self {
        Self { most_missing: most.max(1), ..self }
    }

    /// See [`Schema::with_release`].
    pub fn release(&self) -> KubernetesRelease {
        self.release
    }

    pub(crate) fn root(&self) -> &SchemaNode {
        &self.root
    }

    /// The number of errors about duplicates in the lists of an object.
    pub(crate) fn count_duplicates(&self, object: &Value) -> usize {
        listtype::check(object, &self.root).len()
    }

    /// Drops the fields that the schema does not describe, and returns them.
    pub fn prune(&self, object: &mut Value) -> Vec<PrunedField> {
        prune::prune(object, &self.root)
    }

    /// The approximate size of the object in memory after defaulting, in bytes.
    pub fn filled_weight(&self, object: &Value) -> u64 {
        prune::filled_weight(object, &self.root)
    }

    /// Applies defaults, and returns the defaulted fields.
    pub fn default(&self, object: &mut Value) -> Vec<Defaulted> {
        prune::default(object, &self.root)
    }

    /// Prunes, drops disallowed nulls and normalizes metadata: what the server does when it reads, at this version, an
    /// object that is stored at another version. Defaults were already applied at the stored version.
    ///
    /// # Errors
    /// The server could not decode the object.
    pub fn fit(&self, object: &mut Value) -> Result<Vec<PrunedField>, Box<FieldError>> {
        self.fit_or(object, MalformedFieldPolicy::Refused).map(|fitted| fitted.pruned)
    }

    /// [`Schema::fit`], which also returns the nulls that it drops, at the end.
    ///
    /// # Errors
    /// As [`Schema::fit`].
    pub fn fit_with_nulls(&self, object: &mut Value) -> Result<Vec<PrunedField>, Box<FieldError>> {
        self.fit_or(object, MalformedFieldPolicy::Refused).map(Fitted::with_nulls)
    }

    fn fit_or(&self, object: &mut Value, malformed: MalformedFieldPolicy) -> Result<Fitted, Box<FieldError>> {
        let mut pruned = self.prune(object);
        let nulls = prune::drop_nulls(object, &self.root);
        pruned.extend(objectmeta::coerce(object, &self.root, !self.ignores_metadata, malformed)?);
        pruned.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Fitted { pruned, nulls })
    }

    /// [`Schema::fit`] followed by defaulting: what the server does with a written object.
    ///
    /// # Errors
    /// As [`Schema::fit`].
    pub fn prepare(&self, object: &mut Value) -> Result<(Vec<PrunedField>, Vec<Defaulted>), Box<FieldError>> {
        let pruned = self.fit(object)?;
        Ok((pruned, self.default(object)))
    }

    /// [`Schema::prepare`] for an object that is read at its stored version. Malformed metadata fields in storage are
    /// left out, such as the labels of an embedded resource if one of them is a number.
    ///
    /// # Errors
    /// The server cannot read the object: get, update and list requests fail.
    pub fn prepare_stored(&self, object: &mut Value) -> Result<(Vec<PrunedField>, Vec<Defaulted>), Box<FieldError>> {
        let fitted = self.fit_or(object, MalformedFieldPolicy::Dropped)?;
        Ok((fitted.pruned, self.default(object)))
    }

    /// [`Schema::prepare_stored`], which also returns the nulls that it drops, at the end of the pruned fields.
    ///
    /// # Errors
    /// As [`Schema::prepare_stored`].
    pub fn prepare_stored_with_nulls(
        &self,
        object: &mut Value,
    ) -> Result<(Vec<PrunedField>, Vec<Defaulted>), Box<FieldError>> {
        let fitted = self.fit_or(object, MalformedFieldPolicy::Dropped)?;
        Ok((fitted.with_nulls(), self.default(object)))
    }

    /// [`Schema::prepare`] for the result of a server-side apply: a disallowed null is kept, and validation rejects
    /// it, unless a default replaces it.
    pub fn prepare_applied(&self, object: &mut Value) -> Result<(), Box<FieldError>> {
        self.prune(object);
        objectmeta::coerce(object, &self.root, !self.ignores_metadata, MalformedFieldPolicy::Refused)?;
        self.default(object);
        Ok(())
    }

    /// Validates a prepared object: a create, or, with `old`, an update of that (prepared) object.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> ObjectValidationResult {
        self.validate_within(new, old, true, &mut { UNLIMITED })
    }

    /// [`Schema::validate`], but evaluates rules even if the server would skip them because of other errors. An update
    /// for which those errors are tolerated is still subject to the rules.
    pub fn validate_all(&self, new: &Value, old: Option<&Value>) -> ObjectValidationResult {
        self.validate_within(new, old, false, &mut { UNLIMITED })
    }

    fn validate_within(
        &self,
        new: &Value,
        old: Option<&Value>,
        errors_block_rules: bool,
        steps: &mut u64,
    ) -> ObjectValidationResult {
        let ratcheted = old.filter(|_| self.release >= older_releases::RATCHETS_OBJECTS && !self.skips_ratcheting);
        let correlated = ratcheted.map(|old| Correlated::new(new, old, &self.root));
        let mut errors = match self.ignores_metadata {
            true => Vec::new(),
            false => objectmeta::check_root(new, old.is_some(), self.release),
        };
        let mut checker =
            ValueChecker { steps: *steps, most_missing: self.most_missing, ..ValueChecker::for_release(self.release) };
        errors.extend(checker.value(&self.root, new, &LinkedPath::Root, correlated.as_ref()).errors);
        *steps = checker.steps;
        errors.extend(self.scale.iter().flat_map(|scale| scale.check(new)));
        errors.extend(objectmeta::check_embedded(new, &self.root, self.release));
        // If the old object had duplicates in any list, no list of the new object is checked.
        if old.is_none_or(|old| listtype::check(old, &self.root).is_empty()) {
            errors.extend(listtype::check(new, &self.root));
        }
        let mut undecided = checker.undecided;
        if self.root.has_rules {
            if errors_block_rules && errors.iter().any(|error| blocks_rules(error.kind, self.release)) {
                errors.push(FieldError {
                    at: Vec::new(),
                    path: "<nil>".to_owned(),
                    by: RefusedBy::RulesNotEvaluated,
                    kind: FieldErrorKind::Invalid,
                    bad_value: Some(Value::Null),
                    detail:
                        "some validation rules were not checked because the object was invalid; correct the existing \
                             errors to complete validation"
                            .into(),
                });
            } else {
                let mut walk = RuleWalk::for_release(self.release);
                walk.budget = walk.budget.min(*steps);
                let most = walk.budget;
                walk.object(&self.root, new, old, correlated.as_ref());
                *steps -= most - walk.budget;
                errors.extend(walk.errors);
                undecided.extend(walk.undecided);
            }
        }
        ObjectValidationResult { errors, undecided }
    }

    /// Whether the schema's keywords accept `value` as it is, without resource metadata, defaults and rules. `None` if
    /// that is undecided.
    pub fn accepts_value(&self, value: &Value) -> Option<bool> {
        self.accepts_value_within(value, &mut { UNLIMITED })
    }

    /// [`Schema::accepts_value`] with a step limit: about one step for each comparison of a value with a node. The
    /// steps taken are subtracted from `steps`. Whatever is not decided within the limit is undecided.
    pub fn accepts_value_within(&self, value: &Value, steps: &mut u64) -> Option<bool> {
        let mut checker = ValueChecker {
            steps: *steps,
            skips_messages: true,
            most_missing: 1,
            ..ValueChecker::for_release(self.release)
        };
        let found = checker.value(&self.root, value, &LinkedPath::Root, None);
        *steps = checker.steps;
        if !found.is_valid() || !listtype::check(value, &self.root).is_empty() {
            return Some(false);
        }
        checker.undecided.is_empty().then_some(true)
    }

    /// Prepares and validates a written object. For an update, `old` is the object as stored at this version. (For an
    /// object that is stored at another version, use [`Schema::fit`] on it and call [`Schema::validate`].)
    ///
    /// Afterwards, `object` is what the server would store.
    pub fn process(&self, object: &mut Value, old: Option<&Value>) -> Processed {
        self.process_within(object, old, &mut { UNLIMITED })
    }

    /// [`Schema::process`] with a step limit for the validation: about one step for each comparison of a value with a
    /// node, plus the cost of rules. The steps taken are subtracted from `steps`. Whatever is not decided within the
    /// limit is undecided.
    pub fn process_within(&self, object: &mut Value, old: Option<&Value>, steps: &mut u64) -> Processed {
        let undecodable = |error: Box<FieldError>| Processed {
            outcome: ObjectValidationResult { errors: vec![*error], undecided: Vec::new() },
            ..Processed::default()
        };
        // The server prunes and defaults a stored object when it reads it.
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
        let outcome = self.validate_within(object, stored.as_ref(), true, steps);
        // A null within a default is visible to validation, but is not stored.
        prune::drop_nulls(object, &self.root);
        Processed { pruned, defaulted, outcome }
    }
}

/// What an object loses at a version.
struct Fitted {
    pruned: Vec<PrunedField>,
    nulls: Vec<PrunedField>,
}

impl Fitted {
    fn with_nulls(mut self) -> Vec<PrunedField> {
        self.pruned.extend(self.nulls);
        self.pruned
    }
}

/// The errors that make a server of this release skip the rules.
fn blocks_rules(kind: FieldErrorKind, release: KubernetesRelease) -> bool {
    match kind {
        FieldErrorKind::NotSupported => release >= older_releases::ENUM_BLOCKS_RULES,
        FieldErrorKind::Required | FieldErrorKind::TooLong | FieldErrorKind::TooMany | FieldErrorKind::TypeInvalid => {
            true
        }
        _ => false,
    }
}

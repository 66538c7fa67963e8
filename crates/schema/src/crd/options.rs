//! The requirements for a CRD. A new CRD must meet all of them; an update can keep most errors that the old CRD has.

use std::collections::BTreeSet;

use gantry_k8s_cel::{CelEnvironment, KubernetesRelease};

use super::model::CrdModel;
use super::{conversion, defaults, schema, structural};
use crate::older_releases;

/// The requirements of a server.
#[derive(Clone, Debug)]
pub struct CrdRequirements<'o> {
    pub release: KubernetesRelease,
    pub require_recognized_review: bool,
    pub require_immutable_names: bool,
    /// Whether every version must have a schema.
    pub require_schema: bool,
    pub require_valid_types: bool,
    pub require_structural: bool,
    pub require_pruned_defaults: bool,
    /// Whether the items of sets must be atomic.
    pub require_atomic_sets: bool,
    /// Whether the keys of list maps must exist in each item.
    pub require_map_keys: bool,
    pub allow_invalid_ca: bool,
    /// The versions whose schema is unchanged by the update.
    unchanged: BTreeSet<&'o str>,
    /// Whether the cost of a single rule is unlimited.
    pub any_rule_cost: bool,
    /// The versions that can keep too many selectable fields; the empty name stands for the fields common to all
    /// versions.
    many_selectable: BTreeSet<&'o str>,
    /// The rules and message expressions that the live CRD has.
    live_rules: BTreeSet<&'o str>,
    live_messages: BTreeSet<&'o str>,
}

impl<'o> CrdRequirements<'o> {
    pub fn of_create(release: KubernetesRelease) -> Self {
        Self {
            release,
            require_recognized_review: true,
            require_immutable_names: false,
            require_schema: true,
            require_valid_types: true,
            require_structural: true,
            require_pruned_defaults: true,
            require_atomic_sets: true,
            require_map_keys: true,
            allow_invalid_ca: true,
            unchanged: BTreeSet::new(),
            any_rule_cost: false,
            many_selectable: BTreeSet::new(),
            live_rules: BTreeSet::new(),
            live_messages: BTreeSet::new(),
        }
    }

    pub fn of_update(new: &'o CrdModel, old: &'o CrdModel, release: KubernetesRelease) -> Self {
        let old_versions = &old.conversion.review_versions;
        let (live_rules, live_messages) = live_expressions(old, release);
        Self {
            release,
            require_recognized_review: old_versions.is_empty() || conversion::has_recognized(old_versions),
            require_immutable_names: old.status.is_established,
            require_schema: all_have_schemas(old),
            require_valid_types: !old.has_schema_with(&mut |schema| !schema::has_valid_type(schema)),
            require_structural: old.schemas().all(|schema| structural::is_structural(schema, release)),
            require_pruned_defaults: !old.schemas().any(|schema| defaults::has_unpruned(schema, release)),
            require_atomic_sets: !old.has_schema_with(&mut |schema| schema::non_atomic_set(schema).is_some()),
            require_map_keys: !old.has_schema_with(&mut |schema| schema::has_bad_map_keys(schema)),
            allow_invalid_ca: release < older_releases::VALID_CA || allows_invalid_ca(old),
            unchanged: match release >= older_releases::ANY_RULE_COST_IF_UNCHANGED {
                true => unchanged(new, old),
                false => BTreeSet::new(),
            },
            any_rule_cost: false,
            many_selectable: match release >= older_releases::MANY_SELECTABLE_IF_UNCHANGED {
                true => many_selectable(new, old),
                false => BTreeSet::new(),
            },
            live_rules,
            live_messages,
        }
    }

    /// The requirements for one version.
    pub fn of_version(&self, version: &str) -> Self {
        let any_rule_cost = self.any_rule_cost || self.unchanged.contains(version);
        Self { any_rule_cost, ..self.clone() }
    }

    /// The environment in which the server compiles a rule.
    pub fn environment_of_rule(&self, rule: &str) -> CelEnvironment {
        self.environment(self.live_rules.contains(rule))
    }

    /// The environment in which the server compiles a message expression.
    pub fn environment_of_message(&self, expression: &str) -> CelEnvironment {
        self.environment(self.live_messages.contains(expression))
    }

    fn environment(&self, is_live: bool) -> CelEnvironment {
        match is_live {
            true => CelEnvironment::of_live_expressions(self.release),
            false => CelEnvironment::of_new_expressions(self.release),
        }
    }

    pub fn may_have_many_selectable(&self, version: &str) -> bool {
        self.many_selectable.contains(version)
    }
}

fn all_have_schemas(crd: &CrdModel) -> bool {
    let has = |validation: &Option<super::model::CrdVersionSchema>| {
        validation.as_ref().is_some_and(|validation| validation.schema.is_some())
    };
    has(&crd.validation) || crd.versions.iter().all(|version| has(&version.validation))
}

fn allows_invalid_ca(old: &CrdModel) -> bool {
    if !old.status.is_established {
        return true;
    }
    let bundle = old.conversion.client.as_ref().map_or("", |client| client.ca_bundle);
    !bundle.is_empty() && conversion::ca_problem(bundle).is_some()
}

fn unchanged<'o>(new: &CrdModel<'o>, old: &CrdModel) -> BTreeSet<&'o str> {
    // Unchanged schemas matter only for the cost of rules, and comparing long schemas is expensive.
    if !new.has_schema_with(&mut |schema| !schema.rules.is_empty()) {
        return BTreeSet::new();
    }
    let names = new.versions.iter().map(|version| version.name);
    let is_unchanged = |name: &&str| match (new.schema_of(name), old.schema_of(name)) {
        (Some(new), Some(old)) => new == old,
        _ => false,
    };
    names.filter(is_unchanged).collect()
}

/// The rules and the message expressions of a live CRD.
fn live_expressions<'o>(old: &'o CrdModel, release: KubernetesRelease) -> (BTreeSet<&'o str>, BTreeSet<&'o str>) {
    let (mut rules, mut messages) = (BTreeSet::new(), BTreeSet::new());
    old.has_schema_with(&mut |schema| {
        for rule in schema.rules.iter() {
            rules.insert(rule.rule);
            if !rule.message_expression.is_empty() {
                // Older servers record the rule instead, by mistake.
                let is_recorded = release >= older_releases::PREEXISTING_MESSAGES;
                messages.insert(if is_recorded { rule.message_expression } else { rule.rule });
            }
        }
        false
    });
    (rules, messages)
}

fn many_selectable<'o>(new: &CrdModel<'o>, old: &CrdModel) -> BTreeSet<&'o str> {
    let mut many = BTreeSet::new();
    if old.selectable.len() > 8 && new.selectable == old.selectable {
        many.insert("");
    }
    for version in &new.versions {
        let before = old.versions.iter().find(|before| before.name == version.name);
        if before.is_some_and(|before| before.selectable.len() > 8 && version.selectable == before.selectable) {
            many.insert(version.name);
        }
    }
    many
}

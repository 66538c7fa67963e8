//! What the API of CustomResourceDefinitions, its validation and server-side apply do differently in older releases.
//!
//! Source: the modules `k8s.io/apiextensions-apiserver`, `k8s.io/apiserver` and
//! `sigs.k8s.io/structured-merge-diff` of each release.

use gantry_k8s_cel::KubernetesRelease;

/// A field of CustomResourceDefinitions that some releases lack.
#[derive(Debug)]
pub struct AddedCrdField {
    /// The name of the field, which only one place of a CRD has.
    pub name: &'static str,
    /// The first release that knows the field.
    pub since: KubernetesRelease,
    /// The first release that keeps the field by default. Before, the server removes it without a word.
    pub enabled: KubernetesRelease,
}

/// A rule of a schema can be evaluated without an old value (gate `CRDValidationRatcheting`).
pub const OPTIONAL_OLD_SELF: AddedCrdField = AddedCrdField {
    name: "optionalOldSelf",
    since: KubernetesRelease::minor(29),
    enabled: KubernetesRelease::minor(30),
};

/// Fields that lists can be filtered by (gate `CustomResourceFieldSelectors`).
pub const SELECTABLE_FIELDS: AddedCrdField = AddedCrdField {
    name: "selectableFields",
    since: KubernetesRelease::minor(30),
    enabled: KubernetesRelease::minor(31),
};

/// The generation that a condition or the whole status is about. It is in the status alone, which deploys do not
/// write.
pub const OBSERVED_GENERATION: AddedCrdField = AddedCrdField {
    name: "observedGeneration",
    since: KubernetesRelease::minor(35),
    enabled: KubernetesRelease::minor(36),
};

/// The first release that does not limit the cost of a single rule in a version whose schema an update does not change.
pub const ANY_RULE_COST_IF_UNCHANGED: KubernetesRelease = KubernetesRelease::minor(29);
/// The first release that validates the CA bundle of a conversion webhook when a CRD is updated.
pub const VALID_CA: KubernetesRelease = KubernetesRelease::minor(31);
/// The first release that recognizes the message expressions that a live CRD has.
pub const PREEXISTING_MESSAGES: KubernetesRelease = KubernetesRelease::minor(31);
/// The first release that tolerates too many selectable fields that an update does not change.
pub const MANY_SELECTABLE_IF_UNCHANGED: KubernetesRelease = KubernetesRelease::minor(35);
/// The first release that accepts `additionalProperties: false` in a nested value validation.
pub const NO_OTHERS_IN_NESTED: KubernetesRelease = KubernetesRelease::minor(31);
/// The first release that keeps `externalDocs` and `example` in structural schemas, so that they are keywords where few
/// are allowed.
pub const STRUCTURAL_DOCUMENTATION: KubernetesRelease = KubernetesRelease::minor(36);
/// The first release that validates a default also as a new value, which matters for `optionalOldSelf`.
pub const DEFAULTS_WITHOUT_OLD: KubernetesRelease = KubernetesRelease::minor(30);

/// The first release that tolerates invalid values that an update of an object leaves unchanged (gate
/// `CRDValidationRatcheting`).
pub const RATCHETS_OBJECTS: KubernetesRelease = KubernetesRelease::minor(30);
/// The first release that does so in an update of the status subresource.
pub const RATCHETS_STATUS: KubernetesRelease = KubernetesRelease::minor(33);

/// The first release that does not evaluate rules beside a value that is not in its `enum`.
pub const ENUM_BLOCKS_RULES: KubernetesRelease = KubernetesRelease::minor(29);
/// The first release in which the `fieldPath` of a failing rule is not also that of the rules after it.
pub const SEPARATE_RULE_PATHS: KubernetesRelease = KubernetesRelease::minor(30);
/// The first release that checks numbers, and the bounds of numbers, against the range of their type and format.
pub const NUMBER_RANGES: KubernetesRelease = KubernetesRelease::minor(36);
/// The first release in which a number slightly below an integer, or a negative one slightly beside one, counts as that
/// integer.
pub const INTEGERS_BELOW: KubernetesRelease = KubernetesRelease::minor(37);

/// The first release whose server-side apply reads live objects with duplicates in lists of type `map` or `set`.
pub const DUPLICATES_IN_LIVE: KubernetesRelease = KubernetesRelease::minor(29);
/// The first release whose server-side apply identifies an item in a list of type `map` without all of its keys.
pub const INCOMPLETE_KEYS: KubernetesRelease = KubernetesRelease::minor(34);

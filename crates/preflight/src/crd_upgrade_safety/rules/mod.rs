//! The rules, one row each: its name, its weight, the keywords that it claims, and the code that evaluates it, which is a
//! file of its own if the row does not say it all. The words of a rule are in `rules/NAME.md`.
//!
//! Rules say what is wrong; [`super::decide`] decides the severity. A rule claims the keyword transitions that it is
//! responsible for, and a change that no rule claims is an unknown change. A rule that reports nothing for a transition
//! that it claims therefore declares it safe.

mod additional_properties_change;
mod any_of_change;
mod conversion_changed;
mod effects;
pub(crate) mod indirect_change;
mod int_or_string_change;
mod kind_changed;
mod list_map_keys_change;
mod list_type_change;
mod map_type_change;
mod name_removed;
mod no_default_added;
mod no_default_changed;
mod no_default_removed;
mod no_enum_added;
mod no_enum_value_removed;
mod no_existing_field_removed;
mod no_required_field_added;
mod no_scope_change;
mod no_stored_version_removed;
mod no_type_change;
mod nullable_change;
mod preserved_field_described;
mod printer_column_removed;
mod pruning_turned_on;
mod scale_field_restricted;
mod scale_path_changed;
mod selectable_field_removed;
pub(crate) mod served_version_loses_fields;
mod served_version_removed;
mod served_versions_differ;
mod status_subresource_added;
mod storage_version_loses_fields;
mod storage_version_moved;
mod subresource_removed;
mod unknown_change;
mod unserved_version_removed;
pub(crate) mod validation_rule_change;
mod version_deprecated;
mod version_unserved;

use super::bounds::{self, KeywordBound, Tighter};
use super::keyword_change;
use super::node::Transition;
use super::rule::Weight::{Forbidden, Unknown};
use super::rule::{Claim, Judge, Rule, Weight};
use crate::rule::rule_doc;
use gantry_core::finding::Severity;

/// A rule that code evaluates.
macro_rules! rule {
    ($name:literal, $weight:expr, [$($claim:expr),* $(,)?], $judge:expr) => {
        rule!($name, $weight, [$($claim),*], $judge, hides_others: false)
    };
    ($name:literal, $weight:expr, [$($claim:expr),* $(,)?], $judge:expr, hides_others: $hides_others:literal) => {
        Rule {
            doc: rule_doc!($name),
            weight: $weight,
            claims: &[$($claim),*],
            hides_others: $hides_others,
            judge: $judge,
        }
    };
}

/// A rule about a bound, with the bound's name in the documented texts.
macro_rules! bound {
    ($name:literal, $keyword:literal, $words:literal, $tighter:ident) => {
        rule!(
            $name,
            Forbidden,
            [Claim::all($keyword)],
            Judge::Node(|pair| bounds::judge(
                pair,
                &KeywordBound { keyword: $keyword, words: $words, tighter: Tighter::$tighter }
            ))
        )
    };
}

/// A rule about a keyword whose transitions always have the same effects.
macro_rules! effects {
    ($name:literal, $effects:ident) => {
        rule!(
            $name,
            Unknown,
            [Claim::all(effects::$effects.keyword)],
            Judge::Node(|pair| keyword_change::judge(pair, &effects::$effects))
        )
    };
}

const fn beyond_documented(semantic: Severity) -> Weight {
    Weight::Beyond { semantic }
}

pub(crate) const INDIRECT_CHANGE: Rule = rule!("IndirectChange", Unknown, [], Judge::Proof);

pub(crate) const SERVED_VERSION_LOSES_FIELDS: Rule = rule!(
    "ServedVersionLosesFields",
    beyond_documented(Severity::Warning),
    [],
    Judge::Crd(served_version_loses_fields::judge)
);

/// Every rule, sorted by name. Violations of one node are reported in this order.
pub static RULES: &[Rule] = &[
    rule!(
        "AdditionalPropertiesChange",
        Unknown,
        [Claim::all("additionalProperties")],
        Judge::Node(additional_properties_change::judge)
    ),
    effects!("AllOfChange", ALL_OF),
    rule!("AnyOfChange", Unknown, [Claim::all("anyOf")], Judge::Node(any_of_change::judge)),
    rule!("CRDInvalid", beyond_documented(Severity::Error), [], Judge::Server),
    rule!("ConversionChanged", beyond_documented(Severity::Warning), [], Judge::Crd(conversion_changed::judge)),
    effects!("EmbeddedResourceChange", EMBEDDED_RESOURCE),
    effects!("ExclusiveMaximumChange", EXCLUSIVE_MAXIMUM),
    effects!("ExclusiveMinimumChange", EXCLUSIVE_MINIMUM),
    effects!("FormatChange", FORMAT),
    INDIRECT_CHANGE,
    rule!(
        "IntOrStringChange",
        Unknown,
        [Claim::all("x-kubernetes-int-or-string")],
        Judge::Node(int_or_string_change::judge)
    ),
    rule!("KindChanged", beyond_documented(Severity::Error), [], Judge::Crd(kind_changed::judge)),
    rule!(
        "ListMapKeysChange",
        Unknown,
        [Claim::all("x-kubernetes-list-map-keys")],
        Judge::Node(list_map_keys_change::judge)
    ),
    rule!("ListTypeChange", Unknown, [Claim::all("x-kubernetes-list-type")], Judge::Node(list_type_change::judge)),
    rule!("MapTypeChange", Unknown, [Claim::all("x-kubernetes-map-type")], Judge::Node(map_type_change::judge)),
    effects!("MultipleOfChange", MULTIPLE_OF),
    rule!("NameRemoved", beyond_documented(Severity::Warning), [], Judge::Crd(name_removed::judge)),
    rule!(
        "NoDefaultAdded",
        Forbidden,
        [Claim::on_transitions("default", &[Transition::Added])],
        Judge::Node(no_default_added::judge)
    ),
    rule!(
        "NoDefaultChanged",
        Forbidden,
        [Claim::on_transitions("default", &[Transition::Changed])],
        Judge::Node(no_default_changed::judge)
    ),
    rule!(
        "NoDefaultRemoved",
        Forbidden,
        [Claim::on_transitions("default", &[Transition::Removed])],
        Judge::Node(no_default_removed::judge)
    ),
    rule!(
        "NoEnumAdded",
        Forbidden,
        [Claim::on_transitions("enum", &[Transition::Added])],
        Judge::Node(no_enum_added::judge)
    ),
    // Removing the whole enum removes no value: the keyword is claimed, and nothing is reported.
    rule!(
        "NoEnumValueRemoved",
        Forbidden,
        [Claim::on_transitions("enum", &[Transition::Changed, Transition::Removed])],
        Judge::Node(no_enum_value_removed::judge)
    ),
    rule!("NoExistingFieldRemoved", Forbidden, [], Judge::Removed(no_existing_field_removed::judge)),
    bound!("NoMaxItemsTightened", "maxItems", "maximum items", Lower),
    bound!("NoMaxLengthTightened", "maxLength", "maximum length", Lower),
    bound!("NoMaxPropertiesTightened", "maxProperties", "maximum properties", Lower),
    bound!("NoMaximumTightened", "maximum", "maximum", Lower),
    bound!("NoMinItemsTightened", "minItems", "minimum items", Higher),
    bound!("NoMinLengthTightened", "minLength", "minimum length", Higher),
    bound!("NoMinPropertiesTightened", "minProperties", "minimum properties", Higher),
    bound!("NoMinimumTightened", "minimum", "minimum", Higher),
    rule!("NoRequiredFieldAdded", Forbidden, [Claim::all("required")], Judge::Node(no_required_field_added::judge)),
    rule!("NoScopeChange", Forbidden, [], Judge::Crd(no_scope_change::judge)),
    rule!("NoStoredVersionRemoved", Forbidden, [], Judge::Crd(no_stored_version_removed::judge)),
    rule!("NoTypeChange", Forbidden, [Claim::all("type")], Judge::Node(no_type_change::judge), hides_others: true),
    effects!("NotChange", NOT),
    rule!("NullableChange", Unknown, [Claim::all("nullable")], Judge::Node(nullable_change::judge)),
    effects!("OneOfChange", ONE_OF),
    effects!("PatternChange", PATTERN),
    effects!("PreserveUnknownFieldsChange", PRESERVE_UNKNOWN_FIELDS),
    rule!("PreservedFieldDescribed", Unknown, [], Judge::Added(preserved_field_described::judge)),
    rule!("PrinterColumnRemoved", beyond_documented(Severity::Info), [], Judge::Crd(printer_column_removed::judge)),
    rule!("PruningTurnedOn", Unknown, [], Judge::Crd(pruning_turned_on::judge)),
    rule!("ScaleFieldRestricted", beyond_documented(Severity::Error), [], Judge::Crd(scale_field_restricted::judge)),
    rule!("ScalePathChanged", beyond_documented(Severity::Error), [], Judge::Crd(scale_path_changed::judge)),
    rule!(
        "SelectableFieldRemoved",
        beyond_documented(Severity::Error),
        [],
        Judge::Crd(selectable_field_removed::judge)
    ),
    SERVED_VERSION_LOSES_FIELDS,
    rule!("ServedVersionRemoved", Forbidden, [], Judge::Crd(served_version_removed::judge)),
    rule!(
        "ServedVersionsDiffer",
        beyond_documented(Severity::Warning),
        [],
        Judge::Versions(served_versions_differ::judge)
    ),
    rule!(
        "StatusSubresourceAdded",
        beyond_documented(Severity::Error),
        [],
        Judge::Crd(status_subresource_added::judge)
    ),
    rule!(
        "StorageVersionLosesFields",
        beyond_documented(Severity::Error),
        [],
        Judge::Crd(storage_version_loses_fields::judge)
    ),
    rule!("StorageVersionMoved", beyond_documented(Severity::Info), [], Judge::Crd(storage_version_moved::judge)),
    rule!("SubresourceRemoved", beyond_documented(Severity::Error), [], Judge::Crd(subresource_removed::judge)),
    rule!(
        "UnknownChange",
        Unknown,
        // Keywords that the API server does not accept in any CRD. A keyword that no rule claims ends here as well.
        [
            Claim::all("$ref"),
            Claim::all("additionalItems"),
            Claim::all("definitions"),
            Claim::all("dependencies"),
            Claim::all("patternProperties"),
            Claim::all("uniqueItems"),
        ],
        Judge::Node(unknown_change::judge)
    ),
    rule!(
        "UnservedVersionRemoved",
        beyond_documented(Severity::Warning),
        [],
        Judge::Crd(unserved_version_removed::judge)
    ),
    rule!(
        "ValidationRuleChange",
        Unknown,
        [Claim::all("x-kubernetes-validations")],
        Judge::Node(validation_rule_change::judge)
    ),
    rule!("VersionDeprecated", beyond_documented(Severity::Info), [], Judge::Crd(version_deprecated::judge)),
    rule!("VersionUnserved", beyond_documented(Severity::Error), [], Judge::Crd(version_unserved::judge)),
];

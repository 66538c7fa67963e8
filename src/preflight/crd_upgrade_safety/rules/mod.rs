//! The rules, one file each: the texts of its page, an example, and the code that evaluates it.
//!
//! Rules say what is wrong; [`super::decide`] decides the severity. A rule claims the keyword transitions that it is
//! responsible for, and a change that no rule claims is an unknown change. A rule that reports nothing for a transition
//! that it claims therefore declares it safe.

mod additional_properties_change;
mod all_of_change;
mod any_of_change;
mod conversion_changed;
mod crd_invalid;
mod embedded_resource_change;
mod exclusive_maximum_change;
mod exclusive_minimum_change;
mod format_change;
pub mod indirect_change;
mod int_or_string_change;
mod kind_changed;
mod list_map_keys_change;
mod list_type_change;
mod map_type_change;
mod multiple_of_change;
mod name_removed;
mod no_default_added;
mod no_default_changed;
mod no_default_removed;
mod no_enum_added;
mod no_enum_value_removed;
mod no_existing_field_removed;
mod no_max_items_tightened;
mod no_max_length_tightened;
mod no_max_properties_tightened;
mod no_maximum_tightened;
mod no_min_items_tightened;
mod no_min_length_tightened;
mod no_min_properties_tightened;
mod no_minimum_tightened;
mod no_required_field_added;
mod no_scope_change;
mod no_stored_version_removed;
mod no_type_change;
mod not_change;
mod nullable_change;
mod one_of_change;
mod pattern_change;
mod preserve_unknown_fields_change;
mod preserved_field_described;
mod printer_column_removed;
mod pruning_turned_on;
mod scale_field_restricted;
mod scale_path_changed;
mod selectable_field_removed;
pub mod served_version_loses_fields;
mod served_version_removed;
mod served_versions_differ;
mod status_subresource_added;
mod storage_version_loses_fields;
mod storage_version_moved;
mod subresource_removed;
mod unknown_change;
mod unserved_version_removed;
mod validation_rule_change;
mod version_deprecated;
mod version_unserved;

use super::rule::Rule;

/// Every rule, sorted by name. Violations of one node are reported in this order.
pub static RULES: &[Rule] = &[
    additional_properties_change::RULE,
    all_of_change::RULE,
    any_of_change::RULE,
    crd_invalid::RULE,
    conversion_changed::RULE,
    embedded_resource_change::RULE,
    exclusive_maximum_change::RULE,
    exclusive_minimum_change::RULE,
    format_change::RULE,
    indirect_change::RULE,
    int_or_string_change::RULE,
    kind_changed::RULE,
    list_map_keys_change::RULE,
    list_type_change::RULE,
    map_type_change::RULE,
    multiple_of_change::RULE,
    name_removed::RULE,
    no_default_added::RULE,
    no_default_changed::RULE,
    no_default_removed::RULE,
    no_enum_added::RULE,
    no_enum_value_removed::RULE,
    no_existing_field_removed::RULE,
    no_max_items_tightened::RULE,
    no_max_length_tightened::RULE,
    no_max_properties_tightened::RULE,
    no_maximum_tightened::RULE,
    no_min_items_tightened::RULE,
    no_min_length_tightened::RULE,
    no_min_properties_tightened::RULE,
    no_minimum_tightened::RULE,
    no_required_field_added::RULE,
    no_scope_change::RULE,
    no_stored_version_removed::RULE,
    no_type_change::RULE,
    not_change::RULE,
    nullable_change::RULE,
    one_of_change::RULE,
    pattern_change::RULE,
    preserve_unknown_fields_change::RULE,
    preserved_field_described::RULE,
    printer_column_removed::RULE,
    pruning_turned_on::RULE,
    scale_field_restricted::RULE,
    scale_path_changed::RULE,
    selectable_field_removed::RULE,
    served_version_loses_fields::RULE,
    served_version_removed::RULE,
    served_versions_differ::RULE,
    status_subresource_added::RULE,
    storage_version_loses_fields::RULE,
    storage_version_moved::RULE,
    subresource_removed::RULE,
    unknown_change::RULE,
    unserved_version_removed::RULE,
    validation_rule_change::RULE,
    version_deprecated::RULE,
    version_unserved::RULE,
];

//! What the estimates of older servers do differently.

use crate::release::KubernetesRelease;

/// The cost model of a release: that of its version of cel-go, and the costs of its Kubernetes libraries.
///
/// Source: `checker/cost.go` of cel-go, and `pkg/cel/library/cost.go` of `k8s.io/apiserver`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostModel {
    /// Whether the sizes of bound variables, of the elements of literals, and of `dyn` values are followed.
    pub follows_values: bool,
    /// Whether selecting an optional field has a cost, and its operand.
    pub optional_fields_cost: bool,
    /// Whether `has` has a cost of its own.
    pub has_costs: bool,
    /// Whether the result of a loop has the size of its range.
    pub loops_have_size: bool,
    /// Whether parsing a quantity costs as much as traversing the string.
    pub quantities_cost: bool,
    /// Whether `matches(text, pattern)` costs as much as `text.matches(pattern)`.
    pub global_matches_costs: bool,
    /// Whether comparing values of the types that Kubernetes adds has a cost of its own, and a URL a size.
    pub types_cost: bool,
}

impl CostModel {
    pub fn of_release(release: KubernetesRelease) -> Self {
        let since = |minor| release >= KubernetesRelease::minor(minor);
        CostModel {
            follows_values: since(33),
            optional_fields_cost: since(29),
            has_costs: !since(29),
            loops_have_size: since(30),
            quantities_cost: since(30),
            types_cost: since(32),
            global_matches_costs: since(37),
        }
    }
}

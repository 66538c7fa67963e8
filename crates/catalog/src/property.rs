//! Properties: the open list of typed values by which a bundle describes itself to OLM.

/// A property of a bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Property {
    /// Its type, such as `olm.gvk`.
    pub kind: String,
    /// Its value, as compact JSON.
    pub value: String,
}

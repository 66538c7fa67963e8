//! What a bundle says of itself to OLM, in an open list.

/// A property of a bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Property {
    /// Its type: `olm.gvk`.
    pub kind: String,
    /// Its value, as compact JSON.
    pub value: String,
}

//! Limits for a single document. Each is far above what real manifests need, and prevents a hostile document from
//! exhausting the memory or the stack.

/// The maximum nesting depth. The deepest of 321 CRDs has 38 levels; every consumer of the result recurses once per
/// level.
pub const MAX_DEPTH: usize = 256;

/// The maximum size of one document in bytes.
pub const MAX_BYTES: usize = 512 << 20;

/// The maximum number of scalars and collections written in one document.
pub(super) const MAX_NODES: usize = 20_000_000;

/// The maximum number of values that aliases and merge keys can add to those that are written: go-yaml's limit.
pub(super) const MAX_EXPANDED_NODES: usize = 400_000;

/// The maximum number of bytes that aliases and merge keys can add.
pub(super) const MAX_EXPANDED_BYTES: usize = 32 << 20;

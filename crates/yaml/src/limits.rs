//! How much one document may ask for. Each limit is far above what real manifests need, and each one keeps a hostile
//! document from taking the machine's memory or the thread's stack.

/// Levels of nesting. The deepest of 321 CRDs looked at has 38; every reader of the result recurses once a level.
pub const MAX_DEPTH: usize = 256;

/// The bytes of one document.
pub const MAX_BYTES: usize = 512 << 20;

/// The scalars and collections that are written in one document.
pub(super) const MAX_NODES: usize = 20_000_000;

/// The values that aliases and merge keys may add to those that are written: go-yaml's own bound.
pub(super) const MAX_EXPANDED_NODES: usize = 400_000;

/// The bytes of text that aliases and merge keys may add.
pub(super) const MAX_EXPANDED_BYTES: usize = 32 << 20;

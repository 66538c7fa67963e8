//! A hash of a list of texts.

use ring::digest::{Context, SHA256};

/// SHA-256 of texts, each with its length, so that different lists of texts never hash the same bytes.
pub struct PartsHash(Context);

impl Default for PartsHash {
    fn default() -> Self {
        PartsHash(Context::new(&SHA256))
    }
}

impl PartsHash {
    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    /// The hash of all texts.
    pub fn finish(self) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(self.0.finish().as_ref());
        hash
    }
}

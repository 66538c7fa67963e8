//! The pages of a list, whichever target they come from.

use super::list::{ListError, Page};
use super::{dir, kube};

/// The pages of one list, in order. Dropping it ends the list; nothing goes on behind.
pub struct Pages(pub(super) Source);

/// Where the pages come from.
pub(super) enum Source {
    Kube(kube::KubePages),
    Dir(dir::DirPages),
}

impl Pages {
    /// The next page, or `None` after the last one. While the caller looks at a page, the one after it is fetched.
    ///
    /// On a cluster each object that exists throughout comes exactly once: either from one snapshot, or, where the
    /// server has dropped the snapshot and offers it, the rest of the list from a newer one.
    ///
    /// May be dropped and called again. After an error other than [`ListError::Expired`] it answers that error for ever.
    pub async fn next(&mut self) -> Result<Option<Page>, ListError> {
        match &mut self.0 {
            Source::Kube(pages) => pages.next().await,
            Source::Dir(pages) => pages.next_page(),
        }
    }

    /// Shows every object, as JSON, to `look` and answers what that has gathered. A list that expires starts again, and so
    /// does what is gathered.
    pub async fn gather<T: Default>(&mut self, look: impl Fn(&mut T, &str)) -> Result<T, ListError> {
        let mut gathered = T::default();
        loop {
            match self.next().await {
                Ok(Some(page)) => page.items().for_each(|object| look(&mut gathered, object)),
                Ok(None) => return Ok(gathered),
                Err(ListError::Expired) => gathered = T::default(),
                Err(error) => return Err(error),
            }
        }
    }
}

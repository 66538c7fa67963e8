//! The pages of a list, whichever target they come from.

use super::list::{ListError, ListPage};
use super::{dir, kube};

/// The pages of one list, in order. Dropping it ends the list; nothing continues in the background.
pub struct Pages(pub(super) PageSource);

/// Where the pages come from.
pub(super) enum PageSource {
    Kube(kube::KubePages),
    Dir(dir::DirPages),
}

impl Pages {
    /// The next page, or `None` after the last one. The following page is fetched while the caller processes this one.
    ///
    /// On a cluster, each object that exists throughout is returned exactly once: either all from one snapshot or, if
    /// the server has dropped the snapshot and offers to continue, the rest of the list from a newer one.
    ///
    /// The future can be dropped and `next` called again. After an error other than [`ListError::Expired`], every call
    /// returns that error.
    pub async fn next(&mut self) -> Result<Option<ListPage>, ListError> {
        match &mut self.0 {
            PageSource::Kube(pages) => pages.next().await,
            PageSource::Dir(pages) => pages.next_page(),
        }
    }

    /// Passes every object, as JSON, to `look` and returns what it has gathered. If the list expires, both start over.
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

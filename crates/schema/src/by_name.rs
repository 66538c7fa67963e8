//! A map from field names to schemas, stored as a sorted slice.

use std::cmp::Ordering;
use std::ops::Deref;

/// A map sorted by name, without spare capacity. A `BTreeMap` node has room for eleven entries, and most objects have
/// only about three fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ByName<N, T>(Box<[(N, T)]>);

impl<N: Deref<Target = str>, T> ByName<N, T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        let at = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, item)| (&**name, item))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        self.0.iter_mut().map(|(name, item)| (&**name, item))
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, item)| item)
    }
}

impl<N, T> Default for ByName<N, T> {
    fn default() -> Self {
        ByName(Box::default())
    }
}

impl<N, T> IntoIterator for ByName<N, T> {
    type Item = (N, T);
    type IntoIter = std::vec::IntoIter<(N, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Names must be unique.
impl<N: Deref<Target = str>, T> FromIterator<(N, T)> for ByName<N, T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(items: I) -> Self {
        let mut items: Vec<(N, T)> = items.into_iter().collect();
        items.sort_by(in_order);
        ByName(items.into_boxed_slice())
    }
}

fn in_order<N: Deref<Target = str>, T>((one, _): &(N, T), (other, _): &(N, T)) -> Ordering {
    one.deref().cmp(other.deref())
}

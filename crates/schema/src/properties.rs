//! The fields that a schema node describes, by name.

use super::node::Node;

/// Sorted by name and as long as it has to be: a tree of the standard library has room for eleven nodes wherever there is one,
/// and most objects have three fields.
#[derive(Debug, Default)]
pub struct Properties(Box<[(Box<str>, Node)]>);

impl Properties {
    pub fn get(&self, name: &str) -> Option<&Node> {
        let at = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(name, node)| (&**name, node))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.0.iter_mut().map(|(name, node)| (&**name, node))
    }

    pub fn into_iter(self) -> impl Iterator<Item = (Box<str>, Node)> {
        self.0.into_iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    pub fn values(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().map(|(_, node)| node)
    }
}

/// Each name comes once.
impl FromIterator<(Box<str>, Node)> for Properties {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Node)>>(nodes: I) -> Self {
        let mut nodes: Vec<(Box<str>, Node)> = nodes.into_iter().collect();
        nodes.sort_by(|(one, _), (other, _)| one.cmp(other));
        Properties(nodes.into_boxed_slice())
    }
}

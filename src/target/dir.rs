//! A folder of manifests that stands in for a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Apply, ApplyError, Gvk, Wanted};
use crate::problem::Result;
use crate::resource::{Live, Resource};

pub struct DirTarget {}

impl DirTarget {
    pub fn open(_path: &Path) -> Result<Self> {
        todo!()
    }
    pub fn describe(&self) -> String {
        todo!()
    }
    pub fn discover(&self, _kinds: &BTreeSet<Gvk>) -> BTreeMap<Gvk, Resource> {
        todo!()
    }
    pub fn read(&self, _wanted: &[Wanted]) -> Vec<Option<Live>> {
        todo!()
    }
    pub fn apply(&self, _apply: &Apply<'_>) -> std::result::Result<Live, ApplyError> {
        todo!()
    }
}

//! A cluster, through its API server.

use std::collections::{BTreeMap, BTreeSet};

use super::{Apply, ApplyError, Connection, Established, Gvk, OnRead, Wanted};
use crate::problem::Result;
use crate::resource::{Live, ObjectRef, Resource};

pub struct KubeTarget {}

impl KubeTarget {
    pub async fn open(_connection: &Connection) -> Result<Self> {
        todo!()
    }
    pub fn describe(&self) -> String {
        todo!()
    }
    pub fn default_namespace(&self) -> &str {
        todo!()
    }
    pub async fn discover(&self, _kinds: &BTreeSet<Gvk>) -> Result<BTreeMap<Gvk, Resource>> {
        todo!()
    }
    pub async fn read(&self, _wanted: &[Wanted], _on_read: OnRead<'_>) -> Result<Vec<Option<Live>>> {
        todo!()
    }
    pub async fn apply(&self, _apply: &Apply<'_>) -> std::result::Result<Live, ApplyError> {
        todo!()
    }
    pub async fn established(&self, _crd: &ObjectRef) -> Result<Established> {
        todo!()
    }
}

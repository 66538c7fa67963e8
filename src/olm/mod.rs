//! The objects of OLM v1: what ClusterCatalogs and ClusterExtensions ask for, and what their status says.

pub mod cluster_catalog;
pub mod cluster_extension;

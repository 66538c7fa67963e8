//! Moves the stored objects of a CRD to its storage version.
//!
//! ```text
//! StoredKind         what the CRD says: the storage version, the versions that objects may still be stored at
//!   └─► prove        what each object becomes: values that are lost, writes that the server refuses
//!         └─► write  each object is written as it is, and then none is left (verified by its resourceVersion)
//!               └─► trim   status.storedVersions
//! ```
//!
//! The API does not show at which version an object is stored. But a write always stores at the storage version, and
//! changes the resourceVersion unless the stored bytes stay the same, and these name the version. So an object is at the
//! storage version if its resourceVersion is higher than that of a list which was read after the storage version moved,
//! or if a write left its resourceVersion unchanged. [`StoredSince`] keeps the resourceVersion of that list in an
//! annotation of the CRD, so that a second run writes only the rest.
//!
//! Source: `GuaranteedUpdate` in `k8s.io/apiserver/pkg/storage/etcd3/store.go`;
//! <https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4192-svm-in-tree>

mod examine;
mod kind;
mod mark;
mod metadata;
mod proof;
mod prove;
mod server_migrator;
mod write;

pub use examine::MigrationLoss;
pub use kind::StoredKind;
pub use mark::StoredSince;
pub use proof::{MigrationProof, ObjectProblem};
pub use prove::MigrationProver;
pub use server_migrator::ServerMigrator;
pub use write::{MigrationEnd, MigrationStop, MigrationWriter};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct MigrationReadme;

//! The semantics of server-side apply: the fields that are written, the fields that are removed because their manager
//! gives them up, and the fields that other managers lose. [`crate::managed_fields`] records the managers of the fields.
//!
//! ```text
//! schema   whether a list or a map is one field or many
//! intent   the part of a manifest that is applied
//! order    the order of a list after an apply
//! apply    the object after an apply
//! beside   what an apply leaves beside the manifest, and may be refused with it
//! lost     the fields of another manager that an apply changes
//! tools    the field managers that are deploy tools
//! handover the fields that are taken over from them
//! strategic the patches of Helm, which are no server-side apply
//! ```
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>, and the behaviour of
//! `sigs.k8s.io/structured-merge-diff` and `k8s.io/kube-openapi/pkg/schemaconv`.

mod apply;
mod beside;
mod handover;
mod intent;
mod lost;
mod order;
mod schema;
pub mod strategic;
mod tools;

pub use apply::{Emptied, ManagerFieldSets, apply, merge, merge_by, merge_owned, of_kind};
pub use beside::Beside;
pub use handover::{Owners, applied_fields, fields_of_manifest, gives_up_fields};
pub use intent::intent;
pub use lost::{Owned, is_at_stake, lost_fields, lost_fields_below, overlaps, path_text};
pub use order::keeps_order;
pub use schema::{MergeSchema, MergeShape};
pub use tools::{UNRECORDED, deploy_tool, listed, of_manager, owns_helm_release};

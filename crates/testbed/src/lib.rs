#![doc = include_str!("../README.md")]
#![cfg(unix)]

mod api;
mod binaries;
mod control_plane;
mod isolated;
mod network;
mod releases;
mod supervisor;
mod wait;

pub use api::{Api, ApiUnreachable};
pub use binaries::{kubectl, pinned, range_oracle};
pub use control_plane::{ControlPlane, SPARE_USERS, kubeconfig, shared};
pub use isolated::{Isolated, isolated};
pub use releases::{module_requiring, releases};
pub use wait::eventually;

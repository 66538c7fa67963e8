//! In which order objects are applied.

use crate::resource::ObjectRef;

pub fn rank(_object: &ObjectRef) -> u8 {
    0
}

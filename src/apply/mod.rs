//! Writing what was checked: in which order objects go to the target.

pub mod order;

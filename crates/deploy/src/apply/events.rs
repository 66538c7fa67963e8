//! What happens while the plan is written, for progress output.

use gantry_core::resource::ObjectRef;

/// An event while the plan is written, for progress output.
#[derive(Debug, Clone, Copy)]
pub enum ApplyEvent<'a> {
    /// The server could not accept an object yet, so it is tried again.
    NotYet(&'a str),
    /// The number of objects that are written, and of all objects to write.
    Applied(usize, usize),
    /// The number of CRDs that are served, and of all awaited CRDs.
    Established(usize, usize),
    /// The state of a wait has changed.
    Ready(Waiting<'a>),
}

/// The progress of a wait.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    /// The index of the step whose wait it is, or the number of steps for the last wait.
    pub step: usize,
    /// The number of objects that are ready, and of all awaited objects.
    pub ready: usize,
    /// All objects that the wait is for.
    pub total: usize,
    /// The objects that are not ready. Only with [`super::ApplyOptions::shows_waits`].
    pub unready: &'a [Unready<'a>],
    /// The names of the objects that are written when these are ready. Only with [`super::ApplyOptions::shows_waits`].
    pub held: &'a [String],
}

/// An object that is awaited and not ready.
#[derive(Debug)]
pub struct Unready<'a> {
    /// Its kind, namespace and name.
    pub object: &'a ObjectRef,
    /// Why it is not ready: its own state, and for a workload the state of its worst Pod.
    pub reason: String,
    /// It will not become ready.
    pub has_failed: bool,
}

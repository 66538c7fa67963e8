//! The position of a value in the schema: `self`, a property, the items of a list.

use std::cell::RefCell;
use std::rc::Rc;

use super::size::Size;
use crate::types::{self, CelType, CelTypeKind};

/// The steps that are not properties.
pub(super) const ITEMS: &str = "@items";
pub(super) const VALUES: &str = "@values";
pub(super) const KEYS: &str = "@keys";
pub(super) const INDICES: &str = "@indices";

/// A path from a variable into the schema, stored like a Go slice.
///
/// The server derives longer paths by appending to slices, and paths that share a backing array can overwrite each
/// other: both `v.a` and `v.b` can end up as `v.b` if the path of `v` had spare capacity. This is probably accidental,
/// but it decides which CRDs are accepted, so it is reproduced here.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedFieldPath<'e> {
    steps: Rc<RefCell<Vec<&'e str>>>,
    length: usize,
    /// The capacity: the number of steps up to which a longer path is not a copy.
    room: usize,
}

impl<'e> SharedFieldPath<'e> {
    pub fn of_variable(name: &'e str) -> Self {
        SharedFieldPath { steps: Rc::new(RefCell::new(vec![name])), length: 1, room: 1 }
    }

    /// This path with an additional step.
    pub fn then(&self, step: &'e str) -> Self {
        if self.length < self.room {
            let mut steps = self.steps.borrow_mut();
            match steps.get_mut(self.length) {
                Some(slot) => *slot = step,
                None => steps.push(step),
            }
            return SharedFieldPath { steps: Rc::clone(&self.steps), length: self.length + 1, room: self.room };
        }
        let mut steps: Vec<&str> = self.steps.borrow()[..self.length].to_vec();
        steps.push(step);
        let room = match self.room {
            0 => 1,
            room if room < 256 => room * 2,
            room => room + (room + 768) / 4,
        };
        SharedFieldPath { steps: Rc::new(RefCell::new(steps)), length: self.length + 1, room }
    }

    /// This path without spare capacity: longer paths are always copies.
    pub fn without_spare_room(&self) -> Self {
        SharedFieldPath { room: self.length, ..self.clone() }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The maximum size that the schema allows for the value.
    pub fn size_in(&self, root: &CelType) -> Option<Size> {
        let steps = self.steps.borrow();
        // The server takes every variable for the validated value.
        let (_, below) = steps[..self.length].split_first()?;
        let end = below.iter().try_fold(TypePosition::Node(root), |at, step| at.step(step))?;
        Some(Size::up_to(match end {
            TypePosition::Node(of) => of.extent.max_elements,
            TypePosition::Key => 0,
        }))
    }
}

enum TypePosition<'t> {
    Node(&'t CelType),
    /// A key of a map, about which nothing is known.
    Key,
}

impl<'t> TypePosition<'t> {
    fn step(self, step: &str) -> Option<TypePosition<'t>> {
        let TypePosition::Node(of) = self else { return None };
        match (&of.kind, step) {
            (CelTypeKind::List { items, .. }, ITEMS | VALUES) => Some(TypePosition::Node(items)),
            (CelTypeKind::Map(values), ITEMS | VALUES) => Some(TypePosition::Node(values)),
            (CelTypeKind::Map(_), KEYS) => Some(TypePosition::Key),
            (CelTypeKind::Object(properties), name) => {
                let unescaped = types::unescape(name)?;
                let property = properties.get(&unescaped).filter(|property| property.is_declared())?;
                (types::escape(&unescaped)? == name).then_some(TypePosition::Node(property))
            }
            _ => None,
        }
    }
}

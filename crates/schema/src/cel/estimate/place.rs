//! The position of a value in the schema: `self`, a property, the items of a list.

use std::cell::RefCell;
use std::rc::Rc;

use super::size::Size;
use crate::cel::types::{self, Kind, Type};

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
pub(super) struct Place<'e> {
    steps: Rc<RefCell<Vec<&'e str>>>,
    length: usize,
    /// The capacity: the number of steps up to which a longer path is not a copy.
    room: usize,
}

impl<'e> Place<'e> {
    pub fn of_variable(name: &'e str) -> Self {
        Place { steps: Rc::new(RefCell::new(vec![name])), length: 1, room: 1 }
    }

    /// This path with an additional step.
    pub fn then(&self, step: &'e str) -> Self {
        if self.length < self.room {
            let mut steps = self.steps.borrow_mut();
            match steps.get_mut(self.length) {
                Some(slot) => *slot = step,
                None => steps.push(step),
            }
            return Place { steps: Rc::clone(&self.steps), length: self.length + 1, room: self.room };
        }
        let mut steps: Vec<&str> = self.steps.borrow()[..self.length].to_vec();
        steps.push(step);
        let room = match self.room {
            0 => 1,
            room if room < 256 => room * 2,
            room => room + (room + 768) / 4,
        };
        Place { steps: Rc::new(RefCell::new(steps)), length: self.length + 1, room }
    }

    /// This path without spare capacity: longer paths are always copies.
    pub fn apart(&self) -> Self {
        Place { room: self.length, ..self.clone() }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The maximum size that the schema allows for the value.
    pub fn size_in(&self, root: &Type) -> Option<Size> {
        let steps = self.steps.borrow();
        // The server takes every variable for the validated value.
        let (_, below) = steps[..self.length].split_first()?;
        let end = below.iter().try_fold(At::Node(root), |at, step| at.step(step))?;
        Some(Size::up_to(match end {
            At::Node(of) => of.extent.max_elements,
            At::Key => 0,
        }))
    }
}

enum At<'t> {
    Node(&'t Type),
    /// A key of a map, about which nothing is known.
    Key,
}

impl<'t> At<'t> {
    fn step(self, step: &str) -> Option<At<'t>> {
        let At::Node(of) = self else { return None };
        match (&of.kind, step) {
            (Kind::List { items, .. }, ITEMS | VALUES) => Some(At::Node(items)),
            (Kind::Map(values), ITEMS | VALUES) => Some(At::Node(values)),
            (Kind::Map(_), KEYS) => Some(At::Key),
            (Kind::Object(properties), name) => {
                let unescaped = types::unescape(name)?;
                let property = properties.get(&unescaped).filter(|property| property.is_declared())?;
                (types::escape(&unescaped)? == name).then_some(At::Node(property))
            }
            _ => None,
        }
    }
}

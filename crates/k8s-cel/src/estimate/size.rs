//! The size of a value, and the saturating arithmetic of estimates.

/// The minimum and maximum number of characters, bytes, elements or entries of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub min: u64,
    pub max: u64,
}

impl Size {
    pub const UNKNOWN: Size = Size { min: 0, max: u64::MAX };
    /// The neutral element of [`Size::or`].
    pub const NOTHING: Size = Size { min: u64::MAX, max: 0 };

    pub fn fixed(size: u64) -> Self {
        Size { min: size, max: size }
    }

    pub fn up_to(max: u64) -> Self {
        Size { min: 0, max }
    }

    pub fn add(self, other: Size) -> Self {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub fn times(self, other: Size) -> Self {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The union of two sizes.
    pub fn or(self, other: Size) -> Self {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// The cost of `count` steps of cost `cost`, rounded up.
pub(super) fn scaled(count: u64, cost: f64) -> u64 {
    // Casts of larger values saturate; the server does the same for these floats.
    let (count, largest) = (count as f64, u64::MAX as f64);
    match count > 0.0 && cost > 0.0 && count > largest / cost {
        true => u64::MAX,
        false => (count * cost).ceil() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_up_and_never_overflow() {
        assert_eq!([scaled(0, 0.1), scaled(1, 0.1), scaled(11, 0.1)], [0, 1, 2]);
        assert_eq!(scaled(u64::MAX, 0.1), 1_844_674_407_370_955_264);
        assert_eq!([scaled(u64::MAX, 1.0), scaled(u64::MAX, 2.0), scaled(7, 0.0)], [u64::MAX, u64::MAX, 0]);
        assert_eq!(Size::UNKNOWN.add(Size::fixed(1)), Size { min: 1, max: u64::MAX });
        assert_eq!(Size::UNKNOWN.times(Size::fixed(3)), Size::UNKNOWN);
        assert_eq!(Size::NOTHING.or(Size::fixed(3)), Size::fixed(3));
    }
}

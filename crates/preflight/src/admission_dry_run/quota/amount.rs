//! Quantities as Kubernetes writes them (`500m`, `1Gi`), with exact addition.

use std::ops::{Add, Sub};

use gantry_k8s_cel::quantity::Quantity;

/// A number of billionths, the precision of Kubernetes quantities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

const ONE: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

impl Amount {
    /// The amount of `number` whole units.
    pub fn of_count(number: usize) -> Self {
        Amount(i128::try_from(number).unwrap_or(i128::MAX / ONE) * ONE)
    }

    /// Parses a quantity; `None` if it is invalid or too large to be added up.
    pub fn parse(text: &str) -> Option<Self> {
        Quantity::parse(text).ok().map(|quantity| Amount(quantity.nanos()))
    }

    /// Formats the amount for messages; bytes in powers of 1024.
    pub fn to_text(self, is_bytes: bool) -> String {
        let Amount(nanos) = self;
        if nanos % ONE != 0 {
            return if nanos % 1_000_000 == 0 { format!("{}m", nanos / 1_000_000) } else { format!("{nanos}n") };
        }
        let whole = nanos / ONE;
        let unit = BINARY.iter().find(|(_, bits)| is_bytes && whole != 0 && whole % (1 << bits) == 0);
        unit.map_or_else(|| whole.to_string(), |(name, bits)| format!("{}{name}", whole >> bits))
    }
}

impl Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Amount;

    fn sub(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_added_and_written() {
        let sum =
            |a: &str, b: &str, is_bytes| (Amount::parse(a).unwrap() + Amount::parse(b).unwrap()).to_text(is_bytes);
        assert_eq!(sum("500m", "0.7", false), "1200m");
        assert_eq!(sum("1", "1e3", false), "1001");
        assert_eq!(sum("512Mi", "0.5Gi", true), "1Gi");
        assert_eq!(sum("1k", "24", true), "1Ki");
        assert_eq!(sum("1E", "1n", false), "1000000000000000000000000001n");
        assert_eq!((Amount::parse("3").unwrap() - Amount::of_count(5)).to_text(false), "-2");
        for text in ["", "x", "1x", "1..2", "1Kii", "--1", "999999999999999999999999999999E", "1e99"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }
}

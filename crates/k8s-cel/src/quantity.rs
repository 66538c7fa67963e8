//! Kubernetes quantities such as `500m` and `1Gi`. Source: `k8s.io/apimachinery/pkg/api/resource`.

/// A quantity, exact to a billionth, which is the precision of Kubernetes quantities.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    /// The mantissa and decimal exponent, if the server stores the quantity as such. Only then can it be an integer.
    small: Option<(i64, i32)>,
}

const NANO: i32 = -9;

/// The reason a text could not be parsed as a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text is not a quantity; the string is the server's message.
    #[error("{0}")]
    None(&'static str),
    /// The number of billionths exceeds what this type supports.
    #[error("the quantity is too large")]
    TooLarge,
}

const FORMAT: QuantityError =
    QuantityError::None("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
const NUMERIC: QuantityError = QuantityError::None("unable to parse numeric part of quantity");
const SUFFIX: QuantityError = QuantityError::None("unable to parse quantity's suffix");

fn power(exponent: i32) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// The base and exponent of a suffix.
fn suffix(text: &str) -> Option<(bool, i32)> {
    Some(match text {
        "Ki" => (true, 10),
        "Mi" => (true, 20),
        "Gi" => (true, 30),
        "Ti" => (true, 40),
        "Pi" => (true, 50),
        "Ei" => (true, 60),
        "n" => (false, -9),
        "u" => (false, -6),
        "m" => (false, -3),
        "" => (false, 0),
        "k" => (false, 3),
        "M" => (false, 6),
        "G" => (false, 9),
        "T" => (false, 12),
        "P" => (false, 15),
        "E" => (false, 18),
        _ => (false, i32::try_from(text.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?).ok()?),
    })
}

impl Quantity {
    /// Parses a quantity as the API server does, including its rounding to a billionth.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if text.is_empty() {
            return Err(FORMAT);
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, mut rest) = unsigned.split_at(digits(unsigned));
        let mut fraction = "";
        if let Some(tail) = rest.strip_prefix('.') {
            (fraction, rest) = tail.split_at(digits(tail));
        }
        let letters = rest.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
        let tail = &rest[letters..];
        let tail = tail.strip_prefix(['+', '-']).unwrap_or(tail);
        if digits(tail) != tail.len() {
            return Err(FORMAT);
        }
        let (binary, exponent) = suffix(rest).ok_or(SUFFIX)?;
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        let whole = whole.trim_start_matches('0');
        let number = match format!("{whole}{fraction}").trim_start_matches('0') {
            "" => 0,
            digits => digits.parse::<i128>().map_err(|_| QuantityError::TooLarge)?,
        };
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let places = i32::try_from(fraction.len()).map_err(|_| QuantityError::TooLarge)?;
        if let Some(small) = small(whole, number, places, binary, exponent) {
            let small = (if sign < 0 { -small.0 } else { small.0 }, small.1);
            let nanos = power(small.1 - NANO).and_then(|power| power.checked_mul(small.0.into()));
            return Ok(Quantity { nanos: nanos.ok_or(QuantityError::TooLarge)?, small: Some(small) });
        }
        // Only the server's fast path accepts a missing number as zero.
        if !has_digits {
            return Err(NUMERIC);
        }
        let scale = if binary { -places } else { exponent - places } - NANO;
        let number = match binary {
            true => number.checked_mul(1i128 << exponent).ok_or(QuantityError::TooLarge)?,
            false => number,
        };
        let mut nanos = if scale >= 0 {
            if number == 0 { Some(0) } else { power(scale).and_then(|power| power.checked_mul(number)) }
        } else {
            // A remainder of less than a billionth is rounded away from zero.
            Some(power(-scale).map_or(i128::from(number > 0), |power| (number + power - 1) / power))
        }
        .ok_or(QuantityError::TooLarge)?;
        if binary {
            nanos = nanos.min(i128::from(i64::MAX) * 1_000_000_000);
        }
        Ok(Quantity { nanos: sign * nanos, small: None })
    }

    /// The quantity of a whole number.
    pub fn from_integer(number: i64) -> Self {
        Quantity { nanos: i128::from(number) * 1_000_000_000, small: Some((number, 0)) }
    }

    /// The number of billionths.
    pub fn nanos(&self) -> i128 {
        self.nanos
    }

    /// `self` plus `sign` times `other`; `None` if the result is larger than supported.
    pub fn plus(&self, other: &Quantity, sign: i64) -> Option<Quantity> {
        let nanos = other.nanos.checked_mul(sign.into()).and_then(|other| self.nanos.checked_add(other))?;
        Some(Quantity { nanos, small: self.small.and_then(|left| sum(left, other.small?, sign)) })
    }

    /// The value as an integer, if the server stores it as one.
    pub fn integer(&self) -> Option<i64> {
        let (value, scale) = self.small?;
        i64::try_from(power(scale)?.checked_mul(value.into())?).ok()
    }

    /// The nearest float, computed as the server does.
    pub fn approximate_float(&self) -> f64 {
        let (base, exponent) = match self.small {
            Some((value, scale)) => (value as f64, scale),
            None => (self.nanos as f64, NANO),
        };
        // The power is parsed from text, because multiplication would not be exact.
        let power: f64 = format!("1e{exponent}").parse().unwrap_or(f64::NAN);
        if exponent == 0 { base } else { base * power }
    }
}

/// The mantissa and exponent, if the server stores the number as such.
fn small(whole: &str, number: i128, places: i32, binary: bool, exponent: i32) -> Option<(i64, i32)> {
    let digits = i32::try_from(whole.len().max(1)).ok()?;
    let value = i64::try_from(number).ok()?;
    if binary {
        let precision = 15 - digits - exponent * 3 / 10 - 1;
        (places == 0 && precision >= 0).then_some(())?;
        return Some((value.checked_mul(1i64.checked_shl(u32::try_from(exponent).ok()?)?)?, 0));
    }
    let scale = exponent - places;
    (18 - (digits + places) >= 0 && scale >= NANO).then_some((value, scale))
}

/// The sum of two small numbers, if it is small as well.
fn sum(left: (i64, i32), right: (i64, i32), sign: i64) -> Option<(i64, i32)> {
    let right = (right.0.checked_mul(sign)?, right.1);
    if right.0 == 0 {
        return Some(left);
    }
    if left.0 == 0 {
        return Some(right);
    }
    let scale = left.1.min(right.1);
    let scaled = |(value, from): (i64, i32)| i64::try_from(power(from - scale)?.checked_mul(value.into())?).ok();
    Some((scaled(left)?.checked_add(scaled(right)?)?, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_read_to_the_billionth_and_no_further() {
        let nanos = |text| Quantity::parse(text).map(|quantity| quantity.nanos());
        assert_eq!(nanos("500m"), Ok(500_000_000));
        assert_eq!(nanos("-1.5Ki"), Ok(-1_536_000_000_000));
        assert_eq!(nanos("1e3"), nanos("1k"));
        assert_eq!(nanos("0.0000000001"), Ok(1), "rounded away from zero");
        assert_eq!(nanos("-0.0000000001"), Ok(-1), "rounded away from zero");
        assert_eq!(nanos("1Kii"), Err(SUFFIX));
        assert_eq!(nanos("1..2"), Err(FORMAT));
        assert_eq!(nanos("1e99"), Err(QuantityError::TooLarge));
    }

    #[test]
    fn only_what_the_server_keeps_small_is_an_integer() {
        let integer = |text| Quantity::parse(text).ok().and_then(|quantity| quantity.integer());
        assert_eq!(integer("2k"), Some(2000));
        assert_eq!(integer("1Ki"), Some(1024));
        assert_eq!(integer("1500m"), None);
        assert_eq!(integer("9223372036854775808"), None);
    }
}

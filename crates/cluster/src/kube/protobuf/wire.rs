//! The wire format of Protocol Buffers, as far as API servers use it.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>

/// The message is broken, or has a field that gantry does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndecodableMessage;

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WireValue<'a> {
    /// `int32`, `int64`, `bool`.
    Varint(u64),
    /// `double`.
    Fixed64(u64),
    /// `string`, `bytes`, or a nested message.
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    pub fn bytes(self) -> Result<&'a [u8], UndecodableMessage> {
        match self {
            WireValue::Bytes(bytes) => Ok(bytes),
            _ => Err(UndecodableMessage),
        }
    }

    pub fn text(self) -> Result<&'a str, UndecodableMessage> {
        std::str::from_utf8(self.bytes()?).map_err(|_| UndecodableMessage)
    }

    pub fn integer(self) -> Result<i64, UndecodableMessage> {
        match self {
            WireValue::Varint(bits) => Ok(bits.cast_signed()),
            _ => Err(UndecodableMessage),
        }
    }

    pub fn double(self) -> Result<f64, UndecodableMessage> {
        match self {
            WireValue::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(UndecodableMessage),
        }
    }
}

/// Reads the fields of a message, each with its number.
#[derive(Debug, Clone, Copy)]
pub struct WireFields<'a>(pub &'a [u8]);

impl<'a> WireFields<'a> {
    fn varint(&mut self) -> Result<u64, UndecodableMessage> {
        let mut value = 0;
        for (index, &byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.0 = &self.0[index + 1..];
                // The tenth byte has room for one bit.
                return if index < 9 || byte <= 1 { Ok(value) } else { Err(UndecodableMessage) };
            }
        }
        Err(UndecodableMessage)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], UndecodableMessage> {
        let length = usize::try_from(length).map_err(|_| UndecodableMessage)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(UndecodableMessage)?;
        self.0 = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u32, WireValue<'a>), UndecodableMessage> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| UndecodableMessage)?;
        let value = match key & 7 {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| UndecodableMessage)?)),
            2 => {
                let length = self.varint()?;
                WireValue::Bytes(self.take(length)?)
            }
            _ => return Err(UndecodableMessage),
        };
        Ok((number, value))
    }
}

/// The head of a field with bytes.
pub struct WireFieldHead<'a> {
    pub number: u32,
    /// The length of the content, of which a part may be missing.
    pub length: u64,
    /// What follows the head.
    pub rest: &'a [u8],
}

/// Reads the head of a field with bytes. Returns `None` if it is not complete.
pub fn read_head(bytes: &[u8]) -> Result<Option<WireFieldHead<'_>>, UndecodableMessage> {
    // A key and a length have at most ten bytes each.
    let has_varint = |bytes: &[u8]| bytes.iter().take(10).any(|byte| *byte < 0x80) || bytes.len() >= 10;
    let mut fields = WireFields(bytes);
    if !has_varint(fields.0) {
        return Ok(None);
    }
    let key = fields.varint()?;
    if !has_varint(fields.0) {
        return Ok(None);
    }
    let length = fields.varint()?;
    let number = u32::try_from(key >> 3).map_err(|_| UndecodableMessage)?;
    if key & 7 == 2 { Ok(Some(WireFieldHead { number, length, rest: fields.0 })) } else { Err(UndecodableMessage) }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u32, WireValue<'a>), UndecodableMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_numbers_and_values() {
        let message = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x99, 0x01, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f];
        let fields: Vec<_> = WireFields(&message).collect::<Result<_, _>>().unwrap();
        assert_eq!(fields[..2], [(1, WireValue::Varint(300)), (2, WireValue::Bytes(b"ab"))]);
        assert_eq!(fields[2].0, 19);
        assert!((fields[2].1.double().unwrap() - 1.5).abs() < f64::EPSILON);
        let minus_one = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(WireFields(&minus_one).next().unwrap().unwrap().1.integer(), Ok(-1));
    }

    #[test]
    fn broken_messages_are_errors() {
        for message in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x12, 3, b'a'],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x99, 0x01, 0],
            &[0x0b],
            &[0x0d, 0, 0, 0, 0],
        ] {
            assert!(WireFields(message).any(|field| field.is_err()), "{message:?}");
        }
    }
}

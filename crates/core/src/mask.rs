//! Removes secret texts from messages, even if they are altered: percent-encoded, escaped, in base64 or hexadecimal, as
//! a list of bytes, truncated, or split over lines.
//!
//! A message is searched as it is, and again after decoding. Each time, the secret texts are searched twice: exactly,
//! and by letters and digits only, so characters in between do not hide them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const HIDDEN: &str = "[hidden]";
/// The minimum number of letters and digits of a piece at the start or the end of a text. A text with fewer is only
/// searched exactly.
const SHORTEST_PIECE: usize = 8;
/// The minimum number of letters and digits of a piece from the middle of a text.
const SHORTEST_MIDDLE: usize = 12;
/// The maximum length of a text, in bytes, whose middle is searched.
const LONGEST: usize = 64 << 10;
/// The maximum number of searches of a message: a text may be encoded several times.
const READINGS: usize = 4;

/// The texts to remove from messages.
#[derive(Debug, Default)]
pub struct Mask {
    exact: BTreeSet<Vec<u8>>,
    /// The lengths of the exact texts in bytes.
    lengths: BTreeSet<usize>,
    /// The letters and digits of each text, and the minimum length of a piece.
    pieces: BTreeMap<Vec<u8>, usize>,
    sequences: Sequences,
}

/// The sequences of [`SHORTEST_PIECE`] letters and digits of the pieces that are searched. Most sequences of a message
/// are not among them, and this costs less than looking them up.
#[derive(Debug, Default)]
struct Sequences {
    /// One bit for each hash; empty until the first sequence is added.
    hashes: Vec<u64>,
}

impl Sequences {
    const BITS: u32 = 18;

    fn add(&mut self, sequence: &[u8]) {
        self.hashes.resize(1 << (Self::BITS - 6), 0);
        let hash = Self::hash(sequence);
        self.hashes[hash >> 6] |= 1 << (hash & 63);
    }

    /// May be true for a sequence that was not added.
    fn may_contain(&self, sequence: &[u8]) -> bool {
        let hash = Self::hash(sequence);
        self.hashes.get(hash >> 6).is_some_and(|hashes| hashes & (1 << (hash & 63)) != 0)
    }

    fn hash(sequence: &[u8]) -> usize {
        let first = sequence.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
        (first.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Self::BITS)) as usize
    }
}

impl Mask {
    /// Adds a text that is searched exactly, also with encoded characters.
    pub(crate) fn add_exact(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.lengths.insert(text.len());
            self.exact.insert(text.to_vec());
        }
    }

    /// Adds a text that is searched exactly, in pieces and in other encodings.
    pub fn add(&mut self, text: &[u8]) {
        self.add_exact(text);
        self.add_pieces(text);
        if text.len() > LONGEST {
            return;
        }
        for offset in 0..3 {
            self.add_pieces(&base64_within(text, offset));
        }
        let hexadecimal: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add_pieces(hexadecimal.to_uppercase().as_bytes());
        self.add_pieces(hexadecimal.as_bytes());
    }

    fn add_pieces(&mut self, text: &[u8]) {
        let piece: Vec<u8> = text.iter().copied().filter(is_kept).collect();
        if piece.len() >= SHORTEST_PIECE {
            // Many texts start with `https://`, so a piece must be longer than that.
            let scheme = text.windows(3).position(|three| three == b"://");
            let scheme = scheme.map_or(0, |end| text[..end].iter().filter(|byte| is_kept(byte)).count());
            let least = if scheme < SHORTEST_PIECE { SHORTEST_PIECE.max(scheme + 4) } else { SHORTEST_PIECE };
            let searched = if piece.len() <= LONGEST { &piece[..] } else { &piece[..SHORTEST_PIECE] };
            searched.windows(SHORTEST_PIECE).for_each(|sequence| self.sequences.add(sequence));
            self.sequences.add(&piece[piece.len() - SHORTEST_PIECE..]);
            self.pieces.insert(piece, least);
        }
    }

    /// The message without the texts.
    pub fn hidden(&self, words: &str) -> String {
        if self.exact.is_empty() && self.pieces.is_empty() {
            return words.to_owned();
        }
        let mut covered = vec![false; words.len()];
        let mut reading = MessageBytes::new(words);
        for _ in 0..READINGS {
            self.cover(&reading, &mut covered);
            let decoded = reading.decoded();
            if decoded.bytes == reading.bytes {
                break;
            }
            reading = decoded;
        }
        let mut out = String::with_capacity(words.len());
        let mut was_covered = false;
        for (at, character) in words.char_indices() {
            let is_covered = covered[at..at + character.len_utf8()].contains(&true);
            match (was_covered, is_covered) {
                (false, true) => out.push_str(HIDDEN),
                (_, true) => {}
                (_, false) => out.push(character),
            }
            was_covered = is_covered;
        }
        out
    }

    fn cover(&self, reading: &MessageBytes, covered: &mut [bool]) {
        for at in 0..reading.bytes.len() {
            let ends = self.lengths.iter().rev().map(|length| at + length);
            let is_text = |end: &usize| reading.bytes.get(at..*end).is_some_and(|part| self.exact.contains(part));
            if let Some(end) = ends.filter(|end| *end <= reading.bytes.len()).find(is_text) {
                reading.cover(at..end, covered);
            }
        }
        let kept = reading.letters_and_digits();
        let mut found = vec![false; kept.bytes.len()];
        // The positions of all sequences of letters and digits of this length that may be in a piece.
        let index = |length: usize| {
            let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
            for (at, part) in kept.bytes.windows(length).enumerate() {
                if self.sequences.may_contain(part) {
                    places.entry(part).or_default().push(at);
                }
            }
            places
        };
        let (edges, mut middles) = (index(SHORTEST_PIECE), index(SHORTEST_MIDDLE));
        for (piece, least) in &self.pieces {
            // All positions of a piece are covered at once, so it need not be searched again.
            let windows = if piece.len() <= LONGEST { &piece[..] } else { &[] };
            for (from, part) in windows.windows(SHORTEST_MIDDLE).enumerate() {
                for at in middles.remove(part).unwrap_or_default() {
                    if !found[at..at + SHORTEST_MIDDLE].iter().all(|found| *found) {
                        found[common(piece, from, &kept.bytes, at)].fill(true);
                    }
                }
            }
            let last = piece.len() - SHORTEST_PIECE;
            for from in [0, last] {
                for &at in edges.get(&piece[from..from + SHORTEST_PIECE]).into_iter().flatten() {
                    if !found[at..at + SHORTEST_PIECE].iter().all(|found| *found) {
                        let range = common(piece, from, &kept.bytes, at);
                        if range.len() >= (*least).min(piece.len()) {
                            found[range].fill(true);
                        }
                    }
                }
            }
        }
        let mut at = 0;
        while at < found.len() {
            let length = found[at..].iter().take_while(|found| **found).count();
            if length > 0 {
                kept.cover(at..at + length, covered);
            }
            at += length.max(1);
        }
    }
}

/// The range of `words` around `at` that equals the part of `piece` around `from`.
fn common(piece: &[u8], from: usize, words: &[u8], at: usize) -> Range<usize> {
    let before = piece[..from].iter().rev().zip(words[..at].iter().rev()).take_while(|(one, other)| one == other);
    let behind = piece[from..].iter().zip(&words[at..]).take_while(|(one, other)| one == other);
    at - before.count()..at + behind.count()
}

/// Whether the byte is a letter, a digit, or not ASCII.
fn is_kept(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// The part of a base64 text that depends only on `text`, if that starts at `offset` in a group of three bytes.
fn base64_within(text: &[u8], offset: usize) -> Vec<u8> {
    let whole = STANDARD.encode([&[0, 0][..offset.min(2)], text].concat()).into_bytes();
    let end = (offset + text.len()) * 8 / 6;
    let start = (offset * 8).div_ceil(6);
    whole.get(start..end).unwrap_or_default().to_vec()
}

/// A message as bytes, each with its byte range in the original message.
struct MessageBytes {
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
}

impl MessageBytes {
    fn new(words: &str) -> Self {
        MessageBytes { bytes: words.as_bytes().to_vec(), places: (0..words.len()).map(|at| (at, at + 1)).collect() }
    }

    fn empty() -> Self {
        MessageBytes { bytes: Vec::new(), places: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8], place: (usize, usize)) {
        self.bytes.extend_from_slice(bytes);
        self.places.extend(bytes.iter().map(|_| place));
    }

    fn cover(&self, range: Range<usize>, covered: &mut [bool]) {
        if let (Some((start, _)), Some((_, end))) = (self.places.get(range.start), self.places.get(range.end - 1)) {
            covered[*start..*end].fill(true);
        }
    }

    /// Only the letters and digits.
    fn letters_and_digits(&self) -> Self {
        let kept = self.bytes.iter().copied().zip(self.places.iter().copied()).filter(|(byte, _)| is_kept(byte));
        let (bytes, places) = kept.unzip();
        MessageBytes { bytes, places }
    }

    /// The message with each encoded character decoded once.
    fn decoded(&self) -> Self {
        let mut decoded = Self::empty();
        let mut at = 0;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            let length = match decode(rest) {
                Some((bytes, length)) => {
                    decoded.push(&bytes, (self.places[at].0, self.places[at + length - 1].1));
                    length
                }
                None => {
                    decoded.push(&rest[..1], self.places[at]);
                    1
                }
            };
            at += length;
        }
        decoded
    }
}

/// Decodes an encoded character or list at the start. Returns the bytes and the length of their encoding.
fn decode(words: &[u8]) -> Option<(Vec<u8>, usize)> {
    match words {
        [b'%', rest @ ..] => Some((vec![u8::try_from(number(rest.get(..2)?, 16)?).ok()?], 3)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let end = rest.iter().take(7).position(|byte| *byte == b'}')?;
            Some((character(number(&rest[..end], 16)?)?, end + 4))
        }
        [b'\\', b'u', rest @ ..] => {
            let first = number(rest.get(..4)?, 16)?;
            let second = || match rest.get(4..6)? {
                b"\\u" => number(rest.get(6..10)?, 16).filter(|second| (0xDC00..0xE000).contains(second)),
                _ => None,
            };
            match (0xD800..0xDC00).contains(&first) {
                true => Some((character(0x1_0000 + ((first - 0xD800) << 10) + (second()? - 0xDC00))?, 12)),
                false => Some((character(first)?, 6)),
            }
        }
        [b'\\', b'U', rest @ ..] => Some((character(number(rest.get(..8)?, 16)?)?, 10)),
        [b'\\', b'x', rest @ ..] => Some((vec![u8::try_from(number(rest.get(..2)?, 16)?).ok()?], 4)),
        [b'\\', b'0'..=b'7', ..] => Some((vec![u8::try_from(number(words.get(1..4)?, 8)?).ok()?], 4)),
        [b'\\', escaped, ..] => {
            let byte = match escaped {
                b'n' | b'r' | b't' | b'b' | b'f' => b' ',
                other => *other,
            };
            Some((vec![byte], 2))
        }
        [b'&', b'#', rest @ ..] => {
            let end = rest.iter().take(9).position(|byte| *byte == b';')?;
            let code = match &rest[..end] {
                [b'x' | b'X', digits @ ..] => number(digits, 16)?,
                digits => number(digits, 10)?,
            };
            Some((character(code)?, end + 3))
        }
        [b'&', ..] => {
            let named = [("&amp;", b'&'), ("&lt;", b'<'), ("&gt;", b'>'), ("&quot;", b'"'), ("&apos;", b'\'')];
            let (name, byte) = named.into_iter().find(|(name, _)| words.starts_with(name.as_bytes()))?;
            Some((vec![byte], name.len()))
        }
        [b'[', ..] => list_of_bytes(words),
        _ => None,
    }
}

/// Decodes a list such as `[104 117 110]`, as Go prints bytes. It may be truncated.
fn list_of_bytes(words: &[u8]) -> Option<(Vec<u8>, usize)> {
    let end = 1 + words[1..]
        .iter()
        .position(|byte| !byte.is_ascii_digit() && !b" ,".contains(byte))
        .unwrap_or(words.len() - 1);
    let numbers = words[1..end].split(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty());
    let bytes: Option<Vec<u8>> = numbers.map(|digits| u8::try_from(number(digits, 10)?).ok()).collect();
    bytes.filter(|bytes| bytes.len() >= 3).map(|bytes| (bytes, end))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, radix).ok()
}

fn character(code: u32) -> Option<Vec<u8>> {
    Some(char::from_u32(code)?.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "correct/horse+battery=stäple";

    fn shown(words: &str) -> String {
        let mut mask = Mask::default();
        mask.add(TEXT.as_bytes());
        mask.hidden(words)
    }

    #[test]
    fn a_text_is_found_in_every_encoding() {
        let percent: String = TEXT.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let some_percent = TEXT.replace('/', "%2F").replace('ä', "%C3%A4");
        let escapes: String = TEXT.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let twice = escapes.replace('\\', "\\\\");
        let octal: String = TEXT.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        let entities = TEXT.replace('/', "&#x2F;").replace('=', "&#61;");
        let bytes = format!("{:?}", TEXT.as_bytes());
        let gos = bytes.replace(',', "");
        let hexadecimal: String = TEXT.bytes().map(|byte| format!("{byte:02X}")).collect();
        let lines: String = TEXT.chars().map(|c| format!("{c}\n    ")).collect();
        let joined = TEXT.replace("horse", "ho\" + \"rse");
        for words in [
            TEXT,
            &percent,
            &some_percent,
            &escapes,
            &twice,
            &octal,
            &entities,
            &bytes,
            &gos,
            &hexadecimal,
            &lines,
            &joined,
            "correct/h",
            "correct/horse+bat",
            "y=stäple",
            "=horse+battery=",
        ] {
            let shown = shown(&format!("the value: {words} is weak"));
            let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            let left = shown.replace("[hidden]", "");
            assert!(shown.contains("[hidden]"), "{words}: {shown}");
            assert!(left.starts_with("the value: ") && left.ends_with(" is weak"), "{words}: {shown}");
            assert!(letters(&left) == "thevalueisweak", "{words}: {shown}");
        }
    }

    #[test]
    fn a_text_is_found_within_base64() {
        for before in ["", "a", "ab", "user:", "{\"password\": \""] {
            for after in ["", "x", "\"}"] {
                let words = STANDARD.encode(format!("{before}{TEXT}{after}"));
                let shown = shown(&words);
                // Two characters at each end may contain some bits of the text.
                let inside =
                    words.trim_end_matches('=').len() - shown.replace("[hidden]", "").trim_end_matches('=').len();
                assert!(inside + 3 >= TEXT.len() * 4 / 3, "{words}: {shown}");
            }
        }
    }

    #[test]
    fn texts_that_are_not_secret_stay() {
        for words in
            ["correct", "the horse is correct", "[1 2 3]", "100%", "%zz", "a\\", "\\u12", "&#;", "stäple", "[", ""]
        {
            assert_eq!(shown(words), words);
        }
        let mut mask = Mask::default();
        mask.add(b"https://user:geheim@example.com");
        assert_eq!(mask.hidden("Post \"https://webhook.svc\""), "Post \"https://webhook.svc\"");
        assert_eq!(mask.hidden("Post \"https://user:geh"), "Post \"[hidden]");
    }

    #[test]
    fn repetition_costs_no_more_than_its_length() {
        let mut mask = Mask::default();
        mask.add("a".repeat(60_000).as_bytes());
        assert_eq!(mask.hidden(&"a".repeat(64_000)), "[hidden]");
    }
}

//! Writes a message as the JSON that the server would have sent, but with the members of each object sorted by name, as
//! in most manifests: texts with the same order are quickly compared ([`gantry_schema::scan::relation`]).

use std::iter;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::wire::{UndecodableMessage, WireFields, WireValue};
use crate::kube::json;

/// The maximum nesting depth of the JSON, as for a response in JSON.
const MAX_DEPTH: usize = json::MAX_DEPTH;

/// The fields of a message, in the order of their numbers, which is also the order in which a server sends them.
pub type Message = &'static [ProtobufField];

/// A field of a message.
#[derive(Clone, Copy)]
pub struct ProtobufField {
    number: u32,
    /// The name in JSON.
    name: &'static str,
    kind: WireValueKind,
    shape: WireCardinality,
    presence: Presence,
}

/// The type of a value.
#[derive(Clone, Copy)]
pub enum WireValueKind {
    Text,
    Bool,
    Integer,
    Double,
    /// Bytes, base64 in JSON.
    Base64,
    /// Seconds since 1970 and nanoseconds, RFC 3339 in JSON.
    Time,
    /// JSON text in a message of its own.
    Json,
    Message(&'static Message),
    /// A message of this type or a boolean.
    OrBool(&'static Message),
    /// A message of this type or a list of them.
    OrList(&'static Message),
    /// A message of this type or a list of texts.
    OrTexts(&'static Message),
}

#[derive(Clone, Copy, PartialEq)]
enum WireCardinality {
    One,
    List,
    Map,
}

/// When a field is part of the JSON.
#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Always,
    /// If it is not empty, false or 0.
    Filled,
    /// If the message has it.
    Sent,
}

impl ProtobufField {
    pub const fn new(number: u32, name: &'static str, kind: WireValueKind) -> Self {
        ProtobufField { number, name, kind, shape: WireCardinality::One, presence: Presence::Filled }
    }

    pub const fn always(self) -> Self {
        ProtobufField { presence: Presence::Always, ..self }
    }

    pub const fn if_sent(self) -> Self {
        ProtobufField { presence: Presence::Sent, ..self }
    }

    pub const fn list(self) -> Self {
        ProtobufField { shape: WireCardinality::List, ..self }
    }

    pub const fn map(self) -> Self {
        ProtobufField { shape: WireCardinality::Map, ..self }
    }
}

type TranscodeResult = Result<(), UndecodableMessage>;

/// The members of a message as JSON, without the braces.
pub fn write_members(bytes: &[u8], message: Message, into: &mut Vec<u8>) -> TranscodeResult {
    WireJsonWriter { json: into, depth: 1, found: Vec::new() }.write_members(bytes, message)
}

struct WireJsonWriter<'j, 'b> {
    json: &'j mut Vec<u8>,
    depth: usize,
    /// The members to write of the current message, after those of the messages around it.
    found: Vec<JsonMember<'b>>,
}

/// A member of the JSON of a message.
#[derive(Clone, Copy)]
struct JsonMember<'b> {
    field: &'static ProtobufField,
    /// `None` if the message does not have the field.
    value: Option<WireValue<'b>>,
    /// What follows in the message: for a list or a map first the other values.
    rest: WireFields<'b>,
}

impl<'b> WireJsonWriter<'_, 'b> {
    fn push(&mut self, text: &str) {
        self.json.extend_from_slice(text.as_bytes());
    }

    fn write_text(&mut self, text: &str) -> TranscodeResult {
        serde_json::to_writer(&mut *self.json, text).map_err(|_| UndecodableMessage)
    }

    fn separate(&mut self) {
        if !matches!(self.json.last(), Some(b'{' | b'[')) {
            self.json.push(b',');
        }
    }

    fn write_key(&mut self, name: &str) {
        self.separate();
        self.json.push(b'"');
        self.push(name);
        self.push("\":");
    }

    /// Writes something between two brackets, one level deeper.
    fn write_nested(
        &mut self,
        brackets: [u8; 2],
        content: impl FnOnce(&mut Self) -> TranscodeResult,
    ) -> TranscodeResult {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(UndecodableMessage);
        }
        self.json.push(brackets[0]);
        content(self)?;
        self.json.push(brackets[1]);
        self.depth -= 1;
        Ok(())
    }

    fn write_message(&mut self, bytes: &'b [u8], message: Message) -> TranscodeResult {
        self.write_nested(*b"{}", |writer| writer.write_members(bytes, message))
    }

    fn write_members(&mut self, bytes: &'b [u8], message: Message) -> TranscodeResult {
        let start = self.found.len();
        self.find(bytes, message)?;
        self.found[start..].sort_unstable_by_key(|found| found.field.name);
        for index in start..self.found.len() {
            let JsonMember { field, value, rest } = self.found[index];
            match value {
                None => self.write_missing(field)?,
                Some(value) if field.shape == WireCardinality::One => self.write_single(field, value)?,
                Some(value) => self.write_repeated(field, value, rest)?,
            }
        }
        self.found.truncate(start);
        Ok(())
    }

    /// Finds the members to write of a message.
    fn find(&mut self, bytes: &'b [u8], message: Message) -> TranscodeResult {
        let mut known = message.iter();
        let mut fields = WireFields(bytes);
        let mut last = None;
        while let Some(field) = fields.next() {
            let (number, value) = field?;
            if last == Some(number) {
                continue;
            }
            // An unknown field, or one that is out of order, is not found here.
            let field = loop {
                let field = known.next().ok_or(UndecodableMessage)?;
                if field.number == number {
                    break field;
                }
                self.add_absent_field(field);
            };
            // A field that has one value is not found a second time.
            last = (field.shape != WireCardinality::One).then_some(number);
            self.found.push(JsonMember { field, value: Some(value), rest: fields });
        }
        known.for_each(|field| self.add_absent_field(field));
        Ok(())
    }

    fn add_absent_field(&mut self, field: &'static ProtobufField) {
        if field.presence == Presence::Always {
            self.found.push(JsonMember { field, value: None, rest: WireFields(&[]) });
        }
    }

    /// Writes a list or a map: `value` and all values of the same field at the start of `rest`.
    fn write_repeated(&mut self, field: &ProtobufField, value: WireValue<'b>, rest: WireFields<'b>) -> TranscodeResult {
        let others = rest.map_while(|next| next.ok().filter(|(number, _)| *number == field.number));
        let values = iter::once(value).chain(others.map(|(_, value)| value));
        self.write_key(field.name);
        let brackets = if field.shape == WireCardinality::List { *b"[]" } else { *b"{}" };
        self.write_nested(brackets, |writer| {
            for value in values {
                match field.shape {
                    WireCardinality::Map => writer.write_entry(value.bytes()?, field.kind)?,
                    _ => {
                        writer.separate();
                        writer.write_value(value, field.kind)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Writes a field that the message does not have.
    fn write_missing(&mut self, field: &ProtobufField) -> TranscodeResult {
        self.write_key(field.name);
        match (field.shape, field.kind) {
            (WireCardinality::One, WireValueKind::Text) => self.push("\"\""),
            (WireCardinality::One, WireValueKind::Bool) => self.push("false"),
            (WireCardinality::One, WireValueKind::Integer) => self.push("0"),
            (WireCardinality::One, WireValueKind::Message(message)) => self.write_message(&[], message)?,
            _ => self.push("null"),
        }
        Ok(())
    }

    fn write_single(&mut self, field: &ProtobufField, value: WireValue<'b>) -> TranscodeResult {
        let is_empty = matches!(value, WireValue::Varint(0) | WireValue::Bytes([]));
        if is_empty && field.presence == Presence::Filled {
            return Ok(());
        }
        self.write_key(field.name);
        self.write_value(value, field.kind)
    }

    /// An entry of a map: a message of a key and a value.
    fn write_entry(&mut self, bytes: &'b [u8], kind: WireValueKind) -> TranscodeResult {
        let (mut key, mut value) = ("", WireValue::Bytes(&[]));
        for field in WireFields(bytes) {
            match field? {
                (1, text) => key = text.text()?,
                (2, found) => value = found,
                _ => return Err(UndecodableMessage),
            }
        }
        self.separate();
        self.write_text(key)?;
        self.json.push(b':');
        self.write_value(value, kind)
    }

    fn write_value(&mut self, value: WireValue<'b>, kind: WireValueKind) -> TranscodeResult {
        match kind {
            WireValueKind::Text => self.write_text(value.text()?),
            WireValueKind::Bool => {
                self.push(if value.integer()? == 0 { "false" } else { "true" });
                Ok(())
            }
            WireValueKind::Integer => {
                self.push(&value.integer()?.to_string());
                Ok(())
            }
            WireValueKind::Double => self.write_double(value.double()?),
            WireValueKind::Base64 => {
                let text = Base64Display::new(value.bytes()?, &STANDARD).to_string();
                self.write_text(&text)
            }
            WireValueKind::Time => self.write_time(value.bytes()?),
            WireValueKind::Json => self.write_raw(value.bytes()?),
            WireValueKind::Message(message) => self.write_message(value.bytes()?, message),
            WireValueKind::OrBool(message) => self.message_or_bool(value.bytes()?, message),
            WireValueKind::OrList(message) => {
                self.message_or_list(value.bytes()?, message, WireValueKind::Message(message))
            }
            WireValueKind::OrTexts(message) => self.message_or_list(value.bytes()?, message, WireValueKind::Text),
        }
    }

    /// A number as Go writes it: without a fraction if it has none, and with an exponent only if it is long.
    fn write_double(&mut self, number: f64) -> TranscodeResult {
        if !number.is_finite() {
            return Err(UndecodableMessage);
        }
        let size = number.abs();
        let is_long = size != 0.0 && !(1e-6..1e21).contains(&size);
        self.push(&if is_long { format!("{number:e}") } else { number.to_string() });
        Ok(())
    }

    fn write_time(&mut self, bytes: &[u8]) -> TranscodeResult {
        if bytes.is_empty() {
            self.push("null");
            return Ok(());
        }
        let mut seconds = 0;
        for field in WireFields(bytes) {
            match field? {
                (1, value) => seconds = value.integer()?,
                // The server's JSON has whole seconds.
                (2, _) => {}
                _ => return Err(UndecodableMessage),
            }
        }
        let time = Timestamp::from_second(seconds).map_err(|_| UndecodableMessage)?;
        self.write_text(&time.to_string())
    }

    /// JSON text as a client once sent it, without the space between its parts.
    fn write_raw(&mut self, bytes: &[u8]) -> TranscodeResult {
        let mut raw = "";
        for field in WireFields(bytes) {
            match field? {
                (1, value) => raw = value.text()?,
                _ => return Err(UndecodableMessage),
            }
        }
        if raw.is_empty() {
            self.push("null");
            return Ok(());
        }
        if !json::is_sound(raw) {
            return Err(UndecodableMessage);
        }
        let (mut is_text, mut is_escaped) = (false, false);
        for &byte in raw.as_bytes() {
            if is_text || !byte.is_ascii_whitespace() {
                self.json.push(byte);
            }
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_text,
                b'"' => is_text = !is_text,
                _ => {}
            }
        }
        Ok(())
    }

    fn message_or_bool(&mut self, bytes: &'b [u8], message: Message) -> TranscodeResult {
        let (mut allows, mut found) = (false, None);
        for field in WireFields(bytes) {
            match field? {
                (1, value) => allows = value.integer()? != 0,
                (2, value) => found = Some(value.bytes()?),
                _ => return Err(UndecodableMessage),
            }
        }
        match found {
            Some(found) => self.write_message(found, message)?,
            None => self.push(if allows { "true" } else { "false" }),
        }
        Ok(())
    }

    /// A message, or a list of values of the type `items`.
    fn message_or_list(&mut self, bytes: &'b [u8], message: Message, items: WireValueKind) -> TranscodeResult {
        let (mut found, mut list) = (None, Vec::new());
        for field in WireFields(bytes) {
            match field? {
                (1, value) => found = Some(value.bytes()?),
                (2, value) => list.push(value),
                _ => return Err(UndecodableMessage),
            }
        }
        match found {
            _ if !list.is_empty() => self.write_nested(*b"[]", |writer| {
                list.into_iter().try_for_each(|item| {
                    writer.separate();
                    writer.write_value(item, items)
                })
            }),
            Some(found) => self.write_message(found, message),
            None => {
                self.push("null");
                Ok(())
            }
        }
    }
}

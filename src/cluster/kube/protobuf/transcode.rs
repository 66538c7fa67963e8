//! Writes a message as the JSON that the server would have sent, but with the members of each object sorted by name, as
//! in most manifests: texts with the same order are quickly compared ([`gantry_schema::scan::relation`]).

use std::iter;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::wire::{Fields, Undecodable, Value};
use crate::cluster::kube::json;

/// The maximum nesting depth of the JSON, as for a response in JSON.
const MAX_DEPTH: usize = json::MAX_DEPTH;

/// The fields of a message, in the order of their numbers, which is also the order in which a server sends them.
pub type Message = &'static [Field];

/// A field of a message.
pub struct Field {
    number: u32,
    /// The name in JSON.
    name: &'static str,
    kind: Kind,
    shape: Shape,
    presence: Presence,
}

/// The type of a value.
#[derive(Clone, Copy)]
pub enum Kind {
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
enum Shape {
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

impl Field {
    pub const fn new(number: u32, name: &'static str, kind: Kind) -> Self {
        Field { number, name, kind, shape: Shape::One, presence: Presence::Filled }
    }

    pub const fn always(self) -> Self {
        Field { presence: Presence::Always, ..self }
    }

    pub const fn if_sent(self) -> Self {
        Field { presence: Presence::Sent, ..self }
    }

    pub const fn list(self) -> Self {
        Field { shape: Shape::List, ..self }
    }

    pub const fn map(self) -> Self {
        Field { shape: Shape::Map, ..self }
    }
}

type Outcome = Result<(), Undecodable>;

/// The members of a message as JSON, without the braces.
pub fn members(bytes: &[u8], message: Message, into: &mut Vec<u8>) -> Outcome {
    Writer { json: into, depth: 1, found: Vec::new() }.members(bytes, message)
}

struct Writer<'j, 'b> {
    json: &'j mut Vec<u8>,
    depth: usize,
    /// The members to write of the current message, after those of the messages around it.
    found: Vec<Found<'b>>,
}

/// A member of the JSON of a message.
#[derive(Clone, Copy)]
struct Found<'b> {
    field: &'static Field,
    /// `None` if the message does not have the field.
    value: Option<Value<'b>>,
    /// What follows in the message: for a list or a map first the other values.
    rest: Fields<'b>,
}

impl<'b> Writer<'_, 'b> {
    fn push(&mut self, text: &str) {
        self.json.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, text: &str) -> Outcome {
        serde_json::to_writer(&mut *self.json, text).map_err(|_| Undecodable)
    }

    fn comma(&mut self) {
        if !matches!(self.json.last(), Some(b'{' | b'[')) {
            self.json.push(b',');
        }
    }

    fn key(&mut self, name: &str) {
        self.comma();
        self.json.push(b'"');
        self.push(name);
        self.push("\":");
    }

    /// Writes something between two brackets, one level deeper.
    fn nested(&mut self, brackets: [u8; 2], content: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Undecodable);
        }
        self.json.push(brackets[0]);
        content(self)?;
        self.json.push(brackets[1]);
        self.depth -= 1;
        Ok(())
    }

    fn message(&mut self, bytes: &'b [u8], message: Message) -> Outcome {
        self.nested(*b"{}", |writer| writer.members(bytes, message))
    }

    fn members(&mut self, bytes: &'b [u8], message: Message) -> Outcome {
        let start = self.found.len();
        self.find(bytes, message)?;
        self.found[start..].sort_unstable_by_key(|found| found.field.name);
        for index in start..self.found.len() {
            let Found { field, value, rest } = self.found[index];
            match value {
                None => self.absent(field)?,
                Some(value) if field.shape == Shape::One => self.one(field, value)?,
                Some(value) => self.several(field, value, rest)?,
            }
        }
        self.found.truncate(start);
        Ok(())
    }

    /// Finds the members to write of a message.
    fn find(&mut self, bytes: &'b [u8], message: Message) -> Outcome {
        let mut known = message.iter();
        let mut fields = Fields(bytes);
        let mut last = None;
        while let Some(field) = fields.next() {
            let (number, value) = field?;
            if last == Some(number) {
                continue;
            }
            // An unknown field, or one that is out of order, is not found here.
            let field = loop {
                let field = known.next().ok_or(Undecodable)?;
                if field.number == number {
                    break field;
                }
                self.find_absent(field);
            };
            // A field that has one value is not found a second time.
            last = (field.shape != Shape::One).then_some(number);
            self.found.push(Found { field, value: Some(value), rest: fields });
        }
        known.for_each(|field| self.find_absent(field));
        Ok(())
    }

    fn find_absent(&mut self, field: &'static Field) {
        if field.presence == Presence::Always {
            self.found.push(Found { field, value: None, rest: Fields(&[]) });
        }
    }

    /// Writes a list or a map: `value` and all values of the same field at the start of `rest`.
    fn several(&mut self, field: &Field, value: Value<'b>, rest: Fields<'b>) -> Outcome {
        let others = rest.map_while(|next| next.ok().filter(|(number, _)| *number == field.number));
        let values = iter::once(value).chain(others.map(|(_, value)| value));
        self.key(field.name);
        let brackets = if field.shape == Shape::List { *b"[]" } else { *b"{}" };
        self.nested(brackets, |writer| {
            for value in values {
                match field.shape {
                    Shape::Map => writer.entry(value.bytes()?, field.kind)?,
                    _ => {
                        writer.comma();
                        writer.value(value, field.kind)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Writes a field that the message does not have.
    fn absent(&mut self, field: &Field) -> Outcome {
        self.key(field.name);
        match (field.shape, field.kind) {
            (Shape::One, Kind::Text) => self.push("\"\""),
            (Shape::One, Kind::Bool) => self.push("false"),
            (Shape::One, Kind::Integer) => self.push("0"),
            (Shape::One, Kind::Message(message)) => self.message(&[], message)?,
            _ => self.push("null"),
        }
        Ok(())
    }

    fn one(&mut self, field: &Field, value: Value<'b>) -> Outcome {
        let is_empty = matches!(value, Value::Varint(0) | Value::Bytes([]));
        if is_empty && field.presence == Presence::Filled {
            return Ok(());
        }
        self.key(field.name);
        self.value(value, field.kind)
    }

    /// An entry of a map: a message of a key and a value.
    fn entry(&mut self, bytes: &'b [u8], kind: Kind) -> Outcome {
        let (mut key, mut value) = ("", Value::Bytes(&[]));
        for field in Fields(bytes) {
            match field? {
                (1, text) => key = text.text()?,
                (2, found) => value = found,
                _ => return Err(Undecodable),
            }
        }
        self.comma();
        self.text(key)?;
        self.json.push(b':');
        self.value(value, kind)
    }

    fn value(&mut self, value: Value<'b>, kind: Kind) -> Outcome {
        match kind {
            Kind::Text => self.text(value.text()?),
            Kind::Bool => {
                self.push(if value.integer()? == 0 { "false" } else { "true" });
                Ok(())
            }
            Kind::Integer => {
                self.push(&value.integer()?.to_string());
                Ok(())
            }
            Kind::Double => self.double(value.double()?),
            Kind::Base64 => {
                let text = Base64Display::new(value.bytes()?, &STANDARD).to_string();
                self.text(&text)
            }
            Kind::Time => self.time(value.bytes()?),
            Kind::Json => self.raw(value.bytes()?),
            Kind::Message(message) => self.message(value.bytes()?, message),
            Kind::OrBool(message) => self.message_or_bool(value.bytes()?, message),
            Kind::OrList(message) => self.message_or_list(value.bytes()?, message, Kind::Message(message)),
            Kind::OrTexts(message) => self.message_or_list(value.bytes()?, message, Kind::Text),
        }
    }

    /// A number as Go writes it: without a fraction if it has none, and with an exponent only if it is long.
    fn double(&mut self, number: f64) -> Outcome {
        if !number.is_finite() {
            return Err(Undecodable);
        }
        let size = number.abs();
        let is_long = size != 0.0 && !(1e-6..1e21).contains(&size);
        self.push(&if is_long { format!("{number:e}") } else { number.to_string() });
        Ok(())
    }

    fn time(&mut self, bytes: &[u8]) -> Outcome {
        if bytes.is_empty() {
            self.push("null");
            return Ok(());
        }
        let mut seconds = 0;
        for field in Fields(bytes) {
            match field? {
                (1, value) => seconds = value.integer()?,
                // The server's JSON has whole seconds.
                (2, _) => {}
                _ => return Err(Undecodable),
            }
        }
        let time = Timestamp::from_second(seconds).map_err(|_| Undecodable)?;
        self.text(&time.to_string())
    }

    /// JSON text as a client once sent it, without the space between its parts.
    fn raw(&mut self, bytes: &[u8]) -> Outcome {
        let mut raw = "";
        for field in Fields(bytes) {
            match field? {
                (1, value) => raw = value.text()?,
                _ => return Err(Undecodable),
            }
        }
        if raw.is_empty() {
            self.push("null");
            return Ok(());
        }
        if !json::is_sound(raw) {
            return Err(Undecodable);
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

    fn message_or_bool(&mut self, bytes: &'b [u8], message: Message) -> Outcome {
        let (mut allows, mut found) = (false, None);
        for field in Fields(bytes) {
            match field? {
                (1, value) => allows = value.integer()? != 0,
                (2, value) => found = Some(value.bytes()?),
                _ => return Err(Undecodable),
            }
        }
        match found {
            Some(found) => self.message(found, message)?,
            None => self.push(if allows { "true" } else { "false" }),
        }
        Ok(())
    }

    /// A message, or a list of values of the type `items`.
    fn message_or_list(&mut self, bytes: &'b [u8], message: Message, items: Kind) -> Outcome {
        let (mut found, mut list) = (None, Vec::new());
        for field in Fields(bytes) {
            match field? {
                (1, value) => found = Some(value.bytes()?),
                (2, value) => list.push(value),
                _ => return Err(Undecodable),
            }
        }
        match found {
            _ if !list.is_empty() => self.nested(*b"[]", |writer| {
                list.into_iter().try_for_each(|item| {
                    writer.comma();
                    writer.value(item, items)
                })
            }),
            Some(found) => self.message(found, message),
            None => {
                self.push("null");
                Ok(())
            }
        }
    }
}

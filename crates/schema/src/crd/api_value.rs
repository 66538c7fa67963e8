//! The values in the structures of the API: how the server decodes each type, and how its messages print it.

use serde_json::Value;

use super::decode::{Decoded, DecodedObject, Given, flag, integer, list, number, prepend_step, text};
use crate::by_name::ByName;
use gantry_k8s_cel::gotext;

/// A value of the API.
pub trait ApiValue<'v>: Sized {
    /// Decodes a value as the server does.
    fn decode(value: &'v Value) -> Decoded<Self>;

    /// Formats the value like Go's `json.Marshal`.
    fn show(&self) -> String;
}

impl<'v> ApiValue<'v> for &'v str {
    fn decode(value: &'v Value) -> Decoded<Self> {
        // A null item decodes to an empty string.
        if value.is_null() { Ok("") } else { text(value) }
    }

    fn show(&self) -> String {
        gotext::json(&Value::from(*self))
    }
}

impl<'v> ApiValue<'v> for bool {
    fn decode(value: &'v Value) -> Decoded<Self> {
        flag(value)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl<'v> ApiValue<'v> for i64 {
    fn decode(value: &'v Value) -> Decoded<Self> {
        integer(value)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl<'v> ApiValue<'v> for f64 {
    fn decode(value: &'v Value) -> Decoded<Self> {
        number(value)
    }

    fn show(&self) -> String {
        gotext::json(&Value::from(*self))
    }
}

impl<'v> ApiValue<'v> for &'v Value {
    fn decode(value: &'v Value) -> Decoded<Self> {
        Ok(value)
    }

    fn show(&self) -> String {
        gotext::json(self)
    }
}

impl<'v, T: ApiValue<'v>> ApiValue<'v> for Option<T> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        T::decode(value).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), T::show)
    }
}

impl<'v, T: ApiValue<'v>> ApiValue<'v> for Box<T> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        T::decode(value).map(Box::new)
    }

    fn show(&self) -> String {
        (**self).show()
    }
}

impl<'v, T: ApiValue<'v>> ApiValue<'v> for Given<Vec<T>> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        list(value, T::decode)
    }

    fn show(&self) -> String {
        if self.is_given { show_list(self) } else { "null".to_owned() }
    }
}

impl<'v, T: ApiValue<'v>> ApiValue<'v> for Given<ByName<&'v str, T>> {
    fn decode(value: &'v Value) -> Decoded<Self> {
        let map = DecodedObject::decode(value)?;
        let mut items = Vec::with_capacity(map.len());
        for (name, value) in map.entries() {
            items.push((name, prepend_step(format_args!("[{name}]"), T::decode(value))?));
        }
        Ok(Given { items: items.into_iter().collect(), is_given: true })
    }

    fn show(&self) -> String {
        if !self.is_given {
            return "null".to_owned();
        }
        let entry = |(name, item): (&str, &T)| format!("{}:{}", gotext::json(&Value::from(name)), item.show());
        format!("{{{}}}", self.iter().map(entry).collect::<Vec<_>>().join(","))
    }
}

/// Formats a list, also an empty one, as a list and not as null.
pub fn show_list<'v, T: ApiValue<'v>>(items: &[T]) -> String {
    format!("[{}]", items.iter().map(T::show).collect::<Vec<_>>().join(","))
}

/// Formats the fields of a structure, in order.
pub fn show_struct(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

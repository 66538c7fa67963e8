//! A page of the list of all CRDs in JSON. It is scanned in place: CRDs that are not wanted are skipped without a copy,
//! wanted ones are copied as text, and the page is dropped.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::json::{self, JsonString, LiveObjectHead};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, Resource};

/// The objects that exist, each with its index in the list of wanted ones, and those that could not be read.
pub type ObjectsOnPage = Vec<(usize, Result<LiveObject, Problem>)>;

/// Extracts the wanted objects from one page, and sends the continue token as soon as it is known.
pub fn scan(
    page: &str,
    names: &BTreeMap<String, Vec<usize>>,
    token: oneshot::Sender<Option<String>>,
) -> serde_json::Result<Scanned> {
    let mut deserializer = serde_json::Deserializer::from_str(page);
    let found = ListPageVisitor { names, token: Some(token) }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(found)
}

/// The wanted objects of a page, and the total number of objects on it.
pub struct Scanned {
    pub found: ObjectsOnPage,
    pub objects: usize,
}

struct ListPageVisitor<'n> {
    names: &'n BTreeMap<String, Vec<usize>>,
    token: Option<oneshot::Sender<Option<String>>>,
}

#[derive(serde::Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue", default)]
    token: String,
}

impl<'de> DeserializeSeed<'de> for ListPageVisitor<'_> {
    type Value = Scanned;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scanned, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ListPageVisitor<'_> {
    type Value = Scanned;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Scanned, A::Error> {
        let mut found = None;
        while let Some(JsonString(key)) = map.next_key()? {
            match key.as_ref() {
                "metadata" => {
                    let token = map.next_value::<PageMetadata>()?.token;
                    if let Some(sender) = self.token.take() {
                        // The receiver is gone if the read was dropped.
                        let _ = sender.send((!token.is_empty()).then_some(token));
                    }
                }
                "items" => found = Some(map.next_value_seed(ListItemsVisitor { names: self.names })?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (found, self.token) {
            (Some(found), None) => Ok(found),
            // Without its metadata it is unknown whether the list continues.
            _ => Err(A::Error::custom("not a list")),
        }
    }
}

struct ListItemsVisitor<'n> {
    names: &'n BTreeMap<String, Vec<usize>>,
}

impl<'de> DeserializeSeed<'de> for ListItemsVisitor<'_> {
    type Value = Scanned;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scanned, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListItemsVisitor<'_> {
    type Value = Scanned;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scanned, A::Error> {
        let crd = Resource::crd();
        let mut found = ObjectsOnPage::new();
        let mut objects = 0;
        while let Some(item) = items.next_element::<&RawValue>()? {
            objects += 1;
            let head: LiveObjectHead<'_> = serde_json::from_str(item.get()).map_err(A::Error::custom)?;
            let wanted = self.names.get(head.metadata.name.as_ref()).map(Vec::as_slice).unwrap_or_default();
            if !wanted.is_empty() && !json::is_sound(item.get()) {
                return Err(A::Error::custom("not an object"));
            }
            for &index in wanted {
                found.push((index, Ok(head.live(item.get(), &crd))));
            }
        }
        Ok(Scanned { found, objects })
    }
}

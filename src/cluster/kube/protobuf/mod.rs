//! Reads responses in Kubernetes' Protocol Buffers encoding.
//!
//! A server needs a third less processor time for a list of CRDs in this encoding, and the list is less than half as
//! long. Everything else works on JSON, so the messages are written as the JSON that the server would have sent. A
//! generated decoder would drop fields that it does not know; this one refuses them ([`Undecodable`]), and the caller
//! requests JSON instead, so a schema is never read without a part of it.
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>

mod messages;
mod transcode;
mod wire;

use wire::Fields;

use crate::resource::{Live, RawObject, Resource};

/// The media type of the encoding.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// A response begins with this.
const MAGIC: &[u8] = b"k8s\0";

/// The message is broken, or has a field that gantry does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecodable;

/// A list of CRDs.
pub struct CrdList<'a> {
    /// The token for the next page; empty on the last one.
    pub token: &'a str,
    items: Fields<'a>,
}

/// A CRD in a list, not yet decoded.
pub struct Item<'a> {
    pub name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    bytes: &'a [u8],
}

impl<'a> CrdList<'a> {
    /// Reads the head of a list.
    ///
    /// # Errors
    /// The response is not a list of CRDs.
    pub fn read(response: &'a [u8]) -> Result<Self, Undecodable> {
        let crd = Resource::crd();
        let raw = content(response, &crd.api_version(), &format!("{}List", crd.kind))?;
        let mut items = Fields(raw);
        let (1, metadata) = items.next().ok_or(Undecodable)?? else { return Err(Undecodable) };
        let mut token = "";
        for field in Fields(metadata.bytes()?) {
            if let (3, value) = field? {
                token = value.text()?;
            }
        }
        Ok(CrdList { token, items })
    }

    /// The CRDs of the list.
    pub fn items(self) -> impl Iterator<Item = Result<Item<'a>, Undecodable>> {
        self.items.map(|field| match field? {
            (2, item) => Item::read(item.bytes()?),
            _ => Err(Undecodable),
        })
    }
}

impl<'a> Item<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Undecodable> {
        let mut item = Item { name: "", uid: "", resource_version: "", bytes };
        let (1, metadata) = Fields(bytes).next().ok_or(Undecodable)?? else { return Err(Undecodable) };
        for field in Fields(metadata.bytes()?) {
            match field? {
                (1, value) => item.name = value.text()?,
                (5, value) => item.uid = value.text()?,
                (6, value) => item.resource_version = value.text()?,
                _ => {}
            }
        }
        Ok(item)
    }

    /// The whole CRD.
    ///
    /// # Errors
    /// A part of it is unknown or broken.
    pub fn live(&self) -> Result<Live, Undecodable> {
        // The JSON is about twice as long.
        let mut json = Vec::with_capacity(self.bytes.len() * 5 / 2 + 128);
        let crd = Resource::crd();
        json.extend_from_slice(format!(r#"{{"apiVersion":"{}","kind":"{}""#, crd.api_version(), crd.kind).as_bytes());
        transcode::members(self.bytes, messages::CRD, &mut json)?;
        json.push(b'}');
        let json = String::from_utf8(json).map_err(|_| Undecodable)?;
        Ok(Live {
            raw: RawObject::new(json),
            uid: self.uid.to_owned(),
            resource_version: self.resource_version.to_owned(),
        })
    }
}

/// A `Status`, with which the server refuses a request, as JSON.
///
/// # Errors
/// The response is not a `Status`.
pub fn status(response: &[u8]) -> Result<String, Undecodable> {
    let mut json = br#"{"apiVersion":"v1","kind":"Status""#.to_vec();
    transcode::members(content(response, "v1", "Status")?, messages::REFUSAL, &mut json)?;
    json.push(b'}');
    String::from_utf8(json).map_err(|_| Undecodable)
}

/// The object in the envelope `runtime.Unknown`, if it is of this version and kind.
fn content<'a>(response: &'a [u8], api_version: &str, kind: &str) -> Result<&'a [u8], Undecodable> {
    let mut found = ("", "");
    let mut raw = None;
    for field in Fields(response.strip_prefix(MAGIC).ok_or(Undecodable)?) {
        match field? {
            (1, type_meta) => {
                for field in Fields(type_meta.bytes()?) {
                    match field? {
                        (1, value) => found.0 = value.text()?,
                        (2, value) => found.1 = value.text()?,
                        _ => return Err(Undecodable),
                    }
                }
            }
            (2, value) => raw = Some(value.bytes()?),
            // The encoding and the type of the content; empty for messages.
            (3 | 4, value) if value.bytes()?.is_empty() => {}
            _ => return Err(Undecodable),
        }
    }
    raw.filter(|_| found == (api_version, kind)).ok_or(Undecodable)
}

#[cfg(test)]
mod tests;

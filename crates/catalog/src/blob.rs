//! One blob of a catalog: its schema, package and name, and its text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gantry_k8s_cel::gotext::quote;
use serde_json::value::RawValue;

use crate::json::{BorrowedString, RawFields, compact};

/// What a blob describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobSchema {
    /// `olm.package`
    Package,
    /// `olm.channel`
    Channel,
    /// `olm.bundle`
    Bundle,
    /// `olm.deprecations`
    Deprecations,
    /// Any other schema, which this crate ignores.
    Other,
}

/// A blob of a catalog.
#[derive(Debug)]
pub struct Blob<'a> {
    /// Its `schema`; empty if it is missing, which is an error.
    pub schema: Cow<'a, str>,
    /// Its `package`; an `olm.package` has the name of the package in `name` instead.
    pub package: Cow<'a, str>,
    /// Its `name`.
    pub name: Cow<'a, str>,
    pub(crate) fields: RawFields<'a>,
    text: &'a str,
}

impl<'a> Blob<'a> {
    /// Reads the head of a blob. `fields` are the fields of `text`.
    pub(crate) fn new(text: &'a str, fields: RawFields<'a>) -> Result<Blob<'a>, String> {
        refuse_ambiguous_keys(&fields)?;
        let part = |name| match fields.0.iter().find(|(key, _)| fold(key) == name) {
            Some((key, value)) => string(key, value),
            None => Ok(Cow::Borrowed("")),
        };
        let (schema, package, name) = (part("schema")?, part("package")?, part("name")?);
        Ok(Blob { schema, package, name, fields, text })
    }

    /// What the blob describes.
    pub fn kind(&self) -> BlobSchema {
        match &*self.schema {
            "olm.package" => BlobSchema::Package,
            "olm.channel" => BlobSchema::Channel,
            "olm.bundle" => BlobSchema::Bundle,
            "olm.deprecations" => BlobSchema::Deprecations,
            _ => BlobSchema::Other,
        }
    }

    /// The name of the package that the blob belongs to.
    pub fn of_package(&self) -> &str {
        match self.kind() {
            BlobSchema::Package => &self.name,
            _ => &self.package,
        }
    }

    /// The blob as one line of JSON: its text without insignificant whitespace.
    pub fn json(&self) -> Cow<'a, str> {
        compact(self.text)
    }
}

/// Returns an error if a key occurs in two spellings that differ only in case: a reader of one would not see the other.
fn refuse_ambiguous_keys(fields: &RawFields<'_>) -> Result<(), String> {
    let is_lower = |key: &str| key.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if fields.0.iter().all(|(key, _)| is_lower(key)) {
        return Ok(());
    }
    let mut spellings: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (key, _) in &fields.0 {
        spellings.entry(fold(key).into_owned()).or_default().insert(key);
    }
    let errors: Vec<String> = spellings
        .iter()
        .filter(|(_, keys)| keys.len() > 1)
        .map(|(folded, keys)| {
            let keys: Vec<&str> = keys.iter().copied().collect();
            format!("duplicate keys for key {}: [{}]", quote(folded), keys.join(" "))
        })
        .collect();
    match errors.as_slice() {
        [] => Ok(()),
        [error] => Err(error.clone()),
        errors => Err(format!("[{}]", errors.join(", "))),
    }
}

/// The case-folded key. To upper case first, because some letters have several lower-case forms.
fn fold(key: &str) -> Cow<'_, str> {
    match key.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(key),
        false => Cow::Owned(key.to_uppercase().to_lowercase()),
    }
}

fn string<'a>(key: &str, value: &'a RawValue) -> Result<Cow<'a, str>, String> {
    serde_json::from_str::<BorrowedString>(value.get())
        .map(|text| text.0)
        .map_err(|_| format!("expected value for key {} to be a string", quote(key)))
}

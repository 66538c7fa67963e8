//! Paged lists of live objects, which keep memory low on a cluster with a hundred thousand objects.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use gantry_core::problem::Problem;
use gantry_core::resource::Resource;

/// Which objects to list.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// The resource, at the version to return the objects at.
    pub resource: &'a Resource,
    /// `None` lists all namespaces.
    pub namespace: Option<&'a str>,
    /// In Kubernetes' syntax; [`super::selector::ParsedLabelSelector::parse`] checks it.
    pub label_selector: Option<&'a str>,
    /// The maximum number of objects per page; 0 counts as 1. Two pages are in memory at a time. Requests to a cluster
    /// ask for smaller pages if the objects turn out to be large.
    pub page_size: u32,
    /// Whether to fetch only `metadata` of each object, which is much cheaper for a cluster. A server that does not
    /// support this, and a folder, return whole objects.
    pub metadata_only: bool,
}

impl<'a> ListRequest<'a> {
    /// A request for all objects of a resource, whole.
    pub fn new(resource: &'a Resource, page_size: u32) -> Self {
        ListRequest { resource, namespace: None, label_selector: None, page_size, metadata_only: false }
    }
}

/// Some of the objects: their JSON text, and the range of each object in it. The JSON is not parsed into values.
#[derive(Debug)]
pub struct ListPage {
    text: String,
    items: Vec<Range<usize>>,
    remaining: Option<u64>,
    resource_version: String,
}

impl ListPage {
    /// The JSON of each object, in the server's order: by namespace, then by name. Objects of custom kinds are whole;
    /// those of a built-in kind carry neither `apiVersion` nor `kind`, which are the resource's.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.items.iter().map(|item| &self.text[item.clone()])
    }

    /// The number of objects on the page. An empty page is not necessarily the last one.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the page has no objects. It is not necessarily the last one.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many objects follow this page, if the server says so. With a label selector it never does.
    pub fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    /// The resourceVersion of the state that the page shows; empty if the server does not give it.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Length of the text in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Builds a page from the JSON of its objects.
    pub(super) fn new(objects: impl IntoIterator<Item = impl AsRef<str>>, remaining: Option<u64>) -> Self {
        let mut text = String::new();
        let mut items = Vec::new();
        for object in objects {
            let start = text.len();
            text.push_str(object.as_ref());
            items.push(start..text.len());
        }
        ListPage { text, items, remaining, resource_version: String::new() }
    }

    /// Parses the API server's response to a list. Also returns the continue token, which is empty at the end of the
    /// list.
    pub(super) fn read(text: String) -> serde_json::Result<(Self, String)> {
        let list: ListResponse<'_> = serde_json::from_str(&text)?;
        // Each item is a slice of the text.
        let place = |item: &RawValue| {
            let start = item.get().as_ptr() as usize - text.as_ptr() as usize;
            start..start + item.get().len()
        };
        let items = list.items.unwrap_or_default().into_iter().map(place).collect();
        let ListMetadata { token, remaining, resource_version } = list.metadata;
        Ok((ListPage { items, remaining, resource_version, text }, token))
    }
}

/// Both members are required: without `metadata` it is unknown whether the list continues.
#[derive(Deserialize)]
struct ListResponse<'a> {
    metadata: ListMetadata,
    /// Go writes a nil slice as `null`.
    #[serde(borrow, deserialize_with = "Deserialize::deserialize")]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    token: String,
    #[serde(rename = "remainingItemCount", default)]
    remaining: Option<u64>,
    #[serde(rename = "resourceVersion", default)]
    resource_version: String,
}

/// Why a list ended early. The objects listed so far are not the complete result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The user is not allowed to list these objects.
    #[error("{0}")]
    Forbidden(Problem),
    /// No such resource is served at this version.
    #[error("{0}")]
    NotServed(Problem),
    /// The server has dropped the snapshot that the list was read from and gave no token to continue with. The next
    /// call of [`Pages::next`] restarts the list: discard what it has returned so far. This is returned once; the
    /// second time is an [`Other`](Self::Other).
    #[error("the list expired")]
    Expired,
    /// The objects could not be converted to the requested version: the conversion webhook cannot be reached, refuses
    /// or returns an invalid response.
    #[error("{problem}")]
    Conversion {
        /// The API server's message, sanitized.
        said: String,
        /// The same for people, with the next step.
        problem: Box<Problem>,
    },
    /// Anything else.
    #[error("{0}")]
    Other(Problem),
}

impl ListError {
    /// The problem to report. `None` for [`Expired`](Self::Expired), after which the list restarts.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            ListError::Conversion { problem, .. } => Some(problem),
            ListError::Forbidden(problem) | ListError::NotServed(problem) | ListError::Other(problem) => Some(problem),
            ListError::Expired => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_slices_of_the_answer() {
        let text =
            r#"{"kind":"L","items":[ {"a":"}]"},{"b":[1, 2]} ],"metadata":{"continue":"t","remainingItemCount":7}}"#;
        let (page, token) = ListPage::read(text.into()).unwrap();
        assert_eq!(page.items().collect::<Vec<_>>(), [r#"{"a":"}]"}"#, r#"{"b":[1, 2]}"#]);
        assert_eq!((page.len(), page.remaining(), token.as_str()), (2, Some(7), "t"));
    }

    #[test]
    fn an_empty_list_is_distinguished_from_an_answer_that_is_not_a_list() {
        for text in [r#"{"items":[],"metadata":{}}"#, r#"{"metadata":{"resourceVersion":"1"},"items":null}"#] {
            let (page, token) = ListPage::read(text.into()).unwrap();
            assert!(page.is_empty() && token.is_empty() && page.remaining().is_none());
        }
        for text in ["", "{}", "[]", r#"{"items":[]}"#, r#"{"metadata":{}}"#, r#"{"metadata":{},"items":[{}"#] {
            assert!(ListPage::read(text.into()).is_err(), "{text}");
        }
    }
}

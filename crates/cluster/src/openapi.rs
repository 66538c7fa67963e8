//! OpenAPI v3 documents of the server, which describe kinds. One describes one version of an API group, and is read at
//! most once in a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::Gvk;
use gantry_core::resource::Resource;

/// The document of one version of an API group.
#[derive(Debug)]
pub struct OpenApi {
    /// `components.schemas`
    definitions: Value,
    /// The names of the definitions of kinds.
    kinds: BTreeMap<Gvk, String>,
}

/// The schema of a kind, and the definitions that its `$ref`s lead to.
#[derive(Debug, Clone, Copy)]
pub struct Described<'s> {
    /// The schema of the whole object.
    pub schema: &'s Value,
    /// All of the document's `components.schemas`.
    pub definitions: &'s Value,
}

impl OpenApi {
    /// Parses an OpenAPI v3 document of an API server. `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        /// Most of a document are its paths, which are skipped.
        #[derive(Deserialize)]
        struct OpenApiComponents {
            components: Components,
        }
        #[derive(Deserialize)]
        struct Components {
            schemas: Value,
        }
        let definitions = serde_json::from_str::<OpenApiComponents>(text).ok()?.components.schemas;
        let mut kinds = BTreeMap::new();
        for (name, schema) in definitions.as_object()? {
            for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let text = |key: &str| kind[key].as_str().unwrap_or_default().to_owned();
                kinds.insert(Gvk { group: text("group"), version: text("version"), kind: text("kind") }, name.clone());
            }
        }
        Some(OpenApi { definitions, kinds })
    }

    /// `None` if the document does not describe the kind.
    pub fn of_kind(&self, resource: &Resource) -> Option<Described<'_>> {
        let Resource { group, version, kind, .. } = resource.clone();
        let schema = self.definitions.get(self.kinds.get(&Gvk { group, version, kind })?)?;
        Some(Described { schema, definitions: &self.definitions })
    }
}

/// A document; `None` if the server has none or does not return it.
type FetchedOpenApi = Option<Arc<OpenApi>>;

/// The documents requested so far, by group and version.
#[derive(Debug, Default)]
pub struct Documents(Mutex<BTreeMap<(String, String), Requested>>);

type Requested = Arc<OnceCell<FetchedOpenApi>>;

impl Documents {
    /// The document of a group version. `read` requests it, the first time.
    pub async fn get(&self, group: &str, version: &str, read: impl AsyncFnOnce() -> Option<String>) -> FetchedOpenApi {
        let cell = {
            let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(documents.entry((group.to_owned(), version.to_owned())).or_default())
        };
        let parsed = async || read().await.and_then(|text| OpenApi::parse(&text)).map(Arc::new);
        cell.get_or_init(parsed).await.clone()
    }
}

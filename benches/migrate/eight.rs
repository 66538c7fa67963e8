//! The baseline: the same writes over eight plain connections.
//!
//! One more connection lists the metadata of the objects; each object is handed to the connection that is free next, which
//! writes it with the request that gantry sends, and drops the response. Nothing is proven and nothing is verified.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Request;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

use crate::fixture::{GROUP, KIND, PLURAL};

const CONNECTIONS: usize = 8;
const PAGE: usize = 2000;
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const OBJECT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default)]
    r#continue: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

/// The API server, and who asks it.
#[derive(Clone)]
struct Server {
    url: String,
    ca_file: PathBuf,
    token: String,
}

/// Writes every object once, and returns their number.
pub fn write(url: &str, ca_file: &Path, token: &str) -> Result<usize, Failure> {
    let server = Server { url: url.to_owned(), ca_file: ca_file.to_owned(), token: token.to_owned() };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let (send, receive) = mpsc::channel(PAGE);
        let receive = Arc::new(Mutex::new(receive));
        let lister = tokio::spawn(list(server.client()?, send));
        let mut writers = Vec::new();
        for _ in 0..CONNECTIONS {
            writers.push(tokio::spawn(write_some(server.client()?, Arc::clone(&receive))));
        }
        lister.await??;
        let mut written = 0;
        for writer in writers {
            written += writer.await??;
        }
        Ok(written)
    })
}

impl Server {
    /// A client that sends one request after another has one connection.
    fn client(&self) -> Result<Client, Failure> {
        let mut config = Config::new(self.url.parse()?);
        config.root_cert_file = Some(self.ca_file.clone());
        config.auth_info.token = Some(self.token.clone().into());
        config.default_retry = false;
        config.disable_compression = true;
        Ok(ClientBuilder::try_from(config)?.build())
    }
}

async fn send(client: &Client, request: Request<Body>) -> Result<Vec<u8>, Failure> {
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect_bytes().await?;
    if status.is_success() { Ok(body.to_vec()) } else { Err(String::from_utf8_lossy(&body).into_owned().into()) }
}

async fn list(client: Client, to: mpsc::Sender<ItemMetadata>) -> Result<(), Failure> {
    let mut next = String::new();
    loop {
        let uri = format!("/apis/{GROUP}/v2/{PLURAL}?limit={PAGE}{next}");
        let page = send(&client, Request::get(uri).header("Accept", LIST).body(Body::empty())?).await?;
        let page: Page = serde_json::from_slice(&page)?;
        for item in page.items {
            to.send(item.metadata).await?;
        }
        match page.metadata.r#continue {
            token if token.is_empty() => return Ok(()),
            token => next = format!("&continue={token}"),
        }
    }
}

/// Writes objects until there is none left, and returns their number.
async fn write_some(client: Client, from: Arc<Mutex<mpsc::Receiver<ItemMetadata>>>) -> Result<usize, Failure> {
    let mut written = 0;
    loop {
        let next = from.lock().await.recv().await;
        let Some(ItemMetadata { namespace, name, uid, resource_version }) = next else { return Ok(written) };
        let uri = format!("/apis/{GROUP}/v2/namespaces/{namespace}/{PLURAL}/{name}?fieldManager=plain&force=true");
        let metadata = json!({"name": name, "namespace": namespace, "uid": uid, "resourceVersion": resource_version});
        let body = json!({"apiVersion": format!("{GROUP}/v2"), "kind": KIND, "metadata": metadata}).to_string();
        let request =
            Request::patch(uri).header("Accept", OBJECT).header("Content-Type", "application/apply-patch+yaml");
        send(&client, request.body(Body::from(body.into_bytes()))?).await?;
        written += 1;
    }
}

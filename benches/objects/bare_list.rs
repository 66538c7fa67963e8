//! The baseline: the time to fetch every page of the list and do nothing with it.
//!
//! It uses one connection without compression, reads the bytes of each page, finds the token of the next page at its
//! end, and drops the page. It requests the next page only then, because there is nothing to do in the meantime.

use std::path::Path;

use http::Request;
use kube::Config;
use kube::client::{Body, ClientBuilder};

/// Lists with `page_size` objects on a page and returns the number of bytes.
pub fn list(url: &str, ca_file: &Path, token: &str, page_size: u32) -> Result<usize, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut config = Config::new(url.parse()?);
        config.root_cert_file = Some(ca_file.to_owned());
        config.auth_info.token = Some(token.to_owned().into());
        config.default_retry = false;
        config.disable_compression = true;
        let client = ClientBuilder::try_from(config)?.build();
        let mut length = 0;
        let mut next = String::new();
        loop {
            let uri = format!("/apis/{}/v1/widgets?limit={page_size}{next}", crate::fixture::GROUP);
            let response =
                client.send(Request::get(uri).header("Accept", "application/json").body(Body::empty())?).await?;
            if !response.status().is_success() {
                return Err(format!("the server answers {}", response.status()).into());
            }
            let page = response.into_body().collect_bytes().await?;
            length += page.len();
            // The metadata of a list of custom resources is at its end.
            let end = String::from_utf8_lossy(&page[page.len().saturating_sub(2000)..]).into_owned();
            match end.split_once("\"metadata\":{\"continue\":\"").and_then(|(_, rest)| rest.split_once('"')) {
                Some((token, _)) if !token.is_empty() => next = format!("&continue={token}"),
                _ => return Ok(length),
            }
        }
    })
}

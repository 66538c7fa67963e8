//! Builds kube's client from its parts.
//!
//! The default client leaves Nagle's algorithm on, which delays the first request of each connection by 40 ms until the
//! server has acknowledged the end of the TLS handshake. It also runs a credential plugin twice. With a proxy the
//! default client is used.

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Client, ConfigExt};
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

/// Blocks while a credential plugin runs.
pub fn build(config: Config) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let auth = config.auth_layer()?;
    let mut for_tls = config.clone();
    if auth.is_some() {
        // A plugin that returned a token returns no certificate, so the TLS part need not run it again.
        for_tls.auth_info.exec = None;
        for_tls.auth_info.auth_provider = None;
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    let connector = for_tls.rustls_https_connector_with_connector(connector)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(auth)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector));
    Ok(Client::new(service, config.default_namespace))
}

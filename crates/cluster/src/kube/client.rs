//! Builds kube's client from its parts.
//!
//! The default client leaves Nagle's algorithm on, which delays the first request of each connection by 40 ms until the
//! server has acknowledged the end of the TLS handshake. It also runs a credential plugin twice, and has no HTTP/2. With
//! a proxy the default client is used.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use kube::Config;
use kube::client::{Client, ConfigExt, RustlsTlsError};
use rustls::ClientConfig;
use tower::{BoxError, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use super::connections::Connections;

/// Blocks while a credential plugin runs. `timeout` is the limit for one request.
pub fn build(config: Config, timeout: Duration, disable_http2: bool) -> Result<Client, kube::Error> {
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
    let tls = for_tls.rustls_client_config()?;
    let name = match for_tls.tls_server_name {
        Some(name) => Some(name.try_into().map_err(RustlsTlsError::InvalidServerName).map_err(kube::Error::RustlsTls)?),
        None => None,
    };
    let https = |tls: ClientConfig| {
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        match name.clone() {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => builder,
        }
    };
    let single = https(tls.clone()).enable_http1().wrap_connector(connector.clone());
    let either = match disable_http2 {
        true => single.clone(),
        false => https(tls).enable_all_versions().wrap_connector(connector),
    };
    let connections = Connections::new(either, single, timeout);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(auth)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(connections);
    Ok(Client::new(service, config.default_namespace))
}

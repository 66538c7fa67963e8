//! URLs of Services inside a cluster, and the request paths for the API server's service proxy.
//!
//! Source:
//! <https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/#manually-constructing-apiserver-proxy-urls>

use http::Uri;

use gantry_core::resource::{Resource, is_dns_label};

/// A URL of a Service: `https://catalogd-service.olmv1-system.svc/catalogs/operatorhubio/api/v1/all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl {
    is_https: bool,
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
    /// One of its ports.
    pub port: u16,
    /// Path and query.
    path: String,
}

impl ServiceUrl {
    /// Reads `https://NAME.NAMESPACE.svc[.cluster.local][:PORT]/PATH`; `None` for any other URL.
    pub fn parse(url: &str) -> Option<ServiceUrl> {
        let uri: Uri = url.parse().ok()?;
        let is_https = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        let host = authority.host();
        let host = host.strip_suffix(".cluster.local").unwrap_or(host).strip_suffix(".svc")?;
        let (name, namespace) = host.split_once('.')?;
        let port = match authority.as_str().strip_prefix(authority.host())?.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port != 0)?,
            None if authority.as_str() != authority.host() => return None,
            None if is_https => 443,
            None => 80,
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        // The rest of the request's path is ours: the URL must not escape the part below `proxy`.
        let climbs = uri.path().split('/').any(|part| {
            let part = part.to_ascii_lowercase().replace("%2e", ".");
            part == "." || part == ".." || part.contains("%2f") || part.contains("%5c")
        });
        let is_named = [name, namespace].iter().all(|label| is_dns_label(label));
        (is_named && !climbs).then(|| ServiceUrl {
            is_https,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
            path: path.to_owned(),
        })
    }

    /// The resource that the permission for this request is checked on.
    pub fn resource() -> Resource {
        Resource {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ServiceProxyOptions".to_owned(),
            plural: "services/proxy".to_owned(),
            namespaced: true,
        }
    }

    /// The resource name, which an RBAC rule can use: `https:catalogd-service:443`.
    pub fn resource_name(&self) -> String {
        format!("{}:{}:{}", if self.is_https { "https" } else { "http" }, self.name, self.port)
    }

    /// The path and query of the request to the API server.
    pub(crate) fn proxy_path(&self) -> String {
        let ServiceUrl { namespace, path, .. } = self;
        format!("/api/v1/namespaces/{namespace}/services/{}/proxy{path}", self.resource_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_services_are_requested_through_the_api_server() {
        for (url, path) in [
            (
                "https://catalogd-service.olmv1-system.svc/catalogs/a/api/v1/all",
                "olmv1-system/services/https:catalogd-service:443/proxy/catalogs/a/api/v1/all",
            ),
            ("https://a.b.svc.cluster.local:8443/x?y=z", "b/services/https:a:8443/proxy/x?y=z"),
            ("http://a.b.svc", "b/services/http:a:80/proxy/"),
        ] {
            let parsed = ServiceUrl::parse(url).unwrap_or_else(|| panic!("{url}"));
            assert_eq!(parsed.proxy_path(), format!("/api/v1/namespaces/{path}"));
        }
    }

    #[test]
    fn urls_outside_of_the_cluster_are_not_urls_of_services() {
        for url in [
            "",
            "a.b.svc",
            "ftp://a.b.svc/",
            "https://catalogs.example.com/a",
            "https://a.b.svc.example.com/a",
            "https://b.svc/a",
            "https://c.a.b.svc/a",
            "https://a.b.svc:0/a",
            "https://a.b.svc:99999/a",
            "https://user@a.b.svc/a",
            "https://A.b.svc/a",
            "https://a.b.svc/../secrets",
            "https://a.b.svc/x/%2E./secrets",
            "https://a.b.svc/x/..%2fsecrets",
        ] {
            assert_eq!(ServiceUrl::parse(url), None, "{url}");
        }
    }
}

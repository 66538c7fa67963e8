//! Chooses the proxy for the connection to the server.
//!
//! Like kubectl: the kubeconfig's `proxy-url` always applies. `HTTPS_PROXY` (or `HTTP_PROXY` for an `http` server)
//! applies unless `NO_PROXY` matches the server or the server is this machine. kube itself matches `NO_PROXY` against
//! the proxy's own address, so the choice is made here.

use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;

use super::kubeconfig::ProcessEnvironment;
use gantry_core::problem::Problem;

/// The proxy for `server`, or `None` for a direct connection.
pub fn choose(
    server: &Uri,
    proxy_url: Option<&str>,
    surroundings: &ProcessEnvironment,
) -> Result<Option<Uri>, Problem> {
    if let Some(url) = proxy_url.map(str::trim).filter(|url| !url.is_empty()) {
        return parse(url, "proxy-url of the kubeconfig's cluster").map(Some);
    }
    let host = host_of(server);
    let names =
        if server.scheme_str() == Some("http") { ["HTTP_PROXY", "http_proxy"] } else { ["HTTPS_PROXY", "https_proxy"] };
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| {
            let value = surroundings.variable(name)?.to_string_lossy().trim().to_owned();
            (!value.is_empty()).then_some((name, value))
        })
    };
    let Some((name, url)) = first(names) else { return Ok(None) };
    let exceptions = first(["NO_PROXY", "no_proxy"]).map(|(_, value)| value).unwrap_or_default();
    if is_this_machine(host)
        || exceptions.split(',').any(|exception| is_exempt(host, server.port_u16(), exception.trim()))
    {
        return Ok(None);
    }
    parse(&url, name).map(Some)
}

/// Whether a URL has a host and, after a colon, a valid port. `Uri` accepts any digits there, and would then mean the
/// default port.
pub fn is_whole(url: &Uri) -> bool {
    let has_fault = |authority: &Authority| {
        let place = authority.as_str().rsplit('@').next().unwrap_or_default();
        place != authority.host() && authority.port_u16().is_none()
    };
    !host_of(url).is_empty() && !url.authority().is_some_and(has_fault)
}

/// The host of a URL, an IPv6 address without its brackets.
pub fn host_of(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

pub fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Never quotes the URL, because it can contain a password.
fn parse(url: &str, from: &str) -> Result<Uri, Problem> {
    let whole = match url.split_once("://") {
        // The proxy resolves names with both schemes; kube supports only `socks5`.
        Some(("socks5h", rest)) => format!("socks5://{rest}"),
        Some(_) => url.to_owned(),
        None => format!("http://{url}"),
    };
    let help = "use http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT";
    let uri: Uri = whole.parse().map_err(|_| Problem::new(format!("{from} is not a URL")).help(help))?;
    match uri.scheme_str() {
        Some("http" | "https" | "socks5") if is_whole(&uri) => Ok(uri),
        _ => Err(Problem::new(format!("{from} is not an http, https or socks5 proxy")).help(help)),
    }
}

/// Whether one entry of `NO_PROXY` matches the host: `*`, an address, a network, `name` (including its subdomains), or
/// `.name` (only its subdomains). With `:port` it matches only that port.
fn is_exempt(host: &str, port: Option<u16>, exception: &str) -> bool {
    if exception == "*" {
        return true;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        if let Some((network, bits)) = exception.split_once('/') {
            return is_within(address, network, bits);
        }
        if exception.trim_matches(['[', ']']).parse() == Ok(address) {
            return true;
        }
    }
    let (name, only_port) = match exception.rsplit_once(':').map(|(name, port)| (name, port.parse::<u16>())) {
        Some((name, Ok(port))) => (name, Some(port)),
        _ => (exception, None),
    };
    if only_port.is_some_and(|only| Some(only) != port) {
        return false;
    }
    let [host, name] = [host, name.trim_matches(['[', ']'])].map(str::to_ascii_lowercase);
    let below = name.trim_start_matches('*').trim_start_matches('.');
    let is_below = !below.is_empty() && host.strip_suffix(below).is_some_and(|rest| rest.ends_with('.'));
    is_below || host == name
}

fn is_within(address: IpAddr, network: &str, bits: &str) -> bool {
    fn number(address: IpAddr) -> (u128, u32) {
        match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        }
    }
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let ((address, width), (network, network_width)) = (number(address), number(network));
    width == network_width && bits <= width && (bits == 0 || (address ^ network) >> (width - bits) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, proxy_url: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let surroundings = ProcessEnvironment::for_test(variables);
        choose(&server.parse().unwrap(), proxy_url, &surroundings)
            .map(|proxy| proxy.map(|uri| uri.to_string()))
            .map_err(|problem| problem.message)
    }

    #[test]
    fn the_environment_names_a_proxy_for_each_scheme() {
        let both = [("https_proxy", "s.local:1"), ("HTTP_PROXY", "http://p.local:2")];
        assert_eq!(chosen("https://k.example.com", None, &both), Ok(Some("http://s.local:1/".into())));
        assert_eq!(chosen("http://k.example.com", None, &both), Ok(Some("http://p.local:2/".into())));
        assert_eq!(chosen("https://k.example.com", None, &[("HTTPS_PROXY", " ")]), Ok(None));
    }

    #[test]
    fn a_url_with_an_invalid_port_is_not_valid() {
        let is_whole = |url: &str| url.parse().is_ok_and(|url| is_whole(&url));
        for url in
            ["https://h", "https://h:6443", "https://[::1]", "https://[::1]:6443/x", "http://u:p@h:1", "http://u:p@h"]
        {
            assert!(is_whole(url), "{url}");
        }
        for url in ["https://h:99999", "https://h:65536", "https://h:-1", "https://h:", "https://[::1]:70000", "/x"] {
            assert!(!is_whole(url), "{url}");
        }
    }

    #[test]
    fn no_proxy_matches_the_server_and_not_the_proxy() {
        let case = |server, exceptions| {
            chosen(server, None, &[("HTTPS_PROXY", "http://p.local:3128"), ("NO_PROXY", exceptions)]).unwrap().is_none()
        };
        for exempt in ["*", "k.example.com", ".example.com", "example.com", "*.example.com", "a,, K.Example.COM:6443 ,"]
        {
            assert!(case("https://k.example.com:6443", exempt), "{exempt}");
        }
        for other in ["p.local", ".k.example.com", "ample.com", "k.example.com:443", "", "10.0.0.0/8", "://"] {
            assert!(!case("https://k.example.com:6443", other), "{other}");
        }
        for exempt in ["10.0.0.0/8", "10.1.2.3", "0.0.0.0/0", "10.1.2.3/32", "10.1.2.3:6443"] {
            assert!(case("https://10.1.2.3:6443", exempt), "{exempt}");
        }
        for other in ["10.1.2.4/31x", "11.0.0.0/8", "10.1.2.3/33", "::/0", "10.1.2.4"] {
            assert!(!case("https://10.1.2.3:6443", other), "{other}");
        }
        assert!(case("https://[fd00::1]:6443", "fd00::/8"));
        assert!(case("https://[fd00::1]:6443", "fd00::1"));
        for here in ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"] {
            assert!(case(here, ""), "{here}");
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_overrides_the_environment() {
        let environment = [("HTTPS_PROXY", "http://env.local"), ("NO_PROXY", "*")];
        let proxy = chosen("https://127.0.0.1:6443", Some("socks5h://own.local:1080"), &environment);
        assert_eq!(proxy, Ok(Some("socks5://own.local:1080/".into())));
        let proxy = chosen("https://k.example.com", Some(""), &environment[..1]);
        assert_eq!(proxy, Ok(Some("http://env.local/".into())));
    }

    #[test]
    fn a_wrong_proxy_is_named_without_its_password() {
        for url in ["ftp://me:geheim@p.local", "http://me:geheim@ /", "http://me:geheim@"] {
            let problem = chosen("https://k.example.com", Some(url), &[]).unwrap_err();
            assert!(problem.starts_with("proxy-url") && !problem.contains("geheim"), "{problem}");
        }
    }
}

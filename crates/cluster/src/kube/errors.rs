//! Describes in one line why a request failed, with the next step.
//!
//! No text of an error reaches a message unless it comes from a server or a plugin, and then it is sanitized first:
//! error chains of HTTP clients can quote URLs with passwords, commands with their environment, and files with their
//! secrets.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use kube::client::AuthError;
use rustls::CertificateError;

use super::request::{Peer, RequestError};
use gantry_core::problem::Problem;
use gantry_core::text;

/// The maximum number of characters of a server's or a plugin's message that are shown.
const MAX_CHARS: usize = 1000;

/// Text of a server or a plugin on one line, sanitized and shortened in the middle: the end often says what to do.
pub fn words(from_elsewhere: &str) -> String {
    let line = from_elsewhere.split_whitespace().collect::<Vec<_>>().join(" ");
    text::cut_middle(&text::sanitize(&line), MAX_CHARS).into_owned()
}

/// The server's message about one field. The reason is at the end, after the rejected value, so a long value such as a
/// whole Pod template is shortened in the middle.
pub fn words_of_field(said: &str) -> String {
    const MAX_VALUE_CHARS: usize = 200;
    let reason = said.strip_prefix("Invalid value: ").and_then(|rest| rest.rsplit_once(": "));
    match reason {
        Some((value, reason)) if value.chars().count() > MAX_VALUE_CHARS => {
            let value: String = value.chars().take(MAX_VALUE_CHARS).collect();
            words(&format!("Invalid value: {value}…: {reason}"))
        }
        _ => words(said),
    }
}

/// Text that can contain a credential by accident, with everything masked that looks like one: long runs of letters and
/// digits.
pub fn words_without_secrets(from_elsewhere: &str) -> String {
    let is_credential = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '=' | '~');
    let mut clean = String::new();
    for word in from_elsewhere.split_inclusive(|c| !is_credential(c)) {
        let token = word.trim_end_matches(|c| !is_credential(c));
        let has = |test: fn(&char) -> bool| token.chars().any(|c| test(&c));
        let mixed = has(char::is_ascii_digit) && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
        if token.starts_with("eyJ") || token.starts_with("k8s-aws-v1.") || (token.len() >= 24 && mixed) {
            clean.push_str("[hidden]");
            clean.push_str(&word[token.len()..]);
        } else {
            clean.push_str(word);
        }
    }
    words(&clean)
}

/// A request that would lead to something else than it names.
pub fn misnamed(segment: &str) -> Problem {
    let shown = text::cut(&words(segment), 100).into_owned();
    Problem::new(format!("{shown:?} cannot be part of a request to the API server: it is not a valid name"))
        .help("a name is not empty, . or .., and contains no /, % or \\")
}

/// A response that no API server sends.
pub fn unexpected_response(peer: &Peer, code: u16, content_type: &str) -> Problem {
    let kind = words(content_type);
    Problem::new(format!("{} does not answer like a Kubernetes API server ({code}, {kind})", peer.server)).help(
        "is the server URL of the kubeconfig right? Is there a login page or proxy in between (HTTPS_PROXY, NO_PROXY)?",
    )
}

/// A response that does not end, or decompresses to more than any real one.
pub fn too_long(peer: &Peer, limit: usize) -> Problem {
    Problem::new(format!(
        "the response from {} is larger than {} MiB; gantry stopped reading it",
        peer.server,
        limit >> 20
    ))
    .help(
        "is the server URL of the kubeconfig right? Is there a login page or proxy in between (HTTPS_PROXY, NO_PROXY)?",
    )
}

pub fn timed_out(peer: &Peer, limit: Duration) -> Problem {
    Problem::new(format!("no answer from {} within {} s", describe_route(peer), limit.as_secs_f32()))
        .help(
            "is the cluster reachable from here (VPN, firewall, proxy), or just slow? To wait longer: timeouts.request in the \
             configuration, or GANTRY_TIMEOUTS__REQUEST=2m",
        )
}

/// A response that has started and does not continue.
pub fn stalled_response(peer: &Peer, limit: Duration) -> Problem {
    Problem::new(format!("{} sent nothing for {} s", describe_route(peer), limit.as_secs_f32()))
        .help("is the cluster reachable from here (VPN, firewall, proxy), or just slow?")
}

const CHECK_PROXY: &str = "check proxy-url of the kubeconfig's cluster, HTTPS_PROXY and NO_PROXY";

/// No response at all.
pub fn no_response(error: &kube::Error, peer: &Peer) -> RequestError {
    let chain = chain(error);
    let not_sent = |problem: Problem| RequestError::Lost { problem, sent: false };
    if let Some(error) = chain.iter().find_map(|error| error.downcast_ref::<AuthError>()) {
        return not_sent(auth(error, peer.user.as_deref()));
    }
    if let Some(error) = chain.iter().find_map(|error| error.downcast_ref::<rustls::Error>()) {
        return not_sent(tls(error, peer));
    }
    let said = |start: &str| chain.iter().find_map(|error| Some(error.to_string().strip_prefix(start)?.to_owned()));
    if said("dns error").is_some() {
        let host = peer.proxy.as_deref().unwrap_or(&peer.address);
        return not_sent(
            Problem::new(format!("cannot resolve the host name of {host} (DNS)"))
                .help("is it spelled correctly, and is the VPN up?"),
        );
    }
    if let Some(reason) = said("tunnel error: ").or_else(|| said("SOCKS error: ")) {
        // If the chain continues, an unreachable proxy is reported below; if it ends, here.
        let is_unreachable = reason.contains("underlying connection");
        let ends_here = !chain.iter().any(|error| error.is::<io::Error>());
        if !is_unreachable || ends_here {
            let message = match is_unreachable {
                true => format!("{} cannot be reached", describe_route(peer)),
                false => format!("{} refused to connect to {}: {}", describe_route(peer), peer.address, words(&reason)),
            };
            return not_sent(Problem::new(message).help(CHECK_PROXY));
        }
    }
    // hyper reports unreadable responses only in these words.
    if said("invalid HTTP")
        .or_else(|| said("message head is too large"))
        .or_else(|| said("invalid content-length"))
        .is_some()
    {
        return RequestError::sent(no_http(peer));
    }
    // EMFILE and ENFILE, which std has no `ErrorKind` for.
    let number = chain.iter().find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
    if cfg!(unix) && matches!(number, Some(23 | 24)) {
        return not_sent(
            Problem::new(format!("cannot connect to {}: this process has too many open files", describe_route(peer)))
                .help("raise the limit: ulimit -n"),
        );
    }
    match chain.iter().find_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind) {
        // A chunked body that is malformed, or a compressed one that cannot be decompressed.
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => RequestError::sent(no_http(peer)),
        Some(io::ErrorKind::ConnectionRefused) => {
            not_sent(Problem::new(format!("{} refused the connection", describe_route(peer))).help(match peer.proxy {
                Some(_) => CHECK_PROXY.to_owned(),
                None => format!("is the cluster of context {:?} running, and is its server URL correct?", peer.context),
            }))
        }
        Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => not_sent(
            Problem::new(format!("no route to {}", describe_route(peer))).help("is the network or the VPN up?"),
        ),
        Some(io::ErrorKind::TimedOut) => RequestError::sent(
            Problem::new(format!("timed out connecting to {}", describe_route(peer)))
                .help("is the cluster reachable from here (VPN, firewall, proxy)?"),
        ),
        _ => RequestError::sent(broken(peer)),
    }
}

fn no_http(peer: &Peer) -> Problem {
    Problem::new(format!("{} does not answer like a Kubernetes API server (not valid HTTP)", peer.server))
        .help("is the server URL of the kubeconfig right? Is there another server or a proxy in between (HTTPS_PROXY, NO_PROXY)?")
}

fn broken(peer: &Peer) -> Problem {
    Problem::new(format!("{} closed the connection before the response was complete", describe_route(peer)))
        .help("did the API server stop, or does it use TLS although the kubeconfig says http? Run again")
}

/// `10.0.0.1:6443`, `the proxy proxy.local:3128`.
pub fn describe_route(peer: &Peer) -> String {
    match &peer.proxy {
        Some(proxy) => format!("the proxy {proxy}"),
        None => peer.address.clone(),
    }
}

/// Every error in the chain. An `io::Error` skips the error that it wraps in `source()`, so that one is added.
pub(super) fn chain<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    let mut chain = vec![error];
    while let Some(&last) = chain.last().filter(|_| chain.len() < 32) {
        let wrapped = last.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped.map(|error| error as &(dyn StdError + 'static)).or_else(|| last.source()) {
            Some(next) => chain.push(next),
            None => break,
        }
    }
    chain
}

fn tls(error: &rustls::Error, peer: &Peer) -> Problem {
    let server = &peer.server;
    let (message, help) = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => (
                format!("the certificate of {server} is signed by an unknown authority"),
                "check certificate-authority-data of the kubeconfig's cluster: it must contain the CA that signed the \
                    server's certificate",
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
                format!("the certificate of {server} is for a different name{}", names(certificate)),
                "use a name from the certificate in the kubeconfig's server URL, or set tls-server-name; check \
                    certificate-authority-data too",
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
                format!("the certificate of {server} has expired"),
                "renew it on the server; check this machine's clock and certificate-authority-data too",
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                (format!("the certificate of {server} is not valid yet"), "check this machine's clock")
            }
            other => (
                format!("the certificate of {server} is not valid: {}", words(&other.to_string())),
                "check certificate-authority-data of the kubeconfig's cluster",
            ),
        },
        rustls::Error::AlertReceived(alert) => (
            format!("{server} aborted the TLS handshake: {}", words(&format!("{alert:?}"))),
            "does it require a different client certificate (client-certificate-data), or has this one expired?",
        ),
        rustls::Error::InvalidMessage(_) => (
            format!("{server} does not speak TLS"),
            "is it an http server, or a proxy? Check the kubeconfig's server URL",
        ),
        other => (
            format!("cannot make a TLS connection to {server}: {}", words(&other.to_string())),
            "check the kubeconfig's cluster",
        ),
    };
    Problem::new(message).help(help)
}

fn names(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            // `DnsName("kubernetes")`, `IpAddress(10.0.0.1)`
            let bare = |name: &String| {
                let inside = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest.trim_end_matches(')'));
                words(inside.trim_matches('"'))
            };
            let names: std::collections::BTreeSet<String> = presented.iter().map(bare).collect();
            format!(": {}", names.into_iter().collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    }
}

/// The problem if a login that kube handles (an auth-provider) gave no credentials. gantry handles tokens and plugins
/// itself.
pub fn auth(error: &AuthError, user: Option<&str>) -> Problem {
    let of = user.map_or_else(String::new, |user| format!(" of user {:?}", words(user)));
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let said = words_without_secrets(&String::from_utf8_lossy(&out.stderr));
            let colon = if said.is_empty() { "" } else { ": " };
            Problem::new(format!("the auth-provider{of} failed ({}){colon}{said}", out.status))
                .help("log in again, and run its command manually")
        }
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => Problem::new(format!(
            "the token or password{of} contains characters that cannot be sent, such as a line break"
        ))
        .help("write it into the kubeconfig again, on one line"),
        AuthError::AuthExec(reason) => {
            Problem::new(format!("no credentials{of}: {}", words_without_secrets(reason))).help("log in again")
        }
        AuthError::OAuth(_) | AuthError::Oidc(_) => {
            Problem::new(format!("the login{of} could not be renewed: {}", words_without_secrets(&error.to_string())))
                .help("log in again")
        }
        _ => Problem::new(format!("no credentials{of}")).help("log in again"),
    }
}

/// An I/O error without the operating system's error number.
pub fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => words(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::fake_server;

    #[test]
    fn messages_of_servers_are_escaped_and_on_one_line() {
        assert_eq!(words(" a\n\tb\u{1b}[31m\u{202e} "), "a b\\u{1b}[31m\\u{202e}");
        assert_eq!(words(&"x".repeat(5000)).chars().count(), MAX_CHARS);
    }

    #[test]
    fn the_reason_behind_a_long_value_is_kept() {
        let short = "Invalid value: {\"a\":\"b\"}: field is immutable";
        assert_eq!(words_of_field(short), short);
        let long = format!("Invalid value: {{\"a\":\"{}\"}}: field is immutable", "b: ".repeat(2000));
        let said = words_of_field(&long);
        assert!(said.starts_with("Invalid value: {\"a\":") && said.ends_with("…: field is immutable"), "{said}");
        assert!(said.chars().count() < 250, "{said}");
    }

    #[test]
    fn texts_that_look_like_credentials_are_hidden() {
        for (said, shown) in [
            ("token=eyJhbGciOi.eyJpc3Mi.sig, expired", "[hidden], expired"),
            ("got \"k8s-aws-v1.aHR0cHM6\"", "got \"[hidden]\""),
            ("key: AKIAIOSFODNN7EXAMPLEabcdefgh!", "key: [hidden]!"),
            (
                "error: profile my-team-production-eu-west-1 is not configured",
                "error: profile my-team-production-eu-west-1 is not configured",
            ),
        ] {
            assert_eq!(words_without_secrets(said), shown);
        }
    }

    fn lost_to(error: impl StdError + Send + Sync + 'static) -> String {
        let RequestError::Lost { problem, .. } =
            no_response(&kube::Error::Service(Box::new(error)), &fake_server::peer())
        else {
            panic!("a lost connection is no refusal")
        };
        problem.message
    }

    #[test]
    fn reasons_of_lost_connections_are_distinguished() {
        let wrap = |error: rustls::Error| io::Error::other(io::Error::other(error));
        let server = "https://10.0.0.1:6443";
        let certificate = |error| lost_to(wrap(rustls::Error::InvalidCertificate(error)));
        assert_eq!(
            certificate(CertificateError::UnknownIssuer),
            format!("the certificate of {server} is signed by an unknown authority")
        );
        assert_eq!(
            certificate(CertificateError::NotValidForName),
            format!("the certificate of {server} is for a different name")
        );
        assert_eq!(certificate(CertificateError::Expired), format!("the certificate of {server} has expired"));
        assert_eq!(lost_to(io::Error::from(io::ErrorKind::ConnectionRefused)), "10.0.0.1:6443 refused the connection");
        assert_eq!(lost_to(io::Error::from(io::ErrorKind::TimedOut)), "timed out connecting to 10.0.0.1:6443");
        assert_eq!(
            lost_to(io::Error::from(io::ErrorKind::ConnectionReset)),
            "10.0.0.1:6443 closed the connection before the response was complete"
        );
        let secret = AuthError::AuthExec("no id token: eyJhbGciOiJIUzI1NiJ9".into());
        assert_eq!(lost_to(secret), "no credentials of user \"dev\": no id token: [hidden]");
    }
}

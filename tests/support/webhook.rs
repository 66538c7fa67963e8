//! A conversion or admission webhook: an HTTPS server on loopback that sends the answers of the test.
//!
//! It uses the API server's own self-signed certificate for 127.0.0.1, or a certificate signed by its own CA.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::ControlPlane;

/// The webhook's answer: maps a review to the body of the response.
type Answer = dyn Fn(&Value) -> Value + Send + Sync;

/// A running webhook. Its thread ends with the test process.
pub struct Webhook {
    port: u16,
    ca_bundle: String,
}

impl Webhook {
    /// Answers each review with the result of `answer`.
    pub fn start(control_plane: &ControlPlane, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let certs = control_plane.folder().join("certs");
        let pem = std::fs::read(certs.join("apiserver.crt")).expect("the server's certificate");
        let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(certs.join("apiserver.key")).expect("the server's key");
        Self::serving(chain, key, BASE64.encode(pem), answer)
    }

    /// A webhook with a certificate for 127.0.0.1 and these names, signed by a new CA.
    pub fn with_own_ca(names: &[String], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = params.self_signed(&key).expect("a CA");
        let issuer = Issuer::new(params, key);
        let names: Vec<String> = names.iter().cloned().chain(["127.0.0.1".to_owned()]).collect();
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(names).expect("names").signed_by(&key, &issuer).expect("a certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        Self::serving(vec![leaf.der().clone()], key, BASE64.encode(authority.pem()), answer)
    }

    fn serving(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        ca_bundle: String,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("TLS versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a TLS server");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (config, answer): (_, Arc<Answer>) = (Arc::new(config), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, answer) = (Arc::clone(&config), Arc::clone(&answer));
                // A client that disconnects early does not matter to the test.
                thread::spawn(move || serve(stream, config, &*answer));
            }
        });
        Webhook { port, ca_bundle }
    }

    /// A conversion webhook; `convert` gets an object and the desired version.
    pub fn converting(
        control_plane: &ControlPlane,
        convert: impl Fn(Value, &str) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::start(control_plane, move |review| Self::answer(review, &convert))
    }

    /// The answer to a review, built object by object.
    pub fn answer(review: &Value, convert: impl Fn(Value, &str) -> Value) -> Value {
        let request = &review["request"];
        let wanted = request["desiredAPIVersion"].as_str().expect("a version");
        let objects = request["objects"].as_array().expect("objects");
        let converted: Vec<Value> = objects.iter().map(|object| convert(object.clone(), wanted)).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "response": {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}},
        })
    }

    /// An admission webhook: `refuse` returns the reason to deny an AdmissionReview, or `None` to allow it.
    pub fn admitting(
        control_plane: &ControlPlane,
        refuse: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::start(control_plane, move |review| {
            let refusal = refuse(review);
            let mut response = json!({"uid": review["request"]["uid"], "allowed": refusal.is_none()});
            if let Some(message) = refusal {
                response["status"] = json!({"message": message});
            }
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        })
    }

    /// The `clientConfig` of a webhook configuration that uses it.
    pub fn client_config(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/", self.port), "caBundle": self.ca_bundle})
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The `spec.conversion` of a CRD that uses it.
    pub fn conversion(&self) -> Value {
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://127.0.0.1:{}/convert", self.port), "caBundle": self.ca_bundle},
        }})
    }
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, answer: &Answer) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = answer(&serde_json::from_slice(&body).unwrap_or_default()).to_string();
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}

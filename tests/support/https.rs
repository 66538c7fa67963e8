//! An HTTPS server on loopback that sends the answers of the test, byte for byte.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Complete answers, by the path of the request, and whether the connection then stays open until the client closes it.
pub type Answers = Arc<Mutex<BTreeMap<String, (Vec<u8>, bool)>>>;

/// Starts a server on loopback with a certificate for this name. Its thread ends with the test process.
pub fn listen(name: &str, answers: Answers) -> u16 {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a TLS server");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    let config = Arc::new(config);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, answers) = (Arc::clone(&config), Arc::clone(&answers));
            // A client that disconnects early does not matter to the test.
            thread::spawn(move || serve(stream, config, &answers));
        }
    });
    port
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, answers: &Answers) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut request = String::new();
    stream.read_line(&mut request)?;
    let mut line = String::new();
    while stream.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let path = request.split_whitespace().nth(1).unwrap_or_default();
    let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
    let not_found = || b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nConnection: close\r\n\r\nNot Found\n".to_vec();
    let (answer, waits) = answer.unwrap_or_else(|| (not_found(), false));
    let stream = stream.get_mut();
    stream.write_all(&answer)?;
    if waits {
        stream.flush()?;
        stream.read_exact(&mut [0])?;
    }
    stream.conn.send_close_notify();
    stream.flush()
}

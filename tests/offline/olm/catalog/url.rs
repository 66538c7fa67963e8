//! Catalogs at URLs: over HTTP and TLS, compressed, redirected, missing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{CONFIG, folder, in_folder, small};

/// A server that answers each connection with the result of `answer` for the path, and records the requests.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(tls: Option<Arc<ServerConfig>>, answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (port, requests) = (listener.local_addr().expect("an address").port(), Arc::default());
        let kept: Arc<Mutex<Vec<String>>> = Arc::clone(&requests);
        // It stops with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                match &tls {
                    None => serve(stream, &answer, &kept),
                    Some(tls) => {
                        let connection = ServerConnection::new(Arc::clone(tls)).expect("a connection");
                        serve(StreamOwned::new(connection, stream), &answer, &kept);
                    }
                }
            }
        });
        Server { port, requests }
    }
}

fn serve(stream: impl Read + Write, answer: &impl Fn(&str) -> Vec<u8>, kept: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    loop {
        let mut line = String::new();
        match stream.read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line == "\r\n" => break,
            Ok(_) => request.push_str(&line),
        }
    }
    let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
    kept.lock().expect("the requests").push(request);
    let stream = stream.get_mut();
    let _ = stream.write_all(&answer(&path)).and_then(|()| stream.flush());
}

fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).expect("memory");
    packed.finish().expect("memory")
}

#[test]
fn a_catalog_is_read_from_a_url() {
    let server = Server::start(None, |path| match path {
        "/catalogs/c/api/v1/all" => ok(small("p").as_bytes()),
        "/packed" => ok(&gzip(&small("p"))),
        "/moved?x=1" => {
            b"HTTP/1.1 302 Found\r\nLocation: /packed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
        }
        "/elsewhere" => {
            b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                .to_vec()
        }
        "/forever" => {
            b"HTTP/1.1 302 Found\r\nLocation: /forever\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
        }
        "/half" => {
            [&b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n"[..], small("p").as_bytes()]
                .concat()
        }
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
    });
    let folder = folder(&[]);
    let run = |path: &str| {
        let catalog = format!("--catalog=c=http://127.0.0.1:{}{path}", server.port);
        in_folder(folder.path(), &[&catalog])
    };
    for path in ["/catalogs/c/api/v1/all", "/packed", "/moved?x=1"] {
        let output = run(path).code(0);
        assert!(output.stdout.contains("\np        a "), "{path}: {}", output.stdout);
    }
    let at = format!("127.0.0.1:{}", server.port);
    for (path, message) in [
        ("/gone", format!("the catalog c cannot be read: {at} responded with 404 Not Found to /gone")),
        ("/elsewhere", format!("{at} redirects the catalog to another server: http://192.0.2.1/x")),
        ("/forever", format!("{at} redirects the catalog more than 5 times")),
        ("/half", format!("{at} closed the connection before the response was complete")),
    ] {
        let output = run(path).code(1);
        assert!(output.stderr.contains(&message), "{path}: {}", output.stderr);
    }
    let requests = server.requests.lock().expect("the requests").join("").to_lowercase();
    assert!(requests.contains("user-agent: gantry/") && !requests.contains("authorization"), "{requests}");
}

#[test]
fn a_server_is_trusted_by_its_ca_file_only() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a configuration");
    let server = Server::start(Some(Arc::new(tls)), |_| ok(small("p").as_bytes()));
    let config =
        |ca: &str| format!("{CONFIG}catalogs:\n- {{name: c, url: \"https://localhost:{}/all\"{ca}}}\n", server.port);
    let folder = folder(&[
        ("sub/trusted.yaml", &config(", caFile: ca.pem")),
        ("sub/plain.yaml", &config("")),
        ("sub/wrong.yaml", &config(", caFile: trusted.yaml")),
        ("sub/gone.yaml", &config(", caFile: gone.pem")),
        ("sub/ca.pem", &cert.pem()),
    ]);
    let output = in_folder(folder.path(), &["-c", "sub/trusted.yaml"]).code(0);
    assert!(output.stdout.contains("\np        a "), "{}", output.stdout);
    for (file, message) in [
        ("plain", "set caFile of the catalog to the CA that signed the server's certificate"),
        ("wrong", "contains no PEM certificate"),
        ("gone", "gone.pem cannot be read: no such file"),
    ] {
        let output = in_folder(folder.path(), &["-c", &format!("sub/{file}.yaml")]).code(1);
        assert!(output.stderr.contains(message), "{file}: {}", output.stderr);
    }
}

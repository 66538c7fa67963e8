//! The baseline: the time to list the CRDs and do nothing with them.
//!
//! A TLS connection, one unpaged `GET` of all CRDs without compression, and the answer's bytes counted and dropped:
//! no client that uses the content of the list can be faster.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

/// Lists the CRDs of the server at `address` (`host:port`) and returns the length of the answer in bytes.
pub fn list(address: &str, ca_file: &Path, token: &str) -> io::Result<usize> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file).map_err(io::Error::other)? {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let mut session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut server = Stream::new(&mut session, &mut socket);
    write!(
        server,
        "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {token}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    )?;
    let mut buffer = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        match server.read(&mut buffer)? {
            0 => return Ok(length),
            read => {
                if length == 0 && !buffer.starts_with(b"HTTP/1.1 200 ") {
                    let answer = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    return Err(io::Error::other(answer));
                }
                length += read;
            }
        }
    }
}

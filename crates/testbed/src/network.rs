//! A substitute for the cluster network: connections from the API server to Services and Pods reach servers of the
//! test.
//!
//! The API server refuses to connect to loopback addresses, where the servers of a test listen. With an egress
//! selector, it does not connect directly: it sends `CONNECT ADDRESS` to a proxy, here over a Unix socket, and the
//! proxy can connect anywhere.
//!
//! Source: <https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/>

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The socket, in the folder of the servers.
const SOCKET: &str = "network.sock";
/// The egress selector configuration, in the same folder.
pub const CONFIG: &str = "egress.json";

/// Cluster addresses and the loopback ports that they are routed to.
type Routes = Arc<Mutex<BTreeMap<String, u16>>>;

/// The proxy. Its thread runs until the test process ends.
pub struct Network {
    routes: Routes,
}

impl Network {
    /// Listens on a socket in `folder`, and writes the configuration that makes the API server use it.
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join(SOCKET);
        let config = serde_json::json!({
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{
                "name": "cluster",
                "connection": {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": socket}}},
            }],
        });
        std::fs::write(folder.join(CONFIG), config.to_string()).expect("write the egress selector");
        let listener = UnixListener::bind(&socket).expect("a socket in the folder of the servers");
        let routes = Routes::default();
        let known = Arc::clone(&routes);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let known = Arc::clone(&known);
                // The test does not depend on connections that break.
                thread::spawn(move || connect(stream, &known));
            }
        });
        Network { routes }
    }

    /// Routes connections for `address` to this port on loopback.
    pub fn route(&self, address: &str, port: u16) {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_owned(), port);
    }
}

/// Reads the requested address, and forwards data in both directions.
fn connect(client: UnixStream, routes: &Routes) -> io::Result<()> {
    let mut head = BufReader::new(client.try_clone()?);
    let mut request = String::new();
    head.read_line(&mut request)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    // The client waits for the response, so the buffer contains no further data.
    drop(head);
    let address = request.split_whitespace().nth(1).unwrap_or_default();
    let port = routes.lock().unwrap_or_else(PoisonError::into_inner).get(address).copied();
    let server = port.and_then(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
    let Some(server) = server else {
        return (&client).write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
    };
    (&client).write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut &from_client, &mut &to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let copied = io::copy(&mut &server, &mut &client);
    // Close both directions: when the server disconnects, the client is disconnected too.
    let _ = client.shutdown(Shutdown::Both);
    copied.map(drop)
}

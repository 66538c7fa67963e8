//! A relay on loopback that counts the connections to the API server and leaves them as they are, with their TLS.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;

use gantry_testbed::{ControlPlane, kubeconfig};

/// The relay. Its threads run until the test process ends.
pub struct Relay {
    connections: Arc<AtomicUsize>,
    folder: TempDir,
}

impl Relay {
    pub fn start(control_plane: &ControlPlane) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        let url = format!("https://{}", listener.local_addr().expect("the port of a listener"));
        let to = control_plane.url().trim_start_matches("https://").to_owned();
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                // gantry reports a connection that breaks.
                let _ = join(client, &to);
            }
        });
        let folder = TempDir::new().expect("a temporary folder");
        let text = kubeconfig(&url, Some(&control_plane.ca_file()), "admin", control_plane.token("admin"));
        std::fs::write(folder.path().join("kubeconfig"), text).expect("write a kubeconfig");
        Relay { connections, folder }
    }

    /// The kubeconfig of the admin, through the relay.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The number of connections since the last call.
    pub fn take_connections(&self) -> usize {
        self.connections.swap(0, Ordering::SeqCst)
    }
}

fn join(client: TcpStream, to: &str) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

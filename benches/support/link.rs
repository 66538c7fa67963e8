//! A long link on loopback: delays and slows down what passes between clients and the API server, and counts it.
//!
//! A new connection costs a round trip, each byte waits for half of one, and all connections share the bandwidth of each
//! direction. There is no slow start and no loss.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What passed since the last [`Link::take`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    pub connections: u64,
    /// In both directions.
    pub bytes: u64,
}

/// The link. Its threads run until the process ends.
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    round_trip: Duration,
    bytes_per_second: f64,
    connections: AtomicU64,
    bytes: AtomicU64,
}

/// When the last byte of one direction has left.
type Busy = Arc<Mutex<Instant>>;

impl Link {
    /// Leads to `HOST:PORT`.
    pub fn start(to: &str, round_trip: Duration, bytes_per_second: f64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (connections, bytes) = Default::default();
        let shared = Arc::new(Shared { round_trip, bytes_per_second, connections, bytes });
        let (to, of_listener) = (to.to_owned(), Arc::clone(&shared));
        let directions: [Busy; 2] = std::array::from_fn(|_| Arc::new(Mutex::new(Instant::now())));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (to, shared, directions) = (to.clone(), Arc::clone(&of_listener), directions.clone());
                // The measured process sees a connection that breaks.
                thread::spawn(move || join(client, &to, &shared, directions));
            }
        });
        Link { port, shared }
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// What passed since the last call.
    pub fn take(&self) -> Passed {
        let Shared { connections, bytes, .. } = &*self.shared;
        Passed { connections: connections.swap(0, Ordering::Relaxed), bytes: bytes.swap(0, Ordering::Relaxed) }
    }
}

fn join(client: TcpStream, to: &str, shared: &Arc<Shared>, [up, down]: [Busy; 2]) -> std::io::Result<()> {
    shared.connections.fetch_add(1, Ordering::Relaxed);
    // SYN and SYN-ACK.
    thread::sleep(shared.round_trip);
    let server = TcpStream::connect(to)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    carry(client.try_clone()?, server.try_clone()?, Arc::clone(shared), up);
    carry(server, client, Arc::clone(shared), down);
    Ok(())
}

/// Carries one direction of a connection, in two threads: reading, and writing when the time has come.
fn carry(mut from: TcpStream, mut to: TcpStream, shared: Arc<Shared>, busy: Busy) {
    let (send, receive): (Sender<(Instant, Vec<u8>)>, Receiver<_>) = channel();
    thread::spawn(move || {
        for (due, bytes) in receive {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        to.shutdown(Shutdown::Write).ok();
    });
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            shared.bytes.fetch_add(length as u64, Ordering::Relaxed);
            let takes = Duration::from_secs_f64(length as f64 / shared.bytes_per_second);
            let left = {
                let mut busy = busy.lock().unwrap_or_else(PoisonError::into_inner);
                *busy = (*busy).max(Instant::now()) + takes;
                *busy
            };
            if send.send((left + shared.round_trip / 2, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
}

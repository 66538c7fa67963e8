//! Reads whole files that users name, with a limit on their size and on the time to read them.

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The default size limit in bytes. No configuration or credential that a person wrote is larger.
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// The time limit for reading a pipe, and for the other end of a pipe to be opened. A shell's `<(…)` is a pipe, and the
/// command in it may have to log in first.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a file or a pipe of up to [`MOST_BYTES`] bytes.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MOST_BYTES)
}

/// Reads a file or a pipe of up to `most` bytes.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_file() {
        return read_here(path, most);
    }
    let file = path.to_owned();
    within_limit("its writer did not close it", move || read_here(&file, most))
}

/// Opens or reads a pipe, unless that takes too long; `why` says who has to act.
pub fn within_limit<T: Send + 'static>(
    why: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (send, receive) = mpsc::channel();
    // A thread that blocks forever in `open` or `read` ends with the process.
    thread::Builder::new().spawn(move || {
        let _ = send.send(work());
    })?;
    receive.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let seconds = PATIENCE.as_secs();
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("it is a pipe, and {why} within {seconds} s")))
    })
}

fn read_here(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let mebibytes = most >> 20;
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {mebibytes} MiB")));
    }
    Ok(bytes)
}

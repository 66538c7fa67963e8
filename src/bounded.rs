//! Files that people name, read whole: never longer than they can be, and never for ever.

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// No configuration and no credential that a person wrote is longer; what is longer is another kind of file.
pub const MOST_BYTES: u64 = 4 << 20;

/// How long a pipe may take. A shell's `<(…)` is one, and what runs in it may log in somewhere first.
const PATIENCE: Duration = Duration::from_secs(10);

/// The whole of a file, which may be a pipe.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MOST_BYTES)
}

/// The whole of a file that may have so many bytes.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_file() {
        return read_here(path, most);
    }
    let (send, receive) = mpsc::channel();
    let file = path.to_owned();
    // A thread that waits for ever in `open` or `read` ends with the process.
    thread::Builder::new().spawn(move || {
        let _ = send.send(read_here(&file, most));
    })?;
    receive.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let seconds = PATIENCE.as_secs();
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!(
                "it is a pipe, and its writer did not close it within \
            {seconds} s"
            ),
        ))
    })
}

fn read_here(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let mebibytes = most >> 20;
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {mebibytes} MiB")));
    }
    Ok(bytes)
}

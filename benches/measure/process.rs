//! One run of a process: its wall time, its processor time and its peak memory.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

pub struct Run {
    pub wall: Duration,
    /// Of all its threads, in user and kernel mode.
    pub processor: Duration,
    /// The largest resident set, in bytes.
    pub peak: u64,
    pub code: Option<i32>,
}

/// Runs `command` until it exits.
///
/// The kernel initialises a child's peak memory with that of its parent, so the caller must use less memory than the
/// measured process.
#[expect(unsafe_code, reason = "std does not say what a process used")]
pub fn run(command: &mut Command) -> io::Result<Run> {
    let started = Instant::now();
    let child = command.spawn()?;
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: the struct has only integers, for which all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values of the right types; the child is ours and nothing else waits for it.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let wall = started.elapsed();
    // Kilobytes, but bytes on macOS.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak = u64::try_from(usage.ru_maxrss).unwrap_or_default() * unit;
    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    let processor = [usage.ru_utime, usage.ru_stime].into_iter().map(duration).sum();
    Ok(Run { wall, processor, peak, code })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

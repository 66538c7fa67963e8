//! Collects the surroundings of the process, calls the library, ends with its exit code.

use std::io::{self, BufReader, BufWriter, IsTerminal};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Parser;
use gantry::cli::Cli;
use gantry::date::Date;
use gantry::run::{Host, run};
use tokio::sync::watch;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(async {
        let (interrupt, stop) = watch::channel(false);
        tokio::spawn(async move {
            // The first interrupt asks the run to end between two objects; the second one ends it where it is.
            interrupted().await;
            let _ = interrupt.send(true);
            interrupted().await;
            std::process::exit(1);
        });
        let mut host = Host {
            stdin: Some(Box::new(BufReader::new(io::stdin()))),
            stdout: Box::new(BufWriter::new(io::stdout())),
            stderr: Box::new(io::stderr()),
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            environment: std::env::vars_os()
                .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            working_directory: std::env::current_dir().unwrap_or_else(|_| ".".into()),
            today: Date::of(SystemTime::now()),
            stop,
        };
        run(cli, &mut host).await
    });
    // A plugin or a request that still hangs must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(code as u8)
}

/// Ctrl-C, or what the system sends to end a process.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

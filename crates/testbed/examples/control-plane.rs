//! Starts a control plane to try something by hand, prints the kubeconfig of its admin, and ends with standard input
//! (docs/internals/testing.md):
//!
//!     cargo run -p gantry-testbed --example control-plane -- [RELEASE] [--controllers]

// On other systems the crate is empty.
#[cfg(unix)]
mod command {
    use std::io;
    use std::process::ExitCode;

    use gantry_testbed::ControlPlane;

    pub fn run_command() -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let started = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => ControlPlane::start(),
            ["--controllers"] => ControlPlane::start_with_controllers(),
            [release] if !release.starts_with('-') => ControlPlane::start_release(release),
            [release, "--controllers"] => ControlPlane::start_release_with_controllers(release),
            _ => {
                eprintln!("usage: control-plane [RELEASE] [--controllers], with a release such as 1.30");
                return ExitCode::from(2);
            }
        };
        println!("{}", started.kubeconfig("admin").display());
        // An error of standard input ends it too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        ExitCode::SUCCESS
    }
}

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    command::run_command()
}

#[cfg(not(unix))]
fn main() {}

//! The manual pages, from the definition of the command line.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use super::host::Host;
use crate::cli::Cli;
use gantry_core::problem::{Error, Problem, Result};

/// Writes the manual pages of all commands.
pub fn man(folder: &Path, host: &Host) -> Result<String> {
    let path = host.working_directory.join(folder);
    let written = fs::create_dir_all(&path).and_then(|()| clap_mangen::generate_to(Cli::command(), &path));
    let shown = folder.display();
    written.map_err(|error| {
        Error::failed(Problem::new(format!("cannot write to {shown}: {error}")).help("name another folder"))
    })?;
    Ok(String::new())
}

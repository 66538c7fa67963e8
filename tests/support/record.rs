//! `GANTRY_RECORD=<folder>` keeps what `gantry` printed in each test, so that a change of words can be read as the
//! difference of two folders. What differs from run to run is replaced.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::sentences::steady;

/// Adds the output to the file of the test that runs.
pub fn output(output: &super::Output) {
    let Some(folder) = std::env::var_os("GANTRY_RECORD") else { return };
    let test = std::thread::current().name().unwrap_or("main").replace("::", ".");
    let steady = steady(output.to_string());
    std::fs::create_dir_all(&folder).expect("the folder of the record");
    let path = Path::new(&folder).join(format!("{test}.txt"));
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{steady}")).expect("write the record");
}

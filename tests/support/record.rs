//! `GANTRY_RECORD=<folder>` records what `gantry` prints in each test, so that changes of messages can be read as the
//! difference of two folders. Values that differ from run to run are replaced.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::sentences::steady;

/// Appends the output to the file of the current test.
pub fn output(output: &super::Output) {
    let Some(folder) = std::env::var_os("GANTRY_RECORD") else { return };
    let test = std::thread::current().name().unwrap_or("main").replace("::", ".");
    let steady = steady(output.to_string());
    std::fs::create_dir_all(&folder).expect("the folder of the record");
    let path = Path::new(&folder).join(format!("{test}.txt"));
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{steady}")).expect("write the record");
}

//! The screens in `README.md` and `docs/output.md` are the output of the built binary.
//!
//! The test runs each code block that begins with `$ gantry …`: those of the README from the root of the repository,
//! those of `docs/output.md` in `docs/pictures`. `UPDATE_DOCS=1 cargo test --test offline pictures` updates them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The command's output as on a terminal, without the lines for scripts on stderr.
fn printed(command: &str, folder: &Path) -> String {
    let arguments = command.split_whitespace().skip(1);
    let home = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_gantry"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", home.path())
        .output()
        .expect("gantry runs");
    String::from_utf8(output.stdout).expect("text")
}

/// The page with the current output of its commands, and their number.
fn renewed(page: &str, folder: &Path) -> (String, usize) {
    let mut out = String::new();
    let mut lines = page.lines();
    let mut pictures = 0;
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(command) = line.strip_prefix("$ ").filter(|command| command.starts_with("gantry ")) else { continue };
        pictures += 1;
        out.push_str(&printed(command, folder));
        out.push_str("```\n");
        // Skips the old output.
        lines.by_ref().find(|line| *line == "```").expect("the block ends");
    }
    (out, pictures)
}

#[test]
fn the_screens_of_the_documentation_are_real() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for (page, folder, expected) in [("README.md", "", 1), ("docs/output.md", "docs/pictures", 2)] {
        let path = root.join(page);
        let written = std::fs::read_to_string(&path).expect("the page is there");
        let (fresh, pictures) = renewed(&written, &root.join(folder));
        assert_eq!(pictures, expected, "{page}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &fresh).expect("it can be written");
        } else {
            assert_eq!(written, fresh, "{page} is stale: run UPDATE_DOCS=1 cargo test --test offline pictures");
        }
    }
}

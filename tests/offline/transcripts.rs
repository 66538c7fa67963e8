//! The console transcripts of the documentation match what the commands really print.
//!
//! A shell runs every line of a page that begins with `$ `, one after another in a copy of the page's folder. The
//! output of both streams must be the text that follows, up to the next command or the end of the block. `$ echo $?`
//! prints the exit code. `UPDATE_DOCS=1 cargo test --test offline transcripts` updates the output.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::transcript::{Piece, pieces};

/// A folder in which commands are run one after another.
struct Session {
    folder: TempDir,
    home: TempDir,
    code: i32,
    ran: Vec<String>,
}

impl Session {
    fn new(of: &Path) -> Session {
        let folder = TempDir::new().expect("a folder");
        copy(of, folder.path());
        Session { folder, home: TempDir::new().expect("a home"), code: 0, ran: Vec::new() }
    }

    /// The command's output on both streams, as on a terminal.
    fn run(&mut self, command: &str) -> String {
        self.ran.push(command.to_owned());
        if command == "echo $?" {
            return format!("{}\n", std::mem::take(&mut self.code));
        }
        let binaries = Path::new(env!("CARGO_BIN_EXE_gantry")).parent().expect("a folder").display();
        let output = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", format!("{binaries}:/usr/bin:/bin"))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        self.code = output.status.code().expect("an exit code");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("its type").is_dir() {
            true => {
                fs::create_dir(&to).expect("a folder");
                copy(&entry.path(), &to);
            }
            false => drop(fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

/// The page with the current output of its commands.
fn renewed(page: &str, session: &mut Session) -> String {
    let piece = |piece| match piece {
        Piece::Line(line) => format!("{line}\n"),
        Piece::BlockEnd(_) => String::new(),
        Piece::Command(shown) => shown.with_output(&session.run(shown.command)),
    };
    pieces(page).into_iter().map(piece).collect()
}

#[test]
fn the_worked_example_of_extensions_prints_what_the_page_says() {
    let ran = is_fresh("docs/checks/ExtensionResolution.md", "tests/fixtures/pipelines");
    // Without these there would be nothing to compare.
    let count = |start: &str| ran.iter().filter(|command| command.starts_with(start)).count();
    assert_eq!((count("gantry "), count("echo $?")), (4, 3), "{ran:?}");
}

#[test]
fn the_examples_of_formats_are_what_gantry_writes() {
    let ran = is_fresh("docs/formats.md", "docs/pictures");
    assert_eq!(ran.len(), 7, "{ran:?}");
}

/// Runs the commands of a page in a copy of a folder, and returns them.
fn is_fresh(page: &str, folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join(page);
    let written = fs::read_to_string(&path).expect("the page is there");
    let mut session = Session::new(&root.join(folder));
    let fresh = renewed(&written, &mut session);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &fresh).expect("it can be written");
    } else {
        assert_eq!(written, fresh, "{page} is stale: run UPDATE_DOCS=1 cargo test --test offline transcripts");
    }
    session.ran
}

#[test]
fn only_what_is_left_out_may_be_anything() {
    let page = "  ```console\n  $ one\n  first\n  …\n  last …!\n  $ two\n  ```\ntext\n";
    let commands: Vec<_> = pieces(page)
        .into_iter()
        .filter_map(|piece| if let Piece::Command(shown) = piece { Some(shown) } else { None })
        .collect();
    let [one, two] = &commands[..] else { panic!("{} commands", commands.len()) };
    for output in ["first\nlast !\n", "first\na\n\nb\nlast of all!\n"] {
        assert!(one.is_output(output), "{output}");
        assert_eq!(one.with_output(&one.output.join("\n")), "  $ one\n  first\n  …\n  last …!\n");
    }
    for output in
        ["", "first\n", "a\nfirst\nlast !\n", "first\nlast of all\n", "first\nlast !\nb\n", "first\nat last !\n"]
    {
        assert!(!one.is_output(output), "{output}");
    }
    assert!(two.is_output("") && !two.is_output("a\n"));
}

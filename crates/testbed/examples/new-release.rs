//! Shows what a release of Kubernetes changes in the tables that gantry has from it, and how to let it in
//! (docs/internals/releases.md):
//!
//!     cargo run -p gantry-testbed --example new-release -- 1.38
//!
//! With `--write`, the tables are replaced, and a release that `control-plane/releases.txt` lacks is added to it.

// On other systems the crate is empty.
#[cfg(unix)]
mod command {
    use std::error::Error;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, ExitCode};

    use gantry_testbed::{module_requiring, releases};

    /// A program of `control-plane` with its arguments, and the file that has its output, from the root of the workspace.
    const TABLES: [(&str, &[&str], &str); 3] = [
        ("cel-oracle", &["-signatures"], "crates/k8s-cel/src/signatures.txt"),
        ("api-lifecycle", &[], "crates/preflight/src/api_availability/lifecycle.txt"),
        ("library-types", &[], "crates/preflight/src/crd_upgrade_safety/library/types.txt"),
    ];

    pub fn run_command() -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let (release, write) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [release] if !release.starts_with('-') => (release, false),
            [release, "--write"] => (release, true),
            _ => {
                eprintln!("usage: new-release RELEASE [--write], with a release such as 1.38");
                return ExitCode::from(2);
            }
        };
        match regenerate(release, write) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn regenerate(release: &str, write: bool) -> Result<(), Box<dyn Error>> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = package.ancestors().nth(2).ok_or("the package is not in a workspace")?;
        // A prefix of a version selects its newest patch version.
        let query = format!("k8s.io/kubernetes@v{release}");
        let version =
            run("go", &["list", "-m", "-f", "{{.Version}}", &query], &std::env::temp_dir())?.trim().to_owned();
        println!("Kubernetes {release}: {version}");

        if !releases().contains(&release) {
            let module = format!("k8s.io/kubernetes@{version}");
            let answer = run("go", &["mod", "download", "-json", &module], &std::env::temp_dir())?;
            let answer: serde_json::Value = serde_json::from_str(&answer)?;
            let line = format!("{version} {}", answer["Sum"].as_str().ok_or("the module has no checksum")?);
            println!("releases.txt lacks the line\n{line}");
            if write {
                let list = package.join("control-plane/releases.txt");
                fs::write(&list, format!("{}{line}\n", fs::read_to_string(&list)?))?;
            }
        }

        let folder = root.join("target/new-release").join(&version);
        fs::create_dir_all(&folder)?;
        for (name, text) in ["go.mod", "go.sum"].into_iter().zip(module_requiring(&version)) {
            fs::write(folder.join(name), text)?;
        }
        for (program, arguments, table) in TABLES {
            fs::create_dir_all(folder.join(program))?;
            for source in fs::read_dir(package.join("control-plane").join(program))? {
                let source = source?;
                fs::copy(source.path(), folder.join(program).join(source.file_name()))?;
            }
            let path = format!("./{program}");
            let text = run("go", &[&["run", "-mod=mod", &path], arguments].concat(), &folder)?;
            let new = folder.join(format!("{program}.txt"));
            fs::write(&new, text)?;
            show_difference(&root.join(table), &new, table)?;
            if write {
                fs::copy(&new, root.join(table))?;
            }
        }
        println!("next: GANTRY_RELEASES={release} cargo test --test releases -- --ignored --nocapture");
        Ok(())
    }

    fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<String, Box<dyn Error>> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("GOWORK", "off").env_remove("GOFLAGS");
        let output = command.output().map_err(|e| format!("{program} does not start: {e}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => {
                Err(format!("`{program} {}`: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)).into())
            }
        }
    }

    /// Prints the lines that one of the tables has and the other lacks.
    fn show_difference(old: &PathBuf, new: &PathBuf, name: &str) -> Result<(), Box<dyn Error>> {
        let (old, new) = (fs::read_to_string(old)?, fs::read_to_string(new)?);
        let only_in = |text: &str, other: &str, sign: &str| -> Vec<String> {
            let others: Vec<&str> = other.lines().collect();
            text.lines().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}")).collect()
        };
        let lines = [only_in(&old, &new, "-"), only_in(&new, &old, "+")].concat();
        match lines.is_empty() {
            true => println!("{name}: no differences"),
            false => println!("{name}: {} lines differ\n{}", lines.len(), lines.join("\n")),
        }
        Ok(())
    }
}

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    command::run_command()
}

#[cfg(not(unix))]
fn main() {}

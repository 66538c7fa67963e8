//! Where the kubeconfig is, and what it says.
//!
//! kube parses the files; which ones is decided here as kubectl decides it, and what is wrong with one is said without
//! a piece of it, as every line of it may be a token.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use kube::config::{Kubeconfig, KubeconfigError};

use super::Connection;
use super::errors::io_words;
use crate::problem::{Error, Location, Problem, Result};

type Variables = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// What a process finds around it. A value and not a look into the environment, so that tests have their own.
pub struct Surroundings {
    variables: Box<Variables>,
    /// Whether a credential plugin could ask somebody.
    pub has_terminal: bool,
}

impl Surroundings {
    pub fn of_process() -> Self {
        Surroundings {
            variables: Box::new(|name| std::env::var_os(name)),
            has_terminal: std::io::stdin().is_terminal(),
        }
    }

    #[cfg(test)]
    pub fn for_test(variables: &[(&str, &str)]) -> Self {
        let variables: Vec<(String, OsString)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let find = move |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        Surroundings { variables: Box::new(find), has_terminal: false }
    }

    pub fn variable(&self, name: &str) -> Option<OsString> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }
}

/// The merged kubeconfig; `None` where there is no file, or nothing in it.
pub fn read(connection: &Connection, surroundings: &Surroundings) -> Result<Option<Kubeconfig>> {
    if let Some(path) = &connection.kubeconfig {
        return read_file(path)?.map(Some).ok_or_else(|| {
            Error::usage(
                Problem::new(format!("kubeconfig {} does not exist", path.display())).help("check --kubeconfig"),
            )
        });
    }
    let mut merged: Option<Kubeconfig> = None;
    for path in default_paths(surroundings) {
        // As kubectl does: of the files in KUBECONFIG those count that exist.
        let Some(kubeconfig) = read_file(&path)? else { continue };
        merged = Some(match merged {
            None => kubeconfig,
            Some(merged) => merged.merge(kubeconfig).map_err(|_| {
                let message = format!("{} is of another kind or apiVersion than the files before it", path.display());
                Error::failed(Problem::new(message).help("check the files in KUBECONFIG"))
            })?,
        });
    }
    Ok(merged.filter(|kubeconfig| !kubeconfig.contexts.is_empty() || kubeconfig.current_context.is_some()))
}

fn default_paths(surroundings: &Surroundings) -> Vec<PathBuf> {
    if let Some(list) = surroundings.variable("KUBECONFIG") {
        return std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect();
    }
    let home = surroundings.variable("HOME").or_else(|| surroundings.variable("USERPROFILE"));
    home.map(|home| Path::new(&home).join(".kube").join("config")).into_iter().collect()
}

/// One kubeconfig; `None` where there is no such file.
fn read_file(path: &Path) -> Result<Option<Kubeconfig>> {
    let problem = match Kubeconfig::read_from(path) {
        Ok(kubeconfig) => return Ok(Some(kubeconfig)),
        Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(KubeconfigError::ReadConfig(error, _)) => {
            Problem::new(format!("kubeconfig {} cannot be read: {}", path.display(), io_words(&error)))
        }
        // The parser's own words quote the file, and so would an excerpt, which goes with a column.
        Err(KubeconfigError::Parse(error)) => {
            let line = error.location().and_then(|at| usize::try_from(at.line()).ok()).unwrap_or(0);
            Problem::new("this is no valid kubeconfig")
                .at(Location { file: path.display().to_string(), line, column: 0 })
                .help("`kubectl config view` with this file says more")
        }
        Err(_) => Problem::new(format!("{} is no valid kubeconfig", path.display())),
    };
    Err(Error::failed(problem))
}

/// The places that were looked at, for people.
pub fn looked_in(surroundings: &Surroundings) -> String {
    match default_paths(surroundings).as_slice() {
        [] => "no place, as neither KUBECONFIG nor HOME is set".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

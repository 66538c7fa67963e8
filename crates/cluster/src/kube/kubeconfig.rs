//! Finds and reads the kubeconfig.
//!
//! kube parses the files. This module decides which files to read, in the same way as kubectl. Error messages never
//! quote a file, because every line of it can be a token.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::{Kubeconfig, KubeconfigError};

use super::Connection;
use super::errors::{io_words, words};
use gantry_core::bounded;
use gantry_core::problem::{Error, Location, Problem, Result};

type Variables = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// The environment of a process. It is a value, so that tests can supply their own.
pub struct ProcessEnvironment {
    variables: Box<Variables>,
    /// Whether a credential plugin can prompt the user.
    pub has_terminal: bool,
}

impl ProcessEnvironment {
    pub fn of_process() -> Self {
        ProcessEnvironment {
            variables: Box::new(|name| std::env::var_os(name)),
            has_terminal: std::io::stdin().is_terminal(),
        }
    }

    #[cfg(test)]
    pub fn for_test(variables: &[(&str, &str)]) -> Self {
        let variables: Vec<(String, OsString)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let find = move |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        ProcessEnvironment { variables: Box::new(find), has_terminal: false }
    }

    pub fn variable(&self, name: &str) -> Option<OsString> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// Whether requests use HTTP/1.1, as those of kubectl do, in networks that break HTTP/2.
    /// Source: <https://github.com/kubernetes/apimachinery/blob/master/pkg/util/net/http.go>
    pub fn disables_http2(&self) -> bool {
        self.variable("DISABLE_HTTP2").is_some()
    }
}

/// A kubeconfig that was read once, to be used for several of its contexts.
#[derive(Debug, Clone)]
pub struct ReadKubeconfig(pub(super) Arc<Kubeconfig>);

impl ReadKubeconfig {
    /// The names of the contexts, in the order of the files.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.0.contexts.iter().map(|context| context.name.as_str())
    }
}

/// The merged kubeconfig; `None` if there is no file, or nothing in it.
pub fn read(connection: &Connection, surroundings: &ProcessEnvironment) -> Result<Option<Kubeconfig>> {
    if let Some(path) = &connection.kubeconfig {
        return read_file(path)?.map(Some).ok_or_else(|| {
            Error::usage(
                Problem::new(format!("kubeconfig {} does not exist", path.display())).help("check --kubeconfig"),
            )
        });
    }
    let mut merged: Option<Kubeconfig> = None;
    for path in default_paths(surroundings) {
        // Like kubectl: files in KUBECONFIG that do not exist are ignored.
        let Some(kubeconfig) = read_file(&path)? else { continue };
        merged = Some(match merged {
            None => kubeconfig,
            Some(merged) => merged.merge(kubeconfig).map_err(|_| {
                let message = format!("{} has a different kind or apiVersion than the files before it", path.display());
                Error::failed(Problem::new(message).help("check the files in KUBECONFIG"))
            })?,
        });
    }
    // Flags can name a cluster and a user without a context.
    let names_parts = connection.overrides.cluster.is_some() || connection.overrides.user.is_some();
    Ok(merged
        .filter(|kubeconfig| names_parts || !kubeconfig.contexts.is_empty() || kubeconfig.current_context.is_some()))
}

fn default_paths(surroundings: &ProcessEnvironment) -> Vec<PathBuf> {
    if let Some(list) = surroundings.variable("KUBECONFIG") {
        return std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect();
    }
    let home = surroundings.variable("HOME").or_else(|| surroundings.variable("USERPROFILE"));
    home.map(|home| Path::new(&home).join(".kube").join("config")).into_iter().collect()
}

/// Reads one kubeconfig; `None` if the file does not exist.
fn read_file(path: &Path) -> Result<Option<Kubeconfig>> {
    let unreadable =
        |why: &str| Error::failed(Problem::new(format!("kubeconfig {} cannot be read: {why}", path.display())));
    let text = match bounded::read(path) {
        Ok(bytes) => text(bytes).ok_or_else(|| unreadable("it is not UTF-8"))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&io_words(&error))),
    };
    let problem = match Kubeconfig::from_yaml(&text) {
        Ok(mut kubeconfig) => {
            unique_names(&kubeconfig, path)?;
            resolve(&mut kubeconfig, path.parent().unwrap_or(Path::new("")));
            return Ok(Some(kubeconfig));
        }
        // The parser's own message quotes the file, and so would an excerpt, which a column would add.
        Err(KubeconfigError::Parse(error)) => {
            let line = error.location().and_then(|at| usize::try_from(at.line()).ok()).unwrap_or(0);
            Problem::new("not a valid kubeconfig")
                .at(Location { file: path.display().to_string(), line, column: 0 })
                .help("run `kubectl config view` with this file for details")
        }
        Err(_) => Problem::new(format!("{} is not a valid kubeconfig", path.display())),
    };
    Err(Error::failed(problem))
}

/// Refuses a file with two entries of one name, like kubectl: which of them is meant is unknown. Several files may
/// contain a name each; the first counts.
fn unique_names(kubeconfig: &Kubeconfig, path: &Path) -> Result<()> {
    let clusters = kubeconfig.clusters.iter().map(|named| ("clusters", &named.name));
    let users = kubeconfig.auth_infos.iter().map(|named| ("users", &named.name));
    let contexts = kubeconfig.contexts.iter().map(|named| ("contexts", &named.name));
    let mut seen = BTreeSet::new();
    match clusters.chain(users).chain(contexts).find(|entry| !seen.insert(*entry)) {
        None => Ok(()),
        Some((list, name)) => {
            let message = format!("kubeconfig {} has two {list} with the name {:?}", path.display(), words(name));
            Err(Error::failed(Problem::new(message).help("rename or remove one of them")))
        }
    }
}

/// Decodes UTF-8, or what editors on Windows write instead.
fn text(bytes: Vec<u8>) -> Option<String> {
    let wide = |number: fn([u8; 2]) -> u16| -> Option<String> {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| number([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, ..] => wide(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => wide(u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes).ok(),
    }
}

/// Relative paths are relative to the folder of their kubeconfig, as in kubectl. A plugin without a slash is looked up
/// in PATH.
fn resolve(kubeconfig: &mut Kubeconfig, folder: &Path) {
    let absolute = |path: &mut Option<String>| {
        if let Some(path) = path.as_mut().filter(|path| Path::new(path.as_str()).is_relative())
            && let Some(whole) = folder.join(&*path).to_str()
        {
            *path = whole.to_owned();
        }
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        absolute(&mut cluster.certificate_authority);
    }
    for auth in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        for path in [&mut auth.client_certificate, &mut auth.client_key, &mut auth.token_file] {
            absolute(path);
        }
        let command = auth.exec.as_mut().map(|exec| &mut exec.command);
        if let Some(command) =
            command.filter(|name| name.as_ref().is_some_and(|name| name.contains(std::path::MAIN_SEPARATOR)))
        {
            absolute(command);
        }
    }
}

/// The searched locations, for messages.
pub fn searched_paths(surroundings: &ProcessEnvironment) -> String {
    match default_paths(surroundings).as_slice() {
        [] => "no location (neither KUBECONFIG nor HOME is set)".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

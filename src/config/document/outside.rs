//! Whether the project file names an output or a target outside its folder.

use std::path::{Component, Path};

use crate::config::keys::Kind;

/// The first output file that is not below `folder`, or the target, if it is a folder that is not below `folder`.
pub fn outside<'v>(kind: Kind, value: &'v serde_json::Value, folder: &Path) -> Option<&'v str> {
    let leads_out = |path: &str| !is_below(Path::new(path), folder);
    match kind {
        Kind::Outputs => {
            let outputs = value.as_array()?.iter().filter_map(serde_json::Value::as_str);
            outputs.into_iter().find(|output| output.split_once('=').is_some_and(|(_, file)| leads_out(file)))
        }
        Kind::Target => value.as_str().filter(|target| target.strip_prefix("dir:").is_some_and(leads_out)),
        _ => None,
    }
}

/// Whether a path, relative to `folder`, is a file below it after symbolic links are resolved.
fn is_below(path: &Path, folder: &Path) -> bool {
    let is_plain = |step: Component<'_>| matches!(step, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_plain) {
        return false;
    }
    let Ok(root) = folder.canonicalize() else { return false };
    for path in root.join(path).ancestors() {
        match path.canonicalize() {
            Ok(real) => return real.starts_with(&root),
            // Writing to a dangling link creates its destination, which can be anywhere.
            Err(_) if path.is_symlink() => return false,
            Err(_) => {}
        }
    }
    false
}

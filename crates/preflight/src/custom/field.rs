//! Parses field paths in the notations that users and programs write: `spec.containers[0].image`,
//! `.metadata.labels[app.kubernetes.io/name]`.

use gantry_core::resource::Step;

/// The steps of a path; `None` if the path is invalid.
pub fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    rest = rest.strip_prefix('.').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = inner.find(']')?;
            let key = inner[..end].trim_matches(['\'', '"']);
            let quoted = key.len() != end;
            steps.push(match key.parse::<usize>() {
                Ok(index) if !quoted => Step::Index(index),
                _ if key.is_empty() => return None,
                _ => Step::Key(key.to_owned()),
            });
            rest = &inner[end + 1..];
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            let key = &rest[..end];
            // Some tools write the index of an item as a name: spec.containers.0.image.
            steps.push(key.parse().map_or_else(|_| Step::Key(key.to_owned()), Step::Index));
            rest = &rest[end..];
        }
        if let Some(next) = rest.strip_prefix('.') {
            if next.is_empty() {
                return None;
            }
            rest = next;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_people_write_them() {
        let key = |key: &str| Step::from(key);
        for (path, expected) in [
            ("spec.replicas", vec![key("spec"), key("replicas")]),
            (".spec.a[2].b", vec![key("spec"), key("a"), 2.into(), key("b")]),
            ("$.spec.a.2", vec![key("spec"), key("a"), 2.into()]),
            ("metadata.labels[a.b/c]", vec![key("metadata"), key("labels"), key("a.b/c")]),
            ("metadata['labels'][\"7\"]", vec![key("metadata"), key("labels"), key("7")]),
            ("", vec![]),
        ] {
            assert_eq!(steps(path), Some(expected), "{path}");
        }
        for path in ["a..b", "a[", "a[]", "a.", "..", "a[0"] {
            assert_eq!(steps(path), None, "{path}");
        }
    }
}

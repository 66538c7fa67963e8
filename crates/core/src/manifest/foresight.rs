//! Guesses about a document that need no parsing.
//!
//! The configuration must be known before the first request, and parsing a hundred megabytes of YAML takes as long as
//! the requests. So the few documents that may be configuration are parsed first. The live CRDs can then be requested
//! while all other documents are parsed.

use memchr::{memchr3_iter, memmem};

/// Whether the document may be a Config. `false` is certain.
///
/// The apiVersion of a Config contains the name of the group. YAML and JSON have few ways to write that other than
/// literally: escapes in double quotes, and tags (`!!binary`).
pub(super) fn may_be_config(text: &str) -> bool {
    const GROUPS: [&str; 2] = ["gantry.dev", "kapp.k14s.io"];
    let bytes = text.as_bytes();
    // Several fast searches: one search for all of these texts looks at every byte.
    let is_sign = |at: usize| match &bytes[at..] {
        [b'\\', next, ..] => matches!(next, b'x' | b'u' | b'U' | b'\n' | b'\r'),
        [b'!', next, ..] => matches!(next, b'!' | b'<'),
        rest => rest.starts_with(b"%TAG"),
    };
    GROUPS.iter().any(|group| memmem::find(bytes, group.as_bytes()).is_some())
        || memchr3_iter(b'\\', b'!', b'%', bytes).any(is_sign)
}

/// The name of the CRD in the document, if it has the usual layout. This is a guess: good enough to prefetch, but not
/// to base a decision on.
pub(super) fn crd_name(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    let mut is_crd = false;
    let mut name = None;
    while let Some(line) = lines.next() {
        match line.trim_end() {
            "kind: CustomResourceDefinition" => is_crd = true,
            "metadata:" if name.is_none() => name = name_below(lines.clone()),
            "spec:" => break,
            _ => {}
        }
    }
    name.filter(|_| is_crd)
}

/// The value of `name` in the block mapping that starts with the first of `lines`.
fn name_below<'a>(mut lines: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let first = lines.clone().next()?;
    let indent = first.len() - first.trim_start_matches(' ').len();
    if indent == 0 {
        return None;
    }
    lines.find_map(|line| match line.as_bytes().iter().position(|byte| *byte != b' ') {
        Some(found) if found < indent => Some(None),
        Some(found) if found == indent => line[indent..].strip_prefix("name: ").map(|name| {
            let name = name.trim().trim_matches(['"', '\'']);
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
            is_name.then_some(name)
        }),
        _ => None,
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_is_recognized_in_any_notation() {
        for text in [
            "apiVersion: gantry.dev/v1alpha1\nkind: Config",
            "kind: Config\napiVersion: >-\n  kapp.k14s.io/v1alpha1",
            r#"{"kind": "Config", "apiVersion": "gantry\u002edev/v1alpha1"}"#,
            r#"{kind: Config, apiVersion: "gantr\x79.dev/v1alpha1"}"#,
            r#"{kind: Config, apiVersion: "\U00000067antry.dev/v1alpha1"}"#,
            "kind: Config\napiVersion: \"gantry.\\\n  dev/v1alpha1\"",
            "kind: Config\napiVersion: \"gantry.\\\r\n  dev/v1alpha1\"",
            "kind: Config\napiVersion: !!binary Z2FudHJ5LmRldi92MWFscGhhMQ==",
            "kind: Config\napiVersion: !<tag:yaml.org,2002:binary> Z2FudHJ5LmRldi92MWFscGhhMQ==",
            "%TAG !b! tag:yaml.org,2002:\n---\nkind: Config\napiVersion: !b!binary Z2FudHJ5LmRldi92MWFscGhhMQ==",
        ] {
            assert!(may_be_config(text), "{text}");
            let source = std::sync::Arc::new(crate::manifest::ManifestSource::new("t", text.into()));
            let loaded = crate::manifest::read(&source).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
            assert_eq!((loaded.configs.len(), loaded.manifests.len()), (1, 0), "{text}");
        }
        for text in ["apiVersion: v1\nkind: Config", "a: \"a\\n\\\"b\" # !has(x) && a != b", "pattern: '^\\d\\.'"] {
            assert!(!may_be_config(text), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_crd_is_guessed_from_the_usual_layout() {
        let crd =
            |metadata: &str| format!("---\nkind: CustomResourceDefinition\nmetadata:\n{metadata}\nspec:\n  x: 1\n");
        for (text, name) in [
            (crd("  name: a.b"), Some("a.b")),
            (crd("    annotations:\n      name: no\n    name: \"a-1.b\"  \n    labels: {}"), Some("a-1.b")),
            (crd("\r\n  name: a.b").replace("metadata:\n\r", "metadata:\r"), Some("a.b")),
            (crd("  labels:\n    name: no"), None),
            (crd("  name: *alias"), None),
            (crd("name: a.b"), None),
            ("metadata:\n  name: a.b\nkind: CustomResourceDefinition\n".into(), Some("a.b")),
            ("metadata:\n  name: a.b\nkind: Pod\nspec:\nkind: CustomResourceDefinition\n".into(), None),
            ("kind: CustomResourceDefinition\nmetadata:".into(), None),
            ("kind: CustomResourceDefinition\nmetadata:\n\n  name: a.b".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(crd_name(&text), name, "{text}");
        }
    }
}

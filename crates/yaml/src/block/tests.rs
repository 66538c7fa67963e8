//! Compares the reader with libyaml, on tables and on generated texts.

use proptest::prelude::*;

use super::*;
use crate::compose::compose_any;
use crate::tests::table::{DOCUMENTS, REFUSED, SCALARS};

/// Whether this reader accepts the text. If so, libyaml must produce the same document.
fn is_read(text: &str) -> bool {
    let Some(own) = compose(text) else { return false };
    match compose_any(text) {
        Ok(Some(theirs)) => assert_eq!(own.nodes, theirs.nodes, "{text:?}"),
        other => panic!("{text:?} is accepted here, but libyaml returns {:?}", other.map(|_| "empty")),
    }
    true
}

/// The shapes that programs write. Each must be accepted here: falling back to libyaml would be slow.
const READ: &[&str] = &[
    "a: 1\n",
    "---\na: b\n",
    "# c\n\na: b # d\n  # e\nb:   c  \n",
    "a:\n  b:\n    c: d\n  e: f\ng: h\n",
    "a:\n- b\n- c: d\n  e: f\n-\n- - x\n  - y\n-   g:\n      h: i\nj:\n  - k\n  -\nl:\n",
    "- a\n- b:\n- c:\n  - d\n  e: f\n",
    "a: {}\nb: []\nc:\n- {}\n- []  # x\n",
    "a: ''\nb: \"\"\n'c': 'it''s'\n\"d\": \"x \\\"y\\\" \\\\ \\n\"\n",
    "a: 'one\n  two\n\n  three  \n four'\nb: \"one \\\n  \\ two\\\n\n   three\n\n  four\"\nc: d\n",
    "a: one two\n  three\n\n  - four\n  # c\nb: -1\nc: a:b#c\nd: http://x.y/z?a=b\n",
    "a:\n  text\n  more\nb:\n  'text'\nc:\n- x\n  y\n",
    "a: |\n  one\n    two\n\n  three\n\n\nb: |-\n  x\nc: |+\n  y\n\nd:\n- |\n  z\n- >-\n  a\n  b\n\n  c\n",
    "a: >\n  one\n  two\n\n\n  three\n    four\n\n    five\n  six\n \n\nb: >+\n\n\n  x\n   \n\n",
    "a: |\n  x\n     \n  \ty\nb: |\n\n  z\n",
    "a: é ’ 🦀\nb: |\n  ü\nc: 'ö'\nd: \"ä\"\ne:\n  - ß # ü\n",
    "  a: 1\n  b:\n  - c\n",
    "<<: {}\n",
];

#[test]
fn output_of_common_programs_is_read_as_libyaml_reads_it() {
    for text in READ {
        assert!(is_read(text), "{text:?}");
    }
}

#[test]
fn the_tables_of_documents_hold_for_the_block_reader() {
    let scalars = SCALARS.iter().map(|(text, _)| format!("a: {text}\n"));
    let documents = DOCUMENTS.iter().map(|(text, _)| format!("{text}\n"));
    let refused = REFUSED.iter().map(|text| format!("{text}\n"));
    assert!(scalars.filter(|text| is_read(text)).count() > 100);
    assert!(documents.filter(|text| is_read(text)).count() > 10);
    assert_eq!(refused.filter(|text| is_read(text) && crate::to_json(text).is_ok()).count(), 0);
}

const PARTS: &[&str] = &[
    "\n", "\n", "\n", "\n  ", "\n  ", "\n    ", "\n- ", "\n  - ", " ", "  ", "   ", "a", "b c", "a: ", "b: ", "c:",
    ": ", ":", "- ", "-", "'", "''", "\"", "\\", "\\n", "\\\n", "|", ">", "|-\n", ">+\n", "|\n  ", ">\n   ", "#",
    " # x", "{}", "[]", "{", "[", "]", "}", ",", "\t", "é", "---", "...", "\n---\n", "%", "?", "? ", "!", "&", "*",
    "@", "`", "1", "~", "\r", "\u{85}", "\u{feff}", "\u{2028}", "a: |\n", "a: >-\n", "a: \"", "a: '", "- |\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mixture_of_tokens_is_read_as_libyaml_reads_it(parts in prop::collection::vec(prop::sample::select(PARTS), 1..24)) {
        is_read(&format!("{}\n", parts.concat()));
    }

    /// A valid text with something inserted or removed.
    #[test]
    fn a_text_with_a_flaw_is_read_as_libyaml_reads_it(
        text in prop::sample::select(READ), at in 0usize..200, length in 0usize..4, part in prop::sample::select(PARTS),
    ) {
        let characters: Vec<char> = text.chars().collect();
        let at = at % characters.len();
        let end = (at + length).min(characters.len());
        let flawed: String = characters[..at].iter().copied().chain(part.chars()).chain(characters[end..].iter().copied()).collect();
        is_read(&flawed);
    }
}

/// Reads the manifests of a folder: `GANTRY_YAML=FOLDER cargo test --lib given_files -- --ignored --nocapture`
#[test]
#[ignore = "needs a folder"]
fn given_files_are_read_as_libyaml_reads_them() {
    fn visit(path: &std::path::Path, counts: &mut [usize; 2]) {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, counts);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let read = is_read(&text);
                counts[usize::from(read)] += 1;
                if !read {
                    println!("not read: {}", path.display());
                }
            }
        }
    }
    let mut counts = [0; 2];
    visit(std::env::var("GANTRY_YAML").expect("GANTRY_YAML names a folder").as_ref(), &mut counts);
    println!("{} read, {} left to libyaml", counts[1], counts[0]);
    assert!(counts[1] > 0);
}

//! The name of a type says what it is without its module, so no other type has it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The types that a text declares outside of its tests, in the order of their lines.
fn declared(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indentation = line.len() - line.trim_start().len();
        if line.trim() == "#[cfg(test)]" {
            // A module of tests ends with the brace at its own indentation.
            let is_module = |line: &str| line.trim_start().starts_with("mod ") && line.ends_with('{');
            if lines.next().is_some_and(is_module) {
                lines.find(|line| line.trim_end() == format!("{}}}", " ".repeat(indentation)));
            }
            continue;
        }
        let line = line.trim_start();
        let line = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(')').map_or("", |(_, rest)| rest).trim_start(),
            None => rest.trim_start(),
        });
        let Some((keyword, rest)) = line.split_once(' ') else { continue };
        // The types of a trait's implementation belong to the trait.
        let is_declaration = match keyword {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => indentation == 0,
            _ => false,
        };
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        if is_declaration && name.starts_with(|c: char| c.is_ascii_uppercase()) {
            names.push(name);
        }
    }
    names
}

/// The files of Rust in a folder that are not only for tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            "tests" | "tests.rs" => {}
            _ if path.is_dir() => found.extend(files(&path)),
            name if name.ends_with(".rs") => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn no_two_types_have_the_same_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    // The test bed is no part of the program.
    let crates = crates.filter(|folder| !folder.ends_with("testbed")).map(|folder| folder.join("src"));
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in crates.chain([root.join("src")]) {
        for path in files(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            let place = path.strip_prefix(root).unwrap().display().to_string();
            for name in declared(&text) {
                places.entry(name.to_owned()).or_default().push(place.clone());
            }
        }
    }
    assert!(places.len() > 1000, "{} types", places.len());
    // The same type for two systems stands twice in one file.
    places.retain(|_, files| files.iter().any(|file| *file != files[0]));
    assert!(places.is_empty(), "give one of each another name: {places:#?}");
}

#[test]
fn the_test_finds_every_declaration_of_a_type() {
    let text = "pub(crate) struct A<T>(T);\n    enum B {\nimpl Iterator for B {\n    type Item = ();\n#[cfg(test)]\n\
        mod tests {\n    struct C;\n}\npub type D = A<()>;\n";
    assert_eq!(declared(text), ["A", "B", "D"]);
}

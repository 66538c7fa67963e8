//! The name of a type says what it is without its module, so no other type has it. The name of a function says what it
//! does without its type.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of functions that only their authors understand.
const MEANINGLESS: &str = "again alone apart begun beside doubtful elsewhere ended foretold gone held kept lacking late look looks \
    of said settle several shown twice wanted whole written";

/// The lines of a text outside of its tests.
fn lines_of_program(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
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
        found.push(line);
    }
    found
}

/// The types that a text declares outside of its tests, in the order of their lines.
fn declared(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in lines_of_program(text) {
        let indentation = line.len() - line.trim_start().len();
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

/// The functions with a name of [`MEANINGLESS`] that a text declares outside of its tests.
fn meaningless_functions(text: &str) -> Vec<&str> {
    let declares = |line: &&str| {
        let name = line.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
        !line.trim_start().starts_with("//") && MEANINGLESS.split(' ').any(|word| name == Some(word))
    };
    lines_of_program(text).into_iter().filter(declares).map(str::trim).collect()
}

/// The place and the text of each file of the program.
fn program() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    // The test bed is no part of the program.
    let crates = crates.filter(|folder| !folder.ends_with("testbed")).map(|folder| folder.join("src"));
    let paths = crates.chain([root.join("src")]).flat_map(|folder| files(&folder));
    let read = |path: PathBuf| {
        (path.strip_prefix(root).unwrap().display().to_string(), std::fs::read_to_string(&path).unwrap())
    };
    paths.map(read).collect()
}

#[test]
fn no_two_types_have_the_same_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, text) in program() {
        for name in declared(&text) {
            places.entry(name.to_owned()).or_default().push(place.clone());
        }
    }
    assert!(places.len() > 1000, "{} types", places.len());
    // The same type for two systems stands twice in one file.
    places.retain(|_, files| files.iter().any(|file| *file != files[0]));
    assert!(places.is_empty(), "give one of each another name: {places:#?}");
}

#[test]
fn the_name_of_a_function_says_what_it_does() {
    let program = program();
    let found = program
        .iter()
        .flat_map(|(place, text)| meaningless_functions(text).into_iter().map(move |line| format!("{place}: {line}")));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "give each a name with a verb or an object: {found:#?}");
}

#[test]
fn the_test_finds_every_function_without_a_meaning() {
    let text = "impl A {\n    pub(crate) async fn of<T>(of: T) {}\n    fn look(&self) {}\n    fn offset() {}\n    // fn said() {}\n\
        #[cfg(test)]\nmod tests {\n    fn of() {}\n}\n";
    assert_eq!(meaningless_functions(text), ["pub(crate) async fn of<T>(of: T) {}", "fn look(&self) {}"]);
}

#[test]
fn the_test_finds_every_declaration_of_a_type() {
    let text = "pub(crate) struct A<T>(T);\n    enum B {\nimpl Iterator for B {\n    type Item = ();\n#[cfg(test)]\n\
        mod tests {\n    struct C;\n}\npub type D = A<()>;\n";
    assert_eq!(declared(text), ["A", "B", "D"]);
}

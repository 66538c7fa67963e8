//! Every relative link of the documentation leads to a file that exists, and to a heading of it, and the book has every
//! page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\]\(\s*([^)\s]+)").unwrap());
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`[^`\n]*`").unwrap());
static SCHEME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[a-z]+:").unwrap());

/// The pages of the documentation, by path.
fn pages() -> BTreeMap<PathBuf, String> {
    fn add_folder(folder: &Path, pages: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => add_folder(&entry, pages),
                false => pages.push(entry),
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
    let beside = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "config-examples/README.md"];
    let mut pages = beside.map(|page| root.join(page)).to_vec();
    add_folder(&root.join("docs"), &mut pages);
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.into_iter().map(|page| (page.clone(), without_fences(&fs::read_to_string(page).unwrap()))).collect()
}

/// The text without its fenced code.
fn without_fences(text: &str) -> String {
    let mut is_fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The anchors that GitHub gives to the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let letters = heading.trim_start_matches('#').trim().to_lowercase();
            let anchor: String = letters
                .chars()
                .filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter))
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect();
            let before = times.entry(anchor.clone()).or_default();
            *before += 1;
            if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
        })
        .collect()
}

#[test]
fn every_relative_link_of_the_documentation_leads_to_something_that_exists() {
    let pages = pages();
    let mut links = 0;
    let mut dead = Vec::new();
    for (page, text) in &pages {
        let text = CODE.replace_all(text, "");
        let found = LINK.captures_iter(&text).map(|link| link.extract::<1>().1[0]);
        for link in found.filter(|link| !SCHEME.is_match(link)) {
            links += 1;
            let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let leads_to_heading = |anchor: &str| {
                let page = target.canonicalize().ok().and_then(|target| pages.get(&target));
                page.is_some_and(|page| anchors(page).contains(anchor))
            };
            if !target.exists() || !anchor.is_none_or(leads_to_heading) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(links > 500, "only {links} links were found");
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

/// To list new pages of rules: `UPDATE_DOCS=1 cargo test --test offline links`.
#[test]
fn every_page_is_in_the_book_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
    let summary = root.join("docs/SUMMARY.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let is_of_rule = |line: &&str| line.starts_with("  - [") && line.contains("](rules/");
        let text = fs::read_to_string(&summary).unwrap();
        let (before, after) = text.split_once("- [Rules](rules/README.md)\n").unwrap();
        let after: String = after.lines().skip_while(is_of_rule).map(|line| format!("{line}\n")).collect();
        let pages = pages();
        let rules = pages.keys().filter(|page| page.parent() == Some(&root.join("docs/rules")));
        let names = rules.filter_map(|page| page.file_stem()?.to_str()).filter(|name| *name != "README");
        let rules: String = names.map(|name| format!("  - [{name}](rules/{name}.md)\n")).collect();
        fs::write(&summary, format!("{before}- [Rules](rules/README.md)\n{rules}{after}")).unwrap();
    }
    let text = fs::read_to_string(&summary).unwrap();
    let mut listed: Vec<PathBuf> =
        LINK.captures_iter(&text).map(|link| root.join("docs").join(&link[1]).canonicalize().unwrap()).collect();
    listed.sort();
    let mut expected: Vec<PathBuf> = pages().into_keys().filter(|page| *page != summary).collect();
    expected.sort();
    assert_eq!(listed, expected, "docs/SUMMARY.md has each page of the documentation once");
}

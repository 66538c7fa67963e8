//! A rule and its text. Each text is a file of its own, `rules/NAME.md`; `gantry rules` and `docs/rules/` show it.

use gantry_core::finding::{Breaks, Severity};

/// A rule: its name, and its text. The code that evaluates it belongs to the check; see `crd_upgrade_safety::Rule`.
#[derive(Debug, Clone, Copy)]
pub struct RuleDoc {
    /// `NoExistingFieldRemoved`
    pub name: &'static str,
    /// The content of `rules/NAME.md`.
    pub text: &'static str,
}

/// The rule of this name. It does not compile if the rule has no text.
macro_rules! rule_doc {
    ($name:literal) => {
        $crate::rule::RuleDoc {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/", $name, ".md")),
        }
    };
}
pub(super) use rule_doc;

/// The rules of a check, sorted by name: a static for each, and `docs`, which returns them all.
macro_rules! rule_docs {
    ($($rule:ident = $name:literal),* $(,)?) => {
        $(pub static $rule: $crate::rule::RuleDoc = $crate::rule::rule_doc!($name);)*

        /// Every rule, sorted by name.
        pub fn docs() -> Vec<&'static $crate::rule::RuleDoc> {
            vec![$(&$rule),*]
        }
    };
}
pub(super) use rule_docs;

const EXAMPLE: &str = "Example";

/// The guide whose sections show, release by release, how to make the change without harm.
pub(crate) const GUIDE: &str = "changing-a-crd.md";

/// What a change breaks, in words.
const BROKEN: [(&str, Breaks); 5] = [
    ("stored objects", Breaks::StoredObjects),
    ("writers", Breaks::Writers),
    ("readers", Breaks::Readers),
    ("data", Breaks::Data),
    ("behaviour", Breaks::Behaviour),
];

impl RuleDoc {
    /// The default severity.
    pub fn severity(&self) -> Severity {
        match self.field("severity") {
            Some("info") => Severity::Info,
            Some("warning") => Severity::Warning,
            _ => Severity::Error,
        }
    }

    pub fn breaks(&self) -> Vec<Breaks> {
        let named = |word| BROKEN.iter().find(|(other, _)| *other == word).map(|(_, breaks)| *breaks);
        self.broken().split(", ").filter_map(named).collect()
    }

    /// Who is affected, in words.
    pub fn affected(&self) -> &'static str {
        let broken = Some(self.broken()).filter(|broken| !broken.is_empty());
        self.field("affected").or(broken).unwrap_or("unknown")
    }

    fn broken(&self) -> &'static str {
        self.list("breaks")
    }

    /// The sections of the guide about the change.
    pub(crate) fn guide_sections(&self) -> impl Iterator<Item = GuideSection> {
        self.list("guide").split(", ").filter(|title| !title.is_empty()).map(|title| GuideSection { title })
    }

    /// One line, for lists.
    pub fn summary(&self) -> &'static str {
        self.text.split_once("\n# ").and_then(|(_, rest)| rest.lines().next()).unwrap_or_default()
    }

    /// What exactly is reported.
    pub fn reports(&self) -> &'static str {
        self.section("What it reports")
    }

    /// What happens, and to whom, if the change is deployed anyway.
    pub fn why(&self) -> &'static str {
        self.section("Why")
    }

    pub fn what_to_do(&self) -> &'static str {
        self.section("What to do")
    }

    /// A minimal example that triggers this rule and no other, which tests verify.
    pub fn example(&self) -> RuleExample {
        let (scope, parts) = self.section(EXAMPLE).split_once(". ").unwrap_or_default();
        // Titles alternate with fenced YAML.
        let fenced: Vec<&str> = parts.split("```").collect();
        let part = |part: &[&'static str]| match part {
            [title, yaml] => Some((title.trim().strip_suffix(':')?, yaml.strip_prefix("yaml\n")?)),
            _ => None,
        };
        RuleExample { scope, parts: fenced.chunks(2).filter_map(part).collect() }
    }

    /// The example as Markdown.
    pub fn example_text(&self) -> &'static str {
        self.section(EXAMPLE)
    }

    /// A field of the front matter.
    fn field(&self, key: &str) -> Option<&'static str> {
        let front = self.text.strip_prefix("---\n")?.split_once("\n---\n")?.0;
        front.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
    }

    /// A list in the front matter, without its brackets.
    fn list(&self, key: &str) -> &'static str {
        self.field(key).and_then(|list| list.strip_prefix('[')?.strip_suffix(']')).unwrap_or_default()
    }

    fn section(&self, title: &str) -> &'static str {
        let heading = format!("\n## {title}\n\n");
        let rest = self.text.split_once(&heading).map_or("", |(_, rest)| rest);
        rest.split_once("\n## ").map_or(rest, |(section, _)| section).trim_end()
    }
}

/// A section of the guide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuideSection {
    pub(crate) title: &'static str,
}

impl GuideSection {
    /// `changing-a-crd.md#add-a-field`
    pub(crate) fn link(self) -> String {
        format!("{GUIDE}#{}", self.title.to_lowercase().replace(' ', "-"))
    }
}

/// A minimal example of a rule, in parts.
#[derive(Debug, Clone)]
pub struct RuleExample {
    /// What the parts are: `Fields of spec in the schema of one version`.
    pub scope: &'static str,
    /// The title of each part (`Live`), and its YAML.
    pub parts: Vec<(&'static str, &'static str)>,
}

impl RuleExample {
    /// The part with this title; empty if there is none.
    pub fn part(&self, title: &str) -> &'static str {
        self.parts.iter().find(|(other, _)| *other == title).map_or("", |(_, yaml)| yaml)
    }

    /// The live part; empty if it does not matter.
    pub fn live(&self) -> &'static str {
        self.part("Live")
    }

    pub fn desired(&self) -> &'static str {
        self.part("Desired")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::registry::CHECKS;

    fn all() -> impl Iterator<Item = (&'static str, &'static RuleDoc)> {
        CHECKS.iter().flat_map(|check| (check.rules)().into_iter().map(|rule| (check.name, rule)))
    }

    #[test]
    fn every_text_has_a_rule() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let named: BTreeSet<String> = all().map(|(_, rule)| format!("{}.md", rule.name)).collect();
        assert_eq!(files.collect::<BTreeSet<_>>(), named);
    }

    /// A text has each part once and in order, none is empty, and there is nothing else: written again, it is the same.
    #[test]
    fn every_text_is_complete() {
        for (check, rule) in all() {
            let severity = format!("{:?}", rule.severity()).to_lowercase();
            let word = |breaks| BROKEN.iter().find(|(_, other)| *other == breaks).map_or("", |(word, _)| word);
            let breaks = rule.breaks().into_iter().map(word).collect::<Vec<_>>().join(", ");
            let affected = rule.field("affected").map_or_else(String::new, |words| format!("affected: {words}\n"));
            let guide = match rule.list("guide") {
                "" => String::new(),
                titles => format!("guide: [{titles}]\n"),
            };
            let RuleExample { scope, parts } = rule.example();
            let parts: Vec<String> =
                parts.iter().map(|(title, yaml)| format!("{title}:\n\n```yaml\n{yaml}```\n\n")).collect();
            let (summary, reports, why, to_do) = (rule.summary(), rule.reports(), rule.why(), rule.what_to_do());
            for part in [summary, reports, why, to_do, scope, &parts.concat()] {
                assert!(!part.trim().is_empty(), "rules/{}.md lacks a part", rule.name);
            }
            let again = format!(
                "---\ncheck: {check}\nseverity: {severity}\nbreaks: [{breaks}]\n{affected}{guide}---\n\n# {summary}\n\n\
                 ## What it reports\n\n{reports}\n\n## Why\n\n{why}\n\n## Example\n\n{scope}. {}\
                 ## What to do\n\n{to_do}\n",
                parts.concat()
            );
            assert_eq!(rule.text, again, "rules/{}.md", rule.name);
        }
    }
}

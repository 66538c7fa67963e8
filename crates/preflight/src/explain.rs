//! `gantry rules`: lists the checks and rules, and explains one of them.
//!
//! The pages under `docs/rules/` are generated from the same texts, `rules/NAME.md`; a test fails if they are stale.

use serde_json::Value;

use super::custom;
use super::entry::CheckEntry;
use super::registry::{self, CHECKS};
use super::rule::{GUIDE, GuideSection, RuleDoc, RuleExample};
use gantry_core::finding::Severity;
use gantry_core::problem::{Error, Problem, Result, did_you_mean};
use gantry_core::text;
use gantry_deploy::config::{CheckDefinition, CustomCheck, KeyDescription};

/// Every check with its rules, and every custom check, one line each.
pub fn list(own: &[CustomCheck]) -> String {
    let mut text = String::new();
    for check in CHECKS {
        let rules = (check.rules)();
        let width = rules.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
        add_line(&mut text, &format!("{}: {}", check.name, check.summary));
        for rule in rules {
            add_line(&mut text, &format!("  {:width$}  {}", rule.name, rule.summary()));
        }
    }
    if !own.is_empty() {
        let width = own.iter().map(|check| check.name.len()).max().unwrap_or_default();
        add_line(&mut text, "Your own");
        for check in own {
            let about = custom::describe(&check.definition, &check.config);
            let about = text::cut(&text::sanitize(&about), 200).into_owned();
            add_line(&mut text, &format!("  {:width$}  {about}", check.name));
        }
    }
    text.push_str("\nFor details: gantry rules NAME\n");
    text
}

/// All checks, each with a summary.
pub fn checks(own: &[CustomCheck]) -> Vec<(String, String)> {
    let of_gantry = CHECKS.iter().map(|check| (check.name.to_owned(), check.summary.to_string()));
    of_gantry.chain(own.iter().map(|check| (check.name.clone(), String::new()))).collect()
}

/// All rules of the built-in checks, each with a summary.
pub fn rules() -> Vec<(String, String)> {
    all_rules().map(|(_, rule)| (rule.name.to_owned(), rule.summary().to_owned())).collect()
}

/// The explanation of a built-in check or rule; `None` if the name is neither.
pub fn explain(name: &str) -> Option<String> {
    if let Some(check) = registry::find(name) {
        return Some(check_text(check));
    }
    all_rules().find(|(_, rule)| rule.name == name).map(|(check, rule)| rule_text(check, rule))
}

fn all_rules() -> impl Iterator<Item = (&'static CheckEntry, &'static RuleDoc)> {
    CHECKS.iter().flat_map(|check| (check.rules)().into_iter().map(move |rule| (check, rule)))
}

/// The texts of a built-in rule.
pub fn rule(name: &str) -> Option<RuleExplanation> {
    let (check, rule) = all_rules().find(|(_, rule)| rule.name == name)?;
    Some(RuleExplanation { check, rule })
}

/// The texts of a rule, for formats without access to the other pages.
pub struct RuleExplanation {
    check: &'static CheckEntry,
    rule: &'static RuleDoc,
}

impl RuleExplanation {
    /// One line.
    pub fn summary(&self) -> &'static str {
        bare_name(self.rule)
    }

    /// What is reported, exactly.
    pub fn reports(&self) -> &'static str {
        self.rule.reports()
    }

    /// The default severity.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    /// What `gantry rules` prints.
    pub fn text(&self) -> String {
        rule_text(self.check, self.rule)
    }

    /// The page of the rule without its links, which point to other pages.
    pub fn markdown(&self) -> String {
        without_links(&page(self.check, self.rule))
    }
}

/// Replaces each link in Markdown with its text.
fn without_links(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some(middle) = rest.find("](") {
        let (Some(start), Some(end)) = (rest[..middle].rfind('['), rest[middle..].find(')')) else { break };
        out.push_str(&rest[..start]);
        out.push_str(&rest[start + 1..middle]);
        rest = &rest[middle + end + 1..];
    }
    out.push_str(rest);
    out
}

/// The explanation of a custom check. An unknown name is a usage error.
pub fn explain_own(name: &str, own: &[CustomCheck]) -> Result<String> {
    // A program with several rules reports findings as CHECK/RULE.
    let check = name.split_once('/').map_or(name, |(check, _)| check);
    if let Some(check) = own.iter().find(|known| known.name == check) {
        return Ok(custom_text(check));
    }
    let of_gantry = registry::names().chain(all_rules().map(|(_, rule)| rule.name));
    let mut known: Vec<&str> = of_gantry.collect();
    known.extend(own.iter().map(|check| check.name.as_str()));
    let help = match did_you_mean(name, known) {
        Some(near) => format!("did you mean {near}?"),
        None => "`gantry rules` lists them all".to_owned(),
    };
    Err(Error::usage(Problem::new(format!("no check or rule is named {name:?}")).help(help)))
}

fn custom_text(check: &CustomCheck) -> String {
    let at = match &check.definition {
        CheckDefinition::Own { at: Some(at), .. } | CheckDefinition::NotRun { at: Some(at), .. } => format!(" ({at})"),
        _ => String::new(),
    };
    let mut text = format!("{}: your own check{}\n\n", check.name, text::sanitize(&at));
    add_line(&mut text, &format!("  {}", text::sanitize(&custom::describe(&check.definition, &check.config))));
    add_line(&mut text, &format!("\nHow to write such checks: {}", custom::DOCS));
    text
}

fn check_text(check: &CheckEntry) -> String {
    let mut text = format!("{}: {}\n", check.name, check.summary);
    add_line(&mut text, "\nConfiguration");
    for key in check.keys() {
        add_line(&mut text, &format!("  {}", key_text(&key)));
    }
    add_line(&mut text, "\nRules");
    let rules = (check.rules)();
    let width = rules.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    for rule in rules {
        add_line(&mut text, &format!("  {:width$}  {}", rule.name, rule.summary()));
    }
    text
}

/// `failMode: closed|open (closed)  Whether …`, from the JSON Schema of a key.
fn key_text(key: &KeyDescription) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = match (key.schema["enum"].as_array(), key.schema["type"].as_str()) {
        (Some(values), _) => values.iter().map(text).collect::<Vec<_>>().join("|"),
        (None, kind) => kind.unwrap_or("value").to_owned(),
    };
    let default = match &key.schema["default"] {
        Value::Null => String::new(),
        default => format!(" ({})", text(default)),
    };
    format!("{}: {values}{default}  {}", key.name, text(&key.schema["description"]))
}

fn rule_text(check: &CheckEntry, rule: &RuleDoc) -> String {
    let mut text = format!("{} ({}, {}): {}\n", rule.name, check.name, severity(rule.severity()), bare_name(rule));
    let mut section = |title: &str, body: &str| {
        add_line(&mut text, &format!("\n{title}"));
        for body_line in body.lines() {
            add_line(&mut text, &format!("  {body_line}"));
        }
    };
    section("What it reports", rule.reports());
    section("Why", rule.why());
    section("Who is affected", rule.affected());
    let example = rule.example();
    for (index, (title, part)) in example.parts.iter().enumerate() {
        let scope = if index == 0 { format!(" ({})", uncapital(example.scope)) } else { String::new() };
        section(&format!("Example, {}{scope}", uncapital(title)), part);
    }
    let links = rule.guide_sections().map(|section| format!("docs/{}", section.link()));
    section("What to do", &with_guide(rule.what_to_do(), &links.collect::<Vec<_>>()));
    match waiver(check, rule) {
        _ if is_refusal(check, rule) => section("No waiver", NO_WAIVER),
        Some(waiver) => section("How to accept it", &format!("{ACCEPT}\n\n{waiver}")),
        None => {}
    }
    text
}

/// What to do, and where each step is shown.
fn with_guide(what_to_do: &str, links: &[String]) -> String {
    match links {
        [] => what_to_do.to_owned(),
        links => format!("{what_to_do}\n\nRelease by release: {}", links.join(", ")),
    }
}

/// How to use a waiver. The pages add a link to its documentation.
const ACCEPT: &str = "If you have reviewed a finding and it may pass, pass a Config with a waiver (-c FILE), with the \
    name of the object. version, path and expires narrow it. A waiver changes gantry's verdict, not what the \
    server does.";

/// Why a finding cannot be waived.
const NO_WAIVER: &str = "The API server refuses the request, of the deploy or of OLM, whatever gantry's verdict is: it would \
    end half way. So a waiver, mode: warn, --warn-only, enforcement and a baseline do not apply: the deploy ends before it \
    writes anything.";

/// Whether the findings of the rule predict a refusal, which no waiver lets pass.
fn is_refusal(check: &CheckEntry, rule: &RuleDoc) -> bool {
    check.refusals.contains(&rule.name)
}

/// A Config that waives a finding of this rule; `None` for notes, which need no waiver, and for refusals, which none
/// lets pass.
fn waiver(check: &CheckEntry, rule: &RuleDoc) -> Option<String> {
    (rule.severity() != Severity::Info && !is_refusal(check, rule)).then(|| {
        format!(
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\nwaivers:\n- rule: {}\n  object: {}\n  \
             reason: who reviewed it, and why it may pass\n",
            rule.name,
            example_object(&rule.example())
        )
    })
}

/// The name of the object that a finding for this example refers to.
fn example_object(example: &RuleExample) -> String {
    let part =
        ["Deleted", "Desired", "Object"].map(|title| example.part(title)).into_iter().find(|part| !part.is_empty());
    let first = part.unwrap_or_default().split("\n---\n").next().unwrap_or_default();
    let object = gantry_yaml::parse(first).ok().flatten().map(|node| node.to_value()).unwrap_or_default();
    object["metadata"]["name"].as_str().unwrap_or("samples.test.example.com").to_owned()
}

/// The page of a rule, as Markdown.
pub(crate) fn page(check: &CheckEntry, rule: &RuleDoc) -> String {
    let no_waiver = match is_refusal(check, rule) {
        true => format!(
            "\n## No waiver\n\n{}\n",
            NO_WAIVER.replace("mode: warn, --warn-only", "`mode: warn`, `--warn-only`")
        ),
        false => String::new(),
    };
    let accept = waiver(check, rule).map_or(no_waiver, |waiver| {
        let about = ACCEPT.replace("a waiver (-c FILE)", "a [waiver](../configuration.md#waivers) (`-c FILE`)");
        let about = about.replace("version, path and expires", "`version`, `path` and `expires`");
        format!("\n## How to accept it\n\n{about}\n\n```yaml\n{waiver}```\n")
    });
    // The text names the file: without links it is all that is left.
    let link = |section: GuideSection| format!("[docs/{GUIDE}, {}](../{})", section.title, section.link());
    let links = rule.guide_sections().map(link);
    format!(
        "# {name}\n\n{check}, {severity}: {summary}.\n\n\
         ## What it reports\n\n{reports}\n\n## Why\n\n{why}\n\nWho is affected: {who}.\n\n\
         ## Example\n\n{example}\n\n\
         ## What to do\n\n{what_to_do}\n{accept}",
        name = rule.name,
        check = format_args!("[{}](../checks/{}.md)", check.name, check.name),
        severity = severity(rule.severity()),
        summary = bare_name(rule),
        reports = rule.reports(),
        why = rule.why(),
        who = rule.affected(),
        example = rule.example_text(),
        what_to_do = with_guide(rule.what_to_do(), &links.collect::<Vec<_>>()),
    )
}

fn add_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
        Severity::Waived => "waived",
        Severity::Known => "known",
    }
}

/// The summary without its severity in brackets, for texts that show the severity elsewhere.
fn bare_name(rule: &RuleDoc) -> &'static str {
    let summary = rule.summary();
    let bare = summary.split_once(" (warning)").or_else(|| summary.split_once(" (note)"));
    bare.map_or(summary, |(bare, _)| bare)
}

fn uncapital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::waive::Waivers;
    use gantry_core::date::Date;
    use gantry_core::finding::{CheckStatus, samples};
    use gantry_deploy::config::Loader;

    /// The list of all rules, as Markdown.
    fn index() -> String {
        let mut text = String::from("# Rules\n\n`gantry rules NAME` prints the same text as these pages.\n");
        for check in CHECKS {
            let _ = write!(text, "\n## [{0}](../checks/{0}.md)\n\n", check.name);
            for rule in (check.rules)() {
                let _ = writeln!(text, "- [{0}]({0}.md): {1}", rule.name, rule.summary());
            }
        }
        text
    }

    #[test]
    fn every_name_that_is_listed_can_be_explained() {
        let list = list(&[]);
        for check in CHECKS {
            assert!(list.contains(check.name));
            assert!(explain(check.name).unwrap().contains("mode: error|warn"));
            for rule in (check.rules)() {
                assert!(list.contains(rule.name));
                let text = explain(rule.name).unwrap();
                for part in [bare_name(rule), rule.reports(), rule.why(), rule.what_to_do()] {
                    assert!(text.contains(part), "{text}");
                }
            }
        }
    }

    #[test]
    fn pages_can_be_read_without_the_others() {
        assert_eq!(without_links("a [b](c.md) `x[0]` [d](e) f"), "a b `x[0]` d f");
        for (check, rule) in all_rules() {
            let text = RuleExplanation { check, rule };
            assert!(!text.markdown().contains("]("), "{}", rule.name);
            assert!(text.markdown().contains(rule.what_to_do()) || rule.what_to_do().contains("]("), "{}", rule.name);
        }
    }

    #[test]
    fn a_misspelt_name_is_a_usage_error_with_the_nearest_one() {
        let Err(Error::Usage(problems)) = explain_own("NoTypeChanged", &[]) else { panic!("must be a usage error") };
        assert_eq!(problems[0].help.as_deref(), Some("did you mean NoTypeChange?"));
        let Err(Error::Usage(problems)) = explain_own("xyz", &[]) else { panic!("must be a usage error") };
        assert_eq!(problems[0].help.as_deref(), Some("`gantry rules` lists them all"));
    }

    #[test]
    fn every_waiver_that_is_shown_loads_and_waives_a_finding_of_its_rule() {
        let mut waived = 0;
        for (check, rule) in CHECKS.iter().flat_map(|check| (check.rules)().into_iter().map(move |rule| (check, rule)))
        {
            let page = page(check, rule);
            let Some((_, rest)) = page.split_once("## How to accept it") else {
                assert!(rule.severity() == Severity::Info || page.contains("## No waiver"), "{}", rule.name);
                continue;
            };
            let snippet = rest.split("```").nth(1).unwrap().trim_start_matches("yaml\n");
            let indented: String = snippet.lines().map(|line| format!("  {line}\n")).collect();
            assert!(explain(rule.name).unwrap().ends_with(&indented), "{}", rule.name);

            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("gantry.yaml"), snippet).unwrap();
            let loader = Loader { working_directory: folder.path().to_owned(), ..Loader::default() };
            let loaded = loader.load([], &registry::known()).unwrap_or_else(|error| panic!("{}: {error}", rule.name));
            let waivers = Waivers { list: &loaded.settings.waivers, today: Date::parse("2026-01-01").unwrap() };
            let finding =
                samples::finding(rule.name, Severity::Error, samples::crd(&example_object(&rule.example())), "m");
            let mut reports = [samples::check(check.name, CheckStatus::Blocked, vec![finding])];
            assert_eq!(waivers.apply(&mut reports, &[rule.name], &[rule.name]), []);
            assert_eq!(reports[0].findings[0].severity, Severity::Waived, "{}", rule.name);
            waived += 1;
        }
        assert!(waived > 70, "{waived}");
    }

    /// `UPDATE_DOCS=1 cargo test rule_pages_are_fresh` regenerates the pages.
    #[test]
    fn rule_pages_are_fresh() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
        let mut wanted = BTreeMap::from([("README.md".to_owned(), index())]);
        for check in CHECKS {
            for rule in (check.rules)() {
                wanted.insert(format!("{}.md", rule.name), page(check, rule));
            }
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in &wanted {
                std::fs::write(folder.join(name), text).unwrap();
            }
        }
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&folder).expect("docs/rules: UPDATE_DOCS=1 cargo test rule_pages_are_fresh") {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.insert(name, std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n"));
        }
        let stale: Vec<&String> =
            wanted.keys().chain(found.keys()).filter(|name| wanted.get(*name) != found.get(*name)).collect();
        assert!(stale.is_empty(), "stale in docs/rules: {stale:?}; run UPDATE_DOCS=1 cargo test rule_pages_are_fresh");
    }
}

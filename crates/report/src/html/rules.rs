//! The rules of the findings on the page, each explained once: a report may have thousands of findings of one rule.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::{RuleText, RuleTexts, words};
use gantry_core::finding::Finding;

/// The rules that the page explains, by name.
pub struct Explained<'a>(BTreeMap<&'a str, RuleText>);

impl<'a> Explained<'a> {
    /// The known rules of these findings.
    pub fn new(findings: impl Iterator<Item = &'a Finding>, rules: &dyn RuleTexts) -> Self {
        let mut texts: BTreeMap<&str, Option<RuleText>> = BTreeMap::new();
        for finding in findings {
            let mut is_known = |name: &&'a str| texts.entry(*name).or_insert_with(|| rules.rule(name)).is_some();
            let _ = names(finding).find(&mut is_known);
        }
        Explained(texts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect())
    }

    /// The rule of a finding. A verdict of another tool is explained by our closest rule.
    pub fn of_finding(&self, finding: &'a Finding) -> Option<(&'a str, &RuleText)> {
        names(finding).find_map(|name| Some((name, self.0.get(name)?)))
    }

    /// All rules, folded. The script opens the one that a link leads to; without it, the link leads to its title.
    pub fn write(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                section aria-labelledby="rules" {
                    h2 id="rules" { "Rules" }
                    @for (name, text) in &self.0 {
                        details id=(anchor(name)) class="rule" {
                            summary { code { (words::line(name, 100)) } " " span class="faint" { (words::line(&text.summary, 300)) } }
                            div class="body" { pre class="text" { (text.text) } }
                        }
                    }
                }
            }
        }
    }
}

/// The name of the finding's rule, and of the one that explains it.
fn names(finding: &Finding) -> impl Iterator<Item = &str> {
    [Some(finding.rule.as_str()), finding.body.explain.as_deref()].into_iter().flatten()
}

/// The id of the rule's explanation on the page.
pub fn anchor(rule: &str) -> String {
    format!("rule-{}", words::line(rule, 100))
}

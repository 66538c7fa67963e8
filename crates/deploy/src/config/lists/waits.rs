//! Reads `waitRules`.

use super::RuleListReader;
use crate::config::keys;
use crate::config::located::LocatedValue;
use crate::readiness::rules::{ConditionMatcher, Expressions, ReadinessTest, VARIABLES, WaitRule};
use gantry_k8s_cel::CelExpression;

impl RuleListReader {
    pub(super) fn wait_rule(&mut self, item: &LocatedValue, path: &str) -> Option<WaitRule> {
        let known = ["supportsObservedGeneration", "conditionMatchers", "cel", "ytt", "resourceMatchers"];
        self.check_mapping(item, path, &known)?;
        if let Some(ytt) = item.get("ytt") {
            let problem = ytt.key.problem(format!("{path}.ytt: gantry does not run ytt functions"));
            let help = "write conditionMatchers, or cel: {success: object.status.phase == 'Running'}";
            self.problems.push(problem.help(help));
            return None;
        }
        let matchers = self.matchers(item, path);
        let observes_generation = self.bool(item, path, "supportsObservedGeneration");
        let test = match (item.get("conditionMatchers"), item.get("cel")) {
            (Some(_), None) => {
                let below = self.items_below(item, path, "conditionMatchers");
                let read = below.iter().filter_map(|(path, item)| self.condition_matcher(item, path));
                ReadinessTest::Conditions(read.collect())
            }
            (None, Some(cel)) => ReadinessTest::Expressions(Box::new(self.expressions(cel, &format!("{path}.cel"))?)),
            (Some(_), Some(cel)) => {
                self.report_problem(&cel.key, format!("{path} has both conditionMatchers and cel; keep one of them"));
                return None;
            }
            (None, None) => {
                let help = "without conditionMatchers or cel, the objects of this rule would never be ready";
                self.report_missing_key(item, path, "conditionMatchers", help);
                return None;
            }
        };
        Some(WaitRule { matchers, observes_generation, test })
    }

    fn condition_matcher(&mut self, item: &LocatedValue, path: &str) -> Option<ConditionMatcher> {
        let known = ["type", "status", "failure", "success", "unblockChanges", "supportsObservedGeneration", "timeout"];
        self.check_mapping(item, path, &known)?;
        let timeout = self.text(item, path, "timeout").map(|text| (keys::duration(&text), text));
        let timeout = match (timeout, item.get("timeout")) {
            (Some((Err(why), _)), Some(found)) => {
                self.report_problem(&found.place, format!("{path}.timeout: {why}"));
                return None;
            }
            (Some((limit, _)), _) => limit.ok(),
            _ => None,
        };
        Some(ConditionMatcher {
            name: self.required_text(item, path, "type")?,
            status: self.required_text(item, path, "status")?,
            failure: self.bool(item, path, "failure"),
            success: self.bool(item, path, "success"),
            unblocks: self.bool(item, path, "unblockChanges"),
            observes_generation: self.bool(item, path, "supportsObservedGeneration"),
            timeout,
        })
    }

    fn expressions(&mut self, item: &LocatedValue, path: &str) -> Option<Expressions> {
        self.check_mapping(item, path, &["success", "failure", "unblockChanges"])?;
        self.required_text(item, path, "success")?;
        let mut compile = |key: &str| {
            let source = self.text(item, path, key)?;
            match (CelExpression::condition(&source, VARIABLES), item.get(key)) {
                (Ok(expression), _) => Some(expression),
                (Err(why), found) => {
                    let place = found.map_or(&item.place, |found| &found.place);
                    self.report_problem(place, format!("{path}.{key}: {why}"));
                    None
                }
            }
        };
        Some(Expressions {
            failure: compile("failure"),
            unblocks: compile("unblockChanges"),
            success: compile("success")?,
        })
    }
}

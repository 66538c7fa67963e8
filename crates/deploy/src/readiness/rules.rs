//! Rules of the configuration that determine when objects are ready.
//!
//! Source: `waitRules` in kapp's documentation of its Config. Only the first rule that matches an object is used.

use std::time::Duration;

use gantry_k8s_cel::{CelBudget, CelExpression};
use serde_json::Value;

use super::view::{LiveObjectView, StatusCondition};
use super::{Readiness, extension};
use gantry_core::matcher::{self, MatchableObject, Matcher};
use gantry_olm::cluster_catalog::GROUP;
use gantry_olm::cluster_extension::KIND;

/// The variables that an expression can use.
pub(crate) const VARIABLES: &[&str] = &["object"];

/// Determines when the objects that match are ready.
#[derive(Debug, Clone)]
pub struct WaitRule {
    /// The objects; one that matches is enough.
    pub matchers: Vec<Matcher>,
    /// The controller sets `status.observedGeneration`: until that is the latest generation, the objects are not ready.
    pub observes_generation: bool,
    /// How readiness is seen.
    pub test: ReadinessTest,
}

/// The test of a rule.
#[derive(Debug, Clone)]
pub enum ReadinessTest {
    /// What conditions in `status.conditions` mean.
    Conditions(Vec<ConditionMatcher>),
    /// CEL expressions.
    Expressions(Box<Expressions>),
    /// For a ClusterExtension: the versions that OLM will install, one after another. The first is enough.
    Predicted(Vec<String>),
}

/// The meaning of a condition.
#[derive(Debug, Clone, Default)]
pub struct ConditionMatcher {
    /// The `type` of the condition.
    pub name: String,
    /// The `status` of the condition, such as `True`.
    pub status: String,
    /// Whether the object has failed then.
    pub failure: bool,
    /// Whether the object is ready then.
    pub success: bool,
    /// Objects that wait for this object can be written, although it is not ready.
    pub unblocks: bool,
    /// The condition has an `observedGeneration` and is ignored unless that is the latest generation.
    pub observes_generation: bool,
    /// A failure is ignored until it has lasted this long. As in kapp, a condition with a limit is a failure.
    pub timeout: Option<Duration>,
}

impl ConditionMatcher {
    fn is_failure(&self) -> bool {
        self.failure || self.timeout.is_some()
    }
}

/// CEL expressions over `object`. An expression that cannot be evaluated counts as false.
#[derive(Debug, Clone)]
pub struct Expressions {
    /// Whether the object is ready.
    pub success: CelExpression,
    /// Whether it has failed.
    pub failure: Option<CelExpression>,
    /// Whether objects that wait for it can be written, although it is not ready.
    pub unblocks: Option<CelExpression>,
}

/// The readiness of an object for objects that wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadinessVerdict {
    /// The state of the object itself.
    pub state: Readiness,
    /// It is not ready, but objects that wait for it can be written.
    pub unblocks: bool,
    /// It has failed if this condition lasts this long.
    pub fails_after: Option<(String, Duration)>,
    /// It counts as ready after a wait of this length.
    pub ready_after: Option<Duration>,
}

impl From<Readiness> for ReadinessVerdict {
    fn from(state: Readiness) -> Self {
        ReadinessVerdict { state, unblocks: false, fails_after: None, ready_after: None }
    }
}

/// The first rule that matches an object.
pub fn find<'r>(rules: &'r [WaitRule], facts: &MatchableObject<'_>) -> Option<&'r WaitRule> {
    rules.iter().find(|rule| matcher::any_matches(&rule.matchers, facts) == Some(true))
}

impl WaitRule {
    /// The rule for one ClusterExtension whose versions were predicted.
    pub fn predicted(extension: &str, versions: Vec<String>) -> Self {
        let kind = KIND.to_owned();
        let is_one = Matcher::GroupKind { group: GROUP.to_owned(), kind: kind.clone() };
        let is_it = Matcher::Name { kind, namespace: String::new(), name: extension.to_owned() };
        let matchers = vec![Matcher::And(vec![is_one, is_it])];
        WaitRule { matchers, observes_generation: false, test: ReadinessTest::Predicted(versions) }
    }

    /// The verdict about a live object that is not being deleted.
    pub fn evaluate(&self, object: &Value) -> ReadinessVerdict {
        let view = LiveObjectView(object);
        match view.unobserved(true).filter(|_| self.observes_generation) {
            Some(state) => state.into(),
            None => match &self.test {
                ReadinessTest::Conditions(matchers) => by_conditions(matchers, view),
                ReadinessTest::Expressions(expressions) => expressions.evaluate(object),
                ReadinessTest::Predicted(versions) => extension::state(view, versions).into(),
            },
        }
    }
}

fn by_conditions(matchers: &[ConditionMatcher], view: LiveObjectView<'_>) -> ReadinessVerdict {
    let mut is_late = false;
    let generation = view.integer("/metadata/generation").unwrap_or_default();
    let mut holding: Vec<(&ConditionMatcher, StatusCondition<'_>)> = Vec::new();
    for matcher in matchers {
        if let Some(condition) = view.condition(&matcher.name).filter(|found| found.status() == matcher.status) {
            match matcher.observes_generation && condition.generation() != generation {
                true => is_late = true,
                false => holding.push((matcher, condition)),
            }
        }
    }
    let said = |condition: StatusCondition<'_>| condition.with_name();
    if let Some((matcher, condition)) = holding.iter().find(|(matcher, _)| matcher.is_failure()) {
        let text = said(*condition);
        return match matcher.timeout {
            None => Readiness::failed(&text).into(),
            Some(timeout) => ReadinessVerdict {
                fails_after: Some((format!("{}={}", matcher.name, matcher.status), timeout)),
                ..Readiness::in_progress(&text).into()
            },
        };
    }
    if holding.iter().any(|(matcher, _)| matcher.success) {
        return Readiness::READY.into();
    }
    if is_late {
        return Readiness::in_progress(&format!("its conditions are older than generation {generation}")).into();
    }
    match holding.iter().find(|(matcher, _)| matcher.unblocks) {
        Some((_, condition)) => ReadinessVerdict { unblocks: true, ..Readiness::in_progress(&said(*condition)).into() },
        None => {
            let wanted = matchers.iter().filter(|matcher| matcher.success);
            let wanted: Vec<String> = wanted.map(|matcher| format!("{}={}", matcher.name, matcher.status)).collect();
            Readiness::in_progress(&format!("waiting for {}", wanted.join(" or "))).into()
        }
    }
}

impl Expressions {
    fn evaluate(&self, object: &Value) -> ReadinessVerdict {
        let holds = |expression: &CelExpression| {
            expression.holds(&[(VARIABLES[0], object)], &mut CelBudget::default()).unwrap_or_default()
        };
        let holds_too = |expression: &Option<CelExpression>| expression.as_ref().is_some_and(holds);
        if holds_too(&self.failure) {
            return Readiness::failed("the failure expression of its wait rule is true").into();
        }
        if holds(&self.success) {
            return Readiness::READY.into();
        }
        let unblocks = holds_too(&self.unblocks);
        ReadinessVerdict {
            unblocks,
            ..Readiness::in_progress("the success expression of its wait rule is not true yet").into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(test: ReadinessTest) -> WaitRule {
        WaitRule { matchers: vec![Matcher::All], observes_generation: false, test }
    }

    fn matcher(name: &str, status: &str) -> ConditionMatcher {
        ConditionMatcher { name: name.into(), status: status.into(), ..ConditionMatcher::default() }
    }

    /// A rule for kapp-controller's App.
    fn of_app() -> WaitRule {
        let success = ConditionMatcher { success: true, ..matcher("ReconcileSucceeded", "True") };
        let failure = ConditionMatcher { failure: true, ..matcher("ReconcileFailed", "True") };
        let unblocks = ConditionMatcher { unblocks: true, ..matcher("Reconciling", "True") };
        rule(ReadinessTest::Conditions(vec![success, failure, unblocks]))
    }

    fn object(conditions: &[(&str, &str)]) -> Value {
        let condition = |(name, status): &(&str, &str)| json!({"type": name, "status": status, "reason": "R", "message": "m", "observedGeneration": 1});
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "conditions": conditions}})
    }

    fn said(rule: &WaitRule, conditions: &[(&str, &str)]) -> (&'static str, String, bool) {
        let ReadinessVerdict { state, unblocks, .. } = rule.evaluate(&object(conditions));
        (state.word(), state.reason().unwrap_or_default().to_owned(), unblocks)
    }

    #[test]
    fn failure_comes_before_success_and_success_before_what_unblocks() {
        let (rule, progress) = (of_app(), ("Reconciling", "True"));
        let (done, failed) = (("ReconcileSucceeded", "True"), ("ReconcileFailed", "True"));
        assert_eq!(said(&rule, &[]), ("no", "waiting for ReconcileSucceeded=True".into(), false));
        assert_eq!(said(&rule, &[("ReconcileSucceeded", "False")]).0, "no");
        assert_eq!(said(&rule, &[progress]), ("no", "Reconciling is True: R: m".into(), true));
        assert_eq!(said(&rule, &[progress, done]), ("yes", String::new(), false));
        assert_eq!(said(&rule, &[progress, done, failed]), ("failed", "ReconcileFailed is True: R: m".into(), false));
    }

    #[test]
    fn conditions_of_an_older_generation_do_not_count() {
        let done = ("ReconcileSucceeded", "True");
        let mut rule = of_app();
        rule.observes_generation = true;
        assert_eq!(said(&rule, &[done]).1, "its controller has seen generation 1 of 2");
        let mut rule = of_app();
        if let ReadinessTest::Conditions(matchers) = &mut rule.test {
            matchers.iter_mut().for_each(|matcher| matcher.observes_generation = true);
        }
        assert_eq!(said(&rule, &[done]), ("no", "its conditions are older than generation 2".into(), false));
        let mut latest = object(&[done]);
        latest["status"]["conditions"][0]["observedGeneration"] = 2.into();
        assert_eq!(rule.evaluate(&latest).state, Readiness::READY);
    }

    #[test]
    fn a_failure_with_a_timeout_has_to_last() {
        let timeout = Some(Duration::from_secs(30));
        for failure in [true, false] {
            let failure = ConditionMatcher { failure, timeout, ..matcher("Ready", "False") };
            let rule = rule(ReadinessTest::Conditions(vec![failure]));
            let verdict = rule.evaluate(&object(&[("Ready", "False")]));
            assert_eq!(verdict.state.word(), "no");
            assert_eq!(verdict.fails_after, Some(("Ready=False".into(), Duration::from_secs(30))));
        }
    }

    #[test]
    fn expressions_look_at_any_field() {
        let compile = |source: &str| CelExpression::condition(source, VARIABLES).unwrap();
        let rule = rule(ReadinessTest::Expressions(Box::new(Expressions {
            success: compile("object.status.phase == 'Running'"),
            failure: Some(compile("object.status.phase == 'Failed'")),
            unblocks: Some(compile("object.status.phase == 'Starting'")),
        })));
        let evaluate = |status: Value| {
            let ReadinessVerdict { state, unblocks, .. } = rule.evaluate(&json!({"metadata": {}, "status": status}));
            (state.word(), unblocks)
        };
        assert_eq!(evaluate(json!({"phase": "Running"})), ("yes", false));
        assert_eq!(evaluate(json!({"phase": "Failed"})), ("failed", false));
        assert_eq!(evaluate(json!({"phase": "Starting"})), ("no", true));
        assert_eq!(evaluate(json!({})), ("no", false));
    }
}

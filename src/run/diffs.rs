//! Adds the diffs of a run to its report.

use serde_json::Value;

use gantry_cluster::Target;
use gantry_core::diff::{self, HiddenValueMarks, Hiding};
use gantry_core::finding::{Action, redact};
use gantry_core::matcher::{self, MatchableObject};
use gantry_core::options::DiffKind;
use gantry_deploy::config::{FieldRule, Settings, key};
use gantry_deploy::plan::Plan;
use gantry_deploy::plan::predicted::{self, Predicted};
use gantry_deploy::plan::rebase_rules::remove;
use gantry_report::Report;

/// Which diffs the user asked for.
#[derive(Debug, Clone, Copy)]
pub struct DiffRequest {
    pub kind: DiffKind,
    /// Shows everything, without folding.
    pub all: bool,
}

/// Fills in the diff of each change. Reads only.
pub async fn add_diffs(plan: &Plan, target: &Target, settings: &Settings, wanted: DiffRequest, report: &mut Report) {
    let DiffRequest { kind, all } = wanted;
    let mut marks = HiddenValueMarks::default();
    let is_line = |action| matches!(action, Action::Create | Action::Replace | Action::Delete | Action::Orphan);
    for entry in report.changes.iter_mut().filter(|entry| is_line(entry.action)) {
        entry.diff = Some(Box::default());
    }
    let writing = plan.policy.writing();
    let changes = &mut report.changes;
    let mut each = |predicted: Predicted<'_>| {
        let Predicted { change, live, next, approximate, schema } = predicted;
        let object = &plan.changes[change].desired.object;
        let hiding = match () {
            () if object.is_secret() => Hiding::Secret,
            // A CRD holds no user data.
            () if settings.is_on(&key::REDACT) && !object.is_crd() => Hiding::All,
            () => Hiding::Nothing,
        };
        let facts = MatchableObject::of_live(object, &next);
        let fits = |rule: &&FieldRule| matcher::any_matches(&rule.matchers, &facts) == Some(true);
        let masks: Vec<&FieldRule> = settings.rules.masks.iter().filter(fits).collect();
        let unseen: Vec<&FieldRule> = settings.rules.unseen.iter().filter(fits).collect();
        let mut shown = |value: Value| {
            let mut value = diff::without_server_fields(value);
            unseen.iter().for_each(|rule| remove(&mut value, &rule.path));
            masks.iter().for_each(|rule| marks.hide_at(&mut value, &rule.path));
            value
        };
        let live = live.map(&mut shown);
        let mut next = shown(next.clone());
        let mut diff = match live {
            Some(mut live) => {
                marks.hide(&mut [&mut live, &mut next], hiding);
                diff::compare(&live, &next, schema, object.is_crd(), all)
            }
            None => {
                marks.hide(&mut [&mut next], hiding);
                diff::diff_created(&next, all)
            }
        };
        if diff.lines.is_empty() {
            diff.lines.push(diff::note(match plan.changes[change].desired.bundle {
                Some(_) => "# nothing changes but what is not shown, such as field managers",
                None => "# only what is not shown changes: field managers, or the label of the app",
            }));
        }
        let said = |reason: String| if settings.is_on(&key::REDACT) { redact::without_values(&reason) } else { reason };
        diff.approximate = approximate.map(said);
        changes[change].diff = Some(Box::new(diff));
    };
    predicted::predict(plan, target, writing, kind == DiffKind::Full, &mut each).await;
}

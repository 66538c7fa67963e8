//! The objects of one CRD that changes: listed page by page, judged on all cores while the next page is fetched, and
//! forgotten but for what happens to them.

use std::sync::Arc;

use super::Options;
use super::crd::{Compiled, Crd};
use super::group::{About, Groups, Named};
use super::judge::{Effect, Judge};
use super::object::Item;
use super::pass::{self, Pass};
use super::question::VersionQuestion;
use super::rules;
use crate::parallel::in_parallel;
use crate::preflight::{Context, CouldNotCheck, Violation};
use crate::resource::Step;
use crate::target::{ListError, ListRequest, Page, Target};

/// Objects that one thread judges in a row.
const IN_A_ROW: usize = 16;

/// A CRD that may harm the objects that are there.
pub struct Upgrade {
    /// Index into the plan.
    pub change: usize,
    /// `samples.test.example.com`
    pub name: String,
    pub live: Crd,
    pub desired: Crd,
    pub questions: Vec<VersionQuestion>,
    /// See [`super::question::Questions::proven`].
    pub proven: Vec<Arc<str>>,
}

/// What was found, and what could not be looked at.
#[derive(Default)]
pub struct Found {
    pub violations: Vec<Violation>,
    pub unchecked: Vec<CouldNotCheck>,
    /// Change in the plan, objects that were read, versions that are proven.
    pub coverage: Vec<(usize, u64, Vec<Arc<str>>)>,
}

impl Found {
    pub fn extend(&mut self, other: Found) {
        self.violations.extend(other.violations);
        self.unchecked.extend(other.unchecked);
        self.coverage.extend(other.coverage);
    }
}

pub async fn survey(upgrade: Upgrade, options: &Options, context: &Context<'_>) -> Found {
    let mut found = Found::default();
    if upgrade.questions.is_empty() {
        found.coverage.push((upgrade.change, 0, upgrade.proven));
        return found;
    }
    let passes = match pass::passes(&upgrade, context.redact) {
        Ok(passes) => passes,
        Err(error) => {
            found.unchecked.push(error);
            return found;
        }
    };
    for version in &passes.not_judged {
        found.violations.push(not_judged(&upgrade, version));
    }
    // Each list has the same objects.
    let mut read = None;
    for Pass { version, judge } in passes.passes {
        let judge = Arc::new(judge);
        match list(&upgrade, &version, &judge, options, context).await {
            Ok(groups) => {
                read = read.max(Some(groups.total));
                let about = about(&upgrade, &judge.desired.0, options);
                let (violations, unchecked) = groups.into_violations(upgrade.change, &about);
                found.violations.extend(violations);
                found.unchecked.extend(unchecked);
            }
            Err(Unlisted::Webhook(said)) => found.violations.push(not_converted(&upgrade, &version, &said, context)),
            Err(Unlisted::Other(error)) => found.unchecked.push(error),
        }
    }
    if let Some(read) = read {
        if read > 0 {
            found.violations.extend(passes.perhaps_stored.iter().map(|version| perhaps_stored(&upgrade, version)));
        }
        found.coverage.push((upgrade.change, read, upgrade.proven));
    }
    found
}

fn about<'a>(upgrade: &'a Upgrade, compiled: &'a [Compiled], options: &Options) -> About<'a> {
    About { name: &upgrade.name, desired: &upgrade.desired, compiled, examples: options.max_examples }
}

/// Why there is no whole list.
enum Unlisted {
    /// The conversion webhook does not do its work.
    Webhook(String),
    Other(CouldNotCheck),
}

async fn list(
    upgrade: &Upgrade,
    version: &str,
    judge: &Arc<Judge>,
    options: &Options,
    context: &Context<'_>,
) -> Result<Groups, Unlisted> {
    let resource = upgrade.live.resource(version);
    let everywhere = [None];
    let some: Vec<Option<&str>> = options.namespaces.iter().map(|name| Some(name.as_str())).collect();
    let namespaces = if resource.namespaced && !some.is_empty() { &some[..] } else { &everywhere[..] };
    let mut groups = Groups::default();
    for namespace in namespaces {
        let request = ListRequest {
            resource: &resource,
            namespace: *namespace,
            label_selector: options.label_selector.as_deref(),
            page_size: options.page_size,
        };
        groups =
            pages(request, groups, judge, context).await.map_err(|error| unlisted(error, upgrade, context.target))?;
    }
    Ok(groups)
}

/// All pages of one list, on top of what other namespaces gave.
async fn pages(
    request: ListRequest<'_>,
    before: Groups,
    judge: &Arc<Judge>,
    context: &Context<'_>,
) -> Result<Groups, ListError> {
    let name = format!("{}.{}", request.resource.plural, request.resource.group);
    let mut pages = context.target.list(&request);
    let mut groups = before.clone();
    let mut page = next(&mut pages, &mut groups, &before).await?;
    while let Some(current) = page {
        let remaining = current.remaining();
        let judge = Arc::clone(judge);
        let mut taken = std::mem::take(&mut groups);
        let work = tokio::task::spawn_blocking(move || {
            let judged = judge_page(&judge, &current, &mut taken);
            (taken, judged)
        });
        let (judged, following) = futures::join!(work, pages.next());
        match judged {
            Ok((taken, Ok(()))) => groups = taken,
            Ok((_, Err(error))) => {
                let message = format!("the list of {name} holds what is no object: {error}");
                return Err(ListError::Other(crate::problem::Problem::new(message)));
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => return Err(ListError::Other(crate::problem::Problem::new("interrupted while judging objects"))),
        }
        let total = remaining.map(|remaining| usize::try_from(groups.total + remaining).unwrap_or(usize::MAX));
        context.stage.note(&name);
        context.stage.set(usize::try_from(groups.total).unwrap_or(usize::MAX), total);
        page = match following {
            Err(ListError::Expired) => {
                groups = before.clone();
                next(&mut pages, &mut groups, &before).await?
            }
            following => following?,
        };
    }
    Ok(groups)
}

/// The next page; where the list has to start anew, what came from it is forgotten.
async fn next(
    pages: &mut crate::target::Pages,
    groups: &mut Groups,
    before: &Groups,
) -> Result<Option<Page>, ListError> {
    loop {
        match pages.next().await {
            Err(ListError::Expired) => *groups = before.clone(),
            answer => return answer,
        }
    }
}

fn judge_page(judge: &Judge, page: &Page, groups: &mut Groups) -> Result<(), serde_json::Error> {
    let parts = judge.parts();
    let items: Vec<&str> = page.items().collect();
    let rows: Vec<&[&str]> = items.chunks(IN_A_ROW).collect();
    let judged = in_parallel(&rows, |row| {
        let mut harmed: Vec<(Named, Vec<Effect>)> = Vec::new();
        for json in *row {
            let item = Item::parse(json, &parts)?;
            if judge.leaves_alone(&item) {
                continue;
            }
            let effects = judge.object(&item);
            if !effects.is_empty() {
                harmed.push((Named::of(&item), effects));
            }
        }
        Ok(harmed)
    });
    groups.total += items.len() as u64;
    for row in judged {
        for (named, effects) in row? {
            groups.add(&named, effects);
        }
    }
    Ok(())
}

fn unlisted(error: ListError, upgrade: &Upgrade, target: &Target) -> Unlisted {
    let problem = match error {
        // A folder cannot ask a webhook; that says nothing about the webhook.
        ListError::Conversion { said, .. } if matches!(target, Target::Kube(_)) => return Unlisted::Webhook(said),
        ListError::Forbidden { right, problem } => {
            let kind = match &right.namespace {
                Some(namespace) => format!("Role in namespace {namespace:?}"),
                None => "ClusterRole".to_owned(),
            };
            let rule = format!(
                "- apiGroups: [{:?}]\n  resources: [{:?}]\n  verbs: [{:?}]",
                right.group, right.resource, right.verb
            );
            return Unlisted::Other(CouldNotCheck {
                message: format!("the objects of {} cannot be judged: {}", upgrade.name, problem.message),
                help: Some(format!("ask for a {kind} with this rule, bound to that user:\n{rule}")),
            });
        }
        error => error.problem().cloned(),
    };
    let (reason, help) = match problem {
        Some(problem) => (problem.message, problem.help),
        None => ("the list expired".to_owned(), Some("run again".to_owned())),
    };
    Unlisted::Other(CouldNotCheck {
        message: format!("the objects of {} cannot be judged: {reason}", upgrade.name),
        help,
    })
}

fn conversion() -> Vec<Step> {
    vec!["spec".into(), "conversion".into()]
}

fn not_converted(upgrade: &Upgrade, version: &str, said: &str, context: &Context<'_>) -> Violation {
    let said = if context.redact {
        "the conversion webhook fails".to_owned()
    } else {
        crate::text::cut(said, 400).into_owned()
    };
    let message = format!("objects cannot be read at {version}, so that nobody can tell what becomes of them: {said}");
    let help = "bring the conversion webhook up, then run again".to_owned();
    Violation::of(&rules::NOT_CONVERTED, upgrade.change, Some(version.to_owned()), message, help, conversion())
}

fn not_judged(upgrade: &Upgrade, version: &str) -> Violation {
    let message =
        format!("what the conversion makes of the objects at {version} cannot be asked before it is in place");
    let help = format!("read and write some objects at {version} on a test cluster first");
    let at = upgrade
        .desired
        .version(version)
        .map_or_else(conversion, |version| vec!["spec".into(), "versions".into(), version.index.into(), "name".into()]);
    Violation::of(&rules::NOT_JUDGED, upgrade.change, Some(version.to_owned()), message, help, at)
}

fn perhaps_stored(upgrade: &Upgrade, version: &str) -> Violation {
    let message = format!("some objects may be stored at {version}, which is removed: status.storedVersions names it");
    let help = format!(
        "write every object once, take {version} out of status.storedVersions, and remove it then; the server does not \
         tell which objects are stored at it"
    );
    let at = vec!["spec".into(), "versions".into()];
    Violation::of(&rules::REMOVED_VERSION, upgrade.change, Some(version.to_owned()), message, help, at)
}

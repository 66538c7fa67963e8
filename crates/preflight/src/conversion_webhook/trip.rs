//! Round trips of some stored objects: reads them at each version, writes them back unchanged (as a dry run), and
//! compares.

use std::collections::BTreeMap;

use serde_json::Value;

use super::converted;
use super::service::{could_not_check, unlisted};
use super::{ViolationsFound, rules, violation};
use crate::rule::RuleDoc;
use crate::{Context, CouldNotCheck, Violation, ViolationSubject};
use gantry_cluster::{ListError, ListRequest, RewriteError};
use gantry_core::crd::conversion_loss::{self, ConversionLoss};
use gantry_core::crd::{Crd, CrdVersion, steps};
use gantry_core::finding::{Affected, AffectedObject, Severity};
use gantry_core::resource::{ObjectRef, RawObject, Resource, Step};
use gantry_core::text;

/// How many lost values of a finding the human-readable output shows.
const EXAMPLES: usize = 10;
/// The maximum number of characters of a value that is shown.
const VALUE_SHOWN: usize = 80;

type SampleObjectName = (Option<String>, String);

/// Some objects at one version, by namespace and name, and the total number of objects.
struct Sample {
    objects: BTreeMap<SampleObjectName, Value>,
    total: u64,
}

/// Converts some objects of a live CRD. Returns the total number of objects, if known.
pub async fn convert(
    crd: &Crd,
    subject: &ViolationSubject,
    objects: u32,
    context: &Context<'_>,
    found: &mut ViolationsFound,
) -> Option<u64> {
    let storage = crd.storage()?;
    let stored = match sample(&crd.resource(&storage.name), objects, context).await {
        Ok(sample) => sample,
        Err(error) => {
            found.add(failed(crd, storage, subject, error, None, context));
            return None;
        }
    };
    for version in converted(crd) {
        let read = match sample(&crd.resource(&version.name), objects, context).await {
            Ok(read) => read,
            Err(ListError::NotServed(_)) => continue,
            Err(error) => {
                found.add(failed(crd, version, subject, error, Some(stored.total), context));
                continue;
            }
        };
        round_trip(crd, storage, version, subject, (&stored, &read), context, found).await;
    }
    Some(stored.total)
}

/// The number of objects of a CRD; `None` if unknown.
pub async fn count_objects(crd: &Crd, context: &Context<'_>) -> Option<u64> {
    let storage = crd.storage()?;
    sample(&crd.resource(&storage.name), 1, context).await.ok().map(|sample| sample.total)
}

async fn sample(resource: &Resource, objects: u32, context: &Context<'_>) -> Result<Sample, ListError> {
    let request = ListRequest::new(resource, objects);
    let mut pages = context.target.list(&request);
    let Some(page) = pages.next().await? else { return Ok(Sample { objects: BTreeMap::new(), total: 0 }) };
    let named = |item: &str| {
        let object = RawObject::new(item).value();
        let text = |key: &str| object["metadata"][key].as_str().map(str::to_owned);
        Some(((text("namespace"), text("name")?), object))
    };
    let total = page.len() as u64 + page.remaining().unwrap_or_default();
    Ok(Sample { objects: page.items().filter_map(named).collect(), total })
}

fn failed(
    crd: &Crd,
    version: &CrdVersion,
    subject: &ViolationSubject,
    error: ListError,
    total: Option<u64>,
    context: &Context<'_>,
) -> Result<Violation, CouldNotCheck> {
    match error {
        ListError::Conversion { said, .. } => Ok(fails(crd, version, subject, &said, total, context)),
        other => Err(unlisted(&other)),
    }
}

fn fails(
    crd: &Crd,
    version: &CrdVersion,
    subject: &ViolationSubject,
    said: &str,
    total: Option<u64>,
    context: &Context<'_>,
) -> Violation {
    let how_many = match total {
        Some(1) => "the existing object cannot be converted".to_owned(),
        Some(total) => format!("the {total} existing objects cannot be converted"),
        None => "objects cannot be converted".to_owned(),
    };
    let said = if context.redact { "the conversion webhook fails".into() } else { text::cut(said, 400) };
    let message = format!("{how_many} to {}: {said}", version.name);
    let help = format!("fix the conversion webhook of {}, then run again", crd.name);
    violation(&rules::FAILS, subject.clone(), Some(&version.name), message, &help, steps::conversion())
}

/// Converts each object to one version and back.
async fn round_trip(
    crd: &Crd,
    storage: &CrdVersion,
    version: &CrdVersion,
    subject: &ViolationSubject,
    (stored, read): (&Sample, &Sample),
    context: &Context<'_>,
    found: &mut ViolationsFound,
) {
    let resource = crd.resource(&version.name);
    let schema = version.schema().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let describes = |path: &[Step]| conversion_loss::is_described(schema.as_ref(), path);
    let mut hidden = Losses::default();
    let mut changed = Losses::default();
    for (name, object) in &read.objects {
        if let Some(stored) = stored.objects.get(name) {
            hidden.add(name, conversion_loss::find_losses(stored, object, describes));
        }
        let reference = reference(&resource, name);
        match context.target.rewritten(&resource, &reference, &context.plan.policy.field_manager).await {
            Ok(back) => {
                let mut differences = conversion_loss::differences(object, &back.value());
                if !differences.is_empty() {
                    let by_admission = admission_changes(&crd.resource(&storage.name), name, stored, context).await;
                    differences.retain(|loss| !by_admission.iter().any(|other| loss.is_same_change(other)));
                }
                changed.add(name, differences);
            }
            Err(RewriteError::Gone | RewriteError::NotHere) => {}
            Err(RewriteError::Conversion(said)) => {
                found.add(Ok(fails(crd, storage, subject, &said, Some(read.total), context)));
                break;
            }
            Err(RewriteError::Other(problem)) => {
                let CouldNotCheck { message, help } = could_not_check(Some(&problem));
                let message =
                    format!("it is unknown whether {reference} survives a write at {}: {message}", version.name);
                found.add(Err(CouldNotCheck { message, help }));
            }
        }
    }
    let (certain, likely): (Vec<_>, Vec<_>) = hidden.0.into_iter().partition(|(_, loss)| describes(&loss.path));
    let help = format!("make the webhook preserve it before any client writes at {}", version.name);
    let missing = format!("a value stored at {} is missing at {}, which has the field", storage.name, version.name);
    let maybe_missing = format!(
        "a value stored at {} is missing at {}: unless the webhook restores it, a write there erases it",
        storage.name, version.name
    );
    let changed_message = format!("an object is changed when it is read and written back at {}", version.name);
    for (losses, severity, message) in [
        (Losses(certain), Severity::Error, missing),
        (Losses(likely), Severity::Warning, maybe_missing),
        (changed, Severity::Error, changed_message),
    ] {
        found.violations.extend(losses.into_violation(
            &rules::LOSES_DATA,
            severity,
            subject,
            version,
            message,
            &help,
            read,
            context,
        ));
    }
}

fn reference(resource: &Resource, (namespace, name): &SampleObjectName) -> ObjectRef {
    ObjectRef {
        api_version: format!("{}/{}", resource.group, resource.version),
        kind: resource.kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    }
}

/// The changes of a write without conversion: admission webhooks may set fields whenever an object is written.
async fn admission_changes(
    storage: &Resource,
    name: &SampleObjectName,
    stored: &Sample,
    context: &Context<'_>,
) -> Vec<ConversionLoss> {
    let Some(object) = stored.objects.get(name) else { return Vec::new() };
    match context.target.rewritten(storage, &reference(storage, name), &context.plan.policy.field_manager).await {
        Ok(back) => conversion_loss::differences(object, &back.value()),
        Err(_) => Vec::new(),
    }
}

/// The lost values of some objects.
#[derive(Default)]
struct Losses(Vec<(SampleObjectName, ConversionLoss)>);

impl Losses {
    fn add(&mut self, name: &SampleObjectName, losses: Vec<ConversionLoss>) {
        self.0.extend(losses.into_iter().map(|loss| (name.clone(), loss)));
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one finding, each of a different type")]
    fn into_violation(
        self,
        doc: &'static RuleDoc,
        severity: Severity,
        subject: &ViolationSubject,
        version: &CrdVersion,
        message: String,
        help: &str,
        sample: &Sample,
        context: &Context<'_>,
    ) -> Option<Violation> {
        let Losses(losses) = self;
        let (_, first) = losses.first()?;
        let message = format!("{message}: {}", conversion_loss::show_path(&first.path));
        let mut names: Vec<&SampleObjectName> = losses.iter().map(|(name, _)| name).collect();
        names.dedup();
        let count = names.len() as u64;
        let objects = losses
            .iter()
            .map(|((namespace, name), loss)| AffectedObject {
                namespace: namespace.as_deref().map(Into::into),
                name: name.as_str().into(),
                path: Some(conversion_loss::show_path(&loss.path).into()),
                value: Some(describe_loss(loss, context.redact).into()),
            })
            .collect();
        let of = sample.objects.len() as u64;
        let affected = Some(Affected { count, of, unlisted: 0, examples: EXAMPLES, objects });
        let found = violation(doc, subject.clone(), Some(&version.name), message, help, steps::conversion());
        let mut found = found.severity(severity).path(conversion_loss::show_path(&first.path));
        found.body.affected = affected;
        Some(found)
    }
}

/// `"5m"`, or `"5m", is returned as "300s"`
fn describe_loss(loss: &ConversionLoss, redact: bool) -> String {
    let one = |value: &Value| match (redact, value) {
        (true, Value::String(_)) => "(string)".to_owned(),
        (true, Value::Number(_)) => "(number)".to_owned(),
        (true, _) => "(value)".to_owned(),
        (false, value) => text::cut(&value.to_string(), VALUE_SHOWN).into_owned(),
    };
    match &loss.now {
        Some(now) => format!("{}, is returned as {}", one(&loss.value), one(now)),
        None => one(&loss.value),
    }
}

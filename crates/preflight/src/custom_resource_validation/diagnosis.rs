//! The findings about existing objects: one for each cause.

use std::sync::Arc;

use super::before_upgrade::{Possible, possible};
use super::rules;
use crate::crd_upgrade_safety::migration;
use crate::objects::cause::CausingKeyword;
use crate::objects::effect::{Fill, LossMoment, ObjectImpact};
use crate::objects::group::{AffectedGroup, EffectCause, Groups};
use crate::rule::RuleDoc;
use crate::{CouldNotCheck, Violation};
use gantry_core::crd::{Crd, steps};
use gantry_core::finding::{Affected, AffectedObject, Breaks, Severity};
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_deploy::plan::managed;
use gantry_schema::ratchet::{FrozenAncestor, RatchetingRefusals};

/// The properties of the CRD that findings need.
pub struct About<'a> {
    pub name: &'a str,
    pub live: &'a Crd,
    pub desired: &'a Crd,
    /// The versions against which the objects were validated.
    pub validated: &'a [Arc<str>],
    pub examples: usize,
}

/// The violations, and what could not be evaluated. `change` is the index of the CRD in the plan.
pub fn violations(groups: Groups, change: usize, crd: &About<'_>) -> (Vec<Violation>, Vec<CouldNotCheck>) {
    let mut violations = Vec::new();
    let mut unchecked = Vec::new();
    for (key, group) in groups.groups {
        match diagnose(&key, &group, groups.total, crd) {
            Ok(diagnosis) => violations.push(violation(key, group, diagnosis, groups.total, change, crd)),
            Err(reason) => unchecked.push(undecided(&key, &group, &reason, groups.total, crd)),
        }
    }
    (violations, unchecked)
}

fn undecided(key: &EffectCause, group: &AffectedGroup, reason: &str, total: u64, crd: &About<'_>) -> CouldNotCheck {
    let place = if key.pattern.is_empty() { "the object" } else { &key.pattern };
    CouldNotCheck {
        message: format!(
            "{}, version {}: a rule of {place} could not be evaluated for {} of {}: {}: {reason}",
            crd.name,
            key.version,
            group.count,
            text::count(usize::try_from(total).unwrap_or(usize::MAX), "object"),
            key.keyword.words,
        ),
        help: Some("check with a dry run on a test cluster that has the CRD: kubectl apply --dry-run=server".into()),
    }
}

/// The texts and severity of a finding.
struct ValidationFinding {
    doc: &'static RuleDoc,
    severity: Severity,
    message: String,
    help: String,
}

/// `3 of 412 objects`
fn of_all(group: &AffectedGroup, total: u64) -> String {
    match (group.count, total) {
        (1, 1) => "the only object".to_owned(),
        (count, total) if count == total => format!("all {total} objects"),
        (count, total) => format!("{count} of {total} objects"),
    }
}

fn because(keyword: &CausingKeyword) -> String {
    if keyword.words.is_empty() { String::new() } else { format!(": {}", keyword.words) }
}

/// The diagnosis of a group, or the reason why the effect is undecided.
fn diagnose(
    key: &EffectCause,
    group: &AffectedGroup,
    total: u64,
    crd: &About<'_>,
) -> Result<ValidationFinding, String> {
    let EffectCause { version, impact, pattern, keyword } = key;
    let field = if pattern.is_empty() { "the object" } else { pattern.as_str() };
    let (because, of_all) = (because(keyword), of_all(group, total));
    let (is, has, lose, get) =
        if group.count == 1 { ("is", "has", "loses", "gets") } else { ("are", "have", "lose", "get") };
    let (them, values, manifests, these) = match group.count {
        1 => ("it", "its value", "its manifest", "this object"),
        _ => ("them", "their values", "their manifests", "these objects"),
    };
    let before_upgrade = || match possible(crd.live, crd.desired, version, field, &keyword.at) {
        Possible::Yes => format!("fix {field} in {them} before the upgrade, or let {version} accept {values}"),
        Possible::Pruned => format!(
            "the live CRD does not have {field}, so no object can have it yet. In this order: deploy the CRD with {field} \
             as an optional field, set it in {them}, and then require it; or give it a default"
        ),
        Possible::NoCommonValue(both) => format!(
            "no value of {field} is valid both in the live CRD and in this one. In this order: deploy the CRD with a schema of \
             {field} that accepts both ({both}), change {values}, and then deploy this CRD; or keep {field} and add a field \
             with another name"
        ),
    };
    let mut severity = None;
    let (doc, message, help): (&RuleDoc, String, String) = match impact {
        ObjectImpact::Undecided(reason) => return Err(reason.clone()),
        ObjectImpact::Refused(RatchetingRefusals::Every) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any update, even of labels, at {version}: {field}{because}"),
            before_upgrade(),
        ),
        ObjectImpact::Refused(RatchetingRefusals::OfStatus) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any write of its status at {version}: {field}{because}"),
            before_upgrade(),
        ),
        ObjectImpact::Refused(RatchetingRefusals::ChangesOfContent(part)) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any change of {part} at {version}: {field}{because}"),
            before_upgrade(),
        ),
        ObjectImpact::Refused(RatchetingRefusals::Applies) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any server-side apply at {version}: {field}{because}"),
            before_upgrade(),
        ),
        ObjectImpact::Refused(RatchetingRefusals::ChangesAround(FrozenAncestor { field: outer, is_list, .. })) => {
            let change = match is_list {
                true => format!("when {outer} is changed in any way (for example an item is added)"),
                false => format!("when anything in {outer} is changed"),
            };
            (
                &rules::REFUSED_WHEN_TOUCHED,
                format!("{of_all} {is} refused {change} at {version}: {field}{because}"),
                format!("fix {field} in {them} before anything changes {outer}"),
            )
        }
        ObjectImpact::Refused(RatchetingRefusals::ChangesOfValue) => (
            &rules::REFUSED_WHEN_TOUCHED,
            format!("{of_all} {is} refused when {field} is changed at {version}{because}"),
            match group.count {
                1 => format!("fix {field} in it before it has to be created again"),
                _ => format!("fix {field} in them before they have to be created again"),
            },
        ),
        ObjectImpact::Refused(RatchetingRefusals::None) => (
            &rules::REFUSED,
            format!("{of_all} {is} refused when created again at {version}: {field}{because}"),
            format!("fix {field} in {manifests}, or let {version} accept {values}"),
        ),
        // A null that the schema does not allow: otherwise the words are empty.
        ObjectImpact::Pruned(loss) if !keyword.words.is_empty() => {
            let when = match loss {
                LossMoment::OnRead => "",
                LossMoment::OnWrite => " when next written",
                LossMoment::IfStored => " if stored at this version",
                LossMoment::AtVersion => " when read and written at this version",
            };
            (
                &rules::DATA_PRUNED,
                format!("{of_all} {lose} {field}{when}: {} in {version}", keyword.words),
                format!("keep nullable: true for {field} in {version}, or remove the null from these objects first"),
            )
        }
        ObjectImpact::Pruned(LossMoment::OnRead) => (
            &rules::DATA_PRUNED,
            format!("{of_all} {lose} {field}: {version} no longer has it"),
            format!("keep {field} in {version}, or remove it from {these} first"),
        ),
        ObjectImpact::Pruned(LossMoment::OnWrite) => (
            &rules::DATA_PRUNED,
            format!(
                "{of_all} {lose} {field} when next written: {version} becomes the storage version and does not have it"
            ),
            format!("add {field} to {version}, or convert with a webhook"),
        ),
        ObjectImpact::Pruned(LossMoment::IfStored) => (
            &rules::DATA_PRUNED,
            format!("{of_all} {lose} {field} if stored at {version}, which no longer has it"),
            format!("keep {field} in {version} as long as status.storedVersions names it"),
        ),
        ObjectImpact::Pruned(LossMoment::AtVersion) => (
            &rules::DATA_PRUNED,
            format!("{of_all} {lose} {field} when read and written at {version}, which does not have it"),
            format!("add {field} to {version}, or convert with a webhook"),
        ),
        ObjectImpact::Defaulted(fill) => {
            let message = match fill {
                Fill::OnRead => format!("{of_all} {has} {field} defaulted on read at {version}{because}"),
                Fill::OnWrite => format!("{of_all} {get} {field} when next written at {version}{because}"),
                Fill::IfNotStored => format!("{of_all} may get a different {field} at {version}{because}"),
            };
            (&rules::DEFAULTED, message, format!("set {field} in the objects for which the default is wrong"))
        }
        ObjectImpact::NotAppliable { manager } => (
            &rules::REMOVED_VERSION,
            format!(
                "{of_all} can no longer be written by server-side apply once {version} is removed: managedFields have \
                 an entry of {manager} at {version}",
            ),
            move_entries(version, manager, crd),
        ),
        ObjectImpact::PerhapsStoredAt => (
            &rules::REMOVED_VERSION,
            format!(
                "{of_all} may still be stored at {version}, which is removed: managedFields have no entry at another \
                 version. If one object is, this kind becomes unreadable: every list of its objects fails, and that object \
                 can be neither read nor deleted"
            ),
            write_again(version, crd),
        ),
        ObjectImpact::WrittenAt { manager } => {
            severity = Some(Severity::Warning);
            let was = if group.count == 1 { "was" } else { "were" };
            (
                &rules::REMOVED_VERSION,
                format!("{of_all} {was} written at {version}, which is no longer served, by {manager}"),
                format!("make sure {manager} writes a version that is still served"),
            )
        }
        ObjectImpact::StoredAt => (
            &rules::REMOVED_VERSION,
            format!("{of_all} may be stored at {version}, which is removed"),
            format!(
                "keep {version} with storage: false until every object is written at the new storage version: gantry \
                 migrate {} --prune-stored-versions",
                crd.name
            ),
        ),
    };
    Ok(ValidationFinding { doc, severity: severity.unwrap_or_else(|| doc.severity()), message, help })
}

/// The next step for objects that may be stored at a version that is removed.
fn write_again(version: &str, crd: &About<'_>) -> String {
    let first = kept_unserved(version, crd);
    match managed::has_common_version(crd.live, crd.desired) {
        true => format!(
            "{first}, write every object again, and move its entries in managedFields; then {version} can be removed:\n{}",
            migration::write_all(crd.live)
        ),
        false => format!("{first} beside a version that stays, and run again"),
    }
}

/// Entries can be moved for good only if nobody can write at the version any more.
fn kept_unserved(version: &str, crd: &About<'_>) -> String {
    let is_served = crd.live.served(version).is_some();
    format!("keep {version} in the CRD{}", if is_served { " with served: false" } else { "" })
}

/// The next step for entries in managedFields at a version that is removed.
fn move_entries(version: &str, manager: &str, crd: &About<'_>) -> String {
    let first = format!("{}, make sure that {manager} writes at another version", kept_unserved(version, crd));
    match managed::has_common_version(crd.live, crd.desired) {
        true => format!(
            "{first}, and then move the entries; then {version} can be removed:\n{}",
            migration::write_all(crd.live)
        ),
        false => format!("{first}, which the CRD must also have, and run again"),
    }
}

fn violation(
    key: EffectCause,
    group: AffectedGroup,
    diagnosis: ValidationFinding,
    total: u64,
    change: usize,
    crd: &About<'_>,
) -> Violation {
    let ValidationFinding { doc, severity, message, help } = diagnosis;
    let is_only_of_writers = matches!(key.impact, ObjectImpact::WrittenAt { .. });
    let EffectCause { version, pattern, keyword, .. } = key;
    let label = format!("{}{}", of_all(&group, total), because(&keyword));
    let at: Vec<Step> = match crd.desired.version(&version) {
        Some(described) if crd.validated.contains(&version) => {
            steps::schema(described.index).into_iter().chain(keyword.at.iter().cloned()).collect()
        }
        Some(described) => steps::version(described.index),
        None => steps::versions(),
    };
    let unlisted = group.count.saturating_sub(count_distinct(&group.objects));
    let path = (!pattern.is_empty()).then_some(pattern);
    let violation = Violation::new(doc, change, Some(version.to_string()), message, help, at);
    let mut violation = violation.severity(severity).path(path).label(label);
    // The objects themselves can be read and written at every other version.
    if is_only_of_writers {
        violation.body.breaks = vec![Breaks::Writers];
    }
    let (count, examples, objects) = (group.count, crd.examples, group.objects);
    violation.body.affected = Some(Affected { count, of: total, unlisted, examples, objects });
    violation
}

/// The number of different objects, which are sorted.
fn count_distinct(objects: &[AffectedObject]) -> u64 {
    let mut count = 0;
    let mut last: Option<&AffectedObject> = None;
    for object in objects {
        count += u64::from(last.is_none_or(|last| last.name != object.name || last.namespace != object.namespace));
        last = Some(object);
    }
    count
}

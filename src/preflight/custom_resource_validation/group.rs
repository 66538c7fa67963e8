//! Effects on single objects, grouped by their cause: one finding for one mistake, however many objects meet it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::cause::Keyword;
use super::crd::{Compiled, Crd};
use super::judge::{Effect, Fill, Harm, Loss};
use super::object::Item;
use super::ratchet::Refusal;
use super::rules;
use crate::preflight::rule::RuleDoc;
use crate::preflight::{CouldNotCheck, Violation};
use crate::report::{Affected, AffectedObject, Severity};
use crate::resource::Step;
use crate::text;

/// Causes that are told apart in one CRD. What comes after them is counted together.
const MOST_CAUSES: usize = 500;
/// Objects that are named in the findings of one check. What comes after them is counted.
pub const MOST_NAMED: usize = 200_000;

/// What makes effects the same cause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    version: Arc<str>,
    harm: Harm,
    pattern: String,
    keyword: Keyword,
}

#[derive(Debug, Clone, Default)]
struct Group {
    count: u64,
    /// The last object, which may come several times in a row.
    last: Option<Named>,
    objects: Vec<AffectedObject>,
}

/// The causes found so far among the objects of one list.
#[derive(Debug, Clone)]
pub struct Groups {
    groups: BTreeMap<Key, Group>,
    /// Objects looked at.
    pub total: u64,
    /// How many more may be named.
    room: usize,
}

impl Default for Groups {
    fn default() -> Self {
        Groups::with_room(MOST_NAMED)
    }
}

impl Groups {
    /// Groups that name at most so many objects, over all causes.
    pub fn with_room(room: usize) -> Self {
        Groups { groups: BTreeMap::new(), total: 0, room }
    }

    pub fn add(&mut self, object: &Named, effects: Vec<Effect>) {
        for Effect { harm, version, pattern, keyword, path, value } in effects {
            let mut key = Key { version, harm, pattern, keyword };
            if self.groups.len() >= MOST_CAUSES && !self.groups.contains_key(&key) {
                key.pattern = String::new();
                key.keyword = Keyword { at: Vec::new(), words: "further causes".into() };
            }
            let group = match self.groups.entry(key) {
                Entry::Vacant(entry) => entry.insert(Group::default()),
                Entry::Occupied(entry) => entry.into_mut(),
            };
            if group.last.as_ref() != Some(object) {
                group.count += 1;
                group.last = Some(object.clone());
            }
            if let Some(room) = self.room.checked_sub(1) {
                self.room = room;
                group.objects.push(AffectedObject {
                    namespace: object.namespace.clone(),
                    name: object.name.clone(),
                    path: path.map(Into::into),
                    value: (!value.is_empty()).then(|| value.into()),
                });
            }
        }
    }

    /// The findings, and what could not be evaluated. `change` is the CRD's index in the plan.
    pub fn into_violations(self, change: usize, crd: &About<'_>) -> (Vec<Violation>, Vec<CouldNotCheck>) {
        let mut violations = Vec::new();
        let mut unchecked = Vec::new();
        for (key, group) in self.groups {
            match said(&key, &group, self.total) {
                Ok(said) => violations.push(violation(key, group, said, self.total, change, crd)),
                Err(reason) => unchecked.push(undecided(&key, &group, &reason, self.total, crd)),
            }
        }
        (violations, unchecked)
    }
}

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub namespace: Option<Box<str>>,
    pub name: Box<str>,
}

impl Named {
    pub fn of(item: &Item) -> Self {
        Named { namespace: item.namespace().map(Into::into), name: item.name().into() }
    }
}

/// What findings say about the CRD.
pub struct About<'a> {
    pub name: &'a str,
    pub desired: &'a Crd,
    /// The compiled versions that were judged.
    pub compiled: &'a [Compiled],
    pub examples: usize,
}

fn undecided(key: &Key, group: &Group, reason: &str, total: u64, crd: &About<'_>) -> CouldNotCheck {
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
        help: Some(
            "ask the server by a dry run: kubectl apply --dry-run=server, with the CRD on a test cluster".into(),
        ),
    }
}

/// What a finding says of its objects.
struct Said {
    doc: &'static RuleDoc,
    severity: Severity,
    message: String,
    help: String,
}

/// `3 of 412 objects`
fn of_all(group: &Group, total: u64) -> String {
    match (group.count, total) {
        (1, 1) => "the only object".to_owned(),
        (count, total) if count == total => format!("all {total} objects"),
        (count, total) => format!("{count} of {total} objects"),
    }
}

fn because(keyword: &Keyword) -> String {
    if keyword.words.is_empty() { String::new() } else { format!(": {}", keyword.words) }
}

/// The finding, or why nobody could tell.
fn said(key: &Key, group: &Group, total: u64) -> Result<Said, String> {
    let Key { version, harm, pattern, keyword } = key;
    let field = if pattern.is_empty() { "the object" } else { pattern.as_str() };
    let (because, of_all) = (because(keyword), of_all(group, total));
    let (is, lose, get) = if group.count == 1 { ("is", "loses", "gets") } else { ("are", "lose", "get") };
    let mut severity = None;
    let (doc, message, help): (&RuleDoc, String, String) = match harm {
        Harm::Undecided(reason) => return Err(reason.clone()),
        Harm::Refused(Refusal::AnyUpdate) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any update, even of labels, at {version}: {field}{because}"),
            format!("repair {field} in them before the upgrade, or let {version} accept what they have"),
        ),
        Harm::Refused(Refusal::AnyChangeOf(part)) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any change of {part} at {version}: {field}{because}"),
            format!("repair {field} in them before the upgrade, or let {version} accept what they have"),
        ),
        Harm::Refused(Refusal::AnyApply) => (
            &rules::REFUSED_ON_UPDATE,
            format!("{of_all} {is} refused on any server-side apply at {version}: {field}{because}"),
            format!("repair {field} in them before the upgrade, or let {version} accept what they have"),
        ),
        Harm::Refused(Refusal::Touched) => (
            &rules::REFUSED_WHEN_TOUCHED,
            format!("{of_all} {is} refused once {field} is touched at {version}{because}"),
            format!("repair {field} in them before somebody has to create them anew"),
        ),
        Harm::Refused(Refusal::CreateOnly) => (
            &rules::REFUSED,
            format!("{of_all} {is} refused when created anew at {version}: {field}{because}"),
            format!("repair {field} in their manifests, or let {version} accept what they have"),
        ),
        Harm::Pruned(Loss::OnRead) => (
            &rules::DATA_PRUNED,
            format!("{of_all} {lose} {field}: {version} does not have it any more"),
            format!("keep {field} in {version}, or take it out of these objects first"),
        ),
        Harm::Pruned(Loss::OnWrite) => (
            &rules::DATA_PRUNED,
            format!(
                "{of_all} {lose} {field} when next written: {version} becomes the storage version and does not have it"
            ),
            format!("add {field} to {version}, or convert by webhook"),
        ),
        Harm::Pruned(Loss::IfStored) => (
            &rules::DATA_PRUNED,
            format!("{of_all} {lose} {field} if stored at {version}, which does not have it any more"),
            format!("keep {field} in {version} as long as status.storedVersions names it"),
        ),
        Harm::Pruned(Loss::AtVersion) => (
            &rules::DATA_PRUNED,
            format!("{of_all} {lose} {field} when read and written at {version}, which does not have it"),
            format!("add {field} to {version}, or convert by webhook"),
        ),
        Harm::Defaulted(fill) => {
            let message = match fill {
                Fill::OnRead => format!("{of_all} {get} {field} at once at {version}{because}"),
                Fill::OnWrite => format!("{of_all} {get} {field} when next written at {version}{because}"),
                Fill::IfNotStored => format!("{of_all} perhaps {get} another {field} at {version}{because}"),
            };
            (&rules::DEFAULTED, message, format!("set {field} in them where the default does not suit"))
        }
        Harm::WrittenAt { manager, removed } => {
            severity = Some(Severity::Warning);
            let goes = if *removed { "which is removed" } else { "which is not served any more" };
            let (was, when) = (if group.count == 1 { "was" } else { "were" }, "written");
            (
                &rules::REMOVED_VERSION,
                format!("{of_all} {was} {when} at {version}, {goes}, by {manager}"),
                format!("see to it that {manager} writes at a version that stays"),
            )
        }
        Harm::StoredAt => (
            &rules::REMOVED_VERSION,
            format!("{of_all} may be stored at {version}, which is removed"),
            format!(
                "keep {version} with storage: false, write every object once at the new storage version, and take \
                 {version} out of status.storedVersions before it goes"
            ),
        ),
    };
    Ok(Said { doc, severity: severity.unwrap_or(doc.severity), message, help })
}

fn violation(key: Key, group: Group, said: Said, total: u64, change: usize, crd: &About<'_>) -> Violation {
    let Key { version, pattern, keyword, .. } = key;
    let label = format!("{}{}", of_all(&group, total), because(&keyword));
    let at = crd.compiled.iter().find(|compiled| compiled.name == version).map_or_else(
        || match crd.desired.version(&version) {
            Some(version) => vec!["spec".into(), "versions".into(), version.index.into()],
            None => vec!["spec".into(), "versions".into()],
        },
        |compiled| compiled.steps().into_iter().chain(keyword.at.iter().cloned()).collect::<Vec<Step>>(),
    );
    let unlisted = group.count.saturating_sub(distinct(&group.objects));
    Violation {
        affected: Some(Affected {
            count: group.count,
            of: total,
            unlisted,
            examples: crd.examples,
            objects: group.objects,
        }),
        path: (!pattern.is_empty()).then_some(pattern),
        label: Some(label),
        severity: said.severity,
        ..Violation::of(said.doc, change, Some(version.to_string()), said.message, said.help, at)
    }
}

fn distinct(objects: &[AffectedObject]) -> u64 {
    let mut count = 0;
    let mut last: Option<&AffectedObject> = None;
    for object in objects {
        count += u64::from(last.is_none_or(|last| last.name != object.name || last.namespace != object.namespace));
        last = Some(object);
    }
    count
}

//! Writes a record and deletes it, if it is still the one that was read.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    AppRecordContent, ID_LABEL, KINDS, LAST, LAST_APPLIED, LastRun, NAMESPACES, OUR_TOOLING, Parent, SUM, TOOLING,
};
use crate::app::config_map::ConfigMap;
use crate::app::inventory::{self, Inventory, MemberLines};
use crate::app::not_recorded::NotRecorded;
use crate::app::parts::{self, Existing, InventoryParts};
use crate::app::{App, MANAGER, SUFFIX, config_maps};
use gantry_cluster::patience::{Patience, help_with_webhook};
use gantry_cluster::{Apply, ApplyError, Delete, DeleteError, FormerTools, Target, WritePrecondition};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, RawObject};

/// The placeholder in a parent whose inventory is in parts: a version that does not know parts must not see an empty
/// one.
const SPLIT: (&str, &str) = ("inventory", "in the ConfigMaps that data.parts names");

impl Parent {
    /// Deletes the record and the parts of its inventory, unless the record changed after it was read. `renamed_to` is
    /// the app that has the members now.
    ///
    /// # Errors
    /// It changed after it was read, or cannot be deleted.
    pub async fn delete(
        &self,
        renamed_to: Option<&App>,
        patience: Patience<'_>,
        target: &Target,
    ) -> std::result::Result<(), Problem> {
        let object = self.app.parent();
        let mut now = None;
        // As long as the record exists, remaining parts can be found.
        if self.is_damaged {
            // Nobody reads it, and what is wrong with it may be what the server refuses to write over.
            parts::delete_unnamed_parts(&parts::existing(&self.app, target).await?, &InventoryParts::default(), target)
                .await?;
        } else if self.parts.is_some() {
            let content = AppRecordContent {
                kinds: self.kinds.clone(),
                namespaces: self.namespaces.clone(),
                members: BTreeSet::new(),
                last: self.last.clone().unwrap_or_else(LastRun::none),
                last_applied: None,
                may_split: true,
            };
            let (emptied, swept) = store(&self.app, Some(self), content, renamed_to, patience, target)
                .await
                .map_err(|error| error.problem)?;
            swept?;
            now = Some(emptied.live);
        }
        let LiveObject { uid, resource_version, .. } = now.as_ref().unwrap_or(&self.live);
        let delete = Delete { resource: &config_maps(), object: &object, uid, resource_version, foreground: false };
        let not_deleted = |problem: Problem| Problem {
            message: format!("{object} could not be deleted: {}", problem.message),
            ..problem
        };
        match patience.delete(&delete, target).await {
            Ok(()) => Ok(()),
            Err(DeleteError::Changed) => {
                let message = format!("{object} changed after it was read; the app {} is kept", self.app.name);
                Err(Problem::new(message).help("run the same command again"))
            }
            Err(DeleteError::NotYet(problem)) => {
                let help = help_with_webhook(&problem, target).await;
                Err(not_deleted(problem).help(help))
            }
            Err(DeleteError::Refused(problem)) => Err(not_deleted(problem)),
        }
    }

    fn pin(&self) -> WritePrecondition {
        WritePrecondition::At { uid: self.live.uid.clone(), resource_version: self.live.resource_version.clone() }
    }
}

/// Writes the parent, unless it changed after it was read. Returns the live state.
///
/// # Errors
/// It changed after it was read (another run has begun), or cannot be written.
pub async fn write(
    app: &App,
    before: Option<&Parent>,
    content: AppRecordContent,
    patience: Patience<'_>,
    target: &Target,
) -> std::result::Result<Parent, NotRecorded> {
    // Parts that no record names do no harm, and the next run that writes the record deletes them.
    store(app, before, content, None, patience, target).await.map(|(parent, _)| parent)
}

/// Also returns whether all parts that the parent no longer names are deleted.
async fn store(
    app: &App,
    before: Option<&Parent>,
    content: AppRecordContent,
    renamed_to: Option<&App>,
    patience: Patience<'_>,
    target: &Target,
) -> std::result::Result<(Parent, std::result::Result<(), Problem>), NotRecorded> {
    let inventory =
        inventory::encode(&content.members).map_err(|why| Problem::new(format!("the app {}: {why}", app.name)))?;
    let known = before.and_then(|before| before.parts.as_ref());
    // An app that was never so large is written without listing its parts.
    let may_have_parts = content.may_split || known.is_some() || matches!(inventory, Inventory::Split(_));
    let existing = if may_have_parts { parts::existing(app, target).await? } else { Existing::new() };
    let mut named = InventoryParts { parts: Vec::new(), renamed_to: renamed_to.map(|app| app.name.clone()) };
    let mut texts: &[MemberLines] = &[];
    if let Inventory::Split(split) = &inventory {
        texts = split;
        let mut taken = existing.keys().copied().collect();
        for text in texts {
            let there = known.and_then(|known| known.find(text)).filter(|part| existing.contains_key(&part.number));
            named.parts.push(match there {
                Some(part) => part.clone(),
                None => parts::create(app, &mut taken, text, patience, target).await?,
            });
        }
    }
    let says_parts = content.may_split || !texts.is_empty() || !existing.is_empty();
    let raw = object(app, &content, &inventory, says_parts.then_some(&named));
    let mut raw = raw.map_err(|error| Problem::new(format!("the app {}: {error}", app.name)))?;
    // An apply that omits a key does not remove it if another manager set it too.
    let live = before.and_then(|before| ConfigMap::parse(&before.live.raw.json()).ok());
    for key in inventory::KEYS {
        let is_left = live.as_ref().is_some_and(|live| live.value(key).is_some());
        if is_left && raw["data"].get(key).is_none() {
            raw["data"][key] = "".into();
        }
    }
    let parent = app.parent();
    let pin = before.map_or(WritePrecondition::Absent, Parent::pin);
    let apply = Apply {
        resource: &config_maps(),
        object: &parent,
        raw: &RawObject::from_value(&raw),
        live: before.map(|before| &before.live.raw),
        pin: &pin,
        field_manager: MANAGER,
        force_conflicts: true,
        former_tools: FormerTools::Keep,
        helm: None,
    };
    let live = match patience.apply(&apply, target).await {
        Ok(live) => live,
        Err(ApplyError::Changed) => {
            let message = format!(
                "{parent} changed after it was read: another run on the app {} has started meanwhile, or another client edited it",
                app.name
            );
            let help = "run the same command again; it says so if the other run has not ended";
            return Err(Problem::new(message).help(help).into());
        }
        Err(error @ (ApplyError::NotYet(..) | ApplyError::Unknown(_) | ApplyError::Refused(_))) => {
            return Err(
                NotRecorded::from_error(error, &format!("the app {} cannot be recorded", app.name), target).await
            );
        }
        // Every field is applied by force, so no conflict is expected.
        Err(ApplyError::Conflict(_)) => {
            return Err(Problem::new(format!("{parent} has conflicts of field managers")).into());
        }
    };
    let parent = Parent::from_texts(app, live, texts)?;
    let swept = parts::delete_unnamed_parts(&existing, &named, target).await;
    Ok((parent, swept))
}

pub(super) fn object(
    app: &App,
    content: &AppRecordContent,
    inventory: &Inventory,
    parts: Option<&InventoryParts>,
) -> serde_json::Result<Value> {
    let AppRecordContent { kinds, namespaces, members, last, last_applied, .. } = content;
    let additional: Vec<&str> =
        namespaces.iter().filter(|namespace| **namespace != app.namespace).map(String::as_str).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{}{SUFFIX}", app.name),
            "namespace": app.namespace,
            "labels": {ID_LABEL: app.id()},
            "annotations": {
                TOOLING: OUR_TOOLING,
                KINDS: kinds.join(","),
                NAMESPACES: additional.join(","),
            },
        },
        "data": {LAST: serde_json::to_string(last)?, SUM: inventory::sum(members)},
    });
    let data = &mut object["data"];
    let parts = parts.map(serde_json::to_string).transpose()?;
    let beside = match inventory {
        Inventory::Whole(text) => {
            data[text.key()] = text.text.as_str().into();
            &text.text
        }
        Inventory::Split(_) => {
            data[SPLIT.0] = SPLIT.1.into();
            parts.as_deref().unwrap_or_default()
        }
    };
    if let Some(last_applied) = last_applied.as_ref().and_then(|marks| marks.encode(members, beside)) {
        data[LAST_APPLIED] = last_applied.into();
    }
    if let Some(parts) = &parts {
        data[parts::KEY] = parts.as_str().into();
    }
    Ok(object)
}

//! Fields of a live CRD that stay because they belong to another field manager, and with which the server refuses the
//! CRD.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::migration;
use gantry_core::crd::{Crd, CrdSides};
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::merge;
use gantry_core::resource::Step;
use gantry_core::text;

/// The next step for a refusal at `at`: who owns what stays there, and the commands that remove it. `None` if the
/// manifest itself sets what is refused, or nobody else owns it.
pub fn next_step(crd: &CrdSides, manager: &str, at: &[Step]) -> Option<(String, Vec<String>)> {
    let live = crd.live_object.as_ref()?.value();
    let desired = crd.desired_object.value();
    let kept = first_unset(&desired, at)?;
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in ManagerEntry::all(&live) {
        let mut fields = entry.fields();
        fields.retain_existing(&live);
        let paths: Vec<String> = fields.split_off(&kept).paths().iter().map(|path| merge::path_text(path)).collect();
        if !paths.is_empty() && !entry.is_of_applier(manager) {
            owners.entry(text::sanitize(entry.manager()).into_owned()).or_default().extend(paths);
        }
    }
    if owners.is_empty() {
        return None;
    }
    let owned = owners.iter().map(|(name, fields)| format!("{} of field manager {name:?}", fields.join(", ")));
    let owned = owned.collect::<Vec<_>>().join(", ");
    let is_conversion = kept.get(..2) == Some(&["spec", "conversion"]);
    let patch = match is_conversion && kept.len() > 2 {
        // A strategy and its webhook are valid only together.
        true => json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}),
        false => kept.iter().rev().fold(Value::Null, |below, key| json!({(*key): below})),
    };
    let name = desired["metadata"]["name"].as_str()?;
    let kept = format!("the live CRD keeps {owned}, because the manifest does not set it.");
    let command = format!("kubectl patch customresourcedefinition/{name} --type=merge -p '{patch}'");
    let rewrite = is_conversion.then(|| crd.live()?.ok()).flatten().and_then(|live| rewrite(live));
    Some(match rewrite {
        Some(rewrite) => {
            let help = format!(
                "{kept} Removing it ends the conversion by the webhook: an object that is stored at another version would lose \
                 the fields that only that version has with its next write. So store all at one version first, while the webhook \
                 answers, and deploy again afterwards:"
            );
            (help, vec![rewrite, command])
        }
        None => {
            let effect = if is_conversion { ", which ends the conversion by the webhook," } else { "" };
            (format!("{kept} Remove it{effect} and deploy again:"), vec![command])
        }
    })
}

/// The command that stores all objects at the storage version; `None` if the CRD has no other version.
fn rewrite(live: &Crd) -> Option<String> {
    (live.versions.len() > 1).then(|| migration::write_all(live))
}

/// The names of the fields to the first one on the way to `at` that the object does not set; `None` if it sets all, or
/// a list is on the way.
fn first_unset<'s>(object: &Value, at: &'s [Step]) -> Option<Vec<&'s str>> {
    let mut names = Vec::new();
    let mut value = object;
    for step in at {
        let Step::Key(name) = step else { return None };
        names.push(name.as_str());
        match value.get(name) {
            Some(below) => value = below,
            None => return Some(names),
        }
    }
    None
}

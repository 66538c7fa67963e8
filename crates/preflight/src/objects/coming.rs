//! The objects that the deploy itself writes, validated along with the stored ones in the form that they will have.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::effect::{Fill, ObjectImpact};
use super::object::ProjectedObject;
use super::tally::{ExampleObject, ObjectOutcomes, TalliedCause, Tally};
use super::validator::ObjectValidator;
use super::{Upgrade, question};
use crate::Context;
use gantry_core::crd::ConversionStrategy;
use gantry_core::merge;
use gantry_deploy::plan::Change;

/// Counts the effects on the manifests of this kind. Manifests that change nothing are counted as stored objects.
pub fn validate(
    upgrade: &Upgrade,
    listed: &Arc<str>,
    validator: &ObjectValidator,
    context: &Context<'_>,
    tally: &mut Tally,
) {
    let is_of_kind = |change: &&Change| {
        change.resource.group == upgrade.live.group
            && change.resource.plural == upgrade.live.names.plural
            && !change.action.leaves_alone()
    };
    for change in context.plan.changes.iter().filter(is_of_kind) {
        let object = &change.desired.object;
        match form_object(upgrade, listed, change, &context.plan.policy.field_manager) {
            Ok(value) => {
                let mut effects = validator.effects(&ProjectedObject { value, managed: Vec::new() });
                // A value that a manifest sets is stored, so it does not come from a default.
                effects.retain(|effect| effect.impact != ObjectImpact::Defaulted(Fill::IfNotStored));
                let causes =
                    effects.iter().filter_map(TalliedCause::of_effect).map(|cause| (cause, BTreeSet::new())).collect();
                let namespace = object.namespace.as_deref().map(Into::into);
                let example = ExampleObject { namespace, name: object.name.as_str().into(), from_manifest: true };
                tally.manifests += 1;
                tally.add(ObjectOutcomes { example, causes });
            }
            Err(reason) => {
                let unvalidated = tally.unvalidated.get_or_insert((0, format!("the manifest of {object}: {reason}")));
                unvalidated.0 += 1;
            }
        }
    }
}

/// The object as the deploy will write it, in the form in which it is listed.
fn form_object(upgrade: &Upgrade, listed: &Arc<str>, change: &Change, manager: &str) -> Result<Value, String> {
    let name = change.resource.version.as_str();
    let webhook = [&upgrade.live, &upgrade.desired]
        .into_iter()
        .any(|crd| question::conversion(crd, &upgrade.live) == ConversionStrategy::Webhook);
    if webhook && name != &**listed {
        return Err(format!("it is written at {name}, and only the conversion webhook can convert it to {listed}"));
    }
    let version = upgrade.desired.version(name).ok_or_else(|| format!("version {name} is removed"))?;
    let mut form = merge::intent(change.desired.raw.value(), version.status_subresource);
    if let Some(live) = &change.live {
        form = merge::merge(&live.raw.value(), &form, &version.schema_value()?, manager);
    }
    if let Some(metadata) = form.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    form["apiVersion"] = upgrade.live.api_version(listed).into();
    Ok(form)
}

//! CRDs that several operators own.
//!
//! Classic OLM lets operators share a CRD as long as no served version is removed and every existing object is valid
//! against the new schema. OLM's documentation does not mention this; it is implemented in `pkg/lib/crd` and
//! `validateV1CRDCompatibility` of operator-lifecycle-manager.

use std::collections::BTreeMap;

use super::nodes::{OperatorChanges, OperatorNode};
use super::rules::SHARED_CRD_NOT_COMPATIBLE;
use super::violation;
use crate::objects::effect::ObjectImpact;
use crate::objects::survey::{IncompleteListReason, ObjectSelection, survey_objects};
use crate::objects::{PAGE_SIZE, Upgrade, Wants, compare};
use crate::pair::UpgradedCrd;
use crate::{Context, CouldNotCheck, ViolationsFound};
use gantry_core::parallel::on_cpu_thread;
use gantry_core::text::sanitize;

/// The maximum number of objects that a message names.
const NAMES_SHOWN: usize = 3;

pub async fn check(nodes: &OperatorChanges, context: &Context<'_>) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    for pair in UpgradedCrd::all(&context.plan.changes) {
        let owners: Vec<&OperatorNode> = nodes.after.iter().filter(|node| node.crds.contains(&pair.name)).collect();
        // OLM copies a ClusterServiceVersion to other namespaces, so one name is one operator.
        let operators: BTreeMap<&str, String> = owners.iter().map(|owner| (&*owner.name, owner.to_text())).collect();
        if operators.len() < 2 {
            continue;
        }
        let shown = operators.into_values().collect::<Vec<_>>().join(", ");
        let (change, name) = (pair.change, pair.name.clone());
        if let Ok(crds) = pair.crds() {
            // A version that stays with `served: false` is no removal: that is how one is retired.
            let removed = crds.live.served_versions().map(|version| &*version.name);
            for removed in removed.filter(|name| crds.desired.version(name).is_none()) {
                let message = format!(
                    "served version {} of {name} is removed, but several operators own the CRD: {shown}",
                    sanitize(removed)
                );
                let help = "keep it, with served: false if no operator needs it: OLM refuses the update".to_owned();
                found.violations.push(violation(&SHARED_CRD_NOT_COMPATIBLE, change, message, help));
            }
        }
        let proofs = context.proofs.clone();
        match on_cpu_thread(move || compare(&pair, &proofs)).await {
            Some(Ok(Some(upgrade))) => report_refused_objects(&upgrade, &name, &shown, context, &mut found).await,
            Some(Ok(None)) => {}
            Some(Err(error)) => found.unchecked.push(error),
            None => {
                found.unchecked.push(CouldNotCheck { message: "interrupted while comparing CRDs".into(), help: None })
            }
        }
    }
    found
}

/// Reports objects that the new schema refuses, even if the API server tolerates that on an update (ratcheting).
async fn report_refused_objects(
    upgrade: &Upgrade,
    name: &str,
    owners: &str,
    context: &Context<'_>,
    found: &mut ViolationsFound,
) {
    let selection = ObjectSelection { page_size: PAGE_SIZE, ..ObjectSelection::default() };
    let surveyed = survey_objects(upgrade, &selection, Wants { named: true, ..Wants::default() }, context).await;
    found.unchecked.extend(surveyed.error.clone());
    for list in &surveyed.lists {
        match &list.read {
            Ok(_) => {}
            Err(
                IncompleteListReason::Forbidden(error)
                | IncompleteListReason::NotConvertible(error)
                | IncompleteListReason::Other(error),
            ) => {
                found.unchecked.push(error.clone());
                continue;
            }
            Err(IncompleteListReason::Webhook(said)) => {
                let message = format!("objects of {name} cannot be read at {}: {}", list.version, sanitize(said));
                found.unchecked.push(CouldNotCheck { message, help: None });
                continue;
            }
        }
        for (key, group) in list.take_named().groups {
            let ObjectImpact::Refused(_) = key.impact else { continue };
            let of = |object: &gantry_core::finding::AffectedObject| match &object.namespace {
                Some(namespace) => format!("{namespace}/{}", object.name),
                None => object.name.to_string(),
            };
            let names: Vec<String> = group.objects.iter().take(NAMES_SHOWN).map(of).collect();
            let message = format!(
                "updated validation is too restrictive: {} of {name} ({}) would be refused at {} for {}, and several \
                 operators own it: {owners}",
                gantry_core::text::count(usize::try_from(group.count).unwrap_or(usize::MAX), "object"),
                sanitize(&names.join(", ")),
                key.version,
                sanitize(&key.pattern),
            );
            let help =
                "fix the objects first, or keep the schema as permissive as it is: OLM refuses the update".to_owned();
            found.violations.push(violation(&SHARED_CRD_NOT_COMPATIBLE, upgrade.change, message, help));
        }
    }
}

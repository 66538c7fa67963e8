//! The versions at which the objects are listed, and the validator for each list.
//!
//! Without a conversion webhook one list is enough: the forms of an object differ only in `apiVersion`. With a webhook,
//! only the webhook can convert objects, so they are listed at each version. The server can do that only for versions
//! that are served today.

use std::sync::Arc;

use super::Upgrade;
use super::compiled::CompiledVersion;
use super::defaults;
use super::leaving::Leaving;
use super::question::{self, Ask};
use super::validator::{CompiledVersions, ObjectValidator};
use crate::CouldNotCheck;
use gantry_core::crd::{ConversionStrategy, Crd, CrdVersion};

/// One list of objects, and how they are validated.
pub struct Pass {
    /// The version to list at.
    pub version: Arc<str>,
    pub validator: ObjectValidator,
}

#[derive(Default)]
pub struct Passes {
    pub passes: Vec<Pass>,
    /// Versions at which objects cannot be read yet.
    pub not_validated: Vec<Arc<str>>,
    /// Removed versions that `status.storedVersions` names and that are not the storage version.
    pub perhaps_stored: Vec<Arc<str>>,
}

/// The lists that answer the questions of an upgrade.
///
/// # Errors
/// A schema cannot be compiled, or no version of the live CRD is served.
pub fn passes(upgrade: &Upgrade, redact: bool) -> Result<Passes, CouldNotCheck> {
    let Upgrade { live, desired, questions, .. } = upgrade;
    let asked = |ask: Ask| questions.iter().filter(move |question| question.ask == ask).map(|q| q.version.clone());
    let (before, after) = (question::conversion(live, live), question::conversion(desired, live));
    let mut fits: Vec<Arc<str>> = asked(Ask::Fits).collect();
    if after == ConversionStrategy::Webhook {
        // Only the webhook determines what will be stored: validate what it converts every object to.
        let moved: Vec<Arc<str>> = asked(Ask::Stores).filter(|version| !fits.contains(version)).collect();
        fits.extend(moved);
    }
    let stored = live.storage().map(|version| version.name.clone());
    let is_served = |version: &Arc<str>| live.served(version).is_some();
    let leaving: Vec<Leaving> = questions
        .iter()
        .filter(|question| matches!(question.ask, Ask::Unserved | Ask::Removed))
        .map(|question| Leaving {
            version: question.version.clone(),
            ask: question.ask,
            is_storage: stored.as_ref() == Some(&question.version),
            is_said_to_be_empty: question.ask == Ask::Removed && !live.is_stored(&question.version),
        })
        .collect();
    let perhaps_stored = leaving
        .iter()
        .filter(|leaving| leaving.ask == Ask::Removed && !leaving.is_storage)
        .map(|leaving| leaving.version.clone())
        .filter(|version| live.is_stored(version))
        .collect();
    let mut passes = Passes { perhaps_stored, ..Passes::default() };

    let any = stored.iter().filter(|version| is_served(version)).cloned();
    let any =
        any.chain(live.versions.iter().filter(|version| version.served).map(|version| version.name.clone())).next();
    // Serving the version at which all objects are stored, with the schema that they were written with, is how a kind
    // that nobody serves comes back.
    let is_as_before = |version: &Arc<str>| {
        let is_same = |now: &CrdVersion| live.version(version).is_some_and(|before| before.same_schema(now));
        desired.version(version).is_some_and(is_same) && live.stored_versions() == [&**version]
    };
    let Some(any) = any else {
        if questions.iter().all(|asked| asked.ask == Ask::Fits && is_as_before(&asked.version)) {
            return Ok(passes);
        }
        return Err(CouldNotCheck {
            message: format!("no version of the live CRD {} is served: its objects cannot be listed", upgrade.name),
            help: Some("serve a version without another change of the CRD, then run again".into()),
        });
    };
    // The result at a version matters if it will be served or if all objects will be stored at it.
    let matters = |version: &Arc<str>| desired.served(version).is_some() || asked(Ask::Stores).any(|v| v == *version);
    let validator = |fits: Vec<Arc<str>>,
                     stored: Option<Arc<str>>,
                     leaving: Vec<Leaving>,
                     listed: &Arc<str>|
     -> Result<ObjectValidator, CouldNotCheck> {
        // If its schema does not change, reading from storage changes nothing.
        let stored = stored.filter(|stored| fits.contains(stored));
        let stores = if after == ConversionStrategy::None { asked(Ask::Stores).next() } else { None };
        let names: Vec<Arc<str>> = fits.iter().chain(&stored).chain(&stores).cloned().collect();
        let only_stored: Vec<Arc<str>> =
            fits.iter().filter(|version| desired.served(version).is_none()).cloned().collect();
        let new: Vec<Arc<str>> =
            fits.iter().filter(|version| !is_served(version) && !only_stored.contains(version)).cloned().collect();
        // If an object gets to a version in the same way as today, only what differs between the schemas matters.
        let narrows = |version: &Arc<str>| {
            let alike = || live.version(listed).zip(live.version(version)).is_some_and(|(a, b)| a.same_schema(b));
            let as_today = stored.as_ref().is_none_or(|stored| stored == version) && (listed == version || alike());
            as_today
                && !live.preserve_unknown_fields
                && stores.as_ref() != Some(version)
                && ![&only_stored, &new].into_iter().flatten().any(|other| other == version)
        };
        let live_side = compile(live, desired, &names, &narrows, "the live CRD", upgrade)?;
        let desired_side = compile(desired, live, &names, &narrows, "the manifest of CRD", upgrade)?;
        let pair = stored.as_ref().and_then(|stored| Some((live_side.at(stored)?, desired_side.at(stored)?)));
        let changed_defaults =
            pair.map(|(live, desired)| defaults::changed(&live.raw, &desired.raw)).unwrap_or_default();
        Ok(ObjectValidator {
            group: live.group.clone(),
            live: live_side,
            desired: desired_side,
            stored,
            only_stored,
            new,
            fits,
            stores,
            leaving,
            changed_defaults,
            keeps_unknown_fields: live.preserve_unknown_fields && !desired.preserve_unknown_fields,
            redact,
        })
    };

    match (before, after) {
        (ConversionStrategy::None, ConversionStrategy::None) => {
            passes.passes.push(Pass { validator: validator(fits, stored, leaving, &any)?, version: any });
        }
        (ConversionStrategy::Webhook, ConversionStrategy::Webhook) => {
            let (askable, unknown): (Vec<_>, Vec<_>) = fits.into_iter().partition(is_served);
            passes.not_validated = unknown.into_iter().filter(matters).collect();
            let mut leaving = Some(leaving);
            if !leaving.as_ref().is_some_and(Vec::is_empty) && !askable.contains(&any) {
                let validator = validator(Vec::new(), None, leaving.take().unwrap_or_default(), &any)?;
                passes.passes.push(Pass { validator, version: any });
            }
            for version in askable {
                let stored = stored.clone().filter(|stored| *stored == version);
                let validator = validator(vec![version.clone()], stored, leaving.take().unwrap_or_default(), &version)?;
                passes.passes.push(Pass { validator, version });
            }
        }
        // The stored objects stay the same; the new webhook determines them at the other versions.
        (ConversionStrategy::None, ConversionStrategy::Webhook) => {
            let (known, unknown): (Vec<_>, Vec<_>) =
                fits.into_iter().partition(|version| stored.as_ref() == Some(version));
            passes.not_validated = unknown.into_iter().filter(matters).collect();
            passes.passes.push(Pass { validator: validator(known, stored, leaving, &any)?, version: any });
        }
        (ConversionStrategy::Webhook, ConversionStrategy::None) => {
            if stored.as_ref() == Some(&any) {
                passes.passes.push(Pass { validator: validator(fits, stored, leaving, &any)?, version: any });
            } else {
                passes.not_validated = fits.into_iter().filter(matters).collect();
                passes.passes.push(Pass { validator: validator(Vec::new(), None, leaving, &any)?, version: any });
            }
        }
    }
    Ok(passes)
}

/// Compiles one side's versions with these names; those for which `narrows` holds, without what the other side has too.
fn compile(
    side: &Crd,
    other: &Crd,
    names: &[Arc<str>],
    narrows: &dyn Fn(&Arc<str>) -> bool,
    whose: &str,
    upgrade: &Upgrade,
) -> Result<CompiledVersions, CouldNotCheck> {
    let compile = |version: &CrdVersion| match other.version(&version.name).filter(|_| narrows(&version.name)) {
        Some(other) => CompiledVersion::compile_difference(version, other, upgrade.release),
        None => CompiledVersion::compile(version, upgrade.release),
    };
    let compiled: Result<Vec<CompiledVersion>, CouldNotCheck> = side
        .versions
        .iter()
        .filter(|version| names.contains(&version.name))
        .map(|version| {
            compile(version).map_err(|reason| CouldNotCheck {
                message: format!("the schema of {} in {whose} {} cannot be read: {reason}", version.name, upgrade.name),
                help: Some("make it a structural schema: kubectl apply --dry-run=server shows what is wrong".into()),
            })
        })
        .collect();
    compiled.map(CompiledVersions)
}

//! Custom checks: entries of `preflightRules` that define what is checked, with a program (`exec`) or an expression
//! (`cel`).
//!
//! gantry runs a program only if the user asks for it: in the user's own file, in a file of `-c`, or in the project
//! file if that is allowed. The project file is part of a repository, and manifests are data that others may have
//! written: checking them must not run their programs. A check whose program is not run reports that it could not
//! check.

use std::path::{Component, Path, PathBuf};

use figment::value::Value;

use super::check::{CheckConfig, KnownKind, KnownPreflightRules};
use super::keys::{RULES, table};
use super::layer::LayerData;
use super::located::{LocatedData, LocatedValue};
use super::merge::Merged;
use super::origin::{Layer, SettingOrigin};
use gantry_core::problem::{Location, Problem};

/// The pattern of a custom check's name. The names of built-in checks start with a capital, so the two never collide.
pub(super) const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
pub(super) const LONGEST_NAME: usize = 63;

/// What a selectable check is.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckDefinition {
    /// A built-in check.
    BuiltIn,
    /// A custom check.
    Own {
        /// The key of its kind, such as `exec`.
        kind: &'static str,
        /// The place of that key.
        at: Option<Location>,
    },
    /// A custom check whose program must not run.
    NotRun {
        /// The place that names the program.
        at: Option<Location>,
        /// Why not.
        why: Withheld,
    },
}

/// Why a program does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// It came with the manifests.
    CameWithManifests,
    /// The project file names it, and `allowExec` is not set.
    NotAllowed,
}

/// A check that the configuration defines.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomCheck {
    /// The name of the entry, which flags select it by.
    pub name: String,
    /// What its entry defines.
    pub definition: CheckDefinition,
    /// The value of the key of its kind.
    pub config: CheckConfig,
}

/// Removes the definitions of checks that Config documents among the manifests may not make. Returns a notice for each.
pub(super) fn guard(layers: &mut [LayerData], known: &KnownPreflightRules) -> Vec<Problem> {
    let is_defined = |name: &str| {
        let of_team = layers.iter().filter(|layer| layer.layer.is_of_team());
        of_team
            .filter_map(|layer| rule(layer, name))
            .any(|rule| known.kinds.iter().any(|kind| rule.contains_key(kind.key)))
    };
    let mut out = Vec::new();
    for (index, layer) in layers.iter().enumerate().filter(|(_, layer)| layer.layer == Layer::Manifests) {
        for name in layer.rules.iter().flatten() {
            for kind in &known.kinds {
                let defines = rule(layer, name).is_some_and(|rule| rule.contains_key(kind.key));
                if defines && (kind.runs_programs || is_defined(name)) {
                    out.push((index, name.clone(), kind, is_defined(name)));
                }
            }
        }
    }
    let mut notices = Vec::new();
    for (index, name, kind, is_defined) in out {
        let layer = &mut layers[index];
        let place = layer.place(&[RULES, &name, kind.key]);
        if let Some(Value::Dict(_, rules)) = layer.values.get_mut(RULES)
            && let Some(Value::Dict(_, rule)) = rules.get_mut(&name)
        {
            rule.remove(kind.key);
        }
        let message = format!("ignored: {:?} of the check {name:?}, because it is set by the manifests", kind.key);
        let help = match is_defined {
            true => "a configuration file already defines what the check does",
            false => "gantry never runs a program that manifests name; define the check in a config file (-c FILE)",
        };
        notices.push(place.problem(message).help(help));
        if !is_defined {
            layer.not_run.entry(name).or_insert(place);
        }
    }
    notices
}

pub(super) fn rule<'l>(layer: &'l LayerData, name: &str) -> Option<&'l figment::value::Dict> {
    match layer.values.get(RULES) {
        Some(Value::Dict(_, rules)) => match rules.get(name) {
            Some(Value::Dict(_, rule)) => Some(rule),
            _ => None,
        },
        _ => None,
    }
}

/// The checks that the merged layers define, in the order in which they first appear, and the problems with them.
/// `came_along` is true if the project file is one of the manifests.
pub(super) fn read(
    merged: &Merged,
    layers: &[LayerData],
    came_along: bool,
    known: &KnownPreflightRules,
) -> (Vec<CustomCheck>, Vec<Problem>) {
    let withheld = match came_along {
        true => Some(Withheld::CameWithManifests),
        false if table::ALLOW_EXEC.is_on(&merged.tree) => None,
        false => Some(Withheld::NotAllowed),
    };
    let mut checks = Vec::new();
    let mut problems = Vec::new();
    for name in merged.rules.iter().flatten() {
        let Some(rule) = merged.tree.get(RULES).and_then(|rules| rules.get(name)) else { continue };
        let found: Vec<(&KnownKind, &LocatedValue)> =
            known.kinds.iter().filter_map(|kind| Some((kind, rule.get(kind.key)?))).collect();
        let at = |place: &SettingOrigin| place.location().cloned();
        let (definition, config) = match found.as_slice() {
            [] if known.has(name) => continue,
            [] => match layers.iter().find_map(|layer| layer.not_run.get(name)) {
                Some(place) => {
                    let why = Withheld::CameWithManifests;
                    (CheckDefinition::NotRun { at: at(place), why }, CheckConfig::default())
                }
                None => continue,
            },
            [(kind, section)] => {
                let of_project = if kind.runs_programs { of_project(section) } else { None };
                let definition = match of_project.zip(withheld) {
                    Some((place, why)) => CheckDefinition::NotRun { at: at(place), why },
                    None => CheckDefinition::Own { kind: kind.key, at: at(&section.key) },
                };
                (definition, CheckConfig(Some((*section).clone())))
            }
            [(first, _), (second, section), ..] => {
                let message = format!("the check {name:?} has both {:?} and {:?}", first.key, second.key);
                problems.push(section.key.problem(message).help("split it into two checks with different names"));
                let why = Withheld::NotAllowed;
                (CheckDefinition::NotRun { at: at(&section.key), why }, CheckConfig::default())
            }
        };
        if let Some((kind, section)) = found.first() {
            let wrong = wrong_name(name, kind, section, known);
            let is_gantrys = known.has(name);
            problems.extend(wrong);
            if is_gantrys {
                continue;
            }
        }
        if let [(kind, _)] = found.as_slice()
            && let Err(found) = kind.read(name, &config)
        {
            problems.extend(found);
        }
        checks.push(CustomCheck { name: name.clone(), definition, config });
    }
    (checks, problems)
}

/// The place where the project file sets a part of a check's definition, if it does. A part is enough: every part
/// determines which program runs.
fn of_project(node: &LocatedValue) -> Option<&SettingOrigin> {
    match &node.data {
        LocatedData::Map(map) if !map.is_empty() => {
            let found = map.values().find_map(of_project)?;
            Some(if node.layer == Layer::Project { &node.key } else { found })
        }
        _ => (node.layer == Layer::Project).then_some(&node.key),
    }
}

fn wrong_name(name: &str, kind: &KnownKind, section: &LocatedValue, known: &KnownPreflightRules) -> Option<Problem> {
    if known.has(name) {
        let message = format!("{name:?} is a built-in check and does not accept {:?}", kind.key);
        return Some(
            section.key.problem(message).help("choose another name for your check, such as \"no-latest-tag\""),
        );
    }
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(inner);
    if fits && !name.starts_with('-') && !name.ends_with('-') {
        return None;
    }
    let message = format!("{name:?} is not a valid name for your own check");
    let help = "use lower case letters, digits and -, such as \"no-latest-tag\"; names with capitals are reserved for \
        gantry";
    Some(section.key.problem(message).help(help))
}

/// Resolves a program's relative path against the folder of its config file. A plain name is looked up in `PATH`.
pub(super) fn start_at_folder(section: &mut Value, folder: &Path) {
    let Value::Dict(_, section) = section else { return };
    let Some(Value::Array(_, command)) = section.get_mut("command") else { return };
    if let Some(Value::String(_, program)) = command.first_mut()
        && program.contains(['/', std::path::MAIN_SEPARATOR])
    {
        let path: PathBuf = folder.join(&*program).components().filter(|part| *part != Component::CurDir).collect();
        // Keep a separator, so the program is not looked up in PATH.
        let path = if path.components().count() == 1 { Path::new(".").join(path) } else { path };
        *program = path.to_string_lossy().into_owned();
    }
}

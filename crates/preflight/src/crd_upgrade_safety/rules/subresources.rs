//! A subresource is added, changed or removed.

use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::wording::wording;
use gantry_core::resource::Step;

pub fn status_added(pair: &CrdPair) -> Vec<ViolationText> {
    pair.common_versions()
        .filter(|(live, desired)| !live.status_subresource && desired.status_subresource)
        .map(|(live, desired)| {
            ViolationText::at(steps::subresource(desired.index, "status"))
                .in_version(&live.name)
                .message(wording!(
                    "status becomes a subresource of ",
                    VERSIONS,
                    ": writes of the object itself no longer change it"
                ))
                .help("make sure that every client that reports a status writes it through /status")
                .label("no status subresource in the live CRD")
        })
        .collect()
}

pub fn removed(pair: &CrdPair) -> Vec<ViolationText> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let gone = [
            ("status", live.status_subresource && !desired.status_subresource),
            ("scale", live.scale.is_some() && desired.scale.is_none()),
        ];
        found.extend(gone.into_iter().filter(|(_, gone)| *gone).map(|(name, _)| {
            ViolationText::at(steps::subresource(desired.index, name))
                .in_version(&live.name)
                .message(wording!("the {name} subresource is removed from ", VERSIONS))
                .help(wording!("keep subresources.{name} in ", VERSIONS))
                .label(format!("the live CRD has the {name} subresource"))
        }));
    }
    found
}

/// The scale subresource uses different fields.
pub fn scale_path_changed(pair: &CrdPair) -> Vec<ViolationText> {
    let shown = |path: &str| if path.is_empty() { "none".to_owned() } else { path.to_owned() };
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let (Some(was), Some(now)) = (&live.scale, &desired.scale) else { continue };
        let paths = was.paths().into_iter().zip(now.paths()).filter(|((_, was), (_, now))| was != now);
        found.extend(paths.map(|((path, was), (_, now))| {
            let (was, now) = (shown(was), shown(now));
            ViolationText::at(at_scale(desired.index, path))
                .in_version(&live.name)
                .message(wording!("{path} of ", VERSIONS, " changes from {was} to {now}"))
                .help(wording!("keep {path}: {was} in ", VERSIONS))
                .label(format!("was {was} in the live CRD"))
        }));
    }
    found
}

/// The scale subresource newly reads a field that can have other values than it accepts.
pub fn scale_field_restricted(pair: &CrdPair) -> Vec<ViolationText> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let added = desired.scale_paths().beside(&live.scale_paths());
        if added.is_empty() {
            continue;
        }
        // A schema that cannot be read is an error of its own.
        let Ok(schema) = desired.schema_value() else { continue };
        found.extend(added.unbounded(&schema).into_iter().map(|(role, node)| {
            let path = path(&node);
            let field = path.strip_prefix("^.").unwrap_or("the object itself").to_owned();
            let wanted = match role {
                "labelSelectorPath" => "a string",
                _ => "an integer from 0 to 2147483647",
            };
            ViolationText { node: Some((path, node)), ..ViolationText::at(at_scale(desired.index, role)) }
                .in_version(&live.name)
                .message(wording!(
                    "{role} of ",
                    VERSIONS,
                    " newly points to {field}, which can be something else than {wanted}; the server refuses every write \
                     of such an object"
                ))
                .help(wording!(
                    "fix such objects first, or bound {field} in ",
                    VERSIONS,
                    " so that every value of it is {wanted}"
                ))
                .label("the live CRD does not have this path")
        }));
    }
    found
}

fn at_scale(version: usize, path: &str) -> Vec<Step> {
    let mut at = steps::subresource(version, "scale");
    at.push(path.into());
    at
}

/// `^.spec.replicas`
fn path(node: &[Step]) -> String {
    let names = node.iter().skip(1).step_by(2).filter_map(|step| match step {
        Step::Key(name) => Some(name.as_str()),
        Step::Index(_) => None,
    });
    std::iter::once("^").chain(names).collect::<Vec<_>>().join(".")
}

//! What OLM installs for the ClusterExtensions and Subscriptions of the manifests, a line for each.

use crate::Report;
use gantry_core::finding::{ExtensionEntry, ResolvedBundle, SubscriptionEntry};
use gantry_core::text;

/// The maximum length of a line.
const LONGEST: usize = 300;

/// The lines; a further one about an object is indented.
pub fn lines(report: &Report) -> Vec<String> {
    let extensions = report.extensions.iter().flat_map(extension);
    let subscriptions = report.subscriptions.iter().map(subscription);
    extensions.chain(subscriptions).map(|line| text::cut(&text::sanitize(&line), LONGEST).into_owned()).collect()
}

/// What a ClusterExtension resolves to.
fn extension(extension: &ExtensionEntry) -> Vec<String> {
    let ExtensionEntry { name, package, installed, resolved, .. } = extension;
    let versions = match (installed, resolved) {
        (None, None) => "resolves to nothing".to_owned(),
        (Some(installed), None) if installed.is_empty() => "resolves to nothing".to_owned(),
        (Some(installed), None) if extension.error.is_none() => format!("stays at {installed}"),
        (Some(installed), None) => format!("{installed} -> nothing"),
        (installed, Some(resolved)) => {
            let step = match installed {
                Some(installed) if *installed == resolved.version => format!("stays at {installed}"),
                Some(installed) => format!("{installed} -> {}", resolved.version),
                None => resolved.version.clone(),
            };
            let from: Vec<&str> =
                resolved.channels.iter().map(String::as_str).chain([resolved.catalog.as_str()]).collect();
            format!("{step} ({})", from.join(", "))
        }
    };
    let mut lines = vec![format!("extension {name}: {package} {versions}")];
    let is_new = |resolved: &&ResolvedBundle| installed.as_ref() != Some(&resolved.version);
    if let Some(ResolvedBundle { image: Some(image), directory: None, version, .. }) = resolved.as_ref().filter(is_new)
    {
        lines.push(format!(
            "  content of {image} not checked: gantry catalog {package} {version} --bundle says how to get it for -f"
        ));
    }
    lines
}

/// What classic OLM installs for a Subscription.
fn subscription(entry: &SubscriptionEntry) -> String {
    let SubscriptionEntry { name, namespace, package, channel, catalog, installed, resolved, .. } = entry;
    let versions = match (installed, resolved) {
        (Some(installed), None) => format!("{installed} -> nothing"),
        (None, None) => "resolves to nothing".to_owned(),
        (Some(installed), Some(resolved)) if installed == resolved => format!("stays at {installed}"),
        (Some(installed), Some(resolved)) => format!("{installed} -> {resolved}"),
        (None, Some(resolved)) => resolved.clone(),
    };
    let mut notes: Vec<&str> = [channel.as_str(), catalog].into_iter().filter(|text| !text.is_empty()).collect();
    notes.extend(entry.edges.iter().map(String::as_str));
    notes.extend(entry.starting_csv.then_some("startingCSV"));
    notes.extend(entry.is_at_head.then_some("head of the channel"));
    notes.extend(entry.needs_approval.then_some("approval Manual"));
    let then = match entry.then.is_empty() {
        true => String::new(),
        false => format!(", then {}", entry.then.join(" -> ")),
    };
    let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("subscription {namespace}{name}: {package} {versions} ({}){then}", notes.join(", "))
}

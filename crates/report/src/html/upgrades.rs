//! What OLM installs for the extensions and subscriptions of the manifests: the installed version and the way from it.

use maud::{Markup, html};

use super::super::{Report, words};
use gantry_core::finding::{ExtensionEntry, SubscriptionEntry};

/// The maximum number of versions of a path that are shown.
const VERSIONS: usize = 30;

/// A path for each of them.
pub fn write_upgrades(report: &Report) -> Markup {
    html! {
        @if !report.extensions.is_empty() || !report.subscriptions.is_empty() {
            section aria-labelledby="upgrades" {
                h2 id="upgrades" { "Upgrades by OLM" }
                @for extension in &report.extensions { (write_extension(extension)) }
                @for subscription in &report.subscriptions { (write_subscription(subscription)) }
            }
        }
    }
}

fn write_extension(extension: &ExtensionEntry) -> Markup {
    let next = extension.resolved.as_ref().map(|bundle| bundle.version.as_str());
    let then: Vec<&str> = extension.path.iter().map(String::as_str).filter(|version| Some(*version) != next).collect();
    html! {
        h3 { "ClusterExtension " (words::line(&extension.name, 200)) " " span class="faint" { "package " (words::line(&extension.package, 200)) } }
        (write_path(extension.installed.as_deref(), next, &then, ""))
        @if let Some(bundle) = &extension.resolved {
            p class="faint" {
                (words::line(&bundle.bundle, 200)) " from " (words::line(&bundle.catalog, 200))
                @if !bundle.channels.is_empty() { ", channel " (words::line(&bundle.channels.join(", "), 300)) }
                @if extension.pinned { "; the version is pinned, so OLM installs no other one by itself" }
            }
        }
        @if let Some(error) = &extension.error { p class="error" { "Does not resolve: " (words::line(error, 1000)) } }
    }
}

fn write_subscription(subscription: &SubscriptionEntry) -> Markup {
    let then: Vec<&str> = subscription.then.iter().map(String::as_str).collect();
    html! {
        h3 { "Subscription " (words::line(&subscription.name, 200)) " " span class="faint" { "package " (words::line(&subscription.package, 200)) } }
        (write_path(subscription.installed.as_deref(), subscription.resolved.as_deref(), &then, &subscription.edges.join(", ")))
        p class="faint" {
            "channel " (words::line(&subscription.channel, 200)) " of " (words::line(&subscription.catalog, 200))
            @if subscription.needs_approval { "; somebody has to approve each step" }
        }
        @if let Some(error) = &subscription.error { p class="error" { "Does not resolve: " (words::line(error, 1000)) } }
    }
}

/// The installed version, the one that OLM installs next, and those that follow.
fn write_path(installed: Option<&str>, next: Option<&str>, then: &[&str], edge: &str) -> Markup {
    let version = |version: &str| words::line(version, 100);
    html! {
        ol class="path" {
            @match installed {
                Some(installed) => { li { code { (version(installed)) } " " span class="faint" { "installed" } } }
                None => { li { span class="faint" { "nothing is installed" } } }
            }
            @if let Some(next) = next.filter(|next| Some(*next) != installed) {
                li class="next" {
                    code { (version(next)) } " " span { "next" @if !edge.is_empty() { " (" (words::line(edge, 200)) ")" } }
                }
            } @else if next.is_some() {
                li class="next" { span { "stays" } }
            }
            @for one in then.iter().take(VERSIONS) {
                li { code { (version(one)) } " " span class="faint" { @if next.is_some() { "then" } @else { "possible path" } } }
            }
            @if then.len() > VERSIONS { li { span class="faint" { "and " (then.len() - VERSIONS) " more" } } }
        }
    }
}

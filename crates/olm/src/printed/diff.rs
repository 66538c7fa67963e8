//! The comparison of two catalogs as text, Markdown and JSON.

use std::collections::BTreeMap;

use gantry_catalog::diff::{BundleDiff, ChannelDiff, EdgeDiff, OldAndNew, PackageDiff, PartChange};
use gantry_catalog::graph::By;
use serde::Serialize;
use serde_json::{Value, json};

use crate::affected::{AffectedInstallation, InstallationEffect};
use gantry_core::text::{count, cut, markdown_code, markdown_code_block, sanitize, shell_word};

/// The maximum number of lines about a channel, unless one package was asked for.
const MOST_LINES_OF_CHANNEL: usize = 20;

/// Two catalogs, what differs, and what that changes for installations.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogComparison {
    /// The old catalog.
    pub old: ComparedCatalog,
    /// The new catalog.
    pub new: ComparedCatalog,
    /// The packages that differ.
    pub packages: Vec<PackageDiff>,
    /// The ClusterExtensions and Subscriptions for which something changes; `None` if none were looked at.
    pub affected: Option<Vec<AffectedInstallation>>,
    /// The number of ClusterExtensions and Subscriptions that were looked at.
    pub considered: usize,
}

/// One of two catalogs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedCatalog {
    /// The source as the user named it.
    pub source: String,
    /// The number of packages.
    pub packages: usize,
    /// The packages that cannot be read, by name, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
    /// The flag with which other commands read this catalog; empty if they read it anyway.
    #[serde(skip)]
    pub flag: String,
}

/// The number of parts of each change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PartCounts {
    added: usize,
    removed: usize,
    changed: usize,
}

impl PartCounts {
    fn count_changes(changes: impl Iterator<Item = PartChange>) -> PartCounts {
        let mut counts = PartCounts::default();
        for change in changes {
            match change {
                PartChange::Added => counts.added += 1,
                PartChange::Removed => counts.removed += 1,
                PartChange::Changed => counts.changed += 1,
            }
        }
        counts
    }

    fn to_text(self) -> String {
        format!("{} new, {} removed, {} changed", self.added, self.removed, self.changed)
    }
}

impl CatalogComparison {
    /// Whether the catalogs differ.
    pub fn has_changes(&self) -> bool {
        !self.packages.is_empty()
    }

    fn bundle_counts(&self) -> PartCounts {
        PartCounts::count_changes(self.packages.iter().flat_map(|package| &package.bundles).map(|bundle| bundle.change))
    }

    fn package_counts(&self) -> PartCounts {
        PartCounts::count_changes(self.packages.iter().map(|package| package.change))
    }

    fn deprecated(&self) -> usize {
        self.packages.iter().map(|package| package.deprecated.len()).sum()
    }

    /// What differs, as numbers.
    fn summary(&self) -> String {
        let deprecated = match self.deprecated() {
            0 => String::new(),
            number => format!("; {number} newly deprecated"),
        };
        let (packages, bundles) = (self.package_counts().to_text(), self.bundle_counts().to_text());
        format!("packages: {packages}; bundles: {bundles}{deprecated}")
    }

    /// The unreadable packages of the new catalog that are not among the differences.
    fn unreadable(&self) -> impl Iterator<Item = (&String, &String)> {
        let is_told = |name: &str| {
            let mut packages = self.packages.iter().filter(|package| package.change == PartChange::Changed);
            packages.any(|package| package.name == name && package.unreadable.is_some())
        };
        self.new.unreadable.iter().filter(move |(name, _)| !is_told(name))
    }

    /// How many installations are affected; `None` if none were looked at.
    fn affected_summary(&self) -> Option<String> {
        let affected = self.affected.as_ref()?;
        Some(match (self.considered, affected.len()) {
            (0, _) => "nothing: there is no ClusterExtension and no Subscription".to_owned(),
            (all, number) => format!("{number} of {all} ClusterExtensions and Subscriptions"),
        })
    }
}

/// The comparison as text. `is_complete` leaves nothing out.
pub fn comparison_text(comparison: &CatalogComparison, is_complete: bool) -> String {
    let (old, new) = (sanitize(&comparison.old.source), sanitize(&comparison.new.source));
    let mut out = format!("{old} -> {new}\n");
    if comparison.has_changes() {
        out.push_str(&format!("{}\n\n", comparison.summary()));
        comparison.packages.iter().for_each(|package| push_package(&mut out, package, is_complete));
    } else {
        out.push_str("the catalogs have the same packages, channels, bundles and edges\n");
    }
    for (package, why) in comparison.unreadable() {
        out.push_str(&format!(
            "! package {} of the new catalog cannot be read: {}\n",
            sanitize(package),
            sanitize(why)
        ));
    }
    if let Some(summary) = comparison.affected_summary() {
        out.push_str(&format!("\naffected: {summary}\n"));
    }
    for affected in comparison.affected.iter().flatten() {
        out.push_str(&format!("\n{}\n", affected_heading(affected, |name| sanitize(name).into_owned())));
        out.push_str(&format!("  old catalog: {}\n", sanitize(affected.old.to_text())));
        out.push_str(&format!("  new catalog: {}\n", sanitize(affected.new.to_text())));
        if let Some(next) = next_step(affected, &comparison.new.flag) {
            let command = next.command.map(|command| format!(": {command}")).unwrap_or_default();
            out.push_str(&format!("  next: {}{command}\n", next.text));
        }
    }
    out
}

/// The comparison as Markdown, for a comment on a pull request.
pub fn comparison_markdown(comparison: &CatalogComparison, is_complete: bool) -> String {
    let name = |text: &str| markdown_code(&sanitize(text));
    let mut out = format!(
        "### Catalog: {} → {}\n\n{}\n",
        name(&comparison.old.source),
        name(&comparison.new.source),
        if comparison.has_changes() { comparison.summary() } else { "no differences".to_owned() }
    );
    for (package, why) in comparison.unreadable() {
        out.push_str(&format!("\n**Package {} of the new catalog cannot be read:** {}\n", name(package), name(why)));
    }
    if let Some(summary) = comparison.affected_summary() {
        out.push_str(&format!("\n**Affected:** {summary}\n"));
    }
    for affected in comparison.affected.iter().flatten() {
        out.push_str(&format!("\n- {}\n", affected_heading(affected, name)));
        out.push_str(&format!("  - old catalog: {}\n", name(affected.old.to_text())));
        out.push_str(&format!("  - new catalog: {}\n", name(affected.new.to_text())));
        if let Some(next) = next_step(affected, &comparison.new.flag) {
            let command = next.command.map(|command| format!(": {}", name(&command))).unwrap_or_default();
            out.push_str(&format!("  - next: {}{command}\n", next.text));
        }
    }
    if comparison.has_changes() {
        let mut lines = String::new();
        comparison.packages.iter().for_each(|package| push_package(&mut lines, package, is_complete));
        out.push_str(&format!("\n{}\n", markdown_code_block(lines.trim_end(), "diff")));
    }
    out
}

/// The comparison as JSON.
pub fn comparison_json(comparison: &CatalogComparison) -> Value {
    let mut json = json!({
        "apiVersion": "gantry.dev/v1alpha1",
        "kind": "CatalogDiff",
        "old": comparison.old,
        "new": comparison.new,
        "summary": {
            "packages": comparison.package_counts(),
            "bundles": comparison.bundle_counts(),
            "deprecated": comparison.deprecated(),
        },
        "packages": comparison.packages,
    });
    if let Some(affected) = &comparison.affected {
        json["affected"] = json!(affected);
        json["summary"]["affected"] = affected.len().into();
        json["summary"]["considered"] = comparison.considered.into();
    }
    json
}

/// The object, what is installed, and what changes.
fn affected_heading(affected: &AffectedInstallation, name: impl Fn(&str) -> String) -> String {
    let AffectedInstallation { kind, namespace, package, .. } = affected;
    let at = if namespace.is_empty() { String::new() } else { format!(" in namespace {}", name(namespace)) };
    let installed = match &affected.installed {
        Some(version) => format!("{} {} installed", name(package), name(version)),
        None => format!("{}, not installed", name(package)),
    };
    let effects: Vec<&str> = affected.effects.iter().map(|effect| effect.to_text()).collect();
    format!("{kind} {}{at} ({installed}): {}", name(&affected.name), effects.join(", "))
}

/// What to do, and the command for it.
struct NextStep {
    text: &'static str,
    command: Option<String>,
}

/// The next step. `flag` names the new catalog.
fn next_step(affected: &AffectedInstallation, flag: &str) -> Option<NextStep> {
    let has = |effect| affected.effects.contains(&effect);
    let package = shell_word(&affected.package);
    let with_flag = |command: String| match flag {
        "" => command,
        flag => format!("{command} {flag}"),
    };
    let (text, command) = match () {
        () if has(InstallationEffect::PackageGone) => (
            "no new version will be installed; move to a package that is still in the catalog, or keep the old catalog",
            None,
        ),
        () if has(InstallationEffect::ChannelGone) => {
            ("name a channel that the new catalog has", Some(format!("gantry catalog {package}")))
        }
        () if has(InstallationEffect::PackageUnreadable) => {
            ("keep the old catalog until its publisher has corrected the new one", None)
        }
        () if has(InstallationEffect::PinnedVersionGone) || has(InstallationEffect::NoLongerResolves) => {
            let from = affected.installed.as_ref().map(|version| format!(" --from {}", shell_word(version)));
            let command = format!("gantry catalog {package}{}", from.unwrap_or_default());
            ("the versions of the new catalog, and what leads to them", Some(command))
        }
        () if has(InstallationEffect::ResolvesElsewhere) && affected.needs_approval => {
            ("the update waits until its InstallPlan is approved", None)
        }
        () => return None,
    };
    Some(NextStep { text, command: command.map(|command| sanitize(&with_flag(command)).into_owned()) })
}

fn sign(change: PartChange) -> char {
    match change {
        PartChange::Added => '+',
        PartChange::Removed => '-',
        PartChange::Changed => '~',
    }
}

fn push_package(out: &mut String, package: &PackageDiff, is_complete: bool) {
    let name = sanitize(&package.name);
    out.push_str(&format!("{} package {name}", sign(package.change)));
    if package.change != PartChange::Changed && !is_complete {
        let channels: Vec<&str> = package.channels.iter().map(|channel| channel.name.as_str()).collect();
        out.push_str(&format!(": {}", count(package.bundles.len(), "bundle")));
        if !channels.is_empty() {
            let word = if channels.len() == 1 { "channel" } else { "channels" };
            out.push_str(&format!(", {word} {}", cut(&sanitize(&channels.join(", ")), 100)));
        }
        out.push('\n');
        push_deprecations(out, package);
        return;
    }
    out.push('\n');
    if let Some(why) = &package.unreadable {
        out.push_str(&format!("!   cannot be read, so that nothing can be installed from it: {}\n", sanitize(why)));
    }
    if let Some(OldAndNew { old, new }) = &package.default_channel {
        out.push_str(&format!("~   default channel: {} -> {}\n", sanitize(old), sanitize(new)));
    }
    push_deprecations(out, package);
    package.channels.iter().for_each(|channel| push_channel(out, channel, is_complete));
    let most = if is_complete { usize::MAX } else { MOST_LINES_OF_CHANNEL };
    package.bundles.iter().take(most).for_each(|bundle| push_bundle(out, bundle));
    push_rest(out, package.bundles.len(), most, "bundle");
}

fn push_rest(out: &mut String, number: usize, most: usize, word: &str) {
    if number > most {
        out.push_str(&format!("      and {} more; name the package, or use -o json\n", count(number - most, word)));
    }
}

fn push_deprecations(out: &mut String, package: &PackageDiff) {
    let named = |schema: &str, name: &str| match (schema.strip_prefix("olm.").unwrap_or(schema), name) {
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind} {name}"),
    };
    for found in &package.deprecated {
        let (what, why) = (named(&found.schema, &found.name), sanitize(found.message.trim()));
        out.push_str(&format!("!   deprecated: {}: {}\n", sanitize(&what), cut(&why, 200)));
    }
    for found in &package.no_longer_deprecated {
        // A new message for the same part is not the end of the deprecation.
        if !package.deprecated.iter().any(|new| (&new.schema, &new.name) == (&found.schema, &found.name)) {
            let what = named(&found.schema, &found.name);
            out.push_str(&format!("~   no longer deprecated: {}\n", sanitize(&what)));
        }
    }
}

fn push_channel(out: &mut String, channel: &ChannelDiff, is_complete: bool) {
    let name = sanitize(&channel.name);
    out.push_str(&format!("{}   channel {name}", sign(channel.change)));
    if let Some(OldAndNew { old, new }) = &channel.heads {
        let shown = |heads: &Vec<String>| match heads.is_empty() {
            true => "none".to_owned(),
            false => cut(&sanitize(&heads.join(", ")), 100).into_owned(),
        };
        match channel.change {
            PartChange::Added => out.push_str(&format!(": head {}", shown(new))),
            PartChange::Removed => out.push_str(&format!(": its head was {}", shown(old))),
            PartChange::Changed => out.push_str(&format!(": head {} -> {}", shown(old), shown(new))),
        }
    }
    out.push('\n');
    if channel.change == PartChange::Removed && !is_complete {
        return;
    }
    let added = grouped(&channel.bundles_added, &channel.edges_added).into_iter().map(|line| ('+', line));
    let removed = grouped(&channel.bundles_removed, &channel.edges_removed).into_iter().map(|line| ('-', line));
    let lines: Vec<(char, String)> = added.chain(removed).collect();
    let most = if is_complete { usize::MAX } else { MOST_LINES_OF_CHANNEL };
    for (sign, line) in lines.iter().take(most) {
        out.push_str(&format!("{sign}     {line}\n"));
    }
    push_rest(out, lines.len(), most, "line");
}

/// One line for each bundle with its edges.
fn grouped(bundles: &[String], edges: &[EdgeDiff]) -> Vec<String> {
    let mut of: BTreeMap<&str, Vec<String>> = bundles.iter().map(|name| (name.as_str(), Vec::new())).collect();
    for edge in edges {
        let by = match edge.by {
            By::Replaces => "replaces",
            By::Skips => "skips",
            By::SkipRange => "skipRange",
        };
        of.entry(&edge.to).or_default().push(format!("{by} {}", edge.from));
    }
    of.into_iter()
        .map(|(name, edges)| match edges.is_empty() {
            true => sanitize(name).into_owned(),
            false => format!("{}: {}", sanitize(name), cut(&sanitize(&edges.join(", ")), 200)),
        })
        .collect()
}

fn push_bundle(out: &mut String, bundle: &BundleDiff) {
    let (name, version) = (sanitize(&bundle.name), sanitize(&bundle.version));
    out.push_str(&format!("{}   bundle {name} ({version})", sign(bundle.change)));
    let mut changes = Vec::new();
    if let Some(OldAndNew { old, new }) = &bundle.versions {
        changes.push(format!("version {} -> {}", sanitize(old), sanitize(new)));
    }
    if let Some(OldAndNew { old, new }) = &bundle.images {
        changes.push(format!("image {} -> {}", sanitize(old), sanitize(new)));
    }
    if let Some(OldAndNew { old, new }) = &bundle.required {
        let shown = |kinds: &Vec<String>| if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
        changes.push(format!("declared dependencies {} -> {}", sanitize(&shown(old)), sanitize(&shown(new))));
    }
    if !changes.is_empty() {
        out.push_str(&format!(": {}", changes.join("; ")));
    }
    out.push('\n');
}

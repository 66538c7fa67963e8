//! The objects that the run changes or would change, one in each line as `kubectl get -o name` prints them (`-o name`).

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::{ChangeEntry, FormatWriter};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::finding::Action;
use gantry_core::resource::ObjectRef;
use gantry_core::text;

pub const WRITER: FormatWriter = FormatWriter {
    write: |report, _, out| write(report.changes.iter(), out),
    write_list: |list, _, out| write(list.clusters.iter().flat_map(|cluster| &cluster.report.changes), out),
    syntax: OutputSyntax::Text,
    is_start_of_report: |head| head.lines().all(|line| line.contains('/') && !line.contains(' ')),
};

fn write<'a>(changes: impl Iterator<Item = &'a ChangeEntry>, out: &mut dyn Write) -> io::Result<()> {
    let is_changed = |change: &&ChangeEntry| {
        use Action::{InstalledByOlm, Skip, Unchanged, Unknown};
        !matches!(change.action, Unchanged | Skip | Unknown | InstalledByOlm)
    };
    let mut written = BTreeSet::new();
    for change in changes.filter(is_changed) {
        let name = name_as_kubectl(&change.object);
        if !written.contains(&name) {
            writeln!(out, "{name}")?;
            written.insert(name);
        }
    }
    Ok(())
}

/// `deployment.apps/web`
fn name_as_kubectl(object: &ObjectRef) -> String {
    let dot = if object.group().is_empty() { "" } else { "." };
    text::sanitize(&format!("{}{dot}{}/{}", object.kind.to_lowercase(), object.group(), object.name)).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn changed_objects_are_named_once_as_by_kubectl() {
        let change = |action, api_version: &str, kind: &str| {
            let object = ObjectRef {
                api_version: api_version.into(),
                kind: kind.into(),
                namespace: Some("team".into()),
                name: "web".into(),
            };
            ChangeEntry { action, object: Arc::new(object), source: None, result: None, diff: None }
        };
        let changes = [
            change(Action::Update, "apps/v1", "Deployment"),
            change(Action::Unchanged, "v1", "Secret"),
            change(Action::Delete, "v1", "ConfigMap"),
            change(Action::Delete, "v1", "ConfigMap"),
            change(Action::Create, "v1", "Evil\u{1b}"),
        ];
        let mut out = Vec::new();
        write(changes.iter(), &mut out).unwrap();
        let lines = String::from_utf8(out).unwrap();
        assert_eq!(lines, "deployment.apps/web\nconfigmap/web\nevil\\u{1b}/web\n");
    }
}

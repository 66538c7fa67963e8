//! Whether the server allows a record to be written and deleted. gantry checks this before its first write, because a
//! refusal in the middle of a run would leave an app without a correct record.

use super::Parent;
use crate::app::config_map::ConfigMap;
use gantry_core::problem::Problem;
use gantry_core::text::sanitize;

impl Parent {
    /// Whether the record is being deleted: it exists only until its finalizers are removed.
    pub fn is_going(&self) -> bool {
        self.record().metadata.deletion_timestamp.is_some()
    }

    /// Why the record cannot be written, and what to do.
    pub fn unwritable(&self) -> Option<Problem> {
        let record = self.record();
        let object = self.app.parent();
        if let Some(time) = &record.metadata.deletion_timestamp {
            let (finalizers, patch) = (named(record.finalizers()), without_finalizers(&object.to_string()));
            let message = format!(
                "{object} was marked for deletion at {}: the app {} loses its record when {finalizers} removed",
                sanitize(time),
                self.app.name
            );
            let help = format!(
                "to keep the app, save the record, let it be deleted, and create it again from the copy, which has the same \
                 finalizers: kubectl get {object} -o yaml > record.yaml && {patch} && kubectl \
                 create -f record.yaml"
            );
            return Some(Problem::new(message).help(help));
        }
        record.is_immutable().then(|| {
            let message = format!("{object} is immutable, so gantry cannot write the record of the app {}", self.app.name);
            let help = format!(
                "create it again without `immutable: true`: kubectl get {object} -o yaml > record.yaml; remove that line; kubectl \
                 replace --force -f record.yaml"
            );
            Problem::new(message).help(help)
        })
    }

    /// Why the record cannot be deleted, and what to do. `writes`: whether the run also writes it before the deletion.
    pub fn undeletable(&self, writes: bool) -> Option<Problem> {
        // The inventory of a record that names parts is emptied first.
        let is_emptied = self.parts.is_some() && !self.is_damaged;
        if (writes || is_emptied || self.is_going())
            && let Some(problem) = self.unwritable()
        {
            return Some(problem);
        }
        let record = self.record();
        (!record.finalizers().is_empty()).then(|| {
            let object = self.app.parent();
            let message = format!(
                "{object} and its app {} would remain until {} removed",
                self.app.name,
                named(record.finalizers())
            );
            let help = format!("if they are no longer needed: {}", without_finalizers(&object.to_string()));
            Problem::new(message).help(help)
        })
    }

    fn record(&self) -> ConfigMap {
        // The record was parsed when it was read.
        ConfigMap::parse(&self.live.raw.json()).unwrap_or_default()
    }
}

/// `its finalizer "a" is`
fn named(finalizers: &[String]) -> String {
    let names: Vec<String> = finalizers.iter().map(|name| format!("{:?}", sanitize(name))).collect();
    match &names[..] {
        [] => "the server has it".to_owned(),
        [name] => format!("its finalizer {name} is"),
        names => format!("its finalizers {} are", names.join(", ")),
    }
}

fn without_finalizers(object: &str) -> String {
    format!(r#"kubectl patch {object} --type=merge -p '{{"metadata":{{"finalizers":null}}}}'"#)
}

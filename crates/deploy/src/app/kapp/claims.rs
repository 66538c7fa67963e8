//! Whether the objects with the label of an app of kapp are those of the app. Another record can have the same label: a
//! namespace was copied from a backup, or somebody wrote a record to have the objects of another app deleted.

use std::sync::Arc;

use super::{IS_APP, KAPP_APP, KappAppRecord, KappAppSpec, PAGE};
use crate::app::config_map::ConfigMap;
use crate::app::config_maps;
use crate::app::members::{AppObject, read};
use gantry_cluster::{ListError, ListRequest, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;

impl KappAppRecord {
    /// Why it is not certain that the label belongs to this app: other records claim it, or could not be looked for.
    pub(super) async fn other_claims(&self, target: &Target) -> Vec<Problem> {
        let others = match self.other_records(target).await {
            Ok(others) => others,
            Err(error) => {
                let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
                let name = self.name();
                let message =
                    format!("could not look for other records with the label of kapp's app {name}: {}", what.message);
                return vec![Problem { message, ..what }];
            }
        };
        let claim = |other: &ObjectRef| {
            let message = format!(
                "{other} is also the record of an app of kapp with the label {KAPP_APP}={}: it is unknown to which of the two \
                 apps the objects belong",
                self.id
            );
            let help = format!(
                "delete the record that is a copy, and keep the other: kubectl delete {other}, or kubectl delete {}",
                self.object
            );
            Problem::new(message).help(help)
        };
        others.iter().map(claim).collect()
    }

    /// Other records of kapp with the same label for their members. Without the right to list all namespaces, only in
    /// those in which kapp last deployed.
    async fn other_records(&self, target: &Target) -> Result<Vec<ObjectRef>, ListError> {
        let resource = Arc::new(config_maps());
        let list = async |namespace: Option<&str>| {
            let request = ListRequest { namespace, label_selector: Some(IS_APP), ..ListRequest::new(&resource, PAGE) };
            let gather = |records: &mut Vec<ObjectRef>, json: &str| {
                let Some(found) = read(json, &resource) else { return };
                let record = ConfigMap::parse(json).ok();
                let spec = record.and_then(|record| serde_json::from_str::<KappAppSpec>(record.value("spec")?).ok());
                let is_other = found.facts.uid != self.live.uid && spec.is_some_and(|spec| spec.label_value == self.id);
                records.extend(is_other.then(|| (*found.object).clone()));
            };
            target.list(&request).gather(gather).await
        };
        let everywhere = list(None).await;
        if !matches!(everywhere, Err(ListError::Forbidden(_))) {
            return everywhere;
        }
        let mut all = Vec::new();
        for namespace in self.namespaces() {
            all.extend(list(Some(namespace)).await?);
        }
        Ok(all)
    }

    /// The problem with an object that stands where kapp did not deploy the app.
    pub fn problem_outside_namespaces(&self, AppObject { object, .. }: &AppObject) -> Option<Problem> {
        let namespaces = self.namespaces();
        object.namespace.as_deref().filter(|namespace| !namespaces.contains(namespace))?;
        let message = format!(
            "{object} carries the label of kapp's app {}, but its record says that kapp deployed it only in {}",
            self.name(),
            namespaces.into_iter().collect::<Vec<_>>().join(", ")
        );
        let help = format!(
            "if it is part of the app, add its manifest or deploy the app with kapp once more; if not, remove the label: \
             kubectl label {} {KAPP_APP}-",
            object.to_write()
        );
        Some(Problem::new(message).help(help))
    }
}

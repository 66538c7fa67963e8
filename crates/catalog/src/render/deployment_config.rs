//! `deploymentConfig` in the configuration of a ClusterExtension: it changes all Deployments of the operator.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::go::list;
use super::{WrongType, go};

/// The configuration, as Go reads it. A field that is not set is null.
pub struct DeploymentConfig {
    env: Value,
    env_from: Value,
    volumes: Value,
    volume_mounts: Value,
    tolerations: Value,
    resources: Value,
    node_selector: Value,
    affinity: Value,
    annotations: Value,
}

impl DeploymentConfig {
    /// Reads it.
    ///
    /// # Errors
    /// A field has the wrong type. The steps of the error start at the configuration.
    pub fn read(config: &Value) -> Result<DeploymentConfig, WrongType> {
        let field = |name, of| go::member(config, &[], name, of);
        Ok(DeploymentConfig {
            env: field("env", "[EnvVar")?,
            env_from: field("envFrom", "[EnvFromSource")?,
            volumes: field("volumes", "[Volume")?,
            volume_mounts: field("volumeMounts", "[VolumeMount")?,
            tolerations: field("tolerations", "[Toleration")?,
            resources: field("resources", "*ResourceRequirements")?,
            node_selector: field("nodeSelector", "{s")?,
            affinity: field("affinity", "*Affinity")?,
            annotations: field("annotations", "{s")?,
        })
    }

    /// Changes a Deployment, by its metadata and its Pod template.
    pub fn apply(&self, metadata: &mut Value, template: &mut Value) {
        let pod = &mut template["spec"];
        for container in pod["containers"].as_array_mut().into_iter().flatten() {
            override_named(container, "env", &self.env);
            append_new(container, "envFrom", &self.env_from);
            override_named(container, "volumeMounts", &self.volume_mounts);
            if !self.resources.is_null() {
                container["resources"] = self.resources.clone();
            }
        }
        override_named(pod, "volumes", &self.volumes);
        append_new(pod, "tolerations", &self.tolerations);
        if !self.node_selector.is_null() {
            set(pod, "nodeSelector", self.node_selector.clone());
        }
        self.override_affinity(pod);
        for of in [metadata, &mut template["metadata"]] {
            add_missing(of, &self.annotations);
        }
    }

    /// An empty affinity, or an empty part of it, removes what the bundle has; parts that are not set stay.
    fn override_affinity(&self, pod: &mut Value) {
        let Some(parts) = self.affinity.as_object() else { return };
        if parts.is_empty() {
            return set(pod, "affinity", Value::Null);
        }
        let mut affinity = pod.get("affinity").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, part) in parts {
            match is_empty_affinity(part) {
                true => drop(affinity.remove(name)),
                false => drop(affinity.insert(name.clone(), part.clone())),
            }
        }
        let is_empty = affinity.values().all(is_empty_affinity);
        set(pod, "affinity", if is_empty { Value::Null } else { affinity.into() });
    }
}

/// Whether a node affinity, Pod affinity or Pod anti-affinity demands nothing.
fn is_empty_affinity(part: &Value) -> bool {
    let required = &part["requiredDuringSchedulingIgnoredDuringExecution"];
    let required = required.get("nodeSelectorTerms").unwrap_or(required);
    go::is_empty(required) && list(part, "preferredDuringSchedulingIgnoredDuringExecution").is_empty()
}

/// Sets a field, or removes it if Go would omit the value.
fn set(of: &mut Value, name: &str, value: Value) {
    let Some(fields) = of.as_object_mut() else { return };
    match go::is_empty(&value) {
        true => drop(fields.shift_remove(name)),
        false => drop(fields.insert(name.to_owned(), value)),
    }
}

/// Replaces the items with the same names, and appends the others.
fn override_named(of: &mut Value, name: &str, with: &Value) {
    let Some(with) = with.as_array().filter(|with| !with.is_empty()) else { return };
    let mut items = list(of, name).to_vec();
    let known: BTreeMap<String, usize> =
        items.iter().enumerate().map(|(index, item)| (name_of(item).to_owned(), index)).collect();
    for item in with {
        match known.get(name_of(item)) {
            Some(index) => items[*index] = item.clone(),
            None => items.push(item.clone()),
        }
    }
    of[name] = items.into();
}

fn name_of(item: &Value) -> &str {
    item["name"].as_str().unwrap_or_default()
}

/// Appends the items that are not there yet.
fn append_new(of: &mut Value, name: &str, more: &Value) {
    let Some(more) = more.as_array().filter(|more| !more.is_empty()) else { return };
    let mut items = list(of, name).to_vec();
    for item in more {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    of[name] = items.into();
}

/// Adds annotations to metadata that do not have them yet.
fn add_missing(metadata: &mut Value, annotations: &Value) {
    let Some(annotations) = annotations.as_object().filter(|annotations| !annotations.is_empty()) else { return };
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = Map::new().into();
    }
    if let Some(known) = metadata["annotations"].as_object_mut() {
        for (key, value) in annotations {
            known.entry(key).or_insert_with(|| value.clone());
        }
    }
}

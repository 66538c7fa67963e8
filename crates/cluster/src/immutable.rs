//! The next step for a field that is immutable: for each kind, the way that loses least.

use serde_json::Value;

use gantry_core::resource::ObjectRef;

/// What to do about a change of an immutable field of a live object.
///
/// Deleting an object can delete more than the object: the data of a claim, the Pods of a workload, the objects of a
/// CRD. So only kinds for which that loses nothing are deleted without a word about it.
pub fn immutable_help(object: &ObjectRef, live: Option<&Value>) -> String {
    let replaced = "set the annotation gantry.dev/update-strategy: fallback-on-replace";
    let instead = match (object.group(), object.kind.as_str()) {
        ("", "PersistentVolumeClaim") => {
            let volume = live.and_then(|live| live["spec"]["volumeName"].as_str()).unwrap_or_default();
            let keep = match volume {
                "" => String::new(),
                volume => format!(
                    ". To keep the volume of a claim that you delete: kubectl patch persistentvolume/{volume} -p \
                     '{{\"spec\":{{\"persistentVolumeReclaimPolicy\":\"Retain\"}}}}'"
                ),
            };
            format!("create a claim with another name and copy the data: deleting the claim deletes its data{keep}")
        }
        ("", "PersistentVolume") => {
            "create a volume with another name: if this one is deleted, the claim that is bound to it loses its data"
                .to_owned()
        }
        ("apps", "StatefulSet") => format!(
            "recreate it without its Pods and claims, which stay: run kubectl delete {object} --cascade=orphan and deploy \
             again"
        ),
        ("apps", "Deployment") => format!(
            "give the new one another name. To keep the name, run kubectl delete {object} --cascade=orphan and deploy \
             again: the old Pods run until you delete their ReplicaSet"
        ),
        ("apps", "DaemonSet" | "ReplicaSet") => format!(
            "give the new one another name. To keep the name, run kubectl delete {object} --cascade=orphan and deploy \
             again: the old Pods run until you delete them"
        ),
        ("batch", "Job") => format!(
            "give the new one another name. To keep the name, run kubectl delete {object} when the Job has finished, and \
             deploy again: its Pods and their logs are deleted with it"
        ),
        ("", "Service") => {
            "remove spec.clusterIP and spec.clusterIPs from the manifest, so that the Service keeps its address: one that is \
             deleted and created again gets another"
                .to_owned()
        }
        ("", "ConfigMap" | "Secret") => format!(
            "give the new one another name, which the Pods that use it refer to. To keep the name, {replaced}: it is \
             missing for a moment, and Pods that run keep the old content"
        ),
        ("rbac.authorization.k8s.io", _) => format!(
            "give the new one another name. To keep the name, {replaced}: its subjects lack the rights for a moment"
        ),
        ("storage.k8s.io", "StorageClass") => {
            format!("recreate it: run kubectl delete {object} and deploy again. Volumes and claims that exist stay")
        }
        ("networking.k8s.io", "IngressClass")
        | ("node.k8s.io", "RuntimeClass")
        | ("scheduling.k8s.io", "PriorityClass") => {
            format!("recreate it: run kubectl delete {object} and deploy again. Objects that refer to it stay")
        }
        ("apiextensions.k8s.io", _) => "define a new kind in a CRD of its own and move the objects: deleting this CRD \
             deletes all objects of the kind"
            .to_owned(),
        _ => "create an object with another name: deleting this one also deletes what belongs to it".to_owned(),
    };
    format!("revert the change, or {instead}")
}

/// What to do if a new version of an operator changes an immutable field of a live object. OLM tries again by itself.
pub fn immutable_help_for_olm(object: &ObjectRef) -> String {
    let recreated = match (object.group(), object.kind.as_str()) {
        ("apps", "Deployment") => format!(
            "; or start the upgrade and run kubectl delete {object} --cascade=orphan when OLM reports this error: OLM \
             creates it again, and the old Pods run until you delete their ReplicaSet"
        ),
        ("rbac.authorization.k8s.io", _) => format!(
            "; or start the upgrade and run kubectl delete {object} when OLM reports this error: OLM creates it again, \
             and its subjects lack the rights for a moment"
        ),
        _ => String::new(),
    };
    format!(
        "stay at the installed version (set version in the ClusterExtension), and report it to the publisher, who has to \
         revert the change{recreated}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_deleted_whose_deletion_loses_data() {
        let help = |api_version: &str, kind: &str, live: Value| {
            let object = ObjectRef {
                api_version: api_version.into(),
                kind: kind.into(),
                namespace: Some("n".into()),
                name: "x".into(),
            };
            immutable_help(&object, Some(&live))
        };
        for (api_version, kind) in [
            ("v1", "PersistentVolumeClaim"),
            ("v1", "PersistentVolume"),
            ("v1", "Service"),
            ("v1", "Secret"),
            ("v1", "Namespace"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("example.com/v1", "Database"),
        ] {
            let help = help(api_version, kind, json!({"spec": {"volumeName": "v"}}));
            assert!(help.starts_with("revert the change, or ") && !help.contains("kubectl delete"), "{help}");
        }
        assert!(
            help("v1", "PersistentVolumeClaim", json!({"spec": {"volumeName": "v"}})).contains("persistentvolume/v -p")
        );
        assert!(!help("v1", "PersistentVolumeClaim", json!({})).contains("kubectl"), "no volume is bound yet");
        assert!(help("apps/v1", "StatefulSet", json!({})).contains("statefulset.apps/x -n n --cascade=orphan"));
    }

    #[test]
    fn for_olm_only_objects_without_data_are_deleted() {
        for (api_version, kind, is_deleted) in [
            ("apps/v1", "Deployment", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", true),
            ("v1", "Secret", false),
            ("v1", "Service", false),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
        ] {
            let object =
                ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace: None, name: "x".into() };
            let help = immutable_help_for_olm(&object);
            assert!(help.starts_with("stay at the installed version"), "{help}");
            assert_eq!(help.contains("kubectl delete"), is_deleted, "{help}");
        }
    }
}

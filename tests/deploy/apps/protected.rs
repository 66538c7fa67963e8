//! Members that no deploy deletes because the cluster needs them.

use super::{PART_OF, Shop};
use crate::support::control_plane;
use serde_json::{Value, json};

#[test]
fn a_namespace_of_the_cluster_leaves_the_app_and_stays() {
    for command in ["deploy", "delete"] {
        let shop = Shop::new();
        let name = format!("kube-{}", shop.bed.names.namespace);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        shop.write(&[namespace.clone(), shop.config_map("a", "1"), shop.config_map("b", "1")]);
        shop.deploy(&[]).code(0).stdout_contains("3 created");
        let live = || {
            let (status, live) = control_plane().get(&control_plane().path_of(&namespace));
            assert_eq!(status, 200, "{live}");
            (live["metadata"]["deletionTimestamp"].clone(), live["metadata"]["labels"][PART_OF].is_string())
        };
        assert_eq!(live(), (Value::Null, true));
        shop.config_maps(&["a"]);
        let output = match command {
            "deploy" => shop.deploy(&["--prune=yes"]),
            _ => shop.admin(&["delete", "-a", "shop", "--yes"]),
        };
        output.code(0).stderr_contains(&format!(
            "namespace/{name} leaves the app and stays in the cluster: gantry never deletes such a namespace"
        ));
        assert_eq!(live(), (Value::Null, false), "{output}");
        assert!(shop.get("b").is_none(), "{output}");
        assert_eq!(shop.get("shop.gantry").is_some(), command == "deploy", "{output}");
    }
}

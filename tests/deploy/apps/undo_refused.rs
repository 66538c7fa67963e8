//! What a history or a rollback refuses, and revisions that cannot be kept.

use super::Shop;
use crate::support::rights::grant;
use crate::support::{Bed, Gantry, control_plane, printed_command, run_printed};
use serde_json::{Value, json};

/// The path of the head of the first revision.
fn head_path(shop: &Shop, revision: u32) -> String {
    let name =
        shop.secrets(&format!("shop.gantry.r{revision}."))[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    format!("/api/v1/namespaces/{}/secrets/{name}", shop.bed.names.namespace)
}

fn patch(path: &str, patch: &Value) {
    let (status, answer) = control_plane().patch(path, patch);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn there_has_to_be_an_app_and_a_revision() {
    let shop = Shop::new();
    for command in ["history", "inspect"] {
        let document = shop.admin(&[command, "-a", "none", "-o", "json"]);
        let errors: Value = serde_json::from_str(&document.code(1).stdout).expect("JSON");
        assert!(errors["errors"][0]["message"].as_str().is_some_and(|why| why.contains("none")), "{errors}");
    }
    for command in
        [&["rollback", "-a", "shop", "--yes"][..], &["history", "-a", "shop"], &["diff", "-a", "shop", "--to", "1"]]
    {
        shop.admin(command).code(1).stderr_contains("there is no app shop in namespace");
    }
    shop.deploy_value("1", &["--history=0"]).code(0);
    shop.admin(&["history", "-a", "shop"]).code(0).stdout_contains("no revisions");
    shop.rollback(&[]).code(1).stderr_contains("the app shop").stderr_contains("has no revisions");
    shop.deploy_value("2", &[]).code(0);
    shop.rollback(&[]).code(1).stderr_contains("no earlier revision with other manifests that was deployed");
    shop.rollback(&["7"]).code(1).stderr_contains("has no revision 7").stderr_contains("gantry history -a shop");
    let list = format!("gantry history -a shop -n {} --context test", shop.bed.names.namespace);
    shop.rollback(&["7", "--context", "test"]).code(1).stderr_contains(&list);
    shop.rollback(&["seven"]).code(2);
    shop.admin(&["diff", "--to", "1"]).code(2).stderr_contains("revisions are kept of apps, and none is named");
    assert_eq!(shop.value(), json!("2"));
}

#[test]
fn a_folder_keeps_no_revisions() {
    let bed = Bed::new();
    let run = |arguments: &[&str]| Gantry::new().cwd(bed.folder.path()).args(arguments).run();
    let diff = run(&["diff", "-a", "shop", "--to", "1", "--target", "dir:live"]);
    diff.code(2).stderr_contains("a folder or a commit keeps no apps").stderr_contains("go back with git");
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntarget: dir:live\n";
    bed.write("gantry.yaml", config);
    run(&["rollback", "-a", "shop", "--yes"]).code(2).stderr_contains("a folder or a commit keeps no apps");
    run(&["history", "-a", "shop"]).code(2).stderr_contains("a folder or a commit");
}

#[test]
fn a_damaged_revision_is_not_deployed() {
    let shop = Shop::new();
    let object = shop.config_map("a", "1");
    shop.write(&[object]);
    shop.deploy(&[]).code(0);
    shop.deploy_value("2", &[]).code(0);
    let path = head_path(&shop, 1);
    let whole = control_plane().get(&path).1;
    let about = whole["metadata"]["annotations"]["gantry.dev/revision-about"].as_str().unwrap().to_owned();
    let damaged = |patched: Value, why: &str| {
        patch(&path, &patched);
        let output = shop.rollback(&["1"]);
        output.code(1).stderr_contains("revision 1 of the app shop is damaged").stderr_contains(why);
        let named = printed_command(&output, "gantry history ", " lists them");
        let arguments = shlex::split(&named).expect("a command line");
        let listed = shop.bed.gantry(control_plane().kubeconfig("admin"), &[]).args(&arguments[1..]).run();
        listed.code(0).stdout_contains("REVISION");
        assert_eq!(shop.value(), json!("2"), "{why}");
        patch(&path, &json!({"data": whole["data"], "metadata": {"annotations": whole["metadata"]["annotations"]}}));
    };
    let annotated = |about: &str| json!({"metadata": {"annotations": {"gantry.dev/revision-about": about}}});
    damaged(json!({"data": {"manifests": "eA=="}}), "cannot be unpacked");
    damaged(json!({"data": {"manifests": null}}), "missing or too large");
    damaged(annotated("{"), "EOF while parsing");
    damaged(annotated(&about.replace("\"parts\":1", "\"parts\":2")), ".p2");
    damaged(annotated(&about.replace("\"parts\":1", "\"parts\":4000000000")), "4000000000 parts");
    damaged(annotated(&about.replace("\"sum\":\"", "\"sum\":\"x")), "not those that gantry wrote");
    // A text for the terminal stays text.
    patch(&path, &annotated(&about.replace("\"user\":\"admin\"", "\"user\":\"\\u001b[31mred\"")));
    let shown = shop.admin(&["history", "-a", "shop"]);
    assert!(!shown.code(0).stdout.contains('\u{1b}'), "{shown}");
    // The next one that can be read is recommended and chosen.
    shop.deploy_value("3", &[]).code(0);
    let second = head_path(&shop, 2);
    let kept = control_plane().get(&second).1;
    patch(&second, &json!({"data": {"manifests": "eA=="}}));
    shop.admin(&["diff", "-a", "shop", "--to", "2"]).code(1).stderr_contains("revision 2 of the app shop is damaged");
    shop.rollback(&[]).code(0);
    assert_eq!(shop.value(), json!("1"));
    patch(&second, &json!({"data": kept["data"]}));
    shop.rollback(&["2"]).code(0);
    assert_eq!(shop.value(), json!("2"));
    // And it can be read again as it was.
    patch(&path, &json!({"data": whole["data"], "metadata": {"annotations": whole["metadata"]["annotations"]}}));
    shop.rollback(&["1"]).code(0);
    assert_eq!(shop.value(), json!("1"));
}

#[test]
fn a_revision_that_unpacks_to_too_much_is_refused_in_little_memory() {
    use base64::Engine as _;
    use std::io::Write as _;

    let shop = Shop::new();
    shop.deploy_value("1", &[]).code(0);
    shop.deploy_value("2", &[]).code(0);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![b'\n'; 1 << 20];
    (0..700).for_each(|_| bomb.write_all(&zeros).expect("memory"));
    let bomb = base64::engine::general_purpose::STANDARD.encode(bomb.finish().expect("memory"));
    patch(&head_path(&shop, 1), &json!({"data": {"manifests": bomb}}));
    let kubeconfig = control_plane().kubeconfig("admin");
    let rollback = shop.command(kubeconfig, &["rollback", "1", "-a", "shop", "--yes"]).memory_limit(1_000_000);
    rollback.run().code(1).stderr_contains("unpack to more than 128 MiB");
    assert_eq!(shop.value(), json!("2"));
}

/// A user with all verbs on ConfigMaps in the namespace, and these on Secrets.
fn user_with(shop: &Shop, verbs: &[&str]) -> String {
    let cp = control_plane();
    let user = cp.user(&json!([]));
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({"name": user, "namespace": shop.bed.names.namespace});
    let all = ["get", "list", "create", "patch", "delete", "watch"];
    let mut rules = vec![json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": all})];
    if !verbs.is_empty() {
        rules.push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}));
    }
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
        "subjects": [{"kind": "User", "apiGroup": api, "name": user}]});
    grant(cp, &user, &format!("{role}\n---\n{binding}"));
    user
}

#[test]
fn without_the_rights_a_deploy_says_so_and_goes_on() {
    let shop = Shop::new();
    let deploy = |user: &str, value: &str, flags: &[&str]| {
        shop.write(&[shop.config_map("a", value)]);
        let arguments = [&["deploy", "-f", "manifests.yaml", "-a", "shop"], flags].concat();
        shop.command(control_plane().kubeconfig(user), &arguments).run()
    };
    let rule =
        r#"grant the rule {apiGroups: [""], resources: [secrets], verbs: ["list", "create", "patch", "delete"]}"#;
    for (value, verbs) in [("1", &[][..]), ("2", &["list"])] {
        let output = deploy(&user_with(&shop, verbs), value, &[]);
        output.code(0).stderr_contains("is not kept as a revision of the app shop").stderr_contains(rule);
        assert_eq!((shop.value(), shop.secrets("shop.gantry.r").len()), (json!(value), 0));
    }
    let user = user_with(&shop, &[]);
    deploy(&user, "3", &["--history=0"]).code(0).contains_nowhere("revision");
    // The check of rights knows them.
    let checked = deploy(&user, "4", &["--preflight", "PermissionValidation"]);
    checked.code(3).stdout_contains("secrets").stdout_contains("--history=0");
    deploy(&user, "4", &["--preflight", "PermissionValidation", "--history=0"]).code(0);
    let full = user_with(&shop, &["list", "create", "patch", "delete"]);
    deploy(&full, "5", &["--preflight", "PermissionValidation"]).code(0);
    assert_eq!(shop.outcomes(), [(1, "deployed".to_owned())]);
    // An app without revisions is deleted without rights on Secrets; one with revisions is not.
    let delete = |user: &str| shop.command(control_plane().kubeconfig(user), &["delete", "-a", "shop", "--yes"]).run();
    delete(&user).code(1).stdout_contains("not permitted to delete secret/shop.gantry.r1");
    assert_eq!(shop.value(), json!("5"), "nothing is deleted");
    delete(&full).code(0);
    assert_eq!(shop.secrets("shop.gantry.r").len(), 0);
    deploy(&user, "6", &["--history=0"]).code(0);
    delete(&user).code(0);
}

#[test]
fn revisions_that_the_user_may_not_list_are_left_with_the_command_for_them() {
    let admin = || control_plane().kubeconfig("admin");
    // Two revisions of the admin, and then a deploy of somebody who may not keep one.
    let shop_of = |value: &str| {
        let shop = Shop::new();
        shop.deploy_value("1", &[]).code(0);
        shop.deploy_value("2", &[]).code(0);
        shop.write(&[shop.config_map("a", value)]);
        let user = user_with(&shop, &[]);
        let run = |arguments: &[&str]| shop.command(control_plane().kubeconfig(&user), arguments).run();
        run(&["deploy", "-f", "manifests.yaml", "-a", "shop", "--history=0"]).code(0);
        (shop, user)
    };
    let follow = |shop: &Shop, output: &crate::support::Output, start: &str| {
        output.stderr_contains("the revisions of the app shop stay as they are, if it has any");
        output.stderr_contains(&format!("the Secrets in namespace {}", shop.bed.names.namespace));
        let line = output.stderr.split_once(start).unwrap_or_else(|| panic!("no {start}\n{output}")).1;
        let command = format!("{start}{}", line.lines().next().unwrap().trim_end_matches(')'));
        run_printed(&command, &admin(), shop.bed.folder.path());
    };
    for command in [&["delete"][..], &["apps", "forget"]] {
        let (shop, user) = shop_of("3");
        let arguments = [command, &["-a", "shop", "--yes"]].concat();
        let output = shop.command(control_plane().kubeconfig(&user), &arguments).run();
        output.code(0);
        assert_eq!(shop.secrets("shop.gantry.r").len(), 2);
        follow(&shop, &output, "kubectl delete secrets ");
        assert_eq!(shop.secrets("shop.gantry.r").len(), 0);
    }
    let (shop, user) = shop_of("3");
    let renaming = ["apps", "rename", "-a", "shop", "--to", "store", "--yes"];
    let output = shop.command(control_plane().kubeconfig(&user), &renaming).run();
    shop.admin(&["history", "-a", "store"]).code(0).stdout_contains("no revisions");
    follow(&shop, output.code(0), "kubectl label secrets ");
    shop.admin(&["rollback", "1", "-a", "store", "--yes"]).code(0);
    assert_eq!(shop.value(), json!("1"));
}

#[test]
fn the_advice_of_a_refused_rollback_is_something_that_its_user_can_do() {
    let shop = Shop::new();
    let elsewhere = format!("{}-else", shop.bed.names.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}});
    control_plane().apply_yaml(&namespace.to_string());
    let mut member = shop.config_map("there", "1");
    member["metadata"]["namespace"] = elsewhere.as_str().into();
    shop.write(&[shop.config_map("a", "1"), member]);
    shop.deploy(&[]).code(0);
    shop.deploy_value("2", &["--prune=yes"]).code(0);
    let path = format!("/api/v1/namespaces/{elsewhere}");
    assert_eq!(control_plane().delete(&path).0, 200);
    // No controller of namespaces runs here.
    let mut leaving = control_plane().get(&path).1;
    leaving["spec"]["finalizers"] = json!([]);
    assert_eq!(control_plane().put(&format!("{path}/finalize"), &leaving).0, 200);
    crate::support::eventually("the namespace to go", || (control_plane().get(&path).0 == 404).then_some(()));
    for flags in [&["1"][..], &["1", "--preflight", "AdmissionDryRun"]] {
        let output = shop.rollback(flags);
        output.code(3).contains_nowhere("to the manifests").contains_nowhere("fix the manifest");
        output.stdout_contains(&format!("kubectl create namespace {elsewhere}"));
        let list = format!("gantry history -a shop -n {}", shop.bed.names.namespace);
        output.stderr_contains("revision 1 of the app shop cannot be deployed as it is").stderr_contains(&list);
        output.stderr_contains("gantry deploy -a shop --app-namespace");
    }
    let output = shop.rollback(&["1"]);
    let line = output.stdout.lines().find(|line| line.contains("kubectl create namespace")).expect("a command");
    let create = &line[line.find("kubectl").unwrap()..];
    run_printed(create, &control_plane().kubeconfig("admin"), shop.bed.folder.path());
    shop.rollback(&["1"]).code(0);
    assert_eq!(shop.value(), json!("1"));
}

//! `AdmissionDryRun` and refusals that depend on the deploy itself: what it creates, what it changes first, its totals.

use std::collections::BTreeSet;

use crate::support::admission::{Admission, findings, its_name, limit_range, quota};
use crate::support::{Bed, control_plane};
use serde_json::{Value, json};

const CHECK: [&str; 2] = ["--preflight", "AdmissionDryRun"];

#[test]
fn objects_that_need_this_deploy_first_are_validated_by_gantry_and_marked() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let manifests = |long: &str, field: &str| {
        let crd = bed.crd("first: {type: string, maxLength: 3}");
        let deployment = format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 1
  {field}: 3
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: web, resources: {{limits: {{cpu: 1}}}}, ports: [{{containerPort: 80}}]}}]}}
"
        );
        let sample = bed.sample().replace("first: x", &format!("first: {long}"));
        [bed.namespace(), crd, sample, deployment, bed.config_map("a", "b")].join("---\n")
    };
    let text = manifests("longer", "revisionHistoryLimits");
    bed.write("manifests.yaml", &text);
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let line = |part: &str| text.lines().position(|line| line.contains(part)).unwrap() as u64 + 1;
    let found = findings(&output);
    let shown: Vec<(&str, &str, u64)> = found.iter().map(|(r, s, l, _)| (r.as_str(), s.as_str(), *l)).collect();
    assert_eq!(
        shown,
        [
            ("JudgedWithoutServer", "info", line("metadata: {name: t")),
            ("JudgedWithoutServer", "info", line("metadata: {name: samples")),
            ("ObjectInvalid", "error", line("revisionHistoryLimits")),
            ("ObjectInvalid", "error", line("first: longer")),
        ],
        "{found:#?}"
    );
    assert!(found[0].3.contains("2 objects before this is written: 2 checked by gantry against the server's schema"));
    assert!(found[1].3.contains("1 object before this is written: 1 validated against their CRD by gantry"));
    // Without the errors it is deployed, and the remaining notes block nothing.
    bed.write("manifests.yaml", &manifests("abc", "revisionHistoryLimit"));
    bed.deploy(cp.kubeconfig("admin"), &CHECK).run().code(0);
    // A changed CRD: the new schema applies, and the rest of admission is unchanged.
    let longer = manifests("longer", "revisionHistoryLimit").replace("maxLength: 3", "maxLength: 9");
    bed.write("manifests.yaml", &longer);
    bed.deploy(cp.kubeconfig("admin"), &CHECK).run().code(0);
    assert_eq!(cp.get(&bed.sample_path()).1["first"], "longer");
}

#[test]
fn metadata_in_a_new_namespace_is_judged_as_the_server_would() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let with = |name: &str, rest: &str| bed.config_map(name, "x").replace("}\ndata", &format!("{rest}}}\ndata"));
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: 'a:B_c', namespace: {namespace}}}\nrules: []\n"
    );
    let objects = [
        with("good", ", labels: {a.b/c: ''}, annotations: {D/e: 'f g'}"),
        with("Not_A_Name", ""),
        with("label", ", labels: {a: 'b c'}"),
        with("key", ", labels: {'a b': c}"),
        with("annotation", ", annotations: {'a b': c}"),
        role,
    ];
    let all: Vec<String> = [bed.namespace()].into_iter().chain(objects.clone()).collect();
    bed.write("manifests.yaml", &all.join("---\n"));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    let report = output.code(3).report();
    let findings = report["checks"][0]["findings"].as_array().expect("findings").iter();
    let errors = findings.filter(|finding| finding["severity"] == "error");
    let predicted: BTreeSet<String> = errors.map(|finding| finding["object"]["name"].to_string()).collect();
    cp.apply_yaml(&bed.namespace());
    let mut refused = BTreeSet::new();
    for text in &objects {
        let object: Value = serde_yaml::from_str(text).expect("YAML");
        let path = cp.path_of(&object).replace(' ', "%20");
        if cp.server_side_apply(&path, "gantry", &object).0 >= 400 {
            refused.insert(object["metadata"]["name"].to_string());
        }
    }
    assert_eq!(predicted, refused, "{output}");
    assert_eq!(refused.len(), 4);
}

#[test]
fn permissions_include_reading_a_crd_whose_objects_wait_for_a_namespace() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.crd("first: {type: string, maxLength: 3}"));
    let needs = |manifests: &[String]| {
        bed.write("manifests.yaml", &manifests.join("---\n"));
        let arguments = ["permissions", "-f", "manifests.yaml", "--as", "somebody"];
        let printed = bed.gantry(cp.kubeconfig("admin"), &arguments).args(CHECK).run();
        printed.code(0);
        printed.stdout.contains("customresourcedefinitions")
    };
    assert!(needs(&[bed.namespace(), bed.sample()]));
    // The printed permissions also cover the first deploy; if no namespace is to be created, the server is asked.
    cp.apply_yaml(&bed.namespace());
    assert!(!needs(&[bed.sample()]), "the server is asked");
}

#[test]
fn objects_that_fit_into_a_quota_one_by_one_and_not_together_are_found() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let hard = json!({"services": "5", "count/configmaps": "3"});
    quota(&bed, "quota", &json!({"hard": hard}), &json!({"services": "0", "count/configmaps": "1"}));
    let manifests = ["a", "b", "c"].map(|name| bed.config_map(name, "x")).join("---\n");
    bed.write("manifests.yaml", &manifests);
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let found = findings(&output);
    let expected = "the quota \"quota\" has room for 2 more of count/configmaps, and this deploy creates 3 objects";
    assert_eq!(found, [("QuotaExceeded".into(), "error".into(), 13, expected.into())]);
    // The server refuses the third object, whichever that is, but only during the deploy.
    let answers: Vec<u16> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            cp.server_side_apply(&bed.config_map_path(name), "gantry", &object).0
        })
        .collect();
    assert_eq!(answers, [201, 201, 403]);
    // A user who may not read quotas gets a note that they were not checked, and the deploy continues.
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &["a", "b"].map(|name| bed.config_map(name, "x")).join("---\n"));
    let user = cp.user(&json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}]));
    let output = bed.deploy(cp.kubeconfig(&user), &CHECK).args(["-o", "json"]).run();
    output.code(0);
    let [(rule, severity, 3, message)] = &findings(&output)[..] else { panic!("{:?}", findings(&output)) };
    assert_eq!((rule.as_str(), severity.as_str()), ("JudgedWithoutServer", "info"));
    assert!(message.contains("may not list resourcequotas"), "{message}");
}

#[test]
fn objects_that_do_not_fit_into_a_quota_of_the_same_deploy_are_a_warning() {
    let cp = control_plane();
    let manifest = |bed: &Bed, limit: Value| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"count/configmaps": limit}},
            "metadata": {"name": "quota", "namespace": bed.names.namespace}})
        .to_string()
    };
    let found = |bed: &Bed, names: &[&str], limit: Value, with: &[String]| {
        let objects = names.iter().map(|name| bed.config_map(name, "x"));
        let manifests: Vec<String> = with.iter().cloned().chain(objects).chain([manifest(bed, limit)]).collect();
        bed.write("manifests.yaml", &manifests.join("\n---\n"));
        let output =
            bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["--dry-run", "--force-conflicts", "-o", "json"]).run();
        output.code(0);
        let findings = findings(&output).into_iter().filter(|(rule, ..)| rule == "QuotaExceeded");
        findings.map(|(_, severity, _, message)| (severity, message)).collect::<Vec<_>>()
    };
    let room = |room: &str, objects: &str| {
        vec![(
            "warning".to_owned(),
            format!("the quota \"quota\"{room} of count/configmaps, and this deploy creates {objects}"),
        )]
    };
    let written = ", as this deploy writes it,";
    // A new quota, in a new namespace and in one that exists.
    let bed = Bed::new();
    let namespace = [bed.namespace()];
    assert_eq!(
        found(&bed, &["a", "b"], json!("1"), &namespace),
        room(&format!("{written} has room for 1 more"), "2 objects")
    );
    assert_eq!(found(&bed, &["a", "b"], json!(2), &namespace), []);
    cp.apply_yaml(&bed.namespace());
    assert_eq!(found(&bed, &["a"], json!(0), &[]), room(&format!("{written} has room for 0 more"), "1 object"));
    // A lowered one counts what is used.
    quota(&bed, "quota", &json!({"hard": {"count/configmaps": "5"}}), &json!({"count/configmaps": "2"}));
    assert_eq!(found(&bed, &["a", "b"], json!("3"), &[]), room(&format!("{written} has room for 1 more"), "2 objects"));
    assert_eq!(found(&bed, &["a", "b"], json!("4"), &[]), []);
    // A raised one applies only when its controller has seen it.
    let objects = ["a", "b", "c", "d", "e"];
    for raised in ["6", "9"] {
        assert_eq!(found(&bed, &objects, json!(raised), &[]), room(" has room for 3 more", "5 objects"));
    }
    // A quota does not count itself.
    let bed = Bed::new();
    let itself = manifest(&bed, json!(1)).replace("count/configmaps", "count/resourcequotas");
    bed.write("manifests.yaml", &[bed.namespace(), itself.replace(":1", ":0")].join("\n---\n"));
    bed.deploy(cp.kubeconfig("admin"), &CHECK).arg("--dry-run").run().code(0).contains_nowhere("QuotaExceeded");
}

#[test]
fn usage_of_pods_and_claims_is_added_up_as_on_the_server() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    cp.apply_yaml(&bed.namespace());
    // The manifests do not set cpu: the limit range defaults it.
    limit_range(&bed);
    let compute = json!({"requests.cpu": "3500m", "limits.memory": "1Gi", "requests.storage": "10Gi"});
    let used = json!({"requests.cpu": "1", "limits.memory": "0", "requests.storage": "1Gi"});
    quota(&bed, "all", &json!({"hard": compute}), &used);
    let batch = json!({"hard": {"pods": "2"}, "scopes": ["Terminating"]});
    quota(&bed, "batch", &batch, &json!({"pods": "1"}));
    let best = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
    quota(&bed, "best", &best, &json!({"pods": "0"}));
    let pod = |name: &str, deadline: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  {deadline}\n  \
             containers: [{{name: a, image: a, resources: {{limits: {{memory: 256Mi}}}}}}]\n"
        )
    };
    let claim = |name: &str, storage: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: \
             {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {storage}}}}}}}\n"
        )
    };
    let deadline = "activeDeadlineSeconds: 60";
    let documents = [claim("one", "4Gi"), claim("two", "5632Mi"), pod("a", ""), pod("b", deadline), pod("c", deadline)];
    bed.write("manifests.yaml", &documents.join("---\n"));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let found = findings(&output);
    let said: Vec<(&str, &str)> =
        found.iter().map(|(_, severity, _, said)| (severity.as_str(), said.as_str())).collect();
    let room = |quota: &str, room: &str| format!("the quota {quota:?} has room for {room}");
    assert_eq!(
        said,
        [
            ("error", room("all", "9Gi more of requests.storage, and this deploy creates 2 objects that use 9728Mi")),
            ("error", room("all", "2500m more of requests.cpu, and this deploy creates 3 objects that use 3")),
            ("error", room("batch", "1 more of pods, and this deploy creates 2 objects")),
        ]
        .each_ref()
        .map(|(severity, said)| (*severity, said.as_str())),
        "{found:#?}"
    );
    // The server refuses it, too, but only during the deploy.
    let mut refused = Vec::new();
    for document in &documents {
        let object: Value = serde_yaml::from_str(document).expect("YAML");
        let (status, _) = cp.server_side_apply(&cp.path_of(&object), "gantry", &object);
        if status >= 400 {
            refused.push(object["metadata"]["name"].clone());
        }
    }
    assert_eq!(refused, ["two", "c"]);
}

/// The severities of the findings for objects of this kind.
fn severities(bed: &Bed, user: &str, manifests: &[String], kind: &str) -> Vec<String> {
    bed.write("manifests.yaml", &manifests.join("---\n"));
    let output = bed.gantry(control_plane().kubeconfig(user), &["check", "-f", "manifests.yaml", "-o", "json"]);
    let report = output.args(CHECK).run().report();
    let findings = report["checks"][0]["findings"].as_array().expect("findings").clone();
    let of_kind = findings.iter().filter(|finding| finding["object"]["kind"] == kind);
    of_kind.map(|finding| finding["severity"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_denial_is_a_warning_only_where_this_deploy_changes_what_denies() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let its = |rest: &str| bed.namespace().replace("}", &format!(", {rest}}}"));
    cp.apply_yaml(&its("labels: {policed: 'yes', pod-security.kubernetes.io/enforce: restricted}"));
    let mut admission = Admission::default();
    let mut labels = its_name(&bed);
    labels["policed"] = "yes".into();
    admission.policy(&bed, "configmaps", &labels);
    let denied = || bed.config_map("denied", "x");
    let limits = format!(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l, namespace: {namespace}}}\nspec: {{limits: []}}\n"
    );
    // Neither a limit range nor an annotation of the namespace affects the policy.
    let of = |namespace: String| severities(&bed, "admin", &[namespace, limits.clone(), denied()], "ConfigMap");
    assert_eq!(of(its("annotations: {a: b}")), ["error"]);
    assert_eq!(of(its("labels: {policed: 'no'}")), ["warning"]);
    // The Pod Security level is a label of the namespace.
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: {namespace}}}\nspec: {{hostNetwork: true, containers: [{{name: a, image: a}}]}}\n"
    );
    let of = |namespace: String| severities(&bed, "admin", &[namespace, pod.clone()], "Pod");
    assert_eq!(of(its("annotations: {a: b}")), ["error"]);
    assert_eq!(of(its("labels: {pod-security.kubernetes.io/enforce: privileged}")), ["warning"]);
    drop(admission);
}

#[test]
fn a_missing_right_is_excused_only_by_a_change_that_can_grant_it() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    cp.apply_yaml(&bed.namespace());
    let rbac = ["roles", "rolebindings"];
    let user = cp.user(&json!([
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": rbac, "verbs": ["get", "create", "patch", "bind", "escalate"]},
    ]));
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: {namespace}}}\nspec: {{ports: [{{port: 80}}]}}\n"
    );
    let object = |kind: &str, rest: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: writer, namespace: {namespace}}}\n{rest}\n"
        )
    };
    let role = object("Role", "rules: [{apiGroups: [''], resources: [services], verbs: [get, create, patch]}]");
    let binding = |subject: &str| {
        object(
            "RoleBinding",
            &format!(
                "roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}}\nsubjects: [{subject}]"
            ),
        )
    };
    let of = |binding: String| severities(&bed, &user, &[role.clone(), binding, service.clone()], "Service");
    assert_eq!(of(binding(&format!("{{kind: ServiceAccount, name: app, namespace: {namespace}}}"))), ["error"]);
    let mine = binding(&format!("{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}"));
    assert_eq!(of(mine), ["warning"]);
}

#[test]
fn a_finding_of_two_checks_is_reported_once() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&bed.crd("first: {type: string, maxLength: 3}"));
    let unknown = bed.sample().replace("name: one", "name: two").replace("first: x", "secnd: x");
    let label = bed.sample().replace("first: x", "first: too long").replace("name: one", "name: one, labels: {a: b c}");
    let texts = [label, unknown, bed.config_map("Not_A_Name", "x")];
    bed.write("manifests.yaml", &texts.join("---\n"));
    let checks = "--preflight=AdmissionDryRun,CustomResourceValidation";
    let run = |more: &[&str]| bed.deploy(cp.kubeconfig("admin"), more).run();
    let rules = |check: &Value| {
        let found = check["findings"].as_array().expect("findings").clone();
        found.iter().map(|f| format!("{} {}", f["severity"], f["rule"]).replace('"', "")).collect::<Vec<_>>()
    };
    for more in [&[checks, "-o", "json"][..], &[checks, "-o", "json", "--redact"]] {
        let output = run(more);
        let report = output.code(3).report();
        let [server, validator] = [&report["checks"][0], &report["checks"][1]];
        assert_eq!(rules(server), ["error ObjectInvalid"], "{output}");
        assert_eq!(server["message"], "3 findings are reported by CustomResourceValidation");
        assert_eq!(
            rules(validator),
            ["error ManifestObjectRefused", "error ManifestObjectRefused", "error ManifestUnknownField"]
        );
        assert_eq!(report["summary"]["errors"], 4);
    }
    // On its own, the check reports all of them.
    assert_eq!(findings(&run(&[CHECK[0], CHECK[1], "-o", "json"])).len(), 4);
    // Even without other findings, the check keeps its status.
    bed.write("manifests.yaml", &texts[..2].join("---\n"));
    run(&[checks])
        .code(3)
        .stdout_contains("AdmissionDryRun           blocked: 3 findings are reported by CustomResourceValidation");
    // The server refuses an object whose finding is waived, or only a warning, in the other check.
    let config = |rest: &str| {
        format!(
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: AdmissionDryRun\n- name: CustomResourceValidation\n{rest}"
        )
    };
    for rest in ["  config: {mode: warn}\n", "waivers:\n- {rule: Manifest*, reason: agreed}\n"] {
        bed.write("config.yaml", &config(rest));
        let output = run(&["-c", "config.yaml", "-o", "json"]);
        let report = output.code(3).report();
        assert_eq!(rules(&report["checks"][1]).len(), 3, "{output}");
        assert!(rules(&report["checks"][1]).iter().all(|rule| rule.starts_with("error ")), "{output}");
    }
    // The server refuses what the baseline knows just the same.
    run(&[checks, "-o", "json=base.json", "--dry-run"]).code(3);
    let output = run(&[checks, "--baseline", "base.json", "-o", "json", "--dry-run"]);
    let report = output.code(3).report();
    assert_eq!(
        rules(&report["checks"][1]),
        ["error ManifestObjectRefused", "error ManifestObjectRefused", "error ManifestUnknownField"]
    );
}

#[test]
fn an_object_at_a_version_that_the_same_deploy_removes_is_found() {
    let cp = control_plane();
    let bed = Bed::new();
    let both = |served: bool| {
        let old = format!(
            "  versions:\n  - {{name: v1alpha1, served: {served}, storage: false, schema: {{openAPIV3Schema: {{type: object}}}}}}\n"
        );
        bed.crd("first: {type: string}").replace("  versions:\n", &old)
    };
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&both(true));
    let sample = bed.sample().replace("/v1\n", "/v1alpha1\n").replace("first: x\n", "");
    bed.write("manifests.yaml", &format!("{}---\n{sample}", both(false)));
    let output =
        bed.deploy(cp.kubeconfig("admin"), &[&CHECK[..], &["--force-conflicts"]].concat()).args(["-o", "json"]).run();
    output.code(3);
    let found = findings(&output);
    let said: Vec<&str> =
        found.iter().filter(|(_, severity, ..)| severity == "error").map(|(.., m)| m.as_str()).collect();
    let [said] = said[..] else { panic!("{said:?}") };
    assert!(said.contains("the CRD among the manifests does not serve v1alpha1"), "{said}");
}

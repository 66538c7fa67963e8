//! `CRDInvalid` on updates, with a real API server: the server validates the result of applying the manifest to the
//! live CRD, and gantry reports the same errors in advance.

use super::managed_fields::run_migration;
use crate::conversion::{Conversion, rename, webhook};
use crate::support::{Bed, control_plane, eventually, findings, printed_command, printed_commands, run_printed, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// A CRD with this `spec.conversion`, and a rule over a list with this maximum number of texts.
fn crd(bed: &Bed, conversion: &Value, max_items: u64) -> Value {
    let text = bed.crd(&format!(
        "list: {{type: array, maxItems: {max_items}, items: {{type: string, maxLength: 10}}, x-kubernetes-validations: \
         [{{rule: 'self.all(x, self.all(y, x == y))'}}]}}"
    ));
    let mut crd: Value = serde_yaml::from_str(&text).expect("a CRD");
    if !conversion.is_null() {
        crd["spec"]["conversion"] = conversion.clone();
    }
    crd
}

/// The results of `gantry check` for the CRD, and of the server's dry run of the same apply.
fn messages_of_both(bed: &Bed, crd: &Value) -> (Vec<String>, Vec<String>) {
    let cp = control_plane();
    bed.write("manifests.yaml", &serde_yaml::to_string(crd).expect("YAML"));
    let run = bed.gantry(cp.kubeconfig("admin"), &["check", "-f", "manifests.yaml", "-o", "json"]).run();
    let report = run.report();
    let findings = report["checks"].as_array().expect("checks").iter().flat_map(|check| check["findings"].as_array());
    let ours = findings
        .flatten()
        .filter(|finding| finding["rule"] == "CRDInvalid")
        .map(|finding| finding["message"].as_str().unwrap_or_default().to_owned())
        .map(|message| message.trim_start_matches("the API server refuses this CRD: ").to_owned())
        .collect();
    let path = format!("{}?dryRun=All&force=true&fieldManager=gantry", bed.crd_path());
    let (status, answer) = cp.apply_to(&path, crd);
    assert!(matches!(status, 200 | 422), "{answer}");
    let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let theirs = causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect();
    (ours, theirs)
}

#[test]
fn fields_of_the_live_crd_that_an_apply_keeps_are_validated_with_it() {
    let (cp, bed) = (control_plane(), Bed::new());
    let client = json!({"service": {"name": "a", "namespace": "b"}});
    let webhook =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
    bed.write("manifests.yaml", &serde_yaml::to_string(&crd(&bed, &webhook, 10)).expect("YAML"));
    bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(0);
    // Like an injector of CAs.
    let injected = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("samples.{}", bed.names.group)},
        "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": ""}}}}});
    let (status, answer) = cp.patch(&bed.crd_path(), &injected);
    assert_eq!(status, 200, "{answer}");

    // The manifest does not set the CA, so it stays.
    let (ours, theirs) = messages_of_both(&bed, &crd(&bed, &webhook, 11));
    assert_eq!((ours, theirs), (vec![], vec![]));
    // Another manager owns a part of what the manifest no longer sets.
    let (status, answer) = cp.server_side_apply(&bed.crd_path(), "injector", &{
        let mut held = injected.clone();
        held["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}});
        held
    });
    assert_eq!(status, 200, "{answer}");
    let (ours, theirs) = messages_of_both(&bed, &crd(&bed, &Value::Null, 11));
    assert_eq!(ours, theirs);
    assert!(ours[0].starts_with("spec.conversion.webhookClientConfig: Required value"), "{ours:?}");
    // No other manager owns it.
    assert_eq!(
        cp.server_side_apply(&bed.crd_path(), "injector", &{
            let mut held = injected.clone();
            held.as_object_mut().expect("an object").remove("spec");
            held
        })
        .0,
        200
    );
    let (ours, theirs) = messages_of_both(&bed, &crd(&bed, &Value::Null, 11));
    assert_eq!((ours, theirs), (vec![], vec![]));
}

#[test]
fn a_rule_that_may_cost_too_much_blocks_before_the_server_refuses_it() {
    let (cp, bed) = (control_plane(), Bed::new());
    bed.write("manifests.yaml", &serde_yaml::to_string(&crd(&bed, &Value::Null, 10)).expect("YAML"));
    bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(0);
    for (max_items, count) in [(1_000, 0), (2_000, 1), (20_000, 3)] {
        let (mut ours, mut theirs) = messages_of_both(&bed, &crd(&bed, &Value::Null, max_items));
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs);
        assert_eq!(ours.len(), count, "{ours:?}");
    }
}

#[test]
fn a_rule_with_a_message_literal_is_not_called_invalid() {
    let bed = Bed::new();
    for rule in [
        "google.protobuf.Struct{} == {}",
        "google.protobuf.Duration{seconds: 1} == duration('1s')",
        "size(self) == google.protobuf.Int64Value{value: 3}",
    ] {
        let fields = format!("text: {{type: string, maxLength: 9, x-kubernetes-validations: [{{rule: {rule:?}}}]}}");
        let crd: Value = serde_yaml::from_str(&bed.crd(&fields)).expect("a CRD");
        let path = format!("{}?dryRun=All&force=true&fieldManager=gantry", bed.crd_path());
        assert_eq!(control_plane().apply_to(&path, &crd).0, 201, "{rule}");
        bed.write("manifests.yaml", &crd.to_string());
        let flags = ["check", "-f", "manifests.yaml", "--preflight", "CRDUpgradeSafety"];
        bed.gantry(control_plane().kubeconfig("admin"), &flags).run().code(0);
    }
}

#[test]
fn a_ca_bundle_of_another_manager_is_removed_by_the_printed_command() {
    let cp = control_plane();
    let client = json!({"service": {"name": "a", "namespace": "b"}});
    let webhook =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
    for without in [Value::Null, json!({"strategy": "None"})] {
        let bed = Bed::new();
        bed.write("manifests.yaml", &serde_yaml::to_string(&crd(&bed, &webhook, 10)).expect("YAML"));
        bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(0);
        let bundle = BASE64.encode(include_str!("../fixtures/ca-2026.crt"));
        let injected = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}});
        assert_eq!(cp.patch(&format!("{}?fieldManager=injector", bed.crd_path()), &injected).0, 200);

        bed.write("manifests.yaml", &serde_yaml::to_string(&crd(&bed, &without, 10)).expect("YAML"));
        let report = bed.deploy(cp.kubeconfig("admin"), &["-o", "json"]).run().code(3).report();
        let help: Vec<String> = findings(&report)
            .iter()
            .filter(|finding| finding["rule"] == "CRDInvalid")
            .map(|finding| text(&finding["help"]))
            .collect();
        assert!(!help.is_empty(), "{report:#}");
        for help in &help {
            let owner = ".spec.conversion.webhook.clientConfig.caBundle of field manager \"injector\"";
            assert!(help.contains(owner), "{help}");
        }
        let mut commands = printed_commands(&json!(help));
        commands.dedup();
        let [command] = &commands[..] else { panic!("{commands:?}") };
        assert!(command.contains("--type=merge -p "), "{command}");
        run_printed(command, &cp.kubeconfig("admin"), bed.folder.path());
        // A warning about the conversion that ends may remain; the server accepts the CRD.
        bed.deploy(cp.kubeconfig("admin"), &["-q"]).run().code(0);
        let live = cp.get(&bed.crd_path()).1;
        assert_eq!(live["spec"]["conversion"], json!({"strategy": "None"}));
    }
}

/// One object is stored at v1, with `size`, and one at v2, with `amount`.
#[test]
fn no_value_is_lost_when_the_printed_commands_end_a_conversion() {
    let cp = control_plane();
    for rewrites in [true, false] {
        let (bed, webhook) = (Conversion::new(), webhook(rename));
        let (group, namespace) = (&bed.0.names.group, &bed.0.names.namespace);
        let bundle = webhook.conversion()["webhook"]["clientConfig"]["caBundle"].clone();
        let crd = |storage: &str, conversion: &Value| {
            let mut crd = bed.crd(conversion);
            for version in crd["spec"]["versions"].as_array_mut().expect("versions") {
                version["storage"] = (version["name"] == storage).into();
            }
            if conversion.is_null() {
                crd["spec"].as_object_mut().expect("a spec").remove("conversion");
            }
            crd
        };
        let mut conversion = webhook.conversion();
        conversion["webhook"]["clientConfig"].as_object_mut().expect("a client").remove("caBundle");
        let path = bed.0.crd_path();
        let apply = |storage: &str| {
            let (status, answer) = cp.server_side_apply(&path, "gantry", &crd(storage, &conversion));
            assert!(status < 300, "{answer}");
        };
        let objects = |version: &str| format!("/apis/{group}/{version}/namespaces/{namespace}/samples");
        let create = |version: &str, name: &str, spec: &Value| {
            let object = json!({"apiVersion": format!("{group}/{version}"), "kind": "Sample", "metadata": {"name": name},
                "spec": spec});
            eventually("it is created", || (cp.post(&objects(version), &object).0 == 201).then_some(()));
        };
        apply("v1");
        let injected = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}});
        assert_eq!(cp.patch(&format!("{path}?fieldManager=injector"), &injected).0, 200);
        create("v1", "old", &json!({"size": "1"}));
        apply("v2");
        eventually("v2 is stored", || {
            (cp.get(&path).1["status"]["storedVersions"] == json!(["v1", "v2"])).then_some(())
        });
        // For a moment, the server still stores objects at the former version.
        eventually("new objects are stored at v2", || {
            create("v2", "new", &json!({"amount": "2"}));
            let stored = cp.stored(&format!("/registry/{group}/samples/{namespace}/new"));
            let is_at_v2 = stored["apiVersion"] == format!("{group}/v2");
            if !is_at_v2 {
                assert_eq!(cp.delete(&format!("{}/new", objects("v2"))).0, 200);
            }
            is_at_v2.then_some(())
        });

        bed.0.write("manifests.yaml", &crd("v2", &Value::Null).to_string());
        let said = bed.0.deploy(cp.kubeconfig("admin"), &[]).run();
        said.code(3).stdout_contains("CRDInvalid");
        let run = |command: &str| run_printed(command, &cp.kubeconfig("admin"), bed.0.folder.path());
        if rewrites {
            run_migration(&printed_command(&said, &format!("gantry migrate samples.{group}"), "kubectl"));
        }
        run(&printed_command(&said, "kubectl patch customresourcedefinition/", "'"));
        bed.0.deploy(cp.kubeconfig("admin"), &["-q"]).run().code(0);
        assert_eq!(cp.get(&path).1["spec"]["conversion"], json!({"strategy": "None"}));
        let specs = |version: &str| {
            let list =
                eventually("they are served", || Some(cp.get(&objects(version))).filter(|(status, _)| *status == 200))
                    .1;
            let items = list["items"].as_array().expect("items").clone();
            items.iter().map(|item| item["spec"].clone()).collect::<Vec<_>>()
        };
        // By name: `new` and `old`. What is not rewritten shows its value only at its own version.
        let expected = match rewrites {
            true => [json!([{"amount": "2"}, {"amount": "1"}]), json!([{}, {}])],
            false => [json!([{"amount": "2"}, {}]), json!([{}, {"size": "1"}])],
        };
        assert_eq!([json!(specs("v2")), json!(specs("v1"))], expected);
    }
}

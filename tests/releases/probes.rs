//! Probes a feature on a server: what the server answers, and what gantry says before it is asked.

use serde_json::{Value, json};

use super::features::{Answer, Probe, Update};
use crate::support::{Bed, ControlPlane, Gantry, Output, eventually};

/// The answers about one feature.
pub struct Probed {
    pub server: Answer,
    /// The server's message, if it refused.
    pub message: String,
    /// gantry's word on that cluster, with all rights. `None` for a feature that gantry does not judge.
    pub gantry: Option<Answer>,
    /// gantry's word for a user who can only read, so that no dry run is possible.
    pub gantry_as_reader: Option<Answer>,
    /// gantry's word on a folder that stands for a cluster of the release.
    pub gantry_on_folder: Option<Answer>,
}

/// The parameters of the request with which gantry applies an object.
const APPLY: &str = "?fieldManager=gantry&force=true&fieldValidation=Strict";

/// A server of a release.
pub struct Server {
    pub release: &'static str,
    pub control_plane: ControlPlane,
}

pub fn probe(server: &Server, probe: &Probe) -> Probed {
    let cp = &server.control_plane;
    let bed = &Bed::on(cp);
    match probe {
        Probe::NewCrd(properties) => new_crd(server, bed, crd(bed, properties), None),
        Probe::TextRule(rule) => {
            let field = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": rule}]});
            new_crd(server, bed, crd_with_field(bed, field), None)
        }
        Probe::ListRule(rule) => {
            let items = json!({"type": "string", "maxLength": 9});
            let rules = json!([{"rule": rule}]);
            let field = json!({"type": "array", "maxItems": 9, "items": items, "x-kubernetes-validations": rules});
            new_crd(server, bed, crd_with_field(bed, field), None)
        }
        Probe::VersionField(key, value) => {
            let mut crd = crd(bed, "a: {type: string}");
            crd["spec"]["versions"][0][key] = yaml(value);
            new_crd(server, bed, crd, Some(&format!("/spec/versions/0/{key}")))
        }
        Probe::InvalidCaBundle => {
            let mut crd = crd(bed, "a: {type: string}");
            let client = json!({"url": "https://192.0.2.1/convert"});
            let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
            crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
            cp.apply_yaml(&crd.to_string());
            // "not a certificate"
            crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = "bm90IGEgY2VydGlmaWNhdGU=".into();
            new_crd(server, bed, crd, None)
        }
        Probe::NewObject { schema, value } => {
            cp.apply_yaml(&crd_with_field(bed, yaml(schema)).to_string());
            let object = bed.object(&api_version(bed), "Sample", "one", json!({"a": yaml(value)}));
            applied(server, bed, &object, None, "CustomResourceValidation", &["ManifestObjectRefused"])
        }
        Probe::UpdateOfInvalidObject(update) => {
            let (wide, narrow) = ("type: string", "type: string, enum: [y]");
            let narrowed = Narrowed::prepare(server, bed, (wide, wide), (narrow, wide));
            let (path, finalizer) = (bed.sample_path(), json!({"metadata": {"finalizers": ["example.com/f"]}}));
            if matches!(update, Update::LastFinalizer) {
                assert_eq!(cp.patch(&path, &finalizer).0, 200);
                cp.delete(&path);
            }
            narrowed.probe(|| match update {
                Update::OtherField => cp.patch(&path, &json!({"spec": {"b": "changed"}})),
                Update::Label => cp.patch(&path, &json!({"metadata": {"labels": {"changed": "yes"}}})),
                Update::LastFinalizer => cp.patch(&path, &json!({"metadata": {"finalizers": []}})),
            })
        }
        Probe::StatusBesideInvalidValue { spec, status } => {
            let wide = "type: string";
            let narrowed = Narrowed::prepare(server, bed, (wide, wide), (spec, status));
            let path = format!("{}/status", bed.sample_path());
            narrowed.probe(|| cp.patch(&path, &json!({"status": {"b": "changed"}})))
        }
        Probe::Kind(manifest) => {
            let object = yaml(&manifest.replace("NAME", &bed.names.group));
            applied(server, bed, &object, None, "APIAvailability", &["ApiNotServed", "ApiRemoved"])
        }
        Probe::Answer { path, accept, contains } => {
            let (status, answer) = cp.get_accepting(path, accept);
            let server = if status == 200 && answer.to_string().contains(contains) { Answer::Yes } else { Answer::No };
            Probed {
                server,
                message: format!("{status}"),
                gantry: None,
                gantry_as_reader: None,
                gantry_on_folder: None,
            }
        }
    }
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|e| panic!("the probe's YAML: {e}\n{text}"))
}

fn api_version(bed: &Bed) -> String {
    format!("{}/v1", bed.names.group)
}

fn crd(bed: &Bed, properties: &str) -> Value {
    yaml(&bed.crd(properties))
}

/// A CRD whose field `a` has this schema.
fn crd_with_field(bed: &Bed, field: Value) -> Value {
    let mut crd = crd(bed, "");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"] = field;
    crd
}

/// Asks about a CRD; `kept` is the path of the field that the server must not drop.
fn new_crd(server: &Server, bed: &Bed, crd: Value, kept: Option<&str>) -> Probed {
    applied(server, bed, &crd, kept, "CRDUpgradeSafety", &["CRDInvalid", "ConversionCABundleInvalid"])
}

/// Asks about an object that is applied: the server by a dry run, and gantry by the check that has these rules about
/// what the server refuses.
fn applied(server: &Server, bed: &Bed, object: &Value, kept: Option<&str>, check: &str, refusals: &[&str]) -> Probed {
    let cp = &server.control_plane;
    bed.write_objects([object]);
    let [gantry, gantry_as_reader, gantry_on_folder] = words_of_gantry(server, bed, check, refusals);
    let path = path_of(cp, object);
    let (status, answer) = cp.apply_to(&format!("{path}{APPLY}&dryRun=All"), object);
    let answered = match status {
        200 | 201 if kept.is_some_and(|kept| answer.pointer(kept).is_none()) => Answer::Dropped,
        200 | 201 => Answer::Yes,
        _ => Answer::No,
    };
    Probed { server: answered, message: message(status, &answer), gantry, gantry_as_reader, gantry_on_folder }
}

/// The path of an object, also of a kind that the server does not have.
fn path_of(cp: &ControlPlane, object: &Value) -> String {
    let kind = object["kind"].as_str().expect("a kind");
    let (api_version, name) = (object["apiVersion"].as_str().expect("a version"), &object["metadata"]["name"]);
    match kind {
        "FlowSchema" => format!("/apis/{api_version}/flowschemas/{}", name.as_str().expect("a name")),
        "ValidatingAdmissionPolicy" => {
            format!("/apis/{api_version}/validatingadmissionpolicies/{}", name.as_str().expect("a name"))
        }
        _ => cp.path_of(object),
    }
}

fn message(status: u16, answer: &Value) -> String {
    match status {
        200 | 201 => String::new(),
        _ => format!("{status} {}", answer["message"].as_str().unwrap_or_default()),
    }
}

/// An object that is live, and a CRD that newly refuses a value of it.
struct Narrowed<'a> {
    server: &'a Server,
    bed: &'a Bed,
    narrow: Value,
    is_spec_narrowed: bool,
}

impl<'a> Narrowed<'a> {
    /// Creates the wide CRD and an object. The pairs are the schemas of `spec.a` and `status.a` (YAML flow).
    fn prepare(server: &'a Server, bed: &'a Bed, wide: (&str, &str), narrow: (&str, &str)) -> Self {
        let crd = |(spec, status): (&str, &str)| {
            let part = |field: &str| format!("{{type: object, properties: {{a: {{{field}}}, b: {{type: string}}}}}}");
            let mut crd = crd(bed, &format!("spec: {}, status: {}", part(spec), part(status)));
            crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            crd
        };
        let cp = &server.control_plane;
        cp.apply_yaml(&crd(wide).to_string());
        let object = bed.object(&api_version(bed), "Sample", "one", json!({"spec": {"a": "x"}}));
        cp.apply_yaml(&object.to_string());
        let (status, answer) = cp.patch(&format!("{}/status", bed.sample_path()), &json!({"status": {"a": "x"}}));
        assert_eq!(status, 200, "{answer}");
        Narrowed { server, bed, narrow: crd(narrow), is_spec_narrowed: wide.0 != narrow.0 }
    }

    /// Asks gantry about the CRD, and makes it live; then the server about the write.
    fn probe(&self, write: impl Fn() -> (u16, Value)) -> Probed {
        let Narrowed { server, bed, narrow, is_spec_narrowed } = self;
        let cp = &server.control_plane;
        bed.write_objects([narrow]);
        let [gantry, gantry_as_reader, gantry_on_folder] =
            words_of_gantry(server, bed, "CustomResourceValidation", &["ExistingObjectRefusedOnUpdate"]);
        cp.apply_yaml(&narrow.to_string());
        // The server uses the new schema a moment later.
        let new = bed.object(&api_version(bed), "Sample", "probe", json!({"spec": {"a": "x"}}));
        let collection = bed.sample_path().trim_end_matches("/one").to_owned();
        let changed_status = json!({"status": {"a": "z"}});
        eventually("the new schema is in use", || {
            let (status, _) = match is_spec_narrowed {
                true => cp.post(&format!("{collection}?dryRun=All"), &new),
                false => cp.patch(&format!("{}/status?dryRun=All", bed.sample_path()), &changed_status),
            };
            (status == 422).then_some(())
        });
        let (status, answer) = write();
        let server = if status == 200 { Answer::Yes } else { Answer::No };
        Probed { server, message: message(status, &answer), gantry, gantry_as_reader, gantry_on_folder }
    }
}

/// What gantry says about the manifests: on the cluster with all rights, there with the right to read, and on a folder
/// with what is live.
fn words_of_gantry(server: &Server, bed: &Bed, check: &str, refusals: &[&str]) -> [Option<Answer>; 3] {
    let cp = &server.control_plane;
    let folder = bed.folder.path().join("cluster");
    std::fs::create_dir(&folder).expect("a folder for the live objects");
    for (name, path) in [("crd.json", bed.crd_path()), ("one.json", bed.sample_path())] {
        let (status, object) = cp.get(&path);
        if status == 200 {
            std::fs::write(folder.join(name), object.to_string()).expect("write a live object");
        }
    }
    let check = ["check", "-f", "manifests.yaml", "--preflight", check, "--force-conflicts", "-o", "json"];
    let on_cluster = |user: &str| bed.gantry(cp.kubeconfig(user), &check).run();
    let on_folder = || {
        let target = ["--target", "dir:cluster", "--kube-version", server.release];
        Gantry::new().cwd(bed.folder.path()).args(check).args(target).run()
    };
    [on_cluster("admin"), on_cluster("reader"), on_folder()].map(|output| Some(word(&output, refusals)))
}

/// Whether one of the findings says that the server refuses the write.
fn word(output: &Output, refusals: &[&str]) -> Answer {
    let report = output.report();
    let checks = report["checks"].as_array().into_iter().flatten();
    let findings = checks.flat_map(|check| check["findings"].as_array().into_iter().flatten());
    let is_refusal =
        |finding: &&Value| finding["severity"] == "error" && refusals.iter().any(|rule| finding["rule"] == *rule);
    match (findings.filter(is_refusal).count(), output.code) {
        (0, Some(0)) => Answer::Yes,
        (0, _) => Answer::Undecided,
        _ => Answer::No,
    }
}

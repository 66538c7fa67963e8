//! The `kube` target on a real API server: the real form of its pins, conflicts, lists and refusals.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{CrdBuilder, Proxy, Recorded, When, control_plane, eventually, isolated, string_fields};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{
    Apply, ApplyError, Connection, Established, FieldConflict, FormerTools, Gvk, ManagerOperation, ObjectToRead,
    WritePrecondition,
};
use gantry_core::problem::{Error, Problem};
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The target with its own runtime, because the test bed's requests block.
struct Cluster {
    runtime: Runtime,
    kube: KubeTarget,
}

impl Cluster {
    fn open(kubeconfig: &Path) -> Self {
        Self::try_open(kubeconfig).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_open(kubeconfig: &Path) -> Result<Self, Error> {
        let runtime = Runtime::new().unwrap();
        let connection = Connection { kubeconfig: Some(kubeconfig.to_owned()), ..Connection::default() };
        let kube = runtime.block_on(KubeTarget::open(&connection))?;
        Ok(Cluster { runtime, kube })
    }

    fn admin() -> Self {
        Self::open(&control_plane().kubeconfig("admin"))
    }

    fn read(&self, wanted: &[ObjectToRead]) -> Result<Vec<Option<LiveObject>>, Error> {
        self.runtime.block_on(self.kube.read(wanted, &|_, _| ())).and_then(gantry_cluster::collect_reads)
    }

    fn live(&self, thing: &Thing) -> Option<LiveObject> {
        self.read(&[thing.wanted()]).unwrap().remove(0)
    }

    fn apply(&self, thing: &Thing, pin: &WritePrecondition) -> Result<LiveObject, ApplyError> {
        self.apply_as(thing, pin, "gantry", false)
    }

    fn apply_as(
        &self,
        thing: &Thing,
        pin: &WritePrecondition,
        field_manager: &str,
        force: bool,
    ) -> Result<LiveObject, ApplyError> {
        let raw = RawObject::from_value(&thing.manifest);
        self.runtime.block_on(self.kube.apply(&Apply {
            resource: &thing.resource,
            object: &thing.object,
            raw: &raw,
            live: None,
            pin,
            field_manager,
            force_conflicts: force,
            helm: None,
            former_tools: FormerTools::TakeUnlessConflict,
        }))
    }

    fn established(&self, crd: &Thing) -> Established {
        self.runtime.block_on(self.kube.established(&crd.object, &[])).unwrap()
    }

    /// Applies a CRD and waits until it is served.
    fn establish(&self, crd: &Thing) -> LiveObject {
        let live = self.apply(crd, &WritePrecondition::Absent).unwrap();
        eventually("the CRD is served", || (self.established(crd) == Established::Yes).then_some(()));
        live
    }
}

/// A manifest with the place where the server serves it.
#[derive(Clone)]
struct Thing {
    resource: Resource,
    object: ObjectRef,
    manifest: Value,
}

impl Thing {
    fn new(resource: Resource, namespace: Option<&str>, name: &str, content: Value) -> Self {
        let slash = if resource.group.is_empty() { "" } else { "/" };
        let api_version = format!("{}{slash}{}", resource.group, resource.version);
        let mut manifest = json!({"apiVersion": api_version, "kind": resource.kind, "metadata": {"name": name}});
        manifest.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        let (namespace, kind) = (namespace.map(str::to_owned), resource.kind.clone());
        Thing { object: ObjectRef { api_version, kind, namespace, name: name.into() }, resource, manifest }
    }

    fn wanted(&self) -> ObjectToRead {
        ObjectToRead { resource: self.resource.clone().into(), object: self.object.clone().into() }
    }

    fn path(&self) -> String {
        self.resource.path(self.object.namespace.as_deref(), Some(&self.object.name))
    }
}

/// A CRD with these string fields.
fn crd(group: &str, fields: &[&str]) -> Thing {
    let crd = CrdBuilder::samples(group).version_of_spec("v1", string_fields(fields)).build();
    Thing::new(Resource::crd(), None, &format!("samples.{group}"), json!({"spec": crd["spec"]}))
}

/// A CRD that has every field that the API has, if possible with a value that two encodings can represent differently.
fn crd_with_every_field(group: &str) -> Thing {
    let schema = json!({"type": "object", "description": "A \"q\" <b> & \u{1} é \u{2028} 😀\n\ttext", "title": "T",
        "required": ["spec"], "externalDocs": {"description": "d", "url": "https://example.com"}, "example": {"a": [1, 2.5]},
        "properties": {
            "spec": {"type": "object", "minProperties": 0, "maxProperties": 9, "x-kubernetes-map-type": "atomic",
                "x-kubernetes-validations": [
                    {"rule": "true", "message": "m", "reason": "FieldValueInvalid", "fieldPath": ".number"},
                    {"rule": "!oldSelf.hasValue() || true", "messageExpression": "'a'", "optionalOldSelf": true}],
                "properties": {
                    "number": {"type": "number", "format": "double", "minimum": -0.5, "maximum": 1e22, "multipleOf": 0.25,
                        "exclusiveMinimum": true, "exclusiveMaximum": true, "default": 1.5},
                    "small": {"type": "number", "minimum": 0.000_000_1, "maximum": 12_345_678_901_234_567_890.0_f64},
                    "integer": {"type": "integer", "minimum": 0, "maximum": 100, "default": 0},
                    "text": {"type": "string", "minLength": 0, "maxLength": 5, "pattern": "^a\\d*$", "nullable": true,
                        "default": "a", "enum": ["a", null, ""]},
                    "list": {"type": "array", "minItems": 0, "maxItems": 3, "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"], "default": [],
                        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
                    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "map": {"type": "object", "additionalProperties": {"type": "string"},
                        "default": {"b": "x y", "a": " "}},
                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {"a": [1, null]}},
                    "any": {"type": "object", "additionalProperties": true},
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
                        "allOf": [{"pattern": "a"}], "not": {"enum": ["b"]}, "oneOf": [{}]},
                    "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
                        "x-kubernetes-preserve-unknown-fields": true},
                    "odd \"key\"": {"type": "boolean", "default": false}}},
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "labels": {"type": "string"}}}}});
    let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
        "service": {"namespace": "a", "name": "b", "path": "/c", "port": 8443}}}});
    let spec = json!({"spec": {
        "group": group, "scope": "Cluster", "conversion": webhook,
        "names": {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList",
            "shortNames": ["s1", "s2"], "categories": ["all"]},
        "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.integer",
                    "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.labels"}},
                "selectableFields": [{"jsonPath": ".spec.integer"}],
                "additionalPrinterColumns": [{"name": "N", "type": "integer", "format": "int32", "description": "d",
                    "priority": 1, "jsonPath": ".spec.integer"}, {"name": "M", "type": "string", "jsonPath": ".spec.text"}]},
            {"name": "v1alpha1", "served": false, "storage": false, "deprecated": true, "deprecationWarning": "w",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let mut crd = Thing::new(Resource::crd(), None, &format!("samples.{group}"), spec);
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "0", "controller": false,
        "blockOwnerDeletion": true});
    let metadata = json!({"name": crd.object.name, "labels": {"a/b": "", "c": "d"}, "annotations": {"x": "{\"y\": 1}\n"},
        "ownerReferences": [owner]});
    crd.manifest["metadata"] = metadata;
    crd
}

fn sample(group: &str, namespace: &str, name: &str, spec: Value) -> Thing {
    let resource = Resource {
        group: group.into(),
        version: "v1".into(),
        kind: "Sample".into(),
        plural: "samples".into(),
        namespaced: true,
    };
    Thing::new(resource, Some(namespace), name, json!({"spec": spec}))
}

fn config_map(name: &str, data: Value) -> Thing {
    let resource = Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
    };
    Thing::new(resource, Some("default"), name, json!({"data": data}))
}

fn pin(live: &LiveObject) -> WritePrecondition {
    WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
}

#[track_caller]
fn refused(result: Result<LiveObject, ApplyError>) -> Problem {
    match result {
        Err(ApplyError::Refused(problem)) => problem,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn an_object_that_is_not_the_checked_one_is_not_written() {
    let (cluster, group) = (Cluster::admin(), isolated().group);
    let crds = (crd(&group, &["a"]), crd(&group, &["a", "b"]), true);
    let config_maps = (config_map(&group, json!({"a": "1"})), config_map(&group, json!({"a": "2"})), false);
    for (first, second, is_crd) in [crds, config_maps] {
        // The pin expects no object, but the object now exists: refused even if nothing would change.
        // The server's controllers write the status of a new CRD until it is established.
        let created =
            if is_crd { cluster.establish(&first) } else { cluster.apply(&first, &WritePrecondition::Absent).unwrap() };
        assert_eq!(cluster.apply(&first, &WritePrecondition::Absent).err(), Some(ApplyError::Changed));
        assert_eq!(cluster.apply(&second, &WritePrecondition::Absent).err(), Some(ApplyError::Changed));
        let by_other = cluster.apply_as(&second, &WritePrecondition::Absent, "somebody-else", false);
        assert_eq!(by_other.err(), Some(ApplyError::Changed));

        // Changed by another writer in the meantime.
        let label = json!({"metadata": {"labels": {"by": "somebody"}}});
        assert_eq!(control_plane().patch(&first.path(), &label).0, 200);
        assert_eq!(cluster.apply(&second, &pin(&created)).err(), Some(ApplyError::Changed));

        // A different object with the same name, at the live version.
        let now = cluster.live(&first).unwrap();
        assert_ne!(now.resource_version, created.resource_version);
        let uid = "11111111-1111-1111-1111-111111111111".into();
        let other = WritePrecondition::At { uid, resource_version: now.resource_version.clone() };
        assert_eq!(cluster.apply(&second, &other).err(), Some(ApplyError::Changed));
        assert_eq!(cluster.live(&first).unwrap().resource_version, now.resource_version, "nothing was written");

        // With a correct pin the apply succeeds, and the pin leaves no trace.
        let updated = cluster.apply(&second, &pin(&now)).unwrap();
        assert_ne!(updated.resource_version, now.resource_version);
        let mine = &updated.raw.value()["metadata"]["managedFields"];
        let mine = mine.as_array().unwrap().iter().find(|entry| entry["manager"] == "gantry").unwrap();
        assert_eq!(mine["fieldsV1"].get("f:metadata"), None);

        // Deleted in the meantime.
        assert_eq!(control_plane().delete(&first.path()).0, 200);
        eventually("the object is gone", || cluster.live(&first).is_none().then_some(()));
        assert_eq!(cluster.apply(&second, &pin(&updated)).err(), Some(ApplyError::Changed));
        assert!(cluster.live(&first).is_none());
    }
}

#[test]
fn applying_the_live_object_changes_nothing() {
    let (cluster, group) = (Cluster::admin(), isolated().group);
    let crd = crd(&group, &["a"]);
    cluster.establish(&crd);
    let live = cluster.live(&crd).unwrap();
    assert_eq!(cluster.apply(&crd, &pin(&live)).unwrap().resource_version, live.resource_version);
}

#[test]
fn an_exported_object_can_be_applied_as_it_is() {
    let (cluster, name) = (Cluster::admin(), isolated().namespace);
    let first = config_map(&name, json!({"a": "1"}));
    let live = cluster.apply(&first, &WritePrecondition::Absent).unwrap();
    let mut exported = first.clone();
    exported.manifest = live.raw.value();
    assert!(exported.manifest["metadata"]["managedFields"].is_array());
    exported.manifest["data"]["a"] = json!("2");
    let updated = cluster.apply(&exported, &pin(&live)).unwrap();
    assert_eq!(updated.raw.value()["data"]["a"], "2");
    // The same when the exported uid and resourceVersion belong to a deleted object.
    assert_eq!(control_plane().delete(&first.path()).0, 200);
    assert_ne!(cluster.apply(&exported, &WritePrecondition::Absent).unwrap().uid, live.uid);
}

#[test]
fn fields_of_other_managers_are_named_and_can_be_taken_over() {
    let (cluster, group) = (Cluster::admin(), isolated().group);
    let manager = "some \"other\" manager";
    let live = cluster
        .apply_as(&config_map(&group, json!({"a": "1", "b": "1"})), &WritePrecondition::Absent, manager, false)
        .unwrap();
    let mine = config_map(&group, json!({"a": "2", "b": "2"}));
    let operation = ManagerOperation::Apply;
    let conflicts: Vec<FieldConflict> =
        [".data.a", ".data.b"].map(|field| FieldConflict::new(manager, operation, field)).into();
    assert_eq!(cluster.apply(&mine, &pin(&live)).err(), Some(ApplyError::Conflict(conflicts)));
    assert_eq!(cluster.live(&mine).unwrap().resource_version, live.resource_version);
    let taken = cluster.apply_as(&mine, &pin(&live), "gantry", true).unwrap();
    assert_eq!(taken.raw.value()["data"], json!({"a": "2", "b": "2"}));
}

#[test]
fn a_new_crd_is_established_and_its_objects_follow() {
    let (cluster, names) = (Cluster::admin(), isolated());
    let crd = crd(&names.group, &["a"]);
    cluster.establish(&crd);
    let live =
        cluster.apply(&sample(&names.group, "default", "one", json!({"a": "x"})), &WritePrecondition::Absent).unwrap();
    assert_eq!(live.raw.value()["spec"]["a"], "x");

    // A second CRD uses a kind of the first.
    let mut other = crd.clone();
    other.object.name = format!("others.{}", names.group);
    other.manifest["metadata"]["name"] = json!(other.object.name);
    other.manifest["spec"]["names"] =
        json!({"plural": "others", "singular": "other", "kind": "Sample", "listKind": "OtherList"});
    cluster.apply(&other, &WritePrecondition::Absent).unwrap();
    let never = eventually("the server refuses the names", || match cluster.established(&other) {
        Established::NotYet(_) => None,
        decided => Some(decided),
    });
    assert_eq!(never, Established::Never("KindConflict: \"Sample\" is already in use".into()));
}

#[test]
fn a_field_that_was_just_added_to_a_crd_is_kept() {
    let (cluster, names) = (Cluster::admin(), isolated());
    let mut fields = vec!["f0"];
    cluster.establish(&crd(&names.group, &fields));
    // The server can briefly answer with the old schema, more often under load.
    for field in ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"] {
        fields.push(field);
        let wider = crd(&names.group, &fields);
        cluster.apply(&wider, &pin(&cluster.live(&wider).unwrap())).unwrap();
        assert_eq!(cluster.established(&wider), Established::Yes);
        let sample = sample(&names.group, "default", field, json!({field: "kept"}));
        assert_eq!(cluster.apply(&sample, &WritePrecondition::Absent).unwrap().raw.value()["spec"][field], "kept");
    }
}

#[test]
fn kinds_are_found_where_they_are_served() {
    let (cluster, names) = (Cluster::admin(), isolated());
    let kind = |group: &str, version: &str, kind: &str| Gvk {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    };
    cluster.establish(&crd(&names.group, &["a"]));
    let kinds = BTreeSet::from([
        kind("", "v1", "Namespace"),
        kind("", "v1", "Pod"),
        kind("apps", "v1", "Deployment"),
        kind("apps", "v9", "Deployment"),
        kind("apps", "v1", "Deploymint"),
        kind(&names.group, "v1", "Sample"),
        kind("not.served.example.com", "v1", "Sample"),
    ]);
    let found = cluster.runtime.block_on(cluster.kube.discover(&kinds)).unwrap().served;
    let mut found: Vec<String> = found.values().map(|resource| resource.path(Some("n"), None)).collect();
    found.sort();
    let samples = format!("/apis/{}/v1/namespaces/n/samples", names.group);
    assert_eq!(
        found,
        ["/api/v1/namespaces", "/api/v1/namespaces/n/pods", "/apis/apps/v1/namespaces/n/deployments", &samples]
    );
}

#[test]
fn few_crds_are_read_by_name_and_many_by_list() {
    let cp = control_plane();
    let (names, proxy) = (isolated(), Proxy::start(cp));
    let mut crds: Vec<Thing> = (0..129).map(|number| crd(&format!("g{number}.{}", names.group), &["a"])).collect();
    crds.push(crd_with_every_field(&format!("every.{}", names.group)));
    for crd in &crds {
        assert_eq!(cp.post(CRDS, &crd.manifest).0, 201);
    }
    // Until then the server still writes their status.
    let admin = Cluster::admin();
    for crd in &crds {
        eventually("the CRD is served", || (admin.established(crd) == Established::Yes).then_some(()));
    }
    let cluster = Cluster::open(&proxy.kubeconfig("reader"));
    let mut wanted: Vec<ObjectToRead> = crds.iter().rev().map(Thing::wanted).collect();
    wanted.push(crd(&format!("absent.{}", names.group), &[]).wanted());
    wanted.push(config_map("kube-root-ca.crt", json!({})).wanted());

    let listed = cluster.read(&wanted).unwrap();
    let requests = proxy.requests();
    let lists = |requests: &[Recorded]| requests.iter().filter(|request| request.path == CRDS).count();
    // In Protocol Buffers; if they were not decoded, pages of JSON would follow.
    assert_eq!(lists(&requests), 1, "{requests:?}");
    assert!(requests.iter().all(|request| !request.path.starts_with(&format!("{CRDS}/"))), "{requests:?}");

    let named: Vec<Option<LiveObject>> = wanted.chunks(50).flat_map(|few| cluster.read(few).unwrap()).collect();
    assert_eq!(lists(&proxy.requests()), 1);
    for (index, (listed, named)) in listed.iter().zip(&named).enumerate() {
        let name = &wanted[index].object.name;
        assert_eq!(listed.is_some(), index < crds.len(), "{name}");
        let Some((listed, named)) = listed.as_ref().zip(named.as_ref()) else { continue };
        assert_eq!(listed.raw.value(), named.raw.value(), "{name}");
        assert_eq!((&listed.uid, &listed.resource_version), (&named.uid, &named.resource_version));
        assert_eq!(listed.raw.value()["metadata"]["name"], *name.as_str());
    }

    // Pages of JSON, of a snapshot that the server dropped in the middle of the list.
    proxy.answer_as(When::new("GET", CRDS).nth(1), 406, "text/plain", "not acceptable");
    let expired = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410});
    proxy.answer(When::new("GET", CRDS).query("continue=").nth(1), 410, expired);
    let paged = cluster.read(&wanted).unwrap();
    let pages = lists(&proxy.requests()) - 2;
    assert!((4..=16).contains(&pages), "{pages} pages");
    for (paged, listed) in paged.iter().flatten().zip(listed.iter().flatten()) {
        assert_eq!(paged.raw.value(), listed.raw.value());
    }
    assert_eq!(paged.iter().flatten().count(), crds.len());

    // Permission to get but not to list.
    let rules =
        json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]}]);
    let getter = Cluster::open(&cp.kubeconfig(&cp.user(&rules)));
    assert_eq!(getter.read(&wanted[..131]).unwrap().iter().flatten().count(), crds.len());
}

#[test]
fn a_missing_right_is_named() {
    let cp = control_plane();
    let (names, crd) = (isolated(), crd(&isolated().group, &["a"]));
    let nobody = Cluster::open(&cp.kubeconfig("nobody"));
    let error = nobody.read(&[crd.wanted(), config_map(&names.namespace, json!({})).wanted()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "user \"nobody\" may not get configmaps in namespace \"default\"\n\
         user \"nobody\" may not get customresourcedefinitions.apiextensions.k8s.io at the cluster scope"
    );
    assert_eq!(
        error.problems()[0].help.as_deref(),
        Some(
            "ask for a Role in namespace \"default\" with the rule {apiGroups: [\"\"], resources: [\"configmaps\"], verbs: [\"get\"]}, bound to that user"
        )
    );
    let reader = Cluster::open(&cp.kubeconfig("reader"));
    let problem = refused(reader.apply(&crd, &WritePrecondition::Absent));
    assert_eq!(
        problem.message,
        "user \"reader\" may not patch customresourcedefinitions.apiextensions.k8s.io at the cluster scope"
    );
}

#[test]
fn refusals_have_the_message_of_the_server() {
    let (cluster, names) = (Cluster::admin(), isolated());
    cluster.establish(&crd(&names.group, &["a"]));
    let apply = |thing: &Thing| refused(cluster.apply(thing, &WritePrecondition::Absent)).message;

    let typo = sample(&names.group, "default", "typo", json!({"aa": "x"}));
    assert_eq!(apply(&typo), "the API server refused it: .spec.aa: field not declared in schema");
    let nowhere = sample(&names.group, &names.namespace, "nowhere", json!({"a": "x"}));
    let message = apply(&nowhere);
    assert!(message.starts_with(&format!("there is no namespace {:?}", names.namespace)), "{message}");
    let mut wrong = crd(&isolated().group, &["a"]);
    wrong.manifest["spec"]["scope"] = json!("Galactic");
    wrong.manifest["spec"]["names"]["plural"] = json!("others");
    let message = apply(&wrong);
    assert!(message.contains("spec.scope: Unsupported value: \"Galactic\""), "{message}");
    assert!(message.contains("metadata.name: Invalid value") && message.lines().count() == 1, "{message}");
}

#[test]
fn the_servers_warnings_are_kept() {
    let (cluster, names) = (Cluster::admin(), isolated());
    let endpoints = Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "Endpoints".into(),
        plural: "endpoints".into(),
        namespaced: true,
    };
    for name in ["a", "b"] {
        let thing = Thing::new(endpoints.clone(), Some("default"), &format!("{name}-{}", names.namespace), json!({}));
        cluster.apply(&thing, &WritePrecondition::Absent).unwrap();
    }
    let warnings = cluster.kube.take_warnings();
    assert!(matches!(warnings.as_slice(), [only] if only.contains("Endpoints is deprecated")), "{warnings:?}");
}

#[test]
fn a_write_whose_answer_is_lost_is_found_by_the_next_run() {
    let cp = control_plane();
    let (proxy, names) = (Proxy::start(cp), isolated());
    let cluster = Cluster::open(&proxy.kubeconfig("admin"));
    let thing = config_map(&names.namespace, json!({"a": "1"}));
    proxy.lose_answer(When::new("PATCH", &names.namespace).nth(1));
    let answer = cluster.apply(&thing, &WritePrecondition::Absent);
    let Err(ApplyError::Unknown(problem)) = answer else { panic!("not unknown: {answer:?}") };
    assert!(problem.message.ends_with("; it is unknown whether the object was written"), "{problem}");
    let live = cluster.live(&thing).expect("it was written");
    assert_eq!(cluster.apply(&thing, &pin(&live)).unwrap().resource_version, live.resource_version);
    // Sent once: a second create would have found the first one's object.
    assert_eq!(proxy.writes().len(), 2);
}

//! A ClusterExtension: what OLM v1 is to install, and what is installed according to its status.
//!
//! Sources: `api/v1/clusterextension_types.go` of operator-controller; the `v1alpha1` of OpenShift 4.16, which has the
//! same fields under other names, one channel, and no selector.

use std::collections::BTreeMap;

use gantry_catalog::resolve::{ExtensionRequest, InstalledBundle, UpgradeConstraints};
use serde_json::Value;

use super::cluster_catalog::GROUP;
use gantry_cluster::Target;
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Resource, Step};

/// The labels that OLM v1 sets on the objects it manages: the kind and the name of their owner.
pub const OWNER_KIND: &str = "olm.operatorframework.io/owner-kind";
/// The label with the name of the extension, on the objects that OLM writes.
pub const OWNER_NAME: &str = "olm.operatorframework.io/owner-name";

/// The versions of the kind, in order of preference.
pub(crate) const VERSIONS: [&str; 2] = ["v1", "v1alpha1"];
/// The kind.
pub const KIND: &str = "ClusterExtension";

/// The specification of a ClusterExtension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Its name.
    pub name: String,
    /// The package, version, channels and constraints to resolve.
    pub wanted: ExtensionRequest,
    /// The `LabelSelector` of catalogs; null for all.
    pub selector: Value,
    /// The namespace that the operator is installed into.
    pub namespace: String,
    /// The ServiceAccount in this namespace that the operator is installed with; empty if none is named.
    pub service_account: String,
    /// `spec.config.inline`: the configuration of the operator; null if absent.
    pub config: Value,
    /// The field that disables OLM's CRD upgrade safety check, if it is set.
    pub safety_off: Option<SafetyOff>,
    /// The paths of these fields.
    pub places: ExtensionFieldPaths,
}

/// The field with which a ClusterExtension disables OLM's CRD upgrade safety check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SafetyOff {
    /// `spec.install.preflight.crdUpgradeSafety.enforcement: None` of v1.
    Enforcement,
    /// `spec.preflight.crdUpgradeSafety.disabled: true` of v1alpha1.
    Disabled,
}

impl SafetyOff {
    fn find(json: &Value) -> Option<SafetyOff> {
        let at = |of: SafetyOff| of.keys().iter().try_fold(json, |value, key| value.get(key));
        match () {
            () if at(SafetyOff::Enforcement).is_some_and(|value| value == "None") => Some(SafetyOff::Enforcement),
            () if at(SafetyOff::Disabled).is_some_and(|value| *value == true) => Some(SafetyOff::Disabled),
            () => None,
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            SafetyOff::Enforcement => &["spec", "install", "preflight", "crdUpgradeSafety", "enforcement"],
            SafetyOff::Disabled => &["spec", "preflight", "crdUpgradeSafety", "disabled"],
        }
    }

    /// The steps to the field.
    pub fn steps(self) -> Vec<Step> {
        self.keys().iter().map(|key| Step::from(*key)).collect()
    }

    /// The field and its value as text, such as `enforcement: None`.
    pub fn to_text(self) -> &'static str {
        match self {
            SafetyOff::Enforcement => "enforcement: None",
            SafetyOff::Disabled => "disabled: true",
        }
    }
}

/// The steps to the fields of one version of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionFieldPaths {
    /// The version `v1`, with the package below `spec.source.catalog`.
    V1,
    /// The version `v1alpha1`, with the package in `spec`.
    V1alpha1,
}

impl ExtensionFieldPaths {
    fn select(self, v1: &[&str], v1alpha1: &[&str]) -> Vec<Step> {
        let steps = if self == ExtensionFieldPaths::V1 { v1 } else { v1alpha1 };
        ["spec"].iter().chain(steps).map(|key| Step::from(*key)).collect()
    }

    /// The name of the package.
    pub fn package(self) -> Vec<Step> {
        self.select(&["source", "catalog", "packageName"], &["packageName"])
    }

    /// The version range.
    pub fn version(self) -> Vec<Step> {
        self.select(&["source", "catalog", "version"], &["version"])
    }

    /// The channels.
    pub fn channels(self) -> Vec<Step> {
        self.select(&["source", "catalog", "channels"], &["channel"])
    }

    /// The upgrade constraint policy.
    pub fn policy(self) -> Vec<Step> {
        self.select(&["source", "catalog", "upgradeConstraintPolicy"], &["upgradeConstraintPolicy"])
    }

    /// The catalog selector.
    pub fn selector(self) -> Vec<Step> {
        self.select(&["source", "catalog", "selector"], &["packageName"])
    }

    /// The name of the ServiceAccount.
    pub fn service_account(self) -> Vec<Step> {
        self.select(&["serviceAccount", "name"], &["serviceAccount", "name"])
    }

    /// The namespace to install into.
    pub fn namespace(self) -> Vec<Step> {
        self.select(&["namespace"], &["installNamespace"])
    }
}

/// What changes in a ClusterExtension of v1alpha1 when it becomes one of v1; `None` for other objects.
///
/// Source: `api/v1/clusterextension_types.go` of operator-controller.
pub fn moved_fields(object: &ObjectRef) -> Option<&'static str> {
    (is_one(object) && object.version() == "v1alpha1").then_some(
        "move the fields of spec: installNamespace to namespace; packageName, version and channel to source: \
         {sourceType: Catalog, catalog: {packageName, version, channels: [CHANNEL]}}; upgradeConstraintPolicy: Ignore \
         becomes SelfCertified and Enforce becomes CatalogProvided, also in source.catalog",
    )
}

/// Whether an object is a ClusterExtension.
pub fn is_one(object: &ObjectRef) -> bool {
    object.kind == KIND && object.group() == GROUP
}

/// A live ClusterExtension, with its installed bundle.
#[derive(Debug, Clone)]
pub struct LiveExtension {
    /// What it requests.
    pub extension: Extension,
    /// What its status says is installed; `None` if nothing is yet.
    pub installed: Option<InstalledBundle>,
}

/// The ClusterExtensions of a target, by name; empty if it does not serve the kind. They are read at the version
/// `first` if it is served, because a folder target reads objects only at the version of their manifest.
///
/// # Errors
/// They cannot be listed, usually because permission is missing.
pub async fn list(target: &Target, first: Option<&str>) -> Result<Vec<LiveExtension>, Problem> {
    let versions: Vec<&str> = first.into_iter().chain(VERSIONS).collect();
    let add = |extensions: &mut BTreeMap<String, LiveExtension>, json: &str| {
        let Ok(value) = serde_json::from_str::<Value>(json) else { return };
        let Some(extension) = Extension::parse_listed(&value) else { return };
        extensions.insert(extension.name.clone(), LiveExtension { extension, installed: installed(&value) });
    };
    let listed: Option<BTreeMap<_, _>> = crate::gather(target, (GROUP, KIND), &versions, add).await?;
    Ok(listed.unwrap_or_default().into_values().collect())
}

/// The API resource of ClusterExtensions at a version.
pub fn resource(version: &str) -> Resource {
    Resource {
        group: GROUP.into(),
        version: version.into(),
        kind: KIND.into(),
        plural: "clusterextensions".into(),
        namespaced: false,
    }
}

impl Extension {
    /// Parses a ClusterExtension; `None` for another kind, and for an extension that is not from a catalog.
    pub fn parse(object: &ObjectRef, json: &Value) -> Option<Extension> {
        if !is_one(object) {
            return None;
        }
        let spec = &json["spec"];
        // A folder target does not convert, so an object of one version may have the fields of the other.
        let (places, source) = match spec["source"]["catalog"].is_object() {
            true => (ExtensionFieldPaths::V1, &spec["source"]["catalog"]),
            false => (ExtensionFieldPaths::V1alpha1, spec),
        };
        let is_elsewhere = spec["source"]["sourceType"].as_str().is_some_and(|kind| kind != "Catalog");
        let package = source["packageName"].as_str().filter(|_| !is_elsewhere)?.to_owned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let channels = match places {
            ExtensionFieldPaths::V1 => source["channels"].as_array().into_iter().flatten().map(text).collect(),
            ExtensionFieldPaths::V1alpha1 => source["channel"].as_str().map(str::to_owned).into_iter().collect(),
        };
        let constraints = match source["upgradeConstraintPolicy"].as_str() {
            Some("SelfCertified" | "Ignore") => UpgradeConstraints::Any,
            _ => UpgradeConstraints::Catalog,
        };
        let namespace = if places == ExtensionFieldPaths::V1 { &spec["namespace"] } else { &spec["installNamespace"] };
        Some(Extension {
            name: object.name.clone(),
            wanted: ExtensionRequest { package, version: text(&source["version"]), channels, constraints },
            selector: if places == ExtensionFieldPaths::V1 { source["selector"].clone() } else { Value::Null },
            namespace: text(namespace),
            service_account: text(&spec["serviceAccount"]["name"]),
            config: spec["config"]["inline"].clone(),
            safety_off: SafetyOff::find(json),
            places,
        })
    }

    /// Like [`Extension::parse`], for a live object from a list. `None` also for one without a name.
    pub(crate) fn parse_listed(json: &Value) -> Option<Extension> {
        let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let object = ObjectRef {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: None,
            name: Some(text("/metadata/name")).filter(|name| !name.is_empty())?,
        };
        Extension::parse(&object, json)
    }

    /// The namespace that the operator is installed into; `None` if the extension names none.
    pub fn install_namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    /// Namespace and name of the ServiceAccount; `None` if the extension does not name both.
    pub fn account(&self) -> Option<(&str, &str)> {
        let name = Some(self.service_account.as_str()).filter(|name| !name.is_empty())?;
        Some((self.install_namespace()?, name))
    }
}

/// The invalid fields of a ClusterExtension: the steps to each and a message. With an API server, the CRD's schema
/// refuses most of them; a target without one has no other validation.
pub fn invalid_fields(object: &ObjectRef, json: &Value) -> Vec<(Vec<Step>, String)> {
    let is_v1 = match (json["spec"]["source"].is_null(), json["spec"]["packageName"].is_null()) {
        (true, false) => false,
        (false, _) => true,
        _ => object.version() != "v1alpha1",
    };
    let source: &[&str] = if is_v1 { &["spec", "source", "catalog"] } else { &["spec"] };
    let mut found = Vec::new();
    let mut look = |path: &[&str], is_right: &dyn Fn(&Value) -> bool, must: &str| {
        let value = path.iter().try_fold(json, |value, key| value.get(key));
        if !is_right(value.unwrap_or(&Value::Null)) {
            let steps: Vec<Step> = path.iter().map(|key| Step::from(*key)).collect();
            found.push((steps, format!("{} {must}", path.join("."))));
        }
    };
    let text = |value: &Value| value.is_null() || value.is_string();
    let named = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    // The CRD requires these fields, but a missing one is not misread here.
    let perhaps_named = |value: &Value| value.is_null() || named(value);
    let field = |name: &'static str| [source, &[name]].concat();
    look(&["spec"], &Value::is_object, "must be an object");
    if is_v1 {
        look(&["spec", "source", "sourceType"], &|value| value.is_null() || value == "Catalog", "must be Catalog");
        look(source, &Value::is_object, "must be an object");
        let texts =
            |value: &Value| value.is_null() || value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
        look(&field("channels"), &texts, "must be a list of strings");
        look(&field("selector"), &is_selector, "must be a label selector: matchLabels with strings, matchExpressions");
        let policy = |value: &Value| value.is_null() || value == "CatalogProvided" || value == "SelfCertified";
        look(&field("upgradeConstraintPolicy"), &policy, "must be CatalogProvided or SelfCertified");
        look(&["spec", "namespace"], &perhaps_named, "must be the name of a namespace");
    } else {
        look(&field("channel"), &text, "must be a string");
        let policy = |value: &Value| value.is_null() || value == "Enforce" || value == "Ignore";
        look(&field("upgradeConstraintPolicy"), &policy, "must be Enforce or Ignore");
        look(&["spec", "installNamespace"], &perhaps_named, "must be the name of a namespace");
    }
    look(&field("packageName"), &named, "must be the name of a package");
    look(&field("version"), &text, "must be a string: in YAML, a version like 3.10 needs quotes");
    found
}

/// Whether the value has the types of a `LabelSelector`. OLM validates the operators.
fn is_selector(value: &Value) -> bool {
    let Value::Object(fields) = value else { return value.is_null() };
    fields.iter().all(|(key, value)| match key.as_str() {
        "matchLabels" => value.as_object().is_some_and(|labels| labels.values().all(Value::is_string)),
        "matchExpressions" => value.as_array().is_some_and(|all| all.iter().all(|one| one["key"].is_string())),
        _ => false,
    })
}

/// The installed bundle according to the status of a live ClusterExtension. The fields of both API versions are tried,
/// because an object of one version may have the fields of the other.
pub fn installed(live: &Value) -> Option<InstalledBundle> {
    let status = &live["status"];
    let bundle =
        [&status["install"]["bundle"], &status["installedBundle"]].into_iter().find(|bundle| bundle.is_object())?;
    let text = |key: &str| bundle[key].as_str().map(str::to_owned);
    Some(InstalledBundle {
        name: text("name").unwrap_or_default(),
        version: text("version").unwrap_or_default(),
        release: text("release").filter(|release| !release.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_extension(version: &str, spec: Value) -> Option<Extension> {
        let api_version = format!("{GROUP}/{version}");
        let object = ObjectRef { api_version, kind: KIND.into(), namespace: None, name: "e".into() };
        Extension::parse(&object, &json!({"spec": spec}))
    }

    #[test]
    fn only_an_extension_of_the_old_version_has_fields_that_move() {
        let object = |version: &str| ObjectRef {
            api_version: format!("{GROUP}/{version}"),
            kind: KIND.into(),
            namespace: None,
            name: "e".into(),
        };
        assert!(moved_fields(&object("v1alpha1")).is_some_and(|moved| moved.contains("installNamespace to namespace")));
        assert_eq!(moved_fields(&object("v1")), None);
    }

    #[test]
    fn both_versions_have_the_same_fields_under_other_names() {
        let v1 = parse_extension(
            "v1",
            json!({"namespace": "ns", "source": {"sourceType": "Catalog", "catalog": {
                "packageName": "p", "version": "1.x", "channels": ["a"], "upgradeConstraintPolicy": "SelfCertified"}}}),
        );
        let v1alpha1 = parse_extension(
            "v1alpha1",
            json!({"installNamespace": "ns", "packageName": "p", "version": "1.x", "channel": "a",
                "upgradeConstraintPolicy": "Ignore"}),
        );
        let (v1, v1alpha1) = (v1.expect("one"), v1alpha1.expect("one"));
        let relabelled = parse_extension("v1", json!({"packageName": "p", "version": "1.x"})).expect("one");
        assert_eq!((relabelled.wanted.version.as_str(), relabelled.places), ("1.x", ExtensionFieldPaths::V1alpha1));
        assert_eq!(v1.wanted.constraints, UpgradeConstraints::Any);
        assert_eq!((&v1.wanted, &v1.namespace), (&v1alpha1.wanted, &v1alpha1.namespace));
        assert_eq!(v1.places.version().len(), 4);
        assert_eq!(v1alpha1.places.version().len(), 2);
    }

    #[test]
    fn a_cluster_extension_without_a_catalog_source_is_ignored() {
        assert_eq!(parse_extension("v1", json!({"source": {"sourceType": "Bundle"}})), None);
        assert_eq!(parse_extension("v1", json!({"source": {"catalog": {}}})), None);
        assert_eq!(parse_extension("v1", json!({"source": {"sourceType": "Bundle"}, "packageName": "p"})), None);
    }

    #[test]
    fn a_wrong_type_is_reported_with_its_field() {
        let said = |version: &str, spec: Value| -> Vec<String> {
            let object = ObjectRef {
                api_version: format!("{GROUP}/{version}"),
                kind: KIND.into(),
                namespace: None,
                name: "e".into(),
            };
            invalid_fields(&object, &json!({"spec": spec})).into_iter().map(|(_, message)| message).collect()
        };
        let v1 = |catalog: Value| json!({"namespace": "ns", "source": {"sourceType": "Catalog", "catalog": catalog}});
        assert_eq!(
            said("v1", v1(json!({"packageName": "p", "version": "1.x", "channels": ["a"], "selector": {}}))),
            [""; 0]
        );
        assert_eq!(said("v1alpha1", json!({"packageName": "p", "installNamespace": "ns"})), [""; 0]);
        assert_eq!(said("v1", json!({"source": {"catalog": {"packageName": "p"}}})), [""; 0]);
        assert_eq!(said("v1", json!({"namespace": "", "source": {"catalog": {"packageName": "p"}}})).len(), 1);
        for (catalog, field) in [
            (json!({"packageName": "p", "version": 3.99}), "version must be a string"),
            (json!({"packageName": 5}), "packageName must be"),
            (json!({}), "packageName must be"),
            (json!({"packageName": "p", "channels": "zz"}), "channels must be a list"),
            (json!({"packageName": "p", "channels": [5]}), "channels must be a list"),
            (json!({"packageName": "p", "selector": 5}), "selector must be"),
            (json!({"packageName": "p", "selector": {"foo": "bar"}}), "selector must be"),
            (json!({"packageName": "p", "selector": {"matchLabels": {"a": 5}}}), "selector must be"),
            (json!({"packageName": "p", "upgradeConstraintPolicy": "Foo"}), "upgradeConstraintPolicy must be"),
        ] {
            let said = said("v1", v1(catalog.clone()));
            assert!(
                matches!(&said[..], [one] if one.starts_with(&format!("spec.source.catalog.{field}"))),
                "{catalog}: {said:?}"
            );
        }
        for spec in [json!(null), json!(5), json!({"source": 5}), json!({"source": {"sourceType": "Image"}})] {
            assert!(!said("v1", spec.clone()).is_empty(), "{spec}");
        }
        let spec = json!({"packageName": "p", "installNamespace": "ns", "channel": ["a"]});
        assert_eq!(said("v1alpha1", spec), ["spec.channel must be a string"]);
    }

    #[test]
    fn the_status_says_what_is_installed() {
        for status in [
            json!({"install": {"bundle": {"name": "p.v1.0.0", "version": "1.0.0"}}}),
            json!({"installedBundle": {"name": "p.v1.0.0", "version": "1.0.0"}}),
        ] {
            let found = installed(&json!({"status": status})).expect("a bundle");
            assert_eq!((found.name.as_str(), found.version.as_str(), found.release), ("p.v1.0.0", "1.0.0", None));
        }
        assert_eq!(installed(&json!({"status": {"conditions": []}})), None);
    }

    #[test]
    fn both_versions_have_a_namespace_an_account_and_the_safety_switch() {
        let v1 = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "e"}, "spec": {"namespace": "ns", "serviceAccount": {"name": "sa"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}},
            "install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}}}});
        let listed = |json: &Value| Extension::parse_listed(json).expect("a ClusterExtension");
        let said = |json: &Value| {
            let extension = listed(json);
            let account = extension.account().map(|(namespace, name)| format!("{namespace}/{name}"));
            (extension.name.clone(), extension.wanted.package.clone(), account, extension.safety_off)
        };
        let expected = |off| ("e".to_owned(), "p".to_owned(), Some("ns/sa".to_owned()), off);
        assert_eq!(said(&v1), expected(Some(SafetyOff::Enforcement)));
        let mut strict = v1;
        strict["spec"]["install"]["preflight"]["crdUpgradeSafety"]["enforcement"] = "Strict".into();
        assert_eq!(said(&strict), expected(None));
        let mut alpha = json!({"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtension",
            "metadata": {"name": "e"}, "spec": {"packageName": "p", "installNamespace": "ns",
            "serviceAccount": {"name": "sa"}, "preflight": {"crdUpgradeSafety": {"disabled": true}}}});
        assert_eq!(said(&alpha), expected(Some(SafetyOff::Disabled)));
        alpha["spec"]["preflight"]["crdUpgradeSafety"]["disabled"] = false.into();
        assert_eq!(said(&alpha), expected(None));
        // A folder target lists an object with v1alpha1 fields at v1.
        alpha["apiVersion"] = "olm.operatorframework.io/v1".into();
        assert_eq!(said(&alpha), expected(None));
        alpha["spec"]["serviceAccount"] = Value::Null;
        assert_eq!(listed(&alpha).account(), None);
        for other in [json!(""), json!({}), json!([]), json!({"apiVersion": "v1", "kind": "ClusterExtension"})] {
            assert_eq!(Extension::parse_listed(&other), None, "{other}");
        }
    }
}

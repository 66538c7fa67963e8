//! The ClusterCatalogs of a cluster, which OLM v1 selects from, and the status that catalogd reports for them.
//!
//! They are parsed as untyped JSON: `v1alpha1` had different fields in each release, and all of them are supported.
//! Source: `api/v1/clustercatalog_types.go` of operator-controller; `api/core/v1alpha1/clustercatalog_types.go` of
//! catalogd.

use std::collections::BTreeMap;

use serde_json::Value;

use gantry_cluster::Target;
use gantry_cluster::service::ServiceUrl;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::text;

/// The API group of OLM v1.
pub const GROUP: &str = "olm.operatorframework.io";
/// The kind of catalogs.
pub const KIND: &str = "ClusterCatalog";
/// Its plural name.
pub const PLURAL: &str = "clustercatalogs";
/// The label with the catalog's name that catalogd sets on each ClusterCatalog.
pub const NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// The URL at which catalogd serves catalogs in a default installation.
pub const USUAL_BASE: &str = "https://catalogd-service.olmv1-system.svc/catalogs";

/// The versions of the kind, in order of preference.
const VERSIONS: [&str; 2] = ["v1", "v1alpha1"];
/// The maximum length of a message of catalogd that is shown, in characters.
const MOST_WORDS: usize = 500;

/// The parts of a ClusterCatalog that determine what OLM installs from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterCatalog {
    /// Its name.
    pub name: String,
    /// The labels that selectors of ClusterExtensions match, including [`NAME_LABEL`].
    pub labels: BTreeMap<String, String>,
    /// If several catalogs have a package, the one with the highest priority is used.
    pub priority: i32,
    /// Whether packages can be installed from it.
    pub available: bool,
    /// The cluster-internal URL of the catalog's content; `None` before catalogd has unpacked it.
    pub url: Option<String>,
    /// Whether catalogd serves its content.
    pub serving: Serving,
}

/// Whether catalogd serves the content of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serving {
    /// It does.
    Yes,
    /// It does not.
    No {
        /// The transition time of the condition.
        since: Option<String>,
        /// The reason and message of catalogd, on one line and safe for a terminal.
        why: String,
    },
    /// The object has no status, like a manifest.
    Unknown,
}

impl ClusterCatalog {
    /// Parses a ClusterCatalog; `None` for an object of another kind, or without a name.
    pub fn parse(json: &str) -> Option<ClusterCatalog> {
        let object: Value = serde_json::from_str(json).ok()?;
        let group = object["apiVersion"].as_str()?.split_once('/')?.0;
        if (group, object["kind"].as_str()?) != (GROUP, KIND) {
            return None;
        }
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let name = metadata["name"].as_str()?.to_owned();
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let mut labels: BTreeMap<String, String> =
            labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        // catalogd adds this label when it first sees the object, and corrects it.
        labels.insert(NAME_LABEL.to_owned(), name.clone());
        // Some releases of v1alpha1 use the second field.
        let available = spec["availabilityMode"] != "Unavailable" && spec["availability"] != "Disabled";
        Some(ClusterCatalog {
            labels,
            priority: spec["priority"].as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(0),
            available,
            url: url_of(status),
            serving: serving_of(status),
            name,
        })
    }
}

impl ClusterCatalog {
    /// The Service that serves its content.
    ///
    /// # Errors
    /// catalogd does not serve it, or its URL is not that of a Service of the cluster.
    pub fn service(&self) -> std::result::Result<ServiceUrl, Problem> {
        let name = &self.name;
        let help = format!("name its content: --catalog {name}=PATH");
        if let Serving::No { since, why } = &self.serving {
            let since = since.as_ref().map_or(String::new(), |since| format!(" since {since}"));
            let problem = Problem::new(format!("the catalog {name} is not being served{since}: {why}"));
            return Err(problem.help(format!("kubectl describe clustercatalog {name} shows more")));
        }
        let Some(url) = &self.url else {
            return Err(Problem::new(format!("the catalog {name} has no URL in its status")).help(help));
        };
        ServiceUrl::parse(url).ok_or_else(|| {
            let problem =
                format!("the catalog {name} is served at {}, which is not a Service of the cluster", harmless(url));
            Problem::new(problem).help(help)
        })
    }
}

/// `urls.base` with the path of the whole content. `contentURL` of v1alpha1 already includes the path.
fn url_of(status: &Value) -> Option<String> {
    match status["urls"]["base"].as_str().filter(|base| !base.is_empty()) {
        Some(base) => Some(format!("{}/api/v1/all", base.trim_end_matches('/'))),
        None => status["contentURL"].as_str().filter(|url| !url.is_empty()).map(str::to_owned),
    }
}

fn serving_of(status: &Value) -> Serving {
    let conditions = status["conditions"].as_array();
    let condition = |name: &str| conditions.and_then(|all| all.iter().find(|condition| condition["type"] == name));
    // Releases of v1alpha1 without Serving have Unpacked instead, and serve unpacked content.
    match condition("Serving").or_else(|| condition("Unpacked")) {
        Some(serving) if serving["status"] == "True" => Serving::Yes,
        Some(serving) => {
            // Progressing has the reason why there is no content, for example that the image cannot be pulled.
            let hindered = condition("Progressing").filter(|progressing| {
                matches!(progressing["reason"].as_str(), Some("Retrying" | "Blocked")) && progressing["message"] != ""
            });
            let since = serving["lastTransitionTime"].as_str();
            Serving::No { since: since.map(harmless), why: words_of(hindered.unwrap_or(serving)) }
        }
        None if status.is_null() => Serving::Unknown,
        None => Serving::No { since: None, why: NOT_SEEN.to_owned() },
    }
}

const NOT_SEEN: &str = "it has no Serving condition yet; is catalogd running?";

/// Reason and message of a condition: `Retrying: source catalog content: no such image`.
fn words_of(condition: &Value) -> String {
    let words = ["reason", "message"].iter().filter_map(|key| condition[key].as_str());
    let words: Vec<&str> = words.filter(|words| !words.is_empty()).collect();
    match harmless(&words.join(": ")) {
        empty if empty.is_empty() => "no reason given".to_owned(),
        words => words,
    }
}

fn harmless(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    text::cut(&text::sanitize(&line), MOST_WORDS).into_owned()
}

/// The ClusterCatalogs of a target, by name; `None` if it does not serve the kind.
///
/// # Errors
/// They cannot be listed, usually because permission is missing.
pub async fn list(target: &Target) -> Result<Option<Vec<ClusterCatalog>>> {
    let add = |catalogs: &mut BTreeMap<String, ClusterCatalog>, json: &str| {
        let Some(mut catalog) = ClusterCatalog::parse(json) else { return };
        if target.is_server() && matches!(catalog.serving, Serving::Unknown) {
            catalog.serving = Serving::No { since: None, why: NOT_SEEN.to_owned() };
        }
        catalogs.insert(catalog.name.clone(), catalog);
    };
    let listed: Option<BTreeMap<_, _>> =
        crate::gather(target, (GROUP, KIND), &VERSIONS, add).await.map_err(Error::failed)?;
    Ok(listed.map(|catalogs| catalogs.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use gantry_cluster::dir::DirTarget;

    fn parse_catalog(object: &Value) -> ClusterCatalog {
        ClusterCatalog::parse(&object.to_string()).expect("a ClusterCatalog")
    }

    fn with_status(status: Value) -> ClusterCatalog {
        let mut object =
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "a"}});
        if !status.is_null() {
            object["status"] = status;
        }
        parse_catalog(&object)
    }

    #[test]
    fn a_catalog_with_a_serving_condition_is_served() {
        let found = parse_catalog(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "operatorhubio", "labels": {"tier": "gold", (NAME_LABEL): "wrong"}},
            "spec": {"priority": -100, "availabilityMode": "Available"},
            "status": {
                "conditions": [
                    {"type": "Progressing", "status": "True", "reason": "Succeeded", "message": "ok"},
                    {"type": "Serving", "status": "True", "reason": "Available", "message": "ok"},
                ],
                "urls": {"base": "https://catalogd-service.olmv1-system.svc/catalogs/operatorhubio"},
            },
        }));
        let labels = [(NAME_LABEL, "operatorhubio"), ("tier", "gold")];
        assert_eq!(
            found,
            ClusterCatalog {
                name: "operatorhubio".into(),
                labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
                priority: -100,
                available: true,
                url: Some("https://catalogd-service.olmv1-system.svc/catalogs/operatorhubio/api/v1/all".into()),
                serving: Serving::Yes,
            }
        );
    }

    #[test]
    fn a_manifest_has_the_defaults_of_the_api() {
        let found = with_status(Value::Null);
        assert_eq!((found.priority, found.available, found.url, found.serving), (0, true, None, Serving::Unknown));
        assert_eq!(found.labels.get(NAME_LABEL).map(String::as_str), Some("a"));
    }

    #[test]
    fn v1alpha1_names_its_fields_differently() {
        let mut object = json!({
            "apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterCatalog", "metadata": {"name": "a"},
            "spec": {"availability": "Disabled"},
            "status": {
                "contentURL": "http://catalogd-catalogserver.olmv1-system.svc/catalogs/a/all.json",
                "conditions": [{"type": "Unpacked", "status": "True", "reason": "UnpackSuccessful"}],
            },
        });
        let found = parse_catalog(&object);
        let url = "http://catalogd-catalogserver.olmv1-system.svc/catalogs/a/all.json";
        assert_eq!((found.available, found.url.as_deref(), found.serving), (false, Some(url), Serving::Yes));
        object["status"]["conditions"][0] = json!({"type": "Unpacked", "status": "False", "reason": "UnpackFailed"});
        assert_eq!(parse_catalog(&object).serving, Serving::No { since: None, why: "UnpackFailed".into() });
    }

    #[test]
    fn the_reason_for_not_serving_is_taken_from_the_conditions() {
        let since = "2026-08-21T10:00:00Z";
        let mut status = json!({"conditions": [
            {"type": "Serving", "status": "False", "reason": "Unavailable", "message": "", "lastTransitionTime": since},
        ]});
        let no = |why: &str| Serving::No { since: Some(since.into()), why: why.into() };
        assert_eq!(with_status(status.clone()).serving, no("Unavailable"));
        let message = "source catalog content: \u{1b}[31m\nno such image";
        let progressing = json!({"type": "Progressing", "status": "True", "reason": "Retrying", "message": message});
        status["conditions"].as_array_mut().unwrap().push(progressing);
        let expected = no("Retrying: source catalog content: \\u{1b}[31m no such image");
        assert_eq!(with_status(status).serving, expected);
        assert_eq!(with_status(json!({})).serving, Serving::No { since: None, why: NOT_SEEN.into() });
    }

    #[test]
    fn objects_that_are_not_cluster_catalogs_are_ignored() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"a"}}"#,
            r#"{"apiVersion":"example.com/v1","kind":"ClusterCatalog","metadata":{"name":"a"}}"#,
            r#"{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterCatalog","metadata":{}}"#,
        ] {
            assert_eq!(ClusterCatalog::parse(text), None, "{text}");
        }
        let odd = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "a", "labels": [1]}, "spec": {"priority": 1e40}, "status": {"urls": 7, "conditions": "x"}});
        assert_eq!((parse_catalog(&odd).priority, parse_catalog(&odd).url), (0, None));
    }

    const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
        metadata: {name: clustercatalogs.olm.operatorframework.io}\nspec:\n  group: olm.operatorframework.io\n  \
        scope: Cluster\n  names: {plural: clustercatalogs, kind: ClusterCatalog}\n  versions:\n  \
        - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";

    fn catalog(version: &str, name: &str) -> String {
        format!(
            "---\napiVersion: olm.operatorframework.io/{version}\nkind: ClusterCatalog\nmetadata: {{name: {name}}}\n"
        )
    }

    async fn listed(folder: &Path) -> Option<Vec<ClusterCatalog>> {
        list(&Target::Dir(DirTarget::open(folder).unwrap())).await.unwrap()
    }

    #[tokio::test]
    async fn a_folder_lists_its_catalogs_by_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(listed(folder.path()).await, Some(Vec::new()));
        fs::write(folder.path().join("catalogs.yaml"), catalog("v1", "b") + &catalog("v1", "a")).unwrap();
        let catalogs = listed(folder.path()).await.unwrap();
        let names: Vec<(&str, &Serving)> =
            catalogs.iter().map(|catalog| (catalog.name.as_str(), &catalog.serving)).collect();
        assert_eq!(names, [("a", &Serving::Unknown), ("b", &Serving::Unknown)]);
    }

    #[tokio::test]
    async fn v1alpha1_is_listed_if_v1_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("crd.yaml"), CRD.replace("name: v1,", "name: v1alpha1,")).unwrap();
        let status = "status: {contentURL: 'http://a.b.svc/catalogs/a/all.json'}\n";
        fs::write(folder.path().join("catalog.yaml"), catalog("v1alpha1", "a") + status).unwrap();
        let catalogs = listed(folder.path()).await.unwrap();
        assert_eq!(catalogs[0].url.as_deref(), Some("http://a.b.svc/catalogs/a/all.json"));
    }
}

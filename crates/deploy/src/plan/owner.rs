//! Objects that another tool owns: which labels and annotations mark them, and how a deploy treats them.
//!
//! A tool that owns an object writes it again, and deletes it when the object leaves its own manifests. So an object
//! with such a mark is written only with `--take-ownership`, which also removes the marks.
//!
//! Sources: kapp's label `kapp.k14s.io/app`; the label of an ApplySet's members
//! (<https://kep.k8s.io/3659>); the labels that Flux's kustomize-controller and helm-controller set; Argo CD's tracking
//! annotation, which names the object that it was written for; Helm's annotations of a release. Argo CD marks no CRD
//! (`IsCRD` in its `reposerver/repository/repository.go`): there its field manager says who owns it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use gantry_schema::scan;
use serde::Deserialize;
use wildmatch::WildMatch;

use super::{Action, Change, Plan};
use crate::app::PART_OF;
use crate::app::kapp::{self, KAPP_APP};
use gantry_core::managed_fields::ManagerEntryHead;
use gantry_core::manifest::Manifest;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::resource::{HELM_NAMESPACE, HELM_RELEASE, ObjectRef, RawObject};
use gantry_core::text::{cut, sanitize, shell_word};

/// The field manager of Argo CD.
const ARGO_MANAGER: &str = "argocd-controller";
const ARGO_TRACKING: &str = "argocd.argoproj.io/tracking-id";
/// Name and namespace of the Flux object that applies an object.
const FLUX: [(&str, &str, &str); 2] = [
    ("Kustomization", "kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"),
    ("HelmRelease", "helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"),
];

/// The maximum number of objects of one owner that are named without -v.
const NAMED: usize = 5;

/// The tool that owns an object, and its name for the set of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The value of the label. It is not the app's name.
    Kapp(String),
    /// The identifier of the set.
    ApplySet(String),
    /// The name of the app, and the namespace of its record.
    GantryApp(String, String),
    /// The kind of its object, namespace and name.
    Flux(&'static str, String, String),
    /// The name of the Application; empty if it is not known.
    ArgoCd(String),
    /// The name of the release and its namespace.
    Helm(String, String),
}

/// Labels and annotations that make an object the owner's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerMarks {
    /// The keys of the labels.
    pub labels: Vec<&'static str>,
    /// The keys of the annotations.
    pub annotations: Vec<&'static str>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| cut(&sanitize(text), 100).into_owned();
        let place = |namespace: &str| match namespace {
            "" => String::new(),
            namespace => format!(" in namespace {}", shown(namespace)),
        };
        match self {
            Owner::Kapp(id) => write!(f, "a kapp app ({KAPP_APP}: {})", shown(id)),
            Owner::ApplySet(id) => write!(f, "another ApplySet ({})", shown(id)),
            Owner::GantryApp(name, namespace) => write!(f, "gantry's app {}{}", shown(name), place(namespace)),
            Owner::Flux(kind, name, namespace) => write!(f, "the Flux {kind} {}{}", shown(name), place(namespace)),
            Owner::ArgoCd(app) if app.is_empty() => f.write_str("an Argo CD application"),
            Owner::ArgoCd(app) => write!(f, "the Argo CD application {}", shown(app)),
            Owner::Helm(name, namespace) => write!(f, "the Helm release {}{}", shown(name), place(namespace)),
        }
    }
}

impl Owner {
    /// What the tool does with objects (`them`, or `it`) that another one takes over.
    fn consequence(&self, them: &str) -> String {
        let leave = if them == "it" { "it leaves" } else { "they leave" };
        match self {
            Owner::Kapp(_) => format!("kapp deletes {them} with its app"),
            Owner::ApplySet(_) => format!("the tool of that ApplySet prunes {them}"),
            Owner::GantryApp(name, _) => format!("a deploy of {name} stops at {them} until {leave} its manifests"),
            Owner::Flux(..) => format!("Flux writes {them} again until {leave} its source"),
            Owner::ArgoCd(_) => format!("Argo CD writes {them} again until {leave} its source"),
            Owner::Helm(..) => format!("Helm changes {them} with its next upgrade and deletes {them} with its release"),
        }
    }

    /// The tool and its field manager, if it writes what a repository has and so can be checked before it does.
    fn writes_again_as(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Owner::Flux("HelmRelease", ..) => Some(("Flux", "helm-controller")),
            Owner::Flux(..) => Some(("Flux", "kustomize-controller")),
            Owner::ArgoCd(_) => Some(("Argo CD", ARGO_MANAGER)),
            _ => None,
        }
    }

    /// The marks to remove when the object is taken over.
    pub fn marks(&self) -> OwnerMarks {
        match self {
            Owner::Kapp(_) => OwnerMarks { labels: kapp::LABELS.to_vec(), annotations: kapp::ANNOTATIONS.to_vec() },
            Owner::ApplySet(_) | Owner::GantryApp(..) => OwnerMarks { labels: vec![PART_OF], annotations: Vec::new() },
            Owner::Flux(kind, ..) => OwnerMarks {
                labels: FLUX
                    .iter()
                    .filter(|(of, ..)| of == kind)
                    .flat_map(|(_, name, space)| [*name, *space])
                    .collect(),
                annotations: Vec::new(),
            },
            Owner::ArgoCd(_) => OwnerMarks { labels: Vec::new(), annotations: vec![ARGO_TRACKING] },
            Owner::Helm(..) => OwnerMarks { labels: Vec::new(), annotations: vec![HELM_RELEASE, HELM_NAMESPACE] },
        }
    }
}

/// The string value of a label or annotation. The server accepts only strings.
type BorrowedMetadataStrings<'a> = Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>;

#[derive(Deserialize, Default)]
struct OwnershipMetadata<'a> {
    #[serde(borrow, default)]
    labels: BorrowedMetadataStrings<'a>,
    #[serde(borrow, default)]
    annotations: BorrowedMetadataStrings<'a>,
}

impl OwnershipMetadata<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        Some(self.labels.as_ref()?.get(key)?)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        Some(self.annotations.as_ref()?.get(key)?)
    }

    fn owner(&self, object: &ObjectRef, app: Option<&str>) -> Option<Owner> {
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        if let Some(id) = self.label(KAPP_APP) {
            return Some(Owner::Kapp(id.to_owned()));
        }
        if let Some(id) = self.label(PART_OF).filter(|id| Some(*id) != app) {
            return Some(Owner::ApplySet(id.to_owned()));
        }
        for (kind, name, namespace) in FLUX {
            if let Some(name) = self.label(name) {
                return Some(Owner::Flux(kind, name.to_owned(), text(self.label(namespace))));
            }
        }
        if let Some(app) = self.annotation(ARGO_TRACKING).and_then(|id| tracked(id, object)) {
            return Some(Owner::ArgoCd(app.to_owned()));
        }
        let release = self.annotation(HELM_RELEASE)?;
        Some(Owner::Helm(release.to_owned(), text(self.annotation(HELM_NAMESPACE))))
    }
}

/// The application of a tracking annotation, `APP:GROUP/KIND:NAMESPACE/NAME`. A copy that carries the annotation of its
/// original is not tracked.
fn tracked<'a>(id: &'a str, object: &ObjectRef) -> Option<&'a str> {
    let (app, rest) = id.split_once(':')?;
    let (kind, name) = rest.split_once(':')?;
    // Argo CD also writes the namespace of its destination for cluster-scoped objects.
    let is_same = kind.split_once('/') == Some((object.group(), &object.kind))
        && name.rsplit_once('/').is_some_and(|(namespace, name)| {
            name == object.name && object.namespace.as_deref().is_none_or(|own| own == namespace)
        });
    is_same.then_some(app)
}

/// The owner of the live object other than the ApplySet `app`, and whether the object is in that set. A mark that the
/// manifest sets itself does not count.
fn find_owner(object: &ObjectRef, live: &RawObject, desired: &RawObject, app: Option<&str>) -> (Option<Owner>, bool) {
    let json = live.json();
    let metadata = metadata(&json);
    let is_member = app.is_some() && metadata.label(PART_OF) == app;
    let is_argo_crd = || object.is_crd() && !is_member && is_written_by(&json, ARGO_MANAGER);
    let owner = metadata.owner(object, app).or_else(|| is_argo_crd().then(|| Owner::ArgoCd(String::new())));
    let sets_it = |owner: &Owner| self::metadata(&desired.json()).owner(object, app).as_ref() == Some(owner);
    (owner.filter(|owner| !sets_it(owner)), is_member)
}

/// Whether a field manager owns fields of the object itself.
fn is_written_by(json: &str, manager: &str) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct Managers<'a> {
        #[serde(borrow, default)]
        managed_fields: Vec<ManagerEntryHead<'a>>,
    }
    let metadata = scan::member(json, "metadata").and_then(|text| serde_json::from_str::<Managers<'_>>(text).ok());
    let entries = metadata.unwrap_or_default().managed_fields;
    entries.iter().any(|entry| entry.manager == manager && entry.subresource.is_empty())
}

/// The other tool that owns an object which was created after the plan was built.
pub(crate) fn of_created(change: &Change, live: &RawObject) -> Option<Owner> {
    let Manifest { object, raw, .. } = &change.desired;
    let json = raw.json();
    find_owner(object, live, raw, metadata(&json).label(PART_OF)).0
}

/// The marks of an object; none if it cannot be parsed.
fn metadata(json: &str) -> OwnershipMetadata<'_> {
    scan::member(json, "metadata").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Which objects are taken over from the tools that own them: patterns of `KIND/NAME`, in which `*` matches any
/// characters and `?` one. A kind is written as in reports (`deployment.apps/web`).
#[derive(Debug, Default)]
pub struct TakeoverPatterns {
    patterns: Vec<WildMatch>,
    /// The value of the label of the app of kapp that is taken over as a whole.
    kapp: Option<String>,
    drops_kapp_selector: bool,
}

impl TakeoverPatterns {
    /// Patterns of `--take-ownership`, in which `*` and `?` are wildcards.
    pub fn new(patterns: &[String]) -> Self {
        let patterns = patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
        TakeoverPatterns { patterns, ..TakeoverPatterns::default() }
    }

    /// The same; with `drops`, Services and PodDisruptionBudgets of kapp lose the label of its app from their
    /// selectors.
    pub fn dropping_kapp_selector(self, drops: bool) -> Self {
        TakeoverPatterns { drops_kapp_selector: drops, ..self }
    }

    /// The same, with all of the app of kapp whose members have this label.
    pub fn with_kapp(self, id: Option<&str>) -> Self {
        TakeoverPatterns { kapp: id.map(str::to_owned), ..self }
    }

    /// Whether the owner's objects are taken over together, and released together at the end.
    fn takes_all_of(&self, owner: Option<&Owner>) -> bool {
        matches!((owner, &self.kapp), (Some(Owner::Kapp(id)), Some(taken)) if id == taken)
    }

    /// See [`super::kapp_labels`].
    pub fn drops_kapp_selector(&self) -> bool {
        self.drops_kapp_selector
    }

    fn takes(&self, object: &ObjectRef) -> bool {
        let name = ObjectRef { namespace: None, ..object.clone() }.to_string();
        self.patterns.iter().any(|pattern| pattern.matches(&name))
    }
}

/// Sets the owner of each change with a live object, and sets [`Action::Adopt`] for those that are taken over.
pub fn find(changes: &mut [Change], taken: &TakeoverPatterns, app: Option<&str>) {
    let looks = |change: &Change| match change.action {
        // For objects of bundles OLM decides.
        _ if change.desired.bundle.is_some() => false,
        Action::Update => true,
        // It is not written, unless its marks have to be removed.
        Action::Unchanged => !taken.patterns.is_empty() || taken.kapp.is_some(),
        _ => false,
    };
    let looked_at: Vec<usize> = (0..changes.len()).filter(|index| looks(&changes[*index])).collect();
    let look = |index: &usize| {
        let change = &changes[*index];
        let Some(live) = &change.live else { return (None, false) };
        let (owner, is_member) = find_owner(&change.desired.object, &live.raw, &change.desired.raw, app);
        // The manifest has the app's label, so an object without it is never unchanged.
        let joins = owner.is_none() && app.is_some() && !is_member;
        (owner, joins && change.action == Action::Update)
    };
    let found = in_parallel(&looked_at, look);
    for (index, (owner, joins)) in looked_at.into_iter().zip(found) {
        let change = &mut changes[index];
        if taken.takes_all_of(owner.as_ref()) {
            (change.action, change.kapp.joins, change.kapp.seized) = (Action::Adopt, true, true);
            continue;
        }
        change.owner = owner.map(Box::new);
        if joins || change.owner.is_some() && taken.takes(&change.desired.object) {
            change.action = Action::Adopt;
        }
    }
}

/// Why a deploy does not write the objects of another tool: one problem for each owner, which names only the first
/// objects unless it is `verbose`.
pub fn refused(plan: &Plan, verbose: bool) -> Vec<Problem> {
    let mut owned: BTreeMap<&Owner, Vec<&Change>> = BTreeMap::new();
    for change in plan.changes.iter().filter(|change| change.action == Action::Update) {
        if let Some(owner) = change.owner.as_deref() {
            owned.entry(owner).or_default().push(change);
        }
    }
    let problem = |(owner, changes): (&Owner, Vec<&Change>)| {
        let first = changes[0];
        let named = if verbose { changes.len() } else { NAMED };
        let mut names: Vec<String> =
            changes.iter().take(named).map(|change| change.desired.object.to_string()).collect();
        if let Some(more) = changes.len().checked_sub(named).filter(|more| *more > 0) {
            names.push(format!("… and {more} more (-v lists all)"));
        }
        let (belong, them) = if changes.len() == 1 { ("belongs", "it") } else { ("belong", "them") };
        let message = format!("OwnedByOther: {} {belong} to {owner}, and would change", names.join(", "));
        let taken = match &changes[..] {
            [only] => ObjectRef { namespace: None, ..(*only.desired.object).clone() }.to_string(),
            _ => "'*'".to_owned(),
        };
        let help = format!(
            "change {them} where that tool reads {them}, or take {them} over with --take-ownership={taken}; {} \
             unless you make it release {them} first",
            owner.consequence(them)
        );
        let help = match owner {
            Owner::GantryApp(name, namespace) => {
                format!("deploy with -a {name} --app-namespace {namespace}; or {help}")
            }
            Owner::Kapp(_) => format!("{help}. To take over the whole kapp app: --app=NAME --from-kapp=NAME"),
            Owner::Helm(name, namespace) => {
                let flags = [("--release", name), ("-n", namespace)].into_iter().filter(|(_, value)| !value.is_empty());
                let flags = flags.map(|(flag, value)| format!(" {flag} {}", shell_word(&sanitize(value))));
                format!("{help}. To foretell helm upgrade: gantry check --as-helm{}", flags.collect::<String>())
            }
            _ => match owner.writes_again_as() {
                Some((tool, manager)) => format!(
                    "{help}. To check what {tool} is going to write: gantry check --take-ownership \
                     --field-manager={manager} --force-conflicts"
                ),
                None => help,
            },
        };
        Problem::new(message).at(first.desired.origin.location()).help(help)
    };
    owned.into_iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn web() -> ObjectRef {
        ObjectRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("prod".into()),
            name: "web".into(),
        }
    }

    fn owner(live: serde_json::Value, desired: serde_json::Value, app: Option<&str>) -> Option<Owner> {
        let raw = |metadata| RawObject::from_value(&json!({ "metadata": metadata }));
        find_owner(&web(), &raw(live), &raw(desired), app).0
    }

    #[test]
    fn each_tool_is_known_by_its_marks() {
        let label = |key: &str, value: &str| json!({"labels": {key: value, "app": "web"}});
        let annotation = |key: &str, value: &str| json!({"annotations": {key: value, "a": "b"}});
        let none = || json!({"name": "web"});
        assert_eq!(owner(label(KAPP_APP, "17"), none(), None), Some(Owner::Kapp("17".into())));
        assert_eq!(owner(label(PART_OF, "set"), none(), None), Some(Owner::ApplySet("set".into())));
        assert_eq!(owner(label(PART_OF, "set"), none(), Some("set")), None);
        for (kind, name, namespace) in FLUX {
            let live = json!({"labels": {name: "apps", namespace: "flux-system"}});
            assert_eq!(owner(live, none(), None), Some(Owner::Flux(kind, "apps".into(), "flux-system".into())));
        }
        assert_eq!(owner(annotation(HELM_RELEASE, "web"), none(), None), Some(Owner::Helm("web".into(), "".into())));
        assert_eq!(owner(none(), none(), None), None);
        assert_eq!(owner(json!({"labels": null, "annotations": {}}), none(), None), None);
    }

    #[test]
    fn argo_cd_tracks_only_the_object_that_the_annotation_names() {
        let tracked = |id: &str| owner(json!({"annotations": {ARGO_TRACKING: id}}), json!({}), None);
        assert_eq!(tracked("shop:apps/Deployment:prod/web"), Some(Owner::ArgoCd("shop".into())));
        for other in
            ["shop:apps/Deployment:prod/api", "shop:apps/ReplicaSet:prod/web", "shop:apps/Deployment:x/web", "x"]
        {
            assert_eq!(tracked(other), None, "{other}");
        }
    }

    #[test]
    fn a_crd_that_argo_cd_wrote_is_its_own_without_a_mark() {
        let crd = ObjectRef::crd("shops.example.com");
        let entry = |manager: &str, subresource: &str| json!({"manager": manager, "subresource": subresource});
        let owner = |object: &ObjectRef, entry: serde_json::Value, app: Option<&str>| {
            let live = json!({"metadata": {"labels": {PART_OF: "set"}, "managedFields": [entry]}});
            find_owner(object, &RawObject::from_value(&live), &RawObject::from_value(&json!({})), app).0
        };
        let unmarked = |entry: serde_json::Value| {
            let live = json!({"metadata": {"managedFields": [{"manager": "kubectl"}, entry]}});
            find_owner(&crd, &RawObject::from_value(&live), &RawObject::from_value(&json!({})), None).0
        };
        assert_eq!(unmarked(entry(ARGO_MANAGER, "")), Some(Owner::ArgoCd(String::new())));
        assert_eq!(unmarked(entry(ARGO_MANAGER, "status")), None);
        assert_eq!(unmarked(entry("other", "")), None);
        // A member of the app was taken over.
        assert_eq!(owner(&crd, entry(ARGO_MANAGER, ""), Some("set")), None);
        let live = RawObject::from_value(&json!({"metadata": {"managedFields": [entry(ARGO_MANAGER, "")]}}));
        assert_eq!(find_owner(&web(), &live, &RawObject::from_value(&json!({})), None).0, None);
    }

    #[test]
    fn a_mark_of_a_tool_that_the_manifest_sets_too_is_not_foreign() {
        let mark = |name: &str| json!({"annotations": {HELM_RELEASE: name}});
        assert_eq!(owner(mark("web"), mark("web"), None), None);
        assert!(owner(mark("web"), mark("api"), None).is_some());
    }

    #[test]
    fn patterns_fit_kinds_and_names_as_reports_show_them() {
        let takes = |pattern: &str| TakeoverPatterns::new(&[pattern.to_owned()]).takes(&web());
        assert!(takes("*") && takes("deployment.apps/*") && takes("*/web") && takes("deployment.apps/web"));
        assert!(!takes("web") && !takes("deployment/web") && !takes("deployment.apps/web -n prod"));
    }
}

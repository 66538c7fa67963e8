//! The rules of the roles that bindings refer to: from the manifests, from the target, or from both if a ClusterRole
//! aggregates others.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use gantry_cluster::selector::ParsedLabelSelector;
use gantry_cluster::{ListError, ListRequest, ObjectToRead, Target};
use gantry_core::problem::{Error, Problem};
use gantry_core::rbac::{self, Atom, PolicyRule, or_default};
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use gantry_deploy::plan::{Change, Plan};

/// The page size when ClusterRoles are listed.
const PAGE: u32 = 500;

/// The fields of a Role or ClusterRole that matter to the server's check.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RbacRole {
    #[serde(default)]
    rules: Option<Vec<PolicyRule>>,
    #[serde(default, deserialize_with = "or_default")]
    aggregation_rule: AggregationRule,
    #[serde(default, deserialize_with = "or_default")]
    metadata: RoleMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregationRule {
    #[serde(default, deserialize_with = "or_default")]
    cluster_role_selectors: Vec<LabelSelector>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    #[serde(default, deserialize_with = "or_default")]
    match_labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    match_expressions: Vec<MatchExpression>,
}

#[derive(Debug, Deserialize)]
struct MatchExpression {
    key: String,
    operator: String,
    #[serde(default, deserialize_with = "or_default")]
    values: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct RoleMetadata {
    #[serde(default)]
    labels: Option<Map<String, Value>>,
}

impl RbacRole {
    fn parse(raw: &RawObject) -> Option<RbacRole> {
        serde_json::from_str(&raw.json()).ok()
    }

    /// The role after the deploy; `None` if it is malformed, because the server refuses it anyway. If the manifest has
    /// no rules, the live ones are kept.
    pub fn after_deploy(change: &Change) -> Option<RbacRole> {
        let mut role = RbacRole::parse(&change.desired.raw)?;
        if role.rules.is_none() {
            role.rules = RbacRole::live_role(change).and_then(|live| live.rules);
        }
        Some(role)
    }

    /// The live role.
    pub fn live_role(change: &Change) -> Option<RbacRole> {
        RbacRole::parse(&change.live.as_ref()?.raw)
    }

    /// Whether a controller fills in the rules of other roles.
    pub fn aggregates(&self) -> bool {
        !self.aggregation_rule.cluster_role_selectors.is_empty()
    }

    pub fn atoms(&self) -> BTreeSet<Atom> {
        self.rules.iter().flatten().flat_map(PolicyRule::atoms).collect()
    }

    fn selectors(&self) -> impl Iterator<Item = String> {
        self.aggregation_rule.cluster_role_selectors.iter().map(LabelSelector::text)
    }
}

impl LabelSelector {
    /// The selector in the syntax of a query. An invalid selector selects nothing, as for the controller.
    fn text(&self) -> String {
        let labels = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions =
            self.match_expressions.iter().map(|MatchExpression { key, operator, values }| match operator.as_str() {
                "In" => format!("{key} in ({})", values.join(",")),
                "NotIn" => format!("{key} notin ({})", values.join(",")),
                "DoesNotExist" => format!("!{key}"),
                _ => key.clone(),
            });
        labels.chain(expressions).collect::<Vec<_>>().join(",")
    }
}

/// The role that a binding refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleRef {
    pub is_cluster_role: bool,
    pub name: String,
    /// The namespace of the binding, for a Role.
    pub namespace: Option<String>,
}

impl RoleRef {
    /// The role of a binding after the deploy. If the manifest has no `roleRef`, the live one is kept.
    pub fn of_binding(binding: &Change) -> Option<RoleRef> {
        Self::in_binding(binding, &binding.desired.raw)
            .or_else(|| Self::in_binding(binding, &binding.live.as_ref()?.raw))
    }

    fn in_binding(binding: &Change, raw: &RawObject) -> Option<RoleRef> {
        #[derive(Deserialize)]
        struct BindingWithRoleRef {
            #[serde(rename = "roleRef")]
            role: Ref,
        }
        #[derive(Deserialize)]
        struct Ref {
            kind: String,
            name: String,
        }
        let BindingWithRoleRef { role } = serde_json::from_str(&raw.json()).ok()?;
        let is_cluster_role = match role.kind.as_str() {
            "ClusterRole" => true,
            "Role" => false,
            _ => return None,
        };
        let namespace = binding.desired.object.namespace.clone().filter(|_| !is_cluster_role);
        Some(RoleRef { is_cluster_role, name: role.name, namespace })
    }

    pub fn plural(&self) -> &'static str {
        if self.is_cluster_role { "clusterroles" } else { "roles" }
    }

    /// The role itself.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            api_version: format!("{}/v1", rbac::GROUP),
            kind: if self.is_cluster_role { "ClusterRole" } else { "Role" }.to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    fn resource(&self) -> Resource {
        Resource {
            group: rbac::GROUP.to_owned(),
            version: "v1".to_owned(),
            kind: self.object().kind,
            plural: self.plural().to_owned(),
            namespaced: !self.is_cluster_role,
        }
    }

    /// The role among the manifests.
    pub fn find_in_plan<'p>(&self, plan: &'p Plan) -> Option<&'p Change> {
        let object = self.object();
        plan.changes.iter().find(|change| change.desired.object.identity() == object.identity())
    }
}

/// The roles that bindings of the deploy grant to a ServiceAccount, by namespace and name, each with the namespace in
/// which it then holds: `None` for all.
pub fn granted_to(plan: &Plan, (of, name): (&str, &str)) -> Vec<(Option<String>, RoleRef)> {
    let groups = ["system:authenticated", "system:serviceaccounts", &format!("system:serviceaccounts:{of}")];
    let is_it = |subject: &Value| match subject["kind"].as_str() {
        Some("ServiceAccount") => subject["namespace"] == of && subject["name"] == name,
        Some("User") => subject["name"] == format!("system:serviceaccount:{of}:{name}").as_str(),
        Some("Group") => groups.iter().any(|group| subject["name"] == *group),
        _ => false,
    };
    let bindings = plan.changes.iter().filter(|change| {
        let kind = change.desired.object.kind.as_str();
        change.resource.group == rbac::GROUP && matches!(kind, "RoleBinding" | "ClusterRoleBinding")
    });
    let ours = bindings.filter(|change| {
        change.desired.raw.value()["subjects"].as_array().is_some_and(|subjects| subjects.iter().any(is_it))
    });
    ours.filter_map(|change| Some((change.desired.object.namespace.clone(), RoleRef::of_binding(change)?))).collect()
}

/// The rights that a role grants when a binding to it is written: `None` if there is no such role then; the error if
/// the user may not read it.
pub type Granted = Result<Option<BTreeSet<Atom>>, Problem>;

/// The rights that each of these roles grants when its bindings are written.
///
/// # Errors
/// The target does not answer.
pub async fn look_up(
    plan: &Plan,
    target: &Target,
    wanted: BTreeSet<RoleRef>,
) -> Result<BTreeMap<RoleRef, Granted>, Problem> {
    let (planned, live): (Vec<RoleRef>, Vec<RoleRef>) =
        wanted.into_iter().partition(|role| role.find_in_plan(plan).is_some());
    let asked: Vec<ObjectToRead> = live
        .iter()
        .map(|role| ObjectToRead { resource: role.resource().into(), object: role.object().into() })
        .collect();
    let mut granted = BTreeMap::new();
    let first = |error: Error| error.first_problem();
    let read = target.read_each(&asked, &|_, _| ()).await.map_err(first)?;
    for (role, read) in live.into_iter().zip(read) {
        let grants = read.map(|live| {
            let live = RbacRole::parse(&live?.raw)?;
            let mut atoms = live.atoms();
            atoms.extend(aggregated(plan, &live));
            Some(atoms)
        });
        granted.insert(role, grants);
    }
    for role in planned {
        let grants = match role.find_in_plan(plan).and_then(RbacRole::after_deploy) {
            None => Ok(None),
            Some(role) => match all_of(plan, target, &role).await {
                Ok(atoms) => Ok(Some(atoms)),
                Err(ListError::Forbidden(problem)) => Err(problem),
                Err(error) => return Err(error.problem().cloned().unwrap_or_else(|| Problem::new("the list expired"))),
            },
        };
        granted.insert(role, grants);
    }
    Ok(granted)
}

/// The rules of a role of the manifests, including those that it aggregates from the manifests and the target.
async fn all_of(plan: &Plan, target: &Target, role: &RbacRole) -> Result<BTreeSet<Atom>, ListError> {
    let mut atoms = role.atoms();
    atoms.extend(aggregated(plan, role));
    for selector in role.selectors() {
        atoms.extend(aggregated_live(target, &selector).await?);
    }
    Ok(atoms)
}

/// The rules that a role aggregates from the ClusterRoles among the manifests.
fn aggregated(plan: &Plan, role: &RbacRole) -> BTreeSet<Atom> {
    let selectors: Vec<ParsedLabelSelector> =
        role.selectors().filter_map(|text| ParsedLabelSelector::parse(&text).ok()).collect();
    let is_cluster_role = |change: &&Change| {
        change.resource.group == rbac::GROUP && change.desired.object.kind == "ClusterRole" && !selectors.is_empty()
    };
    let roles = plan.changes.iter().filter(is_cluster_role).filter_map(RbacRole::after_deploy);
    roles
        .filter(|role| selectors.iter().any(|selector| selector.matches(role.metadata.labels.as_ref())))
        .flat_map(|role| role.atoms())
        .collect()
}

async fn aggregated_live(target: &Target, selector: &str) -> Result<BTreeSet<Atom>, ListError> {
    let any = RoleRef { is_cluster_role: true, name: String::new(), namespace: None };
    let resource = any.resource();
    let request = ListRequest { label_selector: Some(selector), ..ListRequest::new(&resource, PAGE) };
    let atoms_of = |atoms: &mut BTreeSet<Atom>, json: &str| {
        atoms.extend(serde_json::from_str::<RbacRole>(json).into_iter().flat_map(|role| role.atoms()));
    };
    target.list(&request).gather(atoms_of).await
}

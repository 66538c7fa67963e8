//! RBAC rules with the semantics of the API server's authorizer.
//!
//! A rule is a product: every verb on every resource of every group, or on every URL. An [`Atom`] is one element of
//! this product, so a single rule covers an atom completely or not at all.
//!
//! Sources: <https://kubernetes.io/docs/reference/access-authn-authz/rbac/>, and `RuleAllows` and
//! `Covers` in `k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac` and `k8s.io/component-helpers/auth/rbac/validation`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

/// The group of Roles, ClusterRoles and their bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The wildcard in a rule: every verb, group, resource or URL.
pub const ALL: &str = "*";

/// A rule of a Role or ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// Empty text for the core group, [`ALL`] for every group.
    #[serde(rename = "apiGroups", deserialize_with = "or_default")]
    pub api_groups: Vec<String>,
    /// Plural names, with a subresource if any: `pods/log`.
    #[serde(deserialize_with = "or_default")]
    pub resources: Vec<String>,
    /// If empty, the rule is for all names.
    #[serde(deserialize_with = "or_default")]
    pub resource_names: Vec<String>,
    /// Paths; one that ends with `*` is a prefix. Only rules of ClusterRoles can have them.
    #[serde(rename = "nonResourceURLs", deserialize_with = "or_default")]
    pub non_resource_urls: Vec<String>,
    /// Such as `get`; [`ALL`] for every verb.
    #[serde(deserialize_with = "or_default")]
    pub verbs: Vec<String>,
}

/// Deserializes `null` as the default: Go writes a nil list as `null`.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A single permission that cannot be divided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// A verb on objects of a resource.
    Resource {
        /// Empty for the core group.
        group: String,
        /// The plural name, with a subresource if any: `pods/log`.
        resource: String,
        /// The name of the object; `None` for any name.
        name: Option<String>,
        /// A verb of the API, such as `patch`.
        verb: String,
    },
    /// A verb on a path that is not that of a resource.
    Url {
        /// The path, such as `/healthz`.
        url: String,
        /// A method in lower case.
        verb: String,
    },
}

impl Atom {
    /// The verb, for either kind.
    pub fn verb(&self) -> &str {
        match self {
            Atom::Resource { verb, .. } | Atom::Url { verb, .. } => verb,
        }
    }

    /// Every verb on every resource and on every URL: the permissions that writing an aggregation rule requires.
    pub fn everything() -> [Atom; 2] {
        let all = || ALL.to_owned();
        [
            Atom::Resource { group: all(), resource: all(), name: None, verb: all() },
            Atom::Url { url: all(), verb: all() },
        ]
    }
}

impl PolicyRule {
    /// Each single permission that the rule grants: one verb on one resource or URL.
    pub fn atoms(&self) -> Vec<Atom> {
        let mut atoms = Vec::new();
        let names: Vec<Option<&String>> = match self.resource_names.as_slice() {
            [] => vec![None],
            names => names.iter().map(Some).collect(),
        };
        for verb in &self.verbs {
            for (group, resource) in self.api_groups.iter().flat_map(|g| self.resources.iter().map(move |r| (g, r))) {
                atoms.extend(names.iter().map(|name| Atom::Resource {
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.cloned(),
                    verb: verb.clone(),
                }));
            }
            atoms.extend(self.non_resource_urls.iter().map(|url| Atom::Url { url: url.clone(), verb: verb.clone() }));
        }
        atoms
    }

    /// Whether this rule allows the request, and allows granting the permission to others.
    pub fn covers(&self, atom: &Atom) -> bool {
        self.covers_with(atom, |name| self.resource_names.iter().any(|own| own == name))
    }

    /// Like [`PolicyRule::covers`], for a caller that can look up a name in `resourceNames` faster.
    pub fn covers_with(&self, atom: &Atom, is_named: impl Fn(&str) -> bool) -> bool {
        let has = |set: &[String], wanted: &str| set.iter().any(|one| one == ALL || one == wanted);
        if !has(&self.verbs, atom.verb()) {
            return false;
        }
        match atom {
            Atom::Resource { group, resource, name, .. } => {
                let any_parent = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
                has(&self.api_groups, group)
                    && (has(&self.resources, resource) || any_parent.is_some_and(|any| self.resources.contains(&any)))
                    && (self.resource_names.is_empty() || name.as_deref().is_some_and(is_named))
            }
            Atom::Url { url, .. } => {
                let covers = |own: &String| {
                    own == url || own.strip_suffix('*').is_some_and(|_| url.starts_with(own.trim_end_matches('*')))
                };
                self.resource_names.is_empty() && self.non_resource_urls.iter().any(covers)
            }
        }
    }
}

type Verbs<'a> = BTreeSet<&'a str>;
/// Verbs by object name; `None` for any name.
type VerbsByName<'a> = BTreeMap<Option<&'a str>, Verbs<'a>>;

/// A minimal set of rules that grants all of `atoms` and nothing else. No rule can be left out.
pub fn rules_for(atoms: &BTreeSet<Atom>) -> Vec<PolicyRule> {
    let mut by_resource: BTreeMap<(&str, &str), VerbsByName<'_>> = BTreeMap::new();
    let mut by_url: BTreeMap<&str, Verbs<'_>> = BTreeMap::new();
    for atom in irredundant(atoms) {
        match atom {
            Atom::Resource { group, resource, name, verb } => {
                let names = by_resource.entry((group, resource)).or_default();
                names.entry(name.as_deref()).or_default().insert(verb);
            }
            Atom::Url { url, verb } => {
                by_url.entry(url).or_default().insert(verb);
            }
        }
    }
    let mut rules = Vec::new();
    for ((group, resource), names) in by_resource {
        // Group names with the same verbs.
        let mut by_verbs: BTreeMap<Verbs<'_>, Vec<&str>> = BTreeMap::new();
        for (name, verbs) in names {
            match name {
                None => add(&mut rules, group, resource, &[], &verbs),
                Some(name) => by_verbs.entry(verbs).or_default().push(name),
            }
        }
        by_verbs.iter().for_each(|(verbs, names)| add(&mut rules, group, resource, names, verbs));
    }
    let mut urls: BTreeMap<Verbs<'_>, Vec<&str>> = BTreeMap::new();
    for (url, verbs) in by_url {
        urls.entry(verbs).or_default().push(url);
    }
    rules.extend(urls.into_iter().map(|(verbs, urls)| PolicyRule {
        non_resource_urls: to_strings(&urls),
        verbs: in_order(verbs),
        ..PolicyRule::default()
    }));
    rules
}

/// Adds a rule, or adds its resource to a rule that is otherwise equal.
fn add(rules: &mut Vec<PolicyRule>, group: &str, resource: &str, names: &[&str], verbs: &Verbs<'_>) {
    let rule = PolicyRule {
        api_groups: vec![group.to_owned()],
        resources: Vec::new(),
        resource_names: to_strings(names),
        verbs: in_order(verbs.iter().copied()),
        ..PolicyRule::default()
    };
    let is_same = |other: &&mut PolicyRule| PolicyRule { resources: Vec::new(), ..(*other).clone() } == rule;
    match rules.iter_mut().find(is_same) {
        Some(same) => same.resources.push(resource.to_owned()),
        None => rules.push(PolicyRule { resources: vec![resource.to_owned()], ..rule }),
    }
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// The atoms that no other one covers.
fn irredundant(atoms: &BTreeSet<Atom>) -> Vec<&Atom> {
    let is_wide = |atom: &&Atom| match atom {
        Atom::Resource { group, resource, name, verb } => {
            name.is_none() || [group, resource, verb].iter().any(|part| part.contains(ALL))
        }
        Atom::Url { url, verb } => url.contains(ALL) || verb == ALL,
    };
    // Only wide atoms cover others, and there are few of them.
    let wide: Vec<(&Atom, PolicyRule)> = atoms.iter().filter(is_wide).map(|atom| (atom, rule_of(atom))).collect();
    atoms.iter().filter(|atom| !wide.iter().any(|(other, rule)| other != atom && rule.covers(atom))).collect()
}

fn rule_of(atom: &Atom) -> PolicyRule {
    match atom.clone() {
        Atom::Resource { group, resource, name, verb } => PolicyRule {
            api_groups: vec![group],
            resources: vec![resource],
            resource_names: name.into_iter().collect(),
            verbs: vec![verb],
            ..PolicyRule::default()
        },
        Atom::Url { url, verb } => {
            PolicyRule { non_resource_urls: vec![url], verbs: vec![verb], ..PolicyRule::default() }
        }
    }
}

/// Sorts verbs in the usual order: reading before writing.
pub fn in_order<'a>(verbs: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    const ORDER: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let mut verbs: Vec<&str> = verbs.into_iter().collect();
    verbs.sort_by_key(|verb| (ORDER.iter().position(|known| known == verb).unwrap_or(ORDER.len()), *verb));
    verbs.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(value: Value) -> PolicyRule {
        serde_json::from_value(value).unwrap()
    }

    fn pods(verb: &str, resource: &str, name: Option<&str>) -> Atom {
        Atom::Resource {
            group: String::new(),
            resource: resource.into(),
            name: name.map(str::to_owned),
            verb: verb.into(),
        }
    }

    #[test]
    fn a_rule_covers_the_same_as_in_the_server() {
        let all = rule(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}));
        let named = rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}));
        let logs = rule(json!({"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]}));
        let only_verb = rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"], "resourceNames": null}));
        for (rule, atom, expected) in [
            (&all, pods("get", "pods/log", None), true),
            (&all, Atom::everything()[0].clone(), true),
            (&all, Atom::everything()[1].clone(), false),
            (&named, pods("get", "pods", Some("a")), true),
            (&named, pods("get", "pods", Some("b")), false),
            (&named, pods("get", "pods", None), false),
            (&named, pods("get", "pods/log", Some("a")), false),
            (&logs, pods("get", "pods/log", Some("a")), true),
            (&logs, pods("get", "log", None), false),
            (&only_verb, pods("*", "pods", None), true),
            (&only_verb, pods("get", "*", None), false),
        ] {
            assert_eq!(rule.covers(&atom), expected, "{rule:?} {atom:?}");
        }
        let urls = rule(json!({"nonResourceURLs": ["/healthz/*"], "verbs": ["get"]}));
        let url = |url: &str| Atom::Url { url: url.into(), verb: "get".into() };
        assert!(urls.covers(&url("/healthz/etcd")) && urls.covers(&url("/healthz/*")));
        assert!(!urls.covers(&url("/healthz")) && !urls.covers(&url("*")));
    }

    #[test]
    fn rights_become_the_fewest_rules() {
        let rules = [
            json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["patch", "get"]}),
            json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["b"], "verbs": ["get", "patch"]}),
            json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["c"], "verbs": ["get"]}),
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]}),
            json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}),
            json!({"apiGroups": [""], "resources": ["events"], "verbs": ["list", "get"]}),
            json!({"nonResourceURLs": ["/b", "/a"], "verbs": ["get"]}),
        ];
        let atoms: BTreeSet<Atom> = rules.into_iter().flat_map(|value| rule(value).atoms()).collect();
        let found = rules_for(&atoms);
        assert_eq!(
            found,
            [
                rule(json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["c"], "verbs": ["get"]})),
                rule(
                    json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"], "verbs": ["get", "patch"]})
                ),
                rule(json!({"apiGroups": [""], "resources": ["events", "secrets"], "verbs": ["get", "list"]})),
                rule(json!({"nonResourceURLs": ["/a", "/b"], "verbs": ["get"]})),
            ]
        );
        assert!(atoms.iter().all(|atom| found.iter().any(|rule| rule.covers(atom))));
    }
}

//! Prints rights as manifests: minimal Roles and ClusterRoles, and their bindings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gantry_schema::names;

use super::needs::{Need, Right, is_about_namespaces};
use super::roles::RoleRef;
use gantry_core::options::InvalidOption;
use gantry_core::rbac::{self, Atom, PolicyRule, rules_for};
use gantry_core::resource::is_dns_label;
use gantry_core::text;
use gantry_deploy::plan::Plan;
use gantry_yaml::write;

/// The maximum line width; longer lists are wrapped.
const WIDTH: usize = 88;

/// The subject of a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RbacSubject {
    /// The name of a user.
    User(String),
    /// The name of a group.
    Group(String),
    /// A ServiceAccount.
    ServiceAccount {
        /// Its namespace, which need not be that of the binding.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl RbacSubject {
    /// The subject with this user name.
    ///
    /// # Errors
    /// No binding can name it: it has the prefix of service accounts and is not the name of one.
    pub fn user(name: &str) -> Result<RbacSubject, InvalidOption> {
        let Some(account) = name.strip_prefix("system:serviceaccount:") else {
            return Ok(RbacSubject::User(name.to_owned()));
        };
        let (namespace, account) = account.split_once(':').unwrap_or((account, ""));
        match is_dns_label(namespace) && names::subdomain(account).is_empty() {
            true => Ok(RbacSubject::ServiceAccount { namespace: namespace.to_owned(), name: account.to_owned() }),
            false => {
                Err(format!("{name:?} is not the name of a service account: system:serviceaccount:NAMESPACE:NAME")
                    .into())
            }
        }
    }

    /// Namespace and name of a ServiceAccount; `None` for others.
    pub fn account(&self) -> Option<(&str, &str)> {
        match self {
            RbacSubject::ServiceAccount { namespace, name } => Some((namespace, name)),
            RbacSubject::User(_) | RbacSubject::Group(_) => None,
        }
    }

    fn yaml(&self) -> String {
        match self {
            RbacSubject::User(name) => format!("{{kind: User, apiGroup: {}, name: {}}}", rbac::GROUP, scalar(name)),
            RbacSubject::Group(name) => format!("{{kind: Group, apiGroup: {}, name: {}}}", rbac::GROUP, scalar(name)),
            RbacSubject::ServiceAccount { namespace, name } => {
                format!("{{kind: ServiceAccount, namespace: {}, name: {}}}", scalar(namespace), scalar(name))
            }
        }
    }
}

/// Rights to grant, by namespace.
#[derive(Debug, Default)]
pub struct Grants {
    everywhere: BTreeSet<Atom>,
    by_namespace: BTreeMap<String, BTreeSet<Atom>>,
    /// Namespaces that do not exist yet. A Role cannot be created in them.
    absent: BTreeSet<String>,
}

impl Grants {
    /// No rights yet, for this plan.
    pub fn new(plan: &Plan) -> Grants {
        let absent = plan.changes.iter().filter(|change| change.live.is_none() && change.desired.object.is_namespace());
        let absent = absent.map(|change| change.desired.object.name.clone()).collect();
        Grants { absent, ..Grants::default() }
    }

    /// The smallest set of rights that meets these needs: the rules of a role instead of `escalate`, which would let
    /// the holder write any rule into it, and `bind` on one role instead of all rules of the role.
    pub fn for_all(plan: &Plan, needs: &[Need]) -> Grants {
        let mut grants = Grants::new(plan);
        let mut of_namespaces = Vec::new();
        for Need { namespace, right, .. } in needs {
            let place = namespace.as_deref();
            match right {
                Right::Request { atom, .. } if is_about_namespaces(atom) => of_namespaces.push((namespace, atom)),
                Right::Request { atom, .. } => grants.add(place, atom.clone()),
                Right::WriteRole { escalate, aggregates: true, .. } => grants.add(place, escalate.clone()),
                Right::WriteRole { rules, .. } => rules.iter().for_each(|atom| grants.add(place, atom.clone())),
                Right::WriteBinding { role, .. } if is_granted_with_role(role, needs) => {}
                Right::WriteBinding { bind, .. } => grants.add(place, bind.clone()),
            }
        }
        grants.remove_covered();
        for (namespace, atom) in of_namespaces {
            // The namespace of a Role exists, so it never has to be created.
            match namespace.as_deref().filter(|namespace| grants.by_namespace.contains_key(*namespace)) {
                Some(_) if atom.verb() == "create" => {}
                Some(namespace) => grants.add(Some(namespace), atom.clone()),
                None => grants.add(None, atom.clone()),
            }
        }
        grants.remove_covered();
        grants
    }

    /// Adds one right, in a namespace or everywhere.
    pub fn add(&mut self, namespace: Option<&str>, atom: Atom) {
        match namespace {
            Some(namespace) => self.by_namespace.entry(namespace.to_owned()).or_default().insert(atom),
            None => self.everywhere.insert(atom),
        };
    }

    /// Adds a right that a finding reports as missing. A right on a namespace that does not exist can only be granted
    /// for all namespaces.
    pub fn add_missing(&mut self, namespace: Option<&str>, atom: Atom) {
        let is_absent = namespace.is_some_and(|namespace| self.absent.contains(namespace));
        let place = namespace.filter(|_| !(is_absent && is_about_namespaces(&atom)));
        self.add(place, atom);
    }

    /// Removes from each namespace the rights that are granted everywhere.
    pub(super) fn remove_covered(&mut self) {
        let everywhere = rules_for(&self.everywhere);
        for atoms in self.by_namespace.values_mut() {
            atoms.retain(|atom| !everywhere.iter().any(|rule| rule.covers(atom)));
        }
        self.by_namespace.retain(|_, atoms| !atoms.is_empty());
    }

    /// The manifests, ready to apply: missing namespaces of Roles, Roles and ClusterRoles with this name, and their
    /// bindings if there are subjects.
    pub fn yaml(&self, name: &str, subjects: &[RbacSubject]) -> String {
        let mut documents = Vec::new();
        let name = scalar(name);
        for namespace in self.by_namespace.keys().filter(|namespace| self.absent.contains(*namespace)) {
            documents.push(format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", scalar(namespace)));
        }
        if !self.everywhere.is_empty() {
            let metadata = format!("{{name: {name}}}");
            documents.push(role("ClusterRole", &metadata, &self.everywhere));
            documents.extend(binding("ClusterRole", &name, &metadata, subjects));
        }
        for (namespace, atoms) in &self.by_namespace {
            let metadata = format!("{{name: {name}, namespace: {}}}", scalar(namespace));
            documents.push(role("Role", &metadata, atoms));
            documents.extend(binding("Role", &name, &metadata, subjects));
        }
        documents.join("---\n")
    }
}

/// Whether the rights of the role are granted anyway, because the deploy also writes the role.
fn is_granted_with_role(role: &RoleRef, needs: &[Need]) -> bool {
    needs.iter().any(|need| match &need.right {
        Right::WriteRole { escalate: Atom::Resource { resource, name, .. }, aggregates: false, .. } => {
            resource == role.plural() && name.as_deref() == Some(&role.name) && need.namespace == role.namespace
        }
        _ => false,
    })
}

fn role(kind: &str, metadata: &str, atoms: &BTreeSet<Atom>) -> String {
    let mut text = format!("apiVersion: {}/v1\nkind: {kind}\nmetadata: {metadata}\nrules:\n", rbac::GROUP);
    rules_for(atoms).iter().for_each(|rule| text.push_str(&rule_yaml(rule)));
    text
}

fn rule_yaml(rule: &PolicyRule) -> String {
    let keys = [
        ("apiGroups", &rule.api_groups),
        ("resources", &rule.resources),
        ("resourceNames", &rule.resource_names),
        ("nonResourceURLs", &rule.non_resource_urls),
        ("verbs", &rule.verbs),
    ];
    let mut text = String::new();
    for (key, values) in keys.into_iter().filter(|(_, values)| !values.is_empty()) {
        let dash = if text.is_empty() { "- " } else { "  " };
        let mut line = format!("{dash}{key}: [");
        for (index, value) in values.iter().enumerate() {
            let item = format!("{}{}", scalar(value), if index + 1 < values.len() { "," } else { "]" });
            if index > 0 && line.len() + 1 + item.len() > WIDTH {
                text.push_str(&line);
                text.push('\n');
                line = " ".repeat(6);
            } else if index > 0 {
                line.push(' ');
            }
            line.push_str(&item);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn binding(kind: &str, name: &str, metadata: &str, subjects: &[RbacSubject]) -> Option<String> {
    if subjects.is_empty() {
        return None;
    }
    let group = rbac::GROUP;
    let mut text = format!(
        "apiVersion: {group}/v1\nkind: {kind}Binding\nmetadata: {metadata}\n\
         roleRef: {{apiGroup: {group}, kind: {kind}, name: {name}}}\nsubjects:\n"
    );
    for subject in subjects {
        let _ = writeln!(text, "- {}", subject.yaml());
    }
    Some(text)
}

/// A scalar that every YAML parser reads as this string, in block and in flow style.
pub fn scalar(value: &str) -> String {
    let is_plain = value.starts_with(|c: char| c.is_ascii_lowercase())
        && value.ends_with(|c: char| c.is_ascii_alphanumeric())
        && write::is_plain(value, |c| c.is_ascii_alphanumeric() || "-./".contains(c));
    if is_plain { value.to_owned() } else { text::yaml_quoted(value.chars()) }
}

#[cfg(test)]
mod tests {
    use super::super::needs::atom;
    use super::*;

    #[test]
    fn strings_are_quoted_where_yaml_would_read_something_else() {
        for (value, yaml) in [
            ("apps", "apps"),
            ("pods/log", "pods/log"),
            ("a.b-c1", "a.b-c1"),
            ("", "\"\""),
            ("*", "\"*\""),
            ("yes", "\"yes\""),
            ("1", "\"1\""),
            ("system:node", "\"system:node\""),
            ("a\u{202e}b\n", "\"a\\u202eb\\n\""),
        ] {
            assert_eq!(scalar(value), yaml);
            let read: String = serde_yaml::from_str(yaml).unwrap();
            assert_eq!(read, value);
        }
    }

    #[test]
    fn long_lists_go_on_in_the_next_line_and_read_the_same() {
        let names: Vec<String> = (0..40).map(|index| format!("configuration-{index:02}")).collect();
        let mut grants = Grants::default();
        for name in &names {
            grants.add(Some("team"), atom("", "configmaps", Some(name), "get"));
        }
        let text = grants.yaml(
            "deploy",
            &[RbacSubject::user("system:serviceaccount:ci:bot").unwrap(), RbacSubject::Group("ops".into())],
        );
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let (role, binding) = text.split_once("---\n").unwrap();
        let role: serde_json::Value = serde_yaml::from_str(role).unwrap();
        assert_eq!(role["rules"][0]["resourceNames"], serde_json::json!(names));
        let binding: serde_json::Value = serde_yaml::from_str(binding).unwrap();
        assert_eq!(
            binding["subjects"],
            serde_json::json!([
                {"kind": "ServiceAccount", "namespace": "ci", "name": "bot"},
                {"kind": "Group", "apiGroup": rbac::GROUP, "name": "ops"},
            ])
        );
    }

    #[test]
    fn a_service_account_has_a_namespace_and_a_name() {
        for (user, is_one) in [
            ("jane", true),
            ("system:admin", true),
            ("system:serviceaccount:a:b.c", true),
            ("system:serviceaccount:a", false),
            ("system:serviceaccount::b", false),
            ("system:serviceaccount:a:", false),
            ("system:serviceaccount:A B:c", false),
            ("system:serviceaccount:a:b:c", false),
        ] {
            assert_eq!(RbacSubject::user(user).is_ok(), is_one, "{user}");
        }
    }
}

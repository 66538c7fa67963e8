//! Compares the needs with the rights of the user, and reports one finding for each cause.

use std::collections::{BTreeMap, BTreeSet};

use super::grant::Grants;
use super::held::ReviewedRights;
use super::needs::{Need, Right, atom, go_format};
use super::roles::{Granted, RoleRef};
use super::rules;
use crate::rule::RuleDoc;
use crate::{Violation, ViolationSubject};
use gantry_core::hash::fnv128;
use gantry_core::rbac::{self, Atom, in_order};
use gantry_core::resource::{ObjectRef, Resource, Step};
use gantry_core::text;
use gantry_deploy::plan::{ObjectLookup, Plan};

/// The maximum number of rights that a message names.
const RIGHTS_SHOWN: usize = 3;

/// The roles whose rules must be compared, because the user lacks `bind`.
pub fn undecided_roles(needs: &[Need], held: &ReviewedRights) -> BTreeSet<RoleRef> {
    needs
        .iter()
        .filter_map(|need| match &need.right {
            Right::WriteBinding { bind, role } if !held.has(need.namespace.as_deref(), bind) => Some(role.clone()),
            _ => None,
        })
        .collect()
}

/// The violations for missing required rights.
pub fn required(
    plan: &Plan,
    needs: &[Need],
    held: &ReviewedRights,
    roles: &BTreeMap<RoleRef, Granted>,
) -> Vec<Violation> {
    let mut violations = requests(plan, needs, held, &rules::REQUEST);
    // The rights that findings about roles say to grant also allow their bindings.
    let mut reported = Vec::new();
    for need in needs {
        if let Right::WriteRole { escalate, rules, aggregates } = &need.right {
            let missing = missing_of_role(need, held, escalate, rules, *aggregates);
            if !missing.is_empty() {
                violations.push(write_role(plan, need, escalate, &missing, *aggregates));
                reported.push((need.namespace.as_deref(), missing));
            }
        }
    }
    for need in needs {
        if let Right::WriteBinding { bind, role } = &need.right {
            violations.extend(write_binding(plan, need, held, bind, role, roles, &reported));
        }
    }
    violations
}

/// The violations for missing optional rights of a deploy that waits.
pub fn waiting(plan: &Plan, needs: &[Need], held: &ReviewedRights) -> Vec<Violation> {
    requests(plan, needs, held, &rules::WATCH)
}

/// The violations for missing rights to show logs.
pub fn logs(plan: &Plan, needs: &[Need], held: &ReviewedRights) -> Vec<Violation> {
    requests(plan, needs, held, &rules::LOG)
}

/// The violations for missing rights for objects that are not among the changes.
pub fn violations_of_lookups(plan: &Plan, lookups: &[ObjectLookup], held: &ReviewedRights) -> Vec<Violation> {
    let mut missing: BTreeMap<RequestScope<'_>, Vec<(&ObjectLookup, Atom)>> = BTreeMap::new();
    for lookup in lookups {
        let ObjectLookup { resource: Resource { group, version, plural, .. }, namespace, name, verb, .. } = lookup;
        let right = atom(group, plural, name.as_deref(), verb);
        if !held.has(namespace.as_deref(), &right) {
            let kind: RequestScope<'_> = (group, plural, version, namespace.as_deref(), name.is_none());
            missing.entry(kind).or_default().push((lookup, right));
        }
    }
    let causes = missing.into_iter().map(|(kind, lookups)| {
        let mut grants = Grants::new(plan);
        lookups.iter().for_each(|(_, right)| grants.add_missing(kind.3, right.clone()));
        let verbs: BTreeSet<&str> = lookups.iter().map(|(lookup, _)| lookup.verb).collect();
        let objects: BTreeSet<&ObjectRef> = lookups.iter().map(|(lookup, _)| &*lookup.object).collect();
        let for_others = match objects.len() {
            0 | 1 => String::new(),
            number => format!(" and {}", text::count(number - 1, "other object")),
        };
        let (first, right) = &lookups[0];
        let message = format!(
            "not permitted to {}, which is needed for {}{for_others}",
            request_text(kind, &verbs),
            first.object
        );
        let mut violation = violation(plan, &rules::REQUEST, 0, message, grants, right, vec!["kind".into()]);
        if let Some(otherwise) = lookups.iter().find_map(|(lookup, _)| lookup.otherwise.as_ref()) {
            violation.body.help = format!("{otherwise}; or {}", violation.body.help);
        }
        Violation { subject: ViolationSubject::Object((*first.object).clone()), at: Vec::new(), ..violation }
    });
    causes.collect()
}

/// The target of a request without verb and name: group, resource, version and namespace, and whether it is a list.
type RequestScope<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, bool);

/// The change that needs the right, and the name of the object (`None` for a list).
type RequestingChange<'a> = (usize, Option<&'a str>);

/// Missing rights for requests. Objects of one kind in one namespace that lack the same verbs share a violation.
fn requests(plan: &Plan, needs: &[Need], held: &ReviewedRights, rule: &'static RuleDoc) -> Vec<Violation> {
    // The missing verbs of each object and of each list.
    let mut missing: BTreeMap<(usize, RequestScope<'_>, Option<&str>), BTreeSet<&str>> = BTreeMap::new();
    for Need { change, namespace, right } in needs {
        let Right::Request { atom, version } = right else { continue };
        let Atom::Resource { group, resource, name, verb } = atom else { continue };
        let namespace = namespace.as_deref();
        if !held.has(namespace, atom) {
            let kind = (group.as_str(), resource.as_str(), version.as_str(), namespace, name.is_none());
            missing.entry((*change, kind, name.as_deref())).or_default().insert(verb);
        }
    }
    let mut causes: BTreeMap<(RequestScope<'_>, BTreeSet<&str>), Vec<RequestingChange<'_>>> = BTreeMap::new();
    for ((change, kind, name), verbs) in missing {
        causes.entry((kind, verbs)).or_default().push((change, name));
    }
    let mut violations: Vec<Violation> = causes
        .into_iter()
        .map(|((kind @ (group, resource, _, namespace, _), verbs), objects)| {
            let mut grants = Grants::new(plan);
            for (_, name) in &objects {
                verbs.iter().for_each(|verb| grants.add_missing(namespace, atom(group, resource, *name, verb)));
            }
            let mut message = format!("not permitted to {}", request_text(kind, &verbs));
            if objects.len() > 1 {
                message.push_str(&format!(": {}", text::count(objects.len(), "object")));
            }
            let (change, name) = objects[0];
            violation(plan, rule, change, message, grants, &atom(group, resource, name, ""), vec!["kind".into()])
        })
        .collect();
    violations.sort_by(|a, b| a.subject.cmp(&b.subject));
    violations
}

/// `"create" apps/v1, Resource=deployments (nor to "get", "patch") in namespace "prod"`: kapp's text for the most
/// important verb, then the other verbs.
fn request_text((group, resource, version, namespace, is_list): RequestScope<'_>, verbs: &BTreeSet<&str>) -> String {
    let main = ["create", "patch", "delete"].into_iter().find(|verb| verbs.contains(verb));
    let main = main.or(verbs.first().copied()).unwrap_or_default();
    let mut text = format!("{main:?} {}", go_format(group, version, resource));
    let others = in_order(verbs.iter().copied().filter(|verb| *verb != main));
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(|verb| format!("{verb:?}")).collect();
        text.push_str(&format!(" (nor to {})", others.join(", ")));
    }
    match namespace {
        Some(namespace) if (group, resource) != ("", "namespaces") => {
            text.push_str(&format!(" in namespace {namespace:?}"));
        }
        None if is_list => text.push_str(" at the cluster scope"),
        _ => {}
    }
    if resource == rbac::ALL {
        text.push_str(", because the API server does not know the kind of the parameters");
    }
    text
}

fn missing_of_role(
    need: &Need,
    held: &ReviewedRights,
    escalate: &Atom,
    rules: &BTreeSet<Atom>,
    aggregates: bool,
) -> BTreeSet<Atom> {
    let namespace = need.namespace.as_deref();
    match aggregates {
        _ if held.has(namespace, escalate) => BTreeSet::new(),
        true => held.missing_rights(namespace, &Atom::everything().into()),
        false => held.missing_rights(namespace, rules),
    }
}

fn write_role(plan: &Plan, need: &Need, escalate: &Atom, missing: &BTreeSet<Atom>, aggregates: bool) -> Violation {
    let namespace = need.namespace.as_deref();
    let Resource { group, version, plural, .. } = &*plan.changes[need.change].resource;
    let what = go_format(group, version, plural);
    let mut grants = Grants::new(plan);
    let (message, at) = if aggregates {
        grants.add_missing(namespace, escalate.clone());
        let message = format!(
            "not permitted to \"escalate\" {what}: writing a role that aggregates others requires that verb, or every right"
        );
        (message, "aggregationRule")
    } else {
        missing.iter().for_each(|atom| grants.add_missing(namespace, atom.clone()));
        let message = format!(
            "not permitted to \"escalate\" {what}, and does not hold all of its rules: {}",
            rights_text(missing, namespace)
        );
        (message, "rules")
    };
    violation(plan, &rules::ROLE, need.change, message, grants, escalate, vec![at.into()])
}

fn write_binding(
    plan: &Plan,
    need: &Need,
    held: &ReviewedRights,
    bind: &Atom,
    role: &RoleRef,
    roles: &BTreeMap<RoleRef, Granted>,
    reported: &[(Option<&str>, BTreeSet<Atom>)],
) -> Option<Violation> {
    let namespace = need.namespace.as_deref();
    if held.has(namespace, bind) {
        return None;
    }
    let object = role.object();
    let mut grants = Grants::new(plan);
    grants.add_missing(namespace, bind.clone());
    let why = match roles.get(role) {
        Some(Ok(Some(rules))) => {
            let mut missing = held.missing_rights(namespace, rules);
            let of_roles = reported.iter().filter(|(place, _)| place.is_none() || *place == namespace);
            of_roles.for_each(|(_, granted)| missing.retain(|atom| !granted.contains(atom)));
            if missing.is_empty() {
                return None;
            }
            format!("and does not hold all of its rules: {}", rights_text(&missing, namespace))
        }
        Some(Ok(None)) | None => format!("and there is no {object} whose rules it could hold"),
        // The identity may neither read the role nor bind it by name: name the right that suffices in any case.
        Some(Err(problem)) => format!("and it is unknown whether it holds all of its rules: {}", problem.message),
    };
    let what = go_format(rbac::GROUP, "v1", role.plural());
    let message = format!("not permitted to \"bind\" {what} {:?}, {why}", role.name);
    let found =
        violation(plan, &rules::BINDING, need.change, message, grants, bind, vec!["roleRef".into(), "name".into()]);
    // The server can read a role that the identity cannot.
    Some(Violation { may_be_accepted: matches!(roles.get(role), Some(Err(_))), ..found })
}

/// The first of some rights as text: `"list" configmaps`.
fn rights_text(missing: &BTreeSet<Atom>, namespace: Option<&str>) -> String {
    let texts = missing.iter().take(RIGHTS_SHOWN).map(|atom| match atom {
        Atom::Resource { group, resource, name, verb } => {
            let dot = if group.is_empty() { "" } else { "." };
            let name = name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
            format!("{verb:?} {resource}{dot}{group}{name}")
        }
        Atom::Url { url, verb } => format!("{verb:?} {url}"),
    });
    let mut texts: Vec<String> = texts.collect();
    if missing.len() > RIGHTS_SHOWN {
        texts.push(format!("{} more", missing.len() - RIGHTS_SHOWN));
    }
    let place = namespace.map_or(String::new(), |namespace| format!(" in namespace {namespace:?}"));
    format!("{}{place}", texts.join(", "))
}

fn violation(
    plan: &Plan,
    rule: &'static RuleDoc,
    change: usize,
    message: String,
    grants: Grants,
    atom: &Atom,
    at: Vec<Step>,
) -> Violation {
    let yaml = grants.yaml(&name_for(atom, &grants), &[]);
    let command = if plan.migrates { "gantry permissions --migrate" } else { "gantry permissions" };
    let help = format!(
        "grant this to the identity that deploys ({command} prints everything that the deploy needs):\n{}",
        yaml.trim_end()
    );
    Violation::new(rule, change, None, message, help, at)
}

/// A name that is unique to these rights. Manifests of several findings, or of several runs, can then be applied
/// without replacing each other.
fn name_for(atom: &Atom, grants: &Grants) -> String {
    let about = match atom {
        Atom::Resource { resource, .. } if resource == rbac::ALL => "all".to_owned(),
        Atom::Resource { group, resource, verb, name } => {
            let dot = if group.is_empty() { "" } else { "." };
            match (verb.as_str(), name) {
                ("escalate" | "bind", Some(name)) => format!("{verb}-{resource}-{name}"),
                // The name of an object cannot contain the slash of a subresource.
                _ => format!("{}{dot}{group}", resource.replace('/', "-")),
            }
        }
        Atom::Url { .. } => "urls".to_owned(),
    };
    // As short as the hashes in the names of Pods.
    format!("gantry-{about}-{:08x}", fnv128(grants.yaml("", &[]).as_bytes()) >> 96)
}

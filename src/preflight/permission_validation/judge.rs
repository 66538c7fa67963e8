//! Needs beside rights: what is missing becomes findings, one for each cause.

use std::collections::{BTreeMap, BTreeSet};

use super::grant::Grants;
use super::held::Held;
use super::needs::{Need, Right, atom, in_go};
use super::roles::{Granted, RoleRef};
use super::rules;
use crate::hash::fnv128;
use crate::plan::{ObjectLookup, Plan};
use crate::preflight::rule::RuleDoc;
use crate::preflight::{Subject, Violation};
use crate::rbac::{self, Atom, in_order};
use crate::resource::{ObjectRef, Resource, Step};
use crate::text;

/// Rights that a message names one by one.
const NAMED: usize = 3;

/// The roles whose rules decide, as `bind` is missing.
pub fn undecided_roles(needs: &[Need], held: &Held) -> BTreeSet<RoleRef> {
    needs
        .iter()
        .filter_map(|need| match &need.right {
            Right::WriteBinding { bind, role } if !held.has(need.namespace.as_deref(), bind) => Some(role.clone()),
            _ => None,
        })
        .collect()
}

/// What is missing.
pub fn judge(plan: &Plan, needs: &[Need], held: &Held, roles: &BTreeMap<RoleRef, Granted>) -> Vec<Violation> {
    let mut violations = requests(plan, needs, held, &rules::REQUEST);
    // What the findings about roles say to grant settles their bindings, too.
    let mut told = Vec::new();
    for need in needs {
        if let Right::WriteRole { escalate, rules, aggregates } = &need.right {
            let missing = missing_of_role(need, held, escalate, rules, *aggregates);
            if !missing.is_empty() {
                violations.push(write_role(plan, need, escalate, &missing, *aggregates));
                told.push((need.namespace.as_deref(), missing));
            }
        }
    }
    for need in needs {
        if let Right::WriteBinding { bind, role } = &need.right {
            violations.extend(write_binding(plan, need, held, bind, role, roles, &told));
        }
    }
    violations
}

/// What is missing of what a deploy can do without as it waits.
pub fn waiting(plan: &Plan, needs: &[Need], held: &Held) -> Vec<Violation> {
    requests(plan, needs, held, &rules::WATCH)
}

/// What is missing to show logs.
pub fn logs(plan: &Plan, needs: &[Need], held: &Held) -> Vec<Violation> {
    requests(plan, needs, held, &rules::LOG)
}

/// What is missing of what is asked for other objects than changes.
pub fn others(plan: &Plan, lookups: &[ObjectLookup], held: &Held) -> Vec<Violation> {
    let mut missing: BTreeMap<Kind<'_>, Vec<(&ObjectLookup, Atom)>> = BTreeMap::new();
    for lookup in lookups {
        let ObjectLookup { resource: Resource { group, version, plural, .. }, namespace, name, verb, .. } = lookup;
        let right = atom(group, plural, name.as_deref(), verb);
        if !held.has(namespace.as_deref(), &right) {
            let kind: Kind<'_> = (group, plural, version, namespace.as_deref(), name.is_none());
            missing.entry(kind).or_default().push((lookup, right));
        }
    }
    let causes = missing.into_iter().map(|(kind, lookups)| {
        let mut grants = Grants::of(plan);
        lookups.iter().for_each(|(_, right)| grants.add_missing(kind.3, right.clone()));
        let verbs: BTreeSet<&str> = lookups.iter().map(|(lookup, _)| lookup.verb).collect();
        let objects: BTreeSet<&ObjectRef> = lookups.iter().map(|(lookup, _)| &*lookup.object).collect();
        let for_others = match objects.len() {
            0 | 1 => String::new(),
            number => format!(" and {}", text::count(number - 1, "other object")),
        };
        let (first, right) = &lookups[0];
        let message =
            format!("not permitted to {}, which is needed for {}{for_others}", asked(kind, &verbs), first.object);
        let violation = violation(&rules::REQUEST, 0, message, grants, right, vec!["kind".into()]);
        Violation { subject: Subject::Object((*first.object).clone()), at: Vec::new(), ..violation }
    });
    causes.collect()
}

/// What a request is about, apart from verb and name: group, resource, version and namespace, and whether it is a list.
type Kind<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, bool);

/// Which object (`None` for a list), and the change that it is needed for.
type Needed<'a> = (usize, Option<&'a str>);

/// Objects of one kind in one place that miss the same verbs are one cause.
fn requests(plan: &Plan, needs: &[Need], held: &Held, rule: &'static RuleDoc) -> Vec<Violation> {
    // Of each object, and of each list, the verbs that are missing.
    let mut missing: BTreeMap<(usize, Kind<'_>, Option<&str>), BTreeSet<&str>> = BTreeMap::new();
    for Need { change, namespace, right } in needs {
        let Right::Request { atom, version } = right else { continue };
        let Atom::Resource { group, resource, name, verb } = atom else { continue };
        let namespace = namespace.as_deref();
        if !held.has(namespace, atom) {
            let kind = (group.as_str(), resource.as_str(), version.as_str(), namespace, name.is_none());
            missing.entry((*change, kind, name.as_deref())).or_default().insert(verb);
        }
    }
    let mut causes: BTreeMap<(Kind<'_>, BTreeSet<&str>), Vec<Needed<'_>>> = BTreeMap::new();
    for ((change, kind, name), verbs) in missing {
        causes.entry((kind, verbs)).or_default().push((change, name));
    }
    let mut violations: Vec<Violation> = causes
        .into_iter()
        .map(|((kind @ (group, resource, _, namespace, _), verbs), objects)| {
            let mut grants = Grants::of(plan);
            for (_, name) in &objects {
                verbs.iter().for_each(|verb| grants.add_missing(namespace, atom(group, resource, *name, verb)));
            }
            let mut message = format!("not permitted to {}", asked(kind, &verbs));
            if objects.len() > 1 {
                message.push_str(&format!(": {}", text::count(objects.len(), "object")));
            }
            let (change, name) = objects[0];
            violation(rule, change, message, grants, &atom(group, resource, name, ""), vec!["kind".into()])
        })
        .collect();
    violations.sort_by(|a, b| a.subject.cmp(&b.subject));
    violations
}

/// `"create" apps/v1, Resource=deployments (nor to "get", "patch") in namespace "prod"`: kapp's words for the verb that
/// says most, and then the others.
fn asked((group, resource, version, namespace, is_list): Kind<'_>, verbs: &BTreeSet<&str>) -> String {
    let main = ["create", "patch", "delete"].into_iter().find(|verb| verbs.contains(verb));
    let main = main.or(verbs.first().copied()).unwrap_or_default();
    let mut text = format!("{main:?} {}", in_go(group, version, resource));
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
    held: &Held,
    escalate: &Atom,
    rules: &BTreeSet<Atom>,
    aggregates: bool,
) -> BTreeSet<Atom> {
    let namespace = need.namespace.as_deref();
    match aggregates {
        _ if held.has(namespace, escalate) => BTreeSet::new(),
        true => held.lacking(namespace, &Atom::everything().into()),
        false => held.lacking(namespace, rules),
    }
}

fn write_role(plan: &Plan, need: &Need, escalate: &Atom, missing: &BTreeSet<Atom>, aggregates: bool) -> Violation {
    let namespace = need.namespace.as_deref();
    let Resource { group, version, plural, .. } = &*plan.changes[need.change].resource;
    let what = in_go(group, version, plural);
    let mut grants = Grants::of(plan);
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
            said(missing, namespace)
        );
        (message, "rules")
    };
    violation(&rules::ROLE, need.change, message, grants, escalate, vec![at.into()])
}

fn write_binding(
    plan: &Plan,
    need: &Need,
    held: &Held,
    bind: &Atom,
    role: &RoleRef,
    roles: &BTreeMap<RoleRef, Granted>,
    told: &[(Option<&str>, BTreeSet<Atom>)],
) -> Option<Violation> {
    let namespace = need.namespace.as_deref();
    if held.has(namespace, bind) {
        return None;
    }
    let object = role.object();
    let mut grants = Grants::of(plan);
    grants.add_missing(namespace, bind.clone());
    let why = match roles.get(role) {
        Some(Ok(Some(rules))) => {
            let mut missing = held.lacking(namespace, rules);
            let here = told.iter().filter(|(place, _)| place.is_none() || *place == namespace);
            here.for_each(|(_, told)| missing.retain(|atom| !told.contains(atom)));
            if missing.is_empty() {
                return None;
            }
            format!("and does not hold all of its rules: {}", said(&missing, namespace))
        }
        Some(Ok(None)) | None => format!("and there is no {object} whose rules it could hold"),
        // The identity may neither read the role nor bind it by name: name the right that suffices in any case.
        Some(Err(problem)) => format!("and it is unknown whether it holds all of its rules: {}", problem.message),
    };
    let what = in_go(rbac::GROUP, "v1", role.plural());
    let message = format!("not permitted to \"bind\" {what} {:?}, {why}", role.name);
    Some(violation(&rules::BINDING, need.change, message, grants, bind, vec!["roleRef".into(), "name".into()]))
}

/// The first of some rights, in words: `"list" configmaps`.
fn said(missing: &BTreeSet<Atom>, namespace: Option<&str>) -> String {
    let words = missing.iter().take(NAMED).map(|atom| match atom {
        Atom::Resource { group, resource, name, verb } => {
            let dot = if group.is_empty() { "" } else { "." };
            let name = name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
            format!("{verb:?} {resource}{dot}{group}{name}")
        }
        Atom::Url { url, verb } => format!("{verb:?} {url}"),
    });
    let mut words: Vec<String> = words.collect();
    if missing.len() > NAMED {
        words.push(format!("{} more", missing.len() - NAMED));
    }
    let place = namespace.map_or(String::new(), |namespace| format!(" in namespace {namespace:?}"));
    format!("{}{place}", words.join(", "))
}

fn violation(
    rule: &'static RuleDoc,
    change: usize,
    message: String,
    grants: Grants,
    atom: &Atom,
    at: Vec<Step>,
) -> Violation {
    let yaml = grants.yaml(&name_for(atom, &grants), &[]);
    let help = format!(
        "grant this to the identity that deploys (gantry permissions prints everything that the deploy needs):\n{}",
        yaml.trim_end()
    );
    Violation {
        subject: change.into(),
        rule: rule.name.into(),
        severity: rule.severity,
        version: None,
        path: None,
        message,
        fact: None,
        schema_changes: Vec::new(),
        complaint: None,
        documented: None,
        breaks: rule.breaks.to_vec(),
        verdict: None,
        semantic: None,
        witnesses: Vec::new(),
        affected: None,
        evidence: None,
        help,
        wording: None,
        explain: Some(rule.name.into()),
        at,
        label: None,
    }
}

/// A name of their own for just these rights, so that those of several findings, and of the next run, can be applied one
/// after the other and none replaces another.
fn name_for(atom: &Atom, grants: &Grants) -> String {
    let about = match atom {
        Atom::Resource { resource, .. } if resource == rbac::ALL => "all".to_owned(),
        Atom::Resource { group, resource, verb, name } => {
            let dot = if group.is_empty() { "" } else { "." };
            match (verb.as_str(), name) {
                ("escalate" | "bind", Some(name)) => format!("{verb}-{resource}-{name}"),
                // No name of an object has the slash of a subresource.
                _ => format!("{}{dot}{group}", resource.replace('/', "-")),
            }
        }
        Atom::Url { .. } => "urls".to_owned(),
    };
    // As short as the hashes in the names of Pods.
    format!("gantry-{about}-{:08x}", fnv128(grants.yaml("", &[]).as_bytes()) >> 96)
}

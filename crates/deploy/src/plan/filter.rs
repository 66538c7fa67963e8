//! `--filter`: objects that it leaves out are not shown, checked or written.

use std::str::FromStr;

use serde_json::Value;
use wildmatch::WildMatch;

use super::{Change, Plan};
use gantry_core::finding::Action;
use gantry_core::manifest::Manifest;
use gantry_core::options::InvalidOption;
use gantry_core::problem::did_you_mean;

const KEYS: [&str; 6] = ["kind", "name", "ns", "group", "label", "op"];
const OPERATIONS: [(&str, Action); 7] = [
    ("create", Action::Create),
    ("adopt", Action::Adopt),
    ("replace", Action::Replace),
    ("update", Action::Update),
    ("unchanged", Action::Unchanged),
    ("skip", Action::Skip),
    ("installed-by-olm", Action::InstalledByOlm),
];

/// `kind=Deployment,ns=web,op=update`: matches objects that have all of this.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    kind: Option<WildMatch>,
    name: Option<WildMatch>,
    namespace: Option<WildMatch>,
    group: Option<WildMatch>,
    /// Labels of the manifest: the object has all of them, with these values.
    labels: Vec<(String, Option<WildMatch>)>,
    action: Option<Action>,
}

impl FromStr for Filter {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let mut filter = Filter::default();
        for pair in text.split(',') {
            let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not KEY=VALUE"))?;
            let (key, value) = (key.trim(), value.trim());
            let is_repeated = match key {
                // Kinds are matched like kubectl does.
                "kind" => filter.kind.replace(WildMatch::new_case_insensitive(value)).is_some(),
                "name" => filter.name.replace(WildMatch::new(value)).is_some(),
                "ns" => filter.namespace.replace(WildMatch::new(value)).is_some(),
                "group" => filter.group.replace(WildMatch::new(value)).is_some(),
                "label" => {
                    let (label, value) = value.split_once('=').map_or((value, None), |(label, of)| (label, Some(of)));
                    filter.labels.push((label.to_owned(), value.map(WildMatch::new)));
                    false
                }
                "op" => {
                    let known = OPERATIONS.iter().find(|(word, _)| *word == value);
                    let words = OPERATIONS.map(|(word, _)| word).join(", ");
                    let (_, action) = known.ok_or_else(|| format!("unknown op {value:?}; known are {words}"))?;
                    filter.action.replace(*action).is_some()
                }
                _ => {
                    let near = did_you_mean(key, KEYS).map(|near| format!("; did you mean {near:?}?"));
                    let known = KEYS.join(", ");
                    return Err(format!(
                        "unknown key {key:?}{}",
                        near.unwrap_or_else(|| format!("; known are {known}"))
                    )
                    .into());
                }
            };
            if is_repeated {
                return Err(format!("{key} is given twice; repeat --filter for objects that match either").into());
            }
        }
        Ok(filter)
    }
}

impl Filter {
    /// Matches a manifest before its namespace is filled in.
    fn may_match(&self, manifest: &Manifest) -> bool {
        let fits = |wanted: &Option<WildMatch>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted.matches(text));
        let object = &manifest.object;
        fits(&self.kind, &object.kind)
            && fits(&self.name, &object.name)
            && fits(&self.group, object.group())
            && (self.labels.is_empty() || self.has_labels(&manifest.raw.value()))
    }

    fn has_labels(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|(label, wanted)| {
            let value = labels.get(label).and_then(Value::as_str);
            value.is_some_and(|value| wanted.as_ref().is_none_or(|wanted| wanted.matches(value)))
        })
    }

    fn matches(&self, manifest: &Manifest) -> bool {
        let namespace = manifest.object.namespace.as_deref().unwrap_or_default();
        self.may_match(manifest) && self.namespace.as_ref().is_none_or(|wanted| wanted.matches(namespace))
    }

    fn matches_change(&self, change: &Change) -> bool {
        // The action of an object that could not be read may be any.
        let is_action = |action| action == change.reported_action() || change.action == Action::Unknown;
        self.matches(&change.desired) && self.action.is_none_or(is_action)
    }
}

/// Whether any filter may match the manifest.
pub(crate) fn may_match(filters: &[Filter], manifest: &Manifest) -> bool {
    filters.is_empty() || filters.iter().any(|filter| filter.may_match(manifest))
}

/// Removes everything from the plan that no filter matches.
pub fn apply(filters: &[Filter], plan: &mut Plan) {
    if filters.is_empty() {
        return;
    }
    plan.changes.retain(|change| filters.iter().any(|filter| filter.matches_change(change)));
    plan.unplaced.retain(|unplaced| filters.iter().any(|filter| filter.matches(&unplaced.manifest)));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use gantry_core::manifest::{self, ManifestSource};

    fn manifest(yaml: &str) -> Manifest {
        let source = Arc::new(ManifestSource::new("m.yaml", yaml.to_owned()));
        manifest::read(&source).unwrap().manifests.remove(0)
    }

    #[test]
    fn all_parts_of_a_filter_have_to_match() {
        let web = manifest(
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: front, namespace: web, labels: {app: front, tier: a}}}",
        );
        for (filter, expected) in [
            ("kind=Deployment", true),
            ("kind=deployment,ns=web", true),
            ("kind=Deployment,ns=other", false),
            ("name=f*t,group=apps", true),
            ("group=", false),
            ("name=fron", false),
            ("ns=", false),
            ("label=app=front", true),
            ("label=app,label=tier=*", true),
            ("label=app=front,label=tier=b", false),
            ("label=team", false),
        ] {
            assert_eq!(filter.parse::<Filter>().unwrap().matches(&web), expected, "{filter}");
        }
        let cluster = manifest("{apiVersion: v1, kind: Namespace, metadata: {name: web}}");
        assert!("group=,ns=".parse::<Filter>().unwrap().matches(&cluster));
        assert!(!"label=app".parse::<Filter>().unwrap().matches(&cluster));
    }

    #[test]
    fn a_mistake_is_named() {
        for (filter, said) in [
            ("kind", "\"kind\" is not KEY=VALUE"),
            ("kid=Deployment", "unknown key \"kid\"; did you mean \"kind\"?"),
            ("namespace=a", "unknown key \"namespace\""),
            (
                "op=updated",
                "unknown op \"updated\"; known are create, adopt, replace, update, unchanged, skip, installed-by-olm",
            ),
            ("kind=A,kind=B", "kind is given twice; repeat --filter"),
        ] {
            let error = filter.parse::<Filter>().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}

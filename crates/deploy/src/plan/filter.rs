//! `--filter`: objects that it leaves out are not shown, checked or written.

use std::str::FromStr;

use wildmatch::WildMatch;

use super::{Change, Plan};
use gantry_core::finding::Action;
use gantry_core::options::InvalidOption;
use gantry_core::problem::did_you_mean;
use gantry_core::resource::ObjectRef;

const KEYS: [&str; 5] = ["kind", "name", "ns", "group", "op"];
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
    fn may_match(&self, object: &ObjectRef) -> bool {
        let fits = |wanted: &Option<WildMatch>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted.matches(text));
        fits(&self.kind, &object.kind) && fits(&self.name, &object.name) && fits(&self.group, object.group())
    }

    fn matches(&self, object: &ObjectRef) -> bool {
        let namespace = object.namespace.as_deref().unwrap_or_default();
        self.may_match(object) && self.namespace.as_ref().is_none_or(|wanted| wanted.matches(namespace))
    }

    fn matches_change(&self, change: &Change) -> bool {
        // The action of an object that could not be read may be any.
        let is_action = |action| action == change.reported_action() || change.action == Action::Unknown;
        self.matches(&change.desired.object) && self.action.is_none_or(is_action)
    }
}

/// Whether any filter may match the manifest.
pub(crate) fn may_match(filters: &[Filter], object: &ObjectRef) -> bool {
    filters.is_empty() || filters.iter().any(|filter| filter.may_match(object))
}

/// Removes everything from the plan that no filter matches.
pub fn apply(filters: &[Filter], plan: &mut Plan) {
    if filters.is_empty() {
        return;
    }
    plan.changes.retain(|change| filters.iter().any(|filter| filter.matches_change(change)));
    plan.unplaced.retain(|unplaced| filters.iter().any(|filter| filter.matches(&unplaced.manifest.object)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectRef {
        ObjectRef {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        }
    }

    #[test]
    fn all_parts_of_a_filter_have_to_match() {
        let web = object("apps/v1", "Deployment", Some("web"), "front");
        for (filter, expected) in [
            ("kind=Deployment", true),
            ("kind=deployment,ns=web", true),
            ("kind=Deployment,ns=other", false),
            ("name=f*t,group=apps", true),
            ("group=", false),
            ("name=fron", false),
            ("ns=", false),
        ] {
            assert_eq!(filter.parse::<Filter>().unwrap().matches(&web), expected, "{filter}");
        }
        let cluster = object("v1", "Namespace", None, "web");
        assert!("group=,ns=".parse::<Filter>().unwrap().matches(&cluster));
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

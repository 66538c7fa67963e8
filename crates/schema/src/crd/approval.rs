//! API groups of the Kubernetes community: their CRDs must be annotated with the approval of the API.

use super::found::Errors;
use super::model::Crd;
use crate::golang::url::is_absolute_url;
use crate::gotext;
use crate::path::Path;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(PartialEq, Eq)]
enum State {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn annotation<'v>(crd: &Crd<'v>) -> &'v str {
    let value = crd.raw.and_then(|raw| raw.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str());
    value.unwrap_or_default()
}

fn state(annotation: &str) -> State {
    match annotation {
        "" => State::Missing,
        text if text.starts_with("unapproved") => State::Bypassed,
        text if is_absolute_url(text) => State::Approved,
        _ => State::Invalid,
    }
}

pub fn check(new: &Crd, old: Option<&Crd>, errors: &mut Errors) {
    let is_protected = |domain: &str| new.group == domain || new.group.ends_with(&format!(".{domain}"));
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return;
    }
    let now = state(annotation(new));
    if old.is_some_and(|old| state(annotation(old)) == now) {
        return;
    }
    let metadata = Path::Name(&Path::Root, "metadata");
    let annotations = Path::Name(&metadata, "annotations");
    let path = &Path::Key(&annotations, ANNOTATION);
    let rule = format!("protected groups must have approval annotation {}", gotext::quote(ANNOTATION));
    match now {
        State::Missing => errors.required(path, format!("{rule}, {MORE}")),
        State::Invalid => {
            let detail = format!("{rule} with either a URL or a reason starting with \"unapproved\", {MORE}");
            errors.invalid(path, annotation(new), detail);
        }
        State::Approved | State::Bypassed => {}
    }
}

//! API groups of the Kubernetes community: their CRDs must be annotated with the approval of the API.

use super::found::Errors;
use super::model::CrdModel;
use crate::path::LinkedPath;
use gantry_k8s_cel::golang::url::is_absolute_url;
use gantry_k8s_cel::gotext;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(PartialEq, Eq)]
enum ApprovalState {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn annotation<'v>(crd: &CrdModel<'v>) -> &'v str {
    let value = crd.raw.and_then(|raw| raw.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str());
    value.unwrap_or_default()
}

fn state(annotation: &str) -> ApprovalState {
    match annotation {
        "" => ApprovalState::Missing,
        text if text.starts_with("unapproved") => ApprovalState::Bypassed,
        text if is_absolute_url(text) => ApprovalState::Approved,
        _ => ApprovalState::Invalid,
    }
}

pub fn check(new: &CrdModel, old: Option<&CrdModel>, errors: &mut Errors) {
    let is_protected = |domain: &str| new.group == domain || new.group.ends_with(&format!(".{domain}"));
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return;
    }
    let now = state(annotation(new));
    if old.is_some_and(|old| state(annotation(old)) == now) {
        return;
    }
    let metadata = LinkedPath::Name(&LinkedPath::Root, "metadata");
    let annotations = LinkedPath::Name(&metadata, "annotations");
    let path = &LinkedPath::Key(&annotations, ANNOTATION);
    let rule = format!("protected groups must have approval annotation {}", gotext::quote(ANNOTATION));
    match now {
        ApprovalState::Missing => errors.required(path, format!("{rule}, {MORE}")),
        ApprovalState::Invalid => {
            let detail = format!("{rule} with either a URL or a reason starting with \"unapproved\", {MORE}");
            errors.invalid(path, annotation(new), detail);
        }
        ApprovalState::Approved | ApprovalState::Bypassed => {}
    }
}

//! Hints for files that are not manifests.
//!
//! Charts and kustomizations are in the same directories as manifests and look like them. To say what the file is and
//! how to get manifests from it helps more than a parse error.

use std::path::Path;

/// What a document is instead of a manifest, and what to do.
pub(super) struct Hint {
    pub message: &'static str,
    pub help: &'static str,
}

const TEMPLATE: Hint = Hint {
    message: "this is a Helm template, not a manifest",
    help: "name its chart, the folder with Chart.yaml: -f CHART; gantry renders it with Helm",
};

const YTT: Hint =
    Hint { message: "this is a ytt template, not a manifest", help: "render it first: ytt -f DIR | gantry check -f -" };

const CHART: Hint = Hint {
    message: "this is part of a Helm chart, not a manifest",
    help: "name the folder with Chart.yaml alone: -f CHART; gantry renders it with Helm",
};

const KUSTOMIZATION: Hint = Hint {
    message: "this is a Kustomization, which only names manifests",
    help: "name its folder with -k: gantry check -k DIR; gantry renders it with kustomize or kubectl",
};

/// A hint for a text that is not valid YAML, or an object without a name.
pub(super) fn for_broken(document: &str) -> Option<Hint> {
    // `#@` begins an expression of ytt, on a line of its own or after a key. In other texts it is a comment.
    let is_ytt = || document.lines().any(|line| line.trim_start().starts_with("#@") || line.contains(": #@"));
    has_template(document).then_some(TEMPLATE).or_else(|| is_ytt().then_some(YTT))
}

/// A hint for a document that is YAML but has no apiVersion or no kind.
pub(super) fn for_untyped(file: &str, document: &str) -> Option<Hint> {
    let name = Path::new(file).file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    match stem {
        "kustomization" => Some(KUSTOMIZATION),
        "chart" | "values" => Some(CHART),
        _ if stem.starts_with("values-") || stem.starts_with("values.") => Some(CHART),
        _ => for_broken(document),
    }
}

/// A hint for a document of this kind.
pub(super) fn for_kind(group: &str, kind: &str) -> Option<Hint> {
    // Flux has a kind of the same name, which is an object like any other.
    let kustomize = group == "kustomize.config.k8s.io" || (group.is_empty() && kind == "Kustomization");
    kustomize.then_some(KUSTOMIZATION)
}

/// Whether the text contains `{{ … }}`. This is valid inside strings of a manifest, but in an invalid document it means
/// a template.
fn has_template(document: &str) -> bool {
    document.find("{{").is_some_and(|start| document[start..].contains("}}"))
}

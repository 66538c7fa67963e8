//! The paths of the parts of a CRD, as steps from its root.

use crate::resource::Step;

fn path<const N: usize>(keys: [&str; N]) -> Vec<Step> {
    keys.map(Step::from).to_vec()
}

/// `spec.key`
pub fn spec(key: &str) -> Vec<Step> {
    path(["spec", key])
}

/// `spec.names.key`
pub fn name(key: &str) -> Vec<Step> {
    path(["spec", "names", key])
}

/// `spec.versions`
pub fn versions() -> Vec<Step> {
    spec("versions")
}

/// `spec.versions[index]`
pub fn version(index: usize) -> Vec<Step> {
    let mut steps = versions();
    steps.push(index.into());
    steps
}

/// `spec.versions[index].key`
pub fn of_version(index: usize, key: &str) -> Vec<Step> {
    let mut steps = version(index);
    steps.push(key.into());
    steps
}

/// `spec.versions[index].subresources.name`
pub fn subresource(index: usize, name: &str) -> Vec<Step> {
    let mut steps = of_version(index, "subresources");
    steps.push(name.into());
    steps
}

/// `spec.versions[index].schema.openAPIV3Schema`
pub fn schema(index: usize) -> Vec<Step> {
    let mut steps = of_version(index, "schema");
    steps.push("openAPIV3Schema".into());
    steps
}

/// `spec.conversion`
pub fn conversion() -> Vec<Step> {
    spec("conversion")
}

/// `spec.conversion.webhook.key`
pub fn webhook(key: &str) -> Vec<Step> {
    path(["spec", "conversion", "webhook", key])
}

/// `spec.conversion.webhook.clientConfig.key`
pub fn client_config(key: &str) -> Vec<Step> {
    path(["spec", "conversion", "webhook", "clientConfig", key])
}

/// The fields that the server moves from the versions to `spec` if all versions agree: it validates a CRD in an older
/// form. Each entry is the name in `spec` and the name in a version.
pub const OF_ALL_VERSIONS: [(&str, &str); 5] = [
    ("validation", "schema"),
    ("schema", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// The steps below the schema of a version, if the path is in such a schema.
pub fn below_schema(steps: &[Step]) -> Option<&[Step]> {
    let [spec, versions, Step::Index(_), name, keyword, below @ ..] = steps else { return None };
    let names = [(spec, "spec"), (versions, "versions"), (name, "schema"), (keyword, "openAPIV3Schema")];
    names.into_iter().all(|(step, name)| *step == Step::from(name)).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_in_a_schema_have_steps_below_it() {
        let mut node = schema(3);
        assert_eq!(node.len(), 5);
        assert_eq!(below_schema(&node), Some(&[][..]));
        node.push("properties".into());
        assert_eq!(below_schema(&node), Some(&["properties".into()][..]));
        for other in [versions(), version(3), of_version(3, "schema"), subresource(3, "scale")] {
            assert_eq!(below_schema(&other), None, "{other:?}");
        }
    }
}

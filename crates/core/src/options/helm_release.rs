//! A release that Helm has deployed, as one side of a comparison.

use std::fmt;
use std::str::FromStr;

use super::InvalidOption;
use crate::resource::is_dns_label;

/// The maximum length of a name, as in Helm.
const LONGEST_NAME: usize = 53;

/// `helm:[NAMESPACE/]RELEASE[:REVISION]`: the manifests that Helm recorded with a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmReleaseSpec {
    /// The namespace of the release; `None` for that of the run.
    pub namespace: Option<String>,
    /// The name of the release.
    pub name: String,
    /// The revision; `None` for the one that is deployed.
    pub revision: Option<u32>,
}

impl HelmReleaseSpec {
    /// The text before the rest of the syntax.
    pub const PREFIX: &str = "helm:";

    /// The release that an argument of `-f` names; `None` if it names something else.
    ///
    /// # Errors
    /// The argument begins as such a name, but is none.
    pub fn of_argument(argument: &str) -> Option<Result<Self, InvalidOption>> {
        argument.strip_prefix(Self::PREFIX).map(str::parse)
    }
}

impl fmt::Display for HelmReleaseSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)?;
        match self.revision {
            Some(revision) => write!(f, ":{revision}"),
            None => Ok(()),
        }
    }
}

impl FromStr for HelmReleaseSpec {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let (release, revision) = match text.split_once(':') {
            Some((release, revision)) => (release, Some(revision)),
            None => (text, None),
        };
        let revision = revision.map(|revision| match revision.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{revision:?} is not a revision number: helm history RELEASE lists the revisions")),
        });
        let (namespace, name) = match release.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, release),
        };
        if name.is_empty() {
            return Err("the name of a release is missing after helm:".into());
        }
        if name.len() > LONGEST_NAME || !name.split('.').all(is_dns_label) {
            return Err(format!("{name:?} is not a valid name for a Helm release").into());
        }
        if let Some(namespace) = namespace.filter(|namespace| !is_dns_label(namespace)) {
            return Err(format!("{namespace:?} is not a valid name for a namespace").into());
        }
        Ok(HelmReleaseSpec {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            revision: revision.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_namespace_and_a_revision_or_not() {
        for text in ["helm:shop", "helm:prod/shop", "helm:prod/shop:3", "helm:my.shop-2:10"] {
            let spec = HelmReleaseSpec::of_argument(text).expect("a release").expect("valid");
            assert_eq!(spec.to_string(), text);
        }
        let spec: HelmReleaseSpec = "prod/shop:3".parse().unwrap();
        assert_eq!((spec.namespace.as_deref(), &*spec.name, spec.revision), (Some("prod"), "shop", Some(3)));
        assert!(HelmReleaseSpec::of_argument("helm").is_none());
        for wrong in ["", "a/", "/", "/a", "a:0", "a:x", "a:", "a:1:2", "A", "a,b", "-a", "a b", "a/b/c"] {
            assert!(wrong.parse::<HelmReleaseSpec>().is_err(), "{wrong:?}");
        }
        assert!("a".repeat(54).parse::<HelmReleaseSpec>().is_err());
    }
}

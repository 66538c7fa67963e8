//! Releases of Kubernetes next to the pinned one.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::binaries::{PINNED_KUBERNETES, pinned};

const TABLE: &str = include_str!("../control-plane/releases.txt");

/// The releases of Kubernetes that [`ControlPlane::start_release`](crate::ControlPlane::start_release) can start, such
/// as `1.30`, from the oldest to the newest.
pub fn releases() -> Vec<&'static str> {
    let mut versions: Vec<&str> = table().map(|release| release.version).collect();
    versions.push(pinned(PINNED_KUBERNETES));
    let mut releases: Vec<&str> = versions.into_iter().map(release_of).collect();
    releases.sort_by_key(|release| release.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>());
    releases
}

/// A release that is built from its own module.
#[derive(Clone, Copy)]
pub(crate) struct OtherRelease {
    /// Such as `v1.30.14`.
    pub version: &'static str,
    checksum: &'static str,
    pub tags: &'static str,
}

impl OtherRelease {
    /// The entry of a release such as `1.30`; `None` is the pinned one.
    ///
    /// # Panics
    ///
    /// If neither knows the release.
    pub fn find(release: &str) -> Option<Self> {
        if release == release_of(pinned(PINNED_KUBERNETES)) {
            return None;
        }
        let found = table().find(|entry| release_of(entry.version) == release);
        Some(found.unwrap_or_else(|| panic!("there is no Kubernetes {release}, but {:?}", releases())))
    }

    /// The text of go.mod and go.sum from which its commands are built.
    pub fn module(self) -> [String; 2] {
        let [go_mod, go_sum] = module_requiring(self.version);
        [go_mod, format!("{go_sum}k8s.io/kubernetes {} {}\n", self.version, self.checksum)]
    }
}

/// The text of go.mod and go.sum that require a version of Kubernetes, such as `v1.30.14`: those of Kubernetes itself,
/// with its staging modules from the module proxy. Programs in this module use the packages of that version; `go run
/// -mod=mod` adds the checksums of Kubernetes and of its staging modules.
///
/// # Panics
///
/// If Go cannot download the version.
pub fn module_requiring(version: &str) -> [String; 2] {
    let folder = downloaded(version);
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
    };
    let published = version.replacen("v1.", "v0.", 1);
    let line = |line: &str| match line.split_once("=> ./staging/src/") {
        Some((replace, module)) => format!("{replace}=> {module} {published}\n"),
        None if line.starts_with("module ") => "module example.com/control-plane\n".to_owned(),
        None => format!("{line}\n"),
    };
    let go_mod: String = read("go.mod").lines().map(line).collect();
    [format!("{go_mod}\nrequire k8s.io/kubernetes {version}\n"), read("go.sum")]
}

fn table() -> impl Iterator<Item = OtherRelease> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words = line.split_whitespace();
        let mut next = || words.next().unwrap_or_default();
        OtherRelease { version: next(), checksum: next(), tags: next() }
    })
}

/// `1.30` of `v1.30.14`.
fn release_of(version: &str) -> &str {
    let release = version.trim_start_matches('v');
    release.rsplit_once('.').map_or(release, |(release, _)| release)
}

/// The folder of a version of Kubernetes in Go's module cache.
fn downloaded(version: &str) -> PathBuf {
    let module = format!("k8s.io/kubernetes@{version}");
    let output = Command::new("go")
        .args(["mod", "download", "-json", &module])
        .current_dir(std::env::temp_dir())
        .env("GOWORK", "off")
        .env_remove("GOFLAGS")
        .output()
        .unwrap_or_else(|e| panic!("`go`, which builds {module}, does not start ({e})"));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let folder = answer["Dir"].as_str();
    folder.map(PathBuf::from).unwrap_or_else(|| {
        panic!("{module} cannot be downloaded: {answer} {}", String::from_utf8_lossy(&output.stderr))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_is_listed_once_with_a_checksum() {
        let releases = releases();
        assert_eq!(releases, ["1.28", "1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"]);
        for release in table() {
            assert!(release.checksum.starts_with("h1:") && release.checksum.ends_with('='), "{}", release.version);
        }
        assert!(OtherRelease::find("1.36").is_none());
        assert_eq!(
            OtherRelease::find("1.30").map(|found| (found.version, found.tags)),
            Some(("v1.30.14", "providerless"))
        );
    }
}

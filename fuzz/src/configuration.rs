//! Configuration: a `-c` file, and the same text among the manifests, produce settings, or problems with a place.

use std::sync::Arc;

use gantry_core::manifest::{self, ManifestSource};
use gantry_core::problem::Error;
use gantry_deploy::config::Loader;
use gantry_preflight::registry;

pub fn run(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, data).expect("a file");
    let known = registry::known();
    let lines = 1 + data.iter().filter(|byte| matches!(byte, b'\n' | b'\r' | 0x85 | 0xa8 | 0xa9)).count();
    let check = |loaded: Result<gantry_deploy::config::LoadedSettings, Error>| match loaded {
        Ok(loaded) => assert!(!loaded.settings.checks.iter().any(|check| check.name.is_empty())),
        Err(error) => {
            assert!(!error.problems().is_empty());
            for problem in error.problems() {
                assert!(problem.at.as_ref().is_none_or(|place| place.line <= lines + 1), "{problem:?}");
            }
        }
    };
    let outside = Loader { working_directory: folder.path().to_owned(), ..Loader::default() };
    check(Loader { files: vec![file.clone()], ..outside.clone() }.load([], &known));

    let text = String::from_utf8_lossy(data).into_owned();
    let source = Arc::new(ManifestSource::new("fuzz.yaml", text));
    if let Ok(loaded) = manifest::read(&source) {
        check(outside.load(loaded.configs.iter().map(|config| &config.origin), &known));
    }
}

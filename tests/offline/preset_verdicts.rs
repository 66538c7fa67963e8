//! Compares the presets of other tools with verdicts of the tools themselves.
//!
//! Not part of a normal run: it needs a collection of real upgrades, which this repository cannot include. A folder
//! contains `PROJECT/TAG/CRD.yaml` and `verdicts.json`, a list of `{project, from, to, crd, crdify, olm-v1}`. The last
//! two are the tool's findings as `[version, path, validation]`:
//!
//! ```text
//! GANTRY_TEST_CORPUS=FOLDER cargo test --test offline preset_verdicts:: -- --ignored --nocapture
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gantry_core::crd::CrdPair;
use gantry_preflight::crd_upgrade_safety::presets::options::CrdifyOptions;
use gantry_preflight::crd_upgrade_safety::presets::{self, PresetTool};
use serde_json::Value;

type Found = BTreeSet<(String, String, String)>;

fn crd(corpus: &Path, entry: &Value, tag: &str) -> String {
    let text = |key: &str| entry[key].as_str().unwrap();
    let path: PathBuf = corpus.join(text("project")).join(text(tag)).join(format!("{}.yaml", text("crd")));
    let yaml = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    gantry_yaml::parse(&yaml).unwrap().unwrap().to_value().to_string()
}

fn expected(entry: &Value, tool: &str) -> Found {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entry[tool].as_array().unwrap().iter().map(|f| (text(&f[0]), text(&f[1]), text(&f[2]))).collect()
}

#[test]
#[ignore = "needs a collection of real upgrades"]
fn verdicts_of_presets_are_those_of_the_tools() {
    let corpus = PathBuf::from(std::env::var_os("GANTRY_TEST_CORPUS").expect("GANTRY_TEST_CORPUS names the folder"));
    let verdicts = std::fs::read_to_string(corpus.join("verdicts.json")).unwrap();
    let verdicts: Vec<Value> = serde_json::from_str(&verdicts).unwrap();
    let tools = [
        ("crdify", PresetTool::Crdify(CrdifyOptions::default())),
        ("olm-v1", PresetTool::Crdify(CrdifyOptions::olm_v1())),
    ];
    let mut wrong = Vec::new();
    for (name, tool) in &tools {
        let (mut same_set, mut blocked) = (0, 0);
        for entry in &verdicts {
            let (live, desired) = (crd(&corpus, entry, "from"), crd(&corpus, entry, "to"));
            let found: Found = presets::judge(&CrdPair::parse(&live, &desired).unwrap(), tool)
                .unwrap()
                .into_iter()
                .filter(|f| !f.off)
                .map(|f| (f.version.unwrap_or_default(), f.path.unwrap_or_default(), f.validation.to_owned()))
                .collect();
            let expected = expected(entry, name);
            let what = format!("{name} {} {} -> {} {}", entry["project"], entry["from"], entry["to"], entry["crd"]);
            blocked += usize::from(!found.is_empty());
            same_set += usize::from(found == expected);
            if found.is_empty() != expected.is_empty() {
                wrong.push(what.clone());
            }
            for extra in found.difference(&expected) {
                println!("{what}: only here: {extra:?}");
            }
            for missing in expected.difference(&found) {
                println!("{what}: only there: {missing:?}");
            }
        }
        println!("{name}: {} pairs, {blocked} blocked, {same_set} with the same findings", verdicts.len());
    }
    assert!(wrong.is_empty(), "other verdicts than the tools': {wrong:#?}");
}

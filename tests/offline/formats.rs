//! Report formats for other programs, as the built binary writes them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Every format that is written to a file, and the file's name.
const FORMATS: &[&str] = &["json", "yaml", "sarif", "junit", "markdown", "github", "gitlab", "html"];

/// A repository with manifests and a folder that represents a cluster, both below `deploy/`.
pub fn repository() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join(".git")).expect("a folder");
    let deploy = folder.path().join("deploy");
    for name in ["live", "breaking", "safe"] {
        fs::create_dir_all(deploy.join(name)).expect("a folder");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures").join(name).join("bakery.yaml");
        fs::copy(file, deploy.join(name).join("bakery.yaml")).expect("a copy");
    }
    folder
}

/// Runs gantry in `deploy/` of a repository.
pub fn gantry(repository: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    command.args(arguments).current_dir(repository.path().join("deploy"));
    command.env_clear().env("HOME", repository.path()).output().expect("gantry runs")
}

/// The reports of one check in every format, each in its own file, with the expected exit code.
fn written(repository: &TempDir, arguments: &[&str], code: i32) -> Vec<(&'static str, String)> {
    let outputs: Vec<String> = FORMATS.iter().map(|format| format!("{format}=out.{format}")).collect();
    let outputs = outputs.iter().flat_map(|output| ["-o", output]);
    let ran = gantry(repository, &arguments.iter().copied().chain(outputs).collect::<Vec<_>>());
    assert_eq!(ran.status.code(), Some(code), "{}", String::from_utf8_lossy(&ran.stderr));
    let read = |format: &&'static str| {
        let path = repository.path().join("deploy").join(format!("out.{format}"));
        (*format, fs::read_to_string(path).expect("a report"))
    };
    FORMATS.iter().map(read).collect()
}

fn report_in<'a>(written: &'a [(&str, String)], format: &str) -> &'a str {
    &written.iter().find(|(name, _)| *name == format).expect("a format").1
}

fn json(written: &[(&str, String)], format: &str) -> Value {
    serde_json::from_str(report_in(written, format)).expect("JSON")
}

#[test]
fn one_run_writes_every_format() {
    let repository = repository();
    let written = written(&repository, &["check", "-f", "breaking", "--target", "dir:live"], 3);
    let report = json(&written, "json");
    let findings = report["checks"][0]["findings"].as_array().expect("findings");

    let sarif = json(&written, "sarif");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), findings.len());
    for (result, finding) in results.iter().zip(findings) {
        assert_eq!(result["ruleId"], finding["rule"]);
        let at = &result["locations"][0]["physicalLocation"];
        assert_eq!(at["artifactLocation"]["uri"], "deploy/breaking/bakery.yaml", "from the root of the repository");
        // What was removed is shown where it stood, and the message names the other place.
        let is_at_source = at["region"]["startLine"] == finding["source"]["line"];
        let message = result["message"]["text"].as_str().expect("a message");
        let parent = format!("(it was below breaking/bakery.yaml:{}", finding["source"]["line"]);
        assert!(is_at_source || message.contains(&parent), "{finding:#}");
    }
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(rules.iter().all(|rule| rule["help"]["markdown"].as_str().is_some_and(|text| text.len() > 100)));

    let gitlab = json(&written, "gitlab");
    let entries = gitlab.as_array().expect("a list");
    assert_eq!(entries.len(), findings.len());
    for (entry, result) in entries.iter().zip(results) {
        assert_eq!(entry["location"]["path"], "deploy/breaking/bakery.yaml");
        assert_eq!(entry["fingerprint"], result["partialFingerprints"]["gantryFinding/v1"]);
    }
    let github = report_in(&written, "github");
    let place = "file=deploy/breaking/bakery.yaml,line=45,col=17";
    assert!(github.starts_with(&format!("::error {place},title=NoMinimumTightened::")), "{github}");
    assert!(
        github.ends_with("::notice title=gantry::Would be blocked: 11 errors in 3 objects. Nothing was written.\n")
    );
    let junit = report_in(&written, "junit");
    let case = "<testcase name=\"customresourcedefinition/cakes.bakery.example.com\" classname=\"CRDUpgradeSafety\"";
    assert!(junit.contains(case) && junit.contains("tests=\"3\" skipped=\"0\" errors=\"0\" failures=\"3\""), "{junit}");
    let html = report_in(&written, "html");
    for part in [
        "<h1 class=\"error\">Would be blocked: 11 errors in 3 objects. Nothing was written.</h1>",
        // The lines of the manifest, and the changed keywords of the schema node.
        "<mark>minimum</mark>: 0\n",
        "<th scope=\"row\"><code>minimum</code></th><td class=\"removed\"><span class=\"faint\">absent</span></td>",
        "About the rule: <a href=\"#rule-NoMinimumTightened\">minimum of a field is added or raised</a>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let markdown = report_in(&written, "markdown");
    assert!(markdown.starts_with("### gantry: Would be blocked: 11 errors in 3 objects."), "{markdown}");
    assert!(
        markdown.contains("<details><summary>4 <code>NoMinimumTightened</code>: minimum of a field is added"),
        "{markdown}"
    );
}

/// Long texts are not kept but read again for the places of findings and for excerpts.
#[test]
fn long_texts_have_the_same_positions_and_excerpts() {
    let repository = repository();
    let check = || {
        let ran = gantry(&repository, &["check", "-f", "breaking", "--target", "dir:live", "--color", "never"]);
        String::from_utf8(ran.stdout).expect("text")
    };
    let short = check();
    assert!(short.contains("bakery.yaml:") && short.contains(" | "), "{short}");
    fs::write(repository.path().join("deploy/breaking/long.yaml"), "# Nothing.\n".repeat(500_000)).expect("a file");
    assert_eq!(check(), short);
}

#[test]
fn values_of_secrets_and_control_characters_reach_no_format() {
    let repository = repository();
    let deploy = repository.path().join("deploy");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: default}\nstringData:\n  password: hunter2-hunter2\n";
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd, namespace: default}\ndata: {a: \"\\e[2J\\u202Eodd\"}\n";
    fs::write(deploy.join("secret.yaml"), format!("{secret}{map}")).expect("written");
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: no-secrets\n  cel:\n    \
        match: {kinds: [Secret]}\n    expression: 'false'\n    messageExpression: \"'no ' + object.stringData.password\"\n    \
        fieldPath: stringData.password\n- name: no-odd\n  cel:\n    match: {kinds: [ConfigMap]}\n    expression: 'false'\n    \
        messageExpression: \"'no ' + object.data.a\"\n    fieldPath: data.a\n";
    fs::write(deploy.join("gantry.yaml"), config).expect("written");
    let written = written(&repository, &["check", "-f", "secret.yaml", "--target", "dir:live"], 3);
    for (format, text) in &written {
        assert!(text.contains("no-secrets") && text.contains("login"), "{format}: {text}");
        assert!(text.contains("no-odd") && text.contains("odd"), "{format}: {text}");
        assert!(!text.contains("hunter2"), "{format}: {text}");
        assert!(!text.chars().any(|c| c != '\n' && c.is_control() || c == '\u{202e}'), "{format}: {text:?}");
    }
}

#[test]
fn a_configuration_may_name_every_format() {
    use clap::ValueEnum;
    let schema = gantry_deploy::config::schema(&gantry_preflight::registry::known());
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let formats: Vec<String> = gantry_core::options::ReportFormat::value_variants()
        .iter()
        .map(|format| format.to_possible_value().expect("a name").get_name().to_owned())
        .collect();
    assert_eq!(formats, [&["human"], FORMATS, &["name"]].concat());
    let config =
        |output: &str| serde_json::json!({"apiVersion": "gantry.dev/v1alpha1", "kind": "Config", "output": [output]});
    assert!(formats.iter().all(|format| validator.is_valid(&config(&format!("{format}=out")))));
    assert!(!validator.is_valid(&config("xml")));
}

#[test]
fn unchecked_parts_are_in_every_format() {
    let repository = repository();
    let deploy = repository.path().join("deploy");
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: lost\n  cel:\n    \
        match: {kinds: [ClusterRole]}\n    expression: object.gone.field == 1\n";
    fs::write(deploy.join("gantry.yaml"), config).expect("written");
    let written = written(&repository, &["check", "-f", "safe", "--target", "dir:live"], 1);
    let report = json(&written, "json");
    assert_eq!(report["checks"][2]["status"], "failed", "{report:#}");
    let sarif = json(&written, "sarif");
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let told = invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().expect("a message");
    assert!(told.contains("lost could not check"), "{told}");
    assert!(report_in(&written, "junit").contains("<error message=\"could not check: "));
    assert!(report_in(&written, "markdown").contains("#### Not checked\n\n- `lost`: `"));
    assert!(report_in(&written, "github").starts_with("::error title=lost could not check::"));
    assert_eq!(json(&written, "gitlab")[0]["check_name"], "lost");
    assert!(report_in(&written, "html").contains("Could not be checked</h2><ul><li><b>lost</b>: "));
}

#[test]
fn a_project_file_replaces_only_reports_of_gantry() {
    let repository = repository();
    let deploy = repository.path().join("deploy");
    let config = |outputs: &str| {
        let text = format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\noutput: [{outputs}]\n");
        fs::write(deploy.join("gantry.yaml"), text).unwrap();
    };
    let check = || gantry(&repository, &["check", "-f", "safe", "--target", "dir:live"]);
    for format in FORMATS.iter().chain(&["human"]) {
        let file = deploy.join("out");
        config(&format!("{format}=out"));
        // The first run creates the file, and the second one replaces or continues it.
        for _ in 0..2 {
            let ran = check();
            assert_eq!(ran.status.code(), Some(0), "{format}: {}", String::from_utf8_lossy(&ran.stderr));
        }
        for foreign in ["", "#!/bin/sh\n", "PASSWORD=x\n", "{}\n", "<?xml version=\"1.0\"?>\n<a/>\n", "[1]\n"] {
            fs::write(&file, foreign).unwrap();
            let ran = check();
            let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!(ran.status.code(), Some(2), "{format}: {stderr}");
            assert!(stderr.contains("out exists, and gantry did not write it"), "{format}: {stderr}");
            assert_eq!(fs::read_to_string(&file).unwrap(), foreign, "{format}");
            // What the user names may be replaced.
            let named =
                gantry(&repository, &["check", "-f", "safe", "--target", "dir:live", "-o", &format!("{format}=out")]);
            assert_eq!(named.status.code(), Some(0), "{format}: {}", String::from_utf8_lossy(&named.stderr));
        }
        fs::remove_file(&file).unwrap();
    }
}

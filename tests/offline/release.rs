//! What makes a release trustworthy: pinned actions, checksums, a reproducible build, and statements that are true
//! (docs/trust.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use super::packaging::{run, text, yaml};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/usr/bin/env bash\nset -euo pipefail\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the last job of the release on the archives of the other jobs, with a fake of the host's program.
#[test]
fn a_release_fills_in_the_manifest_of_the_plugin() {
    let workflow = yaml(".github/workflows/release.yml");
    let steps = workflow["jobs"]["publish"]["steps"].as_array().unwrap();
    let publish = steps.iter().find(|step| step["env"]["BASE"].is_string()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["dist", "packaging/krew", "bin"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("packaging/krew/gantry.yaml"), at("packaging/krew/gantry.yaml")).unwrap();
    let platforms: Vec<&str> = workflow["jobs"]["build"]["strategy"]["matrix"]["include"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["platform"].as_str().unwrap())
        .collect();
    for platform in &platforms {
        fs::write(at(&format!("dist/gantry-{platform}.tar.gz")), "a").unwrap();
        fs::write(at(&format!("dist/gantry-{platform}.cdx.json")), "{}").unwrap();
        fs::write(at(&format!("dist/kubectl-gantry-{platform}.tar.gz")), format!("b {platform}")).unwrap();
    }
    let vex = "packaging/openvex.json";
    fs::copy(root.join(vex), at(vex)).unwrap();
    program(&at("bin/gh"), "echo \"$@\"");
    // Signs the bytes that it is given.
    program(&at("bin/cosign"), "for file; do :; done; [ \"$1 $2\" = 'sign-blob --yes' ]; sha256sum \"$file\" > \"$5\"");
    let script = format!("PATH='{}':$PATH\n{}", at("bin").display(), publish["run"].as_str().unwrap());
    let base = "https://host.example/download/v1.2.3";
    let ran = run(&script, folder.path(), &[("VERSION", "v1.2.3"), ("BASE", base)]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(text(&ran).starts_with("release create v1.2.3 --verify-tag"), "{}", text(&ran));
    let krew = fs::read_to_string(at("dist/krew.yaml")).unwrap();
    assert!(!krew.contains("\"{"), "{krew}");
    assert!(krew.contains(&format!("uri: \"{base}/kubectl-gantry-linux-arm64.tar.gz\"")), "{krew}");
    let sums = fs::read_to_string(at("dist/SHA256SUMS")).unwrap();
    let manifest: Value = serde_yaml::from_str(&krew).unwrap();
    for platform in manifest["spec"]["platforms"].as_array().unwrap() {
        let archive = platform["uri"].as_str().unwrap().rsplit('/').next().unwrap();
        let line = format!("{}  {archive}", platform["sha256"].as_str().unwrap());
        assert!(sums.contains(&line), "{line}: {sums}");
    }
    // Everything but the manifest of the plugin, which has checksums of its own.
    assert_eq!(sums.lines().count(), 3 * platforms.len() + 1);
    let signed = fs::read_to_string(at("dist/SHA256SUMS.sigstore.json")).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, sums.as_bytes());
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(signed.starts_with(&digest), "{signed}");
}

#[test]
fn every_action_is_pinned_by_commit() {
    let pinned = Regex::new(r"^(\S+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$").unwrap();
    let mut commits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in [".github/workflows", "packaging/github"] {
        for file in fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let text = fs::read_to_string(&file).unwrap();
            for uses in
                text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("uses: "))
            {
                // The user's choice, or a folder of the clone.
                if uses == "OWNER/gantry@COMMIT" || uses.starts_with("./") {
                    continue;
                }
                let found = pinned.captures(uses).unwrap_or_else(|| panic!("{}: {uses}", file.display()));
                commits.entry(found[1].to_owned()).or_default().insert(format!("{} {}", &found[2], &found[3]));
            }
        }
    }
    assert!(commits.len() >= 7, "{commits:?}");
    assert!(commits.values().all(|commits| commits.len() == 1), "one version everywhere: {commits:?}");
}

#[test]
fn a_job_writes_only_if_it_says_so() {
    for file in ["ci", "release", "releases"] {
        let workflow = yaml(&format!(".github/workflows/{file}.yml"));
        assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}), "{file}");
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            assert!(file == "release" || job["permissions"].is_null(), "{file}: {name}");
            let checkouts = job["steps"].as_array().unwrap().iter();
            let mut checkouts = checkouts
                .filter(|step| step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/checkout@")));
            assert!(checkouts.all(|step| step["with"]["persist-credentials"] == false), "{file}: {name}");
        }
    }
}

#[test]
fn the_statements_about_vulnerabilities_name_the_versions_of_the_program() {
    let vex: Value = serde_json::from_str(&read("packaging/openvex.json")).unwrap();
    let lock = read("Cargo.lock");
    let version = env!("CARGO_PKG_VERSION");
    let statements = vex["statements"].as_array().unwrap();
    assert!(!statements.is_empty());
    for statement in statements {
        let [product] = &statement["products"].as_array().unwrap()[..] else { panic!("{statement}") };
        assert_eq!(product["@id"], format!("pkg:cargo/gantry@{version}"));
        let [part] = &product["subcomponents"].as_array().unwrap()[..] else { panic!("{statement}") };
        let (name, used) = part["@id"].as_str().unwrap().strip_prefix("pkg:cargo/").unwrap().split_once('@').unwrap();
        let locked: Vec<&str> = lock
            .split("[[package]]\n")
            .filter_map(|package| package.strip_prefix(&format!("name = \"{name}\"\nversion = \"")))
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(locked, [used], "{name}: the only version in Cargo.lock");
        let said = statement["impact_statement"].as_str().unwrap();
        let fixed = said.rsplit(' ').next().unwrap().trim_end_matches('.');
        assert!(said.starts_with(&format!("gantry is built with {name} {used};")), "{said}");
        let numbers = |version: &str| -> Vec<u64> { version.split('.').map(|part| part.parse().unwrap()).collect() };
        assert!(numbers(used) >= numbers(fixed), "{said}");
    }
}

#[test]
fn one_compiler_builds_the_release_the_image_and_what_users_build_again() {
    let release = yaml(".github/workflows/release.yml");
    let compiler = release["env"]["RUSTUP_TOOLCHAIN"].as_str().unwrap();
    assert_eq!(yaml(".github/workflows/releases.yml")["jobs"]["reproduce"]["env"]["RUSTUP_TOOLCHAIN"], compiler);
    let (series, _) = compiler.rsplit_once('.').unwrap();
    assert!(read("packaging/container/Dockerfile").contains(&format!("FROM rust:{series}-alpine ")));
    let page = read("docs/trust.md");
    assert!(page.contains(&format!("RUSTUP_TOOLCHAIN={compiler} packaging/reproduce.sh")), "{compiler}");
    assert!(page.contains(&format!("rustup toolchain install {compiler}")), "{compiler}");
    // The platforms have a bill of materials each.
    for one in release["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().unwrap() {
        let (platform, target) = (one["platform"].as_str().unwrap(), one["target"].as_str().unwrap());
        let line = format!("packaging/sbom.sh {target} dist/gantry-{platform}.cdx.json");
        assert!(read(".github/workflows/release.yml").contains(&line), "{line}");
    }
}

/// What is in the image: a file of another stage, run by a user without rights.
#[test]
fn the_image_has_no_shell_and_no_root() {
    let file = read("packaging/container/Dockerfile");
    let (_, last) = file.rsplit_once("\nFROM ").unwrap();
    let mut lines = last.lines().map(str::trim).filter(|line| !line.is_empty());
    assert_eq!(lines.next(), Some("scratch"));
    let instructions: Vec<&str> = lines.map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(instructions, ["COPY", "COPY", "USER", "WORKDIR", "ENTRYPOINT"]);
    let user = last.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    // By number: a cluster can tell that it is not root.
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
    let job = read("packaging/kubernetes/check.yaml");
    assert!(job.contains(&format!("runAsUser: {}\n", user.split(':').next().unwrap())), "{user}");
}

#[test]
fn an_archive_depends_on_names_and_content_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let pack = |archive: &str, entries: &[&str], time: &str| {
        let script = root().join("packaging/archive.py");
        let output = Command::new("python3")
            .arg(script)
            .arg(archive)
            .args(entries)
            .current_dir(folder.path())
            .env("SOURCE_DATE_EPOCH", time)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(at(archive)).unwrap()
    };
    for (name, mode) in [("one", 0o700), ("two", 0o644)] {
        fs::write(at(name), "program").unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(at("LICENSE"), "licence").unwrap();
    let first = pack("a.tar.gz", &["gantry=one", "LICENSE=LICENSE"], "1700000000");
    // The header of gzip has a time, too.
    assert_eq!(first[4..8], 1_700_000_000_u32.to_le_bytes());
    assert_eq!(first, pack("b.tar.gz", &["LICENSE=LICENSE", "gantry=two"], "1700000000"));
    let listed = Command::new("tar").args(["-tvzf", "a.tar.gz", "--utc"]).current_dir(folder.path()).output().unwrap();
    let listed = text(&listed);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let shown: Vec<(&str, &str, &str)> = lines.iter().map(|words| (words[0], words[3], words[5])).collect();
    assert_eq!(shown, [("-rw-r--r--", "2023-11-14", "LICENSE"), ("-rwxr-xr-x", "2023-11-14", "gantry")], "{listed}");
}

/// With a fake of Cargo, which writes what it was given.
#[test]
fn a_build_of_a_release_leaves_no_path_in_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["bin", "sources/packaging", "home of cargo/registry/src/index-1"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    fs::copy(root().join("packaging/build.sh"), at("sources/packaging/build.sh")).unwrap();
    program(
        &at("bin/cargo"),
        "if [ \"$1\" = build ]; then echo \"$*\"; tr '\\037' '\\n' <<<\"$CARGO_ENCODED_RUSTFLAGS\"; fi",
    );
    let script = format!(
        "unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR; PATH='{}':$PATH packaging/build.sh --target some-target",
        at("bin").display()
    );
    let home = at("home of cargo");
    let built = run(&script, &at("sources"), &[("CARGO_HOME", home.to_str().unwrap()), ("RUSTFLAGS", "-C other")]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let sources = at("sources").canonicalize().unwrap();
    let expected = [
        "build --locked --release --bin gantry --target some-target".to_owned(),
        format!("--remap-path-prefix={}=/gantry", sources.display()),
        format!("--remap-path-prefix={}/registry/src/index-1=/crates", home.display()),
    ];
    assert_eq!(text(&built).lines().collect::<Vec<_>>(), expected);
}

/// With a fake of Cargo, which writes a program that depends on what is given here.
#[test]
fn two_builds_that_differ_or_name_a_path_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["bin", "sources/packaging", "home/registry/index"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    for script in ["build.sh", "reproduce.sh"] {
        fs::copy(root().join("packaging").join(script), at("sources/packaging").join(script)).unwrap();
    }
    for arguments in ["init -q -b main", "add -A", "-c user.name=a -c user.email=a@example.com commit -q -m one"] {
        let mut git = Command::new("git");
        let status = git.args(arguments.split(' ')).current_dir(at("sources")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(status.status().unwrap().success(), "{arguments}");
    }
    let (sources, home) = (at("sources").canonicalize().unwrap(), at("home"));
    let reproduce = |writes: &str, flags: &str| {
        let folder = "mkdir -p \"$CARGO_TARGET_DIR/release\"";
        let built =
            format!("if [ \"$1\" = build ]; then {folder}; {writes} > \"$CARGO_TARGET_DIR/release/gantry\"; fi");
        program(&at("bin/cargo"), &built);
        let script = format!("PATH='{}':$PATH packaging/reproduce.sh {flags}", at("bin").display());
        run(&script, &sources, &[("CARGO_HOME", home.to_str().unwrap())])
    };
    let same = reproduce("echo program", "");
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stderr));
    let sums: BTreeSet<String> = text(&same).lines().map(str::to_owned).collect();
    assert_eq!((sums.len(), text(&same).lines().count()), (1, 2));
    // The time of the commit is the same, the folder and the home are not.
    assert_eq!(reproduce("echo \"$SOURCE_DATE_EPOCH\"", "").status.code(), Some(0));
    for writes in [
        "pwd",
        "echo \"$CARGO_HOME\"",
        "cksum <<<\"$CARGO_HOME\"",
        "cksum <<<\"$PWD\"",
        "exit 1; cat",
        "echo $RANDOM$RANDOM",
        &format!("echo {}/a.rs", sources.display()),
    ] {
        assert_eq!(reproduce(writes, "").status.code(), Some(1), "{writes}");
    }
    fs::write(at("program"), "program\n").unwrap();
    let with = format!("--with '{}' --target some-target", at("program").display());
    assert_eq!(reproduce("echo program", &with).status.code(), Some(0));
    assert_eq!(reproduce("echo other", &with).status.code(), Some(1));
}

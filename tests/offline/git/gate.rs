//! Pull requests that change the configuration or the baseline that they are checked with, and the limits on a commit.

use std::fs;

use super::{REMOVED, Repository, crd};

fn config(body: &str) -> String {
    format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{body}")
}

const STRICT: &str = "preflightRules:\n- name: CRDUpgradeSafety\n";

#[test]
fn a_change_that_weakens_its_own_gate_is_reported_at_its_line() {
    let cases = [
        (
            "preflightRules:\n- name: CRDUpgradeSafety\n  enabled: false\n- name: APIAvailability\n",
            "the check CRDUpgradeSafety does not run any more",
            4,
            0,
        ),
        (
            "preflightRules:\n- name: CRDUpgradeSafety\n  config: {mode: warn}\n",
            "findings of the check CRDUpgradeSafety are no errors any more",
            4,
            0,
        ),
        (
            "preset: kapp\npreflightRules:\n- name: CRDUpgradeSafety\n",
            "the preset of CRDUpgradeSafety is different",
            3,
            3,
        ),
        (
            "forceConflicts: true\npreflightRules:\n- name: CRDUpgradeSafety\n",
            "fields of other managers are overwritten",
            3,
            3,
        ),
        (
            "pruneMax: 100%\npreflightRules:\n- name: CRDUpgradeSafety\n",
            "another number of objects may be deleted at once",
            3,
            3,
        ),
        ("warnOnly: true\npreflightRules:\n- name: CRDUpgradeSafety\n", "no finding is an error any more", 3, 0),
        (
            "waivers:\n- rule: '*'\n  reason: trust me\npreflightRules:\n- name: CRDUpgradeSafety\n",
            "a waiver is added or changed: rule *",
            4,
            0,
        ),
    ];
    for (changed, message, line, code) in cases {
        let repository = Repository::with_crd(&["keep", "gone"]);
        repository.write("gantry.yaml", config(STRICT));
        repository.commit();
        repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
        let check = |more: &[&str]| {
            repository.check(&[&["-f", "deploy", "--target", "git:main", "-o", "github"], more].concat())
        };
        let unchanged = check(&[]);
        unchanged.code(3);
        assert!(!unchanged.stdout.contains("weakens the gate"), "{}", unchanged.stdout);
        repository.write("gantry.yaml", config(changed));
        let weakened = check(&[]);
        weakened.code(code);
        let annotation = format!("::warning file=gantry.yaml,line={line},");
        let expected = |text: &str| text.lines().any(|line| line.starts_with(&annotation) && line.contains(message));
        assert!(expected(&weakened.stdout), "{}\n{}", weakened.stdout, weakened.stderr);
        let strict = check(&["--fail-on-weaker-gate"]);
        strict.code(3);
        assert!(strict.stdout.contains(&annotation.replace("warning", "error")), "{}", strict.stdout);
    }
}

#[test]
fn a_configuration_that_is_removed_or_named_and_a_baseline_are_compared_too() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.write("gantry.yaml", config("preflightRules:\n- name: CRDUpgradeSafety\n- name: APIAvailability\n"));
    repository.write("ci/strict.yaml", config("fieldManager: ci\n"));
    repository.commit();
    let removed = || {
        fs::remove_file(repository.root().join("gantry.yaml")).unwrap();
        repository.check_deploy("git:main")
    };
    insta::assert_snapshot!(removed().shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    ----- stderr
    warning: this change weakens the gate of main: the check APIAvailability does not run any more (a maintainer should confirm it; --fail-on-weaker-gate makes it an error)
    "#);
    // A document among the manifests counts where the files say nothing about the check.
    let off = config("preflightRules:\n- name: CRDUpgradeSafety\n  enabled: false\n");
    repository.write("deploy/config.yaml", off);
    let among = repository.check(&["-f", "deploy", "--target", "git:main", "--fail-on-weaker-gate"]);
    insta::assert_snapshot!(among.shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: main (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CustomResourceValidation  passed

    error: this change weakens the gate of main: the check CRDUpgradeSafety does not run any more
     --> deploy/config.yaml:4:9
    4 | - name: CRDUpgradeSafety
      |         ^^^^^^^^^^^^^^^^
      = help: a maintainer who confirms it runs this without --fail-on-weaker-gate

    error: this change weakens the gate of main: the check APIAvailability does not run any more
     --> deploy/config.yaml:3:1
    3 | preflightRules:
      | ^^^^^^^^^^^^^^
      = help: a maintainer who confirms it runs this without --fail-on-weaker-gate

    Would be blocked: 2 errors. Nothing was written.
    ----- stderr
    notice: deploy/config.yaml:5:12: a Config document among the manifests disables the check "CRDUpgradeSafety" (--preflight CRDUpgradeSafety still runs it)
    "#);
    fs::remove_file(repository.root().join("deploy/config.yaml")).unwrap();
    repository.check(&["-f", "deploy", "--target", "dir:deploy", "--fail-on-weaker-gate"]).code(2);
    repository.git(&["checkout", "-q", "gantry.yaml"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.write("ci/strict.yaml", config("waivers:\n- object: '*'\n  reason: trust me\n"));
    let named = repository.check(&["-f", "deploy", "--target", "git:main", "-c", "ci/strict.yaml"]);
    insta::assert_snapshot!(named.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety  passed: 1 waived (-v shows all)
    APIAvailability   passed

    Planned: 1 update; nothing was written (check only)
    ----- stderr
    warning: ci/strict.yaml:4: this change weakens the gate of main: a waiver is added or changed: object * (a maintainer should confirm it; --fail-on-weaker-gate makes it an error)
    "#);
    repository.check(&["-f", "deploy", "--target", "git:main", "-o", "json=known.json"]).code(3).says(REMOVED);
    let known = repository.check(&["-f", "deploy", "--target", "git:main", "--baseline", "known.json"]);
    insta::assert_snapshot!(known.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety  passed: 1 known (-v shows all)
    APIAvailability   passed
    Compared with known.json: 1 known finding does not count.

    Planned: 1 update; nothing was written (check only)
    ----- stderr
    warning: known.json:1: this change weakens the gate of main: the baseline is new (a maintainer should confirm it; --fail-on-weaker-gate makes it an error)
    "#);
}

#[test]
fn one_large_file_at_many_paths_is_not_read_without_a_limit() {
    let repository = Repository::with_crd(&["keep"]);
    let large = format!("# {}\n", "x".repeat(60 << 20));
    repository.write("large/0.yaml", large);
    repository.commit();
    let blob = repository.git(&["rev-parse", "HEAD:large/0.yaml"]);
    for number in 1..100 {
        let entry = format!("100644,{},large/{number}.yaml", blob.trim());
        repository.git(&["update-index", "--add", "--cacheinfo", &entry]);
    }
    repository.git(&["commit", "-q", "-m", "many"]);
    fs::write(repository.root().join("large/0.yaml"), crd(&["keep"])).unwrap();
    let check = repository.check(&["-f", "large/0.yaml", "--target", "git:main:large"]);
    check.code(1).says("the manifests of the commit are larger than 512 MiB in all");
}

#[test]
fn a_finding_names_the_commit_and_no_live_crd() {
    let repository = Repository::with_removed_field();
    let check = repository.check_deploy("git:main");
    insta::assert_snapshot!(check.shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: main (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crds/crd.yaml:19:13
    17 |           spec:
    18 |             type: object
    19 |             properties:
       |             ^^^^^^^^^^ main has gone here (string)
       = in      samples.test.example.com, v1, ^.spec.gone
       = breaks  writers: the server refuses or drops what they send today
                 readers: they no longer find what they read today
                 data: the server drops values from objects when they are next written
       = proof   accepted today, loses values with this change: spec.gone is dropped
                   {apiVersion: test.example.com/v1, kind: Kindsamples, metadata: {name: x}, spec:
                   {gone: ""}}
       = next    keep spec.gone in v1 and mark it as deprecated, or remove it only in a new version that
                 a webhook converts, or after a migration
                 if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                   waivers: [{rule: NoExistingFieldRemoved, object: samples.test.example.com, path:
                   "^.spec.gone", reason: "why this is fine here"}]

    For details of a rule: gantry rules NoExistingFieldRemoved.

    CRDUpgradeSafety          blocked: 1 error in samples.test.example.com (NoExistingFieldRemoved)
    CustomResourceValidation  passed: 0 objects of 1 CRD read

    Would be blocked: 1 error. Nothing was written.
    ----- stderr
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
    assert!(!check.stdout.contains("the live CRD has"), "{}", check.stdout);
}

//! The revision of a target: branches, tags, merge bases, and names that are none of these.

use super::{Repository, command, crd, ended};

#[test]
fn three_dots_compare_with_the_merge_base() {
    let repository = Repository::with_crd(&["keep"]);
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.commit();
    repository.git(&["checkout", "-q", "main"]);
    // What others added to the main branch in the meantime does not count as removed.
    repository.write("deploy/crds/crd.yaml", crd(&["keep", "later"]));
    repository.commit();
    repository.git(&["checkout", "-q", "topic"]);
    repository.check_deploy("git:main").code(3);
    insta::assert_snapshot!(repository.check_deploy("git:main...").shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main... (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    insta::assert_snapshot!(repository.check_deploy("git:main...topic").shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main...topic (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    repository.git(&["checkout", "-q", "--orphan", "other"]);
    repository.write("other", "");
    repository.commit();
    let alone = repository.check_deploy("git:main...");
    insta::assert_snapshot!(alone.shown(), @r#"
    exit code 1
    ----- stderr
    error: "main" and "HEAD" have no commit in common
      = help: name the commit to compare with: --target git:REV
    "#);
}

#[test]
fn an_ambiguous_revision_is_a_notice_and_one_without_a_commit_is_refused() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["tag", "release"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    repository.git(&["branch", "release"]);
    repository.git(&["config", "core.warnAmbiguousRefs", "false"]);
    let check = |target: &str| repository.check_deploy(target);
    insta::assert_snapshot!(check("git:release").shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: release (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crds/crd.yaml:19:13
    17 |           spec:
    18 |             type: object
    19 |             properties:
       |             ^^^^^^^^^^ release has gone here (string)
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
    notice: "release" is ambiguous: refs/tags/release and refs/heads/release; git uses the first (to compare with the other, use its full name: --target git:refs/heads/release)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
    insta::assert_snapshot!(check("git:release...").shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: release... (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crds/crd.yaml:19:13
    17 |           spec:
    18 |             type: object
    19 |             properties:
       |             ^^^^^^^^^^ COMMIT has gone here (string)
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
    notice: "release" is ambiguous: refs/tags/release and refs/heads/release; git uses the first (to compare with the other, use its full name: --target git:refs/heads/release)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
    let whole = check("git:refs/heads/release");
    insta::assert_snapshot!(whole.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: refs/heads/release (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    assert!(!whole.stderr.contains("git takes"), "{}", whole.stderr);
    repository.git(&["tag", "file", &repository.git(&["rev-parse", "HEAD:deploy/crds/crd.yaml"])]);
    insta::assert_snapshot!(check("git:file").shown(), @r#"
    exit code 1
    ----- stderr
    error: "file" is a blob, not a commit
      = help: name a commit, a branch or a tag, followed by the path: --target git:REV:PATH
    "#);
}

#[test]
fn an_unknown_revision_is_explained() {
    let repository = Repository::with_crd(&["keep"]);
    let check = |target: &str| repository.check_deploy(target);
    insta::assert_snapshot!(check("git:mian").shown(), @r#"
    exit code 1
    ----- stderr
    error: there is no commit "mian" in this repository
      = help: did you mean "main"?
    "#);
    insta::assert_snapshot!(check("git:HEAD~5").shown(), @r#"
    exit code 1
    ----- stderr
    error: there is no commit "HEAD~5" in this repository
      = help: git branch --all and git tag list the available names
    "#);
    insta::assert_snapshot!(check("git:HEAD^{tree}").shown(), @r#"
    exit code 1
    ----- stderr
    error: "HEAD^{tree}" is a tree, not a commit
      = help: name a commit, a branch or a tag, followed by the path: --target git:REV:PATH
    "#);
    insta::assert_snapshot!(check("git:--output=x").shown(), @r#"
    exit code 2
    ----- stderr
    error: invalid value 'git:--output=x' for '--target <kube|dir:PATH|git:REV[:PATH]|chart:CHART|helm:RELEASE>': "--output=x" is not a revision: a revision does not start with -

    For more information, try '--help'.
    "#);
    check("git:-h").code(2);
    insta::assert_snapshot!(check("git:main..topic").shown(), @r#"
    exit code 2
    ----- stderr
    error: invalid value 'git:main..topic' for '--target <kube|dir:PATH|git:REV[:PATH]|chart:CHART|helm:RELEASE>': "main..topic" is a range of commits, not one commit; use A...B for the merge base of two branches

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(check("git:main:../x").shown(), @r#"
    exit code 2
    ----- stderr
    error: invalid value 'git:main:../x' for '--target <kube|dir:PATH|git:REV[:PATH]|chart:CHART|helm:RELEASE>': the path "../x" is not relative to the root of the repository; use a path such as deploy/crds

    For more information, try '--help'.
    "#);
    let deploy = ended(command(&repository.root(), &["deploy", "-f", "deploy", "--target", "git:nope", "-y"]));
    insta::assert_snapshot!(deploy.shown(), @r#"
    exit code 2
    ----- stderr
    error: a commit of git cannot be deployed to: it is only read
      = help: compare with it: gantry check, gantry diff or gantry deploy --dry-run
    "#);
    ended(command(&repository.root(), &["deploy", "-f", "deploy", "--target", "git:main", "--dry-run"])).code(0);
    ended(command(&repository.root(), &["diff", "-f", "deploy", "--target", "git:main"])).code(0);
    assert!(!repository.root().join("x").exists());
}

//! Tests of lists of rules about objects, in gantry's documents and in kapp's.

use super::*;
use crate::plan::graph::rule::OrderRulePattern;
use gantry_core::matcher::{FieldPathStep, KeyPattern, Matcher};

const ALL: &str = "resourceMatchers: [{allMatcher: {}}]";

#[test]
fn the_lists_of_all_layers_add_up_in_their_order() {
    let groups = |name: &str| format!("changeGroupBindings:\n- name: {name}\n  {ALL}\n");
    let bed = Bed::new()
        .user(&groups("user"))
        .file("gantry.yaml", &groups("project"))
        .with(
            "c.yaml",
            &format!("{}changeRuleBindings:\n- rules: [upsert after upserting x]\n  {ALL}\n", groups("file")),
        )
        .manifest(&kapp(&groups("manifests")));
    let settings = bed.settings();
    let names: Vec<&str> = settings.rules.bindings.groups.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, ["user", "project", "file", "manifests"]);
    let places: Vec<String> =
        settings.rules.bindings.groups.iter().map(|binding| binding.at.as_ref().unwrap().to_string()).collect();
    assert!(places[0].ends_with("config.yaml:4:9"), "{places:?}");
    assert_eq!(places[1..], ["gantry.yaml:4:9", "c.yaml:4:9", "manifests/config.yaml:6:9"]);
    let [rule] = &settings.rules.bindings.rules[..] else { panic!("{:?}", settings.rules) };
    assert_eq!(rule.rules[0].0, OrderRulePattern::parse("upsert after upserting x").unwrap());
    assert!(!rule.ignore_if_cyclical);

    // The output of `show` has them all.
    let mut again = Bed::new().raw_file("shown.yaml", &settings.show());
    again.loader.files.push("shown.yaml".into());
    let again = again.settings().rules.bindings.groups;
    assert_eq!(again.iter().map(|binding| binding.name.as_str()).collect::<Vec<_>>(), names);
}

#[test]
fn every_matcher_is_read() {
    let matchers = "  - allMatcher: {}\n  - anyMatcher: {matchers: [{customResourceMatcher: {}}]}\n  - andMatcher:\n      matchers: [{hasNamespaceMatcher: {}}, {hasNamespaceMatcher: {names: [a]}}]\n  - notMatcher: {matcher: {apiGroupKindMatcher: {apiGroup: '', kind: Pod}}}\n  - apiVersionKindMatcher: {apiVersion: apps/v1, kind: Deployment}\n  - kindNamespaceNameMatcher: {kind: Pod, namespace: a, name: b}\n  - hasAnnotationMatcher: {keys: [x]}\n  - emptyFieldMatcher: {path: [spec, {allIndexes: true}, {index: 2}]}\n";
    let bed = Bed::new()
        .manifest(&kapp(&format!("changeGroupBindings:\n- name: a-{{kind}}\n  resourceMatchers:\n{matchers}")));
    let namespaces = |names: &[&str]| Matcher::Namespaces(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(
        bed.settings().rules.bindings.groups[0].matchers,
        [
            Matcher::All,
            Matcher::Any(vec![Matcher::CustomResource]),
            Matcher::And(vec![namespaces(&[]), namespaces(&["a"])]),
            Matcher::Not(Box::new(Matcher::GroupKind { group: String::new(), kind: "Pod".into() })),
            Matcher::VersionKind { api_version: "apps/v1".into(), kind: "Deployment".into() },
            Matcher::Name { kind: "Pod".into(), namespace: "a".into(), name: "b".into() },
            Matcher::Annotations(vec!["x".into()]),
            Matcher::EmptyField(vec![FieldPathStep::Key("spec".into()), FieldPathStep::All, FieldPathStep::Index(2)]),
        ]
    );
}

#[test]
fn an_invalid_list_of_the_configuration_is_an_error_with_its_line() {
    let wrong = [
        ("changeGroupBindings: {}", "kapp.yaml:3:22: changeGroupBindings is not a list"),
        ("changeGroupBindings: [a]", "kapp.yaml:3:23: changeGroupBindings[0] is not a mapping"),
        (
            "changeGroupBindings:\n- name: a",
            "kapp.yaml:4:3: changeGroupBindings[0] has no resourceMatchers | without matchers",
        ),
        ("changeGroupBindings:\n- {ALL}", "kapp.yaml:4:3: changeGroupBindings[0] has no name"),
        (
            "changeGroupBindings:\n- nam: a\n  {ALL}",
            "kapp.yaml:4:3: unknown key \"changeGroupBindings[0].nam\" | did you mean \"name\"?",
        ),
        (
            "changeGroupBindings:\n- name: a b\n  {ALL}",
            "kapp.yaml:4:9: changeGroupBindings[0].name: the name of a change group is like",
        ),
        (
            "changeGroupBindings:\n- name: a-{uid}\n  {ALL}",
            "kapp.yaml:4:9: changeGroupBindings[0].name: unknown placeholder {uid}",
        ),
        ("changeRuleBindings:\n- {ALL}", "kapp.yaml:4:3: changeRuleBindings[0] has no rules"),
        (
            "changeRuleBindings:\n- rules: [update after upserting x]\n  {ALL}",
            "kapp.yaml:4:11: changeRuleBindings[0].rules[0]: a rule is like",
        ),
        (
            "changeRuleBindings:\n- rules: [1]\n  {ALL}",
            "kapp.yaml:4:11: changeRuleBindings[0].rules[0]: 1 is not a string",
        ),
        (
            "changeRuleBindings:\n- rules: []\n  ignoreIfCyclical: maybe\n  {ALL}",
            "kapp.yaml:5:21: changeRuleBindings[0].ignoreIfCyclical: \"maybe\" is not true or false",
        ),
        (
            "changeGroupBindings:\n- name: a\n  resourceMatchers: [{}]",
            "kapp.yaml:5:22: changeGroupBindings[0].resourceMatchers[0] must have exactly one matcher | write one matcher in each item of the list",
        ),
        (
            "changeGroupBindings:\n- name: a\n  resourceMatchers:\n  - allMatchers: {}",
            "kapp.yaml:6:5: unknown key \"changeGroupBindings[0].resourceMatchers[0].allMatchers\" | did you mean \"allMatcher\"?",
        ),
        (
            "changeGroupBindings:\n- name: a\n  resourceMatchers:\n  - apiVersionKindMatcher: {apiVersion: v1, kin: Pod}",
            "kapp.yaml:6:45: unknown key \"changeGroupBindings[0].resourceMatchers[0].apiVersionKindMatcher.kin\" | did you mean \"kind\"?",
        ),
        (
            "changeGroupBindings:\n- name: a\n  resourceMatchers:\n  - notMatcher: {}",
            "kapp.yaml:6:17: changeGroupBindings[0].resourceMatchers[0].notMatcher has no matcher",
        ),
        (
            "changeGroupBindings:\n- name: a\n  resourceMatchers:\n  - emptyFieldMatcher: {path: [spec, {all: true}]}",
            "kapp.yaml:6:38: changeGroupBindings[0].resourceMatchers[0].emptyFieldMatcher.path[1]: {\"all\":true} is not a step of a path",
        ),
    ];
    let conditions = "conditionMatchers: [{type: Ready, status: 'True', success: true}]";
    let wait_rules = [
        (
            "ytt: {funcContractV1: {resource.star: x}}",
            "kapp.yaml:4:3: waitRules[0].ytt: gantry does not run ytt functions | write",
        ),
        ("{ALL}", "kapp.yaml:4:3: waitRules[0] has no conditionMatchers | without"),
        ("{CONDITIONS}", "kapp.yaml:4:3: waitRules[0] has no resourceMatchers"),
        (
            "{CONDITIONS}\n  cel: {success: 'true'}\n  {ALL}",
            "kapp.yaml:5:3: waitRules[0] has both conditionMatchers and cel",
        ),
        (
            "conditionMatchers: [{type: Ready}]\n  {ALL}",
            "kapp.yaml:4:23: waitRules[0].conditionMatchers[0] has no status",
        ),
        (
            "conditionMatchers: [{type: Ready, status: True}]\n  {ALL}",
            "kapp.yaml:4:45: waitRules[0].conditionMatchers[0].status: true is not a string; quote it",
        ),
        (
            "conditionMatchers: [{type: a, status: b, succes: true}]\n  {ALL}",
            "kapp.yaml:4:44: unknown key \"waitRules[0].conditionMatchers[0].succes\" | did you mean \"success\"?",
        ),
        (
            "conditionMatchers: [{type: a, status: b, timeout: 1}]\n  {ALL}",
            "kapp.yaml:4:53: waitRules[0].conditionMatchers[0].timeout: 1 is not a string",
        ),
        (
            "conditionMatchers: [{type: a, status: b, timeout: soon}]\n  {ALL}",
            "kapp.yaml:4:53: waitRules[0].conditionMatchers[0].timeout: \"soon\" is not a duration",
        ),
        ("cel: {failure: 'true'}\n  {ALL}", "kapp.yaml:4:8: waitRules[0].cel has no success"),
        ("cel: {success: object.}\n  {ALL}", "kapp.yaml:4:18: waitRules[0].cel.success: "),
    ];
    let wait_rules = wait_rules
        .map(|(body, expected)| (format!("waitRules:\n- {}", body.replace("{CONDITIONS}", conditions)), expected));
    let rebase_rules = [
        (
            "ytt: {overlayContractV1: {overlay.yml: x}}",
            "kapp.yaml:4:3: rebaseRules[0].ytt: gantry does not run ytt overlays | use path",
        ),
        ("type: remove\n  {ALL}", "kapp.yaml:4:3: rebaseRules[0] has no path"),
        ("path: [a]\n  paths: [[b]]\n  type: remove\n  {ALL}", "kapp.yaml:5:3: rebaseRules[0] has both path and paths"),
        ("path: [a]\n  {ALL}", "kapp.yaml:4:3: rebaseRules[0] has no type"),
        (
            "path: [a]\n  type: replace\n  {ALL}",
            "kapp.yaml:5:9: rebaseRules[0].type: \"replace\" is not one of copy, remove",
        ),
        ("path: [a]\n  type: copy\n  {ALL}", "kapp.yaml:4:3: rebaseRules[0] has no sources | write"),
        (
            "path: [a]\n  type: copy\n  sources: [old]\n  {ALL}",
            "kapp.yaml:6:13: rebaseRules[0].sources[0]: \"old\" is not one of existing, new",
        ),
        (
            "path: [a, {allIndexes: true}]\n  type: remove\n  {ALL}",
            "kapp.yaml:4:3: rebaseRules[0]: the last step of the path must be a field name",
        ),
        (
            "path: [a, {regex: '(a'}]\n  type: remove\n  {ALL}",
            "kapp.yaml:4:21: rebaseRules[0].path[1].regex: \"(a\" is not a regular expression: ",
        ),
        (
            "path: [a, {regex: b, index: 0}]\n  type: remove\n  {ALL}",
            "kapp.yaml:4:13: rebaseRules[0].path[1]: {\"index\":0,\"regex\":\"b\"} is not a step of a path | a step is",
        ),
        (
            "path: []\n  type: remove\n  {ALL}",
            "kapp.yaml:4:9: rebaseRules[0].path is not a non-empty list of steps to a field",
        ),
    ];
    let rebase_rules = rebase_rules.map(|(body, expected)| (format!("rebaseRules:\n- {body}"), expected));
    let others = [
        ("diffMaskRules:\n- {ALL}", "kapp.yaml:4:3: diffMaskRules[0] has no path"),
        ("additionalLabels: [a]", "kapp.yaml:3:19: additionalLabels is not a mapping"),
        ("additionalLabels:\n  a: 1", "kapp.yaml:4:6: additionalLabels.a: 1 is not a string; quote it"),
        (
            "additionalLabels:\n  applyset.kubernetes.io/part-of: x",
            "kapp.yaml:4:3: additionalLabels: the label applyset.kubernetes.io/part-of is set by gantry",
        ),
        (
            "additionalLabels:\n  ok: ''\n  a b: x",
            "kapp.yaml:5:3: additionalLabels: \"a b\" is not a valid label key: name part must consist of alphanumeric",
        ),
        (
            "additionalLabels:\n  a: x y",
            "kapp.yaml:4:6: additionalLabels.a: \"x y\" is not a valid label value: a valid label must be an empty string",
        ),
        ("additionalLabels:\n  a: {LONG}", "kapp.yaml:4:6: additionalLabels.a: \"xxxxxxxxxx"),
    ];
    let others = others.map(|(body, expected)| (body.to_owned(), expected));
    let wait_rules = wait_rules.into_iter().chain(rebase_rules).chain(others);
    let wrong = wrong.map(|(body, expected)| (body.to_owned(), expected)).into_iter().chain(wait_rules);
    for (body, expected) in wrong {
        let mut bed = Bed::new().raw_file(
            "kapp.yaml",
            &kapp(&format!("{}\n", body.replace("{ALL}", ALL).replace("{LONG}", &"x".repeat(64)))),
        );
        bed.loader.files.push("kapp.yaml".into());
        let problems = bed.problems();
        assert!(problems.len() == 1 && problems[0].starts_with(expected), "{body}\n{problems:#?}");
    }
}

#[test]
fn labels_merge_by_their_names() {
    let bed = Bed::new()
        .file("gantry.yaml", "additionalLabels: {team: web, example.com/tier: '1'}\n")
        .manifest(&kapp("additionalLabels: {team: shop}\n"));
    let settings = bed.settings();
    let labels: Vec<(&str, &str)> =
        settings.rules.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("example.com/tier", "1"), ("team", "shop")]);
}

#[test]
fn rebase_rules_have_paths_and_sources() {
    use crate::plan::rebase_rules::RebaseSource;
    let rules = "rebaseRules:\n- paths: [[spec, replicas], [metadata, annotations, {regex: ^a}]]\n  type: copy\n  sources: [existing, new]\n  resourceMatchers: [{allMatcher: {}}]\n- path: [metadata, labels]\n  type: remove\n  resourceMatchers: []\n";
    let rules = Bed::new().manifest(&kapp(rules)).settings().rules.rebases;
    let keys = |keys: &[&str]| keys.iter().map(|key| FieldPathStep::Key((*key).to_owned())).collect::<Vec<_>>();
    let mut annotations = keys(&["metadata", "annotations"]);
    annotations.push(FieldPathStep::Matching(KeyPattern::new("^a").unwrap()));
    assert_eq!(rules[0].paths, [keys(&["spec", "replicas"]), annotations]);
    assert_eq!(rules[0].sources, Some(vec![RebaseSource::Existing, RebaseSource::New]));
    assert_eq!((&rules[1].paths[..], &rules[1].sources), (&[keys(&["metadata", "labels"])][..], &None));
}

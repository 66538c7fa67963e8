//! The schema of the Config, compared with the validator and the documentation.

use super::*;

#[test]
fn the_schema_and_the_validator_know_the_same_keys() {
    let schema = schema(&known());
    let mut described: Vec<String> = schema::top_level(&schema).into_iter().map(str::to_owned).collect();
    for (section, _) in schema::SECTIONS {
        let keys = schema["properties"][section]["properties"].as_object().unwrap();
        described.retain(|name| name != section);
        described.extend(keys.keys().map(|name| format!("{section}.{name}")));
    }
    let mut known: Vec<String> = keys::ENVELOPE.iter().map(|name| (*name).to_owned()).collect();
    known.extend(KEYS.iter().map(|key| key.path.to_owned()));
    described.sort();
    known.sort();
    assert_eq!(described, known);
    let mut rule: Vec<&str> =
        schema["$defs"]["PreflightRule"]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    rule.sort_unstable();
    let mut rule_keys = keys::RULE_KEYS.to_vec();
    rule_keys.sort_unstable();
    assert_eq!(rule, rule_keys);
}

#[test]
fn a_check_describes_its_keys() {
    let keys: Vec<String> = known()
        .checks
        .iter()
        .flat_map(KnownCheck::keys)
        .map(|key| {
            format!("{} {} {:?} {}", key.name, key.values(), key.default().unwrap_or_default(), key.description())
        })
        .collect();
    assert_eq!(keys[1], "failMode closed|open \"closed\" What an unknown change does.");
    assert_eq!(keys[6], "limit integer \"3\" How many.");
    assert_eq!(keys.last().map(String::as_str), Some("nested object \"\" "));
}

/// The schema and the validator accept the same documents.
#[test]
fn the_schema_and_the_validator_agree() {
    let validator = jsonschema::validator_for(&schema(&known())).unwrap();
    let all = "metadata: {name: x}\nwarnOnly: true\npreset: semantic\ntarget: dir:live\nkubeconfig: k\ncontext: c\ncluster: c\nuser: u\nserver: https://10.0.0.1\ntoken: t\nas: u\nasGroups: [g]\nnamespace: team\nfieldManager: f\nforceConflicts: true\ntakeOwnership: [deployment.apps/*]\napp: shop\nappNamespace: team\nprune: 'yes'\npruneMax: 50%\nwait: true\nlogs: true\nignoreFailingApiServices: true\nallowExec: true\nadmission: {mode: warn, deny: [a.example.com], warn: ['*.b'], audit: [c], ignore: [d], onTimeout: deny, acceptedBy: [g]}\ntimeouts: {request: 1m, established: 1.5h, ready: 10m, resource: 5m, delete: 2m, credentials: 5s}\noutput: [human, json=r.json]\ncolor: never\nchangeGroupBindings: [{name: 'a-{kind}', resourceMatchers: [{allMatcher: {}}, {notMatcher: {matcher: {emptyFieldMatcher: {path: [a, {index: 0}, {allIndexes: true}]}}}}]}]\nchangeRuleBindings: [{rules: [upsert after upserting a], ignoreIfCyclical: true, resourceMatchers: [{anyMatcher: {matchers: [{apiGroupKindMatcher: {kind: Pod}}]}}]}]\nwaitRules: [{supportsObservedGeneration: true, conditionMatchers: [{type: Ready, status: 'True', success: true, failure: false, unblockChanges: false, supportsObservedGeneration: true, timeout: 1m}], resourceMatchers: []}, {cel: {success: 'true', failure: 'false', unblockChanges: 'false'}, resourceMatchers: []}]\nrebaseRules: [{path: [spec, a], type: copy, sources: [existing, new], resourceMatchers: []}, {paths: [[a], [b]], type: remove, resourceMatchers: []}]\ndiffMaskRules: [{path: [a, {regex: ^b}], resourceMatchers: []}]\ndiffAgainstExistingFieldExclusionRules: [{path: [a], resourceMatchers: []}]\nadditionalLabels: {a: b}\nwaivers: [{object: a.*, version: v1, path: ^.spec, rule: No*, reason: r, expires: '2026-12-31'}]\npreflightRules: [{name: CRDUpgradeSafety, enabled: true, config: {mode: warn, failMode: open}}, {name: PermissionValidation, config: {verbs: [get], limit: 1, deep: true, user: me, patience: 1s, nested: {}}}, {name: no-x, cel: {expression: e}, config: {mode: warn}}, {name: my-program, exec: {command: [./c, -x], timeout: 1s}}]\n";
    let good = [
        "",
        all,
        "preflightRules: []\n",
        "wait: crds\n",
        "wait: false\n",
        "target: git:main...HEAD:deploy/crds\n",
        "pruneMax: 100%\n",
        "pruneMax: '101'\n",
        "preflightRules:\n- {name: CRDUpgradeSafety, config: }\n",
        "warnOnly:\n",
    ];
    let bad = [
        "warnonly: true\n",
        "warnOnly: 'true'\n",
        "target: cluster\n",
        "preset: semantics\n",
        "target: 'git:'\n",
        "pruneMax: 101%\n",
        "kubeconfig: ''\n",
        "context: 1\n",
        "namespace: A\n",
        "fieldManager: ''\n",
        "timeouts: {request: 30}\n",
        "timeouts: {request: 30d}\n",
        "timeouts: {other: 30s}\n",
        "output: []\n",
        "output: human\n",
        "output: [xml]\n",
        "color: allways\n",
        "wait: crd\n",
        "wait: 'true'\n",
        "waivers: {}\n",
        "waivers: [{reason: r}]\n",
        "waivers: [{rule: X}]\n",
        "waivers: [{rule: X, reason: ''}]\n",
        "waivers: [{rule: X, reason: r, expires: tomorrow}]\n",
        "waivers: [{rule: X, reason: r, until: x}]\n",
        "changeGroupBindings: {}\n",
        "changeGroupBindings: [{name: a}]\n",
        "changeGroupBindings: [{name: a, resourceMatchers: [{}]}]\n",
        "changeGroupBindings: [{name: a, resourceMatchers: [{allMatcher: {}, customResourceMatcher: {}}]}]\n",
        "changeGroupBindings: [{name: a, resourceMatchers: [{otherMatcher: {}}]}]\n",
        "changeGroupBindings: [{name: a, resourceMatchers: [{emptyFieldMatcher: {path: [1]}}]}]\n",
        "changeRuleBindings: [{resourceMatchers: []}]\n",
        "changeRuleBindings: [{rules: [upsert after x], resourceMatchers: []}]\n",
        "waitRules: [{resourceMatchers: []}]\n",
        "waitRules: [{conditionMatchers: [], cel: {success: 'true'}, resourceMatchers: []}]\n",
        "waitRules: [{conditionMatchers: [{type: Ready, status: true}], resourceMatchers: []}]\n",
        "waitRules: [{conditionMatchers: [{type: a, status: b, timeout: soon}], resourceMatchers: []}]\n",
        "waitRules: [{cel: {failure: 'true'}, resourceMatchers: []}]\n",
        "waitRules: [{ytt: {}, resourceMatchers: []}]\n",
        "rebaseRules: [{path: [a], resourceMatchers: []}]\n",
        "rebaseRules: [{path: [a], type: copy, resourceMatchers: []}]\n",
        "rebaseRules: [{path: [a], paths: [[a]], type: remove, resourceMatchers: []}]\n",
        "rebaseRules: [{path: [a], type: copy, sources: [], resourceMatchers: []}]\n",
        "diffMaskRules: [{path: [], resourceMatchers: []}]\n",
        "diffAgainstExistingFieldExclusionRules: [{resourceMatchers: []}]\n",
        "additionalLabels: [a]\n",
        "additionalLabels: {a: 1}\n",
        "preflightRules: {}\n",
        "preflightRules: [{config: {}}]\n",
        "preflightRules: [{name: Nope}]\n",
        "preflightRules: [{name: CRDUpgradeSafety, on: 1}]\n",
        "preflightRules: [{name: CRDUpgradeSafety, config: {mode: loud}}]\n",
        "preflightRules: [{name: CRDUpgradeSafety, config: {verbs: []}}]\n",
        "preflightRules: [{name: PermissionValidation, config: {limit: -1}}]\n",
        "preflightRules: [{name: CRDUpgradeSafety, exec: {command: [c]}}]\n",
        "preflightRules: [{name: NoLatestTag, cel: {expression: e}}]\n",
        "preflightRules: [{name: no_latest, cel: {expression: e}}]\n",
        "preflightRules: [{name: both, cel: {expression: e}, exec: {command: [c]}}]\n",
        "preflightRules: [{name: x, cel: {expression: 1}}]\n",
        "preflightRules: [{name: x, cel: {expression: e, other: 1}}]\n",
        "preflightRules: [{name: x, cel: []}]\n",
        "preflightRules: [{name: x, exec: {command: [c], timeout: 3}}]\n",
        "preflightRules: [{name: x, exec: {command: c}}]\n",
        "preflightRules: [{name: x, exec: {command: [c]}, config: {other: 1}}]\n",
    ];
    for (bodies, valid) in [(&good[..], true), (&bad[..], false)] {
        for body in bodies {
            let document = gantry_yaml::parse(&gantry(body)).unwrap().unwrap().to_value();
            assert_eq!(validator.is_valid(&document), valid, "the schema on {body}");
            assert_eq!(Bed::new().with("c.yaml", body).problems().is_empty(), valid, "the validator on {body}");
        }
    }
}

#[test]
fn the_documentation_names_every_key_and_variable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    for key in KEYS {
        assert!(text.contains(&format!("`{}`", key.path)), "{} is missing", key.path);
        for name in key.variable().into_iter().chain(key.flag.map(str::to_owned)) {
            assert!(text.contains(&format!("`{name}`")), "{name} is missing");
        }
        if let Some(default) = key.default {
            let row = text.lines().find(|line| line.starts_with(&format!("| `{}`", key.path))).unwrap_or_default();
            assert!(row.contains(&format!("`{default}`")), "the default of {} is missing: {row}", key.path);
        }
    }
    assert!(text.contains(PREFLIGHT_VARIABLE));
}

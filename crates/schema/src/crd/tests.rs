//! CRDs that the server rejects, with its messages.

use serde_json::{Value, json};

use super::*;

/// A valid CRD with this schema for `spec`.
fn crd(spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Sample", "plural": "samples"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]},
    })
}

fn errors(new: &Value, old: Option<&Value>) -> Vec<String> {
    let outcome = validate(new, old, KubernetesRelease::default()).expect("a CRD that can be read");
    assert_eq!(outcome.undecided, []);
    if let Some(old) = old
        && let Some(strict) =
            validate_without_old_versions(new, old, KubernetesRelease::default()).expect("a CRD that can be read")
    {
        assert_eq!(strict, outcome);
    }
    outcome.refusals.iter().map(ToString::to_string).collect()
}

/// The errors of an update that changes no version; they must not depend on whether `old` includes the versions.
fn errors_of_same_versions(new: &Value, old: &Value) -> Vec<String> {
    let mut old = old.clone();
    old["spec"]["versions"] = new["spec"]["versions"].clone();
    let wanted = errors(new, Some(&old));
    old["spec"]["versions"] = json!([]);
    let outcome = validate_same_versions(new, &old, KubernetesRelease::default()).expect("a CRD that can be read");
    let found: Vec<String> = outcome.refusals.iter().map(ToString::to_string).collect();
    assert_eq!(found, wanted);
    found
}

fn errors_of(spec: Value) -> Vec<String> {
    errors(&crd(json!({"type": "object", "properties": {"x": spec}})), None)
}

const X: &str = "spec.validation.openAPIV3Schema.properties[spec].properties[x]";

#[test]
fn a_valid_crd_is_accepted() {
    let rule = json!([{"rule": "self.size() < 5"}]);
    assert_eq!(errors_of(json!({"type": "string", "pattern": "^a+$", "x-kubernetes-validations": rule})), [""; 0]);
}

#[test]
fn an_error_of_a_schema_that_is_not_structural_has_its_path() {
    for (schema, wanted) in [
        (json!({}), "type: Required value: must not be empty for specified object fields"),
        (json!({"type": "array"}), "items: Required value: must be specified"),
        (
            json!({"type": "string", "pattern": "["}),
            "pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: \
             missing closing ]: `[`",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (json!({"type": "string", "id": "a"}), "id: Forbidden: id is not supported"),
    ] {
        assert_eq!(errors_of(schema), [format!("{X}.{wanted}")]);
    }
}

/// The server checks for undeclared fields only at the root.
#[test]
fn fields_that_the_root_validates_have_to_be_declared() {
    let mut new = crd(json!({"type": "object"}));
    let schema = &mut new["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["allOf"] = json!([{"properties": {"spec": {"properties": {"a": {"minLength": 1}}}}}]);
    let root = "spec.validation.openAPIV3Schema";
    assert_eq!(
        errors(&new, None),
        [format!(
            "{root}.properties[spec].properties[a]: Required value: because it is defined in \
             {root}.allOf[0].properties[spec].properties[a]"
        )]
    );
}

#[test]
fn rules_that_do_not_compile_are_refused() {
    let of = |rule: &str| errors_of(json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]}));
    for (rule, wanted) in [("self ==", "compilation failed: "), ("self + 1 == 2", "compilation failed: ")] {
        let found = of(rule);
        assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
        assert!(found[0].starts_with(&format!("{X}.x-kubernetes-validations[0].rule: Invalid value: {{\"Rule\":")));
    }
    assert!(of("self")[0].ends_with("cel expression must evaluate to a bool"));
    assert!(of("self == oldSelf").is_empty());
}

const TOO_MUCH: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, \
                        and strings are declared)";

/// A list of strings with this rule.
fn listed(rule: &str, max_items: u64, max_length: u64) -> Value {
    json!({"type": "array", "maxItems": max_items, "items": {"type": "string", "maxLength": max_length},
        "x-kubernetes-validations": [{"rule": rule}]})
}

#[test]
fn a_rule_that_may_cost_too_much_is_refused() {
    let rule = "self.all(x, self.all(y, x == y))";
    let with = |factor: &str| {
        format!(
            "{X}.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of {factor} \
             {TOO_MUCH}"
        )
    };
    let named = format!(
        "{X}.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit \
         for entire OpenAPIv3 schema"
    );
    let total = format!(
        "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire \
         OpenAPIv3 schema exceeds budget by factor of more than 100x {TOO_MUCH}"
    );
    assert_eq!(errors_of(listed(rule, 1_000, 10)), [""; 0]);
    assert_eq!(errors_of(listed(rule, 1_200, 10)), [with("1.296600x")]);
    assert_eq!(errors_of(listed(rule, 2_000, 10)), [with("3.6x")]);
    let unbounded = json!({"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": rule}]});
    assert_eq!(errors_of(unbounded), [with("more than 100x"), named, total]);
}

/// `optMap` copies its target, so the cost of a chain doubles with each link.
#[test]
fn a_cost_beyond_what_can_be_estimated_is_undecided() {
    let optional = |of: &str, links: usize| format!("optional.of({of}){}.hasValue()", ".optMap(x, x)".repeat(links));
    let (deep, path) = (0..50).fold((json!({"type": "integer"}), "self".to_owned()), |(schema, path), _| {
        (json!({"type": "object", "properties": {"x": schema}}), format!("{path}.x"))
    });
    for (schema, rule, reason) in [
        (json!({"type": "string"}), optional("self", 6), None),
        (json!({"type": "string"}), optional("self", 60), Some("too large for a cost estimate")),
        (deep.clone(), optional(&path, 11), None),
        (deep, optional(&path, 12), Some("too large for a cost estimate")),
    ] {
        let mut schema = schema;
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let outcome = validate(&crd(schema), None, KubernetesRelease::default()).expect("a CRD that can be read");
        assert_eq!(outcome.refusals, []);
        let open: Vec<&str> = outcome.undecided.iter().map(|open| open.reason.as_str()).collect();
        assert_eq!(open.len(), usize::from(reason.is_some()), "{open:?}");
        assert!(reason.is_none_or(|reason| open[0].contains(reason)), "{open:?}");
    }
}

#[test]
fn the_cost_of_a_message_expression_counts_once_and_that_of_a_rule_for_each_value() {
    let rules = json!([{"rule": "true", "messageExpression": "self.replace('', 'abcdefghij')"}]);
    let text = |max_length: u64| json!({"type": "string", "maxLength": max_length, "x-kubernetes-validations": rules});
    let within = |schema: Value| json!({"type": "array", "maxItems": 1_000, "items": schema});
    assert_eq!(errors_of(within(text(10_000_000))), [""; 0]);
    let found = errors_of(within(text(20_000_000)));
    assert!(found.len() == 1 && found[0].contains("messageExpression: Forbidden: estimated messageExpression cost"));
    let rules = json!([{"rule": "self.contains('a')"}]);
    let text = |max_length: u64| json!({"type": "string", "maxLength": max_length, "x-kubernetes-validations": rules});
    assert_eq!(errors_of(within(text(20_000))), [""; 0]);
    let found = errors_of(within(text(50_000)));
    assert!(found.len() == 1 && found[0].contains("items.x-kubernetes-validations[0].rule: Forbidden: estimated rule"));
}

/// Each rule alone is cheap enough. If there are more than four, only the most expensive ones are reported.
#[test]
fn the_total_cost_of_rules_is_limited_and_the_most_expensive_ones_are_named() {
    let rule = "self.all(x, self.all(y, x == y))";
    let lists = |count: u64| {
        let lists = (0..count).map(|at| (format!("l{at:02}"), listed(rule, 1_000 + at, 10)));
        crd(json!({"type": "object", "properties": lists.collect::<serde_json::Map<_, _>>()}))
    };
    assert_eq!(errors(&lists(10), None), [""; 0]);
    let found = errors(&lists(12), None);
    let named: Vec<&str> = found.iter().filter_map(|error| error.split(".properties[l").nth(1)?.get(..2)).collect();
    assert_eq!(named, ["11", "10", "09", "08"]);
    assert_eq!(found.len(), 5);
    assert!(
        found[4].contains("cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.0"),
        "{}",
        found[4]
    );
}

/// The server tolerates an expensive rule in an unchanged schema, but not an excessive total cost.
#[test]
fn an_unchanged_schema_may_keep_a_rule_that_costs_too_much() {
    let with = |max_items, max_length| {
        let list = listed("self.all(x, self.all(y, x == y))", max_items, max_length);
        let mut crd = crd(json!({"type": "object", "properties": {"x": list}}));
        // Adds another version so that each version has its own schema.
        let mut other = crd["spec"]["versions"][0].clone();
        (other["name"], other["storage"]) = ("v2".into(), false.into());
        other["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object"});
        crd["spec"]["versions"].as_array_mut().expect("versions").push(other);
        crd
    };
    let (costly, changed) = (with(2_000, 10), with(2_000, 11));
    assert_eq!(errors(&costly, None).len(), 1);
    assert_eq!(errors(&costly, Some(&costly)), [""; 0]);
    assert_eq!(errors(&changed, Some(&costly)).len(), 1);
    let beyond = with(20_000, 10);
    assert_eq!(errors(&beyond, Some(&beyond)).len(), 2);
}

#[test]
fn constants_that_no_program_can_be_made_of_are_refused_after_types_that_are_wrong() {
    let of = |rule: &str| errors_of(json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]})).join("");
    let broken = of("int('a') == 1 && self.find('[') == ''");
    assert!(broken.contains("program instantiation failed: "), "{broken}");
    assert!(of("int('a') == 1 && self + 1 == ''").contains("compilation failed: "));
    assert!(of("duration('a') == duration('1s')").contains("compilation failed: "));
}

#[test]
fn an_invalid_default_or_one_with_unknown_fields_is_refused() {
    assert_eq!(errors_of(json!({"type": "string", "default": "ab", "maxLength": 1})).len(), 1);
    let unique =
        json!({"type": "array", "items": {"type": "integer"}, "default": [1, 2, 1], "allOf": [{"uniqueItems": true}]});
    assert!(
        errors_of(unique).contains(&format!("{X}.default: Invalid value: \"\":  in body shouldn't contain duplicates"))
    );
    assert_eq!(
        errors_of(json!({"type": "text", "default": "a"}))[0],
        format!("{X}.default: Invalid value: \"string\":  in body must be of type text: \"string\"")
    );
    assert_eq!(
        errors_of(json!({"type": "object", "default": {"a": 1}})),
        [format!("{X}.default: Invalid value: {{\"a\":1}}: must not have unknown fields")]
    );
}

/// The server removes empty names from metadata before it validates a default.
#[test]
fn defaults_are_judged_with_their_metadata_as_the_server_understands_it() {
    let embedded = |default: Value| {
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "default": default,
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "minLength": 3}}}}})
    };
    let resource = |name: &str| json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": name}});
    assert_eq!(errors_of(embedded(resource(""))), [""; 0]);
    assert_eq!(errors_of(embedded(resource("ab"))).len(), 1);
    let with_kind = |default: &str| {
        let mut crd = crd(json!({"type": "object"}));
        let properties = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        properties["kind"] = json!({"type": "string", "default": default});
        errors(&crd, None)
    };
    assert_eq!(with_kind("A").len(), 1, "defaults are not allowed there");
    assert!(with_kind("a b")[0].contains("must result in valid metadata: kind: Invalid value"));
}

#[test]
fn an_update_may_keep_errors_of_the_live_crd() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}});
    let with = |extra: Value| crd(json!({"type": "object", "properties": {"x": set, "y": extra}}));
    let (old, new) = (with(json!({"type": "string"})), with(json!({"type": "integer"})));
    assert_eq!(errors(&new, None).len(), 1);
    assert_eq!(errors(&new, Some(&old)), [""; 0]);
    let mut renamed = old.clone();
    renamed["spec"]["group"] = "example.org".into();
    assert!(
        errors(&renamed, Some(&old))
            .contains(&"spec.group: Invalid value: \"example.org\": field is immutable".to_owned())
    );
}

#[test]
fn a_stored_version_may_not_be_removed() {
    let mut old = crd(json!({"type": "object"}));
    old["status"] = json!({"storedVersions": ["v1alpha1", "v1"]});
    let found = errors(&crd(json!({"type": "object"})), Some(&old));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("status.storedVersions[0]: Invalid value: \"v1alpha1\": missing from spec.versions;"));
}

/// Without a structural schema the server reports only errors before the first name of a path.
#[test]
fn paths_into_no_schema_are_read_as_far_as_the_server_reads_them() {
    let of = |path: &str| {
        let mut crd = crd(json!({"type": "object", "properties": {"x": {"type": "string", "additionalItems": {}}}}));
        crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": path}]);
        let all = errors(&crd, None).into_iter();
        all.filter_map(|error| Some(error.strip_prefix("spec.selectableFields[0].jsonPath: ")?.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("."), ["Invalid value: \".\": is an invalid path: unexpected end of JSON path"]);
    assert_eq!(of("spec.a"), ["Invalid value: \"spec.a\": is an invalid path: expected [ or . but got: spec"]);
    assert_eq!(of(".spec.a"), [""; 0]);
}

#[test]
fn versions_that_stay_are_validated_as_updates() {
    let string =
        |pattern: &str| crd(json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}));
    assert_eq!(errors_of_same_versions(&string("^a+$"), &string("^a+$")), [""; 0]);
    // An error that is reported on every update, even if it existed before.
    assert!(!errors_of_same_versions(&string("("), &string("(")).is_empty());
    // An error that is tolerated on update because it existed before.
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}});
    let set = crd(json!({"type": "object", "properties": {"x": set}}));
    assert!(!errors(&set, None).is_empty());
    assert_eq!(errors_of_same_versions(&set, &set), [""; 0]);
    let mut moved = string("^a+$");
    moved["spec"]["scope"] = json!("Cluster");
    let mut live = string("^a+$");
    live["status"] = json!({"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v0", "v1"]});
    let found = errors_of_same_versions(&moved, &live);
    assert!(found.iter().any(|error| error.contains("immutable")), "{found:?}");
    assert!(found.iter().any(|error| error.contains("storedVersions")), "{found:?}");
}

#[test]
fn the_live_versions_are_read_only_if_something_is_refused() {
    let stored = |mut crd: Value, versions: &[&str]| {
        crd["status"] = json!({"storedVersions": versions});
        crd
    };
    let string = |pattern: &str| crd(json!({"type": "string", "pattern": pattern}));
    let set = crd(json!({"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}}}));
    for (new, old, is_decided) in [
        (string("^a+$"), stored(string("^b$"), &["v1"]), true),
        // An error that the old schema has too.
        (set.clone(), stored(set.clone(), &["v1"]), false),
        (string("("), stored(string("a"), &["v1"]), false),
        (string("a"), stored(string("a"), &["v1alpha1", "v1"]), false),
        // Without the versions it is unknown which ones are stored.
        (string("a"), string("a"), false),
    ] {
        let mut rest = old.clone();
        rest["spec"]["versions"] = json!([]);
        let outcome =
            validate_without_old_versions(&new, &rest, KubernetesRelease::default()).expect("a CRD that can be read");
        assert_eq!(outcome.is_some(), is_decided, "{old}");
        errors(&new, Some(&old));
    }
}

#[test]
fn an_update_of_metadata_alone_has_the_errors_of_the_whole_update() {
    let live = crd(json!({"type": "object", "properties": {"x": {"type": "string"}}}));
    let mut protected = live.clone();
    protected["spec"]["group"] = json!("example.k8s.io");
    protected["metadata"]["name"] = json!("samples.example.k8s.io");
    protected["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "https://example.com/approval"});
    let mut count = 0;
    for (live, metadata) in [
        (&live, json!({"labels": {"version": "1.2.3"}})),
        (&live, json!({"labels": {"version": "not valid"}})),
        (&live, json!({"annotations": {"a b": ""}})),
        (&protected, json!({"annotations": {"api-approved.kubernetes.io": "no URL"}})),
        (&protected, json!({"annotations": {}})),
        (&protected, json!({"labels": {"a": "b"}})),
    ] {
        let (mut live, mut new) = (live.clone(), live.clone());
        for (key, value) in metadata.as_object().unwrap() {
            new["metadata"][key] = value.clone();
        }
        let wanted = errors(&new, Some(&live));
        count += wanted.len();
        for crd in [&mut live, &mut new] {
            crd["spec"]["versions"] = json!([]);
        }
        let outcome = validate_same_spec(&new, &live, KubernetesRelease::NEWEST_KNOWN).expect("a CRD that can be read");
        assert_eq!(outcome.refusals.iter().map(ToString::to_string).collect::<Vec<_>>(), wanted, "{metadata}");
    }
    assert_eq!(count, 4);
}

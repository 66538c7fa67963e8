//! The schemas of two served versions are no longer compatible.

use crate::crd_upgrade_safety::rule::{Between, CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{Crd, CrdPair, CrdVersion, steps, versions};
use gantry_core::finding::wording::Wording;

/// The subresources of the lower one of two served versions that the higher one lacks, and did not lack before. Clients
/// that name no version use the highest one.
fn lacking_subresources(pair: &CrdPair, known: &[(&str, &str)]) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    // A subresource that a version loses is another finding.
    let pairs = versions::some_served_pairs(&pair.desired).into_iter().filter(|pair| !known.contains(pair));
    for (lower, higher) in pairs {
        let (Some(with), Some(without)) = (pair.desired.version(lower), pair.desired.version(higher)) else { continue };
        let lacks: Vec<&str> = with.subresources_missing_in(without).collect();
        if lacks.is_empty() {
            continue;
        }
        let lacks = lacks.join(" and ");
        let diagnosis = ViolationText {
            message: format!(
                "{higher} has no subresource {lacks}, unlike {lower}: clients that name no version use the highest one, where \
                 requests to the subresource fail"
            )
            .into(),
            help: format!("add the subresource {lacks} to {higher}").into(),
            at: steps::version(without.index),
            ..ViolationText::default()
        }
        .label(format!("lacks {lacks}, which {lower} has"));
        found.push(CrdRuleViolation { version: Some(format!("{lower} -> {higher}")), diagnosis });
    }
    found
}

/// The maximum number of places named in the message.
const NAMED: usize = 3;

/// What a lower version asks of an object as a whole, and a higher one does not, and did not differ in before: objects
/// that are written at the higher version can then not be updated at the lower one. A value that only the higher version
/// accepts is tolerated in an update that leaves it as it is.
fn stricter_lower(
    pair: &CrdPair,
    between: &Between,
    [lower, higher]: [&str; 2],
    is_known: bool,
) -> Option<CrdRuleViolation> {
    const OF_WHOLES: &str = "NoRequiredFieldAdded";
    let mut differences = new_differences(pair, between, [higher, lower], is_known);
    differences.retain(|(_, rule, _)| *rule == OF_WHOLES);
    let places: Vec<String> =
        differences.iter().take(NAMED).map(|(path, rule, _)| format!("{path} ({rule})")).collect();
    if places.is_empty() {
        return None;
    }
    let index = pair.desired.version(higher).map_or(0, |version| version.index);
    let diagnosis = ViolationText {
        message: format!(
            "what is written at {higher} can be invalid at {lower}, where updates are then refused: {}",
            words::listed(&places)
        )
        .into(),
        help: format!("make {higher} as strict as {lower} there, convert with a webhook, or stop serving {lower}")
            .into(),
        at: steps::schema(index),
        ..ViolationText::default()
    }
    .label(format!("accepts objects that {lower} refuses"));
    Some(CrdRuleViolation { version: Some(format!("{higher} -> {lower}")), diagnosis })
}

/// How one version differs from another in desired, and did not in live if live served both.
fn new_differences(
    pair: &CrdPair,
    between: &Between,
    [from, to]: [&str; 2],
    is_known: bool,
) -> Vec<(String, &'static str, Wording)> {
    let mut differences = between(&pair.desired, from, to);
    if is_known {
        let had = between(&pair.live, from, to);
        differences.retain(|difference| !had.contains(difference));
    }
    differences
}

pub fn judge(pair: &CrdPair, between: &Between) -> Vec<CrdRuleViolation> {
    let known = versions::some_served_pairs(&pair.live);
    let mut found = lacking_subresources(pair, &known);
    if pair.desired.converts_by_webhook() {
        return found;
    }
    for (lower, higher) in versions::some_served_pairs(&pair.desired) {
        let text = |crd: &Crd, name: &str| crd.version(name).and_then(CrdVersion::schema).map(str::to_owned);
        let is_known = known.contains(&(lower, higher));
        if is_known && [lower, higher].iter().all(|v| text(&pair.live, v) == text(&pair.desired, v)) {
            continue;
        }
        found.extend(stricter_lower(pair, between, [lower, higher], is_known));
        let differences = new_differences(pair, between, [lower, higher], is_known);
        if differences.is_empty() {
            continue;
        }
        let mut places: Vec<String> =
            differences.iter().take(NAMED).map(|(path, rule, _)| format!("{path} ({rule})")).collect();
        if differences.len() > NAMED {
            places.push(format!("{} more", differences.len() - NAMED));
        }
        let index = pair.desired.version(higher).map_or(0, |version| version.index);
        let diagnosis = ViolationText {
            message: format!(
                "the schemas of {lower} and {higher} are no longer compatible: {}",
                words::listed(&places)
            )
            .into(),
            help: format!(
                "make {lower} and {higher} the same there, convert with a webhook, or stop serving one of \
                them"
            )
            .into(),
            at: steps::schema(index),
            ..ViolationText::default()
        }
        .label(format!("differs from {lower}, unlike in the live CRD"));
        found.push(CrdRuleViolation { version: Some(format!("{lower} -> {higher}")), diagnosis });
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::crd_upgrade_safety::{CrdUpgradeOptions, CrdUpgradeSafety};
    use gantry_core::crd::builder::{CrdBuilder, string_fields};

    fn messages(live: &Value, desired: &Value) -> Vec<String> {
        let check = CrdUpgradeSafety::new(CrdUpgradeOptions::default());
        let found = check.judge(&live.to_string(), &desired.to_string()).expect("valid CRDs");
        let of_rule = found.into_iter().filter(|violation| violation.rule == "ServedVersionsDiffer");
        of_rule.map(|violation| violation.body.message).collect()
    }

    #[test]
    fn a_new_version_without_the_subresources_of_another_is_reported_once() {
        let v1 = || CrdBuilder::new("g.io", "K").version_of_spec("v1", string_fields(&["a"])).status_subresource();
        let with_v2 = |served: bool| v1().version_of_spec("v2", string_fields(&["a"])).storage(false).served(served);
        let (alone, added, unserved) = (v1().build(), with_v2(true).build(), with_v2(false).build());
        let same = with_v2(true).status_subresource().build();
        let expected = "v2 has no subresource status, unlike v1";
        assert!(messages(&alone, &added)[0].starts_with(expected));
        assert!(messages(&unserved, &added)[0].starts_with(expected));
        for (live, desired) in [(&alone, &unserved), (&alone, &same), (&added, &added), (&added, &alone)] {
            assert_eq!(messages(live, desired), [""; 0]);
        }
        let conversion = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://localhost:9443/convert"}}});
        let converted = |mut crd: Value| {
            crd["spec"]["conversion"] = conversion.clone();
            crd
        };
        assert_eq!(messages(&converted(alone), &converted(added)).len(), 1, "a webhook converts no subresources");
    }
}

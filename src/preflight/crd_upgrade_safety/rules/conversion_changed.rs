//! The conversion between versions changes.

use crate::crd::{ClientConfig, Crd, CrdPair, ServiceReference, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ConversionChanged",
        summary: "a conversion webhook is added, changed or removed (warning)",
        forbids: "Nothing: it warns of `spec.conversion` that becomes a webhook, is one no more, or is another \
            webhook.",
        why: "With a webhook every read and write of another version than the stored one needs it: while it \
            does not answer, these requests fail, lists included. Without it, the API server only changes \
            the name of the version: what the webhook translated stays as it is, and fields that the version \
            asked for lacks are dropped.",
        example: Example::Crd {
            live: "\
spec:
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        url: https://127.0.0.1:9443/convert
",
            desired: "\
spec:
  conversion:
    strategy: None
",
        },
        what_to_do: "Add a webhook only when it runs and answers; take it away only when all served versions hold the \
            same objects and every object is stored at the storage version.",
        breaks: &[Breaks::Writers, Breaks::Readers, Breaks::Data],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Warning },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let config = |crd: &Crd| {
        let config = || crd.webhook().map(|webhook| webhook.client_config.clone()).unwrap_or_default();
        crd.converts_by_webhook().then(config)
    };
    let (message, help, label) = match (config(&pair.live), config(&pair.desired)) {
        (None, Some(_)) => (
            "objects are converted by a webhook from now on",
            "make sure that the webhook answers before this is deployed: until it does, other versions than the stored one cannot be read or written",
            "the live CRD converts by changing the version's name alone",
        ),
        (Some(_), None) => (
            "objects are no longer converted by a webhook",
            "make sure that every served version holds the same objects, and write each object once at the storage version before",
            "the live CRD converts by webhook",
        ),
        (Some(was), Some(now)) if !same(&was, &now) => (
            "the conversion webhook changes",
            "make sure that the new webhook answers, and that it reads everything that the old one has written",
            "the live CRD has another webhook",
        ),
        _ => return Vec::new(),
    };
    // Without a strategy there is nothing to point at but the versions.
    let at = if pair.desired.conversion.is_some() { "conversion" } else { "versions" };
    let said = Diagnosis {
        message: message.into(),
        help: help.into(),
        at: steps::spec(at),
        label: Some(label.into()),
        ..Diagnosis::default()
    };
    vec![Found { version: None, said }]
}

/// The CA is often put in by somebody else, and the server fills in the port: neither is another webhook.
fn same(was: &ClientConfig, now: &ClientConfig) -> bool {
    let service = |config: &ClientConfig| {
        let service = config.service.clone();
        service.map(|ServiceReference { namespace, name, path, .. }| (namespace, name, path))
    };
    was.url == now.url && service(was) == service(now)
}

//! The metrics of the webhook, in the text format of OpenMetrics.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use gantry_core::finding::{Finding, Severity};

use crate::decide::Decision;
use crate::judge::ChangeVerdict;

/// The media type of [`AdmissionMetrics::to_text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds in seconds, from a request that changes nothing to the longest that the API server waits.
const SECONDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    mode: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabels {
    rule: String,
    severity: &'static str,
}

/// Counts what the webhook does.
pub struct AdmissionMetrics {
    registry: Registry,
    reviews: Family<ReviewLabels, Counter>,
    findings: Family<FindingLabels, Counter>,
    duration: Histogram,
    cached: Counter,
    objects: Counter,
    malformed: Counter,
}

impl Default for AdmissionMetrics {
    fn default() -> Self {
        let mut metrics = AdmissionMetrics {
            registry: Registry::with_prefix("gantry_admission"),
            reviews: Family::default(),
            findings: Family::default(),
            duration: Histogram::new(SECONDS),
            cached: Counter::default(),
            objects: Counter::default(),
            malformed: Counter::default(),
        };
        let AdmissionMetrics { registry, reviews, findings, duration, cached, objects, malformed } = &mut metrics;
        registry.register("reviews", "Reviews answered", reviews.clone());
        registry.register("findings", "Findings about changes of CRDs", findings.clone());
        registry.register("review_duration_seconds", "Time to answer a review", duration.clone());
        registry.register("cached_denials", "Denials that were repeated without judging again", cached.clone());
        registry.register("objects_read", "Stored objects that were read to judge a change", objects.clone());
        registry.register("malformed_requests", "Requests that are no reviews of CRDs", malformed.clone());
        metrics
    }
}

impl AdmissionMetrics {
    /// Counts an answered review.
    pub fn count_review(&self, decision: &Decision, took: Duration) {
        let labels = ReviewLabels { mode: decision.mode.name(), outcome: decision.outcome.word() };
        self.reviews.get_or_create(&labels).inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// Counts what was found.
    pub fn count_verdict(&self, verdict: &ChangeVerdict) {
        self.objects.inc_by(verdict.objects_read());
        for Finding { rule, severity, .. } in verdict.findings() {
            let severity = if *severity == Severity::Error { "error" } else { "warning" };
            self.findings.get_or_create(&FindingLabels { rule: rule.clone(), severity }).inc();
        }
    }

    /// Counts a denial from the cache.
    pub fn count_cached(&self) {
        self.cached.inc();
    }

    /// Counts a request that is no review.
    pub fn count_malformed(&self) {
        self.malformed.inc();
    }

    /// All metrics, in the text format that Prometheus reads.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

//! Reviews of the API server: any bytes are answered or refused, and an answer is a review that keeps the limits of
//! the API server and of clients, whatever the CRD in it.

use gantry_admission::decide::{Requester, accepted_digests, decide};
use gantry_admission::judge::{ChangeVerdict, is_harmless};
use gantry_admission::review::ReviewedRequest;
use gantry_core::options::{AdmissionMode, UnjudgedChange};
use gantry_core::problem::Problem;
use gantry_deploy::config::AdmissionSettings;
use serde_json::Value;

pub fn run(data: &[u8]) {
    let reviewed = match ReviewedRequest::read(data) {
        Ok(reviewed) => reviewed,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let (crd, change) = (reviewed.crd(), &reviewed.change);
    let _ = is_harmless(change, reviewed.user());
    let accepts = accepted_digests(change);
    let verdict = ChangeVerdict::unjudged(change, Problem::new("not judged").help("judge it"));
    for mode in [AdmissionMode::Deny, AdmissionMode::Warn] {
        let settings = AdmissionSettings {
            mode,
            scopes: Vec::new(),
            on_timeout: UnjudgedChange::Deny,
            accepted_by: vec!["system:masters".to_owned()],
        };
        let decision = decide(&settings, crd, change, &verdict, Requester::from_request(&reviewed, &accepts));
        let answer = decision.answer;
        assert!(answer.refusal.as_ref().is_none_or(|refusal| refusal.len() <= 4_000), "{answer:?}");
        assert!(answer.warnings.iter().all(|warning| warning.len() <= 256), "{answer:?}");
        let review: Value = serde_json::from_slice(&answer.to_review(&reviewed.request)).expect("JSON");
        let response = &review["response"];
        assert_eq!(response["uid"], reviewed.request.uid, "{review}");
        assert_eq!(response["allowed"], answer.refusal.is_none(), "{review}");
    }
}

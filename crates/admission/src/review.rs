//! Reads an AdmissionReview and writes the answer.
//!
//! Source: <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>

use std::collections::{BTreeMap, HashMap};

use kube::core::PartialObjectMeta;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation};
use serde::Deserialize;
use serde_json::value::RawValue;

use gantry_core::resource::RawObject;
use gantry_yaml::MAX_DEPTH;

/// The maximum size of a review in bytes. The largest known CRD makes one of 2 MB, with both its sides.
pub const MAX_REVIEW_BYTES: usize = 8 << 20;

const CRD_GROUP: &str = "apiextensions.k8s.io";
const CRDS: &str = "customresourcedefinitions";

/// Why a body is no review that can be answered.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It is not JSON, or not an AdmissionReview.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1: {0}")]
    Malformed(String),
    /// The review is about objects of another kind.
    #[error("the review is about {0}, not about CustomResourceDefinitions of apiextensions.k8s.io/v1")]
    OtherKind(String),
}

/// What the API server asks about.
pub struct ReviewedRequest {
    /// The request without its objects.
    pub request: AdmissionRequest<PartialObjectMeta>,
    /// What happens to the CRD.
    pub change: ReviewedChange,
}

/// What a request does to a CRD.
#[derive(Debug, Clone)]
pub enum ReviewedChange {
    /// It is created. The API server validates it.
    Created,
    /// Everything but its status is replaced.
    Updated {
        /// As it is stored.
        live: RawObject,
        /// As it would be stored.
        desired: RawObject,
    },
    /// Its status is replaced.
    StatusUpdated {
        /// As it is stored.
        live: RawObject,
        /// As it would be stored.
        desired: RawObject,
    },
    /// It is deleted.
    Deleted {
        /// As it is stored.
        live: RawObject,
    },
}

/// The texts of the objects of a review.
#[derive(Deserialize)]
struct ReviewTexts<'a> {
    #[serde(borrow)]
    request: RequestTexts<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestTexts<'a> {
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'a RawValue>,
}

impl ReviewedRequest {
    /// Reads the body of a request of the API server.
    ///
    /// # Errors
    /// It is no review, or not about a CRD.
    pub fn read(body: &[u8]) -> Result<Self, ReviewError> {
        let malformed = |why: &dyn std::fmt::Display| ReviewError::Malformed(why.to_string());
        let text = std::str::from_utf8(body).map_err(|error| malformed(&error))?;
        if is_too_deep(text) {
            return Err(malformed(&"it is nested too deeply"));
        }
        let review: AdmissionReview<PartialObjectMeta> =
            serde_json::from_str(text).map_err(|error| malformed(&error))?;
        if (review.types.api_version.as_str(), review.types.kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview")
        {
            return Err(malformed(&format_args!("it is {} {}", review.types.api_version, review.types.kind)));
        }
        let request: AdmissionRequest<PartialObjectMeta> =
            review.try_into().map_err(|_| malformed(&"it has no request"))?;
        let ReviewTexts { request: texts } = serde_json::from_str(text).map_err(|error| malformed(&error))?;
        let resource = &request.resource;
        if (resource.group.as_str(), resource.version.as_str(), resource.resource.as_str()) != (CRD_GROUP, "v1", CRDS) {
            return Err(ReviewError::OtherKind(format!(
                "{}.{}.{}",
                resource.resource, resource.version, resource.group
            )));
        }
        let object = |text: Option<&RawValue>, name: &str| -> Result<RawObject, ReviewError> {
            let text = text.map(RawValue::get).filter(|text| text.starts_with('{'));
            text.map(RawObject::new).ok_or_else(|| malformed(&format_args!("the request has no {name}")))
        };
        let live = || object(texts.old_object, "oldObject");
        let desired = || object(texts.object, "object");
        let change = match (&request.operation, request.sub_resource.as_deref().unwrap_or_default()) {
            (Operation::Update, "") => ReviewedChange::Updated { live: live()?, desired: desired()? },
            (Operation::Update, "status") => ReviewedChange::StatusUpdated { live: live()?, desired: desired()? },
            (Operation::Delete, "") => ReviewedChange::Deleted { live: live()? },
            (Operation::Create, "") => ReviewedChange::Created,
            (operation, subresource) => {
                let operation = format!("{operation:?}").to_uppercase();
                return Err(ReviewError::OtherKind(format!("{operation} of {CRDS}/{subresource}")));
            }
        };
        Ok(ReviewedRequest { request, change })
    }

    /// The name of the CRD. The deletion of a collection has no name, and is one review for each of its objects.
    pub fn crd(&self) -> &str {
        let object = self.request.old_object.as_ref().or(self.request.object.as_ref());
        object.and_then(|object| object.metadata.name.as_deref()).unwrap_or(&self.request.name)
    }

    /// The name of the user who makes the request.
    pub fn user(&self) -> &str {
        self.request.user_info.username.as_deref().unwrap_or_default()
    }

    /// The groups of the user.
    pub fn groups(&self) -> &[String] {
        self.request.user_info.groups.as_deref().unwrap_or_default()
    }
}

/// Whether the text is nested more deeply than objects may be. The readers of JSON recurse.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// An answer to a review.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Why the request is refused; `None` if it is allowed.
    pub refusal: Option<String>,
    /// What the client shows.
    pub warnings: Vec<String>,
    /// What the API server adds to its audit log, below the name of the webhook.
    pub audit: BTreeMap<&'static str, String>,
}

impl Answer {
    /// The JSON of the review that answers this request.
    pub fn to_review(&self, request: &AdmissionRequest<PartialObjectMeta>) -> Vec<u8> {
        let mut response = AdmissionResponse::from(request);
        if let Some(message) = &self.refusal {
            response = response.deny(message);
            // kubectl prints the message of this code as it is; of others it may show the causes alone.
            response.result.code = http::StatusCode::FORBIDDEN.as_u16();
            response.result.reason = "Forbidden".to_owned();
        }
        response.warnings = (!self.warnings.is_empty()).then(|| self.warnings.clone());
        response.audit_annotations =
            self.audit.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect::<HashMap<_, _>>();
        // Writing a response to memory does not fail.
        serde_json::to_vec(&response.into_review()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn review(change: impl Fn(&mut Value)) -> Vec<u8> {
        let crd = json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com"}});
        let mut review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u",
                "kind": {"group": CRD_GROUP, "version": "v1", "kind": "CustomResourceDefinition"},
                "resource": {"group": CRD_GROUP, "version": "v1", "resource": CRDS},
                "name": "widgets.example.com",
                "operation": "UPDATE",
                "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
                "object": crd,
                "oldObject": crd,
                "dryRun": false,
            },
        });
        change(&mut review);
        review.to_string().into_bytes()
    }

    fn error(body: &[u8]) -> String {
        ReviewedRequest::read(body).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn each_operation_has_the_objects_that_it_needs() {
        let read = |change: &dyn Fn(&mut Value)| ReviewedRequest::read(&review(change)).map(|read| read.change);
        assert!(matches!(read(&|_| ()), Ok(ReviewedChange::Updated { .. })));
        let status = |review: &mut Value| review["request"]["subResource"] = "status".into();
        assert!(matches!(read(&status), Ok(ReviewedChange::StatusUpdated { .. })));
        let deleted = |review: &mut Value| {
            review["request"]["operation"] = "DELETE".into();
            review["request"]["object"] = Value::Null;
        };
        assert!(matches!(read(&deleted), Ok(ReviewedChange::Deleted { .. })));
        assert!(error(&review(|review| review["request"]["oldObject"] = Value::Null)).ends_with("no oldObject"));
        assert!(error(&review(|review| review["request"]["object"] = 3.into())).contains("AdmissionReview"));
    }

    #[test]
    fn bodies_that_are_no_reviews_of_crds_are_refused() {
        for body in [&b""[..], b"{}", b"[]", b"\xff", b"{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}"] {
            assert!(error(body).starts_with("the body is not an AdmissionReview"), "{}", error(body));
        }
        let deep = [b"[".repeat(1 << 20), b"]".repeat(1 << 20)].concat();
        assert!(error(&deep).ends_with("it is nested too deeply"));
        let beta = review(|review| review["apiVersion"] = "admission.k8s.io/v1beta1".into());
        assert!(error(&beta).contains("v1beta1"));
        let pods = review(|review| review["request"]["resource"]["resource"] = "pods".into());
        assert!(error(&pods).contains("not about CustomResourceDefinitions"));
    }

    #[test]
    fn a_refusal_is_forbidden_with_the_whole_message() {
        let read = ReviewedRequest::read(&review(|_| ())).unwrap();
        let answer =
            Answer { refusal: Some("no".into()), audit: BTreeMap::from([("a", "b".into())]), ..Answer::default() };
        let review: Value = serde_json::from_slice(&answer.to_review(&read.request)).unwrap();
        let response = &review["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(false)));
        assert_eq!((&response["status"]["code"], &response["status"]["message"]), (&json!(403), &json!("no")));
        assert_eq!(response["auditAnnotations"], json!({"a": "b"}));
        let allowed: Value = serde_json::from_slice(&Answer::default().to_review(&read.request)).unwrap();
        assert_eq!(allowed["response"]["allowed"], true);
    }
}

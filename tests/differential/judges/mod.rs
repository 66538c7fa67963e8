//! The reference for the API server's answer to a CRD: a server, or a program built from the server's own packages.

mod oracle;
mod tally;

use serde_json::{Value, json};

pub use oracle::Oracle;
pub use tally::Tally;

/// The answer: a status code, and the `Status` or the object.
pub type Answer = Result<(u16, Value), String>;

/// Stores CRDs in the state of a live one, for tests without a server.
pub fn as_live(crd: &Value) -> Value {
    let mut live = crd.clone();
    let storage = crd["spec"]["versions"].as_array().into_iter().flatten().find(|version| version["storage"] == true);
    live["metadata"]["uid"] = json!("1b4f3b4e-0000-4000-8000-000000000000");
    live["metadata"]["resourceVersion"] = json!("1");
    live["metadata"]["generation"] = json!(1);
    live["metadata"]["creationTimestamp"] = json!("2024-01-01T00:00:00Z");
    live["status"] = json!({
        "conditions": [{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "",
            "lastTransitionTime": "2024-01-01T00:00:00Z"}],
        "acceptedNames": crd["spec"]["names"],
        "storedVersions": [storage.map_or(Value::Null, |version| version["name"].clone())],
    });
    live
}

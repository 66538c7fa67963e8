//! The servers that gantry is compared with.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use gantry_k8s_cel::{CelEnvironment, KubernetesRelease};
use gantry_schema::{CompileError, FieldError, Schema, drop_ignored_formats, truncate_bounds_of_integers};
use serde_json::Value;

use crate::support::{Api, ControlPlane, chosen_releases, control_plane};

/// A release of Kubernetes that gantry is compared with.
#[derive(Clone, Copy)]
pub struct ComparedRelease {
    pub release: KubernetesRelease,
    /// Its name in the test bed; `None` is the release that is pinned.
    name: Option<&'static str>,
}

/// The releases that `GANTRY_RELEASES` names (`1.28,1.30`), or the one that the test bed pins.
pub fn compared_releases() -> Vec<ComparedRelease> {
    let named = |name: &'static str| {
        let release = name.parse().expect("a release such as 1.30");
        ComparedRelease { release, name: Some(name) }
    };
    match chosen_releases() {
        Some(names) => names.into_iter().map(named).collect(),
        None => vec![ComparedRelease { release: pinned_release(), name: None }],
    }
}

fn pinned_release() -> KubernetesRelease {
    gantry_testbed::pinned("k8s.io/kubernetes").parse().expect("the version of a release")
}

impl ComparedRelease {
    /// Its server, which all tests share.
    pub fn server(self) -> &'static ControlPlane {
        static STARTED: Mutex<BTreeMap<&str, &ControlPlane>> = Mutex::new(BTreeMap::new());
        let Some(name) = self.name else { return control_plane() };
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        started.entry(name).or_insert_with(|| Box::leak(Box::new(ControlPlane::start_release(name))))
    }

    pub fn api(self) -> &'static Api {
        self.server().api()
    }

    /// Compiles a schema as its servers do.
    pub fn compile(self, schema: &Value) -> Result<Schema, CompileError> {
        let mut schema = schema.clone();
        drop_ignored_formats(&mut schema, self.release);
        Ok(Schema::compile(&schema)?.with_release(self.release))
    }

    /// The schema as its servers enforce it, for a proof.
    pub fn enforced(self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        drop_ignored_formats(&mut schema, self.release);
        truncate_bounds_of_integers(&mut schema, self.release);
        schema
    }

    /// What is compared of an error: where it is, and the server's words. Those of releases before the pinned one are not
    /// reproduced, so only the reason is compared.
    pub fn said_by_us(self, error: &FieldError) -> (String, String) {
        let said = if self.has_known_words() { error.body() } else { error.kind.reason().to_owned() };
        (error.path.clone(), said)
    }

    /// The same of the causes in a server's answer; empty if the object was accepted.
    pub fn said_by_server(self, answer: &Value) -> Vec<(String, String)> {
        let causes = answer["details"]["causes"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let said = if self.has_known_words() { "message" } else { "reason" };
        causes.map(|cause| (text(&cause["field"]), text(&cause[said]))).collect()
    }

    pub fn has_known_words(self) -> bool {
        self.release >= pinned_release()
    }

    /// The environment of rules that are new in a CRD.
    pub fn cel_environment(self) -> CelEnvironment {
        CelEnvironment::of_new_expressions(self.release)
    }
}

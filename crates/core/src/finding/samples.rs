//! Findings for tests.

use serde_json::json;

use super::wording::wording;
use super::*;

/// A reference; without a namespace, the object is cluster-scoped.
pub fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}

/// The reference of the CRD of this name.
pub fn crd(name: &str) -> ObjectRef {
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name)
}

/// A place; column 0 stands for none.
pub fn source(file: &str, line: usize, column: usize) -> Source {
    Source { file: file.into(), line, column: (column > 0).then_some(column) }
}

impl Finding {
    /// The finding with another body.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut FindingBody)) -> Self {
        change(&mut self.body);
        self
    }
}

/// A finding with only the required fields.
pub fn finding(rule: &str, severity: Severity, object: ObjectRef, message: &str) -> Finding {
    Finding {
        rule: rule.into(),
        severity,
        original_severity: None,
        baseline_state: None,
        object: Some(object),
        source: None,
        change_source: None,
        body: FindingBody { message: message.into(), ..FindingBody::default() },
        not_written: false,
        refused_by_server: false,
        waived: None,
    }
}

/// The report of a check that reports errors, with these findings.
pub fn check(name: &str, status: CheckStatus, findings: Vec<Finding>) -> CheckReport {
    CheckReport::new(name, Mode::Error, status, findings)
}

/// The finding of a removed field, at a line of `manifests/crd.yaml`.
pub fn removed_field(version: &str, line: usize) -> Finding {
    let wording = ForVersions {
        message: wording!("field spec.pollInterval may not be removed from ", VERSIONS),
        help: wording!(
            "keep spec.pollInterval in ",
            VERSIONS,
            " and mark it as deprecated, or remove it only in a new version"
        ),
    };
    let removed = Finding {
        source: Some(source("manifests/crd.yaml", line, 17)),
        ..finding(
            "NoExistingFieldRemoved",
            Severity::Error,
            crd("samples.test.example.com"),
            &wording.message.for_versions(version),
        )
    }
    .with(|body| {
        body.label = Some("the live CRD has pollInterval here (string)".into());
        body.version = Some(version.into());
        body.path = Some("^.spec.pollInterval".into());
        body.documented = Some(format!(
            "\"NoExistingFieldRemoved\" validation failed: crd/samples.test.example.com version/{version} \
             field/^.spec.pollInterval may not be removed"
        ));
        body.verdict = Some(Verdict::DataLoss);
        body.breaks = vec![Breaks::Writers, Breaks::Readers, Breaks::Data];
        body.witnesses = vec![Witness {
            object: json!({
                "apiVersion": format!("test.example.com/{version}"), "kind": "Sample",
                "metadata": {"name": "x"}, "spec": {"pollInterval": "a"},
            }),
            old_object: None,
            subresource: None,
            live: WitnessVerdict::Accepted,
            desired: WitnessVerdict::Pruned,
            message: "spec.pollInterval is dropped".into(),
            refused_updates: None,
        }];
        body.fact = Some("removed".into());
        body.schema_changes = vec![KeywordChange::new("type", Some("\"string\""), None::<&str>)];
        body.help = wording.help.for_versions(version);
        body.explain = Some("NoExistingFieldRemoved".into());
    });
    removed.with(|body| body.wording = Some(wording))
}

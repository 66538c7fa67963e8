//! Records of the releases of OLM v1, as operator-controller writes them with Helm.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::ControlPlane;

/// The namespace of operator-controller.
const OLM: &str = "olmv1-system";

/// The release of a ClusterExtension.
pub struct OlmRelease<'a> {
    pub name: &'a str,
    /// Where it is installed.
    pub namespace: &'a str,
    pub revision: u32,
    pub status: &'a str,
    pub objects: &'a [Value],
    /// The number of Secrets that the record is split into.
    pub chunks: usize,
}

impl OlmRelease<'_> {
    /// Writes the record.
    pub fn record(&self, control_plane: &ControlPlane) {
        let OlmRelease { name, namespace, revision, status, objects, chunks } = *self;
        let manifest: String = objects.iter().map(|object| format!("{object}\n")).collect();
        let release = json!({
            "name": name, "namespace": namespace, "version": revision, "manifest": manifest,
            "info": {"status": status}, "chart": {"metadata": {"annotations": {}}}, "labels": {},
        });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(release.to_string().as_bytes()).expect("compress");
        let bytes = encoder.finish().expect("compress");
        let parts: Vec<String> = bytes.chunks(bytes.len().div_ceil(chunks)).map(|part| STANDARD.encode(part)).collect();
        let key = format!("sh.helm.release.v1.{name}.v{revision}");
        let more: Vec<String> = (1..parts.len()).map(|number| format!("{key}-{number}")).collect();
        control_plane.apply_yaml(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {OLM}}}\n"));
        let create = |secret: Value| {
            let (code, answer) = control_plane.post(&format!("/api/v1/namespaces/{OLM}/secrets"), &secret);
            assert_eq!(code, 201, "{answer:#}");
        };
        let labels = json!({
            "name": name, "owner": "operator-controller", "status": status, "version": revision.to_string(),
            "key": key, "type": "index",
        });
        create(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "operatorframework.io/index.v1",
            "metadata": {"name": key, "labels": labels},
            "data": {"extraChunks": STANDARD.encode(json!(more).to_string()), "chunk": parts[0]},
        }));
        for (name, part) in more.iter().zip(&parts[1..]) {
            create(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "operatorframework.io/chunk.v1", "immutable": true,
                "metadata": {"name": name, "labels": {"owner": "operator-controller", "key": key, "type": "chunk"}},
                "data": {"chunk": part},
            }));
        }
    }
}

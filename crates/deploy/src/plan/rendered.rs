//! The objects that OLM creates from the ClusterServiceVersion of a bundle, as manifests at its lines.

use std::sync::Arc;

use gantry_catalog::bundle::CsvStep;
use gantry_catalog::render::{self, RenderInput, RenderOptions, RenderedObject, SourceStep, WrongType};
use serde_json::Value;

use super::certificates::CERT_MANAGER;
use super::planned_bundle::PlannedBundle;
use gantry_core::manifest::{Manifest, ManifestOrigin, Spans};
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, RawObject, Step};
use gantry_core::text::{cut, sanitize};
use gantry_olm::cluster_extension::{self, OWNER_KIND, OWNER_NAME};

impl PlannedBundle {
    /// How OLM installs the bundle into this namespace.
    pub(super) fn render_options<'b>(&'b self, install: &'b str) -> RenderOptions<'b> {
        let config = self.extension().and_then(|extension| extension.config.get("deploymentConfig"));
        RenderOptions {
            install_namespace: install,
            watch_namespace: self.watched(install),
            certificates: Some(self.certificates.provider),
            deployment_config: config.filter(|config| !config.is_null()),
        }
    }

    /// What OLM creates from the ClusterServiceVersion if it installs the bundle into this namespace, and the names that
    /// earlier releases of OLM give to the ClusterRoles.
    ///
    /// # Errors
    /// OLM cannot read the ClusterServiceVersion, or the configuration.
    pub fn rendered(&self, install: &str) -> Result<(Vec<RenderedObject>, Vec<String>), Problem> {
        let Some(csv) = &self.csv else { return Ok(Default::default()) };
        let value = csv.raw.value();
        let properties = self.content.has_properties_file.then_some(self.content.properties.as_slice());
        let input = RenderInput { csv: &value, properties };
        let options = self.render_options(install);
        let objects = render::render(input, options).map_err(|error| self.unreadable(csv, error))?;
        let earlier = match options.watch_namespace {
            None => render::earlier_role_names(input).map_err(|error| self.unreadable(csv, error))?,
            Some(_) => Vec::new(),
        };
        Ok((objects, earlier))
    }

    fn unreadable(&self, csv: &Manifest, WrongType { steps, message, .. }: WrongType) -> Problem {
        let path: Vec<String> = steps.iter().map(SourceStep::to_string).collect();
        let path = path.concat();
        let path = path.trim_start_matches('.');
        let steps: Vec<Step> = steps
            .iter()
            .map(|step| match step {
                SourceStep::Key(key) => Step::from(key.as_str()),
                SourceStep::Index(index) => Step::from(*index),
            })
            .collect();
        let message = format!("{}: {}: {}", csv.object, sanitize(&cut(path, 200)), sanitize(&cut(&message, 200)));
        Problem::new(message)
            .at(Spans::parse(&csv.origin).locate(&steps).location)
            .help("OLM cannot read it either: fix the type of the field")
    }

    /// The rendered objects as manifests, in the namespace of the ClusterExtension or else in `namespace`, and notices
    /// about those that cannot be.
    ///
    /// # Errors
    /// As [`PlannedBundle::rendered`].
    pub(super) fn rendered_manifests(
        &self,
        index: usize,
        namespace: &str,
    ) -> Result<(Vec<Manifest>, Vec<Problem>), Problem> {
        let Some(csv) = &self.csv else { return Ok(Default::default()) };
        let install = self.namespace().unwrap_or(namespace);
        let (objects, _) = self.rendered(install)?;
        let spans = Spans::parse(&csv.origin);
        let (mut manifests, mut notices) = (Vec::<Manifest>::new(), Vec::new());
        let mut has_certificates = false;
        for object in objects {
            let manifest = self.manifest(csv, &spans, object, index);
            let reference = &*manifest.object;
            if reference.group() == CERT_MANAGER && self.certificates.are_left_out {
                has_certificates = true;
                continue;
            }
            if !is_usable_name(&reference.name) {
                let message = format!("OLM cannot create {reference}: its name is not valid");
                notices.push(Problem::new(sanitize(&message)).at(manifest.origin.location()));
                continue;
            }
            match manifests.iter().find(|known| known.object == manifest.object) {
                None => manifests.push(manifest),
                Some(known) if known.raw.value() == manifest.raw.value() => {}
                Some(_) => {
                    let message = format!("OLM creates {reference} twice; only the first is checked");
                    notices.push(Problem::new(sanitize(&message)).at(manifest.origin.location()));
                }
            }
        }
        if has_certificates {
            let message = format!(
                "bundle {}: the Issuer and the Certificate of its webhooks are not checked, because the target does not \
                 serve the kinds of cert-manager; OLM needs them",
                self.to_text()
            );
            notices.push(Problem::new(message));
        }
        Ok((manifests, notices))
    }

    fn manifest(&self, csv: &Manifest, spans: &Spans<'_>, rendered: RenderedObject, index: usize) -> Manifest {
        let RenderedObject { mut value, steps, renamed, .. } = rendered;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let namespace = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
        let mut object = ObjectRef {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace,
            name: text("/metadata/name"),
        };
        // The kind is cluster-scoped, and the API server ignores the namespace.
        if object.kind.ends_with("WebhookConfiguration") {
            object.namespace = None;
            if let Some(metadata) = value["metadata"].as_object_mut() {
                metadata.shift_remove("namespace");
            }
        }
        self.add_labels(&mut value);
        let step = |step: &CsvStep| match step {
            CsvStep::Key(key) => Step::from(*key),
            CsvStep::Index(index) => Step::from(*index),
        };
        let steps: Vec<Step> = steps.iter().map(step).collect();
        let line = spans.locate(&steps).location.line;
        let within = csv.origin.within.iter().cloned().chain(steps).collect();
        Manifest {
            object: Arc::new(object),
            raw: RawObject::from_value(&value),
            origin: ManifestOrigin { line, within, renamed, ..csv.origin.clone() },
            bundle: Some(index),
        }
    }

    /// Adds the labels that OLM sets on everything that a ClusterExtension installs.
    pub(super) fn add_labels(&self, object: &mut Value) {
        let (Some(extension), Some(metadata)) = (self.extension(), object["metadata"].as_object_mut()) else { return };
        let labels = metadata.entry("labels").or_insert(Value::Null);
        if !labels.is_object() {
            *labels = Value::Object(serde_json::Map::new());
        }
        labels[OWNER_KIND] = cluster_extension::KIND.into();
        labels[OWNER_NAME] = extension.name.as_str().into();
    }
}

/// Leaves out the rendered objects that the bundle also contains: an object is in the plan once.
pub(super) fn leave_out_known(rendered: &mut Vec<Manifest>, objects: &[Manifest]) -> Vec<Problem> {
    let mut notices = Vec::new();
    rendered.retain(|manifest| {
        let is_it = |known: &&Manifest| {
            let (known, rendered) = (&known.object, &manifest.object);
            (known.group(), &known.kind, &known.name) == (rendered.group(), &rendered.kind, &rendered.name)
        };
        let Some(known) = objects.iter().find(is_it) else { return true };
        let message =
            format!("OLM also creates {} from the ClusterServiceVersion; only this one is checked", known.object);
        notices.push(Problem::new(sanitize(&message)).at(known.origin.location()));
        false
    });
    notices
}

/// Whether the name can be part of a request.
fn is_usable_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%']) && !name.contains(char::is_control)
}

//! Certificates that the webhook makes itself, shared by its replicas.
//!
//! A Secret has the CA and the certificate of the webhook. A replica that finds none, or one that soon expires, makes
//! new ones and writes them only if the Secret is as it was read, so that of several replicas one wins and the others take
//! what it wrote. The configuration of the webhook trusts the CA before and after a rotation, so that it does not
//! matter when a replica takes the new certificate.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

use gantry_cluster::{Apply, ApplyError, FormerTools, ObjectToRead, Target, WritePrecondition};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};

use crate::certificates::Certificates;

/// The name of the Secret, and of the objects that the webhook is installed with.
pub const SECRET: &str = "gantry-admission-tls";
/// The name of the webhook configuration.
pub const WEBHOOK_CONFIGURATION: &str = "gantry-admission";
/// The name of the Service.
pub const SERVICE: &str = "gantry-admission";
/// Who owns what the server writes.
const FIELD_MANAGER: &str = "gantry-admission";

/// How long a certificate is valid.
const VALID: Duration = Duration::from_secs(90 * 24 * 3600);
/// A certificate is replaced when less than this is left.
const RENEWED: Duration = Duration::from_secs(30 * 24 * 3600);
/// A clock may be this far behind.
const SKEW: Duration = Duration::from_secs(3600);
/// How often a conflict with another replica is resolved before it counts as an error.
const ATTEMPTS: usize = 5;

/// Where the certificates are kept, and for whom they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfSigned {
    /// The namespace of the webhook.
    pub namespace: String,
    /// The names and addresses by which the API server reaches it.
    pub names: Vec<String>,
}

impl SelfSigned {
    /// For the Service of the webhook in a namespace, and for more names.
    pub fn new(namespace: &str, more: &[String]) -> Self {
        let service = format!("{SERVICE}.{namespace}.svc");
        SelfSigned {
            namespace: namespace.to_owned(),
            names: [service].into_iter().chain(more.iter().cloned()).collect(),
        }
    }

    /// Serves with the certificate of the Secret, after making or renewing it, and lets the API server trust it. To be
    /// repeated every minute or so.
    ///
    /// # Errors
    /// The Secret or the webhook configuration cannot be read or written.
    pub async fn maintain(&self, target: &Target, certificates: &Certificates, now: SystemTime) -> Result<(), Problem> {
        let kept = self.kept_certificates(target, now).await?;
        certificates
            .serve(kept.certificate.as_bytes(), kept.key.as_bytes())
            .map_err(|error| Problem::new(format!("the Secret {SECRET}: {error}")))?;
        self.trust(target, &kept.authorities()).await
    }

    /// The certificates of the Secret, if they are still good; otherwise new ones.
    async fn kept_certificates(&self, target: &Target, now: SystemTime) -> Result<KeptCertificates, Problem> {
        let secret = ObjectRef {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some(self.namespace.clone()),
            name: SECRET.into(),
        };
        let resource = Resource::built_in("", "Secret", "secrets", true);
        for _ in 0..ATTEMPTS {
            let live = read(target, &resource, &secret).await?;
            let before = live.as_ref().and_then(|live| KeptCertificates::read(&live.raw.value()));
            if let Some(kept) = before.clone().filter(|kept| kept.is_good(&self.names, now)) {
                return Ok(kept);
            }
            let made = self.make(before.as_ref(), now)?;
            let manifest = made.to_secret(&self.namespace);
            match write(target, &resource, &secret, &manifest, live.as_ref()).await {
                Ok(()) => return Ok(made),
                // Another replica was faster.
                Err(ApplyError::Changed) => {}
                Err(error) => return Err(Problem::new(format!("cannot write the Secret {SECRET}: {error}"))),
            }
        }
        Err(Problem::new(format!("the Secret {SECRET} kept changing")))
    }

    /// A new CA and a certificate by it.
    fn make(&self, before: Option<&KeptCertificates>, now: SystemTime) -> Result<KeptCertificates, Problem> {
        let failed = |error: rcgen::Error| Problem::new(format!("no certificate can be made: {error}"));
        let mut params = CertificateParams::new(Vec::<String>::new()).map_err(failed)?;
        params.not_before = (now - SKEW).into();
        params.not_after = (now + VALID).into();
        let mut authority = params.clone();
        authority.distinguished_name.push(DnType::CommonName, "gantry-admission-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_key = KeyPair::generate().map_err(failed)?;
        let authority_pem = authority.self_signed(&authority_key).map_err(failed)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let named = CertificateParams::new(self.names.clone()).map_err(failed)?;
        params.subject_alt_names = named.subject_alt_names;
        params.distinguished_name.push(DnType::CommonName, self.names[0].as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?.pem();
        let end = now + VALID;
        let end = end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(KeptCertificates {
            certificate,
            key: key.serialize_pem(),
            authority: authority_pem,
            // Replicas serve the old certificate until they read the Secret again.
            former_authority: before.map(|before| before.authority.clone()).unwrap_or_default(),
            names: self.names.join(","),
            end,
        })
    }

    /// Writes `caBundle` of each webhook of the configuration, if it is another one.
    async fn trust(&self, target: &Target, authorities: &str) -> Result<(), Problem> {
        let object = ObjectRef {
            api_version: "admissionregistration.k8s.io/v1".into(),
            kind: "ValidatingWebhookConfiguration".into(),
            namespace: None,
            name: WEBHOOK_CONFIGURATION.into(),
        };
        let resource = Resource::built_in(
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            false,
        );
        let bundle = STANDARD.encode(authorities.as_bytes());
        for _ in 0..ATTEMPTS {
            let Some(live) = read(target, &resource, &object).await? else {
                let message = format!("there is no ValidatingWebhookConfiguration {WEBHOOK_CONFIGURATION}");
                return Err(Problem::new(message).help("install it: gantry admission manifests"));
            };
            let value = live.raw.value();
            let webhooks: Vec<&Value> = value["webhooks"].as_array().into_iter().flatten().collect();
            if webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"] == bundle.as_str()) {
                return Ok(());
            }
            // Server-side apply merges the webhooks by name, and requires the fields that every webhook must have.
            let trusted = |webhook: &&Value| {
                json!({
                    "name": webhook["name"],
                    "admissionReviewVersions": webhook["admissionReviewVersions"],
                    "sideEffects": webhook["sideEffects"],
                    "clientConfig": {"caBundle": bundle},
                })
            };
            let manifest = json!({
                "apiVersion": object.api_version, "kind": object.kind,
                "metadata": {"name": WEBHOOK_CONFIGURATION},
                "webhooks": webhooks.iter().map(trusted).collect::<Vec<_>>(),
            });
            match write(target, &resource, &object, &manifest, Some(&live)).await {
                Ok(()) => return Ok(()),
                Err(ApplyError::Changed) => {}
                Err(error) => {
                    let message = format!("cannot write caBundle of {WEBHOOK_CONFIGURATION}: {error}");
                    return Err(Problem::new(message));
                }
            }
        }
        Err(Problem::new(format!("the ValidatingWebhookConfiguration {WEBHOOK_CONFIGURATION} kept changing")))
    }
}

async fn read(target: &Target, resource: &Resource, object: &ObjectRef) -> Result<Option<LiveObject>, Problem> {
    let wanted = ObjectToRead { resource: resource.clone().into(), object: object.clone().into() };
    let read = target.read(&[wanted], &|_, _| ()).await;
    let read = read.map_err(|error| {
        error.problems().first().cloned().unwrap_or_else(|| Problem::new(format!("cannot read {object}")))
    })?;
    Ok(read.into_iter().next().flatten())
}

async fn write(
    target: &Target,
    resource: &Resource,
    object: &ObjectRef,
    manifest: &Value,
    live: Option<&LiveObject>,
) -> Result<(), ApplyError> {
    let pin = match live {
        None => WritePrecondition::Absent,
        Some(live) => WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() },
    };
    let raw = RawObject::from_value(manifest);
    let apply = Apply {
        resource,
        object,
        raw: &raw,
        live: live.map(|live| &live.raw),
        pin: &pin,
        field_manager: FIELD_MANAGER,
        force_conflicts: true,
        former_tools: FormerTools::Keep,
        helm: None,
    };
    target.apply(&apply).await.map(drop)
}

/// What the Secret has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeptCertificates {
    certificate: String,
    key: String,
    authority: String,
    /// The CA before the last rotation; empty if there was none.
    former_authority: String,
    /// The names that the certificate is for.
    names: String,
    /// When the certificate ends, in seconds since 1970.
    end: u64,
}

/// The key of each text in the data of the Secret. The first two are those that `kubernetes.io/tls` requires.
const KEYS: [&str; 4] = ["tls.crt", "tls.key", "ca.crt", "former-ca.crt"];
/// The annotations of the Secret about its certificate. They are not secret, so messages can have the same words.
const NAMES: &str = "gantry.dev/certificate-names";
const END: &str = "gantry.dev/certificate-end";

impl KeptCertificates {
    /// `None` if the Secret was not written by a webhook.
    fn read(secret: &Value) -> Option<Self> {
        let text = |key: &str| {
            let encoded = secret["data"][key].as_str()?;
            String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
        };
        let annotation = |name: &str| secret["metadata"]["annotations"][name].as_str();
        let [certificate, key, authority, former] = KEYS;
        Some(KeptCertificates {
            certificate: text(certificate)?,
            key: text(key)?,
            authority: text(authority)?,
            former_authority: text(former).unwrap_or_default(),
            names: annotation(NAMES)?.to_owned(),
            end: annotation(END)?.parse().ok()?,
        })
    }

    fn to_secret(&self, namespace: &str) -> Value {
        let texts = [&self.certificate, &self.key, &self.authority, &self.former_authority];
        let data: BTreeMap<&str, String> =
            KEYS.into_iter().zip(texts.map(|text| STANDARD.encode(text.as_bytes()))).collect();
        let annotations = json!({NAMES: self.names, END: self.end.to_string()});
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": SECRET, "namespace": namespace, "annotations": annotations},
            "data": data,
        })
    }

    fn is_good(&self, names: &[String], now: SystemTime) -> bool {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(self.end);
        self.names == names.join(",") && end.duration_since(now).is_ok_and(|left| left > RENEWED)
    }

    /// Both CAs, as `caBundle` has them.
    fn authorities(&self) -> String {
        format!("{}{}", self.authority, self.former_authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs((20_000 + days) * 24 * 3600)
    }

    #[test]
    fn a_certificate_is_renewed_in_time_and_the_former_ca_stays_trusted() {
        let own = SelfSigned::new("guard", &["127.0.0.1".to_owned()]);
        let first = own.make(None, at(0)).unwrap();
        assert!(first.is_good(&own.names, at(59)));
        assert!(!first.is_good(&own.names, at(61)));
        assert!(!first.is_good(&["other".to_owned()], at(1)));
        let second = own.make(Some(&first), at(61)).unwrap();
        assert!(second.authorities().contains(&first.authority) && second.authorities().contains(&second.authority));
        assert_eq!(KeptCertificates::read(&second.to_secret("guard")), Some(second.clone()));
        Certificates::held_in_memory().serve(second.certificate.as_bytes(), second.key.as_bytes()).unwrap();
    }
}

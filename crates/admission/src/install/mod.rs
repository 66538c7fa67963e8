//! The objects that a cluster needs for the webhook, and the policy that needs no webhook, as YAML to apply.
//!
//! The texts are in `templates`. They leave out what others write, so that it is no conflict to apply them again:
//! `caBundle` (written by the server or by cert-manager), and the rules of an aggregated ClusterRole.

use gantry_core::options::AdmissionMode;

#[cfg(test)]
mod tests;

const NAMESPACE: &str = include_str!("templates/namespace.yaml");
const ACCOUNT: &str = include_str!("templates/account.yaml");
const RIGHTS: &str = include_str!("templates/rights.yaml");
const SELF_SIGNED: &str = include_str!("templates/self-signed.yaml");
const CERT_MANAGER: &str = include_str!("templates/cert-manager.yaml");
const SERVER: &str = include_str!("templates/server.yaml");
const WEBHOOK: &str = include_str!("templates/webhook.yaml");
const POLICY: &str = include_str!("templates/policy.yaml");

/// The image of the container that is used if no other is named. There is no public one: build it with
/// `packaging/container/Dockerfile` and push it to a registry of your own.
pub const DEFAULT_IMAGE: &str = concat!("gantry:", env!("CARGO_PKG_VERSION"));
/// The namespace that is used if no other is named.
pub const DEFAULT_NAMESPACE: &str = "gantry-admission";

/// What to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallOptions {
    /// What happens to a change that is not safe.
    pub mode: AdmissionMode,
    /// Where the API server reaches a webhook outside of the cluster, with the path `/validate`. Without it, the
    /// webhook runs in the cluster. cert-manager cannot sign for a URL: the user then provides the certificate.
    pub url: Option<String>,
    /// The namespace of the webhook.
    pub namespace: String,
    /// The image of the container.
    pub image: String,
    /// Where the certificate of the webhook is from.
    pub certificates: CertificateSource,
}

impl Default for InstallOptions {
    fn default() -> Self {
        InstallOptions {
            mode: AdmissionMode::Warn,
            url: None,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            image: DEFAULT_IMAGE.to_owned(),
            certificates: CertificateSource::default(),
        }
    }
}

/// Where the certificate of the webhook is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CertificateSource {
    /// The webhook makes and renews it. The default, because it needs nothing else: the manifests work as soon as they
    /// are applied. It costs the right to write one Secret and one webhook configuration.
    #[default]
    SelfSigned,
    /// cert-manager makes and renews it, and writes `caBundle`.
    CertManager,
    /// The user creates the Secret `gantry-admission-tls`, and fills in `caBundle`.
    Secret,
}

/// The manifests of everything that the cluster needs for the webhook, in the order in which they can be applied.
pub fn manifests(options: &InstallOptions) -> String {
    let is_self_signed = options.certificates == CertificateSource::SelfSigned;
    let is_by_cert_manager = options.certificates == CertificateSource::CertManager;
    let parts: &[(&str, bool)] = match &options.url {
        None => &[
            (NAMESPACE, true),
            (ACCOUNT, true),
            (RIGHTS, true),
            (SELF_SIGNED, is_self_signed),
            (CERT_MANAGER, is_by_cert_manager),
            (SERVER, true),
            (WEBHOOK, true),
        ],
        // With its own certificate, the webhook keeps a Secret in the namespace.
        Some(_) => &[(NAMESPACE, is_self_signed), (RIGHTS, true), (SELF_SIGNED, is_self_signed), (WEBHOOK, true)],
    };
    let texts: Vec<&str> = parts.iter().filter(|(_, is_wanted)| *is_wanted).map(|(text, _)| *text).collect();
    let mut manifests = String::new();
    for line in texts.join("---\n").lines() {
        match line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}")) {
            Some(name) => manifests.push_str(&lines_of(name, options)),
            None => manifests.extend([line, "\n"]),
        }
    }
    manifests
        .replace("{{mode}}", options.mode.name())
        .replace(": {{image}}", &format!(": {}", scalar(&options.image)))
        .replace(": {{namespace}}", &format!(": {}", scalar(&options.namespace)))
        .replace("{{namespace}}", &options.namespace)
}

/// The ValidatingAdmissionPolicy that finds the worst changes without a webhook, and its binding.
pub fn policy(mode: AdmissionMode) -> String {
    let actions = match mode {
        AdmissionMode::Deny => "Deny",
        // A warning alone would be in no log.
        AdmissionMode::Warn => "Warn, Audit",
        _ => "Audit",
    };
    POLICY.replace("{{actions}}", actions)
}

/// What a line of a template that is only a name stands for: whole lines, or none.
fn lines_of(name: &str, options: &InstallOptions) -> String {
    use CertificateSource::{CertManager, Secret, SelfSigned};
    let is_inside = options.url.is_none();
    let lines = match (name, options.certificates) {
        ("subject", _) if is_inside => SUBJECT_ACCOUNT,
        ("subject", _) => SUBJECT_USER,
        ("tls-arguments", SelfSigned) => SELF_SIGNED_ARGUMENTS,
        ("tls-arguments", CertManager | Secret) => TLS_ARGUMENTS,
        ("tls-mount", CertManager | Secret) => TLS_MOUNT,
        ("tls-volume", CertManager | Secret) => TLS_VOLUME,
        ("trust", SelfSigned) => "# The webhook itself fills in caBundle of both entries, within a minute.\n",
        ("trust", CertManager) if is_inside => "# cert-manager fills in caBundle of both entries.\n",
        ("trust", _) => TRUST,
        ("annotations", CertManager) if is_inside => ANNOTATIONS,
        ("client", _) => match &options.url {
            None => CLIENT,
            Some(url) => return format!("      url: {}\n", scalar(url)),
        },
        ("failure", _) if options.mode == AdmissionMode::Deny => FAIL,
        ("failure", _) => IGNORE,
        _ => "",
    };
    lines.to_owned()
}

const SUBJECT_ACCOUNT: &str = "  - kind: ServiceAccount
    name: gantry-admission
    namespace: {{namespace}}
";

const SUBJECT_USER: &str = "  # The user of the webhook's kubeconfig.
  - kind: User
    apiGroup: rbac.authorization.k8s.io
    name: gantry-admission
";

const SELF_SIGNED_ARGUMENTS: &str = "            - --self-signed
            - --namespace={{namespace}}
";

const TLS_ARGUMENTS: &str = "            - --tls-cert=/tls/tls.crt
            - --tls-key=/tls/tls.key
";

const TLS_MOUNT: &str = "            - name: tls
              mountPath: /tls
              readOnly: true
";

const TLS_VOLUME: &str = "        - name: tls
          secret:
            secretName: gantry-admission-tls
";

const TRUST: &str = "# Add caBundle to clientConfig of both entries: the CA of its certificate, as PEM in base64.
";

const ANNOTATIONS: &str = "  annotations:
    cert-manager.io/inject-ca-from: {{namespace}}/gantry-admission
";

const CLIENT: &str = "      service:
        name: gantry-admission
        namespace: {{namespace}}
        path: /validate
        port: 443
";

const FAIL: &str = "    # What is not judged is refused: while the webhook is down, nobody changes or deletes a CRD.
    failurePolicy: Fail
";

const IGNORE: &str = "    # The mode refuses nothing, so a webhook that is down is in nobody's way. If you list CRDs
    # under admission.deny, set this to Fail: otherwise their changes pass while the webhook is down.
    failurePolicy: Ignore
";

/// A text as a value in YAML: as it is, unless YAML could read it as something else.
fn scalar(text: &str) -> String {
    let is_plain =
        gantry_yaml::write::is_plain(text, |letter| letter.is_ascii_alphanumeric() || "-._/:@".contains(letter));
    // A JSON string is a YAML string.
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

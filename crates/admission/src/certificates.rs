//! The certificate of the webhook: from files that are read again when they change, or from memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why no certificate can be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CertificateError(pub String);

/// The files of a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, as PEM.
    pub certificate: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
}

/// The certificate that connections are served with.
pub struct Certificates {
    files: Option<CertificateFiles>,
    served: Mutex<Served>,
}

#[derive(Default)]
struct Served {
    /// The last one that could be read.
    config: Option<Arc<ServerConfig>>,
    /// When the files were written that were read last.
    written: Option<[SystemTime; 2]>,
    error: Option<CertificateError>,
}

impl Certificates {
    /// Those in these files, which are read at once and again whenever they change.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn from_files(files: CertificateFiles) -> Result<Self, CertificateError> {
        let certificates = Certificates { files: Some(files), served: Mutex::default() };
        certificates.config()?;
        Ok(certificates)
    }

    /// A certificate that [`Certificates::serve`] sets.
    pub fn held_in_memory() -> Self {
        Certificates { files: None, served: Mutex::default() }
    }

    /// Serves new connections with this certificate and key, both PEM.
    ///
    /// # Errors
    /// They are no certificate and its key.
    pub fn serve(&self, certificate: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let config = to_config(certificate, key)?;
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        *served = Served { config: Some(config), ..Served::default() };
        Ok(())
    }

    /// What a new connection is served with. If the files have changed and cannot be used, the last certificate stays.
    ///
    /// # Errors
    /// There is none yet.
    pub fn config(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files {
            let written = files.modification_times();
            if served.config.is_none() || served.error.is_some() || written != served.written {
                match files.read() {
                    Ok(config) => *served = Served { config: Some(config), written, error: None },
                    Err(error) => served.error = Some(error),
                }
            }
        }
        let missing = || served.error.clone().unwrap_or_else(|| CertificateError("there is no certificate yet".into()));
        served.config.clone().ok_or_else(missing)
    }

    /// Why the newest certificate is not served.
    pub fn error(&self) -> Option<CertificateError> {
        if let Err(error) = self.config() {
            return Some(error);
        }
        self.served.lock().unwrap_or_else(PoisonError::into_inner).error.clone()
    }
}

impl CertificateFiles {
    /// A mounted Secret changes by a link, so that the time is that of the file behind it.
    fn modification_times(&self) -> Option<[SystemTime; 2]> {
        let time = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        Some([time(&self.certificate)?, time(&self.key)?])
    }

    fn read(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let read = |path: &Path| {
            let unreadable = |error: io::Error| CertificateError(format!("cannot read {}: {error}", path.display()));
            fs::read(path).map_err(unreadable)
        };
        to_config(&read(&self.certificate)?, &read(&self.key)?).map_err(|CertificateError(why)| {
            CertificateError(format!("{} and {}: {why}", self.certificate.display(), self.key.display()))
        })
    }
}

fn to_config(certificate: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, CertificateError> {
    let unusable = |why: String| CertificateError(why);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(format!("the certificate is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(unusable("there is no certificate in the file".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(format!("the key is not PEM: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| unusable(error.to_string()))?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> [String; 2] {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        [cert.pem(), signing_key.serialize_pem()]
    }

    /// Rewrites a file at a later time than before.
    fn write(path: &Path, text: &str, second: u64) {
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second)).unwrap();
    }

    #[test]
    fn changed_files_are_read_again_and_broken_ones_leave_the_old_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
        assert!(Certificates::from_files(files.clone()).err().unwrap().to_string().contains("tls.crt"));
        let store = |[certificate, key]: [&str; 2], second| {
            write(&files.certificate, certificate, second);
            write(&files.key, key, second);
        };
        let [one, other] = [pair(), pair()];
        store([&one[0], &one[1]], 1);
        let certificates = Certificates::from_files(files.clone()).unwrap();
        let first = certificates.config().unwrap();
        assert!(Arc::ptr_eq(&first, &certificates.config().unwrap()), "nothing has changed");
        // A certificate without its key, as in the middle of a rotation.
        store([&other[0], &one[1]], 2);
        assert!(Arc::ptr_eq(&first, &certificates.config().unwrap()));
        assert!(certificates.error().is_some());
        store([&other[0], &other[1]], 3);
        assert!(!Arc::ptr_eq(&first, &certificates.config().unwrap()));
        assert_eq!(certificates.error(), None);
    }
}

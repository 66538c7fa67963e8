//! The CA bundle: the certificates by which the API server knows the webhook.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;

use crate::date::Date;

/// Whether a bundle (PEM in base64, as a CRD has it) holds a certificate that is valid today; if not, why.
///
/// One that has expired beside one that has not is how certificates are rotated.
pub fn problem(bundle: &str, today: Date) -> Option<String> {
    let compact: String = bundle.split_whitespace().collect();
    let Ok(pem) = BASE64.decode(compact) else { return Some("it is not base64".to_owned()) };
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let Ok(certificates) = certificates else { return Some("it is not PEM".to_owned()) };
    if certificates.is_empty() {
        return Some("it holds no certificate".to_owned());
    }
    let mut problem = None;
    for certificate in &certificates {
        match validity(certificate, today) {
            Ok(()) => return None,
            Err(why) => problem = problem.or(Some(why)),
        }
    }
    problem
}

fn validity(certificate: &CertificateDer<'_>, today: Date) -> Result<(), String> {
    let (_, certificate) =
        parse_x509_certificate(certificate).map_err(|error| format!("a certificate in it cannot be read: {error}"))?;
    let validity = certificate.validity();
    let (from, to) = (date(validity.not_before), date(validity.not_after));
    if to < today {
        return Err(format!("its certificate expired on {to}"));
    }
    if from > today {
        return Err(format!("its certificate is not valid before {from}"));
    }
    Ok(())
}

fn date(time: ASN1Time) -> Date {
    let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
    Date::of(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate that is valid from 2026-01-01 to 2026-12-31.
    const CERTIFICATE: &str = include_str!("../../../tests/fixtures/ca-2026.crt");

    #[test]
    fn a_bundle_needs_one_certificate_that_is_valid_today() {
        let bundle = BASE64.encode(CERTIFICATE);
        for (bundle, today, expected) in [
            (bundle.as_str(), "2026-06-01", None),
            (&bundle, "2026-01-01", None),
            (&bundle, "2026-12-31", None),
            (&bundle, "2027-01-01", Some("its certificate expired on 2026-12-31")),
            (&bundle, "2025-12-31", Some("its certificate is not valid before 2026-01-01")),
            ("Cg==", "2026-06-01", Some("it holds no certificate")),
            ("?", "2026-06-01", Some("it is not base64")),
        ] {
            assert_eq!(problem(bundle, Date::parse(today).unwrap()).as_deref(), expected, "{today}");
        }
        let broken = BASE64.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        assert!(problem(&broken, Date::parse("2026-06-01").unwrap()).unwrap().contains("cannot be read"));
    }
}

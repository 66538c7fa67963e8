//! Checks the CA bundle: the certificates with which the API server verifies the webhook.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;

use gantry_core::date::Date;

/// Why a bundle is invalid.
#[derive(Debug, PartialEq, Eq)]
pub enum InvalidCaBundle {
    /// The server refuses the CRD, or stores it and does not serve it.
    Unreadable(String),
    /// No certificate is valid today.
    NotValidToday(String),
}

/// Why a bundle (base64-encoded PEM, as in a CRD) contains no certificate that is valid today; `None` if it contains
/// one.
///
/// Expired certificates beside a valid one are fine: that is how certificates are rotated.
pub fn find_fault(bundle: &str, today: Date) -> Option<InvalidCaBundle> {
    let unreadable = |why: &str| Some(InvalidCaBundle::Unreadable(why.to_owned()));
    let compact: String = bundle.split_whitespace().collect();
    let Ok(pem) = BASE64.decode(compact) else { return unreadable("it is not base64") };
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let Ok(certificates) = certificates else { return unreadable("it is not PEM") };
    if certificates.is_empty() {
        return unreadable("it contains no certificate");
    }
    let mut fault = None;
    for certificate in &certificates {
        match check_validity(certificate, today) {
            Ok(()) => return None,
            Err(why) => fault = fault.or(Some(why)),
        }
    }
    fault
}

fn check_validity(certificate: &CertificateDer<'_>, today: Date) -> Result<(), InvalidCaBundle> {
    let (_, certificate) = parse_x509_certificate(certificate)
        .map_err(|error| InvalidCaBundle::Unreadable(format!("a certificate in it cannot be parsed: {error}")))?;
    let validity = certificate.validity();
    let (from, to) = (date(validity.not_before), date(validity.not_after));
    if to < today {
        return Err(InvalidCaBundle::NotValidToday(format!("its certificate expired on {to}")));
    }
    if from > today {
        return Err(InvalidCaBundle::NotValidToday(format!("its certificate is not valid before {from}")));
    }
    Ok(())
}

fn date(time: ASN1Time) -> Date {
    let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
    Date::from(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate that is valid from 2026-01-01 to 2026-12-31.
    const CERTIFICATE: &str = include_str!("../../../../tests/fixtures/ca-2026.crt");

    #[test]
    fn a_bundle_needs_one_certificate_that_is_valid_today() {
        let bundle = BASE64.encode(CERTIFICATE);
        for (bundle, today, expected) in [
            (bundle.as_str(), "2026-06-01", None),
            (&bundle, "2026-01-01", None),
            (&bundle, "2026-12-31", None),
            (
                &bundle,
                "2027-01-01",
                Some(InvalidCaBundle::NotValidToday("its certificate expired on 2026-12-31".to_owned())),
            ),
            (
                &bundle,
                "2025-12-31",
                Some(InvalidCaBundle::NotValidToday("its certificate is not valid before 2026-01-01".to_owned())),
            ),
            ("Cg==", "2026-06-01", Some(InvalidCaBundle::Unreadable("it contains no certificate".to_owned()))),
            ("?", "2026-06-01", Some(InvalidCaBundle::Unreadable("it is not base64".to_owned()))),
        ] {
            assert_eq!(find_fault(bundle, Date::parse(today).unwrap()), expected, "{today}");
        }
        let broken = BASE64.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        let broken = find_fault(&broken, Date::parse("2026-06-01").unwrap());
        assert!(
            matches!(&broken, Some(InvalidCaBundle::Unreadable(why)) if why.contains("cannot be parsed")),
            "{broken:?}"
        );
    }
}

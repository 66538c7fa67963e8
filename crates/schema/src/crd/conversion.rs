//! `spec.conversion`: how objects are converted between versions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::api_value::show_list;
use super::found::Errors;
use super::model::{ConversionModel, CrdClientConfig, ServiceModel};
use super::options::CrdRequirements;
use crate::names as texts;
use crate::path::LinkedPath;
use gantry_k8s_cel::golang::url::Url;

/// The ConversionReview versions that the server supports.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub fn check(conversion: &ConversionModel, options: &CrdRequirements, path: &LinkedPath, errors: &mut Errors) {
    match conversion.strategy {
        "None" | "Webhook" => {}
        "" => errors.required(&LinkedPath::Name(path, "strategy"), ""),
        other => errors.unsupported(&LinkedPath::Name(path, "strategy"), other, &["None", "Webhook"]),
    }
    let client_path = &LinkedPath::Name(path, "webhookClientConfig");
    let versions_path = &LinkedPath::Name(path, "conversionReviewVersions");
    if conversion.strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if conversion.client.is_some() {
            errors.forbidden(client_path, detail);
        }
        if !conversion.review_versions.is_empty() {
            errors.forbidden(versions_path, detail);
        }
        return;
    }
    match &conversion.client {
        None => errors.required(client_path, "required when strategy is set to Webhook"),
        Some(config) => check_client(config, options, client_path, errors),
    }
    review_versions(&conversion.review_versions, options, versions_path, errors);
}

fn check_client(config: &CrdClientConfig, options: &CrdRequirements, path: &LinkedPath, errors: &mut Errors) {
    match (config.url, &config.service) {
        (Some(url), None) => self::check_url(url, &LinkedPath::Name(path, "url"), errors),
        (None, Some(service)) => self::check_service(service, &LinkedPath::Name(path, "service"), errors),
        _ => errors.required(path, "exactly one of url or service is required"),
    }
    if !config.ca_bundle.is_empty()
        && !options.allow_invalid_ca
        && let Some(problem) = ca_problem(config.ca_bundle)
    {
        errors.invalid(&LinkedPath::Name(path, "caBundle"), config.ca_bundle, problem);
    }
}

fn check_url(text: &str, path: &LinkedPath, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(problem) => return errors.required(path, format!("url must be a valid URL: {problem}{FORM}")),
    };
    if url.scheme != "https" {
        errors.invalid(path, url.scheme.as_str(), format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        errors.invalid(path, "", format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        errors.invalid(path, user.as_str(), "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        errors.invalid(path, url.fragment.as_str(), "fragments are not permitted in the URL");
    }
    if let Some(query) = url.query.filter(|query| !query.is_empty()) {
        errors.invalid(path, query, "query parameters are not permitted in the URL");
    }
}

/// The server checks the name and the namespace in swapped order.
fn check_service(service: &ServiceModel, path: &LinkedPath, errors: &mut Errors) {
    if service.namespace.is_empty() {
        errors.required(&LinkedPath::Name(path, "name"), "");
    }
    if service.name.is_empty() {
        errors.required(&LinkedPath::Name(path, "namespace"), "");
    }
    if !(1..=65_535).contains(&service.port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&LinkedPath::Name(path, "port"), service.port, detail);
    }
    let Some(url_path) = service.path.filter(|path| !matches!(*path, "" | "/")) else { return };
    let path = &LinkedPath::Name(path, "path");
    if url_path == "//" {
        return errors.invalid(path, url_path, "segment[0] may not be empty");
    }
    if !url_path.starts_with('/') {
        errors.invalid(path, url_path, "must start with a '/'");
    }
    // The server removes the first character, whatever it is.
    let mut characters = url_path.chars();
    characters.next();
    let steps = characters.as_str();
    for (at, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(path, url_path, format!("segment[{at}] may not be empty"));
            continue;
        }
        for complaint in texts::subdomain(step) {
            errors.invalid(path, url_path, format!("segment[{at}]: {complaint}"));
        }
    }
}

fn review_versions(versions: &[&str], options: &CrdRequirements, path: &LinkedPath, errors: &mut Errors) {
    if versions.is_empty() {
        return errors.required(path, "");
    }
    for (at, version) in versions.iter().enumerate() {
        let path = &LinkedPath::Index(path, at);
        if versions[..at].contains(version) {
            errors.invalid(path, *version, "duplicate version");
            continue;
        }
        for complaint in texts::dns_1035_label(version) {
            errors.invalid(path, *version, complaint);
        }
    }
    if options.require_recognized_review && !has_recognized(versions) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.invalid_as(path, &show_list(versions), &detail);
    }
}

pub fn has_recognized(versions: &[&str]) -> bool {
    versions.iter().any(|version| REVIEW_VERSIONS.contains(version))
}

/// The reason why a CA bundle (base64-encoded PEM) cannot be used, if any.
pub fn ca_problem(bundle: &str) -> Option<String> {
    let compact: String = bundle.split_whitespace().collect();
    let Ok(pem) = BASE64.decode(compact) else { return Some("illegal base64 data".to_owned()) };
    let mut rest = pem.as_slice();
    let mut problem = "no valid certificate authority data seen".to_owned();
    let mut usable = false;
    while !rest.is_empty() {
        let Ok((after, block)) = x509_parser::pem::parse_x509_pem(rest) else {
            problem = "unable to parse bytes as PEM block".to_owned();
            break;
        };
        rest = after;
        if block.label != "CERTIFICATE" {
            continue;
        }
        match block.parse_x509() {
            Ok(_) => usable = true,
            Err(error) => {
                problem = format!("failed to parse certificate: {error}");
                break;
            }
        }
    }
    (!usable).then(|| format!("unable to load root certificates: {problem}"))
}

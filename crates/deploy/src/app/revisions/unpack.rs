//! Reads the text of a revision. Everybody who can write Secrets in the namespace can have written it, so what is read is
//! limited.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;

use super::manifests::sum;
use super::{DATA, MOST, MOST_PARTS, MOST_UNPACKED, NUMBER, Revision, label, part_name, secrets};
use crate::app::App;
use gantry_cluster::{ListRequest, Target};
use gantry_core::problem::Problem;

/// A few Secrets that are as large as they can be.
const PAGE: u32 = 4;
/// The most characters of base64 in a part.
const MOST_ENCODED: usize = MOST / 3 * 4 + 4;

#[derive(Deserialize)]
struct SecretText {
    metadata: SecretName,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct SecretName {
    name: String,
}

/// The manifests of a revision, as one text of YAML documents. `if_damaged` is what to do then.
///
/// # Errors
/// The server does not answer; a part is missing or damaged.
pub async fn read_manifests(
    app: &App,
    revision: &Revision,
    if_damaged: &str,
    target: &Target,
) -> Result<String, Problem> {
    let read = read_text(app, revision, target).await?;
    read.map_err(|why| {
        let message = format!("revision {} of the app {} is damaged: {why}", revision.number, app.name);
        Problem::new(message).help(if_damaged)
    })
}

/// The manifests of a revision, or why it is damaged.
///
/// # Errors
/// The server does not answer.
pub(super) async fn read_text(
    app: &App,
    revision: &Revision,
    target: &Target,
) -> Result<Result<String, String>, Problem> {
    let number = revision.number;
    let head = match &revision.head {
        Ok(head) if (1..=MOST_PARTS).contains(&head.parts) => head,
        Ok(head) => {
            let parts = head.parts;
            return Ok(Err(format!("its head names {parts} parts, and a revision has 1 to {MOST_PARTS}")));
        }
        Err(why) => return Ok(Err(why.clone())),
    };
    let (resource, selector) = (Arc::new(secrets()), format!("{},{NUMBER}={number}", label(app)));
    let request = ListRequest {
        namespace: Some(&app.namespace),
        label_selector: Some(&selector),
        ..ListRequest::new(&resource, PAGE)
    };
    let name = &revision.secrets[0].object.name;
    let names: Vec<String> =
        (1..=head.parts).map(|part| if part == 1 { name.clone() } else { part_name(name, part) }).collect();
    // Others are not kept in memory.
    let gather = |parts: &mut BTreeMap<usize, String>, json: &str| {
        let Ok(SecretText { metadata, data }) = serde_json::from_str(json) else { return };
        let Some(index) = names.iter().position(|name| *name == metadata.name) else { return };
        let text = data.and_then(|mut data| data.remove(DATA)).filter(|text| text.len() <= MOST_ENCODED);
        parts.extend(text.map(|text| (index, text)));
    };
    let parts = target.list(&request).gather(gather).await.map_err(|error| {
        error.problem().cloned().unwrap_or_else(|| Problem::new("the list of revisions kept expiring"))
    })?;
    if let Some(missing) = (0..names.len()).find(|index| !parts.contains_key(index)) {
        return Ok(Err(format!("data.{DATA} of secret/{} is missing or too large", names[missing])));
    }
    Ok(unpack(parts.into_values(), &head.sum, MOST_UNPACKED))
}

/// The text in these parts. The error says why there is none.
fn unpack(parts: impl Iterator<Item = String>, expected: &str, most: u64) -> Result<String, String> {
    let mut packed = Vec::new();
    for part in parts {
        packed.extend(STANDARD.decode(part.as_bytes()).map_err(|_| format!("data.{DATA} is not base64"))?);
    }
    let mut unpacked = Vec::new();
    let read = GzDecoder::new(&packed[..]).take(most + 1).read_to_end(&mut unpacked);
    read.map_err(|_| "its manifests cannot be unpacked".to_owned())?;
    if unpacked.len() as u64 > most {
        return Err(format!("its manifests unpack to more than {} MiB", most >> 20));
    }
    if sum(&unpacked) != expected {
        return Err("its manifests are not those that gantry wrote".to_owned());
    }
    String::from_utf8(unpacked).map_err(|_| "its manifests are not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::keep::pack;
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_nothing_else() {
        let text = "a: 1\n".repeat(1000);
        let packed: Vec<String> = pack(&text, 8).iter().map(|part| STANDARD.encode(part)).collect();
        assert!(packed.len() > 1);
        let (whole, right) = (|| packed.clone().into_iter(), sum(text.as_bytes()));
        let most = text.len() as u64;
        assert_eq!(unpack(whole(), &right, most).as_deref(), Ok(&*text));
        assert_eq!(unpack(whole(), "x", most).unwrap_err(), "its manifests are not those that gantry wrote");
        assert_eq!(unpack(whole(), &right, most - 1).unwrap_err(), "its manifests unpack to more than 0 MiB");
        assert_eq!(unpack(whole().skip(1), &right, most).unwrap_err(), "its manifests cannot be unpacked");
        assert_eq!(unpack(["?".to_owned()].into_iter(), &right, most).unwrap_err(), "data.manifests is not base64");
    }
}

//! Reads many CRDs with one list of all.
//!
//! The next page of a list is requested as soon as the head of this one is read, so the server writes while gantry
//! reads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::ObjectReader;
use crate::kube::errors;
use crate::kube::list::{self, ListStallDetector};
use crate::kube::page::{ObjectsOnPage, Scanned, scan};
use crate::kube::protobuf::{CrdList, EncodedCrd, UndecodableMessage};
use crate::kube::request::{ApiRequest, RequestError, ResponseFormat, encode};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::Resource;

/// The number of bytes of a list that are decoded at a time, and how many such batches can wait.
const BATCH: usize = 512 << 10;
const BATCHES: usize = 2;
/// The number of CRDs per page of the list. Above 50, larger pages save no time; each doubling adds about 10 MB of
/// memory, and each halving doubles the round trips to a distant server.
const PAGE: usize = 100;

impl ObjectReader<'_> {
    /// Reads the wanted CRDs with a list of all CRDs. Returns `None` if the user is not allowed to list them.
    pub(super) async fn by_list(&self, indices: &[usize]) -> Result<Option<ObjectsOnPage>> {
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for &index in indices {
            by_name.entry(self.wanted[index].object.name.clone()).or_default().push(index);
        }
        let by_name = Arc::new(by_name);
        let crd = Resource::crd();
        let call = ApiRequest { verb: "list", resource: Some(&crd), ..ApiRequest::default() };
        let mut counted = 0;
        match tokio::time::timeout(self.transport.timeout(), self.read_all_crds(&by_name, &mut counted)).await {
            Ok(Ok(Some(found))) => {
                self.report_read(indices.len().saturating_sub(counted));
                return Ok(Some(found));
            }
            Ok(Err(RequestError::Refused(status))) if status.code == 403 => return Ok(None),
            // Whatever failed, or took too long, may work page by page. If not, that has the better error.
            Ok(Ok(None) | Err(_)) | Err(_) => {}
        }
        // A list that takes longer than the server keeps its snapshot ends with 410. It is retried once.
        for _ in 0..2 {
            match self.read_pages(&by_name, &mut counted).await {
                Ok(found) => {
                    self.report_read(indices.len().saturating_sub(counted));
                    return Ok(Some(found));
                }
                Err(RequestError::Refused(status)) if status.code == 403 => return Ok(None),
                Err(RequestError::Refused(status)) if status.code == 410 => {}
                Err(failure) => return Err(Error::failed(failure.into_problem(&call, self.transport.peer()))),
            }
        }
        Err(Error::failed(
            Problem::new(format!(
                "{} dropped the list of CustomResourceDefinitions twice while gantry read it",
                self.transport.peer().server
            ))
            .help("the connection is too slow for this many CRDs: run again, or deploy fewer manifests at a time"),
        ))
    }

    /// Reads all CRDs with one request, in Protocol Buffers. The server has them in its watch cache, while it reads
    /// pages from etcd unless a CRD was changed within the last minutes. Returns `None` if it does not send Protocol
    /// Buffers, or something that gantry does not know: in JSON nothing is lost.
    ///
    /// `counted` is how many of the wanted objects have been reported as read, including by an earlier attempt.
    async fn read_all_crds(
        &self,
        by_name: &Arc<BTreeMap<String, Vec<usize>>>,
        counted: &mut usize,
    ) -> std::result::Result<Option<ObjectsOnPage>, RequestError> {
        let crd = Resource::crd();
        let (uri, format) = (crd.path(None, None), ResponseFormat::Protobuf);
        let call = ApiRequest { verb: "list", resource: Some(&crd), uri, format, ..ApiRequest::default() };
        let Some(mut body) = self.transport.protobuf(&call).await? else { return Ok(None) };
        let (mut list, mut found) = (CrdList::default(), ObjectsOnPage::new());
        let mut batch: Vec<Vec<u8>> = Vec::new();
        let mut decoding = VecDeque::new();
        loop {
            let part = self.transport.next_part(&mut body).await?;
            let is_end = part.is_none();
            let items = match part {
                Some(part) => list.add(&part),
                None => list.check_complete().map(|()| Vec::new()),
            };
            let Ok(items) = items else { return Ok(None) };
            batch.extend(items);
            if is_end || batch.iter().map(Vec::len).sum::<usize>() > BATCH {
                let (names, batch) = (Arc::clone(by_name), std::mem::take(&mut batch));
                decoding.push_back(tokio::task::spawn_blocking(move || decode(&batch, &names)));
            }
            // The number of batches in memory is limited; the rest waits in the connection.
            while decoding.len() > if is_end { 0 } else { BATCHES } {
                let Some(decoded) = decoding.pop_front() else { break };
                let Ok(Ok(decoded)) = decoded.await else { return Ok(None) };
                found.extend(decoded);
                self.report_read_up_to(found.len(), counted);
            }
            if is_end {
                return Ok(Some(found));
            }
        }
    }

    /// Reads all CRDs page by page, in JSON.
    async fn read_pages(
        &self,
        by_name: &Arc<BTreeMap<String, Vec<usize>>>,
        counted: &mut usize,
    ) -> std::result::Result<ObjectsOnPage, RequestError> {
        let endless = |why| RequestError::sent(list::endless_list(self.transport, &Resource::crd(), why));
        let mut progress = ListStallDetector::default();
        let mut found = ObjectsOnPage::new();
        let mut page = Some(self.fetch_page(None).await?);
        while let Some(text) = page {
            let (send, token) = oneshot::channel();
            let names = Arc::clone(by_name);
            let scan = tokio::task::spawn_blocking(move || scan(&text, &names, send));
            let next = async {
                match token.await {
                    Ok(Some(token)) => {
                        progress.check_token(&token).map_err(endless)?;
                        self.fetch_page(Some(&token)).await.map(Some)
                    }
                    // The end of the list, or a scan that failed and returns its own error.
                    _ => Ok(None),
                }
            };
            let (scanned, next) = futures::join!(scan, next);
            let scanned = scanned.ok().and_then(std::result::Result::ok);
            let unexpected =
                || RequestError::sent(errors::unexpected_response(self.transport.peer(), 200, "not a list"));
            let Scanned { found: scanned, objects } = scanned.ok_or_else(unexpected)?;
            progress.check_page(objects).map_err(endless)?;
            found.extend(scanned);
            self.report_read_up_to(found.len(), counted);
            page = next?;
        }
        Ok(found)
    }

    async fn fetch_page(&self, token: Option<&str>) -> std::result::Result<String, RequestError> {
        let crd = Resource::crd();
        let mut limit = PAGE;
        loop {
            let mut uri = format!("{}?limit={limit}", crd.path(None, None));
            if let Some(token) = token {
                uri.push_str("&continue=");
                uri.push_str(&encode(token));
            }
            let call = ApiRequest { verb: "list", resource: Some(&crd), uri, ..ApiRequest::default() };
            match self.transport.send(&call).await {
                Err(RequestError::TooLong(_)) if limit > 1 => limit /= 10,
                answer => return Ok(answer?.body),
            }
        }
    }
}

/// Decodes the wanted ones of these CRDs.
fn decode(
    items: &[Vec<u8>],
    names: &BTreeMap<String, Vec<usize>>,
) -> std::result::Result<ObjectsOnPage, UndecodableMessage> {
    let mut found = ObjectsOnPage::new();
    for item in items {
        let item = EncodedCrd::read(item)?;
        let Some(wanted) = names.get(item.name) else { continue };
        let live = item.live()?;
        found.extend(wanted.iter().map(|&index| (index, Ok(live.clone()))));
    }
    Ok(found)
}

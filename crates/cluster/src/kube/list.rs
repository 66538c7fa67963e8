//! The pages of one list. Each page is fetched while the caller processes the previous one.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::errors;
use super::request::{ApiRequest, RequestError, ResponseFormat, encode};
use super::transport::Transport;
use crate::list::{ListError, ListPage, ListRequest};
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;

/// The target size of a page in bytes, estimated from the previous page. An object can be as large as 1.5 MB, so a
/// limit on the number of objects does not bound the memory.
const TARGET_PAGE_BYTES: usize = 8 << 20;

/// A server can return some pages without objects. After this many in a row, the list is considered endless.
const MAX_EMPTY_PAGES: u32 = 100;
/// A list that outlives this many snapshots, of five minutes each, is considered endless.
const MAX_RENEWALS: u32 = 100;
/// The maximum length of a continue token. An API server's tokens have a few hundred bytes.
const MAX_TOKEN_LEN: usize = 16 << 10;

/// The continue token; empty at the beginning and at the end of the list.
type ContinueToken = String;

/// Detects a list that makes no progress.
#[derive(Debug, Default)]
pub(super) struct ListStallDetector {
    /// Hashes of the tokens so far. A list that makes progress never repeats one.
    seen: HashSet<u64>,
    hasher: RandomState,
    empty: u32,
    renewed: u32,
}

impl ListStallDetector {
    /// Returns why the list cannot continue at this token, if so.
    pub(super) fn check_token(&mut self, token: &str) -> Result<(), &'static str> {
        match () {
            () if token.len() > MAX_TOKEN_LEN => Err("its continue token is too long"),
            () if !self.seen.insert(self.hasher.hash_one(token)) => {
                Err("its continue token points back to an earlier \
                page")
            }
            () => Ok(()),
        }
    }

    /// Returns why the list cannot continue after a page with this many objects, if so.
    pub(super) fn check_page(&mut self, objects: usize) -> Result<(), &'static str> {
        self.empty = if objects == 0 { self.empty + 1 } else { 0 };
        if self.empty > MAX_EMPTY_PAGES { Err("page after page is empty") } else { Ok(()) }
    }

    fn check_renewal(&mut self) -> Result<(), &'static str> {
        self.renewed += 1;
        if self.renewed > MAX_RENEWALS { Err("the server keeps dropping its snapshot") } else { Ok(()) }
    }
}

/// The problem with a list that makes no progress.
pub(super) fn endless_list(transport: &Transport, resource: &Resource, why: &str) -> Problem {
    let Resource { plural, group, .. } = resource;
    let dot = if group.is_empty() { "" } else { "." };
    Problem::new(format!("{} sends an endless list of {plural}{dot}{group}: {why}", transport.peer().server))
        .help("is it a Kubernetes API server, and is there a cache or proxy in between?")
}

/// The pages of one list, which are requested one at a time.
pub struct KubePages {
    transport: Arc<Transport>,
    query: Arc<ListQuery>,
    /// The maximum number of objects on any page, and on the next one.
    page_size: u32,
    limit: u32,
    /// The token of the page that is being fetched.
    start: ContinueToken,
    progress: ListStallDetector,
    /// The page that is being fetched. Dropping it cancels the request.
    ahead: JoinSet<Result<(ListPage, ContinueToken), RequestError>>,
    state: PagingState,
}

/// The parameters that all page requests share.
struct ListQuery {
    resource: Resource,
    namespace: Option<String>,
    /// Path and query, without limit and token.
    uri: String,
    metadata_only: bool,
}

enum PagingState {
    /// No page has arrived yet.
    Fresh {
        is_second_try: bool,
    },
    /// The page that is being fetched continues after the previous one.
    Going {
        is_second_try: bool,
        token_was_renewed: bool,
    },
    Over(Result<(), ListError>),
}

impl KubePages {
    pub(super) fn new(transport: &Arc<Transport>, request: &ListRequest<'_>) -> Self {
        KubePages::of_name(transport, request, None)
    }

    /// The same for the one object with this name, if it exists.
    pub(super) fn of_name(transport: &Arc<Transport>, request: &ListRequest<'_>, name: Option<&str>) -> Self {
        let ListRequest { resource, namespace, label_selector, page_size, metadata_only } = *request;
        let namespace = namespace.filter(|_| resource.namespaced).map(str::to_owned);
        let mut uri = resource.path(namespace.as_deref(), None);
        uri.push('?');
        if let Some(selector) = label_selector {
            uri.push_str("labelSelector=");
            uri.push_str(&encode(selector));
            uri.push('&');
        }
        if let Some(name) = name {
            uri.push_str("fieldSelector=");
            uri.push_str(&encode(&format!("metadata.name={name}")));
            uri.push('&');
        }
        let page_size = page_size.max(1);
        KubePages {
            transport: Arc::clone(transport),
            query: Arc::new(ListQuery { resource: resource.clone(), namespace, uri, metadata_only }),
            page_size,
            limit: page_size,
            start: ContinueToken::new(),
            progress: ListStallDetector::default(),
            ahead: JoinSet::new(),
            state: PagingState::Fresh { is_second_try: false },
        }
    }

    /// See [`crate::Pages::next`].
    pub async fn next(&mut self) -> Result<Option<ListPage>, ListError> {
        loop {
            if let PagingState::Over(end) = &self.state {
                return end.clone().map(|()| None);
            }
            if self.ahead.is_empty() {
                self.fetch(ContinueToken::new());
            }
            // There is a task, so there is a result, unless the runtime is shutting down.
            let Some(Ok(answer)) = self.ahead.join_next().await else {
                let problem = Problem::new(format!("reading the list of {} was cancelled", self.query.resource.plural));
                return Err(self.fail(ListError::Other(problem)));
            };
            let (is_second_try, token_was_renewed) = match self.state {
                PagingState::Going { is_second_try, token_was_renewed } => (is_second_try, token_was_renewed),
                PagingState::Fresh { is_second_try } => (is_second_try, false),
                PagingState::Over(_) => continue,
            };
            let progress = match &answer {
                Ok((page, token)) if !token.is_empty() => {
                    self.progress.check_page(page.len()).and_then(|()| self.progress.check_token(token))
                }
                Err(RequestError::Refused(status)) if status.code == 410 => self.progress.check_renewal(),
                _ => Ok(()),
            };
            if let Err(why) = progress {
                let problem = endless_list(&self.transport, &self.query.resource, why);
                return Err(self.fail(ListError::Other(problem)));
            }
            match answer {
                Ok((page, token)) if token.is_empty() => {
                    self.state = PagingState::Over(Ok(()));
                    return Ok(Some(page));
                }
                Ok((page, token)) => {
                    self.state = PagingState::Going { is_second_try, token_was_renewed: false };
                    self.limit = objects_per_page(self.page_size, &page);
                    self.fetch(token);
                    return Ok(Some(page));
                }
                Err(RequestError::Refused(status)) if status.code == 410 => {
                    // The token in the error continues after the last object of the previous page, in a newer snapshot,
                    // so no object is returned twice. That is enough to check each object, and a list that takes longer
                    // than the server keeps snapshots (five minutes) can complete.
                    let token = status.metadata.and_then(|metadata| metadata.continue_).unwrap_or_default();
                    if !token.is_empty() && !token_was_renewed {
                        self.state = PagingState::Going { is_second_try, token_was_renewed: true };
                        self.fetch(token);
                    } else if is_second_try {
                        let error = ListError::Other(self.dropped_twice());
                        return Err(self.fail(error));
                    } else {
                        self.state = PagingState::Fresh { is_second_try: true };
                        // The list restarts, so tokens can repeat.
                        self.progress =
                            ListStallDetector { renewed: self.progress.renewed, ..ListStallDetector::default() };
                        return Err(ListError::Expired);
                    }
                }
                Err(RequestError::TooLong(_)) if self.limit > 1 => {
                    self.limit = (self.limit / 10).max(1);
                    self.page_size = self.limit;
                    self.fetch(self.start.clone());
                }
                Err(failure) => {
                    let error = self.explain(failure);
                    return Err(self.fail(error));
                }
            }
        }
    }

    fn fetch(&mut self, token: ContinueToken) {
        let (transport, query) = (Arc::clone(&self.transport), Arc::clone(&self.query));
        let mut uri = format!("{}limit={}", query.uri, self.limit);
        self.start.clone_from(&token);
        self.ahead.spawn(async move {
            if !token.is_empty() {
                uri.push_str("&continue=");
                uri.push_str(&encode(&token));
            }
            let answer = transport.send(&ApiRequest { uri, ..query.call() }).await?;
            ListPage::read(answer.body)
                .map_err(|_| RequestError::sent(errors::unexpected_response(transport.peer(), 200, "not a list")))
        });
    }

    fn fail(&mut self, error: ListError) -> ListError {
        self.state = PagingState::Over(Err(error.clone()));
        error
    }

    fn explain(&self, failure: RequestError) -> ListError {
        let (code, said) = failure.code_and_words();
        let problem = failure.into_problem(&self.query.call(), self.transport.peer());
        match code {
            403 => ListError::Forbidden(problem),
            404 => ListError::NotServed(problem),
            500 if said.contains("conversion webhook for ") => {
                ListError::Conversion { said, problem: Box::new(problem) }
            }
            _ => ListError::Other(problem),
        }
    }

    fn dropped_twice(&self) -> Problem {
        let Resource { plural, group, .. } = &self.query.resource;
        let dot = if group.is_empty() { "" } else { "." };
        let server = &self.transport.peer().server;
        Problem::new(format!("{server} dropped the list of {plural}{dot}{group} twice while gantry read it"))
            .help("reading the list takes longer than the server keeps it (5 minutes by default): run again when it is less busy")
    }
}

/// How many objects of the size of those on `page` fit on one page, with a maximum of `max`.
fn objects_per_page(max: u32, page: &ListPage) -> u32 {
    let one = page.bytes() / page.len().max(1);
    u32::try_from(TARGET_PAGE_BYTES / one.max(1)).unwrap_or(u32::MAX).clamp(1, max)
}

impl ListQuery {
    fn call(&self) -> ApiRequest<'_> {
        ApiRequest {
            verb: "list",
            resource: Some(&self.resource),
            namespace: self.namespace.as_deref(),
            format: if self.metadata_only { ResponseFormat::MetadataOnly } else { ResponseFormat::Json },
            ..ApiRequest::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake_server;
    use super::*;

    #[tokio::test]
    async fn large_objects_make_smaller_pages_and_small_ones_no_larger() {
        // Pages of one object each: 10 bytes, a megabyte, nine megabytes, 10 bytes.
        let sizes = [10, 1 << 20, 9 << 20, 10];
        let (target, seen) = fake_server::target(move |seen| {
            let number: usize = seen.uri.split("continue=").nth(1).map_or(0, |token| token.parse().unwrap());
            let token = if number + 1 < sizes.len() { (number + 1).to_string() } else { String::new() };
            let item = json!({"text": "x".repeat(sizes[number])});
            fake_server::json(200, json!({"metadata": {"continue": token}, "items": [item]}))
        });
        let resource = Resource::crd();
        let request = ListRequest { label_selector: Some("a=b"), ..ListRequest::new(&resource, 500) };
        let mut pages = target.list(&request);
        let mut count = 0;
        while let Some(page) = pages.next().await.unwrap() {
            count += page.len();
        }
        assert_eq!(count, sizes.len());
        let start = format!("{}?labelSelector=a%3Db&limit=", resource.path(None, None));
        let uris: Vec<String> = seen.lock().unwrap().iter().map(|seen| seen.uri.replace(&start, "")).collect();
        assert_eq!(uris, ["500", "500&continue=1", "7&continue=2", "1&continue=3"]);
    }
}

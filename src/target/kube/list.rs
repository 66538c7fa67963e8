//! The pages of one list, each fetched while the caller looks at the one before it.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::errors::{self, words};
use super::transport::{Call, Failure, Transport, encode};
use crate::problem::Problem;
use crate::resource::Resource;
use crate::target::list::{ListError, ListRequest, MissingRight, Page};

/// Where the list goes on; empty at its beginning and at its end.
type Token = String;

pub struct KubePages {
    transport: Arc<Transport>,
    query: Arc<Query>,
    /// The one page that is being fetched. Dropping it ends the request.
    ahead: JoinSet<Result<(Page, Token), Failure>>,
    state: State,
}

/// What every page of the list is asked with.
struct Query {
    resource: Resource,
    namespace: Option<String>,
    /// Path and query, without the token.
    uri: String,
}

enum State {
    /// Nothing has come yet.
    Fresh {
        is_second_try: bool,
    },
    /// The page that is ahead goes on where the one before it ended.
    Going {
        is_second_try: bool,
        token_was_renewed: bool,
    },
    Over(Result<(), ListError>),
}

impl KubePages {
    pub(super) fn new(transport: &Arc<Transport>, request: &ListRequest<'_>) -> Self {
        let ListRequest { resource, namespace, label_selector, page_size } = *request;
        let namespace = namespace.filter(|_| resource.namespaced).map(str::to_owned);
        let mut uri = resource.path(namespace.as_deref().map(encode).as_deref(), None);
        uri.push_str(&format!("?limit={}", page_size.max(1)));
        if let Some(selector) = label_selector {
            uri.push_str("&labelSelector=");
            uri.push_str(&encode(selector));
        }
        KubePages {
            transport: Arc::clone(transport),
            query: Arc::new(Query { resource: resource.clone(), namespace, uri }),
            ahead: JoinSet::new(),
            state: State::Fresh { is_second_try: false },
        }
    }

    /// See [`crate::target::list::Pages::next`].
    pub(in crate::target) async fn next(&mut self) -> Result<Option<Page>, ListError> {
        loop {
            if let State::Over(end) = &self.state {
                return end.clone().map(|()| None);
            }
            if self.ahead.is_empty() {
                self.fetch(Token::new());
            }
            // Not empty, so there is an answer, unless the runtime is about to end.
            let Some(Ok(answer)) = self.ahead.join_next().await else {
                let problem = Problem::new(format!("the list of {} was given up", self.query.resource.plural));
                return Err(self.fail(ListError::Other(problem)));
            };
            let (is_second_try, token_was_renewed) = match self.state {
                State::Going { is_second_try, token_was_renewed } => (is_second_try, token_was_renewed),
                State::Fresh { is_second_try } => (is_second_try, false),
                State::Over(_) => continue,
            };
            match answer {
                Ok((page, token)) if token.is_empty() => {
                    self.state = State::Over(Ok(()));
                    return Ok(Some(page));
                }
                Ok((page, token)) => {
                    self.state = State::Going { is_second_try, token_was_renewed: false };
                    self.fetch(token);
                    return Ok(Some(page));
                }
                Err(Failure::Refused(status)) if status.code == 410 => {
                    // The token of the refusal goes on after the last object of the page before, in a newer snapshot:
                    // no object comes twice. That does for a look at each object, and a list that takes longer than
                    // the server keeps snapshots (five minutes) comes to an end.
                    let token = status.metadata.and_then(|metadata| metadata.continue_).unwrap_or_default();
                    if !token.is_empty() && !token_was_renewed {
                        self.state = State::Going { is_second_try, token_was_renewed: true };
                        self.fetch(token);
                    } else if is_second_try {
                        let error = ListError::Other(self.dropped_twice());
                        return Err(self.fail(error));
                    } else {
                        self.state = State::Fresh { is_second_try: true };
                        return Err(ListError::Expired);
                    }
                }
                Err(failure) => {
                    let error = self.explain(failure);
                    return Err(self.fail(error));
                }
            }
        }
    }

    fn fetch(&mut self, token: Token) {
        let (transport, query) = (Arc::clone(&self.transport), Arc::clone(&self.query));
        self.ahead.spawn(async move {
            let mut uri = query.uri.clone();
            if !token.is_empty() {
                uri.push_str("&continue=");
                uri.push_str(&encode(&token));
            }
            let answer = transport.send(&Call { uri, ..query.call() }).await?;
            Page::read(answer.body).map_err(|_| Failure::sent(errors::nonsense(transport.peer(), 200, "no list")))
        });
    }

    fn fail(&mut self, error: ListError) -> ListError {
        self.state = State::Over(Err(error.clone()));
        error
    }

    fn explain(&self, failure: Failure) -> ListError {
        let (code, said) = match &failure {
            Failure::Refused(status) => (status.code, words(&status.message)),
            Failure::Lost { .. } => (0, String::new()),
        };
        let problem = failure.into_problem(&self.query.call(), self.transport.peer());
        match code {
            403 => ListError::Forbidden { right: Box::new(self.query.right()), problem },
            404 => ListError::NotServed(problem),
            500 if said.contains("conversion webhook for ") => ListError::Conversion { said, problem },
            _ => ListError::Other(problem),
        }
    }

    fn dropped_twice(&self) -> Problem {
        let Resource { plural, group, .. } = &self.query.resource;
        let dot = if group.is_empty() { "" } else { "." };
        let server = &self.transport.peer().server;
        Problem::new(format!("{server} dropped the list of {plural}{dot}{group} twice while it was read"))
            .help("the list takes longer than the server keeps it: run again, or list fewer objects on a page")
    }
}

impl Query {
    fn call(&self) -> Call<'_> {
        Call { verb: "list", resource: Some(&self.resource), namespace: self.namespace.as_deref(), ..Call::default() }
    }

    fn right(&self) -> MissingRight {
        MissingRight {
            verb: "list",
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            namespace: self.namespace.clone(),
        }
    }
}

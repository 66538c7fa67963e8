//! Lines of a stream.

use std::collections::VecDeque;

use http_body_util::BodyExt as _;
use kube::client::Body;

use super::errors;
use super::request::{Peer, RequestError};

/// A streaming response: see [`super::transport::Transport::lines`].
pub struct ResponseLines {
    body: Body,
    whole: VecDeque<Vec<u8>>,
    /// The beginning of the line after `whole`.
    rest: Vec<u8>,
}

impl ResponseLines {
    pub fn new(body: Body) -> Self {
        ResponseLines { body, whole: VecDeque::new(), rest: Vec::new() }
    }

    /// The next line; `None` at the end. A line of more than `limit` bytes is an error.
    pub async fn next(&mut self, limit: usize, peer: &Peer) -> Result<Option<String>, RequestError> {
        loop {
            if let Some(line) = self.whole.pop_front() {
                let line = String::from_utf8(line);
                return line
                    .map(Some)
                    .map_err(|_| RequestError::sent(errors::unexpected_response(peer, 200, "text that is not UTF-8")));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| errors::no_response(&error, peer))?;
            let Some(data) = frame.data_ref() else { continue };
            if !self.take(data, limit) {
                return Err(RequestError::TooLong(errors::too_long(peer, limit)));
            }
        }
    }

    /// Adds received data. Returns false if a line exceeds the limit.
    fn take(&mut self, data: &[u8], limit: usize) -> bool {
        let mut parts = data.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.rest.len() + part.len() > limit {
                return false;
            }
            self.rest.extend_from_slice(part);
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                self.whole.extend((!line.trim_ascii().is_empty()).then_some(line));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_from_any_pieces_and_bounded() {
        let text = b"{\"a\":1}\n\r\n{\"b\":2}\n{\"c\"";
        for size in 1..=text.len() {
            let mut lines = ResponseLines::new(Body::empty());
            assert!(text.chunks(size).all(|part| lines.take(part, 8)));
            assert_eq!(lines.whole, [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec()], "{size}");
            assert_eq!(lines.rest, b"{\"c\"");
        }
        let mut lines = ResponseLines::new(Body::empty());
        assert!(lines.take(b"12345678\n1234", 8));
        assert!(!lines.take(b"56789", 8));
    }
}
